"""Mechanisms that sample the records of each user: the simple random algorithm (SRA), the hand-picked
algorithm (HPA), and the baseline, the Laplace perturbation algorithm (LPA).
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
    """Return the field with the share of the budget that pays for items. The rest pays for edges."""

    def wrong(split: Any) -> str | None:
        good = isinstance(split, tuple) and len(split) == 2 and all(map(_is_number, split))
        good = good and 0 < min(split) and max(split) < 1
        good = good and abs(fsum(split) - 1) < 1e-9
        return None if good else "need two shares > 0 that add up to 1, (items, edges)"

    return parameter(
        (0.5, 0.5), check=wrong, doc="shares of the budget for items and for edges"
    )


def item_edge_budgets(total: float, split: tuple[float, float]) -> tuple[float, float]:
    """Return the ε (or ρ) of items and of edges. Their sum is at most the given budget."""
    items, edges = split_epsilon(total, [Fraction(share) for share in split])
    return items, edges


def l2_squared(data: Interactions, domain: Domain) -> Fraction:
    """Return the squared l2 sensitivity to one user: that of the item counts, or that of the edge counts.
    An edge is an item in one context.

    The count of an item is the sum of its edge counts. If no user has an item twice, a user has at most one
    edge per item.
    """
    edges = 1 if data.distinct else data.domain.size // domain.size
    return private_bound(data).merged(edges).l2_squared


# How many records of a user are counted


def bound_field() -> Any:
    """Return the field M, the bound on records per user. The noise is proportional to it."""
    return parameter(
        None,
        1,
        2**53,
        integer=True,
        unit="records",
        doc="largest number M of records per user (public, and enforced by dropping records)",
    )


def sampling_factor_field() -> Any:
    """Return the field l, the number of records per user. It is an integer, or "suggested" if the mechanism
    computes it from public facts.
    """

    def wrong(factor: Any) -> str | None:
        whole = isinstance(factor, int) and not isinstance(factor, bool)
        good = (whole and 1 <= factor <= 2**53) or factor == "suggested"
        return None if good else "need an integer >= 1, or 'suggested'"

    return parameter(check=wrong, unit="records", doc="largest number of records per user")


def public_number_field(doc: str) -> Any:
    """Return a field for a number that the caller states from public knowledge. None leaves it out."""
    return parameter(None, 1, 2**53, integer=True, doc=doc)


def popularity_field() -> Any:
    """Return the field with a public guess of the popularity of items."""

    def wrong(popularity: Any) -> str | None:
        weights = popularity if isinstance(popularity, tuple) else (popularity,)
        good = all(map(_is_number, weights)) and min(weights, default=-1) >= 0
        good = good and (not isinstance(popularity, tuple) or sum(popularity) > 0)
        return None if good else "need Zipf's exponent, or a tuple of weights, one an item"

    return parameter(
        None,
        check=wrong,
        doc="public belief about items: Zipf's exponent, or a weight per item",
    )


def _is_number(x: Any) -> bool:
    if isinstance(x, int) and not isinstance(x, bool):
        return abs(x) < 2**1023
    return isinstance(x, float) and isfinite(x)


# What is released


def consistent_counts_field() -> Any:
    """Return the field that makes each item count the sum of its edge counts."""
    return parameter(
        False, choices=(False, True), doc="make items the sums of their edges, by least squares"
    )


def total_field() -> Any:
    """Return the field with a public number of records, to which all counts are scaled."""
    return parameter(
        None,
        0,
        strict=True,
        unit="records",
        doc="number of records to which all counts are scaled (public or paid for)",
    )


class Contributions(Mechanism):
    """Base of mechanisms that count items and edges, with a limit on the records per user. An edge is an
    item in one context, for example a place in one hour.
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
        """Return the data that the mechanism counts, after dropping records.

        The result is private, like the input. If you pass a seeded `rng`, it is the data that a release
        with the same seed counts.
        """
        assert self.bound is not None  # else it was refused
        return data.bounded(self.bound, rng)

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release every item and every edge."""
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
        """Add noise to every item and every edge of the bounded data, within ε (or ρ) in all."""
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
        """Return two parts, items and edges, each with its domain, its counts and its ε (or ρ)."""
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
        """Return noisy values, the distribution of their noise, and their cost."""
        raise NotImplementedError

    def _smoothed(self, data: Interactions, rng: np.random.Generator | None) -> Release:
        """Make items and edges from bounded data by `_smooth`."""
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
    """Base of mechanisms that count at most `l` records per user. Public facts can suggest l."""

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
        """Return the number l of records per user that the mechanism uses for the given number of items."""
        if not isinstance(self.l, str):
            return self.l
        share, _ = item_edge_budgets(self._counts_amount(), self.split)
        return self._suggested(items, share)

    def _counts_amount(self) -> float:
        """Return the ε (or ρ) of items and edges together."""
        return amount(self.budget)

    def _suggested(self, items: int, share: float) -> int:
        """Return the l with the least expected squared error of all item counts, released with that ε (or
        ρ).
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

    SRA is the simple random algorithm. Because it drops the other records, counts are too low. If you state
    a public `total`, the mechanism scales all counts by one factor to this total. If records may have been
    dropped, standard errors are NaN, and the `noise` of an answer gives the error from noise alone. With l
    = "suggested", also state n (number of users), `bound` (largest number of records per user) and
    `popularity`.

    Guarantee  ε-DP per user, or ρ-zCDP, for all their records together. `split` divides the budget between
               the items and the edges. Sampling treats each user independently of the others, so it does
               not weaken the guarantee of the noise.
    Assumes    nothing about the users, because l is enforced. A smaller bound of the interactions
               replaces l.
    Source     Fan & Jin, WWW 2015, section 4.1, Algorithm 1, Lemma 6 and Theorem 3.
    Differs    We add two-sided geometric noise to integer counts. The optimal l follows from a
               corrected model. The paper's Equations 21 and 22 treat the l records sampled out of M as
               independent, and replace the counts by their means. Our model does not.
    Cost       O(records) time, O(kept records + items × contexts) memory.
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    l: int | str = sampling_factor_field()  # noqa: E741
    split: tuple[float, float] = split_field()
    consistent: bool = consistent_counts_field()
    total: float | None = total_field()
    n: int | None = public_number_field("users, for the suggested l")
    bound: int | None = public_number_field("M, records of a user, for the suggested l")
    popularity: float | tuple[float, ...] | None = popularity_field()
    memory: int = memory_field()
    title = "SRA"
    audited = audited_at(0, l=2)

    def budgets(self) -> tuple[float, float]:
        """Return two budgets in ε (or ρ), one for the counts of items, and one for the counts of edges (pairs
        of an item and a context).
        """
        return item_edge_budgets(amount(self.budget), self.split)

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """Return the records that the mechanism samples, at most `l` per user. They are private. A release with
        the same seed counts the same records.
        """
        return data.bounded(self.sampling_factor(data.domain.shape[0]), rng)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism with the paper's parameters."""
        return cls(budget, 10)


