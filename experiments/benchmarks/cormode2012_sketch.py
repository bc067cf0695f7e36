"""A count sketch's row beside numpy's histogram of keys % width, for 10⁷ random keys.

Updating is what a release does before noise: ours hashes twice, for bucket and sign.
Querying is what an estimate does: ours for single cells, numpy's by looking up keys % width.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.benchmarks import _timing as timing
from experiments.benchmarks._timing import at_least, format_seconds, power_of_ten, row
from workbench import Domain, Ranges
from workbench.estimates import Sketch
from workbench.noise import hashes
from workbench.noise.law import Law

N = 10**7
M = 2**62
WIDTHS = (10**4, 10**6)
LEAST = 1 / 3  # of numpy's rate


def main():
    """Time a key, one row."""
    rng = np.random.default_rng(0)
    keys = rng.integers(0, M, N)
    counts = rng.integers(1, 100, N)
    parameters = rng.integers(0, 2**64, 8, np.uint64)
    weights = counts.astype(float)
    domain = Domain(("cell",), (M,))
    cells = Ranges(keys, keys + 1)
    rows = []
    for width in WIDTHS:
        buckets = np.zeros(width, np.int64)

        def update(buckets=buckets):
            buckets[:] = 0
            hashes.add_counts(keys, counts, parameters, buckets)

        def numpy_update(width=width):
            return np.bincount(keys % width, weights, width)

        def numpy_query(sums, width=width):
            return sums[keys % width]

        update()
        sketch = Sketch(domain, parameters[None], buckets[None], Law("geometric", 1.0))
        calls = {
            "update": (update, numpy_update),
            "query": (partial(sketch.answer, cells), partial(numpy_query, numpy_update())),
        }
        for name, pair in calls.items():
            ours, peer = timing.median_seconds(*pair, repeat=5)
            what = f"sketch {name}, {power_of_ten(N)} keys, {power_of_ten(width)} buckets"
            theirs = f"numpy {format_seconds(peer, N)}"
            rows.append(
                row(what, format_seconds(ours, N), theirs, **at_least(peer / ours, LEAST))
            )
    return timing.to_frame(rows)


if __name__ == "__main__":
    timing.print_results(main)
