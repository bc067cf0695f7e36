"""Sampling the records of each user on their own, with draws that are independent across users.

Which records of a user stay is a function of a key and of that user alone, so that the independence
which the proof needs is as good as AES; what hides users is the noise. With a seeded generator the users
draw in turn from one state instead: it is for experiments, whose rows stay as they were recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Int, Num, UInt64
from workbench.contributions import cut_key, seeds
from workbench.interactions import kernels
from workbench.interactions.reading import Columns
from workbench.threads import on_threads, thread_count

_RECORDS_FOR_THREADS = 2**20  # fewer are sampled by one


class Draws(NamedTuple):
    """Where the choices of users come from: a seeded generator, or a key and who each user is.

    The key is new, and the system's, unless one is given.
    """

    rng: np.random.Generator | bytes | None
    ids: UInt64[np.ndarray, "users 2"]

    @property
    def generator(self) -> np.random.Generator | None:
        """Where users draw in turn."""
        return None if isinstance(self.rng, bytes) else self.rng

    @property
    def key(self) -> bytes | None:
        """The given one, if any."""
        return self.rng if isinstance(self.rng, bytes) else None


class PairCounts(NamedTuple):
    """Pairs of items as keys of a square of items, ascending, and how many there are of each."""

    keys: Int[np.ndarray, " cells"]
    counts: Int[np.ndarray, " cells"]


def sample_records(
    columns: Columns,
    starts: np.ndarray,
    records: int,
    draws: Draws,
) -> Columns:
    """All of a user's records, or so many, every choice of them equally likely."""
    return _some_of_each(columns, starts, records, draws, kernels.sample, records)


def one_per_item(columns: Columns, starts: np.ndarray, items: int, draws: Draws) -> Columns:
    """One record of each user and item: where there are several, one at random."""
    sample = _empty_like(columns, len(columns.users))
    size = kernels.one_per_item(starts, items, _states(draws), *columns, *sample)
    return Columns(*(column[:size].copy() for column in sample))


def top_scored(
    columns: Columns,
    starts: np.ndarray,
    records: int,
    random: int,
    scores: Num[np.ndarray, " items"],
    draws: Draws,
) -> Columns:
    """`random` records of a user, and of the others those of the highest scores, `records` in all."""
    ranks = np.unique(scores, return_inverse=True)[1].astype(np.int32)
    return _some_of_each(
        columns, starts, records, draws, kernels.top_scored, records - random, random, ranks
    )


def count_item_pairs(
    items: Int[np.ndarray, " records"], starts: np.ndarray, size: int
) -> PairCounts:
    """How many pairs of records of one user fall on each unordered pair of the `size` items."""
    sizes = np.diff(starts)
    keys = np.empty((sizes * (sizes - 1) // 2).sum(), np.int64)
    kernels.item_pairs(starts, items, size, keys)
    keys.sort()
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    return PairCounts(keys[first], np.diff(first, append=len(keys)))


def first_repeated(items: Int[np.ndarray, " records"], starts: np.ndarray, size: int) -> int:
    """The first row of an item (of `size`) that its user has in a row before; −1 if there is none."""
    if size > 4 * len(items):
        items = np.unique(items, return_inverse=True)[1]
        size = int(items.max(initial=-1)) + 1
    return kernels.first_repeated(starts, items, size)


def _some_of_each(
    columns: Columns,
    starts: np.ndarray,
    records: int,
    draws: Draws,
    kernel: Callable[..., None],
    *arguments: Any,
) -> Columns:
    """At most so many records of each user, by a kernel; of the system's key, on threads.

    What stays of a user is a function of the key and of that user alone, and so of no thread.
    """
    sizes = np.minimum(np.diff(starts), records)
    size = int(sizes.sum())
    if size == len(columns.users):
        return columns
    sample = _empty_like(columns, size)
    if draws.generator is not None:
        kernel(starts, *arguments, _replayed_state(draws.generator), *columns, *sample)
        return sample
    key = cut_key(key=draws.key)
    threads = thread_count() if len(columns.users) >= _RECORDS_FOR_THREADS else 1
    wanted = np.arange(2 * threads + 1) * (len(columns.users) / (2 * threads))
    users = np.searchsorted(starts, wanted)  # as many records for each thread
    ends = np.concatenate([[0], np.cumsum(sizes)])

    def sample_users(part: int) -> None:
        first, last = users[part], users[part + 1]
        out = slice(ends[first], ends[last])
        kernel(
            starts[first : last + 1],
            *arguments,
            seeds(key, draws.ids[first:last]),
            *columns,
            *(column[out] for column in sample),
        )

    on_threads(sample_users, np.flatnonzero(np.diff(users)).tolist(), threads)
    return sample


def _empty_like(columns: Columns, size: int) -> Columns:
    return Columns(*(np.empty(size, column.dtype) for column in columns))


def _states(draws: Draws) -> UInt64[np.ndarray, "states 4"]:
    """A state for each user, of one key of the operating system; or one for all, of a seeded generator."""
    if draws.generator is not None:
        return _replayed_state(draws.generator)
    return seeds(cut_key(key=draws.key), draws.ids)


def _replayed_state(rng: np.random.Generator) -> UInt64[np.ndarray, "1 4"]:
    """One state for all users, who draw in turn."""
    seed = int.from_bytes(cut_key(rng))
    return np.random.SeedSequence(seed, pool_size=8).generate_state(4, np.uint64)[None]
