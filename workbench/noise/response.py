"""Randomised response, unary counts with flipped bits (ALP), and loops over reports of bits.

Randomised response. The distributions of both variants are exact. A coin is decided in floating point only
if rounding cannot change the result. A flip compares random bits with the binary digits of its probability
until they differ (Knuth & Yao, 1976). Source: Warner, JASA 1965. Retention replacement is from Agrawal,
Srikant & Thomas, SIGMOD 2005, and flipping from Mishra & Sandler, PODS 2006.

Counts in unary.
Source  Aumüller, Lebeda & Pagh, CCS 2021: the ALP mechanism. Differs Rounding and flips have exactly
the stated probabilities. The cost grows with the number of flips, and not with the number of bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, lru_cache
from math import inf
from typing import NamedTuple

import numpy as np

from workbench.compiled import njit
from workbench.noise import hashes, kernels
from workbench.noise.arguments import check_counts, decay
from workbench.noise.empty_cells import survivor_ranks
from workbench.noise.laws import accept
from workbench.noise.source import Names, Reads, Source
from workbench.privacy import DP, LOCAL, Receipt
from workbench.privacy.enclosures import Interval, Real, exp_neg
from workbench.randomness import Words
from workbench.spaces import Domain
from workbench.value import Int, UInt64, sealed

# Bit counts

_MAX_BITS = 2**16  # of a report


class BitLayout(NamedTuple):
    """Layout of the bits in a report: the first bit of each attribute, and the number of words per
    row. An attribute with a single code needs no bit, and its entry is −1.
    """

    starts: Int[np.ndarray, " attributes"]
    words: int


def bit_layout(domain: Domain) -> BitLayout:
    """Return the layout of reports over a domain. There is one bit per code of each attribute.
    Raise a ValueError if there are too many bits.
    """
    bits = [n if n > 1 else 0 for n in domain.shape]
    if sum(bits) > _MAX_BITS:
        raise ValueError(
            f"a domain of {domain.shape} codes is not allowed: with one bit per code, a report "
            f"has {sum(bits)} bits, and at most {_MAX_BITS} are possible"
        )
    starts = np.cumsum([0, *bits])[:-1]
    return BitLayout(np.where(np.array(bits) > 0, starts, -1), -(-sum(bits) // 64))


@njit(cache=True, nogil=True)
def transpose(
    rows: UInt64[np.ndarray, "reports words"], columns: UInt64[np.ndarray, "bits blocks"]
) -> None:
    """Turn columns of bits into rows of bits. Append a row in which all bits are set."""
    one, low = np.uint64(1), np.uint64(63)
    for i in range(rows.shape[0]):
        word, bit = i >> 6, one << (np.uint64(i) & low)
        for j in range(columns.shape[0] - 1):
            if (rows[i, j >> 6] >> (np.uint64(j) & low)) & one:
                columns[j, word] |= bit
        columns[columns.shape[0] - 1, word] |= bit


@njit(cache=True, nogil=True)
def _ones(words: UInt64[np.ndarray, " blocks"]) -> np.int64:
    """Return how many bits are set."""
    a, b, c = (
        np.uint64(0x5555555555555555),
        np.uint64(0x3333333333333333),
        np.uint64(0x0F0F0F0F0F0F0F0F),
    )
    total = np.uint64(0)
    for x in words:
        x = x - ((x >> np.uint64(1)) & a)
        x = (x & b) + ((x >> np.uint64(2)) & b)
        x = (x + (x >> np.uint64(4))) & c
        total += (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return np.int64(total)


@njit(cache=True, nogil=True)
def count_cells(
    columns: UInt64[np.ndarray, "bits blocks"],
    starts: Int[np.ndarray, " attributes"],
    sizes: Int[np.ndarray, " attributes"],
    out: Int[np.ndarray, " cells"],
) -> None:
    """Count, for each query, the reports in which all bits of the query are set. A query names at
    most one bit per attribute. If it names none, it uses the last row.
    """
    k, last = sizes.size, columns.shape[0] - 1
    held = np.empty((k, columns.shape[1]), np.uint64)
    at = np.zeros(k, np.int64)
    for j in range(k):
        held[j] = columns[starts[j]] if j == 0 else held[j - 1] & columns[starts[j]]
    for cell in range(out.size):
        out[cell] = _ones(held[k - 1])
        j = k - 1
        while j >= 0 and at[j] == sizes[j]:
            at[j] = 0
            j -= 1
        if j < 0:
            break
        at[j] += 1
        for i in range(j, k):
            own = columns[last if at[i] == sizes[i] else starts[i] + at[i]]
            if i == 0:
                held[i] = own
            else:
                held[i] = held[i - 1] & own


# Response


class RandomisedReports(NamedTuple):
    """Sorted reports of all tuples, with a receipt. `chance` is the probability that an attribute
    is kept or a bit is flipped.
    """

    reports: np.ndarray
    probabilities: tuple[float, ...]
    receipt: Receipt


def randomised_response(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    domain: Domain,
    *,
    epsilon: float,
    law: str,
    rng: np.random.Generator | None = None,
) -> RandomisedReports:
    """Replace the values of every record at random, separately for each record. The report of a record is
    locally ε-DP, for all its attributes together.

    All attributes with at least two codes get the same share of ε. The function sorts reports by
    value, because the original order of tuples could identify people.

    Parameters
    ----------
    keys : int64[n]
        Keys (numbers) of the cells that are not empty, in ascending order.
    counts : int[n]
        Number of tuples in each.
    domain : Domain
        Attributes of the tuples.
    epsilon : number
        Privacy cost of a tuple's report for that tuple.
    law : "retention" or "flipping"
        "retention" keeps each attribute with probability p, and otherwise draws it uniformly. "flipping"
        writes each attribute as one bit per code, and flips every bit with probability f.
    rng : Generator, optional
        Seeded generator, which gives the same noise again. Use None (the default) for noise that you publish.

    Returns
    -------
    RandomisedReports
        "retention": int64[tuples], sorted keys of the reports, and p for each attribute. "flipping":
        uint64[tuples, words], 64 bits per word with sorted rows, and f. Both have a receipt.

    Raises
    ------
    ValueError
        If the counts are not integers, or for the same reasons as `noise.decay`.
    """
    check_counts(counts)
    randomised = sum(size > 1 for size in domain.shape)
    share = decay(1, epsilon) / max(1, randomised)
    source = Source.of(rng)
    codes = domain.codes(np.repeat(keys, counts))
    channel = _retention if law == "retention" else _flipping
    reads = Reads(np.repeat(keys, counts), 1, distance=_tuples_moved)
    reports, probabilities = channel(codes, domain, share, source, reads)
    return RandomisedReports(
        sealed(reports), probabilities, source.receipt(law, DP(epsilon), LOCAL)
    )


def _retention(
    codes: Int[np.ndarray, "tuples attributes"],
    domain: Domain,
    share: Fraction,
    source: Source,
    reads: Reads,
) -> tuple[Int[np.ndarray, " tuples"], tuple[float, ...]]:
    """Return sorted keys of the reports, and the probability that each attribute is kept."""
    probabilities = []
    for k, size in enumerate(domain.shape):
        if size > 1:
            keep = retention_probability(share, size)
            codes[:, k] = source.choose(retain_or_replace, codes[:, k], size, keep, reads=reads)
            probabilities.append(float(keep(192)))
        else:
            probabilities.append(1.0)
    return np.sort(domain.keys(codes)), tuple(probabilities)


def _flipping(
    codes: Int[np.ndarray, "tuples attributes"],
    domain: Domain,
    share: Fraction,
    source: Source,
    reads: Reads,
) -> tuple[UInt64[np.ndarray, "tuples words"], tuple[float, ...]]:
    """Return bits of the reports, with sorted rows, and the probability that a bit is flipped."""
    starts, width = bit_layout(domain)
    flip = flip_probability(share)
    size = sum(size for size in domain.shape if size > 1)
    bits = source.choose(flipped_codes, codes, starts, size, flip, reads=reads)
    if width:
        spare = 64 * width - size
        bits[:, -1] &= np.uint64(2**64 - 1 >> spare)
        bits = bits[np.lexsort(bits.T)]
    return bits, (float(flip(192)),)


def retention_probability(decay: Fraction, size: int) -> Real:
    """Return the probability p that one of `size` values is kept. It is p = (γ − 1)/(γ − 1 + size)
    with γ = exp(decay).

    If the value is not kept, a uniformly drawn value replaces it, which may be the same. The ratio
    of probabilities is then γ = 1 + p·size/(1 − p).
    """

    def chance(bits: int) -> Interval:
        one = Interval.of(1, bits)
        alpha = exp_neg(decay, bits)
        rest = Interval(alpha.lo * size, alpha.hi * size, bits)
        return (one - alpha) / (one - alpha + rest)

    return cache(chance)


def flip_probability(decay: Fraction) -> Real:
    """Return the probability f = 1/(1 + √γ) that a bit is flipped, with γ = exp(decay).

    The bits of two different codes differ in two places, so the likelihood ratio is ((1 − f)/f)² =
    γ.
    """

    def chance(bits: int) -> Interval:
        alpha = exp_neg(decay / 2, bits)
        return alpha / (Interval.of(1, bits) + alpha)

    return cache(chance)


def _tuples_moved(one: Int[np.ndarray, " n"], other: Int[np.ndarray, " n"]) -> float:
    """Return how many tuples differ between two lists of the same length."""
    if len(one) != len(other):
        return inf
    return len(one) - sum((Counter(one.tolist()) & Counter(other.tolist())).values())


def flipped_codes(
    codes: Int[np.ndarray, "tuples attributes"],
    starts: Int[np.ndarray, " attributes"],
    size: int,
    flip: Real,
    words: Words,
) -> UInt64[np.ndarray, "tuples words"]:
    """Return noisy reports of `size` bits. In a report, one bit is set for the code of each
    attribute. Then every bit is flipped with probability `flip`.
    """
    width = -(-size // 64)
    bits = biased_bits(len(codes) * width, flip, words).reshape(len(codes), width)
    flip_code_bits(bits, codes, starts)
    return bits


def retain_or_replace(
    codes: Int[np.ndarray, " tuples"], size: int, keep: Real, words: Words
) -> Int[np.ndarray, " tuples"]:
    """Keep each code with probability `keep`. Replace the others by uniformly random codes below
    `size`.
    """
    chance = np.full(len(codes), float(keep(192)))
    replaced = np.flatnonzero(~accept(chance, lambda i, bits: keep(bits), words))
    out = np.array(codes)
    out[replaced] = uniform_codes(size, len(replaced), words)
    return out


def uniform_codes(size: int, count: int, words: Words) -> Int[np.ndarray, " count"]:
    """Return independent codes below `size`, each equally likely."""
    codes = np.empty(count, np.int64)
    missing = np.arange(count)
    multiples = 2**64 // size * size  # words below give each code equally often
    while len(missing):
        drawn = words(len(missing))
        if multiples == 2**64:
            good = np.ones(len(drawn), bool)
        else:
            good = drawn < np.uint64(multiples)
        codes[missing[good]] = drawn[good] % np.uint64(size)
        missing = missing[~good]
    return codes


def biased_bits(count: int, chance: Real, words: Words) -> UInt64[np.ndarray, " count"]:
    """Return 64·count independent bits, each 1 with probability exactly `chance`.

    For each bit, the function draws the binary digits of a uniform number until a digit differs
    from that of the probability. The bit is 1 if the uniform number is then the smaller one. A few
    digits usually suffice, so 64 bits take about 7 random words.
    """
    heads = np.zeros(count, np.uint64)
    undecided = np.full(count, 2**64 - 1, np.uint64)
    where = np.arange(count)
    left = count
    for digit in _digits(chance):
        left = _decide(heads, undecided, where, left, words(left), digit)
        if not left:
            return heads
    raise AssertionError("digits never end")


def _digits(chance: Real) -> Iterator[bool]:
    """Yield the binary digits of a number in [0, 1) whose binary expansion does not end."""
    given = 0
    bits = 192
    while True:
        x = chance(bits)
        certain = bits - (x.lo ^ x.hi).bit_length()  # digits that both ends share
        for i in range(given, certain):
            yield bool(x.lo >> bits - 1 - i & 1)
        given = max(given, certain)
        bits *= 2


@njit(cache=True, nogil=True)
def _decide(heads, undecided, where, left, drawn, digit):
    """Draw one digit for each undecided bit. Words with undecided bits move to the front of `where`."""
    k = 0
    for j in range(left):
        i, r = where[j], drawn[j]
        if digit:
            heads[i] |= undecided[i] & ~r
            undecided[i] &= r
        else:
            undecided[i] &= ~r
        where[k] = i
        k += undecided[i] != 0
    return k


@njit(cache=True, nogil=True)
def flip_code_bits(bits, codes, starts):
    """Flip, in each report, the bits of the tuple's codes. Words have 64 bits. An attribute whose
    start is negative has no bit.
    """
    for k in range(len(starts)):
        if starts[k] < 0:
            continue
        for i in range(codes.shape[0]):
            place = np.uint64(starts[k] + codes[i, k])
            bits[i, place >> np.uint64(6)] ^= np.uint64(1) << (place & np.uint64(63))


# Unary

_BITS_AT_ONCE = 2**24


def alp_projection(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    hash_words: UInt64[np.ndarray, "levels 3"],
    size: int,
    *,
    l1: float,
    epsilon: float,
    alpha: float,
    rng: np.random.Generator | None = None,
) -> tuple[UInt64[np.ndarray, " words"], Receipt]:
    """Store counts in unary in `size` bits, each flipped with probability 1/(α+2). The bits are ε-DP.

    The function converts a count x to y = x·ε/(α·l1) levels. It rounds y at random up or down to an
    integer, so that the mean is y, and limits the result to the number of `hash_words`. For each
    level, a hash function determines one bit, which is set. Why this is ε-DP: let f(k) be the
    probability of an output if the number of levels of one cell is k and everything else is fixed.
    One more level sets at most one more bit. A bit that is set and one that is not have likelihoods that
    differ by at most the factor (1−p)/p = α + 1, with p = 1/(α+2). So f changes by at most this factor. For
    real y, the probability of the output is the linear interpolation F of f, with slope
    |F'| <= α·min(f(k), f(k+1)) <= α·F. So log F changes by at most α per level, which is ε/l1 per count and
    ε per unit.

    Parameters
    ----------
    keys : int64[n]
        Keys (numbers) of the cells that are not empty, in ascending order.
    counts : int[n]
        Counts of these cells.
    hash_words : uint64[levels, 3]
        Public hash function for each level.
    size : int
        Number of bits, a power of two >= 64.
    l1 : number
        Largest sum of the changes of all counts by one unit (for example a person).
    epsilon : number
        Cost of the bits.
    alpha : number
        Parameter α > 0. A larger α flips fewer bits, but uses fewer levels per count.
    rng : Generator, optional
        Seeded generator, which gives the same noise again. Use None (the default) for noise that you publish.

    Returns
    -------
    uint64[size/64]
        The bits.
    Receipt
        Receipt that records their privacy cost.

    Raises
    ------
    ValueError
        If an argument is not allowed (see also `noise.decay`).
    """
    check_counts(counts)
    if size < 64 or size.bit_count() > 1:
        raise ValueError(f"size = {size!r} is not allowed: need a power of two >= 64")
    levels_per_count = decay(l1, epsilon) / Fraction(alpha)
    source = Source.of(rng)
    levels = randomised_rounding(counts, levels_per_count, source, keys)
    levels = np.minimum(levels, len(hash_words))
    reads = Reads(counts, l1, names=keys)
    bits = source.choose(
        unary_bits, keys, levels, hash_words, size, Fraction(alpha), reads=reads
    )
    return sealed(bits), source.receipt("unary", DP(epsilon))


def randomised_rounding(
    counts: Int[np.ndarray, " n"], rate: Fraction, source: Source, names: Names = None
) -> Int[np.ndarray, " n"]:
    """Multiply counts by a rate, and round each result at random. The probability of rounding up is
    the fractional part.
    """
    different, which = np.unique(counts, return_inverse=True)
    worth = different.astype(object) * rate.numerator  # as Python's own integers
    below = worth // rate.denominator
    rest = worth % rate.denominator
    chance = (rest / rate.denominator).astype(float)

    def exact(i: int, bits: int) -> Interval:
        return Interval.of(Fraction(rest[which[i]], rate.denominator), bits)

    up = source.toss(chance[which], exact, names)
    return np.minimum(below, 2**62).astype(np.int64)[which] + up


def unary_bits(
    keys: Int[np.ndarray, " n"],
    levels: Int[np.ndarray, " n"],
    hash_words: UInt64[np.ndarray, "levels 3"],
    size: int,
    alpha: Fraction,
    words: Words,
) -> UInt64[np.ndarray, " words"]:
    """Return the noisy bits. First set the bits for the first levels of every key, then flip each
    bit at random.
    """
    bits = np.zeros(size // 64, np.uint64)
    hashes.set_bits(keys, levels, hash_words, bits)
    flip_bits(bits, alpha, words)
    return bits


def flip_bits(bits: UInt64[np.ndarray, " words"], alpha: Fraction, words: Words) -> None:
    """Flip each bit, independently, with probability exactly 1/(α+2)."""
    size = 64 * len(bits)
    for start in range(0, size, _BITS_AT_ONCE):
        portion = min(_BITS_AT_ONCE, size - start)
        flipped = survivor_ranks(portion, _flip_probability(alpha), words)
        kernels.toggle(bits, flipped, start)


@lru_cache(64)
def _flip_probability(alpha: Fraction) -> Real:
    return cache(lambda bits: Interval.of(1 / (alpha + 2), bits))
