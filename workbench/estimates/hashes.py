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

from workbench.arrays import Int, UInt64
from workbench.compiled import njit
from workbench.domain import Domain
from workbench.workload import Ranges, Selections, Subsets, Workload

MAX_LOOKUPS = 2**32  # in one answer: some twenty seconds
_CELLS_AT_ONCE = 256
_LEAST_LOOKUPS = 16  # that a cell counts for

# all of them unsigned: numba turns mixed signs into floats
_HALF = np.uint64(32)
_SIGN = np.uint64(63)
_LOW = np.uint64(2**32 - 1)
_ONE = np.uint64(1)
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
def _eight(parameters):
    return (
        parameters[0], parameters[1], parameters[2], parameters[3], parameters[4], parameters[5],
        parameters[6], parameters[7],
    )  # fmt: skip


@njit(cache=True, nogil=True)
def add_counts(keys, counts, parameters, out):
    """Add every count, with its key's sign, to its key's bucket: one row of a sketch.

    Signs have a hash function of their own: the variance needs that signs of two keys are independent
    of each other given the buckets of three.
    """
    a, b, c, d, e, f, mix_a, mix_b = _eight(parameters)
    width = np.uint64(out.size)
    for i in range(keys.size):
        x = _mixed(np.uint64(keys[i]), mix_a, mix_b)
        sign = np.int64(_hash(x, d, e, f) >> _SIGN)
        bucket = (_hash(x, a, b, c) >> _HALF) * width >> _HALF
        out[bucket] += (counts[i] ^ -sign) + sign


@njit(cache=True, nogil=True)
def sum_buckets(which, lo, hi, parameters, row, out):
    """out[which[i]] += Σ over keys in [lo[i], hi[i]) of their signed buckets in one row of a sketch."""
    a, b, c, d, e, f, mix_a, mix_b = _eight(parameters)
    width = np.uint64(row.size)
    bucket_of = np.empty(_CELLS_AT_ONCE, np.uint64)
    sign_of = np.empty(_CELLS_AT_ONCE, np.int64)
    i = 0
    while i < lo.size:
        n = 0  # single cells: where all their buckets are is known before any is fetched
        while n < _CELLS_AT_ONCE and i + n < lo.size and hi[i + n] - lo[i + n] == 1:
            x = _mixed(np.uint64(lo[i + n]), mix_a, mix_b)
            bucket_of[n] = (_hash(x, a, b, c) >> _HALF) * width >> _HALF
            sign_of[n] = -np.int64(_hash(x, d, e, f) >> _SIGN)
            n += 1
        for j in range(n):
            out[which[i + j]] += (row[bucket_of[j]] ^ sign_of[j]) - sign_of[j]
        i += n
        if n:
            continue
        total = 0.0
        for key in range(lo[i], hi[i]):
            x = _mixed(np.uint64(key), mix_a, mix_b)
            sign = np.int64(_hash(x, d, e, f) >> _SIGN)
            value = row[(_hash(x, a, b, c) >> _HALF) * width >> _HALF]
            total += (value ^ -sign) + sign
        out[which[i]] += total
        i += 1


@njit(cache=True, nogil=True)
def set_bits(keys, levels, parameters, bits):
    """Set the bits of every key's first levels; a key has one bit a level."""
    shift = np.uint64(64 - _power(bits.size * 64))
    for i in range(keys.size):
        x = np.uint64(keys[i])
        for j in range(levels[i]):
            at = _hash(x, parameters[j, 0], parameters[j, 1], parameters[j, 2]) >> shift
            bits[at >> np.uint64(6)] |= _ONE << (at & _PLACE)


@njit(cache=True, nogil=True)
def sum_levels(which, lo, hi, parameters, bits, out):
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
            for j in range(parameters.shape[0]):
                at = _hash(x, parameters[j, 0], parameters[j, 1], parameters[j, 2]) >> shift
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
    workload: Workload, domain: Domain, lookups: int
) -> tuple[Int[np.ndarray, " pieces"], Ranges]:
    """The ranges that make up each query, if all cells can be visited at so many look-ups each."""
    if not isinstance(workload, Ranges | Subsets | Selections):
        raise ValueError(
            f"{type(workload).__name__} are not answered from hashed cells: they visit each cell of a "
            "query, and need Ranges or Subsets, or labels"
        )
    cells = workload.cells(domain).sum()
    max_cells = MAX_LOOKUPS // max(lookups, _LEAST_LOOKUPS)
    if cells > max_cells:
        raise ValueError(
            f"the queries cover {cells:.3g} cells, each of which must be visited: need at most "
            f"{max_cells} in one answer, at {lookups} look-ups a cell"
        )
    return workload.intervals(domain)


def to_hex(parameters: UInt64[np.ndarray, "functions parameters"]) -> str:
    """Hash functions as text."""
    return parameters.astype("<u8").tobytes().hex()


def from_hex(text: str, parameters: int) -> UInt64[np.ndarray, "functions parameters"]:
    """Hash functions, of so many parameters each, from their text."""
    return np.frombuffer(bytes.fromhex(text), "<u8").astype(np.uint64).reshape(-1, parameters)
