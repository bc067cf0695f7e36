"""Division of one measurement into parts that are drawn separately: blocks of cells, secret keys of parts,
and the noise on each part.

The cells of a table are divided into parts, for example one part per thread or per file. The random draws for
different cells are independent, and their distribution does not depend on the part. So the joint result of all
parts has the same distribution as a draw in a single part. This holds for every division of the cells, even if
the division depends on private data. All parts together are one measurement. Cells whose noise has the same
distribution form a block. Each block has one receipt, which records the privacy cost.

The secret key of a part determines all draws in this part. So if a part is drawn twice, for example because a
task failed and was repeated, the noise is the same. Never draw the same part for two tables. Anyone with a part
and its results can compute the data. So parts stay on the machines that have the data, and are never written to
files.
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
    """Consecutive cells of a domain that get geometric noise from the same distribution. `size` is the number
    of cells. One unit (for example a person) changes the counts of these cells by at most `l1` in total. The
    privacy cost of the noise is ε = `epsilon`.

    `linf` is the largest change of any single count that one unit can cause. By default, `linf` is `l1`. The
    receipt records the cost as an ε and as a ρ. A smaller `linf` lowers this ρ, but not the ε.
    """

    size: int
    l1: float | Fraction
    epsilon: float
    linf: float | Fraction | None = None

    @property
    def law(self) -> Law:
        """Distribution of the noise that each cell gets."""
        return Law(GEOMETRIC, decay(self.l1, self.epsilon))

    @property
    def moved(self) -> float | Fraction:
        """Largest total change that one unit, for example a person, can cause in the counts of this block. This
        number is the argument `moved` of `Source.add`.
        """
        return self.l1

    def receipt(self, source: Source, name: str) -> Receipt:
        """Return the receipt that records the privacy cost of the noise on this block."""
        rho = geometric_rho(decay(self.l1, self.epsilon), self.l1, self.linf)
        return source.receipt(name, DP(self.epsilon), rho=rho)


AnyBlock = Block | GaussianBlock


def as_block(block: Any) -> AnyBlock:
    """Return the argument as a block. A tuple with the fields of `Block` becomes a `Block`."""
    return block if isinstance(block, GaussianBlock) else Block(*block)


def check_size(size: int, released: float) -> None:
    """Raise a ValueError if a release would be too large for the memory. The check uses only public numbers,
    so the error reveals nothing about the data.

    Parameters
    ----------
    size : int
        Number of all cells of the domain.
    released : float
        Expected number of released cells if all cells of the table are empty.

    Raises
    ------
    ValueError
        If `released` is above 2²⁸ (`MAX_RELEASED_CELLS`).
    """
    if released > MAX_RELEASED_CELLS:
        raise ValueError(
            f"an empty table of {size} cells would already release {released:.3g} of them: need "
            f"at most {MAX_RELEASED_CELLS}. Raise theta or tau, or lower size"
        )


def passes(noisy: Int[np.ndarray, " n"], theta: int, sides: int) -> Bool[np.ndarray, " n"]:
    """Return a mask of the values v that pass the filter θ: v >= θ or, with `sides` = 2, also v <= −θ."""
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
    """Return a mask of the values v that pass the filter θ and are kept by the sampling at threshold τ. If τ
    > 0, a value that passes is kept with probability min(|v|/τ, 1). If τ = 0, all values that pass are kept.
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
    """Consecutive cells of one block: the number of the first cell, and a block that has only these cells."""

    start: int
    block: AnyBlock


