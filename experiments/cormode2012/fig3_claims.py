"""What Cormode et al. 2012 say about Figure 3, and of errors in section 3: a check a statement."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from experiments.cormode2012.paired import lower_from, ratios, select
from experiments.cormode2012.shared import ABSOLUTE, RELATIVE
from workbench import claims
from workbench.claims import (
    ALIKE,
    OFTEN,
    SOMEWHERE,
    Finding,
    Printed,
    any_of,
    check_between,
    check_lower,
    check_similar,
    compare_with_paper,
    decide,
    format_number,
    means,
    steps,
)

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


def _error(rows, series: str, panel: str, metric: str = ABSOLUTE) -> pd.DataFrame:
    """The rows of one series; panel "ab" is (a) and (b) in one."""
    panels = tuple(panel) if panel == "ab" else (panel,)
    return select(rows, panel=panels, series=series, metric=metric)


def _filter(rows, panel: str, theta: int | str, of: str = "") -> pd.DataFrame:
    """A filter of a panel; in (a), (b) the printed one."""
    if panel in ("a", "b", "ab"):
        return _error(rows, FILTER, panel)
    if theta == OWN_SIZE:
        theta = select(rows, panel="theory", series=of or panel).value.iloc[0]
    return _error(rows, f"filter, θ = {theta:g}", panel)


def _against(rows, ours: str, other: str, panel: str):
    return ratios(_error(rows, ours, panel), _error(rows, other, panel), "query_size")


def _lower(rows, level, ours: str, other: str, panel: str, share: float = OFTEN) -> Finding:
    return check_lower(_against(rows, ours, other, panel), level, share)


def over_filters(rows, level, check) -> Finding:
    """A check of rows, level and θ at every θ of the filter."""
    return claims.over("θ", FILTERS, lambda theta, at: check(rows, at, theta), level)


# ---- (a), (b)


def at_100(rows, level, series: str, above_it: bool = False) -> Finding:
    """Whether a relative error at 100 cells is at most around 5 %, or above it."""
    relative = select(_error(rows, series, "ab", RELATIVE), query_size=100)
    number = means(relative.assign(value=100 * relative.value), series, "query_size")
    if above_it:
        return check_between(number, level, low=np.nextafter(5.5, 6), unit=" %")
    return check_between(number, level, high=5.5, unit=" %")


def _falls(rows, level) -> Finding:
    sizes = (100, 1000, 10_000, 100_000)
    relative = select(rows, panel=("a", "b"), metric=RELATIVE, query_size=sizes)

    def falls(series, level):
        return check_lower(steps(relative, series, "query_size"), level)

    names = (FILTER, BOTH["ab"], TABLE)
    return claims.all_of({name: partial(falls, name) for name in names}, level)


def _best(rows, level) -> Finding:
    def up_to(size, level):
        own = rows[rows.query_size <= size]
        others = (PRIORITY, BOTH["ab"], TABLE)
        return claims.all_of(
            {
                f"below {x}": partial(_lower, own, ours=FILTER, other=x, panel="ab")
                for x in others
            },
            level,
        )

    return claims.over("largest medium size", (500, 1000, 2000, 5000, 10_000), up_to, level)


def _large_enough(rows, level) -> Finding:
    against = _against(rows, PRIORITY, FILTER, "ab")
    size, first, last = lower_from(against, level)
    largest = against.at(level).index.max()
    return Finding(decide(last <= largest, first > largest), _from(size))


def _from(size: float) -> str:
    return f"from {format_number(size)} cells" if np.isfinite(size) else "at no size"


def _comparable(rows, level, panel: str = "ab", both: str = BOTH["ab"]) -> Finding:
    against = _against(rows, both, TABLE, panel)
    finding = check_between(against, level, high=ALIKE, share=OFTEN, words="at most 1.25×")
    worst = against.at(level).estimate
    told = f"{finding.measured}; at most {worst.max():.3g}×, at {worst.idxmax():,.0f} cells"
    return Finding(finding.holds, told, runs=finding.runs)


def _examples(rows, level) -> Finding:
    parts = {
        series: partial(_lower, rows, ours=series, other=TABLE, panel="ab", share=SOMEWHERE)
        for series in (FILTER, PRIORITY, BOTH["ab"])
    }
    return any_of(parts, level)


# ---- (c), (d)


def _much_worse(rows, level, theta) -> Finding:
    before = _filter(rows, "c, σ = 20", theta, of="c")
    return check_between(
        ratios(_filter(rows, "c", theta), before, "query_size"),
        level,
        low=1 + 1e-12,
        share=OFTEN,
        words="higher",
    )


def _crossing(rows, level, panel: str, theta) -> tuple[float, float, float]:
    priority = _error(rows, PRIORITY, panel)
    return lower_from(ratios(priority, _filter(rows, panel, theta), "query_size"), level)


def overtaken(rows, level, theta) -> Finding:
    """Whether priority sampling beats the filter from about a thousand cells on."""
    size, first, last = _crossing(rows, level, "c", theta)
    holds = decide(500 <= first and last <= 2000, last < 500 or first > 2000)
    return Finding(holds, _from(size))


def _overtaken_earlier(rows, level, theta) -> Finding:
    own = 1 - (1 - level) / 2
    size, first, last = _crossing(rows, own, "c", theta)
    before, before_first, before_last = _crossing(rows, own, "ab", 50)
    holds = decide(last < before_first, first > before_last)
    return Finding(holds, f"{_from(size)}; {_from(before)} with σ = 20")


def _below_filter(rows, level, theta, panel: str, ours: str) -> Finding:
    other = _filter(rows, panel, theta)
    return check_lower(ratios(_error(rows, ours, panel), other, "query_size"), level, OFTEN)


def _beats_sampling(rows, level, theta) -> Finding:
    priority = _error(rows, PRIORITY, "d")
    return check_lower(ratios(_filter(rows, "d", theta), priority, "query_size"), level, OFTEN)


def _all_worse(rows, level, theta) -> Finding:
    table = _error(rows, TABLE, "c")
    summaries = {"filter": _filter(rows, "c", theta)}
    summaries |= {series: _error(rows, series, "c") for series in (PRIORITY, BOTH["c"])}
    parts = {
        series: partial(check_lower, ratios(table, own, "query_size"), share=OFTEN)
        for series, own in summaries.items()
    }
    return claims.all_of(parts, level)


def _equal(rows, level) -> Finding:
    def at(theta, level):
        return _comparable(rows, level, "c", f"filter-priority, θ = {theta}{TWICE}")

    return claims.over("θ of filter-priority", (5, 10, 20, 30, 40), at, level)


def _fewer_held(rows, level) -> Finding:
    held = [select(rows, panel=p, series=PRIORITY, metric=SHARE_HELD) for p in ("d", "ab")]
    sparse, usual = (x.assign(point=0) for x in held)
    finding = check_lower(ratios(sparse, usual, "point"), level)
    measured = f"{sparse.value.mean():.1%} against {usual.value.mean():.1%}; {finding.measured}"
    return Finding(finding.holds, measured, runs=finding.runs)


# ---- over all panels


def _best_of_both(rows, level, theta) -> Finding:
    ours, others = [], []
    for panel in "abcd":
        filtered = _filter(rows, panel, theta)
        priority = _error(rows, PRIORITY, panel)
        means_of = [x.groupby("query_size").value.mean() for x in (filtered, priority)]
        better = means_of[0].index[means_of[0] < means_of[1]]
        ours.append(_error(rows, BOTH[panel], panel))
        others.append(filtered[filtered.query_size.isin(better)])
        others.append(priority[~priority.query_size.isin(better)])
    against = ratios(pd.concat(ours), pd.concat(others), ["panel", "query_size"])
    return check_between(against, level, high=ALIKE, share=OFTEN, words="at most 1.25×")


def _as_a_root(rows, level) -> Finding:
    error = _error(rows, TABLE, "ab")
    scaled = error.assign(value=error.value / np.sqrt(error.query_size))
    first = select(scaled, query_size=100).drop(columns="query_size")
    others = scaled[scaled.query_size > 100]
    at_100 = others[["query_size", "seed"]].merge(first, on="seed")
    return check_similar(ratios(others, at_100, "query_size"), level)


def _over(check, **given):
    return partial(over_filters, check=partial(check, **given))


_LOWER = partial(partial, _lower)
CHECKS = {
    "c-3a-1.1": partial(at_100, series=FILTER),
    "c-3a-1.2": partial(at_100, series=BOTH["ab"]),
    "c-3a-1.3": partial(at_100, series=TABLE),
    "c-3a-1.4": partial(at_100, series=PRIORITY, above_it=True),
    "c-3a-1.5": _falls,
    "c-3a-2.1": _best,
    "c-3a-2.2": _large_enough,
    "c-3a-3.1": _comparable,
    "c-3a-4.1": _examples,
    "c-3c-1.1": _over(_much_worse),
    "c-3c-1.2": _over(overtaken),
    "c-3c-1.3": _over(_overtaken_earlier),
    "c-3c-1.4": _over(_below_filter, panel="c", ours=BOTH["c"]),
    "c-3c-1.5": _LOWER(ours=BOTH["c"], other=PRIORITY, panel="c"),
    "c-3c-1.6": _over(_all_worse),
    "c-3c-2.1": _LOWER(ours=BOTH["c"] + TWICE, other=BOTH["c"], panel="c"),
    "c-3c-2.2": _equal,
    "c-3d-1.1": _over(_beats_sampling),
    "c-3d-1.2": _fewer_held,
    "c-3d-1.3": _over(_below_filter, panel="d", ours=BOTH["d"]),
    "c-3d-1.4": _LOWER(ours=BOTH["d"], other=TABLE, panel="d", share=claims.EVERYWHERE),
    "c-3-1.1": _over(_best_of_both),
    "c-3-2.1": _as_a_root,
}


def comparison(rows: pd.DataFrame, level: float) -> pd.DataFrame:
    """The numbers that the paper prints, beside ours."""
    lines = [
        (f"{series}, 100 cells", PAPER["a"], at_100(rows, level, series))
        for series in (FILTER, BOTH["ab"], TABLE)
    ]
    for theta in FILTERS:
        what = f"σ = 40: sampling beats the filter, θ = {theta}"
        lines.append((what, PAPER["c"], overtaken(rows, level, theta)))
    return compare_with_paper(*lines)
