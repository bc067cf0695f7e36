"""Columns of rows to keys of cells; which rows are left out or refused, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import pl
from workbench.spaces.rules import DROPPED, REFUSED, Rule
from workbench.value import Bool, Int, shown

MAX_CELLS = 2**63 - 1  # keys are int64
_EXAMPLES = 10  # different values of refused rows


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
    columns: Mapping[str, pl.Series] | pl.DataFrame,
    refusal: Callable[[int, str, str], Exception] | None = None,
) -> tuple[Int[np.ndarray, " kept"], Bool[np.ndarray, " rows"] | None]:
    """Keys of the cells of rows that are not left out, and which rows these are (None, if all).

    A value that is refused, in a row that is not left out, raises what `refusal` makes of the number of
    the row, the column and what is needed there; by default a ValueError.
    """
    codes, kept = _codes(rules, columns)
    for refused in _refusals(codes, kept):
        found, row = next(iter(refused.examples.items()))
        if refusal is not None:
            raise refusal(row, refused.column, refused.need)
        found = "nothing" if found is None else shown(found)
        raise ValueError(
            f"column {shown(refused.column)}, row {row}: found {found}, need {refused.need}"
        )
    words: list[Int[np.ndarray, " kept"]] = []  # more than one if the domain is wide
    size = 0
    for attribute, rule in rules.items():
        own = rule.combined(
            [c.codes if kept is None else c.codes[kept] for c in codes[attribute]]
        )
        n = len(rule.all_labels)
        if not words or size * n > MAX_CELLS:
            words.append(own.astype(np.int64))
            size = n
        else:
            words[-1] *= n
            words[-1] += own
            size *= n
    return words[0] if len(words) == 1 else np.stack(words), kept


def refusals(
    rules: Mapping[str, Rule], columns: Mapping[str, pl.Series] | pl.DataFrame
) -> tuple[list[Refusal], int]:
    """What `row_keys` would refuse, by column; and how many rows it would leave out."""
    codes, kept = _codes(rules, columns)
    return list(_refusals(codes, kept)), 0 if kept is None else int((~kept).sum())


class _LeafCodes(NamedTuple):
    column: str
    leaf: Rule
    values: pl.Series
    codes: Int[np.ndarray, " rows"]


def _codes(
    rules: Mapping[str, Rule], columns: Mapping[str, pl.Series] | pl.DataFrame
) -> tuple[dict[str, list[_LeafCodes]], Bool[np.ndarray, " rows"] | None]:
    """Codes of each attribute's columns, and which rows no rule leaves out (None, if all)."""
    codes: dict[str, list[_LeafCodes]] = {}
    kept = None
    for attribute, rule in rules.items():
        codes[attribute] = []
        for leaf in rule.leaves:
            values = columns[leaf.column or attribute]
            own = _column_codes(leaf, values)
            codes[attribute].append(_LeafCodes(leaf.column or attribute, leaf, values, own))
            if own.min(initial=0) <= DROPPED:
                kept = own != DROPPED if kept is None else kept & (own != DROPPED)
    return codes, kept


def _column_codes(leaf: Rule, values: pl.Series) -> Int[np.ndarray, " rows"]:
    """Codes of a column; of one that lists its different values, each of these is coded once."""
    different, places = distinct(values)
    kind = different.dtype
    if kind == pl.Decimal or kind in (pl.Int128, pl.UInt128):
        different = different.cast(pl.String)  # so that no digit is lost
    codes = leaf.codes(different)
    return codes if places is None else codes[places]


def distinct(values: pl.Series) -> tuple[pl.Series, Int[np.ndarray, " rows"] | None]:
    """The different values of a column that lists them, as text, and each row's place; else the column."""
    if values.dtype not in (pl.Categorical, pl.Enum):
        return values, None
    rows = values.to_physical().cast(pl.UInt32)
    none = int(rows.max() or 0) + 1
    numbers = rows.fill_null(none).to_numpy()
    last_row = np.full(none + 1, -1)
    last_row[numbers] = np.arange(len(numbers))
    is_there = last_row >= 0
    places = np.cumsum(is_there) - 1
    return values.gather(last_row[is_there]).cast(pl.String), places[numbers]


def _refusals(
    codes: Mapping[str, list[_LeafCodes]], kept: Bool[np.ndarray, " rows"] | None
) -> Iterator[Refusal]:
    for leaves in codes.values():
        for leaf in leaves:
            if leaf.codes.min(initial=0) >= 0:
                continue
            refused = leaf.codes == REFUSED
            if kept is not None:
                refused &= kept
            if refused.any():
                rows = np.flatnonzero(refused)
                examples = examples_of(leaf.values, rows)
                yield Refusal(leaf.column, leaf.leaf.need, len(rows), examples)


def examples_of(values: pl.Series, rows: Int[np.ndarray, " n"]) -> dict[Any, int]:
    """The first different values of some rows, and the row of each; a missing one is None."""
    values = values.gather(rows)
    first = values.arg_unique().sort()[:_EXAMPLES]
    pairs = zip(values.gather(first).to_list(), rows[first.to_numpy()].tolist(), strict=True)
    return {None if value != value else value: row for value, row in pairs}
