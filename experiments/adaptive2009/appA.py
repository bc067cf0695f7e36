"""Appendix A of "Synthetic Data via Differential Privacy" (2009): depth and breadth of adaptive histograms,
by the way in which a split discards records.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): appendix A. An adaptive histogram splits a
        region (node) into smaller regions (children) if its noisy count is above a threshold b. At each
        split, it discards some records of each child, the discount t.
Read    We compare with the text, which has neither a plot nor a number.
Open    The paper prints no data. We use commutes in Rhode Island, or a synthetic stand-in for the country if
        the files are missing. We also use surnames, or a stand-in for the query log if their files are
        missing. Only one in `every` of the people with a surname is kept, because proportional
        discounting needs memory for each record. ε, b and t are the same for all ways of discounting, and t
        is the one of Theorem 3. Uniform discounting takes t records from every child. The appendix can also
        be read as t/k records per child. Then not every child would lose t records, so there would be no
        guarantee. The mechanism refuses this way, and it is not drawn. For comparison, we run a way from
        section 3 that skips the first t records. Depth and breadth are measured in two ways each, on the true
        records and on the released nodes.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np

from experiments._fields import effort, unprinted
from experiments.adaptive2009.shared import (
    CHILDREN,
    LOG,
    LONGEST,
    NAMES,
    REAL,
    SETTINGS,
    SYMBOLS,
    TWIN,
    Thinned,
    improved,
)
from workbench import Sweep
from workbench.compiled import pd
from workbench.data import Records
from workbench.datasets import CommuteTwin, OnTheMap, QueryLogTwin, Surnames
from workbench.estimates import Leaves
from workbench.figures import UNPRINTED, Figure
from workbench.figures.fields import choice, epsilons, seeds
from workbench.figures.plots import Panel
from workbench.spaces import Prefixes
from workbench.trials import claims, first_available
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    Finding,
    MissingPoints,
    all_of,
    any_of,
    check_between,
    paired_ratios,
)
from workbench.value import value

DEEPEST = "deepest leaf with a record"
MEAN = "mean level over records"
LEAVES = "leaves"
WIDEST = "split nodes of the widest level"
BREADTHS = (LEAVES, WIDEST)
SHORT = {DEEPEST: "deepest", MEAN: "mean level", LEAVES: "leaves", WIDEST: "widest level"}
JUDGED = ("uniform", "proportional", "progressive", "fractional")
POINT = ["panel", "epsilon"]
SCHEMES = (*JUDGED, "skip")


# How deep and how broad a hierarchical histogram is.


@value
class Shape:
    """Metric: depth and breadth of an adaptive histogram, in two ways each."""

    def __call__(self, truth: Records, estimate: Leaves) -> pd.DataFrame:
        """Return the four numbers, with one row each."""
        held = truth.counts_between(estimate.keys)
        levels = own_levels(estimate)
        values = {
            DEEPEST: levels[held > 0].max(),
            MEAN: np.average(levels, weights=held),
            LEAVES: len(estimate),
            WIDEST: split_nodes(estimate, levels).max(),
        }
        return pd.DataFrame({"metric": [*values], "value": [*map(float, values.values())]})


def own_levels(leaves: Leaves) -> np.ndarray:
    """Return the level of each leaf. For a string that is known to end, the level is its number of symbols
    plus one.
    """
    if not isinstance(leaves.hierarchy, Prefixes):
        return leaves.levels
    digits = leaves.hierarchy.digits
    levels = leaves.levels.copy()
    for level in range(digits.depth - 1, -1, -1):
        ended = (leaves.levels > level) & (digits.digit(level, leaves.keys) == 0)
        levels[ended] = level + 1
    return levels


def split_nodes(leaves: Leaves, levels: np.ndarray) -> np.ndarray:
    """Return the number of nodes on each level that are split, that is, that have leaves below them."""
    digits = leaves.hierarchy.digits
    changed = np.zeros(len(leaves), bool)
    changed[:1] = True
    counts = np.zeros(digits.depth, int)
    for level in range(digits.depth):
        if level:
            symbol = digits.digit(level - 1, leaves.keys)
            changed[1:] |= symbol[1:] != symbol[:-1]
        first = changed & (levels > level)  # a node's leaves are side by side
        counts[level] = first.sum()
    return counts


def decisive(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results on the two real datasets, with which statements are tested."""
    missing = {REAL, NAMES} - {*rows.panel}
    if missing:
        raise MissingPoints(f"the files of {' and '.join(sorted(missing))} are not at hand")
    return rows[rows.panel.isin([REAL, NAMES])]


