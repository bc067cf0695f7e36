"""Counting of rows in two steps. First, rows are partitioned by user, and each user's rows are truncated to
the bound. Then the rows are partitioned by key (the number of their cell) and counted.

Results of tasks depend only on their arguments, and on files that do not change.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.data import (
    SparseTable,
    UserNumbers,
    Users,
    bounded_contributions,
    counted_rows,
    cut_key,
)
from workbench.data.cells import LARGEST_TOTAL, CellCounts, cells_of_counts, cells_of_keys
from workbench.noise.measurement import Measurement
from workbench.noise.stability import stable_cells, stable_parts
from workbench.owner.scale.rows import Rows, Span
from workbench.owner.scale.spill import Segments, Spilled, SpillFile, read_batches, read_rows
from workbench.owner.scale.work import Tasks
from workbench.queries import Basis, Linear
from workbench.queries.linear import within_int64
from workbench.randomness import KEY_BYTES, system_key
from workbench.spaces import Domain
from workbench.value import Int, Num, sealed

# Tasks

ROWS = 2**19  # of a range of cells, about: it stays in cache
USER_ROWS = (
    2**21
)  # of a range of users, about: each writes a file that all ranges of cells read
MOST_ROWS = 2**22  # of a range that is sorted at once
_LEAST_BITS = 16  # ranges of fewer cells are not split
_SPLIT = 6  # bits, of a range that is
_MOST_RANGES = 2**10


class Range(NamedTuple):
    """Range of 2^`bits` consecutive cells (the last range may have fewer). The object contains the positions of
    the rows of these cells in scratch files.
    """

    start: int
    bits: int
    segments: tuple[Segments, ...]

    @property
    def rows(self) -> int:
        """Number of rows of the range."""
        return sum(some.rows for some in self.segments)


class DealtFile(NamedTuple):
    """Scratch file of the rows that one task divided into ranges, with the sum of the rows' counts and the
    type of the column of users.
    """

    spilled: Spilled
    total: float
    kind: str | None


def range_bits(rows: int, each: int) -> int:
    """Return the k for which 2^k ranges of cells have about `each` rows per range. The largest k is 10."""
    wanted = max(-(-rows // each), 1)
    return (min(wanted, _MOST_RANGES) - 1).bit_length()


def user_bits(rows: int) -> int:
    """Return the k for which 2^k ranges (groups) of users have about 2²¹ rows each. The largest k is 10."""
    return range_bits(rows, USER_ROWS)


def _key_type(cells: int) -> str:
    return "<u4" if cells <= 2**32 else "<i8"


def _file_by_key(folder: Path, cells: int, bits: int) -> SpillFile:
    """Return a new scratch file for rows that are divided into ranges of 2^`bits` cells. The file contains
    only the lower bits of each row's key, because the range gives the others.
    """
    return SpillFile(folder, ((cells - 1) >> bits) + 1, bits, _key_type(1 << bits))


def deal_rows(rows: Rows, span: Span, folder: Path, bits: int, factor: int | None) -> DealtFile:
    """Divide the rows of one part of the files into ranges of 2^`bits` cells. If a factor is given, divide
    the rows into 2^`bits` ranges (groups) of users instead.

    To find the range of a user, the function multiplies the number of the user by a secret odd factor, and
    takes the upper bits. Two users are in the same range with probability at most 2/2^`bits`. The range
    does not affect which records of a user are kept.
    """
    cells = rows.domain.size
    users = None if factor is None else rows.people()
    if users is None:
        file = _file_by_key(folder, cells, bits)
    else:
        file = SpillFile(folder, 1 << bits, 63 - bits, _key_type(cells))
    batches = counted_rows(span.source(), rows.domain, count=rows.count, users=users)
    total = 0.0
    with (
        closing(batches),
        file,
    ):  # also where a worker keeps the traceback of what a full disk raised
        for batch in batches:
            words = batch.keys
            who: dict[str, np.ndarray] = {}
            if users is not None:
                who = _identities(users, batch.users)
                words = who["user"].view(np.uint64) * np.array(factor, np.uint64)
                words >>= np.uint64(1)  # of 63 bits: none is shifted by all of its own
            file.add(words, batch.keys, count=batch.counts, **who)
            total += 0.0 if batch.counts is None else batch.counts.sum(dtype=float)
    span.pin.refuse_changed()
    return DealtFile(file.spilled(), total, None if users is None else users.kind)


def _identities(users: UserNumbers, numbers: Any) -> dict[str, np.ndarray]:
    """Return the identity of the user of each row in a batch. The identity is the user's number, or a 127-bit
    hash of the user's name in two columns.
    """
    ids = users.ids()
    users.forget()
    if ids is None:
        return {"user": numbers}
    return {"user": ids[numbers, 0], "rest": ids[numbers, 1]}


def read_users(
    rows: Rows, folder: Path, segments: Sequence[Segments]
) -> tuple[Users, Int[np.ndarray, " rows"], Int[np.ndarray, " rows"] | None]:
    """Return all rows of a range (group) of users: the user, the key and the count of each row. The counts
    are None if each row counts as 1.
    """
    if not segments:
        none = np.zeros(0, np.int64)
        return Users(none), none, None
    records = read_rows(folder, segments)
    numbers, ids = records["user"], None
    if "rest" in (records.dtype.names or ()):
        numbers, ids = _numbered(numbers, records["rest"])
    counts = None if rows.count is None else records["count"]
    return Users(numbers, ids, rows.who), records["key"].astype(np.int64), counts


def _numbered(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the different users, whose ids consist of two words each. Return the number of each row's user,
    and the ids in the order of the numbers.
    """
    words, numbers = np.unique(first, return_inverse=True)
    ids = np.stack([words, words], axis=1)
    ids[numbers, 1] = second
    if (ids[numbers, 1] != second).any():  # two people share a word
        both = np.stack([first, second], axis=1)
        ids, numbers = np.unique(both, axis=0, return_inverse=True)
    return numbers.ravel(), ids


