"""Histograms with noise on every cell: Laplace, geometric and Gaussian noise, and Privelet, which adds noise
to wavelet coefficients.
"""

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
    """Base of mechanisms that release a noisy count for every cell of the domain. With a `transform`, such a
    mechanism releases a noisy value for every node instead. A node is a sum of cells, or a difference of two
    such sums. A subclass chooses the distribution of the noise.
    """

    fixed_price = True
    transform: Any
    memory: int

    def _noisy(self, values: np.ndarray, block: Any, rng: np.random.Generator | None) -> Any:
        raise NotImplementedError

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release a noisy count for every cell of the domain. With a `transform`, release a noisy value for
        every node (a sum or difference of cells) instead.
        """
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
    """Release every cell's count with independent noise.

    Guarantee  The release is ε-DP for each unit. The whole ε pays for the noise on the counts.
    Assumes    No protected unit changes the counts by more than the table's bound allows. All cells of the
               domain (the public list of possible cells) fit in memory.
    Source     Dwork, McSherry, Nissim & Smith, TCC 2006. Hay, Rastogi, Miklau & Suciu, PVLDB 2010, section
               2.2, call the mechanism L̃.
    Differs    We draw geometric noise, or Laplace noise that is a multiple of a small public number. This
               number is about a thousandth of the noise's scale, but at least 1/512 and at most 1. The noise
               has exactly the stated probabilities.
    Cost       Time and memory are O(number of possible cells).
    """

    budget: DP = budget_field()
    noise: str = noise_law_field()
    memory: int = memory_field()
    cite = "hay2010"
    title = "Laplace histogram"
    fixed_price = True

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release a noisy count for every cell of the domain."""
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
    """Release every cell's count with geometric noise.

    The released table contains all cells, including empty cells. We use this table as a baseline for mechanisms
    that release fewer cells, for example `HighPassFilter`.

    Guarantee  The release is ε-DP for each unit. The whole ε pays for the noise on the counts. With a
               `transform`, the mechanism adds noise to nodes instead of cells. A node is a sum of cells, or a
               difference of two such sums. ε is divided among the nodes that one record changes. For m cells,
               one record changes ⌈log₂m⌉ + 1 nodes. With `Dyadic(2)`, nodes are boxes over two attributes, and
               one record changes more nodes.
    Assumes    No protected unit changes the counts by more than the table's bound allows. All cells of the
               domain (the public list of possible cells) fit in `memory`.
    Source     Ghosh, Roughgarden & Sundararajan, STOC 2009. Cormode, Procopiuc, Srivastava & Tran, ICDT
               2012, section 2.1, use this mechanism as a baseline, M'.
    Differs    nothing.
    Cost       Time and memory are O(number of possible cells), even if most cells are empty.
    """

    budget: DP = budget_field(refused="use GaussianHistogram")
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
    """Release every cell's count with Gaussian noise.

    The budget is a ρ, which measures the privacy loss in zero-concentrated differential privacy (zCDP).

    Guarantee  The release is ρ-zCDP for each unit. The whole ρ pays for the noise on the counts. With a
               `transform`, the mechanism adds noise to the nodes of a tree instead of cells. A node is a sum of
               cells, or a difference of two such sums. The mechanism divides ρ among the levels of the tree.
               For each level, it computes the squared l2 sensitivity: the largest sum of squared changes of the
               level's nodes that one unit can cause.
    Assumes    No protected unit changes the counts by more than the table's bound allows. All cells of the
               domain (the public list of possible cells) fit in `memory`.
    Source     Canonne, Kamath & Steinke, NeurIPS 2020. The proof is in docs/accounting.md.
    Differs    nothing.
    Cost       Time and memory are O(number of possible cells), even if most cells are empty.
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
    """Release a histogram from noisy wavelet coefficients.

    The mechanism computes the Haar wavelet transform of the counts. It adds noise to the coefficients of this
    transform, and transforms the noisy coefficients back to counts. For a sum over a range of cells, the error
    grows slowly, like a power of the logarithm of the domain size.

    Guarantee  The release is ε-DP for each unit, or ρ-zCDP if the budget is a ρ. For a domain of m cells, one
               record changes log₂m + 1 coefficients. The first of these coefficients is the total. The others
               are differences between sums of cells, one difference for each level of the transform. Let l1 be
               the largest total change of the counts that one protected unit can cause. With a budget in ε,
               each coefficient gets noise of scale l1·(log₂m + 1)/ε. With a budget in ρ, the variance of the
               noise is at most l1²·(log₂m + 1)/(2ρ).
    Assumes    No protected unit changes the counts by more than the table's bound allows. All cells of the
               domain (the public list of possible cells) fit in memory.
    Source     Xiao, Wang & Gehrke, ICDE 2010 and TKDE 2011.
    Differs    We do not normalise the coefficients, so all coefficients are integers. The paper divides each
               coefficient, and the scale of its noise, by the number of cells on which the coefficient depends.
               Without these divisions, all coefficients get noise of the same scale. Our guarantee is for one
               unit that is added or removed. In the paper, one unit is replaced by another, which doubles the
               noise. For the transform, the number of cells must be a power of two. Otherwise, we append cells
               with the count 0 and without noise. The noise is the same as in LaplaceHistogram.
    Cost       Time and memory are O(number of possible cells).
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
        """Release a noisy count for every cell of the domain."""
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
