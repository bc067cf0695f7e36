"""Items and contexts of several attributes each, crossed; and rows of any source as records of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from workbench.contributions import UserNumbers
from workbench.domain import Domain
from workbench.interactions.reading import Columns, UserRecords, narrowest_type, sorted_by_user
from workbench.reading import all_rows, counted_rows

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
