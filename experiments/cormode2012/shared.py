"""Definitions that several figures of Cormode et al. (2012) share: names of metrics and curves, theoretical
errors, dyadic summaries, and exact numbers of the tree nodes that a range needs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import exp, inf, isnan, pi
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from experiments.benchmarks._timing import machine, seconds_in_turns
from workbench import DP, Dyadic
from workbench.compiled import pd
from workbench.data import SparseTable
from workbench.datasets import GaussianSparse
from workbench.estimates import Histogram, Summary, TransformedSummary
from workbench.figures.fields import number, whole
from workbench.figures.plots import Panel
from workbench.inference import consistent
from workbench.mechanisms import GeometricHistogram, HighPassFilter, PrioritySampling
from workbench.noise.law import geometric_variance
from workbench.queries import RandomRanges
from workbench.spaces import Domain
from workbench.trials import mechanism_columns
from workbench.trials.claims import (
    EVERYWHERE,
    OFTEN,
    Finding,
    Intervals,
    check_between,
    crossing,
    ratios,
)
from workbench.value import Float, Int, format_number, power_of_ten, value

ABSOLUTE = "MeanAbsoluteError"
RELATIVE = "MedianRelativeError"
CUT = "ErrorCut"

CELLS = "geometric"
FULL = "geometric, dyadic"
FILTER = "filter, dyadic"
PRIORITY = "priority, dyadic"
BOTH = "filter-priority, dyadic"
FACTORS = (0.6, 0.8, 1.0)  # θ of filter-priority over the filter's
FACTOR = "θ of filter-priority over the filter's"

DYADIC = Dyadic()


@value
class Counts:
    """Base class of figures on the synthetic counts of section 4.1 of Cormode et al. (2012). Its fields are
    the parameters of these counts.
    """

    m: int = whole(10**6, "number of all cells (m)", 1000, 10**8, unit="cells")
    mean: float = number(100.0, "mean μ of the counts", 1, unit="counts")
    std: float = number(20.0, "standard deviation σ of counts", unit="counts")
    density: float = number(0.1, "share ρ of cells that are not empty", 0, 1, strict=True)

    @property
    def data(self) -> GaussianSparse:
        """Synthetic counts, at random cells of the domain."""
        return GaussianSparse(m=self.m, density=self.density, mean=self.mean, std=self.std)


def metric_panel(title: str, panel: str, metric: str, x: str = "query_size", **how) -> Panel:
    """Return a panel that shows one metric."""
    return Panel(title, {"panel": panel, "metric": metric}, x, **how)


def expected_geometric_error(cells, epsilon: float):
    """Return the expected absolute error of the full noisy table for a query of `cells` cells,
    √(2/π)·√(cells·2α/(1 − α)²). Here α = exp(−ε), and the error is assumed to be normal.
    """
    return np.sqrt(2 / pi * np.asarray(cells) * geometric_variance(epsilon))


class Summaries(NamedTuple):
    """Dyadic summaries: filters and samples of the nodes of a dyadic tree. Their thresholds θ follow from
    public numbers.

    The filter has the θ for which an empty tree releases `size` nodes. Filter-priority sampling has this θ
    times one of the `factors`. The default factor is 4/5, because Figure 3 of Cormode et al. (2012) uses θ =
    40 for filter-priority and θ = 50 for the filter.
    """

    domain: Domain
    size: int
    epsilon: float
    factors: tuple[float, ...] = (0.8,)

    def thetas(self) -> dict[float, float]:
        """Return a dictionary whose keys are the θ of filter-priority sampling, and whose values are the
        factors by which they differ from the filter's θ.
        """
        filtered = HighPassFilter(DP(self.epsilon), size=self.size, transform=DYADIC)
        own = filtered.threshold(self.domain, l1=1)
        return {round(factor * own): factor for factor in self.factors}

    def filters(self, consistent: bool = False) -> list:
        """Return the filter, and filter-priority sampling for each factor."""
        how = dict(size=self.size, transform=DYADIC, consistent=consistent)
        samples = [PrioritySampling(DP(self.epsilon), theta=x, **how) for x in self.thetas()]
        return [HighPassFilter(DP(self.epsilon), **how), *samples]

    def all(self) -> list:
        """Return the full tables of nodes and of cells, and every summary of nodes."""
        budget = DP(self.epsilon)
        tables = [GeometricHistogram(budget, transform=DYADIC), GeometricHistogram(budget)]
        sample = PrioritySampling(budget, size=self.size, transform=DYADIC)
        return [*tables, *self.filters(), sample]

    def with_consistency(self) -> list:
        """Return the filters with and without consistency. Consistency drops each released node with an
        ancestor that was not released.
        """
        return [*self.filters(), *self.filters(consistent=True)]

    def named(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results with a column `factor`, the θ of filter-priority sampling divided by the
        filter's θ. The names of its curves also contain this factor.
        """
        factor = rows.theta.map(self.thetas()).where(rows.mechanism.eq("PrioritySampling"))
        named = rows.series + factor.map(", {:g} θ".format)
        return rows.assign(series=named.where(factor.notna(), rows.series), factor=factor)


