"""Least squares over a k-ary tree of noisy sums: the consistent tree with the least variance.

Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, Theorem 3 and section 4.2; with
           other variances the same recursion, weighted by their inverses (Honaker, 2015).
Differs    trees need not be complete, and variances not be equal; the non-negative solution is exact.
Cost       two passes over the tree, and one copy of it.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from jaxtyping import Float, Num

from workbench.compiled import njit
from workbench.estimates import HierarchicalSums, Histogram
from workbench.inference.isotonic import finite_array
from workbench.transform import level_sizes
from workbench.value import sealed, value


def sizes_of_levels(nodes: int, branching: int) -> list[int]:
    """The level sizes of the tree with so many nodes; a ValueError that names the nearest if none."""
    if nodes < 1:
        raise ValueError("noisy has no nodes: need at least one, the root")
    low, high = 1, nodes
    while low < high:
        middle = (low + high) // 2
        low, high = (
            (low, middle)
            if sum(level_sizes(middle, branching)) >= nodes
            else (middle + 1, high)
        )
    sizes = level_sizes(low, branching)
    if sum(sizes) != nodes:
        near = [sum(level_sizes(n, branching)) for n in (max(1, low - 1), low)]
        raise ValueError(
            f"noisy has {nodes} nodes, which no {branching}-ary tree has: the nearest have "
            f"{near[0]} and {near[1]}, from the root down, level by level"
        )
    return sizes


def tree_least_squares(
    noisy: Num[np.ndarray, " nodes"],
    branching: int = 2,
    variances: Num[np.ndarray, "..."] | None = None,
) -> Float[np.ndarray, " nodes"]:
    """The tree nearest to `noisy` in which every node is the sum of its children.

    Nodes stand level by level from the root down. `variances` are those of the nodes' noise: none for
    equal ones, one a level, or one a node; the distance is weighted by their inverses. The result is
    linear in `noisy`, unbiased, and of the least variance among such (Theorem 4).

    >>> tree([13, 3, 11, 4, 1, 12, 1]).round(9) + 0  # no minus before zero
    array([14.,  3., 11.,  3.,  0., 11.,  0.])
    """
    noisy = finite_array("noisy", noisy, 1)
    sizes = sizes_of_levels(noisy.size, branching)
    starts = list(accumulate(sizes, initial=0))
    spread = _spread(variances, sizes, noisy.size)
    out = noisy.copy()
    if len(spread) == len(noisy) != len(sizes):
        below = spread.copy()
        _up_each(out, below, np.array(starts), branching)
        _down_each(out, below, np.array(starts), branching)
        return out
    # all nodes of a level but the last have a full subtree, hence one variance
    full, last = [spread[-1]], [spread[-1]]
    for depth in range(len(sizes) - 2, -1, -1):
        children = sizes[depth + 1] - branching * (sizes[depth] - 1)
        sums = branching * full[-1], (children - 1) * full[-1] + last[-1]
        own, (one, end) = spread[depth], (s * spread[depth] / (s + spread[depth]) for s in sums)
        _up(
            out[starts[depth] : starts[depth + 1]],
            out[starts[depth + 1] : starts[depth + 2]],
            branching,
            one / own,
            end / own,
        )
        full.append(one)
        last.append(end)
    for depth in range(len(sizes) - 1):
        children = sizes[depth + 1] - branching * (sizes[depth] - 1)
        one, end = full[-2 - depth], last[-2 - depth]
        _down(
            out[starts[depth] : starts[depth + 1]],
            out[starts[depth + 1] : starts[depth + 2]],
            branching,
            one / ((children - 1) * one + end),
            end / ((children - 1) * one + end),
        )
    return out


def zero_negative_subtrees(
    consistent: Num[np.ndarray, " nodes"], branching: int = 2
) -> Float[np.ndarray, " nodes"]:
    """The paper's heuristic: where a node is not positive, it and all below it become 0.

    Nodes that remain are left as they are, so that parents of zeroed nodes exceed their children's sum.
    """
    out = finite_array("consistent", consistent, 1).copy()
    starts = list(accumulate(sizes_of_levels(out.size, branching), initial=0))
    for depth in range(len(starts) - 1):
        own = out[starts[depth] : starts[depth + 1]]
        np.maximum(own, 0, out=own)
        if depth:
            above = out[starts[depth - 1] : starts[depth]]
            own[np.repeat(above == 0, branching)[: own.size]] = 0
    return out


def nonnegative_least_squares(
    noisy: Num[np.ndarray, " nodes"], branching: int = 2
) -> Float[np.ndarray, " nodes"]:
    """The nearest tree in which every node is the sum of its children and no leaf is negative.

    Exact, by block principal pivoting (Júdice & Pires, 1994): leaves are guessed to be 0 or free, and
    all that turn out wrong change sides, one at a time where that goes in circles. A guess costs two
    passes over the tree, and there are some ten.
    """
    noisy = finite_array("noisy", noisy, 1)
    sizes = sizes_of_levels(noisy.size, branching)
    starts, leaves = np.array(list(accumulate(sizes, initial=0))), slice(-sizes[-1], None)
    zero, least, patience = np.zeros(sizes[-1], bool), noisy.size + 1, 3
    slack = 1e-13 * np.abs(noisy).max()  # near rounding
    while True:
        out, below = noisy.copy(), np.ones(noisy.size)
        out[leaves][zero] = below[leaves][zero] = 0
        _up_each(out, below, starts, branching)
        _down_each(out, below, starts, branching)
        pull = _totals(out - noisy, sizes, branching)  # towards 0, at those that are held there
        wrong = np.where(zero, pull < -slack, out[leaves] < -slack)
        if not (n := np.count_nonzero(wrong)):
            return tree_sums(np.maximum(out[leaves], 0), branching)
        patience = 3 if n < least else patience - 1
        least = min(n, least)
        if patience < 0:  # Murty's rule, which ends but for rounding
            wrong[: np.flatnonzero(wrong)[-1]] = False
            slack *= 1.01
        zero ^= wrong


@value
class Zeroed:
    """Least squares on a released tree, then `nonnegative`; ranges are answered from the fewest nodes.

    Zeroing leaves parents above the sum of their children, so that a range's nodes and its leaves give
    different answers: the nodes had their errors cancel, the leaves have lost the negative ones.
    """

    def __call__(self, released: HierarchicalSums) -> HierarchicalSums:
        """A tree whose nodes are not independent any more, and so of no known variance."""
        k = _noisy(released).branching
        values = sealed(zero_negative_subtrees(tree_least_squares(released.values, k), k))
        return HierarchicalSums(released.domain, k, values, None)


@value
class NonnegativeLeastSquares:
    """`nonnegative_least_squares` on a released tree: a histogram in place of the paper's heuristic."""

    def __call__(self, released: HierarchicalSums) -> Histogram:
        """Its leaves, which are consistent, so that a range is their sum."""
        k, n = _noisy(released).branching, released.domain.size
        leaves = nonnegative_least_squares(released.values, k)[-n:]
        return Histogram(released.domain, sealed(leaves.copy()))


