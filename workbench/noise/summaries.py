"""Sparse summaries of noisy counts, without a visit to the cells that are empty.

Noise on the non-empty cells and the survivors among the empty ones are one measurement: together they
have the law of geometric noise on every cell, of which some are released.

Source  Cormode, Procopiuc, Srivastava & Tran, ICDT 2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from workbench.arrays import Bool, Int
from workbench.noise import kernels, priorities
from workbench.noise.arguments import check_counts, check_filter, decay
from workbench.noise.bits import Words, word_source
from workbench.noise.empty_cells import empty_cell, survivor_ranks
from workbench.noise.exact import Interval, accept
from workbench.noise.laws import two_sided
from workbench.noise.source import Source
from workbench.privacy import Receipt
from workbench.value import sealed

MAX_RELEASED_CELLS = 2**28  # that a summary may be expected to hold: some 4 GiB


class Block(NamedTuple):
    """Consecutive cells with one noise law: a unit moves them by at most `l1`, `epsilon` pays."""

    size: int
    l1: float | Fraction
    epsilon: float


class NoisyCells(NamedTuple):
    """Keys of cells, sorted, their noisy values, and a receipt for each block."""

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]
    receipts: tuple[Receipt, ...]


class PrioritySample(NamedTuple):
    """Keys of cells, sorted, their noisy values, τ_s, and a receipt for each block."""

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]
    tau: float
    receipts: tuple[Receipt, ...]


def threshold_sample(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    blocks: Sequence[Block],
    *,
    theta: float,
    sides: int = 2,
    tau: float = 0.0,
    rng: np.random.Generator | None = None,
) -> NoisyCells:
    """Noise on all cells of all blocks, of which those that pass a filter and sampling are returned.

    A value passes if |v| >= theta (sides = 2) or v >= theta (sides = 1) and, with tau > 0, is then kept
    with probability min(|v|/tau, 1).

    Parameters
    ----------
    keys : int64[n], the non-empty cells, sorted; blocks are numbered through.
    counts : int[n], their counts.
    blocks : sizes in cells, sensitivities in counts, and the ε of each.
    theta : the filter, in counts.
    sides : 2 for both signs, 1 for positive values only.
    tau : the sampling threshold, in counts; 0 for none.
    rng : a seeded generator for noise that can be replayed, or None to publish.

    Returns
    -------
    NoisyCells
        Keys and noisy values of what is released, and a receipt for each block.

    Raises
    ------
    ValueError
        If an argument is not allowed, or an empty table would already release too many cells.
    """
    source = Source(rng)
    words = source.words
    check_counts(counts)
    check_filter(theta, sides, tau)
    blocks = [Block(*b) for b in blocks]
    size = sum(b.size for b in blocks)
    laws = [empty_cell(decay(b.l1, b.epsilon), theta, sides, tau) for b in blocks]
    everything = sides == 2 and theta == 0 and tau == 0
    if everything:
        expected = size
    else:
        expected = sum(
            b.size * float(law.survival(192)) for b, law in zip(blocks, laws, strict=True)
        )
    check_size(size, expected)
    if everything:
        dense = np.zeros(size, np.int64)
        dense[keys] = counts
        keys = np.arange(size)
        counts = dense
    noisy = np.array(counts, np.int64)
    released = []
    for block, law, cells in zip(blocks, laws, _cells_of_blocks(keys, blocks), strict=True):
        occupied = noisy[cells.occupied]
        two_sided(decay(block.l1, block.epsilon)).add(occupied, words)
        kept = _passes_and_sampled(occupied, theta, sides, tau, words)
        ranks = survivor_ranks(block.size - kept.size, law.survival, words)
        values = law.values(len(ranks), words)
        released.append(
            merge_cells(keys[cells.occupied], occupied, kept, ranks, values, cells.start)
        )
    keys, values = map(_joined, zip(*released, strict=True))
    return NoisyCells(keys, values, _receipts(source, blocks))


def threshold_sample_public(
    noisy: Int[np.ndarray, " n"],
    *,
    theta: float,
    sides: int = 2,
    tau: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Bool[np.ndarray, " n"]:
    """Which of some public noisy values pass the filter and threshold sampling.

    Parameters
    ----------
    noisy : int64[n], public.
    theta, sides, tau, rng : as for `threshold_sample`.

    Returns
    -------
    bool[n]
        Whether each is kept.
    """
    return _passes_and_sampled(noisy, theta, sides, tau, word_source(rng))


def priority_sample(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    blocks: Sequence[Block],
    *,
    theta: float,
    size: int,
    sides: int = 2,
    rng: np.random.Generator | None = None,
) -> PrioritySample:
    """Noise on all cells of all blocks, of which the `size` with the largest priorities are returned.

    Parameters
    ----------
    keys : int64[n], the non-empty cells, sorted; blocks are numbered through.
    counts : int[n], their counts.
    blocks : sizes in cells, sensitivities in counts, and the ε of each.
    theta : a filter before sampling, in counts.
    size : how many cells are released, or fewer if no more pass.
    sides : 2 for both signs, 1 for positive values only.
    rng : a seeded generator for noise that can be replayed, or None to publish.

    Returns
    -------
    PrioritySample
        Keys and noisy values of what is released, τ_s, the next priority (0 if no more than `size`
        cells pass), and a receipt for each block.

    Raises
    ------
    ValueError
        If an argument is not allowed, or too many cells would be released.
    """
    source = Source(rng)
    words = source.words
    check_counts(counts)
    check_filter(theta, sides)
    blocks = [Block(*b) for b in blocks]
    laws = [two_sided(decay(b.l1, b.epsilon)) for b in blocks]
    total = sum(b.size for b in blocks)
    check_size(total, min(size, total))
    noisy = np.array(counts, np.int64)
    cells = _cells_of_blocks(keys, blocks)
    for law, own in zip(laws, cells, strict=True):
        law.add(noisy[own.occupied], words)
    kept = _passes(noisy, max(ceil(theta), 1), sides)
    occupied = priorities.Candidates(noisy[kept], words)
    empty = [
        (block.size - len(noisy[own.occupied]), law.alpha)
        for block, law, own in zip(blocks, laws, cells, strict=True)
    ]
    drawn = priorities.empty_cells(occupied, empty, theta, sides, size, words)
    pools = [occupied, *(cell.candidates for cell in drawn)]
    taken, tau = priorities.largest_priorities(pools, size)
    ends = np.cumsum([len(pool.drawn) for pool in pools])
    taken_occupied, *taken_empty = np.split(taken, ends[:-1])
    kept[kept] = taken_occupied
    released = []
    for i, own in enumerate(cells):
        chosen = [
            (pool.ranks[mask], pool.candidates.values[mask])
            for mask, pool in zip(taken_empty, drawn, strict=True)
            if pool.block == i
        ]
        ranks, values = map(_joined, zip(*chosen, strict=True))
        if (ranks[1:] < ranks[:-1]).any():
            order = np.argsort(ranks)
            ranks = ranks[order]
            values = values[order]
        released.append(
            merge_cells(
                keys[own.occupied],
                noisy[own.occupied],
                kept[own.occupied],
                ranks,
                values,
                own.start,
            )
        )
    keys, values = map(_joined, zip(*released, strict=True))
    return PrioritySample(keys, values, tau, _receipts(source, blocks))


def priority_sample_public(
    noisy: Int[np.ndarray, " n"],
    *,
    theta: float,
    size: int,
    sides: int = 2,
    rng: np.random.Generator | None = None,
) -> tuple[Bool[np.ndarray, " n"], float]:
    """Which of some public noisy values have the `size` largest priorities.

    Parameters
    ----------
    noisy : int64[n], public.
    theta, size, sides, rng : as for `priority_sample`.

    Returns
    -------
    bool[n]
        Whether each is kept.
    float
        τ_s.
    """
    kept = _passes(noisy, max(ceil(theta), 1), sides)
    candidates = priorities.Candidates(noisy[kept], word_source(rng))
    kept[kept], tau = priorities.largest_priorities([candidates], size)
    return kept, tau


def check_size(size: int, released: float) -> None:
    """Refuse, from public quantities alone, a summary too large to hold.

    Parameters
    ----------
    size : how many cells the domain has.
    released : how many of them an empty table is expected to release.

    Raises
    ------
    ValueError
        If those are more than `MAX_RELEASED_CELLS`.
    """
    if released > MAX_RELEASED_CELLS:
        raise ValueError(
            f"an empty table of {size} cells would already release {released:.3g} of them: "
            f"need at most {MAX_RELEASED_CELLS}; raise theta or tau, or lower size"
        )


def merge_cells(
    keys: Int[np.ndarray, " n"],
    noisy: Int[np.ndarray, " n"],
    kept: Bool[np.ndarray, " n"],
    ranks: Int[np.ndarray, " s"],
    values: Int[np.ndarray, " s"],
    start: int = 0,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Kept occupied cells and surviving empty ones, by rank from `start` on: keys, values in order."""
    size = int(kept.sum()) + len(ranks)
    out_keys = np.empty(size, np.int64)
    out_values = np.empty(size, np.int64)
    kernels.merge(keys, noisy, kept, ranks, values, start, out_keys, out_values)
    return sealed(out_keys), sealed(out_values)


