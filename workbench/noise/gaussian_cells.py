"""Which empty cells enter a summary under Gaussian noise, and with what values.

A cell becomes a *candidate* with the mass of a hat over the law of what is kept, which is known to any
precision, takes a value from the hat, and stays with the exact ratio of the two. Cells are independent,
so that thinning leaves each a survivor with exactly its chance, and its value with exactly its law; no
sum over more than some ten thousand terms is needed, however wide the noise is. Where a hat holds half
of all cells or more, all of them are drawn instead.

Priority sampling draws cells again that were not kept at a larger threshold, hence with the chance
c/(1 − p) of a cell: p is the chance to have been kept then, of which only the hat's, q >= p, is known. A
coin of (1 − q)/(1 − p) makes up for it: given that a cell was not kept, that it was no candidate either.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, cached_property, lru_cache
from math import ceil
from typing import Any

import numpy as np

from workbench.arrays import Bool, Int
from workbench.estimates.law import GAUSSIAN, Law
from workbench.noise import kernels
from workbench.noise.bits import Words
from workbench.noise.discrete_gaussian import HalfGaussian, discrete_gaussian, half_gaussian
from workbench.noise.empty_cells import survivor_ranks
from workbench.noise.exact import Interval, accept, exp_neg
from workbench.noise.gaussian_sums import normaliser


class GaussianCell:
    """One empty cell with noise v: as `empty_cells.EmptyCell`, of a Gaussian rate."""

    def __init__(
        self,
        rate: Fraction,
        theta: float,
        sides: int,
        tau: float = 0.0,
        above: float | None = None,
    ):
        self.rate = rate
        self.sides = sides
        self.sampled = tau > 0
        lowest = 0 if sides == 1 and not self.sampled else 1
        self.theta = max(ceil(theta), lowest)
        self.tau = Fraction(tau)
        self.above = None if above is None else Fraction(above)
        self.candidacy = cache(self._candidacy)

    @property
    def chance(self) -> float:
        """The chance to survive, in floating point, whatever `above` is."""
        values, chances = Law(GAUSSIAN, self.rate).upper_tail(self.theta)
        weights = np.minimum(values / float(self.tau), 1) if self.sampled else 1
        return float(self.sides * (weights * chances).sum())

    def survivors(
        self, empty: int, words: Words
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Which of so many cells survive, as sorted ranks, and their values."""
        if self.is_dense:
            return self._dense_survivors(empty, words)
        ranks = survivor_ranks(empty, self.candidacy, words)
        values, stays = self._candidates(len(ranks), words)
        if self.above is not None:
            stays &= self._no_candidates_before(len(ranks), words)
        values = values[stays]
        if self.sides == 2:
            kernels.flip(values, words(-(-values.size // 64)))
        return ranks[stays], values

    # the hat

    @property
    def _weight_at_most(self) -> tuple[Fraction, Fraction]:
        """min(v/τ, 1) − min(v/above, 1) is at most the first times v, and at most the second."""
        if not self.sampled:
            return Fraction(1), Fraction(1)
        if self.above is None:
            return 1 / self.tau, Fraction(1)
        return 1 / self.tau - 1 / self.above, 1 - self.tau / self.above

    @cached_property
    def _rises(self) -> bool:
        """Whether the hat that grows with v is the smaller one."""
        if not self.sampled:
            return False
        slope, peak = self._weight_at_most
        rising = float(half_gaussian(self.rate, self.theta, True).mass(64)) * float(slope)
        return rising < float(half_gaussian(self.rate, self.theta).mass(64)) * float(peak)

    @cached_property
    def hat(self) -> HalfGaussian:
        """Where candidates' values come from."""
        return half_gaussian(self.rate, self.theta, self._rises)

    @cached_property
    def _factor(self) -> Fraction:
        slope, peak = self._weight_at_most
        return slope if self._rises else peak

    def _hat_mass(self, bits: int) -> Interval:
        """The chance of the hat; 1 and more where its blocks are too coarse for that."""
        work = bits + 192
        mass = self.hat.mass(work) * exp_neg(self.rate * self.theta**2, work)
        mass = mass / normaliser(self.rate, work)
        factor = self.sides * self._factor / 2**192
        low = mass.lo * factor
        high = mass.hi * factor
        return Interval(low.__floor__(), high.__ceil__(), bits)

    def _candidacy(self, bits: int) -> Interval:
        mass = self._hat_mass(bits)
        if self.above is None:
            return mass
        return mass / (Interval.of(1, bits) - self._before.candidacy(bits))

    @property
    def _before(self) -> GaussianCell:
        """The cell at the larger threshold."""
        assert self.above is not None
        return gaussian_cell(self.rate, self.theta, self.sides, float(self.above))

    @cached_property
    def is_dense(self) -> bool:
        """Whether it is as cheap to draw every cell."""
        half = 1 << 63
        if self.above is not None and self._before.candidacy(64).hi >= half:
            return True
        return self.candidacy(64).hi >= half

    # values

    def _candidates(
        self, n: int, words: Words
    ) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
        """Sizes of values from the hat, and which of them stay."""
        v, stays = self.hat.propose(n, words)
        if not self.sampled:
            return v, stays
        factor = self._factor
        last = np.ones(n, np.int64)
        if self._rises:
            width = self.hat.width
            last = self.theta + (v - self.theta) // width * width + (width - 1)

        def exact(i: int, bits: int) -> Interval:
            return Interval.of(self._weight(int(v[i])) / (factor * int(last[i])), bits)

        chance = self._float_weight(v) / (float(factor) * last)
        stays &= accept(chance, exact, words)
        return v, stays

    def _weight(self, v: int) -> Fraction:
        """The chance that a value v is kept at τ, and was not at `above`."""
        weight = min(v / self.tau, Fraction(1))
        return weight if self.above is None else weight - min(v / self.above, Fraction(1))

    def _float_weight(self, v: Any) -> Any:
        """The same in floating point, in a form that does not cancel."""
        tau = float(self.tau)
        if self.above is None:
            return np.minimum(v / tau, 1)
        slope, _ = self._weight_at_most
        late = np.maximum(float(self.above) - v, 0) / float(self.above)
        return np.where(v <= tau, v * float(slope), late)

    def _no_candidates_before(self, n: int, words: Words) -> Bool[np.ndarray, " n"]:
        """Coins: a cell at the larger threshold, drawn until it is not kept, was no candidate."""
        before = self._before
        heads = np.zeros(n, bool)
        todo = np.arange(n)
        while todo.size:
            chance = np.full(todo.size, float(before.candidacy(192)))
            candidate = accept(chance, lambda _, bits: before.candidacy(bits), words)
            heads[todo[~candidate]] = True
            todo = todo[candidate]
            _, kept = before._candidates(todo.size, words)
            todo = todo[kept]
        return heads

    def _dense_survivors(
        self, empty: int, words: Words
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Noise on every cell, drawn again where it was kept at the larger threshold."""
        v = np.zeros(empty, np.int64)
        todo = np.arange(empty)
        while todo.size:
            again = np.zeros(todo.size, np.int64)
            discrete_gaussian(self.rate).add(again, words)
            v[todo] = again
            if self.above is None:
                break
            passing = todo[self._passes(v[todo])]
            todo = passing[self._coins(v[passing], Fraction(0), self.above, words)]
        ranks = np.flatnonzero(self._passes(v))
        if self.sampled:
            ranks = ranks[self._coins(v[ranks], self.above, self.tau, words)]
        return ranks, v[ranks]

    def _passes(self, v: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        return (v if self.sides == 1 else np.abs(v)) >= self.theta

    def _coins(
        self, v: Int[np.ndarray, " n"], above: Fraction | None, tau: Fraction, words: Words
    ) -> Bool[np.ndarray, " n"]:
        """Which values are kept at τ, of those that were not at `above`."""
        size = np.abs(v)

        def chance_of(x: Fraction) -> Fraction:
            kept = min(x / tau, Fraction(1))
            before = min(x / above, Fraction(1)) if above else Fraction(0)
            return (kept - before) / (1 - before) if before < 1 else Fraction(1)

        def exact(i: int, bits: int) -> Interval:
            return Interval.of(Fraction(chance_of(Fraction(int(size[i])))), bits)

        chance = np.minimum(size / float(tau), 1)
        if above:
            before = np.minimum(size / float(above), 1)
            late = np.maximum(float(above) - size, 1e-300) / float(above)
            slope = float(1 / tau - 1 / above)
            chance = np.where(size < float(tau), size * slope, late) / late
            chance = np.where(before < 1, chance, 1.0)
        return accept(chance, exact, words)


def upper_tail(rate: Fraction, x: int, bits: int) -> Interval:
    """Pr[X >= x]; of noise wider than one table a number above it, by 0.3 % at most where x > 0."""
    half = half_gaussian(rate, max(x, 1 - x))
    tail = half.mass(bits + 64) * exp_neg(rate * half.start**2, bits + 64)
    tail = tail / normaliser(rate, bits + 64)
    low = tail.lo >> 64
    high = -(-tail.hi >> 64)
    if not half.shift:
        above = Interval(low, high, bits)
        return above if x > 0 else Interval.of(1, bits) - above
    highest = min(high, 1 << bits) if x > 0 else 1 << bits
    return Interval(highest, highest, bits)


@lru_cache(256)
def gaussian_cell(
    rate: Fraction, theta: float, sides: int, tau: float = 0.0, above: float | None = None
) -> GaussianCell:
    """The law of one empty cell, made once."""
    return GaussianCell(rate, theta, sides, tau, above)
