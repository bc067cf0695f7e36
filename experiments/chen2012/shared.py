"""Definitions that the figures of Chen et al. (2012) share: names, tables with fewer attributes, and checks
that take into account whether fits converged.

If the estimated remaining divergence of a maximum-entropy fit (`Model.lacks`) is above the tolerance, no
statement is tested on it. The duality gap is shown for comparison. It is an upper bound, but it is of first
order in the residuals, where the divergence is of second order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from math import inf
from typing import Any

import numpy as np

from experiments.chen2012.data import CENSUS, TWIN
from workbench import Domain, SparseTable
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import Finding, Intervals, MissingPoints
from workbench.value import format_number, value

KERNEL = "kernel PCA"
ENTROPY = "maximum entropy"
CONVERGENCE = ("gap", "steps", "lacks")
TOLERANCE = 0.1  # nats: a fit that lacks more decides nothing


@value
class FirstAttributes:
    """Dataset with only the first `count` attributes of another dataset."""

    dataset: Any
    count: int
    truth_public = True

    def load(self) -> SparseTable:
        """Return the table."""
        table = self.dataset.load()
        return table.project(table.domain.attributes[: self.count])


def fewer_attributes(table: SparseTable, d: int) -> SparseTable:
    """Return the same people with only their d largest attributes."""
    shape = table.domain.shape
    axes = sorted(np.argsort([-n for n in shape], kind="stable")[:d].tolist())
    return table.project([table.domain.attributes[axis] for axis in axes])


def fewer_codes(table: SparseTable, codes: int) -> SparseTable:
    """Return the same people with `codes` codes of each attribute merged to one. At least two codes of each
    attribute remain.
    """
    widths = [min(codes, n // 2) for n in table.domain.shape]
    shape = tuple(-(-n // w) for n, w in zip(table.domain.shape, widths, strict=True))
    domain = Domain(table.domain.attributes, shape)
    keys = domain.keys(table.domain.codes(table.keys) // widths)
    public = table.truth_public
    return SparseTable.from_keys(domain, keys, table.counts, table.bound, truth_public=public)


def convergence(fitted) -> dict[str, float]:
    """Return numbers that say how close a fit is to its optimum and how many steps it took. They are NaN if
    there are none.
    """
    return {name: getattr(fitted, name, np.nan) for name in CONVERGENCE}


def of_case(rows: pd.DataFrame, case: str) -> pd.DataFrame:
    """Return the results on one dataset."""
    own = rows[rows.case == case]
    if own.empty:
        raise MissingPoints(f"no rows of {case}")
    return own


def of_neither(found: Finding) -> Finding:
    """Return a finding from two datasets, neither of which has the paper's people.

    If the statement is false on both, it is not testable, because it depends on how attributes are related.
    The people of one dataset are invented, and those of the other are not the paper's.
    """
    if found.holds is not False:
        return found
    why = "it differs on both datasets, and neither has the paper's people"
    return replace(found, holds=None, why=why, testable=False)


def over_cases(
    rows: pd.DataFrame, level: float, name: str, check: Callable, *swept: Sequence[Any]
) -> Finding:
    """Repeat a check on each dataset, and for each of some values. Neither dataset has the paper's people, so
    the check cannot contradict the paper.
    """

    def at(setting: tuple, level: float) -> Finding:
        case, *values = setting
        return check(of_case(rows, case), *values, level)

    return of_neither(claims.over(name, tuple(product((TWIN, CENSUS), *swept)), at, level))


def unless_far(lacks: float, found: Finding) -> Finding:
    """Return a finding about maximum entropy. If the remaining divergence of a fit is above the tolerance,
    the finding is undecided.
    """
    if not lacks > TOLERANCE:
        return found
    measured = f"{found.measured}; the fits did not converge: by estimate they lack up to "
    measured += f"{format_number(lacks)} nats, above the tolerance of {TOLERANCE:g}"
    return replace(found, holds=None, measured=measured, runs=inf)


def open_where_far(numbers: Intervals, lacks: pd.Series) -> Intervals:
    """Return ratios by point. If the remaining divergence of a fit is above the tolerance, the ratio may be
    any number.
    """

    def at(level: float) -> pd.DataFrame:
        points = numbers.at(level)
        far = lacks.reindex(points.index) > TOLERANCE
        return points.assign(low=points.low.mask(far, 0.0), high=points.high.mask(far, inf))

    return Intervals(at)
