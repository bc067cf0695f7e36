"""Unattributed histogram: the multiset of counts, in ascending order, with isotonic inference.

Guarantee  ε-DP per unit, or ρ-zCDP; all of it pays for the sorted counts, sorting and inference
           afterwards are post-processing.
Assumes    the table's bound, which holds for the sorted counts too, in the l2 norm as well; a domain that
           fits in memory.
Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, section 3, Theorems 1 and 2.
Differs    one edge of a graph moves two degrees, so that its table has l1 = 2 (the paper takes 1);
           noise as in LaplaceHistogram.
Cost       time and memory O(domain size), and sorting.
"""

import numpy as np

from workbench.estimates import Histogram
from workbench.inference import isotonic, round_to_counts
from workbench.mechanism import (
    Mechanism,
    Release,
    add_noise,
    memory_field,
    noise_law_field,
    parameter,
    private_bound,
    pure_budget,
    settle_noise,
)
from workbench.privacy import DP, ZCDP
from workbench.table import SparseTable
from workbench.value import sealed, value


@value
class UnattributedHistogram(Mechanism):
    """Release the counts in ascending order: S̄ ("isotonic"), S̃ᵣ ("sorted" and rounded), S̃ ("noisy")."""

    budget: DP | ZCDP = pure_budget(zcdp=True)
    estimator: str = parameter(
        "isotonic", choices=("isotonic", "sorted", "noisy"), doc="what is made of S̃"
    )
    noise: str = noise_law_field(zcdp=True)
    memory: int = memory_field()
    cite = "hay2010"
    title = "unattributed histogram"
    accepts_zcdp = True
    fixed_price = True
    ranked = True  # its domain is that of ranks

    def __post_init__(self) -> None:
        settle_noise(self)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release a count for every rank."""
        bound = private_bound(table)
        ranks = table.ranked()
        noisy, variance, receipt = add_noise(
            self.dense_counts(ranks),
            self.budget,
            l1=bound.l1,
            linf=bound.linf,  # sorting moves no count further
            l2_squared=bound.l2_squared,
            law=self.noise,
            rng=rng,
        )
        values = noisy.astype(float)
        if self.estimator == "isotonic":
            values = isotonic(values)
        elif self.estimator == "sorted":
            values = round_to_counts(np.sort(values))
        known = self.estimator == "noisy"  # of what is sorted there is no closed form
        histogram = Histogram(ranks.domain, sealed(values), variance if known else None)
        return Release(histogram, (receipt,), self, bound)
