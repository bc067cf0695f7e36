"""Fan & Jin 2015, Table 5: the ten films to recommend to men under 25.

Paper   Fan & Jin, WWW 2015: section 6.4 and Table 5; edge counts of MovieLens 1M at ε = 1, l = 30,
        d = 20, with 0.45 of ε for edges in HPA and 0.5 in SRA.
Read    the lists from the flattened table: HPA's lacks two of the true ten, and "Men in Black" and
        "The Fugitive" stand in their places; SRA's has from two to four of them.
Open    MovieLens 1M where its files are at hand, with titles; else a twin, whose films are numbers and
        whose groups differ by a law of ours: how much men under 25 have tastes of their own decides
        this table, and is the twin's invention. The paper prints one release; judged is the mean over
        runs of how many of the true ten a release has. LPA, DFT and GS, HPA with half of its l records
        at random, and releases made consistent stand beside it, not judged. Ties count by what a
        random order would give.
Words   shares 8 of the true 10 = 7.5 at least on average; far fewer = HPA's is at least 3 times SRA's,
        intervals apart from that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from experiments.fan2015._five_methods import all_methods, series_of_trials
from experiments.fan2015.count_claims import METHODS, OURS, PRECISION, TEN
from experiments.fan2015.data import Case, cases
from experiments.fan2015.unreleased import AllRecords
from workbench import DP, Sweep, plots
from workbench.claims import (
    MUCH,
    Finding,
    Printed,
    confidence_intervals,
    decide_printed,
    mean_curve,
)
from workbench.claims.old import Claim, all_of, check_lower
from workbench.datasets.movielens import GROUPS
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.figures import UNPRINTED, Figure
from workbench.figures.parameters import choice, epsilon, seeds, whole, wholes
from workbench.interactions import Interactions
from workbench.metrics import TopPrecision
from workbench.plots import Panel
from workbench.value import parameter, value

TRUTH = AllRecords.series
PAPER = {"hpa": Printed("8 of the true 10", 0.75, 1.0, at=TEN, value=0.8)}


@value
class GroupFilms:
    """What is released of one group: precision over K, the true ten's counts, and the ten highest."""

    group: int = parameter(low=0, integer=True, doc="its context")
    tops: tuple[int, ...] = parameter(low=1, integer=True, many=True, doc="K")

    def __call__(self, truth: Interactions, estimate: Any) -> pd.DataFrame:
        """Rows of the metrics `TopPrecision`, `Count` and `list`; films by their codes."""
        records = context_records(truth, self.group)
        if isinstance(estimate, Interactions):
            released: Any = context_records(estimate, self.group)
            counts = released.item_counts()
        else:
            released = context_tables(estimate, self.group)
            counts = released.items.values
        shares = [TopPrecision(k)(records, released) for k in self.tops]
        frames = [pd.DataFrame({"metric": PRECISION, "top": self.tops, "value": shares})]
        for metric, films in (
            ("Count", highest(records.item_counts())),
            ("list", highest(counts)),
        ):
            places = range(1, len(films) + 1)
            columns = {"metric": metric, "place": places, "film": films}
            frames.append(pd.DataFrame(columns | {"value": counts[films].astype(float)}))
        return pd.concat(frames, ignore_index=True)


def highest(counts: np.ndarray) -> np.ndarray:
    """The ten items of the highest counts."""
    return (-counts).argsort(kind="stable")[:TEN]


def context_records(data: Interactions, context: int) -> Interactions:
    """The records in one context."""
    chosen = data.contexts == context
    columns = (data.users[chosen], data.items[chosen], data.contexts[chosen])
    return Interactions(data.domain, *columns, data.bound, data.truth_public)


def context_tables(tables: ItemEdgeCounts, context: int) -> ItemEdgeCounts:
    """The tables with one context's edges for the items."""
    edges = tables.edges.values.reshape(tables.domain.shape)[:, context]
    return ItemEdgeCounts(Histogram(tables.items.domain, edges), tables.edges)


def film_names(dataset) -> list[str]:
    """What each item is called: its title where titles are at hand, else its number."""
    titles = dataset.titles() if hasattr(dataset, "titles") else {}
    labels = dataset.domain.decode("item", range(dataset.domain.shape[0]))
    return [titles.get(label, f"film {label}") for label in labels]


def _ten(rows) -> pd.DataFrame:
    return rows[(rows.metric == PRECISION) & (rows.top == TEN) & (rows.series != TRUTH)]


