"""Discrete Gaussian noise beside numpy's rounded normal and OpenDP, and its filter beside the geometric.

The limits are 3 ns a draw up to σ = 100 and 12 ns at any σ; a thousandth of OpenDP's time, and no more than
numpy's; 1.5 times the geometric filter's.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from experiments.benchmarks._timing import beside, compared, median_seconds, sparse_table
from workbench import DP, ZCDP
from workbench.mechanisms import HighPassFilter
from workbench.noise import source as bits
from workbench.noise.discrete_gaussian import discrete_gaussian

SIGMAS = (0.3, 10, 100, 512, 1000, 1e9, 1e15)
DRAWS = 4_000_000
OPENDP_DRAWS = 2000
CELLS = 10**7


def main():
    """Nanoseconds a draw; and the filter of a hundred thousand cells of ten million."""
    rng = np.random.default_rng(0)
    source = bits.word_source(None)
    values = np.zeros(DRAWS, np.int64)
    rows = []
    for sigma in SIGMAS:
        law = discrete_gaussian(1 / (2 * Fraction(sigma) ** 2))
        law.add(values, source)  # tables are made once
        ours, rounded = median_seconds(
            partial(law.add, values, source), partial(numpy_normal, rng, sigma), repeat=5
        )
        what = f"a draw at σ = {sigma:g}"
        rows.append(compared(what, ours, rounded, "numpy, inexact", per=DRAWS))
        opendp = opendp_draws(sigma) if sigma < 1e6 else None
        if opendp is not None:
            (theirs,) = median_seconds(opendp, repeat=3)
            theirs *= DRAWS / OPENDP_DRAWS
            rows.append(compared(what, ours, theirs, "OpenDP", per=DRAWS))
    table = sparse_table(CELLS // 100, CELLS)
    pure = partial(HighPassFilter(DP(0.1), size=CELLS // 100), table)
    of_rho = partial(HighPassFilter(ZCDP(0.005), size=CELLS // 100), table)
    return [*rows, beside("the filter", of_rho, pure, "geometric", repeat=9)]


def numpy_normal(rng, sigma: float):
    """What is often done, and leaks: a float that is rounded."""
    return np.rint(rng.normal(0, sigma, DRAWS)).astype(np.int64)


def opendp_draws(sigma: float):
    """OpenDP's vector measurement, if it is installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    return partial(dp.m.make_gaussian(*space, scale=sigma), [0] * OPENDP_DRAWS)
