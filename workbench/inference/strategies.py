"""Optimised strategies for a workload (the list of queries that you want to answer). A strategy is another
list of queries, which a mechanism asks instead. The workload's answers are then computed from the strategy's
answers, because this gives smaller errors. There are formulas for marginals, and weighted trees for ranges of
one attribute.

The mechanism asks the queries of a strategy A. The answers to the workload W are then computed from the noisy
answers by least squares. Suppose that the noise for sensitivity 1 has variance 1. Then the sum of the
variances of the workload's answers is Δ(A)²·tr(W (AᵀA)⁻¹ Wᵀ), where Δ(A) is the sensitivity of the strategy.
Δ(A) is always computed from the queries that are asked, so the guarantee does not depend on the optimisation.

A tree over b^L ordered cells has one level of nodes for each width b^j. The queries of level i are multiplied
by a weight w_i. Consider the vectors over the cells that are constant on nodes of width b^j and have mean 0
on nodes of width b^(j+1). For these vectors, AᵀA is multiplication by μ_j = Σ_{i <= j} w_i²·b^i, and WᵀW has
a trace c_j. The best weights therefore minimise (Σ w)²·Σ c_j/μ_j for Laplace noise, or Σ w²·Σ c_j/μ_j for
Gaussian noise. If there are fewer than b^L cells, the formula for b^L cells gives an upper bound on the
error. We do not use a weighted Haar wavelet. For all ranges of 16 to 256 cells, its squared error with
Gaussian noise is that of the binary tree, and with Laplace noise two to three times as large.

For marginals, the space of tables is a direct sum of subspaces, one for each set S of attributes. If attribute
k has n_k codes, the subspace of S has m_S = Π(n_k − 1) dimensions. On each subspace, the matrices of marginals
are multiples of the identity: WᵀW is λ_S² for the workload W, and AᵀA is μ_S for the strategy A. For Gaussian
noise, the strategy asks orthonormal contrasts in each subspace. There is a formula for their best variances,
which attains the singular-value bound. These contrasts are the residual marginals of ResidualPlanner.
ResidualPlanner can also minimise other losses than the sum of the variances of all cells. For example, take
all pairs of three attributes with 2, 3 and 4 codes, at sensitivity 1. The sum of the variances is 50.85 with
the strategy, and 78 if the pairs themselves are asked. For Laplace noise, there are three candidates, and the
strategy is the one with the smallest error. The first asks the cells of marginals, with weights θ_S that
minimise (Σ θ_S)²·Σ m_S λ_S²/μ_S. The second asks the contrasts, if every attribute has two codes. The third
is the workload itself.
Source     Li, Miklau, Hay, McGregor & Rastogi, VLDB Journal 2015, for the mechanism and the bound; Qardaji,
           Yang & Li, PVLDB 2013, for the branching factors; Xiao, He, Zhang & Kifer, NeurIPS 2023, for
           marginals with Gaussian noise; McKenna, Miklau, Hay & Machanavajjhala, PVLDB 2018, for weights of
           marginals. Implemented from the papers' formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import nan, prod, sqrt
from typing import Any

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.marginals import marginals_of, used_attributes
from workbench.queries import (
    Linear,
    Products,
    Recipe,
    linear_queries,
    workload_l2_squared,
    workload_sensitivity,
)
from workbench.spaces import Domain
from workbench.value import Float, Int

# Strategy

L1 = "l1"
L2 = "l2"

_MOST_CODES = 2048  # of an attribute whose contrasts or tree are laid out


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
    squares = np.maximum(np.linalg.eigvalsh(gram), 0)
    return float(np.sqrt(squares).sum())


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


# Marginal strategies

MOST_SETS = 2**12


def closure_of(sets: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return all subsets of the given sets, in the order of their size."""
    every: set[tuple[int, ...]] = set()
    for axes in sets:
        for size in range(len(axes) + 1):
            every.update(combinations(axes, size))
            if len(every) > MOST_SETS:
                return [()] * (MOST_SETS + 1)
    return sorted(every, key=lambda axes: (len(axes), axes))


