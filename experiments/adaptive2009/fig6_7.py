"""Synthetic data via differential privacy (2009), Figures 6 and 7: how far people commute.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): section 5.1, Figures 6 and 7.
Read    from the text; the plots are not in our copy, and the text prints no number.
Open    Data, ε, threshold and discount as in Figure 5, with what they leave open. People times ε decides
        what noise does, and the paper has 10⁸ of them: what is judged has ε × 10⁸ / people, and what has
        the printed ε stands beside. The paper's origins are two large cities, Honolulu and San Francisco,
        and a small one, Billings. Here they are the two most and the two least populous of the places, by
        the census of 2010, and so by public numbers that were known before the jobs: Providence and
        Warwick, New Shoreham (an island) and Little Compton. Of the twin's cities, by expected homes, the
        first and the last.
        An origin is what lies within a radius of the place's middle, as in Table 1, the mean of its
        blocks' centroids. Distances are those on the globe between centroids, and between synthetic
        points. The gap is Kolmogorov's distance, the largest vertical one between two curves.
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
    """How far people commute from one origin: the gap from the truth, and the curve itself."""

    origin: str
    kind: str
    population: int
    distances: CommuteDistances
    farthest: float

    def __call__(self, truth, estimate: Any) -> pd.DataFrame:
        """A row of the gap, and one for each point of the curve, at `km`."""
        km = np.linspace(0, self.farthest, POINTS)
        curve = pd.DataFrame(
            {"km": km, "value": self.distances.cdf(estimate, km), "metric": CDF}
        )
        gap = pd.DataFrame({"value": [self.distances(truth, estimate)], "metric": GAP})
        about = dict(origin=self.origin, kind=self.kind, population=self.population)
        about["commuters"] = int(self.distances.commutes(truth).counts.sum())
        return pd.concat([gap, curve], ignore_index=True).assign(**about)


def _gaps(rows) -> pd.DataFrame:
    """The gaps of the improved histogram whose people times ε is the paper's."""
    rows = decisive(rows)
    return rows[(rows.metric == GAP) & (rows.series == IMPROVED) & (rows["product"] == MATCHED)]


def check_occluded(rows, level, value: float) -> Finding:
    """Whether from both populous origins all gaps are within a line of so many per cent."""
    own = _gaps(rows)
    gaps = means(own[own.kind == POPULOUS], IMPROVED, ["origin", "epsilon"])
    return check_between(gaps, level, high=value / 100, words="within the line")


def check_off(rows, level, value: float) -> Finding:
    """Whether from one sparse origin at least all gaps are wider than a line."""
    own = _gaps(rows)
    beyond = dict(low=float(np.nextafter(value / 100, 1)), words="beyond the line")
    places = own[own.kind == SPARSE].groupby("origin", sort=False)
    gaps = {name: means(place, IMPROVED, "epsilon") for name, place in places}
    return any_of(
        {name: partial(check_between, x, **beyond) for name, x in gaps.items()}, level
    )


def check_worse(rows, level) -> Finding:
    """Whether one sparse origin has larger gaps than both populous ones, at each ε."""
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
    """A curve an origin, and its distance from the source's."""

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
        """The source, and the improved histogram at the paper's people times ε, and at its ε."""
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
        """With the `product` of people and ε, the paper's or that of the printed ε."""
        rows = super().rows(store)
        return rows.assign(product=rows.way.where(rows.way != ""))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Populous and sparse origins side by side: people times ε as printed, then ε as printed."""
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
        """Curves alone, whose series have their printed ε."""
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
