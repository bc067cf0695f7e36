"""Synthetic data via differential privacy (2009), Figure 5: earth mover's distance by depth.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): sections 1.3, 4, 5.1 and Figure 5.
Read    from the text; the plot is not in our copy, and the text prints no number.
Open    The paper has some 10⁸ commuters of the whole country, as blocks' centroids in a unit cube: a
        published release, which is itself synthetic and is taken for the truth. Here it is Rhode Island
        in 2019, of the same publisher, within the box of all its blocks, which alone decides; a twin of
        the country where its files are missing, or beside it if asked for.
        The depth of basic and direct is one at which a cell's side is 60–100 m in Rhode Island and
        340–800 m in the country, about a block's; finer cells would tell centroids apart, and nothing
        else. Sums go as deep. Direct synthesis is given the number of records, which the publisher tells.
        Whose ε it is, and the threshold of the histograms, are swept: `_unprinted`. The discount is
        Theorem 3's. Drawn is ε of a whole release and b = k scales of a decision's noise, and beside the
        histograms the same with counts that add up (`inference.project_to_simplex`).
        Resampling draws as many records from the source, with replacement. The dashes are its
        expectation, in closed form.
        The paper's second and third census release are not public. A stand-in: p ~ Dirichlet(counts),
        then as many records from p, the census's way of synthesis without the prior that makes it
        private. Its variance is twice the count, what two draws from one population differ by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from experiments.adaptive2009.shared import (
    BASIC,
    CHILDREN,
    DIRECT,
    IMPROVED,
    REAL,
    RESAMPLE,
    SETTINGS,
    TOTAL,
    Commutes,
    Resample,
    SecondRelease,
    decisive,
    neighbours,
    over,
)
from workbench import Sweep
from workbench.compiled import pd
from workbench.data import Records
from workbench.estimates import Leaves
from workbench.figures import Figure
from workbench.figures.fields import seeds
from workbench.figures.plots import Panel
from workbench.inference import project_to_simplex
from workbench.noise import variance
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
from workbench.trials.metrics import EarthMover
from workbench.value import format_number, value

DISTANCE = "EarthMover"
LARGEST = "largest"


# Figure 5's metrics: distances and errors at every level of a tree, a row a level.


@value
class DistanceByLevel:
    """The earth mover's distance, added up from the root `down_to` each level below it.

    `own` is that of the level alone; with `balanced` counts are made to add up first.
    """

    depth: int
    balanced: bool = False

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Rows with how many synthetic `records` there are."""
        if self.balanced:
            estimate = project_to_simplex(estimate)
        synthetic = _synthetic(estimate)
        distances = EarthMover(self.depth).levels(truth, synthetic)
        columns = dict(metric=DISTANCE, records=synthetic.total, value=distances.cumsum()[1:])
        columns |= dict(own=distances[1:], balanced=self.balanced)
        return pd.DataFrame({"down_to": np.arange(1, self.depth + 1)}).assign(**columns)


@value
class ExpectedResampling:
    """The expected `DistanceByLevel` of a resample. It needs no estimate."""

    depth: int

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Rows of the closed form."""
        sums = expected_resampling(truth, self.depth).cumsum()[1:]
        return pd.DataFrame({"down_to": np.arange(1, self.depth + 1), "value": sums})


@value
class NodeError:
    """The mean error, in `scale`s, at the nodes of a level that hold so many records or more.

    `at_least` is the scale ("R") or its square ("R²"); `resampled` is the expected error of a resample at
    the same nodes. "largest" is the error, with its sign, at the node that holds most.
    """

    depth: int
    scale: float

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Rows of the levels that have such `nodes`."""
        synthetic = _synthetic(estimate)
        rows = []
        for some in large_nodes(truth, self.depth, self.scale):
            levels = np.full(len(some.counts), some.level)
            errors = synthetic.node_counts(levels, some.nodes) - some.counts
            row = dict(node_level=some.level, at_least=some.at_least)
            if some.at_least == LARGEST:
                row["value"] = errors[0] / self.scale
            else:
                row |= dict(nodes=len(errors), value=np.abs(errors).mean() / self.scale)
                row["resampled"] = some.expected / self.scale
            rows.append(row)
        return pd.DataFrame(rows).assign(scale=self.scale)


class LargeNodes(NamedTuple):
    """The nodes of a level that hold so many records, and what a resample's error is there on average."""

    level: int
    at_least: str
    nodes: np.ndarray
    counts: np.ndarray
    expected: float


