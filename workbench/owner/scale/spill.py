"""Scratch files of rows that are partitioned into ranges and read one range at a time. A range is a block of
consecutive cells, or a group of users.

A file has a random name. Tasks read the file only through the `Spilled` object that the writer of the file
returned. If a task is repeated, the rows of one attempt are therefore never mixed with the rows of another
attempt.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import njit
from workbench.value import Int

# Kernels


@njit(cache=True, nogil=True)
def tally(words, shift, sizes):
    """Count the rows of each range in `sizes`. Each row has a 64-bit word, whose upper bits are the number of
    its range.
    """
    for i in range(words.size):
        sizes[words[i] >> shift] += 1


@njit(cache=True, nogil=True)
def deal(words, shift, places, column, out):
    """Copy a column of rows into `out`, ordered by range. `places` has the position of the next row of each
    range, and the function updates it.
    """
    for i in range(words.size):
        r = words[i] >> shift
        out[places[r]] = column[i]
        places[r] += 1


# Spill


class Segments(NamedTuple):
    """Positions of a range's rows in a scratch file. For each batch of rows in the file, the object contains
    the position of the range's first row, and the number of the range's rows.
    """

    name: str
    dtype: np.dtype
    places: Int[np.ndarray, "batches 2"]

    @property
    def rows(self) -> int:
        """Number of rows of this range in the file."""
        return int(self.places[:, 1].sum())


class Spilled(NamedTuple):
    """Finished scratch file of rows, which were written in batches. Within each batch, the rows are grouped
    by range.
    """

    name: str
    dtype: np.dtype
    starts: Int[np.ndarray, "batches ranges+1"]  # rows of the file

    def segments(self, which: int) -> Segments:
        """Return the positions of the rows of range number `which`."""
        starts = self.starts[:, which]
        rows = self.starts[:, which + 1] - starts
        return Segments(self.name, self.dtype, np.stack([starts, rows], axis=1)[rows > 0])


class SpillFile:
    """New scratch file of rows. Each row has a 64-bit word, whose upper bits are the number of the row's range.

    Parameters
    ----------
    folder : Path
        Scratch folder.
    ranges : int
        Number of ranges.
    shift : int
        Number of lower bits of a word, which are not part of the range's number.
    key_type : str
        numpy type in which the lower bits of keys are written.
    """

    def __init__(self, folder: Path, ranges: int, shift: int, key_type: str):
        self._ranges = ranges
        self._shift = np.uint64(shift)
        self._key_type = key_type
        self._dtype = np.dtype([("key", key_type)])
        self._path = folder / secrets.token_hex(16)
        self._starts = [np.zeros((0, ranges + 1), np.int64)]
        self._rows = 0
        self._memory = np.empty(0, np.uint8)  # is asked for once
        with scratch_errors(folder.parent):
            private = partial(os.open, mode=0o600)
            self._file = FileIO(self._path, "xb", opener=private)

    def add(self, words: np.ndarray, key: np.ndarray, **columns: np.ndarray | None) -> None:
        """Add rows: their words, their keys, and other columns. Every call must pass the same columns. A
        column that is None is not written.
        """
        if not len(words):
            return
        others = {name: column for name, column in columns.items() if column is not None}
        words = words.view(np.uint64)
        sizes = np.zeros(self._ranges, np.int64)
        tally(words, self._shift, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        types = [(name, column.dtype.str) for name, column in others.items()]
        self._dtype = np.dtype([("key", self._key_type), *types])
        size = len(words) * self._dtype.itemsize
        if size > len(self._memory):
            self._memory = np.empty(size, np.uint8)
        records = self._memory[:size].view(self._dtype)
        for name, column in {"key": key, **others}.items():
            deal(words, self._shift, starts[:-1].copy(), column, records[name])
        with scratch_errors(self._path.parents[1]):
            _write(self._file, self._memory[:size].data)
        self._starts.append(self._rows + starts[None])
        self._rows += len(words)

    def __enter__(self) -> SpillFile:
        return self

    def __exit__(self, *_: Any) -> None:
        with scratch_errors(self._path.parents[1]):
            self._file.close()

    def spilled(self) -> Spilled:
        """Finish the file, and return an object for reading it."""
        return Spilled(self._path.name, self._dtype, np.concatenate(self._starts))


def read_rows(folder: Path, segments: Sequence[Segments]) -> np.ndarray:
    """Return all rows of a range, read from scratch files, as a record array."""
    records = np.empty(sum(some.rows for some in segments), segments[0].dtype)
    rest = records.view(np.uint8).data
    for some in segments:
        width = some.dtype.itemsize
        with FileIO(folder / some.name) as file:
            for first, rows in some.places.tolist():
                file.seek(first * width)
                if file.readinto(rest[: rows * width]) != rows * width:
                    raise OSError(f"{folder}: a scratch file is incomplete")
                rest = rest[rows * width :]
    return records


def read_batches(folder: Path, segments: Sequence[Segments]) -> Iterator[np.ndarray]:
    """Yield the rows of a range in the batches in which they were written."""
    for some in segments:
        for place in some.places:
            yield read_rows(folder, [some._replace(places=place[None])])


def _write(file: FileIO, content: memoryview) -> None:
    """Write all bytes, even if a system call writes only some of them."""
    while len(content):
        content = content[file.write(content) :]


@contextmanager
def scratch_errors(folder: Path) -> Iterator[None]:
    """Add the name of the scratch folder, and advice, to disk errors that occur in the `with` block."""
    try:
        yield
    except OSError as e:
        raise OSError(
            f"{folder} has no room for the scratch files: {e.strerror or e}. Name another folder with "
            "scratch="
        ) from None
