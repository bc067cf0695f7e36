"""What Cormode et al. 2012 say of nodes and their noise in sections 3 and 4.4, where theory decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp

import numpy as np

from experiments.cormode2012.shared import FULL
from experiments.cormode2012.trees import (
    CROSSING,
    GREATEST,
    NODES,
    THEORY,
    full_tables,
    greatest_variances,
    nodes_per_count,
)
from workbench.compiled import pd
from workbench.trials.claims import ALIKE, Finding, check_between, check_similar, exact, select
from workbench.value import format_number

FROM = 10_000


def theory_rows(m: int, ranges: Sequence[int], epsilon: float) -> pd.DataFrame:
    """Rows of full tables, by nodes and by cells, and of the greatest variances."""
    theory = [full_tables(m, ranges, epsilon), greatest_variances(epsilon)]
    return pd.concat(theory, ignore_index=True)


def expected_dyadic_error(cells, m: int, epsilon: float):
    """E|error| of the full dyadic table: a range of so many cells needs about log₂ of it in nodes."""
    alpha = exp(-epsilon / nodes_per_count(m))
    return np.sqrt(2 / np.pi * np.log2(cells) * 2 * alpha / (1 - alpha) ** 2)


def theory(rows, metric: str, series: str = FULL) -> pd.Series:
    """By range size, from where dyadic ranges are said to be better."""
    own = select(rows, panel=THEORY, metric=metric, series=series)
    return own.set_index("query_size").value.sort_index().loc[FROM:]


def cross(rows) -> str:
    """Where a full dyadic table begins to be better than one of cells."""
    crossing = select(rows, panel=THEORY, metric=CROSSING).value.item()
    return f"{format_number(crossing)} cells"


def same_entries(rows, level) -> Finding:
    """Whether ranges need about as many nodes as where dyadic ranges begin to be better."""
    nodes = theory(rows, NODES)
    at_from = select(rows, panel=THEORY, metric=NODES, query_size=FROM).value.item()
    return check_similar(exact(nodes / at_from), level)


def twice_the_height(rows, level) -> Finding:
    """Whether these are about twice as many as the tree is high."""
    nodes = theory(rows, NODES)
    height = np.log2(select(rows, panel=THEORY, metric=NODES).m.iloc[0])
    finding = check_similar(exact(nodes / (2 * height)), level)
    low, high = (format_number(x) for x in (nodes.min(), nodes.max()))
    told = f"{low} to {high} nodes, twice the height is {format_number(2 * height)}"
    return replace(finding, measured=f"{told}; {finding.measured}")


def cubes(rows, level) -> Finding:
    """Whether greatest variances grow no faster than log³m."""
    greatest = select(rows, panel=THEORY, metric=GREATEST).sort_values("m")
    scaled = greatest.assign(value=greatest.value / np.log2(greatest.m) ** 3)
    steps = scaled.value / scaled.groupby("series").value.shift()
    return check_between(exact(steps.dropna()), level, high=ALIKE, words="no higher")
