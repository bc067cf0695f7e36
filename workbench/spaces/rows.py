"""Columns of rows to keys of cells; which rows are left out or refused, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from workbench.compiled import pa, pl
from workbench.spaces.rules import DROPPED, REFUSED, Rule
from workbench.value import Bool, Int, shown

_EXAMPLES = 10  # different values of refused rows
_TICKS_A_DAY = {"ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_FIRST_DAY = (date.min - date(1970, 1, 1)).days
_LAST_DAY = (date.max - date(1970, 1, 1)).days


@dataclass(frozen=True)
class Refusal:
    """Rows of one column that a rule refuses.

    Parameters
    ----------
    column : str
        The column.
    need : str
        What its values have to be.
    count : int
        How many rows.
    examples : dict
        Different values, the first ten, and the row that each first stands in.
    """

    column: str
    need: str
    count: int
    examples: dict[Any, int]


def row_keys(
    rules: Mapping[str, Rule],
    columns: Mapping[str, Any],
    refusal: Callable[[int, str, str], Exception] | None = None,
) -> tuple[Int[np.ndarray, " kept"], Bool[np.ndarray, " rows"] | None]:
    """Keys of the cells of rows.

    Parameters
    ----------
    rules : dict
        One an attribute, in the order of keys.
    columns : mapping from name to Arrow array or polars Series
        All of one length.
    refusal : callable, optional
        Of the number of a row, a column and what is needed: the error that names the row's place.

    Returns
    -------
    keys : int64[kept]
        Of the rows that are not left out.
    kept : bool[rows] or None
        Which rows these are; None, if all.

    Raises
    ------
    ValueError
        A row that is not left out and has a value that is refused, with its place.
    """
    codes = _leaf_codes(rules, columns)
    kept = _kept(codes)
    for refused in _refusals(codes, kept):
        found, row = next(iter(refused.examples.items()))
        if refusal is not None:
            raise refusal(row, refused.column, refused.need)
        found = "nothing" if found is None else shown(found)
        raise ValueError(
            f"column {shown(refused.column)}, row {row}: found {found}, need {refused.need}"
        )
    keys: Any = None
    for attribute, rule in rules.items():
        leaves = [c.codes if kept is None else c.codes[kept] for c in codes[attribute]]
        own = rule.combined(leaves)
        if keys is None:
            keys = own.astype(np.int64)
        else:
            keys *= len(rule.all_labels)
            keys += own
    return keys, kept


def refusals(
    rules: Mapping[str, Rule], columns: Mapping[str, Any]
) -> tuple[list[Refusal], int]:
    """What `row_keys` would refuse, by column; and how many rows it would leave out."""
    codes = _leaf_codes(rules, columns)
    kept = _kept(codes)
    return list(_refusals(codes, kept)), 0 if kept is None else int((~kept).sum())


@dataclass(frozen=True)
class _LeafCodes:
    column: str
    leaf: Rule
    values: Any
    codes: Int[np.ndarray, " rows"]


def _leaf_codes(
    rules: Mapping[str, Rule], columns: Mapping[str, Any]
) -> dict[str, list[_LeafCodes]]:
    all_codes: dict[str, list[_LeafCodes]] = {}
    for attribute, rule in rules.items():
        all_codes[attribute] = []
        for leaf in rule.leaves:
            column = leaf.column or attribute
            values = columns[column]
            all_codes[attribute].append(
                _LeafCodes(column, leaf, values, column_codes(leaf, column, values))
            )
    return all_codes


def column_codes(leaf: Rule, column: str, values: Any) -> Int[np.ndarray, " rows"]:
    """Codes of a column; of one that lists its different values, each of these is coded once."""
    if not isinstance(values, pl.Series):
        values = series_of(column, values)
    different, places = distinct(values)
    codes = leaf.codes(_of_known_kind(different))
    return codes if places is None else codes[places]


def distinct(values: pl.Series) -> tuple[pl.Series, Int[np.ndarray, " rows"] | None]:
    """The different values of a column that lists them, as text, and each row's place; else the column."""
    if values.dtype not in (pl.Categorical, pl.Enum):
        return values, None
    rows = values.to_physical()
    numbers = rows.drop_nulls().to_numpy()
    is_there = np.zeros(int(numbers.max(initial=0)) + 2, bool)
    is_there[numbers] = True
    is_there[-1] = values.has_nulls()
    places = np.cumsum(is_there) - 1
    if is_there[-1]:
        rows = rows.fill_null(len(is_there) - 1)
    found = pl.Series(np.flatnonzero(is_there[:-1]).astype(np.uint32)).cat.to(values.dtype)
    different = found.cast(pl.String)
    if is_there[-1]:
        different = different.extend_constant(None, 1)
    return different.alias(values.name), places[rows.to_numpy()]


