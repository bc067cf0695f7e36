"""A figure of many panels, each from its own rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.claims import Printed
from workbench.libraries import pd
from workbench.plots.areas import cells, color_limits
from workbench.plots.axes import is_crowded, is_high, legend, panels, show_zero
from workbench.plots.lines import curves, grouped_bars, printed, theory
from workbench.plots.style import LOW, THEORY_DASHES, page, with_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Panel:
    """One panel of a figure: which rows it shows, and how they are drawn.

    Parameters
    ----------
    title : str
        Stands over the panel.
    where : mapping
        The rows are those whose columns have these values.
    x : str
        The column on the horizontal axis.
    series : str
        The column that tells lines, or bars, apart.
    at : str, optional
        Seeds are averaged at each value of this column, where x itself varies with the seed.
    log : str
        The logarithmic axes: "", "x", "y" or "xy".
    printed : Printed or several
        What the paper prints.
    theory : (str, callable) or several
        Labels, and functions of x, drawn dashed.
    bars : bool
        Bars in groups, not lines.
    mark_every : int
        Only one in so many points of a line has a mark.
    mark : float, optional
        A place on x that is pointed out.
    cells : bool
        Rows are boxes with a value each.
    outlines : bool
        Of boxes.
    equal : bool
        Boxes whose axes have one unit: a map.
    fit_theory : bool
        The view holds the theory too.
    linear_below : float
        The vertical axis is logarithmic down to here and linear below, so that 0 has a place on it.
    """

    title: str
    where: Mapping[str, Any]
    x: str
    series: str = "series"
    at: str | None = None
    log: str = "xy"
    printed: Printed | Iterable[Printed] = ()
    theory: tuple[str, Callable[..., Any]] | Sequence[tuple[str, Callable[..., Any]]] = ()
    bars: bool = False
    mark_every: int = 1
    mark: float | None = None
    cells: bool = False
    outlines: bool = False
    equal: bool = False
    fit_theory: bool = False
    linear_below: float = 0.0


def panel_rows(rows: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """The rows of one panel."""
    return rows[np.logical_and.reduce([rows[c] == x for c, x in panel.where.items()])]


def theory_curves(panel: Panel) -> Sequence[tuple[str, Callable[..., Any]]]:
    """The theory of a panel: pairs of a label and a function, however many were given."""
    theory: Any = panel.theory
    return [theory] if theory and callable(theory[-1]) else theory


def theory_dashes(panel: Panel, beside: Sequence[Panel] = ()) -> list[tuple[Any, ...]]:
    """The dashes of a panel's theory: a kind for each label of the panels that stand together."""
    labels = [label for label, _ in theory_curves(panel)]
    kinds = list(
        dict.fromkeys(label for p in [*beside, panel] for label, _ in theory_curves(p))
    )
    return [THEORY_DASHES[kinds.index(label) % len(THEORY_DASHES)] for label in labels]


@with_style
def grid(
    rows: pd.DataFrame,
    wanted: Sequence[Panel],
    columns: int,
    *,
    width: float | None = None,
    height: float = 2.0,
) -> Figure:
    """A figure of many panels, with the paper's numbers, theory and one legend.

    Parameters
    ----------
    rows : DataFrame
        All rows; each panel takes its own.
    wanted : sequence of Panel
        Line by line.
    columns : int
        Panels side by side.
    width : float, optional
        Of the figure, in inches.
    height : float
        Of one panel, in inches.

    Returns
    -------
    Figure
    """
    if page().narrow:
        labels = _labels(rows, wanted)
        inches = page().width or 0
        beside = is_high(labels, inches) and not is_crowded(labels, inches, 1)
        if beside and len(wanted) * LOW <= page().height:
            columns = 1
    lines = -(-len(wanted) // columns)
    titles = [panel.title for panel in wanted]
    fig, axes = panels(lines, columns, titles, width=width, height=height)
    first_boxes = next((panel_rows(rows, panel) for panel in wanted if panel.cells), None)
    # All boxes are shaded on the scale of the first, the truth: what stands beside it may move.
    limits = None if first_boxes is None else color_limits(first_boxes)
    for panel, ax in zip(wanted, axes, strict=False):
        dashes = theory_dashes(panel, wanted)
        _draw(panel, panel_rows(rows, panel), ax, limits, dashes)
    for ax in axes[len(wanted) :]:
        ax.remove()
    return legend(fig)


def _labels(rows: pd.DataFrame, wanted: Sequence[Panel]) -> list[str]:
    """What the legend will name."""
    labels: dict[str, None] = {}
    for panel in wanted:
        if not panel.cells:
            labels |= dict.fromkeys(panel_rows(rows, panel)[panel.series].astype(str))
        labels |= dict.fromkeys(label for label, _ in theory_curves(panel))
    return [*labels]


def _draw(
    panel: Panel,
    rows: pd.DataFrame,
    ax: Axes,
    limits: tuple[float, float] | None,
    dashes: Sequence[tuple[Any, ...]],
) -> None:
    if panel.cells:
        cells(rows, ax, limits, outlines=panel.outlines, equal=panel.equal)
        return
    if panel.bars:
        grouped_bars(rows, panel.x, panel.series, ax, log="y" in panel.log)
    else:
        curves(
            rows, panel.x, panel.series, ax,
            at=panel.at, log=panel.log, mark_every=panel.mark_every,
        )  # fmt: skip
    if panel.linear_below:
        show_zero(ax, panel.linear_below)
    printed(panel.printed, ax)
    for (label, law), kind in zip(theory_curves(panel), dashes, strict=True):
        theory(law, ax, label, kind, fit=panel.fit_theory)
    if panel.mark is not None:
        ax.axvline(panel.mark, color="0.4", linewidth=0.7, zorder=0)
