"""Command: `python -m experiments.verdicts PAPER [RESULTS]`, which brings the README up to date too."""

import sys

from experiments.verdicts import README, in_readme, write

if __name__ == "__main__":
    print(write(*sys.argv[1:3]))
    README.write_text(in_readme(README.read_text(encoding="utf-8")), encoding="utf-8")
