"""Which counts reach a threshold once noise is added, of which only the comparisons are released."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from workbench.arrays import Bool, Int, Num
from workbench.noise.arguments import check_counts, decay
from workbench.noise.empty_cells import EmptyCell, survivor_ranks
from workbench.noise.laws import two_sided
from workbench.noise.source import Source
from workbench.noise.structure import geometric_rho
from workbench.privacy import Receipt


class Comparisons(NamedTuple):
    """Which counts reach a threshold with noise, which of the zeros, and what that costs."""

    reached: Bool[np.ndarray, " n"]
    zeros: Int[np.ndarray, " k"]
    receipt: Receipt


def noisy_threshold(
    counts: Num[np.ndarray, " n"],
    zeros: int,
    *,
    threshold: float,
    l1: float,
    epsilon: float,
    rng: np.random.Generator | None = None,
) -> Comparisons:
    """Which of `counts`, and of `zeros` further counts that are 0, reach `threshold` with noise on each.

    Comparisons cost no more than the noisy counts. The zeros that pass are i.i.d. choices, at a cost
    of how many there are.

    Parameters
    ----------
    counts : int[n]; or float[n], which get Laplace noise in floating point: the receipt says
        `idealised`.
    zeros : how many further counts are 0.
    threshold : in counts.
    l1 : how far one unit moves all counts together.
    epsilon : what all comparisons cost together.
    rng : a seeded generator for noise that can be replayed, or None to publish.

    Returns
    -------
    Comparisons
        Whether each count reaches the threshold, the places among the zeros of those that do, sorted,
        and a receipt.

    Raises
    ------
    ValueError
        As `noise.decay`.
    """
    source = Source(rng)
    rho = None
    if counts.dtype.kind == "f":
        noisy = source.floats.laplace(0, l1 / epsilon, len(counts) + zeros)
        noisy[: len(counts)] += counts
        reached = noisy >= threshold
        reached_zeros = np.flatnonzero(reached[len(counts) :])
        reached = reached[: len(counts)]
    else:
        check_counts(counts)
        ratio = decay(l1, epsilon)
        rho = geometric_rho(ratio, l1)
        words = source.words
        threshold = ceil(threshold)
        noisy = np.array(counts, np.int64)
        source.add_noise(two_sided(ratio), noisy)
        reached = noisy >= threshold
        if threshold > 0:
            survival = EmptyCell(two_sided(ratio).alpha, threshold, 1).survival
            reached_zeros = survivor_ranks(zeros, survival, words)
        else:
            noisy_zeros = np.zeros(zeros, np.int64)
            source.add_noise(two_sided(ratio), noisy_zeros)
            reached_zeros = np.flatnonzero(noisy_zeros >= threshold)
    return Comparisons(reached, reached_zeros, source.receipt("passing", epsilon, rho=rho))
