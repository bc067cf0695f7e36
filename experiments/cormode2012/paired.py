"""Rows of any two settings against each other, and the settings that may be the best."""

from __future__ import annotations

from math import inf, isnan

from workbench.compiled import pd
from workbench.trials.claims import (
    Intervals,
    check_between,
    crossing,
    decide,
    ratios,
)


def to_best(rows: pd.DataFrame, x: str) -> tuple[float, Intervals]:
    """The x of least mean error, and every other x's error against that of it."""
    best = rows.groupby(x).value.mean().idxmin()
    others = rows[rows[x] != best]
    at_best = rows[rows[x] == best].drop(columns=x)
    spread = others[[x, "seed"]].drop_duplicates()
    return best, ratios(others, spread.merge(at_best, on="seed"), x)


def may_be_best(rows: pd.DataFrame, x: str, level: float) -> list[float]:
    """Every x whose error may be the least, at a level for all of them together; the best is first."""
    best, against = to_best(rows, x)
    points = against.at(1 - (1 - level) / len(against))
    return [best, *points.index[points.low <= 1]]


def above(against: Intervals, level: float):
    """Whether the first of two is higher, everywhere."""
    return check_between(against, level, low=1 + 1e-12, words="higher")


def all_or_none(holds: list[bool]) -> bool | None:
    """True if all candidates do, False if none does."""
    return decide(all(holds), not any(holds))


def lower_from(against: Intervals, level: float) -> tuple[float, float, float]:
    """The point from which the first of two is lower for good, the earliest and the latest possible.

    Between points ratios are straight on logarithmic axes; infinite where it never is. The point moves
    with the ratios, so that their lower ends give the earliest and their upper ends the latest.
    """
    points = against.at(1 - (1 - level) / len(against))
    one = pd.DataFrame({"mean": 1.0}, index=points.index)
    places = [
        crossing(points[[column]].set_axis(["mean"], axis=1), one)
        for column in ("estimate", "low", "high")
    ]
    estimate, first, last = (inf if isnan(x) else x for x in places)
    return estimate, first, last
