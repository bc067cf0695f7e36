"""Noise that is not independent on each cell, of which the variance of any query follows in closed form.

Each law says by which linear map, known to all, independent noise came onto the cells.
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
    return parameter(low=0, unit="counts²", doc="of the independent noise")


class Pieces(NamedTuple):
    """Queries as ranges of keys: `which` query each belongs to; those of one query do not overlap."""

    which: Int[np.ndarray, " pieces"]
    ranges: Ranges
    queries: int


@value
class TreeNoise:
    """Noise of least squares over a k-ary tree, every node of which had noise of equal variance.

    With A the matrix of nodes by cells, the variance of a query w is σ²·w'(A'A)⁻¹w. The matrix of a
    node v is that of its children beside each other, plus 1·1', the node itself, so that by Sherman and
    Morrison, with s_c = 1'M_c⁻¹w, q_c = w'M_c⁻¹w and g_c = 1'M_c⁻¹1 of its children c,

        q_v = Σ q_c − (Σ s_c)²/(1 + Σ g_c),  s_v = Σ s_c/(1 + Σ g_c),  g_v = Σ g_c/(1 + Σ g_c).

    A node that is all in the query has q = s = g, and one that is outside 0: from the fewest nodes that
    make up the query, upwards.
    """

    branching: int = parameter(low=2, integer=True, doc="k")
    variance: float = _variance()
    kind: ClassVar[str] = "tree"

    def variances(self, domain: Domain, pieces: Pieces) -> Float[np.ndarray, " queries"]:
        """Return the variances of answers, in counts²."""
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
    """Return each node of two runs by itself: whose, and which."""
    counts = np.concatenate([left - lo, hi - right])
    firsts = np.concatenate([lo, right])
    runs = np.repeat(firsts - np.cumsum(counts) + counts, counts)
    return np.repeat(np.tile(piece, 2), counts), runs + np.arange(len(runs))


def cover(ranges: Ranges, sizes: Sequence[int], k: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the fewest nodes of each range, at most 2(k − 1) a level, level by level from the cells up.

    Whose they are, and two runs: from `lo` to `left`, and from `right` to `hi`.
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
    """Noise of Haar coefficients with equal variance σ²: σ² times a query's squared weights on them."""

    variance: float = _variance()
    kind: ClassVar[str] = "haar"

    def variances(self, domain: Domain, pieces: Pieces) -> Float[np.ndarray, " queries"]:
        """Return the variances of answers, in counts²."""
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
    """Noise of the first orthonormal Fourier coefficients: σ² times a query's squared length there."""

    coefficients: int = parameter(
        low=1, integer=True, doc="k, a mean and whole frequencies, or all"
    )
    variance: float = _variance()
    kind: ClassVar[str] = "fourier"

    def variances(self, domain: Domain, pieces: Pieces) -> Float[np.ndarray, " queries"]:
        """Return the variances of answers, in counts²."""
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
    """Noise of means of groups of at least `width` cells, in any order. Each group's sum had noise of equal
    variance.

    Which cells make a group a release does not tell. What is given is the most that can be: of n cells
    with t_G in group G, the variance is σ²·Σ(t_G/|G|)², where t_G/|G| is at most 1 and adds up to
    at most n/width: at most σ²·n/width, and at most σ²·(n/width)².
    """

    width: int = parameter(low=1, integer=True, unit="cells", doc="of the smallest group")
    variance: float = _variance()
    kind: ClassVar[str] = "groups"

    def variances(self, domain: Domain, pieces: Pieces) -> Float[np.ndarray, " queries"]:
        """Return upper bounds on the variances of answers, in counts²."""
        sizes = pieces.ranges.hi - pieces.ranges.lo
        groups = np.bincount(pieces.which, sizes, pieces.queries) / self.width
        return np.minimum(groups, groups**2) * self.variance


LinearNoise = TreeNoise | HaarNoise | FourierNoise | GroupNoise
_KINDS = {cls.kind: cls for cls in (TreeNoise, HaarNoise, FourierNoise, GroupNoise)}


def noise_to_json(noise: LinearNoise | None) -> Any:
    """Return what files hold of it."""
    return noise and {"kind": noise.kind} | asdict(noise)


def noise_from_json(stored: Any) -> LinearNoise | None:
    """Return what `noise_to_json` wrote."""
    if stored is None:
        return None
    fields = dict(stored)
    return _KINDS[fields.pop("kind")](**fields)


def query_variances(
    noise: LinearNoise, domain: Domain, workload: Any
) -> Float[np.ndarray, " queries"]:
    """Return the variance of the noise on each answer, NaN where a query is not made of different ranges."""
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
    """Return the standard deviation of the noise on each cell."""
    deviations = np.empty(domain.size)
    for first in range(0, domain.size, _CELLS_AT_ONCE):
        keys = np.arange(first, min(first + _CELLS_AT_ONCE, domain.size))
        pieces = Pieces(np.arange(len(keys)), Ranges(keys, keys + 1), len(keys))
        deviations[keys] = np.sqrt(noise.variances(domain, pieces))
    return deviations
