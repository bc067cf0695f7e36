"""Randomised response, and counts that are stored as flipped bits (Approximate Laplace Projection, ALP).

Randomised response protects each record separately: every value is replaced at random with some probability.
There are two variants, retention and flipping. All probabilities are exact. Floating point decides a random
choice only if rounding cannot change the result. To decide whether to flip a bit, the code compares random
bits with the binary digits of the probability until they differ (Knuth & Yao, 1976). Source: Warner, JASA
1965. Retention is from Agrawal, Srikant & Thomas, SIGMOD 2005, and flipping from Mishra & Sandler, PODS 2006.

Counts as flipped bits.
Source  Aumüller, Lebeda & Pagh, CCS 2021: the ALP mechanism.
Differs Rounding and flips have exactly the stated probabilities. The time grows with the number of flips, and
        not with the number of bits.
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
    """Layout of the bits in a report, which is one randomised record. `starts` is the number of the first bit
    of each attribute, and `words` is the number of 64-bit words per report. An attribute with a single code
    (possible value) needs no bit, and its entry in `starts` is −1.
    """

    starts: Int[np.ndarray, " attributes"]
    words: int


def bit_layout(domain: Domain) -> BitLayout:
    """Return the layout of the bits in reports (randomised records) over a domain. There is one bit per code
    (possible value) of each attribute. Raise a ValueError if there are more than 2¹⁶ bits.
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
    """Transpose a matrix of bits: `rows` has one row per report, and `columns` gets one row per bit. The last
    row of `columns` has all bits set.
    """
    one, low = np.uint64(1), np.uint64(63)
    for i in range(rows.shape[0]):
        word, bit = i >> 6, one << (np.uint64(i) & low)
        for j in range(columns.shape[0] - 1):
            if (rows[i, j >> 6] >> (np.uint64(j) & low)) & one:
                columns[j, word] |= bit
        columns[columns.shape[0] - 1, word] |= bit


