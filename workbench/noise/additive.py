"""Geometric and Laplace noise on vectors, and the ρ (privacy loss in zCDP) that geometric noise costs.

The probability that two-sided geometric noise is the integer x is proportional to exp(−a·|x|), where a is
called the decay. Suppose that one unit, for example a person, changes a value by k. Then a release of the
value with this noise is ρ-zCDP with ρ = f(k), where

    f(k) = a·(k − 2α·(1 − α^k)/(1 − α²)) and α = exp(−a).

The number f(k) is the Rényi divergence of order 1 between the two distributions of the noisy value. The bound
also holds for every other order (see docs/accounting.md). If several values get independent noise, their ρ add
up. Suppose that a unit changes all values by at most `l1` in total and each value by at most `linf`. Because f
is convex and f(0) = 0, the following change is the most expensive. As many values as possible change by `linf`,
and one value changes by the remainder.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from workbench.noise.arguments import check_counts, check_grid, decay, grid_steps
from workbench.noise.discrete_gaussian import DiscreteGaussian, discrete_gaussian
from workbench.noise.empty_cells import EmptyCell, GaussianCell, gaussian_cell
from workbench.noise.law import GAUSSIAN, Law, geometric_variance
from workbench.noise.laws import TwoSidedGeometric, two_sided
from workbench.noise.source import Source
from workbench.privacy import DP, Receipt
from workbench.privacy.enclosures import exp_neg, round_up
from workbench.value import Int, Num, sealed

# Structure

_BITS = 320  # decays are at least 2^-36


def geometric_rho(
    decay: Fraction, l1: float | Fraction, linf: float | Fraction | None = None
) -> float:
    """Return the privacy loss ρ of geometric noise, if one unit (for example a person) changes each value by
    at most `linf`, and all values by at most `l1` in total.

    Parameters
    ----------
    decay : number
        Decay of the noise, which is ε/l1. Noise x has a probability proportional to exp(−decay·|x|).
    l1 : number
        Largest total change of the values that one unit (for example a person) can cause.
    linf : number, optional
        Largest change of any single value that one unit can cause. Default `l1`.

    Returns
    -------
    float
        Privacy loss ρ, rounded up.
    """
    l1 = Fraction(l1)
    return _geometric_rho(decay, l1, l1 if linf is None else min(Fraction(linf), l1))


@lru_cache(1024)
def _geometric_rho(decay: Fraction, l1: Fraction, linf: Fraction) -> float:
    moved, rest = divmod(l1, linf)
    return round_up(moved * _shifted(decay, linf) + _shifted(decay, rest))


def _shifted(decay: Fraction, k: Fraction) -> Fraction:
    """Return the ρ, rounded up, that the noise on one value costs if a unit changes the value by k."""
    alpha = exp_neg(decay, _BITS).below
    power = exp_neg(decay * k, _BITS).above
    return decay * (k - 2 * alpha * (1 - power) / (1 - alpha**2))


def choice_rho(epsilon: float) -> float:
    """Return the privacy loss ρ of an exponential mechanism with privacy loss ε. It is the smaller of ε²/8
    and ε, rounded up.

    Source: Cesar & Rogers, ALT 2021. Other mechanisms with the same ε may need a larger ρ.
    """
    exact = Fraction(epsilon)
    return round_up(min(exact**2 / 8, exact))


# Additive


class NoisyValues(NamedTuple):
    """Noisy values, the variance of their noise, and a receipt that records the privacy cost."""

    values: Num[np.ndarray, " n"]
    variance: float
    receipt: Receipt


class PortionedGeometric:
    """Geometric noise on a long vector that you pass in portions. Create one object for the whole vector, and
    call this object with each portion. The privacy cost is the same as if you passed the vector at once.

    Pass each value of the vector exactly once. The attribute `receipt` records the privacy cost of all portions
    together.

    Parameters
    ----------
    l1 : number
        Largest total change that one unit (for example a person) can cause in the values of all portions.
    epsilon : number
        Privacy loss ε for the release of all portions together.
    linf : number, optional
        Largest change of any single value that one unit can cause. Default `l1`. The receipt records the cost
        as an ε and as a ρ. A smaller `linf` lowers this ρ, but not the ε.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.

    Raises
    ------
    ValueError
        If ε or l1 is not a finite number > 0, or if ε/l1 is below 2⁻³⁶.
    """

    def __init__(
        self,
        *,
        l1: float | Fraction,
        epsilon: float,
        linf: float | Fraction | None = None,
        rng: np.random.Generator | None = None,
    ):
        source = Source.of(rng)
        ratio = decay(l1, epsilon)
        self._law = two_sided(ratio)
        self._source = source
        self._l1 = l1
        rho = geometric_rho(ratio, l1, linf)
        self.receipt = source.receipt("geometric", DP(epsilon), rho=rho)

    def __call__(self, portion: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Return the values of one portion with noise added. The values must be integers."""
        check_counts(portion)
        noisy = np.array(portion, np.int64)
        self._source.add(self._law, noisy, moved=self._l1)
        return sealed(noisy)


