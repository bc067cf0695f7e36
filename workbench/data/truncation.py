"""Truncation of the rows of each user to a bound, which means that rows beyond the bound are left out at
random. The kept rows of a user depend only on a secret key, on the identity of the user and on the rows of this
user.
"""

from __future__ import annotations

from math import floor
from typing import Any, NamedTuple

import numpy as np

from workbench.data import user_kernels
from workbench.data.bound import Bound, Public
from workbench.data.cells import LARGEST_TOTAL, cells_of_counts
from workbench.data.users import Users, cut_key, refuse_cut_of_nobody, seeds, users_of
from workbench.spaces import argsort_keys
from workbench.value import Bool, Int

_USERS = 2**17  # whose seeds are held at a time
_MOST_DRAWN = 2**36  # counts of one user of which some stay: a random bit each
_PACKED = 2**63


class BoundedContributions(NamedTuple):
    """Counts that remain after each user was truncated to a bound. There is one entry per user and cell, with
    the key (number) of the cell and the count. `lost` is a mask of the users who lost counts.
    """

    keys: Int[np.ndarray, " cells"]  # a row a user and cell
    counts: Int[np.ndarray, " cells"]  # at least 1
    lost: Bool[np.ndarray, " users"]  # of each user with any counts


def bounded_contributions(
    users: Users,
    keys: Int[np.ndarray, " rows"],
    counts: Int[np.ndarray, " rows"] | None,
    bound: Bound,
    key: bytes,
) -> BoundedContributions:
    """Truncate the rows of each user to a bound: leave out rows beyond the bound. For each user, at most `l0`
    cells are kept. Each kept count is at most `linf`, and the kept counts add up to at most `l1`.

    First, the function adds up the rows of a user in each cell. If the user has more than `l0` cells, `l0` of
    them are kept at random. Then counts above `linf` are lowered to `linf`. If the sum of the counts is still
    above `l1`, the function treats a count of n as n single records, and keeps `l1` of all these records at
    random. So the kept counts have a multivariate hypergeometric distribution. In each random step, all choices
    are equally likely. Counts are integers, so `linf` and `l1` are rounded down.

    A user's kept counts depend only on the key, on the identity of the user and on the user's records. They do
    not depend on the order of rows or on other users. So if a user is added or removed, the table changes only
    by the kept counts of this user, which are within the bound. The bound holds for every value of the secret
    key. So the guarantee does not depend on whether the key stays secret.

    Each user has a separate random number generator, whose first state has 256 bits. The cipher AES computes
    these bits from the identity of the user and the key. If AES behaves like a random permutation, the first
    states of different users are independent and uniform. The function `mark_some` draws a uniformly random set
    of cells by Floyd's algorithm. The function `keep_units` gives every single record a uniform random number,
    and keeps the `l1` records with the smallest random numbers.

    Parameters
    ----------
    users : Users
        User of each row.
    keys : int[rows]
        For each row, the key of its cell. A key is an integer >= 0 that identifies a cell.
    counts : int[rows], optional
        Count of each row, an integer >= 0. By default, each row counts as 1.
    bound : Bound
        Limits `l0`, `linf` and `l1` on the rows that are kept for each user.
    key : bytes
        Secret key of 32 bytes. The same key gives the same truncation again.

    Returns
    -------
    BoundedContributions
        Kept counts, with one row per user and cell, sorted by user. The result also contains a mask, which is
        true for the users for whom counts were left out.

    Raises
    ------
    ValueError
        If the bound is too large for random draws, if the key does not have 32 bytes, or if the sum of the
        counts is above 2⁵³.
    """
    if not isinstance(bound, Bound):
        raise ValueError(
            f"bound = {bound!r} is not allowed: need a Bound, to which users are cut"
        )
    l0, linf, l1 = whole_limits(bound)
    if counts is not None:
        counts = np.minimum(counts, linf + 1)  # what is above is cut, and known to be
    people, all_starts, cells, sums = _cells_of_users(users.numbers, keys, counts)
    lost = np.zeros(len(people), bool)
    for first in range(0, len(lost), _USERS):
        some = slice(first, first + _USERS)
        starts = all_starts[first : first + _USERS + 1]
        part = slice(starts[0], starts[-1])
        totals = np.add.reduceat(np.minimum(sums[part], linf), starts[:-1] - starts[0])
        draws = (np.diff(starts) > l0) | (totals > l1)  # of all others everything stays
        drawn = seeds(key, users.ids_of(people[some][draws]))
        seed_of = np.cumsum(draws) - 1
        user_kernels.bound_users(
            starts - starts[0], l0, linf, l1, drawn, seed_of, sums[part], lost[some]
        )
    size = user_kernels.drop_empty(cells, sums)
    return BoundedContributions(cells[:size], sums[:size], lost)


