"""Noise on all cells of a table, drawn by several threads or processes, and summaries that release only some
of the noisy cells.

Priority sampling. Each noisy cell gets a random priority, and the `size` cells with the largest priorities are
released. The next largest priority is called τ_s. The code divides the cells into parts, which it draws
separately. All parts use the same guess of τ_s, and each part lists its cells whose priority is above this
guess. The code lowers the guess until the lists contain enough cells. The guess determines how long the lists
are, but does not affect the release. Finally, the code compares the listed priorities as exact real numbers,
and chooses the cells to release.

Empty cells. Most empty cells are not released, and their noise is never drawn. The released cells have the
same distribution as if noise were added to every cell and then some of the noisy cells were selected.

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
    """Released cells: their keys (numbers) in ascending order, their noisy values, and receipts, which record
    the privacy cost. There is one receipt for each block of cells with the same noise.
    """

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]
    receipts: tuple[Receipt, ...]


class PrioritySample(NamedTuple):
    """Released cells, chosen by random priorities: their keys (numbers) in ascending order and their noisy
    values. `tau` is the largest priority of a cell that was not released (τ_s). The receipts record the
    privacy cost, with one receipt for each block of cells with the same noise.
    """

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]
    tau: float
    receipts: tuple[Receipt, ...]


class Measurement:
    """Noise on all cells of a table, drawn in several parts, for example one part per file. Consecutive cells
    with the same distribution of noise form a block. Each block has one receipt, whatever the number of
    parts.

    Parameters
    ----------
    blocks : sequence of Block
        Division of all cells into blocks of consecutive cells with the same noise. A block contains the number
        of cells, and the ε or ρ of the noise. It also contains a limit on how much one unit (for example a
        person) can change the counts of these cells.
    ranges : sequence
        For each part, its cells as pairs (number of the first cell, number of the last cell + 1) in ascending
        order. All parts together must contain each cell exactly once.
    theta : number
        Threshold θ of the filter, as a number of records. With `sides` = 1, the filter drops cells with a noisy
        value below θ. With `sides` = 2, it drops cells if the absolute value of the noisy value is below θ.
    sides : int
        With 2, cells with large negative noisy values also pass the filter. With 1, only cells with values
        of at least θ pass. Default 2.
    tau : number
        Sampling threshold τ for `threshold_sample`, in counts. A noisy value v that passes the filter is kept
        with probability min(|v|/τ, 1). Default 0: all values that pass the filter are kept.
    size : int
        Number of cells that `priority_sample` releases. Default 0.
    rng : bytes or Generator, optional
        Use None (the default) for noise that you publish. A key of 32 bytes gives the same noise again, and
        the keys of all parts are derived from it. With a seeded generator, there must be only one part.

    Raises
    ------
    ValueError
        If an argument is not allowed, or if the ranges do not contain each cell exactly once.
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
        """One receipt per block, which records the privacy cost of the noise on this block. The number of
        parts does not change the cost.
        """
        return tuple(block.receipt(self._source, "survivors") for block in self.blocks)

    def threshold_sample(self, draw: Callable[..., Sequence[NoisyPart]]) -> NoisyCells:
        """Release a random sample of the noisy cells that pass the filter θ, from all parts together. The
        argument `tau` of the class determines how many cells are sampled.

        Parameters
        ----------
        draw : callable
            Function that draws each part in the process that has the counts of the part. `draw(function,
            *arguments)` must call `function(part, keys, counts, *arguments)` for each part. `keys` and
            `counts` are the keys and counts of the non-empty cells of the part. `draw` must return the
            results in the order of the parts.

        Returns
        -------
        NoisyCells
            Keys and noisy values of the released cells, and one receipt per block, which records the privacy
            cost.
        """
        parts = draw(survivors)
        released = _in_order(*map(np.concatenate, zip(*parts, strict=True)))
        return NoisyCells(*released, self.receipts)

    def priority_sample(self, draw: Callable[..., Sequence[Any]]) -> PrioritySample:
        """Release the `size` noisy cells with the largest priorities, from all parts together. The priority
        of a noisy value v is |v|/r, where r is a random number between 0 and 1.

        Parameters
        ----------
        draw : callable
            Function that draws the parts, as in `threshold_sample`. The method calls this function at least
            twice.

        Returns
        -------
        PrioritySample
            Keys and noisy values of the released cells, the next largest priority τ_s, and a receipt for each
            block.
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
        """Release a random sample of the noisy cells that pass the filter, for a table that is in memory."""
        runs = self._draw(draw_survivors, keys, counts, threads)
        return NoisyCells(*merged_on_threads(runs, threads), self.receipts)

    def priority_sample_of(
        self, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"], threads: int
    ) -> PrioritySample:
        """Release the `size` noisy cells with the largest priorities, for a table that is in memory."""
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
        """Call `function(part, keys, counts)` for each part on several threads. Each part must have only one
        range of cells.
        """

        def of_part(part: Part) -> Any:
            low = cells_of_runs(keys, part.runs[:1])[0].start
            high = cells_of_runs(keys, part.runs[-1:])[0].stop
            return function(part, keys[low:high], counts[low:high])

        return on_threads(of_part, self.parts, threads)

    def _first_guess(self, samples: Sequence[Sample]) -> float:
        """Return a guess of τ_s, the largest priority of a cell that is not released."""
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
    """Add noise to all cells, including empty cells. Drop the cells with a small noisy value, and release a
    random sample of the other cells. Return the released cells, and receipts that record the privacy cost.

    Let v be the noisy value of a cell. The first step is a filter: the cell passes if |v| >= theta (for
    `sides` = 2) or if v >= theta (for `sides` = 1). The second step is sampling: a cell that passed is
    released with probability min(|v|/tau, 1), or always if tau = 0.

    Parameters
    ----------
    keys : int64[n]
        Keys of the cells that are not empty, in ascending order. A key is the position of a cell among the
        cells of all blocks, from 0.
    counts : int[n]
        Counts of these cells.
    blocks : sequence of Block
        Division of all cells into blocks of consecutive cells with the same noise. A block contains the number
        of cells, and the ε or ρ of the noise. It also contains a limit on how much one unit (for example a
        person) can change the counts of these cells.
    theta : number
        Threshold θ of the filter, as a number of records. With `sides` = 1, the filter drops cells with a noisy
        value below θ. With `sides` = 2, it drops cells if the absolute value of the noisy value is below θ.
    sides : int
        With 2, cells with large negative noisy values also pass the filter. With 1, only cells with values
        of at least θ pass. Default 2.
    tau : number
        Sampling threshold τ, as a number of records. If a cell with the noisy value v passes the filter, the
        cell is released with probability min(|v|/τ, 1). With the default 0, all cells that pass the filter are
        released.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.
    threads : int, optional
        Number of threads. This argument has an effect only if `rng` is None. By default, the function uses
        one thread per processor core (see `compiled.thread_count`).

    Returns
    -------
    NoisyCells
        Keys and noisy values of the released cells, and one receipt per block, which records the privacy
        cost.

    Raises
    ------
    ValueError
        If an argument is not allowed, or if so many empty cells would be released that they do not fit into
        memory.
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
    """Choose some of the given noisy values, which are already public. As in `threshold_sample`, the function
    drops small values, and keeps a random sample of the other values. Larger values are more likely to be kept.

    Parameters
    ----------
    noisy : int64[n]
        Noisy values that are already public.
    theta, sides, tau, rng : number, int, number and Generator
        The same as for `threshold_sample`. `theta` is the threshold of the filter, and `tau` the sampling
        threshold. `sides` determines whether negative values pass the filter. `rng` is the random generator.

    Returns
    -------
    bool[n]
        Mask of the values that are kept.
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
    """Add noise to all cells, including empty cells, and release the `size` cells with the largest
    priorities.

    The priority of a cell with the noisy value v is |v|/r. The function draws the random number r for each
    cell, uniformly between 0 and 1. So the probability of a release is higher for cells with large values.

    Parameters
    ----------
    keys : int64[n]
        Keys of the cells that are not empty, in ascending order. A key is the position of a cell among the
        cells of all blocks, from 0.
    counts : int[n]
        Counts of these cells.
    blocks : sequence of Block
        Division of all cells into blocks of consecutive cells with the same noise. A block contains the number
        of cells, and the ε or ρ of the noise. It also contains a limit on how much one unit (for example a
        person) can change the counts of these cells.
    theta : number
        Threshold θ of a filter, as a number of records. With `sides` = 1, the filter drops cells with a noisy
        value below θ. With `sides` = 2, it drops cells if the absolute value of the noisy value is below θ.
    size : int
        Number of cells to release. If fewer cells pass the filter, all of them are released.
    sides : int
        With 2, cells with large negative noisy values also pass the filter. With 1, only cells with values
        of at least θ pass. Default 2.
    rng : Generator, optional
        With a seeded generator, you get the same noise again. Use None (the default) for noise that you
        publish.
    threads : int, optional
        Number of threads. This argument has an effect only if `rng` is None. By default, the function uses
        one thread per processor core (see `compiled.thread_count`).

    Returns
    -------
    PrioritySample
        Keys and noisy values of the released cells, the priority τ_s, and one receipt per block, which records
        the privacy cost. τ_s is the largest priority of a cell that was not released. If at most `size` cells
        pass the filter, τ_s is 0.

    Raises
    ------
    ValueError
        If an argument is not allowed, or if `size` cells do not fit into memory.
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
    """Choose `size` of the given noisy values, which are already public. The function draws a random priority
    for each value, as in `priority_sample`. It keeps the values with the largest priorities. With `sides` = 1,
    values below the threshold θ are never kept. With `sides` = 2, values with an absolute value below θ are
    never kept.

    Parameters
    ----------
    noisy : int64[n]
        Noisy values that are already public.
    theta, size, sides, rng : number, int, int and Generator
        The same as for `priority_sample`. `theta` is the threshold of the filter, and `size` the number of
        values to keep. `sides` determines whether negative values pass the filter. `rng` is the random
        generator.

    Returns
    -------
    bool[n]
        Mask of the values that are kept.
    float
        Largest priority of a value that is not kept (τ_s). If all values that pass the filter are kept, τ_s is
        0.
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
    """Return the number of threads, and for each part the range of cells that it contains. With a seeded
    generator, there is only one part.
    """
    threads = thread_count(threads)
    if rng is not None or threads == 1 or len(keys) + expected < CELLS_FOR_THREADS:
        return 1, [[(0, size)]]
    return threads, balanced_ranges(keys, size, _PARTS_A_THREAD * threads)
