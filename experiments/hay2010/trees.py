"""Hay et al. 2010, Theorem 4: errors of H̃ and H̄ on one range, measured and exact, and of their rivals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.hay2010.data import PoissonCounts
from workbench import DP, Ranges, SparseTable
from workbench.compiled import pd
from workbench.estimates import HierarchicalSums
from workbench.inference import tree_least_squares
from workbench.inference.consistency import tree_sums
from workbench.mechanisms import HierarchicalHistogram
from workbench.noise import variance
from workbench.queries import level_sizes
from workbench.trials.metrics.answers import refuse_private
from workbench.value import value

RATIO = "VarianceRatio"
STEP = 0.3  # of random rivals away from H̄


def factor(k: int, levels: int) -> float:
    """The bound: (2(ℓ − 1)(k − 1) − k)/3.

    >>> round(factor(2, 16), 3)
    9.333
    """
    return (2 * (levels - 1) * (k - 1) - k) / 3


@value
class MiddleErrors:
    """Errors of H̃ and of the H̄ made of it on all cells but the ends, over `Samples` of H̃.

    The rows: mean squares of H̃, `noisy`, and of H̄, `value`, and the mean error of H̄, `bias`.
    """

    def __call__(
        self, truth: SparseTable, estimates: Sequence[HierarchicalSums]
    ) -> pd.DataFrame:
        """One row."""
        refuse_private(truth)
        m = truth.domain.size
        k = estimates[0].branching
        middle = Ranges([1], [m - 1])
        exact = truth.answer(middle)[0]
        noisy = np.array([tree.answer(middle)[0] for tree in estimates]) - exact
        leaves = [tree_least_squares(tree.values, k)[-m:] for tree in estimates]
        ours = np.array([values[1:-1].sum() for values in leaves]) - exact
        row = dict(levels=len(level_sizes(m, k)), bias=ours.mean())
        return pd.DataFrame([row | dict(noisy=(noisy**2).mean(), value=(ours**2).mean())])


def error_ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the ratio of mean squares, each batch what it moves it to first order."""
    groups = rows.groupby(["k", "levels"])
    noisy = groups.noisy.transform("mean")
    ours = groups.value.transform("mean")
    ratio = noisy / ours * (1 + rows.noisy / noisy - rows.value / ours)
    return rows.assign(series="measured", metric=RATIO, value=ratio)


def exact_ratio(k: int, levels: int) -> float:
    """By closed forms: H̃ sums the nodes that it must, H̄ is the best mix."""
    m = k ** (levels - 1)
    domain = PoissonCounts(m, 0).domain
    plain = HierarchicalHistogram(DP(1.0), k, nonnegative=False)
    nodes = 2 * (k - 1) * (levels - 1) - k
    node = variance(levels, 1.0, plain.noise)
    return nodes * node / plain.variance(domain, Ranges([1], [m - 1]), 1)[0]


def exact_bias(k: int, levels: int, mean: float) -> dict[str, float]:
    """How far H̄ is from counts whose tree it is given without noise, at most."""
    counts = PoissonCounts(k ** (levels - 1), mean).counts()
    values = tree_least_squares(tree_sums(counts, k), k)[-len(counts) :]
    return dict(k=k, levels=levels, value=np.abs(values - counts).max())


def least_variances(k: int, levels: int, random: int, rng: np.random.Generator) -> pd.DataFrame:
    """The least variance of each rival over H̄'s, among all ranges of a tree: exact algebra."""
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
    cover = np.array([cover_weights(k, m, a, b) for a, b in zip(lo, hi, strict=True)])
    null = np.eye(nodes) - spans @ best
    weights = [("H̃", cover), ("noisy leaves", leaves), ("a mix of both", _mixed(cover, leaves))]
    for _ in range(random):
        weights.append(("random", ours + STEP * rng.normal(size=ours.shape) @ null.T))
    entries = []
    for series, rival in weights:
        assert np.allclose(rival @ spans, ranges), "a rival is unbiased"
        ratio = (rival**2).sum(axis=1) / (ours**2).sum(axis=1)
        entries.append(dict(k=k, levels=levels, series=series, value=ratio.min()))
    return pd.DataFrame(entries)


def cover_weights(k: int, m: int, lo: int, hi: int) -> np.ndarray:
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
