"""Sessions: questions to a private table for a price, and answers recalled for free."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from workbench import value
from workbench.compiled import pd
from workbench.data import Bound, SparseTable
from workbench.estimates import NoisyAnswers
from workbench.estimates.describing import USERS_CUT
from workbench.estimates.release import Release, knows_users_cut, refuse_report_cut
from workbench.estimates.release_files import refuse_place, reserve
from workbench.inference import KernelPCA
from workbench.mechanisms import GaussianQueries, LaplaceQueries
from workbench.owner import ledger
from workbench.owner.budget import (
    description,
    now,
    of_the_bank,
    refuse_unpaid,
    resolved,
    stated_data,
    stated_people,
    stays_spent,
)
from workbench.owner.choosing import (
    OPTIMISED,
    Reconstruction,
    asked_in_words,
    chosen_by_data,
    free_plan,
    reconstructed,
    strategy_for,
)
from workbench.owner.ledger import SessionFile
from workbench.owner.recall import Recall
from workbench.privacy import ADD_REMOVE, DP, LOCAL, ZCDP, exact_rho, warn_if_large
from workbench.privacy.enclosures import round_up
from workbench.queries import Recipe, Workload, as_workload, stated

if TYPE_CHECKING:
    import sqlite3


# Asking


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
            text = f"{asked_in_words(queries, self._table.domain)}, by {found.kind}"
            return reconstructed(self._ask(found.queries, epsilon, rho, text), queries, found)
        text = asked_in_words(queries, self._table.domain)
        return self._ask(queries, epsilon, rho, text)

    def _ask(
        self, queries: Recipe, epsilon: float | None, rho: float | None, text: str
    ) -> Release:
        """Spend, answer and keep; `text` says in the ledger what was asked."""
        table: Any = self._table
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
        places, question = self._spend(cost, text, trial)
        release: Release = mechanism(table)
        try:
            with self._file.transaction() as db:
                values = release.estimate.values.tolist()
                rows = zip(values, places, strict=True)
                db.executemany("UPDATE bank SET value = ? WHERE place = ?", rows)
                texts = stated.to_text(trial.workload)
                answers = zip(texts, trial.variances.tolist(), values, strict=True)
                ledger.seal(db, question, list(answers))
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
            question = ledger.spend(
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
                places, stated.to_text(trial.workload), trial.variances.tolist(), strict=True
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
    answered = f"({ledger.ANSWERED}) WHERE answered AND queries ORDER BY question"
    rows = db.execute(f"SELECT asked, deviation FROM {answered}").fetchall()
    sources = [f"{text[:120]} (noise of ±{d:.3g})" for text, d in rows[:5]]
    if len(rows) > 5:
        sources.append(f"{len(rows) - 5} more questions")
    return f"Recall still answers, for nothing, from {'; '.join(sources) or 'an empty bank'}"


# Session


class Session(Asking):
    """One budget in one file: questions to a private table, and releases of any data of its people.

    Made by `Session.open`, for one table, or by `Session.create`, for people. The budget is one unit's
    over the life of the file. The bank of `ask` belongs to one domain, bound and dataset; what
    `release` makes does not enter it. Noise is the operating system's: there is no `rng`, so that
    nothing simulated is ever in a bank.
    """

    @classmethod
    def open(
        cls,
        path: str | Path,
        table: SparseTable | None = None,
        budget: DP | None = None,
        *,
        total: float | None = None,
        dataset: str | None = None,
        prior: Any = None,
        data: str | Path | None = None,
        lost: bool = False,
        people: str | None = None,
        unit: str | None = None,
        relation: str | None = None,
    ) -> Self:
        """Open a session's file, or begin one, which belongs to this budget, domain, bound and dataset.

        A file that `create` made belongs to people instead; its bank begins with the first question,
        and belongs to the table that is asked.

        Parameters
        ----------
        path : path
            The session's file. It is created where `table` and `budget` are given and no file is there.
        table : SparseTable, optional
            The private table. Without it the bank still answers.
        budget : DP or ZCDP, optional
            What all questions and releases together may cost a unit: a finite ε > 0, and δ < 1.
        total : float, optional
            The public number of tuples; it stays with the file.
        dataset : str, optional
            A declared name and version. The data are not hashed, since a hash tells.
        prior : optional
            What `recall` takes cells for beforehand, as `KernelPCA` takes it; it may change.
        data : path, optional
            The file that the table came from: `<data>.session` beside it names this session, and any
            other is refused.
        lost : bool
            The session that `<data>.session` names is gone, or the counter is: the caller knows, and
            counts what was spent.
        people, unit, relation : str, optional
            Whom the caller takes the file to be about; another one is refused.

        Returns
        -------
        Session

        Raises
        ------
        FileNotFoundError
            If there is no such session, and none can begin.
        ValueError
            If the file is none of a session, or belongs to something else than what is stated.
        TimeoutError
            If another process holds the file.
        """
        is_new = not Path(path).exists()
        path = resolved(path)
        stated = stated_data(table, budget, total, dataset)
        stated |= stated_people(people, unit, relation)
        session = cls(SessionFile(path), table, KernelPCA(1.0, prior=prior).prior)
        can_begin = table is not None and budget is not None
        if is_new and table is not None and budget is not None:
            warn_if_large(budget)
        if is_new and not (can_begin and path.parent.is_dir()):
            raise FileNotFoundError(
                f"{path}: no such session; one begins with table and budget, in a folder that exists, or "
                "for people by Session.create"
            )
        file = session._file
        with file.transaction(new=can_begin, write=can_begin) as db:
            with ledger.refused_if_strange(path):
                session._belong_to(file.settle(db, stated))
            session._stated_bank = of_the_bank(stated)
            if table is not None and session.unit is not None:
                session._refuse_other_unit(unit, table.bound)
            if session._counter is not None:
                file.watch(db, ledger.known_counter(session._counter, path, file.id, lost))
            if data is not None:
                file.watch(db, ledger.data_counter(Path(data).resolve(), path, file.id, lost))
        return session

    @classmethod
    def create(
        cls,
        path: str | Path,
        budget: DP | ZCDP,
        *,
        people: str,
        unit: str,
        relation: str = ADD_REMOVE,
        counter: str | Path | None = None,
    ) -> Self:
        """Begin a budget file: what all releases about these people may cost, of whatever data.

        Beside the file, or where `counter` says, a small file counts the spends, so that an older copy
        is refused. Nothing helps where both are put back together, nor against a second budget.

        Parameters
        ----------
        path : path
            The file; none may be there.
        budget : DP or ZCDP
            What everything together may cost a unit: a finite ε > 0, or ρ, and δ < 1.
        people : str
            A declared name, such as "customers of shop X". No data are hashed: next month's export of
            the same people spends from the same file.
        unit : str
            Whom the budget protects, such as "a user" or "a trip".
        relation : str
            Which neighbours: one of `privacy.RELATIONS`.
        counter : path, optional
            By default `<path>.count`. A place of which the file's own backup knows nothing is better.

        Returns
        -------
        Session

        Raises
        ------
        ValueError
            If a file is there, the counter counts for another budget, or the budget promises nothing.
        """
        path = resolved(path)
        stated = stated_data(None, budget, None, None)
        stated |= stated_people(people, unit, relation)
        if {"budget", "people", "unit", "relation"} - set(stated):
            raise ValueError("a budget file needs budget, people, unit and relation")
        warn_if_large(budget)
        counter = path.with_name(f"{path.name}.count") if counter is None else Path(counter)
        counter = counter.resolve()
        exists = f"{path} exists: a budget is begun once, and spent to its end"
        if path.exists() and path.stat().st_size:
            raise ValueError(exists)
        for folder in (path.parent, counter.parent):
            if not folder.is_dir():
                raise FileNotFoundError(f"{folder}: no such folder")
        beside = counter.parent == path.parent
        stated["counter"] = counter.name if beside else str(counter)  # both may move together
        session = cls(SessionFile(path), None, None)
        with session._file.transaction(new=True) as db:
            if ledger.is_begun(db):
                raise ValueError(exists)
            session._belong_to(session._file.settle(db, stated))
            session._file.watch(db, ledger.new_counter(counter, path, session._file.id))
        return session

    def _of_unit(self, release: Release, unit: str | None) -> Release:
        """The release, whose bound says whom it is taken to be about."""
        bound = release.bound
        unit = unit or self.unit
        if not isinstance(bound, Bound) or bound.unit or unit is None:
            return release
        return replace(release, bound=bound.believed(unit))

    def release(
        self,
        mechanism: Any,
        data: Any = None,
        *,
        unit: str | None = None,
        report_cut: float | None = None,
        out: str | Path | None = None,
        force: bool = False,
        rho: float | None = None,
    ) -> Release:
        """Spend a mechanism's budget and release: tables, marginals, records and interactions alike.

        The spend is on disk before the first draw, and stays whatever comes. What the mechanism
        refuses of data without a record, of the same domain and bound, costs nothing.

        Parameters
        ----------
        mechanism : Mechanism
            Its `budget` is what is booked.
        data : optional
            What the mechanism takes, of this budget's people; by default the session's table.
        unit : str, optional
            Whom the data's bound is about, in words; another unit than the budget's is refused. By
            default what the bound says; where it says nothing, it is taken to be about the budget's
            unit, and the release says so: nobody has cut anybody to it.
        report_cut : float, optional
            ε of how many users lost anything to the bound, which is then booked and released as well.
        out : path, optional
            Where the release is saved; the ledger names the file.
        force : bool
            Overwrite an existing file.
        rho : float, optional
            What to book from a budget of zCDP for a mechanism whose own budget is an ε, where its
            receipts are known to say less than what is booked without it: the ρ of its receipts, where
            they say the same of any data (`fixed_price`), else the ε·tanh(ε/2) that the ε implies.

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            If less remains, or the relation or unit is another one: then nothing is spent. If the
            receipts cost more than was booked: then the release is withheld.
        """
        data = self._table if data is None else data
        if data is None:
            raise ValueError("this session has no table: give the data to release")
        cost: Any = self.check(mechanism, data, unit=unit, rho=rho)
        if out is not None:
            refuse_place(Path(out), force)
        also = []
        if report_cut is not None:
            if self.relation == LOCAL or not knows_users_cut(data):
                raise ValueError("report_cut: need data whose users were cut to their bound")
            refuse_report_cut(report_cut)
            also.append((DP(report_cut), USERS_CUT))
        own = getattr(mechanism, "__dataclass_fields__", {})
        if rho is None and "budget" in own and isinstance(cost, type(mechanism.budget)):
            cost = self.payable(cost, [price for price, _ in also])
            mechanism = replace(mechanism, budget=cost)
        what = description(mechanism, self.budget)
        with nullcontext() if out is None else closing(reserve(Path(out), data)):
            booking = self.book(cost, what, also=also, out=out)
            release = self._of_unit(mechanism(data), unit)
            if report_cut is not None:
                release = release.with_users_cut(data, report_cut)
        booking.check(release)
        if out is not None:
            with booking.saving():
                release.save(out, force=force)
        booking.confirm()
        return release

    def close(self) -> None:
        """Let go of the table; the bank still answers."""
        self._table = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            return f"<Session {self.path.name}: {value.stated(self.remaining)} of {self.budget} remain>"
        except (OSError, ValueError):
            return f"<Session {self.path.name}: cannot be read>"
