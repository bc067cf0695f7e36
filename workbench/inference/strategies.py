"""Better questions than those that are asked: the matrix mechanism, for marginals, few cells and ranges.

A workload W is answered from a strategy A by least squares, at a total variance of
Δ(A)²·tr(W (AᵀA)⁻¹ Wᵀ) for noise of variance 1 at sensitivity 1. The sensitivity of no strategy rests on how
it was found: it is computed from the queries that are asked.
Source     Li, Miklau, Hay, McGregor & Rastogi, VLDB Journal 2015.
"""

from __future__ import annotations

from math import nan, prod

import numpy as np

from workbench.domain import Domain
from workbench.inference.bank_marginals import used_attributes
from workbench.inference.cell_strategies import of_cells, of_line
from workbench.inference.marginal_strategies import (
    MOST_SETS,
    closure_of,
    marginals_of,
    of_marginals,
)
from workbench.inference.strategy import L1, L2, Strategy, sum_of_singular_values
from workbench.workload import Products, Recipe, linear_queries, workload_sensitivity
from workbench.workload.inner import inner_products
from workbench.workload.linear import Linear

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
