"""Fan & Jin 2015: what Figures 7 to 9 share, their runs, on each twin under several laws of popularity."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

from experiments.fan2015.data import (
    FILES,
    TWIN,
    Case,
    FanFigure,
    datasets,
    in_order,
    one_law,
    panel_of,
    popularities,
    users_of_netflix,
)
from experiments.fan2015.unreleased import EqualCounts, TopItems
from workbench import DP, Sweep, run
from workbench.compiled import pd
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.fields import epsilon, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import FPA, GS, HPA, LPA, SRA
from workbench.trials.metrics import KLDivergence, MeanSquaredCountError, TopPrecision
from workbench.value import format_number, value

OURS = ("SRA", "HPA")
OTHERS = ("LPA", "DFT", "GS")
METHODS = (*OURS, *OTHERS)
SQUARED = "MeanSquaredCountError"
DIVERGENCE = "KLDivergence"
PRECISION = "TopPrecision"
JUDGED = (
    "original_given_released"  # as the axes of Figures 7(b) and 8(b) have it, which end at 9
)
REVERSED = "released_given_original"
TEN = 10
FEW = 21  # coefficients of DFT
# ε of a whole release, or of its items and of its edges each; HPA learns popularity with 0.1 ε, or
# in the last reading with a tenth of 2 ε, as all its shares are doubled
READINGS = ("total", "each", "each, and popularity")
DRAWN = READINGS[:2]
IN_TITLES = dict(zip(READINGS, ("ε in total", "ε each", "ε each, popularity too"), strict=True))
POPULARITY = 0.1  # of ε
PUBLISHED = {  # users and records, where the dataset does not say them itself
    "Gowalla (LGLMF)": (5628, 620_683),
    "Gowalla": (12_579, 739_600),
    "Online Retail": (4372, 406_829),
    "Foursquare New York": (1083, 227_428),
    "Foursquare Tokyo": (2293, 573_703),
    "Netflix": (480_189, 100_480_507),
    "MovieLens": (6040, 1_000_209),
}
TOPS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)


# What Figures 7 to 9 and Table 5 run, five methods and others for comparison.
#
# ε is of a whole release, or of its items and of its edges each, with 0.1 ε or 0.2 ε for popularity: all
# three readings are run. All methods enforce their M, as the paper's do not need to. Beside the five, and
# never judged, stands what a user would try next: `consistent` (items and edges reconciled), `total` (all
# counts scaled to the published number of records), HPA with half of its l records at random, and the l
# that the corrected formula suggests, from the published numbers of users and records (M their mean) and a
# guess of popularity as 1/rank; then rivals on fair terms: DFT and GS from l records of each user, as SRA
# has (of LPA that makes SRA itself), DFT with few coefficients, GS where a user counts once an item. Last a
# table in which each count is the mean.


def next_methods(case: Case, budget: DP) -> dict[str, Any]:
    """What a user would try next, by the names of series."""
    twin = case.dataset
    users, records = (twin.users, twin.records) if case.twin else PUBLISHED[case.name]
    public = dict(n=users, bound=round(records / users), popularity=1.0)
    simple = partial(SRA, budget, case.l)
    picked = partial(HPA, budget, case.l, case.d)
    return {
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
    """The paper's five where ε is of all, or of items and of edges each (HPA: 0.9 ε each).

    The paper does not print the budget for popularity. We use 0.1 ε, or 0.2 ε if all shares are doubled.
    """
    budget = DP(epsilon)
    picked = DP(epsilon)
    share = POPULARITY
    if reading == "each":
        spent = POPULARITY + 2 * (1 - POPULARITY)
        budget = DP(2 * epsilon)
        picked = DP(spent * epsilon)
        share = POPULARITY / spent
    elif reading == READINGS[2]:
        budget = picked = DP(2 * epsilon)
    return {
        "SRA": SRA(budget, case.l),
        "HPA": HPA(picked, case.l, case.d, popularity_share=share),
        "LPA": LPA(budget, case.most),
        "DFT": FPA(budget, case.most, k),
        "GS": GS(budget, case.most, width),
    }


def beside_methods(
    case: Case, budget: DP, k: int | None = None, width: int | None = None
) -> dict[str, Any]:
    """Further methods for comparison, by the names of series."""
    return next_methods(case, budget) | {
        "DFT, l records": FPA(budget, case.l, k),
        "GS, l records": GS(budget, case.l, width),
        f"DFT, {FEW} coefficients": FPA(budget, case.most, FEW),
        "GS, once an item": GS(budget, case.most, width, once=True),
        EqualCounts.series: EqualCounts(),
    }


def mechanism_of_trials(rows: pd.DataFrame) -> pd.Series:
    """What each row's trial ran, as it is written."""
    return rows.trial.str.extract(", mechanism=(.*), seed=", expand=False)


def count_metrics(tops: Iterable[int], top: int) -> list[Any]:
    """Squared error, divergences and precision: of items for all `tops`, of edges for one."""
    metrics: list[Any] = [TopItems()]
    for of, ks in (("items", tops), ("edges", (top,))):
        metrics.append(MeanSquaredCountError(of))
        metrics += [KLDivergence(of, JUDGED), KLDivergence(of, REVERSED)]
        metrics += [TopPrecision(k, of) for k in sorted(ks)]
    return metrics


