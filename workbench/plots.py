"""Rows to axes, in one style. Plots run nothing, load nothing and save nothing; they know column names.

The same mechanism looks the same in every figure: colour and marker follow from its name in words
(`named` puts it into a column `series`). Colours are Okabe and Ito's, which the colour-blind tell
apart; markers differ too, for print without colour. A mark is a mean over seeds, its band the 95 %
interval of that mean, hollow where δ > 0 is promised; grey is what the paper prints, dashes theory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isnan, log10
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from workbench.claims import Printed, intervals

COLUMN, PAGE = 3.4, 7.0  # inches: one column of a paper, and both

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "pdf.fonttype": 42,
}

SUMMARIES = {  # series in words: colour, marker
    "geometric": ("#000000", "o"),
    "filter": ("#0072B2", "s"),
    "one-sided filter": ("#56B4E9", "D"),
    "threshold": ("#E69F00", "^"),
    "priority": ("#D55E00", "v"),
    "filter-priority": ("#009E73", "P"),
    "uniform": ("#CC79A7", "X"),
    "count sketch": ("#999933", "d"),
    "ALP": ("#882255", "*"),
    "stability histogram": ("#332288", "p"),
    "Dirichlet synthesis": ("#AA4499", "h"),
    "lean synthesis": ("#661100", "H"),
}
HISTOGRAMS = {  # of Hay et al., never beside the above: the same looks serve again
    "truth": ("#999999", "."),
    "S̃": ("#999933", "H"),
    "S̃ᵣ": ("#56B4E9", "d"),
    "S̄": ("#332288", "p"),
    "L̃": ("#000000", "o"),
    "H̃": ("#E69F00", "^"),
    "H̄": ("#0072B2", "s"),
    "H̄ by nodes": ("#D55E00", "v"),
    "H̄ not zeroed": ("#CC79A7", "D"),
    "non-negative H̄": ("#117733", "*"),
    "HB": ("#882255", "X"),
    "Privelet": ("#009E73", "P"),
    "equi-depth": ("#AA4499", "h"),
}
SYNTHESES = {  # of records in a hierarchy
    "source": ("#000000", "."),
    "resample": ("#000000", "o"),
    "second release": ("#D55E00", "v"),
    "direct synthesis": ("#0072B2", "s"),
    "improved histogram": ("#E69F00", "^"),
    "basic histogram": ("#CC79A7", "X"),
    "PrivTree": ("#009E73", "P"),
}
PRIORS = {  # of past answers
    "no prior": ("#0072B2", "s"),
    "with prior": ("#D55E00", "o"),
    "bought": ("#56B4E9", "D"),
}
SAMPLINGS = {  # of records of users, and what they are compared with
    "original": ("#000000", "o"),
    "SRA": ("#0072B2", "s"),
    "HPA": ("#D55E00", "v"),
    "LPA": ("#CC79A7", "X"),
    "DFT": ("#E69F00", "^"),
    "GS": ("#009E73", "P"),
}
PUBLISHED = {  # from noisy marginals, or tuple by tuple
    "maximum entropy": ("#0072B2", "s"),
    "SGD as printed": ("#56B4E9", "D"),
    "retention": ("#D55E00", "v"),
    "flipping": ("#E69F00", "^"),
    "noisy marginals": ("#999999", "."),
    "everyone alike": ("#999999", "X"),
    "kernel PCA": ("#009E73", "P"),
}
LOOKS = SUMMARIES | HISTOGRAMS | SYNTHESES | SAMPLINGS | PRIORS | PUBLISHED
_DOTTED = {
    "non-negative H̄",
    "HB",
    "Privelet",
    "PrivTree",
}  # beside what a paper draws, of later years
_HATCHES = ("", "///", "...", "xxx")
SHADES = "cividis_r"  # of cells
CROWDED = 60  # points of a curve, from which marks would hide it
_SPARE = [*zip(mpl.color_sequences["petroff10"], "phd<>*8HoX", strict=True)]  # for other names
# of one look drawn repeatedly
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (1, 3)))
_LAWFUL = (5, 2), (1.5, 1.5), (8, 2, 1.5, 2), (3, 4)  # of theory

WORDS = {  # mechanisms in words
    "GeometricHistogram": "geometric",
    "HighPassFilter": "filter",
    "ThresholdSampling": "threshold",
    "PrioritySampling": "priority",
    "UniformSampling": "uniform",
    "CountSketch": "count sketch",
    "StabilityHistogram": "stability histogram",
    "DirichletSynthesis": "Dirichlet synthesis",
    "BasicAdaptiveHistogram": "basic histogram",
    "ImprovedAdaptiveHistogram": "improved histogram",
    "DirectSynthesis": "direct synthesis",
    "FPA": "DFT",
    "Dyadic()": "dyadic",
    "Dyadic(split='geometric')": "weighted dyadic",
    "Haar()": "Haar",
}
SYMBOLS = {"epsilon": "ε", "delta": "δ", "theta": "θ", "tau": "τ", "size": "s"}
LABELS = {  # columns and metrics, as axes call them
    "epsilon": "ε",
    "theta": "θ (counts)",
    "tau": "τ (counts)",
    "size": "summary size (cells)",
    "released": "summary size (cells)",
    "query_size": "query size (cells)",
    "share": "query size (of all cells)",
    "density": "non-empty cells (of all cells)",
    "mean": "mean count of a non-empty cell",
    "seconds": "time (s)",
    "throughput": "non-empty cells a second",
    "MeanAbsoluteError": "absolute error (counts)",
    "MeanSignedError": "estimate − truth (counts)",
    "MedianRelativeError": "median relative error",
    "HeldCells": "true cells released",
    "ErrorRatio": "error (geometric = 1)",
    "MeanSquaredError": "squared error (counts²)",
    "PriorShare": "share of the prior",
    "depth": "rows of the sketch, d",
    "bytes": "size (bytes)",
    "ErrorCut": "error cut by\nconsistency",
    "SquaredError": "squared error (counts²)",
    "Count": "count",
    "position": "position in the sequence",
    "records": "records, N",
    "distinct": "distinct counts, d",
    "cells": "cells, n",
    "levels": "levels of the tree, ℓ",
    "VarianceRatio": "error(H̃) / error(H̄)",
    "WorstError": "worst error of a range (counts)",
    "Usefulness": "worst error over N",
    "EarthMover": "earth mover's distance\n(records × side)",
    "NodeError": "mean error (noise scales)",
    "down_to": "levels, from the root to",
    "node_level": "level of the node",
    "km": "distance to work (km)",
    "CommuteCDF": "commuters (of all)",
    "StructuralLoss": "loss (ε of a decision)",
    "TreeLoss": "loss (ε of the tree)",
    "discount": "discount, t (records)",
    "splits": "splits on a path",
    "fanout": "children of a node, k",
    "Recovered": "recovered records",
    "RealFraction": "real among synthetic strings",
    "log": "log₂ of the frequency",
    "rest": "20 − log₂ of the frequency",
    "frequency": "frequency (records)",
    "least": "appearances, at least",
    "l": "records kept of a user, l",
    "top": "places on the list, K",
    "rank": "users, the most active first",
    "place": "place on the true list",
    "Records": "records of a user",
    "StoredRecords": "records",
    "BestFactor": "best l (records)",
    "MeanSquaredCountError": "squared error (records²)",
    "KLDivergence": "KL divergence (nats)",
    "TopPrecision": "precision",
    "SampledSize": "records kept",
    "ContextShare": "records (of all)",
    "alpha": "α (tuples)",
    "RMSE": "RMSE (tuples)",
    "JointError": "error, cut at 1",
    "dims": "attributes of a query, k",
    "queries": "past queries, m",
    "query": "queries, by their true answers",
    "universe": "universe (cells)",
    "tuples": "tuples",
    "ProcessorTime": "processor time (s)",
    "Price": "further ε",
    "error": "error asked for (tuples)",
    "Density": "records per km²",
    "ExpectedError": "expected error (counts)",
    "WorstRMSE": "error at worst, RMS (counts)",
    "looks": "looks at the table",
    "TotalEpsilon": "ε of all looks together",
    "Nodes": "nodes released",
    "side": "side of a box (km)",
}
FRACTIONS = {
    "share",
    "density",
    "MedianRelativeError",
    "HeldCells",
    "ErrorCut",
    "PriorShare",
    "Usefulness",
    "CommuteCDF",
    "Recovered",
    "RealFraction",
    "TopPrecision",
    "SampledSize",
    "ContextShare",
}  # shown in per cent
_FROM_0_TO_1 = {"TopPrecision", "JointError"}

styled = mpl.rc_context(STYLE)


def named(rows: pd.DataFrame, *told: str) -> pd.DataFrame:
    """The rows with a column `series`: each mechanism in words, its basis, the parameters `told`.

    >>> rows = pd.DataFrame({"mechanism": ["PrioritySampling"], "theta": [40.0], "size": [1e5]})
    >>> named(rows, "theta", "size").series[0]
    'filter-priority, θ = 40, s = 100,000'
    """

    def words(row) -> str:
        name, inner = row["mechanism"], ""
        if name.startswith("Laborious("):
            name, inner = name[10:-1], "laborious "
        name = WORDS.get(name, name)
        if name in ("threshold", "priority") and row.get("theta", 0) > 0:
            name = f"filter-{name}"
        if row.get("sides", 2) == 1:
            name = f"one-sided {name}"
        basis = row.get("transform") or ""
        said = [WORDS.get(basis, basis), "consistent" * bool(row.get("consistent"))]
        said += [f"{SYMBOLS.get(p, p)} = {row[p]:,g}" for p in told if row.get(p, 0) > 0]
        return ", ".join([inner + name, *filter(None, said)])

    known = ("mechanism", "theta", "sides", "transform", "consistent")
    kinds = [c for c in (*known, *told) if c in rows]
    kinds = list(dict.fromkeys(kinds))
    names = {key: words(dict(zip(kinds, key, strict=True))) for key in _keys(rows[kinds])}
    return rows.assign(series=[names[key] for key in _keys(rows[kinds])])


def _keys(frame: pd.DataFrame) -> list[tuple]:
    """Rows as tuples that find themselves again: without NaN."""
    columns = [[None if x != x else x for x in frame[c]] for c in frame]
    absent = [{"mechanism": ""}.get(c, 0) for c in frame]
    return [
        tuple(a if x is None else x for x, a in zip(row, absent, strict=True))
        for row in zip(*columns, strict=True)
    ]


@styled
def panels(
    rows: int = 1,
    columns: int = 1,
    titles: Sequence[str] = (),
    *,
    width: float | None = None,
    height: float = 2.0,
    sharey: bool = False,
) -> tuple[Figure, tuple[Axes, ...]]:
    """A figure of rows × columns panels, read line by line; `height` is one panel's, in inches.

    One column of panels is as wide as a paper's column, more are as wide as its page.
    """
    size = (width or (COLUMN if columns == 1 else PAGE), height * rows + 0.3)
    fig, axes = plt.subplots(rows, columns, figsize=size, sharey=sharey, squeeze=False)
    for ax in axes.flat:
        ax.tick_params(which="both", width=0.6, labelsize=7, labelfontfamily="DejaVu Sans")
        ax.grid(True, which="major", linewidth=0.4, alpha=0.35)
        ax.set_axisbelow(True)
    for ax, title in zip(axes.flat, titles, strict=False):
        ax.set_title(title, loc="left")
    return fig, tuple(axes.flat)


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


def chosen(rows: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """The rows of one panel."""
    return rows[np.logical_and.reduce([rows[c] == v for c, v in panel.where.items()])]


def laws(panel: Panel) -> Sequence[tuple[str, Callable]]:
    """The theory of a panel: pairs of words and a law, however many were given."""
    return [panel.theory] if panel.theory and callable(panel.theory[-1]) else panel.theory


def lawful(panel: Panel) -> list[tuple]:
    """The dashes of a panel's theory: a kind for each of its words."""
    words = list(dict.fromkeys(name for name, _ in laws(panel)))
    return [_LAWFUL[words.index(name) % len(_LAWFUL)] for name, _ in laws(panel)]


