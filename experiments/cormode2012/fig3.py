"""Figure 3 of Cormode et al. (2012): error of each summary (released part of the noisy counts) by the size of
the queried subset.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.3 and Figure 3 (a)–(d).
Read    We read all numbers from the text, because the plots are not in our copy.
Open    The paper prints only the subset size 100. We use sizes from 100 to half of the domain: in (a) below
        10⁴ cells, in (b) from 10⁴ cells on, and in (c) and (d) all sizes. The paper does not print the
        filter's θ in (c) and (d). We run several values, and also the θ for which the filter is expected to
        release as many cells as the sample. The filters of (c) also run on the counts of (a). The number of
        queries is not printed either.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from experiments._fields import unprinted
from experiments.cormode2012.shared import (
    ABSOLUTE,
    RELATIVE,
    Counts,
    above,
    expected_geometric_error,
    format_size,
    lower_from,
    metric_panel,
    theta_of_size,
)
from workbench import DP, RandomSubsets, Sweep
from workbench.compiled import pd
from workbench.datasets import GaussianSparse
from workbench.figures import Figure
from workbench.figures.fields import epsilon, number, queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import GeometricHistogram, HighPassFilter, PrioritySampling
from workbench.trials.claims import (
    OFTEN,
    Finding,
    Printed,
    all_of,
    check_lower,
    check_similar,
    decide,
    ratios,
    select,
)
from workbench.trials.metrics import HeldCells, MeanAbsoluteError, MedianRelativeError
from workbench.value import format_number, value

PAPER = {
    "a": Printed("around 5 % for subsets of size 100", 0, 0.055, at=100),
    "c": Printed("around a thousand items in length", 500, 2000, value=1000, axis="x"),
}
FILTER = "filter, θ = 50"
PRIORITY = "priority"
TABLE = "geometric"
BOTH = {panel: "filter-priority, θ = 40" for panel in ("a", "b", "ab")}
BOTH |= {"c": "filter-priority, θ = 20", "d": "filter-priority, θ = 50"}
TWICE = ", s = 2·10⁵"
OWN_SIZE = "size s"
TWICE_THETAS = (5, 10, 20, 30, 40)  # of filter-priority with twice the size
SHARE_HELD = "HeldCells"


# What Cormode et al. 2012 say of Figure 3: its series, and the checks that reshape rows.


def errors(rows, series: str, panel: str, metric: str = ABSOLUTE) -> pd.DataFrame:
    """Return the results of one curve in one panel. The panel "ab" means (a) and (b) together."""
    panels = tuple(panel) if panel == "ab" else (panel,)
    return select(rows, panel=panels, series=series, metric=metric)


def of_filter(rows, panel: str, theta: int | str, of: str = "") -> pd.DataFrame:
    """Return the results of the filter in a panel. In panels (a) and (b), this is the filter with the θ that
    the paper prints.
    """
    if panel in ("a", "b", "ab"):
        return errors(rows, FILTER, panel)
    if theta == OWN_SIZE:
        theta = select(rows, panel="theory", series=of or panel).value.iloc[0]
    return errors(rows, f"filter, θ = {theta:g}", panel)


def from_size(size: float) -> str:
    """Return a text with the size from which on something holds."""
    return f"from {format_number(size)} cells" if np.isfinite(size) else "at no size"


def large_enough(rows, level) -> Finding:
    """Check whether priority sampling has a smaller error than the filter for all subsets above some size."""
    against = ratios(errors(rows, PRIORITY, "ab"), errors(rows, FILTER, "ab"), "query_size")
    size, first, last = lower_from(against, level)
    largest = against.at(level).index.max()
    return Finding(decide(last <= largest, first > largest), from_size(size))


def as_a_root(rows, level) -> Finding:
    """Check whether the error of the full noisy table grows with the square root of the subset's size."""
    error = errors(rows, TABLE, "ab")
    scaled = error.assign(value=error.value / np.sqrt(error.query_size))
    first = select(scaled, query_size=100).drop(columns="query_size")
    others = scaled[scaled.query_size > 100]
    at_100 = others[["query_size", "seed"]].merge(first, on="seed")
    return check_similar(ratios(others, at_100, "query_size"), level)


def much_worse(rows, level, theta) -> Finding:
    """Check whether the filter has larger errors if the counts have a large standard deviation (panel c) than
    on the counts of panel (a).
    """
    before = of_filter(rows, "c, σ = 20", theta, of="c")
    return above(ratios(of_filter(rows, "c", theta), before, "query_size"), level, OFTEN)


def _crossing(rows, level, panel: str, theta) -> tuple[float, float, float]:
    priority = errors(rows, PRIORITY, panel)
    return lower_from(ratios(priority, of_filter(rows, panel, theta), "query_size"), level)


