"""Private records whose values are organised in a tree. The records are sorted, so the records of each node
(part of the space of values) are next to each other.
"""

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
    keys_above,
    search_unsorted,
    searchsorted_keys,
)
from workbench.spaces.hierarchies import gallop
from workbench.spaces.rules import Refused, as_texts
from workbench.value import Float, Int, not_allowed, read_only, sealed

# Kernels


@njit(cache=True, nogil=True)
def occupied_children(words, ends, lows, start, stop, width, radix, out):
    """Find those children of the given nodes that contain records. Return the number of children that were
    found. For each found child, the function writes four numbers to a column of `out`. The first two are the
    index of the parent, and the child's digit (number among the children of the parent). The other two are the
    numbers of the child's first record, and of the record after the child's last record.
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
    """Children of some nodes of a tree, where only children that contain records are listed. Entry i describes
    the child with the number `digits[i]` of the node with the index `parents[i]`. This child contains the
    records with the numbers from `start[i]` to `stop[i]` − 1.
    """

    parents: Int[np.ndarray, " k"]
    digits: Int[np.ndarray, " k"]
    start: Int[np.ndarray, " k"]
    stop: Int[np.ndarray, " k"]


@dataclass(frozen=True, eq=False)
class Records(OverHierarchy):
    """Private records, for example points, strings or codes. A hierarchy is a tree that divides the space of
    all possible values into smaller and smaller parts. The tree gives each value a number, which is called the
    key of the value. The records are stored as a sorted list of keys with counts.

    Parameters
    ----------
    hierarchy : Hierarchy
        Tree that contains all possible values: a `Quadtree` of points, `Prefixes` of strings, a `Taxonomy` of
        codes, or the `Attributes` of a table. The tree must be public.
    keys : uint64[words, n]
        Keys of the records in ascending order. A key consists of one or two 64-bit words.
    counts : int[n] or None
        Number of records with each key, at least 1. None means one record per key.
    bound : Bound or PUBLIC
        Limit on how many records one unit (for example a person) can add. The workbench uses only the field
        `l1` of the bound. There is no default.
    truth_public : bool
        Whether the exact counts are public. If they are public, the workbench may show them next to a release.
        Default False.
    left_out : dict[str, int]
        For each reason, for example "outside the box", how many values were left out for this reason. None of
        these values is in the tree. The numbers are private.
    users_cut : int, optional
        Number of users for whom records were left out, because the users had more records than the bound
        allows. This number is private.

    Raises
    ------
    ValueError
        If the keys are not in ascending order or are not keys of the tree, if there is not one count per key,
        or if the bound is missing.
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
            need = "need Bound(l0, linf), the largest change by one unit, or PUBLIC"
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
        if keys_above(self.keys[:, :-1], self.keys[:, 1:]).any():
            raise ValueError("Records.keys must be in ascending order. Use Records.from_values")
        if not self.hierarchy.contains(self.keys):
            raise ValueError(
                "Records.keys must be keys of the hierarchy. Use Records.from_values"
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
        """Create records from values in any order, for example from points or strings.

        Parameters
        ----------
        hierarchy : Hierarchy
            Tree that contains all possible values.
        values : array or sequence
            Points (one row per point), strings or codes. Values that are not in the tree are left out.
        bound : Bound or PUBLIC
            Limit on how many records one unit (for example a person) can add, or PUBLIC for public data.
        counts : int[n], optional
            Number of records with each value. Default: 1 for each value.
        truth_public : bool
            Whether the exact counts are public. If they are public, the workbench may show them. Default False.
        users : sequence, optional
            User of each value. If a user has more records than the bound allows, records are left out at
            random.
        user_type : "text", optional
            With "text", users are read as text, so that 7 and 007 are two people.
        rng, key : numpy Generator or 32 bytes, optional
            Seeded generator or secret key for the random choice of records. The same key gives the same choice
            again. By default, the operating system provides a new key.

        Returns
        -------
        Records
            Records that are in the tree. For each reason, the field `left_out` contains how many values were
            left out for this reason.

        Raises
        ------
        ValueError
            If there is not one count and one user per value, or if the tree cannot contain values of this
            type.

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
        """Create records from keys, which are the numbers of values in a tree, and a count for each key. Keys
        may be in any order, and counts of equal keys are added up.

        Parameters
        ----------
        hierarchy : Hierarchy
            Tree that contains all possible values.
        keys : uint64[words, n] or uint64[n]
            Key of each record. A key is the number of a value in the tree.
        counts : int[n]
            Number of records with each key. A key with the count 0 is left out.
        bound : Bound or PUBLIC
            Limit on how many records one unit (for example a person) can add, or PUBLIC for public data.
        truth_public : bool
            Whether the exact counts are public. If they are public, the workbench may show them. Default False.
        left_out : dict[str, int], optional
            For each reason, how many values were already left out for this reason, because they are not in the
            tree.

        Returns
        -------
        Records

        Raises
        ------
        ValueError
            If the numbers are not keys of the tree, or if there is not one count per key.
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
        """Create records from a table of counts. A cell with the count 3, for example, becomes three records.
        The tree of the records (`Attributes`) divides the cells of the table by one attribute after the other.
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
        """Read records from a data frame, or from files in any format that `SparseTable.read` takes, for
        example CSV or Parquet.

        Parameters
        ----------
        path : path, several, or a frame
            Data with one row per record, or with a column of counts. The data must have the columns that are
            listed in `hierarchy.attributes`.
        hierarchy : Hierarchy
            Tree that contains all possible values: a `Quadtree` for columns of numbers, `Prefixes` for
            strings, or a `Taxonomy` for codes. Values that are not in the tree are left out.
        bound : Bound or PUBLIC
            Limit on how many records one unit (for example a person) can add, or PUBLIC for public data.
        count : str, optional
            Name of the column of counts. By default each row is one record.
        truth_public : bool
            Whether the exact counts are public. If they are public, the workbench may show them. Default False.
        user : str, optional
            Name of the column that contains the user of each row. If a user has more records than the bound
            allows, records are left out at random.
        user_type : "text", optional
            With "text", users are read as text, so that 7 and 007 are two people.
        rng, key : numpy Generator or 32 bytes, optional
            Seeded generator or secret key for the random choice of records, as in `from_values`.
        table, progress : str and callable, optional
            `table` is the name of a table in a database file. `progress` is a function that is called with two
            numbers: how many bytes were read so far, and how many bytes there are in total, as in
            `SparseTable.read`.

        Returns
        -------
        Records

        Raises
        ------
        ValueError
            If a file cannot be read, if a column is missing, if a value is missing, or if a column of numbers
            contains something else. The message names the column and the row.
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
        """Number of all records. This number is private."""
        return len(self) if self.counts is None else int(self.counts.sum())

    def __repr__(self) -> str:
        shown = self.truth_public or self.bound is PUBLIC
        total = f"{self.total:,} " if shown else ""
        return f"<Records {total}in {self.hierarchy!r}, {self.bound!r}>"

    def ends(self) -> Int[np.ndarray, " n"]:
        """Return, for each stored key, the number of records with this key or a smaller one. If the field
        `counts` is None, return an empty array.
        """
        return np.empty(0, np.int64) if self.counts is None else np.cumsum(self.counts)

    def _records_before(self, places: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Return the number of records before each position in the list of keys. A key may have several
        records.
        """
        return places if self.counts is None else np.append(0, self.ends())[places]

    def occupied_children(
        self,
        level: int,
        nodes: Keys,
        start: Int[np.ndarray, " n"],
        stop: Int[np.ndarray, " n"],
        ends: Int[np.ndarray, " keys"] | None,
    ) -> Children:
        """Return those children of the given nodes that contain records. A node is a part of the space of
        values, and all given nodes are on the same `level` of the tree. Node i contains the records with the
        numbers from `start[i]` to `stop[i]` − 1.

        Records are numbered in the order of their keys. The method copies no records, and its time grows with
        the number of children that contain records.
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
        """Return the number of records in each node (part of the space). You pass the level and the lowest key
        of each node. The nodes must be in ascending order of their lowest keys.
        """
        first = searchsorted_keys(self.keys, nodes)
        last = searchsorted_keys(
            self.keys, self.hierarchy.digits.highest_keys(levels, nodes), after=True
        )
        before_first, before_last = self._records_before(np.stack([first, last]))
        return before_last - before_first

    def counts_between(self, keys: Keys) -> Int[np.ndarray, " n"]:
        """Count records between the keys of a sorted list. For each key of the list, the method counts the
        records from this key up to, but not including, the next key of the list. For the last key of the list,
        the method counts all records with this key or a larger key.
        """
        return np.diff(
            self._records_before(np.append(searchsorted_keys(self.keys, keys), len(self)))
        )

    def level(self, level: int) -> tuple[Keys, Int[np.ndarray, " nodes"]]:
        """Return all nodes with records on one level of the tree, in the order of their keys, and the number
        of records in each node. A node is a part of the space of values. Level 0 consists of the root.
        """
        keys = self.hierarchy.digits.ancestors(level, self.keys)
        first = np.flatnonzero(_changes(keys))
        return keys[:, first], np.diff(self._records_before(np.append(first, len(self))))

    def answer(self, workload: Recipe) -> Float[np.ndarray, " queries"]:
        """Return the exact answers to queries, as counts of records. These answers are private.

        Parameters
        ----------
        workload : Workload
            Queries on the tree of the records.

        Returns
        -------
        float[queries]
            Number of records that each query counts.
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
        """Return a data frame with one row per stored key. Some columns describe the value with this key. The
        column `count` contains the number of records. If the field `counts` is None, several rows may have the
        same key.

        Returns
        -------
        pandas.DataFrame
        """
        levels = np.full(len(self), self.hierarchy.digits.depth)
        counts = 1 if self.counts is None else self.counts
        return self.hierarchy.frame(levels, self.keys).assign(count=counts)


def _changes(keys: Keys) -> np.ndarray:
    """Return a mask that is true for keys that differ from the key before them."""
    if not keys.shape[1]:
        return np.zeros(0, bool)
    return np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))


def _sorted(keys: Keys) -> Keys:
    """Return the keys in ascending order. If each key is one 64-bit word, the argument itself is sorted."""
    if len(keys) > 1:
        return sealed(keys[:, argsort_keys(keys)])
    keys[0].sort()
    return sealed(keys)
