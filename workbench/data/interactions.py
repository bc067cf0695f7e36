"""Interactions: records of a user, an item and a context, for example of a person who rated a film on a
weekday.

Some methods keep only some records of each user, at random or by score. The choice for a user depends only on a
secret key, on the identity of the user and on the records of this user. The choices for different users are
independent if the cipher AES behaves like a random permutation. These choices alone do not protect users. A
mechanism adds noise later, and this noise protects users.

If you give a seeded generator in place of a key, all users draw in turn from one random sequence. Use a
generator only in experiments whose recorded results must not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from workbench.compiled import on_threads, thread_count
from workbench.data import interaction_kernels
from workbench.data.bound import PUBLIC, Bound, Public, Unbounded
from workbench.data.interaction_rows import (
    Columns,
    crossed,
    narrowest_type,
    records_of_rows,
    sorted_by_user,
)
from workbench.data.reading import Progress
from workbench.data.table import SparseTable
from workbench.data.users import UserNumbers, Users, cut_key, seeds
from workbench.queries import Recipe
from workbench.spaces import Domain
from workbench.value import Bool, Float, Int, Num, UInt64, not_allowed, read_only, sealed

# Sampling

_RECORDS_FOR_THREADS = 2**20  # fewer are sampled by one


class Draws(NamedTuple):
    """Source of the random choices for users: one random sequence for all users, or a key and the identifier
    of each user.
    """

    stream: UInt64[np.ndarray, "1 4"] | None
    key: bytes
    ids: UInt64[np.ndarray, "users 2"]

    @classmethod
    def of(cls, rng: np.random.Generator | bytes | None, ids: np.ndarray) -> Draws:
        """Return the source of random choices for a seeded generator or for a key. If `rng` is None, a new key
        comes from the operating system.
        """
        key = rng if isinstance(rng, bytes) else cut_key(rng)
        if not isinstance(rng, np.random.Generator):
            return cls(None, key, ids)
        seed = np.random.SeedSequence(int.from_bytes(key), pool_size=8)
        return cls(seed.generate_state(4, np.uint64)[None], key, ids)

    def states(self, users: slice) -> UInt64[np.ndarray, "states 4"]:
        """Return the states of random number generators, one per user. If there is one sequence for all users,
        return the single state of this sequence.
        """
        return seeds(self.key, self.ids[users]) if self.stream is None else self.stream


def some_of_each(
    starts: np.ndarray, draws: Draws, kernel: Callable[..., None], *arguments: Any
) -> Bool[np.ndarray, " records"]:
    """Return a mask of the records that the compiled loop `kernel` keeps for each user. If there is a key,
    each user has a separate random sequence, and several threads work at the same time.

    The number of threads does not change the result, because the kept records of a user depend only on the
    key and on this user.
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
    """Return the first row whose item occurs in an earlier row of the same user, or −1 if there is no such
    row. Items are numbered from 0 to `size` − 1.
    """
    if size > 4 * len(items):
        items = np.unique(items, return_inverse=True)[1]
        size = int(items.max(initial=-1)) + 1
    return interaction_kernels.first_repeated(starts, items, size)


# Checks


def refuse_wrong_columns(columns: Columns) -> None:
    """Raise a ValueError if a column does not contain integers, or if the columns have different lengths."""
    for name, column in zip(Columns._fields, columns, strict=True):
        if column.dtype.kind not in "iu" or column.shape != (len(columns.users),):
            raise ValueError(
                f"{name} of {column.dtype} {column.shape} are not allowed: need integers, "
                f"{len(columns.users)} of them"
            )


def refuse_other_attributes(domain: Domain) -> None:
    """Raise a ValueError if the domain does not have exactly two attributes, which are for items and
    contexts.
    """
    if len(domain.shape) != 2:
        raise ValueError(
            f"Interactions.domain has attributes {domain.attributes}: need two, item and context"
        )


def refuse_outside(name: str, codes: np.ndarray, size: int) -> None:
    """Raise a ValueError if a code (number of a value) is not between 0 and `size` − 1. The message names the
    first row with such a code.
    """
    if len(codes) and not 0 <= codes.min() <= codes.max() < size:
        row = int(np.argmax((codes < 0) | (codes >= size)))
        raise ValueError(
            f"{name}, row {row}: {codes[row]} is outside the domain: need 0 <= code < {size}"
        )


