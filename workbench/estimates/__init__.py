"""Estimates: the public numbers in a release, for example noisy counts or synthetic records. Each class of
estimates can answer certain workloads (lists of queries).
"""

import numpy as np

from workbench.estimates.histogram import HierarchicalSums, Histogram, ItemEdgeCounts, Partition
from workbench.estimates.leaves import Leaves, Microdata
from workbench.estimates.noisy_answers import DerivedAnswers, NoisyAnswers
from workbench.estimates.reports import BitReports, Reports
from workbench.estimates.selected import SelectedValues
from workbench.estimates.summary import Projection, Sketch, Summary, TransformedSummary
from workbench.noise.law import Law
from workbench.queries import Basis, Cells
from workbench.value import Int

ALL = (
    Summary, TransformedSummary, Sketch, Projection, Histogram, HierarchicalSums, ItemEdgeCounts,
    Leaves, Partition, NoisyAnswers, DerivedAnswers, Microdata, Reports, BitReports, SelectedValues,
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
    """Return a `Summary` of the cells that a mechanism released, with their noisy values. If the mechanism
    added noise to a transform of the table, for example to wavelet coefficients, return a `TransformedSummary`
    of the released coefficients. The argument `basis` determines which of the two is returned.
    """
    if isinstance(basis, Cells):
        return Summary(basis.domain, keys, values, law, theta, tau, sides)
    return TransformedSummary(
        basis.domain, keys, values, law, theta, tau, sides, transform=basis.transform
    )
