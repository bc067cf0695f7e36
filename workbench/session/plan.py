"""What to ask, and how: better questions than those that are asked, and shares of a budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import noise
from workbench.arrays import Float
from workbench.domain import Domain
from workbench.inference import KernelPCA
from workbench.inference.strategies import L1, L2, Strategy, optimised_strategy
from workbench.libraries import pd
from workbench.mechanism import Release, sensitivity
from workbench.mechanisms import LaplaceQueries
from workbench.privacy import DP, ZCDP
from workbench.workload import NamedMarginals, Workload, linear_queries

if TYPE_CHECKING:
    from workbench.session.session import Session

OPTIMISED = "optimised"
_MOST_TABLE = 2**22  # cells of a marginal that may be chosen


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


def reconstructed(release: Release, workload: Workload, strategy: Strategy) -> Reconstruction:
    """The workload's answers, by least squares from those to the strategy's queries."""
    posterior = KernelPCA(inf)(release.estimate)
    values, errors = posterior.answer(workload, error=True)
    return Reconstruction(values, errors, release, strategy)


def strategy_for(workload: Workload, domain: Domain, rho: float | None) -> Strategy:
    """The better set of questions, for Gaussian noise if a ρ is spent, else for Laplace's."""
    return optimised_strategy(workload, domain, L1 if rho is None else L2)


def free_plan(
    session: Session, questions: Sequence[Workload], budget: DP | ZCDP
) -> pd.DataFrame:
    """How to share a budget among questions so that their squared errors add up to the least.

    An error falls as c/ε² or as c/ρ, so that shares are as ∛c or as √c.
    """
    is_zcdp = isinstance(budget, ZCDP)
    whole = budget.rho if is_zcdp else budget.epsilon
    domain, empty = _place(session)
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
    return pd.DataFrame(rows)


def expected_error(strategy: Strategy, empty, price: float, is_zcdp: bool) -> float:
    """The root of the mean expected squared error, by the noise that would be drawn."""
    from workbench.mechanisms import GaussianQueries

    mechanism: Any = LaplaceQueries(DP(price), strategy.queries)
    if is_zcdp:
        mechanism = GaussianQueries(ZCDP(price), strategy.queries)
    variance = float(mechanism(empty).estimate.variances[0])
    return sqrt(variance * strategy.per_noise)


def plan_by_data(
    session: Session, questions: Iterable[Workload], budget: DP | ZCDP, epsilon: float | None
) -> pd.DataFrame:
    """Which marginals the table itself speaks for, by the exponential mechanism.

    A score is how many people a model of independent attributes, from the bank alone, puts into wrong
    cells: Σ |count − expected|, of whole numbers, which a unit moves by its l1 at most. As many are chosen
    as attributes less one, each for its part of ε, without regard to what was chosen before.
    Source     McKenna, Miklau & Sheldon, Journal of Privacy and Confidentiality 2021, section 3.
    """
    table = session._table
    if epsilon is None:
        raise ValueError(
            "by = 'data' reads the table, and costs what epsilon says, before any question is asked: "
            "state epsilon=; it is booked at once"
        )
    if table is None:
        raise ValueError(
            "by = 'data' needs the table, and this session has none: open it with one"
        )
    domain = table.domain
    sets = _sets_of(questions, domain)
    rounds = min(len(sets), max(1, len(domain.shape) - 1))
    expected = _expected_counts(session, domain, sets)
    booking = session.book(DP(epsilon), f"plan by data: {rounds} of {len(sets)} marginals")
    scores = np.array(
        [
            int(np.abs(_counts(table, names) - counts).sum())
            for names, counts in zip(sets, expected, strict=True)
        ]
    )
    available = np.ones((1, len(sets)), bool)
    chosen: list[int] = []
    receipts = []
    for _ in range(rounds):
        (i,), receipt = noise.exponential_mechanism(
            scores[None],
            sensitivity=sensitivity(table),
            epsilon=epsilon * (1 - 1e-12) / rounds,
            available=available,
        )
        chosen.append(int(i))
        receipts.append(receipt)
        available = available.copy()
        available[0, i] = False
    booking.check(receipts)
    booking.confirm()
    return free_plan(session, [NamedMarginals((sets[i],)) for i in chosen], budget)


def _place(session: Session) -> tuple[Domain, Any]:
    """The domain and a table without records: of the bank, or of the table that will be asked."""
    if session.domain is not None:
        return session.domain, session._empty_table
    if session._table is None:
        raise ValueError("this session has no domain yet: open it with its table")
    table = session._table
    return table.domain, type(table).from_keys(table.domain, [], [], table.bound)


def _sets_of(questions: Iterable[Workload], domain: Domain) -> list[tuple[str, ...]]:
    sets: dict[tuple[str, ...], None] = {}
    for question in questions:
        queries = linear_queries(question, domain)
        for axes, _ in getattr(queries, "sets", ()):
            cells = prod(domain.shape[k] for k in axes)
            if axes and cells <= _MOST_TABLE:
                sets[tuple(domain.attributes[k] for k in axes)] = None
    if not sets:
        raise ValueError("by = 'data' chooses among marginals: need questions about attributes")
    return list(sets)


def _counts(table, names: tuple[str, ...]) -> np.ndarray:
    """All cells of a marginal, exactly."""
    margin = table.project(names)
    counts = np.zeros(margin.domain.size, np.int64)
    counts[margin.keys] = margin.counts
    return counts


def _expected_counts(session: Session, domain: Domain, sets) -> list[np.ndarray]:
    """Whole numbers, from what was bought; 0 everywhere where nothing tells how many there are."""
    answers = session._answers()
    prior = None
    total = session.total or 0.0
    if answers:
        bank = session._answer_bank(answers)
        prior = bank.prior
        total = bank.marginals.total or 0.0
    if prior is None:
        prior = tuple((1 / n,) * n for n in domain.shape)
    expected = []
    for names in sets:
        product = np.array([float(total)])
        for name in names:
            product = np.multiply.outer(product, prior[domain.axis(name)])
        expected.append(np.rint(product.ravel()).astype(np.int64))
    return expected
