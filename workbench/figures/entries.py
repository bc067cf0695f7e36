"""Entries of the report on all figures, one per notebook. An entry is made from the files that its notebook
has written, and from the passages of the notebook, as HTML.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any

import mistune
from latex2mathml.converter import convert
from rich.filesize import decimal

from workbench import figures
from workbench.compiled import pd
from workbench.figures.figure import DataUsed, paper_of
from workbench.figures.status import LOG, read_status
from workbench.mechanisms.options import parameter_help, parameter_text
from workbench.trials import claims
from workbench.trials.claims.declared import texts
from workbench.value import counted

# Markup


class _Renderer(mistune.HTMLRenderer):
    """Renderer of Markdown for pages. Headings are below those of the page, mathematics is MathML, and
    there are no external pictures.
    """

    first_heading = 3

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """Return a heading at a level below those of the page."""
        level = max(level, self.first_heading)
        return f"<h{level}>{text}</h{level}>\n"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """Return the alternative text of a picture, in place of the picture."""
        return f"[{text}]"

    def inline_math(self, text: str) -> str:
        """Return mathematics within a sentence."""
        return _math(text, "inline")

    def block_math(self, text: str) -> str:
        """Return mathematics on a separate line."""
        return f"<p>{_math(text, 'block')}</p>\n"


_RENDERER = _Renderer(escape=True)
_MARKDOWN = mistune.create_markdown(
    renderer=_RENDERER, plugins=["math", "table", "strikethrough"]
)


def markdown(text: str, first_heading: int = 3) -> str:
    r"""Convert Markdown with mathematics to HTML without external content. HTML in the Markdown becomes
    text.

    >>> markdown(r"at $\theta$")[:12]
    '<p>at <math '
    """
    _RENDERER.first_heading = first_heading
    return str(_MARKDOWN(text))


def _math(latex: str, display: str) -> str:
    try:
        return convert(latex.strip(), display=display)
    except Exception:  # it raises what it likes; the source says the same in other words
        return f"<code>{html.escape(latex.strip())}</code>"


# Passages

_PASSAGES = {"reading": "reading the figure", "differ": "where we differ"}
_COMPARISON = ".compare_with_paper("  # in the cell whose table is shown
_ANNOUNCED = re.compile(r"\n\n[^\n]*:$")  # what the next cell shows
_STYLE = re.compile(r"<(style|script)\b.*?</\1>", re.S)


def read_passages(notebook: Path) -> tuple[str, dict[str, str]]:
    """Return the title of a notebook, and its passages as HTML. If the file is not a notebook, both are
    empty.

    The passages are `about`, `reading`, `differ` and `comparison`, if the notebook has them.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return "", {}
    texts = ["".join(c["source"]).strip() for c in cells if c["cell_type"] == "markdown"]
    title = ""
    passages = {}
    for text in texts:
        first, _, rest = text.partition("\n")
        plain = first.strip("#* _").lower()
        if first.startswith("# ") and not title:
            title = first[2:].strip()
            passages["about"] = rest
        for name, opening in _PASSAGES.items():
            if plain.startswith(opening):
                passages[name] = _ANNOUNCED.sub("", text)
    found = {name: markdown(text) for name, text in passages.items() if text.strip()}
    tables = [_table(c) for c in cells if _COMPARISON in "".join(c["source"])]
    if any(tables):
        found["comparison"] = "".join(tables)
    return title, found


def _table(cell: dict[str, Any]) -> str:
    """Return the table that a cell has displayed, without its style."""
    shown = [o["data"] for o in cell.get("outputs", ()) if "text/html" in o.get("data", {})]
    return "".join(
        _STYLE.sub("", "".join(data["text/html"])).replace(' border="1"', "") for data in shown
    )


# Statements

_NUMBER = 54  # characters of a number with its interval
_REASON = 8  # words
_OTHER_KEYS = {"kind", "function", "share", "by", "rows", "over", "prepare"}  # of a check
_MARKS = {"✓": "holds", "✗": "differs", "?": "undecided"}


