"""Eigenqueries, which are combinations of past queries that are orthonormal under a product prior (a
distribution in which attributes are independent).

The inner product of two queries is the mean of their product under the prior, which `queries.inner` computes.
If the total is known, the mean of each query under the prior is first subtracted, because the total
determines this part of the answer.
Source     Chen, Zhou & Bhowmick, EDBT 2012, section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.queries import Linear, Products, Recipe, linear_queries
from workbench.queries.inner import inner_products, means, squared_norms
from workbench.queries.linear import uniform_prior
from workbench.spaces import Domain
from workbench.value import Float, parameter, sealed

# Priors


def prior_field() -> Any:
    """Return the declaration of the field `prior`, which several methods of inference have. The function
    `normalised_prior` checks the value of this field.
    """
    return parameter(
        None, check=lambda x: None, doc="prior weights of values, one vector per attribute"
    )


def normalised_prior(prior: Any) -> tuple[tuple[float, ...], ...] | None:
    """Convert the weights of each attribute's codes to probabilities that add up to 1. Raise a ValueError if
    a weight is not above 0.
    """
    if prior is None:
        return None
    try:
        vectors = [np.asarray(p, float) for p in prior]
        good = bool(vectors) and all(p.ndim == 1 and p.size for p in vectors)
    except (TypeError, ValueError):
        good = False
    if not good or any(not (np.isfinite(p) & (p > 0)).all() for p in vectors):
        raise ValueError(
            f"prior = {str(prior)[:60]} is not allowed: need one vector of numbers > 0 per attribute, "
            "with one number per code (`product_prior` makes one from noisy counts)"
        )
    return tuple(_probabilities(p) for p in vectors)


def prior_vectors(
    prior: tuple[Any, ...] | None, domain: Domain
) -> tuple[Float[np.ndarray, " values"], ...]:
    """Return the prior as one vector of probabilities per attribute. If `prior` is None, all probabilities of
    an attribute are equal. Raise a ValueError if the prior does not fit the domain.
    """
    if prior is None:
        return uniform_prior(domain)
    sizes = tuple(len(p) for p in prior)
    if sizes != domain.shape:
        raise ValueError(
            f"prior of {sizes} codes is not allowed: the domain has {domain.shape}"
        )
    return tuple(np.asarray(p, float) for p in prior)


def product_prior(answers: NoisyAnswers) -> tuple[tuple[float, ...], ...]:
    """Compute a prior distribution over the cells of a domain, in which the attributes are independent. The
    function uses noisy counts of each attribute's values, for example the answers to `Marginals(1)`.

    If a noisy count is below 1 or below the standard deviation of its noise, the function raises it to the
    larger of these two numbers. Without this rule, the prior probability of a value could be 0. Every estimate
    with this prior would then exclude this value.

    Parameters
    ----------
    answers : NoisyAnswers
        Noisy answers. For each attribute with two or more values, the answers must contain the count of each
        value.

    Returns
    -------
    tuple of tuples of float
        One vector of probabilities per attribute. You can pass the result as the field `prior` of `KernelPCA`
        and `MaximumEntropy`.

    Raises
    ------
    ValueError
        If the answers do not contain the count of some value.
    """
    domain = answers.domain
    vectors: list[tuple[float, ...]] = []
    for k, (name, n) in enumerate(zip(domain.attributes, domain.shape, strict=True)):
        if n == 1:
            vectors.append((1.0,))
            continue
        lo = np.zeros((n, len(domain.shape)), np.int64)
        hi = np.tile(domain.shape, (n, 1))
        lo[:, k] = np.arange(n)
        hi[:, k] = np.arange(n) + 1
        try:
            counts, deviations = answers.answer(Products.boxes(domain, lo, hi), error=True)
        except ValueError as e:
            raise ValueError(f"a prior needs answers for every code of {name!r}: {e}") from None
        least = np.maximum(deviations, 1)
        vectors.append(_probabilities(np.maximum(counts, least)))
    return tuple(vectors)


def _probabilities(weights: Float[np.ndarray, " values"]) -> tuple[float, ...]:
    return tuple((weights / weights.sum()).tolist())


# Eigenqueries

_PRODUCTS_AT_ONCE = 2**24  # 128 MiB
_NO_BIAS = 1e-9  # of a query's squared norm: what rounding leaves of no bias
_ROUNDING = 1e-14  # of a query's squared norm: what rounding leaves of nothing


@dataclass(frozen=True, eq=False)
class Eigenqueries:
    """Eigenqueries: orthonormal combinations of past queries, whose answers have uncorrelated errors.

    Each eigenquery has a number λ, and the standard error of its answer is 1/λ. `squares` contains the
    numbers λ² in descending order. Each column of `basis` contains the weights with which past queries are
    combined to an eigenquery, multiplied by λ. `answers` contains the answers to the eigenqueries, multiplied
    by λ.
    """

    domain: Domain
    workload: Linear
    total: float | None
    prior: tuple[Any, ...] | None
    squares: Float[np.ndarray, " eigenqueries"]
    basis: Float[np.ndarray, "queries eigenqueries"]
    answers: Float[np.ndarray, " eigenqueries"]
    means: Float[np.ndarray, " queries"]

    @classmethod
    def of(
        cls,
        history: NoisyAnswers,
        total: float | None = None,
        prior: tuple[Any, ...] | None = None,
    ) -> Eigenqueries:
        """Compute the eigenqueries of past queries from their noisy answers."""
        products, mean = whitened_gram(history, prior, total is not None)
        deviations = np.sqrt(history.variances)
        residuals = history.values - (total or 0.0) * mean
        squares, basis = eigendecomposition(products)
        basis /= deviations[:, None]
        answers = basis.T @ residuals
        arrays = map(sealed, (squares, basis, answers, mean))
        return cls(history.domain, history.workload, total, prior, *arrays)

    def __len__(self) -> int:
        return len(self.squares)

    def __repr__(self) -> str:
        return f"<{len(self):,} eigenqueries of {len(self.workload):,} past ones>"

    def project(self, workload: Recipe) -> ProjectedQueries:
        """Express new queries as combinations of eigenqueries. The result can answer them for any value of α
        (the trade-off between bias and variance).
        """
        queries = linear_queries(workload, self.domain)
        prior = prior_vectors(self.prior, self.domain)
        mean = means(queries, self.domain, prior)
        squares = squared_norms(queries, self.domain, prior)
        blocks = [np.empty((0, len(self)))]
        for _, kernel in self.kernel(queries, mean):
            blocks.append(kernel @ self.basis)
        if self.total is not None:
            squares = squares - mean**2
        return ProjectedQueries(self, mean, np.maximum(squares, 0), np.concatenate(blocks))

    def answer_at(
        self, workload: Recipe, alphas: Iterable[float]
    ) -> Float[np.ndarray, "alphas queries"]:
        """Return answers to linear queries for several values of α (the trade-off between bias and variance).
        The result has one row per value of α and one column per query, in counts of records.
        """
        projected = self.project(workload)
        return np.stack([projected.values(alpha) for alpha in alphas])

    def kernel(
        self, queries: Linear, mean: Float[np.ndarray, " queries"]
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the inner products of new queries with past queries, in blocks of new queries. If the total
        is known, the mean of each query under the prior is subtracted first.
        """
        prior = prior_vectors(self.prior, self.domain)
        step = _rows_at_once(len(self.workload))
        for start in range(0, len(queries), step):
            rows = slice(start, min(start + step, len(queries)))
            whole = len(queries) <= step
            block = queries if whole else queries[np.arange(rows.start, rows.stop)]
            kernel = inner_products(block, self.workload, self.domain, prior)
            if self.total is not None:
                kernel -= mean[rows, None] * self.means
            yield rows, kernel


