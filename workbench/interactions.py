"""Many records a unit: which user had which item in which context, and how many records one user has.

A unit is a user with all their records. What a mechanism publishes are counts of items and of
edges (item × context); a user with many records moves them far, so that most mechanisms first keep
a few records of each user. That sampling happens here, for each user on their own and with draws
that are independent across users: run an ε-DP mechanism on what is kept, and the whole is ε-DP
(Fan & Jin, WWW 2015, Lemma 6).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Num

from workbench.compiled import njit
from workbench.domain import Domain
from workbench.table import PUBLIC, Bound, Public, SparseTable, Unbounded
from workbench.value import read_only, sealed
from workbench.workload import Workload


@dataclass(frozen=True, eq=False)
class Interactions:
    """Records (user, item, context), sorted by user; `domain` has two attributes, item and context.

    Users are codes; which of them exist is private. Items and contexts are codes of the domain's two
    attributes, which are public. `bound` says how far one user moves the edge counts: Bound(M, 1) where
    a user has at most M records and no item twice, Bound(M, M, M) where items may repeat, `UNBOUNDED`
    where nobody counted, `PUBLIC` where nothing is left to protect; there is no default.
    `truth_public` says that exact counts may be shown beside a release, `distinct` that no user has an
    item twice, which is checked. What samples the records cuts users to a stated bound,
    and believes no more than it has cut or checked.
    """

    domain: Domain
    users: Int[np.ndarray, " records"]
    items: Int[np.ndarray, " records"]
    contexts: Int[np.ndarray, " records"]
    bound: Bound | Unbounded | Public
    truth_public: bool = False
    distinct: bool = False

    def __post_init__(self):
        if not isinstance(self.bound, Bound | Unbounded | Public):
            raise ValueError(
                f"Interactions.bound = {self.bound!r} is not allowed: need Bound(l0, linf), how far "
                "one user moves the edge counts, UNBOUNDED, or PUBLIC"
            )
        if isinstance(self.bound, Bound) and self.bound.l1 < 1:
            raise ValueError(
                f"Interactions.bound = {self.bound!r} is not allowed: need l1 >= 1, one record"
            )
        _refuse_other(self.domain)
        for name in ("users", "items", "contexts"):
            column = getattr(self, name)
            if (
                column.ndim != 1
                or column.shape != self.users.shape
                or column.dtype.kind not in "iu"
            ):
                raise ValueError(
                    f"Interactions.{name} of {column.dtype} {column.shape} is not allowed: need whole "
                    f"numbers, {len(self.users)} of them"
                )
            object.__setattr__(self, name, read_only(column))
        if not len(self):
            return
        for name, n in zip(("items", "contexts"), self.domain.shape, strict=True):
            _refuse_outside(f"Interactions.{name}", getattr(self, name), n)
        if self.users[0] < 0 or (self.users[1:] < self.users[:-1]).any():
            raise ValueError("Interactions.users must be codes >= 0 and sorted; use from_codes")
        if len(self) > _MOST and self.records_per_user().max() > _MOST:
            raise ValueError(f"a user has more than {_MOST} records: no more are possible")
        if self.distinct:
            self._refuse_repeated()

    def _refuse_repeated(self) -> None:
        """A ValueError that names the first row whose user had its item before."""
        items, size = self.items, self.domain.shape[0]
        if size > 4 * len(items):
            items = np.unique(items, return_inverse=True)[1]
            size = int(items.max()) + 1
        row = _first_repeated(self._starts, items, size)
        if row >= 0:
            raise ValueError(
                f"Interactions.distinct = True is not allowed: in row {row} user {self.users[row]} has "
                f"item {self.items[row]} a second time; leave distinct out, or use once()"
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
        """From columns in any order, users any whole numbers: sorted by user, in narrow types.

        Records of one user keep their order.

        >>> domain = Domain(("film", "day"), (5, 7))
        >>> Interactions.from_codes(domain, [9, 4, 9], [0, 1, 4], [6, 6, 0], Bound(2)).items
        array([1, 0, 4], dtype=uint8)
        """
        _refuse_other(domain)
        columns = [np.asarray(c) for c in (users, items, contexts)]
        columns = [c if len(c) else c.astype(np.int64) for c in columns]
        for name, c in zip(("users", "items", "contexts"), columns, strict=True):
            if c.dtype.kind not in "iu" or c.shape != (len(columns[0]),):
                raise ValueError(
                    f"{name} of {c.dtype} {c.shape} are not allowed: need whole numbers, "
                    f"{len(columns[0])} of them"
                )
        for i, (name, n) in enumerate(zip(domain.attributes, domain.shape, strict=True), 1):
            _refuse_outside(f"column {name!r}", columns[i], n)
            columns[i] = columns[i].astype(_narrow(n), copy=False)
        return cls(domain, *_by_user(*columns), bound, truth_public)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str,
        item: str,
        context: str,
        domain: Domain,
        bound: Bound | Unbounded | Public,
        truth_public: bool = False,
    ) -> Interactions:
        """From a DataFrame (pandas or polars) by naming three columns; one row a record.

        `domain` has two attributes, for the items and for the contexts. It is public and never
        learnt: a value outside it, or a missing one, is a ValueError that names column, row and value.
        """
        if missing := [c for c in (user, item, context) if c not in frame.columns]:
            raise ValueError(
                f"columns {missing} are missing: the table has {list(frame.columns)}"
            )
        _refuse_other(domain)
        build = _Builder(domain, (user, item, context), len(frame))
        arrays = [_arrow(frame[c]) for c in (user, item, context)]
        for i in range(0, len(frame), _BATCH):
            build.add([a.slice(i, _BATCH) for a in arrays])
        return cls(domain, *build.columns(), bound, truth_public)

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
        """From three columns of a Parquet file, as `from_frame`; the others are not read.

        Batches go into narrow columns as they come: memory is little more than the result.
        """
        import pyarrow
        import pyarrow.parquet as parquet

        _refuse_other(domain)
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path}: no such Parquet file")
        names = [user, item, context]
        try:
            with parquet.ParquetFile(path) as file:
                there = file.schema_arrow.names
                if missing := [c for c in names if c not in there]:
                    raise ValueError(
                        f"{path}: columns {missing} are missing: the file has {there}"
                    )
                build = _Builder(domain, names, file.metadata.num_rows)
                for batch in file.iter_batches(_BATCH, columns=[*dict.fromkeys(names)]):
                    build.add([batch.column(c) for c in names])
        except (pyarrow.ArrowException, OSError) as e:
            raise ValueError(f"{path}: not a complete Parquet file ({str(e)[:80]})") from None
        return cls(domain, *build.columns(), bound, truth_public)

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        names, size = (
            " × ".join(self.domain.attributes),
            " × ".join(f"{n:,}" for n in self.domain.shape),
        )
        told = f"{names} ({size})"
        if self.truth_public or self.bound is PUBLIC:
            told += f": {len(self):,} records of {len(self._starts) - 1:,} users"
        return f"<Interactions {told}, {self.bound!r}>"

    @cached_property
    def _starts(self) -> Int[np.ndarray, " users+1"]:
        """Where each user's records start, and the end."""
        first = np.flatnonzero(self.users[1:] != self.users[:-1]) + 1
        return np.concatenate([[0], first, [len(self)]]) if len(self) else np.zeros(1, np.int64)

    def records_per_user(self) -> Int[np.ndarray, " users"]:
        """How many records each user has, in the order of their codes; users without are not told."""
        return np.diff(self._starts)

    @cached_property
    def _edges(self) -> Int[np.ndarray, "items contexts"]:
        counts = np.zeros(self.domain.shape, np.int64)
        _count(self.items, self.contexts, counts)
        return sealed(counts)

    def edge_counts(self) -> Int[np.ndarray, "items contexts"]:
        """How many records each item has in each context."""
        return self._edges

    def item_counts(self) -> Int[np.ndarray, " items"]:
        """How many records each item has."""
        return self._edges.sum(axis=1)

    def answer(self, workload: Workload, of: str = "edges") -> Float[np.ndarray, " queries"]:
        """The exact answers, in records, about edges (cells of the domain) or about items."""
        if of not in ("edges", "items"):
            raise ValueError(f"of = {of!r} is not allowed: need 'edges' or 'items'")
        edges = of == "edges"
        domain = self.domain if edges else self.domain.project(self.domain.attributes[:1])
        counts = self.edge_counts().ravel() if edges else self.item_counts()
        keys = np.flatnonzero(counts)
        return workload.on(domain).sums(domain, keys, counts[keys])

    @property
    def _most(self) -> int | None:
        """At most so many records has one user; None where nobody counted."""
        return int(self.bound.l1) if isinstance(self.bound, Bound) else None

    def _kept(self, columns: tuple, most: int, distinct: bool) -> Interactions:
        """Some of the records: at most so many a user."""
        bound = self.bound
        if bound is not PUBLIC:
            bound = Bound(most, 1) if distinct else Bound(most, most, most)
        columns = map(sealed, columns)
        return Interactions(self.domain, *columns, bound, self.truth_public, distinct)

    def bounded(self, l: int, rng: np.random.Generator | None = None) -> Interactions:  # noqa: E741
        """At most `l` records of each user: all, or l of them at random without replacement.

        Every l of a user's records are equally likely, and users are independent of each other.
        """
        l = _whole("l", l)  # noqa: E741
        most = l if self._most is None else min(l, self._most)
        l = min(most, _MOST)  # noqa: E741  (nobody has more)
        size = np.minimum(self.records_per_user(), l).sum()
        columns = self.users, self.items, self.contexts
        if size < len(self):
            kept = _empty(size, columns)
            _sample(self._starts, l, _state(rng), *columns, *kept)
            columns = kept
        return self._kept(columns, most, self.distinct)

    def once(self, rng: np.random.Generator | None = None) -> Interactions:
        """One record of each user and item: where there are several, one at random."""
        items = self.domain.shape[0]
        columns = self.users, self.items, self.contexts
        if not self.distinct:
            kept = _empty(len(self), columns)
            size = _once(self._starts, self.domain.shape[0], _state(rng), *columns, *kept)
            columns = tuple(c[:size].copy() for c in kept)
        made = self._kept(columns, items, True)
        return made if self._most is None else made.bounded(min(self._most, items), rng)

    def top_scored(
        self,
        l: int,  # noqa: E741
        scores: Num[np.ndarray, " items"],
        rng: np.random.Generator | None = None,
        *,
        random: int = 0,
    ) -> Interactions:
        """The `l` records of each user whose items have the highest scores, ties at random.

        Scores are public, one an item. With `random`, so many of the l are drawn from all records of
        the user first, and the others are the highest of what is left.
        """
        l, scores = _whole("l", l), np.asarray(scores)  # noqa: E741
        random = min(_whole("random", random, 0, l), _MOST)
        if scores.shape != self.domain.shape[:1] or scores.dtype.kind not in "iufb":
            raise ValueError(
                f"scores of {scores.dtype} {scores.shape} are not allowed: need {self.domain.shape[0]} "
                "numbers, one an item"
            )
        if scores.dtype.kind == "f" and np.isnan(scores).any():
            raise ValueError(f"scores: that of item {int(np.isnan(scores).argmax())} is NaN")
        most = l if self._most is None else min(l, self._most)
        l = min(most, _MOST)  # noqa: E741  (nobody has more)
        random = min(random, l)
        size = np.minimum(self.records_per_user(), l).sum()
        columns = self.users, self.items, self.contexts
        if size < len(self):
            ranks = np.unique(scores, return_inverse=True)[1].astype(np.int32)
            kept = _empty(size, columns)
            _pick(self._starts, l - random, random, ranks, _state(rng), *columns, *kept)
            columns = kept
        return self._kept(columns, most, self.distinct)

    def pairs(self, rng: np.random.Generator | None = None) -> SparseTable:
        """Item–item edges: how many pairs of records of one user fall on each pair of items.

        Pairs are unordered: the smaller code stands first, and two records of one item meet on the
        diagonal. A user with l records makes l(l−1)/2 pairs, which is how far they move the table:
        any mechanism on sparse tables releases it. Bound the users first: memory is 8 bytes a pair.
        Whoever has more records than the bound says is cut at random.
        """
        most = self._most
        if self.bound is not PUBLIC and (most is None or most < 2):
            raise ValueError(
                f"pairs need users with at most l >= 2 records, but the bound is {self.bound!r}: "
                "l(l-1)/2 pairs are what one user can change; use bounded(l)"
            )
        if most is not None and self.records_per_user().max(initial=0) > most:
            return self.bounded(most, rng).pairs()
        (name, _), (m, _) = self.domain.attributes, self.domain.shape
        labels = self.domain.labels and self.domain.labels[:1] * 2
        domain = Domain((name, f"other {name}"), (m, m), labels)
        bound = self.bound
        if isinstance(bound, Bound):
            n = most * (most - 1) // 2
            bound = Bound(n, 1) if self.distinct else Bound(n, n, n)
        sizes = self.records_per_user()
        keys = np.empty((sizes * (sizes - 1) // 2).sum(), np.int64)
        _pairs(self._starts, self.items, m, keys)
        keys.sort()
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(first, append=len(keys))
        return SparseTable(
            domain, sealed(keys[first]), sealed(counts), bound, self.truth_public
        )


_MOST = 2**31  # records of one user
_BATCH = 2**20  # rows that are encoded at a time


def _whole(name: str, x: Any, low: int = 1, high: int | None = None) -> int:
    """A whole number in its range, or a ValueError."""
    good = isinstance(x, int | np.integer) and not isinstance(x, bool)
    if not good or x < low or (high is not None and x > high):
        need = f"need a whole number >= {low}" + f" and <= {high}" * (high is not None)
        raise ValueError(f"{name} = {x!r} is not allowed: {need}")
    return int(x)


def _refuse_other(domain: Domain) -> None:
    """A ValueError unless the domain is that of items and contexts."""
    if len(domain.shape) != 2:
        raise ValueError(
            f"Interactions.domain has attributes {domain.attributes}: need two, item and context"
        )


def _refuse_outside(name: str, codes: np.ndarray, n: int) -> None:
    """A ValueError that names the first row whose code is outside 0 … n − 1."""
    if len(codes) and not 0 <= codes.min() <= codes.max() < n:
        row = int(np.argmax((codes < 0) | (codes >= n)))
        raise ValueError(
            f"{name}, row {row}: {codes[row]} is outside the domain: need 0 <= code < {n}"
        )


def _narrow(n: int) -> np.dtype:
    """The narrowest unsigned type that holds 0 … n − 1."""
    return np.min_scalar_type(n - 1)


def _empty(size: int, like: tuple) -> tuple:
    return tuple(np.empty(size, c.dtype) for c in like)


def _arrow(column: Any):
    """A column of a pandas or polars frame, as an Arrow array."""
    import pyarrow as pa

    if hasattr(column, "to_arrow"):
        return column.to_arrow()
    try:
        array = pa.Array.from_pandas(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # values of several kinds
        array = pa.Array.from_pandas(column.map(str, na_action="ignore"))
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


class _Builder:
    """Three narrow columns, filled batch by batch."""

    def __init__(self, domain: Domain, names, size: int):
        self.domain, self.names, self.size = domain, names, 0
        self.users = np.empty(size, np.int32)
        self.codes = [np.empty(size, _narrow(n)) for n in domain.shape]
        self.known: dict = {}  # users that are not whole numbers, by their order of appearance

    def add(self, batch: list) -> None:
        """Append some rows: Arrow arrays of users, items, contexts."""
        rows = slice(self.size, self.size + len(batch[0]))
        for name, column in zip(self.names, batch, strict=True):
            if column.null_count:
                row = self.size + int(
                    np.argmax(column.is_null().to_numpy(zero_copy_only=False))
                )
                raise ValueError(f"column {name!r}, row {row}: a value is missing")
        users = self._user(batch[0])
        if users.dtype.itemsize > self.users.dtype.itemsize and len(users):
            fits = -(2**31) <= users.min() and users.max() < 2**31
            if not fits:
                self.users = self.users.astype(np.int64)
        self.users[rows] = users
        for i in (0, 1):
            self.codes[i][rows] = self._encoded(i, batch[1 + i])
        self.size = rows.stop

    def columns(self) -> tuple:
        """All rows, sorted by user."""
        return _by_user(self.users, *self.codes, own=True)

    def _user(self, column) -> np.ndarray:
        import pyarrow as pa
        import pyarrow.compute

        if pa.types.is_integer(column.type):
            return column.to_numpy()
        if (
            pa.types.is_floating(column.type)
            and pa.compute.any(pa.compute.is_nan(column)).as_py()
        ):
            raise ValueError(f"column {self.names[0]!r}: a value is missing")
        column = _encode(column)
        known = self.known
        codes = [known.setdefault(v, len(known)) for v in column.dictionary.to_pylist()]
        return np.array(codes, np.int64)[column.indices.to_numpy()]

    def _encoded(self, axis: int, column) -> np.ndarray:
        """Codes, or a ValueError that names the column, the row and the value."""
        import pyarrow as pa

        name, n = self.domain.attributes[axis], self.domain.shape[axis]
        words = (self.domain.labels and self.domain.labels[axis]) or range(n)
        plain = (
            isinstance(words, range) and words.step == 1 and pa.types.is_integer(column.type)
        )
        if plain:
            values = column.to_numpy()
            if not len(values) or (words.start <= values.min() and values.max() < words.stop):
                return values.astype(np.int64) - words.start if words.start else values
            outside = (values < words.start) | (values >= words.stop)
        else:
            column = _encode(column)
            codes = self.domain.encode(name, column.dictionary.to_pandas())
            codes = np.append(codes, -1)[column.indices.to_numpy()]
            if not (outside := codes < 0).any():
                return codes
        row = int(outside.argmax())
        raise ValueError(
            f"column {self.names[1 + axis]!r}, row {self.size + row}: {column[row].as_py()!r} is "
            f"outside the domain of {name!r}"
        )


def _encode(column):
    """An Arrow array as indices into a dictionary of its values."""
    import pyarrow as pa

    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def _by_user(users: np.ndarray, items: np.ndarray, contexts: np.ndarray, own=False) -> tuple:
    """The columns sorted by user, each user's records in their order; users become 0, 1, …

    Those that nobody else holds are numbered where they are.
    """
    if (
        users.dtype == np.uint64
    ):  # one to one; compared with other numbers it would become a float
        users = users.view(np.int64)
    if len(users) and (users[1:] < users[:-1]).any():
        low, high = int(users.min()), int(users.max())
        if high - low > 4 * len(users) + 2**22:
            import pandas as pd

            users = pd.factorize(users)[0]
            low, high = 0, int(users.max())
        dense = np.empty(len(users), np.int32)
        offsets = np.zeros(high - low + 2, np.int64)
        columns = items, contexts
        items, contexts = (np.empty_like(c) for c in columns)
        _scatter(users, low, offsets, *columns, items, contexts, dense)
    else:
        dense = users if own and users.dtype == np.int32 else np.empty(len(users), np.int32)
        _number(users, dense)
    return sealed(dense), sealed(items), sealed(contexts)


def _state(rng: np.random.Generator | None) -> np.ndarray:
    """A state for `_below`: 256 bits from the operating system, or from a seeded generator.

    Which records of a user are kept needs only draws that are independent across users (the proof is
    about each possible sample), so that a fast generator serves; what hides users is the noise.
    """
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng = {rng!r} is not allowed: need None or a numpy Generator")
    drawn = int.from_bytes(os.urandom(32) if rng is None else rng.bytes(32))
    return np.random.SeedSequence(drawn, pool_size=8).generate_state(4, np.uint64)


@njit(cache=True, nogil=True)
def _below(s, n):
    """A uniform whole number in [0, n), exactly, for n <= 2^31; by xoshiro256++ in the state `s`.

    Source: Blackman & Vigna, ACM TOMS 2021; Lemire, ACM TOMACS 2019 (multiply, and reject the uneven).
    """
    n, low = np.uint64(n), np.uint64(2**32 - 1)
    while True:
        x = s[0] + s[3]
        x = ((x << np.uint64(23)) | (x >> np.uint64(41))) + s[0]
        t = s[1] << np.uint64(17)
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = (s[3] << np.uint64(45)) | (s[3] >> np.uint64(19))
        product = (x >> np.uint64(32)) * n
        if product & low >= n or product & low >= (np.uint64(2**32) - n) % n:
            return np.int64(product >> np.uint64(32))


@njit(cache=True, nogil=True)
def _number(users, out):
    """Sorted users become 0, 1, …; `out` may be `users`."""
    k = np.int32(0)
    if users.size == 0:
        return
    last = users[0]
    for i in range(users.size):
        if users[i] != last:
            last = users[i]
            k += np.int32(1)
        out[i] = k


@njit(cache=True, nogil=True)
def _scatter(users, low, starts, items, contexts, to_items, to_contexts, to_users):
    """A stable counting sort by user; `starts` is scratch: zeros, one a possible user and one more."""
    for i in range(users.size):
        starts[np.int64(users[i]) - low + 1] += 1
    k, at = np.int32(0), 0
    for u in range(starts.size - 1):
        n = starts[u + 1]
        starts[u + 1] = at + n  # ends, as `starts[u]` is the start
        for i in range(at, at + n):
            to_users[i] = k
        k += np.int32(n > 0)
        at += n
    for i in range(users.size):
        u = np.int64(users[i]) - low
        to_items[starts[u]] = items[i]
        to_contexts[starts[u]] = contexts[i]
        starts[u] += 1


@njit(cache=True, nogil=True)
def _count(items, contexts, out):
    for i in range(items.size):
        out[items[i], contexts[i]] += 1


@njit(cache=True, nogil=True)
def _longest(starts):
    most = 0
    for u in range(starts.size - 1):
        most = max(most, starts[u + 1] - starts[u])
    return most


@njit(cache=True, nogil=True)
def _first_repeated(starts, items, m):
    """The first row of an item that its user has in a row before; −1 if there is none."""
    owner = np.full(m, -1, np.int64)
    for u in range(starts.size - 1):
        for i in range(starts[u], starts[u + 1]):
            if owner[items[i]] == u:
                return i
            owner[items[i]] = u
    return -1


@njit(cache=True, nogil=True)
def _floyd(n, l, s, taken):  # noqa: E741
    """Mark l places out of n, every set of l equally likely.

    Source: Floyd, in Bentley & Floyd, CACM 1987 (Programming Pearls): l draws.
    """
    for j in range(n - l, n):
        place = _below(s, j + 1)
        taken[j if taken[place] else place] = True


@njit(cache=True, nogil=True)
def _sample(starts, l, s, users, items, contexts, to_users, to_items, to_contexts):  # noqa: E741
    """All records of a user, or l of them."""
    taken = np.zeros(_longest(starts), np.bool_)
    k = 0
    for u in range(starts.size - 1):
        start, n = starts[u], starts[u + 1] - starts[u]
        every = n <= l
        if not every:
            _floyd(n, l, s, taken)
        for i in range(n):
            if every or taken[i]:
                row, taken[i] = start + i, False
                to_users[k], to_items[k], to_contexts[k] = users[row], items[row], contexts[row]
                k += 1


@njit(cache=True, nogil=True)
def _once(starts, m, s, users, items, contexts, to_users, to_items, to_contexts):
    """One record of each user and item, the t-th of a kind replacing the one before with chance 1/t."""
    owner, seen, place = np.full(m, -1), np.zeros(m, np.int64), np.zeros(m, np.int64)
    k = 0
    for u in range(starts.size - 1):
        for i in range(starts[u], starts[u + 1]):
            item = items[i]
            if owner[item] != u:
                owner[item], seen[item], place[item] = u, 1, k
                to_users[k], to_items[k], to_contexts[k] = users[i], item, contexts[i]
                k += 1
            else:
                seen[item] += 1
                if _below(s, seen[item]) == 0:
                    to_contexts[place[item]] = contexts[i]
    return k


@njit(cache=True, nogil=True)
def _pick(
    starts,
    l,  # noqa: E741
    random,
    ranks,
    s,
    users,
    items,
    contexts,
    to_users,
    to_items,
    to_contexts,
):
    """`random` records of each user, and the l highest ranks among the others, ties at random.

    A heap holds the l highest; its least, `cut`, divides: above it all are taken, and of those that
    equal it as many as the heap holds, by selection sampling.
    """
    taken = np.zeros(_longest(starts), np.bool_)
    heap = np.empty(max(min(l, taken.size), 1), np.int32)
    k = 0
    for u in range(starts.size - 1):
        start, n = starts[u], starts[u + 1] - starts[u]
        if n <= l + random:
            for i in range(start, start + n):
                to_users[k], to_items[k], to_contexts[k] = users[i], items[i], contexts[i]
                k += 1
            continue
        _floyd(n, random, s, taken)
        held, equal, wanted = 0, 0, 0
        cut = np.int32(2**31 - 1)  # above every rank
        for i in range(n if l else 0):
            if taken[i]:
                continue
            rank = ranks[items[start + i]]
            if held < l:
                heap[held] = rank
                held += 1
                if held == l:
                    for j in range(l // 2 - 1, -1, -1):
                        _sift(heap, l, j)
                    cut = heap[0]
            elif rank > cut:
                heap[0] = rank
                _sift(heap, l, 0)
                equal = (
                    equal + 1 if heap[0] == cut else 0
                )  # none was lost that equals a new cut
                cut = heap[0]
            elif rank == cut:
                equal += 1
        for i in range(held):
            wanted += heap[i] == cut
        equal += wanted
        for i in range(n):
            if taken[i]:
                take, taken[i] = True, False
            else:
                rank = ranks[items[start + i]]
                take = rank > cut
                if rank == cut:
                    take = wanted == equal or (wanted > 0 and _below(s, equal) < wanted)
                    wanted -= take
                    equal -= 1
            if take:
                row = start + i
                to_users[k], to_items[k], to_contexts[k] = users[row], items[row], contexts[row]
                k += 1


@njit(cache=True, nogil=True)
def _sift(heap, size, i):
    """Let the entry at i sink until none below it is smaller."""
    x = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= x:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = x


@njit(cache=True, nogil=True)
def _pairs(starts, items, m, out):
    k = 0
    for u in range(starts.size - 1):
        for i in range(starts[u], starts[u + 1]):
            for j in range(starts[u], i):
                a, b = np.int64(items[i]), np.int64(items[j])
                out[k] = min(a, b) * m + max(a, b)
                k += 1
