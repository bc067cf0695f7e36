"""Sessions: paid questions to a private table, with a bank that keeps the answers."""

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
    """Session that joins three things: a private table that answers questions, a budget that pays for the
    answers, and a bank that keeps them.

    Noise comes from the operating system. There is no `rng`, so a bank never contains simulated answers.

    Parameters
    ----------
    budget : Budget or path
        Budget that pays for the answers.
    bank : Bank, optional
        Bank in the file of the same budget.
    table : SparseTable or WideTable, optional
        Private table. Without it, you can still recall answers from the bank.
    unit : str, optional
        Unit of the table's bound, if the bound names only "a user".

    Raises
    ------
    ValueError
        If the bank belongs to another budget, domain, bound or dataset, or if the budget and the table's
        bound name different units.
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
        data: str | Path | None = None,
        lost: bool = False,
        unit: str | None = None,
    ) -> Self:
        """Open the budget and the bank (store of noisy answers) in a file, for a table. If the file does not
        exist, create it.

        Parameters
        ----------
        path : path
            Path of the file. If it does not exist, and you give `table` and `budget`, it is created. It
            then belongs to this budget, domain, bound and dataset.
        table : SparseTable or WideTable, optional
            Private table. Without it, you can still recall answers from the bank.
        budget : DP or ZCDP, optional
            Limit on the total cost of all questions and releases for a unit: a finite ε > 0 or ρ > 0, and δ
            < 1.
        total, dataset
            The same as for `Bank`.
        data, lost
            The same as for `Budget`.
        unit : str, optional
            The same as for the class.

        Returns
        -------
        Session

        Raises
        ------
        FileNotFoundError
            If the file does not exist and cannot be created.
        ValueError
            If the file contains no budget, or belongs to another budget, domain, bound or dataset than you
            state.
        TimeoutError
            If another process holds the file.
        """
        is_new = not Path(path).exists()
        account = Budget(path, budget, begin=table is not None, data=data, lost=lost)
        bank = Bank(account, dataset=dataset, total=total)
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
        """Spend ε and answer a workload with Laplace noise. The bank stores the noisy answers.

        With a budget in zCDP, you can spend a ρ for Gaussian noise. If you give `epsilon` instead, the
        noise is Laplace noise, and the session spends the ρ of this noise. If a unit is in many of the
        queries, this ρ is less than ε·tanh(ε/2).

        The budget is checked in decimals, so ten questions at ε = 0.1 fit into a budget of 1. For the
        tenth, noise is drawn for the 0.09999999999999995 that remain in floating point. So the exact sum
        stays within the budget.

        Parameters
        ----------
        workload : Workload, or queries by label
            Queries, each a weighted sum of cells, for example `Ranges` or `Marginals`, or queries by label
            in the form that `Release.answer` takes.
        epsilon : float, optional
            Cost of all answers together.
        rho : float, optional
            Cost in zCDP. Give either this or `epsilon`.
        strategy : "optimised", optional
            Ask a better set of queries instead, and compute the answers from theirs. The bank keeps the
            answers to these queries. `plan` shows the expected error.

        Returns
        -------
        Release
            Release whose estimate contains the answers, in counts.

        Raises
        ------
        ValueError
            If there is no table, the workload does not fit it, or the remaining budget is too small.
            Nothing is spent then.
        """
        if self.table is None:
            raise ValueError("this session has no table: open it with one, or use recall")
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
        """Spend the cost, answer the queries and keep the answers. `text` describes the question in the
        ledger.
        """
        budget = self.budget
        if budget.relation != ADD_REMOVE:
            raise ValueError(
                "answers need a budget for neighbours that add or remove a unit, but this one is for "
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
            raise ValueError(f"{e}. At no cost, recall can still answer from {offer}") from None
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
        """Share a budget among questions, and show the expected error of each.

        A plan is free, because it uses only the questions, domain, bound and budget. With `by="data"`, the
        table first chooses some of the marginals in the questions, those that the bank predicts worst (see
        `owner.choosing`). The exponential mechanism keeps this choice private. It has a separate price,
        which is booked before anything is drawn.

        Parameters
        ----------
        questions : Workload or query by label, or several
            Questions to plan.
        budget : DP, ZCDP or float
            Total cost of all questions. A float is an ε.
        rho : float, optional
            Total cost as a ρ. With `by="data"` and `budget`, it is the cost of the choice instead.
        by : "data", optional
            Whether the table chooses the marginals, as described above.
        epsilon : float, optional
            Cost of the choice.
        rounds : int, optional
            Number of marginals that the table chooses. Default: as many as are needed to connect all
            attributes.

        Returns
        -------
        pandas.DataFrame
            One row per question: its price, the expected `error` with `strategy="optimised"`, the expected
            error of the `plain` questions, and the ratio of the singular-value bound to the error.
            `attrs["questions"]` contains the workloads, which you can pass to `ask`.

        Raises
        ------
        ValueError
            If `by` has another value, a table is needed but missing, or the budget cannot pay the price.
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
            raise ValueError("epsilon and rounds need by = 'data'")
        if by is None:
            return free_plan(self, asked, _one_of(budget, rho, _NEED_WHOLE))
        whole = _one_of(budget, rho if budget is None else None, _NEED_WHOLE)
        of_choice = None if budget is None else rho
        price = self.budget.payable(_one_of(epsilon, of_choice, _NEED_PRICE_OF_CHOICE))
        chosen: Any = chosen_by_data(self, asked, whole, price, rounds)
        return free_plan(self, chosen, whole)

    def close(self) -> None:
        """Remove the private table from memory. The session can still answer queries from the answers that it
        has stored.
        """
        self.table = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session of {self.budget!r}>"


def _one_of(epsilon: DP | ZCDP | float | None, rho: float | None, need: str) -> DP | ZCDP:
    """Return the price from ε or ρ. Raise a ValueError with the text `need` unless exactly one of them
    is given.
    """
    if epsilon is not None and rho is None:
        return epsilon if isinstance(epsilon, DP | ZCDP) else DP(epsilon)
    if epsilon is None and rho is not None:
        return ZCDP(rho)
    raise ValueError(need)