@dataclass(frozen=True, eq=False)
class ProjectedQueries:
    """New queries that are expressed as combinations of m eigenqueries. After this step, an answer takes time
    O(m) for each value of α (the trade-off between bias and variance).

    `means` contains the mean of each query q under the prior. `squares` contains the squared norm ‖q‖². If
    the total is known, the squared mean is subtracted from it. `coefficients` (queries × eigenqueries)
    contains the inner product of each query with each eigenquery, multiplied by λ.
    """

    eigen: Eigenqueries
    means: Float[np.ndarray, " queries"]
    squares: Float[np.ndarray, " queries"]
    coefficients: Float[np.ndarray, "queries eigenqueries"]

    def values(self, alpha: float, hard: bool = False) -> Float[np.ndarray, " queries"]:
        """Return the answers to the queries for the given α, as counts of records. With `hard` = True,
        eigenqueries with a standard error above α are dropped, and the others are not shrunk.
        """
        from_total = (self.eigen.total or 0.0) * self.means
        weights = shrinkage(self.eigen.squares, alpha, hard)
        return from_total + self.coefficients @ (self.eigen.answers * weights)

    @property
    def bias_share(self) -> Float[np.ndarray, " queries"]:
        """For each query q, the share of its squared norm ‖q‖² that past queries do not determine. It is 0 if
        past queries determine the answer to q, and 1 if they contain no information about this answer.
        """
        reached = (self.coefficients**2) @ (1 / self.eigen.squares)
        return share_of_bias(self.squares, self.means, reached)

    def sampling(self, alpha: float, hard: bool = False) -> Float[np.ndarray, " queries"]:
        """Return the part of the errors that comes from the noise in past answers, without the bias."""
        weights = shrinkage(self.eigen.squares, alpha, hard)
        return np.sqrt((self.coefficients**2) @ weights**2)

    def bias(self, alpha: float, hard: bool = False) -> Float[np.ndarray, " queries"]:
        """Return the part of the errors that comes from the bias. Its size follows from α. For α = ∞, it is 0
        for queries that past queries determine, and NaN for all other queries.
        """
        deviations = left_out(self.eigen.squares, alpha, hard)
        within = (self.coefficients**2) @ deviations**2
        return size_of_bias(self.bias_share, self.squares, within, alpha)


