"""The loops over products that cannot be arrays, compiled; rows of queries run in parallel."""

import numpy as np

from workbench.compiled import njit, prange


@njit(cache=True, nogil=True, parallel=True)
def inner(offsets, times, which, table, starts, widths, sets, sizes, ends, cols, other, out):
    """out[i, j] += Σ over terms s of query i and t of query j of times[s]·other_times[t]·Π_k H_k[s, t].

    `table` holds the H_k one after the other (from `starts[k]`, rows of `widths[k]`), row and column 0
    for attributes that a term does not use. The columns' terms come by set of used attributes: `sets`
    (groups × attributes, the first `sizes` of each row) and `ends`; `cols` are (attributes × terms)
    columns of H_k, `other` is (their query, as a number; their coefficient).
    """
    queries, owner = other
    d = which.shape[1]
    for i in prange(offsets.size - 1):
        for s in range(offsets[i], offsets[i + 1]):
            begin = 0
            for g in range(ends.size):
                scale = times[s]
                used = sizes[g]
                for k in range(d):
                    if which[s, k]:
                        shared = False
                        for j in range(used):
                            shared |= sets[g, j] == k
                        if not shared:
                            scale *= table[starts[k] + which[s, k] * widths[k]]
                if used == 2:
                    a = sets[g, 0]
                    b = sets[g, 1]
                    at = starts[a] + which[s, a] * widths[a]
                    bt = starts[b] + which[s, b] * widths[b]
                    for t in range(begin, ends[g]):
                        out[i, owner[t]] += (
                            scale * queries[t] * table[at + cols[a, t]] * table[bt + cols[b, t]]
                        )
                else:
                    for t in range(begin, ends[g]):
                        x = scale * queries[t]
                        for j in range(used):
                            k = sets[g, j]
                            x *= table[starts[k] + which[s, k] * widths[k] + cols[k, t]]
                        out[i, owner[t]] += x
                begin = ends[g]


@njit(cache=True, nogil=True, parallel=True)
def diagonal(offsets, times, which, table, starts, widths, out):
    """out[i] = Σ over pairs of terms of query i, as in `inner`."""
    for i in prange(offsets.size - 1):
        total = 0.0
        for s in range(offsets[i], offsets[i + 1]):
            for t in range(offsets[i], offsets[i + 1]):
                x = times[s] * times[t]
                for k in range(which.shape[1]):
                    x *= table[starts[k] + which[s, k] * widths[k] + which[t, k]]
                total += x
        out[i] = total


@njit(cache=True, nogil=True, parallel=True)
def scattered(which, factors, starts, widths, codes, values, out):
    """out[t] = Σ over cells of values·Π_k factor of term t; codes are (attributes, cells)."""
    for t in prange(which.shape[0]):
        total = 0.0
        for c in range(codes.shape[1]):
            x = values[c]
            for k in range(codes.shape[0]):
                x *= factors[starts[k] + which[t, k] * widths[k] + codes[k, c]]
                if x == 0:
                    break
            total += x
        out[t] = total


@njit(cache=True, nogil=True, parallel=True)
def limbs(times, which, factors, starts, widths, codes, counts, grid, out):
    """Σ over cells of counts·round(term/grid), in three parts of 9 bits: none overflows."""
    for t in prange(which.shape[0]):
        high = np.int64(0)
        middle = np.int64(0)
        low = np.int64(0)
        for c in range(codes.shape[1]):
            x = times[t]
            for k in range(codes.shape[0]):
                x *= factors[starts[k] + which[t, k] * widths[k] + codes[k, c]]
                if x == 0:
                    break
            units = np.int64(np.rint(x / grid))
            high += (units >> 18) * counts[c]
            middle += ((units >> 9) & 511) * counts[c]
            low += (units & 511) * counts[c]
        out[t, 0] = high
        out[t, 1] = middle
        out[t, 2] = low
