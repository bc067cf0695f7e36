"""OnTheMapTwin: made-up commuting with the published statistics of OnTheMap 2008."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from workbench.arrays import Float, Int
from workbench.datasets._generated import seed_field
from workbench.datasets._kinds import Twin
from workbench.domain import Domain
from workbench.table import Bound, SparseTable
from workbench.value import parameter, value

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
    """Jobs by work and home location: 4001 × 4001 cells, 820,000 of them not empty, mean 150.

    What is matched to print: the locations, the non-empty cells (density 0.051), their mean,
    and "many cells have frequency 1 or 2" (nearly half). What is ours: 47 states of lognormal
    size stand on a map of 4000 × 2200 km, locations scatter around their state, and ids run
    state by state. A cell's rank is a gravity score: jobs there, people here, a fall with the
    cube of the distance, a bonus inside a state, and noise. The ranked cells take the quantiles
    of a lognormal law, so that the seed moves flows and not their sizes: the largest is a
    metropolis that works at home (2.9 million), more than half of all jobs are at home, nine in
    ten in the home state.

    `attributes=True` splits every cell at random over age, salary and industry, three classes
    each, in a mix of the work place's own: 27 × the cells, density below 0.01.

    Made up, so public. One unit is one job, in one cell. Takes about a second. Source of the
    statistics: Cormode, Procopiuc, Srivastava, Tran, ICDT 2012, Appendix A and section 4.5.
    """

    original = (
        "OnTheMap version 4 of 2008 in 47 states, by county and two digits of the tract: it is published "
        "no more, and the 47 states are not printed; `OnTheMap` reads versions 7 and 8 of any states"
    )
    matched: ClassVar[Mapping[str, str]] = {
        "cells": "4001 work and 4001 home locations",
        "density": "820,000 non-empty cells, 5.1 %",
        "mean": "150 jobs in a non-empty cell",
    }
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "quantiles of a lognormal law: their tail, the largest, and how many are 1 or 2",
        "order": "states side by side on a map, locations scattered around their state",
        "joint": "which homes go with which work: a gravity score",
        "attributes": "shares of age, salary and industry, and how they go with the place",
    }
    cite: ClassVar[str] = "cormode2012"
    truth_public: ClassVar[bool] = True

    attributes: bool = parameter(False, choices=(False, True), doc="age, salary, industry too")
    seed: int = seed_field()

    @property
    def domain(self) -> Domain:
        """Work and home location ids, work first, then the attributes if there are any."""
        places = Domain(("work", "home"), (LOCATIONS, LOCATIONS))
        if not self.attributes:
            return places
        return Domain(
            (*places.attributes, *ATTRIBUTES),
            (*places.shape, *(len(shares) for shares in ATTRIBUTES.values())),
            (None, None, *(tuple(shares) for shares in ATTRIBUTES.values())),
        )

    def load(self) -> SparseTable:
        """The table, the same for the same parameters."""
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
    """How much each pair of locations attracts, in logs."""
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
    """Ascending quantiles of a lognormal law, rounded up: mean 150, half of them 1 or 2."""
    from scipy.special import ndtri

    quantiles = ndtri((np.arange(CELLS) + 0.5) / CELLS)
    return np.ceil(np.exp(0.8135 + 2.9 * quantiles)).astype(np.int64)


def _split(
    keys: np.ndarray, counts: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Every cell's jobs over the 27 classes, attribute by attribute; keys stay sorted."""
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
        keys = keys[full]
        counts = counts[full]
        work = work[full]
    return keys, counts
