"""Simple random algorithm: l records of each user at random, then noise on items and edges.

Guarantee  ε-DP per user, or ρ-zCDP, all their records together; `split` says which share of it pays for the
           items and which for the edges. Sampling each user on their own keeps the guarantee of what
           follows.
Assumes    nothing of the users: l is enforced; where the interactions' bound is smaller, that is used.
Source     Fan & Jin, WWW 2015, section 4.1, Algorithm 1, Lemma 6 and Theorem 3.
Differs    noise is two-sided geometric on whole counts. The optimal l is that of the model put right:
           l records out of M are not independent, and the error is about the actual counts (the paper's
           Equations 21 and 22 take them as independent and as fixed at their mean).
Cost       O(records) time, O(kept records + items × contexts) memory.
"""

from typing import Self

import numpy as np

from workbench.interactions import Interactions
from workbench.mechanism import DP, ZCDP, amount, memory_field, pure_budget, value
from workbench.mechanisms import _contributions as shared


@value
class SRA(shared.SampledContributions):
    """Counts of items and edges from at most `l` records of each user, drawn at random.

    They are low by what was dropped, by design, unless `total` says by which common factor to scale
    them; standard errors are NaN where records may have been dropped (error="noise" tells those of
    the noise alone). With l = "suggested" state n (users), `bound` (records of one) and `popularity`.
    """

    budget: DP | ZCDP = pure_budget(zcdp=True)
    l: int | str = shared.sampling_factor_field()  # noqa: E741
    split: tuple[float, float] = shared.split_field()
    consistent: bool = shared.consistent_counts_field()
    total: float | None = shared.total_field()
    n: int | None = shared.public_number_field("users, for the suggested l")
    bound: int | None = shared.public_number_field("M, records of a user, for the suggested l")
    popularity: float | tuple[float, ...] | None = shared.popularity_field()
    memory: int = memory_field()
    title = "SRA"
    accepts_zcdp = True

    def budgets(self) -> tuple[float, float]:
        """The ε, or ρ, of the items, and of the edges."""
        return shared.item_edge_budgets(amount(self.budget), self.split)

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """The sampled records, as private as the data; with the same seed, those of the release."""
        return data.bounded(self.sampling_factor(data.domain.shape[0]), rng)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """As in the paper."""
        return cls(budget, 10)
