"""Metrics of adaptive2009 (methods.md 7.8): earth mover's distance, commute distances, recovery.

Indyk's surrogate adds, over all cells at all levels 0 to depth of the halved unit cube, the cell's
diameter times the number of points that one of the two multisets has there more than the other. For
sets of one size and the exact distance D (the sum of the distances moved, not their mean),

    D <= surrogate + size * diameter(depth)

by pairing off inside the smallest cells first. It is an upper bound for whatever place of the grid.
"""

import math
from collections import Counter

import numpy as np
import scipy.optimize
import scipy.stats

EARTH = 6371.0088  # mean radius, km


def diameter(level, dims):
    """Of a cube of side 2^-level: sqrt(dims)/2^level."""
    return math.sqrt(dims) / 2**level


def cell(point, level):
    """Which of the 2^level parts along each axis; the coordinate 1 is in the last."""
    return tuple(min(math.floor(x * 2**level), 2**level - 1) for x in point)


def symmetric_difference(first, second):
    """Of two multisets."""
    a, b = Counter(first), Counter(second)
    return sum(abs(a[key] - b[key]) for key in a | b)


def by_level(first, second, depth):
    """The part of each level, 0 to depth: their running sums are Figure 5."""
    dims = len(first[0]) if len(first) else len(second[0])
    parts = []
    for level in range(depth + 1):
        apart = symmetric_difference(
            [cell(point, level) for point in first], [cell(point, level) for point in second]
        )
        parts.append(diameter(level, dims) * apart)
    return parts


def surrogate(first, second, depth):
    return sum(by_level(first, second, depth))


def exact_line(first, second):
    """Exact distance moved in all, in one dimension; as many points in both."""
    if len(first) != len(second):
        raise ValueError("both must have as many points")
    return len(first) * float(scipy.stats.wasserstein_distance(first, second))


def exact(first, second):
    """The same in any dimension, by assignment."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape:
        raise ValueError("both must have as many points")
    costs = np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2))
    rows, columns = scipy.optimize.linear_sum_assignment(costs)
    return float(costs[rows, columns].sum())


def great_circle(latitude1, longitude1, latitude2, longitude2):
    """Haversine distance in km; degrees."""
    phi1, phi2 = math.radians(latitude1), math.radians(latitude2)
    half = math.radians(longitude2 - longitude1) / 2
    h = math.sin((phi2 - phi1) / 2) ** 2
    h += math.cos(phi1) * math.cos(phi2) * math.sin(half) ** 2
    return 2 * EARTH * math.asin(math.sqrt(min(1.0, h)))


def commute_distances(commutes):
    """Of (home latitude, home longitude, work latitude, work longitude), sorted."""
    return sorted(great_circle(*commute) for commute in commutes)


def cdf(distances, at):
    """Fraction at most `at`."""
    return sum(1 for d in distances if d <= at) / len(distances)


def kolmogorov(first, second):
    """The largest difference of two distribution functions; it is taken at one of the points."""
    return max(abs(cdf(first, x) - cdf(second, x)) for x in [*first, *second])


def recovered(corpus, synthetic):
    """Part of the corpus found in the synthetic data, each copy once: multiset intersection."""
    truth, found = Counter(corpus), Counter(synthetic)
    return sum(min(c, found[w]) for w, c in truth.items()) / sum(truth.values())


def recovered_by_frequency(corpus, synthetic, descending=False):
    """(frequency, data, recovered) for each frequency f in the corpus, in parts of the corpus: the
    records whose string occurs at most f times there, and how many of those are found (Figure 8);
    at least f times with `descending` (Figure 9).
    """
    truth, found = Counter(corpus), Counter(synthetic)
    total = sum(truth.values())
    curve = []
    for f in sorted(set(truth.values()), reverse=descending):
        within = [w for w, c in truth.items() if (c >= f if descending else c <= f)]
        data = sum(truth[w] for w in within)
        met = sum(min(truth[w], found[w]) for w in within)
        curve.append((f, data / total, met / total))
    return curve
