"""Records of users as loaders read them: gathered block by block, and sorted by user."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Int
from workbench.domain import Domain
from workbench.interactions import Interactions
from workbench.labelled_rows import LabelledRows
from workbench.table import Bound, Unbounded
from workbench.value import sealed

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Block(NamedTuple):
    """Records of one piece of a file, and the line that each stands on."""

    path: Path
    lines: Int[np.ndarray, " rows"]
    users: Int[np.ndarray, " rows"]
    items: Int[np.ndarray, " rows"]
    contexts: Int[np.ndarray, " rows"]


@dataclass
class UserRecords:
    """Users, items and contexts of rows, and where in which file each row stands."""

    blocks: list[Block] = field(default_factory=list)

    def add(
        self,
        rows: LabelledRows,
        users: Int[np.ndarray, " rows"],
        items: Int[np.ndarray, " rows"],
        contexts: Int[np.ndarray, " rows"],
    ) -> None:
        """One record for each of some rows of a file."""
        lines = rows.lines.astype(np.int32)
        codes = users.astype(np.int32), items.astype(np.int32), contexts.astype(np.uint8)
        self.blocks.append(Block(rows.path, lines, *codes))

    def __len__(self) -> int:
        return sum(len(block.lines) for block in self.blocks)

    def interactions(
        self,
        domain: Domain,
        bound: Bound | Unbounded,
        counts: Int[np.ndarray, " rows"] | None = None,
        *,
        once: bool,
        truth_public: bool,
    ) -> Interactions:
        """The records; with `once`, a user and item that stand in two rows are a ValueError.

        `counts` says how many records each row stands for, in the order in which rows came.
        """
        users = self.column("users", np.int32)
        items = self.column("items", np.int32)
        contexts = self.column("contexts", np.uint8)
        if once:
            pairs = users.astype(np.int64) << 32 | items
            order = np.argsort(pairs, kind="stable")
            repeated = np.flatnonzero(np.diff(pairs[order]) == 0)
            if len(repeated):
                self._refuse_repeated(domain, int(order[repeated + 1].min()))
        else:
            order = np.argsort(users, kind="stable")
        if counts is not None:
            order = np.repeat(order, counts[order])
        if domain.shape[0] <= 2**16:
            items = items.astype(np.uint16)
        columns = [sealed(column[order]) for column in (users, items, contexts)]
        how: dict[str, Any] = dict(truth_public=truth_public, distinct=once and counts is None)
        return Interactions(domain, columns[0], columns[1], columns[2], bound, **how)

    def column(self, name: str, dtype: type) -> Int[np.ndarray, " records"]:
        """The users, items or contexts of all rows, in the order in which rows came."""
        return np.concatenate(
            [np.empty(0, dtype), *(getattr(block, name) for block in self.blocks)]
        )

    def _refuse_repeated(self, domain: Domain, row: int) -> None:
        for block in self.blocks:
            if row < len(block.lines):
                item = domain.decode("item", block.items[row : row + 1])[0]
                raise ValueError(
                    f"{block.path}, line {block.lines[row]}: found item {item} of user "
                    f"{block.users[row]} a second time, need one record at most of a user and item"
                )
            row -= len(block.lines)
