"""Methods that adjust noisy counts to known facts: counts that are ascending, sums in a tree that agree with
each other, and counts that are not negative.

Isotonic:

Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, Theorem 1. scipy computes it by pooling adjacent
           violators (Barlow et al., 1972).
Differs    nothing. The pooling of violators gives the same result as the min-max formula in the paper.

Consistent:

Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 4.3. The count of a region is at most the
           count of a larger region. So if the larger region did not pass the filter, the smaller region has
           probably passed only because of noise.
Differs    nothing.

Refilter:

Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, appendix C.1: a release with too many cells is
           filtered again, instead of being repeated with new noise.
Differs    nothing. A lower threshold raises an error, because cells below the old threshold were never
           released.

Simplex:

Source     Projection on a simplex (Held, Wolfe & Crowder, Mathematical Programming 1974), in integers. The
           simplex contains all lists of counts >= 0 with a given sum.
Differs    If the total decrease cannot be divided evenly among the counts, the largest counts are lowered by
           one more. Equal counts are taken in the order of their keys.

Least squares:

Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, Theorem 3.
Differs    Our trees need not be complete, so the last node of a level may have fewer children.
Cost       The time of two passes over the tree. Both passes work on blocks that fit into a processor's cache.

Nonnegative:

Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, section 4.2; Júdice & Pires, Computers & Operations
           Research 1994 (block principal pivoting).
Differs    The paper has only the heuristic (`zero_negative_subtrees`). The exact solution is our addition.
Cost       The time of one pass over the tree for the heuristic, and of about twenty passes for the exact
           solution.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from workbench.compiled import in_slices, njit
from workbench.estimates import HierarchicalSums, Histogram, Leaves, Summary, TransformedSummary
from workbench.queries import level_sizes
from workbench.queries.dyadic import DyadicBasis
from workbench.value import Float, Num, finite_array, number_array, sealed, value

# Isotonic


def isotonic(noisy: Num[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the ascending sequence that is nearest to a noisy sequence, in squared distance.

    Parameters
    ----------
    noisy : float[n]
        Noisy numbers. The true numbers are known to be in ascending order.

    Returns
    -------
    float64[n]
        Ascending sequence, of the same length and unit as `noisy`.

    Raises
    ------
    ValueError
        If `noisy` is not a sequence of finite numbers.

    Examples
    --------
    >>> isotonic([14, 9, 10, 15])
    array([11., 11., 11., 15.])
    """
    from scipy.optimize import isotonic_regression

    noisy = finite_array("noisy", noisy, 1)
    return isotonic_regression(noisy).x if len(noisy) else noisy


