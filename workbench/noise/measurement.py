"""One noisy measurement of all cells, drawn by threads or processes, and the sparse summaries made from it.

Priority sampling. The cells are divided into parts that are drawn separately. The `size` + 1 largest
priorities of all cells are among the `size` + 1 largest of each part. Every part lists its cells with a
priority above a common guess of τ_s, and the guess is lowered until the lists are long enough. The guess
determines the length of the lists, but does not affect the release. Finally, one step compares the listed
priorities as exact real numbers and decides which cells are released. A part leaves out a cell only if
`size` + 1 of its other cells exceed it by more than the floating-point error, and only the first 64 random
bits of a priority are used for this.

Summaries. The noisy non-empty cells and the surviving empty cells are one measurement. Together they have
the same distribution as noise on every cell, followed by a selection of the cells to release.

Source  Cormode, Procopiuc, Srivastava & Tran, ICDT 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import ceil, sqrt
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import on_threads, thread_count
from workbench.noise import priorities
from workbench.noise.additive import empty_cell
from workbench.noise.arguments import check_counts, check_filter
from workbench.noise.parts import (
    AnyBlock,
    NoisyPart,
    Part,
    Prioritised,
    Ranges,
    Sample,
    as_block,
    balanced_ranges,
    best,
    cells_of_runs,
    check_ranges,
    check_size,
    draw_survivors,
    joined,
    keys_of_parts,
    merged_on_threads,
    passes,
    passes_and_sampled,
    runs_of,
    sample,
    survivors,
)
from workbench.noise.source import CELLS_FOR_THREADS, Source
from workbench.privacy import Receipt
from workbench.value import Bool, Int, UInt64, sealed

# Measurement


class NoisyCells(NamedTuple):
    """Sample of noisy cells, with their sorted keys, their noisy values, and a receipt for each block."""

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]
    receipts: tuple[Receipt, ...]


class PrioritySample(NamedTuple):
    """Priority sample of noisy cells. It has their sorted keys, their noisy values, the largest priority
    that was left out (τ_s), and a receipt for each block.
    """

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]
    tau: float
    receipts: tuple[Receipt, ...]


class Measurement:
    """Noise on all cells of some blocks, drawn in parts. A block is a run of cells with one noise
    distribution, and gets one receipt however many parts there are.

    Parameters
    ----------
    blocks : sequence of Block
        Size in cells, sensitivity in counts of the *whole* table, and ε of each block.
    ranges : sequence
        Ranges of cells for each part, in ascending order. Together they contain each cell once.
    theta : number
        Filter θ, in counts. A noisy value v passes if v >= θ or, with `sides` = 2, if v <= −θ.
    sides : int
        2 if large negative values also pass the filter, and 1 if only positive values pass. Default 2.
    tau : number
        Sampling threshold for `threshold_sample`, in counts. 0 for none.
    size : int
        Number of cells that `priority_sample` releases.
    rng : bytes or Generator, optional
        None to publish. For noise that can be replayed, pass 32 bytes, from which the keys of all parts are
        derived. With a seeded generator, there must be a single part, and all draws are made in sequence.

    Raises
    ------
    ValueError
        If an argument is not allowed, if ranges omit or repeat a cell, or if even an empty table would
        release too many cells.
    """

    def __init__(
        self,
        blocks: Sequence[AnyBlock],
        ranges: Sequence[Ranges],
        *,
        theta: float,
        sides: int = 2,
        tau: float = 0.0,
        size: int = 0,
        rng: np.random.Generator | bytes | None = None,
    ):
        check_filter(theta, sides, tau)
        self.blocks = [as_block(block) for block in blocks]
        self.size = size
        self._source = Source.of(rng)
        check_ranges(ranges, sum(block.size for block in self.blocks))
        keys: Sequence[bytes | Source] = [self._source]
        if rng is None or isinstance(rng, bytes):
            keys = keys_of_parts(rng, len(ranges))
        elif len(ranges) > 1:
            raise ValueError("a seeded generator is drawn in turn: need a single part")
        self.parts = tuple(
            Part(runs_of(own, self.blocks), theta, sides, tau, size, key)
            for own, key in zip(ranges, keys, strict=True)
        )

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Return one receipt per block, which states its cost. The number of parts does not matter."""
        return tuple(block.receipt(self._source, "survivors") for block in self.blocks)

    def threshold_sample(self, draw: Callable[..., Sequence[NoisyPart]]) -> NoisyCells:
        """Return the cells of all parts that pass the filter and threshold sampling.

        Parameters
        ----------
        draw : callable
            `draw(function, *arguments)` calls `function(part, keys, counts, *arguments)` for each part with
            its occupied cells, on the machine that has them, and returns the results in the order of the
            parts.

        Returns
        -------
        NoisyCells
            Keys and noisy values of the released cells, and a receipt for each block.
        """
        parts = draw(survivors)
        released = _in_order(*map(np.concatenate, zip(*parts, strict=True)))
        return NoisyCells(*released, self.receipts)

    def priority_sample(self, draw: Callable[..., Sequence[Any]]) -> PrioritySample:
        """Return the `size` cells with the largest priorities among all parts.

        Parameters
        ----------
        draw : callable
            The same as for `threshold_sample`. `priority_sample` calls it twice or more often.

        Returns
        -------
        PrioritySample
            Keys and noisy values to release, τ_s, and a receipt for each block.
        """
        least = float(max(ceil(self.parts[0].theta), 1))
        taus = [max(self._first_guess(draw(sample)), least)]

        def words(n: int) -> UInt64[np.ndarray, " n"]:  # hardly ever asked for any
            return self._source.words(n)

        while True:
            parts = draw(best, tuple(taus))
            cells = [joined(pools) for pools in zip(*parts, strict=True)]
            limits = [(0.0, np.inf), *zip(taus, [np.inf, *taus], strict=False)]
            candidates = [
                priorities.Candidates(pool.values, words, tau, above, pool.drawn)
                for pool, (tau, above) in zip(cells, limits, strict=True)
            ]
            limit = 1 / taus[-1]
            sure = np.count_nonzero(candidates[0].inverse < limit - priorities.margin(limit))
            listed = int(sure) + sum(len(pool.keys) for pool in cells[1:])
            if taus[-1] <= least or listed > self.size:
                break
            taus.append(max(taus[-1] / 2, least))
        taken, tau = priorities.largest_priorities(candidates, self.size, taus[-1])
        masks = np.split(taken, np.cumsum([len(pool.keys) for pool in cells[:-1]]))
        chosen = [(x.keys[mask], x.values[mask]) for x, mask in zip(cells, masks, strict=True)]
        released = _in_order(*map(np.concatenate, zip(*chosen, strict=True)))
        return PrioritySample(*released, tau, self.receipts)

    def threshold_sample_of(
        self, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"], threads: int
    ) -> NoisyCells:
        """Make a threshold sample of a table that is in memory."""
        runs = self._draw(draw_survivors, keys, counts, threads)
        return NoisyCells(*merged_on_threads(runs, threads), self.receipts)

    def priority_sample_of(
        self, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"], threads: int
    ) -> PrioritySample:
        """Make a priority sample of a table that is in memory."""
        cells = self._draw(Prioritised, keys, counts, threads)

        def draw(function: Callable[..., Any], *arguments: Any) -> list[Any]:
            method = methodcaller(function.__name__, *arguments)
            return on_threads(method, cells, threads)

        return self.priority_sample(draw)

    def _draw(
        self,
        function: Callable[..., Any],
        keys: Int[np.ndarray, " n"],
        counts: Int[np.ndarray, " n"],
        threads: int,
    ) -> list[Any]:
        """Call `function(part, keys, counts)` for each part, which has a single range of cells."""

        def of_part(part: Part) -> Any:
            low = cells_of_runs(keys, part.runs[:1])[0].start
            high = cells_of_runs(keys, part.runs[-1:])[0].stop
            return function(part, keys[low:high], counts[low:high])

        return on_threads(of_part, self.parts, threads)

    def _first_guess(self, samples: Sequence[Sample]) -> float:
        """Return a guess of τ_s."""
        part = self.parts[0]
        laws = [run.block.law for p in self.parts for run in p.runs]
        empty_cells = chain.from_iterable(own.empty for own in samples)
        return priorities.guess_threshold(
            np.concatenate([own.sizes for own in samples]),
            sum(own.passing for own in samples),
            [*zip(empty_cells, laws, strict=True)],
            part.theta,
            part.sides,
            self.size + 6 * sqrt(self.size) + 6,
        )


