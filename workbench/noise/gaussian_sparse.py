"""Gaussian noise on the counts of the non-empty cells only, a threshold for these counts, and the exact δ of
such a release.

A unit, for example a person, changes at most C counts, each by at most m. Suppose that a of the changed cells
are new. A new cell is empty in the smaller of two neighbouring tables. A cell is released if its noisy count is
at least the threshold T. Let X be the noise, and q = (1 − Pr[X >= T − m])^a. Then the release from the larger
table contains at least one new cell with probability 1 − q. The release from the smaller table never contains a
new cell. If no new cell is released, the two releases differ only in the noisy counts of k = C − a other cells.
Let h_k(ε) be the δ at ε of Gaussian noise on k such counts. Then the total δ is the maximum, over all a, of 1 −
q + q·h_k(ε − ln q) and h_k(ε + ln q). The worst unit changes every count by m, because the noise is
log-concave, so a larger change is easier to recognise.

For k cells, only the sum S of their values helps to distinguish the two tables. The sum of k discrete Gaussians
of rate r is almost a discrete Gaussian of rate r/k. The probabilities differ by factors between (1 − η)/(1 + η)
and (1 + η)/(1 − η). For a proof, write Pr[S = s] as exp(−r·s²/k) times the sum of exp(−r·|y|²) over a coset of
the lattice of integer vectors that add up to 0. By Poisson's formula, the relative difference between cosets is
at most η <= Σ exp(−2π²σ²|w|²), where the sum runs over the vectors w of the dual lattice other than 0. Each w
is the projection of an integer vector z, which can be chosen so that its median is 0. Then |w|² >= |z|²/2,
because a median is at most one standard deviation from the mean. It follows that 1 + η <= (Σ exp(−π²σ²n²))^k,
where the sum runs over all integers n.

The code computes δ in floating point and rounds it up. For narrow noise, the code adds up all values of a sum,
with a relative error below 10⁻¹¹. For wide noise, the code uses the Euler–Maclaurin formula with three
corrections. The error of this formula is at most 2ζ(6)/(2π)⁶ times the integral of the absolute sixth
derivative of the density. If the noise has the standard deviation s and the sum begins at u standard
deviations, the relative error is at most 3.4·10⁻⁵·((u² + 7)/s²)³.

Source  Wilkins, Kifer, Zhang & Karrer, 2024, for continuous noise and m = 1. The proof of the discrete case
        is our own.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import exp, frexp, inf, log1p, pi, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from workbench.data import Bound
from workbench.noise import empty_cells
from workbench.noise.discrete_gaussian import discrete_gaussian
from workbench.noise.source import Source
from workbench.noise.stability import first_sufficient
from workbench.privacy import DP, Receipt
from workbench.privacy.enclosures import round_up
from workbench.value import Float, Int, sealed

_NARROW = 20.0  # standard deviations below which tails are summed value by value
_REACH = np.arange(300.0)  # 15 of them
_ROUNDING = 1e-11
_LEAST = 1e-200  # below, floats lose digits
_STEPS = 48  # of bisection
_MOST_LOSS = 1e12  # beyond it, products of ε and variances overflow
_MOST_CELLS = 10**6  # of one unit: each number of new cells is a case


class SparseNoise(NamedTuple):
    """Parameters of Gaussian noise on the counts of non-empty cells. `rate` is 1/(2σ²), where σ is the standard
    deviation of the noise. `threshold` is the smallest noisy count that is released. `delta` is the δ that the
    release costs.
    """

    rate: Fraction
    threshold: int
    delta: float

    @property
    def deviation(self) -> float:
        """Standard deviation σ of the noise, as a number of records."""
        return sqrt(1 / (2 * self.rate))


def moves(bound: Bound) -> tuple[int, int]:
    """Return two integers C and m that follow from a bound. One unit changes at most C counts, each by at
    most m.
    """
    return min(int(bound.l0), int(bound.l1)), int(bound.linf)


def _upper_tail(
    s: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"]
) -> tuple[np.ndarray, np.ndarray]:
    """Return a lower and an upper bound on the probability that a discrete Gaussian X is at least x, where
    Pr[X = x] ∝ exp(−x²/(2s²)) for all integers x.
    """
    from scipy.special import ndtr

    far = np.maximum(x, 1 - x)
    u = np.minimum(far / s, 50.0)  # where a float is 0
    density = np.exp(-u * u / 2)
    edge = 0.5 + u / (12 * s) - (u**3 - 3 * u) / (720 * s**3)
    edge += (u**5 - 10 * u**3 + 15 * u) / (30240 * s**5)
    tail = ndtr(-u) + density * edge / (s * sqrt(2 * pi))
    narrow = s < _NARROW
    if narrow.any():
        own = s[narrow, None]
        terms = np.exp(-(((far[narrow, None] + _REACH) / own) ** 2) / 2)
        whole = 2 * np.exp(-((_REACH / own) ** 2) / 2).sum(axis=1) - 1
        tail[narrow] = terms.sum(axis=1) / whole
    wrong = _ROUNDING + np.where(narrow, 0.0, 3.4e-5 * ((u * u + 7) / s**2) ** 3)
    low, high = tail * (1 - wrong) - 1e-300, tail * (1 + wrong) + 1e-300
    left = x < 1
    low, high = np.where(left, 1 - high, low), np.where(left, 1 - low, high)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _noise_delta(
    epsilon: Float[np.ndarray, " n"], sigma: float, k: Int[np.ndarray, " n"], moved: int
) -> Float[np.ndarray, " n"]:
    """Return the δ, rounded up, that Gaussian noise on k counts costs at a given ε. One unit changes each of
    these counts by `moved`.
    """
    ripple = exp(-((pi * sigma) ** 2))
    if ripple > 0.1 and k.max() > 1:
        return np.ones(len(k))
    eta = np.where(k > 1, np.expm1(2.01 * k * ripple), 0.0)
    if (eta >= 1).any():
        return np.ones(len(k))
    log_factor = np.log1p(eta) - np.log1p(-eta)
    epsilon = np.minimum(epsilon, _MOST_LOSS) - 2 * log_factor  # a smaller ε has a larger δ
    s, distance = sigma * np.sqrt(k), moved * k.astype(float)
    first = np.floor(epsilon * s * s / distance + distance / 2) + 1  # where P > e^ε·Q
    _, above = _upper_tail(s, first - distance)
    below, _ = _upper_tail(s, first)
    return (above - np.exp(np.minimum(epsilon, 700.0)) * below) * np.exp(log_factor)


def sparse_delta(epsilon: float, sigma: float, shown: float, cells: int, moved: int) -> float:
    """Return the δ that a release by `gaussian_sparse_histogram` costs at a given ε. The exact δ is rounded
    up, by a relative amount of about 10⁻⁹.

    Parameters
    ----------
    epsilon : float
        Privacy loss ε for which δ is computed.
    sigma : float
        Standard deviation σ of the discrete Gaussian noise, whose rate is 1/(2σ²).
    shown : float
        Upper bound on the probability that a cell with the count `moved` reaches the threshold.
    cells : int
        Largest number of counts that one unit changes.
    moved : int
        Largest change of each of these counts.

    Returns
    -------
    float
        Failure probability δ at this ε.
    """
    log_hidden = log1p(-min(shown * (1 + _ROUNDING), 1 - 1e-16))
    new = np.arange(cells)
    log_q = new * log_hidden
    larger = -np.expm1(log_q)
    larger += np.exp(log_q) * _noise_delta(epsilon - log_q, sigma, cells - new, moved)
    smaller = _noise_delta(epsilon + log_q, sigma, cells - new, moved)
    alone = -np.expm1(cells * log_hidden)
    return float(max(larger.max(), smaller.max(), alone)) * (1 + _ROUNDING)


@lru_cache(256)
def sparse_noise(bound: Bound, epsilon: float, delta: float) -> SparseNoise:
    """Return the narrowest Gaussian noise and the smallest threshold with which a release by
    `gaussian_sparse_histogram` is (ε, δ)-differentially private.

    First, the function makes the noise as narrow as the given δ allows. Then it makes the threshold as small as
    ε, δ and this noise allow.

    Parameters
    ----------
    bound : Bound
        Limit on how much one unit, for example a person, can change the table.
    epsilon, delta : float
        Privacy loss ε and failure probability δ of the release.

    Returns
    -------
    SparseNoise
        Rate of the noise, threshold as a number of records, and the δ that the release costs. The rate is
        1/(2σ²), where σ is the standard deviation of the noise.

    Raises
    ------
    ValueError
        If ε is not above 2⁻³⁶, if δ is not between 10⁻²⁰⁰ and 1, or if one unit can change more than a million
        cells.
    """
    if not (2.0**-36 < epsilon < inf and _LEAST < delta < 1):
        raise ValueError(
            f"epsilon = {epsilon!r} and delta = {delta!r} are not allowed: need "
            f"2^-36 < epsilon and {_LEAST} < delta < 1"
        )
    cells, moved = moves(bound)
    if cells > _MOST_CELLS:
        raise ValueError(
            f"the bound lets one unit change {cells:,} counts: need at most {_MOST_CELLS:,}"
        )
    enough = delta * (1 - 1e-6)  # the threshold needs something too

    def is_wide(sigma: float) -> bool:  # if no new cell is shown, most old cells tell most
        delta = _noise_delta(np.array([epsilon]), sigma, np.array([cells]), moved)[0]
        return float(max(delta, 0.0)) * (1 + _ROUNDING) <= enough

    high = 1.0
    while not is_wide(high):
        high *= 2
    while is_wide(high / 2):
        high /= 2
    low = high / 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_wide(middle) else (middle, high)
    rate = Fraction(1 / (2 * high * high))

    bits = 192 - frexp(delta)[1]

    def spent(threshold: int) -> float:
        shown = empty_cells.upper_tail(rate, threshold - moved, bits).above
        return sparse_delta(epsilon, high, float(shown), cells, moved)

    quantile = -NormalDist().inv_cdf(max(delta / cells, 1e-300))
    guess = max(1, int(moved + high * quantile))
    threshold = first_sufficient(lambda x: spent(x) <= delta, guess)
    return SparseNoise(rate, threshold, spent(threshold))


def gaussian_sparse_histogram(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    bound: Bound,
    *,
    epsilon: float,
    delta: float,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], int, Receipt]:
    """Add Gaussian noise to the counts of the non-empty cells, and return the cells whose noisy count reaches
    a threshold. Empty cells are never released.

    Parameters
    ----------
    keys : int64[n]
        Keys of the non-empty cells, in ascending order. A key is the position of a cell in the domain, from 0.
    counts : int[n]
        Counts of these cells.
    bound : Bound
        Limit on how much one unit, for example a person, can change the table.
    epsilon, delta : float
        Privacy loss ε and failure probability δ of the release.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.

    Returns
    -------
    keys, counts, threshold : int64[k], int64[k] and int
        Keys of the released cells, their noisy counts, and the threshold.
    Receipt
        Receipt that records the privacy cost, with the exact δ.

    Raises
    ------
    ValueError
        If ε is not above 2⁻³⁶, if δ is not between 10⁻²⁰⁰ and 1, or if one unit can change more than a million
        cells.
    """
    made = sparse_noise(bound, float(epsilon), float(delta))
    cells, moved = moves(bound)
    source = Source.of(rng)
    noisy = np.array(counts, np.int64)
    farthest = cells * moved**2
    source.add(discrete_gaussian(made.rate), noisy, moved=farthest, names=keys)
    kept = noisy >= made.threshold
    rho = round_up(farthest * made.rate)
    receipt = source.receipt("gaussian sparse histogram", DP(epsilon, made.delta), rho=rho)
    return sealed(keys[kept]), sealed(noisy[kept]), made.threshold, receipt