def round_to_counts(values: Num[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Round each number to the nearest integer >= 0.

    Parameters
    ----------
    values : float[...]
        Estimated counts, which may be negative.

    Returns
    -------
    float64[...]
        Array of integers >= 0, with the shape of `values`.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    return np.maximum(np.rint(finite_array("values", values)), 0)


# Consistent


def consistent(tree: Summary) -> Summary:
    """Return a released tree without its inconsistent nodes. A node is inconsistent if a node above it in the
    tree was not released.

    A node is an interval of cells, together with its noisy count. If there are two attributes, a node is a
    rectangle of cells. The function accepts only the output of a filter, which releases the nodes with large
    noisy counts. The function refuses random samples of nodes, because a node may be missing in a sample by
    chance.

    Parameters
    ----------
    tree : TransformedSummary
        Attribute `estimate` of a release. The release must use the transform `Dyadic()` (sums over intervals)
        and a filter with a threshold `theta` >= 1. The release must not use sampling.

    Returns
    -------
    TransformedSummary
        Estimate with the same nodes or fewer.

    Raises
    ------
    ValueError
        If `tree` does not come from a `Dyadic()` transform, if its nodes were sampled, or if the filter's
        threshold is below 1.
    """
    basis = tree.basis if isinstance(tree, TransformedSummary) else None
    if not isinstance(basis, DyadicBasis):
        raise ValueError(
            f"{tree!r} has no ancestors: need the TransformedSummary of a Dyadic() transform"
        )
    if tree.tau > 1 or tree.theta < 1:
        raise ValueError(
            f"theta = {tree.theta}, tau = {tree.tau} are not allowed: consistency needs the output "
            "of a filter with theta >= 1, before sampling"
        )
    remains = np.zeros(len(tree), bool)
    for nodes, parents_by_axis in basis.parents(tree.keys):
        remains[nodes] = True
        for parents in parents_by_axis:
            at = np.minimum(np.searchsorted(tree.keys, parents), max(len(tree) - 1, 0))
            remains[nodes] &= remains[at] & (tree.keys[at] == parents)
    return tree.where(remains, consistent=True)


# Refilter


def refilter(summary: Summary, theta: float) -> Summary:
    """Filter a released summary again with a higher threshold. The result contains the cells whose noisy value
    reaches the new threshold.

    The result has the same distribution as a release that used the higher threshold from the start. The
    function costs no budget. So if a release has too many cells, you can make the release smaller afterwards.
    Do not draw releases again and again until one of them is small enough, because each release spends the
    budget again.

    Parameters
    ----------
    summary : Summary
        Estimate of a release that was made by a filter, for example by `HighPassFilter`.
    theta : float
        New threshold for the absolute values of noisy counts, as a number of records. The new threshold must be
        at least the old one.

    Returns
    -------
    Summary
        Estimate of the same class, with the same cells or fewer.

    Raises
    ------
    ValueError
        If the estimate was not made by a filter, or if the new threshold is lower than the old one.
    """
    if not isinstance(summary, Summary):
        raise ValueError(
            f"{summary!r} has no threshold to raise: need a Summary or a TransformedSummary"
        )
    if not theta >= summary.theta:
        raise ValueError(
            f"theta = {theta!r} is not allowed: need at least the summary's own {summary.theta}"
        )
    return summary.where(np.abs(summary.values) >= theta, theta=theta)


# Simplex


def project_to_simplex(leaves: Leaves) -> Leaves:
    """Replace noisy counts by integers >= 0 that have the same sum. The integers are as near as possible to the
    noisy counts. If the sum of the noisy counts is negative, the new sum is 0.

    If the function only set negative counts to 0, the sum would be too large on average. The reason is that the
    positive and negative noise of empty regions would no longer cancel. Therefore, the function also lowers all
    other counts by the same number, but not below 0, until the sum is right.

    Parameters
    ----------
    leaves : Leaves
        Estimate with the noisy counts of the leaves of a tree, for example of `PrivTree`. A leaf is a
        region that is not divided further.

    Returns
    -------
    Leaves
        The same leaves with new counts. The standard errors of the new counts are unknown.

    Raises
    ------
    ValueError
        If the estimate is not of the class `Leaves`.
    """
    if not isinstance(leaves, Leaves):
        raise ValueError(f"{leaves!r} has no leaves to balance: need Leaves")
    total = max(0, int(leaves.values.sum()))
    loss = _largest_loss(leaves.values, total)
    counts = np.maximum(leaves.values - loss, 0)
    surplus = int(counts.sum()) - total
    counts[np.argsort(-counts, kind="stable")[:surplus]] -= 1
    return replace(leaves, values=counts, law=None)


def _largest_loss(counts: np.ndarray, total: int) -> int:
    """Return the largest integer by which all counts can be lowered, so that their sum is still at least
    `total`. Counts are not lowered below 0.
    """

    def too_much(loss: int) -> bool:
        return np.maximum(counts - loss, 0).sum() < total

    return bisect_left(range(1, int(counts.max(initial=0))), True, key=too_much)


# Least squares

_NODES_FOR_THREADS = 2**17
_BLOCK = 2**13  # leaves that are worked on at a time


def sizes_of_levels(nodes: int, branching: int) -> list[int]:
    """Return the number of nodes on each level of a tree with `nodes` nodes in total. If no tree has this
    number of nodes, the error message names the nearest possible numbers.
    """
    if nodes < 1:
        raise ValueError("noisy has no nodes: need at least one, the root")

    def nodes_over(leaves: int) -> int:
        return sum(level_sizes(leaves, branching))

    leaves = 1 + bisect_left(range(1, nodes), nodes, key=nodes_over)
    sizes = level_sizes(leaves, branching)
    if sum(sizes) != nodes:
        fewer, more = map(nodes_over, (max(1, leaves - 1), leaves))
        raise ValueError(
            f"no {branching}-ary tree has {nodes} nodes (noisy): the nearest have {fewer} and {more}. "
            "List nodes from the root down, level by level"
        )
    return sizes


def tree_sums(leaves: Num[np.ndarray, " n"], branching: int = 2) -> Float[np.ndarray, " nodes"]:
    """Return the sums of all nodes of a tree, given the counts of its leaves (lowest nodes). The sums are
    listed level by level from the root down.
    """
    levels = [np.asarray(leaves, float)]
    while levels[-1].size > 1:
        first_children = np.arange(0, levels[-1].size, branching)
        levels.append(np.add.reduceat(levels[-1], first_children))
    return np.concatenate(levels[::-1])


def tree_least_squares(
    noisy: Num[np.ndarray, " nodes"],
    branching: int = 2,
) -> Float[np.ndarray, " nodes"]:
    """Adjust a noisy tree by least squares so that every node is the sum of its children.

    The result is unbiased and linear in `noisy`. No other unbiased linear estimate has a smaller variance
    (Theorem 4 of Hay, Rastogi, Miklau & Suciu, PVLDB 2010).

    Parameters
    ----------
    noisy : float[nodes]
        Noisy sums of all nodes, level by level from the root down. The noise of each sum must have the same
        variance.
    branching : int
        Number of children per node. The last node of a level may have fewer children.

    Returns
    -------
    float64[nodes]
        Adjusted sums of all nodes, in the same order and unit as `noisy`.

    Raises
    ------
    ValueError
        If no tree with this branching has this number of nodes.

    Examples
    --------
    >>> tree_least_squares([13, 3, 11, 4, 1, 12, 1]).round(9) + 0  # no minus before zero
    array([14.,  3., 11.,  3.,  0., 11.,  0.])
    """
    noisy = number_array("noisy", noisy, 1)
    sizes = sizes_of_levels(noisy.size, branching)
    starts = np.array([0, *accumulate(sizes)])
    values = np.empty_like(noisy)
    subtrees = _subtree_variances(sizes, branching)
    weights = np.array(subtrees)
    pairs = list(_shares(subtrees, sizes, branching))
    shares = np.array(pairs).reshape(-1, 2)
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
    """Return the highest level of a tree such that all leaves below one node of this level fit in the
    processor's cache.
    """
    level = max(0, levels - 2)
    while level and branching ** (levels - level) <= _BLOCK:
        level -= 1
    return level


class _SubtreeVariances(NamedTuple):
    """Variances of the estimated sums on one level of a tree, if each sum is estimated only from its node and
    the nodes below it. `last` is the variance for the last node, which may have fewer nodes below it. `full`
    is the variance for every other node.
    """

    full: float
    last: float


def _last_children(sizes: list[int], depth: int, branching: int) -> int:
    """Return the number of children of the last node on the level `depth` of a tree."""
    return sizes[depth + 1] - branching * (sizes[depth] - 1)


def _subtree_variances(sizes: list[int], branching: int) -> list[_SubtreeVariances]:
    """Return the variances of the estimated sums on each level of a tree, from the root to the leaves (see
    `_SubtreeVariances`).
    """
    subtrees = [_SubtreeVariances(1.0, 1.0)]
    for depth in range(len(sizes) - 2, -1, -1):
        below = subtrees[-1]
        children = _last_children(sizes, depth, branching)
        full_sum = branching * below.full
        last_sum = (children - 1) * below.full + below.last
        full = full_sum / (full_sum + 1)
        subtrees.append(_SubtreeVariances(full, last_sum / (last_sum + 1)))
    return subtrees[::-1]


def _shares(
    subtrees: list[_SubtreeVariances], sizes: list[int], branching: int
) -> Iterator[tuple[float, float]]:
    """Yield two numbers for each level: the shares in which a difference is divided among the children of the
    level's last node. The second number is the share of the last child, and the first is the share of every
    other child.
    """
    for depth, below in enumerate(subtrees[1:]):
        siblings = (_last_children(sizes, depth, branching) - 1) * below.full + below.last
        yield below.full / siblings, below.last / siblings


@njit(cache=True, nogil=True)
def _average(noisy, values, starts, branching, weights, levels, first, stop):
    """Compute values = weight · noisy + (1 − weight) · Σ children. This is the weighted mean of two estimates
    of the same sum.

    The function goes through the levels from `levels[1]` − 1 up to `levels[0]`. It covers only the nodes
    `first` … `stop` − 1 of level `levels[0]`, and the nodes below them. All nodes below one of these nodes
    fit in a cache, so the function finishes them before it goes on. Leaves are copied.
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
    """Compute the weighted means of `_average` for the nodes `low` … `high` − 1. Each of these nodes has
    `children` children, and the first child of the first node is at position `child`.
    """
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
    """Divide the difference between each parent and the sum of its children among the children, in proportion
    to their variances.

    The parents are on the levels from `levels[0]` down to `levels[1]` − 1. The other arguments are the same
    as for `_average`.
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
    """Divide the differences as in `_distribute` for the parents `low` … `high` − 1. Each parent has
    `children` children, and the first child of the first parent is at position `child`.
    """
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
def _average_upwards(out, below, starts, branching):
    """Make the first pass of least squares on a tree whose nodes may have different variances. From the
    leaves upwards, it replaces the sums `out` by weighted means, and the variances `below` by the variances
    of these means.
    """
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
def _distribute_downwards(out, below, starts, branching):
    """Make the second pass of least squares, after `_average_upwards`. From the root downwards, it divides the
    difference between a parent and the sum of its children among the children.
    """
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


# Nonnegative

_ROUNDING = 1e-13  # of the largest noisy sum: less says nothing about a sign
_PATIENCE = 3  # exchanges of all wrong leaves that may not help


def zero_negative_subtrees(
    consistent: Num[np.ndarray, " nodes"], branching: int = 2
) -> Float[np.ndarray, " nodes"]:
    """Set each node with a value <= 0 to 0, together with all nodes below this node. Hay, Rastogi, Miklau &
    Suciu (PVLDB 2010) propose this heuristic.

    The other nodes do not change. Therefore, the value of a node may then differ from the sum of its children.

    Parameters
    ----------
    consistent : float[nodes]
        Sums of all nodes, level by level from the root down.
    branching : int
        Number of children per node. The last node of a level may have fewer children.

    Returns
    -------
    float64[nodes]
        Sums of all nodes, without negative values, in the same order and unit as `consistent`.

    Raises
    ------
    ValueError
        If no tree with this branching has this number of nodes.
    """
    values = finite_array("consistent", consistent, 1).copy()
    starts = accumulate(sizes_of_levels(values.size, branching), initial=0)
    levels = [values[start:end] for start, end in pairwise(starts)]
    np.maximum(levels[0], 0, out=levels[0])
    for parents, children in pairwise(levels):
        np.maximum(children, 0, out=children)
        children[np.repeat(parents == 0, branching)[: children.size]] = 0
    return values


def nonnegative_least_squares(
    noisy: Num[np.ndarray, " nodes"], branching: int = 2
) -> Float[np.ndarray, " nodes"]:
    """Adjust a noisy tree by least squares so that no leaf is negative and every node is the sum of its
    children.

    The result is the exact least-squares solution. The function uses a method that is called block principal
    pivoting. The method guesses which leaves (lowest nodes of the tree) are 0, and corrects all wrong guesses
    in each step. If a step no longer reduces the number of wrong guesses, the method corrects only one guess
    per step. A step takes two passes over the tree, and about ten steps are needed.

    Parameters
    ----------
    noisy : float[nodes]
        Noisy sums of all nodes, level by level from the root down. The noise of each sum must have the same
        variance.
    branching : int
        Number of children per node. The last node of a level may have fewer children.

    Returns
    -------
    float64[nodes]
        Adjusted sums of all nodes, without negative values, in the same order and unit as `noisy`.

    Raises
    ------
    ValueError
        If no tree with this branching has this number of nodes.
    """
    noisy = finite_array("noisy", noisy, 1)
    sizes = sizes_of_levels(noisy.size, branching)
    starts = np.array(list(accumulate(sizes, initial=0)))
    leaves = slice(-sizes[-1], None)
    at_zero = np.zeros(sizes[-1], bool)
    fewest_wrong = noisy.size + 1
    patience = _PATIENCE
    slack = _ROUNDING * np.abs(noisy).max()
    while True:
        values = noisy.copy()
        variances = np.ones(noisy.size)
        values[leaves][at_zero] = 0
        variances[leaves][at_zero] = 0
        _average_upwards(values, variances, starts, branching)
        _distribute_downwards(values, variances, starts, branching)
        # of the squared distance, along each leaf: positive where a leaf at 0 is rightly there
        gradient = _sums_to_leaves(values - noisy, sizes, branching)
        wrong = np.where(at_zero, gradient < -slack, values[leaves] < -slack)
        count = int(np.count_nonzero(wrong))
        if not count:
            return tree_sums(np.maximum(values[leaves], 0), branching)
        patience = _PATIENCE if count < fewest_wrong else patience - 1
        fewest_wrong = min(count, fewest_wrong)
        if patience < 0:  # Murty's rule, which ends but for rounding
            wrong[: np.flatnonzero(wrong)[-1]] = False
            slack *= 1.01
        at_zero ^= wrong


def _sums_to_leaves(
    nodes: Float[np.ndarray, " nodes"], sizes: list[int], branching: int
) -> Float[np.ndarray, " leaves"]:
    """Return one number per leaf: its value plus the values of all nodes above it."""
    sums = nodes[:1]
    start = 1
    for size in sizes[1:]:
        sums = np.repeat(sums, branching)[:size] + nodes[start : start + size]
        start += size
    return sums


@value
class Zeroed:
    """Method that improves a released tree of noisy counts at no privacy cost. The method applies least
    squares (`tree_least_squares`). Then the method sets each node with a value <= 0 to 0, together with all
    nodes below this node (`zero_negative_subtrees`).

    The improved tree answers a range query with the sum of the fewest nodes that cover the range. The sum of
    the leaves (lowest nodes) in the range can differ from this answer, because nodes were set to 0. On
    average, the sum of the leaves is too large.
    """

    def __call__(self, released: HierarchicalSums) -> HierarchicalSums:
        """Return the improved tree, at no cost in budget.

        Parameters
        ----------
        released : HierarchicalSums
            Noisy tree. The noise of its nodes must be independent and have the same variance.

        Returns
        -------
        HierarchicalSums
            Tree without negative sums. The standard errors of the sums are unknown.

        Raises
        ------
        ValueError
            If the estimate is not of the class `HierarchicalSums`.
        """
        _refuse_others(released)
        k = released.branching
        values = zero_negative_subtrees(tree_least_squares(released.values, k), k)
        return HierarchicalSums(released.domain, k, sealed(values), None)


@value
class NonnegativeLeastSquares:
    """Method that computes a histogram without negative counts from a released tree of noisy counts, at no
    privacy cost. This method has smaller errors than `Zeroed`, the heuristic of Hay, Rastogi, Miklau & Suciu
    (PVLDB 2010).
    """

    def __call__(self, released: HierarchicalSums) -> Histogram:
        """Return the histogram, at no cost in budget.

        Parameters
        ----------
        released : HierarchicalSums
            Noisy tree. The noise of its nodes must be independent and have the same variance.

        Returns
        -------
        Histogram
            Counts of all cells. The answer to a range query is the sum of the cells in the range.

        Raises
        ------
        ValueError
            If the estimate is not of the class `HierarchicalSums`.
        """
        _refuse_others(released)
        values = nonnegative_least_squares(released.values, released.branching)
        leaves = values[-released.domain.size :]
        return Histogram(released.domain, sealed(leaves.copy()))


def _refuse_others(released: HierarchicalSums) -> None:
    if not isinstance(released, HierarchicalSums):
        raise ValueError(f"{released!r} is not a tree of noisy sums: need HierarchicalSums")
