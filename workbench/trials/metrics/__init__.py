"""Metrics. A metric is called with the true data and a released estimate (for example noisy counts), and
returns a number, for example the error of the estimate.

Most metrics answer the same queries from the true data and from the estimate, and compare these answers. The
exact error of an estimate reveals private data. So a metric raises an exception if the true data are neither
public nor marked as `truth_public`.
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
