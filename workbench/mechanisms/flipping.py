"""Flipping: randomised response on bits, one for each code of each attribute.

Guarantee  ε-DP for each tuple by itself (relation local): two tuples differ in two bits of each
           attribute at most. The attributes of two codes and more share ε equally.
Assumes    one tuple a unit (a bound of l1 = 1). How many tuples there are is told.
Source     Mishra & Sandler, PODS 2006; compared with by Chen, Zhou & Bhowmick, EDBT 2012, section 5.2.
Differs    the budget is the tuple's: the paper's γ = e for each of nine attributes is DP(9). It says
           only "bit-vector"; here one bit a code. Bits are published, not sketches of them.
           Reports come as a multiset.
Cost       some 7 random words for 64 bits, a bit for each tuple and code, and one sort.
"""

from __future__ import annotations

from math import exp

import numpy as np

from workbench.domain import Domain
from workbench.estimates import BitReports
from workbench.mechanism import (
    Mechanism,
    Release,
    SparseTable,
    noise,
    private_bound,
    pure_budget,
    value,
)
from workbench.privacy import DP, LOCAL


@value
class Flipping(Mechanism):
    """Publish each tuple as bits, each of them flipped at random."""

    budget: DP = pure_budget()
    cite = "mishra2006"
    title = "flipping"
    relation = LOCAL

    def flip_probability(self, domain: Domain) -> float:
        """f = 1/(1 + e^(ε/2d)), the chance of each bit: then ((1 − f)/f)^2d = e^ε."""
        attributes = max(1, sum(codes > 1 for codes in domain.shape))
        return 1 / (1 + exp(min(self.budget.epsilon / (2 * attributes), 700)))

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the reports."""
        self.refuse_several_tuples_per_unit(table)
        bits, (probability,), receipt = noise.randomised_response(
            table.keys,
            table.counts,
            table.domain,
            epsilon=self.budget.epsilon,
            law="flipping",
            rng=rng,
        )
        return Release(
            BitReports(table.domain, bits, probability), (receipt,), self, private_bound(table)
        )
