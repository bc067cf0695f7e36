"""Noisy sums over the intervals of a k-ary tree, as they were drawn: not consistent with each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float

from workbench.domain import Domain
from workbench.estimates.summary import check_weights
from workbench.transform import level_sizes
from workbench.value import read_only
from workbench.workload import Workload

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow


@dataclass(frozen=True, eq=False)
class HierarchicalSums:
    """Values of all nodes, level by level from the root down; each level ends at the last cell.

    `variance` is that of the independent noise on every node; None where they are not independent.
    """

    domain: Domain
    branching: int
    values: Float[np.ndarray, " nodes"]
    variance: float | None
    kind: ClassVar[str] = "intervals"
    contents: ClassVar[str] = "nodes"

    def __post_init__(self):
        if self.branching < 2 or len(self.values) != sum(size for _, size in self._levels):
            raise ValueError(
                f"{len(self.values)} nodes are not those of a {self.branching}-ary tree over "
                f"{self.domain.size} cells"
            )
        object.__setattr__(self, "values", read_only(self.values))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        names = " × ".join(self.domain.attributes)
        return f"<Intervals of {names}: {len(self):,} nodes of a {self.branching}-ary tree>"

    @cached_property
    def _levels(self) -> list[tuple[int, int]]:
        """Where each level starts, and its nodes; leaves first."""
        sizes = level_sizes(self.domain.size, self.branching)
        starts = list(accumulate(sizes, initial=0))
        return list(zip(starts[-2::-1], sizes[::-1], strict=True))

    @cached_property
    def _prefix(self) -> Float[np.ndarray, " nodes+1"]:
        return np.concatenate([[0.0], np.cumsum(self.values)])

    def answer(self, workload: Workload, weights: str = "unbiased", error: bool = False) -> Any:
        """Estimated counts from the fewest nodes, float64[queries]; with `error` standard errors too.

        Ranges, and what is made of ranges: at most 2(k − 1) nodes a level.
        """
        check_weights(weights)
        workload = workload.on(self.domain)
        which, ranges = workload.intervals(self.domain)
        found, nodes = self._cover(ranges.lo, ranges.hi)
        answers = np.bincount(which, found, len(workload))
        if not error:
            return answers
        known = np.nan if self.variance is None else self.variance
        return answers, np.sqrt(np.bincount(which, nodes, len(workload)) * known)

    def _cover(self, lo, hi):
        """The sums of each range's minimal cover, and how many nodes it has."""
        k, total, nodes = self.branching, np.zeros(len(lo)), np.zeros(len(lo), np.int64)
        whole, done = hi == self.domain.size, lo >= hi
        for start, size in self._levels:
            lo, hi = np.where(done, 0, lo), np.where(done, 0, np.where(whole, size, hi))
            # up to the next parent's first node
            left = np.minimum(hi, -(-lo // k) * k) if size > 1 else hi
            right = np.maximum(left, np.where(whole, hi, hi // k * k))
            total += self._prefix[start + left] - self._prefix[start + lo]
            total += self._prefix[start + hi] - self._prefix[start + right]
            nodes += (left - lo) + (hi - right)
            done = done | (left >= right)
            lo, hi = left // k, right // k
        return total, nodes

    def to_frame(self) -> pd.DataFrame:
        """One row a node: level from the root, first and last + 1 cell, and its `noisy` value."""
        import pandas as pd

        parts = []
        for depth, (start, size) in enumerate(reversed(self._levels)):
            width = self.branching ** (len(self._levels) - 1 - depth)
            lo = np.arange(size) * width
            hi = np.minimum(lo + width, self.domain.size)
            noisy = self.values[start : start + size]
            parts.append(pd.DataFrame({"level": depth, "lo": lo, "hi": hi, "noisy": noisy}))
        return pd.concat(parts, ignore_index=True)

    def to_arrow(self) -> pyarrow.Table:
        """The same table for a Parquet file."""
        import pyarrow as pa

        return pa.Table.from_pandas(self.to_frame(), preserve_index=False)

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        told = {"branching": self.branching, "variance": self.variance}
        return told | {"domain": self.domain.to_dict()}

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """Intervals from their file's table and record."""
        domain = Domain.from_dict(about["domain"])
        return cls(domain, about["branching"], table["noisy"].to_numpy(), about["variance"])
