"""Better questions than those that are asked: the matrix mechanism, for marginals and for few cells.

A workload W is answered from a strategy A by least squares, at a total variance of
Δ(A)²·tr(W (AᵀA)⁻¹ Wᵀ) for noise of variance 1 at sensitivity 1.
Marginals: the space splits into one part for each set of attributes, of Π(n_k − 1) dimensions, on which
all marginals act alike: WᵀW is λ_S² there, and AᵀA is μ_S. For Gaussian noise contrasts of each part, each
attribute's orthonormal and orthogonal to the constant, are asked with the best variances in closed form;
that is the singular-value bound itself. For Laplace noise the marginals' own cells are asked, with
weights that minimise (Σ θ_S)²·Σ m_S λ_S²/μ_S, or the contrasts, or the workload itself.
Few cells: for Gaussian noise the best X = AᵀA with diagonal 1 solves X·D·X = WᵀW for a diagonal D >= 0,
found by repeated scaling; for Laplace noise the best of the cells, the workload itself, and trees of
several branchings whose levels are weighed. The sensitivity of no strategy rests on any of this: it is
computed from the queries that are asked.
Source     Li, Miklau, Hay, McGregor & Rastogi, VLDB Journal 2015, for the mechanism and the bound; Xiao,
           He, Zhang & Kifer, NeurIPS 2023, for marginals under Gaussian noise; McKenna, Miklau, Hay &
           Machanavajjhala, PVLDB 2018, for weights of marginals. From the papers' formulas.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from math import prod, sqrt
from typing import Any

import numpy as np

from workbench.arrays import Float
from workbench.domain import Domain
from workbench.inference.bank_marginals import used_attributes
from workbench.inference.query_terms import terms_by_axes
from workbench.inference.reconciliation import complete_tables
from workbench.workload import (
    Margins,
    Products,
    TableQueries,
    Workload,
    linear_queries,
    workload_sensitivity,
)

L1 = "l1"
L2 = "l2"
_MOST_CELLS = 512  # laid out
_MOST_QUERIES = 2**16  # times cells: 2²⁵ entries at most
_MOST_SETS = 2**12
_SCALINGS = 60
_BRANCHINGS = (2, 3, 4, 8, 16)
_EVEN = 1e-3  # how far the largest diagonal is from the mean when scaling ends


@dataclass(frozen=True, eq=False)
class Strategy:
    """Queries to ask in place of a workload, and what that is expected to give.

    Parameters
    ----------
    queries : Workload
        What is asked; `kind` says in words what it is.
    kind : str
    squared_error : float
        The mean over the workload's queries of their expected squared error, for noise of variance 1 at
        sensitivity 1: multiply by the variance that noise of sensitivity 1 has.
    plain : float
        The same for the workload as it is.
    per_noise : float
        The same for noise of variance 1 on each of the strategy's own queries.
    bound : float
        What no strategy is below (the singular-value bound), NaN where it is not computed.
    """

    queries: Any
    kind: str
    squared_error: float
    plain: float
    per_noise: float
    bound: float

    @property
    def share(self) -> float:
        """The bound over the error: 1 where nothing better is possible."""
        return self.bound / self.squared_error

    def __str__(self) -> str:
        words = f"{self.kind}: expected squared error {self.plain / self.squared_error:.3g} times less"
        if np.isfinite(self.bound):
            words += f", {self.share:.0%} of the singular-value bound"
        return words


def optimised_strategy(workload: Workload, domain: Domain, norm: str = L1) -> Strategy:
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
    sets = _marginals(queries, domain)
    if sets is not None and len(_closure(sets)) <= _MOST_SETS:
        return _of_marginals(queries, domain, sets, norm)
    axes = tuple(np.flatnonzero(used_attributes(queries, domain).any(axis=0)).tolist())
    cells = prod(domain.shape[k] for k in axes)
    if axes and cells <= _MOST_CELLS and len(queries) <= _MOST_QUERIES:
        return _of_cells(queries, domain, axes, norm)
    moved = workload_sensitivity(queries, domain)
    plain = moved**2 if norm == L1 else moved * queries.max_query
    return Strategy(queries, "the questions themselves", plain, plain, 1.0, float("nan"))


# Marginals


def _marginals(queries, domain: Domain) -> list[tuple[int, ...]] | None:
    """The sets of attributes all of whose cells are asked, if nothing else is."""
    try:
        terms = [*terms_by_axes(queries, domain, np.zeros(len(queries)))]
    except ValueError:
        return None
    zeros = np.zeros(len(queries))
    tables = complete_tables(domain, terms, zeros, zeros + 1)
    asked = sum(table.shares.size for table in tables)
    return [table.axes for table in tables] if tables and asked == len(queries) else None


def _closure(sets: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """All subsets of the sets, from small to large."""
    every = set()
    for axes in sets:
        for size in range(len(axes) + 1):
            every.update(combinations(axes, size))
            if len(every) > _MOST_SETS:
                return [()] * (_MOST_SETS + 1)
    return sorted(every, key=lambda axes: (len(axes), axes))


@dataclass(frozen=True, eq=False)
class _Parts:
    """The parts of the space: their sets, dimensions, and WᵀW on each, over the domain's size."""

    domain: Domain
    sets: list[tuple[int, ...]]
    dimensions: Float[np.ndarray, " parts"]
    squares: Float[np.ndarray, " parts"]

    @classmethod
    def of(cls, domain: Domain, sets: list[tuple[int, ...]]) -> _Parts:
        shape = domain.shape
        closure = _closure(sets)
        dimensions = np.array([prod(shape[k] - 1 for k in axes) for axes in closure], float)
        use = dimensions > 0  # an attribute of one code has no contrast
        closure = [axes for axes, good in zip(closure, use, strict=True) if good]
        squares = np.zeros(len(closure))
        for axes in sets:
            inside = [set(part) <= set(axes) for part in closure]
            squares[inside] += 1 / prod(shape[k] for k in axes)
        return cls(domain, closure, dimensions[use], squares)

    def acted_on(self) -> Float[np.ndarray, "sets parts"]:
        """AᵀA of each set's cells on each part, over the domain's size."""
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


