"""What Figure 2 takes from theory: what filters are expected to hold, and the τ of a sample's size."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.cormode2012.measures import held_shares
from workbench import DP, RandomRanges
from workbench.compiled import pd
from workbench.datasets import GaussianSparse
from workbench.mechanisms import ThresholdSampling


def theory_rows(
    data: GaussianSparse, ranges: RandomRanges, thetas: Sequence[int], epsilon: float
) -> pd.DataFrame:
    """Rows of what filters are expected to hold, and of the mean answer of a range."""
    table = data.load()
    answers = table.answer(ranges.on(table.domain))
    rows = [{"metric": "MeanAnswer", "value": answers.mean()}]
    for series, sides in (("filter", 2), ("one-sided filter", 1)):
        for theta in thetas:
            _, held, true = held_shares(table, theta, sides, epsilon)
            shares = {"HeldShare": held, "TrueShare": true}
            point = {"series": series, "theta": theta}
            rows += [point | {"metric": name, "value": x} for name, x in shares.items()]
    columns = {"panel": "theory", "dataset": repr(data), "truth_public": True}
    return pd.DataFrame(rows).assign(**columns)


def tau_of_size(data: GaussianSparse, size: int, epsilon: float) -> float:
    """The τ at which a threshold sample is expected to hold `size` cells.

    (m − n)·p_τ + n·min(μ/τ, 1) = size; a non-empty cell is taken to hold its mean μ.
    """
    from scipy.optimize import brentq

    n = round(data.density * data.m)

    def excess(tau: float) -> float:
        p = ThresholdSampling(DP(epsilon), tau=tau).survival(epsilon)
        return (data.m - n) * p + n * min(data.mean / tau, 1) - size

    if excess(1) <= 0:
        return 1.0
    most = max(10_000, data.m * (data.mean + 1 / epsilon) / size)
    return round(brentq(excess, 1, most), 1)
