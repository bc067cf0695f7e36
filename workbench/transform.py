"""Counts in another basis: dyadic sums and Haar differences, with their sensitivity.

A transform placed on a domain is a *basis*: numbered nodes, the parts of them that share one noise law,
the sparse transform of a table's counts, and which nodes a query needs. Nodes are numbered from the
root down, level by level, and only those that meet the domain exist: a domain that is no power of two
is padded with cells that are publicly empty, get no noise and are in no answer.

Source  Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 3 and Theorem 4 (appendix C.5); Haar:
        Xiao, Wang & Gehrke, ICDE 2010, in its unnormalised form.
Differs a cell lies in log₂m + 1 dyadic intervals, leaf and root included, where the paper counts log₂m;
        Haar coefficients stay whole numbers, so that all of them get the same noise.
Cost    O(n·log(m/n)) nodes for n non-empty cells out of m; nothing depends on m alone but log m.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, product
from math import prod
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Int

from workbench.compiled import njit
from workbench.domain import MAX_CELLS, Domain
from workbench.value import parameter, value
from workbench.workload import Boxes, Ranges, Workload

_RATIO = 2 ** (1 / 3)  # how much more each finer level gets, split="geometric"


class NodeBlock(NamedTuple):
    """Consecutive nodes with one noise law: one count moves `touched` of them, for `share` of ε."""

    size: int
    nodes_per_count: int
    share: Fraction


class NodeWeights(NamedTuple):
    """What some pieces of a query need: piece `which[i]` takes `factor[i]` times `nodes[i]`."""

    pieces: Int[np.ndarray, " k"]
    nodes: Int[np.ndarray, " k"]
    factor: Float[np.ndarray, " k"] | float


class Basis(Protocol):
    """A transform on a domain."""

    domain: Domain
    noise_blocks: tuple[NodeBlock, ...]

    def forward(self, keys, counts) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Sorted nodes and values of the counts; nodes that are left out have the value 0."""

    def pieces(self, workload: Workload) -> tuple[Int[np.ndarray, " pieces"], Workload]:
        """The pieces that `terms` can answer, and which query each belongs to."""

    def terms(self, pieces: Workload) -> Iterator[NodeWeights]:
        """Every node that a piece needs, once a piece; a term names a piece at most once."""

    def places(self, nodes: Int[np.ndarray, " k"]) -> dict[str, np.ndarray]:
        """Columns that say where nodes lie: level, and first and last + 1 of their cells."""


@dataclass(frozen=True)
class Cells:
    """No transform: every node is a cell."""

    domain: Domain

    @property
    def noise_blocks(self) -> tuple[NodeBlock, ...]:
        """All cells in one."""
        return (NodeBlock(self.domain.size, 1, Fraction(1)),)

    def forward(self, keys, counts):
        """The counts themselves."""
        return keys, counts


@value
class Dyadic:
    """Sums over dyadic intervals: ranges from at most two nodes a level.

    With `dims` = 2, over products of a dyadic interval of each of two attributes. `split` says how the
    budget is shared among levels: "uniform", as in the paper, or "geometric", where each finer level
    gets 2^⅓ times as much (Cormode, Procopiuc, Srivastava, Shen & Yu, ICDE 2012, whose queries need
    more of the fine nodes than a range does).
    """

    dims: int = parameter(1, choices=(1, 2), doc="2: boxes over two attributes")
    split: str = parameter("uniform", choices=("uniform", "geometric"), doc="of ε by level")

    def on(self, domain: Domain) -> DyadicBasis:
        """The tree over the domain's keys, or the product of its two attributes' trees."""
        if self.dims > 1 and len(domain.shape) != self.dims:
            raise ValueError(
                f"Dyadic.dims = {self.dims} is not allowed on {len(domain.shape)} attributes: need 1, "
                f"or a domain of {self.dims} attributes"
            )
        return DyadicBasis(self, domain)


@value
class Haar:
    """Unnormalised Haar wavelet: the total, and left minus right half of every dyadic interval."""

    def on(self, domain: Domain) -> HaarBasis:
        """The wavelet over the domain's keys."""
        return HaarBasis(domain)


TRANSFORMS_BY_NAME = {cls.__name__: cls for cls in (Dyadic, Haar)}
TRANSFORMS = (Dyadic(), Haar(), Dyadic(2), Dyadic(split="geometric"), Dyadic(2, "geometric"))


