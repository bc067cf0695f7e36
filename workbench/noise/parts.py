"""Parts of one measurement: some runs of its cells each, and a secret key of which all its draws follow.

A part is some runs of cells; parts together hold each cell once. Noise, coins and priorities of different
cells are independent, and a cell's own law does not depend on its part, so that joining what parts release
restricts nothing and repeats nothing: the joint law is that of one part, whatever the cuts, even where
they follow private data. Hence one measurement, and one receipt for each block.

Every draw of a part follows from the part's secret key. A part that is drawn twice, by a task that was
repeated or in a second round, gives the same noise again; so a part is drawn for one table only. A part
and what is released tell the data: parts stay where the data is, and are never written.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from workbench.arrays import Int
from workbench.noise.bits import KEY_BYTES, Keystream, Words
from workbench.noise.selection import AnyBlock

Streams = Callable[[int], Words]  # the words of a part's n-th step
Ranges = Sequence[tuple[int, int]]  # first cell, and last + 1


class Run(NamedTuple):
    """Consecutive cells of one block: the first of them, and a block of as many."""

    start: int
    block: AnyBlock


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


def check_ranges(ranges: Sequence[Ranges], size: int) -> None:
    """A ValueError unless the ranges of all parts hold each cell once."""
    everything = sorted((low, high) for own in ranges for low, high in own)
    ascending = all(list(own) == sorted(own) for own in ranges)
    ends = [0, *(high for _, high in everything)]
    starts = [*(low for low, _ in everything), size]
    if not ascending or starts != ends:
        raise ValueError(f"ranges must hold each of {size} cells once, and ascend in each part")


def runs_of(ranges: Ranges, blocks: Sequence[AnyBlock]) -> tuple[Run, ...]:
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


def cells_of_runs(keys: Int[np.ndarray, " n"], runs: Sequence[Run]) -> list[slice]:
    """Which of the sorted keys lie in each run."""
    slices = []
    for start, block in runs:
        last = start + block.size - 1  # a search for the key behind it might overflow
        low, high = np.searchsorted(keys, np.array([start, last]))
        high += high < len(keys) and keys[high] == last
        slices.append(slice(int(low), int(high)))
    return slices
