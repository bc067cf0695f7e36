"""A count sketch's row beside numpy's histogram of keys % width, for 10⁷ random keys.

Updating is what a release does before noise: ours hashes twice, for bucket and sign.
Querying is what an estimate does: ours for single cells, numpy's by looking up keys % width.
"""

from __future__ import annotations

import numpy as np

from experiments.benchmarks import _timing as timing
from workbench import Domain, Ranges
from workbench.estimates import Sketch, hashes

N, M = 10**7, 2**62
WIDTHS = (10**4, 10**6)
LEAST = 1 / 3  # of numpy's rate


def main():
    """Processor time a key, one row."""
    rng = np.random.default_rng(0)
    keys, counts = rng.integers(0, M, N), rng.integers(1, 100, N)
    words, weights = rng.integers(0, 2**64, 8, np.uint64), counts.astype(float)
    domain, asked = Domain(("cell",), (M,)), Ranges(keys, keys + 1)
    rows = []
    for width in WIDTHS:
        row = np.zeros(width, np.int64)

        def update(row=row):
            row[:] = 0
            hashes.add_counts(keys, counts, words, row)

        def numpys_update(width=width):
            return np.bincount(keys % width, weights, width)

        update()
        sketch, plain = Sketch(domain, words[None], row[None], 1.0), numpys_update()

        def query(sketch=sketch):
            return sketch.answer(asked)

        def numpys_query(plain=plain, width=width):
            return plain[keys % width]

        for what, ours, peer in (
            ("update", update, numpys_update),
            ("query", query, numpys_query),
        ):
            spent = timing.median_seconds(ours, peer, repeat=5)
            rows.append(
                {
                    "what": f"sketch {what}, {timing.power(N)} keys, {timing.power(width)} buckets",
                    "ours": f"{spent[0] / N * 1e9:.3g} ns",
                    "peer": f"numpy {spent[1] / N * 1e9:.3g} ns",
                    "ratio": (ratio := spent[1] / spent[0]),
                    "limit": f"≥ {LEAST:.2g}×",
                    "met": ratio >= LEAST,
                }
            )
    return timing.to_frame(rows)


if __name__ == "__main__":
    timing.print_results(main)
