"""Uniform sampling: a uniform sample of cells, with noise on those alone. A straw man.

Guarantee  ε-DP per unit; all of ε pays for the counts, which cells are sampled is public.
Assumes    the table's bound.
Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.3, first paragraph.
Differs    answers are scaled by m/size, so that they are unbiased (the paper gives no estimator).
Cost       time and memory O(non-empty cells + size).
"""

from typing import Self

import numpy as np

from workbench import noise
from workbench.estimates import Law, Summary
from workbench.mechanism import (
    DP,
    Mechanism,
    Release,
    parameter,
    private_bound,
    pure_budget,
)
from workbench.table import SparseTable
from workbench.value import value


@value
class UniformSampling(Mechanism):
    """Sampling without looking at the counts: on sparse data it finds almost only empty cells."""

    budget: DP = pure_budget()
    size: int = parameter(low=1, high=2**28, integer=True, unit="cells", doc="cells to release")
    cite = "cormode2012"
    title = "uniform sampling"
    series = "uniform"
    converges = False  # what it does not sample it never learns, at any ε

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the sampled cells."""
        m = table.domain.size
        bound = private_bound(table)
        l1 = bound.l1
        epsilon = self.budget.epsilon
        self.refuse_size_above(m)
        keys = noise.uniform_keys(self.size, m, rng=rng)
        counts = np.zeros(self.size, np.int64)
        places = np.searchsorted(keys, table.keys)
        sampled = keys[np.minimum(places, self.size - 1)] == table.keys
        counts[places[sampled]] = table.counts[sampled]
        noisy, receipt = noise.geometric(
            counts, l1=l1, linf=bound.linf, epsilon=epsilon, rng=rng
        )
        summary = Summary(
            table.domain, keys, noisy, Law("geometric", epsilon / l1), scale=m / self.size
        )
        return Release(summary, (receipt,), self, bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Ten cells."""
        return cls(budget, size=10)
