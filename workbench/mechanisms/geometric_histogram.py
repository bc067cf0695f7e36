"""Geometric histogram: two-sided geometric noise on every cell of the domain, empty ones too.

Guarantee  ε-DP per unit; all of ε pays for the counts. A count that moves by one moves ⌈log₂m⌉ + 1
           nodes of a `transform`, which share ε.
Assumes    the table's bound; a domain that fits in `memory`.
Source     Ghosh, Roughgarden & Sundararajan, STOC 2009; the baseline M' of Cormode et al.,
           ICDT 2012, section 2.1.
Differs    nothing.
Cost       time and memory O(domain size), whatever the data: the laborious baseline.
"""

import numpy as np

from workbench import noise
from workbench.domain import Domain
from workbench.estimates import Law, summary_in_basis
from workbench.mechanism import (
    Mechanism,
    Release,
    memory_field,
    noise_blocks,
    pure_budget,
    sensitivity,
    transform_field,
)
from workbench.privacy import DP
from workbench.table import Bound, SparseTable
from workbench.transform import Dyadic, Haar, basis_of
from workbench.value import sealed, value

BYTES_PER_CELL = 24  # a key, a count and its noisy value


@value
class GeometricHistogram(Mechanism):
    """The full noisy table that every compact summary is measured against."""

    budget: DP = pure_budget()
    memory: int = memory_field()
    transform: Dyadic | Haar | None = transform_field()
    cite = "ghosh2009"
    title = "geometric histogram"
    series = "geometric"

    def release_rule(self, domain: Domain, bound: Bound) -> dict[str, float]:
        """Noise and no threshold, from which `advice` computes errors."""
        return {}

    def __call__(self, table: SparseTable, rng=None) -> Release:
        """Release every cell of the domain, or every node over it."""
        l1 = sensitivity(table)
        basis = basis_of(self.transform, table.domain)
        blocks = noise_blocks(basis, l1=l1, epsilon=self.budget.epsilon, linf=table.bound.linf)
        size = sum(block.size for block in blocks)
        if size * BYTES_PER_CELL > self.memory:
            raise ValueError(
                f"GeometricHistogram.memory = {self.memory} is too little: every one of {size} cells "
                f"needs {BYTES_PER_CELL} bytes; a filter or a sample costs only what it releases"
            )
        nodes, counts = basis.forward(table.keys, table.counts)
        exact = np.zeros(size, np.int64)
        exact[nodes] = counts
        noisy = []
        ledger = []
        start = 0
        for block in blocks:
            part = exact[start : start + block.size]
            values, receipt = noise.geometric(
                part, l1=block.l1, epsilon=block.epsilon, linf=block.linf, rng=rng
            )
            noisy.append(values)
            ledger.append(receipt)
            start += block.size
        values = noisy[0] if len(noisy) == 1 else sealed(np.concatenate(noisy))
        law = Law("geometric", self.budget.epsilon / l1)
        full = summary_in_basis(basis, sealed(np.arange(size)), values, law)
        return Release(full, tuple(ledger), self, table.bound)
