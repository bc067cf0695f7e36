"""The two-sided filter's shortcut from the system's randomness: time and memory a cell it touches.

A cell that it touches is a non-empty or a released one. θ follows from size = n. Priority sampling
of n cells takes turns with it. The counts are about 100 at ε = 0.1, as in the paper, so that θ lies
above most of them; and at ε = 1, where all pass.
"""

from __future__ import annotations

import tracemalloc
from functools import partial
from math import exp

from experiments.benchmarks import _timing as timing
from workbench import DP, Domain
from workbench.mechanisms import HighPassFilter, PrioritySampling

SIZES = ((10**6, 10**12, 9), (10**7, 10**14, 7))  # n, m, repetitions
NANOSECONDS, BYTES, TIMES, ALIKE = 16, 40, 3, 1.25


def main():
    """Processor time and memory."""
    rows = []
    for n, m, repeat in SIZES:
        data = timing.sparse_table(n, m)
        for epsilon in (0.1, 1.0):
            where = f"n = {timing.power(n)}, m = {timing.power(m)}, ε = {epsilon:g}"
            ways = HighPassFilter(DP(epsilon), size=n), PrioritySampling(DP(epsilon), size=n)
            cells = len(data) + len(ways[0](data).estimate)
            calls = [partial(way, data) for way in ways]
            filtered, sampled = timing.median_seconds(*calls, repeat=repeat)
            each, extra = filtered / cells * 1e9, extra_bytes(ways[0], data) / cells
            rows += [
                {
                    "what": f"filter, {where}: time a cell",
                    "ours": f"{each:.3g} ns",
                    "limit": f"≤ {NANOSECONDS} ns",
                    "met": each <= NANOSECONDS,
                },
                {
                    "what": f"filter, {where}: extra memory a cell",
                    "ours": f"{extra:.3g} bytes",
                    "limit": f"≤ {BYTES} bytes",
                    "met": extra <= BYTES,
                },
                {
                    "what": f"priority sampling beside the filter, {where}",
                    "ours": timing.format_seconds(sampled),
                    "peer": f"filter {timing.seconds(filtered)}",
                    "ratio": sampled / filtered,
                    "limit": f"≤ {TIMES}×",
                    "met": sampled / filtered <= TIMES,
                },
            ]
    return timing.to_frame([*rows, domains()])


def extra_bytes(mechanism, data) -> int:
    """Bytes that a call holds at its peak beyond its input and its output."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    release = mechanism(data)
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return peak - release.estimate.keys.nbytes - release.estimate.values.nbytes


def domains(n: int = 10**6, epsilon: float = 0.1) -> dict:
    """A domain 10⁴ times as large, with θ raised so that as many empty cells pass."""
    raised, small = 92, 10**10
    large = round(small * exp(epsilon * raised))
    theta = HighPassFilter(DP(epsilon), size=n).threshold(Domain(("x",), (small,)), 1.0)
    calls = []
    for m, cut in ((large, theta + raised), (small, theta)):
        data = timing.sparse_table(n, m, mean=10_000)
        calls.append(partial(HighPassFilter(DP(epsilon), cut), data))
    cells = [n + len(call().estimate) for call in calls]
    spent = timing.median_seconds(*calls, repeat=15)
    ours, peer = (1e9 * s / c for s, c in zip(spent, cells, strict=True))
    return {
        "what": f"filter, n = {timing.power(n)}, as many released: time a cell at m = {large:.2g}",
        "ours": f"{ours:.3g} ns",
        "peer": f"m = {small:.0e}: {peer:.3g} ns",
        "ratio": ours / peer,
        "limit": f"≤ {ALIKE}×",
        "met": ours / peer <= ALIKE,
    }


if __name__ == "__main__":
    timing.print_results(main)
