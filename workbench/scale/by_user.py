"""Interactions that need not fit in memory: what mechanisms ask of them, some users after the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Int
from workbench.contributions import cut_key
from workbench.domain import Domain
from workbench.interactions import Interactions
from workbench.scale.cells import Dealt
from workbench.scale.counting import read_users
from workbench.scale.rows import Rows
from workbench.table import UNBOUNDED, Bound

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
