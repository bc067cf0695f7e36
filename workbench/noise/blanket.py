"""Item blanket: release of a fixed number of cells, where random other cells hide which cells are not empty.

The mechanism keeps a non-empty cell if its noisy count reaches a threshold. Then it adds randomly chosen other
cells until the release has the fixed number of cells. A cell with a count of 1 rarely reaches the threshold. So
if such a cell is in the release, the mechanism may as well have chosen the cell at random.

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
    """Return the smallest threshold τ >= 1 for which the randomly chosen cells hide whether a cell has a
    count of 1 or is empty.

    Let α = exp(−rate). The mechanism keeps a cell with a count of 1 with probability q = α^(τ−1)/(1+α). The
    cell is hidden if q is at most 1 − α, and at most (1/α − 1)·(size − nonempty + 1)/(cells − size).

    Parameters
    ----------
    rate : Fraction
        Decay ε/l1 of the geometric noise on each count.
    cells : int
        Number of all cells of the domain.
    nonempty : int
        Public upper bound on the number of cells that are not empty.
    size : int
        Number of cells in the release, at least `nonempty` and at most `cells`.

    Returns
    -------
    int
        Threshold τ, in counts.
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
    """Choose exactly `size` cells of a domain. The function first chooses the non-empty cells whose noisy count
    reaches a threshold. Then it adds other cells at random until there are `size` cells.

    The choice is ε-differentially private for tables with at most `nonempty` non-empty cells. The proof is in
    docs/proofs.toml, under `ItemBlanket`.

    Parameters
    ----------
    keys : int64[n]
        Keys of the non-empty cells, in ascending order. A key is the position of a cell in the domain, from 0.
    counts : int[n]
        Counts of these cells.
    cells : int
        Number of all cells of the domain.
    nonempty : int
        Public upper bound on the number of non-empty cells. Check this bound before you call the function.
    size : int
        Number of cells in the release, at least `nonempty` and at most `cells`.
    l1 : number
        Largest total change of the counts that one unit (for example a person) can cause.
    epsilon : number
        Privacy loss ε of the choice.
    rng : Generator, optional
        With a seeded generator, you get the same choice again. Use None (the default) for a choice that you
        publish.

    Returns
    -------
    int64[size]
        Keys of the chosen cells, in ascending order.
    Receipt
        Receipt that records the privacy cost of the choice.

    Raises
    ------
    ValueError
        If ε or l1 is not a finite number > 0, if ε/l1 is below 2⁻³⁶, or if `size` cells do not fit into memory.
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
    """Add noise to the counts. Return the keys of the non-empty cells whose noisy count reaches the
    threshold, and of random other cells. Together, there are `size` keys.
    """
    noisy = np.array(counts, np.int64)
    two_sided(rate).add(noisy, words)
    kept = keys[noisy >= threshold]
    ranks = distinct_ranks(size - len(kept), cells - len(kept), words)
    others_before = kept - np.arange(len(kept))
    others = ranks + np.searchsorted(others_before, ranks, side="right")
    return np.sort(np.concatenate([kept, others]))
