"""Grids of panels, shaded cells, and maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from string import ascii_letters
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.compiled import mpl, pd, plt
from workbench.figures.plots.axes import (
    add_letter,
    format_tick,
    legend,
    panels,
    share_y,
    show_zero,
)
from workbench.figures.plots.lines import curves, grouped_bars, printed, theory
from workbench.figures.plots.style import (
    AXIS_LABELS,
    COLORMAP,
    THEORY_DASHES,
    SeriesStyle,
    in_words,
    metric_name,
    page,
    series_styles,
    with_style,
)
from workbench.trials.claims import Printed
from workbench.value import cell, counted, format_number, number

if TYPE_CHECKING:
    from jaxtyping import Float
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Areas

_OFF_MAP = 0.01  # share of places at each side


@with_style
def cells(
    rows: pd.DataFrame,
    ax: Axes,
    limits: tuple[float, float],
    *,
    outlines: bool = False,
    equal: bool = False,
) -> None:
    """Draw one box per row of the results. The boxes are darker for larger values.

    Parameters
    ----------
    rows : DataFrame
        One row per box, from (`x0`, `y0`) to (`x1`, `y1`), with its `value`. A column `labels` names
        the axes, for example "x|y".
    ax : Axes
        Panel into which the boxes are drawn.
    limits : (float, float)
        Smallest and largest value of the colour scale, for example from `color_limits`.
    outlines : bool
        Whether to outline the boxes.
    equal : bool
        Whether both axes have the same unit, as in a map.
    """
    positions = color_position(rows.value.to_numpy(float), limits)
    x0, y0, x1, y1 = rows[["x0", "y0", "x1", "y1"]].to_numpy(float).T
    boxes = np.stack([x0, y0, x1, y0, x1, y1, x0, y1], axis=1).reshape(-1, 4, 2)
    colors = mpl.colormaps[COLORMAP].with_extremes(bad="white")(positions)
    edges = "#bbbbbb" if outlines else "face"
    look = dict(facecolors=colors, edgecolors=edges, linewidth=0.2, rasterized=True)
    ax.add_collection(mpl.collections.PolyCollection(boxes, **look))
    names = rows.labels.iloc[0].split("|") if "labels" in rows else ("", "")
    ax.set(xlim=(x0.min(), x1.max()), ylim=(y0.min(), y1.max()))
    ax.set(xlabel=names[0], ylabel=names[1], aspect="equal" if equal else "auto")
    ax.grid(False)


def name_shades(
    axes: Sequence[Axes],
    limits: tuple[float, float],
    what: str,
    location: str = "bottom",
    **how: Any,
) -> None:
    """Draw the colour scale of some panels below these panels, or to their right. `what` is the metric that
    names the scale.
    """
    shades = mpl.cm.ScalarMappable(mpl.colors.LogNorm(*limits), COLORMAP)
    bar = axes[0].get_figure().colorbar(shades, ax=axes, location=location, **how)
    bar.set_label(AXIS_LABELS.get(what, what))
    axis = bar.ax.xaxis if location == "bottom" else bar.ax.yaxis
    axis.set_minor_formatter(mpl.ticker.NullFormatter())
    axis.set_major_formatter(format_tick)


def color_limits(rows: pd.DataFrame) -> tuple[float, float]:
    """Return the smallest and the largest value of a logarithmic colour scale for the values in the given
    rows. The scale begins at the smallest positive value, but not below a 10,000th of the largest value.
    """
    positive = rows.value[rows.value > 0].astype(float)
    if positive.empty:
        return (0.1, 1.0)
    high = float(positive.max())
    low = max(float(positive.min()), high / 1e4)
    return (low, high) if low < high else (high / 10, high)


def color_position(
    values: Float[np.ndarray, " n"], limits: tuple[float, float]
) -> Float[np.ndarray, " n"]:
    """Return the position of each value on a logarithmic colour scale, from 0 to 1. `limits` are the smallest
    and the largest value of the scale. The position is NaN for values of 0 or less.
    """
    with np.errstate(all="ignore"):
        position = np.log(values / limits[0]) / np.log(limits[1] / limits[0])
    return np.where(values > 0, np.clip(position, 0, 1), np.nan)


@with_style
def maps(
    rows: pd.DataFrame,
    columns: int,
    *,
    cell: float,
    bar: float,
    label: str,
    land: pd.DataFrame | None = None,
    circle: tuple[float, float, float] | None = None,
) -> Figure:
    """Draw heat maps of places, one map for each value of the column `panel`. All maps have the same colour
    scale and the same scale of distances.

    The maps use the equirectangular projection, with the correct scale at the middle latitude. On each side,
    the map leaves out the outermost 1 % of the places.

    Parameters
    ----------
    rows : DataFrame
        One row per place, with `latitude` and `longitude` in degrees, and its `value`.
    columns : int
        Number of maps in each row.
    cell : float
        Side of the squares of a map, in km. The colour of a square shows the sum of the values of its places.
    bar : float
        Length in km of the bar that shows the scale of distances.
    label : str
        Label of the colour scale.
    land : DataFrame, optional
        Public places, with the columns `latitude` and `longitude`. The function draws these places in pale
        grey. These places also determine the area that the maps show.
    circle : (float, float, float), optional
        Circle to draw: the latitude and longitude of its centre, and its radius in km.

    Returns
    -------
    Figure
    """
    from mpl_toolkits.axes_grid1.anchored_artists import AnchoredSizeBar

    if rows.empty:
        raise ValueError("there are no rows to draw")
    places = (rows if land is None else land)[["latitude", "longitude"]]
    low, high = places.quantile(_OFF_MAP), places.quantile(1 - _OFF_MAP)
    middle = (low + high) / 2
    left, bottom = project(*low, *middle)
    right, top = project(*high, *middle)
    x_edges = np.arange(left - cell, right + 2 * cell, cell)
    y_edges = np.arange(bottom - cell, top + 2 * cell, cell)
    grids = {}
    for name, group in rows.groupby("panel", sort=False):
        x, y = project(group.latitude, group.longitude, *middle)
        grids[name] = np.histogram2d(y, x, [y_edges, x_edges], weights=group.value)[0]
    positive = np.concatenate([grid[grid > 0] for grid in grids.values()])
    limits = (positive.min(), positive.max())
    norm = mpl.colors.LogNorm(*limits)
    columns = min(columns, 2) if page().narrow else columns
    fig, axes = panels(-(-len(grids) // columns), columns, [*grids], height=1.9, keep=True)
    for grid, ax in zip(grids.values(), axes, strict=True):
        if land is not None:
            x, y = project(land.latitude, land.longitude, *middle)
            ax.plot(x, y, ",", color="0.8", rasterized=True, zorder=0)
        ax.pcolormesh(
            x_edges,
            y_edges,
            np.where(grid > 0, grid, np.nan),
            cmap=COLORMAP,
            norm=norm,
            linewidth=0,
            rasterized=True,
        )
        if circle is not None:
            latitude, longitude, radius = circle
            center = project(latitude, longitude, *middle)
            ring = plt.Circle(center, radius, fill=False, color="#D55E00", linewidth=0.8)
            ax.add_patch(ring)
        ax.set(xlim=x_edges[[0, -1]], ylim=y_edges[[0, -1]])
        ax.set(aspect="equal", xticks=[], yticks=[])
        ax.grid(False)
        ax.spines[:].set_visible(False)
    words = dict(frameon=False, sep=2, fontproperties=dict(size=6.5))
    where = (axes[0].transData, bar, f"{number(bar)} km", "lower right")
    axes[0].add_artist(AnchoredSizeBar(*where, size_vertical=cell / 8, label_top=True, **words))
    name_shades(axes, limits, label, shrink=0.5, aspect=40, pad=0.02)
    return fig


def project(
    latitude: Any, longitude: Any, latitude0: float, longitude0: float
) -> tuple[Any, Any]:
    """Convert latitudes and longitudes to distances in km to the east and to the north of the place
    (`latitude0`, `longitude0`). The projection is equirectangular, with the correct scale at the latitude of
    the place.

    >>> [round(float(x)) for x in project(42, -71, 41, -71)]
    [0, 111]
    >>> [round(float(x)) for x in project(60, 11, 60, 10)]
    [56, 0]
    """
    degree = 111.195  # km
    east = (longitude - longitude0) * np.cos(np.radians(latitude0))
    return east * degree, (latitude - latitude0) * degree


# Grids


@dataclass(frozen=True)
class Panel:
    """Description of a panel (one picture with its axes) of a figure. The description says which rows of the
    results the panel shows, and how the panel draws these rows.

    Parameters
    ----------
    title : str
        Title of the panel.
    where : mapping
        Names of columns, each with a value. The panel shows the rows that have these values in these columns.
    x : str
        Name of the column that is on the horizontal axis.
    series : str
        Name of the column that says to which curve or bar a row belongs.
    at : str, optional
        Name of the column that identifies the points of a curve. A point is the mean over seeds for one value
        of this column. You need `at` only if the values on the horizontal axis differ between seeds.
    log : str
        Which axes are logarithmic: "", "x", "y" or "xy".
    printed : Printed or several
        Numbers that the paper prints.
    theory : (str, callable) or several
        Theoretical curves, each with a label and a function of x. The panel draws them as dashed lines.
    bars : bool
        Whether to draw groups of bars instead of lines.
    mark : float, optional
        Value on the horizontal axis at which the panel draws a vertical line.
    cells : bool
        Whether to draw each row of the results as a box. The shade of a box shows the row's value.
    outlines : bool
        Whether boxes have outlines.
    equal : bool
        Whether both axes have the same scale, as in a map. Only for panels that draw boxes.
    fit_theory : bool
        Whether to extend the vertical axis so that theoretical curves are completely visible.
    names : sequence of str
        Names of the rows and columns of a grid of boxes. All boxes must have sides of length 1.
    ylim : (float, float), optional
        Smallest and largest value on the vertical axis.
    linear_below : float
        Value up to which the vertical axis is linear. Above this value, the axis is logarithmic. Such an axis
        can begin at 0.
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
    mark: float | None = None
    cells: bool = False
    outlines: bool = False
    equal: bool = False
    fit_theory: bool = False
    names: Sequence[str] = ()
    ylim: tuple[float, float] | None = None
    linear_below: float = 0.0


