"""Private tables of counts, which store only the cells that are not empty."""

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
from workbench.queries.linear import within_int64
from workbench.spaces import Domain
from workbench.value import Float, Int, not_allowed, read_only, sealed


def summed(rows: Kept) -> tuple[Int[np.ndarray, " cells"], Int[np.ndarray, " cells"]]:
    """Return the distinct keys (numbers of cells) in ascending order, and the sum of the counts of the rows
    with each key.
    """
    if rows.counts is None:
        return cells_of_keys(rows.keys)
    return cells_of_counts(rows.keys, rows.counts)


class Table:
    """Base class of tables of counts over a domain, which lists all possible cells. A table stores only the
    cells that are not empty.
    """

    domain: Domain
    counts: Int[np.ndarray, " cells"]
    bound: Bound | Public
    truth_public: bool
    users_cut: int | None
    rows_left_out: bool
    _of_rows: ClassVar[Any]  # makes a table of keys as the domain has them
    _cells: Any  # these keys

    @staticmethod
    def _refuse_domain(domain: Domain) -> None:
        """Raise a ValueError if this class cannot store a table over the domain."""
        domain.refuse_wide()

    def __post_init__(self) -> None:
        if not isinstance(self.bound, Bound | Public):
            need = "need Bound(l0, linf), the largest change by one unit, or PUBLIC"
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
        """Read a table from files or from a data frame. Count the rows in each cell, or add up a column of
        counts.

        A file is CSV (also `.csv.gz` and `.csv.zst`), Parquet, or a DuckDB or SQLite database. The workbench
        compares the values as text with the labels of the domain. It reads the rows in batches. For a
        `SparseTable` without users, the memory therefore grows with the number of cells, and not with the
        number of rows.

        Parameters
        ----------
        path : path, several, or a frame
            Data with the columns from which the attributes of the domain are computed. You can give a file, a
            list of files, a folder of files, a pattern such as "trips/2026-*.parquet", or a data frame of
            pandas, polars or Arrow. All files must have the same columns.
        domain : Domain
            Domain that lists all possible cells. The domain must be public and must not be computed from the
            data.
        bound : Bound or PUBLIC
            Limit on how much one unit, for example a person, can change the counts, or PUBLIC for public
            data. There is no default.
        count : str, optional
            Name of the column that contains the count of each row. By default, each row counts as 1.
        table : str, optional
            Name of the table, if the file is a DuckDB or SQLite database.
        truth_public : bool
            Whether the exact counts are public. If they are public, the workbench may show them. Default False.
        user : str, optional
            Name of the column that contains the user of each row. If a user has more rows than the bound
            allows, rows are left out at random, so the bound is enforced. If you name no column of users, the
            workbench cannot enforce the bound and relies on your statement.
        user_type : "text", optional
            With "text", users are read as text, so that 7 and 007 are two people.
        rng, key : numpy Generator or 32 bytes, optional
            Seeded generator or secret key for the random choice of rows. The same key gives the same choice
            again. By default, the operating system provides a new key.
        progress : callable, optional
            Function that is called from time to time with two numbers: how many bytes were read so far, and how
            many bytes there are in total.

        Returns
        -------
        SparseTable or WideTable
            Table of the class on which you call this method.

        Raises
        ------
        ValueError
            If a file cannot be read, if a column is missing or occurs twice, or if a value is missing or
            outside the domain. The message names the file, row and column.
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
        """Return the marginal on the given attributes, which is a table with the counts added up over all
        other attributes.

        One unit (for example a person) may change several cells that become one cell of the marginal. So the
        bound of the marginal has the same `l1`, but may have a larger `linf`. For example, a person who changes
        two cells by 1 each may change one cell of the marginal by 2.

        Parameters
        ----------
        attributes : sequence of str
            Names of attributes of the domain, in the order that the new table shall have.

        Returns
        -------
        SparseTable or WideTable
            Marginal on the given attributes. If these attributes have more than 2⁶³ − 1 combinations of values,
            the marginal is a `WideTable`.
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
        return replace(
            made,
            truth_public=self.truth_public,
            users_cut=self.users_cut,
            rows_left_out=self.may_lack_rows,
        )

    def grid_units(self, workload: Any, grid: float) -> Int[np.ndarray, " queries"]:
        """Return the private answers to linear queries (weighted sums of counts) as integers. An integer n
        stands for n times the step `grid`. Before the method computes the answers, it rounds the weights of the
        queries to multiples of this step. Integers beyond ±2⁶² are replaced by ±2⁶².

        Parameters
        ----------
        workload : Workload
            Linear queries (weighted sums of counts) on the domain.
        grid : float
            Step of the rounding: weights are rounded to multiples of this step. The step must be public and a
            power of two.

        Returns
        -------
        int64[queries]
        """
        units = workload.grid_units(self.domain, self._cells, self.counts, grid)
        return within_int64(units)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def may_lack_rows(self) -> bool:
        """Whether rows may have been left out because of their values, either by a rule of a domain, or because
        the row of a user has the count 0. If so, the total of the table reveals something about such values.
        """
        return self.rows_left_out or self.domain.leaves_rows_out

    @property
    def total(self) -> int:
        """Sum of the counts of all cells. This number is private."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class SparseTable(Table):
    """Table of counts over a domain, which is the public list of all possible cells. The table stores only
    the cells that are not empty.

    Parameters
    ----------
    domain : Domain
        Domain that lists all possible cells. The domain is public.
    keys : int64[cells]
        Keys of the cells that are not empty, in ascending order. A key is the number of a cell in the domain.
    counts : int64[cells]
        Count of each of these cells, an integer >= 1. The sum of all counts is at most 2⁵³.
    bound : Bound or PUBLIC
        Limit on how much one unit, for example a person, can change the counts, or PUBLIC for public data.
        There is no default.
    truth_public : bool
        Whether the exact counts are public, for example because the data are published or synthetic. With
        False, the workbench raises an error if you compare a release with the exact counts. Default False.
    users_cut : int, optional
        Number of users for whom counts were left out, because they had more records than the bound allows. This
        number is private.
    rows_left_out : bool
        Whether rows may be missing because of their values: the rules of another table, from which this table
        was computed, may have left them out, or the row of a user may have the count 0. Default False.

    Raises
    ------
    ValueError
        If keys or counts do not have the form described above, or if the bound is missing. To create a table
        from keys in any order, use `from_keys`.
    """

    domain: Domain
    keys: Int[np.ndarray, " cells"]
    counts: Int[np.ndarray, " cells"]
    bound: Bound | Public
    truth_public: bool = False
    users_cut: int | None = field(default=None, repr=False)
    rows_left_out: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keys.dtype != np.int64 or self.counts.dtype != np.int64:
            raise ValueError("SparseTable.keys and counts must be int64. Use from_keys")
        if self.keys.ndim != 1 or self.keys.shape != self.counts.shape:
            raise ValueError(f"{self.keys.shape} keys do not fit {self.counts.shape} counts")
        for name in ("keys", "counts"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        if len(self.keys):
            if self.keys[0] < 0 or self.keys[-1] >= self.domain.size:
                raise ValueError(f"SparseTable.keys must lie in 0 … {self.domain.size - 1}")
            if (self.keys[1:] <= self.keys[:-1]).any():
                raise ValueError("SparseTable.keys must be sorted and distinct. Use from_keys")
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
        """Create a table from rows in any order. Each row has a count and a key, which is the number of a cell
        in the domain. Counts of the same cell are added up.

        Parameters
        ----------
        domain : Domain
            Domain that lists all possible cells.
        keys : int[n]
            Key of each row, in any order.
        counts : numbers[n], optional
            Count of each row, an integer >= 0. With None, each row counts as 1.
        bound : Bound or PUBLIC
            Limit on how much one unit, for example a person, can change the counts, or PUBLIC for public
            data.
        truth_public : bool
            Whether the exact counts are public. If they are public, the workbench may show them. Default False.
        users : sequence, optional
            User of each row, as integers, text, dates or times. If a user has more rows than the bound
            allows, the workbench leaves out rows at random (see `bounded_contributions`). If you name no
            users, the workbench cannot enforce the bound and relies on your statement.
        user_type : "text", optional
            With "text", users are read as text, so that 7 and 007 are two people.
        rng, key : numpy Generator or 32 bytes, optional
            Seeded generator or secret key for the random choice of rows. The same key gives the same choice
            again. By default, the operating system provides a new key.

        Returns
        -------
        SparseTable

        Raises
        ------
        ValueError
            If a key is outside the domain, if a count is not an integer >= 0, or if a user is missing or the
            users are of different types.

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
        has_zeros = users is not None and counts is not None
        keys, counts = map(sealed, summed(kept))
        return cls(domain, keys, counts, kept.bound, truth_public, kept.users_cut, has_zeros)

    _of_rows = from_keys

    @property
    def _cells(self) -> Int[np.ndarray, " cells"]:
        return self.keys

    @classmethod
    def from_dense(
        cls, domain: Domain, array: Any, bound: Bound | Public, *, truth_public: bool = False
    ) -> SparseTable:
        """Create a table from an array with the counts of all cells. The array has one axis per attribute of
        the domain.

        Parameters
        ----------
        domain : Domain
            Domain that lists all possible cells.
        array : numbers[...]
            Count of each cell, an integer >= 0.
        bound : Bound or PUBLIC
            Limit on how much one unit, for example a person, can change the counts, or PUBLIC for public
            data.
        truth_public : bool
            Whether the exact counts are public. If they are public, the workbench may show them. Default False.

        Returns
        -------
        SparseTable

        Raises
        ------
        ValueError
            If the array does not have the shape of the domain, or if a count is not an integer >= 0.
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
        """Share of the domain's cells that are not empty. This share is private."""
        return len(self) / self.domain.size

    def answer(self, workload: Recipe) -> Float[np.ndarray, " queries"]:
        """Return the exact answers to queries. These answers are private.

        Parameters
        ----------
        workload : Workload
            Queries on the domain of the table.

        Returns
        -------
        float[queries]
            For each query, the sum of the counts of its cells.
        """
        return workload.on(self.domain).sums(self.domain, self.keys, self.counts)

    def ranked(self) -> SparseTable:
        """Sort the counts of all cells in ascending order, and return a new table of the sorted counts. The
        new table does not say to which cell a count belongs. The only attribute of the new table is the rank
        of a count.

        If a unit changes the counts by at most l1 in total, the sorted counts also change by at most l1 in
        total. But the position that changes in the sorted list may belong to another count. For example,
        suppose that three counts are equal and that the first of them grows by 1. In the sorted list, the last
        of the three equal counts grows by 1 instead.

        Returns
        -------
        SparseTable
            Table with the attribute `rank`, which has as many values as the domain has cells.
        """
        size = self.domain.size
        keys = np.arange(size - len(self), size)
        counts = np.sort(self.counts)
        bound = self.bound
        if isinstance(bound, Bound) and bound.linf > 1:
            l0, linf = min(size, ceil(bound.l1)), min(bound.linf, bound.l1)
            bound = replace(bound, l0=l0, linf=linf, l1=min(bound.l1, l0 * linf))
        domain = Domain(("rank",), (size,))
        return replace(
            self,
            domain=domain,
            keys=sealed(keys),
            counts=sealed(counts),
            bound=bound,
            rows_left_out=self.may_lack_rows,
        )

    def dense(self) -> Int[np.ndarray, "..."]:
        """Return the counts of all cells as an array with one axis per attribute. Use this method for small
        domains only, because the array also contains the empty cells.
        """
        array = np.zeros(self.domain.size, np.int64)
        array[self.keys] = self.counts
        return array.reshape(self.domain.shape)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per cell that is not empty. The data frame has one column of labels
        per attribute, and the column `count`.
        """
        return self.domain.frame(self.keys).assign(count=self.counts)


@dataclass(frozen=True, eq=False)
class WideTable(Table):
    """Table of counts over a domain that is wide, which means that it has more than 2⁶³ − 1 cells. The table
    stores only the cells that are not empty.

    A wide domain has too many cells to number them with 64-bit integers, so most mechanisms cannot use the
    table. `LaplaceQueries`, `GaussianQueries` and sessions can answer queries on a few attributes at a time,
    for example `Marginals(2)`. For any other mechanism, first reduce the table to some of its attributes with
    `project(attributes)`.

    Parameters
    ----------
    domain : Domain
        Domain that lists all possible cells. The domain is public and wide.
    words : int64[parts, cells]
        Cells that are not empty, all different and in ascending order. A cell of a wide domain has no single
        number, so `domain.parts` divides the attributes into smaller domains. Row i contains the key (number)
        of every cell in the i-th of these smaller domains.
    counts : int64[cells]
        Count of each of these cells, an integer >= 1. The sum of all counts is at most 2⁵³.
    bound : Bound or PUBLIC
        Limit on how much one unit, for example a person, can change the counts, or PUBLIC for public data.
        There is no default.
    truth_public : bool
        Whether the exact counts are public. If they are public, the workbench may show them next to a release.
        Default False.
    users_cut : int, optional
        Number of users for whom counts were left out, because they had more records than the bound allows. This
        number is private.
    rows_left_out : bool
        Whether rows may be missing because of their values: the rules of another table, from which this table
        was computed, may have left them out, or the row of a user may have the count 0. Default False.
    """

    domain: Domain
    words: Int[np.ndarray, "parts cells"]
    counts: Int[np.ndarray, " cells"]
    bound: Bound | Public
    truth_public: bool = False
    users_cut: int | None = field(default=None, repr=False)
    rows_left_out: bool = field(default=False, repr=False)

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
        """Create a table from rows of codes. A row has one code per attribute. A code is the position of a
        value in the attribute's list of values, counted from 0.

        Parameters
        ----------
        domain : Domain
            Domain that lists all possible cells. The domain must be wide (have more than 2⁶³ − 1 cells).
        codes : int[rows, attributes]
            Codes of each row, counted from 0. Rows with the same codes are added up.
        bound : Bound or PUBLIC
            Limit on how much one unit, for example a person, can change the counts, or PUBLIC for public
            data.
        counts : int[rows], optional
            Count of each row, an integer >= 0. By default each row counts as 1.
        truth_public, users, user_type, rng, key : optional
            Settings with the same meaning as in `SparseTable.from_keys`.

        Returns
        -------
        WideTable

        Raises
        ------
        ValueError
            If a code is negative or too large for its attribute, or if there is not one count and one user
            per row.
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
        """Create a table from rows. A row is given by one key (number) for each part of the domain. If users
        are given, rows of each user who exceeds the bound are left out first.
        """
        cells, kept = kept_of_words(words, counts, bound, users, user_type, rng, key)
        numbers, totals = summed(kept)
        left = sealed(cells[:, numbers])
        has_zeros = users is not None and counts is not None
        return cls(
            domain, left, sealed(totals), kept.bound, truth_public, kept.users_cut, has_zeros
        )

    @property
    def _cells(self) -> Int[np.ndarray, "parts cells"]:
        return self.words

    def __repr__(self) -> str:
        return f"<WideTable of {len(self.domain.shape)} attributes, {self.bound!r}>"

    @property
    def keys(self) -> None:
        """Raise a ValueError, because a wide domain has too many cells to number them with 64-bit integers."""
        self.domain.refuse_wide()

    def answer(self, workload: Recipe) -> Float[np.ndarray, " queries"]:
        """Return the exact answers to linear queries, which are weighted sums of counts. The exact answers
        are private.
        """
        return linear_queries(workload, self.domain).sums(self.domain, self.words, self.counts)
