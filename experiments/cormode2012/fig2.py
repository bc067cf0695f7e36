"""Cormode et al. 2012, Figure 2: what its parameter does to each summary.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.2 and Figure 2 (a)–(c); beside
        it what sections 2.1 and C.2 say in words, and Theorems 1–3 as tests of equal laws.
Read    from the text; the plots are not in our copy. Printed numbers may be off by half of their
        last digit.
Open    (a) The range of θ is not printed: 5…70, which is printed for (c).
        (b) The sizes are not printed: 10⁵…6·10⁵, those that (a) spans. Threshold sampling gets the
        τ whose expected size is the target, from the m, n and μ of the generator, which are public
        here (C.2 does the same with ‖M‖₁).
        (c) The range size is not printed: 5000 as in (a) and (b), which is judged, and 500 and
        50,000 beside it.
        The number of queries is not printed: 200 a size (quick), 1000 (paper), and ten times as
        many for 2.1 and C.2, since few single cells of a sparse table hold a count.
Words   small summary = no more cells than the data's 10⁵; most non-zero points = 95 %; small query
        = fewer than ten cells, which hold one non-empty cell at most on average; large query = 1000
        cells or more.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq

from experiments.cormode2012.shared import ABSOLUTE, RELATIVE, expected_geometric_error
from workbench import DP, Dyadic, Haar, RandomRanges, RandomSubsets, Sweep, Trial, claims, run
from workbench.claims import (
    Claim,
    Finding,
    Printed,
    all_of,
    check_lower,
    check_printed,
    check_similar,
    format_number,
    mean_curve,
)
from workbench.datasets import GaussianSparse
from workbench.mechanisms import (
    GeometricHistogram,
    HighPassFilter,
    Laborious,
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
from workbench.plots import Panel, name_series
from workbench.transform import basis_of

TITLE = "What its parameter does to each summary"
PAGE = "Cormode et al., ICDT 2012, section 4.2, Figure 2; sections 2.1, C.2; Theorems 1–4"
SEEDS = {"quick": 5, "paper": 50}
QUERIES = {"quick": 200, "paper": 1000}
RUNS = {"quick": 150, "paper": 2000}  # of either way, for the tests of Theorems 1–4

BUDGET = DP(0.1)
DATA = GaussianSparse()
N = round(DATA.density * DATA.m)
R = 5000
THETAS = range(5, 71, 5)
SIZES = range(100_000, 600_001, 100_000)
AROUND = (R, 500, 50_000)  # range sizes of (c)
SUBSETS = (1, 2, 5, 10, 100, 1000, 10_000, 100_000)

SMALL = GaussianSparse(m=2000)
NODE_SUMMARIES = (
    partial(HighPassFilter, BUDGET, theta=200),
    partial(ThresholdSampling, BUDGET, tau=600, theta=150),
    partial(PrioritySampling, BUDGET, size=200, theta=150),
)
LAWS = (
    HighPassFilter(BUDGET, theta=20),
    HighPassFilter(BUDGET, theta=20, sides=1),
    ThresholdSampling(BUDGET, tau=60),
    ThresholdSampling(BUDGET, tau=60, theta=15),
    PrioritySampling(BUDGET, size=200),
    PrioritySampling(BUDGET, size=200, theta=15),
    *(summary(transform=Dyadic()) for summary in NODE_SUMMARIES),
    *(summary(transform=Haar()) for summary in NODE_SUMMARIES),
)

PAPER = {
    "a": Printed.approximately("consistently around 1 %", 0.01, 0.005),
    "b": Printed("in the range 1 % to 7 %", 0.005, 0.075),
    "c": Printed("within [0.3 %, 6 %]", 0.0025, 0.065),
}


SIGNED = "MeanSignedError"


def _panel(title: str, panel: str, metric: str, x: str, **how) -> Panel:
    return Panel(title, {"panel": panel, "metric": metric}, x, **how)


THEORY = ("geometric, theory", partial(expected_geometric_error, epsilon=BUDGET.epsilon))
NEGATIVES = "§2.1: are negatives kept?"
PANELS = (
    _panel("(a) filters", "a", ABSOLUTE, "released", at="theta"),
    _panel("(b) sampling", "b", ABSOLUTE, "released", at="target"),
    _panel("(c) filter-priority", "c", ABSOLUTE, "theta", log="y"),
    _panel("(a) relative", "a", RELATIVE, "released", at="theta", printed=PAPER["a"]),
    _panel("(b) relative", "b", RELATIVE, "released", at="target", printed=PAPER["b"]),
    _panel("(c) relative", "c", RELATIVE, "theta", log="y", printed=PAPER["c"]),
    _panel("over- or under-estimate", "a", SIGNED, "theta", log=""),
    _panel(NEGATIVES, "sides", ABSOLUTE, "query_size", theory=THEORY),
    _panel("C.2: raw or adjusted weights?", "weights", ABSOLUTE, "query_size"),
)


def rows(profile: str, store) -> pd.DataFrame:
    """All panels, in a column `panel`; `target` is the size that a sample was meant to have."""
    panels = [
        run(Sweep([DATA], mechanisms, metrics, SEEDS[profile]), store).assign(panel=panel)
        for panel, (mechanisms, metrics) in sweeps(QUERIES[profile]).items()
    ]
    frame = pd.concat([*panels, law_tests(RUNS[profile])], ignore_index=True)
    frame = name_series(frame, shown=["theta", "tau", "size"])
    size_of = {tau_for_size(size): size for size in SIZES}
    frame["target"] = frame["size"].fillna(frame.tau.map(size_of))
    ranges = frame.query_size.map("filter-priority, R = {:,.0f}".format)
    weights = "priority, " + frame.weights.map({"raw": "raw", "unbiased": "adjusted"})
    frame["series"] = frame.series.mask(frame.panel == "c", ranges)
    frame["series"] = frame.series.mask(frame.panel == "weights", weights)
    return frame


def sweeps(count: int) -> dict[str, tuple[list, list]]:
    """Mechanisms and metrics of each panel, with so many queries of each size."""
    ranges = [RandomRanges(size, count) for size in AROUND]
    error = [MeanAbsoluteError(workload) for workload in ranges]
    relative = [MedianRelativeError(workload) for workload in ranges]
    subsets = [RandomSubsets(size, 10 * count) for size in SUBSETS]
    samples = [PrioritySampling(BUDGET, size=size) for size in SIZES]
    samples += [ThresholdSampling(BUDGET, tau=tau_for_size(size)) for size in SIZES]
    samples += [UniformSampling(BUDGET, size=size) for size in SIZES[::2]]
    weighted = [
        metric(workload, weights)
        for metric in (MeanAbsoluteError, MeanSignedError)
        for workload in subsets
        for weights in ("unbiased", "raw")
    ]
    return {
        "a": (
            [HighPassFilter(BUDGET, theta=t, sides=s) for s in (2, 1) for t in THETAS],
            [error[0], relative[0], MeanSignedError(ranges[0]), HeldCells()],
        ),
        "b": (samples, [error[0], relative[0]]),
        "c": ([PrioritySampling(BUDGET, size=N, theta=t) for t in THETAS], error + relative),
        "sides": (
            [GeometricHistogram(BUDGET), HighPassFilter(BUDGET, theta=1, sides=1)],
            [MeanAbsoluteError(workload) for workload in subsets],
        ),
        "weights": ([PrioritySampling(BUDGET, size=N)], weighted),
    }


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """The relative errors that the paper prints, beside ours."""
    return claims.compare_with_paper(
        ("two-sided filter, at its best", PAPER["a"], _best_filter(rows)),
        ("threshold sampling", PAPER["b"], _relative_of_samples(rows, "threshold")),
        ("priority sampling", PAPER["b"], _relative_of_samples(rows, "priority")),
        ("filter-priority, R = 5000", PAPER["c"], _relative_of_both(rows)),
    )


def tau_for_size(size: int) -> float:
    """The τ at which a threshold sample of DATA is expected to hold `size` cells.

    (m − n)·p_τ + n·min(μ/τ, 1) = size; a non-empty cell is taken to hold its mean μ.
    """

    def excess(tau: float) -> float:
        p = ThresholdSampling(BUDGET, tau=tau).survival(BUDGET.epsilon)
        return (DATA.m - N) * p + N * min(DATA.mean / tau, 1) - size

    return round(brentq(excess, 1, 10_000), 1)


def law_tests(runs: int) -> pd.DataFrame:
    """Two-sample tests of each shortcut against its laborious process: a p-value a statistic.

    Kolmogorov–Smirnov for the size, τ_s, and the noisy values at empty and at non-empty cells (on
    discrete values it errs on the safe side); χ² for how often ten stretches of the keys are
    released, empty and non-empty cells apart. Over a transform, nodes take the place of cells.
    """
    table = SMALL.load()
    tests = []
    for mechanism in LAWS:
        shortcut = _statistics(SMALL, mechanism, range(runs), table)
        laborious = _statistics(SMALL, Laborious(mechanism), range(runs), table)
        for name, values in shortcut.items():
            others = laborious[name]
            if name == "positions":
                p = stats.chi2_contingency([values, others]).pvalue
            elif len(np.unique(np.concatenate([values, others]))) == 1:
                continue  # a priority sample has the size it is told, a filter has no τ
            else:
                p = stats.ks_2samp(values, others, method="asymp").pvalue
            tests.append({"mechanism": repr(mechanism), "statistic": name, "value": p})
    columns = dict(panel="laws", metric="p-value", dataset=repr(SMALL), truth_public=True)
    return pd.DataFrame(tests).assign(**columns)


def _statistics(dataset, mechanism, seeds, table) -> dict[str, np.ndarray]:
    estimates = [Trial(dataset, mechanism, seed).release(table).estimate for seed in seeds]
    keys = np.concatenate([estimate.keys for estimate in estimates])
    values = np.concatenate([estimate.values for estimate in estimates])
    cells = basis_of(getattr(mechanism, "mechanism", mechanism).transform, table.domain)
    nonempty = np.isin(keys, cells.forward(table.keys, table.counts)[0])
    stretch = keys * 10 // sum(part.size for part in cells.noise_blocks)
    return {
        "size": np.array([len(estimate) for estimate in estimates]),
        "τ": np.array([estimate.tau for estimate in estimates]),
        "values, empty cells": values[~nonempty],
        "values, non-empty cells": values[nonempty],
        "positions": np.bincount(stretch + 10 * nonempty, minlength=20),
    }


def _filter(rows, sides: int, metric: str) -> pd.DataFrame:
    series = "filter" if sides == 2 else "one-sided filter"
    return mean_curve(rows, "theta", panel="a", metric=metric, series=series)


def _sample(rows, series: str, metric: str) -> pd.DataFrame:
    return mean_curve(rows, "target", panel="b", metric=metric, series=series)


def _both(rows, metric: str) -> pd.DataFrame:
    return mean_curve(rows, "theta", panel="c", metric=metric, query_size=R)


def _relative_of_samples(rows, series: str) -> Finding:
    return check_printed(PAPER["b"], _sample(rows, series, RELATIVE), percent=True)


def _relative_of_both(rows) -> Finding:
    return check_printed(PAPER["c"], _both(rows, RELATIVE), percent=True)


def _two_sided_wins(rows) -> Finding:
    two = _filter(rows, 2, ABSOLUTE)
    one = _filter(rows, 1, ABSOLUTE)
    means = pd.concat([two, one])["mean"]
    spread = means.max() / means.min()
    varies = Finding(bool(spread >= claims.ORDERS), f"{spread:.3g}×")
    return all_of(
        {
            "two-sided more accurate": check_lower(two, one),
            "varies by orders of magnitude": varies,
        }
    )


def _best_filter(rows) -> Finding:
    two = _filter(rows, 2, RELATIVE)
    best = two[two["mean"] == two["mean"].min()]
    finding = check_printed(PAPER["a"], best, percent=True)
    return Finding(finding.holds, f"{finding.measured} at θ = {best.index[0]:g}")


def _small_summaries(rows) -> Finding:
    size = rows[(rows.panel == "a") & (rows.sides != 1)].groupby("theta").released.mean()
    small = size.index[size <= N]
    finding = check_similar(
        _filter(rows, 2, ABSOLUTE).loc[small], _filter(rows, 1, ABSOLUTE).loc[small]
    )
    return Finding(finding.holds, f"θ = {small.min():g} … {small.max():g}: {finding.measured}")


def _over_estimates(rows) -> Finding:
    one = _filter(rows, 1, SIGNED)
    held = _filter(rows, 1, "HeldCells")["mean"]
    higher = (_filter(rows, 2, SIGNED).high < one.low).mean()
    most = one[held >= 0.95]
    over = (most.low > 0).mean()
    measured = f"at {over:.0%} of θ = {most.index.min():g} … {most.index.max():g}; "
    measured += f"{format_number(one['mean'].max())} … {format_number(one['mean'].min())} counts over all θ"
    above_truth = "above the truth where most non-zero points are held"
    return all_of(
        {
            "higher than two-sided": Finding(bool(higher >= 0.75), f"at {higher:.0%} of θ"),
            above_truth: Finding(bool(over >= 0.75), measured),
        }
    )


def _samples_alike(rows) -> Finding:
    return check_similar(
        _sample(rows, "threshold", ABSOLUTE), _sample(rows, "priority", ABSOLUTE)
    )


def _samples_between(rows) -> Finding:
    return all_of({s: _relative_of_samples(rows, s) for s in ("threshold", "priority")})


def _filter_priority(rows) -> Finding:
    error = _both(rows, ABSOLUTE)
    best = error["mean"].idxmin()
    at_best = error.loc[[best]].set_axis([40])
    times = error["mean"][40] / error["mean"][best]
    measured = f"{times:.3g}× the least error, at θ = {best:g}"
    return all_of(
        {
            "within [0.3 %, 6 %]": _relative_of_both(rows),
            "θ = 40 about optimal": replace(
                check_similar(error.loc[[40]], at_best), measured=measured
            ),
        }
    )


def _negatives(rows) -> Finding:
    rounded = mean_curve(rows, "query_size", panel="sides", series="one-sided filter")
    negative = mean_curve(rows, "query_size", panel="sides", series="geometric")
    return all_of(
        {
            "rounding better below 10 cells": check_lower(rounded.loc[:9], negative),
            "keeping better from 1000 cells": check_lower(negative.loc[1000:], rounded),
        }
    )


def _weights(rows) -> Finding:
    level = 1 - 0.01 / len(SUBSETS)
    weights = partial(mean_curve, rows, "query_size", panel="weights")
    raw = weights(metric=ABSOLUTE, weights="raw")
    adjusted = weights(metric=ABSOLUTE, weights="unbiased")
    bias = weights(level=level, metric=SIGNED, weights="unbiased")
    raw_bias = weights(level=level, metric=SIGNED, weights="raw")["mean"].iloc[-1]
    zero = (bias.low <= 0) & (bias.high >= 0)
    measured = f"0 inside the interval at {zero.mean():.0%} of {len(zero)} sizes; "
    measured += (
        f"{format_number(bias['mean'].iloc[-1])} counts at {bias.index[-1]:,.0f} cells, "
    )
    measured += f"raw weights {format_number(raw_bias)}"
    return all_of(
        {
            "raw better on points": check_lower(raw.loc[:1], adjusted.loc[:1]),
            "adjusted unbiased": Finding(bool(zero.all()), measured),
        }
    )


def _same_law(rows) -> Finding:
    tests = rows[rows.panel == "laws"]
    least = tests.loc[tests.value.idxmin()]
    level = 0.01 / len(tests)
    measured = f"least p of {len(tests)} tests {least.value:.2g}, at level {level:.1g} each "
    measured += f"({least.statistic}, {least.mechanism})"
    return Finding(bool(least.value > level), measured)


CLAIMS = (
    Claim(
        "c-2a-1",
        "Over θ, two-sided filtering is more accurate than one-sided, and accuracy varies by "
        "orders of magnitude.",
        _two_sided_wins,
        "Up to θ = 50 it is; beyond, both filters lose true cells, and the empty cells that pass the "
        "one-sided one happen to make up for them.",
    ),
    Claim(
        "c-2a-2",
        "At its best the two-sided filter's relative error is about 1 %.",
        _best_filter,
    ),
    Claim(
        "c-2a-3",
        "For small summaries the two filters agree.",
        _small_summaries,
        "At θ = 60 true cells make up 98 % of the summary, and yet the other 2 % decide how much of "
        "the loss is made up for; at 65 and 70 the filters do agree.",
    ),
    Claim("c-2a-4", "One-sided filtering over-estimates.", _over_estimates),
    Claim(
        "c-2b-1", "Threshold and priority sampling behave alike at equal size.", _samples_alike
    ),
    Claim(
        "c-2b-2",
        "Their relative error lies between 1 % and 7 % over the sizes shown.",
        _samples_between,
    ),
    Claim(
        "c-2c-1",
        "Filter-priority's relative errors lie within [0.3 %, 6 %]; θ = 40 is about optimal.",
        _filter_priority,
    ),
    Claim(
        "c-21",
        "Rounding negatives to zero is more accurate for small queries, keeping them for large ones.",
        _negatives,
    ),
    Claim(
        "c-c2",
        "Raw weights beat adjusted ones on point queries; adjusted weights are unbiased on subsets.",
        _weights,
    ),
    Claim(
        "c-th",
        "Shortcut and laborious summaries have the same distribution (Theorems 1–4, "
        "over dyadic and Haar inputs too).",
        _same_law,
    ),
)
