"""Files of published datasets. The functions of this module find, download and verify these files.

The workbench looks for a file in two folders. The first is the one that the environment variable
WORKBENCH_DATA names. The second is `data/raw/` in the project. In each folder, the file may be directly in
the folder or in the dataset's subfolder, for example `adult/`. The file may be compressed, or in its
publisher's archive, which you need not unpack. Only the function `fetch` downloads files, and it writes only
to `data/raw/`.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime
from itertools import product
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from workbench import compiled
from workbench.compiled import pl, project_folder
from workbench.data import Bound, SparseTable, row_batches
from workbench.data.cells import CellCounts
from workbench.data.sources import CSV, Batch, CsvFile, Layout
from workbench.spaces import Domain
from workbench.spaces.labels import Labels
from workbench.value import sealed, value

# Columns

_EVER = datetime.min, datetime.max
LINE = "line"
LINES = Layout((LINE,), separator="\x1f")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Column(NamedTuple):
    """Declaration of a column of a published file: how its texts are read and checked.

    The function `read` converts texts to values, and invalid texts to nulls. `need` describes the valid texts
    for error messages. If the column is `optional`, a text may be empty.
    """

    need: str
    read: Callable[[pl.Series], pl.Series] = lambda texts: texts
    optional: bool = False


Columns = Mapping[str, Column]
TEXT = Column("", optional=True)  # any text, or an empty field


def typed(batch: Batch, columns: Columns) -> Batch:
    """Convert the texts of a batch of rows to values. Raise a ValueError if a text is invalid."""
    values = {}
    for name, column in columns.items():
        values[name] = column.read(batch.frame[name])
        is_bad = values[name].is_null()
        if column.optional:
            is_bad &= batch.frame[name].is_not_null()
        batch.refuse([(name, column.need, is_bad)])
    return batch._replace(frame=batch.frame.with_columns(**values))


def labels(of: tuple[Any, ...] | range, need: str = "") -> Column:
    """Declare a column of labels from a public list. Each label is read as its position in the list."""
    rule = Labels(of)

    def read(texts: pl.Series) -> pl.Series:
        places = pl.Series(rule.codes(texts))
        return places.set(places < 0, None)

    return Column(need or rule.need, read)


def integers(low: int, high: int, need: str = "") -> Column:
    """Declare a column of integers from `low` to `high`."""
    places = labels(range(low, high + 1), need)
    return Column(places.need, lambda texts: low + places.read(texts))


def counts(low: int = 1) -> Column:
    """Declare a column of counts, which are integers from `low` to the largest count that a table can
    contain.
    """
    return integers(low, 2**53, f"an integer >= {low}")


def degrees(limit: int) -> Column:
    """Declare a column of latitudes or longitudes in degrees, from −limit to limit."""

    def read(texts: pl.Series) -> pl.Series:
        numbers = texts.cast(pl.Float64, strict=False)
        return numbers.set(~numbers.is_between(-limit, limit), None)

    return Column(f"degrees from -{limit} to {limit}", read)


def matching(pattern: str, need: str) -> Column:
    """Declare a column of texts that must match a regular expression."""
    return Column(need, lambda texts: texts.set(~texts.str.contains(pattern), None))


def times(written: str, example: str, period: tuple[datetime, datetime] = _EVER) -> Column:
    """Declare a column of times. `written` is their format, as for `strptime`. Times must be within `period`,
    whose end is not included. `example` is a valid time for error messages.
    """

    def read(texts: pl.Series) -> pl.Series:
        found = texts.str.to_datetime(written, time_unit="us", strict=False)
        return found.set(~found.is_between(*period, closed="left"), None)

    first, last = (f"{day:%Y-%m-%d}" for day in period)
    limits = "" if period == _EVER else f" from {first} to before {last}"
    return Column(f"a time as {example}{limits}", read)


def weekday(day: pl.Expr) -> pl.Expr:
    """Return an expression for the day of the week of dates or times, from 0 (Monday) to 6 (Sunday)."""
    return day.dt.weekday() - 1


# Files

SUFFIXES = ("", ".gz", ".xz", ".zip")
_UNPACK: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
_DAMAGED = (OSError, EOFError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


@value
class File:
    """Published file of a dataset.

    Parameters
    ----------
    folder, name : str
        Name of the dataset's folder, and name of the file without a suffix such as ".gz".
    url : str
        Web address from which `fetch` downloads the file.
    sha256 : tuple of str
        Known SHA-256 hashes of the file's decompressed content. Empty if no hash is known.
    also : tuple of str
        Other names under which the file is in circulation, and names of zip archives that contain it. All are
        without suffix.
    renderings : tuple of str
        SHA-256 hashes of other forms of the same data, which come from other sources than `url`.
    how : str
        Instruction for users, if `fetch` cannot download the file.
    layout : Layout
        Format of the rows, for example the separator of columns.
    """

    folder: str
    name: str
    url: str = ""
    sha256: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    renderings: tuple[str, ...] = ()
    how: str = ""
    layout: Layout = field(default=CSV, repr=False)

    def find(self) -> Path:
        """Return the path of the file, or of the archive that contains it. If the file was not found, raise a
        FileNotFoundError whose message says how to get it.
        """
        roots = [raw()]
        if folder := os.environ.get("WORKBENCH_DATA"):
            roots.insert(0, Path(folder).expanduser())
        places = [place for root in roots for place in (root / self.folder, root)]
        names = (self.name, *self.also)
        for place, name, suffix in product(places, names, SUFFIXES):
            path = place / (name + suffix)
            if path.is_file() and (suffix != ".zip" or self._may_be_in(path)):
                return path
        looked = (f"{x}{'' if x.is_dir() else ' (no such folder)'}" for x in places)
        fetch = (
            f"run `workbench data fetch {self.folder}` (`datasets.published.fetch` in Python)"
        )
        raise FileNotFoundError(
            f"no {' or '.join(names)} (plain, .gz, .xz, or a .zip that holds it) in {', '.join(looked)}. "
            f"To get it: {self.how or fetch}. Or set WORKBENCH_DATA to the folder that contains it"
        )

    def rows(self, columns: Columns) -> Iterator[Batch]:
        """Yield the rows in batches, with the texts converted to values. Raise a ValueError if a text is
        invalid.
        """
        return (typed(batch, columns) for batch in self.batches([*columns]))

    def frame(
        self, columns: Columns, *expressions: pl.Expr, where: Any = True, rows: int = 0
    ) -> pl.DataFrame:
        """Return all rows that satisfy `where` as one data frame. Raise a ValueError if there are no such
        rows. If `rows` is given, raise a ValueError if their number differs from it.
        """
        frames = (batch.frame.filter(where) for batch in self.rows(columns))
        parts = [frame.select(expressions or pl.all()) for frame in frames]
        found = sum(map(len, parts))
        self.expect(found, rows or max(found, 1), "rows")
        return pl.concat(parts)

    def expect(self, found: int, need: int, what: str) -> None:
        """Raise a ValueError if the number `found` differs from the expected number `need`. `what` says what
        was counted, for example rows.
        """
        if found != need:
            raise ValueError(f"{self.find()}: found {found:,} {what}, need {need:,}")

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Yield batches of rows, with the given columns as text. On a terminal, a progress bar is shown."""
        from tqdm import tqdm

        path = self.find()
        source = path if path.suffix == ".parquet" else TextFile(self, path)
        how: dict[str, Any] = dict(unit="B", unit_scale=True, leave=False, disable=None)
        with tqdm(total=path.stat().st_size, desc=path.name, **how) as bar:
            yield from row_batches(
                source, columns, progress=lambda read, size: bar.update(read - bar.n)
            )

    def unpacked(self, path: Path, stream: Any) -> Any:
        """Return a stream with the decompressed content of the file at `path`."""
        if path.suffix != ".zip":
            return _UNPACK.get(path.suffix, lambda plain: plain)(stream)
        archive = zipfile.ZipFile(stream)
        if not (member := self._member(archive)):
            raise zipfile.BadZipFile(f"it does not hold {self.name}")
        return archive.open(member)

    def sha256_at(self, path: Path) -> str:
        """Return the SHA-256 hash of the decompressed content of the file at `path`. Raise a ValueError if
        the file is damaged.
        """
        with refusing_damage(path), path.open("rb") as raw, self.unpacked(path, raw) as content:
            return hashlib.file_digest(content, "sha256").hexdigest()

    def _member(self, archive: zipfile.ZipFile) -> str | None:
        wanted = {PurePath(name).name for name in (self.name, *self.also)}
        members = archive.namelist()
        return next((member for member in members if PurePath(member).name in wanted), None)

    def _may_be_in(self, path: Path) -> bool:
        try:
            with zipfile.ZipFile(path) as archive:
                return self._member(archive) is not None
        except _DAMAGED:
            return True  # reading it says so


