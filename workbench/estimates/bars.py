"""How far answers may be off, in two parts that are never merged: noise, and cells that are absent.

The noise of a released cell has its law's standard deviation. A cell that was not released is *absent*: its
noisy value lay below the cut, so that its count is at most the cut and three standard deviations more,
but for one such cell in some hundred. What an empty cell adds when its noise lets it pass is noise too: by
its variance, and where only positive values pass by its mean.
"""

from __future__ import annotations

from math import ceil, exp, expm1, sqrt
from typing import NamedTuple

import numpy as np

from workbench.arrays import Float

BELIEFS = {"empty": "if absent cells are empty (believed)"}
DEVIATIONS = 3  # of noise, by which the count of an absent cell may lie above the cut


class Bars(NamedTuple):
    """What may be wrong with each answer, in counts; NaN where the release alone cannot tell.

    `noise` is a standard deviation. `absent_cells` says how many cells of the query (nodes, of a
    tree) were not released, and `absent` how much all of them hold together at most.
    """

    noise: Float[np.ndarray, " queries"]
    absent_cells: Float[np.ndarray, " queries"]
    absent: Float[np.ndarray, " queries"]


class Answers(tuple):
    """Answers and their standard errors, a pair; and beside it both parts of what may be wrong.

    Attributes
    ----------
    values, errors : float64[queries]
        The pair: answers in counts, and standard errors; NaN where there is no closed form.
    noise : float64[queries]
        The standard deviation of the noise, in counts: two of them cover it some 19 times in 20.
    absent_cells : float64[queries]
        How many cells of each query were not released.
    absent : float64[queries]
        How much these hold together at most, in counts: the truth may be higher by it.
    belief : str
        What is assumed beyond the guarantee; "" if nothing.
    """

    noise: Float[np.ndarray, " queries"]
    absent_cells: Float[np.ndarray, " queries"]
    absent: Float[np.ndarray, " queries"]
    belief: str

    def __new__(cls, values, errors, bars: Bars, belief: str | None = None) -> Answers:
        """The pair, with bars that a belief may narrow."""
        if belief is not None and belief not in BELIEFS:
            raise ValueError(f"belief = {belief!r} is not allowed: need one of {[*BELIEFS]}")
        pair = super().__new__(cls, (values, errors))
        pair.noise = bars.noise
        pair.absent_cells = bars.absent_cells
        pair.absent = np.zeros_like(bars.absent) if belief else bars.absent
        pair.belief = BELIEFS[belief] if belief else ""
        return pair

    @property
    def values(self) -> Float[np.ndarray, " queries"]:
        """Answers in counts."""
        return self[0]

    @property
    def errors(self) -> Float[np.ndarray, " queries"]:
        """Standard errors of the pair."""
        return self[1]


class Moments(NamedTuple):
    """What an empty cell adds to an answer, if it passes: mean and mean square."""

    mean: float
    square: float


def geometric_variance(decay: float) -> float:
    """2α/(1−α)² with α = exp(−decay): the variance of two-sided geometric noise."""
    return 2 * exp(-decay) / expm1(-decay) ** 2  # 1 − α would cancel


def empty_cell_moments(decay: float, theta: float, sides: int) -> Moments:
    """Of noise v that passes |v| >= θ (two sides) or v >= θ, in closed form.

    With t = ⌈θ⌉ and Pr[v] = (1−α)/(1+α)·α^|v|: Σ v·α^v over v >= t is α^t·(t/(1−α) + α/(1−α)²), and
    Σ v²·α^v is α^t·(t²/(1−α) + 2tα/(1−α)² + α(1+α)/(1−α)³).
    """
    t = max(ceil(theta), 1)
    alpha = exp(-decay)
    rest = -expm1(-decay)
    passes = exp(-decay * t) / (1 + alpha)
    mean = passes * (t + alpha / rest)
    square = passes * (t**2 + 2 * t * alpha / rest + alpha * (1 + alpha) / rest**2)
    return Moments(0.0 if sides == 2 else mean, sides * square)


def absent_at_most(cut: float, sides: int, decay: float) -> float:
    """What an absent cell holds at most, in counts; 0 where its noisy value is known to be 0."""
    if cut <= 1 and sides == 2:
        return 0.0
    return cut + DEVIATIONS * sqrt(geometric_variance(decay))
