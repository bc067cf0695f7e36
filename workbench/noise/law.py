"""Distribution of the noise on each released number, given by its kind and rate. Both are public."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, inf, pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from workbench.queries.basis import NodeBlock
from workbench.value import Float, parameter, value

GEOMETRIC = "geometric"
GAUSSIAN = "gaussian"
DEVIATIONS = 3  # of noise, by which the count of an absent cell may lie above the cut
_FINE = 512  # steps a standard deviation in which a wide Gaussian is summed
_LEAST_RATE = 1e-45  # of a file: noise of 10^45 counts has a variance that is no infinity
_REACH = 12  # standard deviations, beyond which a Gaussian is nothing to a float


class Moments(NamedTuple):
    """Mean and mean square of the noise that one empty cell adds to an answer."""

    mean: float
    square: float


def _check_rate(x: Any) -> str | None:
    good = isinstance(x, int | float | Fraction) and not isinstance(x, bool) and x > 0
    return None if good else "need a number > 0"


@value
class Law:
    """Distribution of the noise on a count. It is Pr[X = x] ∝ exp(−rate·|x|) if "geometric", and ∝
    exp(−rate·x²) if "gaussian".

    The rate of geometric noise is ε/Δ, where Δ is the l1 sensitivity. The rate of Gaussian noise is ρ/Δ² =
    1/(2σ²), where Δ is the l2 sensitivity.

    >>> Law("gaussian", 0.005).variance, Law("geometric", 0.1).variance
    (100.0, 199.833416...)
    """

    kind: str = parameter(choices=(GEOMETRIC, GAUSSIAN), doc="shape of the distribution")
    rate: float | Fraction = parameter(check=_check_rate, doc="rate of decay")

    @property
    def variance(self) -> float:
        """Return the variance of the noise, in counts squared."""
        if self.kind == GEOMETRIC:
            return geometric_variance(float(self.rate))
        return _gaussian_variance(float(self.rate))

    def empty_cell(self, theta: float, sides: int) -> Moments:
        """Return the moments of the noise v of an empty cell. The noise counts only if it passes
        the filter: |v| >= θ with two sides, v >= θ with one.

        The value v is an integer other than 0. Geometric noise has Pr[v] = (1−α)/(1+α)·α^|v|. The formulas
        use two sums over v >= t, with t = ⌈θ⌉. The sum of v·α^v is α^t·(t/(1−α) + α/(1−α)²). The sum of
        v²·α^v is α^t·(t²/(1−α) + 2tα/(1−α)² + α(1+α)/(1−α)³).
        """
        t = max(ceil(theta), 1)
        if self.kind == GAUSSIAN:
            values, chances = self.upper_tail(t)
            mean = float((values * chances).sum())
            square = float((values**2 * chances).sum())
        else:
            alpha = exp(-self.rate)
            rest = -expm1(-self.rate)
            passes = exp(-self.rate * t) / (1 + alpha)
            mean = passes * (t + alpha / rest)
            square = passes * (t**2 + 2 * t * alpha / rest + alpha * (1 + alpha) / rest**2)
        return Moments(0.0 if sides == 2 else mean, sides * square)

    def absent_at_most(self, cut: float, sides: int) -> float:
        """Return the largest plausible count of a cell that was not released. It is the threshold plus three
        standard deviations of noise. The result is 0 if only cells with a noisy value of 0 are missing.
        """
        if cut <= 1 and sides == 2:
            return 0.0
        return cut + DEVIATIONS * sqrt(self.variance)

    def upper_tail(self, low: int) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """Return the values >= `low` of Gaussian noise with their probabilities.

        For wide noise, one value may stand for several neighbouring integers.
        """
        return _gaussian_tail(float(self.rate), low)

    def of_nodes(self, nodes: NodeBlock) -> Law:
        """Return the distribution of the noise on the nodes of one block. This object has the distribution for
        a whole release, whose blocks have different noise.
        """
        if self.kind == GEOMETRIC:
            return Law(self.kind, self.rate * nodes.share / nodes.nodes_per_count)
        return Law(self.kind, self.rate * nodes.weight)


def geometric_variance(decay: float) -> float:
    """Return 2α/(1−α)² with α = exp(−decay), the variance of two-sided geometric noise."""
    return 2 * exp(-decay) / expm1(-decay) ** 2  # 1 − α would cancel


@lru_cache(256)
def _gaussian_variance(rate: float) -> float:
    """Return 1/(2·rate), with relative error 10⁻⁹, unless it is below 2, where the distribution is summed."""
    if rate < 0.25:
        return 0.5 / rate
    values, chances = _gaussian_tail(rate, 1)
    return 2 * float((values**2 * chances).sum())


@lru_cache(256)
def _gaussian_tail(rate: float, low: int) -> Any:
    sigma = sqrt(0.5 / rate)
    step = max(1, int(sigma / _FINE))
    values = np.arange(low, low + _REACH * sigma + 2 * step, step) + (step - 1) / 2
    if rate < 0.25:
        total = sqrt(pi / rate)
    else:
        total = 1 + 2 * np.exp(-rate * np.arange(1.0, 40) ** 2).sum()
    return values, step * np.exp(-rate * values**2) / total


def law_to_json(law: Law | None) -> Any:
    """Return a distribution as files store it. For geometric noise this is the number ε/Δ, and for
    other noise its kind and rate.
    """
    if law is None:
        return None
    rate = float(law.rate)
    return rate if law.kind == GEOMETRIC else {"kind": law.kind, "rate": rate}


def law_from_json(stored: Any) -> Law | None:
    """Return the distribution that `law_to_json` wrote."""
    if stored is None:
        return None
    law = Law(**stored) if isinstance(stored, dict) else Law(GEOMETRIC, stored)
    if not _LEAST_RATE <= law.rate < inf:
        raise ValueError(
            f"{law!r} is not allowed: need a finite rate of at least {_LEAST_RATE}"
        )
    return law
