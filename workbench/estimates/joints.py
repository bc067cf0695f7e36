"""Joint counts of a few attributes, where workloads look for the sums of a table; and squared queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.arrays import Float
from workbench.value import sealed
from workbench.workload import Linear, Margins, Products, TableQueries, Together


class Joints(Margins):
    """Estimated joints of reports, made when they are first needed."""

    def __init__(self, reports: Any):
        self.reports = reports
        self.domain = reports.domain
        self._made: dict[tuple[int, ...], np.ndarray] = {}

    def dense(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        """The estimated table over some axes, computed once."""
        if axes not in self._made:
            self._made[axes] = self._estimate(axes)
        return self._made[axes]

    def _estimate(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        if not axes:
            return np.asarray(float(self.reports.total))
        return self.reports.joint([self.domain.attributes[k] for k in axes])


class ClippedJoints(Joints):
    """The same, without negative cells."""

    def _estimate(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        return clip_to_total(super()._estimate(axes), self.reports.total)


def clip_to_total(joint: Float[np.ndarray, "..."], total: float) -> Float[np.ndarray, "..."]:
    """Negative cells as 0, all scaled to `total`; a table without positive cells says nothing: flat."""
    joint = np.maximum(joint, 0)
    positive = joint.sum()
    if positive > 0:
        return joint * (total / positive)
    return np.full(joint.shape, total / joint.size)


def squared_queries(
    queries: Linear,
) -> tuple[np.ndarray, Linear]:
    """Which queries are a single product or table, and their squares; other squares are wrong."""
    if isinstance(queries, Together):
        are_single, parts = zip(*map(squared_queries, queries.parts), strict=True)
        return np.concatenate(are_single), Together(parts)
    if isinstance(queries, TableQueries):
        groups = tuple((names, sealed(tables**2)) for names, tables in queries.groups)
        return np.ones(len(queries), bool), TableQueries(groups, queries.order)
    assert isinstance(queries, Products)
    single = np.diff(queries.offsets) <= 1
    factors = tuple(sealed(factor**2) for factor in queries.factors)
    squares = Products(
        queries.attributes, factors, queries.which, queries.times**2, queries.offsets
    )
    return single, squares
