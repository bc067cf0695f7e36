"""What decisions to split cost at most, in closed form (adaptive2009, Theorem 3)."""

from __future__ import annotations

from math import ceil, exp, log, log1p

import numpy as np

LAPLACE = "laplace"
WHOLE = "geometric"


def theorem_discount(epsilon: float, threshold: float) -> int:
    """The discount of Theorem 3, ⌈b + ln 2/ε⌉.

    >>> theorem_discount(0.1, 27.7)
    35
    """
    return ceil(threshold + log(2) / epsilon)


def log_passing(x: np.ndarray, epsilon: float, threshold: float, law: str) -> np.ndarray:
    """ln p(x), p(x) = Pr[x + noise ≥ b]."""
    over = np.asarray(x, float) - threshold
    front, shift = _tail(epsilon, law)
    below = epsilon * np.minimum(over, 0) - front
    above = np.log1p(-np.exp(-epsilon * (np.maximum(over, 0) + shift) - front))
    return np.where(over < 0, below, above)


def _tail(epsilon: float, law: str) -> tuple[float, int]:
    """−ln Pr[noise ≥ 0], and the least value above 0 that counts as above."""
    return (log(2), 0) if law == LAPLACE else (log1p(exp(-epsilon)), 1)


def worst_by_splits(epsilon: float, threshold: float, t: int, splits: int) -> np.ndarray:
    """The largest Σ r(x_i) of 1 … `splits` splits whose counts fall by t at least (Laplace noise)."""
    start = np.arange(t)[:, None] + t * np.arange(splits)
    ratio = log_passing(start + 1, epsilon, threshold, LAPLACE)
    ratio = ratio - log_passing(start, epsilon, threshold, LAPLACE)
    return ratio.cumsum(axis=1).max(axis=0)


def removed_loss(epsilon: float, threshold: float, law: str) -> float:
    """The worst case where a record is removed: ln (1 − p(x))/(1 − p(x+1)) at the last decision.

    Earlier decisions speak against it, so that the worst path stops at once: the largest over all x.
    """
    x = np.arange(ceil(threshold + 5 / epsilon) + 2, dtype=float)
    over = x - threshold
    front, shift = _tail(epsilon, law)
    tail = -epsilon * (over + shift) - front  # ln(1 − p) from the threshold on
    with np.errstate(divide="ignore"):
        below = np.log1p(-np.exp(np.minimum(log_passing(x, epsilon, threshold, law), 0)))
    stopping = np.where(over >= 0, tail, below)
    return float((stopping[:-1] - stopping[1:]).max())
