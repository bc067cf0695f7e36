"""Interactions: the records of users, each an item in a context, and how far a user moves counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Float, Int, Num, UInt64
from workbench.contributions import Users
from workbench.domain import Domain
from workbench.interactions import crossing, kernels, sampling
from workbench.interactions.reading import (
    Columns,
    UserRecords,
    frame_columns,
    narrowest_type,
    parquet_columns,
    sorted_by_user,
)
from workbench.reading import Progress
from workbench.table import PUBLIC, Bound, Public, SparseTable, Unbounded
from workbench.value import not_allowed, read_only, sealed
from workbench.workload import Workload

_MOST_RECORDS = 2**31  # of one user


@dataclass(frozen=True, eq=False)
class Interactions:
    """Records (user, item, context), sorted by user; a unit is a user with all their records.

    What samples the records cuts users to a stated bound, and believes no more than it has cut or
    checked.

    Parameters
    ----------
    domain : Domain
        Two attributes, items and contexts, which are public.
    users : int[records]
        Codes >= 0 in ascending order; which of them exist is private.
    items, contexts : int[records]
        Codes of the domain's first and second attribute.
    bound : Bound, UNBOUNDED or PUBLIC
        How far one user moves the edge counts (records of an item in a context): Bound(M, 1) where a
        user has at most M records and no item twice, Bound(M, M, M) where items may repeat,
        `UNBOUNDED` where nobody counted, `PUBLIC` where nothing is left to protect. No default.
    truth_public : bool
        Exact counts may be shown beside a release.
    distinct : bool
        No user has an item twice, which is checked.
    user_ids : uint64[users, 2], optional
        What identifies the user of each code (`contributions.UserNumbers.ids`); without it the code does.
    attributes : Domain, optional
        Whose attributes items and contexts are crossed from, in the order of the edges' keys.

    Raises
    ------
    ValueError
        Columns of another length or type, codes outside the domain, users out of order, no bound, or
        an item that a user has twice where `distinct` says otherwise.
    """

    domain: Domain
    users: Int[np.ndarray, " records"]
    items: Int[np.ndarray, " records"]
    contexts: Int[np.ndarray, " records"]
    bound: Bound | Unbounded | Public
    truth_public: bool = False
    distinct: bool = False
    user_ids: UInt64[np.ndarray, "users 2"] | None = field(default=None, repr=False)
    attributes: Domain | None = field(default=None, repr=False)

    def __post_init__(self):
        if not isinstance(self.bound, Bound | Unbounded | Public):
            need = (
                "need Bound(l0, linf), how far one user moves the edge counts, UNBOUNDED, or "
            )
            raise not_allowed(self, "bound", f"{need}PUBLIC")
        if isinstance(self.bound, Bound) and self.bound.l1 < 1:
            raise not_allowed(self, "bound", "need l1 >= 1, one record")
        _refuse_other_attributes(self.domain)
        for name in ("users", "items", "contexts"):
            column = getattr(self, name)
            is_column = column.ndim == 1 and column.shape == self.users.shape
            if not is_column or column.dtype.kind not in "iu":
                raise ValueError(
                    f"Interactions.{name} of {column.dtype} {column.shape} is not allowed: need whole "
                    f"numbers, {len(self.users)} of them"
                )
            object.__setattr__(self, name, read_only(column))
        if not len(self):
            return
        for name, size in zip(("items", "contexts"), self.domain.shape, strict=True):
            _refuse_outside(f"Interactions.{name}", getattr(self, name), size)
        if self.users[0] < 0 or (self.users[1:] < self.users[:-1]).any():
            raise ValueError("Interactions.users must be codes >= 0 and sorted; use from_codes")
        if len(self) > _MOST_RECORDS and self.records_per_user().max() > _MOST_RECORDS:
            raise ValueError(
                f"a user has more than {_MOST_RECORDS} records: no more are possible"
            )
        if self.distinct:
            self._refuse_repeated()

    def _refuse_repeated(self) -> None:
        """A ValueError that names the first row whose user has its item in a row before."""
        row = sampling.first_repeated(self.items, self._starts, self.domain.shape[0])
        if row >= 0:
            raise ValueError(
                f"Interactions.distinct = True is not allowed: in row {row} user {self.users[row]} has "
                f"item {self.items[row]} a second time; leave distinct out, or use one_per_item()"
            )

    @classmethod
    def from_codes(
        cls,
        domain: Domain,
        users: Int[np.ndarray, " records"],
        items: Int[np.ndarray, " records"],
        contexts: Int[np.ndarray, " records"],
        bound: Bound | Unbounded | Public,
        *,
        truth_public: bool = False,
    ) -> Interactions:
        """From columns in any order: sorted by user, in narrow types.

        Parameters
        ----------
        domain : Domain
            Two attributes, items and contexts.
        users : int[records]
            Any whole numbers. Records of one user keep their order.
        items, contexts : int[records]
            Codes of the domain.
        bound : Bound, UNBOUNDED or PUBLIC
            How far one user moves the edge counts.
        truth_public : bool
            Exact counts may be shown.

        Returns
        -------
        Interactions

        Raises
        ------
        ValueError
            What is no column of whole numbers, or a code outside the domain, with its row.

        Examples
        --------
        >>> domain = Domain(("film", "day"), (5, 7))
        >>> Interactions.from_codes(domain, [9, 4, 9], [0, 1, 4], [6, 6, 0], Bound(2)).items
        array([1, 0, 4], dtype=uint8)
        """
        _refuse_other_attributes(domain)
        columns = [np.asarray(column) for column in (users, items, contexts)]
        columns = [column if len(column) else column.astype(np.int64) for column in columns]
        for name, column in zip(Columns._fields, columns, strict=True):
            if column.dtype.kind not in "iu" or column.shape != (len(columns[0]),):
                raise ValueError(
                    f"{name} of {column.dtype} {column.shape} are not allowed: need whole numbers, "
                    f"{len(columns[0])} of them"
                )
        for axis, name in enumerate(domain.attributes):
            size = domain.shape[axis]
            _refuse_outside(f"column {name!r}", columns[1 + axis], size)
            columns[1 + axis] = columns[1 + axis].astype(narrowest_type(size), copy=False)
        return cls._of(domain, sorted_by_user(Columns(*columns)), bound, truth_public)

    @classmethod
    def _of(cls, domain, records: UserRecords, bound, truth_public, attributes=None):
        ids = records.ids
        made = cls(domain, *records.columns, bound, truth_public, user_ids=ids)
        return made if attributes is None else replace(made, attributes=attributes)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str,
        item: str | Sequence[str],
        context: str | Sequence[str],
        domain: Domain,
        bound: Bound | Unbounded | Public,
        truth_public: bool = False,
    ) -> Interactions:
        """From a DataFrame by naming its columns; one row a record.

        Items, and contexts, may be several columns each, which are crossed: an item is then a combination
        of labels, such as an origin and a destination.

        Parameters
        ----------
        frame : pandas.DataFrame or polars.DataFrame
            A row a record.
        user, item, context : str
            Names of columns. Users are values of any kind. Items and contexts may be tuples of names,
            contexts also (), which is one context for all.
        domain : Domain
            Two attributes, for the items and for the contexts: public, and never learnt. Where they are
            tuples, or it has a preparation, the names are those of its attributes; others are not read.
        bound : Bound, UNBOUNDED or PUBLIC
            How far one user moves the edge counts.
        truth_public : bool
            Exact counts may be shown.

        Returns
        -------
        Interactions

        Raises
        ------
        ValueError
            A column that is missing, or a value that is missing or outside the domain, with its
            column and row.
        """
        are_columns = isinstance(item, str) and isinstance(context, str)
        if domain.preparation is not None or not are_columns:
            return cls._of_rows(frame, user, item, context, domain, bound, truth_public)
        _refuse_other_attributes(domain)
        records = frame_columns(frame, (user, item, context), domain)
        return cls._of(domain, records, bound, truth_public)

    @classmethod
    def _of_rows(
        cls, data, user, item, context, domain, bound, truth_public, **how
    ) -> Interactions:
        """From rows of any source, with attributes of the domain crossed to items and to contexts."""
        items = (item,) if isinstance(item, str) else tuple(item)
        contexts = (context,) if isinstance(context, str) else tuple(context)
        crossed = crossing.crossed(domain, items, contexts)
        attributes = domain.project([*items, *contexts])
        records = crossing.crossed_records(data, user, crossed, attributes, **how)
        return cls._of(crossed, records, bound, truth_public, attributes)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        *,
        user: str,
        item: str,
        context: str,
        domain: Domain,
        bound: Bound | Unbounded | Public,
        truth_public: bool = False,
    ) -> Interactions:
        """From three columns of a Parquet file; the others are not read.

        Memory is little more than the result.

        Parameters
        ----------
        path : str or Path
            The file, a row a record.
        user, item, context, domain, bound, truth_public
            As in `from_frame`.

        Returns
        -------
        Interactions

        Raises
        ------
        FileNotFoundError
            There is no such file.
        ValueError
            The file is not a complete Parquet file, or as in `from_frame`.
        """
        if domain.preparation is not None:
            return cls._of_rows(path, user, item, context, domain, bound, truth_public)
        _refuse_other_attributes(domain)
        records = parquet_columns(path, (user, item, context), domain)
        return cls._of(domain, records, bound, truth_public)

    @classmethod
    def read(
        cls,
        path: Any,
        *,
        user: str,
        domain: Domain,
        bound: Bound | Unbounded | Public,
        item: str | Sequence[str] | None = None,
        context: str | Sequence[str] | None = None,
        truth_public: bool = False,
        table: str | None = None,
        progress: Progress | None = None,
    ) -> Interactions:
        """From files or a frame, as `SparseTable.read` takes them, in batches.

        Parameters
        ----------
        path : path, several, or a frame
            A row a record, with the columns that the domain is prepared from.
        user, domain, bound, truth_public
            As in `from_frame`.
        item, context : str or tuple of str, optional
            Attributes of the domain, as in `from_frame`; its first, and its second.
        table, progress
            As in `SparseTable.read`.

        Returns
        -------
        Interactions

        Raises
        ------
        ValueError
            A file that cannot be read, a column that is missing, or a value that is missing or outside
            the domain, with its column and line.
        """
        if item is None and context is None:
            _refuse_other_attributes(domain)
            item, context = domain.attributes
        if item is None or context is None:
            raise ValueError("item and context: need both, or neither")
        if user in domain.columns:
            raise ValueError(f"column {user!r} cannot be the user and what the user has")
        how = {"table": table, "progress": progress}
        return cls._of_rows(path, user, item, context, domain, bound, truth_public, **how)

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        names = " × ".join(self.domain.attributes)
        sizes = " × ".join(f"{size:,}" for size in self.domain.shape)
        text = f"{names} ({sizes})"
        if self.truth_public or self.bound is PUBLIC:
            text += f": {len(self):,} records of {len(self._starts) - 1:,} users"
        return f"<Interactions {text}, {self.bound!r}>"

    @property
    def _columns(self) -> Columns:
        return Columns(self.users, self.items, self.contexts)

    def _draws(self, rng: np.random.Generator | bytes | None) -> sampling.Draws:
        """Where the choice of what stays of each user comes from."""
        codes = self.users[self._starts[:-1]]
        return sampling.Draws(rng, Users(codes, self.user_ids).ids_of(codes))

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

    @cached_property
    def _edge_counts(self) -> Int[np.ndarray, "items contexts"]:
        counts = np.zeros(self.domain.shape, np.int64)
        kernels.count_edges(self.items, self.contexts, counts)
        return sealed(counts)

    def edge_counts(self) -> Int[np.ndarray, "items contexts"]:
        """How many records each item has in each context."""
        return self._edge_counts

    def table(
        self,
        bound: Bound | Public,
        rng: np.random.Generator | None = None,
        *,
        key: bytes | None = None,
    ) -> SparseTable:
        """The edges as a table, of which each user's part is cut to a bound.

        Parameters
        ----------
        bound : Bound or PUBLIC
            How far a user may move the table; PUBLIC where these are public.
        rng, key : numpy Generator or 32 bytes, optional
            As in `SparseTable.from_keys`.

        Returns
        -------
        SparseTable
            Over items × contexts, or over the attributes that they were crossed from.

        Raises
        ------
        ValueError
            Another bound, or one for what is public and the reverse.
        """
        if (bound is PUBLIC) != (self.bound is PUBLIC):
            raise ValueError(f"{bound!r} is not allowed: these interactions are {self.bound!r}")
        domain = self.attributes or self.domain
        keys = self.items.astype(np.int64) * self.domain.shape[1] + self.contexts
        users = None if bound is PUBLIC else Users(self.users, self.user_ids)
        return SparseTable.from_keys(
            domain,
            keys,
            None,
            bound,
            truth_public=self.truth_public,
            users=users,
            rng=rng,
            key=key,
        )

    def item_counts(self) -> Int[np.ndarray, " items"]:
        """How many records each item has."""
        return self._edge_counts.sum(axis=1)

    def answer(self, workload: Workload, of: str = "edges") -> Float[np.ndarray, " queries"]:
        """The exact answers, in records.

        Parameters
        ----------
        workload : Workload
            Queries over the domain, or over its items alone.
        of : "edges" or "items"
            What the queries count: edges are cells of the domain.

        Returns
        -------
        float[queries]

        Raises
        ------
        ValueError
            `of` is neither.
        """
        if of not in ("edges", "items"):
            raise ValueError(f"of = {of!r} is not allowed: need 'edges' or 'items'")
        if of == "edges":
            domain = self.domain
            counts = self.edge_counts().ravel()
        else:
            domain = self.domain.project(self.domain.attributes[:1])
            counts = self.item_counts()
        keys = np.flatnonzero(counts)
        return workload.on(domain).sums(domain, keys, counts[keys])

    def bounded(
        self,
        l: int,  # noqa: E741
        rng: np.random.Generator | bytes | None = None,
    ) -> Interactions:
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
            `l` is no whole number >= 1, or `rng` no generator.
        """
        limit = self._limit(_whole_number("l", l))
        sample = sampling.sample_records(
            self._columns, self._starts, min(limit, _MOST_RECORDS), self._draws(rng)
        )
        return self._sampled(sample, limit, self.distinct)

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

    def one_per_item(self, rng: np.random.Generator | None = None) -> Interactions:
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
            sample = sampling.one_per_item(sample, self._starts, items, self._draws(rng))
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
    ) -> Interactions:
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
        l = _whole_number("l", l)  # noqa: E741
        scores = np.asarray(scores)
        random = min(_whole_number("random", random, 0, l), _MOST_RECORDS)
        if scores.shape != self.domain.shape[:1] or scores.dtype.kind not in "iufb":
            raise ValueError(
                f"scores of {scores.dtype} {scores.shape} are not allowed: need {self.domain.shape[0]} "
                "numbers, one an item"
            )
        if scores.dtype.kind == "f" and np.isnan(scores).any():
            raise ValueError(f"scores: that of item {int(np.isnan(scores).argmax())} is NaN")
        limit = self._limit(l)
        records = min(limit, _MOST_RECORDS)
        sample = sampling.top_scored(
            self._columns, self._starts, records, min(random, records), scores, self._draws(rng)
        )
        return self._sampled(sample, limit, self.distinct)

    def pairs(self, rng: np.random.Generator | None = None) -> SparseTable:
        """Item–item edges: how many pairs of records of one user fall on each pair of items.

        Pairs are unordered: the smaller code stands first, and two records of one item meet on the
        diagonal. A user with l records makes l(l−1)/2 pairs, which is how far they move the table:
        any mechanism on sparse tables releases it. Bound the users first: memory is 8 bytes a pair.
        Whoever has more records than the bound says is cut at random.

        Parameters
        ----------
        rng : numpy Generator, optional
            As in `bounded`.

        Returns
        -------
        SparseTable
            Over item × other item, in pairs.

        Raises
        ------
        ValueError
            Without a bound of at least 2 records a user.
        """
        most = self._most_records
        if self.bound is not PUBLIC and (most is None or most < 2):
            raise ValueError(
                f"pairs need users with at most l >= 2 records, but the bound is {self.bound!r}: "
                "l(l-1)/2 pairs are what one user can change; use bounded(l)"
            )
        if most is not None and self.records_per_user().max(initial=0) > most:
            return self.bounded(most, rng).pairs()
        name = self.domain.attributes[0]
        size = self.domain.shape[0]
        labels = self.domain.labels and self.domain.labels[:1] * 2
        domain = Domain((name, f"other {name}"), (size, size), labels)
        bound = self.bound
        if isinstance(bound, Bound):
            bound = _records_bound(most * (most - 1) // 2, self.distinct)
        cells = sampling.count_item_pairs(self.items, self._starts, size)
        return SparseTable(
            domain, sealed(cells.keys), sealed(cells.counts), bound, self.truth_public
        )

    @property
    def _most_records(self) -> int | None:
        """At most so many records has one user; None where nobody counted."""
        return int(self.bound.l1) if isinstance(self.bound, Bound) else None

    def _limit(self, l: int) -> int:  # noqa: E741
        """The smaller of `l` and what the bound says."""
        return l if self._most_records is None else min(l, self._most_records)

    def _sampled(self, sample: Columns, most: int, distinct: bool) -> Interactions:
        """Some of the records: at most so many a user."""
        bound = _records_bound(most, distinct).enforced("a user")
        if self.bound is PUBLIC:
            bound = PUBLIC
        users, items, contexts = map(sealed, sample)
        return replace(
            self, users=users, items=items, contexts=contexts, bound=bound, distinct=distinct
        )


def _records_bound(most: int, distinct: bool) -> Bound:
    """Of a unit with so many records, each in a cell of its own or not."""
    return Bound(most, 1) if distinct else Bound(most, most, most)


def _whole_number(name: str, x: Any, low: int = 1, high: int | None = None) -> int:
    """A whole number in its range, or a ValueError."""
    is_whole = isinstance(x, int | np.integer) and not isinstance(x, bool)
    if not is_whole or x < low or (high is not None and x > high):
        limit = "" if high is None else f" and <= {high}"
        raise ValueError(f"{name} = {x!r} is not allowed: need a whole number >= {low}{limit}")
    return int(x)


def _refuse_other_attributes(domain: Domain) -> None:
    """A ValueError unless the domain is that of items and contexts."""
    if len(domain.shape) != 2:
        raise ValueError(
            f"Interactions.domain has attributes {domain.attributes}: need two, item and context"
        )


def _refuse_outside(name: str, codes: np.ndarray, size: int) -> None:
    """A ValueError that names the first row whose code is outside 0 … size − 1."""
    if len(codes) and not 0 <= codes.min() <= codes.max() < size:
        row = int(np.argmax((codes < 0) | (codes >= size)))
        raise ValueError(
            f"{name}, row {row}: {codes[row]} is outside the domain: need 0 <= code < {size}"
        )
