"""Tails of the beta-binomial law, bounded from both sides however small they are."""

from math import pi

import numpy as np

from workbench.arrays import Float

_TERMS = 32  # of a tail, before the rest is bounded by a geometric series


def tail_bounds(
    cut: Float[np.ndarray, " n"],
    m: int,
    a: Float[np.ndarray, " n"] | float,
    b: Float[np.ndarray, " n"] | float,
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Bounds from below and above, but for rounding, on Pr[z > cut], z ~ BetaBinomial(m, a, b).

    The first terms are summed. Their ratios (m−z)(a+z) / ((z+1)(b+m−z−1)) stay from there on below
    r = max(1, (a+z)/(z+1)) · (m−z)/(b+m−z−1), as long as b >= 1, so that the rest is at most
    r/(1−r) times the last term. Where that does not hold, or r >= 1 (a cut below the mode): 1.
    """
    z = np.minimum(np.floor(cut) + 1, m)
    last = np.exp(log_mass(z, m, a, b))
    lower = last
    for _ in range(_TERMS):
        left = np.maximum(m - z, 0)
        last = last * left / np.maximum(b + left - 1, b) * (a + z) / (z + 1)
        lower = lower + last
        z = z + 1
    left = np.maximum(m - z, 0)
    r = np.maximum(1, (a + z) / (z + 1)) * left / np.maximum(b + left - 1, b)
    converges = (r < 1) & ((b >= 1) | (left == 0))
    upper = np.where(converges, lower + last * r / np.where(converges, 1 - r, 1), 1)
    possible = cut < m
    return (
        np.where(possible, np.minimum(lower, 1), 0),
        np.where(possible, np.minimum(upper, 1), 0),
    )


def log_mass(
    z: Float[np.ndarray, "..."],
    m: int,
    a: Float[np.ndarray, "..."] | float,
    b: Float[np.ndarray, "..."] | float,
) -> Float[np.ndarray, " n"]:
    """ln Pr[z] of BetaBinomial(m, a, b), without the cancellation of its nine ln Γ, each up to 1e16.

    With ln Γ(x) = x·ln x − x + s(x), the large parts are x·ln(x/e) over the table ((a, z), (b, m−z)),
    its margins and its sum: minus the G statistic of independence, in which nothing cancels.
    """
    from scipy.special import xlog1py, xlogy

    n = a + b + m
    up = a + z
    down = b + (m - z)
    d = (z * b - (m - z) * a) / n

    def g(
        observed: Float[np.ndarray, "..."] | float,
        difference: Float[np.ndarray, "..."],
        expected: Float[np.ndarray, "..."],
    ) -> Float[np.ndarray, "..."]:
        """observed·ln(observed/expected) − difference, where observed = expected + difference."""
        far = xlogy(observed, observed / expected)
        near = xlog1py(observed, difference / expected)
        return np.where(difference < -expected / 2, far, near) - difference

    large = g(z, d, up * m / n) + g(a, -d, up * (a + b) / n)
    large = large + g(b, d, down * (a + b) / n) + g(m - z, -d, down * m / n)
    return (
        (_stirling_rest(up) - _stirling_rest(a) - _stirling_rest(z, 1))
        + (_stirling_rest(down) - _stirling_rest(b) - _stirling_rest(m - z, 1))
        - (_stirling_rest(n) - _stirling_rest(a + b) - _stirling_rest(m, 1))
        - large
    )


def _stirling_rest(
    x: Float[np.ndarray, "..."] | float, factorial: int = 0
) -> Float[np.ndarray, " n"]:
    """s(x) = ln Γ(x) − x·ln x + x, of ln x! instead with `factorial`; relative error below 1e-13."""
    from scipy.special import gammaln

    x = np.asarray(x, float)
    low = np.clip(x, 1 if factorial else 0, 1e3)
    high = np.maximum(x, 1e3)
    near = gammaln(low) - low * np.log(low) + low
    far = np.log(2 * pi / high) / 2 + 1 / (12 * high) - 1 / (360 * high**3)
    s = np.where(x < 1e3, near, far)
    return np.where(x == 0, 0, s + np.log(np.maximum(x, 1))) if factorial else s