# Hpa


def _check_scores(scores: Any) -> str | None:
    good = isinstance(scores, tuple) and len(scores) > 0
    good = good and all(isinstance(x, int | float) and x == x for x in scores)
    return None if good else "need a tuple of numbers, public or paid for, one an item"


@value
class HPA(SampledContributions):
    """Count `l` records per user, popular items first.

    HPA is the hand-picked algorithm. It keeps records of popular items, so the counts of other items are
    too low. The share `random_share` of the l records is drawn at random from all records of the user.
    Popularity is measured with noise. You can pass your own `score` per item instead, which must be public
    or paid for. Then `d` and `popularity_share` are not used. `SRA` explains errors, `total` and l =
    "suggested". Here this l is only a rough guide, because it is computed for random records.

    Guarantee  ε-DP per user, or ρ-zCDP, for all their records together. The share `popularity_share` pays
               for the noisy popularity of all items, estimated from d random records per user. `split`
               divides the rest between items and edges. The noisy popularity is released, so it is public.
               Each user's records are then picked independently of other users. The costs of the three
               measurements add up.
    Assumes    nothing about the users, because l and d are enforced. Your own `score` must be public.
    Source     Fan & Jin, WWW 2015, section 4.2, Algorithm 2, Theorem 4. They suggest the mixture of random
               and picked records as future work (section 7).
    Differs    You state d from public knowledge, but the paper reads min |T_k| from the data. If no
               noisy count is above zero, all items are equally popular. The paper then divides by zero.
               The noise is that of SRA.
    Cost       O(records·log l) time, O(kept records + items × contexts) memory.
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    l: int | str = sampling_factor_field()  # noqa: E741
    d: int | None = parameter(
        None,
        1,
        integer=True,
        unit="records",
        doc="public number d of records per user from which popularity is estimated",
    )
    popularity_share: float = parameter(
        0.1, 0, 1, strict=True, doc="share of the budget for popularity"
    )
    random_share: float = parameter(
        0.0, 0, 1, doc="share of the l records that are drawn at random"
    )
    split: tuple[float, float] = split_field()
    score: tuple[Any, ...] | None = parameter(
        None, check=_check_scores, doc="your own popularity score per item"
    )
    consistent: bool = consistent_counts_field()
    total: float | None = total_field()
    n: int | None = public_number_field("users, for the suggested l")
    bound: int | None = public_number_field("M, records of a user, for the suggested l")
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
        """Return two budgets in ε (or ρ), one for the popularity of items, and one for the counts."""
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
        """Return a public popularity score for each item, with its privacy cost. The score is the one that you
        passed, or a noisy count that uses d records per user.
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
        """Return the records that the mechanism picks, which are at most `l` per user. They are private. A
        release with the same seed counts the same records.
        """
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
                f"HPA.score has {len(self.score)} numbers: need {data.domain.shape[0]}, one per item"
            )
        scores, paid = self.scores(data, rng)
        picked = self._pick(data, scores, rng)
        return self._noisy_counts(data, picked, self._counts_amount(), rng, paid)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism with the paper's parameters, in which everyone has at least one
        record.
        """
        return cls(budget, 10, 1)


# Lpa


@value
class LPA(Contributions):
    """Count at most `bound` records per user.

    LPA is the Laplace perturbation algorithm. The scale of its noise is proportional to `bound`. Standard
    errors are NaN if records may have been dropped, as in SRA.

    Guarantee  ε-DP per user, for all their records together. `split` divides ε between the items and the
               edges.
    Assumes    a public `bound`, M, which is enforced by dropping records at random.
    Source     Dwork, McSherry, Nissim & Smith, TCC 2006, Theorem 1; the baseline of Fan & Jin, WWW 2015,
               Equations 7 and 8.
    Differs    We add two-sided geometric noise to integer counts, where the paper adds Laplace
               noise. You state M from public knowledge, but the paper reads max |T_k| from the data.
    Cost       O(records) time, O(kept records + items × contexts) memory.
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
        """Return an example of the mechanism with a limit of a hundred records per user."""
        return cls(budget, 100)
