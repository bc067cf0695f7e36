"""Blum, Ligett & Roth's equi-depth histogram, as far as Hay et al. 2010, Appendix E, determines it."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import ceil, log2
from typing import Any

import numpy as np

from workbench import noise
from workbench.data import SparseTable
from workbench.estimates import Histogram
from workbench.estimates.release import Release
from workbench.inference.consistency import tree_sums
from workbench.mechanisms.protocol import Mechanism, pure_budget, sensitivity
from workbench.privacy import DP
from workbench.queries import level_sizes
from workbench.trials.metrics.answers import refuse_private
from workbench.value import parameter, sealed, value

EQUI_DEPTH = "equi-depth"
QUANTILES = "equi-depth, quantiles"


@value
class EquiDepth(Mechanism):
    """Ends of buckets by binary search on noisy counts; each stands for equally many records.

    The number of records is public. Each of `buckets` searches asks at most ⌈log₂n⌉ counts, which share
    ε equally: from the last end on, or with `quantiles` from the first cell on, for multiples of the
    depth. What is left after them is one more bucket.
    """

    budget: DP = pure_budget()
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
            left = slice(0, None, 2)
            right = slice(1, None, 2)
            some_suffix = np.maximum(suffix[left], whole[left])
            some_prefix = np.maximum(prefix[right], whole[right])
            across = np.maximum(suffix[left] + some_prefix, some_suffix + prefix[right])
            prefix = np.maximum(
                np.maximum(prefix[left], whole[left]), whole[left] + prefix[right]
            )
            suffix = np.maximum(
                np.maximum(suffix[right], whole[right]), whole[right] + suffix[left]
            )
            whole = sign * errors[end - size : end]
            largest = max(largest, across.max(), whole.max())
    return float(largest)