def series_of(column: str, values: pa.Array) -> pl.Series:
    """An Arrow array as a series; decimals as text, so that no digit is lost."""
    kind = values.type
    if pa.types.is_decimal256(kind) or pa.types.is_interval(kind) or pa.types.is_union(kind):
        raise ValueError(
            f"column {shown(column)} holds {kind}: need numbers of at most 38 digits, text or times"
        )
    series = pl.Series(column, values)
    return series.cast(pl.String) if series.dtype == pl.Decimal else series


def _of_known_kind(values: pl.Series) -> pl.Series:
    kind = values.dtype
    if kind.is_nested() or kind in (pl.Object, pl.Binary, pl.Duration):
        raise ValueError(
            f"column {shown(values.name)} holds {kind}: need numbers, text or times"
        )
    if kind == pl.Date or isinstance(kind, pl.Datetime):
        _refuse_far_times(values)
    is_wide = kind == pl.Decimal or (kind.is_integer() and "128" in str(kind))
    return values.cast(pl.String) if is_wide else values


def _refuse_far_times(values: pl.Series) -> None:
    """Other libraries write years that neither Python nor polars can show."""
    ticks = values.to_physical()
    a_day = 1 if values.dtype == pl.Date else _TICKS_A_DAY[values.dtype.time_unit]
    ends = [end // a_day for end in (ticks.min(), ticks.max()) if end is not None]
    if any(not _FIRST_DAY <= day <= _LAST_DAY for day in ends):
        raise ValueError(f"column {shown(values.name)} holds years outside 1 to 9999")


def _kept(codes: Mapping[str, Sequence[_LeafCodes]]) -> Bool[np.ndarray, " rows"] | None:
    """Which rows no rule leaves out; None, if all."""
    kept = None
    for leaves in codes.values():
        for leaf in leaves:
            if len(leaf.codes) and leaf.codes.min() <= DROPPED:
                stays = leaf.codes != DROPPED
                kept = stays if kept is None else kept & stays
    return kept


def _refusals(
    codes: Mapping[str, Sequence[_LeafCodes]], kept: Bool[np.ndarray, " rows"] | None
) -> Iterator[Refusal]:
    for leaves in codes.values():
        for leaf in leaves:
            if not len(leaf.codes) or leaf.codes.min() >= 0:
                continue
            refused = leaf.codes == REFUSED
            if kept is not None:
                refused &= kept
            if refused.any():
                rows = np.flatnonzero(refused)
                examples = examples_of(leaf.values, rows)
                yield Refusal(leaf.column, leaf.leaf.need, len(rows), examples)


def examples_of(values: Any, rows: Int[np.ndarray, " n"]) -> dict[Any, int]:
    """The first different values of some rows, and the row of each; a missing one is None."""
    if isinstance(values, pl.Series):
        values = values.gather(rows)
    else:
        values = series_of("", values.take(pa.array(rows)))
    first = values.arg_unique().sort()[:_EXAMPLES]
    pairs = zip(values.gather(first).to_list(), rows[first.to_numpy()].tolist(), strict=True)
    return {None if value != value else value: row for value, row in pairs}
