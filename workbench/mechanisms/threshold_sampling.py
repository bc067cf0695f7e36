"""Threshold sampling: noise on every cell, each then kept with probability min(|v|/τ, 1).

Guarantee  ε-DP per unit; all of ε pays for the counts, sampling is post-processing.
           A count that moves by one moves ⌈log₂m⌉ + 1 nodes of a `transform`, which share ε.
Assumes    the table's bound; τ, or the size it is chosen from, is stated without looking at the data.
Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.3, Theorem 2, appendix C.2,
           and C.4 (with a filter), section 3 (transforms), 4.3 (consistency); threshold sampling
           itself: Duffield, Lund & Thorup, SIGCOMM 2003.
Differs    formulas for real θ and τ; τ from `size` solves m·p_τ = size instead of using ‖M‖₁, which
           would reveal the total; sampled weights are divided by their probability (the paper's
           words are "scaled by").
Cost       time and memory O(non-empty cells + released cells), whatever the domain's size m; with a
           transform n cells are O(n·log(m/n)) non-empty nodes; `consistent` costs all that pass θ.
"""

from fractions import Fraction
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
class ThresholdSampling:
    """Release each noisy cell with a probability proportional to its size, up to τ."""

    budget: DP = pure_budget()
    tau: float = parameter(
        None, 0, 2**50, unit="counts", doc="cells of at least τ are all kept"
    )
    theta: float = parameter(0, 0, 2**50, unit="counts", doc="filter before sampling")
    sides: int = parameter(2, choices=(1, 2), doc="2 keeps large negatives too, 1 is M'₊")
    size: int = parameter(
        None,
        1,
        integer=True,
        unit="cells",
        doc="chooses τ: expected survivors of an empty table",
    )
    transform: Dyadic | Haar | None = transform_field()
    consistent: bool = consistent_field()
    takes: ClassVar[type] = SparseTable
    cite: ClassVar[str] = "cormode2012"

    def __post_init__(self):
        if (self.tau is None) == (self.size is None):
            raise ValueError("ThresholdSampling needs either tau or size, and not both")
        refuse_inconsistent(self, self.theta)

    def survival(self, decay: float, tau: float | None = None) -> float:
        """p_θτ, the probability that an empty cell is released, at noise decay ε/Δ.

        Σ_{|v|>=θ} (1−α)/(1+α)·α^|v|·min(|v|/τ, 1), for real θ and τ (see `noise.empty_cells`).
        """
        law = noise.empty_cell(
            Fraction(decay), self.theta, self.sides, self.tau if tau is None else tau
        )
        return float(law.survival(128))

    def threshold(self, domain: Domain, l1: float) -> float:
        """τ in counts: as given, or where Σ m·p_θτ = size; 0 where the filter alone suffices."""
        if self.tau is not None:
            return self.tau
        blocks = noise_blocks(self, domain, l1)
        refuse_size_above(self, sum(b.size for b in blocks))
        decays = [noise.decay(b.l1, b.epsilon) for b in blocks]

        def over(tau: float) -> bool:
            p = [b.size * self.survival(d, tau) for b, d in zip(blocks, decays, strict=True)]
            return sum(p) > self.size

        low = max(1.0, self.theta)
        if not over(low):
            return 0.0
        high = 2 * low
        while over(high):
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if over(middle) else (low, middle)
        return high

    def summarise(
        self, noisy: Summary, l1: float, rng: np.random.Generator | None = None
    ) -> Summary:
        """The second step, on noisy cells among which are all that pass."""
        asked = dict(theta=self.theta, sides=self.sides)
        if self.consistent:
            noisy = consistent(
                noisy.where(noise.threshold_sample_public(noisy.values, **asked), **asked)
            )
        tau = max(self.threshold(noisy.domain, l1), 1.0)
        kept = noise.threshold_sample_public(noisy.values, **asked, tau=tau, rng=rng)
        return noisy.where(kept, **asked, tau=tau)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the sampled cells, or nodes."""
        basis, l1 = basis_of(self.transform, table.domain), sensitivity(table)
        blocks = noise_blocks(self, table.domain, l1)
        tau = 0.0 if self.consistent else max(self.threshold(table.domain, l1), 1.0)
        asked = dict(theta=self.theta, sides=self.sides, tau=tau)
        keys, values, ledger = noise.threshold_sample(
            *basis.forward(table.keys, table.counts), blocks, **asked, rng=rng
        )
        sampled = summary_in_basis(basis, keys, values, self.budget.epsilon / l1, **asked)
        if self.consistent:
            sampled = self.summarise(sampled, l1, rng)
        return Release(sampled, ledger, self, table.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Cells of ten noise scales are kept for sure."""
        return cls(budget, tau=10 / budget.epsilon)
