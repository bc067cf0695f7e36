"""High-pass filter: noise on every cell, of which only those that reach θ are released.

Guarantee  ε-DP per unit, or ρ-zCDP; all of it pays for the counts, the filter is post-processing.
           A count that moves by one moves ⌈log₂m⌉ + 1 nodes of a `transform`, which share it.
Assumes    the table's bound; θ, or the size it is chosen from, is stated without looking at the data.
Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.2, Theorem 1, appendix C.1;
           transforms: section 3, Theorem 4; consistency: section 4.3.
Differs    formulas for real θ (printed for whole numbers); θ from `size` uses m, not m − n, which would
           reveal n; the summary is never drawn again until it is large enough, which would cost 2ε.
Cost       time and memory O(non-empty cells + released cells), whatever the domain's size m; with a
           transform n cells are O(n·log(m/n)) non-empty nodes.
"""

from bisect import bisect_left
from math import ceil, exp
from typing import Any, Self

import numpy as np

from workbench import noise
from workbench.domain import Domain
from workbench.estimates import Law, Summary
from workbench.estimates.law import GAUSSIAN
from workbench.mechanism import (
    DP,
    ZCDP,
    consistent_field,
    inverse_scale,
    parameter,
    pure_budget,
    transform_field,
)
from workbench.mechanisms._sparse_summary import (
    SparseSummary,
    sides_field,
    summary_name,
    threshold_size_field,
)
from workbench.table import Bound
from workbench.transform import Dyadic, Haar
from workbench.value import value


@value
class HighPassFilter(SparseSummary):
    """Release the cells whose noisy count v has |v| >= θ (`sides` = 2) or v >= θ (`sides` = 1)."""

    budget: DP | ZCDP = pure_budget(zcdp=True)
    theta: float = parameter(None, 0, 2**50, unit="counts", doc="cut-off θ")
    sides: int = sides_field()
    size: int = threshold_size_field("θ")
    transform: Dyadic | Haar | None = transform_field()
    consistent: bool = consistent_field()
    title = "high-pass filter"

    def __post_init__(self) -> None:
        if (self.theta is None) == (self.size is None):
            raise ValueError("HighPassFilter needs either theta or size, and not both")
        self.refuse_inconsistent(self.theta)

    @property
    def series(self) -> str:
        """Its name in figures."""
        return summary_name("filter", self.sides)

    def survival(self, alpha: float, theta: float | None = None) -> float:
        """p_θ, the probability that an empty cell passes, α = exp(−ε/Δ).

        Σ over passing x of (1−α)/(1+α)·α^|x| = sides·α^⌈θ⌉/(1+α); two-sided at θ = 0 everything passes.
        """
        theta = self.theta if theta is None else theta
        if theta == 0 and self.sides == 2:
            return 1.0
        return self.sides * alpha ** ceil(theta) / (1 + alpha)

    def threshold(self, domain: Domain, l1: Bound | float) -> float:
        """θ in counts: as given, or the smallest whole number >= 1 with Σ m·p_θ <= size.

        One block of m cells: sides·m·α^θ/(1+α) = size, solved for θ; several blocks: bisection between
        the θ that suffices for each alone with its share. n does not enter, so θ reveals nothing. Of a
        ρ `l1` is the whole bound of a unit.
        """
        if self.theta is not None:
            return self.theta
        return self._smallest_theta(self._blocks(domain, l1))

    def release_rule(self, domain: Domain, bound: Bound) -> dict[str, float]:
        """θ and its sides, from which `advice` computes errors."""
        return dict(theta=float(self.threshold(domain, bound)), sides=self.sides)

    def _smallest_theta(self, blocks: list[Any]) -> int:
        self.refuse_size_above(sum(block.size for block in blocks))
        laws = [block.law for block in blocks]

        def chance(law: Law, theta: int) -> float:
            if law.kind == GAUSSIAN:
                return noise.empty_cell(law, theta, self.sides).chance
            return self.survival(exp(-law.rate), theta)

        def suffices(theta: int) -> bool:
            survivors = sum(
                block.size * chance(law, theta) for block, law in zip(blocks, laws, strict=True)
            )
            return survivors <= self.size

        high = 1
        while not suffices(high):
            high *= 2
        low = high // 2 + 1
        return low + bisect_left(range(low, high), True, key=suffices)

    def _thresholds(self, blocks: list[Any]) -> tuple[float, float]:
        theta = self._smallest_theta(blocks) if self.theta is None else self.theta
        return theta, 0.0

    def _select(
        self, noisy: Summary, theta: float, tau: float, rng: np.random.Generator | None
    ) -> Summary:
        if self.consistent:
            return self._consistent(noisy, theta)
        passes = noise.threshold_sample_public(
            noisy.values, theta=theta, sides=self.sides, rng=rng
        )
        return noisy.where(passes, theta=theta, sides=self.sides)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """A cut of four noise scales."""
        return cls(budget, theta=ceil(4 / inverse_scale(budget)))
