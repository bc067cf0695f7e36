"""Private tables over domains with too many cells to number them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import numpy as np

from workbench.data.cells import LARGEST_TOTAL, whole_counts
from workbench.data.reading import Progress, counted_rows
from workbench.data.table import Bound, Public, SparseTable
from workbench.data.truncation import bounded_contributions
from workbench.data.users import UserNumbers, Users, cut_key, refuse_cut_of_nobody, users_of
from workbench.queries import Recipe, linear_queries
from workbench.spaces import Domain
from workbench.value import Float, Int, sealed


@dataclass(frozen=True, eq=False)
class WideTable:
    """Counts over a domain of more than 2⁶³ cells, of its non-empty cells.

    Cells have no number here, so mechanisms that go through a whole domain refuse the table.
    `LaplaceQueries`, `GaussianQueries` and sessions answer queries about some of its attributes, such as
    `Marginals(2)`, and every mechanism takes `project(attributes)`.

    Parameters
    ----------
    domain : Domain
        All possible cells. They are public.
    words : int64[parts, cells]
        A key of each cell in every part of `domain.parts`. Cells are sorted and distinct.
    counts : int64[cells]
        At least 1. Their sum is at most 2⁵³.
    bound : Bound or PUBLIC
        How far one unit moves the counts, or that nothing is left to protect. No default.
    truth_public : bool
        Whether exact counts may be shown next to a release.
    users_cut : int, optional
        Number of users who lost anything to an enforced bound. It is private, as counts are.
    """

    domain: Domain
    words: Int[np.ndarray, "parts cells"]
    counts: Int[np.ndarray, " cells"]
    bound: Bound | Public
    truth_public: bool = False
    users_cut: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.domain.is_wide:
            raise ValueError("this domain is not wide: need a SparseTable")
        if not isinstance(self.bound, Bound | Public):
            raise ValueError(
                "WideTable.bound is missing: need Bound(l0, linf), how far one unit moves the table, or "
                "PUBLIC"
            )

    @classmethod
    def from_codes(
        cls,
        domain: Domain,
        codes: Int[np.ndarray, "rows attributes"],
        bound: Bound | Public,
        *,
        counts: Any = None,
        truth_public: bool = False,
        users: Any = None,
        user_type: str | None = None,
        rng: np.random.Generator | None = None,
        key: bytes | None = None,
    ) -> WideTable:
        """Count rows, given as a code for each attribute.

        Parameters
        ----------
        domain : Domain
            All possible cells.
        codes : int[rows, attributes]
            Codes of the domain, from 0. Rows of the same cell add up.
        bound : Bound or PUBLIC
            How far one unit moves the counts.
        counts : int[rows], optional
            What each row counts. By default 1.
        truth_public, users, user_type, rng, key
            As in `SparseTable.from_keys`.

        Returns
        -------
        WideTable

        Raises
        ------
        ValueError
            A code outside its attribute, or counts or users that do not fit the rows.
        """
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(domain.shape):
            raise ValueError(
                f"codes of shape {codes.shape} do not fit {len(domain.shape)} attributes"
            )
        ends = [*accumulate(len(part.shape) for part in domain.parts)]
        own = np.split(codes, ends[:-1], axis=1)
        words = np.stack([part.keys(x) for part, x in zip(domain.parts, own, strict=True)])
        weights = np.ones(len(codes), np.int64) if counts is None else whole_counts(counts)
        people = None if users is None else users_of(users, user_type)
        return cls._of_rows(domain, words, weights, bound, truth_public, people, rng, key)

    @classmethod
    def read(
        cls,
        path: Any,
        domain: Domain,
        bound: Bound | Public,
        *,
        count: str | None = None,
        table: str | None = None,
        truth_public: bool = False,
        user: str | None = None,
        user_type: str | None = None,
        rng: np.random.Generator | None = None,
        key: bytes | None = None,
        progress: Progress | None = None,
    ) -> WideTable:
        """Count the rows of files or of a frame.

        Parameters
        ----------
        path : path, several, or a frame
            As `SparseTable.read` and `from_frame` take them.
        domain, bound, count, table, truth_public, user, user_type, rng, key, progress
            As in `SparseTable.read`.

        Returns
        -------
        WideTable

        Raises
        ------
        ValueError
            A file that cannot be read, a column that is missing or there twice, or a value that is
            missing or outside the domain, with its file, line and column.
        """
        column = None if user is None else UserNumbers(user, user_type)
        rows = [
            *counted_rows(
                path, domain, count=count, users=column, table=table, progress=progress
            )
        ]
        words = np.concatenate(
            [np.zeros((len(domain.parts), 0), np.int64), *(batch.keys for batch in rows)],
            axis=1,
        )
        weights = np.ones(words.shape[1], np.int64)
        if count is not None:
            weights = np.concatenate([weights[:0], *(batch.counts for batch in rows)])
        people = None
        if column is not None:
            numbers = [batch.users for batch in rows if batch.users is not None]
            people = column.users(np.concatenate([np.zeros(0, np.int64), *numbers]))
        return cls._of_rows(domain, words, weights, bound, truth_public, people, rng, key)

    @classmethod
    def _of_rows(
        cls,
        domain: Domain,
        words: Int[np.ndarray, "parts rows"],
        counts: Int[np.ndarray, " rows"],
        bound: Any,
        truth_public: bool,
        users: Users | None,
        rng: np.random.Generator | None,
        key: bytes | None,
    ) -> WideTable:
        """Sum rows by cell, after each user is truncated to the bound if users are named.

        Cells are numbered in the order of their codes. A user's cells are therefore in the same order
        whoever else is in the table, and what stays of a user depends on that user alone.
        """
        if words.shape[1] != len(counts):
            raise ValueError(f"{words.shape[1]} rows do not fit {len(counts)} counts")
        if counts.sum(dtype=float) > LARGEST_TOTAL:
            raise ValueError(f"counts must sum to at most {LARGEST_TOTAL}")
        order = np.lexsort(words[::-1])
        ordered = words[:, order]
        begins = np.ones(len(order), bool)
        begins[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
        cells = np.empty(len(order), np.int64)
        cells[order] = np.cumsum(begins) - 1
        lost = None
        if users is None:
            refuse_cut_of_nobody(rng, key)
        else:
            if len(users.numbers) != len(counts):
                raise ValueError(f"{len(counts)} rows do not fit {len(users.numbers)} users")
            kept = bounded_contributions(users, cells, counts, bound, cut_key(rng, key))
            cells, counts, bound = kept.keys, kept.counts, bound.enforced(users.who)
            lost = int(kept.lost.sum())
        totals = np.zeros(int(begins.sum()), np.int64)
        np.add.at(totals, cells, counts)
        left = ordered[:, begins][:, totals > 0]
        return cls(domain, sealed(left), sealed(totals[totals > 0]), bound, truth_public, lost)

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        return f"<WideTable of {len(self.domain.shape)} attributes, {self.bound!r}>"

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return int(self.counts.sum())

    @property
    def keys(self) -> None:
        """Refused: the domain has too many cells for keys."""
        self.domain.refuse_wide()

    def answer(self, workload: Recipe) -> Float[np.ndarray, " queries"]:
        """Return the exact answers to linear queries, in counts."""
        return linear_queries(workload, self.domain).sums(self.domain, self.words, self.counts)

    def grid_units(self, workload: Any, grid: float) -> Int[np.ndarray, " queries"]:
        """Return the exact answers in steps of a grid, as `SparseTable.grid_units` does."""
        return workload.grid_units(self.domain, self.words, self.counts, grid)

    def project(self, attributes: Sequence[str]) -> SparseTable | WideTable:
        """The marginal on `attributes`: a unit's cells may fall together, its l1 stays.

        Parameters
        ----------
        attributes : sequence of str
            Attributes of the domain, in the order of the marginal's.

        Returns
        -------
        SparseTable or WideTable
            A WideTable if these attributes have more than 2⁶³ cells, too.
        """
        domain = self.domain.project(attributes)
        codes = np.stack([self.domain.column(self.words, name) for name in attributes], axis=1)
        bound = self.bound
        if isinstance(bound, Bound):
            bound = replace(bound, l0=min(bound.l0, domain.size), linf=bound.l1)
        made: SparseTable | WideTable
        if domain.is_wide:
            made = WideTable.from_codes(domain, codes, bound, counts=self.counts)
        else:
            made = SparseTable.from_keys(domain, domain.keys(codes), self.counts, bound)
        return replace(made, truth_public=self.truth_public, users_cut=self.users_cut)
