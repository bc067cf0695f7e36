"""Exact geometric noise from the system's randomness, beside numpy's usual recipe and OpenDP.

Ours is exact and fit to publish; numpy's is floating point under a seedable generator, OpenDP's is
exact and from the system. All add noise to the same vector of 10⁶ integers (int64).
"""

from __future__ import annotations

from math import exp

import numpy as np

from experiments.benchmarks import _timing as timing
from workbench import noise

N = 10**6
EPSILONS = {1.0: True, 0.1: True, 0.01: False}  # whether a limit is set


def main():
    """Processor time a value."""
    values = np.random.default_rng(0).integers(0, 200, N)
    rows = []
    for epsilon, judged in EPSILONS.items():

        def ours(epsilon=epsilon):
            return noise.geometric(values, l1=1, epsilon=epsilon)

        def numpys(epsilon=epsilon):
            return numpy_geometric(values, epsilon)

        spent = timing.median_seconds(ours, numpys, repeat=15)
        rows.append(_row(epsilon, "numpy", spent, 6 * judged))
        if judged:
            exact = opendp(epsilon)
            if not callable(exact):
                rows.append({"what": f"noise, ε = {epsilon:g}", "peer": exact})
                continue

            def opendps(exact=exact):
                return exact(values)

            exact(values[:1000])
            spent = timing.median_seconds(ours, opendps, repeat=3, cold=[opendps])
            rows.append(_row(epsilon, "OpenDP", spent, 500))
    return timing.to_frame(rows)


def numpy_geometric(values: np.ndarray, epsilon: float) -> np.ndarray:
    """Two-sided geometric noise the usual way: the difference of two of numpy's geometric vectors."""
    rng, p = np.random.default_rng(), 1 - exp(-epsilon)
    return values + (rng.geometric(p, values.shape) - rng.geometric(p, values.shape))


def opendp(epsilon: float):
    """OpenDP's exact sampler for integer vectors, or why there is none."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return "OpenDP is not installed: pip install 'dp-workbench[peers]'"
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=1 / epsilon)


def _row(epsilon: float, peer: str, spent: list[float], least: float) -> dict:
    ratio = spent[1] / spent[0]
    return {
        "what": f"noise, ε = {epsilon:g}",
        "ours": f"{spent[0] / N * 1e9:.3g} ns",
        "peer": f"{peer} {spent[1] / N * 1e9:.3g} ns",
        "ratio": ratio,
        "limit": f"≥ {least}×" if least else "",
        "met": bool(ratio >= least) if least else None,
    }


if __name__ == "__main__":
    timing.print_results(main)
