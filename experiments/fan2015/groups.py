"""Fan & Jin 2015: what is released of one context by itself: of a group of people, in MovieLens."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.fan2015._counts import PRECISION, TEN
from workbench.compiled import pd
from workbench.data import Interactions
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.trials.metrics import TopPrecision
from workbench.value import parameter, value

OWN, COMMON = "of its own ten", "of everybody's ten"


@value
class GroupFilms:
    """What is released of one group: precision over K, the true ten's counts, and the ten highest."""

    group: int = parameter(low=0, integer=True, doc="its context")
    tops: tuple[int, ...] = parameter(low=1, integer=True, many=True, doc="K")

    def __call__(self, truth: Interactions, estimate: Any) -> pd.DataFrame:
        """Rows of the metrics `TopPrecision`, `Count` and `list`; films by their codes."""
        records = context_records(truth, self.group)
        if isinstance(estimate, Interactions):
            released: Any = context_records(estimate, self.group)
            counts = released.item_counts()
        else:
            released = context_tables(estimate, self.group)
            counts = released.items.values
        shares = [TopPrecision(k)(records, released) for k in self.tops]
        frames = [pd.DataFrame({"metric": PRECISION, "top": self.tops, "value": shares})]
        for metric, films in (
            ("Count", highest(records.item_counts())),
            ("list", highest(counts)),
        ):
            places = range(1, len(films) + 1)
            columns = {"metric": metric, "place": places, "film": films}
            frames.append(pd.DataFrame(columns | {"value": counts[films].astype(float)}))
        return pd.concat(frames, ignore_index=True)


@value
class GroupPrecision:
    """How many of each context's ten most popular items are released as such."""

    def __call__(self, truth: Interactions, estimate: ItemEdgeCounts) -> pd.DataFrame:
        """A row a context."""
        ten = TopPrecision(TEN)
        groups = range(truth.domain.shape[1])
        shares = [ten(context_records(truth, g), context_tables(estimate, g)) for g in groups]
        return pd.DataFrame({"group": groups, "value": shares})


@value
class GroupTaste:
    """The share that ten items have of a context's records, its own most popular; of all records, all's."""

    def __call__(self, truth: Interactions, estimate: Interactions) -> pd.DataFrame:
        """A row a context, then one of all."""
        counts = truth.edge_counts()
        own = [_share_of_ten(column) for column in counts.T]
        groups = pd.DataFrame({"part": OWN, "group": range(len(own)), "value": own})
        everybody = pd.DataFrame(
            {"part": [COMMON], "value": [_share_of_ten(counts.sum(axis=1))]}
        )
        return pd.concat([groups, everybody], ignore_index=True)


def _share_of_ten(counts) -> float:
    return float(np.sort(counts)[-TEN:].sum() / counts.sum())


def highest(counts: np.ndarray) -> np.ndarray:
    """The ten items of the highest counts."""
    return (-counts).argsort(kind="stable")[:TEN]


def context_records(data: Interactions, context: int) -> Interactions:
    """The records in one context."""
    chosen = data.contexts == context
    columns = (data.users[chosen], data.items[chosen], data.contexts[chosen])
    return Interactions(data.domain, *columns, data.bound, data.truth_public)


def context_tables(tables: ItemEdgeCounts, context: int) -> ItemEdgeCounts:
    """The tables with one context's edges for the items."""
    edges = tables.edges.values.reshape(tables.domain.shape)[:, context]
    return ItemEdgeCounts(Histogram(tables.items.domain, edges), tables.edges)
