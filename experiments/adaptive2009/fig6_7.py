"""Figures 6 and 7 of "Synthetic Data via Differential Privacy" (2009): distribution of commuting distances.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): section 5.1, Figures 6 and 7.
Read    The plots are not in our copy, and the text prints no number.
Open    Data, ε, thresholds and discounts are those of Figure 5, including what the paper does not print about
        them. The effect of noise depends on the number of people times ε, and the paper has 10⁸ people.
        Statements are therefore tested with ε × 10⁸ / people. The printed ε is run for comparison. The
        paper's origins are two large cities, Honolulu and San Francisco, and a small one, Billings. We use
        the two most populous and the two least populous places of Rhode Island in the census of 2010. These
        numbers were public before the data on jobs. The places are Providence and Warwick, New Shoreham (an
        island) and Little Compton. In the stand-in, we use the first and the last city by the expected number
        of homes. An origin consists of the homes within a radius around the middle of the place, as in Table
        1. The middle is the mean of the centroids of its blocks. Distances are measured on the globe, between
        centroids or between synthetic points. The gap is the Kolmogorov distance, the largest vertical
        distance between two distribution functions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments._fields import unprinted, unprinted_number
from experiments.adaptive2009.shared import (
    IMPROVED,
    MILE,
    POPULOUS,
    REAL,
    SPARSE,
    Commutes,
    Source,
    decisive,
    origins,
)
from workbench import Sweep
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.figures.plots import Panel
from workbench.trials.claims import (
    Finding,
    all_of,
    any_of,
    check_between,
    check_lower,
    means,
    paired_ratios,
)
from workbench.trials.metrics import CommuteDistances
from workbench.value import value

GAP = "CommuteDistances"
CDF = "CommuteCDF"
POINTS = 161  # of a curve
MATCHED = "matched"
PEOPLE = 10**8  # of the paper's release
AS_PRINTED = "printed"


# Figures 6 and 7's metric: how far people commute from a place.


@value
class CommuteCurve:
    """Metric: distribution of commuting distances from one origin, and its gap (Kolmogorov distance) from the
    true distribution.
    """

    origin: str
    kind: str
    population: int
    distances: CommuteDistances
    farthest: float

    def __call__(self, truth, estimate: Any) -> pd.DataFrame:
        """Return the metric's values, with one row for the gap, and one row per point of the distribution
        function, at the distance `km`.
        """
        km = np.linspace(0, self.farthest, POINTS)
        curve = pd.DataFrame(
            {"km": km, "value": self.distances.cdf(estimate, km), "metric": CDF}
        )
        gap = pd.DataFrame({"value": [self.distances(truth, estimate)], "metric": GAP})
        about = dict(origin=self.origin, kind=self.kind, population=self.population)
        about["commuters"] = int(self.distances.commutes(truth).counts.sum())
        return pd.concat([gap, curve], ignore_index=True).assign(**about)


def _gaps(rows) -> pd.DataFrame:
    """Return the gaps of the improved histogram for runs with the paper's number of people times ε."""
    rows = decisive(rows)
    return rows[(rows.metric == GAP) & (rows.series == IMPROVED) & (rows["product"] == MATCHED)]


def check_occluded(rows, level, value: float) -> Finding:
    """Check whether all gaps from both populous origins are at most `value` per cent, the assumed width of a
    line in the plot.
    """
    own = _gaps(rows)
    gaps = means(own[own.kind == POPULOUS], IMPROVED, ["origin", "epsilon"])
    return check_between(gaps, level, high=value / 100, words="within the line")


def check_off(rows, level, value: float) -> Finding:
    """Check whether all gaps from at least one sparse origin are larger than `value` per cent, the assumed
    width of a line in the plot.
    """
    own = _gaps(rows)
    beyond = dict(low=float(np.nextafter(value / 100, 1)), words="beyond the line")
    places = own[own.kind == SPARSE].groupby("origin", sort=False)
    gaps = {name: means(place, IMPROVED, "epsilon") for name, place in places}
    return any_of(
        {name: partial(check_between, x, **beyond) for name, x in gaps.items()}, level
    )


