"""Two threads beside one, in one run and in turns: seconds on the clock, not of processors.

What others do on the machine meanwhile takes from two threads more than from one: run it alone.
"""

from __future__ import annotations

from functools import partial
from statistics import median

import numpy as np

from experiments.benchmarks._timing import compared, once, sparse_table
from workbench import DP, Ranges, noise
from workbench.compiled import limited_threads
from workbench.datasets import InteractionsTwin
from workbench.inference import tree_least_squares
from workbench.mechanisms import HPA, SRA, HighPassFilter, PrioritySampling
from workbench.queries import Dyadic

THREADS = 2
REPEAT = 7


def main():
    """Seconds on the clock."""
    large = sparse_table(10**7, 10**14)
    small = sparse_table(10**6, 10**12)
    data = InteractionsTwin.netflix().slice(47_789).load()
    noisy = np.random.default_rng(0).normal(size=2**25 - 1)
    values = np.zeros(10**7, np.int64)
    lo = np.random.default_rng(0).integers(0, 10**12 - 10**6, 10**6)
    ranges = Ranges(lo, lo + 10**6)
    calls = {
        "filter, n = 10⁷, ε = 0.1": (partial(HighPassFilter(DP(0.1), size=10**7), large), 1.5),
        "filter, n = 10⁷, ε = 1": (partial(HighPassFilter(DP(1.0), size=10**7), large), 1.5),
        "priority sampling, n = 10⁷": (partial(PrioritySampling(DP(1.0), 10**7), large), None),
        "dyadic filter, n = 10⁶": (
            partial(HighPassFilter(DP(1.0), size=10**6, transform=Dyadic()), small),
            None,
        ),
        "dense noise, 10⁷ values": (partial(noise.geometric, values, l1=1, epsilon=0.1), None),
        f"SRA, {len(data):,} records": (partial(SRA(DP(1.0), 10), data), 1.4),
        f"HPA, {len(data):,} records": (partial(HPA(DP(1.0), 10, 1), data), None),
        "answers to 10⁶ ranges, n = 10⁶": (partial(small.answer, ranges), None),
        "consistency of a tree over 2²⁴ leaves": (partial(tree_least_squares, noisy), 1.4),
    }
    return [_row(what, *call) for what, call in calls.items()]


def _row(what: str, call, least: float | None) -> dict:
    seconds: dict[int, list[float]] = {1: [], THREADS: []}
    for _ in range(REPEAT + 1):
        for threads, times in seconds.items():
            with limited_threads(threads):
                times.append(once(call)[0])
    one, several = (median(times[1:]) for times in seconds.values())
    return compared(f"{what}, {THREADS} threads", several, one, "one thread", least)