def _of_marginals(queries, domain: Domain, sets, norm: str) -> Strategy:
    parts = _Parts.of(domain, sets)
    count = len(queries)
    weighed = parts.dimensions * np.sqrt(parts.squares)
    bound = weighed.sum() ** 2 / count
    plain = float(len(sets)) ** (2 if norm == L1 else 1)
    if norm == L2:
        sizes = np.array([prod(domain.shape[k] for k in axes) for axes in parts.sets], float)
        # the part's share of the squared sensitivity, m·θ²/n, is proportional to m·λ
        scales = np.sqrt(sizes * np.sqrt(parts.squares) / weighed.sum())
        contrasts = _contrasts(domain, parts.sets, scales)
        return Strategy(contrasts, "contrasts of the marginals", bound, plain, bound, bound)
    error, weights = _weighed_marginals(parts, count)
    candidates = [(plain, "the questions themselves", lambda: queries)]
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
    """The least error of weights whose sum is 1, from several starts."""
    from scipy.optimize import minimize

    acted = parts.acted_on()
    needed = parts.dimensions * parts.squares

    def objective(logs):
        weights = np.exp(logs - logs.max())
        weights = weights / weights.sum()
        mu = (weights**2) @ acted
        error = float((needed / mu).sum())
        slope = -2 * weights * (acted @ (needed / mu**2))
        slope = weights * (slope - weights @ slope)
        return np.log(error), slope / error

    largest = max(len(axes) for axes in parts.sets)
    starts = [np.zeros(len(parts.sets))]
    starts.append(np.array([0.0 if len(a) == largest else -4.0 for a in parts.sets]))
    options = {"maxiter": 2000, "gtol": 1e-9}
    found = [
        minimize(objective, s, jac=True, method="L-BFGS-B", options=options) for s in starts
    ]
    best = min(found, key=lambda f: f.fun)
    weights = np.exp(best.x - best.x.max())
    weights /= weights.sum()
    weights[weights < 1e-6] = 0
    lost = (weights**2) @ acted <= 0
    if lost.any():
        weights = np.exp(best.x - best.x.max())
    weights /= weights.sum()
    error = float((needed / ((weights**2) @ acted)).sum()) / count
    return error, weights


def _cells(domain: Domain, sets, weights) -> Products:
    """All cells of each set that has a weight, times it."""
    which = []
    times = []
    for axes, weight in zip(sets, weights, strict=True):
        if weight > 0:
            which.append(_every_row(domain, axes, [domain.shape[k] for k in axes]))
            times.append(np.full(len(which[-1]), weight))
    factors = tuple(np.concatenate([np.ones((1, n)), np.eye(n)]) for n in domain.shape)
    return _products(domain, factors, which, times)


