"""The ratings of the Netflix Prize, read from their text files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from workbench.compiled import njit
from workbench.value import Int, UInt8

# Kernels


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


# Netflix ratings

CUSTOMERS = 2_649_429  # the largest number of one; most numbers are nobody's
FIRST_DAY = "1998-10-01"  # the time that the publisher says ratings are of
LAST_DAY = "2005-12-31"

_SIZE = 1 << 24  # bytes of text parsed at once
_FILM = 2
_NEEDS = (  # what is wrong with a line, as the parser numbers it
    "",
    f"a film's number and a colon, or customer,rating,date ({LAST_DAY})",
    "",
    f"a customer from 1 to {CUSTOMERS}",
    "a rating from 1 to 5",
    f"a day (YYYY-MM-DD) from {FIRST_DAY} to {LAST_DAY}",
    "a customer who has not rated this film before",
)


class Ratings(NamedTuple):
    """A row a rating: the customer's number, the film's number less one, the weekday from Monday."""

    customers: Int[np.ndarray, " ratings"]
    films: Int[np.ndarray, " ratings"]
    weekdays: Int[np.ndarray, " ratings"]


class DateTables(NamedTuple):
    """How each day is written, "2005-12-" and "31", as numbers, and its weekday, Monday 0.

    Days stand at (last digit of the year)·372 + (month − 1)·31 + day − 1; no other text fits.
    """

    months: np.ndarray
    days: np.ndarray
    weekdays: np.ndarray


class Text(NamedTuple):
    """Whole lines of a file: the number of the first, their bytes and some more, their length."""

    line: int
    bytes: UInt8[np.ndarray, " bytes"]
    size: int


class RatingsReader:
    """Parses files of films one after another; every line and every film in order is checked."""

    def __init__(self) -> None:
        most_ratings = (
            _SIZE // 15 + 1
        )  # in a piece of text: a rating takes as many bytes, or more
        self._dates = date_tables()
        self._has_rated = np.zeros(CUSTOMERS // 8 + 1, np.uint8)  # a bit for each customer
        self._columns = Ratings(
            np.empty(most_ratings, np.int32),
            np.empty(most_ratings, np.uint16),
            np.empty(most_ratings, np.uint8),
        )

    def read(self, path: Path, stream: BinaryIO, first: int, last: int) -> Iterator[Ratings]:
        """An open file of these films; a bad line, or an end before the last film, is a ValueError."""
        film = -first  # where none has come yet
        for text in texts(stream, path):
            size, film, bad, reason = parse_ratings(
                text.bytes,
                text.size,
                film,
                last,
                *self._dates,
                CUSTOMERS,
                self._has_rated,
                *self._columns,
            )
            if bad >= 0:
                _refuse(path, text, bad, reason, film, last)
            yield Ratings(*(column[:size].copy() for column in self._columns))
        if film != last:
            raise ValueError(f"{path} ends before film {_next_film(film)} of {last}")


def texts(stream: BinaryIO, path: Path) -> Iterator[Text]:
    """An open file in pieces of whole lines; the array is the same each time, filled anew."""
    buffer = np.empty(_SIZE + 32, np.uint8)
    reader: Any = stream  # which fills an array in place
    line = 1
    held = 0
    while True:
        size = reader.readinto(buffer[held:_SIZE])
        if not size:
            if held:  # the last line lacks its end
                buffer[held] = 10
                yield Text(line, buffer, held + 1)
            return
        held += size
        is_end = buffer[:held][::-1][:4096] == 10  # lines are short
        if not is_end.any():
            if held < 4096:
                continue
            buffer[held] = 10
            yield Text(line, buffer, held)  # what is no line is refused where it is parsed
            raise ValueError(f"{path} has lines of more than 4,096 characters")
        whole = held - int(is_end.argmax())
        yield Text(line, buffer, whole)
        line += _count_lines(buffer[:whole])
        held -= whole
        buffer[:held] = buffer[whole : whole + held].copy()


def _count_lines(text: UInt8[np.ndarray, " bytes"]) -> int:
    return text.tobytes().count(b"\n")


def date_tables() -> DateTables:
    """Every day of the ratings."""
    days = np.arange(
        FIRST_DAY, np.datetime64(LAST_DAY) + np.timedelta64(1, "D"), dtype="datetime64[D]"
    )
    months = days.astype("datetime64[M]")
    place = months.astype(int) % 120 * 31 + (days - months).astype(int)
    written = days.astype("S10").view(np.uint8).reshape(-1, 10)
    tables = DateTables(np.zeros(3720, "<u8"), np.zeros(3720, "<u2"), np.zeros(3720, np.uint8))
    tables.months[place] = np.ascontiguousarray(written[:, :8]).view("<u8")[:, 0]
    tables.days[place] = np.ascontiguousarray(written[:, 8:]).view("<u2")[:, 0]
    tables.weekdays[place] = (days.astype(int) + 3) % 7
    return tables


def _refuse(path: Path, text: Text, bad: int, reason: int, film: int, last: int) -> None:
    """A ValueError that names the line of the byte where a bad line begins, and what it should be."""
    line = text.line + _count_lines(text.bytes[:bad])
    need = _NEEDS[reason]
    if reason == _FILM:
        need = f"the film {_next_film(film)} and a colon" if film < last else "no more films"
    bad_line = text.bytes[bad : text.size].tobytes().partition(b"\n")[0]
    shown = bad_line.decode(errors="replace").rstrip("\r")[:80]
    raise ValueError(f"{path}, line {line}: found {shown!r}, need {need}")


def _next_film(film: int) -> int:
    return film + 1 if film > 0 else -film
