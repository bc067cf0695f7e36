"""Synthetic data via differential privacy (2009), Table 1: where people near one place work, as maps.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): section 5.1, appendix B, Table 1.
Read    from the text; the pictures are not in our copy.
Open    Data, ε and depth as in Figure 5. The paper's origin is San Francisco; here it is the most
        populous place by the census of 2010, Providence, and of the twin its first city. As in the
        paper, synthetic people count whose home lies within five miles, nobody asked for them when the
        data was made, and their work is moved to the nearest centroid of a block (which needs no
        private data); homes are not. The source has its own centroids. The twin has no blocks: nothing
        is moved.
        Direct synthesis, as in the paper; below it the improved histogram, which is not judged. Squares
        of 1 km (5 km in the twin); seed 0 is drawn.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from experiments.adaptive2009._commutes import CHILDREN, REAL, Commutes, decisive
from experiments.adaptive2009._maps import (
    AWAY,
    MAP,
    SQUARES,
    DestinationMap,
    DestinationStatistics,
)
from experiments.adaptive2009._techniques import (
    DIRECT,
    IMPROVED,
    RESAMPLE,
    SOURCE,
    Resample,
    Source,
)
from experiments.adaptive2009._unprinted import TOTAL, direct, improved
from workbench import Sweep
from workbench.compiled import pd
from workbench.datasets import OnTheMap
from workbench.figures import UNPRINTED, Figure
from workbench.figures.fields import number
from workbench.trials import claims
from workbench.trials.claims import (
    Finding,
    all_of,
    check_between,
    check_lower,
    means,
    paired_ratios,
)
from workbench.value import value

EPSILONS = Commutes.epsilons
LABELS = {SOURCE: "source", RESAMPLE: "source, drawn anew"}


def _directly(rows, metric: str) -> pd.DataFrame:
    """Direct synthesis in Rhode Island."""
    rows = decisive(rows)
    return rows[(rows.metric == metric) & (rows.series == DIRECT)]


def check_fidelity(rows, level) -> Finding:
    """Whether the distance from the source's shares falls with ε."""
    away = _directly(rows, AWAY)
    away = away.assign(series=away.epsilon.map("{:g}".format), epsilon=0.0, paid=0.0)
    parts = {}
    for less, more in pairwise(EPSILONS):
        ratios = partial(paired_ratios, away, f"{more:g}", f"{less:g}", "panel")
        parts[f"ε = {less:g} to {more:g}"] = lambda at, ratios=ratios: check_lower(ratios(), at)
    return all_of(parts, level)


def check_diffuse(rows, level) -> Finding:
    """Whether destinations are spread over more squares than the source's."""
    own = decisive(rows)
    source = own[(own.metric == SQUARES) & (own.series == SOURCE)].value.mean()
    squares = means(_directly(rows, SQUARES), DIRECT, "epsilon").over(source)
    beyond = float(np.nextafter(1, 2))
    return check_between(squares, level, low=beyond, words="more diffuse")


@value
class Table1(Commutes, Figure):
    """Maps of one release of each kind, and what they show as numbers, of all releases."""

    title = "Where people who live within five miles of a place work"
    headline = (
        "Synthetic destinations sharpen as ε grows, and stay more diffuse than the source"
    )
    rests_on = ("a-t1.1", "a-t1.2")
    page = "adaptive2009, appendix B, Table 1"
    columns = 4

    miles: float = number(5.0, "radius of the origin", 0, 1000, unit="miles", strict=True)
    side: float = number(
        1.0, "squares of Rhode Island", 0, unit="km", kind=UNPRINTED, strict=True
    )
    twin_side: float = number(
        5.0, "squares of the twin", 0, unit="km", kind=UNPRINTED, strict=True
    )

    def sweeps(self) -> dict[str, Sweep]:
        """The numbers of all datasets; the maps of the first."""
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
        """A line of direct synthesis and one of improved histograms, the least noise first."""
        from workbench.figures import plots

        maps = rows[rows.metric == MAP]
        frames = []
        for first, series in ((SOURCE, DIRECT), (RESAMPLE, IMPROVED)):
            frames.append(maps[maps.series == first].assign(panel=LABELS[first]))
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
        """Distance from the source, and effective squares: a line a dataset and map."""
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
