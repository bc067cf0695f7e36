"""Checks that claims share: curves of means over seeds, and whether they lie as a paper says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import exp, inf, log
from typing import TYPE_CHECKING

import numpy as np

from workbench.claims.claim import ALIKE, Finding, MissingPoints, Printed
from workbench.claims.decisions import decide, decide_all

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float

FOLLOWS_FROM_SEED = ("value", "seconds", "released", "by_theorem", "trial")


def all_of(parts: Mapping[str, Finding]) -> Finding:
    """A claim of several parts: it holds if all do, and is settled once one differs."""
    holds = decide_all(part.holds for part in parts.values())
    answers = {True: "yes", False: "no", None: "not settled"}
    measured = [f"{name}: {answers[p.holds]} ({p.measured})" for name, p in parts.items()]
    whys = [part.why for part in parts.values() if part.why]
    unsettled = [part for part in parts.values() if part.holds is None]
    if_unsettled = all(part.if_unsettled for part in unsettled)
    return Finding(holds, "; ".join(measured), " ".join(whys), if_unsettled)


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

    _refuse_mixed(rows, [by] if isinstance(by, str) else by)
    grouped = rows.groupby(by).value
    points = pd.DataFrame({"mean": grouped.mean(), "seeds": grouped.count()})
    quantile = stdtrit(np.maximum(points.seeds - 1, 1), (1 + level) / 2)
    half_width = quantile * grouped.std().fillna(np.inf) / np.sqrt(points.seeds)
    return points.assign(low=points["mean"] - half_width, high=points["mean"] + half_width)


def _refuse_mixed(rows: pd.DataFrame, by: list[str]) -> None:
    """A ValueError where a mean would be over more than seeds: it names what else rows differ in."""
    rows = rows.dropna(subset=by)
    run = [*by, "seed"] if "seed" in rows else by
    repeated = rows[rows.duplicated(run, keep=False)]
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


def mean_curve(rows: pd.DataFrame, by: str, level: float = 0.95, **where) -> pd.DataFrame:
    """The `confidence_intervals` over `by` of the rows whose columns equal what `where` says."""
    for column, x in where.items():
        rows = rows[rows[column] == x]
    if rows.empty:
        raise MissingPoints(f"no rows have {where}")
    return confidence_intervals(rows, by, level)


def check_lower(
    ours: pd.DataFrame, other: pd.DataFrame, share: float = 0.75, times: float = 1.0
) -> Finding:
    """Whether `ours` (from `confidence_intervals`) lies below `other`/`times`, at `share` of the points.

    It does where intervals are apart at so many points, it does not where at so many that the rest
    is too few they are apart the other way round, and otherwise more seeds are needed (None).
    """
    a, b = _paired(ours, other)
    apart = a.high < b.low / times
    opposed = a.low > b.high / times
    lower = (a["mean"] < b["mean"] / times).mean()
    measured = f"the other is {_span(b['mean'] / a['mean'])} as large"
    if len(a) > 1:
        measured += f"; lower at {lower:.0%} of {len(a)} points"
        measured += f", intervals apart at {apart.mean():.0%}"
    else:
        measured += f", intervals {'apart' if apart.all() else 'overlap'}"
    return Finding(decide(apart.mean() >= share, opposed.mean() > 1 - share), measured)


def check_similar(ours: pd.DataFrame, other: pd.DataFrame, share: float = 0.75) -> Finding:
    """Whether two curves (from `confidence_intervals`) are alike at `share` of the points.

    Alike is within 1.25× of each other, or with overlapping intervals where both are noisy. More
    seeds may still decide (None) where the overlap does, leaning to yes, and where the intervals
    leave 1.25× possible, leaning to no.
    """
    a, b = _paired(ours, other)
    ratio = a["mean"] / b["mean"]
    close = np.maximum(ratio, 1 / ratio) <= ALIKE
    overlap = (a.low <= b.high) & (b.low <= a.high)
    measured = f"{_span(ratio)} as large; within 1.25× at {close.mean():.0%} of {len(a)} points"
    if close.mean() >= share:
        return Finding(True, measured)
    measured += f", intervals apart at {1 - overlap.mean():.0%}"
    possible = (a.low <= ALIKE * b.high) & (b.low <= ALIKE * a.high)
    undecided = (close | possible).mean() >= share
    if_unsettled = bool((close | overlap).mean() >= share)
    return Finding(None if undecided else False, measured, if_unsettled=if_unsettled)


def check_decreasing(curve: pd.DataFrame) -> Finding:
    """Whether a curve falls along its index: clearly lower at its end, and never clearly up.

    Clearly up is more than 1.25× the point before, intervals apart.
    """
    if len(curve) < 2:
        raise MissingPoints("a curve of less than two points neither rises nor falls")
    before = curve.iloc[:-1].reset_index(drop=True)
    after = curve.iloc[1:].reset_index(drop=True)
    rises = ((after["mean"] > ALIKE * before["mean"]) & (after.low > before.high)).sum()
    first = curve.iloc[0]
    last = curve.iloc[-1]
    measured = f"{format_number(first['mean'])} → {format_number(last['mean'])}"
    measured += f", up at {rises} of {len(after)} steps"
    if rises:
        return Finding(False, measured)
    if last.high < first.low:
        return Finding(True, measured)
    return Finding(None if last["mean"] < first["mean"] else False, measured)


def check_printed(point: Printed, curve: pd.DataFrame, percent: bool = False) -> Finding:
    """Whether all means of a curve lie where the paper's number says, its reading error included.

    None where a mean does not, but its interval still reaches in.
    """
    if curve.empty:
        raise MissingPoints(f"none is where the paper prints {point.says}")
    inside = curve["mean"].map(point.covers).all()
    reached = ((curve.low <= point.high) & (curve.high >= point.low)).all()
    unit = " %" if percent else ""
    factor = 100 if percent else 1
    low = format_number(factor * curve["mean"].min())
    high = format_number(factor * curve["mean"].max())
    measured = (low if low == high else f"{low} … {high}") + unit
    return Finding(decide(inside, not reached), measured)


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


def _interpolate(log_x, log_y, at):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.exp(np.interp(np.log(at), log_x, log_y, np.nan, np.nan))


def format_number(x: float) -> str:
    """Three digits, as sentences have them.

    >>> format_number(0.01234), format_number(-20749.8)
    ('0.0123', '−20,700')
    """
    if abs(x) >= 1000:
        x = round(x, 2 - int(np.floor(np.log10(abs(x)))))
        return f"{x:,.0f}".replace("-", "−")
    return f"{x:.3g}".replace("-", "−")


def _paired(ours: pd.DataFrame, other: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    points = ours.index.intersection(other.index)
    if points.empty:
        raise MissingPoints("the two curves have no point in common")
    return ours.loc[points], other.loc[points]


def _span(ratio: pd.Series) -> str:
    low = f"{ratio.min():.3g}"
    high = f"{ratio.max():.3g}"
    return f"{low}×" if low == high else f"{low}–{high}×"
