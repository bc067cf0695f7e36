"""Command: `python -m experiments.verdicts PAPER [RESULTS]`; README and docs/verdicts.md follow."""

import sys

from experiments.verdicts import PAGE, README, with_counts, with_sums, write

if __name__ == "__main__":
    print(write(*sys.argv[1:3]))
    PAGE.write_text(with_counts(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    README.write_text(with_sums(README.read_text(encoding="utf-8")), encoding="utf-8")
