"""Noisy counts for the leaves of a hierarchy, and microdata (synthetic records)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from workbench.compiled import pd
from workbench.data import PUBLIC, Records, SparseTable
from workbench.estimates.estimate import Estimate
from workbench.estimates.stored import read_keys, refuse_unless
from workbench.noise.law import Law
from workbench.queries import Boxes, Recipe, Selections, key_runs, queries_on_hierarchy
from workbench.spaces import (
    Domain,
    Hierarchy,
    Keys,
    OverHierarchy,
    Prefixes,
    Quadtree,
    keys_above,
    search_unsorted,
)
from workbench.value import Float, Int, Num

# Leaves

_MOST_RECORDS = 2**28  # synthetic ones that are made at a time


class _Position(NamedTuple):
    """Positions of some keys among the released nodes, which are sorted ranges of keys. A position consists of
    the last node that starts at or before the key, and the share of this node's keys that are smaller than the
    key.

    For a key before all nodes, the position consists of the first node and the share 0.
    """

    node: Int[np.ndarray, " keys"]
    part: Float[np.ndarray, " keys"]


@dataclass(frozen=True, eq=False, repr=False)
class Leaves(OverHierarchy, Estimate):
    """Nodes of a hierarchy with their noisy counts. A hierarchy is a tree that divides the space of values into
    smaller and smaller regions, which are called nodes. The released nodes do not overlap. Each value has a
    number, which is called the key of the value.

    `levels` and `keys` identify the nodes. `levels` contains the level of each node in the tree. `keys`
    (uint64[words, n]) contains the lowest key of each node, in ascending order. The estimate assumes that
    values outside the released nodes have no records. `law` is the distribution of the noise on every count. If
    the noise differs between counts, `law` is None and there are no standard errors.

    The estimate can answer lists of queries (workloads) on the hierarchy. To compute an answer, the estimate
    assumes that the records of a node are spread evenly over the keys in the node. If the nodes are boxes of
    points, it assumes that the records are spread evenly over the volume of the node. If a query contains only
    whole nodes, the standard error of the answer comes from the noise alone. If a query contains part of a
    node, the standard error is NaN, because the release does not contain the positions of the records within
    the node.
    """

    hierarchy: Hierarchy
    levels: Int[np.ndarray, " n"]
    keys: Keys
    values: Int[np.ndarray, " n"]
    law: Law | None = None
    kind: ClassVar[str] = "leaves"
    contents: ClassVar[str] = "leaves"
    unreleased: ClassVar = (0.0, np.nan)  # what lies in no node, nobody knows

    def __repr__(self) -> str:
        return f"<Leaves of {self.hierarchy!r}: {len(self):,} nodes>"

    def counts(self) -> Int[np.ndarray, " n"]:
        """Return the number of synthetic records to draw in each node. This number is the noisy count of the
        node, or 0 if this count is negative.

        Because negative counts become 0, the sum over many empty nodes is too large on average. The method
        `answer` does not have this bias, because it uses the unchanged noisy counts. The function
        `inference.project_to_simplex` also avoids the bias, because it keeps the sum of the counts.

        Returns
        -------
        int64[n]
            Noisy counts, where 0 replaces negative counts.
        """
        return np.maximum(self.values, 0)

    @property
    def total(self) -> int:
        """Number of synthetic records in all nodes together."""
        return int(self.counts().sum())

    def _few_counts(self) -> Int[np.ndarray, " n"]:
        """Return the number of synthetic records of each node. Raise a ValueError if all records together do
        not fit in memory.
        """
        counts = self.counts()
        if counts.sum(dtype=float) > _MOST_RECORDS:
            raise ValueError(f"more than {_MOST_RECORDS:,} synthetic records are too many")
        return counts

    def _answer(self, workload: Recipe, error: bool) -> Any:
        if isinstance(workload, Selections):
            return workload.summed(self._answer(workload.boxes[1], error), error)
        workload = queries_on_hierarchy(workload, self.hierarchy)
        ones = np.ones(len(self))
        if isinstance(workload, Boxes):
            boxes = self.hierarchy.boxes
            answers, cut = boxes(self.levels, self.keys, self.values, workload.lo, workload.hi)
            if error:
                nodes, _ = boxes(self.levels, self.keys, ones, workload.lo, workload.hi)
        else:
            which, lo, hi = key_runs(workload, self.hierarchy)
            end = self._position(hi, True)
            start = self._position(lo, False)
            answers = self._sums(which, start, end, self.values, len(workload))
            if error:
                nodes = self._sums(which, start, end, ones, len(workload))
            parts = np.stack([end.part, start.part])
            within = ((parts > 0) & (parts < 1)).any(axis=0)
            cut = np.bincount(which, within, len(workload)) > 0
        if not error:
            return answers
        variance = np.nan if self.law is None else self.law.variance
        return answers, np.where(cut, np.nan, np.sqrt(np.rint(nodes) * variance))

    def _sums(
        self,
        which: Int[np.ndarray, " n"],
        start: _Position,
        end: _Position,
        values: Num[np.ndarray, " n"],
        queries: int,
    ) -> Float[np.ndarray, " queries"]:
        """Return, for each query, the sum of the values of the nodes from position `start` to position `end`.
        The numbers in `which` say to which query each pair of positions belongs.
        """
        prefix = np.append(0, np.cumsum(values))
        values = np.append(values, 0)
        up_to_end = prefix[end.node] + end.part * values[end.node]
        up_to_start = prefix[start.node] + start.part * values[start.node]
        return np.bincount(which, up_to_end - up_to_start, queries)

    def _position(self, keys: Keys, after: bool) -> _Position:
        """Return the position of each key among the released nodes. With `after`, return the position of the
        next larger key instead.
        """
        if not len(self):
            count = keys.shape[1]
            return _Position(np.zeros(count, np.int64), np.zeros(count))
        at = search_unsorted(self.keys, keys, after=True) - 1
        node = np.maximum(at, 0)
        part = self.hierarchy.digits.fraction_below(
            self.levels[node], self.keys[:, node], keys, after
        )
        return _Position(node, np.where(at < 0, 0, part))

    def coarsened(self, level: int) -> Self:
        """Return a coarser estimate. The method joins the released nodes below the given level into nodes of
        this level, and adds up their counts.

        The result has no standard errors.

        Parameters
        ----------
        level : int
            Deepest level of the result. The root has level 0.

        Returns
        -------
        Leaves
            Estimate with at most as many nodes as before.
        """
        levels = np.minimum(self.levels, level)
        keys = self.hierarchy.digits.ancestors(levels, self.keys)
        new = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(self)]
        first = np.flatnonzero(new)
        values = np.add.reduceat(self.values, first)
        return replace(self, levels=levels[first], keys=keys[:, first], values=values, law=None)

    def synthetic(self, seed: int = 0) -> Records:
        """Draw synthetic records. The method `counts` determines the number of records in each node. Each
        record is drawn uniformly within its node. If the nodes are prefixes of strings, the records are these
        prefixes.

        Parameters
        ----------
        seed : int
            Seed of the generator that draws the positions within nodes. The seed may be public.

        Returns
        -------
        Records
            Public synthetic records.
        """
        counts = self._few_counts()
        if isinstance(self.hierarchy, Prefixes):
            return Records.from_keys(self.hierarchy, self.keys, counts, PUBLIC)
        levels = np.repeat(self.levels, counts)
        nodes = np.repeat(self.keys, counts, axis=1)
        keys = self.hierarchy.random_keys(levels, nodes, np.random.default_rng(seed))
        return Records.from_keys(self.hierarchy, keys, np.ones(keys.shape[1], np.int64), PUBLIC)

    def points(self, seed: int = 0) -> Float[np.ndarray, "records dims"]:
        """Draw synthetic points. The method `counts` determines the number of points in each node. The
        hierarchy must be a `Quadtree`. Each point is drawn uniformly within its node, which is a box.

        Parameters
        ----------
        seed : int
            Seed of the generator that draws the positions within nodes. The seed may be public.

        Returns
        -------
        float64[records, dims]
            Coordinates of the points, in the units of the hierarchy's box.
        """
        counts = self._few_counts()
        levels = np.repeat(self.levels, counts)
        keys = np.repeat(self.keys, counts, axis=1)
        return self.hierarchy.points(levels, keys, np.random.default_rng(seed))

    def to_frame(self, seed: int = 0) -> pd.DataFrame:
        """Return a data frame with the synthetic records.

        Parameters
        ----------
        seed : int
            Seed of the generator that draws points, as in the method `points`.

        Returns
        -------
        pandas.DataFrame
            For points, one row per point and one column per dimension. For strings and codes, one row per node
            that has records. The columns contain a description of the node and the number of synthetic records
            in the node (`count`). The column `complete` is True if the node is a whole value, and False if the
            node is a prefix of values.
        """
        if isinstance(self.hierarchy, Quadtree):
            return pd.DataFrame(self.points(seed), columns=list(self.hierarchy.attributes))
        positive = self.values > 0
        frame = self.hierarchy.frame(self.levels[positive], self.keys[:, positive])
        return frame.assign(count=self.values[positive])

    @property
    def why_unknown(self) -> str:
        """Sentence that explains why errors may be unknown. If a query contains only a part of a node, the
        error depends on the positions of the records within the node, which were not released.
        """
        if self.law is None:
            return "counts of nodes were divided among the nodes below, in shares that depend on the noise"
        return "if a query covers a part of a node, nobody knows how many of its records lie in this part"

    def deviations(self) -> float:
        """Return the standard deviation of the noise on the count of each node, or NaN if it is unknown."""
        return np.nan if self.law is None else float(np.sqrt(self.law.variance))

    def nodes(self) -> pd.DataFrame:
        """Return a data frame with the released nodes.

        Returns
        -------
        pandas.DataFrame
            One row per node, with a description in words, its `level`, and its noisy count (`noisy`).
        """
        frame = self.hierarchy.frame(self.levels, self.keys)
        return frame.assign(level=self.levels, noisy=self.values)

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the release file. They describe the nodes in words and by their keys."""
        keys = {f"key{i}": word for i, word in enumerate(self.keys)}
        return {**self.nodes(), **keys}

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        words = range(fields["hierarchy"].digits.word_count)
        keys = np.stack([table[f"key{i}"].to_numpy() for i in words])
        levels = table["level"].to_numpy()
        return {"levels": levels, "keys": keys, "values": table["noisy"].to_numpy()}

    def _check_rows(self) -> None:
        nodes = self.hierarchy.has_nodes(self.levels, self.keys)
        refuse_unless(nodes, "levels and keys", "those of nodes of the hierarchy")
        last = self.hierarchy.digits.highest_keys(self.levels, self.keys)
        disjoint = keys_above(self.keys[:, 1:], last[:, :-1]).all()
        refuse_unless(disjoint, "keys", "disjoint nodes in their order")