@contextmanager
def refusing_damage(path: Path) -> Iterator[None]:
    """Inside the `with` block, raise a ValueError with a clear message if a library finds that a compressed
    file is damaged.
    """
    try:
        yield
    except _DAMAGED as e:
        raise ValueError(
            f"{path} is damaged or ends early ({e}). Delete it and fetch it again"
        ) from None


class TextFile(CsvFile):
    """Reader of the rows of a published text file, which may be compressed."""

    def __init__(self, file: File, path: Path):
        self.file = file
        with refusing_damage(path):
            super().__init__(path, layout=file.layout)

    def __str__(self) -> str:
        is_archive = self.path.suffix == ".zip"
        return str(self.path / PurePath(self.file.name).name if is_archive else self.path)

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows in batches. Raise a ValueError if the file is damaged."""
        with refusing_damage(self.path):
            yield from super().batches(columns)

    def _unpacked(self, raw: Any) -> Any:
        return self.file.unpacked(self.path, raw)


# Tables


def table(domain: Domain, parts: Iterable[tuple[Any, Any]], bound: Bound) -> SparseTable:
    """Build a table from several parts. A part consists of keys (numbers of cells) and a count for each key,
    or None if each key counts 1. The table is marked as public, so its exact counts may be shown.
    """
    cells = CellCounts()
    for keys, counts in parts:
        cells.add(keys, counts)
    keys, counts = map(sealed, cells.cells())
    return SparseTable(domain, keys, counts, bound, truth_public=True)


# Status


class FileStatus(NamedTuple):
    """Result of looking for a published file, with its path, its size in bytes and a `state`. Path and size
    are None if the file was not found.

    The state is "ok" if the SHA-256 hash of the file is one of the known hashes. The state is "different" if
    the file has another hash or cannot be read, and "unknown" if no hash is known for this file. If the file
    was not found, the state is "missing" if `fetch` can download it, and otherwise "by hand".
    """

    dataset: str
    file: str
    path: Path | None
    size: int | None
    state: str


def raw() -> Path:
    """Return the folder into which `fetch` downloads files. It is `data/raw/` in the project."""
    return project_folder() / "data" / "raw"


def path(what: Any) -> tuple[Path, ...]:
    """Return the paths of those files of a dataset that are on this machine.

    Parameters
    ----------
    what : str, dataset or File
        Dataset, for example `Adult()`, or its name, for example "Adult". You can also pass the name of its
        folder, for example "adult", or a single `File`.

    Returns
    -------
    tuple of Path
        Paths of the files that were found, or of the archives that contain them.

    Raises
    ------
    FileNotFoundError
        If none of the files was found.
    ValueError
        If there is no dataset with this name, or if it has no published files.
    """
    files = _files(what)
    return tuple(found for file in files if (found := _found(file))) or (files[0].find(),)


def verify(what: Any = None) -> list[FileStatus]:
    """Check whether the files of a dataset, or of all datasets, are on this machine and have the expected
    content. The content is as expected if its SHA-256 hash is one of the known hashes.

    Parameters
    ----------
    what : str, dataset or File, optional
        Dataset, its name, the name of its folder, or a single `File`. Default: all datasets that have
        published files.

    Returns
    -------
    list of FileStatus
        Result for each file.

    Raises
    ------
    ValueError
        If there is no dataset with this name, or if it has no published files.
    """
    return [_status(file) for file in _files(what)]


def fetch(what: Any, force: bool = False) -> list[Path]:
    """Download the files of a dataset from their publisher into the folder `data/raw/`.

    A file gets its final name only after its download is complete, its content could be read, and its SHA-256
    hash is one of the known hashes (if there are any).

    Parameters
    ----------
    what : str, dataset or File
        Dataset, its name, the name of its folder, or a single `File`. The files may depend on the parameters
        of a dataset, for example for `OnTheMap(states=("ma",))`.
    force : bool
        Whether to download files again if they are already on this machine. Default False.

    Returns
    -------
    list of Path
        Paths of all files of the dataset.

    Raises
    ------
    FileNotFoundError
        If the publisher offers no download of a file. The message says how to get it.
    OSError
        If the publisher's server does not send a file, or if the download is interrupted. Incomplete files
        are removed.
    ValueError
        If the content of a file cannot be read, or if its hash is not one of the known hashes.
    """
    return [(not force and _found(file)) or _fetched(file) for file in _files(what)]


def _files(what: Any) -> tuple[File, ...]:
    """Return the files of a dataset. The argument is the dataset, its name, the name of its folder, a single
    file, or None for all datasets.
    """
    from workbench.datasets import ALL

    if isinstance(what, File):
        return (what,)
    if not isinstance(what, str | None):
        return what.files()
    datasets = [dataset for dataset in ALL if hasattr(dataset, "files")]
    named = [(dataset.__name__, file) for dataset in datasets for file in dataset().files()]
    files = {file for name, file in named if what in (None, name, file.folder)}
    if what and not files:
        other = compiled.find("datasets", what)
        if not hasattr(other, "files"):
            folders = ", ".join(sorted({file.folder for _, file in named}))
            raise ValueError(f"dataset {what!r} has no published files: need one of {folders}")
        return other().files()
    return tuple(sorted(files, key=lambda file: (file.folder, file.name)))


def _found(file: File) -> Path | None:
    try:
        return file.find()
    except FileNotFoundError:
        return None


def _status(file: File) -> FileStatus:
    path = _found(file)
    if path is None:
        state = "by hand" if file.how else "missing"
        return FileStatus(file.folder, file.name, None, None, state)
    try:
        is_known = file.sha256_at(path) in (*file.sha256, *file.renderings)
        state = "ok" if is_known else "different" if file.sha256 else "unknown"
    except ValueError:
        state = "different"
    return FileStatus(file.folder, file.name, path, path.stat().st_size, state)


def _fetched(file: File) -> Path:
    import pooch
    import requests

    if file.how:
        raise FileNotFoundError(f"{file.name} cannot be fetched: {file.how}")
    folder = raw() / file.folder
    folder.mkdir(parents=True, exist_ok=True)
    get = pooch.HTTPDownloader(
        sys.stderr.isatty(), 1 << 16, headers={"Accept-Encoding": "identity"}
    )
    with TemporaryDirectory(dir=folder) as place:
        part = Path(place) / PurePath(file.url).name
        try:
            get(file.url, part, None)
        except requests.RequestException as e:
            raise OSError(f"{file.url}: the download stopped ({e}); run it again") from None
        try:
            sha256 = file.sha256_at(part)
        except ValueError as e:
            raise ValueError(f"{file.url} sent something that cannot be read: {e}") from None
        if file.sha256 and sha256 not in file.sha256:
            raise ValueError(
                f"the content that {file.url} sent has sha256 {sha256}, none of the recorded "
                f"{', '.join(file.sha256)}: the publisher has changed the file, or it is another file"
            )
        return part.replace(folder / part.name)
