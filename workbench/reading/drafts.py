"""A domain drafted from the names and types of columns, never from what stands in them."""

from __future__ import annotations

from typing import Any

from workbench.libraries import pa
from workbench.preparation.statements import BLANK
from workbench.reading.sources import open_sources

_RESERVED = {"count", "noisy", "truth_public"}  # no attribute is called so
_ACTIONS = {"other": "refuse", "missing": "refuse"}


def draft_domain(data: Any, table: str | None = None) -> dict[str, Any]:
    """The beginning of a domain's file: an attribute a column, what values there can be left blank.

    No value of the table is read, nor the least and largest values or lists of values that files keep
    beside their columns: which values occur is private. Of a CSV file the first line is read.

    Parameters
    ----------
    data : frame, path, or list of paths
        Whose columns.
    table : str, optional
        The table of a DuckDB or SQLite file.

    Returns
    -------
    dict
        What `Domain.from_dict` reads once each `BLANK` is filled in; until then it refuses them by name.

    Raises
    ------
    ValueError
        A file that cannot be read, or a column's name that stands there twice.
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


def _stated(kind: pa.DataType | None) -> Any:
    """What is said of a column of this type: everything but the values."""
    if kind is None:
        return BLANK
    if pa.types.is_boolean(kind):
        return {"labels": [False, True], **_ACTIONS}
    if pa.types.is_integer(kind):
        return {"from": BLANK, "to": BLANK, **_ACTIONS}
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return {"low": BLANK, "high": BLANK, "width": BLANK, "closed": "left", **_ACTIONS}
    if pa.types.is_timestamp(kind):
        zone = {} if kind.tz is None else {"zone": BLANK}
        return {"time": BLANK, **zone, **_ACTIONS}
    if pa.types.is_date(kind):
        return {"time": BLANK, **_ACTIONS}
    if pa.types.is_time(kind):
        return {"time": "hour", **_ACTIONS}
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return BLANK
    return {"labels": [BLANK], **_ACTIONS}
