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

from experiments.benchmarks._timing import power_of_ten
from experiments.cormode2012.shared import ABSOLUTE, RELATIVE, expected_geometric_error
from workbench import DP, RandomSubsets, Sweep, claims
from workbench.claims import (
    Claim,
    Finding,
    Printed,
    all_of,
    check_decreasing,
    check_lower,
    check_printed,
    check_similar,
    crossing,
    format_number,
    mean_curve,
)
from workbench.datasets import GaussianSparse
from workbench.figures import UNPRINTED, Figure
from workbench.figures.parameters import epsilon, number, queries, seeds, whole, wholes
from workbench.mechanisms import GeometricHistogram, HighPassFilter, PrioritySampling
from workbench.metrics import MeanAbsoluteError, MedianRelativeError
from workbench.plots import Panel
from workbench.value import value

PAPER = {
    "a": Printed.approximately("around 5 % for subsets of size 100", 0.05, 0.005, at=100),
    "c": Printed.approximately("around a thousand items in length", 1000, 500, axis="x"),
}


def _panel(title: str, panel: str, metric: str = ABSOLUTE, **how) -> Panel:
    return Panel(title, {"panel": panel, "metric": metric}, "query_size", **how)


def _error(rows, series: str, panel: str, metric: str = ABSOLUTE) -> pd.DataFrame:
    """The error curve of one series; `panel` "ab" is (a) and (b) in one."""
    rows = rows[rows.panel.isin(list(panel))]
    return mean_curve(rows, "query_size", metric=metric, series=series)


def _five_per_cent(rows) -> Finding:
    parts = {}
    for series in ("filter, θ = 50", "filter-priority, θ = 40", "geometric"):
        parts[f"{series} at 100"] = _at_100(rows, series)
        parts[f"{series} falling"] = check_decreasing(_error(rows, series, "ab", RELATIVE))
    return all_of(parts)


def _at_100(rows, series: str) -> Finding:
    error = _error(rows, series, "ab", RELATIVE)
    return check_printed(PAPER["a"], error.loc[:100], percent=True)


def _who_is_best(rows) -> Finding:
    small = _error(rows, "filter, θ = 50", "a")
    parts = {}
    for series in ("priority", "filter-priority, θ = 40", "geometric"):
        other = _error(rows, series, "a")
        parts[f"filter below {series} up to 5000"] = check_lower(small, other)
    priority = _error(rows, "priority", "ab")
    filtered = _error(rows, "filter, θ = 50", "ab")
    last = check_lower(priority.iloc[-1:], filtered.iloc[-1:])
    measured = f"{last.measured}; from {format_number(crossing(priority, filtered))} cells"
    return all_of(parts | {"priority below filter at 500,000": Finding(last.holds, measured)})


def _comparable(rows) -> Finding:
    both = _error(rows, "filter-priority, θ = 40", "ab")
    return check_similar(both, _error(rows, "geometric", "ab"), share=1)


def _wider_counts(rows) -> Finding:
    table = _error(rows, "geometric", "c")
    priority = _error(rows, "priority", "c")
    both = _error(rows, "filter-priority, θ = 20", "c")
    filtered = _error(rows, "filter, θ = 50", "c")
    before = _error(rows, "filter, θ = 50", "ab")
    return all_of(
        {
            "filter much worse than at σ = 20": check_lower(before, filtered, times=3),
            "sampling beats the filter from about 1000 cells": _overtaken(rows),
            "filter-priority below the filter": check_lower(both, filtered),
            "filter-priority below priority": check_lower(both, priority),
            "geometric below the filter": check_lower(table, filtered),
            "geometric below priority": check_lower(table, priority),
            "geometric below filter-priority": check_lower(table, both),
        }
    )


def _overtaken(rows) -> Finding:
    cells = crossing(_error(rows, "priority", "c"), _error(rows, "filter, θ = 50", "c"))
    return Finding(PAPER["c"].covers(cells), f"from {format_number(cells)} cells")


def _twice_the_size(rows) -> Finding:
    both = _error(rows, "filter-priority, θ = 20, s = 2·10⁵", "c")
    return check_similar(both, _error(rows, "geometric", "c"))


def _sparser(rows) -> Finding:
    filtered = _error(rows, "filter, θ = 50", "d")
    both = _error(rows, "filter-priority, θ = 50", "d")
    priority = _error(rows, "priority", "d")
    table = _error(rows, "geometric", "d")
    finding = all_of(
        {
            "filter below priority everywhere": check_lower(filtered, priority, share=1),
            "filter-priority below the filter": check_lower(both, filtered),
            "filter-priority below geometric everywhere": check_lower(both, table, share=1),
        }
    )
    filters = [s for s in rows.series.unique() if s.startswith("filter, ")]
    same_size = next(s for s in filters if s != "filter, θ = 50")
    beside = check_lower(both, _error(rows, same_size, "d")).measured
    theta = same_size.removeprefix("filter, ")
    measured = f"{finding.measured}; against a filter of the same size, {theta}: {beside}"
    return Finding(finding.holds, measured)


