"""Discrete Gaussian noise on a vector of values."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from workbench.arrays import Int, Num
from workbench.enclosures import root_above
from workbench.estimates.law import GAUSSIAN, Law
from workbench.noise.arguments import check_counts, check_grid, gaussian_rate, grid_steps
from workbench.noise.discrete_gaussian import discrete_gaussian
from workbench.noise.source import Source
from workbench.privacy import Receipt
from workbench.value import sealed


class GaussianBlock(NamedTuple):
    """Consecutive cells with one Gaussian law: a unit moves them by √l2_squared in the l2 norm; ρ pays."""

    size: int
    l2_squared: Fraction
    rho: float

    @property
    def law(self) -> Law:
        """Of the noise on each of them."""
        return Law(GAUSSIAN, gaussian_rate(self.l2_squared, self.rho))

    def receipt(self, source: Source, name: str) -> Receipt:
        """Of a measurement of all of them."""
        return source.zcdp_receipt(name, self.rho)


def gaussian(
    values: Int[np.ndarray, " n"],
    *,
    l2_squared: Fraction | float,
    rho: float,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " n"], Receipt]:
    """Discrete Gaussian noise, Pr[X = x] ∝ exp(−x²·ρ/l2²): ρ-zCDP for l2-sensitivity l2.

    Source: Canonne, Kamath & Steinke, NeurIPS 2020; proved in docs/accounting.md. Exact (see
    `noise.discrete_gaussian`).

    Parameters
    ----------
    values : int[n], whole numbers.
    l2_squared : the square of how far one unit moves all of them together, in the l2 norm.
    rho : what they cost together.
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
        If the values are no whole numbers, an argument is no finite number > 0, or noise would not fit
        64-bit counts.
    """
    check_counts(values)
    rate = gaussian_rate(l2_squared, rho)
    source = Source(rng)
    noisy = np.array(values, np.int64)
    source.add_noise(discrete_gaussian(rate), noisy)
    return sealed(noisy), source.zcdp_receipt(GAUSSIAN, rho)


def gaussian_on_grid(
    values: Num[np.ndarray, " n"],
    *,
    l2_squared: Fraction,
    rho: float,
    grid: float,
    rng: np.random.Generator | None = None,
) -> tuple[Num[np.ndarray, " n"], Receipt]:
    """Discrete Gaussian noise on the multiples of `grid`: ρ-zCDP.

    Values are rounded to the grid first, by half a step each, so that n of them move by √n steps more.

    Parameters
    ----------
    values : float[n].
    l2_squared : as for `gaussian`, in the units of the values.
    rho : what they cost together.
    grid : a public power of two.
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
        If the grid is no power of two, or as `gaussian`.
    """
    check_grid(grid)
    steps = grid_steps(np.asarray(values), grid)
    moved = l2_of_sum(l2_squared / Fraction(grid) ** 2, Fraction(len(steps)))
    noisy, receipt = gaussian(steps, l2_squared=moved, rho=rho, rng=rng)
    return noisy * grid, receipt


def l2_of_sum(a_squared: Fraction, b_squared: Fraction) -> Fraction:
    """The square of a + b, rounded up, of two lengths whose squares are given.

    Parameters
    ----------
    a_squared, b_squared : Fraction, at least 0.

    Returns
    -------
    Fraction
        Not below it.
    """
    return a_squared + b_squared + 2 * root_above(a_squared * b_squared)
