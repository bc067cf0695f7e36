"""A step to the top of the dual's quadratic model within the box, with covariances of drawn tuples.

Near weights w the dual rises by r·d − dᵀCd/2 to second order, with r its gradient and C the covariance
of the queries under the model. Drawn tuples give C as a product with vectors, in time of the tuples and
tables: it is never laid out. A damping λ times the variances is added to it, as tuples are too few to know
all of C: large while the weights are far, small near the top.
Source     Levenberg, Quarterly of Applied Mathematics 1944; Byrd, Lu, Nocedal & Zhu, SIAM J. Scientific
           Computing 1995 (L-BFGS-B).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

import numpy as np

from workbench.arrays import Float, Int
from workbench.inference.dual_problem import DualProblem

_OPTIONS = {"maxiter": 100, "maxfun": 150, "maxcor": 20, "ftol": 1e-9, "gtol": 1e-9}
_FARTHEST = 1.0  # nats: the model is one of small moves
_LEAST_VARIANCE = 1e-9


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
        sums = (sums - sums.mean()) / self.count
        margins = [
            np.bincount(at, sums, prod(shape)).reshape(shape)
            for at, shape in zip(self.cells, self.problem.shapes, strict=True)
        ]
        return self.problem.means(margins) - self.problem.constants


def quadratic_step(
    problem: DualProblem,
    w: Float[np.ndarray, " queries"],
    margins: Sequence[Float[np.ndarray, "..."]],
    covariance: SampledCovariance,
    damping: float,
) -> Float[np.ndarray, " queries"]:
    """Weights in the box, at the model's top, or on the way to it as far as the model holds."""
    from scipy.optimize import minimize

    means = problem.means(margins)
    gradient = problem.pi - means
    squares = means if problem.binary else problem.mean_squares(margins)
    unit = 1 / np.sqrt(np.maximum(squares - means**2, _LEAST_VARIANCE))

    def negative_rise(x: np.ndarray) -> tuple[float, np.ndarray]:
        curved = unit * (covariance @ (unit * x)) + damping * x
        return x @ (curved / 2 - unit * gradient), curved - unit * gradient

    bounds = np.stack([-problem.box - w, problem.box - w], axis=1) / unit[:, None]
    found = minimize(
        negative_rise,
        np.zeros(len(w)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options=_OPTIONS,
    )
    move = unit * found.x
    far = float(move @ (covariance @ move)) / 2
    move *= min(1.0, sqrt(_FARTHEST / far)) if far > 0 else 1.0
    return problem.with_fixed(np.clip(w + move, -problem.box, problem.box))
