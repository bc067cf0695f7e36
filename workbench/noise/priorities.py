"""Selection of the cells with the largest priorities among all noisy cells, in exact arithmetic. The priority
of a cell is |v|/r, where v is its noisy value and r is uniform on (0, 1].

The code works with the inverse priority q = r/|v|. For a non-empty cell, q is uniform on (0, 1/|v|]. An empty
cell is drawn only if its q is below 1/τ for a guessed threshold τ. Under this condition, and for a given
noisy value, q is also uniform on an interval. So all inverse priorities are uniform real numbers. To compare
two of them, the code draws as many of their bits as necessary.

Source  Duffield, Lund & Thorup, J. ACM 2007; section 2.3 and Theorem 3 of Cormode et al., ICDT 2012.
Differs If a guess was too high, we keep the drawn cells and draw additional cells for a lower guess. If we
        drew everything again, the published threshold τ_s would be biased. We round τ_s down to a multiple of
        2^-16, and use the rounded value to weight the released cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, log2, sqrt

import numpy as np

from workbench.noise import kernels
from workbench.noise.law import GAUSSIAN, GEOMETRIC, Law
from workbench.noise.laws import two_sided
from workbench.privacy.enclosures import Interval
from workbench.randomness import Words
from workbench.value import Bool, Float, Int, UInt64

_CHUNK = 2**14
_NEAR = 16  # times √size: so far beyond what is wanted guesses reach, or less
GRID = 2**16  # τ_s is a multiple of 1/GRID counts

Bounds = Callable[[int, int], tuple[Fraction, Fraction]]  # see Candidates.bounds


class Candidates:
    """Cells that may be released by priority sampling. The inverse priority of each cell is low + u·(high −
    low), where u is uniform on (0, 1].

    For a cell with the noisy value v, low = min(1/above, 1/|v|) and high = min(1/tau, 1/|v|). Here `tau` is
    the guessed threshold for which the cells were drawn, and `above` is the guess before. For non-empty
    cells, tau = 0 and above = ∞ give the interval from 0 to 1/|v|.
    """

    def __init__(
        self,
        values: Int[np.ndarray, " n"],
        words: Words,
        tau: float = 0.0,
        above: float = np.inf,
        drawn: UInt64[np.ndarray, " n"] | None = None,
    ):
        self.values = values
        self.tau = float(tau)
        self.above = float(above)
        self.words = words
        if drawn is None:
            drawn = np.empty(len(values), np.uint64)
            for start in range(0, len(values), _CHUNK):  # stays in cache
                u = drawn[start : start + _CHUNK]
                u[:] = words(len(u))
        self.drawn = drawn
        self._more: dict[int, tuple[int, int]] = {}

    @cached_property
    def inverse(self) -> Float[np.ndarray, " n"]:
        """Inverse priorities of the cells, rounded to floats."""
        inverse = np.empty(len(self.values))
        kernels.invert(self.values, self.drawn, self.tau, self.above, inverse)
        return inverse

    def listed(self, tau: float) -> tuple[Int[np.ndarray, " k"], Candidates]:
        """Return the cells with a priority above `tau`, and their positions. Cells whose priority is so close
        to `tau` that floats cannot decide are included.
        """
        limit = 1 / tau
        limit += margin(limit)
        places = np.empty(len(self.values), np.int32)
        k = kernels.list_below(self.values, self.drawn, self.tau, self.above, limit, places)
        places = places[:k]
        values = self.values[places]
        drawn = self.drawn[places]
        return places, type(self)(values, self.words, self.tau, self.above, drawn)

    def bounds(self, i: int, extra: int) -> tuple[Fraction, Fraction]:
        """Return a lower and an upper bound on the inverse priority of cell i, as fractions. The bounds are
        computed from the first 64 + `extra` bits of the random number u.
        """
        u, known_bits = self._more.get(i, (int(self.drawn[i]), 64))
        while known_bits < 64 + extra:
            u = u << 64 | int(self.words(1)[0])
            known_bits += 64
        self._more[i] = u, known_bits
        v = abs(int(self.values[i]))
        low = (
            Fraction(0) if self.above == np.inf else 1 / max(Fraction(self.above), Fraction(v))
        )
        step = (1 / max(Fraction(self.tau), Fraction(v)) - low) / 2**known_bits
        return low + u * step, low + (u + 1) * step


def largest_priorities(
    pools: Sequence[Candidates], size: int, tau: float = 0.0
) -> tuple[Bool[np.ndarray, " candidates"], float]:
    """Return a mask of the `size` candidates with the largest priorities, and the next largest priority τ_s,
    rounded down to a multiple of 2^-16.

    The candidates must include all cells whose priority is above `tau`. If there are at most `size`
    candidates, all of them are taken, and τ_s is 0.
    """
    starts = np.cumsum([0] + [len(pool.values) for pool in pools])
    taken = np.ones(starts[-1], bool)
    if len(taken) <= size:
        return taken, 0.0

    def bounds(i: int, extra: int) -> tuple[Fraction, Fraction]:
        pool = int(np.searchsorted(starts, i, side="right")) - 1
        return pools[pool].bounds(i - int(starts[pool]), extra)

    cut = _next_inverse(pools, size, 1 / tau if tau else np.inf)
    unsure = margin(cut)
    close = np.empty(len(taken), np.int64)
    k = 0
    for pool, start in zip(pools, starts, strict=False):
        end = start + len(pool.values)
        k = kernels.take(
            pool.inverse, cut - unsure, cut + unsure, taken[start:end], close, start, k
        )
    close = close[:k]
    order = _sorted(list(close), bounds)
    missing = size - np.count_nonzero(taken)
    taken[order[:missing]] = True
    return taken, _on_grid(order[missing], bounds)


def _next_inverse(pools: Sequence[Candidates], size: int, last: float) -> float:
    """Return the inverse priority at position `size` + 1 in ascending order, as a float. This number must be
    below `last`.

    The function sorts only the values that are close to `last`. Usually there are few of them.
    """
    near = np.empty(sum(len(pool.values) for pool in pools))
    high = last + margin(last)
    for low in (last * (1 - min(_NEAR / sqrt(size + 1), 1)), -np.inf):
        below = 0
        k = 0
        for pool in pools:
            lower, k = kernels.between(pool.inverse, low, high, near, k)
            below += lower
        if below <= size < below + k:
            break
    near = near[:k]
    near.partition(size - below)
    return near[size - below]


def margin(inverse: float) -> float:
    """Return a distance for inverse priorities. If two floats are farther apart, rounding errors cannot have
    changed their order.
    """
    return inverse * 2.0**-40 + 2.0**-62


def _sorted(cells: list[int], bounds: Bounds) -> list[int]:
    """Sort cells by their exact inverse priorities. Random bits are drawn until the intervals of no two cells
    overlap.
    """
    extra = 0
    while len(cells) > 1:
        spans = sorted((bounds(i, extra), i) for i in cells)
        cells = [i for _, i in spans]
        if all(high <= next_low for ((_, high), _), ((next_low, _), _) in pairwise(spans)):
            break
        extra += 64
    return cells


def _on_grid(i: int, bounds: Bounds) -> float:
    """Return the priority of cell i, rounded down to a multiple of 2^-16."""
    extra = 0
    while True:
        low, high = bounds(i, extra)
        if low > 0:
            steps = int(GRID / high)
            if steps == int(GRID / low):
                return steps / GRID
        extra += 64


def sample_of(values: Int[np.ndarray, " n"]) -> Float[np.ndarray, " some"]:
    """Return the absolute values of about ten thousand of the values, from which the threshold is guessed."""
    return np.abs(values[:: max(1, len(values) // 10_000)]).astype(float)


def guess_threshold(
    sample: Float[np.ndarray, " some"],
    occupied_cells: int,
    empty: Sequence[tuple[int, Law]],
    theta: float,
    sides: int,
    wanted: float,
) -> float:
    """Guess a threshold such that about `wanted` cells have a larger priority. If at most `wanted` cells are
    expected to pass the filter, return 0.

    The release has the same distribution for every guess, so floating point is exact enough. A better guess
    only saves time.
    """
    weight = occupied_cells / max(1, len(sample))
    t = max(ceil(theta), 1)
    geometric = [(n, two_sided(law.rate).alpha) for n, law in empty if law.kind == GEOMETRIC]
    empty_cells_ = np.array([float(n) for n, _ in geometric])
    a = np.array([float(alpha(192)) for _, alpha in geometric])
    one_minus_a = np.array([float(Interval.of(1, 192) - alpha(192)) for _, alpha in geometric])
    gaussian = [(n, *law.upper_tail(t)) for n, law in empty if law.kind == GAUSSIAN]

    def tail(v: float) -> np.ndarray:  # Σ_{x >= v} x·α^x · (1−α)²
        return a**v * (v * one_minus_a + a)

    def expected(tau: float) -> float:
        occupied = np.minimum(sample / tau, 1).sum()
        if weight > 1:
            occupied -= 4 * sqrt(occupied)  # that the sample may mislead by
        passing = a ** (tau + 1) + np.maximum(0, tail(t) - tail(tau + 1)) / one_minus_a / tau
        expected_empty = (empty_cells_ * passing / (1 + a)).sum()
        for n, values, chances in gaussian:
            expected_empty += n * (np.minimum(values / tau, 1) * chances).sum()
        return weight * occupied + sides * expected_empty

    low = float(t)
    if expected(low) <= wanted:
        return 0.0
    high = 2 * low
    while expected(high) > wanted:
        low = high
        high = 2 * high
    for _ in range(12):
        middle = (low + high) / 2
        if expected(middle) > wanted:
            low = middle
        else:
            high = middle
    return 2.0 ** (floor(64 * log2(low)) / 64)  # on a grid, so that laws can be kept
