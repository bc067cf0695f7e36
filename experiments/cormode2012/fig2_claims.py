"""What Cormode et al. 2012 say about Figure 2, in sections 2.1 and C.2 and in Theorems 1–4, as checks.

Words   small summary = no more cells than the data's 10⁵; most non-zero points = 95 %; small query
        = fewer than ten cells, which hold one non-empty cell at most on average; large query = 1000
        cells or more.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd

from experiments.cormode2012.laws import same_law
from experiments.cormode2012.shared import ABSOLUTE, RELATIVE
from workbench import claims
from workbench.claims import Finding, MissingPoints, Printed, format_number, mean_curve
from workbench.claims.old import Claim, all_of, check_lower, check_printed, check_similar

PAPER = {
    "a": Printed.approximately("consistently around 1 %", 0.01, 0.005),
    "b": Printed("in the range 1 % to 7 %", 0.005, 0.075),
    "c": Printed("within [0.3 %, 6 %]", 0.0025, 0.065),
}
SIGNED = "MeanSignedError"


def _filter(rows, sides: int, metric: str) -> pd.DataFrame:
    series = "filter" if sides == 2 else "one-sided filter"
    return mean_curve(rows, "theta", panel="a", metric=metric, series=series)


def _sample(rows, series: str, metric: str) -> pd.DataFrame:
    return mean_curve(rows, "target", panel="b", metric=metric, series=series)


def _both(rows, metric: str) -> pd.DataFrame:
    series = "filter-priority, R = 5,000"
    return mean_curve(rows, "theta", panel="c", metric=metric, series=series)


def relative_of_samples(rows, series: str) -> Finding:
    """The relative error of threshold or priority samples, of all sizes."""
    return check_printed(PAPER["b"], _sample(rows, series, RELATIVE), percent=True)


def relative_of_both(rows) -> Finding:
    """The relative error of filter-priority samples, at all θ."""
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


def best_filter(rows) -> Finding:
    """The relative error of the two-sided filter at its best θ."""
    two = _filter(rows, 2, RELATIVE)
    best = two[two["mean"] == two["mean"].min()]
    finding = check_printed(PAPER["a"], best, percent=True)
    return Finding(finding.holds, f"{finding.measured} at θ = {best.index[0]:g}")


def _small_summaries(rows) -> Finding:
    size = rows[(rows.panel == "a") & (rows.sides != 1)].groupby("theta").released.mean()
    small = size.index[size <= 100_000]
    two = _filter(rows, 2, ABSOLUTE).loc[small]
    finding = check_similar(two, _filter(rows, 1, ABSOLUTE).loc[small])
    return Finding(finding.holds, f"θ = {small.min():g} … {small.max():g}: {finding.measured}")


def _over_estimates(rows) -> Finding:
    one = _filter(rows, 1, SIGNED)
    held = _filter(rows, 1, "HeldCells")["mean"]
    higher = (_filter(rows, 2, SIGNED).high < one.low).mean()
    most = one[held >= 0.95]
    if most.empty:
        raise MissingPoints("at no θ are most non-zero points held")
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
    return all_of({s: relative_of_samples(rows, s) for s in ("threshold", "priority")})


def _filter_priority(rows) -> Finding:
    error = _both(rows, ABSOLUTE)
    best = error["mean"].idxmin()
    finding = check_similar(error.loc[40:40], error.loc[[best]].set_axis([40]))
    times = error["mean"][40] / error["mean"][best]
    measured = f"{times:.3g}× the least error, at θ = {best:g}"
    return all_of(
        {
            "within [0.3 %, 6 %]": relative_of_both(rows),
            "θ = 40 about optimal": replace(finding, measured=measured),
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
    weights = partial(mean_curve, rows[rows.panel == "weights"], "query_size")
    raw = weights(metric=ABSOLUTE, weights="raw")
    adjusted = weights(metric=ABSOLUTE, weights="unbiased")
    level = 1 - 0.01 / len(raw)
    bias = weights(level=level, metric=SIGNED, weights="unbiased")
    raw_bias = weights(metric=SIGNED, weights="raw")["mean"].iloc[-1]
    zero = (bias.low <= 0) & (bias.high >= 0)
    largest = f"{format_number(bias['mean'].iloc[-1])} counts at {bias.index[-1]:,.0f} cells"
    measured = f"0 inside the interval at {zero.mean():.0%} of {len(zero)} sizes; "
    measured += f"{largest}, raw weights {format_number(raw_bias)}"
    return all_of(
        {
            "raw better on points": check_lower(raw.loc[:1], adjusted.loc[:1]),
            "adjusted unbiased": Finding(bool(zero.all()), measured),
        }
    )


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
        best_filter,
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
        same_law,
    ),
)
