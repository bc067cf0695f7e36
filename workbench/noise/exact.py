"""Numbers known to any precision, and decisions that never rest on rounding.

A real number is held as a function of a precision: `real(bits)` is an `Interval` of two integers that
encloses 2^bits times the number. Whoever compares a uniform variate with it draws further bits, and
asks for further precision, until the answer is certain.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from workbench.arrays import Bool, Float
from workbench.enclosures import Interval as Interval
from workbench.enclosures import Real as Real
from workbench.enclosures import exp_neg as exp_neg
from workbench.noise import kernels
from workbench.noise.bits import Words

_NEAR = (
    2.0**-40
)  # floats decide beyond this distance: needs exp, log1p and division right to 2^-40


def is_below(word: int, real: Real, words: Words) -> bool:
    """Whether a uniform number whose first 64 bits are `word` lies below `real`."""
    u, known, bits = word, 64, 192
    x = real(bits)
    while True:
        lo, hi = u << bits - known, (u + 1) << bits - known
        if hi <= x.lo:
            return True
        if lo >= x.hi:
            return False
        u, known = u << 64 | int(words(1)[0]), known + 64
        if known > bits:
            bits *= 2
            x = real(bits)


def accept(
    chance: Float[np.ndarray, " n"], exact: Callable[[int, int], Interval], words: Words
) -> Bool[np.ndarray, " n"]:
    """n independent coins: heads with probability exactly `exact(i, ·)`, of which `chance` is a float.

    The float decides alone unless the variate falls within 2^-40 of it.
    """
    drawn, n = words(len(chance)), len(chance)
    heads, near = np.empty(n, bool), np.empty(n, np.int32)
    for i in near[: kernels.toss(drawn, chance, _NEAR, heads, near)]:
        heads[i] = is_below(int(drawn[i]), partial(exact, int(i)), words)
    return heads
