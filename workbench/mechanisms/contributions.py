"""Mechanisms that count only some records of each user: the simple random algorithm (SRA), the hand-picked
algorithm (HPA), and the Laplace perturbation algorithm (LPA), which is the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import fsum, isfinite
from typing import Any, Self

import numpy as np

from workbench.data import Bound, Interactions
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.estimates.release import Release
from workbench.mechanisms.neighbours import audited_at
from workbench.mechanisms.protocol import (
    Mechanism,
    add_noise,
    amount,
    budget_field,
    memory_field,
    part_of,
    private_bound,
    sensitivity,
    split_epsilon,
)
from workbench.privacy import DP, ZCDP, Receipt
from workbench.spaces import Domain
from workbench.value import Int, not_allowed, parameter, sealed, value

# Contributions


def split_field() -> Any:
    """Return the field `split`, two shares of the budget that add up to 1. The first share pays for the counts
    of items. The second share pays for the counts of edges (pairs of an item and a context).
    """

    def wrong(split: Any) -> str | None:
        good = isinstance(split, tuple) and len(split) == 2 and all(map(_is_number, split))
        good = good and 0 < min(split) and max(split) < 1
        good = good and abs(fsum(split) - 1) < 1e-9
        return None if good else "need two shares > 0 that add up to 1, (items, edges)"

    return parameter(
        (0.5, 0.5), check=wrong, doc="shares of the budget for the counts of items and of edges"
    )


def item_edge_budgets(total: float, split: tuple[float, float]) -> tuple[float, float]:
    """Divide an ε (or ρ) into two parts. The first part pays for the counts of items. The second part pays for
    the counts of edges (pairs of an item and a context). The sum of the two parts is at most `total`.
    """
    items, edges = split_epsilon(total, [Fraction(share) for share in split])
    return items, edges


def l2_squared(data: Interactions, domain: Domain) -> Fraction:
    """Return the squared l2 norm of the largest change that one user can cause in the counts of the cells of
    `domain`. The cells are the items, or the edges (pairs of an item and a context).

    The count of an item is the sum of the counts of its edges. If no user has the same item twice, a user has
    at most one edge per item.
    """
    edges = 1 if data.distinct else data.domain.size // domain.size
    return private_bound(data).merged(edges).l2_squared


# How many records of a user are counted


def bound_field() -> Any:
    """Return the field `bound`, the largest number M of records per user. The scale of the noise is
    proportional to M.
    """
    return parameter(
        None,
        1,
        2**53,
        integer=True,
        unit="records",
        doc="public limit M on the records per user (further records are dropped)",
    )


def sampling_factor_field() -> Any:
    """Return the field `l`, the largest number of records per user that the mechanism counts. The value is an
    integer, or "suggested" if the mechanism should compute this number from public numbers.
    """

    def wrong(factor: Any) -> str | None:
        whole = isinstance(factor, int) and not isinstance(factor, bool)
        good = (whole and 1 <= factor <= 2**53) or factor == "suggested"
        return None if good else "need an integer >= 1, or 'suggested'"

    return parameter(check=wrong, unit="records", doc="largest number of records per user")


def public_number_field(doc: str) -> Any:
    """Return an optional field for a number that you know from public sources. `doc` is the field's
    description in help texts.
    """
    return parameter(None, 1, 2**53, integer=True, doc=doc)


def popularity_field() -> Any:
    """Return the field `popularity`, a public guess of how often each item occurs. The guess is the exponent
    of a Zipf distribution, or a tuple with one weight per item.
    """

    def wrong(popularity: Any) -> str | None:
        weights = popularity if isinstance(popularity, tuple) else (popularity,)
        good = all(map(_is_number, weights)) and min(weights, default=-1) >= 0
        good = good and (not isinstance(popularity, tuple) or sum(popularity) > 0)
        return None if good else "need Zipf's exponent, or a tuple with one weight per item"

    return parameter(
        None,
        check=wrong,
        doc="public guess of the items' popularity, for the suggested l",
    )


def _is_number(x: Any) -> bool:
    if isinstance(x, int) and not isinstance(x, bool):
        return abs(x) < 2**1023
    return isinstance(x, float) and isfinite(x)


# What is released


def consistent_counts_field() -> Any:
    """Return the field `consistent`. If the field is True, the released count of each item is the sum of the
    counts of the item's edges. An edge is a pair of an item and a context.
    """
    return parameter(
        False, choices=(False, True), doc="make each item's count the sum of its edges' counts"
    )


def total_field() -> Any:
    """Return the field `total`, a public number of records. The mechanism multiplies all counts by one factor
    so that they add up to this number.
    """
    return parameter(
        None,
        0,
        strict=True,
        unit="records",
        doc="total to which all counts are scaled (public, or from another release)",
    )


class Contributions(Mechanism):
    """Base of mechanisms that count items and edges, and limit the number of records per user. An edge is a
    pair of an item and a context, for example a place and an hour.
    """

    takes = Interactions
    bound: int | None
    split: tuple[float, float]
    consistent: bool
    total: float | None

    def __post_init__(self) -> None:
        if self.bound is None:
            raise not_allowed(
                self,
                "bound",
                "need the largest number of records per user, an integer >= 1, from public knowledge "
                "(other records are dropped at random). It is not computed from the data, because that "
                "would reveal the most active user",
            )

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """Return the data that the mechanism counts. If a user has more than `bound` records, only `bound` of
        them are kept, at random.

        The result is private, like the input. If you pass a seeded `rng`, the result contains the same records
        that a release with this seed counts.
        """
        assert self.bound is not None  # else it was refused
        return data.bounded(self.bound, rng)

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release a noisy count for every item and every edge (pair of an item and a context)."""
        self.refuse_dense(data.domain.shape[0] + data.domain.size)
        return self._noisy_counts(data, self.bounded_data(data, rng), amount(self.budget), rng)

    def _noisy_counts(
        self,
        data: Interactions,
        bounded: Interactions,
        total: float,
        rng: np.random.Generator | None,
        paid: Sequence[Receipt] = (),
    ) -> Release:
        """Release noisy counts of all items and edges of the bounded data. The noise costs at most `total`,
        an ε or a ρ.
        """
        l1 = sensitivity(bounded)
        histograms = []
        ledger = list(paid)
        for domain, counts, share in self._parts(bounded, total):
            noisy, variance, receipt = add_noise(
                counts,
                part_of(self.budget, share),
                l1=l1,
                l2_squared=l2_squared(bounded, domain),
                rng=rng,
            )
            histograms.append(Histogram(domain, noisy, variance))
            ledger.append(receipt)
        items, edges = histograms
        sampled = not (isinstance(data.bound, Bound) and data.bound.l1 <= l1)
        estimate = ItemEdgeCounts(items, edges, sampled=sampled)
        if self.consistent:
            estimate = estimate.consistent()
        if self.total is not None:
            estimate = estimate.scaled(self.total)
        return Release(estimate, tuple(ledger), self, private_bound(bounded))

    def _parts(
        self, data: Interactions, total: float
    ) -> Iterator[tuple[Domain, np.ndarray, float]]:
        """Yield two parts, the items and the edges. Each part is a domain, its counts, and the ε (or ρ) that
        pays for them.
        """
        domain = data.domain
        domains = (domain.project(domain.attributes[:1]), domain)
        counts = (data.item_counts(), data.edge_counts().ravel())
        return zip(domains, counts, item_edge_budgets(total, self.split), strict=True)

    def _smooth(
        self,
        bounded: Interactions,
        counts: np.ndarray,
        share: float,
        rng: np.random.Generator | None,
    ) -> tuple[np.ndarray, Any, Sequence[Receipt]]:
        """Return smoothed noisy counts, the distribution of their noise, and receipts that record the privacy
        cost.
        """
        raise NotImplementedError

    def _smoothed(self, data: Interactions, rng: np.random.Generator | None) -> Release:
        """Release the counts of items and edges, to which `_smooth` adds noise."""
        bounded = self.bounded_data(data, rng)
        histograms = []
        ledger: list[Receipt] = []
        for domain, counts, share in self._parts(bounded, amount(self.budget)):
            values, law, receipts = self._smooth(bounded, counts, share, rng)
            histograms.append(Histogram(domain, sealed(values), noise=law))
            ledger += receipts
        items, edges = histograms
        estimate = ItemEdgeCounts(items, edges, sampled=True)  # smoothing takes away, too
        return Release(estimate, tuple(ledger), self, private_bound(bounded))


