"""Rows to cells, range by range, and what mechanisms draw from them.

What tasks give back follows from their arguments and from files that do not change.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import parquet, pl
from workbench.data import (
    SparseTable,
    UserNumbers,
    Users,
    bounded_contributions,
    counted_rows,
    cut_key,
)
from workbench.data.cells import (
    LARGEST_TOTAL,
    CellCounts,
    GrowingArray,
    cells_of_counts,
    cells_of_keys,
)
from workbench.data.sources import BATCH
from workbench.data.truncation import whole_limits
from workbench.owner.scale import spill as kernels
from workbench.owner.scale.rows import Rows, Span
from workbench.owner.scale.spill import (
    Columns,
    Segments,
    Spilled,
    SpillFile,
    read_portions,
    read_rows,
)
from workbench.owner.scale.work import Tasks
from workbench.queries import Basis, Linear
from workbench.spaces import Domain
from workbench.value import Int, Num, UInt32

# Counting

ROWS = 2**19  # of a range, about: it stays in cache
MOST_ROWS = 2**22  # of a range that is sorted at once
_LEAST_BITS = 16  # ranges of fewer cells are not split
_SPLIT = 6  # bits, of a range that is
_MOST_RANGES = 2**10
_GOLDEN = np.uint64(
    0x9E3779B97F4A7C15
)  # 2⁶⁴ over the golden ratio: it spreads numbers with a pattern
_NAMES = 2**21  # users who are no numbers that a task remembers


class Range(NamedTuple):
    """Consecutive cells, 2^`bits` of them (fewer, if they are the last), and where their rows are."""

    start: int
    bits: int
    segments: tuple[Segments, ...]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(some.rows for some in self.segments)


class DealtUsers(NamedTuple):
    """Rows dealt out by user, and which kind the users are."""

    spilled: Spilled
    kind: str | None


class CutUsers(NamedTuple):
    """What is left of some users, dealt out by key, and how many of them lost anything."""

    spilled: Spilled
    lost: int


def load() -> None:
    """Load what every task uses: readers of files, and the compiled loops."""
    _ = parquet.ParquetFile, pl.Series
    kernels.tally(np.zeros(0, np.uint32), np.zeros(1, np.int64))


def key_bits(domain_size: int, ranges: int) -> int:
    """The width of equal ranges, about so many, as a power of two."""
    return max((domain_size - 1).bit_length() - (ranges - 1).bit_length(), 0)


def number_of_ranges(rows: int, each: int = ROWS) -> int:
    """Into how many ranges so many rows are dealt."""
    return min(1 << max(-(-rows // each) - 1, 0).bit_length(), _MOST_RANGES)


def user_bits(rows: int) -> int:
    """Into how many ranges the users of so many rows are dealt, as a power of two."""
    return (number_of_ranges(rows) - 1).bit_length()


def user_range(words: Int[np.ndarray, " rows"], bits: int) -> UInt32[np.ndarray, " rows"]:
    """The range of each user, by 64 bits of what identifies them."""
    ranges = np.zeros(len(words), np.uint32)
    if bits:
        kernels.spread(words, _GOLDEN, np.uint64(64 - bits), ranges)
    return ranges


def _key_type(cells: int) -> str:
    return "<u4" if cells <= 2**32 else "<i8"


def _deal_keys(
    file: SpillFile, keys: Int[np.ndarray, " rows"], bits: int, counts: Columns
) -> None:
    ranges = np.empty(len(keys), np.uint32)
    low = np.empty(len(keys), file.types[0])
    kernels.split_keys(keys, bits, ranges, low)
    file.add(ranges, [low, *counts])


def _new_file(folder: Path, cells: int, bits: int, counts: Sequence[str]) -> SpillFile:
    ranges = ((cells - 1) >> bits) + 1
    return SpillFile(folder, [_key_type(min(cells, 1 << bits)), *counts], ranges)


def deal_rows(rows: Rows, span: Span, folder: Path, bits: int) -> tuple[Spilled, float]:
    """The rows of some files by ranges of keys, and the sum of their counts."""
    counted = [] if rows.count is None else ["<i8"]
    total = 0.0
    # closed, though a worker keeps the traceback of what a full disk raised
    with (
        closing(counted_rows(span.source(), rows.domain, count=rows.count)) as batches,
        _new_file(folder, rows.domain.size, bits, counted) as file,
    ):
        for batch in batches:
            counts = [] if batch.counts is None else [batch.counts]
            total += sum(column.sum(dtype=float) for column in counts)
            _deal_keys(file, batch.keys, bits, counts)
    span.pin.refuse_changed()
    return file.spilled(), total


def deal_users(rows: Rows, span: Span, folder: Path, bits: int) -> DealtUsers:
    """The rows of some files by user: users as numbers, or as 127 bits that stand for a name."""
    users = UserNumbers(rows.user_column, rows.user_type)
    counted = [] if rows.count is None else ["<i8"]
    key_type = _key_type(rows.domain.size)
    file = None
    ids = np.empty((0, 2), np.uint64)
    batches = counted_rows(span.source(), rows.domain, count=rows.count, users=users)
    with ExitStack() as stack:
        stack.enter_context(closing(batches))
        for batch in batches:
            assert batch.users is not None  # as their column is read
            new = users.ids(len(ids))
            if new is None:
                identity = [batch.users]
            else:
                ids = np.concatenate([ids, new])
                identity = [ids[batch.users, 0], ids[batch.users, 1]]
            if file is None:
                kinds = ["<i8"] if new is None else ["<u8", "<u8"]
                file = SpillFile(folder, [*kinds, key_type, *counted], 1 << bits)
                stack.enter_context(file)
            counts = [] if batch.counts is None else [batch.counts]
            file.add(user_range(identity[0], bits), [*identity, batch.keys, *counts])
            if len(ids) > _NAMES:
                users.forget()
                ids = ids[:0]
        if file is None:
            file = stack.enter_context(
                SpillFile(folder, ["<i8", key_type, *counted], 1 << bits)
            )
    span.pin.refuse_changed()
    return DealtUsers(file.spilled(), users.kind)


class UserRows(NamedTuple):
    """Rows of some users, and all that these have."""

    users: Users
    keys: Int[np.ndarray, " rows"]
    counts: Int[np.ndarray, " rows"] | None


def read_users(rows: Rows, folder: Path, segments: Sequence[Segments]) -> UserRows:
    """The rows of a range of users."""
    columns = read_rows(folder, segments)
    if not columns:
        none = np.zeros(0, np.int64)
        return UserRows(Users(none), none, None)
    counts = columns.pop().astype(np.int64) if rows.count is not None else None
    keys = columns.pop()
    if len(columns) == 1:
        return UserRows(Users(columns[0], None, rows.who), keys, counts)
    numbers, ids = _numbered(*columns)
    return UserRows(Users(numbers, ids, rows.who), keys, counts)


def _numbered(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ids in two words as numbers, and the ids of these."""
    words, where, numbers = np.unique(first, return_index=True, return_inverse=True)
    if (second == second[where][numbers]).all():
        return numbers, np.stack([words, second[where]], axis=1)
    ids, numbers = np.unique(np.stack([first, second], axis=1), axis=0, return_inverse=True)
    return numbers.ravel(), ids


