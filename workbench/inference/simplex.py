"""Leaves whose counts are at least 0 and add up to what the noisy ones do.

Source     the projection on a simplex, by water-filling (Held, Wolfe & Crowder, Mathematical
           Programming 1974), in whole numbers.
Differs    what does not divide evenly goes to the first of the largest counts, in the order of keys.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

import numpy as np

from workbench.estimates import Leaves


def project_to_simplex(leaves: Leaves) -> Leaves:
    """The whole counts >= 0 closest to the noisy ones among those of the same sum (0 if that is below).

    Negative counts that are set to 0 leave too many records: half the noise of every empty leaf. All
    counts then lose alike, down to 0, until the sum is right.

    Parameters
    ----------
    leaves : Leaves
        Released ones.

    Returns
    -------
    Leaves
        The same nodes; standard errors have no closed form any more.

    Raises
    ------
    ValueError
        For another estimate.
    """
    if not isinstance(leaves, Leaves):
        raise ValueError(f"{leaves!r} has no leaves to balance: need Leaves")
    total = max(0, int(leaves.values.sum()))
    loss = _largest_loss(leaves.values, total)
    counts = np.maximum(leaves.values - loss, 0)
    surplus = int(counts.sum()) - total
    counts[np.argsort(-counts, kind="stable")[:surplus]] -= 1
    return replace(leaves, values=counts, law=None)


def _largest_loss(counts: np.ndarray, total: int) -> int:
    """The most that all counts can lose, down to 0, so that they still sum to the total at least."""

    def too_much(loss: int) -> bool:
        return np.maximum(counts - loss, 0).sum() < total

    return bisect_left(range(1, int(counts.max(initial=0))), True, key=too_much)
