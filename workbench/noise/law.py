"""Distribution of the noise on released numbers. It is given by its kind (geometric or Gaussian) and its
rate, which are both public.
"""

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
    """Mean and mean square of the noise that one empty cell adds to the answer to a query."""

    mean: float
    square: float


def _check_rate(x: Any) -> str | None:
    good = isinstance(x, int | float | Fraction) and not isinstance(x, bool) and x > 0
    return None if good else "need a number > 0"


@value
class Law:
    """Distribution of the noise on a count. The noise is a random integer X. If the kind is "geometric", the
    probability Pr[X = x] is proportional to exp(−rate·|x|). If the kind is "gaussian", Pr[X = x] is
    proportional to exp(−rate·x²).

    The rate of geometric noise is ε/Δ₁, where Δ₁ is the l1 sensitivity: the largest total change of the
    counts by one unit, for example a person. Let Δ₂ be the l2 sensitivity (the largest Euclidean distance by
    which one unit changes the counts), and σ the standard deviation of Gaussian noise. The rate of Gaussian
    noise is ρ/Δ₂² = 1/(2σ²).

    >>> Law("gaussian", 0.005).variance, Law("geometric", 0.1).variance
    (100.0, 199.833416...)
    """

    kind: str = parameter(choices=(GEOMETRIC, GAUSSIAN), doc="shape of the distribution")
    rate: float | Fraction = parameter(
        check=_check_rate, doc="rate (a higher rate means less noise)"
    )

    @property
    def variance(self) -> float:
        """Variance of the noise, in counts squared."""
        if self.kind == GEOMETRIC:
            return geometric_variance(float(self.rate))
        return _gaussian_variance(float(self.rate))

    def empty_cell(self, theta: float, sides: int) -> Moments:
        """Return the mean and the mean square of the noise that an empty cell adds to the answer to a query.
        An empty cell with the noise v adds v if it passes a filter, and otherwise 0. It passes if |v| >= θ
        (with `sides` = 2) or if v >= θ (with `sides` = 1), where θ is the argument `theta`.

        For geometric noise, Pr[v] = (1−α)/(1+α)·α^|v| with α = exp(−rate). The formulas use two sums over all
        integers v >= t, with t = ⌈θ⌉ but at least 1. The sum of v·α^v is α^t·(t/(1−α) + α/(1−α)²). The sum of
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
        """Return the largest plausible count of a cell that was not released. The result is the threshold
        `cut` plus three standard deviations of the noise. But the result is 0 if only cells with a noisy
        value of 0 are not released.
        """
        if cut <= 1 and sides == 2:
            return 0.0
        return cut + DEVIATIONS * sqrt(self.variance)

    def upper_tail(self, low: int) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """Return the values of Gaussian noise that are at least `low`, and the probability of each value.

        For wide noise, neighbouring integers are grouped, and each group is replaced by its middle value.
        """
        return _gaussian_tail(float(self.rate), low)

    def of_nodes(self, nodes: NodeBlock) -> Law:
        """Return the distribution of the noise on one block of nodes, which are sums or other transforms of
        counts. This `Law` is the noise on single counts if they get the whole budget of the release. The
        noise on the nodes is wider if the block gets only a share of the budget, or if one unit changes more
        nodes.
        """
        if self.kind == GEOMETRIC:
            return Law(self.kind, self.rate * nodes.share / nodes.nodes_per_count)
        return Law(self.kind, self.rate * nodes.weight)


def geometric_variance(decay: float) -> float:
    """Return 2α/(1−α)² with α = exp(−decay), the variance of two-sided geometric noise."""
    return 2 * exp(-decay) / expm1(-decay) ** 2  # 1 − α would cancel


@lru_cache(256)
def _gaussian_variance(rate: float) -> float:
    """Return the variance of discrete Gaussian noise. If the variance is above 2, the result is 1/(2·rate),
    with a relative error of at most 10⁻⁹. Otherwise the result is computed as a sum.
    """
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
    """Return a distribution as data for a JSON file. Geometric noise becomes a number, which is its rate.
    Gaussian noise becomes a dictionary with the kind and the rate.
    """
    if law is None:
        return None
    rate = float(law.rate)
    return rate if law.kind == GEOMETRIC else {"kind": law.kind, "rate": rate}


def law_from_json(stored: Any) -> Law | None:
    """Return the distribution from data that `law_to_json` returned. Raise a ValueError if the rate is too
    small or not finite.
    """
    if stored is None:
        return None
    law = Law(**stored) if isinstance(stored, dict) else Law(GEOMETRIC, stored)
    if not _LEAST_RATE <= law.rate < inf:
        raise ValueError(
            f"{law!r} is not allowed: need a finite rate of at least {_LEAST_RATE}"
        )
    return law
