"""Command: `python -m experiments.verdicts PAPER [RESULTS]`."""

import sys

from experiments.verdicts import write

print(write(*sys.argv[1:3]))
