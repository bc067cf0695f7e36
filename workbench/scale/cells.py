"""Rows of files as cells, range by range: what mechanisms draw from without holding them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Int, Num
from workbench.contributions import UserNumbers, cut_key
from workbench.domain import Domain
from workbench.scale import counting
from workbench.scale.counting import Range, cells_of_range
from workbench.scale.rows import Rows
from workbench.scale.spill import Segments, Spilled
from workbench.scale.work import Tasks
from workbench.table import SparseTable
from workbench.transform import Basis
from workbench.workload.linear import Linear

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
        self._most_rows = most_rows or counting.ROWS
        self._progress = progress or (lambda stage, share: None)
        self._ready = ready or (lambda: None)

    @cached_property
    def ranges(self) -> list[Range]:
        """Ranges of cells, ascending: those with too many rows are split."""
        rows = self.rows
        about = sum(span.rows for span in self.spans)
        number = self._ranges or counting.number_of_ranges(about, self._most_rows)
        bits = counting.key_bits(rows.domain.size, number)
        self._range_size = 1 << bits
        spilled = self._deal_keys(bits) if rows.user is None else self._cut(bits)
        ranges = list(counting.ranges(rows.domain.size, bits, spilled))
        most = 4 * self._most_rows
        while any(counting.is_too_full(some, most) for some in ranges):
            ranges = self._split(ranges, most)
        return ranges

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
        bits = counting.user_bits(sum(span.rows for span in self.spans))
        arguments = ((self.rows, span, self.folder, bits) for span in self.spans)
        dealt = list(self._read(counting.deal_users, arguments))
        together = UserNumbers(self.rows.user_column)
        for own in dealt:
            together.agree_with(own.known)
        self._all_read()
        ranges = []
        for which in range(1 << bits):
            segments = (own.spilled.segments(which) for own in dealt)
            ranges.append(tuple(some for some in segments if some.rows))
        return ranges

    def _deal_keys(self, bits: int) -> list[Spilled]:
        arguments = ((self.rows, span, self.folder, bits) for span in self.spans)
        dealt = list(self._read(counting.deal_rows, arguments))
        counting.refuse_large_total(sum(total for _, total in dealt))
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
        cut = list(self._of_users(counting.cut_users, given))
        self.users_cut = sum(own.lost for own in cut)
        for name in {some.name for segments in self.user_ranges for some in segments}:
            os.unlink(self.folder / name)
        return [own.spilled for own in cut]

    def _split(self, ranges: list[Range], most: int) -> list[Range]:
        full = [some for some in ranges if counting.is_too_full(some, most)]
        arguments = (
            (self.folder, some.segments, some.bits, counting.finer_bits(some)) for some in full
        )
        finer = iter(self.tasks.map(counting.split, arguments))
        split: list[Range] = []
        for some in ranges:
            if counting.is_too_full(some, most):
                split += counting.parts_of(some, self.rows.domain.size, next(finer))
            else:
                split.append(some)
        return split

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
