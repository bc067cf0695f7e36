"""Sensitivity of linear queries, computed without data. The sensitivity says how much one record can change
all answers together.

A linear query i is a function f_i of a record t, and its answer is the sum of f_i(t) over all records. The l1
sensitivity is the largest value of Σ_i |f_i(t)| over all possible records t. For all queries on the same set
of attributes, the absolute values are first added up to one table. The sensitivity is then the maximum of the
sum of these tables.

The maximum is exact if the attributes that occur together have few enough cells for one array in memory.
Otherwise the workbench joins as many tables as fit into memory, and adds up the maxima of the joined tables.
The result is then an upper bound. Source: the definition of sensitivity, and variable elimination with
mini-buckets (Dechter & Rish, JACM 2003).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from weakref import WeakKeyDictionary

import numpy as np

from workbench.privacy import ADD_REMOVE, REPLACE
from workbench.queries.conversion import Together, linear_queries
from workbench.queries.linear import Linear
from workbench.queries.products import Products
from workbench.queries.ranges import Recipe
from workbench.queries.tables import TableQueries
from workbench.spaces import Domain
from workbench.value import Float

_MAX_CELLS = 2**21  # cells in one array in memory
_MAX_PAIRS = 2**27  # pairs of records, times queries, that are compared
_UNCHANGEABLE = Products, TableQueries  # nobody can write to their arrays
# Sensitivities by queries. An entry is deleted together with its queries.
_KNOWN: WeakKeyDictionary[Linear, dict[tuple[Domain, str], float]] = WeakKeyDictionary()


def workload_sensitivity(workload: Recipe, domain: Domain, relation: str = ADD_REMOVE) -> float:
    """Return the l1 sensitivity of a workload (list of queries). If one record is added or replaced, answers
    change. The l1 sensitivity is the largest possible sum of the absolute values of these changes. The result
    is exact or a proven upper bound.

    `relation` says whether a record is added or replaced. If a record is replaced and the domain is small,
    the result is exact. For larger domains, the result is the smaller of two upper bounds. The first bound is
    twice the sensitivity to an added record. For the second bound, the function computes the largest and the
    smallest answer to each query on a table with one record. It adds up the differences between the largest
    and the smallest answers. If a query is a sum of several terms, the function adds up the differences of
    its terms instead.
    """
    if relation not in (ADD_REMOVE, REPLACE):
        raise ValueError(
            f"relation = {relation!r} is not allowed: need {ADD_REMOVE!r} or {REPLACE!r}"
        )
    queries = linear_queries(workload, domain)
    if type(queries) not in _UNCHANGEABLE:
        return _sensitivity(queries, domain, relation)
    known = _KNOWN.setdefault(queries, {})
    if (domain, relation) not in known:
        known[domain, relation] = _sensitivity(queries, domain, relation)
    return known[domain, relation]


def workload_l2_squared(workload: Recipe, domain: Domain) -> Fraction:
    """Return the squared l2 sensitivity of a workload (list of queries). If one record is added, answers
    change. The squared l2 sensitivity is the largest possible sum of the squares of these changes. The result
    is exact or a proven upper bound.

    Parameters
    ----------
    workload : workload or recipe
        Queries whose answers are released together.
    domain : Domain
        Domain of the table about which the queries ask.

    Returns
    -------
    Fraction
        Squared l2 sensitivity. The number is exact if the queries have integer values and the computation
        fits into memory. Otherwise the number is a proven upper bound.
    """
    queries = linear_queries(workload, domain)
    loads = _loads(queries, domain, power=2)
    return Fraction(_rounded_up(queries, loads.unresolved + _largest_sum(loads.tables, domain)))


def largest_weights(queries: Linear) -> Float[np.ndarray, " queries"]:
    """Return, for each query, the largest absolute value that one of its terms takes for a record.

    A query is a sum of one or more terms.
    """
    if isinstance(queries, Together):
        return np.concatenate([np.empty(0), *map(largest_weights, queries.parts)])
    weights = np.zeros(len(queries))
    if isinstance(queries, TableQueries):
        for _, tables, of in queries.numbered_groups():
            weights[of] = np.abs(tables).reshape(len(tables), -1).max(axis=1, initial=0.0)
    else:
        assert isinstance(queries, Products)
        np.maximum.at(weights, queries.query, queries.max_terms)
    return weights


def _sensitivity(queries: Linear, domain: Domain, relation: str) -> float:
    loads = _loads(queries, domain)
    bound = loads.unresolved + _largest_sum(loads.tables, domain)
    if relation == REPLACE:
        exact = _largest_replacement(queries, domain)
        bound = min(2 * bound, loads.spread) if exact is None else exact
    return _rounded_up(queries, bound)


def _rounded_up(queries: Linear, bound: float) -> float:
    if queries.integer_valued and bound < 2**53:
        return float(bound)
    return float(bound * (1 + (len(queries) + 1000) * 2.0**-48))  # beyond rounding errors


def _loads(queries: Linear, domain: Domain, power: int = 1) -> _Loads:
    loads = _Loads(domain, power)
    for part in queries.parts if isinstance(queries, Together) else [queries]:
        if isinstance(part, TableQueries):
            loads.add_tables(part)
        else:
            assert isinstance(part, Products)
            loads.add_products(part)
    return loads


@dataclass
class _Loads:
    """Sums of the absolute values of queries, with one table for each set of attributes. If `power` is 2, the
    absolute values are squared first.
    """

    domain: Domain
    power: int = 1
    tables: dict[tuple[int, ...], np.ndarray] = field(default_factory=dict)
    spread: float = 0.0  # Σ (max f_i − min f_i)
    unresolved: float = 0.0  # a bound on Σ|f_i| of the queries that are in no table

    def _add(self, axes: tuple[int, ...], load: np.ndarray) -> None:
        self.tables[axes] = self.tables.get(axes, 0.0) + load

    def add_tables(self, queries: TableQueries) -> None:
        """Add the absolute values of queries that are given as tables."""
        for names, tables, _ in queries.numbered_groups():
            axes = tuple(self.domain.axis(a) for a in names)
            self._add(axes, (np.abs(tables) ** self.power).sum(axis=0))
            rows = tables.reshape(len(tables), -1)
            self.spread += float((rows.max(axis=1) - rows.min(axis=1)).sum())

    def add_products(self, queries: Products) -> None:
        """Add the absolute values of queries that are sums of products. The terms of a query are added to its
        value first if they may cancel or if values are squared. Otherwise each term is added on its own.
        """
        low, high = term_ends(queries)
        signed = np.bincount(queries.query, low < 0, len(queries)) > 0
        cancels = (signed | (self.power > 1)) & (np.diff(queries.offsets) > 1)
        apart = ~cancels[queries.query]
        for axes, terms in queries.sets:
            chosen = terms[apart[terms]]
            shape = [self.domain.shape[k] for k in axes]
            if prod(shape) > _MAX_CELLS:
                self.unresolved += float((queries.max_terms[chosen] ** self.power).sum())
                continue
            blocks = queries.dense_terms(chosen, axes)
            load = sum(
                ((np.abs(values) ** self.power).sum(axis=0) for _, values in blocks), 0.0
            )
            if len(chosen):
                self._add(axes, np.reshape(load, shape))
        for i in np.flatnonzero(cancels):
            terms = np.arange(queries.offsets[i], queries.offsets[i + 1])
            axes = tuple(np.flatnonzero(queries.which[terms].any(axis=0)).tolist())
            shape = [self.domain.shape[k] for k in axes]
            if prod(shape) * len(terms) > _MAX_CELLS:
                self.unresolved += float(queries.max_terms[terms].sum() ** self.power)
                continue
            query = sum(values.sum(axis=0) for _, values in queries.dense_terms(terms, axes))
            self._add(axes, (np.abs(query) ** self.power).reshape(shape))
        self.spread += float((high - low).sum())


def term_ends(
    products: Products,
) -> tuple[Float[np.ndarray, " terms"], Float[np.ndarray, " terms"]]:
    """Return the smallest and the largest value that each term takes for a record."""
    low = high = products.times
    for k, f in enumerate(products.factors):
        least = f.min(axis=1)[products.which[:, k]]
        largest = f.max(axis=1)[products.which[:, k]]
        ends = np.stack([low * least, low * largest, high * least, high * largest])
        low = ends.min(axis=0)
        high = ends.max(axis=0)
    return low, high


@dataclass
class _Bucket:
    """Group of tables that are added up to one table, which has all attributes of the group."""

    axes: set[int]
    members: list[tuple[int, ...]]


def _largest_sum(tables: dict[tuple[int, ...], np.ndarray], domain: Domain) -> float:
    """Return the maximum over all records of the sum of the tables, or an upper bound on it."""

    def cells(axes: Iterable[int]) -> int:
        return prod(domain.shape[k] for k in axes)

    buckets: list[_Bucket] = []
    for axes in sorted(tables, key=lambda axes: -tables[axes].size):
        fits = []
        for i, bucket in enumerate(buckets):
            together = cells(bucket.axes | set(axes))
            connected = set(axes) & bucket.axes or not axes
            if together <= _MAX_CELLS and connected:
                fits.append((together / cells(bucket.axes), i))
        if fits:
            _, i = min(fits)
            buckets[i].axes |= set(axes)
            buckets[i].members.append(axes)
        else:
            buckets.append(_Bucket(set(axes), [axes]))
    bound = 0.0
    for bucket in buckets:
        bucket_axes = sorted(bucket.axes)
        total = np.zeros([domain.shape[k] for k in bucket_axes])
        for axes in bucket.members:
            shape = [domain.shape[k] if k in axes else 1 for k in bucket_axes]
            total += tables[axes].reshape(shape)
        bound += float(total.max())
    return bound


def _largest_replacement(queries: Linear, domain: Domain) -> float | None:
    """Return the largest sum of absolute changes of all answers if one record is replaced by another. Return
    None if there are too many pairs of records to try.
    """
    if domain.size**2 * len(queries) > _MAX_PAIRS:
        return None
    one = np.ones(1)
    f = np.stack([queries.sums(domain, np.array([t]), one) for t in range(domain.size)])
    return max(float(np.abs(f - row).sum(axis=1).max()) for row in f)