@dataclass(frozen=True)
class Line:
    """Statement of a paper, with its outcome (whether it holds). If the repository contains the outcome of a
    full run, this outcome is shown. Otherwise, the outcome of this run is shown.

    Parameters
    ----------
    id, says : str
        Id and words of the statement.
    page, sentence, reading : str
        Page of the paper, the sentence on this page, and our interpretation of the sentence.
    needs : tuple of str
        Names of the datasets whose real files are needed to decide the statement.
    here : row of verdicts, optional
        Verdict of this run.
    committed : row of verdicts, optional
        Verdict of a full run, from the repository.
    points_at : mapping
        Declaration of the check, with the names of the series (curves) and the rows that the check compares.
    """

    id: str
    says: str
    page: str = ""
    sentence: str = ""
    reading: str = ""
    needs: tuple[str, ...] = ()
    here: Any = None
    committed: Any = None
    points_at: Mapping[str, Any] | None = None

    @property
    def verdict(self) -> Any:
        """Verdict that the report shows: that of a full run, if the repository contains it, and otherwise
        that of this run.
        """
        return self.committed or self.here

    @property
    def counted_as(self) -> str:
        """Words under which the statement is counted, for example "contradicted"."""
        return claims.COLUMNS.get(self.outcome, self.outcome)

    @property
    def outcome(self) -> str:
        """Outcome that the report shows, or the mark that replaces the outcome if the statement follows from
        definitions.
        """
        return self.verdict.mark or self.verdict.outcome

    @property
    def agreement(self) -> str:
        """Text that compares this run with the outcome of a full run in the repository. The text is empty if
        one of the two is missing.
        """
        if not (self.committed and self.here) or self.committed.mark:
            return ""
        return claims.agreement(self.committed.outcome, self.here.outcome)

    @property
    def printed(self) -> str:
        """Number that the paper prints."""
        return self.verdict.printed or (self.here.printed if self.here else "")

    @property
    def values(self) -> list[tuple[str, str]]:
        """Tested values of a parameter that the paper does not print, each with the statement's outcome at
        this value.
        """
        _, _, values = self.verdict.by_value.partition(": ")
        each = re.findall(r"(.+?) ([✓✗?])(?:, |$)", values)
        return [(value, _MARKS[mark]) for value, mark in each]

    @property
    def swept(self) -> str:
        """Names of the parameters that the paper does not print."""
        return self.verdict.by_value.partition(": ")[0]

    @property
    def number(self) -> str:
        """Measured number with its interval, as text. If the statement depends on a parameter that the paper
        does not print, the text says at how many tested values the statement holds.
        """
        if self.values:
            good = sum(kind == "holds" for _, kind in self.values)
            return f"{good} of {len(self.values)} values"
        first = self.verdict.measured.split("; ")[0]
        part = re.match(r"(.*): (?:yes|no|undecided) \((.*)", first)
        if part:  # of several parts, the first
            first = part[2]
            if first.count("(") < first.count(")"):
                first = first.removesuffix(")")
        return first if len(first) <= _NUMBER else ""

    @property
    def reason(self) -> str:
        """Reason why the statement does not simply hold, in at most eight words."""
        verdict = self.verdict
        if verdict.mark:
            return verdict.mark
        if self.needs and verdict.outcome == claims.UNTESTABLE:
            return f"needs the file of {self.needs[0]}"
        reasons = {
            claims.DEPENDS: (f"depends on {self.swept}", "depends on what is not printed"),
            claims.UNDECIDED: (verdict.why.split("; ")[-1], "more repetitions would decide"),
            claims.UNTESTABLE: (verdict.why, "needs the paper's data"),
            claims.NOT_JUDGED: ("", "not the paper's setting"),
        }
        reason, otherwise = reasons.get(verdict.outcome, ("", ""))
        return reason if 0 < len(reason.split()) <= _REASON else otherwise

    def series(self, names: Collection[str]) -> list[str]:
        """Return those of the given names of series (curves) that the statement is about."""
        about = {key: x for key, x in (self.points_at or {}).items() if key not in _OTHER_KEYS}
        wanted = [_pattern(text) for text in texts(about)]
        return [name for name in names if any(re.fullmatch(p, name) for p in wanted)]

    def is_about(self, where: Mapping[str, str]) -> bool:
        """Return whether the statement is about rows that a panel shows. `where` contains the values of
        columns that select the panel's rows.
        """
        rows = (self.points_at or {}).get("rows", {})
        return all(key not in rows or _holds(x, rows[key]) for key, x in where.items())


