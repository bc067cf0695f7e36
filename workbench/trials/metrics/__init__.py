"""Metrics: values that take (truth, estimate) and return a number for the distance between them.

Both sides answer the same workload. An error against the truth is an exact function of private data,
so metrics refuse unless the table is public or says `truth_public`.
"""

from workbench.trials.metrics.answers import (
    HeldCells,
    MeanAbsoluteError,
    MeanSignedError,
    MeanSquaredError,
    MedianRelativeError,
    RecoveredFraction,
    SquaredError,
    coverage,
    match_strings,
    recovered_by_frequency,
    rmse,
)
from workbench.trials.metrics.contributions import (
    ContextShare,
    KLDivergence,
    MeanSquaredCountError,
    SampledSize,
    TopPrecision,
    breakdown,
    error_parts,
    sampling_error,
    weighted_counts,
)
from workbench.trials.metrics.distances import CommuteDistances, EarthMover, great_circle
