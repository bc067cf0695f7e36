"""Privacy budgets in the forms (ε, δ)-DP and ρ-zCDP, and conversions between the two forms."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import expm1, inf, log, log1p, nextafter, sqrt
from sys import float_info
from typing import Any

from workbench.privacy.enclosures import exp_neg, ln, round_down, round_up
from workbench.value import parameter, stated, stated_at_most, value

# Conversions

_BITS = 256  # of enclosed logarithms and exponentials
_LEAST = 1e-150  # α − 1 of an order


def epsilon_above(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an ε such that ρ-zCDP implies (ε, δ)-differential privacy.

    Zero-concentrated differential privacy (zCDP) bounds the Rényi divergence between two distributions for
    every order α > 1. For each order α, a formula gives a valid ε. The function chooses an order whose ε is
    small. It computes this ε to about 60 digits and rounds it up.
    """
    if not rho:
        return Fraction(0)
    shift = _shift_for_rho(float(rho), float(delta))
    return max(Fraction(0), (1 + shift) * rho + price_of_order(shift, delta))


@lru_cache(1024)
def rho_above(epsilon: float) -> float:
    """Return the ρ that ε-differential privacy implies, rounded up. The formula is ρ = ε·tanh(ε/2), and the
    result is at most ε²/2.

    No mechanism with this ε needs a larger ρ. Randomised response, which replaces a value at random, needs
    exactly this ρ.
    """
    exact = Fraction(epsilon)
    decayed = exp_neg(exact, _BITS).below
    return round_up(min(exact**2 / 2, exact * (1 - decayed) / (1 + decayed)))


def price_of_order(shift: Fraction, delta: Fraction) -> Fraction:
    """Return the part of ε that depends on δ, if ρ-zCDP is converted to (ε, δ)-differential privacy.

    The conversion uses the Rényi divergence of order α = 1 + `shift`, a distance between distributions. It
    gives ε = α·ρ + c with c = (ln(1/δ) − α·ln(α/(α − 1)) − ln(α − 1))/(α − 1). The function returns c,
    rounded up.
    """
    order = 1 + shift
    logarithm = ln(1 / delta, _BITS).above - order * ln(order / shift, _BITS).below
    if shift >= 1:
        return (logarithm - ln(shift, _BITS).below) / shift
    return (logarithm + ln(1 / shift, _BITS).above) / shift


def epsilon_about(rho: float, delta: float) -> float:
    """Return an approximation of the ε that ρ-zCDP implies at a given δ. The function `epsilon_above`
    computes a proven bound on this ε.
    """
    if rho <= 0:
        return 0.0
    shift = float(_shift_for_rho(rho, delta))
    return max(0.0, (1 + shift) * rho + _price_about(shift, -log(delta)))


def _price_about(shift: float, logarithm: float) -> float:
    """Return an approximation of `price_of_order` in floating point. The argument `logarithm` is ln(1/δ)."""
    return (logarithm - (1 + shift) * log1p(1 / shift) - log(shift)) / shift


def _shift_for_rho(rho: float, delta: float) -> Fraction:
    """Return α − 1, where α is the order of the Rényi divergence that gives nearly the smallest ε for ρ and
    δ.

    The best order α solves ρ·(α − 1)² = ln(1/(α·δ)).
    """
    logarithm = -log(delta)
    most = min(sqrt(logarithm / rho), _expm1(logarithm))
    least = min(sqrt(logarithm / rho / 2), _expm1(logarithm / 2))
    return _root(lambda shift: rho * shift * shift + log1p(shift) - logarithm, least, most)


def shift_for_epsilon(epsilon: float, delta: float) -> Fraction:
    """Return α − 1, where α is the order of the Rényi divergence that allows nearly the largest ρ for ε and
    δ.
    """
    logarithm = -log(delta)

    def missing(shift: float) -> float:
        rho = (logarithm - log1p(shift)) / shift / shift
        return epsilon - (1 + shift) * rho - _price_about(shift, logarithm)

    return _root(missing, _LEAST, _expm1(logarithm))


def _expm1(x: float) -> float:
    return expm1(min(x, 700.0))


def _root(increasing: Callable[[float], float], low: float, high: float) -> Fraction:
    """Return an approximate zero of an increasing function, by bisection on a logarithmic scale."""
    for _ in range(50):
        middle = sqrt(low) * sqrt(high)
        if increasing(middle) < 0:
            low = middle
        else:
            high = middle
    return Fraction(max(high, _LEAST))  # any order's ε holds


# Budgets

LARGE_EPSILON = 10
LARGE = (
    "A privacy loss above ε = 10 protects little: at ε = 10 an observer's odds about one person can grow "
    "22,026-fold. Choose a smaller ε or ρ unless you mean it."
)
_LARGEST = float_info.max


