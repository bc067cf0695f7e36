"""Chen et al. 2012: names, people by fewer attributes, and what checks share: data, and convergence.

A fit of maximum entropy decides nothing if it lacks more than the tolerance, by the estimate of
`Model.lacks`. Its duality gap stands beside: an upper bound, but of first order in residuals where what
is lacked is of second.
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
    """People by the first attributes of a dataset."""

    dataset: Any
    count: int
    truth_public = True

    def load(self) -> SparseTable:
        """The table."""
        table = self.dataset.load()
        return table.project(table.domain.attributes[: self.count])


def fewer_attributes(table: SparseTable, d: int) -> SparseTable:
    """The same people by their d largest attributes."""
    shape = table.domain.shape
    axes = sorted(np.argsort([-n for n in shape], kind="stable")[:d].tolist())
    return table.project([table.domain.attributes[axis] for axis in axes])


def fewer_codes(table: SparseTable, codes: int) -> SparseTable:
    """The same people with so many codes of each attribute made one, but two left at least."""
    widths = [min(codes, n // 2) for n in table.domain.shape]
    shape = tuple(-(-n // w) for n, w in zip(table.domain.shape, widths, strict=True))
    domain = Domain(table.domain.attributes, shape)
    keys = domain.keys(table.domain.codes(table.keys) // widths)
    public = table.truth_public
    return SparseTable.from_keys(domain, keys, table.counts, table.bound, truth_public=public)


def convergence(fitted) -> dict[str, float]:
    """What says how near its optimum a fit is, and in how many steps; NaN where there is none."""
    return {name: getattr(fitted, name, np.nan) for name in CONVERGENCE}


def of_case(rows: pd.DataFrame, case: str) -> pd.DataFrame:
    """The rows of one dataset."""
    own = rows[rows.case == case]
    if own.empty:
        raise MissingPoints(f"no rows of {case}")
    return own


def of_neither(found: Finding) -> Finding:
    """What is found on two datasets, where how attributes go together decides.

    If it differs on both it is not testable: the people of the one are the twin's own, and those of the
    other are not the paper's.
    """
    if found.holds is not False:
        return found
    why = "it differs on both datasets, and neither has the paper's people"
    return replace(found, holds=None, why=why, testable=False)


def over_cases(
    rows: pd.DataFrame, level: float, name: str, check: Callable, *swept: Sequence[Any]
) -> Finding:
    """A check on each dataset, and at each of some values, where neither has the paper's people."""

    def at(setting: tuple, level: float) -> Finding:
        case, *values = setting
        return check(of_case(rows, case), *values, level)

    return of_neither(claims.over(name, tuple(product((TWIN, CENSUS), *swept)), at, level))


def unless_far(lacks: float, found: Finding) -> Finding:
    """What is found of maximum entropy, undecided if a fit lacks more than the tolerance."""
    if not lacks > TOLERANCE:
        return found
    measured = f"{found.measured}; the fits did not converge: by estimate they lack up to "
    measured += f"{format_number(lacks)} nats, above the tolerance of {TOLERANCE:g}"
    return replace(found, holds=None, measured=measured, runs=inf)


def open_where_far(numbers: Intervals, lacks: pd.Series) -> Intervals:
    """Ratios by point, which may be anything where a fit lacks more than the tolerance."""

    def at(level: float) -> pd.DataFrame:
        points = numbers.at(level)
        far = lacks.reindex(points.index) > TOLERANCE
        return points.assign(low=points.low.mask(far, 0.0), high=points.high.mask(far, inf))

    return Intervals(at)