def check_differ(rows, level, depth: str, breadth: str) -> Finding:
    """Check whether any two ways to discard records at a split give a different depth or a
    different breadth.
    """

    def differ(pair, level):
        own = {metric: rows[rows.metric == metric] for metric in (depth, breadth)}
        return any_of({metric: partial(_unlike, x, pair) for metric, x in own.items()}, level)

    pairs = combinations(JUDGED, 2)
    return all_of({" and ".join(pair): partial(differ, pair) for pair in pairs}, level)


def _unlike(rows, pair, level) -> Finding:
    """Check whether the results of two ways differ by more than a factor of 1.25 at three quarters of the
    points.
    """
    ratios = paired_ratios(rows, *pair, POINT)
    return check_between(claims.Intervals(partial(_apart, ratios)), level, ALIKE, share=OFTEN)


def _apart(ratios, level) -> pd.DataFrame:
    """Return ratios as the larger value divided by the smaller one. If a confidence interval contains 1, its
    lower end becomes 1.
    """
    points = ratios.at(level)
    low, high = points.low, points.high
    farthest = np.maximum(high, 1 / low)
    nearest = np.where(low > 1, low, np.where(high < 1, 1 / high, 1.0))
    estimate = np.maximum(points.estimate, 1 / points.estimate)
    return points.assign(estimate=estimate, low=nearest, high=farthest)


def check_order(rows, level, metric: str, falls: bool) -> Finding:
    """Check whether a measure falls (or rises) from uniform discounting over proportional to progressive
    discounting.
    """
    own = rows[rows.metric == metric]
    order = ("uniform", "proportional", "progressive")
    more, middle, less = order if falls else order[::-1]
    beyond = float(np.nextafter(1, 2))

    def above(first, second, low, share):
        against = paired_ratios(own, first, second, POINT)
        return partial(check_between, against, low=low, share=share)

    return all_of(
        {
            f"{more} ≥ {middle}": above(more, middle, 1, OFTEN),
            f"{middle} ≥ {less}": above(middle, less, 1, OFTEN),
            f"{more} > {less}": above(more, less, beyond, 1),
        },
        level,
    )


@value
class AppA(Figure):
    """Depth and breadth of adaptive histograms by ε, for each way to discard records at a split. There is one
    panel per dataset and measure.
    """

    title = "How deep and how broad histograms become by five ways of discounting"
    page = "adaptive2009, appendix A"
    quick = {"people": 20_000, "seeds": 5}
    main = 4

    epsilons: tuple[float, ...] = epsilons((0.1, 1.0, 10.0), "values of ε of a whole release")
    setting: str = choice("total k", SETTINGS, "use of ε, and b", kind=UNPRINTED)
    every: int = unprinted(256, "people of a surname per record that is kept", 1)
    people: int = effort(100_000, "number of records in the stand-in", 1000, 10**7)
    seeds: int = seeds(50)

    def datasets(self) -> dict[str, tuple[Any, int]]:
        """Return the datasets by name, each with the number of children of a node."""
        real = first_available(OnTheMap().points(), None)
        names = first_available(Surnames(2010).strings(LONGEST), None)
        commutes = {TWIN: CommuteTwin(self.people)} if real is None else {REAL: real}
        strings = {LOG: QueryLogTwin(self.people)}
        if names is not None:
            strings = {NAMES: Thinned(names, self.every) if self.every > 1 else names}
        made = {name: (dataset, CHILDREN) for name, dataset in commutes.items()}
        return made | {name: (dataset, SYMBOLS) for name, dataset in strings.items()}

    def sweeps(self) -> dict[str, Sweep]:
        """Return one sweep per dataset, with every way to discard records at a split at every ε."""
        sweeps = {}
        for name, (dataset, k) in self.datasets().items():
            mechanisms = [
                improved(epsilon, self.setting, k, strategy=scheme)
                for epsilon, scheme in product(self.epsilons, SCHEMES)
            ]
            sweeps[name] = Sweep([dataset], mechanisms, [Shape()], self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with one curve per way to discard records at a split."""
        rows = super().rows(store)
        return rows.assign(series=rows.strategy)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels. For each dataset, they show one measure of depth and one of breadth,
        and then the other two.
        """
        return [
            Panel(
                f"{name}: {SHORT[metric]}",
                {"panel": name, "metric": metric},
                "epsilon",
                log="xy" if metric in BREADTHS else "x",
            )
            for pair in ((MEAN, LEAVES), (DEEPEST, WIDEST))
            for name in rows.panel.unique()
            for metric in pair
        ]
