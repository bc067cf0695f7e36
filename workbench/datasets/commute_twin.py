"""CommuteTwin: made-up commuting across a country, as points: home and work, in degrees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from workbench.arrays import Float, Int
from workbench.datasets._generated import seed_field
from workbench.datasets._kinds import Twin
from workbench.hierarchy import OverHierarchy, Quadtree
from workbench.libraries import pd
from workbench.records import Records
from workbench.table import Bound
from workbench.value import parameter, sealed, value

LOW = (24.5, -125.0)  # latitude, longitude: the contiguous US
HIGH = (49.5, -66.5)
CITIES = 3_000
RURAL = 0.15  # share of homes
MEDIAN = 10.0  # of distances, in km
SPREAD = 1.0  # of their logarithm
LONGEST = 300.0  # km
KM = 111.2  # a degree of latitude

_AT_ONCE = 1 << 20  # points made at a time; another number makes others


@value
class CommuteTwin(OverHierarchy, Twin):
    """People in 3,000 cities and between them, and where they work: four dimensions, in degrees.

    What is matched to print: home and work as latitude and longitude, and the scale, up to the
    100 million respondents of the paper. What is ours: cities stand anywhere in the box of the
    contiguous US, and the r-th has homes in proportion to 1/r (Zipf); they scatter around its
    centre by a normal law of 2 km and up to 27 km, as the root of its size; 15 % of homes are
    anywhere. Distances to work are lognormal, half of them below 10 km, 16.5 km on average and
    300 km at most, towards the centre more often than not. What would leave the box is folded
    back: of one person in a thousand.

    One unit is one person, one record. Made up, so public. Ten million take a few seconds.
    Source of the scale: Synthetic Data via Differential Privacy, 2009, section 5.1.
    """

    original = (
        "LEHD's commuters of the whole country: `OnTheMap` reads them, state by state (LODES 7 or 8), and "
        "the figures run on Rhode Island"
    )
    matched: ClassVar[Mapping[str, str]] = {
        "sum": "the scale, up to 100 million people",
    }
    invented: ClassVar[Mapping[str, str]] = {
        "places": "where cities are, how large, and how homes scatter",
        "joint": "distances and directions from home to work",
    }
    cite: ClassVar[str] = "adaptive2009"
    truth_public: ClassVar[bool] = True

    records: int = parameter(
        10_000_000, 1, 10**9, integer=True, unit="people", doc="how many people"
    )
    depth: int = parameter(16, 1, 16, integer=True, unit="levels", doc="of the tree of places")
    seed: int = seed_field()

    @property
    def hierarchy(self) -> Quadtree:
        """The box of the contiguous US, home × work, in degrees."""
        from workbench.datasets.commute_points import ATTRIBUTES

        return Quadtree(4, self.depth, LOW * 2, HIGH * 2, ATTRIBUTES)

    def places(self) -> pd.DataFrame:
        """The cities, public, the most populous first, as in `CommutePoints.places`.

        `population` is how many homes are expected to be of the city, in people.
        """
        latitude, longitude = _cities(np.random.default_rng(self.seed))
        people = np.rint(self.records * _shares()[:-1]).astype(np.int64)
        names = [f"city {i + 1}" for i in range(CITIES)]
        return pd.DataFrame(
            dict(place=names, population=people, latitude=latitude, longitude=longitude)
        )

    def load(self) -> Records:
        """The points, the same for the same parameters; at another depth the same in other cells."""
        rng = np.random.default_rng(self.seed)
        tree = self.hierarchy
        centres = _cities(rng)
        homes = rng.multinomial(self.records, _shares())
        cities = np.repeat(np.arange(CITIES + 1, dtype=np.int16), homes)
        keys = np.empty(self.records, np.uint64)
        for start in range(0, self.records, _AT_ONCE):
            points = _commutes(cities[start : start + _AT_ONCE], centres, rng)
            keys[start : start + len(points)] = tree.encode(points)[0][0]
        keys.sort()
        return Records(tree, sealed(keys), None, Bound(1), self.truth_public)


def _cities(rng: np.random.Generator) -> Float[np.ndarray, "2 cities"]:
    """Latitudes and longitudes of the centres, a degree inside the box."""
    low = np.array(LOW) + 1
    high = np.array(HIGH) - 1
    return rng.uniform(low, high, (CITIES, 2)).T


def _shares() -> Float[np.ndarray, " places"]:
    """Of homes, city by city; the last is the country between them."""
    shares = 1 / np.arange(1, CITIES + 1)
    return np.append((1 - RURAL) * shares / shares.sum(), RURAL)


def _commutes(
    cities: Int[np.ndarray, " n"],
    centres: Float[np.ndarray, "2 cities"],
    rng: np.random.Generator,
) -> Float[np.ndarray, "n 4"]:
    """Home and work of people of these cities."""
    n = len(cities)
    between = cities == CITIES
    city = np.where(between, 0, cities)
    off = (2 + 25 * (city + 1) ** -0.5) * rng.standard_normal((2, n)) / KM  # in latitudes
    home = centres[:, city] + off
    home[1] = centres[1, city] + off[1] / np.cos(np.radians(home[0]))
    home[:, between] = rng.uniform(LOW, HIGH, (int(between.sum()), 2)).T
    _fold(home)
    away = np.exp(np.log(MEDIAN) + SPREAD * rng.standard_normal(n))
    away = np.minimum(away, LONGEST) / KM
    way = np.arctan2(-off[1], -off[0]) + rng.standard_normal(n)
    work = home + away * np.cos(way)
    work[1] = home[1] + away * np.sin(way) / np.cos(np.radians(home[0]))
    _fold(work)
    return np.concatenate([home, work]).T


def _fold(points: Float[np.ndarray, "2 n"]) -> None:
    """Mirror at the sides of the box what lies outside."""
    for x, low, high in zip(points, LOW, HIGH, strict=True):
        np.abs(x - low, out=x)
        x += low
        np.abs(high - x, out=x)
        np.subtract(high, x, out=x)
