"""Conversion of rows from files or data frames to interactions. An interaction consists of three numbers: one
for the user, one for the item and one for the context. Interactions are sorted by user.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import pd
from workbench.data import interaction_kernels
from workbench.data.reading import counted_rows
from workbench.data.users import UserNumbers, Users
from workbench.spaces import Domain
from workbench.value import Int, UInt64, sealed

# Records


class Columns(NamedTuple):
    """Columns of interactions: for each record, the numbers of the user, the item and the context."""

    users: Int[np.ndarray, " records"]
    items: Int[np.ndarray, " records"]
    contexts: Int[np.ndarray, " records"]


def narrowest_type(size: int) -> np.dtype:
    """Return the smallest unsigned integer type that can store the numbers from 0 to `size` − 1."""
    return np.min_scalar_type(size - 1)


UserRecords = tuple[Columns, UInt64[np.ndarray, "users 2"]]  # and what identifies each user


def sorted_by_user(columns: Columns, ids: np.ndarray | None = None) -> UserRecords:
    """Sort records by user, and give the users new numbers from 0. Records of one user keep their order. Also
    return the identifier of each user.

    `ids` contains the identifier for each old number. If `ids` is None, the old number itself is the
    identifier.
    """
    users, items, contexts = columns
    if users.dtype == np.uint64:  # one to one; beside other numbers it would become a float
        users = users.view(np.int64)
    begins = np.ones(len(users), bool)
    np.not_equal(users[1:], users[:-1], out=begins[1:])
    numbers = users[begins]
    if (numbers[1:] > numbers[:-1]).all():
        codes = np.cumsum(begins, dtype=np.int32)
        codes -= 1
    else:
        low = int(users.min())
        high = int(users.max())
        if high - low > 4 * len(users) + 2**22:
            users, numbers = pd.factorize(users)
            low = 0
            high = int(users.max())
        else:
            is_user = np.zeros(high - low + 1, bool)
            is_user[users.astype(np.int64) - low] = True
            numbers = np.flatnonzero(is_user) + low
        codes = np.empty(len(users), np.int32)
        offsets = np.zeros(high - low + 2, np.int64)
        items = np.empty_like(items)
        contexts = np.empty_like(contexts)
        interaction_kernels.sort_by_user(
            users, low, offsets, *columns[1:], items, contexts, codes
        )
    by_user = Columns(*map(sealed, (codes, items, contexts)))
    return by_user, sealed(Users(numbers, ids).ids_of(numbers))


# Crossing

_MOST_CROSSED = 2**22  # combinations of labels that are items, or contexts


def crossed(domain: Domain, items: Sequence[str], contexts: Sequence[str]) -> Domain:
    """Return a domain with two attributes: items and contexts. An item is a combination of labels of the
    attributes `items`, and a context is a combination of labels of the attributes `contexts`. If `contexts`
    is empty, all records have the same context.
    """
    if not items or len({*items, *contexts}) < len(items) + len(contexts):
        raise ValueError(
            f"items {[*items]} and contexts {[*contexts]} are not allowed: need different attributes, at "
            "least one for items"
        )
    if len(items) == len(contexts) == 1:
        return domain.project([*items, *contexts])
    parts = [domain.project(x) if x else Domain(("all",), (1,)) for x in (items, contexts)]
    for part in parts:
        if part.size > _MOST_CROSSED:
            raise ValueError(
                f"{' × '.join(part.attributes)} has {part.size:,} combinations: need at most "
                f"{_MOST_CROSSED:,}"
            )
    names = (" × ".join(part.attributes) for part in parts)
    sizes = (part.size for part in parts)
    labels = tuple(map(_combinations, parts))
    return Domain(tuple(names), tuple(sizes), labels, missing_user=domain.missing_user)


def _combinations(domain: Domain) -> Any:
    """Return one label per cell of the domain, in the order of the cells. A label joins the labels of all
    attributes.
    """
    if len(domain.shape) == 1:
        return domain.labels and domain.labels[0]
    lists = (rule.all_labels for rule in domain.rules.values())
    return tuple(" × ".join(map(str, labels)) for labels in product(*lists))


def records_of_rows(
    data: Any, people: UserNumbers, domain: Domain, attributes: Domain, **how: Any
) -> UserRecords:
    """Read interactions from files or a data frame, and sort them by user. An item is the number of a
    combination of labels of the item attributes, and a context is numbered in the same way. The domain
    `attributes` contains all of these attributes.

    Each batch is stored in columns of small integer types, so the function needs little more memory than its
    result.
    """
    none = np.zeros(0, np.int32)
    parts = [Columns(none, none, none)]
    _, contexts = domain.shape
    kinds = [*map(narrowest_type, domain.shape)]
    for rows in counted_rows(data, attributes, users=people, **how):
        users = rows.users
        if len(users) and -(2**31) <= users.min() and users.max() < 2**31:
            users = users.astype(np.int32)
        codes = map(np.ndarray.astype, np.divmod(rows.keys, contexts), kinds)
        parts.append(Columns(users, *codes))
    joined = Columns(*map(np.concatenate, zip(*parts[len(parts) > 1 :], strict=True)))
    return sorted_by_user(joined, people.ids())
