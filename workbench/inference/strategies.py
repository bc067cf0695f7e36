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
Source     Li, Miklau, Hay, McGregor & Rastogi, VLDB Journal 2015, for the mechanism and the bound, and
           Qardaji, Yang & Li, PVLDB 2013, for the branching factors. Implemented from the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan, prod

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.marginal_strategies import (
    L1,
    L2,
    MOST_SETS,
    Strategy,
    closure_of,
    least_error_weights,
    marginals_of,
    of_marginals,
    sum_of_singular_values,
)
from workbench.inference.marginals import used_attributes
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

# Trees

_BRANCHINGS = (2, 3, 4, 8, 16)


def of_line(queries: Linear, domain: Domain, axis: int, norm: str) -> Strategy:
    """Return the best strategy that is a tree of intervals, for queries about one attribute with many values.
    If asking the queries themselves gives a smaller error, return a strategy that asks them.
    """
    rows = _rows_of_line(queries, axis)
    count = len(rows)
    lengths = np.abs(rows) if norm == L1 else rows**2
    plain = float(lengths.sum(axis=0).max()) ** (2 if norm == L1 else 1)
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
    n = domain.shape[axis]
    first, last = np.concatenate(levels, axis=1)
    times = np.repeat(weights, [level.shape[1] for level in levels])
    codes = np.arange(n)
    factors = [np.ones((1, size)) for size in domain.shape]
    inside = (codes >= first[:, None]) & (codes < last[:, None])
    factors[axis] = np.concatenate([factors[axis], inside.astype(float)])
    which = np.zeros((len(first), len(domain.shape)), np.int64)
    which[:, axis] = 1 + np.arange(len(first))
    offsets = np.arange(len(first) + 1)
    return Products(domain.attributes, tuple(factors), which, times, offsets)


# Strategies

_MOST_CODES = 2048  # of one attribute; from whose tree answers are reconstructed
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

    Returns ------- Strategy

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
