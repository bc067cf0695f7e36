"""The compiled loops over sorted keys of one or two words."""

import numpy as np

from workbench.compiled import njit


@njit(cache=True, nogil=True)
def ascending(high, low):
    """Whether pairs of words are in ascending order."""
    for i in range(1, high.size):
        if high[i] < high[i - 1] or (high[i] == high[i - 1] and low[i] < low[i - 1]):
            return False
    return True


@njit(cache=True, nogil=True)
def merge_keys(first, high, low, keys):
    """Sorted first words with a second word of 0, and sorted pairs that have another."""
    i = 0
    for j in range(high.size + 1):
        while i < first.size and (j == high.size or first[i] <= high[j]):
            keys[0, i + j], keys[1, i + j] = first[i], 0
            i += 1
        if j < high.size:
            keys[0, i + j], keys[1, i + j] = high[j], low[j]


@njit(cache=True, nogil=True)
def occupied_children(words, ends, lows, start, stop, width, radix, out):
    """The occupied children of nodes: whose, digit, first and last record, a column each; how many."""
    k, weighted = 0, ends.size > 0
    for i in range(start.size):
        at, last = start[i], stop[i]
        if at >= last:
            continue
        j, end = at, last  # of keys
        if weighted:
            j = np.searchsorted(ends, at, side="right")
            end = np.searchsorted(ends, last - 1, side="right") + 1
        while j < end:
            digit = (words[j] - lows[i]) // width
            after = end
            if digit + np.uint64(1) < radix:
                bound, step, below = lows[i] + (digit + np.uint64(1)) * width, 1, j + 1
                after = below
                while after < end and words[after] < bound:
                    below = after + 1
                    after += step
                    step *= 2
                after = min(after, end)
                while below < after:
                    middle = (below + after) // 2
                    if words[middle] < bound:
                        below = middle + 1
                    else:
                        after = middle
            to = last
            if after < end:
                to = ends[after - 1] if weighted else after
            out[0, k], out[1, k], out[2, k], out[3, k] = i, digit, at, to
            k += 1
            at, j = to, after
    return k
