"""The price of an answer with a wanted error."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, isfinite, log

import numpy as np

from workbench.inference.eigenqueries import prior_vectors
from workbench.inference.kernel_pca import Posterior
from workbench.queries import Linear
from workbench.queries.inner import inner_products


class Price(float):
    """An ε, with the method `by` which what it buys is recalled, and `why`."""

    by: str
    why: str

    def __new__(cls, epsilon: float, by: str, why: str) -> Price:
        """The ε, and what is said of it."""
        price = super().__new__(cls, epsilon)
        price.by = by
        price.why = why
        return price


LARGE_VARIANCE = 1e280  # of an answer that tells nothing


def noise_for_error(variance_left: Callable[[float], float], error: float) -> float:
    """The largest variance of noise after which the largest error is `error`; ∞ if any will do."""
    from scipy.optimize import brentq

    target = min(max(error, 1e-99), 1e99) ** 2
    if variance_left(LARGE_VARIANCE) <= target * (1 + 1e-9):
        return inf

    def log_ratio(x: float) -> float:
        return log(variance_left(exp(x)) / target)

    variance = exp(brentq(log_ratio, log(target) - 1, log(LARGE_VARIANCE)))
    return variance * (1 - 1e-8)  # what rounding takes


def variance_after(posterior: Posterior, queries: Linear) -> Callable[[float], float]:
    """The largest variance among `queries` after a further answer to all of them, by its noise's.

    A posterior covariance Σ d·u·uᵀ becomes Σ u·uᵀ/(1/d + 1/v), v the variance of the noise. At α = ∞
    what no past query reaches has infinite d, and what is reached keeps its own.
    """
    eigen = posterior.eigen
    alpha = posterior.alpha
    squares = eigen.squares
    projected = eigen.project(queries)
    rest = inner_products(
        queries, queries, eigen.domain, prior_vectors(eigen.prior, eigen.domain)
    )
    if eigen.total is not None:
        rest -= np.outer(projected.means, projected.means)
    smallest = 1e-13 * len(rest) * rest.diagonal().max(initial=0)
    rest -= (projected.coefficients / squares) @ projected.coefficients.T
    unbiased = projected.bias_share == 0
    rest[unbiased] = 0
    rest[:, unbiased] = 0
    covariance = (
        projected.coefficients / (squares * (squares + alpha**-2.0))
    ) @ projected.coefficients.T
    if isfinite(alpha):
        covariance += alpha**2 * rest
        reached = np.eye(len(rest))
        unreached = np.empty((len(rest), 0))
    else:
        sizes, vectors = np.linalg.eigh(rest)
        reached = vectors[:, sizes <= smallest]
        unreached = vectors[:, sizes > smallest]
    d, u = np.linalg.eigh(reached.T @ covariance @ reached)
    d = np.maximum(d, 0)
    shares = (reached @ u) ** 2
    unknown = (unreached**2).sum(axis=1)
    unknown[unknown < 1e-9] = 0  # rounding
    return lambda v: float((v * unknown + shares @ (v * (d / (v + d)))).max(initial=0))
