"""How far released counts of items and edges are from those of all records of all users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from workbench.interactions import Interactions
from workbench.metrics.refusal import refuse_private
from workbench.value import parameter, value

if TYPE_CHECKING:
    import pandas as pd


def _of() -> Any:
    """The field of a metric that is about one of two tables."""
    return parameter("items", choices=("items", "edges"), doc="which counts are compared")


def _counts(truth: Interactions, estimate: Any, of: str) -> tuple[np.ndarray, np.ndarray]:
    """Exact and estimated counts, of (items,) or of (items, contexts)."""
    refuse_private(truth)
    if estimate.domain != truth.domain:
        names = (" × ".join(x.domain.attributes) for x in (estimate, truth))
        raise ValueError(
            "an estimate over {} has no error against a truth over {}".format(*names)
        )
    shape = truth.domain.shape if of == "edges" else truth.domain.shape[:1]
    sides = []
    for x in (truth, estimate):
        if isinstance(x, Interactions):
            counts = x.edge_counts() if of == "edges" else x.item_counts()
        else:
            counts = getattr(x, of).values
        sides.append(np.asarray(counts, float).reshape(shape))
    return sides[0], sides[1]


@value
class MeanSquaredCountError:
    """Mean over items, or over edges, of (estimate − truth)², in records².

    As in every metric of interactions, the estimate is what was released, `Tables`, or the records that
    a mechanism kept, `Interactions`: then the error is that of the sampling alone.
    """

    of: str = _of()

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """The error, in records²."""
        exact, counts = _counts(truth, estimate, self.of)
        return float(((counts - exact) ** 2).mean())


@value
class KLDivergence:
    """Σ p·ln(p/q) between the released and the original distribution of records, in nats.

    p is the released one and q the original, or the other way round. Counts <= 0 become `floor`, on
    both sides, before they are divided by their sum; counts between 0 and `floor` stay.
    """

    of: str = _of()
    direction: str = parameter(
        "released_given_original",
        choices=("released_given_original", "original_given_released"),
        doc="which of the two is p, and which is given",
    )
    floor: float = parameter(0.01, 0, strict=True, unit="records", doc="of counts <= 0")

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """The divergence, in nats."""
        q, p = (np.where(x > 0, x, self.floor) for x in _counts(truth, estimate, self.of))
        p, q = p / p.sum(), q / q.sum()
        if self.direction == "original_given_released":
            p, q = q, p
        return float((p * np.log(p / q)).sum())


@value
class TopPrecision:
    """The fraction of the k highest released counts that are among the k highest true ones.

    Edges: of the items in each context, averaged over contexts. Where counts tie at the k-th place, on
    either side, the metric is its mean if they were put in random order, independently on both sides.
    """

    k: int = parameter(low=1, integer=True, doc="at most all items")
    of: str = _of()

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """A fraction in [0, 1]."""
        exact, counts = _counts(truth, estimate, self.of)
        k, items = min(self.k, len(exact)), len(exact)
        both = _in_top(exact.reshape(items, -1), k) * _in_top(counts.reshape(items, -1), k)
        return float(both.sum(axis=0).mean() / k)


def _in_top(
    counts: Float[np.ndarray, "items lists"], k: int
) -> Float[np.ndarray, "items lists"]:
    """The chance that an item is among the k highest of its list, ties being in random order."""
    last = np.partition(counts, -k, axis=0)[-k]
    above, level = counts > last, counts == last
    return above + level * ((k - above.sum(axis=0)) / level.sum(axis=0))


@value
class ContextShare:
    """The fraction of records that the estimate puts in one context; edges below 0 count as 0.

    Of the truth itself, given as the estimate, it is the true fraction.
    """

    context: int = parameter(low=0, integer=True, doc="the context's code")

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """A fraction in [0, 1]; NaN where nothing is above 0."""
        if self.context >= (contexts := truth.domain.shape[1]):
            raise ValueError(
                f"ContextShare.context = {self.context} is not allowed: need a code below {contexts}"
            )
        _, counts = _counts(truth, estimate, "edges")
        held = np.maximum(counts, 0).sum(axis=0)
        return float(held[self.context] / held.sum()) if held.any() else float("nan")


@value
class SampledSize:
    """The fraction of the records that are kept; the estimate is what a mechanism's `bounded_data` returns."""

    def __call__(self, truth: Interactions, estimate: Interactions) -> float:
        """A fraction in [0, 1]; NaN where there are no records."""
        refuse_private(truth)
        if not isinstance(estimate, Interactions):
            raise ValueError(
                f"{estimate!r} does not tell how many records it stands for: SampledSize needs the "
                "Interactions that the mechanism's `bounded_data` returns"
            )
        return len(estimate) / len(truth) if len(truth) else float("nan")


def breakdown(data: Interactions, mechanism: Any, seeds: Iterable[int]) -> pd.DataFrame:
    """Where a release's squared error comes from: a row a seed, table and tenth of the items.

    What was dropped is no part of a release, so that each one is replayed: `mechanism.kept(data, rng)`
    gives the records that `mechanism(data, rng)` counts, if both start from the same seed. Columns:

    `of`, `decile`   items or edges; tenths of the items by true count, 10 the most popular
    `cells`          how many counts that is
    `dropped`        Σ (kept − truth)²
    `noise`          Σ (released − kept)², with what smoothing does where there is any
    `interaction`    2·Σ (released − kept)·(kept − truth), 0 on average where the noise is unbiased
    `clipping`       what putting counts below 0 to 0 changes: never above 0
    `total`          their sum: Σ (max(released, 0) − truth)², in records²
    """
    import pandas as pd

    refuse_private(data)
    if not hasattr(mechanism, "bounded_data"):
        raise ValueError(
            f"{mechanism!r} does not say which records it keeps: need `bounded_data`"
        )
    n, rows = data.domain.shape[0], []
    rank = np.empty(n, np.int64)
    rank[np.argsort(data.item_counts(), kind="stable")] = np.arange(n)
    decile = 10 * rank // n
    for seed in seeds:
        kept = mechanism.bounded_data(data, np.random.default_rng(seed))
        released = mechanism(data, np.random.default_rng(seed)).estimate
        for of in ("items", "edges"):
            exact, before = _counts(data, kept, of)
            _, after = _counts(data, released, of)
            parts = {
                "dropped": (before - exact) ** 2,
                "noise": (after - before) ** 2,
                "interaction": 2 * (after - before) * (before - exact),
                "clipping": (np.maximum(after, 0) - exact) ** 2 - (after - exact) ** 2,
                "total": (np.maximum(after, 0) - exact) ** 2,
            }
            cells = exact.size // n
            sums = {
                name: np.bincount(decile, x.reshape(n, cells).sum(axis=1), 10)
                for name, x in parts.items()
            }
            held = cells * np.bincount(decile, minlength=10)
            for i in np.flatnonzero(held):
                told = {"seed": seed, "of": of, "decile": i + 1, "cells": held[i]}
                rows.append(told | {name: x[i] for name, x in sums.items()})
    return pd.DataFrame(rows)
