"""Reading interactions: three columns in any order become codes in narrow types, sorted by user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Int
from workbench.domain import Domain
from workbench.interactions import kernels
from workbench.labelled_rows import (
    arrow_column,
    dictionary_encoded,
    refuse_missing_columns,
    refuse_missing_values,
    value_codes,
)
from workbench.libraries import pa, parquet, pc, pd
from workbench.value import sealed

_BATCH = 2**20  # rows that are encoded at a time


class Columns(NamedTuple):
    """Records, a row each: who, what, and in which context."""

    users: Int[np.ndarray, " records"]
    items: Int[np.ndarray, " records"]
    contexts: Int[np.ndarray, " records"]


def narrowest_type(size: int) -> np.dtype:
    """The narrowest unsigned type that holds 0 … size − 1."""
    return np.min_scalar_type(size - 1)


def frame_columns(frame: Any, names: Sequence[str], domain: Domain) -> Columns:
    """The named columns of users, items and contexts of a pandas or polars frame, by user."""
    refuse_missing_columns(names, frame)
    arrays = [arrow_column(frame[name]) for name in names]
    return _read(_slices(arrays, len(frame)), names, domain, len(frame))


def parquet_columns(path: str | Path, names: Sequence[str], domain: Domain) -> Columns:
    """The named columns of users, items and contexts of a Parquet file, by user.

    Batches go into narrow columns as they come: memory is little more than the result.
    """

    def select(rows: pa.RecordBatch) -> list[pa.Array]:
        return [rows.column(name) for name in names]

    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such Parquet file")
    try:
        with parquet.ParquetFile(path) as file:
            all_names = file.schema_arrow.names
            if missing := [name for name in names if name not in all_names]:
                raise ValueError(
                    f"{path}: columns {missing} are missing: the file has {all_names}"
                )
            rows = file.iter_batches(_BATCH, columns=[*dict.fromkeys(names)])
            return _read(map(select, rows), names, domain, file.metadata.num_rows)
    except (pa.ArrowException, OSError) as e:
        raise ValueError(f"{path}: not a complete Parquet file ({str(e)[:80]})") from None


def sorted_by_user(columns: Columns, *, reuse_users: bool = False) -> Columns:
    """Sorted by user, each user's records in their order; users become 0, 1, …

    With `reuse_users` nobody else holds the users, which are then numbered where they are.
    """
    users = columns.users
    if users.dtype == np.uint64:  # one to one; beside other numbers it would become a float
        users = users.view(np.int64)
    if len(users) and (users[1:] < users[:-1]).any():
        low = int(users.min())
        high = int(users.max())
        if high - low > 4 * len(users) + 2**22:
            users = pd.factorize(users)[0]
            low = 0
            high = int(users.max())
        user_codes = np.empty(len(users), np.int32)
        offsets = np.zeros(high - low + 2, np.int64)
        items = np.empty_like(columns.items)
        contexts = np.empty_like(columns.contexts)
        kernels.sort_by_user(
            users, low, offsets, columns.items, columns.contexts, items, contexts, user_codes
        )
        return Columns(sealed(user_codes), sealed(items), sealed(contexts))
    in_place = reuse_users and users.dtype == np.int32
    user_codes = users if in_place else np.empty(len(users), np.int32)
    kernels.number_users(users, user_codes)
    return Columns(sealed(user_codes), sealed(columns.items), sealed(columns.contexts))


def _slices(arrays: list[pa.Array], size: int) -> Iterator[list[pa.Array]]:
    for start in range(0, size, _BATCH):
        yield [array.slice(start, _BATCH) for array in arrays]


def _read(
    batches: Iterable[list[pa.Array]], names: Sequence[str], domain: Domain, size: int
) -> Columns:
    """`size` rows in batches of Arrow arrays, by user."""
    users = np.empty(size, np.int32)
    codes = [np.empty(size, narrowest_type(n)) for n in domain.shape]
    user_codes: dict = {}  # of users that are not whole numbers, by their order of appearance
    start = 0
    for batch in batches:
        rows = slice(start, start + len(batch[0]))
        for name, values in zip(names, batch, strict=True):
            refuse_missing_values(values, name, start)
        batch_users = _users(batch[0], names[0], user_codes)
        if not _fits(batch_users, users.dtype):
            users = users.astype(np.int64)
        users[rows] = batch_users
        for axis, attribute in enumerate(domain.attributes):
            name = names[1 + axis]
            codes[axis][rows] = value_codes(domain, attribute, batch[1 + axis], name, start)
        start = rows.stop
    return sorted_by_user(Columns(users, *codes), reuse_users=True)


def _fits(numbers: Int[np.ndarray, " rows"], dtype: np.dtype) -> bool:
    if not len(numbers) or numbers.dtype.itemsize <= dtype.itemsize:
        return True
    limits = np.iinfo(dtype)
    return limits.min <= numbers.min() and numbers.max() <= limits.max


def _users(values: pa.Array, name: str, user_codes: dict) -> Int[np.ndarray, " rows"]:
    """Whole numbers as they are; a code of any other value, kept in `user_codes`."""
    if pa.types.is_integer(values.type):
        return values.to_numpy()
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        raise ValueError(f"column {name!r}: a value is missing")
    encoded = dictionary_encoded(values)
    distinct = encoded.dictionary.to_pylist()
    codes = [user_codes.setdefault(value, len(user_codes)) for value in distinct]
    return np.array(codes, np.int64)[encoded.indices.to_numpy()]
