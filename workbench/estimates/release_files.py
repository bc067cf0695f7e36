"""Files of releases, in two formats: Parquet, or CSV with a separate JSON file.

The record of a release contains its guarantee and everything else that is not in the table. A Parquet file
contains the record in its metadata. For a CSV file `x.csv`, a second file `x.csv.json` contains the record,
the types of the columns, and the digest of the CSV file. With the digest, the workbench notices if the table
was changed after the release.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import msgspec

from workbench.compiled import csv, pa, parquet, pc, pd
from workbench.data import STATED, Bound
from workbench.estimates.files import Draft, file_sha256, sidecar, temporary_folder
from workbench.privacy import ADD_REMOVE, DP, WITHDRAWN, ZCDP, Receipt
from workbench.spaces.statements import (
    field_in_words,
    object_of_different_keys,
    refuse_constant,
)
from workbench.value import plain, shown

# Release files

ENDINGS = (".parquet", ".csv")
_MOST_DIGITS = 300
_BYTES_OF_A_RECORD = 2**14
_BYTES_OF_A_CELL = 96
_MOST_RESERVED = 2**26
_TYPES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 double float bool string".split()


def refuse_existing(path: Path, force: bool) -> None:
    """Raise a ValueError if the file `path` exists, unless `force` is True. Raise a FileNotFoundError if the
    folder of the file does not exist.
    """
    if os.path.lexists(path) and not force:  # a link that leads nowhere is a name, too
        raise ValueError(
            f"{path} exists: choose another name, or force=True (--force) to overwrite it"
        )
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"{path.absolute().parent}: no such folder")


def refuse_place(path: Path, force: bool) -> None:
    """Raise an error if a release cannot be written to this path, because of its ending, its folder or an
    existing file.
    """
    if path.suffix not in ENDINGS:
        raise ValueError(
            f"{path}: need a name that ends in .parquet or .csv, for example {path.stem or 'x'}.parquet. "
            "A Parquet file contains the guarantee. For a CSV file, it is in a second file (.csv.json)"
        )
    refuse_existing(path, force)
    if path.suffix == ".csv":
        refuse_existing(sidecar(path), force)
        refuse_existing(tables_folder(path), force)


def tables_folder(path: Path) -> Path:
    """Return the path of the folder for the tables of a release that is saved as a CSV file, for example
    `x.csv.tables`. If the release contains several marginals, the folder contains one table per marginal.
    """
    return path.with_name(f"{path.name}.tables")


def reserve(path: Path, data: Any) -> Draft:
    """Reserve disk space for a release of these data. Close the returned draft to free the space.

    The size of this space depends only on the domain, which is public. So an error for lack of disk space
    reveals nothing about the data.
    """
    cells = getattr(getattr(data, "domain", None), "size", 0)
    size = min(_MOST_RESERVED, _BYTES_OF_A_RECORD + _BYTES_OF_A_CELL * cells)
    try:
        draft = Draft(path)
        try:
            with open(draft.path, "r+b") as file:
                for start in range(0, size, 2**20):
                    file.write(bytes(min(2**20, size - start)))
        except BaseException:
            draft.close()
            raise
        return draft
    except OSError as e:
        is_full = e.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        wrong = (
            f"no room for a release of up to {size:,} bytes" if is_full else "cannot be written"
        )
        raise OSError(f"{path}: {wrong} ({e.strerror or e}). Nothing was spent") from None


def refuse_input(path: Path, inputs: Iterable[Path | None]) -> None:
    """Raise a ValueError if a release that is saved to `path` would overwrite one of the input files. For a
    CSV file, the JSON file next to it is also checked.

    A link to an input file is treated like this file.
    """
    for written in (path, sidecar(path)) if path.suffix == ".csv" else (path,):
        for given in inputs:
            if given is not None and _is_same_file(written, given):
                raise ValueError(
                    f"{written} is an input of this command and would be overwritten. Choose another name"
                )


def _is_same_file(one: Path, other: Path) -> bool:
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def write_release(
    table: pa.Table,
    record: dict[str, Any],
    path: Path,
    force: bool,
    marginals: Mapping[str, pd.DataFrame] = {},
) -> None:
    """Write the rows and the record of a release to a file. The ending of the file's name determines the
    format.

    If the release contains several marginals, a CSV file also gets a folder with one table per marginal.
    """
    refuse_place(path, force)
    if path.suffix == ".csv":
        _write_csv(table, record, path, force, marginals)
        return
    metadata = dict(table.schema.metadata or {})
    metadata[b"workbench"] = json.dumps(record).encode()
    table = table.replace_schema_metadata(metadata)
    with _draft(path) as draft:
        parquet.write_table(table, draft.path, compression="zstd")
        _publish(draft, force)


def for_readers(frame: pd.DataFrame, table: pa.Table) -> pa.Table:
    """Return a table with two kinds of columns. The first columns are for human readers. The workbench loads
    the release from the other columns.
    """
    if (
        len(frame) != table.num_rows
    ):  # synthetic records: the release is what they were drawn from
        return table
    texts = {
        name: frame[name].map(str) for name in frame.columns if frame[name].dtype == object
    }
    shown = pa.Table.from_pandas(frame.assign(**texts), preserve_index=False)
    columns = {name: shown[name] for name in shown.column_names}
    return pa.table(columns | {name: table[name] for name in table.column_names})


def _write_csv(
    table: pa.Table,
    record: dict[str, Any],
    path: Path,
    force: bool,
    marginals: Mapping[str, pd.DataFrame],
) -> None:
    """Write a CSV file and its JSON file. The JSON file is written first, so that there is never a CSV file
    without its guarantee.
    """
    plain = _plain_columns(table)
    with _draft(path) as draft, _draft(sidecar(path)) as beside:
        csv.write_csv(plain, draft.path)
        columns = {f.name: str(f.type) for f in plain.schema}
        described = {"sha256": {path.name: file_sha256(draft.path)}, "columns": columns}
        text = json.dumps(record | described, indent=1, ensure_ascii=False)
        beside.path.write_text(text + "\n", encoding="utf-8")
        _publish(beside, force)
        try:
            _write_marginals(marginals, tables_folder(path))
            _publish(draft, force)
        except BaseException:
            if not force:
                sidecar(path).unlink(missing_ok=True)
                _write_marginals({}, tables_folder(path))
            raise


def _write_marginals(marginals: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write a folder with one table per marginal. If an earlier release left such a folder, replace it."""
    if not marginals and not folder.exists():
        return
    with temporary_folder(str(folder.absolute().parent)) as room:
        if folder.exists():
            folder.rename(room / "old")
        if marginals:
            new = room / "new"
            new.mkdir()
            for name, frame in marginals.items():
                frame.to_csv(new / f"{name}.csv", index=False, lineterminator="\n")
            new.rename(folder)


