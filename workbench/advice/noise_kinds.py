"""Which kind of noise is the smaller at one (ε, δ): geometric noise, which spends the ε, or Gaussian noise.

Geometric noise on n numbers that a unit moves by 1 has a standard deviation of about √2·n/ε, Gaussian noise
one of √(n/2ρ), where ρ is the largest that (ε, δ) pays for: it wins where n is above ε²/4ρ, which at
δ = 10⁻⁹ is 14 at ε = 0.1, 17 at 1 and 19 at 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any

from workbench import noise
from workbench.estimates.law import GAUSSIAN, Law
from workbench.privacy import DP, ZCDP
from workbench.wording import format_number, stated


@dataclass(frozen=True)
class NoiseComparison:
    """Both kinds of noise on the same numbers, at one (ε, δ).

    Parameters
    ----------
    budget : the (ε, δ).
    rho : what it pays for.
    l1 : how far one unit moves the numbers together.
    touched : how many of them it touches, if it moves each alike; l1²/l2² in any case.
    geometric, gaussian : the standard deviation of the noise on each, in counts.
    share : of the budget, what pays for them.
    """

    budget: DP
    rho: float
    l1: float
    touched: float
    geometric: float
    gaussian: float
    share: float = 1.0

    @property
    def takes_gaussian(self) -> bool:
        """Whether Gaussian noise is the smaller."""
        return self.gaussian < self.geometric

    def __str__(self) -> str:
        epsilon = stated(self.budget.epsilon)
        delta = stated(self.budget.delta)
        both = (
            f"At ε = {epsilon}, δ = {delta} geometric noise on each number has a standard deviation of "
            f"{format_number(self.geometric)} and Gaussian noise, at the ρ = {format_number(self.rho)} "
            f"within them, one of {format_number(self.gaussian)}"
        )
        least = self.share * self.budget.epsilon * (self.budget.epsilon / (4 * self.rho))
        numbers = f"a unit touches {_numbers(self.touched)}"
        if self.takes_gaussian:
            enough = f"since {numbers}, and it is from {least:.0f} or so on"
            return f"{both}: Gaussian noise is better, {enough}."
        if self.touched == 1 and self.l1 > 1:
            numbers = (
                f"a unit may move one number by all of its {format_number(self.l1)}: l2 = l1, and nothing "
                "is gained without a smaller bound on each cell"
            )
            return f"{both}: pure noise is better, since {numbers}."
        return (
            f"{both}: pure noise is better and spends no δ, since {numbers}, and Gaussian noise needs "
            f"{least:.0f} or so."
        )

    def applied(self, mechanism: Any) -> Any:
        """The mechanism with the smaller noise: at this ρ, if that is Gaussian and it takes one."""
        from workbench.mechanisms import (
            GaussianHistogram,
            GaussianQueries,
            GeometricHistogram,
            LaplaceQueries,
        )

        if not self.takes_gaussian or getattr(mechanism, "spends_delta", False):
            return mechanism
        if isinstance(mechanism, GeometricHistogram):
            return GaussianHistogram(ZCDP(self.rho), mechanism.memory, mechanism.transform)
        if isinstance(mechanism, LaplaceQueries):
            return GaussianQueries(ZCDP(self.rho), mechanism.workload)
        if not getattr(mechanism, "accepts_zcdp", False):
            return mechanism
        return replace(mechanism, budget=ZCDP(self.rho))


def compare_noise(
    budget: DP, l1: Fraction | float, l2_squared: Fraction, share: float = 1.0
) -> NoiseComparison:
    """Geometric noise at ε, and Gaussian noise at the ρ within (ε, δ), on the same numbers.

    Parameters
    ----------
    budget : DP
        With 0 < δ < 1.
    l1, l2_squared : number
        How far one unit moves the numbers together, in either norm.
    share : float
        Of the budget, what pays for them.

    Returns
    -------
    NoiseComparison

    Raises
    ------
    ValueError
        If no ρ is within the budget.

    Examples
    --------
    >>> compare_noise(DP(1.0, 1e-9), 16, 16).takes_gaussian
    False
    >>> compare_noise(DP(1.0, 1e-9), 25, 25).takes_gaussian
    True
    """
    rho = ZCDP.within(budget).rho
    part = Fraction(share)
    geometric = sqrt(noise.variance(Fraction(l1) / part, budget.epsilon, "geometric"))
    gaussian = sqrt(Law(GAUSSIAN, Fraction(rho) * part / Fraction(l2_squared)).variance)
    touched = float(Fraction(l1) ** 2 / Fraction(l2_squared))
    return NoiseComparison(budget, rho, float(l1), touched, geometric, gaussian, share)


def _numbers(touched: float) -> str:
    if touched == 1:
        return "1 number"
    return (
        f"{format_number(touched)} numbers"
        if touched == int(touched)
        else f"about {touched:.1f} numbers"
    )
