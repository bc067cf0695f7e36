"""Cormode et al. 2012, Figure 5: range queries from summaries of dyadic ranges.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: sections 3 and 4.4, Figure 5 (a)–(c), and
        the throughput of which section 4.4 tells in words.
Read    from the text; the plots are not in our copy. Printed numbers may be off by half of their
        last digit.
Open    A cell lies in 21 nodes, so that ε/21 is spent on each (the paper counts log₂m). The filter's θ
        is not printed: the one that goes with s, 630 from m, s and ε alone. Nor is filter-priority's:
        factors of that. Skewed data are regions, half full, and nothing between them; the paper's law is
        not printed, nor how many regions: 1, 10 and 100, of which 10 are drawn.
        Throughput as in Figure 4: whole releases from the system's randomness, s = n, processor time
        on one core, the best of several in turns. "numpy" sums the dense tree level by level and adds
        numpy's usual noise to all of it. How long either way of summing takes is in the rows, since
        the paper explains its gain by a cost that all methods share.
        Not in the paper, and not judged: a budget that favours finer levels, Haar coefficients filtered,
        and the filter of cells beside the dyadic one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from experiments.cormode2012.fig5_checks import (
    PAPER,
    REGIONS,
    comparison,
    name_rows,
    of_regions,
)
from experiments.cormode2012.fig5_theory import expected_dyadic_error, theory_rows
from experiments.cormode2012.fig5_throughput import throughput
from experiments.cormode2012.fig5_times import TIMED
from experiments.cormode2012.measures import BelowZerosDropped
from experiments.cormode2012.shared import (
    ABSOLUTE,
    CUT,
    DYADIC,
    FACTOR,
    FACTORS,
    Counts,
    consistency_summaries,
    error_cut,
    largest_factor,
    metric_panel,
    name_factors,
    summaries,
    thetas,
)
from workbench import DP, Dyadic, Haar, RandomRanges, Sweep
from workbench.compiled import pd
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.fields import epsilon, number, queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import GeometricHistogram, HighPassFilter
from workbench.trials.metrics import MeanAbsoluteError
from workbench.value import counted, value


@value
class Fig5(Counts, Figure):
    """Ranges of all lengths from dyadic summaries, on two kinds of data; and how fast they are."""

    title = "Range queries from summaries of dyadic ranges"
    headline = "Dyadic ranges make the error of long ranges almost independent of their length"
    rests_on = ("c-5a-1.3", "c-5a-1.4")
    page = "Cormode et al., ICDT 2012, sections 3 and 4.4, Figure 5"
    quick = {"seeds": 5, "queries": 200, "repeat": 5}
    rough = {"seeds": 2, "queries": 50, "repeat": 2}
    shown = ("theta", "size")
    main = 4

    epsilon: float = epsilon(0.1)
    size: int = whole(100_000, "s of the summaries", unit="nodes")
    ranges: tuple[int, ...] = whole(
        tuple(d * 10**k for k in range(2, 6) for d in (1, 2, 5)),
        "lengths of ranges",
        unit="cells",
        kind=UNPRINTED,
    )
    theta: int = whole(50, "θ of the filter of cells", unit="counts", kind=UNPRINTED)
    regions: tuple[int, ...] = whole(REGIONS, "regions of skewed data", kind=UNPRINTED)
    factors: tuple[float, ...] = number(FACTORS, FACTOR, 0, 10, strict=True, kind=UNPRINTED)
    densities: tuple[float, ...] = number(
        (0.1, 0.01, 0.001), "ρ where throughput is measured", 0, 0.5, strict=True
    )
    queries: int = queries(1000)
    seeds: int = seeds(100)  # large ranges overlap: only seeds are independent
    repeat: int = whole(TIMED, "releases timed", 1, kind=EFFORT)

    def sweeps(self) -> dict[str, Sweep]:
        """The paper's panels, skewed ones by regions; "zeros" and "bases" are told in words."""
        known = (self.data.domain, self.size, self.epsilon, self.factors)
        tables = summaries(*known)
        filters = consistency_summaries(*known)
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

    @property
    def drawn_regions(self) -> int:
        """Those of the skewed data that is drawn."""
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
        """With what consistency cuts, and theory; throughput is never taken from the store."""
        rows = name_rows(super().rows(store))
        factors = thetas(self.data.domain, self.size, self.epsilon, self.factors)
        rows = name_factors(rows, factors)
        panels = (of_regions("c", self.drawn_regions), "uniform")
        cuts = [error_cut(rows[rows.panel == panel], "query_size") for panel in panels]
        tables = [replace(self.data, density=density) for density in self.densities]
        times = [throughput(x, self.epsilon, self.factors, self.repeat) for x in tables]
        theory = theory_rows(self.m, self.ranges, self.epsilon).assign(dataset=repr(self.data))
        return pd.concat([rows, *cuts, *times, theory], ignore_index=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Errors, what consistency cuts, throughput, and other bases."""
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
        """Of filter-priority the largest factor."""
        largest = largest_factor(rows)
        return largest.assign(series=largest.series.str.replace(r", [\d.]+ θ$", "", regex=True))

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The numbers that the paper prints, beside ours."""
        return comparison(rows)
