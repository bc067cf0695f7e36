"""How far a release is from the truth: values that take (truth, estimate) and give a number.

Both sides answer the same workload. An error against the truth is an exact function of private data,
so metrics refuse unless the table is public or says `truth_public`.
"""

from workbench.metrics.answers import HeldCells as HeldCells
from workbench.metrics.answers import MeanAbsoluteError as MeanAbsoluteError
from workbench.metrics.answers import MeanSignedError as MeanSignedError
from workbench.metrics.answers import MeanSquaredError as MeanSquaredError
from workbench.metrics.answers import MedianRelativeError as MedianRelativeError
from workbench.metrics.answers import SquaredError as SquaredError
from workbench.metrics.answers import coverage as coverage
from workbench.metrics.answers import rmse as rmse
from workbench.metrics.breakdown import breakdown as breakdown
from workbench.metrics.commute_distances import CommuteDistances as CommuteDistances
from workbench.metrics.commute_distances import great_circle as great_circle
from workbench.metrics.counts import ContextShare as ContextShare
from workbench.metrics.counts import KLDivergence as KLDivergence
from workbench.metrics.counts import MeanSquaredCountError as MeanSquaredCountError
from workbench.metrics.counts import SampledSize as SampledSize
from workbench.metrics.counts import TopPrecision as TopPrecision
from workbench.metrics.earth_mover import EarthMover as EarthMover
from workbench.metrics.sampling import sampling_error as sampling_error
from workbench.metrics.sampling import weighted_counts as weighted_counts
from workbench.metrics.strings import RecoveredFraction as RecoveredFraction
from workbench.metrics.strings import match_strings as match_strings
from workbench.metrics.strings import recovered_by_frequency as recovered_by_frequency