@lru_cache(maxsize=1)  # of the truth: all releases are asked at the same nodes
def large_nodes(truth: Records, depth: int, scale: float) -> list[LargeNodes]:
    """Level by level those that hold a scale, its square, and the largest."""
    large = []
    for level in range(1, depth + 1):
        nodes, counts = truth.level(level)
        least = {"R": scale, "R²": scale**2, LARGEST: counts.max()}
        for at_least, records in least.items():
            some = counts >= records
            if some.any():
                expected = _binomial_deviation(counts[some], truth.total).mean()
                large.append(
                    LargeNodes(level, at_least, nodes[:, some], counts[some], expected)
                )
    return large


def _synthetic(estimate: Any) -> Records:
    return estimate if isinstance(estimate, Records) else _drawn(estimate)


@lru_cache(maxsize=1)  # both metrics ask one release
def _drawn(estimate: Leaves) -> Records:
    return estimate.synthetic()


@lru_cache(maxsize=1)  # of the truth
def expected_resampling(truth: Records, depth: int) -> np.ndarray:
    """What resampling costs at each level on average: Σ over its cells of diameter × E|X − c|.

    X is binomial, of n trials and mean c, an integer: E|X − c| = 2c(1 − c/n)·Pr[X = c] (de Moivre).
    """
    n = truth.total
    dims = truth.hierarchy.dims
    costs = np.empty(depth + 1)
    for level in range(depth + 1):
        c, cells = np.unique(truth.level(level)[1], return_counts=True)
        costs[level] = (cells * _binomial_deviation(c, n)).sum() * np.sqrt(dims) / 2**level
    return costs


def _binomial_deviation(c: np.ndarray, n: int) -> np.ndarray:
    """E|X − c| where X is binomial, of n trials and mean c."""
    from scipy.stats import binom

    return 2 * c * (1 - c / n) * binom.pmf(c, n, c / n)


EPSILONS = Commutes.epsilons
FEWEST = 10  # nodes of a level
POINT = ["epsilon", "node_level"]
BALANCED = ", adding up"
ALL, UP = "all techniques", "made to add up"
NODE, THEORY = NodeError.__name__, ExpectedResampling.__name__


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


def check_falls(rows, level) -> Finding:
    """Whether a smaller ε has more error."""
    more = dict(low=float(np.nextafter(1, 2)), share=OFTEN, words="more")
    return neighbours(_of_total(_distances(rows)), level, "down_to", **more)


def check_smooth(rows, level) -> Finding:
    """Whether it has more, but by no more than ε is smaller."""
    within = dict(low=1, high=ORDERS, share=OFTEN, words="between 1× and 10×")
    return neighbours(_of_total(_distances(rows)), level, "down_to", **within)


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


def check_comparable(rows, level, other: str) -> Finding:
    """Direct synthesis against a histogram, at one setting."""
    own = _distances(rows).assign(paid=0.0)
    ratios = paired_ratios(own, DIRECT, other, ["epsilon", "down_to"])
    words = "no more than 1.25×"
    return check_between(ratios, level, high=ALIKE, share=OFTEN, words=words)


def check_improves(rows, level, ours: str) -> Finding:
    """Whether it has less error than the basic histogram, at each ε."""

    def check(own, level):
        return check_lower(paired_ratios(own, ours, BASIC, "down_to"), level, OFTEN)

    rows = _distances(rows)
    up = rows.series.str.endswith(BALANCED)
    rows = rows.assign(
        series=rows.series.str.removesuffix(BALANCED),
        setting=rows.setting.mask(up, rows.setting + BALANCED),
    )
    rows = rows[rows.series.isin([ours, BASIC])]
    adding_up = rows.setting[rows.setting.str.endswith(BALANCED)].unique()
    at_each = partial(_at_each_epsilon, check=check)
    return over(rows, level, at_each, settings=[*SETTINGS, *adding_up])


