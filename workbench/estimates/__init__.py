"""What a release holds; every estimate is public and answers the workloads it can."""

import numpy as np

from workbench.arrays import Int
from workbench.estimates.bit_reports import BitReports
from workbench.estimates.hierarchical_sums import HierarchicalSums
from workbench.estimates.histogram import Histogram
from workbench.estimates.item_edge_counts import ItemEdgeCounts
from workbench.estimates.law import Law
from workbench.estimates.leaves import Leaves
from workbench.estimates.microdata import Microdata
from workbench.estimates.noisy_answers import NoisyAnswers
from workbench.estimates.partition import Partition
from workbench.estimates.projection import Projection
from workbench.estimates.reports import Reports
from workbench.estimates.sketch import Sketch
from workbench.estimates.summary import Summary
from workbench.estimates.transformed_summary import TransformedSummary
from workbench.transform import Basis, Cells

ALL = (
    Summary, TransformedSummary, Sketch, Projection, Histogram, HierarchicalSums, ItemEdgeCounts,
    Leaves, Partition, NoisyAnswers, Microdata, Reports, BitReports,
)  # fmt: skip


def summary_in_basis(
    basis: Basis,
    keys: Int[np.ndarray, " n"],
    values: Int[np.ndarray, " n"],
    law: Law,
    theta: float = 0.0,
    tau: float = 0.0,
    sides: int = 2,
) -> Summary:
    """What was released of a noisy table in a basis: a summary of cells, or of its nodes."""
    if isinstance(basis, Cells):
        return Summary(basis.domain, keys, values, law, theta, tau, sides)
    return TransformedSummary(
        basis.domain, keys, values, law, theta, tau, sides, transform=basis.transform
    )
