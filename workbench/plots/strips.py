"""For which values of what a paper does not print a statement holds: strips under a figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib.patches import Rectangle

from workbench.claims import Strip
from workbench.claims.claim import MARKS
from workbench.plots.layout import lay_out
from workbench.plots.style import with_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TINTS = {
    True: "#cfe3f3",
    False: "#f9d8b8",
    None: "#ffffff",
}  # of Okabe and Ito's blue and orange
HATCHES = {True: "", False: "", None: "////"}
LABEL = 0.17  # inches of the words over a strip
CELLS = 0.2  # and of the strip, of one line
LINE = 0.12  # of a second line
CHARACTER = 0.06
MARGIN = 0.1


@with_style
def strips(fig: Figure, by_statement: Mapping[str, Strip]) -> Figure:
    """Draw a strip a statement below a figure, which grows by as much.

    Each value has its mark, ✓ ✗ or ?, so that no colour has to be told from another.

    Parameters
    ----------
    fig : Figure
        What `grid` made.
    by_statement : mapping
        Strips by the statement's id.
    """
    lay_out(fig)
    width, height = fig.get_size_inches()
    texts = {id: _texts(strip, width - 2 * MARGIN) for id, strip in by_statement.items()}
    heights = {id: _cells(lines) for id, lines in texts.items()}
    below = len(by_statement) * LABEL + sum(heights.values()) + 2 * MARGIN
    inches = height + below
    share = below / inches
    fig.set_size_inches(width, inches)
    for ax in fig.axes:
        box = ax.get_position(original=True)
        ax.set_position(
            (box.x0, share + box.y0 * (1 - share), box.width, box.height * (1 - share))
        )
    for legend in fig.legends:
        legend.set_bbox_to_anchor((0, share, 1, 1 - share), fig.transFigure)
    top = below - MARGIN
    for id, strip in by_statement.items():
        top -= LABEL + heights[id]
        side = MARGIN / width
        ax = fig.add_axes((side, top / inches, 1 - 2 * side, heights[id] / inches), label=id)
        _draw(ax, strip, texts[id])
        ax.set_title(f"{id}, by {strip.name}", loc="left", size=7, pad=2)
    return fig


def _texts(strip: Strip, inches: float) -> list[str]:
    """What stands in the cells; in two lines where one is too long for them."""
    texts = [f"{value} {MARKS[holds]}" for value, holds in strip.holds]
    if max(map(len, texts)) * CHARACTER <= inches / len(texts):
        return texts
    return [_in_two_lines(text) for text in texts]


def _in_two_lines(text: str) -> str:
    """Parted where the longer line is shortest.

    >>> _in_two_lines("an attribute's 0.1 ✓"), _in_two_lines("t1 50 ?")
    ("an attribute's\\n0.1 ✓", 't1\\n50 ?')
    """
    spaces = [place for place, letter in enumerate(text) if letter == " "]
    at = min(spaces, key=lambda place: max(place, len(text) - place))
    return f"{text[:at]}\n{text[at + 1 :]}"


def _cells(texts: list[str]) -> float:
    return CELLS + LINE * any("\n" in text for text in texts)


def _draw(ax: Axes, strip: Strip, texts: list[str]) -> None:
    count = len(strip.holds)
    ax.set(xlim=(0, count), ylim=(0, 1))
    ax.axis("off")
    for place, (_, holds) in enumerate(strip.holds):
        box = Rectangle((place, 0), 1, 1, facecolor=TINTS[holds], hatch=HATCHES[holds])
        box.set(edgecolor="0.55", linewidth=0.5)
        ax.add_patch(box)
        text = ax.text(place + 0.5, 0.45, texts[place], size=7)
        text.set(ha="center", va="center")
        if holds is None:
            text.set_bbox(dict(facecolor="white", edgecolor="none", pad=1))
