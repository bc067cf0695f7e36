"""Least squares over a k-ary tree of noisy sums: the consistent tree with the least variance.

Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, Theorem 3; with other variances the same
           recursion, weighted by their inverses (Honaker, 2015).
Differs    trees need not be complete, and variances not be equal.
Cost       two passes over the tree, a block at a time that a processor's cache holds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from workbench.arrays import Float, Int, Num, finite_array, number_array
from workbench.compiled import njit
from workbench.threads import in_slices
from workbench.transform import level_sizes

_NODES_FOR_THREADS = 2**17
_BLOCK = 2**13  # leaves that are worked on at a time


def sizes_of_levels(nodes: int, branching: int) -> list[int]:
    """The level sizes of the tree with so many nodes; a ValueError that names the nearest if none."""
    if nodes < 1:
        raise ValueError("noisy has no nodes: need at least one, the root")

    def nodes_over(leaves: int) -> int:
        return sum(level_sizes(leaves, branching))

    leaves = 1 + bisect_left(range(1, nodes), nodes, key=nodes_over)
    sizes = level_sizes(leaves, branching)
    if sum(sizes) != nodes:
        fewer, more = map(nodes_over, (max(1, leaves - 1), leaves))
        raise ValueError(
            f"noisy has {nodes} nodes, which no {branching}-ary tree has: the nearest have "
            f"{fewer} and {more}, from the root down, level by level"
        )
    return sizes


def tree_sums(leaves: Num[np.ndarray, " n"], branching: int = 2) -> Float[np.ndarray, " nodes"]:
    """The whole tree over some leaves, level by level from the root down."""
    levels = [np.asarray(leaves, float)]
    while levels[-1].size > 1:
        first_children = np.arange(0, levels[-1].size, branching)
        levels.append(np.add.reduceat(levels[-1], first_children))
    return np.concatenate(levels[::-1])


def tree_least_squares(
    noisy: Num[np.ndarray, " nodes"],
    branching: int = 2,
    variances: Num[np.ndarray, "..."] | None = None,
) -> Float[np.ndarray, " nodes"]:
    """The tree nearest to `noisy` in which every node is the sum of its children.

    The result is linear in `noisy`, unbiased, and of the least variance among such (Theorem 4).

    Parameters
    ----------
    noisy : float[nodes]
        Noisy sums, level by level from the root down.
    branching : int
        The children of a node; the last of a level may have fewer.
    variances : float[levels] or float[nodes], optional
        Those of the nodes' noise, if they are not equal; the distance is weighted by their inverses.

    Returns
    -------
    float64[nodes]
        In the units of `noisy`.

    Raises
    ------
    ValueError
        For a number of nodes that no such tree has, or variances that do not fit.

    Examples
    --------
    >>> tree_least_squares([13, 3, 11, 4, 1, 12, 1]).round(9) + 0  # no minus before zero
    array([14.,  3., 11.,  3.,  0., 11.,  0.])
    """
    noisy = number_array("noisy", noisy, 1)
    sizes = sizes_of_levels(noisy.size, branching)
    starts = np.array([0, *accumulate(sizes)])
    variances = _relative_variances(variances, sizes, noisy.size)
    if len(variances) == len(noisy) != len(sizes):
        values = finite_array("noisy", noisy).copy()
        subtree_variances = variances.copy()
        average_upwards(values, subtree_variances, starts, branching)
        distribute_downwards(values, subtree_variances, starts, branching)
        return values
    values = np.empty_like(noisy)
    subtrees = _subtree_variances(variances, sizes, branching)
    weights = np.array(subtrees) / variances[:, None]
    shares = np.array(list(_shares(subtrees, sizes, branching))).reshape(-1, 2)
    top = _level_of_blocks(len(sizes), branching)

    def average(blocks: slice) -> None:
        levels = (top, len(sizes))
        _average(noisy, values, starts, branching, weights, levels, blocks.start, blocks.stop)

    def distribute(blocks: slice) -> None:
        levels = (top, len(sizes) - 1)
        _distribute(values, starts, branching, shares, levels, blocks.start, blocks.stop)

    least = 2 if noisy.size >= _NODES_FOR_THREADS else sizes[top] + 1
    in_slices(average, sizes[top], least)
    _average(noisy, values, starts, branching, weights, (0, top), 0, 1)
    if not np.isfinite(values[0]):  # every node has a part in it
        finite_array("noisy", noisy)
    _distribute(values, starts, branching, shares, (0, top), 0, 1)
    in_slices(distribute, sizes[top], least)
    return values


def _level_of_blocks(levels: int, branching: int) -> int:
    """The highest level, above the leaves, of whose nodes each has few enough leaves for a cache."""
    level = max(0, levels - 2)
    while level and branching ** (levels - level) <= _BLOCK:
        level -= 1
    return level


class _SubtreeVariances(NamedTuple):
    """Of a level's estimates from their subtrees: all nodes but the last have a full one."""

    full: float
    last: float


def _last_children(sizes: list[int], depth: int, branching: int) -> int:
    """The children of a level's last node."""
    return sizes[depth + 1] - branching * (sizes[depth] - 1)


def _subtree_variances(
    variances: Float[np.ndarray, "..."], sizes: list[int], branching: int
) -> list[_SubtreeVariances]:
    """Those of each level, the root's first."""
    subtrees = [_SubtreeVariances(variances[-1], variances[-1])]
    for depth in range(len(sizes) - 2, -1, -1):
        below = subtrees[-1]
        children = _last_children(sizes, depth, branching)
        full_sum = branching * below.full
        last_sum = (children - 1) * below.full + below.last
        full = full_sum * variances[depth] / (full_sum + variances[depth])
        last = last_sum * variances[depth] / (last_sum + variances[depth])
        subtrees.append(_SubtreeVariances(full, last))
    return subtrees[::-1]


