"""Rows to what a page draws: the means, intervals and looks that `plots` would put on axes."""

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
    cells = [plots.panel_rows(rows, panel) for panel in panels if panel.cells]
    limits = plots.color_limits(cells[0]) if cells else None  # the truth's
    return [_chart(plots.panel_rows(rows, panel), panel, limits) for panel in panels]


def _chart(rows: pd.DataFrame, panel: plots.Panel, limits) -> dict[str, Any]:
    if panel.cells:
        return _cells(rows, panel, limits)
    what = plots.metric_name(rows)
    lines, drawn = [], []
    for name, group in rows.groupby(panel.series, sort=False):
        color, marker, dashes = plots.series_style(str(name), drawn)
        drawn.append(str(name))
        lines.append(_line(group, panel, color, marker, dashes) | {"name": str(name)})
    low, high = rows[panel.x].min(), rows[panel.x].max()
    for (words, law), dash in zip(
        plots.theory_curves(panel), plots.theory_dashes(panel), strict=True
    ):
        space = np.geomspace if "x" in panel.log else np.linspace
        x = space(low, high, _TICKS)
        told = dict(name=words, x=_short(x), y=_short(law(x)), color="#666666")
        lines.append(told | dict(dashed=" ".join(map(str, dash))))
    axes = {
        a: dict(
            label=plots.AXIS_LABELS.get(name, name).replace("\n", " "),
            log=a in panel.log,
            percent=name in plots.PERCENT_COLUMNS,
        )
        for a, name in (("x", panel.x), ("y", what))
    }
    return dict(kind="curves", title=panel.title, lines=lines, mark=panel.mark, **axes)


def _line(group: pd.DataFrame, panel: plots.Panel, color, marker, dashes) -> dict[str, Any]:
    at = panel.at or panel.x
    points = confidence_intervals(group.assign(value=group.value.astype(float)), at)
    points = points.assign(x=group.groupby(at)[panel.x].mean()).sort_values("x")
    line = dict(x=_short(points.x), y=_short(points["mean"]), color=mpl.colors.to_hex(color))
    line["marker"] = marker if len(points) < plots.MAX_MARKERS else ""
    line["dashed"] = "" if dashes == "-" else "4 2"
    if np.isfinite(points.low).all():
        line |= dict(low=_short(points.low), high=_short(points.high))
    return line


def _cells(rows: pd.DataFrame, panel: plots.Panel, limits) -> dict[str, Any]:
    boxes = rows[["x0", "y0", "x1", "y1"]].to_numpy(float)
    shade = plots.color_position(rows.value.to_numpy(float), limits)
    colors = mpl.colormaps[plots.COLORMAP](np.linspace(0, 1, 32))
    what = plots.metric_name(rows)
    labels = rows.labels.iloc[0].split("|") if "labels" in rows else ["", ""]
    return dict(
        kind="cells",
        title=panel.title,
        boxes=[_short(column) for column in boxes.T],
        shade=[None if not np.isfinite(s) else round(float(s), 3) for s in shade],
        colors=[mpl.colors.to_hex(c) for c in colors],
        limits=_short(limits),
        outlines=panel.outlines,
        high=float(np.ptp(boxes[:, [1, 3]]) / np.ptp(boxes[:, [0, 2]]))
        if panel.equal
        else 0.75,
        label=f"{plots.LABELS.get(what, what)}, logarithmic".replace("\n", " "),
        axes=labels,
    )


def _short(x: Any) -> list[float | None]:
    """Numbers as they are told to a page; None where there is none to draw."""
    x = np.asarray(x, float)
    with np.errstate(all="ignore"):
        power = _DIGITS - 1 - np.floor(np.log10(np.abs(x)))
        unit = 10.0 ** np.abs(power)
        told = np.where(power < 0, np.rint(x / unit) * unit, np.rint(x * unit) / unit)
    told[x == 0] = 0.0
    return [v if ok else None for v, ok in zip(told.tolist(), np.isfinite(x), strict=True)]
