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

import numpy as np
from jaxtyping import Int, UInt64

from workbench.compiled import njit
from workbench.noise.bits import Words
from workbench.noise.exact import Interval, Real, accept, exp_neg


def retention_probability(decay: Fraction, size: int) -> Real:
    """p = (γ − 1)/(γ − 1 + size), γ = exp(decay): the chance to keep a value out of `size`.

    Else it is drawn uniformly, itself among them: then γ = 1 + p·size/(1 − p).
    """

    def chance(bits: int) -> Interval:
        one, alpha = Interval.of(1, bits), exp_neg(decay, bits)
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
    lost = np.flatnonzero(~accept(chance, lambda i, bits: keep(bits), words))
    out = np.array(codes)
    out[lost] = uniform_codes(size, len(lost), words)
    return out


def uniform_codes(size: int, count: int, words: Words) -> Int[np.ndarray, " count"]:
    """Independent codes below `size`, each equally likely."""
    out, missing = np.empty(count, np.int64), np.arange(count)
    most = 2**64 // size * size
    while len(missing):
        drawn = words(len(missing))
        good = np.ones(len(drawn), bool) if most == 2**64 else drawn < np.uint64(most)
        out[missing[good]] = drawn[good] % np.uint64(size)
        missing = missing[~good]
    return out


def biased_bits(count: int, chance: Real, words: Words) -> UInt64[np.ndarray, " count"]:
    """64·count independent bits, each 1 with probability exactly `chance`.

    A uniform number's digits are drawn until one differs from the chance's: it is below where that
    digit is the smaller. Some 7 words are drawn for each of 64 bits, as most are decided after a few.
    """
    heads, undecided = np.zeros(count, np.uint64), np.full(count, 2**64 - 1, np.uint64)
    where, left = np.arange(count), count
    for digit in _digits(chance):
        left = _decide(heads, undecided, where, left, words(left), digit)
        if not left:
            return heads
    raise AssertionError("digits never end")


def _digits(chance: Real) -> Iterator[bool]:
    """The binary digits of a number in [0, 1) that is no fraction of a power of two."""
    known, bits = 0, 192
    while True:
        x = chance(bits)
        same = bits - (x.lo ^ x.hi).bit_length()  # digits that both ends share
        for i in range(known, same):
            yield bool(x.lo >> bits - 1 - i & 1)
        known, bits = max(known, same), 2 * bits


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
