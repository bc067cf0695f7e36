"""Privelet: noise on the Haar wavelet coefficients of a histogram.

Guarantee  ε-DP per unit, or ρ-zCDP; a count that moves by one moves the total and one difference a level,
           log₂m + 1 in all: each gets noise at l1·(log₂m + 1)/ε, or of variance l1²·(log₂m + 1)/(2ρ)
           at most.
Assumes    the table's bound; a domain that fits in memory.
Source     Xiao, Wang & Gehrke, ICDE 2010 and TKDE 2011.
Differs    unnormalised coefficients, which are whole numbers and all get the same noise: the paper's
           weights cancel; add-or-remove neighbours, where the paper replaces and doubles the noise; a
           domain that is no power of two gets no noise on its padding; noise as in LaplaceHistogram.
Cost       time and memory O(domain size).
"""

from fractions import Fraction

import numpy as np

from workbench.estimates import Histogram
from workbench.estimates.linear_noise import HaarNoise
from workbench.mechanism import (
    Mechanism,
    Release,
    add_noise,
    memory_field,
    noise_law_field,
    private_bound,
    pure_budget,
    settle_noise,
)
from workbench.privacy import DP, ZCDP
from workbench.table import SparseTable
from workbench.transform import Haar
from workbench.value import sealed, value


@value
class Privelet(Mechanism):
    """Release a histogram whose ranges have errors of polylogarithmic size."""

    budget: DP | ZCDP = pure_budget(zcdp=True)
    noise: str = noise_law_field(zcdp=True)
    memory: int = memory_field()
    cite = "xiao2011"
    title = "Privelet"
    accepts_zcdp = True
    fixed_price = True

    def __post_init__(self) -> None:
        settle_noise(self)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release a count for every cell."""
        self.refuse_dense(table.domain.size)
        basis = Haar().on(table.domain)
        nodes, values = basis.forward(table.keys, table.counts)
        coefficients = np.zeros(table.domain.size, np.int64)
        coefficients[nodes] = values
        (block,) = basis.noise_blocks
        bound = private_bound(table)
        noisy, variance, receipt = add_noise(
            coefficients,
            self.budget,
            l1=Fraction(bound.l1) * block.nodes_per_count,
            linf=bound.l1,
            l2_squared=block.l2_squared(bound),
            law=self.noise,
            rng=rng,
        )
        cells = sealed(basis.inverse(noisy))
        histogram = Histogram(table.domain, cells, noise=HaarNoise(variance))
        return Release(histogram, (receipt,), self, bound)
