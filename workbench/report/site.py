"""The pages: what entries hold, put into the templates of `pages/`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from workbench import claims, figures
from workbench.report import sources
from workbench.report.entries import Entry, collect, count, duration
from workbench.report.markup import markdown
from workbench.report.notebook import notebook_body
from workbench.report.thumbnails import write_thumbnail
from workbench.wording import cell, counted

PAGES = "report"  # the folder of all pages but the first
_ROWS = 40  # of a table, that a page shows
_LONG = 260  # characters of what was measured, that stand without being opened
_KINDS = dict(
    zip(
        claims.OUTCOMES,
        ("holds", "differs", "depends", "undecided", "untestable", "untestable"),
        strict=True,
    )
)


@dataclass(frozen=True)
class Group(sources.Paper):
    """The entries of one paper, or those of none."""

    entries: list[Entry]
    profile: str

    @property
    def page(self) -> str:
        """Its page."""
        return f"{self.name}.html"

    @property
    def counts(self) -> dict[str, int]:
        """How many statements of all its entries ended how."""
        return _added(entry.counts for entry in self.entries)

    @property
    def hollow(self) -> int:
        """How many of its statements follow from the definition."""
        return sum(entry.hollow for entry in self.entries)

    @property
    def kinds(self) -> list[str]:
        """What its datasets are."""
        return list(dict.fromkeys(kind for entry in self.entries for kind in entry.kinds))

    @property
    def seconds(self) -> float:
        """What its runs took."""
        return sum(e.seconds or e.manifest.get("seconds") or 0 for e in self.entries)

    @property
    def committed(self) -> dict[str, int]:
        """How the statements of its committed verdicts ended; nothing beside those of a paper profile."""
        if self.profile == "paper":
            return {}
        verdicts = figures.committed_verdicts(self.name)
        return count(verdicts[verdicts["mark"] == ""].outcome) if len(verdicts) else {}


@dataclass(frozen=True)
class Site:
    """What all pages know of each other."""

    profile: str
    papers: list[Group]
    now: str
    audits: list[Any]
    title: str = "Reproduction report"

    @property
    def entries(self) -> list[Entry]:
        """All entries, paper by paper."""
        return [entry for group in self.papers for entry in group.entries]

    @property
    def failed(self) -> list[Entry]:
        """Those whose notebooks failed."""
        return [entry for entry in self.entries if entry.failed]

    @property
    def of_papers(self) -> list[Group]:
        """The groups of papers, without the tutorials."""
        return [group for group in self.papers if group.name]

    @property
    def judged(self) -> int:
        """Number of figures and tables of papers that have statements."""
        return sum(bool(e.statements) for group in self.of_papers for e in group.entries)

    @property
    def counts(self) -> dict[str, int]:
        """Number of the papers' statements by outcome, without those that follow from the definition."""
        return _added(group.counts for group in self.of_papers)

    @property
    def hollow(self) -> int:
        """Number of the papers' statements that follow from the definition."""
        return sum(group.hollow for group in self.of_papers)

    @property
    def outcomes(self) -> dict[str, int]:
        """Number of all statements by outcome, those of tutorials included."""
        hollow = sum(group.hollow for group in self.papers)
        counts = _added(group.counts for group in self.papers)
        return counts | {claims.BY_DEFINITION: hollow}

    @property
    def theorems(self) -> list[str]:
        """The theorems that price more than one draw."""
        named = (t for entry in self.entries for t in entry.manifest.get("by_theorem", ()))
        return sorted({t for t in named if t})

    @property
    def made(self) -> str:
        """When it was written, with what, from which sources."""
        manifests = [entry.manifest for entry in self.entries if entry.figure]
        versions = manifests[-1]["versions"] if manifests else {}
        parts = [f"Written {self.now}", *(f"{name} {v}" for name, v in versions.items())]
        commits = sorted({m["commit"][:10] for m in manifests if m["commit"]})
        if commits:
            parts.append(
                f"commit {commits[0]}" if len(commits) == 1 else f"{len(commits)} commits"
            )
        return f"{', '.join(parts)}."


def write(results: str | Path, profile: str, audits: Sequence[Any] = ()) -> Path:
    """Write `<results>/<profile>/report.html` and its pages from what lies there.

    Parameters
    ----------
    results : path
        The folder of all results.
    profile : str
        "quick" or "paper".
    audits : sequence of audit.Audit
        Audits to show, in any order.

    Returns
    -------
    Path
        The first page. The others are in a folder `report` beside it; pages of what is there no more go.
    """
    top = figures.figure_folder(results, profile, PAGES).parent
    folder = top / PAGES
    folder.mkdir(parents=True, exist_ok=True)
    entries = collect(top)
    for entry in entries:
        images = entry.figure.images if entry.figure else {}
        if "png" in images:
            entry.thumbnail = write_thumbnail(images["png"], folder / f"{entry.stem}.png")
    audits = sorted(audits, key=lambda a: (a.name, a.pair, a.epsilon))
    site = Site(profile, _groups(entries, profile), _now(), audits)
    written = {
        "style.css": _source("style.css"),
        "script.js": _source("script.js"),
        "statements.html": _render("statements.html", site, title="All statements"),
    }
    if audits:
        written["audit.html"] = _render("audit.html", site, title="Audits")
    for group in site.papers:
        if group.name:
            written[group.page] = _render(
                "paper.html", site, title=group.short, paper=group, open_paper=group.name
            )
    written |= _figure_pages(site) | _notebook_pages(site, folder)
    for name, text in written.items():
        _write(folder / name, text)
    for page in folder.glob("*.html"):
        if page.name not in written:
            page.unlink(missing_ok=True)  # another run may write the pages too
    front = _render(
        "front.html", site, title=site.title, pages=f"{PAGES}/", front="report.html"
    )
    _write(top / "report.html", front)
    return top / "report.html"


