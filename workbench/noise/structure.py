"""What a measurement of pure ε costs in zCDP, by its structure: less than any that has the same ε.

Two-sided geometric noise at decay a, on a value that moves by k, is ρ-zCDP for

    f(k) = a·(k − 2α·(1 − α^k)/(1 − α²)), α = exp(−a),

the divergence of its order 1; the page on accounting proves it for every order. Values with noise of
their own add up. f is convex and f(0) = 0, so that of all moves of at most `l1` together and `linf` each,
as many as possible by linf, and one by what is left, cost the most.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from workbench.enclosures import exp_neg, round_up

_BITS = 320  # decays are at least 2^-36


def geometric_rho(
    decay: Fraction, l1: float | Fraction, linf: float | Fraction | None = None
) -> float:
    """The ρ of geometric noise on values of which a unit moves each by `linf`, all together by `l1`.

    Parameters
    ----------
    decay : of the noise; ε/l1.
    l1 : how far one unit moves all values together.
    linf : how far it moves any one of them; `l1`, if not given.

    Returns
    -------
    float
        Rounded up.
    """
    l1 = Fraction(l1)
    return _geometric_rho(decay, l1, l1 if linf is None else min(Fraction(linf), l1))


@lru_cache(1024)
def _geometric_rho(decay: Fraction, l1: Fraction, linf: Fraction) -> float:
    moved, rest = divmod(l1, linf)
    return round_up(moved * _shifted(decay, linf) + _shifted(decay, rest))


def _shifted(decay: Fraction, k: Fraction) -> Fraction:
    """f(k), from above."""
    alpha = exp_neg(decay, _BITS).below
    power = exp_neg(decay * k, _BITS).above
    return decay * (k - 2 * alpha * (1 - power) / (1 - alpha**2))


def choice_rho(epsilon: float) -> float:
    """The ρ of the exponential mechanism: ε²/8, since log-chances move within an interval of length ε.

    Source: Cesar & Rogers, ALT 2021. No ε costs more than ρ = ε.
    """
    exact = Fraction(epsilon)
    return round_up(min(exact**2 / 8, exact))
