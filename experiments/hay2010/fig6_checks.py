"""Hay et al. 2010, Figure 6: what decides each statement."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np

from experiments.hay2010.compared import beside, panel_of, ratios_between, ratios_by_seed
from experiments.hay2010.data import LEAVES, NOISY_TREE, TREE_NOT_ZEROED, TWIN
from experiments.hay2010.fig6_laws import (
    POINTS,
    of_paper,
    plotted,
)
from experiments.hay2010.ranges import (
    BEST,
    LEAF_SUMS,
    ROUNDED,
    by_panel,
)
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    OFTEN,
    SOMEWHERE,
    Finding,
    Intervals,
    Strip,
    all_of,
    any_of,
    check_between,
    check_lower,
    exact,
    paired_ratios,
)

TRACE = "NetTrace"
ROUNDINGS = {"nothing": "", "answers": ROUNDED}
LARGER = (512, 1024, 2048, 4096, 8192)
SMALLEST = tuple(2**i for i in range(9))
RIVALS = tuple((rival, size) for rival in (LEAVES, NOISY_TREE) for size in LARGER)


def whose_order(rows: pd.DataFrame, finding: Finding) -> Finding:
    """With the word whose order of cells these are."""
    classes = {re.match(r"\w*", text)[0] for text in of_paper(rows).dataset.unique()}
    return beside(finding, f"the order of the cells is that of {' and '.join(sorted(classes))}")


def in_each_order(rows, level: float, check: Callable) -> Finding:
    """A statement in both orders of NetTrace's cells, where rows have both: what it sweeps in each."""
    orders = {"as published": TRACE + TWIN, "in clusters": TRACE}  # without which panel
    if not {*orders.values()} <= {*rows.panel}:
        return check(rows, level)
    own = 1 - (1 - level) / len(orders)
    found = {order: check(rows[rows.panel != no], own) for order, no in orders.items()}
    swept = {
        f"{order} {value}".strip(): holds
        for order, each in found.items()
        for value, holds in (each.strip.holds if each.strip else [("", each.holds)])
    }
    names = ["order", *{each.strip.name for each in found.values() if each.strip}]
    outcomes = {*swept.values()}
    return Finding(
        outcomes.pop() if len(outcomes) == 1 else None,
        "; ".join(f"{order}: {each.measured}" for order, each in found.items()),
        runs=max((each.runs for each in found.values() if each.holds is None), default=np.nan),
        strip=Strip(", ".join(names), tuple(swept.items())),
    )


def check_uniformly(rows, level: float, name: str) -> Finding:
    """Whether H̄ has less error than H̃ at every size and ε."""
    own = panel_of(of_paper(rows), name)

    def at(rounding: str, level: float) -> Finding:
        rival = NOISY_TREE + ROUNDINGS[rounding]
        return check_lower(paired_ratios(own, BEST, rival, POINTS), level)

    finding = claims.over("rounded", [*ROUNDINGS], at, level)
    leaves = paired_ratios(own, LEAF_SUMS, NOISY_TREE, POINTS).at(0.95).estimate
    words = f"the sum of leaves is lower at {(leaves < 1).sum()} of {len(leaves)} points"
    return whose_order(own, beside(finding, words))


def check_below_leaves(rows, level: float, size: int) -> Finding:
    """Whether H̄ has less error than L̃ in any panel, at one size."""
    own = of_paper(rows)
    own = own[own.query_size == size]

    def at(rounding: str, level: float) -> Finding:
        ratios = paired_ratios(own, BEST, LEAVES + ROUNDINGS[rounding], POINTS)
        return check_lower(ratios, level, SOMEWHERE)

    return whose_order(rows, claims.over("rounded", [*ROUNDINGS], at, level))


def check_sparse(rows, level: float) -> Finding:
    """Whether H̄ not zeroed loses at one cell wherever H̄ wins."""
    own = of_paper(rows)
    own = own[own.query_size == 1]
    panels = own.groupby(["panel", "epsilon"]).ngroups
    points = paired_ratios(own, BEST, LEAVES, POINTS).at(1 - (1 - level) / panels)
    won = points.index[points.high < 1]
    words = f"H̄ is lower in {len(won)} of {len(points)} panels"
    if won.empty:
        return whose_order(rows, Finding(None, f"{words}: nothing to explain", runs=np.nan))
    theory = rows[(rows.metric == "theory") & (rows.query_size == 1)]
    law = theory.pivot_table(index=POINTS, columns="series", values="value")
    ratios = (law[TREE_NOT_ZEROED] / law[LEAVES]).loc[won]
    finding = check_between(exact(ratios), level, low=1.001, words="higher if not zeroed")
    return whose_order(rows, beside(finding, words))


