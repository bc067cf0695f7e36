"""The shortcut beside the laborious approach that it replaces, measured up to 10⁸ cells.

Both laborious ways put noise on every cell, then filter. The usual one is numpy's difference of two
geometric vectors, floating point, everything in memory; the fast one is our exact sampler over chunks
that stay in cache, in constant memory beyond what it releases. θ follows from size = n, ε = 0.1.
"""

from __future__ import annotations

from functools import partial
from math import exp, log

import numpy as np

from experiments.benchmarks import _timing as timing
from experiments.benchmarks._timing import format_seconds, power_of_ten, row
from experiments.benchmarks.noise import numpy_geometric
from workbench import DP, noise
from workbench.mechanisms import HighPassFilter
from workbench.noise import laws
from workbench.noise import source as bits

EPSILON = 0.1
SIZES = ((10**6, 9), (10**7, 5), (10**8, 3))  # m, repetitions
DENSITIES = (0.5, 0.1, 0.01, 0.001, 0.0001)
MOST = 10**7  # non-empty cells
CHUNK = 2**17  # cells: 1 MiB


def main():
    """Processor time of the three ways, and the density at which the fast dense one catches up."""
    rows = []
    for m, repeat in SIZES:
        ratios = {}
        for density in DENSITIES:
            n = round(density * m)
            if n > MOST:
                continue
            table = timing.sparse_table(n, m)
            mechanism = HighPassFilter(DP(EPSILON), size=n)
            theta = mechanism.threshold(table.domain, 1.0)
            laborious = (partial(dense, table, theta), partial(chunked, table, theta))
            cold = laborious if m > MOST else ()
            ours, usual, fast = timing.median_seconds(
                partial(mechanism, table), *laborious, repeat=repeat, cold=cold
            )
            ratios[density] = fast / ours
            what = f"filter, m = {power_of_ten(m)}, density {density:g}"
            for name, peer in (("usual", usual), ("fast", fast)):
                text = f"{name} {format_seconds(peer)}"
                rows.append(row(what, format_seconds(ours), text, peer / ours))
        what = f"m = {power_of_ten(m)}: the fast dense way catches up at density"
        rows.append(row(what, break_even(ratios)))
    return timing.to_frame(rows)


def dense(table, theta: float):
    """Keys and noisy values, as a first reading of the paper has it."""
    noisy = numpy_geometric(table.dense(), EPSILON)
    keys = np.flatnonzero(np.abs(noisy) >= theta)
    return keys, noisy[keys]


def chunked(table, theta: float):
    """The same from our exact sampler, a chunk of cells at a time, in the fastest way that we know."""
    law = laws.two_sided(noise.decay(1, EPSILON))
    source = bits.word_source(None)
    m = table.domain.size
    chunk = np.empty(CHUNK, np.int64)
    starts = range(0, m, CHUNK)
    ends = np.searchsorted(table.keys, [*starts, m])
    released = []
    for start, a, b in zip(starts, ends, ends[1:], strict=False):
        cells = chunk[: m - start]
        cells[:] = 0
        cells[table.keys[a:b] - start] = table.counts[a:b]
        law.add(cells, source)
        keys = np.flatnonzero((cells >= theta) | (cells <= -theta))
        released.append((keys + start, cells[keys]))
    return tuple(np.concatenate(parts) for parts in zip(*released, strict=True))


def break_even(ratios: dict[float, float]) -> str:
    """The density at which the ratio is 1: between two measured ones on log axes, else a bound."""
    points = sorted(ratios.items())
    for (a, above), (b, below) in zip(points, points[1:], strict=False):
        if above >= 1 > below:
            return f"{exp(log(a) + log(b / a) * log(above) / log(above / below)):.2g}"
    return f"> {points[-1][0]:g}" if points[-1][1] >= 1 else f"< {points[0][0]:g}"


if __name__ == "__main__":
    timing.print_results(main)
