"""Errors of released counts of items and edges, and their decomposition by source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import pd
from workbench.data import Interactions
from workbench.trials.metrics.answers import refuse_other_domain, refuse_private
from workbench.value import Float, Int, not_allowed, parameter, value

# Counts


class CountPair(NamedTuple):
    """Exact and estimated counts, as arrays of shape (items,) or (items, contexts)."""

    exact: Float[np.ndarray, "..."]
    estimated: Float[np.ndarray, "..."]


def count_pair(truth: Interactions, estimate: Any, of: str) -> CountPair:
    """Return the exact and the estimated counts. The estimate may consist of released counts, or of
    records.
    """
    refuse_private(truth)
    refuse_other_domain(truth, estimate)
    return CountPair(_counts(truth, of), _counts(estimate, of))


def _counts(data: Any, of: str) -> Float[np.ndarray, "..."]:
    shape = data.domain.shape if of == "edges" else data.domain.shape[:1]
    if isinstance(data, Interactions):
        counts = data.edge_counts() if of == "edges" else data.item_counts()
    else:
        counts = getattr(data, of).values
    return np.asarray(counts, float).reshape(shape)


def _of() -> Any:
    """Return the field `of`, which selects the table that a metric compares."""
    return parameter("items", choices=("items", "edges"), doc="counts to compare")


class _CountMetric:
    """Base of metrics that compare counts of items or edges."""

    of: str

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """Compare the counts of all items or edges.

        Parameters
        ----------
        truth : Interactions
            Whose truth is public.
        estimate : ItemEdgeCounts or Interactions
            Estimate over the same domain.

        Returns
        -------
        float
            In the metric's unit.

        Raises
        ------
        ValueError
            If the truth is private, or the estimate is over another domain.
        """
        return float(self._compare(*count_pair(truth, estimate, self.of)))

    def _compare(
        self, exact: Float[np.ndarray, "..."], estimated: Float[np.ndarray, "..."]
    ) -> float:
        raise NotImplementedError


@value
class MeanSquaredCountError(_CountMetric):
    """Mean squared error of counts: the mean over items, or over edges, of (estimate − truth)², in
    records².

    The estimate may be `ItemEdgeCounts` from a release. It may also be `Interactions`, the records that a
    mechanism kept. Then the error is that of sampling alone. The same holds for every metric of
    interactions.
    """

    of: str = _of()

    def _compare(
        self, exact: Float[np.ndarray, "..."], estimated: Float[np.ndarray, "..."]
    ) -> float:
        return ((estimated - exact) ** 2).mean()


@value
class KLDivergence(_CountMetric):
    """KL divergence Σ p·ln(p/q) between the released and the original distribution of records, in nats.

    p is the released distribution and q the original one, or the other way round. On both sides, counts <=
    0 are set to `floor` before the counts are divided by their sum. Counts between 0 and `floor` do not
    change.
    """

    of: str = _of()
    direction: str = parameter(
        "released_given_original",
        choices=("released_given_original", "original_given_released"),
        doc="direction of the divergence",
    )
    floor: float = parameter(
        0.01, 0, strict=True, unit="records", doc="value that replaces counts <= 0"
    )

    def _compare(
        self, exact: Float[np.ndarray, "..."], estimated: Float[np.ndarray, "..."]
    ) -> float:
        original = self._distribution(exact)
        released = self._distribution(estimated)
        if self.direction == "original_given_released":
            return _divergence(original, released)
        return _divergence(released, original)

    def _distribution(self, counts: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        positive = np.where(counts > 0, counts, self.floor)
        return positive / positive.sum()


def _divergence(p: Float[np.ndarray, "..."], q: Float[np.ndarray, "..."]) -> float:
    return (p * np.log(p / q)).sum()


@value
class TopPrecision(_CountMetric):
    """Fraction of the k highest released counts that are also among the k highest true counts.

    For edges, the metric is computed for the items in each context and averaged over contexts. If several
    counts are equal at place k, on either side, the metric is the expected value over random orders of
    equal counts.
    """

    k: int = parameter(low=1, integer=True, doc="number of top items")
    of: str = _of()

    def _compare(
        self, exact: Float[np.ndarray, "..."], estimated: Float[np.ndarray, "..."]
    ) -> float:
        items = len(exact)
        k = min(self.k, items)
        in_true_top = _chance_in_top(exact.reshape(items, -1), k)
        in_released_top = _chance_in_top(estimated.reshape(items, -1), k)
        return (in_true_top * in_released_top).sum(axis=0).mean() / k


def _chance_in_top(
    counts: Float[np.ndarray, "items lists"], k: int
) -> Float[np.ndarray, "items lists"]:
    """Return the probability that an item is among the k highest of its list, with ties in random order."""
    last = np.partition(counts, -k, axis=0)[-k]
    above = counts > last
    tied = counts == last
    return above + tied * ((k - above.sum(axis=0)) / tied.sum(axis=0))


@value
class ContextShare:
    """Fraction of the estimated records that are in one context. Edges below 0 count as 0.

    If you pass the truth itself as the estimate, the result is the true fraction.
    """

    context: int = parameter(low=0, integer=True, doc="code of the context")

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """Return the share of one context. The truth is used only to check that the result may be shown.

        Parameters
        ----------
        truth : Interactions
            Whose truth is public.
        estimate : ItemEdgeCounts or Interactions
            Estimate over the same domain.

        Returns
        -------
        float
            Fraction in [0, 1], or NaN if no count is above 0.

        Raises
        ------
        ValueError
            If the truth is private, the estimate is over another domain, or there is no such context.
        """
        contexts = truth.domain.shape[1]
        if self.context >= contexts:
            raise not_allowed(self, "context", f"need a code below {contexts}")
        estimated = count_pair(truth, estimate, "edges").estimated
        records = np.maximum(estimated, 0).sum(axis=0)
        return float(records[self.context] / records.sum()) if records.any() else float("nan")


# Sampling

_BLOCK = 1 << 22  # records


def weighted_counts(
    truth: Interactions, weights: Float[np.ndarray, " users"], of: str = "items"
) -> Float[np.ndarray, " counts"]:
    """Return weighted counts of items or edges. Each record counts with the weight of its user.

    Parameters
    ----------
    truth : Interactions
        Whose truth is public.
    weights : float[users]
        Weight of each user, in the order of `truth.records_per_user()`.
    of : "items" or "edges"
        Kind of counts.

    Returns
    -------
    float64[items] or float64[edges]
        Weighted counts, in records.

    Raises
    ------
    ValueError
        If the truth is private.
    """
    refuse_private(truth)
    items, contexts = truth.domain.shape
    size = items if of == "items" else truth.domain.size
    last_records = np.cumsum(truth.records_per_user()) - 1
    weight_of_user = np.zeros(truth.users.max(initial=0) + 1)
    weight_of_user[truth.users[last_records]] = weights
    sums = np.zeros(size)
    for start in range(0, len(truth), _BLOCK):  # columns of a hundred million rows stay narrow
        block = slice(start, start + _BLOCK)
        keys = truth.items[block].astype(np.int64)
        if of == "edges":
            keys = keys * contexts + truth.contexts[block]
        sums += np.bincount(keys, weight_of_user[truth.users[block]], size)
    return sums


def sampling_error(
    truth: Interactions, ls: Iterable[float], of: str = "items"
) -> Float[np.ndarray, " ls"]:
    """Return the expected squared error of sampling l random records per user, averaged over items or edges.

    The result is exact for these data. It does not include the variance of noise. Suppose that a user has
    t > l records, and that a share p of these is for one item. On average, sampling drops (t − l)·p of the
    item's records, with the variance l·p·(1 − p)·(t − l)/(t − 1) of drawing without replacement. Users are
    sampled independently. So the squared error of an item is the square of the sum of these biases, plus
    the sum of these variances, over all users.

    Parameters
    ----------
    truth : Interactions
        Whose truth is public.
    ls : iterable of float
        Numbers of records per user that are counted.
    of : "items" or "edges"
        Kind of counts.

    Returns
    -------
    float64[ls]
        Error for each l, in records².

    Raises
    ------
    ValueError
        If the truth is private.
    """
    t = truth.records_per_user().astype(float)
    concentration = _concentration(truth, of)
    errors = []
    for l in ls:  # noqa: E741
        lost = np.maximum(t - l, 0)
        bias = weighted_counts(truth, lost / t, of)
        variance = (l * lost / np.maximum(t - 1, 1) * (1 - concentration)).sum()
        errors.append((float((bias**2).sum()) + variance) / len(bias))
    return np.array(errors)


def _concentration(truth: Interactions, of: str) -> Float[np.ndarray, " users"]:
    """Return, for each user, Σ over items (edges) of the squared share of the user's records."""
    sizes = truth.records_per_user()
    if getattr(truth.bound, "linf", None) == 1:
        return 1 / sizes
    items, contexts = truth.domain.shape
    user = np.repeat(np.arange(len(sizes)), sizes)
    keys = user * items + truth.items
    if of == "edges":
        keys = keys * contexts + truth.contexts
    keys, counts = np.unique(keys, return_counts=True)
    user = keys // (truth.domain.size if of == "edges" else items)
    return np.bincount(user, counts.astype(float) ** 2) / sizes.astype(float) ** 2