def share_of_bias(
    squares: Float[np.ndarray, " queries"],
    means: Float[np.ndarray, " queries"],
    reached: Float[np.ndarray, " queries"],
) -> Float[np.ndarray, " queries"]:
    """Return the share of each query's squared norm (`squares`) that past queries do not determine. `reached`
    contains the part of the squared norm that they determine.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip(1 - reached / squares, 0, 1)
    from_total = squares <= _ROUNDING * (squares + means**2)
    return np.where(from_total | (share < _NO_BIAS), 0.0, share)


def size_of_bias(
    share: Float[np.ndarray, " queries"],
    squares: Float[np.ndarray, " queries"],
    within: Float[np.ndarray, " queries"],
    alpha: float,
) -> Float[np.ndarray, " queries"]:
    """Return the part of the errors that is due to bias, as a standard deviation. `share` is the share of
    each query's squared norm that past queries do not determine, and `within` is the squared bias that
    shrinkage causes.
    """
    if alpha == inf:
        return np.where(share > 0, np.nan, 0.0)
    return np.sqrt(within + alpha**2 * share * squares)


def whitened_gram(
    history: NoisyAnswers, prior: tuple[Any, ...] | None, total_known: bool
) -> tuple[Float[np.ndarray, "queries queries"], Float[np.ndarray, " queries"]]:
    """Return the inner products of past queries under the prior, in units of the noise, and the means of
    these queries. If the total is known, each query's mean is subtracted before the products are computed.
    """
    vectors = prior_vectors(prior, history.domain)
    products = inner_products(history.workload, history.workload, history.domain, vectors)
    mean = means(history.workload, history.domain, vectors)
    if total_known:
        step = _rows_at_once(len(mean))
        for start in range(0, len(mean), step):
            rows = slice(start, start + step)
            products[rows] -= mean[rows, None] * mean
    deviations = np.sqrt(history.variances)
    products /= deviations
    products /= deviations[:, None]
    return products, mean


def eigendecomposition(
    gram: Float[np.ndarray, "queries queries"],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of a matrix that are larger than rounding errors, and their eigenvectors. The
    function overwrites the matrix.
    """
    from scipy.linalg import eigh

    squares, vectors = eigh(gram.T, driver="evd", overwrite_a=True, check_finite=False)
    least = max(squares[-1], 0.0) * len(squares) * np.finfo(float).eps
    rank = int((squares > least).sum())
    return squares[::-1][:rank].copy(), vectors[:, ::-1][:, :rank]


def shrinkage(
    squares: Float[np.ndarray, " eigenqueries"], alpha: float, hard: bool = False
) -> Float[np.ndarray, " eigenqueries"]:
    """Return one number per eigenquery: the factor α²/(α² + 1/λ²) by which its answer is shrunk, divided by
    λ². With `hard` = True, the factor is 1 if 1/λ is below α, and otherwise 0.
    """
    if hard and isfinite(alpha):
        return np.where(squares > alpha**-2.0, 1 / squares, 0.0)
    return 1 / (squares + (0.0 if alpha == inf else alpha**-2.0))


def left_out(
    squares: Float[np.ndarray, " eigenqueries"], alpha: float, hard: bool = False
) -> Float[np.ndarray, " eigenqueries"]:
    """Return one number per eigenquery: the bias that shrinkage causes in its answer, as a standard
    deviation, divided by λ.
    """
    if alpha == inf:
        return np.zeros(len(squares))
    if hard:
        return np.where(squares > alpha**-2.0, 0.0, alpha / np.sqrt(squares))
    return shrinkage(squares, alpha) * np.sqrt(alpha**-2.0 / squares)


def _rows_at_once(columns: int) -> int:
    return max(1, _PRODUCTS_AT_ONCE // max(1, columns))
