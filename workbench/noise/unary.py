"""Counts in unary: rounding at random to whole levels, and bits that are flipped at random.

Source  Aumüller, Lebeda & Pagh, CCS 2021: the ALP mechanism.
Differs rounding and flips have exactly the stated probabilities; flips cost their own number, and not
        that of the bits.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache

import numpy as np
from jaxtyping import Int, UInt64

from workbench.noise import kernels
from workbench.noise.bits import Words
from workbench.noise.empty_cells import survivor_ranks
from workbench.noise.exact import Interval, Real, accept

_CHUNK = 2**24


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
    for start in range(0, size, _CHUNK):
        kernels.toggle(
            bits, survivor_ranks(min(_CHUNK, size - start), _chance(alpha), words), start
        )


@lru_cache(64)
def _chance(alpha: Fraction) -> Real:
    return cache(lambda bits: Interval.of(1 / (alpha + 2), bits))
