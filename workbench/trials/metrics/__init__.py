"""Metrics, which compare a release with the true data. A metric takes the true data and a released estimate
(for example noisy counts), and returns a number, for example a mean error.

Most metrics answer the same queries twice, from the true data and from the estimate, and compare the answers.
The exact error of an estimate reveals something about the true data. So a metric raises an exception if these
data are private (neither public nor created with `truth_public=True`).
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
