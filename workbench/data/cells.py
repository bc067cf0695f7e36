"""Counting of rows by cell. Each row contains the key (number) of a cell, and the rows may be in any order.
The result is a sorted list of distinct keys with their counts.
"""

from __future__ import annotations

import numpy as np

from workbench.data.user_kernels import add_up
from workbench.value import Int, Num

LARGEST_TOTAL = 2**53  # counts up to here, and their sums in float64, are exact
_KEY_BITS = 63  # of an int64 that is not negative
_WAITING = 2**25  # rows


def cells_of_keys(
    keys: Int[np.ndarray, " rows"],
) -> tuple[Int[np.ndarray, " cells"], Int[np.ndarray, " cells"]]:
    """Return the distinct keys (numbers of cells) in ascending order, and the number of rows with each key.
    The function sorts the array `keys` in place.
    """
    keys.sort()
    counts = np.ones(len(keys), np.int64)
    size = add_up(keys, counts)
    return keys[:size].copy(), counts[:size].copy()


def cells_of_counts(
    keys: Int[np.ndarray, " rows"], counts: Int[np.ndarray, " rows"]
) -> tuple[Int[np.ndarray, " cells"], Int[np.ndarray, " cells"]]:
    """Return the distinct keys (numbers of cells) in ascending order, and the sum of the counts of the rows
    with each key. Rows with the count 0 are left out.

    If a key and its count together fit into 63 bits, they are packed into one number and sorted together.
    This is much faster than sorting indices. The function overwrites `keys`.
    """
    if counts.sum(dtype=float) > LARGEST_TOTAL:
        raise ValueError(f"counts must sum to at most {LARGEST_TOTAL}")
    if not len(keys):
        return keys, counts
    bits = int(counts.max()).bit_length()
    if (keys[1:] >= keys[:-1]).all():
        pass
    elif int(keys.max()).bit_length() + bits <= _KEY_BITS:
        keys <<= bits
        keys |= counts
        keys.sort()
        counts = keys & ((1 << bits) - 1)
        keys >>= bits
    else:
        order = np.argsort(keys)
        keys = keys[order]
        counts = counts[order]
    size = add_up(keys, counts)
    return keys[:size].copy(), counts[:size].copy()


class CellCounts:
    """Counter of rows per cell, for rows that come in batches. Its memory grows with the number of cells and
    not with the number of rows.

    New rows wait until there are as many waiting rows as cells, and are then counted together. So each row is
    sorted only a few times.

    Parameters
    ----------
    waiting : int
        Smallest number of waiting rows that are counted together. Default 2²⁵.
    """

    def __init__(self, waiting: int = _WAITING):
        self._least = waiting
        self._rows: list[np.ndarray] = []
        self._row_counts: list[np.ndarray] = []
        self._waiting = 0
        self._keys = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._total = 0.0

    def add(
        self, keys: Int[np.ndarray, " rows"], counts: Int[np.ndarray, " rows"] | None = None
    ) -> None:
        """Add a batch of rows, given by their keys and, optionally, their counts. Without counts, each row
        counts as 1. Give counts either with all batches or with none.
        """
        self._total += len(keys) if counts is None else counts.sum(dtype=float)
        if self._total > LARGEST_TOTAL:
            raise ValueError(f"counts must sum to at most {LARGEST_TOTAL}")
        self._rows.append(keys)
        self._waiting += len(keys)
        if counts is not None:
            self._row_counts.append(counts)
        if self._waiting >= max(self._least, len(self._keys)):
            self._sort()

    def cells(self) -> tuple[Int[np.ndarray, " cells"], Int[np.ndarray, " cells"]]:
        """Return the keys of the cells that are not empty, in ascending order, and their counts."""
        self._sort()
        return self._keys, self._counts

    def _sort(self) -> None:
        if not self._rows:
            return
        keys = joined(self._rows)
        if self._row_counts:
            keys, counts = cells_of_counts(keys, joined(self._row_counts))
        else:
            keys, counts = cells_of_keys(keys)
        self._waiting = 0
        if len(self._keys):
            keys = np.concatenate([self._keys, keys])
            counts = np.concatenate([self._counts, counts])
            keys, counts = cells_of_counts(keys, counts)
        self._keys = keys
        self._counts = counts


def joined(pieces: list[np.ndarray]) -> np.ndarray:
    """Join arrays along their last axis into one array. The list `pieces` is emptied, so that the memory of
    its arrays is freed.
    """
    whole = np.concatenate(pieces, axis=-1)
    pieces.clear()
    return whole


def whole_counts(counts: Num[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """Return counts as 64-bit integers. Raise a ValueError if a count is not an integer >= 0."""
    counts = np.asarray(counts)
    if counts.dtype.kind not in "iufb":
        try:
            counts = counts.astype(float)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"counts must be integers, got {counts.dtype}") from None
    bad = is_no_count(counts)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"count {counts[row]!s} in row {row} is not allowed: need integers >= 0"
        )
    return counts.astype(np.int64)


def is_no_count(counts: Num[np.ndarray, " rows"]) -> np.ndarray:
    """Return a mask that is true for numbers that are not integers from 0 to 2⁵³."""
    bad = ~((counts >= 0) & (counts <= LARGEST_TOTAL))  # NaN is bad
    return bad | (counts != np.floor(counts)) if counts.dtype.kind == "f" else bad
