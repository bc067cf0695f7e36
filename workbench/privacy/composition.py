"""Receipts for single measurements, and the rules by which their costs compose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import field
from fractions import Fraction
from math import inf
from typing import Any, NamedTuple

from workbench.privacy.budgets import (
    DP,
    ZCDP,
    epsilon_about,
    epsilon_above,
    finite_above_zero,
    refuse_delta,
    rho_above,
    rounded,
)
from workbench.privacy.enclosures import round_up
from workbench.value import not_allowed, parameter, value

# Receipts

ADD_REMOVE = "add-remove-one-unit"
REPLACE = "replace-one-unit"
LOCAL = "local"
RELATIONS = (ADD_REMOVE, REPLACE, LOCAL)
WITHDRAWN = "(as printed, guarantee withdrawn)"


@value
class Receipt:
    """Record of one measurement of private data, with its privacy cost. Only the module `workbench.noise` makes
    receipts.

    `part` is a pair (partition, part). It says that a declared partition divides the units into parts, and
    that the measurement used one of these. Measurements of different parts cost as much as the most
    expensive one, if units are added or removed. `simulated` marks noise that anyone with the seed can
    replay. `idealised` marks noise that was drawn in floating point. You may not publish either. `theorem`
    cites a theorem which proves that the cost is below the sum of the draws. `withdrawn` marks a procedure
    whose printed guarantee is wrong. A measurement that is priced in ε may also have a `rho`, which follows
    from its structure, for example from noise on each of many counts. It is smaller than ε·tanh(ε/2), the ρ
    that ε implies.
    """

    name: str
    cost: DP | ZCDP
    relation: str = parameter(ADD_REMOVE, choices=RELATIONS)
    simulated: bool = False
    idealised: bool = False
    part: tuple[str, str] | None = None
    theorem: str = ""
    withdrawn: bool = False
    rho: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        wrong = None if self.rho is None else finite_above_zero(self.rho)
        if wrong:
            raise not_allowed(self, "rho", wrong)

    @property
    def description(self) -> str:
        """Return the name of the measurement. If its cost is unusual, a remark explains this."""
        if self.theorem:
            return f"{self.name} (by theorem: {self.theorem})"
        if self.withdrawn:
            return f"{self.name} {WITHDRAWN}"
        return self.name


# Composition


def compose(receipts: Iterable[Receipt]) -> DP | ZCDP:
    """Add up the privacy costs of measurements. If measurements are about disjoint parts of the data, only the
    most expensive part counts.

    Source: sequential and parallel composition are Theorems 3 and 4 of McSherry, SIGMOD 2009. Composition
    of zCDP is Lemma 1.7 of Bun & Steinke, TCC 2016. Their section 8 adds a δ.

    Parameters
    ----------
    receipts : sequence of Receipt
        Receipts of measurements of one private data set, all for one relation.

    Returns
    -------
    DP or ZCDP
        Sum of the costs, rounded up. Of the parts of a declared partition, only the most expensive one
        counts. If any cost is a `ZCDP`, the sum is a `ZCDP`, and measurements priced in ε count with their
        ρ.

    Raises
    ------
    ValueError
        If the receipts are for different relations.

    >>> compose([Receipt("a", DP(0.5)), Receipt("b", DP(0.25))])
    DP(epsilon=0.75)
    >>> compose([Receipt("a", ZCDP(0.5)), Receipt("b", ZCDP(0.25))])
    ZCDP(rho=0.75)
    """
    partitions = _by_part(receipts)
    if _promises_nothing(partitions):
        return DP(inf)
    if all(isinstance(r.cost, DP) for parts in partitions for part in parts for r in part):
        epsilon, delta = (
            sum((_dearest(parts, name) for parts in partitions), Fraction(0))
            for name in ("epsilon", "delta")
        )
        return DP(round_up(epsilon), min(1.0, round_up(delta)))
    rho, delta = _summed([_Price.of(parts) for parts in partitions])
    return rounded(rho, delta)


def exact_cost(receipts: Iterable[Receipt]) -> tuple[Fraction, Fraction]:
    """Add up the costs ε of measurements as `compose` does, but without rounding.

    Parameters
    ----------
    receipts : sequence of Receipt
        Receipts for measurements of one private data set, all for one relation.

    Returns
    -------
    epsilon, delta : Fraction
        Sums over all measurements. Of the parts of a declared partition, only the most expensive one
        counts.

    Raises
    ------
    ValueError
        If the receipts are for different relations, or one of them promises nothing or has no ε.
    """
    prices = _prices(receipts)
    epsilons = [price.epsilon for price in prices if price.epsilon is not None]
    if len(epsilons) < len(prices):
        raise ValueError("a measurement priced in rho implies no epsilon without a delta")
    return sum(epsilons, Fraction(0)), _summed(prices)[1]


def exact_rho(receipts: Iterable[Receipt]) -> tuple[Fraction, Fraction]:
    """Add up the costs ρ of measurements in zCDP as `compose` does, but without rounding.

    Parameters
    ----------
    receipts : sequence of Receipt
        Receipts for measurements of one private data set, all for one relation.

    Returns
    -------
    rho, delta : Fraction
        Sums over all measurements. A measurement priced in ε counts with its ρ. Of the parts of a declared
        partition, only the most expensive one counts.

    Raises
    ------
    ValueError
        If the receipts are for different relations, or one of them promises nothing.
    """
    return _summed(_prices(receipts))


def guarantee(receipts: Iterable[Receipt], delta: float) -> DP:
    """Return the smallest ε that is proven for all measurements together, at a δ that you choose.

    A measurement that is priced in ε also has a ρ. The function adds up either its ε or its ρ, and chooses
    what gives the smallest total (see the page on accounting). The result holds only if all prices were
    fixed before the first release. If you chose prices after seeing earlier answers, the guarantee is the
    budget from which you spent.

    Parameters
    ----------
    receipts : sequence of Receipt
        Receipts of measurements of one private data set, all for one relation.
    delta : float
        Failure probability, chosen beforehand. It may be 0 if every measurement is priced in ε without a δ.

    Returns
    -------
    DP
        Guarantee of all measurements. ε is ∞ if one of them promises nothing, or if the sum is too large
        for a float.

    Raises
    ------
    ValueError
        If δ is not a probability, or too small for the measurements.

    >>> guarantee([Receipt("a", ZCDP(0.25)), Receipt("b", DP(0.5))], 1e-6)
    DP(epsilon=4.042291300477016, delta=1e-06)
    """
    partitions = _by_part(receipts)
    if _promises_nothing(partitions):
        return DP(inf, delta)
    prices = [_Price.of(parts) for parts in partitions]
    whole, spent = _summed(prices)
    epsilons = [price.epsilon for price in prices if price.epsilon is not None]
    if len(epsilons) == len(prices) and spent == delta:
        return DP(round_up(sum(epsilons, Fraction(0))), delta)
    refuse_delta(delta, spent)
    if round_up(whole) == inf:
        return DP(inf, delta)
    alone = _counted_alone(prices, float(Fraction(delta) - spent))
    epsilon = sum((price.epsilon or Fraction(0) for price in alone), Fraction(0))
    rho = whole - _summed(alone)[0]
    return DP(round_up(epsilon + epsilon_above(rho, Fraction(delta) - spent)), delta)


class _Price(NamedTuple):
    """Cost of the measurements of one partition: ε if each of them has one, and ρ and δ."""

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction

    @classmethod
    def of(cls, parts: list[list[Receipt]]) -> _Price:
        """Return the cost of the most expensive part. A unit is in one part only, so the other parts cost
        it nothing.
        """
        pure = all(isinstance(r.cost, DP) for part in parts for r in part)
        return cls(
            _dearest(parts, "epsilon") if pure else None,
            max(sum((_rho(r) for r in part), Fraction(0)) for part in parts),
            _dearest(parts, "delta"),
        )

    @property
    def ratio(self) -> float:
        """Return ε divided by ρ. If the ratio is small, counting the measurement by its ε is cheaper."""
        if self.epsilon is None or not self.rho:
            return inf
        return round_up(self.epsilon / self.rho)


def _dearest(parts: list[list[Receipt]], name: str) -> Fraction:
    """Return the largest exact sum of one field of the costs over the parts of a partition."""
    return max(
        sum((Fraction(getattr(r.cost, name)) for r in part), Fraction(0)) for part in parts
    )


def _rho(receipt: Receipt) -> Fraction:
    """Return the cost of a measurement in zCDP."""
    if isinstance(receipt.cost, ZCDP):
        return Fraction(receipt.cost.rho)
    generic = rho_above(receipt.cost.epsilon)
    return Fraction(generic if receipt.rho is None else min(generic, receipt.rho))


def _prices(receipts: Iterable[Receipt]) -> list[_Price]:
    """Return the cost of each partition, or raise a ValueError if a measurement promises nothing."""
    partitions = _by_part(receipts)
    if _promises_nothing(partitions):
        raise ValueError("one of the measurements promises nothing (ε = ∞)")
    return [_Price.of(parts) for parts in partitions]


def _summed(prices: list[_Price]) -> tuple[Fraction, Fraction]:
    """Return the sums of ρ and δ over partitions."""
    rho = sum((price.rho for price in prices), Fraction(0))
    delta = sum((price.delta for price in prices), Fraction(0))
    return rho, delta


def _counted_alone(prices: list[_Price], delta: float) -> list[_Price]:
    """Return the partitions whose ε is cheaper to add. Floating point is enough here, because any
    choice is valid.
    """
    ordered = sorted(prices, key=lambda price: price.ratio)
    ratios = [price.ratio for price in ordered] + [inf]
    epsilon = 0.0
    rho = round_up(_summed(prices)[0])
    best = epsilon_about(rho, delta)
    cut = 0
    for i, price in enumerate(ordered):
        if price.epsilon is None:
            break
        epsilon += round_up(price.epsilon)
        rho -= float(price.rho)
        if ratios[i + 1] > ratios[i] or ratios[i + 1] == inf:  # else further is better still
            total = epsilon + epsilon_about(rho if i + 1 < len(prices) else 0.0, delta)
            if total <= best:
                best = total
                cut = i + 1
    return ordered[:cut]


def _by_part(receipts: Iterable[Receipt]) -> list[list[list[Receipt]]]:
    """Group receipts by partition and part. A receipt without a part is a partition of its own."""
    receipts = tuple(receipts)
    relations = {r.relation for r in receipts}
    if len(relations) > 1:
        raise ValueError(
            f"receipts for different neighbouring relations do not add up: {sorted(relations)}"
        )
    partitions: dict[Any, dict[Any, list[Receipt]]] = defaultdict(lambda: defaultdict(list))
    for i, r in enumerate(receipts):
        # a replaced unit may change its part, so that only adding or removing one is parallel
        declared = r.part if r.relation == ADD_REMOVE else None
        partition, part = declared or (i, "all")
        partitions[partition][part].append(r)
    return [list(parts.values()) for parts in partitions.values()]


def _promises_nothing(partitions: list[list[list[Receipt]]]) -> bool:
    costs = (r.cost for parts in partitions for part in parts for r in part)
    return any(isinstance(cost, DP) and cost.epsilon == inf for cost in costs)
