"""Private records in a hierarchy. They are sorted by key, so the records of a node are consecutive."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import njit, pl
from workbench.data.bound import PUBLIC, Bound, Public
from workbench.data.cells import LARGEST_TOTAL, whole_counts
from workbench.data.reading import Progress, all_rows, missing_in, prepared_rows
from workbench.data.table import SparseTable
from workbench.data.truncation import kept_of_words
from workbench.data.users import UserNumbers, refuse_cut_of_nobody, users_of
from workbench.queries import Boxes, Recipe, key_runs, queries_on_hierarchy
from workbench.spaces import (
    Attributes,
    Hierarchy,
    Keys,
    OverHierarchy,
    Quadtree,
    argsort_keys,
    search_unsorted,
    searchsorted_keys,
)
from workbench.spaces.hierarchies import gallop
from workbench.spaces.rules import Refused, as_texts
from workbench.value import Float, Int, not_allowed, read_only, sealed

# Kernels


@njit(cache=True, nogil=True)
def occupied_children(words, ends, lows, start, stop, width, radix, out):
    """Find the occupied children of nodes. Write the parent, the digit, the first record and the last
    record of each to `out`, and return their number.
    """
    k, weighted = 0, ends.size > 0
    for i in range(start.size):
        at, last = start[i], stop[i]
        if at >= last:
            continue
        j, end = at, last  # of keys
        if weighted:
            j = np.searchsorted(ends, at, side="right")
            end = np.searchsorted(ends, last - 1, side="right") + 1
        while j < end:
            digit = (words[j] - lows[i]) // width
            after = end
            if digit + np.uint64(1) < radix:
                bound = lows[i] + (digit + np.uint64(1)) * width
                after = gallop(words, words, j + 1, end, bound, bound, False)
            to = last
            if after < end:
                to = ends[after - 1] if weighted else after
            out[0, k], out[1, k], out[2, k], out[3, k] = i, digit, at, to
            k += 1
            at, j = to, after
    return k


# Value


class Children(NamedTuple):
    """Children of nodes, if they contain records. Each has the index of its parent, its digit, and its
    records.
    """

    parents: Int[np.ndarray, " k"]
    digits: Int[np.ndarray, " k"]
    start: Int[np.ndarray, " k"]
    stop: Int[np.ndarray, " k"]


@dataclass(frozen=True, eq=False)
class Records(OverHierarchy):
    """Records of private data, grouped by value. Each value has a key, which is its number in a hierarchy (a
    tree that divides the space of values). The keys are in ascending order, each with its count.

    Parameters
    ----------
    hierarchy : Hierarchy
        Public space of the records: points, strings, a taxonomy, or a table's attributes.
    keys : uint64[words, n]
        Keys in ascending order, one or two words each.
    counts : int[n] or None
        Number of records that each key stands for, at least 1. None if each key stands for one.
    bound : Bound or PUBLIC
        Largest change of the records by one unit, of which l1 is used. There is no default.
    truth_public : bool
        Whether exact counts may be shown next to a release.
    left_out : dict[str, int]
        Number of values outside the space, by reason. It is private, like the records.
    users_cut : int, optional
        Number of users who were truncated to an enforced bound. It is private, like the records.

    Raises
    ------
    ValueError
        If keys are not in order or belong to another hierarchy, counts do not fit, or the bound is
        missing.
    """

    hierarchy: Hierarchy
    keys: Keys
    counts: Int[np.ndarray, " n"] | None
    bound: Bound | Public
    truth_public: bool = False
    left_out: dict[str, int] = field(default_factory=dict)
    users_cut: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.bound, Bound | Public):
            need = "need Bound(l0, linf), how far one unit moves the records, or PUBLIC"
            raise not_allowed(self, "bound", need)
        words = self.hierarchy.digits.word_count
        keys = np.asarray(self.keys)
        if keys.ndim == 1:
            keys = keys[None]
        if keys.dtype != np.uint64 or keys.ndim != 2 or len(keys) != words:
            raise ValueError(
                f"Records.keys of shape {keys.shape} and type {keys.dtype} are not allowed: need "
                f"uint64[{words}, n]"
            )
        object.__setattr__(self, "keys", read_only(keys))
        if not _ascending(self.keys):
            raise ValueError("Records.keys must be in ascending order; use Records.from_values")
        if not self.hierarchy.contains(self.keys):
            raise ValueError(
                "Records.keys must be keys of the hierarchy; use Records.from_values"
            )
        if self.counts is None:
            return
        counts = whole_counts(self.counts)
        if counts.shape != keys.shape[1:]:
            raise ValueError(f"{keys.shape[1]} keys do not fit {counts.shape} counts")
        if len(counts) and (counts.min() < 1 or counts.astype(float).sum() > LARGEST_TOTAL):
            raise ValueError(f"Records.counts must be >= 1 and sum to at most {LARGEST_TOTAL}")
        object.__setattr__(self, "counts", sealed(counts))

    @classmethod
    def from_values(
        cls,
        hierarchy: Hierarchy,
        values: Any,
        bound: Bound | Public,
        *,
        counts: Int[np.ndarray, " n"] | None = None,
        truth_public: bool = False,
        users: Any = None,
        user_type: str | None = None,
        rng: np.random.Generator | None = None,
        key: bytes | None = None,
    ) -> Records:
        """Make records from values in any order.

        Parameters
        ----------
        hierarchy : Hierarchy
            Space that encodes the values.
        values : array or sequence
            Points, strings or codes. Values outside the space are left out.
        bound : Bound or PUBLIC
            How far one unit moves the records.
        counts : int[n], optional
            Number of records that each value stands for.
        truth_public : bool
            Whether exact counts may be shown.
        users : sequence, optional
            User of each value. Each user is truncated to the bound at random, as in
            `SparseTable.from_keys`.
        user_type : "text", optional
            As in `SparseTable.from_keys`.
        rng, key : numpy Generator or 32 bytes, optional
            Source of the random choice, to repeat it.

        Returns
        -------
        Records
            Records. `left_out` contains the number of values that were left out, by reason.

        Raises
        ------
        ValueError
            If counts do not fit the values, or the values are of another kind.

        Examples
        --------
        >>> from workbench.spaces import Quadtree
        >>> Records.from_values(Quadtree(1, 4), np.array([[0.5], [0.1], [1.5]]), Bound()).left_out
        {'outside the box': 1}
        """
        keys, reasons = hierarchy.encode(values)
        weights = None if counts is None else whole_counts(counts)
        owners = None if users is None else users_of(users, user_type)
        for n, what in ((weights, "counts"), (owners and owners.numbers, "users")):
            if n is not None and len(n) != len(reasons):
                raise ValueError(f"{len(reasons)} values do not fit {len(n)} {what}")
        left_out = {}
        if reasons.any():  # reason 0 is none: the value is in the space
            names = hierarchy.reasons
            totals = np.bincount(reasons, weights, len(names) + 1)[1:].astype(int).tolist()
            left_out = {name: n for name, n in zip(names, totals, strict=True) if n}
            inside = reasons == 0
            weights = None if weights is None else weights[inside]
            owners = owners and owners._replace(numbers=owners.numbers[inside])
        if owners is None and weights is None:
            refuse_cut_of_nobody(rng, key)
            return cls(hierarchy, _sorted(keys), None, bound, truth_public, left_out)
        if owners is None:
            return cls.from_keys(hierarchy, keys, weights, bound, truth_public, left_out)
        cells, kept = kept_of_words(keys, weights, bound, owners, None, rng, key)
        keys = cells[:, kept.keys]
        stays = cls.from_keys(hierarchy, keys, kept.counts, kept.bound, truth_public, left_out)
        return replace(stays, users_cut=kept.users_cut)

    @classmethod
    def from_keys(
        cls,
        hierarchy: Hierarchy,
        keys: Keys,
        counts: Any,
        bound: Bound | Public,
        truth_public: bool = False,
        left_out: dict[str, int] | None = None,
    ) -> Records:
        """Make records from keys and counts, in any order. Counts of equal keys are added up.

        Parameters
        ----------
        hierarchy : Hierarchy
            The space.
        keys : uint64[words, n] or uint64[n]
            Keys of the hierarchy.
        counts : int[n]
            Number of records that each key stands for. 0 leaves a key out.
        bound : Bound or PUBLIC
            How far one unit moves the records.
        truth_public : bool
            Whether exact counts may be shown.
        left_out : dict[str, int], optional
            Number of values that were left out, by reason.

        Returns
        -------
        Records

        Raises
        ------
        ValueError
            If these are not keys, or counts do not fit them.
        """
        keys = np.asarray(keys)
        counts = whole_counts(counts)
        keys = keys[None] if keys.ndim == 1 else keys
        if keys.dtype.kind not in "iu" or (keys.dtype.kind == "i" and (keys < 0).any()):
            raise ValueError("Records.keys must be integers >= 0")
        if counts.shape != keys.shape[1:]:
            raise ValueError(f"{keys.shape[1]} keys do not fit {counts.shape} counts")
        if counts.astype(float).sum() > LARGEST_TOTAL:
            raise ValueError(f"Records.counts must sum to at most {LARGEST_TOTAL}")
        keys = keys.astype(np.uint64, copy=False)
        ascending = argsort_keys(keys)
        ascending = ascending[counts[ascending] > 0]
        keys = keys[:, ascending]
        counts = counts[ascending]
        first = np.flatnonzero(_changes(keys))
        if len(first) < len(counts):
            keys = keys[:, first]
            counts = np.add.reduceat(counts, first)
        return cls(hierarchy, sealed(keys), counts, bound, truth_public, left_out or {})

    @classmethod
    def from_table(cls, table: SparseTable) -> Records:
        """Make records from a table. The hierarchy of the records fixes one attribute of the table per
        level.
        """
        keys = table.keys.astype(np.uint64)[None]
        tree = Attributes(table.domain)
        records = cls(tree, sealed(keys), table.counts, table.bound, table.truth_public)
        return replace(records, users_cut=table.users_cut)

    @classmethod
    def read(
        cls,
        path: Any,
        hierarchy: Hierarchy,
        bound: Bound | Public,
        *,
        count: str | None = None,
        truth_public: bool = False,
        user: str | None = None,
        user_type: str | None = None,
        rng: np.random.Generator | None = None,
        key: bytes | None = None,
        table: str | None = None,
        progress: Progress | None = None,
    ) -> Records:
        """Read records from files or from a data frame. Both may have any form that `SparseTable.read` takes.

        Parameters
        ----------
        path : path, several, or a frame
            One row per record, or per `count` records, with a column for each attribute of the space.
        hierarchy : Hierarchy
            A `Quadtree`, whose columns are numbers, `Prefixes` or a `Taxonomy`. Values outside the space
            are left out.
        bound : Bound or PUBLIC
            How far one unit moves the records.
        count : str, optional
            Column of counts.
        truth_public : bool
            Whether exact counts may be shown.
        user : str, optional
            Column that names the user of each row. Each user is truncated to the bound at random.
        user_type : "text", optional
            As in `SparseTable.from_frame`.
        rng, key : numpy Generator or 32 bytes, optional
            As in `from_values`.
        table, progress
            As in `SparseTable.read`.

        Returns
        -------
        Records

        Raises
        ------
        ValueError
            If a file cannot be read, a column is missing, or a field is empty or not a number where one is
            needed. The message names its column and row.
        """
        columns = list(hierarchy.attributes)
        people = None if user is None else UserNumbers(user, user_type)
        are_points = isinstance(hierarchy, Quadtree)

        def values(frame: pl.DataFrame) -> tuple[np.ndarray, None, Refused]:
            if not are_points:
                own = frame[columns[0]]
                return as_texts(own).to_numpy(), None, [(own.name, "a value", missing_in(own))]
            points = frame.select(columns).cast(pl.Float64, strict=False).fill_null(np.nan)
            refused = [(own.name, "a number", own.is_nan()) for own in points]
            return points.to_numpy().T, None, [*refused]

        how: Any = {"count": count, "users": people, "table": table, "progress": progress}
        batches = (rows for rows, _, _ in prepared_rows(path, columns, values, **how))
        rows = all_rows(batches, np.empty((len(columns), 0) if are_points else 0))
        return cls.from_values(
            hierarchy,
            rows.keys.T,
            bound,
            counts=rows.counts,
            truth_public=truth_public,
            users=people and people.users(rows.users),
            rng=rng,
            key=key,
        )

    def __len__(self) -> int:
        return self.keys.shape[1]

    @property
    def total(self) -> int:
        """Number of records."""
        return len(self) if self.counts is None else int(self.counts.sum())

    def __repr__(self) -> str:
        shown = self.truth_public or self.bound is PUBLIC
        total = f"{self.total:,} " if shown else ""
        return f"<Records {total}in {self.hierarchy!r}, {self.bound!r}>"

    def ends(self) -> Int[np.ndarray, " n"]:
        """Number of records up to and including each key. It is empty if every key has exactly one record."""
        return np.empty(0, np.int64) if self.counts is None else np.cumsum(self.counts)

    def _records_before(self, places: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Return the number of records before each place. A key may stand for several records."""
        return places if self.counts is None else np.append(0, self.ends())[places]

    def occupied_children(
        self,
        level: int,
        nodes: Keys,
        start: Int[np.ndarray, " n"],
        stop: Int[np.ndarray, " n"],
        ends: Int[np.ndarray, " keys"] | None,
    ) -> Children:
        """Return the children that contain records, for nodes of one level. Node i contains the records with
        numbers from `start[i]` to `stop[i]` − 1.

        Records are numbered in the order of keys, and equal records follow each other. The function copies
        no records, and its time grows with the number of occupied children.
        """
        digits = self.hierarchy.digits
        most_children = np.minimum(stop - start, digits.radices[level]).clip(0).sum()
        out = np.empty((4, most_children), np.int64)
        word = digits.word_of_level(level)
        width = np.uint64(digits.widths[level])
        radix = np.uint64(digits.radices[level])
        size = occupied_children(
            self.keys[word], ends, nodes[word], start, stop, width, radix, out
        )
        return Children(*out[:, :size])

    def node_counts(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> Int[np.ndarray, " n"]:
        """Return the number of records in each node. The nodes must be in ascending order of their keys."""
        first = searchsorted_keys(self.keys, nodes)
        last = searchsorted_keys(
            self.keys, self.hierarchy.digits.highest_keys(levels, nodes), after=True
        )
        before_first, before_last = self._records_before(np.stack([first, last]))
        return before_last - before_first

    def counts_between(self, keys: Keys) -> Int[np.ndarray, " n"]:
        """Return the number of records between neighbouring keys of a sorted list. A record is counted for the
        last listed key that is not above its own.
        """
        return np.diff(
            self._records_before(np.append(searchsorted_keys(self.keys, keys), len(self)))
        )

    def level(self, level: int) -> tuple[Keys, Int[np.ndarray, " nodes"]]:
        """Return the nodes of a level that contain records, in ascending order of their keys. Also return the
        number of records in each.
        """
        keys = self.hierarchy.digits.ancestors(level, self.keys)
        first = np.flatnonzero(_changes(keys))
        return keys[:, first], np.diff(self._records_before(np.append(first, len(self))))

    def answer(self, workload: Recipe) -> Float[np.ndarray, " queries"]:
        """Return the exact answers to queries. They are private.

        Parameters
        ----------
        workload : Workload
            Queries over the hierarchy.

        Returns
        -------
        float[queries]
            In records.
        """
        workload = queries_on_hierarchy(workload, self.hierarchy)
        if isinstance(workload, Boxes):
            levels = np.full(len(self), self.hierarchy.digits.depth)
            counts = np.ones(len(self)) if self.counts is None else self.counts
            return self.hierarchy.boxes(levels, self.keys, counts, workload.lo, workload.hi)[0]
        queries, lo, hi = key_runs(workload, self.hierarchy)
        before_first = self._records_before(search_unsorted(self.keys, lo))
        before_last = self._records_before(search_unsorted(self.keys, hi, after=True))
        return np.bincount(queries, before_last - before_first, len(workload))

    def to_frame(self) -> Any:
        """Return a data frame with one row per distinct value. It has columns for the value, and the column
        `count`.

        Returns
        -------
        pandas.DataFrame
        """
        levels = np.full(len(self), self.hierarchy.digits.depth)
        counts = 1 if self.counts is None else self.counts
        return self.hierarchy.frame(levels, self.keys).assign(count=counts)


def _changes(keys: Keys) -> np.ndarray:
    """Return a mask of the keys that differ from the previous key."""
    if not keys.shape[1]:
        return np.zeros(0, bool)
    return np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))


def _ascending(keys: Keys) -> bool:
    """Return whether keys are in ascending order: by the first word, then by the second."""
    rises, falls = keys[:, 1:] > keys[:, :-1], keys[:, 1:] < keys[:, :-1]
    return not (falls[0] | (falls[-1] & ~rises[0])).any()


def _sorted(keys: Keys) -> Keys:
    """Return the keys in ascending order. Keys of one word are sorted in place."""
    if len(keys) > 1:
        return sealed(keys[:, argsort_keys(keys)])
    keys[0].sort()
    return sealed(keys)
