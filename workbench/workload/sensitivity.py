"""How far one tuple moves linear queries: max over tuples of Σ_i |f_i(t)|, without any data.

Queries by the set of attributes that they use make one table each of Σ|f_i|, on that set's cells. The
maximum of a sum of such tables is found exactly where the attributes that hang together have few enough
cells to lay them out; elsewhere tables are put together as far as they fit, and the maxima of what is
laid out are added: never less than the truth. Source: the definition; methods of variable elimination
and mini-buckets (Dechter & Rish, JACM 2003).
"""

from __future__ import annotations

from math import prod

import numpy as np
from jaxtyping import Float

from workbench.domain import Domain
from workbench.privacy import ADD_REMOVE, REPLACE
from workbench.workload.products import Products, TableQueries, Together, _peaks, linear_queries
from workbench.workload.queries import Workload

_LAID_OUT = 2**21  # cells
_PAIRS = 2**27  # of tuples, times queries, that are compared one by one


def workload_sensitivity(
    workload: Workload, domain: Domain, relation: str = ADD_REMOVE
) -> float:
    """How far one tuple, added or replaced, moves all answers together; exact or proven from above.

    Replaced: the smaller of twice that and Σ (max f_i − min f_i), or exactly where tuples are few.
    """
    if relation not in (ADD_REMOVE, REPLACE):
        raise ValueError(
            f"relation = {relation!r} is not allowed: need {ADD_REMOVE!r} or {REPLACE!r}"
        )
    workload = linear_queries(workload, domain)
    loads, spreads, left = _loads(workload, domain)
    found = left + _largest(loads, domain)
    if relation == REPLACE:
        exact = _replaced(workload, domain)
        found = min(2 * found, spreads) if exact is None else exact
    if workload.integer_valued and found < 2**53:
        return float(found)
    return float(found * (1 + (len(workload) + 1000) * 2.0**-48))  # above what sums can lose


def _loads(workload, domain: Domain):
    """Σ|f_i| on the cells of each set of axes; Σ (max f − min f); and a bound on the rest of Σ|f_i|."""
    loads: dict[tuple[int, ...], np.ndarray] = {}
    spreads = left = 0.0

    def add(axes, table):
        loads[axes] = loads.get(axes, 0.0) + table

    for part in workload.parts if isinstance(workload, Together) else [workload]:
        if isinstance(part, TableQueries):
            for names, tables, _ in part.parts():
                axes = tuple(domain.axis(a) for a in names)
                add(axes, np.abs(tables).sum(axis=0))
                rows = tables.reshape(len(tables), -1)
                spreads += float((rows.max(axis=1) - rows.min(axis=1)).sum())
            continue
        assert isinstance(part, Products)
        low, high = _ends(part)
        signed = np.bincount(part.query, low < 0, len(part)) > 0
        signed &= np.diff(part.offsets) > 1  # terms of a query can cancel
        apart = ~signed[part.query]
        for axes, terms in part.sets:
            own = terms[apart[terms]]
            cells = prod(domain.shape[k] for k in axes)
            if cells > _LAID_OUT:
                left += float(_peaks(part)[own].sum())
                continue
            load = sum((np.abs(v).sum(axis=0) for _, v in part.dense_terms(own, axes)), 0.0)
            if len(own):
                add(axes, np.reshape(load, [domain.shape[k] for k in axes]))
        for i in np.flatnonzero(signed):
            terms = np.arange(part.offsets[i], part.offsets[i + 1])
            axes = tuple(np.flatnonzero(part.which[terms].any(axis=0)).tolist())
            if prod(domain.shape[k] for k in axes) * len(terms) > _LAID_OUT:
                left += float(_peaks(part)[terms].sum())
                continue
            f = sum(v.sum(axis=0) for _, v in part.dense_terms(terms, axes))
            add(axes, np.abs(f).reshape([domain.shape[k] for k in axes]))
        spreads += float((high - low).sum())
    return loads, spreads, left


def _ends(
    products: Products,
) -> tuple[Float[np.ndarray, " terms"], Float[np.ndarray, " terms"]]:
    """The least and the largest value of each term."""
    low = high = products.times
    for k, f in enumerate(products.factors):
        a, b = f.min(axis=1)[products.which[:, k]], f.max(axis=1)[products.which[:, k]]
        ends = np.stack([low * a, low * b, high * a, high * b])
        low, high = ends.min(axis=0), ends.max(axis=0)
    return low, high


def _largest(loads: dict[tuple[int, ...], np.ndarray], domain: Domain) -> float:
    """The maximum over tuples of a sum of tables, or a bound on it."""
    buckets: list[tuple[set[int], list]] = []
    for axes in sorted(loads, key=lambda axes: -loads[axes].size):
        fits = [
            (
                prod(domain.shape[k] for k in whole | set(axes))
                / prod(domain.shape[k] for k in whole),
                i,
            )
            for i, (whole, _) in enumerate(buckets)
            if prod(domain.shape[k] for k in whole | set(axes)) <= _LAID_OUT
        ]
        together = [f for f in fits if set(axes) & buckets[f[1]][0] or not axes]
        if together:
            whole, own = buckets[min(together)[1]]
            whole |= set(axes)
            own.append(axes)
        else:
            buckets.append((set(axes), [axes]))
    found = 0.0
    for whole, own in buckets:
        every = sorted(whole)
        total = np.zeros([domain.shape[k] for k in every])
        for axes in own:
            total += loads[axes].reshape([domain.shape[k] if k in axes else 1 for k in every])
        found += float(total.max())
    return found


def _replaced(workload, domain: Domain) -> float | None:
    """max over pairs of tuples of Σ|f_i(t) − f_i(t')|, where they are few."""
    size = domain.size
    if size**2 * len(workload) > _PAIRS:
        return None
    f = np.stack([workload.sums(domain, np.array([t]), np.ones(1)) for t in range(size)])
    return max(float(np.abs(f - row).sum(axis=1).max()) for row in f)
