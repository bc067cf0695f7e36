"""Releases from rows that do not fit in memory, on one core, several cores, or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.data import UNBOUNDED, Bound, Interactions, Public, Unbounded, cut_key
from workbench.data.interaction_rows import Columns, sorted_by_user
from workbench.estimates.release import Release, refuse_report_cut
from workbench.mechanisms.contributions import HPA, LPA, SRA, Contributions
from workbench.mechanisms.queries import GaussianQueries, LaplaceQueries
from workbench.mechanisms.summaries import SparseSummary, StabilityHistogram
from workbench.owner.scale import counting
from workbench.owner.scale.counting import Dealt, Progress, read_users
from workbench.owner.scale.rows import Rows
from workbench.owner.scale.spill import Segments
from workbench.owner.scale.work import scratch_folder, tasks
from workbench.spaces import Domain
from workbench.value import Int

# By user


class EdgeCounts(NamedTuple):
    """Counts of the records that are kept after all users were truncated."""

    domain: Domain
    bound: Bound | Unbounded | Public
    edges: Int[np.ndarray, "items contexts"]
    distinct: bool = False

    def edge_counts(self) -> Int[np.ndarray, "items contexts"]:
        """Return the counts of edges, like `Interactions.edge_counts`."""
        return self.edges

    def item_counts(self) -> Int[np.ndarray, " items"]:
        """Return the counts of items, like `Interactions.item_counts`."""
        return self.edges.sum(axis=1)


class RecordsByUser:
    """Records in scratch files, divided by user. Mechanisms count some records of each user.

    Which records of a user are kept depends only on a key and on that user's records. It does not depend on
    other users. Sampling range by range therefore gives the same result as sampling all users together.

    Parameters
    ----------
    dealt : Dealt
        The rows.
    """

    stands_for = Interactions
    bound = UNBOUNDED

    def __init__(self, dealt: Dealt):
        self.domain = dealt.domain
        self._dealt = dealt

    def bounded(self, l: int, rng: np.random.Generator | None = None) -> EdgeCounts:  # noqa: E741
        """Return a random sample of each user's records, like `Interactions.bounded`."""
        return self._counted("bounded", l, cut_key(rng))

    def top_scored(
        self,
        l: int,  # noqa: E741
        scores: Any,
        rng: np.random.Generator | None = None,
        *,
        random: int = 0,
    ) -> EdgeCounts:
        """Return each user's records with the highest scores, like `Interactions.top_scored`."""
        return self._counted("top_scored", l, scores, cut_key(rng), random=random)

    def users_beyond(self, bound: Bound) -> int:
        """Return how many users have more records than a bound allows, like `Interactions.users_beyond`."""
        return sum(self._dealt.of_users(of_records, "users_beyond", (bound,), {}))

    def _counted(self, method: str, *arguments: Any, **options: Any) -> EdgeCounts:
        edges: Any = 0
        for own in self._dealt.of_users(of_records, method, arguments, options):
            edges = edges + own.edges
        return EdgeCounts(self.domain, own.bound, edges)