def _plain_columns(table: pa.Table) -> pa.Table:
    """Return the columns in the form in which a CSV file stores them: labels as text, and large strings as
    plain strings.
    """
    columns = {}
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        kind = pa.string() if pa.types.is_large_string(kind) else kind
        columns[field.name] = table[field.name].cast(kind)
    return pa.table(columns)


@contextmanager
def _draft(path: Path) -> Iterator[Draft]:
    """Make a draft of the file `path`, and remove the draft afterwards. If the disk gives an error, the
    message contains `path`.
    """
    try:
        with closing(Draft(path)) as draft:
            yield draft
    except OSError as e:
        if str(e).startswith(str(path)):  # said of the file beside, whose name begins so
            raise
        raise OSError(f"{path} was not written: {e.strerror or e}") from None


def _publish(draft: Draft, force: bool) -> None:
    """Give a complete draft its final name. An existing file is replaced only if `force` is True."""
    path = draft.target
    with open(draft.path, "rb") as f:
        os.fsync(f.fileno())
    if force:
        draft.replace(path)
        return
    try:
        draft.link(path)  # fails where replace would silently overwrite
    except FileExistsError:
        refuse_existing(path, force)
    except OSError:  # no hard links on this file system
        open(path, "xb").close()
        draft.replace(path)


def read_release(path: str | Path) -> tuple[pa.Table, Record]:
    """Read the rows and the record of a release file. The function does not check whether the estimate is
    valid.

    Parameters
    ----------
    path : Path of the file, a Parquet file or a CSV file with its JSON file `x.csv.json`.

    Returns
    -------
    pyarrow.Table
        Rows of the release's table.
    Record
        Record of the release. Its texts contain only printable characters.

    Raises
    ------
    FileNotFoundError
        If the file does not exist, or if the JSON file of a CSV file does not exist.
    ValueError
        If the file is not a complete release of this workbench.
    """
    path = Path(path)
    record = read_record(path)
    if path.suffix == ".csv":
        return _csv_rows(path, record), record
    with _whole_parquet(path):
        return _parquet_rows(path), record


