"""Rows of any source as interactions: columns become codes, sorted by user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import pa, pd
from workbench.data import interaction_kernels
from workbench.data.columns import (
    arrow_column,
    refuse_missing_columns,
    refuse_missing_values,
    value_codes,
)
from workbench.data.frames import ParquetFile
from workbench.data.reading import all_rows, counted_rows
from workbench.data.source import BATCH
from workbench.data.users import UserNumbers, Users, user_column
from workbench.spaces import Domain
from workbench.value import Int, UInt64, sealed

# Reading


class Columns(NamedTuple):
    """Records, a row each: who, what, and in which context."""

    users: Int[np.ndarray, " records"]
    items: Int[np.ndarray, " records"]
    contexts: Int[np.ndarray, " records"]


def narrowest_type(size: int) -> np.dtype:
    """The narrowest unsigned type that holds 0 … size − 1."""
    return np.min_scalar_type(size - 1)


class UserRecords(NamedTuple):
    """Records by user, whose codes are 0, 1, …, and what identifies the user of each code."""

    columns: Columns
    ids: UInt64[np.ndarray, "users 2"]


def frame_columns(
    frame: Any, names: Sequence[str], domain: Domain, user_type: str | None
) -> UserRecords:
    """The named columns of users, items and contexts of a pandas or polars frame, by user."""
    refuse_missing_columns(names, frame)
    arrays = [user_column(frame[names[0]]), *(arrow_column(frame[name]) for name in names[1:])]
    people = UserNumbers(names[0], user_type)
    return _read(_slices(arrays, len(frame)), names, domain, len(frame), people)


def parquet_columns(
    path: str | Path, names: Sequence[str], domain: Domain, user_type: str | None
) -> UserRecords:
    """The named columns of users, items and contexts of a Parquet file, by user.

    Batches go into narrow columns as they come: memory is little more than the result.
    """

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such Parquet file")
    file = ParquetFile(path)
    columns = [*dict.fromkeys(names)]
    file.refuse_columns(columns)
    batches = file.batches(columns, user=names[0])
    arrays = ([batch[name] for name in names] for batch in batches)
    people = UserNumbers(names[0], user_type)
    return _read(arrays, names, domain, int(file.starts[-1]), people)


def sorted_by_user(
    columns: Columns, *, reuse_users: bool = False, ids: np.ndarray | None = None
) -> UserRecords:
    """Sorted by user, each user's records in their order; users become 0, 1, …

    With `reuse_users` nobody else holds the users, which are then numbered where they are. `ids` identify
    users by the numbers that they have; without them, they are their numbers.
    """
    users = columns.users
    if users.dtype == np.uint64:  # one to one; beside other numbers it would become a float
        users = users.view(np.int64)
    if len(users) and (users[1:] < users[:-1]).any():
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
        user_codes = np.empty(len(users), np.int32)
        offsets = np.zeros(high - low + 2, np.int64)
        items = np.empty_like(columns.items)
        contexts = np.empty_like(columns.contexts)
        interaction_kernels.sort_by_user(
            users, low, offsets, columns.items, columns.contexts, items, contexts, user_codes
        )
        by_user = Columns(sealed(user_codes), sealed(items), sealed(contexts))
        return UserRecords(by_user, sealed(Users(numbers, ids).ids_of(numbers)))
    begins = np.ones(len(users), bool)
    np.not_equal(users[1:], users[:-1], out=begins[1:])
    numbers = users[begins]
    in_place = reuse_users and users.dtype == np.int32
    user_codes = users if in_place else np.empty(len(users), np.int32)
    interaction_kernels.number_users(users, user_codes)
    by_user = Columns(sealed(user_codes), sealed(columns.items), sealed(columns.contexts))
    return UserRecords(by_user, sealed(Users(numbers, ids).ids_of(numbers)))


def _slices(arrays: list[pa.Array], size: int) -> Iterator[list[pa.Array]]:
    for start in range(0, size, BATCH):
        yield [array.slice(start, BATCH) for array in arrays]


def _read(
    batches: Iterable[list[pa.Array]],
    names: Sequence[str],
    domain: Domain,
    size: int,
    people: UserNumbers,
) -> UserRecords:
    """`size` rows in batches of Arrow arrays, by user."""
    users = np.empty(size, np.int32)
    codes = [np.empty(size, narrowest_type(n)) for n in domain.shape]
    start = 0
    for batch in batches:
        rows = slice(start, start + len(batch[0]))
        for name, values in zip(names[1:], batch[1:], strict=True):
            refuse_missing_values(values, name, start)
        batch_users = people.numbers(batch[0], start)
        if not _fits(batch_users, users.dtype):
            users = users.astype(np.int64)
        users[rows] = batch_users
        for axis, attribute in enumerate(domain.attributes):
            name = names[1 + axis]
            codes[axis][rows] = value_codes(domain, attribute, batch[1 + axis], name, start)
        start = rows.stop
    return sorted_by_user(Columns(users, *codes), reuse_users=True, ids=people.ids())


def _fits(numbers: Int[np.ndarray, " rows"], dtype: np.dtype) -> bool:
    if not len(numbers) or np.can_cast(numbers.dtype, dtype):
        return True
    limits = np.iinfo(dtype)
    return limits.min <= numbers.min() and numbers.max() <= limits.max


# Crossing

_MOST_CROSSED = 2**22  # combinations of labels that are items, or contexts


def crossed(domain: Domain, items: Sequence[str], contexts: Sequence[str]) -> Domain:
    """Items and contexts, each a combination of labels of some attributes; no contexts are one for all."""
    if not items or len({*items, *contexts}) < len(items) + len(contexts):
        raise ValueError(
            f"items {[*items]} and contexts {[*contexts]} are not allowed: need different attributes, at "
            "least one for items"
        )
    if len(items) == len(contexts) == 1:
        return domain.project([*items, *contexts])
    names = []
    sizes = []
    labels = []
    for chosen in (items, contexts):
        part = domain.project(chosen) if chosen else Domain(("all",), (1,))
        if part.size > _MOST_CROSSED:
            raise ValueError(
                f"{' × '.join(chosen)} has {part.size:,} combinations: need at most {_MOST_CROSSED:,}"
            )
        names.append(" × ".join(part.attributes))
        sizes.append(part.size)
        lists = [
            own or range(n)
            for own, n in zip(part.labels or (None,) * len(part.shape), part.shape, strict=True)
        ]
        is_one = len(part.shape) == 1
        one = part.labels and part.labels[0]
        labels.append(
            one if is_one else tuple(" × ".join(map(str, x)) for x in product(*lists))
        )
    return Domain(tuple(names), tuple(sizes), tuple(labels))


def crossed_records(
    data: Any, people: UserNumbers, crossed: Domain, attributes: Domain, **how: Any
) -> UserRecords:
    """Rows with some attributes as records of what they are crossed to; keys of both are the same."""
    rows = all_rows(counted_rows(data, attributes, users=people, **how))
    assert rows.users is not None  # as their column was read
    items, contexts = crossed.shape
    columns = Columns(
        rows.users,
        (rows.keys // contexts).astype(narrowest_type(items)),
        (rows.keys % contexts).astype(narrowest_type(contexts)),
    )
    return sorted_by_user(columns, ids=people.ids())
