"""What the checks of Figure 3 share: names of its series, its rows, and how two series compare."""

from __future__ import annotations

import numpy as np

from experiments.cormode2012.paired import ratios, select
from experiments.cormode2012.shared import ABSOLUTE
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    Finding,
    Intervals,
    Printed,
    check_between,
    check_lower,
)
from workbench.value import format_number

PAPER = {
    "a": Printed("around 5 % for subsets of size 100", 0, 0.055, at=100),
    "c": Printed("around a thousand items in length", 500, 2000, value=1000, axis="x"),
}
FILTER = "filter, θ = 50"
PRIORITY = "priority"
TABLE = "geometric"
BOTH = {panel: "filter-priority, θ = 40" for panel in ("a", "b", "ab")}
BOTH |= {"c": "filter-priority, θ = 20", "d": "filter-priority, θ = 50"}
TWICE = ", s = 2·10⁵"
OWN_SIZE = "size s"
FILTERS = (20, 30, 40, 50, 60, 70, OWN_SIZE)
SHARE_HELD = "HeldCells"


def errors(rows, series: str, panel: str, metric: str = ABSOLUTE) -> pd.DataFrame:
    """The rows of one series; panel "ab" is (a) and (b) in one."""
    panels = tuple(panel) if panel == "ab" else (panel,)
    return select(rows, panel=panels, series=series, metric=metric)


def of_filter(rows, panel: str, theta: int | str, of: str = "") -> pd.DataFrame:
    """A filter of a panel; in (a), (b) the printed one."""
    if panel in ("a", "b", "ab"):
        return errors(rows, FILTER, panel)
    if theta == OWN_SIZE:
        theta = select(rows, panel="theory", series=of or panel).value.iloc[0]
    return errors(rows, f"filter, θ = {theta:g}", panel)


def compared(rows, ours: str, other: str, panel: str) -> Intervals:
    """The error of one series against that of another, by size."""
    return ratios(errors(rows, ours, panel), errors(rows, other, panel), "query_size")


def lower(rows, level, ours: str, other: str, panel: str, share: float = OFTEN) -> Finding:
    """Whether one series has less error than another."""
    return check_lower(compared(rows, ours, other, panel), level, share)


def over_filters(rows, level, check) -> Finding:
    """A check of rows, level and θ at every θ of the filter."""
    return claims.over("θ", FILTERS, lambda theta, at: check(rows, at, theta), level)


def from_size(size: float) -> str:
    """From which size on, in words."""
    return f"from {format_number(size)} cells" if np.isfinite(size) else "at no size"


def comparable(rows, level, panel: str = "ab", both: str = BOTH["ab"]) -> Finding:
    """Whether filter-priority has about the error of the full table, or less."""
    against = compared(rows, both, TABLE, panel)
    finding = check_between(against, level, high=ALIKE, share=OFTEN, words="at most 1.25×")
    worst = against.at(level).estimate
    told = f"{finding.measured}; at most {worst.max():.3g}×, at {worst.idxmax():,.0f} cells"
    return Finding(finding.holds, told, runs=finding.runs)
