"""Public hash functions for summaries of a table, and compiled loops that use them.

The hash of a key x is h(x) = ((a + x_high)·(b + x_low) + c) mod 2^64. Here a, b and c are random words, and
x_high and x_low are the two 32-bit halves of the key. The upper 33 bits of the hash are uniform, and
independent for any two keys.

A sketch is a small summary of a table. The counts of its cells are added up in a few buckets, and the hash of
a key chooses the bucket. The hash alone is too regular for this purpose. If two keys are in the same bucket,
then other pairs of keys with the same distance are often in the same bucket. Sums over many cells would then
have far larger errors than their variance suggests. A sketch therefore first applies a random permutation of
all 64-bit words to its keys. After this, hardly any two pairs of keys have the same distance.

Source  Thorup, "High Speed Hashing for Integers and Strings", 2015: pair-multiply-shift. The
        permutation has the form of the last step of MurmurHash3, with random multipliers.
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
    """Apply a random permutation of all 64-bit words to the word x. The words a and b choose the
    permutation.
    """
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
    """Add counts to one row of a sketch, which is an array of buckets. Hash functions give each key a bucket
    and a random sign. The count of the key is added to this bucket with this sign.

    The signs come from a hash function of their own. Otherwise the formula for the variance would not hold:
    it needs signs of two keys that are independent, given the buckets of three keys.
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
    """Estimate sums over ranges of keys from one row of a sketch. For each key from lo[i] to hi[i] − 1, add
    the value of its bucket, multiplied by the sign of the key. Write the sum to out[i].
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
    """Return the buckets of a sketch, as 32-bit integers if their values fit and many cells will be visited.
    Short integers save time, because more buckets stay in the processor's cache.
    """
    if cells < row.size or row.min() < -(2**31) or row.max() >= 2**31:
        return row
    return row.astype(np.int32)


@njit(cache=True, nogil=True)
def set_bits(keys, levels, parameters, bits):
    """Set one bit of `bits` for each of the first levels[i] levels of key i. Each level has a hash function,
    which chooses the bit for a key.
    """
    shift = np.uint64(64 - _power(bits.size * 64))
    for i in range(keys.size):
        x = np.uint64(keys[i])
        for j in range(levels[i]):
            at = _hash(x, parameters[j, 0], parameters[j, 1], parameters[j, 2]) >> shift
            bits[at >> np.uint64(6)] |= _ONE << (at & _PLACE)


@njit(cache=True, nogil=True)
def sum_levels(lo, hi, parameters, bits, out):
    """Estimate sums of levels over ranges of keys. For each key from lo[i] to hi[i] − 1, add the level that
    best explains the bits of the key. Write the sum to out[i].

    To find this level, the loop reads the bits of the key in the order of levels. A number starts at 0, and
    grows by 1 for each bit that is set and falls by 1 for each other bit. The level is the position at which
    the number is largest, or the mean of these positions if there are several.
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
    """Ranges of keys into which queries are split. `which[i]` is the number of the query to which range i
    belongs, or None if each query is one range. `cells` is the number of cells in all ranges together.
    """

    ranges: Ranges
    which: Int[np.ndarray, " pieces"] | None
    cells: float  # of all of them
    queries: int

    def sums(
        self, kernel: Callable[..., None], *arguments: Any
    ) -> Float[np.ndarray, " queries"]:
        """Return one sum per query. The compiled loop `kernel` computes a sum for each range, and the sums of
        the ranges of a query are added up.
        """
        sums = np.empty(len(self.ranges))

        def visit(part: slice) -> None:
            kernel(self.ranges.lo[part], self.ranges.hi[part], *arguments, sums[part])

        in_slices(visit, len(sums))
        return sums if self.which is None else np.bincount(self.which, sums, self.queries)


def visited_ranges(workload: Recipe, domain: Domain, lookups: int) -> Visited:
    """Return the ranges of keys that make up each query. Raise a ValueError if all cells of the queries
    together would need too many look-ups.
    """
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
    """Return the number of cells in all ranges together."""
    total = 0.0
    for i in range(lo.size):
        total += hi[i] - lo[i]
    return total


def to_hex(parameters: UInt64[np.ndarray, "functions parameters"]) -> str:
    """Return the parameters of hash functions as hexadecimal text."""
    return parameters.astype("<u8").tobytes().hex()


def from_hex(text: str, parameters: int) -> UInt64[np.ndarray, "functions parameters"]:
    """Return the parameters of hash functions from the text that `to_hex` wrote. `parameters` is the number
    of parameters per function.
    """
    return np.frombuffer(bytes.fromhex(text), "<u8").astype(np.uint64).reshape(-1, parameters)
