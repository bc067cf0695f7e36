"""Answering a hundred thousand queries from a released summary of ten million cells."""

from __future__ import annotations

from itertools import count

import numpy as np

from experiments.benchmarks import _timing as timing
from workbench import DP, RandomSubsets, Ranges, Subsets
from workbench.mechanisms import HighPassFilter

N = 5 * 10**6
M = 10**12
QUERIES = 10**5
SORTS = 20


def main():
    """Time of `release.answer`; random subsets are drawn anew each time."""
    release = HighPassFilter(DP(0.1), size=N)(timing.sparse_table(N, M, mean=10_000))
    rng = np.random.default_rng(0)
    seeds = count()
    ranges = Ranges(*np.sort(rng.integers(0, M, (2, QUERIES)), axis=0))
    members = np.sort(rng.integers(0, M, (QUERIES, 10)), axis=1)
    subsets = Subsets(np.arange(0, members.size + 1, 10), members.ravel())
    calls = {
        "ranges": lambda: release.answer(ranges),
        "ranges, with standard errors": lambda: release.answer(ranges, error=True),
        "sets of 10 cells": lambda: release.answer(subsets),
        "random subsets of 10⁶ cells": lambda: release.answer(
            RandomSubsets(10**6, QUERIES, next(seeds))
        ),
    }
    rows = []
    for name, call in calls.items():
        (seconds,) = timing.median_seconds(call, repeat=5)
        what = f"10⁵ {name}, from {len(release.estimate) / 1e6:.3g}·10⁶ cells"
        limit = timing.at_most_sorts(seconds, SORTS) if name == "ranges" else {}
        rows.append(timing.row(what, timing.format_seconds(seconds), **limit))
    return timing.to_frame(rows)


if __name__ == "__main__":
    timing.print_results(main)
