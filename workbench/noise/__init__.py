"""The one door through which private data leaves: noisy values, and a receipt that says what they cost.

Every function takes exact values and returns noisy ones with a `Receipt`; nothing else makes receipts,
so a release's ledger is complete by construction. With `rng=None` the bits come from the operating
system and the laws are exact: fit to publish. With a numpy Generator the same samplers run from its
bits and the receipt says `simulated`. Not constant-time: timing a release tells more than it says.

`geometric`, `laplace`   noise on a vector of values
`added`                  either, by name, with its variance
`survivors`, `top`       non-empty cells with noise, and the empty cells that pass, in one look
`passing`                which of some counts, zeros among them, reach a cut once noise is added
`stable`                 non-empty cells alone, with noise, cut so high that δ covers the rest
`unary`                  counts written in unary at hashed places of a bit array, with flipped bits
`choice`                 one candidate a row, the likelier the higher its score
`dirichlet`              synthetic records from counts and a prior, at a price the caller proves
`randomised_response`    every tuple through a channel of its own, which protects it by itself
`sample`, `take`         the second step of the laborious process: public noisy values, no receipt
`places`, `empty_cell`   what needs no data: a public sample of keys, the law of an empty cell,
`public_words`           random words that the release tells
`stable_cut`             the cut of `stable`
`by_theorem`             where a theorem prices a procedure below the sum of its draws
`unprotected`            a look that nothing protects: the release then promises nothing
`Aligned`                a seeded `rng` under which noise stays with its cell while parameters move
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, inf, isfinite
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Num, UInt64

from workbench.domain import Domain
from workbench.estimates import hashes
from workbench.estimates.bit_reports import bit_layout
from workbench.estimates.summary import geometric_variance
from workbench.noise import exponential, kernels, priorities, response, stability, unary
from workbench.noise.bits import Aligned as Aligned
from workbench.noise.bits import generator as _generator
from workbench.noise.bits import word_source as _words
from workbench.noise.empty_cells import EmptyCell, survivor_ranks
from workbench.noise.exact import Interval, accept
from workbench.noise.laws import two_sided as _two_sided
from workbench.privacy import DP, LOCAL, REPLACE, Receipt
from workbench.table import Bound
from workbench.value import sealed

WITHDRAWN = "(as printed, guarantee withdrawn)"  # how looks end that a paper prices wrongly
MAX_RELEASED_CELLS = 2**28  # cells that a summary may be expected to hold: some 4 GiB

_LARGEST = Fraction(2**60)
_SMALLEST = Fraction(1, 2**36)  # ε/Δ below this would need more than 64-bit counts


class Block(NamedTuple):
    """Consecutive cells with one noise law: a unit moves them by at most `l1`, `epsilon` pays."""

    size: int
    l1: float
    epsilon: float


def decay(l1: float, epsilon: float) -> Fraction:
    """ε/Δ as the exact ratio of the two floats; a ValueError outside what 64-bit counts can hold.

    Above 2^60, where noise is 0 whatever happens, no more is spent.
    """
    ratio = _positive("epsilon", epsilon) / (exact := _positive("l1", l1))
    if ratio < _SMALLEST:
        raise ValueError(
            f"epsilon = {float(epsilon):.3g} is too small where one unit moves "
            f"{float(min(exact, 10**300)):.3g} in all: their ratio must be at least 2^-36"
        )
    return min(ratio, _LARGEST)


def geometric(
    values: Int[np.ndarray, " n"],
    *,
    l1: float,
    epsilon: float,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " n"], Receipt]:
    """Two-sided geometric noise, Pr[X = x] ∝ exp(−|x|·ε/l1): ε-DP for l1-sensitivity `l1`.

    Source: Ghosh, Roughgarden & Sundararajan, STOC 2009. Exact (see `noise.laws`).
    """
    _check(values, 0, 2, 0)
    noisy = np.array(values, np.int64)
    _two_sided(decay(l1, epsilon)).add(noisy, _words(rng))
    return sealed(noisy), _receipt("geometric", epsilon, rng)


def laplace(
    values: Num[np.ndarray, " n"],
    *,
    l1: float,
    epsilon: float,
    grid: float,
    l0: int | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[Num[np.ndarray, " n"], Receipt]:
    """Discrete Laplace noise on the multiples of a public power of two `grid`: ε-DP.

    Values are rounded to the grid first; a unit that moves `l0` coordinates (all, if not given) then
    moves them by at most l1 + l0·grid, unless they are whole numbers and the grid divides 1. Rounding
    the output of a float sampler instead would leak (Mironov, CCS 2012).
    """
    _check_grid(grid)
    values = np.asarray(values)
    whole = values.dtype.kind in "iub" and grid <= 1
    moved = 0 if whole else (values.size if l0 is None else l0)
    steps = Fraction(l1) / Fraction(grid) + moved
    if whole:
        steps_each = round(1 / grid)
        most = 2**62 // steps_each
        units = np.clip(values.astype(np.int64), -most, most) * steps_each
    else:  # never a refusal that tells
        units = np.clip(np.nan_to_num(values / grid), -(2**53), 2**53)
        units = np.rint(units).astype(np.int64)
    _two_sided(decay(steps, epsilon)).add(units, _words(rng))
    return units * grid, _receipt("laplace", epsilon, rng)


def add_noise(
    values: Int[np.ndarray, " n"],
    *,
    l1: float,
    epsilon: float,
    law: str,
    rng: np.random.Generator | None = None,
) -> tuple[Num[np.ndarray, " n"], float, Receipt]:
    """Noise of the named law on whole numbers, its variance, and a receipt: ε-DP at sensitivity `l1`.

    "geometric", or "laplace" on a grid of a thousandth of its scale, or 1/512: whole numbers lie on it.
    """
    if law == "geometric":
        noisy, receipt = geometric(values, l1=l1, epsilon=epsilon, rng=rng)
    else:
        grid = _grid(l1, epsilon)
        noisy, receipt = laplace(values, l1=l1, epsilon=epsilon, grid=grid, rng=rng)
    return noisy, variance(l1, epsilon, law), receipt


def variance(l1: float, epsilon: float, law: str) -> float:
    """Of the noise that `added` draws: 2α/(1−α)², times its grid squared."""
    grid = 1.0 if law == "geometric" else _grid(l1, epsilon)
    ratio = decay(Fraction(l1) / Fraction(grid), epsilon)
    return grid**2 * geometric_variance(float(ratio))


def _grid(l1: float, epsilon: float) -> float:
    ratio = decay(l1, epsilon)
    scale = (
        ratio.denominator.bit_length() - ratio.numerator.bit_length()
    )  # its logarithm, about
    return 2.0 ** max(-9, min(0, scale - 10))


def threshold_sample(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    blocks: Sequence[Block],
    *,
    theta: float,
    sides: int = 2,
    tau: float = 0.0,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], tuple[Receipt, ...]]:
    """Noise on all cells of all blocks, of which those that pass are returned: keys, noisy values.

    A value passes if |v| >= theta (sides = 2) or v >= theta (sides = 1) and, with tau > 0, is then kept
    with probability min(|v|/tau, 1). Noise on the non-empty cells and the survivors among the empty
    ones are one look: together they have the law of geometric noise on every cell, filtered.
    """
    words = _words(rng)
    _check(counts, theta, sides, tau)
    everything = sides == 2 and theta == 0 and tau == 0
    blocks = [Block(*b) for b in blocks]
    laws = [empty_cell(decay(b.l1, b.epsilon), theta, sides, tau) for b in blocks]
    chances = [1.0 if everything else float(law.survival(192)) for law in laws]
    expected = sum(b.size * chance for b, chance in zip(blocks, chances, strict=True))
    check_size(sum(b.size for b in blocks), expected)
    if everything:
        dense = np.zeros(sum(b.size for b in blocks), np.int64)
        dense[keys] = counts
        keys, counts = np.arange(dense.size), dense
    noisy, found = np.array(counts, np.int64), []
    for block, law, (start, own) in zip(blocks, laws, _apart(keys, blocks), strict=True):
        _two_sided(decay(block.l1, block.epsilon)).add(noisy[own], words)
        kept = _sample(noisy[own], theta, sides, tau, words)
        new = survivor_ranks(block.size - kept.size, law.survival, words)
        values = law.values(len(new), words)
        found.append(_merged(keys[own], noisy[own], kept, new, values, start))
    keys, values = map(_joined, zip(*found, strict=True))
    return keys, values, tuple(_receipt("survivors", b.epsilon, rng) for b in blocks)


def priority_sample(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    blocks: Sequence[Block],
    *,
    theta: float,
    most: int,
    sides: int = 2,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], float, tuple[Receipt, ...]]:
    """Noise on all cells of all blocks, of which the `most` with the largest priorities are returned.

    Keys (sorted), noisy values, and τ_s, the next priority (0 if no more than `most` cells pass).
    """
    words = _words(rng)
    _check(counts, theta, sides, 0)
    blocks = [Block(*b) for b in blocks]
    laws = [_two_sided(decay(b.l1, b.epsilon)) for b in blocks]
    size = sum(b.size for b in blocks)
    check_size(size, min(most, size))
    noisy, apart = np.array(counts, np.int64), list(_apart(keys, blocks))
    for law, (_, own) in zip(laws, apart, strict=True):
        law.add(noisy[own], words)
    kept = _passes(noisy, max(ceil(theta), 1), sides)
    occupied = priorities.Candidates(noisy[kept], words)
    empty = [
        (block.size - (own.stop - own.start), law.alpha)
        for block, law, (_, own) in zip(blocks, laws, apart, strict=True)
    ]
    new = priorities.empty_cells(occupied, empty, theta, sides, most, words)
    taken, tau = priorities.largest_priorities([occupied, *(pool for _, _, pool in new)], most)
    parts = np.split(
        taken, np.cumsum([len(occupied.drawn), *(len(where) for _, where, _ in new)])
    )
    kept[kept] = parts[0]
    found = []
    for i, (start, own) in enumerate(apart):
        chosen = [
            (where[part], pool.values[part])
            for part, (block, where, pool) in zip(parts[1:], new, strict=False)
            if block == i
        ]
        where, values = map(_joined, zip(*chosen, strict=True))
        if (where[1:] < where[:-1]).any():
            order = np.argsort(where)
            where, values = where[order], values[order]
        found.append(_merged(keys[own], noisy[own], kept[own], where, values, start))
    keys, values = map(_joined, zip(*found, strict=True))
    return keys, values, tau, tuple(_receipt("survivors", b.epsilon, rng) for b in blocks)


def noisy_threshold(
    counts: Num[np.ndarray, " n"],
    zeros: int,
    *,
    cut: float,
    l1: float,
    epsilon: float,
    rng: np.random.Generator | None = None,
) -> tuple[Bool[np.ndarray, " n"], Int[np.ndarray, " k"], Receipt]:
    """Which of `counts`, and of `zeros` further counts that are 0, reach `cut` with noise on each.

    Only the comparisons are told, which cost no more than the noisy counts. The zeros that pass are
    i.i.d. choices: their places among the zeros, sorted, at a cost of how many there are. Counts that
    are no whole numbers get Laplace noise in floating point: the receipt says `idealised`.
    """
    if counts.dtype.kind == "f":
        noisy = _generator(rng).laplace(0, l1 / epsilon, len(counts) + zeros)
        noisy[: len(counts)] += counts
        passed = noisy >= cut
        receipt = _receipt("passing", epsilon, rng, idealised=True)
        return passed[: len(counts)], np.flatnonzero(passed[len(counts) :]), receipt
    _check(counts, 0, 2, 0)
    ratio, words, cut = decay(l1, epsilon), _words(rng), ceil(cut)
    noisy = np.array(counts, np.int64)
    _two_sided(ratio).add(noisy, words)
    receipt = _receipt("passing", epsilon, rng)
    if cut > 0:
        return (
            noisy >= cut,
            survivor_ranks(zeros, empty_cell(ratio, cut, 1).survival, words),
            receipt,
        )
    drawn = np.zeros(zeros, np.int64)
    _two_sided(ratio).add(drawn, words)
    return noisy >= cut, np.flatnonzero(drawn >= cut), receipt


def stability_histogram(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    bound: Bound,
    *,
    epsilon: float,
    delta: float,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], int, Receipt]:
    """Noise on the non-empty cells alone, of which those that reach `stable_cut` are returned.

    Keys (sorted), noisy values, the cut T, and a receipt with the δ that is really spent. Cells that a
    unit newly fills show with probability δ at most; on the others, and given that none shows, its
    presence is hidden by noise at ε/l1: together (ε, δ).
    """
    _check(counts, 0, 2, 0)
    cut, spent = stability_threshold(bound, epsilon=epsilon, delta=delta)
    noisy = np.array(counts, np.int64)
    _two_sided(decay(bound.l1, epsilon)).add(noisy, _words(rng))
    kept = noisy >= cut
    receipt = _receipt("stability", epsilon, rng, spent)
    return sealed(keys[kept]), sealed(noisy[kept]), cut, receipt


def stability_threshold(bound: Bound, *, epsilon: float, delta: float) -> tuple[int, float]:
    """The smallest cut T of `stable` that fails with probability at most δ, and that probability."""
    if not 0 < delta < 1:
        raise ValueError(f"delta = {delta!r} is not allowed: need 0 < delta < 1")
    return stability.smallest_threshold(decay(bound.l1, epsilon), float(delta), bound)


def alp_projection(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    words: UInt64[np.ndarray, "levels 3"],
    size: int,
    *,
    l1: float,
    epsilon: float,
    alpha: float,
    rng: np.random.Generator | None = None,
) -> tuple[UInt64[np.ndarray, " size/64"], Receipt]:
    """`size` bits (a power of two), each flipped with probability 1/(α+2), in which counts are unary.

    A count x is worth y = x·ε/(α·l1) levels, rounded at random to a neighbouring whole number (its mean
    is y) and cut at the number of `words`: public hash functions, one a level, that say which bit to
    set. Let f(k) be the chance of an output when a cell is rounded to k, all else being equal. One
    level more sets one bit at most, whose likelihoods differ by (1−p)/p = α + 1 at most; so does f.
    Over real y the chance is the linear interpolation F of f, whose slope |F'| <= α·min(f(k), f(k+1))
    <= α·F: log F moves by at most α a level, hence by ε/l1 a count, hence by ε for one unit.
    """
    _check(counts, 0, 2, 0)
    if size < 64 or size.bit_count() > 1:
        raise ValueError(f"size = {size!r} is not allowed: need a power of two >= 64")
    rate, source = decay(l1, epsilon) / Fraction(alpha), _words(rng)
    worth = np.minimum(unary.randomised_rounding(counts, rate, source), len(words))
    bits = np.zeros(size // 64, np.uint64)
    hashes.set_bits(keys, worth, words, bits)
    unary.flip_bits(bits, Fraction(alpha), source)
    return sealed(bits), _receipt("unary", epsilon, rng)


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
    """One candidate of each row: i with probability ∝ exp(ε·score_i / (2·sensitivity)). ε-DP.

    The exponential mechanism (McSherry & Talwar, FOCS 2007), exactly. A unit moves each score of a
    row by at most some sᵢ, Σ sᵢ <= `sensitivity`: rows are disjoint parts of the data, all of them
    paid for by one ε. With `monotone` a unit that is added moves all scores of its row up, or all of
    them down, and ∝ exp(ε·score_i / sensitivity) will do: each weight falls by a factor in [e^−ε, 1]
    and so does their sum. A candidate of score −inf, or not `available`, is never chosen: public
    knowledge, as are the shape and that each row has somebody available.

    Whole numbers stay as they are; floats are first rounded down to the multiples of `grid`, a public
    power of two (a thousandth of the sensitivity or less, if not given). ⌊·⌋ is monotone, and moves by
    whole numbers as its argument does: so a unit moves the rounded scores of a row by at most
    ⌈sᵢ/grid⌉ steps, in the direction in which it moves the scores, and those of the `rows_per_unit`
    rows that it may touch (all, if not given) by less than Σ (sᵢ/grid + 1): at most
    ⌈sensitivity/grid⌉ + rows_per_unit − 1. How far it moves them in floating point, errors of their
    computation included, is for the caller to count.
    """
    scores = np.asarray(scores)
    if not (scores.dtype.kind in "iubf" and scores.ndim == 2 and scores.shape[1]):
        raise ValueError(
            f"scores of shape {scores.shape} and type {scores.dtype} are not allowed: need numbers, "
            "a row for each choice, and at least one candidate a row"
        )
    there = np.ones(scores.shape, bool) if available is None else np.asarray(available, bool)
    if there.shape != scores.shape:
        raise ValueError(f"available of shape {there.shape} does not fit {scores.shape} scores")
    moved = _positive("sensitivity", sensitivity)
    rows = max(1, len(scores)) if rows_per_unit is None else rows_per_unit
    if not (isinstance(rows, int | np.integer) and rows >= 1):
        raise ValueError(f"rows_per_unit = {rows!r} is not allowed: need a whole number >= 1")
    if scores.dtype.kind == "f":
        there, grid = there & (scores != -inf), _thousandth(moved) if grid is None else grid
        _check_grid(grid)
        with np.errstate(over="ignore"):
            scores = np.floor(scores / np.float64(grid))
        scores = np.nan_to_num(scores)  # never a refusal that tells
        moved = Fraction(-(-moved // Fraction(grid)) + int(rows) - 1)
    if not there.any(axis=1).all():
        raise ValueError("a row has no candidate available: need at least one in each")
    rate = _positive("epsilon", epsilon) / (moved if monotone else 2 * moved)
    chosen = exponential.sample_candidates(scores, there, min(rate, _LARGEST), _words(rng))
    return sealed(chosen), _receipt("choice", epsilon, rng)


def dirichlet_multinomial(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    size: int,
    *,
    alpha: float,
    records: int,
    cost: DP,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], Receipt]:
    """Synthetic records: p ~ Dirichlet(alpha + counts) over all `size` cells, then `records` from p.

    Keys (sorted) and counts of the cells that got any; `cost` is what the caller proves of `alpha`,
    about the replacement of a record. The empty cells are one class of the Dirichlet law until it is
    known how many records they get; if few, those then take cells one by one, as in a Pólya urn
    (Blackwell & MacQueen, Annals of Statistics 1973). Drawn with floats: the receipt says `idealised`.
    """
    _check(counts, 0, 2, 0)
    source, empty = _generator(rng), size - len(keys)
    shares = source.standard_gamma(np.append(empty * alpha, counts + alpha))
    shares /= shares.sum() or 1  # a lone class may underflow; the last takes what rounding left
    drawn = source.multinomial(records, shares)
    fresh, drawn = int(drawn[0]), drawn[1:]
    if (
        fresh > empty and alpha > 0.01
    ):  # all at once is faster, and what underflows weighs nothing
        shares = source.standard_gamma(alpha, empty)
        values = source.multinomial(fresh, shares / (shares.sum() or 1))
        places = np.flatnonzero(values)
        values = values[places]
    else:
        ball = np.empty(fresh, np.int64)
        kernels.urn(empty, empty * alpha, source, ball)
        ball.sort()
        first = np.flatnonzero(np.append(True, ball[1:] != ball[:-1])[:fresh])
        places, values = ball[first], np.diff(first, append=fresh)
    keys, counts = _merged(keys, drawn, drawn > 0, places, values)
    receipt = _receipt(
        "dirichlet", cost.epsilon, rng, cost.delta, relation=REPLACE, idealised=True
    )
    return keys, counts, receipt


def randomised_response(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    domain: Domain,
    *,
    epsilon: float,
    law: str,
    rng: np.random.Generator | None = None,
) -> tuple[np.ndarray, tuple[float, ...], Receipt]:
    """Every tuple through a channel of its own: locally ε-DP, all attributes of a tuple together.

    "retention": each attribute is kept with probability p or drawn uniformly; returns the keys of the
    reports, sorted, and p of each attribute. "flipping": each attribute is one bit for each code, all
    of them flipped with probability f; returns 64 bits a word, rows sorted, and f. ε is shared equally
    by the attributes of two codes and more, as exact fractions. Reports come as a multiset: tuples
    are stored by their values, so that their order would tell them.
    """
    _check(counts, 0, 2, 0)
    used = sum(n > 1 for n in domain.shape)
    share, words = decay(1, epsilon) / max(1, used), _words(rng)
    codes = domain.codes(np.repeat(keys, counts))
    receipt = _receipt(law, epsilon, rng, relation=LOCAL)
    if law == "retention":
        kept = []
        for k, n in enumerate(domain.shape):
            if n > 1:
                keep = response.retention_probability(share, n)
                codes[:, k] = response.retain_or_replace(codes[:, k], n, keep, words)
                kept.append(float(keep(192)))
            else:
                kept.append(1.0)
        return sealed(np.sort(domain.keys(codes))), tuple(kept), receipt
    starts, width = bit_layout(domain)
    chance = response.flip_probability(share)
    bits = response.biased_bits(len(codes) * width, chance, words).reshape(len(codes), width)
    response.flip_code_bits(bits, codes, starts)
    if width:
        spare = 64 * width - sum(n for n in domain.shape if n > 1)
        bits[:, -1] &= np.uint64(2**64 - 1 >> spare)
        bits = bits[np.lexsort(bits.T)]
    return sealed(bits), (float(chance(192)),), receipt


def threshold_sample_public(
    noisy: Int[np.ndarray, " n"],
    *,
    theta: float,
    sides: int = 2,
    tau: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Bool[np.ndarray, " n"]:
    """Which of some public noisy values pass the filter and threshold sampling."""
    return _sample(noisy, theta, sides, tau, _words(rng))


def priority_sample_public(
    noisy: Int[np.ndarray, " n"],
    *,
    theta: float,
    most: int,
    sides: int = 2,
    rng: np.random.Generator | None = None,
) -> tuple[Bool[np.ndarray, " n"], float]:
    """Which of some public noisy values have the `most` largest priorities, and τ_s."""
    kept = _passes(noisy, max(ceil(theta), 1), sides)
    taken, tau = priorities.largest_priorities(
        [priorities.Candidates(noisy[kept], _words(rng))], most
    )
    kept[kept] = taken
    return kept, tau


def uniform_keys(
    count: int, size: int, *, rng: np.random.Generator | None = None
) -> Int[np.ndarray, " count"]:
    """`count` distinct keys of a public domain, sorted: a uniform sample that looks at no data."""
    public, chosen = _words(rng), np.empty(0, np.int64)
    if 2 * count > size:
        left_out = uniform_keys(size - count, size, rng=rng) if count < size else chosen
        return np.delete(np.arange(size), left_out)
    while len(chosen) < count:
        more = public(2 * count)
        more = more[more < 2**64 // size * size] % np.uint64(size)  # every key equally often
        more = more.astype(np.int64)
        _, first = np.unique(np.concatenate([chosen, more]), return_index=True)
        chosen = np.concatenate([chosen, more])[np.sort(first)]
    return np.sort(chosen[:count])


def random_words(
    count: int, *, rng: np.random.Generator | None = None
) -> UInt64[np.ndarray, " count"]:
    """`count` random words for a release to tell, as of its hash functions: they look at no data."""
    return sealed(_words(rng)(count))


@lru_cache(256)
def empty_cell(decay: Fraction, theta: float, sides: int, tau: float = 0.0) -> EmptyCell:
    """The law of one empty cell under noise of decay ε/Δ; public, since it holds no data."""
    return EmptyCell(_two_sided(decay).alpha, theta, sides, tau)


def by_theorem(
    name: str,
    cost: DP,
    source: str,
    *,
    rng: np.random.Generator | None,
    idealised: bool = False,
) -> Receipt:
    """The price of a whole procedure where a theorem puts it below the sum of its draws."""
    told = dict(simulated=rng is not None, idealised=idealised)
    return Receipt(f"{name} (by theorem: {source})", cost, **told)


def unprotected(name: str, *, rng: np.random.Generator | None = None) -> Receipt:
    """A look at the data that nothing protects."""
    return Receipt(name, DP(inf), simulated=rng is not None)


def check_size(size: int, released: float) -> None:
    """Refuse, from public quantities alone, a summary too large to hold."""
    if released > MAX_RELEASED_CELLS:
        raise ValueError(
            f"an empty table of {size} cells would already release {released:.3g} of them: "
            f"need at most {MAX_RELEASED_CELLS}; raise theta or tau, or lower size"
        )


def _check(values: np.ndarray, theta: float, sides: int, tau: float) -> None:
    """Refuse, from public quantities alone, what the laws are not about."""
    if values.dtype.kind not in "iub":
        raise ValueError(f"values of type {values.dtype} are not allowed: need whole numbers")
    for name, x in (("theta", theta), ("tau", tau)):
        if not (isfinite(x) and x >= 0):
            raise ValueError(f"{name} = {x!r} is not allowed: need a finite number >= 0")
    if sides not in (1, 2):
        raise ValueError(f"sides = {sides!r} is not allowed: need 1 or 2")


def _passes(noisy, theta: int, sides: int) -> Bool[np.ndarray, " n"]:
    if sides == 1:
        return noisy >= theta
    return (noisy >= theta) | (noisy <= -theta)


def _sample(noisy, theta: float, sides: int, tau: float, words) -> Bool[np.ndarray, " n"]:
    if not tau > 0:
        return _passes(noisy, ceil(theta), sides)
    kept = _passes(noisy, max(ceil(theta), 1), sides)
    low = np.flatnonzero(kept & (np.abs(noisy) < tau))
    chance = np.abs(noisy[low]) / tau

    def exact(i: int, bits: int) -> Interval:
        return Interval.of(abs(int(noisy[low[i]])) / Fraction(tau), bits)

    kept[low] = accept(chance, exact, words)
    return kept


def _apart(keys, blocks: Sequence[Block]) -> Iterator[tuple[int, slice]]:
    """Where each block starts, and which of the sorted keys lie in it."""
    start = 0
    for block in blocks:
        ends = np.searchsorted(keys, np.array([start, start + block.size - 1]))
        last = ends[1] < len(keys) and keys[ends[1]] == start + block.size - 1
        yield start, slice(int(ends[0]), int(ends[1]) + int(last))
        start += block.size


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return sealed(np.concatenate(parts)) if len(parts) > 1 else parts[0]


def _merged(keys, noisy, kept, new, values, start: int = 0):
    """Kept occupied cells and surviving empty ones, by rank from `start` on, in key order."""
    size = int(kept.sum()) + len(new)
    out = np.empty(size, np.int64), np.empty(size, np.int64)
    kernels.merge(keys, noisy, kept, new, values, start, *out)
    return tuple(map(sealed, out))


def _receipt(name: str, epsilon: float, rng, delta: float = 0.0, **rest) -> Receipt:
    return Receipt(name, DP(epsilon, delta), simulated=rng is not None, **rest)


def _positive(name: str, x: float) -> Fraction:
    """The exact value of a finite number > 0."""
    whole = isinstance(x, int | Fraction)  # may be beyond what floats hold
    if not ((whole or isfinite(x)) and x > 0):
        raise ValueError(f"{name} = {x!r} is not allowed: need a finite number > 0")
    return Fraction(x if whole else float(x))  # numpy integers would wrap


def _check_grid(grid: float) -> None:
    if not (isfinite(grid) and grid > 0 and _power_of_two(grid)):
        raise ValueError(f"grid = {grid!r} is not allowed: need a power of two")


def _thousandth(x: Fraction) -> float:
    """The largest power of two that is sure to be at most x/1000, or the next that a float holds."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length() - 11
    return 2.0 ** max(-1074, min(exponent, 1023))


def _power_of_two(x: float) -> bool:
    return Fraction(x).numerator.bit_count() == 1 == Fraction(x).denominator.bit_count()
