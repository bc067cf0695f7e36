"""Metrics for synthetic points and commutes. Each metric is a distance between the synthetic and the true
data.
"""

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
    """Approximate upper bound on the earth mover's distance between synthetic and true points, by the method
    of Indyk (2004). The earth mover's distance is the smallest sum of distances by which someone must move
    the records of one set to get the other set.

    The metric uses a hierarchy of cells. Level 0 is the whole box, and each level divides the cells of the
    level above. For each cell, the metric subtracts the number of true records from the number of synthetic
    records, and multiplies the absolute value by the diameter of the cell. The result is the sum over all
    cells of the levels 0 to `depth`. The metric treats the box as a unit cube. So the unit of the result is
    (number of records) × (side of the box).

    If both sets have n records, the earth mover's distance is at most the result plus n·d. Here d is the
    diameter of a cell on the last level.

    The metric places synthetic points at random within the released cells. `seed` determines their positions.
    """

    depth: int = parameter(
        low=0, high=52, integer=True, unit="levels", doc="last level to compare"
    )
    seed: int = parameter(0, 0, integer=True, doc="seed that places the synthetic points")

    def __call__(self, truth: Records, estimate: Any) -> float:
        """Compute the bound on the earth mover's distance, which is a sum over all levels of the hierarchy.

        Parameters
        ----------
        truth : Records
            True points, over a `Quadtree` (a hierarchy of boxes). The points must be public, or created with
            `truth_public=True`.
        estimate : Leaves or Records
            Released estimate, from which the metric generates synthetic points, or a set of public points.

        Returns
        -------
        float
            Distance in records × side of the box.

        Raises
        ------
        ValueError
            If the true points are private, if the two arguments are not points over the same `Quadtree`, or
            if the `Quadtree` has fewer levels than `depth`.
        """
        return float(self.levels(truth, estimate).sum())

    def levels(self, truth: Records, estimate: Any) -> Float[np.ndarray, " levels"]:
        """Compute the part of the bound for each level of the hierarchy, beginning with level 0 (the whole
        box).

        Parameters
        ----------
        truth : Records
            True points, over a `Quadtree` (a hierarchy of boxes). The points must be public, or created with
            `truth_public=True`.
        estimate : Leaves or Records
            Released estimate, from which the metric generates synthetic points, or a set of public points.

        Returns
        -------
        float64[levels]
            For each level, the sum over the cells of this level. The unit is (number of records) × (side of
            the box).

        Raises
        ------
        ValueError
            If the true points are private, if the two arguments are not points over the same `Quadtree`, or
            if the `Quadtree` has fewer levels than `depth`.
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
    """Return the sum of the absolute differences between the counts of both sets of points, over the cells of
    one level.
    """
    nodes, counts = ours.level(level)
    other_counts = theirs.node_counts(np.full(len(counts), level), nodes)
    return int(ours.total + theirs.total - 2 * np.minimum(counts, other_counts).sum())


def _public_records(data: Any, seed: int = 0) -> Records:
    """Return the synthetic records of an estimate. If the argument is public records, return these."""
    records = data if isinstance(data, Records) else data.synthetic(seed)
    refuse_private(records)
    return records


# Commute distances

EARTH_RADIUS = 6371.0088  # mean radius, km
_KM_PER_DEGREE = 111  # of latitude: no more, so that nobody within the radius is left out
_SLACK = 1.001


class Commutes(NamedTuple):
    """Distinct pairs of a home and a workplace, with the number of commutes of each pair. A pair consists of
    home latitude, home longitude, work latitude and work longitude, in degrees.
    """

    points: Float[np.ndarray, "n 4"]
    counts: Int[np.ndarray, " n"]


class _Distances(NamedTuple):
    """Lengths of commutes in km, in ascending order, with the number of commutes of each length."""

    kilometres: Float[np.ndarray, " n"]
    counts: Int[np.ndarray, " n"]

    def fraction_within(self, at: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """Return the share of commutes that are at most `at` km long. Return NaN if there are no commutes."""
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
    """Compute the distances between pairs of places on the globe (great-circle distances), by the haversine
    formula.

    Parameters
    ----------
    lat1, lon1, lat2, lon2 : float or float[n]
        Latitudes and longitudes of the two places of each pair, in degrees.

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
    """Kolmogorov distance between the lengths of synthetic and of true commutes. The Kolmogorov distance is
    the largest difference between the two distribution functions. The metric uses only people who live near a
    given place (`latitude`, `longitude`).

    A record is a commute: home latitude, home longitude, work latitude and work longitude, in degrees. The
    metric uses the records whose home is at most `radius` km from the place. The length of a commute is the
    great-circle distance from home to work. The metric places synthetic points at random within the released
    cells. `seed` determines their positions. For a true point, the data store only the smallest cell of the
    map that contains the point. The metric places the point in the middle of this cell.
    """

    latitude: float = parameter(low=-90, high=90, unit="degrees")
    longitude: float = parameter(low=-180, high=180, unit="degrees")
    radius: float = parameter(low=0, high=20_100, strict=True, unit="km")
    seed: int = parameter(0, 0, integer=True, doc="seed that places the synthetic points")

    def __call__(self, truth: Records, estimate: Any) -> float:
        """Compute the largest difference between the distribution functions of the lengths of synthetic and
        of true commutes.

        Parameters
        ----------
        truth : Records
            True commutes, over a `Quadtree` with four dimensions. They are public or were created with
            `truth_public=True`.
        estimate : Leaves or Records
            Released estimate that can generate synthetic commutes, or public commutes.

        Returns
        -------
        float
            Distance between 0 and 1, or NaN if nobody lives near the place.

        Raises
        ------
        ValueError
            If records are private, or if their points do not have four dimensions.
        """
        true = self._distances(truth)
        estimated = self._distances(estimate)
        if not len(true.counts) or not len(estimated.counts):
            return float("nan")
        at = np.concatenate([true.kilometres, estimated.kilometres])
        gaps = np.abs(true.fraction_within(at) - estimated.fraction_within(at))
        return float(gaps.max())

    def cdf(self, data: Any, at: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Compute the distribution function of the lengths of commutes, for people who live at most `radius`
        km from the place.

        Parameters
        ----------
        data : Leaves or Records
            Commutes, as a released estimate or as public records.
        at : float[n]
            Lengths of commutes in km, at which you want the distribution function.

        Returns
        -------
        float64[n]
            For each length in `at`, the share of people with a commute of at most this length. The shares are
            NaN if nobody lives near the place.
        """
        return self._distances(data).fraction_within(np.asarray(at, float))

    def commutes(self, data: Any) -> Commutes:
        """Return the homes and workplaces of the people who live at most `radius` km from the place.

        Parameters
        ----------
        data : Leaves or Records
            Commutes, as a released estimate or as public records.

        Returns
        -------
        Commutes
            Distinct pairs of a home and a workplace as `points` (float64[n, 4], in degrees), and the number
            of people with each pair as `counts` (int64[n]).
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
