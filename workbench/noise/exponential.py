"""The exponential mechanism, and synthetic records drawn from a Dirichlet posterior.

The cumulative weights of a row divide [0, 1) among its candidates, and a uniform number selects the
candidate in whose part it falls. Floating-point arithmetic decides unless the number is so close to a
boundary that rounding could matter. In that case interval arithmetic with as many bits as necessary
decides. Even candidates that are too unlikely for a float therefore keep their exact probability.

Source  McSherry & Talwar, FOCS 2007, section 3. Inversion is classical. The enclosure of exp(−x) by
        directed rounding is our own.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate
from math import inf
from typing import Any, NamedTuple

import numpy as np

from workbench.noise import kernels
from workbench.noise.additive import choice_rho
from workbench.noise.arguments import capped, check_counts, check_grid, positive
from workbench.noise.parts import DrawnRun, merged
from workbench.noise.source import Reads, Source
from workbench.privacy import DP, REPLACE, Receipt
from workbench.privacy.enclosures import Interval, exp_neg
from workbench.randomness import Words
from workbench.value import Bool, Int, Num, UInt64, sealed

# Exponential

_CELLS_AT_ONCE = 2**18  # stays in cache
_LARGEST_SCORE = 2**61  # differences of scores fit 64 bits


def exponential_mechanism(
    scores: Num[np.ndarray, "rows candidates"],
    *,
    sensitivity: float,
    epsilon: float,
    monotone: bool = False,
    grid: float | None = None,
    rows_per_unit: int | None = None,
    available: Bool[np.ndarray, "rows candidates"] | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " rows"], Receipt]:
    """Choose one candidate for each row of scores. Candidate i has probability ∝ exp(ε·score_i /
    (2·sensitivity)), so the choice is ε-DP.

    One ε pays for the choices in all rows together. Set `monotone` if adding a unit raises all
    scores of a row, or lowers all of them. Then the probability is ∝ exp(ε·score_i / sensitivity),
    without the factor 2. This is still ε-DP. One unit changes each weight by a factor between e^−ε and 1,
    and the sum of the weights by a factor in the same range.

    Integer scores are used unchanged. Float scores are first rounded down to multiples of `grid`.
    If a unit changes the scores of row i by at most sᵢ, it changes the rounded scores by at most
    ⌈sᵢ/grid⌉ steps, in the same direction. For all rows together, this is less than Σ (sᵢ/grid +
    1), and so at most ⌈sensitivity/grid⌉ + rows_per_unit − 1 steps. If you compute scores in
    floating point, add the rounding error of this computation to the sensitivity.

    Parameters
    ----------
    scores : int or float [rows, candidates]
        Scores. A candidate with score −inf is never chosen, and which scores are −inf must be public.
    sensitivity : number
        Upper bound on Σ sᵢ, where sᵢ is the largest change of any score of row i by one unit.
    epsilon : number
        Cost of all choices together.
    monotone : bool
        Whether a unit changes all scores of a row in the same direction.
    grid : float, optional
        Public power of two. Default a thousandth of the sensitivity or less.
    rows_per_unit : int, optional
        Number of rows whose float scores one unit may change. Default all.
    available : bool[rows, candidates], optional
        Mask of the candidates that may be chosen. It must be public, with at least one candidate per row.
    rng : Generator, optional
        Seeded generator, which gives the same choices again. Use None (the default) for choices that you
        publish.

    Returns
    -------
    int64[rows]
        Candidate that each row chooses.
    Receipt
        Cost of the choices.

    Raises
    ------
    ValueError
        If an argument is not allowed.
    """
    scores = np.asarray(scores)
    if not (scores.dtype.kind in "iubf" and scores.ndim == 2 and scores.shape[1]):
        raise ValueError(
            f"scores of shape {scores.shape} and type {scores.dtype} are not allowed: need "
            "numbers, with one row per choice and at least one candidate per row"
        )
    available = (
        np.ones(scores.shape, bool) if available is None else np.asarray(available, bool)
    )
    if available.shape != scores.shape:
        raise ValueError(
            f"available of shape {available.shape} does not fit {scores.shape} scores"
        )
    moved = positive("sensitivity", sensitivity)
    rows = max(1, len(scores)) if rows_per_unit is None else rows_per_unit
    if not (isinstance(rows, int | np.integer) and rows >= 1):
        raise ValueError(f"rows_per_unit = {rows!r} is not allowed: need an integer >= 1")
    if scores.dtype.kind == "f":
        available = available & (scores != -inf)
        if grid is None:
            grid = _default_grid(moved)
        check_grid(grid)
        with np.errstate(over="ignore"):
            steps = np.floor(scores / np.float64(grid))
        scores = np.nan_to_num(steps)  # never a refusal that tells
        moved = Fraction(-(-moved // Fraction(grid)) + int(rows) - 1)
    if not available.any(axis=1).all():
        raise ValueError("a row has no available candidate: need at least one in each row")
    rate = positive("epsilon", epsilon) / (moved if monotone else 2 * moved)
    source = Source.of(rng)
    reads = Reads((scores, available), moved, distance=_scores_moved(monotone))
    chosen = source.choose(sample_candidates, scores, available, capped(rate), reads=reads)
    return sealed(chosen), source.receipt("choice", DP(epsilon), rho=choice_rho(epsilon))


def _scores_moved(monotone: bool) -> Callable[[Any, Any], float]:
    """Return a function that sums, over rows, the largest difference between two tables of scores."""

    def distance(one: Any, other: Any) -> float:
        (scores, available), (others, also) = one, other
        if scores.shape != others.shape or (available != also).any():
            return inf
        moved = np.where(available, scores.astype(float) - others.astype(float), 0)
        if monotone and ((moved > 0).any(axis=1) & (moved < 0).any(axis=1)).any():
            return inf
        return float(np.abs(moved).max(axis=1, initial=0).sum())

    return distance


def _default_grid(sensitivity: Fraction) -> float:
    """Return the largest power of two that is at most a thousandth of the sensitivity, or the smallest
    that a float can hold.
    """
    exponent = sensitivity.numerator.bit_length() - sensitivity.denominator.bit_length() - 11
    return 2.0 ** max(-1074, min(exponent, 1023))


def sample_candidates(
    scores: Num[np.ndarray, "rows candidates"],
    available: Bool[np.ndarray, "rows candidates"],
    decay: Fraction,
    words: Words,
) -> Int[np.ndarray, " rows"]:
    """Draw one of the available candidates in each row. Candidate i has probability ∝ exp(decay ·
    score_i).

    Scores are integers, but they may be stored as floats. Scores beyond ±2^61 are clipped. Each row
    needs at least one available candidate.
    """
    rows, candidates = scores.shape
    chosen = np.empty(rows, np.int64)
    uniform = words(rows)
    step = max(1, _CELLS_AT_ONCE // max(1, candidates))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        allowed = available[part]
        u = uniform[part]
        own = _whole(scores[part])
        best = np.where(allowed, own, -_LARGEST_SCORE).max(axis=1, keepdims=True)
        behind = np.maximum(best - own, 0)
        chosen[part], unsure = _by_floats(behind, allowed, float(decay), u)
        for i in np.flatnonzero(unsure):
            among = np.flatnonzero(allowed[i])
            place = _by_intervals(behind[i, among], decay, int(u[i]), words)
            chosen[start + i] = among[place]
    return chosen


def _whole(scores: Num[np.ndarray, "rows candidates"]) -> Int[np.ndarray, "rows candidates"]:
    if scores.dtype.itemsize < 8:
        return scores.astype(np.int64)
    if scores.dtype.kind == "u":
        return np.minimum(scores, np.uint64(_LARGEST_SCORE)).astype(np.int64)
    largest = _LARGEST_SCORE  # a float too
    return np.clip(scores, -largest, largest).astype(np.int64)


def _by_floats(
    behind: Int[np.ndarray, "rows candidates"],
    available: Bool[np.ndarray, "rows candidates"],
    decay: float,
    uniform: UInt64[np.ndarray, " rows"],
) -> tuple[Int[np.ndarray, " rows"], Bool[np.ndarray, " rows"]]:
    """Return the candidates that the uniform numbers select, and the rows in which floats cannot
    decide.

    The largest weight is 1, and a total at least 1. With x = decay·behind, rounding x moves a weight by
    x·e^−x·2^−52 < 2^−53, an exp with relative error 2^−41 moves the total by the same relative amount, and
    a sum of n weights has a relative error of n·2^−53. The margin covers all of this.
    """
    rows, n = behind.shape
    upper = np.exp(behind * -decay)
    upper[~available] = 0
    np.cumsum(upper, axis=1, out=upper)
    total = upper[:, -1]
    at = (uniform >> np.uint64(11)) * 2.0**-53 * total
    margin = total * (2.0**-40 + n * 2.0**-50)
    chosen = (upper <= at[:, None]).sum(axis=1)
    chosen = np.minimum(chosen, n - 1)
    row = np.arange(rows)
    over = upper[row, chosen] - at
    under = np.where(chosen > 0, at - upper[row, chosen - 1], np.inf)
    return chosen, (over <= margin) | (under <= margin)


def _by_intervals(
    behind: Int[np.ndarray, " candidates"], decay: Fraction, word: int, words: Words
) -> int:
    """Return the candidate that a uniform number selects. `word` contains its first 64 bits."""
    u = word
    known_bits = 64
    bits = 192
    upper = _cumulative(behind, decay, bits)
    while True:
        total = upper[-1]
        low = u * total.lo
        high = (u + 1) * total.hi
        inner = upper[:-1]  # the last boundary is 1, above every uniform number
        below = sum(e.hi << known_bits <= low for e in inner)
        above = sum(e.lo << known_bits >= high for e in inner)
        if below + above == len(inner):
            return below
        u = u << 64 | int(words(1)[0])
        known_bits += 64
        if known_bits > bits:
            bits *= 2
            upper = _cumulative(behind, decay, bits)


def _cumulative(
    behind: Int[np.ndarray, " candidates"], decay: Fraction, bits: int
) -> list[Interval]:
    different, which = np.unique(behind, return_inverse=True)
    weights = [_weight(decay * int(x), bits) for x in different]
    return list(accumulate(weights[i] for i in which))


def _weight(x: Fraction, bits: int) -> Interval:
    """Enclose exp(−x). It is 1 at x = 0, and below 2^−bits for x > bits."""
    if not x:
        return Interval.of(1, bits)
    return Interval(0, 1, bits) if x > bits else exp_neg(x, bits)


# Dirichlet


class SyntheticCounts(NamedTuple):
    """Sorted keys of cells, the number of synthetic records in each, and a receipt."""

    keys: Int[np.ndarray, " k"]
    counts: Int[np.ndarray, " k"]
    receipt: Receipt


def dirichlet_multinomial(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    size: int,
    *,
    alpha: float,
    records: int,
    cost: DP,
    rng: np.random.Generator | None = None,
) -> SyntheticCounts:
    """Draw synthetic records. First draw cell probabilities p ~ Dirichlet(alpha + counts) over all
    `size` cells, then draw `records` records from p.

    The function first draws how many records fall into empty cells. If this number is small, the
    function assigns these records to empty cells one by one, as in a Pólya urn (Blackwell &
    MacQueen, Annals of Statistics 1973). The draws use floats, so the receipt is marked as
    `idealised`. The guarantee is for the replacement of one record.

    Parameters
    ----------
    keys : int64[n]
        Keys (numbers) of the cells that are not empty, in ascending order.
    counts : int[n]
        Counts of these cells.
    size : int
        Number of all cells of the domain.
    alpha : float
        Prior weight of each cell, in records.
    records : int
        Number of records to draw.
    cost : DP
        Cost that the caller has proved for `alpha`.
    rng : Generator, optional
        Seeded generator, which gives the same draws again. Default None.

    Returns
    -------
    SyntheticCounts
        Cells with at least one record, and their numbers of records.

    Raises
    ------
    ValueError
        If the counts are not integers.
    """
    check_counts(counts)
    source = Source.of(rng)
    reads = Reads(counts, 2, names=keys)
    keys, counts = source.choose(
        posterior_counts, keys, counts, size, alpha, records, reads=reads, idealised=True
    )
    receipt = source.receipt("dirichlet", cost, REPLACE)
    return SyntheticCounts(keys, counts, receipt)


def posterior_counts(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    size: int,
    alpha: float,
    records: int,
    floats: np.random.Generator,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Draw the cells of the synthetic records, and the number of records in each."""
    empty = size - len(keys)
    weights = floats.standard_gamma(np.append(empty * alpha, counts + alpha))
    weights /= (
        weights.sum() or 1
    )  # a lone class may underflow; the last takes what rounding left
    drawn = floats.multinomial(records, weights)
    in_empty_cells = int(drawn[0])
    drawn = drawn[1:]
    if in_empty_cells > empty and alpha > 0.01:
        # all at once is faster, and what underflows weighs nothing
        weights = floats.standard_gamma(alpha, empty)
        values = floats.multinomial(in_empty_cells, weights / (weights.sum() or 1))
        ranks = np.flatnonzero(values)
        values = values[ranks]
    else:
        ranks = np.empty(in_empty_cells, np.int64)
        kernels.urn(empty, empty * alpha, floats, ranks)
        ranks, values = np.unique(ranks, return_counts=True)
    keys, drawn = merged([DrawnRun(0, keys, drawn, drawn > 0, ranks, values)])
    return sealed(keys), sealed(drawn)
