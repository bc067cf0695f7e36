"""What adaptive2009 does not print, and its figures sweep: whose ε a setting is, and the threshold b."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import ceil, inf, log
from typing import Any, ClassVar

from workbench import DP
from workbench.compiled import pd
from workbench.data import PUBLIC, Records
from workbench.estimates.release import Release
from workbench.figures import EFFORT
from workbench.figures.fields import choice
from workbench.mechanisms import (
    BasicAdaptiveHistogram,
    DirectSynthesis,
    ImprovedAdaptiveHistogram,
)
from workbench.trials import claims
from workbench.trials.claims import Finding
from workbench.value import value

SOURCE = "source"
RESAMPLE = "resample"
SECOND = "second release"
DIRECT = "direct synthesis"
IMPROVED = "improved histogram"
BASIC = "basic histogram"
TREE = "PrivTree"
TOTAL = "total"  # ε is that of the whole release
EACH = "each"  # ε is that of one noisy count, as in the code of figures 11 to 13
RULES = {"ln k": log, "3 ln k": lambda k: 3 * log(k), "k": float}  # b times ε of a decision
SHORT = {"ln k": "1", "3 ln k": "3", "k": "k"}
CODES = "ε (total, each), b (1 or 3 ln k, k)"
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
        drawn = rng.multinomial(records.total, counts / counts.sum())
        return Release(Records.from_keys(records.hierarchy, keys, drawn, PUBLIC), (), self)


@value
class SecondRelease:
    """p ~ Dirichlet(counts), and as many records drawn from p: the variance is twice the count."""

    series: ClassVar[str] = SECOND
    budget: ClassVar[DP] = DP(inf)

    def __call__(self, records: Records, rng) -> Release:
        """One draw."""
        keys, counts = records.level(records.hierarchy.digits.depth)
        weights = rng.standard_gamma(counts)
        drawn = rng.multinomial(records.total, weights / weights.sum())
        return Release(Records.from_keys(records.hierarchy, keys, drawn, PUBLIC), (), self)


def settings_field() -> Any:
    """The field of a figure that says which of them are run."""
    doc = "whose ε, and b in units of 1/ε of a decision, k children a node"
    return choice(SETTINGS, SETTINGS, doc, kind=EFFORT)


def drawn_of(settings: tuple[str, ...]) -> str:
    """The setting of the histograms that are drawn."""
    return DRAWN if DRAWN in settings else settings[-1]


def whose_epsilon(setting: str) -> str:
    """TOTAL or EACH."""
    return setting.partition(" ")[0]


def code(setting: str) -> str:
    """In two letters, for outcomes that are listed by many values.

    >>> [code(setting) for setting in SETTINGS]
    ['t1', 't3', 'tk', 'e1', 'e3', 'ek']
    """
    return setting[0] + SHORT[setting.partition(" ")[2]]


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
    rows: pd.DataFrame, level: float, check: Callable[[pd.DataFrame, float], Finding]
) -> Finding:
    """A check at every setting."""
    settings = {setting: (setting, check) for setting in SETTINGS}
    return checked_over("ε, b", settings, rows, level)


def over_both(
    rows: pd.DataFrame,
    level: float,
    check: Callable,
    name: str,
    values: Sequence[float],
    unit: str = "",
) -> Finding:
    """A check at every setting and at every value of something else, which it takes as `value`."""
    both = {
        f"{code(setting)} {x}{unit}": (setting, partial(check, value=x))
        for setting, x in product(SETTINGS, values)
    }
    return checked_over(f"{CODES}, {name}", both, rows, level)


def against_both(rows: pd.DataFrame, level: float, check: Callable[..., Finding]) -> Finding:
    """A check against either histogram, which it takes as `other`, at every setting."""
    both = {
        f"{other[0]} {code(setting)}": (setting, partial(check, other=other))
        for other, setting in product((IMPROVED, BASIC), SETTINGS)
    }
    return checked_over(f"histogram (improved, basic), {CODES}", both, rows, level)


def checked_over(
    name: str, checks: Mapping[str, tuple[str, Callable]], rows: pd.DataFrame, level: float
) -> Finding:
    """Checks by what is told of them, each at a setting."""

    def at(text: str, level: float) -> Finding:
        setting, check = checks[text]
        own = at_setting(rows, setting)
        return Finding(None, "no rows") if own.empty else check(own, level)

    return claims.over(name, list(checks), at, level)
