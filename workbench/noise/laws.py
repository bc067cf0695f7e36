"""Fast exact samplers for geometric distributions, and comparisons of random numbers that never depend on
rounding.

Exactness. A real number is represented by a function `real`. `real(bits)` returns an `Interval` of two
integers that contains 2^bits times the number. To compare it with a uniform random number, the code draws
further bits of the random number and increases the precision until the answer is certain.

Distributions. The cumulative probabilities of a distribution are stored as integer intervals. The first 16
bits of a uniform number index a table of outcomes, which decides unless a cumulative probability is near.
In that case 48 more bits and a search decide, and if necessary exact integers of growing precision. Values
beyond the table are drawn again from the start, because the distribution is memoryless. A wide distribution
is split into blocks. The number of whole blocks is geometric, and the place in a block is a uniform
proposal that is accepted with its exact weight.

Source  Inversion and memorylessness are classical. The enclosure of exp(−ε) by directed rounding is our
        own.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache, partial
from math import ceil, exp, log, log1p
from typing import NamedTuple

import numpy as np

from workbench.noise import kernels
from workbench.privacy.enclosures import Interval as Interval
from workbench.privacy.enclosures import Real as Real
from workbench.privacy.enclosures import exp_neg as exp_neg
from workbench.randomness import Words, substream
from workbench.value import Bool, Float, Int, sealed

# Exact

_NEAR = (
    2.0**-40
)  # floats decide beyond this distance: needs exp, log1p and division right to 2^-40


def is_below(word: int, real: Real, words: Words) -> bool:
    """Return whether a uniform random number is below `real`. The first 64 bits of the random
    number are `word`.
    """
    u, known, bits = word, 64, 192
    x = real(bits)
    while True:
        lo, hi = u << bits - known, (u + 1) << bits - known
        if hi <= x.lo:
            return True
        if lo >= x.hi:
            return False
        u, known = u << 64 | int(words(1)[0]), known + 64
        if known > bits:
            bits *= 2
            x = real(bits)


def accept(
    chance: Float[np.ndarray, " n"], exact: Callable[[int, int], Interval], words: Words
) -> Bool[np.ndarray, " n"]:
    """Toss n independent coins. Coin i shows heads with probability exactly `exact(i, ·)`. The
    float `chance` is close to this probability.

    The float decides the coin, unless the uniform random number is within 2^-40 of it.
    """
    drawn, n = words(len(chance)), len(chance)
    heads, near = np.empty(n, bool), np.empty(n, np.int32)
    for i in near[: kernels.toss(drawn, chance, _NEAR, heads, near)]:
        heads[i] = is_below(int(drawn[i]), partial(exact, int(i)), words)
    return heads


# Laws

_UNSURE = np.int16(-(2**15))
_CHUNK = 2**17
_TAIL = 16 * log(2)  # tails start where they are as rare as one table entry
_DIRECT = 0.01  # a decay per step above this fits one table


class _Enclosures(NamedTuple):
    """Boundaries of a distribution and their precision.

    They are replaced together, because threads share them.
    """

    bits: int
    edges: list[Interval]


class Inversion:
    """Sampler that inverts a cumulative distribution. It draws an index from 0 to len(boundaries),
    and returns the entry of `outcomes` with this index.

    The outcomes in `tails` mean that the caller must draw further. The fast table never returns
    them.
    """

    def __init__(
        self,
        boundaries: Callable[[int], list[Interval]],
        outcomes: Int[np.ndarray, " k+1"],
        tails: tuple[int, ...] = (),
    ):
        self.boundaries = boundaries
        self.outcomes = sealed(outcomes.astype(np.int16))
        self.refined = _Enclosures(192, boundaries(192))
        lo16, hi16 = (self._coarse(16, up) for up in (False, True))
        below = np.bincount(lo16.astype(int) + 1, minlength=2**16 + 1).cumsum()
        self.table = self.outcomes[below[: 2**16]]
        self.table[np.minimum(np.concatenate([lo16, hi16]), 2**16 - 1)] = _UNSURE
        self.table[np.isin(self.table, tails)] = _UNSURE
        sealed(self.table)  # laws are shared
        self.lo64 = sealed(self._coarse(64, False))
        self.hi64 = sealed(self._coarse(64, True))

    def _coarse(self, bits: int, up: bool) -> np.ndarray:
        known = self.refined
        ends = [(e.hi if up else e.lo) >> known.bits - bits for e in known.edges]
        return np.array([min(e, 2**bits - 1) for e in ends], np.uint64)

    def add(
        self, out: Int[np.ndarray, " n"], words: Words
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Add a draw to every element of `out`. Return the places where the fast table could not
        decide, and the draws at these places.
        """
        u = words(-(-out.size // 4)).view(np.uint16)[: out.size]
        where = np.empty(out.size, np.int32)
        where = where[: kernels.gather(u, self.table, _UNSURE, out, where)]
        w = u[where].astype(np.uint64) << np.uint64(48) | words(where.size) >> np.uint64(16)
        j = np.searchsorted(self.lo64, w, side="right")
        for i in np.flatnonzero(
            self.hi64[np.maximum(j, 1) - 1] >= np.where(j > 0, w, 2**64 - 1)
        ):
            j[i] = self._place(
                int(w[i]), words
            )  # the enclosure below reaches into this 64-bit cell
        x = self.outcomes[j].astype(np.int64)
        out[where] += x
        return where, x

    def _place(self, u: int, words: Words) -> int:
        """Return the number of boundaries at or below a uniform number. `u` contains its first 64 bits."""
        known = 64
        refined = self.refined
        while True:
            u, known = u << 64 | int(words(1)[0]), known + 64
            if known > refined.bits:
                bits = 2 * refined.bits
                refined = self.refined = _Enclosures(bits, self.boundaries(bits))
            lo, hi = u << refined.bits - known, (u + 1) << refined.bits - known
            below = sum(e.hi <= lo for e in refined.edges)
            if below == sum(e.lo < hi for e in refined.edges):
                return below


class Geometric:
    """Distribution Pr[X >= k] = ratio^k on k = 0, 1, 2, …, the number of failures before the first success."""

    def __init__(self, ratio: Real):
        decay = -log(float(ratio(192))) if float(ratio(192)) > 0.5 else log(2)
        if float(ratio(192)) > 1 - 2**-20:  # a float of the ratio itself would lose the decay
            decay = -log1p(-float(Interval.of(1, 192) - ratio(192)))
        self.shift = 0
        while decay * 2**self.shift < _DIRECT or (self.shift and decay * 2**self.shift < 0.025):
            self.shift += 1
        if self.shift > 62:
            raise ValueError("ratio is too close to 1 for 64-bit outcomes")
        self.ratio, self.decay = ratio, decay
        self.sure = int(256 * exp(-decay * 2**self.shift)) - 1  # least 256·ratio^place, or less
        self.tail = tail = max(2, ceil(_TAIL / (decay * 2**self.shift)))

        def boundaries(bits: int) -> list[Interval]:
            block, power = ratio(bits + 64) ** (2**self.shift), Interval.of(1, bits + 64)
            one, edges = 1 << bits, []
            for _ in range(tail):  # Pr[X < k] = 1 − ratio^k
                power = power * block
                edges.append(Interval(one - -(-power.hi >> 64), one - (power.lo >> 64), bits))
            return edges

        self.blocks = Inversion(boundaries, np.arange(tail + 1), tails=(tail,))

    def sample(self, n: int, words: Words) -> np.ndarray:
        """Return n draws as uint64. If a draw is 2^63 or more, the true value may be even larger."""
        out = np.zeros(n, np.int64)
        chunk = getattr(words, "chunk", _CHUNK)
        for start in range(0, n, chunk):
            self._fill(out[start : start + chunk], substream(words))
        return out.view(np.uint64)

    def _fill(self, out: np.ndarray, words: Words) -> None:
        where, x = self.blocks.add(out, substream(words))
        far = where[x == self.tail]
        while far.size:  # memoryless: what lies beyond the table is drawn again from its start
            more = np.zeros(far.size, np.int64)
            where, x = self.blocks.add(more, words)
            out[far] += more
            far = far[where[x == self.tail]]
        if self.shift:
            np.minimum(out, 2 ** (63 - self.shift), out=out)
            blocks = out.view(np.uint64)
            blocks <<= np.uint64(self.shift)
            blocks += self._places(out.size, substream(words))

    def _places(self, n: int, words: Words) -> np.ndarray:
        """Draw Pr[L = l] ∝ ratio^l below 2^shift: a uniform place, kept with probability ratio^l.

        This probability is at least `sure`/256, so one random byte decides for most places. An exact
        coin decides the others.
        """
        drawn = words(n)
        coins = words(-(-n // 8)).view(np.uint8)
        places = np.empty(n, np.uint64)
        unsure = np.empty(n, np.int32)
        k = kernels.propose(drawn, coins, np.uint64(64 - self.shift), self.sure, places, unsure)
        unsure = unsure[:k]
        tried = places[unsure]
        sure = Fraction(self.sure, 256)

        def rest(i: int, bits: int) -> Interval:
            kept = self.ratio(bits) ** int(tried[i]) - Interval.of(sure, bits)
            return kept / Interval.of(1 - sure, bits)

        chance = (np.exp(tried * -self.decay) - float(sure)) / float(1 - sure)
        again = unsure[~accept(chance, rest, words)]
        if again.size:
            places[again] = self._places(again.size, words)
        return places


class TwoSided:
    """Base of symmetric distributions over all integers. A table holds the likely integers, unless
    there are too many of them.
    """

    inverse: Inversion | None = None
    tail: int

    def add(self, out: Int[np.ndarray, " n"], words: Words) -> None:
        """Add an independent draw to every element of `out`, in place."""
        chunk = getattr(words, "chunk", _CHUNK)
        for start in range(0, out.size, chunk):
            some, own = out[start : start + chunk], substream(words)
            if self.inverse is None:
                some += self._wide(some.size, own)
                continue
            where, x = self.inverse.add(some, own)
            for sign in (1, -1):
                far = where[x == sign * self.tail]
                if far.size:
                    some[far] += sign * self._beyond(far.size, own)

    def _wide(self, n: int, words: Words) -> np.ndarray:
        """Draw values that no table holds."""
        raise NotImplementedError

    def _beyond(self, n: int, words: Words) -> np.ndarray:
        """Draw how far values lie beyond the start of the tail, given that they do."""
        raise NotImplementedError


class TwoSidedGeometric(TwoSided):
    """Distribution Pr[X = x] = (1 − α)/(1 + α) · α^|x|, α = exp(−decay), for a rational decay = ε/Δ."""

    def __init__(self, decay: Fraction):
        self.rate = decay
        self.alpha = cache(lambda bits: exp_neg(decay, bits))
        if decay < Fraction(1, 250):  # too wide for one table
            self.magnitude = Geometric(self.alpha)
            return
        self.tail = tail = max(2, ceil(_TAIL / min(float(decay), 1e6)))

        def boundaries(bits: int) -> list[Interval]:  # of ≥T, T−1, …, 1, 0, −1, …, −(T−1), ≤−T
            alpha, one = self.alpha(bits), Interval.of(1, bits)
            upper, power = [], one / (one + alpha)  # Pr[X >= x] = α^x / (1 + α)
            for _ in range(tail):
                power = power * alpha
                upper.append(power)
            return upper[::-1] + [one - u for u in upper]

        self.inverse = Inversion(boundaries, np.arange(tail, -tail - 1, -1), (tail, -tail))

    def _beyond(self, n: int, words: Words) -> np.ndarray:
        """Draw from the distribution given X >= 0, because the tail is like it."""
        kept = np.empty(0, np.int64)
        while kept.size < n:
            x = np.zeros(4 * (n - kept.size) + 8, np.int64)
            self.add(x, words)
            kept = np.concatenate([kept, x[x >= 0]])
        return kept[:n]

    def _wide(self, n: int, words: Words) -> np.ndarray:
        """Draw a magnitude and a fair sign. −0 is drawn again, so that 0 is not counted twice."""
        x = np.zeros(n, np.int64)
        todo = np.arange(n)
        while todo.size:
            magnitude = self.magnitude.sample(todo.size, substream(words)).view(np.int64)
            negative = substream(words)(todo.size) >> np.uint64(63) == 1
            x[todo] = np.where(negative, -magnitude, magnitude)
            todo = todo[negative & (magnitude == 0)]
        return x


@lru_cache(256)
def two_sided(decay: Fraction) -> TwoSidedGeometric:
    """Return the sampler of geometric noise with decay ε/Δ. It computes its tables once, which take
    up to 1.4 MB.
    """
    return TwoSidedGeometric(decay)
