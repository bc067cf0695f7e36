"""Files as strangers make them: flipped bytes, cut ends, parts of other files, fields of wrong types."""

import gzip
import io
import json
import lzma
import math
import sqlite3
import zipfile
from contextlib import closing, suppress
from copy import deepcopy
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from workbench.owner import ledger

_HUGE = (b"\xff" * 4, b"\xff" * 8, b"\xff\xff\xff\x7f", b"\xff" * 7 + b"\x7f", b"\0" * 8)
_KINDS = st.sampled_from(("flip", "set", "huge", "cut", "drop", "repeat", "swap"))
_EDIT = st.tuples(_KINDS, st.floats(0, 1), st.floats(0, 1), st.integers(0, 255))
_OFTEN = st.sampled_from([True, True, True, True, False])
_EDITS = st.lists(_EDIT, min_size=1, max_size=5)

STRANGE = [  # what a field of JSON may hold and should not
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**53, 2**63, 2**64, -(2**63), 10**400, 0.5, -0.0),
    *(1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, "", "a", "0", "1", "nan", "inf"),
    *("-1", "1e999", "\x1b[2J", "\ud800", "é\u202e", "x" * 300, "None", "/dev/zero", "<b>"),
    *([], [None], [[]], [1], [-1], [0.5], ["a"], [1, 2, 3], [[1, 2], [3]], [{}], [10**400]),
    *({}, {"": 0}, {"kind": "Quadtree"}, {"from": 0, "to": 10**30}, {"labels": []}),
    *({"file": "/dev/zero"}, {"low": 0, "high": 1, "width": 1e-300}, {"low": 0, "high": 9}),
]
_CELLS = [None, 0, -1, 0.25, 1e308, "nan", "{", b"\xff", b"\0" * 32, '["r", 0, 1e99]']
_VALUES = [  # of a column, and of which type
    *((None, pa.int64()), (None, pa.null()), (0, pa.int64()), (2**63 - 1, pa.int64())),
    *((-(2**63), pa.int64()), (2**64 - 1, pa.uint64()), (math.nan, None), (math.inf, None)),
    *((-1, pa.int8()), ("a", None), (b"\xff", pa.binary()), ([1], None), ({"a": 1}, None)),
    *((0, pa.timestamp("ns")), (True, None), (Decimal(1), pa.decimal128(20, 2))),
    ("a", pa.dictionary(pa.int32(), pa.string())),
]
_TABLES = [
    lambda table, i: table.remove_column(i),
    lambda table, i: table.append_column(table.column_names[i], table.column(i)),
    lambda table, i: table.slice(0, 0),
    lambda table, i: table.take(pa.array(range(table.num_rows)[::-1], pa.int64())),
]


def write_damaged(folder, wholes, draw):
    """One of the `wholes`, each some files by name, the first of them most often damaged."""
    files = dict(draw(st.sampled_from(wholes)))
    hurt = draw(st.sampled_from([*files, next(iter(files))]))
    before, other = files[hurt], draw(st.sampled_from(wholes)).get(hurt, b"")
    if other and len(files) > 1 and not draw(_OFTEN):
        files[hurt] = other
    else:
        files[hurt] = _damaged(draw, hurt, before, other)
    old, new = (sha256(content).hexdigest().encode() for content in (before, files[hurt]))
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # a digest beside it fits, or nothing else is looked at
        path.write_bytes(content.replace(old, new))


def _damaged(draw, name, whole, other):
    """Its bytes, or what its kind of file holds."""
    inside = _INSIDE.get(Path(name).suffix)
    if inside and draw(_OFTEN):
        return inside(draw, whole, other)
    return _edited(whole, draw(_EDITS), other)


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


