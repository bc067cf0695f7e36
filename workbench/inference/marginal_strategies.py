"""Optimised strategies for marginals. A strategy is a list of queries that a mechanism asks instead of a
workload (the queries that you want to answer). The workload's answers are then computed from the strategy's
answers, because this gives smaller errors.

The space of tables is a direct sum of subspaces, one for each set S of attributes. If attribute k has n_k
codes, the subspace of S has m_S = Π(n_k − 1) dimensions. On each subspace, the matrices of marginals are
multiples of the identity: WᵀW is λ_S² for the workload W, and AᵀA is μ_S for the strategy A. For Gaussian
noise, the strategy asks orthonormal contrasts in each subspace. There is a formula for their best variances,
which attains the singular-value bound. These contrasts are the residual marginals of ResidualPlanner.
ResidualPlanner can also minimise other losses than the sum of the variances of all cells. For example, take
all pairs of three attributes with 2, 3 and 4 codes, at sensitivity 1. The sum of the variances is 50.85 with
the strategy, and 78 if the pairs themselves are asked. For Laplace noise, there are three candidates, and the
strategy is the one with the smallest error. The first asks the cells of marginals, with weights θ_S that
minimise (Σ θ_S)²·Σ m_S λ_S²/μ_S. The second asks the contrasts, if every attribute has two codes. The third
is the workload itself.
Source     Xiao, He, Zhang & Kifer, NeurIPS 2023, for Gaussian noise; McKenna, Miklau, Hay &
           Machanavajjhala, PVLDB 2018, for weights of marginals. Implemented from the papers' formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod, sqrt
from typing import Any

import numpy as np

from workbench.inference.marginals import complete_tables
from workbench.inference.query_terms import terms_by_axes
from workbench.queries import Linear, Products
from workbench.spaces import Domain
from workbench.value import Float, Int

# Strategy

L1 = "l1"
L2 = "l2"


@dataclass(frozen=True, eq=False)
class Strategy:
    """Queries to ask instead of a workload. The object also contains the expected error of the workload's
    answers, which are computed from the answers to these queries.

    Parameters
    ----------
    queries : Workload
        Queries to ask.
    kind : str
        Description of the queries.
    squared_error : float
        Expected squared error, averaged over the workload's queries, if the noise for sensitivity 1 has
        variance 1. Multiply this number by the actual variance of the noise for sensitivity 1.
    plain : float
        The same expected squared error if the workload itself is asked.
    per_noise : float
        The same expected squared error if the noise on each query of the strategy has variance 1.
    bound : float
        Lower bound on the squared error of any strategy (the singular-value bound), or NaN if it was not
        computed.
    line : int, optional
        Number of an attribute, if the strategy is a tree over the values of this attribute. The tree
        determines the count of each value.
    """

    queries: Any
    kind: str
    squared_error: float
    plain: float
    per_noise: float
    bound: float
    line: int | None = None

    @property
    def share(self) -> float:
        """Lower bound on the squared error of any strategy, divided by the squared error of this strategy. If
        it is 1, no strategy is better.
        """
        return self.bound / self.squared_error

    def __str__(self) -> str:
        words = f"{self.kind}: expected squared error {self.plain / self.squared_error:.3g} times less"
        if np.isfinite(self.bound):
            words += f", {self.share:.0%} of the singular-value bound"
        return words


def sum_of_singular_values(gram: Float[np.ndarray, "n n"]) -> float:
    """Return the sum of the singular values of a workload matrix W, given the matrix WᵀW or WWᵀ.

    The square of this sum, divided by the number of cells and by the number of queries, is a lower bound on
    the mean squared error of any strategy. It is stated for noise that has variance 1 at sensitivity 1.
    """
    return float(np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0)).sum())


# Marginal strategies

_MOST_CODES = 2048  # of an attribute whose contrasts are laid out
MOST_SETS = 2**12


def marginals_of(queries: Linear, domain: Domain) -> list[tuple[int, ...]] | None:
    """Return the sets of attributes of a workload, if the workload consists of complete marginals. Return
    None for other workloads.
    """
    try:
        terms = [*terms_by_axes(queries, domain, np.zeros(len(queries)))]
    except ValueError:
        return None
    zeros = np.zeros(len(queries))
    tables = complete_tables(domain, terms, zeros, zeros + 1)
    asked = sum(table.shares.size for table in tables)
    return [table.axes for table in tables] if tables and asked == len(queries) else None


def closure_of(sets: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return all subsets of the given sets, in the order of their size."""
    every: set[tuple[int, ...]] = set()
    for axes in sets:
        for size in range(len(axes) + 1):
            every.update(combinations(axes, size))
            if len(every) > MOST_SETS:
                return [()] * (MOST_SETS + 1)
    return sorted(every, key=lambda axes: (len(axes), axes))


