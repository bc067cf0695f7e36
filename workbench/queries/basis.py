"""Interface of transforms of a table's counts, and the tree of dyadic intervals, which are obtained by
halving the list of all cells again and again.
"""

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
    """Return the number of nodes on each level of a tree, from the root down. Each node has `branching`
    children, and the lowest level has `leaves` nodes.

    If the number of leaves is not a power of `branching`, the last node of a level may have fewer children.
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
    """Tree of dyadic intervals over m cells. Each level halves the intervals of the level above, so an
    interval at depth d has 2^(height − d) cells. Intervals at depth `height` are single cells.
    """

    def __init__(self, m: int):
        self.m = m
        self.height = (m - 1).bit_length()
        self.sizes = level_sizes(m, 2)

    def cover(
        self, lo: Int[np.ndarray, " n"], hi: Int[np.ndarray, " n"], last: bool
    ) -> Iterator[tuple[int, Int[np.ndarray, " k"]]]:
        """Find the fewest dyadic intervals (nodes) that together make up each range of cells. A range
        contains the cells from `lo` to `hi` − 1.

        The method goes through the levels from the leaves to the root. For each level, it yields the depth
        and one node per range, or −1 for a range that needs no node of this level.

        A range needs at most two nodes of a level, a left one and a right one. The method yields the left
        nodes, or with `last` the right nodes. If a range reaches the end of the domain, a node may extend
        beyond the end.
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
    """Consecutive nodes (transformed counts) that get noise from the same distribution. One record changes
    `nodes_per_count` of the nodes.

    The changed nodes are on different levels. `widths` has one number per level: a node of this level is the
    sum of at most this many cells, or the difference between two such sums.
    """

    size: int
    nodes_per_count: int
    share: Fraction  # of ε
    widths: tuple[int, ...] = (1,)
    weight: Fraction = Fraction(1)  # of Gaussian noise: its rate, relative to other blocks

    def l2_squared(self, bound: Any) -> Fraction:
        """Return the squared l2 sensitivity of all nodes (transformed counts) in the block. It is the largest
        sum of squared changes that one protected unit can cause.

        `bound` says how much one protected unit, for example a person, can change the counts. The result is
        exact or an upper bound.
        """
        return sum((bound.merged(width).l2_squared for width in self.widths), Fraction(0))


class NodeWeights(NamedTuple):
    """Nodes (transformed counts) from which parts of queries, called pieces, are computed. The value of node
    `nodes[i]` times `factor[i]` is added to the piece with the number `pieces[i]`.
    """

    pieces: Int[np.ndarray, " k"]
    nodes: Int[np.ndarray, " k"]
    factor: Float[np.ndarray, " k"] | float


class Basis(Protocol):
    """Interface of linear transforms of the counts of a table. A transformed count is called a node.
    Mechanisms add noise to the nodes. In the simplest case, the nodes are the counts themselves.
    """

    @property
    def transform(self) -> Any:
        """Transform that is applied to the counts of a table, for example `Haar()`. The value is None if the
        counts are not transformed.
        """

    @property
    def domain(self) -> Domain:
        """Domain of the table whose counts the basis transforms."""

    @property
    def noise_blocks(self) -> tuple[NodeBlock, ...]:
        """Blocks of consecutive nodes (transformed counts). All nodes of a block get noise from the same
        distribution. Together, the blocks contain all nodes.
        """

    def forward(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"]
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Transform the counts of a table. The cell with the key (identifier) keys[j] has the count
        counts[j], and all other cells are empty. Return two arrays. The first contains the identifiers of the
        nodes (transformed counts) that depend on the cells in `keys`, in ascending order. The second contains
        the values of these nodes. All other nodes are 0.
        """

    def within(self, start: int, bits: int) -> list[tuple[int, int]]:
        """Return the nodes (transformed counts) that depend on the cells of one range and on no other cell.
        The result is a list of runs of consecutive nodes. A run is a pair (first, end), which stands for the
        nodes numbered from `first` to `end` − 1.

        The range has 2^`bits` cells and begins at the cell `start`, which is a multiple of 2^`bits`.
        """

    def forward_within(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"], bits: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Transform the counts of the cells in one range of 2^`bits` cells. Return only those nodes
        (transformed counts) that depend on no cell outside the range.
        """

    def forward_above(
        self, starts: Int[np.ndarray, " n"], bits: int, totals: Num[np.ndarray, " n"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the nodes (transformed counts) that `within` returns for none of the given ranges. Such
        nodes usually depend on the cells of several ranges. Return two arrays: the identifiers and the values
        of these nodes.

        Together, the ranges contain all cells. Range i begins at the cell starts[i] and has 2^bits[i] cells.
        The sum of the counts in range i is totals[i].
        """


class TransformBasis(Basis, Protocol):
    """Interface of a transform of a table's counts. In addition to the methods of `Basis`, this interface has
    methods that find the nodes (transformed counts) needed for the answer to a query.
    """

    def pieces(self, workload: Workload) -> tuple[Int[np.ndarray, " pieces"], Workload]:
        """Split queries into pieces that `terms` can process, for example into ranges. Return two values. The
        first is an array that contains, for each piece, the position of its query in the list of queries. The
        second contains the pieces.
        """

    def terms(self, pieces: Workload) -> Iterator[NodeWeights]:
        """Yield the nodes (transformed counts) that are needed for pieces of queries, for example for ranges.
        Each node comes with a factor. The value of a piece is the sum of its nodes, each multiplied by its
        factor. The nodes come in several batches, and a batch contains at most one node per piece.
        """

    def places(self, nodes: Int[np.ndarray, " k"]) -> dict[str, np.ndarray]:
        """Return a dictionary of columns that describe the given nodes (transformed counts). For each node,
        the columns contain its level in the tree, its first cell, and the cell after its last cell.
        """


@dataclass(frozen=True)
class Cells:
    """Basis (transform of the counts of a table) that leaves the counts unchanged. Every transformed count,
    called a node, is the count of one cell.
    """

    domain: Domain
    transform: ClassVar[None] = None

    @property
    def noise_blocks(self) -> tuple[NodeBlock, ...]:
        """One block with all cells, which get noise from the same distribution."""
        return (NodeBlock(self.domain.size, 1, Fraction(1)),)

    def forward(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells and their counts unchanged."""
        return keys, counts

    def within(self, start: int, bits: int) -> list[tuple[int, int]]:
        """Return the cells of a range as one run: a pair of its first cell and the cell after its last cell."""
        return [(start, min(start + (1 << bits), self.domain.size))]

    def forward_within(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"], bits: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells and their counts unchanged."""
        return keys, counts

    def forward_above(
        self, starts: Int[np.ndarray, " n"], bits: int, totals: Num[np.ndarray, " n"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return no nodes (transformed counts), because without a transform no node depends on more than one
        cell.
        """
        return np.zeros(0, np.int64), np.zeros(0, np.int64)


def basis_of(transform: Any, domain: Domain) -> Basis:
    """Return a basis: an object that applies the transform to the counts of tables on a domain. If the
    transform is None, the basis leaves the counts unchanged.
    """
    return Cells(domain) if transform is None else transform.on(domain)


def sums_by_node(nodes: list[Any], values: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the different nodes (transformed counts) in ascending order. Also return, for each node, the sum
    of all values that are listed for this node.
    """
    each_node = np.concatenate([np.zeros(0, np.int64), *nodes])
    distinct, which = np.unique(each_node, return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, which, np.concatenate([np.zeros(0, np.int64), *values]))
    return distinct, sums
