"""Geometric, Laplace and Gaussian noise on vectors, and its price in zCDP.

Two-sided geometric noise with decay a, on a value that moves by k, is ρ-zCDP for

    f(k) = a·(k − 2α·(1 − α^k)/(1 − α²)), α = exp(−a),

which is the Rényi divergence of order 1. The page on accounting proves that it bounds every order. The ρ of
values with independent noise add up. A unit changes all values by at most `l1` in total and each value by
at most `linf`. Because f is convex and f(0) = 0, the most expensive change moves as many values as possible
by linf, and one value by the remainder.
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
    """Return the ρ that geometric noise costs. One unit changes each value by at most `linf`, and
    all values together by at most `l1`.

    Parameters
    ----------
    decay : number
        Decay of the noise, ε/l1.
    l1 : number
        Largest change of all values together by one unit.
    linf : number, optional
        Largest change of any one value. Default `l1`.

    Returns
    -------
    float
        ρ, rounded up.
    """
    l1 = Fraction(l1)
    return _geometric_rho(decay, l1, l1 if linf is None else min(Fraction(linf), l1))


@lru_cache(1024)
def _geometric_rho(decay: Fraction, l1: Fraction, linf: Fraction) -> float:
    moved, rest = divmod(l1, linf)
    return round_up(moved * _shifted(decay, linf) + _shifted(decay, rest))


def _shifted(decay: Fraction, k: Fraction) -> Fraction:
    """Return f(k), rounded up."""
    alpha = exp_neg(decay, _BITS).below
    power = exp_neg(decay * k, _BITS).above
    return decay * (k - 2 * alpha * (1 - power) / (1 - alpha**2))


def choice_rho(epsilon: float) -> float:
    """Return ε²/8, the cost in ρ of an exponential mechanism that is ε-DP.

    Source: Cesar & Rogers, ALT 2021. Other ε-DP measurements may cost more.
    """
    exact = Fraction(epsilon)
    return round_up(min(exact**2 / 8, exact))


# Additive


class NoisyValues(NamedTuple):
    """Noisy values, the variance of their noise, and a receipt."""

    values: Num[np.ndarray, " n"]
    variance: float
    receipt: Receipt


class PortionedGeometric:
    """Geometric noise on a long vector that the caller passes in portions. The privacy cost is that of a single
    measurement.

    Pass each value exactly once. `l1` bounds how much one unit changes all portions together.

    Parameters
    ----------
    l1 : number
        Largest change of the values in all portions together by one unit, in counts.
    epsilon : number
        Cost of all portions together.
    linf : number, optional
        Largest change of any one value. Default `l1`.
    rng : Generator, optional
        Seeded generator for noise that can be replayed. None to publish.

    Raises
    ------
    ValueError
        For the same reasons as `noise.decay`.
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
        """Return the noisy values of one portion."""
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
    """Add two-sided geometric noise, Pr[X = x] ∝ exp(−|x|·ε/l1). This is ε-DP at l1-sensitivity `l1`.

    Source: Ghosh, Roughgarden & Sundararajan, STOC 2009. The noise is exact (see `noise.laws`).

    Parameters
    ----------
    values : int[n]
        Exact values.
    l1 : number
        Largest change of all values together by one unit, in counts.
    epsilon : number
        Cost of all values together.
    linf : number, optional
        Largest change of any one value by one unit. Default `l1`. The receipt's ρ follows from it.
    rng : Generator, optional
        Seeded generator for noise that can be replayed. None to publish.

    Returns
    -------
    int64[n]
        Noisy values.
    Receipt
        Their cost.

    Raises
    ------
    ValueError
        If the values are not integers, or for the same reasons as `noise.decay`.
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
    """Add discrete Laplace noise on the multiples of `grid`, which is ε-DP.

    The function first rounds the values to the grid. Suppose that one unit changes `l0` values, by
    l1 in total. Rounding can make this change larger, but it stays at most l1 + l0·grid. For
    integers on a grid that divides 1 it stays l1. Rounding the output of a floating-point sampler
    instead would reveal the data (Mironov, CCS 2012).

    Parameters
    ----------
    values : float[n] or int[n]
        Exact values.
    l1 : number
        Largest change of all values together by one unit.
    epsilon : number
        Cost of all values together.
    grid : float
        Public power of two.
    linf : number, optional
        Largest change of any one value by one unit. Default `l1`. The receipt's ρ follows from it.
    l0 : int, optional
        Largest number of values that one unit changes. Default all.
    rng : Generator, optional
        Seeded generator for noise that can be replayed. None to publish.

    Returns
    -------
    float64[n]
        Noisy values, which are multiples of the grid.
    Receipt
        Their cost.

    Raises
    ------
    ValueError
        If `grid` is not a power of two, or for the same reasons as `noise.decay`.
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
    """Add noise from the named distribution to integers, which is ε-DP at sensitivity `l1`.

    Parameters
    ----------
    values : int[n]
        Exact values.
    l1 : number
        Largest change of all values together by one unit, in counts.
    epsilon : number
        Cost of all values together.
    law : "geometric" or "laplace"
        Laplace noise uses a grid of about a thousandth of its scale, but at least 1/512. All integers are
        on this grid.
    linf : number, optional
        Largest change of any one value by one unit. Default `l1`. The receipt's ρ follows from it.
    rng : Generator, optional
        Seeded generator for noise that can be replayed. None to publish.

    Returns
    -------
    NoisyValues
        Noisy values, the variance of their noise, and a receipt.

    Raises
    ------
    ValueError
        If the values are not integers ("geometric"), or for the same reasons as `noise.decay`.
    """
    if law == "geometric":
        noisy, receipt = geometric(values, l1=l1, epsilon=epsilon, linf=linf, rng=rng)
    else:
        grid = _laplace_grid(l1, epsilon)
        noisy, receipt = laplace(values, l1=l1, epsilon=epsilon, grid=grid, linf=linf, rng=rng)
    return NoisyValues(noisy, variance(l1, epsilon, law), receipt)


