"""The reader of rows: it opens any source, gives batches of keys and counts, and drafts domains."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import pa, pl
from workbench.data.cells import GrowingArray, is_no_count
from workbench.data.csv_file import CsvFile
from workbench.data.database import DuckDbTable, SqliteTable
from workbench.data.frames import Frame, ParquetFile, is_frame
from workbench.data.source import Batch, Columns, Source, names_shown
from workbench.data.users import UserNumbers
from workbench.spaces import Domain
from workbench.spaces.rows import Refusal, examples_of, row_keys, series_of
from workbench.spaces.rules import as_numbers, as_texts, whole_numbers
from workbench.spaces.statements import BLANK
from workbench.value import Float, Int, shown

# Sources

_CONTENTS = (  # what a file's bytes begin with, from where
    (0, b"PAR1", "Parquet"),
    (0, b"\x1f\x8b", "gzip"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard"),
    (0, b"SQLite format 3\0", "SQLite"),
    (8, b"DUCK", "DuckDB"),
    (0, b"\xff\xfe", "UTF-16"),
    (0, b"\xfe\xff", "UTF-16"),
    (0, b"PK\x03\x04", "a zip archive or an Excel sheet"),
    (0, b"ARROW1", "Arrow"),
    (0, b"BZh", "bzip2"),
    (0, b"\xfd7zXZ", "xz"),
)
_NAMES = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".gz": "gzip",
    ".zst": "Zstandard",
    ".zstd": "Zstandard",
}
_ENDINGS = {"Parquet": ".parquet", "gzip": ".csv.gz", "Zstandard": ".csv.zst"}
_DATABASES = {"SQLite": SqliteTable, "DuckDB": DuckDbTable}
_READABLE = "need CSV (.csv, .csv.gz, .csv.zst), Parquet, or a DuckDB or SQLite file"


def open_sources(data: Any, table: str | None = None) -> list[Source]:
    """The sources of a table's rows, all with the same columns.

    Parameters
    ----------
    data : frame, path, list of paths, or Source
        A frame of pandas, polars or Arrow; a file; a folder, whose files are read; or a glob.
    table : str, optional
        The table of a DuckDB or SQLite file.

    Returns
    -------
    list of Source

    Raises
    ------
    ValueError
        A file whose content is not what its name says, or has other columns than the rest.
    FileNotFoundError
        No such file.
    """
    if is_frame(data):
        return [Frame(data)]
    if isinstance(data, Source):
        return [data]
    if isinstance(data, pl.LazyFrame):
        raise ValueError("a table in the making is not read: need frame.collect()")
    names = [data] if isinstance(data, str | Path) else data
    if not isinstance(names, list | tuple) or not all(isinstance(x, str | Path) for x in names):
        raise ValueError(
            f"{shown(data)} is no table: need a file, several, or a frame of pandas, polars or Arrow"
        )
    sources = [open_file(path, table) for path in files_of(names)]
    for source in sources[1:]:
        if set(source.names) != set(sources[0].names):
            raise ValueError(
                f"{source} has the columns {names_shown(source.names)}, and {sources[0]} has "
                f"{names_shown(sources[0].names)}: need the same in all files"
            )
    return sources


def files_of(names: Iterable[str | Path]) -> list[Path]:
    """The files that are meant by files, folders and globs, each once."""
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


def open_file(path: Path, table: str | None) -> Source:
    """A file by its content, which has to be what its name says."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as e:
        raise ValueError(f"{path}: it cannot be read ({e.strerror})") from None
    content = _content(head)
    if content in _DATABASES:
        return _DATABASES[content](path, table)
    if table is not None:
        raise ValueError(f"{path} is no database, so that it has no table {table!r}")
    if content == "UTF-16":
        raise ValueError(f"{path}: its text is UTF-16: save the file as UTF-8")
    name = _NAMES.get(path.suffix.lower(), "text")
    if content != name and (head or name != "text"):
        ending = _ENDINGS.get(content)
        advice = f"if it is whole, call it {path.stem}{ending}" if ending else _READABLE
        raise ValueError(f"{path}: its name says {name}, its content is {content}: {advice}")
    if content == "Parquet":
        return ParquetFile(path)
    return CsvFile(path, {"gzip": "gzip", "Zstandard": "zstd"}.get(content))


def _content(head: bytes) -> str:
    """What a file holds, by its first bytes."""
    for start, signature, content in _CONTENTS:
        if head[start : start + len(signature)] == signature:
            return content
    if b"\0" not in head:
        return "text"
    zeros = max(head[::2].count(0), head[1::2].count(0))
    return "UTF-16" if zeros > len(head) // 4 else "no text"


def refuse_columns(sources: Sequence[Source], columns: Sequence[str]) -> None:
    """A ValueError unless each source has each of these columns once."""
    for source in sources:
        source.refuse_columns(columns)


# Drafts

_RESERVED = {"count", "noisy", "truth_public"}  # no attribute is called so
_ACTIONS = {"other": "refuse", "missing": "refuse"}


def draft_domain(data: Any, table: str | None = None) -> dict[str, Any]:
    """The beginning of a domain's file: an attribute a column, what values there can be left blank.

    No value of the table is read, nor the least and largest values or lists of values that files keep
    beside their columns: which values occur is private. Of a CSV file the first line is read.

    Parameters
    ----------
    data : frame, path, or list of paths
        Whose columns.
    table : str, optional
        The table of a DuckDB or SQLite file.

    Returns
    -------
    dict
        What `Domain.from_dict` reads once each `BLANK` is filled in; until then it refuses them by name.

    Raises
    ------
    ValueError
        A file that cannot be read, or a column's name that stands there twice.
    """
    source = open_sources(data, table)[0]
    source.refuse_columns(source.names)
    types = source.types()
    draft = {}
    for column in source.names:
        stated = _stated(types.get(column))
        if column in _RESERVED:
            stated = stated if isinstance(stated, dict) else {"labels": [stated]}
            draft[f"{column}_"] = stated | {"column": column}
        else:
            draft[column] = stated
    return draft


