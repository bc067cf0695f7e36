"""Linear queries by the set of attributes that their terms are about: single cells, or rows of values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from workbench.arrays import Float, Int, outer_rows
from workbench.domain import Domain
from workbench.workload import Linear, Products, TableMargins, TableQueries, Together

_MAX_ENTRIES = 2**26  # of queries that are no single cells: 512 MiB


@dataclass(frozen=True, eq=False)
class QueryTerms:
    """Terms on one set of axes: single cells of its table, or weights of all its cells.

    The weights of a term are the outer product of its rows of `left`, of the first axes, and of `right`,
    of the rest: they are never laid out but in `rows`.
    """

    axes: tuple[int, ...]
    query: Int[np.ndarray, " terms"]
    cells: Int[np.ndarray, " terms"] | None
    left: Float[np.ndarray, "terms first"]
    right: Float[np.ndarray, "terms rest"]

    @classmethod
    def of_cells(
        cls,
        axes: tuple[int, ...],
        query: Int[np.ndarray, " terms"],
        cells: Int[np.ndarray, " terms"],
    ) -> QueryTerms:
        """Terms of a single cell each."""
        return cls(axes, query, cells, np.ones((len(cells), 0)), np.ones((len(cells), 0)))

    @cached_property
    def rows(self) -> Float[np.ndarray, "terms cells"]:
        """The weights of all cells; a ValueError where they are too many to be laid out."""
        _refuse_large(self.left.size * self.right.shape[1])
        return outer_rows(self.left, self.right)

    @cached_property
    def binary(self) -> bool:
        """Whether all weights are 0 or 1."""
        return all(bool(((half == 0) | (half == 1)).all()) for half in (self.left, self.right))

    def bounds(self) -> tuple[Float[np.ndarray, " terms"], Float[np.ndarray, " terms"]]:
        """The least and the largest weight of each term; of a single cell 0 and 1."""
        if self.cells is not None:
            return np.zeros(len(self.query)), np.ones(len(self.query))
        ends = [
            one * other
            for one in (self.left.min(1), self.left.max(1))
            for other in (self.right.min(1), self.right.max(1))
        ]
        return np.minimum.reduce(ends), np.maximum.reduce(ends)

    def weighted_sum(
        self, weights: Float[np.ndarray, " terms"], size: int
    ) -> Float[np.ndarray, " cells"]:
        """The sum of the terms, each times its weight, in a table of so many cells."""
        if self.cells is not None:
            return np.bincount(self.cells, weights, size)
        return (self.left.T @ (weights[:, None] * self.right)).ravel()

    def means(self, table: Float[np.ndarray, "..."]) -> Float[np.ndarray, " terms"]:
        """What each term is worth on average over a table of probabilities."""
        return self._sums(table, self.left, self.right)

    def mean_squares(self, table: Float[np.ndarray, "..."]) -> Float[np.ndarray, " terms"]:
        """The average of its square."""
        return self.means(table) if self.binary else self._sums(table, *self._squares)

    @cached_property
    def _squares(self) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
        return self.left**2, self.right**2

    def _sums(
        self,
        table: Float[np.ndarray, "..."],
        left: Float[np.ndarray, "terms cells"],
        right: Float[np.ndarray, "terms cells"],
    ) -> Float[np.ndarray, " terms"]:
        if self.cells is not None:
            return table.ravel()[self.cells]
        by_right = left @ table.reshape(left.shape[1], right.shape[1])
        return np.einsum("tr,tr->t", by_right, right)


def terms_by_axes(
    workload: Linear,
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
    workload: TableQueries, domain: Domain, constants: Float[np.ndarray, " queries"], first: int
) -> Iterator[QueryTerms]:
    for names, tables, queries in workload.numbered_groups():
        rows = tables.reshape(len(tables), -1)
        if not names:
            constants[queries + first] += rows[:, 0]
            continue
        _refuse_large(rows.size)
        axes = tuple(domain.axis(name) for name in names)
        yield QueryTerms(axes, queries + first, None, rows, np.ones((len(rows), 1)))


def _terms_of_products(
    workload: Products, domain: Domain, constants: Float[np.ndarray, " queries"], first: int
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
            yield QueryTerms.of_cells(axes, workload.query[chosen] + first, cells)
        if not is_cell.all():
            chosen = terms[~is_cell]
            half = len(axes) - len(axes) // 2
            left = workload.times[chosen, None] * _products(workload, chosen, axes[:half])
            right = _products(workload, chosen, axes[half:])
            yield QueryTerms(axes, workload.query[chosen] + first, None, left, right)


def _products(
    workload: Products, terms: Int[np.ndarray, " terms"], axes: tuple[int, ...]
) -> Float[np.ndarray, "terms cells"]:
    """The product of the terms' factors of some attributes, on all cells of these."""
    _refuse_large(len(terms) * prod(workload.factors[k].shape[1] for k in axes))
    rows = np.ones((len(terms), 1))
    for k in axes:
        rows = outer_rows(rows, workload.factors[k][workload.which[terms, k]])
    return rows


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
    queries: Linear, domain: Domain, axes: tuple[int, ...]
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
        queries.sums_of_margins(TableMargins(domain, keys[i : i + 1], np.ones(1)))
        for i in range(cells)
    ]
    return np.stack(columns, axis=1)
