"""What adaptive2009 does not print, and its figures sweep: whose ε a setting is, and the threshold b."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, log
from typing import Any

import pandas as pd

from workbench import DP, claims
from workbench.claims import Finding
from workbench.figures import EFFORT
from workbench.figures.parameters import selection
from workbench.mechanisms import (
    BasicAdaptiveHistogram,
    DirectSynthesis,
    ImprovedAdaptiveHistogram,
)

TOTAL = "total"  # ε is that of the whole release
EACH = "each"  # ε is that of one noisy count, as in the code of figures 11 to 13
RULES = {"ln k": log, "3 ln k": lambda k: 3 * log(k), "k": float}  # b times ε of a decision
SHORT = {"ln k": "1", "3 ln k": "3", "k": "k"}
CODES = "ε (total, each), b (1 or 3 ln k, k)"
SETTINGS = tuple(f"{whose} {rule}" for whose in (TOTAL, EACH) for rule in RULES)
ROUNDING = 1e-9


def settings_field() -> Any:
    """The field of a figure that says which of them are run."""
    doc = "whose ε, and b in units of 1/ε of a decision, k children a node"
    return selection(SETTINGS, SETTINGS, doc, kind=EFFORT)


def whose_epsilon(setting: str) -> str:
    """TOTAL or EACH."""
    return setting.partition(" ")[0]


def code(setting: str) -> str:
    """In two letters, where strips have many values.

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


def check_over(
    check: Callable[[pd.DataFrame, float], Finding], rows: pd.DataFrame, level: float
) -> Finding:
    """A check at every setting; what does not depend on b stands at its ε, the source at all."""

    def at(setting: str, level: float) -> Finding:
        if not (rows.setting == setting).any():
            return Finding(None, "not run")
        own = rows.setting.isin([setting, whose_epsilon(setting)]) | rows.setting.isna()
        return check(rows[own], level)

    return claims.over("ε, b", SETTINGS, at, level)
