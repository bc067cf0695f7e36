"""Theorems 1–4 of Cormode et al. 2012 as tests: a shortcut and its laborious process have equal laws."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from scipy import stats

from workbench import DP, Dyadic, Haar, Sweep
from workbench.claims import Finding
from workbench.datasets import GaussianSparse
from workbench.mechanisms import (
    HighPassFilter,
    Laborious,
    PrioritySampling,
    ThresholdSampling,
)
from workbench.transform import basis_of


def shortcuts(budget: DP) -> list:
    """Every summary that is drawn without visiting empty cells, of cells and of nodes."""
    of_nodes = (
        partial(HighPassFilter, budget, theta=200),
        partial(ThresholdSampling, budget, tau=600, theta=150),
        partial(PrioritySampling, budget, size=200, theta=150),
    )
    return [
        HighPassFilter(budget, theta=20),
        HighPassFilter(budget, theta=20, sides=1),
        ThresholdSampling(budget, tau=60),
        ThresholdSampling(budget, tau=60, theta=15),
        PrioritySampling(budget, size=200),
        PrioritySampling(budget, size=200, theta=15),
        *(summary(transform=Dyadic()) for summary in of_nodes),
        *(summary(transform=Haar()) for summary in of_nodes),
    ]


def law_tests(dataset: GaussianSparse, mechanisms: list, runs: int) -> pd.DataFrame:
    """Two-sample tests of each shortcut against its laborious process: a p-value a statistic.

    Kolmogorov–Smirnov for the size, τ_s, and the noisy values at empty and at non-empty cells (on
    discrete values it errs on the safe side); χ² for how often ten stretches of the keys are
    released, empty and non-empty cells apart. Over a transform, nodes take the place of cells.
    """
    table = dataset.load()
    tests = []
    for mechanism in mechanisms:
        shortcut = _statistics(dataset, mechanism, runs, table)
        laborious = _statistics(dataset, Laborious(mechanism), runs, table)
        for name, values in shortcut.items():
            p = _p_value(name, values, laborious[name])
            if p is not None:
                tests.append({"mechanism": repr(mechanism), "statistic": name, "value": p})
    columns = dict(panel="laws", metric="p-value", dataset=repr(dataset), truth_public=True)
    return pd.DataFrame(tests).assign(series=[x["mechanism"] for x in tests], **columns)


def _statistics(dataset, mechanism, runs: int, table) -> dict[str, np.ndarray]:
    trials = Sweep([dataset], [mechanism], (), runs).trials()
    estimates = [trial.release(table).estimate for trial in trials]
    keys = np.concatenate([estimate.keys for estimate in estimates])
    values = np.concatenate([estimate.values for estimate in estimates])
    cells = basis_of(getattr(mechanism, "mechanism", mechanism).transform, table.domain)
    nonempty = np.isin(keys, cells.forward(table.keys, table.counts)[0])
    stretch = keys * 10 // sum(part.size for part in cells.noise_blocks)
    return {
        "size": np.array([len(estimate) for estimate in estimates]),
        "τ": np.array([estimate.tau for estimate in estimates]),
        "values, empty cells": values[~nonempty],
        "values, non-empty cells": values[nonempty],
        "positions": np.bincount(stretch + 10 * nonempty, minlength=20),
    }


def _p_value(name: str, values: np.ndarray, others: np.ndarray) -> float | None:
    """None where there is nothing to compare: a priority sample has the size it is told, a filter no τ."""
    if name == "positions":
        if not (values.any() and others.any()):
            return None
        released = np.array([values, others])
        return stats.chi2_contingency(released[:, released.any(axis=0)]).pvalue
    few = min(len(values), len(others)) < 2
    if few or len(np.unique(np.concatenate([values, others]))) == 1:
        return None
    return stats.ks_2samp(values, others, method="asymp").pvalue


def same_law(rows: pd.DataFrame) -> Finding:
    """Whether no test sees a difference, at a level of 1 % for all of them together."""
    tests = rows[rows.panel == "laws"]
    least = tests.loc[tests.value.idxmin()]
    level = 0.01 / len(tests)
    measured = f"least p of {len(tests)} tests {least.value:.2g}, at level {level:.1g} each "
    measured += f"({least.statistic}, {least.mechanism})"
    return Finding(bool(least.value > level), measured)
