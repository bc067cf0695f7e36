"""Hay et al. 2010, Figure 5 and Theorem 2: what decides each statement."""

from __future__ import annotations

from math import log

from experiments.hay2010.compared import beside, panel_of, ratios_between, ratios_by_seed
from experiments.hay2010.data import INFERRED, NOISY, SORTED
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    EVERYWHERE,
    ORDERS,
    SOMEWHERE,
    Finding,
    Intervals,
    check_between,
    check_lower,
    check_similar,
    paired_ratios,
)
from workbench.value import format_number

SOCIAL = "Social Network"
PRINTED = ", as printed"
ONE = "d = 1"
ALL_DIFFERENT = "d = n"
SOME = "d from 1 to n/2"
MADE_UP = (ONE, ALL_DIFFERENT, SOME)


def _rows_of(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows that decide for a dataset."""
    return panel_of(rows, name, PRINTED if name == SOCIAL else "")


def _true_price(rows: pd.DataFrame, name: str, finding: Finding, other: str) -> Finding:
    """With the ratios at the noise of a friendship's true price, where that is not what decides."""
    if name != SOCIAL:
        return finding
    table = paired_ratios(panel_of(rows, name), INFERRED, other, "epsilon").at(0.95)
    return beside(finding, f"{_by_epsilon(table.estimate)} at a friendship's true price")


def _by_epsilon(numbers: pd.Series) -> str:
    return ", ".join(
        f"{format_number(x)}× at ε = {epsilon:g}" for epsilon, x in numbers[::-1].items()
    )


def check_below_noise(rows, level: float, name: str, share: float = EVERYWHERE) -> Finding:
    """Whether S̄ has a tenth of the error of S̃."""
    ratios = paired_ratios(_rows_of(rows, name), INFERRED, NOISY, "epsilon")
    finding = check_lower(ratios, level, share, times=ORDERS)
    return _true_price(rows, name, finding, NOISY)


def check_below_sorted(rows, level: float, name: str) -> Finding:
    """Whether S̄ has less error than S̃ᵣ, on Social Network but at the largest ε."""
    own = _rows_of(rows, name)
    if name == SOCIAL:
        own = own[own.epsilon < own.epsilon.max()]
    return check_lower(paired_ratios(own, INFERRED, SORTED, "epsilon"), level)


def check_comparable(rows, level: float) -> Finding:
    """Whether S̄ and S̃ᵣ are alike on Social Network at the largest ε."""
    own = _rows_of(rows, SOCIAL)
    own = own[own.epsilon == own.epsilon.max()]
    finding = check_similar(paired_ratios(own, INFERRED, SORTED, "epsilon"), level, EVERYWHERE)
    return _true_price(rows, SOCIAL, finding, SORTED)


def check_improves(rows, level: float, name: str) -> Finding:
    """Whether error(S̄)/error(S̃) falls with each step of ε."""
    own = _rows_of(rows, name)
    finding = check_lower(_steps_of_share(own, NOISY), level)
    shares = paired_ratios(own, INFERRED, NOISY, "epsilon").at(0.95).estimate
    against = _steps_of_share(own, SORTED).at(0.95).estimate
    words = f"S̄ over S̃ is {_by_epsilon(shares)}; its steps against S̃ᵣ are {_span(against)}"
    return beside(finding, words)


def _steps_of_share(rows: pd.DataFrame, other: str) -> Intervals:
    """What error(S̄)/error(other) is at each ε against the next larger one."""
    shares = ratios_by_seed(rows, INFERRED, other, "epsilon").assign(series="share")
    return claims.steps(shares.assign(noise=1 / shares.epsilon), "share", "noise")


def _span(ratios: pd.Series) -> str:
    return " and ".join(f"{format_number(x)}×" for x in ratios)


def check_somewhere(rows, level: float) -> Finding:
    """Whether S̄ has a tenth of the error of S̃ at some ε, on NetTrace; the others beside it."""
    finding = check_below_noise(rows, level, "NetTrace", SOMEWHERE)
    for name in (SOCIAL, "keywords"):
        best = paired_ratios(_rows_of(rows, name), INFERRED, NOISY, "epsilon").at(0.95).estimate
        finding = beside(finding, f"{name} {format_number(best.min())}× at best")
    return finding


def check_never_hurts(rows, level: float) -> Finding:
    """Whether S̄ has no more error than S̃ anywhere."""
    own = rows[~rows.panel.isin(MADE_UP)]
    ratios = paired_ratios(own, INFERRED, NOISY, ["panel", "epsilon"])
    return check_between(ratios, level, high=1, words="no higher")


def check_one_value(rows, level: float) -> Finding:
    """Whether the error of S̄ grows no faster than log³n where all counts are equal."""
    own = rows[rows.panel == ONE]
    allowed = (log(own.cells.max()) / log(own.cells.min())) ** 3
    growth = claims.ends(own, INFERRED, "cells")
    finding = check_between(growth, level, high=allowed)
    n = f"n from {own.cells.min():,.0f} to {own.cells.max():,.0f}"
    return beside(finding, f"log³n grows {format_number(allowed)}×, for {n}")


def check_noise(rows, level: float) -> Finding:
    """Whether the error of S̃ is 2n/ε² for all made-up sequences."""
    own = rows[rows.panel.isin(MADE_UP)]
    own = own.assign(value=own.value * own.epsilon**2 / (2 * own.cells))
    measured = claims.means(own, NOISY, ["panel", "cells", "distinct", "step"])
    return check_similar(measured.over(1.0), level, EVERYWHERE)


def check_linear(rows, level: float) -> Finding:
    """Whether the errors of S̄ and S̃ grow as n does where all counts differ."""
    own = rows[rows.panel == ALL_DIFFERENT]
    own = own.assign(value=own.value / own.cells)
    least = own.cells.min()
    key = ["series", "step", "seed"]

    def at(step: float, level: float) -> Finding:
        ours = own[(own.step == step) | (own.series == NOISY)]
        first = ours[ours.cells == least]
        longer = ours[ours.cells > least]
        start = longer[[*key, "cells", "estimator"]].merge(first[[*key, "value"]], on=key)
        ratios = ratios_between(longer, start, ["estimator", "cells"])
        return check_similar(ratios, level, EVERYWHERE)

    return claims.over("step·ε", sorted(own.step.unique()), at, level)


def check_grows(rows, level: float) -> Finding:
    """Whether at each n the error of S̄ is lower the fewer different counts there are."""
    own = rows[(rows.panel == SOME) & (rows.series == INFERRED)]

    def at(step: float, level: float) -> Finding:
        ours = own[own.step == step]
        more = ours.assign(distinct=ours.distinct / 4)
        return check_lower(ratios_between(ours, more, ["cells", "distinct"]), level)

    return claims.over("step·ε", sorted(own.step.unique()), at, level)