@styled
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
    boxed = [chosen(rows, panel) for panel in wanted if panel.cells]
    limits = shades(pd.concat(boxed)) if boxed else None
    for panel, ax in zip(wanted, axes, strict=False):
        some = chosen(rows, panel)
        if panel.cells:
            cells(some, ax, limits, outlines=panel.outlines, equal=panel.equal)
            continue
        if panel.bars:
            groups(some, panel.x, panel.series, ax, log="y" in panel.log)
        else:
            look = dict(at=panel.at, log=panel.log, every=panel.every)
            curves(some, panel.x, panel.series, ax, **look)
        printed(panel.printed, ax)
        for (words, law), dashes in zip(laws(panel), lawful(panel), strict=True):
            theory(law, ax, words, dashes)
        if panel.mark is not None:
            ax.axvline(panel.mark, color="0.4", linewidth=0.7, zorder=0)
    for ax in axes[len(wanted) :]:
        ax.remove()
    return legend(fig)


@styled
def curves(
    rows: pd.DataFrame,
    x: str,
    series: str,
    ax: Axes,
    *,
    value: str = "value",
    at: str | None = None,
    log: str = "xy",
    every: int = 1,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Axes:
    """One line a series: the mean of `value` over seeds against `x`, with its 95 % interval.

    Seeds are averaged at each value of `at`, which is `x` unless x itself varies with the seed (such
    as `released`). `log` names the logarithmic axes: "", "x", "y" or "xy". Only one in `every`
    points has a mark, where lines are many. Rows of one metric only.
    """
    if rows.empty:
        raise ValueError("there are no rows to draw")
    what = measured(rows, value)
    for i, (name, group) in enumerate(rows.groupby(series, sort=False)):
        _curve(group, x, at or x, value, name, ax, "y" in log, (i % every, every))
    _label(ax, "x", x, "x" in log, xlabel)
    _label(ax, "y", what, "y" in log, ylabel)
    _crop(ax, what)
    if "x" not in log:  # no ticks between whole numbers
        ax.xaxis.get_major_locator().set_params(integer=bool((rows[x] % 1 == 0).all()))
    return ax


def groups(
    rows: pd.DataFrame,
    x: str,
    series: str,
    ax: Axes,
    *,
    value: str = "value",
    log: bool = True,
) -> Axes:
    """Bars in groups: the mean of `value` over seeds, with its 95 % interval.

    Names along `x` come as the rows have them, numbers the largest first. On a logarithmic axis a bar
    has no length of its own: all begin at a third of the least.
    """
    if rows.empty:
        raise ValueError("there are no rows to draw")
    what, places = measured(rows, value), list(rows[x].unique())
    named = isinstance(places[0], str)
    places = places if named else sorted(places, reverse=True)
    found = list(rows.groupby(series, sort=False))
    floor = rows.groupby([series, x])[value].mean().min() / 3 if log else 0.0
    width = 0.8 / len(found)
    for i, (name, group) in enumerate(found):
        points = intervals(group.assign(value=group[value].astype(float)), x)
        beside = np.array([places.index(at) for at in points.index]) + (i + 0.5) * width - 0.4
        low, mean, high = (points[c].to_numpy() for c in ("low", "mean", "high"))
        ax.bar(
            beside,
            mean - floor,
            width,
            floor,
            color=_look(name, ax)[0],
            edgecolor="white",
            linewidth=0.6,
            hatch=_HATCHES[i % len(_HATCHES)],
            yerr=np.nan_to_num([mean - low, high - mean], posinf=0),  # one seed
            error_kw=dict(elinewidth=0.8, ecolor="#333333"),
            label=name,
        )
    words = [at.replace(", ", ",\n") if named else f"{at:g}" for at in places]
    ax.set_xticks(range(len(places)), words)
    _label(ax, "y", what, log, None)
    ax.set(xlabel="" if named else LABELS.get(x, x), ylim=(floor, None))
    _crop(ax, what)
    ax.grid(False, axis="x")
    return ax


def _crop(ax: Axes, what: str) -> None:
    """From 0 to 1, for all panels alike: the band of a mean of few seeds may leave that range."""
    if what in _FROM_0_TO_1 and ax.get_yscale() == "linear":
        ax.set_ylim(min(0, max(ax.get_ylim()[0], -0.05)), 1.05)


def measured(rows: pd.DataFrame, value: str = "value") -> str:
    """What the column `value` holds: the rows' one metric, or what the column is called."""
    if value != "value" or "metric" not in rows:
        return value
    metrics = rows.metric.unique()
    if len(metrics) > 1:
        raise ValueError(f"rows mix the metrics {', '.join(metrics)}: choose one a panel")
    return metrics[0]


def _curve(
    group: pd.DataFrame,
    x: str,
    at: str,
    value: str,
    name: str,
    ax: Axes,
    log: bool,
    marks=(0, 1),
) -> None:
    points = intervals(group.assign(value=group[value].astype(float)), at)
    points = points.assign(x=group.groupby(at)[x].mean()).sort_values("x")
    color, marker, dashes = _look(name, ax)
    approximate = "delta" in group and group.delta.max() > 0
    above = points["mean"] > 0
    ax.plot(
        points.x,
        points["mean"].where(above) if log and above.any() else points["mean"],  # with gaps
        color=color,
        marker=marker if len(points) < CROWDED else "",
        markevery=marks,
        linestyle=dashes,
        markerfacecolor="white" if approximate else color,
        label=name,
    )
    bounded = points[np.isfinite(points.low)]
    with _view(ax):
        ax.fill_between(
            bounded.x, bounded.low, bounded.high, color=color, alpha=0.2, linewidth=0, zorder=1
        )
    for end in (
        ("high",) if log else ("low", "high")
    ):  # low may be <= 0, and has no place on a log
        ax.update_datalim(bounded[["x", end]])


@contextmanager
def _view(ax: Axes) -> Iterator[None]:
    """What is drawn meanwhile does not move the limits of the axes."""
    kept = ax.dataLim.frozen()
    yield
    ax.dataLim.set(kept)


def _look(name: str, ax: Axes):
    return look(name, [str(line.get_label()) for line in ax.lines])


def look(name: str, drawn: Sequence[str]) -> tuple[str, str, Any]:
    """Colour, marker and dashes of a series; one like those `drawn` already gets other dashes."""
    words, drawn = str(name).split(",")[0], [label.split(",")[0] for label in drawn]
    if words not in LOOKS:
        strange = list(dict.fromkeys(w for w in drawn if w not in LOOKS and w[:1] != "_"))
        place = strange.index(words) if words in strange else len(strange)
        color, marker = _SPARE[place % len(_SPARE)]
    else:
        color, marker = LOOKS[words]
    again = drawn.count(words)
    dashes = ":" if words in _DOTTED and not again else _DASHES[again % len(_DASHES)]
    return color, marker, dashes


@styled
def bars(
    rows: pd.DataFrame,
    names: str,
    ax: Axes,
    *,
    value: str = "value",
    printed: Iterable[Printed] = (),
    log: bool = False,
    label: str | None = None,
) -> Axes:
    """One horizontal bar a row, first on top; brackets are what the paper prints at that name.

    On a logarithmic axis, where the length of a bar says nothing, a mark stands for it.
    """
    places = {name: i for i, name in enumerate(rows[names])}
    color = LOOKS["one-sided filter"][0]
    if log:
        ax.plot(rows[value], [*places.values()], "o", color=color, markersize=7, label="ours")
    else:
        ax.barh([*places.values()], rows[value], height=0.6, color=color, label="ours")
    ax.set_yticks([*places.values()], [*places])
    ax.set_ylim(len(places) - 0.4, -0.6)
    ax.grid(False, axis="y")
    for point in printed:
        if point.at in places:
            _bracket(ax, point, places[point.at], "x")
    _label(ax, "x", measured(rows, value), log, label)
    return ax


@styled
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
    limits = limits or shades(rows)
    shade_ = shade(rows.value.to_numpy(float), limits)
    corners = rows[["x0", "y0", "x1", "y1"]].to_numpy(float)
    x0, y0, x1, y1 = corners.T
    boxes = np.stack([x0, y0, x1, y0, x1, y1, x0, y1], axis=1).reshape(-1, 4, 2)
    colors = mpl.colormaps[SHADES](np.nan_to_num(shade_))
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
    scale = mpl.cm.ScalarMappable(mpl.colors.LogNorm(*limits), SHADES)
    bar = ax.get_figure().colorbar(scale, ax=ax, location="bottom", shrink=0.8, aspect=30)
    bar.set_label(LABELS.get(measured(rows, "value"), measured(rows, "value")))
    bar.ax.xaxis.set_minor_formatter(NullFormatter())
    bar.ax.xaxis.set_major_formatter(FuncFormatter(_number))
    return ax


def shades(rows: pd.DataFrame) -> tuple[float, float]:
    """The ends of a logarithmic scale of shades: of what is above 0, four decades at most."""
    above = rows.value[rows.value > 0].astype(float)
    high = float(above.max()) if len(above) else 1.0
    low = max(float(above.min()) if len(above) else 0.1, high / 1e4)
    return (low, high) if low < high else (high / 10, high)


def shade(
    values: Float[np.ndarray, " n"], limits: tuple[float, float]
) -> Float[np.ndarray, " n"]:
    """Where values lie on the scale, 0 … 1; NaN at or below 0."""
    with np.errstate(all="ignore"):
        at = np.log(values / limits[0]) / np.log(limits[1] / limits[0])
    return np.where(values > 0, np.clip(at, 0, 1), np.nan)


@styled
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
    colours.ax.xaxis.set_major_formatter(FuncFormatter(_number))
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


@styled
def printed(points: Printed | Iterable[Printed], ax: Axes) -> Axes:
    """The paper's own numbers, in grey: a bracket at a place, a stripe where no place is printed."""
    for point in [points] if isinstance(points, Printed) else points:
        if point.at is not None:
            _bracket(ax, point, point.at, "y")
            continue
        grey = dict(color="0.6", alpha=0.25, linewidth=0, zorder=0, label="paper")
        flat = point.axis == "y"
        with _view(ax):
            if point.over:
                stripe = ax.fill_between if flat else ax.fill_betweenx
                stripe(point.over, point.low, point.high, **grey)
            else:
                (ax.axhspan if flat else ax.axvspan)(point.low, point.high, **grey)
    return ax


def _bracket(ax: Axes, point: Printed, at: float, along: str) -> None:
    middle = (point.low + point.high) / 2 if point.value is None else point.value
    arms = [[middle - point.low], [point.high - middle]]
    spot = (at, middle) if along == "y" else (middle, at)
    ax.errorbar(
        *spot,
        **{f"{along}err": arms},
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


@styled
def theory(law: Callable, ax: Axes, label: str = "theory", dashes: tuple = (5, 2)) -> Axes:
    """A dashed curve y = law(x) over the x that the panel shows; the view stays."""
    low, high = ax.get_xlim()
    x = (
        np.geomspace(low, high, 200)
        if ax.get_xscale() == "log"
        else np.linspace(low, high, 200)
    )
    view = ax.get_ylim()
    ax.plot(x, law(x), color="0.4", linestyle=(0, dashes), linewidth=0.9, zorder=1, label=label)
    ax.set(xlim=(low, high), ylim=view)
    return ax


def close(fig: Figure) -> None:
    """Forget a figure that is drawn."""
    plt.close(fig)


@styled
def legend(fig: Figure, columns: int | None = None) -> Figure:
    """One legend for all panels, below them: never over data. Labels that neighbours repeat go."""
    grid = {}
    for ax in fig.axes:
        if (spec := ax.get_subplotspec()) is None:  # a scale of colours
            continue
        grid[spec.rowspan.start, spec.colspan.start] = ax, ax.get_xlabel(), ax.get_ylabel()
    for (row, column), (ax, x, y) in grid.items():
        if x in grid.get((row + 1, column), ())[1:2]:
            ax.set_xlabel("")
        if y in grid.get((row, column - 1), ())[2:]:
            ax.set_ylabel("")
    known = {}
    for ax in fig.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    columns = columns or _columns([*known], fig.get_figwidth())
    fig.legend(
        known.values(),
        known.keys(),
        loc="outside lower center",
        ncols=min(columns, len(known)),
        frameon=False,
        handlelength=2.4,
        columnspacing=1.4,
    )
    return fig


def _columns(labels: list[str], inches: float) -> int:
    """As many columns as fit side by side; a letter takes about 0.065 inches, a line 0.5."""
    for columns in range(len(labels), 1, -1):
        blocks = [list(b) for b in np.array_split(labels, columns)]  # as legends fill columns
        if sum(0.5 + 0.065 * max(map(len, block)) for block in blocks) < inches:
            return columns
    return 1


def _label(ax: Axes, which: str, what: str, log: bool, label: str | None) -> None:
    """Name an axis, choose its scale, and give it ticks that can be read."""
    ax.set(**{f"{which}label": LABELS.get(what, what) if label is None else label})
    axis = getattr(ax, f"{which}axis")
    if log:
        ax.set(**{f"{which}scale": "log"})
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if _roomy(ax, which) else (1,)))
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(_percent if what in FRACTIONS else _number))
    elif what in FRACTIONS:
        axis.set_major_formatter(FuncFormatter(_percent))


def _roomy(ax: Axes, which: str) -> bool:
    """Whether a logarithmic axis has room for three labels a decade."""
    low, high = sorted(getattr(ax, f"{which}axis").get_data_interval())
    box, fig = ax.get_position(), ax.get_figure()
    inches = (
        box.width * fig.get_figwidth() if which == "x" else box.height * fig.get_figheight()
    )
    return low > 0 and 3 * log10(high / low) * {"x": 0.42, "y": 0.22}[which] < inches


def _percent(x: float, _=None) -> str:
    return f"{100 * x:.3g} %".replace("-", "−")


def _number(x: float, _=None) -> str:
    """2000, but 5·10⁴ and 10⁻³: short on an axis, and no mathtext."""
    if isnan(x) or x <= 0 or 0.01 <= x < 10_000:
        return f"{x:g}"
    power = int(np.floor(log10(x) + 1e-9))
    digits = f"{x / 10.0**power:.2g}"
    raised = "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return raised if digits == "1" else f"{digits}·{raised}"
