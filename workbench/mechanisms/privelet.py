"""Privelet: noise on the Haar wavelet coefficients of a histogram.

Guarantee  ε-DP per unit; a count that moves by one moves the total and one difference a level,
           log₂m + 1 in all, and each gets noise at l1·(log₂m + 1)/ε.
Assumes    the table's bound; a domain that fits in memory.
Source     Xiao, Wang & Gehrke, ICDE 2010 and TKDE 2011.
Differs    unnormalised coefficients, which are whole numbers and all get the same noise: the paper's
           weights cancel; add-or-remove neighbours, where the paper replaces and doubles the noise; a
           domain that is no power of two gets no noise on its padding; noise as in LaplaceHistogram.
Cost       time and memory O(domain size).
"""

from fractions import Fraction

import numpy as np

from workbench import noise
from workbench.estimates import Histogram
from workbench.mechanism import (
    Mechanism,
    Release,
    memory_field,
    noise_law_field,
    pure_budget,
    sensitivity,
)
from workbench.privacy import DP
from workbench.table import SparseTable
from workbench.transform import Haar
from workbench.value import sealed, value


@value
class Privelet(Mechanism):
    """Release a histogram whose ranges have errors of polylogarithmic size."""

    budget: DP = pure_budget()
    noise: str = noise_law_field()
    memory: int = memory_field()
    cite = "xiao2011"
    title = "Privelet"

    def __call__(self, table: SparseTable, rng=None) -> Release:
        """Release a count for every cell."""
        self.refuse_dense(table.domain.size)
        basis = Haar().on(table.domain)
        nodes, values = basis.forward(table.keys, table.counts)
        coefficients = np.zeros(table.domain.size, np.int64)
        coefficients[nodes] = values
        l1 = Fraction(sensitivity(table)) * basis.noise_blocks[0].nodes_per_count
        noisy, _, receipt = noise.add_noise(
            coefficients,
            l1=l1,
            linf=sensitivity(table),
            epsilon=self.budget.epsilon,
            law=self.noise,
            rng=rng,
        )
        cells = sealed(basis.inverse(noisy))
        return Release(Histogram(table.domain, cells), (receipt,), self, table.bound)
