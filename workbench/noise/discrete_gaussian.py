"""The exact discrete Gaussian distribution, its sums, and noise drawn from it.

Gaussian sums. Every product is rounded outwards, so the computed interval always contains the sum. For wide
distributions, which are not tabulated, Poisson's summation formula gives the sums.

Discrete Gaussian. Up to σ = 512, one table covers both signs (`laws.Inversion`). For a larger σ, the
sampler divides the values x >= 0 into blocks of 2^s values. It draws a block by inversion, with probability
∝ exp(−rate·left²) for the first value `left` of the block, and a uniform place x in it. It accepts x with
probability exp(−rate·(x² − left²)) and otherwise, about once in a thousand draws, starts again. A fair coin
decides the sign, and −0 is drawn again. Blocks beyond the table have probability 2^-64. The sampler
proposes them from a geometric distribution that is tangent to the Gaussian.

Source  Canonne, Kamath & Steinke, NeurIPS 2020, for the distribution and its privacy. The sampler is ours.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, cached_property, lru_cache
from math import ceil, exp, hypot, isqrt, log2, sqrt
from typing import Any, NamedTuple

import numpy as np

from workbench.noise import kernels
from workbench.noise.arguments import check_counts, check_grid, gaussian_rate, grid_steps
from workbench.noise.law import GAUSSIAN, Law
from workbench.noise.laws import Geometric, Inversion, TwoSided, accept
from workbench.noise.source import Source
from workbench.privacy import ADD_REMOVE, ZCDP, Receipt
from workbench.privacy.enclosures import Interval, exp_neg, root_above
from workbench.randomness import Words, substream
from workbench.value import Bool, Int, Num, sealed

# Gaussian sums

_GUARD = 64
_SMALL = (
    2**32
)  # guard units: smaller terms, which rounding up hardly lets shrink, are bounded by a series
_NARROW = Fraction(1, 200)  # rates above it (σ < 10) are summed, others transformed


@lru_cache(8)  # some thousand numbers each
def upper_sums(
    rate: Fraction, start: int, step: int, count: int, bits: int, rising: bool = False
) -> list[Interval]:
    """Compute intervals that contain the sums Σ_{i >= j} h_i for j = 0 … `count`, where h_i =
    exp(−rate·(x_i² − start²)).

    Here x_i = start + i·step. If `rising` is set, each h_i is also multiplied by x_i + step − 1.
    Each term takes two products: h_{i+1} = h_i·r_i, r_{i+1} = r_i·q.
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
    """Compute an interval that contains Σ exp(−rate·x²), summed over all integers x. The sum equals
    √(π/rate)·(1 + 2·Σ_{k>=1} exp(−π²k²/rate)).
    """
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
    """Return π = 16·arctan(1/5) − 4·arctan(1/239) (Machin), in integer units of 2^-bits."""
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


# Discrete gaussian

WIDE = 512  # σ up to which one table holds every value
_REACH = 9.6  # beyond so many σ lies less than 2^-64
_COIN = 2**16
_EXTRA = 32  # bits that quotients of sums are computed with beyond those asked for


