"""Descriptions of noise that is correlated between cells, with formulas for the variance of the noise in the
answer to a query.

A mechanism added independent noise to some numbers, and computed the counts of cells from these noisy numbers
by a public linear map. Each class describes the noise on the counts for one such map.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple

import numpy as np

from workbench.queries import Haar, Ranges, level_sizes
from workbench.spaces import Domain
from workbench.value import Float, Int, parameter, value

_CELLS_AT_ONCE = 2**22


def _variance() -> Any:
    return parameter(low=0, unit="counts²", doc="variance of the independent noise")


class Pieces(NamedTuple):
    """Ranges of keys (numbers of cells) that together make up some queries. `which` contains the number of
    the query to which each range belongs. The ranges of one query do not overlap. `queries` is the number of
    queries.
    """

    which: Int[np.ndarray, " pieces"]
    ranges: Ranges
    queries: int


@value
class TreeNoise:
    """Noise on the counts of cells that were estimated by least squares from the noisy sums of all nodes of a
    tree. The noise on different nodes was independent, with the same variance σ².

    Let A be the matrix of the tree, with a row for each node and a column for each cell. An entry is 1 if the
    cell is in the node, and 0 otherwise. The variance of a query with weights w is σ²·w'(A'A)⁻¹w. For the
    subtree below a node v, the matrix M = A'A is the sum of two matrices. The first matrix is block diagonal,
    and its blocks are the matrices M_c of the children c. The second matrix is 1·1', for the node v itself,
    where 1 is the vector of ones. Let s_c = 1'M_c⁻¹w, q_c = w'M_c⁻¹w and g_c = 1'M_c⁻¹1. By the
    Sherman–Morrison formula,

        q_v = Σ q_c − (Σ s_c)²/(1 + Σ g_c),  s_v = Σ s_c/(1 + Σ g_c),  g_v = Σ g_c/(1 + Σ g_c).

    For a node that is completely in the query, q = s = g. For a node outside the query, q = s = 0. The
    computation starts at the fewest nodes that cover the query, and goes up to the root.
    """

    branching: int = parameter(low=2, integer=True, doc="number k of children")
    variance: float = _variance()
    kind: ClassVar[str] = "tree"

    def variances(self, domain: Domain, pieces: Pieces) -> Float[np.ndarray, " queries"]:
        """Return, for each query, the variance of the noise on its answer."""
        k = self.branching
        sizes = level_sizes(domain.size, k)[::-1]
        full = last = 1.0  # g of a level's nodes, and of its last one
        # of each query the nodes that it has a part of, as query · size + node
        places = np.zeros(0, np.int64)
        q: Any = np.zeros(0)
        s: Any = np.zeros(0)
        covers = cover(pieces.ranges, sizes, k)
        for level, (size, runs) in enumerate(zip(sizes, covers, strict=True)):
            piece, nodes = _nodes(*runs)
            g = np.where(nodes == size - 1, last, full)
            places = np.concatenate([places, pieces.which[piece] * size + nodes])
            q = np.concatenate([q, g])
            s = np.concatenate([s, g])
            if size == 1:
                break
            parents = sizes[level + 1]
            sums, last_sum = k * full, (size - 1 - k * (parents - 1)) * full + last
            places = places // size * parents + places % size // k
            places, at = np.unique(places, return_inverse=True)
            q = np.bincount(at, q, len(places))
            s = np.bincount(at, s, len(places))
            weight = 1 / (1 + np.where(places % parents == parents - 1, last_sum, sums))
            q = q - s**2 * weight
            s = s * weight
            full, last = sums / (1 + sums), last_sum / (1 + last_sum)
        return np.bincount(places, q, pieces.queries) * self.variance


def _nodes(
    piece: np.ndarray, lo: np.ndarray, left: np.ndarray, right: np.ndarray, hi: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Convert two runs of nodes per range to single nodes. Return, for each node, the number of its range and
    the number of the node.
    """
    counts = np.concatenate([left - lo, hi - right])
    firsts = np.concatenate([lo, right])
    runs = np.repeat(firsts - np.cumsum(counts) + counts, counts)
    return np.repeat(np.tile(piece, 2), counts), runs + np.arange(len(runs))


