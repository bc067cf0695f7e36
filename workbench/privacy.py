"""What a look at the data costs: guarantees, receipts, and how they add up.

`DP` is (ε, δ)-differential privacy; `ZCDP` is zero-concentrated differential privacy, whose ρ adds up more
tightly over many measurements. What one implies of the other is proven in rational arithmetic and
rounded to the safe side once, at the end.

One convention for the whole package. Two inputs are *neighbours* when one is the other with every
record of one *unit* (usually one person) removed: `ADD_REMOVE`. A guarantee about any other relation
says so on its receipt, and receipts about different relations never add up silently.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from math import expm1, fsum, inf, log, log1p, nextafter, sqrt
from sys import float_info
from typing import Any, NamedTuple

from workbench.enclosures import exp_neg, ln, round_down, round_up
from workbench.value import not_allowed, parameter, value
from workbench.wording import stated

ADD_REMOVE = "add-remove-one-unit"
REPLACE = "replace-one-unit"
LOCAL = "local"
RELATIONS = (ADD_REMOVE, REPLACE, LOCAL)
WITHDRAWN = "(as printed, guarantee withdrawn)"

_LARGEST = float_info.max
_BITS = 256  # of enclosed logarithms and exponentials
_SLACK = 1 + 1e-9  # covers rounding when shares of a budget are added; never a privacy margin


def _at_least_zero(x: Any) -> str | None:
    good = isinstance(x, int | float) and not isinstance(x, bool) and x >= 0  # False for NaN
    return None if good else "need a number >= 0 (inf promises nothing)"


def _finite_above_zero(x: Any) -> str | None:
    good = isinstance(x, int | float) and not isinstance(x, bool) and 0 < x <= _LARGEST
    return None if good else "need a finite number > 0"


def _from_zero_below_one(x: Any) -> str | None:
    good = isinstance(x, int | float) and not isinstance(x, bool) and 0 <= x < 1
    return None if good else "need a number >= 0 and < 1"


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
class ZCDP:
    """ρ-zero-concentrated differential privacy; δ-approximately where δ > 0.

    Of every order α > 1 the Rényi divergence between the outputs on two neighbours is at most α·ρ. It
    says nothing of one ε: `at` gives the ε that it implies at a δ.

    Source: Bun & Steinke, TCC 2016, Definitions 1.1 and 8.1.

    >>> ZCDP(0.25) + ZCDP(0.5, delta=1e-10)
    ZCDP(rho=0.75, delta=1e-10)
    >>> print(ZCDP(0.5).at(1e-6))
    (5.221534444530169, 1e-06)-DP
    """

    rho: float = parameter(check=_finite_above_zero, doc="privacy loss ρ")
    delta: float = parameter(0.0, check=_from_zero_below_one, doc="probability δ of no promise")

    @classmethod
    def within(cls, budget: DP) -> ZCDP:
        """The largest ρ that an (ε, δ) pays for, rounded down.

        Parameters
        ----------
        budget : DP
            A finite ε > 0, and 0 < δ < 1.

        Returns
        -------
        ZCDP
            Which `at(budget.delta)` never costs more than the budget.

        Raises
        ------
        ValueError
            If δ = 0, at which no ρ promises any ε, or no float holds the ρ.

        >>> print(ZCDP.within(DP(1.0, 1e-9)))
        0.014973057673588525-zCDP
        """
        epsilon = budget.epsilon
        if not 0 < epsilon < inf or not 0 < budget.delta < 1:
            raise ValueError(
                f"{budget!r} is not allowed: need a finite epsilon > 0 and 0 < delta < 1, since "
                "at delta = 0 no rho-zCDP promises any epsilon"
            )
        shift = _shift_for_epsilon(epsilon, budget.delta)
        rho = round_down(
            (Fraction(epsilon) - _price_of_order(shift, Fraction(budget.delta))) / (1 + shift)
        )
        while rho > 0 and cls(rho).at(budget.delta).epsilon > epsilon:  # by its last digit
            rho = nextafter(rho * (1 - 2.0**-52), 0)
        if rho <= 0:
            raise ValueError(
                f"{budget!r} is not allowed: no rho that a float holds is within it"
            )
        return cls(rho)

    def at(self, delta: float) -> DP:
        """The (ε, δ)-differential privacy that it implies: proven, and rounded up.

        Source: Canonne, Kamath & Steinke, NeurIPS 2020, Corollary 13. Every order α > 1 gives an ε that
        holds; the best one is looked for in floating point, and its ε is computed rigorously.

        Parameters
        ----------
        delta : float
            Between 0 and 1, and above the δ of this budget; to be chosen before anything is seen.

        Returns
        -------
        DP

        Raises
        ------
        ValueError
            If δ is no such number.
        """
        _refuse_delta(delta, Fraction(self.delta))
        rest = Fraction(delta) - Fraction(self.delta)
        return DP(round_up(epsilon_above(Fraction(self.rho), rest)), delta)

    def __add__(self, other: ZCDP) -> ZCDP:
        if not isinstance(other, ZCDP):
            return NotImplemented
        rho = Fraction(self.rho) + Fraction(other.rho)
        delta = Fraction(self.delta) + Fraction(other.delta)
        return _rounded(rho, delta)

    def __str__(self) -> str:
        text = f"{stated(self.rho)}-zCDP"
        return f"{stated(self.delta)}-approximate {text}" if self.delta else text

    def covers(self, spent: DP | ZCDP) -> bool:
        """Whether a budget of this size pays for `spent`, of a `DP` at the ρ that it implies."""
        if isinstance(spent, DP):
            if spent.epsilon == inf:
                return False
            spent = _rounded(Fraction(rho_above(spent.epsilon)), Fraction(spent.delta))
        return spent.rho <= self.rho and spent.delta <= self.delta


def _rounded(rho: Fraction, delta: Fraction) -> ZCDP:
    """Of exact sums, rounded up; a ValueError for what promises nothing."""
    if delta >= 1:
        raise ValueError(f"delta = {float(delta):g} in all: together these promise nothing")
    return ZCDP(round_up(rho), round_up(delta))


def _refuse_delta(delta: float, spent: Fraction) -> None:
    """A ValueError unless an ε can be told at this δ, of which measurements have `spent` some."""
    if not (isinstance(delta, int | float) and not isinstance(delta, bool) and 0 < delta < 1):
        raise ValueError(
            f"delta = {delta!r} is not allowed: need 0 < delta < 1; at delta = 0 zCDP promises no epsilon"
        )
    if delta <= spent:
        raise ValueError(
            f"delta = {stated(delta)} is not allowed: need more than the {stated(round_up(spent))} that "
            "measurements spend of it"
        )


def epsilon_above(rho: Fraction, delta: Fraction) -> Fraction:
    """An upper bound, to some 60 digits at the order taken, of the ε that ρ-zCDP implies at δ."""
    if not rho:
        return Fraction(0)
    shift = _shift_for_rho(float(rho), float(delta))
    return max(Fraction(0), (1 + shift) * rho + _price_of_order(shift, delta))


@lru_cache(1024)
def rho_above(epsilon: float) -> float:
    """The ρ that ε-DP implies, rounded up: ε·tanh(ε/2), at most ε²/2.

    It is randomised response's, and of ε-DP nothing is worse.
    """
    exact = Fraction(epsilon)
    decayed = exp_neg(exact, _BITS).below
    return round_up(min(exact**2 / 2, exact * (1 - decayed) / (1 + decayed)))


def _price_of_order(shift: Fraction, delta: Fraction) -> Fraction:
    """What δ costs at the order α = 1 + shift: (ln 1/δ − α·ln(α/(α − 1)) − ln(α − 1))/(α − 1), from above.

    Of ρ-zCDP, ε = α·ρ + this.
    """
    order = 1 + shift
    logarithm = ln(1 / delta, _BITS).above - order * ln(order / shift, _BITS).below
    if shift >= 1:
        return (logarithm - ln(shift, _BITS).below) / shift
    return (logarithm + ln(1 / shift, _BITS).above) / shift


def _epsilon_about(rho: float, delta: float) -> float:
    """`epsilon_above` in floating point."""
    if rho <= 0:
        return 0.0
    shift = float(_shift_for_rho(rho, delta))
    return max(0.0, (1 + shift) * rho + _price_about(shift, -log(delta)))


def _price_about(shift: float, logarithm: float) -> float:
    """`_price_of_order` in floating point, of ln 1/δ."""
    return (logarithm - (1 + shift) * log1p(1 / shift) - log(shift)) / shift


def _shift_for_rho(rho: float, delta: float) -> Fraction:
    """α − 1 of about the best order for this ρ, where ρ·(α − 1)² = ln 1/(αδ)."""
    logarithm = -log(delta)
    most = min(sqrt(logarithm / rho), _expm1(logarithm))
    least = min(sqrt(logarithm / rho / 2), _expm1(logarithm / 2))
    return _root(lambda shift: rho * shift**2 + log1p(shift) - logarithm, least, most)


def _shift_for_epsilon(epsilon: float, delta: float) -> Fraction:
    """α − 1 of about the best order for this ε: that of the ρ which implies it."""
    logarithm = -log(delta)

    def missing(shift: float) -> float:
        rho = (logarithm - log1p(shift)) / shift**2
        return epsilon - (1 + shift) * rho - _price_about(shift, logarithm)

    return _root(missing, 1e-150, _expm1(logarithm))


def _expm1(x: float) -> float:
    return expm1(min(x, 700.0))


def _root(increasing: Callable[[float], float], low: float, high: float) -> Fraction:
    """Where a function changes its sign, about, by halving the logarithm."""
    for _ in range(50):
        middle = sqrt(low) * sqrt(high)
        if increasing(middle) < 0:
            low = middle
        else:
            high = middle
    return Fraction(high)


@value
class Receipt:
    """One measurement of private data and its price; made by `workbench.noise` alone.

    `part` names a cell of a declared partition of the units, as (partition, part): measurements of
    different parts of one partition compose in parallel (under add-or-remove only). `simulated` marks
    noise that anyone with the seed can replay; `idealised` marks a law drawn with floating point.
    Neither is fit to publish. `theorem` says where a price stands that is below the sum of its draws;
    `withdrawn` marks a procedure as a paper prints it, whose guarantee is wrong. `rho` is the ρ that
    follows from the structure of a measurement whose cost is an ε, such as noise on each of many counts:
    it is below the ε·tanh(ε/2) that any measurement of this ε is charged.
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
        wrong = None if self.rho is None else _finite_above_zero(self.rho)
        if wrong:
            raise not_allowed(self, "rho", wrong)

    @property
    def description(self) -> str:
        """The name, and what is particular about the price: for people, and in files."""
        if self.theorem:
            return f"{self.name} (by theorem: {self.theorem})"
        if self.withdrawn:
            return f"{self.name} {WITHDRAWN}"
        return self.name


