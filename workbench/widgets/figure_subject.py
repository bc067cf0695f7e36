"""Panel of a figure of a paper, with controls for its parameters. A separate process runs the figure."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

from workbench import figures
from workbench.compiled import pd, template_folder
from workbench.figures import EFFORT, Figure, FigureRun, plots
from workbench.figures.figure import paper_of
from workbench.figures.recorded import recorded_rows
from workbench.figures.stories import THUMBNAILS
from workbench.mechanisms.options import parameter_help, parameter_text
from workbench.trials import watched
from workbench.value import value
from workbench.widgets.controls import Control, control_of_field
from workbench.widgets.subjects import Drawn, Subject, Values

CHOOSE = "figure"
_DPI = 110
_TABLE_ROWS = 60


@value
class FigureSubject(Subject):
    """Content of a panel that shows a figure, or lets you choose one. Stored results of finished trials (runs
    of a mechanism) in the folder `results` are used again.
    """

    id: str
    results: Path

    slow: ClassVar[bool] = True
    words: ClassVar[str] = (
        "A move runs the figure again, roughly at once and then with the effort that its controls "
        "state. Finished trials are kept and are not run again."
    )

    @property
    def name(self) -> str:
        """Id of the figure."""
        return self.id or "figures"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return figures.find_figure(self.id).title if self.id else "Figures of the papers"

    def _class(self, values: Values) -> type[Figure] | None:
        chosen = self.id or values.get(CHOOSE)
        return figures.find_figure(chosen) if chosen else None

    def at(self, values: Values) -> Figure:
        """Return the figure with these parameter values. Raise a ValueError if a value is out of range."""
        cls = self._class(values)
        if cls is None:
            raise ValueError(f"{CHOOSE} = '' is not allowed: choose a figure first")
        given = {name: values[name] for name in cls.parameters() if name in values}
        return cls.at("quick", **{n: "none" if x is None else x for n, x in given.items()})

    def controls(self, values: Values) -> tuple[Control, ...]:
        """Return the controls for the parameters of the figure. Parameters that determine only how long a run
        takes, for example the number of seeds, are last.
        """
        controls = []
        if not self.id:
            titles = listed_figures()
            shown = ("choose a figure", *titles.values())
            chosen = Control(CHOOSE, "", ("", *titles), "choice", shown=shown, resets=True)
            controls.append(chosen)
        cls = self._class(values)
        if cls is None:
            return tuple(controls)
        start = cls.at("quick")
        parameters = cls.parameters().values()
        for f in sorted(parameters, key=lambda f: f.metadata["kind"] == EFFORT):
            controls.append(_control(f, getattr(start, f.name)))
        return tuple(controls)

    def settings(self, figure: Figure) -> dict[str, Any]:
        """Return the settings of the controls that correspond to this figure."""
        return {c.name: c.read(getattr(figure, c.name)) for c in self.controls({})}

    def check(self, values: Values) -> None:
        """Raise a ValueError if the figure does not allow a setting."""
        if self._class(values) is not None:
            self.at(values)

    def saved(self, values: Values) -> Drawn:
        """Return the saved picture of an earlier run. If there is none, return the small picture of the paper's
        settings that comes with the package.
        """
        empty = pd.DataFrame()
        if self._class(values) is None:
            return Drawn(empty, lead="Choose a figure to see it.", exact=True)
        figure = self.at(values)
        folder = figures.figure_folder(self.results, "quick", figure.name("quick"))
        picture = folder / f"{figure.id}.png"
        if picture.is_file():
            lead = "As a batch saved it."
            return Drawn(empty, image=picture.read_bytes(), lead=lead, exact=True)
        small = template_folder() / THUMBNAILS / picture.name
        if not small.is_file():
            return Drawn(empty, old=True)
        lead = (
            "At the paper's settings and effort, until the picture for your settings is drawn."
        )
        return Drawn(empty, image=small.read_bytes(), lead=lead, old=True)

    def draw(self, values: Values, exact: bool, progress: Path | None) -> Drawn:
        """Draw the figure. The worker process calls this method.

        If the package contains recorded results for these settings, they are drawn instead of a rough run.
        """

        def tell(done: int, of: int) -> None:
            if progress is not None:
                progress.write_text(json.dumps([done, of]))

        figure = self.at(values)
        lead = ""
        rows = None if exact else recorded_rows(figure)
        if rows is not None:
            lead, exact = "Numbers recorded with the package.", True
        else:
            figure = figure if exact else rough_figure(figure)
            with watched(tell):
                rows = figure.rows(self.results / "store")
        drawing = figure.draw(rows)
        facts = []
        if off := figures.describe(figure.off_paper()):
            facts.append((f"not {figure.usual}", off))
        if drawing is None:
            table = figure.compare_with_paper(rows).head(_TABLE_ROWS).to_html(border=0)
            return Drawn(rows, facts, lead=lead, table=table, exact=exact)
        file = BytesIO()
        drawing.savefig(file, format="png", dpi=_DPI)
        plots.close(drawing)
        return Drawn(rows, facts, lead=lead, image=file.getvalue(), exact=exact)

    def save(self, values: Values) -> str:
        """Save the figure to the folder that the command `workbench reproduce` would write, and return the
        path. The worker process calls this method.
        """
        figure = self.at(values)
        run = FigureRun(figure, "quick", self.results)
        rows, verdicts = figure.run(run.store)
        return os.fspath(run.save(figure.draw(rows, verdicts), rows, verdicts))

    def code(self, values: Values) -> str:
        """Return lines of Python that open the panel with these settings."""
        if self._class(values) is None:
            return ""
        figure = self.at(values)
        arguments = "".join(f", {n}={x!r}" for n, x in figure.differences("quick").items())
        return f"from workbench import widgets\nwidgets.figure({figure.id!r}{arguments})"

    def commands(self, values: Values, words: Sequence[str]) -> list[str]:
        """Return the command `workbench reproduce …`, which makes the files of the figure."""
        return [self.at(values).command("quick") if self._class(values) is not None else ""]


def _control(f: Any, start: Any) -> Control:
    """Return the control for a parameter of a figure. A list is typed as text. If the possible members of the
    list are known, the user ticks them instead.
    """
    choices = f.metadata["choices"]
    if choices and f.metadata["many"]:
        stops = tuple(dict.fromkeys([*choices, *start]))  # a name of another package too
        control: Control | None = Control(f.name, [*start], stops, "several")
    else:
        control = None if f.metadata["many"] else control_of_field(f, start)
    control = control or Control(f.name, parameter_text(start), (), "text")
    return replace(control, doc=parameter_help(f))


def rough_figure(figure: Figure) -> Figure:
    """Return the figure with few repetitions, for a first picture."""
    effort = {}
    for name, x in figure.rough.items():
        own: Any = getattr(figure, name, None)
        if type(own) is type(x):  # a list of efforts stays as it is
            effort[name] = min(x, own)
    return replace(figure, **effort)


@lru_cache(1)
def listed_figures() -> dict[str, str]:
    """Return the figures of all papers by id, with the paper and the title of the notebook."""
    listed = {}
    notebooks = figures.find_notebooks(figures.project_folder() / "notebooks")
    for id, path in notebooks.items():
        if paper := paper_of(id):
            first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
            title = "".join(first).partition("\n")[0].lstrip("# ")
            listed[id] = f"{paper[:-4].title()} {paper[-4:]}, {title}"
    return listed
