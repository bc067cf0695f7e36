"""From a sweep to rows. This room knows protocols; it imports no mechanism and no dataset.

A trial's `repr` is its whole configuration: paste it and it runs. Its random stream is seeded from
that text, so trials may be added, removed or reordered freely. Its rows are kept under a name made of
that text, the sources of every module that decides them, the content of the data, and the versions
of numpy, scipy and the packages that those modules import.
"""

from workbench.experiment.columns import mechanism_columns as mechanism_columns
from workbench.experiment.running import run as run
from workbench.experiment.running import watched as watched
from workbench.experiment.sweep import Dataset as Dataset
from workbench.experiment.sweep import Estimator as Estimator
from workbench.experiment.sweep import Metric as Metric
from workbench.experiment.sweep import Sweep as Sweep
from workbench.experiment.sweep import Trial as Trial
from workbench.experiment.sweep import first_available as first_available
