"""Priority sampling: noise on every cell, of which the `size` with the largest |v|/r are released.

Guarantee  ε-DP per unit; all of ε pays for the counts, sampling is post-processing.
           A count that moves by one moves ⌈log₂m⌉ + 1 nodes of a `transform`, which share ε.
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
from typing import ClassVar, Self

import numpy as np

from workbench import noise
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
class PrioritySampling:
    """Release exactly `size` cells (or all that pass θ), favouring large noisy counts without bias."""

    budget: DP = pure_budget()
    size: int = parameter(low=1, high=2**28, integer=True, unit="cells", doc="cells to release")
    theta: float = parameter(0, 0, 2**50, unit="counts", doc="filter before sampling")
    sides: int = parameter(2, choices=(1, 2), doc="2 keeps large negatives too, 1 is M'₊")
    transform: Dyadic | Haar | None = transform_field()
    consistent: bool = consistent_field()
    takes: ClassVar[type] = SparseTable
    cite: ClassVar[str] = "cormode2012"

    def __post_init__(self):
        refuse_inconsistent(self, self.theta)

    def summarise(
        self, noisy: Summary, l1: float, rng: np.random.Generator | None = None
    ) -> Summary:
        """The second step, on noisy cells among which are all that pass."""
        asked = dict(theta=self.theta, sides=self.sides)
        if self.consistent:
            noisy = consistent(
                noisy.where(noise.threshold_sample_public(noisy.values, **asked), **asked)
            )
        kept, tau = noise.priority_sample_public(noisy.values, **asked, most=self.size, rng=rng)
        return noisy.where(kept, **asked, tau=tau)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the sampled cells, or nodes, and τ_s."""
        basis, l1 = basis_of(self.transform, table.domain), sensitivity(table)
        decay, blocks = self.budget.epsilon / l1, noise_blocks(self, table.domain, l1)
        refuse_size_above(self, sum(b.size for b in blocks))
        asked = dict(theta=self.theta, sides=self.sides)
        exact = basis.forward(table.keys, table.counts)
        if self.consistent:
            keys, values, ledger = noise.threshold_sample(*exact, blocks, **asked, rng=rng)
            passed = summary_in_basis(basis, keys, values, decay, **asked)
            return Release(self.summarise(passed, l1, rng), ledger, self, table.bound)
        keys, values, tau, ledger = noise.priority_sample(
            *exact, blocks, **asked, most=self.size, rng=rng
        )
        sampled = summary_in_basis(basis, keys, values, decay, **asked, tau=tau)
        return Release(sampled, ledger, self, table.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Ten cells out of those above two noise scales."""
        return cls(budget, size=10, theta=ceil(2 / budget.epsilon))
