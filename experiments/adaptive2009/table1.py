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
Words   fidelity = the total variation distance between the destinations' shares of the squares, source
        against synthesis: it falls with each ε, intervals apart. More diffuse = the effective number of
        squares, the exponential of the shares' entropy, is above the source's at every ε, interval
        apart. Both are told of source people drawn anew, as many, which neither privacy nor detail
        limits.
"""

from __future__ import annotations

import pandas as pd

from experiments.adaptive2009._commutes import REAL, Commutes
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
from workbench import Sweep
from workbench.claims import Finding, decide, format_number, mean_curve
from workbench.claims.old import Claim, all_of, check_lower
from workbench.datasets import OnTheMap
from workbench.figures import UNPRINTED, Figure
from workbench.figures.parameters import number
from workbench.value import value

EPSILONS = Commutes.epsilons
LABELS = {SOURCE: "source", RESAMPLE: "source, drawn anew"}


def _curve(rows, panel: str, series: str, metric: str, epsilon=None) -> pd.DataFrame:
    where = {} if epsilon is None else {"epsilon": epsilon}
    return mean_curve(rows, "series", panel=panel, series=series, metric=metric, **where)


def _fidelity_rises(rows) -> Finding:
    parts = {}
    for name in rows.panel.unique():
        for less, more in zip(EPSILONS, EPSILONS[1:], strict=False):
            before = _curve(rows, name, DIRECT, AWAY, less)
            after = _curve(rows, name, DIRECT, AWAY, more)
            means = f"{100 * before['mean'].iloc[0]:.3g} → {100 * after['mean'].iloc[0]:.3g} %"
            parts[f"{name}, to ε = {more:g}"] = Finding(check_lower(after, before).holds, means)
    return all_of(parts)


def _more_diffuse(rows) -> Finding:
    parts = {}
    for name in rows.panel.unique():
        source = _curve(rows, name, SOURCE, SQUARES)["mean"].iloc[0]
        for epsilon in EPSILONS:
            ours = _curve(rows, name, DIRECT, SQUARES, epsilon).iloc[0]
            holds = decide(ours.low > source, ours.high < source)
            measured = f"{format_number(ours['mean'] / source)}× as many squares"
            parts[f"{name}, ε = {epsilon:g}"] = Finding(holds, measured)
    return all_of(parts)


CLAIMS = (
    Claim(
        "a-t1",
        "Fidelity rises with ε, and synthetic destinations stay more diffuse than the source's.",
        lambda rows: all_of(
            {"fidelity rises": _fidelity_rises(rows), "more diffuse": _more_diffuse(rows)}
        ),
        "Fidelity rises. In Rhode Island the maps are more diffuse at every ε (1.25–1.45×), in the "
        "twin of the country less so than the source at ε = 0.1 and 1 (0.73×, 0.94×): a fixed number "
        "of people gathers where counts stand out of the noise, and smooth destinations in squares "
        "of 5 km leave little to blur.",
    ),
)


@value
class Table1(Commutes, Figure):
    """Maps of one release of each kind, and what they show as numbers, of all releases."""

    title = "Where people who live within five miles of a place work"
    page = "adaptive2009, appendix B, Table 1"
    claims = CLAIMS
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
            mechanisms = [*self.direct(name), *self.improved(), Source(), Resample()]
            asked = (dataset, self.miles, self.side if name == REAL else self.twin_side)
            if not sweeps:
                maps = [DestinationMap(*asked)]
                sweeps[f"{name}, maps"] = Sweep([dataset], mechanisms, maps, seeds=1)
            numbers = [DestinationStatistics(*asked)]
            sweeps[name] = Sweep([dataset], mechanisms, numbers, self.seeds_of(name))
        return sweeps

    def plot(self, rows: pd.DataFrame):
        """A line of direct synthesis and one of improved histograms, the least noise first."""
        from workbench import plots

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
        maps = [(SOURCE, None), (RESAMPLE, None)]
        maps += [(series, epsilon) for series in (DIRECT, IMPROVED) for epsilon in EPSILONS]
        lines = []
        for name in rows.panel.unique():
            for series, epsilon in maps:
                away = _curve(rows, name, series, AWAY, epsilon)["mean"].iloc[0]
                squares = _curve(rows, name, series, SQUARES, epsilon)["mean"].iloc[0]
                line = {"dataset": name}
                line["destinations"] = LABELS.get(series, f"{series}, ε = {epsilon}")
                line["total variation"] = f"{100 * away:.3g} %"
                line["effective squares"] = format_number(squares)
                lines.append(line)
        return pd.DataFrame(lines).set_index(["dataset", "destinations"])
