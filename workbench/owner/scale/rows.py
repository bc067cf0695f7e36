"""Rows of files that need not fit in memory: what they are, and that nobody changes them meanwhile."""

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
    """A file as it was when the rows were named."""

    path: Path
    size: int
    modified: int  # nanoseconds

    @classmethod
    def of(cls, path: Path) -> Pin:
        """Return the file as it is now."""
        stat = path.stat()
        return cls(path, stat.st_size, stat.st_mtime_ns)

    def refuse_changed(self) -> None:
        """Raise a ValueError if the file is another by now."""
        try:
            unchanged = Pin.of(self.path) == self
        except OSError:
            unchanged = False
        if not unchanged:
            raise ValueError(f"{self.path} changed while it was read: nothing was released")


class Span(NamedTuple):
    """Part that one task reads: a file, or some row groups of it."""

    pin: Pin
    table: str | None
    row_groups: range | None
    size: int  # bytes
    rows: int  # about

    def source(self) -> Source:
        """Return its rows."""
        self.pin.refuse_changed()
        (source,) = open_sources(self.pin.path, self.table)
        if self.row_groups is not None:
            assert isinstance(source, ParquetFile)  # of which alone some are chosen
            source.choose(self.row_groups)
        return source


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of files, which `scale.release` reads; the files must not change before it has.

    Parameters
    ----------
    files : tuple of Pin
        The files, as they were when they were named.
    domain : Domain
        Which cells there can be; public.
    bound : Bound or UNBOUNDED
        How far one unit moves the counts; with `user` each is cut to it.
    count, user : str, optional
        The columns of counts and of users.
    table : str, optional
        The table, where the file is a database.
    key : bytes, optional
        What the choice of what stays of each user comes from, to repeat it; by default each release has
        one of its own.
    user_type : "text", optional
        Users are read as text.
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
            need = "need Bound(l0, linf), how far one unit moves the table, or UNBOUNDED"
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
        """Rows of files: CSV, Parquet, or a table of a database. No row is read yet.

        Parameters
        ----------
        path : path, or several
            Files, folders of files, and globs; the columns of the domain. Rows of the same cell add up.
        domain : Domain
            Which cells there can be; public, and never learnt from the data.
        bound : Bound or UNBOUNDED
            How far one unit moves the counts. For mechanisms that sample each user's records themselves
            (SRA, HPA, LPA), `UNBOUNDED`.
        count : str, optional
            The column of counts; without it each row counts one.
        user : str, optional
            The column that says whose each row is: each user is cut to the bound, at random, as by
            `SparseTable.read`. Without it the bound is believed as it is stated.
        user_type : "text", optional
            As in `SparseTable.from_frame`.
        table : str, optional
            The name of a table, where the file is a DuckDB or SQLite database.
        rng, key : numpy Generator or 32 bytes, optional
            What the choice comes from, to repeat it: with one key `SparseTable.read` cuts alike.

        Returns
        -------
        Rows

        Raises
        ------
        ValueError
            No file, one that cannot be read, or files of different columns; a column that is missing or
            there twice.
        FileNotFoundError
            No such file.
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
        """Number the users of rows that name them."""
        return UserNumbers(str(self.user), self.user_type)

    @property
    def who(self) -> str:
        """Whom the column of users names, in words."""
        return in_words("a user", str(self.user))

    @property
    def enforced_bound(self) -> Any:
        """The bound, as what becomes of the rows has it."""
        if self.user is None or not isinstance(self.bound, Bound):
            return self.bound
        return self.bound.enforced(self.who)

    def without_rows(self) -> Any:
        """Return a table, or interactions, of the same domain and bound without a row: anything may be
        tried.
        """
        if not isinstance(self.bound, Unbounded):
            return SparseTable.from_keys(self.domain, [], [], self.enforced_bound)
        none = np.zeros(0, np.int64)
        return Interactions.from_codes(self.domain, none, none, none, self.bound)

    def spans(self) -> list[Span]:
        """List the parts of files that tasks read, in order."""
        return [span for pin, source in zip(self.files, self._sources(), strict=True)
                for span in _spans(pin, source, self.table)]  # fmt: skip

    def refuse_changed(self) -> None:
        """Raise a ValueError if a file is another by now."""
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
