"""The trade-off α of kernel PCA, chosen by cross-validation on the noisy answers themselves: free.

Source     Chen, Zhou & Bhowmick, EDBT 2012, Theorem 4: the mean of (a − a')² − σ² over answers a that
           are held out, a' predicted from the others, is an unbiased estimate of the squared error.
Differs    the paper searches in three parts, which needs one minimum: here a grid first, then a golden
           section between its neighbours. The total stays known in every fold. The least of many
           estimates is optimistic, so that the error told is of another, fresh split at the α chosen.
           Both hold folds out of the history, so that errors are those of fewer past queries. What a
           fold's answers lack when it is held out follows from the smoother H of all answers,
           (I − H_FF)⁻¹(r − Hr)_F: one decomposition serves all folds, all α, and the fit.
Cost       one eigendecomposition of the past queries; then O(m³/folds) of multiplications for each α.
           With `hard`, or an α beyond 10⁴/λ₁, a decomposition for each fold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import solve

from workbench.estimates import NoisyAnswers
from workbench.inference.kernel_pca import (
    Eigenqueries,
    KernelPCA,
    Posterior,
    centred_gram,
    eigendecomposition,
    prior_vectors,
    shrinkage,
)

_GOLDEN = (sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class SelectedAlpha:
    """An α, the mean squared error that a fresh split estimates for it, and the curve it is from.

    Estimates may be negative: noise is subtracted. All errors are in squared answers. `posterior` is
    what the whole history says at this α.
    """

    alpha: float
    error: float
    alphas: Float[np.ndarray, " tried"]
    errors: Float[np.ndarray, " tried"]
    posterior: Posterior

    @property
    def rmse(self) -> float:
        """The root of the error, 0 if the estimate is negative."""
        return sqrt(max(0.0, self.error))


def select_alpha(
    history: NoisyAnswers | Iterable[NoisyAnswers],
    folds: int = 5,
    *,
    total: float | None = None,
    prior: tuple | None = None,
    hard: bool = False,
    low: float | None = None,
    high: float | None = None,
    points: int = 16,
    refine: int = 8,
    seed: int = 0,
) -> SelectedAlpha:
    """The α with the least cross-validated error: `points` on a logarithmic grid, then `refine` more.

    The grid goes from a thousandth of the least noise up to the total (the largest answer, if it is not
    known) unless `low` and `high` say otherwise. Noise must be independent from answer to answer.
    """
    history = NoisyAnswers.history(history)
    m = len(history)
    if not (isinstance(folds, int) and 2 <= folds <= m):
        raise ValueError(f"folds = {folds!r} is not allowed: need 2 to {m}, the past answers")
    if not (isinstance(points, int) and points >= 3):
        raise ValueError(f"points = {points!r} is not allowed: need a whole number >= 3")
    prior = KernelPCA(1.0, total, prior, hard).prior  # which says what is wrong with them
    deviation = np.sqrt(history.variances)
    low = 1e-3 * float(deviation.min()) if low is None else low
    if high is None:
        most = float(np.abs(history.values).max() + deviation.max())
        high = max(total or most, 1e3 * low)
    if not (isfinite(high) and 0 < low < high):
        raise ValueError(f"low = {low!r}, high = {high!r} are not allowed: need 0 < low < high")
    rng = np.random.default_rng(seed)
    held = _Held(history, Eigenqueries.of(history, total, prior), hard)
    split = held.out(_parts(m, folds, rng))

    def error(alpha: float) -> float:
        return sum(fold(alpha) for fold in split) / m

    tried = dict.fromkeys(np.geomspace(low, high, points).tolist(), 0.0)
    tried = {alpha: error(alpha) for alpha in tried}
    alphas = list(tried)
    best = min(range(points), key=lambda i: tried[alphas[i]])
    a, b = np.log(alphas[max(0, best - 1)]), np.log(alphas[min(points - 1, best + 1)])
    x, y = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    for _ in range(refine):
        for at in (x, y):
            tried.setdefault(float(np.exp(at)), None)
        for alpha, found in tried.items():
            tried[alpha] = error(alpha) if found is None else found
        if tried[float(np.exp(x))] <= tried[float(np.exp(y))]:
            b, y = y, x
            x = b - _GOLDEN * (b - a)
        else:
            a, x = x, y
            y = a + _GOLDEN * (b - a)
    alpha = min(tried, key=tried.get)
    split = held.out(_parts(m, folds, rng))
    alphas = sorted(tried)
    return SelectedAlpha(
        alpha,
        error(alpha),
        np.array(alphas),
        np.array([tried[a] for a in alphas]),
        Posterior(held.eigen, alpha, hard),
    )


class _Held:
    """What past answers miss when some are held out: the sum of squares, less the noise in them."""

    def __init__(self, history: NoisyAnswers, eigen: Eigenqueries, hard: bool):
        self.history, self.eigen, self.hard = history, eigen, hard
        self._spread = np.sqrt(history.variances)
        self._white = (history.values - (eigen.total or 0.0) * eigen.means) / self._spread
        self._gram = None

    def out(self, parts: list[Int[np.ndarray, " held"]]) -> list:
        """A function of α for each part."""
        return [_Fold(self, own) for own in parts]

    def gram(self) -> Float[np.ndarray, "queries queries"]:
        """Inner products in units of the noise, made when they are first needed."""
        if self._gram is None:
            prior = prior_vectors(self.eigen.prior, self.history.domain)
            known = self.eigen.total is not None
            self._gram = centred_gram(self.history, prior, known)[0]
            self._gram /= self._spread
            self._gram /= self._spread[:, None]
        return self._gram


class _Fold:
    """One part held out."""

    def __init__(self, held: _Held, own: Int[np.ndarray, " held"]):
        self.held, self.own = held, own
        self.white, self.spread = held._white[own], held._spread[own]
        self.vectors = held.eigen.basis[own] * self.spread[:, None]  # orthonormal ones
        self._apart = None

    def __call__(self, alpha: float) -> float:
        """Theorem 4's sum."""
        squares = self.held.eigen.squares
        extreme = len(squares) and alpha**2 * squares[0] > 1e8  # where I − H cancels
        if self.held.hard or extreme:
            missed = self._decomposed(alpha)
        else:
            smooth = squares * shrinkage(squares, alpha)
            white = self.white - self.vectors @ (self.held.eigen.answers * smooth)
            half = self.vectors * np.sqrt(smooth)
            left = -(half @ half.T)
            left[np.diag_indices(len(left))] += 1
            missed = solve(left, white, assume_a="pos", overwrite_a=True, check_finite=False)
        return float(((missed**2 - 1) * self.spread**2).sum())

    def _decomposed(self, alpha: float) -> Float[np.ndarray, " held"]:
        """The same from the others' own eigenqueries."""
        if self._apart is None:
            gram, white = self.held.gram(), self.held._white
            rest = np.setdiff1d(np.arange(len(white)), self.own)
            squares, vectors = eigendecomposition(gram[np.ix_(rest, rest)])
            parts = gram[np.ix_(self.own, rest)] @ vectors
            self._apart = squares, parts, vectors.T @ white[rest]
        squares, parts, answers = self._apart
        return self.white - parts @ (answers * shrinkage(squares, alpha, self.held.hard))


def _parts(m: int, folds: int, rng: np.random.Generator) -> list[Int[np.ndarray, " held"]]:
    return np.array_split(rng.permutation(m), folds)
