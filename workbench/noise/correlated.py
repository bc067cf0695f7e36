"""Release of the non-empty cells whose noisy count reaches a threshold. One part of the Gaussian noise is the
same for all cells.

There are at most k non-empty cells. Cell i gets the noise Z + Z_i. All cells share the draw Z, which has
variance b. Each Z_i has variance a = √k·b. The covariance matrix of the noise is a·I + b·11ᵀ, where I is the
identity and 1 the vector of ones.

Suppose that u <= k counts get noise, and that a unit changes s of these counts by m, all in the same direction.
The squared Mahalanobis distance between the two tables is then m²·(s − b·s²/(a + b·u))/a. For every s, this is
at most m²·(1/(4b) + k/(4a)). Smaller changes in one direction give smaller distances. If b = m²·(1 + √k)/(4μ²),
the squared distance is at most μ². The noise then costs (ε, δ/2), for a μ that is computed from ε and δ.

The other δ/2 is for cells that are non-empty in only one of the two tables. The probability that the count of
any of these cells reaches the threshold is at most δ/2. The computation treats the cells as independent. This
assumption is safe, because positive correlation only raises the probability that no cell reaches the threshold.

All computations and draws use floating point, so receipts are marked as idealised.

Source  After Lebeda & Retschmeier, FORC 2025. The proof and the threshold are our own.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, expm1, log1p, sqrt
from typing import NamedTuple

import numpy as np

from workbench.data import Bound
from workbench.noise.arguments import check_counts
from workbench.noise.source import Reads, Source
from workbench.privacy import DP, Receipt
from workbench.value import Int, sealed


class CorrelatedNoise(NamedTuple):
    """Two standard deviations and a threshold for noise that is correlated between cells. The noise of a cell
    is the sum of two random numbers. The first number is the same for all cells and has the standard deviation
    `shared`. The second number is drawn for each cell and has the standard deviation `own`. `threshold` is the
    smallest noisy count that is released.
    """

    shared: float
    own: float
    threshold: float


@lru_cache(256)
def correlated_noise(
    nonempty: int, moved: float, epsilon: float, delta: float
) -> CorrelatedNoise:
    """Return the parameters of correlated noise for a table with at most `nonempty` non-empty cells. The
    parameters are two standard deviations, and the threshold that a noisy count must reach to be released.

    Parameters
    ----------
    nonempty : int
        Public upper bound on the number of non-empty cells.
    moved : float
        Largest change of any single count that one unit, for example a person, can cause. All changes that a
        unit causes must be in the same direction.
    epsilon, delta : float
        Privacy loss ε and failure probability δ of the release.

    Returns
    -------
    CorrelatedNoise
    """
    from scipy.optimize import brentq
    from scipy.special import log_ndtr, ndtr, ndtri

    def excess(mu: float) -> float:
        rest = exp(min(epsilon + log_ndtr(-mu / 2 - epsilon / mu), 0.0))
        return float(ndtr(mu / 2 - epsilon / mu)) - rest - delta / 2

    high = 1.0
    while excess(high) < 0:
        high *= 2
    low = high / 2
    while excess(low) > 0:
        low /= 2
    # where ε and δ are tiny, excesses are as small as their rounding, and the search takes long
    mu = brentq(excess, low, high, xtol=low * 1e-12, maxiter=1000)
    while excess(mu) > 0:
        mu *= 1 - 1e-12
    own = sqrt(sqrt(nonempty) * (1 + sqrt(nonempty))) * moved / (2 * mu)
    shared = own / nonempty**0.25
    quantile = -float(ndtri(-expm1(log1p(-delta / 2) / nonempty)))
    return CorrelatedNoise(shared, own, moved + sqrt(shared**2 + own**2) * quantile)


def correlated_gaussian(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    bound: Bound,
    *,
    nonempty: int,
    epsilon: float,
    delta: float,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], float, Receipt]:
    """Add Gaussian noise to the counts of the non-empty cells, and return the cells whose noisy count reaches
    a threshold. One part of the noise is the same for all cells.

    Parameters
    ----------
    keys : int64[n]
        Keys of the non-empty cells, in ascending order. A key is the position of a cell in the domain, from 0.
    counts : int[n]
        Counts of these cells.
    bound : Bound
        Limit on how much one unit, for example a person, can change the table.
    nonempty : int
        Public upper bound on the number of non-empty cells. Check this bound before you call the function.
    epsilon, delta : float
        Privacy loss ε and failure probability δ of the release.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. By default, the noise comes from the operating
        system.

    Returns
    -------
    keys, counts, threshold : int64[k], int64[k] and float
        Keys of the released cells, their noisy counts rounded to integers, and the threshold.
    Receipt
        Receipt that records the privacy cost. The receipt is marked as idealised, because the function draws
        the noise in floating point. The proof of the guarantee does not hold exactly for such noise.
    """
    check_counts(counts)
    made = correlated_noise(nonempty, float(bound.linf), float(epsilon), float(delta))
    source = Source.of(rng)
    reads = Reads(counts, bound.l1, keys)
    kept, noisy = source.choose(
        draw_correlated, keys, counts, *made, reads=reads, idealised=True
    )
    receipt = source.receipt("correlated Gaussian", DP(epsilon, delta))
    return sealed(kept), sealed(noisy), made.threshold, receipt


def draw_correlated(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    shared: float,
    own: float,
    threshold: float,
    floats: np.random.Generator,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Draw the noise. Return the keys of the cells whose noisy count reaches the threshold, and these counts
    rounded to integers.
    """
    noisy = counts + floats.normal(0, shared) + floats.normal(0, own, len(counts))
    kept = noisy >= threshold
    return keys[kept], np.rint(noisy[kept]).astype(np.int64)
