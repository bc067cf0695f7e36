"""ResidualPlanner for a weighted sum of variances, from its formulas."""

import itertools
import math


def subsets(workload):
    """All subsets of workload marginals, the empty one too."""
    found = set()
    for s in workload:
        for size in range(len(s) + 1):
            found.update(itertools.combinations(s, size))
    return sorted(found, key=lambda b: (len(b), b))


def share(b, sizes):
    """p_B."""
    return math.prod((sizes[i] - 1) / sizes[i] for i in b)


def variances(workload, sizes, weights, cost=1.0):
    """{B: sigma_B^2} of the noise on each cell of marginal B before it is centred, and the loss."""
    v = {}
    for b in subsets(workload):
        v[b] = 0.0
        for a in workload:
            if set(b) <= set(a):
                cells = math.prod(sizes[i] for i in a)
                outside = math.prod(sizes[j] ** -2 for j in a if j not in b)
                v[b] += weights[a] * cells * share(b, sizes) * outside
    s = sum(math.sqrt(v[b] * share(b, sizes)) for b in v)
    sigma2 = {b: math.sqrt(share(b, sizes) / v[b]) * s / cost for b in v}
    return sigma2, s**2 / cost


def variance_of_cell(a, sigma2, sizes):
    """Of the estimate of one cell of marginal A."""
    total = 0.0
    for b, each in sigma2.items():
        if set(b) <= set(a):
            outside = math.prod(sizes[j] ** -2 for j in a if j not in b)
            total += each * share(b, sizes) * outside
    return total
