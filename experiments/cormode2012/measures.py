"""What figures of Cormode et al. 2012 measure besides errors, and what a filter is expected to hold."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from math import exp
from typing import Any

import numpy as np

from workbench.data import SparseTable
from workbench.datasets import GaussianSparse
from workbench.estimates import Histogram, Summary, TransformedSummary
from workbench.inference import consistent
from workbench.queries import RandomRanges
from workbench.value import Float, Int, value


@value
class RoundedUp:
    """M'₊ of section 2.1: every negative count of a noisy table is 0."""

    def __call__(self, table: Histogram | Summary) -> Histogram | Summary:
        """The same table without what is below 0."""
        return replace(table, values=np.maximum(table.values, 0))


@value
class BelowZerosDropped:
    """A full noisy tree without the nodes that have an ancestor of noisy count 0."""

    def __call__(self, tree: TransformedSummary) -> TransformedSummary:
        """As if a filter had dropped what is 0."""
        return consistent(tree.where(tree.values != 0, theta=1.0))


@value
class OverEstimates:
    """The share of queries that are answered above the truth."""

    workload: RandomRanges

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compare answers with the truth, which must be public."""
        queries = self.workload.on(truth.domain)
        return float((estimate.answer(queries) > truth.answer(queries)).mean())


def passing(
    counts: Int[np.ndarray, " cells"], theta: int, sides: int, epsilon: float
) -> Float[np.ndarray, " cells"]:
    """The probability with which a filter keeps cells of these counts."""
    above = _exceeds(theta - counts, epsilon)
    return above if sides == 1 else above + _exceeds(theta + counts, epsilon)


def _exceeds(k: Int[np.ndarray, " cells"], epsilon: float) -> Float[np.ndarray, " cells"]:
    """Pr[X >= k] of geometric noise."""
    alpha = exp(-epsilon)
    tail = alpha ** np.where(k > 0, k, 1 - k) / (1 + alpha)
    return np.where(k > 0, tail, 1 - tail)


def held_shares(
    table: SparseTable, theta: int, sides: int, epsilon: float
) -> tuple[float, float, float]:
    """Of a filter's summary: its expected size, and two shares.

    That of the non-empty cells which it holds, and that of its cells which are non-empty.
    """
    held = passing(table.counts, theta, sides, epsilon).sum()
    empty = table.domain.size - len(table)
    size = held + empty * passing(np.zeros(1, int), theta, sides, epsilon).item()
    return size, held / len(table), held / size


def theta_of_size(data: GaussianSparse, size: int, epsilon: float) -> int:
    """The θ of the filter whose summary is expected to be nearest to a size."""
    table = data.load()
    thetas = range(1, round(data.mean + 1))

    def missing(theta: int) -> float:
        return size - held_shares(table, theta, 2, epsilon)[0]

    at = bisect_left(thetas, 0, key=missing)
    return min(thetas[max(at - 1, 0) : at + 1], key=lambda theta: abs(missing(theta)))
