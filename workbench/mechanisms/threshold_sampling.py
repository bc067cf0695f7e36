"""Threshold sampling: noise on every cell, each then kept with probability min(|v|/τ, 1).

Guarantee  ε-DP per unit, or ρ-zCDP; all of it pays for the counts, sampling is post-processing.
           A count that moves by one moves ⌈log₂m⌉ + 1 nodes of a `transform`, which share it.
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
from functools import lru_cache
from typing import Any, Self

import numpy as np

from workbench import noise
from workbench.domain import Domain
from workbench.estimates import Law, Summary
from workbench.estimates.law import GEOMETRIC
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
    filter_field,
    sides_field,
    summary_name,
    threshold_size_field,
)
from workbench.table import Bound
from workbench.transform import Dyadic, Haar
from workbench.value import value


@value
class ThresholdSampling(SparseSummary):
    """Release each noisy cell with a probability proportional to its size, up to τ."""

    budget: DP | ZCDP = pure_budget(zcdp=True)
    tau: float = parameter(
        None, 0, 2**50, unit="counts", doc="cells of at least τ are all kept"
    )
    theta: float = filter_field()
    sides: int = sides_field()
    size: int = threshold_size_field("τ")
    transform: Dyadic | Haar | None = transform_field()
    consistent: bool = consistent_field()
    title = "threshold sampling"

    def __post_init__(self) -> None:
        if (self.tau is None) == (self.size is None):
            raise ValueError("ThresholdSampling needs either tau or size, and not both")
        self.refuse_inconsistent(self.theta)

    @property
    def series(self) -> str:
        """Its name in figures."""
        return summary_name("threshold", self.sides, self.theta)

    def survival(self, decay: Law | float, tau: float | None = None) -> float:
        """p_θτ, the probability that an empty cell is released, at noise of that law, or decay ε/Δ.

        Σ_{|v|>=θ} (1−α)/(1+α)·α^|v|·min(|v|/τ, 1), for real θ and τ (see `noise.empty_cells`).
        """
        tau = self.tau if tau is None else tau
        law = decay if isinstance(decay, Law) else Law(GEOMETRIC, Fraction(decay))
        return noise.empty_cell(law, self.theta, self.sides, tau).chance

    def threshold(self, domain: Domain, l1: Bound | float) -> float:
        """τ in counts: as given, or where Σ m·p_θτ = size; 0 where the filter alone suffices.

        Of a ρ `l1` is the whole bound of a unit.
        """
        if self.tau is not None:
            return self.tau
        return self._smallest_tau(self._blocks(domain, l1))

    def release_rule(self, domain: Domain, bound: Bound) -> dict[str, float]:
        """θ, τ and sides, from which `advice` computes errors."""
        tau = max(self.threshold(domain, bound), 1.0)
        return dict(theta=float(self.theta), tau=tau, sides=self.sides)

    def _smallest_tau(self, blocks: list[Any]) -> float:
        self.refuse_size_above(sum(block.size for block in blocks))
        return _smallest_tau(self, tuple((block.law, block.size) for block in blocks))

    def _thresholds(self, blocks: list[Any]) -> tuple[float, float]:
        tau = self._smallest_tau(blocks) if self.tau is None else self.tau
        return self.theta, max(tau, 1.0)

    def _select(
        self, noisy: Summary, theta: float, tau: float, rng: np.random.Generator | None
    ) -> Summary:
        if self.consistent:
            noisy = self._consistent(noisy, theta)
        kept = noise.threshold_sample_public(
            noisy.values, theta=theta, sides=self.sides, tau=tau, rng=rng
        )
        return noisy.where(kept, theta=theta, sides=self.sides, tau=tau)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Cells of ten noise scales are kept for sure."""
        return cls(budget, tau=10 / inverse_scale(budget))


@lru_cache(maxsize=256)  # a sweep asks once a seed, of what depends on no data
def _smallest_tau(mechanism: ThresholdSampling, blocks: tuple[tuple[Law, int], ...]) -> float:
    """τ where as many empty cells survive as `mechanism.size`, of blocks of (law, cells)."""

    def too_many(tau: float) -> bool:
        survivors = sum(cells * mechanism.survival(law, tau) for law, cells in blocks)
        return survivors > mechanism.size

    low = max(1.0, mechanism.theta)
    if not too_many(low):
        return 0.0
    high = 2 * low
    while too_many(high):
        low = high
        high = 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        if too_many(middle):
            low = middle
        else:
            high = middle
    return high
