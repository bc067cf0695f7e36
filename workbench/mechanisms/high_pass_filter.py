"""High-pass filter: noise on every cell, of which only those that reach θ are released.

Guarantee  ε-DP per unit; all of ε pays for the counts, the filter is post-processing.
Assumes    the table's bound; θ, or the size it is chosen from, is stated without looking at the data.
Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.2, Theorem 1, appendix C.1.
Differs    formulas for real θ (printed for whole numbers); θ from `size` uses m, not m − n, which would
           reveal n; the summary is never drawn again until it is large enough, which would cost 2ε.
Cost       time and memory O(non-empty cells + released cells), whatever the domain's size.
"""

from math import ceil, exp, log, log1p
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
    takes: ClassVar[type] = SparseTable
    cite: ClassVar[str] = "cormode2012"

    def __post_init__(self):
        if (self.theta is None) == (self.size is None):
            raise ValueError("HighPassFilter needs either theta or size, and not both")

    def survival(self, alpha: float) -> float:
        """p_θ, the probability that an empty cell passes, α = exp(−ε/Δ).

        Σ over passing x of (1−α)/(1+α)·α^|x| = sides·α^⌈θ⌉/(1+α); two-sided at θ = 0 everything passes.
        """
        if self.theta == 0 and self.sides == 2:
            return 1.0
        return self.sides * alpha ** ceil(self.theta) / (1 + alpha)

    def cut(self, m: int, l1: float) -> float:
        """θ in counts: as given, or the smallest whole number >= 1 with m·p_θ <= size.

        Solving sides·m·α^θ/(1+α) = size for θ; n does not enter, so θ reveals nothing.
        """
        if self.theta is not None:
            return self.theta
        refuse_larger(self, m)
        decay = self.budget.epsilon / l1
        least = (log(self.sides) + log(m) - log1p(exp(-decay)) - log(self.size)) / decay
        return max(1, ceil(least))

    def summarise(self, table_size: int, noisy, l1: float, rng=None):
        """The laborious second step on a full noisy table: (kept cells, θ, τ)."""
        theta = self.cut(table_size, l1)
        return noise.sample(noisy, theta=theta, sides=self.sides, rng=rng), theta, 0.0

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the cells that pass."""
        size, l1 = table.domain.size, sensitivity(table)
        epsilon, theta = self.budget.epsilon, self.cut(size, l1)
        keys, values, receipt = noise.survivors(
            table.keys,
            table.counts,
            size,
            l1=l1,
            epsilon=epsilon,
            theta=theta,
            sides=self.sides,
            rng=rng,
        )
        summary = Summary(table.domain, keys, values, epsilon / l1, theta, sides=self.sides)
        return Release(summary, (receipt,), self, table.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """A cut of four noise scales."""
        return cls(budget, theta=ceil(4 / budget.epsilon))