def compose(receipts: Iterable[Receipt]) -> DP | ZCDP:
    """The price of all measurements together: sums in sequence, the maximum over parts of a partition.

    Source: sequential and parallel composition, McSherry, SIGMOD 2009, Theorems 3 and 4; of zCDP, Bun &
    Steinke, TCC 2016, Lemmas 2.3 and 8.2.

    Parameters
    ----------
    receipts : of measurements of one private data set, all about one relation.

    Returns
    -------
    DP or ZCDP
        Their sum in sequence; of parts of a declared partition the dearest. A `ZCDP` as soon as one
        of them is, where a measurement of some ε counts with its ρ.

    Raises
    ------
    ValueError
        If receipts are about different relations.

    >>> compose([Receipt("a", DP(0.5)), Receipt("b", DP(0.25))])
    DP(epsilon=0.75)
    >>> compose([Receipt("a", ZCDP(0.5)), Receipt("b", ZCDP(0.25))])
    ZCDP(rho=0.75)
    """
    partitions = _by_part(receipts)
    costs: list[list[list[Any]]] = [
        [[r.cost for r in part] for part in parts] for parts in partitions
    ]
    if all(isinstance(cost, DP) for parts in costs for part in parts for cost in part):
        return _total(_largest(map(_total, parts)) for parts in costs)
    if _promises_nothing(partitions):
        return DP(inf)
    rho, delta = _summed([_Price.of(parts) for parts in partitions])
    return _rounded(rho, delta)


