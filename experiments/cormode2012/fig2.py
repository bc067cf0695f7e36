"""Cormode et al. 2012, Figure 2: what its parameter does to each summary.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.2 and Figure 2 (a)–(c); beside
        it what sections 2.1 and C.2 say in words, and Theorems 1–4 as tests of equal laws.
Read    from the text; the plots are not in our copy. Printed numbers may be off by half of their
        last digit.
Open    The range of θ is printed for (c) and taken for (a) too; the sizes are those that (a) spans.
        Threshold sampling gets the τ whose expected size is the target, from the m, n and μ of the
        generator, which are public here (C.2 does the same with ‖M‖₁). The range of (a) and (b) is
        judged in (c), where none is printed. 2.1 and C.2 ask ten times as many queries, since few
        single cells of a sparse table hold a count.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd
from scipy.optimize import brentq

from experiments.cormode2012.fig2_claims import (
    CLAIMS,
    PAPER,
    SIGNED,
    best_filter,
    relative_of_both,
    relative_of_samples,
)
from experiments.cormode2012.laws import law_tests, shortcuts
from experiments.cormode2012.shared import (
    ABSOLUTE,
    RELATIVE,
    Counts,
    expected_geometric_error,
    metric_panel,
)
from workbench import DP, RandomRanges, RandomSubsets, Sweep, claims, plots
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.parameters import epsilon, queries, seeds, whole, wholes
from workbench.mechanisms import (
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
    ThresholdSampling,
    UniformSampling,
)
from workbench.metrics import (
    HeldCells,
    MeanAbsoluteError,
    MeanSignedError,
    MedianRelativeError,
)
from workbench.plots import Panel
from workbench.value import value


@value
class Fig2(Counts, Figure):
    """One value of its parameter after another for each summary, on ranges of one length."""

    title = "What its parameter does to each summary"
    page = "Cormode et al., ICDT 2012, section 4.2, Figure 2; sections 2.1, C.2; Theorems 1–4"
    quick = {"seeds": 5, "queries": 200, "runs": 150}
    rough = {"seeds": 2, "queries": 20, "runs": 2}
    claims = CLAIMS
    shown = ("theta", "tau", "size")

    epsilon: float = epsilon(0.1)
    thetas: tuple[int, ...] = wholes(
        tuple(range(5, 71, 5)), "θ of the filters", unit="counts", kind=UNPRINTED
    )
    sizes: tuple[int, ...] = wholes(
        tuple(range(100_000, 600_001, 100_000)), "sizes in (b)", unit="cells", kind=UNPRINTED
    )
    size: int = whole(100_000, "s of filter-priority", unit="cells")
    length: int = whole(5000, "R, the length of a range", unit="cells")
    other_lengths: tuple[int, ...] = wholes(
        (500, 50_000), "other R in (c)", unit="cells", kind=UNPRINTED
    )
    subsets: tuple[int, ...] = wholes(
        (1, 2, 5, 10, 100, 1000, 10_000, 100_000),
        "subsets of 2.1 and C.2",
        unit="cells",
        kind=UNPRINTED,
    )
    law_m: int = whole(2000, "domain of the tests of laws", 1000, unit="cells", kind=UNPRINTED)
    queries: int = queries(1000)
    seeds: int = seeds(50)
    runs: int = whole(2000, "runs of either way, in tests of laws", 2, kind=EFFORT)

    def sweeps(self) -> dict[str, Sweep]:
        """A panel each."""
        budget = DP(self.epsilon)
        lengths = dict.fromkeys((self.length, *self.other_lengths))
        ranges = [RandomRanges(length, self.queries) for length in lengths]
        error = [MeanAbsoluteError(workload) for workload in ranges]
        relative = [MedianRelativeError(workload) for workload in ranges]
        subsets = [RandomSubsets(size, 10 * self.queries) for size in self.subsets]
        samples = [PrioritySampling(budget, size=size) for size in self.sizes]
        samples += [ThresholdSampling(budget, tau=self.tau(size)) for size in self.sizes]
        samples += [UniformSampling(budget, size=size) for size in self.sizes[::2]]
        both = partial(PrioritySampling, budget, size=self.size)
        weighted = [
            metric(workload, weights)
            for metric in (MeanAbsoluteError, MeanSignedError)
            for workload in subsets
            for weights in ("unbiased", "raw")
        ]
        runs = {
            "a": (
                [HighPassFilter(budget, theta=t, sides=s) for s in (2, 1) for t in self.thetas],
                [error[0], relative[0], MeanSignedError(ranges[0]), HeldCells()],
            ),
            "b": (samples, [error[0], relative[0]]),
            "c": ([both(theta=t) for t in self.thetas], error + relative),
            "sides": (
                [GeometricHistogram(budget), HighPassFilter(budget, theta=1, sides=1)],
                [MeanAbsoluteError(workload) for workload in subsets],
            ),
            "weights": ([both()], weighted),
        }
        return {panel: Sweep([self.data], *run, self.seeds) for panel, run in runs.items()}

    def rows(self, store) -> pd.DataFrame:
        """With the tests of laws; `target` is the size that a sample was meant to have."""
        rows = super().rows(store)
        target = rows["size"].fillna(rows.tau.map({self.tau(s): s for s in self.sizes}))
        ranges = rows.query_size.map("filter-priority, R = {:,.0f}".format)
        weights = "priority, " + rows.weights.map({"raw": "raw", "unbiased": "adjusted"})
        series = rows.series.mask(rows.panel == "c", ranges)
        series = series.mask(rows.panel == "weights", weights)
        small = replace(self.data, m=self.law_m)
        tests = law_tests(small, shortcuts(DP(self.epsilon)), self.runs)
        return pd.concat([rows.assign(series=series, target=target), tests], ignore_index=True)

    def tau(self, size: int) -> float:
        """The τ at which a threshold sample is expected to hold `size` cells.

        (m − n)·p_τ + n·min(μ/τ, 1) = size; a non-empty cell is taken to hold its mean μ.
        """
        n = round(self.density * self.m)

        def excess(tau: float) -> float:
            p = ThresholdSampling(DP(self.epsilon), tau=tau).survival(self.epsilon)
            return (self.m - n) * p + n * min(self.mean / tau, 1) - size

        if excess(1) <= 0:
            return 1.0
        most = max(10_000, self.m * (self.mean + 1 / self.epsilon) / size)
        return round(brentq(excess, 1, most), 1)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Absolute errors above relative ones; below what 2.1 and C.2 say in words."""
        law = partial(expected_geometric_error, epsilon=self.epsilon)
        negatives = dict(theory=("geometric, theory", law))
        return [
            metric_panel("(a) filters", "a", ABSOLUTE, "released", at="theta"),
            metric_panel("(b) sampling", "b", ABSOLUTE, "released", at="target"),
            metric_panel("(c) filter-priority", "c", ABSOLUTE, "theta", log="y"),
            metric_panel(
                "(a) relative", "a", RELATIVE, "released", at="theta", printed=PAPER["a"]
            ),
            metric_panel(
                "(b) relative", "b", RELATIVE, "released", at="target", printed=PAPER["b"]
            ),
            metric_panel("(c) relative", "c", RELATIVE, "theta", log="y", printed=PAPER["c"]),
            metric_panel("over- or under-estimate", "a", SIGNED, "theta", log=""),
            metric_panel(
                "§2.1: are negatives kept?", "sides", ABSOLUTE, "query_size", **negatives
            ),
            metric_panel("C.2: raw or adjusted weights?", "weights", ABSOLUTE, "query_size"),
        ]

    def plot(self, rows: pd.DataFrame):
        """Nine panels, low ones."""
        return plots.grid(rows, self.panels(rows), columns=3, height=1.8)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The relative errors that the paper prints, beside ours."""
        return claims.compare_with_paper(
            ("two-sided filter, at its best", PAPER["a"], best_filter(rows)),
            ("threshold sampling", PAPER["b"], relative_of_samples(rows, "threshold")),
            ("priority sampling", PAPER["b"], relative_of_samples(rows, "priority")),
            ("filter-priority, R = 5000", PAPER["c"], relative_of_both(rows)),
        )
