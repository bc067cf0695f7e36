"""Executed notebooks, figures and verdicts to one page that can be sent to anyone.

The page reads what notebooks saved and runs nothing. It holds no script and fetches nothing:
math is MathML, pictures are part of it. What a notebook says about its figure (the cells that
begin with its title, *Reading the figure*, *Where we differ*) is taken over in its own words.
"""

from __future__ import annotations

import base64
import html
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import mistune
from jinja2 import Environment, StrictUndefined, Template
from latex2mathml.converter import convert

from workbench import claims, figures, reproduction

_LARGEST_SVG = 600_000  # bytes; a larger drawing is shown as PNG
_ROOM = 10_000_000  # bytes of pictures; what does not fit is linked
_ROWS = 40  # a longer table is linked
_KINDS = dict(
    zip(claims.OUTCOMES, ("holds", "differs", "undecided", "untestable"), strict=True)
)
_PASSAGES = {"reading": "reading the figure", "differ": "where we differ"}


@dataclass
class Entry:
    """One notebook on the page: its figure, if it saved one, its words, how its run ended."""

    stem: str
    figure: figures.Figure | None = None
    title: str = ""
    words: dict[str, str] = field(default_factory=dict)
    seconds: float | None = None
    failed: str = ""
    notebook: str | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many claims ended how, in the order of `claims.OUTCOMES`."""
        judged = self.figure.verdicts.outcome.tolist() if self.figure else []
        return {outcome: judged.count(outcome) for outcome in claims.OUTCOMES}

    @property
    def datasets(self) -> list[str]:
        """What the data is called, without its parameters."""
        told = self.figure.manifest["datasets"] if self.figure else []
        return list(dict.fromkeys(name.partition("(")[0] for name in told))

    @property
    def links(self) -> list[tuple[str, str]]:
        """What lies beside the page, as (name, relative address)."""
        found = []
        if self.figure:
            found += [(kind.upper(), path) for kind, path in self.figure.images.items()]
            found += [
                (f"{n} (CSV)", self.figure.folder / f"{n}.csv") for n in ("rows", "verdicts")
            ]
            found += [("manifest", self.figure.folder / "manifest.json")]
            pages = sorted(self.figure.folder.glob("*.html"))
            found += [(f"{page.stem} that moves (HTML)", page) for page in pages]
        links = [(name, f"{self.stem}/{path.name}") for name, path in found]
        return links + [("notebook", self.notebook)] * bool(self.notebook)


def write(results: str | Path, profile: str) -> Path:
    """Write `<results>/<profile>/report.html` from what lies there; returns its path."""
    top = figures.figure_folder(results, profile, "report").parent
    entries = collect(top)
    page = render(entries, profile)
    figures.write_atomically(
        top / "report.html", lambda path: path.write_text(page, encoding="utf-8")
    )
    return top / "report.html"


def collect(top: Path) -> list[Entry]:
    """Every notebook that has run or saved a figure under `top`, in natural order."""
    found = {
        path.parent
        for name in ("manifest.json", "status.json")
        for path in top.glob(f"*/{name}")
    }
    return [_entry(folder) for folder in sorted(found, key=_natural)]


def render(entries: list[Entry], profile: str) -> str:
    """The page."""
    totals = {o: sum(entry.counts[o] for entry in entries) for o in claims.OUTCOMES}
    manifests = [entry.figure.manifest for entry in entries if entry.figure]
    return _template().render(
        entries=entries,
        profile=profile,
        totals=totals,
        pictures=_pictures(entries),
        failed=[entry for entry in entries if entry.failed],
        versions=manifests[-1]["versions"] if manifests else {},
        commits=sorted({m["commit"] for m in manifests if m["commit"]}),
        theorems=sorted({t for m in manifests for t in m["by_theorem"]}),
        now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        rows_shown=_ROWS,
    )


def _entry(folder: Path) -> Entry:
    entry, status = Entry(folder.name), reproduction.read_status(folder)
    entry.seconds = status.get("seconds")
    if status.get("state") == "failed":
        entry.failed = " — ".join(filter(None, (status["cell"], status["error"])))
    try:
        entry.figure = figures.load(folder)
        entry.title = entry.figure.manifest["title"]
    except FileNotFoundError:
        pass  # a tour saves no figure
    except (ValueError, KeyError) as e:
        entry.failed = entry.failed or str(e)
    names = [f"{folder.name}.ipynb", f"{folder.name}.partial.ipynb"]
    for name in reversed(names) if entry.failed else names:
        if (folder / name).exists():
            entry.notebook = f"{folder.name}/{name}"
            title, entry.words = _words(folder / name)
            entry.title = entry.title or title or folder.name
            break
    entry.title = entry.title or folder.name
    return entry


def _words(notebook: Path) -> tuple[str, dict[str, str]]:
    """The notebook's title, and its passages as HTML."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError):
        return "", {}
    texts = ["".join(c["source"]).strip() for c in cells if c["cell_type"] == "markdown"]
    title, passages = "", {}
    for text in texts:
        first, _, rest = text.partition("\n")
        plain = first.strip("#* _").lower()
        if first.startswith("# ") and not title:
            title, passages["about"] = first[2:].strip(), rest
        for name, opening in _PASSAGES.items():
            if plain.startswith(opening):
                passages[name] = text
    return title, {name: markdown(text) for name, text in passages.items() if text.strip()}


