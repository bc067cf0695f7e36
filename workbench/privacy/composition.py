"""Receipts, which record the privacy cost of single measurements, and the rules that add up these costs."""

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
    """Record of the privacy cost of one noisy measurement of private data, for example of a table of counts.
    Only the package `workbench.noise` writes receipts.

    The field `relation` names the change of the data that the guarantee hides. By default, one unit (usually
    a person) is added or removed. For some receipts, one unit is replaced by another, or the values of a
    single record change ("local").

    The field `part` is for measurements of disjoint groups of people. The field contains two names: the name of
    the division into groups, and the name of the measured group. An example is ("regions", "north"). Each
    person is in only one group. Therefore, the measurements of all groups together cost only as much as the
    measurements of the most expensive group. This rule is used only for guarantees about added or removed
    units.

    The field `simulated` marks noise that was drawn from a seed, so that anyone with the seed can compute the
    noise again. The field `idealised` marks noise that was drawn in floating point, for which the proof of
    the guarantee does not hold exactly. Do not publish a release with simulated or idealised noise.

    The field `theorem` is for a procedure that consists of several measurements. If a theorem proves that the
    procedure costs less than the sum of its measurements, the field cites the theorem. The field `withdrawn`
    marks a procedure whose paper states a wrong guarantee.

    The field `rho` is for a measurement whose `cost` is in ε. Every cost in ε also implies a cost in ρ, which
    is ρ = ε·tanh(ε/2). If a proof gives a smaller ρ for this measurement, the field contains the smaller ρ.
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
        """Name of the measurement. If the cost comes from a theorem, or if the guarantee is withdrawn, a remark
        follows the name.
        """
        if self.theorem:
            return f"{self.name} (by theorem: {self.theorem})"
        if self.withdrawn:
            return f"{self.name} {WITHDRAWN}"
        return self.name


# Composition


def compose(receipts: Iterable[Receipt]) -> DP | ZCDP:
    """Add up the privacy costs of several measurements of private data. If measurements are about disjoint
    groups of people, only the cost of the most expensive group counts.

    Source: Theorems 3 and 4 of McSherry, SIGMOD 2009, prove the rules for ε (sequential and parallel
    composition). Lemma 1.7 of Bun & Steinke, TCC 2016, proves the rule for ρ. Section 8 of Bun & Steinke
    proves the rule for costs that have both a ρ and a δ.

    Parameters
    ----------
    receipts : sequence of Receipt
        Receipts, which record the privacy costs of measurements of one private data set. All receipts must
        protect against the same change of the data, for example one added or removed person.

    Returns
    -------
    DP or ZCDP
        Sum of the costs, rounded up. If all costs are stated in ε, the sum is a `DP`. If any cost is a `ZCDP`,
        the sum is a `ZCDP`. For this sum, the function converts each cost in ε to the ρ that this ε implies. If
        the receipt of the cost contains a smaller ρ, the function uses the smaller ρ. If a measurement has no
        guarantee (ε = ∞), the sum is `DP(inf)`.

    Raises
    ------
    ValueError
        If the receipts protect against different changes of the data (see the field `relation`), or if their
        sum in ρ is infinite.

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
    """Return the exact sum of ε and the exact sum of δ over several measurements. The rules are the same as for
    `compose`, but the results are exact fractions.

    Parameters
    ----------
    receipts : sequence of Receipt
        Receipts, which record the privacy costs of measurements of one private data set. All receipts must
        protect against the same change of the data, for example one added or removed person.

    Returns
    -------
    epsilon, delta : Fraction
        Total ε and total δ of all measurements (the noisy answers whose receipts you pass). If measurements are
        about disjoint groups of people, only the cost of the most expensive group counts.

    Raises
    ------
    ValueError
        If the receipts protect against different changes of the data (see the field `relation`), or if one of
        the costs is ε = ∞ or in ρ.
    """
    prices = _prices(receipts)
    epsilons = [price.epsilon for price in prices if price.epsilon is not None]
    if len(epsilons) < len(prices):
        raise ValueError("a measurement priced in rho implies no epsilon without a delta")
    return sum(epsilons, Fraction(0)), _summed(prices)[1]


