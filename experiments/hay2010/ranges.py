"""Hay et al. 2010: what closed forms say of the errors of ranges, and answers that are rounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from experiments.hay2010.data import LEAVES, NOISY_TREE, TREE_NOT_ZEROED
from workbench import DP, Bound, Domain, RandomRanges, SparseTable
from workbench.compiled import pd
from workbench.mechanisms import HierarchicalHistogram, LaplaceHistogram
from workbench.noise import variance
from workbench.queries import level_sizes
from workbench.trials.claims import mean_curve
from workbench.value import value

BEST = "H̄"
LEAF_SUMS = "H̄ by leaves"
ROUNDED = ", rounded"
ERROR = "MeanSquaredError"
EXACT = "exact mean"  # over all positions of a range
WORST = "exact worst"
TOTAL = "exact total"
HEIGHTS = "heights"


def expected_errors(
    dataset: Any, workloads: Sequence[RandomRanges], epsilon: float, branching: int = 2
) -> pd.DataFrame:
    """What the errors should be on average over the ranges that are asked, a row each.

    L̃: a cell's variance times the size. H̃: a node's times the fewest nodes. H̄ before zeroing: the
    closed form, where the tree is complete.
    """
    domain = dataset.domain
    bound = _bound(dataset)
    budget = DP(epsilon)
    empty = SparseTable.from_keys(domain, [], [], bound)
    noisy = HierarchicalHistogram(budget, branching, consistent=False)
    tree = noisy(empty, np.random.default_rng(0)).estimate
    plain = HierarchicalHistogram(budget, branching, nonnegative=False)
    complete = branching ** (len(level_sizes(domain.size, branching)) - 1) == domain.size
    cell = variance(bound.l1, epsilon, LaplaceHistogram(budget).noise)
    laws = []
    for ranges in workloads:
        _, errors = tree.answer(ranges.on(domain), error=True)
        expected = {LEAVES: ranges.size * cell, NOISY_TREE: float((errors**2).mean())}
        if complete:
            errors = plain.variance(domain, ranges, bound.l1)
            expected[TREE_NOT_ZEROED] = float(errors.mean())
        for series, law in expected.items():
            laws.append(dict(series=series, query_size=ranges.size, value=law))
    return _theory(pd.DataFrame(laws).assign(metric="theory"), dataset, epsilon)


def exact_errors(
    dataset: Any, sizes: Sequence[int], epsilon: float, branching: int = 2
) -> pd.DataFrame:
    """Errors of L̃ and H̃ without rounding, over all ranges that there are: a row each.

    Their means at each size, and over ranges of all sizes the largest and the sum.
    """
    m = dataset.domain.size
    l1 = _bound(dataset).l1
    depth = len(level_sizes(m, branching))
    nodes = NodeCounts(m, branching)
    cell = variance(l1, epsilon, LaplaceHistogram(DP(epsilon)).noise)
    node = variance(l1 * depth, epsilon, HierarchicalHistogram(DP(epsilon)).noise)
    every = np.arange(1, m + 1, dtype=float)
    laws = []
    for size in sizes:
        laws.append(dict(series=LEAVES, metric=EXACT, query_size=size, value=size * cell))
        mean = nodes.mean(size) * node
        laws.append(dict(series=NOISY_TREE, metric=EXACT, query_size=size, value=mean))
    cells = float((every * (m - every + 1)).sum())
    laws.append(dict(series=LEAVES, metric=WORST, value=m * cell))
    laws.append(dict(series=NOISY_TREE, metric=WORST, value=nodes.most() * node))
    laws.append(dict(series=LEAVES, metric=TOTAL, value=cells * cell))
    laws.append(dict(series=NOISY_TREE, metric=TOTAL, value=nodes.total() * node))
    return _theory(pd.DataFrame(laws), dataset, epsilon)


def _theory(laws: pd.DataFrame, dataset: Any, epsilon: float) -> pd.DataFrame:
    columns = dict(epsilon=epsilon, dataset=repr(dataset), truth_public=True)
    return laws.assign(seed=0, **columns)


@cache
def _bound(dataset: Any) -> Bound:
    return dataset.load().bound


@dataclass(frozen=True)
class NodeCounts:
    """How many nodes of a tree over m cells ranges take, if they take the fewest.

    A range takes a node that it contains, unless it contains the node's parent too.
    """

    m: int
    branching: int

    def mean(self, size: int) -> float:
        """Over all positions of a range of this size."""

        def containing(lo, hi):
            first = np.maximum(hi - size, 0)
            return np.maximum(np.minimum(lo, self.m - size) - first + 1, 0)

        return self._sum(containing) / (self.m - size + 1)

    def total(self) -> int:
        """Summed over all ranges."""
        return self._sum(lambda lo, hi: (lo + 1) * (self.m - hi + 1))

    def most(self) -> int:
        """Of any range: in a complete tree, of all cells but the first and the last."""
        depth = len(level_sizes(self.m, self.branching))
        return 2 * (self.branching - 1) * (depth - 1) - self.branching

    def _sum(self, containing) -> int:
        """Over all ranges that are meant, given how many of them contain [lo, hi)."""
        total = 0
        above = np.zeros(0, np.int64)
        depth = len(level_sizes(self.m, self.branching))
        for level, size in enumerate(level_sizes(self.m, self.branching)):
            width = self.branching ** (depth - 1 - level)
            lo = np.arange(size, dtype=np.int64) * width
            times = containing(lo, np.minimum(lo + width, self.m))
            total += times.sum() - np.repeat(above, self.branching)[:size].sum()
            above = times
        return int(total)


def worst_consistent(levels: int) -> float:
    """The largest variance of H̄ (not zeroed) of any range, in a node's, for a complete binary tree.

    Subtree by subtree upwards: its observed root makes of the total's variance, which is that of two
    children, t' = 2t/(1 + 2t), and takes from the variance of a range with r of its cells c·r². A range
    is a suffix of one child and a prefix of the next; for either only corners of the upper hull can be
    the worst, since beside a sum of two functions stands a product of the two lengths.
    """
    total = 1.0
    prefix = np.array([0.0, 1.0])  # variance by length
    worst = np.array([[1.0, 1.0]])  # candidates: variance in the subtrees done, and length
    for height in range(1, levels):
        cells = 2 ** (height - 1)
        taken = (total / cells) ** 2 / (1 + 2 * total)
        corners = upper_hull(prefix)
        i, j = (x.ravel() for x in np.meshgrid(corners, corners))
        pairs = np.stack([prefix[i] + prefix[j], (i + j).astype(float)], axis=1)
        worst = np.concatenate([worst, pairs])
        worst[:, 0] -= taken * worst[:, 1] ** 2
        longer = total + prefix[1:]
        prefix = np.concatenate([prefix, longer]) - taken * np.arange(2 * cells + 1.0) ** 2
        total = 2 * total / (1 + 2 * total)
    return float(worst[:, 0].max())


def upper_hull(heights: np.ndarray) -> np.ndarray:
    """Where the least concave function above heights at 0, 1, 2, … has its corners."""
    corners: list[int] = []
    for i, height in enumerate(heights):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (heights[b] - heights[a]) * (i - a) > (height - heights[a]) * (b - a):
                break
            corners.pop()
        corners.append(i)
    return np.array(corners)


def errors_by_height(heights: Sequence[int]) -> pd.DataFrame:
    """The error of H̄ (not zeroed) of its worst range at ε = 1, a row a height of a binary tree."""
    noise = HierarchicalHistogram(DP(1.0)).noise
    rows = [
        dict(levels=levels, value=worst_consistent(levels) * variance(levels, 1.0, noise))
        for levels in heights
    ]
    columns = dict(panel=HEIGHTS, series=TREE_NOT_ZEROED, metric=WORST, epsilon=1.0)
    return pd.DataFrame(rows).assign(truth_public=True, seed=0, **columns)


def by_panel(rows) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each dataset and ε, by the title of their panel."""
    rows = rows[rows.panel != HEIGHTS]
    for (name, epsilon), own in rows.groupby(["panel", "epsilon"], sort=False):
        yield f"{name}, ε = {epsilon:g}", own


def error_curve(rows, series: str, metric: str = ERROR) -> pd.DataFrame:
    """The error of one series of one panel, over the size of the range."""
    return mean_curve(rows, "query_size", series=series, metric=metric)


def laws_of(rows) -> dict[str, pd.Series]:
    """What is expected, by series, where there is a closed form."""
    known = rows[rows.metric == "theory"].series.unique()
    series = [s for s in (NOISY_TREE, TREE_NOT_ZEROED, LEAVES) if s in known]
    return {s: error_curve(rows, s, "theory")["mean"] for s in series}


# Answers that are rounded to integers, and never below 0.


@value
class WholeAnswers:
    """Turns an estimate into one whose answers are rounded to integers, and never below 0."""

    def __call__(self, released: Any) -> _Whole:
        """Post-process, at no cost."""
        return _Whole(released)


@dataclass(frozen=True)
class _Whole:
    estimate: Any

    @property
    def domain(self) -> Domain:
        return self.estimate.domain

    def answer(self, workload, **options):
        return np.maximum(np.rint(self.estimate.answer(workload, **options)), 0)
