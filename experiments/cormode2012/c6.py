"""Appendix C.6 of Cormode et al. (2012): how many rows a count sketch should have. A count sketch adds each
count to one random bucket in each of its d rows. A row has w buckets.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: appendix C.6 and its Lemma 5.
Read    We compare with the text of the appendix, because the paper leaves out the study itself.
Open    The paper does not print the sizes of sketches. We use w from 10⁵ (as many buckets as other summaries
        have cells) to 10⁷, and keep either w or w·d fixed. Queries are single cells, and ranges of up to 10⁴
        cells, because a sketch has to visit each cell of a query. The estimates of the rows are combined by
        their mean, which is unbiased, or by their median. A bucket counts as much as a released cell,
        although a released cell also needs its position. The theoretical curves are `CountSketch.variance`,
        with ‖M‖₂² and the noise of all rows. Lemma 5 of the paper has ‖M‖₂ instead, and a sensitivity of 2d
        for a replaced unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import numpy as np

from experiments._fields import unprinted
from experiments.cormode2012.shared import ABSOLUTE, Counts, format_size, metric_panel
from workbench import DP, RandomRanges, Sweep
from workbench.compiled import pd
from workbench.datasets import GaussianSparse
from workbench.figures import Figure
from workbench.figures.fields import epsilon, queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import (
    CountSketch,
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
)
from workbench.trials.claims import Finding, check_lower, ratios, select
from workbench.trials.metrics import MeanAbsoluteError, MeanSquaredError
from workbench.value import format_number, value

THEORY = "theory"
SQUARED = "MeanSquaredError"
HELD = ("w·d", "w")
WIDTHS = (100_000, 1_000_000, 10_000_000)
MOST = 20_000_000  # w·d; larger sketches are left out
ESTIMATES = ("mean", "median")


# The variance of a count sketch of single cells, as Cormode et al. 2012 have it in appendix C.6.


def squares(data: GaussianSparse) -> float:
    """Return ‖M‖₂², the sum of the squared counts of a dataset."""
    return float(np.square(data.load().counts).sum())


def variance(data: GaussianSparse, epsilon: float, what: str, size: int) -> Callable:
    """Return a function that computes, for d rows, the variance of the mean of the rows' estimates of one
    cell. It is ‖M‖₂²/(w·d) + 2α/(1 − α)²/d with α = exp(−ε/d).

    `what` is the number that is fixed, "w·d" or "w", and `size` is its value.
    """
    row = CountSketch(DP(epsilon), width=size)
    total = squares(data)
    return np.vectorize(lambda d: row.variance(total * (d if what == "w·d" else 1), d) / d)


def parts(data: GaussianSparse, epsilon: float, widths: Sequence[int]) -> pd.DataFrame:
    """Return a data frame with the two parts of the variance of a sketch with one row: the part from
    collisions of cells in a bucket (a mean over cells), and the part from noise.
    """
    others = squares(data) * (1 - 1 / data.m)
    rows = []
    for width in widths:
        noise = CountSketch(DP(epsilon), width=width).variance(0, 1)
        rows += [
            {"width": width, "metric": "SketchingVariance", "value": others / width},
            {"width": width, "metric": "NoiseVariance", "value": noise},
        ]
    columns = {"panel": THEORY, "dataset": repr(data), "truth_public": True}
    return pd.DataFrame(rows).assign(**columns)


def by_depth(rows: pd.DataFrame, panel: str, estimate: str) -> pd.DataFrame:
    """Return the errors of single cells in one panel, for one way to combine the rows of a sketch. With one
    or two rows, the mean and the median are the same.
    """
    own = select(rows, panel=panel, metric=ABSOLUTE)
    return own[(own.estimate == estimate) | (own.depth <= 2)]


def held(what: str, size: int) -> str:
    """Return the name of the panel in which `w·d` or `w` is the same for all numbers of rows d."""
    return f"{what} = {format_size(size)}"


def noise_dominates(rows, level, width: int) -> Finding:
    """Check whether noise contributes more to the variance of a sketch with one row than collisions of cells
    do.
    """
    own = select(rows, panel="theory", width=width).set_index("metric").value
    noise, sketching = own["NoiseVariance"], own["SketchingVariance"]
    measured = f"{format_number(noise)} of noise, {format_number(sketching)} of sketching"
    return Finding(bool(noise > sketching), measured)


def one_row(rows, level, fixed: str, size: int, estimate: str) -> Finding:
    """Check whether a sketch with one row has smaller errors than sketches with more rows, if `w·d` or `w` is
    fixed.
    """
    errors = by_depth(rows, held(fixed, size), estimate)
    more = errors[errors.depth > 1]
    one = select(errors, depth=1).drop(columns="depth")
    against = ratios(more[["depth", "seed"]].merge(one, on="seed"), more, "depth")
    return check_lower(against, level)


@value
class C6(Counts, Figure):
    """Count sketches of several sizes with one or more rows. Sketches with one row are also compared with the
    other summaries of the paper.
    """

    title = "The count sketch, and how many rows it should have"
    page = "Cormode et al., ICDT 2012, appendix C.6, Lemma 5"
    quick = {"seeds": 3, "queries": 500}
    shown = ("depth", "width", "estimate", "size", "theta")
    columns = 3
    main = 2

    epsilon: float = epsilon(0.1)
    size: int = whole(100_000, "size s of the samples in (b)", unit="cells")
    widths: tuple[int, ...] = unprinted(WIDTHS, "w·d or w of the sketches", unit="buckets")
    depths: tuple[int, ...] = unprinted((1, 2, 4, 8, 16), "rows d of a sketch")
    sketches: tuple[int, ...] = unprinted(
        (10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000),
        "widths w in (a)",
        unit="buckets",
    )
    samples: tuple[int, ...] = unprinted(
        (10_000, 20_000, 50_000, 100_000), "sizes s in (a)", unit="cells"
    )
    thetas: tuple[int, ...] = unprinted(
        (20, 30, 40, 50, 60, 80, 100), "θ of filters in (a)", unit="counts"
    )
    theta: int = unprinted(50, "threshold θ of the filter in (b)", unit="counts")
    both_theta: int = unprinted(40, "threshold θ of filter-priority", unit="counts")
    ranges: tuple[int, ...] = unprinted(
        (1, 10, 100, 1000, 10_000), "lengths of ranges", unit="cells"
    )
    queries: int = queries(2000, "queries of each size (ten times as many of single cells)")
    seeds: int = seeds(40)

    def by_rows(self, what: str, size: int) -> list[CountSketch]:
        """Return count sketches with different numbers of rows, where `w·d` or `w` is fixed at `size`."""
        made = []
        for depth in self.depths:
            width = size // depth if what == "w·d" else size
            if width * depth <= MOST:
                how = dict(width=width, depth=depth)
                estimates = ESTIMATES if depth > 2 else ESTIMATES[:1]
                made += [CountSketch(DP(self.epsilon), estimate=x, **how) for x in estimates]
        return made

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: sketches by their number of rows, all summaries by their size, and all
        summaries by the length of ranges.
        """
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
            *(CountSketch(budget, width=width) for width in self.sketches),
            table,
            *(filtered(theta=theta) for theta in self.thetas),
            *(priority(size=size) for size in self.samples),
            *(both(size=size) for size in self.samples),
        ]
        by_range = [
            *(CountSketch(budget, width=width) for width in self.widths),
            table,
            filtered(theta=self.theta),
            priority(size=self.size),
            both(size=self.size),
        ]
        runs = {
            held(what, size): (self.by_rows(what, size), [*single, MeanSquaredError(cells)])
            for what in HELD
            for size in self.widths
        }
        runs |= {"size": (by_size, single), "range": (by_range, ranges)}
        return {panel: Sweep([self.data], *run, self.seeds) for panel, run in runs.items()}

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with the two parts of the theoretical variance. The column `target`
        contains the parameter that determines the size of a summary.
        """
        rows = super().rows(store)
        sketch = ", " + rows.estimate
        of_range = ", w = " + rows["width"].dropna().astype(int).map(format_size)
        rows["series"] += sketch.mask(rows.panel == "range", of_range).fillna("")
        filters = (rows.panel == "size") & (rows.mechanism == "HighPassFilter")
        target = rows["width"].fillna(rows["size"]).fillna(self.m)
        rows = rows.assign(target=target.mask(filters, rows.theta))
        theory = parts(self.data, self.epsilon, self.widths)
        return pd.concat([rows, theory], ignore_index=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels: absolute errors by size and by length of ranges, and squared errors of
        single cells with their theoretical curve.
        """
        of_depth = [
            metric_panel(
                f"one cell, {held(*x)}",
                held(*x),
                SQUARED,
                "depth",
                theory=("mean, theory", variance(self.data, self.epsilon, *x)),
            )
            for x in product(HELD, self.widths)
        ]
        return [
            metric_panel("one cell, d = 1", "size", ABSOLUTE, "released", at="target"),
            metric_panel("ranges, d = 1", "range", ABSOLUTE, "query_size"),
            *of_depth,
        ]
