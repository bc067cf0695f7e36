"""For which values of what a paper does not print a statement holds: strips under a figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib.patches import Rectangle

from workbench.claims import Strip
from workbench.claims.claim import MARKS
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
CELLS = 0.2  # and of the strip
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
    fig.draw_without_rendering()  # lays it out
    fig.set_layout_engine("none")
    width, height = fig.get_size_inches()
    below = len(by_statement) * (LABEL + CELLS) + 2 * MARGIN
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
        top -= LABEL + CELLS
        side = MARGIN / width
        ax = fig.add_axes((side, top / inches, 1 - 2 * side, CELLS / inches), label=id)
        _draw(ax, strip)
        ax.set_title(f"{id}, by {strip.name}", loc="left", size=7, pad=2)
    return fig


def _draw(ax: Axes, strip: Strip) -> None:
    count = len(strip.holds)
    ax.set(xlim=(0, count), ylim=(0, 1))
    ax.axis("off")
    for place, (value, holds) in enumerate(strip.holds):
        box = Rectangle((place, 0), 1, 1, facecolor=TINTS[holds], hatch=HATCHES[holds])
        box.set(edgecolor="0.55", linewidth=0.5)
        ax.add_patch(box)
        text = ax.text(place + 0.5, 0.45, f"{value} {MARKS[holds]}", size=7)
        text.set(ha="center", va="center")
        if holds is None:
            text.set_bbox(dict(facecolor="white", edgecolor="none", pad=1))
