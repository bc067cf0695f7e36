"""Linear queries by the set of attributes that their terms are about: single cells, or rows of values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from workbench.arrays import Float, Int
from workbench.domain import Domain
from workbench.workload import Margins, Products, TableQueries, Together

_MAX_ENTRIES = 2**26  # of queries that are no single cells: 512 MiB


@dataclass(frozen=True, eq=False)
class QueryTerms:
    """Terms on one set of axes: single cells of its table, or a row of values on all of them."""

    axes: tuple[int, ...]
    query: Int[np.ndarray, " terms"]
    cells: Int[np.ndarray, " terms"] | None
    rows: Float[np.ndarray, "terms cells"] | None

    @cached_property
    def squared_rows(self) -> Float[np.ndarray, "terms cells"]:
        """The rows' squares, which are themselves if all is 0 or 1."""
        return self.rows if self._rows_are_binary else self.rows**2

    @cached_property
    def binary(self) -> bool:
        """Whether all values are 0 or 1."""
        return self.cells is not None or self._rows_are_binary

    @cached_property
    def _rows_are_binary(self) -> bool:
        return bool(((self.rows == 0) | (self.rows == 1)).all())


def terms_by_axes(
    workload: Products | TableQueries | Together,
    domain: Domain,
    constants: Float[np.ndarray, " queries"],
    first: int = 0,
) -> Iterator[QueryTerms]:
    """The terms of all queries, numbered from `first` on; what is constant is added to `constants`."""
    if isinstance(workload, Together):
        for part in workload.parts:
            yield from terms_by_axes(part, domain, constants, first)
            first += len(part)
    elif isinstance(workload, TableQueries):
        yield from _terms_of_tables(workload, domain, constants, first)
    else:
        assert isinstance(workload, Products)
        yield from _terms_of_products(workload, domain, constants, first)


def _terms_of_tables(
    workload: TableQueries, domain: Domain, constants, first: int
) -> Iterator[QueryTerms]:
    for names, tables, queries in workload.numbered_groups():
        rows = tables.reshape(len(tables), -1)
        if not names:
            constants[queries + first] += rows[:, 0]
            continue
        _refuse_large(rows.size)
        axes = tuple(domain.axis(name) for name in names)
        yield QueryTerms(axes, queries + first, None, rows)


def _terms_of_products(
    workload: Products, domain: Domain, constants, first: int
) -> Iterator[QueryTerms]:
    single_term = np.diff(workload.offsets) == 1
    unscaled = single_term[workload.query] & (workload.times == 1)
    one_code = [_one_code(factor) for factor in workload.factors]
    for axes, terms in workload.sets:
        if not axes:
            np.add.at(constants, workload.query[terms] + first, workload.times[terms])
            continue
        shape = [domain.shape[k] for k in axes]
        is_cell = unscaled[terms].copy()
        for k in axes:
            is_cell &= one_code[k][workload.which[terms, k]]
        if is_cell.any():
            chosen = terms[is_cell]
            codes = [workload.factors[k].argmax(1)[workload.which[chosen, k]] for k in axes]
            cells = np.ravel_multi_index(codes, shape)
            yield QueryTerms(axes, workload.query[chosen] + first, cells, None)
        if not is_cell.all():
            chosen = terms[~is_cell]
            _refuse_large(len(chosen) * prod(shape))
            rows = np.concatenate([values for _, values in workload.dense_terms(chosen, axes)])
            yield QueryTerms(axes, workload.query[chosen] + first, None, rows)


def _one_code(factor: Float[np.ndarray, "rows values"]) -> np.ndarray:
    """Which rows are 1 at one code and 0 elsewhere."""
    zeros = (factor == 0).sum(1)
    ones = (factor == 1).sum(1)
    return (zeros + ones == factor.shape[1]) & (factor.sum(1) == 1)


def _refuse_large(entries: int) -> None:
    if entries > _MAX_ENTRIES:
        raise ValueError(
            f"queries with {entries} values on the cells of their attributes are too large: need at "
            f"most {_MAX_ENTRIES} a set of attributes"
        )


def rows_of_cells(
    queries, domain: Domain, axes: tuple[int, ...]
) -> Float[np.ndarray, "queries cells"]:
    """Each query's weight of each cell of some attributes, beside which it uses none."""
    cells = prod(domain.shape[k] for k in axes)
    if isinstance(queries, Together):
        parts = [rows_of_cells(part, domain, axes) for part in queries.parts]
        return np.concatenate([np.empty((0, cells)), *parts])
    if isinstance(queries, Products):
        rows = np.zeros((len(queries), cells))
        for terms, values in queries.dense_terms(np.arange(len(queries.times)), axes):
            np.add.at(rows, queries.query[terms], values)
        return rows
    small = domain.project([domain.attributes[k] for k in axes])
    codes = np.zeros((cells, len(domain.shape)), np.int64)
    codes[:, list(axes)] = small.codes(np.arange(cells))
    keys = domain.keys(codes)
    columns = [
        queries.sums_of_margins(Margins(domain, keys[i : i + 1], np.ones(1)))
        for i in range(cells)
    ]
    return np.stack(columns, axis=1)
