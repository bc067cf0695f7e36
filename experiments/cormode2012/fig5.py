"""Figure 5 of Cormode et al. (2012): errors of range queries that are answered from dyadic ranges (intervals
that are obtained by halving the domain again and again).

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: sections 3 and 4.4, Figure 5 (a)–(c), and the
        throughput that section 4.4 describes in words.
Read    We read all numbers from the text, because the plots are not in our copy. Printed numbers may have an
        error of half of their last digit.
Open    A cell is in 21 dyadic ranges (nodes), so each node gets ε/21. The paper counts log₂m nodes. The paper
        does not print the filter's θ. We use the θ for which an empty tree releases s nodes, which is 630 and
        follows from m, s and ε alone. The θ of filter-priority sampling is not printed either. We use several
        fractions of the filter's θ. Skewed data consist of regions in which half of the cells are non-empty,
        with nothing between the regions. The paper prints neither its distribution of skewed data nor the
        number of regions. We run 1, 10 and 100 regions, and draw 10. Throughput is measured as in Figure 4:
        whole releases with noise from the operating system, s = n, and the best processor time of several
        runs on one core. The curve "numpy" adds up the whole tree level by level, and adds numpy's usual
        noise to all nodes. The results also contain the time of both ways to add up the tree, because the
        paper explains its gain by a cost that all methods share. Some curves are not in the paper, and no
        statement is tested on them: a budget that favours small nodes, filtered Haar coefficients, and the
        filter of cells next to the filter of nodes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import exp

import numpy as np

from experiments._fields import effort, unprinted, unprinted_number
from experiments.benchmarks._timing import numpy_geometric
from experiments.cormode2012.shared import (
    ABSOLUTE,
    CELLS,
    CROSSING,
    CUT,
    DYADIC,
    FACTOR,
    FACTORS,
    FILTER,
    FULL,
    GREATEST,
    NODES,
    PRIORITY,
    THEORY,
    VARIANCE,
    BelowZerosDropped,
    Counts,
    Summaries,
    both,
    error_cut,
    full_tables,
    greatest_variances,
    if_timed,
    largest_factor,
    metric_panel,
    nodes_per_count,
    span,
    throughput_rows,
)
from workbench import DP, Dyadic, Haar, RandomRanges, Sweep
from workbench.compiled import pd
from workbench.datasets import GaussianSparse
from workbench.figures import Figure
from workbench.figures.fields import epsilon, number, queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import GeometricHistogram, HighPassFilter
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    Finding,
    Intervals,
    Printed,
    all_of,
    check_between,
    check_lower,
    check_similar,
    exact,
    ratios,
    select,
)
from workbench.trials.metrics import MeanAbsoluteError
from workbench.value import counted, format_number, value

FROM = 10_000
SPARSE = (0.01, 0.001)
TIMED = 21  # releases, of which the fastest decides
SUMMARIES = (FILTER, PRIORITY, *map(both, FACTORS))
NUMPY = "numpy, dyadic"
OUR_SUMS = "our sums, dyadic"
DENSE_SUMS = "dense sums, dyadic"
GAIN = Printed("about 2 to 4 times", 1.5, 4.5)
REGIONS = (1, 10, 100)
PAPER = {
    "a": Printed.approximately("R ≥ 10⁴, 1 % of the data space", FROM, axis="x"),
    "c": Printed("by 30 % to 60 %", 0.25, 0.65),
    "uniform": Printed("closer to 10 %", 0, 0.2),
}


# What Cormode et al. 2012 say of nodes and their noise in sections 3 and 4.4, where theory decides.


def expected_dyadic_error(cells, m: int, epsilon: float):
    """Return the expected absolute error of the full dyadic table for a range of `cells` cells. A range is
    assumed to need about log₂(cells) nodes.
    """
    alpha = exp(-epsilon / nodes_per_count(m))
    return np.sqrt(2 / np.pi * np.log2(cells) * 2 * alpha / (1 - alpha) ** 2)


def theory(rows, metric: str, series: str = FULL) -> pd.Series:
    """Return a theoretical value by size of range. Only sizes are returned for which the paper says that
    dyadic ranges are better.
    """
    own = select(rows, panel=THEORY, metric=metric, series=series)
    return own.set_index("query_size").value.sort_index().loc[FROM:]


def cross(rows) -> str:
    """Return a text with the size of range from which a full dyadic table is better than a full table of
    cells.
    """
    crossing = select(rows, panel=THEORY, metric=CROSSING).value.item()
    return f"{format_number(crossing)} cells"


def same_entries(rows, level) -> Finding:
    """Check whether larger ranges need about as many nodes as ranges of 10⁴ cells, where dyadic ranges begin
    to be better.
    """
    nodes = theory(rows, NODES)
    at_from = select(rows, panel=THEORY, metric=NODES, query_size=FROM).value.item()
    return check_similar(exact(nodes / at_from), level)


def twice_the_height(rows, level) -> Finding:
    """Check whether the number of nodes of a range is about twice the height of the tree."""
    nodes = theory(rows, NODES)
    height = np.log2(select(rows, panel=THEORY, metric=NODES).m.iloc[0])
    finding = check_similar(exact(nodes / (2 * height)), level)
    low, high = (format_number(x) for x in (nodes.min(), nodes.max()))
    told = f"{low} to {high} nodes, twice the height is {format_number(2 * height)}"
    return replace(finding, measured=f"{told}; {finding.measured}")


def cubes(rows, level) -> Finding:
    """Check whether the largest variance of a range grows at most as fast as log³m."""
    greatest = select(rows, panel=THEORY, metric=GREATEST).sort_values("m")
    scaled = greatest.assign(value=greatest.value / np.log2(greatest.m) ** 3)
    steps = scaled.value / scaled.groupby("series").value.shift()
    return check_between(exact(steps.dropna()), level, high=ALIKE, words="no higher")


# What Cormode et al. 2012 say of throughput with dyadic ranges, in section 4.4.


def gains(rows, base: str, **where) -> pd.Series:
    """Return the throughput of the summaries, divided by the throughput of the full table `base`."""
    times = select(rows, panel="throughput", **where)
    own = select(times, series=SUMMARIES).set_index(["series", "density"]).value
    return own.div(select(times, series=base).set_index("density").value, level="density")


def always_faster(rows, level) -> Finding:
    """Check whether every summary is faster than the usual method with numpy at every density."""
    finding = check_between(exact(gains(rows, NUMPY)), level, low=1 + 1e-12, words="faster")
    measured = f"{finding.measured}; than our own full table {span(gains(rows, FULL))}"
    return if_timed(replace(finding, measured=measured), rows, TIMED)


def gains_with_same_sums(rows) -> pd.Series:
    """Return how much faster the summaries are than numpy's full table at low densities, if all methods add
    up the whole tree.
    """
    times = select(rows, metric="throughput", density=SPARSE)
    seconds = times.pivot_table("seconds", "series", "density", aggfunc="first")
    summaries = seconds[seconds.index.isin(SUMMARIES)]
    ours = summaries - seconds.loc[OUR_SUMS] + seconds.loc[DENSE_SUMS]
    return (seconds.loc[NUMPY] / ours).stack()


def about_2_to_4(rows, level) -> Finding:
    """Check whether the gain in throughput at low densities is as printed, if all methods add up the whole
    tree.
    """
    with_sums = exact(gains_with_same_sums(rows))
    finding = check_between(with_sums, level, GAIN.low, GAIN.high, words="as printed")
    sparse = span(gains(rows, NUMPY, density=SPARSE))
    told = f"{finding.measured}; with our sparse sums {sparse}"
    return if_timed(replace(finding, measured=told), rows, TIMED)


# How fast dyadic summaries are made, beside the usual way: whole releases, and ways to sum the tree.


def throughput(
    dataset: GaussianSparse, epsilon: float, factors: tuple[float, ...], repeat: int
) -> pd.DataFrame:
    """Time releases with s = n, and return the results. The panel "sums" contains the time of adding up the
    tree.
    """
    table = dataset.load()
    made = Summaries(table.domain, len(table), epsilon, factors)
    full, _, *summarised = made.all()
    tree = DYADIC.on(table.domain)
    noise = epsilon / tree.noise_blocks[0].nodes_per_count
    calls = {m: partial(m, table) for m in (full, *summarised)}
    calls[NUMPY] = lambda: numpy_geometric(dense_sums(table), noise)
    calls[OUR_SUMS] = partial(tree.forward, table.keys, table.counts)
    calls[DENSE_SUMS] = partial(dense_sums, table)
    rows = throughput_rows(dataset, len(table), calls, repeat)
    rows = made.named(rows)
    sums = rows.series.isin([OUR_SUMS, DENSE_SUMS])
    return rows.assign(panel=sums.map({True: "sums", False: "throughput"}), epsilon=epsilon)


def dense_sums(table) -> np.ndarray:
    """Return the sums of all nodes of a dyadic tree, level by level. The number of cells is increased to a
    power of two.
    """
    level = np.zeros(1 << (table.domain.size - 1).bit_length(), np.int64)
    level[: table.domain.size] = table.dense()
    levels = [level]
    while len(level) > 1:
        level = level.reshape(-1, 2).sum(axis=1)
        levels.append(level)
    return np.concatenate(levels)


# What Cormode et al. 2012 say of Figure 5: its series, and the checks that reshape rows.


def of_regions(panel: str, regions: int) -> str:
    """Return the name of a panel with skewed data in the given number of regions."""
    return f"{panel}, regions = {regions}"


def errors_of(rows, panel: str, series) -> pd.DataFrame:
    """Return the absolute errors of some curves in one panel."""
    return select(rows, panel=panel, series=series, metric=ABSOLUTE)


def against_other(rows, panel: str, ours: str, other: str) -> Intervals:
    """Return the error of one curve divided by that of another, by size of range."""
    return ratios(errors_of(rows, panel, ours), errors_of(rows, panel, other), "query_size")


def name_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results with curve names (`series`) that mark what is not in the paper, and which trees were
    made consistent after the release.
    """
    paper = (rows.panel != "bases") | rows.series.isin([FULL, CELLS, FILTER])
    paper |= rows["transform"].eq("Haar()") & rows.mechanism.eq("GeometricHistogram")
    dropped = rows.estimator.eq("BelowZerosDropped()")
    rows["series"] += paper.map({True: "", False: ", not in the paper"})
    rows["series"] += dropped.map({True: ", consistent", False: ""})
    rows.loc[dropped, "consistent"] = True
    return rows


