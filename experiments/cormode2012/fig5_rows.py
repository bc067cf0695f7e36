"""What the checks of Figure 5 share: its rows, how two series compare, and what is swept."""

from __future__ import annotations

from experiments.cormode2012.fig5_theory import FROM
from experiments.cormode2012.paired import ratios, select
from experiments.cormode2012.shared import ABSOLUTE, CELLS, FACTOR, FACTORS, FILTER, FULL
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import OFTEN, Finding, Intervals, Printed, check_lower

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


def lower(rows, level, panel: str, ours: str, other: str) -> Finding:
    """Whether one series has less error than another."""
    return check_lower(against_other(rows, panel, ours, other), level, OFTEN)


def over_factors(check):
    """A check of rows, level and factor at every θ of filter-priority."""
    return lambda rows, level: claims.over(
        FACTOR, FACTORS, lambda factor, at: check(rows, at, factor), level
    )


def over_regions(check):
    """A check of rows, level and regions on every skewed table."""
    return lambda rows, level: claims.over(
        "regions", REGIONS, lambda regions, at: check(rows, at, regions), level
    )


def name_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows whose series tell what is not in the paper, and what was made consistent by itself."""
    paper = (rows.panel != "bases") | rows.series.isin([FULL, CELLS, FILTER])
    paper |= rows["transform"].eq("Haar()") & rows.mechanism.eq("GeometricHistogram")
    dropped = rows.estimator.eq("BelowZerosDropped()")
    rows["series"] += paper.map({True: "", False: ", not in the paper"})
    rows["series"] += dropped.map({True: ", consistent", False: ""})
    rows.loc[dropped, "consistent"] = True
    return rows
