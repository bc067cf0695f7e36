"""Runs, metrics and checks that Figures 7 to 9 and Table 5 of Fan & Jin (2015) share. They compare five
mechanisms that count items, and edges (pairs of an item and a context, for example a film and a group of
users).

The rows of the results have a column `reading`, which says whether ε is that of the whole release, or of
items and of edges each. Results on a stand-in also have a `law`, the assumed popularity of its items. Results
on a published file have the law FILE. A statement is tested for every combination of reading and law. A law
of a stand-in cannot contradict the paper. So if a statement holds for no law, it is not testable, unless
every dataset is a published file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from itertools import product
from math import nextafter, sqrt
from typing import Any, ClassVar

import numpy as np

from experiments._fields import effort, unprinted
from experiments.fan2015.data import (
    AS_BUILT,
    CUT,
    FILE,
    FILES,
    TWIN,
    Case,
    FanFigure,
    datasets,
    in_order,
    one_law,
    panel_of,
    popularities,
    records_for_popularity,
    rows_of,
    users_of_netflix,
)
from experiments.fan2015.unreleased import EqualCounts, TopItems
from workbench import DP, Sweep, run
from workbench.compiled import pd
from workbench.data import Interactions
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.figures import Figure
from workbench.figures.fields import epsilon, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import FPA, GS, HPA, LPA, SRA
from workbench.trials.claims import (
    ALIKE,
    DEPENDS,
    OFTEN,
    Finding,
    Intervals,
    all_of,
    any_of,
    check_between,
    check_lower,
    exact,
    means,
    over,
    paired_ratios,
)
from workbench.trials.metrics import KLDivergence, MeanSquaredCountError, TopPrecision
from workbench.value import format_number, parameter, value

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
IN_TITLES = {
    "total": "ε = {:g} in total",
    "each": "ε = {:g} each",
    "each, and popularity": "ε = {:g} each, popularity too",
}
READINGS = tuple(IN_TITLES)
DRAWN = READINGS[:2]
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
    """Return mechanisms that a user would try next after the paper's mechanisms SRA and HPA, by the names of
    their curves.
    """
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
    """Return the paper's five mechanisms. `reading` says whether ε is that of the whole release, or of items
    and of edges each (for the mechanism HPA, 0.9 ε each).

    The paper does not print the budget for popularity. We use 0.1 ε, or 0.2 ε if all shares are doubled.
    """
    budget = picked = DP(epsilon if reading == "total" else 2 * epsilon)
    share = POPULARITY
    if reading == "each":
        spent = POPULARITY + 2 * (1 - POPULARITY)
        picked = DP(spent * epsilon)
        share = POPULARITY / spent
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
    """Return further mechanisms for comparison, by the names of their curves."""
    return next_methods(case, budget) | {
        "DFT, l records": FPA(budget, case.l, k),
        "GS, l records": GS(budget, case.l, width),
        f"DFT, {FEW} coefficients": FPA(budget, case.most, FEW),
        "GS, once an item": GS(budget, case.most, width, once=True),
        EqualCounts.series: EqualCounts(),
    }


def mechanism_of_trials(rows: pd.DataFrame) -> pd.Series:
    """Return the text of the mechanism that each row's trial ran."""
    return rows.trial.str.extract(", mechanism=(.*), seed=", expand=False)


