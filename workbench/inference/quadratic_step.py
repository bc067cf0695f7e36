"""A step to the top of the dual's quadratic model within the box, with covariances of drawn tuples.

Near weights w the dual rises by r·d − dᵀCd/2 to second order, with r its gradient and C the covariance
of the queries under the model, by drawn tuples. A damping λ times the variances is added to it, as tuples
are too few to know all of C: large while the weights are far, small near the top.
Source     Levenberg, Quarterly of Applied Mathematics 1944; Byrd, Lu, Nocedal & Zhu, SIAM J. Scientific
           Computing 1995 (L-BFGS-B).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from workbench.arrays import Float
from workbench.inference.dual_problem import DualProblem
from workbench.inference.sampled_covariance import SampledCovariance

_OPTIONS = {"maxiter": 100, "maxfun": 150, "maxcor": 20, "ftol": 1e-9, "gtol": 1e-9}
_FARTHEST = 1.0  # nats: the model is one of small moves
_LEAST_VARIANCE = 1e-9


def quadratic_step(
    problem: DualProblem,
    w: Float[np.ndarray, " queries"],
    margins: Sequence[Float[np.ndarray, "..."]],
    covariance: SampledCovariance,
    damping: float,
) -> Float[np.ndarray, " queries"]:
    """Weights in the box, at the model's top, or on the way to it as far as the model holds."""
    from scipy.optimize import minimize

    gradient = problem.pi - problem.means(margins)
    unit = 1 / np.sqrt(np.maximum(problem.variances(margins), _LEAST_VARIANCE))

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
