"""Private Misra–Gries sketch: a summary that counts frequent keys with a few counters. The mechanism adds noise
to the counters, and releases only the counters that reach a threshold.

The sketch reads a stream of elements, each of which has a key. Suppose that one element is removed from the
stream. Then either one counter of the sketch decreases by one, or every counter increases by one. The proof
treats a key without a counter as a counter of 0. Up to two keys can have a counter in only one of the two
sketches, and these counters are at most 1. The mechanism adds one draw of noise that all counters share, which
hides an increase of all counters. The mechanism also adds a separate draw to each counter, which hides a
decrease of one counter. The two releases can also differ because one of up to four keys with a counter of 0
reaches the threshold τ. For two independent draws G₁ and G₂ of geometric noise with decay ε, this costs δ =
4·e^ε·Pr[G₁ + G₂ >= τ], where Pr[G₁ + G₂ >= t] is

    α^t/(1+α)²·((t+1)·(1−α) + α + 2α²/(1+α)), α = e^−ε, t >= 0.

If a unit has l elements, the proof removes these elements one by one, with ε/l for each removal. The δ of the
j-th removal is multiplied by e^((j−1)·ε/l).

Source  Lebeda & Tětek, PODS 2023. The formula for the δ of geometric noise is our own. A lemma of Lebeda &
        Tětek states how the two sketches can differ. The file tests/mechanisms/test_sparse.py checks this lemma
        by enumeration.
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
    """Return the δ that a release of a noisy Misra–Gries sketch costs, rounded up.

    Parameters
    ----------
    rate : Fraction
        Decay of the geometric noise, which is the ε for one element.
    elements : int
        Largest number of elements of one unit.
    threshold : int
        Threshold τ, at least `elements`.
    bits : int
        Precision of the computation, in bits.

    Returns
    -------
    Fraction
        Upper bound on δ. The exact value is 4·Pr[G₁ + G₂ >= τ] times the sum of e^(j·rate) for j = 1 to
        `elements`, where G₁ and G₂ are two draws of the noise.
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
    """Return the threshold τ that a noisy counter of a Misra–Gries sketch must reach to be released. Also
    return the δ that a release with this threshold costs.

    Parameters
    ----------
    l1 : number
        Largest number of records of one unit, for example a person.
    epsilon, delta : float
        Privacy loss ε and failure probability δ of the release.
    rule : str
        Rule for the threshold. "derived" gives the smallest τ that costs at most the given δ. "published" gives
        the threshold from the paper of Lebeda & Tětek, which is 1 + 2·ln(3/δ)/ε for one record per unit,
        rounded up. If the derived threshold is larger, "published" gives the derived threshold.

    Returns
    -------
    int, float
        Threshold τ as a number of records, and the δ that a release with this threshold costs. The δ is rounded
        up.
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
    """Estimate the largest counts of a table with a Misra–Gries sketch, a small data structure that has only
    `size` counters. Add noise to the counters, and release the counters that reach a threshold.

    Parameters
    ----------
    keys : int64[n]
        Keys of the non-empty cells, in ascending order. A key is the position of a cell in the domain, from 0.
    counts : int[n]
        Counts of these cells: the number of records in each cell.
    size : int
        Number of counters in the sketch.
    l1, epsilon, delta, rule : number, number, float and str
        `l1` is the largest number of records of one unit (for example a person). `epsilon` is the privacy loss
        ε, and `delta` is the failure probability δ. `rule` determines the threshold: the threshold of the paper
        ("published"), or a smaller threshold of our own ("derived").
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.

    Returns
    -------
    keys, counts, threshold : int64[k], int64[k] and int
        Keys of the cells whose counters are released, the noisy values of these counters, and the threshold as
        a number of records.
    Receipt
        Receipt that records the privacy cost: the ε that you gave, and the δ of a release with this threshold.

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
    """Return the keys and counters of a sketch with `size` counters. The sketch reads a stream of elements,
    in which each cell occurs as often as its count says.

    The elements of a cell follow one another, so the loop handles them together. Elements whose key has no
    counter lower all counters by the same amount, until one of the counters is 0. The remaining elements of
    this key then take over the counter that is 0. If several counters are 0, the elements take over the
    counter with the smallest key. The code stores each counter plus a common number, so it can lower all
    counters in one step. Negative keys stand for counters that are not used.
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
    """Compute the sketch and add noise to its counters. Return the keys and noisy values of the counters that
    reach the threshold.
    """
    kept, counters = sketch(keys, counts, size)
    noise = np.zeros(1 + len(kept), np.int64)
    two_sided(rate).add(noise, words)
    noisy = counters + noise[0] + noise[1:]
    reached = noisy >= threshold
    return kept[reached], noisy[reached]
