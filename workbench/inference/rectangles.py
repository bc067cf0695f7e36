"""Query terms that are 1 on a rectangle of a set's table and 0 outside: sums by corners.

The sum of all terms, each times its weight, follows from their corners by running sums over the tables;
their means are differences of a table's running sums. Each takes one pass over the cells and four
corners a term, for all sets in one call.
Source     Crow, SIGGRAPH 1984 (summed-area tables).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from workbench.arrays import Float, Int
from workbench.compiled import njit
from workbench.inference.query_terms import QueryTerms


@dataclass(frozen=True, eq=False)
class Rectangles:
    """Rectangles of tables that stand one after another.

    `shapes` are the tables' rows and columns, `first` where each begins, and where the last one ends.
    `query` says whose term each rectangle is, `table` in which one it lies, and `ends` where: its first
    row, the row after its last, and the same of its columns.
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
        """Of parts that are `rectangular`, each with the number of its table, of all tables' shapes."""
        flat = np.array([_rows_and_columns(shape) for shape in shapes], np.int64).reshape(-1, 2)
        numbers = [np.full(len(part.query), s, np.int64) for s, part in parts]
        nothing = np.empty(0, np.int64)
        return cls(
            flat,
            first,
            np.concatenate([nothing, *(part.query for _, part in parts)]),
            np.concatenate([nothing, *numbers]),
            np.concatenate([nothing.reshape(0, 4), *(_ends(p, flat[s, 1]) for s, p in parts)]),
        )

    def weighted_sum(
        self, weights: Float[np.ndarray, " queries"]
    ) -> Float[np.ndarray, " cells"]:
        """The sum of the terms, each times its query's weight, on the cells of all tables."""
        return _sums(self.shapes, self.first, self.table, self.ends, weights[self.query])

    def add_means(
        self, cells: Float[np.ndarray, " cells"], means: Float[np.ndarray, " queries"]
    ) -> None:
        """Add to queries what their terms are worth on average over tables of probabilities."""
        _add_means(self.shapes, self.first, self.query, self.table, self.ends, cells, means)


def rectangular(part: QueryTerms, shape: Sequence[int]) -> bool:
    """Whether each term is 1 on one run of a table's rows and one of its columns, and 0 elsewhere."""
    if part.cells is not None:
        return True
    laid_out = (part.left.shape[1], part.right.shape[1]) == _rows_and_columns(shape)
    return laid_out and part.binary and _in_runs(part.left) and _in_runs(part.right)


def _rows_and_columns(shape: Sequence[int]) -> tuple[int, int]:
    """Of a table laid out flat, as terms lay it out: the first half of its axes, and the rest."""
    half = len(shape) - len(shape) // 2
    return prod(shape[:half]), prod(shape[half:])


def _ends(part: QueryTerms, columns: int) -> Int[np.ndarray, "terms 4"]:
    if part.cells is None:
        return np.stack([*_runs(part.left), *_runs(part.right)], axis=1)
    row, column = np.divmod(part.cells, columns)
    return np.stack([row, row + 1, column, column + 1], axis=1)


def _runs(rows: Float[np.ndarray, "terms n"]) -> tuple[np.ndarray, np.ndarray]:
    """The first place that is not 0 in each row, and the one after the last; twice 0 if there is none."""
    low = rows.argmax(axis=1)
    high = rows.shape[1] - rows[:, ::-1].argmax(axis=1)
    return low, np.where(rows.any(axis=1), high, 0)


def _in_runs(rows: Float[np.ndarray, "terms n"]) -> bool:
    low, high = _runs(rows)
    return bool((rows.sum(axis=1) == high - low).all())


@njit(cache=True, nogil=True)
def _sums(shapes, first, table, ends, weights):
    """Each corner's weight in its cell; then running sums along rows, each row on top of the one before."""
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
    """Differences of running sums."""
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
    """Running sums of each table, in place."""
    for s in range(len(shapes)):
        n, m = shapes[s]
        for i in range(n):
            start = first[s] + i * m
            along = 0.0
            for j in range(start, start + m):
                along += cells[j]
                cells[j] = along + cells[j - m] if i > 0 else along
