"""Synthetic data on homes and workplaces: stand-ins for the table `OnTheMap` (`OnTheMapTwin`) and for
commutes as points (`CommuteTwin`), and homes in towns (`Towns`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from workbench.compiled import pd
from workbench.data import Bound, Records, SparseTable
from workbench.datasets.commuting import ATTRIBUTES as COORDINATES
from workbench.datasets.kinds import Dataset, Twin, seed_field
from workbench.spaces import Domain, OverHierarchy, Quadtree
from workbench.value import Float, Int, parameter, sealed, value

# Onthemap twin

LOCATIONS = 4001
STATES = 47
CELLS = 820_000

# The published classes of LODES. The shares of jobs in them are round numbers of our own, and
# so is how alike work places are in them (a Dirichlet law; 1: each has a mix quite of its own).
ATTRIBUTES = {
    "age": {"29 or younger": 0.22, "30 to 54": 0.55, "55 or older": 0.23},
    "salary": {"1250 or less a month": 0.26, "1251 to 3333": 0.36, "more than 3333": 0.38},
    "industry": {"goods": 0.18, "trade, transport, utilities": 0.21, "other services": 0.61},
}
ALIKE = {"age": 20, "salary": 3, "industry": 1}


@value
class OnTheMapTwin(Twin):
    """Synthetic table of jobs by work location and home location, which replaces the OnTheMap data of Cormode
    et al. (2012). The table has 4001 × 4001 cells, of which 820,000 are not empty. The mean count of the
    non-empty cells is 150.

    Three numbers agree with the paper: the number of locations, the number of non-empty cells (5.1 % of all
    cells), and the mean count of these cells. The paper also says that "many cells have frequency 1 or 2". In
    these synthetic data, nearly half of the non-empty cells have a count of 1 or 2. Everything else is our
    invention. There are 47 states on a map of 4000 × 2200 km. The sizes of the states have a lognormal
    distribution. The locations of a state are scattered around its centre. Locations are numbered state by
    state. Each cell gets a score, which is large if there are many jobs at the workplace and many people at
    the home location. The score falls with the cube of the distance between workplace and home. The score is
    higher if both are in the same state. It also contains random noise. The cells with the highest scores get
    the highest counts. The counts are quantiles of a lognormal distribution, so another seed gives the same
    counts to other cells. The largest count is 2.9 million jobs, whose homes and workplaces are in the same
    metropolis. For more than half of all jobs, home and workplace are the same location. For nine out of ten
    jobs, they are in the same state.

    With `attributes=True`, the table also divides the jobs by age, salary and industry. Each of these three
    attributes has three classes. The jobs of a location pair are divided at random among the classes, in
    proportions that depend on the workplace. The table then has 27 times as many cells, and less than 1 % of
    its cells are not empty.

    The data are generated, so they are public. The protected unit is one job, which is in one cell.
    Generating the table takes about a second. Source of the facts that agree with the paper: Cormode,
    Procopiuc, Srivastava, Tran, ICDT 2012, Appendix A and section 4.5.
    """

    original = (
        "OnTheMap version 4 of 2008 in 47 states, by county and two digits of the tract: it is published "
        "no more, and the 47 states are not printed; `OnTheMap` reads versions 7 and 8 of any states"
    )
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "quantiles of a lognormal law: their tail, the largest, and how many are 1 or 2",
        "order": "states side by side on a map, locations scattered around their state",
        "joint": "which homes go with which work: a gravity score",
        "attributes": "shares of age, salary and industry, and how they go with the place",
    }
    cite: ClassVar[str] = "cormode2012"

    attributes: bool = parameter(
        False, choices=(False, True), doc="also generate age, salary and industry"
    )
    seed: int = seed_field()

    @property
    def domain(self) -> Domain:
        """All combinations of a work location and a home location. With `attributes=True`, a combination also
        contains a class of age, of salary and of industry.
        """
        if not self.attributes:
            return Domain(("work", "home"), (LOCATIONS, LOCATIONS))
        labels = (None, None, *map(tuple, ATTRIBUTES.values()))
        shape = (LOCATIONS, LOCATIONS, *map(len, ATTRIBUTES.values()))
        return Domain(("work", "home", *ATTRIBUTES), shape, labels)

    def load(self) -> SparseTable:
        """Generate the table of jobs. The same parameters always give the same table."""
        rng = np.random.default_rng(self.seed)
        score = _gravity(rng).ravel()
        keys = np.flatnonzero(score >= np.partition(score, -CELLS)[-CELLS])
        counts = np.zeros(len(keys), np.int64)  # ties may make a few keys too many
        counts[np.argsort(score[keys], kind="stable")[-CELLS:]] = _sizes()
        keys = keys[counts > 0]
        counts = counts[counts > 0]
        if self.attributes:
            keys, counts = _split(keys, counts, rng)
        return SparseTable(self.domain, keys, counts, Bound(1, 1), self.truth_public)


def _gravity(rng: np.random.Generator) -> Float[np.ndarray, "work home"]:
    """Return the logarithm of the score of each pair of a work location and a home location."""
    size = rng.lognormal(0, 0.8, STATES)
    state = np.sort(rng.choice(STATES, LOCATIONS, p=size / size.sum()))
    centre = rng.uniform((0, 0), (4000, 2200), (STATES, 2))
    place = (centre[state] + rng.normal(0, 250, (LOCATIONS, 2))).astype(np.float32)
    people = rng.normal(0, 1.2, LOCATIONS).astype(np.float32)
    jobs = people + rng.normal(0, 0.5, LOCATIONS).astype(np.float32)
    score = sum(np.square(x[:, None] - x) for x in place.T)  # squared distance, in km²
    score = np.log1p(score / np.float32(5**2)) * np.float32(-1.5)
    score += jobs[:, None]
    score += people
    score += np.float32(5) * (state[:, None] == state)
    score += np.float32(1.5) * rng.standard_normal(score.shape, dtype=np.float32)
    return score


def _sizes() -> Int[np.ndarray, " cells"]:
    """Return the counts of the non-empty cells in ascending order. They are quantiles of a lognormal
    distribution, rounded up. Their mean is 150, and nearly half of them are 1 or 2.
    """
    from scipy.special import ndtri

    quantiles = ndtri((np.arange(CELLS) + 0.5) / CELLS)
    return np.ceil(np.exp(0.8135 + 2.9 * quantiles)).astype(np.int64)


def _split(
    keys: np.ndarray, counts: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Divide the jobs of every cell among the 27 combinations of classes, one attribute after the other. The
    cells stay in ascending order.
    """
    work = keys // LOCATIONS
    for name, shares in ATTRIBUTES.items():
        a, b, c = np.array(list(shares.values())) * ALIKE[name]
        first = rng.binomial(counts, rng.beta(a, b + c, LOCATIONS)[work])  # a Dirichlet law, as
        rest = counts - first  # two shares: of all, and of what the first has left
        second = rng.binomial(rest, rng.beta(b, c, LOCATIONS)[work])
        counts = np.stack([first, second, rest - second], axis=1).ravel()
        keys = (keys[:, None] * 3 + np.arange(3)).ravel()
        work = np.repeat(work, 3)
        full = counts > 0
        keys, counts, work = keys[full], counts[full], work[full]
    return keys, counts


