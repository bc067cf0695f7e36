"""Checks before a release: a draft of a table's domain, and a list of the rows that a release would
refuse.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.compiled import pl
from workbench.data.reading import (
    Progress,
    missing_in,
    open_sources,
    prepared_rows,
    row_batches,
)
from workbench.data.sources import found_text
from workbench.data.users import UserNumbers
from workbench.spaces import Domain
from workbench.spaces.rules import as_texts
from workbench.spaces.statements import BLANK

# Drafts

_RESERVED = {"count", "noisy", "truth_public"}  # no attribute is called so
_ACTIONS = {"other": "refuse", "missing": "refuse"}


def draft_domain(data: Any, table: str | None = None) -> dict[str, Any]:
    """Draft a domain file, which lists the attributes of a table and their possible values. The draft has an
    attribute for each column, and blanks that you replace by the values.

    The list of values that occur is private. The function therefore reads no value of the table, and no
    statistics or dictionaries of Parquet files. For a CSV file, it reads the names of columns in the first
    line.

    Parameters
    ----------
    data : frame, path, or list of paths
        The table.
    table : str, optional
        Name of a table in a DuckDB or SQLite file.

    Returns
    -------
    dict
        Argument for `Domain.from_dict`. First fill in each `BLANK`, or the error names the blanks.

    Raises
    ------
    ValueError
        If a file cannot be read, or two columns have one name.
    """
    source = open_sources(data, table)[0]
    source.refuse_columns(source.names)
    types = source.types()
    draft = {}
    for column in source.names:
        stated = _stated(types.get(column))
        if column in _RESERVED:
            stated = stated if isinstance(stated, dict) else {"labels": [stated]}
            draft[f"{column}_"] = stated | {"column": column}
        else:
            draft[column] = stated
    return draft


def _stated(kind: pl.DataType | None) -> Any:
    """Return the draft of a column of this type, with a blank for each value."""
    if kind is None or kind.is_nested() or kind == pl.Null:
        return BLANK
    if kind == pl.Boolean:
        stated: dict[str, Any] = {"labels": [False, True]}
    elif kind.is_integer():
        stated = {"from": BLANK, "to": BLANK}
    elif kind.is_numeric():
        stated = {"low": BLANK, "high": BLANK, "width": BLANK, "closed": "left"}
    elif isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        stated = {"time": BLANK, "zone": BLANK}
    elif kind.is_temporal():
        stated = {"time": "hour" if kind == pl.Time else BLANK}
    else:
        stated = {"labels": [BLANK]}
    return stated | _ACTIONS


# Observed


def observed_domain(
    data: Any,
    *but: str | None,
    table: str | None = None,
    progress: Progress | None = None,
) -> Domain:
    """Return the values that occur in all columns of a table except the named ones, as text. These values are
    private.
    """
    texts: dict[str, set[str]] = {}
    for batch in row_batches(data, table=table, progress=progress):
        for name in set(batch.frame.columns) - set(but):
            values = batch.frame[name]
            batch.refuse([(name, "a value", missing_in(values))])
            texts.setdefault(name, set()).update(as_texts(values).unique())
    if not texts:
        raise ValueError(f"{data} holds nothing to read a domain off")
    names = [name for name in batch.frame.columns if name in texts]
    return Domain.from_dict({name: sorted(texts[name]) for name in names})


# Checks

_EXAMPLES = 5  # different values of a column that are shown


@dataclass
class RefusedColumn:
    """Values of one column that a release would refuse.

    Parameters
    ----------
    column : str
        Name of the column.
    need : str
        Values that are allowed.
    rows : int
        Number of rows that are refused because of this column.
    examples : dict of str
        The first different values, as text, with the place where each occurs first.
    """

    column: str
    need: str
    rows: int = 0
    examples: dict[str, str] = field(default_factory=dict)


@dataclass
class TableCheck:
    """Values of a table that a release would refuse. They describe private data, so do not publish them.

    Parameters
    ----------
    rows : int
        Number of rows of the table.
    left_out : int
        Number of rows that a rule of the domain drops.
    refused : list of RefusedColumn
        Columns of the domain in which rows are refused, then those of counts and users.
    """

    rows: int = 0
    left_out: int = 0
    refused: list[RefusedColumn] = field(default_factory=list)


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
    """Find all values of a table that a release would refuse, for example because they are not in the domain.
    The function reads the rows in batches and does not keep them.

    Do not add labels to a domain because of this check, because the domain would then depend on private
    data. State instead what happens to other values.

    Parameters
    ----------
    data : frame, path, or list of paths
        Table in any form that `SparseTable.read` or `from_frame` takes.
    domain : Domain
        All possible cells.
    count, user : str, optional
        Columns of counts and of users.
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
        If a file cannot be read, or a column is missing or of a type that no rule reads.
    """
    check = TableCheck()
    users = None if user is None else UserNumbers(user, user_type, domain.missing_user)
    found: dict[tuple[str, str], RefusedColumn] = {}
    how: Any = {"count": count, "users": users, "table": table, "progress": progress}
    rules = domain.columns, domain.row_keys
    for rows, batch, refused in prepared_rows(data, *rules, refuse=False, **how):
        check.rows += batch.size
        check.left_out += batch.size - rows.keys.shape[-1]
        for name, need, bad in refused:
            if places := np.flatnonzero(bad).tolist():
                column = found.setdefault((name, need), RefusedColumn(name, need))
                column.rows += len(places)
                values = batch.frame[name].gather(places)
                for first in values.arg_unique().sort()[:_EXAMPLES]:
                    if len(column.examples) < _EXAMPLES:
                        place = batch.place(places[first])
                        column.examples.setdefault(found_text(values[first]), place)
    check.refused = [*found.values()]
    return check
