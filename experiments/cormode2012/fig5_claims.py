"""What Cormode et al. 2012 say of Figure 5, in sections 3 and 4.4: a check a statement."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from experiments.cormode2012.fig5_consistency import SKEWED_CHECKS, cuts
from experiments.cormode2012.fig5_rows import (
    PAPER,
    REGIONS,
    against_other,
    errors_of,
    lower,
    of_regions,
    over_factors,
)
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
    FACTORS,
    FILTER,
    FULL,
    PRIORITY,
    both,
)
from experiments.cormode2012.throughput import span
from experiments.cormode2012.trees import VARIANCE
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    Finding,
    check_between,
    check_lower,
    check_similar,
    compare_with_paper,
    exact,
)
from workbench.value import format_number

# ---- (a): uniform data


def _worst(rows, level, factor) -> Finding:
    parts = {
        f"above {other}": partial(lower, rows, panel="a", ours=other, other=PRIORITY)
        for other in (FILTER, both(factor))
    }
    return claims.all_of(parts, level)


def _preferable(rows, level, factor) -> Finding:
    others = [PRIORITY]
    hybrid = errors_of(rows, "a", both(factor))
    if factor != 1 or (hybrid.released >= hybrid["size"]).any():  # else they are one summary
        others.append(both(factor))
    parts = {
        f"below {other}": partial(lower, rows, panel="a", ours=FILTER, other=other)
        for other in others
    }
    return claims.all_of(parts, level)


def _better_from(rows, level) -> Finding:
    variance = theory(rows, VARIANCE) / theory(rows, VARIANCE, CELLS)
    finding = check_lower(exact(variance), level)
    told = [f"variances {finding.measured}", f"lower from {cross(rows)} on"]
    for series in (FULL, *SUMMARIES):
        errors = against_other(rows, "a", series, CELLS).at(level).estimate.loc[FROM:]
        told.append(f"{series} has {span(errors)} the error")
    return replace(finding, measured="; ".join(told))


def _weakly(rows, level, factor) -> Finding:
    methods = (CELLS, FULL, FILTER, PRIORITY, both(factor))
    errors = errors_of(rows, "a", methods)
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


# ---- wavelets


def _similar_bases(rows, level) -> Finding:
    tables = select(rows, panel="bases", mechanism="GeometricHistogram", metric=ABSOLUTE)
    haar, dyadic = (select(tables, transform=x) for x in ("Haar()", "Dyadic()"))
    return check_similar(ratios(haar, dyadic, "query_size"), level)


CHECKS = SKEWED_CHECKS | {
    "c-5a-1.1": over_factors(_worst),
    "c-5a-1.2": over_factors(_preferable),
    "c-5a-1.3": _better_from,
    "c-5a-1.4": over_factors(_weakly),
    "c-5a-1.5": same_entries,
    "c-5a-1.6": twice_the_height,
    "c-5a-2.1": always_faster,
    "c-5a-2.2": about_2_to_4,
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
