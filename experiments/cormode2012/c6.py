"""Cormode et al. 2012, appendix C.6: the count sketch, and how many rows it should have.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: appendix C.6 and its Lemma 5.
Read    from the text; the study itself was left out of the paper.
Open    Data, queries and sizes are not printed: the data of section 4.1 (m = 10⁶, ρ = 0.1, μ = 100,
        σ = 20), ε = 0.1, w·d = 10⁵ buckets, as many as other summaries hold cells, and 10⁶, a "large
        w". Single cells are ranges of one; ranges of up to 10⁴ beside them, since a sketch visits
        each cell of a query. Rows are joined by their mean, which is unbiased and judged, or by
        their median.
        The filter has θ = 50, filter-priority θ = 40, as in Figure 3. A bucket counts as much as a
        cell, though a cell is released with its place.
        Theory: `CountSketch.variance`, with ‖M‖₂² and the noise of all rows; Lemma 5 has ‖M‖₂, and a
        sensitivity of 2d for replacing a unit. It is the mean of squared errors, drawn in (a), (b).
        The number of queries is not printed: 500 a size (quick), 2000 (paper).
Words   considerably worse = 3× the error of each of the filter, priority and filter-priority, with
        d = 1 and 10⁵ buckets, intervals apart, at three quarters of the sizes of ranges; d = 1 best =
        on single cells, less absolute error than every other d, at both sizes, intervals apart at
        three quarters of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np
import pandas as pd

from experiments.cormode2012.fig2 import BUDGET
from workbench import RandomRanges, Sweep, Trial, claims, run
from workbench.claims import (
    MUCH,
    Claim,
    Finding,
    Printed,
    all_of,
    check_lower,
    format_number,
    mean_curve,
)
from workbench.datasets import GaussianSparse
from workbench.mechanisms import (
    CountSketch,
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
)
from workbench.metrics import MeanAbsoluteError
from workbench.plots import Panel, name_series

TITLE = "The count sketch, and how many rows it should have"
PAGE = "Cormode et al., ICDT 2012, appendix C.6, Lemma 5"
SEEDS = {"quick": 5, "paper": 40}
QUERIES = {"quick": 500, "paper": 2000}
DEPTHS = (1, 2, 4, 8, 16)
RANGES = (1, 10, 100, 1000, 10_000)
SIZE = 100_000
LARGE = 1_000_000
SKETCHES = (10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
SAMPLES = (10_000, 20_000, 50_000, 100_000)
THETAS = (20, 30, 40, 50, 60, 80, 100)

DATA = GaussianSparse()
FILTER = HighPassFilter(BUDGET, theta=50)
PRIORITY = PrioritySampling(BUDGET, size=SIZE)
BOTH = PrioritySampling(BUDGET, size=SIZE, theta=40)
OTHERS = ("filter", "priority", "filter-priority")

PAPER = {
    "depth": Printed("small values of d, such as d = 1", 1, 1, value=1, axis="x"),
    "theory": Printed("O(‖M‖₂/wd + d/ε²)", 0, inf),
}


def sketch(size: int, depth: int, estimate: str = "mean") -> CountSketch:
    """So many buckets in all."""
    return CountSketch(BUDGET, width=size // depth, depth=depth, estimate=estimate)


def theory(size: int) -> tuple[str, Callable]:
    """The variance of the mean of d rows, on DATA: ‖M‖₂²/(w·d) + 2α/(1 − α)²/d, α = exp(−ε/d).

    The noise of d rows is that of one row where a unit moves d counts.
    """
    squares = float(np.square(DATA.load().counts).sum())
    row = sketch(size, 1)
    return "mean, theory", np.vectorize(lambda d: row.variance(squares * d, d) / d)


def _panel(title: str, panel: str, metric: str, x: str, **how) -> Panel:
    return Panel(title, {"panel": panel, "metric": metric}, x, **how)


ABSOLUTE = "MeanAbsoluteError"
SQUARED = "MeanSquaredError"
SMALLER = f"depth, {SIZE:,}"
LARGER = f"depth, {LARGE:,}"
BY_DEPTH = {SMALLER: SIZE, LARGER: LARGE}
PANELS = (
    _panel("(a) one cell, w·d = 10⁵", SMALLER, SQUARED, "depth", log="x", theory=theory(SIZE)),
    _panel("(b) one cell, w·d = 10⁶", LARGER, SQUARED, "depth", log="x", theory=theory(LARGE)),
    _panel("(c) one cell, w·d = 10⁵", SMALLER, ABSOLUTE, "depth", log="x"),
    _panel("(d) one cell, w·d = 10⁶", LARGER, ABSOLUTE, "depth", log="x"),
    _panel("(e) one cell, d = 1", "size", ABSOLUTE, "released", at="target"),
    _panel("(f) ranges, d = 1, w = 10⁵", "range", ABSOLUTE, "query_size"),
)


def rows(profile: str, store) -> pd.DataFrame:
    """All panels, in a column `panel`; `target` is the parameter that chose a summary's size."""
    seeds = SEEDS[profile]
    count = QUERIES[profile]
    single = [MeanAbsoluteError(RandomRanges(1, 10 * count))]
    ranges = [MeanAbsoluteError(RandomRanges(n, count)) for n in RANGES[1:]]
    sketches = {
        panel: [sketch(size, depth, how) for depth in DEPTHS for how in ("mean", "median")]
        for panel, size in BY_DEPTH.items()
    }
    by_size = [
        *(sketch(size, 1) for size in SKETCHES),
        GeometricHistogram(BUDGET),
        *(HighPassFilter(BUDGET, theta=theta) for theta in THETAS),
        *(replace(PRIORITY, size=size) for size in SAMPLES),
        *(replace(BOTH, size=size) for size in SAMPLES),
    ]
    by_range = [sketch(SIZE, 1), GeometricHistogram(BUDGET), FILTER, PRIORITY, BOTH]
    sweeps = {panel: Sweep([DATA], some, single, seeds) for panel, some in sketches.items()}
    sweeps["size"] = Sweep([DATA], by_size, single, seeds)
    sweeps["range"] = Sweep([DATA], by_range, single + ranges, seeds)
    frames = [run(sweep, store).assign(panel=panel) for panel, sweep in sweeps.items()]
    for panel, some in sketches.items():
        frames.append(squared_errors(some, seeds, 10 * count, panel))
    shown = ["depth", "width", "estimate", "size", "theta"]
    frame = name_series(pd.concat(frames, ignore_index=True), shown=shown)
    frame["series"] += (", " + frame.estimate).fillna("")
    filters = (frame.panel == "size") & (frame.mechanism == "HighPassFilter")
    target = (frame["width"] * frame.depth).fillna(frame["size"]).fillna(DATA.m)
    return frame.assign(target=target.mask(filters, frame.theta))


