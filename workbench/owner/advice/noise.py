"""Models of declared tables, and the sums over noise that expected errors are made of.

Geometric noise on n numbers that a unit moves by 1 has a standard deviation of about √2·n/ε, Gaussian noise
one of √(n/2ρ), where ρ is the largest that (ε, δ) pays for: it wins where n is above ε²/4ρ, which at
δ = 10⁻⁹ is 14 at ε = 0.1, 17 at 1 and 19 at 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, exp, expm1, pi, sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np

from workbench import noise
from workbench.noise.law import GAUSSIAN, GEOMETRIC, Law
from workbench.privacy import DP, ZCDP
from workbench.value import Complex, Float, Int, Num, format_number, parameter, stated, value

# Model

_NORMAL = 25  # non-empty cells from which their sum is taken for normal
_GROUPS = 24  # counts that stand for many


class Weighted(NamedTuple):
    """Counts and how likely they are."""

    counts: Float[np.ndarray, " k"]
    weights: Float[np.ndarray, " k"]


@value
class CountModel:
    """A model: cells are non-empty at random places, and hold normal counts."""

    density: float = parameter(low=0, high=1, doc="fraction of cells that are not empty")
    mean: float = parameter(low=0, high=2**40, unit="counts", doc="of non-empty cells")
    spread: float = parameter(low=0, high=2**40, unit="counts", doc="their standard deviation")

    def counts(self) -> Weighted:
        """What a non-empty cell holds: whole numbers, some eighty at most."""
        from scipy.special import ndtr

        low = max(1, round(self.mean - 5 * self.spread))
        high = max(1, round(self.mean + 5 * self.spread))
        step = -(-(high - low) // 80) or 1
        counts = np.arange(low, high + step, step, dtype=float)
        edges = (counts[1:] - step / 2 - self.mean) / max(self.spread, 1e-9)
        return Weighted(counts, np.diff(ndtr(edges), prepend=0, append=1))

    def sums(self, cells: int) -> Weighted:
        """What `cells` cells hold together, 0 too: j counts, j binomial; normal beyond 25."""
        from scipy.special import xlog1py, xlogy

        counts, weights = self.counts()
        density = self.density
        mean = counts @ weights
        variance = (counts - mean) ** 2 @ weights
        non_empty = cells * density
        if non_empty > _NORMAL:
            at = np.linspace(-4.5, 4.5, 25)
            spread = sqrt(non_empty * (variance + mean**2 * (1 - density)))
            normal = np.exp(-(at**2) / 2)
            sums = np.maximum(np.rint(non_empty * mean + spread * at), 0)
            return Weighted(sums, normal / normal.sum())
        j = np.arange(1.0 + min(cells, int(non_empty + 6 * sqrt(non_empty) + 8)))
        log_binomial = np.cumsum(np.log([1, *((cells - j[:-1]) / j[1:])]))
        chance = np.exp(log_binomial + xlogy(j, density) + xlog1py(cells - j, -density))
        at, normal = np.polynomial.hermite_e.hermegauss(5)
        several = np.maximum(j * mean + np.sqrt(j * variance) * at[:, None], j)
        several = np.rint(several)[:, 2:]
        several_weights = (normal / normal.sum())[:, None] * chance[2:]
        all_counts = np.concatenate([counts, several.ravel()])
        all_weights = np.concatenate([chance[1] * weights, several_weights.ravel()])
        sums = Weighted(all_counts, all_weights)
        if cells > 1:
            sums = _grouped(sums)
        return Weighted(np.append(sums.counts, 0), np.append(sums.weights, chance[0]))


def _grouped(law: Weighted) -> Weighted:
    """Some twenty-five counts of about the same law."""
    order = np.argsort(law.counts)
    counts = law.counts[order]
    weights = law.weights[order]
    group = (_GROUPS * np.cumsum(weights) / (weights.sum() or 1)).astype(int)
    totals = np.bincount(group, weights)
    sums = np.bincount(group, weights * counts)
    likely = totals > 1e-9 * weights.sum()
    return Weighted(np.rint(sums[likely] / totals[likely]), totals[likely])


class NodeCounts(NamedTuple):
    """Levels of nodes: their sizes, and what the nodes of each `level` hold with which probability."""

    sizes: Float[np.ndarray, " levels"]
    level: Int[np.ndarray, " k"]
    counts: Float[np.ndarray, " k"]
    weights: Float[np.ndarray, " k"]

    @classmethod
    def of(cls, model: CountModel | None, levels: Sequence[tuple[int, int]]) -> NodeCounts:
        """Of levels, each (number of nodes, cells that one sums); without a model all are empty."""
        sizes, cells = zip(*levels, strict=True)
        empty = Weighted(np.zeros(1), np.ones(1))
        laws = [empty if model is None else model.sums(n) for n in cells]
        level = np.repeat(np.arange(len(levels)), [len(law.counts) for law in laws])
        counts = np.concatenate([law.counts for law in laws])
        weights = np.concatenate([law.weights for law in laws])
        return cls(np.array(sizes, float), level, counts, weights)

    def only(self, levels: Int[np.ndarray, " some"]) -> NodeCounts:
        """Those of some levels."""
        kept = np.isin(self.level, levels)
        return NodeCounts(
            self.sizes[levels], self.level[kept], self.counts[kept], self.weights[kept]
        )

    def mean(self, values: Num[np.ndarray, "k ..."]) -> Num[np.ndarray, "levels ..."]:
        """The mean over each level's nodes."""
        weights = self.weights.reshape(-1, *[1] * (values.ndim - 1))
        starts = np.flatnonzero(np.diff(self.level, prepend=-1))
        return np.add.reduceat(weights * values, starts, axis=0)


