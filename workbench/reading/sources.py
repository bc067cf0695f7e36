"""What a person names as a table as sources of rows: frames, files, folders, globs and databases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from workbench.libraries import pl
from workbench.reading.csv_file import CsvFile
from workbench.reading.database import DuckDbTable, SqliteTable
from workbench.reading.frames import Frame, is_frame
from workbench.reading.parquet_file import ParquetFile
from workbench.reading.source import Source, names_shown
from workbench.value import shown

_CONTENTS = (  # what a file's bytes begin with, from where
    (0, b"PAR1", "Parquet"),
    (0, b"\x1f\x8b", "gzip"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard"),
    (0, b"SQLite format 3\0", "SQLite"),
    (8, b"DUCK", "DuckDB"),
    (0, b"\xff\xfe", "UTF-16"),
    (0, b"\xfe\xff", "UTF-16"),
    (0, b"PK\x03\x04", "a zip archive or an Excel sheet"),
    (0, b"ARROW1", "Arrow"),
    (0, b"BZh", "bzip2"),
    (0, b"\xfd7zXZ", "xz"),
)
_NAMES = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".gz": "gzip",
    ".zst": "Zstandard",
    ".zstd": "Zstandard",
}
_ENDINGS = {"Parquet": ".parquet", "gzip": ".csv.gz", "Zstandard": ".csv.zst"}
_DATABASES = {"SQLite": SqliteTable, "DuckDB": DuckDbTable}
_READABLE = "need CSV (.csv, .csv.gz, .csv.zst), Parquet, or a DuckDB or SQLite file"


def open_sources(data: Any, table: str | None = None) -> list[Source]:
    """The sources of a table's rows, all with the same columns.

    Parameters
    ----------
    data : frame, path, list of paths, or Source
        A frame of pandas, polars or Arrow; a file; a folder, whose files are read; or a glob.
    table : str, optional
        The table of a DuckDB or SQLite file.

    Returns
    -------
    list of Source

    Raises
    ------
    ValueError
        A file whose content is not what its name says, or has other columns than the rest.
    FileNotFoundError
        No such file.
    """
    if is_frame(data):
        return [Frame(data)]
    if isinstance(data, Source):
        return [data]
    if isinstance(data, pl.LazyFrame):
        raise ValueError("a table in the making is not read: need frame.collect()")
    names = [data] if isinstance(data, str | Path) else data
    if not isinstance(names, list | tuple) or not all(isinstance(x, str | Path) for x in names):
        raise ValueError(
            f"{shown(data)} is no table: need a file, several, or a frame of pandas, polars or Arrow"
        )
    sources = [open_file(path, table) for path in files_of(names)]
    for source in sources[1:]:
        if set(source.names) != set(sources[0].names):
            raise ValueError(
                f"{source} has the columns {names_shown(source.names)}, and {sources[0]} has "
                f"{names_shown(sources[0].names)}: need the same in all files"
            )
    return sources


def files_of(names: Iterable[str | Path]) -> list[Path]:
    """The files that are meant by files, folders and globs, each once."""
    paths: list[Path] = []
    for name in names:
        path = Path(name)
        if not str(name):
            raise ValueError("'' names no file")
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if not p.name.startswith((".", "_")))
            if folders := [p for p in inside if p.is_dir()]:
                raise ValueError(f"{path} holds the folder {folders[0].name}: name its files")
            if not inside:
                raise ValueError(f"{path}: the folder is empty")
            paths += inside
        elif path.is_file():
            paths.append(path)
        elif not has_magic(str(name)):
            raise FileNotFoundError(f"{path}: no such file")
        elif matching := sorted(glob(str(name), recursive=True)):
            paths += [Path(file) for file in matching if not Path(file).is_dir()]
        else:
            raise FileNotFoundError(f"{name}: no file is called so")
    if not paths:
        raise ValueError("no file is named: need at least one")
    seen: dict[tuple[int, int], Path] = {}
    for path in paths:
        stat = path.stat()  # two links to one file have one number
        first = seen.setdefault((stat.st_dev, stat.st_ino), path)
        if first is not path:
            raise ValueError(
                f"{path} is named twice, also as {first}: its rows would count twice"
            )
    return paths


def open_file(path: Path, table: str | None) -> Source:
    """A file by its content, which has to be what its name says."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as e:
        raise ValueError(f"{path}: it cannot be read ({e.strerror})") from None
    content = _content(head)
    if content in _DATABASES:
        return _DATABASES[content](path, table)
    if table is not None:
        raise ValueError(f"{path} is no database, so that it has no table {table!r}")
    if content == "UTF-16":
        raise ValueError(f"{path}: its text is UTF-16: save the file as UTF-8")
    name = _NAMES.get(path.suffix.lower(), "text")
    if content != name and (head or name != "text"):
        ending = _ENDINGS.get(content)
        advice = f"if it is whole, call it {path.stem}{ending}" if ending else _READABLE
        raise ValueError(f"{path}: its name says {name}, its content is {content}: {advice}")
    if content == "Parquet":
        return ParquetFile(path)
    return CsvFile(path, {"gzip": "gzip", "Zstandard": "zstd"}.get(content))


def _content(head: bytes) -> str:
    """What a file holds, by its first bytes."""
    for start, signature, content in _CONTENTS:
        if head[start : start + len(signature)] == signature:
            return content
    if b"\0" not in head:
        return "text"
    zeros = max(head[::2].count(0), head[1::2].count(0))
    return "UTF-16" if zeros > len(head) // 4 else "no text"


def refuse_columns(sources: Sequence[Source], columns: Sequence[str]) -> None:
    """A ValueError unless each source has each of these columns once."""
    for source in sources:
        source.refuse_columns(columns)
