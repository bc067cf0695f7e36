"""Synthetic records from a Dirichlet posterior over all cells, at a price the caller proves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.arrays import Int
from workbench.noise import kernels
from workbench.noise.arguments import check_counts
from workbench.noise.selection import merge_cells
from workbench.noise.source import Source
from workbench.privacy import DP, REPLACE, Receipt


class SyntheticCounts(NamedTuple):
    """Keys of cells, sorted, how many synthetic records each has, and what they cost."""

    keys: Int[np.ndarray, " k"]
    counts: Int[np.ndarray, " k"]
    receipt: Receipt


def dirichlet_multinomial(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    size: int,
    *,
    alpha: float,
    records: int,
    cost: DP,
    rng: np.random.Generator | None = None,
) -> SyntheticCounts:
    """Synthetic records: p ~ Dirichlet(alpha + counts) over all `size` cells, then `records` from p.

    The empty cells are one class of the Dirichlet law until it is known how many records they get; if
    few, those then take cells one by one, as in a Pólya urn (Blackwell & MacQueen, Annals of Statistics
    1973). Drawn with floats: the receipt says `idealised`, and is about the replacement of a record.

    Parameters
    ----------
    keys : int64[n], the non-empty cells, sorted.
    counts : int[n], their counts.
    size : the cells of the domain.
    alpha : the prior weight of each cell, in records.
    records : how many to draw.
    cost : what the caller proves of `alpha`.
    rng : a seeded generator for draws that can be replayed, or None.

    Returns
    -------
    SyntheticCounts
        The cells that got any records, and how many.

    Raises
    ------
    ValueError
        If the counts are no whole numbers.
    """
    check_counts(counts)
    source = Source(rng)
    floats = source.floats
    empty = size - len(keys)
    weights = floats.standard_gamma(np.append(empty * alpha, counts + alpha))
    weights /= (
        weights.sum() or 1
    )  # a lone class may underflow; the last takes what rounding left
    drawn = floats.multinomial(records, weights)
    in_empty_cells = int(drawn[0])
    drawn = drawn[1:]
    if in_empty_cells > empty and alpha > 0.01:
        # all at once is faster, and what underflows weighs nothing
        weights = floats.standard_gamma(alpha, empty)
        values = floats.multinomial(in_empty_cells, weights / (weights.sum() or 1))
        ranks = np.flatnonzero(values)
        values = values[ranks]
    else:
        ranks = np.empty(in_empty_cells, np.int64)
        kernels.urn(empty, empty * alpha, floats, ranks)
        ranks, values = np.unique(ranks, return_counts=True)
    keys, counts = merge_cells(keys, drawn, drawn > 0, ranks, values)
    receipt = source.receipt("dirichlet", cost.epsilon, cost.delta, relation=REPLACE)
    return SyntheticCounts(keys, counts, receipt)