def exact_rho(receipts: Iterable[Receipt]) -> tuple[Fraction, Fraction]:
    """Return the exact sum of ρ and the exact sum of δ over several measurements. The rules are the same as for
    `compose`, but the results are exact fractions.

    Parameters
    ----------
    receipts : sequence of Receipt
        Receipts, which record the privacy costs of measurements of one private data set. All receipts must
        protect against the same change of the data, for example one added or removed person.

    Returns
    -------
    rho, delta : Fraction
        Total ρ and total δ of all measurements (the noisy answers whose receipts you pass). The function
        converts a cost in ε to the ρ that this ε implies. If the receipt of the cost contains a smaller ρ, the
        function uses the smaller ρ. If measurements are about disjoint groups of people, only the cost of the
        most expensive group counts.

    Raises
    ------
    ValueError
        If the receipts protect against different changes of the data (see the field `relation`), or if one of
        the costs is ε = ∞.
    """
    return _summed(_prices(receipts))


def guarantee(receipts: Iterable[Receipt], delta: float) -> DP:
    """Return the smallest ε that is proven for all measurements together, at a δ that you choose.

    The function can add up costs in ε or in ρ, because each cost in ε also implies a cost in ρ. For each
    measurement, the function uses either the ε or the ρ, so that the resulting ε is small (see
    docs/accounting.md). The result holds only if you fixed the costs of all measurements before the first
    release. If you chose a cost after you had seen an earlier answer, your guarantee is the whole budget from
    which you spend.

    Parameters
    ----------
    receipts : sequence of Receipt
        Receipts, which record the privacy costs of measurements of one private data set. All receipts must
        protect against the same change of the data, for example one added or removed person.
    delta : float
        Failure probability δ of the resulting guarantee. Choose δ before you see any answer. You may pass 0
        if the costs of all measurements are stated in ε with δ = 0.

    Returns
    -------
    DP
        Guarantee for all measurements together. The ε of this guarantee is ∞ if one of the costs is ε = ∞, or
        if the sum of the costs is too large for a float.

    Raises
    ------
    ValueError
        If the receipts protect against different changes of the data, if δ is not a probability, or if δ is too
        small. δ must be at least the sum of the δ of all measurements. If a cost is in ρ, δ must be larger than
        this sum.

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
    """Joint cost of the measurements of one division of people into groups: a ρ and a δ, and also an ε if all
    costs of these measurements are in ε.
    """

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction

    @classmethod
    def of(cls, parts: list[list[Receipt]]) -> _Price:
        """Return the joint cost of measurements of disjoint groups of people, which is the cost of the most
        expensive group.

        Each person is in one group only, so the measurements of other groups cost this person nothing.
        """
        pure = all(isinstance(r.cost, DP) for part in parts for r in part)
        return cls(
            _dearest(parts, "epsilon") if pure else None,
            max(sum((_rho(r) for r in part), Fraction(0)) for part in parts),
            _dearest(parts, "delta"),
        )

    @property
    def ratio(self) -> float:
        """Ratio of ε to ρ. If this ratio is small, adding up ε costs less than adding up ρ."""
        if self.epsilon is None or not self.rho:
            return inf
        return round_up(self.epsilon / self.rho)


def _dearest(parts: list[list[Receipt]], name: str) -> Fraction:
    """Return the largest exact sum of one field of the costs, `epsilon` or `delta`, over the measurements of
    a group of people.
    """
    return max(
        sum((Fraction(getattr(r.cost, name)) for r in part), Fraction(0)) for part in parts
    )


def _rho(receipt: Receipt) -> Fraction:
    """Return the cost of one measurement in ρ, converted from ε if necessary."""
    if isinstance(receipt.cost, ZCDP):
        return Fraction(receipt.cost.rho)
    generic = rho_above(receipt.cost.epsilon)
    return Fraction(generic if receipt.rho is None else min(generic, receipt.rho))


def _prices(receipts: Iterable[Receipt]) -> list[_Price]:
    """Return one joint cost for each division of people into groups. A measurement without a group counts
    alone.

    Raise a ValueError if a measurement guarantees nothing (ε = ∞).
    """
    partitions = _by_part(receipts)
    if _promises_nothing(partitions):
        raise ValueError("one of the measurements promises nothing (ε = ∞)")
    return [_Price.of(parts) for parts in partitions]


def _summed(prices: list[_Price]) -> tuple[Fraction, Fraction]:
    """Return the sum of ρ and the sum of δ over all `prices`."""
    rho = sum((price.rho for price in prices), Fraction(0))
    delta = sum((price.delta for price in prices), Fraction(0))
    return rho, delta


def _counted_alone(prices: list[_Price], delta: float) -> list[_Price]:
    """Return the joint costs in `prices` that should be added up as ε, because this gives a smaller total
    than adding them up as ρ.

    Floating point is exact enough here, because the guarantee is valid for any choice.
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
    """Sort receipts by their field `part`, which names a division of people into groups and one of these
    groups. A receipt without this field is treated as a division with a single group.
    """
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