def of_records(
    rows: Rows,
    folder: Path,
    segments: Sequence[Segments],
    method: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    """Apply a method of `Interactions` to the records of a range of users, and count the records that it
    keeps.
    """
    users, keys, _ = read_users(rows, folder, segments)
    order = np.argsort(keys)  # in which a user's rows were read changes nothing
    items, contexts = np.divmod(keys[order], rows.domain.shape[1])
    codes, ids = sorted_by_user(Columns(users.numbers[order], items, contexts), ids=users.ids)
    data = Interactions(rows.domain, *codes, UNBOUNDED, user_ids=ids)
    result = getattr(data, method)(*arguments, **options)
    if not isinstance(result, Interactions):
        return result
    return EdgeCounts(rows.domain, result.bound, result.edge_counts())


# Release

_QUERIES = (LaplaceQueries, GaussianQueries)
_IN_PARTS = (SparseSummary, StabilityHistogram, *_QUERIES, SRA, HPA, LPA)
_NODES_A_CELL = 2  # bits of a range that a tree is narrower by


def release(
    mechanism: Any,
    rows: Rows,
    *,
    executor: Executor | None = None,
    workers: int = 1,
    ranges: int | None = None,
    scratch: str | Path | None = None,
    rng: np.random.Generator | None = None,
    report_cut: float | None = None,
    progress: Progress | None = None,
    ready: Callable[[], Any] | None = None,
) -> Release:
    """Make the same release as `mechanism(table)`, from rows that do not fit in memory.

    The function divides the rows into scratch files. If users are truncated to a bound, it divides them by
    user first, and then by ranges of keys. It counts each range and draws its noise separately. The
    distribution of the release, and its cost, are those of one measurement of the whole table. Each part
    has a key from which its noise follows, so a task that is repeated draws the same noise.

    Parameters
    ----------
    mechanism : Mechanism
        HighPassFilter, ThresholdSampling, PrioritySampling (on cells, `Dyadic()` or `Haar()`),
        StabilityHistogram, LaplaceQueries, GaussianQueries, SRA, HPA or LPA.
    rows : Rows
        Rows to release.
    executor : Executor, optional
        Executor for tasks: threads, processes, or a cluster. It receives private rows and keys. All of its
        workers must have access to the folder `scratch`.
    workers : int
        Number of threads, used only without an executor. Default 1.
    ranges : int, optional
        Approximate number of ranges. Default: depends on the size of the files.
    scratch : path, optional
        Folder in which a private folder for scratch files is created. It is removed at the end, also after
        errors. Default: the system's folder for temporary files. Scratch files take 4 to 32 bytes per row.
    rng : Seeded generator for a release that can be replayed. None to publish.
    report_cut : float, optional
        ε for the number of users truncated by the bound, which is then released as well.
    progress : callable, optional
        Function that is called with "reading", "users" or "cells" and the completed share.
    ready : callable, optional
        Function that is called once before the first draw, after all rows were read without an error. Use
        it to spend a budget.

    Returns
    -------
    Release
        The same kind of release as `mechanism(table)`.

    Raises
    ------
    ValueError
        If the mechanism needs all cells at once, a row is invalid (the message names file and line), or a
        file changed while it was read.
    OSError
        If scratch files cannot be written.
    """
    transform = getattr(mechanism, "transform", None)
    _refuse_unfit(mechanism, rows, report_cut)
    most = counting.ROWS >> (_NODES_A_CELL if transform is not None else 0)
    with scratch_folder(scratch) as folder, tasks(executor, workers) as run:
        dealt = Dealt(rows, folder, run, most, ranges, progress, ready)
        data = RecordsByUser(dealt) if isinstance(mechanism, Contributions) else dealt
        made: Release = mechanism(data, rng)
        if report_cut is not None:
            made = made.with_users_cut(data, report_cut, rng)
    return made


def _refuse_unfit(mechanism: Any, rows: Rows, report_cut: float | None) -> None:
    """Raise a ValueError for a release that cannot be made in parts, before any row is read."""
    name = type(mechanism).__name__
    if not isinstance(mechanism, _IN_PARTS):
        raise ValueError(
            f"{name} needs all cells, or the records of all users, at once. Read a SparseTable, Records "
            "or Interactions, and release that"
        )
    if report_cut is not None:
        if rows.user is None:
            raise ValueError("report_cut: need rows with user=, whose users are truncated")
        refuse_report_cut(report_cut)
    is_sampled = rows.user is not None and rows.count is None and rows.bound == UNBOUNDED
    if isinstance(mechanism, Contributions) and not is_sampled:
        raise ValueError(
            f"{name} samples the records of each user itself: need one record per row, with user=, with "
            "the bound UNBOUNDED, and without count="
        )
    transform = getattr(mechanism, "transform", None)
    if getattr(transform, "dims", 1) > 1:
        raise ValueError(
            f"{name} with transform = {transform!r} cannot be released in parts, because its nodes over "
            "two attributes cross all ranges of keys"
        )
    mechanism(rows.without_rows())  # whatever it refuses of its own
