"""Published CSV files read in blocks, and records of users sorted by user."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from workbench.compiled import pl
from workbench.data import Bound, Interactions, Unbounded
from workbench.data.columns import LabelledRows
from workbench.data.sources import names_shown, refuse_bomb
from workbench.datasets.compressed import file_on_disk, opened
from workbench.spaces import Domain
from workbench.value import Int, sealed

# Delimited

LONGEST_LINE = 1 << 22  # bytes
MOST_NAMES = 1 << 14  # of columns

_SIZE = 1 << 24  # bytes of text parsed at once
_MOST_FIELDS = 1 << 23  # of these
_QUOTED = re.compile(  # a line whose quotes are in order; nothing is tried twice
    rb'(?:(?:^|,)(?:"(?:[^"]++|"")*+"|[^",]*+))*+$'
)


class _Layout(NamedTuple):
    """How a file is written, and which of its columns are read."""

    columns: Sequence[str]
    names: Sequence[str]
    notes: str
    missing: Sequence[str]
    strip: str
    separator: str


def read_blocks(
    path: Path,
    columns: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    notes: str = "",
    missing: Sequence[str] = (),
    strip: str = " ",
    separator: str = ",",
) -> Iterator[LabelledRows]:
    """Some columns of a file in blocks, with a progress bar where someone watches.

    Without `names` the first line has them. Blank rows are passed over, and so are rows whose
    first field matches the pattern `notes` (comments, footnotes). A field in `missing`, or
    empty, is null. `strip` is taken off both ends of every field. A row with too few or too
    many fields, or with quotes out of order, is a ValueError that names file and line, and so is
    a line of more than 4,194,304 bytes, or a first one of more than 16,384 names. Another
    `separator` than the comma goes with `names`, and without quotes.
    """
    from tqdm import tqdm

    size = file_on_disk(path).stat().st_size
    bar = tqdm(total=size, desc=path.name, unit="B", unit_scale=True, leave=False, disable=None)
    with opened(path) as (stream, file), bar:
        line = 1
        if names is None:
            names = _header(path, stream)
            line = 2
        if absent := [column for column in columns if column not in names]:
            raise ValueError(
                f"{path}, line 1: no field {absent[0]!r} among {names_shown(names)}"
            )
        layout = _Layout(columns, names, notes, missing, strip, separator)
        most_lines = _MOST_FIELDS // (len(columns) + 3)
        rest = b""
        unpacked = 0
        while chunk := stream.read(_SIZE) or rest and b"\n":  # the last line may lack its end
            unpacked += len(chunk)
            refuse_bomb(path, size, bytes=unpacked)
            whole, end_of_line, rest = (rest + chunk).rpartition(b"\n")
            _refuse_long_line(path, line, whole + end_of_line + rest)
            if end_of_line:
                for text in _pieces(whole, most_lines):
                    block = _parsed(path, line, text, layout)
                    line += text.count(b"\n") + 1
                    if len(block.frame):
                        yield block
            bar.update(file.tell() - bar.n)


def field_names(path: Path) -> list[str]:
    """The names in the first line of a file; a ValueError if it is no such line."""
    with opened(path) as (stream, _):
        return _header(path, stream)


def read_lines(path: Path, *, notes: str = "") -> Iterator[LabelledRows]:
    """The lines of a file, each as the one column `line`, as `read_blocks` reads them."""
    return read_blocks(path, ("line",), ("line",), notes=notes, strip=" \t\r", separator="\0")


def _header(path: Path, stream: BinaryIO) -> list[str]:
    head = stream.readline(LONGEST_LINE + 1)
    _refuse_long_line(path, 1, head)
    text = head.decode("utf-8-sig", errors="replace").strip()
    try:
        names = [name.strip() for name in next(csv.reader([text]), ())]
    except csv.Error as e:
        raise ValueError(f"{path}: the first line names no columns ({e})") from None
    if len(names) > MOST_NAMES:
        raise ValueError(
            f"{path}, line 1: {len(names):,} names of columns, need at most {MOST_NAMES:,}"
        )
    return names


def _refuse_long_line(path: Path, line: int, text: bytes) -> None:
    """A ValueError if one of these lines, the first of that number, is longer than any table's."""
    start = 0
    while len(text) - start > LONGEST_LINE:
        end = text.rfind(b"\n", start, start + LONGEST_LINE + 1)
        if end < 0:
            line += text.count(b"\n", 0, start)
            raise ValueError(f"{path}, line {line}: more than {LONGEST_LINE:,} bytes")
        start = end + 1


def _pieces(text: bytes, most_lines: int) -> Iterator[bytes]:
    """The text in pieces of so many lines at most."""
    if text.count(b"\n") < most_lines:
        yield text
        return
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))[
        most_lines - 1 :: most_lines
    ]
    start = 0
    for end in [*ends.tolist(), len(text)]:
        yield text[start:end]
        start = end + 1


