"""Experiments with mechanisms. A trial is one run of a mechanism on a dataset with one seed. A sweep is a
plan of many trials. The function `run` runs all trials of a sweep and returns a table of results.

The text of a trial (its `repr`) contains its whole configuration. You can paste this text into Python to
create the same trial. The text is also the seed of the trial's random numbers. So the results of a trial do
not change if you add, remove or reorder other trials.

The function `run` stores the results of a trial in a folder, and does not run the trial again unless
something changed. To notice changes, the function compares a hash of four things: the trial's text, the data,
the source code that affects the results, and the versions of the packages that this code imports, for example
numpy.
"""

from workbench.trials.running import run, watched
from workbench.trials.sweep import Dataset, Sweep, Trial, first_available, mechanism_columns
