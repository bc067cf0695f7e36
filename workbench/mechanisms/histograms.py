"""Histograms with noise on every cell: Laplace, geometric, Gaussian, and Privelet."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from workbench import noise
from workbench.data import SparseTable
from workbench.estimates import Histogram, summary_in_basis
from workbench.estimates.linear_noise import HaarNoise
from workbench.estimates.release import Release
from workbench.mechanisms.protocol import (
    Mechanism,
    add_noise,
    blocks_within,
    budget_field,
    law_within,
    memory_field,
    noise_law_field,
    private_bound,
    settle_noise,
    transform_field,
)
from workbench.privacy import DP, ZCDP
from workbench.queries import Dyadic, Haar, basis_of
from workbench.value import sealed, value

# Full table

BYTES_PER_CELL = 24  # a key, a count and its noisy value


class FullTable(Mechanism):
    """Base of mechanisms that release every cell or node. A subclass chooses the noise."""

    fixed_price = True
    transform: Any
    memory: int

    def _noisy(self, values: np.ndarray, block: Any, rng: np.random.Generator | None) -> Any:
        raise NotImplementedError

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release every cell of the domain, or every node over it."""
        bound = private_bound(table)
        basis = basis_of(self.transform, table.domain)
        blocks = blocks_within(basis, bound, self.budget)
        size = sum(block.size for block in blocks)
        if size * BYTES_PER_CELL > self.memory:
            raise ValueError(
                f"{type(self).__name__}.memory = {self.memory} is too little: each of {size} cells needs "
                f"{BYTES_PER_CELL} bytes. A filter or a sample needs memory for released cells only"
            )
        nodes, counts = basis.forward(table.keys, table.counts)
        exact = np.zeros(size, np.int64)
        exact[nodes] = counts
        noisy = []
        ledger = []
        start = 0
        for block in blocks:
            values, receipt = self._noisy(exact[start : start + block.size], block, rng)
            noisy.append(values)
            ledger.append(receipt)
            start += block.size
        values = noisy[0] if len(noisy) == 1 else sealed(np.concatenate(noisy))
        law = law_within(basis, bound, self.budget)
        full = summary_in_basis(basis, sealed(np.arange(size)), values, law)
        return Release(full, tuple(ledger), self, bound)


# Laplace histogram


@value
class LaplaceHistogram(Mechanism):
    """Release every cell with independent noise.

    Guarantee  ε-DP per unit. All of ε pays for the counts.
    Assumes    the table's bound, and a domain that fits in memory.
    Source     Dwork, McSherry, Nissim & Smith, TCC 2006; L̃ in Hay, Rastogi, Miklau & Suciu, PVLDB 2010,
               section 2.2.
    Differs    We draw geometric noise, or exact Laplace noise on a public grid. The grid's step is
               at most a thousandth of the scale of the noise.
    Cost       time and memory O(domain size).
    """

    budget: DP = budget_field()
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


# Geometric histogram


@value
class GeometricHistogram(FullTable):
    """Release every cell with geometric noise.

    This full noisy table is the baseline for compact summaries.

    Guarantee  ε-DP per unit. All of ε pays for the counts. With a `transform`, one record changes ⌈log₂m⌉ +
               1 nodes, which share ε.
    Assumes    the table's bound, and a domain that fits in `memory`.
    Source     Ghosh, Roughgarden & Sundararajan, STOC 2009; the baseline M' of Cormode et al., ICDT 2012,
               section 2.1.
    Differs    nothing.
    Cost       time and memory O(domain size), however sparse the data are.
    """

    budget: DP = budget_field(refused="which GaussianHistogram spends")
    memory: int = memory_field()
    transform: Dyadic | Haar | None = transform_field()
    cite = "ghosh2009"
    title = "geometric histogram"
    series = "geometric"

    def _noisy(self, values: Any, block: Any, rng: Any) -> Any:
        return noise.geometric(
            values, l1=block.l1, epsilon=block.epsilon, linf=block.linf, rng=rng
        )


# Gaussian histogram


@value
class GaussianHistogram(FullTable):
    """Release every cell with Gaussian noise.

    The budget is a ρ in zero-concentrated differential privacy.

    Guarantee  ρ-zCDP per unit. All of ρ pays for the counts. With a `transform`, the squared l2 sensitivity
               is a sum over levels. Each level contributes the squared change that one unit makes to its
               nodes.
    Assumes    the table's bound, and a domain that fits in `memory`.
    Source     Canonne, Kamath & Steinke, NeurIPS 2020; proved in docs/accounting.md.
    Differs    nothing.
    Cost       time and memory O(domain size), however sparse the data are.
    """

    budget: ZCDP = budget_field(dp=False, zcdp=True)
    memory: int = memory_field()
    transform: Dyadic | Haar | None = transform_field()
    cite = "canonne2020"
    title = "Gaussian histogram"
    series = "Gaussian"

    def _noisy(self, values: Any, block: Any, rng: Any) -> Any:
        return noise.gaussian(values, l2_squared=block.l2_squared, rho=block.rho, rng=rng)


# Privelet


@value
class Privelet(Mechanism):
    """Release a histogram by noisy wavelet coefficients.

    The error of a range grows only like a power of the logarithm of the domain size.

    Guarantee  ε-DP per unit, or ρ-zCDP. One record changes log₂m + 1 coefficients: the total, and one
               difference per level. Each gets noise of scale l1·(log₂m + 1)/ε, or of variance at most
               l1²·(log₂m + 1)/(2ρ).
    Assumes    the table's bound, and a domain that fits in memory.
    Source     Xiao, Wang & Gehrke, ICDE 2010 and TKDE 2011.
    Differs    Coefficients are not normalised, so they are integers. All get the same noise,
               because the paper's weights cancel without normalisation. Neighbours differ by adding or
               removing a unit. The paper replaces a unit, which doubles the noise. If the domain size is
               not a power of two, cells that only fill it up get no noise. The noise is that of
               LaplaceHistogram.
    Cost       time and memory O(domain size).
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    noise: str = noise_law_field(zcdp=True)
    memory: int = memory_field()
    cite = "xiao2011"
    title = "Privelet"
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
