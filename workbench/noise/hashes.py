"""Public hash functions of keys, and the loops over them.

The hash is h(x) = ((a + x_high)·(b + x_low) + c) mod 2^64, where a, b, c are random words and x_high, x_low
are the 32-bit halves of the key. The upper 33 bits are uniform, and independent for any two keys. However,
h alone is very regular: pairs of keys at the same distance tend to collide together in a sketch, and sums
over many cells would have far larger errors than their variance suggests. A sketch therefore first applies
a random bijection of 64-bit words to its keys, after which hardly any two pairs have the same distance.

Source  Thorup, "High Speed Hashing for Integers and Strings", 2015: pair-multiply-shift. The mixing has
        the form of MurmurHash3's finaliser, with random multipliers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import in_slices, njit
from workbench.queries import Ranges, Recipe, Selections, Subsets
from workbench.spaces import Domain
from workbench.value import Float, Int, UInt64

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
    """Apply a random bijection to a 64-bit word."""
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
    """Add counts to one row of a sketch. Each key has a bucket and a random sign, and its count is
    added to the bucket with this sign.

    The signs come from a separate hash function. This is necessary for the variance formula, in
    which the signs of two keys must be independent given the buckets of three keys.
    """
    a, b, c, d, e, f, mix_a, mix_b = _eight(parameters)
    width = np.uint64(out.size)
    for i in range(keys.size):
        x = _mixed(np.uint64(keys[i]), mix_a, mix_b)
        sign = np.int64(_hash(x, d, e, f) >> _SIGN)
        bucket = (_hash(x, a, b, c) >> _HALF) * width >> _HALF
        out[bucket] += (counts[i] ^ -sign) + sign


@njit(cache=True, nogil=True)
def sum_buckets(lo, hi, parameters, row, out):
    """Write to out[i] the sum of the signed buckets of all keys from lo[i] to below hi[i], in one
    row of a sketch.
    """
    a, b, c, d, e, f, mix_a, mix_b = _eight(parameters)
    width = np.uint64(row.size)
    bucket_of = np.empty(_CELLS_AT_ONCE, np.uint64)
    sign_of = np.empty(_CELLS_AT_ONCE, np.int64)
    for start in range(0, lo.size, _CELLS_AT_ONCE):
        end = min(start + _CELLS_AT_ONCE, lo.size)
        single = True
        for i in range(start, end):
            single &= hi[i] - lo[i] == 1
        if single:  # where all their buckets are is known before any is fetched
            for i in range(start, end):
                x = _mixed(np.uint64(lo[i]), mix_a, mix_b)
                bucket_of[i - start] = (_hash(x, a, b, c) >> _HALF) * width >> _HALF
                sign_of[i - start] = -np.int64(_hash(x, d, e, f) >> _SIGN)
            for i in range(start, end):
                sign = sign_of[i - start]
                out[i] = (row[bucket_of[i - start]] ^ sign) - sign
            continue
        for i in range(start, end):
            total = 0.0
            for key in range(lo[i], hi[i]):
                x = _mixed(np.uint64(key), mix_a, mix_b)
                sign = -np.int64(_hash(x, d, e, f) >> _SIGN)
                total += (row[(_hash(x, a, b, c) >> _HALF) * width >> _HALF] ^ sign) - sign
            out[i] = total


def compact(row: Int[np.ndarray, " buckets"], cells: float) -> Int[np.ndarray, " buckets"]:
    """Store buckets in half the memory if their values fit. If many cells are visited this saves
    time, because more buckets stay in the processor's cache.
    """
    if cells < row.size or row.min() < -(2**31) or row.max() >= 2**31:
        return row
    return row.astype(np.int32)


@njit(cache=True, nogil=True)
def set_bits(keys, levels, parameters, bits):
    """Set one bit for each of the first levels of every key."""
    shift = np.uint64(64 - _power(bits.size * 64))
    for i in range(keys.size):
        x = np.uint64(keys[i])
        for j in range(levels[i]):
            at = _hash(x, parameters[j, 0], parameters[j, 1], parameters[j, 2]) >> shift
            bits[at >> np.uint64(6)] |= _ONE << (at & _PLACE)


@njit(cache=True, nogil=True)
def sum_levels(lo, hi, parameters, bits, out):
    """Write to out[i] a sum over all keys from lo[i] to below hi[i]. A key contributes the level
    that best explains its bits.

    To find this level, a walk goes up by one at every bit that is set, and down by one at every
    other bit. The level is the mean position at which the walk is highest.
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
        out[i] = total


@njit(cache=True, nogil=True)
def _power(n):
    power = 0
    while n > 1:
        n >>= 1
        power += 1
    return power


class Visited(NamedTuple):
    """Ranges into which queries are split. `which[i]` is the number of the query to which range i
    belongs. It is None if each query is one range.
    """

    ranges: Ranges
    which: Int[np.ndarray, " pieces"] | None
    cells: float  # of all of them
    queries: int

    def sums(
        self, kernel: Callable[..., None], *arguments: Any
    ) -> Float[np.ndarray, " queries"]:
        """Return, for each query, the sum that a compiled loop (`kernel`) computes over the ranges of
        the query.
        """
        sums = np.empty(len(self.ranges))

        def visit(part: slice) -> None:
            kernel(self.ranges.lo[part], self.ranges.hi[part], *arguments, sums[part])

        in_slices(visit, len(sums))
        return sums if self.which is None else np.bincount(self.which, sums, self.queries)


def visited_ranges(workload: Recipe, domain: Domain, lookups: int) -> Visited:
    """Return the ranges of each query. Raise a ValueError if visiting all cells takes too many look-ups."""
    if not isinstance(workload, Ranges | Subsets | Selections):
        raise ValueError(
            f"hashed cells cannot answer {type(workload).__name__}: need Ranges, Subsets or "
            "queries by label, whose cells are visited one by one"
        )
    if isinstance(workload, Ranges):
        which, ranges = None, workload
        cells = _cells(workload.lo, workload.hi)
    else:
        which, ranges = workload.intervals(domain)
        cells = float(workload.cells(domain).sum())
    max_cells = MAX_LOOKUPS // max(lookups, _LEAST_LOOKUPS)
    if cells > max_cells:
        raise ValueError(
            f"the queries cover {cells:.3g} cells, each of which must be visited: need at most "
            f"{max_cells} in one answer, at {lookups} look-ups per cell"
        )
    return Visited(ranges, which, cells, len(workload))


@njit(cache=True, nogil=True)
def _cells(lo, hi):
    """Return the number of cells in ranges, without an array of that length."""
    total = 0.0
    for i in range(lo.size):
        total += hi[i] - lo[i]
    return total


def to_hex(parameters: UInt64[np.ndarray, "functions parameters"]) -> str:
    """Return hash functions as hexadecimal text."""
    return parameters.astype("<u8").tobytes().hex()


def from_hex(text: str, parameters: int) -> UInt64[np.ndarray, "functions parameters"]:
    """Return the hash functions that `to_hex` wrote. State how many parameters each function has."""
    return np.frombuffer(bytes.fromhex(text), "<u8").astype(np.uint64).reshape(-1, parameters)
