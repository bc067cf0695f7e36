"""Distances between synthetic and true points, and between synthetic and true commutes."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from workbench.data import Records
from workbench.spaces import Quadtree
from workbench.trials.metrics.answers import refuse_private
from workbench.value import Float, Int, not_allowed, parameter, value

# Earth mover


@value
class EarthMover:
    """Upper bound on the earth mover's distance, after Indyk. It is computed from the counts of cells on
    all levels.

    For each cell, take the absolute difference between the numbers of records on the two sides, times the
    diameter of the cell. The bound is the sum of these products over all cells of the levels 0 to `depth`.
    The box of the hierarchy is treated as a unit cube, so the unit of the result is records × side of the
    box. Suppose that both sides have n records, and add n × the diameter of a cell on the last level to the
    bound. The sum of the distances by which records must be moved is at most this. `seed` determines the
    positions of synthetic points within leaves.
    """

    depth: int = parameter(
        low=0, high=52, integer=True, unit="levels", doc="depth of the finest cells"
    )
    seed: int = parameter(0, 0, integer=True, doc="seed that draws the points")

    def __call__(self, truth: Records, estimate: Any) -> float:
        """Return the sum over all levels.

        Parameters
        ----------
        truth : Records
            Records over a `Quadtree`, with a public truth.
        estimate : Leaves or Records
            Public records, or an estimate with a method `synthetic`.

        Returns
        -------
        float
            Distance in records × side of the box.

        Raises
        ------
        ValueError
            If the truth is private, or the two sides are not points in the same Quadtree, or it has fewer
            levels than `depth`.
        """
        return float(self.levels(truth, estimate).sum())

    def levels(self, truth: Records, estimate: Any) -> Float[np.ndarray, " levels"]:
        """Return the contribution of each level, from the root down.

        Parameters
        ----------
        truth : Records
            Records over a `Quadtree`, with a public truth.
        estimate : Leaves or Records
            Public records, or an estimate with a method `synthetic`.

        Returns
        -------
        float64[levels]
            Contributions in records × side of the box.

        Raises
        ------
        ValueError
            If the truth is private, or the two sides are not points in the same Quadtree, or it has fewer
            levels than `depth`.
        """
        tree = truth.hierarchy
        ours = _public_records(truth)
        theirs = _public_records(estimate, self.seed)
        if not isinstance(tree, Quadtree) or theirs.hierarchy != tree:
            raise ValueError(
                f"EarthMover compares points in one Quadtree, not {tree!r} and {theirs.hierarchy!r}"
            )
        if self.depth > tree.depth:
            raise not_allowed(self, "depth", f"{tree!r} has no more levels")
        differences = [_unmatched(ours, theirs, level) for level in range(self.depth + 1)]
        return np.array(differences) * np.sqrt(tree.dims) / 2.0 ** np.arange(self.depth + 1)


def _unmatched(ours: Records, theirs: Records, level: int) -> int:
    """Return the sum over nodes of a level of the absolute differences between the counts of both sides."""
    nodes, counts = ours.level(level)
    other_counts = theirs.node_counts(np.full(len(counts), level), nodes)
    return int(ours.total + theirs.total - 2 * np.minimum(counts, other_counts).sum())


def _public_records(data: Any, seed: int = 0) -> Records:
    """Return records that may be compared: the synthetic ones of an estimate, or public ones."""
    records = data if isinstance(data, Records) else data.synthetic(seed)
    refuse_private(records)
    return records


# Commute distances

EARTH_RADIUS = 6371.0088  # mean radius, km
_KM_PER_DEGREE = 111  # of latitude: no more, so that nobody within the radius is left out
_SLACK = 1.001


class Commutes(NamedTuple):
    """Homes and workplaces in degrees (home latitude, home longitude, work latitude, work longitude), and
    how many commutes each pair has.
    """

    points: Float[np.ndarray, "n 4"]
    counts: Int[np.ndarray, " n"]


class _Distances(NamedTuple):
    """Distances in km in ascending order, and the number of commutes with each distance."""

    kilometres: Float[np.ndarray, " n"]
    counts: Int[np.ndarray, " n"]

    def fraction_within(self, at: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """Return the fraction of commutes that are at most `at` km long, or NaN if there are no
        commutes.
        """
        if not len(self.counts):
            return np.full(at.shape, np.nan)
        ends = np.append(0, np.cumsum(self.counts))
        return ends[np.searchsorted(self.kilometres, at, "right")] / ends[-1]


def great_circle(
    lat1: Float[np.ndarray, " n"],
    lon1: Float[np.ndarray, " n"],
    lat2: Float[np.ndarray, " n"] | float,
    lon2: Float[np.ndarray, " n"] | float,
) -> Float[np.ndarray, " n"]:
    """Return great-circle distances on the globe, by the haversine formula.

    Parameters
    ----------
    lat1, lon1, lat2, lon2 : float or float[n]
        Latitudes and longitudes of both ends, in degrees.

    Returns
    -------
    float64[n]
        Distances in km.
    """
    lat1, lon1, lat2, lon2 = map(np.radians, (lat1, lon1, lat2, lon2))
    half = np.sin((lat2 - lat1) / 2) ** 2
    half += np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(half, 1)))


@value
class CommuteDistances:
    """Kolmogorov distance between the lengths of synthetic and of true commutes. Only people who live near
    a place count.

    Records are (home latitude, home longitude, work latitude, work longitude) in degrees. The metric uses
    records with a home within `radius` of the place, and computes their great-circle distances to work. It
    is the largest gap between the distribution functions of the two sides. `seed` determines the positions
    of synthetic points within leaves. True records are treated as points in the middle of their finest
    cells.
    """

    latitude: float = parameter(low=-90, high=90, unit="degrees")
    longitude: float = parameter(low=-180, high=180, unit="degrees")
    radius: float = parameter(low=0, high=20_100, strict=True, unit="km")
    seed: int = parameter(0, 0, integer=True, doc="seed that draws the points")

    def __call__(self, truth: Records, estimate: Any) -> float:
        """Compare the distribution functions of both sides.

        Parameters
        ----------
        truth : Records
            Records over a `Quadtree` with four dimensions, with a public truth.
        estimate : Leaves or Records
            Records or estimate over such a Quadtree.

        Returns
        -------
        float
            Distance in [0, 1], or NaN if nobody lives near the place.

        Raises
        ------
        ValueError
            If records are private, or points do not have four dimensions.
        """
        true = self._distances(truth)
        estimated = self._distances(estimate)
        if not len(true.counts) or not len(estimated.counts):
            return float("nan")
        at = np.concatenate([true.kilometres, estimated.kilometres])
        gaps = np.abs(true.fraction_within(at) - estimated.fraction_within(at))
        return float(gaps.max())

    def cdf(self, data: Any, at: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the distribution function of commute lengths for people who live near the place.

        Parameters
        ----------
        data : Leaves or Records
            The same as for a call of the metric.
        at : float[n]
            Commute lengths in km.

        Returns
        -------
        float64[n]
            Fraction of people with a commute of at most this length, or NaN if nobody lives near the place.
        """
        return self._distances(data).fraction_within(np.asarray(at, float))

    def commutes(self, data: Any) -> Commutes:
        """Return the commutes of people who live near the place.

        Parameters
        ----------
        data : Leaves or Records
            The same as for a call of the metric.

        Returns
        -------
        Commutes
            `points` (float64[n, 4], degrees) and `counts` (int64[n], how many of each).
        """
        points, counts = _all_commutes(data, self.seed)
        degrees = _SLACK * self.radius / _KM_PER_DEGREE
        near = np.flatnonzero(np.abs(points[:, 0] - self.latitude) <= degrees)
        homes = points[near, :2].T
        inside = near[
            great_circle(homes[0], homes[1], self.latitude, self.longitude) <= self.radius
        ]
        return Commutes(points[inside], counts[inside])

    def _distances(self, data: Any) -> _Distances:
        known = _DISTANCES.setdefault(data, {})
        if self not in known:
            known[self] = self._sorted_distances(data)
        return known[self]

    def _sorted_distances(self, data: Any) -> _Distances:
        points, counts = self.commutes(data)
        kilometres = great_circle(*points.T)
        ascending = np.argsort(kilometres, kind="stable")
        return _Distances(kilometres[ascending], counts[ascending])