class SampledContributions(Contributions):
    """Base of mechanisms that count at most `l` records per user. If `l` is "suggested", such a mechanism
    computes this limit from public numbers.
    """

    l: int | str  # noqa: E741
    n: int | None
    popularity: float | tuple[float, ...] | None
    cite = "fan2015"
    fixed_price = True
    converges = False  # a user's records beyond l are dropped, whatever ε is

    def __post_init__(self) -> None:
        for name in ("n", "bound", "popularity"):
            if self.l == "suggested" and getattr(self, name) is None:
                raise not_allowed(
                    self,
                    name,
                    "need n (number of users), bound (largest number of records per user) and popularity from "
                    "public knowledge. None of these is computed from the data",
                    " with l = 'suggested'",
                )

    def sampling_factor(self, items: int) -> int:
        """Return the limit l on the number of records per user that the mechanism counts. `items` is the number
        of different items in the domain.
        """
        if not isinstance(self.l, str):
            return self.l
        share, _ = item_edge_budgets(self._counts_amount(), self.split)
        return self._suggested(items, share)

    def _counts_amount(self) -> float:
        """Return the ε (or ρ) that pays for the counts of items and edges together."""
        return amount(self.budget)

    def _suggested(self, items: int, share: float) -> int:
        """Return the number l of records per user for which the expected squared error of all item counts is
        smallest. `share` is the ε (or ρ) that pays for these counts.
        """
        assert self.n is not None and self.bound is not None and self.popularity is not None
        if isinstance(self.popularity, tuple):
            if len(self.popularity) != items:
                raise ValueError(
                    f"{type(self).__name__}.popularity has {len(self.popularity)} weights: need {items}, one "
                    "per item"
                )
            p = np.array(self.popularity, np.float64)
        else:
            p = np.arange(1.0, items + 1) ** -self.popularity
        p /= p.max()
        p /= p.sum()
        squares = float((p**2).sum())
        variances = float((p * (1 - p)).sum())
        n = self.n
        best = 2 * n**2 * self.bound * squares + n * variances
        pure = isinstance(self.budget, DP)
        best /= (4 * items / share / share if pure else items / share) + 2 * n**2 * squares
        return max(1, min(round(best), self.bound))


