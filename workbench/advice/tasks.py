"""Advice about a task: what to release for it, and how far off it will be, before any budget is spent.

No data is read. What noise does to answers is computed exactly, from a release of a table without a
record: it does not depend on what a table holds. What depends on it is either computed from stated
beliefs, or simulated on made-up data, and every line says which.
"""

from workbench.advice.answers import (
    advise_boxes,
    advise_marginals,
    advise_per_user,
    advise_rows,
)
from workbench.advice.counts import (
    advise_degrees,
    advise_records,
    advise_top,
    advise_users,
    highest_empty,
    sampled_item_error,
    smallest_gap,
)
from workbench.advice.task import TaskAdvice, TaskOption

__all__ = [
    "TaskAdvice",
    "TaskOption",
    "advise_boxes",
    "advise_degrees",
    "advise_marginals",
    "advise_per_user",
    "advise_records",
    "advise_rows",
    "advise_top",
    "advise_users",
    "highest_empty",
    "sampled_item_error",
    "smallest_gap",
]