def _edited_record(draw, whole):
    """One or two places of a record hold something strange, or nothing."""
    record = deepcopy(whole)
    for _ in range(draw(st.integers(1, 2))):
        strange = deepcopy(draw(st.sampled_from(STRANGE)))
        places = list(_places(record))
        if not places:
            return strange
        holder, key = places[draw(st.integers(0, 10**6)) % len(places)]
        match draw(st.sampled_from(["put", "put", "put", "drop", "add"])):
            case "put":
                holder[key] = strange
            case "drop":
                del holder[key]
            case _ if isinstance(holder, dict):
                holder["another"] = strange
            case _:
                holder.append(strange)
    return record


def _places(record):
    if isinstance(record, dict | list):
        for key, inner in record.items() if isinstance(record, dict) else enumerate(record):
            yield record, key
            yield from _places(inner)


def as_text(record) -> bytes:
    """JSON, with what JSON does not allow where the record holds it."""
    try:
        return json.dumps(record).encode()
    except (ValueError, RecursionError):
        return b"{}"


def _edited_json(draw, whole, other):
    return as_text(_edited_record(draw, json.loads(whole)))


def _edited_parquet(draw, whole, other):
    """Its columns, or the record of a release."""
    table = pq.read_table(io.BytesIO(whole))
    record = (table.schema.metadata or {}).get(b"workbench")
    if record and draw(st.booleans()):
        others = pq.read_schema(io.BytesIO(other)).metadata[b"workbench"]
        record = draw(st.sampled_from([_edited_json(draw, record, b"")] * 3 + [others]))
        return parquet_bytes(table, record)
    for _ in range(draw(st.integers(1, 2))):
        if table.num_columns:
            i = draw(st.integers(0, 63)) % table.num_columns
            edit = draw(st.sampled_from([*_TABLES, *_VALUES]))
            if callable(edit):
                table = edit(table, i)
            else:
                column = pa.array([edit[0]] * table.num_rows, edit[1])
                table = table.set_column(i, table.column_names[i], column)
    return parquet_bytes(table, record)


def parquet_bytes(table, record=None) -> bytes:
    """A table, and as `Release.save` writes it whatever the text of its record is."""
    if record is not None:
        metadata = {**(table.schema.metadata or {}), b"workbench": record}
        table = table.replace_schema_metadata(metadata)
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def _edited_session(draw, whole, other):
    """A cell of its ledger or bank; or what it says of itself, with a checksum that fits."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.session"
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as db:
            with suppress(sqlite3.Error, ValueError):
                if draw(st.booleans()):
                    texts = db.execute("SELECT * FROM about WHERE name <> 'checksum'")
                    record = {name: json.loads(text) for name, text in texts}
                    record = _edited_record(draw, record)
                    if isinstance(record, dict):
                        db.execute("DELETE FROM about")
                        ledger._write_about(db, record)
                else:
                    table = draw(st.sampled_from(["bank", "ledger"]))
                    columns = [
                        name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")
                    ]
                    db.execute("DROP TRIGGER paid")
                    cell = (draw(st.sampled_from(_CELLS)),)
                    db.execute(f"UPDATE {table} SET {draw(st.sampled_from(columns))} = ?", cell)
            db.commit()
        return path.read_bytes()


def packed_zip(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", content)
    return out.getvalue()


def _unpacked_zip(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(archive.namelist()[0])


PACKS = {
    "": (bytes, bytes),
    ".gz": (lambda content: gzip.compress(content, mtime=0), gzip.decompress),
    ".zst": (
        lambda content: pa.compress(content, codec="zstd", asbytes=True),
        lambda content: pa.CompressedInputStream(io.BytesIO(content), "zstd").read(),
    ),
    ".xz": (lzma.compress, lzma.decompress),
    ".zip": (packed_zip, _unpacked_zip),
}


def _before_packing(ending):
    pack, unpack = PACKS[ending]

    def edited(draw, whole, other):
        return pack(_edited(unpack(whole), draw(_EDITS), unpack(other) if other else b""))

    return edited


_INSIDE = {
    ".json": _edited_json,
    ".parquet": _edited_parquet,
    ".session": _edited_session,
    **{ending: _before_packing(ending) for ending in PACKS if ending},
}