def preferable(rows, level, factor) -> Finding:
    """Check whether the filter has smaller errors than samples."""
    others = [PRIORITY]
    hybrid = errors_of(rows, "a", both(factor))
    if factor != 1 or (hybrid.released >= hybrid["size"]).any():  # else they are one summary
        others.append(both(factor))
    parts = {
        f"below {other}": partial(
            check_lower, against_other(rows, "a", FILTER, other), share=OFTEN
        )
        for other in others
    }
    return all_of(parts, level)


def better_from(rows, level) -> Finding:
    """Check whether a full dyadic table has a smaller variance than a full table of cells, for large ranges."""
    variance = theory(rows, VARIANCE) / theory(rows, VARIANCE, CELLS)
    finding = check_lower(exact(variance), level)
    told = [f"variances {finding.measured}", f"lower from {cross(rows)} on"]
    for series in (FULL, *SUMMARIES):
        errors = against_other(rows, "a", series, CELLS).at(level).estimate.loc[FROM:]
        told.append(f"{series} has {span(errors)} the error")
    return replace(finding, measured="; ".join(told))


def weakly(rows, level, factor) -> Finding:
    """Check how errors grow with the size of the range. The statement holds if all dyadic methods grow by
    less than the fourth root of the factor by which the error of a full table of cells grows.
    """
    methods = (CELLS, FULL, FILTER, PRIORITY, both(factor))
    errors = errors_of(rows, "a", methods)
    largest = select(errors[errors.query_size > FROM], query_size=errors.query_size.max())
    first, last = (
        each.set_index(["series", "seed"]).value
        for each in (select(errors, query_size=FROM), largest)
    )
    growth = (last / first).reset_index().rename(columns={"series": "method"})
    of_cells = select(growth, method=CELLS)
    root = of_cells.assign(value=of_cells.value**0.25).drop(columns="method")
    ours = growth[growth.method != CELLS]
    against = ratios(ours, ours[["method", "seed"]].merge(root, on="seed"), "method")
    finding = check_between(against, level, high=1, words="weaker")
    means = growth.groupby("method").value.mean()
    told = ", ".join(f"{method} {format_number(x)}×" for method, x in means.items())
    measured = f"grows {told}; against the fourth root of {CELLS} {finding.measured}"
    return replace(finding, measured=measured)


