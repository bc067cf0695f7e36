"""Columns of published files, and tables that are made from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from workbench.compiled import pl
from workbench.data import Bound, SparseTable
from workbench.data.cells import CellCounts
from workbench.data.sources import Batch, Layout
from workbench.spaces import Domain
from workbench.spaces.labels import Labels
from workbench.value import sealed

# Columns

_EVER = datetime.min, datetime.max
LINE = "line"
LINES = Layout((LINE,), separator="\x1f")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Column(NamedTuple):
    """A column of a published file.

    `read` converts texts to values, and invalid texts to nulls. `need` describes the allowed texts. A
    field of an `optional` column may be empty.
    """

    need: str
    read: Callable[[pl.Series], pl.Series] = lambda texts: texts
    optional: bool = False


Columns = Mapping[str, Column]
TEXT = Column("", optional=True)  # any text, or an empty field


def typed(batch: Batch, columns: Columns) -> Batch:
    """Return a batch whose columns hold values instead of texts."""
    values = {}
    for name, column in columns.items():
        values[name] = column.read(batch.frame[name])
        is_bad = values[name].is_null()
        if column.optional:
            is_bad &= batch.frame[name].is_not_null()
        batch.refuse([(name, column.need, is_bad)])
    return batch._replace(frame=batch.frame.with_columns(**values))


def labels(of: tuple[Any, ...] | range, need: str = "") -> Column:
    """Declare a column of labels, which are read as positions in a public list."""
    rule = Labels(of)

    def read(texts: pl.Series) -> pl.Series:
        places = pl.Series(rule.codes(texts))
        return places.set(places < 0, None)

    return Column(need or rule.need, read)


def integers(low: int, high: int, need: str = "") -> Column:
    """Declare a column of integers from `low` to `high`."""
    places = labels(range(low, high + 1), need)
    return Column(places.need, lambda texts: low + places.read(texts))


def counts(low: int = 1) -> Column:
    """Declare a column of counts, from `low` to the largest that a table can hold."""
    return integers(low, 2**53, f"an integer >= {low}")


def degrees(limit: int) -> Column:
    """Declare a column of latitudes or longitudes."""

    def read(texts: pl.Series) -> pl.Series:
        numbers = texts.cast(pl.Float64, strict=False)
        return numbers.set(~numbers.is_between(-limit, limit), None)

    return Column(f"degrees from -{limit} to {limit}", read)


def matching(pattern: str, need: str) -> Column:
    """Declare a column of texts that match a pattern."""
    return Column(need, lambda texts: texts.set(~texts.str.contains(pattern), None))


def times(written: str, example: str, period: tuple[datetime, datetime] = _EVER) -> Column:
    """Declare a column of times in a format of strptime, within a period. The end of the period is
    excluded.
    """

    def read(texts: pl.Series) -> pl.Series:
        found = texts.str.to_datetime(written, time_unit="us", strict=False)
        return found.set(~found.is_between(*period, closed="left"), None)

    first, last = (f"{day:%Y-%m-%d}" for day in period)
    limits = "" if period == _EVER else f" from {first} to before {last}"
    return Column(f"a time as {example}{limits}", read)


def weekday(day: pl.Expr) -> pl.Expr:
    """Return positions in `WEEKDAYS` of days or times."""
    return day.dt.weekday() - 1


# Tables


def table(domain: Domain, parts: Iterable[tuple[Any, Any]], bound: Bound) -> SparseTable:
    """Return the table of keys and counts that come in parts. If counts are None, each key counts one.
    The truth of the table is public.
    """
    cells = CellCounts()
    for keys, counts in parts:
        cells.add(keys, counts)
    keys, counts = map(sealed, cells.cells())
    return SparseTable(domain, keys, counts, bound, truth_public=True)
