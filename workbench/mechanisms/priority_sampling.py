"""Priority sampling: noise on every cell, of which the `size` with the largest |v|/r are released.

Guarantee  ε-DP per unit; all of ε pays for the counts, sampling is post-processing.
Assumes    the table's bound; `size` and θ are stated without looking at the data.
Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.3, Theorem 3, appendix C.3;
           with θ > 0 filter-priority sampling, section 2.4 and C.4; priority sampling itself:
           Duffield, Lund & Thorup, J. ACM 2007.
Differs    the guessed threshold is extended exactly, where drawing again until the sample is large
           enough would bias τ_s; if no more than `size` cells pass θ all are released and τ_s = 0;
           τ_s is rounded down to a public grid, and weights use it so.
Cost       time and memory O(non-empty cells + size), whatever the domain's size.
"""

from math import ceil
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
class PrioritySampling:
    """Release exactly `size` cells (or all that pass θ), favouring large noisy counts without bias."""

    budget: DP = pure_budget()
    size: int = parameter(low=1, high=2**28, integer=True, unit="cells", doc="cells to release")
    theta: float = parameter(0, 0, 2**50, unit="counts", doc="filter before sampling")
    sides: int = parameter(2, choices=(1, 2), doc="2 keeps large negatives too, 1 is M'₊")
    takes: ClassVar[type] = SparseTable
    cite: ClassVar[str] = "cormode2012"

    def check(self, m: int) -> int:
        """`size`, if a domain of m cells has as many."""
        refuse_larger(self, m)
        return self.size

    def summarise(self, table_size: int, noisy, l1: float, rng=None):
        """The laborious second step on a full noisy table: (kept cells, θ, τ_s)."""
        kept, tau = noise.take(
            noisy, theta=self.theta, most=self.check(table_size), sides=self.sides, rng=rng
        )
        return kept, self.theta, tau

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the sampled cells and τ_s."""
        l1, epsilon = sensitivity(table), self.budget.epsilon
        keys, values, tau, receipt = noise.top(
            table.keys,
            table.counts,
            table.domain.size,
            l1=l1,
            epsilon=epsilon,
            theta=self.theta,
            most=self.check(table.domain.size),
            sides=self.sides,
            rng=rng,
        )
        summary = Summary(table.domain, keys, values, epsilon / l1, self.theta, tau, self.sides)
        return Release(summary, (receipt,), self, table.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Ten cells out of those above two noise scales."""
        return cls(budget, size=10, theta=ceil(2 / budget.epsilon))
