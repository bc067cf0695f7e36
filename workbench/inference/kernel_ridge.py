"""Fast kernel PCA at a finite α, without an eigendecomposition. It is possible for queries whose sets of
attributes overlap little.

Kernel PCA is ridge regression on past answers a. The weights of these answers are (K + α⁻²)⁻¹a, where K
contains the inner products of the past queries, in units of the noise. Suppose that any two sets of
attributes share at most one attribute. The inner product of two queries on different sets then depends only
on their conditional means, given this attribute. Therefore K = B + UUᵀ. The matrix U has a column for each
code of each attribute, and one more column if the total is not known. The matrix B has one block per set on
its diagonal, and is 0 elsewhere. To multiply by (B + α⁻²)⁻¹, one linear system per set is solved. Then
Woodbury's identity gives (K + α⁻²)⁻¹a.
Source     Hoeffding, Annals of Mathematical Statistics 1948, for the decomposition of queries; Woodbury,
           Princeton memorandum 42, 1950.
Cost       Let m_s be the number of past queries on a set, m the number of all past queries, and c the number
           of codes of all attributes. Memory is O(Σ m_s² + m·c). Time is O(Σ m_s³ + c³) for each α, and for
           each part of the answers that is held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.eigenqueries import Eigenqueries, prior_vectors
from workbench.inference.kernel_pca import SetTables
from workbench.inference.query_terms import QueryTerms
from workbench.queries import Recipe, linear_queries
from workbench.queries.inner import inner_products, means
from workbench.queries.linear import Prior
from workbench.value import Float, Int

_LARGEST = 1e10  # α² times the bound of K's largest eigenvalue: what rounding allows
# where queries are fewer, or mostly on one set, a decomposition takes less time than systems for each α
_QUERIES_A_CODE = 4
_LARGEST_SHARE = 0.5
_ROWS_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class _Set:
    """Past queries on one set of attributes, with their block of the matrix B and their rows of the matrix U.
    Both matrices are defined at the top of this module.
    """

    rows: Int[np.ndarray, " queries"]
    within: Float[np.ndarray, "queries queries"]
    columns: Int[np.ndarray, " columns"]
    shared: Float[np.ndarray, "queries columns"]


@dataclass(frozen=True, eq=False)
class KernelRidge:
    """Fit of kernel PCA to past answers, for any α (the trade-off between bias and variance) up to
    `largest_alpha`. It is faster than `Eigenqueries`, because it treats answers about the same set of
    attributes together.

    `vectors` contains the probabilities of the prior, one vector per attribute, and `means` the means of past
    queries under the prior. `residuals` contains the past answers in units of the noise, minus the part that
    a known total explains. `width` is the number of columns of the matrix U, which is defined at the top of
    this module.
    """

    history: NoisyAnswers
    total: float | None
    prior: tuple[Any, ...] | None
    vectors: Prior
    means: Float[np.ndarray, " queries"]
    residuals: Float[np.ndarray, " queries"]
    sets: tuple[_Set, ...]
    width: int

    @classmethod
    def of(
        cls, history: NoisyAnswers, total: float | None, prior: tuple[Any, ...] | None
    ) -> KernelRidge | None:
        """Prepare the fit to past answers. Return None if an eigendecomposition would be faster, or if two of
        the queries' sets of attributes share more than one attribute.
        """
        domain = history.domain
        width = sum(domain.shape) + (total is None)
        if len(history) < _QUERIES_A_CODE * width:
            return None
        vectors = prior_vectors(prior, domain)
        try:
            tables = SetTables(history.workload, domain, vectors)
        except ValueError:
            return None
        parts: dict[tuple[int, ...], list[QueryTerms]] = {}
        if len(tables.constant):
            parts[()] = [QueryTerms.of_cells((), tables.constant, 0 * tables.constant)]
        for part in tables.terms:
            parts.setdefault(part.axes, []).append(part)
        share_two = any(len({*one} & {*other}) > 1 for one, other in combinations(parts, 2))
        largest = max(sum(len(part.query) for part in own) for own in parts.values())
        one_set = largest > _LARGEST_SHARE * len(history)
        if share_two or one_set or not tables.one_term_each:
            return None
        mean = means(history.workload, domain, vectors)
        deviations = np.sqrt(history.variances)
        sets = []
        for axes, own in parts.items():
            rows = np.concatenate([part.query for part in own])
            columns, shared = _given_one(tables, axes, own, mean[rows], total is None)
            queries = history.workload[rows]
            within = inner_products(queries, queries, domain, vectors)
            if total is not None:
                within -= np.multiply.outer(mean[rows], mean[rows])
            within -= shared @ shared.T
            noise = deviations[rows]
            within /= np.multiply.outer(noise, noise)
            sets.append(_Set(rows, within, columns, shared / noise[:, None]))
        residuals = (history.values - (total or 0.0) * mean) / deviations
        return cls(history, total, prior, vectors, mean, residuals, tuple(sets), width)

    @cached_property
    def largest_alpha(self) -> float:
        """Largest allowed value of α. For larger values, rounding errors dominate."""
        trace = sum(np.trace(s.within) + (s.shared**2).sum() for s in self.sets)
        return float((_LARGEST / max(trace, 1e-300)) ** 0.5)

    def weights(
        self, alpha: float, left_out: Int[np.ndarray, " held_out"] | None = None
    ) -> Float[np.ndarray, " queries"]:
        """Return the weights (K + α⁻²)⁻¹a of the past answers a. Answers in `left_out` are not used, and get
        the weight 0.
        """
        from scipy.linalg import cho_factor, cho_solve, solve

        if not 1e-100 <= alpha <= self.largest_alpha:
            raise ValueError(
                f"alpha = {alpha!r} is not allowed: need a number > 0, from 1e-100 to "
                f"{self.largest_alpha:.3g}; above it `eigenqueries` answer"
            )
        kept = np.ones(len(self.residuals), bool)
        if left_out is not None:
            kept[left_out] = False
        core = np.eye(self.width)
        right = np.zeros(self.width)
        solved = []
        for s in self.sets:
            own = np.flatnonzero(kept[s.rows])
            rows = s.rows[own]
            shared = s.shared[own]
            within = s.within[np.ix_(own, own)]
            within[np.diag_indices(len(own))] += alpha**-2.0
            root = cho_factor(within, lower=True, overwrite_a=True, check_finite=False)
            both = np.column_stack([self.residuals[rows], shared])
            both = cho_solve(root, both, overwrite_b=True, check_finite=False)
            core[np.ix_(s.columns, s.columns)] += shared.T @ both[:, 1:]
            right[s.columns] += shared.T @ both[:, 0]
            solved.append((rows, s.columns, both))
        common = solve(core, right, assume_a="pos", overwrite_a=True, check_finite=False)
        weights = np.zeros(len(self.residuals))
        for rows, columns, both in solved:
            weights[rows] = both[:, 0] - both[:, 1:] @ common[columns]
        return weights

    def missed(
        self, alpha: float, folds: Sequence[Int[np.ndarray, " held_out"]]
    ) -> Float[np.ndarray, " queries"]:
        """Hold out each fold (part of the answers) in turn, and return the prediction errors of its answers,
        in units of the noise.
        """
        missed = np.full(len(self.residuals), np.nan)
        for fold in folds:
            fitted = self._fitted(self.weights(alpha, fold))
            missed[fold] = (self.residuals - fitted)[fold]
        return missed

    def mean_error(
        self, folds: Sequence[Int[np.ndarray, " held_out"]]
    ) -> Callable[[float], float]:
        """Return a function that computes the estimated mean squared error for any α, for one division of the
        past answers into folds (Theorem 4 of Chen, Zhou & Bhowmick, EDBT 2012).
        """
        variances = self.history.variances
        return lambda alpha: float(((self.missed(alpha, folds) ** 2 - 1) * variances).mean())

    def _fitted(self, weights: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " queries"]:
        """Return the product of the matrix K (inner products of past queries) with the given weights of past
        answers.
        """
        common = np.zeros(self.width)
        for s in self.sets:
            common[s.columns] += s.shared.T @ weights[s.rows]
        fitted = np.empty(len(weights))
        for s in self.sets:
            fitted[s.rows] = s.within @ weights[s.rows] + s.shared @ common[s.columns]
        return fitted

    def answer_at(
        self, workload: Recipe, alphas: Iterable[float]
    ) -> Float[np.ndarray, "alphas queries"]:
        """Return answers to linear queries for several values of α (the trade-off between bias and variance).
        The result has one row per value of α and one column per query, in counts of records.
        """
        domain = self.history.domain
        queries = linear_queries(workload, domain)
        mean = means(queries, domain, self.vectors)
        deviations = np.sqrt(self.history.variances)
        coefficients = np.stack([self.weights(a) / deviations for a in alphas], axis=1)
        answers = np.empty((len(queries), coefficients.shape[1]))
        for start in range(0, len(queries), _ROWS_AT_ONCE):
            rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(queries)))
            asked = queries[rows]
            products = inner_products(asked, self.history.workload, domain, self.vectors)
            answers[rows] = products @ coefficients
        if self.total is not None:
            answers += np.multiply.outer(mean, self.total - self.means @ coefficients)
        return answers.T


def ridge_or_eigenqueries(
    history: NoisyAnswers, total: float | None, prior: tuple[Any, ...] | None, largest: float
) -> KernelRidge | Eigenqueries:
    """Fit kernel PCA to past answers, for any α up to `largest`. The function uses `KernelRidge` if possible,
    and otherwise `Eigenqueries`, which is slower.

    Parameters
    ----------
    history : NoisyAnswers
        Past noisy answers. Their noise must be independent.
    total, prior : optional
        The same as for `KernelPCA`.
    largest : float
        Largest value of α, as a number of records.

    Returns
    -------
    KernelRidge or Eigenqueries
        Fit to the past answers. Its method `answer_at` answers queries for several values of α.
    """
    ridge = KernelRidge.of(history, total, prior)
    if ridge is not None and largest <= ridge.largest_alpha:
        return ridge
    return Eigenqueries.of(history, total, prior)


def _given_one(
    tables: SetTables,
    axes: tuple[int, ...],
    parts: Sequence[QueryTerms],
    mean: Float[np.ndarray, " queries"],
    with_means: bool,
) -> tuple[Int[np.ndarray, " columns"], Float[np.ndarray, "queries columns"]]:
    """Return the rows of the matrix U (see the top of this module) for queries q on one set of attributes,
    and the numbers of their columns. For each code v with probability p(v), there is a column √p(v)·(E[q | v]
    − E[q]). If `with_means` is True, the last column contains E[q].
    """
    first = np.cumsum([0, *tables.domain.shape])
    columns = [np.arange(first[k], first[k + 1]) for k in axes]
    shared = []
    for k in axes:
        root = np.sqrt(tables.prior[k])
        margin = np.concatenate([tables.margin(part, (k,)) for part in parts])
        given = np.divide(margin, root, out=np.zeros_like(margin), where=root > 0)
        shared.append(given - np.multiply.outer(mean, root))
    if with_means:
        columns.append(first[-1:])
        shared.append(mean[:, None])
    nothing = np.empty((len(mean), 0))
    return np.concatenate([first[:0], *columns]), np.concatenate([nothing, *shared], axis=1)
