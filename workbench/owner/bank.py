"""Banks of paid answers, with answers to new queries and synthetic rows that are computed from them."""

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
    """Synthetic rows, which were drawn from a model.

    Parameters
    ----------
    table : SparseTable
        Synthetic rows, which are public.
    model : Model
        Model from which they were drawn.
    guarantee : dict
        Cost of all answers, their budget, and the protected unit. `doubts` contains warnings if the answers
        contradict the total or each other, or if the model did not converge.
    """

    table: SparseTable
    model: Model
    guarantee: dict[str, str]

    def __repr__(self) -> str:
        return f"<SyntheticRows {len(self):,} of {' × '.join(self.table.domain.attributes)}>"

    def __len__(self) -> int:
        return int(self.table.total)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per record and one column of labels per attribute.

        Returns
        -------
        pandas.DataFrame
        """
        return self.table.domain.frame(self.table.keys.repeat(self.table.counts))

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write the rows and their guarantee to a file. For CSV, the guarantee is in a second file with the
        ending `.csv.json`.

        Parameters
        ----------
        path : path
            Path of the file, with the ending .csv or .parquet.
        force : bool
            Whether to overwrite an existing file.

        Raises
        ------
        ValueError
            If the file has another ending, or exists and `force` is False.
        """
        table = pa.Table.from_pandas(self.to_frame(), preserve_index=False)
        record = {**self.guarantee, "note": _NOTE}
        write_release(table.replace_schema_metadata(None), record, Path(path), force)


# Price


def answering(cost: DP | ZCDP, queries: Recipe) -> Any:
    """Return the mechanism that answers queries at a cost. It uses Gaussian noise for a ρ, and Laplace
    noise for an ε.
    """
    return (GaussianQueries if isinstance(cost, ZCDP) else LaplaceQueries)(cost, queries)


def noise_variance(cost: DP | ZCDP, queries: Recipe, empty: SparseTable | WideTable) -> float:
    """Return the variance of the noise, including that of rounding to the grid. It is computed from a table
    without records.
    """
    return float(answering(cost, queries)(empty).estimate.variances[0])


class Price(float):
    """Price of better answers, as an ε or a ρ. The sentence `why` names the method that will use the paid
    answers.
    """

    why: str

    def __new__(cls, epsilon: float, why: str) -> Price:
        """Make a price with its explanation."""
        price = super().__new__(cls, epsilon)
        price.why = why
        return price


LARGE_VARIANCE = 1e280  # of an answer that tells nothing


def noise_for_error(variance_left: Callable[[float], float], error: float) -> float:
    """Return the largest variance of noise with which all errors are at most `error`. Return ∞ if every
    variance suffices.
    """
    from scipy.optimize import brentq

    target = min(max(error, 1e-99), 1e99) ** 2
    if variance_left(LARGE_VARIANCE) <= target * (1 + 1e-9):
        return inf

    def log_ratio(x: float) -> float:
        return log(variance_left(exp(x)) / target)

    variance = exp(brentq(log_ratio, log(target) - 1, log(LARGE_VARIANCE)))
    return variance * (1 - 1e-8)  # what rounding takes


