"""Values at which noise is cut into events, and how likely its parts are.

Each noisy value is only below, between or above the values that it has under the two neighbours (and a
public threshold), and one value stands for each part. Where that are too many ways, values that neither
neighbour moves have no noise at all. Gaussian values that a neighbour moves are told apart value by value,
or, where those are too many, in as many ranges as can be run through.

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
from typing import Any, NamedTuple

import numpy as np

from workbench.noise.discrete_gaussian import DiscreteGaussian
from workbench.noise.empty_cells import GaussianCell
from workbench.noise.laws import Interval

MOST_RUNS = 3000  # of either input
_REACH = 8  # standard deviations: beyond lies less than 10⁻¹⁴


class NotEnumerable(Exception):
    """Why a law cannot be computed by running through all draws."""


# Cuts


class Filter(NamedTuple):
    """Which noisy values of cells are released: from θ on, sampled below τ."""

    theta: float
    tau: float
    sides: int

    @property
    def lowest(self) -> int:
        """The smallest value that is released."""
        return max(ceil(self.theta), 0 if self.sides == 1 and not self.tau else 1)

    def kept(self, value: int) -> float:
        """The chance that this noisy value is released."""
        passing = value if self.sides == 1 else abs(value)
        if passing < self.lowest:
            return 0.0
        return min(passing / self.tau, 1.0) if self.tau else 1.0

    def cuts(self, rate: float, parts: float) -> list[int]:
        """The lowest values of all parts but the first, none of which the filter cuts in two.

        Of Gaussian noise, of which a `rate` is given, so many `parts` as there may be.
        """
        lowest = self.lowest
        above = [lowest]
        if self.tau:
            above = [*range(lowest, max(lowest, ceil(self.tau)) + 1)]
        elif rate:
            reach = ceil(min(_REACH, parts / 5) * sqrt(0.5 / rate))
            above = _spread(lowest, lowest + reach, int(parts / self.sides) - 1)
        below = [1 - x for x in above] if self.sides == 2 else []
        return sorted({*above, *below})


class Call(NamedTuple):
    """The exact values of one call of `Source.add` by cell or place, and what is done with them."""

    exact: dict[int, int]
    rate: float  # of Gaussian noise; 0 of others
    filter: Filter | None = None


class Cuts(NamedTuple):
    """The lowest values of all parts but the first, of each value of each call.

    Parameters
    ----------
    calls : by call and by cell or place.
    others : of all other values.
    constants : what stands for values without parts.
    bits : which some count may set.
    empty_cells : whether cells that are empty for both inputs may survive.
    """

    calls: Sequence[dict[int, list[int]]] = ()
    others: Sequence[int] = ()
    constants: Sequence[Call] = ()
    bits: Sequence[int] = ()
    empty_cells: bool = False


def cuts_between(
    one: Sequence[Call], other: Sequence[Call], level: int, threshold: int | None
) -> tuple[list[dict[int, list[int]]], list[int]]:
    """Where the values of two inputs are told apart, by call, and all cuts of values that move."""
    moved = sum(
        x.exact.get(name) != y.exact.get(name)
        for x, y in zip(one, other, strict=True)
        for name in {**x.exact, **y.exact}
        if x.rate
    )
    parts = MOST_RUNS ** (1 / max(1, moved))
    calls = []
    everywhere: set[int] = set()
    for x, y in zip(one, other, strict=True):
        cuts = {}
        for name in {**x.exact, **y.exact}:
            a, b = x.exact.get(name), y.exact.get(name)
            if a is not None and b is not None:
                if x.rate and a != b:
                    cuts[name] = gaussian_cuts(a, b, x.rate, parts)
                else:
                    cuts[name] = element_cuts(a, b, None if x.filter else threshold, level)
            elif x.filter:
                cuts[name] = x.filter.cuts(x.rate, parts)
            elif threshold is not None:
                cuts[name] = [threshold]
            if a != b:
                everywhere |= {*cuts[name]}
        calls.append(cuts)
    return calls, sorted(everywhere)


def element_cuts(a: int, b: int, threshold: int | None, level: int) -> list[int]:
    """Between two counts, and at a public threshold; the finer, the higher the level."""
    low, high = sorted((a, b))
    if low == high:
        return [low + 1] if level >= 1 else []
    cuts = {low + 1, high}
    if level >= 2:
        cuts |= {low, high + 1, high if threshold is None else threshold}
    return sorted(cuts)


def gaussian_cuts(a: int, b: int, rate: float, parts: float) -> list[int]:
    """Each value on which much of either law lies, or as many ranges of them as there may be parts.

    The fewer there are, the closer to the middle they tell most.
    """
    low, high = sorted((a, b))
    reach = ceil(min(_REACH, parts / 5) * sqrt(0.5 / rate))
    return _spread(low - reach, high + reach, min(high - low + 2 * reach + 1, int(parts) - 1))


def _spread(low: int, high: int, count: int) -> list[int]:
    return np.linspace(low, high, max(1, count)).round().astype(int).tolist()


# Parts


def parts_of(law: Any) -> Callable[[int, Sequence[int]], list[float]]:
    """The chances of noise on a value below, between and above cuts."""
    if isinstance(law, DiscreteGaussian | GaussianCell):
        rate = float(law.rate)
        return lambda x, lowest: gaussian_parts(rate, tuple(a - x for a in lowest))
    decay = _rate_of(law.alpha(192))

    def weights(x: int, lowest: Sequence[int]) -> list[float]:
        below = upper_tail(x - lowest[0] + 1, decay)
        inner = [between(a - x, b - x, decay) for a, b in itertools.pairwise(lowest)]
        return [below, *inner, upper_tail(lowest[-1] - x, decay)]

    return weights


def _rate_of(alpha: Interval) -> float:
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
