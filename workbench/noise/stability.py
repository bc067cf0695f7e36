"""Release of counts whose noisy value reaches a threshold: stability histograms and noisy comparisons.

A stability histogram releases only non-empty cells, so a released cell reveals that somebody is in this cell.
Suppose that k cells are empty without one person, and that this person adds the counts c_1 to c_k to these
cells. The mechanism adds the noise X to each count, and releases a cell if its noisy count is at least the
threshold T. So the mechanism releases a cell with the count c with probability q(c) = Pr[c + X >= T]. The
probability that it releases at least one of the k cells is 1 − Π (1 − q(c_j)). The threshold is the smallest
integer T for which this probability is at most δ, whatever counts the bound allows the person to add.

Source  Korolova, Kenthapadi, Mishra & Ntoulas, WWW 2009; Bun, Nissim & Stemmer, ITCS 2016.
Differs We use geometric or Gaussian noise. We compute the probability exactly, instead of a bound on it. We
        take the maximum over all counts that the bound allows one unit to add to empty cells.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, frexp, inf, nextafter
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from workbench.data import Bound
from workbench.noise import empty_cells
from workbench.noise.additive import geometric_rho, sampler
from workbench.noise.arguments import check_counts, decay, gaussian_rate
from workbench.noise.empty_cells import EmptyCell, survivor_ranks
from workbench.noise.law import GAUSSIAN, GEOMETRIC, Law
from workbench.noise.laws import two_sided
from workbench.noise.parts import keys_of_parts
from workbench.noise.source import Names, Source
from workbench.privacy import DP, ZCDP, Receipt
from workbench.privacy.enclosures import Interval
from workbench.randomness import Words
from workbench.value import Bool, Int, Num, sealed

# Threshold


class FloatLaplace:
    """Laplace noise with scale l1/ε, drawn in floating point."""

    idealised = True

    def __init__(self, l1: float, epsilon: float):
        self.scale = l1 / epsilon
        self.rate = Fraction(epsilon) / Fraction(l1)

    def add(self, out: Num[np.ndarray, " n"], floats: np.random.Generator) -> None:
        """Add an independent draw to every element of `out`, in place."""
        out += floats.laplace(0, self.scale, len(out))


class PassingCell(EmptyCell):
    """Distribution of the noise on empty cells, for draws of which cells reach a threshold. The noisy values
    of these cells are not drawn.
    """

    def survivors(self, empty: int, words: Words) -> tuple[Any, Any]:
        """Draw which of `empty` cells reach the threshold. Return the numbers of these cells in ascending
        order, and None in place of their values.
        """
        return survivor_ranks(empty, self.survival, words), None


class Comparisons(NamedTuple):
    """Result of noisy comparisons of counts with a threshold. It contains a mask of the counts that reach the
    threshold, the positions of the counts of 0 that reach the threshold, and a receipt that records the
    privacy cost.
    """

    reached: Bool[np.ndarray, " n"]
    zeros: Int[np.ndarray, " k"]
    receipt: Receipt


def noisy_threshold(
    counts: Num[np.ndarray, " n"],
    zeros: int,
    *,
    threshold: float,
    l1: float,
    epsilon: float,
    rng: np.random.Generator | None = None,
    names: tuple[Names, Names] = (None, None),
) -> Comparisons:
    """Add noise to counts, and find the counts whose noisy value reaches a threshold. The function does not
    return the noisy values.

    In a typical table, most counts are 0. Do not list these zeros in `counts`. Pass only how many there are, as
    `zeros`.

    The comparisons cost as much privacy as a release of the noisy counts. Each count of 0 reaches the threshold
    with the same probability, independently of the others. If the counts are integers and the threshold is
    positive, the function draws which zeros reach the threshold, without noise for each zero. So the running
    time does not grow with the number of zeros that stay below the threshold.

    Parameters
    ----------
    counts : int[n] or float[n]
        Counts to compare. Integers get geometric noise. Floats get Laplace noise that is drawn in floating
        point. Because the proof of the guarantee does not hold exactly for such noise, the receipt is then
        marked as `idealised`.
    zeros : int
        Number of additional counts of 0.
    threshold : number
        Threshold, as a number of records. A count reaches the threshold if its noisy value is at least this
        number.
    l1 : number
        Largest total change of the counts that one unit (for example a person) can cause.
    epsilon : number
        Privacy loss ε of all comparisons together.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.
    names : tuple of arrays, optional
        Two arrays of identifiers: for `counts`, and for the counts of 0. Only tests that repeat draws need
        identifiers. Default None.

    Returns
    -------
    Comparisons
        Three results: a mask of the counts that reach the threshold, the ascending positions of the counts of 0
        that reach the threshold, and a receipt.

    Raises
    ------
    ValueError
        If ε or l1 is not a finite number > 0, or if ε/l1 is below 2⁻³⁶.
    """
    source = Source.of(rng)
    rho = None
    if counts.dtype.kind == "f":
        noisy = np.append(counts, np.zeros(zeros))
        every = None if names[0] is None else np.concatenate(names, axis=-1)
        source.add(FloatLaplace(l1, epsilon), noisy, moved=l1, names=every)
        reached = noisy >= threshold
        reached_zeros = np.flatnonzero(reached[len(counts) :])
        reached = reached[: len(counts)]
    else:
        check_counts(counts)
        ratio = decay(l1, epsilon)
        rho = geometric_rho(ratio, l1)
        threshold = ceil(threshold)
        noisy = np.array(counts, np.int64)
        source.add(two_sided(ratio), noisy, moved=l1, names=names[0])
        reached = noisy >= threshold
        if threshold > 0:
            cell = PassingCell(two_sided(ratio).alpha, threshold, 1)
            reached_zeros, _ = source.survive(cell, zeros, names[1])
        else:
            noisy_zeros = np.zeros(zeros, np.int64)
            source.add(two_sided(ratio), noisy_zeros, moved=l1, names=names[1])
            reached_zeros = np.flatnonzero(noisy_zeros >= threshold)
    return Comparisons(reached, reached_zeros, source.receipt("passing", DP(epsilon), rho=rho))


# Stability


class StableCells(NamedTuple):
    """Released cells: their keys (numbers) in ascending order, their noisy counts, the threshold that the
    noisy counts reach, and a receipt that records the privacy cost.
    """

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]
    threshold: int
    receipt: Receipt


def stability_histogram(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    bound: Bound,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    delta: float,
    rng: np.random.Generator | None = None,
) -> StableCells:
    """Add noise to the counts of the non-empty cells, and release the cells whose noisy count reaches a
    threshold. Empty cells are never released.

    The result is (ε, δ)-differentially private for the following reason. Consider the cells that contain
    records of only one unit, for example a person. The probability that any of these cells is released is at
    most δ. If none of these cells is released, the noise on the other cells hides the unit. If you give `rho`
    in place of `epsilon`, the noise is Gaussian, and the result is δ-approximate ρ-zCDP.

    Parameters
    ----------
    keys : int64[n]
        Keys of the non-empty cells, in ascending order. A key is the position of a cell in the domain, from 0.
    counts : int[n]
        Counts of these cells.
    bound : Bound
        Limit on how much one unit, for example a person, can change the table.
    epsilon, rho : number, optional
        Privacy loss ε or ρ of the noise. Give exactly one of the two.
    delta : float
        For each unit, the largest allowed probability that any cell with records of only this unit is
        released.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.

    Returns
    -------
    StableCells
        Released cells with their noisy counts, the threshold as a number of records, and a receipt. The receipt
        records the privacy cost with the exact δ.

    Raises
    ------
    ValueError
        If you give both or neither of `epsilon` and `rho`, or if an argument is outside its range.
    """
    check_counts(counts)
    source = Source.of(rng)
    part, receipt = _stable_part(source, bound, epsilon, rho, delta)
    kept, noisy = stable_cells(keys, counts, part)
    return StableCells(sealed(kept), sealed(noisy), part.threshold, receipt)


class StableParts(NamedTuple):
    """Stability histogram that is drawn in separate parts: its threshold, its parts, and one receipt for all
    parts, which records the privacy cost.
    """

    threshold: int
    parts: list[StablePart]
    receipt: Receipt


@dataclass(frozen=True, repr=False)
class StablePart:
    """Part of a stability histogram: the settings and the secret key of its noise, but not its counts. Anyone
    with the key and the results of a part can compute the counts, so a part is never printed.
    """

    law: Law
    moved: float | Fraction
    threshold: int
    key: bytes | Source


def stable_parts(
    bound: Bound,
    parts: int,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    delta: float,
    rng: bytes | None = None,
) -> StableParts:
    """Prepare a stability histogram whose noise is drawn in parts, for example one part per file.

    Parameters
    ----------
    bound, epsilon, rho, delta
        Bound, and privacy cost of all parts together, as in `stability_histogram`.
    parts : int
        Number of parts.
    rng : bytes, optional
        Use None (the default) for noise that you publish. A key of 32 bytes gives the same noise again, and
        the keys of all parts are derived from it.

    Returns
    -------
    StableParts
        Threshold, parts and receipt. Call `stable_cells` once for each part.

    Raises
    ------
    ValueError
        If you give both or neither of `epsilon` and `rho`, or if an argument is outside its range.
    """
    keys = keys_of_parts(rng, parts)
    part, receipt = _stable_part(Source(rng), bound, epsilon, rho, delta)
    return StableParts(part.threshold, [replace(part, key=key) for key in keys], receipt)


def stable_cells(
    keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"], part: StablePart
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Add noise to the non-empty cells of one part, and return the cells whose noisy count reaches the
    threshold. If you draw the same part again, the result is the same.

    Parameters
    ----------
    keys : int64[n]
        Keys of the non-empty cells, in ascending order. A key is the position of a cell in the domain, from 0.
    counts : int[n]
        Counts of these cells.
    part : StablePart
        One of the parts that `stable_parts` returned.

    Returns
    -------
    int64[k], int64[k]
        Keys of the released cells and their noisy counts.
    """
    noisy = np.array(counts, np.int64)
    source = Source(part.key) if isinstance(part.key, bytes) else part.key
    source.add(sampler(part.law), noisy, moved=part.moved, names=keys)
    kept = noisy >= part.threshold
    return keys[kept], noisy[kept]


