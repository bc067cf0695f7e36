"""What ρ implies of ε, and ε of ρ: proven in rational arithmetic, and rounded up once."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import expm1, log, log1p, sqrt

from workbench.enclosures import exp_neg, ln, round_up

_BITS = 256  # of enclosed logarithms and exponentials
_LEAST = 1e-150  # α − 1 of an order


def epsilon_above(rho: Fraction, delta: Fraction) -> Fraction:
    """An upper bound, to some 60 digits at the order taken, of the ε that ρ-zCDP implies at δ."""
    if not rho:
        return Fraction(0)
    shift = _shift_for_rho(float(rho), float(delta))
    return max(Fraction(0), (1 + shift) * rho + price_of_order(shift, delta))


@lru_cache(1024)
def rho_above(epsilon: float) -> float:
    """The ρ that ε-DP implies, rounded up: ε·tanh(ε/2), at most ε²/2.

    It is randomised response's, and of ε-DP nothing is worse.
    """
    exact = Fraction(epsilon)
    decayed = exp_neg(exact, _BITS).below
    return round_up(min(exact**2 / 2, exact * (1 - decayed) / (1 + decayed)))


def price_of_order(shift: Fraction, delta: Fraction) -> Fraction:
    """What δ costs at the order α = 1 + shift: (ln 1/δ − α·ln(α/(α − 1)) − ln(α − 1))/(α − 1), from above.

    Of ρ-zCDP, ε = α·ρ + this.
    """
    order = 1 + shift
    logarithm = ln(1 / delta, _BITS).above - order * ln(order / shift, _BITS).below
    if shift >= 1:
        return (logarithm - ln(shift, _BITS).below) / shift
    return (logarithm + ln(1 / shift, _BITS).above) / shift


def epsilon_about(rho: float, delta: float) -> float:
    """`epsilon_above` in floating point."""
    if rho <= 0:
        return 0.0
    shift = float(_shift_for_rho(rho, delta))
    return max(0.0, (1 + shift) * rho + _price_about(shift, -log(delta)))


def _price_about(shift: float, logarithm: float) -> float:
    """`price_of_order` in floating point, of ln 1/δ."""
    return (logarithm - (1 + shift) * log1p(1 / shift) - log(shift)) / shift


def _shift_for_rho(rho: float, delta: float) -> Fraction:
    """α − 1 of about the best order for this ρ, where ρ·(α − 1)² = ln 1/(αδ)."""
    logarithm = -log(delta)
    most = min(sqrt(logarithm / rho), _expm1(logarithm))
    least = min(sqrt(logarithm / rho / 2), _expm1(logarithm / 2))
    return _root(lambda shift: rho * shift * shift + log1p(shift) - logarithm, least, most)


def shift_for_epsilon(epsilon: float, delta: float) -> Fraction:
    """α − 1 of about the best order for this ε: that of the ρ which implies it."""
    logarithm = -log(delta)

    def missing(shift: float) -> float:
        rho = (logarithm - log1p(shift)) / shift / shift
        return epsilon - (1 + shift) * rho - _price_about(shift, logarithm)

    return _root(missing, _LEAST, _expm1(logarithm))


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
    return Fraction(max(high, _LEAST))  # any order's ε holds
