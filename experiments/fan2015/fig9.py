"""Figure 9 of Fan & Jin (2015): how many of the K most popular items are found, for K from 1 to 1000.

Paper   Fan & Jin, WWW 2015: section 6.3 and Figure 9.
Read    We read all numbers from the text. Our copy of the plots has only the axes.
Open    The settings are those of Figure 7, whose runs are shared. K is 1, 2, 3, 5, 10, … 1000. Ties at the
        K-th place count by their mean over random orders.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from itertools import product
from math import log
from typing import Any

import numpy as np

from experiments.fan2015._counts import (
    ABOVE_ZERO,
    DRAWN,
    IN_TITLES,
    OTHERS,
    OURS,
    PRECISION,
    TEN,
    TOPS,
    FiveMethods,
    count_metrics,
    differences,
    drawn_rows,
    mean_differences,
)
from experiments.fan2015.data import one_law, paper_first
from workbench.compiled import pd
from workbench.figures.fields import whole
from workbench.figures.plots import Panel
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
from workbench.value import value

FIRST = TOPS[0]
AHEAD = 100
LAST = TOPS[-1]
CURVE = ["panel", "series"]


# The checks of what Figure 9 says of precision over K.
#
# A step is clearly back where its interval says so; what is left within noise is no step back.


def _rise(rows, low: int, high: int) -> pd.DataFrame:
    """Return the difference of the precision between two values of K, by curve and seed."""
    by_top = rows.pivot(index=[*CURVE, "seed"], columns="top", values="value")
    if not {low, high} <= {*by_top}:
        raise MissingPoints(f"K = {low} and {high}")
    return (by_top[high] - by_top[low]).rename("value").reset_index()


def _by_curve(points: pd.DataFrame) -> Intervals:
    named = points.assign(method=points.series, series="curve")
    return means(named, "curve", ["panel", "method"])


def check_trend(rows, level, methods: Collection[str], sign: int) -> Finding:
    """Check whether each curve ends higher (sign 1) or lower (sign −1) than it starts, with few steps in the
    other direction.
    """
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
    """Check whether at least three quarters of the steps of each curve do not clearly go in the other
    direction.
    """
    ordered = rows.sort_values("top")
    step = ordered.groupby([*CURVE, "seed"]).value.diff() * sign
    points = ordered.assign(value=step, method=ordered.series, series="step")
    numbers = means(points.dropna(subset="value"), "step", ["panel", "method", "top"])
    table = numbers.at(1 - (1 - level) / len(numbers))
    back = (table.high < 0).groupby(level=["panel", "method"]).mean()
    return Finding(bool((back <= 1 - OFTEN).all()), f"clearly back at up to {back.max():.0%}")


def check_slower(rows, level) -> Finding:
    """Check whether the precision of the mechanism SRA falls by less than that of HPA per unit of log K, on
    every dataset.
    """
    lost = _rise(rows[rows.series.isin(OURS)], LAST, FIRST)
    lost["value"] /= log(LAST / FIRST)
    finding = _above_zero(mean_differences(differences(lost, ["HPA"], ["SRA"])), level)
    mean = lost.groupby("series").value.mean()
    rates = f"{mean.SRA:.3f} and {mean.HPA:.3f} a unit of log K, SRA and HPA"
    return Finding(finding.holds, f"{rates}; {finding.measured}", runs=finding.runs)


def check_first(rows, level, methods: Collection[str], low: float, high: float) -> Finding:
    """Check whether the share of runs that find the first item first is between `low` and `high`, for each
    mechanism.
    """
    own = rows[(rows.top == FIRST) & rows.series.isin(methods)]
    return check_between(_by_curve(own), level, low, high)


def check_superior(rows, level) -> Finding:
    """Check whether, on every dataset and for three quarters of the K up to 100, the worse of the mechanisms
    SRA and HPA is better than the best of the others.
    """
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
    """Check whether three quarters of the curves of the mechanisms SRA and HPA end below their precision at K
    = 10, and not clearly above the best of the other mechanisms.
    """
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
    """Check whether, on some dataset, one of the other mechanisms is at least as good as the mechanisms SRA
    and HPA at K = 1000.
    """
    last = rows[rows.top == LAST]

    def no_worse(own, level, rival):
        numbers = mean_differences(differences(own, [rival], OURS))
        return check_between(numbers, level, low=0, words="no worse")

    parts = {
        f"{rival} on {name}": partial(no_worse, own, rival=rival)
        for (name, own), rival in product(last.groupby("panel"), OTHERS)
    }
    return any_of(parts, level)


@value
class Fig9(FiveMethods):
    """Precision of the top K items by K, with one panel per dataset."""

    title = "Finding the K most popular items"
    page = "Fan & Jin, WWW 2015, section 6.3, Figure 9"
    height = 1.7
    main = 4
    sharey = True

    tops: tuple[int, ...] = whole(TOPS, "number K of top items", unit="items")

    def metrics(self) -> list[Any]:
        """Return the metrics, with the precision for every K."""
        return count_metrics(self.tops, TEN)

    def rows(self, store) -> pd.DataFrame:
        """Return the precision of the K items with the highest counts, for every K."""
        rows = super().rows(store)
        chosen = (rows.metric == PRECISION) & (rows.of == "items")
        return rows[chosen].astype({"top": int}).reset_index(drop=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels of all datasets, with the paper's first: for ε of the whole release, and
        then for the other meaning of ε.
        """
        grid = []
        for reading, name in product(DRAWN, paper_first(rows)):
            title = f"{name}, {IN_TITLES[reading].format(self.epsilon)}"
            grid.append(Panel(title, {"panel": name, "reading": reading}, "top", log="x"))
        return grid

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results of the five mechanisms, with synthetic stand-ins only under their own assumed
        law of popularity.
        """
        return drawn_rows(rows)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table of mean precisions for four K. It has one row per dataset, meaning of ε and
        mechanism, including the mechanisms for comparison.
        """
        chosen = one_law(rows[rows.top.isin((1, 10, AHEAD, LAST))])
        lines = ["panel", "reading", "series"]
        shares = chosen.pivot_table("value", lines, "top", "mean", sort=False)
        table = shares[sorted(shares)].map("{:.0%}".format)
        return table.rename_axis(["dataset", "ε", "method"]).rename_axis("K", axis=1)
