"""Table 1's metrics: where people who live near a place work, as a map and as its numbers."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from experiments.adaptive2009._commutes import MILE, origins
from workbench.compiled import pd
from workbench.figures.plots import project
from workbench.trials.metrics import CommuteDistances
from workbench.value import value

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

MAP = "people"
AWAY = "TotalVariation"
SQUARES = "EffectiveSquares"
PLACE = ["latitude", "longitude"]


class Ground(NamedTuple):
    """The public ground of a dataset: its most populous place, its middle, and blocks' centroids."""

    place: Any
    middle: np.ndarray
    centroids: np.ndarray | None
    tree: cKDTree | None

    def kilometres(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """East and north of the middle."""
        return project(*points.T, *self.middle)

    def nearest_centroids(self, points: np.ndarray) -> np.ndarray:
        """The points themselves where there are no blocks."""
        if self.tree is None:
            return points
        _, nearest = self.tree.query(np.stack(self.kilometres(points), axis=1))
        return self.centroids[nearest]


@lru_cache(maxsize=2)
def ground(dataset: Any) -> Ground:
    """The ground of a dataset, which needs no private data."""
    from scipy.spatial import cKDTree

    lowest, highest = np.asarray(dataset.hierarchy.box)
    bare = Ground(
        next(origins(dataset, 1).itertuples()), (lowest[:2] + highest[:2]) / 2, None, None
    )
    if not hasattr(dataset, "blocks"):
        return bare
    centroids = np.unique(dataset.blocks[PLACE].to_numpy(), axis=0)
    tree = cKDTree(np.stack(bare.kilometres(centroids), axis=1))
    return bare._replace(centroids=centroids, tree=tree)


@value
class DestinationStatistics:
    """How far shares of squares are from the truth, and over how many squares people are spread."""

    dataset: Any
    miles: float
    side: float

    def __call__(self, truth: Any, estimate: Any) -> pd.DataFrame:
        """Two rows, with how many `commuters` there are in truth."""
        true_shares, commuters = true_shares_of(self, truth)
        shares = self.shares(self.destinations(estimate))
        positive = shares[shares > 0]
        values = {
            AWAY: shares.sub(true_shares, fill_value=0).abs().sum() / 2,
            SQUARES: np.exp(-(positive * np.log(positive)).sum()),
        }
        rows = pd.DataFrame({"metric": [*values], "value": [*values.values()]})
        return rows.assign(commuters=commuters)

    def destinations(self, commutes: Any) -> pd.DataFrame:
        """Where those work who live near the origin: places, moved to centroids, and people."""
        place = ground(self.dataset).place
        origin = CommuteDistances(place.latitude, place.longitude, self.miles * MILE)
        points, counts = origin.commutes(commutes)
        work = ground(self.dataset).nearest_centroids(points[:, 2:])
        people = pd.DataFrame(work, columns=PLACE).assign(value=counts)
        return people.groupby(PLACE, as_index=False).value.sum()

    def shares(self, destinations: pd.DataFrame) -> pd.Series:
        """Of all destinations, by square."""
        kilometres = ground(self.dataset).kilometres(destinations[PLACE].to_numpy())
        squares = [np.floor(x / self.side).astype(int) for x in kilometres]
        people = destinations.value.groupby(squares).sum()
        return people / people.sum()


@lru_cache(maxsize=1)  # of the truth: all trials ask for the same
def true_shares_of(asked: DestinationStatistics, truth: Any) -> tuple[pd.Series, int]:
    """The shares of squares, and how many commuters there are."""
    true = asked.destinations(truth)
    return asked.shares(true), int(true.value.sum())


@value
class DestinationMap(DestinationStatistics):
    """The people at each place."""

    def __call__(self, truth: Any, estimate: Any) -> pd.DataFrame:
        """A row a place, with the `origin` and what surrounds it."""
        place = ground(self.dataset).place
        about = dict(origin=place.place, side=self.side, radius=self.miles * MILE)
        about |= dict(origin_latitude=place.latitude, origin_longitude=place.longitude)
        return self.destinations(estimate).assign(metric=MAP, **about)