def exact_cost(receipts: Iterable[Receipt]) -> tuple[Fraction, Fraction]:
    """`compose` of pure measurements without rounding: ε and δ of all together.

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
        If receipts are about different relations, or one promises nothing, or none of any ε.
    """
    prices = _prices(receipts)
    epsilons = [price.epsilon for price in prices if price.epsilon is not None]
    if len(epsilons) < len(prices):
        raise ValueError("a measurement under zCDP promises no epsilon without a delta")
    return sum(epsilons, Fraction(0)), _summed(prices)[1]


def exact_rho(receipts: Iterable[Receipt]) -> tuple[Fraction, Fraction]:
    """`compose` in zCDP: ρ and δ of all measurements together, those of some ε at their ρ.

    Parameters
    ----------
    receipts : of measurements of one private data set, all about one relation.

    Returns
    -------
    rho, delta : Fraction
        Their sums in sequence; of parts of a declared partition the dearest.

    Raises
    ------
    ValueError
        If receipts are about different relations, or one promises nothing.
    """
    return _summed(_prices(receipts))


def guarantee(receipts: Iterable[Receipt], delta: float) -> DP:
    """The (ε, δ) of all measurements together, at a δ that the reader names: the smallest that is proven.

    Measurements of some ε add up as they are, or by their ρ together with those under zCDP, whichever is
    less for each. Of all ways to choose, the best puts those by themselves that have the least ε for
    their ρ (see the page on accounting). It holds for prices fixed before anything was released; where
    they were chosen by earlier answers, what holds is the budget of the session that they were spent from.

    Parameters
    ----------
    receipts : of measurements of one private data set, all about one relation.
    delta : a failure probability chosen beforehand; 0 where every measurement has an ε and no δ.

    Returns
    -------
    DP
        With an ε of ∞ if one of them promises nothing.

    Raises
    ------
    ValueError
        If δ is no probability, or too little for what is measured.

    >>> guarantee([Receipt("a", ZCDP(0.25)), Receipt("b", DP(0.5))], 1e-6)
    DP(epsilon=4.042291300477016, delta=1e-06)
    """
    partitions = _by_part(receipts)
    if _promises_nothing(partitions):
        return DP(inf, delta)
    prices = [_Price.of(parts) for parts in partitions]
    spent = _summed(prices)[1]
    epsilons = [price.epsilon for price in prices if price.epsilon is not None]
    if len(epsilons) == len(prices) and spent == delta:
        return DP(round_up(sum(epsilons, Fraction(0))), delta)
    _refuse_delta(delta, spent)
    alone = _counted_alone(prices, float(Fraction(delta) - spent))
    epsilon = sum((price.epsilon or Fraction(0) for price in alone), Fraction(0))
    rho = _summed(prices)[0] - _summed(alone)[0]
    return DP(round_up(epsilon + epsilon_above(rho, Fraction(delta) - spent)), delta)


