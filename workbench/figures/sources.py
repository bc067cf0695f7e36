"""Passages of notebooks as HTML, and values of parameters as text."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import mistune
from latex2mathml.converter import convert

from workbench.value import cell

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


def text_of(x: Any) -> str:
    """Return a value as text for a table.

    >>> text_of((1000000, 0.5)), text_of(True)
    ('1,000,000, 0.5', 'yes')
    """
    if isinstance(x, tuple | list):
        return ", ".join(map(text_of, x))
    if isinstance(x, bool):
        return "yes" if x else "no"
    return cell(x)
