"""What stays of each user: some records at random, or those that score highest; and pairs of them."""

from __future__ import annotations

from dataclasses import Field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from workbench.arrays import Int, Num, UInt64
from workbench.contributions import Users
from workbench.domain import Domain
from workbench.interactions import sampling
from workbench.interactions.checks import MOST_RECORDS, whole_number
from workbench.interactions.reading import Columns
from workbench.table import PUBLIC, Bound, Public, SparseTable, Unbounded
from workbench.value import sealed


class OfUsers:
    """Records sorted by user, of which each user keeps some: the half of `Interactions` that samples."""

    domain: Domain
    users: Int[np.ndarray, " records"]
    items: Int[np.ndarray, " records"]
    contexts: Int[np.ndarray, " records"]
    bound: Bound | Unbounded | Public
    truth_public: bool
    distinct: bool
    user_ids: UInt64[np.ndarray, "users 2"] | None
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __len__(self) -> int:
        return len(self.users)

    @property
    def _columns(self) -> Columns:
        return Columns(self.users, self.items, self.contexts)

    def _draws(self, rng: np.random.Generator | bytes | None) -> sampling.Draws:
        """Where the choice of what stays of each user comes from."""
        codes = self.users[self._starts[:-1]]
        return sampling.Draws(rng, Users(codes, self.user_ids).ids_of(codes))

    @cached_property
    def _starts(self) -> Int[np.ndarray, " users+1"]:
        """Where each user's records start, and the end."""
        if not len(self):
            return np.zeros(1, np.int64)
        first = np.flatnonzero(self.users[1:] != self.users[:-1]) + 1
        return np.concatenate([[0], first, [len(self)]])

    def records_per_user(self) -> Int[np.ndarray, " users"]:
        """How many records each user has, in the order of their codes, of users with any."""
        return np.diff(self._starts)

    def bounded(
        self,
        l: int,  # noqa: E741
        rng: np.random.Generator | bytes | None = None,
    ) -> Self:
        """At most `l` records of each user: all, or l of them at random without replacement.

        Every l of a user's records are equally likely, and users are independent of each other.

        Parameters
        ----------
        l : int
            Records of a user, at least 1; a smaller stated bound holds.
        rng : numpy Generator or 32 bytes, optional
            Randomness that can be replayed; without it, that of the operating system. A key chooses for
            each user alone, whoever else is there.

        Returns
        -------
        Interactions
            With the bound that now holds.

        Raises
        ------
        ValueError
            `l` is no whole number >= 1, or `rng` no generator.
        """
        limit = self._limit(whole_number("l", l))
        sample = sampling.sample_records(
            self._columns, self._starts, min(limit, MOST_RECORDS), self._draws(rng)
        )
        return self._sampled(sample, limit, self.distinct)

    def users_beyond(self, bound: Bound) -> int:
        """How many users have records that cannot all stay within a bound; private, as counts are.

        Whether one does depends on nobody else: one user more or less moves it by one at most.

        Parameters
        ----------
        bound : Bound
            Of edge counts: at most l1 records of a user; where linf is 1, no item twice.

        Returns
        -------
        int
        """
        records = self.records_per_user()
        beyond = records > bound.l1
        if bound.linf == 1 and not self.distinct and len(self):
            sizes = self.domain.shape[0]
            owners = np.repeat(np.arange(len(records)), records)
            different = np.unique(owners * sizes + self.items) // sizes
            beyond |= np.bincount(different, minlength=len(records)) < records
        return int(beyond.sum())

    def one_per_item(self, rng: np.random.Generator | None = None) -> Self:
        """One record of each user and item: where there are several, one at random.

        Parameters
        ----------
        rng : numpy Generator, optional
            As in `bounded`.

        Returns
        -------
        Interactions
            Distinct, and cut to the stated bound.
        """
        items = self.domain.shape[0]
        sample = self._columns
        if not self.distinct:
            sample = sampling.one_per_item(sample, self._starts, items, self._draws(rng))
        distinct = self._sampled(sample, items, distinct=True)
        most = self._most_records
        return distinct if most is None else distinct.bounded(min(most, items), rng)

    def top_scored(
        self,
        l: int,  # noqa: E741
        scores: Num[np.ndarray, " items"],
        rng: np.random.Generator | bytes | None = None,
        *,
        random: int = 0,
    ) -> Self:
        """The `l` records of each user whose items have the highest scores, ties at random.

        Parameters
        ----------
        l : int
            Records of a user, at least 1.
        scores : numbers[items]
            Public, one an item.
        rng : numpy Generator, optional
            As in `bounded`.
        random : int
            So many of the l are drawn from all records of the user first, and the others are the
            highest of what is left; 0 to l.

        Returns
        -------
        Interactions
            With the bound that now holds.

        Raises
        ------
        ValueError
            `l` or `random` out of range, scores that are not a number for each item.
        """
        l = whole_number("l", l)  # noqa: E741
        scores = np.asarray(scores)
        random = min(whole_number("random", random, 0, l), MOST_RECORDS)
        if scores.shape != self.domain.shape[:1] or scores.dtype.kind not in "iufb":
            raise ValueError(
                f"scores of {scores.dtype} {scores.shape} are not allowed: need {self.domain.shape[0]} "
                "numbers, one an item"
            )
        if scores.dtype.kind == "f" and np.isnan(scores).any():
            raise ValueError(f"scores: that of item {int(np.isnan(scores).argmax())} is NaN")
        limit = self._limit(l)
        records = min(limit, MOST_RECORDS)
        sample = sampling.top_scored(
            self._columns, self._starts, records, min(random, records), scores, self._draws(rng)
        )
        return self._sampled(sample, limit, self.distinct)

    def pairs(self, rng: np.random.Generator | None = None) -> SparseTable:
        """Item–item edges: how many pairs of records of one user fall on each pair of items.

        Pairs are unordered: the smaller code stands first, and two records of one item meet on the
        diagonal. A user with l records makes l(l−1)/2 pairs, which is how far they move the table:
        any mechanism on sparse tables releases it. Bound the users first: memory is 8 bytes a pair.
        Whoever has more records than the bound says is cut at random.

        Parameters
        ----------
        rng : numpy Generator, optional
            As in `bounded`.

        Returns
        -------
        SparseTable
            Over item × other item, in pairs.

        Raises
        ------
        ValueError
            Without a bound of at least 2 records a user.
        """
        most = self._most_records
        bound: Bound | Public = PUBLIC
        if self.bound is not PUBLIC:
            if most is None or most < 2:
                raise ValueError(
                    f"pairs need users with at most l >= 2 records, but the bound is {self.bound!r}: "
                    "l(l-1)/2 pairs are what one user can change; use bounded(l)"
                )
            bound = _records_bound(most * (most - 1) // 2, self.distinct)
        if most is not None and self.records_per_user().max(initial=0) > most:
            return self.bounded(most, rng).pairs()
        name = self.domain.attributes[0]
        size = self.domain.shape[0]
        labels = self.domain.labels and self.domain.labels[:1] * 2
        domain = Domain((name, f"other {name}"), (size, size), labels)
        cells = sampling.count_item_pairs(self.items, self._starts, size)
        return SparseTable(
            domain, sealed(cells.keys), sealed(cells.counts), bound, self.truth_public
        )

    @property
    def _most_records(self) -> int | None:
        """At most so many records has one user; None where nobody counted."""
        return int(self.bound.l1) if isinstance(self.bound, Bound) else None

    def _limit(self, l: int) -> int:  # noqa: E741
        """The smaller of `l` and what the bound says."""
        return l if self._most_records is None else min(l, self._most_records)

    def _sampled(self, sample: Columns, most: int, distinct: bool) -> Self:
        """Some of the records: at most so many a user."""
        enforced = _records_bound(most, distinct).enforced("a user")
        bound = PUBLIC if self.bound is PUBLIC else enforced
        users, items, contexts = map(sealed, sample)
        return replace(
            self, users=users, items=items, contexts=contexts, bound=bound, distinct=distinct
        )


def _records_bound(most: int, distinct: bool) -> Bound:
    """Of a unit with so many records, each in a cell of its own or not."""
    return Bound(most, 1) if distinct else Bound(most, most, most)
