"""Two threads beside one, in one run and in turns: seconds on the clock, not of processors.

What others do on the machine meanwhile takes from two threads more than from one: run it alone.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from time import perf_counter

import numpy as np

from experiments.benchmarks import _timing as timing
from experiments.benchmarks._timing import at_least, format_seconds, row
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
    large = timing.sparse_table(10**7, 10**14)
    small = timing.sparse_table(10**6, 10**12)
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
    return timing.to_frame([_row(what, *call) for what, call in calls.items()])


def _row(what: str, call, least: float | None) -> dict:
    seconds: dict[int, list[float]] = {1: [], THREADS: []}
    for _ in range(REPEAT + 1):
        for threads, times in seconds.items():
            with limited_threads(threads):
                start = perf_counter()
                call()
                times.append(perf_counter() - start)
    one, several = (median(times[1:]) for times in seconds.values())
    ratio = one / several
    limit = {"ratio": ratio} if least is None else at_least(ratio, least)
    text = f"one thread {format_seconds(one)}"
    return row(f"{what}, {THREADS} threads", format_seconds(several), text, **limit)


if __name__ == "__main__":
    timing.print_results(main)