class _Cells(NamedTuple):
    """Where a block starts, and which of the sorted keys lie in it."""

    start: int
    occupied: slice


def _cells_of_blocks(keys: Int[np.ndarray, " n"], blocks: Sequence[Block]) -> list[_Cells]:
    cells = []
    start = 0
    for block in blocks:
        last = start + block.size - 1  # a search for the key behind it might overflow
        low, high = np.searchsorted(keys, np.array([start, last]))
        high += high < len(keys) and keys[high] == last
        cells.append(_Cells(start, slice(int(low), int(high))))
        start += block.size
    return cells


def _passes(noisy: Int[np.ndarray, " n"], theta: int, sides: int) -> Bool[np.ndarray, " n"]:
    if sides == 1:
        return noisy >= theta
    return (noisy >= theta) | (noisy <= -theta)


def _passes_and_sampled(
    noisy: Int[np.ndarray, " n"], theta: float, sides: int, tau: float, words: Words
) -> Bool[np.ndarray, " n"]:
    if not tau > 0:
        return _passes(noisy, ceil(theta), sides)
    kept = _passes(noisy, max(ceil(theta), 1), sides)
    below_tau = np.flatnonzero(kept & (np.abs(noisy) < tau))
    chance = np.abs(noisy[below_tau]) / tau

    def exact(i: int, bits: int) -> Interval:
        return Interval.of(abs(int(noisy[below_tau[i]])) / Fraction(tau), bits)

    kept[below_tau] = accept(chance, exact, words)
    return kept


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return sealed(np.concatenate(arrays)) if len(arrays) > 1 else arrays[0]


def _receipts(source: Source, blocks: Sequence[Block]) -> tuple[Receipt, ...]:
    return tuple(source.receipt("survivors", block.epsilon) for block in blocks)
