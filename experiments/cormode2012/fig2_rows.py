"""What the checks of Figure 2 share: names of its series, and its rows."""

from __future__ import annotations

from experiments.cormode2012.shared import ABSOLUTE
from workbench.compiled import pd
from workbench.trials.claims import Printed, select

PAPER = {
    "a": Printed("consistently around 1 %", 0, 0.015),
    "b": Printed("in the range 1 % to 7 %", 0.005, 0.075),
    "c": Printed("within [0.3 %, 6 %]", 0.0025, 0.065),
}
SIGNED = "MeanSignedError"
OVER = "OverEstimates"
TWO = "filter"
ONE = "one-sided filter"
BOTH = "filter-priority"
LENGTH = 5000
LENGTHS = (100, 500, 1000, 5000, 10_000, 50_000, 100_000)
OTHER_LENGTHS = (100, 1000, 10_000, 100_000)
DECADES = (100, 1000, 10_000, 100_000)
SMALL = (1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 100_000)
SAMPLES = (10_000, 20_000, 50_000, 100_000, 200_000, 500_000)


def errors(
    rows: pd.DataFrame, panel: str, metric: str = ABSOLUTE, **where: object
) -> pd.DataFrame:
    """The rows of one metric of a panel."""
    return select(rows, panel=panel, metric=metric, **where)


def of_ranges(rows, panel: str, length: int, **where) -> pd.DataFrame:
    """Absolute errors of ranges of one length."""
    return errors(rows, panel, query_size=length, **where)


def in_percent(rows) -> pd.DataFrame:
    """The same rows, values in per cent."""
    return rows.assign(value=100 * rows.value)


def name_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows whose series tell weights, rounding and lengths; `queries` are ranges or subsets."""
    weights = "threshold, " + rows.weights.map({"raw": "raw", "unbiased": "adjusted"})
    asked = rows.workload.str.startswith("RandomSubsets")
    kind = asked.map({True: "subsets", False: "ranges"}).where(rows.panel == "subsets")
    series = rows.series.mask(rows.panel == "weights", weights)
    series = series.mask(rows.estimator.eq("RoundedUp()"), "geometric, rounded up")
    lengths = rows.query_size.map("filter-priority, R = {:,.0f}".format)
    series = series.mask(rows.panel.str.startswith("c"), lengths)
    return rows.assign(series=series, queries=kind)
