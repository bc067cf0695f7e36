"""Reader of the rows in files and data frames. The reader yields batches with the cell, the count and the user
of each row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.compiled import pl
from workbench.data.cells import is_no_count, joined
from workbench.data.database import DuckDbTable, SqliteTable
from workbench.data.sources import (
    READABLE,
    Batch,
    CsvFile,
    Frame,
    ParquetFile,
    Source,
    is_frame,
    names_shown,
)
from workbench.data.users import UserNumbers
from workbench.spaces import Domain
from workbench.spaces.rules import Refused, whole_numbers
from workbench.value import Bool, Int, shown

Progress = Callable[[int, int], Any]  # bytes that were read, and that there are
if TYPE_CHECKING:
    # the keys of rows, which rows these are (None: all), and which are refused
    Prepare = Callable[[pl.DataFrame], tuple[Any, Bool[np.ndarray, " rows"] | None, Refused]]

# Sources


def open_sources(data: Any, table: str | None = None) -> list[Source]:
    """Open a data frame, or the files that together contain a table. Return one source of rows per file. All
    files must have the same columns.

    Parameters
    ----------
    data : frame, path, list of paths, or Source
        Data frame of pandas, polars or Arrow, or one or more paths. A path names a file, a folder of files,
        or a pattern such as "trips/2026-*.parquet".
    table : str, optional
        Name of the table, if the file is a DuckDB or SQLite database.

    Returns
    -------
    list of Source

    Raises
    ------
    ValueError
        If a file is not a table, or if files have different columns.
    FileNotFoundError
        If a file does not exist.
    """
    if is_frame(data):
        return [Frame(data)]
    if isinstance(data, Source):
        return [data]
    names = [data] if isinstance(data, str | Path) else data
    if not isinstance(names, list | tuple) or not all(isinstance(x, str | Path) for x in names):
        raise ValueError(
            f"{shown(data)} is no table: need a file, several, or a frame of pandas, polars or Arrow"
        )
    sources = [_open(path, table) for path in files_of(names)]
    for source in sources[1:]:
        if set(source.names) != set(sources[0].names):
            raise ValueError(
                f"{source} has the columns {names_shown(source.names)}, and {sources[0]} has "
                f"{names_shown(sources[0].names)}: need the same in all files"
            )
    return sources


def files_of(names: Iterable[str | Path]) -> list[Path]:
    """Return the paths of all files that the given paths, folders and patterns (for example "trips/*.csv")
    refer to. Raise a ValueError if a file would be listed twice.
    """
    paths: list[Path] = []
    for name in names:
        path = Path(name)
        if not str(name):
            raise ValueError("'' names no file")
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if not p.name.startswith((".", "_")))
            if folders := [p for p in inside if p.is_dir()]:
                raise ValueError(f"{path} holds the folder {folders[0].name}: name its files")
            if not inside:
                raise ValueError(f"{path}: the folder is empty")
            paths += inside
        elif path.is_file():
            paths.append(path)
        elif not has_magic(str(name)):
            raise FileNotFoundError(f"{path}: no such file")
        elif matching := sorted(glob(str(name), recursive=True)):
            paths += [Path(file) for file in matching if not Path(file).is_dir()]
        else:
            raise FileNotFoundError(f"{name}: no file is called so")
    if not paths:
        raise ValueError("no file is named: need at least one")
    seen: dict[tuple[int, int], Path] = {}
    for path in paths:
        stat = path.stat()  # two links to one file have one number
        first = seen.setdefault((stat.st_dev, stat.st_ino), path)
        if first is not path:
            raise ValueError(
                f"{path} is named twice, also as {first}: its rows would count twice"
            )
    return paths


def _open(path: Path, table: str | None) -> Source:
    """Open a file as a source of rows. The format is recognised by the first bytes of the file."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as e:
        raise ValueError(f"{path}: it cannot be read ({e.strerror})") from None
    if head.startswith(b"SQLite format 3\0"):
        return SqliteTable(path, table)
    if head[8:12] == b"DUCK":
        return DuckDbTable(path, table)
    if table is not None:
        raise ValueError(f"{path} is no database, so that it has no table {table!r}")
    if head.startswith(b"PAR1") or path.suffix.lower() in (".parquet", ".pq"):
        return ParquetFile(path)
    for start, packed in ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd")):
        if head.startswith(start):
            return CsvFile(path, packed)
    is_json = re.match(rb"\s*(\{\s*\"|\[\s*[\[{])", head)
    if is_json or b"\0" in head:
        found = "JSON" if is_json else "no text in UTF-8"
        raise ValueError(f"{path}: its content is {found}: {READABLE}")
    return CsvFile(path)


def refuse_columns(sources: Sequence[Source], columns: Sequence[str]) -> None:
    """Raise a ValueError if one of the columns is missing from a source, or occurs in it more than once."""
    for source in sources:
        source.refuse_columns(columns)


# Batches


class CountedRows(NamedTuple):
    """Batch of rows. For each row, the batch contains the key (number of the cell), the count and the number of
    the user. `counts` is None if each row counts as 1. `users` is None if no column of users was named.
    """

    keys: Any  # int64[rows], or as `prepare` makes them
    counts: Int[np.ndarray, " rows"] | None = None
    users: Any = None  # int64[rows]


