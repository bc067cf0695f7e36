"""Chen et al. 2012, Figure 5: how running times grow, and whether they do as the paper says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from experiments.chen2012.shared import ENTROPY, KERNEL
from workbench.compiled import pd
from workbench.trials.claims import (
    ALIKE,
    ORDERS,
    Finding,
    MissingPoints,
    all_of,
    check_between,
    exact,
)
from workbench.value import format_number

BUYING = "buying the answers"
CARRIED = "kernel PCA, carried on"


def along(panel: str) -> str:
    """The column of a panel's sizes."""
    return "universe" if panel == "merged" else panel


def times_over(rows, panel: str) -> pd.DataFrame:
    """What was timed over a panel's sizes, without what is carried on."""
    times = rows[rows.panel == panel].pivot_table("value", along(panel), "series", sort=True)
    return times[[KERNEL, ENTROPY, BUYING]]


def growth(times: pd.Series, first: int, base: float) -> float:
    """By how much times grow from point `first` to the last, for `base` times the size."""
    sizes = times.index.to_numpy(float)
    grown = np.log(times.iloc[-1] / times.iloc[first]) / np.log(sizes[-1] / sizes[first])
    return float(base**grown)


def _known(number: float, **ends: float) -> Callable[[float], Finding]:
    """A check of one number, which is the best of several times."""
    return partial(check_between, exact(pd.Series([number])), **ends)


def check_square(rows, level: float) -> Finding:
    """Whether kernel PCA's time grows as m², or faster."""
    times = times_over(rows, "queries")[KERNEL].dropna()
    return _known(growth(times, -2, 2), low=4)(level)


def check_too_many(rows, level: float) -> Finding:
    """Whether kernel PCA is out of reach where the queries are most."""
    times = rows[rows.panel == "queries"].pivot_table("value", "queries", "series")
    if CARRIED not in times:
        raise MissingPoints("no time that is carried on")
    most = times[CARRIED].last_valid_index()
    usual = times[KERNEL].last_valid_index()
    carried = times[CARRIED][most]
    parts = {
        f"against {usual:,.0f} queries": _known(carried / times[KERNEL][usual], low=ORDERS),
        f"against {ENTROPY}": _known(carried / times[ENTROPY][most], low=np.nextafter(1, 2)),
    }
    found = all_of(parts, level)
    told = f"carried on to {most:,.0f} queries: {format_number(carried)} s, "
    told += f"and {format_number(8e-9 * most**2)} GB a matrix"
    return replace(found, measured=f"{found.measured}; {told}")


def check_insensitive(rows, level: float, panel: str) -> Finding:
    """Whether both approaches take 1.25× as long, or less, for ten times the size."""
    times = times_over(rows, panel)
    parts = {
        name: _known(growth(times[name].dropna(), 0, 10), high=ALIKE)
        for name in (KERNEL, ENTROPY)
    }
    found = all_of(parts, level)
    buying = format_number(growth(times[BUYING].dropna(), 0, 10))
    return replace(found, measured=f"{found.measured}; {BUYING} grows {buying}×")
