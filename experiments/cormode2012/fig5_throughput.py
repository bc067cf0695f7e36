"""How fast dyadic summaries are made, beside the usual way: whole releases, and ways to sum the tree."""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.benchmarks.noise import numpy_geometric
from experiments.cormode2012.fig5_times import DENSE_SUMS, NUMPY, OUR_SUMS
from experiments.cormode2012.shared import DYADIC, name_factors, summaries, thetas
from experiments.cormode2012.throughput import throughput_rows
from workbench.compiled import pd
from workbench.datasets import GaussianSparse


def throughput(
    dataset: GaussianSparse, epsilon: float, factors: tuple[float, ...], repeat: int
) -> pd.DataFrame:
    """Rows of releases with s = n, and in the panel "sums" how long it takes to sum the tree."""
    table = dataset.load()
    known = (table.domain, len(table), epsilon, factors)
    full, _, *summarised = summaries(*known)
    tree = DYADIC.on(table.domain)
    noise = epsilon / tree.noise_blocks[0].nodes_per_count
    calls = {m: partial(m, table) for m in (full, *summarised)}
    calls[NUMPY] = lambda: numpy_geometric(dense_sums(table), noise)
    calls[OUR_SUMS] = partial(tree.forward, table.keys, table.counts)
    calls[DENSE_SUMS] = partial(dense_sums, table)
    rows = throughput_rows(dataset, len(table), calls, repeat)
    rows = name_factors(rows, thetas(*known))
    sums = rows.series.isin([OUR_SUMS, DENSE_SUMS])
    return rows.assign(panel=sums.map({True: "sums", False: "throughput"}), epsilon=epsilon)


def dense_sums(table) -> np.ndarray:
    """All dyadic sums of a domain padded to a power of two, level by level."""
    level = np.zeros(1 << (table.domain.size - 1).bit_length(), np.int64)
    level[: table.domain.size] = table.dense()
    levels = [level]
    while len(level) > 1:
        level = level.reshape(-1, 2).sum(axis=1)
        levels.append(level)
    return np.concatenate(levels)
