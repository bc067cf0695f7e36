"""Consistent histograms: isotonic regression, least squares on trees, and counts of at least 0.

Isotonic:

Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, Theorem 1. scipy computes it by pooling adjacent
           violators (Barlow et al., 1972).
Differs    nothing. Pooling gives the same result as the paper's min-max formula.

Consistent:

Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 4.3: a node whose ancestor did not pass
           the filter has probably passed because of noise.
Differs    nothing. Over two attributes, every coarser node on either axis is an ancestor.

Refilter:

Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, appendix C.1: an output that is too large is
           filtered again instead of drawn again.
Differs    nothing. A lower threshold raises an error, because the cells below the old one were never
           released.

Simplex:

Source     Projection on a simplex by water-filling (Held, Wolfe & Crowder, Mathematical Programming 1974),
           in integers.
Differs    A remainder that cannot be divided evenly goes to the largest counts, in the order of keys.

Least squares:

Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, Theorem 3.
Differs    Trees need not be complete.
Cost       two passes over the tree, in blocks that fit into a processor's cache.

Nonnegative:

Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, section 4.2; Júdice & Pires, Computers & Operations
           Research 1994 (block principal pivoting).
Differs    The paper has only the heuristic.
Cost       one pass over the tree for the heuristic, and about ten times two passes for the exact solution.
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
from workbench.value import Float, Int, Num, finite_array, number_array, sealed, value

# Isotonic


def isotonic(noisy: Num[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the ascending sequence that is nearest to a noisy sequence, by squared distance.

    Parameters
    ----------
    noisy : float[n]
        Noisy numbers, whose exact values are ascending.

    Returns
    -------
    float64[n]
        Ascending sequence, in the units of `noisy`.

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
        Estimated counts.

    Returns
    -------
    float64[...]
        Integers >= 0, of the same shape.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    return np.maximum(np.rint(finite_array("values", values)), 0)


# Consistent


def consistent(tree: Summary) -> Summary:
    """Return those released nodes of a tree whose ancestors were all released too.

    The nodes must come from a filter, and not from a sample. In a sample, an ancestor may be absent by
    chance.

    Parameters
    ----------
    tree : TransformedSummary
        Release with a `Dyadic()` transform that was filtered at theta >= 1 and not sampled.

    Returns
    -------
    TransformedSummary
        Release with fewer nodes.

    Raises
    ------
    ValueError
        If `tree` was not made by a `Dyadic()` transform, was sampled, or was filtered at theta < 1.
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
    """Return those released cells whose noisy value reaches a new, higher threshold.

    The result has the same distribution as a release with this higher threshold, so you can choose the size
    of a release afterwards. Drawing again until the size is right could cost twice the budget.

    Parameters
    ----------
    summary : Summary
        Output of a filter.
    theta : float
        New threshold for |noisy value|, in counts, at least the old one.

    Returns
    -------
    Summary
        Summary with fewer cells, of the same class.

    Raises
    ------
    ValueError
        If the estimate is not the output of a filter, or the new threshold is lower than the old one.
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
    """Return integer counts >= 0 that are as near as possible to the noisy counts and have the same sum. If the
    noisy sum is negative, the new sum is 0.

    If negative counts only became 0, the sum would be too large, because the noise of empty leaves would no
    longer cancel. The function therefore lowers all counts by the same amount, but not below 0, until the
    sum is right.

    Parameters
    ----------
    leaves : Leaves
        Released leaves.

    Returns
    -------
    Leaves
        The same nodes. Their standard errors have no closed form.

    Raises
    ------
    ValueError
        If the estimate is not of the class that is named above.
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
    """Return the largest integer by which all counts can be lowered, but not below 0, while their sum
    is at least the total.
    """

    def too_much(loss: int) -> bool:
        return np.maximum(counts - loss, 0).sum() < total

    return bisect_left(range(1, int(counts.max(initial=0))), True, key=too_much)


# Least squares

_NODES_FOR_THREADS = 2**17
_BLOCK = 2**13  # leaves that are worked on at a time


def sizes_of_levels(nodes: int, branching: int) -> list[int]:
    """Return the number of nodes on each level of the tree that has `nodes` nodes. If there is no such
    tree, the error names the nearest possible numbers.
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
    """Return the sums of all nodes of the tree that has the given leaves, level by level from the root
    down.
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
    """Return the tree that is nearest to `noisy` among the trees in which every node is the sum of its
    children.

    The result is unbiased and linear in `noisy`. No other such estimate has a smaller variance (Theorem 4).

    Parameters
    ----------
    noisy : float[nodes]
        Noisy sums of equal variance, level by level from the root down.
    branching : int
        Children per node. The last node of a level may have fewer.

    Returns
    -------
    float64[nodes]
        Consistent tree, in the units of `noisy`.

    Raises
    ------
    ValueError
        If no such tree has this number of nodes.

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
    """Return the highest level above the leaves at which the leaves of a node fit in a cache."""
    level = max(0, levels - 2)
    while level and branching ** (levels - level) <= _BLOCK:
        level -= 1
    return level


class _SubtreeVariances(NamedTuple):
    """Variances of a level's estimates from their subtrees. All nodes but the last have a full subtree."""

    full: float
    last: float


def _last_children(sizes: list[int], depth: int, branching: int) -> int:
    """Return the number of children of a level's last node."""
    return sizes[depth + 1] - branching * (sizes[depth] - 1)