CLAIMS = (
    Claim(
        "c-3a-1",
        "All but priority sampling have about 5 % relative error at subsets of 100, falling with size.",
        _five_per_cent,
        "At 100 cells the sum is about 1000, and the noise of the full table alone has the median "
        "0.67·√(100·200) = 95: 9.5 %. At ε = 0.1 no geometric mechanism has 5 % before 400 cells.",
    ),
    Claim(
        "c-3a-2",
        "The filter (θ = 50) is best for small and medium ranges, sampling preferable for large "
        "enough ones.",
        _who_is_best,
    ),
    Claim(
        "c-3a-3",
        "Filter-priority (θ = 40) is comparable to the full geometric table throughout.",
        _comparable,
        "Alike up to 100,000 cells; on larger subsets the 0.26 % of the sum that θ = 40 cuts, which no "
        "averaging removes, outgrows the noise.",
    ),
    Claim(
        "c-3c-1",
        "At σ = 40 the filter is much worse, sampling beats it from about 1000 cells, filter-priority "
        "(θ = 20) beats either; all are less accurate than geometric.",
        _wider_counts,
        "The filter loses 3.4 % of every sum (0.8 % at σ = 20): 4× the error from 5000 cells on, less "
        "below, where noise decides. Sampling overtakes it where its own error, 1270 counts at 1000 "
        "cells and growing as a root, is less than that: from 13,000 cells.",
    ),
    Claim("c-3c-2", "With s = 2·10⁵ filter-priority equals geometric.", _twice_the_size),
    Claim(
        "c-3d-1",
        "At ρ = 0.01 the filter beats sampling at every size; filter-priority (θ = 50) is better still "
        "and beats geometric everywhere.",
        _sparser,
        "At equal θ both cut the same cells, and sampling what is left can only add variance. A filter "
        "of equal size (θ = 70) is beaten, from 20,000 cells on.",
    ),
)


@value
class Fig3(Figure):
    """Two kinds of counts and two densities; subsets of all sizes."""

    title = "Error of the summaries against the size of the subset asked for"
    page = "Cormode et al., ICDT 2012, section 4.3, Figure 3"
    quick = {"seeds": 10, "queries": 200}
    claims = CLAIMS
    series_by = ("theta",)
    shown = ("size",)

    epsilon: float = epsilon(0.1)
    m: int = whole(10**6, "size of the domain", 1000, 10**12, unit="cells")
    mean: float = number(100.0, "μ of the counts", unit="counts")
    std: float = number(20.0, "σ of the counts", unit="counts")
    wide_std: float = number(40.0, "σ of the counts in (c)", unit="counts")
    density: float = number(0.1, "ρ, the share of cells that are not empty", 0, 1, strict=True)
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
        data = GaussianSparse(m=self.m, density=self.density, mean=self.mean, std=self.std)
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
            "ab": (data, [*usual, sample(size=self.size, theta=self.both_theta)]),
            "c": (replace(data, std=self.wide_std), [*usual, *wide]),
            "d": (replace(data, density=self.low_density), [table, filtered, *sparse]),
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
        twice = f", s = 2·{power_of_ten(self.size)}"
        rows["series"] += (rows["size"] == 2 * self.size).map({True: twice, False: ""})
        by_size = rows.query_size.isin(self.small).map({True: "a", False: "b"})
        return rows.assign(panel=rows.panel.mask(rows.panel == "ab", by_size))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Absolute errors of all, and what is relative in (a) and (b)."""
        data = f"(μ = {self.mean:g}, σ = {self.std:g}, ρ = {self.density:g})"
        sparse = f"(d) ρ = {self.low_density:g}, s = {power_of_ten(self.low_size)}"
        law = ("geometric, theory", partial(expected_geometric_error, epsilon=self.epsilon))
        return [
            _panel(f"(a) small subsets {data}", "a", theory=law),
            _panel(f"(b) large subsets {data}", "b", theory=law),
            _panel(f"(c) σ = {self.wide_std:g}", "c", theory=law, printed=PAPER["c"]),
            _panel(sparse, "d", theory=law),
            _panel("(a) relative", "a", RELATIVE, printed=PAPER["a"]),
            _panel("(b) relative", "b", RELATIVE),
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The numbers that the paper prints, beside ours."""
        lines = [
            (f"{series}, 100 cells", PAPER["a"], _at_100(rows, series))
            for series in ("filter, θ = 50", "filter-priority, θ = 40", "geometric")
        ]
        overtaken = ("σ = 40: sampling beats the filter", PAPER["c"], _overtaken(rows))
        return claims.compare_with_paper(*lines, overtaken)
