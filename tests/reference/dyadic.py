"""Dyadic transform of a dense list of counts, the laborious way (methods.md 9.2 item 8, 9.4, 9.7;
cormode2012 section 3 and C.5).

The domain of m cells is padded with public zeros to 2^L, L = ceil(log2 m). Depth 0 is the root,
depth L the leaves; node (depth, index) is the interval [index * w, (index + 1) * w) of width
w = 2^(L - depth). Only the nodes that meet the unpadded domain exist, ceil(m/w) at a depth. Every
one of them is published with noise, even if its interval differs from another's in padding only,
so a record changes exactly L + 1 counts.

The functions that take a mapping from nodes (filtered, threshold, priority) do not look at the
keys, so they serve the two-dimensional nodes and the Haar coefficients as well.
"""

import math

from . import geometric, high_pass_filter, priority_sampling, threshold_sampling, tree_inference

filtered = high_pass_filter.kept
threshold = threshold_sampling.sample
priority = priority_sampling.sample


def height(m):
    """L, the smallest integer with 2^L >= m."""
    return tree_inference.levels(m, 2) - 1


def sensitivity(m):
    """L1 sensitivity to one record more or less: L + 1, one node at each depth (9.2 item 8)."""
    return height(m) + 1


def interval(node, m):
    """First cell and first cell after the node, its padding included."""
    depth, index = node
    width = 2 ** (height(m) - depth)
    return index * width, (index + 1) * width


def all_nodes(m):
    """Every node that meets the domain, depth by depth."""
    return tree_inference.nodes(m, 2)


def nodes(counts):
    """Node -> the sum of its cells, zeros too."""
    return dict(zip(all_nodes(len(counts)), tree_inference.build(counts, 2), strict=True))


def cover(lo, hi, m):
    """The fewest nodes whose union is [lo, hi), up to padding; left to right."""
    every = all_nodes(m)
    return [every[position] for position in tree_inference.cover(lo, hi, m, 2)]


def uniform(m):
    """Shares of epsilon, the same at each depth: 1/(L + 1)."""
    return [1 / sensitivity(m)] * sensitivity(m)


def alpha_at(depth, epsilon, l1, shares):
    """a = exp(-epsilon * shares[depth] / l1): at one depth a user changes the counts by l1."""
    if math.fsum(shares) > 1 + 1e-12:
        raise ValueError("the shares must not sum to more than 1")
    return geometric.alpha_for(epsilon * shares[depth], l1)


def noisy(counts, epsilon, l1, shares, rng):
    """Node -> sum plus two-sided geometric noise, for every node; shares[depth] is the depth's
    part of epsilon.
    """
    if len(shares) != sensitivity(len(counts)):
        raise ValueError("need a share for each depth")
    published = {}
    for node, total in nodes(counts).items():
        alpha = alpha_at(node[0], epsilon, l1, shares)
        published[node] = total + geometric.draw(alpha, rng)
    return published


def consistent(kept):
    """Drop each node that has an absent ancestor (9.7: on filter output, before sampling)."""
    remaining = {}
    for (depth, index), x in kept.items():
        complete = True
        for above in range(depth):
            if (above, index // 2 ** (depth - above)) not in kept:
                complete = False
        if complete:
            remaining[depth, index] = x
    return remaining


def range_variance(lo, hi, m, epsilon, l1, shares):
    """Variance of the cover's sum on the noisy tree, before any filter: its noises add."""
    terms = []
    for depth, _ in cover(lo, hi, m):
        terms.append(geometric.variance(alpha_at(depth, epsilon, l1, shares)))
    return math.fsum(terms)


def nodes2(counts2d):
    """(depth1, index1, depth2, index2) -> the sum of a rectangle, for each pair of nodes."""
    m1, m2 = len(counts2d), len(counts2d[0])
    sums = {}
    for node1 in all_nodes(m1):
        top, bottom = interval(node1, m1)
        for node2 in all_nodes(m2):
            left, right = interval(node2, m2)
            total = 0
            for row in range(top, min(bottom, m1)):
                for column in range(left, min(right, m2)):
                    total += counts2d[row][column]
            sums[node1 + node2] = total
    return sums


def sensitivity2(m1, m2):
    """(L1 + 1)(L2 + 1), one rectangle for each pair of depths (9.7)."""
    return sensitivity(m1) * sensitivity(m2)


def noisy2(counts2d, epsilon, l1, rng):
    """Rectangle -> sum plus noise, the same law for every rectangle."""
    m1, m2 = len(counts2d), len(counts2d[0])
    alpha = geometric.alpha_for(epsilon, l1 * sensitivity2(m1, m2))
    return geometric.noisy(nodes2(counts2d), alpha, rng)


def cover2(box, shape):
    """Every pair of a node of the first range's cover and one of the second's."""
    (top, bottom), (left, right) = box
    pairs = []
    for node1 in cover(top, bottom, shape[0]):
        for node2 in cover(left, right, shape[1]):
            pairs.append(node1 + node2)
    return pairs


def consistent2(kept):
    """Drop each rectangle if any rectangle containing it, coarser in either axis, is absent."""
    remaining = {}
    for (depth1, index1, depth2, index2), x in kept.items():
        complete = True
        for above1 in range(depth1 + 1):
            for above2 in range(depth2 + 1):
                wide = index1 // 2 ** (depth1 - above1)
                tall = index2 // 2 ** (depth2 - above2)
                if (above1, wide, above2, tall) not in kept:
                    complete = False
        if complete:
            remaining[depth1, index1, depth2, index2] = x
    return remaining
