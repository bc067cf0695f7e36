"""Compiled loops that give numbers to the names of users, draw random numbers, and truncate the counts of
each user.
"""

import numpy as np

from workbench.compiled import njit

_BLOCK = 256  # texts that are looked up at a time
END = 255  # a byte that no text has in UTF-8


@njit(cache=True, inline="always")
def _slot(first, start, stop, text, slots, names):
    """Return the row of a hash table that contains a text, or the free row into which the text belongs.

    `names` contains the bytes of all texts, with the byte `END` after each. `slots` is the hash table. Each
    row contains the number of a text and the position in `names` at which the text begins. A row with the
    number −1 is free. A text is in the row that its hash `first` gives, or in the next row that was free.
    Texts are compared byte by byte, so two different texts with the same hash get different numbers.
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
    """Look up texts in a list of distinct texts, and write the number of each to `numbers`. A text that is
    not in the list gets −1.
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
    """Append the texts whose number is −1 to a list of distinct texts. Return the new number of texts in the
    list, and the number of bytes that they take.
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
    """Return the next uniform 64-bit word of the random number generator xoshiro256++, and update its state
    `s`.

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
    """Return a random integer from 0 to n − 1, for n <= 2^31. All integers are exactly equally likely if the
    words of the generator are uniform.

    Source: Lemire, ACM TOMACS 2019. A word is multiplied by n, and rejected in the few cases that would make
    some integers more likely.
    """
    n, low = np.uint64(n), np.uint64(2**32 - 1)
    while True:
        product = (next_word(s) >> np.uint64(32)) * n
        if product & low >= n or product & low >= (np.uint64(2**32) - n) % n:
            return np.int64(product >> np.uint64(32))


@njit(cache=True, nogil=True)
def mark_some(n, limit, s, taken):
    """Mark `limit` random positions of n in the mask `taken`. All sets of this size are equally likely.

    Source: Floyd, in Bentley & Floyd, CACM 1987 (Programming Pearls). The algorithm needs one draw per marked
    position.
    """
    for j in range(n - limit, n):
        place = below(s, j + 1)
        taken[j if taken[place] else place] = True


@njit(cache=True, nogil=True)
def longest(starts):
    """Return the largest number of rows of one user. The rows of user u have the numbers from starts[u] to
    starts[u + 1] − 1.
    """
    most = 0
    for u in range(starts.size - 1):
        most = max(most, starts[u + 1] - starts[u])
    return most


@njit(cache=True, nogil=True)
def heads(s, coins):
    """Toss the given number of fair coins, and return how many show heads."""
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
    """Lower the counts of a user's cells at random, so that their sum falls from `total` to `wanted`. A count
    of n is treated as n single records, and all choices of `wanted` records are equally likely.

    Each record gets a uniform random real number, and the records with the `wanted` smallest numbers are kept.
    The numbers are drawn bit by bit, until these bits decide for each record whether the record is kept. The
    records of one cell are interchangeable. So for each cell, the function draws only how many of its undecided
    records get the bit 0. `undecided` and `low` are working memory with the length of `counts`.
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
    """Truncate the counts of each user to the limits `l0`, `linf` and `l1`, in place. A cell that is dropped
    gets the count 0. Users who lost counts are marked in `lost`.

    The cells of user u have the numbers from starts[u] to starts[u + 1] − 1. If the user needs random draws,
    `seed_of` contains the number of the user's seed in `seeds`.
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
    """Split sorted numbers into users and cells. Each number combines a user (its high bits) and a cell (its
    last `key_bits` bits). The users are written to `users`, the position of each user's first cell to `starts`,
    and the cells into `packed` itself. Return the numbers of users and of cells.

    With `are_rows`, a number may occur several times. Such a number is then written only once, and `sums` gets
    the number of times that it occurs.
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
    """Move the cells whose count is not 0 to the front of the arrays, in the same order, and return how many
    there are.
    """
    k = 0
    for i in range(counts.size):
        keys[k] = keys[i]
        counts[k] = counts[i]
        k += counts[i] > 0
    return k


@njit(cache=True, nogil=True)
def add_up(keys, counts):
    """Add up the counts of equal keys, which must be sorted. Drop keys with the count 0. Write the result to
    the front of the arrays, and return the number of keys that are left.
    """
    k = 0
    for i in range(keys.size):
        if k and keys[i] == keys[k - 1]:
            counts[k - 1] += counts[i]
        elif counts[i]:
            keys[k], counts[k] = keys[i], counts[i]
            k += 1
    return k
