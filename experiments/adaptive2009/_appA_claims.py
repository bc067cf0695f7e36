"""What appendix A's rows are asked for adaptive2009's statements about ways of discounting."""

from __future__ import annotations

from functools import partial
from itertools import combinations, product

import numpy as np

from experiments.adaptive2009._commutes import REAL
from experiments.adaptive2009._shapes import BREADTHS, DEPTHS, SHORT
from experiments.adaptive2009._strings import NAMES
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    Finding,
    MissingPoints,
    all_of,
    any_of,
    check_between,
    paired_ratios,
)

JUDGED = ("uniform", "proportional", "progressive", "fractional")
POINT = ["panel", "epsilon"]


def check_differ(rows, level) -> Finding:
    """Whether of each pair of ways one measure or the other is not alike."""

    def differ(pair, depth, breadth, level):
        return any_of(
            {
                metric: partial(_unlike, rows[rows.metric == metric], pair)
                for metric in (depth, breadth)
            },
            level,
        )

    def at(names, level):
        pairs = combinations(JUDGED, 2)
        own = measures[names]
        parts = {" and ".join(pair): partial(differ, pair, *own) for pair in pairs}
        return all_of(parts, level)

    both = product(DEPTHS, BREADTHS)
    measures = {tuple(SHORT[metric] for metric in pair): pair for pair in both}
    return claims.over("depth, breadth", list(measures), at, level)


def _unlike(rows, pair, level) -> Finding:
    """Whether two are further than 1.25× apart, either way, at three quarters of the points."""
    ratios = paired_ratios(rows, *pair, POINT)
    return check_between(claims.Intervals(partial(_apart, ratios)), level, ALIKE, share=OFTEN)


def _apart(ratios, level) -> pd.DataFrame:
    """Ratios as the larger over the smaller, as far as the interval tells which that is."""
    points = ratios.at(level)
    low, high = points.low, points.high
    farthest = np.maximum(high, 1 / low)
    nearest = np.where(low > 1, low, np.where(high < 1, 1 / high, 1.0))
    estimate = np.maximum(points.estimate, 1 / points.estimate)
    return points.assign(estimate=estimate, low=nearest, high=farthest)


def check_order(rows, level, measures: tuple[str, ...], falls: bool) -> Finding:
    """Whether from uniform over proportional to progressive a measure falls, or rises."""

    def at(metric, level):
        own = rows[rows.metric == metric]
        order = ("uniform", "proportional", "progressive")
        more, middle, less = order if falls else order[::-1]
        beyond = float(np.nextafter(1, 2))

        def above(first, second, low, share):
            return lambda at: check_between(
                paired_ratios(own, first, second, POINT), at, low=low, share=share
            )

        return all_of(
            {
                f"{more} ≥ {middle}": above(more, middle, 1, OFTEN),
                f"{middle} ≥ {less}": above(middle, less, 1, OFTEN),
                f"{more} > {less}": above(more, less, beyond, 1),
            },
            level,
        )

    name = "depth" if falls else "breadth"
    return claims.over(name, measures, at, level)


def decided(check):
    """A check of the two real datasets, which both decide."""

    def on_files(rows, level):
        missing = {REAL, NAMES} - {*rows.panel}
        if missing:
            raise MissingPoints(f"the files of {' and '.join(sorted(missing))} are not at hand")
        return check(rows[rows.panel.isin([REAL, NAMES])], level)

    return on_files


CHECKS = {
    "a-A-1.1": decided(check_differ),
    "a-A-2.1": decided(partial(check_order, measures=DEPTHS, falls=True)),
    "a-A-2.2": decided(partial(check_order, measures=BREADTHS, falls=False)),
}
