"""Two-sided geometric noise (methods.md 0.2; cormode2012 section 2.1).

Pr[X = x] = (1 - a)/(1 + a) * a^|x| over the integers, a = exp(-epsilon/sensitivity).
"""

import math


def alpha_for(epsilon, sensitivity=1.0):
    """a = exp(-epsilon/sensitivity)."""
    if not (epsilon > 0 and sensitivity > 0):
        raise ValueError("epsilon and sensitivity must be positive")
    return math.exp(-epsilon / sensitivity)


def pmf(x, alpha):
    """Pr[X = x]."""
    return (1 - alpha) / (1 + alpha) * alpha ** abs(x)


def draw(alpha, rng):
    """One value: the difference of two geometrics of success 1 - a (the offsets cancel)."""
    first = int(rng.geometric(1 - alpha))
    second = int(rng.geometric(1 - alpha))
    return first - second


def noisy(counts, alpha, rng):
    """Key -> count plus its own noise, empty ones too."""
    return {key: count + draw(alpha, rng) for key, count in counts.items()}


def draw_either(scale, rng, noise):
    """One value of Laplace(scale), a float's idealisation, or of a = exp(-1/scale)."""
    if noise == "laplace":
        return float(rng.laplace(0, scale))
    if noise == "geometric":
        return draw(math.exp(-1 / scale), rng)
    raise ValueError(f"no such noise: {noise}")


def variance_of_either(scale, noise):
    return 2 * scale**2 if noise == "laplace" else variance(math.exp(-1 / scale))


def mean_abs(alpha):
    """E|X| = 2a/(1 - a^2)."""
    return 2 * alpha / (1 - alpha**2)


def variance(alpha):
    """Var X = 2a/(1 - a)^2."""
    return 2 * alpha / (1 - alpha) ** 2


def reach(alpha):
    """Steps after which a^steps < 1e-25: where the direct summations here may stop."""
    return math.ceil(math.log(1e-25) / math.log(alpha)) + 1
