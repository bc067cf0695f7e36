"""Exponential mechanism, which chooses candidates by score, and synthetic records from a Dirichlet posterior.

The code divides the interval [0, 1) into one part per candidate. The length of a part is proportional to the
weight of the candidate. A uniform random number then selects the candidate whose part contains the number.
Usually, floating-point arithmetic finds this part. If the number is so close to the end of a part that rounding
could matter, the code uses interval arithmetic with as many bits as necessary. So every candidate is chosen
with exactly the stated probability, even if this probability is too small for a float.

Source  McSherry & Talwar, FOCS 2007, section 3. Inversion is a classical method. The computation of
        exp(−x) with directed rounding is our own.
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
from workbench.privacy import DP, REPLACE, ZCDP, Receipt
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
    adaptive: bool = False,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " rows"], Receipt]:
    """Choose one candidate at random for each row of scores. Candidates with a higher score are more likely.
    The choices are ε-differentially private.

    The probability of candidate i is proportional to exp(ε·score_i / (2·sensitivity)), where score_i is the
    score of candidate i.

    The choices in all rows together cost ε. Suppose that an added unit (for example a person) never changes two
    scores of the same row in opposite directions. Then you may pass `monotone=True`. With this option, the
    probability is proportional to the weight exp(ε·score_i / sensitivity), without the factor 2.

    Even with `monotone=True`, the choices are ε-differentially private. For example, consider a single row in
    which an added unit raises scores. The unit then multiplies each weight by a factor between 1 and e^ε. The
    sum of the weights changes by a factor in the same range. So the ratio of a weight and the sum, which is a
    probability, changes by a factor between e^−ε and e^ε.

    The function uses integer scores unchanged. It rounds float scores down to multiples of the step `grid`. If
    a unit changes the scores of row i by at most sᵢ, the unit changes the rounded scores by at most ⌈sᵢ/grid⌉
    steps, in the same direction. For all rows together, the change is at most ⌈sensitivity/grid⌉ +
    rows_per_unit − 1 steps. The function uses this number as the sensitivity of the rounded scores. If you
    compute scores in floating point, add the rounding error of your computation to the sensitivity.

    Parameters
    ----------
    scores : int or float [rows, candidates]
        Scores, with one row per choice. A candidate with the score −inf is never chosen. The positions of the
        scores −inf must be public.
    sensitivity : number
        Upper bound on the sum of sᵢ over all rows, where sᵢ is the largest change of any score in row i that
        one unit (for example a person) can cause.
    epsilon : number
        Privacy loss ε of all choices together.
    monotone : bool
        True if an added unit never changes two scores of the same row in opposite directions. Default False.
    grid : float, optional
        Step of the rounding: float scores are rounded to multiples of this step. The step must be a power of
        two and public. By default, the step is a thousandth of the sensitivity or less.
    rows_per_unit : int, optional
        Largest number of rows in which one unit changes float scores. Default: all rows.
    available : bool[rows, candidates], optional
        Mask of the candidates that may be chosen, at least one per row. The mask must be public. By default,
        all candidates may be chosen.
    adaptive : bool
        True if ε depends on earlier noisy answers. The receipt then states the cost in ρ, because the proof for
        the sum of such costs holds only for ρ. Default False.
    rng : Generator, optional
        With a seeded generator, you get the same choices again. Use None (the default) for choices that you
        publish.

    Returns
    -------
    int64[rows]
        Index of the chosen candidate in each row.
    Receipt
        Receipt that records the privacy cost of the choices.

    Raises
    ------
    ValueError
        If an argument is not allowed, or if a row has no candidate that may be chosen.
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
    rho = choice_rho(epsilon)
    if adaptive:
        return sealed(chosen), source.receipt("choice", ZCDP(rho))
    return sealed(chosen), source.receipt("choice", DP(epsilon), rho=rho)


def _scores_moved(monotone: bool) -> Callable[[Any, Any], float]:
    """Return a function that measures how far two tables of scores are apart: the largest difference in each
    row, added up over all rows.
    """

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
    """Return the default step for float scores: a power of two that is at most a thousandth of the
    sensitivity.
    """
    exponent = sensitivity.numerator.bit_length() - sensitivity.denominator.bit_length() - 11
    return 2.0 ** max(-1074, min(exponent, 1023))


def sample_candidates(
    scores: Num[np.ndarray, "rows candidates"],
    available: Bool[np.ndarray, "rows candidates"],
    decay: Fraction,
    words: Words,
) -> Int[np.ndarray, " rows"]:
    """Choose one of the available candidates in each row at random. The probability of candidate i is
    proportional to exp(decay·score_i).

    The scores must be integers, but they may be stored as floats. Scores beyond ±2^61 are clipped. Each row
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
    """Return the candidate that the uniform number of each row selects, and a mask of the rows in which
    floating point is not precise enough to decide.

    `behind` says how far each score is below the best score of its row. So the largest weight in a row is 1,
    and the sum of the weights is at least 1. There are three rounding errors. If x = decay·behind is rounded,
    a weight changes by at most x·e^−x·2^−52 < 2^−53. The function exp is assumed to have a relative error of
    at most 2^−41. The sum of n weights has a relative error of at most n·2^−53. The variable `margin` is
    larger than all three together.
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
    """Return the candidate that a uniform number selects, by interval arithmetic. `word` contains the first
    64 bits of the number, and further bits are drawn if necessary.
    """
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
    """Return an interval that contains exp(−x), for x >= 0."""
    if not x:
        return Interval.of(1, bits)
    return Interval(0, 1, bits) if x > bits else exp_neg(x, bits)


# Dirichlet


class SyntheticCounts(NamedTuple):
    """Keys of cells in ascending order, the number of synthetic records in each cell, and a receipt that
    records the privacy cost.
    """

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
    """Draw synthetic records from the counts of a table. First, the function draws a probability for each
    cell, jointly from a Dirichlet distribution. The parameter of this distribution for a cell is alpha plus
    the count of the cell. Then the function draws `records` records with these probabilities.

    To save time, the function first draws the total number of records in empty cells. If this number is small,
    the function assigns these records to empty cells one by one. This method is a Pólya urn (Blackwell &
    MacQueen, Annals of Statistics 1973). The draws use floating point. Therefore, the receipt, which records
    the privacy cost, is marked as `idealised`. The guarantee is for one record that is replaced by another, and
    not for an added or removed record.

    Parameters
    ----------
    keys : int64[n]
        Keys of the non-empty cells, in ascending order. A key is the position of a cell in the domain, from 0.
    counts : int[n]
        Counts of these cells.
    size : int
        Number of all cells of the domain.
    alpha : float
        Number that the function adds to the count of each cell before the draws. With a larger number, the
        synthetic records follow the data less closely.
    records : int
        Number of synthetic records to draw.
    cost : DP
        Privacy cost that the receipt states. The function does not check this cost. You need a proof that draws
        with this `alpha` cost no more.
    rng : Generator, optional
        With a seeded generator, you get the same draws again. By default, the random bits come from the
        operating system.

    Returns
    -------
    SyntheticCounts
        Cells with at least one synthetic record, the number of synthetic records in each of these cells, and
        a receipt.

    Raises
    ------
    ValueError
        If a count is not an integer.
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
    """Draw synthetic records. Return the keys of the cells with at least one record, and the number of
    records in each.
    """
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
