"""Fan & Jin 2015, Table 5: the ten films to recommend to men under 25.

Paper   Fan & Jin, WWW 2015: section 6.4 and Table 5; edge counts of MovieLens 1M at ε = 1, l = 30,
        d = 20, with 0.45 of ε for edges in HPA and 0.5 in SRA.
Read    the lists from the flattened table: HPA's lacks two of the true ten, and "Men in Black" and
        "The Fugitive" stand in their places; SRA's has from two to four of them.
Open    MovieLens 1M where its files are at hand, with titles; else a twin, whose films are numbers and
        whose groups differ by a law of ours: how much men under 25 have tastes of their own decides
        this table, and is the twin's invention. ε = 1 may be of the whole release, or of items and of
        edges each, with 0.1 or 0.2 for popularity; all three are run. The paper prints one release;
        judged is the mean over runs of how many of the true ten a release has. LPA, DFT and GS, HPA
        with half of its l records at random, and releases made consistent stand beside it. Ties count
        by what a random order would give.
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
    """What each item is called: its title where titles are at hand, else its number."""
    titles = dataset.titles() if hasattr(dataset, "titles") else {}
    labels = dataset.domain.decode("item", range(dataset.domain.shape[0]))
    return [titles.get(label, f"film {label}") for label in labels]


def _films(rows) -> pd.DataFrame:
    """How many of the true ten each release has."""
    chosen = (rows.metric == PRECISION) & (rows.top == TEN) & (rows.series != TRUTH)
    return rows[chosen].assign(value=TEN * rows.value)


def check_kept(rows, level) -> Finding:
    """HPA has seven of the true ten at least."""
    own = means(_films(rows_of(rows, "MovieLens")), "HPA", "top")
    return check_between(own, level, low=LEAST, unit=" of the true ten")


def check_better(rows, level) -> Finding:
    """HPA has more of them than SRA, seed by seed."""
    films = _films(rows_of(rows, "MovieLens"))
    more = mean_differences(differences(films, ["HPA"], ["SRA"], ["top"]), ["top"])
    unit = f" films more than SRA's {films[films.series == 'SRA'].value.mean():.1f}"
    return check_between(more, level, low=ABOVE_ZERO, unit=unit)


@value
class Table5(FanFigure, Figure):
    """The films that one group of people rates most, as released."""

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
        """MovieLens, or its twin."""
        (case,) = cases([self.data], movielens_l=self.l, d=self.d, most=self.most).values()
        return case

    def methods(self, reading: str) -> dict[str, Any]:
        """What is run where ε is of all, or of each, by series."""
        case = self.case()
        methods = five_methods(case, self.epsilon, reading, self.k, self.width)
        more = next_methods(case, DP(self.epsilon)) if reading == READINGS[0] else {}
        return methods | more

    def sweeps(self) -> dict[str, Sweep]:
        """One dataset; ten films are always compared."""
        case = self.case()
        metric = GroupFilms(GROUPS.index(self.group), tuple(sorted({*self.tops, TEN})))
        released = [m for reading in READINGS for m in self.methods(reading).values()]
        mechanisms = [*released, AllRecords()]
        return {case.name: Sweep([case.dataset], mechanisms, [metric], self.seeds)}

    def rows(self, store) -> pd.DataFrame:
        """Films by name, and the list of one release; the true ones stand in all readings of ε."""
        rows = super().rows(store)
        names = dict(enumerate(film_names(self.case().dataset)))
        rows = rows.assign(film=rows.film.map(names))
        methods = {x: self.methods(x) | {TRUTH: AllRecords()} for x in READINGS}
        both = in_readings(rows, methods)
        return both[(both.metric != "list") | (both.seed == 0)].reset_index(drop=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Precision over K, ten marked, under each reading of ε; then the released counts of the true ten."""
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
        """The five methods, and the counts of SRA and HPA beside the true ones."""
        counts = (rows.metric == "Count") & rows.series.isin((TRUTH, *OURS))
        precision = (rows.metric == PRECISION) & rows.series.isin(METHODS)
        return rows[counts | precision]

    def table(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The ten films, true and of one run of SRA and HPA; a star marks those of the true ten."""
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
