"""Metrics for released counts of items and of edges (pairs of an item and a context), and the parts of their
error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from workbench.compiled import pd
from workbench.data import Interactions
from workbench.trials.metrics.answers import refuse_other_domain, refuse_private
from workbench.value import Float, Int, not_allowed, parameter, value

# Counts


Counts = Float[np.ndarray, "..."]  # (items,) or (items, contexts)


def count_pair(truth: Interactions, estimate: Any, of: str) -> tuple[Counts, Counts]:
    """Return the exact and the estimated counts of all items, or of all edges (pairs of an item and a
    context). The estimate may consist of released counts, or of records that are counted here.
    """
    refuse_private(truth)
    refuse_other_domain(truth, estimate)
    return _counts(truth, of), _counts(estimate, of)


def _counts(data: Any, of: str) -> Counts:
    shape = data.domain.shape if of == "edges" else data.domain.shape[:1]
    if isinstance(data, Interactions):
        counts = data.edge_counts() if of == "edges" else data.item_counts()
    else:
        counts = getattr(data, of).values
    return np.asarray(counts, float).reshape(shape)


def _of() -> Any:
    """Declare the field `of`, which says whether a metric compares counts of items or counts of edges."""
    return parameter("items", choices=("items", "edges"), doc="which counts to compare")


class _CountMetric:
    """Base class of metrics that compare counts of items, or of edges (pairs of an item and a context)."""

    of: str

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """Compare the estimated and the true counts of all items or edges.

        Parameters
        ----------
        truth : Interactions
            True records, which are public or were created with `truth_public=True`.
        estimate : ItemEdgeCounts or Interactions
            Released counts over the same domain, or records to count.

        Returns
        -------
        float
            Value of the metric, in its unit.

        Raises
        ------
        ValueError
            If the true records are private, or if the estimate is over another domain.
        """
        return float(self._compare(*count_pair(truth, estimate, self.of)))

    def _compare(self, exact: Counts, estimated: Counts) -> float:
        raise NotImplementedError


@value
class MeanSquaredCountError(_CountMetric):
    """Mean squared error of counts: the mean of (estimate − truth)² over all items, or over all edges (pairs
    of an item and a context). Here estimate and truth are numbers of records.

    The estimate is usually the counts that a mechanism released (`ItemEdgeCounts`). The estimate may also be
    the records that a mechanism kept of each user (`Interactions`). Then the result is the error from
    dropping records, without the error from noise. All metrics on counts of items and edges accept both kinds
    of estimates.
    """

    of: str = _of()

    def _compare(self, exact: Counts, estimated: Counts) -> float:
        return ((estimated - exact) ** 2).mean()


@value
class KLDivergence(_CountMetric):
    """Kullback–Leibler (KL) divergence Σ p·ln(p/q) between two distributions, in nats. The two distributions
    are distributions of records over items, or over edges (pairs of an item and a context).

    One distribution comes from the released counts, and the other from the true counts. The field `direction`
    says which of them is p, and the other is q. The divergence is infinite if q is 0 for an item. So the
    metric first replaces counts of 0 or less by `floor`, and leaves all other counts unchanged. Then it
    divides the counts by their sum.
    """

    of: str = _of()
    direction: str = parameter(
        "released_given_original",
        choices=("released_given_original", "original_given_released"),
        doc="which distribution is p, and which is q",
    )
    floor: float = parameter(
        0.01, 0, strict=True, unit="records", doc="number that replaces counts of 0 or less"
    )

    def _compare(self, exact: Counts, estimated: Counts) -> float:
        original = self._distribution(exact)
        released = self._distribution(estimated)
        if self.direction == "original_given_released":
            return _divergence(original, released)
        return _divergence(released, original)

    def _distribution(self, counts: Counts) -> Counts:
        positive = np.where(counts > 0, counts, self.floor)
        return positive / positive.sum()


def _divergence(p: Counts, q: Counts) -> float:
    return (p * np.log(p / q)).sum()


@value
class TopPrecision(_CountMetric):
    """Share of the released top items that are also true top items. The released top items are the `k` items
    with the highest released counts, and the true top items are the `k` items with the highest true counts.

    For edges (pairs of an item and a context), the metric computes the share for the items in each context,
    and returns the mean over contexts. If several items with the same count compete for place `k`, the metric
    is the expected share for a random order of these items.
    """

    k: int = parameter(low=1, integer=True, doc="number of items with the highest counts")
    of: str = _of()

    def _compare(self, exact: Counts, estimated: Counts) -> float:
        items = len(exact)
        k = min(self.k, items)
        in_true_top = _chance_in_top(exact.reshape(items, -1), k)
        in_released_top = _chance_in_top(estimated.reshape(items, -1), k)
        return (in_true_top * in_released_top).sum(axis=0).mean() / k


def _chance_in_top(
    counts: Float[np.ndarray, "items lists"], k: int
) -> Float[np.ndarray, "items lists"]:
    """Return, for each item of a list, the probability that it is among the k items with the highest counts.
    Items with equal counts are in random order.
    """
    last = np.partition(counts, -k, axis=0)[-k]
    above = counts > last
    tied = counts == last
    return above + tied * ((k - above.sum(axis=0)) / tied.sum(axis=0))


@value
class ContextShare:
    """Share of the estimated records that are in one context, for example on Monday. The metric treats
    negative counts as 0.

    To get the true share, pass the true records as the estimate.
    """

    context: int = parameter(low=0, integer=True, doc="number of the context, from 0")

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """Compute the share of one context. The true records are used only to check that the result may be
        shown.

        Parameters
        ----------
        truth : Interactions
            True records, which are public or were created with `truth_public=True`.
        estimate : ItemEdgeCounts or Interactions
            Released counts over the same domain, or records to count.

        Returns
        -------
        float
            Share between 0 and 1, or NaN if no count is positive.

        Raises
        ------
        ValueError
            If the true records are private, if the estimate is over another domain, or if there is no such
            context.
        """
        contexts = truth.domain.shape[1]
        if self.context >= contexts:
            raise not_allowed(self, "context", f"need a code below {contexts}")
        _, estimated = count_pair(truth, estimate, "edges")
        records = np.maximum(estimated, 0).sum(axis=0)
        return float(records[self.context] / records.sum()) if records.any() else float("nan")


# Sampling

_BLOCK = 1 << 22  # records


def weighted_counts(
    truth: Interactions, weights: Float[np.ndarray, " users"], of: str = "items"
) -> Float[np.ndarray, " counts"]:
    """Add up the weights of the records of each item, or of each edge (pair of an item and a context). The
    weight of a record is the weight of its user.

    Parameters
    ----------
    truth : Interactions
        True records, which are public or were created with `truth_public=True`.
    weights : float[users]
        Weight of each user. The order is that of `truth.records_per_user()`.
    of : "items" or "edges"
        Whether to count by item, or by edge (a pair of an item and a context).

    Returns
    -------
    float64[items] or float64[edges]
        Sum of the weights of the records of each item or edge.

    Raises
    ------
    ValueError
        If the true records are private (neither public nor created with `truth_public=True`).
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
    """Compute the error of counts if only l random records of each user are kept. The result is the expected
    squared error of a count, averaged over items or over edges (pairs of an item and a context).

    The result is exact, and does not include noise. Suppose that a user has t records, that t is larger than
    l, and that a share p of the user's records is about one item. On average, sampling drops (t − l)·p of the
    user's records of this item. This number is the user's bias. The number of dropped records of this item
    has the variance l·p·(1 − p)·(t − l)/(t − 1), as in any draw without replacement. The users' records are
    sampled independently. So the expected squared error of an item's count is the square of the sum of all
    users' biases, plus the sum of all users' variances.

    Parameters
    ----------
    truth : Interactions
        True records, which are public or were created with `truth_public=True`.
    ls : iterable of float
        Values of l, the number of records that are kept per user.
    of : "items" or "edges"
        Whether to count by item, or by edge (a pair of an item and a context).

    Returns
    -------
    float64[ls]
        Expected squared error of a count, for each number in `ls`.

    Raises
    ------
    ValueError
        If the true records are private (neither public nor created with `truth_public=True`).
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
    """Return the sum of squared shares for each user. A share is the fraction of the user's records that are
    about one item (or edge). The sum is over all items (or edges).
    """
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
    """Split the squared error of a release into parts by cause: dropped records, noise, and the replacement
    of negative counts by 0. The function orders the items by popularity, and computes the parts for each
    tenth of the items.

    The function needs the records that the mechanism kept, which are not in the release. To get these
    records, call `mechanism.bounded_data(data, rng)` with a generator that has the same seed as the one for
    the release.

    Parameters
    ----------
    data : Interactions
        True records, which are public or were created with `truth_public=True`.
    kept_data : Interactions
        Records that the mechanism kept and counted.
    released_data : ItemEdgeCounts
        Released counts.

    Returns
    -------
    pandas.DataFrame
        One row for each tenth of the items, first for counts of items and then for counts of edges (pairs of
        an item and a context). In the formulas, truth is the true count of an item or edge, kept is the count
        of its kept records, and released is its released count. The columns are:

        `of`, `decile`   "items" or "edges", and the tenth of the items by true count (10: most popular)
        `cells`          number of counts in this row
        `dropped`        Σ (kept − truth)²
        `noise`          Σ (released − kept)², including the effect of smoothing, if the mechanism smooths
        `interaction`    joint effect: 2·Σ (released − kept)·(kept − truth), 0 on average for unbiased noise
        `clipping`       change of the error if negative counts are set to 0, which is never positive
        `total`          sum of the four parts: Σ (max(released, 0) − truth)², in records²

    Raises
    ------
    ValueError
        If the true records are private (neither public nor created with `truth_public=True`).
    """
    refuse_private(data)
    decile = _deciles(data)
    items = len(decile)
    rows = []
    for of in ("items", "edges"):
        exact, kept = count_pair(data, kept_data, of)
        _, released = count_pair(data, released_data, of)
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
    """Return the tenth to which each item belongs by its true count, from 0 to 9. The most popular items are
    in tenth 9.
    """
    items = data.domain.shape[0]
    rank = np.empty(items, np.int64)
    rank[np.argsort(data.item_counts(), kind="stable")] = np.arange(items)
    return 10 * rank // items


def _squared_errors(
    exact: np.ndarray, kept: np.ndarray, released: np.ndarray
) -> dict[str, Float[np.ndarray, "..."]]:
    """Return the parts of the squared error of each count, and the sum of the parts."""
    clipped = np.maximum(released, 0)
    return {
        "dropped": (kept - exact) ** 2,
        "noise": (released - kept) ** 2,
        "interaction": 2 * (released - kept) * (kept - exact),
        "clipping": (clipped - exact) ** 2 - (released - exact) ** 2,
        "total": (clipped - exact) ** 2,
    }
