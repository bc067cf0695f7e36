"""Cormode et al. 2012, Figure 2: what its parameter does to each summary.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.2 and Figure 2 (a)–(c); beside
        it what sections 2.1, C.2 and C.3 say in words. Theorems 1–4 are tests.
Read    from the text; the plots are not in our copy.
Open    The range of θ is printed for (c), the sizes of ranges for none but (a) and (b). Threshold
        sampling gets the τ whose expected size is the target, from the m, n and μ of the generator,
        which are public here (C.2 does the same with ‖M‖₁). 2.1 and C.2 ask ten times as many
        queries, since few single cells of a sparse table hold a count.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from experiments.cormode2012.fig2_checks import OVER, PAPER, comparison
from experiments.cormode2012.fig2_theory import tau_of_size, theory_rows
from experiments.cormode2012.measures import OverEstimates, RoundedUp
from experiments.cormode2012.shared import (
    ABSOLUTE,
    RELATIVE,
    Counts,
    expected_geometric_error,
    metric_panel,
)
from workbench import DP, RandomRanges, RandomSubsets, Sweep
from workbench.compiled import pd
from workbench.figures import UNPRINTED, Figure
from workbench.figures.fields import epsilon, number, queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import (
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
    ThresholdSampling,
    UniformSampling,
)
from workbench.trials.metrics import (
    HeldCells,
    MeanAbsoluteError,
    MeanSignedError,
    MedianRelativeError,
)
from workbench.value import value

LENGTHS = (100, 500, 1000, 5000, 10_000, 50_000, 100_000)
SMALL = (1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 100_000)
SAMPLES = (10_000, 20_000, 50_000, 100_000, 200_000, 500_000)


@value
class Fig2(Counts, Figure):
    """One value of its parameter after another for each summary, on ranges."""

    title = "Error of each summary by its size or threshold"
    headline = "A summary errs least when it keeps the true cells and few empty ones"
    rests_on = ("c-2a-5.1", "c-2a-5.2", "c-2c-2.1")
    page = "Cormode et al., ICDT 2012, section 4.2, Figure 2; sections 2.1, C.2, C.3"
    quick = {"seeds": 5, "queries": 200}
    rough = {"seeds": 2, "queries": 20}
    shown = ("theta", "tau", "size")
    columns = 3

    epsilon: float = epsilon(0.1)
    thetas: tuple[int, ...] = whole(
        tuple(range(5, 91, 5)), "θ of the filters", unit="counts", kind=UNPRINTED
    )
    both_thetas: tuple[int, ...] = whole(
        tuple(range(5, 71, 5)), "θ of filter-priority", unit="counts"
    )
    sizes: tuple[int, ...] = whole(SAMPLES, "sizes in (b)", unit="cells", kind=UNPRINTED)
    size: int = whole(100_000, "s of filter-priority", unit="cells")
    length: int = whole(5000, "R, the length of a range", unit="cells")
    lengths: tuple[int, ...] = whole(
        LENGTHS, "all R in (c), and of other ranges", unit="cells", kind=UNPRINTED
    )
    wide_std: float = number(40.0, "σ of other data", unit="counts", kind=UNPRINTED)
    low_density: float = number(0.01, "ρ of other data", 0, 1, strict=True, kind=UNPRINTED)
    small: tuple[int, ...] = whole(SMALL, "ranges of 2.1", unit="cells", kind=UNPRINTED)
    queries: int = queries(1000)
    seeds: int = seeds(40)

    def sweeps(self) -> dict[str, Sweep]:
        """A panel each, and what is beside them."""
        budget = DP(self.epsilon)
        lengths = dict.fromkeys((self.length, *self.lengths))
        ranges = [RandomRanges(length, self.queries) for length in lengths]
        many = [RandomRanges(length, 10 * self.queries) for length in self.small]
        error = [MeanAbsoluteError(workload) for workload in ranges]
        relative = [MedianRelativeError(workload) for workload in ranges]
        bias = MeanSignedError(ranges[0])
        filters = [
            HighPassFilter(budget, theta=t, sides=s) for s in (2, 1) for t in self.thetas
        ]
        threshold = [ThresholdSampling(budget, tau=self.tau(size)) for size in self.sizes]
        samples = [*threshold, *(PrioritySampling(budget, size=size) for size in self.sizes)]
        straw = [UniformSampling(budget, size=size) for size in self.sizes[1::2]]
        both = partial(PrioritySampling, budget)
        few = round(self.size * self.low_density / self.density)
        raw = [
            MeanAbsoluteError(RandomRanges(1, many[0].count), w) for w in ("raw", "unbiased")
        ]
        of_filters = [*error, relative[0], bias, OverEstimates(ranges[0]), HeldCells()]
        subsets = MeanAbsoluteError(RandomSubsets(self.length, self.queries))
        runs = {
            "a": (filters, of_filters),
            "b": (samples + straw, [*error, relative[0], bias]),
            "c": ([both(size=self.size, theta=t) for t in self.both_thetas], error + relative),
            "c, sparse": ([both(size=few, theta=t) for t in self.both_thetas], error),
            f"σ = {self.wide_std:g}": (filters, error[:1]),
            f"ρ = {self.low_density:g}": (filters, error[:1]),
            "subsets": (filters + samples, [error[0], subsets]),
            "weights": (threshold, raw),
        }
        wide = replace(self.data, std=self.wide_std)
        sparse = replace(self.data, density=self.low_density)
        data = {f"σ = {self.wide_std:g}": wide, f"ρ = {self.low_density:g}": sparse}
        data["c, sparse"] = sparse
        sweeps = {
            x: Sweep([data.get(x, self.data)], *run, self.seeds) for x, run in runs.items()
        }
        sides = [MeanAbsoluteError(workload) for workload in many]
        table = [GeometricHistogram(budget)]
        sweeps["sides"] = Sweep([self.data], table, sides, self.seeds, [RoundedUp()])
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """With what theory says of filters; `target` is the size, or θ, that a summary was given."""
        rows = super().rows(store)
        target = rows["size"].fillna(rows.tau.map({self.tau(s): s for s in self.sizes}))
        rows = rows.assign(target=target.fillna(rows.theta))
        rows = name_rows(rows)
        ranges = RandomRanges(self.length, self.queries)
        theory = theory_rows(self.data, ranges, self.thetas, self.epsilon)
        return pd.concat([rows, theory], ignore_index=True)

    def tau(self, size: int) -> float:
        """The τ at which a threshold sample is expected to hold `size` cells."""
        return tau_of_size(self.data, size, self.epsilon)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Absolute errors above relative ones; then what 2.1 and C.2 say in words."""
        law = partial(expected_geometric_error, epsilon=self.epsilon)
        at = f"R = {self.length:,}"
        cells = f"s = {self.size:,}"

        def panel(title: str, name: str, metric: str, x: str, **how) -> Panel:
            drawn = metric_panel(title, name, metric, x, **how)
            here = {} if name == "c" else {"query_size": self.length}
            return replace(drawn, where=drawn.where | here)

        return [
            panel(f"filters, {at}", "a", ABSOLUTE, "released", at="theta"),
            panel(f"samples, {at}", "b", ABSOLUTE, "released", at="target"),
            panel(f"filter-priority, {cells}", "c", ABSOLUTE, "theta", log="y"),
            panel("filters", "a", RELATIVE, "released", at="theta", printed=PAPER["a"]),
            panel("samples", "b", RELATIVE, "released", at="target", printed=PAPER["b"]),
            panel("filter-priority", "c", RELATIVE, "theta", log="y", printed=PAPER["c"]),
            panel(f"filters, {at}", "a", OVER, "theta", log=""),
            metric_panel(
                "full table: negatives kept or not (§2.1)",
                "sides",
                ABSOLUTE,
                theory=("geometric, theory", law),
            ),
            metric_panel(
                "one cell: weights (C.2)", "weights", ABSOLUTE, "released", at="target"
            ),
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Every other length of the ranges in (c)."""
        drawn = {self.length, *self.lengths[::2]}
        return rows[rows.panel.ne("c") | rows.query_size.isin(drawn)]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The relative errors that the paper prints, beside ours."""
        return comparison(rows, self.level())


def name_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows whose series tell weights, rounding and lengths; `queries` are ranges or subsets."""
    weights = "threshold, " + rows.weights.map({"raw": "raw", "unbiased": "adjusted"})
    asked = rows.workload.str.startswith("RandomSubsets")
    kind = asked.map({True: "subsets", False: "ranges"}).where(rows.panel == "subsets")
    series = rows.series.mask(rows.panel == "weights", weights)
    series = series.mask(rows.estimator.eq("RoundedUp()"), "geometric, rounded up")
    lengths = rows.query_size.map("filter-priority, R = {:,.0f}".format)
    series = series.mask(rows.panel.str.startswith("c"), lengths)
    return rows.assign(series=series, queries=kind)