def _holds(value: str, wanted: Any) -> bool:
    """Return whether a check selects this value of a column. If the check states a range, or several values
    of a parameter, any value is selected.
    """
    if isinstance(wanted, list):
        return any(_holds(value, each) for each in wanted)
    return isinstance(wanted, Mapping) or "{" in str(wanted) or str(wanted) == value


def _pattern(text: str) -> str:
    """Return a regular expression for the name of a series (curve). Each parameter in braces becomes a
    wildcard.

    >>> bool(re.fullmatch(_pattern("filter, θ = {θ}"), "filter, θ = 40"))
    True
    """
    return ".+".join(map(re.escape, re.split(r"\{[^{}]*\}", text)))


# Entries

_SHORT = 24  # characters of "Figure 6(a)" and its like
LARGEST_SVG = 600_000  # bytes; a larger drawing is shown as PNG
_FILES = {
    "rows.csv": "Rows (CSV)",
    "verdicts.csv": "Verdicts (CSV)",
    "manifest.json": "Manifest",
    "run.log": "Log",
}


@dataclass
class Entry:
    """Entry of the report for one notebook. It contains the texts of the notebook, the outcome of its run,
    and the figure, if the notebook saved one.
    """

    folder: Path
    figure: figures.SavedFigure | None = None
    title: str = ""
    short: str = ""
    words: dict[str, str] = field(default_factory=dict)
    seconds: float | None = None
    failed: str = ""
    notebook_file: Path | None = None
    small: tuple[str, str] | None = None  # address and profile of the committed picture

    @property
    def heading(self) -> str:
        """Heading, which consists of a short name and the title. The short name is left out if it repeats
        the title.
        """
        alone = self.short in (self.id, self.title)
        return self.title if alone else f"{self.short}: {self.title}"

    @property
    def stem(self) -> str:
        """Name of the folder in which the notebook's results are saved."""
        return self.folder.name

    @property
    def id(self) -> str:
        """Id of the figure, without the changed parameters that the name of the folder may also contain."""
        return self.figure.manifest["id"] if self.figure else self.stem.partition(",")[0]

    @property
    def paper(self) -> str:
        """Name of the paper's folder, for example "cormode2012", or "" for a figure without a paper."""
        return paper_of(self.id)

    @property
    def manifest(self) -> dict[str, Any]:
        """Manifest of the figure (a record of how its files were made), or an empty dictionary if no figure
        was saved.
        """
        return self.figure.manifest if self.figure else {}

    @cached_property
    def statements(self) -> list[Line]:
        """Statements of the figure, one line each, with the outcomes of this run and of the paper
        profile. The paper profile decides nothing about a run with other settings than the paper's.
        """
        here = [*self.figure.verdicts.itertuples()] if self.figure else []
        committed = []
        if self.paper and self.manifest.get("profile") != "paper":
            frame = figures.committed_verdicts(self.paper)
            committed = [*frame[frame.figure == self.id].itertuples()]
        is_failed_variant = self.figure is None and self.stem != self.id
        if is_failed_variant or any(v.outcome == claims.NOT_JUDGED for v in here):
            committed = []
        ran, before = ({v.id: v for v in found} for found in (here, committed))
        every = self._class.claims if self._class else ()
        parts = {part.id: (claim, part) for claim in every for part in claim.statements}
        lines = []
        for v in here if self.figure else committed:
            line = Line(v.id, v.says, v.page, here=ran.get(v.id), committed=before.get(v.id))
            if v.id in parts:
                claim, part = parts[v.id]
                line = replace(line, page=part.page or claim.page, sentence=claim.sentence)
                line = replace(
                    line, reading=part.reading, needs=part.needs, points_at=part.table
                )
            lines.append(line)
        return lines

    @cached_property
    def drawing(self) -> str:
        """SVG text of the picture, for use within a page. The text is empty if the picture is large, or if
        the plotted numbers were not saved.
        """
        svg = self.figure.images.get("svg") if self.figure else None
        if svg is None or not self.aggregates or svg.stat().st_size > LARGEST_SVG:
            return ""
        text = svg.read_text(encoding="utf-8")
        return re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)

    @property
    def aggregates(self) -> list[dict[str, Any]]:
        """Plotted numbers of each panel, in the form that `plots.aggregates` returns."""
        return self.figure.aggregates if self.figure else []

    def marks_of(self, line: Line) -> str:
        """Return the ids of elements in the SVG picture, separated by spaces. The elements show the series
        (curves) that a statement is about, and the paper's numbers.
        """
        ids = []
        for panel in self.aggregates:
            by_name = {series["name"]: series["ids"] for series in panel["series"]}
            named = line.series(by_name) if line.is_about(panel["where"]) else []
            for name in [*named, "paper"] if named else []:
                ids += by_name.get(name, [])
        return " ".join(ids)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of statements by outcome."""
        return count([self])

    @cached_property
    def datasets(self) -> list[DataUsed]:
        """Descriptions of the datasets that the figure uses."""
        return [DataUsed(**used) for used in self.manifest.get("data", ())]

    @property
    def parameters(self) -> list[dict[str, str]]:
        """Parameters of the figure: name, value in this run, value in the paper, and meaning. Values are as you
        type them on the command line.
        """
        here = self.manifest.get("parameters", {})
        fields = self._class.parameters() if self._class else {}
        return [
            {
                "name": name,
                "here": parameter_text(here[name], ", "),
                "usual": parameter_text(field.default, ", "),
                "words": parameter_help(field),
            }
            for name, field in fields.items()
            if name in here
        ]

    @property
    def example(self) -> str:
        """Example of a command that sets a parameter of the figure."""
        numbers = [p for p in self.parameters if p["here"].replace(".", "").isdigit()]
        first = (numbers or self.parameters)[0]
        setting = f"{first['name']}={first['here'].partition(', ')[0]}"
        return f"workbench reproduce {self.id} -p {quote(setting)}"

    @property
    def rows(self) -> pd.DataFrame:
        """Rows of the figure without technical columns."""
        assert self.figure is not None  # its page alone shows rows
        return self.figure.rows.drop(columns=["truth_public", "trial"], errors="ignore")

    @property
    def pictures(self) -> list[str]:
        """Addresses of the picture and of its supplement. They are SVG files or, if those are large, PNG
        files. Without a run, the only picture is the small one that is committed.
        """
        found = [self.small[0]] if self.small else []
        for images in (self.figure.images, self.figure.supplement) if self.figure else ():
            if "svg" in images and images["svg"].stat().st_size <= LARGEST_SVG:
                found.append(self._address(images["svg"]))
            elif "png" in images:
                found.append(self._address(images["png"]))
        return found

    @property
    def files(self) -> list[tuple[str, str, str]]:
        """Files of the folder: name, address and size."""
        images = self.figure.images if self.figure else {}
        named = {kind.upper(): path for kind, path in images.items()}
        named |= {name: self.folder / file for file, name in _FILES.items()}
        size = {name: path.stat().st_size for name, path in named.items() if path.exists()}
        return [(name, self._address(named[name]), decimal(size[name])) for name in size]

    @property
    def run(self) -> str:
        """Sentence that states how many trials and seeds the run had, and how long it took."""
        parts = []
        if self.figure:
            parts += [counted(self.manifest[f"{noun}s"], noun) for noun in ("trial", "seed")]
            if self.manifest["seconds"] is not None:
                parts.append(f"{duration(self.manifest['seconds'])} of computing")
        if self.seconds is not None:
            parts.append(f"{duration(self.seconds)} in all")
        written = self.manifest.get("written", "")
        parts = [part for part in parts if not part.startswith("0 ")]
        when = f" Written {written[:16].replace('T', ' ')}." if written else ""
        return f"{', '.join(parts)}.{when}"

    def _address(self, file: Path) -> str:
        """Return the address of a file in the folder, as seen from the entry's page."""
        return f"../{self.stem}/{file.name}"

    @cached_property
    def _class(self) -> type[figures.Figure] | None:
        # a notebook may have no figure, or one that is no longer in the project
        with suppress(ValueError, ImportError):
            return figures.find_figure(self.id)
        return None


