"""Kernel PCA: past noisy answers to linear queries answer any further one; the data stays untouched.

Each query is answered by the linear combination of past answers that is best when bias is held against
variance: α²·‖q − q'‖² + Var(q'). This is ridge regression, q̂ = k_qᵀ(K + Σ/α²)⁻¹a, with the inner
products of `workload.inner`; the domain is never laid out.
Source     Chen, Zhou & Bhowmick, EDBT 2012, section 3.
Differs    the ridge form, which their eigenqueries come down to; a known total enters exactly, by a
           projection, where theirs is a virtual query with tiny variance, whose safe window depends on
           α. Bias enters Equation 17 as α²·‖q_bias‖². α is that of inner products averaged over the
           prior: with sums over N cells it would be α/√N.
Cost       O(m²) memory and one eigendecomposition of the m past queries, O(m³); from then on O(m) for
           each query and α.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Float
from workbench.domain import Domain
from workbench.estimates import NoisyAnswers
from workbench.estimates.estimate import check_weights
from workbench.inference.eigenqueries import Eigenqueries, shrinkage
from workbench.inference.kernel_answers import KernelAnswers, KernelBlocks
from workbench.inference.priors import normalised_prior, prior_field
from workbench.libraries import pd
from workbench.value import parameter, value
from workbench.workload import Recipe, linear_queries


def check_alpha(x: Any) -> str | None:
    """What is wrong with a trade-off α, if anything."""
    good = isinstance(x, int | float) and not isinstance(x, bool)
    good = good and (x == inf or 1e-100 <= x <= 1e100)
    return None if good else "need a number > 0, from 1e-100 to 1e100, or inf: unbiased"


@value
class KernelPCA:
    """What past noisy answers say about any linear queries, at one trade-off of bias and variance.

    `alpha` says how far the truth is believed to lie from total × prior, in tuples: small values trust
    the prior, infinite ones give unbiased least squares. `total`, the number of tuples, is public or
    was bought; without it, it is not known. `prior` is a vector of weights for each attribute of the
    domain. `hard` drops the eigenqueries whose standard error exceeds α instead of shrinking all.
    """

    alpha: float = parameter(check=check_alpha, unit="tuples", doc="bias held against variance")
    total: float | None = parameter(
        None, 0, unit="tuples", doc="public, or bought; never counted"
    )
    prior: tuple[Any, ...] | None = prior_field()
    hard: bool = parameter(False, choices=(False, True), doc="drop eigenqueries, shrink none")
    cite: ClassVar[str] = "chen2012"

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", normalised_prior(self.prior))

    def __call__(
        self,
        history: NoisyAnswers | Iterable[NoisyAnswers],
        covariance: Float[np.ndarray, "queries queries"] | None = None,
    ) -> Posterior:
        """What the history says, at no cost.

        Parameters
        ----------
        history : NoisyAnswers, or several
            All over one domain.
        covariance : float[queries, queries], optional
            That of the noise of all past answers, if it is not independent.

        Returns
        -------
        Posterior
            Answers any linear queries over the domain.

        Raises
        ------
        ValueError
            For an empty history, or a prior or a covariance that does not fit it.
        """
        history = NoisyAnswers.history(history)
        eigen = Eigenqueries.of(history, self.total, self.prior, covariance)
        return Posterior(eigen, self.alpha, self.hard)


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

    def with_alpha(self, alpha: float) -> Posterior:
        """The same at another trade-off, without another decomposition.

        Parameters
        ----------
        alpha : float
            In tuples; inf is unbiased.

        Returns
        -------
        Posterior
            Of the same history.

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
        """Estimated answers, and how far they may be off.

        Parameters
        ----------
        workload : Workload
            Linear queries over the domain.
        weights : "unbiased" or "raw"
            Both mean the same, as nothing is sampled.
        error : bool
            Whether error bars are wanted too.

        Returns
        -------
        float64[queries], or a pair of them
            Answers in tuples; with `error` also a posterior standard deviation of each, or at infinite
            α its standard error.

        Raises
        ------
        ValueError
            For other weights, or queries that are not linear.
        """
        check_weights(weights)
        if not error:
            shrink = shrinkage(self.eigen.squares, self.alpha, self.hard)
            queries = linear_queries(workload, self.domain)
            return KernelBlocks(self.eigen, self.alpha).values(queries, shrink)
        projected = self.eigen.project(workload)
        return projected.values(self.alpha, self.hard), projected.errors(self.alpha, self.hard)

    def errors_in_parts(self, workload: Recipe) -> KernelAnswers:
        """Answers, what noise does to them, and what past queries do not say; many at once.

        Parameters
        ----------
        workload : Workload
            Linear queries over the domain.

        Returns
        -------
        KernelAnswers
            Without `hard`.
        """
        queries = linear_queries(workload, self.domain)
        return KernelBlocks(self.eigen, self.alpha).with_errors(queries)

    def with_values(self, values: Float[np.ndarray, " queries"]) -> Posterior:
        """The same where past queries had other answers: nothing to decompose."""
        return replace(self, eigen=self.eigen.with_answers(values))

    def explain(self, workload: Recipe) -> pd.DataFrame:
        """Answers with what is known about their errors.

        Parameters
        ----------
        workload : Workload
            Linear queries over the domain.

        Returns
        -------
        pandas.DataFrame
            One row a query: `value`, `error` and what it `means`, and `biased`, the part of the query's
            squared norm that no combination of past queries reaches.
        """
        queries = self.eigen.project(workload)
        means = "posterior standard deviation" if isfinite(self.alpha) else "sampling error"
        return pd.DataFrame(
            {
                "value": queries.values(self.alpha, self.hard),
                "error": queries.errors(self.alpha, self.hard),
                "means": means,
                "biased": queries.bias_share,
            }
        )
