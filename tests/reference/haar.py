"""Unnormalised integer Haar transform of a dense list of counts, the laborious way (methods.md
5.1 "Equivalent and simpler", 9.7; cormode2012 section 3 and C.5).

Nodes are those of `dyadic`: m cells padded with public zeros to 2^L, depth 0 the root. There is
one coefficient for the total and one, S_left - S_right, for each internal node. A node whose right
half lies wholly in the padding has S_right = 0 and S_left = S_node, which is public: it has no
coefficient and gets no noise. That leaves exactly m coefficients, whatever m: every cell but the
first starts the right half of exactly one node, and only those nodes have a coefficient.
"""

import math

from . import dyadic, geometric


def names(m):
    """ "total", then the internal nodes whose right half meets the domain."""
    found = ["total"]
    levels = dyadic.height(m)
    for node in dyadic.all_nodes(m):
        start, stop = dyadic.interval(node, m)
        if node[0] < levels and (start + stop) // 2 < m:
            found.append(node)
    return found


def coefficients(counts):
    """Name -> value, zeros too."""
    m = len(counts)
    values = {}
    for name in names(m):
        if name == "total":
            values[name] = sum(counts)
            continue
        start, stop = dyadic.interval(name, m)
        middle = (start + stop) // 2
        difference = 0
        for cell in range(start, middle):
            difference += counts[cell]
        for cell in range(middle, min(stop, m)):
            difference -= counts[cell]
        values[name] = difference
    return values


def sensitivity(m):
    """L1 sensitivity to one record more or less: 1 + ceil(log2 m). Cell 0 attains it: the right
    halves of its ancestors start at 2^(L-1) < m or before.
    """
    return 1 + dyadic.height(m)


def noisy(counts, epsilon, l1, rng):
    """Every coefficient plus two-sided geometric noise, a = exp(-epsilon/(l1 * sensitivity))."""
    alpha = geometric.alpha_for(epsilon, l1 * sensitivity(len(counts)))
    return geometric.noisy(coefficients(counts), alpha, rng)


def reconstruct(coeffs, m):
    """The m cells: S_left = (S + d)/2 and S_right = (S - d)/2 from the root down, an absent
    coefficient being 0; S_left = S where the right half is padding.
    """
    cells = [0.0] * m
    levels = dyadic.height(m)

    def visit(depth, index, total):
        if depth == levels:
            cells[index] = total
            return
        start, stop = dyadic.interval((depth, index), m)
        if (start + stop) // 2 >= m:
            visit(depth + 1, 2 * index, total)
            return
        difference = coeffs.get((depth, index), 0)
        visit(depth + 1, 2 * index, (total + difference) / 2)
        visit(depth + 1, 2 * index + 1, (total - difference) / 2)

    visit(0, 0, coeffs.get("total", 0))
    return cells


def answer(coeffs, lo, hi, m):
    """The sum of the reconstructed cells of [lo, hi)."""
    if not 0 <= lo <= hi <= m:
        raise ValueError("need 0 <= lo <= hi <= m")
    cells = reconstruct(coeffs, m)
    total = 0.0
    for cell in range(lo, hi):
        total += cells[cell]
    return total


def weights(lo, hi, m):
    """What each coefficient counts for in `answer`: the answer when it is 1 and the rest 0."""
    return {name: answer({name: 1}, lo, hi, m) for name in names(m)}


def range_variance(lo, hi, m, epsilon, l1):
    """Variance of `answer` on all noisy coefficients: the sum of weight^2 times the noise's."""
    alpha = geometric.alpha_for(epsilon, l1 * sensitivity(m))
    squares = math.fsum(weight**2 for weight in weights(lo, hi, m).values())
    return squares * geometric.variance(alpha)
