"""Checks of numbers at the points of a figure, at a level of confidence, with thresholds for the words of a
paper.

*Can* means at one point or more, *often, generally, usually, mostly* at three quarters of the points,
and *in all cases* at all points. *Comparable, almost, close to* mean within a factor of 1.25, and
*orders of magnitude* a factor of at least 10.

Suppose that a statement claims a property at `need` of n points. It holds if the confidence intervals of
`need` points show the property. Each interval has a level that is corrected for n − need + 1 comparisons.
The correction suffices, because a wrong result needs a wrong interval at one of the n − need + 1 points
without the property. It differs if the intervals of n − need + 1 points show the opposite, each at the
level for `need` points. Both conclusions keep the error rate of the level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil, inf, log2
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.trials.claims.claim import ALIKE, Finding, Printed, Strip, decide, decide_all
from workbench.trials.claims.intervals import Intervals
from workbench.value import format_number

if TYPE_CHECKING:
    import pandas as pd


EVERYWHERE = 1.0
OFTEN = 0.75
SOMEWHERE = 0.0


def check_between(
    numbers: Intervals,
    level: float,
    low: float = -inf,
    high: float = inf,
    share: float = EVERYWHERE,
    words: str = "there",
    unit: str = "",
) -> Finding:
    """Check whether numbers lie between `low` and `high`. A stated share of the points must do so.

    Parameters
    ----------
    numbers : Intervals
        Numbers to check, with their intervals.
    level : float
        Level of confidence at which the check decides.
    low, high : float
        Ends of the range, both included.
    share : float
        EVERYWHERE, OFTEN, or SOMEWHERE.
    words : str
        Word for numbers in this range, for example "lower".
    unit : str
        Unit that is written after the numbers, for example "×" for ratios.
    """
    count = len(numbers.at(level))
    need = max(1, ceil(share * count - 1e-9))
    against = count - need + 1
    points = numbers.at(_divided(level, against))
    inside = (points.low >= low) & (points.high <= high)
    opposed = numbers.at(_divided(level, need))
    outside = (opposed.high < low) | (opposed.low > high)
    there = points.estimate.between(low, high)
    measured = _span(points, "×" if numbers.ratios else unit)
    if count > 1:
        measured += f"; {words} at {there.sum()} of {count} points, surely at {inside.sum()}"
    holds = decide(inside.sum() >= need, outside.sum() >= against)
    runs = np.nan
    if holds is None:
        leans = there.sum() >= need
        which = there if leans else ~there
        table = points if leans else opposed
        each = _runs_to_decide(table[which], low, high, level, numbers.ratios)
        runs = float(np.sort(each)[(need if leans else against) - 1])
    return Finding(holds, measured, runs=runs)


def check_lower(
    ratios: Intervals, level: float, share: float = EVERYWHERE, times: float = 1.0
) -> Finding:
    """Check whether the first series of ratios is lower than the second by a factor of at least `times`."""
    words = "lower" if times == 1 else f"{times:g}× lower"
    below = float(np.nextafter(1 / times, 0)) if times == 1 else 1 / times
    return check_between(ratios, level, high=below, share=share, words=words)


def check_similar(
    ratios: Intervals, level: float, share: float = OFTEN, within: float = ALIKE
) -> Finding:
    """Check whether two series differ by at most the factor 1.25."""
    words = f"within {within:g}×"
    return check_between(ratios, level, 1 / within, within, share, words)


def check_printed(
    numbers: Intervals, level: float, point: Printed, share: float = EVERYWHERE, unit: str = ""
) -> Finding:
    """Check whether numbers agree with those of the paper, within the error of reading its figure."""
    finding = check_between(numbers, level, point.low, point.high, share, "as printed", unit)
    return replace(finding, printed=point.says)


Part = Callable[[float], Finding]


def all_of(parts: Mapping[str, Part], level: float) -> Finding:
    """Combine several parts to one statement. It holds if all parts hold, and differs if one part differs.

    Each part is checked at a stricter level, so that the error rate of all parts together is that of
    `level`.
    """
    return _joined(parts, level, decide_all, max)


def any_of(parts: Mapping[str, Part], level: float) -> Finding:
    """Combine several parts to one statement. It holds if one part holds, and differs if all parts differ."""

    def decide_any(holds: Sequence[bool | None]) -> bool | None:
        return decide(True in holds, all(x is False for x in holds))

    return _joined(parts, level, decide_any, min)


def _joined(
    parts: Mapping[str, Part],
    level: float,
    decided: Callable[..., Any],
    last: Callable[..., Any],
) -> Finding:
    own = _divided(level, len(parts))
    findings = {name: part(own) for name, part in parts.items()}
    answers = {True: "yes", False: "no", None: "undecided"}
    measured = [f"{name}: {answers[f.holds]} ({f.measured})" for name, f in findings.items()]
    why = [f.why for f in findings.values() if f.why]
    runs = last([f.runs for f in findings.values() if f.holds is None], default=np.nan)
    holds = decided([f.holds for f in findings.values()])
    printed = _all_printed(findings.values())
    return Finding(holds, "; ".join(measured), " ".join(why), runs=runs, printed=printed)


def over(
    name: str, values: Sequence[Any], check_at: Callable[[Any, float], Finding], level: float
) -> Finding:
    """Check a statement at every plausible value of a parameter that the paper does not print.

    The statement holds if it holds at all values, and differs if it differs at all values. If it holds at
    some and differs at others, it depends on the unprinted value. Where neighbouring values have the same
    outcome, the result has the measurement at the first of them.

    Parameters
    ----------
    name : str
        Name of the parameter, for example "θ". Several names are separated by commas, for example "θ, R".
    values : sequence
        Values in order. For several names, the values are tuples.
    check_at : callable
        Function of a value and of the level of the check at this value. It returns a `Finding`.
    level : float
        Level of confidence for all values together.

    Examples
    --------
    >>> pairs = [(1, 0.1), (5, 0.1)]
    >>> over("few, ε", pairs, lambda x, level: Finding(x[0] == 1, "m"), 0.9).strip.in_words()
    'holds for (few, ε) = (1, 0.1); differs for (few, ε) = (5, 0.1)'
    """
    own = _divided(level, len(values))
    name = f"({name})" if isinstance(values[0], tuple) and len(values[0]) > 1 else name
    findings = {_text(value): check_at(value, own) for value in values}
    strip = Strip(name, tuple((value, f.holds) for value, f in findings.items()))
    outcomes = strip.outcomes
    first = [
        value
        for value, before in zip(findings, [None, *findings], strict=False)
        if before is None or findings[value].holds != findings[before].holds
    ]
    measured = [f"{name} = {value}: {findings[value].measured}" for value in first]
    holds = outcomes.pop() if len(outcomes) == 1 else None
    runs = max((f.runs for f in findings.values() if f.holds is None), default=np.nan)
    printed = _all_printed(findings.values())
    return Finding(holds, "; ".join(measured), runs=runs, strip=strip, printed=printed)


def _all_printed(findings: Iterable[Finding]) -> str:
    """Return the printed numbers of all findings, without repetition."""
    return "; ".join(dict.fromkeys(f.printed for f in findings if f.printed))


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        text = ", ".join(map(_text, value))
        return f"({text})" if len(value) > 1 else text
    if isinstance(value, int):
        return f"{value:,}"
    return format_number(value) if isinstance(value, int | float) else str(value)


def _divided(level: float, by: int) -> float:
    """Return the level that each of `by` intervals needs so that all of them together keep `level`."""
    return 1 - (1 - level) / by


def _span(points: pd.DataFrame, unit: str) -> str:
    """Return the smallest and the largest value, in words. For a single point, the text includes its
    interval.
    """
    least = format_number(points.estimate.min())
    largest = format_number(points.estimate.max())
    if len(points) > 1 and least != largest:
        return f"{least}–{largest}{unit}"
    (first, *_) = points.itertuples()
    if len(points) > 1 or first.low == first.high:
        return f"{least}{unit}"
    return f"{least}{unit} ({format_number(first.low)}–{format_number(first.high)})"


def _runs_to_decide(
    points: pd.DataFrame, low: float, high: float, level: float, ratios: bool
) -> np.ndarray:
    """Return the number of runs that each point needs if its interval shrinks with their square root."""
    columns = points[["estimate", "low", "high"]].to_numpy(float).T
    ends = np.array([low, high])
    with np.errstate(all="ignore"):
        if ratios:
            columns = np.log(columns)
            ends = np.log(np.maximum(ends, 0))
        estimate, first, last = columns
        half = np.maximum(estimate - first, last - estimate)
        distance = np.abs(estimate[:, None] - ends).min(axis=1)
        runs = points.runs.to_numpy() * np.maximum(half / distance, 1) ** 2
    least = np.maximum(points.runs + 1, 1 + log2(1 / (1 - level)))  # of the sign test
    return np.where(np.isfinite(half), runs, least)
