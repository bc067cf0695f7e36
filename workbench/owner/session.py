"""Sessions: questions to a private table for a price, whose answers a bank keeps."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from workbench.compiled import pd
from workbench.data import SparseTable, WideTable
from workbench.estimates.release import Release
from workbench.owner.bank import Bank, answering
from workbench.owner.budget import Budget, Unpaid
from workbench.owner.choosing import (
    OPTIMISED,
    asked_in_words,
    chosen_by_data,
    free_plan,
    reconstructed,
    strategy_for,
)
from workbench.privacy import ADD_REMOVE, DP, ZCDP, exact_rho
from workbench.privacy.enclosures import round_up
from workbench.queries import Recipe, Workload, as_workload

_NEED_PRICE = "need epsilon or rho, what the answers cost a unit: one of the two"
_NEED_WHOLE = "need budget or rho, what all of it may cost: one of the two"
_NEED_PRICE_OF_CHOICE = (
    "by = 'data' reads the table, and costs what epsilon or rho says, before any question is "
    "asked: state one of them; it is booked at once"
)


class Session:
    """A private table that answers questions, the budget that pays, and the bank that keeps the answers.

    Noise comes from the operating system. There is no `rng`, so that a bank never holds simulated answers.

    Parameters
    ----------
    budget : Budget or path
        What pays for the answers.
    bank : Bank, optional
        The bank, in the file of the same budget.
    table : SparseTable or WideTable, optional
        The private table. Without it the bank still answers.
    unit : str, optional
        Whom the table's bound is about, if the bound only says "a user".

    Raises
    ------
    ValueError
        If the bank belongs to another budget, domain, bound or dataset, or the budget protects another
        unit than the table's bound names.
    """

    table: SparseTable | WideTable | None

    def __init__(
        self,
        budget: Budget | str | Path,
        bank: Bank | None = None,
        table: SparseTable | WideTable | None = None,
        *,
        unit: str | None = None,
    ) -> None:
        self.budget = budget if isinstance(budget, Budget) else Budget(budget)
        self.bank = Bank(self.budget) if bank is None else bank
        if self.bank.budget is not self.budget:
            raise ValueError(f"{self.bank!r} is not the bank of {self.budget!r}")
        self.table = table
        if table is not None:
            self.bank.declare(table)
            if self.budget.unit is None:
                self.budget.unit = getattr(table.bound, "unit", "") or None
            self.budget.refuse_other_unit(unit, table.bound)

    @classmethod
    def open(
        cls,
        path: str | Path,
        table: SparseTable | WideTable | None = None,
        budget: DP | ZCDP | None = None,
        *,
        total: float | None = None,
        dataset: str | None = None,
        prior: Any = None,
        data: str | Path | None = None,
        lost: bool = False,
        unit: str | None = None,
    ) -> Self:
        """Open the budget, the bank and the table of one file, or begin such a file.

        Parameters
        ----------
        path : path
            The file. It is created if `table` and `budget` are given and no file exists. It then belongs
            to this budget, domain, bound and dataset.
        table : SparseTable or WideTable, optional
            The private table. Without it the bank still answers.
        budget : DP or ZCDP, optional
            What all questions and releases together may cost a unit: a finite ε > 0, and δ < 1.
        total, dataset, prior
            As for `Bank`.
        data, lost
            As for `Budget`.
        unit : str, optional
            As for the class.

        Returns
        -------
        Session

        Raises
        ------
        FileNotFoundError
            If there is no such file, and none can begin.
        ValueError
            If the file holds no budget, or belongs to something else than what is stated.
        TimeoutError
            If another process holds the file.
        """
        is_new = not Path(path).exists()
        account = Budget(path, budget, begin=table is not None, data=data, lost=lost)
        bank = Bank(account, dataset=dataset, total=total, prior=prior)
        session = cls(account, bank, table, unit=unit)
        if is_new:
            bank.begin()
        return session

    def ask(
        self,
        workload: Recipe | Mapping[str, Any] | str | Sequence[Any],
        epsilon: float | None = None,
        *,
        rho: float | None = None,
        strategy: str | None = None,
    ) -> Release:
        """Spend ε and answer the workload with Laplace noise. The bank keeps the answers as well.

        From a budget of zCDP, spend ρ and answer with Gaussian noise. Or spend the ρ that Laplace noise
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
            Ask a better set of queries in its place, which the bank keeps, and compute the answers from
            theirs. `plan` shows the expected error.

        Returns
        -------
        Release
            Its estimate holds the answers to the workload, in counts.

        Raises
        ------
        ValueError
            If there is no table, the workload does not fit it, or less remains than is asked for. Then
            nothing is spent.
        """
        if self.table is None:
            raise ValueError("this session has no table to ask: open it with one, or recall")
        queries = as_workload(self.table.domain, workload)
        text = asked_in_words(queries, self.table.domain)
        if strategy is None:
            return self._ask(queries, epsilon, rho, text)
        if strategy != OPTIMISED:
            raise ValueError(f"strategy = {strategy!r} is not allowed: need {OPTIMISED!r}")
        found = strategy_for(queries, self.table.domain, rho)
        release = self._ask(found.queries, epsilon, rho, f"{text}, by {found.kind}")
        return reconstructed(release, queries, found)

    def _ask(
        self, queries: Recipe, epsilon: float | None, rho: float | None, text: str
    ) -> Release:
        """Spend, answer and keep; `text` says in the ledger what was asked."""
        budget = self.budget
        if budget.relation != ADD_REMOVE:
            raise ValueError(
                "answers are about neighbours that add or remove a unit, this budget about "
                f"{budget.relation}"
            )
        price = _one_of(epsilon, rho, _NEED_PRICE)
        mechanism = answering(budget.payable(price), queries)
        # On no data: what is refused at all is refused before it is paid for.
        tried = mechanism(self.bank.empty_table)
        trial = tried.estimate
        cost = mechanism.budget
        if isinstance(budget.limit, ZCDP) and isinstance(cost, DP):
            cost = ZCDP(round_up(exact_rho(tried.ledger)[0]))  # the same of any table
        about = {"queries": len(trial), "deviation": float(trial.deviations_in_counts.max())}
        try:
            with budget.spending([(cost, text)], **about) as (db, booking):
                (question,) = booking.questions
                reserved = self.bank.reserve(db, question, trial)
        except Unpaid as e:
            offer = self.bank.contents()
            raise ValueError(f"{e}. Recall still answers, for nothing, from {offer}") from None
        release: Release = mechanism(self.table)
        booking.check(release)
        try:
            self.bank.keep(question, reserved, release.estimate.values.tolist())
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
        """Share a budget among questions, and show the error expected of each and how to ask it.

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
        domain = self.bank.domain if self.table is None else self.table.domain
        asked = [as_workload(domain, question) for question in several]
        if not asked:
            raise ValueError("questions = [] is not allowed: need at least one")
        if by not in (None, "data"):
            raise ValueError(f"by = {by!r} is not allowed: need 'data'")
        if by is None and (epsilon is not None or rounds is not None):
            raise ValueError("epsilon and rounds are those of by = 'data'")
        if by is None:
            return free_plan(self, asked, _one_of(budget, rho, _NEED_WHOLE))
        whole = _one_of(budget, rho if budget is None else None, _NEED_WHOLE)
        of_choice = None if budget is None else rho
        price = self.budget.payable(_one_of(epsilon, of_choice, _NEED_PRICE_OF_CHOICE))
        chosen: Any = chosen_by_data(self, asked, whole, price, rounds)
        return free_plan(self, chosen, whole)

    def close(self) -> None:
        """Let go of the table. The bank still answers."""
        self.table = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session of {self.budget!r}>"


def _one_of(epsilon: DP | ZCDP | float | None, rho: float | None, need: str) -> DP | ZCDP:
    """Return the price that one of two arguments states. A ValueError with `need` unless exactly one does."""
    if epsilon is not None and rho is None:
        return epsilon if isinstance(epsilon, DP | ZCDP) else DP(epsilon)
    if epsilon is None and rho is not None:
        return ZCDP(rho)
    raise ValueError(need)