def _stable_part(
    source: Source, bound: Bound, epsilon: float | None, rho: float | None, delta: float
) -> tuple[StablePart, Receipt]:
    """Return one part for all cells, which draws its noise from `source`, and the receipt for it."""
    law = _law(bound, epsilon, rho)
    threshold, spent = stability_threshold(bound, epsilon=epsilon, rho=rho, delta=delta)
    if rho is not None:
        part = StablePart(law, bound.l2_squared, threshold, source)
        return part, source.receipt("stability", ZCDP(rho, spent))
    assert epsilon is not None  # one of the two is given
    structure = geometric_rho(Fraction(law.rate), bound.l1, bound.linf)
    receipt = source.receipt("stability", DP(epsilon, spent), rho=structure)
    return StablePart(law, bound.l1, threshold, source), receipt


def _law(bound: Bound, epsilon: float | None, rho: float | None) -> Law:
    if epsilon is not None and rho is None:
        return Law(GEOMETRIC, decay(bound.l1, epsilon))
    if epsilon is None and rho is not None:
        return Law(GAUSSIAN, gaussian_rate(bound.l2_squared, rho))
    raise ValueError("need either epsilon or rho, and not both")


def stability_threshold(
    bound: Bound, *, epsilon: float | None = None, rho: float | None = None, delta: float
) -> tuple[int, float]:
    """Return the smallest threshold that is safe for `stability_histogram`. Consider the cells that contain
    records of only one given unit (for example a person). With a safe threshold, the probability that any of
    these cells is released is at most δ.

    For Gaussian noise with a standard deviation above 512, the threshold may be a little larger than
    necessary.

    Parameters
    ----------
    bound : Bound
        Limit on how much one unit, for example a person, can change the table.
    epsilon, rho : number, optional
        Privacy loss ε or ρ of the noise. Give exactly one of the two.
    delta : float
        For each unit, the largest allowed probability that any cell with records of only this unit is released.
        δ must be between 0 and 1.

    Returns
    -------
    int
        Threshold, as a number of records.
    float
        Largest probability, over all units that the bound allows, that any cell with records of only this unit
        is released. The probability is rounded up to a float.

    Raises
    ------
    ValueError
        If δ, ε or ρ is outside its range, or if you give both or neither of `epsilon` and `rho`.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta = {delta!r} is not allowed: need 0 < delta < 1")
    return smallest_threshold(_law(bound, epsilon, rho), float(delta), bound)


def worst_fillings(bound: Bound) -> list[dict[int, int]]:
    """Return some ways in which one unit can add counts to empty cells. The worst way, with which the release
    of any of these cells is most likely, is among them.

    Each way, called a *filling*, is a dictionary from counts to the number of cells that get this count. Let
    q(c) be the probability that a cell with count c is released. The function g(c) = −log(1 − q(c)) is convex
    on c >= 1, because the noise is log-concave, and the worst filling has the largest sum of g. Among all
    fillings of k cells, the worst is therefore the following. As many cells as possible get the count linf,
    one cell gets the remainder, and each of the others gets the count 1.

    It remains to find the worst k. To fill one more cell, a count of 1 is taken from a cell with count r,
    which changes the sum of g by g(1) − (g(r) − g(r−1)). As k grows, r falls from linf to 2 and then begins
    again at linf. Call each run of r from linf down to 2 a round. Within a round, the changes grow, and all
    rounds have the same changes. So the worst k is the smallest or the largest possible k, or a k at which
    the first or the last whole round ends.
    """
    linf = max(1, int(bound.linf))
    total = max(1, min(int(bound.l1), int(bound.l0) * linf))
    least = -(-total // linf)
    most = min(int(bound.l0), total)
    round_ = max(linf - 1, 1)
    after_first_round = least + (total - least) % round_
    before_last_round = most - (most - total) % round_
    numbers_of_cells = {least, most}
    for cells in (after_first_round, before_last_round):
        if least <= cells <= most:
            numbers_of_cells.add(cells)
    return [_filling(cells, total, linf) for cells in numbers_of_cells]


def _filling(cells: int, total: int, linf: int) -> dict[int, int]:
    """Return a way to distribute the total count `total` over `cells` cells, where as many cells as possible
    get the count `linf`.
    """
    full, rest = divmod(total - cells, max(linf - 1, 1))
    filling = {1: cells - full - (rest > 0)}
    if rest:
        filling[1 + rest] = 1
    if full:
        filling[linf] = full
    return filling


def upper_tail(x: int, law: Law, bits: int) -> Interval:
    """Return an interval that contains the probability that the noise is at least x. For wide Gaussian noise,
    the interval contains an upper bound on this probability.
    """
    if law.kind == GAUSSIAN:
        return empty_cells.upper_tail(Fraction(law.rate), x, bits)
    a = two_sided(law.rate).alpha(bits)
    one = Interval.of(1, bits)
    if x > 0:
        return a**x / (one + a)
    return one - a ** (1 - x) / (one + a)


def failure_probability(threshold: int, bound: Bound, law: Law, bits: int) -> Interval:
    """Return the probability that at least one cell with records of only one unit is released. The unit fills
    cells in the worst way that the bound allows.
    """
    one = Interval.of(1, bits)
    worst = Interval(0, 0, bits)
    for filling in worst_fillings(bound):
        hidden = one
        for count, cells in filling.items():
            hidden = hidden * (one - upper_tail(threshold - count, law, bits)) ** cells
        shown = one - hidden
        worst = Interval(max(worst.lo, shown.lo), max(worst.hi, shown.hi), bits)
    return worst


def _guess(law: Law, delta: float, bound: Bound) -> int:
    """Return a guess of the threshold, at which the search begins."""
    if law.kind != GAUSSIAN:
        return 1
    deviation = float(1 / (2 * law.rate)) ** 0.5
    quantile = -NormalDist().inv_cdf(max(delta / bound.l0, 1e-307))
    return max(1, int(bound.linf + deviation * quantile))


def first_sufficient(suffices: Callable[[int], bool], guess: int) -> int:
    """Return the smallest integer >= 1 for which the function `suffices` is true. The function must then also
    be true for all larger integers. A good guess makes the search faster.
    """
    low, high = 0, guess
    step = max(1, high >> 10)
    while not suffices(high):
        low, high, step = high, high + step, 2 * step
    while high - step > low and suffices(high - step):
        high, step = high - step, 2 * step
    low = max(low, high - step) + 1
    return low + bisect_left(range(low, high), True, key=suffices)


@lru_cache(256)
def smallest_threshold(law: Law, delta: float, bound: Bound) -> tuple[int, float]:
    """Return the smallest threshold for which, with probability at least 1 − δ, no cell with records of only
    one given unit is released. Also return the remaining probability for the worst unit, rounded up.

    The function compares the probability with δ, and increases the precision until the result is certain. The
    comparison always ends, because the probability is a transcendental number and so never equals δ, which is
    a float.
    """
    exact_delta = Fraction(delta)

    def failure_if_allowed(threshold: int) -> Fraction | None:
        bits = max(
            192, 128 - frexp(delta)[1]
        )  # a wide law has no chance below one unit of 2^-bits
        while True:
            failure = failure_probability(threshold, bound, law, bits)
            if failure.hi <= exact_delta * 2**bits:
                return Fraction(failure.hi, 2**bits)
            if failure.lo > exact_delta * 2**bits:
                return None
            bits *= 2

    def suffices(threshold: int) -> bool:
        return failure_if_allowed(threshold) is not None

    threshold = first_sufficient(suffices, _guess(law, delta, bound))
    spent = failure_if_allowed(threshold)
    assert spent is not None
    rounded = float(spent)
    return threshold, rounded if Fraction(rounded) >= spent else nextafter(rounded, inf)
