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
        n = 1024 cells, α = 1, N records in two waves over the cells, N = 10⁴ to 10⁸. Noise is drawn
        exactly, by simulation; nothing is released.
        Not in the paper: H̄ (not zeroed) of the same tree.
Words   useful = with probability 0.9 every one of the 524,800 ranges is within accuracy·N; needs a
        smaller database = at accuracies 0.03, 0.01, 0.003, and 0.001, where N is the least at which
        the 0.9 quantile of samples is within, between points on log axes; does not grow = the mean
        worst error at N = 10⁸ is within 1.25× of that at 10⁴, where equi-depth's grows, at least 3×.
"""

from __future__ import annotations

from math import ceil, log, log2, sqrt

import numpy as np
import pandas as pd

from workbench import DP, Bound, Domain, Ranges, SparseTable, noise
from workbench.claims import (
    ALIKE,
    MUCH,
    Claim,
    Finding,
    Printed,
    all_of,
    format_number,
    mean_curve,
)
from workbench.inference import tree_least_squares
from workbench.mechanisms import HierarchicalHistogram
from workbench.plots import Panel

TITLE = "A noisy tree against an equi-depth histogram, over the size of the database"
PAGE = "Hay et al., PVLDB 2010, section 6 and Appendix E"
COLUMNS = 2
SEEDS = {"quick": 5, "paper": 40}
CELLS = 1024
BUDGET = DP(1.0)
DELTA = 0.1
RECORDS = tuple(10**i for i in range(4, 9))
BUCKETS = (4, 8, 16, 32, 64, 128)
ACCURACIES = (0.03, 0.01, 0.003, 0.001)
TREE = "H̃"
NEAREST = "H̄ not zeroed"
EQUI_DEPTH = "equi-depth"
QUANTILES = "equi-depth, quantiles"
OTHERS = (EQUI_DEPTH, QUANTILES)

PAPER = {
    "flat": Printed("the error does not grow with N", 1 / ALIKE, ALIKE),
    "smaller": Printed("a smaller database", 1, np.inf),
}


def wave_table(records: int) -> SparseTable:
    """About so many records in two waves over the cells; public."""
    x = np.arange(CELLS) / CELLS
    shape = 2.2 + np.sin(2 * np.pi * 2 * x) + np.sin(2 * np.pi * 13 * x)
    ends = np.rint(records * np.cumsum(shape) / shape.sum()).astype(np.int64)
    counts = np.diff(ends, prepend=0)
    return SparseTable.from_dense(Domain(("x",), (CELLS,)), counts, Bound(1), truth_public=True)


def equi_depth(
    table: SparseTable, buckets: int, rng: np.random.Generator, quantiles: bool = False
) -> np.ndarray:
    """The estimated counts of all cells: each bucket's depth, spread over its cells."""
    n = table.domain.size
    depth = table.total / buckets
    epsilon = BUDGET.epsilon / (buckets * ceil(log2(n)))
    below = np.concatenate([[0], np.cumsum(table.dense())])
    ends = [0]
    while ends[-1] < n and len(ends) <= buckets:
        start = 0 if quantiles else ends[-1]
        least = len(ends) * depth if quantiles else depth
        low = ends[-1] + 1
        high = n
        while low < high:
            middle = (low + high) // 2
            count = below[middle : middle + 1] - below[start]
            noisy, _, _ = noise.add_noise(count, l1=1, epsilon=epsilon, law="laplace", rng=rng)
            if noisy[0] >= least:
                high = middle
            else:
                low = middle + 1
        ends.append(low)
    if ends[-1] < n:
        ends.append(n)
    width = np.diff(ends)
    return np.repeat(depth / width, width)


