"""Columns of rows to keys of cells; which rows are left out or refused, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arrays import Bool, Int
from workbench.libraries import pa, pl
from workbench.preparation.rule import DROPPED, REFUSED, Rule
from workbench.value import shown

_SHOWN = 10  # values of refused rows


@dataclass(frozen=True)
class Refusal:
    """Rows of one column that a rule refuses.

    Parameters
    ----------
    column : str
        The column.
    need : str
        What its values have to be.
    rows : int[n]
        Which rows, from 0.
    values : list
        The values of the first ten.
    """

    column: str
    need: str
    rows: Int[np.ndarray, " n"]
    values: list

    def found(self, i: int) -> str:
        """What stands in the i-th of these rows; a long value by its beginning."""
        value = self.values[i]
        return "nothing" if value is None or value != value else shown(value)


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
        row = int(refused.rows[0])
        if refusal is not None:
            raise refusal(row, refused.column, refused.need)
        raise ValueError(
            f"column {refused.column!r}, row {row}: found {refused.found(0)}, need {refused.need}"
        )
    keys: Any = 0
    for attribute, rule in rules.items():
        leaves = [c.codes if kept is None else c.codes[kept] for c in codes[attribute]]
        keys = keys * len(rule.all_labels) + rule.combined(leaves).astype(np.int64)
    return keys, kept


def refusals(rules: Mapping[str, Rule], columns: Mapping[str, Any]) -> list[Refusal]:
    """What `row_keys` would refuse, by column."""
    codes = _leaf_codes(rules, columns)
    return list(_refusals(codes, _kept(codes)))


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
                _LeafCodes(column, leaf, values, _codes(leaf, column, values))
            )
    return all_codes


def _codes(leaf: Rule, column: str, values: Any) -> Int[np.ndarray, " rows"]:
    """Codes of a column; of one that lists its different values, each of these is coded once."""
    if not isinstance(values, pl.Series):
        if pa.types.is_dictionary(values.type):
            different = pl.Series(column, values.dictionary).extend_constant(None, 1)
            places = values.indices.fill_null(len(different) - 1).to_numpy()
            return leaf.codes(different)[places]
        values = pl.Series(column, values)
    return leaf.codes(values)


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
                yield Refusal(leaf.column, leaf.leaf.need, rows, _taken(leaf.values, rows))


def _taken(values: Any, rows: Int[np.ndarray, " n"]) -> list:
    """The values of some rows."""
    first = rows[:_SHOWN]
    return (
        values.gather(first).to_list()
        if isinstance(values, pl.Series)
        else values.take(first).to_pylist()
    )
