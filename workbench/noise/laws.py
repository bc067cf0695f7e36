"""Fast samplers for geometric distributions, and comparisons of random numbers with probabilities. All
results are exact, because rounding errors never decide an outcome.

Exactness. A real number, for example a probability, is represented by a function. Called with a number of
bits, the function returns an interval with this precision that contains the real number. To compare the real
number with a uniform random number, the code draws more bits of the random number and increases the precision
until the answer is certain.

Distributions. The cumulative probabilities of a distribution are stored as intervals. The first 16 bits of a
uniform number select an entry of a table, which contains the outcome. If a cumulative probability is so close
that 16 bits cannot decide, the code uses 48 more bits and a search, and if necessary exact integers with more
and more bits. The table ends at a large value. If a draw is larger, the excess is drawn in the same way,
because a geometric distribution has no memory. A wide distribution is split into blocks of values. The number
of whole blocks has a geometric distribution. The position in the block is drawn uniformly, and accepted with
a probability that makes the distribution exact.

Source  Inversion, and drawing again beyond the table, are classical methods. The computation of exp(−ε) with
        directed rounding is our own.
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
    """Return whether a uniform random number in [0, 1) is below the real number `real`. `word` contains the
    first 64 bits of the random number, and further bits are drawn if necessary.
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
    """Toss n independent coins, and return a mask of those that show heads. For every number of bits, the
    interval `exact(i, bits)` contains the exact probability of heads for coin i. The float chance[i] is close
    to this probability.

    The float decides the coin, unless the uniform random number of the coin differs from the float by less
    than 2^-40.
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
    """Intervals that contain the cumulative probabilities of a distribution, and their precision in bits.

    Both are replaced in one step, because several threads use them.
    """

    bits: int
    edges: list[Interval]


class Inversion:
    """Sampler of a distribution with finitely many outcomes. It compares a uniform random number with the
    cumulative probabilities, which `boundaries` computes to any precision.

    An outcome in `tails` stands for all values beyond the table, and the caller must then draw the value. The
    fast table never contains such an outcome.
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
        """Add an independent draw to every element of `out`. Return the positions at which the fast table
        could not decide, and the draws at these positions.
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
        """Return how many cumulative probabilities are at most a uniform random number. `u` contains the
        first 64 bits of the number, and further bits are drawn if necessary.
        """
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
    """Sampler of the geometric distribution with Pr[X >= k] = ratio^k for k = 0, 1, 2, …. X is the number of
    failures before the first success.
    """

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
        """Draw n independent values, as unsigned 64-bit integers. If a value is 2^63 or more, the true draw
        may be even larger.
        """
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
        """Draw n positions l in a block, from 0 to 2^shift − 1, with probability proportional to ratio^l. A
        uniform position is proposed and accepted with probability ratio^l.

        The probability of acceptance is at least `sure`/256, so one random byte decides in most cases. In the
        other cases, an exact coin decides.
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
    """Base class of samplers of symmetric distributions over all integers. A table contains the likely
    integers, if there are not too many of them.
    """

    inverse: Inversion | None = None
    tail: int

    def add(self, out: Int[np.ndarray, " n"], words: Words) -> None:
        """Add an independent draw of noise to every element of `out`, in place."""
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
        """Draw n values of a distribution that is too wide for a table."""
        raise NotImplementedError

    def _beyond(self, n: int, words: Words) -> np.ndarray:
        """Draw how far n values are beyond the end of the table, given that they are beyond the end."""
        raise NotImplementedError


class TwoSidedGeometric(TwoSided):
    """Sampler of two-sided geometric noise: Pr[X = x] = (1 − α)/(1 + α)·α^|x| for all integers x, with α =
    exp(−decay). The decay is an exact fraction.
    """

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
        """Draw n values from the distribution under the condition X >= 0. The tail beyond the table has the
        same shape.
        """
        kept = np.empty(0, np.int64)
        while kept.size < n:
            x = np.zeros(4 * (n - kept.size) + 8, np.int64)
            self.add(x, words)
            kept = np.concatenate([kept, x[x >= 0]])
        return kept[:n]

    def _wide(self, n: int, words: Words) -> np.ndarray:
        """Draw an absolute value and a fair sign for each value. A 0 with a negative sign is drawn again, so
        that 0 is not counted twice.
        """
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
    """Return the sampler of two-sided geometric noise with this decay. The sampler's tables of up to 1.4 MB
    are computed once and kept for later calls.
    """
    return TwoSidedGeometric(decay)
