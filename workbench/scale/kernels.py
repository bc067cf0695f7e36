"""The compiled loops that deal rows out to ranges."""

import numpy as np

from workbench.compiled import njit


@njit(cache=True, nogil=True)
def split_keys(keys, bits, ranges, low):
    """Keys as a range each, and `bits` bits within it."""
    mask = (1 << bits) - 1
    for i in range(keys.size):
        ranges[i] = keys[i] >> bits
        low[i] = keys[i] & mask


@njit(cache=True, nogil=True)
def spread(words, factor, shift, ranges):
    """A range of each word: the first bits of its product with an odd number."""
    for i in range(words.size):
        ranges[i] = np.uint64(words[i]) * factor >> shift


@njit(cache=True, nogil=True)
def tally(ranges, sizes):
    """One more of each row's range."""
    for i in range(ranges.size):
        sizes[ranges[i]] += 1


@njit(cache=True, nogil=True)
def deal(ranges, places, column, out):
    """A column in the order of ranges; `places` says where each one's next row goes, and moves on."""
    for i in range(ranges.size):
        r = ranges[i]
        out[places[r]] = column[i]
        places[r] += 1