class HalfGaussian:
    """Distribution Pr[X = x] ∝ exp(−rate·x²) of integers x >= `start`, which are grouped in blocks
    of 2^shift values.

    If `rising` is set, the probability of a block is also multiplied by its last value. This is for
    callers that sample in proportion to x.
    """

    def __init__(self, rate: Fraction, start: int, rising: bool = False):
        self.rate = rate
        self.start = start
        self.rising = rising
        sigma = sqrt(1 / (2 * rate))
        self.shift = max(0, ceil(log2(sigma / WIDE)))
        self.width = 1 << self.shift
        reach = _REACH * sigma
        reach = reach * (reach / (start + hypot(start, reach)))  # √(start² + reach²) − start
        self.count = max(2, ceil(reach / self.width))
        self.end = start + self.count * self.width
        slowest = 2 * float(rate) * self.end * self.width
        self.mass = cache(self._mass)
        self.sure = max(0, int(_COIN * exp(-slowest)) - 1)  # least chance to stay, or less

    @cached_property
    def table(self) -> Inversion:
        """Return the table from which blocks are drawn."""
        outcomes = np.arange(self.count + 1)
        return Inversion(self._boundaries, outcomes, tails=(self.count,))

    def _sums(self, bits: int) -> list[Interval]:
        return upper_sums(self.rate, self.start, self.width, self.count, bits, self.rising)

    def _mass(self, bits: int) -> Interval:
        """Enclose Σ exp(−rate·(x² − start²)). Each x has the weight of its block in `blocks`."""
        total = self._sums(bits)[0]
        return Interval(total.lo << self.shift, total.hi << self.shift, bits)

    def _boundaries(self, bits: int) -> list[Interval]:
        """Enclose Pr[block < j] for j = 1 … count."""
        sums = self._sums(bits + _EXTRA)
        one = 1 << bits
        boundaries = []
        for rest in sums[1:]:
            beyond = rest / sums[0]
            boundaries.append(
                Interval(one - -(-beyond.hi >> _EXTRA), one - (beyond.lo >> _EXTRA), bits)
            )
        return boundaries

    def sample(self, n: int, words: Words) -> Int[np.ndarray, " n"]:
        """Draw n values. The weight of `rising` is left out."""
        x, stays = self.propose(n, words)
        again = np.flatnonzero(~stays)
        if again.size:
            x[again] = self.sample(again.size, words)
        return x

    def propose(
        self, n: int, words: Words
    ) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
        """Propose n uniformly random places x in blocks, and accept each proposal with probability
        exp(−rate·(x² − left²)), where `left` begins the block.

        The first bits of a random word give the place. The next 16 bits usually decide whether the
        place is accepted.
        """
        x = np.zeros(n, np.int64)
        where, block = self.table.add(x, substream(words))
        far = where[block == self.count]
        for i in far:  # as rare as 2^-64
            x[i] = self.count + self._blocks_beyond(words)
        stays = np.ones(n, bool)
        if not self.shift:
            x += self.start
            return x, stays
        drawn = substream(words)(n)
        unsure = np.empty(n, np.int32)
        unsure = unsure[: kernels.place(x, drawn, self.shift, self.start, self.sure, unsure)]
        for some, settled in ((unsure, self.sure), (far, 0)):
            places = (drawn[some] >> np.uint64(64 - self.shift)).view(np.int64)
            stays[some] = self._settle(x[some], places, settled, words)
        return x, stays

    def _settle(
        self, x: Any, places: Any, settled: int, words: Words
    ) -> Bool[np.ndarray, " n"]:
        """Toss second coins for places that a first coin with probability settled/2^16 did not accept.

        Both coins together accept a place with exactly its probability.
        """
        sure = Fraction(settled, _COIN)

        def exact(i: int, bits: int) -> Interval:
            place = int(places[i])
            stays = exp_neg(self.rate * place * (2 * int(x[i]) - place), bits)
            return (stays - Interval.of(sure, bits)) / Interval.of(1 - sure, bits)

        chance = np.exp(-float(self.rate) * places * (2.0 * x - places))
        return accept((chance - float(sure)) / float(1 - sure), exact, words)

    def _blocks_beyond(self, words: Words) -> int:
        """Draw the number of blocks between the end of the table and a value beyond it.

        With x = end + k·width and t = k·width/(end + width − 1), 1 + t <= e^t, and rate·(x² − end²) is
        2·rate·end·width·k + rate·(k·width)². The proposal is geometric. It is accepted with a
        probability that makes up for the rest of the weight.
        """
        slope = Fraction(self.width, self.end + self.width - 1) if self.rising else Fraction(0)
        steps = _steps(2 * self.rate * self.end * self.width - slope)
        while True:
            k = int(steps.sample(1, words)[0])
            t = k * slope
            loss = t + self.rate * (k * self.width) ** 2

            def exact(i: int, bits: int, t: Any = t, loss: Any = loss) -> Interval:
                return Interval.of(1 + t, bits) * exp_neg(loss, bits)

            chance = np.array([float(1 + t) * exp(-float(loss))])
            if accept(chance, exact, words)[0]:
                return k


