"""Private tables of the non-empty cells of a domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np

from workbench.compiled import pd
from workbench.data.bound import PUBLIC, Bound, Public
from workbench.data.cells import (
    LARGEST_TOTAL,
    CellCounts,
    cells_of_counts,
    cells_of_keys,
    whole_counts,
)
from workbench.data.reading import Progress, all_rows, counted_rows
from workbench.data.truncation import Kept, kept_of_words, kept_rows
from workbench.data.users import UserNumbers, refuse_cut_of_nobody
from workbench.queries import Recipe, linear_queries
from workbench.spaces import Domain
from workbench.value import Float, Int, not_allowed, read_only, sealed


def summed(rows: Kept) -> tuple[Int[np.ndarray, " cells"], Int[np.ndarray, " cells"]]:
    """Return the distinct keys in ascending order, and the sum of the counts of each."""
    if rows.counts is None:
        return cells_of_keys(rows.keys)
    return cells_of_counts(rows.keys, rows.counts)


class Table:
    """Counts of the non-empty cells of a domain."""

    domain: Domain
    counts: Int[np.ndarray, " cells"]
    bound: Bound | Public
    truth_public: bool
    users_cut: int | None
    _of_rows: ClassVar[Any]  # makes a table of keys as the domain has them
    _cells: Any  # these keys

    @staticmethod
    def _refuse_domain(domain: Domain) -> None:
        """Raise a ValueError if tables of this kind cannot hold the domain."""
        domain.refuse_wide()

    def __post_init__(self) -> None:
        if not isinstance(self.bound, Bound | Public):
            need = "need Bound(l0, linf), how far one unit moves the table, or PUBLIC"
            raise not_allowed(self, "bound", need)
        self._refuse_domain(self.domain)

    @classmethod
    def read(
        cls,
        path: Any,
        domain: Domain,
        bound: Bound | Public,
        *,
        count: str | None = None,
        table: str | None = None,
        truth_public: bool = False,
        user: str | None = None,
        user_type: str | None = None,
        rng: np.random.Generator | None = None,
        key: bytes | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Count the rows of files or of a frame, or add up their column `count`.

        Files are CSV (also `.csv.gz` and `.csv.zst`), Parquet, or a table of a database. Values are
        compared with labels as text. Rows are read in batches, so without users the memory of a
        `SparseTable` grows with the number of cells and not with the number of rows. The domain must be
        public and must not come from the data.

        Parameters
        ----------
        path : path, several, or a frame
            Rows with the columns of the domain. Rows of the same cell are added up. You can name files,
            a folder of files, or a glob pattern such as "trips/2026-*.parquet". All files must have the
            same columns. A frame may be of pandas, polars or Arrow.
        domain : Domain
            All possible cells.
        bound : Bound or PUBLIC
            How far one unit moves the counts.
        count : str, optional
            Column of counts. By default each row counts one.
        table : str, optional
            Name of a table, if the file is a DuckDB or SQLite database.
        truth_public : bool
            Whether exact counts may be shown.
        user : str, optional
            Column that identifies the user of each row. Each user is truncated to the bound at random.
            Without it, the stated bound is believed and not enforced.
        user_type : "text", optional
            Read users as text. Then 7 and 007 are two people.
        rng, key : numpy Generator or 32 bytes, optional
            Source of the random choice, to repeat it. By default a new key from the operating system.
        progress : callable, optional
            Function that is called from time to time with the number of bytes read so far and in total.

        Returns
        -------
        SparseTable or WideTable
            Table of the class on which you call this method.

        Raises
        ------
        ValueError
            If a file cannot be read, a column is missing or occurs twice, or a value is missing or
            outside the domain. The message names file, row and column.
        """
        cls._refuse_domain(domain)
        users = None if user is None else UserNumbers(user, user_type, domain.missing_user)
        batches = counted_rows(
            path, domain, count=count, users=users, table=table, progress=progress
        )
        if users is None and not domain.is_wide:
            refuse_cut_of_nobody(rng, key)
            cells = CellCounts()
            for batch in batches:
                cells.add(batch.keys, batch.counts)
            make: Any = cls
            return make(domain, *map(sealed, cells.cells()), bound, truth_public)
        shape = (len(domain.parts), 0) if domain.is_wide else (0,)
        rows = all_rows(batches, np.zeros(shape, np.int64))
        return cls._of_rows(
            domain,
            rows.keys,
            rows.counts,
            bound,
            truth_public=truth_public,
            users=users and users.users(rows.users),
            rng=rng,
            key=key,
        )

    from_frame = read

    def project(self, attributes: Sequence[str]) -> Any:
        """Return the marginal on `attributes`. Several cells of one unit may become the same cell, so only
        the l1 of the bound stays the same.

        Parameters
        ----------
        attributes : sequence of str
            Attributes of the domain, in the order of the marginal's attributes.

        Returns
        -------
        SparseTable or WideTable
            A WideTable if these attributes have more than 2⁶³ cells.
        """
        domain = self.domain.project(attributes)
        codes = np.stack([self.domain.column(self._cells, name) for name in attributes], axis=1)
        bound = self.bound
        if isinstance(bound, Bound):
            bound = replace(bound, l0=min(bound.l0, domain.size), linf=bound.l1)
        made: Any
        if domain.is_wide:
            made = WideTable.from_codes(domain, codes, bound, counts=self.counts)
        else:
            made = SparseTable.from_keys(domain, domain.keys(codes), self.counts, bound)
        return replace(made, truth_public=self.truth_public, users_cut=self.users_cut)

    def grid_units(self, workload: Any, grid: float) -> Int[np.ndarray, " queries"]:
        """Return the exact answers to linear queries in steps of a grid. Each term is rounded to the
        grid.

        Parameters
        ----------
        workload : Workload
            Linear queries over the domain.
        grid : float
            Public step of the grid, a power of two.

        Returns
        -------
        int64[queries]
        """
        return workload.grid_units(self.domain, self._cells, self.counts, grid)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class SparseTable(Table):
    """Table of counts over a domain (the public list of all cells). It stores only the cells that are not
    empty.

    Parameters
    ----------
    domain : Domain
        All possible cells. They are public.
    keys : int64[cells]
        Keys of the domain, sorted and distinct.
    counts : int64[cells]
        At least 1. Their sum is at most 2⁵³.
    bound : Bound or PUBLIC
        How far one unit moves the counts, or that nothing is left to protect. No default.
    truth_public : bool
        Whether exact counts may be shown next to a release, for example for published files and
        synthetic stand-ins. If it is False, every comparison with the truth raises an error.
    users_cut : int, optional
        Number of users who lost anything to an enforced bound. It is private, as counts are.

    Raises
    ------
    ValueError
        If keys or counts have another form, or the bound is missing. Use `from_keys` for keys in any
        order.
    """

    domain: Domain
    keys: Int[np.ndarray, " cells"]
    counts: Int[np.ndarray, " cells"]
    bound: Bound | Public
    truth_public: bool = False
    users_cut: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keys.dtype != np.int64 or self.counts.dtype != np.int64:
            raise ValueError("SparseTable.keys and counts must be int64; use from_keys")
        if self.keys.ndim != 1 or self.keys.shape != self.counts.shape:
            raise ValueError(f"{self.keys.shape} keys do not fit {self.counts.shape} counts")
        for name in ("keys", "counts"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        if len(self.keys):
            if self.keys[0] < 0 or self.keys[-1] >= self.domain.size:
                raise ValueError(f"SparseTable.keys must lie in 0 … {self.domain.size - 1}")
            if (self.keys[1:] <= self.keys[:-1]).any():
                raise ValueError("SparseTable.keys must be sorted and distinct; use from_keys")
            if self.counts.min() < 1 or self.counts.astype(float).sum() > LARGEST_TOTAL:
                raise ValueError(
                    f"SparseTable.counts must be >= 1 and sum to at most {LARGEST_TOTAL}"
                )

    @classmethod
    def from_keys(
        cls,
        domain: Domain,
        keys: Any,
        counts: Any,
        bound: Bound | Public,
        *,
        truth_public: bool = False,
        users: Any = None,
        user_type: str | None = None,
        rng: np.random.Generator | None = None,
        key: bytes | None = None,
    ) -> SparseTable:
        """Make a table from keys (the numbers of cells) in any order. Counts of the same cell are added up, and
        empty cells are dropped.

        Parameters
        ----------
        domain : Domain
            All possible cells.
        keys : int[n]
            Keys of the domain.
        counts : numbers[n], optional
            Integers >= 0. None if each key counts one.
        bound : Bound or PUBLIC
            How far one unit moves the counts.
        truth_public : bool
            Whether exact counts may be shown.
        users : sequence, optional
            The user of each row, in values of one kind. Each user is truncated to the bound at random
            (`bounded_contributions`). Without users the bound is believed as it is stated.
        user_type : "text", optional
            Read users as text, even if they spell numbers, so that 7 and 007 are two people.
        rng, key : numpy Generator or 32 bytes, optional
            Source of the random choice, to repeat it. By default a new key from the operating system.

        Returns
        -------
        SparseTable

        Raises
        ------
        ValueError
            If a key is outside the domain, a count is not an integer (the message names its row), or users
            are missing or of several kinds.

        Examples
        --------
        >>> SparseTable.from_keys(Domain(("x",), (9,)), [5, 1, 5], [1, 0, 2], Bound()).counts
        array([3])
        """
        keys = np.asarray(keys)
        if len(keys) and (
            keys.dtype.kind not in "iu" or not 0 <= keys.min() <= keys.max() < domain.size
        ):
            raise ValueError(f"keys must be integers in 0 … {domain.size - 1}")
        keys = keys.astype(np.int64, copy=users is None)  # which are sorted where they are
        counts = None if counts is None else whole_counts(counts)
        kept = kept_rows(keys, counts, bound, users, user_type, rng, key)
        keys, counts = map(sealed, summed(kept))
        return cls(domain, keys, counts, kept.bound, truth_public, kept.users_cut)

    _of_rows = from_keys

    @property
    def _cells(self) -> Int[np.ndarray, " cells"]:
        return self.keys

    @classmethod
    def from_dense(
        cls, domain: Domain, array: Any, bound: Bound | Public, *, truth_public: bool = False
    ) -> SparseTable:
        """Make a table from an array with the counts of all cells. The array has one axis per attribute of the
        domain.

        Parameters
        ----------
        domain : Domain
            All possible cells.
        array : numbers[...]
            An integer >= 0 for each cell.
        bound : Bound or PUBLIC
            How far one unit moves the counts.
        truth_public : bool
            Whether exact counts may be shown.

        Returns
        -------
        SparseTable

        Raises
        ------
        ValueError
            If the array has another shape, or a count is not an integer.
        """
        array = np.asarray(array)
        if array.shape != domain.shape:
            raise ValueError(f"array of shape {array.shape} does not fit domain {domain.shape}")
        keys = np.flatnonzero(array != 0)  # NaN is not zero, so it is kept and refused below
        return cls.from_keys(
            domain, keys, array.ravel()[keys], bound, truth_public=truth_public
        )

    def __repr__(self) -> str:
        shown = self.truth_public or self.bound is PUBLIC
        cells = f"{len(self):,} of {self.domain.size:,}" if shown else f"{self.domain.size:,}"
        names = " × ".join(self.domain.attributes)
        return f"<SparseTable {names}: {cells} cells, {self.bound!r}>"

    @property
    def density(self) -> float:
        """Fraction of cells that are not empty."""
        return len(self) / self.domain.size

    def answer(self, workload: Recipe) -> Float[np.ndarray, " queries"]:
        """Return the exact answers to queries. They are private.

        Parameters
        ----------
        workload : Workload
            Queries over the domain.

        Returns
        -------
        float[queries]
            In counts.
        """
        return workload.on(self.domain).sums(self.domain, self.keys, self.counts)

    def ranked(self) -> SparseTable:
        """Return a table of all counts in ascending order, without the labels of their cells. The cells of the
        new table are the ranks of the counts.

        If a unit changes the counts by l1 in total, it changes the sorted counts by at most l1 too. The
        changes may be at other positions. For example, if one of several equal counts grows, the last of
        them in the sorted order grows.

        Returns
        -------
        SparseTable
            Table over one attribute, `rank`, with as many values as the domain has cells.
        """
        size = self.domain.size
        keys = np.arange(size - len(self), size)
        counts = np.sort(self.counts)
        bound = self.bound
        if isinstance(bound, Bound) and bound.linf > 1:
            l0, linf = min(size, ceil(bound.l1)), min(bound.linf, bound.l1)
            bound = replace(bound, l0=l0, linf=linf, l1=min(bound.l1, l0 * linf))
        domain = Domain(("rank",), (size,))
        return SparseTable(
            domain, sealed(keys), sealed(counts), bound, self.truth_public, self.users_cut
        )

    def dense(self) -> Int[np.ndarray, "..."]:
        """Return the counts of all cells as an array with one axis per attribute. Use this for small domains
        only.
        """
        array = np.zeros(self.domain.size, np.int64)
        array[self.keys] = self.counts
        return array.reshape(self.domain.shape)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per non-empty cell. It has a column of labels for each attribute,
        and the column `count`.
        """
        return self.domain.frame(self.keys).assign(count=self.counts)


@dataclass(frozen=True, eq=False)
class WideTable(Table):
    """Table of counts over a domain with more than 2⁶³ cells, which are too many to number. It stores only the
    cells that are not empty.

    Such a domain has too many cells to number them. Mechanisms that need the numbers of cells refuse the
    table. `LaplaceQueries`, `GaussianQueries` and sessions answer queries about some of the attributes, for
    example `Marginals(2)`. For every other mechanism, use `project(attributes)`.

    Parameters
    ----------
    domain : Domain
        All possible cells. They are public.
    words : int64[parts, cells]
        Key of each cell in each part of `domain.parts`. Cells are sorted and distinct.
    counts : int64[cells]
        At least 1. Their sum is at most 2⁵³.
    bound : Bound or PUBLIC
        How far one unit moves the counts, or that nothing is left to protect. No default.
    truth_public : bool
        Whether exact counts may be shown next to a release.
    users_cut : int, optional
        Number of users who lost anything to an enforced bound. It is private, as counts are.
    """

    domain: Domain
    words: Int[np.ndarray, "parts cells"]
    counts: Int[np.ndarray, " cells"]
    bound: Bound | Public
    truth_public: bool = False
    users_cut: int | None = field(default=None, repr=False)

    @staticmethod
    def _refuse_domain(domain: Domain) -> None:
        if not domain.is_wide:
            raise ValueError("this domain is not wide: need a SparseTable")

    @classmethod
    def from_codes(
        cls,
        domain: Domain,
        codes: Int[np.ndarray, "rows attributes"],
        bound: Bound | Public,
        *,
        counts: Any = None,
        **how: Any,
    ) -> WideTable:
        """Make a table from rows of codes, which are integers that stand for values. A row has one code per
        attribute.

        Parameters
        ----------
        domain : Domain
            All possible cells.
        codes : int[rows, attributes]
            Codes of the domain, from 0. Rows of the same cell are added up.
        bound : Bound or PUBLIC
            How far one unit moves the counts.
        counts : int[rows], optional
            Count of each row. Default 1.
        truth_public, users, user_type, rng, key
            As in `SparseTable.from_keys`.

        Returns
        -------
        WideTable

        Raises
        ------
        ValueError
            If a code is outside its attribute, or counts or users do not fit the rows.
        """
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(domain.shape):
            raise ValueError(
                f"codes of shape {codes.shape} do not fit {len(domain.shape)} attributes"
            )
        ends = [*accumulate(len(part.shape) for part in domain.parts)]
        own = np.split(codes, ends[:-1], axis=1)
        words = np.stack([part.keys(x) for part, x in zip(domain.parts, own, strict=True)])
        counts = None if counts is None else whole_counts(counts)
        return cls._of_rows(domain, words, counts, bound, **how)

    @classmethod
    def _of_rows(
        cls,
        domain: Domain,
        words: Int[np.ndarray, "parts rows"],
        counts: Int[np.ndarray, " rows"] | None,
        bound: Any,
        *,
        truth_public: bool = False,
        users: Any = None,
        user_type: str | None = None,
        rng: np.random.Generator | None = None,
        key: bytes | None = None,
    ) -> WideTable:
        """Sum rows by cell, after each user is truncated to the bound if users are named."""
        cells, kept = kept_of_words(words, counts, bound, users, user_type, rng, key)
        numbers, totals = summed(kept)
        left = sealed(cells[:, numbers])
        return cls(domain, left, sealed(totals), kept.bound, truth_public, kept.users_cut)

    @property
    def _cells(self) -> Int[np.ndarray, "parts cells"]:
        return self.words

    def __repr__(self) -> str:
        return f"<WideTable of {len(self.domain.shape)} attributes, {self.bound!r}>"

    @property
    def keys(self) -> None:
        """Raise a ValueError. Keys are numbers of cells, and the domain has too many cells to number them."""
        self.domain.refuse_wide()

    def answer(self, workload: Recipe) -> Float[np.ndarray, " queries"]:
        """Return the exact answers to linear queries, in counts."""
        return linear_queries(workload, self.domain).sums(self.domain, self.words, self.counts)
