"""Hand-picked algorithm: the l records of each user with the most popular items, then noise.

Guarantee  ε-DP per user, or ρ-zCDP, all their records together: `popularity_share` of it pays for the noisy
           popularity of all items, from d records of each user at random; `split` divides the rest
           among items and edges. Given that popularity, which is public then, each user's records are
           picked on their own: adaptive composition of three looks.
Assumes    nothing of the users: l and d are enforced. With a `score` of your own, that it is public.
Source     Fan & Jin, WWW 2015, section 4.2, Algorithm 2, Theorem 4; the mixture of random and picked
           records is their future work (section 7).
Differs    d is stated as public (the paper reads min |T_k| off the data). Where no noisy count is
           above zero, all items are equally popular (the paper divides by zero). Noise as in SRA.
Cost       O(records·log l) time, O(kept records + items × contexts) memory.
"""

from fractions import Fraction
from typing import Any, Self

import numpy as np

from workbench.arrays import Int
from workbench.interactions import Interactions
from workbench.mechanism import (
    Release,
    add_noise,
    amount,
    memory_field,
    part_of,
    pure_budget,
    sensitivity,
    split_epsilon,
)
from workbench.mechanisms import _contributions as shared
from workbench.privacy import DP, ZCDP, Receipt
from workbench.value import not_allowed, parameter, value


def _check_scores(scores: Any) -> str | None:
    good = isinstance(scores, tuple) and len(scores) > 0
    good = good and all(isinstance(x, int | float) and x == x for x in scores)
    return None if good else "need a tuple of numbers, public or paid for, one an item"


@value
class HPA(shared.SampledContributions):
    """Counts of items and edges from `l` records of each user: those of the most popular items.

    Every user keeps the same popular items, so that the others are counted low. Of the l records,
    `random_share` are drawn at random first, from all that the user has. A `score` of your own for
    each item, public or paid for, takes the place of popularity, d and `popularity_share`. For errors,
    `total` and l = "suggested" (which is about random records: guidance) see SRA.
    """

    budget: DP | ZCDP = pure_budget(zcdp=True)
    l: int | str = shared.sampling_factor_field()  # noqa: E741
    d: int | None = parameter(
        None, 1, integer=True, unit="records", doc="of each user, for the popularity; public"
    )
    popularity_share: float = parameter(0.1, 0, 1, strict=True, doc="of the budget")
    random_share: float = parameter(0.0, 0, 1, doc="of the l records, drawn at random")
    split: tuple[float, float] = shared.split_field()
    score: tuple[Any, ...] | None = parameter(
        None, check=_check_scores, doc="your own, one an item"
    )
    consistent: bool = shared.consistent_counts_field()
    total: float | None = shared.total_field()
    n: int | None = shared.public_number_field("users, for the suggested l")
    bound: int | None = shared.public_number_field("M, records of a user, for the suggested l")
    popularity: float | tuple[float, ...] | None = shared.popularity_field()
    memory: int = memory_field()
    title = "HPA"
    accepts_zcdp = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d is None and self.score is None:
            raise not_allowed(
                self,
                "d",
                "need a whole number >= 1 that you state as public, how many records of each user "
                "the popularity is learnt from. It is never read off the data, whose least active "
                "user it would tell. (With a score of your own there is none.)",
            )
        if self.d is not None and self.score is not None:
            why = "need d = None, since no popularity is learnt"
            raise not_allowed(self, "d", why, " with a score of your own")
        if self.popularity_share == 1:
            raise not_allowed(self, "popularity_share", "need < 1, as counts cost too")

    def budgets(self) -> tuple[float, float]:
        """The ε, or ρ, of the popularity, and of the counts."""
        if self.score is not None:
            return 0.0, amount(self.budget)
        share = Fraction(self.popularity_share)
        popularity, counts = split_epsilon(amount(self.budget), [share, 1 - share])
        return popularity, counts

    def _counts_amount(self) -> float:
        return self.budgets()[1]

    def scores(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> tuple[Int[np.ndarray, " items"], tuple[Receipt, ...]]:
        """A public score of each item, its noisy count in d records a user or your own; its price."""
        if self.score is not None:
            return np.array(self.score), ()
        assert self.d is not None  # as there is no score
        sample = data.bounded(self.d, rng)
        share, _ = self.budgets()
        items = sample.domain.project(sample.domain.attributes[:1])
        noisy, _, receipt = add_noise(
            sample.item_counts(),
            part_of(self.budget, share),
            l1=sensitivity(sample),
            l2_squared=shared.l2_squared(sample, items),
            rng=rng,
        )
        return np.maximum(noisy, 0), (receipt,)

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """The picked records, as private as the data; with the same seed, those of the release."""
        scores, _ = self.scores(data, rng)
        return self._pick(data, scores, rng)

    def _pick(
        self, data: Interactions, scores: Any, rng: np.random.Generator | None
    ) -> Interactions:
        l = self.sampling_factor(data.domain.shape[0])  # noqa: E741
        return data.top_scored(l, scores, rng, random=round(self.random_share * l))

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release every item and every edge."""
        self.refuse_dense(data.domain.shape[0] + data.domain.size)
        if self.score is not None and len(self.score) != data.domain.shape[0]:
            raise ValueError(
                f"HPA.score has {len(self.score)} numbers: need {data.domain.shape[0]}, one an item"
            )
        scores, paid = self.scores(data, rng)
        picked = self._pick(data, scores, rng)
        return self._noisy_counts(data, picked, self._counts_amount(), rng, paid)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """As in the paper, where everyone has a record at least."""
        return cls(budget, 10, 1)