def _parquet_rows(path: Path) -> pa.Table:
    """Read the rows of a Parquet file. Raise a ValueError if the file has columns that releases do not have,
    or too many rows.
    """
    from workbench.data.sources import (
        refuse_bomb,  # it loads numpy: names are refused before that
    )

    size = path.stat().st_size
    metadata = parquet.read_metadata(path)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    refuse_bomb(path, size, bytes=sum(group.total_byte_size for group in groups))
    schema = parquet.read_schema(path)
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if str(kind) not in {*_TYPES, "large_string"}:
            raise ValueError(
                f"{path}: column {shown(field.name)} has type {str(kind)[:60]}, which no release has"
            )
    refuse_bomb(path, size, values=metadata.num_rows * metadata.num_columns)
    # places in a list, so that a long text in many rows is held once
    texts = [f.name for f in schema if str(f.type) in {"string", "large_string"}]
    table = parquet.read_table(path, read_dictionary=texts)
    table.validate(full=True)  # text that is not UTF-8 would end polars
    refuse_bomb(path, size, bytes=sum(map(_text_size, table.columns)))
    return table.cast(schema)


def _text_size(column: pa.ChunkedArray) -> int:
    """Return the total number of bytes of the texts in a column."""
    size = 0
    for chunk in column.chunks:
        if pa.types.is_dictionary(chunk.type):
            lengths = pc.binary_length(chunk.dictionary.cast(pa.large_string()))
            size += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    return size


