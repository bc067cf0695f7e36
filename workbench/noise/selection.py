"""Release of values, for example search terms, without a public list of possible values (partition
selection). A value is likely to be released if many users have it. Random coins, or noisy weights and a
threshold, decide which values are released.

Only values that at least one user has can be released, so a released value reveals that somebody has it. For
each user, consider the values that nobody else has. The probability that any of them is released is at most
δ.

Source  Desfontaines, Voss, Gipson & Mandayam, PoPETs 2022 (the optimal coins); Gopi, Gulhane, Kulkarni, Shen,
        Shokouhi & Yekhanin, ICML 2020 (weights of 1/√t).
Differs Our coins have exactly the stated probability. Weights are rounded down to multiples of 1/1024, the
        noise is a discrete Gaussian, and the threshold is proven for this noise.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial
from hashlib import blake2b
from math import erfc, expm1, isqrt, log1p
from typing import Any

import numpy as np

from workbench.noise.additive import sampler
from workbench.noise.arguments import decay, gaussian_rate
from workbench.noise.law import GAUSSIAN, Law
from workbench.noise.laws import accept
from workbench.noise.source import Reads, Source
from workbench.noise.stability import first_sufficient
from workbench.privacy import DP, ZCDP, Receipt
from workbench.privacy.enclosures import Interval, exp_neg
from workbench.randomness import Words
from workbench.value import Bool, Int

# Coins


class OptimalChance:
    """Function π(n): the largest probability, under (ε, δ)-differential privacy, with which a value of n
    users may be released.

    Suppose that each user has at most m values, and let s = ε/m (`step`) and D = δ/m (`share`). Then π(0) =
    0, and π(n) is the smallest of the three numbers e^s·π(n−1) + D, 1 − e^−s·(1 − π(n−1) − D), and 1. The
    first number is the smallest if π(n−1) <= (1 − D)/(e^s + 1). This is true for all n up to `last`, and for
    these n, π(n) = D·(1 − e^−ns)/((1 − e^−s)·e^−(n−1)s). For larger n, 1 − π(n) = e^−s·(1 − π(n−1) − D).
    """

    def __init__(self, step: Fraction, share: Fraction):
        self.step = step
        self.share = share
        small = min(step, share, Fraction(1))
        self.guard = 64 + 4 * (1 / small).__ceil__().bit_length()  # what divisions may lose
        self.last = first_sufficient(lambda n: not self._rises(n), 1) - 1

    def _rises(self, n: int) -> bool:
        """Return whether the first of the three numbers in the formula for π(n) is smaller than the second.

        The two numbers are never equal, because e^s is transcendental.
        """
        bits = 2 * self.guard
        while True:
            one, share = Interval.of(1, bits), Interval.of(self.share, bits)
            down, power = exp_neg(self.step, bits), exp_neg((n - 1) * self.step, bits)
            left = share * (one - power) * (one + down)
            right = (one - share) * (one - down) * power
            if left.hi <= right.lo or left.lo > right.hi:
                return left.hi <= right.lo
            bits *= 2

    def __call__(self, n: int, bits: int) -> Interval:
        """Return an interval that contains π(n), for n >= 1 users."""
        work = bits + self.guard
        one, share = Interval.of(1, work), Interval.of(self.share, work)
        down = exp_neg(self.step, work)
        risen = min(n, self.last)
        chance = share * (one - exp_neg(risen * self.step, work))
        chance = chance / ((one - down) * exp_neg((risen - 1) * self.step, work))
        if n > self.last:
            power = exp_neg((n - self.last) * self.step, work)
            added = share * down * (one - power) / (one - down)
            chance = one - (power * (one - chance) - added)  # a difference below 0 counts as 0
        return Interval(chance.lo >> self.guard, -(-chance.hi >> self.guard), bits)

    def floats(self, counts: Int[np.ndarray, " n"]) -> Any:
        """Return π(n) for each count n as a float, with an error of at most 2^-50."""
        different, which = np.unique(counts, return_inverse=True)
        chances = np.ones(len(different))
        for i, n in enumerate(different.tolist()):
            chance = self(n, 192)
            if chance.lo == 1 << 192:  # so it is for all larger counts
                break
            chances[i] = min(1.0, float(chance))
        return chances[which]


optimal_chance = lru_cache(64)(OptimalChance)


def select_values(
    labels: np.ndarray,
    counts: Int[np.ndarray, " n"],
    *,
    per_unit: int,
    epsilon: float,
    delta: float,
    rng: np.random.Generator | None = None,
) -> tuple[np.ndarray, Receipt]:
    """Release some of the values, chosen by random coins. A value that many users have is more likely to be
    released. The result is (ε, δ)-differentially private.

    A value that n users have is released with probability π(n) (see `OptimalChance`).

    Parameters
    ----------
    labels : text[n]
        Values that at least one user has, all different.
    counts : int[n]
        Number of users who have each value, at least 1.
    per_unit : int
        Largest number of values that one user has.
    epsilon, delta : number
        Privacy loss ε and failure probability δ of the release.
    rng : Generator, optional
        With a seeded generator, you get the same choices again. Use None (the default) for choices that you
        publish.

    Returns
    -------
    text[k]
        Values that are released, in the order of `labels`.
    Receipt
        Receipt that records the privacy cost.

    Raises
    ------
    ValueError
        If ε or `per_unit` is infinite, zero or negative, or if ε/per_unit is below 2⁻³⁶.
    """
    chance = optimal_chance(decay(per_unit, epsilon), Fraction(delta) / per_unit)
    source = Source.of(rng)
    reads = Reads((labels, counts), per_unit, distance=_counts_moved)
    kept = source.choose(_tossed, labels, counts, chance, reads=reads)
    return kept, source.receipt("values", DP(epsilon, delta))


def _tossed(
    labels: np.ndarray, counts: np.ndarray, chance: OptimalChance, words: Words
) -> np.ndarray:
    """Toss a coin for each value, and return the values whose coins show heads."""
    return labels[
        accept(chance.floats(counts), lambda i, bits: chance(int(counts[i]), bits), words)
    ]


def _counts_moved(one: Any, other: Any) -> float:
    """Return the sum of |a − b| over all values, where a and b are the numbers of users with the value in two
    tables.
    """
    a, b = (dict(zip(*each, strict=True)) for each in (one, other))
    return float(sum(abs(int(a.get(x, 0)) - int(b.get(x, 0))) for x in {*a, *b}))


# Weights

FULL_WEIGHT = 2**10  # steps of a unit with one value
MOST_VALUES = FULL_WEIGHT**2  # of a unit, so that each still weighs a step
_ABOVE = 1 + 2.0**-30  # more than floats can err in a failure


def weight_of(values: int) -> int:
    """Return the weight that a user with t values adds to each of these values. It is 1024/√t, rounded down.
    The squares of the t weights add up to at most 1024².
    """
    return isqrt(MOST_VALUES // values)


def weight_law(rho: float) -> Law:
    """Return the distribution of the Gaussian noise that is added to the weight of each value. `rho` is its
    privacy loss.
    """
    return Law(GAUSSIAN, gaussian_rate(MOST_VALUES, rho))


@lru_cache(64)
def weight_threshold(per_unit: int, rho: float, delta: float) -> tuple[int, float]:
    """Return the smallest proven threshold T for which, with probability at least 1 − δ, none of the values
    that only one given user has is released.

    Suppose that a user has t values that nobody else has. Let w(t) be the weight of each of these values, and
    X the noise. The noisy weight of at least one of the values reaches T with probability 1 − (1 − Pr[w(t) +
    X >= T])^t. For the discrete Gaussian X with variance parameter σ² and x >= 1, Pr[X >= x] is at most the
    probability that a continuous Gaussian is at least x − 1. The reason is that the terms exp(−x²/(2σ²))
    decrease, and that their sum over all integers is at least √(2πσ²) (Canonne, Kamath & Steinke, NeurIPS
    2020, Proposition 25). Because of this bound, T is 1 unit larger than for continuous noise.

    Parameters
    ----------
    per_unit : int
        Largest number of values that one user has.
    rho : number
        Privacy loss ρ of the noise.
    delta : float
        For each user, the largest allowed probability that any of the values that nobody else has is
        released.

    Returns
    -------
    int
        Threshold T, in units of 1/1024 of the weight of a user with a single value.
    float
        For the worst user, the probability that any of the values that nobody else has is released, rounded
        up.
    """
    most = {weight_of(t): t for t in range(1, per_unit + 1)}  # the most values of each weight
    spread = (1 / float(gaussian_rate(MOST_VALUES, rho))) ** 0.5  # √2·σ

    def failure(threshold: int) -> float:
        tails = ((erfc((threshold - w - 1) / spread) / 2, t) for w, t in most.items())
        return _ABOVE * max(-expm1(t * log1p(-tail)) for tail, t in tails)

    above = first_sufficient(lambda x: failure(FULL_WEIGHT + x) <= delta, FULL_WEIGHT)
    threshold = FULL_WEIGHT + above
    return threshold, failure(threshold)


def heavy_values(
    labels: np.ndarray,
    weights: Int[np.ndarray, " n"],
    *,
    per_unit: int,
    epsilon: float | None = None,
    rho: float | None = None,
    delta: float,
    rng: np.random.Generator | None = None,
) -> tuple[np.ndarray, Receipt]:
    """Release the values whose noisy weight reaches a threshold. A user with t values adds about 1/√t to the
    weight of each of these values. Gaussian noise is added to the weights.

    If you give `rho`, the release is δ-approximate ρ-zCDP. If you give `epsilon`, it is (ε, δ)-differentially
    private: the noise costs (ε, δ/2), and the other δ/2 bounds the probability that values of a single user
    are released.

    Parameters
    ----------
    labels : text[n]
        Values that at least one user has, all different.
    weights : int[n]
        Weight of each value: the sum of `weight_of(t)` over the users who have it, where t is the number of
        values of the user.
    per_unit : int
        Largest number of values that one user has.
    epsilon, rho : number, optional
        Privacy loss ε or ρ of the noise. Give exactly one of the two.
    delta : float
        For each user, the largest allowed probability that any of the values that nobody else has is
        released.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.

    Returns
    -------
    text[k]
        Values that are released, in the order of `labels`.
    Receipt
        Receipt that records the privacy cost.

    Raises
    ------
    ValueError
        If a user may have more than 2^20 values.
    """
    if per_unit > MOST_VALUES:
        raise ValueError(
            f"{per_unit} values per user are not allowed: need at most {MOST_VALUES}"
        )
    missed = delta if epsilon is None else delta / 2
    paid = ZCDP(rho or 0.0) if epsilon is None else ZCDP.within(DP(epsilon, delta / 2))
    threshold, spent = weight_threshold(per_unit, paid.rho, missed)
    source = Source.of(rng)
    noisy = np.array(weights, np.int64)
    names = partial(_hashes, labels)
    source.add(sampler(weight_law(paid.rho)), noisy, moved=Fraction(MOST_VALUES), names=names)
    kept: Bool[np.ndarray, " n"] = noisy >= threshold
    if epsilon is None:
        return labels[kept], source.receipt("weights", ZCDP(paid.rho, spent))
    return labels[kept], source.receipt("weights", DP(epsilon, delta), rho=paid.rho)


def _hashes(labels: np.ndarray) -> Any:
    """Return a 64-bit hash of each value, which identifies the value in every table."""
    digests = b"".join(blake2b(x.encode(), digest_size=8).digest() for x in labels)
    return np.frombuffer(digests, np.uint64)
