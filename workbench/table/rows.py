"""Rows to cells: all that are counted, or what stays of each user."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from workbench.arrays import Int
from workbench.cell_counts import CellCounts, cells_of_counts, whole_counts
from workbench.contributions import (
    UserNumbers,
    Users,
    bounded_contributions,
    cut_key,
    refuse_cut_of_nobody,
)
from workbench.domain import Domain
from workbench.reading import all_rows, counted_rows
from workbench.table.bound import Bound, Public
from workbench.value import sealed


class Cells(NamedTuple):
    """Keys that are sorted, and their counts."""

    keys: Int[np.ndarray, " cells"]
    counts: Int[np.ndarray, " cells"]


class Kept(NamedTuple):
    """Cells, the bound that holds of them, and how many users lost anything to it."""

    cells: Cells
    bound: Bound | Public
    users_cut: int | None = None


def cut_cells(users: Users, keys: Any, counts: Any, bound: Any, key: bytes) -> Kept:
    """The sum of what stays of each user."""
    counts = None if counts is None else whole_counts(counts)
    sizes = {len(keys), len(users.numbers), len(keys if counts is None else counts)}
    if len(sizes) > 1:
        raise ValueError(f"keys, counts and users of lengths {sizes} do not fit each other")
    left = bounded_contributions(users, keys, counts, bound, key)
    keys, counts = cells_of_counts(left.keys, left.counts)
    cells = Cells(sealed(keys), sealed(counts))
    return Kept(cells, bound.enforced(users.who), int(left.lost.sum()))


def cells_of_rows(
    data: Any,
    domain: Domain,
    bound: Any,
    user: str | None,
    user_type: str | None,
    rng: Any,
    key: bytes | None,
    **how: Any,
) -> Kept:
    """Of a frame or file, a batch of rows at a time."""
    if user is None:
        refuse_cut_of_nobody(rng, key)
        counted = CellCounts()
        for rows in counted_rows(data, domain, **how):
            counted.add(rows.keys, rows.counts)
        keys, counts = counted.cells()
        return Kept(Cells(sealed(keys), sealed(counts)), bound)
    column = UserNumbers(user, user_type)
    rows = all_rows(counted_rows(data, domain, users=column, **how))
    users = column.users(cast(np.ndarray, rows.users))
    return cut_cells(users, rows.keys, rows.counts, bound, cut_key(rng, key))
