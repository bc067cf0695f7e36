"""Two tables of one release: a count for every item, and one for every edge (item × context)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from workbench.domain import Domain
from workbench.estimates.histogram import Histogram
from workbench.estimates.summary import check_weights
from workbench.value import sealed
from workbench.workload import Workload

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow


@dataclass(frozen=True, eq=False)
class ItemEdgeCounts:
    """Estimates of all items and of all edges, each a `Sequence` over its domain.

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

    def __post_init__(self):
        domain = self.edges.domain
        if len(domain.shape) != 2 or self.items.domain != domain.project(domain.attributes[:1]):
            raise ValueError(
                f"Tables.items over {self.items.domain.attributes} do not fit edges over "
                f"{domain.attributes}: need an item attribute, and the same with a context"
            )

    @property
    def domain(self) -> Domain:
        """The edges' domain."""
        return self.edges.domain

    def __len__(self) -> int:
        return len(self.edges)

    def __repr__(self) -> str:
        names = " × ".join(self.domain.attributes)
        return f"<Tables of {names}: {len(self.items):,} items, {len(self):,} edges>"

    def answer(
        self,
        workload: Workload,
        weights: str = "unbiased",
        error: bool | str = False,
        of: str = "edges",
    ) -> Any:
        """Estimated counts, float64[queries], of edges (by default) or of items.

        With `error` also the standard error of each: NaN where records may have been dropped, as no
        formula knows how many. With error="noise" that of the noise alone, about the counts of the
        records that were kept; NaN where it is not known either.
        """
        check_weights(weights)
        if of not in ("edges", "items"):
            raise ValueError(f"of = {of!r} is not allowed: need 'edges' or 'items'")
        if error not in (False, True, "noise"):
            raise ValueError(f"error = {error!r} is not allowed: need False, True or 'noise'")
        workload = workload.on(self.domain if of == "edges" else self.items.domain)
        if not error:
            return (self.edges if of == "edges" else self.items).answer(workload)
        answers, deviations = (self.edges if of == "edges" else self.items).answer(
            workload, error=True
        )
        if of == "edges" and self.covariance:
            deviations = np.sqrt(deviations**2 + self.covariance * self._twins(workload))
        if self.sampled and error != "noise":
            deviations = np.full(len(answers), np.nan)
        return answers, deviations

    def _twins(self, workload: Workload) -> np.ndarray:
        """How many ordered pairs of different edges of one item each query covers."""
        rows, width = self.domain.shape
        try:
            which, ranges = workload.intervals(self.domain)
        except ValueError:  # scattered over the domain
            return np.full(len(workload), np.nan)
        box, boxes = ranges.boxes(self.domain)
        of, row = which[box], boxes.lo[:, 0]
        tall, wide = boxes.hi[:, 0] - row, boxes.hi[:, 1] - boxes.lo[:, 1]
        whole = wide == width
        twins = np.bincount(of[whole], (tall * width * (width - 1))[whole], len(workload))
        parts, at = np.unique(of[~whole] * rows + row[~whole], return_inverse=True)
        k = np.bincount(at, wide[~whole], len(parts))  # pieces of one item come together
        return twins + np.bincount(parts // rows, k * (k - 1), len(workload))

    def consistent(self) -> ItemEdgeCounts:
        """Each item the sum of its edges: the weighted least squares of both tables.

        An item is known twice, as itself and as the sum of its h edges: y of variance v and e of
        variance h·w. Their mean, weighted inversely, is x = (h·w·y + v·e)/(v + h·w), and each edge
        takes its part (x − e)/h of what is missing. As e and an edge less its mean are not
        correlated, an edge then has variance w(1 − 1/h) + Var(x)/h², and two of one item the covariance
        Var(x)/h² − w/h. Values are real numbers, perhaps negative; what is public stays so.
        """
        v, w, (m, h) = self.items.variance, self.edges.variance, self.domain.shape
        if v is None or w is None or self.covariance:
            raise ValueError(
                "these tables do not tell variances of independent noise on each count"
            )
        edges = self.edges.values.reshape(m, h)
        sums = edges.sum(axis=1)
        share = h * w / (v + h * w) if v + h * w else 1.0  # of the item in the mean
        means = sums + share * (self.items.values - sums)
        known = share * v
        apart = edges + ((means - sums) / h)[:, None]
        return replace(
            self,
            items=Histogram(self.items.domain, sealed(means), known),
            edges=Histogram(self.domain, sealed(apart.ravel()), w * (1 - 1 / h) + known / h**2),
            covariance=known / h**2 - w / h if h > 1 else 0.0,
        )

    def scaled(self, total: float) -> ItemEdgeCounts:
        """Both tables times one common factor, by which the items sum to `total`, public or paid for.

        A factor for each user instead would not be private: it undoes the bound. Where the sum is not
        above its own noise, the noise's standard deviation stands for it. Standard errors are lost.
        """
        spread = np.sqrt(len(self.items) * (self.items.variance or 0))
        found = max(float(self.items.values.sum()), float(spread))
        factor = total / found if found > 0 else 1.0
        return replace(
            self,
            items=Histogram(self.items.domain, sealed(self.items.values * factor)),
            edges=Histogram(self.domain, sealed(self.edges.values * factor)),
            covariance=0.0,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row an edge: labels and its `noisy` value; `items.to_frame()` has one row an item."""
        return self.edges.to_frame()

    def to_arrow(self) -> pyarrow.Table:
        """One row an edge for a Parquet file: its value, and beside it that of its item."""
        import pyarrow as pa

        items = np.repeat(self.items.values, self.domain.shape[1])
        return pa.table({"item": items, "noisy": self.edges.values})

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        return {
            "domain": self.domain.to_dict(),
            "variances": [self.items.variance, self.edges.variance],
            "covariance": self.covariance,
            "sampled": self.sampled,
        }

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """Tables from their file's table and record."""
        domain = Domain.from_dict(about["domain"])
        one, two = about["variances"]
        values = table["item"].to_numpy()[:: domain.shape[1]]
        items = Histogram(domain.project(domain.attributes[:1]), values, one)
        edges = Histogram(domain, table["noisy"].to_numpy(), two)
        return cls(items, edges, about["covariance"], about["sampled"])
