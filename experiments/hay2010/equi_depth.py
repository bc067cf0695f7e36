"""Blum, Ligett & Roth's equi-depth histogram, as far as Hay et al. 2010, Appendix E, determines it."""

from __future__ import annotations

from math import ceil, log2
from typing import Any

import numpy as np

from workbench import noise
from workbench.estimates import Histogram
from workbench.mechanism import Mechanism, Release, parameter, pure_budget, sensitivity
from workbench.metrics.refusal import refuse_private
from workbench.privacy import DP
from workbench.table import SparseTable
from workbench.value import sealed, value
from workbench.workload import Ranges

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
        epsilon = self.budget.epsilon / (self.buckets * ceil(log2(n)))
        below = np.concatenate([[0], np.cumsum(table.dense())])
        how = dict(l1=sensitivity(table), epsilon=epsilon, law="laplace", rng=rng)
        receipts = []
        ends = [0]
        while ends[-1] < n and len(ends) <= self.buckets:
            start = 0 if self.quantiles else ends[-1]
            least = len(ends) * depth if self.quantiles else depth
            low = ends[-1] + 1
            high = n
            while low < high:
                middle = (low + high) // 2
                count = below[middle : middle + 1] - below[start]
                noisy, _, receipt = noise.add_noise(count, **how)
                receipts.append(receipt)
                if noisy[0] >= least:
                    high = middle
                else:
                    low = middle + 1
            ends.append(low)
        if ends[-1] < n:
            ends.append(n)
        width = np.diff(ends)
        values = sealed(np.repeat(depth / width, width))
        return Release(Histogram(table.domain, values), tuple(receipts), self, table.bound)


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
        every_range = Ranges(*np.triu_indices(truth.domain.size + 1, 1))
        return float(np.abs(estimate.answer(every_range) - truth.answer(every_range)).max())
