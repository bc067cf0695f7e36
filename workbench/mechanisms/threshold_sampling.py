"""Threshold sampling: noise on every cell, each then kept with probability min(|v|/τ, 1).

Guarantee  ε-DP per unit; all of ε pays for the counts, sampling is post-processing.
Assumes    the table's bound; τ, or the size it is chosen from, is stated without looking at the data.
Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.3, Theorem 2, appendix C.2,
           and C.4 (with a filter); threshold sampling itself: Duffield, Lund & Thorup, SIGCOMM 2003.
Differs    formulas for real θ and τ; τ from `size` solves m·p_τ = size instead of using ‖M‖₁, which
           would reveal the total; sampled weights are divided by their probability (the paper's
           words are "scaled by").
Cost       time and memory O(non-empty cells + released cells), whatever the domain's size.
"""

from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from workbench import noise
from workbench.estimates import Summary
from workbench.mechanism import (
    Release,
    parameter,
    pure_budget,
    refuse_larger,
    sensitivity,
)
from workbench.privacy import DP
from workbench.table import SparseTable
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
    takes: ClassVar[type] = SparseTable
    cite: ClassVar[str] = "cormode2012"

    def __post_init__(self):
        if (self.tau is None) == (self.size is None):
            raise ValueError("ThresholdSampling needs either tau or size, and not both")

    def survival(self, decay: float, tau: float | None = None) -> float:
        """p_θτ, the probability that an empty cell is released, at noise decay ε/Δ.

        Σ_{|v|>=θ} (1−α)/(1+α)·α^|v|·min(|v|/τ, 1), for real θ and τ (see `noise.empty_cells`).
        """
        law = noise.empty_cell(
            Fraction(decay), self.theta, self.sides, self.tau if tau is None else tau
        )
        return float(law.survival(128))

    def threshold(self, m: int, l1: float) -> float:
        """τ in counts: as given, or where m·p_θτ = size; 0 where the filter alone suffices."""
        if self.tau is not None:
            return self.tau
        refuse_larger(self, m)
        decay, low = self.budget.epsilon / l1, max(1.0, self.theta)
        if m * self.survival(decay, low) <= self.size:
            return 0.0 if m * self.survival(decay, 1e-9) <= self.size else low
        high = 2 * low
        while m * self.survival(decay, high) > self.size:
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            over = m * self.survival(decay, middle) > self.size
            low, high = (middle, high) if over else (low, middle)
        return high

    def summarise(self, table_size: int, noisy, l1: float, rng=None):
        """The laborious second step on a full noisy table: (kept cells, θ, τ)."""
        tau = max(self.threshold(table_size, l1), 1.0)
        kept = noise.sample(noisy, theta=self.theta, sides=self.sides, tau=tau, rng=rng)
        return kept, self.theta, tau

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the sampled cells."""
        size, l1 = table.domain.size, sensitivity(table)
        epsilon, tau = self.budget.epsilon, max(self.threshold(size, l1), 1.0)
        keys, values, receipt = noise.survivors(
            table.keys,
            table.counts,
            size,
            l1=l1,
            epsilon=epsilon,
            theta=self.theta,
            sides=self.sides,
            tau=tau,
            rng=rng,
        )
        summary = Summary(table.domain, keys, values, epsilon / l1, self.theta, tau, self.sides)
        return Release(summary, (receipt,), self, table.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Cells of ten noise scales are kept for sure."""
        return cls(budget, tau=10 / budget.epsilon)
