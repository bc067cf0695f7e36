"""Metrics: objects that take (truth, estimate) and return a number that measures the error of the estimate.

The table (the truth) and the estimate answer the same workload. The error depends on private data and has
no noise, so metrics raise an error unless the table is public or is marked as `truth_public`.
"""

from workbench.trials.metrics.answers import (
    HeldCells,
    MeanAbsoluteError,
    MeanSignedError,
    MeanSquaredError,
    MedianRelativeError,
    RecoveredFraction,
    SquaredError,
    match_strings,
    recovered_by_frequency,
    rmse,
)
from workbench.trials.metrics.contributions import (
    ContextShare,
    KLDivergence,
    MeanSquaredCountError,
    TopPrecision,
    error_parts,
    sampling_error,
    weighted_counts,
)
from workbench.trials.metrics.distances import CommuteDistances, EarthMover, great_circle
