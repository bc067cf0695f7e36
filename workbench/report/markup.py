"""Markdown with math to HTML that needs nothing from elsewhere."""

from __future__ import annotations

import html
from typing import Any

import mistune
from latex2mathml.converter import convert


class _Renderer(mistune.HTMLRenderer):
    """Markdown as pages take it: headings below their own, MathML, no pictures from afar."""

    first_heading = 3

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """A heading, at the level that the page has room for."""
        level = max(level, self.first_heading)
        return f"<h{level}>{text}</h{level}>\n"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """What the picture is called."""
        return f"[{text}]"

    def inline_math(self, text: str) -> str:
        """Math within a sentence."""
        return _math(text, "inline")

    def block_math(self, text: str) -> str:
        """Math on a line of its own."""
        return f"<p>{_math(text, 'block')}</p>\n"


_RENDERER = _Renderer(escape=True)
_MARKDOWN = mistune.create_markdown(
    renderer=_RENDERER, plugins=["math", "table", "strikethrough"]
)


def markdown(text: str, first_heading: int = 3) -> str:
    r"""Markdown with math to HTML that needs nothing from elsewhere; HTML in it becomes text.

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
