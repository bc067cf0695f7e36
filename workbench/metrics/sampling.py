"""How far counts are off, on average over all draws, where some records of each user are kept."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from workbench.arrays import Float
from workbench.interactions import Interactions
from workbench.metrics.refusal import refuse_private

_BLOCK = 1 << 22  # records


def weighted_counts(
    truth: Interactions, weights: Float[np.ndarray, " users"], of: str = "items"
) -> Float[np.ndarray, " counts"]:
    """Σ over records of what each of its user weighs, by item or by edge.

    Parameters
    ----------
    truth : Interactions
        Whose truth is public.
    weights : float[users]
        In the order of `truth.records_per_user()`.
    of : "items" or "edges"
        Which counts.

    Returns
    -------
    float64[items] or float64[edges]
        In records.

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
    """Mean over items, or edges, of the squared error if l random records of each user are counted.

    Exact for this data; the variance of noise comes on top. A user with t > l records, a share p of
    them of one item, loses (t − l)·p of it on average, with the variance l·p·(1 − p)·(t − l)/(t − 1) of
    drawing without replacement. Bias adds up over users, then squared; users are independent, so that
    variances do.

    Parameters
    ----------
    truth : Interactions
        Whose truth is public.
    ls : iterable of float
        Records of each user that are counted.
    of : "items" or "edges"
        Which counts.

    Returns
    -------
    float64[ls]
        In records².

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
    """Of each user, Σ over items (edges) of the squared share of their records that it has."""
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
