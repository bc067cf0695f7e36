"""Queries that count the records in nodes (parts) of a tree of values, and the use of other workloads on such
a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from workbench.queries.ranges import Boxes, Workload, digest_text
from workbench.queries.recipes import RandomBoxes
from workbench.spaces import Hierarchy, Keys, Prefixes, child_digits
from workbench.value import Float, Int, parameter, value

_MAX_NODES = 2**22


@dataclass(frozen=True, eq=False, repr=False)
class Nodes:
    """Queries on a tree, which divides the space of values into smaller and smaller parts (nodes). Each query
    counts the records in one node.

    Parameters
    ----------
    levels : int64[queries]
        Level of each node. The root has level 0.
    keys : uint64[words, queries]
        Lowest key among the values in each node. The key is a number that identifies a value in the tree.

    Examples
    --------
    >>> from workbench.spaces import Prefixes
    >>> len(Nodes.of(Prefixes("ab", 3), ["a", "ab", ""]))
    3
    """

    levels: Int[np.ndarray, " queries"]
    keys: Keys

    @classmethod
    def of(cls, tree: Prefixes, texts: Sequence[str]) -> Nodes:
        """Create one query per text. The query counts the strings that begin with this text.

        Raise a ValueError if no string of the tree can begin with one of the texts.
        """
        keys, why = tree.encode(texts)
        if why.any():
            i = int((why > 0).argmax())
            raise ValueError(f"{texts[i]!r} is not in {tree!r}: {tree.reasons[why[i] - 1]}")
        return cls(np.array([len(text) for text in texts], np.int64), keys)

    def on(self, domain: Hierarchy) -> Nodes:
        """Return the queries unchanged. Raise a ValueError if a node of a query is not in the tree `domain`."""
        digits = getattr(domain, "digits", None)
        if (
            digits is None
            or len(self.keys) != digits.word_count
            or not ((0 <= self.levels) & (self.levels <= digits.depth)).all()
            or not digits.contains(self.keys)
            or (digits.ancestors(self.levels, self.keys) != self.keys).any()
        ):
            raise ValueError(f"these nodes do not belong to {domain!r}")
        return self

    def __len__(self) -> int:
        return len(self.levels)

    def __repr__(self) -> str:
        return digest_text(self, self.levels, self.keys)

    def cells(self, domain: Hierarchy) -> Float[np.ndarray, " queries"]:
        """Return, for each query, how many keys its node contains. A key identifies a value in the tree."""
        radices = domain.digits.radices
        return np.array([1.0 * prod(radices[i:]) for i in range(len(radices) + 1)])[self.levels]


@value
class Level:
    """Recipe with one query for each node on one level of a tree. A node is a part of the space of values,
    for example a square. Its query counts the records in this part. A level consists of all nodes with the
    same distance from the root. The level may have at most 2²² nodes.
    """

    level: int = parameter(
        low=0, high=128, integer=True, doc="level of the tree, with 0 for the root"
    )

    def on(self, domain: Hierarchy) -> Nodes:
        """Return one query for each node on this level of the given tree.

        Parameters
        ----------
        domain : Hierarchy
            Tree that divides the space of values: a `Quadtree`, `Prefixes`, `Taxonomy` or `Attributes`.

        Returns
        -------
        Nodes
            Queries, in the order of the nodes' keys.

        Raises
        ------
        ValueError
            If the tree does not have this level, or if the level has more than 2²² nodes.
        """
        if self.level > domain.digits.depth:
            raise ValueError(f"{self!r} is not a level of {domain!r}")
        nodes = domain.digits.root()
        for level in range(self.level):
            children = domain.children(level, nodes)
            if children.sum() > _MAX_NODES:
                raise ValueError(f"{domain!r} has more than {_MAX_NODES} nodes at {self!r}")
            parents = np.repeat(nodes, children, axis=1)
            nodes = domain.digits.child(level, parents, child_digits(children))
        return Nodes(np.full(nodes.shape[1], self.level), nodes)


def queries_on_hierarchy(workload: Any, tree: Hierarchy) -> Workload:
    """Return the queries of a workload (list of queries) for a tree that divides a space of values. Raise a
    ValueError if the queries do not fit this tree.
    """
    if isinstance(workload, Boxes | RandomBoxes) and not hasattr(tree, "boxes"):
        raise ValueError(f"{workload!r} cannot be asked over {tree!r}. Ask Nodes instead")
    return workload.on(tree)


class KeyRuns(NamedTuple):
    """Ranges of keys (numbers of values in a tree) that together make up queries. For each range, the arrays
    contain its lowest key, its highest key, and the number of its query.
    """

    queries: Int[np.ndarray, " runs"]
    lowest: Keys
    highest: Keys


def key_runs(workload: Any, tree: Hierarchy) -> KeyRuns:
    """Return the queries of a workload (list of queries) as ranges of keys. The key is a number that
    identifies a value in the tree. Raise a ValueError if the queries cannot be written as ranges of keys.
    """
    if isinstance(workload, Nodes):
        highest = tree.digits.highest_keys(workload.levels, workload.keys)
        return KeyRuns(np.arange(len(workload)), workload.keys, highest)
    if tree.size >= 2**63 or isinstance(workload, Boxes):
        raise ValueError(f"{workload!r} cannot be asked over {tree!r}. Ask Nodes instead")
    queries, ranges = workload.intervals(tree)
    runs = np.flatnonzero(ranges.hi > ranges.lo)
    lowest = ranges.lo[runs].astype(np.uint64)[None]
    highest = (ranges.hi[runs] - 1).astype(np.uint64)[None]
    return KeyRuns(queries[runs], lowest, highest)
