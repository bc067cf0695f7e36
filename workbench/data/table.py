"""Bounds on what one unit contributes, and private tables of the non-empty cells of a domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, sqrt
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from workbench.compiled import pd
from workbench.data.cells import (
    LARGEST_TOTAL,
    CellCounts,
    cells_of_counts,
    cells_of_keys,
    whole_counts,
)
from workbench.data.reading import Progress, all_rows, counted_rows
from workbench.data.truncation import bounded_contributions
from workbench.data.users import UserNumbers, Users, cut_key, refuse_cut_of_nobody, users_of
from workbench.queries import Recipe
from workbench.spaces import Domain
from workbench.value import Float, Int, not_allowed, number, read_only, sealed

# Bound

STATED = "as stated"
ENFORCED = "enforced"
BELIEVED = "believed, not enforced"
_STATUSES = (STATED, ENFORCED, BELIEVED)

_LARGEST_MOVE = 1e300  # of one unit
_LONGEST_UNIT = 300  # characters


@dataclass(frozen=True)
class Bound:
    """Largest change of a table by one unit: at most `l0` cells, each by at most `linf`, and `l1` in all.

    Parameters
    ----------
    l0 : int
        Largest number of cells, at least 1.
    linf : float
        Largest change of one cell, at least 1, because a unit that changes an integer count changes it by 1.
    l1 : float, optional
        Largest change of all cells together, from `linf` to l0·linf. Default l0·linf.
    unit : str
        Whom it is about, in words, for example "a trip" or "a user (column user_id)".
    status : "as stated", "enforced" or "believed, not enforced"
        Whether the workbench enforced the bound or somebody only stated it. Unit and status do not change
        how far a unit moves a table, so two bounds that differ in them are equal and print alike.

    Raises
    ------
    ValueError
        If a number is out of its range, or words do not fit on a line.

    Examples
    --------
    >>> Bound(l0=4, linf=2).l1, Bound(l0=4, linf=2, l1=5).l2
    (8, 3.1622776601683795)
    """

    l0: int = 1
    linf: float = 1
    l1: float = cast(float, None)  # l0·linf
    unit: str = field(default="", compare=False, repr=False, kw_only=True)
    status: str = field(default=STATED, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.status not in _STATUSES:
            raise not_allowed(self, "status", f"need one of {', '.join(map(repr, _STATUSES))}")
        on_a_line = isinstance(self.unit, str) and self.unit.isprintable()
        if not on_a_line or len(self.unit) > _LONGEST_UNIT:
            need = f"need words on one line, at most {_LONGEST_UNIT} characters"
            raise not_allowed(self, "unit", need)
        for name in ("l0", "linf", "l1"):
            limit = getattr(self, name)
            if hasattr(limit, "item"):  # numpy's integers wrap
                object.__setattr__(self, name, limit.item())
        in_range = isinstance(self.l0, int | float) and 1 <= self.l0 <= _LARGEST_MOVE
        if isinstance(self.l0, bool) or not in_range or self.l0 != int(self.l0):
            raise not_allowed(self, "l0", "need an integer >= 1")
        if self.l1 is None:
            object.__setattr__(self, "l1", self.l0 * self.linf)
        for name in ("linf", "l1"):
            number = getattr(self, name)
            if isinstance(number, bool) or not 1 <= number <= _LARGEST_MOVE:
                need = "need a number >= 1: a unit moves a count by 1 or not at all"
                raise not_allowed(self, name, need)
        if self.l1 > self.l0 * self.linf or self.l1 < self.linf:
            raise not_allowed(self, "l1", f"need linf <= l1 <= l0·linf = {self.l0 * self.linf}")

    def of(self, unit: str) -> Bound:
        """Return the same bound for a unit in words. Beyond (1, 1) it is only believed, and not enforced.

        Parameters
        ----------
        unit : str
            What is protected, as "a trip".

        Returns
        -------
        Bound

        Examples
        --------
        >>> Bound(10, 10).of("a household").status, Bound(1, 1).of("a trip").status
        ('believed, not enforced', 'as stated')
        """
        is_one = self.l0 == 1 and self.linf == 1
        return replace(self, unit=unit, status=STATED if is_one else BELIEVED)

    def believed(self, unit: str) -> Bound:
        """Return the same bound, marked as believed: no unit was truncated, and no row is stated to be a
        unit.
        """
        return replace(self, unit=unit, status=BELIEVED)

    def enforced(self, unit: str) -> Bound:
        """Return the same bound, marked as enforced: each unit was truncated to it."""
        return replace(self, unit=unit, status=ENFORCED)

    @property
    def limit_in_words(self) -> str:
        """Return what one unit adds at most, for example "1 to each of 10 cells"."""
        cells = "one cell" if self.l0 == 1 else f"each of {number(self.l0)} cells"
        limit, in_all = f"{number(self.linf)} to {cells}", f"{number(self.l1)} in all"
        if self.l1 == self.l0 * self.linf:
            return limit
        return in_all if self.l1 <= min(self.l0, self.linf) else f"{limit}, {in_all}"

    @property
    def in_words(self) -> str:
        """Return a sentence that says what one unit adds at most, and how that was ensured."""
        limit = self.limit_in_words
        if self.status == ENFORCED:
            unit = self.unit.removeprefix("a ").removeprefix("an ")
            return (
                f"Enforced: each {unit or 'user'} adds at most {limit}. The rest was left out at random: "
                "counts and error bars are about what was kept."
            )
        one = f"one unit ({self.unit})" if self.unit else "one unit"
        if self.status == BELIEVED:
            return (
                f"Believed, not enforced: {one} adds at most {limit}. Whoever adds more is protected "
                "less."
            )
        return f"As stated, {one} adds at most {limit}."

    @property
    def counts_what(self) -> str:
        """Sentence about truncated units that counts and error bars refer to, or "" without truncation."""
        return self.in_words if self.status == ENFORCED else ""

    @property
    def l2(self) -> float:
        """Sensitivity of the counts in the l2 norm."""
        return min(sqrt(self.l0) * self.linf, sqrt(self.l1 * self.linf), self.l1)

    @property
    def l2_squared(self) -> Fraction:
        """The square of the sensitivity of the counts in the l2 norm, exactly.

        Of all moves, filling cell after cell is the longest: as many cells as l1 allows move by linf, and
        one by what is left.

        >>> Bound(l0=3, linf=2, l1=5).l2_squared
        Fraction(9, 1)
        """
        linf = Fraction(self.linf)
        filled, rest = divmod(Fraction(self.l1), linf)
        return filled * linf**2 + rest**2

    def merged(self, cells: int) -> Bound:
        """The bound of sums over disjoint groups of at most so many cells.

        >>> Bound(l0=3, linf=2, l1=5).merged(2)
        Bound(l0=3, linf=4, l1=5)
        """
        return replace(self, linf=min(self.l1, min(cells, self.l0) * self.linf))


class Public:
    """Marker for a table that is public, which takes the place of a bound."""

    def __repr__(self) -> str:
        return "PUBLIC"

    def __reduce__(self) -> str:
        return "PUBLIC"  # there is one, also after copying and in other processes


PUBLIC = Public()


class Unbounded:
    """Marker for interactions in which a user has any number of records and is one unit."""

    def __repr__(self) -> str:
        return "UNBOUNDED"

    def __reduce__(self) -> str:
        return "UNBOUNDED"


UNBOUNDED = Unbounded()


# Rows


class Cells(NamedTuple):
    """Keys that are sorted, and their counts."""

    keys: Int[np.ndarray, " cells"]
    counts: Int[np.ndarray, " cells"]


class Kept(NamedTuple):
    """Cells, the bound that holds of them, and how many users lost anything to it."""

    cells: Cells
    bound: Bound | Public
    users_cut: int | None = None


def cut_cells(users: Users, keys: Any, counts: Any, bound: Any, key: bytes) -> Kept:
    """The sum of what stays of each user."""
    counts = None if counts is None else whole_counts(counts)
    sizes = {len(keys), len(users.numbers), len(keys if counts is None else counts)}
    if len(sizes) > 1:
        raise ValueError(f"keys, counts and users of lengths {sizes} do not fit each other")
    left = bounded_contributions(users, keys, counts, bound, key)
    keys, counts = cells_of_counts(left.keys, left.counts)
    cells = Cells(sealed(keys), sealed(counts))
    return Kept(cells, bound.enforced(users.who), int(left.lost.sum()))


def cells_of_rows(
    data: Any,
    domain: Domain,
    bound: Any,
    user: str | None,
    user_type: str | None,
    rng: Any,
    key: bytes | None,
    **how: Any,
) -> Kept:
    """Of a frame or file, a batch of rows at a time."""
    domain.refuse_wide()
    if user is None:
        refuse_cut_of_nobody(rng, key)
        counted = CellCounts()
        for rows in counted_rows(data, domain, **how):
            counted.add(rows.keys, rows.counts)
        keys, counts = counted.cells()
        return Kept(Cells(sealed(keys), sealed(counts)), bound)
    column = UserNumbers(user, user_type)
    rows = all_rows(counted_rows(data, domain, users=column, **how))
    users = column.users(cast(np.ndarray, rows.users))
    return cut_cells(users, rows.keys, rows.counts, bound, cut_key(rng, key))


# Value


@dataclass(frozen=True, eq=False)
class SparseTable:
    """Counts over a domain, of its non-empty cells.

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
        Whether exact counts may be shown next to a release, as for published files and synthetic
        stand-ins. Without it, everything that compares with the truth refuses.
    users_cut : int, optional
        Number of users who lost anything to an enforced bound. It is private, as counts are.

    Raises
    ------
    ValueError
        If keys or counts have another form, or the bound is missing. `from_keys` takes keys in any order.
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
        self.domain.refuse_wide()
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
        """Make a table from keys in any order. Counts of the same cell add up, empty cells are dropped.

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
        """Make a table from an array of the domain's shape.

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
        """Count the rows of a frame (pandas, polars or Arrow), or add up its column `count`.

        The domain is public and is never learnt from the data.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Rows of the same cell add up.
        domain : Domain
            All possible cells.
        bound : Bound or PUBLIC
            How far one unit moves the counts.
        count : str, optional
            Column of counts. By default each row counts one.
        truth_public : bool
            Whether exact counts may be shown.
        user : str, optional
            Column that names the user of each row. Each user is truncated to the bound at random. Without
            it the bound is believed as it is stated.
        user_type : "text", optional
            Read users as text, integers in their usual spelling, so that 7 and 007 are two people.
        rng, key : numpy Generator or 32 bytes, optional
            As in `from_keys`.

        Returns
        -------
        SparseTable

        Raises
        ------
        ValueError
            If a column is missing or there twice, or a value is missing or outside the domain. The message
            names its column and row.
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
        """Count the rows of files: CSV (also `.csv.gz` and `.csv.zst`), Parquet, or a table of a database.

        Values are compared with labels as text. Rows are read in batches, so memory grows with the number
        of cells and not with the number of rows.

        Parameters
        ----------
        path : path, or several
            Files with the columns of the domain. Rows of the same cell add up. A folder stands for its
            files, which all have the same columns, and a glob such as "trips/2026-*.parquet" for the files
            that match.
        domain, bound, count, truth_public, user, user_type, rng, key
            As in `from_frame`.
        table : str, optional
            Name of a table, if the file is a DuckDB or SQLite database.
        progress : callable, optional
            Called now and then with the number of bytes read so far and in total.

        Returns
        -------
        SparseTable

        Raises
        ------
        ValueError
            If a file cannot be read, a column is missing or there twice, or a value is missing or outside
            the domain. The message names its file, row and column.
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
        """Fraction of cells that are not empty."""
        return len(self) / self.domain.size

    def answer(self, workload: Recipe) -> Float[np.ndarray, " queries"]:
        """Return the exact answers.

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
        """Return the exact answers to linear queries in steps of a grid, to which each term is rounded.

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
        """Return the marginal on `attributes`. Cells of a unit may fall together, its l1 stays.

        Parameters
        ----------
        attributes : sequence of str
            Attributes of the domain, in the order of the marginal's attributes.

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
        """Return the counts of all cells in ascending order, over ranks, without saying which cell is which.

        A unit that moves the counts by l1 in all moves the sorted counts by no more, but perhaps in other
        places, because moving one count past its equals moves the last of them.

        Returns
        -------
        SparseTable
            Over one attribute, `rank`, with as many values as the domain has cells.
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
        """Return the full array in the domain's shape. For small domains only."""
        array = np.zeros(self.domain.size, np.int64)
        array[self.keys] = self.counts
        return array.reshape(self.domain.shape)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per non-empty cell: the attributes' labels and `count`."""
        return self.domain.frame(self.keys).assign(count=self.counts)
