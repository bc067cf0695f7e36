"""Numbers known to any precision, and decisions that never rest on rounding.

A real number is held as a function of a precision: `real(bits)` is an `Interval` of two integers that
encloses 2^bits times the number. Whoever compares a uniform variate with it draws further bits, and
asks for further precision, until the answer is certain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from workbench.arrays import Bool, Float
from workbench.noise import kernels
from workbench.noise.bits import Words

_NEAR = (
    2.0**-40
)  # floats decide beyond this distance: needs exp, log1p and division right to 2^-40


@dataclass(frozen=True)
class Interval:
    """Integers lo <= 2^bits · x <= hi, for x >= 0; every operation rounds outwards."""

    lo: int
    hi: int
    bits: int

    @classmethod
    def of(cls, x: Fraction | int, bits: int) -> Interval:
        """The tightest interval around a rational number."""
        scaled = Fraction(x) * 2**bits
        return cls(scaled.__floor__(), scaled.__ceil__(), bits)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.lo + other.lo, self.hi + other.hi, self.bits)

    def __sub__(self, other: Interval) -> Interval:
        """For differences that are known not to be negative."""
        return Interval(max(0, self.lo - other.hi), max(0, self.hi - other.lo), self.bits)

    def __mul__(self, other: Interval) -> Interval:
        return Interval(
            self.lo * other.lo >> self.bits, -(-self.hi * other.hi >> self.bits), self.bits
        )

    def __truediv__(self, other: Interval) -> Interval:
        return Interval(
            (self.lo << self.bits) // other.hi,
            -((-self.hi << self.bits) // other.lo),
            self.bits,
        )

    def __pow__(self, n: int) -> Interval:
        out, square = Interval.of(1, self.bits), self
        while n:
            if n & 1:
                out = out * square
            n >>= 1
            square = square * square if n else square
        return out

    def __float__(self) -> float:
        return float(Fraction(self.lo + self.hi, 2 << self.bits))


Real = Callable[[int], Interval]


def exp_neg(x: Fraction, bits: int) -> Interval:
    """exp(−x) for a rational x >= 0: the alternating series at x/k <= 1/2, raised to the k-th power."""
    k = max(1, (2 * x).__ceil__())
    guard = bits + 64 + k.bit_length()
    p, q = (x / k).numerator, (x / k).denominator
    term = total = Interval.of(1, guard)
    i = 1
    while term.hi > 1:
        term = Interval(term.lo * p // (q * i), -(-term.hi * p // (q * i)), guard)
        if i & 1:
            total = Interval(total.lo - term.hi, total.hi - term.lo, guard)
        else:
            total = total + term
        i += 1
    total = (
        Interval(max(0, total.lo - 2), total.hi + 2, guard) ** k
    )  # the cut tail is below one unit
    return Interval(total.lo >> guard - bits, -(-total.hi >> guard - bits), bits)


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
        heads[i] = is_below(int(drawn[i]), lambda bits, i=int(i): exact(i, bits), words)
    return heads