def _upper_levels(rows, column: str) -> pd.Series:
    depth = decisive(rows).down_to.max()
    return rows[column] <= max(1, depth // 4)


def check_large_scale(rows, level) -> Finding:
    """Whether direct synthesis has less error than the improved histogram at each of the first levels."""
    distances = _distances(rows)
    upper = distances[_upper_levels(rows, "down_to").reindex(distances.index)]
    upper = upper.assign(value=upper.own)
    return check_lower(paired_ratios(upper, DIRECT, IMPROVED, ["epsilon", "down_to"]), level)


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


@value
class Fig5(Commutes, Figure):
    """Sums of distances by level, and errors at nodes."""

    title = "Earth mover's distance of synthetic commutes, by depth"
    headline = "Direct synthesis can be more accurate than resampling the true records"
    rests_on = ("a-5-2.1", "a-5-2.2")
    page = "adaptive2009, section 5.1, Figure 5; sections 1.3 and 4"
    main = 4
    height = 2.2

    seeds: int = seeds(50)

    def sweeps(self) -> dict[str, Sweep]:
        """Direct synthesis and histograms, whose nodes are measured too; and redraws of the source."""
        sweeps = {}
        for name, dataset in self.datasets().items():
            depth = self.depth_of(name)
            distance = DistanceByLevel(depth)
            for key, mechanisms in self.techniques(name, (DIRECT, IMPROVED, BASIC)).items():
                metrics = [distance]
                budgets = mechanisms[0].budgets()
                if mechanisms[0].series == DIRECT:
                    metrics.append(NodeError(depth, _deviation(budgets.counts[0])))
                elif f"|{self.drawn()}|" in key:
                    metrics.append(DistanceByLevel(depth, balanced=True))
                    metrics.append(NodeError(depth, _deviation(budgets.leaves)))
                sweeps[key] = Sweep([dataset], mechanisms, metrics, self.seeds)
            metrics = [distance, ExpectedResampling(depth)]
            redraws = [Resample(), SecondRelease()]
            sweeps[f"{name}||"] = Sweep([dataset], redraws, metrics, self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """The expectation stands once, with the seed of no run; what adds up is a series of its own."""
        rows = super().rows(store)
        expected = rows.metric == THEORY
        rows = rows[~expected | ((rows.series == RESAMPLE) & (rows.seed == 0))]
        balanced = rows.balanced.eq(True)
        dims = CHILDREN.bit_length() - 1
        apart = rows.own * 2**rows.down_to / sqrt(dims) / 2.0 ** (dims * rows.down_to)
        return rows.assign(
            series=rows.series.mask(balanced, rows.series + BALANCED),
            all_nodes=apart,  # the mean error over all nodes of a level, empty ones too
            drawn=rows.setting.isin([TOTAL, self.drawn()]) | rows.setting.isna(),
        )

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Direct synthesis at all ε; at one ε all techniques, and what adds up; nodes; other ε."""
        middle = sorted(self.epsilons)[len(self.epsilons) // 2]
        grid = []
        others = []
        for name in rows.panel.unique():
            theory = rows[(rows.panel == name) & (rows.metric == THEORY)]
            law = theory.drop_duplicates("down_to").set_index("down_to").value
            between = partial(np.interp, xp=law.index, fp=law, left=np.nan, right=np.nan)
            where = {"panel": name, "metric": DISTANCE}
            how = {"x": "down_to", "log": "y"}
            title, here = f"{name}: all ε", where | {"shown": "overlaid"}
            grid.append(Panel(title, here, theory=("resample, expected", between), **how))
            for epsilon in self.epsilons:
                for shown in (ALL, UP):
                    here = where | {"shown": f"{shown} at {epsilon:g}"}
                    panel = Panel(f"{name}, ε = {epsilon:g}: {shown}", here, **how)
                    (grid if epsilon == middle else others).append(panel)
            here = {"panel": name, "shown": "nodes"}
            grid.append(Panel(f"{name}: error at a node", here, "node_level", log=""))
        return grid + others

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows of each panel, which says what adds up; direct synthesis with its ε in its name."""
        own = rows[rows.drawn]
        redrawn = own.setting.isna()
        direct = own.series == DIRECT
        with_epsilon = own.series + own.epsilon.map(", ε = {:g}".format)
        own = own.assign(series=own.series.mask(direct, with_epsilon))
        distance = own.metric == DISTANCE
        frames = [
            own[distance & (direct | redrawn)].assign(shown="overlaid"),
            self._at_nodes(own[direct]).assign(shown="nodes"),
            own[own.metric == THEORY],
        ]
        up = own.series.str.endswith(BALANCED)
        own["series"] = own.series.str.removesuffix(BALANCED)
        beside = direct | (own.series == RESAMPLE)
        for epsilon in self.epsilons:
            at = distance & ((own.epsilon == epsilon) | redrawn)
            frames.append(own[at & ~up].assign(shown=f"{ALL} at {epsilon:g}"))
            frames.append(own[at & (up | beside)].assign(shown=f"{UP} at {epsilon:g}"))
        return pd.concat(frames, ignore_index=True)

    def _at_nodes(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The errors of direct synthesis at nodes that hold the scale of its noise."""
        own = (rows.metric == NODE) & (rows.at_least == "R")
        return rows[own & rows.series.str.startswith(DIRECT)]


def _deviation(epsilon: float) -> float:
    """R, the standard deviation of one noisy count."""
    return sqrt(variance(1, epsilon, "geometric"))
