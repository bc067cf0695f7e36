"""Private rows in files that may be larger than memory. Several checks detect whether the files change before
the release is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.data import (
    Bound,
    Interactions,
    Public,
    SparseTable,
    Unbounded,
    UserNumbers,
    cut_key,
    files_of,
    in_words,
    refuse_cut_of_nobody,
)
from workbench.data.reading import open_sources, refuse_columns
from workbench.data.sources import ParquetFile, Source
from workbench.spaces import Domain
from workbench.value import not_allowed

_SPAN = 2**24  # rows of a Parquet file that one task reads
_BYTES_A_ROW = 8  # of a text file, at least: it only steers the work


class Pin(NamedTuple):
    """Size and modification time that a file had when `Rows.read` was called."""

    path: Path
    size: int
    modified: int  # nanoseconds

    @classmethod
    def of(cls, path: Path) -> Pin:
        """Return the current size and modification time of a file."""
        stat = path.stat()
        return cls(path, stat.st_size, stat.st_mtime_ns)

    def refuse_changed(self) -> None:
        """Raise a ValueError if the size or the modification time of the file has changed."""
        try:
            unchanged = Pin.of(self.path) == self
        except OSError:
            unchanged = False
        if not unchanged:
            raise ValueError(f"{self.path} changed while it was read: nothing was released")


class Span(NamedTuple):
    """Part of the files that one task reads, either a whole file or some row groups of a Parquet file."""

    pin: Pin
    table: str | None
    row_groups: range | None
    size: int  # bytes
    rows: int  # about

    def source(self) -> Source:
        """Return an object that reads the rows of this part."""
        self.pin.refuse_changed()
        (source,) = open_sources(self.pin.path, self.table)
        if self.row_groups is not None:
            assert isinstance(source, ParquetFile)  # of which alone some are chosen
            source.choose(self.row_groups)
        return source


@dataclass(frozen=True, eq=False)
class Rows:
    """Private rows in files, which the function `scale.release` reads. The files must not change until the
    release is made.

    Parameters
    ----------
    files : tuple of Pin
        The files, each with its size and modification time.
    domain : Domain
        All possible cells. The domain is public.
    bound : Bound or UNBOUNDED
        Largest change of the counts that one protected unit can cause. If you name the column of users, each
        user's rows are truncated to this bound.
    count, user : str, optional
        Names of the columns that contain the counts and the names of users.
    table : str, optional
        Name of the table, if the file is a database.
    key : bytes, optional
        Key that determines which records of each user are kept. Pass the same key again to keep the same
        records. Default: a new random key per release.
    user_type : "text", optional
        If "text", the column of users is read as text, so that 07 and 7 are two users.
    """

    files: tuple[Pin, ...]
    domain: Domain
    bound: Bound | Unbounded | Public
    count: str | None = None
    user: str | None = None
    table: str | None = None
    key: bytes | None = field(default=None, repr=False)
    user_type: str | None = None

    def __post_init__(self) -> None:
        self.domain.refuse_wide()
        if not isinstance(self.bound, Bound | Unbounded | Public):
            need = "need Bound(l0, linf), the largest change by one unit, or UNBOUNDED"
            raise not_allowed(self, "bound", need)

    @classmethod
    def read(
        cls,
        path: str | Path | Sequence[str | Path],
        domain: Domain,
        bound: Bound | Unbounded,
        *,
        count: str | None = None,
        user: str | None = None,
        user_type: str | None = None,
        table: str | None = None,
        rng: np.random.Generator | None = None,
        key: bytes | None = None,
    ) -> Rows:
        """State where the private rows are: in CSV files, in Parquet files, or in a table of a database. This
        method checks the columns, and `scale.release` reads the rows later.

        Parameters
        ----------
        path : path, or several
            Paths of files or folders, or patterns such as "trips-*.csv". The files must have the columns that
            the domain names. Rows that belong to the same cell are added up.
        domain : Domain
            All possible cells. You must know the cells from public knowledge, and not from the data.
        bound : Bound or UNBOUNDED
            Largest change of the counts that one protected unit can cause. The mechanisms SRA, HPA and LPA
            select records of each user themselves. For these mechanisms, pass `UNBOUNDED`.
        count : str, optional
            Name of the column that contains counts. If you leave it out, each row counts as 1.
        user : str, optional
            Name of the column that identifies the user of each row. If a user has more rows than the bound
            allows, a random sample of these rows is kept, as in `SparseTable.read`. If you name no column, the
            workbench relies on your statement that no unit exceeds the bound.
        user_type : "text", optional
            If "text", the column of users is read as text, so that 07 and 7 are two users.
        table : str, optional
            Name of the table, if the file is a DuckDB or SQLite database.
        rng, key : numpy Generator or 32 bytes, optional
            Seeded generator or key that determines which records of each user are kept. Pass the same generator
            or key again to keep the same records. With the same key, `SparseTable.read` also keeps these
            records.

        Returns
        -------
        Rows

        Raises
        ------
        ValueError
            If a pattern matches no file, or if a file cannot be read. The error is also raised if the files
            have different columns, or if a column is missing or occurs twice.
        FileNotFoundError
            If a file does not exist.
        """
        if user is None:
            refuse_cut_of_nobody(rng, key)
        elif rng is not None or key is not None:
            key = cut_key(rng, key)
        names = [path] if isinstance(path, str | Path) else path
        pins = tuple(map(Pin.of, files_of(names)))
        rows = cls(pins, domain, bound, count, user, table, key, user_type)
        rows._sources()
        return rows

    def __repr__(self) -> str:
        names = " × ".join(self.domain.attributes)
        return f"<Rows of {names}: {self.domain.size:,} cells, {self.bound!r}>"

    def people(self) -> UserNumbers:
        """Return the object that converts the names of users to numbers. All files share this object."""
        return UserNumbers(str(self.user), self.user_type, self.domain.missing_user)

    @property
    def who(self) -> str:
        """Name of the protected unit, for example "a user (column rider)". The name contains the column of
        users.
        """
        return in_words("a user", str(self.user))

    @property
    def enforced_bound(self) -> Any:
        """Bound (largest change of the counts that one protected unit can cause). The field `status` of the
        bound says whether the workbench truncates each user's rows to this bound.
        """
        if self.user is None or not isinstance(self.bound, Bound):
            return self.bound
        return self.bound.enforced(self.who)

    def without_rows(self) -> Any:
        """Return an empty table (or empty interactions) with the same domain and bound. The workbench tries a
        mechanism on this empty table before it spends any budget.
        """
        if not isinstance(self.bound, Unbounded):
            return SparseTable.from_keys(self.domain, [], [], self.enforced_bound)
        none = np.zeros(0, np.int64)
        return Interactions.from_codes(self.domain, none, none, none, self.bound)

    def spans(self) -> list[Span]:
        """Divide the files into parts that tasks can read in parallel. Return the parts in the order of the
        rows.
        """
        return [span for pin, source in zip(self.files, self._sources(), strict=True)
                for span in _spans(pin, source, self.table)]  # fmt: skip

    def refuse_changed(self) -> None:
        """Raise a ValueError if one of the files has changed since `Rows.read` was called."""
        for pin in self.files:
            pin.refuse_changed()

    def _sources(self) -> list[Source]:
        sources = open_sources([pin.path for pin in self.files], self.table)
        refuse_columns(sources, [*self.domain.columns, *filter(None, [self.count, self.user])])
        return sources


def _spans(pin: Pin, source: Source, table: str | None) -> Iterator[Span]:
    if not isinstance(source, ParquetFile):
        yield Span(pin, table, None, pin.size, pin.size // _BYTES_A_ROW)
        return
    rows = int(source.starts[-1])
    firsts = np.unique(np.searchsorted(source.starts, [*range(0, rows, _SPAN), rows]))
    for first, last in pairwise(firsts.tolist()):
        own = int(source.starts[last] - source.starts[first])
        yield Span(pin, table, range(first, last), pin.size * own // rows, own)
