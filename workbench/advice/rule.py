"""What becomes of a node that holds a count: noise, then a cut, then a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, expm1
from typing import NamedTuple

import numpy as np

from workbench.advice.model import NodeCounts
from workbench.arrays import Complex, Float
from workbench.estimates.law import geometric_variance


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
    sampled: tuple
    below: Float[np.ndarray, " ..."]


@dataclass(frozen=True)
class ReleaseRule:
    """What becomes of a node: noise ∝ exp(−decay·|x|), the cut θ, the threshold τ.

    Where `silent`, as in a stability histogram, empty nodes get no noise and are never released. What
    is large is never subtracted: sums over what lies below a count are series of their own.
    """

    decay: float
    theta: float = 0.0
    tau: float = 0.0
    sides: int = 2
    silent: bool = False

    @property
    def variance(self) -> float:
        """Of the noise, 2α/(1−α)²."""
        return geometric_variance(self.decay)

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest whole |v| that can be released, and the smallest that always is."""
        low = max(ceil(self.theta), 1)
        return float(low), float(max(low, ceil(self.tau)))

    @property
    def _signs(self) -> tuple[int, ...]:
        return (1, -1)[: self.sides]

    def _tail(self, x: float, c) -> Float[np.ndarray, "3 ..."]:
        """Σ k^j·Pr[X = k], j = 0, 1, 2, over c + k >= x; minus that over c + k < x where x <= c.

        A series that starts at k = y and goes outwards, Pr[X = y ± i] = Pr[X = y]·α^i.
        """
        a = exp(-self.decay)
        b = -expm1(-self.decay)
        sign = np.where(x > c, 1.0, -1.0)
        y = x - c - (sign < 0)
        p = sign * np.exp(-self.decay * np.abs(y)) / (1 + a)
        square = y**2 + 2 * sign * y * a / b + a * (1 + a) / b**2
        return np.stack([p, p * (y + sign * a / b), p * square])

    def _side(self, c) -> _Side:
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

        With e(x) = exp(ix) − 1: Σ_{i>=0} α^i·e(t·(y+i)) = ((1−α)·e(ty) + α·e(t)) / ((1−α)(1−α−α·e(t))).
        What passes below −θ is what passes above θ, mirrored.
        """
        c = nodes.counts[:, None]
        top = self.ends[1]
        a = exp(-self.decay)
        b = -expm1(-self.decay)
        step = _expi_minus_1(t)
        noise = -4 * a * np.sin(t / 2) ** 2 / np.abs(b - a * step) ** 2  # all of it
        total = 0
        dropped = 0
        for sign in self._signs:
            above = top > sign * c
            first = _expi_minus_1(t * (np.where(above, top, top - 1) - sign * c))
            outwards = np.where(above, step, step.conj())
            tail = self._tail(top, sign * c)[0]
            tail = tail * (b * first + a * outwards) / (b - a * outwards)
            side = self._side(sign * c)
            chance = side.sampled[1] / max(self.tau, 1)
            released = tail + noise * ~above + chance * _expi_minus_1(t * (self.tau - sign * c))
            total = total + (released if sign == 1 else released.conj())
            below = side.below if sign == 1 else -side.passing[0]
            dropped = dropped + side.sampled[0] - chance + below
        noisy = ~(self.silent & (c == 0))
        z = nodes.mean((total + dropped * _expi_minus_1(-t * c)) * noisy)
        size = np.log1p(np.maximum(2 * z.real + np.abs(z) ** 2, 1e-15 - 1)) / 2
        return size + 1j * np.arctan2(z.imag, 1 + z.real)


def _expi_minus_1(x):
    """exp(ix) − 1, exact for small x."""
    return -2 * np.sin(x / 2) ** 2 + 1j * np.sin(x)
