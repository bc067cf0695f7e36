"""Theorem 4 of Hay et al. (2010): consistent trees are unbiased, and no linear unbiased estimator has a
smaller variance.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: Theorem 4 and its proof in Appendix D, and section 4.2.
Read    The factor is missing in our copy. We take it from the proof: error(H̃)/error(H̄) ≥ (2(ℓ − 1)(k − 1) −
        k)/3 for the range of all cells except the first and the last.
Open    The trees have k children per node and ℓ levels, over synthetic counts, and are not zeroed. We cannot
        test all linear unbiased estimators. We compare the exact variance of the consistent tree H̄ with the
        variances of four kinds of estimators. These are the noisy tree H̃, the sum of the noisy leaves, the
        best combination of the two, and random unbiased estimators. A random one has the weights of H̄ plus a
        random vector that does not change the expected answer. We test all ranges of small trees. Samples
        come in batches of equal size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from experiments._fields import effort, unprinted, unprinted_number
from experiments.hay2010.data import PoissonCounts, Samples, beside
from workbench import DP, Ranges, SparseTable, Sweep
from workbench.compiled import pd
from workbench.estimates import HierarchicalSums
from workbench.figures import Figure
from workbench.figures.fields import seeds
from workbench.figures.plots import Panel
from workbench.inference import tree_least_squares
from workbench.inference.consistency import tree_sums
from workbench.mechanisms import HierarchicalHistogram
from workbench.noise import variance
from workbench.queries import level_sizes
from workbench.trials import claims
from workbench.trials.claims import Finding, Printed, check_between
from workbench.trials.metrics.answers import refuse_private
from workbench.value import format_number, value

RATIO = "VarianceRatio"
STEP = 0.3  # of random rivals away from H̄


# Errors of H̃ and H̄ on one range, measured and exact, and of their rivals.


def factor(k: int, levels: int) -> float:
    """Return the lower bound (2(ℓ − 1)(k − 1) − k)/3 on the error of a noisy tree divided by that of a
    consistent tree (Theorem 4 of Hay et al. 2010), for `levels` levels ℓ and k children per node.

    >>> round(factor(2, 16), 3)
    9.333
    """
    return (2 * (levels - 1) * (k - 1) - k) / 3


@value
class MiddleErrors:
    """Metric: errors of the noisy tree H̃, and of the consistent tree H̄ that is computed from H̃, for the
    range of all cells except the first and the last.

    It averages over the releases of `Samples`. The column `noisy` is the mean squared error of H̃, `value` is
    that of H̄, and `bias` is the mean error of H̄.
    """

    def __call__(
        self, truth: SparseTable, estimates: Sequence[HierarchicalSums]
    ) -> pd.DataFrame:
        """Return the errors, as a data frame with one row."""
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
    """Return the error of the noisy tree H̃ divided by that of the consistent tree H̄, with one row per
    batch. Each row differs from the ratio of the means by the first-order effect of its batch.
    """
    groups = rows.groupby(["k", "levels"])
    noisy = groups.noisy.transform("mean")
    ours = groups.value.transform("mean")
    ratio = noisy / ours * (1 + rows.noisy / noisy - rows.value / ours)
    return rows.assign(series="measured", metric=RATIO, value=ratio)


def exact_ratio(k: int, levels: int) -> float:
    """Return the theoretical error of the noisy tree H̃ divided by that of the consistent tree H̄. H̃ adds up
    the fewest nodes, and H̄ is the best linear estimator.
    """
    m = k ** (levels - 1)
    domain = PoissonCounts(m, 0).domain
    plain = HierarchicalHistogram(DP(1.0), k, nonnegative=False)
    nodes = 2 * (k - 1) * (levels - 1) - k
    node = variance(levels, 1.0, plain.noise)
    return nodes * node / plain.variance(domain, Ranges([1], [m - 1]), 1)[0]


def exact_bias(k: int, levels: int, mean: float) -> dict[str, float]:
    """Return the largest difference between true counts and the consistent tree H̄, if H̄ is computed from
    the true counts without noise.
    """
    counts = PoissonCounts(k ** (levels - 1), mean).counts()
    values = tree_least_squares(tree_sums(counts, k), k)[-len(counts) :]
    return dict(k=k, levels=levels, value=np.abs(values - counts).max())


def least_variances(k: int, levels: int, random: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return the variance of each other estimator divided by that of the consistent tree H̄, as the minimum
    over all ranges. The computation uses matrices, and no samples.
    """
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
    trees = [HierarchicalSums(PoissonCounts(m, 0).domain, k, x, None) for x in np.eye(nodes)]
    cover = np.array([tree.answer(Ranges(lo, hi)) for tree in trees]).T  # those that H̃ sums
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


