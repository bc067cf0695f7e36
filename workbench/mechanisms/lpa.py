"""LPA: the baseline, noise on items and edges in proportion to all that one user may have.

Guarantee  ε-DP per user, all their records together; `split` says which share of ε pays for the items
           and which for the edges.
Assumes    that `bound`, M, is public; it is enforced by dropping records at random.
Source     Dwork, McSherry, Nissim & Smith, TCC 2006, Theorem 1; the baseline of Fan & Jin, WWW 2015,
           Equations 7 and 8.
Differs    noise is two-sided geometric on whole counts (the paper's is Laplace's); M is stated as
           public (the paper reads max |T_k| off the data).
Cost       O(records) time, O(kept records + items × contexts) memory.
"""

from typing import ClassVar, Self

import numpy as np

from workbench.interactions import Interactions
from workbench.mechanism import Release, memory_field, pure_budget, refuse_dense
from workbench.mechanisms._contributions import (
    bound_field,
    consistent_counts_field,
    refuse_unbounded,
    release_item_edge_counts,
    split_field,
    total_field,
)
from workbench.privacy import DP
from workbench.value import value


@value
class LPA:
    """Counts of items and edges from at most `bound` records of each user, with noise for as many.

    Standard errors are NaN where records may have been dropped, as in SRA.
    """

    budget: DP = pure_budget()
    bound: int | None = bound_field()
    split: tuple[float, float] = split_field()
    consistent: bool = consistent_counts_field()
    total: float | None = total_field()
    memory: int = memory_field()
    takes: ClassVar[type] = Interactions
    cite: ClassVar[str] = "fan2015"
    title: ClassVar[str] = "LPA"

    def __post_init__(self):
        refuse_unbounded(self)

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """What is counted, as private as the data; with the same seed, that of the release."""
        return data.bounded(self.bound, rng)

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release every item and every edge."""
        refuse_dense(self, data.domain.shape[0] + data.domain.size)
        bounded = self.bounded_data(data, rng)
        return release_item_edge_counts(self, data, bounded, self.budget.epsilon, rng=rng)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """For users with a hundred records at most."""
        return cls(budget, 100)
