"""How far counts are off, on average over all draws, where some records of each user are kept."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from workbench.interactions import Interactions
from workbench.metrics.refusal import refuse_private

_BLOCK = 1 << 22  # records


def weighted_counts(
    truth: Interactions, weights: Float[np.ndarray, " users"], of: str = "items"
) -> Float[np.ndarray, " counts"]:
    """Σ over records of what each of its user weighs, by item or by edge; weights as `per_user`."""
    refuse_private(truth)
    h, n = truth.domain.shape[1], truth.domain.shape[0] if of == "items" else truth.domain.size
    ends = np.cumsum(truth.records_per_user())
    of_code, out = np.zeros(truth.users.max(initial=0) + 1), np.zeros(n)
    of_code[truth.users[ends - 1]] = weights
    for at in range(0, len(truth), _BLOCK):  # columns of a hundred million rows stay narrow
        part = slice(at, at + _BLOCK)
        keys = truth.items[part].astype(np.int64)
        if of == "edges":
            keys = keys * h + truth.contexts[part]
        out += np.bincount(keys, of_code[truth.users[part]], n)
    return out


def sampling_error(
    truth: Interactions, ls: Iterable[float], of: str = "items"
) -> Float[np.ndarray, " ls"]:
    """Mean over items, or edges, of the squared error if l random records of each user are counted.

    For each l, in records², exact for this data; the variance of noise comes on top. A user with t > l
    records, a share p of them of one item, loses (t − l)·p of it on average, with the variance
    l·p·(1 − p)·(t − l)/(t − 1) of drawing without replacement. Bias adds up over users, then squared;
    users are independent, so that variances do.
    """
    t, same = truth.records_per_user().astype(float), _concentration(truth, of)
    found = []
    for l in ls:  # noqa: E741
        lost = np.maximum(t - l, 0)
        bias = weighted_counts(truth, lost / t, of)
        spread = (l * lost / np.maximum(t - 1, 1) * (1 - same)).sum()
        found.append((float((bias**2).sum()) + spread) / len(bias))
    return np.array(found)


def _concentration(truth: Interactions, of: str) -> Float[np.ndarray, " users"]:
    """Of each user, Σ over items (edges) of the squared share of their records that it has."""
    sizes = truth.records_per_user()
    if getattr(truth.bound, "linf", None) == 1:
        return 1 / sizes
    user = np.repeat(np.arange(len(sizes)), sizes)
    keys = user * truth.domain.shape[0] + truth.items
    if of == "edges":
        keys = keys * truth.domain.shape[1] + truth.contexts
    keys, counts = np.unique(keys, return_counts=True)
    user = keys // (truth.domain.size if of == "edges" else truth.domain.shape[0])
    return np.bincount(user, counts.astype(float) ** 2) / sizes.astype(float) ** 2
