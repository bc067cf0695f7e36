"""Labelled rows: columns of a file or a frame become codes, and an error says which row is wrong.

Published files are read as text (`LabelledRows`); the columns of a frame hold values of any kind
(`arrow_column`, `value_codes`). The lists of labels are public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.compiled import pa, pd, pl
from workbench.spaces.rows import column_codes
from workbench.value import Float, Int, shown

if TYPE_CHECKING:
    from workbench.spaces import Domain


_LARGEST_COUNT = 2**53  # counts up to here, and their sums in float64, are exact


@dataclass
class LabelledRows:
    """Some rows of a file: columns of text, empty fields null, and the line that each row stands on."""

    path: Path
    lines: Int[np.ndarray, " rows"]
    frame: pl.DataFrame

    def refuse(self, bad: pl.Series, column: str, need: str) -> None:
        """A ValueError that names file, line, column and value of the first bad or null row."""
        bad = bad.fill_null(True)
        if not bad.any():
            return
        row = int(bad.to_numpy().argmax())
        text = self.frame[column][row]
        value = "nothing" if text is None else repr(text)
        raise ValueError(
            f"{self.path}, line {self.lines[row]}, column {column!r}: found {value}, need {need}"
        )

    def codes(
        self, column: str, labels: Sequence[str] | range | pl.Enum, need: str = ""
    ) -> Int[np.ndarray, " rows"]:
        """Places in a public list: a sequence of labels, their polars Enum, or a `range`."""
        if isinstance(labels, range):
            numbers = self.frame[column].cast(pl.Int64, strict=False)
            inside = numbers.is_between(min(labels[0], labels[-1]), max(labels[0], labels[-1]))
            need = need or f"a whole number from {labels[0]} to {labels[-1]}"
            if labels.step == 1:
                self.refuse(~inside, column, need)
                return numbers.to_numpy() - labels.start
            inside &= (numbers - labels.start) % labels.step == 0
            self.refuse(~inside, column, f"{need} in steps of {labels.step}")
            return (numbers.to_numpy() - labels.start) // labels.step
        kind = labels if isinstance(labels, pl.Enum) else pl.Enum(list(map(str, labels)))
        places = self.frame[column].cast(kind, strict=False).to_physical()
        if places.null_count():
            self.refuse(
                places.is_null(), column, need or f"one of {', '.join(kind.categories)}"
            )
        return places.to_numpy().astype(np.int64)

    def whole_numbers(
        self, column: str, low: int, high: int, need: str
    ) -> Int[np.ndarray, " rows"]:
        """Whole numbers from `low` to `high`."""
        return self._between(pl.Int64, column, low, high, need)

    def _between(self, kind: type, column: str, low: int, high: int, need: str) -> np.ndarray:
        numbers = self.frame[column].cast(kind, strict=False)
        self.refuse(~numbers.is_between(low, high), column, need)
        return numbers.to_numpy()

    def degrees(self, column: str, limit: int) -> Float[np.ndarray, " rows"]:
        """Latitudes or longitudes."""
        need = f"degrees from -{limit} to {limit}"
        return self._between(pl.Float64, column, -limit, limit, need)

    def times(self, column: str, written: str, need: str) -> pl.Series:
        """Times that are written in one way (a format of strptime), to the microsecond."""
        times = self.frame[column].str.to_datetime(written, time_unit="us", strict=False)
        self.refuse(times.is_null(), column, need)
        return times

    def positive_counts(self, column: str) -> Int[np.ndarray, " rows"]:
        """Whole numbers of at least 1; commas between thousands are read over."""
        text = self.frame[column].str.replace_all(",", "", literal=True)
        counts = text.cast(pl.Int64, strict=False)
        self.refuse(counts < 1, column, "a whole number >= 1")
        return counts.to_numpy()

    def counts(self, column: str) -> Int[np.ndarray, " rows"]:
        """Whole numbers of at least 0, also where they are written 3.0."""
        numbers = self.frame[column].cast(pl.Float64, strict=False)
        whole = numbers.is_between(0, _LARGEST_COUNT) & (numbers == numbers.floor())
        self.refuse(~whole, column, "a whole number >= 0")
        return numbers.cast(pl.Int64).to_numpy()

    def drop(self, columns: Sequence[str], text: str) -> int:
        """Leaves out the rows that have `text` in one of the columns; says how many."""
        out = np.zeros(len(self.frame), bool)
        for column in columns:
            out |= (self.frame[column] == text).fill_null(False).to_numpy()
        self.keep(~out)
        return int(out.sum())

    def keep(self, rows: np.ndarray) -> None:
        """Leaves out all other rows."""
        self.frame = self.frame.filter(rows)
        self.lines = self.lines[rows]


# Columns of frames


def refuse_missing_columns(columns: Sequence[str], frame: Any) -> None:
    """A ValueError unless a pandas or polars frame has these columns."""
    if missing := [name for name in columns if name not in frame.columns]:
        raise ValueError(f"columns {missing} are missing: the table has {list(frame.columns)}")


_OBJECTS: tuple[tuple[tuple[type, ...], str, Callable[[Any], Any] | None], ...] = (
    ((bool, np.bool_), "bool", bool),  # kinds of Python values, and what each value becomes
    ((int, np.integer), "string", str),
    ((float, np.floating), "double", float),
    ((str,), "string", None),
    ((Decimal,), "string", str),
    ((datetime,), "timestamp[us]", None),
    ((date,), "date32", None),
    ((time,), "time64[us]", None),
)


def arrow_column(column: Any) -> pa.Array:
    """A column of a pandas or polars frame as an Arrow array, whose type its values do not decide.

    The type follows from the column's own. A column of Python objects has to hold one kind of them.
    """
    dtype = str(column.dtype)
    if dtype == "category":
        categories = arrow_column(column.cat.categories.to_series(name=column.name))
        codes = column.cat.codes.to_numpy()
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), categories)
    if dtype in ("object", "Object"):
        return _array_of_objects(column.name, pd.Series(list(column), dtype=object))
    try:
        array = (
            column.to_arrow() if hasattr(column, "to_arrow") else pa.Array.from_pandas(column)
        )
    except pa.ArrowException:
        raise _unreadable(column.name, dtype) from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _array_of_objects(name: str, column: Any) -> pa.Array:
    values = column.where(column.notna(), None).tolist()
    types = {type(x) for x in values} - {type(None)}
    kinds = {next((kind for kind in _OBJECTS if issubclass(t, kind[0])), None) for t in types}
    if not kinds:
        return pa.nulls(len(values))
    kind = kinds.pop()
    if kinds or kind is None:
        raise _unreadable(name, ", ".join(sorted(t.__name__ for t in types)))
    _, alias, convert = kind
    arrow_type = pa.type_for_alias(alias)
    if convert is not None:
        return pa.array([None if x is None else convert(x) for x in values], arrow_type)
    if pa.types.is_timestamp(arrow_type):
        has_zone = {x.tzinfo is not None for x in values if x is not None}
        if len(has_zone) > 1:
            raise _unreadable(name, "times with and without a zone")
        arrow_type = pa.timestamp("us", "UTC" if has_zone.pop() else None)
    return pa.array(values, arrow_type)


def _unreadable(name: str, found: str) -> ValueError:
    return ValueError(
        f"column {shown(name)} holds {found}: need values of one type. Convert them first, for example "
        f"with frame[{name!r}] = frame[{name!r}].astype(str)"
    )


def refuse_missing_values(values: pa.Array, column: str, first_row: int = 0) -> None:
    """A ValueError that names the first row (of the table) without a value."""
    if values.null_count:
        row = first_row + int(values.is_null().to_numpy(zero_copy_only=False).argmax())
        raise ValueError(f"column {column!r}, row {row}: a value is missing")


def value_codes(
    domain: Domain, attribute: str, values: pa.Array, column: str, first_row: int = 0
) -> Int[np.ndarray, " rows"]:
    """Codes of an attribute's values, in any type of whole numbers.

    A value that is missing, or outside the domain, is a ValueError that names the column, the row of
    the table (`values` begin at its `first_row`) and the value.
    """
    refuse_missing_values(values, column, first_row)
    axis = domain.axis(attribute)
    labels = (domain.labels and domain.labels[axis]) or range(domain.shape[axis])
    is_integer = pa.types.is_integer(values.type)
    if is_integer and isinstance(labels, range) and labels.step == 1:
        codes = values.to_numpy()
        if not len(codes) or labels.start <= codes.min() <= codes.max() < labels.stop:
            codes = (
                codes.astype(np.int64) if labels.start or codes.dtype == np.uint64 else codes
            )
            return codes - labels.start if labels.start else codes
        outside = (codes < labels.start) | (codes >= labels.stop)
    else:
        codes = column_codes(domain.rules[attribute], column, values)
        outside = codes < 0
        if not outside.any():
            return codes
    row = int(outside.argmax())
    raise ValueError(
        f"column {column!r}, row {first_row + row}: {values[row].as_py()!r} is outside the domain "
        f"of {attribute!r}"
    )
