"""Interactions: the records of users, each an item in a context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from workbench.data import interaction_kernels
from workbench.data.interaction_rows import (
    Columns,
    UserRecords,
    crossed,
    narrowest_type,
    records_of_rows,
    sorted_by_user,
)
from workbench.data.reading import Progress
from workbench.data.sampling import (
    OfUsers,
    refuse_other_attributes,
    refuse_outside,
    refuse_wrong_codes,
    refuse_wrong_columns,
)
from workbench.data.table import PUBLIC, Bound, Public, SparseTable, Unbounded
from workbench.data.users import UserNumbers, Users
from workbench.queries import Recipe
from workbench.spaces import Domain
from workbench.value import Float, Int, UInt64, not_allowed, read_only, sealed


@dataclass(frozen=True, eq=False)
class Interactions(OfUsers):
    """Records (user, item, context), sorted by user. A unit is a user with all their records.

    Methods that sample the records truncate users to a stated bound. They believe no bound that they have
    not enforced or checked.

    Parameters
    ----------
    domain : Domain
        Two attributes, items and contexts, which are public.
    users : int[records]
        Codes >= 0 in ascending order. Which of them occur is private.
    items, contexts : int[records]
        Codes of the domain's first and second attribute.
    bound : Bound, UNBOUNDED or PUBLIC
        How far one user moves the edge counts (records of an item in a context). Bound(M, 1) if a user
        has at most M records and no item twice, Bound(M, M, M) if items may repeat, `UNBOUNDED` if
        nobody counted, and `PUBLIC` if nothing is left to protect. No default.
    truth_public : bool
        Whether exact counts may be shown next to a release.
    distinct : bool
        Whether no user has an item twice, which is checked.
    user_ids : uint64[users, 2], optional
        Identifier of the user of each code (`UserNumbers.ids`). By default the code itself.
    attributes : Domain, optional
        Attributes that items and contexts are crossed from, in the order of the edges' keys.

    Raises
    ------
    ValueError
        If columns have another length or type, codes are outside the domain, users are out of order, the
        bound is missing, or a user has an item twice although `distinct` is set.
    """

    domain: Domain
    users: Int[np.ndarray, " records"]
    items: Int[np.ndarray, " records"]
    contexts: Int[np.ndarray, " records"]
    bound: Bound | Unbounded | Public
    truth_public: bool = False
    distinct: bool = False
    user_ids: UInt64[np.ndarray, "users 2"] | None = field(default=None, repr=False)
    attributes: Domain | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.bound, Bound | Unbounded | Public):
            need = (
                "need Bound(l0, linf), how far one user moves the edge counts, UNBOUNDED, or "
            )
            raise not_allowed(self, "bound", f"{need}PUBLIC")
        refuse_other_attributes(self.domain)
        for name in ("users", "items", "contexts"):
            column = getattr(self, name)
            is_column = column.ndim == 1 and column.shape == self.users.shape
            if not is_column or column.dtype.kind not in "iu":
                raise ValueError(
                    f"Interactions.{name} of {column.dtype} {column.shape} is not allowed: need whole "
                    f"numbers, {len(self.users)} of them"
                )
            object.__setattr__(self, name, read_only(column))
        if len(self):
            refuse_wrong_codes(self)

    @classmethod
    def from_codes(
        cls,
        domain: Domain,
        users: Int[np.ndarray, " records"],
        items: Int[np.ndarray, " records"],
        contexts: Int[np.ndarray, " records"],
        bound: Bound | Unbounded | Public,
        *,
        truth_public: bool = False,
    ) -> Interactions:
        """Make interactions from columns in any order.

        Parameters
        ----------
        domain : Domain
            Two attributes, items and contexts.
        users : int[records]
            Any integers. Records of one user keep their order.
        items, contexts : int[records]
            Codes of the domain.
        bound : Bound, UNBOUNDED or PUBLIC
            How far one user moves the edge counts.
        truth_public : bool
            Whether exact counts may be shown.

        Returns
        -------
        Interactions
            Sorted by user, in narrow types.

        Raises
        ------
        ValueError
            If a column does not hold integers, or a code is outside the domain. The message names its row.

        Examples
        --------
        >>> domain = Domain(("film", "day"), (5, 7))
        >>> Interactions.from_codes(domain, [9, 4, 9], [0, 1, 4], [6, 6, 0], Bound(2)).items
        array([1, 0, 4], dtype=uint8)
        """
        refuse_other_attributes(domain)
        columns = [np.asarray(column) for column in (users, items, contexts)]
        columns = [column if len(column) else column.astype(np.int64) for column in columns]
        refuse_wrong_columns(Columns(*columns))
        for axis, name in enumerate(domain.attributes):
            size = domain.shape[axis]
            refuse_outside(f"column {name!r}", columns[1 + axis], size)
            columns[1 + axis] = columns[1 + axis].astype(narrowest_type(size), copy=False)
        return cls._of(domain, sorted_by_user(Columns(*columns)), bound, truth_public)

    @classmethod
    def _of(
        cls,
        domain: Domain,
        records: UserRecords,
        bound: Bound | Unbounded | Public,
        truth_public: bool,
        attributes: Domain | None = None,
    ) -> Interactions:
        ids = records.ids
        made = cls(domain, *records.columns, bound, truth_public, user_ids=ids)
        return made if attributes is None else replace(made, attributes=attributes)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str,
        item: str | Sequence[str],
        context: str | Sequence[str],
        domain: Domain,
        bound: Bound | Unbounded | Public,
        truth_public: bool = False,
        user_type: str | None = None,
    ) -> Interactions:
        """Make interactions from a DataFrame with one row per record, by naming its columns.

        Items and contexts may be several columns each, which are crossed. An item is then a combination of
        labels, for example an origin and a destination.

        Parameters
        ----------
        frame : pandas.DataFrame or polars.DataFrame
            One row per record.
        user, item, context : str
            Names of columns. Users are values of any kind. Items and contexts may be tuples of names, and
            () as context means one context for all.
        domain : Domain
            Two attributes, for the items and for the contexts. It is public and never learnt from data.
            If names are tuples, or the domain has a preparation, they name its attributes, and other
            columns are not read.
        bound : Bound, UNBOUNDED or PUBLIC
            How far one user moves the edge counts.
        truth_public : bool
            Exact counts may be shown.
        user_type : "text", optional
            Read users as text, as in `SparseTable.from_frame`.

        Returns
        -------
        Interactions

        Raises
        ------
        ValueError
            If a column is missing, or a value is missing or outside the domain. The message names its
            column and row.
        """
        people = UserNumbers(user, user_type)
        return cls._of_rows(frame, people, item, context, domain, bound, truth_public)

    @classmethod
    def _of_rows(
        cls,
        data: Any,
        people: UserNumbers,
        item: str | Sequence[str],
        context: str | Sequence[str],
        domain: Domain,
        bound: Bound | Unbounded | Public,
        truth_public: bool,
        **how: Any,
    ) -> Interactions:
        """From rows of any source, with attributes of the domain crossed to items and to contexts."""
        if isinstance(item, str) and isinstance(context, str) and domain.preparation is None:
            refuse_other_attributes(domain)
            rules = {
                name: replace(rule, column=column)
                for (name, rule), column in zip(
                    domain.rules.items(), (item, context), strict=True
                )
            }
            records = records_of_rows(data, people, domain, Domain.from_dict(rules), **how)
            return cls._of(domain, records, bound, truth_public)
        items = (item,) if isinstance(item, str) else tuple(item)
        contexts = (context,) if isinstance(context, str) else tuple(context)
        both = crossed(domain, items, contexts)
        attributes = domain.project([*items, *contexts])
        records = records_of_rows(data, people, both, attributes, **how)
        return cls._of(both, records, bound, truth_public, attributes)

    @classmethod
    def read(
        cls,
        path: Any,
        *,
        user: str,
        domain: Domain,
        bound: Bound | Unbounded | Public,
        item: str | Sequence[str] | None = None,
        context: str | Sequence[str] | None = None,
        truth_public: bool = False,
        user_type: str | None = None,
        table: str | None = None,
        progress: Progress | None = None,
    ) -> Interactions:
        """Read interactions from files or a frame, as `SparseTable.read` takes them, in batches.

        Parameters
        ----------
        path : path, several, or a frame
            One row per record, with the columns that the domain is prepared from.
        user, domain, bound, truth_public, user_type
            As in `from_frame`.
        item, context : str or tuple of str, optional
            Attributes of the domain, as in `from_frame`; its first, and its second.
        table, progress
            As in `SparseTable.read`.

        Returns
        -------
        Interactions

        Raises
        ------
        ValueError
            If a file cannot be read, a column is missing, or a value is missing or outside the domain. The
            message names its column and row.
        """
        if item is None and context is None:
            refuse_other_attributes(domain)
            item, context = domain.attributes
        if item is None or context is None:
            raise ValueError("item and context: need both, or neither")
        if user in domain.columns:
            raise ValueError(f"column {user!r} cannot be the user and what the user has")
        how = {"table": table, "progress": progress}
        people = UserNumbers(user, user_type)
        return cls._of_rows(path, people, item, context, domain, bound, truth_public, **how)

    def __repr__(self) -> str:
        names = " × ".join(self.domain.attributes)
        sizes = " × ".join(f"{size:,}" for size in self.domain.shape)
        text = f"{names} ({sizes})"
        if self.truth_public or self.bound is PUBLIC:
            text += f": {len(self):,} records of {len(self._starts) - 1:,} users"
        return f"<Interactions {text}, {self.bound!r}>"

    @cached_property
    def _edge_counts(self) -> Int[np.ndarray, "items contexts"]:
        counts = np.zeros(self.domain.shape, np.int64)
        interaction_kernels.count_edges(self.items, self.contexts, counts)
        return sealed(counts)

    def edge_counts(self) -> Int[np.ndarray, "items contexts"]:
        """Return the number of records per item and context."""
        return self._edge_counts

    def table(
        self,
        bound: Bound | Public,
        rng: np.random.Generator | None = None,
        *,
        key: bytes | None = None,
    ) -> SparseTable:
        """Return the edges as a table, in which each user is truncated to a bound.

        Parameters
        ----------
        bound : Bound or PUBLIC
            How far a user may move the table. PUBLIC if these interactions are public.
        rng, key : numpy Generator or 32 bytes, optional
            As in `SparseTable.from_keys`.

        Returns
        -------
        SparseTable
            Over items × contexts, or over the attributes that they were crossed from.

        Raises
        ------
        ValueError
            If public interactions get a bound, or private ones PUBLIC.
        """
        if (bound is PUBLIC) != (self.bound is PUBLIC):
            raise ValueError(f"{bound!r} is not allowed: these interactions are {self.bound!r}")
        domain = self.attributes or self.domain
        keys = self.items.astype(np.int64) * self.domain.shape[1] + self.contexts
        users = None if bound is PUBLIC else Users(self.users, self.user_ids)
        return SparseTable.from_keys(
            domain,
            keys,
            None,
            bound,
            truth_public=self.truth_public,
            users=users,
            rng=rng,
            key=key,
        )

    def item_counts(self) -> Int[np.ndarray, " items"]:
        """Return the number of records per item."""
        return self._edge_counts.sum(axis=1)

    def answer(self, workload: Recipe, of: str = "edges") -> Float[np.ndarray, " queries"]:
        """Return the exact answers, in records.

        Parameters
        ----------
        workload : Workload
            Queries over the domain, or over its items alone.
        of : "edges" or "items"
            What the queries count. Edges are cells of the domain.

        Returns
        -------
        float[queries]

        Raises
        ------
        ValueError
            If `of` is neither.
        """
        if of not in ("edges", "items"):
            raise ValueError(f"of = {of!r} is not allowed: need 'edges' or 'items'")
        if of == "edges":
            domain = self.domain
            counts = self.edge_counts().ravel()
        else:
            domain = self.domain.project(self.domain.attributes[:1])
            counts = self.item_counts()
        keys = np.flatnonzero(counts)
        return workload.on(domain).sums(domain, keys, counts[keys])
