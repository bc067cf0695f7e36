"""Confidence intervals for ratios of two series (curves), for means of a series, and the position where two
curves cross.

If runs of two series have the same seed, they use the same data and queries. So we divide the values of one
series by those of the other, seed by seed. If both values are zero, or both are infinite, the ratio is 1. If
only one value is zero, the ratio is 0 or infinite. A pair with a missing value (NaN) is left out.

If the logarithms of all ratios at a point are finite, the estimate is the geometric mean of the ratios, and
the interval is a Student t interval of the logarithms. Otherwise the estimate is the median, and the interval
is between two order statistics, as in the sign test. The median is also used if all ratios are equal, because
their spread cannot be estimated. The interval of the sign test is valid for every distribution. If there are
too few runs for the level of confidence, this interval is infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import exp, inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.trials.claims.claim import MissingPoints

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float


# Curves

FOLLOWS_FROM_SEED = ("value", "seconds", "released", "by_theorem", "trial")


def confidence_intervals(
    rows: pd.DataFrame, by: str | list[str], level: float = 0.95
) -> pd.DataFrame:
    """Compute the mean over seeds (repetitions) of the column `value`, for each point of a curve. Each mean
    gets a confidence interval from Student's t distribution. The result has the columns `mean`, `low` and
    `high` (the ends of the interval), and `seeds` (the number of seeds).

    Parameters
    ----------
    rows : DataFrame
        Table with one row per point and seed. If the table has no column `seed`, several rows of the same
        point count as repetitions.
    by : str or list of str
        Columns that identify a point.
    level : float
        Level of confidence. Default 0.95.

    Raises
    ------
    ValueError
        If the rows of a point differ in a column that does not depend on the seed. Such rows belong to
        different curves.
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
    """Raise a ValueError if rows of the same point differ in a column that does not depend on the seed. The
    message names such columns.
    """
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
            f"rows of one point ({', '.join(by)}) mix {'; '.join(mixed[:3])}, but a mean may be "
            "over seeds only. Put this column on an axis, in a panel or in the name of the series"
        )


def mean_curve(rows: pd.DataFrame, by: str, level: float = 0.95, **where: Any) -> pd.DataFrame:
    """Compute a curve of means over seeds, with confidence intervals. The curve has one point for each value
    of the column `by`. The function uses only rows that have the values in `where`, for example `panel="a"`.
    """
    return confidence_intervals(select(rows, **where), by, level)


def crossing(one: pd.DataFrame, other: pd.DataFrame) -> float:
    """Find the position on the horizontal axis after which the first curve stays below the second. Return NaN
    if there is no such position.

    Both curves are results of `mean_curve`. Between two points, a curve is a straight line on logarithmic
    axes.
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
    """Return a function that interpolates between the points (x, y) by straight lines on logarithmic axes.
    Outside the range of x, the function is NaN.

    The values in `x` must be increasing. If a value in `y` is 0, the function is 0 between the neighbouring
    points on both sides.

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


# Intervals

SAME = 1e-12  # numbers that differ by less, relatively, differ by rounding


@dataclass(frozen=True)
class Intervals:
    """Estimates at several points on a horizontal axis, with confidence intervals from repeated trials.

    Parameters
    ----------
    at : callable
        Function that takes a level of confidence and returns a table with one row per point. The columns of
        the table are `estimate`, `low` and `high` (the ends of the interval), and `runs` (the number of
        repetitions).
    ratios : bool
        Whether the estimates are ratios of two series.
    """

    at: Callable[[float], pd.DataFrame]
    ratios: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", cache(self.at))  # checks ask for a level again

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.at(0.5))

    def over(self, law: pd.Series | float) -> Intervals:
        """Divide the estimates and the ends of their intervals by exact values, for example from a formula.
        `law` contains the exact values: one number, or a series with one value per point.
        """

        def divided(level: float) -> pd.DataFrame:
            points = self.at(level)
            columns = ["estimate", "low", "high"]
            known = points[columns].div(law, axis=0).dropna(subset="estimate")
            if known.empty:
                raise MissingPoints("the closed form has none of these points")
            return known.assign(runs=points.runs)

        return Intervals(divided)


