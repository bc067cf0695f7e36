"""Contributions: how many records of each user to count, and how; noise grows with that number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.claims import format_number
from workbench.datasets import InteractionsTwin
from workbench.domain import Domain
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.mechanism import Release
from workbench.mechanisms import FPA, GS, HPA, LPA, SRA
from workbench.metrics import (
    KLDivergence,
    MeanSquaredCountError,
    SampledSize,
    TopPrecision,
    sampling_error,
)
from workbench.noise import Aligned, variance
from workbench.plots import Panel
from workbench.privacy import DP
from workbench.value import value
from workbench.widgets.controls import Control, decades, field_control
from workbench.widgets.scenes import Picture, Setup, Values, loaded
from workbench.widgets.scenes.summaries import refuse_many
from workbench.workload import Ranges

MADE, FOURSQUARE, GOWALLA = "made up", "Foursquare twin", "Gowalla twin"
TWINS = {FOURSQUARE: InteractionsTwin.foursquare(), GOWALLA: InteractionsTwin.gowalla()}
SAMPLING, BOUNDED = ("SRA", "HPA"), ("LPA", "DFT", "GS")
STEPS = {False: (1, 3), True: (1, 2, 3, 5)}  # of l in each decade, roughly and exactly
POINTS = 40
BEFORE, ZEROS = ", before noise", "all zeros"


@value
class Contributions:
    """Five ways to count the records of users who differ in how many they have."""

    name: ClassVar[str] = "contributions"
    title: ClassVar[str] = "Contributions of users"
    words: ClassVar[str] = (
        "Users have many records, and noise must hide all that are counted of one. SRA counts l of "
        "each at random, HPA the l whose items look popular in d records of each; LPA, DFT and GS "
        "count up to M. A small l or M drops records, a large one drowns them in noise."
    )
    noise_note: ClassVar[str] = (
        "Every item and edge keeps its noise, which ε, l and M scale; once its scale passes 250 "
        "records it is drawn another way, and is other noise. Which records an l drops is drawn anew "
        "from the same seed; consistency keeps all draws."
    )
    controls: ClassVar[tuple[Control, ...]] = (
        Control("mechanism", "SRA", SAMPLING + BOUNDED, "choice"),
        Control("epsilon", 1.0, decades(0.01, 100), label="ε", doc="privacy loss"),
        field_control(
            SRA, "l", 10, decades(1, 5000, whole=True), when=({"mechanism": SAMPLING},)
        ),
        field_control(
            HPA, "d", 1, decades(1, 100, whole=True), when=({"mechanism": ("HPA",)},)
        ),
        field_control(
            HPA,
            "popularity_share",
            0.1,
            (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9),
            when=({"mechanism": ("HPA",)},),
        ),
        field_control(
            LPA,
            "bound",
            1000,
            decades(1, 20_000, whole=True),
            label="bound, M",
            when=({"mechanism": BOUNDED},),
        ),
        field_control(SRA, "consistent", False, when=({"mechanism": ("SRA", "HPA", "LPA")},)),
        Control(
            "of", "items", ("items", "edges"), "choice", "counts of", doc="edge: item and day"
        ),
        Control("data", MADE, (MADE, *TWINS), "choice", doc="twins of Fan and Jin's Table 4"),
        *(
            field_control(InteractionsTwin, name, now, stops, when=({"data": (MADE,)},), **told)
            for name, now, stops, told in (
                ("users", 10_000, decades(100, 10**5, whole=True), {}),
                ("items", 2000, decades(10, 20_000, whole=True), {}),
                ("records", 300_000, decades(1000, 2 * 10**6, whole=True), {}),
                (
                    "max_per_user",
                    1000,
                    decades(10, 20_000, whole=True),
                    dict(label="most of a user", doc="records of the most active one"),
                ),
                ("exponent", 1.25, decades(0.1, 5), dict(label="inequality of users")),
                (
                    "popularity",
                    0.8,
                    decades(0.1, 3, zero=True),
                    dict(label="inequality of items"),
                ),
            )
        ),
    )
    grid: ClassVar[dict[str, tuple]] = {
        "mechanism": SAMPLING + BOUNDED,
        "epsilon": (0.1, 0.5, 1.0, 5.0),
        "l": (1, 3, 10, 30, 100),
        "of": ("items", "edges"),
    }

    def setup(self, values: Values) -> Setup:
        """The settings as a mechanism on the records of users."""
        v, budget, told = values, DP(values["epsilon"]), dict(consistent=values["consistent"])
        if v["data"] == MADE:
            refuse_many("records", v["records"])
        names = "users", "items", "records", "max_per_user", "exponent", "popularity"
        data = TWINS.get(v["data"]) or InteractionsTwin(**{name: v[name] for name in names})
        if v["mechanism"] == "SRA":
            return Setup(data, SRA(budget, v["l"], **told))
        if v["mechanism"] == "HPA":
            share = v["popularity_share"]
            return Setup(data, HPA(budget, v["l"], v["d"], share, **told))
        if v["mechanism"] == "LPA":
            return Setup(data, LPA(budget, v["bound"], **told))
        return Setup(data, {"DFT": FPA, "GS": GS}[v["mechanism"]](budget, v["bound"]))

    def look(
        self, values: Values, data: Any, release: Release, seed: int, exact: bool
    ) -> Picture:
        """Errors over l; counts and precision by popularity; records of users before and after."""
        dataset, mechanism = self.setup(values)
        name, of_, now = values["mechanism"], values["of"], values[_cut(values)]
        kept = mechanism.bounded_data(data, Aligned(seed))
        squared, rows = MeanSquaredCountError(of_), []
        most = dataset.max_per_user
        for l in sorted({*spaced(most, STEPS[exact]), most, now}):  # noqa: E741
            found = release
            if l != now:
                found = replace(mechanism, **{_cut(values): l})(data, Aligned(seed))
            row = dict(panel="error", series=name, metric="MeanSquaredCountError", kept=l)
            rows.append(row | dict(value=squared(data, found.estimate)))
        both = {name: release.estimate, name + BEFORE: kept}
        for series, one in both.items():
            for k in spaced(max(1, dataset.items // 2)):
                row = dict(panel="top", series=series, metric="TopPrecision", top=k)
                rows.append(row | dict(value=TopPrecision(k, of_)(data, one)))
        frames = [pd.DataFrame(rows)]
        cells = np.arange(data.domain.size if of_ == "edges" else dataset.items)
        order = np.argsort(-data.answer(Ranges(cells, cells + 1), of=of_), kind="stable")
        at = _places(len(cells))
        asked = Ranges(order[at - 1], order[at - 1] + 1)
        for series, one in (dict(truth=data) | both).items():
            told = dict(panel="counts", series=series, metric="Count", place=at)
            frames.append(pd.DataFrame(told | dict(value=one.answer(asked, of=of_))))
        for series, one in (("truth", data), (name, kept)):
            sizes = -np.sort(-one.records_per_user())
            told = dict(
                panel="users", series=series, metric="Records", rank=_places(len(sizes))
            )
            frames.append(pd.DataFrame(told | dict(value=sizes[told["rank"] - 1])))
        rows = pd.concat(frames, ignore_index=True)
        return Picture(rows, self._facts(values, data, kept, release.estimate))

    def _facts(self, values: Values, data: Any, kept: Any, estimate: ItemEdgeCounts) -> list:
        dataset, mechanism = self.setup(values)
        of_, items = values["of"], dataset.items
        before, after = (MeanSquaredCountError(of_)(data, x) for x in (kept, estimate))
        top = TopPrecision(10, of_)(data, estimate)
        found = [
            (
                "counted",
                f"{len(kept):,} of {len(data):,} records, {SampledSize()(data, kept):.1%}",
            ),
            (
                "squared error",
                f"{format_number(after)} records², {format_number(before)} of it before noise",
            ),
            ("KL divergence", f"{KLDivergence(of_)(data, estimate):.3g} nats"),
            ("top ten found", f"{top:.0%}" + ", mean over contexts" * (of_ == "edges")),
        ]
        if estimate.items.variance is not None:
            item, edge = np.sqrt([estimate.items.variance, estimate.edges.variance])
            words = (
                f"{format_number(item)} records on an item, {format_number(edge)} on an edge"
            )
            found.append(("noise", words + " (standard deviation)"))
        ls, _ = sampled(dataset, of_)
        errors = expected(dataset, mechanism, of_)(ls)
        best = f"{ls[errors.argmin()]:,} for SRA, knowing the data"
        if values["mechanism"] in SAMPLING:
            public = dict(n=dataset.users, bound=round(dataset.records / dataset.users))
            public["popularity"] = dataset.popularity
            suggested = replace(mechanism, l="suggested", **public).sampling_factor(items)
            best += f"; {suggested:,} for items, suggested from public numbers"
        return [*found, ("best l expected", best)]

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """Error over l, with what is expected of SRA; counts, the most popular; users."""
        dataset, mechanism = self.setup(values)
        of_, many = values["of"], values["of"].capitalize()
        nothing = partial(np.full_like, fill_value=zeros(dataset, of_))
        theory = [("SRA, expected", expected(dataset, mechanism, of_)), (ZEROS, nothing)]
        error = dict(theory=theory, whole=True, mark=values[_cut(values)])
        counts = dict(panel="counts", seed=rows.seed.min())
        return [
            Panel(f"{many}: error", {"panel": "error"}, "kept", **error),
            Panel(f"{many}: counts above 0", counts, "place"),
            Panel(f"{many}: the K most popular", {"panel": "top"}, "top", log="x"),
            Panel("Users: records counted", {"panel": "users"}, "rank"),
        ]


def spaced(most: int, steps: tuple[int, ...] = (1, 2, 5)) -> list[int]:
    """`steps` of each decade, up to `most`.

    >>> spaced(20)
    [1, 2, 5, 10, 20]
    """
    return [s * 10**k for k in range(len(str(most))) for s in steps if s * 10**k <= most]


@lru_cache(64)
def sampled(dataset: InteractionsTwin, of: str) -> tuple[np.ndarray, np.ndarray]:
    """The root of the error of sampling alone, known exactly at some l."""
    most = dataset.max_per_user
    ls = np.array(sorted({*decades(1, most, whole=True), most}))
    return ls, np.sqrt(sampling_error(loaded(dataset), ls, of))


@lru_cache(64)
def zeros(dataset: InteractionsTwin, of: str) -> float:
    """The error of saying 0 of everything."""
    data = loaded(dataset)
    own = data.domain.project(data.domain.attributes[:1]), data.domain
    nothing = ItemEdgeCounts(*(Histogram(domain, np.zeros(domain.size)) for domain in own))
    return MeanSquaredCountError(of)(data, nothing)


def expected(dataset: InteractionsTwin, mechanism: Any, of: str) -> Callable:
    """SRA's squared error over l at the mechanism's ε: of the sampling, and of the noise.

    Above the most that a user has, nothing changes any more.
    """
    ls, roots = sampled(dataset, of)
    consistent = getattr(mechanism, "consistent", False)
    made = SRA(mechanism.budget, 1, consistent=consistent)
    most, width = dataset.max_per_user, dataset.domain.shape[1]

    def law(x: np.ndarray) -> np.ndarray:
        noise = [_variance(made, float(min(l, most)), width, of) for l in x]  # noqa: E741
        return np.interp(np.log(x), np.log(ls), roots, np.nan) ** 2 + noise

    return law


def _variance(made: SRA, l: float, width: int, of: str) -> float:  # noqa: E741
    """Of the noise on the count of an item in so many contexts, or on each of its edges."""
    one = Domain(("item", "context"), (1, width))
    v, w = (variance(l, epsilon, "geometric") for epsilon in made.budgets())
    tables = ItemEdgeCounts(
        Histogram(one.project(("item",)), np.zeros(1), v), Histogram(one, np.zeros(width), w)
    )
    return getattr(tables.consistent() if made.consistent else tables, of).variance


def _cut(values: Values) -> str:
    """The field that says how many records of a user are counted."""
    return "l" if values["mechanism"] in SAMPLING else "bound"


def _places(n: int) -> np.ndarray:
    """Ranks from 1 to n, even on a logarithmic axis."""
    return np.unique(np.geomspace(1, n, POINTS).round().astype(int))
