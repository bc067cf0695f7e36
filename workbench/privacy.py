"""What a look at the data costs: guarantees, receipts, and how they add up.

One convention for the whole package. Two inputs are *neighbours* when one is the other with every
record of one *unit* (usually one person) removed: `ADD_REMOVE`. A guarantee about any other relation
says so on its receipt, and receipts about different relations never add up silently.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from math import fsum, inf

from workbench.value import parameter, value
from workbench.wording import stated

ADD_REMOVE = "add-remove-one-unit"
REPLACE = "replace-one-unit"
LOCAL = "local"
RELATIONS = (ADD_REMOVE, REPLACE, LOCAL)
WITHDRAWN = "(as printed, guarantee withdrawn)"

_SLACK = 1 + 1e-9  # covers rounding when shares of a budget are added; never a privacy margin


def _at_least_zero(x) -> str | None:
    good = isinstance(x, int | float) and not isinstance(x, bool) and x >= 0  # False for NaN
    return None if good else "need a number >= 0 (inf promises nothing)"


@value
class DP:
    """(ε, δ)-differential privacy; pure when δ = 0, and no promise at all when ε = ∞.

    >>> DP(0.5) + DP(0.5, delta=1e-6)
    DP(epsilon=1.0, delta=1e-06)
    >>> DP(float("nan"))
    Traceback (most recent call last):
    ValueError: DP.epsilon = nan is not allowed: need a number >= 0 (inf promises nothing)
    """

    epsilon: float = parameter(check=_at_least_zero, doc="privacy loss ε")
    delta: float = parameter(0.0, 0, 1, doc="failure probability δ")

    def __add__(self, other: DP) -> DP:
        return DP(self.epsilon + other.epsilon, min(1.0, self.delta + other.delta))

    def __str__(self) -> str:
        if self.epsilon == inf:
            return "no privacy guarantee (ε = ∞)"
        epsilon = stated(self.epsilon)  # never rounded: it is a promise
        return f"({epsilon}, {stated(self.delta)})-DP" if self.delta else f"{epsilon}-DP"

    def covers(self, spent: DP) -> bool:
        """Whether a budget of this size pays for `spent`."""
        return spent.epsilon <= self.epsilon * _SLACK and spent.delta <= self.delta * _SLACK


@value
class Receipt:
    """One measurement of private data and its price; made by `workbench.noise` alone.

    `part` names a cell of a declared partition of the units, as (partition, part): measurements of
    different parts of one partition compose in parallel (under add-or-remove only). `simulated` marks
    noise that anyone with the seed can replay; `idealised` marks a law drawn with floating point.
    Neither is fit to publish. `theorem` says where a price stands that is below the sum of its draws;
    `withdrawn` marks a procedure as a paper prints it, whose guarantee is wrong.
    """

    name: str
    cost: DP
    relation: str = parameter(ADD_REMOVE, choices=RELATIONS)
    simulated: bool = False
    idealised: bool = False
    part: tuple[str, str] | None = None
    theorem: str = ""
    withdrawn: bool = False

    @property
    def description(self) -> str:
        """The name, and what is particular about the price: for people, and in files."""
        if self.theorem:
            return f"{self.name} (by theorem: {self.theorem})"
        if self.withdrawn:
            return f"{self.name} {WITHDRAWN}"
        return self.name


def compose(receipts: Iterable[Receipt]) -> DP:
    """The price of all measurements together: sums in sequence, the maximum over parts of a partition.

    Source: sequential and parallel composition, McSherry, SIGMOD 2009, Theorems 3 and 4.

    Parameters
    ----------
    receipts : of measurements of one private data set, all about one relation.

    Returns
    -------
    DP
        Their sum in sequence; of parts of a declared partition the dearest.

    Raises
    ------
    ValueError
        If receipts are about different relations.

    >>> compose([Receipt("a", DP(0.5)), Receipt("b", DP(0.25))])
    DP(epsilon=0.75)
    """
    costs = _costs_by_part(receipts)
    return _total(_largest(map(_total, parts)) for parts in costs)


def exact_cost(receipts: Iterable[Receipt]) -> tuple[Fraction, Fraction]:
    """`compose` without rounding: ε and δ of all measurements together.

    Parameters
    ----------
    receipts : of measurements of one private data set, all about one relation.

    Returns
    -------
    epsilon, delta : Fraction
        Their sums in sequence; of parts of a declared partition the dearest.

    Raises
    ------
    ValueError
        If receipts are about different relations, or one promises nothing.
    """
    epsilon = Fraction(0)
    delta = Fraction(0)
    for parts in _costs_by_part(receipts):
        if any(_total(part).epsilon == inf for part in parts):
            raise ValueError("one of the measurements promises nothing (ε = ∞)")
        epsilon += max(sum(Fraction(cost.epsilon) for cost in part) for part in parts)
        delta += max(sum(Fraction(cost.delta) for cost in part) for part in parts)
    return epsilon, delta


def _costs_by_part(receipts: Iterable[Receipt]) -> list[list[list[DP]]]:
    """What was paid on each part of each partition; what declares none is a partition of its own."""
    receipts = tuple(receipts)
    relations = {r.relation for r in receipts}
    if len(relations) > 1:
        raise ValueError(
            f"receipts about different relations do not add up: {sorted(relations)}"
        )
    costs: dict = defaultdict(lambda: defaultdict(list))
    for i, r in enumerate(receipts):
        # a replaced unit may change its part, so that only adding or removing one is parallel
        declared = r.part if r.relation == ADD_REMOVE else None
        partition, part = declared or (i, "all")
        costs[partition][part].append(r.cost)
    return [list(parts.values()) for parts in costs.values()]


def _largest(costs: Iterable[DP]) -> DP:
    costs = tuple(costs)
    return DP(max(c.epsilon for c in costs), max(c.delta for c in costs))


def _total(costs: Iterable[DP]) -> DP:
    costs = tuple(costs)
    if any(c.epsilon == inf for c in costs):
        return DP(inf, min(1.0, fsum(c.delta for c in costs)))
    return DP(fsum(c.epsilon for c in costs), min(1.0, fsum(c.delta for c in costs)))
