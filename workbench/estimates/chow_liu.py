"""A tree of attributes that approximates a model: whole tuples can be drawn from it at once.

Source: Chow & Liu, IEEE Transactions on Information Theory 1968.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Float, Int

_INDEPENDENT_SHARE = (
    0.01  # of independent attributes in each pair, so that all cells are possible
)
_LEAST_MASS = 1e-9  # of a table, spread over its cells


class AttributeTree(NamedTuple):
    """Attributes in the order in which they are drawn, each given its parent (−1: none).

    The tables, parent's code × own code, stand one after another from `starts` on: their cumulative
    sums along the own codes, and their logarithms.
    """

    order: Int[np.ndarray, " attributes"]
    parents: Int[np.ndarray, " attributes"]
    starts: Int[np.ndarray, " attributes"]
    cumulative: Float[np.ndarray, " cells"]
    log_probabilities: Float[np.ndarray, " cells"]


def attribute_tree(
    prior: Sequence[Float[np.ndarray, " values"]],
    sets: Sequence[tuple[int, ...]],
    margins: Sequence[Float[np.ndarray, "..."]],
) -> AttributeTree:
    """The tree of the largest mutual information, of pairs of attributes that any set holds."""
    pairs = _pair_tables(sets, margins)
    singles = _single_tables(prior, sets, margins)
    information = {pair: _mutual_information(table) for pair, table in pairs.items()}
    order: list[int] = []
    parents: list[int] = []
    tables = []
    while len(order) < len(prior):
        parent, child = _strongest_edge(information, order, len(prior))
        table = singles[child][None]
        if parent >= 0:
            straight = (parent, child) in pairs
            table = pairs[parent, child] if straight else pairs[child, parent].T
            independent = np.multiply.outer(singles[parent], singles[child])
            table = table + _INDEPENDENT_SHARE * independent
        table = np.maximum(table, _LEAST_MASS / table.size)
        order.append(child)
        parents.append(parent)
        tables.append(table / table.sum(axis=1, keepdims=True))
    return AttributeTree(
        np.array(order),
        np.array(parents),
        np.cumsum([0, *(table.size for table in tables)])[:-1].astype(np.int64),
        np.concatenate([np.cumsum(table, axis=1).ravel() for table in tables]),
        np.concatenate([np.log(table).ravel() for table in tables]),
    )


def _pair_tables(sets: Any, margins: Any) -> dict[tuple[int, int], np.ndarray]:
    """The table of each pair that any set holds, from the smallest set that does."""
    pairs = {}
    by_size = sorted(zip(sets, margins, strict=True), key=lambda x: -x[1].size)
    for axes, table in by_size:
        for i, j in combinations(range(len(axes)), 2):
            others = tuple(k for k in range(len(axes)) if k not in (i, j))
            pairs[axes[i], axes[j]] = table.sum(axis=others)
    return pairs


def _single_tables(prior: Any, sets: Any, margins: Any) -> list[np.ndarray]:
    """The table of each attribute, the prior's where no set holds it."""
    singles = [p / p.sum() for p in prior]
    for axes, table in zip(sets, margins, strict=True):
        for i, k in enumerate(axes):
            singles[k] = table.sum(axis=tuple(j for j in range(len(axes)) if j != i))
    return singles


def _strongest_edge(
    information: Mapping[tuple[int, int], float], order: list[int], attributes: int
) -> tuple[int, int]:
    """The (parent, child) of the most information that leads to a new attribute; parent −1 if none."""
    edges = []
    for (a, b), bits in information.items():
        if (a in order) != (b in order):
            edges.append((bits, a, b) if a in order else (bits, b, a))
    if not edges:
        return -1, next(k for k in range(attributes) if k not in order)
    return max(edges)[1:]


def _mutual_information(joint: Float[np.ndarray, "a b"]) -> float:
    """Of one attribute about the other, in nats."""
    independent = np.multiply.outer(joint.sum(axis=1), joint.sum(axis=0))
    positive = joint > 0
    ratios = joint[positive] / independent[positive]
    return float((joint[positive] * np.log(ratios)).sum())
