"""Preparation of a release: a draft of the domain file, and a check of a table for values that are not
allowed.
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
    """Draft a domain file, which lists the attributes of a table and their possible values. The draft has one
    attribute per column. If the type of a column does not determine an entry of the draft, the entry is the
    text FILL IN.

    The values that occur in a table are private. So the function reads only the names and types of the columns.
    For example, the function reads only the first line of a CSV file, and only the schema of a Parquet file.

    Parameters
    ----------
    data : frame, path, or list of paths
        Table as a data frame, or one or more files that contain the table.
    table : str, optional
        Name of the table, if the file is a DuckDB or SQLite database.

    Returns
    -------
    dict
        Attributes in the form that `Domain.from_dict` takes. Replace each FILL IN before you use the draft.

    Raises
    ------
    ValueError
        If a file cannot be read, or if two columns have the same name.
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
    """Return the draft of an attribute for a column of the given type. It contains FILL IN in place of each
    value that does not follow from the type.
    """
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
    """Return a domain with one attribute per column of a table. An attribute lists all values that occur in
    its column, as text. Columns that are named in `but` are left out. The domain is private, because it is
    computed from the data.
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
    """Report on one column with values that are not allowed in a release.

    Parameters
    ----------
    column : str
        Name of the column.
    need : str
        Text that says which values are allowed.
    rows : int
        Number of rows in which this column contains such a value.
    examples : dict of str
        Up to five of these values as text, each with the place where it occurs first.
    """

    column: str
    need: str
    rows: int = 0
    examples: dict[str, str] = field(default_factory=dict)


@dataclass
class TableCheck:
    """Result of a check of a table, which lists the values that are not allowed in a release. The result
    describes private data, so do not publish it.

    Parameters
    ----------
    rows : int
        Number of rows in the table.
    left_out : int
        Number of rows that a rule of the domain leaves out.
    refused : list of RefusedColumn
        Columns that contain values that are not allowed. The columns of the domain come first, then the
        column of counts and the column of users.
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
    """Find all values in a table that are not allowed in a release, for example because they are not in the
    domain. The function reads the rows in batches, and does not keep the rows in memory.

    If the check finds values that are not in the domain, do not add labels for these values. The domain would
    then depend on private data. Instead, state in the domain what happens to values without a label.

    Parameters
    ----------
    data : frame, path, or list of paths
        Table as a data frame, or one or more files that contain the table, in any form that
        `SparseTable.read` takes.
    domain : Domain
        Domain that lists the possible values.
    count, user : str, optional
        Names of the columns that contain counts and users.
    user_type : "text", optional
        With "text", users are read as text, so that 7 and 007 are two people.
    table, progress : str and callable, optional
        `table` is the name of a table in a database file. `progress` is a function that is called with two
        numbers: how many bytes were read so far, and how many bytes there are in total, as in
        `SparseTable.read`.

    Returns
    -------
    TableCheck

    Raises
    ------
    ValueError
        If a file cannot be read, if a column is missing, or if a rule of the domain cannot read the type of a
        column.
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
