"""Figures 6 and 7's metric: how far people commute from a place."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from workbench.compiled import pd
from workbench.trials.metrics import CommuteDistances
from workbench.value import value

GAP = "CommuteDistances"
CDF = "CommuteCDF"
POINTS = 161  # of a curve


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
        about["commuters"] = commuters(self.distances, truth)
        return pd.concat([gap, curve], ignore_index=True).assign(**about)


@lru_cache  # of the truth: all trials ask for the same
def commuters(distances: CommuteDistances, truth) -> int:
    """How many live there."""
    return int(distances.commutes(truth).counts.sum())
