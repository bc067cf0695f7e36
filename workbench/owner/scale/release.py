"""Releases from rows that do not fit in memory. The work is done on one core, several cores or a cluster of
machines.
"""

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
    """Counts of the records that are left after each user's records were limited, per pair of an item and a
    context.
    """

    domain: Domain
    bound: Bound | Unbounded | Public
    edges: Int[np.ndarray, "items contexts"]
    distinct: bool = False

    def edge_counts(self) -> Int[np.ndarray, "items contexts"]:
        """Return the number of records for each pair of item and context, like `Interactions.edge_counts`."""
        return self.edges

    def item_counts(self) -> Int[np.ndarray, " items"]:
        """Return the number of records for each item, like `Interactions.item_counts`."""
        return self.edges.sum(axis=1)


class RecordsByUser:
    """Private records in scratch files, divided into groups of users (*ranges*). Mechanisms that keep only
    some records of each user can use this object in place of `Interactions`.

    A secret key and the records of a user determine which records of this user are kept. Other users make no
    difference. So the result is the same if the records of each range are sampled separately.

    Parameters
    ----------
    dealt : Dealt
        Rows, which are divided into scratch files when they are first needed.
    """

    stands_for = Interactions
    bound = UNBOUNDED

    def __init__(self, dealt: Dealt):
        self.domain = dealt.domain
        self._dealt = dealt

    def bounded(self, l: int, rng: np.random.Generator | None = None) -> EdgeCounts:  # noqa: E741
        """Count a random sample of at most l records of each user, like `Interactions.bounded`."""
        return self._counted("bounded", l, cut_key(rng))

    def top_scored(
        self,
        l: int,  # noqa: E741
        scores: Any,
        rng: np.random.Generator | None = None,
        *,
        random: int = 0,
    ) -> EdgeCounts:
        """Count at most l records of each user, those with the highest scores, like
        `Interactions.top_scored`.
        """
        return self._counted("top_scored", l, scores, cut_key(rng), random=random)

    def users_beyond(self, bound: Bound) -> int:
        """Return the number of users who have more records than a bound allows, like
        `Interactions.users_beyond`.
        """
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
    """Call a method of `Interactions` on the records of a range (a group) of users, and count the records
    that the method keeps.
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
    """Run a mechanism on rows that do not fit in memory. The release has the same distribution and the same
    privacy cost as `mechanism(table)`.

    The function divides the cells into ranges, which are blocks of consecutive cells. It writes the rows of
    each range to scratch files. If users are truncated to a bound, the function first collects and truncates
    the rows of each user. One task per range counts the rows of the range, and draws the noise for the cells of
    the range. A random key, which is drawn once, determines the noise of all ranges. So a task that is repeated
    after an error draws the same noise again.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism to run. The class must be HighPassFilter, ThresholdSampling, PrioritySampling,
        StabilityHistogram, LaplaceQueries, GaussianQueries, SRA, HPA or LPA. PrioritySampling must have no
        transform, or the transform `Dyadic()` or `Haar()`.
    rows : Rows
        Private rows, for example from `Rows.read`.
    executor : Executor, optional
        Executor that runs the tasks, for example a pool of processes, or a cluster from `scale.dask.connect`.
        The workers of the executor see private rows and secret keys. All workers must have access to the
        folder `scratch`.
    workers : int
        Number of threads, if you pass no executor. Default 1.
    ranges : int, optional
        Approximate number of ranges into which the cells are divided. Default: the function chooses a number by
        the size of the files.
    scratch : path, optional
        Folder in which a private folder for scratch files is created. The private folder is removed at the end,
        even after an error. Scratch files take 4 to 32 bytes per row. Default: the system's folder for
        temporary files.
    rng : numpy Generator, optional
        Seeded generator, if you want a simulated release with the same noise each time. Leave this argument out
        for a release that you publish.
    report_cut : float, optional
        If you pass an ε here, the release also contains a noisy number of the users whose rows were truncated
        to the bound. This number costs the given ε in addition.
    progress : callable, optional
        Function that is called with the name of the current step ("reading", "users" or "cells") and the
        completed share of this step, from 0 to 1.
    ready : callable, optional
        Function that is called once, after all rows were read without an error and before any noise is drawn.
        In this function, you can spend the cost from a budget.

    Returns
    -------
    Release
        Release in the same form as the result of `mechanism(table)`.

    Raises
    ------
    ValueError
        If the mechanism needs all cells at once, or if a file changed while it was read. The error is also
        raised if a row is invalid. The message then names the file and the line.
    OSError
        If the scratch files cannot be written, for example because the disk is full.
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
    """Raise a ValueError if the release cannot be made separately for ranges of cells or users. This check
    comes before any row is read.
    """
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
