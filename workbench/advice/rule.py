"""What becomes of a node that holds a count: noise, then a cut, then a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from workbench.advice.model import NodeCounts
from workbench.advice.noise_sums import NoiseSums, expi_minus_1, noise_sums
from workbench.arrays import Complex, Float
from workbench.estimates.law import Law


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
