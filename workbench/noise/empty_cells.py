"""Sampler for those empty cells of a noisy table that are released. The sampler does not visit the other
empty cells, which may be very many.

An empty cell *survives* if its noise passes a filter and the cell is then kept by a random sampling.

Geometric noise. The noisy values of all empty cells are independent and have the same distribution. So each
cell survives independently with the same probability p. The number of cells between two survivors has a
geometric distribution with parameter p. The value of a survivor has the distribution of the noise under the
condition that it survives. The time grows only with the number of survivors. There may be up to 2^63 − 1
empty cells.

Source  Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, Remark 1 and appendix C.
Differs We draw the gaps between survivors. The paper draws their number from a binomial distribution, and then
        positions that may be rejected. Our survival probability holds for real numbers θ and τ, and that of
        the paper for integers. All of our draws are exact.

Gaussian noise. The sampler uses rejection. A hat function is at least as large as the probability of each
surviving value, and the sum of the hat can be computed to any precision. Each cell becomes a *candidate* with
this sum as its probability. A candidate draws a value in proportion to the hat, and survives with the ratio
of the true probability of the value to the hat. So the survivors and their values have exactly the right
distribution. No sum needs more than about ten thousand terms, even for very wide noise. If half of all cells
or more would become candidates, the sampler draws the noise of every cell instead.

Lower thresholds. Priority sampling may lower its threshold, and then draws again those cells that did not
survive at the larger threshold. Let c be the sum of the new hat, and p the probability of surviving at the
larger threshold. A cell that did not survive there should be a candidate with probability c/(1 − p). But p is
not known exactly. Only the sum q >= p of the hat at the larger threshold is known. So each cell becomes a
candidate with probability c/(1 − q), and then a coin with probability (1 − q)/(1 − p) decides whether it
stays one. The ratio (1 − q)/(1 − p) is the probability that a cell was not a candidate at the larger
threshold, under the condition that it did not survive there.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, cached_property, lru_cache
from math import ceil, floor, sqrt
from typing import Any

import numpy as np

from workbench.noise import kernels
from workbench.noise.discrete_gaussian import (
    HalfGaussian,
    discrete_gaussian,
    half_gaussian,
    normaliser,
)
from workbench.noise.law import GAUSSIAN, Law
from workbench.noise.laws import Geometric, Inversion, accept, is_below
from workbench.privacy.enclosures import Interval, Real, exp_neg
from workbench.randomness import Words, uniform_below
from workbench.value import Bool, Float, Int

# Empty cells

_CHUNK = 2**16
_TAIL = (
    14  # scales of noise beyond which `WeightedGeometric` is about as rare as one table entry
)


class _Cell:
    """Base class of the distributions of one empty cell. It contains the filter and the sampling, which are
    the same for all kinds of noise.
    """

    def __init__(self, theta: float, sides: int, tau: float, above: float | None):
        self.sides = sides
        self.sampled = tau > 0
        lowest = 0 if sides == 1 and not self.sampled else 1
        self.theta = max(ceil(theta), lowest)
        self.tau = Fraction(tau)
        self.above = None if above is None else Fraction(above)

    @property
    def _weight_at_most(self) -> tuple[Fraction, Fraction]:
        """Two numbers a and b. The probability that a value v is kept at threshold τ, but not at the larger
        threshold `above`, is at most a·v and at most b.
        """
        if not self.sampled:
            return Fraction(1), Fraction(1)
        if self.above is None:
            return 1 / self.tau, Fraction(1)
        return 1 / self.tau - 1 / self.above, 1 - self.tau / self.above

    def _weight(self, v: int) -> Fraction:
        """Return the probability that a value v is kept at threshold τ, but not at the larger threshold
        `above`.
        """
        weight = min(v / self.tau, Fraction(1))
        return weight if self.above is None else weight - min(v / self.above, Fraction(1))

    def _float_weight(self, v: Any) -> Any:
        """Return the result of `_weight` as a float. The formula does not lose digits by subtraction."""
        tau = float(self.tau)
        if self.above is None:
            return np.minimum(v / tau, 1)
        slope, _ = self._weight_at_most
        late = np.maximum(float(self.above) - v, 0) / float(self.above)
        return np.where(v <= tau, v * float(slope), late)


class EmptyCell(_Cell):
    """Distribution of the noisy value v of one empty cell with geometric noise, after filtering and sampling.

    The value passes the filter if |v| >= theta (for `sides` = 2) or v >= theta (for `sides` = 1). A cell that
    passes is then sampled with probability min(|v|/tau, 1). If `above` is given, the distribution holds under
    the condition that the cell was not sampled at the larger threshold `above`. Priority sampling needs this
    distribution when it tries a lower threshold.
    """

    def __init__(
        self,
        alpha: Real,
        theta: float,
        sides: int,
        tau: float = 0.0,
        above: float | None = None,
    ):
        super().__init__(theta, sides, tau, above)
        self.alpha = alpha
        self.survival = cache(self._survival)

    def _entering(self, tau: Fraction, bits: int) -> Interval:
        """Return the probability that the cell passes the filter and is sampled at threshold τ. This is the
        sum of Pr[v]·min(|v|/τ, 1) over all values v that pass the filter.

        With T = ⌊τ⌋ and θ <= T, the part of the sum up to T uses the formula Σ_{v=θ}^{T} v·α^v = (θα^θ −
        (θ−1)α^{θ+1} − (T+1)α^{T+1} + Tα^{T+2}) / (1−α)².
        """
        a = self.alpha(bits)
        t = self.theta
        top = int(tau)

        def whole(x: Fraction | int) -> Interval:
            return Interval.of(x, bits)

        one = whole(1)
        total = a ** max(top + 1, t) if tau > 0 else a**t
        if tau > 0 and t <= top:
            plus = whole(t) * a**t + whole(top) * a ** (top + 2)
            minus = whole(max(t - 1, 0)) * a ** (t + 1)
            minus = minus + whole(top + 1) * a ** (top + 1)
            total = total + (plus - minus) / ((one - a) * whole(tau))
        return whole(self.sides) * total / (one + a)

    def _survival(self, bits: int) -> Interval:
        """Return an interval that contains the probability that an empty cell survives."""
        work = bits + 128  # 1 − α may cancel as many bits
        p = self._entering(self.tau, work)
        if self.above is not None:
            earlier = self._entering(self.above, work)
            p = (p - earlier) / (Interval.of(1, work) - earlier)
        return Interval(p.lo >> 128, min(1 << bits, -(-p.hi >> 128)), bits)

    @property
    def chance(self) -> float:
        """Probability that a cell survives, as a float."""
        return float(self.survival(192))

    def survivors(
        self, empty: int, words: Words
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Draw which empty cells survive, out of `empty` cells. Return the ranks of the survivors (their
        numbers among the empty cells) in ascending order, and their noisy values.
        """
        ranks = survivor_ranks(empty, self.survival, words)
        return ranks, self.values(len(ranks), words)

    def values(self, n: int, words: Words) -> Int[np.ndarray, " n"]:
        """Draw the noisy values of n cells that survive.

        Without sampling, |v| − θ has a geometric distribution. With sampling, the method uses rejection: it
        proposes values v with a probability proportional to α^v if τ is small, and to v·α^v if τ is large. It
        accepts at least about half of the proposals.
        """
        if self.sampled:
            v = self._sampled_values(n, words)
        else:
            v = _geometric(self.alpha).sample(n, words).view(np.int64)
            v += self.theta
        if self.sides == 2:
            kernels.flip(v, words(-(-n // 64)))
        return v

    def _sampled_values(self, n: int, words: Words) -> Int[np.ndarray, " n"]:
        t = self.theta
        slope, peak = self._weight_at_most
        wide = self.tau > t + 1 / (1 - float(self.alpha(64)))
        law = _weighted_geometric(self.alpha, t) if wide else _geometric(self.alpha)
        values = np.empty(n, np.int64)
        filled = 0
        while filled < n:
            k = min(2 * (n - filled) + 16, _CHUNK)  # what stays in cache is much faster
            v = law.sample(k, words).view(np.int64)
            v += t
            unsure = np.flatnonzero(v > floor(self.tau)) if wide else np.arange(k)
            if len(unsure):
                x = v[unsure].astype(float)
                kept = np.ones(k, bool)

                def exact(i: int, bits: int, x: Float[np.ndarray, " unsure"] = x) -> Interval:
                    value = int(x[i])
                    return Interval.of(
                        self._weight(value) / (slope * value if wide else peak), bits
                    )

                chance = self._float_weight(x) / (float(slope) * x if wide else float(peak))
                kept[unsure] = accept(chance, exact, words)
                v = v[kept]
            v = v[: n - filled]
            values[filled : filled + v.size] = v
            filled += v.size
        return values


class WeightedGeometric:
    """Sampler of the distribution Pr[X = x] ∝ (θ + x)·α^x for x = 0, 1, 2, …. If the sampling threshold τ is
    large, candidates for the amount by which a surviving value exceeds θ are drawn from this distribution.
    """

    def __init__(self, alpha: Real, theta: int):
        self.alpha = alpha
        self.theta = theta
        self.steps = _geometric(alpha)
        self.tail = tail = ceil(_TAIL / self.steps.decay)
        self.table = None
        if self.steps.decay < 1 / 250:  # too wide for one table
            return

        def boundaries(bits: int) -> list[Interval]:
            a = alpha(bits)
            one = Interval.of(1, bits)

            def rest(x: int) -> Interval:
                return Interval.of(theta + x, bits) * (one - a) + a

            power = one / rest(0)
            edges = []
            for x in range(1, tail + 1):  # Pr[X >= x] = α^x·((θ+x)(1−α) + α) / (θ(1−α) + α)
                power = power * a
                edges.append(one - power * rest(x))
            return edges

        self.table = Inversion(boundaries, np.arange(tail + 1), tails=(tail,))

    def sample(self, n: int, words: Words) -> Int[np.ndarray, " n"]:
        """Draw n independent values."""
        if self.table is None:
            return self._from(0, n, words)
        out = np.zeros(n, np.int64)
        where, x = self.table.add(out, words)
        far = where[x == self.tail]
        out[far] = self._from(self.tail, far.size, words)
        return out

    def _from(self, start: int, n: int, words: Words) -> Int[np.ndarray, " n"]:
        """Draw n values under the condition that they are at least `start`. The amount above `start` is one
        geometric value or the sum of two.

        The probabilities of the two cases follow from Σ_g (t+g)·α^g = t/(1−α) + α/(1−α)² with t = θ + start.
        """

        def one(bits: int) -> Interval:
            a = self.alpha(bits)
            at = Interval.of(self.theta + start, bits) * (Interval.of(1, bits) - a)
            return at / (at + a)

        x = self.steps.sample(n, words).view(np.int64) + start
        two = ~accept(np.full(n, float(one(192))), lambda i, bits: one(bits), words)
        x[two] += 1 + self.steps.sample(int(np.count_nonzero(two)), words).view(np.int64)
        return x


@lru_cache(256)
def _geometric(ratio: Real) -> Geometric:
    """Return the sampler of a geometric distribution. Its tables are computed once for each ratio."""
    return Geometric(ratio)


_weighted_geometric = lru_cache(256)(WeightedGeometric)


@lru_cache(256)
def _gaps(p: Real) -> Geometric:
    """Return the sampler for the number of empty cells before the next survivor, if each cell survives with
    probability p.
    """
    return Geometric(cache(lambda bits: Interval.of(1, bits) - p(bits)))


def survivor_ranks(empty: int, p: Real, words: Words) -> Int[np.ndarray, " survivors"]:
    """Draw which of `empty` cells survive, and return the numbers of the survivors in ascending order. Each
    cell survives independently, with probability exactly p.
    """
    chance = float(p(192))
    if p(192).lo >= 1 << 192:
        return np.arange(empty)
    if chance * empty < 1 / 8:
        return np.array(_rare_survivors(empty, p, words), np.int64)
    room = int(empty * chance + 8 * sqrt(empty * chance) + 64)
    ranks = np.empty(min(room, empty), np.uint64)
    k = 0
    start = np.uint64(0)
    end = np.uint64(empty)
    while start < end:
        left = (empty - int(start)) * chance
        gaps = _gaps(p).sample(int(min(_CHUNK, left + 8 * sqrt(left) + 16)), words)
        if k + gaps.size > ranks.size:
            more = np.empty(max(gaps.size, ranks.size // 8), np.uint64)
            ranks = np.concatenate([ranks, more])
        k, start = kernels.advance(gaps, np.uint64(start), end, ranks, k)
    return ranks[:k].view(np.int64)


def _rare_survivors(empty: int, p: Real, words: Words) -> list[int]:
    """Draw survivors one by one. This method is faster if fewer than 1/8 survivors are expected.

    With probability (1−p)^empty, there is no survivor. Otherwise, the number of the first survivor is drawn
    uniformly, and accepted with probability (1−p)^number.
    """

    def stays_empty(cells: int) -> Real:
        return lambda bits: (Interval.of(1, bits) - p(bits)) ** cells

    survivors = []
    start = 0
    while start < empty:
        if is_below(int(words(1)[0]), stays_empty(empty - start), words):
            break
        place = uniform_below(empty - start, words)
        while not is_below(int(words(1)[0]), stays_empty(place), words):
            place = uniform_below(empty - start, words)
        survivors.append(start + place)
        start += place + 1
    return survivors


# Gaussian cells


class GaussianCell(_Cell):
    """Distribution of the noisy value of one empty cell with Gaussian noise, after filtering and sampling.
    The arguments have the same meaning as in `EmptyCell`.
    """

    def __init__(
        self,
        rate: Fraction,
        theta: float,
        sides: int,
        tau: float = 0.0,
        above: float | None = None,
    ):
        super().__init__(theta, sides, tau, above)
        self.rate = rate
        self.candidacy = cache(self._candidacy)

    @property
    def chance(self) -> float:
        """Probability that a cell survives, as a float. The condition on the threshold `above` is not taken
        into account.
        """
        values, chances = Law(GAUSSIAN, self.rate).upper_tail(self.theta)
        weights = np.minimum(values / float(self.tau), 1) if self.sampled else 1
        return float(self.sides * (weights * chances).sum())

    def survivors(
        self, empty: int, words: Words
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Draw which empty cells survive, out of `empty` cells. Return the ranks of the survivors (their
        numbers among the empty cells) in ascending order, and their noisy values.
        """
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

    @cached_property
    def _rises(self) -> bool:
        """Whether the hat function (an upper bound on the probabilities, from which values are proposed) has
        the additional factor v. The hat with the smaller sum is used, because it leads to fewer rejections.
        """
        if not self.sampled:
            return False
        slope, peak = self._weight_at_most
        rising = float(half_gaussian(self.rate, self.theta, True).mass(64)) * float(slope)
        return rising < float(half_gaussian(self.rate, self.theta).mass(64)) * float(peak)

    @cached_property
    def hat(self) -> HalfGaussian:
        """Distribution (hat) from which the values of candidates are drawn. Candidates are cells that may
        survive.
        """
        return half_gaussian(self.rate, self.theta, self._rises)

    @cached_property
    def _factor(self) -> Fraction:
        slope, peak = self._weight_at_most
        return slope if self._rises else peak

    def _hat_mass(self, bits: int) -> Interval:
        """Return an interval that contains the sum of the hat function. The sum may be 1 or more, because the
        hat is only an upper bound.
        """
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
        """Distribution of the cell at the larger threshold `above`."""
        assert self.above is not None
        return gaussian_cell(self.rate, self.theta, self.sides, float(self.above))

    @cached_property
    def is_dense(self) -> bool:
        """Whether half of all cells or more would become candidates. In this case it is faster to draw the
        noise of every cell.
        """
        half = 1 << 63
        if self.above is not None and self._before.candidacy(64).hi >= half:
            return True
        return self.candidacy(64).hi >= half

    # values

    def _candidates(
        self, n: int, words: Words
    ) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
        """Draw the absolute values of n candidates in proportion to the hat, and a mask of those that are
        accepted.
        """
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

    def _no_candidates_before(self, n: int, words: Words) -> Bool[np.ndarray, " n"]:
        """Decide at random for n cells whether they were candidates at the larger threshold, under the
        condition that they did not survive there. Return a mask of those that were not candidates.
        """
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
        """Draw the noise of every cell. For cells that would have survived at the larger threshold, draw
        again. Return the survivors and their values.
        """
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
        """Toss coins that decide which values are kept at threshold τ, under the condition that they were not
        kept at `above`.
        """
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
    """Return an interval that contains the probability that discrete Gaussian noise is at least x. For wide
    noise, the result is an upper bound, which is at most 0.3 % too large for x > 0.
    """
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
    """Return the distribution of one empty cell with Gaussian noise. It is computed once and kept for later
    calls.
    """
    return GaussianCell(rate, theta, sides, tau, above)
