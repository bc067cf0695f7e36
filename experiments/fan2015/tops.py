"""Fan & Jin 2015: the checks of what Figures 7 to 9 say of the most popular items.

Rows are of one reading of ε and one law of popularity (see `judged`). Precisions are compared by
differences, seed by seed, as many of them are 0 or 1.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import product
from math import nextafter, sqrt

from experiments.fan2015._five_methods import OTHERS, OURS
from experiments.fan2015._paper import rows_of
from experiments.fan2015.data import one_law
from experiments.fan2015.unreleased import TopItems
from workbench.compiled import pd
from workbench.trials.claims import Finding, Intervals, check_between, exact, means

ABOVE_ONE = nextafter(1, 2)
ABOVE_ZERO = nextafter(0, 1)


def check_lost(rows, level) -> Finding:
    """LPA, DFT and GS find fewer than half of the ten, on every dataset."""
    points = rows[rows.series.isin(OTHERS)].assign(method=rows.series, series="share")
    numbers = means(points, "share", ["method", "panel"])
    return check_between(numbers, level, high=nextafter(0.5, 0), words="fewer than half")


def differences(
    rows, more: Collection[str], fewer: Collection[str], by: Collection[str] = ("panel",)
) -> pd.DataFrame:
    """By how much each of some methods is above each of others, seed by seed: a `pair` each."""
    by_seed = rows.pivot(index=[*by, "seed"], columns="series", values="value")
    frames = [
        (by_seed[a] - by_seed[b]).rename("value").reset_index().assign(pair=f"{a} − {b}")
        for a, b in product(more, fewer)
    ]
    return pd.concat(frames).assign(series="difference").dropna(subset="value")


def mean_differences(
    points: pd.DataFrame, by: Collection[str] = ("pair", "panel")
) -> Intervals:
    """The same as numbers at points."""
    return means(points, "difference", [*by])


def check_more(
    rows, level, more: Collection[str] = OURS, fewer: Collection[str] = OTHERS
) -> Finding:
    """Each of some methods finds more than each of others, on every dataset."""
    numbers = mean_differences(differences(rows, more, fewer))
    return check_between(numbers, level, low=ABOVE_ZERO, words="more")


def check_ahead(rows, level) -> Finding:
    """HPA finds more than SRA, on every dataset where not both find all in all runs."""
    own = rows[rows.series.isin(OURS)]
    least = own.groupby("panel").value.min()
    open_to = own[own.panel.isin(least.index[least < 1])]
    if open_to.empty:
        return Finding(False, "both find all, everywhere")
    return check_more(open_to, level, ["HPA"], ["SRA"])


def check_all_found(rows, level) -> Finding:
    """HPA finds all of the ten: one less in one of 20 runs is nearest to that."""
    return check_between(means(rows, "HPA", "panel"), level, low=0.995)


def check_noise_hides(rows, level) -> Finding:
    """The deviation of LPA's noise is above what the first item is ahead of the tenth, everywhere."""
    own = rows[(rows.series == "LPA") & (rows.quantity == TopItems.AHEAD)]
    deviation = sqrt(2) * own.bound / (own.epsilon / 2)
    times = (deviation / own.value).groupby(own.panel).first()
    return check_between(exact(times), level, low=ABOVE_ONE, words="above")


def check_smoothed(rows, level) -> Finding:
    """DFT and GS release less between the ten and the next ten than is there, on every dataset."""
    own = rows[rows.series.isin(("DFT", "GS"))]
    keys = ["series", "panel", "seed"]
    by_seed = own.pivot(index=keys, columns="quantity", values="value")
    lost = by_seed[TopItems.TRUE] - by_seed[TopItems.RELEASED]
    points = lost.rename("value").reset_index()
    points = points.assign(method=points.series, series="difference")
    numbers = mean_differences(points, ["method", "panel"])
    return check_between(numbers, level, low=ABOVE_ZERO, words="less")


def check_no_majority(rows, level) -> Finding:
    """Nobody's most popular film has been rated by more than half of the users."""
    own = one_law(rows_of(rows, "MovieLens"))
    share = own[own.quantity == TopItems.FIRST].value.iloc[0]
    return Finding(bool(share <= 0.5), f"the most rated film: {share:.1%} of the users")
