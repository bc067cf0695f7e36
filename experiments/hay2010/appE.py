"""Hay et al. 2010, Appendix E: a noisy tree against Blum et al.'s equi-depth histogram.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: section 6 and Appendix E; the other method is that of
        Blum, Ligett & Roth, STOC 2008, whose binary search this paper only names.
Read    from the text, which has lost its formulas; there is no figure. What it determines, and what
        not, is written down in tests/reference/equi_depth.py, whose procedure this is.
Open    The ends of buckets are found by binary search on noisy counts from the last end, each of
        b buckets with ⌈log₂n⌉ comparisons, so that every one has noise of scale b·⌈log₂n⌉/α. The
        number of records N is public, depth = N/b, and what is left after b searches is one more
        bucket. A bucket stands for `depth` records spread evenly. What its last cell has too much
        adds up over the buckets; "quantiles" searches from the first cell for multiples of `depth`
        instead, which is kinder to the method, and is judged too. b is not printed: at each N, out of
        4 to 128, the one with the least error, read off the truth, which also favours it.
        N records in two waves over the cells. Not in the paper: H̄ (not zeroed).
Words   useful = with probability 0.9 every one of the ranges is within accuracy·N; needs a
        smaller database = at accuracies 0.03, 0.01, 0.003, and 0.001, where N is the least at which
        the 0.9 quantile of samples is within, between points on log axes; does not grow = the mean
        worst error at N = 10⁸ is within 1.25× of that at 10⁴, where equi-depth's grows, at least 3×.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pandas as pd

from experiments.hay2010.data import NOISY_TREE, TREE_NOT_ZEROED, Waves
from experiments.hay2010.equi_depth import EQUI_DEPTH, QUANTILES, EquiDepth, WorstError
from workbench import DP, Sweep
from workbench.claims import ALIKE, MUCH, Finding, Printed, format_number, mean_curve
from workbench.claims.old import Claim, all_of
from workbench.figures import UNPRINTED, Figure
from workbench.figures.parameters import epsilon, number, seeds, whole, wholes
from workbench.mechanisms import HierarchicalHistogram
from workbench.plots import Panel
from workbench.value import value

DELTA = 0.1
ACCURACIES = (0.03, 0.01, 0.003, 0.001)
OTHERS = (EQUI_DEPTH, QUANTILES)
PAPER = {"flat": Printed("the error does not grow with N", 1 / ALIKE, ALIKE)}


def least_records(
    rows: pd.DataFrame, series: str, accuracy: float, delta: float = DELTA
) -> float:
    """The least N at which `accuracy` is met with probability 1 − δ; NaN if at none."""
    useful = rows[(rows.panel == "useful") & (rows.series == series)]
    shares = useful.groupby("records").value.quantile(1 - delta)
    x = np.log(shares.index.to_numpy(float))
    y = np.log(shares.to_numpy())
    over = np.flatnonzero(y > log(accuracy))
    if not len(over):
        return float(np.exp(x[0]))
    if over[-1] == len(y) - 1:
        return float("nan")
    pair = slice(over[-1], over[-1] + 2)
    return float(np.exp(np.interp(-log(accuracy), -y[pair], x[pair])))


def records_text(rows: pd.DataFrame, records: float) -> str:
    """A number of records, or that it is beyond those that were tried."""
    if np.isnan(records):
        return f"more than {format_number(rows.records.max())}"
    least = rows.records.min()
    return format_number(records) if records > least else f"at most {format_number(least)}"


def _growth(rows, series: str) -> float:
    """The mean worst error at the largest N, over that at the least."""
    error = mean_curve(rows, "records", panel="worst", series=series)["mean"]
    return error.iloc[-1] / error.iloc[0]


def _smaller(rows) -> Finding:
    parts = {}
    for series in OTHERS:
        for accuracy in ACCURACIES:
            parts[f"{series}, accuracy {accuracy:g}"] = _needs_fewer(rows, series, accuracy)
        growth = _growth(rows, series)
        slope = np.log(growth) / np.log(rows.records.max() / rows.records.min())
        measured = f"{format_number(growth)}×, as N to the {slope:.2g}"
        parts[f"{series} grows with N"] = Finding(bool(growth >= MUCH), measured)
    growth = _growth(rows, NOISY_TREE)
    flat = Finding(PAPER["flat"].covers(growth), f"{growth:.3g}×")
    return all_of(parts | {"H̃ does not grow with N": flat})


def _needs_fewer(rows, series: str, accuracy: float) -> Finding:
    """Whether H̃ needs fewer records than a series does, if any number is enough for that."""
    ours = least_records(rows, NOISY_TREE, accuracy)
    other = least_records(rows, series, accuracy)
    measured = f"{records_text(rows, ours)} against {records_text(rows, other)}"
    if np.isnan(other):
        return Finding(not np.isnan(ours), measured)
    return Finding(bool(ours < other), f"{measured}, {format_number(other / ours)}×")


CLAIMS = (
    Claim(
        "h-e",
        "H̃ needs a smaller database than the equi-depth histogram of Blum et al. for the same "
        "usefulness, and its error does not grow with N.",
        _smaller,
    ),
)


@value
class AppE(Figure):
    """The worst error of all ranges over the number of records, and as a part of it."""

    title = "A noisy tree against an equi-depth histogram, over the size of the database"
    page = "Hay et al., PVLDB 2010, section 6 and Appendix E"
    quick = {"seeds": 5}
    claims = CLAIMS

    epsilon: float = epsilon(1.0, "privacy parameter α")
    delta: float = number(DELTA, "chance that a range may miss the accuracy", 1e-9, 0.999)
    cells: int = whole(1024, "n", 2, 8192, unit="cells")
    records: tuple[int, ...] = wholes(tuple(10**i for i in range(4, 9)), "N", 1, 10**15)
    buckets: tuple[int, ...] = wholes(
        (4, 8, 16, 32, 64, 128), "b, of which the best is taken at each N", kind=UNPRINTED
    )
    seeds: int = seeds(40)

    def sweeps(self) -> dict[str, Sweep]:
        """One."""
        budget = DP(self.epsilon)
        trees = [
            HierarchicalHistogram(budget, consistent=False),
            HierarchicalHistogram(budget, nonnegative=False),
        ]
        others = [EquiDepth(budget, b, kind) for b in self.buckets for kind in (False, True)]
        tables = [Waves(self.cells, n) for n in self.records]
        return {"worst": Sweep(tables, [*trees, *others], [WorstError()], self.seeds)}

    def rows(self, store) -> pd.DataFrame:
        """Equi-depth also at each other b, in a panel that is not drawn."""
        rows = super().rows(store)
        trees = rows.consistent.map({False: NOISY_TREE, True: TREE_NOT_ZEROED})
        records = {repr(Waves(self.cells, n)): n for n in self.records}
        rows = rows.assign(
            series=trees.fillna(rows.mechanism_name),
            records=rows.dataset.map(records),
            buckets=rows.buckets.fillna(0).astype(int),
        )
        means = rows.groupby(["records", "series", "buckets"]).value.transform("mean")
        least = means.groupby([rows.records, rows.series]).transform("min")
        rows["panel"] = rows.panel.where(means == least, "other b")
        best = rows[rows.panel == "worst"]
        shares = best.assign(
            metric="Usefulness", panel="useful", value=best.value / best.records
        )
        return pd.concat([rows, shares], ignore_index=True)

    def bound(self, records):
        """What H̃'s worst error exceeds with probability at most δ, at any N: a union over all ranges.

        2ℓ Laplace(ℓ/α) each (ν²= max(terms, log)·b², exceeded by ν·√(8·log) with the log below).
        """
        levels = (self.cells - 1).bit_length() + 1
        terms = log(2 / (self.delta / (self.cells * (self.cells + 1) / 2)))
        spread = levels / self.epsilon * sqrt(max(2 * levels, terms))
        return spread * sqrt(8 * terms) + 0 * records

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Errors with the bound, and as a part of N."""
        title = f"n = {self.cells}, α = {self.epsilon:g}"
        theory = (f"H̃, bound (δ = {self.delta:g})", self.bound)
        return [
            Panel(title, {"panel": "worst"}, "records", theory=theory),
            Panel("as a part of N", {"panel": "useful"}, "records"),
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The N that each accuracy needs, a column a method."""
        lines = []
        for accuracy in ACCURACIES:
            line = {"accuracy": accuracy}
            for series in (NOISY_TREE, TREE_NOT_ZEROED, *OTHERS):
                least = least_records(rows, series, accuracy, self.delta)
                line[series] = records_text(rows, least)
            lines.append(line)
        return pd.DataFrame(lines).set_index("accuracy")

    def best_buckets(self, rows: pd.DataFrame) -> pd.DataFrame:
        """How many buckets equi-depth had at each N."""
        best = rows[(rows.panel == "worst") & rows.series.isin(OTHERS)]
        return best.groupby(["series", "records"]).buckets.first().unstack()
