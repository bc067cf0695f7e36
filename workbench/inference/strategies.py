"""Optimised strategies for few cells and for ranges of one attribute (the matrix mechanism).

Cell strategies.
For Gaussian noise the best X = AᵀA with diagonal 1 solves X·D·X = WᵀW for a diagonal D >= 0, found by
repeated scaling; for Laplace noise the best of the cells, the workload itself, and weighed trees.
A tree over b^L cells in order has a level of nodes of each width b^j. On what is constant on nodes of width
b^j and has mean 0 on those of b^(j+1), AᵀA is Σ_{i <= j} w_i²·b^i for weights w of its levels, and WᵀW adds
up to some c_j, so that the best weights minimise (Σ w)²·Σ c_j/μ_j, or Σ w²·Σ c_j/μ_j for Gaussian noise.
Fewer cells than b^L are taken for that many: what is then expected is an upper bound.
Under Gaussian noise nodes that overlap do better: of each width several trees, shifted by shares of it.
Cosines nearly diagonalise such a level, with (sin(θw/2) / sin(θ/2))² / stride at frequency θ, from which
its weight is chosen; what is then expected is exact, from AᵀA of all cells.
Source     Li, Miklau, Hay, McGregor & Rastogi, VLDB Journal 2015, for the mechanism and the bound; Qardaji,
           Yang & Li, PVLDB 2013, for branchings. From the formulas.

Strategies: A workload W is answered from a strategy A by least squares, at a total variance of
Δ(A)²·tr(W (AᵀA)⁻¹ Wᵀ) for noise of variance 1 at sensitivity 1. The sensitivity of no strategy rests on how
it was found: it is computed from the queries that are asked.
Source     Li, Miklau, Hay, McGregor & Rastogi, VLDB Journal 2015.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan, prod

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.marginal_strategies import (
    L1,
    L2,
    MOST_SETS,
    Strategy,
    closure_of,
    marginals_of,
    of_marginals,
    sum_of_singular_values,
)
from workbench.inference.marginals import used_attributes
from workbench.inference.query_terms import rows_of_cells
from workbench.queries import (
    Linear,
    Products,
    Recipe,
    TableQueries,
    linear_queries,
    workload_sensitivity,
)
from workbench.queries.inner import inner_products
from workbench.spaces import Domain
from workbench.value import Float, Int

# Cell strategies

_SCALINGS = 60
_BRANCHINGS = (2, 3, 4, 8, 16)
_OVERLAPPING = ((4, 8), (4, 16))  # a branching, and how many nodes of a width hold a cell
_EVEN = 1e-3  # how far the largest diagonal is from the mean when scaling ends


def of_cells(queries: Linear, domain: Domain, axes: tuple[int, ...], norm: str) -> Strategy:
    """Of queries about some attributes of few cells together."""
    rows = rows_of_cells(queries, domain, axes)
    gram = rows.T @ rows
    count = len(rows)
    bound = sum_of_singular_values(gram) ** 2 / gram.shape[0] / count
    if norm == L2:
        plain = float((rows**2).sum(axis=0).max())
        matrix = _scaled_to_even(gram)
        name = "the best combinations of cells"
        candidates = [(name, matrix)]
    else:
        plain = float(np.abs(rows).sum(axis=0).max()) ** 2
        candidates = [("the cells", np.eye(len(gram))), *_trees(rows)]
    best = Strategy(queries, "the questions themselves", plain, plain, 1.0, bound)
    for name, matrix in candidates:
        length = np.abs(matrix).sum(axis=0) if norm == L1 else (matrix**2).sum(axis=0)
        moved = float(length.max()) ** (2 if norm == L1 else 1)
        error = moved * _error(gram, matrix.T @ matrix) / count
        if error < best.squared_error * (1 - 1e-9):
            names = tuple(domain.attributes[k] for k in axes)
            shape = [domain.shape[k] for k in axes]
            asked = TableQueries.of(domain, [(names, row.reshape(shape)) for row in matrix])
            best = Strategy(asked, name, error, plain, error / moved, bound)
    return best


def _error(gram: Float[np.ndarray, "n n"], squares: Float[np.ndarray, "n n"]) -> float:
    """tr(WᵀW (AᵀA)⁺)."""
    return float(np.trace(np.linalg.lstsq(squares, gram, rcond=1e-12)[0]))


def _root_of(matrix: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    sizes, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(sizes, 0))) @ vectors.T


def _scaled_to_even(gram: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """A with AᵀA = X, of diagonal at most 1, where X·D·X = WᵀW."""
    n = len(gram)
    jitter = 1e-9 * np.trace(gram) / n
    gram = gram + jitter * np.eye(n)  # cells that nobody asks for
    d = np.full(n, 1.0 / n)
    for _ in range(_SCALINGS):
        half = np.sqrt(d)
        x = _root_of(gram * half * half[:, None]) / half / half[:, None]
        diagonal = x.diagonal()
        if diagonal.max() <= (1 + _EVEN) * (d @ diagonal) / d.sum():
            break
        d = d * diagonal
        d = np.maximum(d / d.sum(), 1e-12)
    return _root_of(x / x.diagonal().max())


def of_line(queries: Linear, domain: Domain, axis: int, norm: str) -> Strategy:
    """Of queries about one attribute of many codes: the best weighed tree, or the queries themselves."""
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
            levels = [_nodes(n, branching**j, branching**j) for j in range(len(weights))]
            asked = _asked(domain, axis, levels, weights)
            name = f"a tree of branching {branching} with the best weights"
            best = Strategy(asked, name, error, plain, error, bound, axis)
    for branching, overlap in _OVERLAPPING if norm == L2 else ():
        error, levels, weights = _weighed_overlapping(gram, branching, overlap)
        if error / count < best.squared_error:
            asked = _asked(domain, axis, levels, weights)
            name = "overlapping trees with chosen weights"
            best = Strategy(asked, name, error / count, plain, error / count, bound, axis)
    return best


def answers_by_cells(
    answers: NoisyAnswers, queries: Linear, axis: int
) -> tuple[Float[np.ndarray, " queries"], Float[np.ndarray, " queries"]]:
    """Least squares, and standard errors, from answers about one attribute that tell of all its codes.

    Both workloads are single terms. It costs a decomposition of codes × codes, however many the answers.
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


