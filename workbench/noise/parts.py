"""One measurement of all cells, drawn in parts: by one thread, several, or processes elsewhere.

A part is some runs of cells; parts together hold each cell once. Noise, coins and priorities of different
cells are independent, and a cell's own law does not depend on its part, so that joining what parts release
restricts nothing and repeats nothing: the joint law is that of one part, whatever the cuts, even where
they follow private data. Hence one measurement, and one receipt for each block.

Every draw of a part follows from the part's secret key. A part that is drawn twice, by a task that was
repeated or in a second round, gives the same noise again; so a part is drawn for one table only. A part
and what is released tell the data: parts stay where the data is, and are never written.

Priority sampling  The `size` + 1 largest priorities of all cells are among the `size` + 1 largest of each
    part, surely. Parts list their cells down to a common guess of τ_s, which is lowered until enough came:
    the guess says how far lists go, and not what is released. What is published is compared by exact
    reals at one place; parts only leave out what `size` + 1 of their own cells exceed by more than floats
    err, and reveal no bits beyond the first 64.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Bool, Float, Int, UInt64
from workbench.noise import kernels, priorities
from workbench.noise.arguments import check_filter
from workbench.noise.bits import KEY_BYTES, Keystream, Words
from workbench.noise.kinds import empty_cell, sampler
from workbench.noise.selection import Block, as_block, passes, passes_and_sampled
from workbench.noise.source import Source
from workbench.privacy import Receipt
from workbench.threads import on_threads
from workbench.value import sealed

Streams = Callable[[int], Words]  # the words of a part's n-th step
Ranges = Sequence[tuple[int, int]]  # first cell, and last + 1


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


class Run(NamedTuple):
    """Consecutive cells of one block: the first of them, and a block of as many."""

    start: int
    block: Block


@dataclass(frozen=True, repr=False)
class Part:
    """Some cells of a measurement, in ascending runs, and all that draws them but their counts.

    Its key and what is released tell the counts: it has no text, and is never written.
    """

    runs: tuple[Run, ...]
    theta: float
    sides: int
    tau: float
    size: int
    key: bytes

    def __repr__(self) -> str:
        return f"<Part of {sum(run.block.size for run in self.runs):,} cells>"

    def streams(self, step: int) -> Words:
        """The words of one of its steps, the same whenever they are drawn."""
        return Keystream(self.key, step)

    @property
    def everything(self) -> bool:
        """Whether every cell is released, whatever it holds."""
        return self.sides == 2 and self.theta == 0 and self.tau == 0


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
        blocks: Sequence[Block],
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
        self._source = Source(rng)
        _check_ranges(ranges, sum(block.size for block in self.blocks))
        keys = keys_of_parts(rng, len(ranges))
        self.parts = tuple(
            Part(_runs(own, self.blocks), theta, sides, tau, size, key)
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
        return NoisyCells(*_merged_on_threads(runs, threads), self.receipts)

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
        return PrioritySample(*_merged_on_threads(runs, threads), tau, self.receipts)

    def _draw(
        self,
        function: Callable[..., Any],
        keys: Int[np.ndarray, " n"],
        counts: Int[np.ndarray, " n"],
        threads: int,
    ) -> list[Any]:
        """`function(part, keys, counts, streams)` of each part; a single one draws from `rng` in turn."""
        if len(self.parts) == 1:
            words = self._source.words
            return [function(self.parts[0], keys, counts, lambda step: words)]

        def of_part(part: Part) -> Any:
            low = _cells_of_runs(keys, part.runs[:1])[0].start
            high = _cells_of_runs(keys, part.runs[-1:])[0].stop
            return function(part, keys[low:high], counts[low:high], part.streams)

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


class NoisyPart(NamedTuple):
    """What a part releases: keys, sorted, and noisy values."""

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]


def survivors(
    part: Part, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"]
) -> NoisyPart:
    """What passes the filter and threshold sampling in one part.

    Parameters
    ----------
    part : one of a measurement's `parts`.
    keys : int64[n], its occupied cells, sorted.
    counts : int[n], their counts.

    Returns
    -------
    NoisyPart
        Keys, sorted, and noisy values: the same whenever the same part is drawn.
    """
    return NoisyPart(*merged(draw_survivors(part, keys, counts, part.streams)))


class Sample(NamedTuple):
    """From which τ_s is guessed: private, for whoever joins the parts."""

    sizes: Float[np.ndarray, " some"]
    passing: int
    empty: list[int]  # cells, of each run


def sample(part: Part, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"]) -> Sample:
    """The first round of priority sampling: from some noisy values a common τ is guessed.

    Parameters
    ----------
    part, keys, counts : as for `survivors`.

    Returns
    -------
    Sample
        Private.
    """
    return Prioritised(part, keys, counts, part.streams).sample()


class Best(NamedTuple):
    """Cells of one part whose priorities may be among the largest of all: private until joined."""

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]
    drawn: UInt64[np.ndarray, " k"]  # the first bits of each priority
    rounds: Int[np.ndarray, " k"]  # in which an empty cell was drawn; −1 for an occupied one
    listed: int  # how many of them surely lie above the last τ


def best(
    part: Part,
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    taus: Sequence[float],
) -> Best:
    """The second round of priority sampling: the cells whose priority is above the last τ.

    Parameters
    ----------
    part, keys, counts : as for `survivors`.
    taus : what τ_s was guessed to be above, each lower than the one before. All are drawn again, so
        that each round of a part repeats what was drawn above.

    Returns
    -------
    Best
        Those cells, but no more than the `size` + 1 of the largest priorities and what floats cannot
        tell from these.
    """
    drawn = Prioritised(part, keys, counts, part.streams)
    for tau in taus:
        drawn.extend(tau)
    limit = 1 / taus[-1]
    inverse = np.concatenate([pool.inverse for pool in drawn.pools])
    inverse = inverse[inverse <= limit + priorities.margin(limit)]
    if len(inverse) > part.size + 1:
        limit = np.partition(inverse, part.size)[part.size]
    limit += 2 * priorities.margin(limit)  # both that is compared may err
    columns = []
    for step, cells, pool in drawn.listed_pools():
        mask = pool.inverse <= limit
        rounds = np.full(np.count_nonzero(mask), step)
        columns.append((cells[mask], pool.values[mask], pool.drawn[mask], rounds))
    joined = [np.concatenate(column) for column in zip(*columns, strict=True)]
    return Best(joined[0], joined[1], joined[2], joined[3], drawn.listed())


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


class DrawnRun(NamedTuple):
    """A run with its noise: which occupied cells are kept, and the ranks of empty ones that are."""

    start: int
    keys: Int[np.ndarray, " n"]
    noisy: Int[np.ndarray, " n"]
    kept: Bool[np.ndarray, " n"]
    ranks: Int[np.ndarray, " s"]
    values: Int[np.ndarray, " s"]

    @property
    def size(self) -> int:
        """How many cells it releases."""
        return int(np.count_nonzero(self.kept)) + len(self.ranks)


def merged(runs: Sequence[DrawnRun], out: NoisyPart | None = None) -> NoisyPart:
    """Keys and values that ascending runs release, written to `out` if it is given."""
    ends = list(accumulate((run.size for run in runs), initial=0))
    if out is None:
        out = NoisyPart(np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64))
    for run, low, high in zip(runs, ends, ends[1:], strict=False):
        kernels.merge(
            run.keys, run.noisy, run.kept, run.ranks, run.values, run.start,
            out.keys[low:high], out.values[low:high],
        )  # fmt: skip
    return out


def draw_survivors(
    part: Part, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"], streams: Streams
) -> list[DrawnRun]:
    """Noise on all cells of a part, of which those are marked that pass."""
    words = streams(0)
    runs = []
    for (start, block), inside in zip(part.runs, _cells_of_runs(keys, part.runs), strict=True):
        occupied = keys[inside]
        noisy = np.array(counts[inside], np.int64)
        if part.everything:
            dense = np.zeros(block.size, np.int64)
            dense[occupied - start] = noisy
            occupied = np.arange(start, start + block.size)
            noisy = dense
        sampler(block.law).add(noisy, words)
        kept = passes_and_sampled(noisy, part.theta, part.sides, part.tau, words)
        cell = empty_cell(block.law, part.theta, part.sides, part.tau)
        ranks, values = cell.survivors(block.size - kept.size, words)
        runs.append(DrawnRun(start, occupied, noisy, kept, ranks, values))
    return runs


class Prioritised:
    """A part's noisy cells with inverse priorities, of the empty ones those below 1/τ."""

    def __init__(
        self,
        part: Part,
        keys: Int[np.ndarray, " n"],
        counts: Int[np.ndarray, " n"],
        streams: Streams,
    ):
        self.part = part
        self.streams = streams
        self.own_keys = keys
        self.cells = _cells_of_runs(keys, part.runs)
        self.noisy = np.array(counts, np.int64)
        words = streams(0)
        for run, inside in zip(part.runs, self.cells, strict=True):
            sampler(run.block.law).add(self.noisy[inside], words)
        self.passing = passes(self.noisy, max(ceil(part.theta), 1), part.sides)
        self.occupied = priorities.Candidates(self.noisy[self.passing], words)
        self.empty = [
            (run.block.size - len(self.noisy[inside]), run.block.law)
            for run, inside in zip(part.runs, self.cells, strict=True)
        ]
        self.free = [priorities.FreeCells(n) for n, _ in self.empty]
        self.drawn: list[priorities.EmptyCandidates] = []
        self.taus: list[float] = []

    def sample(self, parts: int = 1) -> Sample:
        """From which τ_s is guessed, where there are so many parts."""
        values = self.occupied.values
        sizes = priorities.sample_of(values, parts)
        return Sample(sizes, len(values), [n for n, _ in self.empty])

    def extend(self, tau: float) -> None:
        """Draw the empty cells whose priority is above τ, but not above the τ before it."""
        words = self.streams(1 + len(self.taus))
        above = self.taus[-1] if self.taus else None
        for run, (_, law) in enumerate(self.empty):
            cell = empty_cell(law, self.part.theta, self.part.sides, tau, above)
            ranks, values = cell.survivors(self.free[run].left, words)
            pool = priorities.Candidates(values, words, tau, np.inf if above is None else above)
            taken = self.free[run].take(ranks)
            self.drawn.append(priorities.EmptyCandidates(run, taken, pool))
        self.taus.append(tau)

    def listed_pools(
        self,
    ) -> Iterator[tuple[int, Int[np.ndarray, " k"], priorities.Candidates]]:
        """The same with the round of each, −1 for occupied cells, and the keys of its cells."""
        yield -1, self.own_keys[self.passing], self.occupied
        for i, cell in enumerate(self.drawn):
            start = self.part.runs[cell.run].start
            occupied = self.own_keys[self.cells[cell.run]] - start
            before = np.searchsorted(
                occupied - np.arange(len(occupied)), cell.ranks, side="right"
            )
            yield i // len(self.empty), start + cell.ranks + before, cell.candidates

    @property
    def pools(self) -> list[priorities.Candidates]:
        """The occupied cells that pass, then the empty ones of each round and run."""
        return [self.occupied, *(cell.candidates for cell in self.drawn)]

    def listed(self) -> int:
        """How many cells surely lie above the last τ."""
        limit = 1 / self.taus[-1]
        occupied = np.count_nonzero(self.occupied.inverse < limit - priorities.margin(limit))
        return sum(len(cell.ranks) for cell in self.drawn) + occupied

    def runs(self, taken: Sequence[Bool[np.ndarray, " k"]]) -> list[DrawnRun]:
        """What is released if these are taken of each of the pools."""
        kept = self.passing
        kept[kept] = taken[0]
        runs = []
        for i, inside in enumerate(self.cells):
            chosen = [
                (cell.ranks[mask], cell.candidates.values[mask])
                for mask, cell in zip(taken[1:], self.drawn, strict=True)
                if cell.run == i
            ]
            ranks, values = map(_joined, zip(*chosen, strict=True))
            if (ranks[1:] < ranks[:-1]).any():
                order = np.argsort(ranks)
                ranks = ranks[order]
                values = values[order]
            start = self.part.runs[i].start
            runs.append(
                DrawnRun(
                    start,
                    self.own_keys[inside],
                    self.noisy[inside],
                    kept[inside],
                    ranks,
                    values,
                )
            )
        return runs


