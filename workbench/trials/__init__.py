"""Trials: run the combinations of a sweep and collect rows of results. The package imports no mechanism and
no dataset.

The `repr` of a trial is its whole configuration: you can paste it into Python and run it. This text also
seeds the random numbers of the trial, so you may add, remove or reorder trials without changing the results
of others. The rows of a trial are stored under a hash of this text, the source code of all modules that
affect them, the content of the data, and the versions of numpy, scipy and other packages that these modules
import.
"""

from workbench.trials.running import run as run
from workbench.trials.running import watched as watched
from workbench.trials.sweep import Dataset as Dataset
from workbench.trials.sweep import Estimator as Estimator
from workbench.trials.sweep import Metric as Metric
from workbench.trials.sweep import Sweep as Sweep
from workbench.trials.sweep import Trial as Trial
from workbench.trials.sweep import first_available as first_available
from workbench.trials.sweep import mechanism_columns as mechanism_columns