def _mixed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the combination of two unbiased estimators with the smallest variance, for each query."""
    between = b - a
    square = (between**2).sum(axis=1, keepdims=True)
    share = -(a * between).sum(axis=1, keepdims=True) / np.maximum(square, 1e-12)
    return a + share * between


SMALL = ((2, 4), (2, 5), (3, 3), (4, 3))  # k, ℓ of the trees with rivals

HEIGHT_16 = "9.33 for a binary tree of height 16"
PAPER = {"16": Printed(HEIGHT_16, 9.333, 9.334, at=16, value=factor(2, 16))}
EXACT_ERROR = "error of exact counts"
LEAST = "least variance over H̄'s"
ROUNDING = 1e-9


def check_unbiased(rows, level: float) -> Finding:
    """Check whether the consistent tree H̄ reproduces counts without noise. The finding also says for how
    many trees the measured mean error is compatible with 0.
    """
    exact = rows[rows.metric == EXACT_ERROR].set_index(["k", "levels"]).value
    finding = check_between(
        claims.exact(exact, ratios=False), level, high=ROUNDING, unit=" off"
    )
    bias = rows[rows.metric == "bias"]
    each = 1 - 0.05 / bias.groupby(["k", "levels"]).ngroups
    points = claims.confidence_intervals(bias, ["k", "levels"], each)
    around = ((points.low <= 0) & (points.high >= 0)).sum()
    return beside(
        finding,
        f"the measured mean error's interval holds 0 in {around} of {len(points)} trees",
    )


def check_least(rows, level: float, series: tuple[str, ...] = ()) -> Finding:
    """Check whether no other estimator has a smaller variance than the consistent tree H̄ for any range."""
    own = rows[rows.metric == LEAST]
    if series:
        own = own[own.series.isin(series)]
    least = own.groupby(["k", "levels", "series"]).value.min()
    return check_between(claims.exact(least), level, low=1 - ROUNDING, words="no lower")


def check_factor(rows, level: float, k: int = 0, levels: int = 0) -> Finding:
    """Check whether the error of the noisy tree H̃, divided by that of the consistent tree H̄, is at least
    the printed factor. The range consists of all cells except the first and the last.
    """
    ratios = rows[rows.metric == RATIO]
    if k:
        ratios = ratios[(ratios.k == k) & (ratios.levels == levels)]
    measured = ratios[ratios.series == "measured"].groupby(["k", "levels"]).value.mean()
    exact = ratios[ratios.series == "exact"].set_index(["k", "levels"]).value
    if exact.empty:
        raise claims.MissingPoints(f"no tree of k = {k} and ℓ = {levels}")
    bound = pd.Series({tree: factor(*tree) for tree in exact.index})
    bound.index.names = exact.index.names
    finding = check_between(claims.exact(exact / bound), level, low=1, words="as printed")
    span = measured / bound
    return beside(finding, f"measured {_span(span)}× the factor, which is {_span(bound)}")


def _span(numbers: pd.Series) -> str:
    ends = dict.fromkeys(map(format_number, (numbers.min(), numbers.max())))
    return "–".join(ends)


@value
class Thm4(Figure):
    """Measured and theoretical ratios of the errors of noisy and of consistent trees by the number of levels,
    with the bound of Theorem 4 of Hay et al. (2010). There is one panel per number of children k.
    """

    title = "The variance of consistent trees against the bound"
    headline = "Consistency makes some range more accurate by at least Theorem 4's factor"
    rests_on = ("h-th4.3",)
    sharey = True
    page = "Hay et al., PVLDB 2010, section 4.2, Theorem 4"
    quick = {"samples": 30, "seeds": 5}
    columns = 3

    epsilon: float = unprinted_number(1.0, "privacy budget ε", 1e-6, 1000)
    mean: float = unprinted_number(3.0, "mean of the counts", 0, 1e9, unit="counts")
    levels_2: tuple[int, ...] = unprinted(
        (3, 4, 6, 8, 11, 14, 16), "levels of trees of 2 children", 3, 20
    )
    levels_4: tuple[int, ...] = unprinted(
        (3, 4, 5, 6, 7, 8), "levels of trees of 4 children", 3, 10
    )
    levels_8: tuple[int, ...] = unprinted((3, 4, 5), "levels of trees of 8 children", 3, 7)
    random: int = effort(200, "random rivals of each small tree")
    samples: int = effort(100, "number of releases in a batch")
    seeds: int = seeds(20, "number of batches of releases")

    def trees(self) -> dict[int, tuple[int, ...]]:
        """Return the numbers of levels of the trees, by the number of children k."""
        return {2: self.levels_2, 4: self.levels_4, 8: self.levels_8}

    def sweeps(self) -> dict[int, Sweep]:
        """Return one sweep (plan of runs) per number of children k."""
        sweeps = {}
        for k, heights in self.trees().items():
            tables = [PoissonCounts(k ** (levels - 1), self.mean) for levels in heights]
            noisy = HierarchicalHistogram(DP(self.epsilon), k, consistent=False)
            samples = Samples(noisy, self.samples)
            sweeps[k] = Sweep(tables, [samples], [MiddleErrors()], self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results: measured ratios and mean errors of batches, theoretical ratios, and
        the variances of other estimators.
        """
        rows = super().rows(store)
        rows = rows.assign(k=rows.panel)
        bias = rows.assign(series="H̄", metric="bias", value=rows.bias)
        rng = np.random.default_rng(4)
        rivals = pd.concat([least_variances(*tree, self.random, rng) for tree in SMALL])
        rivals = rivals.assign(panel="rivals", metric=LEAST)
        exact = [
            dict(panel=k, k=k, levels=levels, series="exact", value=exact_ratio(k, levels))
            for k, heights in self.trees().items()
            for levels in heights
        ]
        biases = pd.DataFrame([exact_bias(*tree, self.mean) for tree in SMALL])
        biases = biases.assign(panel="rivals", series="H̄", metric=EXACT_ERROR)
        made = pd.concat([pd.DataFrame(exact).assign(metric=RATIO), rivals, biases])
        made = made.assign(seed=0, truth_public=True, epsilon=self.epsilon)
        frames = [error_ratios(rows), bias, made]
        return pd.concat(frames, ignore_index=True).drop(columns=["noisy", "bias"])

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel per number of children k, with the bound."""
        return [
            Panel(
                f"k = {k} children",
                {"k": k, "metric": RATIO},
                "levels",
                log="",
                theory=("bound of Theorem 4", partial(factor, k)),
                printed=PAPER["16"] if k == 2 else (),
            )
            for k in self.trees()
        ]