def squared_errors(sketches: list, seeds: int, count: int, panel: str) -> pd.DataFrame:
    """Mean squared errors on single cells, which the theory is about; not kept in the store."""
    table = DATA.load()
    cells = RandomRanges(1, count)
    workload = cells.on(table.domain)
    exact = table.answer(workload)
    errors = []
    for mechanism in sketches:
        for seed in range(seeds):
            trial = Trial(DATA, mechanism, seed)
            squares = np.square(trial.release(table).answer(workload) - exact)
            row = dict(depth=mechanism.depth, estimate=mechanism.estimate, seed=seed)
            errors.append(row | dict(trial=repr(trial), value=squares.mean()))
    return pd.DataFrame(errors).assign(
        panel=panel,
        metric=SQUARED,
        mechanism="CountSketch",
        mechanism_name=CountSketch.series,
        dataset=repr(DATA),
        truth_public=DATA.truth_public,
        workload=repr(cells),
        query_size=1,
        epsilon=BUDGET.epsilon,
    )


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """The best number of rows, beside the paper's; and the theory, beside what is measured."""
    lines = []
    for panel, size in BY_DEPTH.items():
        for estimate in ("mean", "median"):
            error = _error(rows, panel, f"count sketch, {estimate}", "depth")["mean"]
            best = error.idxmin()
            measured = f"d = {best:g}, at {format_number(error[best])} counts"
            measured += f" (d = {DEPTHS[-1]}: {format_number(error.iloc[-1])})"
            finding = Finding(PAPER["depth"].covers(best), measured)
            lines.append((f"{size:,} buckets, {estimate}: best d", PAPER["depth"], finding))
        square = mean_curve(
            rows, "depth", panel=panel, metric=SQUARED, series="count sketch, mean"
        )
        ratio = square["mean"] / theory(size)[1](square.index.to_numpy(float))
        finding = Finding(None, f"{ratio.min():.3f} … {ratio.max():.3f}")
        lines.append((f"{size:,} buckets: squared error / theory", PAPER["theory"], finding))
    return claims.compare_with_paper(*lines)


def _error(rows, panel: str, series: str, x: str) -> pd.DataFrame:
    return mean_curve(rows, x, panel=panel, metric=ABSOLUTE, series=series)


def _one_row(rows) -> Finding:
    parts = {}
    ours = _error(rows, "range", "count sketch, mean", "query_size")
    for name in OTHERS:
        other = _error(rows, "range", name, "query_size")
        parts[f"{name} considerably better"] = check_lower(other, ours, times=MUCH)
    for panel, size in BY_DEPTH.items():
        error = _error(rows, panel, "count sketch, mean", "depth")
        more = error.iloc[1:]
        one = error.loc[[1] * len(more)].set_axis(more.index)
        parts[f"d = 1 best with {size:,} buckets"] = check_lower(one, more)
    return all_of(parts)


CLAIMS = (
    Claim(
        "c-c6-1",
        "The error of the private count sketch is considerably higher than that of sampling or "
        "filtering; d = 1 is best.",
        _one_row,
        "A priority sample of as many cells, most of them noise, is 4× better on single cells, only "
        "2× on ranges. Filters, with sampling or without, are better by 8× and more; one row is best.",
    ),
)
