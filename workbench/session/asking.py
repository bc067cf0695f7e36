"""Questions to a session's table, for a price, and plans of what to ask."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.enclosures import round_up
from workbench.estimates import NoisyAnswers
from workbench.libraries import pd
from workbench.mechanism import Release
from workbench.mechanisms import GaussianQueries, LaplaceQueries
from workbench.privacy import ADD_REMOVE, DP, ZCDP, exact_rho
from workbench.session import file as session_file
from workbench.session.booking import refuse_unpaid, stays_spent
from workbench.session.choosing import chosen_by_data
from workbench.session.plan import (
    OPTIMISED,
    Reconstruction,
    free_plan,
    reconstructed,
    strategy_for,
)
from workbench.session.recall import Recall
from workbench.session.spending import now
from workbench.workload import Recipe, Workload, as_workload, serialise

if TYPE_CHECKING:
    import sqlite3


class Asking(Recall):
    """Answers that are bought from the session's table, and enter its bank."""

    def ask(
        self,
        workload: Recipe | Mapping[str, Any] | str | Sequence[Any],
        epsilon: float | None = None,
        *,
        rho: float | None = None,
        strategy: str | None = None,
    ) -> Release | Reconstruction:
        """Spend ε and answer the workload with Laplace noise; the bank keeps the answers as well.

        From a budget of zCDP, spend ρ and answer with Gaussian noise; or spend the ρ that Laplace noise
        of some ε costs on these queries, which is less than ε·tanh(ε/2) where a unit is in many of them.

        Decimals decide whether the budget suffices: ten times 0.1 fit in a budget of 1. The last of them is
        drawn for the 0.09999999999999995 that remain, so that the exact sum stays within the budget.

        Parameters
        ----------
        workload : Workload, or queries by label
            Queries that are sums of cells with weights, such as `Ranges` or `Marginals`; by label as
            `Release.answer` takes them.
        epsilon : float, optional
            What the answers cost a unit.
        rho : float, optional
            The same in zCDP; one of the two.
        strategy : "optimised", optional
            Ask a better set of queries in its place, and reconstruct; `plan` tells the expected error.

        Returns
        -------
        Release
            Its estimate are the `NoisyAnswers`, in counts; with a strategy a `Reconstruction`, which
            unpacks to values and errors.

        Raises
        ------
        ValueError
            If there is no table, the workload does not fit it, or less than is asked for remains;
            then nothing is spent.
        """
        if self._table is None:
            raise ValueError("this session has no table to ask: open it with one, or recall")
        queries = as_workload(self._table.domain, workload)
        if strategy is not None:
            if strategy != OPTIMISED:
                raise ValueError(f"strategy = {strategy!r} is not allowed: need {OPTIMISED!r}")
            found = strategy_for(queries, self._table.domain, rho)
            answered: Any = self.ask(found.queries, epsilon, rho=rho)
            return reconstructed(answered, queries, found)
        if self.relation != ADD_REMOVE:
            raise ValueError(
                f"answers are about neighbours that add or remove a unit, this budget about {self.relation}"
            )
        mechanism = _queries(queries, epsilon, rho)
        mechanism = replace(mechanism, budget=self.payable(mechanism.budget))
        # On no data: what is refused at all is refused before it is paid for.
        tried = mechanism(self._empty_table)
        trial = tried.estimate
        cost = mechanism.budget
        if isinstance(self.budget, ZCDP) and isinstance(cost, DP):
            cost = ZCDP(round_up(exact_rho(tried.ledger)[0]))  # the same of any table
        places, question = self._spend(cost, repr(queries), trial)
        release = mechanism(self._table)
        try:
            with self._file.transaction() as db:
                values = release.estimate.values.tolist()
                rows = zip(values, places, strict=True)
                db.executemany("UPDATE bank SET value = ? WHERE place = ?", rows)
                texts = serialise.to_text(trial.workload)
                answers = zip(texts, trial.variances.tolist(), values, strict=True)
                session_file.seal(db, question, list(answers))
        except (OSError, ValueError) as e:
            warnings.warn(f"answered and paid for, but not kept in the bank: {e}", stacklevel=2)
        return release

    def plan(
        self,
        questions: Workload | Mapping[str, Any] | str | Iterable[Any],
        budget: DP | ZCDP | float | None = None,
        *,
        rho: float | None = None,
        by: str | None = None,
        epsilon: float | None = None,
        rounds: int | None = None,
    ) -> pd.DataFrame:
        """How to share a budget among questions, what each is then expected to err by, and how to ask.

        Free: it uses questions, domain, bound and budget, and nothing else. With `by="data"` the table
        chooses some of the questions' marginals first, those that the bank knows least, by the
        exponential mechanism (`session.choosing`), for a price of its own, which is booked before
        anything is drawn.

        Parameters
        ----------
        questions : Workload or query by label, or several
            What is wanted.
        budget : DP, ZCDP or float
            What all of it may cost; a float is an ε.
        rho : float, optional
            The budget as a ρ; with `by="data"` and a budget, what the choice costs.
        by : "data", optional
            See above.
        epsilon : float, optional
            What the choice costs.
        rounds : int, optional
            How many marginals the table chooses; by default as many as join all attributes.

        Returns
        -------
        pandas.DataFrame
            A row a question: its price, the `error` expected with `strategy="optimised"`, that of the
            `plain` questions, and the share of the singular-value bound that is reached. Its
            `attrs["questions"]` are the workloads, to be asked.

        Raises
        ------
        ValueError
            For another `by`, no table where it is needed, or a price that the budget does not pay.
        """
        one = hasattr(questions, "on") or isinstance(questions, Mapping | str)
        several: Any = [questions] if one else questions
        domain = self.domain if self._table is None else self._table.domain
        asked = [as_workload(domain, question) for question in several]
        if not asked:
            raise ValueError("questions = [] is not allowed: need at least one")
        if by not in (None, "data"):
            raise ValueError(f"by = {by!r} is not allowed: need 'data'")
        if by is None and (epsilon is not None or rounds is not None):
            raise ValueError("epsilon and rounds are those of by = 'data'")
        if by is None:
            return free_plan(self, asked, _whole(budget, rho))
        whole = _whole(budget, rho if budget is None else None)
        price = self.payable(_price_of_choosing(epsilon, None if budget is None else rho))
        chosen: Any = chosen_by_data(self, asked, whole, price, rounds)
        return free_plan(self, chosen, whole)

    def _spend(self, cost: DP | ZCDP, text: str, trial: NoisyAnswers) -> tuple[range, int]:
        """Write a spend, and make room for the answers: their places, and the question's number."""
        with self._file.spending(stays_spent([cost], self.budget)) as db:
            try:
                left = self._remaining(db)
                price, delta = refuse_unpaid(cost, left, self.budget)
            except ValueError as e:
                raise ValueError(f"{e}. {_what_recall_answers(db)}") from None
            if self._stated_bank:
                self._belong_to(self._file.begin_bank(db, self._stated_bank))
            question = session_file.spend(
                db,
                time=now(),
                asked=text,
                queries=len(trial),
                deviation=float(trial.deviations_in_counts.max()),
                delta=float(delta),
                **{self._price: float(price)},
            )
            first = db.execute("SELECT coalesce(max(place), 0) + 1 FROM bank").fetchone()[0]
            places = range(first, first + len(trial))
            rows = zip(
                places, serialise.to_text(trial.workload), trial.variances.tolist(), strict=True
            )
            db.executemany(f"INSERT INTO bank VALUES (?, {question}, ?, ?, zeroblob(8))", rows)
        self._stated_bank = {}
        return places, question


