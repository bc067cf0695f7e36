"""Inner products of linear queries, computed without a loop over the cells of the domain.

The inner product of two queries q and q' is the expected product of their values for one random record t: Σ_t
p(t)·q(t)·q'(t). The probability p(t) is a product of one probability per attribute, so the attributes are
independent. The argument `prior` contains these probabilities, with one vector per attribute. If it is None,
all values of an attribute are equally likely.

The cost grows with the number of queries and with the sizes of the attributes, but not with the number of
cells.

Source: Chen, Zhou & Bhowmick, EDBT 2012, Equations 12, 15 and 20. A sum is missing in the printed Equation
20. We use Π_k Σ_θ p_k(θ)·g(θ)·g'(θ). Here k runs over the attributes that either query uses, and θ over the
values of attribute k. The factors of the two queries are g and g'.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from workbench.queries import factors as kernels
from workbench.queries.conversion import Together
from workbench.queries.factors import Factors, FlatTables, flat_tables
from workbench.queries.linear import MAX_DENSE_CELLS, Linear, Prior, prior_margin, uniform_prior
from workbench.queries.products import Products
from workbench.queries.tables import TableQueries
from workbench.spaces import Domain
from workbench.value import Float, Int, outer_rows

_Matrix = Float[np.ndarray, "rows columns"]


def inner_products(
    a: Linear, b: Linear, domain: Domain, prior: Prior | None = None
) -> Float[np.ndarray, "a b"]:
    """Return the inner products of all queries of `a` with all queries of `b`, as a matrix with one row per
    query of `a`. An inner product is the expected product of two queries' values for one random record.
    """
    products = np.zeros((len(a), len(b)))
    _fill(products, a.on(domain), b.on(domain), domain, _weights(domain, prior))
    return products


def means(
    a: Linear, domain: Domain, prior: Prior | None = None
) -> Float[np.ndarray, " queries"]:
    """Return the mean of each query, which is its expected value for one random record. The record's values
    have the probabilities in `prior`, which contains one vector per attribute. With None, all values of an
    attribute are equally likely.
    """
    return a.on(domain).means(domain, _weights(domain, prior))


def squared_norms(
    a: Linear, domain: Domain, prior: Prior | None = None
) -> Float[np.ndarray, " queries"]:
    """Return the squared norm of each query, which is the expected square of its value for a random record."""
    p = _weights(domain, prior)
    a = a.on(domain)
    if isinstance(a, Together):
        parts = (squared_norms(part, domain, p) for part in a.parts)
        return np.concatenate([np.empty(0), *parts])
    norms = np.zeros(len(a))
    if isinstance(a, TableQueries):
        for names, tables, queries in a.numbered_groups():
            norms[queries] = prior_margin(tables**2, [p[domain.axis(n)] for n in names], ())
        return norms
    assert isinstance(a, Products)
    if (np.diff(a.offsets) == 1).all():
        terms = a.times**2
        for k, f in enumerate(a.factors):
            if a.used[k]:
                terms *= (f**2 @ p[k])[a.which[:, k]]
        return terms
    which, factors = _used_factors(a)
    table = _factor_products(factors, factors, p)
    kernels.diagonal(a.offsets, a.times, which, *table, norms)
    return norms


def _weights(domain: Domain, prior: Prior | None) -> Prior:
    if prior is None:
        return uniform_prior(domain)
    return tuple(np.asarray(p, float) for p in prior)


def _fill(out: _Matrix, a: Linear, b: Linear, domain: Domain, p: Prior) -> None:
    """Write the inner products of all pairs of queries into the array `out`, which must contain only zeros."""
    match a, b:
        case Together(), _:
            for rows, part in _rows_of_parts(a):
                _fill(out[rows], part, b, domain, p)
        case _, Together():
            for columns, part in _rows_of_parts(b):
                _fill(out[:, columns], a, part, domain, p)
        case Products(), Products():
            _fill_products(out, a, b, p)
        case Products(), TableQueries():
            _fill_mixed(out, a, b, domain, p)
        case TableQueries(), Products():
            _fill_mixed(out.T, b, a, domain, p)
        case TableQueries(), TableQueries():
            _fill_tables(out, a, b, domain, p)


def _rows_of_parts(workload: Together) -> Iterator[tuple[slice, Linear]]:
    start = 0
    for part in workload.parts:
        yield slice(start, start + len(part)), part
        start += len(part)


def _fill_products(out: _Matrix, a: Products, b: Products, p: Prior) -> None:
    """Compute the inner products of two workloads of products. For each attribute, the inner products of the
    different factors are computed once, and then looked up for each pair of terms.
    """
    if not len(a.times) or not len(b.times):
        return
    which, left = _used_factors(a)
    other, right = (which, left) if b is a else _used_factors(b)
    order = np.concatenate([terms for _, terms in b.sets])
    ends = np.cumsum([len(terms) for _, terms in b.sets])
    sizes = np.array([len(axes) for axes, _ in b.sets])
    sets = np.zeros((len(sizes), max(1, which.shape[1])), np.int64)
    for g, (axes, _) in enumerate(b.sets):
        sets[g, : len(axes)] = axes
    columns = np.ascontiguousarray(other[order].T)
    kernels.inner(
        a.offsets, a.times, which, *_factor_products(left, right, p), sets, sizes, ends, columns,
        (b.times[order], b.query[order]), out,
    )  # fmt: skip


def _used_factors(a: Products) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the numbers of the factors that each term uses, and the factors themselves, without those that
    no term uses. For each attribute, the first factor is constantly 1.
    """
    which = np.zeros_like(a.which)
    factors = []
    for k, f in enumerate(a.factors):
        rows, place = np.unique(np.append(a.which[:, k], 0), return_inverse=True)
        which[:, k] = place[:-1]
        factors.append(f[rows])
    return which, factors


