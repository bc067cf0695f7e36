"""Item blanket: release of a fixed number of cells, in which random cells hide the non-empty ones.

The mechanism keeps a non-empty cell if its noisy count reaches a threshold. It then fills the release up to
the fixed size with uniformly chosen other cells. A cell with a count of 1 is kept so rarely that a random
cell explains its presence equally well.

Source  Our own mechanism, after the private item blanket of Kerschbaum, Lee & Wu, 2025.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from workbench.noise.arguments import check_counts, decay
from workbench.noise.laws import two_sided
from workbench.noise.parts import check_size
from workbench.noise.source import Reads, Source, distinct_ranks
from workbench.noise.stability import first_sufficient
from workbench.privacy import DP, Receipt
from workbench.privacy.enclosures import Interval
from workbench.randomness import Words
from workbench.value import Int, sealed

_BITS = 320  # decays are at least 2^-36, and domains at most 2^63


@lru_cache(256)
def blanket_threshold(rate: Fraction, cells: int, nonempty: int, size: int) -> int:
    """Return the smallest threshold τ >= 1 at which the randomly chosen cells hide a cell with a
    count of 1.

    Let α = exp(−rate). The mechanism keeps such a cell with probability q = α^(τ−1)/(1+α). To hide
    it, q must be at most 1 − α, and at most (1/α − 1)·(size − nonempty + 1)/(cells − size).

    Parameters
    ----------
    rate : Fraction
        Decay of the noise for one count.
    cells : int
        Size of the domain.
    nonempty : int
        Public bound on the number of non-empty cells.
    size : int
        Number of released cells, at least `nonempty` and at most `cells`.

    Returns
    -------
    int
        τ, in counts.
    """
    alpha = two_sided(rate).alpha(_BITS)
    gap = (Interval.of(1, _BITS) - alpha * alpha).below

    def suffices(tau: int) -> bool:
        kept = alpha ** (tau - 1)
        hidden = (kept * alpha).above * (cells - size) <= gap * (size - nonempty + 1)
        return hidden and kept.above <= gap

    return first_sufficient(suffices, 1)


def item_blanket(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    cells: int,
    *,
    nonempty: int,
    size: int,
    l1: float,
    epsilon: float,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " size"], Receipt]:
    """Choose exactly `size` cells. First come non-empty cells with large noisy counts. Random cells
    fill the remaining places.

    The choice is ε-DP for tables with at most `nonempty` non-empty cells (proof in docs/proofs.toml).

    Parameters
    ----------
    keys : int64[n]
        Sorted keys of the non-empty cells.
    counts : int[n]
        Their counts.
    cells : int
        Size of the domain.
    nonempty : int
        Public bound on n, which the caller has checked.
    size : int
        Number of cells to choose, at least `nonempty` and at most `cells`.
    l1 : number
        Largest change of all counts together by one unit.
    epsilon : number
        Cost of the choice.
    rng : Generator, optional
        Seeded generator for a choice that can be replayed. None to publish.

    Returns
    -------
    int64[size]
        Different keys, sorted.
    Receipt
        Cost of the choice.

    Raises
    ------
    ValueError
        For the same reasons as `noise.decay`, or if `size` is too large to hold.
    """
    check_counts(counts)
    check_size(cells, size)
    rate = decay(l1, epsilon)
    threshold = blanket_threshold(rate, cells, nonempty, size)
    source = Source.of(rng)
    reads = Reads(counts, l1, keys)
    chosen = source.choose(
        draw_blanket, keys, counts, cells, size, threshold, rate, reads=reads
    )
    return sealed(chosen), source.receipt("item blanket", DP(epsilon))


def draw_blanket(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    cells: int,
    size: int,
    threshold: int,
    rate: Fraction,
    words: Words,
) -> Int[np.ndarray, " size"]:
    """Return the non-empty cells whose noisy count reaches the threshold, together with cells that
    are chosen at random from the rest.
    """
    noisy = np.array(counts, np.int64)
    two_sided(rate).add(noisy, words)
    kept = keys[noisy >= threshold]
    ranks = distinct_ranks(size - len(kept), cells - len(kept), words)
    others_before = kept - np.arange(len(kept))
    others = ranks + np.searchsorted(others_before, ranks, side="right")
    return np.sort(np.concatenate([kept, others]))
