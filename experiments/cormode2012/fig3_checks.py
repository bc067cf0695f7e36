"""What Cormode et al. 2012 say of Figure 3: its series, and the checks that reshape rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.cormode2012.paired import lower_from
from experiments.cormode2012.shared import ABSOLUTE
from workbench.compiled import pd
from workbench.trials.claims import (
    OFTEN,
    Finding,
    Printed,
    all_of,
    check_between,
    check_lower,
    check_similar,
    decide,
    ratios,
    select,
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


def from_size(size: float) -> str:
    """From which size on, in words."""
    return f"from {format_number(size)} cells" if np.isfinite(size) else "at no size"


def large_enough(rows, level) -> Finding:
    """Whether priority sampling is better than the filter from some size on."""
    against = ratios(errors(rows, PRIORITY, "ab"), errors(rows, FILTER, "ab"), "query_size")
    size, first, last = lower_from(against, level)
    largest = against.at(level).index.max()
    return Finding(decide(last <= largest, first > largest), from_size(size))


def as_a_root(rows, level) -> Finding:
    """Whether the error of the full table grows as the root of the size."""
    error = errors(rows, TABLE, "ab")
    scaled = error.assign(value=error.value / np.sqrt(error.query_size))
    first = select(scaled, query_size=100).drop(columns="query_size")
    others = scaled[scaled.query_size > 100]
    at_100 = others[["query_size", "seed"]].merge(first, on="seed")
    return check_similar(ratios(others, at_100, "query_size"), level)


def much_worse(rows, level, theta) -> Finding:
    """Whether the filter has more error on wide counts than on the usual ones."""
    before = of_filter(rows, "c, σ = 20", theta, of="c")
    return check_between(
        ratios(of_filter(rows, "c", theta), before, "query_size"),
        level,
        low=1 + 1e-12,
        share=OFTEN,
        words="higher",
    )


def _crossing(rows, level, panel: str, theta) -> tuple[float, float, float]:
    priority = errors(rows, PRIORITY, panel)
    return lower_from(ratios(priority, of_filter(rows, panel, theta), "query_size"), level)


def overtaken(rows, level, theta) -> Finding:
    """Whether priority sampling beats the filter from about a thousand cells on."""
    size, first, last = _crossing(rows, level, "c", theta)
    holds = decide(500 <= first and last <= 2000, last < 500 or first > 2000)
    return Finding(holds, from_size(size))


def overtaken_earlier(rows, level, theta) -> Finding:
    """Whether on wide counts priority sampling is better from a smaller size on."""
    own = 1 - (1 - level) / 2
    size, first, last = _crossing(rows, own, "c", theta)
    before, before_first, before_last = _crossing(rows, own, "ab", 50)
    holds = decide(last < before_first, first > before_last)
    return Finding(holds, f"{from_size(size)}; {from_size(before)} with σ = 20")


def below_filter(rows, level, theta, panel: str, ours: str) -> Finding:
    """Whether a series has less error than the filter."""
    other = of_filter(rows, panel, theta)
    return check_lower(ratios(errors(rows, ours, panel), other, "query_size"), level, OFTEN)


def beats_sampling(rows, level, theta) -> Finding:
    """Whether on sparse counts the filter has less error than priority sampling."""
    ours = of_filter(rows, "d", theta)
    return check_lower(ratios(ours, errors(rows, PRIORITY, "d"), "query_size"), level, OFTEN)


def all_worse(rows, level, theta) -> Finding:
    """Whether on wide counts all summaries have more error than the full table."""
    table = errors(rows, TABLE, "c")
    summaries = {"filter": of_filter(rows, "c", theta)}
    summaries |= {series: errors(rows, series, "c") for series in (PRIORITY, BOTH["c"])}
    parts = {
        series: partial(check_lower, ratios(table, own, "query_size"), share=OFTEN)
        for series, own in summaries.items()
    }
    return all_of(parts, level)


def fewer_held(rows, level) -> Finding:
    """Whether a sample holds a smaller share of the cells of sparse counts."""
    held = [select(rows, panel=p, series=PRIORITY, metric=SHARE_HELD) for p in ("d", "ab")]
    sparse, usual = (x.assign(point=0) for x in held)
    finding = check_lower(ratios(sparse, usual, "point"), level)
    measured = f"{sparse.value.mean():.1%} against {usual.value.mean():.1%}; {finding.measured}"
    return Finding(finding.holds, measured, runs=finding.runs)
