"""Cormode et al. 2012, Figure 3: error of the summaries against the size of the subset asked for.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.3 and Figure 3 (a)–(d).
Read    from the text; the plots are not in our copy. Printed numbers may be off by half of their
        last digit.
Open    The subset sizes are not printed: 100, which is, to half of the domain, (a) below and (b)
        above 10⁴ cells, (c) and (d) all of them. The filter has θ = 50 in every panel, as printed for
        (a) and (b); in (d) it then releases more than s = 10⁴ cells, so that θ = 70, at which it
        releases about 10⁴, is drawn beside it and not judged.
        The number of queries is not printed.
Words   small and medium subsets = panel (a), up to 5000 cells; large enough = the largest, half of
        the domain; about a thousand items = where the two error curves cross for good.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd

from experiments.cormode2012.fig3_claims import CLAIMS, PAPER, comparison
from experiments.cormode2012.shared import (
    ABSOLUTE,
    RELATIVE,
    Counts,
    expected_geometric_error,
    format_size,
    metric_panel,
)
from workbench import DP, RandomSubsets, Sweep
from workbench.figures import UNPRINTED, Figure
from workbench.figures.parameters import epsilon, number, queries, seeds, whole, wholes
from workbench.mechanisms import GeometricHistogram, HighPassFilter, PrioritySampling
from workbench.metrics import MeanAbsoluteError, MedianRelativeError
from workbench.plots import Panel
from workbench.value import value


@value
class Fig3(Counts, Figure):
    """Two kinds of counts and two densities; subsets of all sizes."""

    title = "Error of the summaries against the size of the subset asked for"
    page = "Cormode et al., ICDT 2012, section 4.3, Figure 3"
    quick = {"seeds": 10, "queries": 200}
    claims = CLAIMS
    series_by = ("theta",)
    shown = ("size",)

    epsilon: float = epsilon(0.1)
    wide_std: float = number(40.0, "σ of the counts in (c)", unit="counts")
    low_density: float = number(0.01, "ρ in (d)", 0, 1, strict=True)
    theta: int = whole(50, "θ of the filter", unit="counts")
    both_theta: int = whole(40, "θ of filter-priority in (a) and (b)", unit="counts")
    wide_theta: int = whole(20, "θ of filter-priority in (c)", unit="counts")
    equal_theta: int = whole(70, "θ of the filter as large as s in (d)", kind=UNPRINTED)
    size: int = whole(100_000, "s of the samples", unit="cells")
    low_size: int = whole(10_000, "s of the samples in (d)", unit="cells")
    small: tuple[int, ...] = wholes(
        (100, 200, 500, 1000, 2000, 5000), "subsets of (a)", unit="cells", kind=UNPRINTED
    )
    large: tuple[int, ...] = wholes(
        (10_000, 20_000, 50_000, 100_000, 200_000, 500_000),
        "subsets of (b)",
        unit="cells",
        kind=UNPRINTED,
    )
    queries: int = queries(1000)
    seeds: int = seeds(200)  # large subsets overlap: only seeds are independent

    def sweeps(self) -> dict[str, Sweep]:
        """(a) and (b) are one run."""
        budget = DP(self.epsilon)
        table = GeometricHistogram(budget)
        filtered = HighPassFilter(budget, theta=self.theta)
        sample = partial(PrioritySampling, budget)
        priority = sample(size=self.size)
        wide = [sample(size=size, theta=self.wide_theta) for size in (self.size, 2 * self.size)]
        sparse = [
            sample(size=self.low_size),
            sample(size=self.low_size, theta=self.theta),
            HighPassFilter(budget, theta=self.equal_theta),
        ]
        usual = [table, filtered, priority]
        runs = {
            "ab": (self.data, [*usual, sample(size=self.size, theta=self.both_theta)]),
            "c": (replace(self.data, std=self.wide_std), [*usual, *wide]),
            "d": (replace(self.data, density=self.low_density), [table, filtered, *sparse]),
        }
        subsets = [RandomSubsets(size, self.queries) for size in (*self.small, *self.large)]
        metrics = [
            m(subset) for m in (MeanAbsoluteError, MedianRelativeError) for subset in subsets
        ]
        return {
            panel: Sweep([dataset], mechanisms, metrics, self.seeds)
            for panel, (dataset, mechanisms) in runs.items()
        }

    def rows(self, store) -> pd.DataFrame:
        """Panels (a) and (b) are told apart by the size of the subset."""
        rows = super().rows(store)
        twice = ", s = 2·10⁵" if self.size == 100_000 else f", s = {2 * self.size:,}"
        rows["series"] += (rows["size"] == 2 * self.size).map({True: twice, False: ""})
        by_size = rows.query_size.isin(self.small).map({True: "a", False: "b"})
        return rows.assign(panel=rows.panel.mask(rows.panel == "ab", by_size))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Absolute errors of all, and what is relative in (a) and (b)."""
        data = f"(μ = {self.mean:g}, σ = {self.std:g}, ρ = {self.density:g})"
        sparse = f"(d) ρ = {self.low_density:g}, s = {format_size(self.low_size)}"
        law = ("geometric, theory", partial(expected_geometric_error, epsilon=self.epsilon))
        return [
            metric_panel(f"(a) small subsets {data}", "a", ABSOLUTE, theory=law),
            metric_panel(f"(b) large subsets {data}", "b", ABSOLUTE, theory=law),
            metric_panel(
                f"(c) σ = {self.wide_std:g}", "c", ABSOLUTE, theory=law, printed=PAPER["c"]
            ),
            metric_panel(sparse, "d", ABSOLUTE, theory=law),
            metric_panel("(a) relative", "a", RELATIVE, printed=PAPER["a"]),
            metric_panel("(b) relative", "b", RELATIVE),
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The numbers that the paper prints, beside ours."""
        return comparison(rows)
