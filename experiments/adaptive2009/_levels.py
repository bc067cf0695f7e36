"""Figure 5's metrics: distances and errors at every level of a tree, a row a level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from workbench.inference import project_to_simplex
from workbench.metrics import EarthMover
from workbench.records import Records
from workbench.value import value

DISTANCE = "EarthMover"


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
        for level in range(1, self.depth + 1):
            nodes, counts = truth.level(level)
            for at_least, least in (("R", self.scale), ("R²", self.scale**2)):
                large = counts >= least
                if large.any():
                    error = np.abs(_errors(synthetic, level, nodes, counts, large)).mean()
                    expected = _deviation(counts[large], truth.total).mean()
                    row = dict(node_level=level, at_least=at_least, nodes=int(large.sum()))
                    row |= dict(value=error / self.scale, resampled=expected / self.scale)
                    rows.append(row)
            most = counts == counts.max()
            error = _errors(synthetic, level, nodes, counts, most)[0]
            rows.append(dict(node_level=level, at_least="largest", value=error / self.scale))
        return pd.DataFrame(rows).assign(scale=self.scale)


def _errors(synthetic: Records, level: int, nodes, counts, some) -> np.ndarray:
    """Of some nodes of a level, how many records there are too many."""
    levels = np.full(int(some.sum()), level)
    return synthetic.node_counts(levels, nodes[:, some]) - counts[some]


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
        costs[level] = (cells * _deviation(c, n)).sum() * np.sqrt(dims) / 2**level
    return costs


def _deviation(c: np.ndarray, n: int) -> np.ndarray:
    """E|X − c| where X is binomial, of n trials and mean c."""
    return 2 * c * (1 - c / n) * binom.pmf(c, n, c / n)
