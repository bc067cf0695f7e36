"""Rows to cells, by sorting: keys in any order become distinct keys and what each of them counts."""

from __future__ import annotations

import numpy as np

from workbench.arrays import Int, Num

LARGEST_TOTAL = 2**53  # counts up to here, and their sums in float64, are exact
_KEY_BITS = 63  # of an int64 that is not negative


def cells_of_keys(
    keys: Int[np.ndarray, " rows"],
) -> tuple[Int[np.ndarray, " cells"], Int[np.ndarray, " cells"]]:
    """The distinct keys, ascending, and how many rows have each; `keys` are sorted where they are."""
    keys.sort()
    starts = _starts(keys)
    counts = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1])
    counts[-1:] = len(keys) - starts[-1:]
    return keys[starts], counts


def cells_of_counts(
    keys: Int[np.ndarray, " rows"], counts: Int[np.ndarray, " rows"]
) -> tuple[Int[np.ndarray, " cells"], Int[np.ndarray, " cells"]]:
    """The distinct keys of rows that count something, ascending, and what their counts sum to.

    Key and count are sorted as one number where both fit; numbers are sorted much faster than orders.
    """
    total = counts.sum(dtype=float)
    if total > LARGEST_TOTAL:
        raise ValueError(f"counts must sum to at most {LARGEST_TOTAL}")
    if not len(keys):
        return keys, counts
    bits = int(counts.max()).bit_length()
    if int(keys.max()).bit_length() + bits <= _KEY_BITS:
        packed = (keys << bits) | counts
        packed.sort()
        keys = packed >> bits
        counts = packed & ((1 << bits) - 1)
    else:
        order = np.argsort(keys)
        keys = keys[order]
        counts = counts[order]
    starts = _starts(keys)
    if len(starts) < len(keys):
        keys = keys[starts]
        counts = np.add.reduceat(counts, starts)
    occupied = counts > 0
    if occupied.all():
        return keys, counts
    return keys[occupied], counts[occupied]


def whole_counts(counts: Num[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """Counts as int64, or a ValueError that names the first that is not a whole number >= 0."""
    counts = np.asarray(counts)
    if counts.dtype.kind not in "iufb":
        try:
            counts = counts.astype(float)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"counts must be whole numbers, got {counts.dtype}") from None
    bad = is_no_count(counts)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"count {counts[row]!s} in row {row} is not allowed: need whole numbers >= 0"
        )
    return counts.astype(np.int64)


def is_no_count(counts: Num[np.ndarray, " rows"]) -> np.ndarray:
    """Where numbers are no whole numbers from 0 to 2⁵³."""
    bad = ~((counts >= 0) & (counts <= LARGEST_TOTAL))  # NaN is bad
    return bad | (counts != np.floor(counts)) if counts.dtype.kind == "f" else bad


def _starts(keys: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " cells"]:
    """Where runs of equal keys begin."""
    begins = np.empty(len(keys), bool)
    begins[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=begins[1:])
    return np.flatnonzero(begins)
