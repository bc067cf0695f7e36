"""What Figures 5 to 7 and Table 1 of adaptive2009 share: commutes, techniques, and places to ask about."""

from __future__ import annotations

from math import ceil
from typing import Any

import pandas as pd

from workbench import DP
from workbench.datasets import CommuteTwin, OnTheMap
from workbench.experiment import first_available
from workbench.figures import EFFORT, UNPRINTED
from workbench.figures.parameters import epsilons, number, seeds, selection, whole
from workbench.mechanisms import DirectSynthesis, ImprovedAdaptiveHistogram, PrivTree
from workbench.value import value

REAL = "Rhode Island"
TWIN = "twin of the country"
JOBS = 406_052  # in Rhode Island, as its publisher tells
CHILDREN = 16  # of a node: home and work, two coordinates each
MILE = 1.609344  # km
POPULOUS = "populous"
SPARSE = "sparse"


@value
class Commutes:
    """The parameters of all figures of commutes."""

    quick = {"data": (REAL,), "people": 200_000, "seeds": 5}

    epsilons: tuple[float, ...] = epsilons((0.1, 1.0, 10.0), "ε of a whole release")
    data: tuple[str, ...] = selection(
        (REAL, TWIN), (REAL, TWIN), "commutes; the twin where files are missing", kind=EFFORT
    )
    people: int = whole(4_000_000, "people of the twin", 1000, 10**8, kind=EFFORT)
    depth: int = whole(
        10, "depth of direct synthesis in Rhode Island", 1, 16, unit="levels", kind=UNPRINTED
    )
    twin_depth: int = whole(
        13, "depth of direct synthesis in the twin", 1, 16, unit="levels", kind=UNPRINTED
    )
    measure: float = number(
        0.5, "share of ε for the leaves' counts (improved)", 0.01, 0.99, kind=UNPRINTED
    )
    twin_seeds: int = seeds(5, "releases of the twin, at most")
    seeds: int = seeds(20)

    def datasets(self) -> dict[str, Any]:
        """Those of `data` that are at hand, by the names of their panels."""
        real = first_available(OnTheMap().points(), None) if REAL in self.data else None
        there = {} if real is None else {REAL: real}
        if TWIN in self.data or real is None:
            there[TWIN] = CommuteTwin(self.people)
        return there

    def depth_of(self, name: str) -> int:
        """How deep direct synthesis goes, and sums of distances."""
        return self.depth if name == REAL else self.twin_depth

    def seeds_of(self, name: str) -> int:
        """Releases of each mechanism."""
        return self.seeds if name == REAL else min(self.seeds, self.twin_seeds)

    def direct(self, name: str) -> list[DirectSynthesis]:
        """Direct synthesis of as many records as there are, at each ε."""
        fixed = dict(depth=self.depth_of(name), records=JOBS if name == REAL else self.people)
        return [DirectSynthesis(DP(epsilon), **fixed) for epsilon in self.epsilons]

    def improved(self) -> list[ImprovedAdaptiveHistogram]:
        """Improved histograms at each ε; their threshold is the noise on the counts of 16 children.

        >>> [histogram.threshold for histogram in Commutes().improved()]
        [320, 32, 4]
        """
        histograms = []
        for epsilon in self.epsilons:
            fixed = dict(
                threshold=ceil(CHILDREN / (epsilon * self.measure)), measure=self.measure
            )
            histograms.append(ImprovedAdaptiveHistogram(DP(epsilon), **fixed))
        return histograms

    def privtrees(self) -> list[PrivTree]:
        """PrivTree at each ε."""
        return [PrivTree(DP(epsilon)) for epsilon in self.epsilons]

    def rows(self, store) -> pd.DataFrame:
        """All sweeps by dataset, which is what a sweep's name begins with, and technique."""
        rows = super().rows(store)
        panel = rows.panel.str.partition(", ")[0]
        return rows.assign(panel=panel, series=rows.mechanism_name)


def origins(dataset: Any, count: int) -> pd.DataFrame:
    """The most and the least populous places, by public numbers: `place`, `kind`, and where."""
    places = dataset.places().dropna(subset="population")
    populous = places.head(count).assign(kind=POPULOUS)
    sparse = places.tail(count)[::-1].assign(kind=SPARSE)
    both = pd.concat([populous, sparse])
    short = both.place.str.replace(r" (city|town) \(.*", "", regex=True)
    return both.assign(place=short).reset_index(drop=True)