def overtaken(rows, level, theta) -> Finding:
    """Check whether priority sampling has a smaller error than the filter for subsets of about 1000 cells and
    more.
    """
    size, first, last = _crossing(rows, level, "c", theta)
    holds = decide(500 <= first and last <= 2000, last < 500 or first > 2000)
    return Finding(holds, from_size(size))


def overtaken_earlier(rows, level, theta) -> Finding:
    """Check whether, for counts with a large standard deviation, priority sampling becomes better than the
    filter at a smaller subset size.
    """
    own = 1 - (1 - level) / 2
    size, first, last = _crossing(rows, own, "c", theta)
    before, before_first, before_last = _crossing(rows, own, "ab", 50)
    holds = decide(last < before_first, first > before_last)
    return Finding(holds, f"{from_size(size)}; {from_size(before)} with σ = 20")


def below_filter(rows, level, theta, panel: str, ours: str) -> Finding:
    """Check whether the curve `ours` has smaller errors than the filter."""
    other = of_filter(rows, panel, theta)
    return check_lower(ratios(errors(rows, ours, panel), other, "query_size"), level, OFTEN)


def beats_sampling(rows, level, theta) -> Finding:
    """Check whether the filter has smaller errors than priority sampling on sparse data (panel d)."""
    ours = of_filter(rows, "d", theta)
    return check_lower(ratios(ours, errors(rows, PRIORITY, "d"), "query_size"), level, OFTEN)


def all_worse(rows, level, theta) -> Finding:
    """Check whether all summaries have larger errors than the full noisy table if the counts have a large
    standard deviation (panel c).
    """
    table = errors(rows, TABLE, "c")
    summaries = {"filter": of_filter(rows, "c", theta)}
    summaries |= {series: errors(rows, series, "c") for series in (PRIORITY, BOTH["c"])}
    parts = {
        series: partial(check_lower, ratios(table, own, "query_size"), share=OFTEN)
        for series, own in summaries.items()
    }
    return all_of(parts, level)


def fewer_held(rows, level) -> Finding:
    """Check whether a sample contains a smaller share of the non-empty cells on sparse data than on the usual
    data.
    """
    held = [select(rows, panel=p, series=PRIORITY, metric=SHARE_HELD) for p in ("d", "ab")]
    sparse, usual = (x.assign(point=0) for x in held)
    finding = check_lower(ratios(sparse, usual, "point"), level)
    measured = f"{sparse.value.mean():.1%} against {usual.value.mean():.1%}; {finding.measured}"
    return Finding(finding.holds, measured, runs=finding.runs)