def _figure_pages(site: Site) -> dict[str, str]:
    """The pages of all entries by name, each with the one before and the one after."""
    pages = {}
    entries = site.entries
    for group in site.papers:
        for entry in group.entries:
            place = entries.index(entry)
            pages[entry.page] = _render(
                "figure.html",
                site,
                title=f"{entry.short}: {entry.title}",
                entry=entry,
                paper=group,
                open_paper=group.name,
                before=entries[place - 1] if place else None,
                after=entries[place + 1] if place + 1 < len(entries) else None,
                rows_shown=_ROWS,
            )
    return pages


def _notebook_pages(site: Site, folder: Path) -> dict[str, str]:
    """The executed notebooks as pages by name."""
    pages = {}
    for entry in site.entries:
        if entry.notebook_file is not None:
            body = _notebook_body(entry.notebook_file, folder / f".{entry.stem}.cells")
            title = f"{entry.short}, the notebook"
            pages[entry.notebook_page] = _render(
                "notebook.html",
                site,
                title=title,
                entry=entry,
                open_paper=entry.paper,
                body=body,
            )
    return pages


def _notebook_body(notebook: Path, file: Path) -> str:
    """A notebook's cells as HTML, which `file` holds while they are the same."""
    if file.exists() and file.stat().st_mtime >= notebook.stat().st_mtime:
        return file.read_text(encoding="utf-8")
    try:
        body = notebook_body(notebook)
    except (ValueError, AttributeError, KeyError) as e:
        return f"<p>{escape(notebook.name)} cannot be read: {escape(e)}</p>"
    _write(file, body)
    return body


def _render(template: str, site: Site, **given: Any) -> str:
    """A page; those in the folder of pages find the first one above it."""
    usual = dict(
        pages="",
        front="../report.html",
        kind=template.removesuffix(".html"),
        entry=None,
        open_paper=None,
        before=None,
        after=None,
    )
    return _environment().get_template(template).render(usual | given, site=site)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("workbench.report", "pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "count": _count,
        "duration": duration,
        "kind": _kind,
        "long": _shortened,
        "markdown": _markdown,
        "number": cell,
        "of_several": _of_several,
    }
    return environment


def _source(name: str) -> str:
    return Path(__file__).with_name("pages").joinpath(name).read_text(encoding="utf-8")


def _write(file: Path, text: str) -> None:
    """Whoever reads meanwhile sees the old page or the new one."""
    figures.write_atomically(file, lambda draft: draft.write_text(text, encoding="utf-8"))


def _groups(entries: list[Entry], profile: str) -> list[Group]:
    """Entries by paper, in the order of their names; those of none come last."""
    names = sorted({entry.paper for entry in entries}, key=lambda name: (not name, name))
    groups = []
    for name in names:
        paper = sources.describe_paper(name)
        own = [entry for entry in entries if entry.paper == name]
        groups.append(Group(**vars(paper), entries=own, profile=profile))
    return groups


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts of outcomes, added up."""
    total = dict.fromkeys(claims.OUTCOMES, 0)
    for each in counts:
        for outcome, n in each.items():
            total[outcome] += n
    return total


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _kind(outcome: str, mark: str = "") -> str:
    """The class of style of an outcome."""
    return "hollow" if mark or outcome == claims.BY_DEFINITION else _KINDS[outcome]


def _count(number: int | Sized, noun: str) -> str:
    return counted(number if isinstance(number, int) else len(number), noun)


def _of_several(outcome: str, n: int) -> str:
    """An outcome as the verb of a number of statements.

    >>> _of_several("holds", 3), _of_several("holds", 1), _of_several("undecided", 3)
    ('hold', 'holds', 'undecided')
    """
    verb, space, rest = outcome.partition(" ")
    return f"{verb.removesuffix('s')}{space}{rest}" if n != 1 else outcome


def _markdown(text: str) -> Markup:
    return Markup(markdown(text))


def _shortened(text: str, length: int = _LONG) -> Markup:
    """A text that opens where it is long."""
    if len(text) <= 1.3 * length:
        return escape(text)
    start = text[:length].rpartition(" ")[0]
    return Markup("<details><summary>{} …</summary>… {}</details>").format(
        start, text[len(start) :]
    )
