"""Laplace histogram: independent noise on every count of the domain, the L̃ of Hay et al.

Guarantee  ε-DP per unit; all of ε pays for the counts.
Assumes    the table's bound; a domain that fits in memory.
Source     Dwork, McSherry, Nissim & Smith, TCC 2006; L̃ in Hay, Rastogi, Miklau & Suciu, PVLDB 2010,
           section 2.2.
Differs    Laplace noise on a public grid of at most a thousandth of its scale, exactly; or geometric.
Cost       time and memory O(domain size).
"""

import numpy as np

from workbench.mechanism import (
    DP,
    Histogram,
    Mechanism,
    Release,
    SparseTable,
    memory_field,
    noise,
    noise_law_field,
    private_bound,
    pure_budget,
    sealed,
    value,
)


@value
class LaplaceHistogram(Mechanism):
    """Release every count with independent noise."""

    budget: DP = pure_budget()
    noise: str = noise_law_field()
    memory: int = memory_field()
    cite = "hay2010"
    title = "Laplace histogram"
    fixed_price = True

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release every cell of the domain."""
        bound = private_bound(table)
        counts = self.dense_counts(table)
        noisy, variance, receipt = noise.add_noise(
            counts,
            l1=bound.l1,
            linf=bound.linf,
            epsilon=self.budget.epsilon,
            law=self.noise,
            rng=rng,
        )
        histogram = Histogram(table.domain, sealed(noisy.astype(float)), variance)
        return Release(histogram, (receipt,), self, bound)
