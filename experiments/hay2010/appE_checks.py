"""Hay et al. 2010, Appendix E: what decides each statement."""

from __future__ import annotations

from math import inf

import numpy as np

from experiments.hay2010.compared import beside, ratios_between
from experiments.hay2010.data import NOISY_TREE
from experiments.hay2010.equi_depth import EQUI_DEPTH, QUANTILES
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    EVERYWHERE,
    Finding,
    MissingPoints,
    check_between,
    check_lower,
    check_similar,
    decide,
    paired_ratios,
)
from workbench.value import format_number

DELTA = 0.1
ACCURACIES = (0.03, 0.01, 0.003, 0.001)
CELLS = 1024
OTHERS = (EQUI_DEPTH, QUANTILES)
BOUND = "bound"
RIVAL = "equi-depth, the better"
MORE = float(np.nextafter(1, 2))


def _with_rival(rows: pd.DataFrame) -> pd.DataFrame:
    """H̃, and at each N and n the equi-depth histogram of the least mean error."""
    best = rows[(rows.panel == "worst") & rows.series.isin(OTHERS)]
    means = best.groupby(["cells", "records", "series"]).value.transform("mean")
    least = means.groupby([best.cells, best.records]).transform("min")
    ours = rows[(rows.panel == "worst") & (rows.series == NOISY_TREE)]
    columns = ["series", "cells", "records", "seed", "value"]
    return pd.concat([ours, best[means == least].assign(series=RIVAL)])[columns]


def _here(rows: pd.DataFrame) -> pd.DataFrame:
    """On the one domain."""
    return rows[rows.cells == CELLS]


def least_records(
    rows: pd.DataFrame, accuracy: float, share: float = 1 - DELTA, level: float | None = None
) -> float:
    """The least N at which so many samples are within accuracy·N; infinite if at none.

    Of rows of worst error over N. With a level the share is not estimated: 1 − level is how often
    the number may be too small where it is positive, too large where it is negative.
    """
    grouped = rows.groupby("records").value
    within = grouped.apply(lambda own: _quantile(np.sort(own), share, level))
    x = np.log(within.index.to_numpy(float))
    with np.errstate(divide="ignore"):
        y = np.log(within.to_numpy())
    over = np.flatnonzero(y > np.log(accuracy))
    if not len(over):
        return float(np.exp(x[0]))
    if over[-1] == len(y) - 1:
        return inf
    pair = slice(over[-1], over[-1] + 2)
    if not np.isfinite(y[pair]).all():
        return float(np.exp(x[over[-1] + 1]))
    return float(np.exp(np.interp(-np.log(accuracy), -y[pair], x[pair])))


def _quantile(ordered: np.ndarray, share: float, level: float | None) -> float:
    """A quantile of samples; with a level, an end of its interval of order statistics."""
    from scipy.special import bdtr

    if level is None:
        return float(np.quantile(ordered, share))
    n = len(ordered)
    chances = bdtr(np.arange(n + 1), n, share)  # so many samples or fewer are below it
    if level > 0:  # too high seldom fails: the sample that surely lies above
        above = np.flatnonzero(chances[:n] >= level)
        return float(ordered[above[0]]) if len(above) else inf
    below = np.flatnonzero(chances <= 1 + level)
    return float(ordered[below[-1]]) if len(below) else 0.0


def check_smaller(rows, level: float) -> Finding:
    """Whether H̃ needs fewer records than equi-depth does, at every accuracy.

    What H̃ needs at most is said by its bound too, at any level.
    """
    own = _here(_with_rival(rows))
    if own.empty:
        raise MissingPoints(f"no rows of {CELLS} cells")
    shares = own.assign(value=own.value / own.records)
    ours = shares[shares.series == NOISY_TREE]
    other = shares[shares.series == RIVAL]
    points = ours.records.nunique()
    bound = rows[(rows.panel == BOUND) & (rows.cells == CELLS)].value.max()

    def at(accuracy: float, level: float) -> Finding:
        each = 1 - (1 - level) / (4 * points)
        highest = np.fmin(least_records(ours, accuracy, level=each), bound / accuracy)
        lowest = least_records(other, accuracy, level=-each)
        least = least_records(ours, accuracy, level=-each)
        most = least_records(other, accuracy, level=each)
        estimates = (least_records(x, accuracy) for x in (ours, other))
        beyond = f"more than {format_number(own.records.max())}"
        numbers = [beyond if x == inf else format_number(x) for x in estimates]
        words = f"{' against '.join(numbers)} records"
        return Finding(decide(highest < lowest, least > most), words, runs=np.nan)

    return claims.over("accuracy", ACCURACIES, at, level)


def check_flat(rows, level: float) -> Finding:
    """Whether the error of H̃ at the largest N is that at the smallest."""
    own = _here(_with_rival(rows))
    return check_similar(claims.ends(own, NOISY_TREE, "records"), level, EVERYWHERE)


def check_rises(rows, level: float) -> Finding:
    """Whether the error of equi-depth rises with every step of N, for both searches."""
    own = _here(rows[rows.panel == "worst"])

    def at(series: str, level: float) -> Finding:
        kind = own[own.series == series].drop(
            columns=["buckets", "trial", "dataset"], errors="ignore"
        )
        steps = claims.steps(kind, series, "records")
        growth = claims.ends(kind, series, "records").at(0.95).estimate.iloc[0]
        power = np.log(growth) / np.log(kind.records.max() / kind.records.min())
        finding = check_between(steps, level, low=MORE, words="higher")
        return beside(finding, f"as N to the {power:.2g}")

    return claims.over("search", OTHERS, at, level)


def check_lower_error(rows, level: float) -> Finding:
    """Whether H̃ has less error than equi-depth, at every N."""
    own = _here(_with_rival(rows))

    def at(records: int, level: float) -> Finding:
        ratios = paired_ratios(own[own.records == records], NOISY_TREE, RIVAL, "records")
        return check_lower(ratios, level)

    return claims.over("N", _records(own), at, level)


def check_domains(rows, level: float) -> Finding:
    """Whether equi-depth's error grows less than H̃'s from the smallest domain to the largest."""
    own = _with_rival(rows)

    def growth(series: str, records: int) -> pd.DataFrame:
        here = own[(own.series == series) & (own.records == records)]
        by_seed = here.pivot(index="seed", columns="cells", values="value")
        ratio = (by_seed.iloc[:, -1] / by_seed.iloc[:, 0]).rename("value").reset_index()
        return ratio.assign(records=records)

    def at(records: int, level: float) -> Finding:
        theirs, ours = (growth(series, records) for series in (RIVAL, NOISY_TREE))
        finding = check_lower(ratios_between(theirs, ours, "records"), level)
        words = [f"{format_number(np.exp(np.log(x.value).mean()))}×" for x in (theirs, ours)]
        return beside(finding, f"equi-depth grows {words[0]}, H̃ {words[1]}")

    return claims.over("N", _records(own), at, level)


def _records(rows: pd.DataFrame) -> list[int]:
    return sorted(int(x) for x in rows.records.unique())
