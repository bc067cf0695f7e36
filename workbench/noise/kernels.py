"""Compiled loops that cannot be written as array operations."""

import numpy as np

from workbench.compiled import njit


@njit(cache=True, nogil=True)
def gather(u, table, unsure, out, where):
    """Add table[u[i]] to out[i] for all i. If the entry of the table equals `unsure`, add nothing and write i
    to `where`. Return how many such i there are.
    """
    k = 0
    for i in range(u.size):
        x = table[u[i]]
        if x == unsure:
            where[k] = i
            k += 1
        else:
            out[i] += x
    return k


@njit(cache=True, nogil=True)
def toss(drawn, chance, margin, heads, near):
    """Toss coins: set heads[i] to whether the uniform number from the word drawn[i] is below chance[i]. If
    the two numbers differ by at most `margin`, write i to `near`. Return how many such i there are.
    """
    k = 0
    for i in range(drawn.size):
        distance = (drawn[i] >> 11) * 2.0**-53 - chance[i]
        heads[i] = distance < 0
        if -margin <= distance <= margin:
            near[k] = i
            k += 1
    return k


@njit(cache=True, nogil=True)
def flip(values, words):
    """Change the sign of values[i] for every i whose bit in `words` is set."""
    for i in range(values.size):
        bit = np.int64(words[i >> 6] >> np.uint64(i & 63)) & 1
        values[i] = (values[i] ^ -bit) + bit


@njit(cache=True, nogil=True)
def toggle(bits, places, start):
    """Flip the bits with the numbers start + places[i]. There are 64 bits per word."""
    for at in places:
        place = np.uint64(start + at)
        bits[place >> np.uint64(6)] ^= np.uint64(1) << (place & np.uint64(63))


@njit(cache=True, nogil=True)
def advance(gaps, start, end, out, k):
    """Write increasing numbers to `out`, beginning at position k. The first number is start + gaps[0]. Before
    number i of the others, gaps[i] numbers are skipped. Stop before `end`.

    Return how many numbers `out` contains now, and the number at which to continue.
    """
    for i in range(gaps.size):
        if gaps[i] >= end - start:
            return k, end
        out[k] = start + gaps[i]
        start += gaps[i] + np.uint64(1)  # with a signed 1 numba would count in floats
        k += 1
    return k, start


@njit(cache=True, nogil=True)
def merge(start, keys, noisy, kept, ranks, values, out_keys, out_values):
    """Merge the non-empty cells that are kept with empty cells, in the order of their keys. An empty cell is
    given by its rank, which is its number among the cells that are not in `keys`.

    Ranks begin at 0 with the first empty cell from `start` on. The loop chooses the next cell by arithmetic.
    An `if` would be slower, because the processor could not predict its outcome.
    """
    i, j, k = 0, 0, 0
    while i < keys.size and j < ranks.size and k < out_keys.size:
        key, cell = keys[i], start + ranks[j] + i
        new = cell < key
        out_keys[k] = cell if new else key  # overwritten by the next, if it is not released
        out_values[k] = values[j] if new else noisy[i]
        k += new | kept[i]
        j += new
        i += not new
    while j < ranks.size:
        out_keys[k] = start + ranks[j] + i
        out_values[k] = values[j]
        j += 1
        k += 1
    while i < keys.size:
        if kept[i]:
            out_keys[k] = keys[i]
            out_values[k] = noisy[i]
            k += 1
        i += 1


@njit(cache=True, nogil=True)
def place_ranks(start, keys, ranks, out):
    """Convert ranks of empty cells to keys. A rank is the number of an empty cell among the cells from
    `start` on that are not in `keys`.
    """
    i, j = 0, 0
    while j < ranks.size and i < keys.size:
        place = start + ranks[j] + i
        out[j] = place
        is_behind = keys[i] <= place  # no branch, as in `merge`
        i += is_behind
        j += not is_behind
    for k in range(j, ranks.size):
        out[k] = start + ranks[k] + i


@njit(cache=True, nogil=True, error_model="numpy")
def _inverse(value, u, tau, above):
    v = float(abs(value))
    low = 1 / max(v, above)
    return low + (u + 0.5) * 2.0**-64 * (1 / max(v, tau) - low)


@njit(cache=True, nogil=True, error_model="numpy")
def invert(values, drawn, tau, above, out):
    """Convert the random words in `drawn` to inverse priorities. The inverse priority of a value v is between
    1/max(|v|, above) and 1/max(|v|, tau).
    """
    for i in range(values.size):
        out[i] = _inverse(values[i], drawn[i], tau, above)


@njit(cache=True, nogil=True, error_model="numpy")
def list_below(values, drawn, tau, above, limit, places):
    """Write the positions of the values whose inverse priority (see `invert`) is at most `limit` to `places`.
    Return how many there are.
    """
    k = 0
    for i in range(values.size):
        places[k] = i
        k += _inverse(values[i], drawn[i], tau, above) <= limit
    return k


@njit(cache=True, nogil=True)
def between(values, low, high, out, k):
    """Append the values that are above `low` and at most `high` to the first k entries of `out`.

    Return how many values are at most `low`, and how many values `out` contains now.
    """
    below = 0
    for i in range(values.size):
        is_below = values[i] <= low
        below += is_below
        out[k] = values[i]
        k += (values[i] <= high) & (not is_below)
    return below, k


@njit(cache=True, nogil=True)
def take(values, low, high, taken, unsure, start, k):
    """Set taken[i] to whether values[i] is at most `low`. Append the positions of the values between `low`
    and `high`, counted from `start`, to the first k entries of `unsure`.

    Return how many positions `unsure` contains now.
    """
    for i in range(values.size):
        taken[i] = values[i] <= low
        unsure[k] = start + i
        k += (values[i] <= high) & (values[i] > low)
    return k


@njit(cache=True, nogil=True)
def urn(cells, prior, rng, out):
    """Draw cells from a Pólya urn. After t draws, the next draw repeats a random earlier draw with
    probability t/(t + prior).

    Otherwise the next draw is a uniformly random cell, which may also have been drawn before.
    """
    for t in range(out.size):
        u = rng.random() * (t + prior)
        out[t] = out[int(u)] if u < t else rng.integers(0, cells)


@njit(cache=True, nogil=True)
def propose(drawn, coins, shift, sure, places, unsure):
    """Write the first bits of each word in `drawn`, as a number, to `places`.

    If coins[i] is at least `sure`, also write i to `unsure`. Return how many such i there are.
    """
    k = 0
    for i in range(drawn.size):
        places[i] = drawn[i] >> shift
        unsure[k] = i
        k += coins[i] >= sure
    return k


@njit(cache=True, nogil=True)
def place(blocks, drawn, shift, start, sure, unsure):
    """Replace each number of a block in `blocks` by a random value of this block. The values from `start` on
    are divided into blocks of 2^shift, and the first bits of a random word choose the value.

    If the last 16 bits of word i are at least `sure`, also write i to `unsure`. Return how many such i there
    are.
    """
    k = 0
    for i in range(blocks.size):
        blocks[i] = (blocks[i] << shift) + start + np.int64(drawn[i] >> np.uint64(64 - shift))
        if np.int64(drawn[i] & np.uint64(65535)) >= sure:
            unsure[k] = i
            k += 1
    return k
