"""Randomised response, tuple by tuple: values that are kept or replaced, and bits that are flipped.

Both laws are exact: a float decides a coin alone only where it cannot be wrong, and flips compare
random bits with the binary digits of their chance, as many as it takes.
Source  Warner, JASA 1965; retention replacement: Agrawal, Srikant & Thomas, SIGMOD 2005; flipping:
        Mishra & Sandler, PODS 2006. Digits against random bits: Knuth & Yao, 1976.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np

from workbench.arrays import Int, UInt64
from workbench.compiled import njit
from workbench.domain import Domain
from workbench.estimates.bit_counts import bit_layout
from workbench.noise.arguments import check_counts, decay
from workbench.noise.bits import Words
from workbench.noise.exact import Interval, Real, accept, exp_neg
from workbench.noise.source import Source
from workbench.privacy import LOCAL, Receipt
from workbench.value import sealed


class RandomisedReports(NamedTuple):
    """A report for each tuple, sorted, the probability of each attribute's law, and a receipt."""

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
    """Every tuple through a channel of its own: locally ε-DP, all attributes of a tuple together.

    ε is shared equally by the attributes of two codes and more, as exact fractions. Reports come as a
    multiset: tuples are stored by their values, so that their order would tell them.

    Parameters
    ----------
    keys : int64[n], the non-empty cells, sorted.
    counts : int[n], how many tuples each holds.
    domain : the attributes.
    epsilon : what each tuple's report costs it.
    law : "retention", where each attribute is kept with probability p or drawn uniformly; or
        "flipping", where each attribute is one bit for each code, all of them flipped with
        probability f.
    rng : a seeded generator for noise that can be replayed, or None to publish.

    Returns
    -------
    RandomisedReports
        "retention": int64[tuples], keys of the reports, sorted, and p of each attribute. "flipping":
        uint64[tuples, words], 64 bits a word, rows sorted, and f. And a receipt.

    Raises
    ------
    ValueError
        If the counts are no whole numbers, or as `noise.decay`.
    """
    check_counts(counts)
    randomised = sum(size > 1 for size in domain.shape)
    share = decay(1, epsilon) / max(1, randomised)
    source = Source(rng)
    codes = domain.codes(np.repeat(keys, counts))
    channel = _retention if law == "retention" else _flipping
    reports, probabilities = channel(codes, domain, share, source.words)
    return RandomisedReports(
        sealed(reports), probabilities, source.receipt(law, epsilon, relation=LOCAL)
    )


def _retention(
    codes: Int[np.ndarray, "tuples attributes"], domain: Domain, share: Fraction, words: Words
) -> tuple[Int[np.ndarray, " tuples"], tuple[float, ...]]:
    """Keys of the reports, sorted, and the probability that each attribute is kept."""
    probabilities = []
    for k, size in enumerate(domain.shape):
        if size > 1:
            keep = retention_probability(share, size)
            codes[:, k] = retain_or_replace(codes[:, k], size, keep, words)
            probabilities.append(float(keep(192)))
        else:
            probabilities.append(1.0)
    return np.sort(domain.keys(codes)), tuple(probabilities)


def _flipping(
    codes: Int[np.ndarray, "tuples attributes"], domain: Domain, share: Fraction, words: Words
) -> tuple[UInt64[np.ndarray, "tuples words"], tuple[float, ...]]:
    """Bits of the reports, rows sorted, and the probability that a bit is flipped."""
    starts, width = bit_layout(domain)
    flip = flip_probability(share)
    bits = biased_bits(len(codes) * width, flip, words).reshape(len(codes), width)
    flip_code_bits(bits, codes, starts)
    if width:
        spare = 64 * width - sum(size for size in domain.shape if size > 1)
        bits[:, -1] &= np.uint64(2**64 - 1 >> spare)
        bits = bits[np.lexsort(bits.T)]
    return bits, (float(flip(192)),)


def retention_probability(decay: Fraction, size: int) -> Real:
    """p = (γ − 1)/(γ − 1 + size), γ = exp(decay): the chance to keep a value out of `size`.

    Else it is drawn uniformly, itself among them: then γ = 1 + p·size/(1 − p).
    """

    def chance(bits: int) -> Interval:
        one = Interval.of(1, bits)
        alpha = exp_neg(decay, bits)
        rest = Interval(alpha.lo * size, alpha.hi * size, bits)
        return (one - alpha) / (one - alpha + rest)

    return cache(chance)


def flip_probability(decay: Fraction) -> Real:
    """f = 1/(1 + √γ), γ = exp(decay): two one-hot codes differ in two bits, ((1 − f)/f)² = γ."""

    def chance(bits: int) -> Interval:
        alpha = exp_neg(decay / 2, bits)
        return alpha / (Interval.of(1, bits) + alpha)

    return cache(chance)


def retain_or_replace(
    codes: Int[np.ndarray, " tuples"], size: int, keep: Real, words: Words
) -> Int[np.ndarray, " tuples"]:
    """Each code, kept with probability `keep`, or else uniform below `size`."""
    chance = np.full(len(codes), float(keep(192)))
    replaced = np.flatnonzero(~accept(chance, lambda i, bits: keep(bits), words))
    out = np.array(codes)
    out[replaced] = uniform_codes(size, len(replaced), words)
    return out


def uniform_codes(size: int, count: int, words: Words) -> Int[np.ndarray, " count"]:
    """Independent codes below `size`, each equally likely."""
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
    """64·count independent bits, each 1 with probability exactly `chance`.

    A uniform number's digits are drawn until one differs from the chance's: it is below where that
    digit is the smaller. Some 7 words are drawn for each of 64 bits, as most are decided after a few.
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
    """The binary digits of a number in [0, 1) that is no fraction of a power of two."""
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
    """One digit for each bit that is not decided; words with any left move to the front of `where`."""
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
    """Change the bit of each tuple's code of each attribute, 64 in a word; starts < 0: none."""
    for k in range(len(starts)):
        if starts[k] < 0:
            continue
        for i in range(codes.shape[0]):
            place = np.uint64(starts[k] + codes[i, k])
            bits[i, place >> np.uint64(6)] ^= np.uint64(1) << (place & np.uint64(63))
