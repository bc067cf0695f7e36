"""The parts of one measurement: blocks of cells, the secret keys of parts, and the noise drawn on each part.

A part is a set of runs of cells, and the parts together contain each cell once. Noise, coins and priorities
of different cells are independent, and the distribution for a cell does not depend on its part. The joint
result of all parts therefore has the same distribution as if everything were drawn in a single part. This
holds for every division of the cells, even one that depends on private data. All parts together are one
measurement, with one receipt per block.

The secret key of a part determines all of its draws. If a part is drawn twice, because a task was repeated
or for a second round, it gives the same noise again. Never draw one part for two tables. A part and its
results reveal the data, so parts stay on the machines that have the data, and are never written to files.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import on_threads
from workbench.noise import kernels, priorities
from workbench.noise.additive import empty_cell, geometric_rho, sampler
from workbench.noise.arguments import decay
from workbench.noise.discrete_gaussian import GaussianBlock
from workbench.noise.law import GEOMETRIC, Law
from workbench.noise.source import EmptyLaw, Names, Source
from workbench.privacy import Receipt
from workbench.privacy.enclosures import Interval
from workbench.randomness import KEY_BYTES, system_key
from workbench.value import Bool, Float, Int, UInt64, sealed

# Selection

MAX_RELEASED_CELLS = 2**28  # that a summary may be expected to hold: some 4 GiB


class Block(NamedTuple):
    """Consecutive cells with one noise distribution. A unit changes them by at most `l1`, at a cost of
    `epsilon`.

    `linf` is the largest change of any one cell, by default `l1`. The receipt's ρ follows from it.
    """

    size: int
    l1: float | Fraction
    epsilon: float
    linf: float | Fraction | None = None

    @property
    def law(self) -> Law:
        """Distribution of the noise on each cell."""
        return Law(GEOMETRIC, decay(self.l1, self.epsilon))

    @property
    def moved(self) -> float | Fraction:
        """Sensitivity of the block to one unit, in the form that `Source.add` takes."""
        return self.l1

    def receipt(self, source: Source, name: str) -> Receipt:
        """Return the receipt for measuring the block."""
        rho = geometric_rho(decay(self.l1, self.epsilon), self.l1, self.linf)
        return source.receipt(name, self.epsilon, rho=rho)


AnyBlock = Block | GaussianBlock


def as_block(block: Any) -> AnyBlock:
    """Return a block as it is, or make one from a tuple of its fields."""
    return block if isinstance(block, GaussianBlock) else Block(*block)


def check_size(size: int, released: float) -> None:
    """Raise a ValueError for a summary too large for memory. The check uses public quantities only.

    Parameters
    ----------
    size : int
        Number of cells of the domain.
    released : float
        Expected number of cells that an empty table releases.

    Raises
    ------
    ValueError
        If that number is above `MAX_RELEASED_CELLS`.
    """
    if released > MAX_RELEASED_CELLS:
        raise ValueError(
            f"an empty table of {size} cells would already release {released:.3g} of them: need "
            f"at most {MAX_RELEASED_CELLS}. Raise theta or tau, or lower size"
        )


def passes(noisy: Int[np.ndarray, " n"], theta: int, sides: int) -> Bool[np.ndarray, " n"]:
    """Return a mask of the values that reach θ, on one side or on both."""
    if sides == 1:
        return noisy >= theta
    return (noisy >= theta) | (noisy <= -theta)


def passes_and_sampled(
    noisy: Int[np.ndarray, " n"],
    theta: float,
    sides: int,
    tau: float,
    source: Source,
    names: Names = None,
) -> Bool[np.ndarray, " n"]:
    """Return a mask of the values that reach θ and, if τ > 0, are then sampled with probability min(|v|/τ,
    1).
    """
    if not tau > 0:
        return passes(noisy, ceil(theta), sides)
    kept = passes(noisy, max(ceil(theta), 1), sides)
    below_tau = np.flatnonzero(kept & (np.abs(noisy) < tau))
    chance = np.abs(noisy[below_tau]) / tau

    def exact(i: int, bits: int) -> Interval:
        return Interval.of(abs(int(noisy[below_tau[i]])) / Fraction(tau), bits)

    kept[below_tau] = source.toss(chance, exact, None if names is None else names[below_tau])
    return kept


def merge_cells(
    keys: Int[np.ndarray, " n"],
    noisy: Int[np.ndarray, " n"],
    kept: Bool[np.ndarray, " n"],
    ranks: Int[np.ndarray, " s"],
    values: Int[np.ndarray, " s"],
    start: int = 0,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Merge kept occupied cells and surviving empty cells (given by rank from `start` on) into sorted keys
    and values.
    """
    size = int(kept.sum()) + len(ranks)
    out_keys = np.empty(size, np.int64)
    out_values = np.empty(size, np.int64)
    chosen = np.ones(len(ranks), bool)
    kernels.merge(keys, noisy, kept, ranks, values, chosen, start, out_keys, out_values)
    return sealed(out_keys), sealed(out_values)


