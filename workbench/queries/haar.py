"""The unnormalised Haar wavelet over a domain's keys."""

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
    """Haar wavelet transform of counts, not normalised. Its values are the total and, for each dyadic interval,
    the sum of its left half minus the sum of its right half.
    """

    series: ClassVar[str] = "Haar"

    def on(self, domain: Domain) -> HaarBasis:
        """Return the Haar wavelet transform for a domain. It transforms the counts of the cells in the order of
        their keys (numbers).

        Parameters
        ----------
        domain : Domain
            Any domain.

        Returns
        -------
        HaarBasis
            Basis with as many coefficients as the domain has cells.
        """
        domain.refuse_wide()
        return HaarBasis(domain)


@dataclass(frozen=True)
class HaarBasis:
    """Unnormalised Haar coefficients over a domain. There are as many coefficients as cells.

    Node 0 is the total. If the right half of an interval is beyond the last cell, the interval equals its
    left half and needs no coefficient.
    """

    domain: Domain
    transform: Haar = Haar()

    @cached_property
    def axis(self) -> Axis:
        """The single axis, which is the order of keys."""
        return Axis(self.domain.size)

    @cached_property
    def starts(self) -> list[int]:
        """First coefficient of each depth, followed by the number of nodes."""
        return list(accumulate((n // 2 for n in self.axis.sizes[1:]), initial=1))

    @property
    def noise_blocks(self) -> tuple[NodeBlock, ...]:
        """One block of all coefficients. One record changes the total and one difference per level.

        A difference changes most if all changed cells are in one half of its interval. A half has at most
        2^(height − depth − 1) cells.
        """
        height = self.axis.height
        halves = tuple(1 << height - depth - 1 for depth in range(height))
        widths = (1 << height, *halves)
        return (NodeBlock(self.domain.size, height + 1, Fraction(1), widths),)

    def forward(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the total and the differences of sparse counts."""
        nodes, values, keys, counts = self._differences(keys, counts, 0)
        nodes.append(keys[:1])  # the root is node 0, like the total
        values.append(counts[:1])
        return np.concatenate(nodes[::-1]), np.concatenate(values[::-1])

    def within(self, start: int, bits: int) -> list[tuple[int, int]]:
        """Return the nodes that lie within a range, as one run per level."""
        runs = []
        for depth in range(self.axis.height - bits, self.axis.height):
            width = self.axis.height - depth
            high = min(start + (1 << bits) >> width, self.axis.sizes[depth + 1] // 2)
            runs.append((self.starts[depth] + (start >> width), self.starts[depth] + high))
        return runs

    def forward_within(
        self, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"], bits: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the differences within one interval."""
        none = np.zeros(0, np.int64)
        nodes, values, _, _ = self._differences(keys, counts, self.axis.height - bits)
        return np.concatenate([none, *nodes[::-1]]), np.concatenate([none, *values[::-1]])

    def forward_above(
        self, starts: Int[np.ndarray, " n"], bits: int, totals: Num[np.ndarray, " n"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the total, and the differences above several ranges. The sum of each range is given."""
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
        """Return nodes and values of each level, fine before coarse, and the sums at depth `least`."""
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
        """Return the counts of the cells, from all coefficients in node order."""
        sums = np.asarray(values[:1], float)
        for depth in range(self.axis.height):
            size = self.axis.sizes[depth + 1]
            pairs = size // 2
            halves = np.empty(size)
            halves[-1] = sums[-1]  # where it is odd: a right half that is padding
            d = values[self.starts[depth] : self.starts[depth] + pairs]
            halves[: 2 * pairs : 2] = (sums[:pairs] + d) / 2
            halves[1 : 2 * pairs : 2] = (sums[:pairs] - d) / 2
            sums = halves
        return sums

    def pieces(self, workload: Workload) -> tuple[Int[np.ndarray, " pieces"], Any]:
        """Split queries into pieces, which are ranges of keys."""
        return workload.intervals(self.domain)

    def terms(self, pieces: Any) -> Iterator[NodeWeights]:
        """Yield the coefficients of the sum over a range [lo, hi), which is prefix(hi) − prefix(lo). Here
        prefix(i) is the sum of the first i cells.

        If an interval has the sum S and the coefficient d, its left child has the sum (S + d)/2. Suppose
        that a prefix contains the share g of a child's sum. If this is the left child, the prefix is g/2·S
        + g/2·d. If it is the right child, the prefix is (1 + g)/2·S + (1 − g)/2·d.
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
                padded = 2 * node + 1 >= self.axis.sizes[depth + 1]  # all of the right half
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
        """Return the level (0 is the total, 1 the difference at the root), the first cell and the last cell
        + 1 of nodes.
        """
        starts = np.array(self.starts)
        depth = np.searchsorted(starts, nodes, side="right") - 1
        width = self.axis.height - np.maximum(depth, 0)
        lo = np.where(depth < 0, 0, nodes - starts[depth]) << width
        left = (self.domain.size - lo).astype(np.uint64)  # mixed signs would be floats
        wide = np.minimum(np.uint64(1) << width.astype(np.uint64), left)
        return {"level": depth + 1, "lo": lo, "hi": lo + wide.astype(np.int64)}


@njit(cache=True, nogil=True)
def _halves(keys, counts, up, sums, differences):
    """Compute sums and left-minus-right differences of pairs, and return the number of pairs."""
    k = -1
    for i in range(keys.size):
        if k < 0 or up[k] != keys[i] >> 1:
            k += 1
            up[k] = keys[i] >> 1
            sums[k] = differences[k] = 0
        sums[k] += counts[i]
        differences[k] += counts[i] if keys[i] & 1 == 0 else -counts[i]
    return k + 1
