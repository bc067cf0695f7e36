"""Cut values that divide the range of a noisy value into a few parts, and the probabilities of these parts.

An audit compares two inputs, so each noisy value has two exact values, one for each input. The enumeration of
the noise distinguishes only whether the noisy value is below, between or above these two exact values. It also
distinguishes on which side of a public threshold the value is. One number represents each part. If there are
still too many combinations, values that are equal for both inputs get no noise. Gaussian noise is treated
differently, because the ratio of its probabilities varies within a part. If the exact values differ, each
possible noisy value is a part. If there are too many possible values, neighbouring values are grouped in
ranges.

Some mechanisms release an empty cell only if its noisy value passes a filter. The mechanism's own code gives
the probability of passing. A value that passed then follows the distribution of the noise under the condition
that the value passed. Suppose that the mechanism samples cells by their noisy values. Then each value up to the
threshold τ is a separate part, because each of these values is kept with a different probability.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from math import ceil, exp, expm1, fsum, sqrt
from typing import Any, NamedTuple

import numpy as np

from workbench.noise.discrete_gaussian import DiscreteGaussian

MOST_RUNS = 3000  # of either input
_LARGEST_RATE = 100.0  # of geometric noise, of which e⁻ʳ is nothing then
_REACH = 8  # standard deviations: beyond lies less than 10⁻¹⁴


class NotEnumerable(Exception):
    """Exception that is raised if the outcomes of a mechanism cannot be enumerated. The message gives the
    reason.
    """


# Cuts


class Call(NamedTuple):
    """Record of one call of `Source.add`, with which a mechanism adds noise. The record contains the exact
    values by cell or position, the distribution of their noise, and the filter that decides which empty cells
    are released.
    """

    exact: dict[int, int]
    law: Any
    empty: Any = None


class Cuts(NamedTuple):
    """Cut values, which divide the range of each noisy value into parts. Each cut value is the lowest value
    of a part. The first part has no lowest value.

    Parameters
    ----------
    calls : Cut values by call, and by cell or position. others : Cut values for all other values. constants :
    Constants that represent values without parts. bits : Positions of the bits that any count may set.
    empty_cells : Whether cells that are empty for both inputs may pass the filter.
    """

    calls: Sequence[dict[int, list[int]]] = ()
    others: Sequence[int] = ()
    constants: Sequence[Call] = ()
    bits: Sequence[int] = ()
    empty_cells: bool = False


def cuts_between(
    one: Sequence[Call],
    other: Sequence[Call],
    level: int,
    threshold: int | None,
    choices: int = 1,
) -> tuple[list[dict[int, list[int]]], list[int]]:
    """Return the cut values for each call of `Source.add`, which adds noise. The cut values divide noisy
    values into parts that distinguish the exact values of the two inputs. Also return one list of the cut
    values of all values that differ between the inputs. `choices` is the number of ways to choose candidates.
    """
    calls = [*zip(one, other, strict=True)]
    moved = sum(
        x.exact.get(name) != y.exact.get(name)
        for x, y in calls
        for name in {**x.exact, **y.exact}
        if is_gaussian(x.law)
    )
    parts = (MOST_RUNS / choices) ** (1 / max(1, moved))
    table = []
    everywhere: set[int] = set()
    for x, y in calls:
        cuts = {}
        for name in {**x.exact, **y.exact}:
            a, b = x.exact.get(name), y.exact.get(name)
            if a is not None and b is not None:
                if is_gaussian(x.law) and a != b:
                    cuts[name] = gaussian_cuts(a, b, x.law, parts)
                else:
                    cuts[name] = element_cuts(a, b, threshold, level)
            elif x.empty:
                cuts[name] = _entering_cuts(x.empty, x.law, parts)
            elif threshold is not None:
                cuts[name] = [threshold]
            if a != b:
                everywhere |= {*cuts[name]}
        table.append(cuts)
    return table, sorted(everywhere)


def element_cuts(a: int, b: int, threshold: int | None, level: int) -> list[int]:
    """Return the cut values for one count that is `a` for one input and `b` for the other. The cut values are
    between the two counts and at a public threshold. A higher `level` gives more cut values.
    """
    low, high = sorted((a, b))
    if low == high:
        return [low + 1] if level >= 1 else []
    cuts = {low + 1, high}
    if level >= 2:
        cuts |= {low, high + 1, high if threshold is None else threshold}
    return sorted(cuts)


def gaussian_cuts(a: int, b: int, law: DiscreteGaussian, parts: float) -> list[int]:
    """Return cut values for a value with Gaussian noise. Each likely noisy value is a separate part. If there
    would be too many parts, each part is a range of values.

    If only a few ranges are possible, the ranges are near the middle of the distribution, where they
    distinguish the two inputs best.
    """
    low, high = sorted((a, b))
    reach = _reach(law, parts)
    return _spread(low - reach, high + reach, min(high - low + 2 * reach + 1, int(parts) - 1))


def _reach(law: DiscreteGaussian, parts: float) -> int:
    return ceil(min(_REACH, parts / 5) * sqrt(0.5 / law.rate))


def _spread(low: int, high: int, count: int) -> list[int]:
    return np.linspace(low, high, max(1, count)).round().astype(int).tolist()


def _entering_cuts(empty: Any, law: Any, parts: float) -> list[int]:
    """Return cut values for empty cells, which are the lowest values of all parts except the first. Within a
    part, all values have the same probability to pass the filter.
    """
    above = [empty.theta]
    if empty.sampled:
        above = [*range(empty.theta, max(empty.theta, ceil(empty.tau)) + 1)]
    elif is_gaussian(law):
        count = int(parts / empty.sides) - 1
        above = _spread(empty.theta, empty.theta + _reach(law, parts), count)
    below = [1 - x for x in above] if empty.sides == 2 else []
    return sorted({*above, *below})


def kept(empty: Any, value: int) -> float:
    """Return the probability that an empty cell with this noisy value is released."""
    passing = value if empty.sides == 1 else abs(value)
    if passing < empty.theta:
        return 0.0
    return min(passing / float(empty.tau), 1.0) if empty.sampled else 1.0


# Parts


def is_gaussian(law: Any) -> bool:
    """Return whether the noise is Gaussian. If not, the noise is two-sided geometric."""
    return isinstance(law, DiscreteGaussian)


def chances_of_parts(law: Any, x: int, lowest: Sequence[int]) -> list[float]:
    """Return the probability of each part, when noise is added to the exact value `x`. The parts are below,
    between and above the cut values `lowest`.
    """
    rate = float(law.rate)
    if is_gaussian(law):
        return gaussian_parts(rate, tuple(a - x for a in lowest))
    if rate > _LARGEST_RATE:
        raise NotEnumerable("its noise is too small to compute with")
    inner = [between(a - x, b - x, rate) for a, b in itertools.pairwise(lowest)]
    return [upper_tail(x - lowest[0] + 1, rate), *inner, upper_tail(lowest[-1] - x, rate)]


def upper_tail(x: int, rate: float) -> float:
    """Return the probability that a two-sided geometric number is at least x. The distribution has the
    parameter α = exp(−rate).
    """
    if x > 0:
        return exp(-rate * x) / (1 + exp(-rate))
    return 1 - exp(-rate * (1 - x)) / (1 + exp(-rate))


def between(low: int, high: int, rate: float) -> float:
    """Return the probability that a two-sided geometric number is at least `low` and below `high`. The
    formula avoids a difference of two similar numbers, which would lose precision.
    """
    if low > 0:
        return upper_tail(low, rate) * -expm1(-rate * (high - low))
    if high <= 0:
        return between(1 - high, 1 - low, rate)
    below = -expm1(-rate * (1 - low))
    above = exp(-rate) * -expm1(-rate * (high - 1))
    return (below + above) / (1 + exp(-rate))


@lru_cache(4096)
def gaussian_parts(rate: float, lowest: tuple[int, ...]) -> list[float]:
    """Return the probability of each part of Gaussian noise. A part is an interval of integers, and `lowest`
    has the lowest integer of each part except the first. The function adds up the probabilities of all
    integers in a part.
    """
    reach = ceil(40 * sqrt(0.5 / rate))
    values = np.arange(-reach, reach + 1)
    chances = np.exp(-rate * values.astype(float) ** 2)
    chances /= fsum(chances)
    ends = np.clip(np.array([-reach, *lowest, reach + 1]), -reach, reach + 1) + reach
    return [fsum(chances[low:high]) for low, high in itertools.pairwise(ends.tolist())]
