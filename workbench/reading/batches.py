"""Rows of any source in batches: their columns; and their keys in a domain, counts and users."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Float, Int
from workbench.cell_counts import GrowingArray, is_no_count
from workbench.contributions import UserNumbers
from workbench.domain import Domain
from workbench.libraries import pa, pl
from workbench.preparation.digits import as_numbers
from workbench.preparation.matching import as_texts, whole_numbers
from workbench.preparation.rows import row_keys, series_of
from workbench.reading.source import Batch, Columns
from workbench.reading.sources import open_sources, refuse_columns

Progress = Callable[[int, int], Any]  # bytes that were read, and that there are


class CountedRows(NamedTuple):
    """Some rows: the cell of each, what it counts (None: one), and whose it is (None: not asked)."""

    keys: Int[np.ndarray, " rows"]
    counts: Int[np.ndarray, " rows"] | None = None
    users: Int[np.ndarray, " rows"] | None = None


def row_batches(
    data: Any,
    columns: Sequence[str] | None = None,
    *,
    table: str | None = None,
    progress: Progress | None = None,
    user: str | None = None,
) -> Iterator[Batch]:
    """The rows of a table, a batch at a time.

    Parameters
    ----------
    data : frame, path, or list of paths
        As `open_sources` takes it.
    columns : sequence of str, optional
        Those that are read; without them all.
    table : str, optional
        The table of a DuckDB or SQLite file.
    progress : callable, optional
        Called with the bytes that were read and those that there are, of files.
    user : str, optional
        The column that names users.

    Yields
    ------
    Batch

    Raises
    ------
    ValueError
        What cannot be read, with its file and line, or a column that is missing or there twice.
    """
    sources = open_sources(data, table)
    if columns is None:
        columns = sources[0].names
    columns = [*dict.fromkeys(columns)]
    refuse_columns(sources, columns)
    size = sum(source.size for source in sources)
    read = 0
    for source in sources:
        first_row = source.first_row
        batches = source.batches(columns, user)
        for fields in _read_ahead(batches) if source.size else batches:
            yield Batch(source, first_row, fields)
            first_row += len(fields[columns[0]])
            if progress is not None:
                progress(read + source.position, size)
        read += source.size
        if progress is not None and size:
            progress(read, size)


def _read_ahead(batches: Generator[Columns]) -> Iterator[Columns]:
    """The same batches, each read by another thread while the one before it is in use."""
    with ThreadPoolExecutor(1) as thread:
        try:
            coming = thread.submit(next, batches, None)
            while (batch := coming.result()) is not None:
                coming = thread.submit(next, batches, None)
                yield batch
        finally:
            thread.submit(batches.close)


def counted_rows(
    data: Any,
    domain: Domain,
    *,
    count: str | None = None,
    users: UserNumbers | None = None,
    table: str | None = None,
    progress: Progress | None = None,
) -> Generator[CountedRows]:
    """The rows of a table as keys of a domain, a batch at a time.

    Parameters
    ----------
    data : frame, path, or list of paths
        As `open_sources` takes it; with `domain.columns`.
    domain : Domain
        Which cells there can be.
    count : str, optional
        The column of counts; without it each row counts one.
    users : UserNumbers, optional
        Numbers the users, and says which column names them.
    table, progress
        As in `row_batches`.

    Yields
    ------
    CountedRows

    Raises
    ------
    ValueError
        A value that is missing, outside the domain, or no count, with its place.
    """
    user = None if users is None else users.column
    columns = [name for name in (*domain.columns, count, user) if name is not None]
    rules = domain.rules
    for batch in row_batches(data, columns, table=table, progress=progress, user=user):
        keys, kept = row_keys(rules, batch.columns, batch.refusal)
        counts = None if count is None else row_counts(batch, count)
        numbers = None if users is None else row_users(batch, users)
        if kept is not None:
            counts = None if counts is None else counts[kept]
            numbers = None if numbers is None else numbers[kept]
        yield CountedRows(keys, counts, numbers)


def all_rows(batches: Iterable[CountedRows]) -> CountedRows:
    """The rows of all batches as one."""
    keys = GrowingArray()
    counts = GrowingArray()
    users = GrowingArray()
    is_counted = False
    for rows in batches:
        keys.append(rows.keys)
        if rows.users is not None:
            users.append(rows.users)
        if rows.counts is not None:
            is_counted = True
            counts.append(rows.counts)
    return CountedRows(keys.take(), counts.take() if is_counted else None, users.take())


def row_counts(batch: Batch, count: str) -> Int[np.ndarray, " rows"]:
    """What each row counts, a whole number from 0 to 2⁵³."""
    counts = whole_counts_of(batch, count)
    bad = is_no_count(counts)
    if bad.any():
        raise batch.refusal(int(bad.argmax()), count, "a whole number >= 0")
    return counts


def whole_counts_of(batch: Batch, count: str) -> Int[np.ndarray, " rows"]:
    """The whole numbers of a column, −1 where there is none."""
    return (
        whole_numbers(series_of(count, as_numbers(_plain(batch, count))))
        .fill_null(-1)
        .to_numpy()
    )


def row_users(batch: Batch, users: UserNumbers) -> Int[np.ndarray, " rows"]:
    """Whose each row is; a missing user is a ValueError."""

    def refusal(row: int, need: str) -> ValueError:
        return batch.refusal(row, users.column, need)

    return users.numbers(batch.columns[users.column], refusal=refusal)


def row_numbers(batch: Batch, column: str) -> Float[np.ndarray, " rows"]:
    """Numbers of any size; a value that is none is a ValueError."""
    numbers = _series(batch, column).cast(pl.Float64, strict=False)
    _refuse(batch, column, numbers.is_null() | numbers.is_nan(), "a number")
    return numbers.to_numpy()


def row_texts(batch: Batch, column: str) -> pl.Series:
    """Values as text; a missing one is a ValueError."""
    values = _series(batch, column)
    missing = values.is_null()
    _refuse(
        batch,
        column,
        missing | values.is_nan() if values.dtype.is_float() else missing,
        "a value",
    )
    return as_texts(values)


def _series(batch: Batch, column: str) -> pl.Series:
    return series_of(column, _plain(batch, column))


def _plain(batch: Batch, column: str) -> pa.Array:
    values = batch.columns[column]
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _refuse(batch: Batch, column: str, bad: pl.Series, need: str) -> None:
    bad = bad.fill_null(True)
    if bad.any():
        raise batch.refusal(int(bad.arg_max()), column, need)
