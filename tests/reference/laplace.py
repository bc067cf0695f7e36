"""Discrete Laplace on a public power-of-two grid (methods.md 0.5).

A released vector has k coordinates and L1 sensitivity l1. Each coordinate is first rounded to
the nearest multiple of g. Two neighbours' roundings move a coordinate's difference by at most
g/2 + g/2, so the rounded vectors differ by at most l1 + k*g in L1, (l1 + k*g)/g in grid units,
and integer noise with a = exp(-epsilon/that) on every coordinate gives epsilon-DP.
The error of computing the value (an FFT, a score) must already be inside l1. Everything below
is about ONE coordinate. Halves are rounded to even, as Python's round does; the bound does not
depend on the tie rule. The geometric draws are floats' idealisation: a reference for laws.
"""

import math


def index(value, grid):
    """The input in grid units (exact division, since the grid is a power of two)."""
    if math.frexp(grid)[0] != 0.5:
        raise ValueError("the grid must be a power of two")
    return round(value / grid)


def sensitivity(l1, k, grid):
    """(l1 + k*g)/g, in grid units."""
    return (l1 + k * grid) / grid


def pmf(outcome, value, l1, k, grid, epsilon):
    """Pr[draw(value, ...) = outcome]; zero when the outcome is not on the grid."""
    steps = outcome / grid - index(value, grid)
    if steps != math.floor(steps):
        return 0.0
    rate = epsilon / sensitivity(l1, k, grid)
    # (1 - a)/(1 + a) = tanh(rate/2), which does not cancel when the grid is fine
    return math.tanh(rate / 2) * math.exp(-rate * abs(steps))
