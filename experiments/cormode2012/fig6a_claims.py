"""What Cormode et al. 2012 say about Figure 6(a): a check a statement."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from experiments.cormode2012.data import judged
from experiments.cormode2012.paired import ratios, select
from experiments.cormode2012.shared import ABSOLUTE, RELATIVE
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    OFTEN,
    Finding,
    Intervals,
    MissingPoints,
    Printed,
    check_between,
    check_lower,
    compare_with_paper,
    decide,
    means,
)
from workbench.value import format_number

THETAS = (1, 2, 5, 10, 20)
TIMES = (1.25, 1.5, 2.0, 3.0)
LARGE = 0.2
CHANCE = 0.05  # of a single plot that shows it
PAPER = {
    "relative": Printed(
        "less than 0.8 % from 5 % of the space on", 0.0, 0.008, over=(0.05, 0.5)
    )
}
THETA = "θ of filter-priority"
TABLE = dict(mechanism="GeometricHistogram")
FILTER = dict(mechanism="HighPassFilter")
PRIORITY = dict(mechanism="PrioritySampling", theta=0)


def _both(theta: int) -> dict:
    return PRIORITY | {"theta": theta}


def _errors(rows, method: dict, large: bool = False, metric: str = ABSOLUTE) -> pd.DataFrame:
    own = select(judged(rows), metric=metric, **method)
    return own[own.share >= LARGE] if large else own


def _against(rows, ours: dict, other: dict, large: bool = False) -> Intervals:
    return ratios(_errors(rows, ours, large), _errors(rows, other, large), "share")


def _lower(rows, level, ours: dict, other: dict, large: bool = False) -> Finding:
    return check_lower(_against(rows, ours, other, large), level, OFTEN)


def _over_thetas(check):
    """A check of rows, level and θ at every θ of filter-priority."""
    return lambda rows, level: claims.over(
        THETA, THETAS, lambda theta, at: check(rows, at, theta), level
    )


def _inaccurate(rows, level, theta) -> Finding:
    others = {"geometric": TABLE, "priority": PRIORITY, "filter-priority": _both(theta)}
    parts = {
        f"above {name}": partial(_lower, rows, ours=other, other=FILTER)
        for name, other in others.items()
    }
    return claims.all_of(parts, level)


def _better(rows, level, theta) -> Finding:
    parts = {
        name: partial(_lower, rows, ours=ours, other=FILTER)
        for name, ours in {"priority": PRIORITY, "filter-priority": _both(theta)}.items()
    }
    return claims.all_of(parts, level)


def _near(against: Intervals, level, times: float) -> Finding:
    words = f"at most {times:g}×"
    return check_between(against, level, high=times, share=OFTEN, words=words)


def _not_much_worse(rows, level) -> Finding:
    against = _against(rows, PRIORITY, TABLE)
    return claims.over("factor", TIMES, lambda times, at: _near(against, at, times), level)


def _hybrid_near(rows, level, other: dict, large: bool) -> Finding:
    against = {theta: _against(rows, _both(theta), other, large) for theta in THETAS}

    def at(pair, level):
        times, theta = pair
        return _near(against[theta], level, times)

    return claims.over("factor and θ", tuple(product(TIMES, THETAS)), at, level)


def _five_times(rows, level) -> Finding:
    full = _errors(rows, TABLE).released
    sample = _errors(rows, PRIORITY)["size"]
    times = full.min() / sample.max()
    return Finding(bool(times > 5), f"{times:.3g}×")


def single_releases(rows, level, ours: dict) -> Finding:
    """Whether single releases are better than the full table's more often than by rare chance."""
    errors = [_errors(rows, x, large=True) for x in (ours, TABLE)]
    sample, table = (own.groupby("seed").value.mean() for own in errors)
    ratio = (sample / table).dropna()
    if ratio.empty:
        raise MissingPoints("no large queries of both")
    better = int((ratio < 1).sum())
    least, most = share_interval(better, len(ratio), level)
    measured = f"better in {better} of {len(ratio)} pairs of releases"
    measured += f"; in the mean {format_number(sample.mean() / table.mean())}× the error"
    return Finding(decide(least > CHANCE, most < CHANCE), measured)


def share_interval(successes: int, runs: int, level: float) -> tuple[float, float]:
    """The exact interval of a share (Clopper and Pearson)."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = betaincinv(successes, runs - successes + 1, tail) if successes else 0.0
    high = betaincinv(successes + 1, runs - successes, 1 - tail) if successes < runs else 1.0
    return float(low), float(high)


def _hybrid_singly(rows, level, theta) -> Finding:
    return single_releases(rows, level, _both(theta))


def _outperforms(rows, level, theta) -> Finding:
    parts = {
        name: partial(_lower, rows, ours=PRIORITY, other=other, large=True)
        for name, other in {"filter": FILTER, "filter-priority": _both(theta)}.items()
    }
    return claims.all_of(parts, level)


def _all_below(rows, level) -> Finding:
    without = (TABLE, PRIORITY)
    groups = {"all": (*without, FILTER), "no filter": without}

    def at(group, level):
        name, theta = group
        own = [
            _errors(rows, method, metric=RELATIVE).assign(method=i)
            for i, method in enumerate((*groups[name], _both(theta)))
        ]
        relative = pd.concat(own)
        relative = relative[relative.share >= 0.05]
        percent = relative.assign(series="any", value=100 * relative.value)
        numbers = means(percent, "any", ["method", "share"])
        return check_between(numbers, level, high=np.nextafter(0.8, 0), unit=" %")

    return claims.over("techniques and θ", tuple(product(groups, THETAS)), at, level)


CHECKS = {
    "c-6a-1.1": _over_thetas(_inaccurate),
    "c-6a-1.2": _over_thetas(_better),
    "c-6a-1.3": _not_much_worse,
    "c-6a-1.4": partial(_hybrid_near, other=TABLE, large=False),
    "c-6a-1.5": _five_times,
    "c-6a-1.6": partial(single_releases, ours=PRIORITY),
    "c-6a-1.7": _over_thetas(_hybrid_singly),
    "c-6a-1.8": _over_thetas(_outperforms),
    "c-6a-1.9": partial(_hybrid_near, other=PRIORITY, large=True),
    "c-6a-1.10": _all_below,
}


def comparison(rows: pd.DataFrame) -> pd.DataFrame:
    """The greatest relative error from 5 % on, by table and method, beside the paper's number."""
    relative = select(rows[rows.share >= 0.05], metric=RELATIVE)
    lines = []
    for (panel, series), own in relative.groupby(["panel", "series"], sort=False):
        greatest = 100 * own.groupby("share").value.mean().max()
        found = Finding(None, f"at most {format_number(greatest)} %")
        lines.append((f"{panel}: {series}", PAPER["relative"], found))
    return compare_with_paper(*lines)
