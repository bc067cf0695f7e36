"""Private Misra–Gries: noise on a sketch with few counters, and a threshold.

If one element is removed from the stream, either one counter of the sketch decreases by one, or every
counter increases by one (a missing key counts as 0). Up to two keys are then in only one of the two
sketches, with counts of at most 1. The mechanism adds one draw of noise that all counters share, which
hides the second case, and a separate draw to each counter, which hides the first case. The releases can
also differ because one of up to four keys with count 0 reaches the threshold τ. For geometric noise G of
decay ε, this costs δ = 4·e^ε·Pr[G₁ + G₂ >= τ], where Pr[G₁ + G₂ >= t] is

    α^t/(1+α)²·((t+1)·(1−α) + α + 2α²/(1+α)), α = e^−ε, t >= 0.

If a unit has l elements, the proof removes them one by one at ε/l each. The δ of the j-th removal counts
e^((j−1)·ε/l) times.

Source  Lebeda & Tětek, PODS 2023. The price for geometric noise is our own. How the sketches can differ is
        their lemma, and tests/mechanisms/test_sparse.py checks it by enumeration.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from heapq import heapreplace
from math import ceil, expm1, frexp, log

import numpy as np

from workbench.noise.arguments import check_counts, decay
from workbench.noise.laws import two_sided
from workbench.noise.source import Reads, Source
from workbench.noise.stability import first_sufficient
from workbench.privacy import DP, Receipt
from workbench.privacy.enclosures import Interval, round_up
from workbench.randomness import Words
from workbench.value import Int, sealed


def misra_gries_delta(rate: Fraction, elements: int, threshold: int, bits: int) -> Fraction:
    """Return the δ of a release, rounded up. A unit has up to `elements` elements, and the noise
    has decay `rate`.

    Parameters
    ----------
    rate : Fraction
        Decay of the noise for one element.
    elements : int
        Largest number of elements of one unit.
    threshold : int
        τ, at least `elements`.
    bits : int
        Precision.

    Returns
    -------
    Fraction
        The sum Σ_{j=1}^{l} e^(j·rate), times 4·Pr[G₁ + G₂ >= τ].
    """
    one = Interval.of(1, bits)
    alpha = two_sided(rate).alpha(bits)
    rest = one - alpha
    both = alpha * alpha
    inner = Interval.of(threshold + 1, bits) * rest + alpha + (both + both) / (one + alpha)
    price = inner / ((one + alpha) * (one + alpha)) * (one - alpha**elements) / rest
    return 4 * (price * alpha ** (threshold - elements)).above


def _log_expm1(x: float) -> float:
    return x + log(-expm1(-x))


@lru_cache(256)
def misra_gries_threshold(
    l1: float, epsilon: float, delta: float, rule: str
) -> tuple[int, float]:
    """Return the threshold τ, which is an integer, and the δ that the release spends.

    Parameters
    ----------
    l1 : number
        Largest number of elements that one unit adds.
    epsilon, delta : float
        Privacy loss ε and failure probability δ of the release.
    rule : str
        "derived" for the smallest τ whose δ suffices. "published" for 1 + 2·ln(3/δ)/ε by Lebeda & Tětek,
        rounded up, or the derived one if that is larger.

    Returns
    -------
    int, float
        τ in counts, and δ rounded up.
    """
    rate = decay(l1, epsilon)
    elements = int(l1)
    bits = 256 - frexp(delta)[1]
    exact = Fraction(delta)

    def suffices(threshold: int) -> bool:
        reaches = threshold >= elements
        return reaches and misra_gries_delta(rate, elements, threshold, bits) <= exact

    step = min(float(rate), 700.0)
    log_of_one = log(delta) + _log_expm1(step) - _log_expm1(step * elements)
    published = ceil(1 + 2 * (log(3) - log_of_one) / step)
    threshold = first_sufficient(suffices, max(elements, published))
    if rule == "published":
        threshold = max(threshold, published)
    return threshold, round_up(misra_gries_delta(rate, elements, threshold, bits))


def misra_gries(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    size: int,
    *,
    l1: float,
    epsilon: float,
    delta: float,
    rule: str,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], int, Receipt]:
    """Count the elements in a sketch with few counters, and release the noisy counters that reach a
    threshold.

    Parameters
    ----------
    keys : int64[n]
        Keys (numbers) of the cells that are not empty, in ascending order.
    counts : int[n]
        Number of elements in each.
    size : int
        Number of counters.
    l1, epsilon, delta, rule
        The same as for `misra_gries_threshold`.
    rng : Generator, optional
        Seeded generator, which gives the same noise again. Use None (the default) for noise that you publish.

    Returns
    -------
    int64[k], int64[k], int
        Keys, noisy counters and the threshold.
    Receipt
        Cost, with the δ that is spent.

    Raises
    ------
    ValueError
        If ε or l1 is not a finite number > 0, or if ε/l1 is below 2⁻³⁶.
    """
    check_counts(counts)
    threshold, spent = misra_gries_threshold(l1, float(epsilon), float(delta), rule)
    source = Source.of(rng)
    reads = Reads(counts, l1, keys)
    rate = decay(l1, epsilon)
    arguments = keys, counts, size, threshold, rate
    kept, noisy = source.choose(draw_misra_gries, *arguments, reads=reads)
    receipt = source.receipt("Misra–Gries", DP(epsilon, spent))
    return sealed(kept), sealed(noisy), threshold, receipt


def sketch(
    keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"], size: int
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Return the keys and counters of a sketch. The sketch reads a stream that lists the cells in
    order, each as often as its count says.

    All elements with one key follow each other, so the loop handles them together. If the key has
    no counter, the elements lower all counters by the same amount, until one is 0. The elements
    that are left take over the counter of the smallest key with counter 0. The array stores each
    counter minus a common number, so that one step lowers all of them. Keys below 0 are
    placeholders for unused counters.
    """
    heap = [(0, key) for key in range(-size, 0)]
    lowered = 0
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        down = min(count, heap[0][0] - lowered)
        lowered += down
        if count > down:
            heapreplace(heap, (lowered + count - down, key))
    real = sorted((key, value - lowered) for value, key in heap if key >= 0)
    columns = np.array(real, np.int64).reshape(-1, 2).T
    return columns[0], columns[1]


def draw_misra_gries(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    size: int,
    threshold: int,
    rate: Fraction,
    words: Words,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Return the keys and noisy counters of the sketch that reach the threshold."""
    kept, counters = sketch(keys, counts, size)
    noise = np.zeros(1 + len(kept), np.int64)
    two_sided(rate).add(noise, words)
    noisy = counters + noise[0] + noise[1:]
    reached = noisy >= threshold
    return kept[reached], noisy[reached]
