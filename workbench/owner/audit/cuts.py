"""Values at which noise is cut into events, and cells that are empty under one neighbour only.

Cuts: Each noisy value is only below, between or above the values that it has under the two neighbours (and a
public threshold), one value standing for each part; where that are too many ways, values that neither
neighbour moves have no noise at all. Gaussian values that a neighbour moves are told apart value by value,
or, where those are too many, in as many ranges as can be run through.

Unlike cells.
An empty cell that survives has the law of its noise given that it passed, so that it is as likely as an
occupied one to be released with a value of each part. How likely it is to survive is what the mechanism's
own code says. Where values are sampled every value up to τ is a part, as each is kept by another chance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, fsum, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from workbench.noise import laws
from workbench.value import Int

# Cuts

MOST_RUNS = 3000  # of either input
_REACH = 8  # standard deviations: beyond lies less than 10⁻¹⁴


class NotEnumerable(Exception):
    """Why a law cannot be computed by running through all draws."""


class Cuts:
    """At which values each noisy value is told apart, learnt without noise from both inputs.

    The second input follows the noiseless path of the first, so that calls correspond.
    """

    def __init__(self) -> None:
        self.recording: list[np.ndarray] = []
        self.is_recording = False
        self.rates: list[float] = []  # of the calls that draw Gaussian noise; 0 of others
        self.shapes: list[tuple[str, int]] = []
        self.followed: list[np.ndarray] = []
        self.table: list[list[list[int]]] = []
        self.everywhere: list[int] = []
        self.written: set[int] = set()  # bits that some count may set
        self.runs: list[Run] = []  # of cells, of the input that is released
        self.of_cells: list[
            dict[int, list[int]]
        ] = []  # where some are empty for one input alone
        self.others = False  # whether cells that are empty for both inputs may survive

    def record(self, out: np.ndarray, gaussian_rate: float = 0.0) -> None:
        """One call of the noiseless run: its exact values, and what the path makes of them."""
        call = len(self.recording)
        self.recording.append(np.array(out))
        if call == len(self.rates):
            self.rates.append(gaussian_rate)
        if call < len(self.followed) and len(self.followed[call]) == len(out):
            out[:] = self.followed[call]

    def learn(
        self, runs: Sequence[list[np.ndarray]], adaptive: bool, extra: int | None, level: int
    ) -> None:
        """From the exact values of every call, of both inputs."""
        one, other = runs
        self.table = []
        moved: set[int] = set()
        calls = [*zip(one, other, self.rates, strict=False)]
        moved_gaussian = sum(np.count_nonzero(x != y) for x, y, rate in calls if rate)
        parts = MOST_RUNS ** (1 / max(1, moved_gaussian))
        for x, y, rate in calls:
            cuts = [
                gaussian_cuts(int(a), int(b), rate, parts)
                if rate and a != b
                else element_cuts(a, b, extra, level)
                for a, b in zip(x, y, strict=True)
            ]
            self.table.append(cuts)
            moved |= {c for a, b, cut in zip(x, y, cuts, strict=True) if a != b for c in cut}
        self.everywhere = sorted(moved)
        if adaptive:  # which nodes a call is about depends on the noise before
            self.table = []

    def constant(self, call: int, element: int, exact: int) -> int:
        """What stands for a noisy value that neither input moves."""
        return exact if self.of_cells else int(self.followed[call][element])

    def of(
        self, call: int, element: int, keys: Int[np.ndarray, " n"] | None, size: int
    ) -> list[int]:
        """The lowest values of all parts but the first."""
        if self.of_cells:
            assert keys is not None
            return self.of_cells[call][int(keys[element])]
        if call < len(self.table) and len(self.table[call]) == size:
            return self.table[call][element]
        return self.everywhere


def element_cuts(a: int, b: int, extra: int | None, level: int) -> list[int]:
    """Between two counts, and at a public threshold; the finer, the higher the level."""
    low, high = sorted((int(a), int(b)))
    if low == high:
        return [low + 1] if level >= 1 else []
    cuts = {low + 1, high}
    if level >= 2:
        cuts |= {low, high + 1}
        if extra is not None:
            cuts.add(extra)
    return sorted(cuts)


def gaussian_cuts(a: int, b: int, rate: float, parts: float) -> list[int]:
    """Each value on which much of either law lies, or as many ranges of them as there may be parts.

    The fewer there are, the closer to the middle they tell most.
    """
    low, high = sorted((a, b))
    reach = ceil(min(_REACH, parts / 5) * sqrt(0.5 / rate))
    cuts = min(high - low + 2 * reach + 1, max(1, int(parts) - 1))
    return np.linspace(low - reach, high + reach, cuts).round().astype(int).tolist()


def rate_of(alpha: laws.Interval) -> float:
    """−ln α, right to rounding for α near 1 too."""
    middle = Fraction(alpha.lo + alpha.hi, 2 << alpha.bits)
    if not alpha.lo:
        raise NotEnumerable("its noise is too small to compute with")
    return -log1p(-float(1 - middle)) if middle > Fraction(1, 2) else -log(float(middle))


def upper_tail(x: int, rate: float) -> float:
    """Pr[X >= x] of two-sided geometric X, α = exp(−rate)."""
    if x > 0:
        return exp(-rate * x) / (1 + exp(-rate))
    return 1 - exp(-rate * (1 - x)) / (1 + exp(-rate))


def between(low: int, high: int, rate: float) -> float:
    """Pr[low <= X < high], in a form that does not cancel."""
    if low > 0:
        return upper_tail(low, rate) * -expm1(-rate * (high - low))
    if high <= 0:
        return between(1 - high, 1 - low, rate)
    below = -expm1(-rate * (1 - low))
    above = exp(-rate) * -expm1(-rate * (high - 1))
    return (below + above) / (1 + exp(-rate))


@lru_cache(4096)
def gaussian_parts(rate: float, lowest: tuple[int, ...]) -> list[float]:
    """The chances of noise below, between and above these integers, each summed by itself."""
    reach = ceil(40 * sqrt(0.5 / rate))
    values = np.arange(-reach, reach + 1)
    chances = np.exp(-rate * values.astype(float) ** 2)
    chances /= fsum(chances)
    ends = np.clip(np.array([-reach, *lowest, reach + 1]), -reach, reach + 1) + reach
    return [fsum(chances[low:high]) for low, high in itertools.pairwise(ends.tolist())]


# Unlike cells


class Run(NamedTuple):
    """Consecutive cells of one law: the first, how many, the occupied ones with counts, and the filter."""

    start: int
    size: int
    keys: Int[np.ndarray, " n"]
    counts: Int[np.ndarray, " n"]
    theta: float
    tau: float
    sides: int

    def kept(self, value: int) -> float:
        """The chance that this noisy value is released."""
        passing = value if self.sides == 1 else abs(value)
        if passing < self._lowest:
            return 0.0
        return min(passing / self.tau, 1.0) if self.tau else 1.0

    @property
    def _lowest(self) -> int:
        return max(ceil(self.theta), 0 if self.sides == 1 and not self.tau else 1)

    def entering_cuts(self, rate: float, parts: float) -> list[int]:
        """The lowest values of all parts but the first, none of which the filter cuts in two.

        Of Gaussian noise, of which a `rate` is given, so many `parts` as there may be.
        """
        lowest = self._lowest
        above = [lowest]
        if self.tau:
            above = [*range(lowest, max(lowest, ceil(self.tau)) + 1)]
        elif rate:
            reach = ceil(min(8, parts / 5) * sqrt(0.5 / rate))
            count = max(1, int(parts / self.sides) - 1)
            above = np.linspace(lowest, lowest + reach, count).round().astype(int).tolist()
        below = [1 - x for x in above] if self.sides == 2 else []
        return sorted({*above, *below})


def same_cells(one: Sequence[Run], other: Sequence[Run]) -> bool:
    """Whether no cell is empty under one neighbour alone."""
    if len(one) != len(other):
        return False
    return all(np.array_equal(x.keys, y.keys) for x, y in zip(one, other, strict=True))


def _counts(run: Run) -> dict[int, int]:
    return dict(zip(run.keys.tolist(), run.counts.tolist(), strict=True))


def cuts_of_cells(
    one: Sequence[Run], other: Sequence[Run], rates: Sequence[float], level: int
) -> list[dict[int, list[int]]]:
    """For each run the cells that are occupied under either neighbour, and where they are told apart."""
    both = [(_counts(x), _counts(y)) for x, y in zip(one, other, strict=True)]
    moved = sum(a.get(cell, 0) != b.get(cell, 0) for a, b in both for cell in {**a, **b})
    parts = MOST_RUNS ** (1 / max(1, moved))
    table = []
    for run, (a, b), rate in zip(one, both, rates, strict=True):
        cuts = {}
        for cell in sorted({**a, **b}):
            if cell not in a or cell not in b:
                cuts[cell] = run.entering_cuts(rate, parts)
            elif rate and a[cell] != b[cell]:
                cuts[cell] = gaussian_cuts(a[cell], b[cell], rate, parts)
            else:
                cuts[cell] = element_cuts(a[cell], b[cell], None, level)
        table.append(cuts)
    return table


def entering(
    run: Run,
    cuts: dict[int, list[int]],
    chance: float,
    weights: Callable[[int, list[int]], list[float]],
    choose: Callable[[list[float]], int],
    others: bool,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Which empty cells survive, as sorted ranks, and their values.

    Parameters
    ----------
    run, cuts : of this input; cells without cuts are empty under both.
    chance : to survive, of each.
    weights : of the parts of noise on a count.
    choose : one of some ways of these probabilities.
    others : whether cells may survive that are empty under both: all of them stand for one.
    """
    occupied = set(run.keys.tolist())
    survivors: dict[int, int] = {}
    for cell in cuts:
        if cell in occupied:
            continue
        lowest = cuts[cell]
        values = [lowest[0] - 1, *lowest]
        odds = [w * run.kept(v) for w, v in zip(weights(0, lowest), values, strict=True)]
        ways = [(v, chance * x / sum(odds)) for v, x in zip(values, odds, strict=True) if x]
        chosen = choose([1 - chance, *(x for _, x in ways)])
        if chosen:
            survivors[cell] = ways[chosen - 1][0]
    rest = run.size - len(cuts)
    if others and rest:
        none = (1 - chance) ** rest
        if choose([none, 1 - none]):
            first = next(x for x in range(run.start, run.start + run.size) if x not in cuts)
            survivors[first] = max(1, ceil(run.theta))
    cells = np.array(sorted(survivors), np.int64)
    ranks = cells - run.start - np.searchsorted(run.keys, cells)
    return ranks, np.array([survivors[x] for x in cells.tolist()], np.int64)