def _eigenvalues(
    domain: Domain, sets: Sequence[tuple[int, ...]], parts: Sequence[tuple[int, ...]]
) -> Float[np.ndarray, "sets parts"]:
    """Return the eigenvalue of AᵀA on each subspace in `parts`, divided by the size of the domain, where A
    asks all cells of the marginal on one set of attributes. There is one row per set.
    """
    sizes = [prod(domain.shape[k] for k in axes) for axes in sets]
    inside = [[set(part) <= set(axes) for part in parts] for axes in sets]
    return np.array(inside, float) / np.array(sizes, float)[:, None]


def of_marginals(
    queries: Linear, domain: Domain, sets: list[tuple[int, ...]], norm: str
) -> Strategy:
    """Return the best strategy for a workload that consists of the complete marginals on the given sets of
    attributes.
    """
    shape = domain.shape
    parts = [axes for axes in closure_of(sets) if all(shape[k] > 1 for k in axes)]
    dimensions = np.array([prod(shape[k] - 1 for k in axes) for axes in parts], float)
    squares = _eigenvalues(domain, sets, parts).sum(axis=0)
    count = len(queries)
    weighed = dimensions * np.sqrt(squares)
    bound = weighed.sum() ** 2 / count
    plain = float(len(sets)) ** (2 if norm == L1 else 1)
    if max((shape[k] for axes in sets for k in axes), default=0) > _MOST_CODES:
        return Strategy(queries, "the questions themselves", plain, plain, 1.0, bound)
    if norm == L2:
        sizes = np.array([prod(shape[k] for k in axes) for axes in parts], float)
        # the part's share of the squared sensitivity, m·θ²/n, is proportional to m·λ
        scales = np.sqrt(sizes * np.sqrt(squares) / weighed.sum())
        contrasts = _products_of_rows(domain, parts, scales, _contrasts)
        return Strategy(contrasts, "contrasts of the marginals", bound, plain, bound, bound)
    needed = dimensions * squares
    error, weights = _weighed_marginals(domain, parts, needed)
    error /= count
    candidates: list[tuple[float, str, Callable[[], Linear]]] = [
        (plain, "the questions themselves", lambda: queries)
    ]
    name = "marginals of the best weights"
    candidates.append((error, name, lambda: _products_of_rows(domain, parts, weights, np.eye)))
    if all(shape[k] == 2 for axes in sets for k in axes):
        # a product of ±1 moves by its scale at every tuple; scales as the cube roots of what each tells
        roots = np.cbrt(squares)
        scales = roots / roots.sum() * np.sqrt([2.0 ** len(axes) for axes in parts])
        error = float(roots.sum() ** 3 / count)
        name = "contrasts of the marginals"
        candidates.append(
            (error, name, lambda: _products_of_rows(domain, parts, scales, _contrasts))
        )
    error, name, make = min(candidates, key=lambda c: c[0])
    asked = make()
    return Strategy(asked, name, error, plain, 1.0 if asked is queries else error, bound)


def _weighed_marginals(
    domain: Domain, parts: Sequence[tuple[int, ...]], needed: Float[np.ndarray, " parts"]
) -> tuple[float, Float[np.ndarray, " parts"]]:
    """Return the smallest sum of squared errors of a strategy that asks weighted cells of marginals, and its
    weights. The weights add up to 1.
    """
    acted = _eigenvalues(domain, parts, parts)
    largest = max(len(axes) for axes in parts)
    large_sets = np.array([0.0 if len(axes) == largest else -4.0 for axes in parts])
    weights = least_error_weights(acted, needed, 1, [0 * large_sets, large_sets])[1]
    kept = np.where(weights < 1e-6, 0.0, weights)
    if not (kept**2 @ acted <= 0).any():
        weights = kept / kept.sum()
    return float((needed / (weights**2 @ acted)).sum()), weights


