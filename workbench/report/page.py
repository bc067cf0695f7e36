"""The page itself: what entries hold, put into `page.html`."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from workbench import claims, figures
from workbench.report import pictures
from workbench.report.entries import Entry, collect

_ROWS = 40  # a longer table is linked
_KINDS = dict(
    zip(
        claims.OUTCOMES,
        ("holds", "differs", "depends", "undecided", "untestable", "untestable"),
        strict=True,
    )
)


def write(results: str | Path, profile: str) -> Path:
    """Write `<results>/<profile>/report.html` from what lies there; returns its path."""
    top = figures.figure_folder(results, profile, "report").parent
    page = render(collect(top), profile)
    figures.write_atomically(
        top / "report.html", lambda path: path.write_text(page, encoding="utf-8")
    )
    return top / "report.html"


def render(entries: list[Entry], profile: str) -> str:
    """The page."""
    totals = {o: sum(entry.counts[o] for entry in entries) for o in claims.OUTCOMES}
    manifests = [entry.figure.manifest for entry in entries if entry.figure]
    return _template().render(
        entries=entries,
        profile=profile,
        totals=totals,
        ticks=claims.TICKS,
        pictures=pictures.embed(entries),
        failed=[entry for entry in entries if entry.failed],
        versions=manifests[-1]["versions"] if manifests else {},
        commits=sorted({m["commit"] for m in manifests if m["commit"]}),
        theorems=sorted({t for m in manifests for t in m["by_theorem"]}),
        now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        rows_shown=_ROWS,
    )


@cache
def _template() -> Template:
    page = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    env = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    env.filters |= {"number": _number, "duration": _duration, "kind": _KINDS.get}
    return env.from_string(page)


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