# Parts

Ranges = Sequence[tuple[int, int]]  # first cell, and last + 1


class Run(NamedTuple):
    """Consecutive cells of one block: the first cell, and a block of the same length."""

    start: int
    block: AnyBlock


@dataclass(frozen=True, repr=False)
class Part:
    """Some cells of a measurement, in ascending runs, and everything needed to draw their noise except
    their counts.

    The key and the results of a part reveal the counts. A part therefore has no readable text and cannot be
    saved.
    """

    runs: tuple[Run, ...]
    theta: float
    sides: int
    tau: float
    size: int
    key: bytes

    def __repr__(self) -> str:
        return f"<Part of {sum(run.block.size for run in self.runs):,} cells>"

    @property
    def source(self) -> Source:
        """Return the source of random draws of this part. It gives the same draws every time."""
        return Source(self.key)

    @property
    def everything(self) -> bool:
        """Return whether every cell is released, whatever its value."""
        return self.sides == 2 and self.theta == 0 and self.tau == 0


def equal_ranges(size: int, parts: int) -> list[list[tuple[int, int]]]:
    """Divide the cells into the given number of ranges, as equal as possible. The ranges are public.

    >>> equal_ranges(5, 2)
    [[(0, 2)], [(2, 5)]]
    """
    ends = [size * i // parts for i in range(parts + 1)]
    return [[pair] for pair in pairwise(dict.fromkeys(ends))]


def balanced_ranges(
    keys: Int[np.ndarray, " n"], size: int, parts: int
) -> list[list[tuple[int, int]]]:
    """Divide the cells into ranges with similar numbers of cells and of occupied cells.

    These ranges depend on the data, but do not change the distribution of a release. They only divide work
    among threads, and are never published.
    """
    places = [len(keys) * i // parts for i in range(1, parts)]
    ends = {0, size, *keys[places].tolist()} if len(keys) else {0, size}
    ends.update(size * i // parts for i in range(1, parts))
    return [[pair] for pair in pairwise(sorted(ends))]


def keys_of_parts(rng: np.random.Generator | Source | bytes | None, parts: int) -> list[bytes]:
    """Return a secret key per part. Keys come from the operating system, or from one key that makes the
    noise repeatable.
    """
    if isinstance(rng, np.random.Generator | Source):
        if parts > 1:
            raise ValueError("a seeded generator is drawn in turn: need a single part")
        return [b""]
    if rng is None:
        return [system_key() for _ in range(parts)]
    if not isinstance(rng, bytes) or len(rng) != KEY_BYTES:
        raise ValueError(f"rng must be None, a generator, or {KEY_BYTES} bytes")
    return [hashlib.sha256(rng + part.to_bytes(8)).digest() for part in range(parts)]


def check_ranges(ranges: Sequence[Ranges], size: int) -> None:
    """Raise a ValueError unless the ranges of all parts together contain each cell once."""
    everything = sorted((low, high) for own in ranges for low, high in own)
    ascending = all(list(own) == sorted(own) for own in ranges)
    ends = [0, *(high for _, high in everything)]
    starts = [*(low for low, _ in everything), size]
    if not ascending or starts != ends:
        raise ValueError(f"ranges must contain each of {size} cells once, in order per part")


def runs_of(ranges: Ranges, blocks: Sequence[AnyBlock]) -> tuple[Run, ...]:
    """Split ranges of cells at the ends of blocks."""
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


def cells_of_runs(keys: Int[np.ndarray, " n"], runs: Sequence[Run]) -> list[slice]:
    """Return the slice of the sorted keys that is in each run."""
    slices = []
    for start, block in runs:
        last = start + block.size - 1  # a search for the key behind it might overflow
        low, high = np.searchsorted(keys, np.array([start, last]))
        high += high < len(keys) and keys[high] == last
        slices.append(slice(int(low), int(high)))
    return slices


# Drawing


class NoisyPart(NamedTuple):
    """Result of one part: sorted keys and noisy values."""

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]


def survivors(
    part: Part, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"]
) -> NoisyPart:
    """Return the cells of one part that pass the filter and threshold sampling.

    Parameters
    ----------
    part : Part
        One of the `parts` of a measurement.
    keys : int64[n]
        Sorted keys of its occupied cells.
    counts : int[n]
        Their counts.

    Returns
    -------
    NoisyPart
        Sorted keys and noisy values. Drawing the same part again gives the same result.
    """
    return NoisyPart(*merged(draw_survivors(part, keys, counts, part.source)))


class Sample(NamedTuple):
    """Noisy values from which τ_s is guessed. They are private: only the code that joins the parts may use
    them.
    """

    sizes: Float[np.ndarray, " some"]
    passing: int
    empty: list[int]  # cells, of each run


def sample(part: Part, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"]) -> Sample:
    """Draw the first round of priority sampling: some noisy values, from which a common guess of τ_s is made.

    Parameters
    ----------
    part, keys, counts
        The same as for `survivors`.

    Returns
    -------
    Sample
        Private noisy values.
    """
    return Prioritised(part, keys, counts, part.source).sample()


class Best(NamedTuple):
    """Cells of one part whose priorities may be among the largest of all. They are private until all parts
    are joined.
    """

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
    """Draw the second round of priority sampling: the cells with a priority above the last τ.

    Parameters
    ----------
    part, keys, counts
        The same as for `survivors`.
    taus : sequence of float
        All guesses of τ_s so far, in descending order. Each round repeats the draws for the earlier
        guesses.

    Returns
    -------
    Best
        The cells above the last guess, limited to the `size` + 1 largest priorities and those that floats
        cannot distinguish from them.
    """
    drawn = Prioritised(part, keys, counts, part.source)
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
    """Run of cells with its noise: a mask of the occupied cells that are kept, and the ranks of the empty
    ones that are.
    """

    start: int
    keys: Int[np.ndarray, " n"]
    noisy: Int[np.ndarray, " n"]
    kept: Bool[np.ndarray, " n"]
    ranks: Int[np.ndarray, " s"]
    values: Int[np.ndarray, " s"]
    chosen: Bool[np.ndarray, " s"]

    @property
    def size(self) -> int:
        """Return the number of cells that the run releases."""
        return int(np.count_nonzero(self.kept) + np.count_nonzero(self.chosen))


def merged(runs: Sequence[DrawnRun], out: NoisyPart | None = None) -> NoisyPart:
    """Return the keys and values that ascending runs release. If `out` is given, write them there."""
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
    part: Part, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"], source: Source
) -> list[DrawnRun]:
    """Draw noise on all cells of a part, and mark the cells that pass the filter."""
    source = source.step(0)
    runs = []
    for (start, block), inside in zip(part.runs, cells_of_runs(keys, part.runs), strict=True):
        occupied = keys[inside]
        noisy = np.array(counts[inside], np.int64)
        if part.everything:
            dense = np.zeros(block.size, np.int64)
            dense[occupied - start] = noisy
            occupied = np.arange(start, start + block.size)
            noisy = dense
        source.add(sampler(block.law), noisy, moved=block.moved, names=occupied)
        kept = passes_and_sampled(noisy, part.theta, part.sides, part.tau, source, occupied)
        cell = empty_cell(block.law, part.theta, part.sides, part.tau)
        ranks, values = source.survive(
            cell,
            block.size - kept.size,
            None if part.everything else EmptyKeys(start, block.size, occupied),
        )
        chosen = np.ones(len(ranks), bool)
        runs.append(DrawnRun(start, occupied, noisy, kept, ranks, values, chosen))
    return runs


class EmptyKeys(NamedTuple):
    """Keys of the empty cells of a run. They are computed only on request."""

    start: int
    size: int
    occupied: Int[np.ndarray, " n"]

    def __call__(self) -> Int[np.ndarray, " empty"]:
        """Return all of the keys."""
        every = np.arange(self.start, self.start + self.size)
        return np.setdiff1d(every, self.occupied, assume_unique=True)


class Prioritised:
    """Noisy cells of a part with their inverse priorities. It contains only those empty cells whose inverse
    priority is below 1/τ.
    """

    def __init__(
        self,
        part: Part,
        keys: Int[np.ndarray, " n"],
        counts: Int[np.ndarray, " n"],
        source: Source,
    ):
        self.part = part
        self.source = source
        self.own_keys = keys
        self.cells = cells_of_runs(keys, part.runs)
        self.noisy = np.array(counts, np.int64)
        first = source.step(0)
        for run, inside in zip(part.runs, self.cells, strict=True):
            law, moved = sampler(run.block.law), run.block.moved
            first.add(law, self.noisy[inside], moved=moved, names=keys[inside])
        self.passing = passes(self.noisy, max(ceil(part.theta), 1), part.sides)
        passing = self.noisy[self.passing]
        words = first.places(passing, keys[self.passing])
        self.all_passing = priorities.Candidates(passing, words)
        self.empty = [
            (run.block.size - len(self.noisy[inside]), run.block.law)
            for run, inside in zip(part.runs, self.cells, strict=True)
        ]
        self.free = [priorities.FreeCells(n) for n, _ in self.empty]
        self.drawn: list[priorities.EmptyCandidates] = []
        self.taus: list[float] = []

    def sample(self, parts: int = 1) -> Sample:
        """Return noisy values from which τ_s is guessed, given the number of parts."""
        values = self.all_passing.values
        sizes = priorities.sample_of(values, parts)
        return Sample(sizes, len(values), [n for n, _ in self.empty])

    def extend(self, tau: float) -> None:
        """List the occupied cells with a priority above τ, and draw the empty cells with a priority between
        τ and the previous τ.
        """
        self.places, self.occupied = self.all_passing.listed(tau)
        source = self.source.step(1 + len(self.taus))
        above = self.taus[-1] if self.taus else None
        for run, (_, law) in enumerate(self.empty):
            cell = empty_cell(law, self.part.theta, self.part.sides, tau, above)
            before = np.inf if above is None else above
            self.drawn.append(self._entering(run, cell, source, tau, before))
        self.taus.append(tau)

    def _entering(
        self, run: int, cell: EmptyLaw, source: Source, tau: float, above: float
    ) -> priorities.EmptyCandidates:
        """Draw the empty cells of a run that are above τ, among those that earlier rounds left."""
        start, block = self.part.runs[run]
        keys = EmptyKeys(start, block.size, self.own_keys[self.cells[run]])
        free = self.free[run]
        before = free.taken
        ranks, values = source.survive(cell, free.left, lambda: np.delete(keys(), before))
        taken = free.take(ranks)
        words = source.places(values, lambda: keys()[taken], tau, above)
        pool = priorities.Candidates(values, words, tau, above)
        return priorities.EmptyCandidates(run, taken, pool)

    def listed_pools(
        self,
    ) -> Iterator[tuple[int, Int[np.ndarray, " k"], priorities.Candidates]]:
        """Return the pools of candidate cells, with the keys of each pool and its round (−1 for occupied
        cells).
        """
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
        """Return the pools of candidate cells: the occupied cells above the last τ, then the empty cells of
        each round and run.
        """
        return [self.occupied, *(cell.candidates for cell in self.drawn)]

    def listed(self) -> int:
        """Return the number of cells that are certainly above the last τ."""
        limit = 1 / self.taus[-1]
        occupied = int(
            np.count_nonzero(self.occupied.inverse < limit - priorities.margin(limit))
        )
        return sum(len(cell.ranks) for cell in self.drawn) + occupied

    def runs(self, taken: Sequence[Bool[np.ndarray, " k"]]) -> list[DrawnRun]:
        """Return the runs to release if the given cells are taken from each pool."""
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
    """Return the cells that all parts release, in order. A thread writes each part directly to its place in
    the result.
    """
    sizes = on_threads(lambda own: sum(run.size for run in own), runs, threads)
    ends = list(accumulate(sizes, initial=0))
    out = NoisyPart(np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64))

    def write(i: int) -> None:
        own = slice(ends[i], ends[i + 1])
        merged(runs[i], NoisyPart(out.keys[own], out.values[own]))

    on_threads(write, range(len(runs)), threads)
    return NoisyPart(sealed(out.keys), sealed(out.values))
