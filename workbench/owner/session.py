"""Sessions, in which you ask questions to a private table. Each answer has noise, and costs a part of a
privacy budget. A bank stores the answers, so you can use them again without cost.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from workbench.compiled import pd
from workbench.data import SparseTable, WideTable
from workbench.estimates.release import Release
from workbench.inference.strategies import L1, L2, optimised_strategy
from workbench.owner.bank import Bank, answering
from workbench.owner.budget import Budget
from workbench.owner.choosing import (
    OPTIMISED,
    asked_in_words,
    chosen_by_data,
    free_plan,
    reconstructed,
)
from workbench.privacy import ADD_REMOVE, DP, ZCDP, exact_rho
from workbench.privacy.enclosures import round_up
from workbench.queries import Recipe, Workload, as_workload


class Session:
    """Session in which you ask questions to a private table. A session consists of the table, a budget that
    pays for the answers, and a bank that stores the answers.

    The noise of the answers always comes from the operating system. A session has no argument `rng` for a
    seeded generator, because anyone with the seed could subtract the noise of the stored answers.

    Parameters
    ----------
    budget : Budget or path
        Budget that pays for the answers.
    bank : Bank, optional
        Bank that stores the answers. The bank must be in the same file as the budget. Default: the bank in the
        budget's file.
    table : SparseTable or WideTable, optional
        Private table. Without a table, you cannot ask new questions, but you can compute answers from the
        stored answers in the bank.
    unit : str, optional
        Unit that the table's bound protects, for example "patient". You need this argument only if the bound
        names the unit as "a user", without more detail.

    Raises
    ------
    ValueError
        If the bank belongs to another budget, or is about another domain, bound or dataset. The error is also
        raised if the budget and the table's bound name different units.
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
        """Open a session from a file, which contains a budget and a bank (a store of noisy answers). If the
        file does not exist, create it.

        Parameters
        ----------
        path : path
            Path of the file. If the file does not exist and you pass `table` and `budget`, the workbench
            creates it. The new file can then be used only with this budget, and with tables that have the
            same domain, bound and dataset name.
        table : SparseTable or WideTable, optional
            Private table. Without a table, you cannot ask new questions, but you can compute answers from the
            stored answers in the bank.
        budget : DP or ZCDP, optional
            Limit on the total cost of all questions and releases for a unit: a finite ε > 0 or ρ > 0, and
            δ < 1.
        total : float, optional
            Number of records in the table, if this number is public.
        dataset : str, optional
            Name and version of the dataset, in your own words.
        data : path, optional
            Path of the table's file. The workbench writes a small file `<data>.session` next to this file. If
            you later open another session for the same table, an error is raised.
        lost : bool
            Set this to True to confirm that the earlier session file of this table, or its counter file, is
            lost.
        unit : str, optional
            Unit that the table's bound protects, for example "patient". You need this argument only if the
            bound names the unit as "a user", without more detail.

        Returns
        -------
        Session

        Raises
        ------
        FileNotFoundError
            If the file does not exist, and `table` or `budget` is missing, so that it cannot be created.
        ValueError
            If the file contains no budget, or if its budget, domain, bound or dataset differs from those that
            you pass.
        TimeoutError
            If another process keeps the file locked for too long.
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
        """Ask questions about the private table. The session spends ε from its budget, adds Laplace noise to
        the true answers, and stores the noisy answers in its bank.

        If the budget is in zCDP, you can pass `rho` instead of `epsilon`. The noise is then Gaussian. If you
        pass `epsilon`, the noise is Laplace noise, and the session spends the ρ that this noise costs. This ρ
        is at most ε·tanh(ε/2), and smaller if one unit affects many of the queries.

        Costs are added up as decimal numbers, so you can ask ten questions at ε = 0.1 with a budget of 1. The
        float 0.1 is slightly larger than the decimal 0.1. So after nine questions, the budget has slightly
        less than 0.1 left, namely 0.09999999999999995. The session draws the noise of the tenth question for
        this smaller ε, so the exact sum does not exceed the budget.

        Parameters
        ----------
        workload : Workload, or queries by label
            Queries, each of which is a weighted sum of counts, for example `Ranges` or `Marginals`. You can
            also name the cells by their labels, in the form that `Release.answer` takes.
        epsilon : float, optional
            Cost ε of all answers together.
        rho : float, optional
            Cost ρ of all answers together, for a budget in zCDP. Pass either `rho` or `epsilon`.
        strategy : "optimised", optional
            By default, the session asks exactly the queries in `workload`. With "optimised", the session asks
            other queries, and computes the answers to `workload` from the noisy answers to these other queries.
            The errors are then smaller than by default. The bank stores the answers to the other queries.
            `plan` shows the expected error with and without this strategy.

        Returns
        -------
        Release
            Release whose attribute `estimate` contains the noisy answers.

        Raises
        ------
        ValueError
            If the session has no table, the workload does not fit the table, or the remaining budget is too
            small. Nothing is spent if this error is raised.
        """
        if self.table is None:
            raise ValueError("this session has no table: open it with one, or use recall")
        queries = as_workload(self.table.domain, workload)
        text = asked_in_words(queries, self.table.domain)
        if strategy is None:
            return self._ask(queries, epsilon, rho, text)
        if strategy != OPTIMISED:
            raise ValueError(f"strategy = {strategy!r} is not allowed: need {OPTIMISED!r}")
        found = optimised_strategy(queries, self.table.domain, L1 if rho is None else L2)
        release = self._ask(found.queries, epsilon, rho, f"{text}, by {found.kind}")
        return reconstructed(release, queries, found)

    def _ask(
        self, queries: Recipe, epsilon: float | None, rho: float | None, text: str
    ) -> Release:
        """Spend the cost, draw the noisy answers to the queries and store them in the bank. `text` describes
        the question in the ledger (the list of all costs).
        """
        budget = self.budget
        if budget.relation != ADD_REMOVE:
            raise ValueError(
                "answers need a budget for neighbours that add or remove a unit, but this one is for "
                f"{budget.relation}"
            )
        price = _one_of("epsilon", epsilon, rho)
        mechanism = answering(budget.payable(price), queries)
        # On no data: what is refused at all is refused before it is paid for.
        tried = mechanism(self.bank.empty_table)
        trial = tried.estimate
        cost = mechanism.budget
        if isinstance(budget.limit, ZCDP) and isinstance(cost, DP):
            cost = ZCDP(round_up(exact_rho(tried.ledger)[0]))  # the same of any table
        about = {"queries": len(trial), "deviation": float(trial.deviations_in_counts.max())}
        with budget.spending([(cost, text)], **about) as (db, booking):
            (question,) = booking.questions
            reserved = self.bank.reserve(db, question, trial)
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
        """Divide a budget among several questions, and show the error to expect for each. The shares minimise
        the sum of the squared errors.

        A plan costs no budget, because it uses only the questions, the domain, the bound and the budget. If you
        pass `by="data"`, the workbench first selects some of the marginals (tables of counts by a few
        attributes) in your questions. The bank can estimate the counts of a marginal from its stored answers.
        The workbench prefers marginals for which these estimates differ most from the private table (see
        `owner.choosing`). The exponential mechanism draws this selection at random. The selection has a price,
        which the session spends before the draw.

        Parameters
        ----------
        questions : Workload or query by label, or several
            Questions that you want to ask, all with this budget.
        budget : DP, ZCDP or float
            Total cost of all questions together. A float is an ε.
        rho : float, optional
            Total cost of all questions together, as a ρ. If you pass `by="data"` and `budget`, then `rho` is
            the price of the selection instead.
        by : "data", optional
            If "data", the private table determines which marginals are selected, as described above. Default:
            all questions are planned.
        epsilon : float, optional
            Price of the selection with `by="data"`.
        rounds : int, optional
            Number of marginals to select. Two attributes are connected if they are in one marginal, or if a
            chain of marginals with common attributes leads from one to the other. By default, the workbench
            selects marginals until they connect all attributes that the marginals in your questions connect.
            For example, the marginals (age, sex) and (sex, job) connect the three attributes age, sex and job.

        Returns
        -------
        pandas.DataFrame
            One row per question, with the question in words and its share of the budget (`epsilon` or `rho`).
            The column `error` is the expected root mean squared error (a number of records) if you ask the
            question with `strategy="optimised"`. The column `strategy` is the name of this strategy. The column
            `plain` is the expected error if you ask the question without a strategy. The column `share of
            bound` is a theoretical lower bound on the squared error, divided by the expected squared error. The
            lower bound is computed from singular values. `attrs["questions"]` is the list of questions, which
            you can pass to `ask` one by one.

        Raises
        ------
        ValueError
            If `by` has another value, the session has no table although `by="data"` needs one, or the budget
            cannot pay for the selection.
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
            return free_plan(self, asked, _one_of("budget", budget, rho))
        whole = _one_of("budget", budget, rho if budget is None else None)
        price = _one_of("epsilon", epsilon, None if budget is None else rho)
        price = self.budget.payable(price)
        chosen: Any = chosen_by_data(self, asked, whole, price, rounds)
        return free_plan(self, chosen, whole)

    def close(self) -> None:
        """Remove the private table from the session. Afterwards, you can still compute answers from the stored
        answers in the bank, but you cannot ask new questions.
        """
        self.table = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session of {self.budget!r}>"


def _one_of(name: str, epsilon: DP | ZCDP | float | None, rho: float | None) -> DP | ZCDP:
    """Return the price as a DP or ZCDP. Raise a ValueError unless exactly one of ε and ρ is given. In the
    message, the argument for ε is called `name`.
    """
    if epsilon is not None and rho is None:
        return epsilon if isinstance(epsilon, DP | ZCDP) else DP(epsilon)
    if epsilon is None and rho is not None:
        return ZCDP(rho)
    raise ValueError(f"need either {name} or rho, which is the privacy cost")
