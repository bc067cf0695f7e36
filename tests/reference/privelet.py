"""Privelet's Haar wavelet with weighted Laplace noise, in one dimension (methods.md 5.1).

The m cells are padded with public zeros to 2^l, and every coefficient, those of the
padding too, gets noise (`haar` leaves the public ones out).

With weights W and generalised sensitivity rho (the largest sum of W |change| when one cell changes
by 1), Laplace(lambda/W) on every coefficient is epsilon-DP for lambda = rho/epsilon (add/remove)
or 2 rho/epsilon (replace). The floats are an idealisation (methods.md 0.2).
"""

import math

from . import tree_inference


def haar_range_variance(lo, hi, m, epsilon, neighbours):
    """Variance of the sum of the noisy cells of [lo, hi).

    The base counts hi - lo times, a node's coefficient as often as the range meets its left half
    more than its right; a coefficient's variance is 2 (lambda/W)^2. Nodes that the range covers or
    misses count 0 times, and so do all below them.
    """
    height = tree_inference.levels(m, 2)
    size = 2 ** (height - 1)  # padded
    parameter = height / epsilon * {"add/remove": 1, "replace": 2}[neighbours]
    terms = [2 * ((hi - lo) * parameter / size) ** 2]

    def visit(start, stop):
        if max(lo, start) >= min(hi, stop) or (lo <= start and stop <= hi):
            return
        middle = (start + stop) // 2
        left = max(0, min(hi, middle) - max(lo, start))
        right = max(0, min(hi, stop) - max(lo, middle))
        terms.append(2 * ((left - right) * parameter / (stop - start)) ** 2)
        visit(start, middle)
        visit(middle, stop)

    visit(0, size)
    return math.fsum(terms)
