"""Consistent trees without negative counts: the paper's heuristic, and the exact least squares.

Source     Hay, Rastogi, Miklau & Suciu, PVLDB 2010, section 4.2; Júdice & Pires, Computers & Operations
           Research 1994 (block principal pivoting).
Differs    the paper has the heuristic alone.
Cost       the heuristic one pass over the tree; the exact solution some ten times two passes.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from workbench.arrays import Float, Num, finite_array
from workbench.estimates import HierarchicalSums, Histogram
from workbench.inference.least_squares import (
    average_upwards,
    distribute_downwards,
    sizes_of_levels,
    tree_least_squares,
    tree_sums,
)
from workbench.value import sealed, value

_ROUNDING = 1e-13  # of the largest noisy sum: less says nothing about a sign
_PATIENCE = 3  # exchanges of all wrong leaves that may not help


def zero_negative_subtrees(
    consistent: Num[np.ndarray, " nodes"], branching: int = 2
) -> Float[np.ndarray, " nodes"]:
    """The paper's heuristic: where a node is not positive, it and all below it become 0.

    Nodes that remain are left as they are, so that parents of zeroed nodes exceed their children's sum.

    Parameters
    ----------
    consistent : float[nodes]
        A tree of sums, level by level from the root down.
    branching : int
        The children of a node; the last of a level may have fewer.

    Returns
    -------
    float64[nodes]
        In the units of `consistent`, none below 0.

    Raises
    ------
    ValueError
        For a number of nodes that no such tree has.
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
    """The nearest tree in which every node is the sum of its children and no leaf is negative.

    Exact, by block principal pivoting: leaves are guessed to be 0 or free, and all that turn out wrong
    change sides, one at a time where that goes in circles. A guess costs two passes over the tree, and
    there are some ten.

    Parameters
    ----------
    noisy : float[nodes]
        Noisy sums of equal variance, level by level from the root down.
    branching : int
        The children of a node; the last of a level may have fewer.

    Returns
    -------
    float64[nodes]
        In the units of `noisy`, none below 0.

    Raises
    ------
    ValueError
        For a number of nodes that no such tree has.
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
    """For every leaf, the sum of its ancestors and itself."""
    sums = nodes[:1]
    start = 1
    for size in sizes[1:]:
        sums = np.repeat(sums, branching)[:size] + nodes[start : start + size]
        start += size
    return sums


@value
class Zeroed:
    """Least squares on a released tree, then `zero_negative_subtrees`.

    Ranges are answered from the fewest nodes. Zeroing leaves parents above the sum of their children, so
    that a range's nodes and its leaves give different answers: the nodes had their errors cancel, the
    leaves have lost the negative ones.
    """

    def __call__(self, released: HierarchicalSums) -> HierarchicalSums:
        """Post-process a released tree, at no cost.

        Parameters
        ----------
        released : HierarchicalSums
            With independent noise of one variance.

        Returns
        -------
        HierarchicalSums
            Its nodes are not independent any more, and so of no known variance.

        Raises
        ------
        ValueError
            For another estimate.
        """
        _refuse_others(released)
        k = released.branching
        values = zero_negative_subtrees(tree_least_squares(released.values, k), k)
        return HierarchicalSums(released.domain, k, sealed(values), None)


@value
class NonnegativeLeastSquares:
    """`nonnegative_least_squares` on a released tree: a histogram in place of the paper's heuristic."""

    def __call__(self, released: HierarchicalSums) -> Histogram:
        """Post-process a released tree, at no cost.

        Parameters
        ----------
        released : HierarchicalSums
            With independent noise of one variance.

        Returns
        -------
        Histogram
            The leaves, which are consistent, so that a range is their sum.

        Raises
        ------
        ValueError
            For another estimate.
        """
        _refuse_others(released)
        values = nonnegative_least_squares(released.values, released.branching)
        leaves = values[-released.domain.size :]
        return Histogram(released.domain, sealed(leaves.copy()))


def _refuse_others(released: HierarchicalSums) -> None:
    if not isinstance(released, HierarchicalSums):
        raise ValueError(f"{released!r} is no tree of noisy sums: need HierarchicalSums")
