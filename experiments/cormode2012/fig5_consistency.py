"""What Cormode et al. 2012 say of Figure 5 (b) and (c): skewed data, and consistency."""

from __future__ import annotations

from itertools import product

import numpy as np

from experiments.cormode2012.fig5_rows import (
    REGIONS,
    lower,
    of_regions,
    over_factors,
    over_regions,
)
from experiments.cormode2012.paired import select
from experiments.cormode2012.shared import (
    ABSOLUTE,
    FACTORS,
    FILTER,
    FULL,
    both,
    consistency_ratios,
)
from workbench.trials import claims
from workbench.trials.claims import OFTEN, Finding, Intervals, check_between


def _improves(rows, level, regions) -> Finding:
    return lower(rows, level, of_regions("b", regions), FILTER, FULL)


def cuts(rows, panel: str, series: str) -> Intervals:
    """The error of a series with consistency against that without it."""
    errors = select(rows, panel=panel, metric=ABSOLUTE)
    return consistency_ratios(errors, series, "query_size")


def _cut_as_printed(rows, level, regions, series: str = FILTER) -> Finding:
    against = cuts(rows, of_regions("c", regions), series)
    return check_between(against, level, 0.35, 0.75, OFTEN, "as printed")


def _hybrid_cut(rows, level) -> Finding:
    def at(pair, level):
        regions, factor = pair
        return _cut_as_printed(rows, level, regions, both(factor))

    pairs = tuple(product(REGIONS, FACTORS))
    return claims.over("regions and factor of θ", pairs, at, level)


def _closer_to_10(rows, level, factor=None) -> Finding:
    against = cuts(rows, "uniform", both(factor) if factor else FILTER)
    more = np.nextafter(0.8, 1)
    less = np.nextafter(1, 0)
    return check_between(against, level, more, less, OFTEN, "as printed")


def _not_helpful(rows, level, regions) -> Finding:
    against = cuts(rows, of_regions("zeros", regions), FULL)
    low = np.nextafter(0.95, 1)
    return check_between(against, level, low=low, share=OFTEN, words="not helped")


SKEWED_CHECKS = {
    "c-5b-1.1": over_regions(_improves),
    "c-5c-1.1": over_regions(_cut_as_printed),
    "c-5c-1.2": _hybrid_cut,
    "c-5c-1.3": _closer_to_10,
    "c-5c-1.4": over_factors(_closer_to_10),
    "c-5c-2.1": over_regions(_not_helpful),
}
