"""Banks: answers that were paid for, what they say about further queries, and synthetic rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from math import exp, inf, isfinite, log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from workbench.compiled import pa, pd
from workbench.data import Bound, SparseTable, WideTable
from workbench.estimates import NoisyAnswers
from workbench.estimates.release_files import write_release
from workbench.inference import KernelPCA
from workbench.inference.answer_bank import KERNEL, TREE, AnswerBank, Recalled
from workbench.inference.eigenqueries import Eigenqueries, prior_vectors
from workbench.inference.kernel_pca import Posterior
from workbench.inference.marginals import used_attributes
from workbench.inference.model import Model
from workbench.mechanisms import GaussianQueries, LaplaceQueries
from workbench.mechanisms.protocol import sensitivity
from workbench.owner import ledger
from workbench.owner.budget import Budget
from workbench.privacy import DP, ZCDP
from workbench.queries import (
    Linear,
    Products,
    Recipe,
    as_workload,
    linear_queries,
    workload_l2_squared,
    workload_sensitivity,
)
from workbench.queries import stated as serialise
from workbench.queries.inner import inner_products
from workbench.spaces import Domain
from workbench.value import counted, stated

if TYPE_CHECKING:
    import sqlite3


# Synthesis

_NOTE = (
    "Made-up rows: they agree with noisy answers that were paid for, and with nothing else of anybody. "
    "What was spent is the guarantee; drawing more rows costs nothing."
)


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticRows:
    """Rows of a model of the tuples.

    Parameters
    ----------
    table : SparseTable
        The rows, public.
    model : Model
        What they were drawn from.
    guarantee : dict
        What all answers cost of which budget, and whom it protects; `doubts`, where the answers
        contradict the total or each other, or the model did not converge.
    """

    table: SparseTable
    model: Model
    guarantee: dict[str, str]

    def __repr__(self) -> str:
        return f"<SyntheticRows {len(self):,} of {' × '.join(self.table.domain.attributes)}>"

    def __len__(self) -> int:
        return int(self.table.total)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per record, a column an attribute, of labels.

        Returns
        -------
        pandas.DataFrame
        """
        return self.table.domain.frame(self.table.keys.repeat(self.table.counts))

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write them: `.parquet` holds the guarantee itself, `.csv` has it in `.csv.json` beside.

        Parameters
        ----------
        path : path
            Ends in .csv or .parquet.
        force : bool
            Overwrite an existing file.

        Raises
        ------
        ValueError
            For another ending, or if a file is there.
        """
        table = pa.Table.from_pandas(self.to_frame(), preserve_index=False)
        record = {**self.guarantee, "note": _NOTE}
        write_release(table.replace_schema_metadata(None), record, Path(path), force)


# Price


def answering(cost: DP | ZCDP, queries: Recipe) -> Any:
    """Return the mechanism that answers queries at a cost: with Gaussian noise for a ρ, else with Laplace
    noise.
    """
    return (GaussianQueries if isinstance(cost, ZCDP) else LaplaceQueries)(cost, queries)


def noise_variance(cost: DP | ZCDP, queries: Recipe, empty: SparseTable | WideTable) -> float:
    """Return the variance of the noise that would be drawn, grid included, from a table without records."""
    return float(answering(cost, queries)(empty).estimate.variances[0])


class Price(float):
    """An ε, and `why`: which method will recall what it buys."""

    why: str

    def __new__(cls, epsilon: float, why: str) -> Price:
        """Return the ε, and what is said of it."""
        price = super().__new__(cls, epsilon)
        price.why = why
        return price


LARGE_VARIANCE = 1e280  # of an answer that tells nothing


def noise_for_error(variance_left: Callable[[float], float], error: float) -> float:
    """Return the largest variance of noise after which the largest error is `error`, or ∞ if any will do."""
    from scipy.optimize import brentq

    target = min(max(error, 1e-99), 1e99) ** 2
    if variance_left(LARGE_VARIANCE) <= target * (1 + 1e-9):
        return inf

    def log_ratio(x: float) -> float:
        return log(variance_left(exp(x)) / target)

    variance = exp(brentq(log_ratio, log(target) - 1, log(LARGE_VARIANCE)))
    return variance * (1 - 1e-8)  # what rounding takes


def variance_after(posterior: Posterior, queries: Linear) -> Callable[[float], float]:
    """Return the largest variance among `queries` after a further answer to all of them, by its noise's.

    A posterior covariance Σ d·u·uᵀ becomes Σ u·uᵀ/(1/d + 1/v), v the variance of the noise. At α = ∞
    what no past query reaches has infinite d, and what is reached keeps its own.
    """
    eigen = posterior.eigen
    alpha = posterior.alpha
    squares = eigen.squares
    projected = eigen.project(queries)
    rest = inner_products(
        queries, queries, eigen.domain, prior_vectors(eigen.prior, eigen.domain)
    )
    if eigen.total is not None:
        rest -= np.outer(projected.means, projected.means)
    smallest = 1e-13 * len(rest) * rest.diagonal().max(initial=0)
    rest -= (projected.coefficients / squares) @ projected.coefficients.T
    unbiased = projected.bias_share == 0
    rest[unbiased] = 0
    rest[:, unbiased] = 0
    covariance = (
        projected.coefficients / (squares * (squares + alpha**-2.0))
    ) @ projected.coefficients.T
    if isfinite(alpha):
        covariance += alpha**2 * rest
        reached = np.eye(len(rest))
        unreached = np.empty((len(rest), 0))
    else:
        sizes, vectors = np.linalg.eigh(rest)
        reached = vectors[:, sizes <= smallest]
        unreached = vectors[:, sizes > smallest]
    d, u = np.linalg.eigh(reached.T @ covariance @ reached)
    d = np.maximum(d, 0)
    shares = (reached @ u) ** 2
    unknown = (unreached**2).sum(axis=1)
    unknown[unknown < 1e-9] = 0  # rounding
    return lambda v: float((v * unknown + shares @ (v * (d / (v + d)))).max(initial=0))


# Bank

_MOST_ENTRIES = 2**21  # of queries about one cell each, laid out along an attribute


class Bank:
    """Answers that were paid for, which belong to one domain, bound and dataset. Using them is free.

    Parameters
    ----------
    budget : Budget or path
        The budget that pays for the answers. Its file keeps them.
    dataset : str, optional
        A declared name and version. Data are never hashed, because a hash reveals them.
    total : float, optional
        The public number of tuples. It stays with the file.
    prior : optional
        What `recall` expects of the cells beforehand, as `KernelPCA` takes it. It may change.

    Attributes
    ----------
    domain, bound : Domain and Bound, or None
        Of the table that was asked. None until the first question.

    Raises
    ------
    ValueError
        If the file's bank belongs to another dataset or total, or the prior does not fit its domain.
    """

    total: float | None
    dataset: str | None
    domain: Domain | None
    bound: Bound | None

    def __init__(
        self,
        budget: Budget | str | Path,
        *,
        dataset: str | None = None,
        total: float | None = None,
        prior: Any = None,
    ) -> None:
        self.budget = budget if isinstance(budget, Budget) else Budget(budget)
        self._file = self.budget.file
        self._prior = KernelPCA(1.0, prior=prior).prior
        self._declared: dict[str, Any] = {}
        self._agrees = False  # with the file, since it has a bank
        self._answers_by_question: dict[int, NoisyAnswers] = {}
        self._eigenqueries: tuple[int, Eigenqueries] | None = None  # of so many questions
        self._fits: tuple[int, AnswerBank] | None = None
        if dataset is not None:
            if not isinstance(dataset, str):
                raise ValueError(
                    f"dataset = {dataset!r} is not allowed: need text, name and version"
                )
            self._declared["dataset"] = dataset
        if total is not None:
            self._declared["total"] = _checked_total(total)
        self._settle()

    def declare(self, table: SparseTable | WideTable) -> None:
        """Say which table the answers are about. The file keeps it with the first answer.

        Raises
        ------
        ValueError
            If the bank belongs to another domain, bound or dataset.
        """
        if not isinstance(table, SparseTable | WideTable):
            raise ValueError(f"table = {type(table)} is not allowed: need a SparseTable")
        l1 = float(sensitivity(table))
        bound: Any = table.bound
        self._declared = {"dataset": None} | self._declared
        self._declared["bound"] = [int(bound.l0), float(bound.linf), l1]
        self._declared["domain"] = table.domain.to_dict()
        self._agrees = False
        self._settle()

    def begin(self) -> None:
        """Write what was declared into the file, if it is not there yet."""
        with self._file.transaction() as db:
            self._belong_to(self._file.begin_bank(db, self._declared))

    def _settle(self) -> None:
        """Compare what was declared with the file."""
        with (
            self._file.transaction(write=False) as db,
            ledger.refused_if_strange(self._file.path),
        ):
            self._belong_to(self._file.settle(db, self._declared))

    def _belong_to(self, about: dict[str, Any]) -> None:
        """Take over what the file says, if the prior fits it."""
        self.total = _checked_total(about["total"])
        self.dataset = about["dataset"]
        self.domain = None
        self.bound = None
        if about["domain"] is not None:
            self.domain = Domain.from_dict(about["domain"], folder=None)
            self.bound = Bound(*about["bound"])
            self.empty_table = empty_table(self.domain, self.bound)
            if self._prior is not None:  # the uniform one fits; it is laid out when it is used
                prior_vectors(self._prior, self.domain)

    def __repr__(self) -> str:
        try:
            answers = counted(sum(map(len, self.by_question())), "answer")
            return f"<Bank {self._file.path.name}: {answers}>"
        except (OSError, ValueError):
            return f"<Bank {self._file.path.name}: cannot be read>"

    def reserve(
        self, db: sqlite3.Connection, question: int, answers: NoisyAnswers
    ) -> list[tuple[Any, ...]]:
        """Make room for the answers to a question, in the transaction that pays for them.

        Returns
        -------
        list of tuple
            For each answer its place in the file, its query as text, and its variance.
        """
        if not self._agrees:
            self._belong_to(self._file.begin_bank(db, self._declared))
        first = db.execute("SELECT coalesce(max(place), 0) + 1 FROM bank").fetchone()[0]
        texts = serialise.to_text(answers.workload)
        rows = [*zip(count(first), texts, answers.variances.tolist(), strict=False)]
        insert = f"INSERT INTO bank VALUES (?, {question}, ?, ?, zeroblob(8))"
        db.executemany(insert, rows)
        return rows

    def keep(self, question: int, reserved: list[tuple[Any, ...]], values: list[float]) -> None:
        """Write down the answers to a question for which room was made."""
        with self._file.transaction() as db:
            places = [(x, place) for x, (place, *_) in zip(values, reserved, strict=True)]
            db.executemany("UPDATE bank SET value = ? WHERE place = ?", places)
            answers = [(*row[1:], x) for row, x in zip(reserved, values, strict=True)]
            ledger.seal(db, question, answers)
        self._agrees = True

    def contents(self) -> str:
        """Return what was bought in words, for somebody whose budget does not pay for more."""
        rows = self.budget.ledger.itertuples()
        bought = [row for row in rows if row.answered and pd.notna(row.queries)]
        sources = [f"{row.asked[:120]} (noise of ±{row.deviation:.3g})" for row in bought[:5]]
        if len(bought) > 5:
            sources.append(f"{len(bought) - 5} more questions")
        return "; ".join(sources) or "an empty bank"

    def recall(
        self,
        workload: Recipe | Mapping[str, Any] | str | Sequence[Any],
        alpha: float | None = None,
        *,
        by: str | None = None,
        error: bool = True,
    ) -> Recalled:
        """Answers from the bank and their error bars, at no cost.

        The bank's own answers choose the method (`inference.answer_bank`); no table is needed.

        Parameters
        ----------
        workload : Workload, or queries by label
            Queries that are sums of cells with weights; by label as `Release.answer` takes them.
        alpha : float, optional
            Kernel PCA at this trade-off, in tuples, with the session's prior alone; ∞ is unbiased. At a
            finite α its error is a posterior standard deviation, bias included, and no confidence.
        by : str, optional
            A method in place of the bank's choice: "kernel PCA" or "junction tree".
        error : bool
            Whether error bars are wanted.

        Returns
        -------
        Recalled
            `values` and `errors` in counts, to which it unpacks, or inf where the bank cannot tell. `by`
            names the method, and `why` says why, and what the bars are made of.

        Raises
        ------
        ValueError
            If the bank is empty and α is ∞, for a method that is not known or not possible, or for
            kernel PCA of more than 6,000 answers to different queries, whose matrices would take more
            than 4 GB. Without `by` and α, such banks are left to a junction tree, if there is one.
        """
        if alpha is not None and by not in (None, KERNEL):
            raise ValueError(
                f"alpha = {alpha!r} is not allowed with by = {by!r}: it is kernel PCA's"
            )
        answers = self.by_question()
        queries = as_workload(self.domain, workload)
        if alpha is None and answers:
            return self.fits(answers).recall(queries, by, error)
        posterior = self._posterior(alpha)
        if not len(posterior) and posterior.alpha == inf:
            raise ValueError("the bank is empty: nothing was bought that could be recalled")
        why = f"as was asked for, at alpha = {posterior.alpha:g}"
        if alpha is None:
            why = "the bank is empty: this is the prior"
        if not error:
            return Recalled(posterior.answer(queries), None, KERNEL, why)
        values, errors = posterior.answer(queries, error=True)
        return Recalled(values, errors, KERNEL, why)

    def price(
        self,
        workload: Recipe | Mapping[str, Any] | str | Sequence[Any],
        error: float,
        alpha: float | None = None,
        *,
        by: str | None = None,
        rho: float | None = None,
    ) -> Price:
        """Return the least further ε, or ρ, for this workload after which kernel PCA errs by no more than
        `error`.

        To within about 1e-6, and what the noise's grid adds. Where `recall` would take another method,
        the price is that of kernel PCA all the same, and `Price.why` says so: it depends on the bank alone.

        Parameters
        ----------
        workload : Workload, or queries by label
            As in `recall`.
        error : float
            The largest standard error wanted, in counts.
        alpha, by
            As in `recall`.
        rho : float, optional
            The most that it may cost, of a budget of zCDP; all that remains, if not given.

        Returns
        -------
        Price
            A float, which says `why`, or 0 if no query errs by more already.

        Raises
        ------
        ValueError
            If it costs more than that or than what remains, with the error that would be left.
        """
        if not (isinstance(error, int | float | np.number) and 0 < error < inf):
            raise ValueError(f"error = {error!r} is not allowed: need a number > 0")
        remaining = self.budget.remaining
        if rho is not None:
            if not isinstance(self.budget.limit, ZCDP):
                raise ValueError(
                    f"rho = {rho!r} is not allowed: {self.budget.limit} is no budget of rho"
                )
            remaining = min(remaining, ZCDP(rho).rho)
        asked = as_workload(self.domain, workload)
        posterior, why = self._priced(alpha, by)
        queries = linear_queries(asked, posterior.eigen.domain)
        variance_left = variance_after(posterior, queries)
        wanted = noise_for_error(variance_left, float(error))
        if wanted == inf:
            return Price(0.0, why)
        price, variance, measured = self._price_of_variance(queries)
        cost = price(wanted)
        found = inf
        while found > wanted and cost <= remaining:
            found = measured(cost)
            if found > wanted:  # the grid adds to the noise
                cost *= price(wanted) / price(found) * (1 + 1e-9)
        if cost > remaining:
            best = sqrt(variance_left(variance(remaining) if remaining else LARGE_VARIANCE))
            message = f"error = {error:.6g} costs {self.budget.price} = {cost:.6g}, "
            message += f"but {stated(remaining)} "
            message += f"remain of {self.budget.limit}" if rho is None else "may be spent"
            if best**2 < LARGE_VARIANCE / 2:
                message += f": spending that leaves an error of {best:.6g}"
            raise ValueError(message)
        return Price(cost, why)

    def _price_of_variance(self, queries: Linear) -> tuple[Callable[[float], float], ...]:
        """Return what noise of a variance costs, the variance that a price buys, and that of its draws.

        In ε for Laplace noise, or in ρ for Gaussian noise from a budget of zCDP.
        """
        table = self.empty_table
        kind = type(self.budget.limit)

        def drawn(price: float) -> float:
            return noise_variance(kind(price), queries, table)

        if kind is ZCDP:
            squared = (
                float(workload_l2_squared(queries, table.domain)) * sensitivity(table) ** 2
            )
            return lambda v: squared / (2 * v), lambda rho: squared / (2 * rho), drawn
        moved = workload_sensitivity(queries, table.domain) * sensitivity(table)
        return lambda v: sqrt(2 / v) * moved, lambda e: 2 * (moved / e) ** 2, drawn

    def _priced(self, alpha: float | None, by: str | None) -> tuple[Posterior, str]:
        """Return the posterior that a price is of, and what it has to do with the method of `recall`."""
        answers = self.by_question()
        if alpha is not None or not answers:
            return self._posterior(alpha), "at the alpha that was asked for, or the total"
        bank = self.fits(answers)
        method, _ = bank.choose(by)
        why = "recall answers by kernel PCA too"
        if method != KERNEL:
            why = f"recall answers by {method}; the price is that of kernel PCA"
        why = "; ".join([why, *bank.doubts()])
        return bank.posterior(bank.cautious_alpha), why

    def fits(self, answers: list[NoisyAnswers]) -> AnswerBank:
        """Return the fits to all answers, made anew only after new ones."""
        if self._fits is None or self._fits[0] != len(answers):
            bank = AnswerBank(_history(answers), self.total, self._prior)
            self._fits = (len(answers), bank)
        return self._fits[1]

    def synthesize(self, n: int, seed: int = 0) -> SyntheticRows:
        """Rows that agree with everything that was paid for, as far as its noise lets them.

        Parameters
        ----------
        n : int
            How many.
        seed : int
            Of the draw, which tells nothing.

        Returns
        -------
        SyntheticRows
            `table`, `to_frame()` and `save(path)`.

        Raises
        ------
        ValueError
            If the bank is empty, does not say how many tuples there are, or has no set of attributes
            of few cells; or for n that is not an integer.
        """
        answers = self.by_question()
        if not answers:
            raise ValueError("the bank is empty: nothing was bought that rows could agree with")
        bank = self.fits(answers)
        model = bank.tree.model
        budget = self.budget
        guarantee = {"budget": str(budget.limit), "remaining": stated(budget.remaining)}
        guarantee |= {
            "relation": budget.relation,
            "unit": budget.unit or "as the table's bound says",
        }
        doubts = bank.doubts(TREE)
        if doubts:
            guarantee["doubts"] = "; ".join(doubts)
        return SyntheticRows(model.synthetic(n, seed).table, model, guarantee)

    def pair_errors(self, queries: int = 2000) -> pd.DataFrame:
        """Map how well the bank answers cells of each pair of attributes, at no cost.

        Of pairs of many cells some are looked at, always the same, drawn at random.

        Parameters
        ----------
        queries : int
            How many cells are looked at, over all pairs; at least four a pair.

        Returns
        -------
        pandas.DataFrame
            A row a pair: `first`, `second`, `cells`; `error`, the root mean square of the ±1 bars of its
            cells by one method for all, in counts, inf where the bank cannot tell; and whether an answer
            about both was `bought`.

        Raises
        ------
        ValueError
            If the bank is empty.
        """
        history = self.answers
        domain = history.domain
        pairs = list(combinations(range(len(domain.shape)), 2))
        at_random = np.random.default_rng(0)
        each = min(queries // max(1, len(pairs)), _MOST_ENTRIES // max(domain.shape))
        each = max(4, each)
        lows = []
        for k, j in pairs:
            cells = domain.shape[k] * domain.shape[j]
            chosen = at_random.choice(cells, min(cells, each), replace=False)
            low = np.zeros((len(chosen), len(domain.shape)), np.int64)
            low[:, k], low[:, j] = np.divmod(chosen, domain.shape[j])
            lows.append(low)
        number = np.repeat(np.arange(len(pairs)), [len(low) for low in lows])
        lo = np.concatenate([np.zeros((0, len(domain.shape)), np.int64), *lows])
        hi = np.tile(domain.shape, (len(lo), 1))
        for axis in range(2):
            own = np.array([pair[axis] for pair in pairs], int)[number]
            hi[np.arange(len(lo)), own] = lo[np.arange(len(lo)), own] + 1
        _, errors = self.recall(Products.boxes(domain, lo, hi))
        used = used_attributes(history.workload, domain)
        rows = [
            {
                "first": domain.attributes[k],
                "second": domain.attributes[j],
                "cells": domain.shape[k] * domain.shape[j],
                "error": float(np.sqrt(np.mean(errors[number == i] ** 2))),
                "bought": bool((used[:, k] & used[:, j]).any()),
            }
            for i, (k, j) in enumerate(pairs)
        ]
        return pd.DataFrame(rows, columns=["first", "second", "cells", "error", "bought"])

    @property
    def answers(self) -> NoisyAnswers:
        """All answers in the order they were bought. A ValueError if there are none."""
        return NoisyAnswers.history(self.by_question())

    def by_question(self) -> list[NoisyAnswers]:
        """Return the answers to each question. Each is read from the file once."""
        with self._file.transaction(write=False) as db:
            answered = f"({ledger.ANSWERED}) WHERE answered AND queries ORDER BY question"
            rows = db.execute(f"SELECT question FROM {answered}")
            questions = [question for (question,) in rows.fetchall()]
            if questions and not self._agrees:  # they may be another process's
                self._belong_to(self._file.settle(db, self._declared))
                self._agrees = True
            for question in questions:
                if question not in self._answers_by_question:
                    self._answers_by_question[question] = self._read_answers(db, question)
        return [self._answers_by_question[question] for question in questions]

    def _read_answers(self, db: sqlite3.Connection, question: int) -> NoisyAnswers:
        answers = ledger.read_sealed(db, self._file.path, question)
        with ledger.refused_if_strange(self._file.path):
            texts, variances, values = zip(*answers, strict=True)
            domain = self.empty_table.domain
            workload = serialise.from_text(domain, texts)
            return NoisyAnswers(domain, workload, np.array(values), np.array(variances))

    def _posterior(self, alpha: float | None) -> Posterior:
        """Return what the bank tells at α; its decomposition is computed anew only after new answers."""
        if alpha is None:
            alpha = self.total or inf
        answers = self.by_question()
        if self.domain is None:
            raise ValueError("the bank is empty: nothing was bought that could be recalled")
        method = KernelPCA(alpha, self.total, self._prior)
        if self._eigenqueries is None or self._eigenqueries[0] != len(answers):
            if answers:
                history = _history(answers)
                AnswerBank.refuse_many(len(history))
                eigen = method(history).eigen
            else:
                eigen = _no_eigenqueries(self.domain, self.total, method.prior)
            self._eigenqueries = (len(answers), eigen)
        return Posterior(self._eigenqueries[1], method.alpha)


def empty_table(domain: Domain, bound: Bound) -> SparseTable | WideTable:
    """Return a table of a domain without any record."""
    if domain.is_wide:
        return WideTable.from_codes(domain, np.zeros((0, len(domain.shape)), np.int64), bound)
    return SparseTable.from_keys(domain, [], [], bound)


def _history(answers: list[NoisyAnswers]) -> NoisyAnswers:
    """Return all answers; of more than a matrix holds, those to the same query as one."""
    history = NoisyAnswers.history(answers)
    return history if len(history) <= AnswerBank.most_answers else history.without_repeats()


def _no_eigenqueries(domain: Domain, total: float | None, prior: Any) -> Eigenqueries:
    none = np.empty(0)
    no_queries = Products.of(domain, [])
    square = np.empty((0, 0))
    return Eigenqueries(domain, no_queries, total, prior, none, square, none, none)


def _checked_total(total: Any) -> float | None:
    """Return how many tuples there are, as a caller or a file says. Its square has to be a float, too."""
    if total is None:
        return None
    number = cast(float, KernelPCA(1.0, total=total).total)
    if not 1e-100 <= number <= 1e100:
        raise ValueError(
            f"total = {total!r} is not allowed: need a number from 1e-100 to 1e100"
        )
    return number
