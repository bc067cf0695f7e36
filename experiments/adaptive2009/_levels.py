"""Figure 5's metrics: distances and errors at every level of a tree, a row a level."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import pd
from workbench.data import Records
from workbench.estimates import Leaves
from workbench.inference import project_to_simplex
from workbench.trials.metrics import EarthMover
from workbench.value import value

DISTANCE = "EarthMover"
LARGEST = "largest"


@value
class DistanceByLevel:
    """The earth mover's distance, added up from the root `down_to` each level below it.

    `own` is that of the level alone; with `balanced` counts are made to add up first.
    """

    depth: int
    balanced: bool = False

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Rows with how many synthetic `records` there are."""
        if self.balanced:
            estimate = project_to_simplex(estimate)
        synthetic = _synthetic(estimate)
        distances = EarthMover(self.depth).levels(truth, synthetic)
        columns = dict(metric=DISTANCE, records=synthetic.total, value=distances.cumsum()[1:])
        columns |= dict(own=distances[1:], balanced=self.balanced)
        return pd.DataFrame({"down_to": np.arange(1, self.depth + 1)}).assign(**columns)


@value
class ExpectedResampling:
    """What `DistanceByLevel` is of a resample on average; it asks for no estimate."""

    depth: int

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Rows of the closed form."""
        sums = expected_resampling(truth, self.depth).cumsum()[1:]
        return pd.DataFrame({"down_to": np.arange(1, self.depth + 1), "value": sums})


@value
class NodeError:
    """The mean error, in `scale`s, at the nodes of a level that hold so many records or more.

    `at_least` is the scale ("R") or its square ("R²"); `resampled` is the expected error of a resample at
    the same nodes. "largest" is the error, with its sign, at the node that holds most.
    """

    depth: int
    scale: float

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Rows of the levels that have such `nodes`."""
        synthetic = _synthetic(estimate)
        rows = []
        for some in large_nodes(truth, self.depth, self.scale):
            levels = np.full(len(some.counts), some.level)
            errors = synthetic.node_counts(levels, some.nodes) - some.counts
            row = dict(node_level=some.level, at_least=some.at_least)
            if some.at_least == LARGEST:
                row["value"] = errors[0] / self.scale
            else:
                row |= dict(nodes=len(errors), value=np.abs(errors).mean() / self.scale)
                row["resampled"] = some.expected / self.scale
            rows.append(row)
        return pd.DataFrame(rows).assign(scale=self.scale)


class LargeNodes(NamedTuple):
    """The nodes of a level that hold so many records, and what a resample's error is there on average."""

    level: int
    at_least: str
    nodes: np.ndarray
    counts: np.ndarray
    expected: float


@lru_cache(maxsize=1)  # of the truth: all releases are asked at the same nodes
def large_nodes(truth: Records, depth: int, scale: float) -> list[LargeNodes]:
    """Level by level those that hold a scale, its square, and the largest."""
    large = []
    for level in range(1, depth + 1):
        nodes, counts = truth.level(level)
        least = {"R": scale, "R²": scale**2, LARGEST: counts.max()}
        for at_least, records in least.items():
            some = counts >= records
            if some.any():
                expected = _deviation(counts[some], truth.total).mean()
                large.append(
                    LargeNodes(level, at_least, nodes[:, some], counts[some], expected)
                )
    return large


def _synthetic(estimate: Any) -> Records:
    return estimate if isinstance(estimate, Records) else _drawn(estimate)


@lru_cache(maxsize=1)  # both metrics ask one release
def _drawn(estimate: Leaves) -> Records:
    return estimate.synthetic()


@lru_cache(maxsize=1)  # of the truth
def expected_resampling(truth: Records, depth: int) -> np.ndarray:
    """What resampling costs at each level on average: Σ over its cells of diameter × E|X − c|.

    X is binomial, of n trials and mean c, an integer: E|X − c| = 2c(1 − c/n)·Pr[X = c] (de Moivre).
    """
    n = truth.total
    dims = truth.hierarchy.dims
    costs = np.empty(depth + 1)
    for level in range(depth + 1):
        c, cells = np.unique(truth.level(level)[1], return_counts=True)
        costs[level] = (cells * _deviation(c, n)).sum() * np.sqrt(dims) / 2**level
    return costs


def _deviation(c: np.ndarray, n: int) -> np.ndarray:
    """E|X − c| where X is binomial, of n trials and mean c."""
    from scipy.stats import binom

    return 2 * c * (1 - c / n) * binom.pmf(c, n, c / n)
