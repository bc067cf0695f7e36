"""Threshold sampling, with or without a filter, the laborious way (methods.md 9.1, 9.2 items
0, 2, 7; cormode2012 2.3, C.2 and C.4).

Noise on every cell; one-sided: negative noisy values become 0; drop |x| < theta; include with
probability min(|x|/tau, 1). The value 0 is never included. tau = 0: every nonzero is included.
theta and tau are real numbers >= 0.
"""

import math

from . import geometric


def inclusion(x, theta, tau, sides):
    """Pr[a cell is released | its noisy value is x]."""
    if theta < 0 or tau < 0 or sides not in (1, 2):
        raise ValueError("theta and tau must be >= 0 and sides 1 or 2")
    if sides == 1 and x < 0:
        x = 0
    if x == 0 or abs(x) < theta:
        return 0.0
    if abs(x) >= tau:
        return 1.0
    return abs(x) / tau


def weight(x, tau):
    """Horvitz-Thompson: x / min(|x|/tau, 1) = sign(x) * max(|x|, tau), for x other than 0."""
    return math.copysign(max(abs(x), tau), x)


def sample(noisy, theta, tau, sides, rng):
    """Cell -> (noisy value, unbiased weight), each cell sampled by its own coin."""
    released = {}
    for cell, x in noisy.items():
        if rng.random() < inclusion(x, theta, tau, sides):
            released[cell] = (x, weight(x, tau))
    return released


def release(counts, epsilon, sensitivity, tau, theta, sides, rng):
    """Cell index -> (noisy value, unbiased weight), for the sampled cells."""
    alpha = geometric.alpha_for(epsilon, sensitivity)
    return sample(geometric.noisy(dict(enumerate(counts)), alpha, rng), theta, tau, sides, rng)


def survival(alpha, theta, tau, sides):
    """Pr[an empty cell is released], by summing pmf * inclusion over the noisy values."""
    limit = math.ceil(theta) + geometric.reach(alpha)
    terms = []
    for x in range(-limit, limit + 1):
        terms.append(geometric.pmf(x, alpha) * inclusion(x, theta, tau, sides))
    return math.fsum(terms)


def value_pmf(v, alpha, theta, tau, sides):
    """Pr[noisy value = v | an empty cell is released]."""
    joint = geometric.pmf(v, alpha) * inclusion(v, theta, tau, sides)
    return joint / survival(alpha, theta, tau, sides)


def value_cdf(v, alpha, theta, tau, sides):
    """Pr[noisy value <= v | an empty cell is released], by direct summation."""
    lowest = min(v, -math.ceil(theta)) - geometric.reach(alpha)
    terms = []
    for x in range(lowest, v + 1):
        terms.append(geometric.pmf(x, alpha) * inclusion(x, theta, tau, sides))
    return math.fsum(terms) / survival(alpha, theta, tau, sides)


def tau_for(m, size, epsilon, sensitivity, theta, sides):
    """The real tau with m * survival = size, by bisection (9.2 item 0).

    survival is constant up to A = max(ceil(theta), 1), then strictly decreasing. When even
    that constant gives at most `size` survivors there is nothing to sample: tau = 0.
    """
    if not size > 0:
        raise ValueError("size must be positive")
    alpha = geometric.alpha_for(epsilon, sensitivity)
    if m * survival(alpha, theta, 0.0, sides) <= size:
        return 0.0
    low = float(max(math.ceil(theta), 1))
    high = 2 * low
    while m * survival(alpha, theta, high, sides) > size:
        low, high = high, 2 * high
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return high
        if m * survival(alpha, theta, middle, sides) > size:
            low = middle
        else:
            high = middle
