"""Hay et al. 2010, Theorem 4: consistent trees are unbiased, and have the least variance there is.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: Theorem 4 and its proof in Appendix D; section 4.2.
Read    the factor is restored from the proof: error(H̃)/error(H̄) ≥ (2(ℓ − 1)(k − 1) − k)/3 for the
        range of all cells but the first and the last.
Open    Trees of k children and ℓ levels, over made-up counts; ε = 1, no zeroing. "No linear unbiased
        estimator" cannot be tried out; beside the exact variance of H̄ stand those of H̃, of the sum
        of the noisy leaves, of the best mix of the two, and of random unbiased ones: H̄'s weights and
        a random vector that sums to nothing over every cell. All ranges of small trees; the random
        ones 200 times.
        2000 samples a tree (paper), 300 (quick), in batches of equal size.
Words   unbiased = the mean error of H̄ on the range lies within 4 of its standard errors of 0, for
        every tree; lower variance = that of any rival on any range is below 0.999999 of H̄'s; the factor
        holds if the exact ratio is at least it, and the measured one's interval does not exclude it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench import DP, Bound, Domain, Ranges, SparseTable, claims
from workbench.claims import Claim, Finding, Printed, all_of, format_number, mean_curve
from workbench.inference import tree_least_squares
from workbench.inference.least_squares import tree_sums
from workbench.mechanisms import HierarchicalHistogram
from workbench.plots import Panel
from workbench.transform import level_sizes

TITLE = "The variance of consistent trees against the bound"
PAGE = "Hay et al., PVLDB 2010, section 4.2, Theorem 4"
COLUMNS = 3
SAMPLES = {"quick": 300, "paper": 2000}
BATCHES = {"quick": 10, "paper": 20}
TREES = {2: (3, 4, 6, 8, 11, 14, 16), 4: (3, 4, 5, 6, 7, 8), 8: (3, 4, 5)}  # k: levels
SMALL = ((2, 4), (2, 5), (3, 3), (4, 3))
RANDOM = 200
STEP = 0.3
BUDGET = DP(1.0)


def factor(k: int, levels: int) -> float:
    """The bound: (2(ℓ − 1)(k − 1) − k)/3.

    >>> round(factor(2, 16), 3)
    9.333
    """
    return (2 * (levels - 1) * (k - 1) - k) / 3


HEIGHT_16 = "9.33 for a binary tree of height 16"
PAPER = {"16": Printed(HEIGHT_16, 9.333, 9.334, at=16, value=factor(2, 16))}
PANELS = tuple(
    Panel(
        f"k = {k}",
        {"panel": k, "metric": "VarianceRatio"},
        "levels",
        log="",
        theory=("bound of Theorem 4", lambda levels, k=k: factor(k, levels)),
        printed=PAPER["16"] if k == 2 else (),
    )
    for k in TREES
)


def rows(profile: str, store) -> pd.DataFrame:
    """Ratios and mean errors by batches of samples, a panel a k; and exact variances of rivals."""
    frames = []
    for k, heights in TREES.items():
        frames += [_measured(k, levels, profile) for levels in heights]
    columns = dict(truth_public=True, epsilon=BUDGET.epsilon, mechanism="HierarchicalHistogram")
    return pd.concat([*frames, rivals()], ignore_index=True).assign(**columns)


def _measured(k: int, levels: int, profile: str) -> pd.DataFrame:
    table = poisson_table(k ** (levels - 1))
    middle = Ranges([1], [table.domain.size - 1])
    exact = table.answer(middle)[0]
    plain = HierarchicalHistogram(BUDGET, k, consistent=False)
    batches = BATCHES[profile]
    noisy_errors = np.empty((batches, SAMPLES[profile] // batches))
    errors = np.empty_like(noisy_errors)
    for batch in range(batches):
        rng = np.random.default_rng([4, k, levels, batch])
        for i in range(errors.shape[1]):
            noisy = plain(table, rng).estimate
            leaves = tree_least_squares(noisy.values, k)[-table.domain.size :]
            noisy_errors[batch, i] = noisy.answer(middle)[0] - exact
            errors[batch, i] = leaves[1:-1].sum() - exact
    # the ratio of mean squares, and what each batch moves it to first order
    a = (noisy_errors**2).mean(axis=1)
    b = (errors**2).mean(axis=1)
    ratio = a.mean() / b.mean() * (1 + a / a.mean() - b / b.mean())
    variance = HierarchicalHistogram(BUDGET, k, nonnegative=False).variance(
        table.domain, middle, 1
    )
    noisy_variance = noisy.answer(middle, error=True)[1] ** 2
    ratios = dict(series="measured", metric="VarianceRatio")
    bias = dict(series="H̄", metric="bias")
    entries = []
    for batch in range(batches):
        entries.append(ratios | dict(seed=batch, value=ratio[batch]))
        entries.append(bias | dict(seed=batch, value=errors[batch].mean()))
    exact_ratio = noisy_variance[0] / variance[0]
    entries.append(ratios | dict(series="exact", seed=0, value=exact_ratio))
    return pd.DataFrame(entries).assign(panel=k, k=k, levels=levels, dataset="made-up counts")


def poisson_table(m: int) -> SparseTable:
    """Counts of a Poisson law, public."""
    counts = np.random.default_rng(m).poisson(3, m)
    return SparseTable.from_dense(Domain(("x",), (m,)), counts, Bound(1), truth_public=True)


def rivals() -> pd.DataFrame:
    """The least variance of each rival over H̄'s, among all ranges of small trees: exact algebra."""
    entries = []
    rng = np.random.default_rng(4)
    for k, levels in SMALL:
        m = k ** (levels - 1)
        spans = np.array([tree_sums(cell, k) for cell in np.eye(m)]).T  # nodes × cells
        nodes = len(spans)
        best = np.array(
            [tree_least_squares(unit, k)[-m:] for unit in np.eye(nodes)]
        ).T  # cells × nodes
        lo, hi = np.triu_indices(m + 1, 1)
        cells = np.arange(m)
        ranges = ((cells >= lo[:, None]) & (cells < hi[:, None])).astype(float)
        ours = ranges @ best
        leaves = np.zeros_like(ours)
        leaves[:, nodes - m :] = ranges
        cover = np.array([_cover(k, m, a, b) for a, b in zip(lo, hi, strict=True)])
        null = np.eye(nodes) - spans @ best
        weights = [("H̃", cover), ("noisy leaves", leaves)]
        weights.append(("a mix of both", _mixed(cover, leaves)))
        for _ in range(RANDOM):
            weights.append(("random", ours + STEP * rng.normal(size=ours.shape) @ null.T))
        for series, rival in weights:
            assert np.allclose(rival @ spans, ranges), "a rival is unbiased"
            ratio = (rival**2).sum(axis=1) / (ours**2).sum(axis=1)
            columns = dict(k=k, levels=levels, dataset="made-up counts", series=series, seed=0)
            entries.append(columns | dict(value=ratio.min()))
    return pd.DataFrame(entries).assign(panel="rivals", metric="least variance over H̄'s")


