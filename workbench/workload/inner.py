"""Inner products of linear queries, ⟨q, q'⟩ = Σ_t p(t)·q(t)·q'(t), in closed form.

`prior` is a vector of probabilities for each attribute (p is their product), or None: uniform. Costs
are in queries and in the attributes' sizes, never in the domain's size.
Source: Chen, Zhou & Bhowmick, EDBT 2012, Equations 12, 15 and 20, the last with the sum that it
lacks: Π_k Σ_θ p_k(θ)·g(θ)·g'(θ), over the attributes that either query uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from jaxtyping import Float

from workbench.domain import Domain
from workbench.workload import kernels
from workbench.workload.products import Products, TableQueries, Together

Linear = Products | TableQueries | Together
Prior = Sequence[Float[np.ndarray, " values"]]


def inner_products(
    a: Linear, b: Linear, domain: Domain, prior: Prior | None = None
) -> Float[np.ndarray, "a b"]:
    """⟨q, q'⟩ of each query of `a` with each of `b`."""
    out = np.zeros((len(a), len(b)))
    _into(out, a.on(domain), b.on(domain), domain, _weights(domain, prior))
    return out


def means(
    a: Linear, domain: Domain, prior: Prior | None = None
) -> Float[np.ndarray, " queries"]:
    """⟨q, u⟩ with the universal query u = 1: each query's answer for one tuple of the prior."""
    p, a = _weights(domain, prior), a.on(domain)
    if isinstance(a, Together):
        return np.concatenate([np.empty(0), *(means(part, domain, p) for part in a.parts)])
    out = np.zeros(len(a))
    if isinstance(a, TableQueries):
        for names, tables, own in a.parts():
            out[own] = _margin(tables, [p[domain.axis(n)] for n in names], ())
        return out
    terms = a.times.copy()
    for k, f in enumerate(a.factors):
        if a.used[k]:
            terms *= (f @ p[k])[a.which[:, k]]
    return np.bincount(a.query, terms, len(a))


def squared_norms(
    a: Linear, domain: Domain, prior: Prior | None = None
) -> Float[np.ndarray, " queries"]:
    """⟨q, q⟩ of each query."""
    p, a = _weights(domain, prior), a.on(domain)
    if isinstance(a, Together):
        return np.concatenate(
            [np.empty(0), *(squared_norms(part, domain, p) for part in a.parts)]
        )
    out = np.zeros(len(a))
    if isinstance(a, TableQueries):
        for names, tables, own in a.parts():
            out[own] = _margin(tables**2, [p[domain.axis(n)] for n in names], ())
        return out
    if (np.diff(a.offsets) == 1).all():
        terms = a.times**2
        for k, f in enumerate(a.factors):
            if a.used[k]:
                terms *= (f**2 @ p[k])[a.which[:, k]]
        return terms
    which, factors = _distinct(a)
    table, starts, widths = _pairs(factors, factors, p)
    kernels.diagonal(a.offsets, a.times, which, table, starts, widths, out)
    return out


def uniform_prior(domain: Domain) -> tuple[Float[np.ndarray, " values"], ...]:
    """The prior that says nothing."""
    return tuple(np.full(n, 1 / n) for n in domain.shape)


def _weights(domain: Domain, prior: Prior | None) -> Prior:
    if prior is None:
        return uniform_prior(domain)
    return tuple(np.asarray(p, float) for p in prior)


def _into(out, a: Linear, b: Linear, domain: Domain, p: Prior) -> None:
    """Write all inner products into `out`, which is zero."""
    for one, turned in ((a, False), (b, True)):
        if isinstance(one, Together):
            start = 0
            for part in one.parts:
                own = slice(start, start + len(part))
                if turned:
                    _into(out[:, own], a, part, domain, p)
                else:
                    _into(out[own], part, b, domain, p)
                start += len(part)
            return
    match a, b:
        case Products(), Products():
            _products(out, a, b, p)
        case Products(), TableQueries():
            _mixed(out, a, b, domain, p)
        case TableQueries(), Products():
            _mixed(out.T, b, a, domain, p)
        case _:
            _tables(out, a, b, domain, p)


def _products(out, a: Products, b: Products, p: Prior) -> None:
    """Each attribute's inner products of its different factors once; then a look-up a pair of terms."""
    if not len(a.times) or not len(b.times):
        return
    which, left = _distinct(a)
    other, right = (which, left) if b is a else _distinct(b)
    table, starts, widths = _pairs(left, right, p)
    order = np.concatenate([terms for _, terms in b.sets])
    ends = np.cumsum([len(terms) for _, terms in b.sets])
    sizes = np.array([len(axes) for axes, _ in b.sets])
    sets = np.zeros((len(sizes), max(1, which.shape[1])), np.int64)
    for g, (axes, _) in enumerate(b.sets):
        sets[g, : len(axes)] = axes
    cols = np.ascontiguousarray(other[order].T)
    kernels.inner(
        a.offsets, a.times, which, table, starts, widths, sets, sizes, ends, cols,
        (b.times[order], b.query[order]), out,
    )  # fmt: skip


