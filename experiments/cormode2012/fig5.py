"""Cormode et al. 2012, Figure 5: range queries from summaries of dyadic ranges.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: sections 3 and 4.4, Figure 5 (a)–(c), and
        the throughput of which section 4.4 tells in words.
Read    from the text; the plots are not in our copy. Printed numbers may be off by half of their
        last digit.
Open    A cell lies in 21 nodes, so that ε/21 is spent on each (the paper counts log₂m). The filter's θ
        is not printed: the one that goes with s, 630 from m, s and ε alone. Nor is filter-priority's:
        4/5 of that, 504. Skewed data are ten regions, half full, and nothing between them; the
        paper's law is not printed.
        Throughput as in Figure 4: whole releases from the system's randomness, s = n, processor time
        on one core, the best of several in turns. "numpy" sums the dense tree level by level and adds
        numpy's usual noise to all of it. How long either way of summing takes is in the rows, since
        the paper explains its gain by a cost that all methods share.
        Not in the paper, and not judged: the Haar basis, a budget that favours finer levels, and the
        filter of cells beside the dyadic one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import exp

import numpy as np
import pandas as pd

from experiments.benchmarks.noise import numpy_geometric
from experiments.cormode2012.fig5_claims import (
    CLAIMS,
    CONSISTENCY,
    DENSE_SUMS,
    NUMPY,
    OUR_SUMS,
    PAPER,
    beats_cells,
    cut,
    gain,
    same_cost,
)
from experiments.cormode2012.shared import (
    ABSOLUTE,
    BOTH,
    CELLS,
    CUT,
    DYADIC,
    FILTER,
    FULL,
    PRIORITY,
    Counts,
    consistency_summaries,
    error_cut,
    format_size,
    metric_panel,
    summaries,
)
from experiments.cormode2012.throughput import throughput_rows
from workbench import DP, Dyadic, Haar, RandomRanges, Sweep, claims
from workbench.datasets import GaussianSparse
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.parameters import (
    epsilon,
    numbers,
    queries,
    seeds,
    whole,
    wholes,
)
from workbench.mechanisms import GeometricHistogram, HighPassFilter
from workbench.metrics import MeanAbsoluteError
from workbench.plots import Panel
from workbench.value import value


@value
class Fig5(Counts, Figure):
    """Ranges of all lengths from dyadic summaries, on two kinds of data; and how fast they are."""

    title = "Range queries from summaries of dyadic ranges"
    page = "Cormode et al., ICDT 2012, sections 3 and 4.4, Figure 5"
    quick = {"seeds": 8, "queries": 200, "repeat": 5}
    rough = {"seeds": 2, "queries": 50, "repeat": 2}
    claims = CLAIMS
    shown = ("theta", "size")

    epsilon: float = epsilon(0.1)
    size: int = whole(100_000, "s of the summaries", unit="nodes")
    ranges: tuple[int, ...] = wholes(
        tuple(d * 10**k for k in range(2, 6) for d in (1, 2, 5)),
        "lengths of ranges",
        unit="cells",
        kind=UNPRINTED,
    )
    theta: int = whole(50, "θ of the filter of cells", unit="counts", kind=UNPRINTED)
    densities: tuple[float, ...] = numbers(
        (0.1, 0.01, 0.001), "ρ where throughput is measured", 0, 0.5, strict=True
    )
    queries: int = queries(1000)
    seeds: int = seeds(100)  # large ranges overlap: only seeds are independent
    repeat: int = whole(21, "releases timed", 1, kind=EFFORT)

    def sweeps(self) -> dict[str, Sweep]:
        """The paper's panels, and what is not in the paper as "bases"."""
        uniform = self.data
        skewed = replace(uniform, placement="skewed")
        known = (uniform.domain, self.size, self.epsilon)
        runs = {
            "a": (uniform, summaries(*known)),
            "b": (skewed, summaries(*known)),
            "c": (skewed, consistency_summaries(*known)),
            "uniform": (uniform, consistency_summaries(*known)),
            "bases": (uniform, self._other_bases()),
        }
        metrics = [MeanAbsoluteError(RandomRanges(n, self.queries)) for n in self.ranges]
        return {
            panel: Sweep([dataset], mechanisms, metrics, self.seeds)
            for panel, (dataset, mechanisms) in runs.items()
        }

    def _other_bases(self) -> list:
        budget = DP(self.epsilon)
        bases = (DYADIC, None, Haar(), Dyadic(split="geometric"))
        tables = [GeometricHistogram(budget, transform=basis) for basis in bases]
        for basis in bases:
            size = {"theta": self.theta} if basis is None else {"size": self.size}
            tables.append(HighPassFilter(budget, transform=basis, **size))
        return tables

    def rows(self, store) -> pd.DataFrame:
        """With what consistency cuts; throughput is never taken from the store."""
        rows = super().rows(store)
        paper = (rows.panel != "bases") | rows.series.isin([FULL, CELLS, FILTER])
        rows["series"] += paper.map({True: "", False: ", not in the paper"})
        cuts = [error_cut(rows[rows.panel == panel], "query_size") for panel in CONSISTENCY]
        times = [self._throughput(replace(self.data, density=d)) for d in self.densities]
        return pd.concat([rows, *cuts, *times], ignore_index=True)

    def _throughput(self, dataset: GaussianSparse) -> pd.DataFrame:
        table = dataset.load()
        full, _, filtered, both, sampled = summaries(table.domain, len(table), self.epsilon)
        calls = {m: partial(m, table) for m in (full, filtered, sampled, both)}
        noise = self.epsilon / self._nodes_per_count()
        calls[NUMPY] = lambda: numpy_geometric(dense_sums(table), noise)
        calls[OUR_SUMS] = partial(DYADIC.on(table.domain).forward, table.keys, table.counts)
        calls[DENSE_SUMS] = partial(dense_sums, table)
        rows = throughput_rows(dataset, len(table), calls, self.repeat)
        sums = rows.series.isin([OUR_SUMS, DENSE_SUMS])
        return rows.assign(
            panel=sums.map({True: "sums", False: "throughput"}), epsilon=self.epsilon
        )

    def _nodes_per_count(self) -> int:
        return DYADIC.on(self.data.domain).noise_blocks[0].nodes_per_count

    def expected_dyadic_error(self, cells):
        """E|error| of the full dyadic table: a range of so many cells needs about log₂ of it in nodes."""
        alpha = exp(-self.epsilon / self._nodes_per_count())
        return np.sqrt(2 / np.pi * np.log2(cells) * 2 * alpha / (1 - alpha) ** 2)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Errors, what consistency cuts, and throughput."""
        law = dict(theory=("geometric, dyadic: theory", self.expected_dyadic_error))
        part = dict(log="x")
        times = f"throughput, uniform data, m = {format_size(self.m)}"
        return [
            metric_panel("(a) uniform data", "a", ABSOLUTE, printed=PAPER["a"], **law),
            metric_panel("(b) skewed data", "b", ABSOLUTE, **law),
            metric_panel("(c) skewed data, consistency", "c", ABSOLUTE),
            metric_panel("(c) what it cuts", "c", CUT, printed=PAPER["c"], **part),
            metric_panel("uniform data, consistency", "uniform", ABSOLUTE, log="x"),
            metric_panel("what it cuts", "uniform", CUT, printed=PAPER["uniform"], **part),
            metric_panel("not in the paper: other bases, uniform data", "bases", ABSOLUTE),
            Panel(times, {"panel": "throughput"}, "density"),
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The numbers that the paper prints, beside ours."""
        lines = []
        for series in (FULL, FILTER):
            line = f"uniform: {series} beats cells"
            lines.append((line, PAPER["a"], beats_cells(rows, series)))
        for panel, data in CONSISTENCY.items():
            for series in (FILTER, BOTH):
                line = f"{data}, cut by consistency: {series}"
                lines.append((line, PAPER[panel], cut(rows, panel, series)))
        for series in (FILTER, BOTH, PRIORITY):
            line = f"throughput over {FULL}: {series}"
            lines.append((line, PAPER["throughput"], gain(rows, series)))
        line = "throughput, if all built dense sums, over numpy's table"
        return claims.compare_with_paper(*lines, (line, PAPER["throughput"], same_cost(rows)))


def dense_sums(table) -> np.ndarray:
    """All dyadic sums of a domain padded to a power of two, level by level."""
    level = np.zeros(1 << (table.domain.size - 1).bit_length(), np.int64)
    level[: table.domain.size] = table.dense()
    levels = [level]
    while len(level) > 1:
        level = level.reshape(-1, 2).sum(axis=1)
        levels.append(level)
    return np.concatenate(levels)
