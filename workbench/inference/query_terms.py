"""Terms of linear queries, grouped by their sets of attributes. A query is a sum of terms, and a term gives a
weight to each cell of a table over some attributes. Codes that no query distinguishes can be merged.

Some terms are rectangles: their weight is 1 on consecutive rows and columns of a table, and 0 elsewhere. The
weighted sum of rectangles is computed by running sums, from weights at the corners of the rectangles. The
mean of a term is a difference of running sums of a table of probabilities. Both computations take one pass
over the cells and four corners per term.
Source     Crow, SIGGRAPH 1984 (summed-area tables).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from workbench.compiled import njit
from workbench.queries import Linear, Products, TableQueries, Together
from workbench.queries.linear import Prior
from workbench.spaces import Domain
from workbench.value import Bool, Float, Int, outer_rows

# Query terms

_MAX_ENTRIES = 2**26  # of queries that are no single cells: 512 MiB


@dataclass(frozen=True, eq=False)
class QueryTerms:
    """Terms of queries on one set of attributes. A term is either a single cell of the table over these
    attributes, or it has a weight for every cell.

    The weights of a term are an outer product of two factors. The first factor is the term's row of `left`,
    for the first axes. The second factor is the term's row of `right`, for the other axes. Only `rows`
    computes the product as an array.
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
        """Make terms that are single cells of the table over `axes`."""
        return cls(axes, query, cells, np.ones((len(cells), 0)), np.ones((len(cells), 0)))

    @cached_property
    def rows(self) -> Float[np.ndarray, "terms cells"]:
        """Array with the weights of all cells for each term. If the array would be too large, a ValueError is
        raised.
        """
        _refuse_large(self.left.size * self.right.shape[1])
        return outer_rows(self.left, self.right)

    @cached_property
    def binary(self) -> bool:
        """Whether all weights of all terms are 0 or 1."""
        return all(bool(((half == 0) | (half == 1)).all()) for half in (self.left, self.right))

    def bounds(self) -> tuple[Float[np.ndarray, " terms"], Float[np.ndarray, " terms"]]:
        """Return the smallest and the largest weight of each term. For a term that is a single cell, they are
        0 and 1.
        """
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
        """Return the weighted sum of the terms, as a table with `size` cells."""
        if self.cells is not None:
            return np.bincount(self.cells, weights, size)
        return (self.left.T @ (weights[:, None] * self.right)).ravel()

    def means(self, table: Float[np.ndarray, "..."]) -> Float[np.ndarray, " terms"]:
        """Return the mean of each term under the probabilities in `table`."""
        return self._sums(table, self.left, self.right)

    def mean_squares(self, table: Float[np.ndarray, "..."]) -> Float[np.ndarray, " terms"]:
        """Return the mean of the square of each term under the probabilities in `table`."""
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
    """Yield the terms of all queries, grouped by their sets of attributes. The queries are numbered from
    `first`. The parts of queries that are the same for every record are added to `constants`.
    """
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
    """Return the weight of each term for every cell of the attributes `axes`, the product of the term's
    factors for these attributes.
    """
    _refuse_large(len(terms) * prod(workload.factors[k].shape[1] for k in axes))
    rows = np.ones((len(terms), 1))
    for k in axes:
        rows = outer_rows(rows, workload.factors[k][workload.which[terms, k]])
    return rows


def _one_code(factor: Float[np.ndarray, "rows values"]) -> np.ndarray:
    """Return a mask that is True for each row of `factor` that is 1 at a single code and 0 at all other
    codes.
    """
    zeros = (factor == 0).sum(1)
    ones = (factor == 1).sum(1)
    return (zeros + ones == factor.shape[1]) & (factor.sum(1) == 1)


def _refuse_large(entries: int) -> None:
    if entries > _MAX_ENTRIES:
        raise ValueError(
            f"queries with {entries} values on the cells of their attributes are too large: need at "
            f"most {_MAX_ENTRIES} per set of attributes"
        )


# Rectangles


