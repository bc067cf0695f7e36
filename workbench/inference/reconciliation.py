"""Noisy tables that agree: each sums to the total, and to the same wherever two share attributes.

Source     Qardaji, Yang & Li, SIGMOD 2014, section 4.4.
Differs    the tables' noise may differ; negative cells stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np

from workbench.arrays import Float, Int
from workbench.domain import Domain
from workbench.inference.query_terms import QueryTerms


class CompleteTable(NamedTuple):
    """All cells of a set of attributes: the query of each, its noisy share, and the noise's variance."""

    axes: tuple[int, ...]
    query: Int[np.ndarray, " cells"]
    shares: Float[np.ndarray, "..."]
    variance: float

    def outside(self, common: Sequence[int]) -> tuple[int, ...]:
        """The places of the axes that are not among the common ones."""
        return tuple(i for i, k in enumerate(self.axes) if k not in common)


def reconciled_shares(
    domain: Domain,
    terms: Sequence[QueryTerms],
    shares: Float[np.ndarray, " queries"],
    variances: Float[np.ndarray, " queries"],
) -> Float[np.ndarray, " queries"]:
    """Shares in which all complete tables sum to 1, and agree wherever they share attributes.

    From few shared attributes to many, each margin becomes the mean of all tables' say, weighted
    inversely to its variance, and what a table lacks is spread evenly over its cells: which leaves the
    margins on fewer attributes as they are. An unweighted part of least squares; negative cells stay.
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
    """The sets of which every cell is asked once; their shares are copies."""
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


def _intersections(sets: Iterable[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """All sets, what any of them have in common, and the empty set."""
    closed = set(sets)
    while True:
        pairs = combinations(closed, 2)
        new = {tuple(sorted(set(a) & set(b))) for a, b in pairs} - closed
        if not new:
            return closed | {()}
        closed |= new


def _agree(common: tuple[int, ...], tables: Sequence[CompleteTable]) -> None:
    """Give all tables the same margin on the common attributes, in place."""
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
