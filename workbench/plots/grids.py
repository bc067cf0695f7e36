"""A figure of many panels, each from its own rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from workbench.claims import Printed
from workbench.plots.areas import cells, color_limits
from workbench.plots.axes import legend, panels
from workbench.plots.lines import curves, grouped_bars, printed, theory
from workbench.plots.style import THEORY_DASHES, with_style


@dataclass(frozen=True)
class Panel:
    """One panel of a grid: the rows `where` columns have these values, and how to draw them."""

    title: str
    where: Mapping[str, Any]
    x: str
    series: str = "series"
    at: str | None = None
    log: str = "xy"
    printed: Printed | Iterable[Printed] = ()
    theory: tuple[str, Callable] | Sequence[tuple[str, Callable]] = ()
    bars: bool = False
    every: int = 1
    mark: float | None = None  # a place on x that is pointed out
    cells: bool = False  # rows are boxes with a value each
    outlines: bool = False  # of cells
    equal: bool = False  # cells whose axes have one unit: a map
    whole: bool = False  # the view holds the theory too


def panel_rows(rows: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """The rows of one panel."""
    return rows[np.logical_and.reduce([rows[c] == v for c, v in panel.where.items()])]


def theory_curves(panel: Panel) -> Sequence[tuple[str, Callable]]:
    """The theory of a panel: pairs of words and a law, however many were given."""
    return [panel.theory] if panel.theory and callable(panel.theory[-1]) else panel.theory


def theory_dashes(panel: Panel) -> list[tuple]:
    """The dashes of a panel's theory: a kind for each of its words."""
    words = list(dict.fromkeys(name for name, _ in theory_curves(panel)))
    return [
        THEORY_DASHES[words.index(name) % len(THEORY_DASHES)]
        for name, _ in theory_curves(panel)
    ]


@with_style
def grid(
    rows: pd.DataFrame,
    wanted: Sequence[Panel],
    columns: int,
    *,
    width: float | None = None,
    height: float = 2.0,
) -> Figure:
    """All panels of a figure, line by line, with the paper's numbers, theory and one legend."""
    lines = -(-len(wanted) // columns)
    titles = [panel.title for panel in wanted]
    fig, axes = panels(lines, columns, titles, width=width, height=height)
    boxed = [panel_rows(rows, panel) for panel in wanted if panel.cells]
    limits = (
        color_limits(boxed[0]) if boxed else None
    )  # the truth's: what stands beside it may move
    for panel, ax in zip(wanted, axes, strict=False):
        some = panel_rows(rows, panel)
        if panel.cells:
            cells(some, ax, limits, outlines=panel.outlines, equal=panel.equal)
            continue
        if panel.bars:
            grouped_bars(some, panel.x, panel.series, ax, log="y" in panel.log)
        else:
            look = dict(at=panel.at, log=panel.log, every=panel.every)
            curves(some, panel.x, panel.series, ax, **look)
        printed(panel.printed, ax)
        for (words, law), dashes in zip(
            theory_curves(panel), theory_dashes(panel), strict=True
        ):
            theory(law, ax, words, dashes, whole=panel.whole)
        if panel.mark is not None:
            ax.axvline(panel.mark, color="0.4", linewidth=0.7, zorder=0)
    for ax in axes[len(wanted) :]:
        ax.remove()
    return legend(fig)
