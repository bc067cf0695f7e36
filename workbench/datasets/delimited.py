"""Comma-separated files as published: selected fields, in blocks; errors name file and line."""

from __future__ import annotations

import csv
import gzip
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from jaxtyping import Int

if TYPE_CHECKING:
    import polars as pl

_SIZE = 1 << 24  # bytes of text parsed at once
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile)
_QUOTED = re.compile(rb'((^|,)("([^"]|"")*"|[^",]*))*$')  # a line whose quotes are in order


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The decompressed bytes of a file, and the file itself, whose position tells the progress.

    The suffix decides: .gz, .xz, .zip (its member of the same name, its only one, or its only
    .csv), else plain. A file that ends early, or is not what its suffix says, is a ValueError.
    """
    with ExitStack() as stack:
        raw = stack.enter_context(path.open("rb"))
        try:
            match path.suffix:
                case ".gz":
                    stream = gzip.open(raw)
                case ".xz":
                    stream = lzma.open(raw)
                case ".zip":
                    archive = stack.enter_context(zipfile.ZipFile(raw))
                    names = archive.namelist()
                    names = [n for n in names if Path(n).name == path.stem] or names
                    if len(names) > 1:
                        names = [n for n in names if n.endswith(".csv")] or names
                    if len(names) != 1:
                        raise ValueError(f"{path} holds {names}: need one file, {path.stem}")
                    stream = archive.open(names[0])
                case _:
                    stream = raw
            yield stack.enter_context(stream), raw
        except _DAMAGED as e:
            raise ValueError(
                f"{path} is damaged or ends early ({e}); delete it and fetch it again"
            ) from None


@dataclass
class Block:
    """Some rows of a file: the selected fields as text, and the line each row stands on."""

    path: Path
    lines: Int[np.ndarray, " rows"]
    frame: pl.DataFrame

    def refuse(self, bad: pl.Series, field: str, need: str) -> None:
        """A ValueError that names file, line, field and value of the first bad or null row."""
        if (bad := bad.fill_null(True)).any():
            row = int(bad.to_numpy().argmax())
            found = self.frame[field][row]
            found = "nothing" if found is None else repr(found)
            raise ValueError(
                f"{self.path}, line {self.lines[row]}, field {field!r}: "
                f"found {found}, need {need}"
            )

    def drop(self, fields: Sequence[str], word: str) -> int:
        """Leaves out the rows that have `word` in one of the fields; says how many."""
        out = np.zeros(len(self.lines), bool)
        for field in fields:
            out |= (self.frame[field] == word).fill_null(False).to_numpy()
        self.frame, self.lines = self.frame.filter(~out), self.lines[~out]
        return int(out.sum())

    def codes(self, field: str, labels: Any, need: str = "") -> Int[np.ndarray, " rows"]:
        """Places in a public list: a sequence of labels, their polars Enum, or a `range`."""
        import polars as pl

        if isinstance(labels, range):
            need = need or f"a whole number from {labels[0]} to {labels[-1]}"
            codes = self.frame[field].cast(pl.Int64, strict=False) - labels[0]
            self.refuse(~codes.is_between(0, len(labels) - 1), field, need)
        else:
            known = labels if isinstance(labels, pl.Enum) else pl.Enum(labels)
            need = need or f"one of {', '.join(known.categories)}"
            codes = self.frame[field].cast(known, strict=False).to_physical()
            self.refuse(codes.is_null(), field, need)
        return codes.to_numpy().astype(np.int64)

    def counts(self, field: str) -> Int[np.ndarray, " rows"]:
        """Whole numbers of at least 1; commas between thousands are read over."""
        import polars as pl

        text = self.frame[field].str.replace_all(",", "", literal=True)
        counts = text.cast(pl.Int64, strict=False)
        self.refuse(counts < 1, field, "a whole number >= 1")
        return counts.to_numpy()


def read(
    path: Path,
    wanted: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    notes: str = "",
    missing: Sequence[str] = (),
    strip: str = " ",
    separator: str = ",",
) -> Iterator[Block]:
    """The `wanted` fields of a file in blocks, with a progress bar where someone watches.

    Without `names` the first line has them. Blank rows are passed over, and so are rows whose
    first field matches the pattern `notes` (comments, footnotes). A field in `missing`, or
    empty, is null. `strip` is taken off both ends of every field. A row with too few or too
    many fields, or with quotes out of order, is a ValueError that names file and line. Another
    `separator` than the comma goes with `names`, and without quotes.
    """
    from tqdm import tqdm

    size, line, rest = path.stat().st_size, 1, b""
    bar = tqdm(total=size, desc=path.name, unit="B", unit_scale=True, leave=False, disable=None)
    with opened(path) as (stream, raw), bar:
        if names is None:
            head = stream.readline().decode("utf-8-sig", errors="replace").strip()
            names, line = [name.strip() for row in csv.reader([head]) for name in row], 2
        if absent := [field for field in wanted if field not in names]:
            raise ValueError(f"{path}, line 1: no field {absent[0]!r} among {list(names)}")
        while chunk := stream.read(_SIZE) or rest and b"\n":  # the last line may lack its end
            text, cut, rest = (rest + chunk).rpartition(b"\n")
            if cut:
                block = _parse(
                    path, line, text, wanted, names, notes, missing, strip, separator
                )
                line += text.count(b"\n") + 1
                if len(block.lines):
                    yield block
            bar.update(raw.tell() - bar.n)


def lines(path: Path, *, notes: str = "") -> Iterator[Block]:
    """The lines of a file, each as the one field `line`, as `read` reads them."""
    return read(path, ("line",), ("line",), notes=notes, strip=" \t\r", separator="\0")


def _parse(path, line, text, wanted, names, notes, missing, strip, separator) -> Block:
    import polars as pl

    # Columns are called by their place; the one after the last shows rows with too many fields.
    first, last, over = "0", str(len(names) - 1), str(len(names))
    where = {field: str(names.index(field)) for field in wanted}
    lines = np.arange(line, line + text.count(b"\n") + 1)
    try:
        frame = pl.read_csv(
            b"%s\n%s\n" % (separator.join(map(str, range(len(names) + 1))).encode(), text),
            columns=list(dict.fromkeys([first, *where.values(), last, over])),
            infer_schema=False,
            encoding="utf8-lossy",
            separator=separator,
            quote_char='"' if separator == "," else None,
        )
    except pl.exceptions.ComputeError:
        frame = None
    if frame is None or len(frame) != len(lines):
        rows = enumerate(text.split(b"\n"))
        broken = next((i for i, row in rows if not _QUOTED.match(row.rstrip())), 0)
        raise ValueError(f"{path}, line {lines[broken]}: quotes are out of order")
    frame = frame.with_columns(pl.all().str.strip_chars(strip).replace([*missing, ""], None))
    kept = frame.select(~pl.all_horizontal(pl.all().is_null())).to_series()
    if not kept.all():  # a row may have fields all the same, where we do not look
        rows = text.split(b"\n")
        blank = re.compile(b"|".join([rb"[\s,]", *(re.escape(m.encode()) for m in missing)]))
        kept = pl.Series([k or bool(blank.sub(b"", rows[i])) for i, k in enumerate(kept)])
    if notes:
        kept &= ~frame[first].str.contains(notes).fill_null(False)
    if not kept.all():
        frame, lines = frame.filter(kept), lines[kept.to_numpy()]
    for bad, what in (
        (frame[last].is_null(), "fewer"),
        (frame[over].is_not_null(), "more"),
    ):
        if bad.any():
            at = lines[bad.to_numpy().argmax()]
            lacks = f": nothing in the last, {names[-1]!r}" if what == "fewer" else ""
            raise ValueError(f"{path}, line {at}: {what} than {len(names)} fields{lacks}")
    return Block(path, lines, frame.select(pl.col(at).alias(f) for f, at in where.items()))
