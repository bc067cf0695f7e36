"""What to ask, and how: better questions than those that are asked, and shares of a budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Float
from workbench.domain import Domain
from workbench.inference import KernelPCA
from workbench.inference.cell_strategies import answers_by_cells
from workbench.inference.strategies import L1, L2, Strategy, optimised_strategy
from workbench.libraries import pd
from workbench.mechanism import Release
from workbench.mechanisms import LaplaceQueries
from workbench.privacy import DP, ZCDP
from workbench.workload import Recipe, linear_queries

if TYPE_CHECKING:
    from workbench.session.recall import Recall

OPTIMISED = "optimised"


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Answers from a better set of questions. It unpacks to `values, errors`.

    Parameters
    ----------
    values, errors : float64[queries]
        Of the workload, in counts; errors are standard errors of the noise, nothing else.
    release : Release
        The answers to what was asked instead; the bank holds them.
    strategy : Strategy
        What was asked, and what it was expected to give.
    """

    values: Float[np.ndarray, " queries"]
    errors: Float[np.ndarray, " queries"]
    release: Release
    strategy: Strategy

    def __iter__(self) -> Iterator[Any]:
        return iter((self.values, self.errors))

    @property
    def privacy(self) -> DP | ZCDP:
        """What it cost."""
        return self.release.privacy


def reconstructed(release: Release, workload: Recipe, strategy: Strategy) -> Reconstruction:
    """The workload's answers, by least squares from those to the strategy's queries."""
    answers = release.estimate
    if strategy.line is not None and len(answers) > answers.domain.shape[strategy.line]:
        queries = linear_queries(workload, answers.domain)
        values, errors = answers_by_cells(answers, queries, strategy.line)
    else:
        values, errors = KernelPCA(inf)(answers).answer(workload, error=True)
    return Reconstruction(values, errors, release, strategy)


def strategy_for(workload: Recipe, domain: Domain, rho: float | None) -> Strategy:
    """The better set of questions, for Gaussian noise if a ρ is spent, else for Laplace's."""
    return optimised_strategy(workload, domain, L1 if rho is None else L2)


def free_plan(session: Recall, questions: Sequence[Recipe], budget: DP | ZCDP) -> pd.DataFrame:
    """How to share a budget among questions so that their squared errors add up to the least.

    An error falls as c/ε² or as c/ρ, so that shares are as ∛c or as √c.
    """
    is_zcdp = isinstance(budget, ZCDP)
    whole = budget.rho if isinstance(budget, ZCDP) else budget.epsilon
    domain, empty = place_of(session)
    strategies = [optimised_strategy(q, domain, L2 if is_zcdp else L1) for q in questions]
    worths = np.array([s.squared_error for s in strategies])
    shares = np.sqrt(worths) if is_zcdp else np.cbrt(worths)
    shares = shares / shares.sum() * (1 - 1e-12)  # sums of floats stay below the whole
    rows = []
    for question, strategy, share in zip(questions, strategies, shares, strict=True):
        price = float(share * whole)
        expected = expected_error(strategy, empty, price, is_zcdp)
        rows.append(
            {
                "question": repr(question),
                "rho" if is_zcdp else "epsilon": price,
                "error": expected,
                "plain": expected * sqrt(strategy.plain / strategy.squared_error),
                "strategy": strategy.kind,
                "share of bound": strategy.share,
            }
        )
    plan = pd.DataFrame(rows)
    plan.attrs["questions"] = tuple(questions)
    return plan


def expected_error(strategy: Strategy, empty: Any, price: float, is_zcdp: bool) -> float:
    """The root of the mean expected squared error, by the noise that would be drawn."""
    from workbench.mechanisms import GaussianQueries

    mechanism: Any = LaplaceQueries(DP(price), strategy.queries)
    if is_zcdp:
        mechanism = GaussianQueries(ZCDP(price), strategy.queries)
    variance = float(mechanism(empty).estimate.variances[0])
    return sqrt(variance * strategy.per_noise)


def place_of(session: Recall) -> tuple[Domain, Any]:
    """The domain and a table without records: of the bank, or of the table that will be asked."""
    if session.domain is not None:
        return session.domain, session._empty_table
    if session._table is None:
        raise ValueError("this session has no domain yet: open it with its table")
    table = session._table
    return table.domain, type(table).from_keys(table.domain, [], [], table.bound)
