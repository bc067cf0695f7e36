"""Banks, which store the noisy answers that a privacy budget has paid for. From these answers, a bank
computes answers to new queries, and synthetic rows.
"""

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
    """Synthetic rows, drawn from a probability model. The model is fitted to the noisy answers in a bank,
    which is a store of answers that a budget has paid for.

    Parameters
    ----------
    table : SparseTable
        Table of the synthetic rows, which is marked as public.
    model : Model
        Fitted probability model from which the rows were drawn.
    guarantee : dict
        Privacy guarantee of the rows: the budget that paid for all answers in the bank, the rest of this
        budget, and the protected unit. The entry `doubts` contains warnings. For example, a warning states that
        the answers contradict each other or the stated number of records, or that the fit of the model did not
        converge.
    """

    table: SparseTable
    model: Model
    guarantee: dict[str, str]

    def __repr__(self) -> str:
        return f"<SyntheticRows {len(self):,} of {' × '.join(self.table.domain.attributes)}>"

    def __len__(self) -> int:
        return int(self.table.total)

    def to_frame(self) -> pd.DataFrame:
        """Return the synthetic rows as a data frame with one row per record. Each attribute has a column that
        contains its labels.

        Returns
        -------
        pandas.DataFrame
        """
        return self.table.domain.frame(self.table.keys.repeat(self.table.counts))

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write the rows and their privacy guarantee to a file. If you choose CSV, the guarantee is written to
        a second file in the same folder, with the ending `.csv.json`.

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
    """Return the mechanism that answers queries at a given privacy cost. If the cost is a ρ, the mechanism uses
    Gaussian noise. If the cost is an ε, the mechanism uses Laplace noise.
    """
    return (GaussianQueries if isinstance(cost, ZCDP) else LaplaceQueries)(cost, queries)


def noise_variance(cost: DP | ZCDP, queries: Recipe, empty: SparseTable | WideTable) -> float:
    """Return the variance of the noise in each answer, including the variance from rounding the answers to a
    grid. The function uses no private data, because its table `empty` has no records.
    """
    return float(answering(cost, queries)(empty).estimate.variances[0])


class Price(float):
    """Price of more precise answers, as an ε or a ρ. The attribute `why` is a sentence that explains whether
    `Bank.recall` uses the method for which the price was computed.
    """

    why: str

    def __new__(cls, epsilon: float, why: str) -> Price:
        """Make a price with its explanation."""
        price = super().__new__(cls, epsilon)
        price.why = why
        return price


LARGE_VARIANCE = 1e280  # of an answer that tells nothing


