"""Mechanisms and metrics for the figures of Fan & Jin (2015) that run in trials, but do not make releases.

They give the records that a mechanism counts before any noise, these records together with the release, or a
table that contains only the total. The metrics score such results on data whose truth is public.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, NamedTuple

import numpy as np

from experiments.fan2015.data import BUDGET, Case, sampling_mechanisms
from workbench import DP
from workbench.compiled import pd
from workbench.data import Interactions
from workbench.datasets.published import WEEKDAYS
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.mechanisms.protocol import series_name
from workbench.trials.metrics import ContextShare, error_parts
from workbench.trials.metrics.answers import refuse_private
from workbench.value import parameter, value

SHORT = [day[:3] for day in WEEKDAYS]


class Unreleased(NamedTuple):
    """Result that a trial scores instead of a release's estimate."""

    estimate: Any
    by_theorem: str = ""


@value
class AllRecords:
    """Mechanism without privacy that keeps all records. Samples are compared with its result."""

    budget = DP(inf)
    series = "original"

    def __call__(self, data: Interactions, rng: np.random.Generator) -> Unreleased:
        """Return all records."""
        return Unreleased(data)


class _Counted:
    """Base class for trials that look at the records which a mechanism counts."""

    mechanism: Any

    @property
    def budget(self) -> DP:
        """Budget of the mechanism."""
        return self.mechanism.budget

    @property
    def series(self) -> str:
        """Name of the mechanism in figures."""
        return series_name(self.mechanism)


@value
class KeptRecords(_Counted):
    """Records that a mechanism counts, before any noise."""

    mechanism: Any

    def __call__(self, data: Interactions, rng: np.random.Generator) -> Unreleased:
        """Return the sample of records."""
        return Unreleased(self.mechanism.bounded_data(data, rng))


def with_samples(case: Case, budget: DP = BUDGET) -> list:
    """Return `AllRecords`, and the records that the mechanisms SRA and HPA keep."""
    return [AllRecords(), *map(KeptRecords, sampling_mechanisms(case, budget))]


@value
class EqualCounts:
    """Mechanism without privacy whose result is a table with equal counts. Its mean squared error is the
    variance of the true counts.
    """

    budget = DP(inf)
    series = "each count the mean"

    def __call__(self, data: Interactions, rng: np.random.Generator) -> Unreleased:
        """Return tables of items and of edges."""
        domains = (data.domain.project(data.domain.attributes[:1]), data.domain)
        tables = [Histogram(x, np.full(x.size, len(data) / x.size)) for x in domains]
        return Unreleased(ItemEdgeCounts(*tables))


@dataclass(frozen=True)
class TakenApart:
    """Release of a mechanism, together with the records that the mechanism counted."""

    kept: Interactions
    released: ItemEdgeCounts

    def __len__(self) -> int:
        return len(self.released)


@value
class ReleaseTakenApart(_Counted):
    """Release of a mechanism, together with the records that the mechanism counts."""

    mechanism: Any

    def __call__(self, data: Interactions, rng: np.random.Generator) -> Unreleased:
        """Return the records and the release, which are drawn with the same seed."""
        kept = self.mechanism.bounded_data(data, deepcopy(rng))
        return Unreleased(TakenApart(kept, self.mechanism(data, rng).estimate))


@value
class ItemErrorParts:
    """Metric: parts of the squared error of item counts, for a release with the records that were counted."""

    def __call__(self, truth: Interactions, apart: TakenApart) -> pd.DataFrame:
        """Return the metric's values, with one row per tenth of the items and part of the error. The parts
        are those of `metrics.error_parts`.
        """
        parts = error_parts(truth, apart.kept, apart.released)
        items = parts[parts.of == "items"]
        return items.melt(["of", "decile", "cells"], var_name="part")


