"""The covariance of queries under drawn tuples, as a product with vectors: it is never laid out.

A product takes the time of the tuples and of the tables that queries are about.
"""

from __future__ import annotations

import numpy as np

from workbench.arrays import Float, Int
from workbench.compiled import njit
from workbench.inference.dual_problem import DualProblem

_FEW_CELLS = (
    2**16
)  # their numbers fit in two bytes, and pass through the caches in half the time
_POWER_STEPS = 12  # of the power iteration for the steepness


class SampledCovariance:
    """Products of the queries' covariance with vectors, under tuples."""

    def __init__(self, problem: DualProblem, tuples: Int[np.ndarray, "tuples attributes"]):
        self.problem = problem
        small = problem.first_cells[-1] <= _FEW_CELLS
        kind = np.uint16 if small else np.int32
        self.cells = np.empty((len(tuples), len(problem.sets)), kind)
        for s, axes in enumerate(problem.sets):
            codes = tuples[:, list(axes)].T
            first = problem.first_cells[s]
            self.cells[:, s] = first + np.ravel_multi_index(codes, problem.shapes[s])

    def __matmul__(self, v: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " queries"]:
        """C v."""
        sums = _sums_of_cells(self.problem.cells_of(v), self.cells)
        sums -= np.mean(sums)
        return self.problem.means_of_cells(self._mean_cells(sums)) - self.problem.constants

    def steepness(self, rng: np.random.Generator) -> float:
        """The largest eigenvalue of the queries' correlations, by powers; 1 at least."""
        margins = self.problem.by_set(self._mean_cells(np.ones(len(self.cells))))
        variance = self.problem.variances(margins)
        deviation = np.sqrt(np.maximum(variance, 0))
        scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
        v = rng.normal(size=len(scale))
        eigenvalue = 1.0
        for _ in range(_POWER_STEPS):
            v /= np.linalg.norm(v) or 1
            v = (self @ (v * scale)) * scale
            eigenvalue = float(np.linalg.norm(v))
        return max(1.0, eigenvalue)

    def _mean_cells(self, weights: Float[np.ndarray, " tuples"]) -> Float[np.ndarray, " cells"]:
        """What tuples weigh on average in each cell of all tables."""
        sums = _sums_of_tuples(weights, self.cells, self.problem.first_cells[-1])
        return sums / len(self.cells)


@njit(cache=True, nogil=True)
def _sums_of_cells(tables, cells):
    """For each tuple what its cells hold, together."""
    sums = np.empty(len(cells))
    for t in range(len(cells)):
        x = 0.0
        for s in range(cells.shape[1]):
            x += tables[cells[t, s]]
        sums[t] = x
    return sums


@njit(cache=True, nogil=True)
def _sums_of_tuples(weights, cells, size):
    """For each cell what its tuples weigh, together."""
    sums = np.zeros(size)
    for t in range(len(cells)):
        for s in range(cells.shape[1]):
            sums[cells[t, s]] += weights[t]
    return sums