# Sra


@value
class SRA(SampledContributions):
    """Count at most `l` random records per user.

    The data are records of users. Each record is about an item, for example a place, in a context, for
    example an hour. The mechanism releases noisy counts of items, and of edges, which are pairs of an item
    and a context.

    SRA is the simple random algorithm. If a user has more than `l` records, the mechanism keeps `l` of them at
    random and drops the others. The counts are therefore too low. If you give a public `total`, the mechanism
    multiplies all counts by one factor so that they add up to this total.

    The error from dropped records is unknown. Therefore, if records may have been dropped, the standard errors
    of answers are NaN. The attribute `noise` of the answers then gives the standard error from noise alone.

    With `l` = "suggested", the mechanism computes `l` from public numbers. Then you also have to give `n`
    (number of users), `bound` (largest number of records per user) and `popularity` (public guess of how often
    each item occurs).

    Guarantee  The release is ε-DP, or ρ-zCDP, for all records of a user together. `split` divides the budget
               between the counts of items and the counts of edges (pairs of an item and a context). The choice
               of a user's records does not depend on other users. So one user changes the counted data by at
               most l records.
    Assumes    Users may have any number of records, because the mechanism keeps at most `l` per user. If the
               data's bound is smaller than `l`, the mechanism uses this bound instead.
    Source     Fan & Jin, WWW 2015, section 4.1, Algorithm 1, Lemma 6 and Theorem 3.
    Differs    We add two-sided geometric noise to integer counts. We compute the best l from a corrected model.
               Equations 21 and 22 of Fan & Jin (2015) treat the l counted records of a user as independent.
               These equations also replace the counts by their means. Our model avoids both simplifications.
    Cost       Time is O(records), and memory is O(kept records + items × contexts).
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    l: int | str = sampling_factor_field()  # noqa: E741
    split: tuple[float, float] = split_field()
    consistent: bool = consistent_counts_field()
    total: float | None = total_field()
    n: int | None = public_number_field("number of users, for the suggested l")
    bound: int | None = public_number_field("largest number M of records per user")
    popularity: float | tuple[float, ...] | None = popularity_field()
    memory: int = memory_field()
    title = "SRA"
    audited = audited_at(0, l=2)

    def budgets(self) -> tuple[float, float]:
        """Return two parts of ε (or ρ). The first part pays for the counts of items. The second part pays for
        the counts of edges (pairs of an item and a context).
        """
        return item_edge_budgets(amount(self.budget), self.split)

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """Return the records that the mechanism counts, at most `l` random records per user. The result is
        private, like the input. If you pass a seeded `rng`, a release with the same seed counts the same
        records.
        """
        return data.bounded(self.sampling_factor(data.domain.shape[0]), rng)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It counts at most l = 10 records per user, as Fan &
        Jin (2015) do.
        """
        return cls(budget, 10)