@dataclass(frozen=True, eq=False)
class _Parts:
    """Subspaces of the space of tables. For each subspace, the object contains its set of attributes, its
    dimension, and the eigenvalue of WᵀW divided by the size of the domain. W is the matrix of the workload.
    """

    domain: Domain
    sets: list[tuple[int, ...]]
    dimensions: Float[np.ndarray, " parts"]
    squares: Float[np.ndarray, " parts"]

    @classmethod
    def of(cls, domain: Domain, sets: list[tuple[int, ...]]) -> _Parts:
        shape = domain.shape
        closure = closure_of(sets)
        dimensions = np.array([prod(shape[k] - 1 for k in axes) for axes in closure], float)
        use = dimensions > 0  # an attribute of one code has no contrast
        closure = [axes for axes, good in zip(closure, use, strict=True) if good]
        squares = np.zeros(len(closure))
        for axes in sets:
            inside = [set(part) <= set(axes) for part in closure]
            squares[inside] += 1 / prod(shape[k] for k in axes)
        return cls(domain, closure, dimensions[use], squares)

    def acted_on(self) -> Float[np.ndarray, "sets parts"]:
        """Return the eigenvalue of AᵀA on each subspace, for strategies A that ask all cells of the marginal
        on one set of attributes. There is one row per set, and the eigenvalues are divided by the size of the
        domain.
        """
        shape = self.domain.shape
        return np.array(
            [
                [
                    set(part) <= set(axes) and 1 / prod(shape[k] for k in axes)
                    for part in self.sets
                ]
                for axes in self.sets
            ],
            float,
        )


def of_marginals(
    queries: Linear, domain: Domain, sets: list[tuple[int, ...]], norm: str
) -> Strategy:
    """Return the best strategy for a workload that consists of the complete marginals on the given sets of
    attributes.
    """
    parts = _Parts.of(domain, sets)
    count = len(queries)
    weighed = parts.dimensions * np.sqrt(parts.squares)
    bound = weighed.sum() ** 2 / count
    plain = float(len(sets)) ** (2 if norm == L1 else 1)
    if max((domain.shape[k] for axes in sets for k in axes), default=0) > _MOST_CODES:
        return Strategy(queries, "the questions themselves", plain, plain, 1.0, bound)
    if norm == L2:
        sizes = np.array([prod(domain.shape[k] for k in axes) for axes in parts.sets], float)
        # the part's share of the squared sensitivity, m·θ²/n, is proportional to m·λ
        scales = np.sqrt(sizes * np.sqrt(parts.squares) / weighed.sum())
        contrasts = _contrasts(domain, parts.sets, scales)
        return Strategy(contrasts, "contrasts of the marginals", bound, plain, bound, bound)
    error, weights = _weighed_marginals(parts, count)
    candidates: list[tuple[float, str, Callable[[], Linear]]] = [
        (plain, "the questions themselves", lambda: queries)
    ]
    name = "marginals of the best weights"
    candidates.append((error, name, lambda: _cells(domain, parts.sets, weights)))
    if all(domain.shape[k] == 2 for axes in sets for k in axes):
        # a product of ±1 moves by its scale at every tuple; scales as the cube roots of what each tells
        roots = np.cbrt(parts.squares)
        scales = roots / roots.sum() * np.sqrt([2.0 ** len(axes) for axes in parts.sets])
        error = float(roots.sum() ** 3 / count)
        name = "contrasts of the marginals"
        candidates.append((error, name, lambda: _contrasts(domain, parts.sets, scales)))
    error, name, make = min(candidates, key=lambda c: c[0])
    asked = make()
    return Strategy(asked, name, error, plain, 1.0 if asked is queries else error, bound)


def _weighed_marginals(parts: _Parts, count: int) -> tuple[float, np.ndarray]:
    """Return the smallest mean squared error of a strategy that asks weighted cells of marginals, and its
    weights. The weights add up to 1.
    """
    acted = parts.acted_on()
    needed = parts.dimensions * parts.squares
    largest = max(len(axes) for axes in parts.sets)
    large_sets = np.array([0.0 if len(axes) == largest else -4.0 for axes in parts.sets])
    weights = least_error_weights(acted, needed, 1, [0 * large_sets, large_sets])[1]
    kept = np.where(weights < 1e-6, 0.0, weights)
    if not (kept**2 @ acted <= 0).any():
        weights = kept / kept.sum()
    return float((needed / (weights**2 @ acted)).sum()) / count, weights


