"""Fan & Jin 2015: the checks of what Figures 7 and 8 say of counts by five methods.

Rows have a `reading` of ε and, of each twin, the `law` of its items' popularity; a file has the law FILE.
A statement is asked of every pair of the two. A twin's law cannot contradict the paper: where a statement
holds under none it is not testable, unless every dataset is a file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from itertools import product
from math import nextafter

import pandas as pd

from experiments.fan2015._five_methods import READINGS
from experiments.fan2015._paper import rows_of
from workbench.claims import (
    ALIKE,
    EVERYWHERE,
    OFTEN,
    Finding,
    all_of,
    any_of,
    check_between,
    check_lower,
    means,
    over,
    paired_ratios,
)

OURS = ("SRA", "HPA")
OTHERS = ("LPA", "DFT", "GS")
FOUR = ("Gowalla", "Foursquare", "Netflix", "MovieLens")
FILE = "file"
LAWS = ("flatter", "as built", "steeper")

Check = Callable[[pd.DataFrame, float], Finding]


def swept(
    rows: pd.DataFrame, level: float, check: Check, of: Collection[str] = FOUR
) -> Finding:
    """A check of some of the four datasets under both readings and all laws.

    Parameters
    ----------
    rows : DataFrame
        Of one metric, of items or of edges.
    level : float
        Of confidence, of all together.
    check : callable
        Takes the rows of one reading and law, and the level at which it may decide.
    of : collection of str
        The datasets, as the paper names them.
    """
    own = pd.concat([rows_of(rows, name) for name in of])
    from_files = bool((own.law == FILE).all())
    values = READINGS if from_files else tuple(product(READINGS, LAWS))

    def at(value, level):
        reading, law = (value, FILE) if from_files else value
        chosen = (own.reading == reading) & own.law.isin((law, FILE))
        return check(own[chosen], level)

    finding = over("ε" if from_files else "ε, popularity", values, at, level)
    if not from_files and finding.strip.outcomes == {False}:
        why = "it holds under no law of the twins', which cannot contradict"
        return replace(finding, holds=None, testable=False, why=why)
    return finding


def check_below(rows, level, lower: Collection[str], higher: Collection[str]) -> Finding:
    """Each of some methods below each of others, on every dataset."""
    parts = {
        f"{a} below {b}": partial(check_lower, paired_ratios(rows, a, b, "panel"))
        for a, b in product(lower, higher)
    }
    return all_of(parts, level)


def check_not_lowest(rows, level) -> Finding:
    """On every dataset SRA or HPA is above one of the others."""

    def on(name, level):
        own = rows[rows.panel == name]
        parts = {
            f"{b} below {a}": partial(check_lower, paired_ratios(own, b, a, "panel"))
            for a, b in product(OURS, OTHERS)
        }
        return any_of(parts, level)

    return all_of({name: partial(on, name) for name in rows.panel.unique()}, level)


def check_comparable(rows, level) -> Finding:
    """SRA, and HPA, at most 1.25 times the least of the others at three quarters of the datasets."""
    least = _least(rows, OTHERS)
    parts = {
        a: partial(_at_most, paired_ratios(pd.concat([rows, least]), a, "least", "panel"))
        for a in OURS
    }
    return all_of(parts, level)


def _at_most(ratios, level) -> Finding:
    return check_between(ratios, level, high=ALIKE, share=OFTEN, words="at most 1.25×")


def _least(rows, methods: Collection[str]) -> pd.DataFrame:
    """The method of the least mean of each dataset, as a series "least"."""
    own = rows[rows.series.isin(methods)]
    by_method = own.groupby(["panel", "series"]).value.mean()
    best = by_method.groupby("panel").idxmin()
    chosen = own.set_index(["panel", "series"]).index.isin(best)
    return own[chosen].assign(series="least")


def check_no_worse(rows, level) -> Finding:
    """GS not above DFT, on every dataset."""
    ratios = paired_ratios(rows, "GS", "DFT", "panel")
    return check_between(ratios, level, high=1, words="no worse")


def check_preserved(rows, level) -> Finding:
    """DFT's and GS' divergences nearer to the least than to LPA's, at three quarters of the bars."""
    keys = ["panel", "seed"]
    by_seed = rows.pivot(index=keys, columns="series", values="value")
    middle = (by_seed.min(axis=1) + by_seed.LPA) / 2
    frames = [
        pd.DataFrame({"value": by_seed[name] / middle, "bar": name}) for name in ("DFT", "GS")
    ]
    bars = pd.concat(frames).reset_index().assign(series="nearness")
    numbers = means(bars, "nearness", ["panel", "bar"])
    return check_between(
        numbers, level, high=nextafter(1, 0), share=OFTEN, words="nearer to the least", unit=""
    )


def check_failing(rows, level) -> Finding:
    """DFT's and GS' divergences more than 1.25 times SRA's and HPA's, on every dataset."""
    parts = {
        f"{a} above {b}": partial(_above_alike, paired_ratios(rows, a, b, "panel"))
        for a, b in product(("DFT", "GS"), OURS)
    }
    return all_of(parts, level)


def _above_alike(ratios, level) -> Finding:
    return check_between(ratios, level, low=nextafter(ALIKE, 2), words="more than 1.25×")


def check_lost(rows, level) -> Finding:
    """LPA, DFT and GS find fewer than half of the ten, on every dataset."""
    parts = {
        a: partial(
            check_between,
            means(rows, a, "panel"),
            high=nextafter(0.5, 0),
            share=EVERYWHERE,
            words="fewer than half",
        )
        for a in OTHERS
    }
    return all_of(
        {name: lambda at, part=part: part(level=at) for name, part in parts.items()}, level
    )


def check_more(rows, level, more: Collection[str], fewer: Collection[str]) -> Finding:
    """Each of some methods finds more than each of others, on every dataset: differences, seed by seed."""
    by_seed = rows.pivot(index=["panel", "seed"], columns="series", values="value")
    frames = [
        (by_seed[a] - by_seed[b]).rename("value").reset_index().assign(pair=f"{a} − {b}")
        for a, b in product(more, fewer)
    ]
    points = pd.concat(frames).assign(series="difference")
    numbers = means(points, "difference", ["pair", "panel"])
    return check_between(numbers, level, low=nextafter(0, 1), words="more")