def in_readings(rows: pd.DataFrame, methods: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return the results once for each meaning of ε (of the whole release, or of each table), with the names
    of curves. Meanings with the same budgets share their runs.
    """
    made = mechanism_of_trials(rows)
    frames = []
    for reading, named in methods.items():
        series = made.map({repr(m): series for series, m in named.items()})
        frames.append(rows.assign(reading=reading, series=series)[series.notna()])
    return pd.concat(frames, ignore_index=True)


def coefficients() -> Any:
    """Return the declaration of the field `k`, the number of DFT's coefficients. It must be odd, as for
    `FPA`.
    """
    odd = next(f.metadata["check"] for f in fields(FPA) if f.name == "k")
    doc = "DFT's coefficients (none: chosen privately)"
    return unprinted(None, doc, check=odd)


def count_metrics(tops: Iterable[int], top: int) -> list[Any]:
    """Return the metrics: squared error, divergences, and precision of the top items for all K in `tops`, and
    of the top edges for K = `top`.
    """
    metrics: list[Any] = [TopItems()]
    for of, ks in (("items", tops), ("edges", (top,))):
        metrics.append(MeanSquaredCountError(of))
        metrics += [KLDivergence(of, JUDGED), KLDivergence(of, REVERSED)]
        metrics += [TopPrecision(k, of) for k in sorted(ks)]
    return metrics


@value
class FiveMethods(FanFigure, Figure):
    """Base class of figures that run the paper's five mechanisms on all datasets. Figures with the same
    metrics share their runs.
    """

    quick = {"netflix_users": 2000, "beside_seeds": 1, "seeds": 1}
    rough = {"netflix_users": 2000, "beside_seeds": 1, "seeds": 1, "taken_apart": 1}
    sized_by = ("netflix_users",)

    data: tuple[str, ...] = datasets()
    epsilon: float = epsilon(1.0)
    l: int = whole(10, "number of records that SRA and HPA keep per user", unit="records")  # noqa: E741
    movielens_l: int = whole(30, "records kept per user (l) on MovieLens", unit="records")
    d: int | None = records_for_popularity()
    most: int | None = whole(None, "bound M of LPA, DFT and GS (none: largest in the data)")
    k: int | None = coefficients()
    width: int | None = unprinted(None, "group size of GS (none: chosen privately)")
    popularities: tuple[float, ...] = popularities()
    netflix_users: int = users_of_netflix()
    beside_seeds: int = effort(5, "number of releases of other methods")
    seeds: int = seeds(20)

    def methods(self, case: Case, reading: str) -> dict[str, Any]:
        """Return the five mechanisms for a dataset, by the names of their curves. `reading` says whether ε is
        that of the whole release, or of items and of edges each.
        """
        return five_methods(case, self.epsilon, reading, self.k, self.width)

    def beside(self, case: Case) -> dict[str, Any]:
        """Return the mechanisms for comparison, with ε for the whole release. No statement is
        tested on them.
        """
        return beside_methods(case, DP(self.epsilon), self.k, self.width)

    def metrics(self) -> list[Any]:
        """Return the metrics. They are the same in all figures, so the figures share their runs."""
        return count_metrics(TOPS, TEN)

    def sweeps(self) -> dict[str, Sweep]:
        """Return one sweep per dataset, with the five mechanisms under all meanings of ε and all assumed laws
        of popularity.
        """
        sweeps = {}
        for name, case in self.cases().items():
            by_reading = [self.methods(case, reading).values() for reading in READINGS]
            methods = [*dict.fromkeys(m for each in by_reading for m in each)]
            laws = [*case.laws(self.popularities).values()]
            sweeps[name] = Sweep(laws, methods, self.metrics(), self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with the meaning of ε and the assumed law of popularity of each row."""
        sweeps = self.sweeps()
        frames = []
        for name, case in self.cases().items():
            beside = self.beside(case)
            times = min(self.beside_seeds, self.seeds)
            more = Sweep([case.dataset], [*beside.values()], self.metrics(), times)
            rows = pd.concat([run(sweeps[name], store), run(more, store)])
            laws = {repr(x): law for law, x in case.laws(self.popularities).items()}
            rows = rows.assign(panel=name, law=rows.dataset.map(laws))
            methods = {reading: self.methods(case, reading) for reading in READINGS}
            methods[READINGS[0]] |= beside
            frames.append(in_readings(rows, methods))
        return pd.concat(frames, ignore_index=True)


def drawn_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results of the paper's five mechanisms, with synthetic stand-ins only under their own
    assumed law of popularity.
    """
    return one_law(rows[rows.series.isin(METHODS)])


@value
class Counts(FiveMethods):
    """Base class of Figures 7 and 8 of Fan & Jin (2015), which show the same errors for counts of items and
    of edges. An edge is a pair of an item and a context.
    """

    height = 1.5
    sharey = True

    of: ClassVar[str]

    top: int = whole(10, "number K of top items in (c)")

    def metrics(self) -> list[Any]:
        """Return the metrics, with the precision that panel (c) shows."""
        return count_metrics({*TOPS, self.top}, self.top)

    def rows(self, store) -> pd.DataFrame:
        """Return the errors of the figure's counts (items or edges), and the precision of panel (c)
        for both.
        """
        rows = super().rows(store)
        shown = (rows.metric == PRECISION) & (rows.top == self.top)
        return rows[(rows.of == self.of) | shown].reset_index(drop=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels: error, divergence (up to 9, as printed) and precision, with ε for the
        whole release or for each table. Further panels show the datasets that are not in the paper.
        """
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
                    name = f"{title}, {IN_TITLES[reading].format(self.epsilon)}"
                    grid.append(Panel(name, here, "panel", bars=True, **how))
        return grid

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results of the five mechanisms, with the paper's datasets first. The names of synthetic
        stand-ins have two lines.
        """
        drawn = in_order(drawn_rows(rows))
        beside = ~drawn.panel.isin([panel_of(drawn, of) for of in FILES.values()])
        names = drawn.panel.str.replace(TWIN, "\nstand-in", regex=False)
        return drawn.assign(panel=names, beside=beside)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table of means over seeds. It has one row per dataset, meaning of ε and mechanism,
        including the mechanisms for comparison.
        """
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


OWN, COMMON = "of its own ten", "of everybody's ten"


@value
class GroupFilms:
    """Metric: what is released about one group (context): precision for several K, the released counts of the
    true ten items, and the ten items with the highest released counts.
    """

    group: int = parameter(low=0, integer=True, doc="context of the items")
    tops: tuple[int, ...] = parameter(low=1, integer=True, many=True, doc="K")

    def __call__(self, truth: Interactions, estimate: Any) -> pd.DataFrame:
        """Return rows with the metrics `TopPrecision`, `Count` and `list`. Items are given by their codes."""
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


@value
class GroupPrecision:
    """Metric: share of each context's ten most popular items that are among the released ten."""

    def __call__(self, truth: Interactions, estimate: ItemEdgeCounts) -> pd.DataFrame:
        """Return the metric's values, with one row per context."""
        ten = TopPrecision(TEN)
        groups = range(truth.domain.shape[1])
        shares = [ten(context_records(truth, g), context_tables(estimate, g)) for g in groups]
        return pd.DataFrame({"group": groups, "value": shares})


@value
class GroupTaste:
    """Metric: share of a context's records that belong to its own ten most popular items. It also gives the
    share of all records that belong to the ten most popular items overall.
    """

    def __call__(self, truth: Interactions, estimate: Interactions) -> pd.DataFrame:
        """Return the metric's values, with one row per context, and one row for all records."""
        counts = truth.edge_counts()
        own = [_share_of_ten(column) for column in counts.T]
        groups = pd.DataFrame({"part": OWN, "group": range(len(own)), "value": own})
        everybody = pd.DataFrame(
            {"part": [COMMON], "value": [_share_of_ten(counts.sum(axis=1))]}
        )
        return pd.concat([groups, everybody], ignore_index=True)


def _share_of_ten(counts) -> float:
    return float(np.sort(counts)[-TEN:].sum() / counts.sum())


def highest(counts: np.ndarray) -> np.ndarray:
    """Return the ten items with the highest counts."""
    return (-counts).argsort(kind="stable")[:TEN]


def context_records(data: Interactions, context: int) -> Interactions:
    """Return the records in one context."""
    chosen = data.contexts == context
    columns = (data.users[chosen], data.items[chosen], data.contexts[chosen])
    return Interactions(data.domain, *columns, data.bound, data.truth_public)


def context_tables(tables: ItemEdgeCounts, context: int) -> ItemEdgeCounts:
    """Return the released tables, with the edge counts of one context in place of the item counts."""
    edges = tables.edges.values.reshape(tables.domain.shape)[:, context]
    return ItemEdgeCounts(Histogram(tables.items.domain, edges), tables.edges)


SAMPLED = {name: f"{name}, sampled" for name in OURS}  # before noise
FOUR = ("Gowalla", "Foursquare", "Netflix", "MovieLens")
BELOW_ONE = nextafter(1, 0)

Check = Callable[["pd.DataFrame", float], Finding]
ABOVE_ONE = nextafter(1, 2)
ABOVE_ZERO = nextafter(0, 1)


def swept(
    rows: pd.DataFrame,
    level: float,
    check: Check,
    of: Collection[str] = FOUR,
    *,
    as_built: bool = False,
) -> Finding:
    """Repeat a check on some of the paper's four datasets, for all readings of ε that were run and all laws
    of popularity.

    Parameters
    ----------
    rows : DataFrame
        Results of one metric, of items or of edges.
    level : float
        Joint confidence level of all readings and laws together.
    check : callable
        Function that takes the rows of one reading and law, and a level.
    of : collection of str
        Datasets, as the paper names them.
    as_built : bool
        Whether stand-ins are used only under their own law.
    """
    own = pd.concat([rows_of(rows, name) for name in of])
    own = own[own.series.isin(METHODS)]
    laws = [law for law in own.law.unique() if law != FILE]
    by_law = bool(laws) and not as_built
    readings = tuple(reading for reading in READINGS if (own.reading == reading).any())
    values = tuple(product(readings, laws)) if by_law else readings

    def at(value, level):
        reading, law = value if by_law else (value, AS_BUILT)
        chosen = (own.reading == reading) & own.law.isin((law, FILE))
        return check(own[chosen], level)

    finding = over("ε, popularity" if by_law else "ε", values, at, level)
    whole = not own.panel.str.endswith(CUT).any()  # of a cut twin the figure leaves all open
    if by_law and whole and finding.strip.outcomes == {False}:
        why = "it holds under no law of the twins', which cannot contradict"
        return replace(finding, holds=None, testable=False, why=why)
    if by_law and finding.outcome == DEPENDS and _law_alone_decides(finding, laws):
        why = "it turns with the popularity that stand-ins invent, and with no reading of ε"
        return replace(finding, holds=None, testable=False, why=why)
    return finding


def _law_alone_decides(finding: Finding, laws: Collection[float]) -> bool:
    """Return whether only the assumed law of popularity changes the outcome, that is, whether under each law
    all meanings of ε agree.
    """
    holds = [each for _, each in finding.strip.holds]
    return not any({True, False} <= set(holds[i :: len(laws)]) for i in range(len(laws)))


def check_below(
    rows,
    level,
    lower: Collection[str] = OURS,
    higher: Collection[str] = OTHERS,
    high: float = BELOW_ONE,
) -> Finding:
    """Check whether each mechanism in `lower` has a smaller value than each one in `higher` on every dataset.
    With `high`, the value may be at most this many times as high.
    """
    most = dict(high=high, words="lower" if high == BELOW_ONE else f"at most {high:g}×")
    parts = {
        f"{a} below {b}": partial(check_between, paired_ratios(rows, a, b, "panel"), **most)
        for a, b in product(lower, higher)
    }
    return all_of(parts, level)


def check_not_lowest(rows, level) -> Finding:
    """Check whether, on every dataset, the mechanism SRA or HPA has a larger value than one of the other
    mechanisms.
    """

    def on(name, level):
        own = rows[rows.panel == name]
        parts = {
            f"{b} below {a}": partial(check_lower, paired_ratios(own, b, a, "panel"))
            for a, b in product(OURS, OTHERS)
        }
        return any_of(parts, level)

    return all_of({name: partial(on, name) for name in rows.panel.unique()}, level)


def check_comparable(rows, level) -> Finding:
    """Check whether the mechanisms SRA and HPA have at most 1.25 times the smallest value of the others, on
    three quarters of the datasets.
    """
    own = rows[rows.series.isin(OTHERS)]
    best = own.groupby(["panel", "series"]).value.mean().groupby("panel").idxmin()
    chosen = own.set_index(["panel", "series"]).index.isin(best)
    both = pd.concat([rows, own[chosen].assign(series="least")])
    most = dict(high=ALIKE, share=OFTEN, words="at most 1.25×")
    ratios = {a: paired_ratios(both, a, "least", "panel") for a in OURS}
    return all_of({a: partial(check_between, x, **most) for a, x in ratios.items()}, level)


def check_preserved(rows, level) -> Finding:
    """Check whether the divergences of the mechanisms DFT and GS are closer to the smallest divergence than
    to that of LPA, for three quarters of the bars.
    """
    keys = ["panel", "seed"]
    by_seed = rows.pivot(index=keys, columns="series", values="value")
    middle = (by_seed.min(axis=1) + by_seed.LPA) / 2
    frames = [
        pd.DataFrame({"value": by_seed[name] / middle, "bar": name}) for name in ("DFT", "GS")
    ]
    bars = pd.concat(frames).reset_index().assign(series="nearness")
    numbers = means(bars, "nearness", ["panel", "bar"])
    words = "nearer to the least"
    return check_between(numbers, level, high=BELOW_ONE, share=OFTEN, words=words)


def check_closer_sample(rows, level) -> Finding:
    """Check whether, before noise, the sample of the mechanism SRA is closer to the original data than that
    of HPA, on every dataset.
    """
    own = pd.concat([rows_of(rows, name) for name in FOUR])
    ratios = paired_ratios(one_law(own), SAMPLED["SRA"], SAMPLED["HPA"], "panel")
    return check_lower(ratios, level)


# The checks of what Figures 7 to 9 say of the most popular items.
#
# Rows are of one reading of ε and one law of popularity (see `judged`). Precisions are compared by
# differences, seed by seed, as many of them are 0 or 1.


def find_few(rows, level) -> Finding:
    """Check whether the mechanisms LPA, DFT and GS find fewer than half of the true ten items, on every
    dataset.
    """
    points = rows[rows.series.isin(OTHERS)].assign(method=rows.series, series="share")
    numbers = means(points, "share", ["method", "panel"])
    return check_between(numbers, level, high=nextafter(0.5, 0), words="fewer than half")


def differences(
    rows, more: Collection[str], fewer: Collection[str], by: Collection[str] = ("panel",)
) -> pd.DataFrame:
    """Return the differences between each mechanism in `more` and each one in `fewer`, by seed. The column
    `pair` names the two mechanisms.
    """
    by_seed = rows.pivot(index=[*by, "seed"], columns="series", values="value")
    frames = [
        (by_seed[a] - by_seed[b]).rename("value").reset_index().assign(pair=f"{a} − {b}")
        for a, b in product(more, fewer)
    ]
    return pd.concat(frames).assign(series="difference").dropna(subset="value")


def mean_differences(
    points: pd.DataFrame, by: Collection[str] = ("pair", "panel")
) -> Intervals:
    """Return the mean differences, with their confidence intervals, at each point."""
    return means(points, "difference", [*by])


def exceed(
    rows, level, more: Collection[str] = OURS, fewer: Collection[str] = OTHERS
) -> Finding:
    """Check whether each mechanism in `more` finds more items than each one in `fewer`, on every dataset."""
    numbers = mean_differences(differences(rows, more, fewer))
    return check_between(numbers, level, low=ABOVE_ZERO, words="more")


def check_ahead(rows, level) -> Finding:
    """Check whether the mechanism HPA finds more items than SRA. Datasets on which both find all items in all
    runs are left out.
    """
    own = rows[rows.series.isin(OURS)]
    least = own.groupby("panel").value.min()
    open_to = own[own.panel.isin(least.index[least < 1])]
    if open_to.empty:
        return Finding(False, "both find all, everywhere")
    return exceed(open_to, level, ["HPA"], ["SRA"])


def check_all_found(rows, level) -> Finding:
    """Check whether the mechanism HPA finds all of the true ten items. A mean of at least 99.5 % is accepted,
    which is one missed item in 20 runs.
    """
    return check_between(means(rows, "HPA", "panel"), level, low=0.995)


def check_noise_hides(rows, level) -> Finding:
    """Check whether the standard deviation of LPA's noise is larger than the difference between the first and
    the tenth item's counts, on every dataset.
    """
    own = rows[(rows.series == "LPA") & (rows.quantity == TopItems.AHEAD)]
    deviation = sqrt(2) * own.bound / (own.epsilon / 2)
    times = (deviation / own.value).groupby(own.panel).first()
    return check_between(exact(times), level, low=ABOVE_ONE, words="above")


def check_smoothed(rows, level) -> Finding:
    """Check whether the mechanisms DFT and GS release a smaller difference between the top ten and the next
    ten items than the true one, on every dataset.
    """
    own = rows[rows.series.isin(("DFT", "GS"))]
    keys = ["series", "panel", "seed"]
    by_seed = own.pivot(index=keys, columns="quantity", values="value")
    lost = by_seed[TopItems.TRUE] - by_seed[TopItems.RELEASED]
    points = lost.rename("value").reset_index()
    points = points.assign(method=points.series, series="difference")
    numbers = mean_differences(points, ["method", "panel"])
    return check_between(numbers, level, low=ABOVE_ZERO, words="less")


def check_no_majority(rows, level) -> Finding:
    """Check whether at most half of the users have rated the most popular film of MovieLens."""
    own = one_law(rows_of(rows, "MovieLens"))
    share = own[own.quantity == TopItems.FIRST].value.iloc[0]
    return Finding(bool(share <= 0.5), f"the most rated film: {share:.1%} of the users")