def _products_of_rows(
    domain: Domain,
    sets: Sequence[tuple[int, ...]],
    weights: Float[np.ndarray, " sets"],
    rows_of: Callable[[int], np.ndarray],
) -> Products:
    """Return all queries on the given sets of attributes that are products of one row per attribute, times
    the weight of the set. `rows_of(n)` returns the rows of an attribute with n codes.
    """
    factors = [np.ones((1, n)) for n in domain.shape]
    for k in {k for axes in sets for k in axes}:
        factors[k] = np.concatenate([factors[k], rows_of(domain.shape[k])])
    which = []
    times = []
    for axes, weight in zip(sets, weights, strict=True):
        counts = [len(factors[k]) - 1 for k in axes]
        rows = np.zeros((prod(counts), len(domain.shape)), np.int64)
        each_row = np.indices(counts).reshape(len(axes), len(rows))
        rows[:, list(axes)] = 1 + each_row.T
        if weight > 0:
            which.append(rows)
            times.append(np.full(len(rows), weight))
    coefficients = np.concatenate(times)
    offsets = np.arange(len(coefficients) + 1)
    rows = np.concatenate(which)
    return Products(domain.attributes, tuple(factors), rows, coefficients, offsets)


def _contrasts(n: int) -> Float[np.ndarray, "contrasts codes"]:
    """Return n − 1 orthonormal rows that are orthogonal to the row of ones. All columns have the same
    length.
    """
    contrasts = np.zeros((n - 1, n))
    for i in range(1, n):
        contrasts[i - 1, :i] = 1
        contrasts[i - 1, i] = -i
        contrasts[i - 1] /= sqrt(i * (i + 1))
    return contrasts


# Trees

_BRANCHINGS = (2, 3, 4, 8, 16)


def of_line(queries: Linear, domain: Domain, axis: int, norm: str) -> Strategy:
    """Return the best strategy that is a tree of intervals, for queries about one attribute with many values.
    If asking the queries themselves gives a smaller error, return a strategy that asks them.
    """
    rows = _rows_of_line(queries, axis)
    count = len(rows)
    lengths = np.abs(rows) if norm == L1 else rows**2
    sensitivity = float(lengths.sum(axis=0).max())
    plain = sensitivity ** (2 if norm == L1 else 1)
    n = rows.shape[1]
    gram = rows.T @ rows
    bound = sum_of_singular_values(gram) ** 2 / n / count
    best = Strategy(queries, "the questions themselves", plain, plain, 1.0, bound)
    for branching in _BRANCHINGS:
        error, weights = _weighed_levels(rows, branching, norm)
        if error < best.squared_error:
            levels = [_nodes(n, branching**j) for j in range(len(weights))]
            asked = _asked(domain, axis, levels, weights)
            name = f"a tree of branching {branching} with the best weights"
            best = Strategy(asked, name, error, plain, error, bound, axis)
    return best


def answers_by_cells(
    answers: NoisyAnswers, queries: Linear, axis: int
) -> tuple[Float[np.ndarray, " queries"], Float[np.ndarray, " queries"]]:
    """Estimate answers to queries about one attribute by least squares, with standard errors. The given noisy
    answers must be about this attribute, and must determine the count of each of its values.

    Each query must consist of a single term. The time depends on the number of values of the attribute,
    because the function decomposes a matrix with one row and one column per value.
    """
    from scipy.linalg import solve_triangular

    weights = 1 / np.sqrt(answers.variances)
    rows = _rows_of_line(answers.workload, axis) * weights[:, None]
    root = np.linalg.cholesky(rows.T @ rows)
    half = solve_triangular(root, rows.T @ (answers.values * weights), lower=True)
    asked = solve_triangular(root, _rows_of_line(queries, axis).T, lower=True)
    return half @ asked, np.sqrt((asked**2).sum(axis=0))


