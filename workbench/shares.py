"""What a unit moves, and how a budget is split among measurements and becomes the law of noise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from workbench import noise
from workbench.arrays import Int
from workbench.enclosures import round_down
from workbench.estimates.law import GAUSSIAN, GEOMETRIC, Law
from workbench.noise.additive import NoisyValues
from workbench.privacy import DP, ZCDP
from workbench.table import Bound
from workbench.transform import Basis, Cells


def private_bound(table: Any) -> Bound:
    """The bound of a private table.

    Parameters
    ----------
    table : private data with a `bound`.

    Returns
    -------
    Bound
        How far one unit moves the counts.

    Raises
    ------
    ValueError
        If the table is public.
    """
    if not isinstance(table.bound, Bound):
        raise ValueError(
            "the table is PUBLIC: it can be shown as it is, and cannot be spent on (a private table "
            "states a Bound)"
        )
    return table.bound


def sensitivity(table: Any) -> float:
    """How far one unit moves all counts together: the l1 of `private_bound`."""
    return private_bound(table).l1


def split_epsilon(epsilon: float, shares: Sequence[Fraction]) -> list[float]:
    """ε divided among measurements, rounded so that together they are never more.

    Parameters
    ----------
    epsilon : what all measurements may cost together.
    shares : of each of them; the last one gets what is left.

    Returns
    -------
    list of float
        ε of each.
    """
    parts = []
    rest = Fraction(epsilon)
    for share in shares[:-1]:
        parts.append(round_down(Fraction(epsilon) * share))
        rest -= Fraction(parts[-1])
    return [*parts, round_down(rest)]


def amount(budget: DP | ZCDP) -> float:
    """ε, or ρ: what is split among measurements.

    Parameters
    ----------
    budget : of either kind.

    Returns
    -------
    float
        Its ε or its ρ.
    """
    return budget.rho if isinstance(budget, ZCDP) else budget.epsilon


def inverse_scale(budget: DP | ZCDP) -> float:
    """One over the scale of the noise that it buys for one count.

    Parameters
    ----------
    budget : of either kind.

    Returns
    -------
    float
        ε, or √(2ρ).
    """
    return sqrt(2 * budget.rho) if isinstance(budget, ZCDP) else budget.epsilon


def part_of(budget: DP | ZCDP, share: float) -> DP | ZCDP:
    """A budget of the same kind, of that ε or ρ, and no δ.

    Parameters
    ----------
    budget : of either kind.
    share : a part of its `amount`.

    Returns
    -------
    DP or ZCDP
        As the budget.
    """
    return ZCDP(share) if isinstance(budget, ZCDP) else DP(share)


def add_noise(
    values: Int[np.ndarray, " n"],
    budget: DP | ZCDP,
    *,
    l1: Fraction | float,
    l2_squared: Fraction,
    linf: float | None = None,
    law: str = "geometric",
    rng: np.random.Generator | None = None,
) -> NoisyValues:
    """Noise on whole numbers, of the kind that the budget pays for.

    Parameters
    ----------
    values : int[n], whole numbers.
    budget : an ε buys noise of the named law, a ρ Gaussian noise.
    l1, l2_squared : how far one unit moves all of them together, in either norm.
    linf : how far it moves one of them; l1, if not given.
    law : as for `noise.add_noise`.
    rng : a seeded generator for noise that can be replayed, or None to publish.

    Returns
    -------
    NoisyValues
        The noisy values, their noise's variance, and a receipt.
    """
    if isinstance(budget, ZCDP):
        noisy, receipt = noise.gaussian(values, l2_squared=l2_squared, rho=budget.rho, rng=rng)
        return NoisyValues(noisy, gaussian_law(l2_squared, budget).variance, receipt)
    return noise.add_noise(values, l1=l1, epsilon=budget.epsilon, law=law, linf=linf, rng=rng)


def gaussian_law(l2_squared: Fraction | float, budget: ZCDP) -> Law:
    """The law of the noise that a ρ buys.

    Parameters
    ----------
    l2_squared : how far one unit moves the values, in the l2 norm, squared.
    budget : what pays for it.

    Returns
    -------
    Law
        Of rate ρ/l2².
    """
    return Law(GAUSSIAN, float(Fraction(budget.rho) / Fraction(l2_squared)))


def as_bound(bound: Bound | float) -> Bound:
    """A bound as it is; of a number the widest that it allows, all of it in one cell.

    Parameters
    ----------
    bound : a bound, or how far one unit moves a table in all.

    Returns
    -------
    Bound
        Of that l1.
    """
    return bound if isinstance(bound, Bound) else Bound(1, bound)


def blocks_within(
    basis: Basis, bound: Bound, budget: DP | ZCDP
) -> list[noise.Block] | list[noise.GaussianBlock]:
    """What noise is put on, of the kind that the budget pays for, and what each part of it costs.

    Parameters
    ----------
    basis : a transform on a domain.
    bound : how far one unit moves the table.
    budget : what all of it may cost.

    Returns
    -------
    list of Block or GaussianBlock
        Whose ε, or ρ, add up to the budget.
    """
    if isinstance(budget, DP):
        return noise_blocks(basis, l1=bound.l1, epsilon=budget.epsilon, linf=bound.linf)
    moved = [nodes.l2_squared(bound) for nodes in basis.noise_blocks]
    costs = [x * nodes.weight for x, nodes in zip(moved, basis.noise_blocks, strict=True)]
    rhos = split_epsilon(budget.rho, [cost / sum(costs) for cost in costs])
    return [
        noise.GaussianBlock(nodes.size, x, rho)
        for nodes, x, rho in zip(basis.noise_blocks, moved, rhos, strict=True)
    ]


def law_within(basis: Basis, bound: Bound, budget: DP | ZCDP) -> Law:
    """The law of the noise of a whole release in a basis, of which each part has its share.

    Parameters
    ----------
    basis, bound, budget : as for `blocks_within`.

    Returns
    -------
    Law
        Of rate ε/l1, or of ρ/l2² where parts are weighed.
    """
    if isinstance(budget, DP):
        return Law(GEOMETRIC, budget.epsilon / bound.l1)
    moved = sum(nodes.l2_squared(bound) * nodes.weight for nodes in basis.noise_blocks)
    return gaussian_law(moved, budget)


def noise_blocks(
    basis: Basis, *, l1: float, epsilon: float, linf: float | None = None
) -> list[noise.Block]:
    """What noise is put on: sizes, sensitivities, and shares of ε that add up to it.

    `linf` is how far a unit moves a cell; any node that is a sum of cells, or a difference of two such
    sums, moves by l1 at most.
    """
    most = linf if isinstance(basis, Cells) else l1
    budgets = split_epsilon(epsilon, [nodes.share for nodes in basis.noise_blocks])
    return [
        noise.Block(nodes.size, Fraction(l1) * nodes.nodes_per_count, budget, most)
        for nodes, budget in zip(basis.noise_blocks, budgets, strict=True)
    ]
