"""Cells that are empty under one neighbour alone: told apart alike, whether noise or a coin lets them in.

An empty cell that survives has the law of its noise given that it passed, so that it is as likely as an
occupied one to be released with a value of each part. How likely it is to survive is what the mechanism's
own code says. Where values are sampled every value up to τ is a part, as each is kept by another chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np

from workbench.arrays import Int
from workbench.audit.cuts import MOST_RUNS, element_cuts, gaussian_cuts


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
