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

from fractions import Fraction
from math import fsum, isfinite
from typing import Any, ClassVar, Self

import numpy as np

from workbench import noise
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.interactions import Interactions
from workbench.mechanism import Release, parameter, pure_budget, refuse_dense, sensitivity
from workbench.mechanism import split_epsilon as portions
from workbench.privacy import DP, Receipt
from workbench.table import Bound
from workbench.value import value


def split_field() -> Any:
    """The field that splits a budget among items and edges."""

    def wrong(x) -> str | None:
        good = isinstance(x, tuple) and len(x) == 2 and all(map(_number, x))
        good = good and 0 < min(x) and max(x) < 1
        good = good and abs(fsum(x) - 1) < 1e-9
        return None if good else "need two shares > 0 that add up to 1, (items, edges)"

    return parameter((0.5, 0.5), check=wrong, doc="shares of the budget: items, edges")


def sampling_factor_field() -> Any:
    """The field l: a whole number, or what `suggested` finds from public facts."""

    def wrong(x) -> str | None:
        whole = isinstance(x, int) and not isinstance(x, bool) and 1 <= x <= 2**53
        return None if whole or x == "suggested" else "need a whole number >= 1, or 'suggested'"

    return parameter(check=wrong, unit="records", doc="at most so many records of each user")


def public_number_field(doc: str) -> Any:
    """A field that the caller states as public, None where it is not needed."""
    return parameter(None, 1, 2**53, integer=True, doc=doc)


def popularity_field() -> Any:
    """A guess of how popular items are."""

    def wrong(x) -> str | None:
        numbers = x if isinstance(x, tuple) else (x,)
        good = all(map(_number, numbers)) and min(numbers, default=-1) >= 0
        good = good and (not isinstance(x, tuple) or sum(x) > 0)
        return None if good else "need Zipf's exponent, or a tuple of weights, one an item"

    return parameter(
        None, check=wrong, doc="a public guess: Zipf's exponent, or an item's weight each"
    )


def bound_field() -> Any:
    """The field M of a mechanism whose noise is in proportion to it."""
    return parameter(
        None, 1, 2**53, integer=True, unit="records", doc="M, of each user; public, enforced"
    )


def refuse_unbounded(mechanism: Any) -> None:
    """A ValueError if no M is stated."""
    if mechanism.bound is None:
        raise ValueError(
            f"{type(mechanism).__name__}.bound = None is not allowed: need a whole number >= 1 that "
            "you state as public, how many records of each user are counted at most (others are "
            "dropped at random). It is never read off the data, whose most active user it would tell"
        )


def _number(x) -> bool:
    if isinstance(x, int) and not isinstance(x, bool):
        return abs(x) < 2**1023
    return isinstance(x, float) and isfinite(x)


def suggested_sampling_factor(mechanism: Any, items: int, epsilon: float) -> int:
    """The l that minimises the expected squared error of all item counts, released with `epsilon`.

    The model: n users with M records each, every record of item i with probability pᵢ. Of what is
    dropped, n(M−l) records, Binomial(·, pᵢ) are item i's: mean n(M−l)pᵢ, variance n(M−l)pᵢ(1−pᵢ). With
    the noise, E(c̃ᵢ − cᵢ)² = n(M−l)pᵢ(1−pᵢ) + n²pᵢ²(M−l)² + 2l²/ε²; summed over K items it is least at

        l = (2n²M·Σpᵢ² + n·Σpᵢ(1−pᵢ)) / (4K/ε² + 2n²·Σpᵢ²),

    above 0 whatever p, cut at M. Guidance only: users differ in how many records they have.
    """
    n, most, guess = mechanism.n, mechanism.bound, mechanism.popularity
    if isinstance(guess, tuple):
        if len(guess) != items:
            raise ValueError(
                f"{type(mechanism).__name__}.popularity has {len(guess)} weights: need {items}, one "
                "an item"
            )
        p = np.array(guess, float)
    else:
        p = np.arange(1.0, items + 1) ** -guess
    p /= p.max()
    p /= p.sum()
    squares, ones = float((p**2).sum()), float((p * (1 - p)).sum())
    best = 2 * n**2 * most * squares + n * ones
    best /= 4 * items / epsilon / epsilon + 2 * n**2 * squares
    return max(1, min(round(best), most))


def refuse_unstated(mechanism: Any) -> None:
    """A ValueError if l is to be suggested without the public facts that it needs."""
    for name in ("n", "bound", "popularity"):
        if mechanism.l == "suggested" and getattr(mechanism, name) is None:
            raise ValueError(
                f"{type(mechanism).__name__}.{name} = None is not allowed with l = 'suggested': need "
                "what you state as public (n users, a bound M on the records of one, and how popular "
                "items are); none of it is read off the data"
            )


def item_edge_budgets(epsilon: float, split: tuple[float, float]) -> tuple[float, float]:
    """The ε of items and of edges, which add up to no more than ε."""
    return tuple(portions(epsilon, [Fraction(share) for share in split]))


def release_item_edge_counts(
    mechanism: Any,
    data: Interactions,
    kept: Interactions,
    epsilon: float,
    paid: tuple[Receipt, ...] = (),
    rng: np.random.Generator | None = None,
) -> Release:
    """Noise on every item and every edge of what was `kept` of the data, within ε in all."""
    l1, (first, second) = sensitivity(kept), item_edge_budgets(epsilon, mechanism.split)
    one, items = noise.geometric(kept.item_counts(), l1=l1, epsilon=first, rng=rng)
    two, edges = noise.geometric(kept.edge_counts().ravel(), l1=l1, epsilon=second, rng=rng)
    domain = data.domain
    spread = (noise.variance(l1, e, "geometric") for e in (first, second))
    tables = ItemEdgeCounts(
        Histogram(domain.project(domain.attributes[:1]), one, next(spread)),
        Histogram(domain, two, next(spread)),
        sampled=not (isinstance(data.bound, Bound) and data.bound.l1 <= l1),
    )
    if mechanism.consistent:
        tables = tables.consistent()
    if mechanism.total is not None:
        tables = tables.scaled(mechanism.total)
    return Release(tables, (*paid, items, edges), mechanism, kept.bound)


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
    consistent: bool = parameter(
        False, choices=(False, True), doc="items are the sums of their edges: least squares"
    )
    total: float | None = parameter(
        None, 0, strict=True, unit="records", doc="public or paid for: scale all counts to it"
    )
    n: int | None = public_number_field("users, for the suggested l")
    bound: int | None = public_number_field("M, records of a user, for the suggested l")
    popularity: float | tuple | None = popularity_field()
    memory: int = parameter(2**32, 1, integer=True, unit="bytes", doc="refuse larger domains")
    takes: ClassVar[type] = Interactions
    cite: ClassVar[str] = "fan2015"
    converges: ClassVar[bool] = False  # a user's records beyond l are dropped, whatever ε is

    def __post_init__(self):
        refuse_unstated(self)

    def factor(self, items: int) -> int:
        """The l that is used for so many items."""
        if self.l != "suggested":
            return self.l
        return suggested_sampling_factor(
            self, items, item_edge_budgets(self.budget.epsilon, self.split)[0]
        )

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """The sampled records, as private as the data; with the same seed, those of the release."""
        return data.bounded(self.factor(data.domain.shape[0]), rng)

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release every item and every edge."""
        refuse_dense(self, data.domain.shape[0] + data.domain.size)
        return release_item_edge_counts(
            self, data, self.bounded_data(data, rng), self.budget.epsilon, rng=rng
        )

    @classmethod
    def example(cls, budget: DP) -> Self:
        """As in the paper."""
        return cls(budget, 10)
