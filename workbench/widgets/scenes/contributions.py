"""Contributions: how many records of each user to count, and the error at each number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from workbench.compiled import pd
from workbench.datasets import InteractionsTwin
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.estimates.release import Release
from workbench.figures.plots import Panel
from workbench.mechanisms import FPA, GS, HPA, LPA, SRA
from workbench.noise import Aligned, variance
from workbench.privacy import DP
from workbench.queries import Ranges
from workbench.spaces import Domain
from workbench.trials.metrics import (
    KLDivergence,
    MeanSquaredCountError,
    SampledSize,
    TopPrecision,
    sampling_error,
)
from workbench.value import format_number, value
from workbench.widgets.controls import Control, decades, field_control
from workbench.widgets.scenes import Picture, Setup, Values, joined_lines, loaded
from workbench.widgets.scenes.summaries import refuse_many
from workbench.widgets.view import Setting

# Sampling errors


class SamplingErrors(NamedTuple):
    """The root of the error of sampling alone, known exactly at some l."""

    ls: np.ndarray
    roots: np.ndarray


@lru_cache(64)
def sampling_errors(dataset: InteractionsTwin, of: str) -> SamplingErrors:
    """At round l up to the most that a user has."""
    most = dataset.max_per_user
    ls = np.array(sorted({*decades(1, most, whole=True), most}))
    return SamplingErrors(ls, np.sqrt(sampling_error(loaded(dataset), ls, of)))


@lru_cache(64)
def error_of_zeros(dataset: InteractionsTwin, of: str) -> float:
    """The error of saying 0 of everything."""
    data = loaded(dataset)
    items = data.domain.project(data.domain.attributes[:1])
    zeros = ItemEdgeCounts(
        Histogram(items, np.zeros(items.size)),
        Histogram(data.domain, np.zeros(data.domain.size)),
    )
    return MeanSquaredCountError(of)(data, zeros)


def expected_error(dataset: InteractionsTwin, mechanism: Any, of: str) -> Callable[..., Any]:
    """SRA's squared error over l at the mechanism's ε: of the sampling, and of the noise.

    Above the most that a user has, nothing changes any more.
    """
    known = sampling_errors(dataset, of)
    consistent = getattr(mechanism, "consistent", False)
    sra = SRA(mechanism.budget, 1, consistent=consistent)
    most = dataset.max_per_user
    contexts = dataset.domain.shape[1]

    def law(x: np.ndarray) -> np.ndarray:
        noise = [_noise_variance(sra, float(l), contexts, of) for l in np.minimum(x, most)]  # noqa: E741
        return np.interp(np.log(x), np.log(known.ls), known.roots, np.nan) ** 2 + noise

    return law


@lru_cache(2048)
def _noise_variance(sra: SRA, l: float, contexts: int, of: str) -> float:  # noqa: E741
    """Of the noise on the count of an item in so many contexts, or on each of its edges."""
    epsilons = dict(zip(("items", "edges"), sra.budgets(), strict=True))
    if not sra.consistent:
        return variance(l, epsilons[of], "geometric")
    domain = Domain(("item", "context"), (1, contexts))
    items = Histogram(
        domain.project(("item",)), np.zeros(1), variance(l, epsilons["items"], "geometric")
    )
    edges = Histogram(domain, np.zeros(contexts), variance(l, epsilons["edges"], "geometric"))
    return getattr(ItemEdgeCounts(items, edges).consistent(), of).variance


# Contributions

MADE, FOURSQUARE, GOWALLA = "made up", "Foursquare twin", "Gowalla twin"
TWINS = {FOURSQUARE: InteractionsTwin.foursquare(), GOWALLA: InteractionsTwin.gowalla()}
SAMPLING, BOUNDED = ("SRA", "HPA"), ("LPA", "DFT", "GS")
STEPS = {False: (1, 3), True: (1, 2, 3, 5)}  # of l in each decade, roughly and exactly
POINTS = 40
BEFORE, ZEROS = ", before noise", "all zeros"


def _made_up(name: str, value: Any, stops: Sequence[Any], **changes: str) -> Control:
    """A control of the data that are made up."""
    made_up = ({"data": (MADE,)},)
    return field_control(InteractionsTwin, name, value, stops, when=made_up, **changes)


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
        _made_up("users", 10_000, decades(100, 10**5, whole=True)),
        _made_up("items", 2000, decades(10, 20_000, whole=True)),
        _made_up("records", 300_000, decades(1000, 2 * 10**6, whole=True)),
        _made_up(
            "max_per_user",
            1000,
            decades(10, 20_000, whole=True),
            label="most of a user",
            doc="records of the most active one",
        ),
        _made_up("exponent", 1.25, decades(0.1, 5), label="inequality of users"),
        _made_up("popularity", 0.8, decades(0.1, 3, zero=True), label="inequality of items"),
    )

    def setup(self, values: Values) -> Setup:
        """The settings as a mechanism on the records of users."""
        v = values
        budget = DP(v["epsilon"])
        if v["data"] == MADE:
            refuse_many("records", v["records"])
        names = "users", "items", "records", "max_per_user", "exponent", "popularity"
        data = TWINS.get(v["data"]) or InteractionsTwin(**{name: v[name] for name in names})
        consistent = v["consistent"]
        if v["mechanism"] == "SRA":
            return Setup(data, SRA(budget, v["l"], consistent=consistent))
        if v["mechanism"] == "HPA":
            share = v["popularity_share"]
            return Setup(data, HPA(budget, v["l"], v["d"], share, consistent=consistent))
        if v["mechanism"] == "LPA":
            return Setup(data, LPA(budget, v["bound"], consistent=consistent))
        return Setup(data, {"DFT": FPA, "GS": GS}[v["mechanism"]](budget, v["bound"]))

    def picture(
        self, setting: Setting, data: Any, release: Release, seed: int, exact: bool
    ) -> Picture:
        """Errors over l; counts and precision by popularity; records of users before and after."""
        of = setting.values["of"]
        series = setting.values["mechanism"]
        counted = setting.mechanism.bounded_data(data, Aligned(seed))
        estimates = {series: release.estimate, f"{series}{BEFORE}": counted}
        lines = [
            _error_line(setting, data, release, seed, STEPS[exact]),
            *_precision_lines(data, estimates, of, setting.dataset.items),
            *_count_lines(data, estimates, of, setting.dataset.items),
        ]
        for name, interactions in (("truth", data), (series, counted)):
            records = -np.sort(-interactions.records_per_user())
            rank = _ranks(len(records))
            row = dict(panel="users", series=name, metric="Records", rank=rank)
            lines.append(row | dict(value=records[rank - 1]))
        return Picture(joined_lines(lines), _facts(setting, data, counted, release.estimate))

    def panels(self, setting: Setting, rows: pd.DataFrame) -> list[Panel]:
        """Error over l, with what is expected of SRA; counts, the most popular; users."""
        of = setting.values["of"]
        zeros = partial(np.full_like, fill_value=error_of_zeros(setting.dataset, of))
        expected = expected_error(setting.dataset, setting.mechanism, of)
        theory = [("SRA, expected", expected), (ZEROS, zeros)]
        error = dict(theory=theory, fit_theory=True, mark=setting.values[_cut(setting)])
        counts = dict(panel="counts", seed=rows.seed.min())
        what = of.capitalize()
        return [
            Panel(f"{what}: error", {"panel": "error"}, "kept", **error),
            Panel(f"{what}: counts above 0", counts, "place"),
            Panel(f"{what}: the K most popular", {"panel": "top"}, "top", log="x"),
            Panel("Users: records counted", {"panel": "users"}, "rank"),
        ]


def _error_line(
    setting: Setting, data: Any, release: Release, seed: int, steps: tuple[int, ...]
) -> dict[str, Any]:
    """Squared errors of the mechanism at other l or M, by the same noise."""
    cut = _cut(setting)
    present = setting.values[cut]
    metric = MeanSquaredCountError(setting.values["of"])
    most = setting.dataset.max_per_user
    kept = sorted({*spaced(most, steps), most, present})
    errors = []
    for l in kept:  # noqa: E741
        estimate = release.estimate
        if l != present:
            other = replace(setting.mechanism, **{cut: l})
            estimate = other(data, Aligned(seed)).estimate
        errors.append(metric(data, estimate))
    series = setting.values["mechanism"]
    row = dict(panel="error", series=series, metric="MeanSquaredCountError")
    return row | dict(kept=kept, value=errors)


def _precision_lines(
    data: Any, estimates: dict[str, Any], of: str, items: int
) -> list[dict[str, Any]]:
    """How many of the k most popular are found."""
    tops = spaced(max(1, items // 2))
    lines = []
    for series, estimate in estimates.items():
        precisions = [TopPrecision(k, of)(data, estimate) for k in tops]
        row = dict(panel="top", series=series, metric="TopPrecision")
        lines.append(row | dict(top=tops, value=precisions))
    return lines


def _count_lines(
    data: Any, estimates: dict[str, Any], of: str, items: int
) -> list[dict[str, Any]]:
    """Counts of some, from the most popular down."""
    cells = np.arange(data.domain.size if of == "edges" else items)
    order = np.argsort(-data.answer(Ranges(cells, cells + 1), of=of), kind="stable")
    place = _ranks(len(cells))
    queries = Ranges(order[place - 1], order[place - 1] + 1)
    lines = []
    for series, source in (dict(truth=data) | estimates).items():
        row = dict(panel="counts", series=series, metric="Count")
        lines.append(row | dict(place=place, value=source.answer(queries, of=of)))
    return lines


def _facts(
    setting: Setting, data: Any, counted: Any, estimate: ItemEdgeCounts
) -> list[tuple[str, str]]:
    of = setting.values["of"]
    before = MeanSquaredCountError(of)(data, counted)
    after = MeanSquaredCountError(of)(data, estimate)
    share = SampledSize()(data, counted)
    top = f"{TopPrecision(10, of)(data, estimate):.0%}"
    if of == "edges":
        top += ", mean over contexts"
    facts = [
        ("counted", f"{len(counted):,} of {len(data):,} records, {share:.1%}"),
        (
            "squared error",
            f"{format_number(after)} records², {format_number(before)} of it before noise",
        ),
        ("KL divergence", f"{KLDivergence(of)(data, estimate):.3g} nats"),
        ("top ten found", top),
    ]
    variances = estimate.items.variance, estimate.edges.variance
    if variances[0] is not None:
        item, edge = np.sqrt(np.array(variances, float))
        noise = f"{format_number(item)} records on an item, {format_number(edge)} on an edge"
        facts.append(("noise", f"{noise} (standard deviation)"))
    facts.append(("best l expected", _best_l(setting)))
    return facts


def _best_l(setting: Setting) -> str:
    """The l at which the least error is expected, knowing the data and from public numbers alone."""
    dataset = setting.dataset
    of = setting.values["of"]
    ls = sampling_errors(dataset, of).ls
    errors = expected_error(dataset, setting.mechanism, of)(ls)
    best = f"{ls[errors.argmin()]:,} for SRA, knowing the data"
    if setting.values["mechanism"] not in SAMPLING:
        return best
    public = dict(
        n=dataset.users,
        bound=round(dataset.records / dataset.users),
        popularity=dataset.popularity,
    )
    suggested = replace(setting.mechanism, l="suggested", **public).sampling_factor(
        dataset.items
    )
    return f"{best}; {suggested:,} for items, suggested from public numbers"


def spaced(most: int, steps: tuple[int, ...] = (1, 2, 5)) -> list[int]:
    """`steps` of each decade, up to `most`.

    >>> spaced(20)
    [1, 2, 5, 10, 20]
    """
    return [s * 10**k for k in range(len(str(most))) for s in steps if s * 10**k <= most]


def _cut(setting: Setting) -> str:
    """The field that says how many records of a user are counted."""
    return "l" if setting.values["mechanism"] in SAMPLING else "bound"


def _ranks(n: int) -> np.ndarray:
    """Ranks from 1 to n, even on a logarithmic axis."""
    return np.unique(np.geomspace(1, n, POINTS).round().astype(int))
