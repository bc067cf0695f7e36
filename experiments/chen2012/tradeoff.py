"""Chen et al. 2012, Figure 2: what its curves over α show, and whether it is as the paper says.

A curve is one approach without or with prior, from past queries of one kind (`bought`), on queries of the
past or new ones of a kind (`asked`). Where a fit of maximum entropy did not converge nothing is known of
its error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

from experiments.chen2012.approaches import ALONE, UNION
from experiments.chen2012.best_alpha import (
    finite,
)
from experiments.chen2012.data import CENSUS, PAST, RECIPES, TWIN
from experiments.chen2012.shared import (
    of_case,
    of_neither,
    open_where_far,
    unless_far,
)
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    SOMEWHERE,
    Finding,
    Intervals,
    all_of,
    check_between,
    check_lower,
    paired_ratios,
)

CURVE = ["approach", "prior", "bought", "asked"]
DATA = (TWIN, CENSUS)
REASONABLE = (1, 2, 3)  # times the error of a bought answer


def for_each(rows, level: float, columns: list[str], check: Callable) -> Finding:
    """Whether something is so of every group of rows."""
    groups = rows.groupby(columns, sort=False)
    return all_of({", ".join(name): partial(check, own) for name, own in groups}, level)


def each_past(rows, level: float, columns: list[str], check: Callable) -> Finding:
    """The same of errors of past queries."""
    return for_each(rows[rows.asked == PAST], level, columns, check)


def on_twin(rows, level: float, check: Callable) -> Finding:
    """A statement that noise decides."""
    return check(of_case(rows, TWIN), level)


def over_data(rows, level: float, check: Callable) -> Finding:
    """A statement on each dataset."""
    found = claims.over("data", DATA, lambda case, at: check(of_case(rows, case), at), level)
    return of_neither(found)


def over_kinds(rows, level: float, check: Callable, **where: str) -> Finding:
    """A statement on new queries of each kind, from past ones of both, for what is reasonable."""
    for column, name in where.items():
        rows = rows[rows[column] == name]

    def at(setting: tuple[str, str, int], level: float) -> Finding:
        asked, case, times = setting
        own = of_case(rows, case)
        own = own[own.asked == asked].assign(deviation=times * own.deviation)
        return for_each(own, level, CURVE, check)

    settings = tuple(product(RECIPES, DATA, REASONABLE))
    return of_neither(claims.over("asked, data, reasonable", settings, at, level))


# --- single curves


def ratios(curve, other: pd.Series) -> Intervals:
    """A curve against another number of each of its rows, seed by seed, at every α."""
    both = [curve.assign(series="own"), curve.assign(series="other", value=other)]
    known = paired_ratios(pd.concat(both), "own", "other", "alpha")
    return open_where_far(known, curve.groupby("alpha").lacks.max())


def somewhere_lower(curve, other: pd.Series, level: float) -> Finding:
    """Whether a curve is lower than another number at some α."""
    found = check_lower(ratios(curve, other), level, SOMEWHERE)
    return unless_far(curve.lacks.max(), found) if found.holds is None else found


def check_good(curve, level: float) -> Finding:
    """Whether at some α the error is below that of an answer that was bought, or so many times it."""
    grid = finite(curve)
    return somewhere_lower(grid, grid.deviation, level)


def check_beats(curve, level: float, end: int) -> Finding:
    """Whether some α has less error than the smallest (end 0) or the largest (end −1)."""
    grid = finite(curve)
    alpha = np.sort(grid.alpha.unique())[end]
    there = grid[grid.alpha == alpha]
    rest = grid[grid.alpha != alpha]
    found = somewhere_lower(rest, rest.seed.map(there.set_index("seed").value), level)
    return unless_far(there.lacks.max(), found)


def check_works(curve, level: float) -> Finding:
    """Whether answers are reasonable at some α, and better than at the smallest."""
    smallest = partial(check_beats, curve, end=0)
    parts = {
        "reasonable": partial(check_good, curve),
        "better than at the smallest α": smallest,
    }
    return all_of(parts, level)


def check_needs_small(curve, level: float) -> Finding:
    """Whether answers are reasonable at some α, not at the largest or at ∞, and worst at the smallest."""
    large = curve[curve.alpha >= finite(curve).alpha.max()]

    def unreasonable(level: float) -> Finding:
        numbers = ratios(large, large.deviation)
        return check_between(numbers, level, low=1, words="not reasonable")

    parts = {"works": partial(check_works, curve), "not at the largest α and ∞": unreasonable}
    return all_of(parts, level)


# --- the union


def check_improves(rows, level: float) -> Finding:
    """Whether past answers improve new ones, which are better than bought."""
    own = rows.assign(series=rows.history)
    bought = own[own.series == UNION].assign(series="bought", value=rows.deviation)
    both = pd.concat([own, bought])
    parts = {
        "than alone": partial(check_lower, paired_ratios(both, UNION, ALONE, "added")),
        "than bought": partial(check_lower, paired_ratios(both, UNION, "bought", "added")),
    }
    return unless_far(rows.lacks.max(), all_of(parts, level))


def over_added(rows, level: float) -> Finding:
    """The same for each number of new queries."""
    union = of_case(rows, UNION)
    check = partial(for_each, columns=["approach", "prior"], check=check_improves)
    counts = tuple(sorted(union.added.astype(int).unique().tolist()))
    return claims.over(
        "new queries", counts, lambda n, at: check(union[union.added == n], at), level
    )
