"""Geometric histogram: two-sided geometric noise on every cell of the domain, empty ones too.

Guarantee  ε-DP per unit; all of ε pays for the counts.
Assumes    the table's bound; a domain that fits in `memory`.
Source     Ghosh, Roughgarden & Sundararajan, STOC 2009; the baseline M' of Cormode et al.,
           ICDT 2012, section 2.1.
Differs    nothing.
Cost       time and memory O(domain size), whatever the data: the laborious baseline.
"""

from typing import ClassVar, Self

import numpy as np

from workbench import noise
from workbench.estimates import Summary
from workbench.mechanism import Release, parameter, pure_budget, sensitivity
from workbench.privacy import DP
from workbench.table import SparseTable
from workbench.value import sealed, value

_BYTES = 24  # a key, a count and its noisy value


@value
class GeometricHistogram:
    """The full noisy table that every compact summary is measured against."""

    budget: DP = pure_budget()
    memory: int = parameter(2**32, 1, integer=True, unit="bytes", doc="refuse larger domains")
    takes: ClassVar[type] = SparseTable
    cite: ClassVar[str] = "ghosh2009"

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release every cell of the domain."""
        size, l1 = table.domain.size, sensitivity(table)
        if size * _BYTES > self.memory:
            raise ValueError(
                f"GeometricHistogram.memory = {self.memory} is too little: every one of {size} cells "
                f"needs {_BYTES} bytes; a filter or a sample costs only what it releases"
            )
        noisy, receipt = noise.geometric(
            table.dense().ravel(), l1=l1, epsilon=self.budget.epsilon, rng=rng
        )
        summary = Summary(
            table.domain, sealed(np.arange(size)), noisy, self.budget.epsilon / l1
        )
        return Release(summary, (receipt,), self, table.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """With the memory of a laptop."""
        return cls(budget)
