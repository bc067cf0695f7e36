"""The two-sided filter's shortcut from the system's randomness: time and memory a cell it touches.

A cell that it touches is a non-empty or a released one. θ follows from size = n. Priority sampling
of n cells takes turns with it. The counts are about 100 at ε = 0.1, as in the paper, so that θ lies
above most of them; and at ε = 1, where all pass.
"""

from __future__ import annotations

from functools import partial
from math import exp

from experiments.benchmarks._timing import (
    at_most,
    at_most_sorts,
    compared,
    median_seconds,
    peak_bytes,
    row,
    sparse_table,
)
from workbench import DP, Domain
from workbench.mechanisms import HighPassFilter, PrioritySampling
from workbench.value import power_of_ten

SIZES = ((10**6, 10**12, 9), (10**7, 10**14, 7))  # n, m, repetitions
SORTS = 1 / 3  # for 10⁶ cells
BYTES = 40
TIMES = 3
ALIKE = 1.25


def main():
    """Time and memory."""
    rows = []
    for n, m, repeat in SIZES:
        table = sparse_table(n, m)
        for epsilon in (0.1, 1.0):
            where = f"n = {power_of_ten(n)}, m = {power_of_ten(m)}, ε = {epsilon:g}"
            mechanism = HighPassFilter(DP(epsilon), size=n)
            sampling = PrioritySampling(DP(epsilon), size=n)
            cells = len(table) + len(mechanism(table).estimate)
            filtered, sampled = median_seconds(
                partial(mechanism, table), partial(sampling, table), repeat=repeat
            )
            nanoseconds = filtered / cells * 1e9
            extra = extra_bytes(mechanism, table) / cells
            ratio = sampled / filtered
            rows += [
                row(
                    f"filter, {where}: time a cell",
                    f"{nanoseconds:.3g} ns",
                    **at_most_sorts(filtered / cells * 1e6, SORTS),
                ),
                row(
                    f"filter, {where}: extra memory a cell",
                    f"{extra:.3g} bytes",
                    **at_most(extra, BYTES, " bytes"),
                ),
                compared(
                    f"priority sampling beside the filter, {where}",
                    *(sampled, filtered, "filter"),
                    ratio=ratio,
                    **at_most(ratio, TIMES, "×"),
                ),
            ]
    return [*rows, domains()]


def extra_bytes(mechanism, table) -> int:
    """Bytes that a call holds at its peak beyond its input and its output."""
    peak, release = peak_bytes(partial(mechanism, table))
    return peak - release.estimate.keys.nbytes - release.estimate.values.nbytes


def domains(n: int = 10**6, epsilon: float = 0.1) -> dict:
    """A domain 10⁴ times as large, with θ raised so that as many empty cells pass."""
    raised = 92
    small = 10**10
    large = round(small * exp(epsilon * raised))
    theta = HighPassFilter(DP(epsilon), size=n).threshold(Domain(("x",), (small,)), 1.0)
    calls = []
    for m, cut in ((large, theta + raised), (small, theta)):
        table = sparse_table(n, m, mean=10_000)
        calls.append(partial(HighPassFilter(DP(epsilon), cut), table))
    cells = [n + len(call().estimate) for call in calls]
    seconds = median_seconds(*calls, repeat=15)
    ours, peer = (1e9 * time / count for time, count in zip(seconds, cells, strict=True))
    return row(
        f"filter, n = {power_of_ten(n)}, as many released: time a cell at m = {large:.2g}",
        f"{ours:.3g} ns",
        f"m = {small:.0e}: {peer:.3g} ns",
        ours / peer,
        **at_most(ours / peer, ALIKE, "×"),
    )
