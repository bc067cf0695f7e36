"""At which values noise is told apart, and how likely each part of it is.

Each noisy value is only below, between or above the values that it has under the two neighbours (and a
public threshold), one value standing for each part; where that are too many ways, values that neither
neighbour moves have no noise at all. Gaussian values that a neighbour moves are told apart value by value,
or, where those are too many, in as many ranges as can be run through.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, fsum, log, log1p, sqrt
from typing import TYPE_CHECKING

import numpy as np

from workbench.noise import exact

if TYPE_CHECKING:
    from workbench.audit.unlike_cells import Run

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

    def constant(self, call: int, element: int) -> int:
        """What stands for a noisy value that neither input moves."""
        values = self.runs[call].counts if self.of_cells else self.followed[call]
        return int(values[element])

    def of(self, call: int, element: int, size: int) -> list[int]:
        """The lowest values of all parts but the first."""
        if self.of_cells:
            return self.of_cells[call][int(self.runs[call].keys[element])]
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


def rate_of(alpha: exact.Interval) -> float:
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
    """The chances of noise below, between and above these whole numbers, each summed by itself."""
    reach = ceil(40 * sqrt(0.5 / rate))
    values = np.arange(-reach, reach + 1)
    chances = np.exp(-rate * values.astype(float) ** 2)
    chances /= fsum(chances)
    ends = np.clip(np.array([-reach, *lowest, reach + 1]), -reach, reach + 1) + reach
    return [fsum(chances[low:high]) for low, high in itertools.pairwise(ends.tolist())]
