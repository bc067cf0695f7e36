"""Compiled loops over the cells of each user, with their random draws."""

import numpy as np

from workbench.compiled import njit

_BLOCK = 256  # texts that are looked up at a time
END = 255  # a byte that no text has in UTF-8


@njit(cache=True, inline="always")
def _slot(first, start, stop, text, slots, names):
    """Return the row of a text in a list of different texts, or the free row where it belongs.

    `names` holds the texts of the list, with `END` after each. `slots` is a hash table. Each row holds the
    number of a text and the place where it starts in `names`. A text is in the row that its hash gives, or in
    the next row that was free. A row with number -1 is free. Texts are compared byte by byte, so two with the
    same hash have two numbers.
    """
    mask = slots.shape[0] - 1
    slot = np.int64(first) & mask
    while slots[slot, 0] >= 0:
        at, j = slots[slot, 1], start
        while j < stop and names[at] == text[j]:
            at += 1
            j += 1
        if j == stop and names[at] == END:
            break
        slot = (slot + 1) & mask
    return slot


@njit(cache=True, nogil=True)
def find_texts(hashes, starts, text, slots, names, numbers):
    """Look up texts in a list of different texts, and return the place of each in the list. A text that is
    new gets −1.
    """
    mask = slots.shape[0] - 1
    first_bytes = np.empty(_BLOCK, np.uint8)
    for block in range(0, hashes.size, _BLOCK):
        last = min(block + _BLOCK, hashes.size)
        for i in range(block, last):  # independent reads, so that the processor overlaps them
            numbers[i] = slots[np.int64(hashes[i]) & mask, 1]
        for i in range(block, last):
            first_bytes[i - block] = names[max(numbers[i], 0)]
        for i in range(block, last):
            slot = _slot(hashes[i], starts[i], starts[i + 1], text, slots, names)
            numbers[i] = slots[slot, 0]


@njit(cache=True, nogil=True)
def add_texts(hashes, starts, text, size, end, slots, names, numbers):
    """Append texts without a number to the list. Return how many texts it has then, and how many bytes they
    take.
    """
    for i in range(hashes.size):
        if numbers[i] < 0:
            start, n = starts[i], starts[i + 1] - starts[i]
            slot = _slot(hashes[i], start, starts[i + 1], text, slots, names)
            if slots[slot, 0] < 0:
                slots[slot, 0], slots[slot, 1] = size, end
                for j in range(n):
                    names[end + j] = text[start + j]
                names[end + n] = END
                size += 1
                end += n + 1
            numbers[i] = slots[slot, 0]
    return size, end


@njit(cache=True, nogil=True)
def next_word(s):
    """Return the next uniform 64-bit word of xoshiro256++ in the state `s`.

    Source: Blackman & Vigna, ACM TOMS 2021.
    """
    x = s[0] + s[3]
    x = ((x << np.uint64(23)) | (x >> np.uint64(41))) + s[0]
    t = s[1] << np.uint64(17)
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = (s[3] << np.uint64(45)) | (s[3] >> np.uint64(19))
    return x


@njit(cache=True, nogil=True)
def below(s, n):
    """Return a uniform integer in [0, n), exactly, for n <= 2^31.

    Source: Lemire, ACM TOMACS 2019 (multiply, and reject the uneven).
    """
    n, low = np.uint64(n), np.uint64(2**32 - 1)
    while True:
        product = (next_word(s) >> np.uint64(32)) * n
        if product & low >= n or product & low >= (np.uint64(2**32) - n) % n:
            return np.int64(product >> np.uint64(32))


@njit(cache=True, nogil=True)
def mark_some(n, limit, s, taken):
    """Mark `limit` of n places. All sets of this size are equally likely.

    Source: Floyd, in Bentley & Floyd, CACM 1987 (Programming Pearls). It needs one draw per marked
    place.
    """
    for j in range(n - limit, n):
        place = below(s, j + 1)
        taken[j if taken[place] else place] = True


@njit(cache=True, nogil=True)
def longest(starts):
    """Return the length of the longest run of equal numbers."""
    most = 0
    for u in range(starts.size - 1):
        most = max(most, starts[u + 1] - starts[u])
    return most


