"""Public hash functions of keys, and the loops over them.

h(x) = ((a + x_high)·(b + x_low) + c) mod 2^64 with three random words a, b, c and the key's halves of
32 bits each: its upper 33 bits are uniform, and independent for any two keys. Alone it is so regular
that in a sketch all pairs of keys at one distance tend to collide together, which makes sums over many
cells far worse than their variance should be. Keys of a sketch are therefore mixed first, by a random
bijection of 64 bits, after which hardly two pairs have the same distance.

Source  Thorup, "High Speed Hashing for Integers and Strings", 2015: pair-multiply-shift; the mixing has
        the form of MurmurHash3's finaliser, with random multipliers.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int, UInt64

from workbench.compiled import njit
from workbench.domain import Domain
from workbench.workload import Ranges, Subsets, Workload

MAX_LOOKUPS = 2**32  # look-ups in one answer: some twenty seconds
_EACH = 16  # a cell counts for at least so many

_HALF, _SIGN = np.uint64(32), np.uint64(63)
_LOW, _ONE = np.uint64(2**32 - 1), np.uint64(1)  # numba turns mixed signs into floats
_PLACE = np.uint64(63)


@njit(cache=True, nogil=True)
def _hash(x, a, b, c):
    return (a + (x >> _HALF)) * (b + (x & _LOW)) + c


@njit(cache=True, nogil=True)
def _mixed(x, a, b):
    """A bijection of 64 bits."""
    x = (x ^ (x >> _HALF)) * (a | _ONE)
    x = (x ^ (x >> _HALF)) * (b | _ONE)
    return x ^ (x >> _HALF)


@njit(cache=True, nogil=True)
def add_counts(keys, counts, words, out):
    """Add every count, with its key's sign, to its key's bucket: one row of a sketch.

    Signs have a hash function of their own: the variance needs that signs of two keys are independent
    of each other given the buckets of three.
    """
    a, b, c, d, e, f = words[0], words[1], words[2], words[3], words[4], words[5]
    width = np.uint64(out.size)
    for i in range(keys.size):
        x = _mixed(np.uint64(keys[i]), words[6], words[7])
        sign = np.int64(_hash(x, d, e, f) >> _SIGN)
        bucket = (_hash(x, a, b, c) >> _HALF) * width >> _HALF
        out[bucket] += (counts[i] ^ -sign) + sign


@njit(cache=True, nogil=True)
def sum_buckets(which, lo, hi, words, row, out):
    """out[which[i]] += Σ over keys in [lo[i], hi[i]) of their signed buckets in one row of a sketch."""
    a, b, c, d, e, f = words[0], words[1], words[2], words[3], words[4], words[5]
    width = np.uint64(row.size)
    for i in range(lo.size):
        total = 0.0
        for key in range(lo[i], hi[i]):
            x = _mixed(np.uint64(key), words[6], words[7])
            sign = np.int64(_hash(x, d, e, f) >> _SIGN)
            value = row[(_hash(x, a, b, c) >> _HALF) * width >> _HALF]
            total += (value ^ -sign) + sign
        out[which[i]] += total


@njit(cache=True, nogil=True)
def set_bits(keys, levels, words, bits):
    """Set the bits of every key's first levels; a key has one bit a level."""
    shift = np.uint64(64 - _power(bits.size * 64))
    for i in range(keys.size):
        x = np.uint64(keys[i])
        for j in range(levels[i]):
            at = _hash(x, words[j, 0], words[j, 1], words[j, 2]) >> shift
            bits[at >> np.uint64(6)] |= _ONE << (at & _PLACE)


@njit(cache=True, nogil=True)
def sum_levels(which, lo, hi, words, bits, out):
    """out[which[i]] += Σ over keys in [lo[i], hi[i]) of the level that fits the key's bits best.

    A walk goes up with every set bit and down with every other; the level is the mean place of its
    maxima.
    """
    shift = np.uint64(64 - _power(bits.size * 64))
    for i in range(lo.size):
        total = 0.0
        for key in range(lo[i], hi[i]):
            x = np.uint64(key)
            height, highest, places, times = 0, 0, 0, 1
            for j in range(words.shape[0]):
                at = _hash(x, words[j, 0], words[j, 1], words[j, 2]) >> shift
                height += 1 if bits[at >> np.uint64(6)] >> (at & _PLACE) & _ONE else -1
                if height > highest:
                    highest, places, times = height, j + 1, 1
                elif height == highest:
                    places += j + 1
                    times += 1
            total += places / times
        out[which[i]] += total


@njit(cache=True, nogil=True)
def _power(n):
    power = 0
    while n > 1:
        n >>= 1
        power += 1
    return power


def visited_ranges(
    workload: Workload, domain: Domain, steps: int
) -> tuple[Int[np.ndarray, " pieces"], Ranges]:
    """The ranges that make up each query, if all cells can be visited at `steps` look-ups each."""
    if not isinstance(workload, Ranges | Subsets):
        raise ValueError(
            f"{type(workload).__name__} are not answered from hashed cells: they visit each cell of a "
            "query, and need Ranges or Subsets"
        )
    cells, most = workload.cells(domain).sum(), MAX_LOOKUPS // max(steps, _EACH)
    if cells > most:
        raise ValueError(
            f"the queries cover {cells:.3g} cells, each of which must be visited: need at most {most} "
            f"in one answer, at {steps} look-ups a cell"
        )
    return workload.intervals(domain)


def to_hex(words: UInt64[np.ndarray, "functions words"]) -> str:
    """Hash functions as text."""
    return words.astype("<u8").tobytes().hex()


def from_hex(text: str, words: int) -> UInt64[np.ndarray, "functions words"]:
    """Hash functions, of so many words each, from their text."""
    return np.frombuffer(bytes.fromhex(text), "<u8").astype(np.uint64).reshape(-1, words)
