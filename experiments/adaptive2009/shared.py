"""What figures of adaptive2009 share: unprinted settings (whose ε, which b), commutes, and strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from math import ceil, inf, log
from typing import Any, ClassVar

from experiments._fields import effort, effort_number, unprinted
from workbench import DP
from workbench.compiled import pd
from workbench.data import PUBLIC, Records
from workbench.datasets import CommuteTwin, OnTheMap, QueryLogTwin, Surnames
from workbench.estimates.release import Release
from workbench.figures import EFFORT
from workbench.figures.fields import choice, epsilons, seeds, whole
from workbench.mechanisms import (
    BasicAdaptiveHistogram,
    DirectSynthesis,
    ImprovedAdaptiveHistogram,
)
from workbench.mechanisms.protocol import Mechanism
from workbench.trials import claims, first_available
from workbench.trials.claims import Finding, MissingPoints
from workbench.value import value

SOURCE = "source"
RESAMPLE = "resample"
SECOND = "second release"
DIRECT = "direct synthesis"
IMPROVED = "improved histogram"
BASIC = "basic histogram"
TOTAL = "total"  # ε is that of the whole release
EACH = "each"  # ε is that of one noisy count, as in the code of figures 11 to 13
RULES = {"ln k": log, "3 ln k": lambda k: 3 * log(k), "k": float}  # b times ε of a decision
SETTINGS = tuple(f"{whose} {rule}" for whose in (TOTAL, EACH) for rule in RULES)
DRAWN = "total k"
ROUNDING = 1e-9


# What the techniques of adaptive2009 are compared with: the data itself, and data drawn from it.


@value
class Source:
    """The records themselves: of public data, and without any privacy."""

    series: ClassVar[str] = SOURCE
    budget: ClassVar[DP] = DP(inf)

    def __call__(self, records: Records, rng) -> Release:
        """All of them."""
        return Release(records, (), self)


@value
class Resample:
    """As many records as there are, drawn with replacement: the variance of a count is the count."""

    series: ClassVar[str] = RESAMPLE
    budget: ClassVar[DP] = DP(inf)

    def __call__(self, records: Records, rng) -> Release:
        """One draw."""
        keys, counts = records.level(records.hierarchy.digits.depth)
        weights = self.weights(counts, rng)
        drawn = rng.multinomial(records.total, weights / weights.sum())
        return Release(Records.from_keys(records.hierarchy, keys, drawn, PUBLIC), (), self)

    def weights(self, counts, rng):
        """The counts."""
        return counts


@value
class SecondRelease(Resample):
    """p ~ Dirichlet(counts), and as many records drawn from p: the variance is twice the count."""

    series: ClassVar[str] = SECOND

    def weights(self, counts, rng):
        """A draw of Dirichlet's, up to its sum."""
        return rng.standard_gamma(counts)


def settings_field() -> Any:
    """The field of a figure that says which of them are run."""
    doc = "use of ε (total or each level), and b in units of 1/ε, for k children"
    return choice(SETTINGS, SETTINGS, doc, kind=EFFORT)


def whose_epsilon(setting: str) -> str:
    """TOTAL or EACH."""
    return setting.partition(" ")[0]


def improved(epsilon: float, setting: str, k: int, **fixed) -> ImprovedAdaptiveHistogram:
    """The discount is Theorem 3's.

    >>> [improved(1.0, setting, 16).threshold for setting in SETTINGS]
    [12, 34, 64, 3, 9, 16]
    """
    total, measure = (epsilon, 0.5) if whose_epsilon(setting) == TOTAL else (3 * epsilon, 1 / 3)
    made = ImprovedAdaptiveHistogram(DP(total), threshold=1, measure=measure, **fixed)
    return replace(made, threshold=_threshold(setting, k, made.budgets().structure / 2))


def basic(epsilon: float, setting: str, k: int, depth: int) -> BasicAdaptiveHistogram:
    """The same part of ε for the second pass, and the same b for the noise of a level.

    >>> [basic(1.0, setting, 16, depth=10).threshold for setting in SETTINGS]
    [56, 167, 320, 3, 9, 16]
    """
    counts = depth + 1
    total, measure = (epsilon, 0.5)
    if whose_epsilon(setting) == EACH:
        total, measure = counts * epsilon, 1 / counts
    made = BasicAdaptiveHistogram(DP(total), threshold=1, depth=depth, measure=measure)
    return replace(made, threshold=_threshold(setting, k, made.budgets()[0]))


