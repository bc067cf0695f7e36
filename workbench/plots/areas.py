"""Cells of a plane, shaded by their value, and maps."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from workbench.plots.axes import format_tick, panels
from workbench.plots.style import AXIS_LABELS, COLORMAP, metric_name, with_style


@with_style
def cells(
    rows: pd.DataFrame,
    ax: Axes,
    limits: tuple[float, float] | None = None,
    *,
    outlines: bool = False,
    equal: bool = False,
) -> Axes:
    """Boxes from (x0, y0) to (x1, y1), the darker the larger their `value`, with a scale below.

    Those at or below 0 stay white. `limits` are the ends of the scale, those of `shades` if not given.
    A column `labels` names the axes, as "x|y".
    """
    if rows.empty:
        raise ValueError("there are no rows to draw")
    limits = limits or color_limits(rows)
    shade_ = color_position(rows.value.to_numpy(float), limits)
    corners = rows[["x0", "y0", "x1", "y1"]].to_numpy(float)
    x0, y0, x1, y1 = corners.T
    boxes = np.stack([x0, y0, x1, y0, x1, y1, x0, y1], axis=1).reshape(-1, 4, 2)
    colors = mpl.colormaps[COLORMAP](np.nan_to_num(shade_))
    colors[np.isnan(shade_)] = 1
    edges = "#bbbbbb" if outlines else "face"
    drawn = mpl.collections.PolyCollection(
        boxes, facecolors=colors, edgecolors=edges, linewidth=0.2, rasterized=True
    )
    ax.add_collection(drawn)
    names = rows.labels.iloc[0].split("|") if "labels" in rows else ("", "")
    ax.set(xlim=(x0.min(), x1.max()), ylim=(y0.min(), y1.max()))
    ax.set(xlabel=names[0], ylabel=names[1], aspect="equal" if equal else "auto")
    ax.grid(False)
    scale = mpl.cm.ScalarMappable(mpl.colors.LogNorm(*limits), COLORMAP)
    bar = ax.get_figure().colorbar(scale, ax=ax, location="bottom", shrink=0.8, aspect=30)
    bar.set_label(AXIS_LABELS.get(metric_name(rows, "value"), metric_name(rows, "value")))
    bar.ax.xaxis.set_minor_formatter(NullFormatter())
    bar.ax.xaxis.set_major_formatter(FuncFormatter(format_tick))
    return ax


def color_limits(rows: pd.DataFrame) -> tuple[float, float]:
    """The ends of a logarithmic scale of shades: of what is above 0, four decades at most."""
    above = rows.value[rows.value > 0].astype(float)
    high = float(above.max()) if len(above) else 1.0
    low = max(float(above.min()) if len(above) else 0.1, high / 1e4)
    return (low, high) if low < high else (high / 10, high)


def color_position(
    values: Float[np.ndarray, " n"], limits: tuple[float, float]
) -> Float[np.ndarray, " n"]:
    """Where values lie on the scale, 0 … 1; NaN at or below 0."""
    with np.errstate(all="ignore"):
        at = np.log(values / limits[0]) / np.log(limits[1] / limits[0])
    return np.where(values > 0, np.clip(at, 0, 1), np.nan)


@with_style
def maps(
    rows: pd.DataFrame,
    columns: int,
    *,
    cell: float,
    bar: float,
    label: str,
    height: float = 2.4,
    land: pd.DataFrame | None = None,
    circle: tuple[float, float, float] | None = None,
) -> Figure:
    """A heat map for each value of the column `panel`, all in one scale of colours and of kilometres.

    A row is a place, `latitude` and `longitude` in degrees, and how much is there, `value`; it is added
    up over squares of `cell` km. The projection is equirectangular, true in the middle latitude. `bar`
    is the length of the scale bar in km; `land` public places in pale grey, which set the view;
    `circle` latitude, longitude, and a radius in km.
    """
    if rows.empty:
        raise ValueError("there are no rows to draw")
    seen = rows if land is None else land
    ends = [(seen[c].min(), seen[c].max()) for c in ("latitude", "longitude")]
    middle = tuple(sum(pair) / 2 for pair in ends)
    (left, below), (right, above) = (project(*at, *middle) for at in zip(*ends, strict=True))
    frame = [
        np.arange(a - cell, b + 2 * cell, cell) for a, b in ((left, right), (below, above))
    ]
    grids = {}
    for name, some in rows.groupby("panel", sort=False):
        x, y = project(some.latitude, some.longitude, *middle)
        grids[name] = np.histogram2d(y, x, frame[::-1], weights=some.value)[0]
    held = np.concatenate([grid[grid > 0] for grid in grids.values()])
    norm = mpl.colors.LogNorm(held.min(), held.max())
    fig, axes = panels(-(-len(grids) // columns), columns, [*grids], height=height)
    for grid, ax in zip(grids.values(), axes, strict=False):
        if land is not None:
            x, y = project(land.latitude, land.longitude, *middle)
            ax.plot(x, y, ",", color="0.8", rasterized=True, zorder=0)
        look = dict(cmap="cividis_r", norm=norm, linewidth=0, rasterized=True)
        picture = ax.pcolormesh(*frame, np.where(grid > 0, grid, np.nan), **look)
        if circle is not None:
            at = project(*circle[:2], *middle)
            ring = plt.Circle(at, circle[2], fill=False, color="#D55E00", linewidth=0.8)
            ax.add_patch(ring)
        ax.set(xlim=frame[0][[0, -1]], ylim=frame[1][[0, -1]])
        ax.set(aspect="equal", xticks=[], yticks=[])
        ax.grid(False)
        ax.spines[:].set_visible(False)
    for ax in axes[len(grids) :]:
        ax.remove()
    _scale_bar(axes[0], bar)
    drawn = axes[: len(grids)]
    colours = fig.colorbar(
        picture, ax=drawn, location="bottom", shrink=0.5, aspect=40, pad=0.02
    )
    colours.set_label(label)
    colours.ax.xaxis.set_minor_formatter(NullFormatter())
    colours.ax.xaxis.set_major_formatter(FuncFormatter(format_tick))
    return fig


def project(latitude, longitude, latitude0: float, longitude0: float) -> tuple[Any, Any]:
    """Kilometres east and north of a place; equirectangular, true to scale along its latitude.

    >>> [round(float(x)) for x in project(42, -71, 41, -71)]
    [0, 111]
    """
    degree = 111.195  # km
    east = (longitude - longitude0) * np.cos(np.radians(latitude0))
    return east * degree, (latitude - latitude0) * degree


def _scale_bar(ax: Axes, length: float) -> None:
    """A bar of so many km in the lower right corner."""
    (left, right), (below, above) = ax.get_xlim(), ax.get_ylim()
    end, y = right - 0.04 * (right - left), below + 0.03 * (above - below)
    ax.plot([end - length, end], [y, y], color="black", linewidth=1.5, solid_capstyle="butt")
    up = y + 0.02 * (above - below)
    ax.text(end - length / 2, up, f"{length:g} km", ha="center", va="bottom", fontsize=6.5)
    ax.set(xlim=(left, right), ylim=(below, above))
