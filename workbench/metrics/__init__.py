"""How far a release is from the truth: values that take (truth, estimate) and give a number.

Both sides answer the same workload. An error against the truth is an exact function of private data,
so metrics refuse unless the table is public or says `truth_public`.
"""

from workbench.metrics.answers import (
    HeldCells,
    MeanAbsoluteError,
    MeanSignedError,
    MeanSquaredError,
    MedianRelativeError,
    SquaredError,
    coverage,
    rmse,
)
from workbench.metrics.breakdown import breakdown, error_parts
from workbench.metrics.commute_distances import CommuteDistances, great_circle
from workbench.metrics.counts import (
    ContextShare,
    KLDivergence,
    MeanSquaredCountError,
    SampledSize,
    TopPrecision,
)
from workbench.metrics.earth_mover import EarthMover
from workbench.metrics.sampling import sampling_error, weighted_counts
from workbench.metrics.strings import RecoveredFraction, match_strings, recovered_by_frequency