def count(entries: Iterable[Entry]) -> dict[str, int]:
    """Return the number of statements by outcome. A statement that several runs of a figure check is counted
    once.
    """
    outcomes: dict[tuple[str, str], str] = {}
    for entry in entries:
        for line in entry.statements:
            statement = (entry.id, line.id)
            if outcomes.get(statement, claims.NOT_JUDGED) == claims.NOT_JUDGED:
                outcomes[statement] = line.outcome
    return claims.add_up([outcomes.values()])


def collect(top: Path) -> list[Entry]:
    """Return the entries of all notebooks under `top` that started to run or saved a figure. The order is
    natural, so fig10 comes after fig9.
    """
    started = ("manifest.json", "status.json", LOG)
    names = {path.parent.name for name in started for path in top.glob(f"*/{name}")}
    return [_entry(top / name) for name in sorted(names, key=natural_order)]


def published() -> list[Entry]:
    """Return an entry per figure of a paper, in natural order. The entries come from committed files, and
    nothing is run.
    """
    notebooks = figures.find_notebooks(figures.project_folder() / "notebooks")
    ids = [id for id in notebooks if paper_of(id)]
    return [_named(Entry(Path(id))) for id in sorted(ids, key=natural_order)]


def _entry(folder: Path) -> Entry:
    entry = Entry(folder)
    status = read_status(folder)
    entry.seconds = status.get("seconds")
    if status.get("state") == "failed":
        entry.failed = " — ".join(filter(None, (status.get("cell"), status.get("error"))))
    if not status and not (folder / "manifest.json").exists():
        entry.failed = "its run has not ended: it goes on, or was stopped before it had saved"
    try:
        entry.figure = _load(folder)
    except (ValueError, OSError) as e:
        entry.failed = entry.failed or str(e)
    endings = (".partial.ipynb", ".ipynb") if entry.failed else (".ipynb", ".partial.ipynb")
    files = [folder / f"{folder.name}{ending}" for ending in endings]
    entry.notebook_file = next((file for file in files if file.exists()), None)
    return _named(entry)


