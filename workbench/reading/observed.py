"""The domain of the values that occur, for whoever means to void the guarantee."""

from __future__ import annotations

from typing import Any

from workbench.domain import Domain
from workbench.reading.batches import Progress, row_batches, row_texts


def observed_domain(
    data: Any,
    *but: str | None,
    table: str | None = None,
    progress: Progress | None = None,
) -> Domain:
    """The values that occur in all columns but some, as text; they are not public knowledge."""
    texts: dict[str, set[str]] = {}
    for batch in row_batches(data, table=table, progress=progress):
        for name in batch.columns.keys() - set(but):
            texts.setdefault(name, set()).update(row_texts(batch, name).unique())
    if not texts:
        raise ValueError(f"{data} holds nothing to read a domain off")
    names = [name for name in batch.columns if name in texts]
    return Domain.from_dict({name: sorted(texts[name]) for name in names})