class _Price(NamedTuple):
    """What the measurements of one partition cost: ε where each has one, and ρ and δ."""

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction

    @classmethod
    def of(cls, parts: list[list[Receipt]]) -> _Price:
        """The dearest of the parts, of which only one has the unit."""
        costs: list[list[Any]] = [[r.cost for r in part] for part in parts]
        pure = all(isinstance(cost, DP) for part in costs for cost in part)
        none = Fraction(0)
        return cls(
            max(sum((Fraction(cost.epsilon) for cost in part), none) for part in costs)
            if pure
            else None,
            max(sum((_rho(r) for r in part), none) for part in parts),
            max(sum((Fraction(cost.delta) for cost in part), none) for part in costs),
        )

    @property
    def ratio(self) -> float:
        """ε for its ρ: what has little is better counted by itself."""
        if self.epsilon is None or not self.rho:
            return inf
        return float(self.epsilon / self.rho)


def _rho(receipt: Receipt) -> Fraction:
    """What a measurement costs in zCDP."""
    if isinstance(receipt.cost, ZCDP):
        return Fraction(receipt.cost.rho)
    generic = rho_above(receipt.cost.epsilon)
    return Fraction(generic if receipt.rho is None else min(generic, receipt.rho))


def _prices(receipts: Iterable[Receipt]) -> list[_Price]:
    """Of each partition; a ValueError if a measurement promises nothing."""
    partitions = _by_part(receipts)
    if _promises_nothing(partitions):
        raise ValueError("one of the measurements promises nothing (ε = ∞)")
    return [_Price.of(parts) for parts in partitions]


def _summed(prices: list[_Price]) -> tuple[Fraction, Fraction]:
    """ρ and δ in sequence."""
    rho = sum((price.rho for price in prices), Fraction(0))
    delta = sum((price.delta for price in prices), Fraction(0))
    return rho, delta


def _counted_alone(prices: list[_Price], delta: float) -> list[_Price]:
    """Those whose ε is better added as it is, judged in floating point: any choice is valid."""
    ordered = sorted(prices, key=lambda price: price.ratio)
    ratios = [price.ratio for price in ordered] + [inf]
    epsilon = 0.0
    rho = float(sum(price.rho for price in prices))
    best = _epsilon_about(rho, delta)
    cut = 0
    for i, price in enumerate(ordered):
        if price.epsilon is None:
            break
        epsilon += float(price.epsilon)
        rho -= float(price.rho)
        if ratios[i + 1] > ratios[i] or ratios[i + 1] == inf:  # else further is better still
            total = epsilon + _epsilon_about(rho if i + 1 < len(prices) else 0.0, delta)
            if total <= best:
                best = total
                cut = i + 1
    return ordered[:cut]


def _by_part(receipts: Iterable[Receipt]) -> list[list[list[Receipt]]]:
    """Receipts by part, of each partition; what declares none is a partition of its own."""
    receipts = tuple(receipts)
    relations = {r.relation for r in receipts}
    if len(relations) > 1:
        raise ValueError(
            f"receipts about different relations do not add up: {sorted(relations)}"
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


def _largest(costs: Iterable[DP]) -> DP:
    costs = tuple(costs)
    return DP(max(c.epsilon for c in costs), max(c.delta for c in costs))


def _total(costs: Iterable[DP]) -> DP:
    costs = tuple(costs)
    if any(c.epsilon == inf for c in costs):
        return DP(inf, min(1.0, fsum(c.delta for c in costs)))
    return DP(fsum(c.epsilon for c in costs), min(1.0, fsum(c.delta for c in costs)))
