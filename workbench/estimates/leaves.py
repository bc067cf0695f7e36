"""Noisy counts of nodes of a hierarchy, and the synthetic records that they stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float, Int

from workbench.estimates.summary import check_weights, geometric_variance
from workbench.hierarchy import (
    Hierarchy,
    Keys,
    Prefixes,
    Quadtree,
    argsort_keys,
    from_dict,
    searchsorted_keys,
    to_dict,
)
from workbench.records import Records
from workbench.table import PUBLIC
from workbench.value import read_only
from workbench.workload import Boxes, Workload, key_runs, queries_on_hierarchy

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
    contents: ClassVar[str] = "leaves"

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

        Many noisy zeros then sum to more than nothing; `answer` adds them up as they are, and
        `inference.balanced` keeps their sum.
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
        check_weights(weights)
        workload = queries_on_hierarchy(workload, self.hierarchy)
        ones = np.ones(len(self))
        if isinstance(workload, Boxes):
            ends = workload.lo, workload.hi
            boxes = self.hierarchy.boxes
            answers, cut = boxes(self.levels, self.keys, self.values, *ends)
            held = boxes(self.levels, self.keys, ones, *ends)[0] if error else None
        else:
            which, lo, hi = key_runs(workload, self.hierarchy)
            up_to, up_to_lo = self._up_to(hi, True), self._up_to(lo, False)
            answers = self._sums(which, up_to, up_to_lo, self.values, len(workload))
            held = self._sums(which, up_to, up_to_lo, ones, len(workload)) if error else None
            parts = np.stack([up_to[1], up_to_lo[1]])
            within = ((parts > 0) & (parts < 1)).any(axis=0)
            cut = np.bincount(which, within, len(workload)) > 0
        if not error:
            return answers
        variance = np.nan if self.decay is None else geometric_variance(self.decay)
        return answers, np.where(cut, np.nan, np.sqrt(np.rint(held) * variance))

    def _sums(self, which, up_to, up_to_lo, values, queries: int) -> np.ndarray:
        prefix, values = np.append(0, np.cumsum(values)), np.append(values, 0)
        ends = [prefix[at] + part * values[at] for at, part in (up_to, up_to_lo)]
        return np.bincount(which, ends[0] - ends[1], queries)

    def _up_to(self, keys: Keys, after: bool) -> tuple[np.ndarray, np.ndarray]:
        """The last node that starts at or before each key, and which part of it is below that key.

        Or (`after`) below the next one. What lies before all nodes is told as none of the first.
        """
        if not len(self):
            return np.zeros(keys.shape[1], np.int64), np.zeros(keys.shape[1])
        at, by = np.empty(keys.shape[1], np.int64), argsort_keys(keys)
        at[by] = searchsorted_keys(self.keys, keys[:, by], after=True) - 1
        node = np.maximum(at, 0)
        share = self.hierarchy.digits.fraction_below(
            self.levels[node], self.keys[:, node], keys, after
        )
        return node, np.where(at < 0, 0, share)

    def noise_variance(self, level: int) -> float:
        """The variance that noise gives to the answer about a node of a level, mean over all of them.

        In closed form: a node's answer has the noise of the leaves below it; of a leaf above it, spread
        evenly over k nodes, 1/k. NaN where the law of the noise is another.
        """
        if self.decay is None:
            return float("nan")
        many = np.cumprod([1.0, *self.hierarchy.digits.radices])
        share = np.minimum(1, many[self.levels] / many[level])  # Σ over its k nodes of 1/k²
        return float(geometric_variance(self.decay) * share.sum() / many[level])

    def coarsened(self, level: int) -> Self:
        """The same counts, those of leaves below a level added up to the nodes there that hold them.

        Standard errors have no closed form any more.
        """
        levels = np.minimum(self.levels, level)
        keys = self.hierarchy.digits.ancestors(levels, self.keys)
        new = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(self)]
        first = np.flatnonzero(new)
        values = np.add.reduceat(self.values, first)
        return replace(
            self, levels=levels[first], keys=keys[:, first], values=values, decay=None
        )

    def synthetic(self, seed: int = 0) -> Records:
        """The synthetic records, public: anywhere in their nodes; beginnings of strings as they stand.

        `seed` places them, which tells nothing.
        """
        tree, counts = self.hierarchy, self.counts()
        if isinstance(tree, Prefixes):
            return Records.from_keys(tree, self.keys, counts, PUBLIC)
        levels, nodes = np.repeat(self.levels, counts), np.repeat(self.keys, counts, axis=1)
        keys = tree.random_keys(levels, nodes, np.random.default_rng(seed))
        return Records.from_keys(tree, keys, np.ones(keys.shape[1], np.int64), PUBLIC)

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

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        return {"hierarchy": to_dict(self.hierarchy), "decay": self.decay}

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """Leaves from their file's table and record."""
        tree = from_dict(about["hierarchy"])
        words = range(tree.digits.word_count)
        keys = np.stack([table[f"key{i}"].to_numpy() for i in words]).astype(np.uint64)
        levels, values = (table[name].to_numpy() for name in ("level", "noisy"))
        return cls(tree, levels, keys, values, about["decay"])
