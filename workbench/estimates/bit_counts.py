"""The layout of reports of bits, and compiled loops that count the reports with given bits set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.arrays import Int, UInt64
from workbench.compiled import njit
from workbench.domain import Domain

_MAX_BITS = 2**16  # of a report


class BitLayout(NamedTuple):
    """Where each attribute's bits start, −1 for those of one code, which have none; and words a row."""

    starts: Int[np.ndarray, " attributes"]
    words: int


def bit_layout(domain: Domain) -> BitLayout:
    """The bits of a report over a domain, one a code; a ValueError if there are too many."""
    bits = [n if n > 1 else 0 for n in domain.shape]
    if sum(bits) > _MAX_BITS:
        raise ValueError(
            f"a domain of {domain.shape} codes is not allowed: one bit a code makes {sum(bits)}, at "
            f"most {_MAX_BITS} are possible"
        )
    starts = np.cumsum([0, *bits])[:-1]
    return BitLayout(np.where(np.array(bits) > 0, starts, -1), -(-sum(bits) // 64))


@njit(cache=True, nogil=True)
def transpose(
    rows: UInt64[np.ndarray, "reports words"], columns: UInt64[np.ndarray, "bits blocks"]
) -> None:
    """Columns of bits as rows of bits; one more row, the last, has all set."""
    one, low = np.uint64(1), np.uint64(63)
    for i in range(rows.shape[0]):
        word, bit = i >> 6, one << (np.uint64(i) & low)
        for j in range(columns.shape[0] - 1):
            if (rows[i, j >> 6] >> (np.uint64(j) & low)) & one:
                columns[j, word] |= bit
        columns[columns.shape[0] - 1, word] |= bit


@njit(cache=True, nogil=True)
def _ones(words: UInt64[np.ndarray, " blocks"]) -> np.int64:
    """How many bits are set."""
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
    """Reports with all of some bits set, one of each attribute or none (its last place)."""
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
