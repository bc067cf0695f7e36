"""What figures of Cormode et al. 2012 share: names, theory, dyadic summaries, and nodes of a tree exactly."""

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
    """The made-up counts of section 4.1, as parameters of a figure."""

    m: int = whole(10**6, "number of all cells (m)", 1000, 10**8, unit="cells")
    mean: float = number(100.0, "mean μ of the counts", 1, unit="counts")
    std: float = number(20.0, "standard deviation σ of counts", unit="counts")
    density: float = number(0.1, "share ρ of cells that are not empty", 0, 1, strict=True)

    @property
    def data(self) -> GaussianSparse:
        """The counts, anywhere in the domain."""
        return GaussianSparse(m=self.m, density=self.density, mean=self.mean, std=self.std)


def metric_panel(title: str, panel: str, metric: str, x: str = "query_size", **how) -> Panel:
    """A panel of one metric."""
    return Panel(title, {"panel": panel, "metric": metric}, x, **how)


def expected_geometric_error(cells, epsilon: float):
    """E|error| of the full noisy table on a query of so many cells: √(2/π)·√(cells·2α/(1 − α)²)."""
    return np.sqrt(2 / pi * np.asarray(cells) * geometric_variance(epsilon))


class Summaries(NamedTuple):
    """Summaries of dyadic ranges, θ from public numbers.

    The filter has the θ at which an empty tree releases `size` nodes, filter-priority a factor of it:
    4/5 is what 40 is to 50 in Figure 3.
    """

    domain: Domain
    size: int
    epsilon: float
    factors: tuple[float, ...] = (0.8,)

    def thetas(self) -> dict[float, float]:
        """Each factor by the θ of filter-priority that is so many times the filter's."""
        filtered = HighPassFilter(DP(self.epsilon), size=self.size, transform=DYADIC)
        own = filtered.threshold(self.domain, l1=1)
        return {round(factor * own): factor for factor in self.factors}

    def filters(self, consistent: bool = False) -> list:
        """The filter and filter-priority sampling."""
        how = dict(size=self.size, transform=DYADIC, consistent=consistent)
        samples = [PrioritySampling(DP(self.epsilon), theta=x, **how) for x in self.thetas()]
        return [HighPassFilter(DP(self.epsilon), **how), *samples]

    def all(self) -> list:
        """Full tables of nodes and of cells, and every summary of nodes."""
        budget = DP(self.epsilon)
        tables = [GeometricHistogram(budget, transform=DYADIC), GeometricHistogram(budget)]
        sample = PrioritySampling(budget, size=self.size, transform=DYADIC)
        return [*tables, *self.filters(), sample]

    def with_consistency(self) -> list:
        """The filters with and without consistency."""
        return [*self.filters(), *self.filters(consistent=True)]

    def named(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows with a column `factor`, by θ, of filter-priority, which its series tells too."""
        factor = rows.theta.map(self.thetas()).where(rows.mechanism.eq("PrioritySampling"))
        named = rows.series + factor.map(", {:g} θ".format)
        return rows.assign(series=named.where(factor.notna(), rows.series), factor=factor)


def both(factor: float) -> str:
    """The series of filter-priority whose θ is so many times the filter's."""
    return f"{BOTH}, {factor:g} θ"


def largest_factor(rows: pd.DataFrame) -> pd.DataFrame:
    """What is drawn: filter-priority at the largest factor alone."""
    return rows[rows.factor.isna() | rows.factor.eq(rows.factor.max())]


def ratio_of_means(ours: pd.Series, other: pd.Series, by: list[str]) -> pd.Series:
    """a/b for the means a and b over seeds, of two series of one index whose levels `by` make a point.

    The ratio's mean over seeds is a/b, and each seed differs from it by what it moves it to first
    order, so that intervals are those of a ratio.
    """
    a = ours.groupby(by).transform("mean")
    b = other.groupby(by).transform("mean")
    return a / b * (1 + ours / a - other / b)


def error_cut(rows: pd.DataFrame, x: str) -> pd.DataFrame:
    """Rows of a metric `ErrorCut`: the part of its error that a series loses by consistency."""
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
    """Whether consistency leaves so much of a series' error."""
    own = rows[
        (rows.metric == ABSOLUTE) & (rows.series.str.replace(", consistent", "") == series)
    ]
    consistent = own.consistent.eq(True)
    left = ratios(own[consistent], own[~consistent], by)
    return check_between(left, level, low, high, OFTEN, "as printed")


def format_size(x: int) -> str:
    """A size in words: a power of ten as such."""
    return power_of_ten(x) if f"{x}".rstrip("0") == "1" else f"{x:,}"


# Rows of any two settings against each other, and the settings that may be the best.


def to_best(rows: pd.DataFrame, x: str) -> tuple[float, Intervals]:
    """The x of least mean error, and every other x's error against that of it."""
    best = rows.groupby(x).value.mean().idxmin()
    others = rows[rows[x] != best]
    at_best = rows[rows[x] == best].drop(columns=x)
    spread = others[[x, "seed"]].drop_duplicates()
    return best, ratios(others, spread.merge(at_best, on="seed"), x)


def may_be_best(rows: pd.DataFrame, x: str, level: float) -> list[float]:
    """Every x whose error may be the least, at a joint confidence level, the best first."""
    best, against = to_best(rows, x)
    points = against.at(1 - (1 - level) / len(against))
    return [best, *points.index[points.low <= 1]]


def above(against: Intervals, level: float, share: float = EVERYWHERE):
    """Whether the first of two is higher, everywhere or at such a share of the points."""
    return check_between(against, level, low=1 + 1e-12, share=share, words="higher")


def lower_from(against: Intervals, level: float) -> tuple[float, float, float]:
    """The point from which the first of two is lower for good, the earliest and the latest possible.

    Between points ratios are straight on logarithmic axes; infinite where it never is. The point moves
    with the ratios, so that their lower ends give the earliest and their upper ends the latest.
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
    """M'₊ of section 2.1: every negative count of a noisy table is 0."""

    def __call__(self, table: Histogram | Summary) -> Histogram | Summary:
        """The same table without what is below 0."""
        return replace(table, values=np.maximum(table.values, 0))


@value
class BelowZerosDropped:
    """A full noisy tree without the nodes that have an ancestor of noisy count 0."""

    def __call__(self, tree: TransformedSummary) -> TransformedSummary:
        """As if a filter had dropped what is 0."""
        return consistent(tree.where(tree.values != 0, theta=1.0))


@value
class OverEstimates:
    """The share of queries that are answered above the truth."""

    workload: RandomRanges

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compare answers with the truth, which must be public."""
        queries = self.workload.on(truth.domain)
        return float((estimate.answer(queries) > truth.answer(queries)).mean())


def passing(
    counts: Int[np.ndarray, " cells"], theta: int, sides: int, epsilon: float
) -> Float[np.ndarray, " cells"]:
    """The probability with which a filter keeps cells of these counts."""
    above = _exceeds(theta - counts, epsilon)
    return above if sides == 1 else above + _exceeds(theta + counts, epsilon)


def _exceeds(k: Int[np.ndarray, " cells"], epsilon: float) -> Float[np.ndarray, " cells"]:
    """Pr[X >= k] of geometric noise."""
    alpha = exp(-epsilon)
    tail = alpha ** np.where(k > 0, k, 1 - k) / (1 + alpha)
    return np.where(k > 0, tail, 1 - tail)


def held_shares(
    table: SparseTable, theta: int, sides: int, epsilon: float
) -> tuple[float, float, float]:
    """Of a filter's summary: its expected size, and two shares.

    That of the non-empty cells which it holds, and that of its cells which are non-empty.
    """
    held = passing(table.counts, theta, sides, epsilon).sum()
    empty = table.domain.size - len(table)
    size = held + empty * passing(np.zeros(1, int), theta, sides, epsilon).item()
    return size, held / len(table), held / size


def theta_of_size(data: GaussianSparse, size: int, epsilon: float) -> int:
    """The θ of the filter whose summary is expected to be nearest to a size."""
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
    """One row a call, by mechanism or name: throughput on `dataset`, with n non-empty cells.

    Times are processor times, the best of `repeat`. They are not saved, because machines differ.
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
    """The least and the greatest of several factors."""
    low = format_number(times.min())
    high = format_number(times.max())
    return f"{low}×" if low == high else f"{low}–{high}×"


def if_timed(finding: Finding, rows: pd.DataFrame, least: int) -> Finding:
    """A finding about times, undecided if they are the best of too few."""
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
    """The mean number of dyadic nodes of a range, over all its places among m cells.

    Of nodes of 2^k cells, where two fit, the range from lo to hi needs one at its left end if ⌈lo/2^k⌉ is
    odd, and one at its right end if ⌊hi/2^k⌋ is; of the largest that fit it needs one, or none. A
    range up to the end of a domain that is no power of two may need fewer.
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
    """How many of so many numbers from `first` on have a remainder from `low` to below `high`."""

    def below(n: int) -> int:
        return n // period * (high - low) + min(max(n % period - low, 0), high - low)

    return below(first + numbers) - below(first)


def cells_where_nodes_win(m: int, epsilon: float) -> int:
    """The number of cells from which on a range has less variance from nodes than from cells."""
    times = _variance_of_node(m, epsilon) / geometric_variance(epsilon)
    lower = bisect_left(
        range(1, m + 1), True, key=lambda cells: times * mean_nodes(cells, m) < cells
    )
    return lower + 1


def nodes_per_count(m: int) -> int:
    """How many nodes, or Haar coefficients, a count moves: one a level of the tree."""
    return (m - 1).bit_length() + 1


def _variance_of_node(m: int, epsilon: float) -> float:
    return geometric_variance(epsilon / nodes_per_count(m))


def full_tables(m: int, sizes: Sequence[int], epsilon: float) -> pd.DataFrame:
    """Rows of full tables: the mean nodes and variances of ranges, and from where on nodes are better."""
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
    """Rows of the greatest variance of any range, by nodes and by Haar coefficients, at several m."""
    rows = []
    for height in HEIGHTS:
        weights = {"dyadic": 2 * (height - 1), "Haar": greatest_haar_weight(height)}
        for series, weight in weights.items():
            noise = _variance_of_node(2**height, epsilon)
            rows.append({"series": series, "m": 2**height, "value": weight * noise})
    columns = dict(panel=THEORY, metric=GREATEST, epsilon=epsilon, truth_public=True)
    return pd.DataFrame(rows).assign(**columns)


def greatest_haar_weight(height: int) -> float:
    """The greatest sum of squared factors of a range's Haar coefficients, among 2^height cells.

    A coefficient of L cells of which an end cuts off t has the factor min(t, L − t)/L. With u and v the
    shares of the domain left and right of a range that crosses its middle, the total and the root's
    coefficient have squares of together 1 + 2u² − 2u + 2v² − 2v, so that the ends can be chosen one
    by one; a range within a half has less.
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