# Commute twin

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
    """Synthetic homes and workplaces of people in and between 3,000 cities, as points. Each person is a point
    with four dimensions: the latitude and longitude of home and of work, in degrees.

    Two facts agree with the paper "Synthetic Data via Differential Privacy" (2009). First, homes and
    workplaces are given by latitude and longitude. Second, there can be as many people as in the paper (100
    million respondents). Everything else is our invention. Cities are at random places in a box around the
    contiguous US. The number of homes in the r-th city is proportional to 1/r (Zipf's law). Homes have a
    normal distribution around the centre of their city. The standard deviation of this distribution is 2 to
    27 km, and is larger for larger cities. The other homes (15 %) are uniformly distributed in the box.
    Distances to work have a lognormal distribution with a median of 10 km, a mean of 16.5 km and a largest
    value of 300 km. Most people work in the direction of the city's centre. About one place in a thousand
    would be outside the box. The generator mirrors such a place at the side of the box, so that the place is
    inside.

    The protected unit is one person, which is one record. The data are generated, so they are public. The
    workbench generates ten million people in a few seconds. Source of the two facts that agree with the
    paper: Synthetic Data via Differential Privacy, 2009, section 5.1.
    """

    original = (
        "LEHD's commuters of the whole country: `OnTheMap` reads them, state by state (LODES 7 or 8), and "
        "the figures run on Rhode Island"
    )
    invented: ClassVar[Mapping[str, str]] = {
        "places": "where cities are, how large, and how homes scatter",
        "joint": "distances and directions from home to work",
    }
    cite: ClassVar[str] = "adaptive2009"

    records: int = parameter(
        10_000_000, 1, 10**9, integer=True, unit="people", doc="number of people"
    )
    depth: int = parameter(
        16, 1, 16, integer=True, unit="levels", doc="number of levels of the hierarchy of boxes"
    )
    seed: int = seed_field()

    @property
    def hierarchy(self) -> Quadtree:
        """Hierarchy (tree) of boxes with four dimensions, in degrees. The first box contains the contiguous
        US, for home and for work. Each level halves every box along each dimension.
        """
        return Quadtree(4, self.depth, LOW * 2, HIGH * 2, COORDINATES)

    def places(self) -> pd.DataFrame:
        """Return the public list of cities as a data frame, with the most populous cities first. The columns
        are `place` (the name), `population`, and `latitude` and `longitude` in degrees.

        `population` is the expected number of people in the city.
        """
        latitude, longitude = _cities(np.random.default_rng(self.seed))
        people = np.rint(self.records * _shares(CITIES)[:-1]).astype(np.int64)
        names = [f"city {i + 1}" for i in range(CITIES)]
        return pd.DataFrame(
            dict(place=names, population=people, latitude=latitude, longitude=longitude)
        )

    def load(self) -> Records:
        """Generate the points. The same parameters always give the same points. `depth` limits the precision
        with which a point is stored, but does not change the point itself.
        """
        rng = np.random.default_rng(self.seed)
        tree = self.hierarchy
        centres = _cities(rng)
        homes = rng.multinomial(self.records, _shares(CITIES))
        cities = np.repeat(np.arange(CITIES + 1, dtype=np.int16), homes)
        keys = np.empty(self.records, np.uint64)
        for start in range(0, self.records, _AT_ONCE):
            points = _commutes(cities[start : start + _AT_ONCE], centres, rng)
            keys[start : start + len(points)] = tree.encode(points)[0][0]
        keys.sort()
        return Records(tree, sealed(keys), None, Bound(1), self.truth_public)