def _cover(k: int, m: int, lo: int, hi: int) -> np.ndarray:
    """Which nodes H̃ sums: those inside the range whose parents are not."""
    sizes = level_sizes(m, k)
    levels = []
    inside = np.zeros(1, bool)
    for depth, size in enumerate(sizes):
        width = k ** (len(sizes) - 1 - depth)
        first = np.arange(size) * width
        above = np.repeat(inside, k)[:size] if depth else inside
        inside = (first >= lo) & (first + width <= hi)
        levels.append(inside & ~above)
    return np.concatenate(levels).astype(float)


def _mixed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The mix of two unbiased estimators that has the least variance, query by query."""
    between = b - a
    square = (between**2).sum(axis=1, keepdims=True)
    share = -(a * between).sum(axis=1, keepdims=True) / np.maximum(square, 1e-12)
    return a + share * between


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Bound, exact and measured ratio: a line a tree."""
    lines = []
    ratios = rows[rows.metric == "VarianceRatio"]
    for (k, levels), values in ratios.groupby(["k", "levels"]):
        ours = mean_curve(values, "levels", series="measured").iloc[0]
        (exact,) = values[values.series == "exact"].value
        line = {
            "k": k,
            "ℓ": levels,
            "bound": format_number(factor(k, levels)),
            "exact": format_number(exact),
        }
        line["measured"] = f"{ours['mean']:.3g} ({ours.low:.3g} … {ours.high:.3g})"
        lines.append(line)
    return pd.DataFrame(lines).set_index(["k", "ℓ"])


def _theorem(rows) -> Finding:
    others = rows[rows.panel == "rivals"].value
    least = f"{len(others)} of them, at least {others.min():.6g}×"
    return all_of(
        {
            "unbiased": _unbiased(rows),
            "no rival has less variance": Finding(bool((others >= 0.999999).all()), least),
            "the factor": _factor(rows),
        }
    )


def _unbiased(rows) -> Finding:
    groups = rows[rows.metric == "bias"].groupby(["k", "levels"]).value
    errors = (groups.mean() / (groups.std() / np.sqrt(groups.count()))).abs()
    return Finding(bool((errors < 4).all()), f"at most {errors.max():.2g} standard errors")


def _factor(rows) -> Finding:
    ratios = rows[rows.metric == "VarianceRatio"]
    exact = ratios[ratios.series == "exact"].set_index(["k", "levels"]).value
    bound = pd.Series({tree: factor(*tree) for tree in exact.index})
    ours = claims.confidence_intervals(ratios[ratios.series == "measured"], ["k", "levels"])
    measured = f"exact {_span(exact / bound)} the bound, measured {_span(ours['mean'] / bound)}"
    holds = (exact >= bound).all() and (ours.high >= bound).all()
    return Finding(bool(holds), measured)


def _span(ratio: pd.Series) -> str:
    return f"{ratio.min():.3g}–{ratio.max():.3g}×"


CLAIMS = (
    Claim(
        "h-th4",
        "H̄ is unbiased; no linear unbiased estimator from the same counts has lower variance; on all "
        "cells but the ends its variance is lower than that of H̃ by (2(ℓ − 1)(k − 1) − k)/3 or more.",
        _theorem,
    ),
)
