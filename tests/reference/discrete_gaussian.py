"""Discrete Gaussian noise, literally (Canonne, Kamath & Steinke, NeurIPS 2020, Definition 1).

Pr[X = x] = exp(-x^2 / (2 sigma^2)) / sum over all whole y of exp(-y^2 / (2 sigma^2)).
"""

import math


def weights(sigma, reach=40):
    """exp(-x^2 / (2 sigma^2)) for x = 0, 1, ..., as far as it is not nothing."""
    return [math.exp(-(x**2) / 2 / sigma**2) for x in range(math.ceil(reach * sigma) + 2)]


def pmf(sigma):
    """Pr[X = x] as a function of x."""
    above = weights(sigma)
    total = math.fsum(above) + math.fsum(above[1:])
    return lambda x: above[abs(x)] / total if abs(x) < len(above) else 0.0


def draw(sigma, rng):
    """One value: a two-sided geometric proposal, kept with the ratio (their Algorithm 3)."""
    t = math.floor(sigma) + 1
    while True:
        y = int(rng.geometric(1 - math.exp(-1 / t))) - int(rng.geometric(1 - math.exp(-1 / t)))
        if rng.random() < math.exp(-((abs(y) - sigma**2 / t) ** 2) / 2 / sigma**2):
            return y
