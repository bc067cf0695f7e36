"""Keys of a hierarchy, of one 64-bit word or two: their order, and searches among sorted ones."""

from __future__ import annotations

import numpy as np

from workbench.arrays import Bool, Int, UInt64
from workbench.compiled import njit

Keys = UInt64[np.ndarray, "words n"]


def child_digits(counts: Int[np.ndarray, " nodes"]) -> Int[np.ndarray, " children"]:
    """0, 1, … for the children of each node, one node after another, by how many each has."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def argsort_keys(keys: Keys) -> Int[np.ndarray, " n"]:
    """What sorts the keys."""
    if len(keys) == 1:
        return np.argsort(keys[0])
    return np.lexsort((keys[1], keys[0]))


def searchsorted_keys(keys: Keys, wanted: Keys, after: bool = False) -> Int[np.ndarray, " k"]:
    """How many of the sorted keys lie below each of the sorted `wanted`, or (`after`) not above it."""
    counts = np.empty(wanted.shape[1], np.int64)
    _search(keys[0], keys[-1], wanted[0], wanted[-1], after, counts)  # one word: it twice
    return counts


def search_unsorted(keys: Keys, wanted: Keys, after: bool = False) -> Int[np.ndarray, " k"]:
    """The same where `wanted` is in any order."""
    order = argsort_keys(wanted)
    counts = np.empty(len(order), np.int64)
    counts[order] = searchsorted_keys(keys, wanted[:, order], after)
    return counts


def keys_above(keys: Keys, others: Keys) -> Bool[np.ndarray, " n"]:
    """Whether each key is above the other."""
    above = keys[-1] > others[-1]
    if len(keys) == 2:
        above = (keys[0] > others[0]) | ((keys[0] == others[0]) & above)
    return above


@njit(cache=True, nogil=True)
def _search(high, low, wanted_high, wanted_low, after, out):
    at = 0
    for i in range(wanted_high.size):
        step = 1
        end = at
        while end < high.size and _below(
            high[end], low[end], wanted_high[i], wanted_low[i], after
        ):
            at = end + 1
            end += step
            step *= 2
        end = min(end, high.size)
        while at < end:
            middle = (at + end) // 2
            if _below(high[middle], low[middle], wanted_high[i], wanted_low[i], after):
                at = middle + 1
            else:
                end = middle
        out[i] = at


@njit(cache=True, inline="always")
def _below(high, low, wanted_high, wanted_low, after):
    return high < wanted_high or (
        high == wanted_high and (low < wanted_low or (after and low == wanted_low))
    )