@value
class Fig5(Counts, Figure):
    """Errors of ranges of all lengths from dyadic summaries, on uniform and on skewed data, and the
    throughput of these summaries.
    """

    title = "Range queries from summaries of dyadic ranges"
    headline = "Dyadic ranges make the error of long ranges almost independent of their length"
    rests_on = ("c-5a-1.3", "c-5a-1.4")
    page = "Cormode et al., ICDT 2012, sections 3 and 4.4, Figure 5"
    quick = {"seeds": 5, "queries": 200, "repeat": 5}
    rough = {"seeds": 2, "queries": 50, "repeat": 2}
    shown = ("theta", "size")
    main = 4

    epsilon: float = epsilon(0.1)
    size: int = whole(100_000, "size s of the summaries", unit="nodes")
    ranges: tuple[int, ...] = unprinted(
        tuple(d * 10**k for k in range(2, 6) for d in (1, 2, 5)),
        "lengths of ranges",
        unit="cells",
    )
    theta: int = unprinted(50, "threshold θ of the filter of cells", unit="counts")
    regions: tuple[int, ...] = unprinted(REGIONS, "regions of skewed data")
    factors: tuple[float, ...] = unprinted_number(FACTORS, FACTOR, 0, 10, strict=True)
    densities: tuple[float, ...] = number(
        (0.1, 0.01, 0.001), "shares ρ where throughput is measured", 0, 0.5, strict=True
    )
    queries: int = queries(1000)
    seeds: int = seeds(100)  # large ranges overlap: only seeds are independent
    repeat: int = effort(TIMED, "number of timed releases", 1)

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs of the paper's panels, with one panel per number of regions for skewed
        data. The panels "zeros" and "bases" test what the paper says in words.
        """
        tables, filters = self.summaries().all(), self.summaries().with_consistency()
        metrics = [MeanAbsoluteError(RandomRanges(n, self.queries)) for n in self.ranges]
        runs = {
            "a": (self.data, tables),
            "uniform": (self.data, filters),
            "bases": (self.data, self._other_bases()),
        }
        zeros = {}
        for regions in self.regions:
            skewed = replace(self.data, placement="skewed", regions=regions)
            runs[of_regions("b", regions)] = (skewed, tables)
            runs[of_regions("c", regions)] = (skewed, filters)
            zeros[of_regions("zeros", regions)] = Sweep(
                [skewed], tables[:1], metrics, self.seeds, [BelowZerosDropped()]
            )
        sweeps = {
            panel: Sweep([dataset], mechanisms, metrics, self.seeds)
            for panel, (dataset, mechanisms) in runs.items()
        }
        return sweeps | zeros

    def summaries(self) -> Summaries:
        """Return the dyadic summaries for the paper's data."""
        return Summaries(self.data.domain, self.size, self.epsilon, self.factors)

    @property
    def drawn_regions(self) -> int:
        """Number of regions of the skewed data that is drawn."""
        return 10 if 10 in self.regions else self.regions[0]

    def _other_bases(self) -> list:
        budget = DP(self.epsilon)
        bases = (DYADIC, None, Haar(), Dyadic(split="geometric"))
        tables = [GeometricHistogram(budget, transform=basis) for basis in bases]
        for basis in bases:
            size = {"theta": self.theta} if basis is None else {"size": self.size}
            tables.append(HighPassFilter(budget, transform=basis, **size))
        return tables

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with the part of the error that consistency removes, and with
        theoretical values. The throughput never comes from the store, because machines differ.
        """
        rows = self.summaries().named(name_rows(super().rows(store)))
        panels = (of_regions("c", self.drawn_regions), "uniform")
        cuts = [error_cut(rows[rows.panel == panel], "query_size") for panel in panels]
        tables = [replace(self.data, density=density) for density in self.densities]
        times = [throughput(x, self.epsilon, self.factors, self.repeat) for x in tables]
        laws = [
            full_tables(self.m, self.ranges, self.epsilon),
            greatest_variances(self.epsilon),
        ]
        theory = [law.assign(dataset=repr(self.data)) for law in laws]
        return pd.concat([rows, *cuts, *times, *theory], ignore_index=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels: errors, the part of the error that consistency removes, throughput, and
        other transforms.
        """
        error = partial(expected_dyadic_error, m=self.m, epsilon=self.epsilon)
        law = dict(theory=("geometric, dyadic: theory", error))
        skewed = f"data in {counted(self.drawn_regions, 'region')}"
        b, c = (of_regions(panel, self.drawn_regions) for panel in "bc")
        cut = dict(log="x", printed=PAPER["c"])
        even = dict(log="x", printed=PAPER["uniform"])
        return [
            metric_panel("uniform data", "a", ABSOLUTE, printed=PAPER["a"], **law),
            metric_panel(skewed, b, ABSOLUTE, **law),
            metric_panel(f"{skewed}: error cut by consistency", c, CUT, **cut),
            Panel(f"uniform data, m = {self.m:,}", {"panel": "throughput"}, "density"),
            metric_panel(f"{skewed}: with consistency", c, ABSOLUTE),
            metric_panel("uniform data: with consistency", "uniform", ABSOLUTE, log="x"),
            metric_panel("uniform data: error cut by consistency", "uniform", CUT, **even),
            metric_panel("uniform data: other bases (section 3)", "bases", ABSOLUTE),
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results that the figure draws. Filter-priority sampling is drawn only for the
        largest θ.
        """
        largest = largest_factor(rows)
        return largest.assign(series=largest.series.str.replace(r", [\d.]+ θ$", "", regex=True))