def _at_least_zero(x: Any) -> str | None:
    good = isinstance(x, int | float) and not isinstance(x, bool) and x >= 0  # False for NaN
    if not good:
        return "need a number >= 0 (inf gives no guarantee)"
    return None if x == inf or x <= _LARGEST else "need a number that a float holds"


def finite_above_zero(x: Any) -> str | None:
    """Return a message that says what is wrong with a value of ρ, or None if the value is valid."""
    good = isinstance(x, int | float) and not isinstance(x, bool) and 0 < x <= _LARGEST
    return None if good else "need a finite number > 0"


def _from_zero_below_one(x: Any) -> str | None:
    good = isinstance(x, int | float) and not isinstance(x, bool) and 0 <= x < 1
    return None if good else "need a number >= 0 and < 1"


@value
class DP:
    """Privacy guarantee of a release, or a limit on its privacy cost, in (ε, δ)-differential privacy. If δ = 0,
    the guarantee is pure ε-differential privacy. If ε = ∞, there is no guarantee.

    >>> DP(0.5) + DP(0.5, delta=1e-6)
    DP(epsilon=1.0, delta=1e-06)
    >>> print(DP(0.1 + 0.2, delta=6.07896203477883e-07))  # δ to four digits, rounded up
    (0.3, 6.079e-07)-DP
    >>> DP(float("nan"))
    Traceback (most recent call last):
    ValueError: DP.epsilon = nan is not allowed: need a number >= 0 (inf gives no guarantee)
    """

    epsilon: float = parameter(check=_at_least_zero, doc="privacy loss ε")
    delta: float = parameter(0.0, 0, 1, doc="failure probability δ")

    def __add__(self, other: DP) -> DP:
        if inf in (self.epsilon, other.epsilon):
            return DP(inf)
        epsilon = Fraction(self.epsilon) + Fraction(other.epsilon)
        delta = Fraction(self.delta) + Fraction(other.delta)
        return DP(round_up(epsilon), min(1.0, round_up(delta)))

    def __str__(self) -> str:
        if self.epsilon == inf:
            return "no privacy guarantee (ε = ∞)"
        epsilon = stated(self.epsilon)  # never rounded: it is a promise
        return (
            f"({epsilon}, {stated_at_most(self.delta)})-DP" if self.delta else f"{epsilon}-DP"
        )

    def covers(self, spent: DP | ZCDP) -> bool:
        """Return whether this budget is at least as large as the cost `spent`. If `spent` is stated in ρ, the
        method first converts `spent` to ε, at the δ of this budget.
        """
        if isinstance(spent, ZCDP):
            if spent.delta >= self.delta:
                return False
            spent = spent.at(self.delta)
        return spent.epsilon <= self.epsilon and spent.delta <= self.delta