def _distinct(a: Products) -> tuple[np.ndarray, list[np.ndarray]]:
    """The factors that terms use, all ones first, and which they are."""
    which, factors = np.zeros_like(a.which), []
    for k, f in enumerate(a.factors):
        rows, at = np.unique(np.append(a.which[:, k], 0), return_inverse=True)
        which[:, k] = at[:-1]
        factors.append(f[rows])
    return which, factors


def _pairs(left, right, p: Prior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """H_k = left_k·diag(p_k)·right_kᵀ, one after the other; exactly 1 where neither uses k."""
    tables = [(f * w) @ g.T for f, g, w in zip(left, right, p, strict=True)]
    for h in tables:
        h[0, 0] = 1
    starts = np.cumsum([0, *(h.size for h in tables)])[:-1]
    widths = np.array([h.shape[1] for h in tables])
    return np.concatenate([h.ravel() for h in tables]), starts, widths


def _margin(tables, p, kept: tuple[int, ...]) -> np.ndarray:
    """Tables averaged by the prior over all axes but those kept."""
    for axis in range(len(p) - 1, -1, -1):
        if axis not in kept:
            before, after = tables.shape[: axis + 1], tables.shape[axis + 2 :]
            flat = tables.reshape(prod(before), len(p[axis]), -1)
            flat = flat[:, :, 0] @ p[axis] if flat.shape[2] == 1 else p[axis] @ flat
            tables = flat.reshape(*before, *after)
    return tables


def _tables(out, a: TableQueries, b: TableQueries, domain: Domain, p: Prior) -> None:
    """Margins on the attributes that both use, multiplied cell by cell."""
    right: dict = {}  # margins of b's groups
    for names, tables, rows in a.parts():
        left: dict = {}
        block = np.empty((len(tables), len(b)))
        for i, (others, more, columns) in enumerate(b.parts()):
            shared = tuple(n for n in names if n in others)
            if shared not in left:
                left[shared] = _shared(tables, names, shared, domain, p, weigh=True)
            if (i, shared) not in right:
                right[i, shared] = _shared(more, others, shared, domain, p).T
            block[:, columns] = left[shared] @ right[i, shared]
        out[rows] = block


def _shared(tables, names, shared, domain: Domain, p: Prior, weigh: bool = False):
    """(queries, cells of the shared attributes); weighed by the prior of these cells."""
    own = [p[domain.axis(n)] for n in names]
    margin = _margin(tables, own, tuple(names.index(n) for n in shared))
    if weigh:
        for i, n in enumerate(shared):
            side = [1] * (margin.ndim - 1)
            side[i] = -1
            margin = margin * p[domain.axis(n)].reshape(side)
    return margin.reshape(len(tables), -1)


def _mixed(out, a: Products, b: TableQueries, domain: Domain, p: Prior) -> None:
    """As two tables, but the product's is laid out on the shared attributes alone."""
    means_of = [f @ p[k] for k, f in enumerate(a.factors)]
    for names, tables, columns in b.parts():
        known: dict = {}
        for axes, terms in a.sets:
            shared = tuple(n for n in names if domain.axis(n) in axes)
            if shared not in known:
                known[shared] = _shared(tables, names, shared, domain, p, weigh=True).T
            both = [domain.axis(n) for n in shared]
            scale = a.times[terms]
            for k in axes:
                if k not in both:
                    scale = scale * means_of[k][a.which[terms, k]]
            rows, at = np.unique(a.which[np.ix_(terms, both)], axis=0, return_inverse=True)
            found = np.empty((len(rows), len(tables)))
            cells = prod(domain.shape[k] for k in both)
            step = max(1, 2**22 // cells)
            for start in range(0, len(rows), step):
                flat = np.ones((len(rows[start : start + step]), 1))
                for i, k in enumerate(both):
                    own = a.factors[k][rows[start : start + step, i]]
                    flat = (flat[:, :, None] * own[:, None, :]).reshape(len(own), -1)
                found[start : start + step] = flat @ known[shared]
            block = scale[:, None] * found[at.ravel()]
            query = a.query[terms]
            if len(np.unique(query)) == len(query):
                out[np.ix_(query, columns)] += block
            else:
                np.add.at(out, np.ix_(query, columns), block)
