"""Benchmark of the main steps of a release (noise, filters, trees and reading), compared with a limit or with
the usual method.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from experiments.benchmarks._timing import (
    at_most,
    at_most_sorts,
    compared,
    format_seconds,
    median_seconds,
    numpy_geometric,
    row,
)
from workbench import DP, ZCDP, Bound, Domain, SparseTable, noise
from workbench.datasets import GaussianSparse
from workbench.inference import tree_least_squares
from workbench.mechanisms import HighPassFilter, PrioritySampling

N = 10**6
SHAPE = {"origin": 100, "destination": 1000, "hour": 1000}


def main() -> list[dict]:
    """Return the rows of the table, one or more per step."""
    noises = [exact_noise(epsilon) for epsilon in (1.0, 0.1)]
    filters = [r for epsilon in (0.1, 1.0) for r in filter_and_sample(epsilon)]
    return [conversion(), *noises, *filters, tree(), reading()]


def conversion() -> dict:
    """Time the conversion from ρ to ε. Each run converts another ρ, so that no result is reused."""
    tiny = count(1)
    (seconds,) = median_seconds(lambda: ZCDP(0.1 + next(tiny) / 1e9).at(1e-9), repeat=9)
    limit = at_most_sorts(seconds, 0.4)
    return row("ε of ρ = 0.1 at δ = 10⁻⁹", format_seconds(seconds), **limit)


def exact_noise(epsilon: float) -> dict:
    """Time exact noise from the randomness of the operating system, compared with the usual noise of numpy."""
    values = np.random.default_rng(0).integers(0, 200, N)
    ours = partial(noise.geometric, values, l1=1, epsilon=epsilon)
    seconds = median_seconds(ours, partial(numpy_geometric, values, epsilon), repeat=5)
    return compared(f"noise a value, ε = {epsilon:g}", *seconds, "numpy", least=6, per=N)


def filter_and_sample(epsilon: float) -> list[dict]:
    """Time a filter, per cell that is non-empty or released, and a priority sample of the same size. They
    take turns.
    """
    table = GaussianSparse(m=10**12, density=N / 10**12).load()
    mechanisms = [kind(DP(epsilon), size=N) for kind in (HighPassFilter, PrioritySampling)]
    cells = len(table) + len(mechanisms[0](table).estimate)
    filtered, sampled = median_seconds(*(partial(m, table) for m in mechanisms), repeat=9)
    ratio = sampled / filtered
    what = f"n = 10⁶, m = 10¹², ε = {epsilon:g}"
    limit = at_most_sorts(filtered / cells * 1e6, 1 / 3)
    slower = dict(ratio=ratio, **at_most(ratio, 3, "×"))
    return [
        row(f"filter, {what}: a cell", format_seconds(filtered, cells), **limit),
        compared(f"priority sampling, {what}", sampled, filtered, "filter", **slower),
    ]


def tree() -> dict:
    """Time the least squares of a binary tree, compared with copying the tree."""
    noisy = np.random.default_rng(0).normal(size=2**23 - 1)
    ours, copy = median_seconds(partial(tree_least_squares, noisy), noisy.copy, repeat=5)
    limit = dict(ratio=ours / copy, **at_most(ours / copy, 8, "×"))
    return compared("consistency of a tree over 2²² leaves", ours, copy, "a copy", **limit)


def reading() -> dict:
    """Time reading a Parquet file into counts of cells, compared with polars."""
    rng = np.random.default_rng(0)
    with TemporaryDirectory() as folder:
        path = f"{folder}/trips.parquet"
        pl.DataFrame({x: rng.integers(0, n, 5 * N) for x, n in SHAPE.items()}).write_parquet(
            path
        )
        domain = Domain(tuple(SHAPE), tuple(SHAPE.values()))
        lazy = pl.scan_parquet(path).group_by(*SHAPE).len()
        calls = (
            partial(SparseTable.read, path, domain, Bound(10, 1)),
            partial(lazy.collect, engine="streaming"),
        )
        ours, peer = median_seconds(*calls, repeat=3)
    limit = dict(ratio=ours / peer, **at_most(ours / peer, 1.5, "×"))
    return compared("read 5·10⁶ rows of Parquet", ours, peer, "polars", **limit)
