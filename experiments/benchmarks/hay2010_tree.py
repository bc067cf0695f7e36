"""Consistency of a noisy binary tree, against copying it, sparse least squares, and OpenDP's."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsmr

from experiments.benchmarks._timing import (
    at_most,
    beside,
    format_seconds,
    median_seconds,
    peak_bytes,
    row,
)
from workbench.inference import tree_least_squares
from workbench.queries import level_sizes

COPIES = 8
MEMORY = 3
OPENDP = 100


def main():
    """Time and memory."""
    noisy = np.random.default_rng(0).normal(size=2**25 - 1)
    ours, copy = median_seconds(partial(tree_least_squares, noisy), noisy.copy, repeat=5)
    peak, _ = peak_bytes(partial(tree_least_squares, noisy))
    copies = peak / noisy.nbytes
    small = partial(tree_least_squares, noisy[: 2**21 - 1])
    solve = partial(lsmr, design(2**20), *small.args, atol=1e-10, btol=1e-10)
    rows = [
        row(
            "consistency of a binary tree over 2²⁴ leaves",
            f"{format_seconds(ours)}, {format_seconds(ours, 2**24)} a leaf",
            f"copy of the tree {format_seconds(copy)}",
            ours / copy,
            **at_most(ours / copy, COPIES, "×"),
        ),
        row(
            "… its peak memory, result included",
            f"{copies:.3g} times the tree",
            **at_most(copies, MEMORY, "×"),
        ),
        beside("consistency over 2²⁰ leaves", small, solve, "scipy lsmr", cold=True),
    ]
    return [*rows, *opendp(noisy[: 2**17 - 1])]


def design(n: int) -> csr_array:
    """Which leaves each node of a binary tree sums."""
    blocks = [np.repeat(np.arange(size), n // size) for size in level_sizes(n, 2)]
    starts = np.cumsum([0, *level_sizes(n, 2)[:-1]])
    rows = np.concatenate([start + block for start, block in zip(starts, blocks, strict=True)])
    columns = np.tile(np.arange(n), len(blocks))
    return csr_array((np.ones(len(rows)), (rows, columns)))


def opendp(noisy) -> list[dict]:
    """OpenDP's post-processor, on a list made beforehand."""
    try:
        from opendp.mod import enable_features
        from opendp.transformations import make_consistent_b_ary_tree
    except ImportError:
        return []
    enable_features("contrib")
    leaves = (len(noisy) + 1) // 2
    theirs = make_consistent_b_ary_tree(2)  # of 32-bit integers, in float64
    noisy = np.rint(100 * noisy)
    values = noisy.astype(int).tolist()
    np.testing.assert_allclose(theirs(values), tree_least_squares(noisy)[-leaves:], atol=1e-6)
    calls = partial(tree_least_squares, noisy), partial(theirs, values)
    return [beside("consistency over 2¹⁶ leaves", *calls, "OpenDP", cold=True, least=OPENDP)]
