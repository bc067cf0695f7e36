"""Sampling the records of each user, at random or by score, and the pairs of records that stay.

Which records of a user stay is a function of a key and of that user alone, so that the independence
which the proof needs is as good as AES; what hides users is the noise. With a seeded generator the users
draw in turn from one state instead: it is for experiments, whose rows stay as they were recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from workbench.compiled import on_threads, thread_count
from workbench.data import interaction_kernels
from workbench.data.interaction_rows import Columns
from workbench.data.table import PUBLIC, Bound, Public, Unbounded
from workbench.data.users import Users, cut_key, seeds
from workbench.spaces import Domain
from workbench.value import Int, Num, UInt64, sealed

# Sampling

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
        return self.rng if isinstance(self.rng, np.random.Generator) else None

    @property
    def key(self) -> bytes:
        """The given one, or one that is drawn."""
        return self.rng if isinstance(self.rng, bytes) else cut_key(rng=self.rng)


def sample_records(
    columns: Columns,
    starts: np.ndarray,
    records: int,
    draws: Draws,
) -> Columns:
    """All of a user's records, or so many, every choice of them equally likely."""
    return _some_of_each(columns, starts, records, draws, interaction_kernels.sample, records)


def one_per_item(columns: Columns, starts: np.ndarray, items: int, draws: Draws) -> Columns:
    """One record of each user and item: where there are several, one at random."""
    sample = _empty_like(columns, len(columns.users))
    size = interaction_kernels.one_per_item(starts, items, _states(draws), *columns, *sample)
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
        columns,
        starts,
        records,
        draws,
        interaction_kernels.top_scored,
        records - random,
        random,
        ranks,
    )


def first_repeated(items: Int[np.ndarray, " records"], starts: np.ndarray, size: int) -> int:
    """The first row of an item (of `size`) that its user has in a row before; −1 if there is none."""
    if size > 4 * len(items):
        items = np.unique(items, return_inverse=True)[1]
        size = int(items.max(initial=-1)) + 1
    return interaction_kernels.first_repeated(starts, items, size)


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
    key = draws.key
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
    return seeds(draws.key, draws.ids)


def _replayed_state(rng: np.random.Generator) -> UInt64[np.ndarray, "1 4"]:
    """One state for all users, who draw in turn."""
    seed = int.from_bytes(cut_key(rng))
    return np.random.SeedSequence(seed, pool_size=8).generate_state(4, np.uint64)[None]


# Checks

MOST_RECORDS = 2**31  # of one user


def refuse_wrong_columns(columns: Columns) -> None:
    """A ValueError unless they are integers, as many of each."""
    for name, column in zip(Columns._fields, columns, strict=True):
        if column.dtype.kind not in "iu" or column.shape != (len(columns.users),):
            raise ValueError(
                f"{name} of {column.dtype} {column.shape} are not allowed: need integers, "
                f"{len(columns.users)} of them"
            )


def refuse_wrong_codes(data: Any) -> None:
    """A ValueError unless codes lie in the domain, sorted by user, not too many, and as `distinct` says."""
    for name, size in zip(("items", "contexts"), data.domain.shape, strict=True):
        refuse_outside(f"Interactions.{name}", getattr(data, name), size)
    users = data.users
    if users[0] < 0 or (users[1:] < users[:-1]).any():
        raise ValueError("Interactions.users must be codes >= 0 and sorted; use from_codes")
    if len(data) > MOST_RECORDS and data.records_per_user().max() > MOST_RECORDS:
        raise ValueError(f"a user has more than {MOST_RECORDS} records: no more are possible")
    if not data.distinct:
        return
    row = first_repeated(data.items, data._starts, data.domain.shape[0])
    if row >= 0:
        raise ValueError(
            f"Interactions.distinct = True is not allowed: in row {row} user {users[row]} has "
            f"item {data.items[row]} a second time; leave distinct out, or use one_per_item()"
        )


def refuse_other_attributes(domain: Domain) -> None:
    """A ValueError unless the domain is that of items and contexts."""
    if len(domain.shape) != 2:
        raise ValueError(
            f"Interactions.domain has attributes {domain.attributes}: need two, item and context"
        )


def refuse_outside(name: str, codes: np.ndarray, size: int) -> None:
    """A ValueError that names the first row whose code is outside 0 … size − 1."""
    if len(codes) and not 0 <= codes.min() <= codes.max() < size:
        row = int(np.argmax((codes < 0) | (codes >= size)))
        raise ValueError(
            f"{name}, row {row}: {codes[row]} is outside the domain: need 0 <= code < {size}"
        )


def whole_number(name: str, x: Any, low: int = 1, high: int | None = None) -> int:
    """An integer in its range, or a ValueError."""
    is_whole = isinstance(x, int | np.integer) and not isinstance(x, bool)
    if not is_whole or x < low or (high is not None and x > high):
        limit = "" if high is None else f" and <= {high}"
        raise ValueError(f"{name} = {x!r} is not allowed: need an integer >= {low}{limit}")
    return int(x)


# Bounded


