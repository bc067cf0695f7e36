"""What Cormode et al. 2012 say about Figure 3, and of errors in section 3: a check a statement."""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.cormode2012.fig3_other_data import OTHER_CHECKS, overtaken
from experiments.cormode2012.fig3_rows import (
    BOTH,
    FILTER,
    FILTERS,
    PAPER,
    PRIORITY,
    TABLE,
    comparable,
    compared,
    errors,
    from_size,
    lower,
)
from experiments.cormode2012.paired import lower_from, ratios, select
from experiments.cormode2012.shared import RELATIVE
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    SOMEWHERE,
    Finding,
    any_of,
    check_between,
    check_lower,
    check_similar,
    compare_with_paper,
    decide,
    means,
    steps,
)

# ---- (a), (b)


def at_100(rows, level, series: str, above_it: bool = False) -> Finding:
    """Whether a relative error at 100 cells is at most around 5 %, or above it."""
    relative = select(errors(rows, series, "ab", RELATIVE), query_size=100)
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
                f"below {x}": partial(lower, own, ours=FILTER, other=x, panel="ab")
                for x in others
            },
            level,
        )

    return claims.over("largest medium size", (500, 1000, 2000, 5000, 10_000), up_to, level)


def _large_enough(rows, level) -> Finding:
    against = compared(rows, PRIORITY, FILTER, "ab")
    size, first, last = lower_from(against, level)
    largest = against.at(level).index.max()
    return Finding(decide(last <= largest, first > largest), from_size(size))


def _examples(rows, level) -> Finding:
    parts = {
        series: partial(lower, rows, ours=series, other=TABLE, panel="ab", share=SOMEWHERE)
        for series in (FILTER, PRIORITY, BOTH["ab"])
    }
    return any_of(parts, level)


# ---- over all panels


def _as_a_root(rows, level) -> Finding:
    error = errors(rows, TABLE, "ab")
    scaled = error.assign(value=error.value / np.sqrt(error.query_size))
    first = select(scaled, query_size=100).drop(columns="query_size")
    others = scaled[scaled.query_size > 100]
    at_100 = others[["query_size", "seed"]].merge(first, on="seed")
    return check_similar(ratios(others, at_100, "query_size"), level)


CHECKS = OTHER_CHECKS | {
    "c-3a-1.1": partial(at_100, series=FILTER),
    "c-3a-1.2": partial(at_100, series=BOTH["ab"]),
    "c-3a-1.3": partial(at_100, series=TABLE),
    "c-3a-1.4": partial(at_100, series=PRIORITY, above_it=True),
    "c-3a-1.5": _falls,
    "c-3a-2.1": _best,
    "c-3a-2.2": _large_enough,
    "c-3a-3.1": comparable,
    "c-3a-4.1": _examples,
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