@value
class ZCDP:
    """Privacy guarantee of a release, or a limit on its privacy cost, in ρ-zero-concentrated differential
    privacy (zCDP). If δ > 0, the guarantee is δ-approximate zCDP, which may fail with probability δ.

    Consider two data sets that differ in one person, and the distributions of the output for the two data sets.
    A release is ρ-zCDP if, for every α > 1, the Rényi divergence of order α between the two distributions is at
    most α·ρ. A ρ alone does not imply an ε. You also need a δ, for example 10⁻⁶. The method `at` takes this δ
    and returns the ε.

    Source: Bun & Steinke, TCC 2016, Definitions 1.1 and 8.1.

    >>> ZCDP(0.25) + ZCDP(0.5, delta=1e-10)
    ZCDP(rho=0.75, delta=1e-10)
    >>> print(ZCDP(0.5).at(1e-6))
    (5.221534444530169, 1e-06)-DP
    """

    rho: float = parameter(check=finite_above_zero, doc="privacy loss ρ")
    delta: float = parameter(0.0, check=_from_zero_below_one, doc="failure probability δ")

    @classmethod
    def within(cls, budget: DP) -> ZCDP:
        """Return the largest ρ that still implies the (ε, δ)-differential privacy of `budget`. The result is
        rounded down.

        Parameters
        ----------
        budget : DP
            Budget with a finite ε > 0 and with 0 < δ < 1.

        Returns
        -------
        ZCDP
            Budget in ρ. If you convert the result to ε with `at(budget.delta)`, you get at most the ε of
            `budget`.

        Raises
        ------
        ValueError
            If ε is not finite and positive, if δ = 0 (where no ρ implies an ε), or if ρ is too small for a
            float.

        >>> print(ZCDP.within(DP(1.0, 1e-9)))
        0.014973057673588525-zCDP
        """
        if not isinstance(budget, DP) or not (
            0 < budget.epsilon < inf and 0 < budget.delta < 1
        ):
            raise ValueError(
                f"{budget!r} is not allowed: need a finite epsilon > 0 and 0 < delta < 1, because at "
                "delta = 0 no rho implies an epsilon"
            )
        epsilon = budget.epsilon
        shift = shift_for_epsilon(epsilon, budget.delta)
        rho = round_down(
            (Fraction(epsilon) - price_of_order(shift, Fraction(budget.delta))) / (1 + shift)
        )
        while rho > 0 and cls(rho).at(budget.delta).epsilon > epsilon:  # by its last digit
            rho = nextafter(rho * (1 - 2.0**-52), 0)
        if rho <= 0:
            raise ValueError(f"{budget!r} is not allowed: its rho is too small for a float")
        return cls(rho)

    def at(self, delta: float) -> DP:
        """Return the (ε, δ)-differential privacy that this ρ implies, at a δ that you choose. The ε is
        rounded up.

        Source: Canonne, Kamath & Steinke, NeurIPS 2020, Corollary 13 (arXiv 2004.00010). The corollary gives a
        valid ε for every order α > 1 of the Rényi divergence, which measures how much two distributions differ.
        Some orders give a smaller ε than others. The method searches for a good order in floating point. Then
        it computes the ε of this order with rational numbers, so that rounding errors cannot make ε too small.

        Parameters
        ----------
        delta : float
            Failure probability δ of the resulting guarantee, below 1 and larger than the δ of this budget.
            Choose δ before you see any answer.

        Returns
        -------
        DP

        Raises
        ------
        ValueError
            If δ is not between 0 and 1, or not larger than the δ of this budget.
        """
        refuse_delta(delta, Fraction(self.delta))
        rest = Fraction(delta) - Fraction(self.delta)
        return DP(round_up(epsilon_above(Fraction(self.rho), rest)), delta)

    def __add__(self, other: ZCDP) -> ZCDP:
        if not isinstance(other, ZCDP):
            return NotImplemented
        rho = Fraction(self.rho) + Fraction(other.rho)
        delta = Fraction(self.delta) + Fraction(other.delta)
        return rounded(rho, delta)

    def __str__(self) -> str:
        text = f"{stated(self.rho)}-zCDP"
        return f"{stated_at_most(self.delta)}-approximate {text}" if self.delta else text

    def covers(self, spent: DP | ZCDP) -> bool:
        """Return whether this budget is at least as large as the cost `spent`. If `spent` is stated in ε, the
        method first converts `spent` to ρ.
        """
        if isinstance(spent, DP):
            if spent.epsilon == inf:
                return False
            spent = rounded(Fraction(rho_above(spent.epsilon)), Fraction(spent.delta))
        return spent.rho <= self.rho and spent.delta <= self.delta


def rounded(rho: Fraction, delta: Fraction) -> ZCDP:
    """Return exact sums of ρ and of δ as a `ZCDP`, rounded up to floats.

    Raise a ValueError if ρ is too large for a float or if δ is at least 1, because such a cost guarantees
    nothing.
    """
    if delta >= 1:
        raise ValueError(f"delta adds up to {float(delta):g}: together these promise nothing")
    if round_up(rho) == inf:
        raise ValueError(
            "the sum of rho is too large for a float, so together the costs promise nothing"
        )
    return ZCDP(round_up(rho), round_up(delta))


def as_epsilon(cost: DP | ZCDP) -> float:
    """Return the ε of a privacy cost. A cost in ρ is converted to the ε that it implies at a δ of 10⁻⁶ plus
    the δ of the cost.
    """
    if isinstance(cost, DP):
        return cost.epsilon
    return round_up(epsilon_above(Fraction(cost.rho), Fraction(1, 10**6)))


def warn_if_large(cost: DP | ZCDP) -> None:
    """Warn once if the ε of a privacy cost is above 10 but finite. The function first converts a cost in ρ to
    ε.
    """
    if LARGE_EPSILON < as_epsilon(cost) < inf:
        warnings.warn(LARGE, stacklevel=1)  # from one place, so that it is shown once


def refuse_delta(delta: float, spent: Fraction) -> None:
    """Raise a ValueError if δ is not between 0 and 1, or if δ is at most `spent`, which is the sum of the δ
    of all measurements.
    """
    if not (isinstance(delta, int | float) and not isinstance(delta, bool) and 0 < delta < 1):
        raise ValueError(
            f"delta = {delta!r} is not allowed: need 0 < delta < 1, as a rho implies no epsilon at 0"
        )
    if delta <= spent:
        raise ValueError(
            f"delta = {stated(delta)} is not allowed: need more than {stated(round_up(spent))}, "
            "which the measurements spend"
        )
