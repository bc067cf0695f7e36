"""Kernel PCA: past noisy answers to linear queries answer any further one, without a look at the data.

Each query is answered by the linear combination of past answers that is best when bias is held against
variance: α²·‖q − q'‖² + Var(q'). This is ridge regression, q̂ = k_qᵀ(K + Σ/α²)⁻¹a, with the inner
products of `workload.inner`, and takes no look at the domain.
Source     Chen, Zhou & Bhowmick, EDBT 2012, section 3.
Differs    the ridge form, which their eigenqueries come down to; a known total enters exactly, by a
           projection, where theirs is a virtual query with tiny variance, whose safe window depends on
           α. Bias enters Equation 17 as α²·‖q_bias‖². α is that of inner products averaged over the
           prior: with sums over N cells it would be α/√N.
Cost       O(m²) memory and one eigendecomposition of the m past queries, O(m³); from then on O(m) for
           each query and α.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh, solve_triangular

from workbench.domain import Domain
from workbench.estimates import NoisyAnswers
from workbench.estimates.summary import check_weights
from workbench.value import parameter, sealed, value
from workbench.workload import Products, Workload, linear_queries
from workbench.workload.inner import inner_products, means, squared_norms
from workbench.workload.linear import uniform_prior

if TYPE_CHECKING:
    import pandas as pd

_AT_ONCE = 2**24  # inner products: 128 MiB
_NOTHING = 1e-9  # of a query's squared norm: what rounding leaves of no bias


def check_alpha(x: Any) -> str | None:
    """What is wrong with a trade-off α, if anything."""
    good = isinstance(x, int | float) and not isinstance(x, bool)
    good = good and (x == inf or 1e-100 <= x <= 1e100)
    return None if good else "need a number > 0, from 1e-100 to 1e100, or inf: unbiased"


def normalised_prior(prior: Any) -> tuple[tuple[float, ...], ...] | None:
    """A vector of weights > 0 for each attribute, as probabilities; a ValueError for anything else."""
    if prior is None:
        return None
    try:
        vectors = [np.asarray(p, float) for p in prior]
        good = bool(vectors) and all(p.ndim == 1 and p.size for p in vectors)
    except (TypeError, ValueError):
        good = False
    if not good or any(not (np.isfinite(p) & (p > 0)).all() for p in vectors):
        raise ValueError(
            f"prior = {str(prior)[:60]} is not allowed: need a vector of numbers > 0 for each "
            "attribute, one a code (floor noisy counts: product_prior)"
        )
    return tuple(tuple((p / p.sum()).tolist()) for p in vectors)


@value
class KernelPCA:
    """Call it with one or several `NoisyAnswers`: a `Posterior`, which answers any linear queries.

    `alpha` says how far the truth is believed to lie from total × prior, in tuples: small values trust
    the prior, infinite ones give unbiased least squares. `total`, the number of tuples, is public or
    was bought; without it, it is not known. `prior` is a vector of weights for each attribute of the
    domain. `hard` drops the eigenqueries whose standard error exceeds α instead of shrinking all.
    """

    alpha: float = parameter(check=check_alpha, unit="tuples", doc="bias held against variance")
    total: float | None = parameter(
        None, 0, unit="tuples", doc="public, or bought; never counted"
    )
    prior: tuple | None = parameter(
        None, check=lambda x: None, doc="weights of codes, a vector for each attribute"
    )
    hard: bool = parameter(False, choices=(False, True), doc="drop eigenqueries, shrink none")
    cite: ClassVar[str] = "chen2012"

    def __post_init__(self):
        object.__setattr__(self, "prior", normalised_prior(self.prior))

    def __call__(
        self,
        history: NoisyAnswers | Iterable[NoisyAnswers],
        covariance: Float[np.ndarray, "queries queries"] | None = None,
    ) -> Posterior:
        """What the history says; with the covariance of its noise if this is not independent."""
        history = NoisyAnswers.history(history)
        return Posterior(
            Eigenqueries.of(history, self.total, self.prior, covariance), self.alpha, self.hard
        )


@dataclass(frozen=True, eq=False)
class Eigenqueries:
    """Combinations of past queries that are orthonormal, with answers of independent errors.

    `squares` are the λ² (their answers have standard error 1/λ), descending; `basis` (queries ×
    eigenqueries) makes an eigenquery times λ of past ones, and `answers` are theirs, times λ.
    """

    domain: Domain
    workload: Workload
    total: float | None
    prior: tuple | None
    squares: Float[np.ndarray, " eigenqueries"]
    basis: Float[np.ndarray, "queries eigenqueries"]
    answers: Float[np.ndarray, " eigenqueries"]
    means: Float[np.ndarray, " queries"]

    @classmethod
    def of(
        cls,
        history: NoisyAnswers,
        total: float | None = None,
        prior: tuple | None = None,
        covariance: Float[np.ndarray, "queries queries"] | None = None,
    ) -> Eigenqueries:
        """From past answers: one eigendecomposition."""
        p = prior_vectors(prior, history.domain)
        gram, mean = centred_gram(history, p, total is not None)
        residuals = history.values - (total or 0.0) * mean
        root = None
        if covariance is None:
            spread = np.sqrt(history.variances)
            gram /= spread
            gram /= spread[:, None]
        else:
            root = _root(covariance, len(history))
            gram = solve_triangular(
                root, gram, lower=True, overwrite_b=True, check_finite=False
            )
            gram = solve_triangular(root, gram.T, lower=True, check_finite=False)
        squares, vectors = eigendecomposition(gram)
        if root is None:
            vectors /= spread[:, None]
        else:
            vectors = solve_triangular(root, vectors, lower=True, trans="T", check_finite=False)
        arrays = map(sealed, (squares, vectors, vectors.T @ residuals, mean))
        return cls(history.domain, history.workload, total, prior, *arrays)

    def __len__(self) -> int:
        return len(self.squares)

    def __repr__(self) -> str:
        return f"<{len(self):,} eigenqueries of {len(self.workload):,} past ones>"

    def with_answers(
        self, values: Float[np.ndarray, " queries"], times: float = 1.0
    ) -> Eigenqueries:
        """The same past queries with other answers, and `times` the noise: nothing to decompose."""
        squares, basis = self.squares / times**2, self.basis / times
        answers = basis.T @ (values - (self.total or 0.0) * self.means)
        arrays = dict(squares=squares, basis=basis, answers=answers)
        return replace(self, **{name: sealed(array) for name, array in arrays.items()})

    def ask(self, workload: Workload) -> ProjectedQueries:
        """How some queries are made of the eigenqueries: all that is needed for any α."""
        asked, p = linear_queries(workload, self.domain), prior_vectors(self.prior, self.domain)
        mean, left = means(asked, self.domain, p), squared_norms(asked, self.domain, p)
        parts = [np.empty((0, len(self)))]
        for _, kernel in self._kernel(asked, mean):
            parts.append(kernel @ self.basis)
        if self.total is not None:
            left = left - mean**2
        return ProjectedQueries(self, mean, np.maximum(left, 0), np.concatenate(parts))

    def answer(self, workload: Workload, weights: Float[np.ndarray, " eigenqueries"]):
        """Answers with each eigenquery's answer times `weights`; memory does not grow with queries."""
        asked, p = linear_queries(workload, self.domain), prior_vectors(self.prior, self.domain)
        mean = means(asked, self.domain, p)
        out, each = (self.total or 0.0) * mean, self.basis @ (self.answers * weights)
        for rows, kernel in self._kernel(asked, mean):
            out[rows] += kernel @ each
        return out

    def _kernel(self, asked, mean):
        """Inner products with the past queries, orthogonally to the universal one, in blocks."""
        p = prior_vectors(self.prior, self.domain)
        step = max(1, _AT_ONCE // max(1, len(self.workload)))
        for start in range(0, len(asked), step):
            rows = slice(start, min(start + step, len(asked)))
            some = asked if len(asked) <= step else asked[np.arange(rows.start, rows.stop)]
            kernel = inner_products(some, self.workload, self.domain, p)
            if self.total is not None:
                kernel -= mean[rows, None] * self.means
            yield rows, kernel


@dataclass(frozen=True, eq=False)
class ProjectedQueries:
    """Queries as combinations of eigenqueries: O(m) for each query and α.

    `means` are ⟨q, u⟩, `squares` the squared norms ‖q‖² (of what the total does not know), and
    `parts` (queries × eigenqueries) the inner products with each eigenquery, times λ.
    """

    eigen: Eigenqueries
    means: Float[np.ndarray, " queries"]
    squares: Float[np.ndarray, " queries"]
    parts: Float[np.ndarray, "queries eigenqueries"]

    def with_answers(
        self, values: Float[np.ndarray, " queries"], times: float = 1.0
    ) -> ProjectedQueries:
        """The same queries where past ones had other answers, and `times` the noise."""
        return replace(
            self, eigen=self.eigen.with_answers(values, times), parts=self.parts / times
        )

    def values(self, alpha: float, hard: bool = False) -> Float[np.ndarray, " queries"]:
        """The answers."""
        known = (self.eigen.total or 0.0) * self.means
        weights = shrinkage(self.eigen.squares, alpha, hard)
        return known + self.parts @ (self.eigen.answers * weights)

    @property
    def bias_share(self) -> Float[np.ndarray, " queries"]:
        """The inherent bias, a share of ‖q‖²: 0 if past queries make up q, 1 if nothing is known."""
        held = (self.parts**2) @ (1 / self.eigen.squares)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.clip(1 - held / self.squares, 0, 1)
        known = self.squares <= 1e-14 * (self.squares + self.means**2)
        return np.where(known | (share < _NOTHING), 0.0, share)

    def errors(self, alpha: float, hard: bool = False) -> Float[np.ndarray, " queries"]:
        """Finite α: a posterior standard deviation, bias included as α believes it, no confidence.

        α = ∞: the standard error of sampling, NaN for queries that past ones do not make up.
        """
        squares, biased = self.eigen.squares, self.bias_share
        if not isfinite(alpha):
            spread = np.sqrt((self.parts**2) @ (1 / squares**2))
            return np.where(biased > 0, np.nan, spread)
        if hard:
            each = np.where(squares > alpha**-2.0, 1 / squares**2, alpha**2 / squares)
        else:
            each = 1 / (squares * (squares + alpha**-2.0))
        return np.sqrt(alpha**2 * biased * self.squares + (self.parts**2) @ each)

    def sampling(self, alpha: float, hard: bool = False) -> Float[np.ndarray, " queries"]:
        """The standard deviation that the noise of the past answers gives these answers, bias aside."""
        return np.sqrt((self.parts**2) @ shrinkage(self.eigen.squares, alpha, hard) ** 2)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What a history says about any linear queries over its domain, at one trade-off α."""

    eigen: Eigenqueries
    alpha: float
    hard: bool = False

    @property
    def domain(self) -> Domain:
        """The history's."""
        return self.eigen.domain

    def __len__(self) -> int:
        return len(self.eigen)

    def __repr__(self) -> str:
        return f"<Posterior of {self.eigen!r}, alpha={self.alpha!r}>"

    def at(self, alpha: float) -> Posterior:
        """The same at another α, without another decomposition."""
        if wrong := check_alpha(alpha):
            raise ValueError(f"alpha = {alpha!r} is not allowed: {wrong}")
        return replace(self, alpha=alpha)

    def answer(self, workload: Workload, weights: str = "unbiased", error: bool = False) -> Any:
        """Estimated answers, float64[queries]; with `error` also the error bars of `Asked.errors`."""
        check_weights(weights)
        if not error:
            shrink = shrinkage(self.eigen.squares, self.alpha, self.hard)
            return self.eigen.answer(workload, shrink)
        asked = self.eigen.ask(workload)
        return asked.values(self.alpha, self.hard), asked.errors(self.alpha, self.hard)

    def explain(self, workload: Workload) -> pd.DataFrame:
        """One row a query: `value`, `error` and what it `means`, and `biased`, the share not known.

        `biased` is the part of the query's squared norm that no combination of past queries reaches.
        """
        import pandas as pd

        asked = self.eigen.ask(workload)
        means = "posterior standard deviation" if isfinite(self.alpha) else "sampling error"
        return pd.DataFrame(
            {
                "value": asked.values(self.alpha, self.hard),
                "error": asked.errors(self.alpha, self.hard),
                "means": means,
                "biased": asked.bias_share,
            }
        )


def product_prior(
    answers: NoisyAnswers, floor: float | None = None
) -> tuple[tuple[float, ...], ...]:
    """Weights of codes from noisy counts of every attribute's codes, as `Marginals(1)` asks them.

    Counts below `floor` become it: a prior of 0 would rule a code out because of noise. By default the
    standard deviation of the noise, or 1 if this is less.
    """
    if floor is not None and not (isfinite(floor) and floor > 0):
        raise ValueError(f"floor = {floor!r} is not allowed: need a number > 0")
    out = []
    for k, (name, n) in enumerate(
        zip(answers.domain.attributes, answers.domain.shape, strict=True)
    ):
        if n == 1:
            out.append((1.0,))
            continue
        lo = np.zeros((n, len(answers.domain.shape)), np.int64)
        hi = np.tile(answers.domain.shape, (n, 1))
        lo[:, k], hi[:, k] = np.arange(n), np.arange(n) + 1
        try:
            counts, noise = answers.answer(Products.boxes(answers.domain, lo, hi), error=True)
        except ValueError as e:
            raise ValueError(f"a prior needs answers for every code of {name!r}: {e}") from None
        counts = np.maximum(counts, np.maximum(noise, 1) if floor is None else floor)
        out.append(tuple((counts / counts.sum()).tolist()))
    return tuple(out)


def prior_vectors(
    prior: Sequence | None, domain: Domain
) -> tuple[Float[np.ndarray, " values"], ...]:
    """The prior's vectors, uniform ones if None; a ValueError if they do not fit the domain."""
    if prior is None:
        return uniform_prior(domain)
    sizes = tuple(len(p) for p in prior)
    if sizes != domain.shape:
        raise ValueError(
            f"prior of {sizes} codes is not allowed: the domain has {domain.shape}"
        )
    return tuple(np.asarray(p, float) for p in prior)


def centred_gram(
    history: NoisyAnswers, prior, known: bool
) -> tuple[Float[np.ndarray, "queries queries"], Float[np.ndarray, " queries"]]:
    """Inner products of past queries, without the universal one if the total is known; means."""
    gram = inner_products(history.workload, history.workload, history.domain, prior)
    mean = means(history.workload, history.domain, prior)
    if known:
        step = max(1, _AT_ONCE // max(1, len(mean)))
        for start in range(0, len(mean), step):
            gram[start : start + step] -= mean[start : start + step, None] * mean
    return gram, mean


def eigendecomposition(
    gram: Float[np.ndarray, "queries queries"],
) -> tuple[Float[np.ndarray, " eigenqueries"], Float[np.ndarray, "queries eigenqueries"]]:
    """Eigenvalues above what rounding makes of zero, descending, and their vectors; overwrites."""
    squares, vectors = eigh(gram.T, driver="evd", overwrite_a=True, check_finite=False)
    least = max(squares[-1], 0.0) * len(squares) * np.finfo(float).eps
    kept = int((squares > least).sum())
    return squares[::-1][:kept].copy(), vectors[:, ::-1][:, :kept]


def shrinkage(
    squares: Float[np.ndarray, " eigenqueries"], alpha: float, hard: bool = False
) -> Float[np.ndarray, " eigenqueries"]:
    """What multiplies each eigenquery's answer: α²/(α² + 1/λ²), over λ²."""
    if hard and isfinite(alpha):
        return np.where(squares > alpha**-2.0, 1 / squares, 0.0)
    return 1 / (squares + (0.0 if alpha == inf else alpha**-2.0))


def _root(covariance: Any, m: int) -> Float[np.ndarray, "queries queries"]:
    covariance = np.asarray(covariance, float)
    if covariance.shape != (m, m):
        raise ValueError(
            f"covariance of shape {covariance.shape} is not allowed: need {m} × {m}, one a past answer"
        )
    if not np.isfinite(covariance).all() or not np.allclose(covariance, covariance.T):
        raise ValueError("covariance is not allowed: need finite numbers, symmetric")
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        raise ValueError("covariance is not allowed: need a positive definite matrix") from None
