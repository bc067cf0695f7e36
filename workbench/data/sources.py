"""Sources of rows: data frames, CSV files and Parquet files. Rows are read in order and in batches.

The schema of a file or data frame declares the type of a column. The workbench never guesses the type from the
values, because then one person's value could change how other rows are read. The columns of a CSV file are
text. A column of Python objects is converted to text, each value on its own.
"""

from __future__ import annotations

import csv
import re
import warnings
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from datetime import date, time
from decimal import Decimal
from io import FileIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import csv as arrow_csv
from workbench.compiled import njit, pa, parquet, pd, pl
from workbench.spaces.rules import Refused, text_of
from workbench.value import Int, shown

BATCH = 2**20  # rows of a frame or a Parquet file that are read at a time
READABLE = "need CSV (.csv, .csv.gz, .csv.zst), Parquet, or a DuckDB or SQLite file"
_NAMES_SHOWN = 20
_FEW = {"rows": 2**24, "values": 2**24, "bytes": 2**28}
_TIMES = 256  # as many of each a byte of a packed file
_TICKS = {"ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}  # a day
_DAYS = tuple((day - date(1970, 1, 1)).days for day in (date.min, date.max))


def names_shown(names: Sequence[str]) -> str:
    """Return a list of column or table names as text for an error message. After twenty names, the list is
    cut off.
    """
    more = ", …" if len(names) > _NAMES_SHOWN else ""
    return f"[{', '.join(map(shown, names[:_NAMES_SHOWN]))}{more}]"


def refuse_bomb(path: Path, size: int, **found: int) -> None:
    """Raise a ValueError if a compressed file of `size` bytes contains so many rows, values or bytes that it
    cannot be a real table.
    """
    for unit, number in found.items():
        most = _FEW[unit] + _TIMES * size
        if number > most:
            raise ValueError(
                f"{path}: more than {most:,} {unit} are too many for a packed file of {size:,} bytes; "
                "if it is no mistake, write it with less compression, or a row a cell with its count"
            )


class Source:
    """Base class of sources of rows with named columns, for example a file.

    The attribute `names` lists all columns. `size` is the number of bytes to read, and `position` is the
    number of bytes that were read so far.
    """

    names: list[str]
    size = 0
    position = 0
    first_row = 0  # that is read
    first_number = 1  # what people call the first row

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the given columns in batches of rows. Missing values are null or NaN."""
        raise NotImplementedError

    def types(self) -> dict[str, pl.DataType]:
        """Return the type that the source declares for each column. The method reads no values."""
        return {}

    def place(self, row: int) -> str:
        """Return a text that says where a row is, for example "trips.csv, row 7". The argument counts rows
        from 0.
        """
        return f"{self}, row {row + self.first_number}"

    def refuse_columns(self, columns: Sequence[str]) -> None:
        """Raise a ValueError if one of the columns is missing or occurs more than once, or if its name is not
        a text.
        """
        if numbers := [name for name in columns if not isinstance(name, str)]:
            raise ValueError(
                f"{self}: need text as the name of a column; got {shown(numbers[0])}"
            )
        if missing := [name for name in columns if name not in self.names]:
            raise ValueError(
                f"{self} has no column {', '.join(missing)}. It has {names_shown(self.names)}"
            )
        if twice := [name for name in columns if self.names.count(name) > 1]:
            raise ValueError(f"{self}: more than one column is called {shown(twice[0])}")


class Batch(NamedTuple):
    """Batch of `size` consecutive rows of a source. The first row has the number `first_row`. If rows were left
    out, `frame` contains only the other rows, and `rows` contains their positions in the batch.
    """

    source: Source
    first_row: int
    size: int
    frame: pl.DataFrame
    rows: Int[np.ndarray, " kept"] | None = None  # which of them these are, if not all

    def where(self, kept: pl.Series) -> Batch:
        """Return a batch with only the rows for which the mask `kept` is true."""
        return self._replace(frame=self.frame.filter(kept), rows=kept.arg_true().to_numpy())

    def place(self, row: int) -> str:
        """Return a text that says where a row of this batch is in its source, for an error message."""
        return self.source.place(
            self.first_row + (row if self.rows is None else int(self.rows[row]))
        )

    def refuse(self, refused: Refused) -> None:
        """Raise a ValueError if a value is not allowed. The message names the first column with such a value,
        and the first such row.

        `refused` contains, for each column, its name, the allowed values as text, and a mask of the rows with
        other values. An entry of the mask that is null counts as true.
        """
        for column, need, bad in refused:
            bad = pl.Series(bad, dtype=pl.Boolean).fill_null(True)
            if bad.any():
                row = int(bad.arg_max() or 0)
                raise ValueError(
                    f"{self.place(row)}, column {shown(column)}: found "
                    f"{found_text(self.frame[column][row])}, need {need}"
                )


def found_text(found: Any) -> str:
    """Return a value of a row as text for an error message. A missing value gives "nothing"."""
    return "nothing" if found is None or found != found else shown(found)


# Frames


def is_frame(x: Any) -> bool:
    """Return whether an object is a data frame of pandas or polars, or an Arrow table."""
    return hasattr(x, "__len__") and hasattr(x, "__getitem__") and hasattr(x, "columns")


class Frame(Source):
    """Source that reads the rows of a data frame, which are numbered from 0."""

    first_number = 0

    def __init__(self, frame: Any):
        self.frame = frame
        is_arrow = isinstance(frame, pa.Table | pa.RecordBatch)
        self.names = list(frame.column_names if is_arrow else frame.columns)

    def __str__(self) -> str:
        return "the table"

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the given columns in batches of rows, without a copy of the data frame."""
        whole = self.columns(columns)
        for start in range(0, len(self.frame), BATCH):
            yield whole.slice(start, BATCH)

    def types(self) -> dict[str, pl.DataType]:
        """Return the type of each column. The types are taken from a data frame without rows, so no value is
        read.
        """
        return dict(Frame(self.frame[:0]).columns(self.names).schema)

    def columns(self, names: Sequence[str]) -> pl.DataFrame:
        """Return the given columns of all rows as a polars data frame."""
        return pl.DataFrame([series_of(name, self.frame[name]) for name in names])


def series_of(name: str, column: Any) -> pl.Series:
    """Convert a column of pandas, polars or Arrow to a polars Series. The type of the result does not depend
    on the values.
    """
    if isinstance(column, pl.Series | pa.Array | pa.ChunkedArray):
        kind = getattr(column, "type", None)
        if kind and (pa.types.is_decimal256(kind) or pa.types.is_union(kind)):
            raise _unreadable(name, str(kind))
        if isinstance(column, pa.DictionaryArray) and len(column) < 16 * len(column.dictionary):
            column = column.dictionary_decode()  # a list of so many texts saves nothing
        try:
            series = pl.Series(name, column)
        except (pa.ArrowException, pl.exceptions.PolarsError) as e:
            raise _unreadable(name, str(kind)) from e
        if series.dtype == pl.Object:
            return _texts(name, list(series))
        if series.dtype.is_nested() or series.dtype in (pl.Binary, pl.Duration):
            raise _unreadable(name, str(series.dtype))
        if series.dtype == pl.Date or isinstance(series.dtype, pl.Datetime):
            _refuse_far_times(series)
        return series
    if column.dtype == "category":
        labels = series_of(name, column.cat.categories.to_series())
        codes = column.cat.codes.to_numpy()
        return labels.gather(pl.Series(codes, dtype=pl.Int64).set(pl.Series(codes < 0), None))
    if column.dtype == object:
        return _texts(name, column.tolist())
    try:
        return series_of(name, pa.Array.from_pandas(column))
    except pa.ArrowException as e:
        raise _unreadable(name, str(column.dtype)) from e


def _refuse_far_times(times: Any) -> None:
    """Raise a ValueError if the year of a date or time is outside 1 to 9999. Python cannot represent other
    years.
    """
    days = times.to_physical()
    if times.dtype != pl.Date:
        days = days // _TICKS[times.dtype.time_unit]
    if not days.is_between(*_DAYS).fill_null(True).all():
        raise ValueError(f"column {shown(times.name)} holds years outside 1 to 9999")


def _texts(name: str, values: Sequence[Any]) -> pl.Series:
    """Convert a column of Python objects to a column of texts. Each value is converted on its own."""
    try:
        return pl.Series(name, [_text(name, x) for x in values], pl.String)
    except UnicodeEncodeError as e:
        raise _unreadable(name, f"text that is not valid ({e.reason})") from None


def _text(name: str, x: Any) -> str | None:
    single = str | int | float | np.number | np.bool_ | Decimal | date | time
    if isinstance(x, single) or (not isinstance(x, list | dict | np.ndarray) and pd.isna(x)):
        return text_of(x)
    raise _unreadable(name, type(x).__name__)


def _unreadable(name: str, found: str) -> ValueError:
    wanted = "need text, numbers, truth values, dates or times"
    if found in ("Binary", "bytes"):  # as text, b"x" would be "b'x'"
        return ValueError(f"column {shown(name)} holds bytes: {wanted}. Store it as text")
    return ValueError(
        f"column {shown(name)} holds {found}: {wanted}. Convert it first, for example with "
        f"frame[{name!r}] = frame[{name!r}].astype(str)"
    )


# Files


class CountedFile(FileIO):
    """File that counts how many bytes were read from it."""

    bytes_read = 0

    def read(self, size: int | None = -1) -> bytes:
        """Read at most `size` bytes, and add the number of bytes to `bytes_read`."""
        content = super().read(size)
        self.bytes_read += len(content)
        return content


class FileSource(Source):
    """Base class of sources that read a file. Rows are numbered from 1."""

    raw: CountedFile | None = None

    def __init__(self, path: Path):
        self.path = path
        self.size = path.stat().st_size

    @property
    def position(self) -> int:  # type: ignore[override]
        """Number of bytes of the file that were read so far."""
        return min(self.raw.bytes_read, self.size) if self.raw else 0

    def __str__(self) -> str:
        return str(self.path)

    def damaged(self, e: Exception) -> ValueError:
        """Return the ValueError to raise for a file that cannot be read. The error contains the message of
        the library that tried to read the file, and says what to do.
        """
        why = str(e).splitlines()[0][:160] if str(e) else "it ends in the middle"
        need = READABLE
        if "UTF8" in why:
            need = "save it as UTF-8"
        elif _FIELDS in why:
            need = (
                "need in each row as many fields as in the first row, which names the columns"
            )
        return ValueError(f"{self}: it cannot be read ({why}): {need}")


class ParquetFile(FileSource):
    """Source that reads a Parquet file. The attribute `row_groups` contains the numbers of the row groups
    (parts of the file) to read. By default, all row groups are read.
    """

    def __init__(self, path: Path):
        super().__init__(path)
        try:
            with parquet.ParquetFile(path) as file:
                self.schema = file.schema_arrow
                self.names = self.schema.names
                groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
                self._listed = _listed_texts(self.schema, groups)
                unpacked = sum(group.total_byte_size for group in groups)
                refuse_bomb(path, self.size, rows=file.metadata.num_rows, bytes=unpacked)
        except (pa.ArrowException, OSError) as e:
            raise self.damaged(e) from None
        self.starts = np.cumsum([0, *(group.num_rows for group in groups)])  # of row groups
        self.row_groups = range(len(groups))

    def choose(self, row_groups: range) -> None:
        """Restrict this source to some consecutive row groups, which are the parts of a Parquet file."""
        self.row_groups = row_groups
        self.first_row = int(self.starts[row_groups.start])

    def types(self) -> dict[str, pl.DataType]:
        """Return the type of each column, from the schema of the file."""
        return Frame(self.schema.empty_table()).types()

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the given columns in batches of rows. Little more than one batch is in memory at a time."""
        texts = [name for name in columns if name in self._listed]
        try:
            Frame(self.schema.empty_table()).columns(columns)
        except ValueError as e:
            raise ValueError(f"{self}, {e}") from None
        with CountedFile(self.path) as self.raw:
            try:
                file = parquet.ParquetFile(self.raw, read_dictionary=texts, buffer_size=BATCH)
                groups = self.row_groups
                missing = int(self.starts[groups.stop] - self.starts[groups.start])
                for batch in file.iter_batches(BATCH, columns=[*columns], row_groups=groups):
                    batch.validate(full=True)  # text that is not UTF-8 would end polars
                    missing -= len(batch)
                    yield Frame(batch).columns(columns)
                if missing:
                    raise ValueError(f"{self}: {missing:,} of its rows are missing")
            except (pa.ArrowException, OSError) as e:
                raise self.damaged(e) from None


def _listed_texts(schema: pa.Schema, groups: Sequence[Any]) -> list[str]:
    """Return the names of the text columns for which at least one row group (part of the file) stores a list
    of distinct texts. Such columns are read as categories, so that each text is in memory only once.
    """
    plain = {"PLAIN", "RLE", "BIT_PACKED"}
    columns = [group.column(i) for group in groups for i in range(group.num_columns)]
    listed = {x.path_in_schema for x in columns if not plain.issuperset(x.encodings)}
    texts = [field.name for field in schema if field.type in (pa.string(), pa.large_string())]
    return [name for name in texts if name in listed]


_BLOCK = 2**24  # bytes of CSV that are parsed at a time; a row is at most as long
_ROWS = 2**18  # of a block that are yielded at a time
_LONGEST_HEADER = 2**22  # characters, with blank lines above it
_MOST_NAMES = 2**14
_FIELDS = "columns, got"  # in what Arrow says of a row with too few or too many


class Layout(NamedTuple):
    """Layout of a text file with a table. The default layout is CSV with the names of the columns in the
    first row.

    If `names` is empty, the first row of the file contains the names. Rows whose first field matches the
    regular expression `notes` are skipped. Fields whose text is in `missing` are missing values. Fields may
    be in quotes only if the separator is a comma.
    """

    names: tuple[str, ...] = ()
    separator: str = ","
    notes: str = ""
    missing: tuple[str, ...] = ()
    strip: str | None = None  # off both ends of fields; by default space
    encoding: str = "utf8"

    @property
    def is_quoted(self) -> bool:
        """Whether fields may be in quotes."""
        return self.separator == ","


CSV = Layout()


class CsvFile(FileSource):
    """Source that reads a CSV file. All columns are text, and the first row contains the names of the columns.
    The file may be compressed by gzip or zstd.

    Spaces around a field are removed, and an empty field is a missing value. Blank lines are skipped. But in
    a file with one column, a blank line is a row with a missing value.
    """

    def __init__(self, path: Path, packed: str | None = None, layout: Layout = CSV):
        super().__init__(path)
        self.packed = packed
        self.layout = layout
        self.names = [*layout.names]
        self._blank = 0 if self.names else -1  # lines before the names
        try:
            with CountedFile(path) as raw, self._unpacked(raw) as stream:
                text = TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
                head = StringIO(text.read(_LONGEST_HEADER), newline="")
                rows = csv.reader(head)
                while not self.names:
                    self.names = next(rows)
                    self._blank += 1
                self._has_rows = bool(head.read(1))
        except (OSError, EOFError, csv.Error) as e:
            raise self.damaged(e) from None
        except StopIteration:
            raise ValueError(f"{self}: it is empty. Need the names of the columns") from None
        if head.tell() >= _LONGEST_HEADER and not self._has_rows:
            raise ValueError(
                f"{self}: the row of names does not end within {_LONGEST_HEADER:,} characters"
            )
        marks = [mark for mark in ";\t|" if self.names[1:] == [] and mark in self.names[0]]
        if marks and not layout.names:
            found = shown(self.names[0])
            raise ValueError(f"{self}: need commas between fields, not {marks[0]!r}: {found}")
        if len(self.names) > _MOST_NAMES:
            names = f"{len(self.names):,} columns"
            raise ValueError(
                f"{self}: its first row names {names}, need at most {_MOST_NAMES:,}"
            )

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the given columns in batches of rows. Rows in which all fields are empty are left out."""
        if not self._has_rows:
            if not self.layout.names:
                warnings.warn(f"{self} has no row below the names of its columns", stacklevel=2)
            return
        notes = self.layout.notes
        read = [*dict.fromkeys([*self.names[:1], *columns])] if notes else columns
        fields = [f"f{i}" for i in range(len(self.names))]
        places = [fields[self.names.index(name)] for name in read]
        others = [field for field in fields if field not in places]
        above = self._blank, 0 if self.layout.names else 1  # lines and rows above those to read
        before = 0  # rows of earlier blocks
        try:
            with CountedFile(self.path) as self.raw:
                for text in self._whole_rows(self._unpacked(self.raw)):
                    try:
                        own, rest = self._table(text, places, *above), None
                    except pa.ArrowInvalid as e:
                        if _FIELDS in str(e):
                            self._refuse_row(text, places, *above, before)
                        raise
                    for start in range(0, len(own), _ROWS):
                        frame = self._texts(own, start)
                        empty = _are_empty(frame)
                        if len(fields) > 1 and empty.any():
                            if others:
                                rest = rest or self._table(text, others, *above)
                                empty &= _are_empty(self._texts(rest, start))
                            frame = frame.filter(~empty)
                        frame.columns = read
                        if notes:
                            is_note = frame[read[0]].str.contains(notes).fill_null(False)
                            frame = frame.filter(~is_note).select(columns)
                        before += len(frame)
                        yield frame
                    above = 0, 0
        except (pa.ArrowException, OSError) as e:
            raise self.damaged(e) from None

    def _refuse_row(
        self, text: Any, places: Sequence[str], lines: int, rows: int, before: int
    ) -> None:
        """Raise an error with the number of the first row that has too few or too many fields. Only a reader
        without threads knows this number.
        """
        try:
            self._table(text, places, lines, rows, threads=False)
        except pa.ArrowInvalid as e:
            above = 1 + lines + rows - before
            said = re.sub(r"Row #(\d+)", lambda found: f"row {int(found[1]) - above}", str(e))
            raise pa.ArrowInvalid(said) from None

    def _table(
        self, text: Any, places: Sequence[str], lines: int, rows: int, threads: bool = True
    ) -> pa.Table:
        """Parse a block of text, and return some of its columns. The first `lines` lines are left out, and
        then the first `rows` rows.
        """
        layout = self.layout
        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            arrow_csv.ReadOptions(
                skip_rows=1 + lines,
                column_names=[f"f{i}" for i in range(len(self.names))],
                encoding=layout.encoding,
                use_threads=threads,
            ),
            arrow_csv.ParseOptions(
                delimiter=layout.separator,
                quote_char='"' if layout.is_quoted else False,
                newlines_in_values=layout.is_quoted,
                ignore_empty_lines=bool(layout.names or len(self.names) > 1),
                invalid_row_handler=self._skip_note if layout.notes else None,
            ),
            arrow_csv.ConvertOptions(
                include_columns=places, column_types=dict.fromkeys(places, pa.string())
            ),
        )
        return table.slice(rows)

    def _texts(self, table: pa.Table, start: int) -> pl.DataFrame:
        """Return the batch of rows that begins at row `start`. Spaces around fields are removed, and empty
        fields become null.
        """
        frame = Frame(table.slice(start, _ROWS)).columns(table.column_names)
        texts = pl.all().str.strip_chars(self.layout.strip)
        return frame.select(texts.replace(["", *self.layout.missing], None))

    def _whole_rows(self, stream: Any) -> Iterator[Any]:
        """Yield the text of the file in pieces that consist of complete rows. Each piece begins with an empty
        line and contains at most two blocks of the file.

        The file is read in the calling thread. A thread of the Arrow library could still be reading when the
        process ends.
        """
        size = 0
        quoted = self.layout.is_quoted
        rest = b"\n" + stream.read(len(BOM_UTF8)).removeprefix(BOM_UTF8)
        while content := stream.read(_BLOCK):
            size += len(content)
            refuse_bomb(self.path, self.size, bytes=size)
            rest += content
            end = _end_of_rows(rest, quoted)
            if end > 1:
                yield memoryview(rest)[:end]
                rest = b"\n" + rest[end:]
            elif len(rest) > _BLOCK:
                raise ValueError(f"{self}: a row is longer than {_BLOCK:,} bytes")
        if len(rest) > 1:
            if _end_of_rows(rest + b"\n", quoted) <= 1:
                raise ValueError(
                    f"{self}: a quote is left open, so that rows went into a field"
                )
            yield rest

    def _skip_note(self, row: Any) -> str:
        return "skip" if re.search(self.layout.notes, row.text) else "error"

    def _unpacked(self, raw: CountedFile) -> Any:
        file = pa.PythonFile(raw, mode="r")
        return pa.CompressedInputStream(file, self.packed) if self.packed else file


def _are_empty(frame: pl.DataFrame) -> pl.Series:
    """Return a mask that is true for rows in which all values are missing."""
    return frame.select(pl.all_horizontal(pl.all().is_null())).to_series()


def _end_of_rows(text: bytes, quoted: bool) -> int:
    """Return the position after the last complete row in a text, or 0 if no row is complete."""
    if quoted and b'"' in text:
        return int(_end_of_quoted_rows(np.frombuffer(text, np.uint8)))
    return max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1)) + 1


@njit(cache=True, nogil=True)
def _end_of_quoted_rows(text: Any) -> int:
    """Return the position after the last complete row in a text with quotes, or 0 if no row is complete. As
    in Arrow, a quote opens a quoted field only at the start of the field, and two quotes within a quoted
    field stand for one.
    """
    end = 0
    is_open, may_open = False, True
    for i in range(text.size):
        byte = text[i]
        if is_open:
            is_open = byte != ord('"')
            may_open = True
        elif byte == ord('"') and may_open:
            is_open = True
        elif byte == ord("\n") or (byte == ord("\r") and i + 1 < text.size):
            end = i + 1
            may_open = True
        else:
            may_open = byte == ord(",")
    return end
