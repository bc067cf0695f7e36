"""Releases of rows that need not fit in memory, by one core, several, or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench import noise
from workbench.data import UNBOUNDED, Bound, Interactions, Records, Unbounded, cut_key
from workbench.estimates import Summary, summary_in_basis
from workbench.estimates.release import Release, refuse_report_cut
from workbench.mechanisms.contributions import HPA, LPA, SRA, Contributions
from workbench.mechanisms.protocol import blocks_within, law_within, sensitivity
from workbench.mechanisms.queries import GaussianQueries, LaplaceQueries
from workbench.mechanisms.summaries import PrioritySampling, SparseSummary, StabilityHistogram
from workbench.noise.measurement import Measurement
from workbench.noise.parts import AnyBlock
from workbench.noise.stability import stable_cells, stable_parts
from workbench.owner.scale import counting
from workbench.owner.scale import counting as cells
from workbench.owner.scale.counting import Dealt, Progress, read_users
from workbench.owner.scale.rows import Rows
from workbench.owner.scale.work import scratch_folder, tasks
from workbench.queries import basis_of
from workbench.randomness import KEY_BYTES
from workbench.spaces import Domain
from workbench.value import Int, sealed

# By user

_PACKED = 2**63


class EdgeCounts(NamedTuple):
    """Counts of what stays of all users, who are bounded by now."""

    domain: Domain
    bound: Bound
    edges: Int[np.ndarray, "items contexts"]
    distinct: bool = False

    def edge_counts(self) -> Int[np.ndarray, "items contexts"]:
        """As those of `Interactions`."""
        return self.edges

    def item_counts(self) -> Int[np.ndarray, " items"]:
        """As those of `Interactions`."""
        return self.edges.sum(axis=1)


class RecordsByUser:
    """Records in scratch files, by user, of which some of each user are counted.

    Which stay of a user follows from a key and from that user's records alone, whoever is in the same
    range, so that sampling in parts is sampling.

    Parameters
    ----------
    dealt : Dealt
        The rows.
    """

    stands_for = Interactions

    def __init__(self, dealt: Dealt):
        self.domain = dealt.rows.domain
        self.bound = UNBOUNDED
        self._dealt = dealt

    def bounded(self, l: int, rng: np.random.Generator | None = None) -> EdgeCounts:  # noqa: E741
        """As `Interactions.bounded`."""
        return self._counted("bounded", (l, cut_key(rng)), {})

    def top_scored(
        self,
        l: int,  # noqa: E741
        scores: Any,
        rng: np.random.Generator | None = None,
        *,
        random: int = 0,
    ) -> EdgeCounts:
        """As `Interactions.top_scored`."""
        return self._counted("top_scored", (l, scores, cut_key(rng)), {"random": random})

    def users_beyond(self, bound: Bound) -> int:
        """As `Interactions.users_beyond`."""
        return sum(self._dealt.of_users(count_users_beyond, bound))

    def _counted(
        self, method: str, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> EdgeCounts:
        edges: Any = 0
        for own in self._dealt.of_users(count_users, method, arguments, options):
            edges = edges + own.edges
        return EdgeCounts(self.domain, own.bound, edges)


def count_users(
    rows: Rows,
    folder: Path,
    segments: Any,
    method: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> EdgeCounts:
    """What `Interactions.method` keeps of a range of users, counted."""
    data = interactions_of(rows, folder, segments)
    kept = getattr(data, method)(*arguments, **options)
    return EdgeCounts(rows.domain, kept.bound, kept.edge_counts())


def count_users_beyond(rows: Rows, folder: Path, segments: Any, bound: Bound) -> int:
    """How many of a range of users have records that cannot all stay within a bound."""
    return interactions_of(rows, folder, segments).users_beyond(bound)


def interactions_of(rows: Rows, folder: Path, segments: Any) -> Interactions:
    """All records of a range of users."""
    own = read_users(rows, folder, segments)
    numbers, keys = _by_user(own.users.numbers, own.keys, rows.domain.size)
    begins = np.diff(numbers, prepend=numbers[:1] - 1) != 0
    codes = np.cumsum(begins) - 1
    contexts = rows.domain.shape[1]
    ids = own.users.ids_of(numbers[begins])
    items = keys // contexts
    return Interactions(
        rows.domain, codes, items, keys - items * contexts, UNBOUNDED, user_ids=ids
    )


def _by_user(
    numbers: Int[np.ndarray, " n"], keys: Int[np.ndarray, " n"], cells: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows in an order that follows from who has what, and from nothing else."""
    if len(numbers):
        lowest = int(numbers.min())
        if (int(numbers.max()) - lowest + 1) * cells <= _PACKED:
            packed = (numbers - lowest) * cells + keys
            packed.sort()
            users = packed // cells
            return users + lowest, packed - users * cells
    order = np.lexsort((keys, numbers))
    return numbers[order], keys[order].astype(np.int64)


# Release