@dataclass(frozen=True, eq=False)
class Rectangles:
    """Terms that are rectangles: 1 on consecutive rows and columns of a table, and 0 elsewhere. The tables
    are stored one after another.

    `shapes` contains the numbers of rows and columns of the tables. `first` contains the position at which
    each table starts, and at the end the total length. `query` and `table` contain, for each rectangle, the
    numbers of its query and of its table. `ends` contains its first row, its last row plus 1, its first
    column, and its last column plus 1.
    """

    shapes: Int[np.ndarray, "tables 2"]
    first: Int[np.ndarray, " ends"]
    query: Int[np.ndarray, " terms"]
    table: Int[np.ndarray, " terms"]
    ends: Int[np.ndarray, "terms 4"]

    @classmethod
    def of(
        cls,
        parts: Sequence[tuple[int, QueryTerms]],
        shapes: Sequence[Sequence[int]],
        first: Int[np.ndarray, " ends"],
    ) -> Rectangles:
        """Make rectangles from terms, for which `rectangular` must be True. `parts` also contains the number
        of the table to which terms belong, and `shapes` the shapes of all tables.
        """
        flat = np.array([_rows_and_columns(shape) for shape in shapes], np.int64).reshape(-1, 2)
        numbers = [np.full(len(part.query), s, np.int64) for s, part in parts]
        queries = [part.query for _, part in parts]
        ends = [_ends(part, flat[s, 1]) for s, part in parts]
        nothing = np.empty(0, np.int64)
        return cls(
            flat,
            first,
            np.concatenate([nothing, *queries]),
            np.concatenate([nothing, *numbers]),
            np.concatenate([nothing.reshape(0, 4), *ends]),
        )

    def weighted_sum(
        self, weights: Float[np.ndarray, " queries"]
    ) -> Float[np.ndarray, " cells"]:
        """Multiply each term by the weight of its query, and return the sum of all terms for each cell of all
        tables.
        """
        return _sums(self.shapes, self.first, self.table, self.ends, weights[self.query])

    def add_means(
        self, cells: Float[np.ndarray, " cells"], means: Float[np.ndarray, " queries"]
    ) -> None:
        """Compute the mean of each term under the probabilities in `cells`, which contains all tables. Add
        this mean to the mean of the term's query in `means`.
        """
        _add_means(self.shapes, self.first, self.query, self.table, self.ends, cells, means)


def rectangular(part: QueryTerms, shape: Sequence[int]) -> bool:
    """Return whether every term is a rectangle: 1 on consecutive rows and consecutive columns of a table, and
    0 on all other cells.
    """
    if part.cells is not None:
        return True
    laid_out = (part.left.shape[1], part.right.shape[1]) == _rows_and_columns(shape)
    return laid_out and part.binary and _in_runs(part.left) and _in_runs(part.right)


def _rows_and_columns(shape: Sequence[int]) -> tuple[int, int]:
    """Return the numbers of rows and columns of a table that is stored in two dimensions. The first half of
    the axes becomes the rows, and the other half the columns.
    """
    half = len(shape) - len(shape) // 2
    return prod(shape[:half]), prod(shape[half:])


def _ends(part: QueryTerms, columns: int) -> Int[np.ndarray, "terms 4"]:
    if part.cells is None:
        return np.stack([*_runs(part.left), *_runs(part.right)], axis=1)
    row, column = np.divmod(part.cells, columns)
    return np.stack([row, row + 1, column, column + 1], axis=1)


def _runs(rows: Float[np.ndarray, "terms n"]) -> tuple[np.ndarray, np.ndarray]:
    """For each row, return the first position that is not 0, and the position after the last one that is not
    0. Both are 0 if the whole row is 0.
    """
    low = rows.argmax(axis=1)
    high = rows.shape[1] - rows[:, ::-1].argmax(axis=1)
    return low, np.where(rows.any(axis=1), high, 0)


def _in_runs(rows: Float[np.ndarray, "terms n"]) -> bool:
    low, high = _runs(rows)
    return bool((rows.sum(axis=1) == high - low).all())


@njit(cache=True, nogil=True)
def _sums(shapes, first, table, ends, weights):
    """Return the weighted sum of rectangles. The weight of a rectangle is added or subtracted at its corners,
    and running sums then spread the weight over the rectangle.
    """
    sums = np.zeros(first[-1])
    for t in range(table.size):
        n, m = shapes[table[t]]
        cells = sums[first[table[t]] : first[table[t] + 1]]
        a, b, c, d = ends[t]
        for row, weight in ((a, weights[t]), (b, -weights[t])):
            if row < n:
                if c < m:
                    cells[row * m + c] += weight
                if d < m:
                    cells[row * m + d] -= weight
    _run_on(shapes, first, sums)
    return sums


@njit(cache=True, nogil=True)
def _add_means(shapes, first, query, table, ends, cells, means):
    """Compute the mean of each rectangle as a difference of running sums, and add it to the mean of its
    query.
    """
    sums = cells.copy()
    _run_on(shapes, first, sums)
    for t in range(table.size):
        m = shapes[table[t], 1]
        here = sums[first[table[t]] : first[table[t] + 1]]
        a, b, c, d = ends[t]
        mean = 0.0
        for row, sign in ((a, -1.0), (b, 1.0)):
            if row > 0:
                if d > 0:
                    mean += sign * here[(row - 1) * m + d - 1]
                if c > 0:
                    mean -= sign * here[(row - 1) * m + c - 1]
        means[query[t]] += mean