def cut_users(
    rows: Rows, folder: Path, segments: Sequence[Segments], bits: int, key: bytes
) -> tuple[Spilled, int]:
    """Truncate each user in a range (group) of users to the bound. Return the rows that are kept, divided
    into ranges of cells, and the number of users who lost rows.
    """
    bound = rows.enforced_bound
    left = bounded_contributions(*read_users(rows, folder, segments), bound, key)
    with _file_by_key(folder, rows.domain.size, bits) as file:
        file.add(left.keys, left.keys, count=None if bound.linf < 2 else left.counts)
    return file.spilled(), int(left.lost.sum())


def split(folder: Path, some: Range, finer: int) -> Spilled:
    """Divide the rows of a range of cells into narrower ranges of 2^`finer` cells."""
    with _file_by_key(folder, 1 << some.bits, finer) as file:
        for records in read_batches(folder, some.segments):
            places, counts = _places(records, some.bits)
            places = places.astype(np.int64)
            file.add(places, places, count=counts)
    return file.spilled()


def ranges(start: int, cells: int, bits: int, spilled: Sequence[Spilled]) -> Iterator[Range]:
    """Yield ranges of 2^`bits` consecutive cells in ascending order. Each range contains the positions of its
    rows in the scratch files.
    """
    for which in range(((cells - 1) >> bits) + 1):
        yield Range(start + (which << bits), bits, _segments(spilled, which))


def _segments(spilled: Sequence[Spilled], which: int) -> tuple[Segments, ...]:
    segments = (own.segments(which) for own in spilled)
    return tuple(some for some in segments if len(some.places))


def cells_of_range(
    folder: Path, some: Range
) -> tuple[Int[np.ndarray, " cells"], Int[np.ndarray, " cells"]]:
    """Return the keys of the non-empty cells of a range, in ascending order, and their counts."""
    if not some.segments:
        none = np.zeros(0, np.int64)
        return none, none
    if some.rows > MOST_ROWS:  # of few cells
        cells = CellCounts(MOST_ROWS)
        for records in read_batches(folder, some.segments):
            cells.add(*_places(records, some.bits))
        keys, counts = cells.cells()
    else:
        places, counted = _places(read_rows(folder, some.segments), some.bits)
        if counted is None:
            keys, counts = cells_of_keys(places)
        else:
            keys, counts = cells_of_counts(places.astype(np.int64), counted)
    return keys.astype(np.int64) + some.start, counts


def _places(
    records: np.ndarray, bits: int
) -> tuple[Int[np.ndarray, " rows"], Int[np.ndarray, " rows"] | None]:
    """Return the positions of rows in their range of 2^`bits` cells. Also return the counts of the rows, or
    None if there is no column of counts.
    """
    keys = records["key"]
    counts = records["count"].copy() if "count" in (records.dtype.names or ()) else None
    return keys & keys.dtype.type((1 << bits) - 1), counts


# Cells

Progress = Callable[[str, float], Any]  # what is done, and which share of it


