"""What mechanisms on interactions share: fields, how a budget is split, and noisy items and edges."""

from __future__ import annotations

from fractions import Fraction
from math import fsum, isfinite
from typing import Any

import numpy as np

from workbench import noise
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.interactions import Interactions
from workbench.mechanism import Release, parameter, sensitivity, split_epsilon
from workbench.privacy import Receipt
from workbench.table import Bound


def split_field() -> Any:
    """The field that splits a budget among items and edges."""

    def wrong(split) -> str | None:
        good = isinstance(split, tuple) and len(split) == 2 and all(map(_is_number, split))
        good = good and 0 < min(split) and max(split) < 1
        good = good and abs(fsum(split) - 1) < 1e-9
        return None if good else "need two shares > 0 that add up to 1, (items, edges)"

    return parameter((0.5, 0.5), check=wrong, doc="shares of the budget: items, edges")


def item_edge_budgets(epsilon: float, split: tuple[float, float]) -> tuple[float, float]:
    """The ε of items and of edges, which add up to no more than ε."""
    items, edges = split_epsilon(epsilon, [Fraction(share) for share in split])
    return items, edges


# How many records of a user are counted


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


def sampling_factor_field() -> Any:
    """The field l: a whole number, or what `suggested_sampling_factor` computes from public facts."""

    def wrong(factor) -> str | None:
        whole = isinstance(factor, int) and not isinstance(factor, bool)
        good = (whole and 1 <= factor <= 2**53) or factor == "suggested"
        return None if good else "need a whole number >= 1, or 'suggested'"

    return parameter(check=wrong, unit="records", doc="at most so many records of each user")


def public_number_field(doc: str) -> Any:
    """A field that the caller states as public, None where it is not needed."""
    return parameter(None, 1, 2**53, integer=True, doc=doc)


def popularity_field() -> Any:
    """A guess of how popular items are."""

    def wrong(popularity) -> str | None:
        weights = popularity if isinstance(popularity, tuple) else (popularity,)
        good = all(map(_is_number, weights)) and min(weights, default=-1) >= 0
        good = good and (not isinstance(popularity, tuple) or sum(popularity) > 0)
        return None if good else "need Zipf's exponent, or a tuple of weights, one an item"

    return parameter(
        None, check=wrong, doc="a public guess: Zipf's exponent, or an item's weight each"
    )


def _is_number(x) -> bool:
    if isinstance(x, int) and not isinstance(x, bool):
        return abs(x) < 2**1023
    return isinstance(x, float) and isfinite(x)


def refuse_unstated(mechanism: Any) -> None:
    """A ValueError if l is to be suggested without the public facts that it needs."""
    for name in ("n", "bound", "popularity"):
        if mechanism.l == "suggested" and getattr(mechanism, name) is None:
            raise ValueError(
                f"{type(mechanism).__name__}.{name} = None is not allowed with l = 'suggested': need "
                "what you state as public (n users, a bound M on the records of one, and how popular "
                "items are); none of it is read off the data"
            )


def suggested_sampling_factor(mechanism: Any, items: int, epsilon: float) -> int:
    """The l that minimises the expected squared error of all item counts, released with `epsilon`.

    The model: n users with M records each, every record of item i with probability pᵢ. Of what is
    dropped, n(M−l) records, Binomial(·, pᵢ) are item i's: mean n(M−l)pᵢ, variance n(M−l)pᵢ(1−pᵢ). With
    the noise, E(c̃ᵢ − cᵢ)² = n(M−l)pᵢ(1−pᵢ) + n²pᵢ²(M−l)² + 2l²/ε²; summed over K items it is least at

        l = (2n²M·Σpᵢ² + n·Σpᵢ(1−pᵢ)) / (4K/ε² + 2n²·Σpᵢ²),

    above 0 whatever p, cut at M. Guidance only: users differ in how many records they have.
    """
    n = mechanism.n
    bound = mechanism.bound
    popularity = mechanism.popularity
    if isinstance(popularity, tuple):
        if len(popularity) != items:
            raise ValueError(
                f"{type(mechanism).__name__}.popularity has {len(popularity)} weights: need {items}, "
                "one an item"
            )
        p = np.array(popularity, float)
    else:
        p = np.arange(1.0, items + 1) ** -popularity
    p /= p.max()
    p /= p.sum()
    squares = float((p**2).sum())
    variances = float((p * (1 - p)).sum())
    best = 2 * n**2 * bound * squares + n * variances
    best /= 4 * items / epsilon / epsilon + 2 * n**2 * squares
    return max(1, min(round(best), bound))


# What is released


def consistent_counts_field() -> Any:
    """The field that makes items the sums of their edges."""
    return parameter(
        False, choices=(False, True), doc="items are the sums of their edges: least squares"
    )


def total_field() -> Any:
    """The field that scales all counts to a number of records."""
    return parameter(
        None, 0, strict=True, unit="records", doc="public or paid for: scale all counts to it"
    )


def release_item_edge_counts(
    mechanism: Any,
    data: Interactions,
    bounded: Interactions,
    epsilon: float,
    paid: tuple[Receipt, ...] = (),
    rng: np.random.Generator | None = None,
) -> Release:
    """Noise on every item and every edge of what is left of the data, within ε in all."""
    l1 = sensitivity(bounded)
    item_epsilon, edge_epsilon = item_edge_budgets(epsilon, mechanism.split)
    items, item_receipt = noise.geometric(
        bounded.item_counts(), l1=l1, epsilon=item_epsilon, rng=rng
    )
    edges, edge_receipt = noise.geometric(
        bounded.edge_counts().ravel(), l1=l1, epsilon=edge_epsilon, rng=rng
    )
    domain = data.domain
    item_domain = domain.project(domain.attributes[:1])
    counts = ItemEdgeCounts(
        Histogram(item_domain, items, noise.variance(l1, item_epsilon, "geometric")),
        Histogram(domain, edges, noise.variance(l1, edge_epsilon, "geometric")),
        sampled=not (isinstance(data.bound, Bound) and data.bound.l1 <= l1),
    )
    if mechanism.consistent:
        counts = counts.consistent()
    if mechanism.total is not None:
        counts = counts.scaled(mechanism.total)
    return Release(counts, (*paid, item_receipt, edge_receipt), mechanism, bounded.bound)
