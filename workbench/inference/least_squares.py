"""Least squares over a k-ary tree of noisy sums: the consistent tree with the least variance.

Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, Theorem 3; with other variances the same
           recursion, weighted by their inverses (Honaker, 2015).
Differs    trees need not be complete, and variances not be equal.
Cost       two passes over the tree, and one copy of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from workbench.arrays import Float, Int, Num, finite_array
from workbench.compiled import njit
from workbench.threads import in_slices
from workbench.transform import level_sizes

_NODES_FOR_THREADS = 2**17  # a level of fewer is one's


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
    noisy = finite_array("noisy", noisy, 1)
    sizes = sizes_of_levels(noisy.size, branching)
    starts = list(accumulate(sizes, initial=0))
    variances = _relative_variances(variances, sizes, noisy.size)
    values = _copy(noisy)
    if len(variances) == len(noisy) != len(sizes):
        subtree_variances = variances.copy()
        average_upwards(values, subtree_variances, np.array(starts), branching)
        distribute_downwards(values, subtree_variances, np.array(starts), branching)
        return values
    levels = [values[start:end] for start, end in pairwise(starts)]
    subtrees = _subtree_variances(variances, sizes, branching)
    for depth in range(len(sizes) - 2, -1, -1):
        full, last = (variance / variances[depth] for variance in subtrees[depth])
        _on_threads(
            _average_level, levels[depth], levels[depth + 1], branching, full, last, full
        )
    for depth in range(len(sizes) - 1):
        children = _last_children(sizes, depth, branching)
        below = subtrees[depth + 1]
        siblings = (children - 1) * below.full + below.last
        full, last = (variance / siblings for variance in below)
        _on_threads(
            _distribute_level,
            levels[depth],
            levels[depth + 1],
            branching,
            full,
            last,
            1 / branching,
        )
    return values


def _copy(values: Float[np.ndarray, " nodes"]) -> Float[np.ndarray, " nodes"]:
    """A copy: threads share the work of giving it memory."""
    copy = np.empty_like(values)

    def write(part: slice) -> None:
        copy[part] = values[part]

    in_slices(write, values.size, _NODES_FOR_THREADS)
    return copy


def _on_threads(
    kernel: Callable[..., None],
    own: Float[np.ndarray, " nodes"],
    children: Float[np.ndarray, " nodes"],
    branching: int,
    full: float,
    last: float,
    inner: float,
) -> None:
    """A level, cut among threads; the last node of its last part is that of the level."""

    def run(part: slice) -> None:
        below = children[branching * part.start : branching * part.stop]
        if part.stop == own.size:
            kernel(own[part], below, branching, full, last)
        else:
            kernel(own[part], below, branching, inner, inner)

    in_slices(run, own.size, _NODES_FOR_THREADS)


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
def _average_level(
    own: Float[np.ndarray, " nodes"],
    children: Float[np.ndarray, " nodes"],
    branching: int,
    weight: float,
    weight_last: float,
) -> None:
    """own = weight · own + (1 − weight) · Σ children: the better of two estimates of one sum."""
    for i in range(own.size):
        w = weight_last if i == own.size - 1 else weight
        total = 0.0
        for j in range(branching * i, min(branching * (i + 1), children.size)):
            total += children[j]
        own[i] = w * own[i] + (1 - w) * total


@njit(cache=True, nogil=True)
def _distribute_level(
    own: Float[np.ndarray, " nodes"],
    children: Float[np.ndarray, " nodes"],
    branching: int,
    share: float,
    share_last: float,
) -> None:
    """Children get what is missing to their parent, each by its share of their variance."""
    for i in range(own.size):
        first, end = branching * i, min(branching * (i + 1), children.size)
        total = 0.0
        for j in range(first, end):
            total += children[j]
        each = (own[i] - total) * (share if end == children.size else 1.0 / branching)
        for j in range(first, end):
            children[j] += each
        if end == children.size:
            children[end - 1] += (own[i] - total) * (share_last - share)


@njit(cache=True, nogil=True)
def average_upwards(
    out: Float[np.ndarray, " nodes"],
    below: Float[np.ndarray, " nodes"],
    starts: Int[np.ndarray, " levels"],
    branching: int,
) -> None:
    """`_average_level` with a variance a node; `below` becomes that of each subtree's estimate."""
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
    """`_distribute_level` with a variance a node."""
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
