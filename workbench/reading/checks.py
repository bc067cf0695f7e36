"""What a release of a table would refuse, for the eyes of its owner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.cell_counts import is_no_count
from workbench.contributions import UserNumbers
from workbench.domain import Domain
from workbench.preparation.rows import Refusal, examples_of
from workbench.reading.batches import Progress, row_batches, whole_counts_of
from workbench.reading.source import Batch
from workbench.value import shown

_EXAMPLES = 5


@dataclass
class RefusedColumn:
    """What is refused in one column.

    Parameters
    ----------
    column : str
        The column.
    need : str
        What its values have to be.
    rows : int
        How many rows are refused because of it.
    examples : dict of str
        The first different values, as text, and the place that each first stands in.
    """

    column: str
    need: str
    rows: int = 0
    examples: dict[str, str] = field(default_factory=dict)


@dataclass
class TableCheck:
    """What a release of a table would refuse. It tells about the data, and is not to be published.

    Parameters
    ----------
    rows : int
        How many the table has.
    left_out : int
        How many of them a rule of the domain drops.
    refused : list of RefusedColumn
        Columns of the domain in which rows are refused; then those of counts and users.
    """

    rows: int = 0
    left_out: int = 0
    refused: list[RefusedColumn] = field(default_factory=list)

    def _add(self, batch: Batch, refusal: Refusal) -> None:
        column = next(
            (x for x in self.refused if x.column == refusal.column and x.need == refusal.need),
            None,
        )
        if column is None:
            column = RefusedColumn(refusal.column, refusal.need)
            self.refused.append(column)
        column.rows += refusal.count
        for value, row in refusal.examples.items():
            text = "nothing" if value is None else shown(value)
            if len(column.examples) < _EXAMPLES and text not in column.examples:
                column.examples[text] = batch.source.place(batch.first_row + row)


def check_table(
    data: Any,
    domain: Domain,
    *,
    count: str | None = None,
    user: str | None = None,
    user_type: str | None = None,
    table: str | None = None,
    progress: Progress | None = None,
) -> TableCheck:
    """Which rows of a table a release would refuse, all at once; nothing is kept of it.

    Labels that are added to a domain because of what this says make the domain private: better say what
    becomes of other values.

    Parameters
    ----------
    data : frame, path, or list of paths
        As `SparseTable.read` and `from_frame` take it.
    domain : Domain
        Which cells there can be.
    count, user : str, optional
        The columns of counts and of users.
    user_type : "text", optional
        Read users as text, as in `SparseTable.from_frame`.
    table, progress
        As in `SparseTable.read`.

    Returns
    -------
    TableCheck

    Raises
    ------
    ValueError
        A file that cannot be read, or a column that is missing or of a type that no rule reads.
    """
    check = TableCheck()
    users = None if user is None else UserNumbers(user, user_type)
    columns = [name for name in (*domain.columns, count, user) if name is not None]
    for batch in row_batches(data, columns, table=table, progress=progress, user=user):
        refusals, left_out = domain.refusals(batch.columns)
        check.rows += len(batch.columns[columns[0]])
        check.left_out += left_out
        for refusal in [
            *refusals,
            *_refused_counts(batch, count),
            *_refused_users(batch, users),
        ]:
            check._add(batch, refusal)
    return check


def _refused_counts(batch: Batch, count: str | None) -> Iterator[Refusal]:
    if count is not None:
        bad = is_no_count(whole_counts_of(batch, count))
        if bad.any():
            examples = examples_of(batch.columns[count], np.flatnonzero(bad))
            yield Refusal(count, "a whole number >= 0", int(bad.sum()), examples)


def _refused_users(batch: Batch, users: UserNumbers | None) -> Iterator[Refusal]:
    if users is not None:
        for need, bad in users.refused(batch.columns[users.column]):
            if bad.any():
                examples = examples_of(batch.columns[users.column], np.flatnonzero(bad))
                yield Refusal(users.column, need, int(bad.sum()), examples)
