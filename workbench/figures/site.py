"""The report on all figures: pages with figures, verdicts and executed notebooks. You can open the pages from
disk, without a server.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from io import BytesIO
from pathlib import Path
from shutil import copyfile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from workbench import figures
from workbench.compiled import load_nbformat
from workbench.figures import plots, recorded
from workbench.figures.entries import (
    Entry,
    Line,
    collect,
    count,
    markdown,
    published,
    read_passages,
)
from workbench.figures.saved import write_text
from workbench.figures.stories import OF_PAPER, STORIES, thumbnail, write_stories
from workbench.trials import claims
from workbench.value import cell, counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing
    from nbformat import NotebookNode


# Notebook

# What a page without a kernel cannot show, or shows by running what came with the notebook.
_NAMELESS = re.compile(r"<[\w.]+ object at 0x\w+>$")
_BAR = re.compile(r"\d%\|.*\|")
_NO_WORDS = re.compile(r"<img(?![^>]* alt=)")
_PICTURE = (
    "What the cell above draws; its statements and numbers stand on the page of the figure"
)
_DEAD = ("application/vnd.jupyter.widget-view+json", "application/javascript")


def notebook_body(path: Path) -> str:
    """Return the cells and outputs of an executed notebook as HTML. The HTML contains no scripts."""
    notebook = load_nbformat().read(path, as_version=4)
    for part in notebook.cells:
        outputs = part.get("outputs", [])
        outputs[:] = [output for output in outputs if not _is_progress(output)]
        for output in outputs:
            _leave_out_what_moves(output)
    body, _ = _exporter()(notebook)
    return _NO_WORDS.sub(f'<img alt="{_PICTURE}"', body)


def _is_progress(output: NotebookNode) -> bool:
    """Return whether an output is a progress bar."""
    data = output.get("data", {})
    return _DEAD[0] in data and bool(_BAR.search("".join(data.get("text/plain", ""))))


def _leave_out_what_moves(output: NotebookNode) -> None:
    data = output.get("data", {})
    moves = [kind for kind in _DEAD if data.pop(kind, None) is not None]
    if moves or _NAMELESS.match(data.get("text/plain", "")):
        data["text/plain"] = "What stands here moves in Jupyter."


@cache
def _exporter() -> Callable[[NotebookNode], tuple[str, Any]]:
    """Return the function that converts a notebook to HTML."""
    from nbconvert import HTMLExporter
    from nbconvert.exporters import TemplateExporter
    from nbconvert.filters import Highlight2HTML, clean_html

    exporter = HTMLExporter(template_name="basic", default_preprocessors=[])
    highlighted = Highlight2HTML(pygments_lexer="ipython3", parent=exporter)
    exporter.register_filter("markdown2html", partial(markdown, first_heading=1))
    exporter.register_filter("highlight_code", highlighted)
    exporter.register_filter("clean_html", cache(clean_html))  # notebooks have cells in common
    # HTMLExporter's own method would parse the HTML again
    return partial(TemplateExporter.from_notebook_node, exporter)


# Index


@dataclass(frozen=True)
class Index:
    """Overview of the figures of a paper. A notebook shows each figure as a card with a link to its notebook.

    Parameters
    ----------
    paper : str
        Name of the paper's folder, for example "cormode2012".
    """

    paper: str

    def entries(self) -> list[Entry]:
        """Return the figures of the paper, in natural order (fig10 after fig9). Their outcomes come from the
        repository.
        """
        return [entry for entry in published() if entry.paper == self.paper]

    def _repr_html_(self) -> str:
        cards = []
        for entry in self.entries():
            counts = ", ".join(f"{name} {n}" for name, n in entry.counts.items() if n)
            link = f"{entry.id.removeprefix(f'{self.paper}_')}.ipynb"
            picture = thumbnail(entry.id)
            text = base64.b64encode(picture.read_bytes()).decode() if picture else ""
            cards.append((link, entry.heading, counts, text))
        return _environment().get_template("cards.html").render(cards=cards)


# Comparison


def write_comparison(results: str | Path, profile: str, id: str, names: Sequence[str]) -> Path:
    """Write a page that shows several runs of the same figure next to each other, so that you can compare
    them.

    Parameters
    ----------
    results : path
        Folder in which the results of all figures are stored.
    profile : str
        "quick" or "paper".
    id : str
        Id of the figure.
    names : sequence of str
        Names of the folders of the runs, in the order in which they are shown. Runs that did not finish are
        left out.

    Returns
    -------
    Path
        Path of the page, next to the folders.
    """
    folders = [figures.figure_folder(results, profile, name) for name in names]
    saved = [figures.load(f) for f in folders if (f / "manifest.json").exists()]
    cls = figures.find_figure(id)
    drawings = [cls.at("paper", **one.manifest["parameters"]).plot(one.rows) for one in saved]
    drawn = [drawing for drawing in drawings if drawing is not None]
    if len({len(drawing.axes) for drawing in drawn}) == 1:
        for axes in zip(*(drawing.axes for drawing in drawn), strict=True):
            _share_limits(axes)
    runs = [
        (
            figures.describe(one.manifest["setting"]) or cls.usual,
            one.manifest["command"],
            _image(drawing) if drawing is not None else "",
        )
        for one, drawing in zip(saved, drawings, strict=True)
    ]
    template = _environment().get_template("compared.html")
    text = template.render(title=f"{id}: {cls.title}", runs=runs)
    page = figures.figure_folder(results, profile, id).parent / f"{id},compared.html"
    write_text(page, text)
    return page


def _share_limits(axes: Sequence[Axes]) -> None:
    """Give all panels the same limits of their axes, so that every panel shows the whole range."""
    for which in "xy":
        limits = [sorted(getattr(ax, f"get_{which}lim")()) for ax in axes]
        ends = (min(low for low, _ in limits), max(high for _, high in limits))
        for ax in axes:
            turned = getattr(ax, f"{which}axis_inverted")()
            getattr(ax, f"set_{which}lim")(ends[::-1] if turned else ends)


def _image(drawing: Drawing) -> str:
    file = BytesIO()
    plots.lay_out(drawing)
    drawing.savefig(file, format="png", dpi=150)
    plots.close(drawing)
    return base64.b64encode(file.getvalue()).decode()


# Site

PAGES = "report"  # the folder of all pages but the first
_ROWS = 40  # of a table, that a page shows
_CLASSES = ("holds", "depends", "differs", "undecided", "untestable", "hollow")
_KINDS = dict(zip(claims.COLUMNS.values(), _CLASSES, strict=True))  # of columns
_KINDS[claims.NOT_JUDGED] = "untestable"
_OTHERS = "Other notebooks"
_TITLE = re.compile(r"(?:(?P<authors>[^*]*): )?\*(?P<title>.*)\*,? ?(?P<venue>.*)")


@dataclass(frozen=True)
class Paper:
    """Paper in the report, with the entries of its figures, and the description from its index notebook.

    Entries without a paper belong to a paper without a name.
    """

    name: str
    title: str
    authors: str
    short: str
    about: str
    entries: list[Entry]

    @property
    def counts(self) -> dict[str, int]:
        """Number of statements of all entries by outcome."""
        return count(self.entries)

    @cached_property
    def findings(self) -> list[tuple[claims.PaperFinding, str]]:
        """Findings of the paper, each with its outcome from the committed verdicts."""
        file = figures.project_folder() / "experiments" / self.name / "statements.toml"
        if not self.name or not file.exists():
            return []
        verdicts = figures.committed_verdicts(self.name)
        return [(each, each.outcome(verdicts)) for each in claims.read_findings(file)]

    @property
    def kinds(self) -> list[str]:
        """Kinds of the datasets, for example "real file"."""
        return list(dict.fromkeys(use.kind for entry in self.entries for use in entry.datasets))


@dataclass(frozen=True)
class Site:
    """Report on all papers, with the facts that all pages of the report share."""

    profile: str
    papers: list[Paper]
    outcomes: Mapping[str, str] | None  # none without a run
    title: str = "Reproduction report"

    @property
    def entries(self) -> list[Entry]:
        """All entries, paper by paper."""
        return [entry for group in self.papers for entry in group.entries]

    @property
    def of_papers(self) -> list[Paper]:
        """Papers, without the tutorials."""
        return [group for group in self.papers if group.name]

    @property
    def counts(self) -> dict[str, int]:
        """Number of the papers' statements by outcome."""
        return count(entry for group in self.of_papers for entry in group.entries)

    @property
    def agreement(self) -> str:
        """Sentence that says how many figures of a quick run have the recorded numbers."""
        return recorded.sentence(self.outcomes or {}, [entry.stem for entry in self.entries])

    @property
    def made(self) -> str:
        """Sentence with the report's date, package versions and commits."""
        manifests = [entry.manifest for entry in self.entries if entry.figure]
        versions = manifests[-1]["versions"] if manifests else {}
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        parts = [f"Written {now}", *(f"{name} {v}" for name, v in versions.items())]
        commits = sorted({m["commit"][:10] for m in manifests if m["commit"]})
        parts += [f"commit {', '.join(commits)}"] if commits else []
        return f"{', '.join(parts)}."