def _subtree_variances(sizes: list[int], branching: int) -> list[_SubtreeVariances]:
    """Return the subtree variances of each level, the root's first."""
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
    """Return the shares of a difference for the children of each level's last node: the share of each
    child, and that of the last.
    """
    for depth, below in enumerate(subtrees[1:]):
        siblings = (_last_children(sizes, depth, branching) - 1) * below.full + below.last
        yield below.full / siblings, below.last / siblings


@njit(cache=True, nogil=True)
def _average(noisy, values, starts, branching, weights, levels, first, stop):
    """Compute values = weight · noisy + (1 − weight) · Σ children, the better of two estimates of one sum.

    This covers `levels`, from the last one up to the first, below the nodes `first` … `stop` − 1 of
    that level. The nodes are processed one after the other, because everything below one node fits in a
    cache. Leaves are copied.
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
    """Average the nodes from `low` to `high`. Each has `children` children, and the first child is at
    `child`.
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
    """Give children the difference to their parent, each in proportion to its share of their variance.

    `levels` are those of the parents, from the first down. The other arguments are those of `_average`.
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
    """Distribute differences from the nodes `low` to `high`. Each has `children` children, and the
    first child is at `child`.
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
def average_upwards(
    out: Float[np.ndarray, " nodes"],
    below: Float[np.ndarray, " nodes"],
    starts: Int[np.ndarray, " levels"],
    branching: int,
) -> None:
    """Make the first pass of least squares in which each node has a variance. The pass averages from the
    leaves up, and writes the variance of each subtree's estimate to `below`.
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
def distribute_downwards(
    out: Float[np.ndarray, " nodes"],
    below: Float[np.ndarray, " nodes"],
    starts: Int[np.ndarray, " levels"],
    branching: int,
) -> None:
    """Make the second pass of least squares in which each node has a variance. The pass distributes
    corrections from the root down.
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
    """Set each node with a value <= 0 to 0, with all nodes below it. This is the paper's heuristic.

    The other nodes do not change. So a parent may then differ from the sum of its children.

    Parameters
    ----------
    consistent : float[nodes]
        Tree of sums, level by level from the root down.
    branching : int
        Children per node. The last node of a level may have fewer.

    Returns
    -------
    float64[nodes]
        Tree in the units of `consistent`, with no value below 0.

    Raises
    ------
    ValueError
        If no such tree has this number of nodes.
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
    """Return the tree that is nearest to a noisy tree, if leaves may not be negative and every node has to be
    the sum of its children.

    The solution is exact. The method, block principal pivoting, guesses which leaves are 0. In each step,
    it corrects all wrong guesses, or only one if guesses repeat. A step takes two passes over the tree, and
    about ten steps are needed.

    Parameters
    ----------
    noisy : float[nodes]
        Noisy sums of equal variance, level by level from the root down.
    branching : int
        Children per node. The last node of a level may have fewer.

    Returns
    -------
    float64[nodes]
        Tree in the units of `noisy`, with no value below 0.

    Raises
    ------
    ValueError
        If no such tree has this number of nodes.
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
        average_upwards(values, variances, starts, branching)
        distribute_downwards(values, variances, starts, branching)
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
    """Return, for every leaf, the sum of its ancestors and itself."""
    sums = nodes[:1]
    start = 1
    for size in sizes[1:]:
        sums = np.repeat(sums, branching)[:size] + nodes[start : start + size]
        start += size
    return sums


@value
class Zeroed:
    """Postprocessing of a released tree of noisy counts. It applies least squares, and then
    `zero_negative_subtrees`.

    The result answers a range from the fewest nodes. Because subtrees were set to 0, the sum of a range's
    leaves can differ from this answer. It is too large on average, because negative leaves became 0.
    """

    def __call__(self, released: HierarchicalSums) -> HierarchicalSums:
        """Post-process a released tree, free of charge.

        Parameters
        ----------
        released : HierarchicalSums
            Tree with independent noise of equal variance.

        Returns
        -------
        HierarchicalSums
            Tree. Its variances are unknown, because its nodes are correlated.

        Raises
        ------
        ValueError
            If the estimate is not of the class that is named above.
        """
        _refuse_others(released)
        k = released.branching
        values = zero_negative_subtrees(tree_least_squares(released.values, k), k)
        return HierarchicalSums(released.domain, k, sealed(values), None)


@value
class NonnegativeLeastSquares:
    """Postprocessing of a released tree of noisy counts, which gives a histogram without negative counts. Use
    it instead of the paper's heuristic, `Zeroed`.
    """

    def __call__(self, released: HierarchicalSums) -> Histogram:
        """Post-process a released tree, free of charge.

        Parameters
        ----------
        released : HierarchicalSums
            Tree with independent noise of equal variance.

        Returns
        -------
        Histogram
            Consistent leaves. The answer to a range is their sum.

        Raises
        ------
        ValueError
            If the estimate is not of the class that is named above.
        """
        _refuse_others(released)
        values = nonnegative_least_squares(released.values, released.branching)
        leaves = values[-released.domain.size :]
        return Histogram(released.domain, sealed(leaves.copy()))


def _refuse_others(released: HierarchicalSums) -> None:
    if not isinstance(released, HierarchicalSums):
        raise ValueError(f"{released!r} is not a tree of noisy sums: need HierarchicalSums")
