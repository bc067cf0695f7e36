"""The variance of a count sketch of single cells, as Cormode et al. 2012 have it in appendix C.6."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from workbench import DP
from workbench.compiled import pd
from workbench.datasets import GaussianSparse
from workbench.mechanisms import CountSketch

THEORY = "theory"


def squares(data: GaussianSparse) -> float:
    """‖M‖₂²."""
    return float(np.square(data.load().counts).sum())


def variance(data: GaussianSparse, epsilon: float, what: str, size: int) -> Callable:
    """Of the mean of d rows, by d: ‖M‖₂²/(w·d) + 2α/(1 − α)²/d, α = exp(−ε/d).

    Of `what`, `w·d` or `w`, there are `size` buckets. The noise of d rows is that of one row where a
    unit moves d counts.
    """
    row = CountSketch(DP(epsilon), width=size)
    total = squares(data)
    return np.vectorize(lambda d: row.variance(total * (d if what == "w·d" else 1), d) / d)


def parts(data: GaussianSparse, epsilon: float, widths: Sequence[int]) -> pd.DataFrame:
    """Rows of the two parts of a single row's variance, in the mean over cells."""
    others = squares(data) * (1 - 1 / data.m)
    rows = []
    for width in widths:
        noise = CountSketch(DP(epsilon), width=width).variance(0, 1)
        rows += [
            {"width": width, "metric": "SketchingVariance", "value": others / width},
            {"width": width, "metric": "NoiseVariance", "value": noise},
        ]
    columns = {"panel": THEORY, "dataset": repr(data), "truth_public": True}
    return pd.DataFrame(rows).assign(**columns)
