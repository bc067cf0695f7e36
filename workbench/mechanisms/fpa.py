"""Fourier perturbation: the first coefficients of the counts with noise, the others zero.

Guarantee  ε-DP per user, or ρ-zCDP; `split` divides it between items and edges. With k=None half of a
           table's part chooses k, by the exponential mechanism, and the other half pays for the
           coefficients.
Assumes    `bound`, stated without looking at the data and enforced: of each user at most so many
           records, at random. A unit then moves the counts by Δ₁ = M in all and Δ₂ = M in the l2 norm;
           Δ₂ = √M where no user has an item twice, by the data's own bound or by `once`. Of ρ k of
           n coefficients get noise at min(Δ₂, Δ₁·√(k/n)).
Source     Rastogi & Nath, SIGMOD 2010 (FPA); Acs, Castelluccia & Chen, ICDM 2012 (k=None: EFPA).
Differs    an orthonormal real basis: noise on real and imaginary parts, none on phases alone (the
           published code of EFPA leaks them); the smaller of two sensitivities; noise exactly on a
           public grid; what the transform rounds is counted.
Cost       time O(edges · log edges) and memory O(edges), edges = items · contexts of the domain.
"""

from fractions import Fraction
from math import ceil, floor, log2, sqrt
from typing import Any, Self

import numpy as np

from workbench import noise
from workbench.arrays import Float, Int
from workbench.estimates.law import geometric_variance
from workbench.estimates.linear_noise import FourierNoise
from workbench.interactions import Interactions
from workbench.mechanism import (
    Release,
    memory_field,
    private_bound,
    pure_budget,
    sensitivity,
    split_epsilon,
)
from workbench.mechanisms import _contributions as shared
from workbench.mechanisms._fourier import coefficients, inverse
from workbench.privacy import DP, ZCDP, Receipt
from workbench.table import Bound
from workbench.value import parameter, value

_REAL = np.longdouble  # 64 bits of mantissa where the machine has them
_UP = 1 + 2.0**-40  # above what a few roundings of a sensitivity can lose


def _check_odd(k: Any) -> str | None:
    whole = isinstance(k, int) and not isinstance(k, bool)
    good = whole and k >= 1 and k % 2 == 1
    return None if good else "need an odd number >= 1: a mean, and whole frequencies"