# of data, by seed: the same data is asked about many places
_COMMUTES: weakref.WeakKeyDictionary[Any, tuple[int, Commutes]] = weakref.WeakKeyDictionary()
# of data, by place: a gap and a curve are of the same distances, and so is the truth of all releases
_DISTANCES: weakref.WeakKeyDictionary[Any, dict[CommuteDistances, _Distances]] = (
    weakref.WeakKeyDictionary()
)


def _all_commutes(data: Any, seed: int) -> Commutes:
    tree = data.hierarchy
    if not isinstance(tree, Quadtree) or tree.dims != 4:
        raise ValueError(
            f"commutes need a Quadtree with 4 dimensions (home and work), not {tree!r}"
        )
    if isinstance(data, Records):
        refuse_private(data)
    if data not in _COMMUTES or _COMMUTES[data][0] != seed:
        _COMMUTES[data] = seed, _points(data, tree, seed)
    return _COMMUTES[data][1]


def _points(data: Any, tree: Quadtree, seed: int) -> Commutes:
    if not isinstance(data, Records):
        points = data.points(seed)
        return Commutes(points, np.ones(len(points), np.int64))
    low = np.array(tree.box[0])
    high = np.array(tree.box[1])
    points = low + (high - low) * (tree.corners(data.keys).T + 0.5) / 2**tree.depth
    counts = np.ones(len(data), np.int64) if data.counts is None else data.counts
    return Commutes(points, counts)
