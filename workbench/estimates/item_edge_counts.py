"""Two tables of one release: a count for every item, and one for every edge (item × context)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from workbench.compiled import pa, pd
from workbench.estimates.estimate import Answers, Estimate, check_weights
from workbench.estimates.histogram import Histogram
from workbench.estimates.linear_noise import LinearNoise
from workbench.estimates.stored import check_arrays
from workbench.queries import Recipe, Workload
from workbench.spaces import Domain
from workbench.value import Float, sealed


@dataclass(frozen=True, eq=False)
class ItemEdgeCounts(Estimate):
    """Estimates of all items and of all edges, each a `Histogram` over its domain.

    The variances are those of the noise, about the counts of the records that were kept. `covariance`
    is that of two edges of one item (0 where the noise is independent). `sampled` says that records
    may have been dropped before: then the truth is further away than the noise tells.
    """

    items: Histogram
    edges: Histogram
    covariance: float = 0.0
    sampled: bool = False
    kind: ClassVar[str] = "tables"
    contents: ClassVar[str] = "cells"

    def __post_init__(self) -> None:
        domain = self.edges.domain
        if len(domain.shape) != 2 or self.items.domain != domain.project(domain.attributes[:1]):
            raise ValueError(
                f"ItemEdgeCounts.items over {self.items.domain.attributes} do not fit edges over "
                f"{domain.attributes}: need an item attribute, and the same with a context"
            )

    @property
    def domain(self) -> Domain:
        """The edges' domain."""
        return self.edges.domain

    def __len__(self) -> int:
        return len(self.edges)

    def __repr__(self) -> str:
        return (
            f"<ItemEdgeCounts of {self._attribute_names}: {len(self.items):,} items, "
            f"{len(self):,} edges>"
        )

    def answer(
        self,
        workload: Recipe,
        weights: str = "unbiased",
        error: bool = False,
        of: str = "edges",
    ) -> Any:
        """Estimated counts of edges or of items.

        Parameters
        ----------
        workload : Workload
            Queries over the domain of edges, or of items.
        weights : "unbiased" or "raw"
            Both mean the same, as no cell is sampled.
        error : bool
            Whether errors are wanted too.
        of : "edges" or "items"
            Which of the two tables answers.

        Returns
        -------
        float64[queries], or Answers
            Answers in records; with `error` also the standard error of each: NaN where records may have
            been dropped, as no formula knows how many. `noise` is that of the noise alone, about the counts
            of the records that were kept.

        Raises
        ------
        ValueError
            For other weights or tables, or a workload that does not fit the domain.
        """
        check_weights(weights)
        if of not in ("edges", "items"):
            raise ValueError(f"of = {of!r} is not allowed: need 'edges' or 'items'")
        histogram = self.edges if of == "edges" else self.items
        queries: Workload = workload.on(histogram.domain)
        if not error:
            return histogram.answer(queries)
        answers, noise = histogram.answer(queries, error=True)
        if of == "edges" and self.covariance:
            noise = np.sqrt(noise**2 + self.covariance * self._pairs(queries))
        dropped = np.nan if self.sampled else 0.0
        return Answers(answers, noise + dropped, noise, absent=dropped)

    def deviations(self) -> Float[np.ndarray, " edges"] | float:
        """The standard deviation of the noise on each edge."""
        return self.edges.deviations()

    @property
    def why_unknown(self) -> str:
        """What is not noise."""
        reasons = []
        if self.sampled:
            reasons.append("records beyond what a user may contribute were dropped")
        if self.edges.noise is not None:
            reasons.append("small differences between counts were smoothed away")
        how_much = "it depends on the data how much, beside the noise, answers are off by that"
        return f"{' and '.join(reasons)}: {how_much}" if reasons else self.edges.why_unknown

    def _pairs(self, workload: Workload) -> Float[np.ndarray, " queries"]:
        """How many ordered pairs of different edges of one item each query covers."""
        items, contexts = self.domain.shape
        try:
            which, ranges = workload.intervals(self.domain)
        except ValueError:  # scattered over the domain
            return np.full(len(workload), np.nan)
        box, boxes = ranges.boxes(self.domain)
        query = which[box]
        first_item = boxes.lo[:, 0]
        height = boxes.hi[:, 0] - first_item
        width = boxes.hi[:, 1] - boxes.lo[:, 1]
        whole = width == contexts
        pairs_in_whole = (height * contexts * (contexts - 1))[whole]
        pairs = np.bincount(query[whole], pairs_in_whole, len(workload))
        # pieces of one item come together
        pieces, at = np.unique(query[~whole] * items + first_item[~whole], return_inverse=True)
        covered = np.bincount(at, width[~whole], len(pieces))
        return pairs + np.bincount(pieces // items, covered * (covered - 1), len(workload))

    def consistent(self) -> Self:
        """Each item the sum of its edges: the weighted least squares of both tables.

        An item is known twice, as itself and as the sum of its h edges: y of variance v and e of
        variance h·w. Their mean, weighted inversely, is x = (h·w·y + v·e)/(v + h·w), and each edge
        takes its part (x − e)/h of what is missing. As e and an edge less its mean are not
        correlated, an edge then has variance w(1 − 1/h) + Var(x)/h², and two of one item the covariance
        Var(x)/h² − w/h. Values are real numbers, perhaps negative; what is public stays so.

        Returns
        -------
        ItemEdgeCounts
            Of the same domain.

        Raises
        ------
        ValueError
            Where the noise on the counts is not independent, or of unknown variance.
        """
        v = self.items.variance
        w = self.edges.variance
        m, h = self.domain.shape
        if v is None or w is None or self.covariance:
            raise ValueError(
                "these tables do not tell variances of independent noise on each count"
            )
        edges = self.edges.values.reshape(m, h)
        sums = edges.sum(axis=1)
        item_weight = h * w / (v + h * w) if v + h * w else 1.0
        means = sums + item_weight * (self.items.values - sums)
        mean_variance = item_weight * v
        edge_values = edges + ((means - sums) / h)[:, None]
        edge_variance = w * (1 - 1 / h) + mean_variance / h**2
        return replace(
            self,
            items=Histogram(self.items.domain, sealed(means), mean_variance),
            edges=Histogram(self.domain, sealed(edge_values.ravel()), edge_variance),
            covariance=mean_variance / h**2 - w / h if h > 1 else 0.0,
        )

    def scaled(self, total: float) -> Self:
        """Both tables times one common factor, by which the items sum to `total`.

        A factor for each user instead would not be private: it undoes the bound. Where the sum is not
        above its own noise, the noise's standard deviation stands for it. Standard errors are lost.

        Parameters
        ----------
        total : float
            In records; public, or paid for.

        Returns
        -------
        ItemEdgeCounts
            Of the same domain.
        """
        deviation = np.sqrt(len(self.items) * (self.items.variance or 0))
        estimated_total = max(float(self.items.values.sum()), float(deviation))
        factor = total / estimated_total if estimated_total > 0 else 1.0
        return replace(
            self,
            items=Histogram(self.items.domain, sealed(self.items.values * factor)),
            edges=Histogram(self.domain, sealed(self.edges.values * factor)),
            covariance=0.0,
        )

    def to_frame(self) -> pd.DataFrame:
        """All edges as a table; `items.to_frame()` is that of the items.

        Returns
        -------
        pandas.DataFrame
            One row an edge: labels and its `noisy` value.
        """
        return self.edges.to_frame()

    def _columns(self) -> dict[str, Any]:
        """One row an edge: its value, and beside it that of its item."""
        items = np.repeat(self.items.values, self.domain.shape[1])
        return {"noisy_item": items, "noisy": self.edges.values}

    @property
    def variances(self) -> tuple[float | None, float | None]:
        """Of items and of edges."""
        return self.items.variance, self.edges.variance

    @property
    def noise(self) -> tuple[LinearNoise | None, LinearNoise | None]:
        """Of items and of edges, where it is not independent."""
        return self.items.noise, self.edges.noise

    @classmethod
    def _from_columns(cls, table: pa.Table, fields: dict[str, Any]) -> dict[str, Any]:
        domain: Domain = fields.pop("domain")
        older = "noisy_item" not in table.column_names  # which an attribute may be called, too
        item_values = table["item" if older else "noisy_item"].to_numpy()[:: domain.shape[1]]
        tables = []
        for over, values, variance, noise in zip(
            (domain.project(domain.attributes[:1]), domain),
            (item_values, table["noisy"].to_numpy()),
            fields.pop("variances"),
            fields.pop("noise"),
            strict=True,
        ):
            check_arrays(Histogram, {"values": values})
            tables.append(Histogram(over, values, variance, noise))
        return {"items": tables[0], "edges": tables[1]}