def rows(profile: str, store) -> pd.DataFrame:
    """The worst error of all ranges, a row a sample, N and method; equi-depth also at every b."""
    every_range = Ranges(*np.triu_indices(CELLS + 1, 1))
    errors = []
    for records in RECORDS:
        table = wave_table(records)
        exact = table.answer(every_range)
        for seed in range(SEEDS[profile]):
            rng = np.random.default_rng([5, records, seed])
            columns = dict(records=records, seed=seed, dataset="made-up counts in two waves")
            plain = HierarchicalHistogram(BUDGET, consistent=False)(table, rng).estimate
            worst = np.abs(plain.answer(every_range) - exact).max()
            errors.append(columns | dict(series=TREE, buckets=0, value=worst))
            worst = _worst(tree_least_squares(plain.values)[-CELLS:] - table.dense())
            errors.append(columns | dict(series=NEAREST, buckets=0, value=worst))
            for b in BUCKETS:
                for series in OTHERS:
                    cells = equi_depth(table, b, rng, quantiles=series == QUANTILES)
                    worst = _worst(cells - table.dense())
                    errors.append(columns | dict(series=series, buckets=b, value=worst))
    columns = dict(metric="WorstError", epsilon=BUDGET.epsilon, truth_public=True)
    frame = pd.DataFrame(errors).assign(**columns)
    means = frame.groupby(["records", "series", "buckets"]).value.transform("mean")
    least = means.groupby([frame.records, frame.series]).transform("min")
    panel = (means == least).map({True: "worst", False: "other b"})
    frame = frame.assign(panel=panel, mechanism=frame.series)
    shares = frame[panel == "worst"].assign(metric="Usefulness", panel="useful")
    shares["value"] /= shares.records
    return pd.concat([frame, shares], ignore_index=True)


def _worst(errors: np.ndarray) -> float:
    """The largest |error| of all ranges, from the errors of cells."""
    sums = np.concatenate([[0.0], np.cumsum(errors)])
    return float(sums.max() - sums.min())


def bound(records):
    """What H̃'s worst error exceeds with probability at most δ, at any N: a union over all ranges.

    2ℓ Laplace(ℓ/α) each (ν²= max(terms, log)·b², exceeded by ν·√(8·log) with the log below).
    """
    levels = ceil(log2(CELLS)) + 1
    terms = log(2 / (DELTA / (CELLS * (CELLS + 1) / 2)))
    spread = levels / BUDGET.epsilon * sqrt(max(2 * levels, terms))
    return spread * sqrt(8 * terms) + 0 * records


THEORY = ("H̃, bound (δ = 0.1)", bound)
PANELS = (
    Panel("n = 1024, α = 1", {"panel": "worst"}, "records", theory=THEORY),
    Panel("as a part of N", {"panel": "useful"}, "records"),
)


def least_records(rows: pd.DataFrame, series: str, accuracy: float) -> float:
    """The least N at which `accuracy` is met with probability 1 − δ; NaN if at none."""
    useful = rows[(rows.panel == "useful") & (rows.series == series)]
    shares = useful.groupby("records").value.quantile(1 - DELTA)
    x = np.log(shares.index.to_numpy(float))
    y = np.log(shares.to_numpy())
    over = np.flatnonzero(y > log(accuracy))
    if not len(over):
        return float(np.exp(x[0]))
    if over[-1] == len(y) - 1:
        return float("nan")
    pair = slice(over[-1], over[-1] + 2)
    return float(np.exp(np.interp(-log(accuracy), -y[pair], x[pair])))


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """The N that each accuracy needs, a column a method; and equi-depth's b at each N."""
    lines = []
    for accuracy in ACCURACIES:
        line = {"accuracy": accuracy}
        for series in (TREE, NEAREST, *OTHERS):
            line[series] = _records_text(least_records(rows, series, accuracy))
        lines.append(line)
    return pd.DataFrame(lines).set_index("accuracy")


def _records_text(records: float) -> str:
    if records != records:
        return f"more than {format_number(RECORDS[-1])}"
    return (
        format_number(records)
        if records > RECORDS[0]
        else f"at most {format_number(RECORDS[0])}"
    )


def best_buckets(rows: pd.DataFrame) -> pd.DataFrame:
    """How many buckets equi-depth had at each N."""
    best = rows[(rows.panel == "worst") & rows.series.isin(OTHERS)]
    return best.groupby(["series", "records"]).buckets.first().unstack()


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
        slope = log(growth) / log(RECORDS[-1] / RECORDS[0])
        measured = f"{format_number(growth)}×, as N to the {slope:.2g}"
        parts[f"{series} grows with N"] = Finding(bool(growth >= MUCH), measured)
    growth = _growth(rows, TREE)
    flat = Finding(PAPER["flat"].covers(growth), f"{growth:.3g}×")
    return all_of(parts | {"H̃ does not grow with N": flat})


def _needs_fewer(rows, series: str, accuracy: float) -> Finding:
    """Whether H̃ needs fewer records than a series does, if any number is enough for that."""
    ours = least_records(rows, TREE, accuracy)
    other = least_records(rows, series, accuracy)
    measured = f"{_records_text(ours)} against {_records_text(other)}"
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
