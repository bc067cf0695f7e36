"""Estimates for all cells of a domain: histograms, noisy trees, counts of items and edges, and partitions
into boxes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, Self

import numpy as np

from workbench.compiled import pa, pd
from workbench.estimates.estimate import Answers, Estimate, check_weights
from workbench.estimates.linear_noise import (
    LinearNoise,
    cell_deviations,
    cover,
    query_variances,
)
from workbench.estimates.stored import check_arrays, refuse_unless
from workbench.queries import (
    Boxes,
    Recipe,
    Selections,
    Workload,
    level_sizes,
    queries_on_hierarchy,
)
from workbench.spaces import Domain, Hierarchy, OverHierarchy
from workbench.value import Float, Int, Num, sealed

# Histogram


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Estimate):
    """Noisy counts of all cells of a domain, in the order of their keys (the numbers of the cells). `variance`
    is the variance of the noise on each count. The field is None if the noise of different cells is not
    independent, or if the variance of the noise is unknown.

    A histogram can answer any workload (list of queries). When you ask the first queries, the histogram
    computes running sums of all values. After that, every query about a range of cells takes the same short
    time, even if the range is long. If an answer adds up several cells, the standard error of the answer is
    sqrt(cells · variance), where `cells` is the number of these cells. If the noise of different cells is not
    independent, the field `noise` may describe the joint distribution of the noise. The histogram then computes
    the standard errors of ranges from this description. If `variance` and `noise` are both None, standard
    errors are NaN.
    """

    domain: Domain
    values: Num[np.ndarray, " cells"]
    variance: float | None = None
    noise: LinearNoise | None = None
    kind: ClassVar[str] = "sequence"
    contents: ClassVar[str] = "cells"

    def __post_init__(self) -> None:
        if self.values.shape != (self.domain.size,):
            raise ValueError(f"{self.values.shape} values do not fit {self.domain.size} cells")
        super().__post_init__()

    @cached_property
    def _keys(self) -> Int[np.ndarray, " cells"]:
        return np.arange(len(self))

    @cached_property
    def _prefix_sums(self) -> Float[np.ndarray, " cells+1"]:
        return np.concatenate([[0.0], np.cumsum(self.values, dtype=float)])

    def _answer(self, workload: Recipe, error: bool) -> Any:
        queries: Workload = workload.on(self.domain)
        if hasattr(queries, "sums_of_prefix"):
            answers = queries.sums_of_prefix(None, self._prefix_sums)
        else:
            answers = queries.sums(self.domain, self._keys, self.values)
        if not error:
            return answers
        if self.noise is not None:
            return answers, np.sqrt(query_variances(self.noise, self.domain, queries))
        variance = np.nan if self.variance is None else self.variance
        return answers, np.sqrt(queries.cells(self.domain) * variance)

    def deviations(self) -> Float[np.ndarray, " cells"] | float:
        """Return the standard deviation of the noise on each count, or NaN if it is unknown."""
        if self.noise is not None:
            return cell_deviations(self.noise, self.domain)
        return super().deviations()

    @property
    def why_unknown(self) -> str:
        """Sentence that explains why errors are unknown: the counts were changed after the noise was added.
        The text is empty if errors are known.
        """
        if self.variance is not None or self.noise is not None:
            return ""
        return "the counts were changed after the noise was added, and how depends on the noise"

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the noisy counts of all cells.

        Returns
        -------
        pandas.DataFrame
            One row per cell. The columns contain the labels of the cell and its noisy count (`noisy`).
        """
        return self.domain.frame(self._keys).assign(noisy=self.values)

    def _columns(self) -> dict[str, Any]:
        """Return the noisy counts as the only column. The number of a row is the key (number) of its cell."""
        return {"noisy": self.values}


# Hierarchical sums


