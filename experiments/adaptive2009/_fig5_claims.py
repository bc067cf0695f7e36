"""What figure 5's rows are asked for adaptive2009's statements about distances by depth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from experiments.adaptive2009._commutes import REAL, Commutes, decisive
from experiments.adaptive2009._levels import DISTANCE, ExpectedResampling, NodeError
from experiments.adaptive2009._techniques import BASIC, DIRECT, IMPROVED
from experiments.adaptive2009._unprinted import (
    SETTINGS,
    TOTAL,
    check_against_both,
    check_over,
    checked_over,
)
from workbench.compiled import pd
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    ORDERS,
    SOMEWHERE,
    Finding,
    MissingPoints,
    all_of,
    check_between,
    check_lower,
    check_similar,
    means,
    paired_ratios,
)
from workbench.value import format_number

EPSILONS = Commutes.epsilons
FEWEST = 10  # nodes of a level
POINT = ["epsilon", "node_level"]
BALANCED = ", adding up"


def _distances(rows) -> pd.DataFrame:
    rows = decisive(rows)
    return rows[rows.metric == DISTANCE]


def _of_total(rows, series: str = DIRECT) -> pd.DataFrame:
    """Direct synthesis whose whole release has ε."""
    return rows[(rows.series == series) & (rows.setting == TOTAL)]


def _nodes(rows, at_least: str) -> pd.DataFrame:
    rows = _of_total(rows)
    return rows[(rows.metric == NodeError.__name__) & (rows.at_least == at_least)]


def _at_each_epsilon(rows, level, check: Callable) -> Finding:
    """A check of the rows of each ε that has some."""
    if rows.empty:
        raise MissingPoints("no level has ten such nodes")
    own = rows.groupby("epsilon")
    return all_of({f"ε = {e:g}": partial(check, some) for e, some in own}, level)


def _neighbours(rows, level, check: Callable) -> Finding:
    """A check of the ratios of the sums at a smaller ε to those at the next larger one."""
    rows = _of_total(_distances(rows))
    rows = rows.assign(series=rows.epsilon.map("{:g}".format), epsilon=0.0, paid=0.0)
    parts = {}
    for less, more in pairwise(EPSILONS):
        ratios = partial(paired_ratios, rows, f"{less:g}", f"{more:g}", "down_to")
        parts[f"ε = {less:g} over {more:g}"] = lambda at, ratios=ratios: check(ratios(), at)
    return all_of(parts, level)


def check_falls(rows, level) -> Finding:
    """Whether a smaller ε has more error."""
    above = float(np.nextafter(1, 2))
    check = partial(check_between, low=above, share=OFTEN, words="more")
    return _neighbours(rows, level, check)


def check_smooth(rows, level) -> Finding:
    """Whether it has more, but by no more than ε is smaller."""
    check = partial(check_between, low=1, high=ORDERS, share=OFTEN, words="between 1× and 10×")
    return _neighbours(rows, level, check)


def check_below_resampling(rows, level) -> Finding:
    """Whether at some ε and level the sum is below what resampling costs as expected."""
    theory = decisive(rows)
    theory = theory[theory.metric == ExpectedResampling.__name__]
    law = theory.groupby("down_to").value.mean()
    points = pd.MultiIndex.from_product([EPSILONS, law.index], names=["epsilon", "down_to"])
    law = pd.Series(np.tile(law, len(EPSILONS)), points)
    ours = means(_of_total(_distances(rows)), DIRECT, ["epsilon", "down_to"])
    return check_lower(ours.over(law), level, SOMEWHERE)


def check_large_nodes(rows, level) -> Finding:
    """The same at nodes that hold the variance of a noisy count, at least."""
    nodes = _nodes(decisive(rows), "R²")
    ratios = nodes.assign(value=nodes.value / nodes.resampled)
    numbers = means(ratios, DIRECT, POINT).over(1.0)
    return check_lower(numbers, level, SOMEWHERE)


def check_depth_times_scale(rows, level) -> Finding:
    """Whether the mean error of a level is at most its depth times R."""
    large = _nodes(decisive(rows), "R")
    large = large.assign(value=large.value / large.node_level)
    everywhere = _of_total(_distances(rows)).rename(columns={"down_to": "level"})
    scale = large.groupby("epsilon").scale.first()
    everywhere = everywhere.assign(
        value=everywhere.all_nodes / everywhere.level / everywhere.epsilon.map(scale)
    )
    most = partial(check_between, high=1, words="at most d·R", unit=" d·R")
    return all_of(
        {
            "nodes that hold R": lambda at: most(means(large, DIRECT, POINT), at),
            "all nodes": lambda at: most(means(everywhere, DIRECT, ["epsilon", "level"]), at),
        },
        level,
    )


def _enough(rows) -> pd.DataFrame:
    """The levels with ten nodes that hold R."""
    nodes = _nodes(rows, "R")
    return nodes[nodes.nodes >= FEWEST]


def check_order_of_scale(rows, level) -> Finding:
    """Whether it is less than ten times R; of each dataset, of which Rhode Island decides."""

    def check(own, level):
        numbers = means(own, DIRECT, "node_level")
        return check_between(numbers, level, 0, ORDERS, OFTEN, "below 10 R", " R")

    decided = _at_each_epsilon(_enough(decisive(rows)), level, check)
    findings = {REAL: decided}
    for name, nodes in _enough(rows[rows.panel != REAL]).groupby("panel", sort=False):
        findings[name] = _at_each_epsilon(nodes, level, check)
    texts = [f"{name}: {each.outcome} ({each.measured})" for name, each in findings.items()]
    return replace(decided, measured="; ".join(texts))


def check_independent_of_depth(rows, level) -> Finding:
    """Whether the levels of a release have about their own geometric mean."""

    def check(own, level):
        mean = np.exp(np.log(own.value).groupby(own.seed).transform("mean"))
        both = pd.concat([own, own.assign(series="mean of levels", value=mean)])
        return check_similar(paired_ratios(both, DIRECT, "mean of levels", "node_level"), level)

    nodes = _enough(decisive(rows))
    levels = nodes.groupby("epsilon").node_level.transform("nunique")
    if not (levels >= 3).any():
        raise MissingPoints("no ε has three such levels")
    return _at_each_epsilon(nodes[levels >= 3], level, check)


def check_comparable(rows, level) -> Finding:
    """Direct synthesis against either histogram, at every setting."""

    def check(own, level, other):
        ratios = paired_ratios(own.assign(paid=0.0), DIRECT, other, ["epsilon", "down_to"])
        words = "no more than 1.25×"
        return check_between(ratios, level, high=ALIKE, share=OFTEN, words=words)

    return check_against_both(check, _distances(rows), level)


def check_improves(rows, level, ours: str) -> Finding:
    """Whether it has less error than the basic histogram, at each ε."""

    def check(own, level):
        return check_lower(paired_ratios(own, ours, BASIC, "down_to"), level, OFTEN)

    def check_adding_up(own, level):
        own = own.assign(series=own.series.str.removesuffix(BALANCED))
        return _at_each_epsilon(own, level, check)

    def check_released(own, level):
        return _at_each_epsilon(own[own.series.isin([ours, BASIC])], level, check)

    rows = _distances(rows)
    rows = rows[rows.series.isin([ours, BASIC, ours + BALANCED, BASIC + BALANCED])]
    adding_up = rows[rows.series.str.endswith(BALANCED)]
    if adding_up.empty:
        return check_over(check_released, rows, level)
    settings = {setting: (setting, check_released) for setting in SETTINGS}
    (drawn,) = adding_up.setting.unique()
    settings[f"{drawn}{BALANCED}"] = (f"{drawn}{BALANCED}", check_adding_up)
    moved = adding_up.assign(setting=f"{drawn}{BALANCED}")
    both = pd.concat([rows.drop(adding_up.index), moved])
    return checked_over("ε, b", settings, both, level)


def _upper_levels(rows, column: str) -> pd.Series:
    depth = decisive(rows).down_to.max()
    return rows[column] <= max(1, depth // 4)


def check_large_scale(rows, level) -> Finding:
    """Whether direct synthesis has less error than the improved histogram at each of the first levels."""
    distances = _distances(rows)
    upper = distances[_upper_levels(rows, "down_to").reindex(distances.index)]

    def check(own, level):
        return check_lower(paired_ratios(own, DIRECT, IMPROVED, ["epsilon", "down_to"]), level)

    return check_over(check, upper.assign(value=upper.own), level)


def check_unbiased(rows, level) -> Finding:
    """Whether the mean error at the largest node of each is within R."""
    rows = decisive(rows)
    first = rows[_upper_levels(rows, "node_level")]
    numbers = means(_nodes(first, "largest"), DIRECT, POINT)
    finding = check_between(numbers, level, -1, 1, words="within R", unit=" R")
    other = first[(first.at_least == "largest") & (first.series == IMPROVED)]
    beside = other.groupby(POINT).value.mean().map(format_number)
    return replace(
        finding, measured=f"{finding.measured}; {IMPROVED} {', '.join(beside)} of its R"
    )


CHECKS = {
    "a-5-1.2": check_falls,
    "a-5-1.3": check_smooth,
    "a-5-2.1": check_below_resampling,
    "a-5-2.2": check_large_nodes,
    "a-4.1": check_depth_times_scale,
    "a-4.2": check_order_of_scale,
    "a-4.3": check_independent_of_depth,
    "a-4-2.1": check_comparable,
    "a-13-2.1": partial(check_improves, ours=IMPROVED),
    "a-13-2.2": partial(check_improves, ours=DIRECT),
    "a-13-3.1": check_large_scale,
    "a-13-3.2": check_unbiased,
}
