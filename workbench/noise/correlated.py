"""Gaussian noise on non-empty cells with one shared draw, and a threshold.

Each of at most k non-empty cells gets the noise Z + Z_i. The shared draw Z has variance b, and each Z_i has
variance a = √k·b, so the covariance is a·I + b·11ᵀ. Suppose that a unit changes s of u <= k counts by m,
all in one direction. The squared Mahalanobis distance between the two tables is then m²·(s − b·s²/(a +
b·u))/a, which is at most m²·(1/(4b) + k/(4a)) for every s. Smaller changes in one direction give smaller
distances. With b = m²·(1 + √k)/(4μ²) the squared distance is at most μ², which costs (ε, δ/2). The other
δ/2 bounds the probability that a cell present in only one of the tables reaches the threshold. The bound
may treat the cells as independent, because positive correlation only makes it more likely that none of them
does.

All computations and draws use floats, so receipts are marked as idealised.

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
    """Parameters of correlated noise, two standard deviations and a threshold, in counts. All cells share one
    draw with the first deviation, and each cell has a separate draw with the second.
    """

    shared: float
    own: float
    threshold: float


@lru_cache(256)
def correlated_noise(
    nonempty: int, moved: float, epsilon: float, delta: float
) -> CorrelatedNoise:
    """Return the noise and the threshold for at most `nonempty` cells. One unit changes each of
    them by at most `moved`.

    Parameters
    ----------
    nonempty : int
        k, the public bound on the number of non-empty cells.
    moved : float
        m, the largest change of any one count by one unit, with all changes in one direction.
    epsilon, delta : float
        Cost of the release.

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
    """Add correlated Gaussian noise to the non-empty cells, and return the cells whose noisy counts
    reach a threshold.

    Parameters
    ----------
    keys : int64[n]
        Sorted keys of the non-empty cells.
    counts : int[n]
        Their counts.
    bound : Bound
        Largest change of the table by one unit.
    nonempty : int
        Public bound on n, which the caller has checked.
    epsilon, delta : float
        Cost of the release.
    rng : Generator, optional
        Seeded generator for noise that can be replayed.

    Returns
    -------
    int64[k], int64[k], float
        Keys, noisy values rounded to integers, and the threshold.
    Receipt
        Cost, marked as idealised.
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
    """Return the cells whose noisy count reaches the threshold."""
    noisy = counts + floats.normal(0, shared) + floats.normal(0, own, len(counts))
    kept = noisy >= threshold
    return keys[kept], np.rint(noisy[kept]).astype(np.int64)
