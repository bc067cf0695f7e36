"""Frames of pandas, polars and Arrow as rows."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from workbench.contributions.users import user_column
from workbench.labelled_rows import arrow_column
from workbench.libraries import pa
from workbench.reading.source import BATCH, Columns, Source, names_shown
from workbench.value import shown


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
