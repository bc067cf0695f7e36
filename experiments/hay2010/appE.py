"""Appendix E of Hay et al. (2010): errors of a noisy tree compared with those of Blum et al.'s equi-depth
histogram, whose buckets contain equal numbers of records.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: section 6 and Appendix E. The other method is from Blum,
        Ligett & Roth, STOC 2008. Hay et al. only mention its binary search.
Read    We read the text, from which the formulas are missing in our copy. There is no figure. The file
        tests/reference/equi_depth.py says what the text determines and what it does not. We use the procedure
        in this file.
Open    The ends of buckets are found by binary search on noisy counts, starting from the last end. Each of
        the b buckets takes ⌈log₂n⌉ comparisons, so the noise of a count has scale b·⌈log₂n⌉/α. The number of
        records N is public, and the depth of a bucket is N/b. The cells after b searches form one more
        bucket. A bucket stands for `depth` records that are spread evenly over its cells. A bucket usually
        ends with a cell that contains too many records, and these errors add up over the buckets. The variant
        "quantiles" searches from the first cell for multiples of `depth` instead, which gives smaller errors.
        The paper does not print b. For each N and n, we take the value from 4 to 128 with the smallest error.
        We choose it with the true data, which also favours the method. The data are N records in two waves
        over the cells. The consistent tree H̄ (with negative counts) is not in the paper.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from math import ceil, inf, log, log2, sqrt
from typing import Any

import numpy as np

from experiments._fields import unprinted
from experiments.hay2010.data import NOISY_TREE, TREE_NOT_ZEROED, Waves, attributes, beside
from experiments.hay2010.ranges import BEST
from workbench import DP, Sweep, noise
from workbench.compiled import pd
from workbench.data import SparseTable
from workbench.estimates import Histogram
from workbench.estimates.release import Release
from workbench.figures import Figure
from workbench.figures.fields import epsilon, number, seeds, whole
from workbench.figures.plots import Panel
from workbench.inference.consistency import tree_sums
from workbench.mechanisms import HierarchicalHistogram
from workbench.mechanisms.protocol import Mechanism, budget_field, sensitivity
from workbench.queries import level_sizes
from workbench.trials import claims
from workbench.trials.claims import (
    EVERYWHERE,
    Finding,
    MissingPoints,
    check_between,
    check_lower,
    check_similar,
    decide,
    paired_ratios,
)
from workbench.trials.metrics.answers import refuse_private
from workbench.value import format_number, parameter, sealed, value

EQUI_DEPTH = "equi-depth"
QUANTILES = "equi-depth, quantiles"
DELTA = 0.1
CELLS = 1024
OTHERS = (EQUI_DEPTH, QUANTILES)
BOUND = "bound"
RIVAL = "equi-depth, the better"
MORE = float(np.nextafter(1, 2))


# Blum, Ligett & Roth's equi-depth histogram, as far as Hay et al. 2010, Appendix E, determines it.


@value
class EquiDepth(Mechanism):
    """Mechanism that releases an equi-depth histogram. Each bucket stands for equally many records, and its
    end is found by binary search on noisy counts.

    The number of records is public. Each of the `buckets` searches asks for at most ⌈log₂n⌉ counts, and these
    counts share ε equally. A search starts from the end of the last bucket. With `quantiles` = True, it
    starts from the first cell, and looks for a multiple of the depth. The cells after all searches form one
    more bucket.
    """

    budget: DP = budget_field()
    buckets: int = parameter(16, 1, integer=True, doc="how many searches")
    quantiles: bool = parameter(False, choices=(True, False), doc="count from the first cell")

    @property
    def series(self) -> str:
        """Name of the mechanism in figures."""
        return QUANTILES if self.quantiles else EQUI_DEPTH

    def __call__(self, table: SparseTable, rng=None) -> Release:
        """Return a release with the estimated counts of all cells. The depth of each bucket is spread evenly
        over its cells.
        """
        n = table.domain.size
        depth = table.total / self.buckets
        asked = self.buckets * ceil(log2(n))
        drawn, _, receipt = (
            noise.add_noise(  # before it is known what is asked: it does not matter
                np.zeros(asked, np.int64),
                l1=asked * Fraction(sensitivity(table)),
                epsilon=self.budget.epsilon,
                law="laplace",
                rng=rng,
            )
        )
        noises = iter(drawn.tolist())
        below = np.concatenate([[0], np.cumsum(table.dense())]).tolist()
        ends = [0]
        while ends[-1] < n and len(ends) <= self.buckets:
            start = 0 if self.quantiles else ends[-1]
            least = len(ends) * depth if self.quantiles else depth
            low = ends[-1] + 1
            high = n
            while low < high:
                middle = (low + high) // 2
                if below[middle] - below[start] + next(noises) >= least:
                    high = middle
                else:
                    low = middle + 1
            ends.append(low)
        if ends[-1] < n:
            ends.append(n)
        width = np.diff(ends)
        values = sealed(np.repeat(depth / width, width))
        return Release(Histogram(table.domain, values), (receipt,), self, table.bound)


@value
class WorstError:
    """Metric: largest absolute error of all ranges."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Return the largest absolute error, as a count of records. The estimate is a histogram or a complete
        binary tree.
        """
        refuse_private(truth)
        if isinstance(estimate, Histogram):
            errors = estimate.values - truth.dense()
            sums = np.concatenate([[0.0], np.cumsum(errors)])
            return float(sums.max() - sums.min())
        errors = estimate.values - tree_sums(truth.dense(), estimate.branching)
        return _largest_of_tree(errors, level_sizes(truth.domain.size, estimate.branching))


def _largest_of_tree(errors: np.ndarray, sizes: list[int]) -> float:
    """Return the largest absolute error of all ranges, if a range is the sum of the fewest nodes of a
    complete binary tree.

    The computation goes from the leaves upwards. A range across two children consists of a suffix of the
    first child and a prefix of the second. So its error is the sum of the errors of a suffix and of a prefix.
    If both are whole children, the range is the parent, which has an error of its own.
    """
    if any(b != 2 * a for a, b in pairwise(sizes)):
        raise ValueError("WorstError of a tree needs a complete binary one")
    ends = np.cumsum(sizes)
    largest = 0.0
    for sign in (1.0, -1.0):
        leaves = sign * errors[ends[-1] - sizes[-1] :]
        prefix = np.full(len(leaves), -np.inf)  # the largest error of proper prefixes, by node
        suffix = prefix
        whole = leaves
        largest = max(largest, leaves.max())
        for end, size in zip(ends[-2::-1], sizes[-2::-1], strict=True):
            of_children = ([x[i::2] for x in (prefix, suffix, whole)] for i in (0, 1))
            (prefix_l, suffix_l, whole_l), (prefix_r, suffix_r, whole_r) = of_children
            across = np.maximum(
                suffix_l + np.maximum(prefix_r, whole_r),
                np.maximum(suffix_l, whole_l) + prefix_r,
            )
            prefix = np.maximum.reduce([prefix_l, whole_l, whole_l + prefix_r])
            suffix = np.maximum.reduce([suffix_r, whole_r, whole_r + suffix_l])
            whole = sign * errors[end - size : end]
            largest = max(largest, across.max(), whole.max())
    return float(largest)


# What decides each statement.


def _with_rival(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the worst errors of the noisy tree H̃, and, for each N and n, those of the equi-depth histogram
    with the smallest mean error.
    """
    best = rows[(rows.panel == "worst") & rows.series.isin(OTHERS)]
    means = best.groupby(["cells", "records", "series"]).value.transform("mean")
    least = means.groupby([best.cells, best.records]).transform("min")
    ours = rows[(rows.panel == "worst") & (rows.series == NOISY_TREE)]
    columns = ["series", "cells", "records", "seed", "value"]
    return pd.concat([ours, best[means == least].assign(series=RIVAL)])[columns]