def cut_users(
    rows: Rows, folder: Path, users: Sequence[Sequence[Segments]], bits: int, key: bytes
) -> CutUsers:
    """What the bound leaves of some ranges of users, by ranges of keys."""
    bound = rows.enforced_bound
    _, linf, _ = whole_limits(bound)
    counted = [] if linf == 1 else ["<i8"]
    keys = GrowingArray()
    counts = GrowingArray()
    lost = 0
    with _new_file(folder, rows.domain.size, bits, counted) as file:
        for i, some in enumerate(users):
            own = read_users(rows, folder, some)
            left = bounded_contributions(own.users, own.keys, own.counts, bound, key)
            lost += int(left.lost.sum())
            keys.append(left.keys)
            if counted:
                counts.append(left.counts)
            if keys.size >= BATCH or i == len(users) - 1:
                _deal_keys(file, keys.take(), bits, [counts.take()] if counted else [])
    return CutUsers(file.spilled(), lost)


def split(folder: Path, segments: Sequence[Segments], bits: int, finer: int) -> Spilled:
    """The rows of a range by narrower ranges."""
    with _new_file(folder, 1 << bits, finer, segments[0].types[1:]) as file:
        for keys, *counts in read_portions(folder, segments, MOST_ROWS):
            _deal_keys(file, keys, finer, counts)
    return file.spilled()


def ranges(cells: int, bits: int, spilled: Sequence[Spilled]) -> Iterator[Range]:
    """Equal ranges of so many cells, ascending, of dealt rows."""
    for which in range(((cells - 1) >> bits) + 1):
        segments = (own.segments(which) for own in spilled)
        yield Range(which << bits, bits, tuple(some for some in segments if some.rows))


