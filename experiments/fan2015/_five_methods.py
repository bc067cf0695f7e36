"""Fan & Jin 2015: what Figures 7 to 9 share, the runs of five methods on all datasets included.

All methods enforce their M, as the paper's do not need to. Beside the five, and never judged, stands what
a user would try next: `consistent` (items and edges reconciled), `total` (all counts scaled to the
published number of records), HPA with half of its l records at random, and the l that the corrected
formula suggests, from the published numbers of users and records (M their mean) and a guess of
popularity as 1/rank. Last a table in which each count is the mean, to compare with.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

import pandas as pd

from experiments.fan2015.count_claims import (
    DIVERGENCE,
    JUDGED,
    METHODS,
    PRECISION,
    REVERSED,
    SQUARED,
    TEN,
)
from experiments.fan2015.data import Case, cases, datasets, users_of_netflix
from experiments.fan2015.unreleased import EqualCounts, ItemErrorParts
from workbench import DP, Sweep, plots
from workbench.claims import format_number
from workbench.figures import UNPRINTED, Figure
from workbench.figures.parameters import epsilon, seeds, whole
from workbench.mechanisms import FPA, GS, HPA, LPA, SRA
from workbench.metrics import KLDivergence, MeanSquaredCountError, TopPrecision
from workbench.plots import Panel
from workbench.value import value

TOPS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)
PARTS = ItemErrorParts.__name__
READINGS = ("total", "each")  # ε of a whole release, or of its items and of its edges each
POPULARITY = 0.1  # of ε: what HPA learns popularity with, under both readings
PUBLISHED = {  # users and records, where the dataset does not say them itself
    "Gowalla (LGLMF)": (5628, 620_683),
    "Gowalla": (12_579, 739_600),
    "Online Retail": (4372, 406_829),
    "Foursquare New York": (1083, 227_428),
    "Foursquare Tokyo": (2293, 573_703),
    "Netflix": (480_189, 100_480_507),
    "MovieLens": (6040, 1_000_209),
}


def all_methods(
    case: Case, budget: DP, k: int | None = None, width: int | None = None
) -> dict[str, Any]:
    """The paper's five, and what a user would try next, by the names of series."""
    twin = case.dataset
    users, records = (twin.users, twin.records) if case.twin else PUBLISHED[case.name]
    public = dict(n=users, bound=round(records / users), popularity=1.0)
    simple = partial(SRA, budget, case.l)
    picked = partial(HPA, budget, case.l, case.d)
    return {
        "SRA": simple(),
        "HPA": picked(),
        "LPA": LPA(budget, case.most),
        "DFT": FPA(budget, case.most, k),
        "GS": GS(budget, case.most, width),
        "SRA, consistent": simple(consistent=True),
        "SRA, total = N": simple(total=records),
        "SRA, suggested l": SRA(budget, "suggested", **public),
        "HPA, consistent": picked(consistent=True),
        "HPA, total = N": picked(total=records),
        "HPA, half random": picked(random_share=0.5),
    }


def five_methods(
    case: Case, epsilon: float, reading: str, k: int | None = None, width: int | None = None
) -> dict[str, Any]:
    """The paper's five where ε is of all, or of items and of edges each (HPA: 0.9 ε each)."""
    budget = DP(epsilon)
    picked = DP(epsilon)
    share = POPULARITY
    if reading == "each":
        spent = POPULARITY + 2 * (1 - POPULARITY)
        budget = DP(2 * epsilon)
        picked = DP(spent * epsilon)
        share = POPULARITY / spent
    return {
        "SRA": SRA(budget, case.l),
        "HPA": HPA(picked, case.l, case.d, popularity_share=share),
        "LPA": LPA(budget, case.most),
        "DFT": FPA(budget, case.most, k),
        "GS": GS(budget, case.most, width),
    }


def series_of_trials(rows: pd.DataFrame, methods: dict[str, Any]) -> pd.Series:
    """The name among `methods` of what each row's trial ran; else the class's."""
    names = {repr(mechanism): series for series, mechanism in methods.items()}
    return mechanism_of_trials(rows).map(names).fillna(rows.mechanism_name)


def mechanism_of_trials(rows: pd.DataFrame) -> pd.Series:
    """What each row's trial ran, as it is written."""
    return rows.trial.str.extract(", mechanism=(.*), seed=", expand=False)


def count_metrics(tops: Iterable[int], top: int) -> list[Any]:
    """Squared error, divergences and precision: of items for all `tops`, of edges for one."""
    metrics: list[Any] = []
    for of, ks in (("items", tops), ("edges", (top,))):
        metrics.append(MeanSquaredCountError(of))
        metrics += [KLDivergence(of, JUDGED), KLDivergence(of, REVERSED)]
        metrics += [TopPrecision(k, of) for k in sorted(ks)]
    return metrics


