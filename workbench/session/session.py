"""The session itself: questions asked for a price, and answers recalled for nothing."""

from __future__ import annotations

import warnings
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
from workbench.mechanism import Release, sensitivity
from workbench.mechanisms import LaplaceQueries
from workbench.privacy import DP
from workbench.session.file import SessionFile
from workbench.shares import round_down
from workbench.table import Bound, SparseTable
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
    """Questions to one private table within one budget, in one file; made by `Session.open`.

    The budget is one unit's, added or removed, over the life of the file. Noise is the operating
    system's: there is no `rng`, so that nothing simulated is ever in a bank.
    """

    def __init__(self, file: SessionFile, table: SparseTable | None, prior: Any):
        self._file = file
        self._table = table
        self._prior = prior
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
    ) -> Self:
        """Open a session's file, or begin one, which belongs to this budget, domain, bound and dataset.

        Parameters
        ----------
        path : path
            The session's file. It is created where `table` and `budget` are given and no file is there.
        table : SparseTable, optional
            The private table. Without it the bank still answers.
        budget : DP, optional
            What all questions together may cost a unit: a finite ε > 0, and δ = 0.
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
            The session that `<data>.session` names is gone: the caller knows, and counts what it spent.

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
        path = Path(path).resolve()
        if path.is_dir():
            raise ValueError(f"{path} is a folder: need the path of a file")
        stated = _stated(table, budget, total, dataset)
        session = cls(SessionFile(path), table, KernelPCA(1.0, prior=prior).prior)
        can_begin = table is not None and budget is not None
        if is_new and not (can_begin and path.parent.is_dir()):
            raise FileNotFoundError(
                f"{path}: no such session; one begins with table and budget, in a folder that exists"
            )
        with session._file.transaction(new=can_begin, write=can_begin) as db:
            session._belong_to(session._file.settle(db, stated))
            if data is not None:
                session._file.lock_data(Path(data).resolve(), lost)
        return session

    def _belong_to(self, metadata: dict[str, Any]) -> None:
        """Take over what the file says, if the prior fits it."""
        self.total = metadata["total"]
        self.budget = DP(metadata["budget"])
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
        mechanism = LaplaceQueries(DP(epsilon), workload)
        # On no data: what is refused at all is refused before it is paid for.
        trial = mechanism(self._empty_table).estimate
        places, question = self._spend(float(epsilon), repr(workload), trial)
        release = mechanism(self._table)
        try:
            with self._file.transaction() as db:
                rows = zip(release.estimate.values.tolist(), places, strict=True)
                db.executemany("UPDATE bank SET value = ? WHERE place = ?", rows)
                db.execute("UPDATE ledger SET answered = 1 WHERE question = ?", (question,))
        except (OSError, ValueError) as e:
            warnings.warn(f"answered and paid for, but not kept in the bank: {e}", stacklevel=2)
        return release

    def _spend(self, epsilon: float, text: str, trial: NoisyAnswers) -> tuple[range, int]:
        """Write a spend, and make room for the answers: their places, and the question's number."""
        with self._file.transaction() as db:
            remaining = self._exactly_remaining(db)
            if Fraction(epsilon) > remaining:
                raise ValueError(
                    f"epsilon = {epsilon!r} is more than the {round_down(remaining)!r} that remain "
                    f"of {self.budget}: nothing was spent. {_what_recall_answers(db)}"
                )
            now = datetime.now(UTC).isoformat("T", "seconds")
            row = (now, text, len(trial), sqrt(trial.variances.max()), epsilon)
            question = db.execute(
                "INSERT INTO ledger VALUES (NULL, ?, ?, ?, ?, 0, ?)", row
            ).lastrowid
            first = db.execute("SELECT coalesce(max(place), 0) + 1 FROM bank").fetchone()[0]
            places = range(first, first + len(trial))
            rows = zip(
                places, serialise.to_text(trial.workload), trial.variances.tolist(), strict=True
            )
            db.executemany(f"INSERT INTO bank VALUES (?, {question}, ?, ?, zeroblob(8))", rows)
        return places, question

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
        queries = linear_queries(workload, self.domain)
        variance_left = variance_after(self._posterior(alpha), queries)
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
        with self._file.transaction(write=False) as db:
            return round_down(self._exactly_remaining(db))

    @property
    def ledger(self) -> pd.DataFrame:
        """One row a question: when, what, how many queries, ε, the noise's standard deviation, and
        whether it was `answered`: an answer can be lost, its price cannot.
        """
        with self._file.transaction(write=False) as db:
            rows = db.execute("SELECT * FROM ledger ORDER BY question")
            columns = [column[0] for column in rows.description]
            return pd.DataFrame(rows.fetchall(), columns=columns).set_index("question")

    @property
    def bank(self) -> NoisyAnswers:
        """All answers in the order they were bought; a ValueError if there are none."""
        return NoisyAnswers.history(self._answers())

    def _answers(self) -> list[NoisyAnswers]:
        """The answers to each question; each is read from the file once."""
        with self._file.transaction(write=False) as db:
            rows = db.execute("SELECT question FROM ledger WHERE answered ORDER BY question")
            questions = [question for (question,) in rows.fetchall()]
            for question in questions:
                if question not in self._answers_by_question:
                    self._answers_by_question[question] = self._read_answers(db, question)
        return [self._answers_by_question[question] for question in questions]

    def _read_answers(self, db: sqlite3.Connection, question: int) -> NoisyAnswers:
        select = "SELECT query, value, variance FROM bank WHERE question = ? ORDER BY place"
        texts, values, variances = zip(*db.execute(select, (question,)), strict=True)
        return NoisyAnswers(
            self.domain, serialise.from_text(self.domain, texts), values, variances
        )

    def _posterior(self, alpha: float | None) -> Posterior:
        """What the bank tells at α; its decomposition is computed anew only after new answers."""
        if alpha is None:
            alpha = self.total or inf
        answers = self._answers()
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

    def _exactly_remaining(self, db: sqlite3.Connection) -> Fraction:
        spent = sum(Fraction(e) for (e,) in db.execute("SELECT epsilon FROM ledger"))
        return Fraction(self.budget.epsilon) - spent

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
        if not isinstance(budget, DP) or budget.delta or not 0 < budget.epsilon < inf:
            raise ValueError(f"budget = {budget!r} is not allowed: need DP(0 < epsilon < inf)")
        stated["budget"] = float(budget.epsilon)
    if table is not None:
        if not isinstance(table, SparseTable):
            raise ValueError(f"table = {type(table)} is not allowed: need a SparseTable")
        l1 = float(sensitivity(table))
        stated["bound"] = [int(table.bound.l0), float(table.bound.linf), l1]
        stated["domain"] = table.domain.to_dict()
    return stated


def _what_recall_answers(db: sqlite3.Connection) -> str:
    rows = db.execute("SELECT asked, queries, deviation FROM ledger WHERE answered").fetchall()
    sources = [f"{text[:80]} ({n} queries, noise of ±{d:.3g})" for text, n, d in rows[:5]]
    if len(rows) > 5:
        sources.append(f"{len(rows) - 5} more questions")
    return f"Recall still answers, for nothing, from {'; '.join(sources) or 'an empty bank'}"
