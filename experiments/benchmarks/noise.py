"""Exact geometric noise from the system's randomness, beside numpy's usual recipe and OpenDP.

Ours is exact and fit to publish; numpy's is floating point under a seedable generator, OpenDP's is
exact and from the system. All add noise to the same vector of 10⁶ integers (int64).
"""

from __future__ import annotations

from functools import partial
from math import exp

import numpy as np

from experiments.benchmarks._timing import beside, row
from workbench import noise

N = 10**6
EPSILONS = {1.0: True, 0.1: True, 0.01: False}  # whether a limit is set


def main():
    """Time a value."""
    values = np.random.default_rng(0).integers(0, 200, N)
    rows = []
    for epsilon, judged in EPSILONS.items():
        ours = partial(noise.geometric, values, l1=1, epsilon=epsilon)
        usual = partial(numpy_geometric, values, epsilon)
        what = f"noise, ε = {epsilon:g}"
        least = 6 if judged else None
        rows.append(beside(what, ours, usual, "numpy", 15, least=least, per=N))
        if judged:
            exact = opendp(epsilon)
            if not callable(exact):
                rows.append(row(what, peer=exact))
                continue
            exact(values[:1000])
            theirs = partial(exact, values)
            rows.append(beside(what, ours, theirs, "OpenDP", cold=True, least=500, per=N))
    return rows


def numpy_geometric(values: np.ndarray, epsilon: float) -> np.ndarray:
    """Two-sided geometric noise the usual way: the difference of two of numpy's geometric vectors."""
    rng = np.random.default_rng()
    p = 1 - exp(-epsilon)
    return values + (rng.geometric(p, values.shape) - rng.geometric(p, values.shape))


def opendp(epsilon: float):
    """OpenDP's exact sampler for integer vectors, or why there is none."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return "OpenDP is not installed: pip install 'dp-workbench[peers]'"
    dp.enable_features("contrib")
    space = (dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"))
    return dp.m.make_laplace(*space, scale=1 / epsilon)
