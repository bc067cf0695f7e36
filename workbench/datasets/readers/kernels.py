"""The compiled loops of the reader of Netflix ratings."""

import numpy as np

from workbench.compiled import njit


@njit(cache=True, nogil=True, inline="always")
def _word(text, i):
    """Eight bytes as one number, the first one lowest: a single load."""
    low = np.uint64(text[i]) | np.uint64(text[i + 1]) << np.uint64(8)
    low |= np.uint64(text[i + 2]) << np.uint64(16) | np.uint64(text[i + 3]) << np.uint64(24)
    low |= np.uint64(text[i + 4]) << np.uint64(32) | np.uint64(text[i + 5]) << np.uint64(40)
    low |= np.uint64(text[i + 6]) << np.uint64(48) | np.uint64(text[i + 7]) << np.uint64(56)
    return low


@njit(cache=True, nogil=True)
def parse_ratings(
    text, size, movie, end, months, days, weekdays, most, seen, users, items, contexts
):
    """Netflix's lines, whole ones, in the first `size` bytes, parsed into the columns.

    A line is `movie:`, or `customer,rating,YYYY-MM-DD` of the movie above. `movie` is the number
    that the text begins under, or minus the first one where none has come yet, and `end` the last
    one expected; headers count up by one. `months` and `days` hold how each date is written, in
    eight and in two characters, at (last digit of the year)·372 + (month − 1)·31 + day − 1.
    Customers are 1 to `most`; `seen` has a bit for each, set where they have rated this movie:
    small enough to stay near, where a word for each would cost more than all else.
    Returns how many ratings there were, the movie reached, the byte where the first bad line
    begins (or −1), and what is wrong with it: 1 form, 2 movie, 3 customer, 4 rating, 5 date, 6
    rated twice. The text has 16 bytes more, whatever they are.
    """
    n, i, since = 0, 0, -1  # ratings before this movie's, if it began in this text
    while i < size:
        start, x = i, np.int64(0)
        d = np.int64(text[i]) - 48
        while d >= 0 and d < 10:
            x = 10 * x + d
            i += 1
            d = np.int64(text[i]) - 48
        if d == -4 and i > start and i < start + 9:  # a comma
            if text[i + 2] != 44:
                return n, movie, start, 1
            if movie < 0:
                return n, movie, start, 2
            if x < 1 or x > most:
                return n, movie, start, 3
            if text[i + 1] < 49 or text[i + 1] > 53:
                return n, movie, start, 4
            where = 372 * (np.int64(text[i + 6]) - 48) - 32
            where += 310 * (np.int64(text[i + 8]) - 48) + 31 * (np.int64(text[i + 9]) - 48)
            where += 10 * (np.int64(text[i + 11]) - 48) + np.int64(text[i + 12]) - 48
            if where < 0 or where >= days.size or months[where] != _word(text, i + 3):
                return n, movie, start, 5
            if days[where] != np.int64(text[i + 11]) + 256 * np.int64(text[i + 12]):
                return n, movie, start, 5
            bits, bit = seen[x >> 3], np.uint8(1 << (x & 7))
            if bits & bit:
                return n, movie, start, 6
            seen[x >> 3] = bits | bit
            users[n] = x
            items[n] = movie - 1
            contexts[n] = weekdays[where]
            n += 1
            i += 13
        elif d == 10 and i > start and i < start + 9:  # a colon
            i += 1
            if x != (movie + 1 if movie > 0 else -movie) or x > end:
                return n, movie, start, 2
            movie = x
            if 0 <= since and n - since < seen.size >> 6:
                for j in range(since, n):
                    seen[users[j] >> 3] = 0
            else:
                seen[:] = 0
            since = n
        elif i > start:
            return n, movie, start, 1
        if text[i] == 13:
            i += 1
        if i >= size or text[i] != 10:
            return n, movie, start, 1
        i += 1
    return n, movie, -1, 0


@njit(cache=True, nogil=True)
def scatter_by_user(users, items, contexts, place, sorted_items, sorted_contexts):
    """Each record to the next place of its user; `place` moves on."""
    for i in range(users.size):
        at = place[users[i]]
        place[users[i]] = at + 1
        sorted_items[at] = items[i]
        sorted_contexts[at] = contexts[i]