def paired_ratios(
    rows: pd.DataFrame, ours: str, other: str, by: str | Sequence[str]
) -> Intervals:
    """Divide one series (a curve) by another at each point, separately for each seed. Return one estimated
    ratio per point, with a confidence interval over the seeds.

    Parameters
    ----------
    rows : DataFrame
        Rows of a single metric, with the columns `series`, `seed` and `value`.
    ours, other : str
        Names of the two series. Values of `ours` are divided by values of `other`.
    by : str or list of str
        Columns that identify a point.

    Raises
    ------
    MissingPoints
        If there is no point and seed at which both series have a value.
    """
    a, b = _by_seed(rows, ours, by).align(_by_seed(rows, other, by), join="inner")
    return _of_logs(a.index, _log_ratio(a.to_numpy(), b.to_numpy()))


def select(rows: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """Return the rows that satisfy all conditions in `where`.

    Parameters
    ----------
    rows : DataFrame
        Rows of a figure.
    **where
        Condition for each named column: a value, a tuple or list of allowed values, or a range, for example
        `{"from": 1, "to": 10}`.

    Raises
    ------
    MissingPoints
        If no row satisfies all conditions.
    """
    wanted = np.ones(len(rows), bool)
    for column, x in where.items():
        own = rows[column]
        if isinstance(x, Mapping):
            there = own.between(x.get("from", -inf), x.get("to", inf))
        else:
            there = own.isin(x) if isinstance(x, tuple | list) else own == x
        wanted &= there.to_numpy(bool)
    rows = rows[wanted]
    if rows.empty:
        raise MissingPoints(f"no rows have {where}")
    return rows


def ratios(ours: pd.DataFrame, other: pd.DataFrame, by: str | Sequence[str]) -> Intervals:
    """Divide the values in the rows `ours` by the values in the rows `other`, separately for each point and
    seed. Return the ratios for points that are in both, with confidence intervals.
    """
    import pandas as pd

    both = [ours.assign(series="ours"), other.assign(series="other")]
    return paired_ratios(pd.concat(both, ignore_index=True), "ours", "other", by)


def means(rows: pd.DataFrame, series: str, by: str | Sequence[str]) -> Intervals:
    """Return the mean over seeds of one series (a curve) at each point, with confidence intervals from
    Student's t distribution. If all values at a point are equal, Student's distribution cannot be used. Then
    the confidence interval is that of the median, from the sign test.
    """
    values = _by_seed(rows, series, by)
    own = partial(_student, values.to_numpy(), logs=False)
    return Intervals(partial(_table, values.index, own, False), ratios=False)


def exact(numbers: pd.Series, ratios: bool = True) -> Intervals:
    """Convert exact numbers, for example from a formula, to `Intervals` (estimates with confidence
    intervals). The confidence intervals have length 0.
    """
    if numbers.empty:
        raise MissingPoints("there are no points")
    values = numbers.to_numpy()
    known = (values, values, values, np.ones(len(values), int))
    return Intervals(partial(_table, numbers.index, lambda level: known, False), ratios)


def steps(rows: pd.DataFrame, series: str, along: str) -> Intervals:
    """Divide each value of a series (a curve) along an axis by the value before it, separately for each seed.
    Return the ratios with confidence intervals.
    """
    values = _by_seed(rows, series, along)
    if len(values) < 2:
        raise MissingPoints("the curve has fewer than two points")
    numbers = values.to_numpy()
    return _of_logs(values.index[1:], _log_ratio(numbers[1:], numbers[:-1]))


def ends(rows: pd.DataFrame, series: str, along: str) -> Intervals:
    """Divide the last value of a series (a curve) along an axis by its first value, separately for each seed.
    Return the ratio with its confidence interval.
    """
    values = _by_seed(rows, series, along)
    numbers = values.to_numpy()
    return _of_logs(values.index[-1:], _log_ratio(numbers[-1:], numbers[:1]))


def _by_seed(rows: pd.DataFrame, series: str, by: str | Sequence[str]) -> pd.DataFrame:
    """Return the values of a series as a table with one row per point and one column per seed. A value is NaN
    if the seed was not run.
    """
    import pandas as pd

    by = [by] if isinstance(by, str) else [*by]
    of_series = (rows.series == series).to_numpy()
    if not of_series.any():
        raise MissingPoints(f"no rows of {series}")
    columns = [rows[name].to_numpy()[of_series] for name in [*by, "seed"]]
    factors = [pd.factorize(column, sort=True) for column in columns]  # NaN is at -1
    levels = [level for _, level in factors]
    codes = np.array([code for code, _ in factors])
    known = (codes >= 0).all(axis=0)
    shape = tuple(max(len(level), 1) for level in levels)
    runs, run = np.unique(np.ravel_multi_index(codes[:, known], shape), return_inverse=True)
    values = rows["value"].to_numpy()[of_series][known]
    if len(runs) < len(run):
        refuse_mixed(rows[of_series], by)
        values = pd.Series(values).groupby(run).mean().to_numpy()
        run = np.arange(len(runs))
    points, point = np.unique(runs // shape[-1], return_inverse=True)
    seeds, seed = np.unique(runs % shape[-1], return_inverse=True)
    table = np.full((len(points), len(seeds)), np.nan)
    table[point[run], seed[run]] = values
    at = np.unravel_index(points, shape[:-1])
    places = [level[code] for level, code in zip(levels[:-1], at, strict=True)]
    index = (
        pd.MultiIndex.from_arrays(places, names=by)
        if len(by) > 1
        else pd.Index(*places, name=by[0])
    )
    return pd.DataFrame(table, index, pd.Index(levels[-1][seeds], name="seed"))


def _log_ratio(ours: np.ndarray, other: np.ndarray) -> Float[np.ndarray, "points seeds"]:
    """Return the logarithm of ratios of values >= 0.

    Zeros and infinities are treated as the docstring of this module describes.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(ours) - np.log(other)
    return np.where(ours == other, 0.0, logs)


def _of_logs(points: pd.Index, logs: np.ndarray) -> Intervals:
    """Return confidence intervals of ratios. The argument `logs` contains their logarithms, with one row per
    point and one column per seed.
    """
    if np.isnan(logs).all():
        raise MissingPoints("the two series have no point and seed in common")
    return Intervals(partial(_table, points, partial(_student, logs, logs=True), True))


def _table(
    points: pd.Index, numbers: Callable[..., Any], logs: bool, level: float
) -> pd.DataFrame:
    import pandas as pd

    *columns, runs = numbers(level=level)
    with np.errstate(over="ignore"):  # of two runs an interval may be without end
        estimate, low, high = np.exp(columns) if logs else columns
    table = pd.DataFrame(dict(estimate=estimate, low=low, high=high, runs=runs), index=points)
    return table if (runs > 0).all() else table[runs > 0]


def _student(samples: np.ndarray, level: float, logs: bool) -> tuple[np.ndarray, ...]:
    """Return the mean of each row, the ends of its confidence interval and the number of runs. Rows whose
    spread cannot be estimated get the median and its interval.
    """
    from scipy.special import stdtrit  # scipy.stats takes a third of a second

    centre, error, runs = _moments(samples)
    half = stdtrit(np.maximum(runs - 1, 1), (1 + level) / 2) * error
    low = centre - half
    high = centre + half
    for i in np.flatnonzero(~(error > SAME * (np.abs(centre) + logs))):
        own = np.sort(samples[i][~np.isnan(samples[i])])
        centre[i], low[i], high[i] = _median(own, level)
    return centre, low, high, runs


def _moments(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean of each row, its standard error and the number of runs. The standard error is NaN if it
    cannot be estimated.
    """
    runs = (~np.isnan(samples)).sum(axis=1)
    with np.errstate(all="ignore"):
        centre = np.nansum(samples, axis=1) / runs
        square = np.nansum((samples - centre[:, None]) ** 2, axis=1) / (runs - 1)
        error = np.sqrt(square / runs)
    return centre, np.where(np.isfinite(centre) & (runs > 1), error, np.nan), runs


def _median(ordered: np.ndarray, level: float) -> tuple[float, float, float]:
    """Return the median of sorted samples, and its confidence interval from the sign test."""
    from scipy.special import bdtr

    runs = len(ordered)
    if not runs:
        return np.nan, np.nan, np.nan
    below = np.arange(runs)
    outside = int(
        (2 * bdtr(below, runs, 0.5) <= 1 - level).sum()
    )  # samples left out at either end
    middle = ordered[(runs - 1) // 2]
    if not outside:
        return middle, -np.inf, np.inf
    return middle, ordered[outside - 1], ordered[runs - outside]
