"""Curves of means over seeds: with intervals, where they cross, and in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import exp, inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.claims.finding import MissingPoints

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float

FOLLOWS_FROM_SEED = ("value", "seconds", "released", "by_theorem", "trial")


def confidence_intervals(
    rows: pd.DataFrame, by: str | list[str], level: float = 0.95
) -> pd.DataFrame:
    """Mean of `value` over seeds at each point, with its t interval: columns mean, low, high, seeds.

    Parameters
    ----------
    rows : DataFrame
        At each point a row a seed; without a column `seed`, one row, or repetitions of it.
    by : str or list of str
        The columns that make a point.
    level : float
        Of confidence.

    Raises
    ------
    ValueError
        If rows of one point and one seed differ in more than what follows from the seed.
    """
    import pandas as pd
    from scipy.special import stdtrit  # t's quantiles; scipy.stats takes a third of a second

    refuse_mixed(rows, [by] if isinstance(by, str) else by)
    grouped = rows.groupby(by).value
    points = pd.DataFrame({"mean": grouped.mean(), "seeds": grouped.count()})
    quantile = stdtrit(np.maximum(points.seeds - 1, 1), (1 + level) / 2)
    half_width = quantile * grouped.std().fillna(np.inf) / np.sqrt(points.seeds)
    return points.assign(low=points["mean"] - half_width, high=points["mean"] + half_width)


def refuse_mixed(rows: pd.DataFrame, by: list[str]) -> None:
    """A ValueError where a mean would be over more than seeds: it names what else rows differ in."""
    run = [*by, "seed"] if "seed" in rows else by
    again = rows.duplicated(run, keep=False)
    if not again.any():
        return
    repeated = rows[again].dropna(subset=by)
    mixed = []
    for column in repeated.columns.difference([*run, *FOLLOWS_FROM_SEED], sort=False):
        values = repeated[[*run, column]].drop_duplicates()
        several = values[values.duplicated(run, keep=False)]
        if len(several):
            first = several.groupby(run, sort=False, dropna=False)[column].unique().iloc[0]
            more = ", …" * (len(first) > 3)
            mixed.append(f"{column} ({', '.join(map(str, first[:3]))}{more})")
    if mixed:
        raise ValueError(
            f"rows of one point ({', '.join(by)}) mix {'; '.join(mixed[:3])}: a mean is taken over seeds "
            "only. Put it on an axis, in a panel or in the series' name"
        )


def mean_curve(rows: pd.DataFrame, by: str, level: float = 0.95, **where: Any) -> pd.DataFrame:
    """The `confidence_intervals` over `by` of the rows whose columns equal what `where` says."""
    for column, x in where.items():
        rows = rows[rows[column] == x]
    if rows.empty:
        raise MissingPoints(f"no rows have {where}")
    return confidence_intervals(rows, by, level)


def crossing(one: pd.DataFrame, other: pd.DataFrame) -> float:
    """Where the curve `one` falls below `other` for good; NaN if it never does.

    Both come from `mean_curve`; between points they are straight lines on logarithmic axes.
    """
    one, other = _paired(one, other)
    gap = (one["mean"] / other["mean"]).map(lambda ratio: log(ratio) if ratio > 0 else -inf)
    above = [x for x in gap.index if gap[x] >= 0]
    if not above:
        return float(gap.index[0])
    after = gap.index[gap.index > above[-1]]
    if after.empty:
        return float("nan")
    left = above[-1]
    right = after[0]
    step = log(right) - log(left)
    return exp(log(left) + step * gap[left] / (gap[left] - gap[right]))


def interpolate_log_log(
    x: Sequence[float], y: Sequence[float]
) -> Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]]:
    """The function through the points (x, y): straight on logarithmic axes, NaN beyond the ends.

    `x` must increase; where a `y` is 0, so is the function up to its neighbours. The function can be
    pickled.

    >>> interpolate_log_log([1, 100], [1, 10_000])(np.array([10, 1000])).round(6).tolist()
    [100.0, nan]
    """
    with np.errstate(divide="ignore"):
        return partial(_interpolate, np.log(np.asarray(x, float)), np.log(np.asarray(y, float)))


def _interpolate(
    log_x: Float[np.ndarray, "..."],
    log_y: Float[np.ndarray, "..."],
    at: Float[np.ndarray, "..."],
) -> Float[np.ndarray, "..."]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.exp(np.interp(np.log(at), log_x, log_y, np.nan, np.nan))


def _paired(ours: pd.DataFrame, other: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    points = ours.index.intersection(other.index)
    if points.empty:
        raise MissingPoints("the two curves have no point in common")
    return ours.loc[points], other.loc[points]
