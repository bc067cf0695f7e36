"""Exact geometric noise from the system's randomness, beside numpy's usual recipe and OpenDP.

Ours is exact and fit to publish; numpy's is floating point under a seedable generator, OpenDP's is
exact and from the system. All add noise to the same vector of 10⁶ integers (int64).
"""

from __future__ import annotations

from functools import partial
from math import exp

import numpy as np

from experiments.benchmarks import _timing as timing
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
        seconds = timing.median_seconds(ours, usual, repeat=15)
        rows.append(_row(epsilon, "numpy", *seconds, 6 if judged else None))
        if judged:
            exact = opendp(epsilon)
            if not callable(exact):
                rows.append(timing.row(f"noise, ε = {epsilon:g}", peer=exact))
                continue
            exact(values[:1000])
            theirs = partial(exact, values)
            seconds = timing.median_seconds(ours, theirs, repeat=3, cold=[theirs])
            rows.append(_row(epsilon, "OpenDP", *seconds, 500))
    return timing.to_frame(rows)


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


def _row(epsilon: float, name: str, ours: float, peer: float, least: float | None) -> dict:
    ratio = peer / ours
    limit = {"ratio": ratio} if least is None else timing.at_least(ratio, least)
    text = f"{name} {timing.format_seconds(peer, N)}"
    return timing.row(f"noise, ε = {epsilon:g}", timing.format_seconds(ours, N), text, **limit)


if __name__ == "__main__":
    timing.print_results(main)