def check_cut(rows, level: float, share: float, high: float) -> Finding:
    """By how much H̄ is below a rival on larger ranges."""
    own = of_paper(rows)

    def at(rival: tuple[str, int], level: float) -> Finding:
        name, size = rival
        ratios = paired_ratios(own[own.query_size >= size], BEST, name, POINTS)
        return check_between(ratios, level, high=high, share=share, words="as low")

    return _over_pairs("rival, from", RIVALS, at, level)


def _over_pairs(name: str, pairs, check_at, level: float) -> Finding:
    """`claims.over` pairs, written without brackets."""
    named = {f"{a} {b}": (a, b) for a, b in pairs}
    return claims.over(name, [*named], lambda text, at: check_at(named[text], at), level)


def _everywhere(rows, level: float, rounding: str = "nothing") -> Finding:
    """Whether H̄ is below L̃ at every size of one panel."""
    rival = LEAVES + ROUNDINGS[rounding]
    return check_lower(paired_ratios(rows, BEST, rival, POINTS), level)


def check_some_cases(rows, level: float) -> Finding:
    """Whether in any panel H̄ has less error than L̃ at every size."""
    panels = dict(by_panel(of_paper(rows)))

    def at(rounding: str, level: float) -> Finding:
        check = partial(_everywhere, rounding=rounding)
        return any_of({name: partial(check, own) for name, own in panels.items()}, level)

    return whose_order(rows, claims.over("rounded", [*ROUNDINGS], at, level))


def check_other_cases(rows, level: float) -> Finding:
    """Whether H̄ is below L̃ above the smallest ranges, where it is not at all ranges."""
    panels = dict(by_panel(of_paper(rows)))
    each = 1 - (1 - level) / (2 * len(panels))
    others = [own for own in panels.values() if _everywhere(own, each).holds is False]
    words = f"in {len(others)} of {len(panels)} panels"
    if not others:
        return Finding(None, f"there are other cases {words}", runs=np.nan)
    own = pd.concat(others)

    def at(size: int, level: float) -> Finding:
        return check_lower(
            paired_ratios(own[own.query_size > size], BEST, LEAVES, POINTS), level
        )

    finding = claims.over("smallest, up to", SMALLEST, at, 1 - (1 - level) / 2)
    return whose_order(rows, beside(finding, f"judged {words}"))


def check_smaller_epsilon(rows, level: float, name: str, rival: str) -> Finding:
    """Whether error(H̄)/error(rival) falls with each step of ε, at three quarters of the sizes."""
    own = plotted(panel_of(of_paper(rows), name))

    def at(rounding: str, level: float) -> Finding:
        shares = ratios_by_seed(
            own, BEST, rival + ROUNDINGS[rounding], ["epsilon", "query_size"]
        )
        return all_of(_steps(shares), level)

    return whose_order(own, claims.over("rounded", [*ROUNDINGS], at, level))


def _steps(shares: pd.DataFrame) -> dict:
    """A check for each step down of ε."""
    epsilons = sorted(shares.epsilon.unique(), reverse=True)

    def step(larger: float, smaller: float) -> Intervals:
        at = {x: shares[shares.epsilon == x] for x in (smaller, larger)}
        return ratios_between(at[smaller], at[larger], "query_size")

    pairs = zip(epsilons, epsilons[1:], strict=False)
    return {f"{a:g} → {b:g}": partial(_often_lower, step(a, b)) for a, b in pairs}


def _often_lower(ratios: Intervals, level: float) -> Finding:
    return check_lower(ratios, level, OFTEN)


def check_zeroing(rows, level: float) -> Finding:
    """Whether zeroing lowers the error of small ranges in any panel."""
    own = of_paper(rows)
    own = own[own.query_size <= 2]
    return check_lower(paired_ratios(own, BEST, TREE_NOT_ZEROED, POINTS), level, SOMEWHERE)
