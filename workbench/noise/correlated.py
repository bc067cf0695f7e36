"""Gaussian noise on non-empty cells with one draw shared by all, and a threshold.

Of at most k non-empty cells each gets Z + Z_i, with variances b of the shared Z and a = √k·b of each Z_i. A
unit moves s of u <= k cells by m. The covariance is a·I + b·11ᵀ, so that the squared distance of both tables
is m²·(s − b·s²/(a + b·u))/a <= m²·(1/(4b) + k/(4a)), whatever s is. Smaller moves in one direction are nearer.
With b = m²·(1 + √k)/(4μ²) it is at most μ², and half of δ pays for that. A cell that is new, or missing,
reaches the threshold with probability δ/2 at most, as positive correlation makes it likelier that none does.

All of it is computed and drawn in floats, so that releases are idealised.

Source  after Lebeda & Retschmeier, FORC 2025; the proof and the threshold are ours.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, expm1, log1p, sqrt
from typing import NamedTuple

import numpy as np

from workbench.data import Bound
from workbench.noise.arguments import check_counts
from workbench.noise.source import Reads, Source
from workbench.privacy import Receipt
from workbench.value import Int, sealed


class CorrelatedNoise(NamedTuple):
    """Standard deviations of the shared draw and of each cell's own, and the threshold in counts."""

    shared: float
    own: float
    threshold: float


@lru_cache(256)
def correlated_noise(
    nonempty: int, moved: float, epsilon: float, delta: float
) -> CorrelatedNoise:
    """The noise and the threshold for at most `nonempty` cells, of which a unit moves each by `moved`.

    Parameters
    ----------
    nonempty : k, the public bound on the number of non-empty cells.
    moved : m, how far a unit moves any one count, all of them in one direction.
    epsilon, delta : what the release may cost.

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
    mu = brentq(excess, 1e-12, high, xtol=1e-14)
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
    """Correlated Gaussian noise on the non-empty cells alone, of which those at a threshold are returned.

    Parameters
    ----------
    keys : int64[n], the non-empty cells, sorted.
    counts : int[n], their counts.
    bound : how far one unit moves the table.
    nonempty : public bound on n, which the caller has checked.
    epsilon, delta : what the release may cost.
    rng : a seeded generator for noise that can be replayed, or None.

    Returns
    -------
    int64[k], int64[k], float
        Keys, noisy values rounded to integers, and the threshold.
    Receipt
        Idealised.
    """
    check_counts(counts)
    made = correlated_noise(nonempty, float(bound.linf), float(epsilon), float(delta))
    source = Source.of(rng)
    reads = Reads(counts, bound.l1, keys)
    kept, noisy = source.choose(
        draw_correlated, keys, counts, *made, reads=reads, idealised=True
    )
    receipt = source.receipt("correlated Gaussian", epsilon, delta)
    return sealed(kept), sealed(noisy), made.threshold, receipt


def draw_correlated(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    shared: float,
    own: float,
    threshold: float,
    floats: np.random.Generator,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """The cells whose noisy count reaches the threshold."""
    noisy = counts + floats.normal(0, shared) + floats.normal(0, own, len(counts))
    kept = noisy >= threshold
    return keys[kept], np.rint(noisy[kept]).astype(np.int64)
