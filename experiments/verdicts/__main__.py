"""Command: `python -m experiments.verdicts PAPER [RESULTS]`; README and docs/verdicts.md follow."""

import sys

from experiments.verdicts import PAGE, README, with_tables, write

if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(write(*sys.argv[1:3]))
    for page in (PAGE, README):
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
