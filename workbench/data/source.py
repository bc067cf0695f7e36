"""What every source of rows can do: name its columns, give batches of them, and say where a row stands."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from workbench.compiled import pa
from workbench.value import shown

BATCH = 2**20  # rows of a frame or a Parquet file that are read at a time
_NAMES_SHOWN = 20
_FEW = {"rows": 2**24, "values": 2**24, "bytes": 2**28}
_TIMES = 256  # as many of each a byte of a packed file

Columns = dict[str, "pa.Array"]  # text, so that Arrow is loaded when used


def names_shown(names: Sequence[str]) -> str:
    """The first names of columns or tables, for an error."""
    more = ", …" if len(names) > _NAMES_SHOWN else ""
    return f"[{', '.join(map(shown, names[:_NAMES_SHOWN]))}{more}]"


def refuse_bomb(path: Path, size: int, **found: int) -> None:
    """A ValueError if a file of `size` bytes has far more `rows`, `values` or `bytes` than tables have."""
    for unit, number in found.items():
        most = _FEW[unit] + _TIMES * size
        if number > most:
            raise ValueError(
                f"{path}: more than {most:,} {unit} are too many for a packed file of {size:,} bytes; "
                "if it is no mistake, write it with less compression, or a row a cell with its count"
            )


class Source:
    """Rows of named columns, which are read once, in order, and in batches.

    `names` are all columns, `size` the bytes that there are to read, of which `position` have been.
    """

    names: list[str]
    size = 0
    first_row = 0  # that is read

    @property
    def position(self) -> int:
        """How many bytes were read."""
        return 0

    def batches(self, columns: Sequence[str], user: str | None = None) -> Generator[Columns]:
        """Columns of some rows as Arrow arrays; missing values are null, or NaN. `user` names users.

        A column's type and each of its values must not depend on which other values there are.
        """
        raise NotImplementedError

    def refuse_columns(self, columns: Sequence[str]) -> None:
        """A ValueError unless each of these columns is there once."""
        if missing := [name for name in columns if name not in self.names]:
            raise ValueError(self.without(missing))
        if twice := [name for name in columns if self.names.count(name) > 1]:
            raise ValueError(f"{self}: more than one column is called {shown(twice[0])}")

    def without(self, missing: Sequence[str]) -> str:
        """What is said when columns are missing."""
        raise NotImplementedError

    def types(self) -> dict[str, pa.DataType]:
        """The types that are stated of columns; no value is read."""
        return {}

    def place(self, row: int) -> str:
        """Where a row stands, counted from 0 here."""
        raise NotImplementedError

    def refusal(self, row: int, column: str, found: Any, need: str) -> ValueError:
        """What is said of the first value that is refused; None is a missing one."""
        raise NotImplementedError


class CountedFile(FileIO):
    """A file that counts the bytes that were read."""

    bytes_read = 0

    def read(self, size: int | None = -1) -> bytes:
        """At most so many bytes."""
        content = super().read(size)
        self.bytes_read += len(content)
        return content


class FileSource(Source):
    """Rows of a file."""

    row_word = "row"
    raw: CountedFile | None = None

    def __init__(self, path: Path):
        self.path = path
        self.size = path.stat().st_size

    @property
    def position(self) -> int:
        """How many bytes were read of the file."""
        return min(self.raw.bytes_read, self.size) if self.raw else 0

    def __str__(self) -> str:
        return str(self.path)

    def line_of(self, row: int) -> int:
        """The number that people give to a row, counted from 0 here."""
        return row + 1

    def place(self, row: int) -> str:
        """File and line."""
        return f"{self}, {self.row_word} {self.line_of(row)}"

    def without(self, missing: Sequence[str]) -> str:
        """Names the file, and what it has."""
        return f"{self} has no column {', '.join(missing)}: it has {names_shown(self.names)}"

    def refusal(self, row: int, column: str, found: Any, need: str) -> ValueError:
        """Names file, line and column."""
        value = "nothing" if found is None else shown(found)
        return ValueError(
            f"{self.place(row)}, column {shown(column)}: found {value}, need {need}"
        )


class Batch(NamedTuple):
    """Some rows of a source, from its `first_row` on."""

    source: Source
    first_row: int
    columns: Columns

    def refusal(self, row: int, column: str, need: str) -> ValueError:
        """What is said of a row of this batch."""
        found = self.columns[column][row].as_py()
        if found != found:  # NaN
            found = None
        return self.source.refusal(self.first_row + row, column, found, need)
