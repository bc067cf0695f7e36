"""Fan & Jin 2015: the checks of what Figure 9 says of precision over K.

A step is clearly back where its interval says so; what is left within noise is no step back.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from itertools import product
from math import log

import numpy as np

from experiments.fan2015._counts import TOPS
from experiments.fan2015._five_methods import OTHERS, OURS, TEN
from experiments.fan2015.tops import ABOVE_ZERO, differences, mean_differences
from workbench.compiled import pd
from workbench.trials.claims import (
    OFTEN,
    Finding,
    Intervals,
    MissingPoints,
    all_of,
    any_of,
    check_between,
    decide,
    means,
)

FIRST = TOPS[0]
AHEAD = 100
LAST = TOPS[-1]
CURVE = ["panel", "series"]


def _rise(rows, low: int, high: int) -> pd.DataFrame:
    """How much a precision gains from one K to another, by curve and seed."""
    by_top = rows.pivot(index=[*CURVE, "seed"], columns="top", values="value")
    if not {low, high} <= {*by_top}:
        raise MissingPoints(f"K = {low} and {high}")
    return (by_top[high] - by_top[low]).rename("value").reset_index()


def _by_curve(points: pd.DataFrame) -> Intervals:
    named = points.assign(method=points.series, series="curve")
    return means(named, "curve", ["panel", "method"])


def check_trend(rows, level, methods: Collection[str], sign: int) -> Finding:
    """Each curve ends higher (sign 1) or lower (−1) than it starts, with few steps back."""
    own = rows[rows.series.isin(methods)]
    ends = _rise(own, FIRST, LAST)
    ends["value"] *= sign
    return all_of(
        {
            "from K = 1 to 1000": partial(_above_zero, _by_curve(ends)),
            "steps": partial(_few_steps_back, own, sign=sign),
        },
        level,
    )


def _above_zero(numbers: Intervals, level: float, share: float = 1.0) -> Finding:
    return check_between(numbers, level, low=ABOVE_ZERO, share=share, words="so")


def _few_steps_back(rows, level, sign: int) -> Finding:
    """At three quarters of the steps of each curve it does not clearly go the other way."""
    ordered = rows.sort_values("top")
    step = ordered.groupby([*CURVE, "seed"]).value.diff() * sign
    points = ordered.assign(value=step, method=ordered.series, series="step")
    numbers = means(points.dropna(subset="value"), "step", ["panel", "method", "top"])
    table = numbers.at(1 - (1 - level) / len(numbers))
    back = (table.high < 0).groupby(level=["panel", "method"]).mean()
    return Finding(bool((back <= 1 - OFTEN).all()), f"clearly back at up to {back.max():.0%}")


def check_slower(rows, level) -> Finding:
    """SRA loses less than HPA for each unit of log K, on every dataset."""
    lost = _rise(rows[rows.series.isin(OURS)], LAST, FIRST)
    lost["value"] /= log(LAST / FIRST)
    finding = _above_zero(mean_differences(differences(lost, ["HPA"], ["SRA"])), level)
    mean = lost.groupby("series").value.mean()
    rates = f"{mean.SRA:.3f} and {mean.HPA:.3f} a unit of log K, SRA and HPA"
    return Finding(finding.holds, f"{rates}; {finding.measured}", runs=finding.runs)


def check_first(rows, level, methods: Collection[str], low: float, high: float) -> Finding:
    """How often the first item is found first: from one share to another, for each method."""
    own = rows[(rows.top == FIRST) & rows.series.isin(methods)]
    return check_between(_by_curve(own), level, low, high)


def check_superior(rows, level) -> Finding:
    """On every dataset: at three quarters of the K up to 100 the worse of ours is above the best rival."""
    points = differences(rows[rows.top <= AHEAD], OURS, OTHERS, ["panel", "top"])
    by_pair = points.groupby(["panel", "top", "pair"]).value.mean()
    closest = by_pair.groupby(["panel", "top"]).idxmin()
    of_pair = points.set_index(["panel", "top", "pair"]).index.isin(closest)
    parts = {
        name: partial(_above_zero, mean_differences(own, ["top"]), share=OFTEN)
        for name, own in points[of_pair].groupby("panel")
    }
    return all_of(parts, level)


def check_not_distinguished(rows, level) -> Finding:
    """Three quarters of our curves end below their own K = 10, not clearly above the best rival there."""
    falls = _by_curve(_rise(rows[rows.series.isin(OURS)], LAST, TEN))
    last = rows[rows.top == LAST]
    mean = last[last.series.isin(OTHERS)].groupby(["panel", "series"]).value.mean()
    best = mean.groupby("panel").idxmax()
    chosen = last.set_index(["panel", "series"]).index.isin(best)
    rivals = last[chosen].assign(series="best")
    lead = differences(pd.concat([last[last.series.isin(OURS)], rivals]), OURS, ["best"])
    lead["series"] = lead.pair.str.split(" ").str[0]
    own = 1 - (1 - level) / (2 * len(falls))
    fall = falls.at(own)
    ahead = _by_curve(lead).at(own).reindex(fall.index)
    yes = (fall.low > 0) & ~(ahead.low > 0)
    no = (fall.high <= 0) | (ahead.low > 0)
    need = int(np.ceil(OFTEN * len(yes)))
    holds = decide(yes.sum() >= need, no.sum() > len(no) - need)
    return Finding(holds, f"{yes.sum()} of {len(yes)} curves surely, {no.sum()} surely not")


def check_rivals_last(rows, level) -> Finding:
    """Somewhere a rival is at K = 1000 no worse than SRA, and than HPA."""
    last = rows[rows.top == LAST]

    def no_worse(own, level, rival):
        numbers = mean_differences(differences(own, [rival], OURS))
        return check_between(numbers, level, low=0, words="no worse")

    parts = {
        f"{rival} on {name}": partial(no_worse, own, rival=rival)
        for (name, own), rival in product(last.groupby("panel"), OTHERS)
    }
    return any_of(parts, level)