class Dealt:
    """Private rows, which mechanisms can use in place of a `SparseTable`. Tasks divide the rows into scratch
    files when the rows are first needed.

    Parameters
    ----------
    rows : Rows
        The rows.
    folder : Path
        Folder for scratch files.
    tasks : Tasks
        Runner of tasks.
    each : int
        Approximate number of rows per range.
    number : int, optional
        Approximate number of ranges. Default: depends on the size of the files.
    progress : callable, optional
        Function that is called with "reading", "users" or "cells" and the completed share of bytes, of
        ranges of users, or of the domain.
    ready : callable, optional
        Function that is called once, after all rows were read without an error.
    """

    stands_for = SparseTable
    users_cut = 0

    def __init__(
        self,
        rows: Rows,
        folder: Path,
        tasks: Tasks,
        each: int = ROWS,
        number: int | None = None,
        progress: Progress | None = None,
        ready: Callable[[], Any] | None = None,
    ):
        self.rows = rows
        self.folder = folder
        self.tasks = tasks
        self._each = each
        self._number = number
        self._progress = progress or (lambda stage, share: None)
        self._ready = ready or (lambda: None)

    @cached_property
    def ranges(self) -> list[Range]:
        """Ranges of consecutive cells in ascending order. A range with too many rows is split."""
        cells = self.rows.domain.size
        fewer = range_bits(self._rows, self._each)
        if self._number is not None:
            fewer = (self._number - 1).bit_length()
        bits = max((cells - 1).bit_length() - fewer, 0)
        self._range_size = 1 << bits
        spilled = self._read(bits) if self.rows.user is None else self._cut(bits)
        return self._narrowed([*ranges(0, cells, bits, spilled)])

    def _narrowed(self, found: list[Range]) -> list[Range]:
        """Split ranges of cells that have too many rows. Return all ranges in ascending order."""
        most = 4 * self._each
        full = [some for some in found if some.rows > most and some.bits > _LEAST_BITS]
        if not full:
            return found
        finer = [max(some.bits - _SPLIT, _LEAST_BITS) for some in full]
        given = [(self.folder, *own) for own in zip(full, finer, strict=True)]
        parts = [some for some in found if some.rows <= most or some.bits <= _LEAST_BITS]
        for some, bits, spilled in zip(full, finer, self.tasks.map(split, given), strict=True):
            cells = min(1 << some.bits, self.rows.domain.size - some.start)
            parts += ranges(some.start, cells, bits, [spilled])
        return self._narrowed(sorted(parts, key=lambda some: some.start))

    @cached_property
    def _spans(self) -> list[Span]:
        return self.rows.spans()

    @property
    def _rows(self) -> int:
        """Approximate number of rows."""
        return sum(span.rows for span in self._spans)

    @cached_property
    def user_ranges(self) -> list[tuple[Segments, ...]]:
        """Ranges (groups) of users. Each range contains all rows of its users, and no other rows."""
        bits = user_bits(self._rows)
        spilled = self._read(bits, int.from_bytes(system_key()[:8]) | 1)
        return [_segments(spilled, which) for which in range(1 << bits)]

    def _read(self, bits: int, factor: int | None = None) -> list[Spilled]:
        """Let tasks read and partition all rows, and report the share of bytes that were read."""
        arguments = ((self.rows, span, self.folder, bits, factor) for span in self._spans)
        whole = max(sum(span.size for span in self._spans), 1)
        done = 0
        dealt: list[DealtFile] = []
        for span, own in zip(self._spans, self.tasks.map(deal_rows, arguments), strict=True):
            dealt.append(own)
            done += span.size
            self._progress("reading", done / whole)
        if factor is None:
            if sum(own.total for own in dealt) > LARGEST_TOTAL:
                raise ValueError(f"counts must sum to at most {LARGEST_TOTAL}")
        else:
            together = self.rows.people()
            for kind in {own.kind: None for own in dealt if own.kind is not None}:
                together.refuse_other_kind(kind)
        self.rows.refuse_changed()
        self._ready()
        return [own.spilled for own in dealt]

    def of_users(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Call `function(rows, folder, segments, *arguments)` for each range (group) of users, and yield the
        results.
        """
        given = [(self.rows, self.folder, own, *arguments) for own in self.user_ranges]
        for i, result in enumerate(self.tasks.map(function, given)):
            yield result
            self._progress("users", (i + 1) / len(given))

    def _cut(self, bits: int) -> list[Spilled]:
        cut = list(self.of_users(cut_users, bits, cut_key(key=self.rows.key)))
        self.users_cut = sum(lost for _, lost in cut)
        for name in {some.name for segments in self.user_ranges for some in segments}:
            os.unlink(self.folder / name)
        return [spilled for spilled, _ in cut]

    def of_ranges(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Call `function(keys, counts, *arguments)` for the cells of each range of cells, and yield the
        results. Each range has its own arguments.
        """
        size = self.rows.domain.size
        given = (
            (self.folder, some, function, own)
            for some, own in zip(self.ranges, arguments, strict=True)
        )
        for some, result in zip(self.ranges, self.tasks.map(of_cells, given), strict=True):
            yield result
            end = min(some.start + (1 << some.bits), size)
            is_told = end == size or end % self._range_size == 0
            if is_told:  # where ranges are split data decide, and nobody is told
                self._progress("cells", end / size)

    # what mechanisms ask of a table

    @property
    def domain(self) -> Domain:
        """Domain with all possible cells."""
        return self.rows.domain

    @property
    def bound(self) -> Any:
        """Largest change of the counts that one protected unit can cause."""
        return self.rows.enforced_bound

    def grid_units(self, workload: Linear, grid: float) -> Int[np.ndarray, " queries"]:
        """Return the exact answers to linear queries, given as integers. An integer n stands for n times the
        step `grid`. The result is the same as the result of `SparseTable.grid_units`.
        """
        answer = partial(workload.grid_units, self.domain)
        parts = self.of_ranges(answer, [(grid,)] * len(self.ranges))
        return within_int64(sum(parts))  # not within each part: data decide where parts end

    def measured(self, basis: Basis, blocks: Sequence[Any], *, rng: Any, **how: Any) -> Any:
        """Add noise to all nodes (cells or transformed counts), as one measurement. The nodes that depend
        only on one range of cells are drawn together, as a part. The nodes that depend on several ranges are
        the last part.
        """
        nodes = [basis.within(some.start, some.bits) for some in self.ranges]
        above = _gaps(nodes, sum(block.size for block in blocks))
        if above:
            nodes.append(above)
        measurement = Measurement(blocks, nodes, rng=_key(rng), **how)

        def draw(function: Callable[..., Any], *arguments: Any) -> list[Any]:
            own = [
                (basis, some.bits, part, function, arguments)
                for some, part in zip(self.ranges, measurement.parts, strict=False)
            ]
            drawn = list(self.of_ranges(drawn_within, own))
            results = [result for result, _ in drawn]
            if above:
                totals = np.array([total for _, total in drawn])
                starts, bits = np.array([some[:2] for some in self.ranges]).T
                sums = basis.forward_above(starts, bits, totals)
                results.append(function(measurement.parts[-1], *sums, *arguments))
            return results

        if "size" in how:
            return measurement.priority_sample(draw)
        return measurement.threshold_sample(draw)

    def stable_cells(self, *, rng: Any, **price: Any) -> Any:
        """Add noise to the non-empty cells, one range of consecutive cells at a time. Return the keys and
        noisy values of the cells that reach a threshold, the threshold, and the receipt.
        """
        theta, parts, receipt = stable_parts(
            self.bound, len(self.ranges), **price, rng=_key(rng)
        )
        pieces = self.of_ranges(stable_cells, [(part,) for part in parts])
        keys, values = (sealed(np.concatenate(x)) for x in zip(*pieces, strict=True))
        return keys, values, theta, receipt


def _key(rng: np.random.Generator | None) -> bytes | None:
    """Return a key for the noise, drawn from the seeded generator. Return None if there is no generator,
    because the noise then comes from the operating system.
    """
    return None if rng is None else rng.bytes(KEY_BYTES)


def _gaps(ranges: Sequence[Sequence[tuple[int, int]]], size: int) -> list[tuple[int, int]]:
    """Return the ranges of node numbers below `size` that the given ranges leave out."""
    taken = sorted(pair for own in ranges for pair in own)
    ends = [0, *(end for pair in taken for end in pair), size]
    gaps = list(pairwise(ends))[::2]
    return [(low, high) for low, high in gaps if high > low]


def of_cells(
    folder: Path, some: Range, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """Read the non-empty cells of a range, and call a function with their keys and counts."""
    return function(*cells_of_range(folder, some), *arguments)


def drawn_within(
    keys: Int[np.ndarray, " n"],
    counts: Num[np.ndarray, " n"],
    basis: Basis,
    bits: int,
    part: Any,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> tuple[Any, int]:
    """Call a function that draws noise for the nodes (cells or transformed counts) that depend only on one
    range of cells. Return the result of this function, and the sum of the range's counts.
    """
    nodes, values = basis.forward_within(keys, counts, bits)
    return function(part, nodes, values, *arguments), int(counts.sum())
