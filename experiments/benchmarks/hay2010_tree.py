"""Consistency of a noisy binary tree, against copying it, sparse least squares, and OpenDP's."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsmr

from experiments.benchmarks import _timing as timing
from workbench.inference import tree_least_squares
from workbench.transform import level_sizes

COPIES, MEMORY, OPENDP = 8, 3, 100


def main():
    """Processor time and memory."""
    noisy = np.random.default_rng(0).normal(size=2**25 - 1)
    ours, copy = timing.median_seconds(partial(tree_least_squares, noisy), noisy.copy, repeat=5)
    extra = memory(noisy) / noisy.nbytes
    rows = [
        {
            "what": "consistency of a binary tree over 2²⁴ leaves",
            "ours": f"{timing.seconds(ours)}, {ours / 2**24 * 1e9:.3g} ns a leaf",
            "peer": f"copy of the tree {timing.seconds(copy)}",
            "ratio": ours / copy,
            "limit": f"≤ {COPIES}×",
            "met": ours / copy <= COPIES,
        },
        {
            "what": "… its peak memory, result included",
            "ours": f"{extra:.3g} times the tree",
            "limit": f"≤ {MEMORY}×",
            "met": extra <= MEMORY,
        },
    ]
    noisy = noisy[: 2**21 - 1]
    matrix = design(2**20)
    solve = partial(lsmr, matrix, noisy, atol=1e-10, btol=1e-10)
    ours, peer = timing.median_seconds(
        partial(tree_least_squares, noisy), solve, repeat=3, cold=(solve,)
    )
    rows.append(
        {
            "what": "consistency over 2²⁰ leaves",
            "ours": timing.format_seconds(ours),
            "peer": f"scipy lsmr {timing.seconds(peer)}",
            "ratio": peer / ours,
        }
    )
    return timing.to_frame([*rows, *opendp(noisy[: 2**17 - 1])])


def memory(noisy) -> int:
    """Bytes at the peak beyond the input."""
    tracemalloc.start()
    tree_least_squares(noisy)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


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
    listed = noisy.astype(int).tolist()
    np.testing.assert_allclose(theirs(listed), tree_least_squares(noisy)[-leaves:], atol=1e-6)
    call = partial(theirs, listed)
    ours, peer = timing.median_seconds(
        partial(tree_least_squares, noisy), call, repeat=3, cold=(call,)
    )
    return [
        {
            "what": "consistency over 2¹⁶ leaves",
            "ours": timing.format_seconds(ours),
            "peer": f"OpenDP {timing.seconds(peer)}",
            "ratio": peer / ours,
            "limit": f"≥ {OPENDP}×",
            "met": peer / ours >= OPENDP,
        }
    ]


if __name__ == "__main__":
    timing.print_results(main)