def variance_after(posterior: Posterior, queries: Linear) -> Callable[[float], float]:
    """Return a function that predicts errors. It takes the variance of the noise, and returns the largest
    variance among `queries` after all of them were answered with this noise.

    Suppose that the posterior covariance is Σ d·u·uᵀ, and that the noise has the variance v. Then the
    covariance becomes Σ u·uᵀ/(1/d + 1/v). At α = ∞, d is infinite for directions that no past query
    determines.
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

_MOST_ENTRIES = 2**22  # of queries about one cell each, laid out along an attribute


class Bank:
    """Store of all noisy answers that a budget has paid for, about one dataset. Using them again has no privacy
    cost.

    Parameters
    ----------
    budget : Budget or path
        Budget that pays for the answers. They are stored in its file.
    dataset : str, optional
        Name and version that you declare. The workbench never hashes data, because a hash could reveal
        them.
    total : float, optional
        Public number of tuples. It is stored in the file.

    Attributes
    ----------
    domain, bound : Domain and Bound, or None
        Domain and bound of the table. None before the first question.

    Raises
    ------
    ValueError
        If the bank in the file has another dataset or total.
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
    ) -> None:
        self.budget = budget if isinstance(budget, Budget) else Budget(budget)
        self._file = self.budget.file
        self._declared: dict[str, Any] = {}
        self._agrees = False  # with the file, since it has a bank
        self._answers_by_question: dict[int, NoisyAnswers] = {}
        self._fits: tuple[int, AnswerBank] | None = None
        if dataset is not None:
            if not isinstance(dataset, str):
                raise ValueError(
                    f"dataset = {dataset!r} is not allowed: need a text with name and version"
                )
            self._declared["dataset"] = dataset
        if total is not None:
            self._declared["total"] = _checked_total(total)
        self._settle()

    def declare(self, table: SparseTable | WideTable) -> None:
        """State which table (domain, bound and dataset) the answers are about. The statement is stored in the
        file with the first answer.

        Raises
        ------
        ValueError
            If the bank has another domain, bound or dataset.
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
        """Store the description of the table in the file, if it is not there yet."""
        with self._file.transaction() as db:
            self._belong_to(self._file.begin_bank(db, self._declared))

    def _settle(self) -> None:
        """Compare the declared facts with the file. Raise a ValueError if they differ."""
        with (
            self._file.transaction(write=False) as db,
            ledger.refused_if_strange(self._file.path),
        ):
            self._belong_to(self._file.settle(db, self._declared))

    def _belong_to(self, about: dict[str, Any]) -> None:
        """Take over the facts that the file states."""
        self.total = _checked_total(about["total"])
        self.dataset = about["dataset"]
        self.domain = None
        self.bound = None
        if about["domain"] is not None:
            self.domain = Domain.from_dict(about["domain"], folder=None)
            self.bound = Bound(*about["bound"])
            self.empty_table = empty_table(self.domain, self.bound)

    def __repr__(self) -> str:
        try:
            answers = counted(sum(map(len, self.by_question())), "answer")
            return f"<Bank {self._file.path.name}: {answers}>"
        except (OSError, ValueError):
            return f"<Bank {self._file.path.name}: cannot be read>"

    def reserve(
        self, db: sqlite3.Connection, question: int, answers: NoisyAnswers
    ) -> list[tuple[Any, ...]]:
        """Reserve rows in the file for the answers to a question. The same transaction also records their cost.

        Returns
        -------
        list of tuple
            Row in the file, query as text, and variance for each answer.
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
        """Store the answers to a question in the rows that were reserved for them."""
        with self._file.transaction() as db:
            places = [(x, place) for x, (place, *_) in zip(values, reserved, strict=True)]
            db.executemany("UPDATE bank SET value = ? WHERE place = ?", places)
            answers = [(*row[1:], x) for row, x in zip(reserved, values, strict=True)]
            ledger.seal(db, question, answers)
        self._agrees = True

    def contents(self) -> str:
        """Summarise the stored answers in words. An error message shows this if the budget cannot pay for more
        answers.
        """
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
        """Return answers to queries, computed from the stored answers, with error bars. This has no privacy
        cost.

        The method depends on the answers in the bank (see `inference.answer_bank`). The bank needs no table
        for this.

        Parameters
        ----------
        workload : Workload, or queries by label
            Queries, each a weighted sum of cells, or queries by label in the form that `Release.answer`
            takes.
        alpha : float, optional
            Use kernel PCA at this trade-off, in tuples, with a uniform prior. ∞ is unbiased. At a finite α,
            errors are posterior standard deviations, which include bias. They are not calibrated confidence
            intervals.
        by : str, optional
            Method to use instead of the bank's choice: "kernel PCA" or "junction tree".
        error : bool
            Whether to return error bars as well.

        Returns
        -------
        Recalled
            Values and errors in counts, to which the result unpacks. An error is inf if the bank cannot
            estimate it. `by` is the name of the method, and `why` explains the choice and the parts of the
            error bars.

        Raises
        ------
        ValueError
            If the bank is empty and α is ∞, if the method is unknown or not possible, or if kernel PCA
            would need more than 4 GB for its matrices (more than 6,000 answers to different queries).
            Without `by` and α, such a bank uses a junction tree, if there is one.
        """
        if alpha is not None and by not in (None, KERNEL):
            raise ValueError(
                f"alpha = {alpha!r} is not allowed with by = {by!r}: only kernel PCA has an alpha"
            )
        answers = self.by_question()
        queries = as_workload(self.domain, workload)
        if alpha is None and answers:
            return self.fits(answers).recall(queries, by, error)
        posterior = self._posterior(alpha)
        if not len(posterior) and posterior.alpha == inf:
            raise ValueError("the bank is empty: ask a question before you recall")
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
    ) -> Price:
        """Return the additional ε (or ρ) that you have to spend for better answers to this workload. It is the
        smallest after which the error of kernel PCA is at most `error`.

        The price is accurate to about 1e-6, apart from the effect of the grid of the noise. It is always
        computed for kernel PCA, because this is possible from the bank alone. If `recall` would use another
        method, `Price.why` says so.

        Parameters
        ----------
        workload : Workload, or queries by label
            The same as for `recall`.
        error : float
            Largest acceptable standard error, in counts.
        alpha : float, optional
            The same as for `recall`.

        Returns
        -------
        Price
            A float with an explanation `why`. It is 0 if the error of every query is already small enough.

        Raises
        ------
        ValueError
            If the price exceeds the remaining budget. The message names the error that this budget would
            reach.
        """
        if not (isinstance(error, int | float | np.number) and 0 < error < inf):
            raise ValueError(f"error = {error!r} is not allowed: need a number > 0")
        remaining = self.budget.remaining
        asked = as_workload(self.domain, workload)
        posterior, why = self._priced(alpha)
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
            message = (
                f"a standard error of {error:.6g} costs {self.budget.price} = {cost:.6g}, "
            )
            message += f"but {stated(remaining)} remain of {self.budget.limit}"
            if best**2 < LARGE_VARIANCE / 2:
                message += f": spending that leaves one of {best:.6g}"
            raise ValueError(message)
        return Price(cost, why)

    def _price_of_variance(self, queries: Linear) -> tuple[Callable[[float], float], ...]:
        """Return three functions: from a variance to its cost, from a cost to its variance, and from a
        cost to the variance that is drawn.

        Costs are in ε for Laplace noise, or in ρ for Gaussian noise if the budget is in zCDP.
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

    def _priced(self, alpha: float | None) -> tuple[Posterior, str]:
        """Return the posterior from which prices are computed, and a sentence that compares it with the
        method of `recall`.
        """
        answers = self.by_question()
        if alpha is not None or not answers:
            return self._posterior(alpha), "at the alpha that was asked for, or the total"
        bank = self.fits(answers)
        method, _ = bank.choose()
        why = "recall answers by kernel PCA too"
        if method != KERNEL:
            why = f"recall answers by {method}; the price is that of kernel PCA"
        why = "; ".join([why, *bank.doubts()])
        return bank.posterior(bank.cautious_alpha), why

    def fits(self, answers: list[NoisyAnswers]) -> AnswerBank:
        """Return the models that are fitted to all stored answers. They are fitted again only if there are new
        answers.
        """
        if self._fits is None or self._fits[0] != len(answers):
            bank = AnswerBank(_history(answers), self.total)
            self._fits = (len(answers), bank)
        return self._fits[1]

    def synthesize(self, n: int, seed: int = 0) -> SyntheticRows:
        """Draw synthetic rows that agree with all stored answers, as closely as the noise of the answers
        allows.

        Parameters
        ----------
        n : int
            Number of rows.
        seed : int
            Seed of the draw. It may be public.

        Returns
        -------
        SyntheticRows
            Rows with `table`, `to_frame()` and `save(path)`.

        Raises
        ------
        ValueError
            If the bank is empty, the number of tuples is unknown, all sets of attributes have too many
            cells, or n is not an integer.
        """
        answers = self.by_question()
        if not answers:
            raise ValueError("the bank is empty: ask a question before you draw rows")
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
        """Return the expected error of the counts of each pair of attributes. This has no privacy cost.

        For pairs with many cells, the errors are computed on a random sample of cells, which is the same
        every time.

        Parameters
        ----------
        queries : int
            Number of cells in the samples of all pairs together. Each pair has at least four.

        Returns
        -------
        pandas.DataFrame
            One row per pair, with the columns `first`, `second` and `cells`, the `error` in counts, and
            `bought`. The `error` is the root mean square of the error bars (±1) of the pair's cells, by one
            method for all pairs. It is inf if the bank cannot estimate it. `bought` is whether the bank has
            an answer about both attributes.

        Raises
        ------
        ValueError
            If the bank is empty.
        """
        history = self.answers
        domain = history.domain
        pairs = list(combinations(range(len(domain.shape)), 2))
        at_random = np.random.default_rng(0)
        queries = min(queries, _MOST_ENTRIES // max(domain.shape))
        each = max(4, queries // max(1, len(pairs)))
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
        """Return all stored noisy answers, in the order in which they were paid for. Raise a ValueError if
        there are none.
        """
        return NoisyAnswers.history(self.by_question())

    def by_question(self) -> list[NoisyAnswers]:
        """Return the stored noisy answers, grouped by question. Each group is read from the file only once."""
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
        """Return what the bank tells at α, with a uniform prior."""
        if alpha is None:
            alpha = self.total or inf
        answers = self.by_question()
        if self.domain is None:
            raise ValueError("the bank is empty: ask a question before you recall")
        method = KernelPCA(alpha, self.total)
        if not answers:
            return Posterior(_no_eigenqueries(self.domain, self.total), method.alpha)
        history = _history(answers)
        AnswerBank.refuse_many(len(history))
        return method(history)


def empty_table(domain: Domain, bound: Bound) -> SparseTable | WideTable:
    """Return a table without records over a domain."""
    if domain.is_wide:
        return WideTable.from_codes(domain, np.zeros((0, len(domain.shape)), np.int64), bound)
    return SparseTable.from_keys(domain, [], [], bound)


def _history(answers: list[NoisyAnswers]) -> NoisyAnswers:
    """Return all answers. If there are too many for a matrix, answers to the same query are combined."""
    history = NoisyAnswers.history(answers)
    return history if len(history) <= AnswerBank.most_answers else history.without_repeats()


def _no_eigenqueries(domain: Domain, total: float | None) -> Eigenqueries:
    none = np.empty(0)
    no_queries = Products.of(domain, [])
    square = np.empty((0, 0))
    return Eigenqueries(domain, no_queries, total, None, none, square, none, none)


def _checked_total(total: Any) -> float | None:
    """Check a number of tuples that a caller or a file states, and return it. Its square must fit in a
    float.
    """
    if total is None:
        return None
    number = cast(float, KernelPCA(1.0, total=total).total)
    if not 1e-100 <= number <= 1e100:
        raise ValueError(
            f"total = {total!r} is not allowed: need a number from 1e-100 to 1e100"
        )
    return number
