"""Nodes on one level of a tree that a mechanism may still divide, and the step to the next level. A node is a
part of the space of all values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from workbench.data.records import Children, Records
from workbench.spaces import Keys, child_digits
from workbench.value import Bool, Float, Int

LevelKeys = tuple[int, Keys]  # nodes of one level


class Step(NamedTuple):
    """Result of one step down a tree: the nodes of the next level that a mechanism may still divide, and the
    nodes that are not divided further.
    """

    frontier: Frontier
    ended: list[LevelKeys]


@dataclass(frozen=True, eq=False)
class Frontier:
    """Nodes on one level of a tree that a mechanism may still divide. A node is a part of the space of
    values, and may contain records or be empty.

    The field `nodes` contains the nodes with records, and the field `empty` contains the nodes without records.
    The records are numbered from 0 in the order of their keys. Records that the mechanism discarded on higher
    levels have no number. Node i of `nodes` contains the records with the numbers from `start[i]` to `stop[i]`
    − 1. Some mechanisms do not discard records, but give them a lower weight. For these mechanisms,
    `share_left` contains the weight, from 0 to 1, of the records in each node. `ends` is the result of the
    method `Records.ends`.
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
        """Return a frontier whose only node is the root of the tree. The root contains all records."""
        digits = records.hierarchy.digits
        start = np.zeros(1, np.int64)
        empty = np.empty((digits.word_count, 0), np.uint64)
        stop = start + records.total
        return cls(records, 0, digits.root(), start, stop, empty, records.ends())

    @property
    def counts(self) -> Int[np.ndarray, " n"]:
        """Number of records in each node of the field `nodes`. Discarded records are not counted."""
        return np.maximum(self.stop - self.start, 0)

    @property
    def empty_nodes(self) -> int:
        """Number of nodes without records."""
        return self.empty.shape[1]

    def where(self, rows: Bool[np.ndarray, " n"]) -> Frontier:
        """Return a frontier with some of the nodes in the field `nodes`, namely those for which the mask `rows`
        is true. The new frontier has no empty nodes.
        """
        return replace(
            self,
            nodes=self.nodes[:, rows],
            start=self.start[rows],
            stop=self.stop[rows],
            empty=self.empty[:, :0],
            share_left=None if self.share_left is None else self.share_left[rows],
        )

    def children(self) -> Children:
        """Return the children of all nodes. Children that contain no records are left out."""
        return self.records.occupied_children(
            self.level, self.nodes, self.start, self.stop, self.ends
        )

    def all_nodes(self) -> list[LevelKeys]:
        """Return all nodes in two groups: the nodes with records, and the empty nodes. Each group is a pair:
        the level of the nodes, and the nodes themselves.
        """
        return [(self.level, self.nodes), (self.level, self.empty)]

    def next_level(
        self,
        passed: Bool[np.ndarray, " n"],
        spawning: Int[np.ndarray, " k"],
        discount: Callable[[Frontier], tuple[Frontier, Children]] | None = None,
    ) -> Step:
        """Divide some of the nodes into their children. Return the children that a mechanism may divide next,
        and all nodes that are not divided further.

        The method divides two kinds of nodes. It divides a node in `nodes` if the mask `passed` is true for
        this node. It divides a node in `empty` if `spawning` contains the position of this node in `empty`. If
        you pass a function `discount`, the method calls `discount` with the divided nodes that have records.
        `discount` discards some records of these nodes, or lowers the weight of the records. Then `discount`
        returns the changed nodes, and those of their children that have records.
        """
        split = self.where(passed)
        if discount is None:
            children = split.children()
        else:
            split, children = discount(split)
        step = split._refined(children, self.empty[:, spawning])
        stays_empty = np.ones(self.empty_nodes, bool)
        stays_empty[spawning] = False
        stopped = [
            (self.level, self.nodes[:, ~passed]),
            (self.level, self.empty[:, stays_empty]),
        ]
        return Step(step.frontier, stopped + step.ended)

    def _refined(self, occupied: Children, spawning: Keys) -> Step:
        """Return the next level of the tree. It contains all children of the nodes with records, and all
        children of the empty nodes in `spawning`.

        `occupied` contains those children that have records. Children that cannot be divided further are
        returned separately.
        """
        tree = self.records.hierarchy
        level = self.level
        child_counts = tree.children(level, self.nodes)
        first_child = np.cumsum(child_counts) - child_counts
        is_empty = np.ones(int(child_counts.sum()), bool)
        is_empty[first_child[occupied.parents] + occupied.digits] = False
        spawned_counts = tree.children(level, spawning)
        parents = np.concatenate(
            [
                np.repeat(self.nodes, child_counts, axis=1)[:, is_empty],
                np.repeat(spawning, spawned_counts, axis=1),
            ],
            axis=1,
        )
        digits = np.concatenate(
            [child_digits(child_counts)[is_empty], child_digits(spawned_counts)]
        )
        empty = tree.digits.child(level, parents, digits)
        nodes = tree.digits.child(level, self.nodes[:, occupied.parents], occupied.digits)
        splits = tree.children(level + 1, nodes) > 0
        empty_splits = tree.children(level + 1, empty) > 0
        last = tree.digits.depth  # what cannot be split is one value
        ended = [(last, nodes[:, ~splits]), (last, empty[:, ~empty_splits])]
        frontier = replace(
            self,
            level=level + 1,
            nodes=nodes[:, splits],
            start=occupied.start[splits],
            stop=occupied.stop[splits],
            empty=empty[:, empty_splits],
            share_left=None
            if self.share_left is None
            else self.share_left[occupied.parents][splits],
        )
        return Step(frontier, ended)
