"""What is declared of a table before it is seen, and what its nodes then hold."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from workbench.arrays import Float, Int, Num
from workbench.value import parameter, value

_NORMAL = 25  # non-empty cells from which their sum is taken for normal
_GROUPS = 24  # counts that stand for many


class Weighted(NamedTuple):
    """Counts and how likely they are."""

    counts: Float[np.ndarray, " k"]
    weights: Float[np.ndarray, " k"]


@value
class CountModel:
    """A model: cells are non-empty at random places, and hold normal counts."""

    density: float = parameter(low=0, high=1, doc="fraction of cells that are not empty")
    mean: float = parameter(low=0, high=2**40, unit="counts", doc="of non-empty cells")
    spread: float = parameter(low=0, high=2**40, unit="counts", doc="their standard deviation")

    def counts(self) -> Weighted:
        """What a non-empty cell holds: whole numbers, some eighty at most."""
        from scipy.special import ndtr

        low = max(1, round(self.mean - 5 * self.spread))
        high = max(1, round(self.mean + 5 * self.spread))
        step = -(-(high - low) // 80) or 1
        counts = np.arange(low, high + step, step, dtype=float)
        edges = (counts[1:] - step / 2 - self.mean) / max(self.spread, 1e-9)
        return Weighted(counts, np.diff(ndtr(edges), prepend=0, append=1))

    def sums(self, cells: int) -> Weighted:
        """What `cells` cells hold together, 0 too: j counts, j binomial; normal beyond 25."""
        from scipy.special import xlog1py, xlogy

        counts, weights = self.counts()
        density = self.density
        mean = counts @ weights
        variance = (counts - mean) ** 2 @ weights
        non_empty = cells * density
        if non_empty > _NORMAL:
            at = np.linspace(-4.5, 4.5, 25)
            spread = sqrt(non_empty * (variance + mean**2 * (1 - density)))
            normal = np.exp(-(at**2) / 2)
            sums = np.maximum(np.rint(non_empty * mean + spread * at), 0)
            return Weighted(sums, normal / normal.sum())
        j = np.arange(1.0 + min(cells, int(non_empty + 6 * sqrt(non_empty) + 8)))
        log_binomial = np.cumsum(np.log([1, *((cells - j[:-1]) / j[1:])]))
        chance = np.exp(log_binomial + xlogy(j, density) + xlog1py(cells - j, -density))
        at, normal = np.polynomial.hermite_e.hermegauss(5)
        several = np.maximum(j * mean + np.sqrt(j * variance) * at[:, None], j)
        several = np.rint(several)[:, 2:]
        several_weights = (normal / normal.sum())[:, None] * chance[2:]
        all_counts = np.concatenate([counts, several.ravel()])
        all_weights = np.concatenate([chance[1] * weights, several_weights.ravel()])
        sums = Weighted(all_counts, all_weights)
        if cells > 1:
            sums = _grouped(sums)
        return Weighted(np.append(sums.counts, 0), np.append(sums.weights, chance[0]))


def _grouped(law: Weighted) -> Weighted:
    """Some twenty-five counts of about the same law."""
    order = np.argsort(law.counts)
    counts = law.counts[order]
    weights = law.weights[order]
    group = (_GROUPS * np.cumsum(weights) / (weights.sum() or 1)).astype(int)
    totals = np.bincount(group, weights)
    sums = np.bincount(group, weights * counts)
    likely = totals > 1e-9 * weights.sum()
    return Weighted(np.rint(sums[likely] / totals[likely]), totals[likely])


class NodeCounts(NamedTuple):
    """Levels of nodes: their sizes, and what the nodes of each `level` hold with which probability."""

    sizes: Float[np.ndarray, " levels"]
    level: Int[np.ndarray, " k"]
    counts: Float[np.ndarray, " k"]
    weights: Float[np.ndarray, " k"]

    @classmethod
    def of(cls, model: CountModel | None, levels: Sequence[tuple[int, int]]) -> NodeCounts:
        """Of levels, each (number of nodes, cells that one sums); without a model all are empty."""
        sizes, cells = zip(*levels, strict=True)
        empty = Weighted(np.zeros(1), np.ones(1))
        laws = [empty if model is None else model.sums(n) for n in cells]
        level = np.repeat(np.arange(len(levels)), [len(law.counts) for law in laws])
        counts = np.concatenate([law.counts for law in laws])
        weights = np.concatenate([law.weights for law in laws])
        return cls(np.array(sizes, float), level, counts, weights)

    def only(self, levels: Int[np.ndarray, " some"]) -> NodeCounts:
        """Those of some levels."""
        kept = np.isin(self.level, levels)
        return NodeCounts(
            self.sizes[levels], self.level[kept], self.counts[kept], self.weights[kept]
        )

    def mean(self, values: Num[np.ndarray, "k ..."]) -> Num[np.ndarray, "levels ..."]:
        """The mean over each level's nodes."""
        weights = self.weights.reshape(-1, *[1] * (values.ndim - 1))
        starts = np.flatnonzero(np.diff(self.level, prepend=-1))
        return np.add.reduceat(weights * values, starts, axis=0)
