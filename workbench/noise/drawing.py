"""What a part draws: noise on its cells, and which of them are released or may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import ceil
from typing import NamedTuple

import numpy as np

from workbench.arrays import Bool, Float, Int, UInt64
from workbench.noise import kernels, priorities
from workbench.noise.kinds import empty_cell, sampler
from workbench.noise.parts import Part, Streams, cells_of_runs
from workbench.noise.selection import passes, passes_and_sampled
from workbench.threads import on_threads
from workbench.value import sealed


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


class DrawnRun(NamedTuple):
    """A run with its noise: which occupied cells are kept, and which of some empty ones, by rank."""

    start: int
    keys: Int[np.ndarray, " n"]
    noisy: Int[np.ndarray, " n"]
    kept: Bool[np.ndarray, " n"]
    ranks: Int[np.ndarray, " s"]
    values: Int[np.ndarray, " s"]
    chosen: Bool[np.ndarray, " s"]

    @property
    def size(self) -> int:
        """How many cells it releases."""
        return int(np.count_nonzero(self.kept) + np.count_nonzero(self.chosen))


def merged(runs: Sequence[DrawnRun], out: NoisyPart | None = None) -> NoisyPart:
    """Keys and values that ascending runs release, written to `out` if it is given."""
    ends = list(accumulate((run.size for run in runs), initial=0))
    if out is None:
        out = NoisyPart(np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64))
    for run, low, high in zip(runs, ends, ends[1:], strict=False):
        kernels.merge(
            run.keys, run.noisy, run.kept, run.ranks, run.values, run.chosen, run.start,
            out.keys[low:high], out.values[low:high],
        )  # fmt: skip
    return out


def draw_survivors(
    part: Part, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"], streams: Streams
) -> list[DrawnRun]:
    """Noise on all cells of a part, of which those are marked that pass."""
    words = streams(0)
    runs = []
    for (start, block), inside in zip(part.runs, cells_of_runs(keys, part.runs), strict=True):
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
        chosen = np.ones(len(ranks), bool)
        runs.append(DrawnRun(start, occupied, noisy, kept, ranks, values, chosen))
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
        self.cells = cells_of_runs(keys, part.runs)
        self.noisy = np.array(counts, np.int64)
        words = streams(0)
        for run, inside in zip(part.runs, self.cells, strict=True):
            sampler(run.block.law).add(self.noisy[inside], words)
        self.passing = passes(self.noisy, max(ceil(part.theta), 1), part.sides)
        self.all_passing = priorities.Candidates(self.noisy[self.passing], words)
        self.empty = [
            (run.block.size - len(self.noisy[inside]), run.block.law)
            for run, inside in zip(part.runs, self.cells, strict=True)
        ]
        self.free = [priorities.FreeCells(n) for n, _ in self.empty]
        self.drawn: list[priorities.EmptyCandidates] = []
        self.taus: list[float] = []

    def sample(self, parts: int = 1) -> Sample:
        """From which τ_s is guessed, where there are so many parts."""
        values = self.all_passing.values
        sizes = priorities.sample_of(values, parts)
        return Sample(sizes, len(values), [n for n, _ in self.empty])

    def extend(self, tau: float) -> None:
        """List the occupied cells above τ; draw the empty ones above it, but not above the τ before."""
        self.places, self.occupied = self.all_passing.listed(tau)
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
        yield -1, self.own_keys[self.passing][self.places], self.occupied
        for i, cell in enumerate(self.drawn):
            start = self.part.runs[cell.run].start
            occupied = self.own_keys[self.cells[cell.run]] - start
            before = np.searchsorted(
                occupied - np.arange(len(occupied)), cell.ranks, side="right"
            )
            yield i // len(self.empty), start + cell.ranks + before, cell.candidates

    @property
    def pools(self) -> list[priorities.Candidates]:
        """The occupied cells above the last τ, then the empty ones of each round and run."""
        return [self.occupied, *(cell.candidates for cell in self.drawn)]

    def listed(self) -> int:
        """How many cells surely lie above the last τ."""
        limit = 1 / self.taus[-1]
        occupied = int(
            np.count_nonzero(self.occupied.inverse < limit - priorities.margin(limit))
        )
        return sum(len(cell.ranks) for cell in self.drawn) + occupied

    def runs(self, taken: Sequence[Bool[np.ndarray, " k"]]) -> list[DrawnRun]:
        """What is released if these are taken of each of the pools."""
        kept_of_passing = np.zeros(len(self.all_passing.values), bool)
        kept_of_passing[self.places[taken[0]]] = True
        kept = self.passing
        kept[kept] = kept_of_passing
        runs = []
        for i, inside in enumerate(self.cells):
            rounds = [
                (cell.ranks, cell.candidates.values, mask)
                for mask, cell in zip(taken[1:], self.drawn, strict=True)
                if cell.run == i
            ]
            ranks, values, chosen = rounds[0]
            if len(rounds) > 1:
                ranks, values, chosen = map(np.concatenate, zip(*rounds, strict=True))
                order = np.argsort(ranks)
                ranks = ranks[order]
                values = values[order]
                chosen = chosen[order]
            start = self.part.runs[i].start
            runs.append(
                DrawnRun(
                    start,
                    self.own_keys[inside],
                    self.noisy[inside],
                    kept[inside],
                    ranks,
                    values,
                    chosen,
                )
            )
        return runs


def merged_on_threads(runs: Sequence[Sequence[DrawnRun]], threads: int) -> NoisyPart:
    """What all parts release, in order; each is written to its own place."""
    sizes = on_threads(lambda own: sum(run.size for run in own), runs, threads)
    ends = list(accumulate(sizes, initial=0))
    out = NoisyPart(np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64))

    def write(i: int) -> None:
        own = slice(ends[i], ends[i + 1])
        merged(runs[i], NoisyPart(out.keys[own], out.values[own]))

    on_threads(write, range(len(runs)), threads)
    return NoisyPart(sealed(out.keys), sealed(out.values))