class Kept(NamedTuple):
    """Rows that remain after each user was truncated to a bound, with the bound that now holds and the number
    of users who lost rows.
    """

    keys: Int[np.ndarray, " rows"]
    counts: Int[np.ndarray, " rows"] | None
    bound: Bound | Public
    users_cut: int | None = None


def kept_rows(
    keys: Int[np.ndarray, " rows"],
    counts: Int[np.ndarray, " rows"] | None,
    bound: Any,
    users: Any,
    user_type: str | None,
    rng: np.random.Generator | None,
    key: bytes | None,
) -> Kept:
    """Leave out rows of each user who exceeds the bound, and return the kept rows. If `users` is None, keep
    all rows.
    """
    if counts is not None and len(counts) != len(keys):
        raise ValueError(f"{len(keys):,} rows do not fit {len(counts):,} counts")
    if users is None:
        refuse_cut_of_nobody(rng, key)
        return Kept(keys, counts, bound)
    users = users_of(users, user_type)
    if len(users.numbers) != len(keys):
        raise ValueError(f"{len(keys):,} rows do not fit {len(users.numbers):,} users")
    left = bounded_contributions(users, keys, counts, bound, cut_key(rng, key))
    return Kept(left.keys, left.counts, bound.enforced(users.who), int(left.lost.sum()))


def kept_of_words(
    words: np.ndarray, counts: Int[np.ndarray, " rows"] | None, bound: Any, *who: Any
) -> tuple[np.ndarray, Kept]:
    """Leave out rows of each user who exceeds the bound, if the key of a cell consists of several 64-bit
    words. Return the distinct cells in ascending order, and the kept rows. The keys of the kept rows are
    positions in this list of cells.

    The order of a user's cells does not depend on other users, so the choice of rows is also independent of
    other users. `who` contains the arguments of `kept_rows` after `bound`.
    """
    order = argsort_keys(words)
    ordered = words[:, order]
    begins = np.ones(len(order), bool)
    begins[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    cells = np.empty(len(order), np.int64)
    cells[order] = np.cumsum(begins) - 1
    return ordered[:, begins], kept_rows(cells, counts, bound, *who)


def whole_limits(bound: Bound) -> tuple[int, int, int]:
    """Return the limits l0, linf and l1 of a bound as integers. The limits linf and l1 are rounded down, and
    numbers above 2⁵³ become 2⁵³.
    """
    l0, linf, l1 = (
        min(floor(limit), LARGEST_TOTAL) for limit in (bound.l0, bound.linf, bound.l1)
    )
    if l1 < l0 * linf and l0 * linf > _MOST_DRAWN:
        raise ValueError(
            f"a bound of {l0:,} cells and {linf:,} per cell cannot be enforced: the counts of a unit that stay "
            f"are drawn from at most {_MOST_DRAWN:,}. Lower the bound"
        )
    return l0, linf, l1


def _cells_of_users(
    users: np.ndarray, keys: np.ndarray, counts: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Add up rows by user and cell. Return the users, the position at which the cells of each user begin, the
    keys (numbers) of all cells, and their counts. The keys of each user are in ascending order.

    Each pair of a user and a cell is packed into one number, and these numbers are sorted.
    """
    if not len(users):
        none = np.zeros(0, np.int64)
        return none, np.zeros(1, np.int64), none, none
    distinct_users = distinct_keys = None
    lowest = int(users.min())
    n_users = int(users.max()) - lowest + 1
    key_bits = int(
        keys.max()
    ).bit_length()  # numbers are taken apart faster by bits than by division
    if n_users << key_bits > _PACKED:
        distinct_users, users = np.unique(users, return_inverse=True)
        lowest = 0
        n_users = len(distinct_users)
    if n_users << key_bits > _PACKED:
        distinct_keys, keys = np.unique(keys, return_inverse=True)
        key_bits = (len(distinct_keys) - 1).bit_length()
    packed = users.astype(np.int64)
    packed -= lowest
    packed <<= key_bits
    packed |= keys
    if counts is None:
        packed.sort()
        sums = np.empty(len(packed), np.int64)
    else:
        packed, sums = cells_of_counts(packed, counts)
    numbers = np.empty(len(packed), np.int64)
    starts = np.empty(len(packed) + 1, np.int64)
    size, cells = user_kernels.take_apart(
        packed, key_bits, counts is None, numbers, starts, sums
    )
    numbers = numbers[:size] + lowest
    keys = packed[:cells]
    return (
        numbers if distinct_users is None else distinct_users[numbers],
        starts[: size + 1].copy(),
        keys if distinct_keys is None else distinct_keys[keys],
        sums[:cells],
    )
