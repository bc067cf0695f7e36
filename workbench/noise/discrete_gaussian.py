"""Exact draws of noise from the discrete Gaussian distribution, and exact bounds on sums of its
probabilities.

Sums of Gaussian terms. For each sum, the code computes an interval that contains the sum. The lower end of the
interval is rounded down, and the upper end is rounded up. For wide distributions, the code uses Poisson's
summation formula.

Drawing. Up to a standard deviation of σ = 512, one table covers all likely values of both signs (see
`laws.Inversion`). For a larger σ, the sampler divides the values x >= 0 into blocks of 2^s values. First, the
sampler draws a block. If `left` is the first value of a block, the probability of the block is proportional to
exp(−rate·left²). Then the sampler draws a uniform value x in the block, and accepts x with probability
exp(−rate·(x² − left²)). If the sampler does not accept x, it starts again. This happens about once in a
thousand draws. Finally, a fair coin decides the sign. If the result is 0 with a negative sign, the sampler
draws again, so that 0 is not counted twice. Blocks beyond the table have a probability of about 2^-64. The
sampler proposes such blocks from a geometric distribution.

Source  Canonne, Kamath & Steinke, NeurIPS 2020, for the distribution and its privacy. The sampler is our own.
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
    """Return intervals that contain the sums of all terms h_i with i >= j, for j = 0 … `count`. The terms are
    h_i = exp(−rate·(x_i² − start²)) with x_i = start + i·step.

    If `rising` is true, each term is also multiplied by x_i + step − 1. The code computes each term from the
    term before with two products: h_{i+1} = h_i·r_i and r_{i+1} = r_i·q, where q does not depend on i.
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
    """Return an interval that contains the sum of exp(−rate·x²) over all integers x.

    By Poisson's formula, the sum equals √(π/rate)·(1 + 2·Σ_{k>=1} exp(−π²k²/rate)), which is used for small
    rates.
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
    """Return an interval that contains π, by Machin's formula π = 16·arctan(1/5) − 4·arctan(1/239)."""
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
    """Sampler of the discrete Gaussian distribution, restricted to integers x >= `start`. The probabilities
    are Pr[X = x] ∝ exp(−rate·x²). The values are grouped into blocks of 2^shift values.

    If `rising` is true, the probability of a block is also multiplied by its last value. Callers use this
    option to sample values in proportion to their size.
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
        """Table from which blocks are drawn."""
        outcomes = np.arange(self.count + 1)
        return Inversion(self._boundaries, outcomes, tails=(self.count,))

    def _sums(self, bits: int) -> list[Interval]:
        return upper_sums(self.rate, self.start, self.width, self.count, bits, self.rising)

    def _mass(self, bits: int) -> Interval:
        """Return an interval that contains the sum of the weights of all values x, where each x gets the
        weight of the first value in its block.
        """
        total = self._sums(bits)[0]
        return Interval(total.lo << self.shift, total.hi << self.shift, bits)

    def _boundaries(self, bits: int) -> list[Interval]:
        """Return intervals that contain the probabilities that the number of the drawn block is below j, for
        j = 1 … count.
        """
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
        """Draw n values from the distribution. Use this method only if `rising` is false."""
        x, stays = self.propose(n, words)
        again = np.flatnonzero(~stays)
        if again.size:
            x[again] = self.sample(again.size, words)
        return x

    def propose(
        self, n: int, words: Words
    ) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
        """Draw n blocks, and a uniformly random value x in each block. Return the values, and a mask of those
        that are accepted.

        The probability of acceptance is exp(−rate·(x² − left²)), where `left` is the first value of the
        block.

        The first bits of a random word give the position in the block. Its last 16 bits usually decide
        whether the value is accepted.
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
        """Toss a second coin for each value that a first coin did not accept. The first coin accepts with
        probability settled/2^16.

        The two coins together accept a value with exactly the right probability.
        """
        sure = Fraction(settled, _COIN)

        def exact(i: int, bits: int) -> Interval:
            place = int(places[i])
            stays = exp_neg(self.rate * place * (2 * int(x[i]) - place), bits)
            return (stays - Interval.of(sure, bits)) / Interval.of(1 - sure, bits)

        chance = np.exp(-float(self.rate) * places * (2.0 * x - places))
        return accept((chance - float(sure)) / float(1 - sure), exact, words)

    def _blocks_beyond(self, words: Words) -> int:
        """Draw a block beyond the end of the table, and return how many blocks it is beyond the end.

        Block k begins at x = end + k·width, and rate·(x² − end²) equals 2·rate·end·width·k + rate·(k·width)².
        The first part is linear in k, so k is proposed from a geometric distribution. The proposal is
        accepted with a probability that accounts for the second part. With `rising`, the weight also has the
        factor 1 + t with t = k·width/(end + width − 1). Because 1 + t <= e^t, and t is linear in k, the
        factor e^t is included in the geometric distribution.
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
    """Sampler of the discrete Gaussian distribution. Its probabilities are Pr[X = x] ∝ exp(−rate·x²) for all
    integers x, where the rate 1/(2σ²) is a fraction.
    """

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
        """Draw how far n values are beyond the end of the table, given that they are beyond the end. Fewer
        than one value in 2^64 is that large.
        """
        return half_gaussian(self.rate, self.tail).sample(n, words) - self.tail

    def _wide(self, n: int, words: Words) -> Int[np.ndarray, " n"]:
        """Draw an absolute value and a fair sign for each value. A 0 with a negative sign is drawn again, so
        that 0 is not counted twice.
        """
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
    """Return the sampler of the discrete Gaussian distribution with this rate. Repeated calls return the same
    object.
    """
    return DiscreteGaussian(rate)


half_gaussian = lru_cache(64)(HalfGaussian)  # tables of a law and a start, made once


@lru_cache(64)
def _steps(decay: Fraction) -> Geometric:
    return Geometric(lru_cache(None)(lambda bits: exp_neg(decay, bits)))


# Gaussian


class GaussianBlock(NamedTuple):
    """Consecutive cells that get Gaussian noise from the same distribution. `size` is the number of cells.
    `l2_squared` is the largest sum of squared changes that one unit, for example a person, can cause in the
    counts of these cells. `rho` is the privacy loss ρ of the noise.
    """

    size: int
    l2_squared: Fraction
    rho: float

    @property
    def moved(self) -> Fraction:
        """Largest sum of squared changes that one unit, for example a person, can cause in the counts of this
        block. This number is the argument `moved` of `Source.add`.
        """
        return self.l2_squared

    @property
    def law(self) -> Law:
        """Distribution of the noise that each cell gets."""
        return Law(GAUSSIAN, gaussian_rate(self.l2_squared, self.rho))

    def receipt(self, source: Source, name: str) -> Receipt:
        """Return the receipt that records the privacy cost of the noise on this block."""
        return source.receipt(name, ZCDP(self.rho))


class PortionedGaussian:
    """Discrete Gaussian noise on a long vector that you pass in portions. Create one object for the whole
    vector, and call this object with each portion. The privacy cost is the same as if you passed the vector at
    once.

    Pass each value of the vector exactly once. The attribute `receipt` records the privacy cost of all portions
    together.

    Parameters
    ----------
    l2_squared : Fraction or number
        Square of the l2 sensitivity: the largest sum of squared changes that one unit (for example a person)
        can cause in the values of all portions.
    rho : number
        Privacy loss ρ for the release of all portions together.
    relation : str
        Kind of change that the noise hides. `l2_squared` must be the sensitivity for this kind of change. By
        default, one unit (for example a person) is added or removed.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.

    Raises
    ------
    ValueError
        If an argument is not a finite number > 0, or if the noise would be too wide for 64-bit counts.
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
        """Return the values of one portion with noise added. The values must be integers."""
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
    """Add discrete Gaussian noise to integers. If one unit (for example a person) changes the values by at
    most √l2_squared in the Euclidean norm, the result is ρ-zCDP. Also return a receipt, which records the
    privacy cost.

    The probability that the noise is the integer x is proportional to exp(−x²·rho/l2_squared).

    Source: Canonne, Kamath & Steinke, NeurIPS 2020. The proof is in docs/accounting.md. The noise has exactly
    this distribution, without rounding errors (see `noise.discrete_gaussian`).

    Parameters
    ----------
    values : int[n]
        Exact values, to which noise is added.
    l2_squared : Fraction or number
        Square of the l2 sensitivity: the largest sum of squared changes that one unit (for example a person)
        can cause in the values.
    rho : number
        Privacy loss ρ for the release of all values together.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.

    Returns
    -------
    int64[n]
        Noisy values.
    Receipt
        Receipt that records the privacy cost.

    Raises
    ------
    ValueError
        If a value is not an integer, if another argument is not a finite number > 0, or if the noise would be
        too wide for 64-bit counts.
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
    """Round numbers to multiples of a step, and add discrete Gaussian noise, which is also a multiple of this
    step. If one unit (for example a person) changes the values by at most √l2_squared in the Euclidean norm,
    the result is ρ-zCDP. Also return a receipt, which records the privacy cost.

    The step is the argument `grid`. Rounding moves a value by at most half a step. So for n values, rounding
    adds at most √n steps to the largest change that one unit can cause, in the Euclidean norm. The function
    adds enough noise for this larger change.

    Parameters
    ----------
    values : float[n]
        Exact values, to which noise is added.
    l2_squared : Fraction or number
        Square of the l2 sensitivity: the largest sum of squared changes that one unit (for example a person)
        can cause in the values.
    rho : number
        Privacy loss ρ for the release of all values together.
    grid : float
        Step: every noisy value is a multiple of this number. The step must be a power of two and public.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.

    Returns
    -------
    float64[n]
        Noisy values, which are multiples of the step.
    Receipt
        Receipt that records the privacy cost.

    Raises
    ------
    ValueError
        If the step is not a power of two, if another argument is not a finite number > 0, or if the noise would
        be too wide for 64-bit counts.
    """
    check_grid(grid)
    steps = grid_steps(np.asarray(values), grid)
    moved = l2_of_sum(l2_squared / Fraction(grid) ** 2, Fraction(len(steps)))
    noisy, receipt = gaussian(steps, l2_squared=moved, rho=rho, rng=rng)
    return noisy * grid, receipt


def l2_of_sum(a_squared: Fraction, b_squared: Fraction) -> Fraction:
    """Return (a + b)², computed from a² and b² and rounded up. If two vectors have the Euclidean norms a and
    b, the squared norm of their sum is at most this number.

    Parameters
    ----------
    a_squared, b_squared : Fraction
        The squares a² and b², both at least 0.

    Returns
    -------
    Fraction
        Upper bound on (a + b)².
    """
    return a_squared + b_squared + 2 * root_above(a_squared * b_squared)