def whole_number(name: str, x: Any, low: int = 1, high: int | None = None) -> int:
    """Return x as a Python integer. Raise a ValueError if x is not an integer from `low` to `high`."""
    is_whole = isinstance(x, int | np.integer) and not isinstance(x, bool)
    if not is_whole or x < low or (high is not None and x > high):
        limit = "" if high is None else f" and <= {high}"
        raise ValueError(f"{name} = {x!r} is not allowed: need an integer >= {low}{limit}")
    return int(x)


# Interactions


@dataclass(frozen=True, eq=False)
class Interactions:
    """Table of interactions. Each record contains a user, an item and a context. For example, a user rated a
    film (the item) on a weekday (the context). A guarantee protects a user with all their records.

    An *edge* is a pair of an item and a context. Most mechanisms publish how many records each edge or each
    item has. The methods `bounded`, `one_per_item` and `top_scored` keep only some records of each user, so
    that one user changes these counts only a little.

    Parameters
    ----------
    domain : Domain
        Domain with two attributes: the possible items and the possible contexts. The domain must be public.
    users : int[records]
        For each record, an integer >= 0 that identifies its user, in ascending order. These integers are
        private.
    items, contexts : int[records]
        Item and context of each record, as codes. A code is the position of a value in the attribute's list of
        values, counted from 0. Items are values of the domain's first attribute, and contexts of the second.
    bound : Bound, UNBOUNDED or PUBLIC
        Limit on how much one user can change the numbers of records per edge. Suppose that a user has at most
        M records. If no user has an item twice, use Bound(M, 1). If a user may have an item several times,
        use Bound(M, M, M). If you know no limit, use `UNBOUNDED`. If the data are public, use `PUBLIC`. There
        is no default.
    truth_public : bool
        Whether the exact counts are public. If they are public, the workbench may show them next to a release.
        Default False.
    distinct : bool
        Whether you state that no user has an item twice. If you pass True, the workbench checks this
        statement. Default False.
    user_ids : uint64[users, 2], optional
        Identifiers of users, each of which consists of two 64-bit integers (see `UserNumbers.ids`). The
        identifier of user i is in row i. By default, the number of a user is also the identifier.
    attributes : Domain, optional
        Domain of the original attributes, if items and contexts are combinations of several attributes.

    Raises
    ------
    ValueError
        If one of the arrays has another type or length, or if a code is outside the domain. The error is also
        raised if users are not in ascending order, if the bound is missing, or if a user has an item twice
        although `distinct` is True.
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

    def __post_init__(self) -> None:
        if not isinstance(self.bound, Bound | Unbounded | Public):
            need = (
                "need Bound(l0, linf), how far one user moves the edge counts, UNBOUNDED, or "
            )
            raise not_allowed(self, "bound", f"{need}PUBLIC")
        refuse_other_attributes(self.domain)
        refuse_wrong_columns(self._columns)
        for name, column in zip(Columns._fields, self._columns, strict=True):
            object.__setattr__(self, name, read_only(column))
        if not len(self):
            return
        for name, size in zip(("items", "contexts"), self.domain.shape, strict=True):
            refuse_outside(f"Interactions.{name}", getattr(self, name), size)
        if self.users[0] < 0 or (self.users[1:] < self.users[:-1]).any():
            raise ValueError("Interactions.users must be codes >= 0 and sorted. Use from_codes")
        if self.distinct:
            row = first_repeated(self.items, self._starts, self.domain.shape[0])
            if row >= 0:
                raise ValueError(
                    f"Interactions.distinct = True is not allowed: in row {row} user "
                    f"{self.users[row]} has item {self.items[row]} a second time; leave distinct out, or "
                    "use one_per_item()"
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
        """Create interactions from three columns of integers, which stand for users, items and contexts. Rows
        may be in any order.

        Parameters
        ----------
        domain : Domain
            Domain with two attributes: the possible items and the possible contexts.
        users : int[records]
            For each record, an integer that identifies its user. Records of one user keep their order.
        items, contexts : int[records]
            Item and context of each record, as codes. A code is the position of a value in the attribute's list
            of values, counted from 0.
        bound : Bound, UNBOUNDED or PUBLIC
            Limit on how much one user can change the numbers of records per item and context.
        truth_public : bool
            Whether the exact counts are public. If they are public, the workbench may show them. Default False.

        Returns
        -------
        Interactions
            Interactions, sorted by user and stored in small integer types.

        Raises
        ------
        ValueError
            If a column does not contain integers, or if a code is outside the domain. The message names the row
            with the code.

        Examples
        --------
        >>> domain = Domain(("film", "day"), (5, 7))
        >>> Interactions.from_codes(domain, [9, 4, 9], [0, 1, 4], [6, 6, 0], Bound(2)).items
        array([1, 0, 4], dtype=uint8)
        """
        refuse_other_attributes(domain)
        columns = [np.asarray(column) for column in (users, items, contexts)]
        columns = [column if len(column) else column.astype(np.int64) for column in columns]
        refuse_wrong_columns(Columns(*columns))
        for axis, name in enumerate(domain.attributes):
            size = domain.shape[axis]
            refuse_outside(f"column {name!r}", columns[1 + axis], size)
            columns[1 + axis] = columns[1 + axis].astype(narrowest_type(size), copy=False)
        by_user, ids = sorted_by_user(Columns(*columns))
        return cls(domain, *by_user, bound, truth_public, user_ids=ids)

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
        user_type: str | None = None,
        table: str | None = None,
        progress: Progress | None = None,
    ) -> Interactions:
        """Read interactions from a data frame, or from files in any format that `SparseTable.read` takes, for
        example CSV or Parquet.

        An item may be a combination of several columns, for example of an origin and a destination. A context
        may also be such a combination.

        Parameters
        ----------
        path : path, several, or a frame
            Data with one row per record. The data must have the columns from which the attributes of the
            domain are computed.
        user : str
            Name of the column of users. The users may be integers, text, dates or times.
        domain : Domain
            Domain with one attribute for items and one for contexts. If items or contexts combine several
            attributes, the domain has all of these attributes. The domain must be public and must not be
            computed from the data.
        bound : Bound, UNBOUNDED or PUBLIC
            Limit on how much one user can change the numbers of records per item and context.
        item, context : str or tuple of str, optional
            Columns of the data that contain the items and the contexts. You can also pass a tuple of
            attributes of the domain. Then the items (or contexts) are the combinations of these attributes.
            If you pass the empty tuple () as context, all records have the same context. If the domain has
            rules that compute attributes from columns, pass names of attributes and not of columns. By
            default, the first attribute of the domain contains the items, and the second the contexts.
        truth_public : bool
            Whether the exact counts are public. If they are public, the workbench may show them. Default False.
        user_type : "text", optional
            With "text", users are read as text, so that 7 and 007 are two people.
        table, progress : str and callable, optional
            `table` is the name of a table in a database file. `progress` is a function that is called with two
            numbers: how many bytes were read so far, and how many bytes there are in total, as in
            `SparseTable.read`.

        Returns
        -------
        Interactions

        Raises
        ------
        ValueError
            If a file cannot be read, if a column is missing, or if a value is missing or outside the domain.
            The message names the column and the row.
        """
        if item is None and context is None:
            refuse_other_attributes(domain)
            item, context = domain.attributes
        if item is None or context is None:
            raise ValueError("item and context: need both, or neither")
        crossed_from = None
        if isinstance(item, str) and isinstance(context, str) and domain.preparation is None:
            refuse_other_attributes(domain)
            columns = zip(domain.rules.items(), (item, context), strict=True)
            rules = {name: replace(rule, column=column) for (name, rule), column in columns}
            attributes = Domain.from_dict(rules)
        else:
            items = (item,) if isinstance(item, str) else tuple(item)
            contexts = (context,) if isinstance(context, str) else tuple(context)
            both = crossed(domain, items, contexts)
            crossed_from = attributes = domain.project([*items, *contexts])
            domain = both
        if user in attributes.columns:
            raise ValueError(f"column {user!r} cannot be the user and what the user has")
        people = UserNumbers(user, user_type, domain.missing_user)
        how = {"table": table, "progress": progress}
        by_user, ids = records_of_rows(path, people, domain, attributes, **how)
        return cls(domain, *by_user, bound, truth_public, user_ids=ids, attributes=crossed_from)

    from_frame = read

    def __repr__(self) -> str:
        names = " × ".join(self.domain.attributes)
        sizes = " × ".join(f"{size:,}" for size in self.domain.shape)
        text = f"{names} ({sizes})"
        if self.truth_public or self.bound is PUBLIC:
            text += f": {len(self):,} records of {len(self._starts) - 1:,} users"
        return f"<Interactions {text}, {self.bound!r}>"

    def __len__(self) -> int:
        return len(self.users)

    @property
    def _columns(self) -> Columns:
        return Columns(self.users, self.items, self.contexts)

    def _some(self, rng: Any, records: int, kernel: Any, *arguments: Any) -> Columns:
        """Return at most `records` records of each user, chosen by the compiled loop `kernel`."""
        if self.records_per_user().max(initial=0) <= records:
            return self._columns
        draws = Draws.of(rng, self.ids_per_user())
        rows = np.flatnonzero(some_of_each(self._starts, draws, kernel, *arguments))
        return Columns(*(column[rows] for column in self._columns))

    @cached_property
    def _starts(self) -> Int[np.ndarray, " users+1"]:
        """Number of the row at which the records of each user begin. The last entry of the array is the
        number of all rows.
        """
        if not len(self):
            return np.zeros(1, np.int64)
        first = np.flatnonzero(self.users[1:] != self.users[:-1]) + 1
        return np.concatenate([[0], first, [len(self)]])

    def records_per_user(self) -> Int[np.ndarray, " users"]:
        """Return the number of records of each user, without users who have no records. The users are in the
        order of their numbers.
        """
        return np.diff(self._starts)

    def bounded(
        self,
        l: int,  # noqa: E741
        rng: np.random.Generator | bytes | None = None,
    ) -> Self:
        """Return new interactions with at most `l` records per user. If a user has more records, `l` of these
        records are chosen at random.

        All sets of `l` records of a user are equally likely. The choices for different users are independent.

        Parameters
        ----------
        l : int
            Largest number of records to keep for each user, an integer >= 1. If the stated bound allows fewer
            records, the number in the bound is used instead.
        rng : numpy Generator or 32 bytes, optional
            Seeded generator or secret key. The same key gives the same choice again. With a key, the choice
            for a user does not depend on other users. By default, a new key comes from the operating system.

        Returns
        -------
        Interactions
            Interactions with the kept records, and with the bound that now holds.

        Raises
        ------
        ValueError
            If `l` is not an integer >= 1, or if `rng` is neither a generator nor a key.
        """
        limit = self._limit(whole_number("l", l))
        records = min(limit, len(self))
        sample = self._some(rng, records, interaction_kernels.sample, records)
        return self._sampled(sample, limit, self.distinct)

    def ids_per_user(self) -> UInt64[np.ndarray, "users 2"]:
        """Return the identifier of each user with at least one record, as two 64-bit integers. The users are
        in the order of their numbers.
        """
        codes = self.users[self._starts[:-1]]
        return Users(codes, self.user_ids).ids_of(codes)

    def users_beyond(self, bound: Bound) -> int:
        """Return how many users have more records than the given bound allows. The result is private.

        Each user is checked independently of the other users. So adding or removing one user changes the
        result by at most one.

        Parameters
        ----------
        bound : Bound
            Limit on how much one user may change the numbers of records per item and context. A user may have
            at most `bound.l1` records. If `bound.linf` is 1, a user may also have at most one record of each
            item, whatever the contexts.

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
        """Return new interactions in which no user has an item twice. If a user has several records with the
        same item, one of these records is kept at random.

        Parameters
        ----------
        rng : numpy Generator, optional
            Seeded generator, with which you get the same choice again. By default, the random bits come from
            the operating system.

        Returns
        -------
        Interactions
            Interactions in which no user has an item twice. If a bound was stated, no user has more records
            than the bound allows.
        """
        items = self.domain.shape[0]
        sample = self._columns
        if not self.distinct:
            rows = np.empty(len(self), narrowest_type(len(self) + 1))
            states = Draws.of(rng, self.ids_per_user()).states(slice(None))
            size = interaction_kernels.one_per_item(
                self._starts, self.items, items, states, rows
            )
            sample = Columns(*(column[rows[:size]] for column in sample))
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
        """Return new interactions with at most `l` records per user, namely the records whose items have the
        highest scores. If items have equal scores, the choice between their records is random.

        Parameters
        ----------
        l : int
            Largest number of records to keep for each user, an integer >= 1.
        scores : numbers[items]
            Score of each item. The scores must be public.
        rng : numpy Generator, optional
            Seeded generator, with which you get the same choice again. By default, the random bits come from
            the operating system.
        random : int
            Number of records, from 0 to `l`, that are chosen at random instead of by their scores. The random
            records are drawn first. Then the records with the highest scores are chosen from the remaining
            ones. Default 0.

        Returns
        -------
        Interactions
            Interactions with the kept records, and with the bound that now holds.

        Raises
        ------
        ValueError
            If `l` or `random` is outside its range, or if `scores` does not contain one number per item.
        """
        l = whole_number("l", l)  # noqa: E741
        scores = np.asarray(scores)
        random = whole_number("random", random, 0, l)
        if scores.shape != self.domain.shape[:1] or scores.dtype.kind not in "iufb":
            raise ValueError(
                f"scores of {scores.dtype} {scores.shape} are not allowed: need {self.domain.shape[0]} "
                "numbers, one per item"
            )
        if scores.dtype.kind == "f" and np.isnan(scores).any():
            raise ValueError(f"scores: that of item {int(np.isnan(scores).argmax())} is NaN")
        limit = self._limit(l)
        records = min(limit, len(self))
        random = min(random, records)
        ranks = np.unique(scores, return_inverse=True)[1].astype(np.int32)
        kernel = interaction_kernels.top_scored
        sample = self._some(rng, records, kernel, records - random, random, ranks, self.items)
        return self._sampled(sample, limit, self.distinct)

    @property
    def _most_records(self) -> int | None:
        """Largest number of records of one user according to the bound, or None if no bound was stated."""
        return int(self.bound.l1) if isinstance(self.bound, Bound) else None

    def _limit(self, l: int) -> int:  # noqa: E741
        """Return the smaller of two numbers: `l`, and the largest number of records per user that the bound
        allows.
        """
        return l if self._most_records is None else min(l, self._most_records)

    def _sampled(self, sample: Columns, most: int, distinct: bool) -> Self:
        """Return new interactions with the sampled records. The new bound says that a user has at most `most`
        records.
        """
        enforced = _records_bound(most, distinct).enforced("a user")
        bound = PUBLIC if self.bound is PUBLIC else enforced
        users, items, contexts = map(sealed, sample)
        return replace(
            self, users=users, items=items, contexts=contexts, bound=bound, distinct=distinct
        )

    @cached_property
    def _edge_counts(self) -> Int[np.ndarray, "items contexts"]:
        counts = np.zeros(self.domain.shape, np.int64)
        interaction_kernels.count_edges(self.items, self.contexts, counts)
        return sealed(counts)

    def edge_counts(self) -> Int[np.ndarray, "items contexts"]:
        """Return the number of records of each edge, which is a pair of an item and a context. The array has
        one row per item and one column per context.
        """
        return self._edge_counts

    def table(
        self,
        bound: Bound | Public,
        rng: np.random.Generator | None = None,
        *,
        key: bytes | None = None,
    ) -> SparseTable:
        """Return a table with the number of records of each edge, which is a pair of an item and a context.
        If a user has more records than the given bound allows, records of this user are first left out at
        random.

        Parameters
        ----------
        bound : Bound or PUBLIC
            Limit on how much one user may change the table. If a user exceeds this limit, the method leaves out
            some records of this user. Pass PUBLIC if the interactions are public.
        rng, key : numpy Generator or 32 bytes, optional
            Seeded generator or secret key for the random choice of records, as in `SparseTable.from_keys`.

        Returns
        -------
        SparseTable
            Table with one attribute for items and one for contexts. If items or contexts are combinations of
            several attributes, the table has the original attributes.

        Raises
        ------
        ValueError
            If the interactions are public but you give a bound, or if they are private but you give PUBLIC.
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
        """Return the number of records of each item, added up over all contexts."""
        return self._edge_counts.sum(axis=1)

    def answer(self, workload: Recipe, of: str = "edges") -> Float[np.ndarray, " queries"]:
        """Return the exact answers to queries, as counts of records. These answers are private.

        Parameters
        ----------
        workload : Workload
            Queries on the domain of items and contexts. If `of` is "items", queries on a domain with only the
            attribute of items.
        of : "edges" or "items"
            Counts that the queries add up: the counts of edges (pairs of an item and a context) or the counts
            of items. Default "edges".

        Returns
        -------
        float[queries]

        Raises
        ------
        ValueError
            If `of` is neither "edges" nor "items".
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


def _records_bound(most: int, distinct: bool) -> Bound:
    """Return the bound on how much a user with at most `most` records changes the edge counts (counts of
    pairs of an item and a context). If `distinct` is True, no user has an item twice.
    """
    return Bound(most, 1) if distinct else Bound(most, most, most)