def variance(l1: float | Fraction, epsilon: float, law: str) -> float:
    """Return the variance of the noise that `add_noise` draws. It is 2α/(1−α)², times the square of
    the step between values on the grid.

    Parameters
    ----------
    l1, epsilon, law
        The same arguments as for `add_noise`.

    Returns
    -------
    float
        Variance in counts squared.

    Raises
    ------
    ValueError
        For the same reasons as `noise.decay`.
    """
    grid = 1.0 if law == "geometric" else _laplace_grid(l1, epsilon)
    ratio = decay(Fraction(l1) / Fraction(grid), epsilon)
    return grid**2 * geometric_variance(float(ratio))


def _laplace_grid(l1: float | Fraction, epsilon: float) -> float:
    """Return a power of two that is about a thousandth of the scale l1/ε, at most 1 and at least 1/512."""
    ratio = decay(l1, epsilon)
    log_scale = ratio.denominator.bit_length() - ratio.numerator.bit_length()
    return 2.0 ** max(-9, min(0, log_scale - 10))


# Kinds


def sampler(law: Law) -> TwoSidedGeometric | DiscreteGaussian:
    """Return an object that draws from a distribution. It computes its tables once and keeps them.

    Parameters
    ----------
    law : Law
        Distribution with an exact rate.

    Returns
    -------
    TwoSidedGeometric or DiscreteGaussian
        Object with a method `add`.
    """
    return discrete_gaussian(law.rate) if law.kind == GAUSSIAN else two_sided(law.rate)


@lru_cache(256)
def empty_cell(
    law: Law, theta: float, sides: int, tau: float = 0.0, above: float | None = None
) -> EmptyCell | GaussianCell:
    """Return the distribution of the noisy value of one empty cell. This distribution is public,
    because an empty cell contains no data.

    Parameters
    ----------
    law : Law
        Distribution of the noise, with an exact rate.
    theta : number
        Filter, in counts.
    sides : int
        2 for both signs, 1 for positive values only.
    tau : number
        Sampling threshold, in counts. 0 for none.
    above : number
        Larger threshold at which an earlier round did not sample the cell.

    Returns
    -------
    EmptyCell or GaussianCell
        Object with the probability `chance` that a cell survives, and a method `survivors` that draws the
        survivors among many cells.
    """
    if law.kind == GAUSSIAN:
        return gaussian_cell(law.rate, theta, sides, tau, above)
    return EmptyCell(two_sided(law.rate).alpha, theta, sides, tau, above)
