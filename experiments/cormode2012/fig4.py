"""Figure 4 of Cormode et al. (2012): throughput of the summaries (non-empty cells per second) by the density
of the data.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.3 and Figure 4, and what sections 1 and 5
        say in words.
Read    The plot is not in our copy, and the text prints no number.
Open    The paper does not print m, the number of cells, for this figure. We use 10⁶, the default of section
        4.1. The paper profile also runs 10⁷. As printed, s = n for every summary. The filter gets the θ, and
        threshold sampling gets the τ, for which an empty table would release n cells. Both are functions of
        m, n and ε alone. Filter-priority sampling has θ = 40, the best value of Figure 2(c). At every
        density, more than n cells pass this filter, so that something is left to sample. A time is that of a
        whole release that may be published, with noise from the operating system, on one core. It is the best
        processor time of several runs. The methods take turns, and each timed run follows a run that is not
        timed. The full table is drawn by our exact sampler. For comparison, it is also drawn by the usual
        method with numpy, the difference of two vectors of geometric numbers. The curve "priority, laborious"
        takes its sample from the full table of our exact sampler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from experiments._fields import effort, unprinted
from experiments.benchmarks._timing import numpy_geometric
from experiments.cormode2012.shared import format_size, span, throughput_rows
from workbench import DP, Trial
from workbench.compiled import pd
from workbench.datasets import GaussianSparse
from workbench.figures import Figure
from workbench.figures.fields import epsilon, number
from workbench.figures.plots import Panel
from workbench.mechanisms import (
    GeometricHistogram,
    HighPassFilter,
    Laborious,
    PrioritySampling,
    ThresholdSampling,
)
from workbench.trials.claims import ALIKE, OFTEN, Finding, check_between, exact, select
from workbench.value import value

USUAL = "geometric, numpy"
OURS = "geometric"
LABORIOUS = "priority, laborious"
SUMMARIES = ("filter", "threshold", "priority")
SIZES = (10**6, 10**7)
SPARSE = (0.01, 0.001)
FASTER = 1 + 1e-12


def _throughput(rows, *series: str, **where) -> pd.Series:
    """Return the throughput by curve and density."""
    return select(rows, series=series, **where).set_index(["series", "density"]).value


def _gain(rows, ours: Sequence[str], other: str, **where) -> pd.Series:
    """Return the throughput of some curves, divided by that of the curve `other`, by curve and density."""
    base = _throughput(rows, other, **where).droplevel("series")
    return _throughput(rows, *ours, **where).div(base, level="density")


def _beside(finding: Finding, gain: pd.Series) -> Finding:
    """Return the finding, extended by the comparison with our own sampler of full tables."""
    return replace(finding, measured=f"{finding.measured}; than our dense sampler {span(gain)}")


def fastest(rows, level) -> Finding:
    """Check whether the filter and threshold sampling are faster than all other methods."""
    ours = ("filter", "threshold")
    others = ("priority", "filter-priority", USUAL)
    gains = pd.concat({other: _gain(rows, ours, other) for other in others})
    finding = check_between(exact(gains), level, low=FASTER, words="faster")
    return _beside(finding, _gain(rows, ours, OURS))


def faster(
    rows, level, times: float = FASTER, series: Sequence[str] = SUMMARIES, density=SPARSE
) -> Finding:
    """Check whether the throughput of summaries is at least `times` that of the full table, on tables of the
    given densities.
    """
    usual, ours = (_gain(rows, series, other, density=density) for other in (USUAL, OURS))
    return _beside(check_between(exact(usual), level, low=times, words="as fast"), ours)


as_the_dense = partial(faster, times=1 / ALIKE, series=("priority",), density=0.1)


def independent(rows, level) -> Finding:
    """Check whether the time of a summary (released part of the noisy counts) is independent of the number of
    cells of the domain.
    """
    small, large = (
        rows[(rows.m == m) & rows.series.isin(SUMMARIES)]
        .set_index(["series", "nonempty"])
        .value
        for m in SIZES
    )
    times = (small / large).dropna()
    if times.empty:
        return Finding(None, "tables of one size were run")
    growth = np.exp(np.log(times).groupby("series").mean())
    return check_between(exact(growth), level, high=ALIKE, words="at most 1.25×")


def proportional(rows, level) -> Finding:
    """Check whether the time of a summary (released part of the noisy counts) grows at most in proportion to
    the number of released cells.
    """
    by_density = _throughput(rows, *SUMMARIES).unstack("density").sort_index(axis=1)
    steps = by_density / by_density.shift(-1, axis=1)
    growth = exact(steps.stack().dropna())
    return check_between(growth, level, high=ALIKE, share=OFTEN, words="at most 1.25×")


@value
class Fig4(Figure):
    """Throughput of whole releases, for summaries and for full noisy tables, on data of several densities."""

    title = "Throughput of the summaries as density varies"
    headline = (
        "On sparser data, summaries are faster than the full table by orders of magnitude"
    )
    rests_on = ("c-4-1.3", "c-4-1.4")
    page = "Cormode et al., ICDT 2012, section 4.3, Figure 4"
    quick = {"domains": (10**6,), "repeat": 15}
    rough = {"domains": (10**6,), "repeat": 3}
    height = 2.6
    sharey = True

    epsilon: float = epsilon(0.1)
    domains: tuple[int, ...] = effort(
        (10**6, 10**7), "numbers of all cells (m)", 1000, 10**8, unit="cells"
    )
    densities: tuple[float, ...] = number(
        (0.1, 0.01, 0.001), "share ρ of cells that are not empty", 0, 0.5, strict=True
    )
    mean: float = number(100.0, "mean μ of the counts", unit="counts")
    std: float = number(20.0, "standard deviation σ of counts", unit="counts")
    theta: int = unprinted(40, "threshold θ of filter-priority", unit="counts")
    repeat: int = effort(31, "timed releases (half as many beyond 10⁶ cells)", 2)

    def mechanisms(self, n: int) -> list:
        """Return the mechanisms that are timed on a table with n non-empty cells."""
        budget = DP(self.epsilon)
        return [
            HighPassFilter(budget, size=n),
            ThresholdSampling(budget, size=n),
            PrioritySampling(budget, size=n),
            PrioritySampling(budget, size=n, theta=self.theta),
            GeometricHistogram(budget),
            Laborious(PrioritySampling(budget, size=n)),
        ]

    def data(self, m: int, density: float) -> GaussianSparse:
        """Return the synthetic counts of section 4.1 of Cormode et al. (2012), for a number of cells m and a
        density.
        """
        return GaussianSparse(m=m, density=density, mean=self.mean, std=self.std)

    def datasets_run(self) -> list[GaussianSparse]:
        """Return all datasets on which releases are timed."""
        return [self.data(m, density) for m in self.domains for density in self.densities]

    def rows(self, store) -> pd.DataFrame:
        """Time the releases. The result has one row per method, density and m. It never comes from the store,
        because machines differ.
        """
        frames = [self._releases(dataset) for dataset in self.datasets_run()]
        rows = pd.concat(frames, ignore_index=True)
        names = {"numpy": USUAL, "laborious priority": LABORIOUS}
        return rows.assign(series=rows.series.replace(names), epsilon=self.epsilon)

    def _releases(self, dataset: GaussianSparse) -> pd.DataFrame:
        table = dataset.load()
        calls = {made: partial(made, table) for made in self.mechanisms(len(table))}
        calls["numpy"] = lambda: numpy_geometric(table.dense(), self.epsilon)
        repeat = self.repeat if dataset.m <= 10**6 else self.repeat // 2
        rows = throughput_rows(dataset, len(table), calls, repeat)
        return rows.assign(panel=f"m = {format_size(dataset.m)}")

    def example_trial(self) -> Trial:
        """Return one release as an example. It has a seed, whereas the timed releases draw their noise from
        the operating system.
        """
        dataset = self.data(self.domains[0], self.densities[0])
        return Trial(dataset, self.mechanisms(len(dataset.load()))[0], seed=0)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel for each number of cells m."""
        return [Panel(name, {"panel": name}, "density") for name in rows.panel.unique()]