@njit(cache=True, nogil=True)
def _run_on(shapes, first, cells):
    """Replace each table by its running sums over rows and columns, in place."""
    for s in range(len(shapes)):
        n, m = shapes[s]
        for i in range(n):
            start = first[s] + i * m
            along = 0.0
            for j in range(start, start + m):
                along += cells[j]
                cells[j] = along + cells[j - m] if i > 0 else along


# Merged codes


@dataclass(frozen=True, eq=False)
class MergedCodes:
    """Codes of each attribute, merged to runs of consecutive codes that no query distinguishes. For each
    attribute, `starts` contains the first code of each run, in ascending order from 0.
    """

    domain: Domain
    starts: tuple[Int[np.ndarray, " runs"], ...]

    @classmethod
    def of(cls, queries: Linear, domain: Domain) -> MergedCodes:
        """Merge consecutive codes that no query distinguishes. The runs are as long as possible."""
        changes = [np.zeros(n, bool) for n in domain.shape]
        for first in changes:
            first[0] = True
        _mark_changes(queries, domain, changes)
        return cls(domain, tuple(map(np.flatnonzero, changes)))

    @property
    def merges(self) -> bool:
        """Whether at least one run (of codes that no query distinguishes) contains more than one code."""
        return self.small.shape != self.domain.shape

    @cached_property
    def small(self) -> Domain:
        """Smaller domain, which has one code per run."""
        return Domain(self.domain.attributes, tuple(map(len, self.starts)))

    def queries(self, queries: Linear) -> Linear:
        """Convert queries to queries over the smaller domain, which has one code per run. The queries must
        not distinguish the codes of a run.
        """
        if isinstance(queries, Together):
            return Together(tuple(map(self.queries, queries.parts)))
        if isinstance(queries, TableQueries):
            groups = []
            for names, tables in queries.groups:
                for i, name in enumerate(names):
                    tables = tables.take(self.starts[self.domain.axis(name)], axis=i + 1)
                groups.append((names, tables))
            return TableQueries(tuple(groups), queries.order)
        assert isinstance(queries, Products)
        factors = tuple(
            factor[:, starts]
            for factor, starts in zip(queries.factors, self.starts, strict=True)
        )
        return Products(
            queries.attributes, factors, queries.which, queries.times, queries.offsets
        )

    def prior(self, prior: Prior) -> tuple[Float[np.ndarray, " runs"], ...]:
        """Return the prior weight of each run, which is the sum over its codes."""
        return tuple(map(np.add.reduceat, prior, self.starts))

    def run_of_code(self, axis: int) -> Int[np.ndarray, " codes"]:
        """Return the number of the run to which each code of an attribute belongs."""
        sizes = np.diff(self.starts[axis], append=self.domain.shape[axis])
        return np.repeat(np.arange(len(sizes)), sizes)

    def spread(
        self,
        table: Float[np.ndarray, "..."],
        axes: Sequence[int],
        prior: Prior | None = None,
    ) -> Float[np.ndarray, "..."]:
        """Convert a table over runs of some attributes to a table over their codes.

        Each code gets the value of its run. If a prior is given, the value of the run is divided among its
        codes in proportion to the prior.
        """
        for i, axis in enumerate(axes):
            runs = self.run_of_code(axis)
            table = table.take(runs, axis=i)
            if prior is not None:
                of_runs = np.add.reduceat(prior[axis], self.starts[axis])
                share = prior[axis] / of_runs[runs]
                table = table * share.reshape([-1 if j == i else 1 for j in range(table.ndim)])
        return table


def _mark_changes(
    queries: Linear, domain: Domain, changes: Sequence[Bool[np.ndarray, " codes"]]
) -> None:
    """Mark the codes at which the value of some query differs from its value at the previous code. The
    function changes `changes` in place.
    """
    if isinstance(queries, Together):
        for part in queries.parts:
            _mark_changes(part, domain, changes)
    elif isinstance(queries, TableQueries):
        for names, tables, _ in queries.numbered_groups():
            for i, name in enumerate(names):
                by_code = np.moveaxis(tables, i + 1, 0)
                differs = (by_code[1:] != by_code[:-1]).any(axis=tuple(range(1, tables.ndim)))
                changes[domain.axis(name)][1:] |= differs
    else:
        assert isinstance(queries, Products)
        for k, factor in enumerate(queries.factors):
            for row in np.unique(queries.which[:, k]):
                changes[k][1:] |= factor[row, 1:] != factor[row, :-1]