# Parts of an error


def error_parts(
    data: Interactions, kept_data: Interactions, released_data: Any
) -> pd.DataFrame:
    """Split the squared error of one release by its sources, for each tenth of the items.

    A release does not contain the dropped records. With the same seed, `mechanism.bounded_data(data, rng)`
    returns the records that `mechanism(data, rng)` counts.

    Parameters
    ----------
    data : Interactions
        Whose truth is public.
    kept_data : Interactions
        Records that were counted.
    released_data : ItemEdgeCounts
        Counts that were released.

    Returns
    -------
    pandas.DataFrame
        One row per table and tenth of the items, with the columns

        `of`, `decile`   items or edges; tenths of the items by true count, 10 the most popular
        `cells`          how many counts that is
        `dropped`        Σ (kept − truth)²
        `noise`          Σ (released − kept)², with what smoothing does where there is any
        `interaction`    2·Σ (released − kept)·(kept − truth), 0 on average where noise is unbiased
        `clipping`       what putting counts below 0 to 0 changes: never above 0
        `total`          their sum: Σ (max(released, 0) − truth)², in records²

    Raises
    ------
    ValueError
        If the truth is private.
    """
    refuse_private(data)
    decile = _deciles(data)
    items = len(decile)
    rows = []
    for of in ("items", "edges"):
        exact, kept = count_pair(data, kept_data, of)
        released = count_pair(data, released_data, of).estimated
        cells = exact.size // items
        cells_of_decile = cells * np.bincount(decile, minlength=10)
        sums = {
            name: np.bincount(decile, errors.reshape(items, cells).sum(axis=1), 10)
            for name, errors in _squared_errors(exact, kept, released).items()
        }
        for i in np.flatnonzero(cells_of_decile):
            row = {"of": of, "decile": i + 1, "cells": cells_of_decile[i]}
            rows.append(row | {name: by_decile[i] for name, by_decile in sums.items()})
    return pd.DataFrame(rows)


def _deciles(data: Interactions) -> Int[np.ndarray, " items"]:
    """Return the decile of each item by true count. The most popular items have 9."""
    items = data.domain.shape[0]
    rank = np.empty(items, np.int64)
    rank[np.argsort(data.item_counts(), kind="stable")] = np.arange(items)
    return 10 * rank // items


def _squared_errors(
    exact: np.ndarray, kept: np.ndarray, released: np.ndarray
) -> dict[str, Float[np.ndarray, "..."]]:
    """Return the parts of each count's squared error, and their sum."""
    clipped = np.maximum(released, 0)
    return {
        "dropped": (kept - exact) ** 2,
        "noise": (released - kept) ** 2,
        "interaction": 2 * (released - kept) * (kept - exact),
        "clipping": (clipped - exact) ** 2 - (released - exact) ** 2,
        "total": (clipped - exact) ** 2,
    }