def _in_order(keys: Int[np.ndarray, " k"], values: Int[np.ndarray, " k"]) -> NoisyPart:
    order = np.argsort(keys, kind="stable")  # fast, because most of them ascend
    return NoisyPart(sealed(keys[order]), sealed(values[order]))


# Summaries

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
    """Add noise to all cells of all blocks. Return the cells that pass a filter and are then
    sampled.

    A noisy value v passes the filter if |v| >= theta (for sides = 2) or v >= theta (for sides = 1).
    If tau > 0, a value that passes is kept with probability min(|v|/tau, 1).

    Parameters
    ----------
    keys : int64[n]
        Keys (numbers) of the cells that are not empty, in ascending order. The cells of all blocks are
        numbered together.
    counts : int[n]
        Counts of these cells.
    blocks : sequence of Block
        Runs of cells with the same noise. A block gives its number of cells, the sensitivity of their counts,
        and its ε or ρ.
    theta : number
        Filter θ, in counts. A noisy value v passes if v >= θ or, with `sides` = 2, if v <= −θ.
    sides : int
        2 if large negative values also pass the filter, and 1 if only positive values pass. Default 2.
    tau : number
        Sampling threshold τ, in counts. A noisy value v that passes the filter is kept with probability
        min(|v|/τ, 1). Default 0: all are kept.
    rng : Generator, optional
        Seeded generator, which gives the same noise again. Use None (the default) for noise that you publish.
    threads : int, optional
        Number of threads, used only without a generator. `threads.thread_count` gives the default.

    Returns
    -------
    NoisyCells
        Keys and noisy values of the released cells, and a receipt for each block.

    Raises
    ------
    ValueError
        If an argument is not allowed, or if even an empty table would release too many cells.
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
    """Choose from noisy values that are public already. Keep those that pass the filter and are then sampled in
    proportion to their size.

    Parameters
    ----------
    noisy : int64[n]
        Public noisy values.
    theta, sides, tau, rng
        The same as for `threshold_sample`.

    Returns
    -------
    bool[n]
        Whether each value is kept.
    """
    return passes_and_sampled(noisy, theta, sides, tau, Source.of(rng))


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
    """Add noise to all cells of all blocks, and return the `size` cells with the largest priorities.

    Parameters
    ----------
    keys : int64[n]
        Keys (numbers) of the cells that are not empty, in ascending order. The cells of all blocks are
        numbered together.
    counts : int[n]
        Counts of these cells.
    blocks : sequence of Block
        Runs of cells with the same noise. A block gives its number of cells, the sensitivity of their counts,
        and its ε or ρ.
    theta : number
        Filter before sampling, in counts.
    size : int
        Number of cells to release. Fewer are released if fewer pass the filter.
    sides : int
        2 if large negative values also pass the filter, and 1 if only positive values pass. Default 2.
    rng : Generator, optional
        Seeded generator, which gives the same noise again. Use None (the default) for noise that you publish.
    threads : int, optional
        Number of threads, used only without a generator. `threads.thread_count` gives the default.

    Returns
    -------
    PrioritySample
        Keys and noisy values to release, the next priority τ_s (0 if at most `size` cells pass), and a
        receipt for each block.

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
    """Choose `size` of the given noisy values, which are public already. The choice is by the largest
    priorities.

    Parameters
    ----------
    noisy : int64[n]
        Public noisy values.
    theta, size, sides, rng
        The same as for `priority_sample`.

    Returns
    -------
    bool[n]
        Whether each value is kept.
    float
        τ_s.
    """
    kept = passes(noisy, max(ceil(theta), 1), sides)
    candidates = priorities.Candidates(noisy[kept], Source.of(rng).places(noisy[kept], None))
    kept[kept], tau = priorities.largest_priorities([candidates], size)
    return kept, tau


def _threads_and_ranges(
    keys: Int[np.ndarray, " n"],
    size: int,
    expected: float,
    rng: np.random.Generator | None,
    threads: int | None,
) -> tuple[int, Sequence[Ranges]]:
    """Return the number of threads and the ranges of their parts. With a seeded generator there is one part."""
    threads = thread_count(threads)
    if rng is not None or threads == 1 or len(keys) + expected < CELLS_FOR_THREADS:
        return 1, [[(0, size)]]
    return threads, balanced_ranges(keys, size, _PARTS_A_THREAD * threads)
