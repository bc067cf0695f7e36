"""GraphDegrees: how many neighbours each node of a graph has, from its edges."""

from __future__ import annotations

import numpy as np

from workbench.compiled import pl
from workbench.data import Bound, SparseTable
from workbench.datasets.delimited import read_lines
from workbench.datasets.own_file import OwnFile
from workbench.spaces import Domain
from workbench.value import Int, parameter, value


@value
class GraphDegrees(OwnFile):
    """The degree of every node of a graph of your own, whose edges are listed in a file.

    A line is an edge: two node ids, whole numbers, with space between; lines that begin with #
    are passed over. The graph is undirected: an edge counts once, however often and in whatever
    direction it is listed; an edge from a node to itself is none. One unit is one edge: it
    moves two degrees by one each.

    How many nodes there are is public, and so is who they are. Ids are 0 … nodes − 1, and those
    without an edge have degree 0. With `listed` they are the `nodes` different ids that occur,
    in ascending order: only where the list of nodes is public, because an edge that brought a
    node would betray itself by the place of all that follow. Without `nodes` they are as many as
    occur: who gives a path alone says that the file's nodes are public.
    """

    path: str
    nodes: int = parameter(
        None, 1, 2**31, integer=True, doc="how many there are, which is public"
    )
    listed: bool = parameter(False, choices=(False, True), doc="nodes are the ids that occur")
    truth_public: bool = parameter(False, choices=(False, True), doc="degrees may be shown")

    @property
    def domain(self) -> Domain:
        """Nodes, in the order of their ids."""
        return Domain(("node",), (self.nodes or len(np.unique(self._edges())),))

    def load(self) -> SparseTable:
        """The table; a line that is not two ids of nodes is a ValueError."""
        ends = self._edges()
        nodes = self.nodes
        if self.listed or nodes is None:
            ids, ends = np.unique(ends, return_inverse=True)
            if nodes not in (None, len(ids)):
                path = self._find()
                raise ValueError(f"{path} has edges of {len(ids)} nodes; need {nodes}")
            nodes = len(ids)
        low, high = np.sort(ends.reshape(-1, 2), axis=1).T
        pairs = np.unique((low * nodes + high)[low < high])
        ends = np.concatenate([pairs // nodes, pairs % nodes])
        domain = Domain(("node",), (nodes,))
        return SparseTable.from_keys(
            domain, ends, np.ones_like(ends), Bound(2, 1), truth_public=self.truth_public
        )

    def _edges(self) -> Int[np.ndarray, "edges 2"]:
        """The pairs of ids as they stand in the file."""
        path = self._find()
        edges = [np.empty((0, 2), np.int64)]
        any_ids = self.listed or self.nodes is None
        need = "two node ids, whole numbers"
        if not any_ids:
            need += f" from 0 to {self.nodes - 1}"
        for block in read_lines(path, notes="^#"):
            ids = block.frame["line"].str.extract_groups(r"^(\d+)\s+(\d+)$").struct.unnest()
            ids = ids.select(pl.all().cast(pl.Int64, strict=False))
            bad = ids["1"].is_null() | ids["2"].is_null()
            if not any_ids:
                bad |= ids.max_horizontal() >= self.nodes
            block.refuse(bad, "line", need)
            edges.append(ids.to_numpy())
        ends = np.concatenate(edges)
        if not len(ends) and self.nodes is None:
            raise ValueError(f"{path} lists no edge: say how many nodes there are")
        return ends
