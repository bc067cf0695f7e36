"""Noisy sums over the intervals of a k-ary tree, as they were drawn: not consistent with each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import numpy as np

from workbench.arrays import Float
from workbench.domain import Domain
from workbench.estimates.estimate import DOMAIN, Estimate, Stored
from workbench.libraries import pa, pd
from workbench.transform import level_sizes
from workbench.workload import Recipe, Workload


class _Level(NamedTuple):
    start: int
    size: int


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
    stored: ClassVar = (Stored("branching"), Stored("variance"), DOMAIN)

    def __post_init__(self) -> None:
        if self.branching < 2 or len(self.values) != sum(level.size for level in self._levels):
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
    def _levels(self) -> list[_Level]:
        """Where each level starts, and its nodes; leaves first."""
        sizes = level_sizes(self.domain.size, self.branching)
        starts = list(accumulate(sizes, initial=0))[:-1]
        return [_Level(*level) for level in zip(starts, sizes, strict=True)][::-1]

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
