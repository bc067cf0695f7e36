"""Fan & Jin 2015: the words of the claims about counts by five methods (Figures 7 to 9).

`of` is "items" or "edges"; `excepted` are datasets of which the paper says the opposite.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd

from experiments.fan2015.data import undecided_on_slice
from workbench.claims import (
    ALIKE,
    Finding,
    Printed,
    decide,
    decide_all,
    format_number,
    mean_curve,
)
from workbench.claims.old import all_of

OURS = ("SRA", "HPA")
OTHERS = ("LPA", "DFT", "GS")
METHODS = (*OURS, *OTHERS)
SQUARED = "MeanSquaredCountError"
DIVERGENCE = "KLDivergence"
PRECISION = "TopPrecision"
JUDGED = "released_given_original"
REVERSED = "original_given_released"
TEN = 10
LOST = Printed("fail to preserve the 10 most popular", 0.0, 0.5)
_BUT_LPA = (*OURS, "DFT", "GS")


def interval_of(rows: pd.DataFrame, series: str, name: str, of: str, **where) -> pd.Series:
    """Mean and interval of one method on one dataset."""
    return mean_curve(rows, "panel", panel=name, series=series, of=of, **where).iloc[0]


def _methods(rows, names, dataset: str, of: str, **where) -> pd.DataFrame:
    """Means and intervals of several methods on one dataset, a row a method."""
    return pd.DataFrame({s: interval_of(rows, s, dataset, of, **where) for s in names}).T


def every_dataset(rows, check: Callable[[str], Finding], excepted: tuple = ()) -> Finding:
    """A check of each dataset; where the paper excepts one, the check must come out false."""
    parts = {}
    for name in rows.panel.unique():
        finding = check(name)
        part = name
        if name.startswith(excepted):
            part += " (excepted)"
            finding = opposite(finding)
        parts[part] = undecided_on_slice(name, finding)
    return all_of(parts)


def opposite(finding: Finding) -> Finding:
    """The finding of the opposite."""
    holds = None if finding.holds is None else not finding.holds
    return Finding(holds, finding.measured, finding.why, if_unsettled=not finding.if_unsettled)


def all_below(lower: pd.DataFrame, higher: pd.DataFrame) -> Finding:
    """Whether each of the former lies below each of the latter, intervals apart."""
    apart = lower.high.to_numpy()[:, None] < higher.low.to_numpy()
    against = lower.low.to_numpy()[:, None] > higher.high.to_numpy()
    a = lower["mean"].idxmax()
    b = higher["mean"].idxmin()
    measured = f"{a} {format_number(lower['mean'][a])}, {b} {format_number(higher['mean'][b])}"
    return Finding(decide(apart.all(), against.any()), measured)


def squared_errors(rows, of: str, excepted: tuple[str, ...]) -> Finding:
    """LPA has the highest; SRA and HPA the lowest, except where the paper says."""
    error = partial(_methods, rows, of=of, metric=SQUARED)

    def highest(name):
        return all_below(error(_BUT_LPA, name), error(["LPA"], name))

    def lowest(name):
        return all_below(error(OURS, name), error(OTHERS, name))

    return all_of(
        {
            "LPA highest": every_dataset(rows, highest),
            "SRA and HPA lowest": every_dataset(rows, lowest, excepted),
        }
    )


def gs_no_worse(rows, of: str, excepted: tuple[str, ...] = ()) -> Finding:
    """GS is no worse than DFT in squared error, except where the paper says."""

    def check(name):
        ours = interval_of(rows, "GS", name, of, metric=SQUARED)
        other = interval_of(rows, "DFT", name, of, metric=SQUARED)
        ratio = float(ours["mean"] / other["mean"])
        close = ratio <= (1.0 if name.startswith(excepted) else ALIKE)
        holds = decide(close, ours.low > other.high)
        return Finding(holds, f"GS {format_number(ratio)}× DFT", if_unsettled=True)

    return every_dataset(rows, check, excepted)


def divergences(rows, of: str) -> Finding:
    """LPA is further than the others, and SRA closer than HPA."""
    judged = partial(_methods, rows, of=of, metric=DIVERGENCE, direction=JUDGED)

    def furthest(name):
        return all_below(judged(_BUT_LPA, name), judged(["LPA"], name))

    def closer(name):
        return all_below(judged(["SRA"], name), judged(["HPA"], name))

    return all_of(
        {
            "LPA furthest": every_dataset(rows, furthest),
            "SRA closer than HPA": every_dataset(rows, closer),
        }
    )


def top_ten_checks(rows, of: str, excepted: tuple[str, ...] = ()) -> dict[str, Finding]:
    """LPA, DFT and GS lose the ten; SRA and HPA keep them; HPA finds more than SRA."""
    precision = partial(_methods, rows, of=of, metric=PRECISION, top=TEN)
    half = LOST.high

    def lose(name):
        shares = precision(OTHERS, name)
        holds = decide((shares.high < half).all(), (shares.low >= half).any())
        return Finding(holds, _percents(shares), if_unsettled=bool(shares["mean"].max() < half))

    def keep(name):
        shares = precision(OURS, name)
        more = all_below(precision(OTHERS, name), shares).holds
        at_least = decide((shares.low >= half).all(), (shares.high < half).any())
        leans = bool(more and shares["mean"].min() >= half)
        return Finding(decide_all([more, at_least]), _percents(shares), if_unsettled=leans)

    def ahead(name):
        first, second = ("HPA", "SRA") if name.startswith(excepted) else ("SRA", "HPA")
        return all_below(precision([first], name), precision([second], name))

    hpa_ahead = "HPA ahead of SRA, but on MovieLens" if excepted else "HPA ahead of SRA"
    return {
        "LPA, DFT, GS lose the ten": every_dataset(rows, lose),
        "SRA and HPA keep them": every_dataset(rows, keep),
        hpa_ahead: every_dataset(rows, ahead),
    }


def _percents(shares: pd.DataFrame) -> str:
    return ", ".join(f"{series} {mean:.0%}" for series, mean in shares["mean"].items())
