"""Command that writes the verdicts and pictures of a paper, and the README's list of papers: `python -m
experiments.verdicts PAPER [RESULTS]`.
"""

import sys

from experiments.verdicts import README, with_table, write, write_pictures

if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(write(*sys.argv[1:3]))
        write_pictures(*sys.argv[1:3])
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
