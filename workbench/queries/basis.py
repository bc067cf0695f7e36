"""Transforms of counts to another basis, and the intervals of a tree over consecutive cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from workbench.queries.ranges import Workload
from workbench.spaces import Domain
from workbench.value import Float, Int, Num

# Axis


def level_sizes(leaves: int, branching: int) -> list[int]:
    """Return the number of nodes on each level of a tree, from the root down. Each node has k children, and the
    tree has `leaves` leaves.

    If the tree is not complete, it ends at its last leaf. There are no nodes beyond it.
    """
    if not isinstance(branching, int | np.integer) or branching < 2:
        raise ValueError(f"branching = {branching!r} is not allowed: need an integer >= 2")
    if leaves < 1:
        raise ValueError(f"leaves = {leaves!r} is not allowed: need at least 1")
    sizes = [int(leaves)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // branching))
    return sizes[::-1]


class Axis:
    """Dyadic intervals over m cells. An interval at depth d has 2^(height − d) cells."""

    def __init__(self, m: int):
        self.m = m
        self.height = (m - 1).bit_length()
        self.sizes = level_sizes(m, 2)

    def cover(
        self, lo: Int[np.ndarray, " n"], hi: Int[np.ndarray, " n"], last: bool
    ) -> Iterator[tuple[int, Int[np.ndarray, " k"]]]:
        """Find the fewest nodes that make up each range. Yield them level by level from the leaves, as
        (depth, node of each range or −1).

        A level has at most two of these nodes for a range, a left one and a right one. The method yields
        the left nodes. With `last`, it yields the right nodes. If a range reaches the end of the domain,
        its nodes may extend beyond the end.
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


# Basis


class NodeBlock(NamedTuple):
    """Consecutive nodes whose noise has one distribution. One record changes `nodes_per_count` of these
    nodes.

    The nodes that it changes are on different levels. `widths` has one number per level. A node of the
    level is a sum of at most this many cells, or the difference between two such sums.
    """

    size: int
    nodes_per_count: int
    share: Fraction  # of ε
    widths: tuple[int, ...] = (1,)
    weight: Fraction = Fraction(1)  # of Gaussian noise: its rate, relative to other blocks

    def l2_squared(self, bound: Any) -> Fraction:
        """Return the squared l2 sensitivity of all nodes to one unit with this bound. The result may be an
        upper bound.
        """
        return sum((bound.merged(width).l2_squared for width in self.widths), Fraction(0))


class NodeWeights(NamedTuple):
    """Nodes from which the pieces of a query are computed. Add `factor[i]` times the value of `nodes[i]` to
    piece `pieces[i]`.
    """

    pieces: Int[np.ndarray, " k"]
    nodes: Int[np.ndarray, " k"]
    factor: Float[np.ndarray, " k"] | float


class Basis(Protocol):
    """Linear transform of a table's counts, to which a mechanism adds noise. Its coefficients are called nodes.
    In the simplest basis, the nodes are the cells themselves.
    """

    @property
    def transform(self) -> Any:
        """Transform of the basis, or None if the nodes are the cells of the domain."""

    @property
    def domain(self) -> Domain:
        """Domain of the table whose counts the basis transforms."""

    @property
    def noise_blocks(self) -> tuple[NodeBlock, ...]:
        """Blocks of consecutive nodes that get noise from one distribution. Together they contain all
        nodes.
        """

    def forward(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"]
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Transform the counts of a table. Return the nodes whose value is not 0 in ascending order, and their
        values.
        """

    def within(self, start: int, bits: int) -> list[tuple[int, int]]:
        """Return the nodes that lie within a range of cells, as runs (first, last + 1). The range has
        2^`bits` cells from `start` on. `start` is a multiple of 2^`bits`.
        """

    def forward_within(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"], bits: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the same as `forward` for the cells in one range, but only the nodes that `within` gives
        for this range.
        """

    def forward_above(
        self, starts: Int[np.ndarray, " n"], bits: int, totals: Num[np.ndarray, " n"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the same as `forward` for the nodes above several ranges. The ranges make up the domain,
        and `sums` has the sum of each.
        """


class TransformBasis(Basis, Protocol):
    """Linear transform of a table's counts. Its coefficients are called nodes, and it finds the nodes from
    which a query is computed.
    """

    def pieces(self, workload: Workload) -> tuple[Int[np.ndarray, " pieces"], Workload]:
        """Split queries into pieces that `terms` can answer. Return the pieces, and the query to which each
        belongs.
        """

    def terms(self, pieces: Workload) -> Iterator[NodeWeights]:
        """Yield, in several batches, all nodes from which the pieces of queries are computed. A batch has at
        most one node for each piece.
        """

    def places(self, nodes: Int[np.ndarray, " k"]) -> dict[str, np.ndarray]:
        """Return the places of nodes as columns. They are the level, the first cell, and the last cell + 1."""


@dataclass(frozen=True)
class Cells:
    """Basis without a transform, in which every node is a cell."""

    domain: Domain
    transform: ClassVar[None] = None

    @property
    def noise_blocks(self) -> tuple[NodeBlock, ...]:
        """Return all cells as one block."""
        return (NodeBlock(self.domain.size, 1, Fraction(1)),)

    def forward(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the counts."""
        return keys, counts

    def within(self, start: int, bits: int) -> list[tuple[int, int]]:
        """Return the cells."""
        return [(start, min(start + (1 << bits), self.domain.size))]

    def forward_within(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"], bits: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the counts."""
        return keys, counts

    def forward_above(
        self, starts: Int[np.ndarray, " n"], bits: int, totals: Num[np.ndarray, " n"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return no nodes, because in this basis each node is a single cell."""
        return np.zeros(0, np.int64), np.zeros(0, np.int64)


def basis_of(transform: Any, domain: Domain) -> Basis:
    """Return the basis that belongs to a transform on the domain. If the transform is None, its nodes are the
    cells.
    """
    return Cells(domain) if transform is None else transform.on(domain)


def sums_by_node(nodes: list[Any], values: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct nodes in ascending order. For each, also return the sum of its values."""
    each_node = np.concatenate([np.zeros(0, np.int64), *nodes])
    distinct, which = np.unique(each_node, return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, which, np.concatenate([np.zeros(0, np.int64), *values]))
    return distinct, sums
