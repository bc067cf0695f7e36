"""Labelled rows: columns of a published file become codes, and an error says which row is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.compiled import pl
from workbench.value import Float, Int

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
