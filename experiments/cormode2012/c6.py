"""Cormode et al. 2012, appendix C.6: the count sketch, and how many rows it should have.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: appendix C.6 and its Lemma 5.
Read    from the text; the study itself was left out of the paper.
Open    Sizes are not printed: w·d = 10⁵ buckets, as many as other summaries hold cells, and 10⁶, a
        "large w". Single cells are ranges of one; ranges of up to 10⁴ beside them, since a sketch
        visits each cell of a query. Rows are joined by their mean, which is unbiased and judged, or
        by their median. A bucket counts as much as a cell, though a cell is released with its place.
        Theory: `CountSketch.variance`, with ‖M‖₂² and the noise of all rows; Lemma 5 has ‖M‖₂, and a
        sensitivity of 2d for replacing a unit. It is the mean of squared errors, drawn in (a), (b).
Words   considerably worse = 3× the error of each of the filter, priority and filter-priority, with
        d = 1 and 10⁵ buckets, intervals apart, at three quarters of the sizes of ranges; d = 1 best =
        on single cells, less absolute error than every other d, at both sizes, intervals apart at
        three quarters of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

import numpy as np
import pandas as pd

from experiments.cormode2012.shared import ABSOLUTE, Counts, format_size, metric_panel
from workbench import DP, RandomRanges, Sweep, claims
from workbench.claims import MUCH, Finding, MissingPoints, Printed, format_number, mean_curve
from workbench.claims.old import Claim, all_of, check_lower
from workbench.figures import UNPRINTED, Figure
from workbench.figures.parameters import epsilon, queries, seeds, whole, wholes
from workbench.mechanisms import (
    CountSketch,
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
)
from workbench.metrics import MeanAbsoluteError, MeanSquaredError
from workbench.plots import Panel
from workbench.value import value

PAPER = {
    "depth": Printed("small values of d, such as d = 1", 1, 1, value=1, axis="x"),
    "theory": Printed("O(‖M‖₂/wd + d/ε²)", 0, inf),
}
SQUARED = "MeanSquaredError"
MEAN = "count sketch, mean"
OTHERS = ("filter", "priority", "filter-priority")
BY_DEPTH = ("depth", "depth, large")  # panels


def _error(rows, panel: str, series: str, x: str, metric: str = ABSOLUTE) -> pd.DataFrame:
    return mean_curve(rows, x, panel=panel, metric=metric, series=series)


def _one_row(rows) -> Finding:
    parts = {}
    ours = _error(rows, "range", MEAN, "query_size")
    for name in OTHERS:
        other = _error(rows, "range", name, "query_size")
        parts[f"{name} considerably better"] = check_lower(other, ours, times=MUCH)
    for panel in BY_DEPTH:
        error = _error(rows, panel, MEAN, "depth")
        more = error.loc[2:]
        if 1 not in error.index:
            raise MissingPoints("no sketch has one row")
        one = error.loc[[1] * len(more)].set_axis(more.index)
        size = rows[rows.panel == panel].target.iloc[0]
        parts[f"d = 1 best with {size:,.0f} buckets"] = check_lower(one, more)
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


@value
class C6(Counts, Figure):
    """Sketches of two sizes with more and more rows; of one row, beside other summaries."""

    title = "The count sketch, and how many rows it should have"
    page = "Cormode et al., ICDT 2012, appendix C.6, Lemma 5"
    quick = {"seeds": 5, "queries": 500}
    claims = CLAIMS
    shown = ("depth", "width", "estimate", "size", "theta")

    epsilon: float = epsilon(0.1)
    size: int = whole(100_000, "w·d of a sketch, s of samples", unit="cells", kind=UNPRINTED)
    large: int = whole(1_000_000, "w·d of a large sketch", unit="buckets", kind=UNPRINTED)
    depths: tuple[int, ...] = wholes((1, 2, 4, 8, 16), "d, rows of a sketch", kind=UNPRINTED)
    sketches: tuple[int, ...] = wholes(
        (10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000),
        "w of the sketches in (e)",
        unit="buckets",
        kind=UNPRINTED,
    )
    samples: tuple[int, ...] = wholes(
        (10_000, 20_000, 50_000, 100_000), "s in (e)", unit="cells", kind=UNPRINTED
    )
    thetas: tuple[int, ...] = wholes(
        (20, 30, 40, 50, 60, 80, 100), "θ of the filters in (e)", unit="counts", kind=UNPRINTED
    )
    theta: int = whole(50, "θ of the filter in (f)", unit="counts", kind=UNPRINTED)
    both_theta: int = whole(40, "θ of filter-priority", unit="counts", kind=UNPRINTED)
    ranges: tuple[int, ...] = wholes(
        (1, 10, 100, 1000, 10_000), "lengths of ranges", unit="cells", kind=UNPRINTED
    )
    queries: int = queries(2000, "queries of each size; ten times as many of single cells")
    seeds: int = seeds(40)

    def sketch(self, size: int, depth: int, estimate: str = "mean") -> CountSketch:
        """So many buckets in all."""
        budget = DP(self.epsilon)
        return CountSketch(budget, width=size // depth, depth=depth, estimate=estimate)

    def sweeps(self) -> dict[str, Sweep]:
        """Sketches by their rows, all summaries by their size, and by the length of ranges."""
        budget = DP(self.epsilon)
        table = GeometricHistogram(budget)
        filtered = partial(HighPassFilter, budget)
        priority = partial(PrioritySampling, budget)
        both = partial(PrioritySampling, budget, theta=self.both_theta)
        cells = RandomRanges(1, 10 * self.queries)
        single = [MeanAbsoluteError(cells)]
        longer = [RandomRanges(n, self.queries) for n in self.ranges if n > 1]
        ranges = single + [MeanAbsoluteError(workload) for workload in longer]
        by_size = [
            *(self.sketch(size, 1) for size in self.sketches),
            table,
            *(filtered(theta=theta) for theta in self.thetas),
            *(priority(size=size) for size in self.samples),
            *(both(size=size) for size in self.samples),
        ]
        by_range = [
            self.sketch(self.size, 1),
            table,
            filtered(theta=self.theta),
            priority(size=self.size),
            both(size=self.size),
        ]
        runs = {
            panel: (
                [self.sketch(size, d, how) for d in self.depths for how in ("mean", "median")],
                [*single, MeanSquaredError(cells)],
            )
            for panel, size in zip(BY_DEPTH, (self.size, self.large), strict=True)
        }
        runs |= {"size": (by_size, single), "range": (by_range, ranges)}
        return {panel: Sweep([self.data], *run, self.seeds) for panel, run in runs.items()}

    def rows(self, store) -> pd.DataFrame:
        """With `target`, the parameter that chose a summary's size."""
        rows = super().rows(store)
        rows["series"] += (", " + rows.estimate).fillna("")
        filters = (rows.panel == "size") & (rows.mechanism == "HighPassFilter")
        size = rows.panel.map(dict(zip(BY_DEPTH, (self.size, self.large), strict=True)))
        target = size.fillna(rows["width"]).fillna(rows["size"]).fillna(self.m)
        return rows.assign(target=target.mask(filters, rows.theta))

    def theory(self, size: int) -> tuple[str, Callable]:
        """The variance of the mean of d rows: ‖M‖₂²/(w·d) + 2α/(1 − α)²/d, α = exp(−ε/d).

        The noise of d rows is that of one row where a unit moves d counts.
        """
        squares = float(np.square(self.data.load().counts).sum())
        row = self.sketch(size, 1)
        return "mean, theory", np.vectorize(lambda d: row.variance(squares * d, d) / d)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Squared errors with their theory, absolute ones below."""
        small, large = BY_DEPTH
        size = f"w·d = {format_size(self.size)}"
        large_size = f"w·d = {format_size(self.large)}"
        by_rows = dict(x="depth", log="x")
        law = self.theory(self.size)
        large_law = self.theory(self.large)
        ranges = f"(f) ranges, d = 1, w = {format_size(self.size)}"
        return [
            metric_panel(f"(a) one cell, {size}", small, SQUARED, theory=law, **by_rows),
            metric_panel(
                f"(b) one cell, {large_size}", large, SQUARED, theory=large_law, **by_rows
            ),
            metric_panel(f"(c) one cell, {size}", small, ABSOLUTE, **by_rows),
            metric_panel(f"(d) one cell, {large_size}", large, ABSOLUTE, **by_rows),
            metric_panel("(e) one cell, d = 1", "size", ABSOLUTE, "released", at="target"),
            metric_panel(ranges, "range", ABSOLUTE, "query_size"),
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The best number of rows, beside the paper's; and the theory, beside what is measured."""
        lines = []
        for panel, size in zip(BY_DEPTH, (self.size, self.large), strict=True):
            for estimate in ("mean", "median"):
                error = _error(rows, panel, f"count sketch, {estimate}", "depth")["mean"]
                best = error.idxmin()
                measured = f"d = {best:g}, at {format_number(error[best])} counts"
                measured += f" (d = {error.index[-1]:g}: {format_number(error.iloc[-1])})"
                finding = Finding(PAPER["depth"].covers(best), measured)
                lines.append((f"{size:,} buckets, {estimate}: best d", PAPER["depth"], finding))
            square = _error(rows, panel, MEAN, "depth", SQUARED)["mean"]
            ratio = square / self.theory(size)[1](square.index.to_numpy(float))
            finding = Finding(None, f"{ratio.min():.3f} … {ratio.max():.3f}")
            lines.append(
                (f"{size:,} buckets: squared error / theory", PAPER["theory"], finding)
            )
        return claims.compare_with_paper(*lines)
