"""Trials: from a sweep to rows. This package knows protocols only, and imports no mechanism and no dataset.

A trial's `repr` is its whole configuration: paste it and it runs. Its random stream is seeded from
that text, so trials may be added, removed or reordered freely. Its rows are kept under a name made of
that text, the sources of every module that decides them, the content of the data, and the versions
of numpy, scipy and the packages that those modules import.
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
