"""Intervals of a tree over consecutive cells: how many there are, and which cover a range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.arrays import Int


def level_sizes(leaves: int, branching: int) -> list[int]:
    """How many nodes each level of a k-ary tree over `leaves` has, from the root down.

    A tree that is not complete ends at its last leaf: what would lie beyond does not exist.
    """
    if not isinstance(branching, int | np.integer) or branching < 2:
        raise ValueError(f"branching = {branching!r} is not allowed: need a whole number >= 2")
    if leaves < 1:
        raise ValueError(f"leaves = {leaves!r} is not allowed: need at least 1")
    sizes = [int(leaves)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // branching))
    return sizes[::-1]


class Axis:
    """Dyadic intervals over m cells: at depth d those of 2^(height − d) cells."""

    def __init__(self, m: int):
        self.m = m
        self.height = (m - 1).bit_length()
        self.sizes = level_sizes(m, 2)

    def cover(
        self, lo: Int[np.ndarray, " n"], hi: Int[np.ndarray, " n"], last: bool
    ) -> Iterator[tuple[int, Int[np.ndarray, " k"]]]:
        """The minimal cover of ranges, leaves first: (depth, node of each range or −1).

        Of at most two nodes a level it gives the left ones, or with `last` the right ones. A range up
        to the end of the domain may take the padding along.
        """
        to_end = hi == self.m
        for depth in range(self.height, -1, -1):
            end = np.where(to_end, self.sizes[depth], hi)
            open_ = lo < end
            left = open_ & (lo & 1 == 1) | (depth == 0) & open_
            right = open_ & ~to_end & (end & 1 == 1) & (depth > 0)
            yield (
                depth,
                np.where(right, end - 1, -1) if last else np.where(left, lo, -1),
            )
            lo = np.where(open_, lo + left >> 1, self.m)
            hi = end - right >> 1
