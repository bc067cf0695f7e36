"""GraphDegrees and SnapDegrees: how many neighbours each node of a graph has, from its edges."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from jaxtyping import Int

from workbench.datasets.delimited import lines
from workbench.datasets.published import File
from workbench.domain import Domain
from workbench.table import Bound, SparseTable
from workbench.value import parameter, value

# Nodes and sha256, of the compressed file and of its contents.
SNAP = {
    "ca-GrQc": (
        5242,
        "1b03c9b09c49b1074577101b49df341f7db8013b5e870ddd673542b49182e770",
        "f8ce6e931e068b878044b783da99ef603f566c87bcbce7991cd53720879f1660",
    ),
    "ca-HepTh": (
        9877,
        "60e5849959591635dae296c9bcbc88c2a12201e3d2c5a261dc2c3575b4e37ce2",
        "8ce8a9aa75f0617d574a8109a6f8b189a9e38d214a6698ceaf25b2eecc873e90",
    ),
    "p2p-Gnutella08": (
        6301,
        "d4bf747a50982a6e35e3815f81024129231cd7f283444df3fac11a25817f9164",
        "fecc14ef3c36ac13210bf9618cec773d7354ec9b033fe716a3af3fb815049499",
    ),
}
FILES = {
    graph: File(
        "graphs", f"{graph}.txt", f"https://snap.stanford.edu/data/{graph}.txt.gz", known
    )
    for graph, (_, *known) in SNAP.items()
}


@value
class GraphDegrees:
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

    def files(self) -> tuple[File, ...]:
        """The list of edges."""
        return (File("", self.path, how="give its path"),)

    def load(self) -> SparseTable:
        """The table; a line that is not two ids of nodes is a ValueError."""
        ends, nodes = self._edges(), self.nodes
        if self.listed or nodes is None:
            ids, ends = np.unique(ends, return_inverse=True)
            if nodes not in (None, len(ids)):
                path = self.files()[0].find()
                raise ValueError(f"{path} has edges of {len(ids)} nodes; need {nodes}")
            nodes = len(ids)
        low, high = np.sort(ends.reshape(-1, 2), axis=1).T
        pairs = np.unique((low * nodes + high)[low < high])
        ends = np.concatenate([pairs // nodes, pairs % nodes])
        domain, ones = Domain(("node",), (nodes,)), np.ones_like(ends)
        return SparseTable.from_keys(
            domain, ends, ones, Bound(2, 1), truth_public=self.truth_public
        )

    def _edges(self) -> Int[np.ndarray, "edges 2"]:
        """The pairs of ids as they stand in the file."""
        import polars as pl

        path, edges = self.files()[0].find(), [np.empty((0, 2), np.int64)]
        free = self.listed or self.nodes is None
        need = "two node ids, whole numbers"
        need += "" if free else f" from 0 to {self.nodes - 1}"
        for block in lines(path, notes="^#"):
            ids = block.frame["line"].str.extract_groups(r"^(\d+)\s+(\d+)$").struct.unnest()
            ids = ids.select(pl.all().cast(pl.Int64, strict=False))
            high = ids.max_horizontal()
            bad = ids["1"].is_null() | ids["2"].is_null()
            block.refuse(bad if free else bad | (high >= self.nodes), "line", need)
            edges.append(ids.to_numpy())
        ends = np.concatenate(edges)
        if not len(ends) and self.nodes is None:
            raise ValueError(f"{path} lists no edge: say how many nodes there are")
        return ends


@value
class SnapDegrees:
    """Degrees in a graph of the Stanford collection: coauthors, or peers that share files.

    Nodes, edges, and the largest degree: ca-GrQc 5,242, 14,484, 81 (general relativity);
    ca-HepTh 9,877, 25,973, 65 (high energy physics, theory); p2p-Gnutella08 6,301, 20,777, 97
    (hosts on 8 August 2002). An edge that is listed in both directions counts once, and the 12
    and 25 authors said to write with themselves do not. A single node has nobody else: 1 of
    ca-GrQc, 2 of ca-HepTh. Which nodes there are is published with the graph and taken as
    public. One unit is one edge: it moves two degrees by one each.

    Terms: none stated; cite the collection. Source: Leskovec and Krevl, SNAP Datasets, 2014;
    Leskovec, Kleinberg, Faloutsos, ACM TKDD 2007.
    """

    cite: ClassVar[str] = "leskovec2014"
    truth_public: ClassVar[bool] = True

    graph: str = parameter("ca-GrQc", choices=tuple(SNAP))

    @property
    def domain(self) -> Domain:
        """Nodes, in the order of their ids."""
        return Domain(("node",), (SNAP[self.graph][0],))

    def files(self) -> tuple[File, ...]:
        """The lists of edges of all three graphs, as SNAP publishes them."""
        return tuple(FILES.values())

    def load(self) -> SparseTable:
        """The table; a graph of another number of nodes, or a bad line, is a ValueError."""
        path = str(FILES[self.graph].find())
        return GraphDegrees(path, self.domain.size, listed=True, truth_public=True).load()
