"""Cross-validation of the trade-off α on the noisy answers themselves.

Held out.
With the smoother H of all answers, in units of the noise, those of a fold F miss (I − H_FF)⁻¹(r − Hr)_F
of its answers when F is held out, and the diagonal of (I − H_FF)⁻¹ is the variance of what they miss.
Folds of one answer need the diagonal of H alone: a product of m × m and m × α numbers serves all α.
Source     Cook & Weisberg, Residuals and Influence in Regression, 1982, for the identity.

Cross validation:

Source     Chen, Zhou & Bhowmick, EDBT 2012, Theorem 4: the mean of (a − a')² − σ² over answers a that
           are held out, a' predicted from the others, is an unbiased estimate of the squared error.
Differs    the paper searches in three parts, which needs one minimum: here a grid first, then a golden
           section between its neighbours. The total stays known in every fold. The least of many
           estimates is optimistic, so that the error reported is of another, fresh split at the α chosen.
           Both hold folds out of the history, so that errors are those of fewer past queries. What a
           fold's answers lack when it is held out follows from the smoother H of all answers,
           (I − H_FF)⁻¹(r − Hr)_F: one decomposition serves all folds, all α, and the fit.
Cost       that of `kernel_ridge` for each α and fold, where sets of attributes share little; else one
           eigendecomposition of the past queries, and O(m³/folds) of multiplications for each α. With
           `hard`, or an α beyond 10⁴/λ₁, a decomposition for each fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.eigenqueries import (
    Eigenqueries,
    centred_gram,
    eigendecomposition,
    prior_vectors,
    shrinkage,
)
from workbench.inference.kernel_pca import KernelPCA, Posterior
from workbench.inference.kernel_ridge import KernelRidge, ridge_or_eigenqueries
from workbench.queries import Recipe
from workbench.value import Float, Int

# Held out

_ROWS_AT_ONCE = 512
_HELD_OUT_CANCELS = 1e8  # α²λ² from which I − H is lost to rounding


class Missed(NamedTuple):
    """By row of the history: what its fold's others miss of it, and the variance of that, as α believes.

    Both in units of the row's noise, which is part of the variance. NaN for rows in no fold.
    """

    residuals: Float[np.ndarray, " queries"]
    variances: Float[np.ndarray, " queries"]


class HeldOut:
    """The history that eigenqueries were made from, with answers held out.

    Parameters
    ----------
    eigen : of all answers.
    values, variances : the answers, and their noise's.
    reliabilities : what each weighs where errors are averaged; all the same if not given.
    """

    def __init__(
        self,
        eigen: Eigenqueries,
        values: Float[np.ndarray, " queries"],
        variances: Float[np.ndarray, " queries"],
        reliabilities: Float[np.ndarray, " queries"] | None = None,
    ):
        self.eigen = eigen
        self.variances = variances
        deviations = np.sqrt(variances)
        self.whitened = (values - (eigen.total or 0.0) * eigen.means) / deviations
        self.deviations = deviations
        same = np.ones(len(variances))
        self.reliabilities = same if reliabilities is None else reliabilities

    @property
    def largest_alpha(self) -> float:
        """Above it rounding decides; what an α beyond says is nearly unbiased all the same."""
        squares = self.eigen.squares
        return (_HELD_OUT_CANCELS / squares[0]) ** 0.5 if len(squares) else np.inf

    def missed(self, alpha: float, folds: Sequence[Int[np.ndarray, " held_out"]]) -> Missed:
        """With each fold held out in turn."""
        residuals = np.full(len(self.whitened), np.nan)
        variances = residuals.copy()
        eigen = self.eigen
        smoother = eigen.squares * shrinkage(eigen.squares, alpha)
        coefficients = eigen.answers * smoother
        for fold in folds:
            vectors = self._vectors(fold)
            half = vectors * np.sqrt(smoother)
            rest = -(half @ half.T)
            rest[np.diag_indices(len(rest))] += 1
            inverse = np.linalg.inv(rest)
            residuals[fold] = inverse @ (self.whitened[fold] - vectors @ coefficients)
            variances[fold] = inverse.diagonal()
        return Missed(residuals, variances)

    def unbiased_risks(self, alphas: Float[np.ndarray, " alphas"]) -> np.ndarray:
        """The mean squared error at the past queries themselves, for each α, from answers alone.

        By `reliabilities`.
        Σ (a − â)² − Σ σ² + 2 Σ σ² H_ii is unbiased for any noise, as â is linear.
        """
        leverage, fitted = self._smoothed(alphas)
        left = (self.whitened[:, None] - fitted) ** 2 - 1 + 2 * leverage
        squares = left * self.variances[:, None]
        return np.average(squares, axis=0, weights=self.reliabilities)

    def _vectors(
        self, rows: Int[np.ndarray, " rows"]
    ) -> Float[np.ndarray, "rows eigenqueries"]:
        """Rows of a matrix of orthonormal columns."""
        return self.eigen.basis[rows] * self.deviations[rows, None]

    def _smoothed(self, alphas: Float[np.ndarray, " alphas"]) -> tuple[np.ndarray, np.ndarray]:
        """The smoother's diagonal, and what it makes of the answers, for each α; in blocks of answers."""
        squares = self.eigen.squares
        smoothers = squares[:, None] * np.stack([shrinkage(squares, a) for a in alphas], axis=1)
        coefficients = self.eigen.answers[:, None] * smoothers
        leverage = np.empty((len(self.whitened), len(alphas)))
        fitted = np.empty_like(leverage)
        for start in range(0, len(leverage), _ROWS_AT_ONCE):
            rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(leverage)))
            vectors = self._vectors(rows)
            fitted[rows] = vectors @ coefficients
            leverage[rows] = vectors**2 @ smoothers
        return leverage, fitted


