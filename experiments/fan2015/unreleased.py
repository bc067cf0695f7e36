"""Fan & Jin 2015: what stands in a release's place in trials, and is none.

The records that a mechanism counts, before any noise; these beside what it released of them; a table
that knows nothing but the total; and how these are scored, on data whose truth is public.
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


def with_samples(case: Case, budget: DP = BUDGET) -> list:
    """All records, and those that the paper's two keep."""
    return [AllRecords(), *map(KeptRecords, sampling_mechanisms(case, budget))]


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
        """A row a tenth of the items and part, as `metrics.error_parts` has them."""
        parts = error_parts(truth, apart.kept, apart.released)
        items = parts[parts.of == "items"]
        return items.melt(["of", "decile", "cells"], var_name="part")


@value
class TopItems:
    """How far the ten most popular items are ahead, truly and as released, and how popular the first is."""

    AHEAD: ClassVar[str] = "first less tenth"
    TRUE: ClassVar[str] = "ten less next ten"
    RELEASED: ClassVar[str] = "ten less next ten, released"
    FIRST: ClassVar[str] = "users of the first"

    def __call__(self, truth: Interactions, estimate: Any) -> pd.DataFrame:
        """A row a quantity: of records, the last a share; ten and next ten are means of true ranks."""
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
    """How many records a sample holds, of all, and what it could hold with l of every user."""

    l: int = parameter(low=1, integer=True, unit="records", doc="records of each user")  # noqa: E741

    def __call__(self, truth: Interactions, sample: Interactions) -> pd.DataFrame:
        """A row each."""
        refuse_private(truth)
        most = min(1.0, self.l * len(truth.records_per_user()) / len(truth))
        kept = len(sample) / len(truth)
        sizes = {"StoredRecords": len(sample), "SampledSize": kept, "bound": most}
        return pd.DataFrame({"metric": [*sizes], "value": [*map(float, sizes.values())]})


@value
class Week:
    """The share of each day, and the total variation distance from the week of all records."""

    def __call__(self, truth: Interactions, sample: Interactions) -> pd.DataFrame:
        """A row a day, then one of the whole week."""
        shares = [ContextShare(day) for day in range(len(WEEKDAYS))]
        week = np.array([share(truth, truth) for share in shares])
        ours = np.array([share(truth, sample) for share in shares])
        days = pd.DataFrame({"metric": "ContextShare", "day": SHORT, "value": ours})
        distance = {"metric": "TotalVariation", "value": 0.5 * np.abs(ours - week).sum()}
        return pd.concat([days, pd.DataFrame([distance])], ignore_index=True)


@value
class Habits:
    """How often records are of Friday to Sunday: of users with fewer than l, of popular items, of all."""

    OCCASIONAL: ClassVar[str] = "users of fewer than l"
    FEW: ClassVar[str] = "records of users of fewer than l"
    MANY: ClassVar[str] = "records of the other users"
    ALL: ClassVar[str] = "all records"
    POPULAR: ClassVar[tuple[int, ...]] = (10, 100, 1000)

    l: int = parameter(low=1, integer=True, unit="records", doc="records of each user")  # noqa: E741

    @staticmethod
    def popular(items: int) -> str:
        """The group of the records of so many most popular items."""
        return f"records of the {items:,} most popular"

    def __call__(self, truth: Interactions, estimate: Interactions) -> pd.DataFrame:
        """A row a group of records that is not empty; first how many of the users are occasional."""
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
