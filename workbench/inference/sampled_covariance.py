"""The covariance of queries under drawn tuples, as a product with vectors: it is never laid out.

A product takes the time of the tuples and of the tables that queries are about.
"""

from __future__ import annotations

from math import prod

import numpy as np

from workbench.arrays import Float, Int
from workbench.inference.dual_problem import DualProblem

_POWER_STEPS = 12  # of the power iteration for the steepness


class SampledCovariance:
    """Products of the queries' covariance with vectors, under tuples."""

    def __init__(self, problem: DualProblem, tuples: Int[np.ndarray, "tuples attributes"]):
        self.problem = problem
        self.count = len(tuples)
        self.cells = [
            np.ravel_multi_index(tuples[:, list(axes)].T, shape)
            for axes, shape in zip(problem.sets, problem.shapes, strict=True)
        ]

    def __matmul__(self, v: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " queries"]:
        """C v."""
        sums = np.zeros(self.count)
        for table, at in zip(self.problem.potentials(v), self.cells, strict=True):
            sums += table.ravel()[at]
        sums -= np.mean(sums)
        return self.problem.means(self._margins(sums)) - self.problem.constants

    def steepness(self, rng: np.random.Generator) -> float:
        """The largest eigenvalue of the queries' correlations, by powers; 1 at least."""
        variance = self.problem.variances(self._margins())
        deviation = np.sqrt(np.maximum(variance, 0))
        scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
        v = rng.normal(size=len(scale))
        eigenvalue = 1.0
        for _ in range(_POWER_STEPS):
            v /= np.linalg.norm(v) or 1
            v = (self @ (v * scale)) * scale
            eigenvalue = float(np.linalg.norm(v))
        return max(1.0, eigenvalue)

    def _margins(
        self, weights: Float[np.ndarray, " tuples"] | None = None
    ) -> list[Float[np.ndarray, "..."]]:
        """The mean table of each set."""
        return [
            (np.bincount(at, weights, prod(shape)) / self.count).reshape(shape)
            for at, shape in zip(self.cells, self.problem.shapes, strict=True)
        ]
