"""Least squares over the cells of few attributes: counts of at least 0 that sum to a public total.

Sums of cells, such as the nodes of a tree or the ends of a cumulative histogram, are then in order by
themselves: isotonic, and at least their parts.
Source     Li, Hay, Rastogi, Miklau & McGregor, PODS 2010; Hay et al., PVLDB 2010, section 4 for order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from workbench.arrays import Bool, Float
from workbench.domain import Domain
from workbench.estimates import NoisyAnswers
from workbench.inference.bank_marginals import used_attributes
from workbench.inference.query_terms import rows_of_cells
from workbench.workload import Margins, Recipe, linear_queries
from workbench.workload.linear import uniform_prior

_MOST_CELLS = 2**12
_MOST_ENTRIES = 2**23
_STEPS = 1000


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Counts of all cells of some attributes, the others spread evenly.

    `converged` says whether the fit stopped before its steps were used up.
    """

    domain: Domain
    axes: tuple[int, ...]
    counts: Float[np.ndarray, " cells"]
    converged: bool

    def answer(self, workload: Recipe) -> Float[np.ndarray, " queries"]:
        """Answers to linear queries."""
        return linear_queries(workload, self.domain).sums_of_margins(_Spread(self))


class _Spread(Margins):
    """Sums over the cells of any attributes, where workloads look for them."""

    def __init__(self, counts: CellCounts):
        self.domain = counts.domain
        self.axes = counts.axes
        self.table = counts.counts.reshape([self.domain.shape[k] for k in counts.axes])

    def dense(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        own = [k for k in self.axes if k in axes]
        table = self.table.sum(axis=tuple(i for i, k in enumerate(self.axes) if k not in axes))
        free = [k for k in axes if k not in self.axes]
        for k in free:
            table = np.multiply.outer(table, uniform_prior(self.domain)[k])
        places = [*own, *free]
        return table.transpose([places.index(k) for k in axes])


@dataclass(frozen=True, eq=False)
class CellProblem:
    """Queries as rows over cells, in units of their noise; `total` is known, or None."""

    domain: Domain
    axes: tuple[int, ...]
    rows: Float[np.ndarray, "queries cells"]
    values: Float[np.ndarray, " queries"]
    deviations: Float[np.ndarray, " queries"]
    total: float | None

    @classmethod
    def of(cls, history: NoisyAnswers, total: float | None) -> CellProblem | None:
        """None where the cells are many."""
        domain = history.domain
        axes = tuple(np.flatnonzero(used_attributes(history.workload, domain).any(0)).tolist())
        shape = [domain.shape[k] for k in axes]
        cells = prod(shape)
        if not axes or cells > _MOST_CELLS or cells * len(history) > _MOST_ENTRIES:
            return None
        deviations = np.sqrt(history.variances)
        rows = rows_of_cells(history.workload, domain, axes) / deviations[:, None]
        return cls(domain, axes, rows, history.values, deviations, total)

    def fit(
        self,
        values: Float[np.ndarray, " queries"] | None = None,
        used: Bool[np.ndarray, " queries"] | None = None,
    ) -> CellCounts:
        """The counts, from other answers or fewer of them if these are given."""
        from scipy.optimize import minimize

        rows = self.rows if used is None else self.rows[used]
        target = (self.values if values is None else values) / self.deviations
        target = target if used is None else target[used]
        if self.total is not None:  # a hundred times as sure as all answers together
            weight = 100 * float(np.linalg.norm(rows)) / rows.shape[1] ** 0.5
            rows = np.vstack([rows, np.full(rows.shape[1], weight)])
            target = np.append(target, weight * self.total)
        few = 2 * len(rows) < rows.shape[1]
        gram = np.empty(0) if few else rows.T @ rows
        linear = rows.T @ target
        guess = max(float(target.max(initial=1.0) * self.deviations.max()), 1.0)
        start = np.full(len(linear), (self.total or guess) / len(linear))

        def objective(x: Float[np.ndarray, " cells"]) -> tuple[float, np.ndarray]:
            product = rows.T @ (rows @ x) if few else gram @ x
            return 0.5 * x @ product - linear @ x, product - linear

        found = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * len(start),
            options={"maxiter": _STEPS, "maxcor": 30, "ftol": 1e-13, "gtol": 1e-9},
        )
        counts = found.x
        if self.total is not None and counts.sum() > 0:
            counts = counts * (self.total / counts.sum())
        return CellCounts(self.domain, self.axes, counts, found.nit < _STEPS)
