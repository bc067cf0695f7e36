"""Sums of exp(−rate·x²), enclosed to any precision: what boundaries of discrete Gaussian laws are made of.

Every product is rounded outwards, so that a sum is enclosed whatever rounding does. Sums of a wide law
that no table needs follow from Poisson's summation formula.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from workbench.noise.exact import Interval, exp_neg

_GUARD = 64
_SMALL = (
    2**32
)  # guard units: smaller terms, which rounding up hardly lets shrink, are bounded by a series
_NARROW = Fraction(1, 200)  # rates above it (σ < 10) are summed, others transformed


@lru_cache(8)  # some thousand numbers each
def upper_sums(
    rate: Fraction, start: int, step: int, count: int, bits: int, rising: bool = False
) -> list[Interval]:
    """Σ_{i >= j} h_i for j = 0 … `count`, h_i = exp(−rate·(x_i² − start²)), x_i = start + i·step.

    `rising` multiplies h_i by x_i + step − 1. Two products a term: h_{i+1} = h_i·r_i, r_{i+1} = r_i·q.
    """
    guard = bits + _GUARD
    one = 1 << guard
    ratio = exp_neg(rate * (2 * start + step) * step, guard)
    change = exp_neg(2 * rate * step * step, guard)
    term = Interval(one, one, guard)
    lows: list[int] = []
    highs: list[int] = []
    weight = start + step - 1 if rising else 1
    while len(lows) < count or term.hi > _SMALL:
        lows.append(weight * term.lo)
        highs.append(weight * term.hi)
        weight += step if rising else 0
        term = term * ratio
        ratio = ratio * change
    # ratios fall, so that what is left is below a geometric series
    gap = one - ratio.hi
    high = -(-weight * term.hi * one // gap)
    if rising:
        high += -(-step * term.hi * ratio.hi * one // gap**2)
    low = 0
    sums = [Interval(low >> _GUARD, -(-high >> _GUARD), bits)]
    for low_term, high_term in zip(reversed(lows), reversed(highs), strict=True):
        low += low_term
        high += high_term
        sums.append(Interval(low >> _GUARD, -(-high >> _GUARD), bits))
    return sums[::-1][: count + 1]


@lru_cache(64)
def normaliser(rate: Fraction, bits: int) -> Interval:
    """Σ exp(−rate·x²) over all whole x, which is √(π/rate)·(1 + 2·Σ_{k>=1} exp(−π²k²/rate))."""
    if rate > _NARROW:
        from_zero, from_one = upper_sums(rate, 0, 1, 1, bits)
        return from_zero + from_one
    pi = _pi(2 * bits + _GUARD)
    root_low = isqrt(pi.lo * rate.denominator // rate.numerator >> _GUARD)
    root_high = isqrt(-(-pi.hi * rate.denominator // rate.numerator) >> _GUARD) + 1
    # the correction is at most 3·exp(−9/rate) < 3·2^(−12/rate) of it
    correction = -(-3 * root_high >> min(int(12 / rate), root_high.bit_length() + 2))
    return Interval(root_low, root_high + correction, bits)


@lru_cache(16)
def _pi(bits: int) -> Interval:
    """π = 16·arctan(1/5) − 4·arctan(1/239) (Machin), in whole units of 2^-bits."""
    guard = bits + 32

    def arctan_of_inverse(n: int) -> Interval:
        power = (1 << guard) // n
        total = 0
        k = 1
        while power:
            total += power // k if k & 3 == 1 else -(power // k)
            power //= n * n
            k += 2
        return Interval(
            total - k - 2, total + k + 2, guard
        )  # each term is cut by a unit or two

    fifth = arctan_of_inverse(5)
    small = arctan_of_inverse(239)
    low = 16 * fifth.lo - 4 * small.hi
    high = 16 * fifth.hi - 4 * small.lo
    return Interval(low >> 32, -(-high >> 32), bits)