@njit(cache=True, nogil=True)
def heads(s, coins):
    """Toss fair coins, and return the number of heads."""
    n = np.int64(0)
    while coins > 0:
        word = next_word(s)
        if coins < 64:
            word &= (np.uint64(1) << np.uint64(coins)) - np.uint64(1)
        word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
        twos = np.uint64(0x3333333333333333)
        word = (word & twos) + ((word >> np.uint64(2)) & twos)
        word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        n += np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
        coins -= 64
    return n


@njit(cache=True, nogil=True)
def keep_units(counts, total, wanted, s, undecided, low):
    """Keep `wanted` of the `total` counts. All choices are equally likely.

    Each single count gets a uniform real number, and the counts with the `wanted` smallest numbers are
    kept. The numbers are drawn bit by bit, for all counts that are not yet decided. Because the counts of
    one cell are interchangeable, the function draws only how many of them have the bit 0. `undecided` and
    `low` are working memory with the length of `counts`.
    """
    n = counts.size
    for i in range(n):
        undecided[i] = counts[i]
        counts[i] = 0
    while 0 < wanted < total:
        zeros = 0
        for i in range(n):
            low[i] = heads(s, undecided[i])
            zeros += low[i]
        if zeros <= wanted:
            for i in range(n):
                counts[i] += low[i]
                undecided[i] -= low[i]
            wanted -= zeros
            total -= zeros
        else:
            for i in range(n):
                undecided[i] = low[i]
            total = zeros
    if wanted:
        for i in range(n):
            counts[i] += undecided[i]


@njit(cache=True, nogil=True)
def bound_users(starts, l0, linf, l1, seeds, seed_of, counts, lost):
    """Truncate the counts of each user in place. A dropped cell gets the count 0, and users who lost counts
    are marked.

    `seed_of` gives the seed of each user who needs random draws. No other seeds are read.
    """
    size = longest(starts)
    taken = np.zeros(size, np.bool_)
    undecided = np.empty(size, np.int64)
    low = np.empty(size, np.int64)
    for u in range(starts.size - 1):
        start, n = starts[u], starts[u + 1] - starts[u]
        if n > l0:
            lost[u] = True
            mark_some(n, l0, seeds[seed_of[u]], taken)
            for i in range(n):
                if taken[i]:
                    taken[i] = False
                else:
                    counts[start + i] = 0
        total = 0
        for i in range(start, start + n):
            if counts[i] > linf:
                counts[i] = linf
                lost[u] = True
            total += counts[i]
        if total > l1:
            lost[u] = True
            keep_units(counts[start : start + n], total, l1, seeds[seed_of[u]], undecided, low)


@njit(cache=True, nogil=True)
def take_apart(packed, key_bits, are_rows, users, starts, sums):
    """Split sorted numbers, each of which combines a user and a cell. Write the users, the start of each
    user's cells, and the cells, in place.

    If the numbers come from rows, they may repeat, and `sums` gets the number of repetitions. Return the
    numbers of users and cells.
    """
    n, k = 0, 0
    last = last_user = -1
    for i in range(packed.size):
        number = packed[i]
        if are_rows and number == last:
            sums[k - 1] += 1
            continue
        last = number
        user = number >> key_bits
        if user != last_user:
            last_user = user
            users[n] = user
            starts[n] = k
            n += 1
        packed[k] = number & ((1 << key_bits) - 1)
        if are_rows:
            sums[k] = 1
        k += 1
    starts[n] = k
    return n, k


@njit(cache=True, nogil=True)
def drop_empty(keys, counts):
    """Move the non-empty cells to the front, in order, and return their number."""
    k = 0
    for i in range(counts.size):
        keys[k] = keys[i]
        counts[k] = counts[i]
        k += counts[i] > 0
    return k


@njit(cache=True, nogil=True)
def add_up(keys, counts):
    """Add up the counts of equal keys, and drop empty cells, in place. Keys must be sorted. Return the
    number of cells.
    """
    k = 0
    for i in range(keys.size):
        if k and keys[i] == keys[k - 1]:
            counts[k - 1] += counts[i]
        elif counts[i]:
            keys[k], counts[k] = keys[i], counts[i]
            k += 1
    return k
