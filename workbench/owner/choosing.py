"""Plans that divide a budget among questions, and the private selection of marginals (tables of counts of
some attributes).

The selection works in rounds. In each round, every set of attributes that may still be selected (an *open*
set) gets a score. The exponential mechanism draws a set, and prefers high scores. The score is Σ |count −
expected| over the cells of the set, minus the total noise to expect if you ask for the counts of these cells.
Here, `expected` is the count that the bank predicts from earlier answers. All numbers are integers. After a
round, a set is no longer open if the selected sets already connect its attributes. So if all sets are pairs,
the selected pairs form a spanning tree. Each round costs its share of the price. A round may use the results
of earlier rounds, because these are released. The costs of the rounds add up.

Sensitivity. One protected unit changes the counts of a set by at most l1 in total, where l1 is the table's
bound. The unit does not change the expected counts or the expected noise. By the triangle inequality, the unit
therefore changes a score by at most l1.
Source     McKenna, Miklau & Sheldon, Journal of Privacy and Confidentiality 2021, section 3 (the tree);
           McKenna, Mullins, Sheldon & Miklau, PVLDB 2022, section 4 (the score).
Differs    AIM (the mechanism in the second source) asks each selected marginal before the next round. Here
           nothing is asked between rounds, so all rounds use the same expected counts. To work like AIM, plan
           one round, ask the marginal, and plan again. Also, AIM weights a score by the set's importance for
           the workload, and here there are no weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, pi, prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import noise
from workbench.compiled import pd
from workbench.estimates import DerivedAnswers
from workbench.estimates.release import Release
from workbench.inference import KernelPCA
from workbench.inference.marginals import marginals_of, used_attributes
from workbench.inference.strategies import (
    L1,
    L2,
    Strategy,
    answers_by_cells,
    optimised_strategy,
)
from workbench.mechanisms.microdata import marginal_counts
from workbench.mechanisms.protocol import private_bound, sensitivity
from workbench.noise.additive import choice_rho
from workbench.owner.bank import empty_table, noise_variance
from workbench.privacy import ADD_REMOVE, DP, ZCDP
from workbench.queries import NamedMarginals, Recipe, linear_queries
from workbench.spaces import Domain
from workbench.value import Bool, Int, counted

if TYPE_CHECKING:
    from workbench.data import SparseTable, WideTable
    from workbench.owner.session import Session


# Plan

OPTIMISED = "optimised"
_SHOWN = 4  # tables that a ledger names


def asked_in_words(queries: Recipe, domain: Domain) -> str:
    """Describe a workload in a few words, for the ledger (the list of all costs). If the queries are all
    cells of some tables, name the attributes of these tables. Otherwise give the number of queries, and name
    the attributes that the queries use.

    >>> from workbench import Marginals
    >>> asked_in_words(Marginals(2), Domain(("Gender", "Age"), (2, 6)))
    'Gender × Age, 12 cells'
    """
    asked = linear_queries(queries, domain)
    sets = marginals_of(asked, domain)
    if sets is None:
        used = np.flatnonzero(used_attributes(asked, domain).any(axis=0))
        names = ", ".join(domain.attributes[k] for k in used)
        return f"{counted(len(asked), 'query', 'queries')} about {names or 'everybody'}"
    sets.sort(key=lambda axes: (len(axes), axes))
    tables = [" × ".join(domain.attributes[k] for k in axes) or "everybody" for axes in sets]
    shown = ", ".join(tables[:_SHOWN])
    if len(tables) > _SHOWN:
        shown += f" and {len(tables) - _SHOWN} more tables"
    return f"{shown}, {counted(len(asked), 'cell')}"


def reconstructed(release: Release, workload: Recipe, strategy: Strategy) -> Release:
    """Compute the answers to a workload by least squares, from the noisy answers to the strategy's queries,
    which were asked instead of the workload.
    """
    answers = release.estimate
    queries = linear_queries(workload, answers.domain)
    if strategy.line is not None and len(answers) > answers.domain.shape[strategy.line]:
        values, errors = answers_by_cells(answers, queries, strategy.line)
    else:
        values, errors = KernelPCA(inf)(answers).answer(queries, error=True)
    estimate = DerivedAnswers(answers.domain, queries, values, errors**2)
    return Release(estimate, tuple(release.ledger), release.mechanism, release.bound)


def free_plan(session: Session, questions: Sequence[Recipe], budget: DP | ZCDP) -> pd.DataFrame:
    """Return a plan, which divides a budget among questions so that the sum of their squared errors is as
    small as possible. The plan has one row per question.

    If a question gets the share ε, its squared error is c/ε², where the constant c depends on the question.
    The sum of the errors is smallest if the shares are proportional to ∛c. If the budget is in ρ, the squared
    error is c/ρ, and the best shares are proportional to √c.
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
        variance = noise_variance(type(budget)(price), strategy.queries, empty)
        expected = sqrt(variance * strategy.per_noise)
        rows.append(
            {
                "question": asked_in_words(question, domain),
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


def place_of(session: Session) -> tuple[Domain, Any]:
    """Return the domain of the bank or, if the bank has none yet, of the session's table. Also return a table
    without records that has this domain.
    """
    if session.bank.domain is not None:
        return session.bank.domain, session.bank.empty_table
    if session.table is None:
        raise ValueError("this session has no domain yet: open it with its table")
    table = session.table
    return table.domain, empty_table(table.domain, private_bound(table))


# Choosing

_MOST_CELLS = 2**22  # of a marginal that may be chosen
_MOST_CODES = 2**14  # of an attribute whose every code is asked
_MOST_RECALLED = (
    2**16
)  # cells of one that is recalled; of others attributes are taken to be independent


def chosen_by_data(
    session: Session,
    questions: Iterable[Recipe],
    budget: DP | ZCDP,
    price: DP | ZCDP,
    rounds: int | None = None,
) -> list[NamedMarginals]:
    """Select marginals (tables of counts by some attributes) from the questions, one per round of the
    exponential mechanism. Return the marginals in the order of the rounds. The price is recorded as spent
    before the first round.
    """
    table = session.table
    if table is None:
        raise ValueError(
            "by = 'data' needs a table, and this session has none. Open it with its table"
        )
    if session.budget.relation != ADD_REMOVE:
        raise ValueError(
            "by = 'data' needs a budget for neighbours that add or remove a unit, but this one is for "
            f"{session.budget.relation}"
        )
    sets = candidate_sets(questions, table.domain)
    most = _most_rounds(sets)
    if rounds is not None and not (isinstance(rounds, int) and 1 <= rounds <= most):
        raise ValueError(f"rounds = {rounds!r} is not allowed: need 1 to {most}")
    rounds = rounds or most
    each = _epsilon_of_a_round(price, rounds)
    moved = sensitivity(table)
    expected = _expected_counts(session, sets)
    drowned = _expected_noise(session, sets, budget, rounds)
    what = f"plan by data: {rounds} of {len(sets)} marginals"
    booking = session.budget.book(_booked(session, price, each, rounds), what)
    scores = np.array([scores_of(table, sets, expected, drowned)])
    chosen: list[int] = []
    receipts = []
    while len(chosen) < rounds and open_sets(sets, chosen).any():
        (i,), receipt = noise.exponential_mechanism(
            scores,
            sensitivity=moved,
            epsilon=each,
            available=open_sets(sets, chosen)[None],
        )
        chosen.append(int(i))
        receipts.append(receipt)
    booking.check(receipts)
    booking.confirm()
    return [NamedMarginals((sets[i],)) for i in chosen]


def scores_of(
    table: SparseTable | WideTable,
    sets: Sequence[tuple[str, ...]],
    expected: Sequence[np.ndarray],
    drowned: Sequence[int],
) -> Int[np.ndarray, " sets"]:
    """Return a score for each set of attributes. The score is the sum of the absolute differences between the
    true and the expected counts, minus the expected noise. The bank computes the expected counts from earlier
    answers.

    Scores are private, because they depend on the true counts. Only the exponential mechanism may use them.
    """
    scores = []
    for names, counts, lost in zip(sets, expected, drowned, strict=True):
        scores.append(int(np.abs(marginal_counts(table, names) - counts).sum()) - lost)
    return np.array(scores, np.int64)


def open_sets(
    sets: Sequence[tuple[str, ...]], chosen: Sequence[int]
) -> Bool[np.ndarray, " sets"]:
    """Return a mask of the sets of attributes that may still be selected. A single attribute may be selected
    once. A larger set may be selected until the selected sets connect all of its attributes.
    """
    group: dict[str, str] = {name: name for names in sets for name in names}
    for i in chosen:
        joined = {group[name] for name in sets[i]}
        group = {
            name: group[sets[i][0]] if own in joined else own for name, own in group.items()
        }
    several = [len({group[name] for name in names}) > 1 for names in sets]
    single = [len(names) == 1 and i not in chosen for i, names in enumerate(sets)]
    return np.logical_or(several, single)


def candidate_sets(questions: Iterable[Recipe], domain: Domain) -> list[tuple[str, ...]]:
    """Return the sets of attributes whose marginals occur in the questions. Leave out sets with too many
    cells.
    """
    sets: dict[tuple[str, ...], None] = {}
    for question in questions:
        queries = linear_queries(question, domain)
        for axes, _ in getattr(queries, "sets", ()):
            cells = prod(domain.shape[k] for k in axes)
            codes = max((domain.shape[k] for k in axes), default=0)
            if axes and codes <= _MOST_CODES and cells <= _MOST_CELLS:
                sets[tuple(domain.attributes[k] for k in axes)] = None
    if not sets:
        raise ValueError("by = 'data' chooses among marginals: need questions about attributes")
    return list(sets)


def _most_rounds(sets: Sequence[tuple[str, ...]]) -> int:
    """Return the number of rounds after which no set of attributes may be selected any more. To compute this
    number, the function selects the smallest possible set in each round.
    """
    chosen: list[int] = []
    while open_sets(sets, chosen).any():
        is_open = open_sets(sets, chosen)
        sizes = [
            len(names) if good else np.inf for names, good in zip(sets, is_open, strict=True)
        ]
        chosen.append(int(np.argmin(sizes)))  # small ones first: they join least
    return len(chosen)


def _epsilon_of_a_round(price: DP | ZCDP, rounds: int) -> float:
    """Return the ε of one round of the selection. This ε is slightly below an equal share of the price, so
    that rounding does not make the sum exceed the price.
    """
    if isinstance(price, DP):
        return price.epsilon * (1 - 1e-12) / rounds
    each = sqrt(8 * price.rho / rounds) * (1 - 1e-12)
    while choice_rho(each) * rounds > price.rho * (1 - 1e-14):
        each *= 1 - 1e-9
    return each


def _booked(session: Session, price: DP | ZCDP, each: float, rounds: int) -> DP | ZCDP:
    """Return the price of the selection, as it is recorded in the budget. If the budget is in zCDP and the
    price is an ε, return the total ρ of the rounds, which is the same for all tables.
    """
    if isinstance(price, DP) and isinstance(session.budget.limit, ZCDP):
        return ZCDP(choice_rho(each) * rounds * (1 + 1e-12))
    return price


def _expected_counts(
    session: Session, sets: Sequence[tuple[str, ...]]
) -> list[Int[np.ndarray, " cells"]]:
    """Return, for each set of attributes, the counts that the bank predicts for the cells of this set from
    earlier answers, as integers. If the bank is empty or the set has too many cells, each attribute has a prior
    distribution. The counts are then the total times the product of these distributions.
    """
    domain, _ = place_of(session)
    answers = session.bank.by_question()
    bank = session.bank.fits(answers) if answers else None
    prior = None if bank is None else bank.prior
    total = (session.bank.total if bank is None else bank.marginals.total) or 0.0
    if prior is None:
        prior = tuple((1 / n,) * n for n in domain.shape)
    expected = []
    for names in sets:
        if bank is not None and prod(domain.project(names).shape) <= _MOST_RECALLED:
            counts = bank.recall(NamedMarginals((names,)), error=False).values
        else:
            counts = np.array([float(total)])
            for name in names:
                counts = np.multiply.outer(counts, prior[domain.axis(name)])
        expected.append(np.rint(np.ravel(counts)).astype(np.int64))
    return expected


def _expected_noise(
    session: Session, sets: Sequence[tuple[str, ...]], budget: DP | ZCDP, rounds: int
) -> list[int]:
    """Return, for each set of attributes, the expected sum of |noise| over the cells of this set, as an
    integer. The function assumes that the budget is divided equally among the rounds.
    """
    _, table = place_of(session)
    cost: DP | ZCDP
    if isinstance(budget, ZCDP):
        cost, share = ZCDP(budget.rho / rounds), sqrt(2 / pi)
    else:
        cost, share = DP(budget.epsilon / rounds), sqrt(1 / 2)
    lost = []
    for names in sets:
        cells = prod(table.domain.project(names).shape)
        one = NamedMarginals((names[:1],))  # any marginal moves alike
        deviation = noise_variance(cost, one, table) ** 0.5
        lost.append(round(share * deviation * cells))
    return lost
