"""Priority sampling: noise on every cell, of which the `size` with the largest |v|/r are released.

Guarantee  ε-DP per unit, or ρ-zCDP; all of it pays for the counts, sampling is post-processing.
           A count that moves by one moves ⌈log₂m⌉ + 1 nodes of a `transform`, which share it.
Assumes    the table's bound; `size` and θ are stated without looking at the data.
Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.3, Theorem 3, appendix C.3;
           with θ > 0 filter-priority sampling, section 2.4 and C.4; transforms: section 3;
           consistency: 4.3; priority sampling itself:
           Duffield, Lund & Thorup, J. ACM 2007.
Differs    the guessed threshold is extended exactly, where drawing again until the sample is large
           enough would bias τ_s; if no more than `size` cells pass θ all are released and τ_s = 0;
           τ_s is rounded down to a public grid, and weights use it so.
Cost       time and memory O(non-empty cells + size), whatever the domain's size m; with a transform
           n cells are O(n·log(m/n)) non-empty nodes; `consistent` costs all that pass θ.
"""

from math import ceil
from typing import Any, Self

import numpy as np

from workbench import noise
from workbench.domain import Domain
from workbench.estimates import Summary
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
)
from workbench.privacy import Receipt
from workbench.table import Bound
from workbench.transform import Dyadic, Haar
from workbench.value import value


@value
class PrioritySampling(SparseSummary):
    """Release exactly `size` cells (or all that pass θ), favouring large noisy counts without bias."""

    budget: DP | ZCDP = pure_budget(zcdp=True)
    size: int = parameter(low=1, high=2**28, integer=True, unit="cells", doc="cells to release")
    theta: float = filter_field()
    sides: int = sides_field()
    transform: Dyadic | Haar | None = transform_field()
    consistent: bool = consistent_field()
    title = "priority sampling"

    def __post_init__(self) -> None:
        self.refuse_inconsistent(self.theta)

    @property
    def series(self) -> str:
        """Its name in figures."""
        return summary_name("priority", self.sides, self.theta)

    def release_rule(self, domain: Domain, bound: Bound) -> dict[str, float]:
        """θ, sides, and the size that decides τ_s, from which `advice` computes errors."""
        return dict(theta=float(self.theta), sides=self.sides, size=self.size)

    def _thresholds(self, blocks: list[Any]) -> tuple[float, float]:
        self.refuse_size_above(sum(block.size for block in blocks))
        return self.theta, 0.0  # τ_s is known only once cells are drawn

    def _draw(
        self,
        exact: tuple[np.ndarray, np.ndarray],
        blocks: list[Any],
        theta: float,
        tau: float,
        rng: np.random.Generator | None,
    ) -> tuple[np.ndarray, np.ndarray, float, tuple[Receipt, ...]]:
        return noise.priority_sample(
            *exact, blocks, theta=theta, sides=self.sides, size=self.size, rng=rng
        )

    def _select(
        self, noisy: Summary, theta: float, tau: float, rng: np.random.Generator | None
    ) -> Summary:
        if self.consistent:
            noisy = self._consistent(noisy, theta)
        kept, tau = noise.priority_sample_public(
            noisy.values, theta=theta, sides=self.sides, size=self.size, rng=rng
        )
        return noisy.where(kept, theta=theta, sides=self.sides, tau=tau)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Ten cells out of those above two noise scales."""
        return cls(budget, size=10, theta=ceil(2 / inverse_scale(budget)))