def check_worse(rows, level) -> Finding:
    """Check whether one sparse origin has larger gaps than both populous origins, at each ε."""
    own = _gaps(rows)
    kinds = own.drop_duplicates("origin").set_index("origin").kind
    by_origin = own.assign(series=own.origin, origin="", kind="", population=0, commuters=0)

    def from_origin(sparse, level):
        others = kinds.index[kinds == POPULOUS]
        gaps = {name: paired_ratios(by_origin, name, sparse, "epsilon") for name in others}
        return all_of({name: partial(check_lower, x) for name, x in gaps.items()}, level)

    sparse = kinds.index[kinds == SPARSE]
    return any_of({name: partial(from_origin, name) for name in sparse}, level)


@value
class Fig6_7(Commutes, Figure):  # noqa: N801
    """Distribution of commuting distances from populous and sparse origins, and its gap from the true
    distribution.
    """

    title = "How far people commute from a populous and from a sparse origin"
    headline = "Synthetic commutes follow the truth from populous places, not from a sparse one"
    rests_on = ("a-6.1", "a-7.1")
    main = 4
    page = "adaptive2009, section 5.1, Figures 6 and 7"

    miles: float = unprinted_number(
        5.0, "radius of an origin", 0, 1000, unit="miles", strict=True
    )
    origins: int = unprinted(2, "populous places, and sparse ones, in Rhode Island")
    farthest: float = unprinted_number(
        80.0, "largest distance on the axis", 0, unit="km", strict=True
    )

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: the source, and the improved histogram with the paper's product of people
        and ε, and with its ε.
        """
        sweeps = {}
        for name, dataset in self.datasets().items():
            places = origins(dataset, self.origins if name == REAL else 1)
            metrics = []
            for place in places.itertuples():
                middle = (float(place.latitude), float(place.longitude))
                distances = CommuteDistances(*middle, self.miles * MILE)
                about = (place.place, place.kind, int(place.population))
                metrics.append(CommuteCurve(*about, distances, self.farthest))
            scales = {AS_PRINTED: 1.0, MATCHED: PEOPLE / self.records_of(name)}
            for way, scale in scales.items():
                for key, made in self.techniques(name, (IMPROVED,), scale).items():
                    if way == AS_PRINTED and f"|{self.drawn()}|" not in key:
                        continue  # it stands beside, and decides nothing
                    sweeps[f"{key}|{way}"] = Sweep([dataset], made, metrics, self.seeds)
            sweeps[f"{name}|||"] = Sweep([dataset], [Source()], metrics, seeds=1)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results. The column `product` says whether a run has the paper's product of
        people and ε, or its ε.
        """
        rows = super().rows(store)
        return rows.assign(product=rows.way.where(rows.way != ""))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels, with populous and sparse origins side by side. The first ones have the
        printed product of people and ε, and the others the printed ε.
        """
        grid = []
        places = rows.drop_duplicates(["panel", "origin"])
        turn = places.groupby(["panel", "kind"]).cumcount()
        places = places.assign(turn=turn).sort_values("turn", kind="stable")
        for way in (MATCHED, AS_PRINTED):
            for place in places.itertuples():
                how = "people × ε as printed" if way == MATCHED else "ε as printed"
                title = f"{place.origin} ({place.population:,} people): {how}"
                where = {"panel": place.panel, "origin": place.origin, "shown": way}
                grid.append(Panel(title, where, "km", log=""))
        return grid

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the distribution functions to draw. The names of private curves contain the printed ε."""
        curves = rows[
            (rows.metric == CDF) & (rows.setting.isna() | (rows.setting == self.drawn()))
        ]
        private = curves["product"].notna()
        named = curves.series + curves.epsilon.map(", ε = {:g}".format)
        curves = curves.assign(series=named.where(private, curves.series))
        frames = []
        for way in (MATCHED, AS_PRINTED):
            own = curves[~private | (curves["product"] == way)]
            frames.append(own.assign(shown=way))
        return pd.concat(frames, ignore_index=True)
