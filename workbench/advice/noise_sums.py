"""Sums over the law of noise, of which the errors of what passes a threshold are made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, exp, expm1, pi, sqrt
from typing import Protocol

import numpy as np

from workbench.arrays import Complex, Float
from workbench.estimates.law import GEOMETRIC, Law

_SUMMED = (
    50.0  # σ up to which every value is summed; beyond, integrals differ by less than 10⁻³
)
_REACH = 8  # standard deviations, behind which nothing counts
_SMALL = 1e-4  # tk up to which two terms of a series do
_TAIL = 40  # standard deviations that hold all that a float can


class NoiseSums(Protocol):
    """Of whole numbers X with a symmetric law."""

    @property
    def law(self) -> Law:
        """The law."""

    @property
    def scale(self) -> float:
        """By which its tail falls to nothing, in counts."""

    def tail(
        self, first: Float[np.ndarray, "..."], sign: Float[np.ndarray, "..."]
    ) -> Float[np.ndarray, "3 ..."]:
        """sign·Σ kʲ·Pr[X = k], j = 0, 1, 2, over k = first, first + sign, … outwards, first ≠ 0."""

    def tail_wave(
        self,
        first: Float[np.ndarray, "..."],
        sign: Float[np.ndarray, "..."],
        t: Float[np.ndarray, "..."],
    ) -> Complex[np.ndarray, "..."]:
        """sign·Σ Pr[X = k]·(exp(itk) − 1) over the same k."""

    def wave(self, t: Float[np.ndarray, "..."]) -> Float[np.ndarray, " t"]:
        """E exp(itX) − 1."""

    def log_wave(self, t: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """log E exp(itX)."""


@lru_cache(64)
def noise_sums(law: Law) -> NoiseSums:
    """The sums of a law; kept, as a search for a threshold asks for them again and again."""
    if law.kind == GEOMETRIC:
        return GeometricSums(law)
    return SummedGaussian(law) if law.variance <= _SUMMED**2 else WideGaussian(law)


def expi_minus_1(x: Float[np.ndarray, "..."]) -> Complex[np.ndarray, "..."]:
    """exp(ix) − 1, exact for small x."""
    return -2 * np.sin(x / 2) ** 2 + 1j * np.sin(x)


@dataclass(frozen=True)
class GeometricSums:
    """Of Pr[X = x] ∝ α^|x|, all series: Pr[X = y ± i] = Pr[X = y]·αⁱ.

    With e(x) = exp(ix) − 1: Σ_{i>=0} αⁱ·e(t·(y+i)) = ((1−α)·e(ty) + α·e(t)) / ((1−α)(1−α−α·e(t))).
    """

    law: Law

    @property
    def scale(self) -> float:
        """1 over the decay."""
        return 1 / float(self.law.rate)

    @property
    def _ratio(self) -> tuple[float, float]:
        """α, and 1 − α."""
        rate = float(self.law.rate)
        return exp(-rate), -expm1(-rate)

    def tail(
        self, first: Float[np.ndarray, "..."], sign: Float[np.ndarray, "..."]
    ) -> Float[np.ndarray, "3 ..."]:
        """See `NoiseSums`."""
        a, b = self._ratio
        p = sign * np.exp(-float(self.law.rate) * np.abs(first)) / (1 + a)
        square = first**2 + 2 * sign * first * a / b + a * (1 + a) / b**2
        return np.stack([p, p * (first + sign * a / b), p * square])

    def tail_wave(
        self,
        first: Float[np.ndarray, "..."],
        sign: Float[np.ndarray, "..."],
        t: Float[np.ndarray, "..."],
    ) -> Complex[np.ndarray, "..."]:
        """See `NoiseSums`."""
        a, b = self._ratio
        step = expi_minus_1(t)
        outwards = np.where(sign > 0, step, step.conj())
        each = (b * expi_minus_1(t * first) + a * outwards) / (b - a * outwards)
        return self.tail(first, sign)[0] * each

    def wave(self, t: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """See `NoiseSums`."""
        a, b = self._ratio
        return -4 * a * np.sin(t / 2) ** 2 / np.abs(b - a * expi_minus_1(t)) ** 2

    def log_wave(self, t: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """See `NoiseSums`."""
        return -np.log1p(2 * np.sin(t / 2) ** 2 * self.law.variance)


@dataclass(frozen=True)
class _Gaussian:
    law: Law

    @property
    def scale(self) -> float:
        """σ."""
        return 1 / sqrt(2 * float(self.law.rate))


@dataclass(frozen=True)
class SummedGaussian(_Gaussian):
    """Of a discrete Gaussian, value by value."""

    @cached_property
    def _values(self) -> Float[np.ndarray, " k"]:
        return np.arange(ceil(_TAIL * max(1.0, self.scale)) + 1.0)

    @cached_property
    def _chances(self) -> Float[np.ndarray, " k"]:
        weights = np.exp(-float(self.law.rate) * self._values**2)
        return weights / (2 * weights.sum() - 1)

    @cached_property
    def _power_sums(self) -> Float[np.ndarray, "3 k+1"]:
        return _outer_sums(self._chances * self._values ** np.arange(3)[:, None])

    def tail(
        self, first: Float[np.ndarray, "..."], sign: Float[np.ndarray, "..."]
    ) -> Float[np.ndarray, "3 ..."]:
        """See `NoiseSums`."""
        zero, one, two = self._power_sums[:, self._place(first)]
        return np.stack([sign * zero, one + 0 * sign, sign * two])

    def tail_wave(
        self,
        first: Float[np.ndarray, "..."],
        sign: Float[np.ndarray, "..."],
        t: Float[np.ndarray, "..."],
    ) -> Complex[np.ndarray, "..."]:
        """See `NoiseSums`."""
        waves = _outer_sums(self._chances * expi_minus_1(t[:, None] * self._values))
        sums = waves.T[self._place(first)[..., 0]]
        return sign * np.where(sign > 0, sums, sums.conj())

    def wave(self, t: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """See `NoiseSums`. By Poisson's formula, a sum of normal ones around each multiple of 2π."""
        if self.scale < 1:  # few values, and many multiples
            cosines = -2 * np.sin(np.asarray(t)[..., None] * self._values / 2) ** 2
            return 2 * (cosines @ self._chances)
        half = self.scale**2 / 2
        around = 2 * pi * np.arange(1, ceil(6 / self.scale) + 1)
        t = np.remainder(t + pi, 2 * pi) - pi
        total = np.expm1(-half * t**2)
        for turn in around:
            both = np.exp(-half * (t - turn) ** 2) + np.exp(-half * (t + turn) ** 2)
            total = total + both - 2 * exp(-half * turn**2)
        return total / (1 + 2 * np.exp(-half * around**2).sum())

    def log_wave(self, t: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """See `NoiseSums`."""
        return np.log1p(np.maximum(self.wave(t), 1e-15 - 1))

    def _place(self, first: Float[np.ndarray, "..."]) -> np.ndarray:
        return np.minimum(np.abs(first), len(self._values)).astype(int)


@dataclass(frozen=True)
class WideGaussian(_Gaussian):
    """Of a discrete Gaussian of many counts, by integrals from half a count before the first."""

    def tail(
        self, first: Float[np.ndarray, "..."], sign: Float[np.ndarray, "..."]
    ) -> Float[np.ndarray, "3 ..."]:
        """See `NoiseSums`."""
        from scipy.special import erfc

        z = (np.abs(first) - 0.5) / self.scale
        chance = erfc(z / sqrt(2)) / 2
        density = np.exp(-(z**2) / 2) / sqrt(2 * pi)
        square = chance + z * density
        return np.stack(
            [sign * chance, self.scale * density + 0 * sign, sign * self.law.variance * square]
        )

    def tail_wave(
        self,
        first: Float[np.ndarray, "..."],
        sign: Float[np.ndarray, "..."],
        t: Float[np.ndarray, "..."],
    ) -> Complex[np.ndarray, "..."]:
        """See `NoiseSums`. By the Faddeeva function; where tk is small, by itk − (tk)²/2.

        Neither overflows, and no 1 is taken from what is near 1.
        """
        from scipy.special import erfcx, wofz

        z = (np.abs(first) - 0.5) / self.scale
        s = self.scale * t
        each = np.exp(1j * z * s) * wofz((1j * z + s) / sqrt(2)) / erfcx(z / sqrt(2)) - 1
        zero, one, two = self.tail(first, sign)
        far = zero * np.where(sign > 0, each, each.conj())
        return np.where((z + _REACH) * s < _SMALL, 1j * t * one - t**2 / 2 * two, far)

    def wave(self, t: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """See `NoiseSums`."""
        return np.expm1(self.log_wave(t))

    def log_wave(self, t: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """See `NoiseSums`."""
        return -self.law.variance * t**2 / 2


def _outer_sums(terms: np.ndarray) -> np.ndarray:
    """Sums over the last axis from each place on; 0 behind the last."""
    sums = np.cumsum(terms[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate([sums, np.zeros((*terms.shape[:-1], 1))], axis=-1)