def _named(entry: Entry) -> Entry:
    """Return the entry with the texts of its notebook."""
    folder = figures.project_folder() / "notebooks"
    notebook = entry.notebook_file or figures.find_notebooks(folder).get(entry.id)
    title, entry.words = read_passages(notebook) if notebook else ("", {})
    short, colon, rest = title.partition(": ")
    if colon and len(short) <= _SHORT:
        entry.short = short
        title = rest[:1].upper() + rest[1:]
    entry.short = entry.short or entry.id
    setting = figures.describe(entry.manifest.get("setting", {}))
    if setting:
        entry.short += f" at {setting}"
    entry.title = entry.manifest.get("title", "") or title or entry.stem
    return entry


def _load(folder: Path) -> figures.SavedFigure | None:
    """Return the figure in a folder, or None for a notebook that saves no figure, for example a tour."""
    if not (folder / "manifest.json").exists():
        if (folder / "rows.csv").exists():
            raise ValueError(f"{folder.name} is half written; run it again with --force")
        return None
    figure = figures.load(folder)
    unknown = sorted(set(figure.verdicts.outcome) - set(claims.OUTCOMES))
    if unknown:
        raise ValueError(
            f"{folder.name} was saved by another version of the workbench "
            f"({', '.join(unknown)}); run it again with --force"
        )
    return figure


def natural_order(name: str) -> list[Any]:
    """Return a key that sorts fig10 after fig9."""
    # every second part is a number, so numbers are compared with numbers
    return [int(x) if x.isdigit() else x for x in re.split(r"([0-9]+)", name)]


def duration(seconds: float) -> str:
    """Return a duration as short text for a table.

    >>> duration(3.21), duration(75), duration(3 * 3600 + 70)
    ('3.2 s', '1 min 15 s', '3 h 1 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
