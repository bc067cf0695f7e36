"""Mechanisms that answer a list of linear queries with Laplace or Gaussian noise."""

from __future__ import annotations

from fractions import Fraction
from math import frexp, sqrt
from typing import Any, NamedTuple, Self

import numpy as np

from workbench import noise
from workbench.data import SparseTable, WideTable
from workbench.estimates import NoisyAnswers
from workbench.estimates.release import Release
from workbench.mechanisms.protocol import (
    Mechanism,
    budget_field,
    gaussian_law,
    noise_law_field,
    private_bound,
)
from workbench.privacy import DP, ZCDP, Receipt
from workbench.queries import (
    Linear,
    Marginals,
    Products,
    Recipe,
    Together,
    linear_queries,
    workload_l2_squared,
    workload_sensitivity,
)
from workbench.spaces import Domain
from workbench.value import Float, Int, not_allowed, parameter, value

# Laplace queries

NO_NOISE = 1e-18  # what floats hold of the variance of a noise that is none, in squared steps


class _NoisyValues(NamedTuple):
    values: Float[np.ndarray, " queries"]
    variance: float
    receipt: Receipt


def check_workload(workload: Any) -> str | None:
    """Return a sentence that says what is wrong with the field `workload`, or None if the value is valid."""
    return None if hasattr(workload, "on") else "need a workload or a recipe of one"