def write(
    results: str | Path, profile: str, outcomes: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """Write `<results>/<profile>/report.html` and its pages from the results in this folder.

    Parameters
    ----------
    results : path
        Folder in which the results of all figures are stored.
    profile : str
        "quick" or "paper".
    outcomes : mapping, optional
        Result of `recorded.compare` for a quick run. The first page then says how many figures have the
        recorded numbers.

    Returns
    -------
    Path
        Path of the first page. The other pages are in the folder `report` next to it. Outdated pages
        are removed.
    """
    top = figures.figure_folder(results, profile, PAGES).parent
    return _write_pages(Site(profile, _papers(collect(top)), outcomes), top)


def write_published(folder: Path) -> Path:
    """Write the report from files in the repository alone, without a run of a figure. These files are
    verdicts, and small pictures of the profile "paper".

    Parameters
    ----------
    folder : path
        Folder for `report.html` and its pages.

    Returns
    -------
    Path
        Path of the first page.
    """
    from PIL import Image

    entries = published()
    (folder / PAGES).mkdir(parents=True, exist_ok=True)
    for entry in entries:
        picture = thumbnail(entry.id)
        if picture is not None:
            copyfile(picture, folder / PAGES / picture.name)
            with Image.open(picture) as image:
                entry.small = (picture.name, image.info["profile"])
    return _write_pages(Site("paper", _papers(entries), None), folder)


def _write_pages(site: Site, top: Path) -> Path:
    """Write the pages of a site, and remove outdated pages."""
    folder = top / PAGES
    folder.mkdir(parents=True, exist_ok=True)
    written = {"style.css": _source("style.css"), "script.js": _source("script.js")}
    for group in site.of_papers:
        page = _render("paper.html", site, title=group.short, paper=group)
        written[f"{group.name}.html"] = page
    places = [(group, entry) for group in site.papers for entry in group.entries]
    neighbours = [None, *site.entries, None]
    for place, (group, entry) in enumerate(places):
        about: dict[str, Any] = dict(entry=entry, paper=group)
        beside = dict(before=neighbours[place], after=neighbours[place + 2])
        page = _render("figure.html", site, **about, **beside, title=entry.heading)
        written[f"{entry.stem}.html"] = page
        if entry.notebook_file is not None:
            about["body"] = _notebook_body(entry.notebook_file, folder / f".{entry.stem}.cells")
            page = _render("notebook.html", site, **about, title=f"{entry.short}, the notebook")
            written[f"{entry.stem}.notebook.html"] = page
    for name, text in written.items():
        write_text(folder / name, text)
    for file in folder.glob("*.html"):
        if file.name not in written:
            file.unlink(missing_ok=True)  # another run may write the pages too
    write_stories(folder / "stories", "../../report.html")
    first = dict(title=site.title, pages=f"{PAGES}/", front="report.html")
    write_text(top / "report.html", _render("front.html", site, **first))
    return top / "report.html"


def _notebook_body(notebook: Path, file: Path) -> str:
    """Return a notebook's cells as HTML. The HTML is stored in `file` and used again if the cells are
    the same.
    """
    if file.exists() and file.stat().st_mtime >= notebook.stat().st_mtime:
        return file.read_text(encoding="utf-8")
    try:
        body = notebook_body(notebook)
    except (ValueError, AttributeError, KeyError, OSError) as e:
        return f"<p>{escape(notebook.name)} cannot be read: {escape(e)}</p>"
    write_text(file, body)
    return body


def _render(template: str, site: Site, **given: Any) -> str:
    """Return a page from its template. Pages in the subfolder link to the first page in the folder
    above.
    """
    usual = dict.fromkeys(("entry", "paper", "before", "after"))
    usual |= dict(pages="", front="../report.html", kind=template.removesuffix(".html"))
    return _environment().get_template(template).render(usual | given, site=site)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("workbench.figures", "pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.policies["json.dumps_kwargs"] = dict(ensure_ascii=False, separators=(",", ":"))
    environment.globals |= {"rows_shown": _ROWS, "story_of": OF_PAPER, "stories": STORIES}
    environment.filters |= {
        "counted": counted,
        "by_outcome": _by_outcome,
        "by_value": _by_value,
        "kind": _KINDS.__getitem__,
        "markdown": lambda text: Markup(markdown(text)),
        "number": cell,
        "share": claims.share_that_holds,
        "ending": _ending,
    }
    return environment


def _source(name: str) -> str:
    return Path(__file__).with_name("pages").joinpath(name).read_text(encoding="utf-8")


def _papers(entries: list[Entry]) -> list[Paper]:
    """Return the papers in the order of their names. Entries without a paper come last."""
    by_paper: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (not entry.paper, entry.paper)):
        by_paper.setdefault(entry.paper, []).append(entry)
    return [_paper(name, own) for name, own in by_paper.items()]


def _paper(name: str, entries: list[Entry]) -> Paper:
    if not name:
        return Paper(name, _OTHERS, "", _OTHERS, "", entries)
    notebook = figures.project_folder() / "notebooks" / name / "index.ipynb"
    title, words = read_passages(notebook)
    about = words.get("about", "")
    parts = _TITLE.fullmatch(title)
    spaced = f"{name[:-4].capitalize()} {name[-4:]}"
    if parts is None:
        return Paper(name, title or name, "", spaced, about, entries)
    authors = parts["authors"] or ""
    first, _, others = authors.partition(", ")
    short = f"{first}{' et al.' if others else ''} {name[-4:]}" if first else spaced
    source = ", ".join(filter(None, [authors, parts["venue"]]))
    return Paper(name, parts["title"], source, short, about, entries)


def _by_outcome(lines: Iterable[Line]) -> list[Line]:
    """Return statements, sorted by outcome in the order in which outcomes are counted."""
    columns = [*claims.COLUMNS.values(), claims.NOT_JUDGED]
    return sorted(lines, key=lambda line: columns.index(line.counted_as))


def _by_value(line: Line) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the rows of a table that shows a statement's outcome for each tested value of a parameter. For
    two parameters, the table is a matrix. Otherwise, it has one row.
    """
    tuples = line.swept.startswith("(")
    between = ", " if tuples else " "
    values = {value[1:-1] if tuples else value: kind for value, kind in line.values}
    if line.swept.count(", ") == 1:
        for split in (str.split, str.rsplit):
            parts = [split(value, between, 1) for value in values]
            if all(len(part) == 2 for part in parts):
                left, right = (list(dict.fromkeys(side)) for side in zip(*parts, strict=True))
                if len(left) * len(right) == len(values) and 1 < len(right):
                    return [(a, [(b, values[a + between + b]) for b in right]) for a in left]
    return [("", [*values.items()])]


def _ending(outcome: str) -> str:
    """Return the CSS class of the outcome of a finding."""
    kinds = {
        "reproduces for": "depends",
        "reproduces": "holds",
        "does not": "differs",
        "needs data": "untestable",
    }
    return next((kinds[start] for start in kinds if outcome.startswith(start)), "undecided")
