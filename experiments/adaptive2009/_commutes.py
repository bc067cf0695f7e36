"""What Figures 5 to 7 and Table 1 of adaptive2009 share: commutes, techniques, and places to ask about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from experiments.adaptive2009._unprinted import (
    BASIC,
    DIRECT,
    IMPROVED,
    basic,
    direct,
    drawn_of,
    improved,
    settings_field,
    unpacked,
    whose_epsilon,
)
from workbench.compiled import pd
from workbench.datasets import CommuteTwin, OnTheMap
from workbench.figures import EFFORT, UNPRINTED
from workbench.figures.fields import choice, epsilons, seeds, whole
from workbench.mechanisms.protocol import Mechanism
from workbench.trials import first_available
from workbench.trials.claims import MissingPoints
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

    quick = {"people": 200_000, "settings": ("total 3 ln k", "total k"), "seeds": 3}

    epsilons: tuple[float, ...] = epsilons((0.1, 1.0, 10.0), "ε")
    settings: tuple[str, ...] = settings_field()
    data: tuple[str, ...] = choice(
        (REAL,), (REAL, TWIN), "commutes; the twin where files are missing", kind=EFFORT
    )
    people: int = whole(4_000_000, "people of the twin", 1000, 10**8, kind=EFFORT)
    depth: int = whole(
        10, "depth of basic and direct in Rhode Island", 1, 16, unit="levels", kind=UNPRINTED
    )
    twin_depth: int = whole(
        13, "depth of basic and direct in the twin", 1, 16, unit="levels", kind=UNPRINTED
    )
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

    def records_of(self, name: str) -> int:
        """How many there are, which is public."""
        return JOBS if name == REAL else self.people

    def drawn(self) -> str:
        """The setting of the histograms that are drawn."""
        return drawn_of(self.settings)

    def techniques(
        self, name: str, of: Iterable[str], scale: float = 1.0
    ) -> dict[str, list[Mechanism]]:
        """Techniques by name, dataset, setting and ε, all `of` the wanted series; `scale` times ε."""
        depth = self.depth_of(name)
        made = {}
        for epsilon in self.epsilons:
            paid = scale * epsilon
            for whose in dict.fromkeys(map(whose_epsilon, self.settings)):
                if DIRECT in of:
                    one = direct(paid, whose, depth, self.records_of(name))
                    made[f"{name}|{whose}|{epsilon}"] = [one]
            for setting in self.settings:
                own = []
                if IMPROVED in of:
                    own.append(improved(paid, setting, CHILDREN))
                if BASIC in of:
                    own.append(basic(paid, setting, CHILDREN, depth))
                if own:
                    made[f"{name}|{setting}|{epsilon}"] = own
        return made

    def rows(self, store) -> pd.DataFrame:
        """Of all sweeps, under the names of their datasets."""
        return unpacked(super().rows(store))


def decisive(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of Rhode Island, the real data, which alone decides."""
    own = rows[rows.panel == REAL]
    if own.empty:
        raise MissingPoints(f"{REAL} decides, whose files are not at hand")
    return own


def origins(dataset: Any, count: int) -> pd.DataFrame:
    """The most and the least populous places, by public numbers: `place`, `kind`, and where."""
    places = dataset.places().dropna(subset="population")
    populous = places.head(count).assign(kind=POPULOUS)
    sparse = places.tail(count)[::-1].assign(kind=SPARSE)
    both = pd.concat([populous, sparse])
    short = both.place.str.replace(r" (city|town) \(.*", "", regex=True)
    return both.assign(place=short).reset_index(drop=True)
