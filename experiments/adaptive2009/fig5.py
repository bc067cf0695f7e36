"""Figure 5 of "Synthetic Data via Differential Privacy" (2009): earth mover's distance between synthetic and
true commutes, by depth.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): sections 1.3, 4, 5.1 and Figure 5.
Read    The plot is not in our copy, and the text prints no number.
Open    The paper has about 10⁸ commuters of the whole country, as centroids of blocks in a unit cube. They
        come from a published release, which is synthetic itself and is taken as the truth. We use Rhode
        Island in 2019 from the same publisher, in the box of all its blocks. Statements are tested only on
        these data. If the files are missing, or if you ask for it, a synthetic stand-in for the country is
        run. Basic histograms and direct synthesis stop at a depth where the side of a cell is 60–100 m in
        Rhode Island, and 340–800 m in the country. This is about the size of a block. Smaller cells would
        only distinguish centroids. Sums of distances go to the same depth. Direct synthesis is given the
        number of records, which the publisher states. The paper does not say whether ε is that of a whole
        release or of one level, and prints no thresholds of histograms. We run several settings, which the
        module `shared` defines. The discount is the one of Theorem 3. The figure draws ε for a whole release,
        and the threshold b = k times the scale of the noise of a split. It also draws histograms whose counts
        are changed to agree with each other (`inference.project_to_simplex`). Resampling draws as many
        records from the source, with replacement. The dashed line is its expected distance, computed by a
        formula. The paper's second and third census releases are not public. As a stand-in, we draw p ~
        Dirichlet(counts), and then as many records from p. This is how the census synthesised data, but
        without the prior that makes the result private. The variance of a count is twice the count, as for
        the difference of two draws from one population.
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
    """Metric: earth mover's distance by level of a tree. The column `value` is the sum over the levels from
    the root down to the level `down_to`.

    The column `own` is the distance on this level alone. If `balanced` is True, the synthetic counts are
    first changed to be >= 0 and to keep their sum.
    """

    depth: int
    balanced: bool = False

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Return the metric's values, with one row per level. The column `records` is the number of synthetic
        records.
        """
        if self.balanced:
            estimate = project_to_simplex(estimate)
        synthetic = _synthetic(estimate)
        distances = EarthMover(self.depth).levels(truth, synthetic)
        columns = dict(metric=DISTANCE, records=synthetic.total, value=distances.cumsum()[1:])
        columns |= dict(own=distances[1:], balanced=self.balanced)
        return pd.DataFrame({"down_to": np.arange(1, self.depth + 1)}).assign(**columns)


@value
class ExpectedResampling:
    """Metric: expected value of `DistanceByLevel` for data that are drawn with replacement from the true
    records. It does not use the estimate.
    """

    depth: int

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Return the expected earth mover's distance, with one row per level."""
        sums = expected_resampling(truth, self.depth).cumsum()[1:]
        return pd.DataFrame({"down_to": np.arange(1, self.depth + 1), "value": sums})


@value
class NodeError:
    """Metric: mean absolute error of the counts of large nodes, by level, in units of `scale`.

    The column `at_least` says which nodes are large: those with at least `scale` records ("R"), or with at
    least its square ("R²"). For "largest", the value is the error with its sign at the node with most
    records. `resampled` is the expected error at the same nodes if the records are drawn again with
    replacement.
    """

    depth: int
    scale: float

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Return the metric's values, with one row for each level that has large nodes. The column `nodes` is
        their number.
        """
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
    """Nodes of one level with at least a given number of records, and the expected error at these nodes if
    the records are drawn again with replacement.
    """

    level: int
    at_least: str
    nodes: np.ndarray
    counts: np.ndarray
    expected: float


@lru_cache(maxsize=1)  # of the truth: all releases are asked at the same nodes
def large_nodes(truth: Records, depth: int, scale: float) -> list[LargeNodes]:
    """Return the large nodes of each level: nodes with at least `scale` records, nodes with at least its
    square, and the largest node.
    """
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
    """Return the expected earth mover's distance on each level if the records are drawn again with
    replacement. It is the sum over cells of the cell's diameter times E|X − c|.

    X is binomial with n trials and integer mean c, so E|X − c| = 2c(1 − c/n)·Pr[X = c] (de Moivre).
    """
    n = truth.total
    dims = truth.hierarchy.dims
    costs = np.empty(depth + 1)
    for level in range(depth + 1):
        c, cells = np.unique(truth.level(level)[1], return_counts=True)
        costs[level] = (cells * _binomial_deviation(c, n)).sum() * np.sqrt(dims) / 2**level
    return costs


def _binomial_deviation(c: np.ndarray, n: int) -> np.ndarray:
    """Return E|X − c| for binomial X with n trials and mean c."""
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
    """Return the results of direct synthesis (or another method) where ε is that of the whole release."""
    return rows[(rows.series == series) & (rows.setting == TOTAL)]


def _nodes(rows, at_least: str) -> pd.DataFrame:
    rows = _of_total(rows)
    return rows[(rows.metric == NodeError.__name__) & (rows.at_least == at_least)]


def _at_each_epsilon(rows, level, check: Callable) -> Finding:
    """Apply a check to the results for each ε, and combine the findings."""
    if rows.empty:
        raise MissingPoints("no level has ten such nodes")
    own = rows.groupby("epsilon")
    return all_of({f"ε = {e:g}": partial(check, some) for e, some in own}, level)


def check_falls(rows, level) -> Finding:
    """Check whether direct synthesis has a larger earth mover's distance for a smaller ε."""
    more = dict(low=float(np.nextafter(1, 2)), share=OFTEN, words="more")
    return neighbours(_of_total(_distances(rows)), level, "down_to", **more)


