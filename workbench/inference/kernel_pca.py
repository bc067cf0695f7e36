"""Kernel PCA (principal component analysis), which estimates answers to new linear queries from noisy answers
to past queries.

Computation of answers: the answer to a query q is a sum Σ_j c_j·⟨q, q_j⟩ over the past queries q_j. Here c_j
are weights, and ⟨q, q_j⟩ are inner products. The inner product of two queries depends only on the attributes
that both use. So all past queries on a set of attributes can be added up to one table first. Errors need the
inner products of the new queries on a set T with all m past queries. The matrix of these products is the
product of two matrices. The first matrix has r columns, and the second has r rows. To find r, we group past
queries by the attributes that they share with T. Each group has one column per combination of values of the
shared attributes. If the group has fewer queries than combinations, it has one column per past query instead.
The r rows are computed once per set T. After a QR decomposition of these rows, an error is the length of a
vector of r numbers. Cost: answers take time O(cells of the past sets and of the new queries). Errors for a set
T with m_T past queries take O(m·r² + m·m_T·r), and O(r²) per new query. Memory is O(r·m).

Kernel PCA: we approximate a query q by a linear combination q' of past queries, with the best balance of bias
and variance. The combination minimises α²·‖q − q'‖² + Var(q'), so the method is ridge regression. The answer is
k_qᵀ(K + Σ/α²)⁻¹a. Here a is the vector of past answers, and Σ is the covariance of their noise. K contains the
inner products of past queries with each other. k_q contains the inner products of q with past queries. No array
over the whole domain is needed.
Source     Chen, Zhou & Bhowmick, EDBT 2012, section 3.
Differs    We use ridge regression, which is equivalent to the paper's eigenqueries. We use a known total
           exactly, by a projection. The paper uses a virtual query with tiny variance, and the safe size of
           this variance depends on α. In the paper's Equation 17, the bias term is α²·‖q_bias‖². Our α is for
           inner products that are averages over the prior. For inner products that are sums over N cells, it
           would be α/√N.
Cost       Memory is O(m²) for m past queries. Time is O(m³) for one eigendecomposition, and then O(m) per
           query and value of α.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.estimates.estimate import check_weights
from workbench.inference.eigenqueries import (
    Eigenqueries,
    left_out,
    normalised_prior,
    prior_field,
    prior_vectors,
    share_of_bias,
    shrinkage,
    size_of_bias,
)
from workbench.inference.query_terms import QueryTerms, terms_by_axes
from workbench.queries import Margins, Products, Recipe, linear_queries
from workbench.queries.inner import inner_products, means, squared_norms
from workbench.queries.linear import Prior
from workbench.spaces import Domain
from workbench.value import Float, Int, outer_rows, parameter, value

if TYPE_CHECKING:
    from workbench.queries import Linear


# Kernel answers

_QUERIES_AT_ONCE = 4096
_MOST_CELLS = 2**20  # of a table that is laid out
_FEW_SHARED = 64  # questions on a set, below which rows are not worth making


@dataclass(frozen=True, eq=False)
class KernelAnswers:
    """Answers of kernel PCA to queries, and the two parts of their errors.

    `noise` is the part of the error that comes from the noise in past answers. `model` is the part that comes
    from the bias, because the past queries do not determine the answer completely. Its size depends on α, the
    assumed distance between the prior guess and the true table. Both parts are standard deviations, as counts
    of records. If α = ∞ and past queries do not determine an answer, `model` is NaN.
    """

    values: Float[np.ndarray, " queries"]
    noise: Float[np.ndarray, " queries"]
    model: Float[np.ndarray, " queries"]


_Columns = tuple[
    tuple[int, ...], "Int[np.ndarray, ' past'] | None"
]  # shared axes, past queries


class SetTables:
    """Past queries, each written as a table over the attributes that the query uses. Queries on the same set
    of attributes are stored together.
    """

    def __init__(self, workload: Linear, domain: Domain, prior: Prior):
        self.domain = domain
        self.prior = prior
        self.constants = np.zeros(len(workload))
        self.terms = list(terms_by_axes(workload, domain, self.constants))
        terms = np.zeros(len(self.constants), int)
        for part in self.terms:
            np.add.at(terms, part.query, 1)
        self.constant = np.flatnonzero(terms == 0)
        self.one_term_each = bool((terms + (self.constants != 0) <= 1).all())

    def margin(self, part: QueryTerms, shared: tuple[int, ...]) -> np.ndarray:
        """Return the conditional mean of each past query in `part`, given each combination of values of the
        attributes `shared`. Each mean is multiplied by the prior probability of this combination.
        """
        shape = [self.domain.shape[k] for k in part.axes]
        weights = np.ones(())
        for k in part.axes:
            weights = np.multiply.outer(weights, self.prior[k])
        cells = prod(self.domain.shape[k] for k in shared)
        if part.cells is not None:
            codes = np.unravel_index(part.cells, shape)
            at = np.zeros(len(part.cells), np.int64)
            for k in shared:
                at = at * self.domain.shape[k] + codes[part.axes.index(k)]
            margin = np.zeros((len(part.cells), cells))
            margin[np.arange(len(at)), at] = weights.ravel()[part.cells]
            return margin
        tables = (part.rows * weights.ravel()).reshape(len(part.rows), *shape)
        outside = tuple(i + 1 for i, k in enumerate(part.axes) if k not in shared)
        return tables.sum(axis=outside).reshape(len(part.rows), cells)

    def sums(self, coefficients: Float[np.ndarray, " queries"]) -> _WeighedSum:
        """Return the weighted sum Σ_j c_j·q_j of the past queries q_j, as one table per set of attributes."""
        tables = []
        for part in self.terms:
            shape = [self.domain.shape[k] for k in part.axes]
            table = part.weighted_sum(coefficients[part.query], prod(shape))
            tables.append((part.axes, table.reshape(shape)))
        return _WeighedSum(
            self.domain, self.prior, tables, float(coefficients @ self.constants)
        )


@dataclass(frozen=True, eq=False)
class _WeighedSum(Margins):
    """Weighted sum of queries, as a function of a record, multiplied by the prior probability of the record.
    The class has the methods of a table of sums, so queries can be answered from it.
    """

    domain: Domain
    prior: Prior
    tables: list[tuple[tuple[int, ...], Float[np.ndarray, "..."]]]
    constant: float

    def dense(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        """Return the table over the given attributes (numbers of axes), summed over all other attributes."""
        shape = [self.domain.shape[k] for k in axes]
        total = np.full(shape, self.constant)
        for own, table in self.tables:
            shared = [k for k in own if k in axes]
            for i in range(len(own) - 1, -1, -1):
                if own[i] not in axes:
                    table = np.tensordot(table, self.prior[own[i]], (i, 0))
            order = np.argsort([axes.index(k) for k in shared])
            ordered = [shared[i] for i in order]
            table = table.transpose(order)
            total += table.reshape([self.domain.shape[k] if k in ordered else 1 for k in axes])
        for i, k in enumerate(axes):
            total *= self.prior[k].reshape([-1 if j == i else 1 for j in range(len(axes))])
        return total


class _SetRows:
    """Matrix rows from which the inner products of all queries on one set of attributes with all eigenqueries
    are computed.
    """

    def __init__(
        self,
        posterior: Posterior,
        prior: Prior,
        columns: list[_Columns],
        matrix: Float[np.ndarray, "r m"],
    ):
        self.eigen = posterior.eigen
        self.prior = prior
        self.alpha = posterior.alpha
        self.columns = columns
        squares = self.eigen.squares
        weights = shrinkage(squares, self.alpha, posterior.hard)
        self.value = matrix @ (self.eigen.answers * weights)
        self.reached = _root(matrix / np.sqrt(squares))
        self.noise = _root(matrix * weights)
        self.bias = _root(matrix * left_out(squares, self.alpha, posterior.hard))

    def answers(self, queries: Products) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the answers to some queries on the set, with the two parts of their errors, noise and bias."""
        eigen = self.eigen
        domain = eigen.domain
        mean = queries.means(domain, self.prior)
        blocks = []
        for shared, past in self.columns:
            if past is None:
                blocks.append(_mean_given(queries, shared, self.prior))
            else:
                own = eigen.workload[past]
                blocks.append(inner_products(queries, own, domain, self.prior))
        z = np.concatenate(blocks, axis=1)
        norms = squared_norms(queries, domain, self.prior)
        if eigen.total is not None:
            norms = norms - mean**2
        norms = np.maximum(norms, 0)
        values = (eigen.total or 0.0) * mean + z @ self.value
        noise = np.linalg.norm(z @ self.noise, axis=1)
        reached = ((z @ self.reached) ** 2).sum(axis=1)
        within = ((z @ self.bias) ** 2).sum(axis=1)
        share = share_of_bias(norms, mean, reached)
        return values, noise, size_of_bias(share, norms, within, self.alpha)


