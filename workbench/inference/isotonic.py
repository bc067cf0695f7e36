"""Isotonic regression: the sequence in order that is nearest to a noisy one.

Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, Theorem 1; computed by pooling adjacent violators
           (Barlow et al., 1972), as scipy does.
Differs    nothing: the paper's min-max formula and pooling are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Num


def isotonic(noisy: Num[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The ascending sequence with the least squared distance from a noisy one.

    Parameters
    ----------
    noisy : float[n]
        Numbers in the order that their exact values have.

    Returns
    -------
    float64[n]
        In the units of `noisy`.

    Raises
    ------
    ValueError
        For anything but a plain sequence of finite numbers.

    Examples
    --------
    >>> isotonic([14, 9, 10, 15])
    array([11., 11., 11., 15.])
    """
    from scipy.optimize import isotonic_regression

    noisy = finite_array("noisy", noisy, 1)
    return isotonic_regression(noisy).x if len(noisy) else noisy


def round_to_counts(values: Num[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """The nearest whole numbers that are not negative.

    Parameters
    ----------
    values : float[...]
        Estimated counts.

    Returns
    -------
    float64[...]
        Of the same shape.

    Raises
    ------
    ValueError
        For anything but finite numbers.
    """
    return np.maximum(np.rint(finite_array("values", values)), 0)


def finite_array(
    name: str, values: Num[np.ndarray, "..."], dimensions: int | None = None
) -> Float[np.ndarray, "..."]:
    """The values as floats, or a ValueError that names the first that is none."""
    try:
        values = np.asarray(values, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {np.asarray(values).dtype}") from None
    if dimensions is not None and values.ndim != dimensions:
        raise ValueError(
            f"{name} of shape {values.shape} is not allowed: need a plain sequence"
        )
    bad = ~np.isfinite(values)
    if bad.any():
        at = int(np.flatnonzero(bad.ravel())[0])
        raise ValueError(
            f"{name}[{at}] = {values.ravel()[at]} is not allowed: need finite numbers"
        )
    return values
