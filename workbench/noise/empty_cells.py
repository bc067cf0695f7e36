"""Which empty cells enter a summary, and with what values, without visiting the others.

Every empty cell's noisy value has the same law, so the empty cells that pass are i.i.d. choices: the
gaps between them are geometric with the survival probability p, and their values follow the noise
given that it passed. Cost is in survivors; the number of empty cells may be anything below 2^63.

Source  Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, Remark 1 and appendix C.
Differs gaps instead of a binomial count and rejected positions; the survival probability for real θ
        and τ (printed for whole numbers); everything exact.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from math import ceil, floor, sqrt

import numpy as np

from workbench.arrays import Float, Int, Num
from workbench.noise import kernels
from workbench.noise.bits import Words, uniform_below
from workbench.noise.exact import Interval, Real, accept, is_below
from workbench.noise.laws import Geometric, Inversion

_CHUNK = 2**16
_TAIL = (
    14  # scales of noise beyond which `WeightedGeometric` is about as rare as one table entry
)


class EmptyCell:
    """The law of one empty cell: noise v passes |v| >= theta (`sides` = 2) or v >= theta (1), then is
    sampled with probability min(|v|/tau, 1); `above` conditions on not having been sampled at a
    larger threshold, as priority sampling needs when it lowers its guess.
    """

    def __init__(
        self,
        alpha: Real,
        theta: float,
        sides: int,
        tau: float = 0.0,
        above: float | None = None,
    ):
        self.alpha = alpha
        self.sides = sides
        self.sampled = tau > 0
        lowest = 0 if sides == 1 and not self.sampled else 1
        self.theta = max(ceil(theta), lowest)
        self.tau = Fraction(tau)
        self.above = None if above is None else Fraction(above)
        self.survival = cache(self._survival)

    def _entering(self, tau: Fraction, bits: int) -> Interval:
        """Σ_v Pr[v] · min(|v|/τ, 1) over passing v, for real τ.

        With T = ⌊τ⌋ and θ <= T the sum below T is
        Σ_{v=θ}^{T} v·α^v = (θα^θ − (θ−1)α^{θ+1} − (T+1)α^{T+1} + Tα^{T+2}) / (1−α)².
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
        """The probability p that an empty cell survives."""
        work = bits + 128  # 1 − α may cancel as many bits
        p = self._entering(self.tau, work)
        if self.above is not None:
            earlier = self._entering(self.above, work)
            p = (p - earlier) / (Interval.of(1, work) - earlier)
        return Interval(p.lo >> 128, min(1 << bits, -(-p.hi >> 128)), bits)

    @property
    def chance(self) -> float:
        """The chance to survive, in floating point."""
        return float(self.survival(192))

    def survivors(
        self, empty: int, words: Words
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Which of so many cells survive, as sorted ranks, and their values."""
        ranks = survivor_ranks(empty, self.survival, words)
        return ranks, self.values(len(ranks), words)

    def values(self, n: int, words: Words) -> Int[np.ndarray, " n"]:
        """n independent values of survivors, exactly distributed.

        Without sampling |v| − θ is geometric. With it, a proposal is kept with its exact weight: from
        the law ∝ α^v where τ is small, ∝ v·α^v where it is large; both are kept at least half the
        time or so.
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
        tau = self.tau
        above = self.above
        slope = 1 / tau - (1 / above if above else 0)  # weight per unit of v, as long as v <= τ
        peak = 1 - (tau / above if above else 0)
        wide = tau > t + 1 / (1 - float(self.alpha(64)))

        def chance(v: Num[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
            weight = np.minimum(v / float(tau), 1)
            if above:  # in a form that does not cancel
                late = np.maximum(float(above) - v, 0) / float(above)
                weight = np.where(v <= float(tau), v * float(slope), late)
            return weight / (float(slope) * v) if wide else weight / float(peak)

        def exact(v: int, bits: int) -> Interval:
            weight = min(v / tau, Fraction(1)) - (min(v / above, Fraction(1)) if above else 0)
            return Interval.of(max(weight, Fraction(0)) / (slope * v if wide else peak), bits)

        law = _weighted_geometric(self.alpha, t) if wide else _geometric(self.alpha)
        values = np.empty(n, np.int64)
        filled = 0
        while filled < n:
            k = min(2 * (n - filled) + 16, _CHUNK)  # what stays in cache is much faster
            v = law.sample(k, words).view(np.int64)
            v += t
            unsure = np.flatnonzero(v > floor(tau)) if wide else np.arange(k)
            if len(unsure):
                x = v[unsure]
                kept = np.ones(k, bool)

                def exact_of(i: int, bits: int, x: Int[np.ndarray, " unsure"] = x) -> Interval:
                    return exact(int(x[i]), bits)

                kept[unsure] = accept(chance(x.astype(float)), exact_of, words)
                v = v[kept]
            v = v[: n - filled]
            values[filled : filled + v.size] = v
            filled += v.size
        return values


class WeightedGeometric:
    """Pr[X = x] ∝ (θ + x)·α^x on x = 0, 1, 2, …: what sampling at a large τ keeps of the noise."""

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
        """n draws."""
        if self.table is None:
            return self._from(0, n, words)
        out = np.zeros(n, np.int64)
        where, x = self.table.add(out, words)
        far = where[x == self.tail]
        out[far] = self._from(self.tail, far.size, words)
        return out

    def _from(self, start: int, n: int, words: Words) -> Int[np.ndarray, " n"]:
        """The law given x >= start: from there on, one geometric or, past the first, the sum of two.

        With t = θ + start, Σ (t+g)·α^g = t/(1−α) + α/(1−α)².
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
    """Tables of a geometric law, made once for each ratio."""
    return Geometric(ratio)


_weighted_geometric = lru_cache(256)(WeightedGeometric)


@lru_cache(256)
def _gaps(p: Real) -> Geometric:
    """The law of how many empty cells stay empty before the next survivor."""
    return Geometric(cache(lambda bits: Interval.of(1, bits) - p(bits)))


def survivor_ranks(empty: int, p: Real, words: Words) -> Int[np.ndarray, " survivors"]:
    """Which of `empty` cells survive, each independently with probability exactly p: sorted ranks."""
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
    """Survivors one by one, where fewer than one in eight draws has any.

    There is none with probability (1−p)^empty; given some, the first is a uniform place kept with
    probability (1−p)^place.
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
