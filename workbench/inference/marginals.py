"""Marginals of an answer bank, which are noisy tables of counts. The tables are adjusted so that they agree
with each other.

Adjustment:

Source     Qardaji, Yang & Li, SIGMOD 2014, section 4.4.
Differs    Our tables may have noise of different variance. Negative cells remain negative.

Marginals of a bank: the complete tables are adjusted first. Then the marginal of each attribute is computed
from the complete table with the least noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.query_terms import QueryTerms, terms_by_axes
from workbench.queries import (
    Linear,
    Products,
    TableQueries,
    Together,
)
from workbench.spaces import Domain
from workbench.value import Bool, Float, Int

# Reconciliation


class CompleteTable(NamedTuple):
    """Noisy table over a set of attributes. For each cell, the object contains the number of the query that
    asked for it, its noisy share of the total, and the variance of the noise.
    """

    axes: tuple[int, ...]
    query: Int[np.ndarray, " cells"]
    shares: Float[np.ndarray, "..."]
    variance: float

    def outside(self, common: Sequence[int]) -> tuple[int, ...]:
        """Return the positions of the table's axes that are not in `common`."""
        return tuple(i for i, k in enumerate(self.axes) if k not in common)


def reconciled_shares(
    domain: Domain,
    terms: Sequence[QueryTerms],
    shares: Float[np.ndarray, " queries"],
    variances: Float[np.ndarray, " queries"],
) -> Float[np.ndarray, " queries"]:
    """Adjust noisy shares so that every complete table adds up to 1, and so that tables with common
    attributes agree on these attributes.

    The function goes through the sets of common attributes from small to large. For each set, it computes the
    mean of the marginals of all tables, weighted by inverse variance. Then it changes every table so that it
    has this marginal. The change is divided evenly among the cells that add up to a cell of the marginal.
    Marginals on fewer attributes do not change in this step. Negative cells remain negative.
    """
    tables = complete_tables(domain, terms, shares, variances)
    for common in sorted(_intersections(table.axes for table in tables), key=len):
        _agree(common, [table for table in tables if set(common) <= set(table.axes)])
    reconciled = shares.copy()
    for table in tables:
        reconciled[table.query] = table.shares.ravel()
    return reconciled


def complete_tables(
    domain: Domain,
    terms: Sequence[QueryTerms],
    shares: Float[np.ndarray, " queries"],
    variances: Float[np.ndarray, " queries"],
) -> list[CompleteTable]:
    """Return the complete tables, one for each set of attributes whose cells were all asked exactly once.
    Changes of these tables do not change `shares`.
    """
    tables = []
    for part in terms:
        shape = [domain.shape[k] for k in part.axes]
        if part.cells is None or len(part.cells) != prod(shape):
            continue
        if (np.bincount(part.cells, minlength=prod(shape)) == 1).all():
            query = np.empty(len(part.cells), np.int64)
            query[part.cells] = part.query
            own_shares = shares[query].reshape(shape)
            tables.append(CompleteTable(part.axes, query, own_shares, variances[query].mean()))
    return tables


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