# Cross validation

_GOLDEN = (sqrt(5) - 1) / 2
_CANCELS = 1e8  # α²λ² from which I − H is computed from the other folds


@dataclass(frozen=True, eq=False)
class SelectedAlpha:
    """An α, the mean squared error that a fresh split estimates for it, and the curve it is from.

    Estimates may be negative: noise is subtracted. All errors are in squared answers. `past` is what the
    history says at all α of the curve.
    """

    alpha: float
    error: float
    alphas: Float[np.ndarray, " tried"]
    errors: Float[np.ndarray, " tried"]
    past: KernelRidge | Eigenqueries
    hard: bool = False

    @property
    def rmse(self) -> float:
        """The root of the error, 0 if the estimate is negative."""
        return sqrt(max(0.0, self.error))

    @cached_property
    def posterior(self) -> Posterior:
        """What the whole history says at this α, with errors; decomposed when it is first asked for."""
        past = self.past
        eigen = past.eigenqueries() if isinstance(past, KernelRidge) else past
        return Posterior(eigen, self.alpha, self.hard)

    def answer(
        self, workload: Recipe, alpha: float | None = None
    ) -> Float[np.ndarray, " queries"]:
        """Answers at this α or another, without a decomposition where none is needed.

        Parameters
        ----------
        workload : Workload
            Linear queries over the domain.
        alpha : float, optional
            In tuples; by default the one selected, and inf is unbiased.

        Returns
        -------
        float64[queries]
            In tuples.

        Raises
        ------
        ValueError
            If `alpha` is not above 0, or for queries that are not linear.
        """
        alpha = self.alpha if alpha is None else alpha
        if isinstance(self.past, KernelRidge) and alpha <= self.past.largest_alpha:
            return self.past.answer_at(workload, [alpha])[0]
        return self.posterior.with_alpha(alpha).answer(workload)