def _cities(rng: np.random.Generator) -> Float[np.ndarray, "2 cities"]:
    """Draw latitudes and longitudes of the cities' centres, which are at least one degree inside the box."""
    low = np.array(LOW) + 1
    high = np.array(HIGH) - 1
    return rng.uniform(low, high, (CITIES, 2)).T


def _shares(cities: int) -> Float[np.ndarray, " places"]:
    """Return the share of homes in each city. The last number is the share of homes that are not in a city."""
    shares = 1 / np.arange(1, cities + 1)
    return np.append((1 - RURAL) * shares / shares.sum(), RURAL)


def _commutes(
    cities: Int[np.ndarray, " n"],
    centres: Float[np.ndarray, "2 cities"],
    rng: np.random.Generator,
) -> Float[np.ndarray, "n 4"]:
    """Draw the homes and workplaces of people, in degrees."""
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
    """Mirror points outside the box at its nearest side. The array is changed in place."""
    for x, low, high in zip(points, LOW, HIGH, strict=True):
        np.abs(x - low, out=x)
        x += low
        np.abs(high - x, out=x)
        np.subtract(high, x, out=x)


# Towns

SIDE = 64.0  # km


@value
class Towns(OverHierarchy, Dataset):
    """Synthetic homes of people in and between towns. Each person is a point with two dimensions, in a square
    of 64 by 64 km.

    Towns are at random places in the square. The number of homes in the r-th town is proportional to 1/r
    (Zipf's law). Homes have a normal distribution around the centre of their town, with the standard
    deviation `spread` in both directions. The other homes (15 %) are uniformly distributed in the square.
    Opposite sides of the square are treated as joined. For example, a home that would be 1 km beyond the
    eastern side is placed 1 km inside the western side.

    The protected unit is one person, which is one record. The data are generated, so they are public. Source
    of this kind of data: Synthetic Data via Differential Privacy, 2009, section 5.1.

    >>> Towns(1000).load().total
    1000
    """

    cite: ClassVar[str] = "adaptive2009"

    records: int = parameter(
        100_000, 1, 10**7, integer=True, unit="people", doc="number of people"
    )
    towns: int = parameter(20, 1, 10_000, integer=True, doc="number of towns")
    spread: float = parameter(2.0, 0, unit="km", doc="standard deviation of homes in a town")
    depth: int = parameter(10, 1, 32, integer=True, unit="levels", doc="number of levels")
    seed: int = seed_field()

    @property
    def hierarchy(self) -> Quadtree:
        """Hierarchy (tree) of squares. The first square has sides of 64 km. Each square is divided into four
        smaller squares. At level 6, a square has an area of 1 km².
        """
        return Quadtree(2, self.depth, (0.0, 0.0), (SIDE, SIDE), ("east", "north"))

    def load(self) -> Records:
        """Generate the points. The same parameters always give the same points. `depth` limits the precision
        with which a point is stored, but does not change the point itself.
        """
        rng = np.random.default_rng(self.seed)
        centres = rng.uniform(0, SIDE, (self.towns, 2))
        homes = rng.multinomial(self.records, _shares(self.towns))
        points = np.repeat(centres, homes[:-1], axis=0)
        points += self.spread * rng.standard_normal(points.shape)
        points = np.concatenate([points % SIDE, rng.uniform(0, SIDE, (homes[-1], 2))])
        keys, _ = self.hierarchy.encode(points)
        keys.sort(axis=1)
        return Records(self.hierarchy, sealed(keys), None, Bound(1), self.truth_public)