@value
class TopItems:
    """Metric: how far the ten most popular items are ahead of the others, in the true data and as released,
    and the popularity of the first item.
    """

    AHEAD: ClassVar[str] = "first less tenth"
    TRUE: ClassVar[str] = "ten less next ten"
    RELEASED: ClassVar[str] = "ten less next ten, released"
    FIRST: ClassVar[str] = "users of the first"

    def __call__(self, truth: Interactions, estimate: Any) -> pd.DataFrame:
        """Return the metric's values, with one row per quantity. The quantities are counts of records, and
        the last one is a share of the users. The ten items, and the next ten, are those of the true data.
        """
        exact = truth.item_counts()
        released = estimate.items.values
        order = (-exact).argsort(kind="stable")
        ten, next_ten = order[:10], order[10:20]
        quantities = {
            self.AHEAD: exact[order[0]] - exact[order[9]],
            self.TRUE: exact[ten].mean() - exact[next_ten].mean(),
            self.RELEASED: released[ten].mean() - released[next_ten].mean(),
            self.FIRST: exact[order[0]] / len(truth.records_per_user()),
        }
        values = [*map(float, quantities.values())]
        return pd.DataFrame({"of": "items", "quantity": [*quantities], "value": values})


@value
class Sizes:
    """Metric: number of records in a sample, its share of all records, and the largest possible share with l
    records per user.
    """

    l: int = parameter(low=1, integer=True, unit="records", doc="records of each user")  # noqa: E741

    def __call__(self, truth: Interactions, sample: Interactions) -> pd.DataFrame:
        """Return the metric's values, with one row per number."""
        refuse_private(truth)
        most = min(1.0, self.l * len(truth.records_per_user()) / len(truth))
        kept = len(sample) / len(truth)
        sizes = {"StoredRecords": len(sample), "SampledSize": kept, "bound": most}
        return pd.DataFrame({"metric": [*sizes], "value": [*map(float, sizes.values())]})


@value
class Week:
    """Metric: share of each day of the week, and the total variation distance from the week of all records."""

    def __call__(self, truth: Interactions, sample: Interactions) -> pd.DataFrame:
        """Return the metric's values, with one row per day, and one row for the whole week."""
        shares = [ContextShare(day) for day in range(len(WEEKDAYS))]
        week = np.array([share(truth, truth) for share in shares])
        ours = np.array([share(truth, sample) for share in shares])
        days = pd.DataFrame({"metric": "ContextShare", "day": SHORT, "value": ours})
        distance = {"metric": "TotalVariation", "value": 0.5 * np.abs(ours - week).sum()}
        return pd.concat([days, pd.DataFrame([distance])], ignore_index=True)


@value
class Habits:
    """Metric: share of records from Friday to Sunday, in several groups of records: those of users with fewer
    than l records, those of popular items, and all.
    """

    OCCASIONAL: ClassVar[str] = "users of fewer than l"
    FEW: ClassVar[str] = "records of users of fewer than l"
    MANY: ClassVar[str] = "records of the other users"
    ALL: ClassVar[str] = "all records"
    POPULAR: ClassVar[tuple[int, ...]] = (10, 100, 1000)

    l: int = parameter(low=1, integer=True, unit="records", doc="records of each user")  # noqa: E741

    @staticmethod
    def popular(items: int) -> str:
        """Return the name of the group of records of the `items` most popular items."""
        return f"records of the {items:,} most popular"

    def __call__(self, truth: Interactions, estimate: Interactions) -> pd.DataFrame:
        """Return the metric's values, with one row per group of records that is not empty, and one row with
        the share of users with fewer than l records.
        """
        sizes = truth.records_per_user()
        few = np.repeat(sizes < self.l, sizes)
        places = (-truth.item_counts()).argsort(kind="stable").argsort(kind="stable")
        rank = places[truth.items]
        groups = {self.ALL: np.ones(len(truth), bool), self.FEW: few, self.MANY: ~few}
        groups |= {self.popular(k): rank < k for k in self.POPULAR}
        late = truth.contexts >= WEEKDAYS.index("Friday")
        shares = {name: late[group].mean() for name, group in groups.items() if group.any()}
        shares[self.OCCASIONAL] = (sizes < self.l).mean()
        return pd.DataFrame(
            {"metric": "Habits", "group": [*shares], "value": [*shares.values()]}
        )