def panel_rows(rows: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """Return the rows (results) that a panel shows."""
    is_shown = np.ones(len(rows), bool)
    for column, x in panel.where.items():
        is_shown &= (rows[column] == x).to_numpy()
    return rows[is_shown]


def printed_points(panel: Panel) -> list[Printed]:
    """Return the numbers of the paper that a panel shows, as a list."""
    return [panel.printed] if isinstance(panel.printed, Printed) else [*panel.printed]


def tabulate_means(rows: pd.DataFrame, panels: Sequence[Panel]) -> pd.DataFrame:
    """Return a table of the means that panels show. A mean is taken over the seeds (repetitions), and given
    as text. The table has one row per panel and series (curve).

    A row contains the first and the last mean along the horizontal axis, the lowest mean and the highest
    mean. The row also contains the paper's numbers for the panel, if there are any.
    """
    lines = []
    for panel in panels:
        says = "; ".join(point.says for point in printed_points(panel))
        for series, own in panel_rows(rows, panel).groupby(panel.series, sort=False):
            means = own.groupby(panel.at or panel.x).value.mean()
            ends = (means.iloc[0], means.iloc[-1], means.min(), means.max())
            names = ("first", "last", "lowest", "highest")
            lines.append(
                {
                    "panel": in_words(panel.title).replace("\n", " "),
                    "series": in_words(str(series)),
                    "from … to": " … ".join(cell(means.index[i]) for i in (0, -1)),
                    **dict(zip(names, map(format_number, ends), strict=True)),
                    "the paper prints": says,
                }
            )
    table = pd.DataFrame(lines).set_index(["panel", "series"])
    return table if any(table["the paper prints"]) else table.drop(columns="the paper prints")


def theory_curves(panel: Panel) -> Sequence[tuple[str, Callable[..., Any]]]:
    """Return the theoretical curves of a panel. Each curve is a pair of a label and a function of x."""
    theory: Any = panel.theory
    return [theory] if theory and callable(theory[-1]) else theory


@with_style
def grid(
    rows: pd.DataFrame,
    wanted: Sequence[Panel],
    columns: int,
    *,
    height: float = 2.0,
    sharey: bool = False,
    letters: str = "",
) -> Figure:
    """Draw a figure with several panels, including the paper's numbers and theoretical curves.

    Parameters
    ----------
    rows : DataFrame
        Results that the panels show.
    wanted : sequence of Panel
        Descriptions of the panels, row by row.
    columns : int
        Number of panels in each row.
    height : float
        Height of one panel, in inches.
    sharey : bool
        Whether panels in the same row share their vertical axis, if they show the same quantity.
    letters : str
        Letters of the panels, which are next to their titles. Default: a, b, c and so on. A single panel has
        no letter.

    Returns
    -------
    Figure
    """
    columns = min(columns, len(wanted))
    lines = -(-len(wanted) // columns)
    titles = [in_words(panel.title) for panel in wanted]
    fig, axes = panels(lines, columns, titles, height=height)
    boxes = [own for panel in wanted if panel.cells and len(own := panel_rows(rows, panel))]
    limits = color_limits(boxes[0] if boxes else rows[:0])  # of the truth, for all panels
    lined = [panel_rows(rows, panel)[panel.series] for panel in wanted if not panel.cells]
    styles = series_styles(name for names in lined for name in names.astype(str).unique())
    labels = dict.fromkeys(label for panel in wanted for label, _ in theory_curves(panel))
    dashes = dict(zip(labels, cycle(THEORY_DASHES), strict=False))
    for panel, ax in zip(wanted, axes, strict=True):
        _draw(panel, panel_rows(rows, panel), ax, limits, dashes, styles)
    if boxes:
        shaded = [ax for panel, ax in zip(wanted, axes, strict=True) if panel.cells]
        name_shades(shaded, limits, metric_name(boxes[0]), "right", aspect=30)
    letters = letters or ascii_letters * (len(wanted) > 1)
    for i, (panel, ax) in enumerate(zip(wanted, axes, strict=True)):
        ax.panel = (letters[i : i + 1], panel.where)
        if letters:
            add_letter(ax, letters[i])
    if sharey:
        share_y(axes)
    return legend(fig, styles)


def _draw(
    panel: Panel,
    rows: pd.DataFrame,
    ax: Axes,
    limits: tuple[float, float],
    dashes: Mapping[str, tuple[Any, ...]],
    styles: Mapping[str, SeriesStyle],
) -> None:
    finite = np.isfinite(rows.value.astype(float))
    if not finite.all() or rows.empty:
        missing = f"{counted((~finite).sum(), 'value')} not finite" if len(rows) else "no rows"
        ax.set_title(f"{ax.get_title(loc='left')} ({missing})".strip(), loc="left")
        rows = rows[finite]
    if rows.empty:
        ax.set(xticks=[], yticks=[])
        return
    if panel.cells:
        cells(rows, ax, limits, outlines=panel.outlines, equal=panel.equal)
        if panel.names:
            places = np.arange(len(panel.names)) + 0.5
            ax.set_xticks(places, panel.names, rotation=90)
            ax.set_yticks(places, panel.names)
        return
    how: dict[str, Any] = dict(log=panel.log, styles=styles)
    if panel.bars:
        grouped_bars(rows, panel.x, panel.series, ax, **how | {"log": "y" in panel.log})
    else:
        curves(rows, panel.x, panel.series, ax, at=panel.at, **how)
    if panel.linear_below:
        show_zero(ax, panel.linear_below)
    printed(printed_points(panel), ax)
    for label, law in theory_curves(panel):
        theory(law, ax, label, dashes[label], fit=panel.fit_theory)
    if panel.ylim:
        ax.set_ylim(panel.ylim)
    if panel.mark is not None:
        ax.axvline(panel.mark, color="0.4", linewidth=0.7, zorder=0)
