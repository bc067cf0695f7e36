"""Files of comma-separated values as rows, plain, or packed by gzip or Zstandard."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from io import RawIOBase, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from workbench.compiled import pa, pc
from workbench.data.source import Columns, CountedFile, FileSource, refuse_bomb
from workbench.value import Bool, counted

_BLOCK = 2**24  # bytes that are parsed at a time; a row is at most as long
_LONGEST_FIELD = _BLOCK  # characters; what is longer is a quote that is left open
_LONGEST_LINE = 2**22
_LONGEST_ROW = 2**24  # in several lines
_MOST_NAMES = 2**14
_MOST_BLANK = 2**10  # lines before the first that names the columns


class _CountedText(RawIOBase):
    """The text of a file; counts its quotes, and refuses more bytes or lines than its size allows."""

    def __init__(self, file: CsvFile, stream: pa.NativeFile):
        self.file = file
        self.stream = stream
        self.quotes = 0
        self.size = 0
        self.lines = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = self.stream.read(size)
        self.quotes += content.count(b'"')
        self.size += len(content)
        self.lines += content.count(b"\n")
        refuse_bomb(self.file.path, self.file.size, bytes=self.size, rows=self.lines)
        return content


class CsvFile(FileSource):
    """The rows of a CSV file as text, counted by the lines they end on.

    Space around a field is no part of it, and an empty field is missing. A row is skipped if all fields of
    the file are empty in it; in a file of one column it is a row whose field is missing.

    Parameters
    ----------
    path : Path
        A file whose first row names its columns.
    packed : "gzip" or "zstd", optional
        How its bytes are packed.
    """

    row_word = "line"

    def __init__(self, path: Path, packed: str | None = None):
        super().__init__(path)
        self.packed = packed
        try:
            with _any_length(), self._text() as text:
                self.names: list[str] = []
                self._blank = -1  # lines before the names
                records = csv.reader(_Lines(self, text))
                while not self.names and self._blank < _MOST_BLANK:
                    self.names = next(records, [])
                    self._blank += 1
                self._has_rows = bool(text.read(1))
        except (OSError, EOFError, csv.Error) as e:
            raise self._damaged(e) from None
        if not self.names:
            raise ValueError(f"{self}: it is empty, without the names of columns")
        if len(self.names) > _MOST_NAMES:
            names = f"{len(self.names):,} columns"
            raise ValueError(
                f"{self}: its first row names {names}, need at most {_MOST_NAMES:,}"
            )

    def batches(self, columns: Sequence[str], user: str | None = None) -> Generator[Columns]:
        """The rows of some blocks of the file."""
        if not self._has_rows:
            return
        places = [self.names.index(name) for name in columns]
        others = [place for place in range(len(self.names)) if place not in places]
        try:
            with CountedFile(self.path) as self.raw, CountedFile(self.path) as again:
                rest = self._blocks(again, others, pa.binary())  # only read where it is needed
                passed = 0
                for number, block in enumerate(self._blocks(self.raw, places, pa.string())):
                    arrays = list(map(_trimmed, block))
                    empty = _missing_in_all(arrays)
                    if len(self.names) > 1 and empty.any():
                        if others:
                            _keep_empty(empty, next(islice(rest, number - passed, None)))
                            passed = number + 1
                        arrays = [array.filter(pa.array(~empty)) for array in arrays]
                    if len(arrays[0]):
                        yield dict(zip(columns, arrays, strict=True))
        except (pa.ArrowException, OSError) as e:
            raise self._damaged(e) from None

    def _blocks(
        self, raw: CountedFile, places: Sequence[int], kind: pa.DataType
    ) -> Generator[list[pa.Array]]:
        """Some columns of all rows, a block of the file at a time, whichever columns they are."""
        from pyarrow.csv import open_csv

        header = 1  # rows
        with self._bytes(raw) as file:
            text = _CountedText(self, file)
            for batch in open_csv(text, **self._options(places, kind)):
                yield batch.slice(header).columns
                header = 0
        if text.quotes % 2:
            self._refuse_open_quote()

    def without(self, missing: Sequence[str]) -> str:
        """Names the file, and what it has, or what parts its fields."""
        said = super().without(missing)
        only = self.names[0] if len(self.names) == 1 else ""
        marks = [mark for mark in ";\t|" if mark in only]
        return f"{said}; need commas between fields, not {marks[0]!r}" if marks else said

    def line_of(self, row: int) -> int:
        """The line that a row ends on; the file is read again for it."""
        with _any_length(), self._text() as text:
            lines = (line for line, _ in self._records(text))
            return next(line for number, line in enumerate(lines) if number == row + 1)

    def _refuse_open_quote(self) -> None:
        """A ValueError if the last row has a quote that is never closed: rows may have gone into it."""
        lines: list[str] = []  # since the row before

        def remembered(text: TextIOWrapper) -> Iterator[str]:
            for line in text:
                lines.append(line)
                yield line

        with _any_length(), self._text() as text:
            records = csv.reader(remembered(text))
            for _ in records:
                last = list(lines)
                lines.clear()
            try:
                next(csv.reader(last, strict=True))
            except csv.Error as e:
                if "end of data" in str(e):
                    line = records.line_num - len(last) + 1
                    raise ValueError(f"{self}, line {line}: a quote is left open") from None

    def _bytes(self, raw: CountedFile) -> pa.NativeFile:
        file = pa.PythonFile(raw, mode="r")
        return pa.CompressedInputStream(file, self.packed) if self.packed else file

    def _text(self) -> TextIOWrapper:
        raw = CountedFile(self.path)
        return TextIOWrapper(self._bytes(raw), "utf-8-sig", errors="replace", newline="")

    def _records(self, text: TextIOWrapper) -> Iterator[tuple[int, list[str]]]:
        """The rows with the lines that they end on; the first names the columns."""
        lines = _Lines(self, text)
        records = csv.reader(lines)
        width = 0
        for record in records:
            lines.left = _LONGEST_ROW
            is_empty = len(record) in (0, width) and not any(map(str.strip, record))
            if width == 1 or not is_empty:
                yield records.line_num, record
            width = width or len(record)

    def _options(self, places: Sequence[int], kind: pa.DataType) -> dict[str, Any]:
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions

        names = [f"f{place}" for place in places]  # as Arrow generates them
        return {
            "read_options": ReadOptions(
                block_size=_BLOCK, skip_rows=self._blank, autogenerate_column_names=True
            ),
            "parse_options": ParseOptions(
                newlines_in_values=True, ignore_empty_lines=len(self.names) > 1
            ),
            "convert_options": ConvertOptions(
                include_columns=names,
                column_types=dict.fromkeys(names, kind),
                strings_can_be_null=True,
                null_values=[""],
            ),
        }

    def _damaged(self, e: Exception) -> ValueError:
        """What is wrong with the file, and in which line, as far as it can be said."""
        why = str(e).splitlines()[0][:80] if str(e) else "it ends in the middle"
        try:
            with _any_length(), self._text() as text:
                records = self._records(text)
                _, names = next(records)
                for line, record in records:
                    ends_within = sum(field.rstrip("\n").count("\n") for field in record)
                    place = f"{self}, line {line - ends_within}"
                    open_quote = ": is a quote left open?" if ends_within else ""
                    longest = max(map(len, record))
                    if longest > _BLOCK // 4:
                        return ValueError(
                            f"{place}: a field of {longest:,} characters{open_quote}"
                        )
                    fields = f"the row has {counted(len(record), 'field')}"
                    if len(record) < len(names):
                        place = f"{place}, column {names[len(record)]!r}: found nothing"
                        why = f"{fields}, and the first line names {len(names)}"
                        return ValueError(f"{place}: {why}{open_quote}")
                    if len(record) > len(names):
                        why = f"more fields than the first line names ({len(names)})"
                        return ValueError(f"{place}: {fields}, {why}")
                    if "UTF8" in why and any("\ufffd" in field for field in record):
                        return ValueError(f"{place}: its text is not UTF-8: save the file so")
        except (OSError, EOFError, csv.Error, StopIteration):
            pass
        return ValueError(f"{self}: it cannot be read ({why})")


class _Lines:
    """The lines of a file; a ValueError for one, or a row of several, that no table has."""

    def __init__(self, file: CsvFile, text: TextIOWrapper):
        self._file = file
        self._text = text
        self._line = 0
        self.left = _LONGEST_ROW  # characters of this row

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._text.readline(_LONGEST_LINE)
        if not line:
            raise StopIteration
        self._line += 1
        place = f"{self._file}, line {self._line}"
        if len(line) == _LONGEST_LINE:
            raise ValueError(f"{place}: a line of more than {_LONGEST_LINE:,} characters")
        self.left -= len(line)
        if self.left < 0:
            raise ValueError(f"{place}: a row of more than {_LONGEST_ROW:,} characters")
        return line


def _trimmed(texts: pa.Array) -> pa.Array:
    """Without space around them; what is empty then is missing."""
    content = texts.buffers()[2]
    characters = np.frombuffer(content or b"", np.uint8)
    if not len(characters) or (characters.min() > ord(" ") and characters.max() < 128):
        return texts
    texts = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.equal(texts, ""), None, texts)


def _missing_in_all(columns: Sequence[pa.Array]) -> Bool[np.ndarray, " rows"]:
    """Which rows have no value in any of some columns."""
    if not all(column.null_count for column in columns):
        return np.zeros(len(columns[0]), bool)
    return np.logical_and.reduce([x.is_null().to_numpy(zero_copy_only=False) for x in columns])


def _keep_empty(empty: Bool[np.ndarray, " rows"], columns: Sequence[pa.Array]) -> None:
    """Leave only the rows that are empty in these columns of bytes, too."""
    for column in columns:
        rows = np.flatnonzero(empty)
        texts = column.take(pa.array(rows)).to_pylist()
        empty[rows] = [not (x and x.decode(errors="replace").strip()) for x in texts]


@contextmanager
def _any_length() -> Iterator[None]:
    """Fields may be as long as they like, while Python's reader looks for a line."""
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)
