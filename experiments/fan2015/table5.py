"""Table 5 of Fan & Jin (2015): the ten films to recommend to men under 25.

Paper   Fan & Jin, WWW 2015: section 6.4 and Table 5: edge counts of MovieLens 1M for ε = 1, l = 30 and d =
        20. HPA spends 0.45 of ε on edges, and SRA spends 0.5.
Read    We read the lists of the table, whose columns are mixed in our copy. HPA's list lacks two of the true
        ten films, and has "Men in Black" and "The Fugitive" instead. SRA's list has two to four of the true
        ten.
Open    We use MovieLens 1M with titles if its files are available. Otherwise we use a stand-in, whose films
        are numbers and whose groups differ by a law of ours. This table depends on how different the tastes
        of men under 25 are, and the stand-in invents this. ε = 1 may be that of the whole release, or of
        items and of edges each, with 0.1 or 0.2 for popularity. We run all three. The paper prints one
        release. We test the mean number of the true ten films over several runs. LPA, DFT, GS, HPA with half
        of its l records chosen at random, and consistent releases are shown for comparison. Ties count by
        their mean over random orders.
"""

from __future__ import annotations

from typing import Any

from experiments._fields import unprinted
from experiments.fan2015._counts import (
    ABOVE_ZERO,
    IN_TITLES,
    METHODS,
    OURS,
    PRECISION,
    READINGS,
    TEN,
    GroupFilms,
    coefficients,
    differences,
    five_methods,
    in_readings,
    mean_differences,
    next_methods,
)
from experiments.fan2015.data import Case, FanFigure, cases, rows_of
from experiments.fan2015.unreleased import AllRecords
from workbench import DP, Sweep
from workbench.compiled import pd
from workbench.datasets.ratings import GROUPS
from workbench.figures import Figure
from workbench.figures.fields import choice, epsilon, seeds, whole
from workbench.figures.plots import Panel
from workbench.trials.claims import Finding, check_between, means
from workbench.value import value

TRUTH = AllRecords.series
LEAST = 7  # of the true ten: 8, as in the one release that is printed, less one film


def film_names(dataset) -> list[str]:
    """Return the names of all items: titles if they are available, and otherwise numbers."""
    titles = dataset.titles() if hasattr(dataset, "titles") else {}
    labels = dataset.domain.decode("item", range(dataset.domain.shape[0]))
    return [titles.get(label, f"film {label}") for label in labels]


def _films(rows) -> pd.DataFrame:
    """Return how many of the true ten films each release has."""
    chosen = (rows.metric == PRECISION) & (rows.top == TEN) & (rows.series != TRUTH)
    return rows[chosen].assign(value=TEN * rows.value)


def check_kept(rows, level) -> Finding:
    """Check whether the mechanism HPA has at least seven of the true ten films."""
    own = means(_films(rows_of(rows, "MovieLens")), "HPA", "top")
    return check_between(own, level, low=LEAST, unit=" of the true ten")


def check_better(rows, level) -> Finding:
    """Check whether the mechanism HPA has more of the true ten films than SRA, compared by seed."""
    films = _films(rows_of(rows, "MovieLens"))
    more = mean_differences(differences(films, ["HPA"], ["SRA"], ["top"]), ["top"])
    unit = f" films more than SRA's {films[films.series == 'SRA'].value.mean():.1f}"
    return check_between(more, level, low=ABOVE_ZERO, unit=unit)


@value
class Table5(FanFigure, Figure):
    """Films that one group of users rates most often, in releases and in the true data."""

    title = "The ten films that one group of people rates most"
    headline = "For men under 25, HPA finds more of the ten most popular films than SRA"
    rests_on = ("f-t5.2",)
    columns = 3
    sharey = True
    main = 3
    page = "Fan & Jin, WWW 2015, section 6.4, Table 5"
    quick = {"seeds": 3}

    data: str = choice(
        "MovieLens", ("MovieLens", "MovieLens twin"), "ratings, or their stand-in"
    )
    group: str = choice("M under 25", GROUPS, "group whose films count")
    epsilon: float = epsilon(1.0)
    l: int = whole(30, "number of records that SRA and HPA keep per user", unit="records")  # noqa: E741
    d: int = whole(20, "number of records per user for the popularity", unit="records")
    most: int | None = whole(None, "bound M of LPA, DFT and GS (none: largest in the data)")
    k: int | None = coefficients()
    width: int | None = unprinted(None, "group size of GS (none: chosen privately)")
    tops: tuple[int, ...] = unprinted((1, 2, 3, 5, 10, 20, 30, 50, 100, 200), "K", unit="films")
    seeds: int = seeds(20)

    def case(self) -> Case:
        """Return the dataset, MovieLens or its synthetic stand-in."""
        (case,) = cases([self.data], movielens_l=self.l, d=self.d, most=self.most).values()
        return case

    def methods(self, reading: str) -> dict[str, Any]:
        """Return the mechanisms by the names of their curves. `reading` says whether ε is that of the whole
        release, or of items and of edges each.
        """
        case = self.case()
        methods = five_methods(case, self.epsilon, reading, self.k, self.width)
        more = next_methods(case, DP(self.epsilon)) if reading == READINGS[0] else {}
        return methods | more

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs on one dataset. They always compare ten films."""
        case = self.case()
        metric = GroupFilms(GROUPS.index(self.group), tuple(sorted({*self.tops, TEN})))
        released = [m for reading in READINGS for m in self.methods(reading).values()]
        mechanisms = [*released, AllRecords()]
        return {case.name: Sweep([case.dataset], mechanisms, [metric], self.seeds)}

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results with the names of films, and the list of one release. The true films
        occur for all meanings of ε.
        """
        rows = super().rows(store)
        names = dict(enumerate(film_names(self.case().dataset)))
        rows = rows.assign(film=rows.film.map(names))
        methods = {x: self.methods(x) | {TRUTH: AllRecords()} for x in READINGS}
        both = in_readings(rows, methods)
        return both[(both.metric != "list") | (both.seed == 0)].reset_index(drop=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels: precision by K under each meaning of ε, with K = 10 marked, and then
        the released counts of the true ten films.
        """
        top, counts = {"metric": PRECISION}, {"metric": "Count"}
        titles = [(x, of.format(self.epsilon)) for x, of in IN_TITLES.items()]
        return [
            *(Panel(of, top | {"reading": x}, "top", log="x", mark=TEN) for x, of in titles),
            *(
                Panel(f"counts, {of}", counts | {"reading": x}, "place", log="")
                for x, of in titles
            ),
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results of the five mechanisms, and the counts of the mechanisms SRA and HPA with the
        true counts.
        """
        counts = (rows.metric == "Count") & rows.series.isin((TRUTH, *OURS))
        precision = (rows.metric == PRECISION) & rows.series.isin(METHODS)
        return rows[counts | precision]

    def table(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table of the ten films: the true ones, and those of one release of the mechanism SRA and
        of HPA. A star marks the true ten.
        """
        lists = rows[rows.metric == "list"].astype({"place": int})
        by_reading = lists.set_index(["reading", "series", "place"]).film
        true = by_reading[READINGS[0], TRUTH]
        columns = {TRUTH: true}
        for reading in READINGS:
            for series in OURS:
                films = by_reading[reading, series]
                stars = films.isin(true).map({True: " *", False: ""})
                columns[f"{series}, ε {reading}"] = films + stars
        return pd.DataFrame(columns)
