"""How far synthetic points are from the true ones, in space."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.arrays import Float, Int
from workbench.compiled import njit
from workbench.hierarchy import Quadtree
from workbench.metrics.refusal import refuse_private
from workbench.records import Records
from workbench.value import not_allowed, parameter, value


@value
class EarthMover:
    """Indyk's bound on the earth mover's distance, from counts of cells at all levels.

    Σ over levels 0 … `depth`, and over the cells of each, of a cell's diameter × how many records one
    side has there more than the other. The box that is halved counts as a unit cube, so that the
    result is in records × its side. For two sets of n records it is, with n × the diameter of the last
    level, at least the sum of the distances that records must move. `seed` places points in leaves.
    """

    depth: int = parameter(low=0, high=52, integer=True, unit="levels", doc="the finest cells")
    seed: int = parameter(0, 0, integer=True, doc="of the points")

    def __call__(self, truth: Records, estimate: Any) -> float:
        """The sum over all levels.

        Parameters
        ----------
        truth : Records
            Over a `Quadtree`, whose truth is public.
        estimate : Leaves or Records
            Records that are public, or an estimate that has `synthetic` ones.

        Returns
        -------
        float
            In records × side.

        Raises
        ------
        ValueError
            If the truth is private, or the sides are no points in one Quadtree that is deep enough.
        """
        return float(self.levels(truth, estimate).sum())

    def levels(self, truth: Records, estimate: Any) -> Float[np.ndarray, " levels"]:
        """The part of each level, the root's first.

        Parameters
        ----------
        truth : Records
            Over a `Quadtree`, whose truth is public.
        estimate : Leaves or Records
            Records that are public, or an estimate that has `synthetic` ones.

        Returns
        -------
        float64[levels]
            In records × side.

        Raises
        ------
        ValueError
            If the truth is private, or the sides are no points in one Quadtree that is deep enough.
        """
        tree = truth.hierarchy
        ours = _public_records(truth)
        theirs = _public_records(estimate, self.seed)
        if not isinstance(tree, Quadtree) or theirs.hierarchy != tree:
            raise ValueError(
                f"EarthMover compares points in one Quadtree, not {tree!r} and {theirs.hierarchy!r}"
            )
        if self.depth > tree.depth:
            raise not_allowed(self, "depth", f"{tree!r} is no deeper")
        word = np.array([0, *map(tree.digits.word_of_level, range(self.depth))])
        bits = [n.bit_length() - 1 for n in tree.digits.widths[: self.depth]]
        differences = np.zeros(self.depth + 1, np.int64)
        _add_differences(
            ours.keys,
            _copies(ours),
            theirs.keys,
            _copies(theirs),
            word,
            np.array([0, *bits]).astype(np.uint64),
            differences,
        )
        return differences * np.sqrt(tree.dims) / 2.0 ** np.arange(self.depth + 1)


def _public_records(data: Any, seed: int = 0) -> Records:
    """Records that may be compared: the synthetic ones of an estimate, or those that are public."""
    records = data if isinstance(data, Records) else data.synthetic(seed)
    refuse_private(records)
    return records


def _copies(records: Records) -> Int[np.ndarray, " records"]:
    """How many copies of each; none where each is one."""
    return np.empty(0, np.int64) if records.counts is None else records.counts


@njit(cache=True, nogil=True)
def _add_differences(a, many, b, others, word, width, apart):
    """One pass over both sides, in the order of keys, with a running sum for the node at each level."""
    i, j, depth = 0, 0, apart.size - 1
    sums, high, low = np.zeros(depth + 1, np.int64), np.uint64(0), np.uint64(0)
    while i < a.shape[1] or j < b.shape[1]:
        ours = j == b.shape[1]
        if not ours and i < a.shape[1]:
            ours = a[0, i] < b[0, j] or (a[0, i] == b[0, j] and a[-1, i] <= b[-1, j])
        if ours:
            h, l, n = a[0, i], a[-1, i], many[i] if many.size else 1  # noqa: E741
            i += 1
        else:
            h, l, n = b[0, j], b[-1, j], -others[j] if others.size else -1  # noqa: E741
            j += 1
        level = depth
        while level > 0:
            shift = width[level]
            if word[level] == 0:
                same = h >> shift == high >> shift
            else:
                same = h == high and l >> shift == low >> shift
            if same:
                break
            apart[level] += abs(sums[level])
            sums[level - 1] += sums[level]
            sums[level] = 0
            level -= 1
        high, low = h, l
        sums[depth] += n
    for level in range(depth, -1, -1):
        apart[level] += abs(sums[level])
        if level:
            sums[level - 1] += sums[level]