def select_alpha(
    history: NoisyAnswers | Iterable[NoisyAnswers],
    folds: int = 5,
    *,
    total: float | None = None,
    prior: tuple[Any, ...] | None = None,
    hard: bool = False,
    low: float | None = None,
    high: float | None = None,
    points: int = 16,
    refine: int = 8,
    seed: int = 0,
) -> SelectedAlpha:
    """The α with the least cross-validated error, on a grid and then between its neighbours.

    Parameters
    ----------
    history : NoisyAnswers, or several
        Past answers; their noise must be independent from answer to answer.
    folds : int
        Parts of the past answers, each of which is held out once.
    total, prior, hard
        As in `KernelPCA`.
    low, high : float, optional
        The ends of the grid, in tuples: by default a thousandth of the least noise, and the total (the
        largest answer, if it is not known).
    points : int
        Values of α on a logarithmic grid, at least 3.
    refine : int
        Steps of golden section that follow.
    seed : int
        Of the folds.

    Returns
    -------
    SelectedAlpha
        With the whole curve, and the posterior at its minimum.

    Raises
    ------
    ValueError
        For an empty history, or folds, points, ends, a total or a prior that are not allowed.
    """
    history = NoisyAnswers.history(history)
    m = len(history)
    _check_folds(folds, m)
    if not (isinstance(points, int) and points >= 3):
        raise ValueError(f"points = {points!r} is not allowed: need an integer >= 3")
    prior = KernelPCA(1.0, total, prior, hard).prior  # which says what is wrong with them
    deviations = np.sqrt(history.variances)
    low = 1e-3 * float(deviations.min()) if low is None else low
    if high is None:
        largest = float(np.abs(history.values).max() + deviations.max())
        high = max(total or largest, 1e3 * low)
    if not (isfinite(high) and 0 < low < high):
        raise ValueError(f"low = {low!r}, high = {high!r} are not allowed: need 0 < low < high")
    rng = np.random.default_rng(seed)
    if hard:
        said: KernelRidge | Eigenqueries = Eigenqueries.of(history, total, prior)
    else:
        said = ridge_or_eigenqueries(history, total, prior, high)
    past: _RidgeResiduals | _Residuals
    if isinstance(said, KernelRidge):
        past = _RidgeResiduals(said)
    else:
        past = _Residuals(history, said, hard)
    error = past.mean_error(_split(m, folds, rng))
    errors = _search(error, np.geomspace(low, high, points).tolist(), refine)
    alpha = min(errors, key=errors.__getitem__)
    fresh_error = past.mean_error(_split(m, folds, rng))
    alphas = sorted(errors)
    return SelectedAlpha(
        alpha,
        fresh_error(alpha),
        np.array(alphas),
        np.array([errors[a] for a in alphas]),
        said,
        hard,
    )


def cross_validated_errors(
    history: NoisyAnswers | Iterable[NoisyAnswers],
    fit: Callable[[NoisyAnswers], Sequence[Any]],
    folds: int = 5,
    seed: int = 0,
) -> Float[np.ndarray, " estimates"]:
    """Theorem 4's estimate of the squared error at several α: the least says which to take.

    Parameters
    ----------
    history : NoisyAnswers, or several
        Past answers; their noise must be independent from answer to answer.
    fit : callable
        Takes a history and returns an estimate for each α, as `[MaximumEntropy(a)(history) for a in …]`.
    folds : int
        Parts of the past answers, each of which is held out once.
    seed : int
        Of the folds, which are those of `select_alpha`.

    Returns
    -------
    float64[estimates]
        In squared answers; noise is subtracted, so that they may be negative.

    Raises
    ------
    ValueError
        For an empty history, or folds that are not allowed.
    """
    history = NoisyAnswers.history(history)
    _check_folds(folds, len(history))
    squares = -history.variances.sum()
    for part in _split(len(history), folds, np.random.default_rng(seed)):
        others = history[np.setdiff1d(np.arange(len(history)), part)]
        held_out = history[part]
        answers = [estimate.answer(held_out.workload) for estimate in fit(others)]
        squares = squares + ((np.stack(answers) - held_out.values) ** 2).sum(axis=1)
    return squares / len(history)


def _check_folds(folds: int, m: int) -> None:
    if not (isinstance(folds, int) and 2 <= folds <= m):
        raise ValueError(f"folds = {folds!r} is not allowed: need 2 to {m}, the past answers")


def _search(
    error: Callable[[float], float], grid: list[float], refine: int
) -> dict[float, float]:
    """The error of each α tried: the grid's, and those of golden section around the best of them."""
    errors = {alpha: error(alpha) for alpha in grid}
    best = min(range(len(grid)), key=lambda i: errors[grid[i]])

    def error_at(log_alpha: float) -> float:
        alpha = float(np.exp(log_alpha))
        if alpha not in errors:
            errors[alpha] = error(alpha)
        return errors[alpha]

    low = np.log(grid[max(0, best - 1)])
    high = np.log(grid[min(len(grid) - 1, best + 1)])
    left = high - _GOLDEN * (high - low)
    right = low + _GOLDEN * (high - low)
    for _ in range(refine):
        if error_at(left) <= error_at(right):
            high = right
            right = left
            left = high - _GOLDEN * (high - low)
        else:
            low = left
            left = right
            right = low + _GOLDEN * (high - low)
    return errors