@value
class FiveMethods(FanFigure, Figure):
    """Runs of five methods, the same for the same metrics."""

    quick = {"netflix_users": 2000, "beside_seeds": 1, "seeds": 1}
    rough = {"netflix_users": 2000, "beside_seeds": 1, "seeds": 1, "taken_apart": 1}
    sized_by = ("netflix_users",)

    data: tuple[str, ...] = datasets()
    epsilon: float = epsilon(1.0)
    l: int = whole(10, "records of each user that SRA and HPA keep", unit="records")  # noqa: E741
    movielens_l: int = whole(30, "l on MovieLens", unit="records")
    d: int | None = whole(None, "records of a user for popularity; none: the least of one")
    most: int | None = whole(None, "M of LPA, DFT and GS; none: the most of a user")
    k: int | None = whole(None, "DFT's coefficients; none: chosen privately", kind=UNPRINTED)
    width: int | None = whole(None, "of GS' groups; none: chosen privately", kind=UNPRINTED)
    popularities: tuple[float, ...] = popularities()
    netflix_users: int = users_of_netflix()
    beside_seeds: int = whole(5, "releases of what stands beside", kind=EFFORT)
    seeds: int = seeds(20)

    def methods(self, case: Case, reading: str) -> dict[str, Any]:
        """The five on a dataset where ε is read so, by series."""
        return five_methods(case, self.epsilon, reading, self.k, self.width)

    def beside(self, case: Case) -> dict[str, Any]:
        """What is not judged, where ε is of the whole release."""
        return beside_methods(case, DP(self.epsilon), self.k, self.width)

    def metrics(self) -> list[Any]:
        """The same list in all figures, so that they share their runs."""
        return count_metrics(TOPS, TEN)

    def sweeps(self) -> dict[str, Sweep]:
        """The five: a dataset a panel, under all laws."""
        sweeps = {}
        for name, case in self.cases().items():
            by_reading = [self.methods(case, reading).values() for reading in READINGS]
            methods = [*dict.fromkeys(m for each in by_reading for m in each)]
            laws = [*case.laws(self.popularities).values()]
            sweeps[name] = Sweep(laws, methods, self.metrics(), self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Series are what the methods are called; each row has its reading of ε and its law."""
        sweeps = self.sweeps()
        frames = []
        for name, case in self.cases().items():
            beside = self.beside(case)
            times = min(self.beside_seeds, self.seeds)
            more = Sweep([case.dataset], [*beside.values()], self.metrics(), times)
            rows = pd.concat([run(sweeps[name], store), run(more, store)])
            laws = {repr(x): law for law, x in case.laws(self.popularities).items()}
            rows = rows.assign(panel=name, law=rows.dataset.map(laws))
            made = mechanism_of_trials(rows)
            for reading in READINGS:  # which share what spends as much
                methods = self.methods(case, reading) | (
                    beside if reading == READINGS[0] else {}
                )
                series = made.map({repr(m): series for series, m in methods.items()})
                own = rows.assign(reading=reading, series=series)
                frames.append(own[series.notna()])
        return pd.concat(frames, ignore_index=True)


def drawn_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The five that the paper draws, and twins as built."""
    return one_law(rows[rows.series.isin(METHODS)])


@value
class Counts(FiveMethods):
    """What is the same for items and edges, in Figures 7 and 8."""

    height = 1.5
    sharey = True

    of: ClassVar[str]

    top: int = whole(10, "K of (c), the most popular items")

    def metrics(self) -> list[Any]:
        """With the precision of (c)."""
        return count_metrics({*TOPS, self.top}, self.top)

    def rows(self, store) -> pd.DataFrame:
        """The errors of these counts; the precision of (c) of items and of edges."""
        rows = super().rows(store)
        shown = (rows.metric == PRECISION) & (rows.top == self.top)
        return rows[(rows.of == self.of) | shown].reset_index(drop=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Error, divergence up to 9, as printed, and precision, under two readings of ε; so of all others."""
        tops = "items" if self.of == "items" else "edges of a context"
        judged = {"metric": DIVERGENCE, "direction": JUDGED}
        precision = {"metric": PRECISION, "top": self.top}
        grid = []
        shown: tuple[tuple[str, dict, dict], ...] = (
            (f"error of {self.of}", {"metric": SQUARED}, {"log": "xy"}),
            (f"divergence of {self.of}", judged, {"log": "", "ylim": (0, 9)}),
            (f"top {self.top} {tops}", precision, {"log": ""}),
        )
        for beside in sorted(rows.beside.unique()):
            for title, where, how in shown:
                for reading in DRAWN:
                    here = {"of": self.of, "reading": reading, "beside": beside, **where}
                    name = f"{title}, {IN_TITLES[reading]}"
                    grid.append(Panel(name, here, "panel", bars=True, **how))
        return grid

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The five methods, on stand-ins as built; names in two lines, the paper's datasets first."""
        drawn = in_order(drawn_rows(rows))
        beside = ~drawn.panel.isin([panel_of(drawn, of) for of in FILES.values()])
        names = drawn.panel.str.replace(TWIN, "\n" + TWIN.strip(), regex=False)
        return drawn.assign(panel=names, beside=beside)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Means over seeds: a row a dataset, reading of ε and method, those beside included."""
        rows = one_law(rows[rows.of == self.of])
        table = {
            "squared error": _means(rows, metric=SQUARED).map(format_number),
            "KL": _means(rows, metric=DIVERGENCE, direction=JUDGED).map(format_number),
            "KL, reversed": _means(rows, direction=REVERSED).map(format_number),
            "top 10": _means(rows, metric=PRECISION, top=TEN).map("{:.0%}".format),
        }
        frame = pd.DataFrame(table).loc[[*rows.panel.unique()]]
        return frame.rename_axis(["dataset", "ε", "method"])


def _means(rows: pd.DataFrame, **where) -> pd.Series:
    for column, x in where.items():
        rows = rows[rows[column] == x]
    return rows.groupby(["panel", "reading", "series"], sort=False).value.mean()
