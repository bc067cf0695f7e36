"""Theoretical errors of range queries for the figures of Hay et al. (2010), and estimates with rounded
answers.
"""

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
    """Return the theoretical mean squared errors of given random ranges, with one row per size and method.

    For noisy leaves L̃, it is the variance of a cell times the size of the range. For the noisy tree H̃, it
    is the variance of a node times the smallest number of nodes for the range. For the consistent tree H̄
    without zeroing, there is a formula if the tree is complete.
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
    """Return the theoretical errors of noisy leaves L̃ and of the noisy tree H̃ over all possible ranges,
    without rounding.

    The rows contain the mean error for each size, and the largest error and the sum of errors over ranges of
    all sizes.
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
    """Smallest numbers of nodes from which ranges can be computed, for a tree over m cells.

    A range uses each node that it contains, except if it also contains the node's parent.
    """

    m: int
    branching: int

    def mean(self, size: int) -> float:
        """Return the mean number of nodes over all positions of a range with this size."""

        def containing(lo, hi):
            first = np.maximum(hi - size, 0)
            return np.maximum(np.minimum(lo, self.m - size) - first + 1, 0)

        return self._sum(containing) / (self.m - size + 1)

    def total(self) -> int:
        """Return the sum of the numbers of nodes over all ranges."""
        return self._sum(lambda lo, hi: (lo + 1) * (self.m - hi + 1))

    def most(self) -> int:
        """Return the largest number of nodes of any range. In a complete tree, this is the range of all cells
        except the first and the last.
        """
        depth = len(level_sizes(self.m, self.branching))
        return 2 * (self.branching - 1) * (depth - 1) - self.branching

    def _sum(self, containing) -> int:
        """Return the sum of the numbers of nodes over certain ranges. `containing(lo, hi)` is the number of
        these ranges that contain the cells from lo to hi − 1.
        """
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
    """Return the largest variance of a range under the consistent tree H̄ without zeroing, for a complete
    binary tree. The unit is the variance of one noisy node.

    The computation goes from the leaves upwards. Let t be the variance of the total of a subtree. The two
    children together have the variance 2t. With the observed root, it becomes t' = 2t/(1 + 2t). The variance
    of a range with r cells becomes smaller by c·r². A range across two children is a suffix of the first and
    a prefix of the second. For both parts, only the corners of the upper hull (of variance by length) can
    give the worst range.
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
    """Return the positions of the corners of the smallest concave function above the given heights at 0, 1,
    2, …
    """
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
    """Return the error of the worst range of the consistent tree H̄ (without zeroing) at ε = 1, for binary
    trees of several heights.
    """
    noise = HierarchicalHistogram(DP(1.0)).noise
    rows = [
        dict(levels=levels, value=worst_consistent(levels) * variance(levels, 1.0, noise))
        for levels in heights
    ]
    columns = dict(panel=HEIGHTS, series=TREE_NOT_ZEROED, metric=WORST, epsilon=1.0)
    return pd.DataFrame(rows).assign(truth_public=True, seed=0, **columns)


def by_panel(rows) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the results for each dataset and ε, with the title of their panel."""
    rows = rows[rows.panel != HEIGHTS]
    for (name, epsilon), own in rows.groupby(["panel", "epsilon"], sort=False):
        yield f"{name}, ε = {epsilon:g}", own


def error_curve(rows, series: str, metric: str = ERROR) -> pd.DataFrame:
    """Return the errors of one curve in one panel by the size of the range."""
    return mean_curve(rows, "query_size", series=series, metric=metric)


def laws_of(rows) -> dict[str, pd.Series]:
    """Return the theoretical errors by size of range, for each curve with a formula."""
    known = rows[rows.metric == "theory"].series.unique()
    series = [s for s in (NOISY_TREE, TREE_NOT_ZEROED, LEAVES) if s in known]
    return {s: error_curve(rows, s, "theory")["mean"] for s in series}


# Answers that are rounded to integers, and never below 0.


@value
class WholeAnswers:
    """Step after a release that rounds all answers to integers >= 0."""

    def __call__(self, released: Any) -> _Whole:
        """Return an estimate whose answers are rounded. This costs no budget."""
        return _Whole(released)


@dataclass(frozen=True)
class _Whole:
    estimate: Any

    @property
    def domain(self) -> Domain:
        return self.estimate.domain

    def answer(self, workload, **options):
        return np.maximum(np.rint(self.estimate.answer(workload, **options)), 0)
