"""High-pass filter, the laborious way (methods.md 9.1, 9.2 items 0, 1, 3; cormode2012 2.2).

Noise on every cell, then two-sided keeps |x| >= theta and one-sided keeps x >= theta. theta is
a real number >= 0. theta = 0 keeps every cell two-sided (zeros too), every x >= 0 one-sided.
"""

import math

from . import geometric


def passes(x, theta, sides):
    """Does the noisy value x pass the filter?"""
    if theta < 0 or sides not in (1, 2):
        raise ValueError("theta must be >= 0 and sides 1 or 2")
    if sides == 1:
        return x >= theta
    return abs(x) >= theta


def kept(noisy, theta, sides):
    """The cells that pass, with their noisy values."""
    return {cell: x for cell, x in noisy.items() if passes(x, theta, sides)}


def release(counts, epsilon, sensitivity, theta, sides, rng):
    """Cell index -> noisy value, for the cells that pass."""
    alpha = geometric.alpha_for(epsilon, sensitivity)
    return kept(geometric.noisy(dict(enumerate(counts)), alpha, rng), theta, sides)


def survival(alpha, theta, sides):
    """Pr[an empty cell passes], by summing the pmf over the values that pass."""
    limit = math.ceil(theta) + geometric.reach(alpha)
    terms = []
    for x in range(-limit, limit + 1):
        if passes(x, theta, sides):
            terms.append(geometric.pmf(x, alpha))
    return math.fsum(terms)


def survival_closed(alpha, theta, sides):
    """sides * a^ceil(theta)/(1 + a), but 1 for the two-sided filter at theta = 0."""
    first = math.ceil(theta)
    if sides == 2 and first == 0:
        return 1.0
    return sides * alpha**first / (1 + alpha)


def theta_for(m, size, epsilon, sensitivity, sides):
    """The smallest integer theta >= 1 with m * survival <= size (9.2 item 0: m, not m - n).

    The closed form is used in the loop only so that a small epsilon does not take minutes.
    """
    if not size > 0:
        raise ValueError("size must be positive")
    alpha = geometric.alpha_for(epsilon, sensitivity)
    theta = 1
    while m * survival_closed(alpha, theta, sides) > size:
        theta += 1
    return theta