# Hpa


def _check_scores(scores: Any) -> str | None:
    good = isinstance(scores, tuple) and len(scores) > 0
    good = good and all(isinstance(x, int | float) and x == x for x in scores)
    return None if good else "need a tuple of numbers, public or paid for, one per item"


@value
class HPA(SampledContributions):
    """Count `l` records per user, popular items first.

    The data are records of users. Each record is about an item, for example a place, in a context, for
    example an hour. The mechanism releases noisy counts of items, and of edges, which are pairs of an item
    and a context.

    HPA is the hand-picked algorithm. If a user has more than `l` records, the mechanism keeps `l` of them. It
    prefers the records about the most popular items, so the counts of other items are too low. With
    `random_share` > 0, this share of the `l` records is drawn at random from all records of the user.

    To learn which items are popular, the mechanism first measures noisy counts of the items, from at most `d`
    random records per user. If you have scores that are public or come from another release, you can give one
    `score` per item instead. The mechanism then uses neither `d` nor `popularity_share`.

    The documentation of `SRA` explains `total`, `l` = "suggested" and the errors of answers. The formula for
    the suggested `l` assumes a random choice of records, so for HPA the result is only a rough guide.

    Guarantee  The release is ε-DP, or ρ-zCDP, for all records of a user together. The mechanism measures
               popularity, items and edges. The costs of these measurements add up to the budget. The share
               `popularity_share` of the budget pays for a noisy popularity of each item, which is measured from
               `d` random records per user. `split` divides the rest of the budget between the counts of items
               and the counts of edges (pairs of an item and a context). The noisy popularity may be public,
               because the budget pays for its noise. So the choice of one user's records uses no exact data of
               other users.
    Assumes    Users may have any number of records, because the mechanism uses at most `d` of them for
               popularity, and at most `l` for the counts. If you give a `score`, it must be public.
    Source     Fan & Jin, WWW 2015, section 4.2, Algorithm 2, Theorem 4. Section 7 suggests a mixture of random
               records and records of popular items as future work.
    Differs    You give `d` from public knowledge. The paper instead uses the smallest number of records of any
               user, min |T_k|, which is private. If no noisy count is above zero, the paper divides by zero. We
               then treat all items as equally popular. The noise is the same as in SRA.
    Cost       Time is O(records·log l), and memory is O(kept records + items × contexts).
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    l: int | str = sampling_factor_field()  # noqa: E741
    d: int | None = parameter(
        None,
        1,
        integer=True,
        unit="records",
        doc="public number d of records per user from which popularity is measured",
    )
    popularity_share: float = parameter(
        0.1, 0, 1, strict=True, doc="share of the budget that pays for measuring popularity"
    )
    random_share: float = parameter(
        0.0, 0, 1, doc="share of the l records per user that is drawn at random"
    )
    split: tuple[float, float] = split_field()
    score: tuple[Any, ...] | None = parameter(
        None, check=_check_scores, doc="public popularity score per item, if you have one"
    )
    consistent: bool = consistent_counts_field()
    total: float | None = total_field()
    n: int | None = public_number_field("number of users, for the suggested l")
    bound: int | None = public_number_field("largest number M of records per user")
    popularity: float | tuple[float, ...] | None = popularity_field()
    memory: int = memory_field()
    title = "HPA"
    audited = audited_at(0, l=2, d=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d is None and self.score is None:
            raise not_allowed(
                self,
                "d",
                "need the number of records per user for estimating popularity, an integer >= 1, from "
                "public knowledge. It is not computed from the data, because that would reveal the least "
                "active user. (With your own score, leave it out.)",
            )
        if self.d is not None and self.score is not None:
            why = "need d = None, since no popularity is learnt"
            raise not_allowed(self, "d", why, " with your own score")
        if self.popularity_share == 1:
            raise not_allowed(self, "popularity_share", "need < 1: the counts also cost")

    def budgets(self) -> tuple[float, float]:
        """Return two parts of ε (or ρ). The first part pays for measuring the popularity of items. The second
        part pays for the counts of items and edges.
        """
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
        """Return a public popularity score for each item, and a tuple of receipts that record the privacy cost
        of the scores. If you gave a `score`, the function returns your scores and an empty tuple. Otherwise,
        the score of an item is a noisy count of the item, from at most `d` random records per user.
        """
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
            l2_squared=l2_squared(sample, items),
            rng=rng,
        )
        return np.maximum(noisy, 0), (receipt,)

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """Return the records that the mechanism counts, at most `l` per user. Records about popular items come
        first. The result is private, like the input. If you pass a seeded `rng`, a release with the same seed
        counts the same records.
        """
        scores, _ = self.scores(data, rng)
        return self._pick(data, scores, rng)

    def _pick(
        self, data: Interactions, scores: Any, rng: np.random.Generator | None
    ) -> Interactions:
        l = self.sampling_factor(data.domain.shape[0])  # noqa: E741
        return data.top_scored(l, scores, rng, random=round(self.random_share * l))

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release a noisy count for every item and every edge (pair of an item and a context)."""
        self.refuse_dense(data.domain.shape[0] + data.domain.size)
        if self.score is not None and len(self.score) != data.domain.shape[0]:
            raise ValueError(
                f"HPA.score has {len(self.score)} numbers: need {data.domain.shape[0]}, one per item"
            )
        scores, paid = self.scores(data, rng)
        picked = self._pick(data, scores, rng)
        return self._noisy_counts(data, picked, self._counts_amount(), rng, paid)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It counts at most l = 10 records per user, as Fan &
        Jin (2015) do, and measures popularity with d = 1 record per user.
        """
        return cls(budget, 10, 1)


# Lpa


@value
class LPA(Contributions):
    """Count at most `bound` records per user.

    The data are records of users. Each record is about an item, for example a place, in a context, for
    example an hour. The mechanism releases noisy counts of items, and of edges, which are pairs of an item
    and a context.

    LPA is the Laplace perturbation algorithm. If a user has more than `bound` records, the mechanism keeps
    `bound` of them at random and drops the others. The scale of the noise is proportional to `bound`. The error
    from dropped records is unknown. Therefore, if records may have been dropped, the standard errors of answers
    are NaN. The attribute `noise` of the answers then gives the standard error from noise alone.

    Guarantee  The release is ε-DP for all records of a user together. `split` divides ε between the counts of
               items and the counts of edges (pairs of an item and a context).
    Assumes    You give `bound` from public knowledge. Users may have any number of records, because the
               mechanism keeps at most `bound` per user.
    Source     Dwork, McSherry, Nissim & Smith, TCC 2006, Theorem 1. Fan & Jin, WWW 2015, use this mechanism
               as a baseline (Equations 7 and 8).
    Differs    We add two-sided geometric noise to integer counts. Fan & Jin add Laplace noise. You give `bound`
               from public knowledge. Fan & Jin instead use the largest number of records of any user, max
               |T_k|, which is private.
    Cost       Time is O(records), and memory is O(kept records + items × contexts).
    """

    budget: DP = budget_field()
    bound: int = bound_field()
    split: tuple[float, float] = split_field()
    consistent: bool = consistent_counts_field()
    total: float | None = total_field()
    memory: int = memory_field()
    cite = "fan2015"
    title = "LPA"
    audited = audited_at(0, bound=2)
    fixed_price = True

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It counts at most a hundred records per user."""
        return cls(budget, 100)
