"""Functions that draw curves, bars, the numbers that a paper prints, and theoretical curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.compiled import pd
from workbench.figures.plots.axes import keep_limits, name_axis, tag
from workbench.figures.plots.style import (
    AXIS_LABELS,
    FRACTIONS,
    MAX_MARKERS,
    MEAN_SEEDS,
    PERCENT_COLUMNS,
    SERIES_STYLES,
    SeriesStyle,
    in_words,
    metric_name,
    series_styles,
    with_style,
)
from workbench.trials.claims import Printed, confidence_intervals
from workbench.value import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@with_style
def curves(
    rows: pd.DataFrame,
    x: str,
    series: str,
    ax: Axes,
    *,
    at: str | None = None,
    log: str = "xy",
    styles: Mapping[str, SeriesStyle] | None = None,
) -> Axes:
    """Draw one curve per series. A curve shows the mean over seeds (repetitions), as a function of `x`, with
    a 95 % confidence interval.

    If there are fewer than five seeds, dots show the value of each seed instead of the interval.

    Parameters
    ----------
    rows : DataFrame
        Results of a single metric.
    x, series : str
        Names of two columns: the column on the horizontal axis, and the column with the names of curves.
    ax : Axes
        Panel into which the curves are drawn.
    at : str, optional
        Name of the column that identifies the points of a curve. A point is the mean over seeds for one value
        of this column. Default: the same as `x`. Pass another column if the values of `x` differ between
        seeds, for example if `x` is the number of released cells.
    log : str
        Which axes are logarithmic: "", "x", "y" or "xy".
    styles : mapping, optional
        Styles of series, from `series_styles`. Pass the styles if other panels of the figure contain further
        series, so that each series has one style in all panels.
    """
    what = metric_name(rows)
    at = at or x
    for _, name, style, group, points in _by_series(rows, series, at, styles):
        points = points.assign(x=group.groupby(at)[x].mean()).sort_values("x")
        approximate = "delta" in group and group.delta.max() > 0
        means = points["mean"]
        if "y" in log and (means > 0).any():
            means = means.where(means > 0)  # with gaps
        drawn = ax.plot(
            points.x,
            means,
            color=style.color,
            marker=style.marker if len(points) < MAX_MARKERS else "",
            linestyle=style.dashes,
            markerfacecolor="white" if approximate else style.color,
            label=name,
        )
        tag(drawn, name, points.assign(at=points.x, mean=means))
        low, high = points.low, points.high
        with keep_limits(ax):
            if points.seeds.max() >= MEAN_SEEDS:
                band = dict(color=style.color, alpha=0.2, linewidth=0, zorder=1)
                tag(ax.fill_between(points.x, low, high, where=np.isfinite(high), **band), name)
            elif len(points) < MAX_MARKERS and len(group) > len(points):
                shown = group[group.value > 0] if "y" in log else group
                places = shown[at].map(points.x)
                dots = dict(color=style.color, alpha=0.45, markersize=2.5)
                tag(ax.plot(places, shown.value, ".", **dots), name)
        ax.update_datalim(np.column_stack([points.x, means])[np.isfinite(means)])
    name_axis(ax, "x", x, "x" in log)
    name_axis(ax, "y", what, "y" in log)
    if "x" not in log:  # no ticks between integers
        ax.xaxis.get_major_locator().set_params(integer=bool((rows[x] % 1 == 0).all()))
    return ax


def _by_series(
    rows: pd.DataFrame, series: str, at: str, styles: Mapping[str, SeriesStyle] | None
) -> Iterator[tuple[int, str, SeriesStyle, pd.DataFrame, pd.DataFrame]]:
    """Yield the number, name, style and rows of each series (curve), and a table of its means with 95 %
    intervals.

    Intervals are limited to possible values of their metric: not below 0 if no value is negative, and at most
    1 for shares. An interval that would reach 0 begins at the smallest value of a seed instead, so that a
    logarithmic axis can show the interval.
    """
    styles = styles or series_styles(rows[series])
    most = 1 if metric_name(rows) in FRACTIONS else None
    for i, (name, group) in enumerate(rows.groupby(rows[series].astype(str), sort=False)):
        group = group.assign(value=group.value.astype(float))
        points = confidence_intervals(group, at)
        low, high = points.low.where(points.seeds > 1), points.high.where(points.seeds > 1)
        if (group.value >= 0).all():
            low = low.where(~(low <= 0), group.groupby(at).value.min())
        points = points.assign(low=low, high=high.clip(upper=most))
        yield i, str(name), styles[str(name)], group, points


def grouped_bars(
    rows: pd.DataFrame,
    x: str,
    series: str,
    ax: Axes,
    *,
    log: bool = True,
    styles: Mapping[str, SeriesStyle] | None = None,
) -> Axes:
    """Draw groups of bars with 95 % confidence intervals. There is one group per value of `x`, with one bar
    per series. On a logarithmic axis, the function draws markers instead of bars.

    If the names of the groups are texts, the groups are in the order of the rows. If the names are numbers,
    the largest number comes first.
    """
    what = metric_name(rows)
    places = list(rows[x].unique())
    named = isinstance(places[0], str)
    if not named:
        places.sort(reverse=True)
    width = 0.8 / rows[series].nunique()
    for i, name, style, group, points in _by_series(rows, series, x, styles):
        centers = np.array([places.index(at) for at in points.index]) + (i + 0.5) * width - 0.4
        mean = points["mean"].to_numpy()
        error = np.clip(np.nan_to_num([mean - points.low, points.high - mean]), 0, None)
        shown = [at if named else number(at) for at in points.index]
        told = points.assign(x=shown, at=centers)
        if points.seeds.max() < MEAN_SEEDS:
            error[:] = 0
            if points.seeds.max() > 1:
                at = group[x].map(dict(zip(points.index, centers, strict=True)))
                dots = ax.plot(at, group.value, ".", color="#333333", markersize=2.5, zorder=3)
                tag(dots, name)
        line = dict(elinewidth=0.8, ecolor="#333333")
        if log:
            drawn = ax.errorbar(
                centers, mean, error, fmt=style.marker, color=style.color, label=name, **line
            )
            tag(drawn.get_children(), name, told)
        else:
            look = dict(color=style.color, hatch=style.hatch, edgecolor="white", linewidth=0.6)
            drawn = ax.bar(centers, mean, width, yerr=error, label=name, error_kw=line, **look)
            tag([*drawn, *drawn.errorbar.get_children()], name, told)
    labels = [in_words(at).replace(", ", ",\n") if named else number(at) for at in places]
    longest = max(len(line) for label in labels for line in label.split("\n"))
    room = ax.get_position().width * ax.get_figure().get_figwidth() / len(places)
    turned: dict[str, Any] = {}
    if longest * 0.055 > room:
        labels = [label.replace("\n", " ") for label in labels]
        angle = 35 if room > 0.3 else 90
        turned = dict(rotation=angle, ha="right", va="center", rotation_mode="anchor")
    ax.set_xticks(range(len(places)), labels, **turned)
    name_axis(ax, "y", what, log)
    ax.set(xlabel=AXIS_LABELS.get(x, "" if named else x), xlim=(-0.6, len(places) - 0.4))
    ax.grid(False, axis="x")
    return ax


@with_style
def marks(
    rows: pd.DataFrame,
    names: str,
    ax: Axes,
    *,
    printed: Iterable[Printed] = (),
    label: str | None = None,
) -> Axes:
    """Draw one marker per row of the results on a logarithmic axis, and write its value next to the marker.
    The column `names` contains the names of the rows. The first row is on top. Brackets show the paper's
    numbers.
    """
    places = {name: i for i, name in enumerate(rows[names])}
    color = SERIES_STYLES["one-sided filter"][0]
    ax.plot(rows["value"], [*places.values()], "o", color=color, markersize=5, label="ours")
    ax.set_yticks([*places.values()], [*map(in_words, places)])
    ax.set_ylim(len(places) - 0.4, -0.6)
    ax.grid(False, axis="y")
    how = dict(textcoords="offset points", size=6.5, ha="center", annotation_clip=False)
    metric = metric_name(rows)
    for place, x in enumerate(rows["value"]):
        text = f"{100 * x:.2g} %" if metric in PERCENT_COLUMNS else number(x, 4)
        ax.annotate(text, (x, place), (0, 5), **how)
    for point in printed:
        if point.at in places:
            place = places[point.at]
            bracket(ax, point, place, "x")
            if point.value and not point.low <= rows["value"].iloc[place] <= point.high:
                ax.annotate(point.says, (point.value, place), (0, 5), **how)
    ax.margins(x=0.12)
    name_axis(ax, "x", metric, True, label)
    return ax


@with_style
def printed(points: Iterable[Printed], ax: Axes) -> Axes:
    """Draw the numbers that a paper prints. If the paper states a number for one value on the other axis,
    draw a dark bracket at this value. Otherwise, draw a grey stripe.
    """
    for point in points:
        if point.at is not None:
            bracket(ax, point, point.at, "y")
            continue
        grey = dict(color="0.6", alpha=0.25, linewidth=0, zorder=0, label="paper")
        flat = point.axis == "y"
        with keep_limits(ax):
            if point.over:
                stripe = ax.fill_between if flat else ax.fill_betweenx
                drawn = stripe(point.over, point.low, point.high, **grey)
            else:
                drawn = (ax.axhspan if flat else ax.axvspan)(point.low, point.high, **grey)
            tag(drawn, "paper")
    return ax


def bracket(ax: Axes, point: Printed, at: float | str, along: str) -> None:
    """Draw a bracket for a number that a paper prints. Along the axis "x" or "y", the bracket shows the error
    with which we read the number.
    """
    middle = (point.low + point.high) / 2 if point.value is None else point.value
    error = [[middle - point.low], [point.high - middle]]
    place = (at, middle) if along == "y" else (middle, at)
    drawn = ax.errorbar(
        *place,
        **{f"{along}err": error},
        color="0.15",
        fmt="" if point.value is None else "x",
        linestyle="none",
        elinewidth=1.6,
        capsize=4,
        capthick=1.2,
        markersize=5,
        zorder=5,
        label="paper",
    )
    tag(drawn.get_children(), "paper")


@with_style
def theory(
    law: Callable[..., Any],
    ax: Axes,
    label: str = "theory",
    dashes: tuple[Any, ...] = (5, 2),
    *,
    fit: bool = False,
) -> Axes:
    """Draw a dashed theoretical curve y = law(x) over the visible range of x. The argument `law` is a
    function. If `fit` is True, extend the vertical axis so that the whole curve is visible.
    """
    low, high = ax.get_xlim()
    spaced = np.geomspace if ax.get_xscale() == "log" else np.linspace
    x = spaced(low, high, 200)
    ylim = ax.get_ylim()
    ax.plot(x, law(x), color="0.4", linestyle=(0, dashes), linewidth=0.9, zorder=1, label=label)
    ax.set_xlim(low, high)
    if not fit:
        ax.set_ylim(ylim)
    return ax
