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
from collections.abc import Sequence
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
from workbench.noise.source import Names, Source
from workbench.privacy import DP, Receipt
from workbench.privacy.enclosures import Interval
from workbench.randomness import KEY_BYTES, system_key
from workbench.value import Bool, Float, Int, UInt64, sealed

# Selection

MAX_RELEASED_CELLS = 2**28  # that a summary may be expected to hold: some 4 GiB


class Block(NamedTuple):
    """Consecutive cells with one noise distribution. One unit changes them by at most `l1` in
    total, and their noise costs `epsilon`.

    `linf` is the largest change of any one cell (default `l1`). It determines the ρ on the receipt.
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
        """Return the receipt for measuring the block, which is the record of its privacy cost."""
        rho = geometric_rho(decay(self.l1, self.epsilon), self.l1, self.linf)
        return source.receipt(name, DP(self.epsilon), rho=rho)


AnyBlock = Block | GaussianBlock


def as_block(block: Any) -> AnyBlock:
    """Return a block unchanged, or make one from a tuple of its fields."""
    return block if isinstance(block, GaussianBlock) else Block(*block)


def check_size(size: int, released: float) -> None:
    """Raise a ValueError if a summary does not fit in memory. The check uses public numbers only.

    Parameters
    ----------
    size : int
        Number of all cells of the domain.
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
    """Return a mask of the values v that reach θ. If τ > 0, each of these is kept with probability
    min(|v|/τ, 1) only.
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


# Parts

Ranges = Sequence[tuple[int, int]]  # first cell, and last + 1


class Run(NamedTuple):
    """Consecutive cells of one block: the first cell, and a block of the same length."""

    start: int
    block: AnyBlock


@dataclass(frozen=True, repr=False)
class Part:
    """Some cells of a measurement, with everything that is needed to draw their noise except the
    counts.

    The key and the results of a part reveal the counts, so a part cannot be printed or saved. If
    there is only one part, it may draw from a generator and then needs no key.
    """

    runs: tuple[Run, ...]
    theta: float
    sides: int
    tau: float
    size: int
    key: bytes | Source

    def __repr__(self) -> str:
        return f"<Part of {sum(run.block.size for run in self.runs):,} cells>"

    @property
    def source(self) -> Source:
        """Return the source of random draws of this part. If the part has a key, the draws are the
        same every time.
        """
        return Source(self.key) if isinstance(self.key, bytes) else self.key

    @property
    def everything(self) -> bool:
        """Return whether every cell is released, whatever its value."""
        return self.sides == 2 and self.theta == 0 and self.tau == 0


def balanced_ranges(
    keys: Int[np.ndarray, " n"], size: int, parts: int
) -> list[list[tuple[int, int]]]:
    """Divide the cells into ranges with similar numbers of cells and of occupied cells.

    The ranges depend on the data, but they only divide the work among threads. They do not change
    the distribution of a release, and are never published.
    """
    places = [len(keys) * i // parts for i in range(1, parts)]
    ends = {0, size, *keys[places].tolist()} if len(keys) else {0, size}
    ends.update(size * i // parts for i in range(1, parts))
    return [[pair] for pair in pairwise(sorted(ends))]


def keys_of_parts(rng: bytes | None, parts: int) -> list[bytes]:
    """Return a secret key for each part. The keys come from the operating system, or from one given
    key, which makes the noise repeatable.
    """
    if rng is None:
        return [system_key() for _ in range(parts)]
    if len(rng) != KEY_BYTES:
        raise ValueError(f"rng must be None, a generator, or {KEY_BYTES} bytes")
    return [hashlib.sha256(rng + part.to_bytes(8)).digest() for part in range(parts)]


def check_ranges(ranges: Sequence[Ranges], size: int) -> None:
    """Raise a ValueError if the ranges of the parts omit a cell or contain it twice."""
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
    """Return, for each run of cells, the slice of the sorted keys that are in it."""
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
    """Return the cells of one part that pass the filter and are then sampled.

    Parameters
    ----------
    part : Part
        One of the `parts` of a measurement.
    keys : int64[n]
        Sorted keys of its occupied cells.
    counts : int[n]
        Counts of these cells.

    Returns
    -------
    NoisyPart
        Sorted keys and noisy values. Drawing the same part again gives the same result.
    """
    return merged(draw_survivors(part, keys, counts))


class DrawnRun(NamedTuple):
    """Run of cells with its noise. It has a mask of the occupied cells that are kept, and the ranks
    and noisy values of the empty cells that are kept.
    """

    start: int
    keys: Int[np.ndarray, " n"]
    noisy: Int[np.ndarray, " n"]
    kept: Bool[np.ndarray, " n"]
    ranks: Int[np.ndarray, " s"]
    values: Int[np.ndarray, " s"]


def merged(runs: Sequence[DrawnRun], out: NoisyPart | None = None) -> NoisyPart:
    """Return the keys and values that several runs release. If `out` is given, write them there."""
    ends = list(accumulate(map(_released, runs), initial=0))
    if out is None:
        out = NoisyPart(np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64))
    for run, low, high in zip(runs, ends, ends[1:], strict=False):
        kernels.merge(*run, out.keys[low:high], out.values[low:high])
    return out


def _released(run: DrawnRun) -> int:
    return int(np.count_nonzero(run.kept)) + len(run.ranks)


def merged_on_threads(runs: Sequence[Sequence[DrawnRun]], threads: int) -> NoisyPart:
    """Return the cells that all parts release, in order. Threads write the parts directly to their
    places in the result.
    """
    sizes = on_threads(lambda own: sum(map(_released, own)), runs, threads)
    ends = list(accumulate(sizes, initial=0))
    out = NoisyPart(np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64))

    def write(i: int) -> None:
        own = slice(ends[i], ends[i + 1])
        merged(runs[i], NoisyPart(out.keys[own], out.values[own]))

    on_threads(write, range(len(runs)), threads)
    return NoisyPart(sealed(out.keys), sealed(out.values))


def draw_survivors(
    part: Part, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"]
) -> list[DrawnRun]:
    """Draw noise on all cells of a part, and mark the cells that pass the filter."""
    source = part.source.step(0)
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
        names = None if part.everything else EmptyKeys(start, block.size, occupied)
        empty = source.survive(cell, block.size - kept.size, names)
        runs.append(DrawnRun(start, occupied, noisy, kept, *empty))
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

    def at(self, ranks: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
        """Return the keys with the given ranks. The other keys are not computed."""
        keys = np.empty(len(ranks), np.int64)
        kernels.place_ranks(self.start, self.occupied, ranks, keys)
        return keys


class Sample(NamedTuple):
    """Noisy values from which the threshold τ_s is guessed. They are private, and only the code
    that joins the parts may use them.
    """

    sizes: Float[np.ndarray, " some"]
    passing: int
    empty: list[int]  # cells, of each run


class Pool(NamedTuple):
    """Cells that may have the largest priorities of all, with the first bits of each priority. They
    are private until all parts are joined.
    """

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]
    drawn: UInt64[np.ndarray, " k"]


def joined(pools: Sequence[Pool]) -> Pool:
    """Return all cells of several pools."""
    if len(pools) == 1:
        return pools[0]  # without a copy
    return Pool(*map(np.concatenate, zip(*pools, strict=True)))


class Prioritised:
    """Noisy cells of a part with their inverse priorities. An empty cell is included only if its
    inverse priority is below 1/τ.
    """

    def __init__(self, part: Part, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"]):
        self.part = part
        self.source = part.source
        cells = cells_of_runs(keys, part.runs)
        noisy = np.array(counts, np.int64)
        first = self.source.step(0)
        for run, inside in zip(part.runs, cells, strict=True):
            law, moved = sampler(run.block.law), run.block.moved
            first.add(law, noisy[inside], moved=moved, names=keys[inside])
        passing = passes(noisy, max(ceil(part.theta), 1), part.sides)
        self.keys, values = keys[passing], noisy[passing]
        self.occupied = priorities.Candidates(values, first.places(values, self.keys))
        self.empty = [
            EmptyKeys(run.start, run.block.size, keys[inside])
            for run, inside in zip(part.runs, cells, strict=True)
        ]
        self.rounds: list[Pool] = []
        self.taus: list[float] = []

    def sample(self) -> Sample:
        """Return noisy values from which τ_s is guessed."""
        values = self.occupied.values
        empty = [own.size - len(own.occupied) for own in self.empty]
        return Sample(priorities.sample_of(values), len(values), empty)

    def best(self, taus: Sequence[float]) -> list[Pool]:
        """Return the occupied cells with a priority above the last τ, and the empty cells that each
        τ added.
        """
        for tau in taus[len(self.taus) :]:
            self._extend(tau)
        places, above = self.occupied.listed(taus[-1])
        return [Pool(self.keys[places], above.values, above.drawn), *self.rounds]

    def _extend(self, tau: float) -> None:
        """Draw the empty cells with a priority between τ and the previous τ."""
        part, above = self.part, self.taus[-1] if self.taus else None
        source = self.source.step(1 + len(self.taus))
        drawn = []
        for i, (run, empty) in enumerate(zip(part.runs, self.empty, strict=True)):
            if self.rounds:  # whose cells are no longer drawn
                taken = self.rounds[-1].keys
                known = np.sort(np.concatenate([empty.occupied, taken[_inside(taken, run)]]))
                empty = self.empty[i] = empty._replace(occupied=known)
            cell = empty_cell(run.block.law, part.theta, part.sides, tau, above)
            left = empty.size - len(empty.occupied)
            ranks, values = source.survive(cell, left, empty.__call__)
            keys = empty.at(ranks)
            before = np.inf if above is None else above
            words = source.places(values, keys, tau, before)
            pool = priorities.Candidates(values, words, tau, before)
            drawn.append(Pool(keys, values, pool.drawn))
        self.rounds.append(joined(drawn))
        self.taus.append(tau)


def _inside(keys: Int[np.ndarray, " k"], run: Run) -> slice:
    return cells_of_runs(keys, [run])[0]


def sample(part: Part, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"]) -> Sample:
    """Draw the first round of priority sampling. It gives some noisy values of each part, from
    which the threshold τ_s is guessed.

    Parameters
    ----------
    part, keys, counts
        The same as for `survivors`.

    Returns
    -------
    Sample
        Private noisy values.
    """
    return Prioritised(part, keys, counts).sample()


def best(
    part: Part,
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    taus: Sequence[float],
) -> list[Pool]:
    """Draw the second round of priority sampling. It gives the cells of the part whose priority is
    above the last guess τ.

    Parameters
    ----------
    part, keys, counts
        The same as for `survivors`.
    taus : sequence of float
        All guesses of τ_s so far, in descending order. Each round repeats the draws for the earlier
        guesses.

    Returns
    -------
    list of Pool
        The occupied cells above the last guess, with those that floats cannot distinguish from them, and
        the empty cells of each guess.
    """
    return Prioritised(part, keys, counts).best(taus)
