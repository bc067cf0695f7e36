"""Fan & Jin 2015, Figure 9: how many of the K most popular items are found, K = 1 … 1000.

Paper   Fan & Jin, WWW 2015: section 6.3 and Figure 9.
Read    from the text; of the plots our copy has the axes only.
Open    as in Figure 7, with which it shares its runs. K = 1, 2, 3, 5, 10, … 1000. Ties at the K-th
        place count by what a random order would give.
Words   on every dataset. 100 % at K = 1 = 95 % at least and 0 % = 5 % at most (20 runs, one item);
        falling = lower at 1000 than at 1, intervals apart, and no step clearly up (1.25×, intervals
        apart); rising = the same the other way round; slower = less is lost from K = 1 to 1000,
        intervals apart; ahead up to 100 = SRA and HPA each above LPA, DFT and GS, intervals apart, at
        three quarters of the K up to 100; good = half at least, at K = 1000.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from experiments.fan2015._five_methods import TOPS, FiveMethods, count_metrics, drawn_rows
from experiments.fan2015.count_claims import OTHERS, OURS, PRECISION, TEN, every_dataset
from workbench import plots
from workbench.claims import (
    Finding,
    Printed,
    confidence_intervals,
    decide,
    decide_printed,
    mean_curve,
)
from workbench.claims.old import Claim, all_of, check_decreasing, check_lower
from workbench.figures.parameters import wholes
from workbench.plots import Panel
from workbench.value import value

AHEAD = 100
LAST = TOPS[-1]
PAPER = {
    "first": Printed("HPA is 100 % when K = 1", 0.95, 1.0, at=1),
    "none": Printed("LPA, DFT, and GS show 0 % when K = 1", 0.0, 0.05, at=1),
    "good": Printed("good precision for large K, e.g. K >= 1000", 0.5, 1.0, at=LAST),
}


def _precision(rows, series: str, name: str) -> pd.DataFrame:
    return mean_curve(rows, "top", panel=name, series=series)


def _each(rows, methods, check: Callable[[pd.DataFrame], Finding]) -> Finding:
    """A check of each method's precision on each dataset, told a dataset at a time."""

    def together(name):
        return _together({series: check(_precision(rows, series, name)) for series in methods})

    return every_dataset(rows, together)


def _together(findings: dict[str, Finding]) -> Finding:
    whole = all_of(findings)
    measured = ", ".join(f"{series} {one.measured}" for series, one in findings.items())
    return Finding(whole.holds, measured, if_unsettled=whole.if_unsettled)


def _as_printed(printed: Printed, precision: pd.DataFrame) -> Finding:
    """Whether a mean lies where the paper's number says."""
    at = precision.loc[printed.at]
    return Finding(decide_printed(printed, at), f"{at['mean']:.0%}")


def _falling(precision: pd.DataFrame) -> Finding:
    finding = check_decreasing(precision)
    steps_up = finding.measured.rpartition(", ")[2]
    return Finding(
        finding.holds, f"{_ends(precision)}, {steps_up}", if_unsettled=finding.if_unsettled
    )


def _rising(precision: pd.DataFrame) -> Finding:
    finding = check_decreasing(precision.iloc[::-1])
    return Finding(finding.holds, _ends(precision), if_unsettled=finding.if_unsettled)


def _ends(precision: pd.DataFrame) -> str:
    return f"{precision['mean'].iloc[0]:.0%} → {precision['mean'].iloc[-1]:.0%}"


def _good(precision: pd.DataFrame) -> Finding:
    at = precision.loc[LAST]
    least = PAPER["good"].low
    holds = decide(at.low >= least, at.high < least)
    return Finding(holds, f"{at['mean']:.0%}", if_unsettled=bool(at["mean"] >= least))