class DiscreteGaussian(TwoSided):
    """Distribution Pr[X = x] ∝ exp(−rate·x²) over all integers, for a rational rate = 1/(2σ²)."""

    def __init__(self, rate: Fraction):
        self.rate = rate
        self.half = HalfGaussian(rate, 0)
        if self.half.shift:
            return
        self.tail = tail = self.half.count

        def boundaries(bits: int) -> list[Interval]:  # of ≥T, T−1, …, 1, 0, −1, …, −(T−1), ≤−T
            sums = upper_sums(rate, 0, 1, tail, bits + _EXTRA)
            total = sums[0] + sums[1]
            one = 1 << bits
            upper = []
            for rest in reversed(sums[1:]):
                above = rest / total
                upper.append(Interval(above.lo >> _EXTRA, -(-above.hi >> _EXTRA), bits))
            return upper + [Interval(one - p.hi, one - p.lo, bits) for p in reversed(upper)]

        self.inverse = Inversion(boundaries, np.arange(tail, -tail - 1, -1), (tail, -tail))

    def _beyond(self, n: int, words: Words) -> Int[np.ndarray, " n"]:
        """Draw how far values lie beyond the table. Fewer than one in 2^64 do."""
        return half_gaussian(self.rate, self.tail).sample(n, words) - self.tail

    def _wide(self, n: int, words: Words) -> Int[np.ndarray, " n"]:
        """Draw a magnitude and a fair sign. −0 is drawn again, so that 0 is not counted twice."""
        x = self.half.sample(n, words)
        signs = substream(words)(-(-n // 64))
        zeros = np.flatnonzero(x == 0)
        again = zeros[signs[zeros >> 6] >> (zeros & 63).astype(np.uint64) & np.uint64(1) == 1]
        kernels.flip(x, signs)
        if again.size:
            x[again] = self._wide(again.size, words)
        return x


@lru_cache(64)
def discrete_gaussian(rate: Fraction) -> DiscreteGaussian:
    """Return the distribution with this rate. Repeated calls return the same object."""
    return DiscreteGaussian(rate)


half_gaussian = lru_cache(64)(HalfGaussian)  # tables of a law and a start, made once


@lru_cache(64)
def _steps(decay: Fraction) -> Geometric:
    return Geometric(lru_cache(None)(lambda bits: exp_neg(decay, bits)))


# Gaussian


class GaussianBlock(NamedTuple):
    """Consecutive cells that get Gaussian noise from one distribution. Their l2 sensitivity is the square root
    of `l2_squared`, and their noise costs `rho` in zCDP.
    """

    size: int
    l2_squared: Fraction
    rho: float

    @property
    def moved(self) -> Fraction:
        """Sensitivity of the block to one unit, as `Source.add` expects it."""
        return self.l2_squared

    @property
    def law(self) -> Law:
        """Distribution of the noise on each cell."""
        return Law(GAUSSIAN, gaussian_rate(self.l2_squared, self.rho))

    def receipt(self, source: Source, name: str) -> Receipt:
        """Return the receipt for measuring the block, which is the record of its privacy cost."""
        return source.receipt(name, ZCDP(self.rho))


class PortionedGaussian:
    """Discrete Gaussian noise on a long vector that the caller passes in portions. The privacy cost is that of
    a single measurement.

    Pass each value exactly once. `l2_squared` bounds how much one unit changes all portions together.

    Parameters
    ----------
    l2_squared : Fraction or number
        Square of the largest change of the values in all portions together by one unit, in the l2 norm.
    rho : number
        Cost of all portions together.
    relation : str
        Neighbouring relation of that change. Default adding or removing one unit.
    rng : Generator, optional
        Seeded generator, which gives the same noise again. Use None (the default) for noise that you publish.

    Raises
    ------
    ValueError
        If an argument is not a finite number > 0, or noise would not fit 64-bit counts.
    """

    def __init__(
        self,
        *,
        l2_squared: Fraction | float,
        rho: float,
        relation: str = ADD_REMOVE,
        rng: np.random.Generator | None = None,
    ):
        self._law = discrete_gaussian(gaussian_rate(l2_squared, rho))
        self._source = Source.of(rng)
        self._l2_squared = l2_squared
        self.receipt = self._source.receipt(GAUSSIAN, ZCDP(rho), relation)

    def __call__(self, portion: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Return the noisy values of one portion."""
        check_counts(portion)
        noisy = np.array(portion, np.int64)
        self._source.add(self._law, noisy, moved=self._l2_squared)
        return sealed(noisy)


def gaussian(
    values: Int[np.ndarray, " n"],
    *,
    l2_squared: Fraction | float,
    rho: float,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " n"], Receipt]:
    """Add discrete Gaussian noise, Pr[X = x] ∝ exp(−x²·ρ/l2²). This is ρ-zCDP at l2-sensitivity l2.

    Source: Canonne, Kamath & Steinke, NeurIPS 2020. docs/accounting.md has the proof. The noise is exact (see
    `noise.discrete_gaussian`).

    Parameters
    ----------
    values : int[n]
        Exact values, to which noise is added.
    l2_squared : Fraction or number
        Square of the largest change of all values together by one unit, in the l2 norm.
    rho : number
        Privacy loss ρ for the release of all values together.
    rng : Generator, optional
        Seeded generator, which gives the same noise again. Use None (the default) for noise that you publish.

    Returns
    -------
    int64[n]
        Noisy values.
    Receipt
        Receipt that records their privacy cost.

    Raises
    ------
    ValueError
        If the values are not integers, an argument is not a finite number > 0, or noise would not fit
        64-bit counts.
    """
    add_to = PortionedGaussian(l2_squared=l2_squared, rho=rho, rng=rng)
    return add_to(values), add_to.receipt


def gaussian_on_grid(
    values: Num[np.ndarray, " n"],
    *,
    l2_squared: Fraction,
    rho: float,
    grid: float,
    rng: np.random.Generator | None = None,
) -> tuple[Num[np.ndarray, " n"], Receipt]:
    """Add discrete Gaussian noise on the multiples of `grid`, which is ρ-zCDP.

    The function first rounds each value to the grid, which moves it by at most half a step. This
    raises the l2 sensitivity of n values by at most √n steps.

    Parameters
    ----------
    values : float[n]
        Exact values, to which noise is added.
    l2_squared : Fraction or number
        Square of the largest change by one unit, in the l2 norm and in the units of the values.
    rho : number
        Privacy loss ρ for the release of all values together.
    grid : float
        Step of the grid, a power of two. It must be public.
    rng : Generator, optional
        Seeded generator, which gives the same noise again. Use None (the default) for noise that you publish.

    Returns
    -------
    float64[n]
        Noisy values, which are multiples of the grid.
    Receipt
        Receipt that records their privacy cost.

    Raises
    ------
    ValueError
        If the grid is not a power of two, or for the same reasons as `gaussian`.
    """
    check_grid(grid)
    steps = grid_steps(np.asarray(values), grid)
    moved = l2_of_sum(l2_squared / Fraction(grid) ** 2, Fraction(len(steps)))
    noisy, receipt = gaussian(steps, l2_squared=moved, rho=rho, rng=rng)
    return noisy * grid, receipt


def l2_of_sum(a_squared: Fraction, b_squared: Fraction) -> Fraction:
    """Return an upper bound on (a + b)², computed from a² and b². It is rounded up.

    Parameters
    ----------
    a_squared, b_squared : Fraction
        Numbers >= 0.

    Returns
    -------
    Fraction
        An upper bound on (a + b)².
    """
    return a_squared + b_squared + 2 * root_above(a_squared * b_squared)