def _stated(kind: pa.DataType | None) -> Any:
    """What is said of a column of this type: everything but the values."""
    if kind is None:
        return BLANK
    if pa.types.is_boolean(kind):
        return {"labels": [False, True], **_ACTIONS}
    if pa.types.is_integer(kind):
        return {"from": BLANK, "to": BLANK, **_ACTIONS}
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return {"low": BLANK, "high": BLANK, "width": BLANK, "closed": "left", **_ACTIONS}
    if pa.types.is_timestamp(kind):
        zone = {} if kind.tz is None else {"zone": BLANK}
        return {"time": BLANK, **zone, **_ACTIONS}
    if pa.types.is_date(kind):
        return {"time": BLANK, **_ACTIONS}
    if pa.types.is_time(kind):
        return {"time": "hour", **_ACTIONS}
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return BLANK
    return {"labels": [BLANK], **_ACTIONS}


# Batches

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


# Observed


def observed_domain(
    data: Any,
    *but: str | None,
    table: str | None = None,
    progress: Progress | None = None,
) -> Domain:
    """The values that occur in all columns but some, as text; they are not public knowledge."""
    texts: dict[str, set[str]] = {}
    for batch in row_batches(data, table=table, progress=progress):
        for name in batch.columns.keys() - set(but):
            texts.setdefault(name, set()).update(row_texts(batch, name).unique())
    if not texts:
        raise ValueError(f"{data} holds nothing to read a domain off")
    names = [name for name in batch.columns if name in texts]
    return Domain.from_dict({name: sorted(texts[name]) for name in names})


# Checks

_EXAMPLES = 5


@dataclass
class RefusedColumn:
    """What is refused in one column.

    Parameters
    ----------
    column : str
        The column.
    need : str
        What its values have to be.
    rows : int
        How many rows are refused because of it.
    examples : dict of str
        The first different values, as text, and the place that each first stands in.
    """

    column: str
    need: str
    rows: int = 0
    examples: dict[str, str] = field(default_factory=dict)


@dataclass
class TableCheck:
    """What a release of a table would refuse. It tells about the data, and is not to be published.

    Parameters
    ----------
    rows : int
        How many the table has.
    left_out : int
        How many of them a rule of the domain drops.
    refused : list of RefusedColumn
        Columns of the domain in which rows are refused; then those of counts and users.
    """

    rows: int = 0
    left_out: int = 0
    refused: list[RefusedColumn] = field(default_factory=list)

    def _add(self, batch: Batch, refusal: Refusal) -> None:
        column = next(
            (x for x in self.refused if x.column == refusal.column and x.need == refusal.need),
            None,
        )
        if column is None:
            column = RefusedColumn(refusal.column, refusal.need)
            self.refused.append(column)
        column.rows += refusal.count
        for value, row in refusal.examples.items():
            text = "nothing" if value is None else shown(value)
            if len(column.examples) < _EXAMPLES and text not in column.examples:
                column.examples[text] = batch.source.place(batch.first_row + row)


def check_table(
    data: Any,
    domain: Domain,
    *,
    count: str | None = None,
    user: str | None = None,
    user_type: str | None = None,
    table: str | None = None,
    progress: Progress | None = None,
) -> TableCheck:
    """Which rows of a table a release would refuse, all at once; nothing is kept of it.

    Labels that are added to a domain because of what this says make the domain private: better say what
    becomes of other values.

    Parameters
    ----------
    data : frame, path, or list of paths
        As `SparseTable.read` and `from_frame` take it.
    domain : Domain
        Which cells there can be.
    count, user : str, optional
        The columns of counts and of users.
    user_type : "text", optional
        Read users as text, as in `SparseTable.from_frame`.
    table, progress
        As in `SparseTable.read`.

    Returns
    -------
    TableCheck

    Raises
    ------
    ValueError
        A file that cannot be read, or a column that is missing or of a type that no rule reads.
    """
    check = TableCheck()
    users = None if user is None else UserNumbers(user, user_type)
    columns = [name for name in (*domain.columns, count, user) if name is not None]
    for batch in row_batches(data, columns, table=table, progress=progress, user=user):
        refusals, left_out = domain.refusals(batch.columns)
        check.rows += len(batch.columns[columns[0]])
        check.left_out += left_out
        for refusal in [
            *refusals,
            *_refused_counts(batch, count),
            *_refused_users(batch, users),
        ]:
            check._add(batch, refusal)
    return check


def _refused_counts(batch: Batch, count: str | None) -> Iterator[Refusal]:
    if count is not None:
        bad = is_no_count(whole_counts_of(batch, count))
        if bad.any():
            examples = examples_of(batch.columns[count], np.flatnonzero(bad))
            yield Refusal(count, "a whole number >= 0", int(bad.sum()), examples)


def _refused_users(batch: Batch, users: UserNumbers | None) -> Iterator[Refusal]:
    if users is not None:
        for need, bad in users.refused(batch.columns[users.column]):
            if bad.any():
                examples = examples_of(batch.columns[users.column], np.flatnonzero(bad))
                yield Refusal(users.column, need, int(bad.sum()), examples)
