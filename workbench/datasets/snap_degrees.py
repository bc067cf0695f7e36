"""SnapDegrees: degrees in graphs of the Stanford collection."""

from __future__ import annotations

from typing import ClassVar

from workbench.datasets._kinds import REAL_FILE
from workbench.datasets.graph_degrees import GraphDegrees
from workbench.datasets.readers.published import File
from workbench.domain import Domain
from workbench.table import SparseTable
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
        "graphs",
        f"{graph}.txt",
        f"https://snap.stanford.edu/data/{graph}.txt.gz",
        tuple(hashes),
    )
    for graph, (_, *hashes) in SNAP.items()
}


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

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "leskovec2014"
    truth_public: ClassVar[bool] = True

    graph: str = parameter("ca-GrQc", choices=tuple(SNAP), doc="which graph")

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