def _root(rows: Float[np.ndarray, "r m"]) -> Float[np.ndarray, "r k"]:
    """Return a matrix R with R·Rᵀ = rows·rowsᵀ. R is `rows` itself, or a smaller square matrix if `rows` has
    more columns than rows.
    """
    if rows.shape[0] >= rows.shape[1]:
        return rows
    return np.transpose(np.linalg.qr(rows.T, mode="r"))


def _mean_given(queries: Products, shared: tuple[int, ...], prior: Prior) -> np.ndarray:
    """Return the conditional mean of each query, given each combination of values of the shared attributes.
    Each query must have one term.
    """
    values = queries.times[:, None]
    for k, factor in enumerate(queries.factors):
        which = queries.which[:, k]
        if k in shared:
            values = outer_rows(values, factor[which])
        elif which.any():
            values = values * (factor @ prior[k])[which][:, None]
    return values


# Kernel pca


def check_alpha(x: Any) -> str | None:
    """Return a text that says which values of α are allowed. Return None if the value `x` is allowed."""
    good = isinstance(x, int | float) and not isinstance(x, bool)
    good = good and (x == inf or 1e-100 <= x <= 1e100)
    return None if good else "need a number > 0, from 1e-100 to 1e100, or inf (unbiased)"


@value
class KernelPCA:
    """Method that estimates the answers to linear queries from past noisy answers to other queries. The
    parameter α sets the trade-off between bias and variance.

    PCA stands for principal component analysis. The method starts from a guess of the table: `total` records
    that are distributed like `prior`. `alpha` is the distance that you assume between this guess and the true
    table, as a number of records. If `alpha` is small, answers stay close to the guess. If `alpha` is inf,
    answers are unbiased, because the method is then ordinary least squares. `total` must be public, or a noisy
    number from an earlier release. Leave `total` out if you do not know the number of records. `prior` contains
    one vector per attribute, with one weight for each value of the attribute.

    The method computes orthonormal combinations of the past queries, which are called eigenqueries. The method
    shrinks the answer to each eigenquery towards the guess. Answers with more noise are shrunk more. With
    `hard` = True, the method instead drops each eigenquery whose answer has a standard error above `alpha`. The
    method then does not shrink the other answers.
    """

    alpha: float = parameter(
        check=check_alpha, unit="tuples", doc="assumed distance of table and `prior`"
    )
    total: float | None = parameter(
        None, 0, unit="tuples", doc="number of records, public or from an earlier release"
    )
    prior: tuple[Any, ...] | None = prior_field()
    hard: bool = parameter(
        False, choices=(False, True), doc="drop noisy answers instead of shrinking them"
    )
    cite: ClassVar[str] = "chen2012"

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", normalised_prior(self.prior))

    def __call__(
        self,
        history: NoisyAnswers | Iterable[NoisyAnswers],
    ) -> Posterior:
        """Fit the model to past answers, at no cost in budget.

        Parameters
        ----------
        history : NoisyAnswers, or several
            Past noisy answers. All answers must be about the same domain.

        Returns
        -------
        Posterior
            Estimate that can answer any linear query over the domain.

        Raises
        ------
        ValueError
            If the history is empty, or if the prior does not fit the domain.
        """
        history = NoisyAnswers.history(history)
        eigen = Eigenqueries.of(history, self.total, self.prior)
        return Posterior(eigen, self.alpha, self.hard)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Estimate of kernel PCA that can answer any linear query over the domain. It was computed from past
    answers at one value of α (the trade-off between bias and variance).
    """

    eigen: Eigenqueries
    alpha: float
    hard: bool = False

    @property
    def domain(self) -> Domain:
        """Domain of the past answers."""
        return self.eigen.domain

    def __len__(self) -> int:
        return len(self.eigen)

    def __repr__(self) -> str:
        return f"<Posterior of {self.eigen!r}, alpha={self.alpha!r}>"

    def with_alpha(self, alpha: float) -> Posterior:
        """Return the posterior for another value of α. The method is fast, because it needs no new
        eigendecomposition.

        Parameters
        ----------
        alpha : float
            Trade-off between bias and variance, as a number of records. With inf, answers are unbiased.

        Returns
        -------
        Posterior
            Posterior from the same past answers.

        Raises
        ------
        ValueError
            If `alpha` is not above 0.
        """
        wrong = check_alpha(alpha)
        if wrong:
            raise ValueError(f"alpha = {alpha!r} is not allowed: {wrong}")
        return replace(self, alpha=alpha)

    def answer(self, workload: Recipe, weights: str = "unbiased", error: bool = False) -> Any:
        """Return estimated answers to queries. If `error` is True, also return their errors.

        Parameters
        ----------
        workload : Workload
            Linear queries over the domain of the past answers.
        weights : "unbiased" or "raw"
            Both give the same answers, because cells are not sampled.
        error : bool
            Whether to return errors as well. Default False.

        Returns
        -------
        float64[queries], or a pair of them
            One answer per query, as a count of records. If `error` is True, a pair: the answers, and their
            posterior standard deviations. For α = ∞, the second array contains standard errors.

        Raises
        ------
        ValueError
            If `weights` is neither "unbiased" nor "raw", or if the queries are not linear.
        """
        check_weights(weights)
        if not error:
            return self._values(linear_queries(workload, self.domain))
        values, noise, bias = self._of_projected(workload)
        return values, np.hypot(noise, bias)

    def errors_in_parts(self, workload: Recipe) -> KernelAnswers:
        """Return answers to queries, with their errors in two parts. One part comes from the noise in past
        answers. The other part comes from bias, because past queries do not determine the new answers
        completely.

        Parameters
        ----------
        workload : Workload
            Linear queries over the domain of the past answers.

        Returns
        -------
        KernelAnswers
            Answers and the two parts of their errors.
        """
        queries = linear_queries(workload, self.domain)
        parts = [np.zeros(len(queries)) for _ in range(3)]
        for rows, found in self._blocks(queries):
            for part, own in zip(parts, found, strict=True):
                part[rows] = own
        return KernelAnswers(*parts)

    @cached_property
    def _prior(self) -> Prior:
        """Probabilities of the prior, one vector per attribute."""
        return prior_vectors(self.eigen.prior, self.domain)

    @cached_property
    def _tables(self) -> SetTables | None:
        """Past queries, written as tables over their attributes, or None if such a table has too many cells."""
        try:
            return SetTables(self.eigen.workload, self.domain, self._prior)
        except ValueError:
            return None

    def _values(self, queries: Linear) -> np.ndarray:
        """Return answers to queries, as counts of records, from sums of past queries if these are small."""
        eigen = self.eigen
        mean = means(queries, self.domain, self._prior)
        weights = shrinkage(eigen.squares, self.alpha, self.hard)
        coefficients = eigen.basis @ (eigen.answers * weights)
        total = eigen.total or 0.0
        if self._tables is None or not self._few_cells(queries):
            blocks = [kernel @ coefficients for _, kernel in eigen.kernel(queries, mean)]
            return total * mean + np.concatenate([np.empty(0), *blocks])
        answers = queries.sums_of_margins(self._tables.sums(coefficients))
        if eigen.total is not None:
            answers = answers + (total - coefficients @ eigen.means) * mean
        return answers

    def _few_cells(self, queries: Linear) -> bool:
        if not isinstance(queries, Products):
            return False
        shape = self.domain.shape
        sizes = [prod(shape[k] for k in axes) for axes, _ in queries.sets]
        return max(sizes, default=0) <= _MOST_CELLS

    def _blocks(
        self, queries: Linear
    ) -> Iterator[tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        """Yield blocks of queries. Each block contains the positions of the queries, their answers, and the
        two parts of their errors.
        """
        left = np.ones(len(queries), bool)
        tables = self._tables
        if (
            isinstance(queries, Products)
            and (np.diff(queries.offsets) == 1).all()
            and tables is not None
            and tables.one_term_each
        ):
            for axes, terms in queries.sets:
                if len(terms) >= _FEW_SHARED:
                    left[terms] = False
                    rows = self._rows_of_set(axes, tables)
                    if rows is None:
                        left[terms] = True
                        continue
                    for start in range(0, len(terms), _QUERIES_AT_ONCE):
                        chosen = terms[start : start + _QUERIES_AT_ONCE]
                        yield chosen, rows.answers(queries[chosen])
        rest = np.flatnonzero(left)
        step = max(1, 2**23 // max(1, len(self.eigen)))
        for start in range(0, len(rest), step):
            chosen = rest[start : start + step]
            yield chosen, self._of_projected(queries[chosen])

    def _rows_of_set(self, axes: tuple[int, ...], tables: SetTables) -> _SetRows | None:
        """Compute the matrix rows that all queries on one set of attributes share. Return None if there would
        be more than about twice as many rows as eigenqueries.
        """
        eigen = self.eigen
        columns: list[_Columns] = []
        rows = []
        by_shared: dict[tuple[int, ...], list[QueryTerms]] = {(): []}
        for part in tables.terms:
            shared = tuple(k for k in axes if k in part.axes)
            by_shared.setdefault(shared, []).append(part)
        for shared, parts in by_shared.items():
            cells = prod(tables.domain.shape[k] for k in shared)
            count = sum(len(part.query) for part in parts)
            if cells > count > 0:
                past = np.concatenate([part.query for part in parts])
                columns.append((shared, past))
                rows.append(eigen.basis[past])
                continue
            block = np.zeros((cells, len(eigen)))
            for part in parts:
                block += tables.margin(part, shared).T @ eigen.basis[part.query]
            if not shared:
                block[0] += tables.constants @ eigen.basis
                if eigen.total is not None:
                    block[0] -= eigen.means @ eigen.basis
            columns.append((shared, None))
            rows.append(block)
        matrix = np.concatenate(rows)
        if len(matrix) > 2 * len(eigen) + 2:
            return None
        return _SetRows(self, self._prior, columns, matrix)

    def _of_projected(self, queries: Recipe) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return answers and the two parts of their errors, from projections onto the eigenqueries."""
        rule = (self.alpha, self.hard)
        projected = self.eigen.project(queries)
        return projected.values(*rule), projected.sampling(*rule), projected.bias(*rule)