def _factor_products(left: Factors, right: Factors, p: Prior) -> FlatTables:
    """Return, for each attribute, the matrix of inner products of the factors in `left` with the factors in
    `right`, under the probabilities `p`. The entry for two factors that are constantly 1 is exactly 1.
    """
    tables = [(f * w) @ g.T for f, g, w in zip(left, right, p, strict=True)]
    for h in tables:
        h[0, 0] = 1
    return flat_tables(tables)


def _fill_tables(
    out: _Matrix, a: TableQueries, b: TableQueries, domain: Domain, p: Prior
) -> None:
    """Compute the inner products of two workloads of tables. Each table is averaged over the attributes that
    the other query does not use. Then the tables are multiplied cell by cell.
    """
    right: dict[tuple[int, tuple[str, ...]], _Matrix] = {}  # margins of b's groups
    for names, tables, rows in a.numbered_groups():
        left: dict[tuple[str, ...], _Matrix] = {}
        block = np.empty((len(tables), len(b)))
        for i, group in enumerate(b.numbered_groups()):
            shared = tuple(n for n in names if n in group.attributes)
            if shared not in left:
                left[shared] = _shared_margin(tables, names, shared, domain, p, weigh=True)
            if (i, shared) not in right:
                margin = _shared_margin(group.tables, group.attributes, shared, domain, p)
                right[i, shared] = margin.T
            block[:, group.queries] = left[shared] @ right[i, shared]
        out[rows] = block


def _shared_margin(
    tables: Float[np.ndarray, "queries ..."],
    names: tuple[str, ...],
    shared: tuple[str, ...],
    domain: Domain,
    p: Prior,
    weigh: bool = False,
) -> _Matrix:
    """Return the tables averaged over all attributes except the shared ones, with one row per query and one
    column per cell. With `weigh`, each cell is multiplied by its probability.
    """
    priors = [p[domain.axis(n)] for n in names]
    margin = prior_margin(tables, priors, tuple(names.index(n) for n in shared))
    if weigh:
        for i, n in enumerate(shared):
            shape = [1] * (margin.ndim - 1)
            shape[i] = -1
            margin = margin * p[domain.axis(n)].reshape(shape)
    return margin.reshape(len(tables), -1)


def _fill_mixed(out: _Matrix, a: Products, b: TableQueries, domain: Domain, p: Prior) -> None:
    """Compute the inner products of a workload of products with a workload of tables. For this, the values of
    a product are written out for all cells of the shared attributes.
    """
    factor_means = [f @ p[k] for k, f in enumerate(a.factors)]
    for names, tables, columns in b.numbered_groups():
        margins: dict[tuple[str, ...], _Matrix] = {}
        for axes, terms in a.sets:
            shared = tuple(n for n in names if domain.axis(n) in axes)
            if shared not in margins:
                margins[shared] = _shared_margin(tables, names, shared, domain, p, weigh=True).T
            shared_axes = [domain.axis(n) for n in shared]
            scale = a.times[terms]
            for k in axes:
                if k not in shared_axes:
                    scale = scale * factor_means[k][a.which[terms, k]]
            factor_rows = a.which[np.ix_(terms, np.array(shared_axes, int))]
            rows, row_of_term = np.unique(factor_rows, axis=0, return_inverse=True)
            factors = [a.factors[k] for k in shared_axes]
            block = scale[:, None] * _outer(factors, rows, margins[shared])[row_of_term.ravel()]
            query = a.query[terms]
            if len(np.unique(query)) == len(query):
                out[np.ix_(query, columns)] += block
            else:
                np.add.at(out, np.ix_(query, columns), block)


def _outer(factors: Factors, rows: Int[np.ndarray, "rows factors"], margin: _Matrix) -> _Matrix:
    """Write out the values of products for all cells, one block of products at a time, and multiply them with
    the given matrix of averaged tables.
    """
    products = np.empty((len(rows), margin.shape[1]))
    step = max(1, MAX_DENSE_CELLS // prod(f.shape[1] for f in factors))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        flat = np.ones((len(block), 1))
        for i, factor in enumerate(factors):
            flat = outer_rows(flat, factor[block[:, i]])
        products[start : start + step] = flat @ margin
    return products
