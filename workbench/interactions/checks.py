"""What codes, domains and numbers of interactions must be; else a ValueError."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.domain import Domain
from workbench.interactions import sampling
from workbench.interactions.reading import Columns

MOST_RECORDS = 2**31  # of one user


def refuse_wrong_columns(columns: Columns) -> None:
    """A ValueError unless they are whole numbers, as many of each."""
    for name, column in zip(Columns._fields, columns, strict=True):
        if column.dtype.kind not in "iu" or column.shape != (len(columns.users),):
            raise ValueError(
                f"{name} of {column.dtype} {column.shape} are not allowed: need whole numbers, "
                f"{len(columns.users)} of them"
            )


def refuse_wrong_codes(data: Any) -> None:
    """A ValueError unless codes lie in the domain, sorted by user, not too many, and as `distinct` says."""
    for name, size in zip(("items", "contexts"), data.domain.shape, strict=True):
        refuse_outside(f"Interactions.{name}", getattr(data, name), size)
    users = data.users
    if users[0] < 0 or (users[1:] < users[:-1]).any():
        raise ValueError("Interactions.users must be codes >= 0 and sorted; use from_codes")
    if len(data) > MOST_RECORDS and data.records_per_user().max() > MOST_RECORDS:
        raise ValueError(f"a user has more than {MOST_RECORDS} records: no more are possible")
    if not data.distinct:
        return
    row = sampling.first_repeated(data.items, data._starts, data.domain.shape[0])
    if row >= 0:
        raise ValueError(
            f"Interactions.distinct = True is not allowed: in row {row} user {users[row]} has "
            f"item {data.items[row]} a second time; leave distinct out, or use one_per_item()"
        )


def refuse_other_attributes(domain: Domain) -> None:
    """A ValueError unless the domain is that of items and contexts."""
    if len(domain.shape) != 2:
        raise ValueError(
            f"Interactions.domain has attributes {domain.attributes}: need two, item and context"
        )


def refuse_outside(name: str, codes: np.ndarray, size: int) -> None:
    """A ValueError that names the first row whose code is outside 0 … size − 1."""
    if len(codes) and not 0 <= codes.min() <= codes.max() < size:
        row = int(np.argmax((codes < 0) | (codes >= size)))
        raise ValueError(
            f"{name}, row {row}: {codes[row]} is outside the domain: need 0 <= code < {size}"
        )


def whole_number(name: str, x: Any, low: int = 1, high: int | None = None) -> int:
    """A whole number in its range, or a ValueError."""
    is_whole = isinstance(x, int | np.integer) and not isinstance(x, bool)
    if not is_whole or x < low or (high is not None and x > high):
        limit = "" if high is None else f" and <= {high}"
        raise ValueError(f"{name} = {x!r} is not allowed: need a whole number >= {low}{limit}")
    return int(x)
