"""Files as strangers make them: flipped bytes, cut ends, parts of other files, fields of wrong types."""

import json
import math
from copy import deepcopy

import pyarrow as pa
from hypothesis import strategies as st

_HUGE = (b"\xff" * 4, b"\xff" * 8, b"\xff\xff\xff\x7f", b"\xff" * 7 + b"\x7f", b"\0" * 8)
_EDITS = ("flip", "set", "huge", "cut", "drop", "repeat", "swap")

STRANGE = [  # what a field of JSON may hold and should not
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**53, 2**63, 2**64, -(2**63), 10**400, 0.5, -0.0),
    *(1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, "", "a", "0", "1", "nan", "inf"),
    *("-1", "1e999", "\x1b[2J", "\ud800", "é\u202e", "x" * 300, "None", "/dev/zero", "<b>"),
    *([], [None], [[]], [1], [-1], [0.5], ["a"], [1, 2, 3], [[1, 2], [3]], [{}], [10**400]),
    *({}, {"": 0}, {"kind": "Quadtree"}, {"from": 0, "to": 10**30}, {"labels": []}),
    *({"file": "/dev/zero"}, {"low": 0, "high": 1, "width": 1e-300}, {"low": 0, "high": 9}),
]


def damaged(wholes):
    """Bytes of one of the files `wholes`, after a few edits."""
    edit = st.tuples(
        st.sampled_from(_EDITS), st.floats(0, 1), st.floats(0, 1), st.integers(0, 255)
    )
    edits = st.lists(edit, min_size=1, max_size=5)
    return st.builds(_edited, st.sampled_from(wholes), edits, st.sampled_from(wholes))


def _edited(whole, edits, other):
    content = bytearray(whole)
    for kind, at, to, byte in edits:
        place = int(at * len(content))
        end = min(len(content), place + 1 + int(to**4 * len(content)))
        match kind:
            case "flip" if content[place:]:
                content[place] ^= 1 << byte % 8
            case "set":
                content[place : place + 1] = bytes([byte])
            case "huge":
                number = _HUGE[byte % len(_HUGE)]
                content[place : place + len(number)] = number
            case "cut":
                del content[place:]
            case "drop":
                del content[place:end]
            case "repeat":
                content[end:end] = content[place:end] * (1 + byte % 4)
            case "swap":  # the end of another file of this kind, as Parquet's footer is
                content[place:] = other[int(to * len(other)) :]
    return bytes(content)


def damaged_json(wholes):
    """One of the records `wholes`, in which one or two places hold something strange, or nothing."""
    strange = st.sampled_from(STRANGE)
    place = st.tuples(
        st.integers(0, 10**6), st.sampled_from(["put", "put", "put", "drop", "add"])
    )
    edits = st.lists(st.tuples(place, strange), min_size=1, max_size=2)
    return st.builds(_edited_json, st.sampled_from(wholes), edits)


def _edited_json(whole, edits):
    record = deepcopy(whole)
    for (number, kind), strange in edits:
        places = list(_places(record))
        if not places:
            return deepcopy(strange)
        holder, key = places[number % len(places)]
        if kind == "put":
            holder[key] = deepcopy(strange)
        elif kind == "drop":
            del holder[key]
        elif isinstance(holder, dict):
            holder["another"] = deepcopy(strange)
        else:
            holder.append(deepcopy(strange))
    return record


def _places(record):
    items = record.items() if isinstance(record, dict) else enumerate(record)
    for key, inner in items:
        yield record, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


def as_text(record) -> bytes:
    """JSON, with what JSON does not allow where the record holds it."""
    try:
        return json.dumps(record).encode()
    except (ValueError, RecursionError):
        return b"{}"


def damaged_table(whole):
    """A table of Arrow of which one or two columns are gone, empty, shorter, or of other values."""
    change = st.tuples(st.integers(0, 63), st.sampled_from(sorted(_COLUMNS)))
    return st.builds(_edited_table, st.just(whole), st.lists(change, min_size=1, max_size=2))


def _edited_table(table, changes):
    for number, kind in changes:
        if not table.num_columns:
            break
        i = number % table.num_columns
        column = _COLUMNS[kind](table.num_rows)
        if kind == "gone":
            table = table.remove_column(i)
        elif kind == "twice":
            table = table.append_column(table.column_names[i], table.column(i))
        elif kind == "none":
            table = table.slice(0, 0)
        elif kind == "reversed":
            table = table.take(pa.array(range(table.num_rows)[::-1], pa.int64()))
        else:
            table = table.set_column(i, table.column_names[i], column)
    return table


_COLUMNS = {
    "gone": lambda n: None,
    "twice": lambda n: None,
    "none": lambda n: None,
    "reversed": lambda n: None,
    "nulls": lambda n: pa.nulls(n, pa.int64()),
    "untyped": lambda n: pa.nulls(n),
    "zeros": lambda n: pa.array([0] * n, pa.int64()),
    "huge": lambda n: pa.array([2**63 - 1] * n, pa.int64()),
    "least": lambda n: pa.array([-(2**63)] * n, pa.int64()),
    "unsigned": lambda n: pa.array([2**64 - 1] * n, pa.uint64()),
    "nan": lambda n: pa.array([math.nan] * n),
    "inf": lambda n: pa.array([math.inf] * n),
    "small": lambda n: pa.array([-1] * n, pa.int8()),
    "text": lambda n: pa.array(["a"] * n),
    "bytes": lambda n: pa.array([b"\xff"] * n, pa.binary()),
    "lists": lambda n: pa.array([[1]] * n),
    "objects": lambda n: pa.array([{"a": 1}] * n),
    "times": lambda n: pa.array([0] * n, pa.timestamp("ns")),
    "truths": lambda n: pa.array([True] * n),
    "decimals": lambda n: pa.array([1] * n, pa.int32()).cast(pa.decimal128(20, 2)),
    "labels": lambda n: pa.array(["a"] * n).dictionary_encode(),
}