def both(factor: float) -> str:
    """Return the name of the curve of filter-priority sampling with the given factor, its θ divided by the
    filter's θ.
    """
    return f"{BOTH}, {factor:g} θ"


def largest_factor(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results without those of filter-priority sampling with smaller θ."""
    return rows[rows.factor.isna() | rows.factor.eq(rows.factor.max())]


def ratio_of_means(ours: pd.Series, other: pd.Series, by: list[str]) -> pd.Series:
    """Return ratios a/b of means over seeds, with one value per seed. The columns in `by` identify a point,
    for which the means a and b of the two series are taken.

    The mean of the values over seeds is a/b. Each value differs from a/b by the first-order effect of its
    seed. So a confidence interval for the mean of the values is one for the ratio.
    """
    a = ours.groupby(by).transform("mean")
    b = other.groupby(by).transform("mean")
    return a / b * (1 + ours / a - other / b)


def error_cut(rows: pd.DataFrame, x: str) -> pd.DataFrame:
    """Return the part of a curve's error that consistency removes, as the metric `ErrorCut`."""
    by = ["panel", "series", x]
    rows = rows.assign(series=rows.series.str.replace(", consistent", ""))
    consistent = rows.consistent.eq(True)
    cuts = rows[consistent].set_index([*by, "seed"])
    without = rows[~consistent].set_index([*by, "seed"]).value[cuts.index]
    cuts["value"] = 1 - ratio_of_means(cuts.value, without, by)
    return cuts.assign(metric=CUT).reset_index()


def cut(
    rows, level, series: str, low: float = 0, high: float = 1, by: str = "query_size"
) -> Finding:
    """Check whether consistency leaves between `low` and `high` of a curve's error."""
    own = rows[
        (rows.metric == ABSOLUTE) & (rows.series.str.replace(", consistent", "") == series)
    ]
    consistent = own.consistent.eq(True)
    left = ratios(own[consistent], own[~consistent], by)
    return check_between(left, level, low, high, OFTEN, "as printed")


def format_size(x: int) -> str:
    """Return a number of cells as text. Powers of ten are written as powers."""
    return power_of_ten(x) if f"{x}".rstrip("0") == "1" else f"{x:,}"


# Rows of any two settings against each other, and the settings that may be the best.


def to_best(rows: pd.DataFrame, x: str) -> tuple[float, Intervals]:
    """Return the x with the smallest mean error, and the error at every other x divided by the error at this
    x.
    """
    best = rows.groupby(x).value.mean().idxmin()
    others = rows[rows[x] != best]
    at_best = rows[rows[x] == best].drop(columns=x)
    spread = others[[x, "seed"]].drop_duplicates()
    return best, ratios(others, spread.merge(at_best, on="seed"), x)


def may_be_best(rows: pd.DataFrame, x: str, level: float) -> list[float]:
    """Return every x at which the error may be smallest, at a joint confidence level. The x with the smallest
    mean error is first.
    """
    best, against = to_best(rows, x)
    points = against.at(1 - (1 - level) / len(against))
    return [best, *points.index[points.low <= 1]]


def above(against: Intervals, level: float, share: float = EVERYWHERE):
    """Check whether the first of two curves is higher than the second, at all points or at the given share of
    the points.
    """
    return check_between(against, level, low=1 + 1e-12, share=share, words="higher")


def lower_from(against: Intervals, level: float) -> tuple[float, float, float]:
    """Return three numbers: an estimate of the x from which the first of two curves stays lower, and the
    earliest and the latest possible x. A number is infinite if the first curve is never lower in the end.

    Between points, ratios of the curves are interpolated on logarithmic axes. The lower ends of their
    confidence intervals give the earliest x, and the upper ends the latest x.
    """
    points = against.at(1 - (1 - level) / len(against))
    one = pd.DataFrame({"mean": 1.0}, index=points.index)
    places = [
        crossing(points[[column]].set_axis(["mean"], axis=1), one)
        for column in ("estimate", "low", "high")
    ]
    estimate, first, last = (inf if isnan(x) else x for x in places)
    return estimate, first, last


# What figures of Cormode et al. 2012 measure besides errors, and what a filter is expected to hold.


@value
class RoundedUp:
    """Step after a release that replaces negative noisy counts by 0. It gives the table M'₊ of section 2.1 of
    Cormode et al. (2012).
    """

    def __call__(self, table: Histogram | Summary) -> Histogram | Summary:
        """Return the table, with 0 instead of negative counts."""
        return replace(table, values=np.maximum(table.values, 0))


@value
class BelowZerosDropped:
    """Step after a release that drops each node of a full noisy tree with an ancestor whose noisy
    count is 0.
    """

    def __call__(self, tree: TransformedSummary) -> TransformedSummary:
        """Return the tree without these nodes, and without nodes whose noisy count is 0."""
        return consistent(tree.where(tree.values != 0, theta=1.0))


@value
class OverEstimates:
    """Metric: share of the queries whose answer is larger than the true answer."""

    workload: RandomRanges

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compare the answers with the true answers. The true table must be public."""
        queries = self.workload.on(truth.domain)
        return float((estimate.answer(queries) > truth.answer(queries)).mean())


def passing(
    counts: Int[np.ndarray, " cells"], theta: int, sides: int, epsilon: float
) -> Float[np.ndarray, " cells"]:
    """Return the probability that a filter releases a cell, for each of the given true counts."""
    above = _exceeds(theta - counts, epsilon)
    return above if sides == 1 else above + _exceeds(theta + counts, epsilon)


def _exceeds(k: Int[np.ndarray, " cells"], epsilon: float) -> Float[np.ndarray, " cells"]:
    """Return the probability Pr[X >= k] that geometric noise X is at least k."""
    alpha = exp(-epsilon)
    tail = alpha ** np.where(k > 0, k, 1 - k) / (1 + alpha)
    return np.where(k > 0, tail, 1 - tail)


def held_shares(
    table: SparseTable, theta: int, sides: int, epsilon: float
) -> tuple[float, float, float]:
    """Return three expected values for the cells that a filter releases.

    The first is their number. The second is the share of the non-empty cells that are released. The third is
    the share of the released cells that are non-empty.
    """
    held = passing(table.counts, theta, sides, epsilon).sum()
    empty = table.domain.size - len(table)
    size = held + empty * passing(np.zeros(1, int), theta, sides, epsilon).item()
    return size, held / len(table), held / size


def theta_of_size(data: GaussianSparse, size: int, epsilon: float) -> int:
    """Return the θ for which the expected number of cells that a filter releases is closest to `size`."""
    table = data.load()
    thetas = range(1, round(data.mean + 1))

    def missing(theta: int) -> float:
        return size - held_shares(table, theta, 2, epsilon)[0]

    at = bisect_left(thetas, 0, key=missing)
    return min(thetas[max(at - 1, 0) : at + 1], key=lambda theta: abs(missing(theta)))


# How figures of Cormode et al. 2012 measure throughput: whole releases, in turns, on one core.


def throughput_rows(
    dataset: GaussianSparse, n: int, calls: Mapping[object, Callable], repeat: int
) -> pd.DataFrame:
    """Time several calls on a dataset with n non-empty cells, and return their throughput, in one row per
    call. The keys of `calls` are mechanisms or names.

    A time is the best processor time of `repeat` runs. Results are not saved, because machines differ.
    """
    columns = {
        "dataset": repr(dataset),
        "truth_public": dataset.truth_public,
        "m": dataset.m,
        "density": dataset.density,
        "nonempty": n,
        "metric": "throughput",
        "repeated": repeat,
        "machine": machine(),
    }
    rows = []
    taken = seconds_in_turns(*calls.values(), repeat=repeat)
    for way, seconds in zip(calls, taken, strict=True):
        named = isinstance(way, str)
        description = (
            dict(mechanism=way, mechanism_name=way) if named else mechanism_columns(way)
        )
        times = {
            "seconds": min(seconds),
            "median_seconds": median(seconds),
            "value": n / min(seconds),
            "trial": f"{way!r} on {dataset!r}",
        }
        rows.append(columns | description | times)
    return pd.DataFrame(rows).assign(series=[row["mechanism_name"] for row in rows])


def span(times: pd.Series) -> str:
    """Return a text with the smallest and the largest of several factors."""
    low = format_number(times.min())
    high = format_number(times.max())
    return f"{low}×" if low == high else f"{low}–{high}×"


def if_timed(finding: Finding, rows: pd.DataFrame, least: int) -> Finding:
    """Return a finding about times. If the times are the best of fewer than `least` runs, the finding is
    undecided.
    """
    repeated = rows[rows.metric == "throughput"].repeated.min()
    if repeated >= least:
        return finding
    return replace(finding, holds=None, why=f"the best of {repeated:g} only, {least} decide")


THEORY = "theory"
NODES = "MeanNodes"
VARIANCE = "MeanVariance"
CROSSING = "Crossing"
GREATEST = "GreatestVariance"
HEIGHTS = (8, 12, 16, 20)


def mean_nodes(cells: int, m: int) -> float:
    """Return the mean number of dyadic nodes that a range of `cells` cells needs, over all places among m
    cells.

    Consider nodes of 2^k cells, where two such nodes fit into the range from lo to hi. The range needs one of
    them at its left end if ⌈lo/2^k⌉ is odd, and one at its right end if ⌊hi/2^k⌋ is odd. It needs one or
    none of the largest nodes that fit into the range. If m is not a power of two, a range up to the end of
    the domain may need fewer nodes.
    """
    places = m - cells + 1
    nodes = 0
    width = 1
    while 2 * width <= cells:
        nodes += _count(width - 1, places, 2 * width, width, 2 * width)
        nodes += _count(cells, places, 2 * width, width, 2 * width)
        width *= 2
    spare = cells - width
    nodes += _count(spare, places, width, 0, spare + 1)
    return nodes / places


def _count(first: int, numbers: int, period: int, low: int, high: int) -> int:
    """Count the numbers first, first + 1, … (there are `numbers` of them) whose remainder after division by
    `period` is at least `low` and below `high`.
    """

    def below(n: int) -> int:
        return n // period * (high - low) + min(max(n % period - low, 0), high - low)

    return below(first + numbers) - below(first)


def cells_where_nodes_win(m: int, epsilon: float) -> int:
    """Return the length of range from which the full table of nodes has a smaller variance than the full
    table of cells.
    """
    times = _variance_of_node(m, epsilon) / geometric_variance(epsilon)
    lower = bisect_left(
        range(1, m + 1), True, key=lambda cells: times * mean_nodes(cells, m) < cells
    )
    return lower + 1


def nodes_per_count(m: int) -> int:
    """Return the number of nodes (or Haar coefficients) that one count changes. It is one per level of the
    tree.
    """
    return (m - 1).bit_length() + 1


def _variance_of_node(m: int, epsilon: float) -> float:
    return geometric_variance(epsilon / nodes_per_count(m))


def full_tables(m: int, sizes: Sequence[int], epsilon: float) -> pd.DataFrame:
    """Return theoretical values for full tables: the mean number of nodes and the variance of ranges, and the
    length from which nodes are better than cells.
    """
    rows = [{"metric": CROSSING, "series": FULL, "value": cells_where_nodes_win(m, epsilon)}]
    for size in sizes:
        nodes = mean_nodes(size, m)
        laws = (
            (NODES, FULL, nodes),
            (VARIANCE, CELLS, size * geometric_variance(epsilon)),
            (VARIANCE, FULL, nodes * _variance_of_node(m, epsilon)),
        )
        for metric, series, law in laws:
            rows.append(dict(metric=metric, series=series, query_size=size, value=law))
    return pd.DataFrame(rows).assign(panel=THEORY, m=m, epsilon=epsilon, truth_public=True)


def greatest_variances(epsilon: float) -> pd.DataFrame:
    """Return the largest variance of any range, from nodes and from Haar coefficients, for several m."""
    rows = []
    for height in HEIGHTS:
        weights = {"dyadic": 2 * (height - 1), "Haar": greatest_haar_weight(height)}
        for series, weight in weights.items():
            noise = _variance_of_node(2**height, epsilon)
            rows.append({"series": series, "m": 2**height, "value": weight * noise})
    columns = dict(panel=THEORY, metric=GREATEST, epsilon=epsilon, truth_public=True)
    return pd.DataFrame(rows).assign(**columns)


def greatest_haar_weight(height: int) -> float:
    """Return the largest sum of squared factors with which a range uses Haar coefficients, among 2^height
    cells.

    Consider a coefficient over L cells. If an end of the range cuts off t of these cells, the coefficient has
    the factor min(t, L − t)/L. Let u and v be the shares of the domain to the left and to the right of a
    range that crosses the middle. The squares of the total and of the root's coefficient add up to 1 + 2u² −
    2u + 2v² − 2v, so the best ends can be found one by one. A range within one half has a smaller sum.
    """
    m = 2**height
    outside = np.arange(m // 2 + 1)
    share = outside / m
    squares = 2 * share**2 - 2 * share
    width = m // 2
    while width > 1:
        cut = outside % width
        squares += (np.minimum(cut, width - cut) / width) ** 2
        width //= 2
    return 1 + 2 * float(squares.max())
