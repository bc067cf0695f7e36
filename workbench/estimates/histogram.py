"""Histograms, noisy sums of a tree, and counts of the boxes of a partition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from workbench.compiled import pa, pd
from workbench.estimates.estimate import Estimate
from workbench.estimates.linear_noise import LinearNoise, cell_deviations, query_variances
from workbench.estimates.stored import refuse_unless
from workbench.queries import (
    Boxes,
    Recipe,
    Selections,
    Workload,
    level_sizes,
    queries_on_hierarchy,
)
from workbench.spaces import Domain, Hierarchy, OverHierarchy
from workbench.value import Float, Int, Num

# Histogram


@dataclass(frozen=True, eq=False)
class Histogram(Estimate):
    """Values of all keys, in their order; `variance` is that of independent noise on each, or None.

    Any workload is answered; ranges cost O(1) each after one prefix sum. The standard error is
    sqrt(cells · variance). Where the noise of cells is not independent, `noise` says how it came to be,
    and the standard error of ranges follows; it is NaN where neither is known.
    """

    domain: Domain
    values: Num[np.ndarray, " cells"]
    variance: float | None = None
    noise: LinearNoise | None = None
    kind: ClassVar[str] = "sequence"
    contents: ClassVar[str] = "cells"
    arrays: ClassVar = ("values",)

    def __post_init__(self) -> None:
        if self.values.shape != (self.domain.size,):
            raise ValueError(f"{self.values.shape} values do not fit {self.domain.size} cells")
        super().__post_init__()

    def __repr__(self) -> str:
        return f"<Histogram of {self._attribute_names}: {len(self):,} cells>"

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
        """The standard deviation of the noise on each value; NaN where it is not known."""
        if self.noise is not None:
            return cell_deviations(self.noise, self.domain)
        return np.nan if self.variance is None else float(np.sqrt(self.variance))

    @property
    def why_unknown(self) -> str:
        """Noise that was there before the counts were changed says little."""
        known = self.variance is not None or self.noise is not None
        return (
            ""
            if known
            else "after noise was added, counts were changed by what they were with it"
        )

    def to_frame(self) -> pd.DataFrame:
        """All values as a table.

        Returns
        -------
        pandas.DataFrame
            One row a cell: labels and its `noisy` value.
        """
        return self.domain.frame(self._keys).assign(noisy=self.values)

    def _columns(self) -> dict[str, Any]:
        """The values; the key is the row."""
        return {"noisy": self.values}


# Hierarchical sums


@dataclass(frozen=True, eq=False)
class HierarchicalSums(Estimate):
    """Values of all nodes, level by level from the root down; each level ends at the last cell.

    `variance` is that of the independent noise on every node; None where they are not independent, and
    standard errors NaN. Ranges are answered, and what is made of ranges.
    """

    domain: Domain
    branching: int
    values: Float[np.ndarray, " nodes"]
    variance: float | None
    kind: ClassVar[str] = "intervals"
    contents: ClassVar[str] = "nodes"
    arrays: ClassVar = ("values",)

    def __post_init__(self) -> None:
        if self.branching < 2 or len(self.values) != sum(size for _, size in self._levels):
            raise ValueError(
                f"{len(self.values)} nodes are not those of a {self.branching}-ary tree over "
                f"{self.domain.size} cells"
            )
        super().__post_init__()

    def __repr__(self) -> str:
        return (
            f"<HierarchicalSums of {self._attribute_names}: {len(self):,} nodes of a "
            f"{self.branching}-ary tree>"
        )

    @cached_property
    def _levels(self) -> list[tuple[int, int]]:
        """Where each level starts, and how many nodes it has; leaves first."""
        sizes = level_sizes(self.domain.size, self.branching)
        return [*zip(accumulate(sizes, initial=0), sizes, strict=False)][::-1]

    @cached_property
    def _prefix_sums(self) -> Float[np.ndarray, " nodes+1"]:
        return np.concatenate([[0.0], np.cumsum(self.values)])

    def _answer(self, workload: Recipe, error: bool) -> Any:
        """From the fewest nodes: at most 2(k − 1) a level for a range."""
        queries: Workload = workload.on(self.domain)
        which, ranges = queries.intervals(self.domain)
        sums, nodes = self._cover(ranges.lo, ranges.hi)
        answers = np.bincount(which, sums, len(queries))
        if not error:
            return answers
        variance = np.nan if self.variance is None else self.variance
        return answers, np.sqrt(np.bincount(which, nodes, len(queries)) * variance)

    def _cover(self, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sums of each range's minimal cover, and how many nodes it has."""
        k = self.branching
        sums = np.zeros(len(lo))
        nodes = np.zeros(len(lo), np.int64)
        to_the_end = hi == self.domain.size
        done = lo >= hi
        for start, size in self._levels:
            lo = np.where(done, 0, lo)
            hi = np.where(done, 0, np.where(to_the_end, size, hi))
            # up to the next parent's first node
            left = np.minimum(hi, -(-lo // k) * k) if size > 1 else hi
            right = np.maximum(left, np.where(to_the_end, hi, hi // k * k))
            sums += self._prefix_sums[start + left] - self._prefix_sums[start + lo]
            sums += self._prefix_sums[start + hi] - self._prefix_sums[start + right]
            nodes += (left - lo) + (hi - right)
            done = done | (left >= right)
            lo = left // k
            hi = right // k
        return sums, nodes

    def deviations(self) -> float:
        """The standard deviation of the noise on each node; NaN where they are not independent."""
        return np.nan if self.variance is None else float(np.sqrt(self.variance))

    @property
    def why_unknown(self) -> str:
        """Zeroing depends on the noise."""
        if self.variance is not None:
            return ""
        return (
            "sums below 0 were set to 0 with all that is below them, which depends on the noise; with "
            "nonnegative = False error bars are exact"
        )

    def to_frame(self) -> pd.DataFrame:
        """All nodes as a table.

        Returns
        -------
        pandas.DataFrame
            One row a node: level from the root, first and last + 1 cell, and its `noisy` value.
        """
        frames = []
        for depth, (start, size) in enumerate(reversed(self._levels)):
            width = self.branching ** (len(self._levels) - 1 - depth)
            lo = np.arange(size) * width
            hi = np.minimum(lo + width, self.domain.size)
            noisy = self.values[start : start + size]
            frames.append(pd.DataFrame({"level": depth, "lo": lo, "hi": hi, "noisy": noisy}))
        return pd.concat(frames, ignore_index=True)

    def to_arrow(self) -> pa.Table:
        """The same table for a Parquet file.

        Returns
        -------
        pyarrow.Table
            With what pandas adds to a schema, as files always had it.
        """
        return pa.Table.from_pandas(self.to_frame(), preserve_index=False)


# Partition


@dataclass(frozen=True, eq=False)
class Partition(OverHierarchy, Estimate):
    """Disjoint boxes [lo, hi) of the finest cells of a hierarchy over attributes, and their counts.

    `Boxes` are answered: a count is spread evenly over its box. Centred noise has no standard error in
    closed form.
    """

    hierarchy: Hierarchy
    lo: Int[np.ndarray, "boxes attributes"]
    hi: Int[np.ndarray, "boxes attributes"]
    values: Int[np.ndarray, " boxes"]
    kind: ClassVar[str] = "partition"
    contents: ClassVar[str] = "boxes"
    arrays: ClassVar = ("lo", "hi", "values")

    def __repr__(self) -> str:
        return f"<Partition of {self.hierarchy!r}: {len(self):,} boxes>"

    def _answer(self, workload: Recipe, error: bool) -> Any:
        if isinstance(workload, Selections):
            return workload.summed(self._answer(workload.boxes[1], error), error)
        workload = queries_on_hierarchy(workload, self.hierarchy)
        if not isinstance(workload, Boxes):
            raise ValueError(f"{workload!r} cannot be asked of a partition: ask Boxes")
        answers = np.empty(len(workload))
        volume = (self.hi - self.lo).astype(float).prod(axis=1)
        for i, (lo, hi) in enumerate(zip(workload.lo, workload.hi, strict=True)):
            shared = (np.minimum(self.hi, hi) - np.maximum(self.lo, lo)).clip(0)
            answers[i] = (shared.astype(float).prod(axis=1) / volume) @ self.values
        return answers

    def to_frame(self) -> pd.DataFrame:
        """The released boxes as a table.

        Returns
        -------
        pandas.DataFrame
            One row a box: what it is of each attribute, in words, and its count, `noisy`.
        """
        return self.hierarchy.boxes_to_frame(self.lo, self.hi).assign(noisy=self.values)

    def _columns(self) -> dict[str, Any]:
        """The boxes, in words and as cells."""
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