def _contrasts(domain: Domain, sets, scales) -> Products:
    """All products of contrasts of each set, times its scale; orthonormal but for that."""
    factors = tuple(
        np.concatenate([np.ones((1, n)), _orthonormal_contrasts(n)]) for n in domain.shape
    )
    which = []
    times = []
    for axes, scale in zip(sets, scales, strict=True):
        which.append(_every_row(domain, axes, [domain.shape[k] - 1 for k in axes]))
        times.append(np.full(len(which[-1]), scale))
    return _products(domain, factors, which, times)


def _orthonormal_contrasts(n: int) -> Float[np.ndarray, "contrasts codes"]:
    """Rows orthonormal and orthogonal to the constant, all of whose columns are of one length."""
    contrasts = np.zeros((n - 1, n))
    for i in range(1, n):
        contrasts[i - 1, :i] = 1
        contrasts[i - 1, i] = -i
        contrasts[i - 1] /= sqrt(i * (i + 1))
    return contrasts


def _every_row(domain: Domain, axes, counts) -> np.ndarray:
    which = np.zeros((prod(counts), len(domain.shape)), np.int64)
    if axes:
        rows = np.unravel_index(np.arange(len(which)), counts)
        for k, row in zip(axes, rows, strict=True):
            which[:, k] = row + 1
    return which


def _products(domain: Domain, factors, which, times) -> Products:
    which = np.concatenate(which)
    times = np.concatenate(times)
    return Products(domain.attributes, factors, which, times, np.arange(len(times) + 1))


# Few cells


def _of_cells(queries, domain: Domain, axes: tuple[int, ...], norm: str) -> Strategy:
    rows = rows_of_cells(queries, domain, axes)
    gram = rows.T @ rows
    count = len(rows)
    singular = np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0)).sum()
    bound = float(singular**2 / gram.shape[0] / count)
    if norm == L2:
        plain = float((rows**2).sum(axis=0).max())
        matrix = _scaled_to_even(gram)
        name = "the best combinations of cells"
        candidates = [(name, matrix)]
    else:
        plain = float(np.abs(rows).sum(axis=0).max()) ** 2
        candidates = [("the cells", np.eye(len(gram))), *_trees(gram)]
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


def rows_of_cells(queries, domain: Domain, axes: tuple[int, ...]) -> np.ndarray:
    """Each query's weight of each cell of some attributes."""
    small = domain.project([domain.attributes[k] for k in axes])
    codes = np.zeros((small.size, len(domain.shape)), np.int64)
    codes[:, list(axes)] = small.codes(np.arange(small.size))
    keys = domain.keys(codes)
    one = np.ones(1)
    columns = [
        queries.sums_of_margins(Margins(domain, keys[i : i + 1], one)) for i in range(len(keys))
    ]
    return np.stack(columns, axis=1)


def _error(gram, squares) -> float:
    """tr(WᵀW (AᵀA)⁺)."""
    return float(np.trace(np.linalg.lstsq(squares, gram, rcond=1e-12)[0]))


def _root_of(matrix) -> Float[np.ndarray, "n n"]:
    sizes, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(sizes, 0))) @ vectors.T


def _scaled_to_even(gram) -> Float[np.ndarray, "n n"]:
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


def _trees(gram) -> Iterable[tuple[str, np.ndarray]]:
    """Trees over the cells in order, the levels of which have the best weights."""
    from scipy.optimize import minimize

    n = len(gram)
    for branching in _BRANCHINGS:
        levels = _levels(n, branching)
        if len(levels) < 2 or branching >= n:
            continue
        squares = np.stack([level.T @ level for level in levels])

        def log_error(logs, squares=squares):
            weights = np.exp(logs - logs.max())
            total = np.tensordot((weights / weights.sum()) ** 2, squares, 1)
            return np.log(np.trace(np.linalg.solve(total, gram)))

        start = np.zeros(len(levels))
        options = {"maxiter": 20}
        found = minimize(log_error, start, method="L-BFGS-B", options=options)
        weights = np.exp(found.x - found.x.max())
        weights /= weights.sum()
        tree = np.concatenate([w * level for w, level in zip(weights, levels, strict=True)])
        yield f"a tree of branching {branching} with the best weights", tree


def _levels(n: int, branching: int) -> list[np.ndarray]:
    """Indicators of the nodes of each level, cells first; each cell is in one node a level."""
    levels = []
    width = 1
    while width < n:
        nodes = np.arange(n) // width
        levels.append((nodes == np.arange(nodes[-1] + 1)[:, None]).astype(float))
        width *= branching
    levels.append(np.ones((1, n)))
    return levels
