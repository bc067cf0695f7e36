"""A tour, not a figure of a paper: what a release costs in accuracy as ε changes.

Words   the error falls as 1/ε = ten times ε gives a tenth of the error, within 1.25×.
"""

from __future__ import annotations

import pandas as pd

from workbench import DP, RandomRanges, Sweep, run
from workbench.claims import ALIKE, Claim, Finding, Printed, mean_curve
from workbench.datasets import GaussianSparse
from workbench.mechanisms import GeometricHistogram, HighPassFilter, PrioritySampling
from workbench.metrics import MeanAbsoluteError
from workbench.plots import name_series

STEM = "00_tour"
TITLE = "A first private release, and what it costs in accuracy"
PAGE = "no paper"

DATA = GaussianSparse(m=200_000, density=0.05)
EPSILONS = (0.1, 0.3, 1.0, 3.0)
SIZE = 10_000


def mechanisms() -> list:
    """Three ways at every ε."""
    summaries = []
    for budget in map(DP, EPSILONS):
        summaries.append(GeometricHistogram(budget))
        summaries.append(HighPassFilter(budget, size=SIZE))
        summaries.append(PrioritySampling(budget, size=SIZE))
    return summaries


SWEEP = Sweep(
    datasets=[DATA],
    mechanisms=mechanisms(),
    metrics=[MeanAbsoluteError(RandomRanges(1000, count=200))],
    seeds=20,
)

PAPER: tuple[Printed, ...] = ()


def rows(profile: str, store) -> pd.DataFrame:
    """One row a trial."""
    sweep = SWEEP.with_max_seeds(5) if profile == "quick" else SWEEP
    return name_series(run(sweep, store), shown=["epsilon"])


def _falls_as_one_over_epsilon(rows) -> Finding:
    error = mean_curve(rows, "epsilon", series="geometric")["mean"]
    ratio = error[0.1] / error[1.0]
    return Finding(bool(10 / ALIKE <= ratio <= 10 * ALIKE), f"{ratio:.3g}× from ε = 0.1 to 1")


CLAIMS = (
    Claim(
        "tour-1",
        "The error of the full noisy table falls as 1/ε.",
        _falls_as_one_over_epsilon,
    ),
)