def basis_of(transform: Dyadic | Haar | None, domain: Domain) -> Basis:
    """The transform on the domain, or its cells where there is none."""
    return Cells(domain) if transform is None else transform.on(domain)


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
        self.m, self.height = m, (m - 1).bit_length()
        self.nodes = level_sizes(m, 2)

    def cover(self, lo, hi, last: bool) -> Iterator[tuple[int, Int[np.ndarray, " k"]]]:
        """The minimal cover of ranges, leaves first: (depth, node of each range or −1).

        Of at most two nodes a level it gives the left ones, or with `last` the right ones. A range up
        to the end of the domain may take the padding along.
        """
        whole = hi == self.m
        for depth in range(self.height, -1, -1):
            end = np.where(whole, self.nodes[depth], hi)
            some = lo < end
            left = some & (lo & 1 == 1) | (depth == 0) & some
            right = some & ~whole & (end & 1 == 1) & (depth > 0)
            yield depth, np.where(right, end - 1, -1) if last else np.where(left, lo, -1)
            lo, hi = np.where(some, lo + left >> 1, self.m), end - right >> 1


@dataclass(frozen=True)
class DyadicBasis:
    """Dyadic sums over a domain."""

    transform: Dyadic
    domain: Domain

    def __post_init__(self):
        if self.size > MAX_CELLS:
            raise ValueError(
                f"a domain of {self.domain.size} cells has {self.size} dyadic nodes: need at most "
                f"{MAX_CELLS}"
            )

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The key order, or each attribute's."""
        return tuple(
            map(Axis, self.domain.shape if self.transform.dims > 1 else (self.domain.size,))
        )

    @cached_property
    def levels(self) -> list[tuple[int, ...]]:
        """The depth on each axis, coarse before fine."""
        return list(product(*(range(axis.height + 1) for axis in self.axes)))

    @cached_property
    def starts(self) -> list[int]:
        """The number of each level's first node, and how many nodes there are."""
        return list(accumulate(map(prod, map(self.shape, self.levels)), initial=0))

    def shape(self, level: tuple[int, ...]) -> tuple[int, ...]:
        """How many nodes a level has along each axis."""
        return tuple(axis.nodes[d] for axis, d in zip(self.axes, level, strict=True))

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return self.starts[-1]

    @property
    def noise_blocks(self) -> tuple[NodeBlock, ...]:
        """All nodes in one, or a part a level."""
        if self.transform.split == "uniform" or len(self.levels) == 1:
            return (NodeBlock(self.size, len(self.levels), Fraction(1)),)
        weights = [Fraction(_RATIO ** sum(level)) for level in self.levels]
        sizes = np.diff(np.array(self.starts, object))
        return tuple(
            NodeBlock(int(n), 1, w / sum(weights)) for n, w in zip(sizes, weights, strict=True)
        )

    def forward(self, keys, counts):
        """The dyadic sums of sparse counts."""
        if len(self.axes) == 1:
            return self._forward(keys, counts)
        rows, columns = self.axes
        nodes, values = [], []
        for i, up in product(range(rows.height + 1), range(columns.height + 1)):
            if up == 0:  # a new row of levels, from the cells
                at = (keys // columns.m >> rows.height - i) * columns.m + keys % columns.m
                order = np.argsort(at, kind="stable")
                level = _summed(at[order], counts[order])
            else:
                n, width = columns.nodes[-up], columns.nodes[-up - 1]
                level = _summed(level[0] // n * width + (level[0] % n >> 1), level[1])
            start = self.starts[self.levels.index((i, columns.height - up))]
            nodes.append(level[0] + start)
            values.append(level[1])
        nodes, values = np.concatenate(nodes), np.concatenate(values)
        order = np.argsort(nodes)
        return nodes[order], values[order]

    def _forward(self, keys, counts):
        (axis,) = self.axes
        distinct = _distinct(keys, axis.height)
        ends = np.cumsum(distinct[::-1])
        nodes, values = np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64)
        nodes[ends[-1] - len(keys) :] = keys + self.starts[axis.height]
        values[ends[-1] - len(keys) :] = counts
        for d in range(axis.height, 0, -1):
            own = slice(ends[d] - distinct[axis.height - d], ends[d])
            above = slice(own.start - distinct[axis.height - d + 1], own.start)
            _coarser(
                nodes[own],
                values[own],
                self.starts[d],
                self.starts[d - 1],
                nodes[above],
                values[above],
            )
        return nodes, values

    def pieces(self, workload):
        """Ranges of keys; with two axes boxes."""
        if len(self.axes) == 1:
            return workload.intervals(self.domain)
        if isinstance(workload, Boxes):
            return np.arange(len(workload)), workload
        which, ranges = workload.intervals(self.domain)
        piece, boxes = ranges.boxes(self.domain)
        return which[piece], boxes

    def terms(self, pieces):
        """The nodes of each minimal cover, with factor 1."""
        if isinstance(pieces, Ranges):
            (axis,) = self.axes
            for last, ends in ((False, pieces.lo), (True, pieces.hi)):
                order = np.argsort(ends)  # searches in order are an order of magnitude faster
                lo, hi = pieces.lo[order], pieces.hi[order]
                for depth, node in axis.cover(lo, hi, last):
                    if not (some := np.flatnonzero(node >= 0)).size:
                        continue
                    yield NodeWeights(order[some], node[some] + self.starts[depth], 1.0)
            return
        covers = [
            [
                found
                for last in (False, True)
                for found in axis.cover(pieces.lo[:, i], pieces.hi[:, i], last)
            ]
            for i, axis in enumerate(self.axes)
        ]
        covers = [[(d, x) for d, x in cover if (x >= 0).any()] for cover in covers]
        for (a, row), (b, column) in product(*covers):
            if not (some := np.flatnonzero((row >= 0) & (column >= 0))).size:
                continue
            node = row[some] * self.axes[1].nodes[b] + column[some]
            yield NodeWeights(some, node + self.starts[self.levels.index((a, b))], 1.0)

    def parents(self, nodes) -> Iterator[tuple[slice, list[Int[np.ndarray, " k"]]]]:
        """For each level, which of the (sorted) nodes lie in it, and their parents, one an axis."""
        ends = np.searchsorted(nodes, np.array(self.starts))
        for i, level in enumerate(self.levels):
            own = slice(ends[i], ends[i + 1])
            at = np.unravel_index(nodes[own] - self.starts[i], self.shape(level))
            found = []
            for axis, depth in enumerate(level):
                if depth:
                    above = (*level[:axis], depth - 1, *level[axis + 1 :])
                    up = [x >> 1 if k == axis else x for k, x in enumerate(at)]
                    node = np.ravel_multi_index(up, self.shape(above))
                    found.append(node + self.starts[self.levels.index(above)])
            yield own, found

    def places(self, nodes):
        """Depth, and first and last + 1 cell, of each axis."""
        which = np.searchsorted(np.array(self.starts), nodes, side="right") - 1
        names = ("",) if len(self.axes) == 1 else tuple(f"{a} " for a in self.domain.attributes)
        out: dict[str, np.ndarray] = {}
        rest = nodes - np.array(self.starts)[which]
        shapes = np.array([self.shape(level) for level in self.levels])
        for i, (name, axis) in enumerate(zip(names, self.axes, strict=True)):
            inner = shapes[which, i + 1 :].prod(axis=1)
            depth = np.array(self.levels)[which, i]
            at, rest = rest // inner, rest % inner
            out[f"{name}level"] = depth
            out[f"{name}lo"] = at << axis.height - depth
            out[f"{name}hi"] = np.minimum(at + 1 << axis.height - depth, axis.m)
        return out


@dataclass(frozen=True)
class HaarBasis:
    """Unnormalised Haar coefficients over a domain: exactly as many as it has cells.

    Node 0 is the total. An interval whose right half is padding has no coefficient: it is the same as
    its left half, and everybody knows.
    """

    domain: Domain
    transform: Haar = Haar()

    @cached_property
    def axis(self) -> Axis:
        """The key order."""
        return Axis(self.domain.size)

    @cached_property
    def starts(self) -> list[int]:
        """The first coefficient of the intervals of each depth, and how many nodes there are."""
        return list(accumulate((n // 2 for n in self.axis.nodes[1:]), initial=1))

    @property
    def noise_blocks(self) -> tuple[NodeBlock, ...]:
        """All coefficients in one: a count moves the total, and a difference at each level."""
        return (NodeBlock(self.domain.size, self.axis.height + 1, Fraction(1)),)

    def forward(self, keys, counts):
        """The total and the differences of sparse counts."""
        nodes, values = [], []
        for depth in range(self.axis.height - 1, -1, -1):
            up, sums, differences = (np.empty(len(keys), np.int64) for _ in range(3))
            k = _halves(keys, counts, up, sums, differences)
            keys, counts = up[:k], sums[:k]
            some = k - (k > 0 and 2 * keys[-1] + 1 == self.axis.nodes[depth + 1])
            nodes.append(keys[:some] + self.starts[depth])
            values.append(differences[:some])
        nodes.append(keys[:1])  # the root is node 0, like the total
        values.append(counts[:1])
        return np.concatenate(nodes[::-1]), np.concatenate(values[::-1])

    def inverse(self, values: Float[np.ndarray, " cells"]) -> Float[np.ndarray, " cells"]:
        """The cells of all coefficients, in node order."""
        sums = np.asarray(values[:1], float)
        for depth in range(self.axis.height):
            pairs = self.axis.nodes[depth + 1] // 2
            halves = np.empty(self.axis.nodes[depth + 1])
            halves[-1] = sums[-1]  # where it is odd: a right half that is padding
            d = values[self.starts[depth] : self.starts[depth] + pairs]
            halves[: 2 * pairs : 2] = (sums[:pairs] + d) / 2
            halves[1 : 2 * pairs : 2] = (sums[:pairs] - d) / 2
            sums = halves
        return sums

    def pieces(self, workload):
        """Ranges of keys."""
        return workload.intervals(self.domain)

    def terms(self, pieces):
        """The coefficients of prefix(hi) − prefix(lo).

        With S the sum of an interval and d its coefficient, S_left = (S + d)/2. If g·S is what a prefix
        into a child counts of the child's own sum, it counts g/2 of d and g/2 of S where the child is
        the left one, and (1 − g)/2 of d and (1 + g)/2 of S where it is the right one.
        """
        lo, hi = pieces.lo, pieces.hi
        ends = [(x, np.full(len(x), float(0))) for x in (lo, hi)]
        for depth in range(self.axis.height - 1, -1, -1):
            width, found = self.axis.height - depth, []
            for x, g in ends:
                child = x >> width - 1
                right = child & 1 == 1
                node = child >> 1
                known = 2 * node + 1 >= self.axis.nodes[depth + 1]  # right half all padding
                inside = x < self.domain.size
                factor = np.where(known | ~inside, 0.0, np.where(right, 1 - g, g) / 2)
                found.append((node, factor))
                g[:] = np.where(known, g, np.where(right, 1 + g, g) / 2)
            (a, left), (b, right) = found
            both = (a == b) & (right != 0)
            for node, factor in ((b, right - both * left), (a, -left * ~both)):
                some = np.flatnonzero(factor)
                some = some[np.argsort(node[some])]
                yield NodeWeights(some, node[some] + self.starts[depth], factor[some])
        share = [np.where(x < self.domain.size, g, 1.0) for x, g in ends]
        yield NodeWeights(np.arange(len(lo)), np.zeros(len(lo), np.int64), share[1] - share[0])

    def places(self, nodes):
        """Level 0 for the total, 1 for the root's difference, and on; first and last + 1 cell."""
        depth = np.searchsorted(np.array(self.starts), nodes, side="right") - 1
        width = self.axis.height - np.maximum(depth, 0)
        lo = np.where(depth < 0, 0, nodes - np.array(self.starts)[depth]) << width
        left = (self.domain.size - lo).astype(np.uint64)  # mixed signs would be floats
        wide = np.minimum(np.uint64(1) << width.astype(np.uint64), left)
        return {"level": depth + 1, "lo": lo, "hi": lo + wide.astype(np.int64)}


def _summed(keys, counts):
    """Sorted keys, each once, and the sums of their counts."""
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[starts], np.add.reduceat(counts, starts) if len(starts) else counts


def _distinct(keys, height: int) -> Int[np.ndarray, " height+1"]:
    """How many different prefixes sorted keys have when 0, 1, …, `height` bits are cut off."""
    if not len(keys):
        return np.zeros(height + 1, np.int64)
    tally = np.zeros(64, np.int64)
    _splits(keys, tally)
    return 1 + tally[::-1].cumsum()[::-1][1 : height + 2]


@njit(cache=True, nogil=True)
def _splits(keys, tally):
    """tally[b] += 1 for neighbours whose highest different bit is the b-th (from 1)."""
    for i in range(1, keys.size):
        x, b = keys[i] ^ keys[i - 1], 0
        while x:
            x >>= 1
            b += 1
        tally[b] += 1


@njit(cache=True, nogil=True)
def _coarser(nodes, values, start, start_above, out_nodes, out_values):
    """The sums of pairs: one level of a tree from the level below it."""
    k = -1
    for i in range(nodes.size):
        node = (nodes[i] - start >> 1) + start_above
        if k < 0 or out_nodes[k] != node:
            k += 1
            out_nodes[k] = node
            out_values[k] = 0
        out_values[k] += values[i]


@njit(cache=True, nogil=True)
def _halves(keys, counts, up, sums, differences):
    """Sums and left-minus-right differences of pairs; returns how many pairs."""
    k = -1
    for i in range(keys.size):
        if k < 0 or up[k] != keys[i] >> 1:
            k += 1
            up[k] = keys[i] >> 1
            sums[k] = differences[k] = 0
        sums[k] += counts[i]
        differences[k] += counts[i] if keys[i] & 1 == 0 else -counts[i]
    return k + 1
