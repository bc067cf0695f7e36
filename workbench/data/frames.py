"""Rows of pandas, polars and Arrow frames, and of Parquet files."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.compiled import pa, parquet
from workbench.data.columns import arrow_column
from workbench.data.source import (
    BATCH,
    Columns,
    CountedFile,
    FileSource,
    Source,
    names_shown,
    refuse_bomb,
)
from workbench.data.users import user_column
from workbench.value import shown

# Frames


def is_frame(x: Any) -> bool:
    """Whether it has named columns of rows: a frame of pandas or polars, or an Arrow table."""
    return hasattr(x, "__len__") and hasattr(x, "__getitem__") and hasattr(x, "columns")


class Frame(Source):
    """A frame's rows, counted from 0."""

    def __init__(self, frame: Any):
        self.frame = frame
        is_arrow = isinstance(frame, pa.Table | pa.RecordBatch)
        self.names = list(frame.column_names if is_arrow else frame.columns)

    def __str__(self) -> str:
        return "the table"

    def batches(self, columns: Sequence[str], user: str | None = None) -> Generator[Columns]:
        """Slices; none is copied."""
        arrays = {name: _whole_column(self.frame, name, name == user) for name in columns}
        for start in range(0, len(self.frame), BATCH):
            yield {name: array.slice(start, BATCH) for name, array in arrays.items()}

    def without(self, missing: Sequence[str]) -> str:
        """Names what there is."""
        return f"columns {list(missing)} are missing: the table has {names_shown(self.names)}"

    def types(self) -> dict[str, pa.DataType]:
        """Those of an empty slice."""
        empty = Frame(self.frame[:0])
        return {name: _whole_column(empty.frame, name, False).type for name in self.names}

    def place(self, row: int) -> str:
        """The row."""
        return f"row {row}"

    def refusal(self, row: int, column: str, found: Any, need: str) -> ValueError:
        """Names column and row."""
        place = f"column {shown(column)}, {self.place(row)}"
        if found is None:
            return ValueError(f"{place}: a value is missing")
        return ValueError(
            f"{place}: {shown(found)} is outside the domain of {shown(column)}: need {need}"
        )


def _whole_column(frame: Any, name: str, user: bool) -> pa.Array:
    if isinstance(frame, pa.RecordBatch):
        return frame.column(name)
    if isinstance(frame, pa.Table):
        return frame.column(name).combine_chunks()
    return user_column(frame[name]) if user else arrow_column(frame[name])


# Parquet file

_BUFFER = 2**20  # bytes of a column that are read at once


class ParquetFile(FileSource):
    """The rows of a Parquet file, counted from 1; texts come as places in a list of them.

    `row_groups` are those that are read, all unless others are chosen.
    """

    def __init__(self, path: Path):
        super().__init__(path)
        self.row_groups: range | None = None
        try:
            with parquet.ParquetFile(path) as file:
                self.names = file.schema_arrow.names
                self._types = file.schema_arrow.types
                metadata = file.metadata
                groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
                unpacked = sum(group.total_byte_size for group in groups)
                refuse_bomb(path, self.size, rows=metadata.num_rows, bytes=unpacked)
                sizes = [group.num_rows for group in groups]
                self.starts = np.cumsum([0, *sizes])  # the first row of each row group
        except (pa.ArrowException, OSError) as e:
            raise self._damaged(e) from None

    def choose(self, row_groups: range) -> None:
        """Read these alone."""
        self.row_groups = row_groups
        self.first_row = int(self.starts[row_groups.start])

    def types(self) -> dict[str, pa.DataType]:
        """Those of its schema."""
        return dict(zip(self.names, self._types, strict=True))

    def batches(self, columns: Sequence[str], user: str | None = None) -> Generator[Columns]:
        """Some rows of a row group each; little more than a batch is in memory."""
        for name, dtype in zip(self.names, self._types, strict=True):
            if name in columns and pa.types.is_nested(dtype):
                raise ValueError(
                    f"{self}, column {name!r} holds {str(dtype)[:60]}: need text, numbers, truth values or "
                    "times"
                )
        texts = [  # read as places in a list: a long one in very many rows is held once
            name
            for name, dtype in zip(self.names, self._types, strict=True)
            if name in columns and (_is_text(dtype) or name == user and _is_bytes(dtype))
        ]
        self.raw = CountedFile(self.path)
        try:
            with parquet.ParquetFile(
                self.raw, read_dictionary=texts, buffer_size=_BUFFER
            ) as file:
                groups = self.row_groups
                if groups is None:
                    groups = range(len(self.starts) - 1)
                missing = int(self.starts[groups.stop] - self.starts[groups.start])
                for batch in file.iter_batches(BATCH, columns=[*columns], row_groups=groups):
                    batch.validate(full=True)  # text that is not UTF-8 would end polars
                    missing -= len(batch)
                    yield {name: batch.column(name) for name in columns}
                if missing:
                    raise ValueError(f"{self}: {missing:,} of its rows are missing")
        except (pa.ArrowException, OSError) as e:
            raise self._damaged(e) from None
        finally:
            self.raw.close()

    def _damaged(self, e: Exception) -> ValueError:
        return ValueError(f"{self}: not a complete Parquet file ({str(e)[:80]})")


def _is_text(dtype: pa.DataType) -> bool:
    return pa.types.is_string(dtype) or pa.types.is_large_string(dtype)


def _is_bytes(dtype: pa.DataType) -> bool:
    return pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype)