def cover(ranges: Ranges, sizes: Sequence[int], k: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the fewest nodes of a tree that cover each range, level by level from the cells upwards. A range
    needs at most 2(k − 1) nodes per level.

    Each item contains the numbers of the ranges, and two runs of nodes for each range: from `lo` to `left`,
    and from `right` to `hi`.
    """
    piece = np.flatnonzero(ranges.lo < ranges.hi)
    lo = ranges.lo[piece]
    hi = ranges.hi[piece]
    to_the_end = hi == sizes[0]
    for size in sizes:
        hi = np.where(to_the_end, size, hi)
        left = np.minimum(hi, -(-lo // k) * k) if size > 1 else hi  # the next parent's first
        right = np.maximum(left, np.where(to_the_end, hi, hi // k * k))
        yield piece, lo, left, right, hi
        inside = left < right
        piece, to_the_end = piece[inside], to_the_end[inside]
        lo = left[inside] // k
        hi = right[inside] // k


@value
class HaarNoise:
    """Noise on the counts of cells that were computed from noisy Haar wavelet coefficients. The noise of each
    coefficient has the same variance σ². An answer is a weighted sum of coefficients, and its variance is σ²
    times the sum of the squared weights.
    """

    variance: float = _variance()
    kind: ClassVar[str] = "haar"

    def variances(self, domain: Domain, pieces: Pieces) -> Float[np.ndarray, " queries"]:
        """Return, for each query, the variance of the noise on its answer."""
        terms = list(Haar().on(domain).terms(pieces.ranges))
        places = np.concatenate([pieces.which[t.pieces] * domain.size + t.nodes for t in terms])
        weights = np.concatenate([np.broadcast_to(t.factor, len(t.nodes)) for t in terms])
        places, at = np.unique(
            places, return_inverse=True
        )  # ranges of a query share coefficients
        weights = np.bincount(at, weights, len(places))
        return np.bincount(places // domain.size, weights**2, pieces.queries) * self.variance


@value
class FourierNoise:
    """Noise on the counts of cells that were computed from noisy coefficients of an orthonormal Fourier basis.
    Only the coefficients of the lowest frequencies were used. The noise of each of these coefficients has the
    same variance σ². The variance of an answer is σ² times the squared length of the query's projection on the
    span of the basis vectors of these coefficients.
    """

    coefficients: int = parameter(
        low=1, integer=True, doc="number k: a mean and whole frequencies, or all"
    )
    variance: float = _variance()
    kind: ClassVar[str] = "fourier"

    def variances(self, domain: Domain, pieces: Pieces) -> Float[np.ndarray, " queries"]:
        """Return, for each query, the variance of the noise on its answer."""
        size = domain.size
        some = max(1, _CELLS_AT_ONCE // size)
        squares = np.empty(pieces.queries)
        for first in range(0, pieces.queries, some):
            queries = slice(first, min(first + some, pieces.queries))
            edges = np.zeros((queries.stop - first, size + 1))
            inside = (first <= pieces.which) & (pieces.which < queries.stop)
            rows = pieces.which[inside] - first
            np.add.at(edges, (rows, pieces.ranges.lo[inside]), 1)
            np.add.at(edges, (rows, pieces.ranges.hi[inside]), -1)
            cells = np.cumsum(edges[:, :-1], axis=1)
            lengths = np.abs(np.fft.rfft(cells, norm="ortho")) ** 2
            lengths[:, 1 : (size + 1) // 2] *= (
                2  # cosine and sine; the last of an even size is one
            )
            if self.coefficients < size:
                lengths = lengths[:, : (self.coefficients + 1) // 2]
            squares[queries] = lengths.sum(axis=1)
        return squares * self.variance


@value
class GroupNoise:
    """Noise on the counts of cells that were replaced by the mean of a group of cells. Each group has at
    least `width` cells. The noise on the sum of each group has the same variance σ².

    The release does not show which cells form a group, so the class computes upper bounds. Suppose that a query
    has n cells, and t_G of these cells are in the group G with |G| cells. Then the variance of the query is
    σ²·Σ(t_G/|G|)². Each t_G/|G| is at most 1, and the sum of all t_G/|G| is at most n/width. The variance is
    therefore at most σ²·n/width, and also at most σ²·(n/width)².
    """

    width: int = parameter(low=1, integer=True, unit="cells", doc="size of the smallest group")
    variance: float = _variance()
    kind: ClassVar[str] = "groups"

    def variances(self, domain: Domain, pieces: Pieces) -> Float[np.ndarray, " queries"]:
        """Return, for each query, an upper bound on the variance of the noise on its answer."""
        sizes = pieces.ranges.hi - pieces.ranges.lo
        groups = np.bincount(pieces.which, sizes, pieces.queries) / self.width
        return np.minimum(groups, groups**2) * self.variance


LinearNoise = TreeNoise | HaarNoise | FourierNoise | GroupNoise
_KINDS = {cls.kind: cls for cls in (TreeNoise, HaarNoise, FourierNoise, GroupNoise)}


def noise_to_json(noise: LinearNoise | None) -> Any:
    """Return the description of the noise in the form in which release files store it."""
    return noise and {"kind": noise.kind} | asdict(noise)


def noise_from_json(stored: Any) -> LinearNoise | None:
    """Make a description of noise from the form that `noise_to_json` returned."""
    if stored is None:
        return None
    fields = dict(stored)
    return _KINDS[fields.pop("kind")](**fields)


def query_variances(
    noise: LinearNoise, domain: Domain, workload: Any
) -> Float[np.ndarray, " queries"]:
    """Return the variance of the noise on the answer to each query. The variance is NaN if the query is not a
    sum of ranges without overlaps.
    """
    try:
        which, ranges = workload.intervals(domain)
    except ValueError:  # scattered over the domain, or weighted
        return np.full(len(workload), np.nan)
    order = np.lexsort((ranges.lo, which))
    which, lo, hi = which[order], ranges.lo[order], np.maximum(ranges.hi, ranges.lo)[order]
    variances = noise.variances(domain, Pieces(which, Ranges(lo, hi), len(workload)))
    overlap = (which[1:] == which[:-1]) & (lo[1:] < hi[:-1])
    variances[which[1:][overlap]] = np.nan
    return variances


def cell_deviations(noise: LinearNoise, domain: Domain) -> Float[np.ndarray, " cells"]:
    """Return the standard deviation of the noise on each cell of the domain."""
    deviations = np.empty(domain.size)
    for first in range(0, domain.size, _CELLS_AT_ONCE):
        keys = np.arange(first, min(first + _CELLS_AT_ONCE, domain.size))
        pieces = Pieces(np.arange(len(keys)), Ranges(keys, keys + 1), len(keys))
        deviations[keys] = np.sqrt(noise.variances(domain, pieces))
    return deviations
