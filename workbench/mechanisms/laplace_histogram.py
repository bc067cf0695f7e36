"""Laplace histogram: independent noise on every count of the domain, the L̃ of Hay et al.

Guarantee  ε-DP per unit; all of ε pays for the counts.
Assumes    the table's bound; a domain that fits in memory.
Source     Dwork, McSherry, Nissim & Smith, TCC 2006; L̃ in Hay, Rastogi, Miklau & Suciu, PVLDB 2010,
           section 2.2.
Differs    Laplace noise on a public grid of at most a thousandth of its scale, exactly; or geometric.
Cost       time and memory O(domain size).
"""

from typing import ClassVar, Self

import numpy as np

from workbench import noise
from workbench.estimates import Histogram
from workbench.mechanism import (
    Release,
    dense_counts,
    memory_field,
    noise_law_field,
    pure_budget,
    sensitivity,
)
from workbench.privacy import DP
from workbench.table import SparseTable
from workbench.value import sealed, value


@value
class LaplaceHistogram:
    """Release every count with independent noise."""

    budget: DP = pure_budget()
    noise: str = noise_law_field()
    memory: int = memory_field()
    takes: ClassVar[type] = SparseTable
    cite: ClassVar[str] = "hay2010"
    title: ClassVar[str] = "Laplace histogram"

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release every cell of the domain."""
        l1 = sensitivity(table)
        noisy, variance, receipt = noise.add_noise(
            dense_counts(self, table),
            l1=l1,
            epsilon=self.budget.epsilon,
            law=self.noise,
            rng=rng,
        )
        histogram = Histogram(table.domain, sealed(noisy.astype(float)), variance)
        return Release(histogram, (receipt,), self, table.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """As in the paper."""
        return cls(budget)
