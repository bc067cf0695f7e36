"""Descriptions of charts for web pages. In the page, the library Vega draws them."""

from __future__ import annotations

import base64
import gzip
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any

import ipywidgets
import numpy as np
import traitlets

from workbench.compiled import mpl, pd
from workbench.figures import plots
from workbench.trials.claims import confidence_intervals
from workbench.value import Float

# Vega

_SCRIPT = (
    "static/js_lib_vega_embed/vega5.js"  # in a package that also holds a Django application
)


class Drawing(ipywidgets.Widget):
    """Script of the chart library Vega in a page. All panels of a kernel share one object, so that the script
    is not copied.
    """

    script = traitlets.Unicode().tag(sync=True)


_drawings: list[Drawing] = []


def shared_drawing() -> Drawing:
    """Return the `Drawing` that all panels share. If it was closed, make a new one."""
    if not _drawings or _drawings[0].comm is None:
        _drawings[:] = [Drawing(script=packed_script())]
    return _drawings[0]


@cache
def packed_script() -> str:
    """Return the compressed script of Vega, as text without special characters of HTML."""
    script = (files("js_lib_vega_embed") / _SCRIPT).read_bytes()
    return base64.b64encode(gzip.compress(script, 9, mtime=0)).decode()


# Chart


def charts(rows: pd.DataFrame, panels: list[plots.Panel]) -> list[dict[str, Any]]:
    """Return one Vega chart per panel of a figure, with the content that `plots.grid` would draw."""
    limits = None  # of colours: the truth's, whose map comes first
    drawn = []
    for panel in panels:
        chosen = plots.panel_rows(rows, panel)
        if panel.cells:
            limits = limits or plots.color_limits(chosen)
            drawn.append(_map(chosen, panel, limits))
        else:
            drawn.append(_curves(chosen, panel))
    return drawn


def _curves(rows: pd.DataFrame, panel: plots.Panel) -> dict[str, Any]:
    series = rows[panel.series].astype(str).to_numpy()
    points = rows[[panel.x, "value"]].to_numpy(float)
    styles = plots.series_styles(series)
    lines = [_line(points[series == name], name, styles[name]) for name in styles]
    return dict(
        kind="curves",
        title=panel.title,
        lines=lines,
        x=_axis("x", panel.x, panel),
        y=_axis("y", plots.metric_name(rows), panel),
    )


def _axis(which: str, column: str, panel: plots.Panel) -> dict[str, Any]:
    return dict(
        label=_label(column),
        log=which in panel.log,
        percent=column in plots.PERCENT_COLUMNS,
    )


def _label(column: str) -> str:
    return plots.AXIS_LABELS.get(column, column).replace("\n", " ")


def _line(
    points: Float[np.ndarray, "n 2"], name: str, style: tuple[str, str, Any]
) -> dict[str, Any]:
    """Return the points of a series (curve): means, and intervals if there are several releases."""
    color, marker, dashes = style
    rows = pd.DataFrame(points, columns=["x", "value"]).sort_values("x", kind="stable")
    band: dict[str, Any] = {}
    if rows.x.duplicated().any():
        rows = confidence_intervals(rows, "x").reset_index().rename(columns={"mean": "value"})
        if np.isfinite(rows.low).all():
            band = dict(low=_short(rows.low), high=_short(rows.high))
    return dict(
        name=name,
        x=_short(rows.x),
        y=_short(rows.value),
        # colours of series without a name of their own are numbers
        color=mpl.colors.to_hex(color),
        marker=marker if len(rows) < plots.MAX_MARKERS else "",
        dashed="" if dashes == "-" else "4 2",
        **band,
    )


def _map(rows: pd.DataFrame, panel: plots.Panel, limits: tuple[float, float]) -> dict[str, Any]:
    boxes = rows[["x0", "y0", "x1", "y1"]].to_numpy(float)
    shades = plots.color_position(rows.value.to_numpy(float), limits)
    high = float(np.ptp(boxes[:, [1, 3]]) / np.ptp(boxes[:, [0, 2]]))
    return dict(
        kind="cells",
        title=panel.title,
        boxes=[_short(column) for column in boxes.T],
        shade=_short(np.round(shades, 3)),
        colors=_map_colors(),
        limits=_short(limits),
        outlines=panel.outlines,
        high=high,
        label=f"{_label(plots.metric_name(rows))}, logarithmic",
        axes=rows.labels.iloc[0].split("|"),
    )


def _short(x: Any) -> list[float | None]:
    """Return numbers with six digits for a page, with None for NaN and infinity."""
    return [float(f"{v:.6g}") if isfinite(v) else None for v in np.asarray(x, float).tolist()]


@cache
def _map_colors() -> list[str]:
    colors = mpl.colormaps[plots.COLORMAP](np.linspace(0, 1, 32))
    return [mpl.colors.to_hex(color) for color in colors]


@cache
def marker_paths() -> dict[str, str]:
    """Return the shapes of matplotlib's markers as SVG paths, with coordinates from -1 to 1."""
    from matplotlib.markers import MarkerStyle

    paths = {}
    for marker in MarkerStyle.filled_markers:
        style = MarkerStyle(marker)
        path = style.get_path().transformed(style.get_transform())
        corners = 2 * path.to_polygons()[0] * (1, -1)
        paths[marker] = "M" + "L".join(f"{x:.2f},{y:.2f}" for x, y in corners) + "Z"
    return paths
