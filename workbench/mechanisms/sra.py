"""Simple random algorithm: l records of each user at random, then noise on items and edges.

Guarantee  ε-DP per user, all their records together; `split` says which share of ε pays for the items
           and which for the edges. Sampling each user on their own keeps the guarantee of what follows.
Assumes    nothing of the users: l is enforced; where the interactions' bound is smaller, that is used.
Source     Fan & Jin, WWW 2015, section 4.1, Algorithm 1, Lemma 6 and Theorem 3.
Differs    noise is two-sided geometric on whole counts. The optimal l is that of the model put right:
           l records out of M are not independent, and the error is about the actual counts (the paper's
           Equations 21 and 22 take them as independent and as fixed at their mean).
Cost       O(records) time, O(kept records + items × contexts) memory.
"""

from typing import ClassVar, Self

import numpy as np

from workbench.interactions import Interactions
from workbench.mechanism import Release, memory_field, pure_budget, refuse_dense
from workbench.mechanisms._contributions import (
    consistent_counts_field,
    item_edge_budgets,
    popularity_field,
    public_number_field,
    refuse_unstated,
    release_item_edge_counts,
    sampling_factor_field,
    split_field,
    suggested_sampling_factor,
    total_field,
)
from workbench.privacy import DP
from workbench.value import value


@value
class SRA:
    """Counts of items and edges from at most `l` records of each user, drawn at random.

    They are low by what was dropped, by design, unless `total` says by which common factor to scale
    them; standard errors are NaN where records may have been dropped (error="noise" tells those of
    the noise alone). With l = "suggested" state n (users), `bound` (records of one) and `popularity`.
    """

    budget: DP = pure_budget()
    l: int | str = sampling_factor_field()  # noqa: E741
    split: tuple[float, float] = split_field()
    consistent: bool = consistent_counts_field()
    total: float | None = total_field()
    n: int | None = public_number_field("users, for the suggested l")
    bound: int | None = public_number_field("M, records of a user, for the suggested l")
    popularity: float | tuple | None = popularity_field()
    memory: int = memory_field()
    takes: ClassVar[type] = Interactions
    cite: ClassVar[str] = "fan2015"
    title: ClassVar[str] = "SRA"
    converges: ClassVar[bool] = False  # a user's records beyond l are dropped, whatever ε is

    def __post_init__(self):
        refuse_unstated(self)

    def budgets(self) -> tuple[float, float]:
        """The ε of the items, and of the edges."""
        return item_edge_budgets(self.budget.epsilon, self.split)

    def sampling_factor(self, items: int) -> int:
        """The l that is used for so many items."""
        if self.l != "suggested":
            return self.l
        item_epsilon, _ = self.budgets()
        return suggested_sampling_factor(self, items, item_epsilon)

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """The sampled records, as private as the data; with the same seed, those of the release."""
        return data.bounded(self.sampling_factor(data.domain.shape[0]), rng)

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release every item and every edge."""
        refuse_dense(self, data.domain.shape[0] + data.domain.size)
        bounded = self.bounded_data(data, rng)
        return release_item_edge_counts(self, data, bounded, self.budget.epsilon, rng=rng)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """As in the paper."""
        return cls(budget, 10)
