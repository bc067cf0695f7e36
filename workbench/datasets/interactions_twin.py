"""Synthetic records of users and items, which replace the four datasets of Fan & Jin (2015)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from workbench.compiled import njit
from workbench.data import Bound, Interactions
from workbench.datasets.kinds import Twin, root, seed_field
from workbench.datasets.published import WEEKDAYS
from workbench.datasets.ratings import GROUPS, HOW
from workbench.spaces import Domain
from workbench.value import Float, Int, not_allowed, parameter, sealed, value

# Interactions twin kernels


@njit(cache=True, nogil=True)
def alias_tables(weights):
    """Return two tables for fast draws of items in proportion to weights (Walker's alias method). To draw an
    item, choose a number i uniformly. With probability keep[i] the item is i, and otherwise it is other[i].
    """
    m = weights.size
    keep = weights * (m / weights.sum())
    other = np.arange(m).astype(np.int32)
    low, high = np.empty(m, np.int32), np.empty(m, np.int32)
    a = b = 0
    for i in range(m):
        if keep[i] < 1:
            low[a] = i
            a += 1
        else:
            high[b] = i
            b += 1
    while a and b:
        a -= 1
        i, j = low[a], high[b - 1]
        other[i] = j
        keep[j] -= 1 - keep[i]
        if keep[j] < 1:
            b -= 1
            low[a] = j
            a += 1
    for i in range(a):
        keep[low[i]] = 1
    for i in range(b):
        keep[high[i]] = 1
    return keep, other


@njit(cache=True, inline="always")
def _drawn(rng, keep, other):
    x = rng.random() * keep.size
    i = int(x)
    return i if x - i < keep[i] else other[i]


@njit(cache=True, nogil=True)
def draw_distinct_items(rng, starts, groups, planted_at, planted, weights, keep, other, items):
    """Draw different items for every user. The first items of a user are those in `planted` that are assigned
    to the user. Further items are drawn in proportion to their weights.
    """
    m = keep.shape[1]
    mark, cost, p = np.full(m, -1, np.int64), np.empty(m), 0
    for u in range(starts.size - 1):
        at, stop, g = starts[u], starts[u + 1], groups[u]
        while p < planted.size and planted_at[p] < stop:
            items[at] = planted[p]
            mark[planted[p]] = u
            at += 1
            p += 1
        if 8 * (stop - at) <= m:
            while at < stop:
                i = _drawn(rng, keep[g], other[g])
                if mark[i] != u:
                    mark[i] = u
                    items[at] = i
                    at += 1
        elif at < stop:  # the same law: the smallest of exponential times at these rates
            for i in range(m):
                cost[i] = np.inf if mark[i] == u else rng.standard_exponential() / weights[g, i]
            most = np.partition(cost, stop - at - 1)[stop - at - 1]
            for i in range(m):
                if cost[i] <= most and at < stop:
                    items[at] = i
                    at += 1


@njit(cache=True, nogil=True)
def draw_items(rng, starts, groups, planted_at, planted, returning, keep, other, items):
    """Draw the items of every user, with repetition. Some places are reserved for the items in `planted`. At
    each other place, the item repeats an earlier item of this user, or is drawn in proportion to the weights.
    """
    p = 0
    for u in range(starts.size - 1):
        start, stop, g = starts[u], starts[u + 1], groups[u]
        for at in range(start, stop):
            if p < planted.size and planted_at[p] == at:
                items[at] = planted[p]
                p += 1
            elif at > start and rng.random() < returning:
                items[at] = items[start + int(rng.random() * (at - start))]
            else:
                items[at] = _drawn(rng, keep[g], other[g])


@njit(cache=True, nogil=True)
def draw_contexts(rng, items, bounds, contexts):
    """Draw a context, for example a day of the week, for each record. `bounds` contains the cumulative
    distribution over contexts for each item.
    """
    last = bounds.shape[1] - 1
    for r in range(items.size):
        x, c = rng.random(), 0
        while c < last and x >= bounds[items[r], c]:
            c += 1
        contexts[r] = c


# Interactions twin

# Shares of records by the day, and of users by group: round numbers of our own, after what such
# services see (check-ins at the end of the week, ratings at its beginning) and, for the groups,
# after the users of MovieLens 1M.
PROFILES = {
    "check-in week": dict(
        zip(WEEKDAYS, (0.13, 0.13, 0.13, 0.14, 0.16, 0.17, 0.14), strict=True)
    ),
    "rating week": dict(zip(WEEKDAYS, (0.16, 0.17, 0.16, 0.15, 0.13, 0.11, 0.12), strict=True)),
    "gender and age": dict(zip(GROUPS, (0.06, 0.09, 0.13, 0.16, 0.26, 0.30), strict=True)),
}

ORIGINALS = {
    15_200: "Gowalla in Austin as Berjani and Strufe collected it, who do not publish it; SNAP's of the "
    "same place and time stands in: save https://snap.stanford.edu/data/loc-gowalla_totalCheckins.txt.gz "
    "in a folder gowalla",
    17_967: "Foursquare of February to July 2012, which nobody publishes",
    17_700: f"the training set of the Netflix Prize: {HOW}",
    3706: "MovieLens 1M: save https://files.grouplens.org/datasets/movielens/ml-1m.zip in a folder "
    "movielens; it need not be unpacked",
}


@value
class InteractionsTwin(Twin):
    """Synthetic data that replace one of the four datasets of users and items in the paper of Fan & Jin
    (2015). Each record names a user, an item and a context, for example a film (the item) and the day of the
    week (the context).

    Five numbers agree with the paper. Three of them are the numbers of users, items and records. The fourth
    is the largest number of records of a user (`max_per_user`), and the fifth is the smallest
    (`min_per_user`). Table 4 of the paper has four rows, one per dataset. Call `gowalla()`, `foursquare()`,
    `netflix()` or `movielens()` to get data with the numbers of a row. The default is the row of Foursquare.
    In this row, the paper also prints a mean of 60.2 records per user, which contradicts the other numbers in
    the row.

    Everything else is our invention. The number of records per user follows a Zipf-Mandelbrot distribution.
    Let min and max be the smallest and the largest number of records of a user. The r-th most active user has
    min + (max − min)·((1 + q)/(r + q))^`exponent` records. The workbench chooses q so that all users together
    have `records` records. With a smaller `exponent`, the numbers of records of most users are more similar.
    Items differ in popularity, and the most popular item has rank 1. The probability of an item is
    proportional to (rank + `flat`)^−`popularity`. First, each item gets one record of a random user. The
    items of all other records are drawn with these probabilities. If `once` is True, no user has the same
    item twice. Nearly all users then have the most popular items, as is usual for films. If `once` is False,
    a user may have an item several times. With the probability `returning`, a record repeats the item of an
    earlier record of the same user. For comparison, 39 % of the check-ins in the copy "lglmf" of the dataset
    `Gowalla` are such repetitions. Users and items are numbered at random, so their numbers do not reveal
    their ranks.

    The argument `contexts` says what the context of a record is. With "check-in week" or "rating week", the
    context is the day of the week. Each item has its own distribution over days, which is drawn from a
    Dirichlet distribution. The mean of these distributions is in the table `PROFILES` of this module. With a
    larger `alike`, the distributions of different items are more similar. The day depends neither on the
    popularity of the item nor on the activity of the user. Figure 11 of the paper shows the share of the
    weekend among the records. This share is larger if only some records of each user are kept. The synthetic
    data do not contain this effect. If our figure shows such a difference, the difference is random. With
    "gender and age", the context is the group of the user, for example women under 25. Groups are drawn with
    the probabilities in `PROFILES`. In each group, the probability of an item is multiplied by a random
    factor, which has a Gamma distribution with mean 1 and shape `alike`.

    The protected unit is one user with all of their records (at most `max_per_user`). The data are generated,
    so they are public. The row of Netflix has 100,480,507 records. Generating them takes 15 seconds and 2 GB
    of memory. Source of the five numbers: Fan and Jin, WWW 2015, Table 4.
    """

    invented: ClassVar[Mapping[str, str]] = {
        "activity": "records of all users between: a Zipf-Mandelbrot law",
        "popularity": "of items: a power of their rank",
        "joint": "which user has which items: nothing but chance, and returns",
        "contexts": "days of the week, or groups of users, and how items differ in them",
    }
    cite: ClassVar[str] = "fan2015"

    users: int = parameter(45_289, 2, 2**31 - 1, integer=True, doc="number of users")
    items: int = parameter(17_967, 1, 2**31 - 1, integer=True, doc="number of items")
    records: int = parameter(1_276_988, 2, 2**40, integer=True, doc="number of records")
    max_per_user: int = parameter(
        1303, 1, 2**31 - 1, integer=True, unit="records", doc="records of the most active user"
    )
    min_per_user: int = parameter(
        1, 1, 2**31 - 1, integer=True, unit="records", doc="records of the least active user"
    )
    exponent: float = parameter(
        1.25, 0, 10, strict=True, doc="how strongly users' numbers of records differ"
    )
    popularity: float = parameter(0.6, 0, 10, doc="how strongly items' popularity differs")
    flat: float = parameter(0.0, 0, 1e9, doc="approximate number of equally popular top items")
    once: bool = parameter(
        False, choices=(False, True), doc="at most one record per user and item"
    )
    returning: float = parameter(0.4, 0, 1, doc="probability of repeating an earlier item")
    contexts: str = parameter(
        "check-in week", choices=tuple(PROFILES), doc="what the context of a record is"
    )
    alike: float = parameter(20.0, 0, 1e9, strict=True, doc="similarity of the items' contexts")
    seed: int = seed_field()

    @property
    def original(self) -> str:
        """Name of the real dataset that these data replace. If you can get the real dataset, the text also
        says how. The property recognises the real dataset by the number of items.
        """
        return ORIGINALS.get(self.items, "data of your own: Table 4 has no such row")

    def __post_init__(self) -> None:
        low = self.min_per_user
        high = self.max_per_user
        if low > high:
            raise not_allowed(self, "min_per_user", f"need at most max_per_user = {high}")
        least = high + (self.users - 1) * low
        most = low + (self.users - 1) * high
        if not max(least, self.items) <= self.records <= most:
            why = f"need {least} to {most}, which so many users can have, and one an item at least"
            raise not_allowed(self, "records", why)
        if self.once and high > self.items:
            why = f"need at most items = {self.items}, because no user has an item twice"
            raise not_allowed(self, "max_per_user", why)

    @classmethod
    def gowalla(cls, seed: int = 0) -> InteractionsTwin:
        """Make synthetic data that replace the Gowalla check-ins in Austin from June to October 2010."""
        return cls(12_579, 15_200, 739_600, 14_380, seed=seed)

    @classmethod
    def foursquare(cls, seed: int = 0) -> InteractionsTwin:
        """Make synthetic data that replace the Foursquare check-ins from February to July 2012. Most users
        have fewer than ten check-ins.
        """
        return cls(seed=seed)

    @classmethod
    def netflix(cls, seed: int = 0) -> InteractionsTwin:
        """Make synthetic data that replace the ratings of the Netflix Prize. Few users have more than 2,000
        ratings.
        """
        return cls(
            480_189, 17_700, 100_480_507, 17_000, exponent=0.6, popularity=2.5, flat=400.0,
            once=True, contexts="rating week", seed=seed,
        )  # fmt: skip

    @classmethod
    def movielens(cls, seed: int = 0) -> InteractionsTwin:
        """Make synthetic data that replace the ratings of MovieLens 1M, with the gender and age of users.
        Every user has at least 20 ratings.
        """
        return cls(
            6040, 3706, 1_000_209, 2314, 20, exponent=1.0, popularity=2.0, flat=400.0,
            once=True, contexts="gender and age", alike=5.0, seed=seed,
        )  # fmt: skip

    def slice(self, users: int) -> InteractionsTwin:
        """Return a smaller synthetic dataset for quick runs. The smaller dataset has at most `users` users,
        and proportionally fewer records.

        The number of items stays the same if the smaller dataset then has at least ten records per item.
        Otherwise the number of items is a tenth of the number of records. The most active user usually has at
        most a tenth of all records.
        """
        users = min(users, self.users)
        if users == self.users:
            return self
        records = self.records * users // self.users
        items = max(1, min(self.items, records // 10))
        most = min(self.max_per_user, max(records // 10, -(-records // users)))
        most = max(min(most, items) if self.once else most, self.min_per_user)
        return replace(self, users=users, items=items, records=records, max_per_user=most)

    @property
    def domain(self) -> Domain:
        """All pairs of an item and a context. Items are numbers, and contexts are days of the week or groups
        of users.
        """
        contexts = tuple(PROFILES[self.contexts])
        return Domain(("item", "context"), (self.items, len(contexts)), (None, contexts))

    def load(self) -> Interactions:
        """Generate the records. The same parameters always give the same records."""
        rng = np.random.default_rng(self.seed)
        sizes = rng.permutation(self.sizes())
        starts = np.concatenate([[0], np.cumsum(sizes)])
        shares = np.array(list(PROFILES[self.contexts].values()))
        rank = rng.permutation(self.items)
        weights = ((1.0 + rank + self.flat) / (1.0 + self.flat)) ** -self.popularity
        weights = weights[None]
        groups = np.zeros(self.users, np.uint8)
        if self.contexts == "gender and age":
            groups = rng.choice(len(shares), self.users, p=shares).astype(np.uint8)
            shape = (len(shares), self.items)
            weights = weights * np.maximum(rng.gamma(self.alike, 1 / self.alike, shape), 1e-6)
        keep, other = map(np.stack, zip(*map(alias_tables, weights), strict=True))
        places = np.sort(rng.choice(self.records, self.items, replace=False, shuffle=False))
        planted = rng.permutation(self.items)
        items = np.empty(self.records, np.uint16 if self.items <= 2**16 else np.int32)
        law = (starts, groups, places, planted)
        if self.once:
            draw_distinct_items(rng, *law, weights, keep, other, items)
        else:
            draw_items(rng, *law, self.returning, keep, other, items)
        users = np.repeat(np.arange(self.users, dtype=np.int32), sizes)
        if self.contexts == "gender and age":
            contexts = groups[users]
        else:
            contexts = np.empty(self.records, np.uint8)
            weeks = np.cumsum(rng.dirichlet(shares * self.alike, self.items), axis=1)
            draw_contexts(rng, items, weeks, contexts)
        most = self.max_per_user
        bound = Bound(most, 1) if self.once else Bound(most, most, most)
        users, items, contexts = map(sealed, (users, items, contexts))
        truth = self.truth_public
        return Interactions(self.domain, users, items, contexts, bound, truth, self.once)

    def sizes(self) -> Int[np.ndarray, " users"]:
        """Return the number of records of each user, from the most active to the least active. The numbers
        add up to `records`.
        """
        low = self.min_per_user
        high = self.max_per_user
        total = self.records - low * self.users - (high - low)  # above low, without the first
        sizes = np.full(self.users, low, np.int64)
        sizes[0] = high
        if total:
            above = self._above(total)
            above = np.diff(np.rint(np.cumsum(above) * (total / above.sum())), prepend=0)
            above = np.minimum(above.astype(np.int64), high - low)
            room = np.argsort(above, kind="stable")[: total - above.sum()]
            above[room] += 1
            sizes[1:-1] += above
        return -np.sort(-sizes)

    def _above(self, total: int) -> Float[np.ndarray, " ranks"]:
        """Return how many records each user has in addition to `min_per_user`, for all users between the most
        active and the least active. The numbers add up to `total`.
        """
        ranks = np.arange(2.0, self.users)
        span = self.max_per_user - self.min_per_user

        def law(log_q: float) -> np.ndarray:  # 1 + q is exp(log_q)
            return span * (1 + (ranks - 1) * np.exp(-log_q)) ** -self.exponent

        return law(root(lambda log_q: law(log_q).sum() < total, -600.0, 600.0)[1])
