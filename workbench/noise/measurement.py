"""One measurement of all cells, drawn by threads or processes, and the sparse summaries made of it.

Measurement.
Priority sampling  The `size` + 1 largest priorities of all cells are among the `size` + 1 largest of each
    part, surely. Parts list their cells down to a common guess of τ_s, which is lowered until enough came:
    the guess says how far lists go, and not what is released. What is published is compared by exact
    reals at one place; parts only leave out what `size` + 1 of their own cells exceed by more than floats
    err, and reveal no bits beyond the first 64.

Summaries.
Noise on the non-empty cells and the survivors among the empty ones are one measurement: together they
have the law of noise on every cell, of which some are released.

Source  Cormode, Procopiuc, Srivastava & Tran, ICDT 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, islice
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import on_threads, thread_count
from workbench.noise import priorities
from workbench.noise.additive import empty_cell
from workbench.noise.arguments import check_counts, check_filter
from workbench.noise.parts import (
    AnyBlock,
    Best,
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
from workbench.value import Bool, Int, sealed

# Measurement


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


class Measurement:
    """Noise on all cells of some blocks, drawn in parts: one measurement, one receipt a block.

    Parameters
    ----------
    blocks : sizes in cells, sensitivities in counts of the *whole* table, and the ε of each.
    ranges : for each part its ranges of cells, in ascending order; together they hold each cell once.
    theta : the filter, in counts.
    sides : 2 for both signs, 1 for positive values only.
    tau : the sampling threshold of `threshold_sample`, in counts; 0 for none.
    size : how many cells `priority_sample` releases.
    rng : None to publish; or 32 bytes from which all keys follow, for what can be replayed; or a seeded
        generator, of which all is drawn in turn, in a single part.

    Raises
    ------
    ValueError
        If an argument is not allowed, ranges leave out a cell or repeat one, or an empty table would
        already release too many cells.
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
        keys = keys_of_parts(rng, len(ranges))
        self.parts = tuple(
            Part(runs_of(own, self.blocks), theta, sides, tau, size, key)
            for own, key in zip(ranges, keys, strict=True)
        )

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """What the measurement costs, one for each block, however many parts drew it."""
        return tuple(block.receipt(self._source, "survivors") for block in self.blocks)

    def threshold_sample(self, draw: Callable[..., Sequence[NoisyPart]]) -> NoisyCells:
        """What passes the filter and threshold sampling in all parts.

        Parameters
        ----------
        draw : `draw(function, *arguments)` calls `function(part, keys, counts, *arguments)` for each
            part with its occupied cells, wherever they are, and returns the results in order.

        Returns
        -------
        NoisyCells
            Keys and noisy values of what is released, and a receipt for each block.
        """
        return NoisyCells(*self.join(draw(survivors)), self.receipts)

    def priority_sample(self, draw: Callable[..., Sequence[Any]]) -> PrioritySample:
        """The `size` cells of the largest priorities among all parts, as `threshold_sample` is given.

        Parameters
        ----------
        draw : as for `threshold_sample`; `priority_sample` calls it twice, or more often.

        Returns
        -------
        PrioritySample
            Keys and noisy values of what is released, τ_s, and a receipt for each block.
        """
        guess = _Guess(self.parts, self.size, draw(sample))
        while True:
            bests = draw(best, tuple(guess.taus))
            if guess.is_enough(sum(own.listed for own in bests)):
                return self._largest(guess.taus, bests)

    def threshold_sample_of(
        self, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"], threads: int
    ) -> NoisyCells:
        """`threshold_sample` of a table at hand."""
        runs = self._draw(draw_survivors, keys, counts, threads)
        return NoisyCells(*merged_on_threads(runs, threads), self.receipts)

    def priority_sample_of(
        self, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"], threads: int
    ) -> PrioritySample:
        """`priority_sample` of a table at hand."""
        parts = self._draw(Prioritised, keys, counts, threads)
        guess = _Guess(self.parts, self.size, [part.sample(len(parts)) for part in parts])
        while True:
            on_threads(lambda part: part.extend(guess.taus[-1]), parts, threads)
            if guess.is_enough(sum(part.listed() for part in parts)):
                break
        pools = [part.pools for part in parts]
        together = list(chain.from_iterable(pools))
        taken, tau = priorities.largest_priorities(together, self.size, guess.taus[-1])
        ends = np.cumsum([len(pool.drawn) for pool in together])
        masks = iter(np.split(taken, ends[:-1]))
        masks_of_parts = [list(islice(masks, len(own))) for own in pools]
        runs = on_threads(
            lambda i: parts[i].runs(masks_of_parts[i]), range(len(parts)), threads
        )
        return PrioritySample(*merged_on_threads(runs, threads), tau, self.receipts)

    def _draw(
        self,
        function: Callable[..., Any],
        keys: Int[np.ndarray, " n"],
        counts: Int[np.ndarray, " n"],
        threads: int,
    ) -> list[Any]:
        """`function(part, keys, counts, source)` of each part; a single one draws from `rng` in turn."""
        if len(self.parts) == 1:
            return [function(self.parts[0], keys, counts, self._source)]

        def of_part(part: Part) -> Any:
            low = cells_of_runs(keys, part.runs[:1])[0].start
            high = cells_of_runs(keys, part.runs[-1:])[0].stop
            return function(part, keys[low:high], counts[low:high], part.source)

        return on_threads(of_part, self.parts, threads)

    def join(
        self, results: Sequence[NoisyPart]
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Keys, sorted, and noisy values of all parts, whose results come in order."""
        pieces = []
        for part, (keys, values) in zip(self.parts, results, strict=True):
            starts = [run.start for run in part.runs]
            cuts = [*np.searchsorted(keys, starts).tolist(), len(keys)]
            for start, low, high in zip(starts, cuts, cuts[1:], strict=False):
                pieces.append((start, keys[low:high], values[low:high]))
        pieces.sort(key=lambda piece: piece[0])
        _, keys, values = zip(*pieces, strict=True)
        return sealed(np.concatenate(keys)), sealed(np.concatenate(values))

    def _largest(self, taus: Sequence[float], bests: Sequence[Best]) -> PrioritySample:
        columns = list(map(np.concatenate, zip(*(own[:4] for own in bests), strict=True)))
        order = np.lexsort((columns[0], columns[3]))
        keys, values, drawn, rounds = (column[order] for column in columns)
        ends = np.searchsorted(rounds, np.arange(-1, len(taus) + 1))
        words = self._source.words
        pools = []
        for step in range(-1, len(taus)):
            own = slice(ends[step + 1], ends[step + 2])
            tau = taus[step] if step >= 0 else 0.0
            above = taus[step - 1] if step > 0 else np.inf
            pools.append(priorities.Candidates(values[own], words, tau, above, drawn[own]))
        taken, tau = priorities.largest_priorities(pools, self.size, taus[-1])
        order = np.argsort(keys[taken])
        keys, values = (sealed(column[taken][order]) for column in (keys, values))
        return PrioritySample(keys, values, tau, self.receipts)


class _Guess:
    """Guesses of τ_s from above, until enough cells lie above the last, or all that pass are listed."""

    def __init__(self, parts: Sequence[Part], size: int, samples: Sequence[Sample]):
        part = parts[0]
        laws = [run.block.law for p in parts for run in p.runs]
        empty_cells = chain.from_iterable(own.empty for own in samples)
        empty = [*zip(empty_cells, laws, strict=True)]
        self.size = size
        self.least = float(max(ceil(part.theta), 1))
        guess = priorities.guess_threshold(
            np.concatenate([own.sizes for own in samples]),
            sum(own.passing for own in samples),
            empty,
            part.theta,
            part.sides,
            size + 6 * sqrt(size) + 6,
        )
        self.taus = [max(guess, self.least)]

    def is_enough(self, listed: int) -> bool:
        """Whether the last guess suffices for so many cells above it; if not, the next is half of it."""
        if self.taus[-1] <= self.least or listed > self.size:
            return True
        self.taus.append(max(self.taus[-1] / 2, self.least))
        return False


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
    """Choose the public noisy values that pass the filter and threshold sampling.

    Parameters
    ----------
    noisy : int64[n], public.
    theta, sides, tau, rng : as for `threshold_sample`.

    Returns
    -------
    bool[n]
        Whether each is kept.
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
    """Choose the `size` public noisy values with the largest priorities.

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
    """How many threads draw, and the ranges of their parts; a seeded generator is drawn in turn."""
    threads = thread_count(threads)
    if rng is not None or threads == 1 or len(keys) + expected < CELLS_FOR_THREADS:
        return 1, [[(0, size)]]
    return threads, balanced_ranges(keys, size, _PARTS_A_THREAD * threads)
