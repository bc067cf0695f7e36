"""Rows on disk, dealt out to ranges of keys and read one range at a time.

A file has a random name and is read only through the `Spilled` that whoever wrote it gave back, so that
what a second attempt at a task wrote is never read beside the first.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import njit
from workbench.value import Int, UInt32

# Kernels


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


# Spill

Columns = list[np.ndarray]


class Spilled(NamedTuple):
    """A file of dealt rows.

    A batch of rows is written column by column; `starts` says where in it each range starts.
    """

    name: str
    types: tuple[str, ...]  # of the columns
    offsets: Int[np.ndarray, " batches"]  # of each batch, in bytes
    starts: Int[np.ndarray, "batches ranges+1"]  # in rows

    def rows(self) -> Int[np.ndarray, " ranges"]:
        """How many rows each range has."""
        return np.diff(self.starts, axis=1).sum(axis=0)

    def segments(self, which: int) -> Segments:
        """Where the rows of a range are."""
        starts = self.starts[:, which]
        rows = self.starts[:, which + 1] - starts
        held = rows > 0
        places = np.stack([self.offsets, self.starts[:, -1], starts, rows])[:, held]
        return Segments(self.name, self.types, places)


class Segments(NamedTuple):
    """Where the rows of a range are in a file: offset and size of each batch, first row and rows."""

    name: str
    types: tuple[str, ...]
    places: Int[np.ndarray, "4 batches"]

    @property
    def rows(self) -> int:
        """How many they are."""
        return int(self.places[3].sum())


class SpillFile:
    """A new file of dealt rows.

    Parameters
    ----------
    folder : Path
        The scratch folder.
    types : sequence of str
        Of the columns, as numpy names them.
    ranges : int
        To which rows are dealt out.
    """

    def __init__(self, folder: Path, types: Sequence[str], ranges: int):
        self.types = tuple(map(np.dtype, types))
        self._ranges = ranges
        self._path = folder / secrets.token_hex(16)
        self._offsets: list[int] = []
        self._starts: list[np.ndarray] = []
        self._end = 0
        self._memory = np.empty(0, np.uint8)  # is asked for once
        with _disk(folder):
            self._file = open(self._path, "xb", buffering=0, opener=_private)

    def add(self, ranges: UInt32[np.ndarray, " rows"], columns: Columns) -> None:
        """Some rows, and the range of each."""
        sizes = np.zeros(self._ranges, np.int64)
        tally(ranges, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self._starts.append(starts)
        self._offsets.append(self._end)
        for dtype, column in zip(self.types, columns, strict=True):
            size = len(column) * dtype.itemsize
            if size > len(self._memory):
                self._memory = np.empty(size, np.uint8)
            dealt = self._memory[:size]
            deal(ranges, starts[:-1].copy(), column, dealt.view(dtype))
            self._write(dealt.data)

    def __enter__(self) -> SpillFile:
        return self

    def __exit__(self, *_: Any) -> None:
        with _disk(self._path.parent):
            self._file.close()

    def spilled(self) -> Spilled:
        """What was written."""
        starts = np.array(self._starts, np.int64).reshape(-1, self._ranges + 1)
        types = tuple(dtype.str for dtype in self.types)
        return Spilled(self._path.name, types, np.array(self._offsets, np.int64), starts)

    def _write(self, content: memoryview | bytes) -> None:
        with _disk(self._path.parent):
            while len(content):
                written = self._put(content)
                self._end += written
                content = content[written:]

    def _put(self, content: memoryview | bytes) -> int:
        return self._file.write(content)


def read_rows(folder: Path, segments: Sequence[Segments]) -> Columns:
    """All rows of a range, as columns."""
    return next(read_portions(folder, segments, sum(some.rows for some in segments)))


def read_portions(folder: Path, segments: Sequence[Segments], most: int) -> Iterator[Columns]:
    """The rows of a range, about `most` at a time; at least once, if there are none."""
    waiting: list[tuple[Segments, int]] = []
    rows = 0
    given = False
    for some in segments:
        for place, size in enumerate(some.places[3].tolist()):
            if rows and rows + size > most:
                yield _read(folder, waiting, rows)
                given = True
                waiting = []
                rows = 0
            waiting.append((some, place))
            rows += size
    if rows or not given:
        yield _read(folder, waiting, rows)


def _read(folder: Path, waiting: list[tuple[Segments, int]], rows: int) -> Columns:
    columns = [np.empty(rows, dtype) for dtype in waiting[0][0].types] if waiting else []
    views = [(column.data.cast("B"), column.itemsize) for column in columns]
    first = 0
    for segments, places in groupby(waiting, itemgetter(0)):
        with open(folder / segments.name, "rb", buffering=0) as file:
            own = [place for _, place in places]
            for offset, size, start, count in segments.places[:, own].T.tolist():
                for view, width in views:
                    into = view[first * width : (first + count) * width]
                    file.seek(offset + start * width)
                    if file.readinto(into) != len(into):
                        raise OSError(f"{folder}: a scratch file is not whole")
                    offset += size * width
                first += count
    return columns


class _disk:
    """What a disk refuses is said of the scratch folder, with what to do."""

    def __init__(self, folder: Path):
        self._folder = folder

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            raise OSError(
                f"{self._folder.parent} cannot hold the scratch files: {error.strerror or error}; name "
                "another folder with scratch="
            ) from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