@value
class Fig3(Counts, Figure):
    """Errors of subset queries of all sizes, on counts with two standard deviations and two densities."""

    title = "Error of the summaries against the size of the subset asked for"
    headline = "Filters win on small ranges, sampling on large ones"
    rests_on = ("c-3a-2.1", "c-3a-2.2")
    page = "Cormode et al., ICDT 2012, section 4.3, Figure 3; section 3"
    quick = {"seeds": 10, "queries": 200}
    series_by = ("theta",)
    shown = ("size",)
    main = 4

    epsilon: float = epsilon(0.1)
    wide_std: float = number(40.0, "standard deviation σ of counts in (c)", unit="counts")
    low_density: float = number(0.01, "share ρ of non-empty cells in (d)", 0, 1, strict=True)
    theta: int = whole(50, "threshold θ of the filter in (a) and (b)", unit="counts")
    thetas: tuple[int, ...] = unprinted(
        (20, 30, 40, 50, 60, 70), "thresholds θ of the filter in (c) and (d)"
    )
    both_theta: int = whole(40, "threshold θ of filter-priority in (a) and (b)", unit="counts")
    wide_theta: int = whole(20, "threshold θ of filter-priority in (c)", unit="counts")
    sparse_theta: int = whole(50, "threshold θ of filter-priority in (d)", unit="counts")
    size: int = whole(100_000, "size s of the samples", unit="cells")
    low_size: int = whole(10_000, "size s of the samples in (d)", unit="cells")
    small: tuple[int, ...] = unprinted(
        (100, 200, 500, 1000, 2000, 5000), "subsets of (a)", unit="cells"
    )
    large: tuple[int, ...] = unprinted(
        (10_000, 20_000, 50_000, 100_000, 200_000, 500_000), "subsets of (b)", unit="cells"
    )
    queries: int = queries(1000)
    seeds: int = seeds(80)  # large subsets overlap: only seeds are independent

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs. Panels (a) and (b) share one run."""
        budget = DP(self.epsilon)
        table = GeometricHistogram(budget)
        sample = partial(PrioritySampling, budget)
        wide, sparse = self.other_data()
        twice = [sample(size=2 * self.size, theta=theta) for theta in TWICE_THETAS]
        both = partial(sample, size=self.size)
        in_ab = [HighPassFilter(budget, theta=self.theta), both(), both(theta=self.both_theta)]
        of_wide = self._filters(wide, self.size)
        in_c = [both(), both(theta=self.wide_theta)]
        few = partial(sample, size=self.low_size)
        in_d = [few(), few(theta=self.sparse_theta)]
        runs = {
            "ab": (self.data, [table, *in_ab]),
            "c": (wide, [table, *of_wide, *in_c, *twice]),
            "c, σ = 20": (self.data, of_wide),
            "d": (sparse, [table, *self._filters(sparse, self.low_size), *in_d]),
        }
        subsets = [RandomSubsets(size, self.queries) for size in (*self.small, *self.large)]
        error = [MeanAbsoluteError(subset) for subset in subsets]
        relative = [MedianRelativeError(subset) for subset in subsets]
        metrics = {"ab": [*error, *relative, HeldCells()], "d": [*error, HeldCells()]}
        return {
            panel: Sweep([dataset], mechanisms, metrics.get(panel, error), self.seeds)
            for panel, (dataset, mechanisms) in runs.items()
        }

    def other_data(self) -> tuple[GaussianSparse, GaussianSparse]:
        """Return the datasets of panel (c), with a larger standard deviation, and of panel (d), with fewer
        non-empty cells.
        """
        wide = replace(self.data, std=self.wide_std)
        return wide, replace(self.data, density=self.low_density)

    def _filters(self, data: GaussianSparse, size: int) -> list[HighPassFilter]:
        thetas = sorted({*self.thetas, self.theta_of_size(data, size)})
        return [HighPassFilter(DP(self.epsilon), theta=theta) for theta in thetas]

    def theta_of_size(self, data: GaussianSparse, size: int) -> int:
        """Return the θ for which a filter is expected to release about `size` cells."""
        return theta_of_size(data, size, self.epsilon)

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with the θ for which a filter is expected to have the size of the
        sample. Small subsets are in panel (a), and large ones in (b).
        """
        rows = super().rows(store)
        twice = TWICE if self.size == 100_000 else f", s = {2 * self.size:,}"
        rows["series"] += (rows["size"] == 2 * self.size).map({True: twice, False: ""})
        by_size = rows.query_size.isin(self.small).map({True: "a", False: "b"})
        split = (rows.panel == "ab") & rows.query_size.notna()
        sizes = zip("cd", self.other_data(), (self.size, self.low_size), strict=True)
        theory = [
            {"series": panel, "dataset": repr(data), "value": self.theta_of_size(data, size)}
            for panel, data, size in sizes
        ]
        columns = {"panel": "theory", "metric": "ThetaOfSize", "truth_public": True}
        rows = rows.assign(panel=rows.panel.mask(split, by_size))
        return pd.concat([rows, pd.DataFrame(theory).assign(**columns)], ignore_index=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels: absolute errors in all four panels, and relative errors in
        (a) and (b).
        """
        wide, sparse = self.other_data()
        law = ("geometric, theory", partial(expected_geometric_error, epsilon=self.epsilon))
        of_sparse = f"ρ = {sparse.density:g}, s = {format_size(self.low_size)}"
        return [
            metric_panel("small subsets", "a", ABSOLUTE, theory=law),
            metric_panel("large subsets", "b", ABSOLUTE, theory=law),
            metric_panel("small subsets", "a", RELATIVE, printed=PAPER["a"]),
            metric_panel("large subsets", "b", RELATIVE),
            metric_panel(f"σ = {wide.std:g}", "c", ABSOLUTE, theory=law, printed=PAPER["c"]),
            metric_panel(of_sparse, "d", ABSOLUTE, theory=law),
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results that the figure draws. Filters are drawn for the printed θ, for the smallest and
        the largest θ, and for the θ that gives the sample's size. Larger samples are drawn for one θ.
        """
        sizes = zip("cd", self.other_data(), (self.size, self.low_size), strict=True)
        own = {panel: self.theta_of_size(data, size) for panel, data, size in sizes}
        filters = rows.mechanism.eq("HighPassFilter")
        larger = rows["size"].eq(2 * self.size) & rows.theta.ne(self.wide_theta)
        drawn = [rows[~filters & ~larger]]
        for theta in dict.fromkeys((self.theta, self.thetas[0], self.thetas[-1])):
            drawn.append(rows[filters & rows.theta.eq(theta)])
            filters &= rows.theta.ne(theta)
        drawn.append(rows[filters & rows.theta.eq(rows.panel.map(own))])
        return pd.concat(drawn)
