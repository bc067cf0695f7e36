"""How many nodes of a tree a range needs, and how much noise they have: exactly, as rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from experiments.cormode2012.shared import CELLS, FULL
from workbench.compiled import pd
from workbench.noise.law import geometric_variance

THEORY = "theory"
NODES = "MeanNodes"
VARIANCE = "MeanVariance"
CROSSING = "Crossing"
GREATEST = "GreatestVariance"
HEIGHTS = (8, 12, 16, 20)


def mean_nodes(cells: int, m: int) -> float:
    """The mean number of dyadic nodes of a range, over all its places among m cells.

    Of nodes of 2^k cells, where two fit, the range from lo to hi needs one at its left end if ⌈lo/2^k⌉ is
    odd, and one at its right end if ⌊hi/2^k⌋ is; of the largest that fit it needs one, or none. A
    range up to the end of a domain that is no power of two may need fewer.
    """
    places = m - cells + 1
    nodes = 0
    width = 1
    while 2 * width <= cells:
        nodes += _count(width - 1, places, 2 * width, width, 2 * width)
        nodes += _count(cells, places, 2 * width, width, 2 * width)
        width *= 2
    spare = cells - width
    nodes += _count(spare, places, width, 0, spare + 1)
    return nodes / places


def _count(first: int, numbers: int, period: int, low: int, high: int) -> int:
    """How many of so many numbers from `first` on have a remainder from `low` to below `high`."""

    def below(n: int) -> int:
        return n // period * (high - low) + min(max(n % period - low, 0), high - low)

    return below(first + numbers) - below(first)


def crossing(m: int, epsilon: float) -> int:
    """The number of cells from which on a range has less variance from nodes than from cells."""
    times = _variance_of_node(m, epsilon) / geometric_variance(epsilon)
    lower = bisect_left(
        range(1, m + 1), True, key=lambda cells: times * mean_nodes(cells, m) < cells
    )
    return lower + 1


def nodes_per_count(m: int) -> int:
    """How many nodes, or Haar coefficients, a count moves: one a level of the tree."""
    return (m - 1).bit_length() + 1


def _variance_of_node(m: int, epsilon: float) -> float:
    return geometric_variance(epsilon / nodes_per_count(m))


def full_tables(m: int, sizes: Sequence[int], epsilon: float) -> pd.DataFrame:
    """Rows of full tables: the mean nodes and variances of ranges, and from where on nodes are better."""
    rows = [{"metric": CROSSING, "series": FULL, "value": crossing(m, epsilon)}]
    for size in sizes:
        nodes = mean_nodes(size, m)
        of_cells = size * geometric_variance(epsilon)
        rows += [
            {"metric": NODES, "series": FULL, "query_size": size, "value": nodes},
            {"metric": VARIANCE, "series": CELLS, "query_size": size, "value": of_cells},
            {
                "metric": VARIANCE,
                "series": FULL,
                "query_size": size,
                "value": nodes * _variance_of_node(m, epsilon),
            },
        ]
    return pd.DataFrame(rows).assign(panel=THEORY, m=m, epsilon=epsilon, truth_public=True)


def greatest_variances(epsilon: float) -> pd.DataFrame:
    """Rows of the greatest variance of any range, by nodes and by Haar coefficients, at several m."""
    rows = []
    for height in HEIGHTS:
        weights = {"dyadic": 2 * (height - 1), "Haar": greatest_haar_weight(height)}
        for series, weight in weights.items():
            noise = _variance_of_node(2**height, epsilon)
            rows.append({"series": series, "m": 2**height, "value": weight * noise})
    columns = dict(panel=THEORY, metric=GREATEST, epsilon=epsilon, truth_public=True)
    return pd.DataFrame(rows).assign(**columns)


def greatest_haar_weight(height: int) -> float:
    """The greatest sum of squared factors of a range's Haar coefficients, among 2^height cells.

    A coefficient of L cells of which an end cuts off t has the factor min(t, L − t)/L. With u and v the
    shares of the domain left and right of a range that crosses its middle, the total and the root's
    coefficient have squares of together 1 + 2u² − 2u + 2v² − 2v, so that the ends can be chosen one
    by one; a range within a half has less.
    """
    m = 2**height
    outside = np.arange(m // 2 + 1)
    share = outside / m
    squares = 2 * share**2 - 2 * share
    width = m // 2
    while width > 1:
        cut = outside % width
        squares += (np.minimum(cut, width - cut) / width) ** 2
        width //= 2
    return 1 + 2 * float(squares.max())
