"""Figure 5's metrics: distances and errors at every level of a tree, a row a level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from workbench.metrics import EarthMover
from workbench.records import Records
from workbench.value import value

DISTANCE = "EarthMover"
FEWEST = 10  # nodes of a level


@value
class DistanceByLevel:
    """The earth mover's distance, added up from the root `down_to` each level below it."""

    depth: int

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Rows with how many synthetic `records` there are."""
        synthetic = _synthetic(estimate)
        sums = EarthMover(self.depth).levels(truth, synthetic).cumsum()
        columns = dict(metric=DISTANCE, records=synthetic.total, value=sums[1:])
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
    """The mean error in `scale`s, at those nodes of each level that hold as many records."""

    depth: int
    scale: float

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Rows of the levels that have ten such `nodes`."""
        synthetic = _synthetic(estimate)
        levels = []
        for level in range(1, self.depth + 1):
            nodes, counts = truth.level(level)
            large = counts >= self.scale
            n = int(large.sum())
            if n >= FEWEST:
                estimates = synthetic.node_counts(np.full(n, level), nodes[:, large])
                error = np.abs(estimates - counts[large]).mean() / self.scale
                levels.append(dict(node_level=level, scale=self.scale, value=error, nodes=n))
        return pd.DataFrame(levels, columns=["node_level", "scale", "value", "nodes"])


def _synthetic(estimate: Any) -> Records:
    return estimate if isinstance(estimate, Records) else estimate.synthetic()


def expected_resampling(truth: Records, depth: int) -> np.ndarray:
    """What resampling costs at each level on average: Σ over its cells of diameter × E|X − c|.

    X is binomial, of n trials and mean c, a whole number: E|X − c| = 2c(1 − c/n)·Pr[X = c] (de Moivre).
    """
    n = truth.total
    dims = truth.hierarchy.dims
    costs = np.empty(depth + 1)
    for level in range(depth + 1):
        c, cells = np.unique(truth.level(level)[1], return_counts=True)
        deviation = 2 * c * (1 - c / n) * binom.pmf(c, n, c / n)
        costs[level] = (cells * deviation).sum() * np.sqrt(dims) / 2**level
    return costs