@value
class FiveMethods(Figure):
    """Runs of five methods, the same for the same metrics."""

    quick = {"netflix_users": 20_000, "seeds": 3}
    rough = {"netflix_users": 2000, "seeds": 2, "taken_apart": 1}

    data: tuple[str, ...] = datasets()
    epsilon: float = epsilon(1.0)
    l: int = whole(10, "records of each user that SRA and HPA keep", unit="records")  # noqa: E741
    movielens_l: int = whole(30, "l on MovieLens", unit="records")
    d: int | None = whole(None, "records of a user for popularity; none: the least of one")
    most: int | None = whole(None, "M of LPA, DFT and GS; none: the most of a user")
    k: int | None = whole(None, "DFT's coefficients; none: chosen privately", kind=UNPRINTED)
    width: int | None = whole(None, "of GS' groups; none: chosen privately", kind=UNPRINTED)
    netflix_users: int = users_of_netflix()
    seeds: int = seeds(20)

    def cases(self) -> dict[str, Case]:
        """The datasets, by panel."""
        given = dict(l=self.l, movielens_l=self.movielens_l, d=self.d, most=self.most)
        return cases(self.data, self.netflix_users, **given)

    def methods(self, case: Case) -> dict[str, Any]:
        """All that is run on a dataset, by series."""
        return all_methods(case, DP(self.epsilon), self.k, self.width)

    def metrics(self) -> list[Any]:
        """The same list in all figures, so that they share their runs."""
        return count_metrics(TOPS, TEN)

    def sweeps(self) -> dict[str, Sweep]:
        """A dataset a panel."""
        sweeps = {}
        for name, case in self.cases().items():
            mechanisms = [*self.methods(case).values(), EqualCounts()]
            sweeps[name] = Sweep([case.dataset], mechanisms, self.metrics(), self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Series are what the methods are called on their dataset."""
        rows = super().rows(store)
        for name, case in self.cases().items():
            own = rows.panel == name
            rows.loc[own, "series"] = series_of_trials(rows[own], self.methods(case))
        return rows


@value
class Counts(FiveMethods):
    """What is the same for items and edges, in Figures 7 and 8."""

    of: ClassVar[str]

    top: int = whole(10, "K of (c), the most popular items")

    def metrics(self) -> list[Any]:
        """With the precision of (c)."""
        return count_metrics({*TOPS, self.top}, self.top)

    def rows(self, store) -> pd.DataFrame:
        """The errors of these counts."""
        rows = super().rows(store)
        return rows[rows.of == self.of].reset_index(drop=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """(a), (b) and (c): a group of bars a dataset."""
        counts = f"{self.of.removesuffix('s')} counts"
        tops = "all items" if self.of == "items" else "each context, on average"
        judged = {"metric": DIVERGENCE, "direction": JUDGED}
        precision = {"metric": PRECISION, "top": self.top}
        grid = []
        for title, log, where in (
            (f"(a) mean squared error of {counts}", "xy", {"metric": SQUARED}),
            (f"(b) KL divergence of {counts}", "", judged),
            (f"(c) top {self.top} of {tops}", "", precision),
        ):
            grid.append(Panel(title, {"of": self.of, **where}, "panel", log=log, bars=True))
        return grid

    def plot(self, rows: pd.DataFrame):
        """One below the other."""
        wide = dict(columns=1, width=plots.PAGE_WIDTH, height=1.7)
        return plots.grid(drawn_rows(rows), self.panels(rows), **wide)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Means over seeds: a row a dataset and method, those that are not the paper's included."""
        rows = rows[rows.metric != PARTS]
        table = {
            "squared error": _means(rows, metric=SQUARED).map(format_number),
            "KL": _means(rows, direction=JUDGED).map(format_number),
            "KL, reversed": _means(rows, direction=REVERSED).map(format_number),
            "top 10": _means(rows, metric=PRECISION, top=TEN).map("{:.0%}".format),
        }
        frame = pd.DataFrame(table).loc[[*rows.panel.unique()]]
        return frame.rename_axis(["dataset", "method"])


def drawn_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The five that the paper draws."""
    return rows[rows.series.isin(METHODS) & (rows.metric != PARTS)]


def _means(rows: pd.DataFrame, **where) -> pd.Series:
    for column, x in where.items():
        rows = rows[rows[column] == x]
    return rows.groupby(["panel", "series"], sort=False).value.mean()