def _shared(rows) -> Finding:
    simple, picked = (mean_curve(_ten(rows), "top", series=series) for series in OURS)
    hpa = picked.loc[TEN]
    eight = Finding(decide_printed(PAPER["hpa"], hpa), f"{10 * hpa['mean']:.1f}")
    fewer = check_lower(simple, picked, times=MUCH)
    sra = f"SRA {10 * simple.loc[TEN, 'mean']:.1f}"
    return all_of({"HPA shares 8": eight, "SRA far fewer": Finding(fewer.holds, sra)})


CLAIMS = (
    Claim(
        "f-t5",
        "For men under 25, the ten films of HPA share 8 with the true ten; those of SRA far fewer.",
        _shared,
        "On the twin they share 0.8, SRA's 0.2: 924 men under 25 rate its first twelve films 342–417 "
        "times, by a law that is ours, and the noise of an edge has a standard deviation of 94. The "
        "true films, which the twin does not know, may lie further apart.",
    ),
)


@value
class Table5(Figure):
    """The films that one group of people rates most, as released."""

    title = "The ten films that one group of people rates most"
    page = "Fan & Jin, WWW 2015, section 6.4, Table 5"
    quick = {"seeds": 3}
    claims = CLAIMS

    data: str = choice("MovieLens", ("MovieLens", "MovieLens twin"), "ratings, or their twin")
    group: str = choice("M under 25", GROUPS, "whose films")
    epsilon: float = epsilon(1.0)
    l: int = whole(30, "records of each user that SRA and HPA keep", unit="records")  # noqa: E741
    d: int = whole(20, "records of each user for the popularity", unit="records")
    most: int | None = whole(None, "M of LPA, DFT and GS; none: the most of a user")
    k: int | None = whole(None, "DFT's coefficients; none: chosen privately", kind=UNPRINTED)
    width: int | None = whole(None, "of GS' groups; none: chosen privately", kind=UNPRINTED)
    tops: tuple[int, ...] = wholes(
        (1, 2, 3, 5, 10, 20, 30, 50, 100, 200), "K", unit="films", kind=UNPRINTED
    )
    seeds: int = seeds(20)

    def case(self) -> Case:
        """MovieLens, or its twin."""
        (case,) = cases([self.data], movielens_l=self.l, d=self.d, most=self.most).values()
        return case

    def methods(self) -> dict[str, Any]:
        """All that is run, by series."""
        return all_methods(self.case(), DP(self.epsilon), self.k, self.width)

    def sweeps(self) -> dict[str, Sweep]:
        """One dataset; ten films are always compared."""
        case = self.case()
        metric = GroupFilms(GROUPS.index(self.group), tuple(sorted({*self.tops, TEN})))
        mechanisms = [*self.methods().values(), AllRecords()]
        return {case.name: Sweep([case.dataset], mechanisms, [metric], self.seeds)}

    def rows(self, store) -> pd.DataFrame:
        """Films by name, and the list of one release."""
        rows = super().rows(store)
        names = dict(enumerate(film_names(self.case().dataset)))
        rows = rows.assign(
            series=series_of_trials(rows, self.methods()), film=rows.film.map(names)
        )
        return rows[(rows.metric != "list") | (rows.seed == 0)].reset_index(drop=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Precision over K, and what is released of the true ten."""
        return [
            Panel("(a) the K most popular films", {"metric": PRECISION}, "top", log="x"),
            Panel("(b) counts of the true ten", {"metric": "Count"}, "place", log=""),
        ]

    def plot(self, rows: pd.DataFrame):
        """The five methods, and the counts of SRA and HPA beside the true ones."""
        counts = (rows.metric == "Count") & rows.series.isin((TRUTH, *OURS))
        precision = (rows.metric == PRECISION) & rows.series.isin(METHODS)
        return plots.grid(rows[counts | precision], self.panels(rows), columns=self.columns)

    def table(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The ten films, true and of one run of SRA and HPA; a star marks those of the true ten."""
        lists = rows[rows.metric == "list"].astype({"place": int})
        columns = {s: lists[lists.series == s].set_index("place").film for s in (TRUTH, *OURS)}
        for series in OURS:
            stars = columns[series].isin(columns[TRUTH]).map({True: " *", False: ""})
            columns[series] = columns[series] + stars
        return pd.DataFrame(columns)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """How many of the true ten each method has on average, with the interval of that mean."""
        ten = _ten(rows)
        films = confidence_intervals(ten.assign(value=10 * ten.value), "series")
        films = films.loc[ten.series.unique()]
        interval = [f"{film.low:.1f} … {film.high:.1f}" for film in films.itertuples()]
        return pd.DataFrame({"of the true ten": films["mean"].round(2), "95 %": interval})
