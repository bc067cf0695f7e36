"""Towns: made-up homes on a map, as points in a square, in km."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from workbench.datasets._generated import seed_field
from workbench.datasets._kinds import GENERATOR
from workbench.hierarchy import OverHierarchy, Quadtree
from workbench.records import Records
from workbench.table import Bound
from workbench.value import parameter, sealed, value

SIDE = 64.0  # km
RURAL = 0.15  # share of homes


@value
class Towns(OverHierarchy):
    """Homes in towns and between them: two dimensions, in a square of 64 by 64 km.

    Towns stand anywhere, and the r-th is lived in in proportion to 1/r (Zipf); homes scatter around
    its centre by a normal law of `spread` in both directions. 15 % of homes are anywhere. What would
    leave the square comes in again from the opposite side.

    One unit is one person, one record. Made up, so public. Source of the kind of data, homes on a
    map, of which this is a small picture: Synthetic Data via Differential Privacy, 2009, section 5.1.

    >>> Towns(1000).load().total
    1000
    """

    kind: ClassVar[str] = GENERATOR
    cite: ClassVar[str] = "adaptive2009"
    truth_public: ClassVar[bool] = True

    records: int = parameter(
        100_000, 1, 10**7, integer=True, unit="people", doc="how many people"
    )
    towns: int = parameter(20, 1, 10_000, integer=True, doc="how many towns")
    spread: float = parameter(2.0, 0, unit="km", doc="of homes around the centre of a town")
    depth: int = parameter(10, 1, 32, integer=True, unit="levels", doc="of halving the square")
    seed: int = seed_field()

    @property
    def hierarchy(self) -> Quadtree:
        """The square; cells of level 6 are 1 km² large."""
        return Quadtree(2, self.depth, (0.0, 0.0), (SIDE, SIDE), ("east", "north"))

    def load(self) -> Records:
        """The points, the same for the same parameters; at another depth the same in other cells."""
        rng = np.random.default_rng(self.seed)
        centres = rng.uniform(0, SIDE, (self.towns, 2))
        shares = 1 / np.arange(1, self.towns + 1)
        shares = np.append((1 - RURAL) * shares / shares.sum(), RURAL)
        homes = rng.multinomial(self.records, shares)
        points = np.repeat(centres, homes[:-1], axis=0)
        points += self.spread * rng.standard_normal(points.shape)
        points = np.concatenate([points % SIDE, rng.uniform(0, SIDE, (homes[-1], 2))])
        keys, _ = self.hierarchy.encode(points)
        keys.sort(axis=1)
        return Records(self.hierarchy, sealed(keys), None, Bound(1), self.truth_public)
