"""Rows to what a page draws: the means, intervals and styles that `plots` would put on axes."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

from workbench import plots
from workbench.claims import confidence_intervals

_TICKS = 64  # places where a dashed law is computed
_DIGITS = 6  # of a number on the screen


def charts(rows: pd.DataFrame, panels: list[plots.Panel]) -> list[dict[str, Any]]:
    """One a panel, in the panels' order; what `plots.grid` would draw."""
    maps = [plots.panel_rows(rows, panel) for panel in panels if panel.cells]
    limits = plots.color_limits(maps[0]) if maps else None  # the truth's
    drawn = []
    for panel in panels:
        chosen = plots.panel_rows(rows, panel)
        drawn.append(_map(chosen, panel, limits) if panel.cells else _curves(chosen, panel))
    return drawn


def _curves(rows: pd.DataFrame, panel: plots.Panel) -> dict[str, Any]:
    lines = []
    for name, group in rows.groupby(panel.series, sort=False):
        lines.append(_line(group, panel, str(name), [line["name"] for line in lines]))
    curves = plots.theory_curves(panel)
    space = np.geomspace if "x" in panel.log else np.linspace
    x = space(rows[panel.x].min(), rows[panel.x].max(), _TICKS)
    for (name, law), dash in zip(curves, plots.theory_dashes(panel), strict=True):
        dashed = " ".join(map(str, dash))
        line = dict(name=name, x=_short(x), y=_short(law(x)), color="#666666", dashed=dashed)
        lines.append(line)
    return dict(
        kind="curves",
        title=panel.title,
        lines=lines,
        mark=panel.mark,
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
    group: pd.DataFrame, panel: plots.Panel, name: str, drawn: list[str]
) -> dict[str, Any]:
    """A series: its means, and their intervals where there are any."""
    color, marker, dashes = plots.series_style(name, drawn)
    column = panel.at or panel.x
    points = confidence_intervals(group.assign(value=group.value.astype(float)), column)
    points = points.assign(x=group.groupby(column)[panel.x].mean()).sort_values("x")
    line = dict(
        name=name,
        x=_short(points.x),
        y=_short(points["mean"]),
        color=mpl.colors.to_hex(color),
        marker=marker if len(points) < plots.MAX_MARKERS else "",
        dashed="" if dashes == "-" else "4 2",
    )
    if np.isfinite(points.low).all():
        line |= dict(low=_short(points.low), high=_short(points.high))
    return line


def _map(rows: pd.DataFrame, panel: plots.Panel, limits: tuple[float, float]) -> dict[str, Any]:
    boxes = rows[["x0", "y0", "x1", "y1"]].to_numpy(float)
    shades = plots.color_position(rows.value.to_numpy(float), limits)
    colors = mpl.colormaps[plots.COLORMAP](np.linspace(0, 1, 32))
    high = 0.75
    if panel.equal:
        high = float(np.ptp(boxes[:, [1, 3]]) / np.ptp(boxes[:, [0, 2]]))
    return dict(
        kind="cells",
        title=panel.title,
        boxes=[_short(column) for column in boxes.T],
        shade=[round(float(s), 3) if np.isfinite(s) else None for s in shades],
        colors=[mpl.colors.to_hex(c) for c in colors],
        limits=_short(limits),
        outlines=panel.outlines,
        high=high,
        label=f"{_label(plots.metric_name(rows))}, logarithmic",
        axes=rows.labels.iloc[0].split("|") if "labels" in rows else ["", ""],
    )


def _short(x: Any) -> list[float | None]:
    """Numbers as a page gets them; None where there is none to draw."""
    x = np.asarray(x, float)
    with np.errstate(all="ignore"):
        power = _DIGITS - 1 - np.floor(np.log10(np.abs(x)))
        unit = 10.0 ** np.abs(power)
        rounded = np.where(power < 0, np.rint(x / unit) * unit, np.rint(x * unit) / unit)
    rounded[x == 0] = 0.0
    finite = np.isfinite(x)
    return [v if ok else None for v, ok in zip(rounded.tolist(), finite, strict=True)]