def equal_ranges(size: int, parts: int) -> list[list[tuple[int, int]]]:
    """Ranges for so many parts of as equal a number of cells as can be; public.

    >>> equal_ranges(5, 2)
    [[(0, 2)], [(2, 5)]]
    """
    ends = [size * i // parts for i in range(parts + 1)]
    return [[pair] for pair in pairwise(dict.fromkeys(ends))]


def balanced_ranges(
    keys: Int[np.ndarray, " n"], size: int, parts: int
) -> list[list[tuple[int, int]]]:
    """Ranges of which none has many more cells than another, nor many more that are occupied.

    They follow the data, and change no law: they steer threads, and name nothing.
    """
    places = [len(keys) * i // parts for i in range(1, parts)]
    ends = {0, size, *keys[places].tolist()} if len(keys) else {0, size}
    ends.update(size * i // parts for i in range(1, parts))
    return [[pair] for pair in pairwise(sorted(ends))]


def _merged_on_threads(runs: Sequence[Sequence[DrawnRun]], threads: int) -> NoisyPart:
    """What all parts release, in order; each is written to its own place."""
    sizes = on_threads(lambda own: sum(run.size for run in own), runs, threads)
    ends = list(accumulate(sizes, initial=0))
    out = NoisyPart(np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64))

    def write(i: int) -> None:
        own = slice(ends[i], ends[i + 1])
        merged(runs[i], NoisyPart(out.keys[own], out.values[own]))

    on_threads(write, range(len(runs)), threads)
    return NoisyPart(sealed(out.keys), sealed(out.values))


def keys_of_parts(rng: np.random.Generator | bytes | None, parts: int) -> list[bytes]:
    """A secret key of each: of the operating system, or of the key from which all is replayed."""
    if isinstance(rng, np.random.Generator):
        if parts > 1:
            raise ValueError("a seeded generator is drawn in turn: need a single part")
        return [b""]
    if rng is None:
        return [os.urandom(KEY_BYTES) for _ in range(parts)]
    if not isinstance(rng, bytes) or len(rng) != KEY_BYTES:
        raise ValueError(f"rng must be None, a generator, or {KEY_BYTES} bytes")
    return [hashlib.sha256(rng + part.to_bytes(8)).digest() for part in range(parts)]


def _check_ranges(ranges: Sequence[Ranges], size: int) -> None:
    """A ValueError unless the ranges of all parts hold each cell once."""
    everything = sorted((low, high) for own in ranges for low, high in own)
    ascending = all(list(own) == sorted(own) for own in ranges)
    ends = [0, *(high for _, high in everything)]
    starts = [*(low for low, _ in everything), size]
    if not ascending or starts != ends:
        raise ValueError(f"ranges must hold each of {size} cells once, and ascend in each part")


def _runs(ranges: Ranges, blocks: Sequence[Block]) -> tuple[Run, ...]:
    """Ranges of cells, cut where blocks end."""
    starts = list(accumulate((block.size for block in blocks), initial=0))
    runs = []
    for low, high in ranges:
        i = bisect_right(starts, low) - 1
        while low < high:
            end = min(high, starts[i + 1])
            if end > low:
                runs.append(Run(low, blocks[i]._replace(size=end - low)))
            low = end
            i += 1
    return tuple(runs)


def _cells_of_runs(keys: Int[np.ndarray, " n"], runs: Sequence[Run]) -> list[slice]:
    """Which of the sorted keys lie in each run."""
    slices = []
    for start, block in runs:
        last = start + block.size - 1  # a search for the key behind it might overflow
        low, high = np.searchsorted(keys, np.array([start, last]))
        high += high < len(keys) and keys[high] == last
        slices.append(slice(int(low), int(high)))
    return slices


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