def row_batches(
    data: Any,
    columns: Sequence[str] | None = None,
    *,
    table: str | None = None,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Yield the rows of a table in batches, with the columns that you name.

    Parameters
    ----------
    data : frame, path, or list of paths
        Data frame of pandas, polars or Arrow, or one or more paths. A path names a file, a folder of files,
        or a pattern such as "trips/2026-*.parquet".
    columns : sequence of str, optional
        Names of the columns to read. By default all columns.
    table : str, optional
        Name of the table, if the file is a DuckDB or SQLite database.
    progress : callable, optional
        Function that is called from time to time with two numbers: how many bytes were read so far, and how
        many bytes there are in total.

    Yields
    ------
    Batch

    Raises
    ------
    ValueError
        If a file cannot be read, or if a column is missing or occurs twice.
    """
    sources = open_sources(data, table)
    columns = [*dict.fromkeys(sources[0].names if columns is None else columns)]
    refuse_columns(sources, columns)
    size = sum(source.size for source in sources)
    read = 0
    for source in sources:
        first_row = source.first_row
        batches = source.batches(columns)
        for frame in _read_ahead(batches) if source.size else batches:
            yield Batch(source, first_row, len(frame), frame)
            first_row += len(frame)
            if progress is not None:
                progress(read + source.position, size)
        read += source.size
        if progress is not None and size:
            progress(read, size)


def _read_ahead(batches: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield the given batches unchanged. While the caller uses a batch, a second thread already reads the
    next one.
    """
    thread = ThreadPoolExecutor(1)
    try:
        coming = thread.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, batches, None)
            yield batch
    finally:
        # Without waiting: the collector may end this generator inside a lock that the thread needs to end.
        thread.shutdown(wait=False)


def counted_rows(
    data: Any,
    domain: Domain,
    *,
    count: str | None = None,
    users: UserNumbers | None = None,
    table: str | None = None,
    progress: Progress | None = None,
) -> Generator[CountedRows]:
    """Yield the rows of a table in batches. For each row, a batch contains the key of the row's cell in the
    domain, the count, and the number that stands for the user.

    Parameters
    ----------
    data : frame, path, or list of paths
        Data in any form that `row_batches` takes. The table must have the columns that are listed in
        `domain.columns`.
    domain : Domain
        Domain that lists all possible cells.
    count : str, optional
        Name of the column of counts. By default, each row counts as 1.
    users : UserNumbers, optional
        Object that gives each user a number. The object contains the name of the column of users.
    table, progress : str and callable, optional
        `table` is the name of a table in a database file. `progress` is a function that is called with two
        numbers: how many bytes were read so far, and how many bytes there are in total, as in `row_batches`.

    Yields
    ------
    CountedRows

    Raises
    ------
    ValueError
        If a value is missing or outside the domain, or if a count is not an integer >= 0. The message names
        the file, row and column.
    """
    how: Any = {"count": count, "users": users, "table": table, "progress": progress}
    for rows, _, _ in prepared_rows(data, domain.columns, domain.row_keys, **how):
        yield rows


def prepared_rows(
    data: Any,
    columns: Sequence[str],
    prepare: Prepare,
    *,
    count: str | None = None,
    users: UserNumbers | None = None,
    table: str | None = None,
    progress: Progress | None = None,
    refuse: bool = True,
) -> Generator[tuple[CountedRows, Batch, Refused]]:
    """Yield the rows of a table in batches. The function `prepare` computes the keys of the rows from some
    columns, and returns which rows to leave out.

    For each batch, yield three things: the counted rows, the batch with the columns as they were read, and a
    list of the values that are not allowed. Rows that are dropped because they have no user are missing from
    all three. By default, the first value that is not allowed raises a ValueError, which names the row and the
    column of the value. With `refuse` = False, no error is raised.
    """
    others = count, None if users is None else users.column
    names = [*columns, *(name for name in others if name is not None)]
    for batch in row_batches(data, names, table=table, progress=progress):
        numbers = None
        of_users: Refused = []
        if users is not None:
            batch, numbers, of_users = users.of_rows(batch)
        try:
            keys, kept, refused = prepare(batch.frame)
        except ValueError as e:  # about the type of a column
            raise ValueError(f"{batch.source}: {e}") from None
        counts = None
        if count is not None:
            counts = whole_numbers(batch.frame[count]).fill_null(-1).to_numpy()
            refused.append((count, "an integer >= 0", is_no_count(counts)))
        refused += of_users
        if refuse:
            batch.refuse(refused)
        if kept is not None:
            counts = None if counts is None else counts[kept]
            numbers = None if numbers is None else numbers[kept]
        yield CountedRows(keys, counts, numbers), batch, refused


def all_rows(batches: Iterable[CountedRows], none: np.ndarray) -> CountedRows:
    """Join the rows of all batches into one batch. Without batches, the keys are the empty array `none`."""
    keys = [none]
    counts: list[np.ndarray] = []
    users: list[np.ndarray] = [np.zeros(0, np.int64)]
    for rows in batches:
        for pieces, piece in zip((keys, counts, users), rows, strict=True):
            if piece is not None:
                pieces.append(piece)
    return CountedRows(joined(keys), joined(counts) if counts else None, joined(users))


def missing_in(values: pl.Series) -> pl.Series:
    """Return a mask that is true for missing values (null or NaN)."""
    return values.is_null() | values.is_nan() if values.dtype.is_float() else values.is_null()
