"""Counts in unary at hashed places of a bit array: rounded at random to levels, then flipped at random.

Source  Aumüller, Lebeda & Pagh, CCS 2021: the ALP mechanism.
Differs rounding and flips have exactly the stated probabilities; flips cost their own number, and not
        that of the bits.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache

import numpy as np

from workbench.arrays import Int, UInt64
from workbench.estimates import hashes
from workbench.noise import kernels
from workbench.noise.arguments import check_counts, decay
from workbench.noise.bits import Words
from workbench.noise.empty_cells import survivor_ranks
from workbench.noise.exact import Interval, Real, accept
from workbench.noise.source import Source
from workbench.privacy import Receipt
from workbench.value import sealed

_BITS_AT_ONCE = 2**24


def alp_projection(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    hash_words: UInt64[np.ndarray, "levels 3"],
    size: int,
    *,
    l1: float,
    epsilon: float,
    alpha: float,
    rng: np.random.Generator | None = None,
) -> tuple[UInt64[np.ndarray, " words"], Receipt]:
    """`size` bits, each flipped with probability 1/(α+2), in which counts are unary: ε-DP.

    A count x is worth y = x·ε/(α·l1) levels, rounded at random to a neighbouring whole number (its mean
    is y) and cut at the number of `hash_words`, which say for each level which bit to set.
    Let f(k) be the chance of an output when a cell is rounded to k, all else being equal. One
    level more sets one bit at most, whose likelihoods differ by (1−p)/p = α + 1 at most; so does f.
    Over real y the chance is the linear interpolation F of f, whose slope |F'| <= α·min(f(k), f(k+1))
    <= α·F: log F moves by at most α a level, hence by ε/l1 a count, hence by ε for one unit.

    Parameters
    ----------
    keys : int64[n], the non-empty cells, sorted.
    counts : int[n], their counts.
    hash_words : uint64[levels, 3], a public hash function for each level.
    size : how many bits, a power of two >= 64.
    l1 : how far one unit moves all counts together.
    epsilon : what the bits cost.
    alpha : α > 0.
    rng : a seeded generator for noise that can be replayed, or None to publish.

    Returns
    -------
    uint64[size/64]
        The bits.
    Receipt
        What they cost.

    Raises
    ------
    ValueError
        If an argument is not allowed; see `noise.decay`.
    """
    check_counts(counts)
    if size < 64 or size.bit_count() > 1:
        raise ValueError(f"size = {size!r} is not allowed: need a power of two >= 64")
    levels_per_count = decay(l1, epsilon) / Fraction(alpha)
    source = Source(rng)
    levels = randomised_rounding(counts, levels_per_count, source.words)
    bits = np.zeros(size // 64, np.uint64)
    hashes.set_bits(keys, np.minimum(levels, len(hash_words)), hash_words, bits)
    flip_bits(bits, Fraction(alpha), source.words)
    return sealed(bits), source.receipt("unary", epsilon)


def randomised_rounding(
    counts: Int[np.ndarray, " n"], rate: Fraction, words: Words
) -> Int[np.ndarray, " n"]:
    """counts · rate, rounded up with exactly the probability of its fraction, or else down."""
    different, which = np.unique(counts, return_inverse=True)
    worth = different.astype(object) * rate.numerator  # as Python's own integers
    below = worth // rate.denominator
    rest = worth % rate.denominator
    chance = (rest / rate.denominator).astype(float)

    def exact(i: int, bits: int) -> Interval:
        return Interval.of(Fraction(rest[which[i]], rate.denominator), bits)

    up = accept(chance[which], exact, words)
    return np.minimum(below, 2**62).astype(np.int64)[which] + up


def flip_bits(bits: UInt64[np.ndarray, " words"], alpha: Fraction, words: Words) -> None:
    """Flip each bit, independently, with probability exactly 1/(α+2)."""
    size = 64 * len(bits)
    for start in range(0, size, _BITS_AT_ONCE):
        portion = min(_BITS_AT_ONCE, size - start)
        flipped = survivor_ranks(portion, _flip_probability(alpha), words)
        kernels.toggle(bits, flipped, start)


@lru_cache(64)
def _flip_probability(alpha: Fraction) -> Real:
    return cache(lambda bits: Interval.of(1 / (alpha + 2), bits))
