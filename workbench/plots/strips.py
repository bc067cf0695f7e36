"""For which values of what a paper does not print a statement holds: strips under a figure."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import TYPE_CHECKING

from workbench.claims import Strip
from workbench.claims.finding import MARKS
from workbench.libraries import mpl
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
    across = {id: _cells_across(cells, width - 2 * MARGIN) for id, cells in texts.items()}
    heights = {id: _height(cells, across[id]) for id, cells in texts.items()}
    letters = int((width - 2 * MARGIN) / CHARACTER)
    titles = {id: wrap(f"{id}, by {strip.name}", letters) for id, strip in by_statement.items()}
    above = {id: LABEL + LINE * (len(lines) - 1) for id, lines in titles.items()}
    below = sum(above.values()) + sum(heights.values()) + 2 * MARGIN
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
        top -= above[id] + heights[id]
        side = MARGIN / width
        ax = fig.add_axes((side, top / inches, 1 - 2 * side, heights[id] / inches), label=id)
        _draw(ax, strip, texts[id], across[id])
        ax.set_title("\n".join(titles[id]), loc="left", size=7, pad=2)
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


def _cells_across(texts: list[str], inches: float) -> int:
    """How many cells stand side by side: all, or on a narrow page as many as have room.

    >>> _cells_across(["t1\\n50 ✓"] * 18, 6.8), _cells_across(["t1\\n5000 ✓"] * 18, 3.2)
    (18, 6)
    """
    longest = max(len(line) for text in texts for line in text.split("\n"))
    room = max(1, int(inches / (longest * CHARACTER)))
    under = -(-len(texts) // room)
    return -(-len(texts) // under)


def _height(texts: list[str], across: int) -> float:
    one = CELLS + LINE * any("\n" in text for text in texts)
    return one * -(-len(texts) // across)


def _draw(ax: Axes, strip: Strip, texts: list[str], across: int) -> None:
    under = -(-len(texts) // across)
    ax.set(xlim=(0, across), ylim=(under, 0))
    ax.axis("off")
    for place, (_, holds) in enumerate(strip.holds):
        down, right = divmod(place, across)
        box = mpl.patches.Rectangle(
            (right, down), 1, 1, facecolor=TINTS[holds], hatch=HATCHES[holds]
        )
        box.set(edgecolor="0.55", linewidth=0.5)
        ax.add_patch(box)
        text = ax.text(right + 0.5, down + 0.55, texts[place], size=7)
        text.set(ha="center", va="center")
        if holds is None:
            text.set_bbox(dict(facecolor="white", edgecolor="none", pad=1))
