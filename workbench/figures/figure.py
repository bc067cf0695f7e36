"""Base class of the papers' figures, with their parameters, datasets and claims (sentences of the papers).
Functions find the figures and the folders of a project.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import Field, dataclass, fields, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from shlex import quote
from string import ascii_letters
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from workbench import compiled
from workbench.compiled import pd, project_folder
from workbench.datasets.kinds import GENERATOR, TWIN, kind_of, remarks_on, unwrapped
from workbench.figures import plots
from workbench.figures.plots import Panel
from workbench.mechanisms import options
from workbench.trials import Sweep, Trial, claims, run
from workbench.trials.claims import Check, Claim, Verdict
from workbench.value import did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


# Project

INDEX = "index"  # the notebook that opens a paper's folder
_PAPER = re.compile(r"[a-z]+\d{4}")
SUPPLEMENT = "_supplement"  # follows the name of such a picture


def paper_of(id: str) -> str:
    """Return the name of the paper to which a figure belongs, which is the first part of the figure's id.
    Return "" if the id does not begin with the name of a paper.

    >>> paper_of("cormode2012_fig3"), paper_of("00_tour")
    ('cormode2012', '')
    """
    paper = id.partition("_")[0]
    return paper if _PAPER.fullmatch(paper) else ""


def results_folder() -> Path:
    """Return the path of the folder for results of figures: `experiments/results` in the project folder."""
    return project_folder() / "experiments" / "results"


def find_notebooks(folder: Path) -> dict[str, Path]:
    """Find the notebooks of figures in a folder. Return a dictionary from the id of each figure to the path
    of its notebook. For example, `fig5.ipynb` in the subfolder `cormode2012` belongs to the figure
    cormode2012_fig5.
    """
    paths = [*sorted(folder.glob("*.ipynb")), *sorted(folder.glob("[!.]*/*.ipynb"))]
    return {figure_id(path, folder): path for path in paths if path.stem != INDEX}


def figure_id(path: Path, folder: Path) -> str:
    """Return the id of the figure to which the file `path` belongs. The file is in `folder`, or in a
    subfolder that is named after a paper.

    >>> figure_id(Path("notebooks/cormode2012/fig5.ipynb"), Path("notebooks"))
    'cormode2012_fig5'
    """
    return "_".join(path.relative_to(folder).with_suffix("").parts)


def find_figure(id: str) -> type[Figure]:
    """Return the class of the figure with the given id.

    Parameters
    ----------
    id : str
        Id of the figure. The id consists of the figure's paper and name, for example cormode2012_fig5. If an
        id begins with a number, for example 00_tour, the function searches for a file without this number.
        The figure may also be in another installed package.

    Raises
    ------
    ValueError
        If there is no figure with this id. The message names the most similar ids.
    """
    folder = project_folder() / "experiments"
    specs = ("[!_.]*.py", "[!_.]*20??/[!_]*.py")
    files = {figure_id(path, folder): path for spec in specs for path in folder.glob(spec)}
    name = re.sub(r"^\d+_", "", id)
    if name not in files:
        other = compiled.find("figures", id)
        if other is not None:
            return other
        known = find_notebooks(project_folder() / "notebooks")
        raise ValueError(f"no figure {id!r}{did_you_mean(id, [x for x in known if x != id])}")
    if str(folder.parent) not in sys.path:
        sys.path.insert(0, str(folder.parent))  # specs import each other
    path = files[name]
    name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
    module = importlib.import_module(name)
    own = [x for x in vars(module).values() if getattr(x, "__module__", "") == name]
    own = [x for x in own if isinstance(x, type) and issubclass(x, Figure)]
    if len(own) != 1:
        raise ValueError(f"{path}: need one Figure, there are {len(own)}")
    return own[0]


# Data

OWN = "it is the paper's own"
_LONGEST_NAME = 40  # characters of a configuration that is shown whole


class DataUse(NamedTuple):
    """Dataset that a figure uses, with its kind, for example "real file". The `remedy` says how the dataset
    relates to the paper's own data, or why no dataset is available.
    """

    figure: str
    dataset: str
    kind: str
    remedy: str


def data_in_use() -> Iterator[DataUse]:
    """Yield, figure by figure, the datasets that the figures of this project use in the profile "paper"."""
    for id in find_notebooks(project_folder() / "notebooks"):
        if not paper_of(id):
            continue
        with suppress(ValueError):  # a notebook without a figure
            figure = find_figure(id)
            if not figure.no_data:
                yield from uses_of(figure())


def uses_of(figure: Figure) -> list[DataUse]:
    """Return the datasets of one figure. If several datasets of the same class relate to the paper's data in
    the same way, only the first is returned.
    """
    paper = figure.id.partition("_")[0]
    try:
        used = figure.datasets_used()
    except (FileNotFoundError, ValueError) as e:
        return [DataUse(figure.id, "none", "nothing at hand", str(e))]
    uses: dict[tuple[Any, ...], DataUse] = {}
    for dataset in used:
        remedy = _remedy(dataset, paper)
        name = type(dataset).__name__
        shown = repr(dataset) if len(repr(dataset)) <= _LONGEST_NAME else f"{name}(…)"
        use = DataUse(figure.id, shown, kind_of(dataset), remedy)
        uses.setdefault((name, remedy), use)
    return [*uses.values()]


@dataclass
class DataUsed:
    """Description of all datasets of a run that have the same class. `configurations` contains the texts of
    these datasets.
    """

    name: str
    kind: str = ""
    words: str = ""
    original: str = ""
    invented: str = ""
    configurations: tuple[str, ...] = ()


def data_used(configurations: Iterable[str], datasets: Iterable[Any]) -> list[DataUsed]:
    """Describe the datasets of a run, one entry per class.

    Parameters
    ----------
    configurations : iterable of str
        Texts (`repr`) of the datasets in the rows of the run.
    datasets : iterable
        Datasets of the figure. If a text belongs to none of these datasets, only the name of its class is
        shown.
    """
    known = {repr(dataset): unwrapped(dataset) for dataset in datasets}
    by_name: dict[tuple[str, str], DataUsed] = {}
    for text in configurations:
        used = _describe(known[text]) if text in known else DataUsed(text.partition("(")[0])
        line = by_name.setdefault((used.name, used.original), used)
        line.configurations += (text,)
    return list(by_name.values())


def _describe(dataset: Any) -> DataUsed:
    doc = (type(dataset).__doc__ or "").strip().partition("\n\n")[0]
    return DataUsed(
        type(dataset).__name__,
        kind_of(dataset),
        " ".join(doc.split()),
        str(getattr(dataset, "original", "")),
        "; ".join(getattr(dataset, "invented", {}).values()),
    )


def other_dataset(name: str) -> Any:
    """Return the dataset with the given name from another package or module. Return None if there is no such
    dataset.

    Raises
    ------
    ValueError
        If the dataset does not state that its true counts are public. A figure shows exact errors of
        releases, which would reveal private counts.
    """
    dataset = compiled.find("datasets", name)
    if isinstance(dataset, type):
        dataset = dataset()
    if dataset is not None and not getattr(dataset, "truth_public", False):
        raise ValueError(
            f"dataset {name!r} does not state that its truth is public (truth_public = True): a figure "
            "shows how far releases are from it"
        )
    return dataset


def _remedy(dataset: Any, paper: str) -> str:
    kind = kind_of(dataset)
    if kind == TWIN:
        return f"it stands in for {dataset.original}"
    if paper in getattr(dataset, "papers", ()):
        return "; ".join([OWN, *remarks_on(dataset)])
    if kind == GENERATOR:
        return "made for the figure"
    return "; ".join(["real data of the kind, beside the paper's", *remarks_on(dataset)])


# Figure

PROFILES = ("quick", "paper")
SETTING = "setting"
EFFORT = "effort"
UNPRINTED = "unprinted"
KINDS = {
    SETTING: "off the paper's value nothing is judged",
    EFFORT: "seeds and queries: less of it can only leave a claim undecided",
    UNPRINTED: "the paper does not print it: any value is on its path",
}
FIRST_LOOK = 5  # seeds; each next look takes twice as many
MAY_FAIL = 0.05  # how often a figure may decide any of its statements wrongly
_LONGEST = 120  # characters of a folder's name


class Figure:
    """Base class for the figures of papers. Each figure is a subclass with the decorator `@value`. The fields
    of the subclass are the parameters of the figure.

    Declare each field by `parameter(…)`, with the paper's value as its default. The kind of a field is one of
    `KINDS`, for example "effort" for the number of seeds. Methods of the class compute everything else from
    the fields, for example theoretical curves and titles. Importing the figure's file computes nothing.

    Attributes
    ----------
    id : str
        Unique name of the figure, for example cormode2012_fig5. The path of the file that contains the class
        determines the id.
    title : str
        Phrase that says what the figure shows.
    headline : str
        Main result of the figure, in the sentence above the picture.
    rests_on : tuple of str
        Ids of the paper's statements from which the headline follows. With the paper's parameters, each of
        these statements holds for our results. An id with "not " in front means that our results contradict
        the statement.
    page : str
        Place of the figure in the paper.
    quick : mapping
        Values of fields for a run that takes minutes, for example fewer repetitions.
    rough : mapping
        Values of fields for the first, rough picture after a user moves a slider.
    claims : tuple of Claim
        Sentences of the paper about the figure, with their statements. The workbench checks the statements
        only with the paper's parameters. So a check may name series (curves) and points that exist only with
        these parameters.
    sized_by : tuple of str
        Names of fields that determine the size of the experiment, for example the number of people. If the
        value of such a field is below the paper's value, the workbench decides no statement.
    series_by : tuple of str
        Names of mechanism parameters that are part of the names of series (curves).
    shown : tuple of str
        Names of parameters whose values the figure already shows, for example on an axis. The names of series
        (curves) do not repeat these values.
    columns : int
        Number of panels next to each other.
    height : float
        Height of a panel, in inches.
    sharey : bool
        Whether panels in the same row share their vertical axis, if they show the same quantity.
    main : int
        Number of panels in the main picture. The other panels are in a second picture, the supplement.
    no_data : bool
        Whether the results come from formulas, without any dataset.
    usual : str
        Words for the default values of all parameters, which headings and explanations use, for example "the
        paper's setting".
    seeds : int, optional
        Number of seeds in the profile "paper". By default, a run uses at most this number. Most figures
        declare `seeds` as a parameter. None if the figure has no seeds.
    """

    id: ClassVar[str] = ""
    title: ClassVar[str] = ""
    headline: ClassVar[str] = ""
    rests_on: ClassVar[tuple[str, ...]] = ()
    page: ClassVar[str] = ""
    quick: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    rough: ClassVar[Mapping[str, Any]] = MappingProxyType({"seeds": 2, "queries": 50})
    claims: ClassVar[tuple[Claim, ...]] = ()
    sized_by: ClassVar[tuple[str, ...]] = ()
    series_by: ClassVar[tuple[str, ...]] = ()
    shown: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[int] = 2
    height: ClassVar[float] = 2.0
    sharey: ClassVar[bool] = False
    main: ClassVar[int] = 6
    no_data: ClassVar[bool] = False
    usual: ClassVar[str] = "the paper's setting"
    seeds: ClassVar[int | None] = None
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "id" not in vars(cls):
            cls.id = cls.__module__.partition(".")[2].replace(".", "_") or cls.__name__
        if "claims" not in vars(cls):
            cls.claims = _claims(cls) or cls.claims

    # ---- what a subclass gives

    def sweeps(self) -> dict[str, Sweep]:
        """Return the experiments of the figure as a dictionary. A key is the name of a panel. Its value is
        the sweep whose results this panel shows. A sweep is a plan of runs of mechanisms on datasets.
        """
        raise NotImplementedError(f"{type(self).__name__} gives neither sweeps nor rows")

    def rows(self, store: str | Path) -> pd.DataFrame:
        """Run the experiments, and return their results as a data frame. A trial is one run of a mechanism on
        a dataset with one seed. If the results of a trial are already in the folder `store`, the method reads
        them instead of running the trial again. The column `panel` names the panel that shows a row.
        """
        frames = [run(s, store).assign(panel=name) for name, s in self.sweeps().items()]
        rows = pd.concat(frames, ignore_index=True)
        return plots.name_series(rows, *self.series_by, shown=self.shown)

    def panels(self, rows: pd.DataFrame) -> Sequence[Panel]:
        """Return a description of each panel of the figure. A panel is one picture with its axes. It shows
        results from `rows`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no panels")

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows (results) that the figure draws."""
        return rows

    def plot(self, rows: pd.DataFrame, panels: str = "") -> Drawing | None:
        """Draw the figure without the sentence above it. `panels` contains the letters of the panels to draw,
        for example "ac". Return None if the figure is a table.
        """
        drawn, every = self._layout(rows)
        return self._grid(drawn, every, self._chosen(every, panels))

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a summary of the figure's results, which you can compare with the paper. The summary is a
        data frame with one row per panel and curve.

        Each point of a curve is a mean over seeds (repetitions). A row contains four of these means: the
        first and the last along the axis, the lowest and the highest.
        """
        drawn, every = self._layout(rows)
        return plots.tabulate_means(drawn, every[: self.main])

    def example_trial(self) -> Trial:
        """Return one of the figure's trials as an example. A trial is one run of a mechanism on a dataset
        with one seed. If you paste its text into Python, you get the same trial.
        """
        sweep = next(iter(self.sweeps().values()))
        return next(sweep.trials())

    @classmethod
    def checks(cls) -> dict[str, Check]:
        """Return the functions that check the paper's statements about the figure. They are in a dictionary
        by the ids of the statements.
        """
        every = (each for claim in cls.claims for each in claim.statements)
        return {each.id: each.check for each in every if each.check}

    # ---- its parameters

    @classmethod
    def parameters(cls) -> dict[str, Field[Any]]:
        """Return the parameters of the figure, as a dictionary from the name of each parameter to its field."""
        return {f.name: f for f in fields(cls)}

    @classmethod
    def refuse_unknown(cls, names: Iterable[str], known: Iterable[str] | None = None) -> None:
        """Raise a ValueError if one of the given names is unknown. `known` lists the known names. By default,
        these are the names of the figure's parameters.
        """
        known = list(known or cls.parameters())
        for name in names:
            if name not in known:
                raise ValueError(
                    f"{cls.id} has no parameter {name!r}{did_you_mean(name, known)}"
                )

    @classmethod
    def at(cls, profile: str = "paper", **given: Any) -> Self:
        """Return the figure with the parameter values of a profile. A profile is a named setting, either
        "paper" or "quick". Values that you pass replace those of the profile.

        Parameters
        ----------
        profile : str
            "quick" for a run that takes minutes, or "paper" for the paper's values.
        **given : any
            Values of parameters by name. A value may also be a text, as on the command line, for example
            `"10,20"` for a list. If you pass None, the parameter has the value of the profile. If a parameter
            allows the value None, pass the text `"none"` to set it.

        Raises
        ------
        ValueError
            If there is no such profile or parameter, or if a value is out of range.
        """
        if profile not in PROFILES:
            raise ValueError(f"profile = {profile!r} is not allowed: need one of {PROFILES}")
        cls.refuse_unknown(given)
        known = cls.parameters()
        values = dict(cls.quick) if profile == "quick" else {}
        try:
            for name, x in given.items():
                if x is None:
                    continue
                parsed = options.parse_parameter(known[name], x)
                if parsed is not None or known[name].default is None:
                    values[name] = parsed
            return cls(**values)
        except ValueError as e:
            message = str(e).removeprefix(f"{cls.__name__}.")
            raise ValueError(f"{cls.id}: {message}") from None

    def off_paper(self) -> dict[str, Any]:
        """Return the values of parameters that differ from the paper's values, as a dictionary by name. The
        method compares only parameters of the kind "setting". The method leaves out all other parameters, for
        example the number of seeds. The workbench checks the paper's statements only if the dictionary is
        empty.
        """
        settings = [f for f in self.parameters().values() if f.metadata["kind"] == SETTING]
        moved = [f for f in settings if getattr(self, f.name) != f.default]
        return {f.name: getattr(self, f.name) for f in moved}

    def differences(self, profile: str) -> dict[str, Any]:
        """Return the values of parameters that differ from those of a profile ("paper" or "quick"), as a
        dictionary by name.
        """
        usual = type(self).at(profile)
        values = {name: getattr(self, name) for name in self.parameters()}
        return {name: x for name, x in values.items() if x != getattr(usual, name)}

    def name(self, profile: str) -> str:
        """Return the name of the folder in which the figure is saved. The name consists of the figure's id
        and of the parameters that differ from the profile.
        """
        parts = [self.id]
        for name, x in self.differences(profile).items():
            parts.append(f"{name}={options.parameter_text(x, '+')}")
        name = re.sub(r"[^\w.=,+~()-]", "_", ",".join(parts))
        if len(name) <= _LONGEST:
            return name
        return f"{name[: _LONGEST - 8]}~{sha256(name.encode()).hexdigest()[:7]}"

    def command(self, profile: str) -> str:
        """Return the shell command that runs the figure with these parameters."""
        words = ["workbench", "reproduce", self.id, "--profile", profile]
        for name, x in self.differences(profile).items():
            words += ["-p", quote(f"{name}={options.parameter_text(x)}")]
        return " ".join(words)

    # ---- what it shows

    def draw(
        self, rows: pd.DataFrame, verdicts: Sequence[Verdict] = (), panels: str = ""
    ) -> Drawing | None:
        """Draw the figure, with a sentence above it.

        Parameters
        ----------
        rows : DataFrame
            Results of the figure, as returned by `rows`.
        verdicts : sequence of Verdict
            Verdicts of this run on the paper's statements. Usually the sentence above the figure is its
            headline (the main result). If a verdict contradicts the headline, the sentence is the title.
        panels : str
            Letters of the panels to draw, for example "ac". By default, the method draws the first `main`
            panels.

        Raises
        ------
        ValueError
            If a letter belongs to no panel.
        """
        if panels and not self._has_panels:
            raise ValueError(f"{self.id} has no panels to choose from")
        drawing = self.plot(rows, panels) if panels else self.plot(rows)
        if drawing is not None:
            plots.entitle(drawing, self.heading(verdicts))
            plots.lay_out(drawing)
        return drawing

    def drawings(self, rows: pd.DataFrame, panels: str = "") -> dict[str, Drawing]:
        """Draw all pictures of the figure, and return them as a dictionary. A key is the suffix of a
        picture's file name.

        By default, there are up to two pictures: the main picture, and the supplement with all other panels.
        If the page is a slide, the method divides the main picture into parts that fit on a slide. To draw
        only some panels, pass their letters as `panels`.
        """
        room = plots.on_a_slide()
        if room is not None and self._has_panels and not panels:
            letters = self._chosen(self._layout(rows)[1], "")
            parts = wrap(letters, min(room, self.columns))
            names = [f"_{part}" for part in parts] if len(parts) > 1 else [""]
            drawn = {n: self.draw(rows, panels=p) for n, p in zip(names, parts, strict=True)}
        else:
            drawn = {"": self.draw(rows, panels=panels)}
            if not (panels or plots.page().narrow):
                drawn[SUPPLEMENT] = self.supplement(rows)
        return {name: drawing for name, drawing in drawn.items() if drawing is not None}

    def supplement(self, rows: pd.DataFrame) -> Drawing | None:
        """Draw the panels that are not in the main picture. Return None if there are no such panels."""
        if not self._has_panels:
            return None
        drawn, every = self._layout(rows)
        letters = ascii_letters[self.main : len(every)]
        if not letters:
            return None
        drawing = self._grid(drawn, every, letters)
        plots.entitle(drawing, f"Supplement: {self.title}")
        plots.lay_out(drawing)
        return drawing

    def heading(self, verdicts: Sequence[Verdict] = ()) -> str:
        """Return the sentence above the picture of a run.

        Usually, this sentence is the headline, which states the main result. In three cases, the sentence is
        the title instead: if parameters differ from those of the paper, if the experiment is smaller than in
        the paper, or if a verdict contradicts the headline.
        """
        changed = describe(self.off_paper())
        if changed:
            return f"{self.title} (not {self.usual}: {changed})"
        outcomes = {verdict.id: verdict.outcome for verdict in verdicts}
        less = any(map(self._is_less, self.sized_by))
        against = less or any(
            outcomes.get(id.removeprefix("not "))
            == (claims.HOLDS if id.startswith("not ") else claims.DIFFERS)
            for id in self.rests_on
        )
        return self.title if against or not self.headline else self.headline

    @property
    def _has_panels(self) -> bool:
        """Whether the picture is a grid of panels, from which panels can be chosen."""
        return type(self).plot is Figure.plot

    def _layout(self, rows: pd.DataFrame) -> tuple[pd.DataFrame, Sequence[Panel]]:
        """Return the rows to draw, and all panels."""
        try:
            drawn = self.to_draw(rows)
            panels = [self._in_full(panel) for panel in self.panels(drawn)]
            for panel in panels:
                drawn[[*panel.where]]
        except (AttributeError, KeyError) as e:  # of a column
            raise ValueError(
                f"{self.id}: the rows lack a column ({e}). If another version made them, run the figure again"
            ) from e
        return drawn, panels

    def _in_full(self, panel: Panel) -> Panel:
        """Add the figure's ε to the title of a panel, unless ε is on the panel's axis or in its title."""
        epsilon = getattr(self, "epsilon", None)
        if epsilon is None or self.no_data or panel.x == "epsilon" or "ε =" in panel.title:
            return panel
        return replace(panel, title=f"{panel.title}, ε = {epsilon:g}".removeprefix(", "))

    def _chosen(self, every: Sequence[Panel], letters: str) -> str:
        """Return the letters of the panels to draw. By default, these are the panels of the main picture."""
        known = ascii_letters[: len(every)]
        if not letters:
            return known[: self.main]
        wanted = "".join(dict.fromkeys(re.sub("[, ]", "", letters)))
        unknown = wanted.strip(known)
        if unknown:
            raise ValueError(
                f"{self.id} has no panel {unknown[0]!r}: its panels are {known[0]} to {known[-1]}"
            )
        room = plots.on_a_slide()
        if room is not None and len(wanted) > room:
            raise ValueError(f"a slide has room for {room} panels, not for {len(wanted)}")
        return wanted

    def rows_shown(self, rows: pd.DataFrame, panels: str) -> pd.DataFrame:
        """Return the rows that the panels with the given letters show."""
        drawn, every = self._layout(rows)
        chosen = [every[ascii_letters.index(x)] for x in self._chosen(every, panels)]
        return pd.concat([plots.panel_rows(drawn, panel) for panel in chosen])

    def _grid(self, drawn: pd.DataFrame, every: Sequence[Panel], letters: str) -> Drawing:
        panels = [every[ascii_letters.index(letter)] for letter in letters]
        columns = self.columns if plots.on_a_slide() is None else len(panels)
        shown = letters if len(every) > 1 else ""
        how: dict[str, Any] = dict(height=self.height, sharey=self.sharey, letters=shown)
        return plots.grid(drawn, panels, columns, **how)

    def compare_with_paper(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table that shows our numbers next to the numbers that the paper prints. If no number can
        be compared, the table explains why.
        """
        off = self.off_paper()
        if off:
            return pd.DataFrame({f"not {self.usual}": off.keys(), "value": off.values()})
        try:
            return self.comparison(rows)
        except claims.MissingPoints as e:
            return pd.DataFrame({"this run has no points for it": [str(e)]})

    # ---- what it decides

    @classmethod
    def looks(cls) -> tuple[int, ...]:
        """Return the numbers of seeds after which a run with the paper's parameters checks the statements of
        the paper. A seed is one repetition of the experiment. The run ends as soon as all statements are
        decided.

        The numbers are 5, 10, 20, 40 and so on, up to the number of seeds in the profile "paper". The result
        also contains the number of seeds in the profile "quick". For a figure without seeds, the result is
        (0,).
        """
        cap = cls.seeds
        if cap is None:
            return (0,)
        doubled = (FIRST_LOOK * 2**i for i in range(cap.bit_length()))
        looks = {cap, cls.quick.get("seeds", cap), *(n for n in doubled if n < cap)}
        return tuple(sorted(looks))

    @classmethod
    def level(cls) -> float:
        """Return the confidence level of each check of a statement. With probability at least 95 %, all
        checks of a run are right. So the level of each check is higher, for example 0.998.
        """
        return 1 - MAY_FAIL / (len(cls.looks()) * max(len(cls.checks()), 1))

    def run(self, store: str | Path) -> tuple[pd.DataFrame, list[Verdict]]:
        """Run the figure. Return two values: its results as a data frame, and a list with a verdict on each
        statement of the paper.

        If all parameters have the paper's values (the profile "paper"), the number of seeds is a limit. The
        method then adds seeds (repetitions) step by step until every statement is decided. If you choose
        another number of seeds, the method runs all these seeds.

        Parameters
        ----------
        store : path
            Folder with the results of finished trials. A trial is a run of one mechanism with one seed. The
            method adds the results of new trials to this folder.
        """
        for figure in self._runs():
            rows = figure.rows(store)
            verdicts = figure.judge(rows)
            if all(verdict.outcome != claims.UNDECIDED for verdict in verdicts):
                break
        return rows, verdicts

    def _runs(self) -> Iterable[Self]:
        """Return one copy of the figure for each look (a check after a certain number of seeds). Return only
        the figure itself if its values or its number of seeds differ from the paper's.
        """
        cap = type(self).seeds
        if cap is None or self.seeds != cap or not self.checks() or self.off_paper():
            return [self]
        least = max(self.quick.get("seeds", cap), min(FIRST_LOOK, cap))
        return [replace(self, seeds=look) for look in self.looks() if look >= least]

    def datasets_run(self) -> list[Any]:
        """Return the datasets on which the figure runs mechanisms, each once."""
        if type(self).sweeps is Figure.sweeps:
            return []
        return list(dict.fromkeys(x for s in self.sweeps().values() for x in s.datasets))

    def datasets_used(self, rows: pd.DataFrame | None = None) -> list[Any]:
        """Return the datasets from which the figure's data come, each once. If you pass `rows`, only datasets
        that occur in these rows are returned. If a dataset sorts or adds up the counts of another dataset,
        the result contains the other dataset.
        """
        run = self.datasets_run()
        if rows is not None and "dataset" in rows:
            shown = {*rows.dataset}
            run = [dataset for dataset in run if repr(dataset) in shown]
        return list(dict.fromkeys(map(unwrapped, run)))

    def has_file(self, name: str, rows: pd.DataFrame) -> bool:
        """Return whether the results in `rows` come from the published file that the dataset class `name`
        reads. The result is also True if a dataset in `rows` is computed from a dataset of this class.
        """
        used = rows.dataset.dropna().unique() if "dataset" in rows else []
        return any(re.search(rf"\b{name}\(", configuration) for configuration in used)

    def judge(self, rows: pd.DataFrame) -> list[Verdict]:
        """Check each statement of the paper on the results of a run, and return the verdicts. If parameters
        differ from those of the paper, the method checks no statement, and every verdict is "not judged".

        The method checks each statement several times, each time with more seeds (repetitions). `looks`
        returns these numbers of seeds. The first check that decides the statement gives the verdict.
        """
        off = self.off_paper()
        if off:
            why = f"not {self.usual}: {describe(off)}"
            return [v for claim in self.claims for v in claim.not_judged(why)]
        looks = self._looks_at(rows)
        has_file = partial(self.has_file, rows=rows)
        verdicts = [v for c in self.claims for v in c.judge(looks, self.level(), has_file)]
        smaller = {name: getattr(self, name) for name in self.sized_by if self._is_less(name)}
        if smaller:
            why = f"{describe(smaller)} is not the paper's size"
            verdicts = [claims.left_open(verdict, why) for verdict in verdicts]
        return self._with_remarks(verdicts, rows)

    def _with_remarks(self, verdicts: list[Verdict], rows: pd.DataFrame) -> list[Verdict]:
        """Add a remark to each verdict if a data file differs from the published facts about this file."""
        try:
            used = self.datasets_used()
        except (FileNotFoundError, ValueError):  # rows of a machine that has the files
            return verdicts
        remarks = []
        for dataset in used:
            if self.has_file(type(dataset).__name__, rows):
                about = ", ".join(remarks_on(dataset))
                remarks += [f"{dataset!r} has {about}"] if about else []
        return [replace(v, why="; ".join(filter(None, [v.why, *remarks]))) for v in verdicts]

    def _looks_at(self, rows: pd.DataFrame) -> list[pd.DataFrame]:
        """Return the rows for each look (a check after a certain number of seeds) that this run has reached.
        Rows without a seed are always included.
        """
        if self.seeds is None:
            return [rows]
        if "seed" not in rows:
            return [rows for look in self.looks() if look <= self.seeds]
        return [rows[~(rows.seed >= n)] for n in self.looks() if n <= int(rows.seed.max()) + 1]

    def _is_less(self, name: str) -> bool:
        """Return whether a parameter of effort is smaller than in the paper profile."""
        return not _at_least(getattr(self, name), self.parameters()[name].default)


def _claims(figure: type[Figure]) -> tuple[Claim, ...]:
    """Return the claims in `statements.toml` next to the figure's file, if there is one."""
    module = sys.modules[figure.__module__]
    file = getattr(module, "__file__", None)  # a notebook's cell has none
    statements = Path(file).with_name("statements.toml") if file else None
    if statements is None or not statements.is_file():
        return ()
    return claims.read(statements, figure.id, figure.__module__.rpartition(".")[0])


def describe(values: Mapping[str, Any]) -> str:
    """Return a text that lists the names and values of parameters.

    >>> describe({"epsilon": 0.5, "theta": (10, 20)})
    'epsilon = 0.5, theta = 10, 20'
    """
    return ", ".join(
        f"{name} = {options.parameter_text(x, ', ')}" for name, x in values.items()
    )


def _at_least(x: Any, usual: Any) -> bool:
    """Return whether the value of a parameter is at least the paper's value. A list must contain all values
    of the paper's list.
    """
    if isinstance(usual, tuple):
        return set(x) >= set(usual)
    if isinstance(usual, int | float) and not isinstance(usual, bool):
        return x >= usual
    return x == usual
