"""Gaussian mechanism on linear queries: independent discrete Gaussian noise on the answer to each.

Guarantee  ρ-zCDP per unit, all answers together.
Assumes    the table's bound. How far a tuple moves the answers in the l2 norm is the largest column of the
           workload, computed from queries and domain alone; a unit moves them by its l1 times that.
Source     Canonne, Kamath & Steinke, NeurIPS 2020; proved in docs/accounting.md.
Differs    as in LaplaceQueries, queries of real numbers are rounded to a public grid tuple by tuple, before
           they are added up; the sensitivity counts it.
Cost       time of one pass over the non-empty cells for each set of attributes, and of all queries.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Self

import numpy as np

from workbench import noise
from workbench.domain import Domain
from workbench.estimates import NoisyAnswers
from workbench.mechanism import (
    ZCDP,
    Mechanism,
    Release,
    gaussian_budget,
    gaussian_law,
    private_bound,
)
from workbench.mechanisms.laplace_queries import (
    NO_NOISE,
    check_workload,
    grid_step,
    terms_of_queries,
)
from workbench.table import SparseTable
from workbench.value import not_allowed, parameter, value
from workbench.workload import Marginals, Recipe, linear_queries, workload_l2_squared


@value
class GaussianQueries(Mechanism):
    """Release noisy answers to a workload, which is public: products, tables, marginals or ranges."""

    budget: ZCDP = gaussian_budget()
    workload: Recipe = parameter(check=check_workload, doc="the queries")
    cite = "canonne2020"
    title = "Gaussian queries"
    accepts_zcdp = True
    accepts_dp = False

    def query_sensitivity(self, domain: Domain) -> float:
        """How far one tuple moves all answers together in the l2 norm, in their units."""
        return sqrt(workload_l2_squared(self.workload, domain))

    def scale(self, domain: Domain, l1: float = 1) -> float:
        """σ of the noise on each answer, where a unit moves the table by l1."""
        return self.query_sensitivity(domain) * l1 / sqrt(2 * self.budget.rho)

    def rho_for(self, domain: Domain, error: float, l1: float = 1) -> float:
        """The ρ, whatever the budget, at which each answer's noise has standard deviation `error`."""
        return (self.query_sensitivity(domain) * l1 / error) ** 2 / 2

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release an answer to every query."""
        bound = private_bound(table)
        l1 = Fraction(bound.l1)
        workload = linear_queries(self.workload, table.domain)
        moved = workload_l2_squared(workload, table.domain) * l1**2
        if not len(workload) or not moved > 0:
            raise not_allowed(self, "workload", "need queries that a tuple can move")
        step = 1.0
        if not workload.integer_valued:
            step = grid_step(sqrt(moved / 2 / Fraction(self.budget.rho)), workload.max_term)
            # each term is rounded by half a step at most
            rounding = Fraction(int((terms_of_queries(workload) ** 2).sum()), 4) * l1**2
            moved = noise.l2_of_sum(moved / Fraction(step) ** 2, rounding)
        exact = table.grid_units(workload, step)
        noisy, receipt = noise.gaussian(exact, l2_squared=moved, rho=self.budget.rho, rng=rng)
        variance = max(gaussian_law(moved, self.budget).variance, NO_NOISE) * step**2
        values = np.asarray(noisy, float) * step
        variances = np.full(len(workload), variance)
        answers = NoisyAnswers(table.domain, workload, values, variances)
        return Release(answers, (receipt,), self, bound)

    @classmethod
    def example(cls, budget: ZCDP) -> Self:
        """All counts of two attributes."""
        return cls(budget, Marginals(2))
