"""Which of the waiting notebooks starts next: the longest first, while there is room for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from workbench.reproduction.settings import Task


@dataclass(eq=False)
class Job:
    """A task that waits or runs, and what is known of it from its last run.

    `alone` runs beside nothing; `seconds` and `memory`, in bytes, are what it took last time; `patient`
    waits for another process that works on the figure, instead of letting others go first.
    """

    task: Task
    alone: bool = False
    seconds: float | None = None
    memory: int = 0
    patient: bool = False


def in_order(jobs: Sequence[Job]) -> list[Job]:
    """The longest first, before them those of which nothing is known; what runs alone comes last."""
    unknown = float("inf")
    return sorted(jobs, key=lambda job: (job.alone, -(job.seconds or unknown)))


def next_job(
    waiting: Sequence[Job], running: Collection[Job], workers: int, ceiling: float
) -> Job | None:
    """The first that may start now; None while there is no room.

    Parameters
    ----------
    waiting : sequence of Job
        In their order.
    running : collection of Job
        What runs now.
    workers : int
        How many may run at once.
    ceiling : float
        Bytes of memory that all may take together; one alone always starts.
    """
    if not running:
        return waiting[0] if waiting else None
    if len(running) >= workers or any(job.alone for job in running):
        return None
    taken = sum(job.memory for job in running)
    fitting = (job for job in waiting if not job.alone and taken + job.memory <= ceiling)
    return next(fitting, None)