class _RidgeResiduals:
    """What past answers miss when some are held out: the sum of squares, less the noise in them."""

    def __init__(self, ridge: KernelRidge):
        self.ridge = ridge

    def mean_error(self, parts: list[Int[np.ndarray, " held_out"]]) -> Callable[[float], float]:
        """Theorem 4's mean, as a function of α, over a split of the past answers."""
        variances = self.ridge.history.variances
        return lambda alpha: float(
            ((self.ridge.missed(alpha, parts) ** 2 - 1) * variances).mean()
        )


class _Residuals:
    """The same, from eigenqueries."""

    def __init__(self, history: NoisyAnswers, eigen: Eigenqueries, hard: bool):
        self.history = history
        self.eigen = eigen
        self.hard = hard
        self.deviations = np.sqrt(history.variances)
        self.whitened = (history.values - (eigen.total or 0.0) * eigen.means) / self.deviations

    def mean_error(self, parts: list[Int[np.ndarray, " held_out"]]) -> Callable[[float], float]:
        """Theorem 4's mean, as a function of α, over a split of the past answers."""
        folds = [_Fold(self, part) for part in parts]
        return lambda alpha: sum(fold.error(alpha) for fold in folds) / len(self.history)

    @cached_property
    def gram(self) -> Float[np.ndarray, "queries queries"]:
        """Inner products in units of the noise, made when they are first needed."""
        prior = prior_vectors(self.eigen.prior, self.history.domain)
        gram = centred_gram(self.history, prior, self.eigen.total is not None).products
        gram /= self.deviations
        gram /= self.deviations[:, None]
        return gram


class _WithoutFold(NamedTuple):
    """The other folds' eigenvalues and answers, and what a fold is made of."""

    squares: Float[np.ndarray, " eigenqueries"]
    coefficients: Float[np.ndarray, "held_out eigenqueries"]
    answers: Float[np.ndarray, " eigenqueries"]


class _Fold:
    """One part held out."""

    def __init__(self, residuals: _Residuals, part: Int[np.ndarray, " held_out"]):
        self.residuals = residuals
        self.part = part
        self.whitened = residuals.whitened[part]
        self.deviations = residuals.deviations[part]
        self.vectors = residuals.eigen.basis[part] * self.deviations[:, None]  # orthonormal

    def error(self, alpha: float) -> float:
        """Theorem 4's sum."""
        squares = self.residuals.eigen.squares
        cancels = len(squares) and alpha**2 * squares[0] > _CANCELS
        if self.residuals.hard or cancels:
            missed = self._missed_by_others(alpha)
        else:
            missed = self._missed_by_smoother(alpha)
        return float(((missed**2 - 1) * self.deviations**2).sum())

    def _missed_by_smoother(self, alpha: float) -> Float[np.ndarray, " held_out"]:
        """(I − H_FF)⁻¹(r − Hr)_F, in units of the noise."""
        from scipy.linalg import solve

        eigen = self.residuals.eigen
        smoother = eigen.squares * shrinkage(eigen.squares, alpha)
        residual = self.whitened - self.vectors @ (eigen.answers * smoother)
        half = self.vectors * np.sqrt(smoother)
        rest = -(half @ half.T)
        rest[np.diag_indices(len(rest))] += 1
        return solve(rest, residual, assume_a="pos", overwrite_a=True, check_finite=False)

    def _missed_by_others(self, alpha: float) -> Float[np.ndarray, " held_out"]:
        """The same from the others' own eigenqueries."""
        others = self._others
        weights = shrinkage(others.squares, alpha, self.residuals.hard)
        return self.whitened - others.coefficients @ (others.answers * weights)

    @cached_property
    def _others(self) -> _WithoutFold:
        gram = self.residuals.gram
        rest = np.setdiff1d(np.arange(len(gram)), self.part)
        squares, vectors = eigendecomposition(gram[np.ix_(rest, rest)])
        coefficients = gram[np.ix_(self.part, rest)] @ vectors
        return _WithoutFold(squares, coefficients, vectors.T @ self.residuals.whitened[rest])


def _split(m: int, folds: int, rng: np.random.Generator) -> list[Int[np.ndarray, " held_out"]]:
    return np.array_split(rng.permutation(m), folds)