def direct(epsilon: float, whose: str, depth: int, records: int) -> DirectSynthesis:
    """As many records as there are, which the paper gives it."""
    total = epsilon if whose == TOTAL else depth * epsilon
    return DirectSynthesis(DP(total), depth=depth, records=records)


def _threshold(setting: str, k: int, decision_epsilon: float) -> int:
    rule = RULES[setting.partition(" ")[2]]
    return ceil(rule(k) / decision_epsilon - ROUNDING)


def unpacked(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of sweeps named dataset|setting|ε|way: `epsilon` is the printed one, `paid` the whole."""
    named = rows.panel.str.split("|", expand=True)
    epsilon = named[2].where(named[2] != "").astype(float)
    return rows.assign(
        panel=named[0],
        setting=named[1].where(named[1] != ""),
        way=named[3] if 3 in named else "",
        paid=rows.epsilon,
        epsilon=epsilon.fillna(rows.epsilon),
        series=rows.mechanism_name,
    )


def at_setting(rows: pd.DataFrame, setting: str) -> pd.DataFrame:
    """The rows of a setting; none where it was not run.

    What does not depend on b stands at its ε, the source at all.
    """
    own = rows.setting.isin([setting, whose_epsilon(setting)]) | rows.setting.isna()
    return rows[own & (rows.setting == setting).any()]


def over(
    rows: pd.DataFrame,
    level: float,
    check: Callable[..., Finding],
    name: str = "",
    values: Sequence[Any] = (),
    settings: Sequence[str] = SETTINGS,
) -> Finding:
    """A check at every setting, and at every value of what `name` names, which it takes too."""

    def at(place: tuple, level: float) -> Finding:
        whose, rule, *value = place
        own = at_setting(rows, f"{whose} {rule}")
        return Finding(None, "no rows") if own.empty else check(own, level, *value)

    swept = product(settings, *([values] if name else []))
    places = [(*setting.split(" ", 1), *value) for setting, *value in swept]
    return claims.over(f"ε, b, {name}" if name else "ε, b", places, at, level)


against = partial(over, name="histogram", values=(IMPROVED, BASIC))


REAL = "Rhode Island"
TWIN = "twin of the country"
JOBS = 406_052  # in Rhode Island, as its publisher tells
CHILDREN = 16  # of a node: home and work, two coordinates each
MILE = 1.609344  # km
POPULOUS = "populous"
SPARSE = "sparse"


class Swept:
    """A figure whose techniques are run at `settings`."""

    settings: tuple[str, ...]

    def drawn(self) -> str:
        """The setting of the histograms that are drawn."""
        return DRAWN if DRAWN in self.settings else self.settings[-1]

    def rows(self, store) -> pd.DataFrame:
        """Of all sweeps, under the names of their datasets."""
        return unpacked(super().rows(store))


@value
class Commutes(Swept):
    """The parameters of all figures of commutes."""

    quick = {"people": 200_000, "settings": ("total 3 ln k", "total k"), "seeds": 3}

    epsilons: tuple[float, ...] = epsilons((0.1, 1.0, 10.0), "values of ε")
    settings: tuple[str, ...] = settings_field()
    data: tuple[str, ...] = choice(
        (REAL,), (REAL, TWIN), "commutes (a stand-in if files are missing)", kind=EFFORT
    )
    people: int = effort(4_000_000, "number of people in the stand-in", 1000, 10**8)
    depth: int = unprinted(
        10, "depth of basic and direct in Rhode Island", 1, 16, unit="levels"
    )
    twin_depth: int = unprinted(
        13, "depth of basic and direct in the stand-in", 1, 16, unit="levels"
    )
    seeds: int = seeds(20)

    def datasets(self) -> dict[str, Any]:
        """Return the available datasets of `data`, by the names of their panels."""
        real = first_available(OnTheMap().points(), None) if REAL in self.data else None
        there = {} if real is None else {REAL: real}
        if TWIN in self.data or real is None:
            there[TWIN] = CommuteTwin(self.people)
        return there

    def depth_of(self, name: str) -> int:
        """How deep direct synthesis goes, and sums of distances."""
        return self.depth if name == REAL else self.twin_depth

    def records_of(self, name: str) -> int:
        """How many there are, which is public."""
        return JOBS if name == REAL else self.people

    def techniques(
        self, name: str, of: Iterable[str], scale: float = 1.0
    ) -> dict[str, list[Mechanism]]:
        """Techniques by name, dataset, setting and ε, all `of` the wanted series; `scale` times ε."""
        depth = self.depth_of(name)
        made = {}
        for epsilon in self.epsilons:
            paid = scale * epsilon
            for whose in dict.fromkeys(map(whose_epsilon, self.settings)):
                if DIRECT in of:
                    one = direct(paid, whose, depth, self.records_of(name))
                    made[f"{name}|{whose}|{epsilon}"] = [one]
            for setting in self.settings:
                own = {
                    IMPROVED: improved(paid, setting, CHILDREN),
                    BASIC: basic(paid, setting, CHILDREN, depth),
                }
                made[f"{name}|{setting}|{epsilon}"] = [own[x] for x in own if x in of]
        return made


def decisive(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of Rhode Island, the real data, which alone decides."""
    own = rows[rows.panel == REAL]
    if own.empty:
        raise MissingPoints(f"{REAL} decides, whose files are not at hand")
    return own


def neighbours(rows, level, by: str, **how) -> Finding:
    """What the errors at a smaller ε are of those at the next larger one, for each pair, against limits."""
    rows = rows.assign(series=rows.epsilon.map("{:g}".format), epsilon=0.0, paid=0.0)

    def over_next(level, less: float, more: float) -> Finding:
        ratios = claims.paired_ratios(rows, f"{less:g}", f"{more:g}", by)
        return claims.check_between(ratios, level, **how)

    parts = {
        f"ε = {less:g} over {more:g}": partial(over_next, less=less, more=more)
        for less, more in pairwise(Commutes.epsilons)
    }
    return claims.all_of(parts, level)


def origins(dataset: Any, count: int) -> pd.DataFrame:
    """The most and the least populous places, by public numbers: `place`, `kind`, and where."""
    places = dataset.places().dropna(subset="population")
    populous = places.head(count).assign(kind=POPULOUS)
    sparse = places.tail(count)[::-1].assign(kind=SPARSE)
    both = pd.concat([populous, sparse])
    short = both.place.str.replace(r" (city|town) \(.*", "", regex=True)
    return both.assign(place=short).reset_index(drop=True)


NAMES = "surnames"
LOG = "query log twin"
LONGEST = 20  # symbols, of the tree of surnames, none of which is left out
SYMBOLS = 38  # of the paper: children of a node that can be split further


@value
class Thinned:
    """A dataset of strings with one record in `every`: their counts, divided, rounded down."""

    dataset: Any
    every: int

    @property
    def truth_public(self) -> bool:
        """As the whole."""
        return self.dataset.truth_public

    def files(self) -> tuple:
        """As the whole."""
        return self.dataset.files()

    def load(self) -> Records:
        """What is left."""
        whole = self.dataset.load()
        counts = whole.counts // self.every
        bound = (whole.bound, whole.truth_public)
        return Records.from_keys(whole.hierarchy, whole.keys, counts, *bound)


@value
class Strings(Swept):
    """The parameters of both figures, but for ε, searches and seeds."""

    data: tuple[str, ...] = choice(
        (NAMES, LOG), (NAMES, LOG), "corpora (a stand-in if files are missing)", kind=EFFORT
    )
    people: float = effort_number(
        1.0, "share of the people of the list of surnames", 0, 1, strict=True
    )
    depth: int = whole(20, "longest string of basic and direct", 1, 24, unit="symbols")
    settings: tuple[str, ...] = settings_field()

    def corpora(self) -> dict[str, Any]:
        """Return the available corpora of `data`, by name: people by their surname, and the twin."""
        names = first_available(Surnames(2010).strings(max(LONGEST, self.depth)), None)
        every = round(1 / self.people)
        there = {}
        if NAMES in self.data and names is not None:
            there[NAMES] = Thinned(names, every) if every > 1 else names
        if LOG in self.data or not there:
            there[LOG] = QueryLogTwin(self.searches)
        return there

    def settings_of(self, name: str) -> tuple[str, ...]:
        """All for the twin, which decides; beside it what is drawn."""
        return self.settings if name == LOG else (self.drawn(),)


def of_log(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the log's twin, which decides what counts against noise do."""
    own = rows[rows.panel == LOG]
    if own.empty:
        raise MissingPoints(f"the {LOG} decides, which was not run")
    return own
