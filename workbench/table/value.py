"""Private counts over a domain, of non-empty cells only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Float, Int
from workbench.cell_counts import LARGEST_TOTAL, cells_of_counts, cells_of_keys, whole_counts
from workbench.contributions import cut_key, refuse_cut_of_nobody, users_of
from workbench.domain import Domain
from workbench.libraries import pd
from workbench.reading import Progress
from workbench.table.bound import PUBLIC, Bound, Public
from workbench.table.rows import cells_of_rows, cut_cells
from workbench.value import not_allowed, read_only, sealed
from workbench.workload import Recipe


@dataclass(frozen=True, eq=False)
class SparseTable:
    """Counts over a domain, of its non-empty cells.

    Parameters
    ----------
    domain : Domain
        Which cells there can be; public.
    keys : int64[cells]
        Keys of the domain, sorted and distinct.
    counts : int64[cells]
        At least 1; their sum is at most 2⁵³.
    bound : Bound or PUBLIC
        How far one unit moves the counts, or that nothing is left to protect; no default.
    truth_public : bool
        Exact counts may be shown beside a release (published files, generated twins). Without it,
        everything that compares with the truth refuses.
    users_cut : int, optional
        How many users lost anything to an enforced bound; private, as counts are.

    Raises
    ------
    ValueError
        Keys or counts in another form, or no bound; `from_keys` takes them in any order.
    """

    domain: Domain
    keys: Int[np.ndarray, " cells"]
    counts: Int[np.ndarray, " cells"]
    bound: Bound | Public
    truth_public: bool = False
    users_cut: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.bound, Bound | Public):
            need = "need Bound(l0, linf), how far one unit moves the table, or PUBLIC"
            raise not_allowed(self, "bound", need)
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
        """From keys in any order: counts of the same cell add up, empty cells are dropped.

        Parameters
        ----------
        domain : Domain
            Which cells there can be.
        keys : int[n]
            Keys of the domain.
        counts : numbers[n], optional
            Whole numbers of at least 0; None where each key counts one.
        bound : Bound or PUBLIC
            How far one unit moves the counts.
        truth_public : bool
            Exact counts may be shown.
        users : sequence, optional
            Whose each row is, in values of one kind: each user is cut to the bound, at random
            (`contributions.bounded_contributions`). Without them the bound is believed as it is stated.
        user_type : "text", optional
            Read users as text, also where they spell numbers: 7 and 007 are then two people.
        rng, key : numpy Generator or 32 bytes, optional
            What the choice comes from, to repeat it; without them, a new key of the operating system.

        Returns
        -------
        SparseTable

        Raises
        ------
        ValueError
            Keys outside the domain, a count that is no whole number, with its row, or users that are
            missing or of several kinds.

        Examples
        --------
        >>> SparseTable.from_keys(Domain(("x",), (9,)), [5, 1, 5], [1, 0, 2], Bound()).counts
        array([3])
        """
        keys = np.asarray(keys)
        if len(keys) and (
            keys.dtype.kind not in "iu" or not 0 <= keys.min() <= keys.max() < domain.size
        ):
            raise ValueError(f"keys must be whole numbers in 0 … {domain.size - 1}")
        if users is not None:
            kept = cut_cells(users_of(users, user_type), keys, counts, bound, cut_key(rng, key))
            return cls(domain, *kept.cells, kept.bound, truth_public, kept.users_cut)
        refuse_cut_of_nobody(rng, key)
        keys = keys.astype(np.int64)
        if counts is None:
            keys, counts = cells_of_keys(keys)
            return cls(domain, sealed(keys), sealed(counts), bound, truth_public)
        counts = whole_counts(counts)
        if keys.shape != counts.shape:
            raise ValueError(f"{keys.shape} keys do not fit {counts.shape} counts")
        is_sorted = not len(keys) or (keys[1:] > keys[:-1]).all()
        if not is_sorted or not counts.all():
            keys, counts = cells_of_counts(keys, counts)
        return cls(domain, sealed(keys), sealed(counts), bound, truth_public)

    @classmethod
    def from_dense(
        cls, domain: Domain, array: Any, bound: Bound | Public, *, truth_public: bool = False
    ) -> SparseTable:
        """From an array of the domain's shape.

        Parameters
        ----------
        domain : Domain
            Which cells there can be.
        array : numbers[...]
            A whole number of at least 0 for each cell.
        bound : Bound or PUBLIC
            How far one unit moves the counts.
        truth_public : bool
            Exact counts may be shown.

        Returns
        -------
        SparseTable

        Raises
        ------
        ValueError
            An array of another shape, or a count that is no whole number.
        """
        array = np.asarray(array)
        if array.shape != domain.shape:
            raise ValueError(f"array of shape {array.shape} does not fit domain {domain.shape}")
        keys = np.flatnonzero(array != 0)  # NaN is not zero, so it is kept and refused below
        return cls.from_keys(
            domain, keys, array.ravel()[keys], bound, truth_public=truth_public
        )

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        domain: Domain,
        bound: Bound | Public,
        *,
        count: str | None = None,
        truth_public: bool = False,
        user: str | None = None,
        user_type: str | None = None,
        rng: np.random.Generator | None = None,
        key: bytes | None = None,
    ) -> SparseTable:
        """From a frame (pandas, polars or Arrow) with the columns of its domain; `count` names the counts.

        A domain is public and is never learnt from the data.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Rows of the same cell add up.
        domain : Domain
            Which cells there can be.
        bound : Bound or PUBLIC
            How far one unit moves the counts.
        count : str, optional
            The column of counts; without it each row counts one.
        truth_public : bool
            Exact counts may be shown.
        user : str, optional
            The column that says whose each row is: each user is cut to the bound, at random. Without it
            the bound is believed as it is stated.
        user_type : "text", optional
            Read users as text: integers as they are usually spelled, and 7 and 007 as two people.
        rng, key : numpy Generator or 32 bytes, optional
            As in `from_keys`.

        Returns
        -------
        SparseTable

        Raises
        ------
        ValueError
            A column that is missing or there twice, or a value that is missing or outside the domain,
            with its column and row.
        """
        kept = cells_of_rows(frame, domain, bound, user, user_type, rng, key, count=count)
        return cls(domain, *kept.cells, kept.bound, truth_public, kept.users_cut)

    @classmethod
    def read(
        cls,
        path: str | Path | Sequence[str | Path],
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
    ) -> SparseTable:
        """From files: CSV (`.csv.gz` and `.csv.zst` too), Parquet, or a table of a database.

        Values are compared with labels as text. Rows are read in batches, so that memory is for the
        cells and not for the rows.

        Parameters
        ----------
        path : path, or several
            The columns of the domain; rows of the same cell add up. A folder means its files, which all
            have the same columns; a glob such as "trips/2026-*.parquet" those that match.
        domain, bound, count, truth_public, user, user_type, rng, key
            As in `from_frame`.
        table : str, optional
            The name of a table, where the file is a DuckDB or SQLite database.
        progress : callable, optional
            Called now and then with the bytes that were read and those that there are.

        Returns
        -------
        SparseTable

        Raises
        ------
        ValueError
            A file that cannot be read, a column that is missing or there twice, or a value that is
            missing or outside the domain, with its file, line and column.
        """
        how = {"count": count, "table": table, "progress": progress}
        kept = cells_of_rows(path, domain, bound, user, user_type, rng, key, **how)
        return cls(domain, *kept.cells, kept.bound, truth_public, kept.users_cut)

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        shown = self.truth_public or self.bound is PUBLIC
        cells = f"{len(self):,} of {self.domain.size:,}" if shown else f"{self.domain.size:,}"
        names = " × ".join(self.domain.attributes)
        return f"<SparseTable {names}: {cells} cells, {self.bound!r}>"

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return int(self.counts.sum())

    @property
    def density(self) -> float:
        """The fraction of cells that are not empty."""
        return len(self) / self.domain.size

    def answer(self, workload: Recipe) -> Float[np.ndarray, " queries"]:
        """The exact answers.

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

    def grid_units(self, workload: Any, grid: float) -> Int[np.ndarray, " queries"]:
        """The exact answers to linear queries in steps of a grid, to which each term is rounded.

        Parameters
        ----------
        workload : Workload
            Linear queries over the domain.
        grid : float
            A public step, a power of two.

        Returns
        -------
        int64[queries]
        """
        return workload.grid_units(self.domain, self.keys, self.counts, grid)

    def project(self, attributes: Sequence[str]) -> SparseTable:
        """The marginal on `attributes`: a unit's cells may fall together, its l1 stays.

        Parameters
        ----------
        attributes : sequence of str
            Attributes of the domain, in the order of the marginal's.

        Returns
        -------
        SparseTable
        """
        domain = self.domain.project(attributes)
        columns = [self.domain.column(self.keys, a) for a in attributes]
        bound = self.bound
        if isinstance(bound, Bound):
            l0 = min(bound.l0, domain.size)
            bound = replace(bound, l0=l0, linf=bound.l1)
        marginal = SparseTable.from_keys(
            domain,
            domain.keys(np.stack(columns, axis=1)),
            self.counts,
            bound,
            truth_public=self.truth_public,
        )
        return replace(marginal, users_cut=self.users_cut)

    def ranked(self) -> SparseTable:
        """The counts of all cells in ascending order, over ranks: whose they are is forgotten.

        A unit that moves the counts by l1 in all moves the sorted ones by no more, but perhaps in other
        places: moving one count past its equals moves the last of them.

        Returns
        -------
        SparseTable
            Over one attribute, `rank`, of as many values as the domain has cells.
        """
        size = self.domain.size
        keys = np.arange(size - len(self), size)
        counts = np.sort(self.counts)
        bound = self.bound
        if isinstance(bound, Bound) and bound.linf > 1:
            l0 = min(size, ceil(bound.l1))
            bound = replace(bound, l0=l0, linf=min(bound.linf, bound.l1))
        domain = Domain(("rank",), (size,))
        return SparseTable(
            domain, sealed(keys), sealed(counts), bound, self.truth_public, self.users_cut
        )

    def dense(self) -> Int[np.ndarray, "..."]:
        """The full array, of the domain's shape; only for small domains."""
        array = np.zeros(self.domain.size, np.int64)
        array[self.keys] = self.counts
        return array.reshape(self.domain.shape)

    def to_frame(self) -> pd.DataFrame:
        """One row a non-empty cell: the attributes' labels and `count`."""
        return self.domain.frame(self.keys).assign(count=self.counts)
