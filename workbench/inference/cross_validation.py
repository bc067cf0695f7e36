"""Cross-validation for `KernelPCA`. The method chooses α, the trade-off between bias and variance, from the
noisy answers themselves.

Held-out answers: let r be the vector of all noisy answers, in units of their noise. Let H be the matrix that
computes smoothed answers from r. Suppose that we hold out the answers in a part F (a fold), and predict them
from the other answers. The prediction errors are (I − H_FF)⁻¹(r − Hr)_F. The diagonal of (I − H_FF)⁻¹ contains
the variances of these errors. If each fold is a single answer, only the diagonal of H is needed. One matrix
product computes this diagonal for all values of α.
Source     Cook & Weisberg, Residuals and Influence in Regression, 1982, for this formula.

Choice of α:

Source     Chen, Zhou & Bhowmick, EDBT 2012, Theorem 4. Let a be a held-out answer, and a' the prediction from
           the other answers. The mean of (a − a')² − σ² is an unbiased estimate of the squared error.
Differs    The paper uses a ternary search, which needs a unique minimum. We try a grid of values, and then use
           golden-section search around the best value. If the total is known, we use the total in every fold.
           The smallest of many estimated errors is too optimistic. So we divide the answers into new folds, and
           report the error that the new folds give for the chosen α. Because folds are held out, both estimates
           are for predictions from fewer past queries. By the formula above, one eigendecomposition is enough
           for all folds, all values of α, and the final fit.
Cost       If the sets of attributes overlap little, one fit of `kernel_ridge` per α and fold. Otherwise, one
           eigendecomposition of the m past queries, and O(m³/folds) multiplications per α. For values of α
           above 10⁴/λ₁, one more eigendecomposition per fold is needed. Here λ₁ is the square root of the
           largest eigenvalue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from math import isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.eigenqueries import (
    Eigenqueries,
    eigendecomposition,
    shrinkage,
    whitened_gram,
)
from workbench.inference.kernel_pca import KernelPCA, Posterior
from workbench.inference.kernel_ridge import KernelRidge, ridge_or_eigenqueries
from workbench.queries import Recipe
from workbench.value import Float, Int

# Held out

_ROWS_AT_ONCE = 512
_HELD_OUT_CANCELS = 1e8  # α²λ² from which I − H is lost to rounding


class Missed(NamedTuple):
    """Prediction errors of past answers that were held out, that is, predicted from the other answers.
    `variances` contains the variances that kernel PCA predicts for these errors.

    `residuals` are in standard deviations of each answer's noise, and `variances` in squares of this unit.
    The variances include the noise of the held-out answers. For answers that were never held out, both
    numbers are NaN.
    """

    residuals: Float[np.ndarray, " queries"]
    variances: Float[np.ndarray, " queries"]


class HeldOut:
    """Cross-validation on past answers. It holds out some of the answers, and predicts them from the others.

    Parameters
    ----------
    eigen : Eigenqueries
        Eigenqueries of all past answers (see `Eigenqueries`).
    history : NoisyAnswers
        The same past answers.
    reliabilities : float64[answers], optional
        Weight of each answer in averages of errors. By default, all weights are equal.
    """

    def __init__(
        self,
        eigen: Eigenqueries,
        history: NoisyAnswers,
        reliabilities: Float[np.ndarray, " queries"] | None = None,
    ):
        self.eigen = eigen
        self.history = history
        self.variances = history.variances
        self.deviations = np.sqrt(history.variances)
        residuals = history.values - (eigen.total or 0.0) * eigen.means
        self.whitened = residuals / self.deviations
        same = np.ones(len(history))
        self.reliabilities = same if reliabilities is None else reliabilities

    @property
    def largest_alpha(self) -> float:
        """Largest useful value of α (the trade-off between bias and variance). For larger values, rounding
        errors dominate, and answers hardly change.
        """
        squares = self.eigen.squares
        return (_HELD_OUT_CANCELS / squares[0]) ** 0.5 if len(squares) else np.inf

    def missed(self, alpha: float, folds: Sequence[Int[np.ndarray, " held_out"]]) -> Missed:
        """Hold out each fold (part of the answers) in turn. Return the prediction errors of its answers, with
        the variances that kernel PCA predicts for the given α.
        """
        residuals = np.full(len(self.whitened), np.nan)
        variances = residuals.copy()
        for fold in folds:
            rest, residual = self._rest(alpha, fold)
            inverse = np.linalg.inv(rest)
            residuals[fold] = inverse @ residual
            variances[fold] = inverse.diagonal()
        return Missed(residuals, variances)

    def residuals(self, alpha: float, fold: Int[np.ndarray, " held_out"]) -> np.ndarray:
        """Hold out one fold (part of the answers), and return the prediction errors of its answers, in units
        of their noise.
        """
        from scipy.linalg import solve

        rest, residual = self._rest(alpha, fold)
        return solve(rest, residual, assume_a="pos", overwrite_a=True, check_finite=False)

    def _rest(
        self, alpha: float, fold: Int[np.ndarray, " held_out"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix I − H_FF and the vector (r − Hr)_F for a fold F, as defined at the top of this
        module.
        """
        eigen = self.eigen
        smoother = eigen.squares * shrinkage(eigen.squares, alpha)
        vectors = self._vectors(fold)
        half = vectors * np.sqrt(smoother)
        rest = -(half @ half.T)
        rest[np.diag_indices(len(rest))] += 1
        return rest, self.whitened[fold] - vectors @ (eigen.answers * smoother)

    def mean_error(self, parts: list[Int[np.ndarray, " held_out"]]) -> Callable[[float], float]:
        """Return a function that computes the estimated mean squared error for any α, for one division of the
        past answers into parts (Theorem 4 of Chen, Zhou & Bhowmick, EDBT 2012).
        """
        without = [cache(partial(self._without, part)) for part in parts]

        def error(alpha: float) -> float:
            total = 0.0
            for part, others in zip(parts, without, strict=True):
                if alpha > self.largest_alpha:
                    missed = others()(alpha)
                else:
                    missed = self.residuals(alpha, part)
                total += float(((missed**2 - 1) * self.variances[part]).sum())
            return total / len(self.whitened)

        return error

    def _without(self, part: Int[np.ndarray, " held_out"]) -> Callable[[float], np.ndarray]:
        """Return a function that computes, for any α, the prediction errors of one part of the answers. The
        part is predicted from the eigenqueries of the other parts.
        """
        rest = np.setdiff1d(np.arange(len(self.whitened)), part)
        squares, vectors = eigendecomposition(self._gram[np.ix_(rest, rest)])
        coefficients = self._gram[np.ix_(part, rest)] @ vectors
        answers = vectors.T @ self.whitened[rest]

        def missed(alpha: float) -> np.ndarray:
            return self.whitened[part] - coefficients @ (answers * shrinkage(squares, alpha))

        return missed

    @cached_property
    def _gram(self) -> Float[np.ndarray, "queries queries"]:
        """Inner products of the past queries, divided by the standard deviations of their noise."""
        eigen = self.eigen
        return whitened_gram(self.history, eigen.prior, eigen.total is not None)[0]

    def unbiased_risks(self, alphas: Float[np.ndarray, " alphas"]) -> np.ndarray:
        """Return one number per α: an unbiased estimate of the mean squared error of smoothed answers to the
        past queries. No answers are held out.

        In the mean, queries are weighted by `reliabilities`. The estimate is Σ (a − â)² − Σ σ² + 2 Σ σ² H_ii.
        Here a is a noisy answer, σ² is the variance of its noise, â is the smoothed answer, and H is the
        matrix that computes smoothed from noisy answers. The estimate is unbiased for any noise, because the
        answers â are linear in the answers a.
        """
        leverage, fitted = self._smoothed(alphas)
        left = (self.whitened[:, None] - fitted) ** 2 - 1 + 2 * leverage
        squares = left * self.variances[:, None]
        return np.average(squares, axis=0, weights=self.reliabilities)

    def _vectors(
        self, rows: Int[np.ndarray, " rows"]
    ) -> Float[np.ndarray, "rows eigenqueries"]:
        """Return the rows of the matrix of eigenvectors that belong to the given past answers."""
        return self.eigen.basis[rows] * self.deviations[rows, None]

    def _smoothed(self, alphas: Float[np.ndarray, " alphas"]) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays with a row per past answer and a column per α. The first contains the diagonal of
        H (the matrix that computes smoothed answers), and the second the smoothed answers.
        """
        squares = self.eigen.squares
        weights = [shrinkage(squares, alpha) for alpha in alphas]
        smoothers = squares[:, None] * np.stack(weights, axis=1)
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


@dataclass(frozen=True, eq=False)
class SelectedAlpha:
    """Selected value of α (the trade-off of kernel PCA between bias and variance), with the estimated errors
    for all values that were tried. For the selected value, `error` was estimated again, with another division
    of the answers into folds.

    All errors are mean squared errors, in squared counts of records. An estimated error may be negative,
    because the variance of the noise is subtracted. `past` is the fit to all past answers. It can give
    answers for any α that was tried.
    """

    alpha: float
    error: float
    alphas: Float[np.ndarray, " tried"]
    errors: Float[np.ndarray, " tried"]
    past: KernelRidge | Eigenqueries

    def answer(self, workload: Recipe) -> Float[np.ndarray, " queries"]:
        """Return answers to queries, computed with the selected α.

        Parameters
        ----------
        workload : Workload
            Linear queries over the domain of the past answers.

        Returns
        -------
        float64[queries]
            One answer per query, as a count of records.

        Raises
        ------
        ValueError
            If the queries are not linear.
        """
        if isinstance(self.past, KernelRidge):
            return self.past.answer_at(workload, [self.alpha])[0]
        answers: Float[np.ndarray, " queries"] = Posterior(self.past, self.alpha).answer(
            workload
        )
        return answers


def select_alpha(
    history: NoisyAnswers | Iterable[NoisyAnswers],
    folds: int = 5,
    *,
    total: float | None = None,
    prior: tuple[Any, ...] | None = None,
    low: float | None = None,
    high: float | None = None,
    points: int = 16,
    refine: int = 8,
    seed: int = 0,
) -> SelectedAlpha:
    """Find the value of α with the smallest cross-validated error. α is the parameter of `KernelPCA` that sets
    the trade-off between bias and variance. The search first tries a grid of values, and then more values
    around the best value of the grid.

    Parameters
    ----------
    history : NoisyAnswers, or several
        Past noisy answers. The noise of different answers must be independent.
    folds : int
        Number of parts into which the past answers are divided. The function predicts the answers of each
        part from the other parts, and compares the predictions with the answers.
    total, prior : optional
        The same as for `KernelPCA`.
    low, high : float, optional
        Smallest and largest value of the grid, as numbers of records. By default, `low` is a thousandth of
        the smallest standard deviation of the noise, and `high` is the total. If the total is unknown, `high`
        is the largest answer.
    points : int
        Number of values of α on the grid, at least 3. The logarithms of these values are equally spaced.
    refine : int
        Number of values that the function tries after the grid, by golden-section search around the best value
        of the grid.
    seed : int
        Seed of the random division of the answers into parts.

    Returns
    -------
    SelectedAlpha
        Selected α, the estimated errors of all values that were tried, and the fit to all past answers.

    Raises
    ------
    ValueError
        If the history is empty, or if another argument is not allowed.
    """
    history = NoisyAnswers.history(history)
    m = len(history)
    _check_folds(folds, m)
    if not (isinstance(points, int) and points >= 3):
        raise ValueError(f"points = {points!r} is not allowed: need an integer >= 3")
    prior = KernelPCA(1.0, total, prior).prior  # which says what is wrong with them
    deviations = np.sqrt(history.variances)
    low = 1e-3 * float(deviations.min()) if low is None else low
    if high is None:
        largest = float(np.abs(history.values).max() + deviations.max())
        high = max(total or largest, 1e3 * low)
    if not (isfinite(high) and 0 < low < high):
        raise ValueError(f"low = {low!r}, high = {high!r} are not allowed: need 0 < low < high")
    rng = np.random.default_rng(seed)
    past = ridge_or_eigenqueries(history, total, prior, high)
    held_out = past if isinstance(past, KernelRidge) else HeldOut(past, history)
    error = held_out.mean_error(_split(m, folds, rng))
    errors = _search(error, np.geomspace(low, high, points).tolist(), refine)
    alpha = min(errors, key=errors.__getitem__)
    fresh_error = held_out.mean_error(_split(m, folds, rng))
    alphas = sorted(errors)
    return SelectedAlpha(
        alpha,
        fresh_error(alpha),
        np.array(alphas),
        np.array([errors[a] for a in alphas]),
        past,
    )


def cross_validated_errors(
    history: NoisyAnswers | Iterable[NoisyAnswers],
    fit: Callable[[NoisyAnswers], Sequence[Any]],
    folds: int = 5,
) -> Float[np.ndarray, " estimates"]:
    """Estimate the squared error for each of several values of α, by cross-validation. α is a parameter of
    `KernelPCA` and `MaximumEntropy`. You can then use the value with the smallest estimated error. The estimate
    is due to Chen, Zhou & Bhowmick (EDBT 2012, Theorem 4).

    Parameters
    ----------
    history : NoisyAnswers, or several
        Past noisy answers. The noise of different answers must be independent.
    fit : callable
        Function that takes some of the past answers and returns a list of fitted estimates, one for each α.
        For example, it returns `[MaximumEntropy(a)(history) for a in alphas]`.
    folds : int
        Number of parts into which the past answers are divided. The function predicts the answers of each part
        from the other parts, and compares the predictions with the answers. The parts are the same as in
        `select_alpha` with its default seed.

    Returns
    -------
    float64[estimates]
        One estimated squared error for each α. An estimate may be negative, because the function subtracts the
        variance of the noise.

    Raises
    ------
    ValueError
        If the history is empty, or if `folds` is not allowed.
    """
    history = NoisyAnswers.history(history)
    _check_folds(folds, len(history))
    squares = -history.variances.sum()
    for part in _split(len(history), folds, np.random.default_rng(0)):
        others = history[np.setdiff1d(np.arange(len(history)), part)]
        held_out = history[part]
        answers = [estimate.answer(held_out.workload) for estimate in fit(others)]
        squares = squares + ((np.stack(answers) - held_out.values) ** 2).sum(axis=1)
    return squares / len(history)


def _check_folds(folds: int, m: int) -> None:
    if not (isinstance(folds, int) and 2 <= folds <= m):
        raise ValueError(f"folds = {folds!r} is not allowed: need 2 to {m} (the past answers)")


def _search(
    error: Callable[[float], float], grid: list[float], refine: int
) -> dict[float, float]:
    """Return a dictionary with the error for each value of α that was tried. The search first tries the
    values of the grid, and then uses golden-section search around the best of them.
    """
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


def _split(m: int, folds: int, rng: np.random.Generator) -> list[Int[np.ndarray, " held_out"]]:
    order = rng.permutation(m)
    return np.array_split(order, folds)
