"""What Cormode et al. 2012 say of Figure 5: its series, and the checks that reshape rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from experiments.cormode2012.fig5_theory import FROM, cross, theory
from experiments.cormode2012.fig5_times import GAIN, SUMMARIES, gains, gains_with_same_sums
from experiments.cormode2012.shared import (
    ABSOLUTE,
    CELLS,
    FACTORS,
    FILTER,
    FULL,
    PRIORITY,
    both,
    consistency_ratios,
)
from experiments.cormode2012.throughput import span
from experiments.cormode2012.trees import VARIANCE
from workbench.compiled import pd
from workbench.trials.claims import (
    OFTEN,
    Finding,
    Intervals,
    Printed,
    all_of,
    check_between,
    check_lower,
    compare_with_paper,
    exact,
    ratios,
    select,
)
from workbench.value import format_number

REGIONS = (1, 10, 100)
PAPER = {
    "a": Printed.approximately("R ≥ 10⁴, 1 % of the data space", FROM, axis="x"),
    "c": Printed("by 30 % to 60 %", 0.25, 0.65),
    "uniform": Printed("closer to 10 %", 0, 0.2),
}


def of_regions(panel: str, regions: int) -> str:
    """The name of a panel on skewed data."""
    return f"{panel}, regions = {regions}"


def errors_of(rows, panel: str, series) -> pd.DataFrame:
    """Absolute errors of some series."""
    return select(rows, panel=panel, series=series, metric=ABSOLUTE)


def against_other(rows, panel: str, ours: str, other: str) -> Intervals:
    """The error of one series against that of another, by range size."""
    return ratios(errors_of(rows, panel, ours), errors_of(rows, panel, other), "query_size")


def name_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows whose series tell what is not in the paper, and what was made consistent by itself."""
    paper = (rows.panel != "bases") | rows.series.isin([FULL, CELLS, FILTER])
    paper |= rows["transform"].eq("Haar()") & rows.mechanism.eq("GeometricHistogram")
    dropped = rows.estimator.eq("BelowZerosDropped()")
    rows["series"] += paper.map({True: "", False: ", not in the paper"})
    rows["series"] += dropped.map({True: ", consistent", False: ""})
    rows.loc[dropped, "consistent"] = True
    return rows


def preferable(rows, level, factor) -> Finding:
    """Whether the filter has less error than samples."""
    others = [PRIORITY]
    hybrid = errors_of(rows, "a", both(factor))
    if factor != 1 or (hybrid.released >= hybrid["size"]).any():  # else they are one summary
        others.append(both(factor))
    parts = {
        f"below {other}": partial(
            check_lower, against_other(rows, "a", FILTER, other), share=OFTEN
        )
        for other in others
    }
    return all_of(parts, level)


def better_from(rows, level) -> Finding:
    """Whether a full table of nodes has less variance than one of cells."""
    variance = theory(rows, VARIANCE) / theory(rows, VARIANCE, CELLS)
    finding = check_lower(exact(variance), level)
    told = [f"variances {finding.measured}", f"lower from {cross(rows)} on"]
    for series in (FULL, *SUMMARIES):
        errors = against_other(rows, "a", series, CELLS).at(level).estimate.loc[FROM:]
        told.append(f"{series} has {span(errors)} the error")
    return replace(finding, measured="; ".join(told))


def weakly(rows, level, factor) -> Finding:
    """Whether errors of nodes grow more weakly than the fourth root of that of cells."""
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


def cuts(rows, panel: str, series: str) -> Intervals:
    """The error of a series with consistency against that without it."""
    errors = select(rows, panel=panel, metric=ABSOLUTE)
    return consistency_ratios(errors, series, "query_size")


def cut(rows, level, panel: str, series: str, low: float, high: float = 1) -> Finding:
    """Whether consistency leaves so much of a series' error."""
    return check_between(cuts(rows, panel, series), level, low, high, OFTEN, "as printed")


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