@value
class FPA(shared.Contributions):
    """Release items and edges by their k lowest Fourier coefficients, in the order of their keys.

    A table of fewer than k counts keeps all of its coefficients.
    """

    budget: DP | ZCDP = pure_budget(zcdp=True)
    bound: int = shared.bound_field()
    k: int | None = parameter(
        None, check=_check_odd, unit="coefficients", doc="None: chosen privately"
    )
    split: tuple[float, float] = shared.split_field()
    once: bool = parameter(False, choices=(False, True), doc="one record of a user and item")
    largest: int = parameter(
        2**24,
        1,
        2**32,
        integer=True,
        unit="records",
        doc="cuts a count, so that rounding is bounded",
    )
    memory: int = memory_field()
    cite = "rastogi2010"
    title = "Fourier perturbation"
    series = "DFT"
    accepts_zcdp = True
    converges = False  # what lies beyond the bound, and beyond k, is gone

    def coefficient_sensitivity(self, k: Any, n: int, bound: Bound) -> Any:
        """How far a unit moves the first k of n coefficients: min(√k·Δ₂, k·Δ₁/√n).

        An orthonormal transform keeps the l2 norm, and k numbers have an l1 norm of at most √k times
        theirs. And a record adds 1/√n to the mean and at most √(2/n)·(|cos| + |sin|) <= 2/√n to a
        frequency, so that k coefficients, whole frequencies, move by k/√n.
        """
        return np.minimum(np.sqrt(k) * bound.l2, k * (bound.l1 / sqrt(n))) * _UP

    def coefficient_l2(self, k: Any, n: int, bound: Bound) -> Any:
        """How far a unit moves the first k of n coefficients, in the l2 norm: min(Δ₂, Δ₁·√(k/n)).

        A record adds 1/√n to the mean and √(2/n)·(cos, sin) to each frequency, of squares 1/n and 2/n, so
        that k coefficients, whole frequencies, move by √(k/n); several records by no more than their sum.
        """
        return np.minimum(bound.l2, bound.l1 * np.sqrt(k / n)) * _UP

    def rounding_error(self, n: int, units: float = 0) -> float:
        """How far the computed coefficients of n counts may lie from the exact ones, in the l2 norm.

        A fast transform is right to a small multiple of log₂ n units in the last place of its input's
        l2 norm (Higham 2002, section 24.1), here at most largest·√n; 64 leaves room for sizes that are
        no powers of two, and for scaling. More `units` are for what is computed from coefficients.
        """
        units = 64 * (log2(n) + 1) + units
        return float(units * np.finfo(_REAL).eps * self.largest * sqrt(n)) * _UP

    def candidates(self, n: int) -> Int[np.ndarray, " candidates"]:
        """What k=None chooses from: 1, 3, 5, … and n."""
        return np.unique(np.append(np.arange(1, n + 1, 2), n))

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """What is counted, as private as the data; with the same seed, that of the release."""
        once = self.once or (isinstance(data.bound, Bound) and data.bound.linf == 1)
        bounded = (data.one_per_item(rng) if once else data).bounded(self.bound, rng)
        sensitivity(bounded)
        return bounded

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release every item and every edge, both from one draw of bounded data."""
        self.refuse_dense(data.domain.size, 150)
        return self._smoothed(data, rng)

    def _smooth(
        self,
        data: Interactions,
        counts: Int[np.ndarray, " n"],
        share: float,
        rng: np.random.Generator | None,
    ) -> tuple[Float[np.ndarray, " n"], FourierNoise, list[Receipt]]:
        n = len(counts)
        bound = private_bound(data)
        exact = coefficients(np.minimum(counts, self.largest).astype(_REAL))
        receipts = []
        if self.k is None:
            choice, share = split_epsilon(share, [Fraction(1, 2), Fraction(1, 2)])
            k, receipt = self._choose(exact, bound, choice, share, rng)
            receipts.append(receipt)
        else:
            k = min(self.k, n)
        noisy = np.zeros(n)
        noisy[:k], variance, receipt = self._noisy(exact[:k], n, bound, share, rng)
        return inverse(noisy), FourierNoise(k, variance), [*receipts, receipt]

    def _noisy(
        self,
        exact: Float[np.ndarray, " k"],
        n: int,
        bound: Bound,
        share: float,
        rng: np.random.Generator | None,
    ) -> tuple[np.ndarray, float, Receipt]:
        """Coefficients with noise, its variance, and its receipt."""
        k = len(exact)
        rounded = 2 * self.rounding_error(n)
        if isinstance(self.budget, ZCDP):
            l2 = (self.coefficient_l2(k, n, bound) + rounded) * _UP
            grid = self._grid(l2, k, n, l2 / sqrt(2 * share))
            noisy, receipt = noise.gaussian_on_grid(
                exact, l2_squared=Fraction(l2) ** 2, rho=share, grid=grid, rng=rng
            )
            return noisy, l2**2 / (2 * share), receipt
        l1 = (self.coefficient_sensitivity(k, n, bound) + sqrt(k) * rounded) * _UP
        grid = self._grid(l1, k, n, l1 / share)
        noisy, receipt = noise.laplace(exact, l1=l1, epsilon=share, grid=grid, l0=k, rng=rng)
        steps = noise.decay(Fraction(l1) / Fraction(grid), share)
        return noisy, grid**2 * geometric_variance(float(steps)), receipt

    def _choose(
        self,
        exact: Float[np.ndarray, " n"],
        bound: Bound,
        share: float,
        rest: float,
        rng: np.random.Generator | None,
    ) -> tuple[int, Receipt]:
        """k with probability ∝ exp(−ε·U(k) / (2·Δ₂)), U(k) = ‖what lies beyond k‖₂ + √(2k)·λ(k).

        Of ρ the noise is √k·σ, and a choice at ε costs ε²/8 at most.

        The first term is the root of the squared error of cutting, which a unit moves by Δ₂ at most
        (triangle inequality); the second, the root of that of the noise, depends on no data.
        """
        n = len(exact)
        candidates = self.candidates(n)
        squares_beyond = np.append(np.cumsum(exact[::-1] ** 2)[::-1], 0)[candidates]
        if isinstance(self.budget, ZCDP):
            epsilon = sqrt(8 * share) / _UP
            moved = self.coefficient_l2(candidates, n, bound)
            noise_error = np.sqrt(_REAL(1) * candidates / (2 * rest)) * moved
        else:
            epsilon = share
            moved = self.coefficient_sensitivity(candidates, n, bound)
            noise_error = np.sqrt(2 * _REAL(1) * candidates) * moved / rest
        scores = -(np.sqrt(squares_beyond) + noise_error)
        addition_rounding = float(noise_error[-1] * np.finfo(_REAL).eps)
        sum_rounding = self.rounding_error(n, units=n)  # a sum of n squares is right to n units
        score_sensitivity = (bound.l2 + 2 * sum_rounding + 2 * addition_rounding) * _UP
        chosen, receipt = noise.exponential_mechanism(
            scores[None], sensitivity=score_sensitivity, epsilon=epsilon, rng=rng
        )
        return int(candidates[chosen[0]]), receipt

    def _grid(self, moved: float, k: int, n: int, scale: float) -> float:
        """A power of two so small that nobody feels it, and that 2^52 steps take anywhere."""
        fine = floor(log2(min(moved / (1024 * k), scale / 16)))
        return 2.0 ** max(fine, ceil(log2(self.largest * n)) - 52, ceil(log2(scale)) - 30)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """A user has at most three records."""
        return cls(budget, bound=3)