def _intersections(sets: Iterable[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Return the given sets, all of their intersections, and the empty set."""
    closed = set(sets)
    while True:
        pairs = combinations(closed, 2)
        new = {tuple(sorted(set(a) & set(b))) for a, b in pairs} - closed
        if not new:
            return closed | {()}
        closed |= new


def _agree(common: tuple[int, ...], tables: Sequence[CompleteTable]) -> None:
    """Change the tables in place, so that all have the same marginal on the common attributes."""
    margins = [table.shares.sum(axis=table.outside(common)) for table in tables]
    target: Float[np.ndarray, "..."] | float = 1.0
    if common and margins:
        weights = []
        for table in tables:
            cells = prod(table.shares.shape[i] for i in table.outside(common))
            weights.append(1 / (table.variance * cells))
        target = np.average(margins, axis=0, weights=weights)
    for table, margin in zip(tables, margins, strict=True):
        cells = table.shares.size / max(1, np.size(margin))
        shape = [
            n if k in common else 1 for n, k in zip(table.shares.shape, table.axes, strict=True)
        ]
        table.shares[...] += np.reshape((target - margin) / cells, shape)


# Bank marginals

_UNLIKELY = 6.0  # standard errors between a declared total and what tables sum to


class BankMarginals:
    """Marginals that an answer bank contains: tables of noisy counts for the sets of attributes whose cells
    were all asked.

    Parameters
    ----------
    history : NoisyAnswers
        Noisy answers of the bank.
    total : float, optional
        Number of records, if it is known.
    """

    def __init__(self, history: NoisyAnswers, total: float | None = None):
        self.history = history
        constants = np.zeros(len(history))
        self.terms = list(terms_by_axes(history.workload, history.domain, constants))
        tables = complete_tables(history.domain, self.terms, history.values, history.variances)
        sums = [float(table.shares.sum()) for table in tables]
        weights = [1 / (table.variance * table.shares.size) for table in tables]
        standard_errors = np.power(weights, -0.5)
        self.sums = tuple(zip(sums, standard_errors, strict=True))
        self.declared = total
        self.summed = float(np.average(sums, weights=weights)) if tables else None
        self.error = sum(weights) ** -0.5 if tables else np.inf
        positive = self.summed is not None and self.summed > self.error
        self.total = total if total is not None else (self.summed if positive else None)

    @property
    def complaint(self) -> str:
        """Sentence about a contradiction between the given total and the answers. If no total is given, the
        sentence is about a contradiction between the answers. It is "" if there is none.
        """
        if self.summed is None:
            return ""
        if self.declared is None:
            apart = [abs(own - self.summed) / error for own, error in self.sums]
            if max(apart) <= _UNLIKELY:
                return ""
            own, error = self.sums[int(np.argmax(apart))]
            return (
                f"a table sums to {own:.6g} ± {error:.2g}, all together to {self.summed:.6g}: the answers "
                "contradict each other"
            )
        if abs(self.summed - self.declared) <= _UNLIKELY * self.error:
            return ""
        return (
            f"the declared total of {self.declared:g} does not fit the answers, whose tables sum to "
            f"{self.summed:.6g} ± {self.error:.2g}"
        )

    def prior(self) -> tuple[tuple[float, ...], ...] | None:
        """Return one vector of weights per attribute, with one weight per value. If no table determines the
        weights of an attribute, all of them are equal. Return None if there is no table or no total.

        If a share is smaller than the standard deviation of its noise, or smaller than 1/total, it is raised
        to the larger of these two numbers. A weight of 0 would exclude the value from all results.
        """
        if self.total is None:
            return None
        variances = self.history.variances / self.total**2
        domain = self.history.domain
        shares = reconciled_shares(
            domain, self.terms, self.history.values / self.total, variances
        )
        vectors = [np.full(n, 1 / n) for n in domain.shape]
        least = np.full(len(domain.shape), np.inf)
        for table in complete_tables(domain, self.terms, shares, variances):
            for k in table.axes:
                outside = table.outside((k,))
                variance = table.variance * prod(table.shares.shape[i] for i in outside)
                if variance < least[k]:
                    least[k] = variance
                    floor = max(variance**0.5, 1 / self.total)
                    margin = table.shares.sum(axis=outside)
                    vectors[k] = np.maximum(margin, floor)
        return tuple(tuple((v / v.sum()).tolist()) for v in vectors)


def used_attributes(workload: Linear, domain: Domain) -> Bool[np.ndarray, "queries attributes"]:
    """Return a mask with one row per query, which is True for the attributes that the query uses."""
    used = np.zeros((len(workload), len(domain.shape)), bool)
    if isinstance(workload, Together):
        parts = [used_attributes(part, domain) for part in workload.parts]
        return np.concatenate([used[:0], *parts])
    if isinstance(workload, TableQueries):
        for names, _, queries in workload.numbered_groups():
            for name in names:
                used[queries, domain.axis(name)] = True
        return used
    assert isinstance(workload, Products)
    np.logical_or.at(used, workload.query, workload.which > 0)
    return used


def largest_sets(used: Bool[np.ndarray, "queries attributes"]) -> Float[np.ndarray, " queries"]:
    """Return one number per query, which identifies its set of attributes. Queries on the same attributes
    have the same number. The number is −1 if another query uses all attributes of the query and more.
    """
    sets, place = np.unique(used, axis=0, return_inverse=True)
    inside = [
        any((row <= other).all() and (row != other).any() for other in sets) for row in sets
    ]
    return np.where(np.array(inside, bool)[place.ravel()], -1, place.ravel())


def is_held(
    used: Bool[np.ndarray, "queries attributes"], bought: Bool[np.ndarray, "b attributes"]
) -> Bool[np.ndarray, " queries"]:
    """Return a mask that is True for a question if a single past query uses all attributes of the question."""
    sets = np.unique(bought, axis=0)
    own, place = np.unique(used, axis=0, return_inverse=True)
    held = [bool((row <= sets).all(axis=1).any()) for row in own]
    return np.array(held, bool)[place.ravel()]