def read_record(path: str | Path) -> Record:
    """Read the record of a release file, without the rows of its table.

    Parameters
    ----------
    path : Path of the file, as in `read_release`.

    Returns
    -------
    Record
        Record of the release. Its texts contain only printable characters.

    Raises
    ------
    FileNotFoundError, ValueError
        For the same reasons as in `read_release`, except for errors in the rows.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such release file")
    if path.name.endswith(".csv.json"):
        raise ValueError(f"{path} describes {str(path)[:-5]}. Name that file instead")
    if path.suffix not in ENDINGS:
        raise ValueError(
            f"{path} is not a release: need a .parquet file, or a .csv file with its .csv.json"
        )
    if path.suffix == ".csv":
        beside = sidecar(path)
        if not beside.is_file():
            raise FileNotFoundError(
                f"{path} is not a complete release: the file {beside} with its guarantee is missing"
            )
        return _record(beside, beside.read_bytes())
    with _whole_parquet(path):
        metadata = parquet.read_schema(path).metadata or {}
    if b"workbench" not in metadata:
        raise ValueError(f"{path} is a table, but not a release of this workbench")
    return _record(path, metadata[b"workbench"])


@contextmanager
def _whole_parquet(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as e:
        raise ValueError(f"{path}: not a complete Parquet file ({str(e)[:80]})") from None


def _csv_rows(path: Path, record: Record) -> pa.Table:
    """Read the rows of a CSV file. Raise a ValueError if the file was changed after it was written."""
    beside = sidecar(path)
    if len(record.sha256) != 1:
        raise ValueError(f"{beside} does not describe a CSV file of a release")
    if file_sha256(path) not in record.sha256.values():  # whatever name both have by now
        raise ValueError(
            f"{path} is not the file that {beside} describes: it was changed after it was released"
        )
    if not set(record.columns.values()) <= set(_TYPES):
        raise ValueError(f"{beside} names types of columns that releases do not have")
    types = {name: pa.type_for_alias(kind) for name, kind in record.columns.items()}
    try:
        return csv.read_csv(
            path,
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )
    except pa.ArrowException as e:
        raise ValueError(f"{path}: not a complete CSV file ({str(e)[:80]})") from None


class _Cost(msgspec.Struct):
    epsilon: str | None = None  # text, because it may be ∞
    rho: float | None = None
    delta: float = 0.0


class _Receipt(msgspec.Struct, forbid_unknown_fields=True):
    name: str  # its description
    cost: _Cost
    simulated: bool
    idealised: bool
    part: tuple[str, str] | None
    relation: str = ADD_REMOVE
    rho: float | None = None


class _Bound(msgspec.Struct):
    l0: int
    linf: float
    l1: float
    unit: str = ""
    status: str = STATED


class Record(msgspec.Struct):
    """Record of a release file: everything about the release that is not in its table. In older files, fields
    that have a default may be missing.
    """

    format: Literal[1]
    kind: str
    estimate: dict[str, Any]
    guarantee: str
    ledger: list[_Receipt]
    bound: _Bound | None
    simulated: bool
    mechanism: str
    versions: dict[str, str]
    commit: str | None = None
    command: str = ""
    counts: str = ""
    users_cut: int | None = None
    sha256: dict[str, str] = {}
    columns: dict[str, str] = {}


def _record(path: Path, text: bytes) -> Record:
    """Make the record of a release from its JSON text. If a field is wrong, raise a ValueError that names the
    field.
    """
    try:
        content = json.loads(
            text,
            object_pairs_hook=object_of_different_keys,
            parse_int=_whole_number,
            parse_constant=refuse_constant,
        )
        for field in {"guarantee", "ledger", "mechanism", "versions"} & set(content):
            content[field] = _printable(content[field])
        return msgspec.convert(content, Record)
    except msgspec.ValidationError as e:
        raise ValueError(f"{path}: ${field_in_words(e)}") from None
    except (ValueError, TypeError, RecursionError) as e:
        raise ValueError(f"{path}: not a record of a release ({str(e)[:120]})") from None


def _whole_number(text: str) -> int:
    """Read an integer from text. Raise a ValueError if the integer is larger than any float, because
    computations with it would fail later.
    """
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text):,} digits")
    return int(text)


def _printable(x: Any) -> Any:
    """Return the same object, with control characters in its texts replaced by escapes. Otherwise a terminal
    would execute them.
    """
    if isinstance(x, dict):
        return {_printable(key): _printable(item) for key, item in x.items()}
    if isinstance(x, list | tuple):
        return [_printable(item) for item in x]
    return plain(x) if isinstance(x, str) else x


# File records


def bound_record(bound: Bound) -> dict[str, Any]:
    """Return a bound in the form in which files store it. If no unit was given, the unit is left out."""
    return {name: x for name, x in asdict(bound).items() if x not in ("", STATED)}


def receipt_record(receipt: Receipt) -> dict[str, Any]:
    """Return a receipt in the form in which files store it. In the file, the name of the receipt also
    contains a remark, if its cost comes from a theorem or if the guarantee is withdrawn.
    """
    cost: Any = receipt.cost  # its ε may be ∞
    price = {"rho": cost.rho} if isinstance(cost, ZCDP) else {"epsilon": str(cost.epsilon)}
    return {
        "name": receipt.description,
        "cost": {**price, "delta": cost.delta},
        "relation": receipt.relation,
        "simulated": receipt.simulated,
        "idealised": receipt.idealised,
        "part": receipt.part,
        **({} if receipt.rho is None else {"rho": receipt.rho}),
    }


def promise_of_file(record: Record) -> tuple[tuple[Receipt, ...], Bound | None]:
    """Return the receipts and the bound from the record of a release file. If the workbench cannot have
    written one of the values, raise a ValueError that names this value.
    """
    ledger = []
    for i, stored in enumerate(record.ledger):
        try:
            ledger.append(_receipt_of_file(stored))
        except ValueError as e:
            raise ValueError(f"$.ledger[{i}]: not a receipt ({e})") from None
    if not ledger:
        raise ValueError("there is no receipt, so the cost of this release is unknown")
    try:
        bound = Bound(**msgspec.structs.asdict(record.bound)) if record.bound else None
    except ValueError as e:
        raise ValueError(f"$.bound: {e}") from None
    return tuple(ledger), bound


def _receipt_of_file(stored: _Receipt) -> Receipt:
    """Make a receipt from the form in which a file stores it. Remarks that `Receipt.description` had added to
    the name are removed.
    """
    fields = msgspec.structs.asdict(stored)
    name, by_theorem, theorem = stored.name.partition(" (by theorem: ")
    if by_theorem and theorem.endswith(")"):
        fields |= {"name": name, "theorem": theorem[:-1]}
    elif stored.name.endswith(f" {WITHDRAWN}"):
        fields |= {"name": stored.name.removesuffix(f" {WITHDRAWN}"), "withdrawn": True}
    cost = stored.cost
    if cost.rho is not None:
        return Receipt(**fields | {"cost": ZCDP(cost.rho, cost.delta)})
    return Receipt(**fields | {"cost": DP(float(cost.epsilon or ""), cost.delta)})
