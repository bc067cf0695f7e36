"""Definitions that several figures of "Synthetic Data via Differential Privacy" (2009) share: settings that
the paper does not print, commutes, and strings.

A setting consists of two words. The first says whether ε is that of the whole release ("total") or of one
noisy count ("each"). The second is the threshold b of a split as a function of the number of children k, in
units of the noise scale 1/ε of one split.
"""

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
    """Technique without privacy that returns the records themselves, for public data."""

    series: ClassVar[str] = SOURCE
    budget: ClassVar[DP] = DP(inf)

    def __call__(self, records: Records, rng) -> Release:
        """Return all records."""
        return Release(records, (), self)


@value
class Resample:
    """Technique without privacy that draws as many records as there are, with replacement. The variance of a
    count is about the count.
    """

    series: ClassVar[str] = RESAMPLE
    budget: ClassVar[DP] = DP(inf)

    def __call__(self, records: Records, rng) -> Release:
        """Return one draw of records."""
        keys, counts = records.level(records.hierarchy.digits.depth)
        weights = self.weights(counts, rng)
        drawn = rng.multinomial(records.total, weights / weights.sum())
        return Release(Records.from_keys(records.hierarchy, keys, drawn, PUBLIC), (), self)

    def weights(self, counts, rng):
        """Return weights of the cells that are proportional to the probabilities of drawing them. They are
        the counts.
        """
        return counts


@value
class SecondRelease(Resample):
    """Technique without privacy that draws p ~ Dirichlet(counts), and then as many records from p. The
    variance of a count is about twice the count.
    """

    series: ClassVar[str] = SECOND

    def weights(self, counts, rng):
        """Return a draw from the Dirichlet distribution, which is not yet divided by its sum."""
        return rng.standard_gamma(counts)


def settings_field() -> Any:
    """Return the declaration of a figure's parameter `settings`, the settings that are run."""
    doc = "use of ε (total or each level), and b in units of 1/ε, for k children"
    return choice(SETTINGS, SETTINGS, doc, kind=EFFORT)


def whose_epsilon(setting: str) -> str:
    """Return the first word of a setting, "total" or "each"."""
    return setting.partition(" ")[0]


def improved(epsilon: float, setting: str, k: int, **fixed) -> ImprovedAdaptiveHistogram:
    """Return an improved adaptive histogram for a setting. Its discount is the one of Theorem 3 of the 2009
    paper.

    >>> [improved(1.0, setting, 16).threshold for setting in SETTINGS]
    [12, 34, 64, 3, 9, 16]
    """
    total, measure = (epsilon, 0.5) if whose_epsilon(setting) == TOTAL else (3 * epsilon, 1 / 3)
    made = ImprovedAdaptiveHistogram(DP(total), threshold=1, measure=measure, **fixed)
    return replace(made, threshold=_threshold(setting, k, made.budgets().structure / 2))


def basic(epsilon: float, setting: str, k: int, depth: int) -> BasicAdaptiveHistogram:
    """Return a basic adaptive histogram for a setting. It spends the same share of ε on its second pass as
    the improved one, and has the same threshold b in units of the noise on a level.

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
    """Return direct synthesis with as many records as the data have. The paper also gives this number to the
    method.
    """
    total = epsilon if whose == TOTAL else depth * epsilon
    return DirectSynthesis(DP(total), depth=depth, records=records)


def _threshold(setting: str, k: int, decision_epsilon: float) -> int:
    rule = RULES[setting.partition(" ")[2]]
    return ceil(rule(k) / decision_epsilon - ROUNDING)


def unpacked(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results of sweeps whose names have the form dataset|setting|ε|way. The column `epsilon`
    becomes the printed ε, and `paid` is the ε of the whole release.
    """
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
    """Return the results of one setting (meaning of ε, and threshold b), or no rows if this setting was not
    run.

    A method that does not depend on b is included if its ε has the same meaning, for a whole release or for
    one noisy count. The source is always included.
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
    """Repeat a check at every setting, and for every value of a further parameter `name`, which is passed to
    the check.
    """

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
    """Base class of figures whose methods are run at several `settings`."""

    settings: tuple[str, ...]

    def drawn(self) -> str:
        """Return the setting of the histograms that are drawn."""
        return DRAWN if DRAWN in self.settings else self.settings[-1]

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results of all sweeps, with the names of the datasets as panels."""
        return unpacked(super().rows(store))


@value
class Commutes(Swept):
    """Base class of figures about commutes. Its fields are the parameters of these figures."""

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
        """Return the depth to which direct synthesis and sums of distances go on a dataset."""
        return self.depth if name == REAL else self.twin_depth

    def records_of(self, name: str) -> int:
        """Return the number of records of a dataset, which is public."""
        return JOBS if name == REAL else self.people

    def techniques(
        self, name: str, of: Iterable[str], scale: float = 1.0
    ) -> dict[str, list[Mechanism]]:
        """Return the methods in `of`, as a dictionary whose keys have the form dataset|setting|ε. The methods
        spend `scale` times ε.
        """
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
    """Return the results on Rhode Island, the real data with which statements are tested."""
    own = rows[rows.panel == REAL]
    if own.empty:
        raise MissingPoints(f"{REAL} decides, whose files are not at hand")
    return own


def neighbours(rows, level, by: str, **how) -> Finding:
    """Check the errors at each ε divided by those at the next larger ε against limits."""
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
    """Return the most and the least populous places of a dataset, by public numbers, with their coordinates."""
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
    """Dataset of strings with only one in `every` records. All counts are divided by this number and rounded
    down.
    """

    dataset: Any
    every: int

    @property
    def truth_public(self) -> bool:
        """Whether the truth is public, as for the whole dataset."""
        return self.dataset.truth_public

    def files(self) -> tuple:
        """Return the files of the whole dataset."""
        return self.dataset.files()

    def load(self) -> Records:
        """Return the records that are left."""
        whole = self.dataset.load()
        counts = whole.counts // self.every
        bound = (whole.bound, whole.truth_public)
        return Records.from_keys(whole.hierarchy, whole.keys, counts, *bound)


@value
class Strings(Swept):
    """Base class of figures about strings. Its fields are the parameters of these figures, without ε,
    searches and seeds.
    """

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
        """Return the settings for a corpus: all for the synthetic log, and only the drawn one for the
        surnames.
        """
        return self.settings if name == LOG else (self.drawn(),)


def of_log(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results on the synthetic log, with which statements about counts and noise are tested."""
    own = rows[rows.panel == LOG]
    if own.empty:
        raise MissingPoints(f"the {LOG} decides, which was not run")
    return own