def _parsed(path: Path, line: int, text: bytes, layout: _Layout) -> LabelledRows:
    """The rows of a text that begins on a line."""
    # Columns are called by their place; the one after the last shows rows with too many fields.
    names = layout.names
    first = "0"
    last = str(len(names) - 1)
    beyond = str(len(names))
    places = {column: str(names.index(column)) for column in layout.columns}
    lines = np.arange(line, line + text.count(b"\n") + 1)
    frame = _parsed_text(text, [first, *places.values(), last, beyond], layout)
    if frame is None or len(frame) != len(lines):
        rows = enumerate(text.split(b"\n"))
        broken = next((i for i, row in rows if not _QUOTED.match(row.rstrip())), 0)
        raise ValueError(f"{path}, line {lines[broken]}: quotes are out of order")
    empty = [*layout.missing, ""]
    frame = frame.with_columns(pl.all().str.strip_chars(layout.strip).replace(empty, None))
    is_row = frame.select(~pl.all_horizontal(pl.all().is_null())).to_series()
    if not is_row.all():
        is_row = _with_other_fields(is_row, text, layout)
    if layout.notes:
        is_row &= ~frame[first].str.contains(layout.notes).fill_null(False)
    if not is_row.all():
        frame = frame.filter(is_row)
        lines = lines[is_row.to_numpy()]
    _refuse_width(
        frame[last].is_null(), path, lines, names, f"nothing in the last, {names[-1]!r}"
    )
    _refuse_width(frame[beyond].is_not_null(), path, lines, names, "")
    selected = [pl.col(place).alias(column) for column, place in places.items()]
    return LabelledRows(path, lines, frame.select(selected))


def _parsed_text(text: bytes, columns: Sequence[str], layout: _Layout) -> pl.DataFrame | None:
    """The fields of these places as text; None where no parser makes sense of it."""
    head = layout.separator.join(map(str, range(len(layout.names) + 1))).encode()
    try:
        return pl.read_csv(
            b"%s\n%s\n" % (head, text),
            columns=list(dict.fromkeys(columns)),
            infer_schema=False,
            encoding="utf8-lossy",
            separator=layout.separator,
            quote_char='"' if layout.separator == "," else None,
        )
    except pl.exceptions.ComputeError:
        return None


def _with_other_fields(is_row: pl.Series, text: bytes, layout: _Layout) -> pl.Series:
    """Rows that seem empty have fields all the same where something stands in other columns."""
    rows = text.split(b"\n")
    words = [re.escape(word.encode()) for word in layout.missing]
    blank = re.compile(b"|".join([rb"[\s,]", *words]))
    return pl.Series([row or bool(blank.sub(b"", rows[i])) for i, row in enumerate(is_row)])


def _refuse_width(
    bad: pl.Series, path: Path, lines: np.ndarray, names: Sequence[str], lacking: str
) -> None:
    """A ValueError about the first row with fewer (`lacking` what) or more fields than names."""
    if bad.any():
        line = lines[bad.to_numpy().argmax()]
        width = f"fewer than {len(names)} fields: {lacking}" if lacking else ""
        raise ValueError(f"{path}, line {line}: {width or f'more than {len(names)} fields'}")


# User records

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Block(NamedTuple):
    """Records of one piece of a file, and the line that each stands on."""

    path: Path
    lines: Int[np.ndarray, " rows"]
    users: Int[np.ndarray, " rows"]
    items: Int[np.ndarray, " rows"]
    contexts: Int[np.ndarray, " rows"]


@dataclass
class UserRecords:
    """Users, items and contexts of rows, and where in which file each row stands."""

    blocks: list[Block] = field(default_factory=list)

    def add(
        self,
        rows: LabelledRows,
        users: Int[np.ndarray, " rows"],
        items: Int[np.ndarray, " rows"],
        contexts: Int[np.ndarray, " rows"],
    ) -> None:
        """One record for each of some rows of a file."""
        lines = rows.lines.astype(np.int32)
        codes = users.astype(np.int32), items.astype(np.int32), contexts.astype(np.uint8)
        self.blocks.append(Block(rows.path, lines, *codes))

    def __len__(self) -> int:
        return sum(len(block.lines) for block in self.blocks)

    def interactions(
        self,
        domain: Domain,
        bound: Bound | Unbounded,
        counts: Int[np.ndarray, " rows"] | None = None,
        *,
        once: bool,
        truth_public: bool,
    ) -> Interactions:
        """The records; with `once`, a user and item that stand in two rows are a ValueError.

        `counts` says how many records each row stands for, in the order in which rows came.
        """
        users = self.column("users", np.int32)
        items = self.column("items", np.int32)
        contexts = self.column("contexts", np.uint8)
        if once:
            pairs = users.astype(np.int64) << 32 | items
            order = np.argsort(pairs, kind="stable")
            repeated = np.flatnonzero(np.diff(pairs[order]) == 0)
            if len(repeated):
                self._refuse_repeated(domain, int(order[repeated + 1].min()))
        else:
            order = np.argsort(users, kind="stable")
        if counts is not None:
            order = np.repeat(order, counts[order])
        if domain.shape[0] <= 2**16:
            items = items.astype(np.uint16)
        columns = [sealed(column[order]) for column in (users, items, contexts)]
        how: dict[str, Any] = dict(truth_public=truth_public, distinct=once and counts is None)
        return Interactions(domain, columns[0], columns[1], columns[2], bound, **how)

    def column(self, name: str, dtype: type) -> Int[np.ndarray, " records"]:
        """The users, items or contexts of all rows, in the order in which rows came."""
        return np.concatenate(
            [np.empty(0, dtype), *(getattr(block, name) for block in self.blocks)]
        )

    def _refuse_repeated(self, domain: Domain, row: int) -> None:
        for block in self.blocks:
            if row < len(block.lines):
                item = domain.decode("item", block.items[row : row + 1])[0]
                raise ValueError(
                    f"{block.path}, line {block.lines[row]}: found item {item} of user "
                    f"{block.users[row]} a second time, need one record at most of a user and item"
                )
            row -= len(block.lines)