_QUERIES = (LaplaceQueries, GaussianQueries)
_IN_PARTS = (SparseSummary, StabilityHistogram, *_QUERIES, SRA, HPA, LPA)
_NODES_A_CELL = 2  # bits of a range that a tree is narrower by


def release(
    mechanism: Any,
    rows: Rows,
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    ranges: int | None = None,
    scratch: str | Path | None = None,
    rng: np.random.Generator | None = None,
    report_cut: float | None = None,
    progress: Progress | None = None,
    ready: Callable[[], Any] | None = None,
) -> Release:
    """Release what `mechanism(table)` would, from rows that need not fit in memory.

    Rows are dealt out to scratch files by user, if they are to be cut to a bound, and by ranges of keys;
    each range is counted and drawn from on its own. The law is that of one measurement of the whole table,
    and so is the price. Noise of a part follows from a key of that part, so that a task which is tried
    again draws the same noise.

    Parameters
    ----------
    mechanism : Mechanism
        HighPassFilter, ThresholdSampling, PrioritySampling (on cells, `Dyadic()` or `Haar()`),
        StabilityHistogram, LaplaceQueries, GaussianQueries, SRA, HPA or LPA.
    rows : Rows
        What is released.
    executor : Executor, optional
        Where tasks run: threads, processes, or a cluster; it sees private rows and keys, and `scratch` must
        be a folder that all of its workers share.
    workers : int, optional
        So many processes, of which this is one; by default everything is done here, by one.
    ranges : int, optional
        About so many ranges; by default what suits the size of the files.
    scratch : path, optional
        Where a private folder is made for scratch files, which is removed in any case; by default where the
        system has its temporary files. It holds 4 to 32 bytes a row.
    rng : a seeded generator for a release that can be replayed, or None to publish.
    report_cut : float, optional
        ε of how many users lost anything to the bound, which is then released as well.
    progress : callable, optional
        Called with "reading", "users" or "cells" and the share that is done.
    ready : callable, optional
        Called once before the first draw, when all rows were read and none was refused: to spend a budget.

    Returns
    -------
    Release
        As the mechanism makes it of a table.

    Raises
    ------
    ValueError
        A mechanism that needs all cells at once, a row that is refused, with its file and line, or a file
        that changed while it was read.
    OSError
        Scratch files that cannot be written.
    """
    _refuse_unfit(mechanism, rows, report_cut)
    transform = getattr(mechanism, "transform", None)
    most = counting.ROWS >> (_NODES_A_CELL if transform is not None else 0)
    with scratch_folder(scratch) as folder, tasks(executor, workers) as run:
        dealt = Dealt(rows, folder, run, ranges, most, progress, ready)
        cut: Any = dealt
        if isinstance(mechanism, Contributions):
            cut = RecordsByUser(dealt)
            made = mechanism(cut, rng)
        elif isinstance(mechanism, _QUERIES):
            made = mechanism(cut, rng)
        elif isinstance(mechanism, StabilityHistogram):
            made = _stability_histogram(mechanism, dealt, rng)
        else:
            made = _sparse_summary(mechanism, dealt, rng)
        if report_cut is not None:
            made = made.with_users_cut(cut, report_cut, rng)
    return made


def _refuse_unfit(mechanism: Any, rows: Rows, report_cut: float | None) -> None:
    """A ValueError for what is not released in parts, before anything is read."""
    name = type(mechanism).__name__
    if not isinstance(mechanism, _IN_PARTS):
        raise ValueError(f"{name} is not released in parts: {_why_not(mechanism)}")
    if not isinstance(rows, Rows):
        raise ValueError(f"rows = {type(rows).__name__} is not allowed: need Rows")
    if report_cut is not None:
        if rows.user is None:
            raise ValueError("report_cut: need rows with user=, who are cut to a bound")
        refuse_report_cut(report_cut)
    if isinstance(mechanism, Contributions):
        if rows.user is None or not isinstance(rows.bound, Unbounded) or rows.count is not None:
            raise ValueError(
                f"{name} samples the records of each user itself, one a row: need rows with user=, of the "
                "bound UNBOUNDED, and without count="
            )
        if len(rows.domain.shape) != 2:
            raise ValueError(f"{name} needs a domain of two attributes, item and context")
        return
    sensitivity(rows)
    transform = getattr(mechanism, "transform", None)
    if getattr(transform, "dims", 1) > 1:
        raise ValueError(
            f"{name} with transform = {transform!r} is not released in parts: its nodes over two "
            "attributes cross every range of keys"
        )


def _why_not(mechanism: Any) -> str:
    takes = getattr(mechanism, "takes", None)
    if takes is Records:
        return "it refines where records lie, of which each step needs all"
    if takes is Interactions:
        return "it needs the records of all users at once"
    if hasattr(mechanism, "memory"):
        return "it holds every cell of its domain; read a SparseTable and release that"
    return "it needs all cells at once; read a SparseTable and release that"


def _key(rng: np.random.Generator | None) -> bytes | None:
    """From which the keys of parts follow, if they are to be replayed."""
    return None if rng is None else rng.bytes(KEY_BYTES)


