"""An orthonormal real Fourier basis: a mean, and a cosine and a sine of each whole frequency."""

from math import sqrt

import numpy as np

from workbench.arrays import Float


def coefficients(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Coordinates in the orthonormal basis 1/√n, √(2/n)·cos(2πft/n), √(2/n)·sin(2πft/n) for f = 1, 2, …

    in this order; last cos(πt)/√n if n is even.

    >>> coefficients(np.array([3.0, 1.0])).round(3)
    array([2.828, 1.414])
    """
    from scipy import fft

    n = len(x)
    frequencies = fft.rfft(x, norm="ortho")
    out = np.empty(n, x.dtype)
    out[0] = frequencies[0].real
    middle = frequencies[1 : (n + 1) // 2] * np.sqrt(x.dtype.type(2))
    out[1 : 2 * len(middle) : 2] = middle.real
    out[2 : 2 * len(middle) + 1 : 2] = -middle.imag
    if n % 2 == 0:
        out[-1] = frequencies[-1].real
    return out


def inverse(coordinates: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The values that have these coordinates."""
    from scipy import fft

    n = len(coordinates)
    frequencies = np.zeros(n // 2 + 1, complex)
    frequencies[0] = coordinates[0]
    middle = (n - 1) // 2
    frequencies[1 : middle + 1] = coordinates[1 : 2 * middle : 2] / sqrt(2)
    frequencies[1 : middle + 1] -= 1j * coordinates[2 : 2 * middle + 1 : 2] / sqrt(2)
    if n % 2 == 0:
        frequencies[-1] = coordinates[-1]
    return fft.irfft(frequencies, n, norm="ortho")
