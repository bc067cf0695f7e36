"""Sparse summaries of noisy counts, without a visit to the cells that are empty.

Noise on the non-empty cells and the survivors among the empty ones are one measurement: together they
have the law of noise on every cell, of which some are released.

Source  Cormode, Procopiuc, Srivastava & Tran, ICDT 2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from workbench.arrays import Bool, Int
from workbench.noise import priorities
from workbench.noise.arguments import check_counts, check_filter
from workbench.noise.bits import word_source
from workbench.noise.kinds import empty_cell
from workbench.noise.measurement import Measurement, NoisyCells, PrioritySample
from workbench.noise.parts import Ranges, balanced_ranges
from workbench.noise.selection import AnyBlock, as_block, check_size, passes, passes_and_sampled
from workbench.noise.source import CELLS_FOR_THREADS
from workbench.threads import thread_count

_PARTS_A_THREAD = 2


def threshold_sample(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    blocks: Sequence[AnyBlock],
    *,
    theta: float,
    sides: int = 2,
    tau: float = 0.0,
    rng: np.random.Generator | None = None,
    threads: int | None = None,
) -> NoisyCells:
    """Noise on all cells of all blocks, of which those that pass a filter and sampling are returned.

    A value passes if |v| >= theta (sides = 2) or v >= theta (sides = 1) and, with tau > 0, is then kept
    with probability min(|v|/tau, 1).

    Parameters
    ----------
    keys : int64[n], the non-empty cells, sorted; blocks are numbered through.
    counts : int[n], their counts.
    blocks : sizes in cells, sensitivities, and the ε, or ρ, of each.
    theta : the filter, in counts.
    sides : 2 for both signs, 1 for positive values only.
    tau : the sampling threshold, in counts; 0 for none.
    rng : a seeded generator for noise that can be replayed, or None to publish.
    threads : how many draw without a generator; as `threads.thread_count` says.

    Returns
    -------
    NoisyCells
        Keys and noisy values of what is released, and a receipt for each block.

    Raises
    ------
    ValueError
        If an argument is not allowed, or an empty table would already release too many cells.
    """
    check_counts(counts)
    check_filter(theta, sides, tau)
    blocks = [as_block(b) for b in blocks]
    size = sum(b.size for b in blocks)
    expected = float(size)
    if sides == 1 or theta > 0 or tau > 0:
        expected = sum(b.size * empty_cell(b.law, theta, sides, tau).chance for b in blocks)
    check_size(size, expected)
    threads, ranges = _threads_and_ranges(keys, size, expected, rng, threads)
    measurement = Measurement(blocks, ranges, theta=theta, sides=sides, tau=tau, rng=rng)
    return measurement.threshold_sample_of(keys, counts, threads)


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
    return passes_and_sampled(noisy, theta, sides, tau, word_source(rng))


def priority_sample(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    blocks: Sequence[AnyBlock],
    *,
    theta: float,
    size: int,
    sides: int = 2,
    rng: np.random.Generator | None = None,
    threads: int | None = None,
) -> PrioritySample:
    """Noise on all cells of all blocks, of which the `size` with the largest priorities are returned.

    Parameters
    ----------
    keys : int64[n], the non-empty cells, sorted; blocks are numbered through.
    counts : int[n], their counts.
    blocks : sizes in cells, sensitivities, and the ε, or ρ, of each.
    theta : a filter before sampling, in counts.
    size : how many cells are released, or fewer if no more pass.
    sides : 2 for both signs, 1 for positive values only.
    rng : a seeded generator for noise that can be replayed, or None to publish.
    threads : how many draw without a generator; as `threads.thread_count` says.

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
    check_counts(counts)
    blocks = [as_block(b) for b in blocks]
    total = sum(b.size for b in blocks)
    check_size(total, min(size, total))
    threads, ranges = _threads_and_ranges(keys, total, min(size, total), rng, threads)
    measurement = Measurement(blocks, ranges, theta=theta, sides=sides, size=size, rng=rng)
    return measurement.priority_sample_of(keys, counts, threads)


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
    kept = passes(noisy, max(ceil(theta), 1), sides)
    candidates = priorities.Candidates(noisy[kept], word_source(rng))
    kept[kept], tau = priorities.largest_priorities([candidates], size)
    return kept, tau


def _threads_and_ranges(
    keys: Int[np.ndarray, " n"],
    size: int,
    expected: float,
    rng: np.random.Generator | None,
    threads: int | None,
) -> tuple[int, Sequence[Ranges]]:
    """How many threads draw, and the ranges of their parts; a seeded generator is drawn in turn."""
    threads = thread_count(threads)
    if rng is not None or threads == 1 or len(keys) + expected < CELLS_FOR_THREADS:
        return 1, [[(0, size)]]
    return threads, balanced_ranges(keys, size, _PARTS_A_THREAD * threads)
