"""What Cormode et al. 2012 say about Figure 4, and of running times in section 1: a check a statement."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from experiments.cormode2012.paired import select
from experiments.cormode2012.throughput import span
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    ORDERS,
    Finding,
    check_between,
    exact,
)

USUAL = "geometric, numpy"
OURS = "geometric"
SUMMARIES = ("filter", "threshold", "priority")
SIZES = (10**6, 10**7)
SPARSE = (0.01, 0.001)
FASTER = 1 + 1e-12


def _throughput(rows, *series: str, **where) -> pd.Series:
    """By series and density."""
    return select(rows, series=series, **where).set_index(["series", "density"]).value


def _gain(rows, ours: tuple[str, ...], other: str, **where) -> pd.Series:
    """Throughput over that of another series, by series and density."""
    base = _throughput(rows, other, **where).droplevel("series")
    return _throughput(rows, *ours, **where).div(base, level="density")


def _over_sizes(check):
    """A check at every m; one that was not run is undecided."""

    def over(rows, level) -> Finding:
        def at(m, level):
            own = rows[rows.m == m]
            return check(own, level) if len(own) else Finding(None, "not run")

        return claims.over("m", SIZES, at, level)

    return over


def _beside(finding: Finding, gain: pd.Series) -> Finding:
    """With what is so against our own dense sampler."""
    return replace(finding, measured=f"{finding.measured}; than our dense sampler {span(gain)}")


def _fastest(rows, level) -> Finding:
    ours = ("filter", "threshold")
    others = ("priority", "filter-priority", USUAL)
    gains = pd.concat({other: _gain(rows, ours, other) for other in others})
    finding = check_between(exact(gains), level, low=FASTER, words="faster")
    return _beside(finding, _gain(rows, ours, OURS))


def _as_the_dense(rows, level) -> Finding:
    def gain(other):
        return _gain(rows, ("priority",), other, density=0.1)

    finding = check_between(exact(gain(USUAL)), level, low=1 / ALIKE, words="as fast")
    return _beside(finding, gain(OURS))


def _faster(rows, level, times: float = FASTER) -> Finding:
    def gain(other):
        return _gain(rows, SUMMARIES, other, density=SPARSE)

    finding = check_between(exact(gain(USUAL)), level, low=times, words="as much faster")
    return _beside(finding, gain(OURS))


def _independent(rows, level) -> Finding:
    small, large = (
        rows[(rows.m == m) & rows.series.isin(SUMMARIES)]
        .set_index(["series", "nonempty"])
        .value
        for m in SIZES
    )
    times = (small / large).dropna()
    if times.empty:
        return Finding(None, "tables of one size were run")
    growth = np.exp(np.log(times).groupby("series").mean())
    return check_between(exact(growth), level, high=ALIKE, words="at most 1.25×")


def _proportional(rows, level) -> Finding:
    by_density = _throughput(rows, *SUMMARIES).unstack("density").sort_index(axis=1)
    steps = by_density / by_density.shift(-1, axis=1)
    growth = exact(steps.stack().dropna())
    return check_between(growth, level, high=ALIKE, share=OFTEN, words="at most 1.25×")


CHECKS = {
    "c-4-1.1": _over_sizes(_fastest),
    "c-4-1.2": _over_sizes(_as_the_dense),
    "c-4-1.3": _over_sizes(_faster),
    "c-4-1.4": _over_sizes(partial(_faster, times=ORDERS)),
    "c-4-2.1": _independent,
    "c-4-2.2": _over_sizes(_proportional),
}