def _whole(budget: DP | ZCDP | float | None, rho: float | None) -> DP | ZCDP:
    """What all questions may cost."""
    if rho is not None and budget is None:
        return ZCDP(rho)
    if rho is not None or budget is None:
        raise ValueError("need budget or rho, what all of it may cost: one of the two")
    return budget if isinstance(budget, DP | ZCDP) else DP(budget)


def _price_of_choosing(epsilon: float | None, rho: float | None) -> DP | ZCDP:
    """What it costs that the table chooses."""
    if epsilon is not None and rho is None:
        return DP(epsilon)
    if rho is not None and epsilon is None:
        return ZCDP(rho)
    raise ValueError(
        "by = 'data' reads the table, and costs what epsilon or rho says, before any question is "
        "asked: state one of them; it is booked at once"
    )


def _queries(workload: Recipe, epsilon: float | None, rho: float | None) -> Any:
    """The mechanism that answers at a price of ε or of ρ."""
    if epsilon is not None and rho is None:
        return LaplaceQueries(DP(epsilon), workload)
    if epsilon is not None or rho is None:
        raise ValueError("need epsilon or rho, what the answers cost a unit: one of the two")
    return GaussianQueries(ZCDP(rho), workload)


def _what_recall_answers(db: sqlite3.Connection) -> str:
    answered = f"({session_file.ANSWERED}) WHERE answered AND queries ORDER BY question"
    rows = db.execute(f"SELECT asked, queries, deviation FROM {answered}").fetchall()
    sources = [f"{text[:80]} ({n} queries, noise of ±{d:.3g})" for text, n, d in rows[:5]]
    if len(rows) > 5:
        sources.append(f"{len(rows) - 5} more questions")
    return f"Recall still answers, for nothing, from {'; '.join(sources) or 'an empty bank'}"