# Microdata


@dataclass(frozen=True, eq=False, repr=False)
class Microdata(Estimate):
    """Synthetic records that were drawn from a model of the data. The answer to a query is the number of
    synthetic records that the query selects.

    `keys` contains one key per record, in ascending order. The key is the number of the record's cell. The
    fields `gap` and `lacks` describe how well the model was fitted (see `inference.model.Model`). Standard
    errors are NaN, because the difference between the model and the true data is unknown.
    """

    domain: Domain
    keys: Int[np.ndarray, " records"]
    gap: float = float("nan")
    lacks: float = float("nan")
    kind: ClassVar[str] = "microdata"
    contents: ClassVar[str] = "records"
    unreleased: ClassVar = (np.nan, np.nan)

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def table(self) -> SparseTable:
        """Table with the number of synthetic records per cell."""
        counts = np.ones(len(self), np.int64)
        return SparseTable.from_keys(self.domain, self.keys, counts, PUBLIC)

    @property
    def why_unknown(self) -> str:
        """Sentence that explains why errors are unknown: the difference between the model and the true data
        is unknown.
        """
        return (
            "the rows were drawn from a model of the release, and only the private data tell how accurate "
            "the model is"
        )

    def _answer(self, workload: Recipe, error: bool) -> Any:
        return self.table.answer(workload)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the synthetic records.

        Returns
        -------
        pandas.DataFrame
            One row per record, and one column of labels per attribute.
        """
        return self.domain.frame(self.keys)

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        return {"keys": read_keys(fields["domain"], table)}
