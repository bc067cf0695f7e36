"""Dyadic summaries: time and memory a node, against the full noisy tree, and answers to ranges.

A node is one that some non-empty cell lies below. The full tree is the geometric dyadic table, noise on
all 2m − 1 nodes, with the same fast exact sampler; the gain lies where that table is large and the
summary small, so the density and the size of the summary are varied.
"""

from __future__ import annotations

from functools import partial
from math import log2

from experiments.benchmarks import _timing as timing
from experiments.benchmarks._timing import (
    at_most,
    at_most_sorts,
    beside,
    format_seconds,
    row,
    timed,
)
from experiments.benchmarks.filter import extra_bytes
from workbench import DP, Dyadic, Haar, RandomRanges
from workbench.mechanisms import GeometricHistogram, PrioritySampling

SORTS = 0.8  # for 10⁶ nodes
BYTES = 60
ANSWERS = 20  # sorts
N = 10**6
M = 2**40
DENSE = 2**24
DENSITIES = (0.1, 0.01, 0.001)


def main():
    """Time and memory."""
    rows = []
    table = timing.sparse_table(N, M)
    nodes = len(Dyadic().on(table.domain).forward(table.keys, table.counts)[0])
    for epsilon in (0.1, 1.0):
        theta = round(3 * (log2(M) + 1) / epsilon)
        mechanism = PrioritySampling(DP(epsilon), N, theta, transform=Dyadic())
        call = partial(mechanism, table)
        what = f"dyadic filter-priority, n = 10⁶, m = 2⁴⁰, ε = {epsilon:g}, θ = {theta}"
        (seconds,) = timing.median_seconds(call, repeat=5)
        nanoseconds = seconds / nodes * 1e9
        peer = f"{nodes:,} nodes, {format_seconds(seconds)}"
        limit = at_most_sorts(seconds / nodes * 1e6, SORTS)
        rows.append(row(f"{what}: time a node", f"{nanoseconds:.3g} ns", peer, **limit))
        extra = extra_bytes(mechanism, table) / nodes
        limit = at_most(extra, BYTES, " bytes")
        rows.append(row(f"{what}: extra memory a node", f"{extra:.3g} bytes", **limit))
    return [*rows, *full(), *answers(call().estimate)]


def full() -> list[dict]:
    """Against the full tree at m = 2²⁴, by density and by how many nodes are released."""
    rows = []
    for density in DENSITIES:
        table = timing.sparse_table(round(density * DENSE), DENSE)
        dense = partial(GeometricHistogram(DP(0.1), transform=Dyadic()), table)
        for size in (len(table), len(table) // 100):
            sample = partial(PrioritySampling(DP(0.1), size, 750, transform=Dyadic()), table)
            what = f"dyadic filter-priority, m = 2²⁴, density {density:g}, {size:,} nodes"
            shown = "to be shown (paper 2–4×)"
            rows.append(beside(what, sample, dense, "full noisy tree", limit=shown))
    return rows


def answers(tree) -> list[dict]:
    """10⁵ ranges from a released tree of 10⁶ nodes, and from as many Haar coefficients."""
    table = timing.sparse_table(N, M)
    haar = PrioritySampling(DP(1.0), N, transform=Haar())(table).estimate
    workload = RandomRanges(M // 1000 + 7, 10**5).on(table.domain)
    named = {"dyadic nodes": tree, "Haar coefficients": haar}
    return [
        timed(f"10⁵ ranges from {len(x):,} {name}", partial(x.answer, workload), ANSWERS)
        for name, x in named.items()
    ]
