"""Checks of numbers at the points of a figure. Each check decides at a level of confidence, and uses fixed
thresholds for the words of a paper.

*Can* means at one point or more. *Often*, *generally*, *usually* and *mostly* mean at three quarters of the
points or more, and *in all cases* means at all points. *Comparable*, *almost* and *close to* mean that two
values differ by at most the factor 1.25. *Orders of magnitude* means a factor of at least 10.

Suppose that a statement claims a property at `need` of n points or more. The check concludes that the
statement holds if the confidence intervals of `need` points show the property. If the statement is in fact
false, at least n − need + 1 points lack the property. The conclusion is then wrong only if the interval of
one of these points is wrong. So each interval has a level that is corrected for n − need + 1 comparisons. The
check concludes that the statement differs from our results if the intervals of n − need + 1 points show the
opposite. For this conclusion, each interval has a level that is corrected for `need` comparisons. So both
conclusions are wrong with at most the probability 1 − level.
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
    """Check whether numbers are between `low` and `high` at enough points of a figure. The argument `share`
    says how many points are enough.

    Parameters
    ----------
    numbers : Intervals
        Numbers to check, one per point, with their confidence intervals.
    level : float
        Level of confidence, for example 0.95. The check is wrong with probability at most 1 − level.
    low, high : float
        Smallest and largest number in the range.
    share : float
        Share of the points at which the number must be in the range: EVERYWHERE (all), OFTEN (three quarters)
        or SOMEWHERE (one point).
    words : str
        Word for numbers in this range, for example "lower". The text of the result uses this word.
    unit : str
        Unit after the numbers in the text of the result, for example "×" for ratios.
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
    """Check whether one series (a curve of a figure) is lower than another, by a factor of at least `times`.
    `ratios` contains the values of the first series divided by those of the second.
    """
    words = "lower" if times == 1 else f"{times:g}× lower"
    below = float(np.nextafter(1 / times, 0)) if times == 1 else 1 / times
    return check_between(ratios, level, high=below, share=share, words=words)


def check_similar(
    ratios: Intervals, level: float, share: float = OFTEN, within: float = ALIKE
) -> Finding:
    """Check whether two series (curves of a figure) differ by at most the factor `within` (default 1.25).
    `ratios` contains the values of the first series divided by those of the second.
    """
    words = f"within {within:g}×"
    return check_between(ratios, level, 1 / within, within, share, words)


def check_printed(
    numbers: Intervals, level: float, point: Printed, share: float = EVERYWHERE, unit: str = ""
) -> Finding:
    """Check whether measured numbers agree with a number that the paper prints. `point` contains the printed
    number with a tolerance, because someone may have read the number off a figure.
    """
    finding = check_between(numbers, level, point.low, point.high, share, "as printed", unit)
    return replace(finding, printed=point.says)


Part = Callable[[float], Finding]


def all_of(parts: Mapping[str, Part], level: float) -> Finding:
    """Combine the checks of several parts of a statement. The statement holds if all parts hold, and is
    contradicted if one part is contradicted.

    The function checks each part at a level of confidence above `level`. So the combined result is wrong with
    probability at most 1 − level.
    """
    return _joined(parts, level, decide_all, max)


def any_of(parts: Mapping[str, Part], level: float) -> Finding:
    """Combine the checks of several parts of a statement. The statement holds if one part holds, and is
    contradicted if all parts are contradicted.
    """

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
    """Check a statement that depends on a parameter whose value the paper does not print. The function checks
    the statement at every plausible value of this parameter.

    The outcome is "holds" if the statement holds at all values, and "differs" if the results contradict the
    statement at all values. If the statement holds at some values and is contradicted at others, the outcome
    is "depends on what is not printed". For neighbouring values with the same outcome, the result shows only
    the measurement at the first value.

    Parameters
    ----------
    name : str
        Name of the parameter, for example "θ". If several parameters are unprinted, separate their names by
        commas, for example "θ, R".
    values : sequence
        Plausible values, in order. If there are several parameters, each value is a tuple.
    check_at : callable
        Function that checks the statement at one value, and returns a `Finding`. Its arguments are the value
        and a level of confidence.
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
    """Return the numbers that the paper prints, from all findings, without repetition."""
    return "; ".join(dict.fromkeys(f.printed for f in findings if f.printed))


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        text = ", ".join(map(_text, value))
        return f"({text})" if len(value) > 1 else text
    if isinstance(value, int):
        return f"{value:,}"
    return format_number(value) if isinstance(value, int | float) else str(value)


def _divided(level: float, by: int) -> float:
    """Return the level of confidence that each of `by` intervals needs, so that all of them are right
    together with at least the probability `level`.
    """
    return 1 - (1 - level) / by


def _span(points: pd.DataFrame, unit: str) -> str:
    """Return the smallest and the largest estimate as text. If there is only one point, the text also
    contains its interval.
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
    """Return, for each point, the estimated number of runs after which the check can decide. The estimate
    assumes that the length of an interval falls with the square root of the number of runs.
    """
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