class _Asked(NamedTuple):
    """What is asked of a measurement of all nodes."""

    basis: Any
    blocks: list[Any]
    law: Any
    theta: float
    tau: float
    how: dict[str, Any]

    @classmethod
    def of(cls, mechanism: SparseSummary, dealt: Dealt) -> _Asked:
        sensitivity(dealt)
        basis = basis_of(mechanism.transform, dealt.domain)
        blocks = blocks_within(basis, dealt.bound, mechanism.budget)
        theta, tau = mechanism._thresholds(blocks)
        how: dict[str, Any] = {"theta": theta, "sides": mechanism.sides}
        if not mechanism.consistent:
            if isinstance(mechanism, PrioritySampling):
                how["size"] = mechanism.size
            else:
                how["tau"] = tau
        _refuse_large(blocks, theta, mechanism.sides, tau, how.get("size"))
        law = law_within(basis, dealt.bound, mechanism.budget)
        return cls(basis, blocks, law, theta, tau, how)


def _sparse_summary(
    mechanism: SparseSummary, dealt: Dealt, rng: np.random.Generator | None
) -> Release:
    """Noise on the nodes of each range, and on those above, as one measurement."""
    asked = _Asked.of(mechanism, dealt)
    basis, blocks, law, theta, tau, how = asked
    nodes = _NodesInParts(basis, dealt)
    measurement = Measurement(blocks, nodes.ranges, rng=_key(rng), **how)
    draw = nodes.drawing(measurement)
    if "size" in how:
        keys, values, tau, ledger = measurement.priority_sample(draw)
    else:
        keys, values, ledger = measurement.threshold_sample(draw)
    if mechanism.consistent:
        passed = summary_in_basis(basis, keys, values, law, theta, sides=mechanism.sides)
        summary = mechanism._select(passed, theta, tau, rng)
    else:
        summary = summary_in_basis(basis, keys, values, law, theta, tau, mechanism.sides)
    return Release(summary, ledger, mechanism, dealt.bound)


def _refuse_large(
    blocks: Sequence[AnyBlock], theta: float, sides: int, tau: float, size: int | None
) -> None:
    """A ValueError if a table without rows would already release too many nodes."""
    nodes = sum(block.size for block in blocks)
    expected = float(nodes)
    if size is not None:
        expected = min(size, nodes)
    elif sides == 1 or theta > 0 or tau > 0:
        expected = sum(
            b.size * noise.empty_cell(b.law, theta, sides, tau).chance for b in blocks
        )
    noise.check_size(nodes, expected)


def _stability_histogram(
    mechanism: StabilityHistogram, dealt: Dealt, rng: np.random.Generator | None
) -> Release:
    """Noise on the cells of each range that are not empty."""
    theta, parts, receipt = stable_parts(
        dealt.bound, len(dealt.ranges), **mechanism.price, rng=_key(rng)
    )
    pieces = dealt.of_ranges(stable_cells, [(part,) for part in parts])
    keys, values = (sealed(np.concatenate(x)) for x in zip(*pieces, strict=True))
    summary = Summary(dealt.domain, keys, values, None, theta, sides=1)
    return Release(summary, (receipt,), mechanism, dealt.bound)


class _NodesInParts:
    """The nodes of a basis: those of each range of cells, and as a last part all others."""

    def __init__(self, basis: Any, dealt: Dealt):
        self.basis = basis
        self.dealt = dealt
        self.ranges = [basis.within(some.start, some.bits) for some in dealt.ranges]
        above = _gaps(self.ranges, sum(block.size for block in basis.noise_blocks))
        self._has_above = bool(above)
        if above:
            self.ranges.append(above)

    def drawing(self, measurement: Measurement) -> Callable[..., list[Any]]:
        """What `Measurement` calls to have all parts drawn."""

        def draw(function: Callable[..., Any], *arguments: Any) -> list[Any]:
            own = [
                (self.basis, some.bits, part, function, arguments)
                for some, part in zip(self.dealt.ranges, measurement.parts, strict=False)
            ]
            drawn = list(self.dealt.of_ranges(cells.drawn_within, own))
            results = [result for result, _ in drawn]
            if self._has_above:
                totals = np.array([total for _, total in drawn])
                starts = np.array([some.start for some in self.dealt.ranges])
                bits = np.array([some.bits for some in self.dealt.ranges])
                nodes, values = self.basis.forward_above(starts, bits, totals)
                results.append(function(measurement.parts[-1], nodes, values, *arguments))
            return results

        return draw


def _gaps(ranges: Sequence[Sequence[tuple[int, int]]], size: int) -> list[tuple[int, int]]:
    """What is left of so many nodes."""
    taken = sorted(pair for own in ranges for pair in own)
    ends = [0, *(end for pair in taken for end in pair), size]
    gaps = list(pairwise(ends))[::2]
    return [(low, high) for low, high in gaps if high > low]
