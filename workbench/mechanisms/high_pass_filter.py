"""High-pass filter: noise on every cell, of which only those that reach θ are released.

Guarantee  ε-DP per unit; all of ε pays for the counts, the filter is post-processing.
           A count that moves by one moves ⌈log₂m⌉ + 1 nodes of a `transform`, which share ε.
Assumes    the table's bound; θ, or the size it is chosen from, is stated without looking at the data.
Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.2, Theorem 1, appendix C.1;
           transforms: section 3, Theorem 4; consistency: section 4.3.
Differs    formulas for real θ (printed for whole numbers); θ from `size` uses m, not m − n, which would
           reveal n; the summary is never drawn again until it is large enough, which would cost 2ε.
Cost       time and memory O(non-empty cells + released cells), whatever the domain's size m; with a
           transform n cells are O(n·log(m/n)) non-empty nodes.
"""

from math import ceil, exp
from typing import ClassVar, Self

import numpy as np

from workbench import noise
from workbench.domain import Domain
from workbench.estimates import Summary, summary_in_basis
from workbench.inference import consistent
from workbench.mechanism import (
    Release,
    consistent_field,
    noise_blocks,
    parameter,
    pure_budget,
    refuse_inconsistent,
    refuse_size_above,
    sensitivity,
    transform_field,
)
from workbench.privacy import DP
from workbench.table import SparseTable
from workbench.transform import Dyadic, Haar, basis_of
from workbench.value import value


@value
class HighPassFilter:
    """Release the cells whose noisy count v has |v| >= θ (`sides` = 2) or v >= θ (`sides` = 1)."""

    budget: DP = pure_budget()
    theta: float = parameter(None, 0, 2**50, unit="counts", doc="cut-off θ")
    sides: int = parameter(2, choices=(1, 2), doc="2 keeps large negatives too, 1 is M'₊")
    size: int = parameter(
        None,
        1,
        integer=True,
        unit="cells",
        doc="chooses θ: expected survivors of an empty table",
    )
    transform: Dyadic | Haar | None = transform_field()
    consistent: bool = consistent_field()
    takes: ClassVar[type] = SparseTable
    cite: ClassVar[str] = "cormode2012"

    def __post_init__(self):
        if (self.theta is None) == (self.size is None):
            raise ValueError("HighPassFilter needs either theta or size, and not both")
        refuse_inconsistent(self, self.theta)

    def survival(self, alpha: float, theta: float | None = None) -> float:
        """p_θ, the probability that an empty cell passes, α = exp(−ε/Δ).

        Σ over passing x of (1−α)/(1+α)·α^|x| = sides·α^⌈θ⌉/(1+α); two-sided at θ = 0 everything passes.
        """
        theta = self.theta if theta is None else theta
        if theta == 0 and self.sides == 2:
            return 1.0
        return self.sides * alpha ** ceil(theta) / (1 + alpha)

    def cut(self, domain: Domain, l1: float) -> float:
        """θ in counts: as given, or the smallest whole number >= 1 with Σ m·p_θ <= size.

        One block of m cells: sides·m·α^θ/(1+α) = size, solved for θ; several blocks: bisection between
        the θ that suffices for each alone with its share. n does not enter, so θ reveals nothing.
        """
        if self.theta is not None:
            return self.theta
        blocks = noise_blocks(self, domain, l1)
        refuse_size_above(self, sum(b.size for b in blocks))
        alphas = [exp(-noise.decay(b.l1, b.epsilon)) for b in blocks]

        def passing(theta: int) -> float:
            return sum(
                b.size * self.survival(a, theta) for b, a in zip(blocks, alphas, strict=True)
            )

        low, high = 0, 1
        while passing(high) > self.size:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if passing(middle) > self.size else (low, middle)
        return high

    def summarise(
        self, noisy: Summary, l1: float, rng: np.random.Generator | None = None
    ) -> Summary:
        """The second step, on noisy cells among which are all that pass."""
        theta = self.cut(noisy.domain, l1)
        kept = noise.threshold_sample_public(
            noisy.values, theta=theta, sides=self.sides, rng=rng
        )
        passed = noisy.where(kept, theta=theta, sides=self.sides)
        return consistent(passed) if self.consistent else passed

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the cells, or nodes, that pass."""
        basis, l1 = basis_of(self.transform, table.domain), sensitivity(table)
        blocks = noise_blocks(self, table.domain, l1)
        theta = self.cut(table.domain, l1)
        keys, values, ledger = noise.threshold_sample(
            *basis.forward(table.keys, table.counts),
            blocks,
            theta=theta,
            sides=self.sides,
            rng=rng,
        )
        passed = summary_in_basis(
            basis, keys, values, self.budget.epsilon / l1, theta, sides=self.sides
        )
        if self.consistent:
            passed = self.summarise(passed, l1, rng)
        return Release(passed, ledger, self, table.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """A cut of four noise scales."""
        return cls(budget, theta=ceil(4 / budget.epsilon))
