"""Table 1 of "Synthetic Data via Differential Privacy" (2009): maps of the workplaces of people who live near
one place.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): section 5.1, appendix B, Table 1.
Read    We compare with the text, because the pictures are not in our copy.
Open    Data, ε and depth are those of Figure 5. The paper's origin is San Francisco. We use the most populous
        place of the census of 2010, Providence, and the first city of the stand-in. As in the paper, we take
        synthetic people whose home is within five miles. Nothing was prepared for this question when the data
        were made. Synthetic workplaces are moved to the nearest centroid of a block, which needs no private
        data. Homes are not moved. The source has its own centroids. The stand-in has no blocks, so nothing is
        moved there. As in the paper, we show direct synthesis. The improved histogram follows for comparison,
        and no statement is tested on it. Squares have sides of 1 km (5 km in the stand-in), and seed 0 is
        drawn. The maps leave out the outermost 1 % of places on each side.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from experiments._fields import unprinted_number
from experiments.adaptive2009.shared import (
    CHILDREN,
    DIRECT,
    IMPROVED,
    MILE,
    REAL,
    RESAMPLE,
    SOURCE,
    TOTAL,
    Commutes,
    Resample,
    Source,
    decisive,
    direct,
    improved,
    neighbours,
    origins,
)
from workbench import Sweep
from workbench.compiled import pd
from workbench.datasets import OnTheMap
from workbench.figures import Figure, plots
from workbench.figures.fields import number
from workbench.figures.plots import project
from workbench.trials import claims
from workbench.trials.claims import Finding, check_between, means
from workbench.trials.metrics import CommuteDistances
from workbench.value import value

MAP = "people"
AWAY = "TotalVariation"
SQUARES = "EffectiveSquares"
PLACE = ["latitude", "longitude"]
LABELS = {SOURCE: "source", RESAMPLE: "source, drawn anew"}


# Table 1's metrics: where people who live near a place work, as a map and as its numbers.


class Ground(NamedTuple):
    """Public geography of a dataset: its most populous place, its middle, and the centroids of its blocks."""

    place: Any
    middle: np.ndarray
    centroids: np.ndarray | None
    tree: Any

    def kilometres(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of points in kilometres to the east and to the north of the middle."""
        return project(*points.T, *self.middle)

    def nearest_centroids(self, points: np.ndarray) -> np.ndarray:
        """Return the nearest block centroid of each point. If there are no blocks, return the points
        themselves.
        """
        if self.tree is None:
            return points
        _, nearest = self.tree.query(np.stack(self.kilometres(points), axis=1))
        return self.centroids[nearest]


@lru_cache(maxsize=2)
def ground(dataset: Any) -> Ground:
    """Return the geography of a dataset, which needs no private data."""
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
    """Metric: distance of the workplaces' distribution over squares from the true one (total variation), and
    the effective number of squares over which people are spread.
    """

    dataset: Any
    miles: float
    side: float

    def __call__(self, truth: Any, estimate: Any) -> pd.DataFrame:
        """Return the metric's values, with one row per number, with the true number of commuters."""
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
        """Return the workplaces of the people who live near the origin, moved to centroids, with the number
        of people at each.
        """
        place = ground(self.dataset).place
        origin = CommuteDistances(place.latitude, place.longitude, self.miles * MILE)
        points, counts = origin.commutes(commutes)
        work = ground(self.dataset).nearest_centroids(points[:, 2:])
        people = pd.DataFrame(work, columns=PLACE).assign(value=counts)
        return people.groupby(PLACE, as_index=False).value.sum()

    def shares(self, destinations: pd.DataFrame) -> pd.Series:
        """Return the share of people in each square."""
        kilometres = ground(self.dataset).kilometres(destinations[PLACE].to_numpy())
        squares = [np.floor(x / self.side).astype(int) for x in kilometres]
        people = destinations.value.groupby(squares).sum()
        return people / people.sum()


@lru_cache(maxsize=1)  # of the truth: all trials ask for the same
def true_shares_of(asked: DestinationStatistics, truth: Any) -> tuple[pd.Series, int]:
    """Return the true share of people in each square, and the true number of commuters."""
    true = asked.destinations(truth)
    return asked.shares(true), int(true.value.sum())


@value
class DestinationMap(DestinationStatistics):
    """Metric: map of the workplaces of people who live near the origin."""

    def __call__(self, truth: Any, estimate: Any) -> pd.DataFrame:
        """Return the metric's values, with one row per workplace, with the origin and its radius."""
        place = ground(self.dataset).place
        about = dict(origin=place.place, side=self.side, radius=self.miles * MILE)
        about |= dict(origin_latitude=place.latitude, origin_longitude=place.longitude)
        return self.destinations(estimate).assign(metric=MAP, **about)