class OfUsers:
    """Records sorted by user, of which each user keeps some: the half of `Interactions` that samples."""

    domain: Domain
    users: Int[np.ndarray, " records"]
    items: Int[np.ndarray, " records"]
    contexts: Int[np.ndarray, " records"]
    bound: Bound | Unbounded | Public
    truth_public: bool
    distinct: bool
    user_ids: UInt64[np.ndarray, "users 2"] | None
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __len__(self) -> int:
        return len(self.users)

    @property
    def _columns(self) -> Columns:
        return Columns(self.users, self.items, self.contexts)

    def _draws(self, rng: np.random.Generator | bytes | None) -> Draws:
        """Where the choice of what stays of each user comes from."""
        return Draws(rng, self.ids_per_user())

    @cached_property
    def _starts(self) -> Int[np.ndarray, " users+1"]:
        """Where each user's records start, and the end."""
        if not len(self):
            return np.zeros(1, np.int64)
        first = np.flatnonzero(self.users[1:] != self.users[:-1]) + 1
        return np.concatenate([[0], first, [len(self)]])

    def records_per_user(self) -> Int[np.ndarray, " users"]:
        """How many records each user has, in the order of their codes, of users with any."""
        return np.diff(self._starts)

    def bounded(
        self,
        l: int,  # noqa: E741
        rng: np.random.Generator | bytes | None = None,
    ) -> Self:
        """At most `l` records of each user: all, or l of them at random without replacement.

        Every l of a user's records are equally likely, and users are independent of each other.

        Parameters
        ----------
        l : int
            Records of a user, at least 1; a smaller stated bound holds.
        rng : numpy Generator or 32 bytes, optional
            Randomness that can be replayed; without it, that of the operating system. A key chooses for
            each user alone, whoever else is there.

        Returns
        -------
        Interactions
            With the bound that now holds.

        Raises
        ------
        ValueError
            `l` is not an integer >= 1, or `rng` no generator.
        """
        limit = self._limit(whole_number("l", l))
        sample = sample_records(
            self._columns, self._starts, min(limit, MOST_RECORDS), self._draws(rng)
        )
        return self._sampled(sample, limit, self.distinct)

    def ids_per_user(self) -> UInt64[np.ndarray, "users 2"]:
        """What identifies each user, in the order of their codes, of users with any records."""
        codes = self.users[self._starts[:-1]]
        return Users(codes, self.user_ids).ids_of(codes)

    def users_beyond(self, bound: Bound) -> int:
        """How many users have records that cannot all stay within a bound; private, as counts are.

        Whether one does depends on nobody else: one user more or less moves it by one at most.

        Parameters
        ----------
        bound : Bound
            Of edge counts: at most l1 records of a user; where linf is 1, no item twice.

        Returns
        -------
        int
        """
        records = self.records_per_user()
        beyond = records > bound.l1
        if bound.linf == 1 and not self.distinct and len(self):
            sizes = self.domain.shape[0]
            owners = np.repeat(np.arange(len(records)), records)
            different = np.unique(owners * sizes + self.items) // sizes
            beyond |= np.bincount(different, minlength=len(records)) < records
        return int(beyond.sum())

    def one_per_item(self, rng: np.random.Generator | None = None) -> Self:
        """One record of each user and item: where there are several, one at random.

        Parameters
        ----------
        rng : numpy Generator, optional
            As in `bounded`.

        Returns
        -------
        Interactions
            Distinct, and cut to the stated bound.
        """
        items = self.domain.shape[0]
        sample = self._columns
        if not self.distinct:
            sample = one_per_item(sample, self._starts, items, self._draws(rng))
        distinct = self._sampled(sample, items, distinct=True)
        most = self._most_records
        return distinct if most is None else distinct.bounded(min(most, items), rng)

    def top_scored(
        self,
        l: int,  # noqa: E741
        scores: Num[np.ndarray, " items"],
        rng: np.random.Generator | bytes | None = None,
        *,
        random: int = 0,
    ) -> Self:
        """The `l` records of each user whose items have the highest scores, ties at random.

        Parameters
        ----------
        l : int
            Records of a user, at least 1.
        scores : numbers[items]
            Public, one an item.
        rng : numpy Generator, optional
            As in `bounded`.
        random : int
            So many of the l are drawn from all records of the user first, and the others are the
            highest of what is left; 0 to l.

        Returns
        -------
        Interactions
            With the bound that now holds.

        Raises
        ------
        ValueError
            `l` or `random` out of range, scores that are not a number for each item.
        """
        l = whole_number("l", l)  # noqa: E741
        scores = np.asarray(scores)
        random = min(whole_number("random", random, 0, l), MOST_RECORDS)
        if scores.shape != self.domain.shape[:1] or scores.dtype.kind not in "iufb":
            raise ValueError(
                f"scores of {scores.dtype} {scores.shape} are not allowed: need {self.domain.shape[0]} "
                "numbers, one an item"
            )
        if scores.dtype.kind == "f" and np.isnan(scores).any():
            raise ValueError(f"scores: that of item {int(np.isnan(scores).argmax())} is NaN")
        limit = self._limit(l)
        records = min(limit, MOST_RECORDS)
        sample = top_scored(
            self._columns, self._starts, records, min(random, records), scores, self._draws(rng)
        )
        return self._sampled(sample, limit, self.distinct)

    @property
    def _most_records(self) -> int | None:
        """At most so many records has one user; None where nobody counted."""
        return int(self.bound.l1) if isinstance(self.bound, Bound) else None

    def _limit(self, l: int) -> int:  # noqa: E741
        """The smaller of `l` and what the bound says."""
        return l if self._most_records is None else min(l, self._most_records)

    def _sampled(self, sample: Columns, most: int, distinct: bool) -> Self:
        """Some of the records: at most so many a user."""
        enforced = _records_bound(most, distinct).enforced("a user")
        bound = PUBLIC if self.bound is PUBLIC else enforced
        users, items, contexts = map(sealed, sample)
        return replace(
            self, users=users, items=items, contexts=contexts, bound=bound, distinct=distinct
        )


def _records_bound(most: int, distinct: bool) -> Bound:
    """Of a unit with so many records, each in a cell of its own or not."""
    return Bound(most, 1) if distinct else Bound(most, most, most)
