"""What past answers miss of those that are held out, from one decomposition for every α and every fold.

With the smoother H of all answers, in units of the noise, those of a fold F miss (I − H_FF)⁻¹(r − Hr)_F
of its answers when F is held out, and the diagonal of (I − H_FF)⁻¹ is the variance of what they miss.
Folds of one answer need the diagonal of H alone: a product of m × m and m × α numbers serves all α.
Source     Cook & Weisberg, Residuals and Influence in Regression, 1982, for the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.arrays import Float, Int
from workbench.inference.eigenqueries import Eigenqueries, shrinkage

_ROWS_AT_ONCE = 512
_CANCELS = 1e8  # α²λ² from which I − H is lost to rounding


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
        return (_CANCELS / squares[0]) ** 0.5 if len(squares) else np.inf

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

    def missed_alone(
        self, alphas: Float[np.ndarray, " alphas"]
    ) -> Float[np.ndarray, "queries alphas"]:
        """What the others miss of each single answer, in units of its noise, for many α."""
        leverage, fitted = self._smoothed(alphas)
        return (self.whitened[:, None] - fitted) / np.maximum(1 - leverage, 1e-300)

    def mean_squares(
        self,
        alphas: Float[np.ndarray, " alphas"],
        folds: Sequence[Int[np.ndarray, " held_out"]] | None,
    ) -> Float[np.ndarray, " alphas"]:
        """Theorem 4's mean of (a − a')² − σ² for each α, in folds or one by one, by `reliabilities`."""
        if folds is None:
            missed = self.missed_alone(alphas).T
        else:
            missed = np.stack([self.missed(alpha, folds).residuals for alpha in alphas])
        weights = np.where(np.isnan(missed), 0.0, self.reliabilities)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # an α of which all is lost to rounding
            squares = (missed**2 - 1) * self.variances
            mean = np.nansum(weights * squares, axis=1) / weights.sum(axis=1)
        return np.where(np.isnan(mean), np.inf, mean)

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