def _rows_of_line(queries: Linear, axis: int) -> Float[np.ndarray, "queries codes"]:
    assert isinstance(queries, Products)
    return np.concatenate(
        [own for _, own in queries.dense_terms(np.arange(len(queries)), (axis,))]
    )


def _weighed_levels(
    rows: Float[np.ndarray, "queries cells"], branching: int, norm: str
) -> tuple[float, Float[np.ndarray, " levels"]]:
    """Return the expected mean squared error of a tree with the best weights for its levels, and these
    weights. The weights are scaled so that the tree has sensitivity 1.
    """
    width = 1
    energies = []  # of what is constant on nodes of each width
    while True:
        sums = np.add.reduceat(rows, np.arange(0, rows.shape[1], width), axis=1)
        energies.append(float((sums**2).sum()) / width)
        if width >= rows.shape[1]:
            break
        width *= branching
    c = np.maximum(-np.diff(energies, append=0.0), 0)
    widths = float(branching) ** np.arange(len(c))
    # a level acts on all wider nodes
    acted = np.triu(np.repeat(widths[:, None], len(c), axis=1))
    error, weights = least_error_weights(acted, c, 1 if norm == L1 else 2, [np.zeros(len(c))])
    return error / len(rows), weights


def _nodes(n: int, width: int) -> Int[np.ndarray, "2 nodes"]:
    """Divide n cells into nodes (intervals) of the given width. Return the first cell of each node, and the
    cell after its last one.
    """
    first = np.arange(0, n, width)
    return np.stack([first, np.minimum(first + width, n)])


def _asked(
    domain: Domain,
    axis: int,
    levels: Sequence[Int[np.ndarray, "..."]],
    weights: Float[np.ndarray, " n"],
) -> Products:
    """Return queries for the nodes (intervals) on all levels of a tree. Each query is multiplied by the
    weight of its level.
    """
    first, last = np.concatenate(levels, axis=1)
    lo = np.zeros((len(first), len(domain.shape)), np.int64)
    hi = np.tile(domain.shape, (len(first), 1))
    lo[:, axis] = first
    hi[:, axis] = last
    times = np.repeat(weights, [level.shape[1] for level in levels])
    return replace(Products.boxes(domain, lo, hi), times=times)


# Strategies

_MOST_ENTRIES = 2**24


def optimised_strategy(workload: Recipe, domain: Domain, norm: str = L1) -> Strategy:
    """Return the best known strategy for a workload. If no strategy has a smaller error, return the workload
    itself as the strategy.

    Parameters
    ----------
    workload : Workload
        Queries whose answers are wanted. Each must be a weighted sum of cells.
    domain : Domain
        Domain of the queries.
    norm : "l1" or "l2"
        Norm in which the sensitivity is measured: "l1" for Laplace noise, "l2" for Gaussian noise.

    Returns
    -------
    Strategy

    Raises
    ------
    ValueError
        If `norm` is neither "l1" nor "l2", or if the workload does not fit the domain.
    """
    if norm not in (L1, L2):
        raise ValueError(f"norm = {norm!r} is not allowed: need {L1!r} or {L2!r}")
    queries = linear_queries(workload, domain)
    sets = marginals_of(queries, domain)
    if sets is not None and len(closure_of(sets)) <= MOST_SETS:
        return of_marginals(queries, domain, sets, norm)
    axes = tuple(np.flatnonzero(used_attributes(queries, domain).any(axis=0)).tolist())
    cells = prod(domain.shape[k] for k in axes)
    single_terms = isinstance(queries, Products) and (np.diff(queries.offsets) == 1).all()
    if len(axes) == 1 and single_terms and cells <= _MOST_CODES:
        if len(queries) * cells <= _MOST_ENTRIES:
            return of_line(queries, domain, axes[0], norm)
    if norm == L1:
        plain = workload_sensitivity(queries, domain) ** 2
    else:
        plain = float(workload_l2_squared(queries, domain))
    return Strategy(queries, "the questions themselves", plain, plain, 1.0, nan)
