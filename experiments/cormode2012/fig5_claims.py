"""What Cormode et al. 2012 say of Figure 5, in sections 3 and 4.4: a check a statement."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from experiments.cormode2012.fig5_theory import (
    FROM,
    cross,
    cubes,
    same_entries,
    theory,
    twice_the_height,
)
from experiments.cormode2012.fig5_times import (
    GAIN,
    SUMMARIES,
    about_2_to_4,
    always_faster,
    gains,
    gains_with_same_sums,
)
from experiments.cormode2012.paired import ratios, select
from experiments.cormode2012.shared import (
    ABSOLUTE,
    CELLS,
    FACTOR,
    FACTORS,
    FILTER,
    FULL,
    PRIORITY,
    both,
    consistency_ratios,
)
from experiments.cormode2012.throughput import span
from experiments.cormode2012.trees import VARIANCE
from workbench import claims
from workbench.claims import (
    OFTEN,
    Finding,
    Intervals,
    Printed,
    check_between,
    check_lower,
    check_similar,
    compare_with_paper,
    exact,
    format_number,
)

REGIONS = (1, 10, 100)
PAPER = {
    "a": Printed.approximately("R ≥ 10⁴, 1 % of the data space", FROM, axis="x"),
    "c": Printed("by 30 % to 60 %", 0.25, 0.65),
    "uniform": Printed("closer to 10 %", 0, 0.2),
}


def of_regions(panel: str, regions: int) -> str:
    """The name of a panel on skewed data."""
    return f"{panel}, regions = {regions}"


def _error(rows, panel: str, series) -> pd.DataFrame:
    return select(rows, panel=panel, series=series, metric=ABSOLUTE)


def _against(rows, panel: str, ours: str, other: str) -> Intervals:
    return ratios(_error(rows, panel, ours), _error(rows, panel, other), "query_size")


def _lower(rows, level, panel: str, ours: str, other: str) -> Finding:
    return check_lower(_against(rows, panel, ours, other), level, OFTEN)


def _over_factors(check):
    """A check of rows, level and factor at every θ of filter-priority."""
    return lambda rows, level: claims.over(
        FACTOR, FACTORS, lambda factor, at: check(rows, at, factor), level
    )


def _over_regions(check):
    """A check of rows, level and regions on every skewed table."""
    return lambda rows, level: claims.over(
        "regions", REGIONS, lambda regions, at: check(rows, at, regions), level
    )


# ---- (a): uniform data


def _worst(rows, level, factor) -> Finding:
    parts = {
        f"above {other}": partial(_lower, rows, panel="a", ours=other, other=PRIORITY)
        for other in (FILTER, both(factor))
    }
    return claims.all_of(parts, level)


def _preferable(rows, level, factor) -> Finding:
    others = [PRIORITY]
    hybrid = _error(rows, "a", both(factor))
    if factor != 1 or (hybrid.released >= hybrid["size"]).any():  # else they are one summary
        others.append(both(factor))
    parts = {
        f"below {other}": partial(_lower, rows, panel="a", ours=FILTER, other=other)
        for other in others
    }
    return claims.all_of(parts, level)


def _better_from(rows, level) -> Finding:
    variance = theory(rows, VARIANCE) / theory(rows, VARIANCE, CELLS)
    finding = check_lower(exact(variance), level)
    told = [f"variances {finding.measured}", f"lower from {cross(rows)} on"]
    for series in (FULL, *SUMMARIES):
        errors = _against(rows, "a", series, CELLS).at(level).estimate.loc[FROM:]
        told.append(f"{series} has {span(errors)} the error")
    return replace(finding, measured="; ".join(told))


def _weakly(rows, level, factor) -> Finding:
    methods = (CELLS, FULL, FILTER, PRIORITY, both(factor))
    errors = _error(rows, "a", methods)
    largest = select(errors[errors.query_size > FROM], query_size=errors.query_size.max())
    first, last = (
        each.set_index(["series", "seed"]).value
        for each in (select(errors, query_size=FROM), largest)
    )
    growth = (last / first).reset_index().rename(columns={"series": "method"})
    of_cells = select(growth, method=CELLS)
    root = of_cells.assign(value=of_cells.value**0.25).drop(columns="method")
    ours = growth[growth.method != CELLS]
    against = ratios(ours, ours[["method", "seed"]].merge(root, on="seed"), "method")
    finding = check_between(against, level, high=1, words="weaker")
    means = growth.groupby("method").value.mean()
    told = ", ".join(f"{method} {format_number(x)}×" for method, x in means.items())
    measured = f"grows {told}; against the fourth root of {CELLS} {finding.measured}"
    return replace(finding, measured=measured)


# ---- (b), (c): skewed data, and consistency


def _improves(rows, level, regions) -> Finding:
    return _lower(rows, level, of_regions("b", regions), FILTER, FULL)


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


# ---- wavelets


def _similar_bases(rows, level) -> Finding:
    tables = select(rows, panel="bases", mechanism="GeometricHistogram", metric=ABSOLUTE)
    haar, dyadic = (select(tables, transform=x) for x in ("Haar()", "Dyadic()"))
    return check_similar(ratios(haar, dyadic, "query_size"), level)


CHECKS = {
    "c-5a-1.1": _over_factors(_worst),
    "c-5a-1.2": _over_factors(_preferable),
    "c-5a-1.3": _better_from,
    "c-5a-1.4": _over_factors(_weakly),
    "c-5a-1.5": same_entries,
    "c-5a-1.6": twice_the_height,
    "c-5a-2.1": always_faster,
    "c-5a-2.2": about_2_to_4,
    "c-5b-1.1": _over_regions(_improves),
    "c-5c-1.1": _over_regions(_cut_as_printed),
    "c-5c-1.2": _hybrid_cut,
    "c-5c-1.3": _closer_to_10,
    "c-5c-1.4": _over_factors(_closer_to_10),
    "c-5c-2.1": _over_regions(_not_helpful),
    "c-w-1.1": _similar_bases,
    "c-w-1.2": cubes,
}


def comparison(rows: pd.DataFrame) -> pd.DataFrame:
    """The numbers that the paper prints, beside ours."""

    def cut(panel, series):
        left = cuts(rows, panel, series).at(0.95).estimate
        low, high = (format_number(100 * (1 - x)) for x in (left.max(), left.min()))
        return Finding(None, f"{low} … {high} %")

    lines = [
        ("full dyadic table beats cells", PAPER["a"], Finding(None, f"from {cross(rows)}"))
    ]
    for series in (FILTER, *map(both, FACTORS)):
        for regions in REGIONS:
            line = f"cut by consistency, {regions} regions: {series}"
            lines.append((line, PAPER["c"], cut(of_regions("c", regions), series)))
        line = f"cut by consistency, uniform: {series}"
        lines.append((line, PAPER["uniform"], cut("uniform", series)))
    for line, times in (
        ("throughput over our full table", gains(rows, FULL)),
        ("over numpy's, if all sum the dense tree", gains_with_same_sums(rows)),
    ):
        lines.append((line, GAIN, Finding(None, span(times))))
    return compare_with_paper(*lines)