def _weighed_overlapping(
    gram: Float[np.ndarray, "cells cells"], branching: int, overlap: int
) -> tuple[float, list[Int[np.ndarray, "2 nodes"]], Float[np.ndarray, " levels"]]:
    """The squared error that overlapping trees give, added over queries, their nodes, and their weights.

    For Gaussian noise, at sensitivity 1: each cell lies in as many nodes of a width as any other.
    """
    from scipy.fft import dctn
    from scipy.linalg import cho_factor, cho_solve
    from scipy.optimize import minimize

    n = len(gram)
    widths = [1]
    while widths[-1] < n:
        widths.append(widths[-1] * branching)
    strides = [max(1, width // overlap) for width in widths]
    levels = [_nodes(n, w, stride) for w, stride in zip(widths, strides, strict=True)]
    held = np.array(widths) / strides
    half = np.pi * np.arange(1, n) / (2 * n)
    sizes = np.square(np.array(widths, float))[:, None] * np.ones(n)
    sizes[:, 1:] = (np.sin(np.outer(widths, half)) / np.sin(half)) ** 2
    sizes /= np.array(strides)[:, None]
    energies = np.maximum(dctn(gram, norm="ortho").diagonal(), 0)

    def log_error(logs: Float[np.ndarray, " n"]) -> tuple[float, np.ndarray]:
        squares = np.exp(2 * (logs - logs.max()))
        mu = squares @ sizes
        moved = squares @ held
        spread = (energies / mu).sum()
        slope = 2 * squares * (held / moved - sizes @ (energies / mu**2) / spread)
        return np.log(moved) + np.log(spread), slope

    start = np.zeros(len(widths))
    found = minimize(log_error, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-8})
    weights = np.exp(found.x - found.x.max())
    weights /= np.sqrt(weights**2 @ held)
    corners = np.zeros((n + 1, n + 1))  # sums over rows and columns give AᵀA
    for (first, last), weight in zip(levels, weights, strict=True):
        for rows, columns, sign in (
            (first, first, 1),
            (first, last, -1),
            (last, first, -1),
            (last, last, 1),
        ):
            np.add.at(corners, (rows, columns), sign * weight**2)
    squares = corners.cumsum(0).cumsum(1)[:n, :n]
    error = float(np.trace(cho_solve(cho_factor(squares), gram)))
    return error, levels, weights


def _trees(rows: Float[np.ndarray, "queries codes"]) -> Iterator[tuple[str, np.ndarray]]:
    """Trees over the cells in order, the levels of which have the best weights for Laplace noise."""
    n = rows.shape[1]
    for branching in _BRANCHINGS:
        if branching < n:
            _, weights = _weighed_levels(rows, branching, L1)
            tree = [
                w * (np.arange(n) // branching**j == np.arange(-(-n // branching**j))[:, None])
                for j, w in enumerate(weights)
            ]
            yield f"a tree of branching {branching} with the best weights", np.concatenate(tree)


def _weighed_levels(
    rows: Float[np.ndarray, "queries cells"], branching: int, norm: str
) -> tuple[float, Float[np.ndarray, " levels"]]:
    """The mean squared error that a tree is expected to give, and its weights, at sensitivity 1."""
    from scipy.optimize import minimize

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
    power = 1 if norm == L1 else 2

    def log_error(logs: Float[np.ndarray, " n"]) -> tuple[float, np.ndarray]:
        w = np.exp(logs - logs.max())
        moved = (w**power).sum()
        mu = np.cumsum(w**2 * widths)
        spread = (c / mu).sum()
        down = np.cumsum((c / mu**2)[::-1])[::-1]
        slope = 2 * w**power / moved - 2 * w**2 * widths * down / spread
        return np.log(moved) * (2 / power) + np.log(spread), slope

    start = np.zeros(len(c))
    found = minimize(log_error, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-10})
    weights = np.exp(found.x - found.x.max())
    weights /= (weights**power).sum() ** (1 / power)
    return float(np.exp(found.fun)) / len(rows), weights


def _nodes(n: int, width: int, stride: int) -> Int[np.ndarray, "2 nodes"]:
    """First cells, and those past the last, of all nodes of a width that hold any of n cells."""
    low = np.arange(stride - width, n, stride)
    return np.stack([np.maximum(low, 0), np.minimum(low + width, n)])


def _asked(
    domain: Domain,
    axis: int,
    levels: Sequence[Int[np.ndarray, "..."]],
    weights: Float[np.ndarray, " n"],
) -> Products:
    """The nodes of all levels, times the weights of these."""
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

_MOST_CELLS = 512  # laid out
_MOST_QUERIES = 2**16  # times cells: 2²⁵ entries at most
_MOST_CODES = 2048  # of one attribute; from whose tree answers are reconstructed
_MOST_ENTRIES = 2**24
_MOST_BOUNDED = 2**12  # queries about more cells, whose singular values are found
_MOST_VALUES = 2**22  # of all attributes, where they are


def optimised_strategy(workload: Recipe, domain: Domain, norm: str = L1) -> Strategy:
    """The best strategy that is known for a workload; the workload itself where none is better.

    Parameters
    ----------
    workload : Workload
        Queries that are sums of cells with weights.
    domain : Domain
        Where they are asked.
    norm : "l1" or "l2"
        How sensitivity is measured: for Laplace noise, or for Gaussian.

    Returns
    -------
    Strategy

    Raises
    ------
    ValueError
        For another norm, or a workload that does not fit.
    """
    if norm not in (L1, L2):
        raise ValueError(f"norm = {norm!r} is not allowed: need {L1!r} or {L2!r}")
    queries = linear_queries(workload, domain)
    sets = marginals_of(queries, domain)
    if sets is not None and len(closure_of(sets)) <= MOST_SETS:
        return of_marginals(queries, domain, sets, norm)
    axes = tuple(np.flatnonzero(used_attributes(queries, domain).any(axis=0)).tolist())
    cells = prod(domain.shape[k] for k in axes)
    if axes and cells <= _MOST_CELLS and len(queries) <= _MOST_QUERIES:
        return of_cells(queries, domain, axes, norm)
    single_terms = isinstance(queries, Products) and (np.diff(queries.offsets) == 1).all()
    if len(axes) == 1 and single_terms and cells <= _MOST_CODES:
        if len(queries) * cells <= _MOST_ENTRIES:
            return of_line(queries, domain, axes[0], norm)
    moved = workload_sensitivity(queries, domain)
    plain = moved**2 if norm == L1 else moved * queries.max_query
    bound = _bound_of_queries(queries, domain)
    return Strategy(queries, "the questions themselves", plain, plain, 1.0, bound)


def _bound_of_queries(queries: Linear, domain: Domain) -> float:
    """The singular-value bound from products of queries, so that no cells are laid out; NaN of many."""
    if len(queries) > _MOST_BOUNDED or sum(domain.shape) > _MOST_VALUES:
        return nan
    singular = sum_of_singular_values(inner_products(queries, queries, domain))
    return singular**2 / len(queries)
