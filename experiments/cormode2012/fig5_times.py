"""What Cormode et al. 2012 say of throughput with dyadic ranges, in section 4.4."""

from __future__ import annotations

from dataclasses import replace

from experiments.cormode2012.shared import FACTORS, FILTER, FULL, PRIORITY, both
from experiments.cormode2012.throughput import if_timed, span
from workbench.compiled import pd
from workbench.trials.claims import Finding, Printed, check_between, exact, select

SPARSE = (0.01, 0.001)
TIMED = 21  # releases, of which the fastest decides
SUMMARIES = (FILTER, PRIORITY, *map(both, FACTORS))
NUMPY = "numpy, dyadic"
OUR_SUMS = "our sums, dyadic"
DENSE_SUMS = "dense sums, dyadic"
GAIN = Printed("about 2 to 4 times", 1.5, 4.5)


def gains(rows, base: str, **where) -> pd.Series:
    """Throughput of the summaries over that of a full table."""
    times = select(rows, panel="throughput", **where)
    own = select(times, series=SUMMARIES).set_index(["series", "density"]).value
    return own.div(select(times, series=base).set_index("density").value, level="density")


def always_faster(rows, level) -> Finding:
    """Whether every summary is, at every density, than the usual recipe."""
    finding = check_between(exact(gains(rows, NUMPY)), level, low=1 + 1e-12, words="faster")
    measured = f"{finding.measured}; than our own full table {span(gains(rows, FULL))}"
    return if_timed(replace(finding, measured=measured), rows, TIMED)


def gains_with_same_sums(rows) -> pd.Series:
    """The gain at low densities over numpy's table, if all sum the dense tree."""
    times = select(rows, metric="throughput", density=SPARSE)
    seconds = times.pivot_table("seconds", "series", "density", aggfunc="first")
    summaries = seconds[seconds.index.isin(SUMMARIES)]
    ours = summaries - seconds.loc[OUR_SUMS] + seconds.loc[DENSE_SUMS]
    return (seconds.loc[NUMPY] / ours).stack()


def about_2_to_4(rows, level) -> Finding:
    """Whether the gain at low densities is as printed where all pay for the dense tree."""
    with_sums = exact(gains_with_same_sums(rows))
    finding = check_between(with_sums, level, GAIN.low, GAIN.high, words="as printed")
    sparse = span(gains(rows, NUMPY, density=SPARSE))
    told = f"{finding.measured}; with our sparse sums {sparse}"
    return if_timed(replace(finding, measured=told), rows, TIMED)