@njit(cache=True, nogil=True)
def _ones(words: UInt64[np.ndarray, " blocks"]) -> np.int64:
    """Return how many bits are set in all words together."""
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
    """Count, for each query, the reports in which all bits of the query are set, and write the count to
    `out`. For each attribute, a query asks for one code or allows any code. There is one query for each
    combination. If any code is allowed, the query uses the last row of `columns`, in which all bits are set.
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
    """Random reports of all records in sorted order, and a receipt that records the privacy cost.
    `probabilities` contains the probability that the value of an attribute is kept (one per attribute). If
    reports consist of bits, it contains the probability that a bit is flipped.
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
    """Replace the values of every record at random, independently of other records. The result for one record
    is called a report. Each report is ε-differentially private by itself (local privacy), for all attributes
    together. So even someone who sees the report of a record learns little about the record.

    The function divides ε equally among all attributes with at least two possible values. It sorts the reports
    by value, because the original order of the records could identify people.

    Parameters
    ----------
    keys : int64[n]
        Keys of the non-empty cells, in ascending order. A key is the position of a cell in the domain, from 0.
    counts : int[n]
        Number of records in each of these cells.
    domain : Domain
        Domain with the attributes of the records.
    epsilon : number
        Privacy loss ε of the report on one record.
    law : "retention" or "flipping"
        Kind of random change. With "retention", the function keeps each value with a probability p, and
        otherwise replaces the value by a uniformly random value. With "flipping", the function writes each
        attribute as one bit per possible value, where only the bit of the true value is 1. Then it flips every
        bit with a probability f. The function computes p and f from ε.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.

    Returns
    -------
    RandomisedReports
        Sorted reports, probabilities, and a receipt, which records the privacy cost. For "retention", the
        reports are keys of cells (int64[records]), and there is one probability p per attribute. For
        "flipping", the reports are rows of bits (uint64[records, words]), and there is a single probability f.

    Raises
    ------
    ValueError
        If a count is not an integer, or if ε is infinite or below 2⁻³⁶.
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
    """Return the reports for the change "retention", as keys in sorted order. Also return, for each
    attribute, the probability that its value is kept.
    """
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
    """Return the reports for the change "flipping", as rows of bits in sorted order. Also return the
    probability that a bit is flipped.
    """
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
    """Return the probability p with which a value of an attribute with `size` values is kept. It is p = (γ −
    1)/(γ − 1 + size) with γ = exp(decay).

    If the value is not kept, it is replaced by a uniformly random value, which may be the same value. So the
    true value is γ = 1 + p·size/(1 − p) times as likely in the report as any other value.
    """

    def chance(bits: int) -> Interval:
        one = Interval.of(1, bits)
        alpha = exp_neg(decay, bits)
        rest = Interval(alpha.lo * size, alpha.hi * size, bits)
        return (one - alpha) / (one - alpha + rest)

    return cache(chance)


def flip_probability(decay: Fraction) -> Real:
    """Return the probability f with which a bit is flipped. It is f = 1/(1 + √γ) with γ = exp(decay).

    The bits for two different codes differ in two positions. So a report is at most ((1 − f)/f)² = γ times as
    likely for one code as for the other.
    """

    def chance(bits: int) -> Interval:
        alpha = exp_neg(decay / 2, bits)
        return alpha / (Interval.of(1, bits) + alpha)

    return cache(chance)


def _tuples_moved(one: Int[np.ndarray, " n"], other: Int[np.ndarray, " n"]) -> float:
    """Return how many records of a list have no equal partner in another list of the same length. The order
    of the records does not matter.
    """
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
    """Return a random report of `size` bits for each record. First, one bit per attribute is set, which says
    which code the attribute has. Then every bit is flipped with probability `flip`.
    """
    width = -(-size // 64)
    bits = biased_bits(len(codes) * width, flip, words).reshape(len(codes), width)
    flip_code_bits(bits, codes, starts)
    return bits


def retain_or_replace(
    codes: Int[np.ndarray, " tuples"], size: int, keep: Real, words: Words
) -> Int[np.ndarray, " tuples"]:
    """Keep each code with probability `keep`, and replace the others by uniformly random codes from 0 to
    `size` − 1.
    """
    chance = np.full(len(codes), float(keep(192)))
    replaced = np.flatnonzero(~accept(chance, lambda i, bits: keep(bits), words))
    out = np.array(codes)
    out[replaced] = uniform_codes(size, len(replaced), words)
    return out


def uniform_codes(size: int, count: int, words: Words) -> Int[np.ndarray, " count"]:
    """Draw `count` independent codes from 0 to `size` − 1, all equally likely."""
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
    """Draw 64·count independent bits. Each bit is 1 with probability exactly `chance`.

    For each bit, the function draws the binary digits of a uniform number until a digit differs from the same
    digit of the probability. The bit is 1 if the uniform number is the smaller of the two. Usually a few
    digits are enough, so 64 bits take about 7 random words.
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
    """Yield the binary digits of a real number in [0, 1), one after the other. The number must have
    infinitely many digits.
    """
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
    """Draw one binary digit for each undecided bit. The indices of words with undecided bits are moved to the
    front of `where`, and their number is returned.
    """
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
    """Flip, in each report, the bits that belong to the codes of the record. There are 64 bits per word. An
    attribute with a negative start has no bit.
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
    """Store counts in an array of `size` bits, and flip each bit at random with probability 1/(α+2), where α
    is the argument `alpha`. The resulting bits are ε-differentially private.

    The function converts a count x to the number y = x·ε/(α·l1), which is the count in a coarser unit called a
    level. The function rounds y up or down at random to an integer, so that the mean is y. There is one hash
    function for each level. An integer that is larger than the number of hash functions is lowered to this
    number. If the result for a cell is k levels, each of the first k hash functions determines one bit, which
    is set to 1.

    The following argument shows that the bits are ε-differentially private. Consider one cell, and fix all
    other cells. Let f(k) be the probability of a certain output if this cell has k levels. If the cell has one
    more level, at most one more bit is set. So the probability of the output changes by at most the factor
    (1−p)/p = α + 1, where p = 1/(α+2) is the probability of a flip.

    Now suppose that the count of the cell is y levels before rounding, with y between k and k + 1. Let F(y) be
    the probability of the output. Because of random rounding, F interpolates linearly between f(k) and f(k+1).
    The slope of F is at most α·min(f(k), f(k+1)), which is at most α·F. So log F changes by at most α per
    level. If a count changes by 1, log F changes by at most ε/l1. If one unit (for example a person) is added
    or removed, log F changes by at most ε.

    Parameters
    ----------
    keys : int64[n]
        Keys of the non-empty cells, in ascending order. A key is the position of a cell in the domain, from 0.
    counts : int[n]
        Counts of these cells.
    hash_words : uint64[levels, 3]
        Parameters of the hash functions, one row per level. The parameters are public.
    size : int
        Number of bits in the array, a power of two >= 64.
    l1 : number
        Largest total change of the counts that one unit (for example a person) can cause.
    epsilon : number
        Privacy loss ε of the array of bits.
    alpha : number
        Positive number α, which determines the probability of a flip and the size of a level. With a larger α,
        fewer bits are flipped, but counts are rounded more coarsely.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.

    Returns
    -------
    uint64[size/64]
        Array of bits, with 64 bits per word.
    Receipt
        Receipt that records the privacy cost.

    Raises
    ------
    ValueError
        If a count is not an integer, if `size` is not a power of two >= 64, or if ε or l1 is outside its
        range (see `noise.decay`).
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
    """Multiply counts by a rate, and round each product up or down at random. The probability of rounding up
    is the fractional part of the product, so the mean is exact.
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
    """Return an array of `size` noisy bits. First, the function sets the bits for the levels of every key.
    Then it flips each bit at random.
    """
    bits = np.zeros(size // 64, np.uint64)
    hashes.set_bits(keys, levels, hash_words, bits)
    flip_bits(bits, alpha, words)
    return bits


def flip_bits(bits: UInt64[np.ndarray, " words"], alpha: Fraction, words: Words) -> None:
    """Flip each bit independently with probability exactly 1/(α+2), in place."""
    size = 64 * len(bits)
    for start in range(0, size, _BITS_AT_ONCE):
        portion = min(_BITS_AT_ONCE, size - start)
        flipped = survivor_ranks(portion, _flip_probability(alpha), words)
        kernels.toggle(bits, flipped, start)


@lru_cache(64)
def _flip_probability(alpha: Fraction) -> Real:
    return cache(lambda bits: Interval.of(1 / (alpha + 2), bits))