def check_smooth(rows, level) -> Finding:
    """Check whether direct synthesis has a larger earth mover's distance for a smaller ε, but at most by the
    factor by which ε is smaller.
    """
    within = dict(low=1, high=ORDERS, share=OFTEN, words="between 1× and 10×")
    return neighbours(_of_total(_distances(rows)), level, "down_to", **within)


def check_below_resampling(rows, level) -> Finding:
    """Check whether direct synthesis has a smaller earth mover's distance than the expected distance of
    resampling, at some ε and level.
    """
    theory = decisive(rows)
    theory = theory[theory.metric == ExpectedResampling.__name__]
    law = theory.groupby("down_to").value.mean()
    points = pd.MultiIndex.from_product([EPSILONS, law.index], names=["epsilon", "down_to"])
    law = pd.Series(np.tile(law, len(EPSILONS)), points)
    ours = means(_of_total(_distances(rows)), DIRECT, ["epsilon", "down_to"])
    return check_lower(ours.over(law), level, SOMEWHERE)


def check_large_nodes(rows, level) -> Finding:
    """Check whether direct synthesis has a smaller error than resampling at some level, for nodes with at
    least as many records as the variance of a noisy count.
    """
    nodes = _nodes(decisive(rows), "R²")
    ratios = nodes.assign(value=nodes.value / nodes.resampled)
    numbers = means(ratios, DIRECT, POINT).over(1.0)
    return check_lower(numbers, level, SOMEWHERE)


def check_depth_times_scale(rows, level) -> Finding:
    """Check whether the mean error on a level is at most its depth times R, the standard deviation of a noisy
    count.
    """
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
    """Return the results on levels with at least ten nodes of R or more records."""
    nodes = _nodes(rows, "R")
    return nodes[nodes.nodes >= FEWEST]


def check_order_of_scale(rows, level) -> Finding:
    """Check whether the mean error at large nodes is less than ten times R. The finding lists all datasets,
    but only Rhode Island decides.
    """

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
    """Check whether the error at large nodes is about the same on all levels, compared with the geometric
    mean of the levels.
    """

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
    """Check whether direct synthesis has at most 1.25 times the earth mover's distance of a histogram, at one
    setting.
    """
    own = _distances(rows).assign(paid=0.0)
    ratios = paired_ratios(own, DIRECT, other, ["epsilon", "down_to"])
    words = "no more than 1.25×"
    return check_between(ratios, level, high=ALIKE, share=OFTEN, words=words)


def check_improves(rows, level, ours: str) -> Finding:
    """Check whether a method has a smaller earth mover's distance than the basic histogram at each ε."""

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
    """Check whether direct synthesis has a smaller earth mover's distance than the improved histogram on each
    of the first levels.
    """
    distances = _distances(rows)
    upper = distances[_upper_levels(rows, "down_to").reindex(distances.index)]
    upper = upper.assign(value=upper.own)
    return check_lower(paired_ratios(upper, DIRECT, IMPROVED, ["epsilon", "down_to"]), level)


def check_unbiased(rows, level) -> Finding:
    """Check whether the mean error at the largest node of each of the first levels is between −R and R."""
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
    """Earth mover's earth mover's distances of synthetic commutes, added up by level, and errors at single
    nodes.
    """

    title = "Earth mover's distance of synthetic commutes, by depth"
    headline = "Direct synthesis can be more accurate than resampling the true records"
    rests_on = ("a-5-2.1", "a-5-2.2")
    page = "adaptive2009, section 5.1, Figure 5; sections 1.3 and 4"
    main = 4
    height = 2.2

    seeds: int = seeds(50)

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: direct synthesis and histograms, also with errors at nodes, and data
        drawn with replacement from the source.
        """
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
        """Return the figure's results. The expected earth mover's distance of resampling occurs once.
        Histograms with counts that agree with each other are separate curves.
        """
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
        """Return the figure's panels: direct synthesis at all ε, all methods at the middle ε with and without
        counts that agree with each other, errors at nodes, and the other ε.
        """
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
        """Return the results of each panel. The curves of direct synthesis have ε in their names."""
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
        """Return the errors of direct synthesis at nodes with at least R records."""
        own = (rows.metric == NODE) & (rows.at_least == "R")
        return rows[own & rows.series.str.startswith(DIRECT)]


def _deviation(epsilon: float) -> float:
    """Return R, the standard deviation of one noisy count."""
    return sqrt(variance(1, epsilon, "geometric"))