def _here(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results on the domain of 1024 cells."""
    return rows[rows.cells == CELLS]


def least_records(
    rows: pd.DataFrame, accuracy: float, share: float = 1 - DELTA, level: float | None = None
) -> float:
    """Return the smallest number of records N for which the given share of the samples has a worst error of
    at most accuracy·N. It is infinite if no tested N is large enough.

    `rows` contains worst errors for several N. With a `level`, the result is a confidence bound instead of an
    estimate. It is wrong with a probability of at most 1 − |level|. If `level` is positive, the bound is an
    upper bound on N. If it is negative, the bound is a lower bound.
    """
    grouped = rows.groupby("records").value
    within = grouped.apply(lambda own: _quantile(np.sort(own), share, level))
    x = np.log(within.index.to_numpy(float))
    with np.errstate(divide="ignore"):
        y = np.log(within.to_numpy())
    over = np.flatnonzero(y > np.log(accuracy))
    if not len(over):
        return float(np.exp(x[0]))
    if over[-1] == len(y) - 1:
        return inf
    pair = slice(over[-1], over[-1] + 2)
    if not np.isfinite(y[pair]).all():
        return float(np.exp(x[over[-1] + 1]))
    return float(np.exp(np.interp(-np.log(accuracy), -y[pair], x[pair])))


def _quantile(ordered: np.ndarray, share: float, level: float | None) -> float:
    """Return a quantile of sorted samples. With a level, return an end of its confidence interval, which is
    one of the samples.
    """
    from scipy.special import bdtr

    if level is None:
        return float(np.quantile(ordered, share))
    n = len(ordered)
    chances = bdtr(np.arange(n + 1), n, share)  # so many samples or fewer are below it
    if level > 0:  # too high seldom fails: the sample that surely lies above
        above = np.flatnonzero(chances[:n] >= level)
        return float(ordered[above[0]]) if len(above) else inf
    below = np.flatnonzero(chances <= 1 + level)
    return float(ordered[below[-1]]) if len(below) else 0.0


def check_smaller(rows, level: float, accuracy: float) -> Finding:
    """Check whether the noisy tree H̃ needs fewer records than the equi-depth histogram for the same
    accuracy.

    The theoretical bound on the error of H̃ also gives an upper bound on the number of records that H̃ needs.
    """
    own = _here(_with_rival(rows))
    if own.empty:
        raise MissingPoints(f"no rows of {CELLS} cells")
    shares = own.assign(value=own.value / own.records)
    ours = shares[shares.series == NOISY_TREE]
    other = shares[shares.series == RIVAL]
    points = ours.records.nunique()
    bound = rows[(rows.panel == BOUND) & (rows.cells == CELLS)].value.max()
    each = 1 - (1 - level) / (4 * points)
    highest = np.fmin(least_records(ours, accuracy, level=each), bound / accuracy)
    lowest = least_records(other, accuracy, level=-each)
    least = least_records(ours, accuracy, level=-each)
    most = least_records(other, accuracy, level=each)
    estimates = (least_records(x, accuracy) for x in (ours, other))
    beyond = f"more than {format_number(own.records.max())}"
    numbers = [beyond if x == inf else format_number(x) for x in estimates]
    words = f"{' against '.join(numbers)} records"
    return Finding(decide(highest < lowest, least > most), words, runs=np.nan)


def check_flat(rows, level: float) -> Finding:
    """Check whether the error of the noisy tree H̃ is the same for the largest and the smallest number of
    records.
    """
    own = _here(_with_rival(rows))
    return check_similar(claims.ends(own, NOISY_TREE, "records"), level, EVERYWHERE)


def check_rises(rows, level: float, series: str) -> Finding:
    """Check whether the error of an equi-depth histogram increases with each larger number of records, for
    one kind of search.
    """
    own = _here(rows[(rows.panel == "worst") & (rows.series == series)])
    kind = own.drop(columns=["buckets", "trial", "dataset"], errors="ignore")
    steps = claims.steps(kind, series, "records")
    growth = claims.ends(kind, series, "records").at(0.95).estimate.iloc[0]
    power = np.log(growth) / np.log(kind.records.max() / kind.records.min())
    finding = check_between(steps, level, low=MORE, words="higher")
    return beside(finding, f"as N to the {power:.2g}")


def check_lower_error(rows, level: float) -> Finding:
    """Check whether the noisy tree H̃ has a smaller error than the equi-depth histogram."""
    own = _here(_with_rival(rows))
    return check_lower(paired_ratios(own, NOISY_TREE, RIVAL, "records"), level)


def check_domains(rows, level: float) -> Finding:
    """Check whether the error of the equi-depth histogram grows less than that of the noisy tree H̃, from the
    smallest domain to the largest.
    """
    own = _with_rival(rows)

    def growth(series: str) -> pd.DataFrame:
        here = own[own.series == series]
        by_seed = here.pivot(index="seed", columns="cells", values="value")
        ratio = (by_seed.iloc[:, -1] / by_seed.iloc[:, 0]).rename("value").reset_index()
        return ratio.assign(records="numbers of records N")

    theirs, ours = map(growth, (RIVAL, NOISY_TREE))
    finding = check_lower(claims.ratios(theirs, ours, "records"), level)
    words = [f"{format_number(np.exp(np.log(x.value).mean()))}×" for x in (theirs, ours)]
    return beside(finding, f"equi-depth grows {words[0]}, H̃ {words[1]}")


@value
class AppE(Figure):
    """Worst error of all ranges, for a noisy tree and an equi-depth histogram: by the number of records, as a
    share of the records, and by the size of the domain.
    """

    title = "A noisy tree against an equi-depth histogram, over the size of the database"
    headline = (
        "A noisy tree's error does not grow with the database; an equi-depth histogram's does"
    )
    rests_on = ("h-e.2", "h-e.3")
    page = "Hay et al., PVLDB 2010, section 6 and Appendix E"
    quick = {"seeds": 5}
    columns = 3
    height = 2.2
    sharey = True

    epsilon: float = epsilon(1.0, "privacy parameter α")
    delta: float = number(DELTA, "probability of a range that misses", 1e-9, 0.999)
    cells: int = whole(1024, "n of the first two panels", 2, 2**16, unit="cells")
    domains: tuple[int, ...] = unprinted(
        (256, 1024, 4096, 16384), "domain sizes n, powers of two", 2, 2**16, unit="cells"
    )
    records: tuple[int, ...] = whole(tuple(10**i for i in range(4, 9)), "N", 1, 10**15)
    buckets: tuple[int, ...] = unprinted((4, 8, 16, 32, 64, 128), "numbers of buckets b to try")
    seeds: int = seeds(160)

    def tables(self) -> list[Waves]:
        """Return the datasets, for all sizes of the domain and all numbers of records."""
        return [Waves(*x) for x in product(sorted({self.cells, *self.domains}), self.records)]

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs, as one sweep."""
        budget = DP(self.epsilon)
        trees = [
            HierarchicalHistogram(budget, consistent=False),
            HierarchicalHistogram(budget, nonnegative=False),
        ]
        others = [EquiDepth(budget, b, kind) for b in self.buckets for kind in (False, True)]
        return {"worst": Sweep(self.tables(), [*trees, *others], [WorstError()], self.seeds)}

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results. Results of equi-depth histograms with other numbers of buckets are in
        a panel that is not drawn.
        """
        rows = super().rows(store)
        trees = rows.consistent.map({False: NOISY_TREE, True: TREE_NOT_ZEROED})
        rows = rows.assign(
            series=trees.fillna(rows.mechanism_name),
            **attributes(rows, self.tables(), "records", "cells"),
            buckets=rows.buckets.fillna(0).astype(int),
        )
        means = rows.groupby(["cells", "records", "series", "buckets"]).value.transform("mean")
        least = means.groupby([rows.cells, rows.records, rows.series]).transform("min")
        rows["panel"] = rows.panel.where(means == least, "other b")
        best = rows[rows.panel == "worst"]
        shares = best.assign(
            metric="Usefulness", panel="useful", value=best.value / best.records
        )
        laws = pd.DataFrame([dict(records=n, value=self.bound(n)) for n in self.records])
        laws = laws.assign(panel=BOUND, series=NOISY_TREE, cells=self.cells, seed=0)
        laws = laws.assign(metric="WorstError", epsilon=self.epsilon, truth_public=True)
        return pd.concat([rows, shares, laws], ignore_index=True)

    def bound(self, records):
        """Return a bound that the worst error of the noisy tree H̃ exceeds with a probability of at most δ,
        for any number of records. It is a union bound over all ranges.

        A range is a sum of at most 2ℓ nodes with Laplace noise of scale b = ℓ/α. Let L = ln(2·(number of
        ranges)/δ) and ν² = max(2ℓ, L)·b². Then the absolute error of a range exceeds ν·√(8L) with a
        probability of at most δ/(number of ranges).
        """
        levels = (self.cells - 1).bit_length() + 1
        terms = log(2 / (self.delta / (self.cells * (self.cells + 1) / 2)))
        spread = levels / self.epsilon * sqrt(max(2 * levels, terms))
        return spread * sqrt(8 * terms) + 0 * records

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels: errors by the number of records with the bound, errors by the size of
        the domain, and errors as a share of N.
        """
        title = f"n = {self.cells:,}, ε = {self.epsilon:g}"
        theory = (f"bound for the noisy tree (δ = {self.delta:g})", self.bound)
        middle = self.records[len(self.records) // 2]
        over_cells = {"panel": "worst", "records": middle}
        worst = {"panel": "worst", "cells": self.cells}
        useful = {"panel": "useful", "cells": self.cells}
        return [
            Panel(title, worst, "records", theory=theory),
            Panel(f"N = {middle:,}, ε = {self.epsilon:g}", over_cells, "cells"),
            Panel(f"n = {self.cells:,}: as a part of N", useful, "records"),
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results that the figure draws. The consistent tree has the name that it has in other
        figures.
        """
        return rows.assign(series=rows.series.replace(TREE_NOT_ZEROED, f"{BEST}, not zeroed"))

    def best_buckets(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the number of buckets of the drawn equi-depth histograms, for each N and n."""
        best = rows[(rows.panel == "worst") & rows.series.isin(OTHERS)]
        return best.groupby(["series", "cells", "records"]).buckets.first().unstack()