def _slower(rows, name: str) -> Finding:
    """SRA loses less than HPA from the first K to the last."""
    lost = {}
    for series in OURS:
        chosen = rows[(rows.panel == name) & (rows.series == series)]
        by_top = chosen.pivot(index="seed", columns="top", values="value")
        points = (by_top[TOPS[0]] - by_top[LAST]).rename("value").reset_index()
        lost[series] = confidence_intervals(points.assign(point=0), "point")
    finding = check_lower(lost["SRA"], lost["HPA"])
    means = (f"{s} {100 * loss['mean'].iloc[0]:.0f}" for s, loss in lost.items())
    return Finding(finding.holds, ", ".join(means) + " points lost")


def _ahead(rows, name: str) -> Finding:
    """Whether SRA and HPA are each above all others at three quarters of the K up to 100."""
    shares = {}
    for series in OURS:
        ours = _precision(rows, series, name).loc[:AHEAD]
        apart = np.ones(len(ours), bool)
        against = np.zeros(len(ours), bool)
        for other in OTHERS:
            theirs = _precision(rows, other, name).loc[:AHEAD]
            apart &= (theirs.high < ours.low).to_numpy()
            against |= (theirs.low > ours.high).to_numpy()
        holds = decide(apart.mean() >= 0.75, against.mean() > 0.25)
        shares[series] = Finding(holds, f"at {apart.sum()} of {len(ours)} K")
    return _together(shares)


def _discovery(rows) -> Finding:
    return all_of(
        {
            "HPA 100 % at K = 1": _each(rows, ("HPA",), partial(_as_printed, PAPER["first"])),
            "falling": _each(rows, OURS, _falling),
            "SRA falls slower": every_dataset(rows, partial(_slower, rows)),
            "the others 0 % at K = 1": _each(rows, OTHERS, partial(_as_printed, PAPER["none"])),
            "rising": _each(rows, OTHERS, _rising),
            "SRA and HPA ahead up to K = 100": every_dataset(rows, partial(_ahead, rows)),
            "the others good at K = 1000": _each(rows, OTHERS, _good),
        }
    )


CLAIMS = (
    Claim(
        "f-9",
        "HPA finds 100 % at K = 1 and less as K grows, SRA falls slower; LPA, DFT and GS find 0 % at "
        "K = 1 and more as K grows; SRA and HPA are ahead up to K = 100, and the others good at 1000.",
        _discovery,
        "LPA, DFT and GS do start at 0 % and rise, and SRA and HPA are ahead up to 100 on all six. But "
        "HPA is sure of the first item only where that is far ahead, on three twins; where it is not, "
        "curves rise before they fall; and at K = 1000 of thousands of items the others are at 3–40 %, "
        "GS on Netflix' twin (96 %) excepted.",
    ),
)


@value
class Fig9(FiveMethods):
    """Precision over K, a panel a dataset."""

    title = "Finding the K most popular items"
    page = "Fan & Jin, WWW 2015, section 6.3, Figure 9"
    claims = CLAIMS
    columns = 3

    tops: tuple[int, ...] = wholes(TOPS, "K", unit="items")

    def metrics(self) -> list[Any]:
        """With the precision of every K."""
        return count_metrics(self.tops, TEN)

    def rows(self, store) -> pd.DataFrame:
        """The precision of the K highest item counts, for every K."""
        rows = super().rows(store)
        chosen = (rows.metric == PRECISION) & (rows.of == "items")
        return rows[chosen].astype({"top": int}).reset_index(drop=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """A panel a dataset."""
        return [Panel(name, {"panel": name}, "top", log="x") for name in rows.panel.unique()]

    def plot(self, rows: pd.DataFrame):
        """The five methods."""
        return plots.grid(drawn_rows(rows), self.panels(rows), columns=self.columns)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Means at four K: a row a dataset and method, those that are not the paper's included."""
        chosen = rows[rows.top.isin((1, 10, AHEAD, LAST))]
        means = chosen.pivot_table("value", ["panel", "series"], "top", "mean", sort=False)
        table = means[sorted(means)].map("{:.0%}".format)
        return table.rename_axis(["dataset", "method"]).rename_axis("K", axis=1)