@value
class LaplaceQueries(Mechanism):
    """Answer given queries with Laplace noise.

    You give the queries as a workload. For example, the workload `Marginals(2)` asks for a table of counts for
    each pair of attributes. The classes of workloads are in `workbench.queries`.

    If all answers are integers, the field `noise` determines the distribution of the noise. If not, the answers
    always get Laplace noise.

    Guarantee  The release is ε-DP for each unit, for all answers together.
    Assumes    No protected unit changes the counts by more than the table's bound allows. Let l1 be the largest
               total change of the counts that one unit can cause. The sensitivity of the workload is the
               largest total change of all answers that one record can cause. We compute the sensitivity from
               the queries and the domain, without data. One unit changes the answers by at most l1 times the
               sensitivity, in the l1 norm.
    Source     Dwork, McSherry, Nissim & Smith, TCC 2006. Chen, Zhou & Bhowmick use the mechanism in EDBT
               2012, section 2.
    Differs    The noise is a multiple of a small public number, the step of a grid. On this grid, the noise has
               exactly the stated probabilities. If a query has real weights, we round the contribution of each
               record to the grid before we add up the contributions. So the result does not depend on the order
               of the records. The sensitivity includes the rounding. The standard errors of answers do not
               include the rounding. The rounding would matter only for very small noise, with ε in the
               thousands. Chen, Zhou & Bhowmick define neighbours by replacing one record, but use sensitivities
               for adding one record. Our guarantee is always for one unit that is added or removed.
    Cost       Time is that of one pass over the non-empty cells for each set of attributes, plus one pass over
               the queries.
    """

    budget: DP = budget_field(refused="use GaussianQueries")
    workload: Recipe = parameter(check=check_workload, doc="queries to answer")
    noise: str = noise_law_field()
    cite = "chen2012"
    title = "Laplace queries"
    takes_wide = True
    fixed_price = True

    def query_sensitivity(self, domain: Domain) -> float:
        """Return the l1 sensitivity of the workload: the largest l1 norm of the change that one record
        makes to the vector of all answers.
        """
        return workload_sensitivity(self.workload, domain)

    def scale(self, domain: Domain, l1: float = 1) -> float:
        """Return the scale b of the Laplace noise on each answer. `l1` is the largest total change of the
        counts that one protected unit can cause.
        """
        return self.query_sensitivity(domain) * l1 / self.budget.epsilon

    def __call__(
        self, table: SparseTable | WideTable, rng: np.random.Generator | None = None
    ) -> Release:
        """Release a noisy answer to every query of the workload."""
        bound = private_bound(table)
        l1 = bound.l1
        workload = linear_queries(self.workload, table.domain)
        moved = workload_sensitivity(workload, table.domain)
        if not len(workload) or not moved > 0:
            raise not_allowed(self, "workload", "need queries that depend on the tuples")
        measure = self._whole_answers if workload.integer_valued else self._rounded_answers
        values, variance, receipt = measure(table, workload, moved, l1, rng)
        variances = np.full(len(workload), variance)
        answers = NoisyAnswers(table.domain, workload, values, variances)
        return Release(answers, (receipt,), self, bound)

    def _whole_answers(
        self,
        table: SparseTable | WideTable,
        workload: Linear,
        moved: float,
        l1: float,
        rng: np.random.Generator | None,
    ) -> _NoisyValues:
        exact = table.grid_units(workload, 1.0)
        noisy, variance, receipt = noise.add_noise(
            exact,
            l1=Fraction(moved) * Fraction(l1),
            linf=Fraction(workload.max_query) * Fraction(l1),
            epsilon=self.budget.epsilon,
            law=self.noise,
            rng=rng,
        )
        return _NoisyValues(np.asarray(noisy, float), max(float(variance), NO_NOISE), receipt)

    def _rounded_answers(
        self,
        table: SparseTable | WideTable,
        workload: Linear,
        moved: float,
        l1: float,
        rng: np.random.Generator | None,
    ) -> _NoisyValues:
        """Return noisy answers to queries with real weights. For each record, each term of a query is rounded
        to a grid of numbers, by at most half a step. The sensitivity includes this change.
        """
        epsilon = self.budget.epsilon
        step = grid_step(moved * l1 / epsilon, workload.max_term)
        exact = table.grid_units(workload, step)
        moved_steps = Fraction(moved) / Fraction(step) + Fraction(
            int(terms_of_queries(workload).sum()), 2
        )
        l1_steps = moved_steps * Fraction(l1)
        noisy, receipt = noise.laplace(exact, l1=l1_steps, epsilon=epsilon, grid=1.0, rng=rng)
        variance = step**2 * noise.variance(l1_steps, epsilon, "geometric")
        values = np.asarray(noisy, float) * step
        return _NoisyValues(values, max(float(variance), NO_NOISE * step**2), receipt)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It answers all marginals of two attributes."""
        return cls(budget, Marginals(2))


def grid_step(scale: float, largest: float) -> float:
    """Return the step of the grid of numbers to which answers are rounded. The step is a power of two near
    2⁻²⁹ times `scale`, the scale of the noise. It is at least about 2⁻²⁷ times `largest`, the largest term of
    a query.
    """
    return 2.0 ** max(frexp(scale)[1] - 30, frexp(largest)[1] - 27, -1000)


def terms_of_queries(workload: Linear) -> Int[np.ndarray, " queries"]:
    """Return the number of terms of each query. For each record, each term is rounded to a grid of numbers."""
    if isinstance(workload, Together):
        return np.concatenate([terms_of_queries(part) for part in workload.parts])
    if isinstance(workload, Products):
        return np.diff(workload.offsets)
    return np.ones(len(workload), np.int64)


# Gaussian queries


@value
class GaussianQueries(Mechanism):
    """Answer given queries with Gaussian noise.

    You give the queries as a workload. For example, the workload `Marginals(2)` asks for a table of counts for
    each pair of attributes. The classes of workloads are in `workbench.queries`.

    Guarantee  The release is ρ-zCDP for each unit, for all answers together.
    Assumes    No protected unit changes the counts by more than the table's bound allows. Let l1 be the largest
               total change of the counts that one unit can cause. The workload is a matrix with one row per
               query and one column per cell. One record changes the vector of all answers by one column. The
               sensitivity is the largest l2 norm of a column. We compute the sensitivity from the queries and
               the domain, without data. One unit changes the answers by at most l1 times the sensitivity, in
               the l2 norm.
    Source     Canonne, Kamath & Steinke, NeurIPS 2020. The proof is in docs/accounting.md.
    Differs    If a query has real weights, we round the contribution of each record to a public grid of
               numbers, as in LaplaceQueries. Then we add up the contributions. The sensitivity includes the
               rounding.
    Cost       Time is that of one pass over the non-empty cells for each set of attributes, plus one pass over
               the queries.
    """

    budget: ZCDP = budget_field(dp=False, zcdp=True)
    workload: Recipe = parameter(check=check_workload, doc="queries to answer")
    cite = "canonne2020"
    title = "Gaussian queries"
    takes_wide = True

    def query_sensitivity(self, domain: Domain) -> float:
        """Return the l2 sensitivity of the workload: the largest l2 norm of the change that one record
        makes to the vector of all answers.
        """
        return sqrt(workload_l2_squared(self.workload, domain))

    def scale(self, domain: Domain, l1: float = 1) -> float:
        """Return the standard deviation σ of the noise on each answer. `l1` is the largest total change of
        the counts that one protected unit can cause.
        """
        return self.query_sensitivity(domain) * l1 / sqrt(2 * self.budget.rho)

    def __call__(
        self, table: SparseTable | WideTable, rng: np.random.Generator | None = None
    ) -> Release:
        """Release a noisy answer to every query of the workload."""
        bound = private_bound(table)
        l1 = Fraction(bound.l1)
        workload = linear_queries(self.workload, table.domain)
        moved = workload_l2_squared(workload, table.domain) * l1**2
        if not len(workload) or not moved > 0:
            raise not_allowed(self, "workload", "need queries that depend on the tuples")
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
        """Return an example of the mechanism for tests. It answers all marginals of two attributes."""
        return cls(budget, Marginals(2))
