"""Noisy counts of nodes of a hierarchy, and the synthetic records that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float, Int

from workbench import hierarchy as hierarchies
from workbench.estimates.summary import accepted, geometric_variance
from workbench.hierarchy import Hierarchy, Keys, Quadtree, order, places
from workbench.records import Records
from workbench.table import PUBLIC
from workbench.value import read_only
from workbench.workload import Boxes, Workload, spans

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow


@dataclass(frozen=True, eq=False)
class Leaves:
    """Disjoint nodes of a hierarchy in the order of keys, each with a noisy count.

    `levels` and `keys` (uint64[words, n], the lowest of a node) say which; what lies in none of them
    counts for nothing. `decay` is ε/Δ of geometric noise on every count, or None where the law is
    another (then without standard errors).
    """

    hierarchy: Hierarchy
    levels: Int[np.ndarray, " n"]
    keys: Keys
    values: Int[np.ndarray, " n"]
    decay: float | None = None
    kind: ClassVar[str] = "leaves"
    holds: ClassVar[str] = "leaves"

    def __post_init__(self):
        for name in ("levels", "keys", "values"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def domain(self) -> Hierarchy:
        """The hierarchy, which workloads are asked over."""
        return self.hierarchy

    def __len__(self) -> int:
        return len(self.levels)

    def __repr__(self) -> str:
        return f"<Leaves of {self.hierarchy!r}: {len(self):,} nodes>"

    def counts(self) -> Int[np.ndarray, " n"]:
        """How many synthetic records each node gets: its noisy count, or 0 if that is negative.

        Many noisy zeros then sum to more than nothing; `answer` adds them up as they are.
        """
        return np.maximum(self.values, 0)

    @property
    def total(self) -> int:
        """How many synthetic records there are."""
        return int(self.counts().sum())

    def answer(self, workload: Workload, weights: str = "unbiased", error: bool = False) -> Any:
        """Estimated counts, float64[queries]; with `error` also the standard error of each.

        A node's noisy count is spread evenly over its keys (over its volume, for boxes of points).
        Nothing is sampled, so both kinds of `weights` mean the same. The standard error is that of the
        noise, where a query cuts no node; NaN where it does, since nobody knows what lies where.
        """
        accepted(weights)
        workload = workload.on(self.hierarchy)
        ones = np.ones(len(self))
        if isinstance(workload, Boxes):
            ends = workload.lo, workload.hi
            boxes = self.hierarchy.boxes
            answers, cut = boxes(self.levels, self.keys, self.values, *ends)
            held = boxes(self.levels, self.keys, ones, *ends)[0] if error else None
        else:
            which, lo, hi = spans(workload, self.hierarchy)
            answers = np.bincount(which, self._between(lo, hi, self.values), len(workload))
            if error:
                held = self._between(lo, hi, ones)
                cut = np.bincount(which, held != np.rint(held), len(workload)) > 0
                held = np.bincount(which, held, len(workload))
        if not error:
            return answers
        variance = np.nan if self.decay is None else geometric_variance(self.decay)
        return answers, np.where(cut, np.nan, np.sqrt(np.rint(held) * variance))

    def _between(self, lo: Keys, hi: Keys, values) -> Float[np.ndarray, " pieces"]:
        return self._up_to(hi, values, True) - self._up_to(lo, values, False)

    def _up_to(self, keys: Keys, values, after: bool) -> Float[np.ndarray, " keys"]:
        """Σ of values below each key, or (`after`) up to and with it."""
        if not len(self):
            return np.zeros(keys.shape[1])
        at = np.empty(keys.shape[1], np.int64)
        by = order(keys)
        at[by] = places(self.keys, keys[:, by], after=True) - 1
        prefix = np.concatenate([[0], np.cumsum(values)])
        node = np.maximum(at, 0)
        share = self.hierarchy.digits.share(
            self.levels[node], self.keys[:, node], keys, after
        ).clip(0, 1)
        return np.where(at < 0, 0, prefix[node] + share * values[node])

    def synthetic(self, seed: int = 0) -> Records:
        """The synthetic records, public: points anywhere in their nodes, prefixes as they stand.

        `seed` places the points, which tells nothing.
        """
        tree, counts = self.hierarchy, self.counts()
        if isinstance(tree, Quadtree):
            return Records.of(tree, self.points(seed), PUBLIC)
        return Records.from_keys(tree, self.keys, counts, PUBLIC)

    def points(self, seed: int = 0) -> Float[np.ndarray, "records dims"]:
        """Synthetic points of a `Quadtree`, in the units of its box: anywhere in their nodes."""
        counts, rng = self.counts(), np.random.default_rng(seed)
        levels, keys = np.repeat(self.levels, counts), np.repeat(self.keys, counts, axis=1)
        return self.hierarchy.points(levels, keys, rng)

    def to_frame(self, seed: int = 0) -> pd.DataFrame:
        """The synthetic records.

        Points: one row each, a column a dimension. Strings and codes: one row a node with any records,
        whether it is `complete`, and its `count`.
        """
        import pandas as pd

        if isinstance(self.hierarchy, Quadtree):
            return pd.DataFrame(self.points(seed), columns=list(self.hierarchy.attributes))
        some = self.values > 0
        told = self.hierarchy.frame(self.levels[some], self.keys[:, some])
        return told.assign(count=self.values[some])

    def nodes(self) -> pd.DataFrame:
        """One row a node: what it is in words, its `level`, and its `noisy` count."""
        told = self.hierarchy.frame(self.levels, self.keys)
        return told.assign(level=self.levels, noisy=self.values)

    def to_arrow(self) -> pyarrow.Table:
        """The nodes for a Parquet file, in words and as keys."""
        import pyarrow as pa

        table = pa.Table.from_pandas(self.nodes(), preserve_index=False)
        for i, word in enumerate(self.keys):
            table = table.append_column(f"key{i}", pa.array(word))
        return table.replace_schema_metadata(None)

    def about(self) -> dict:
        """What `from_arrow` needs beside the table."""
        return {"hierarchy": hierarchies.told(self.hierarchy), "decay": self.decay}

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """Leaves from their file's table and record."""
        tree = hierarchies.read(about["hierarchy"])
        words = range(tree.digits.words)
        keys = np.stack([table[f"key{i}"].to_numpy() for i in words]).astype(np.uint64)
        levels, values = (table[name].to_numpy() for name in ("level", "noisy"))
        return cls(tree, levels, keys, values, about["decay"])
