"""Isotonic regression: the sequence in order that is nearest to a noisy one.

Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, Theorem 1; computed by pooling adjacent violators
           (Barlow et al., 1972), as scipy does.
Differs    nothing: the paper's min-max formula and pooling are equal.
"""

from __future__ import annotations

import numpy as np

from workbench.arrays import Float, Num, finite_array


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
