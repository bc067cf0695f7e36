"""Sampling of the records of each user, at random or by score.

The kept records of a user depend on a key and on that user's records alone. The proof needs samples
that are independent across users, and they are as independent as AES is random. Noise hides the users,
and not the sampling. With a seeded generator, users draw in turn from one state instead. This is for
experiments whose recorded rows must not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import on_threads, thread_count
from workbench.data import interaction_kernels
from workbench.data.interaction_rows import Columns
from workbench.data.users import cut_key, seeds
from workbench.spaces import Domain
from workbench.value import Bool, Int, UInt64

# Sampling

_RECORDS_FOR_THREADS = 2**20  # fewer are sampled by one


class Draws(NamedTuple):
    """Source of random choices: one stream of a seeded generator, or a key and the identifier of each
    user.
    """

    stream: UInt64[np.ndarray, "1 4"] | None
    key: bytes
    ids: UInt64[np.ndarray, "users 2"]

    @classmethod
    def of(cls, rng: np.random.Generator | bytes | None, ids: np.ndarray) -> Draws:
        """Return draws from a generator or a key. Default: a new key from the operating system."""
        key = rng if isinstance(rng, bytes) else cut_key(rng)
        if not isinstance(rng, np.random.Generator):
            return cls(None, key, ids)
        seed = np.random.SeedSequence(int.from_bytes(key), pool_size=8)
        return cls(seed.generate_state(4, np.uint64)[None], key, ids)

    def states(self, users: slice) -> UInt64[np.ndarray, "states 4"]:
        """Return a state for each user, or one state from which all users draw in turn."""
        return seeds(self.key, self.ids[users]) if self.stream is None else self.stream


def some_of_each(
    starts: np.ndarray, draws: Draws, kernel: Callable[..., None], *arguments: Any
) -> Bool[np.ndarray, " records"]:
    """Return a mask of the records of each user that a kernel keeps, on several threads unless users draw
    in turn.

    The kept records of a user depend only on the key and on that user, so the number of threads has no
    effect.
    """
    kept = np.zeros(starts[-1], bool)
    on_one = draws.stream is not None or len(kept) < _RECORDS_FOR_THREADS
    threads = 1 if on_one else thread_count()
    parts = threads if on_one else 2 * threads
    wanted = np.arange(parts + 1) * (len(kept) / parts)
    users = np.searchsorted(starts, wanted)  # as many records for each part

    def sample_users(part: int) -> None:
        some = slice(users[part], users[part + 1])
        kernel(starts[some.start : some.stop + 1], *arguments, draws.states(some), kept)

    on_threads(sample_users, np.flatnonzero(np.diff(users)).tolist(), threads)
    return kept


def first_repeated(items: Int[np.ndarray, " records"], starts: np.ndarray, size: int) -> int:
    """Return the first row whose item the same user has in an earlier row, or −1 if there is none.
    There are `size` items.
    """
    if size > 4 * len(items):
        items = np.unique(items, return_inverse=True)[1]
        size = int(items.max(initial=-1)) + 1
    return interaction_kernels.first_repeated(starts, items, size)


# Checks

MOST_RECORDS = 2**31  # of one user


def refuse_wrong_columns(columns: Columns) -> None:
    """Raise a ValueError unless all columns contain integers and have the same length."""
    for name, column in zip(Columns._fields, columns, strict=True):
        if column.dtype.kind not in "iu" or column.shape != (len(columns.users),):
            raise ValueError(
                f"{name} of {column.dtype} {column.shape} are not allowed: need integers, "
                f"{len(columns.users)} of them"
            )


def refuse_other_attributes(domain: Domain) -> None:
    """Raise a ValueError unless the domain has exactly two attributes, for items and contexts."""
    if len(domain.shape) != 2:
        raise ValueError(
            f"Interactions.domain has attributes {domain.attributes}: need two, item and context"
        )


def refuse_outside(name: str, codes: np.ndarray, size: int) -> None:
    """Raise a ValueError that names the first row whose code is outside 0 … size − 1."""
    if len(codes) and not 0 <= codes.min() <= codes.max() < size:
        row = int(np.argmax((codes < 0) | (codes >= size)))
        raise ValueError(
            f"{name}, row {row}: {codes[row]} is outside the domain: need 0 <= code < {size}"
        )


def whole_number(name: str, x: Any, low: int = 1, high: int | None = None) -> int:
    """Return x as an integer. Raise a ValueError if it is not an integer from `low` to `high`."""
    is_whole = isinstance(x, int | np.integer) and not isinstance(x, bool)
    if not is_whole or x < low or (high is not None and x > high):
        limit = "" if high is None else f" and <= {high}"
        raise ValueError(f"{name} = {x!r} is not allowed: need an integer >= {low}{limit}")
    return int(x)
