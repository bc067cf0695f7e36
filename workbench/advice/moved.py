"""How far one unit moves the numbers that a mechanism puts noise on, in either norm."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.advice.noise_kinds import NoiseComparison, compare_noise
from workbench.domain import Domain
from workbench.interactions import Interactions
from workbench.mechanisms import (
    FPA,
    CountSketch,
    GaussianQueries,
    HierarchicalHistogram,
    LaplaceQueries,
    Privelet,
    StabilityHistogram,
    UnattributedHistogram,
)
from workbench.mechanisms._contributions import Contributions, l2_squared
from workbench.mechanisms._full_table import FullTable
from workbench.mechanisms._sparse_summary import SparseSummary
from workbench.mechanisms.hierarchical_histogram import tree_l2_squared
from workbench.privacy import DP
from workbench.shares import amount
from workbench.table import Bound
from workbench.transform import Haar, basis_of, level_sizes
from workbench.workload import workload_sensitivity
from workbench.workload.sensitivity import workload_l2_squared


def compare_noise_of(
    mechanism: Any, domain: Domain, bound: Bound, budget: DP
) -> NoiseComparison:
    """Both kinds of noise on what a mechanism measures, each at what (ε, δ) pays for.

    Of a histogram of a unit's records by items and contexts: on the counts of its items.

    Parameters
    ----------
    mechanism : Mechanism
        At its own parameters, whatever its budget.
    domain : Domain
        Where the counts live.
    bound : Bound
        How far one unit moves the table, or how many records it has.
    budget : DP
        With 0 < δ < 1.

    Returns
    -------
    NoiseComparison
        Its text is one sentence; `applied` gives the mechanism with the smaller noise.

    Raises
    ------
    ValueError
        If the mechanism takes one kind of noise alone, what it measures depends on the data, or no ρ is
        within the budget.

    Examples
    --------
    >>> tree = HierarchicalHistogram(DP(1.0))
    >>> compared = compare_noise_of(tree, Domain(("x",), (2**20,)), Bound(), DP(1.0, 1e-9))
    >>> compared.touched, compared.takes_gaussian
    (21.0, True)
    """
    return compare_noise(budget, *_moved(mechanism, domain, bound), _share(mechanism))


def _moved(mechanism: Any, domain: Domain, bound: Bound) -> tuple[Fraction, Fraction]:
    """l1, and l2 squared, of what is measured."""
    l1 = Fraction(bound.l1)
    if isinstance(mechanism, FullTable | SparseSummary | Privelet):
        transform = Haar() if isinstance(mechanism, Privelet) else mechanism.transform
        blocks = basis_of(transform, domain).noise_blocks
        nodes = sum(block.nodes_per_count for block in blocks)
        return nodes * l1, sum((block.l2_squared(bound) for block in blocks), Fraction(0))
    if isinstance(mechanism, StabilityHistogram | UnattributedHistogram):
        return l1, bound.l2_squared
    if isinstance(mechanism, HierarchicalHistogram):
        k = mechanism.branching_factor(domain.size)
        return l1 * len(level_sizes(domain.size, k)), tree_l2_squared(bound, domain.size, k)
    if isinstance(mechanism, LaplaceQueries | GaussianQueries):
        moved = Fraction(workload_sensitivity(mechanism.workload, domain))
        return moved * l1, workload_l2_squared(mechanism.workload, domain) * l1**2
    if isinstance(mechanism, CountSketch):  # a unit's counts may share a bucket
        return l1 * mechanism.depth, l1**2 * mechanism.depth
    if isinstance(mechanism, Contributions) and mechanism.accepts_zcdp:
        return _items_moved(mechanism, domain, bound)
    raise ValueError(
        f"{mechanism!r} is not allowed: need a mechanism that takes a DP or a ZCDP"
    )


def _items_moved(mechanism: Any, domain: Domain, bound: Bound) -> tuple[Fraction, Fraction]:
    """Of the counts of items, by what the mechanism makes of users without a record."""
    none = np.array([], np.int64)
    users = Interactions.from_codes(domain, none, none, none, bound)
    users = replace(
        users, distinct=bound.linf == 1
    )  # as a bound says that nobody has an item twice
    bounded = mechanism.bounded_data(users, np.random.default_rng(0))
    items = domain.project(domain.attributes[:1])
    l2 = l2_squared(bounded, items)
    if not isinstance(mechanism, FPA):
        return Fraction(bounded.bound.l1), l2
    if mechanism.k is None:
        raise ValueError(
            "k = None is not allowed: the data choose how many coefficients there are"
        )
    k = min(mechanism.k, items.size)
    l1 = Fraction(float(mechanism.coefficient_sensitivity(k, items.size, bounded.bound)))
    return l1, Fraction(float(mechanism.coefficient_l2(k, items.size, bounded.bound))) ** 2


def _share(mechanism: Any) -> float:
    """Of the budget, what pays for the counts of items; all of it, where nothing else is measured."""
    if not isinstance(mechanism, Contributions):
        return 1.0
    counts = (
        getattr(mechanism, "budgets", None) if hasattr(mechanism, "popularity_share") else None
    )
    counted = counts()[1] / amount(mechanism.budget) if counts else 1.0
    return counted * mechanism.split[0]
