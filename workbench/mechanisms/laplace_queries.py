"""Laplace mechanism on linear queries: independent noise on the answer to each.

Guarantee  ε-DP per unit, all answers together.
Assumes    the table's bound. How far a unit moves the answers is the workload's sensitivity, computed
           from queries and domain alone, times the table's l1.
Source     Dwork, McSherry, Nissim & Smith, TCC 2006; Chen, Zhou & Bhowmick, EDBT 2012, section 2.
Differs    noise exactly, on a public grid. Queries of real numbers are rounded to that grid tuple by
           tuple, before they are added up, so that nothing depends on how floating point adds; the
           sensitivity counts it. Standard errors are those of the noise; where that is finer than the
           rounding (ε of thousands), they do not count what rounding adds. The paper states
           indistinguishability (one tuple replaced, their number public) with sensitivities of adding
           one; here it is add-or-remove throughout.
Cost       time of one pass over the non-empty cells for each set of attributes, and of all queries.
"""

from __future__ import annotations

from fractions import Fraction
from math import frexp, sqrt
from typing import ClassVar, Self

import numpy as np

from workbench import noise
from workbench.domain import Domain
from workbench.estimates import NoisyAnswers
from workbench.mechanism import Release, noise_law_field, parameter, pure_budget, sensitivity
from workbench.privacy import DP
from workbench.table import SparseTable
from workbench.value import value
from workbench.workload import (
    Marginals,
    Together,
    Workload,
    linear_queries,
    workload_sensitivity,
)


@value
class LaplaceQueries:
    """Release noisy answers to a workload, which is public: products, tables, marginals or ranges.

    `noise` is the law on answers that are whole numbers; others have Laplace's.
    """

    budget: DP = pure_budget()
    workload: Workload = parameter(
        check=lambda x: None if hasattr(x, "on") else "need a workload or a recipe of one",
        doc="the queries",
    )
    noise: str = noise_law_field()
    takes: ClassVar[type] = SparseTable
    cite: ClassVar[str] = "chen2012"

    def moved(self, domain: Domain) -> float:
        """How far one tuple moves all answers together, in their units."""
        return workload_sensitivity(self.workload, domain)

    def scale(self, domain: Domain, l1: float = 1) -> float:
        """The scale b of the noise on each answer, where a unit moves the table by l1."""
        return self.moved(domain) * l1 / self.budget.epsilon

    def price(self, domain: Domain, error: float, l1: float = 1) -> float:
        """The ε, whatever the budget, at which each answer's noise has standard deviation `error`.

        That of Laplace's noise is √2·b, and b = moved·l1/ε.
        """
        return sqrt(2) * self.moved(domain) * l1 / error

    def grid(self, scale: float, largest: float) -> float:
        """A power of two, about 2⁻²⁹ of the scale, that no term of a query exceeds 2²⁷ times."""
        return 2.0 ** max(frexp(scale)[1] - 30, frexp(largest)[1] - 27, -1000)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release an answer to every query."""
        l1, epsilon = sensitivity(table), self.budget.epsilon
        workload = linear_queries(self.workload, table.domain)
        moved = workload_sensitivity(workload, table.domain)
        if not len(workload) or not moved > 0:
            raise ValueError(
                f"LaplaceQueries.workload = {self.workload!r} is not allowed: need queries that a "
                "tuple can move"
            )
        if workload.integer_valued:
            step = 1.0
            units = workload.grid_units(table.domain, table.keys, table.counts, step)
            noisy, variance, receipt = noise.add_noise(
                units,
                l1=Fraction(moved) * Fraction(l1),
                epsilon=epsilon,
                law=self.noise,
                rng=rng,
            )
        else:
            step = self.grid(moved * l1 / epsilon, workload.max_term)
            units = workload.grid_units(table.domain, table.keys, table.counts, step)
            steps = Fraction(moved) / Fraction(step) + Fraction(_terms(workload), 2)
            noisy, receipt = noise.laplace(
                units, l1=steps * Fraction(l1), epsilon=epsilon, grid=1.0, rng=rng
            )
            variance = step**2 * noise.variance(steps * Fraction(l1), epsilon, "geometric")
        values = np.asarray(noisy, float) * step
        known = max(
            float(variance), 1e-18 * step**2
        )  # what floats hold of a noise that is none
        estimate = NoisyAnswers(table.domain, workload, values, np.full(len(workload), known))
        return Release(estimate, (receipt,), self, table.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """All counts of two attributes."""
        return cls(budget, Marginals(2))


def _terms(workload) -> int:
    """How many terms are rounded, each by half a step at most."""
    if isinstance(workload, Together):
        return sum(map(_terms, workload.parts))
    return len(getattr(workload, "times", range(len(workload))))
