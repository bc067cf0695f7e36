"""Private records in a hierarchy, sorted by key, so that a node's records are a slice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from workbench.compiled import njit
from workbench.hierarchy import (
    Attributes,
    Hierarchy,
    Keys,
    argsort_keys,
    child_digits,
    searchsorted_keys,
)
from workbench.table import PUBLIC, Bound, Public, SparseTable, whole_counts
from workbench.value import read_only, sealed
from workbench.workload import Boxes, Workload, key_runs, queries_on_hierarchy

_MOST = 2**53


@dataclass(frozen=True, eq=False)
class Records:
    """Records of a hierarchy: keys in ascending order, equal ones next to each other, and their counts.

    `keys` is uint64[words, n]. `counts` is how many records each key stands for; None, one each.
    `bound` says how far one unit moves the records (l1 of them at most), or that they are `PUBLIC`.
    `left_out` is why how many values were not in the space: as private as the records.
    """

    hierarchy: Hierarchy
    keys: Keys
    counts: Int[np.ndarray, " n"] | None
    bound: Bound | Public
    truth_public: bool = False
    left_out: dict[str, int] = field(default_factory=dict)

    def __post_init__(self):
        if not isinstance(self.bound, Bound | Public):
            raise ValueError(
                f"Records.bound = {self.bound!r} is not allowed: need Bound(l0, linf), how far one "
                "unit moves the records, or PUBLIC"
            )
        words, keys = self.hierarchy.digits.word_count, np.asarray(self.keys)
        if keys.ndim == 1:
            keys = keys[None]
        if keys.dtype != np.uint64 or keys.ndim != 2 or len(keys) != words:
            raise ValueError(
                f"Records.keys of shape {keys.shape} and type {keys.dtype} are not allowed: need "
                f"uint64[{words}, n]"
            )
        object.__setattr__(self, "keys", read_only(keys))
        if not _ascending(self.keys):
            raise ValueError("Records.keys must be in ascending order; use Records.of")
        if not self.hierarchy.contains(self.keys):
            raise ValueError("Records.keys must be keys of the hierarchy; use Records.of")
        if self.counts is None:
            return
        counts = whole_counts(self.counts)
        if counts.shape != keys.shape[1:]:
            raise ValueError(f"{keys.shape[1]} keys do not fit {counts.shape} counts")
        if len(counts) and (counts.min() < 1 or counts.astype(float).sum() > _MOST):
            raise ValueError(f"Records.counts must be >= 1 and sum to at most {_MOST}")
        object.__setattr__(self, "counts", sealed(counts))

    @classmethod
    def from_values(
        cls,
        hierarchy: Hierarchy,
        values: Any,
        bound: Bound | Public,
        *,
        counts: Int[np.ndarray, " n"] | None = None,
        truth_public: bool = False,
    ) -> Records:
        """From values in any order: points, strings or codes, as the hierarchy encodes them.

        What is not in the space is left out, and told, why and how much, in `left_out`.

        >>> from workbench.hierarchy import Quadtree
        >>> Records.of(Quadtree(1, 4), np.array([[0.5], [0.1], [1.5]]), Bound()).left_out
        {'outside the box': 1}
        """
        keys, why = hierarchy.encode(values)
        weight = None if counts is None else whole_counts(counts)
        if weight is not None and len(weight) != len(why):
            raise ValueError(f"{len(why)} values do not fit {weight.shape} counts")
        many = np.bincount(why, weight, len(hierarchy.reasons) + 1)[1:].astype(int).tolist()
        left_out = {r: n for r, n in zip(hierarchy.reasons, many, strict=True) if n}
        if weight is None:
            return cls(hierarchy, _sorted(keys), None, bound, truth_public, left_out)
        return cls.from_keys(hierarchy, keys, weight[why == 0], bound, truth_public, left_out)

    @classmethod
    def from_keys(
        cls, hierarchy, keys: Keys, counts, bound, truth_public=False, left_out=None
    ) -> Records:
        """From keys in any order with counts: those of equal keys add up."""
        keys, counts = np.asarray(keys), whole_counts(counts)
        keys = keys[None] if keys.ndim == 1 else keys
        if keys.dtype.kind not in "iu" or (keys.dtype.kind == "i" and (keys < 0).any()):
            raise ValueError("Records.keys must be whole numbers >= 0")
        if counts.shape != keys.shape[1:]:
            raise ValueError(f"{keys.shape[1]} keys do not fit {counts.shape} counts")
        if counts.astype(float).sum() > _MOST:
            raise ValueError(f"Records.counts must sum to at most {_MOST}")
        keys = keys.astype(np.uint64, copy=False)
        by = argsort_keys(keys)
        by = by[counts[by] > 0]
        keys, counts = keys[:, by], counts[by]
        first = np.flatnonzero(_changes(keys))
        if len(first) < len(counts):
            keys, counts = keys[:, first], np.add.reduceat(counts, first)
        return cls(hierarchy, sealed(keys), counts, bound, truth_public, left_out or {})

    @classmethod
    def from_table(cls, table: SparseTable) -> Records:
        """The records of a table, attribute by attribute."""
        keys = table.keys.astype(np.uint64)[None]
        tree = Attributes(table.domain)
        return cls(tree, sealed(keys), table.counts, table.bound, table.truth_public)

    @property
    def domain(self) -> Hierarchy:
        """The hierarchy, which workloads are asked over."""
        return self.hierarchy

    def __len__(self) -> int:
        return self.keys.shape[1]

    @property
    def total(self) -> int:
        """How many records there are."""
        return len(self) if self.counts is None else int(self.counts.sum())

    def __repr__(self) -> str:
        shown = self.truth_public or self.bound is PUBLIC
        many = f"{self.total:,} " * shown
        return f"<Records {many}in {self.hierarchy!r}, {self.bound!r}>"

    def ends(self) -> Int[np.ndarray, " n"]:
        """How many records there are up to each key; empty where every key is one record."""
        return np.empty(0, np.int64) if self.counts is None else np.cumsum(self.counts)

    def _before(self, at: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """How many records the first `at` keys stand for."""
        return at if self.counts is None else np.append(0, self.ends())[at]

    def split(
        self,
        level: int,
        nodes: Keys,
        start: Int[np.ndarray, " n"],
        stop: Int[np.ndarray, " n"],
        ends: Int[np.ndarray, " keys"],
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], Int[np.ndarray, " k"], Any]:
        """The occupied children of nodes that hold records start … stop−1: whose, digit, start, stop.

        Records are counted in the order of keys, copies one after another. Nothing is copied, and the
        cost is in children that hold anything.
        """
        digits = self.hierarchy.digits
        most = np.minimum(stop - start, digits.radices[level]).clip(0).sum()
        out = np.empty((4, most), np.int64)
        word = digits.word_of_level(level)
        width, radix = np.uint64(digits.widths[level]), np.uint64(digits.radices[level])
        k = _split(self.keys[word], ends, nodes[word], start, stop, width, radix, out)
        return tuple(out[:, :k])

    def node_counts(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> Int[np.ndarray, " n"]:
        """How many records lie in each node; nodes in the order of keys, none in another."""
        first = searchsorted_keys(self.keys, nodes)
        last = searchsorted_keys(
            self.keys, self.hierarchy.digits.ends(levels, nodes), after=True
        )
        first, last = self._before(np.stack([first, last]))
        return last - first

    def counts_between(self, keys: Keys) -> Int[np.ndarray, " n"]:
        """How many records lie from each of some sorted keys up to the next one."""
        at = np.append(searchsorted_keys(self.keys, keys), len(self))
        return np.diff(self._before(at))

    def level(self, level: int) -> tuple[Keys, Int[np.ndarray, " nodes"]]:
        """The occupied nodes of a level, in the order of keys, and how many records they hold."""
        keys = self.hierarchy.digits.ancestors(level, self.keys)
        first = np.flatnonzero(_changes(keys))
        return keys[:, first], np.diff(self._before(np.append(first, len(self))))

    def answer(self, workload: Workload) -> Float[np.ndarray, " queries"]:
        """The exact answers, in records."""
        workload = queries_on_hierarchy(workload, self.hierarchy)
        if isinstance(workload, Boxes):
            levels = np.full(len(self), self.hierarchy.digits.depth)
            counts = np.ones(len(self)) if self.counts is None else self.counts
            return self.hierarchy.boxes(levels, self.keys, counts, workload.lo, workload.hi)[0]
        which, lo, hi = key_runs(workload, self.hierarchy)
        at, by_lo, by_hi = (
            np.empty((2, len(which)), np.int64),
            argsort_keys(lo),
            argsort_keys(hi),
        )
        at[0, by_lo] = searchsorted_keys(self.keys, lo[:, by_lo])
        at[1, by_hi] = searchsorted_keys(self.keys, hi[:, by_hi], after=True)
        first, last = self._before(at)
        return np.bincount(which, last - first, len(workload))

    def to_frame(self) -> Any:
        """One row a key: its value in words, and `count`."""
        levels = np.full(len(self), self.hierarchy.digits.depth)
        counts = 1 if self.counts is None else self.counts
        return self.hierarchy.frame(levels, self.keys).assign(count=counts)


@dataclass(frozen=True, eq=False)
class Frontier:
    """The nodes of one level that may still be refined: with the records they hold, and empty ones.

    `nodes` hold the records start … stop−1 of `records`, less what was discarded above them; `empty`
    are those that hold none. `part` is how much is left of every record of a node, where records are
    diminished rather than discarded.
    """

    records: Records
    level: int
    nodes: Keys
    start: Int[np.ndarray, " n"]
    stop: Int[np.ndarray, " n"]
    empty: Keys
    ends: Int[np.ndarray, " keys"]
    share_left: Float[np.ndarray, " n"] | None = None

    @classmethod
    def root(cls, records: Records) -> Frontier:
        """Everything in one node."""
        digits, none = records.hierarchy.digits, np.zeros(1, np.int64)
        empty = np.empty((digits.word_count, 0), np.uint64)
        return cls(records, 0, digits.root(), none, none + records.total, empty, records.ends())

    @property
    def counts(self) -> Int[np.ndarray, " n"]:
        """How many records `nodes` hold."""
        return np.maximum(self.stop - self.start, 0)

    @property
    def zeros(self) -> int:
        """How many nodes are empty."""
        return self.empty.shape[1]

    def where(self, kept: np.ndarray) -> Frontier:
        """Some of the occupied nodes, and none of the empty ones."""
        part = None if self.share_left is None else self.share_left[kept]
        nodes, start, stop = self.nodes[:, kept], self.start[kept], self.stop[kept]
        none = self.empty[:, :0]
        return replace(self, nodes=nodes, start=start, stop=stop, empty=none, share_left=part)

    def children(
        self,
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], Int[np.ndarray, " k"], Any]:
        """Its occupied children: whose, digit, start, stop."""
        return self.records.split(self.level, self.nodes, self.start, self.stop, self.ends)

    def all(self) -> list[tuple[int, Keys]]:
        """Every node of it, occupied or empty: (level, keys)."""
        return [(self.level, self.nodes), (self.level, self.empty)]

    def next_level(
        self,
        passed: Bool[np.ndarray, " n"],
        spawning: Int[np.ndarray, " k"],
        discounted: Callable[[Frontier], tuple[Frontier, tuple]] | None = None,
    ) -> tuple[Frontier, list[tuple[int, Keys]]]:
        """The next level, below the nodes that passed and some of the empty ones.

        And the nodes that were not, or cannot be, split: (level, keys). `discounted` takes records off
        the nodes that passed, and returns them with their occupied children.
        """
        some = self.where(passed)
        some, children = discounted(some) if discounted else (some, some.children())
        front, ended = some._refined(children, self.empty[:, spawning])
        stays = np.ones(self.zeros, bool)
        stays[spawning] = False
        stopped = [(self.level, self.nodes[:, ~passed]), (self.level, self.empty[:, stays])]
        return front, stopped + ended

    def _refined(
        self, occupied: tuple, spawning: Keys
    ) -> tuple[Frontier, list[tuple[int, Keys]]]:
        """The children of all its nodes, some of which are occupied, and of some empty nodes."""
        tree, level = self.records.hierarchy, self.level
        whose, digit, start, stop = occupied
        many = tree.children(level, self.nodes)
        first = np.cumsum(many) - many
        filled = np.zeros(int(many.sum()), bool)
        filled[first[whose] + digit] = True
        parents = np.concatenate(
            [
                np.repeat(self.nodes, many, axis=1)[:, ~filled],
                np.repeat(spawning, fresh := tree.children(level, spawning), axis=1),
            ],
            axis=1,
        )
        digits = np.concatenate([child_digits(many)[~filled], child_digits(fresh)])
        empty = tree.digits.child(level, parents, digits)
        nodes = tree.digits.child(level, self.nodes[:, whose], digit)
        open_, bare = tree.children(level + 1, nodes) > 0, tree.children(level + 1, empty) > 0
        last = tree.digits.depth  # what cannot be split is one value
        ended = [(last, nodes[:, ~open_]), (last, empty[:, ~bare])]
        part = None if self.share_left is None else self.share_left[whose][open_]
        front = replace(
            self,
            level=level + 1,
            nodes=nodes[:, open_],
            start=start[open_],
            stop=stop[open_],
            empty=empty[:, bare],
            share_left=part,
        )
        return front, ended


def _changes(keys: Keys) -> np.ndarray:
    if not keys.shape[1]:
        return np.zeros(0, bool)
    return np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))


def _ascending(keys: Keys) -> bool:
    if len(keys) == 1:
        return bool((keys[0, 1:] >= keys[0, :-1]).all())
    return bool(_in_order(keys[0], keys[1]))


@njit(cache=True, nogil=True)
def _in_order(high, low):
    for i in range(1, high.size):
        if high[i] < high[i - 1] or (high[i] == high[i - 1] and low[i] < low[i - 1]):
            return False
    return True


def _sorted(keys: Keys) -> Keys:
    """The keys, which nobody else holds, put in order where they are."""
    if len(keys) == 1:
        keys[0].sort()
        return sealed(keys)
    short = keys[1] == 0  # most strings: a plain sort is ten times as fast as one of pairs
    first, pairs = keys[0, short], keys[:, ~short]
    first.sort()
    by = np.lexsort((pairs[1], pairs[0]))
    _merge(first, pairs[0][by], pairs[1][by], keys)
    return sealed(keys)


@njit(cache=True, nogil=True)
def _merge(first, high, low, keys):
    """Sorted first words with a second word of 0, and sorted pairs that have another."""
    i = 0
    for j in range(high.size + 1):
        while i < first.size and (j == high.size or first[i] <= high[j]):
            keys[0, i + j], keys[1, i + j] = first[i], 0
            i += 1
        if j < high.size:
            keys[0, i + j], keys[1, i + j] = high[j], low[j]


@njit(cache=True, nogil=True)
def _split(words, ends, lows, start, stop, width, radix, out):
    k, weighted = 0, ends.size > 0
    for i in range(start.size):
        at, last = start[i], stop[i]
        if at >= last:
            continue
        j, end = at, last  # of keys
        if weighted:
            j = np.searchsorted(ends, at, side="right")
            end = np.searchsorted(ends, last - 1, side="right") + 1
        while j < end:
            digit = (words[j] - lows[i]) // width
            after = end
            if digit + np.uint64(1) < radix:
                bound, step, below = lows[i] + (digit + np.uint64(1)) * width, 1, j + 1
                after = below
                while after < end and words[after] < bound:
                    below = after + 1
                    after += step
                    step *= 2
                after = min(after, end)
                while below < after:
                    middle = (below + after) // 2
                    if words[middle] < bound:
                        below = middle + 1
                    else:
                        after = middle
            to = last
            if after < end:
                to = ends[after - 1] if weighted else after
            out[0, k], out[1, k], out[2, k], out[3, k] = i, digit, at, to
            k += 1
            at, j = to, after
    return k