def _shares(
    subtrees: list[_SubtreeVariances], sizes: list[int], branching: int
) -> Iterator[tuple[float, float]]:
    """What the children of each level's last node get of what is missing: each, and the last of them."""
    for depth, below in enumerate(subtrees[1:]):
        siblings = (_last_children(sizes, depth, branching) - 1) * below.full + below.last
        yield below.full / siblings, below.last / siblings


def _relative_variances(
    variances: Float[np.ndarray, "..."] | None, sizes: list[int], nodes: int
) -> Float[np.ndarray, "..."]:
    """One a level or one a node, as parts of the largest."""
    if variances is None:
        return np.ones(len(sizes))
    variances = finite_array("variances", variances)
    if variances.shape not in ((len(sizes),), (nodes,)):
        raise ValueError(
            f"variances of shape {variances.shape} are not allowed: need {len(sizes)}, one a level, "
            f"or {nodes}, one a node"
        )
    bad = variances <= 0
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(f"variances[{at}] = {variances[at]} is not allowed: need numbers > 0")
    return variances / variances.max()


@njit(cache=True, nogil=True)
def _average(noisy, values, starts, branching, weights, levels, first, stop):
    """values = weight · noisy + (1 − weight) · Σ children: the better of two estimates of one sum.

    On `levels`, from the last one up to the first, below the nodes `first` … `stop` − 1 of that: one after
    the other, as a cache holds what lies below each. Leaves are copied.
    """
    top, bottom = levels
    for block in range(first, stop):
        for depth in range(bottom - 1, top - 1, -1):
            start, end = starts[depth], starts[depth + 1]
            width = branching ** (depth - top)
            low = start + block * width
            high = min(low + width, end)
            if depth == starts.size - 2:
                values[low:high] = noisy[low:high]
                continue
            last = min(high, end - 1)  # of the level, whose last node may have fewer children
            full, other = weights[depth]
            child = end + branching * (low - start)
            _average_nodes(values, noisy, low, last, child, branching, full)
            if high == end:
                child += branching * (last - low)
                children = starts[depth + 2] - child
                _average_nodes(values, noisy, last, end, child, children, other)


@njit(cache=True, nogil=True)
def _average_nodes(values, noisy, low, high, child, children, w):
    """The nodes from `low` to `high`, of so many children each, which begin at `child`."""
    if children == 2:
        for i in range(low, high):
            values[i] = w * noisy[i] + (1 - w) * (0.0 + values[child] + values[child + 1])
            child += 2
        return
    for i in range(low, high):
        total = 0.0
        for j in range(child, child + children):
            total += values[j]
        values[i] = w * noisy[i] + (1 - w) * total
        child += children


@njit(cache=True, nogil=True)
def _distribute(values, starts, branching, shares, levels, first, stop):
    """Children get what is missing to their parent, each by its share of their variance.

    `levels` are the parents', from the first down; the rest is as in `_average`.
    """
    top, bottom = levels
    for block in range(first, stop):
        for depth in range(top, bottom):
            start, end = starts[depth], starts[depth + 1]
            width = branching ** (depth - top)
            low = start + block * width
            high = min(low + width, end)
            last = min(high, end - 1)
            child = end + branching * (low - start)
            _distribute_nodes(values, low, last, child, branching, 1.0 / branching)
            if high == end:
                child += branching * (last - low)
                children = starts[depth + 2] - child
                each, other = shares[depth]
                missing = values[last] - values[child : child + children].sum()
                _distribute_nodes(values, last, end, child, children, each)
                values[child + children - 1] += missing * (other - each)


@njit(cache=True, nogil=True)
def _distribute_nodes(values, low, high, child, children, share):
    """From the nodes from `low` to `high` to so many children each, which begin at `child`."""
    if children == 2:
        for i in range(low, high):
            each = (values[i] - (0.0 + values[child] + values[child + 1])) * share
            values[child] += each
            values[child + 1] += each
            child += 2
        return
    for i in range(low, high):
        total = 0.0
        for j in range(child, child + children):
            total += values[j]
        each = (values[i] - total) * share
        for j in range(child, child + children):
            values[j] += each
        child += children


@njit(cache=True, nogil=True)
def average_upwards(
    out: Float[np.ndarray, " nodes"],
    below: Float[np.ndarray, " nodes"],
    starts: Int[np.ndarray, " levels"],
    branching: int,
) -> None:
    """`_average` with a variance a node; `below` becomes that of each subtree's estimate."""
    for depth in range(len(starts) - 3, -1, -1):
        start, end = starts[depth], starts[depth + 1]
        for i in range(start, end):
            first = end + branching * (i - start)
            total = spread = 0.0
            for j in range(first, min(first + branching, starts[depth + 2])):
                total += out[j]
                spread += below[j]
            w = spread / (spread + below[i])
            out[i] = w * out[i] + (1 - w) * total
            below[i] *= w


@njit(cache=True, nogil=True)
def distribute_downwards(
    out: Float[np.ndarray, " nodes"],
    below: Float[np.ndarray, " nodes"],
    starts: Int[np.ndarray, " levels"],
    branching: int,
) -> None:
    """`_distribute` with a variance a node."""
    for depth in range(len(starts) - 2):
        start, end = starts[depth], starts[depth + 1]
        for i in range(start, end):
            first = end + branching * (i - start)
            last = min(first + branching, starts[depth + 2])
            missing, spread = out[i], 0.0
            for j in range(first, last):
                missing -= out[j]
                spread += below[j]
            for j in range(first, last):
                if below[j] > 0:
                    out[j] += missing * below[j] / spread