def least_error_weights(
    acted: Float[np.ndarray, "weights parts"],
    needed: Float[np.ndarray, " parts"],
    power: int,
    starts: Sequence[Float[np.ndarray, " weights"]],
) -> tuple[float, Float[np.ndarray, " weights"]]:
    """Return the smallest value of (Σ w^p)^(2/p)·Σ needed/μ, and the weights w for which it is reached. Here
    p is `power`, and μ is the product of the matrix `acted` with the squared weights. The weights are scaled
    so that Σ w^p = 1. `starts` contains logarithms of weights at which the search begins.
    """
    from scipy.optimize import minimize

    def log_error(logs: Float[np.ndarray, " weights"]) -> tuple[float, np.ndarray]:
        weights = np.exp(logs - logs.max())
        moved = weights**power
        mu = weights**2 @ acted
        spread = (needed / mu).sum()
        slope = 2 * moved / moved.sum() - 2 * weights**2 * (acted @ (needed / mu**2)) / spread
        return np.log(moved.sum()) * (2 / power) + np.log(spread), slope

    options = {"maxiter": 2000, "gtol": 1e-10}
    found = [
        minimize(log_error, start, jac=True, method="L-BFGS-B", options=options)
        for start in starts
    ]
    best = min(found, key=lambda each: each.fun)
    weights = np.exp(best.x - best.x.max())
    return float(np.exp(best.fun)), weights / (weights**power).sum() ** (1 / power)


def _cells(
    domain: Domain, sets: Sequence[tuple[int, ...]], weights: Float[np.ndarray, " sets"]
) -> Products:
    """Return queries for all cells of the marginals on the given sets. The queries of each set are multiplied
    by the weight of the set.
    """
    which = []
    times = []
    for axes, weight in zip(sets, weights, strict=True):
        if weight > 0:
            which.append(_every_row(domain, axes, [domain.shape[k] for k in axes]))
            times.append(np.full(len(which[-1]), weight))
    factors = _factors(domain, sets, np.eye)
    return _products(domain, factors, which, times)


def _contrasts(
    domain: Domain, sets: Sequence[tuple[int, ...]], scales: Float[np.ndarray, " sets"]
) -> Products:
    """Return queries for all products of contrasts on the given sets of attributes. The queries of each set
    are multiplied by the scale of the set. Without the scale, they are orthonormal.
    """
    factors = _factors(domain, sets, _orthonormal_contrasts)
    which = []
    times = []
    for axes, scale in zip(sets, scales, strict=True):
        which.append(_every_row(domain, axes, [domain.shape[k] - 1 for k in axes]))
        times.append(np.full(len(which[-1]), scale))
    return _products(domain, factors, which, times)


def _factors(
    domain: Domain, sets: Sequence[tuple[int, ...]], rows_of: Callable[[int], np.ndarray]
) -> tuple[Float[np.ndarray, "rows values"], ...]:
    """Return one matrix per attribute, whose first row contains ones. If a set uses the attribute, the rows
    `rows_of(number of codes)` follow.
    """
    factors = [np.ones((1, n)) for n in domain.shape]
    for k in {k for axes in sets for k in axes}:
        factors[k] = np.concatenate([factors[k], rows_of(domain.shape[k])])
    return tuple(factors)


def _orthonormal_contrasts(n: int) -> Float[np.ndarray, "contrasts codes"]:
    """Return n − 1 orthonormal rows that are orthogonal to the row of ones. All columns have the same
    length.
    """
    contrasts = np.zeros((n - 1, n))
    for i in range(1, n):
        contrasts[i - 1, :i] = 1
        contrasts[i - 1, i] = -i
        contrasts[i - 1] /= sqrt(i * (i + 1))
    return contrasts


def _every_row(domain: Domain, axes: Sequence[int], counts: Sequence[int]) -> np.ndarray:
    which = np.zeros((prod(counts), len(domain.shape)), np.int64)
    if axes:
        rows = np.unravel_index(np.arange(len(which)), counts)
        for k, row in zip(axes, rows, strict=True):
            which[:, k] = row + 1
    return which


def _products(
    domain: Domain,
    factors: tuple[Float[np.ndarray, "rows values"], ...],
    which: list[Int[np.ndarray, "terms attributes"]],
    times: list[Float[np.ndarray, " terms"]],
) -> Products:
    coefficients = np.concatenate(times)
    offsets = np.arange(len(coefficients) + 1)
    return Products(domain.attributes, factors, np.concatenate(which), coefficients, offsets)
