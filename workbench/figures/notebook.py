"""Figures in notebooks. A cell of the notebook sets the values of parameters, and the figure runs with these
values.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.compiled import load_nbformat, pd, project_folder
from workbench.figures.figure import EFFORT, SETTING, Figure, find_figure, results_folder
from workbench.figures.saved import save
from workbench.mechanisms.options import parameter_help
from workbench.trials import claims
from workbench.trials.claims import Verdict
from workbench.value import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing
    from nbformat import NotebookNode
    from pandas.io.formats.style import Styler


METADATA = {  # of every notebook, as it is committed
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_INJECTED = "# Parameters"  # how papermill begins the cell that it adds
_FIRST = "profile ="  # how ours begins
_WIDTH = 96  # as code is formatted


@dataclass(frozen=True, repr=False)
class SavedFolder:
    """Folder of a saved figure. A notebook displays this object as a sentence with the folder and the command
    that saves the figure again.
    """

    folder: Path
    command: str

    def __fspath__(self) -> str:
        return str(self.folder)

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def __repr__(self) -> str:
        place = "/".join(self.folder.parts[-2:])
        return f"Saved among the results, in {place}; again by: {self.command}"


@dataclass(frozen=True)
class FigureRun:
    """Run of a figure in a notebook. The object contains the figure, its profile ("quick" or "paper", a named
    setting of its parameters), and the folder for results.
    """

    figure: Figure
    profile: str
    results: Path

    @property
    def store(self) -> Path:
        """Path of the folder in which all figures store the results of finished trials. A trial is a run of
        one mechanism with one seed.
        """
        return self.results / "store"

    def outcomes(self, verdicts: Sequence[Verdict]) -> Styler:
        """Return a formatted table that shows each statement of the paper with a verdict. The verdict says
        whether the statement holds.

        If the run has the profile "paper", the table shows the verdicts of this run. A quick run is too small
        for verdicts of its own. So the table of a quick run shows the verdicts of a full run, which are
        stored in the repository. A column says whether the results of the quick run agree with these
        verdicts. With other settings than the paper's, the table shows that no statement was judged.
        """
        committed = committed_verdicts(self.figure.id.partition("_")[0])
        own = committed[committed.figure == self.figure.id]
        if self.profile == "paper" or self.figure.off_paper() or not len(own):
            return claims.verdict_table(verdicts)
        ours = {verdict.id: verdict.outcome for verdict in verdicts}
        caption = "What the paper profile found, as it is committed; a quick run judges nothing"
        agree = [
            claims.agreement(v.outcome, ours.get(v.id, claims.NOT_JUDGED))
            for v in own.itertuples()
        ]
        return claims.verdict_table(own, caption, {"this run": agree})

    def save(
        self,
        fig: Drawing | None,
        rows: pd.DataFrame,
        verdicts: Sequence[Verdict] = (),
        supplement: Drawing | None = None,
    ) -> SavedFolder:
        """Save the run to a folder. The folder contains the pictures, the plotted numbers, a verdict on each
        statement of the paper, and a manifest. The manifest lists these files, and records the settings with
        which they were made. If the figure's parameters differ from the defaults, the folder has another name.

        If the notebook has not drawn the `supplement` (the panels that are not in the main picture), this
        method draws it.
        """
        folder = save(
            fig,
            rows,
            spec=self.figure,
            profile=self.profile,
            results=self.results,
            verdicts=verdicts,
            supplement=supplement or self.figure.supplement(rows),
        )
        return SavedFolder(folder, self.figure.command(self.profile))


def committed_verdicts(paper: str) -> pd.DataFrame:
    """Read the verdicts on all statements of a paper from the repository. A verdict says whether the
    statement holds. Return a data frame with one row per statement. The data frame is empty if the repository
    has no verdicts on this paper.
    """
    file = project_folder() / "experiments" / "verdicts" / f"{paper}.csv"
    columns = [*claims.to_frame([]).columns, "figure", "datasets", "commit"]
    if not file.exists():
        return pd.DataFrame(columns=columns)
    verdicts = pd.read_csv(file, dtype=str, keep_default_na=False)
    return verdicts.reindex(columns=columns, fill_value="")


def open_notebook(id: str, namespace: Mapping[str, Any]) -> FigureRun:
    """Begin the run of a figure in a notebook. The figure gets the parameter values that a cell of the
    notebook sets.

    Parameters
    ----------
    id : str
        Id of the figure, for example cormode2012_fig5.
    namespace : mapping
        Variables of the notebook. Pass `globals()`. Some of these variables contain the values of the figure's
        parameters.

    Returns
    -------
    FigureRun

    Raises
    ------
    ValueError
        If a value is out of range, or if the cell sets a variable that is not a parameter of the figure. The
        message then lists similar names.
    """
    cls = find_figure(id)
    known = ["profile", "results", *cls.parameters()]
    cls.refuse_unknown(_assigned(namespace.get("In", ())), known)
    given = {name: namespace[name] for name in cls.parameters() if name in namespace}
    profile = namespace.get("profile", "quick")
    results = namespace.get("results") or results_folder()
    figure = cls.at(profile, **given)
    if "get_ipython" in namespace:
        _set_display()
    return FigureRun(figure, profile, Path(results).resolve())


def _set_display() -> None:
    """Set the display of tables and figures. Tables are shown completely, with numbers as people write
    them, and figures look as they are saved.
    """
    from matplotlib_inline.config import InlineBackend

    InlineBackend.instance().print_figure_kwargs = {}  # "tight" would draw each twice

    for what in ("max_rows", "max_columns", "max_colwidth"):
        pd.set_option(f"display.{what}", None)
    pd.set_option("display.float_format", number)


def parameters_cell(cls: type[Figure]) -> str:
    """Return the source text of the notebook cell that sets the parameters of a figure. Each line sets one
    parameter and explains it in a comment.

    Some parameters determine only how long a run takes, for example the number of seeds. The cell sets them to
    None, so that their values come from the profile, for example "quick".
    """
    lines = [
        'profile = "quick"  # quick (minutes) or paper (the paper\'s own sizes)',
        "results = None  # the folder of results; None: experiments/results",
    ]
    for f in cls.parameters().values():
        effort = f.metadata["kind"] == EFFORT
        comment = parameter_help(f)
        if effort:
            quick = cls.quick.get(f.name, f.default)
            usual = '"none"' if f.default is None else repr(f.default)
            comment += f"; None: {usual}"
            if quick != f.default:
                comment += f" (paper), {quick!r} (quick)"
        elif f.metadata["kind"] != SETTING:
            comment += "; the paper does not print it"
        line = _assignment(f.name, None if effort else f.default)
        short = len(line) + len(comment) + 4 <= _WIDTH
        lines += [f"{line}  # {comment}"] if short else [f"# {comment}", line]
    return "\n".join(lines)


def _assignment(name: str, x: Any) -> str:
    """Return the source text of an assignment on one line. A long list has one line per member."""
    line = f"{name} = {_literal(x)}"
    if len(line) <= _WIDTH or not isinstance(x, tuple):
        return line
    members = "".join(f"    {_literal(member)},\n" for member in x)
    return f"{name} = (\n{members})"


def _literal(x: Any) -> str:
    if isinstance(x, tuple):
        return f"({', '.join(map(_literal, x))}{',' * (len(x) == 1)})"
    return json.dumps(x, ensure_ascii=False) if isinstance(x, str) else repr(x)


def _assigned(sources: Sequence[str]) -> list[str]:
    """Return the names of the variables that are set in the cell of parameters, and in the cell that the
    library papermill adds. If a cell ran several times, its last run counts.
    """
    latest = {}
    for source in sources:
        for first in (_FIRST, _INJECTED):
            if source.lstrip().startswith(first):
                latest[first] = source
    names = []
    for source in latest.values():
        assignments = [x for x in ast.parse(source).body if isinstance(x, ast.Assign)]
        targets = [target for x in assignments for target in x.targets]
        names += [target.id for target in targets if isinstance(target, ast.Name)]
    return names


def default_notebook(cls: type[Figure]) -> NotebookNode:
    """Return a notebook for a figure that has none, with the cells that the notebooks of all figures share."""
    load_nbformat()
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    opening = (
        "from workbench import figures\n\n"
        f"run = figures.open_notebook({cls.id!r}, globals())\nfigure = run.figure\nfigure"
    )
    sources = [
        opening,
        "rows, verdicts = figure.run(run.store)",
        "fig = figure.draw(rows, verdicts)",
        "run.outcomes(verdicts)",
        "run.save(fig, rows, verdicts)",
    ]
    cells = [
        new_markdown_cell(f"# {cls.title}\n\n{cls.page}\n\n{cls.__doc__ or ''}".strip()),
        new_code_cell(parameters_cell(cls), metadata={"tags": ["parameters"]}),
        *map(new_code_cell, sources),
    ]
    return new_notebook(cells=cells, metadata=METADATA)


def strip(model: dict[str, Any], **_: Any) -> None:
    """Remove outputs from a notebook. With `workbench lab`, Jupyter calls this before it saves.

    Parameters
    ----------
    model : dict
        Model of the contents manager. Notebooks of format 4 are changed in place.
    """
    if model["type"] != "notebook" or model["content"]["nbformat"] != 4:
        return
    notebook = model["content"]
    notebook["metadata"] = METADATA
    for cell in notebook["cells"]:
        tags = cell["metadata"].get("tags")
        cell["metadata"] = {"tags": tags} if tags else {}
        if cell["cell_type"] == "code":
            cell["outputs"] = []
            cell["execution_count"] = None