def is_too_full(some: Range, most: int) -> bool:
    """Whether a range has to be split before it is sorted."""
    return some.rows > most and some.bits > _LEAST_BITS


def finer_bits(some: Range) -> int:
    """The width of the ranges that it is split into."""
    return max(some.bits - _SPLIT, _LEAST_BITS)


def parts_of(some: Range, cells: int, spilled: Spilled) -> Iterator[Range]:
    """The narrower ranges of a range that was split."""
    own = min(1 << some.bits, cells - some.start)
    for part in ranges(own, finer_bits(some), [spilled]):
        yield part._replace(start=some.start + part.start)


def cells_of_range(
    folder: Path, some: Range
) -> tuple[Int[np.ndarray, " cells"], Int[np.ndarray, " cells"]]:
    """The keys of cells that are not empty, ascending, and their counts."""
    if not some.segments:
        none = np.zeros(0, np.int64)
        return none, none
    if some.rows > MOST_ROWS:
        cells = CellCounts(MOST_ROWS)
        for places, *portion in read_portions(folder, some.segments, MOST_ROWS):
            cells.add(places, *(column.astype(np.int64) for column in portion))
        keys, counts = cells.cells()
    else:
        places, *counted = read_rows(folder, some.segments)
        if counted:
            keys, counts = cells_of_counts(places.astype(np.int64), counted[0])
        else:
            keys, counts = cells_of_keys(places)
    return keys.astype(np.int64) + some.start, counts


def refuse_large_total(total: float) -> None:
    """A ValueError if sums could not be held exactly."""
    if total > LARGEST_TOTAL:
        raise ValueError(f"counts must sum to at most {LARGEST_TOTAL}")


# Cells

Progress = Callable[[str, float], Any]  # what is done, and which share of it
_MOST_CELLS = 2**62  # of sums that are added
_USER_RANGES = 8  # that one task cuts, into one file: each later range reads from all of these


