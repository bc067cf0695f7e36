"""Command: `python -m experiments.verdicts PAPER [RESULTS]`."""

import sys

from experiments.verdicts import write

if __name__ == "__main__":
    print(write(*sys.argv[1:3]))
