"""Records as loaders find them, gathered block by block and sorted by user."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from workbench.datasets.delimited import Block
from workbench.domain import Domain
from workbench.table import Bound, Unbounded
from workbench.value import sealed

if TYPE_CHECKING:
    from workbench.interactions import Interactions


@dataclass
class UserRecords:
    """Users, items and contexts of rows, and where in which file each row stands."""

    blocks: list[tuple[Path, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = field(
        default_factory=list
    )

    def add(
        self,
        block: Block,
        users: Int[np.ndarray, " rows"],
        items: Int[np.ndarray, " rows"],
        contexts: Int[np.ndarray, " rows"],
    ) -> None:
        """Some rows more, of a block of a file."""
        lines = block.lines.astype(np.int32)
        kept = users.astype(np.int32), items.astype(np.int32), contexts.astype(np.uint8)
        self.blocks.append((block.path, lines, *kept))

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
        from workbench.interactions import Interactions

        none = np.empty(0, np.int32)
        users = np.concatenate([none, *(block[2] for block in self.blocks)])
        items = np.concatenate([none, *(block[3] for block in self.blocks)])
        contexts = np.concatenate([none.astype(np.uint8), *(block[4] for block in self.blocks)])
        if once:
            pairs = users.astype(np.int64) << 32 | items
            order = np.argsort(pairs, kind="stable")
            twice = np.flatnonzero(np.diff(pairs[order]) == 0)
            if len(twice):
                self._refuse(domain, int(order[twice + 1].min()))
        else:
            order = np.argsort(users, kind="stable")
        if counts is not None:
            order = np.repeat(order, counts[order])
        if domain.shape[0] <= 2**16:
            items = items.astype(np.uint16)
        kept = (sealed(column[order]) for column in (users, items, contexts))
        return Interactions(domain, *kept, bound, truth_public, once and counts is None)

    def _refuse(self, domain: Domain, row: int) -> None:
        for path, lines, users, items, _ in self.blocks:
            if row < len(lines):
                item = domain.decode("item", items[row : row + 1])[0]
                raise ValueError(
                    f"{path}, line {lines[row]}: found item {item} of user {users[row]} a second "
                    "time, need one record at most of a user and item"
                )
            row -= len(lines)