def geometric(
    values: Int[np.ndarray, " n"],
    *,
    l1: float | Fraction,
    epsilon: float,
    linf: float | Fraction | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " n"], Receipt]:
    """Add two-sided geometric noise to integers. If one unit (for example a person) changes the values by at
    most `l1` in total, the result is ε-differentially private.

    The probability that the noise is the integer x is proportional to exp(−|x|·ε/l1).

    Source: Ghosh, Roughgarden & Sundararajan, STOC 2009. The noise has exactly this distribution, without
    rounding errors (see `noise.laws`).

    Parameters
    ----------
    values : int[n]
        Exact values, to which noise is added.
    l1 : number
        Largest total change of the values that one unit (for example a person) can cause.
    epsilon : number
        Privacy loss ε for the release of all values together.
    linf : number, optional
        Largest change of any single value that one unit can cause. Default `l1`. The receipt records the cost
        as an ε and as a ρ. A smaller `linf` lowers this ρ, but not the ε.
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
        If a value is not an integer, if ε or l1 is not a finite number > 0, or if ε/l1 is below 2⁻³⁶.
    """
    add_to = PortionedGeometric(l1=l1, epsilon=epsilon, linf=linf, rng=rng)
    return add_to(values), add_to.receipt


def laplace(
    values: Num[np.ndarray, " n"],
    *,
    l1: float | Fraction,
    epsilon: float,
    grid: float,
    linf: float | Fraction | None = None,
    l0: int | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[Num[np.ndarray, " n"], Receipt]:
    """Round numbers to multiples of a step, and add discrete Laplace noise, which is also a multiple of this
    step. If one unit (for example a person) changes the values by at most `l1` in total, the result is
    ε-differentially private.

    The step is the argument `grid`. Suppose that one unit changes `l0` values by `l1` in total. After rounding,
    the total change is at most l1 + l0·grid, and the function adds enough noise for this larger change. If the
    values are integers and 1 is a multiple of the step, rounding changes nothing, so the total change is still
    at most l1. Laplace noise in floating point would not be safe, because the last digits of the noisy numbers
    can reveal the data (Mironov, CCS 2012).

    Parameters
    ----------
    values : float[n] or int[n]
        Exact values, to which noise is added.
    l1 : number
        Largest total change of the values that one unit (for example a person) can cause.
    epsilon : number
        Privacy loss ε for the release of all values together.
    grid : float
        Step: every noisy value is a multiple of this number. The step must be a power of two and public.
    linf : number, optional
        Largest change of any single value that one unit can cause. Default `l1`. The receipt records the cost
        as an ε and as a ρ. A smaller `linf` lowers this ρ, but not the ε.
    l0 : int, optional
        Largest number of values that one unit changes. Default: all values.
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
        If `grid` is not a power of two, if ε or l1 is not a finite number > 0, or if ε/l1 is too small for
        64-bit numbers.
    """
    check_grid(grid)
    values = np.asarray(values)
    whole = values.dtype.kind in "iub" and grid <= 1
    if whole:
        steps_per_count = round(1 / grid)
        largest = 2**62 // steps_per_count
        steps = np.clip(values.astype(np.int64), -largest, largest) * steps_per_count
        rounded = 0
    else:
        steps = grid_steps(values, grid)
        rounded = values.size if l0 is None else l0
    moved = Fraction(l1) / Fraction(grid) + rounded
    most = None if linf is None else Fraction(linf) / Fraction(grid) + (rounded > 0)
    source = Source.of(rng)
    ratio = decay(moved, epsilon)
    source.add(two_sided(ratio), steps, moved=moved)
    rho = geometric_rho(ratio, moved, most)
    return steps * grid, source.receipt("laplace", DP(epsilon), rho=rho)


def add_noise(
    values: Int[np.ndarray, " n"],
    *,
    l1: float | Fraction,
    epsilon: float,
    law: str,
    linf: float | Fraction | None = None,
    rng: np.random.Generator | None = None,
) -> NoisyValues:
    """Add geometric or Laplace noise to integers. If one unit (for example a person) changes the values by at
    most `l1` in total, the result is ε-differentially private.

    Parameters
    ----------
    values : int[n]
        Exact values, to which noise is added.
    l1 : number
        Largest total change of the values that one unit (for example a person) can cause.
    epsilon : number
        Privacy loss ε for the release of all values together.
    law : "geometric" or "laplace"
        Distribution of the noise. Laplace noise is a multiple of a step. The step is a power of two, which is
        about a thousandth of the scale l1/ε. The step is at least 1/512 and at most 1.
    linf : number, optional
        Largest change of any single value that one unit can cause. Default `l1`. The receipt records the cost
        as an ε and as a ρ. A smaller `linf` lowers this ρ, but not the ε.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.

    Returns
    -------
    NoisyValues
        Noisy values, the variance of their noise, and a receipt that records the privacy cost.

    Raises
    ------
    ValueError
        If the values are not integers although `law` is "geometric", if ε or l1 is not a finite number > 0, or
        if ε/l1 is below 2⁻³⁶.
    """
    if law == "geometric":
        noisy, receipt = geometric(values, l1=l1, epsilon=epsilon, linf=linf, rng=rng)
    else:
        grid = _laplace_grid(l1, epsilon)
        noisy, receipt = laplace(values, l1=l1, epsilon=epsilon, grid=grid, linf=linf, rng=rng)
    return NoisyValues(noisy, variance(l1, epsilon, law), receipt)


def variance(l1: float | Fraction, epsilon: float, law: str) -> float:
    """Return the variance of the noise that `add_noise` adds to each value.

    The variance of geometric noise is 2α/(1−α)², where α = exp(−ε/l1). Laplace noise is a multiple of a step s.
    The variance of Laplace noise is s²·2α/(1−α)², where α = exp(−s·ε/l1).

    Parameters
    ----------
    l1, epsilon, law : number, number and str
        The same as for `add_noise`. `l1` is the largest total change of the values that one unit (for example a
        person) can cause. `epsilon` is the privacy loss ε. `law` is the distribution of the noise, "geometric"
        or "laplace".

    Returns
    -------
    float
        Variance of the noise, in the squared unit of the values.

    Raises
    ------
    ValueError
        If ε or l1 is not a finite number > 0, or if ε/l1 is below 2⁻³⁶.
    """
    grid = 1.0 if law == "geometric" else _laplace_grid(l1, epsilon)
    ratio = decay(Fraction(l1) / Fraction(grid), epsilon)
    return grid**2 * geometric_variance(float(ratio))


def _laplace_grid(l1: float | Fraction, epsilon: float) -> float:
    """Return the step of the grid for Laplace noise: a power of two, which is about a thousandth of the scale
    l1/ε, but at most 1 and at least 1/512.
    """
    ratio = decay(l1, epsilon)
    log_scale = ratio.denominator.bit_length() - ratio.numerator.bit_length()
    return 2.0 ** max(-9, min(0, log_scale - 10))


# Kinds


def sampler(law: Law) -> TwoSidedGeometric | DiscreteGaussian:
    """Return an object that draws noise from a distribution. The tables of the object are computed once and
    kept for later calls.

    Parameters
    ----------
    law : Law
        Distribution of the noise. The rate of this distribution must be an exact fraction.

    Returns
    -------
    TwoSidedGeometric or DiscreteGaussian
        Object with a method `add`, which adds noise to an array.
    """
    return discrete_gaussian(law.rate) if law.kind == GAUSSIAN else two_sided(law.rate)


@lru_cache(256)
def empty_cell(
    law: Law, theta: float, sides: int, tau: float = 0.0, above: float | None = None
) -> EmptyCell | GaussianCell:
    """Return the distribution of the noisy value of one empty cell after two steps: a filter drops small
    values, and the remaining values are sampled at random. This distribution is public, because an empty cell
    contains no data.

    Parameters
    ----------
    law : Law
        Distribution of the noise. The rate of this distribution must be an exact fraction.
    theta : number
        Threshold θ of the filter, as a number of records. With `sides` = 1, the filter drops cells with a noisy
        value below θ. With `sides` = 2, it drops cells if the absolute value of the noisy value is below θ.
    sides : int
        With 2, cells with large negative noisy values also pass the filter. With 1, only cells with values
        of at least θ pass.
    tau : number
        Sampling threshold τ, as a number of records. If a cell with the noisy value v passes the filter, the
        cell is kept with probability min(|v|/τ, 1). Default 0: all cells that pass the filter are kept.
    above : number
        Use this argument if the cells were already sampled once, with the larger threshold `above`. The result
        is then the distribution for a cell that this first sample did not contain. Default None: the cells were
        not sampled before.

    Returns
    -------
    EmptyCell or GaussianCell
        Distribution of a cell that survives, which means that the cell passes the filter and the sampling.
        The attribute `chance` is the probability that a cell survives. The method `survivors` draws which of
        many cells survive.
    """
    if law.kind == GAUSSIAN:
        return gaussian_cell(law.rate, theta, sides, tau, above)
    return EmptyCell(two_sided(law.rate).alpha, theta, sides, tau, above)
