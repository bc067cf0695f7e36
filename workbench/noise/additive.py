"""Geometric, Laplace and Gaussian noise on vectors, and its price in zCDP.

Two-sided geometric noise at decay a, on a value that moves by k, is ρ-zCDP for

    f(k) = a·(k − 2α·(1 − α^k)/(1 − α²)), α = exp(−a),

the divergence of its order 1; the page on accounting proves it for every order. Values with noise of
their own add up. f is convex and f(0) = 0, so that of all moves of at most `l1` together and `linf` each,
as many as possible by linf, and one by what is left, cost the most.
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
from workbench.privacy import Receipt
from workbench.privacy.enclosures import exp_neg, round_up
from workbench.value import Int, Num, sealed

# Structure

_BITS = 320  # decays are at least 2^-36


def geometric_rho(
    decay: Fraction, l1: float | Fraction, linf: float | Fraction | None = None
) -> float:
    """The ρ of geometric noise on values of which a unit moves each by `linf`, all together by `l1`.

    Parameters
    ----------
    decay : of the noise; ε/l1.
    l1 : how far one unit moves all values together.
    linf : how far it moves any one of them; `l1`, if not given.

    Returns
    -------
    float
        Rounded up.
    """
    l1 = Fraction(l1)
    return _geometric_rho(decay, l1, l1 if linf is None else min(Fraction(linf), l1))


@lru_cache(1024)
def _geometric_rho(decay: Fraction, l1: Fraction, linf: Fraction) -> float:
    moved, rest = divmod(l1, linf)
    return round_up(moved * _shifted(decay, linf) + _shifted(decay, rest))


def _shifted(decay: Fraction, k: Fraction) -> Fraction:
    """f(k), from above."""
    alpha = exp_neg(decay, _BITS).below
    power = exp_neg(decay * k, _BITS).above
    return decay * (k - 2 * alpha * (1 - power) / (1 - alpha**2))


def choice_rho(epsilon: float) -> float:
    """The ρ of the exponential mechanism: ε²/8, since log-chances move within an interval of length ε.

    Source: Cesar & Rogers, ALT 2021. No ε costs more than ρ = ε.
    """
    exact = Fraction(epsilon)
    return round_up(min(exact**2 / 8, exact))


# Additive


class NoisyValues(NamedTuple):
    """Noisy values, the variance of their noise, and what they cost."""

    values: Num[np.ndarray, " n"]
    variance: float
    receipt: Receipt


class PortionedGeometric:
    """Geometric noise on one vector that is given in portions: one measurement, one receipt.

    Each value is given once; `l1` is how far one unit moves all portions together.

    Parameters
    ----------
    l1 : how far one unit moves the values of all portions together, in counts.
    epsilon : what all of them cost together.
    linf : how far it moves any one of them; `l1`, if not given.
    rng : a seeded generator for noise that can be replayed, or None to publish.

    Raises
    ------
    ValueError
        As `noise.decay`.
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
        self.receipt = source.receipt("geometric", epsilon, rho=rho)

    def __call__(self, portion: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The noisy values of one portion."""
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
    """Two-sided geometric noise, Pr[X = x] ∝ exp(−|x|·ε/l1): ε-DP for l1-sensitivity `l1`.

    Source: Ghosh, Roughgarden & Sundararajan, STOC 2009. Exact (see `noise.laws`).

    Parameters
    ----------
    values : int[n], integers.
    l1 : how far one unit moves all of them together, in counts.
    epsilon : what they cost together.
    linf : how far one unit moves any one of them; `l1`, if not given. The receipt's ρ follows from it.
    rng : a seeded generator for noise that can be replayed, or None to publish.

    Returns
    -------
    int64[n]
        The noisy values.
    Receipt
        What they cost.

    Raises
    ------
    ValueError
        If the values are not integers, or as `noise.decay`.
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
    """Discrete Laplace noise on the multiples of `grid`: ε-DP.

    Values are rounded to the grid first; a unit that moves `l0` coordinates then moves them by at most
    l1 + l0·grid, unless they are integers and the grid divides 1. Rounding the output of a float
    sampler instead would leak (Mironov, CCS 2012).

    Parameters
    ----------
    values : float or int [n].
    l1 : how far one unit moves all of them together.
    epsilon : what they cost together.
    grid : a public power of two.
    linf : how far one unit moves any one of them; `l1`, if not given. The receipt's ρ follows from it.
    l0 : how many of them one unit moves; all, if not given.
    rng : a seeded generator for noise that can be replayed, or None to publish.

    Returns
    -------
    float64[n]
        The noisy values, multiples of the grid.
    Receipt
        What they cost.

    Raises
    ------
    ValueError
        If `grid` is not a power of two, or for a reason listed in `noise.decay`.
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
    return steps * grid, source.receipt("laplace", epsilon, rho=rho)


def add_noise(
    values: Int[np.ndarray, " n"],
    *,
    l1: float | Fraction,
    epsilon: float,
    law: str,
    linf: float | Fraction | None = None,
    rng: np.random.Generator | None = None,
) -> NoisyValues:
    """Noise of the named law on integers: ε-DP at sensitivity `l1`.

    Parameters
    ----------
    values : int[n], integers.
    l1 : how far one unit moves all of them together, in counts.
    epsilon : what they cost together.
    law : "geometric", or "laplace" on a grid of a thousandth of its scale, or 1/512: integers
        lie on it.
    linf : how far one unit moves any one of them; `l1`, if not given. The receipt's ρ follows from it.
    rng : a seeded generator for noise that can be replayed, or None to publish.

    Returns
    -------
    NoisyValues
        The noisy values, their noise's variance, and a receipt.

    Raises
    ------
    ValueError
        If the values are not integers ("geometric"), or as `noise.decay`.
    """
    if law == "geometric":
        noisy, receipt = geometric(values, l1=l1, epsilon=epsilon, linf=linf, rng=rng)
    else:
        grid = _laplace_grid(l1, epsilon)
        noisy, receipt = laplace(values, l1=l1, epsilon=epsilon, grid=grid, linf=linf, rng=rng)
    return NoisyValues(noisy, variance(l1, epsilon, law), receipt)


def variance(l1: float | Fraction, epsilon: float, law: str) -> float:
    """The variance of the noise that `add_noise` draws: 2α/(1−α)², times its grid squared.

    Parameters
    ----------
    l1, epsilon, law : as for `add_noise`.

    Returns
    -------
    float
        In counts squared.

    Raises
    ------
    ValueError
        As `noise.decay`.
    """
    grid = 1.0 if law == "geometric" else _laplace_grid(l1, epsilon)
    ratio = decay(Fraction(l1) / Fraction(grid), epsilon)
    return grid**2 * geometric_variance(float(ratio))


def _laplace_grid(l1: float | Fraction, epsilon: float) -> float:
    """A power of two that is at most 1, about a thousandth of the scale l1/ε, and at least 1/512."""
    ratio = decay(l1, epsilon)
    log_scale = ratio.denominator.bit_length() - ratio.numerator.bit_length()
    return 2.0 ** max(-9, min(0, log_scale - 10))


# Kinds


def sampler(law: Law) -> TwoSidedGeometric | DiscreteGaussian:
    """What adds noise of the law; tables are made once.

    Parameters
    ----------
    law : of an exact rate.

    Returns
    -------
    TwoSidedGeometric or DiscreteGaussian
        With `add`.
    """
    return discrete_gaussian(law.rate) if law.kind == GAUSSIAN else two_sided(law.rate)


@lru_cache(256)
def empty_cell(
    law: Law, theta: float, sides: int, tau: float = 0.0, above: float | None = None
) -> EmptyCell | GaussianCell:
    """The law of one empty cell under noise; public, since it holds no data.

    Parameters
    ----------
    law : of the noise, of an exact rate.
    theta : the filter, in counts.
    sides : 2 for both signs, 1 for positive values only.
    tau : the sampling threshold, in counts; 0 for none.
    above : a larger threshold, at which it was not sampled.

    Returns
    -------
    EmptyCell or GaussianCell
        Its `chance` to survive, and the `survivors` of many.
    """
    if law.kind == GAUSSIAN:
        return gaussian_cell(law.rate, theta, sides, tau, above)
    return EmptyCell(two_sided(law.rate).alpha, theta, sides, tau, above)
