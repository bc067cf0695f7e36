"""Which cut hides, but for a chance of δ, every cell that one unit alone may have filled.

Only non-empty cells are looked at, so that a cell that appears tells that somebody filled it. A unit
that newly fills cells with c_1 … c_k counts shows with probability 1 − Π (1 − q(c_j)), where
q(c) = Pr[c + X >= T]; the cut T is the smallest whole number whose worst such chance is at most δ.

Source  Korolova, Kenthapadi, Mishra & Ntoulas, WWW 2009; Bun, Nissim & Stemmer, ITCS 2016.
Differs geometric noise, and the exact chance over all that the bound allows, in place of a tail bound.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import inf, nextafter

from workbench.noise.exact import Interval, Real
from workbench.noise.laws import two_sided
from workbench.table import Bound


def worst_fillings(bound: Bound) -> list[dict[int, int]]:
    """The ways to fill new cells among which the worst is: how many cells get which count.

    g(c) = −log(1 − q(c)) is convex on c >= 1, since geometric noise is log-concave. So with exactly k
    cells it is worst to give as many as possible linf, one what remains, and the others one count.
    One cell more takes a count from a cell of r, which changes Σ g by g(1) − (g(r) − g(r−1)); r runs
    from linf down to 2, again and again. Within such a round the changes grow, and all rounds change
    Σ g alike: the worst k is the least, the most, or where the first or the last whole round ends.
    """
    most = max(1, int(bound.linf))
    total = max(1, min(int(bound.l1), int(bound.l0) * most))
    least, cells, lap = -(-total // most), min(int(bound.l0), total), max(most - 1, 1)
    rounds = least + (total - least) % lap, cells - (cells - total) % lap
    ways = []
    for k in {least, cells, *(k for k in rounds if least <= k <= cells)}:
        full, rest = divmod(total - k, lap)
        ones = k - full - (rest > 0)
        ways.append(
            {1: ones, **({1 + rest: 1} if rest else {}), **({most: full} if full else {})}
        )
    return ways


def upper_tail(x: int, alpha: Real, bits: int) -> Interval:
    """Pr[X >= x] for two-sided geometric X."""
    a, one = alpha(bits), Interval.of(1, bits)
    if x > 0:
        return a**x / (one + a)
    return one - a ** (1 - x) / (one + a)


def failure_probability(cut: int, bound: Bound, alpha: Real, bits: int) -> Interval:
    """The chance that a cell which only one unit fills is released, for the worst such unit."""
    one, worst = Interval.of(1, bits), Interval(0, 0, bits)
    for cells in worst_fillings(bound):
        hidden = one
        for count, k in cells.items():
            hidden = hidden * (one - upper_tail(cut - count, alpha, bits)) ** k
        shown = one - hidden
        worst = Interval(max(worst.lo, shown.lo), max(worst.hi, shown.hi), bits)
    return worst


@lru_cache(256)
def smallest_threshold(decay: Fraction, delta: float, bound: Bound) -> tuple[int, float]:
    """The smallest cut T >= 1 whose failure is at most δ, and that failure rounded up.

    A comparison asks for further precision until it is certain: α is transcendental, so the failure
    never equals a float.
    """
    alpha, exact = two_sided(decay).alpha, Fraction(delta)

    def spent(cut: int) -> Fraction | None:
        bits = 192
        while True:
            chance = failure_probability(cut, bound, alpha, bits)
            if chance.hi <= exact * 2**bits:
                return Fraction(chance.hi, 2**bits)
            if chance.lo > exact * 2**bits:
                return None
            bits *= 2

    high = 1
    while spent(high) is None:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if spent(middle) is None else (low, middle)
    paid = spent(high)
    near = float(paid)
    return high, near if Fraction(near) >= paid else nextafter(near, inf)