@dataclass(frozen=True, repr=False)
class Part:
    """Some cells of a measurement: the settings and the secret key of their noise, but not their counts.

    Anyone with the key and the results of a part can compute the counts, so a part cannot be printed or
    saved. If there is only one part, `key` may be a source of random draws in place of a key.
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
        """Source of the random draws of this part. If the part has a key, the draws are the same every time."""
        return Source(self.key) if isinstance(self.key, bytes) else self.key

    @property
    def everything(self) -> bool:
        """Whether every cell of the part is released, whatever its noisy value is."""
        return self.sides == 2 and self.theta == 0 and self.tau == 0


def balanced_ranges(
    keys: Int[np.ndarray, " n"], size: int, parts: int
) -> list[list[tuple[int, int]]]:
    """Divide the cells into ranges of consecutive cells. Each range has at most about 1/`parts` of all cells,
    and of all non-empty cells.

    The ranges depend on the private data, but only divide the work among threads. The ranges do not change
    the distribution of a release, and are never published.
    """
    places = [len(keys) * i // parts for i in range(1, parts)]
    ends = {0, size, *keys[places].tolist()} if len(keys) else {0, size}
    ends.update(size * i // parts for i in range(1, parts))
    return [[pair] for pair in pairwise(sorted(ends))]


def keys_of_parts(rng: bytes | None, parts: int) -> list[bytes]:
    """Return a secret key for each part. If `rng` is None, the keys come from the operating system. Otherwise
    they are computed from the key `rng`, so that the noise can be drawn again.
    """
    if rng is None:
        return [system_key() for _ in range(parts)]
    if len(rng) != KEY_BYTES:
        raise ValueError(f"rng must be None, a generator, or {KEY_BYTES} bytes")
    return [hashlib.sha256(rng + part.to_bytes(8)).digest() for part in range(parts)]


def check_ranges(ranges: Sequence[Ranges], size: int) -> None:
    """Raise a ValueError if the ranges of all parts together do not contain each cell exactly once."""
    everything = sorted((low, high) for own in ranges for low, high in own)
    ascending = all(list(own) == sorted(own) for own in ranges)
    ends = [0, *(high for _, high in everything)]
    starts = [*(low for low, _ in everything), size]
    if not ascending or starts != ends:
        raise ValueError(f"ranges must contain each of {size} cells once, in order per part")


def runs_of(ranges: Ranges, blocks: Sequence[AnyBlock]) -> tuple[Run, ...]:
    """Split ranges of cells where a block ends, so that each piece is in one block."""
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
    """Return, for each run of cells, the slice of the sorted keys that belong to cells of this run."""
    slices = []
    for start, block in runs:
        last = start + block.size - 1  # a search for the key behind it might overflow
        low, high = np.searchsorted(keys, np.array([start, last]))
        high += high < len(keys) and keys[high] == last
        slices.append(slice(int(low), int(high)))
    return slices


# Drawing


class NoisyPart(NamedTuple):
    """Released cells of one part: their keys in ascending order and their noisy values."""

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]


def survivors(
    part: Part, keys: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"]
) -> NoisyPart:
    """Add noise to the cells of one part. Return a random sample of the noisy cells that pass the filter.

    Parameters
    ----------
    part : Part
        Part of a measurement.
    keys : int64[n]
        Keys of the non-empty cells of the part, in ascending order.
    counts : int[n]
        Counts of these cells.

    Returns
    -------
    NoisyPart
        Keys and noisy values of the released cells. If you draw the same part again, the result is the same.
    """
    return merged(draw_survivors(part, keys, counts))


class DrawnRun(NamedTuple):
    """Run of consecutive cells after noise was added. It contains the keys and noisy values of the non-empty
    cells with a mask of those that are released, and the ranks and noisy values of the released empty cells.
    The rank of an empty cell is its number among the empty cells of the run.
    """

    start: int
    keys: Int[np.ndarray, " n"]
    noisy: Int[np.ndarray, " n"]
    kept: Bool[np.ndarray, " n"]
    ranks: Int[np.ndarray, " s"]
    values: Int[np.ndarray, " s"]


def merged(runs: Sequence[DrawnRun], out: NoisyPart | None = None) -> NoisyPart:
    """Return the keys and noisy values of all released cells of several runs, in order. If `out` is given,
    the result is written into its arrays.
    """
    ends = list(accumulate(map(_released, runs), initial=0))
    if out is None:
        out = NoisyPart(np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64))
    for run, low, high in zip(runs, ends, ends[1:], strict=False):
        kernels.merge(*run, out.keys[low:high], out.values[low:high])
    return out


def _released(run: DrawnRun) -> int:
    return int(np.count_nonzero(run.kept)) + len(run.ranks)


def merged_on_threads(runs: Sequence[Sequence[DrawnRun]], threads: int) -> NoisyPart:
    """Return the released cells of all parts, in order. Several threads write the parts directly into the
    result.
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
    """Draw the noise of all cells of a part. Mark the cells that pass the filter and are kept by the
    sampling.
    """
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
    """Keys of the empty cells of a run, which are computed only when they are needed."""

    start: int
    size: int
    occupied: Int[np.ndarray, " n"]

    def __call__(self) -> Int[np.ndarray, " empty"]:
        """Return the keys of all empty cells of the run."""
        every = np.arange(self.start, self.start + self.size)
        return np.setdiff1d(every, self.occupied, assume_unique=True)

    def at(self, ranks: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
        """Return the keys of the empty cells with the given ranks (numbers among the empty cells). Other keys
        are not computed.
        """
        keys = np.empty(len(ranks), np.int64)
        kernels.place_ranks(self.start, self.occupied, ranks, keys)
        return keys


class Sample(NamedTuple):
    """Some noisy values of a part, from which the threshold of priority sampling is guessed. The values are
    private, and only the code that joins the parts may use them.
    """

    sizes: Float[np.ndarray, " some"]
    passing: int
    empty: list[int]  # cells, of each run


class Pool(NamedTuple):
    """Cells that may have the largest priorities, with the first bits of each random priority. The cells are
    private until all parts are joined.
    """

    keys: Int[np.ndarray, " k"]
    values: Int[np.ndarray, " k"]
    drawn: UInt64[np.ndarray, " k"]


def joined(pools: Sequence[Pool]) -> Pool:
    """Join several pools of cells into one."""
    if len(pools) == 1:
        return pools[0]  # without a copy
    return Pool(*map(np.concatenate, zip(*pools, strict=True)))


class Prioritised:
    """Noisy cells of a part, for priority sampling, which releases the cells with the smallest inverse
    priorities. The object contains all non-empty cells that pass the filter, and those empty cells whose
    inverse priority is below 1/τ, where τ is a guessed threshold.
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
        """Return some noisy values, from which the threshold of priority sampling is guessed."""
        values = self.occupied.values
        empty = [own.size - len(own.occupied) for own in self.empty]
        return Sample(priorities.sample_of(values), len(values), empty)

    def best(self, taus: Sequence[float]) -> list[Pool]:
        """Return the cells whose priority is above the last guess of the threshold in `taus`. The first pool
        contains non-empty cells. After it, one pool per guess contains the empty cells that this guess added.
        """
        for tau in taus[len(self.taus) :]:
            self._extend(tau)
        places, above = self.occupied.listed(taus[-1])
        return [Pool(self.keys[places], above.values, above.drawn), *self.rounds]

    def _extend(self, tau: float) -> None:
        """Draw the empty cells whose priority is between the new guess `tau` and the guess before."""
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
    """Draw a part for the first round of priority sampling. Return some noisy values, from which the
    threshold is guessed.

    Parameters
    ----------
    part, keys, counts
        Part, and the keys and counts of its non-empty cells, as in `survivors`.

    Returns
    -------
    Sample
        Some noisy values of the part, which are private.
    """
    return Prioritised(part, keys, counts).sample()


def best(
    part: Part,
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    taus: Sequence[float],
) -> list[Pool]:
    """Draw a part for a later round of priority sampling. Return the cells whose priority is above the last
    guess of the threshold.

    Parameters
    ----------
    part, keys, counts
        Part, and the keys and counts of its non-empty cells, as in `survivors`.
    taus : sequence of float
        All guesses of the threshold so far, in descending order. The draws for earlier guesses are repeated
        in each round.

    Returns
    -------
    list of Pool
        First the non-empty cells whose priority is above the last guess, or so close to it that floating
        point cannot decide. Then, for each guess, the empty cells that this guess added.
    """
    return Prioritised(part, keys, counts).best(taus)