class Dealt:
    """Rows that tasks deal out to scratch files when they are first needed.

    Parameters
    ----------
    rows : Rows
        The rows.
    folder : Path
        For scratch files.
    tasks : Tasks
        What runs tasks.
    ranges : int, optional
        About so many; by default what suits the size of the files.
    most_rows : int, optional
        Of a range, about.
    progress : callable, optional
        Called with "reading", "users" or "cells" and the share that is done: of bytes, of ranges
        of users, and of the domain.
    ready : callable, optional
        Called once, when all rows were read and none was refused.
    """

    stands_for = SparseTable

    def __init__(
        self,
        rows: Rows,
        folder: Path,
        tasks: Tasks,
        ranges: int | None = None,
        most_rows: int | None = None,
        progress: Progress | None = None,
        ready: Callable[[], Any] | None = None,
    ):
        self.rows = rows
        self.folder = folder
        self.tasks = tasks
        self.users_cut = 0
        self._ranges = ranges
        self._most_rows = most_rows or ROWS
        self._progress = progress or (lambda stage, share: None)
        self._ready = ready or (lambda: None)

    @cached_property
    def ranges(self) -> list[Range]:
        """Ranges of cells, ascending: those with too many rows are split."""
        rows = self.rows
        about = sum(span.rows for span in self.spans)
        number = self._ranges or number_of_ranges(about, self._most_rows)
        bits = key_bits(rows.domain.size, number)
        self._range_size = 1 << bits
        spilled = self._deal_keys(bits) if rows.user is None else self._cut(bits)
        found = list(ranges(rows.domain.size, bits, spilled))
        most = 4 * self._most_rows
        while any(is_too_full(some, most) for some in found):
            found = self._split(found, most)
        return found

    @cached_property
    def spans(self) -> list[Any]:
        """What tasks read."""
        spans = self.rows.spans()
        width = 4 * (4 if self.rows.user else 1) + 8 * (self.rows.count is not None)
        need = width * sum(span.rows for span in spans if span.row_groups is not None)
        if shutil.disk_usage(self.folder).free < need:
            raise OSError(
                f"{self.folder.parent} is too small for the scratch files of these rows: name another "
                "folder with scratch="
            )
        return spans

    @cached_property
    def user_ranges(self) -> list[tuple[Segments, ...]]:
        """Where the rows of some users are, who all are in one."""
        bits = user_bits(sum(span.rows for span in self.spans))
        arguments = ((self.rows, span, self.folder, bits) for span in self.spans)
        dealt = list(self._read(deal_users, arguments))
        together = UserNumbers(self.rows.user_column)
        for own in dealt:
            if own.kind is not None:
                together.refuse_other_kind(own.kind)
        self._all_read()
        ranges = []
        for which in range(1 << bits):
            segments = (own.spilled.segments(which) for own in dealt)
            ranges.append(tuple(some for some in segments if some.rows))
        return ranges

    def _deal_keys(self, bits: int) -> list[Spilled]:
        arguments = ((self.rows, span, self.folder, bits) for span in self.spans)
        dealt = list(self._read(deal_rows, arguments))
        refuse_large_total(sum(total for _, total in dealt))
        self._all_read()
        return [spilled for spilled, _ in dealt]

    def _read(
        self, function: Callable[..., Any], arguments: Iterator[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """What tasks give back that read; with the share of bytes that were read."""
        whole = max(sum(span.size for span in self.spans), 1)
        done = 0
        for span, result in zip(self.spans, self.tasks.map(function, arguments), strict=True):
            yield result
            done += span.size
            self._progress("reading", done / whole)

    def _all_read(self) -> None:
        self.rows.refuse_changed()
        self._ready()

    def of_users(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """`function(rows, folder, segments, *arguments)` of each range of users."""
        given = [(self.rows, self.folder, own, *arguments) for own in self.user_ranges]
        yield from self._of_users(function, given)

    def _of_users(
        self, function: Callable[..., Any], given: list[tuple[Any, ...]]
    ) -> Iterator[Any]:
        for i, result in enumerate(self.tasks.map(function, given)):
            yield result
            self._progress("users", (i + 1) / len(given))

    def _cut(self, bits: int) -> list[Spilled]:
        key = cut_key(key=self.rows.key)
        users = self.user_ranges
        given = [
            (self.rows, self.folder, users[first : first + _USER_RANGES], bits, key)
            for first in range(0, len(users), _USER_RANGES)
        ]
        cut = list(self._of_users(cut_users, given))
        self.users_cut = sum(own.lost for own in cut)
        for name in {some.name for segments in self.user_ranges for some in segments}:
            os.unlink(self.folder / name)
        return [own.spilled for own in cut]

    def _split(self, ranges: list[Range], most: int) -> list[Range]:
        full = [some for some in ranges if is_too_full(some, most)]
        arguments = ((self.folder, some.segments, some.bits, finer_bits(some)) for some in full)
        finer = iter(self.tasks.map(split, arguments))
        parts: list[Range] = []
        for some in ranges:
            if is_too_full(some, most):
                parts += parts_of(some, self.rows.domain.size, next(finer))
            else:
                parts.append(some)
        return parts

    def of_ranges(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """`function(keys, counts, *arguments)` of the cells of each range, which has its own arguments."""
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

    # what LaplaceQueries asks of a table

    @property
    def domain(self) -> Any:
        """Which cells there can be."""
        return self.rows.domain

    @property
    def bound(self) -> Any:
        """How far one unit moves the counts."""
        return self.rows.enforced_bound

    def grid_units(self, workload: Any, grid: float) -> Int[np.ndarray, " queries"]:
        """As `SparseTable.grid_units`."""
        units: Any = 0
        arguments = [(self.domain, workload, grid)] * len(self.ranges)
        for own in self.of_ranges(units_of_cells, arguments):
            own = np.clip(own, -_MOST_CELLS, _MOST_CELLS - 1)  # no sum overflows
            units = np.clip(units + own, -_MOST_CELLS, _MOST_CELLS)
        return units


def of_cells(
    folder: Path, some: Range, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """A function of the cells of a range."""
    return function(*cells_of_range(folder, some), *arguments)


def units_of_cells(
    keys: Int[np.ndarray, " n"],
    counts: Num[np.ndarray, " n"],
    domain: Domain,
    workload: Linear,
    grid: float,
) -> Int[np.ndarray, " queries"]:
    """What some cells add to the answers."""
    return workload.grid_units(domain, keys, counts, grid)


def drawn_within(
    keys: Int[np.ndarray, " n"],
    counts: Num[np.ndarray, " n"],
    basis: Basis,
    bits: int,
    part: Any,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> tuple[Any, int]:
    """What a part draws of the nodes of its own cells, and the sum of these."""
    nodes, values = basis.forward_within(keys, counts, bits)
    return function(part, nodes, values, *arguments), int(counts.sum())
