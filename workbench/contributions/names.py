"""Users who are no numbers: names, which come in batches, are numbered in the order they are first seen."""

from __future__ import annotations

import os

import numpy as np

from workbench.arrays import Int, UInt64
from workbench.contributions import kernels
from workbench.libraries import pa, pl

_LEAST = 2**10  # places of a table, and bytes of names


class NumberedNames:
    """Different names, each with a number: found by a hash, and compared whole.

    The hash is one of many, drawn at random, so that nobody can choose names which collide.
    """

    def __init__(self) -> None:
        self._hash_seed = int.from_bytes(os.urandom(8))
        self._size = 0
        self._hashes = np.empty(_LEAST, np.uint64)  # of the name of each number
        self._ends = np.zeros(_LEAST, np.int64)  # of the name of each number, 1 on
        self._content = np.empty(_LEAST, np.uint8)  # all names
        self._table = np.full(_LEAST, -1)  # numbers, each near the place that its hash says

    def __len__(self) -> int:
        return self._size

    def numbers_of(self, names: pa.LargeBinaryArray) -> Int[np.ndarray, " names"]:
        """The numbers of some names, of which those that are new get the next ones."""
        _, ends, content = names.buffers()
        ends = np.frombuffer(ends, np.int64)[names.offset : names.offset + len(names) + 1]
        content = np.frombuffer(content or b"", np.uint8)
        self._make_room(len(names), int(ends[-1] - ends[0]))
        numbers = np.empty(len(names), np.int64)
        self._size = kernels.number_names(
            _hashes(names, self._hash_seed),
            ends,
            content,
            self._size,
            self._hashes,
            self._ends,
            self._content,
            self._table,
            numbers,
        )
        return numbers

    def all(self) -> pa.LargeBinaryArray:
        """The name of each number."""
        buffers = [None, pa.py_buffer(self._ends), pa.py_buffer(self._content)]
        return pa.Array.from_buffers(pa.large_binary(), self._size, buffers)

    def _make_room(self, names: int, n_bytes: int) -> None:
        """For so many new names; a table is at most a quarter full."""
        self._hashes = _longer(self._hashes, self._size, names)
        self._ends = _longer(self._ends, self._size + 1, names)
        self._content = _longer(self._content, int(self._ends[self._size]), n_bytes)
        if 4 * (self._size + names) > len(self._table):
            places = 1 << (8 * (self._size + names) - 1).bit_length()
            self._table = np.full(places, -1)
            kernels.place_names(self._hashes[: self._size], self._table)


def _longer(array: np.ndarray, size: int, more: int) -> np.ndarray:
    """An array with its first numbers and room for more."""
    if size + more <= len(array):
        return array
    longer = np.empty(2 * (size + more), array.dtype)
    longer[:size] = array[:size]
    return longer


def _hashes(names: pa.Array, seed: int) -> UInt64[np.ndarray, " names"]:
    return pl.Series(names).hash(seed).to_numpy()