def _noisy(released: HierarchicalSums) -> HierarchicalSums:
    if not isinstance(released, HierarchicalSums):
        raise ValueError(f"{released!r} is no tree of noisy sums: need Intervals")
    return released


def tree_sums(leaves: Num[np.ndarray, " n"], branching: int = 2) -> Float[np.ndarray, " nodes"]:
    """The whole tree over some leaves, level by level from the root down."""
    found = [np.asarray(leaves, float)]
    while found[-1].size > 1:
        found.append(np.add.reduceat(found[-1], np.arange(0, found[-1].size, branching)))
    return np.concatenate(found[::-1])


def _totals(nodes, sizes: list[int], branching: int):
    """For every leaf, the sum of its ancestors and itself."""
    total, start = nodes[:1], 1
    for size in sizes[1:]:
        total = np.repeat(total, branching)[:size] + nodes[start : start + size]
        start += size
    return total


def _spread(variances, sizes: list[int], nodes: int) -> Float[np.ndarray, "..."]:
    if variances is None:
        return np.ones(len(sizes))
    spread = finite_array("variances", variances)
    if spread.shape not in ((len(sizes),), (nodes,)):
        raise ValueError(
            f"variances of shape {spread.shape} are not allowed: need {len(sizes)}, one a level, or "
            f"{nodes}, one a node"
        )
    if (bad := spread <= 0).any():
        at = int(bad.argmax())
        raise ValueError(f"variances[{at}] = {spread[at]} is not allowed: need numbers > 0")
    return spread / spread.max()


@njit(cache=True, nogil=True)
def _up(own, children, branching, weight, weight_last):
    """own = weight · own + (1 − weight) · Σ children: the better of two estimates of one sum."""
    for i in range(own.size):
        w = weight_last if i == own.size - 1 else weight
        total = 0.0
        for j in range(branching * i, min(branching * (i + 1), children.size)):
            total += children[j]
        own[i] = w * own[i] + (1 - w) * total


@njit(cache=True, nogil=True)
def _down(own, children, branching, share, share_last):
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
def _up_each(out, below, starts, branching):
    """`_up` with a variance a node; `below` becomes that of each subtree's estimate."""
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
def _down_each(out, below, starts, branching):
    """`_down` with a variance a node."""
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
