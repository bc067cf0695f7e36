"""Hay et al. 2010, Appendix E: a noisy tree against Blum et al.'s equi-depth histogram.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: section 6 and Appendix E; the other method is that of
        Blum, Ligett & Roth, STOC 2008, whose binary search this paper only names.
Read    from the text, which has lost its formulas; there is no figure. What it determines, and what
        not, is written down in tests/reference/equi_depth.py, whose procedure this is.
Open    The ends of buckets are found by binary search on noisy counts from the last end, each of
        b buckets with ⌈log₂n⌉ comparisons, so that every one has noise of scale b·⌈log₂n⌉/α. The
        number of records N is public, depth = N/b, and what is left after b searches is one more
        bucket. A bucket stands for `depth` records spread evenly. What its last cell has too much
        adds up over the buckets; "quantiles" searches from the first cell for multiples of `depth`
        instead, which is kinder to the method. b is not printed: at each N and n, out of 4 to 128, the
        one with the least error, read off the truth, which also favours it.
        N records in two waves over the cells. Not in the paper: H̄ (not zeroed).
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
    """Ends of buckets by binary search on noisy counts; each stands for equally many records.

    The number of records is public. Each of `buckets` searches asks at most ⌈log₂n⌉ counts, which share
    ε equally: from the last end on, or with `quantiles` from the first cell on, for multiples of the
    depth. What is left after them is one more bucket.
    """

    budget: DP = budget_field()
    buckets: int = parameter(16, 1, integer=True, doc="how many searches")
    quantiles: bool = parameter(False, choices=(True, False), doc="count from the first cell")

    @property
    def series(self) -> str:
        """What figures call it."""
        return QUANTILES if self.quantiles else EQUI_DEPTH

    def __call__(self, table: SparseTable, rng=None) -> Release:
        """The estimated counts of all cells: each bucket's depth, spread over its cells."""
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
    """The largest |error| of all ranges."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """In counts; that of a histogram follows from its cells."""
        refuse_private(truth)
        if isinstance(estimate, Histogram):
            errors = estimate.values - truth.dense()
            sums = np.concatenate([[0.0], np.cumsum(errors)])
            return float(sums.max() - sums.min())
        errors = estimate.values - tree_sums(truth.dense(), estimate.branching)
        return _largest_of_tree(errors, level_sizes(truth.domain.size, estimate.branching))


def _largest_of_tree(errors: np.ndarray, sizes: list[int]) -> float:
    """The largest |error| of all ranges, each answered by the fewest nodes of a complete binary tree.

    Level by level upwards: a range ends inside one child and begins inside the one before it, so that the
    largest error is a suffix's and a prefix's; both together are the parent, which answers itself.
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
    """H̃, and at each N and n the equi-depth histogram of the least mean error."""
    best = rows[(rows.panel == "worst") & rows.series.isin(OTHERS)]
    means = best.groupby(["cells", "records", "series"]).value.transform("mean")
    least = means.groupby([best.cells, best.records]).transform("min")
    ours = rows[(rows.panel == "worst") & (rows.series == NOISY_TREE)]
    columns = ["series", "cells", "records", "seed", "value"]
    return pd.concat([ours, best[means == least].assign(series=RIVAL)])[columns]


def _here(rows: pd.DataFrame) -> pd.DataFrame:
    """On the one domain."""
    return rows[rows.cells == CELLS]


def least_records(
    rows: pd.DataFrame, accuracy: float, share: float = 1 - DELTA, level: float | None = None
) -> float:
    """The least N at which so many samples are within accuracy·N; infinite if at none.

    Of rows of worst error over N. With a level the share is not estimated: 1 − level is how often
    the number may be too small where it is positive, too large where it is negative.
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
    """A quantile of samples; with a level, an end of its interval of order statistics."""
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
    """Whether H̃ needs fewer records than equi-depth does, at one accuracy.

    What H̃ needs at most is said by its bound too, at any level.
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
    """Whether the error of H̃ at the largest N is that at the smallest."""
    own = _here(_with_rival(rows))
    return check_similar(claims.ends(own, NOISY_TREE, "records"), level, EVERYWHERE)


def check_rises(rows, level: float, series: str) -> Finding:
    """Whether the error of equi-depth rises with every step of N, for one of the searches."""
    own = _here(rows[(rows.panel == "worst") & (rows.series == series)])
    kind = own.drop(columns=["buckets", "trial", "dataset"], errors="ignore")
    steps = claims.steps(kind, series, "records")
    growth = claims.ends(kind, series, "records").at(0.95).estimate.iloc[0]
    power = np.log(growth) / np.log(kind.records.max() / kind.records.min())
    finding = check_between(steps, level, low=MORE, words="higher")
    return beside(finding, f"as N to the {power:.2g}")


def check_lower_error(rows, level: float) -> Finding:
    """Whether H̃ has less error than equi-depth, at one N."""
    own = _here(_with_rival(rows))
    return check_lower(paired_ratios(own, NOISY_TREE, RIVAL, "records"), level)


def check_domains(rows, level: float) -> Finding:
    """Whether equi-depth's error grows less than H̃'s from the smallest domain to the largest."""
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
    """The worst error of all ranges over the number of records, as a part of it, and over the domain."""

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
        """Of every size, and number of records."""
        return [Waves(*x) for x in product(sorted({self.cells, *self.domains}), self.records)]

    def sweeps(self) -> dict[str, Sweep]:
        """One."""
        budget = DP(self.epsilon)
        trees = [
            HierarchicalHistogram(budget, consistent=False),
            HierarchicalHistogram(budget, nonnegative=False),
        ]
        others = [EquiDepth(budget, b, kind) for b in self.buckets for kind in (False, True)]
        return {"worst": Sweep(self.tables(), [*trees, *others], [WorstError()], self.seeds)}

    def rows(self, store) -> pd.DataFrame:
        """Equi-depth also at each other b, in a panel that is not drawn."""
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
        """What H̃'s worst error exceeds with probability at most δ, at any N: a union over all ranges.

        2ℓ Laplace(ℓ/α) each (ν²= max(terms, log)·b², exceeded by ν·√(8·log) with the log below).
        """
        levels = (self.cells - 1).bit_length() + 1
        terms = log(2 / (self.delta / (self.cells * (self.cells + 1) / 2)))
        spread = levels / self.epsilon * sqrt(max(2 * levels, terms))
        return spread * sqrt(8 * terms) + 0 * records

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Errors with the bound, over the size of the domain, and as a part of N."""
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
        """The consistent tree, which is not zeroed here, as it looks elsewhere."""
        return rows.assign(series=rows.series.replace(TREE_NOT_ZEROED, f"{BEST}, not zeroed"))

    def best_buckets(self, rows: pd.DataFrame) -> pd.DataFrame:
        """How many buckets equi-depth had at each N and n."""
        best = rows[(rows.panel == "worst") & rows.series.isin(OTHERS)]
        return best.groupby(["series", "cells", "records"]).buckets.first().unstack()
