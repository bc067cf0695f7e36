"""How far synthetic points are from the true ones: in space, and in how far they travel."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from workbench.compiled import njit
from workbench.hierarchy import Quadtree
from workbench.metrics.refusal import refuse_private
from workbench.records import Records
from workbench.value import parameter, value


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
        """The sum over all levels, in records × side."""
        return float(self.levels(truth, estimate).sum())

    def levels(self, truth: Records, estimate: Any) -> Float[np.ndarray, " levels"]:
        """The part of each level, the root's first, in records × side.

        Either side may be records that are public, or an estimate that has `synthetic` ones.
        """
        tree, ours, theirs = truth.hierarchy, _public(truth), _public(estimate, self.seed)
        if not isinstance(tree, Quadtree) or theirs.hierarchy != tree:
            raise ValueError(
                f"EarthMover compares points in one Quadtree, not {tree!r} and {theirs.hierarchy!r}"
            )
        if self.depth > tree.depth:
            raise ValueError(
                f"EarthMover.depth = {self.depth!r} is not allowed: {tree!r} is no deeper"
            )
        digits, apart = tree.digits, np.zeros(self.depth + 1, np.int64)
        word = np.array([0, *map(digits.word_of_level, range(self.depth))])
        width = np.array([0, *(n.bit_length() - 1 for n in digits.widths[: self.depth])])
        sides = [
            (x.keys, np.empty(0, np.int64) if x.counts is None else x.counts)
            for x in (ours, theirs)
        ]
        _apart(*sides[0], *sides[1], word, width.astype(np.uint64), apart)
        return apart * np.sqrt(tree.dims) / 2.0 ** np.arange(self.depth + 1)


@njit(cache=True, nogil=True)
def _apart(a, many, b, others, word, width, apart):
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


def _public(data: Any, seed: int = 0) -> Records:
    """Records that may be compared: the synthetic ones of an estimate, or those that are public."""
    records = data if isinstance(data, Records) else data.synthetic(seed)
    refuse_private(records)
    return records


EARTH_RADIUS = 6371.0088  # mean radius, km


def great_circle(lat1, lon1, lat2, lon2) -> Float[np.ndarray, " n"]:
    """Distances on the globe in km (haversine), of latitudes and longitudes in degrees."""
    lat1, lon1, lat2, lon2 = map(np.radians, (lat1, lon1, lat2, lon2))
    half = np.sin((lat2 - lat1) / 2) ** 2
    half += np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(half, 1)))


@value
class CommuteDistances:
    """Kolmogorov's distance of commutes from a place: the largest gap of two distribution functions.

    Of records (home latitude, home longitude, work latitude, work longitude, in degrees) those with a
    home within `radius` of the place, and how far away they work, on the globe. `seed` places synthetic
    points in their leaves; records stand in the middle of their finest cells.
    """

    latitude: float = parameter(low=-90, high=90, unit="degrees")
    longitude: float = parameter(low=-180, high=180, unit="degrees")
    radius: float = parameter(low=0, high=20_100, strict=True, unit="km")
    seed: int = parameter(0, 0, integer=True, doc="of the points")

    def __call__(self, truth: Records, estimate: Any) -> float:
        """A fraction in [0, 1]; NaN if nobody lives there."""
        sides = [self._distances(x) for x in (truth, estimate)]
        if not all(len(counts) for _, counts in sides):
            return float("nan")
        at = np.concatenate([distances for distances, _ in sides])
        first, second = (_share(*side, at) for side in sides)
        return float(np.abs(first - second).max())

    def cdf(self, data: Any, at: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The fraction of those who live there that works at most `at` km away; NaN if nobody does."""
        return _share(*self._distances(data), np.asarray(at, float))

    def commutes(self, data: Any) -> tuple[Float[np.ndarray, "n 4"], Int[np.ndarray, " n"]]:
        """Those who live there, of records or an estimate: points in degrees, and how many of each."""
        points, counts = _commutes(data, self.seed)
        there = np.flatnonzero(
            np.abs(points[:, 0] - self.latitude) <= 1.001 * self.radius / 111
        )
        home = points[there, :2].T
        there = there[great_circle(*home, self.latitude, self.longitude) <= self.radius]
        return points[there], counts[there]

    def _distances(self, data: Any) -> tuple[Float[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """Distances in km, ascending, and how many have each."""
        points, counts = self.commutes(data)
        distances = great_circle(*points.T)
        by = np.argsort(distances, kind="stable")
        return distances[by], counts[by]


_COMMUTES: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # asked about many places


def _commutes(data: Any, seed: int) -> tuple[Float[np.ndarray, "n 4"], Int[np.ndarray, " n"]]:
    tree = data.hierarchy
    if not isinstance(tree, Quadtree) or tree.dims != 4:
        raise ValueError(
            f"commutes are points of a Quadtree of 4 dimensions, home and work, not of {tree!r}"
        )
    if isinstance(data, Records):
        refuse_private(data)
    if data not in _COMMUTES or _COMMUTES[data][0] != seed:
        _COMMUTES[data] = seed, *_points(data, tree, seed)
    return _COMMUTES[data][1:]


def _points(
    data: Any, tree: Quadtree, seed: int
) -> tuple[Float[np.ndarray, "n 4"], Int[np.ndarray, " n"]]:
    if not isinstance(data, Records):
        points = data.points(seed)
        return points, np.ones(len(points), np.int64)
    low, high = (np.array(x) for x in tree.box)
    points = low + (high - low) * (tree.corners(data.keys).T + 0.5) / 2**tree.depth
    return points, np.ones(len(data), np.int64) if data.counts is None else data.counts


def _share(distances, counts, at) -> Float[np.ndarray, " at"]:
    """The fraction of `counts` whose distances, ascending, are at most `at`."""
    if not len(counts):
        return np.full(at.shape, np.nan)
    ends = np.append(0, np.cumsum(counts))
    return ends[np.searchsorted(distances, at, "right")] / ends[-1]
