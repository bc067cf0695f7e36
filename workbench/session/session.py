"""The session itself: questions asked for a price, and answers recalled for nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction
from math import inf, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from workbench.arrays import Float
from workbench.domain import Domain
from workbench.estimates import NoisyAnswers
from workbench.inference import KernelPCA
from workbench.inference.eigenqueries import Eigenqueries
from workbench.inference.kernel_pca import Posterior
from workbench.inference.priors import prior_vectors
from workbench.libraries import pd
from workbench.mechanism import Release, refuse_place, sensitivity
from workbench.mechanisms import LaplaceQueries
from workbench.privacy import ADD_REMOVE, DP, LOCAL, RELATIONS
from workbench.release import USERS_CUT
from workbench.session import file as session_file
from workbench.session.booking import Booking, description, refuse_unpaid, refuse_unpayable
from workbench.session.counter import data_counter, known_counter, new_counter
from workbench.session.file import SessionFile, same_unit
from workbench.shares import round_down
from workbench.table import ENFORCED, Bound, SparseTable
from workbench.wording import stated
from workbench.workload import (
    Products,
    Workload,
    linear_queries,
    serialise,
    workload_sensitivity,
)

if TYPE_CHECKING:
    import sqlite3


class Session:
    """One budget in one file: questions to a private table, and releases of any data of its people.

    Made by `Session.open`, for one table, or by `Session.create`, for people. The budget is one unit's
    over the life of the file. The bank of `ask` belongs to one domain, bound and dataset; what
    `release` makes does not enter it. Noise is the operating system's: there is no `rng`, so that
    nothing simulated is ever in a bank.
    """

    def __init__(self, file: SessionFile, table: SparseTable | None, prior: Any):
        self._file = file
        self._table = table
        self._prior = prior
        self._stated_bank: dict[str, Any] = {}
        self._answers_by_question: dict[int, NoisyAnswers] = {}
        self._eigenqueries: tuple[int, Eigenqueries] | None = None  # of so many questions

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
        budget : DP, optional
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
        path = _resolved(path)
        stated = _stated(table, budget, total, dataset) | _stated_people(people, unit, relation)
        session = cls(SessionFile(path), table, KernelPCA(1.0, prior=prior).prior)
        can_begin = table is not None and budget is not None
        if is_new and not (can_begin and path.parent.is_dir()):
            raise FileNotFoundError(
                f"{path}: no such session; one begins with table and budget, in a folder that exists, or "
                "for people by Session.create"
            )
        file = session._file
        with file.transaction(new=can_begin, write=can_begin) as db:
            session._belong_to(file.settle(db, stated))
            session._stated_bank = _of_the_bank(stated)
            if table is not None and session.unit is not None:
                session._refuse_other_unit(unit, table.bound)
            if session._counter is not None:
                file.watch(db, known_counter(session._counter, path, file.id, lost))
            if data is not None:
                file.watch(db, data_counter(Path(data).resolve(), path, file.id, lost))
        return session

    @classmethod
    def create(
        cls,
        path: str | Path,
        budget: DP,
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
        budget : DP
            What everything together may cost a unit: a finite ε > 0, and δ < 1.
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
        path = _resolved(path)
        stated = _stated(None, budget, None, None) | _stated_people(people, unit, relation)
        if {"budget", "people", "unit", "relation"} - set(stated):
            raise ValueError("a budget file needs budget, people, unit and relation")
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
            if session_file.is_begun(db):
                raise ValueError(exists)
            session._belong_to(session._file.settle(db, stated))
            session._file.watch(db, new_counter(counter, path, session._file.id))
        return session

    def _belong_to(self, metadata: dict[str, Any]) -> None:
        """Take over what the file says, if the prior fits it."""
        self.total = metadata["total"]
        self.budget = DP(*metadata["budget"])
        self.people = metadata["people"]
        self.unit = metadata["unit"]
        self.relation = metadata["relation"]
        counter = metadata["counter"]
        self._counter = None if counter is None else self.path.parent / counter
        self.domain = None
        self.bound = None
        if metadata["domain"] is not None:
            self.domain = Domain.from_dict(metadata["domain"])
            self.bound = Bound(*metadata["bound"])
            self._empty_table = SparseTable.from_keys(self.domain, [], [], self.bound)
            prior_vectors(self._prior, self.domain)

    @property
    def path(self) -> Path:
        """The session's file."""
        return self._file.path

    def ask(self, workload: Workload, epsilon: float) -> Release:
        """Spend ε and answer the workload with Laplace noise; the bank keeps the answers as well.

        Exact sums decide whether the budget suffices: ten times the float 0.1 is more than 1, and
        `remaining` is always accepted.

        Parameters
        ----------
        workload : Workload
            Queries that are sums of cells with weights, such as `Ranges` or `Marginals`.
        epsilon : float
            What the answers cost a unit.

        Returns
        -------
        Release
            Its estimate are the `NoisyAnswers`, in counts.

        Raises
        ------
        ValueError
            If there is no table, the workload does not fit it, or less than `epsilon` remains; then
            nothing is spent.
        """
        if self._table is None:
            raise ValueError("this session has no table to ask: open it with one, or recall")
        if self.relation != ADD_REMOVE:
            raise ValueError(
                f"answers are about neighbours that add or remove a unit, this budget about {self.relation}"
            )
        mechanism = LaplaceQueries(DP(epsilon), workload)
        # On no data: what is refused at all is refused before it is paid for.
        trial = mechanism(self._empty_table).estimate
        places, question = self._spend(float(epsilon), repr(workload), trial)
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

    def _spend(self, epsilon: float, text: str, trial: NoisyAnswers) -> tuple[range, int]:
        """Write a spend, and make room for the answers: their places, and the question's number."""
        with self._file.transaction() as db:
            try:
                refuse_unpaid(DP(epsilon), self._exactly_remaining(db), self.budget)
            except ValueError as e:
                raise ValueError(f"{e}. {_what_recall_answers(db)}") from None
            if self._stated_bank:
                self._belong_to(self._file.begin_bank(db, self._stated_bank))
            question = session_file.spend(
                db,
                time=_now(),
                asked=text,
                queries=len(trial),
                deviation=sqrt(trial.variances.max()),
                epsilon=epsilon,
                delta=0.0,
            )
            first = db.execute("SELECT coalesce(max(place), 0) + 1 FROM bank").fetchone()[0]
            places = range(first, first + len(trial))
            rows = zip(
                places, serialise.to_text(trial.workload), trial.variances.tolist(), strict=True
            )
            db.executemany(f"INSERT INTO bank VALUES (?, {question}, ?, ?, zeroblob(8))", rows)
        self._stated_bank = {}
        self._file.count()
        return places, question

    def release(
        self,
        mechanism: Any,
        data: Any = None,
        *,
        unit: str | None = None,
        report_cut: float | None = None,
        out: str | Path | None = None,
        force: bool = False,
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
            default what the bound says, or the budget's.
        report_cut : float, optional
            ε of how many users lost anything to the bound, which is then booked and released as well.
        out : path, optional
            Where the release is saved; the ledger names the file.
        force : bool
            Overwrite an existing file.

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
        self.check(mechanism, data, unit=unit)
        if out is not None:
            refuse_place(Path(out), force)
        also = []
        if report_cut is not None:
            if self.relation == LOCAL or getattr(data, "users_cut", None) is None:
                raise ValueError("report_cut: need data whose users were cut to their bound")
            also.append((DP(report_cut), USERS_CUT))
        booking = self.book(mechanism.budget, description(mechanism), also=also, out=out)
        release = mechanism(data)
        if report_cut is not None:
            release = release.with_users_cut(data, report_cut)
        booking.check(release)
        if out is not None:
            release.save(out, force=force)
        booking.confirm()
        return release

    def check(
        self, mechanism: Any = None, data: Any = None, *, unit: str | None = None
    ) -> None:
        """Refuse, at no cost, what `release` would not book.

        Parameters
        ----------
        mechanism, data, unit
            As for `release`; without mechanism or data, as far as can be told.

        Raises
        ------
        ValueError
            If the budget cannot pay for it, or it is of another unit or relation, or the mechanism
            refuses data of this kind even where there is no record.
        """
        self._refuse_other_unit(unit, getattr(data, "bound", None))
        if mechanism is None:
            return
        refuse_unpayable(mechanism, data, self.relation)
        with self._file.transaction(write=False) as db:
            refuse_unpaid(mechanism.budget, self._exactly_remaining(db), self.budget)

    def book(
        self,
        cost: DP,
        what: str,
        *,
        also: Iterable[tuple[DP, str]] = (),
        relation: str | None = None,
        unit: str | None = None,
        out: str | Path | None = None,
    ) -> Booking:
        """Spend, before anything is drawn; what was booked is never given back.

        Parameters
        ----------
        cost : DP
            A proven upper bound of what will be drawn.
        what : str
            What it is for, as the ledger keeps it.
        also : of (DP, str)
            What else is drawn for the same release, in rows of their own: all are booked, or none.
        relation, unit : str, optional
            What the cost is about; another one than the budget's is refused.
        out : path, optional
            The file that will be released; the ledger names it.

        Returns
        -------
        Booking
            `check` holds the receipts against it; `confirm` says that the release is there.

        Raises
        ------
        ValueError
            If less remains, or the relation or unit is another one: then nothing is spent.
        """
        if relation not in (None, self.relation):
            raise ValueError(
                f"{what} is about {relation}, this budget about {self.relation}: they do not add up"
            )
        self._refuse_other_unit(unit)
        lines = [(cost, what), *also]
        file = None if out is None else str(Path(out).resolve())
        with self._file.transaction() as db:
            questions = []
            left = self._exactly_remaining(db)
            for asked, text in lines:
                refuse_unpaid(asked, left, self.budget)
                left = (left[0] - Fraction(asked.epsilon), left[1] - Fraction(asked.delta))
                row = {"epsilon": float(asked.epsilon), "delta": float(asked.delta)}
                row |= {"time": _now(), "asked": text, "file": file}
                questions.append(session_file.spend(db, **row))
        self._file.count()
        return Booking(
            self,
            tuple(questions),
            sum((Fraction(asked.epsilon) for asked, _ in lines), Fraction(0)),
            sum((Fraction(asked.delta) for asked, _ in lines), Fraction(0)),
            self.relation,
        )

    def _confirm(self, questions: tuple[int, ...]) -> None:
        try:
            with self._file.transaction() as db:
                for question in questions:
                    session_file.seal(db, question)
        except (OSError, ValueError) as e:
            warnings.warn(f"released and paid for; the ledger does not know: {e}", stacklevel=3)

    def _refuse_other_unit(self, unit: str | None, bound: Any = None) -> None:
        """A ValueError if the caller or the data's bound names another unit than the budget's.

        What a bound calls a user is whomever its column names, which the caller may say. A session
        that declares no unit protects that of its own table.
        """
        own = self.unit is None and self._table is not None and bound is self._table.bound
        of_bound = "" if own else getattr(bound, "unit", "")
        enforced = getattr(bound, "status", "") == ENFORCED
        names = [unit] if unit is not None and enforced else [unit, of_bound]
        for name in names:
            if name and not (self.unit and same_unit(name, self.unit)):
                declared = f"protects {self.unit!r}" if self.unit else "declares no unit"
                raise ValueError(
                    f"{self.path} {declared}, not {name!r}: what is spent on one unit says nothing of "
                    "another"
                )

    def recall(
        self, workload: Workload, alpha: float | None = None
    ) -> tuple[Float[np.ndarray, " queries"], Float[np.ndarray, " queries"]]:
        """Answers from the bank and their standard errors, at no cost.

        At a finite α the error is a posterior standard deviation, bias included, and no confidence.

        Parameters
        ----------
        workload : Workload
            Queries that are sums of cells with weights.
        alpha : float, optional
            How far the data may lie from the prior, in tuples (see `KernelPCA`): by default the
            declared total, which is the cautious choice, else ∞, which is unbiased.
            `inference.select_alpha(session.bank)` finds a better one.

        Returns
        -------
        values : float64[queries]
            In counts.
        errors : float64[queries]
            In counts; inf where the bank cannot tell.

        Raises
        ------
        ValueError
            If the bank is empty and α is ∞.
        """
        posterior = self._posterior(alpha)
        if not len(posterior) and posterior.alpha == inf:
            raise ValueError("the bank is empty: nothing was bought that could be recalled")
        values, errors = posterior.answer(workload, error=True)
        return values, np.nan_to_num(errors, nan=inf, posinf=inf)

    def price(self, workload: Workload, error: float, alpha: float | None = None) -> float:
        """The least further ε for this workload after which `recall` errs by no more than `error`.

        To within about 1e-6, and what the noise's grid adds.

        Parameters
        ----------
        workload : Workload
            Queries that are sums of cells with weights.
        error : float
            The largest standard error wanted, in counts.
        alpha : float, optional
            As in `recall`.

        Returns
        -------
        float
            0 if no query errs by more already.

        Raises
        ------
        ValueError
            If it costs more than what remains.
        """
        from workbench.session.price import LARGE_VARIANCE, noise_for_error, variance_after

        if not (isinstance(error, int | float | np.number) and 0 < error < inf):
            raise ValueError(f"error = {error!r} is not allowed: need a number > 0")
        posterior = self._posterior(alpha)
        queries = linear_queries(workload, self.domain)
        variance_left = variance_after(posterior, queries)
        wanted = noise_for_error(variance_left, float(error))
        if wanted == inf:
            return 0.0
        moved = workload_sensitivity(queries, self.domain) * self.bound.l1
        epsilon = sqrt(2 / wanted) * moved
        remaining = self.remaining
        noise_variance = inf
        while noise_variance > wanted and epsilon <= remaining:
            trial = LaplaceQueries(DP(epsilon), queries)(self._empty_table).estimate
            noise_variance = float(trial.variances[0])
            if noise_variance > wanted:  # the grid adds to the noise
                epsilon *= sqrt(noise_variance / wanted) * (1 + 1e-9)
        if epsilon > remaining:
            most = 2 * (moved / remaining) ** 2 if remaining else LARGE_VARIANCE
            best = sqrt(variance_left(most))
            message = (
                f"error = {error!r} costs epsilon = {epsilon:.6g}, but {remaining!r} remain of "
            )
            message += str(self.budget)
            if best**2 < LARGE_VARIANCE / 2:
                message += f": spending that leaves an error of {best:.6g}"
            raise ValueError(message)
        return epsilon

    @property
    def remaining(self) -> float:
        """The largest ε that can still be asked for."""
        return self._rounded_remaining()[0]

    @property
    def remaining_delta(self) -> float:
        """The largest δ that can still be asked for."""
        return self._rounded_remaining()[1]

    @property
    def ledger(self) -> pd.DataFrame:
        """One row a question or release: when, what, how many queries, the noise's standard deviation,
        whether it was `answered`, or released, ε and δ, and the file that was released. An answer can
        be lost, its price cannot.
        """
        names = ["question", "time", "asked", "queries", "deviation", "answered"]
        names += ["epsilon", "delta", "file"]
        select = f"SELECT {', '.join(names)} FROM ({session_file.ANSWERED}) ORDER BY question"
        with self._file.transaction(write=False) as db:
            rows = db.execute(select).fetchall()
            return pd.DataFrame(rows, columns=names).set_index("question")

    @property
    def bank(self) -> NoisyAnswers:
        """All answers in the order they were bought; a ValueError if there are none."""
        return NoisyAnswers.history(self._answers())

    def _answers(self) -> list[NoisyAnswers]:
        """The answers to each question; each is read from the file once."""
        with self._file.transaction(write=False) as db:
            answered = f"({session_file.ANSWERED}) WHERE answered AND queries ORDER BY question"
            rows = db.execute(f"SELECT question FROM {answered}")
            questions = [question for (question,) in rows.fetchall()]
            if questions and (self.domain is None or self._stated_bank):  # another process's
                self._belong_to(self._file.settle(db, self._stated_bank))
                self._stated_bank = {}
            for question in questions:
                if question not in self._answers_by_question:
                    self._answers_by_question[question] = self._read_answers(db, question)
        return [self._answers_by_question[question] for question in questions]

    def _read_answers(self, db: sqlite3.Connection, question: int) -> NoisyAnswers:
        answers = session_file.read_sealed(db, self.path, question)
        texts, variances, values = zip(*answers, strict=True)
        return NoisyAnswers(
            self.domain, serialise.from_text(self.domain, texts), values, variances
        )

    def _posterior(self, alpha: float | None) -> Posterior:
        """What the bank tells at α; its decomposition is computed anew only after new answers."""
        if alpha is None:
            alpha = self.total or inf
        answers = self._answers()
        if self.domain is None:
            raise ValueError("the bank is empty: nothing was bought that could be recalled")
        method = KernelPCA(alpha, self.total, self._prior)
        if self._eigenqueries is None or self._eigenqueries[0] != len(answers):
            eigen = method(answers).eigen if answers else self._no_eigenqueries(method.prior)
            self._eigenqueries = (len(answers), eigen)
        return Posterior(self._eigenqueries[1], method.alpha)

    def _no_eigenqueries(self, prior: Any) -> Eigenqueries:
        none = np.empty(0)
        no_queries = Products.of(self.domain, [])
        square = np.empty((0, 0))
        return Eigenqueries(
            self.domain, no_queries, self.total, prior, none, square, none, none
        )

    def _rounded_remaining(self) -> tuple[float, float]:
        with self._file.transaction(write=False) as db:
            epsilon, delta = self._exactly_remaining(db)
        return round_down(epsilon), round_down(delta)

    def _exactly_remaining(self, db: sqlite3.Connection) -> tuple[Fraction, Fraction]:
        epsilon = Fraction(self.budget.epsilon)
        delta = Fraction(self.budget.delta)
        for spent_epsilon, spent_delta in db.execute("SELECT epsilon, delta FROM ledger"):
            epsilon -= Fraction(spent_epsilon)
            delta -= Fraction(spent_delta)
        return epsilon, delta

    def close(self) -> None:
        """Let go of the table; the bank still answers."""
        self._table = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            return (
                f"<Session {self.path.name}: {stated(self.remaining)} of {self.budget} remain>"
            )
        except (OSError, ValueError):
            return f"<Session {self.path.name}: cannot be read>"


def _stated(table, budget, total, dataset) -> dict[str, Any]:
    """What the caller says that the session belongs to, as the file holds it."""
    stated: dict[str, Any] = {}
    if dataset is not None or table is not None:
        stated["dataset"] = dataset
    if dataset is not None and not isinstance(dataset, str):
        raise ValueError(f"dataset = {dataset!r} is not allowed: need text, name and version")
    if total is not None:
        stated["total"] = float(KernelPCA(1.0, total=total).total)
    if budget is not None:
        is_finite = isinstance(budget, DP) and 0 < budget.epsilon < inf
        if not is_finite or budget.delta >= 1:
            raise ValueError(
                f"budget = {budget!r} is not allowed: need DP(0 < epsilon < inf, 0 <= delta < 1)"
            )
        stated["budget"] = [float(budget.epsilon), float(budget.delta)]
    if table is not None:
        if not isinstance(table, SparseTable):
            raise ValueError(f"table = {type(table)} is not allowed: need a SparseTable")
        l1 = float(sensitivity(table))
        stated["bound"] = [int(table.bound.l0), float(table.bound.linf), l1]
        stated["domain"] = table.domain.to_dict()
    return stated


def _stated_people(
    people: str | None, unit: str | None, relation: str | None
) -> dict[str, Any]:
    """Whom the caller takes the file to be about, as the file holds it."""
    stated = {}
    for name, text in {"people": people, "unit": unit}.items():
        if text is not None:
            if not isinstance(text, str) or not text.strip() or not text.isprintable():
                raise ValueError(f"{name} = {text!r} is not allowed: need a name in words")
            stated[name] = " ".join(text.split())
    if relation is not None:
        if relation not in RELATIONS:
            raise ValueError(
                f"relation = {relation!r} is not allowed: need one of {', '.join(RELATIONS)}"
            )
        stated["relation"] = relation
    return stated


def _of_the_bank(stated: dict[str, Any]) -> dict[str, Any]:
    """Of what was stated, what belongs to the answers and not to the budget."""
    return {name: x for name, x in stated.items() if name in session_file.OF_THE_BANK}


def _resolved(path: str | Path) -> Path:
    path = Path(path).resolve()
    if path.is_dir():
        raise ValueError(f"{path} is a folder: need the path of a file")
    return path


def _now() -> str:
    return datetime.now(UTC).isoformat("T", "seconds")


def _what_recall_answers(db: sqlite3.Connection) -> str:
    answered = f"({session_file.ANSWERED}) WHERE answered AND queries ORDER BY question"
    rows = db.execute(f"SELECT asked, queries, deviation FROM {answered}").fetchall()
    sources = [f"{text[:80]} ({n} queries, noise of ±{d:.3g})" for text, n, d in rows[:5]]
    if len(rows) > 5:
        sources.append(f"{len(rows) - 5} more questions")
    return f"Recall still answers, for nothing, from {'; '.join(sources) or 'an empty bank'}"
