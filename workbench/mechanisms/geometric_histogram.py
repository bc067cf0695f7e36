"""Geometric histogram: two-sided geometric noise on every cell of the domain, empty ones too.

Guarantee  ε-DP per unit; all of ε pays for the counts. A count that moves by one moves ⌈log₂m⌉ + 1
           nodes of a `transform`, which share ε.
Assumes    the table's bound; a domain that fits in `memory`.
Source     Ghosh, Roughgarden & Sundararajan, STOC 2009; the baseline M' of Cormode et al.,
           ICDT 2012, section 2.1.
Differs    nothing.
Cost       time and memory O(domain size), whatever the data: the laborious baseline.
"""

from typing import ClassVar, Self

import numpy as np

from workbench import noise
from workbench.estimates import summary_in_basis
from workbench.mechanism import (
    Release,
    noise_blocks,
    parameter,
    pure_budget,
    sensitivity,
    transform_field,
)
from workbench.privacy import DP
from workbench.table import SparseTable
from workbench.transform import Dyadic, Haar, basis_of
from workbench.value import sealed, value

BYTES_PER_CELL = 24  # a key, a count and its noisy value


@value
class GeometricHistogram:
    """The full noisy table that every compact summary is measured against."""

    budget: DP = pure_budget()
    memory: int = parameter(2**32, 1, integer=True, unit="bytes", doc="refuse larger domains")
    transform: Dyadic | Haar | None = transform_field()
    takes: ClassVar[type] = SparseTable
    cite: ClassVar[str] = "ghosh2009"

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release every cell of the domain, or every node over it."""
        basis, l1 = basis_of(self.transform, table.domain), sensitivity(table)
        blocks = noise_blocks(self, table.domain, l1)
        size = sum(b.size for b in blocks)
        if size * BYTES_PER_CELL > self.memory:
            raise ValueError(
                f"GeometricHistogram.memory = {self.memory} is too little: every one of {size} cells "
                f"needs {BYTES_PER_CELL} bytes; a filter or a sample costs only what it releases"
            )
        nodes, values = basis.forward(table.keys, table.counts)
        dense, noisy, ledger = np.zeros(size, np.int64), [], []
        dense[nodes] = values
        for block, end in zip(blocks, np.cumsum([b.size for b in blocks]), strict=True):
            cells = dense[end - block.size : end]
            drawn, receipt = noise.geometric(cells, l1=block.l1, epsilon=block.epsilon, rng=rng)
            noisy.append(drawn)
            ledger.append(receipt)
        values = noisy[0] if len(noisy) == 1 else sealed(np.concatenate(noisy))
        full = summary_in_basis(
            basis, sealed(np.arange(size)), values, self.budget.epsilon / l1
        )
        return Release(full, tuple(ledger), self, table.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """With the memory of a laptop."""
        return cls(budget)