def _directly(rows, metric: str) -> pd.DataFrame:
    """Return the results of direct synthesis in Rhode Island."""
    rows = decisive(rows)
    return rows[(rows.metric == metric) & (rows.series == DIRECT)]


def check_fidelity(rows, level) -> Finding:
    """Check whether the distance from the source's distribution is larger for a smaller ε."""
    more = dict(low=float(np.nextafter(1, 2)), words="farther")
    return neighbours(_directly(rows, AWAY), level, "panel", **more)


def check_diffuse(rows, level) -> Finding:
    """Check whether synthetic workplaces are spread over more squares than those of the source."""
    own = decisive(rows)
    source = own[(own.metric == SQUARES) & (own.series == SOURCE)].value.mean()
    squares = means(_directly(rows, SQUARES), DIRECT, "epsilon").over(source)
    beyond = float(np.nextafter(1, 2))
    return check_between(squares, level, low=beyond, words="more diffuse")


@value
class Table1(Commutes, Figure):
    """Maps of workplaces in one release of each kind, and the corresponding numbers from all releases."""

    title = "Where people who live within five miles of a place work"
    headline = (
        "Synthetic destinations sharpen as ε grows, and stay more diffuse than the source"
    )
    rests_on = ("a-t1.1", "a-t1.2")
    page = "adaptive2009, appendix B, Table 1"
    columns = 4

    miles: float = number(5.0, "radius of the origin", 0, 1000, unit="miles", strict=True)
    side: float = unprinted_number(
        1.0, "side of the squares in Rhode Island", 0, unit="km", strict=True
    )
    twin_side: float = unprinted_number(
        5.0, "side of the squares in the stand-in", 0, unit="km", strict=True
    )

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: the numbers for all datasets, and the maps for the first dataset."""
        sweeps = {}
        for name, dataset in self.datasets().items():
            side = self.side if name == REAL else self.twin_side
            asked = (dataset, self.miles, side)
            numbers = DestinationStatistics(*asked)
            made = {f"{name}||": [Source(), Resample()]}
            for epsilon in self.epsilons:
                one = direct(epsilon, TOTAL, self.depth_of(name), self.records_of(name))
                histogram = improved(epsilon, self.drawn(), CHILDREN)
                made[f"{name}|{self.drawn()}|{epsilon}"] = [one, histogram]
            for key, mechanisms in made.items():
                sweeps[key] = Sweep([dataset], mechanisms, [numbers], self.seeds)
                if name == next(iter(self.datasets())):
                    maps = [DestinationMap(*asked)]
                    sweeps[f"{key}|map"] = Sweep([dataset], mechanisms, maps, seeds=1)
        return sweeps

    def plot(self, rows: pd.DataFrame):
        """Draw maps of direct synthesis, as in the paper."""
        return self._maps(rows, SOURCE, DIRECT)

    def supplement(self, rows: pd.DataFrame):
        """Draw maps of the improved histogram."""
        drawing = self._maps(rows, RESAMPLE, IMPROVED)
        plots.entitle(drawing, f"Supplement: {self.title}")
        plots.lay_out(drawing)
        return drawing

    def _maps(self, rows: pd.DataFrame, first: str, series: str):
        """Draw a map of the true workplaces, and maps of a method, from the largest ε to the smallest."""
        maps = rows[rows.metric == MAP]
        frames = [maps[maps.series == first].assign(panel=LABELS[first])]
        for epsilon in self.epsilons[::-1]:
            one = maps[(maps.series == series) & (maps.epsilon == epsilon)]
            frames.append(one.assign(panel=f"{series.split()[0]}, ε = {epsilon:g}"))
        place = maps.iloc[0]
        real = place.panel == REAL
        return plots.maps(
            pd.concat(frames, ignore_index=True),
            len(self.epsilons) + 1,
            cell=place.side,
            bar=20 if real else 100,
            label=f"people in a square of {place.side:g} km",
            land=OnTheMap().points().blocks if real else None,
            circle=(place.origin_latitude, place.origin_longitude, place.radius),
        )

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table with the distance from the source and the effective number of squares. It has one
        row per dataset and map.
        """
        own = rows[rows.metric.isin([AWAY, SQUARES])]
        private = np.isfinite(own.epsilon)
        named = own.series + own.epsilon.map(", ε = {:g}".format)
        label = named.where(private, own.series.map(LABELS))
        means = own.groupby(["panel", label, "metric"], sort=False).value.mean().unstack()
        table = pd.DataFrame(
            {
                "total variation": means[AWAY].map(lambda x: f"{100 * x:.3g} %"),
                "effective squares": means[SQUARES].map(claims.format_number),
            }
        )
        return table.rename_axis(["dataset", "destinations"])
