"""Fan & Jin 2015: what stands in a release's place in trials, and is none.

The records that a mechanism counts, before any noise; these beside what it released of them; a table
that knows nothing but the total. All is scored, on data whose truth is public, and never published.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench import DP
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.interactions import Interactions
from workbench.mechanism import series_name
from workbench.metrics import error_parts
from workbench.value import value


class Unreleased(NamedTuple):
    """What a trial scores in place of a release's estimate."""

    estimate: Any
    by_theorem: str = ""


@value
class AllRecords:
    """Keeps everything: what samples are compared with."""

    budget = DP(inf)
    series = "original"

    def __call__(self, data: Interactions, rng: np.random.Generator) -> Unreleased:
        """The data."""
        return Unreleased(data)


class _Counted:
    """A mechanism whose records are looked at."""

    mechanism: Any

    @property
    def budget(self) -> DP:
        """The mechanism's."""
        return self.mechanism.budget

    @property
    def series(self) -> str:
        """The mechanism's."""
        return series_name(self.mechanism)


@value
class KeptRecords(_Counted):
    """The records that a mechanism counts."""

    mechanism: Any

    def __call__(self, data: Interactions, rng: np.random.Generator) -> Unreleased:
        """A sample."""
        return Unreleased(self.mechanism.bounded_data(data, rng))


@value
class EqualCounts:
    """A table in which each count is the mean: its squared error is the variance of the counts."""

    budget = DP(inf)
    series = "each count the mean"

    def __call__(self, data: Interactions, rng: np.random.Generator) -> Unreleased:
        """Items and edges."""
        domains = (data.domain.project(data.domain.attributes[:1]), data.domain)
        tables = [Histogram(x, np.full(x.size, len(data) / x.size)) for x in domains]
        return Unreleased(ItemEdgeCounts(*tables))


@dataclass(frozen=True)
class TakenApart:
    """What a mechanism released, and of which records."""

    kept: Interactions
    released: ItemEdgeCounts

    def __len__(self) -> int:
        return len(self.released)


@value
class ReleaseTakenApart(_Counted):
    """A mechanism's release beside the records that it counts."""

    mechanism: Any

    def __call__(self, data: Interactions, rng: np.random.Generator) -> Unreleased:
        """Both are drawn from the same seed."""
        kept = self.mechanism.bounded_data(data, deepcopy(rng))
        return Unreleased(TakenApart(kept, self.mechanism(data, rng).estimate))


@value
class ItemErrorParts:
    """Where the squared error of the items of a release taken apart is from."""

    def __call__(self, truth: Interactions, apart: TakenApart) -> pd.DataFrame:
        """A row a tenth of the items and part, as `metrics.breakdown` has them."""
        parts = error_parts(truth, apart.kept, apart.released)
        items = parts[parts.of == "items"]
        return items.melt(["of", "decile", "cells"], var_name="part")