@dataclass(frozen=True, eq=False, repr=False)
class HierarchicalSums(Estimate):
    """Noisy sums for all nodes of a tree over the cells of a domain. Each node of the tree stands for some
    consecutive cells. The sum of the node is the sum of the counts of these cells. The sums are listed level by
    level, from the root down. Nodes that would begin after the last cell are left out.

    `variance` is the variance of the noise on every sum. If the sums were adjusted after the noise was added,
    `variance` is None and standard errors are NaN. The estimate can answer queries about ranges of cells, and
    queries that can be divided into ranges.
    """

    domain: Domain
    branching: int
    values: Float[np.ndarray, " nodes"]
    variance: float | None
    kind: ClassVar[str] = "intervals"
    contents: ClassVar[str] = "nodes"

    def __post_init__(self) -> None:
        if self.branching < 2 or len(self.values) != sum(size for _, size in self._levels):
            raise ValueError(
                f"{len(self.values)} nodes are not those of a {self.branching}-ary tree over "
                f"{self.domain.size} cells"
            )
        super().__post_init__()

    @cached_property
    def _levels(self) -> list[tuple[int, int]]:
        """Start of each level and its number of nodes, from the leaves to the root."""
        sizes = level_sizes(self.domain.size, self.branching)
        return [*zip(accumulate(sizes, initial=0), sizes, strict=False)][::-1]

    @cached_property
    def _prefix_sums(self) -> Float[np.ndarray, " nodes+1"]:
        return np.concatenate([[0.0], np.cumsum(self.values)])

    def _answer(self, workload: Recipe, error: bool) -> Any:
        """Answer each range by adding up the fewest nodes that cover it."""
        queries: Workload = workload.on(self.domain)
        which, ranges = queries.intervals(self.domain)
        sums = np.zeros(len(ranges))
        nodes = np.zeros(len(ranges), np.int64)
        sizes = [size for _, size in self._levels]
        covers = cover(ranges, sizes, self.branching)
        for (start, _), (piece, lo, left, right, hi) in zip(self._levels, covers, strict=True):
            sums[piece] += self._prefix_sums[start + left] - self._prefix_sums[start + lo]
            sums[piece] += self._prefix_sums[start + hi] - self._prefix_sums[start + right]
            nodes[piece] += (left - lo) + (hi - right)
        variance = np.nan if self.variance is None else self.variance
        errors = np.sqrt(np.bincount(which, nodes, len(queries)) * variance)
        return np.bincount(which, sums, len(queries)), errors

    @property
    def why_unknown(self) -> str:
        """Sentence that explains why errors are unknown: the sums of some nodes were set to zero, and the
        choice of these nodes depends on the noise. The text is empty if errors are known.
        """
        if self.variance is not None:
            return ""
        return (
            "sums below 0 were set to 0, together with all sums below them in the tree, and which these are "
            "depends on the noise. With nonnegative = False, error bars are exact"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per node.

        Returns
        -------
        pandas.DataFrame
            One row per node. The columns contain the level of the node (0 for the root), the key of its first
            cell, the key of its last cell plus 1, and its noisy sum (`noisy`).
        """
        frames = []
        for depth, (start, size) in enumerate(reversed(self._levels)):
            width = self.branching ** (len(self._levels) - 1 - depth)
            lo = np.arange(size) * width
            hi = np.minimum(lo + width, self.domain.size)
            noisy = self.values[start : start + size]
            frames.append(pd.DataFrame({"level": depth, "lo": lo, "hi": hi, "noisy": noisy}))
        return pd.concat(frames, ignore_index=True)


# Items and edges


@dataclass(frozen=True, eq=False, repr=False)
class ItemEdgeCounts(Estimate):
    """Estimated counts of all items and of all edges. An edge is a pair of an item (for example a film) and a
    context (for example a day of the week). The counts of items are stored in one `Histogram`, and the counts
    of edges in another.

    The variances of the two histograms describe only the noise. `covariance` is the covariance of the noise on
    the counts of two edges of the same item. `covariance` is 0 if the noise of these two counts is independent.
    `sampled` is True if records may have been dropped before they were counted. If so, the error of a count is
    larger than the noise alone.
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
        """Domain of the edges, which are all pairs of an item and a context."""
        return self.edges.domain

    def __len__(self) -> int:
        return len(self.edges)

    def answer(
        self,
        workload: Recipe,
        weights: str = "unbiased",
        error: bool = False,
        of: str = "edges",
    ) -> Any:
        """Return estimated answers to queries. By default, the answers are computed from the counts of edges.
        If `of` is "items", the answers are computed from the counts of items.

        Parameters
        ----------
        workload : Workload
            Queries over the domain of edges. If `of` is "items", queries over the domain of items.
        weights : "unbiased" or "raw"
            The two settings give the same answers, because cells are not sampled.
        error : bool
            Whether to return also the errors of the answers. Default False.
        of : "edges" or "items"
            Table from which the queries are answered. Default "edges".

        Returns
        -------
        answers : float64[queries], or Answers
            One answer per query, as a count of records. If `error` is True, the result is a pair of answers
            and standard errors. The standard errors are NaN if records may have been dropped, because the
            number of dropped records is unknown. The attribute `noise` of the pair is the standard deviation
            of the noise.

        Raises
        ------
        ValueError
            If `weights` or `of` has a value that is not listed here, or if the workload does not fit the
            domain.
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
        """Return the standard deviation of the noise on the count of each edge."""
        return self.edges.deviations()

    @property
    def why_unknown(self) -> str:
        """Sentence that explains why errors are unknown, for example because records of users with too many
        records were dropped. The text is empty if errors are known.
        """
        reasons = []
        if self.sampled:
            reasons.append("records beyond the limit per user were dropped")
        if self.edges.noise is not None:
            reasons.append("small differences between counts were smoothed away")
        how_much = "How much this changes an answer depends on the private data"
        return f"{' and '.join(reasons)}. {how_much}" if reasons else self.edges.why_unknown

    def _pairs(self, workload: Workload) -> Float[np.ndarray, " queries"]:
        """Return, for each query, the number of ordered pairs of two different edges that have the same item
        and are both in the query.
        """
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
        """Adjust the counts so that the count of each item is the sum of the counts of its edges. The counts
        of both tables are adjusted by weighted least squares.

        There are two noisy values for the count of an item. The first value is the item's own noisy count y,
        with variance v. The second value is the sum e of the counts of the item's h edges. Each of these counts
        has variance w, so e has variance h·w. The adjusted count x of the item is the mean of y and e, weighted
        by inverse variance: x = (h·w·y + v·e)/(v + h·w). The method divides the difference x − e evenly among
        the h edges. So the adjusted count of an edge is x/h plus the difference between the edge's count and
        the mean count of the h edges. The difference has the variance w(1 − 1/h), and is uncorrelated with x.
        Therefore, the adjusted count of an edge has the variance w(1 − 1/h) + Var(x)/h². The adjusted counts of
        two edges of the same item have the covariance Var(x)/h² − w/h. The adjusted counts are real numbers,
        and may be negative. The adjustment uses only public numbers, so it costs no budget.

        Returns
        -------
        ItemEdgeCounts
            Adjusted counts over the same domain.

        Raises
        ------
        ValueError
            If the noise on the counts is not independent, or if the variance of the noise is unknown.
        """
        v = self.items.variance
        w = self.edges.variance
        m, h = self.domain.shape
        if v is None or w is None or self.covariance:
            raise ValueError(
                "consistent counts need independent noise of known variance on each count"
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
        """Multiply the counts of both tables by one common factor, so that the item counts add up to `total`.

        The factor is `total` divided by the sum of the item counts. If this sum is smaller than the standard
        deviation of its noise, the method divides by the standard deviation instead. The result has no standard
        errors. The method does not use a separate factor for each user, because one user could then change the
        counts by more than the bound.

        Parameters
        ----------
        total : float
            Number of records. The number must be public, or it must be a noisy number whose privacy cost was
            paid.

        Returns
        -------
        ItemEdgeCounts
            Scaled counts over the same domain.
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
        """Return a data frame with the counts of the edges. For the counts of the items, use
        `items.to_frame()`.

        Returns
        -------
        pandas.DataFrame
            One row per edge. The columns contain the labels of the item and the context, and the noisy count
            (`noisy`).
        """
        return self.edges.to_frame()

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the release file. They have one row per edge, with the count of the edge and
        the count of its item.
        """
        items = np.repeat(self.items.values, self.domain.shape[1])
        return {"noisy_item": items, "noisy": self.edges.values}

    @property
    def variances(self) -> tuple[float | None, float | None]:
        """Variances of the noise, as a pair: first on the count of an item, then on the count of an edge."""
        return self.items.variance, self.edges.variance

    @property
    def noise(self) -> tuple[LinearNoise | None, LinearNoise | None]:
        """Pair of descriptions of the noise, for the counts of items and for the counts of edges. A
        description is None if the noise on different counts is independent or unknown.
        """
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


# Partition


@dataclass(frozen=True, eq=False, repr=False)
class Partition(OverHierarchy, Estimate):
    """Boxes (regions) that do not overlap, with their noisy counts. A box has one range of codes per attribute,
    from `lo` to `hi` − 1. A code is the number of a value of the attribute, counted from 0. The box contains
    the cells whose codes are in all of these ranges.

    A partition can answer queries of the type `Boxes`. To compute an answer, the partition assumes that the
    records of each released box are spread evenly over the cells of the box. There are no standard errors,
    because the noisy counts were adjusted so that they add up to the number of records.
    """

    hierarchy: Hierarchy
    lo: Int[np.ndarray, "boxes attributes"]
    hi: Int[np.ndarray, "boxes attributes"]
    values: Int[np.ndarray, " boxes"]
    kind: ClassVar[str] = "partition"
    contents: ClassVar[str] = "boxes"

    def __repr__(self) -> str:
        return f"<Partition of {self.hierarchy!r}: {len(self):,} boxes>"

    def _answer(self, workload: Recipe, error: bool) -> Any:
        if isinstance(workload, Selections):
            return workload.summed(self._answer(workload.boxes[1], error), error)
        workload = queries_on_hierarchy(workload, self.hierarchy)
        if not isinstance(workload, Boxes):
            raise ValueError(f"a partition cannot answer {workload!r}. Ask Boxes instead")
        answers = np.empty(len(workload))
        volume = (self.hi - self.lo).astype(float).prod(axis=1)
        for i, (lo, hi) in enumerate(zip(workload.lo, workload.hi, strict=True)):
            shared = (np.minimum(self.hi, hi) - np.maximum(self.lo, lo)).clip(0)
            answers[i] = (shared.astype(float).prod(axis=1) / volume) @ self.values
        return answers

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the released boxes.

        Returns
        -------
        pandas.DataFrame
            One row per box. One column per attribute describes the range of the box in words, and the column
            `noisy` contains the noisy count.
        """
        return self.hierarchy.boxes_to_frame(self.lo, self.hi).assign(noisy=self.values)

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the release file. They describe the boxes in words and by the numbers of
        their cells.
        """
        lo = {f"lo{i}": cells for i, cells in enumerate(self.lo.T)}
        hi = {f"hi{i}": cells for i, cells in enumerate(self.hi.T)}
        return {**self.to_frame(), **lo, **hi}

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        axes = range(len(fields["hierarchy"].shape))
        lo = np.stack([table[f"lo{i}"].to_numpy() for i in axes], axis=1)
        hi = np.stack([table[f"hi{i}"].to_numpy() for i in axes], axis=1)
        return {"lo": lo, "hi": hi, "values": table["noisy"].to_numpy()}

    def _check_rows(self) -> None:
        shape = np.array(self.hierarchy.shape)
        inside = (self.lo >= 0) & (self.lo < self.hi) & (self.hi <= shape)
        refuse_unless(inside.all(), "lo and hi", "boxes of at least one cell of the space")
