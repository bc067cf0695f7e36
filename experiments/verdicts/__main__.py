"""Command: `python -m experiments.verdicts PAPER [RESULTS]`; it brings docs/verdicts.md up to date."""

import sys

from experiments.verdicts import PAGE, with_counts, write

if __name__ == "__main__":
    print(write(*sys.argv[1:3]))
    PAGE.write_text(with_counts(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