def noise_for_error(variance_left: Callable[[float], float], error: float) -> float:
    """Return the largest variance that the noise of new answers may have, if the standard error of every
    query must be at most `error`. Return ∞ if the errors are small enough without new answers. The function
    `variance_left` computes the largest variance of a query from the variance of the noise.
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
    """Return a function that predicts how precise the answers to `queries` would be after you ask all of them.
    The returned function takes the variance of the noise in the new answers, and returns the posterior variance
    of the least precise query.

    The posterior covariance of the queries is a sum Σ d·u·uᵀ over orthogonal unit vectors u, each with a
    variance d. If the noise of the new answers has the variance v, then the covariance becomes Σ u·uᵀ/(1/d +
    1/v). Without a prior (α = ∞), d is infinite for each direction u that no past query determines.
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
    """Store of all noisy answers that a budget has paid for. All stored answers are about the same dataset.
    You may use the stored answers again without any privacy cost.

    Parameters
    ----------
    budget : Budget or path
        Budget that pays for the answers. The answers are stored in the budget's file.
    dataset : str, optional
        Name and version of the dataset, in your own words. If the file already contains a different text, the
        workbench raises an error, because the file then seems to be about another dataset. The workbench never
        compares hashes of the data, because a hash could reveal the data.
    total : float, optional
        Number of records in the table, if this number is public. With this number, the bank computes more
        precise answers. The workbench stores the number in the file.

    Attributes
    ----------
    domain, bound : Domain and Bound, or None
        Domain (list of all possible cells) and bound (largest change of the table by one protected unit). Both
        are None before you ask the first question.

    Raises
    ------
    ValueError
        If the file already contains a bank with another dataset or another total.
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
        """State which table the answers in this bank are about. When you ask the first question, the workbench
        stores the domain and the bound of the table in the file. The domain lists all possible cells. The bound
        is the largest change that one protected unit can cause. If the budget names no unit, the workbench also
        stores the unit that the bound names.

        Raises
        ------
        ValueError
            If the bank already contains answers about a table with another domain, bound or dataset.
        """
        if not isinstance(table, SparseTable | WideTable):
            raise ValueError(f"table = {type(table)} is not allowed: need a SparseTable")
        l1 = float(sensitivity(table))
        bound: Any = table.bound
        self._declared = {"dataset": None} | self._declared
        self._declared["bound"] = [int(bound.l0), float(bound.linf), l1]
        self._declared["domain"] = table.domain.to_dict()
        if self.budget.unit is None and bound.unit:
            self._declared["unit"] = bound.unit
        self._agrees = False
        self._settle()

    def begin(self) -> None:
        """Write the description of the table (domain, bound and dataset) to the budget's file, if the file
        does not contain a description yet.
        """
        with self._file.transaction() as db:
            self._belong_to(self._file.begin_bank(db, self._declared))

    def _settle(self) -> None:
        """Compare the declared dataset, total, domain and bound with those in the file. Raise a ValueError if
        they differ.
        """
        with (
            self._file.transaction(write=False) as db,
            ledger.refused_if_strange(self._file.path),
        ):
            self._belong_to(self._file.settle(db, self._declared))

    def _belong_to(self, about: dict[str, Any]) -> None:
        """Set the dataset, total, domain and bound of this object to those in the file."""
        self.total = _checked_total(about["total"])
        self.dataset = about["dataset"]
        self.budget.unit = about["unit"]
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
        """Reserve one row in the bank's file for each answer to a question. The cost of the answers is
        recorded in the same database transaction.

        Returns
        -------
        list of tuple
            One tuple per answer, with the number of the reserved row, the query as text, and the variance of
            the noise on the answer.
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
        """Store the answers to a question in the rows of the bank that were reserved for these answers."""
        with self._file.transaction() as db:
            places = [(x, place) for x, (place, *_) in zip(values, reserved, strict=True)]
            db.executemany("UPDATE bank SET value = ? WHERE place = ?", places)
            answers = [(*row[1:], x) for row, x in zip(reserved, values, strict=True)]
            ledger.seal(db, question, answers)
        self._agrees = True

    def recall(
        self,
        workload: Recipe | Mapping[str, Any] | str | Sequence[Any],
        alpha: float | None = None,
        *,
        by: str | None = None,
        error: bool = True,
    ) -> Recalled:
        """Compute answers to queries from the stored noisy answers, with error bars. The computation has no
        privacy cost.

        The bank chooses one of two methods. Kernel PCA computes a Gaussian posterior distribution of all
        counts. A junction tree is a graphical model that is fitted to the answers. `inference.answer_bank`
        explains the choice. Neither method needs the private table.

        Parameters
        ----------
        workload : Workload, or queries by label
            Queries, each of which is a weighted sum of counts. You can also name the cells by their labels, in
            the form that `Release.answer` takes.
        alpha : float, optional
            If you pass α, the bank uses kernel PCA with a uniform prior. α is the distance, in records, that
            you assume between the true table and a uniform table, in which all cells have the same count. A
            smaller α pulls the answers more strongly towards the uniform table, which reduces noise and adds
            bias. With α = ∞, there is no prior and no bias. With a finite α, the error bars are posterior
            standard deviations. Such error bars are not calibrated confidence intervals.
        by : str, optional
            Method to use instead of the bank's choice, either "kernel PCA" or "junction tree".
        error : bool
            Whether to return error bars as well.

        Returns
        -------
        Recalled
            Estimated answers with error bars (one standard deviation), both as numbers of records. You can
            unpack the result, for example with `values, errors = bank.recall(workload)`. An error is inf if the
            bank cannot estimate the query. The attribute `by` is the name of the method. The attribute `why`
            explains why this method was chosen, and what the error bars include.

        Raises
        ------
        ValueError
            If the bank is empty and α is ∞, or if the method is unknown or not possible. The error is also
            raised if you ask for kernel PCA and the bank has more than 6,000 answers to different queries.
            The matrices of kernel PCA would then need more than 4 GB. If you pass neither `by` nor `alpha`, a
            bank of this size uses a junction tree, if that is possible.
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
        why = f"you chose alpha = {posterior.alpha:g}"
        if alpha is None:
            why = "the bank is empty, so this is the prior"
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
        """Return the smallest ε (or ρ) that you have to spend on new answers, so that the standard error of
        each query is at most `error`.

        Mechanisms round noise to a grid. Apart from the effect of this rounding, the price has a relative error
        of about 1e-6. The bank always computes the price for the method kernel PCA, because the errors of this
        method can be predicted without new answers. If `recall` would use another method, the text in
        `Price.why` says so.

        Parameters
        ----------
        workload : Workload, or queries by label
            Queries for which you want more precise answers, in the form that `recall` takes.
        error : float
            Largest standard error that you accept for a query, as a number of records.
        alpha : float, optional
            Distance, in records, that you assume between the true table and a uniform table, as in `recall`. A
            smaller α lowers the price and adds bias.

        Returns
        -------
        Price
            The price as a float, with an explanation in the attribute `why`. The price is 0 if every query
            already has an error of at most `error`.

        Raises
        ------
        ValueError
            If the price exceeds the remaining budget. The message then contains the smallest `error` that the
            remaining budget can pay for.
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
                f"a standard error of {error:.3g} costs {self.budget.price} = {cost:.4g}, "
            )
            message += f"but {stated(remaining)} remain of {self.budget.limit}"
            if best**2 < LARGE_VARIANCE / 2:
                message += f". Spending the rest gives a standard error of {best:.3g}"
            raise ValueError(message)
        return Price(cost, why)

    def _price_of_variance(self, queries: Linear) -> tuple[Callable[[float], float], ...]:
        """Return three functions. The first computes the cost of noise with a given variance. The second
        computes the variance that a cost pays for. The third also computes the variance that a cost pays for,
        but includes the rounding of answers to a grid.

        If the budget is in zCDP, costs are ρ and the noise is Gaussian. Otherwise costs are ε and the noise
        is Laplace noise.
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
        """Return the posterior distribution from which prices are computed. Also return a sentence that says
        whether `recall` uses the same method.
        """
        answers = self.by_question()
        if alpha is not None:
            return self._posterior(alpha), "the price is for the alpha that you chose"
        if not answers:
            return self._posterior(
                alpha
            ), "the bank is empty, so the price is that of a first answer"
        bank = self.fits(answers)
        method, _ = bank.choose()
        why = "recall also uses kernel PCA"
        if method != KERNEL:
            why = f"recall uses {method}, but the price is that of kernel PCA"
        why = "; ".join([why, *bank.doubts()])
        return bank.posterior(bank.cautious_alpha), why

    def fits(self, answers: list[NoisyAnswers]) -> AnswerBank:
        """Return an `AnswerBank`, which fits models to the stored answers and computes new answers from them.
        If no answers were stored since the last call, the method returns the same object again.
        """
        if self._fits is None or self._fits[0] != len(answers):
            bank = AnswerBank(_history(answers), self.total)
            self._fits = (len(answers), bank)
        return self._fits[1]

    def synthesize(self, n: int, seed: int = 0) -> SyntheticRows:
        """Draw synthetic rows whose counts are close to all stored answers. A count of the synthetic rows
        differs from a stored answer by about as much as the noise in this answer.

        Parameters
        ----------
        n : int
            Number of rows.
        seed : int
            Seed of the random draw. The seed may be public, because the draw uses no private data.

        Returns
        -------
        SyntheticRows
            Synthetic rows. `to_frame()` returns the rows as a data frame, and `save(path)` writes the rows to a
            file.

        Raises
        ------
        ValueError
            If the bank is empty or n is not an integer. The error is also raised if the number of records is
            unknown, or if every set of attributes has too many cells for a model.
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
        """Return, for each pair of attributes, the error of the bank's estimates. From the stored answers, the
        bank estimates the count of each combination of the two attributes' values. The computation has no
        privacy cost.

        If a pair has many cells, the error is computed on a random sample of its cells. The sample is the
        same in every call.

        Parameters
        ----------
        queries : int
            Total number of sampled cells. Each sampled cell is one query. The sample of a pair has at least
            four cells. If a pair has fewer than four cells, all of them are used. Default 2000.

        Returns
        -------
        pandas.DataFrame
            One row per pair of attributes. The columns `first` and `second` contain the names of the two
            attributes, and `cells` contains the number of combinations of their values. `error` is the root
            mean square of the standard errors of these cells, as a number of records. `error` is inf if the
            bank cannot estimate a cell of the pair. `bought` is True if the bank contains an answer to a query
            about both attributes of the pair.

        Raises
        ------
        ValueError
            If the bank is empty.
        """
        history = self.answers
        domain = history.domain
        used = used_attributes(history.workload, domain)
        pairs = list(combinations(range(len(domain.shape)), 2))
        at_random = np.random.default_rng(0)
        queries = min(queries, _MOST_ENTRIES // max(domain.shape))
        each = max(4, queries // max(1, len(pairs)))
        rows, asked, sampled = [], [], []
        for k, j in pairs:
            first, second = domain.attributes[k], domain.attributes[j]
            cells = domain.shape[k] * domain.shape[j]
            chosen = at_random.choice(cells, min(cells, each), replace=False)
            codes = np.stack(np.divmod(chosen, domain.shape[j]), axis=1)
            asked += [{first: (x, x + 1), second: (y, y + 1)} for x, y in codes.tolist()]
            sampled.append(len(chosen))
            rows.append((first, second, cells, bool((used[:, k] & used[:, j]).any())))
        _, errors = self.recall(Products.of(domain, asked))
        found = pd.DataFrame(rows, columns=["first", "second", "cells", "bought"])
        parts = np.split(errors, np.cumsum(sampled, dtype=int))[:-1]
        found.insert(3, "error", [float(np.sqrt(np.mean(part**2))) for part in parts])
        return found

    @property
    def answers(self) -> NoisyAnswers:
        """All stored noisy answers, in the order in which they were paid for. If the bank is empty, a
        ValueError is raised.
        """
        return NoisyAnswers.history(self.by_question())

    def by_question(self) -> list[NoisyAnswers]:
        """Return a list with one element per question, which contains the stored noisy answers to this
        question. The answers to a question are read from the file only once.
        """
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
        """Return the posterior distribution of the counts by kernel PCA with a uniform prior. α is the
        distance, in records, that you assume between the true table and a uniform table.
        """
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
    """Return a table that has this domain and bound and no records."""
    if domain.is_wide:
        return WideTable.from_codes(domain, np.zeros((0, len(domain.shape)), np.int64), bound)
    return SparseTable.from_keys(domain, [], [], bound)


def _history(answers: list[NoisyAnswers]) -> NoisyAnswers:
    """Return the answers to all questions as one object. If there are too many answers for a matrix, answers
    to the same query are averaged.
    """
    history = NoisyAnswers.history(answers)
    return history if len(history) <= AnswerBank.most_answers else history.without_repeats()


def _no_eigenqueries(domain: Domain, total: float | None) -> Eigenqueries:
    none = np.empty(0)
    no_queries = Products.of(domain, [])
    square = np.empty((0, 0))
    return Eigenqueries(domain, no_queries, total, None, none, square, none, none)


def _checked_total(total: Any) -> float | None:
    """Check the number of records that a caller or a file states, and return it as a float. The number must
    be so small that its square is a finite float.
    """
    if total is None:
        return None
    number = cast(float, KernelPCA(1.0, total=total).total)
    if not 1e-100 <= number <= 1e100:
        raise ValueError(
            f"total = {total!r} is not allowed: need a number from 1e-100 to 1e100"
        )
    return number