# Noise sums

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


# Rule


class Moments(NamedTuple):
    """Of nodes' errors: the chance of being released, bias, variance of noise and of sampling."""

    chance: Float[np.ndarray, " k"]
    bias: Float[np.ndarray, " k"]
    noise: Float[np.ndarray, " k"]
    sampling: Float[np.ndarray, " k"]


class _Side(NamedTuple):
    """With v = c + k, of one sign of v: Σ 1, k, k² over v >= low; Σ 1, v, v² over low <= v < top; and
    Pr[v < low].
    """

    passing: Float[np.ndarray, "3 ..."]
    sampled: tuple[Any, ...]
    below: Float[np.ndarray, " ..."]


@dataclass(frozen=True)
class ReleaseRule:
    """What becomes of a node: noise of a law, the cut θ, the threshold τ.

    Where `silent`, as in a stability histogram, empty nodes get no noise and are never released. What
    is large is never subtracted: sums over what lies below a count are series of their own.
    """

    law: Law
    theta: float = 0.0
    tau: float = 0.0
    sides: int = 2
    silent: bool = False

    @cached_property
    def sums(self) -> NoiseSums:
        """Over the law."""
        return noise_sums(self.law)

    @property
    def variance(self) -> float:
        """Of the noise."""
        return self.law.variance

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest whole |v| that can be released, and the smallest that always is."""
        low = max(ceil(self.theta), 1)
        return float(low), float(max(low, ceil(self.tau)))

    @property
    def _signs(self) -> tuple[int, ...]:
        return (1, -1)[: self.sides]

    def _tail(self, x: float, c: Float[np.ndarray, "..."]) -> Float[np.ndarray, "3 ..."]:
        """Σ k^j·Pr[X = k], j = 0, 1, 2, over c + k >= x; minus that over c + k < x where x <= c."""
        return self.sums.tail(*_outwards(x, c))

    def _side(self, c: Float[np.ndarray, "..."]) -> _Side:
        low, top = self.ends
        whole = np.stack([np.ones_like(c), np.zeros_like(c), np.full_like(c, self.variance)])
        tail = self._tail(low, c)
        zero, one, two = tail - self._tail(top, c) + whole * ((low <= c) & (c < top))
        sampled = (zero, one + c * zero, two + 2 * c * one + c**2 * zero)
        return _Side(tail + whole * (low <= c), sampled, (c < low) - tail[0])

    def moments(self, c: Float[np.ndarray, " k"]) -> Moments:
        """Of nodes that hold c >= 0."""
        sides = [self._side(sign * c) for sign in self._signs]
        lost = sides[0].below - sum(side.passing[0] for side in sides[1:])
        first = sum(sign * s.passing[1] for sign, s in zip(self._signs, sides, strict=True))
        bias = first - c * lost
        square = sum(side.passing[2] for side in sides) + c**2 * lost
        tau = max(self.tau, 1)
        chance = sum(s.passing[0] - s.sampled[0] + s.sampled[1] / tau for s in sides)
        sampling = sum(self.tau * s.sampled[1] - s.sampled[2] for s in sides)
        noise = np.maximum(square - bias**2, 0)
        noisy = ~(self.silent & (c == 0))
        return Moments(
            noisy * chance, noisy * bias, noisy * noise, noisy * np.maximum(sampling, 0)
        )

    def log_characteristic(
        self, t: Float[np.ndarray, " t"], nodes: NodeCounts
    ) -> Complex[np.ndarray, "levels t"]:
        """log φ(t) of the error of a node of each level.

        What passes below −θ is what passes above θ, mirrored.
        """
        c = nodes.counts[:, None]
        top = self.ends[1]
        noise = self.sums.wave(t)  # all of it
        total = 0
        dropped = 0
        for sign in self._signs:
            above = top > sign * c
            tail = self.sums.tail_wave(*_outwards(top, sign * c), t)
            side = self._side(sign * c)
            chance = side.sampled[1] / max(self.tau, 1)
            released = tail + noise * ~above + chance * expi_minus_1(t * (self.tau - sign * c))
            total = total + (released if sign == 1 else released.conj())
            below = side.below if sign == 1 else -side.passing[0]
            dropped = dropped + side.sampled[0] - chance + below
        noisy = ~(self.silent & (c == 0))
        z = nodes.mean((total + dropped * expi_minus_1(-t * c)) * noisy)
        size = np.log1p(np.maximum(2 * z.real + np.abs(z) ** 2, 1e-15 - 1)) / 2
        return size + 1j * np.arctan2(z.imag, 1 + z.real)


def _outwards(
    x: float, c: Float[np.ndarray, "..."]
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """The first k with c + k >= x, or where x <= c the last below; and where the others lie."""
    sign = np.where(x > c, 1.0, -1.0)
    return x - c - (sign < 0), sign


# Noise kinds


@dataclass(frozen=True)
class NoiseComparison:
    """Both kinds of noise on the same numbers, at one (ε, δ).

    Parameters
    ----------
    budget : the (ε, δ).
    rho : what it pays for.
    l1 : how far one unit moves the numbers together.
    touched : how many of them it touches, if it moves each alike; l1²/l2² in any case.
    geometric, gaussian : the standard deviation of the noise on each, in counts.
    share : of the budget, what pays for them.
    """

    budget: DP
    rho: float
    l1: float
    touched: float
    geometric: float
    gaussian: float
    share: float = 1.0

    @property
    def takes_gaussian(self) -> bool:
        """Whether Gaussian noise is the smaller."""
        return self.gaussian < self.geometric

    def __str__(self) -> str:
        epsilon = stated(self.budget.epsilon)
        delta = stated(self.budget.delta)
        both = (
            f"At ε = {epsilon}, δ = {delta} geometric noise on each number has a standard deviation of "
            f"{format_number(self.geometric)} and Gaussian noise, at the ρ = {format_number(self.rho)} "
            f"within them, one of {format_number(self.gaussian)}"
        )
        least = self.share * self.budget.epsilon * (self.budget.epsilon / (4 * self.rho))
        numbers = f"a unit touches {_numbers(self.touched)}"
        if self.takes_gaussian:
            enough = f"since {numbers}, and it is from {least:.0f} or so on"
            return f"{both}: Gaussian noise is better, {enough}."
        if self.touched == 1 and self.l1 > 1:
            numbers = (
                f"a unit may move one number by all of its {format_number(self.l1)}: l2 = l1, and nothing "
                "is gained without a smaller bound on each cell"
            )
            return f"{both}: pure noise is better, since {numbers}."
        return (
            f"{both}: pure noise is better and spends no δ, since {numbers}, and Gaussian noise needs "
            f"{least:.0f} or so."
        )

    def applied(self, mechanism: Any) -> Any:
        """The mechanism with the smaller noise: at this ρ, if that is Gaussian and it takes one."""
        from workbench.mechanisms import (
            GaussianHistogram,
            GaussianQueries,
            GeometricHistogram,
            LaplaceQueries,
        )

        if not self.takes_gaussian or getattr(mechanism, "spends_delta", False):
            return mechanism
        if isinstance(mechanism, GeometricHistogram):
            return GaussianHistogram(ZCDP(self.rho), mechanism.memory, mechanism.transform)
        if isinstance(mechanism, LaplaceQueries):
            return GaussianQueries(ZCDP(self.rho), mechanism.workload)
        if not getattr(mechanism, "accepts_zcdp", False):
            return mechanism
        return replace(mechanism, budget=ZCDP(self.rho))


def compare_noise(
    budget: DP, l1: Fraction | float, l2_squared: Fraction, share: float = 1.0
) -> NoiseComparison:
    """Geometric noise at ε, and Gaussian noise at the ρ within (ε, δ), on the same numbers.

    Parameters
    ----------
    budget : DP
        With 0 < δ < 1.
    l1, l2_squared : number
        How far one unit moves the numbers together, in either norm.
    share : float
        Of the budget, what pays for them.

    Returns
    -------
    NoiseComparison

    Raises
    ------
    ValueError
        If no ρ is within the budget.

    Examples
    --------
    >>> compare_noise(DP(1.0, 1e-9), 16, 16).takes_gaussian
    False
    >>> compare_noise(DP(1.0, 1e-9), 25, 25).takes_gaussian
    True
    """
    rho = ZCDP.within(budget).rho
    part = Fraction(share)
    geometric = sqrt(noise.variance(Fraction(l1) / part, budget.epsilon, "geometric"))
    gaussian = sqrt(Law(GAUSSIAN, Fraction(rho) * part / Fraction(l2_squared)).variance)
    touched = float(Fraction(l1) ** 2 / Fraction(l2_squared))
    return NoiseComparison(budget, rho, float(l1), touched, geometric, gaussian, share)


def _numbers(touched: float) -> str:
    if touched == 1:
        return "1 number"
    return (
        f"{format_number(touched)} numbers"
        if touched == int(touched)
        else f"about {touched:.1f} numbers"
    )