class _Page(mistune.HTMLRenderer):
    """Markdown as this page takes it: headings below its own, MathML, no pictures from afar."""

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """Any heading of a notebook."""
        return f"<h3>{text}</h3>\n"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """What the picture is called."""
        return f"[{text}]"

    def inline_math(self, text: str) -> str:
        """Math within a sentence."""
        return _math(text, "inline")

    def block_math(self, text: str) -> str:
        """Math on a line of its own."""
        return f"<p>{_math(text, 'block')}</p>\n"


_MARKDOWN = mistune.create_markdown(
    renderer=_Page(escape=True), plugins=["math", "table", "strikethrough"]
)


def markdown(text: str) -> str:
    r"""Markdown with math to HTML that needs nothing from elsewhere; HTML in it becomes text.

    >>> markdown(r"at $\theta$")[:12]
    '<p>at <math '
    """
    return _MARKDOWN(text)


def _math(latex: str, display: str) -> str:
    try:
        return convert(latex.strip(), display=display)
    except Exception:  # it raises what it likes; the source says the same in other words
        return f"<code>{html.escape(latex.strip())}</code>"


def _pictures(entries: list[Entry]) -> dict[str, str]:
    """The figures as data, by stem: SVG where it is small, else PNG, while there is room."""
    shown, left = {}, _ROOM
    for entry in entries:
        images = entry.figure.images if entry.figure else {}
        for kind, mime in (("svg", "svg+xml"), ("png", "png")):
            if kind not in images:
                continue
            size = images[kind].stat().st_size
            if size <= min(left, _LARGEST_SVG if kind == "svg" else left):
                data = base64.b64encode(images[kind].read_bytes()).decode()
                shown[entry.stem] = f"data:image/{mime};base64,{data}"
                left -= size
                break
    return shown


def _natural(folder: Path) -> list:
    """fig10 after fig9."""
    parts = re.split(r"(\d+)", folder.name)
    return [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in parts]


def _number(x: Any) -> str:
    return f"{x:.4g}" if isinstance(x, float) else str(x)


def _duration(seconds: float | None) -> str:
    """Seconds in words that fit a table.

    >>> _duration(3.21), _duration(75), _duration(None)
    ('3.2 s', '1 min 15 s', '')
    """
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


@cache
def _template() -> Template:
    page = Path(__file__).with_name("report.html").read_text(encoding="utf-8")
    env = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    env.filters |= {"number": _number, "duration": _duration, "kind": _KINDS.get}
    return env.from_string(page)
