"""Geometric and Laplace noise on a vector of values."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from workbench.arrays import Int, Num
from workbench.estimates.law import geometric_variance
from workbench.noise.arguments import check_counts, check_grid, decay, grid_steps
from workbench.noise.laws import two_sided
from workbench.noise.source import Source
from workbench.noise.structure import geometric_rho
from workbench.privacy import Receipt
from workbench.value import sealed


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
        source = Source(rng)
        ratio = decay(l1, epsilon)
        self._law = two_sided(ratio)
        self._source = source
        rho = geometric_rho(ratio, l1, linf)
        self.receipt = source.receipt("geometric", epsilon, rho=rho)

    def __call__(self, portion: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The noisy values of one portion."""
        check_counts(portion)
        noisy = np.array(portion, np.int64)
        self._source.add_noise(self._law, noisy)
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
    values : int[n], whole numbers.
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
        If the values are no whole numbers, or as `noise.decay`.
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
    l1 + l0·grid, unless they are whole numbers and the grid divides 1. Rounding the output of a float
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
        If the grid is no power of two, or as `noise.decay`.
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
    source = Source(rng)
    ratio = decay(moved, epsilon)
    source.add_noise(two_sided(ratio), steps)
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
    """Noise of the named law on whole numbers: ε-DP at sensitivity `l1`.

    Parameters
    ----------
    values : int[n], whole numbers.
    l1 : how far one unit moves all of them together, in counts.
    epsilon : what they cost together.
    law : "geometric", or "laplace" on a grid of a thousandth of its scale, or 1/512: whole numbers
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
        If the values are no whole numbers ("geometric"), or as `noise.decay`.
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
