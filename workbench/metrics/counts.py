"""How far released counts of items and edges are from those of all records of all users."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Float
from workbench.interactions import Interactions
from workbench.metrics.refusal import refuse_other_domain, refuse_private
from workbench.value import not_allowed, parameter, value


class CountPair(NamedTuple):
    """Exact and estimated counts, of (items,) or of (items, contexts)."""

    exact: Float[np.ndarray, "..."]
    estimated: Float[np.ndarray, "..."]


def count_pair(truth: Interactions, estimate: Any, of: str) -> CountPair:
    """The counts of both sides; the estimate is what was released, or records."""
    refuse_private(truth)
    refuse_other_domain(truth, estimate)
    return CountPair(_counts(truth, of), _counts(estimate, of))


def _counts(data: Any, of: str) -> Float[np.ndarray, "..."]:
    shape = data.domain.shape if of == "edges" else data.domain.shape[:1]
    if isinstance(data, Interactions):
        counts = data.edge_counts() if of == "edges" else data.item_counts()
    else:
        counts = getattr(data, of).values
    return np.asarray(counts, float).reshape(shape)


def _of() -> Any:
    """The field of a metric that is about one of two tables."""
    return parameter("items", choices=("items", "edges"), doc="which counts are compared")


class _CountMetric:
    """What metrics of the counts of items or edges have in common."""

    of: str

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """Compare the counts of all items or edges.

        Parameters
        ----------
        truth : Interactions
            Whose truth is public.
        estimate : ItemEdgeCounts or Interactions
            Over the same domain.

        Returns
        -------
        float
            In the metric's unit.

        Raises
        ------
        ValueError
            If the truth is private, or the estimate is over another domain.
        """
        return float(self._compare(*count_pair(truth, estimate, self.of)))

    def _compare(
        self, exact: Float[np.ndarray, "..."], estimated: Float[np.ndarray, "..."]
    ) -> float:
        raise NotImplementedError


@value
class MeanSquaredCountError(_CountMetric):
    """Mean over items, or over edges, of (estimate − truth)², in records².

    As in every metric of interactions, the estimate is what was released, `ItemEdgeCounts`, or the
    records that a mechanism kept, `Interactions`: then the error is that of the sampling alone.
    """

    of: str = _of()

    def _compare(
        self, exact: Float[np.ndarray, "..."], estimated: Float[np.ndarray, "..."]
    ) -> float:
        return ((estimated - exact) ** 2).mean()


@value
class KLDivergence(_CountMetric):
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

    def _compare(
        self, exact: Float[np.ndarray, "..."], estimated: Float[np.ndarray, "..."]
    ) -> float:
        original = self._distribution(exact)
        released = self._distribution(estimated)
        if self.direction == "original_given_released":
            return _divergence(original, released)
        return _divergence(released, original)

    def _distribution(self, counts: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        positive = np.where(counts > 0, counts, self.floor)
        return positive / positive.sum()


def _divergence(p: Float[np.ndarray, "..."], q: Float[np.ndarray, "..."]) -> float:
    return (p * np.log(p / q)).sum()


@value
class TopPrecision(_CountMetric):
    """The fraction of the k highest released counts that are among the k highest true ones.

    Edges: of the items in each context, averaged over contexts. Where counts tie at the k-th place, on
    either side, the metric is its mean if they were put in random order, independently on both sides.
    """

    k: int = parameter(low=1, integer=True, doc="at most all items")
    of: str = _of()

    def _compare(
        self, exact: Float[np.ndarray, "..."], estimated: Float[np.ndarray, "..."]
    ) -> float:
        items = len(exact)
        k = min(self.k, items)
        in_true_top = _chance_in_top(exact.reshape(items, -1), k)
        in_released_top = _chance_in_top(estimated.reshape(items, -1), k)
        return (in_true_top * in_released_top).sum(axis=0).mean() / k


def _chance_in_top(
    counts: Float[np.ndarray, "items lists"], k: int
) -> Float[np.ndarray, "items lists"]:
    """The chance that an item is among the k highest of its list, ties being in random order."""
    last = np.partition(counts, -k, axis=0)[-k]
    above = counts > last
    tied = counts == last
    return above + tied * ((k - above.sum(axis=0)) / tied.sum(axis=0))


@value
class ContextShare:
    """The fraction of records that the estimate puts in one context; edges below 0 count as 0.

    Of the truth itself, given as the estimate, it is the true fraction.
    """

    context: int = parameter(low=0, integer=True, doc="the context's code")

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """The share of one context; the truth only says whether it may be shown.

        Parameters
        ----------
        truth : Interactions
            Whose truth is public.
        estimate : ItemEdgeCounts or Interactions
            Over the same domain.

        Returns
        -------
        float
            A fraction in [0, 1]; NaN where nothing is above 0.

        Raises
        ------
        ValueError
            If the truth is private, the estimate is over another domain, or there is no such context.
        """
        contexts = truth.domain.shape[1]
        if self.context >= contexts:
            raise not_allowed(self, "context", f"need a code below {contexts}")
        estimated = count_pair(truth, estimate, "edges").estimated
        records = np.maximum(estimated, 0).sum(axis=0)
        return float(records[self.context] / records.sum()) if records.any() else float("nan")


@value
class SampledSize:
    """The fraction of the records that are kept; the estimate is what `bounded_data` returns."""

    def __call__(self, truth: Interactions, estimate: Interactions) -> float:
        """Compare how many records there are.

        Parameters
        ----------
        truth : Interactions
            Whose truth is public.
        estimate : Interactions
            The records that a mechanism kept.

        Returns
        -------
        float
            A fraction in [0, 1]; NaN where there are no records.

        Raises
        ------
        ValueError
            If the truth is private, or for another estimate.
        """
        refuse_private(truth)
        if not isinstance(estimate, Interactions):
            raise ValueError(
                f"{estimate!r} does not tell how many records it stands for: SampledSize needs the "
                "Interactions that the mechanism's `bounded_data` returns"
            )
        return len(estimate) / len(truth) if len(truth) else float("nan")
