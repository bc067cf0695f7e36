"""Checks of the arguments of noise functions, and their conversion to exact numbers. Whether an error is
raised depends on public numbers only, so an error reveals nothing about the data.
"""

from __future__ import annotations

from fractions import Fraction
from math import frexp, isfinite

import numpy as np

_LARGEST_RATIO = Fraction(2**60)
_SMALLEST_RATE = Fraction(1, 2**101)  # of Gaussian noise: σ up to 2^50
_SMALLEST_RATIO = Fraction(1, 2**36)  # below, noise would need more than 64 bits


def decay(l1: float | Fraction, epsilon: float) -> Fraction:
    """Return the decay ε/l1 of geometric noise, as an exact fraction. If a is the decay, the probability that
    the noise is the integer x is proportional to exp(−a·|x|).

    Parameters
    ----------
    l1 : number
        Largest total change of the values that one unit (for example a person) can cause.
    epsilon : number
        Privacy loss ε of the noise.

    Returns
    -------
    Fraction
        The exact ratio ε/l1. If this ratio is larger than 2^60, the result is 2^60, because the noise is then
        always 0.

    Raises
    ------
    ValueError
        If an argument is not a finite number > 0, or if the ratio is below 2^-36. With a smaller ratio, the
        noise would not fit into 64-bit integers.
    """
    epsilon_ = positive("epsilon", epsilon)
    l1_ = positive("l1", l1)
    ratio = epsilon_ / l1_
    if ratio < _SMALLEST_RATIO:
        raise ValueError(
            f"epsilon = {float(epsilon):.3g} is too small if one unit changes the values by "
            f"{float(min(l1_, Fraction(10**300))):.3g}: their ratio must be at least 2^-36"
        )
    return min(ratio, _LARGEST_RATIO)


def gaussian_rate(l2_squared: Fraction | float, rho: float) -> Fraction:
    """Return the rate of Gaussian noise, which is rho/l2_squared, as an exact fraction. If r is the rate, the
    probability that the noise is the integer x is proportional to exp(−r·x²). If the ratio is larger than
    2^60, the result is 2^60, because the noise is then always 0.
    """
    ratio = positive("rho", rho) / positive("l2_squared", l2_squared)
    if ratio < _SMALLEST_RATE:
        raise ValueError(
            f"rho = {float(rho):.3g} is too small if one unit changes the values by a squared l2 "
            f"norm of {float(min(Fraction(l2_squared), Fraction(10**300))):.3g}: their ratio must "
            "be at least 2^-101"
        )
    return capped(ratio)


def grid_steps(values: np.ndarray, grid: float) -> np.ndarray:
    """Return the values divided by the step `grid` and rounded to integers. Very large values are clipped
    without an error, because an error would reveal something about the data.
    """
    steps = np.clip(np.nan_to_num(values / grid), -(2**53), 2**53)
    return np.rint(steps).astype(np.int64)


def capped(ratio: Fraction) -> Fraction:
    """Return the ratio, or 2^60 if the ratio is larger. With a larger ratio, the noise would still always be
    0.
    """
    return min(ratio, _LARGEST_RATIO)


def positive(name: str, x: float | Fraction) -> Fraction:
    """Return a finite number > 0 as an exact fraction. Raise a ValueError if the argument is anything else."""
    whole = isinstance(x, int | Fraction)  # may be beyond what floats hold
    if not ((whole or isfinite(x)) and x > 0):
        raise ValueError(f"{name} = {x!r} is not allowed: need a finite number > 0")
    return Fraction(x if whole else float(x))  # numpy integers would wrap


def check_counts(values: np.ndarray) -> None:
    """Raise a ValueError if the array does not contain integers."""
    if values.dtype.kind not in "iub":
        raise ValueError(f"values of type {values.dtype} are not allowed: need integers")


def check_filter(theta: float, sides: int, tau: float = 0.0) -> None:
    """Raise a ValueError if the filter threshold θ or the sampling threshold τ is not a finite number >= 0,
    or if `sides` is neither 1 nor 2.
    """
    for name, x in (("theta", theta), ("tau", tau)):
        if not (isfinite(x) and x >= 0):
            raise ValueError(f"{name} = {x!r} is not allowed: need a finite number >= 0")
    if sides not in (1, 2):
        raise ValueError(f"sides = {sides!r} is not allowed: need 1 or 2")


def check_grid(grid: float) -> None:
    """Raise a ValueError if the step `grid` is not a power of two."""
    if frexp(grid)[0] != 0.5:
        raise ValueError(f"grid = {grid!r} is not allowed: need a power of two")
