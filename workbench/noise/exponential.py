"""The exponential mechanism: one candidate of each row, with probability exactly ∝ exp(decay · score).

A row's cumulative weights divide [0, 1) among its candidates, and one uniform number says which part it
falls in. Floats decide unless it lies closer to a boundary than their error can be; then intervals do,
with as many bits as that needs. Candidates too unlikely for a float keep their exact chance.

Source  McSherry & Talwar, FOCS 2007, section 3; inversion is classical, exp(−x) by directed rounding
        is ours.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
from jaxtyping import Bool, Int, Num

from workbench.noise.bits import Words
from workbench.noise.exact import Interval, exp_neg

_CELLS = 2**18  # at once: stays in cache
_MOST = 2**61  # differences of scores fit 64 bits


def sample_candidates(
    scores: Num[np.ndarray, "rows candidates"],
    available: Bool[np.ndarray, "rows candidates"],
    decay: Fraction,
    words: Words,
) -> Int[np.ndarray, " rows"]:
    """Candidate i of a row with probability ∝ exp(decay · score_i) among those available, at least one.

    Scores are whole numbers, perhaps as floats; they count as ±2^61 beyond it.
    """
    rows, candidates = scores.shape
    chosen, drawn = np.empty(rows, np.int64), words(rows)
    step = max(1, _CELLS // max(1, candidates))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        own, there, u = _whole(scores[part]), available[part], drawn[part]
        behind = np.maximum(np.where(there, own, -_MOST).max(axis=1, keepdims=True) - own, 0)
        found, near = _by_floats(behind, there, float(decay), u)
        for i in np.flatnonzero(near):
            among = np.flatnonzero(there[i])
            found[i] = among[_by_intervals(behind[i, among], decay, int(u[i]), words)]
        chosen[part] = found
    return chosen


def _whole(scores) -> np.ndarray:
    if scores.dtype.itemsize < 8:
        return scores.astype(np.int64)
    if scores.dtype.kind == "u":
        return np.minimum(scores, np.uint64(_MOST)).astype(np.int64)
    return np.clip(scores, -_MOST, _MOST).astype(np.int64)  # ±2^61 is a float


def _by_floats(behind, available, decay: float, drawn) -> tuple[np.ndarray, np.ndarray]:
    """Which candidates `drawn` falls on, and where floats cannot tell.

    The largest weight is 1, and a total at least 1. With x = decay·behind, rounding x moves a weight by
    x·e^−x·2^−52 < 2^−53, an exp right to 2^−41 moves the total by that part of itself, and a sum of n
    weights is right to n·2^−53 of itself: the margin covers all of it.
    """
    rows, n = behind.shape
    upper = np.exp(behind * -decay)
    upper[~available] = 0
    np.cumsum(upper, axis=1, out=upper)
    total = upper[:, -1]
    at, margin = (drawn >> np.uint64(11)) * 2.0**-53 * total, total * (2.0**-40 + n * 2.0**-50)
    found = (upper <= at[:, None]).sum(axis=1)
    found = np.minimum(found, n - 1)
    row = np.arange(rows)
    over = upper[row, found] - at
    under = np.where(found > 0, at - upper[row, found - 1], np.inf)
    return found, (over <= margin) | (under <= margin)


def _by_intervals(behind, decay: Fraction, word: int, words: Words) -> int:
    """The candidate on which a uniform number falls whose first 64 bits are `word`."""
    u, known, bits = word, 64, 192
    upper = _cumulative(behind, decay, bits)
    while True:
        total = upper[-1]
        low, high = u * total.lo, (u + 1) * total.hi
        inner = upper[:-1]  # the last boundary is 1, above every uniform number
        below = sum(e.hi << known <= low for e in inner)
        if below + sum(e.lo << known >= high for e in inner) == len(inner):
            return below
        u, known = u << 64 | int(words(1)[0]), known + 64
        if known > bits:
            bits *= 2
            upper = _cumulative(behind, decay, bits)


def _cumulative(behind, decay: Fraction, bits: int) -> list[Interval]:
    different, which = np.unique(behind, return_inverse=True)
    weights = [_weight(decay * int(x), bits) for x in different]
    return list(accumulate(weights[i] for i in which))


def _weight(x: Fraction, bits: int) -> Interval:
    """exp(−x), which is 1 at 0, and below 2^−bits where x > bits."""
    if not x:
        return Interval.of(1, bits)
    return Interval(0, 1, bits) if x > bits else exp_neg(x, bits)
