"""Answers to one subset-sum query (cormode2012 C.1 to C.3; methods.md 9.2 item 7).

A query is an iterable of distinct cell indices; `released` maps a cell to its weight (for the
plain filter, the noisy value).
"""

import math

from . import geometric


def truth(counts, cells):
    """The sum of the true counts of the cells."""
    total = 0
    for cell in cells:
        total += counts[cell]
    return total


def estimate(released, cells, absent=0.0):
    """The sum of the released weights; a cell that was not released counts as `absent`."""
    total = 0.0
    for cell in cells:
        if cell in released:
            total += released[cell]
        else:
            total += absent
    return total


def threshold_standard_error(n_cells_in_query, alpha, released_in_query, tau):
    """Estimated standard error of `estimate` on a threshold sample; depends on released data
    only. `released_in_query` are the NOISY VALUES x (not the weights) of the released cells.

        SE^2 = n_cells * 2a/(1-a)^2 + sum over released x with |x| < tau of tau * (tau - |x|)

    Derivation. Cell i: x = count + noise, p = min(|x|/tau, 1), W = x/p with probability p, else
    0. E[W | x] = x, so by total variance Var W = Var x + E[Var(W | x)]. Var x = 2a/(1-a)^2,
    whatever the count. Var(W | x) = x^2 (1-p)/p, which is 0 for |x| >= tau and
    |x| * (tau - |x|) below. It is seen only when the cell is released: divided by p = |x|/tau
    (Horvitz-Thompson again) it becomes tau * (tau - |x|), whose expectation is that of
    Var(W | x). Cells are independent, so the terms add up and E[SE^2] is the exact variance
    (the root itself is biased low, as roots are).

    Exact for two-sided sampling with theta <= 1, where the estimate is unbiased as well. With
    theta > 1 or one side the second sum is still unbiased for the sampling part, but the first
    term is no longer the variance of the filtered value, and the estimate has a bias on top.
    Checked by simulation (40,000 releases: mean of SE^2 within Monte Carlo error of the
    empirical variance, and of the exact one by direct summation).
    """
    total = n_cells_in_query * geometric.variance(alpha)
    for x in released_in_query:
        if abs(x) < tau:
            total += tau * (tau - abs(x))
    return math.sqrt(total)
