"""Intervals with rational ends that are guaranteed to contain a real number, and rounding of fractions to
floats, up or down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isqrt, nextafter


@dataclass(frozen=True)
class Interval:
    """Interval that contains a real number x >= 0. It is stored as two integers with lo <= 2^bits · x <= hi.

    Every operation rounds the lower end down and the upper end up, so the result always contains the true
    value.
    """

    lo: int
    hi: int
    bits: int

    @classmethod
    def of(cls, x: Fraction | int, bits: int) -> Interval:
        """Return the smallest interval around the rational number `x` whose ends are multiples of 2^-bits."""
        scaled = Fraction(x) * 2**bits
        return cls(scaled.__floor__(), scaled.__ceil__(), bits)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.lo + other.lo, self.hi + other.hi, self.bits)

    def __sub__(self, other: Interval) -> Interval:
        """Subtract a number that is at most as large as the number in this interval."""
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

    @property
    def above(self) -> Fraction:
        """Upper end of the interval, a rational number that is at least x."""
        return Fraction(self.hi, 1 << self.bits)

    @property
    def below(self) -> Fraction:
        """Lower end of the interval, a rational number that is at most x."""
        return Fraction(self.lo, 1 << self.bits)


Real = Callable[[int], Interval]


def exp_neg(x: Fraction, bits: int) -> Interval:
    """Return an interval that contains exp(−x), for a rational x >= 0.

    The function chooses an integer k with x/k <= 1/2. It computes exp(−x/k) by its power series, and raises
    the result to the power k.
    """
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


def ln(x: Fraction, bits: int) -> Interval:
    """Return an interval that contains ln x, for a rational x >= 1.

    The function writes x as m·2^e with 1 <= m < 2, so ln x = ln m + e·ln 2. It computes ln m by the formula
    2·artanh((m − 1)/(m + 1)).
    """
    exponent = int(x).bit_length() - 1
    guard = bits + 64 + exponent.bit_length()
    mantissa = x / (1 << exponent)
    one = _artanh((mantissa - 1) / (mantissa + 1), guard)
    two = _artanh(Fraction(1, 3), guard)
    lo = 2 * (one.lo + exponent * two.lo)
    hi = 2 * (one.hi + exponent * two.hi)
    return Interval(lo >> guard - bits, -(-hi >> guard - bits), bits)


def _artanh(z: Fraction, bits: int) -> Interval:
    """Return an interval that contains artanh z, for 0 <= z <= 1/3. The function adds up the power series z +
    z³/3 + z⁵/5 + ….

    The terms that the function leaves out add up to less than 2^-bits.
    """
    square = Interval.of(z * z, bits)
    power = total = Interval.of(z, bits)
    n = 1
    while power.hi > 1:
        power = power * square
        n += 2
        total = Interval(total.lo + power.lo // n, total.hi - (-power.hi // n), bits)
    return Interval(total.lo, total.hi + 2, bits)


def root_above(x: Fraction) -> Fraction:
    """Return √x for a rational x >= 0, rounded up. The relative error is at most 2^-62.

    If x is the square of a rational number, the result is exact.
    """
    scale = 1 << max(64, 64 - x.numerator.bit_length() + x.denominator.bit_length())
    scaled = -(-x.numerator * scale**2 // x.denominator)
    root = isqrt(scaled)
    return Fraction(root + (root * root < scaled), scale)


def round_down(x: Fraction) -> float:
    """Return the largest float that is not above x."""
    rounded = float(x)
    return rounded if Fraction(rounded) <= x else nextafter(rounded, 0)


def round_up(x: Fraction) -> float:
    """Return the smallest float that is not below x. If x is larger than all finite floats, return ∞."""
    try:
        rounded = float(x)
    except OverflowError:
        return inf
    return rounded if Fraction(rounded) >= x else nextafter(rounded, inf)
