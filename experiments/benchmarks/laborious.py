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
from experiments.benchmarks.noise import numpy_geometric
from workbench import DP, noise
from workbench.mechanisms import HighPassFilter
from workbench.noise import bits, laws

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
            if (n := round(density * m)) > MOST:
                continue
            data, mechanism = timing.sparse_table(n, m), HighPassFilter(DP(EPSILON), size=n)
            theta = mechanism.threshold(data.domain, 1.0)
            ways = (
                partial(mechanism, data),
                partial(dense, data, theta),
                partial(chunked, data, theta),
            )
            spent = timing.median_seconds(
                *ways, repeat=repeat, cold=ways[1:] if m > MOST else ()
            )
            ratios[density] = spent[2] / spent[0]
            for name, peer in zip(("usual", "fast"), spent[1:], strict=True):
                rows.append(
                    {
                        "what": f"filter, m = {timing.power(m)}, density {density:g}",
                        "ours": timing.format_seconds(spent[0]),
                        "peer": f"{name} {timing.seconds(peer)}",
                        "ratio": peer / spent[0],
                    }
                )
        rows.append(
            {
                "what": f"m = {timing.power(m)}: the fast dense way catches up at density",
                "ours": even(ratios),
            }
        )
    return timing.to_frame(rows)


def dense(data, theta: float):
    """Keys and noisy values, as a first reading of the paper has it."""
    noisy = numpy_geometric(data.dense(), EPSILON)
    keys = np.flatnonzero(np.abs(noisy) >= theta)
    return keys, noisy[keys]


def chunked(data, theta: float):
    """The same from our exact sampler, a chunk of cells at a time, in the fastest way that we know."""
    law, words = laws.two_sided(noise.decay(1, EPSILON)), bits.word_source(None)
    m, kept, chunk = data.domain.size, [], np.empty(CHUNK, np.int64)
    starts = range(0, m, CHUNK)
    ends = np.searchsorted(data.keys, [*starts, m])
    for start, a, b in zip(starts, ends, ends[1:], strict=False):
        cells = chunk[: m - start]
        cells[:] = 0
        cells[data.keys[a:b] - start] = data.counts[a:b]
        law.add(cells, words)
        keys = np.flatnonzero((cells >= theta) | (cells <= -theta))
        kept.append((keys + start, cells[keys]))
    return tuple(np.concatenate(parts) for parts in zip(*kept, strict=True))


def even(ratios: dict[float, float]) -> str:
    """The density at which the ratio is 1: between two measured ones on log axes, else a bound."""
    points = sorted(ratios.items())
    for (a, ra), (b, rb) in zip(points, points[1:], strict=False):
        if ra >= 1 > rb:
            return f"{exp(log(a) + log(b / a) * log(ra) / log(ra / rb)):.2g}"
    return f"> {points[-1][0]:g}" if points[-1][1] >= 1 else f"< {points[0][0]:g}"


if __name__ == "__main__":
    timing.print_results(main)
