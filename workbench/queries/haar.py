"""Haar wavelet transform of the counts of a table, without normalisation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from workbench.compiled import njit
from workbench.queries.basis import Axis, NodeBlock, NodeWeights, sums_by_node
from workbench.queries.ranges import Workload
from workbench.spaces import Domain
from workbench.value import Float, Int, Num, value


@value
class Haar:
    """Haar wavelet transform of the counts of a table, without normalisation. The transform computes the sum
    of all counts. For each dyadic interval, it also computes the sum of the left half minus the sum of the
    right half. Dyadic intervals are obtained by halving the list of all cells again and again.
    """

    series: ClassVar[str] = "Haar"

    def on(self, domain: Domain) -> HaarBasis:
        """Return an object that applies the transform to the counts of tables on a domain. The results are
        called Haar coefficients.

        Parameters
        ----------
        domain : Domain
            Domain of the table. The domain must have at most 2⁶³ − 1 cells.

        Returns
        -------
        HaarBasis
            Object that computes the Haar coefficients. There are as many coefficients as cells.
        """
        domain.refuse_wide()
        return HaarBasis(domain)


@dataclass(frozen=True)
class HaarBasis:
    """Haar coefficients of the counts on a domain, without normalisation. A coefficient is the sum of all
    counts, or the difference between the sums of the two halves of a dyadic interval. The coefficients are
    called nodes, and are numbered.

    There are as many coefficients as cells. Node 0 is the sum of all counts. An interval whose right half is
    beyond the last cell has no coefficient, because its sum is the sum of its left half.
    """

    domain: Domain
    transform: Haar = Haar()

    @cached_property
    def axis(self) -> Axis:
        """Tree of dyadic intervals over all cells, in the order of the domain. Each level halves the
        intervals of the level above.
        """
        return Axis(self.domain.size)

    @cached_property
    def starts(self) -> list[int]:
        """Number of the first node (coefficient) at each depth of the tree. The last entry is the number of
        all nodes.
        """
        return list(accumulate((n // 2 for n in self.axis.sizes[1:]), initial=1))

    @property
    def noise_blocks(self) -> tuple[NodeBlock, ...]:
        """One block with all nodes (coefficients), which get noise from the same distribution. One record
        changes the total and one difference per level.

        A difference changes most if all changed cells are in the same half of its interval. At each depth, a
        half has at most 2^(height − depth − 1) cells.
        """
        height = self.axis.height
        halves = tuple(1 << height - depth - 1 for depth in range(height))
        widths = (1 << height, *halves)
        return (NodeBlock(self.domain.size, height + 1, Fraction(1), widths),)

    def forward(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the total, and the difference between the two halves of each interval. The counts belong to
        the cells with the numbers `keys`. Return the numbers of the nodes (coefficients) whose intervals
        contain such cells, in ascending order, and their values. All other nodes are 0.
        """
        nodes, values, keys, counts = self._differences(keys, counts, 0)
        nodes.append(keys[:1])  # the root is node 0, like the total
        values.append(counts[:1])
        return np.concatenate(nodes[::-1]), np.concatenate(values[::-1])

    def within(self, start: int, bits: int) -> list[tuple[int, int]]:
        """Return the nodes (coefficients) whose intervals are inside a range of cells. The range begins at
        the cell `start` and has 2^`bits` cells. There is one run of node numbers per level, given as (first,
        last + 1).
        """
        runs = []
        for depth in range(self.axis.height - bits, self.axis.height):
            width = self.axis.height - depth
            high = min(start + (1 << bits) >> width, self.axis.sizes[depth + 1] // 2)
            runs.append((self.starts[depth] + (start >> width), self.starts[depth] + high))
        return runs

    def forward_within(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"], bits: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the difference between the two halves of each interval inside one range of 2^`bits` cells.
        All cells `keys` are in this range. Return the numbers of the nodes (coefficients) and these
        differences.
        """
        none = np.zeros(0, np.int64)
        nodes, values, _, _ = self._differences(keys, counts, self.axis.height - bits)
        return np.concatenate([none, *nodes[::-1]]), np.concatenate([none, *values[::-1]])

    def forward_above(
        self, starts: Int[np.ndarray, " n"], bits: int, totals: Num[np.ndarray, " n"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the total, and the difference between the two halves of each interval that is longer than a
        range in it. The domain is divided into ranges of cells. Range i begins at the cell starts[i], has
        2^bits[i] cells, and has the sum totals[i]. Return the numbers of the nodes (coefficients) and their
        values.
        """
        nodes = [np.zeros(1, np.int64)]
        values = [totals.sum(keepdims=True)]
        for depth in range(self.axis.height):
            width = self.axis.height - depth
            is_above = bits < width
            halves = starts[is_above] >> width - 1
            node = halves >> 1
            signed = np.where(halves & 1, -totals[is_above], totals[is_above])
            has_both = 2 * node + 1 < self.axis.sizes[depth + 1]
            nodes.append(self.starts[depth] + node[has_both])
            values.append(signed[has_both])
        return sums_by_node(nodes, values)

    def _differences(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"], least: int
    ) -> tuple[list[Any], list[Any], Any, Any]:
        """Return the nodes (coefficients) and their values for each level, from the finest level up to depth
        `least`. Also return the intervals at depth `least` and their sums.
        """
        nodes = []
        values = []
        for depth in range(self.axis.height - 1, least - 1, -1):
            parents, sums, differences = np.empty((3, len(keys)), np.int64)
            k = _halves(keys, counts, parents, sums, differences)
            keys = parents[:k]
            counts = sums[:k]
            padded = k > 0 and 2 * keys[-1] + 1 == self.axis.sizes[depth + 1]
            nodes.append(keys[: k - padded] + self.starts[depth])
            values.append(differences[: k - padded])
        return nodes, values, keys, counts

    def inverse(self, values: Float[np.ndarray, " cells"]) -> Float[np.ndarray, " cells"]:
        """Return the counts of all cells, computed from the values of all nodes (coefficients)."""
        sums = np.asarray(values[:1], float)
        for depth in range(self.axis.height):
            size = self.axis.sizes[depth + 1]
            pairs = size // 2
            halves = np.empty(size)
            halves[-1] = sums[-1]  # if the size is odd, the last right half is padding
            d = values[self.starts[depth] : self.starts[depth] + pairs]
            halves[: 2 * pairs : 2] = (sums[:pairs] + d) / 2
            halves[1 : 2 * pairs : 2] = (sums[:pairs] - d) / 2
            sums = halves
        return sums

    def pieces(self, workload: Workload) -> tuple[Int[np.ndarray, " pieces"], Any]:
        """Split queries into pieces, which are ranges of cells. Return the number of the query to which each
        piece belongs, and the pieces.
        """
        return workload.intervals(self.domain)

    def terms(self, pieces: Any) -> Iterator[NodeWeights]:
        """Yield the nodes (coefficients) from which the sum over each range of cells is computed, each with
        its factor.

        The sum over the cells lo to hi − 1 is prefix(hi) − prefix(lo), where prefix(i) is the sum of the
        first i cells. The method goes up the tree from the leaves. For each prefix, it keeps a number g,
        which is the share of the current interval's sum that is in the prefix.

        Let S be the sum of an interval and d its difference. Then the sum of its left half is (S + d)/2, and
        the sum of its right half is (S − d)/2. If a prefix ends in the left half, it contains the share g of
        the left half, which is g/2·S + g/2·d. If it ends in the right half, it contains all of the left half
        and the share g of the right half, which is (1 + g)/2·S + (1 − g)/2·d.
        """
        ends = (pieces.lo, pieces.hi)
        shares = [np.zeros(len(x)) for x in ends]  # g of both ends
        for depth in range(self.axis.height - 1, -1, -1):
            width = self.axis.height - depth
            ends_terms = []
            for x, g in zip(ends, shares, strict=True):
                child = x >> width - 1
                right = child & 1 == 1
                node = child >> 1
                padded = 2 * node + 1 >= self.axis.sizes[depth + 1]  # right half is padding
                inside = x < self.domain.size
                factor = np.where(padded | ~inside, 0.0, np.where(right, 1 - g, g) / 2)
                ends_terms.append((node, factor))
                g[:] = np.where(padded, g, np.where(right, 1 + g, g) / 2)
            (low, minus), (high, plus) = ends_terms
            both = (low == high) & (plus != 0)
            for node, factor in ((high, plus - both * minus), (low, -minus * ~both)):
                used = np.flatnonzero(factor)
                used = used[np.argsort(node[used])]
                yield NodeWeights(used, node[used] + self.starts[depth], factor[used])
        below_lo, below_hi = (
            np.where(x < self.domain.size, g, 1.0) for x, g in zip(ends, shares, strict=True)
        )
        total = np.zeros(len(pieces), np.int64)
        yield NodeWeights(np.arange(len(pieces)), total, below_hi - below_lo)

    def places(self, nodes: Int[np.ndarray, " n"]) -> dict[str, np.ndarray]:
        """Return columns that describe the given nodes (coefficients): the level, the first cell of the
        interval, and the cell after its last one. Level 0 is the total, and level 1 is the difference between
        the two halves of the whole domain.
        """
        starts = np.array(self.starts)
        depth = np.searchsorted(starts, nodes, side="right") - 1
        width = self.axis.height - np.maximum(depth, 0)
        lo = np.where(depth < 0, 0, nodes - starts[depth]) << width
        left = (self.domain.size - lo).astype(np.uint64)  # mixed signs would become floats
        wide = np.minimum(np.uint64(1) << width.astype(np.uint64), left)
        return {"level": depth + 1, "lo": lo, "hi": lo + wide.astype(np.int64)}


@njit(cache=True, nogil=True)
def _halves(keys, counts, up, sums, differences):
    """Write the sums and the differences (left minus right) of pairs of neighbours into arrays, and return
    the number of pairs.
    """
    k = -1
    for i in range(keys.size):
        if k < 0 or up[k] != keys[i] >> 1:
            k += 1
            up[k] = keys[i] >> 1
            sums[k] = differences[k] = 0
        sums[k] += counts[i]
        differences[k] += counts[i] if keys[i] & 1 == 0 else -counts[i]
    return k + 1
