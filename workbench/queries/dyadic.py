"""Transform of counts to sums over dyadic intervals of cells, or over boxes with one dyadic interval in each
of two attributes. Dyadic intervals are obtained by halving again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, product
from math import prod
from typing import Any

import numpy as np

from workbench.compiled import njit
from workbench.queries.basis import Axis, NodeBlock, NodeWeights, sums_by_node
from workbench.queries.ranges import Boxes, Ranges, Workload
from workbench.spaces.domain import MAX_CELLS, Domain
from workbench.value import Int, Num, not_allowed, parameter, value

# How much more each finer level gets, split="geometric". Least Σ 2^j/ε_j² at Σ ε_j = ε; and least
# Σ 2^j·σ_j² at Σ 1/(2σ_j²) = ρ, where 1/σ_j² is what a level gets.
_RATIO = 2 ** (1 / 3)
_L2_RATIO = 2 ** (1 / 2)


@value
class Dyadic:
    """Transform of the counts of a table to sums over dyadic intervals, which form a tree. The interval at
    the top contains all cells. Each level consists of the halves of the intervals above. To answer a range
    query, the workbench adds up the sums of at most two intervals per level.

    With `dims` = 2, the sums are over boxes. A box has one dyadic interval in each of two attributes.

    `split` says how the levels of the tree share the privacy budget. With "uniform", all levels get the same
    share, as Cormode, Procopiuc, Srivastava & Tran (ICDT 2012) propose. With "geometric", each level gets 2^⅓
    times as much ε, or √2 times as much ρ, as the level above it. Cormode, Procopiuc, Srivastava, Shen & Yu
    (ICDE 2012) propose this split for queries that use many small intervals.
    """

    dims: int = parameter(1, choices=(1, 2), doc="number of attributes (2 for boxes)")
    split: str = parameter(
        "uniform", choices=("uniform", "geometric"), doc="how the levels share the budget"
    )

    @property
    def series(self) -> str:
        """Name of the transform for the legends of figures."""
        name = "dyadic" if self.dims == 1 else "dyadic boxes"
        return name if self.split == "uniform" else f"weighted {name}"

    def on(self, domain: Domain) -> DyadicBasis:
        """Return an object that computes the sums of counts over all dyadic intervals of a domain. Dyadic
        intervals are obtained by halving the list of all cells again and again.

        Parameters
        ----------
        domain : Domain
            Domain of the table. If `dims` is 2, the domain must have two attributes.

        Returns
        -------
        DyadicBasis
            Object that computes the sums. Each interval consists of consecutive cells, in the order of the
            domain. If `dims` is 2, the sums are over boxes with one interval per attribute.

        Raises
        ------
        ValueError
            If `dims` is 2 but the domain does not have two attributes, or if there are more than 2⁶³ − 1
            intervals or boxes.
        """
        if self.dims > 1 and len(domain.shape) != self.dims:
            why = f"need 1, or a domain of {self.dims} attributes"
            raise not_allowed(self, "dims", why, f" on {len(domain.shape)} attributes")
        return DyadicBasis(self, domain)


@dataclass(frozen=True)
class DyadicBasis:
    """Sums of counts over all dyadic intervals (or boxes) of a domain. Dyadic intervals are obtained by
    halving the list of all cells again and again. The sums are called nodes, and are numbered.
    """

    transform: Dyadic
    domain: Domain

    def __post_init__(self) -> None:
        if self.size > MAX_CELLS:
            raise ValueError(
                f"a domain of {self.domain.size} cells has {self.size} dyadic nodes: need at most "
                f"{MAX_CELLS}"
            )

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Trees of dyadic intervals. There is one tree over all cells, in the order of the domain. If the
        sums are over boxes, there is one tree per attribute.
        """
        sizes = self.domain.shape if self.transform.dims > 1 else (self.domain.size,)
        return tuple(map(Axis, sizes))

    @cached_property
    def levels(self) -> list[tuple[int, ...]]:
        """List of the levels, in lexicographic order. A level is given by its depth in each tree of `axes`,
        where depth 0 is the root.
        """
        return list(product(*(range(axis.height + 1) for axis in self.axes)))

    @cached_property
    def starts(self) -> list[int]:
        """Number of the first node (sum) of each level. The last entry is the number of all nodes."""
        return list(accumulate(map(prod, map(self.shape, self.levels)), initial=0))

    def start(self, *level: int) -> int:
        """Return the number of the first node (sum) of a level. The level is given by its depth in each tree
        of `axes`.
        """
        return self.starts[self.levels.index(level)]

    def shape(self, level: tuple[int, ...]) -> tuple[int, ...]:
        """Return the number of intervals that a level has in each tree of `axes`."""
        return tuple(axis.sizes[d] for axis, d in zip(self.axes, level, strict=True))

    @property
    def size(self) -> int:
        """Number of all nodes, which are the sums over intervals or boxes."""
        return self.starts[-1]

    @property
    def noise_blocks(self) -> tuple[NodeBlock, ...]:
        """Blocks of nodes (sums) that get noise from the same distribution. If the levels get different
        shares of the budget, each level is a block. Otherwise there is one block.
        """
        if self.transform.split == "uniform" or len(self.levels) == 1:
            widths = tuple(map(self._width, self.levels))
            return (NodeBlock(self.size, len(self.levels), Fraction(1), widths),)
        weights = [Fraction(_RATIO ** sum(level)) for level in self.levels]
        total = sum(weights)
        sizes = np.diff(np.array(self.starts, object))
        return tuple(
            NodeBlock(
                int(n), 1, w / total, (self._width(level),), Fraction(_L2_RATIO ** sum(level))
            )
            for n, w, level in zip(sizes, weights, self.levels, strict=True)
        )

    def _width(self, level: tuple[int, ...]) -> int:
        """Return the number of cells in the interval or box of a node of this level."""
        return prod(1 << axis.height - d for axis, d in zip(self.axes, level, strict=True))

    def forward(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the sums over all intervals (or boxes). The counts belong to the cells with the numbers
        `keys`. Return the numbers of the nodes (sums) whose intervals contain such cells, in ascending order,
        and their values. All other nodes are 0.
        """
        if len(self.axes) == 1:
            return self._forward(keys, counts)
        rows, columns = self.axes
        nodes = []
        values = []
        for i, up in product(range(rows.height + 1), range(columns.height + 1)):
            if up == 0:  # a new row of levels, from the cells
                cells = (keys // columns.m >> rows.height - i) * columns.m + keys % columns.m
                order = np.argsort(cells, kind="stable")
                level, sums = _sums_of_equal(cells[order], counts[order])
            else:
                width = columns.sizes[-up]
                above = columns.sizes[-up - 1]
                level, sums = _sums_of_equal(
                    level // width * above + (level % width >> 1), sums
                )
            nodes.append(level + self.start(i, columns.height - up))
            values.append(sums)
        each_node = np.concatenate(nodes)
        order = np.argsort(each_node)
        return each_node[order], np.concatenate(values)[order]

    def within(self, start: int, bits: int) -> list[tuple[int, int]]:
        """Return the nodes (sums) whose intervals are inside a range of cells. The range begins at the cell
        `start` and has 2^`bits` cells. There is one run of node numbers per level, given as (first, last +
        1).
        """
        (axis,) = self.axes
        runs = []
        for depth in range(axis.height - bits, axis.height + 1):
            width = axis.height - depth
            high = min(start + (1 << bits) >> width, axis.sizes[depth])
            runs.append((self.starts[depth] + (start >> width), self.starts[depth] + high))
        return runs

    def forward_within(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"], bits: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the sums over all intervals inside one range of 2^`bits` cells. All cells `keys` are in
        this range. Return the numbers of the nodes (sums) and their values.
        """
        return self._forward(keys, counts, self.axes[0].height - bits)

    def forward_above(
        self, starts: Int[np.ndarray, " n"], bits: int, totals: Num[np.ndarray, " n"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the sum over each interval that is longer than a range in it. The domain is divided into
        ranges of cells. Range i begins at the cell starts[i], has 2^bits[i] cells, and has the sum totals[i].
        Return the numbers of the nodes (sums) and their values.
        """
        (axis,) = self.axes
        nodes = []
        values = []
        for depth in range(axis.height):
            width = axis.height - depth
            is_above = bits < width
            nodes.append(self.starts[depth] + (starts[is_above] >> width))
            values.append(totals[is_above])
        return sums_by_node(nodes, values)

    def _forward(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"], least: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the sums over the intervals of one tree, from the finest level up to the level at depth
        `least`. Each level is computed from the level below it.
        """
        (axis,) = self.axes
        sizes = _distinct_prefixes(keys, axis.height)[: axis.height - least + 1]
        ends = np.concatenate([np.zeros(least, np.int64), np.cumsum(sizes[::-1])])
        nodes = np.empty(ends[-1], np.int64)
        values = np.empty(ends[-1], np.int64)
        nodes[ends[-1] - len(keys) :] = keys + self.starts[axis.height]
        values[ends[-1] - len(keys) :] = counts
        for d in range(axis.height, least, -1):
            level = slice(ends[d] - sizes[axis.height - d], ends[d])
            above = slice(level.start - sizes[axis.height - d + 1], level.start)
            _sum_pairs(
                nodes[level], values[level], self.starts[d], self.starts[d - 1],
                nodes[above], values[above],
            )  # fmt: skip
        return nodes, values

    def pieces(self, workload: Workload) -> tuple[Int[np.ndarray, " pieces"], Any]:
        """Split queries into pieces: ranges of cells, or boxes if the nodes are boxes. Return the number of
        the query to which each piece belongs, and the pieces.
        """
        if len(self.axes) == 1:
            return workload.intervals(self.domain)
        if isinstance(workload, Boxes):
            return np.arange(len(workload)), workload
        query_of_range, ranges = workload.intervals(self.domain)
        range_of_box, boxes = ranges.boxes(self.domain)
        return query_of_range[range_of_box], boxes

    def terms(self, pieces: Any) -> Iterator[NodeWeights]:
        """Yield the fewest nodes (intervals or boxes) that together make up each piece. A piece is a range or
        box of cells. All nodes have the factor 1.
        """
        if isinstance(pieces, Ranges):
            yield from self._terms_of_ranges(pieces)
            return
        rows = self._axis_cover(0, pieces)
        columns = self._axis_cover(1, pieces)
        for (i, row), (j, column) in product(rows, columns):
            covered = np.flatnonzero((row >= 0) & (column >= 0))
            if covered.size:
                node = row[covered] * self.axes[1].sizes[j] + column[covered]
                yield NodeWeights(covered, node + self.start(i, j), 1.0)

    def _terms_of_ranges(self, ranges: Ranges) -> Iterator[NodeWeights]:
        (axis,) = self.axes
        for last, ends in ((False, ranges.lo), (True, ranges.hi)):
            order = np.argsort(ends)  # searches in order are an order of magnitude faster
            for depth, node in axis.cover(ranges.lo[order], ranges.hi[order], last):
                covered = np.flatnonzero(node >= 0)
                if covered.size:
                    node = node[covered] + self.starts[depth]
                    yield NodeWeights(order[covered], node, 1.0)

    def _axis_cover(self, i: int, boxes: Boxes) -> list[tuple[int, Int[np.ndarray, " boxes"]]]:
        """Return the intervals that together make up each box along one attribute. For each level, a pair
        contains the depth and one node per box, or −1 for a box that needs no node of this level.
        """
        cover: list[Any] = []
        for last in (False, True):
            cover += self.axes[i].cover(boxes.lo[:, i], boxes.hi[:, i], last)
        return [(depth, node) for depth, node in cover if (node >= 0).any()]

    def parents(
        self, nodes: Int[np.ndarray, " n"]
    ) -> Iterator[tuple[slice, list[Int[np.ndarray, " k"]]]]:
        """Yield the given nodes (sums) level by level, each with its parents. The parent of an interval is
        the interval twice as long that contains it. A box has one parent per attribute.

        The given nodes must be in ascending order. For each level, a slice says which of the nodes are on it.
        """
        ends = np.searchsorted(nodes, np.array(self.starts))
        for i, level in enumerate(self.levels):
            in_level = slice(ends[i], ends[i + 1])
            places = np.unravel_index(nodes[in_level] - self.starts[i], self.shape(level))
            parents = []
            for axis, depth in enumerate(level):
                if depth:
                    above = (*level[:axis], depth - 1, *level[axis + 1 :])
                    up = [x >> 1 if k == axis else x for k, x in enumerate(places)]
                    node = np.ravel_multi_index(up, self.shape(above))
                    parents.append(node + self.start(*above))
            yield in_level, parents

    def places(self, nodes: Int[np.ndarray, " n"]) -> dict[str, np.ndarray]:
        """Return columns that describe the given nodes (sums): the depth of the interval, its first cell, and
        the cell after its last one. For a box, there are such columns for each attribute, with codes (numbers
        of values) in place of cells.
        """
        level = np.searchsorted(np.array(self.starts), nodes, side="right") - 1
        names = ("",) if len(self.axes) == 1 else tuple(f"{a} " for a in self.domain.attributes)
        columns: dict[str, np.ndarray] = {}
        rest = nodes - np.array(self.starts)[level]
        shapes = np.array([self.shape(level) for level in self.levels])
        for i, (name, axis) in enumerate(zip(names, self.axes, strict=True)):
            inner = shapes[level, i + 1 :].prod(axis=1)
            depth = np.array(self.levels)[level, i]
            place = rest // inner
            rest = rest % inner
            columns[f"{name}level"] = depth
            columns[f"{name}lo"] = place << axis.height - depth
            columns[f"{name}hi"] = np.minimum(place + 1 << axis.height - depth, axis.m)
        return columns


def _sums_of_equal(
    keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the different keys in a sorted list, and the sum of the counts for each of them."""
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[starts], np.add.reduceat(counts, starts) if len(starts) else counts


def _distinct_prefixes(
    keys: Int[np.ndarray, " n"], height: int
) -> Int[np.ndarray, " height+1"]:
    """Return, for each i from 0 to `height`, how many different numbers remain if the last i bits of the
    sorted keys are removed.
    """
    if not len(keys):
        return np.zeros(height + 1, np.int64)
    tally = np.zeros(64, np.int64)
    _highest_differences(keys, tally)
    return 1 + tally[::-1].cumsum()[::-1][1 : height + 2]


@njit(cache=True, nogil=True)
def _highest_differences(keys, tally):
    """Compare each key with the key before it. If the highest bit in which the two differ is bit b, counted
    from 1, add 1 to tally[b].
    """
    for i in range(1, keys.size):
        x, b = keys[i] ^ keys[i - 1], 0
        while x:
            x >>= 1
            b += 1
        tally[b] += 1


@njit(cache=True, nogil=True)
def _sum_pairs(nodes, values, start, start_above, out_nodes, out_values):
    """Compute the sums on one level of a tree from the sums on the level below it, by adding pairs of
    neighbouring nodes.
    """
    k = -1
    for i in range(nodes.size):
        node = (nodes[i] - start >> 1) + start_above
        if k < 0 or out_nodes[k] != node:
            k += 1
            out_nodes[k] = node
            out_values[k] = 0
        out_values[k] += values[i]
