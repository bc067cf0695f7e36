"""Published files as rows: unpacked, parsed, and refused where a column holds what it may not."""

from __future__ import annotations

import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np

from workbench.compiled import pl
from workbench.data import Bound, Interactions, SparseTable, Unbounded, row_batches
from workbench.data.cells import CellCounts
from workbench.data.sources import CSV, Batch, CountedFile, CsvFile, Layout, names_shown
from workbench.spaces import Domain
from workbench.spaces.labels import Labels
from workbench.value import Float, Int, sealed

# Files

_DAMAGED = (OSError, EOFError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def file_on_disk(path: Path) -> Path:
    """The file itself, or the zip archive into which a path leads."""
    if path.is_file():
        return path
    archives = (parent for parent in path.parents if parent.suffix == ".zip")
    return next((archive for archive in archives if archive.is_file()), path)


def find_member(archive: Path, name: str) -> Path | None:
    """The path into a zip archive to its member of that name, in any folder; None without one.

    Members whose names are no plain paths within the archive are none.
    """
    try:
        with zipfile.ZipFile(archive) as members:
            for place in map(PurePosixPath, members.namelist()):
                is_plain = not place.is_absolute() and ".." not in place.parts
                if place.name == name and is_plain and str(place) in members.NameToInfo:
                    return archive / place
    except _DAMAGED as e:
        raise _damaged(archive, e) from None
    return None


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The decompressed bytes of a file; a ValueError if it is damaged."""
    holder = file_on_disk(path)
    with holder.open("rb") as raw:
        try:
            with unpacked(path, raw) as stream:
                yield stream
        except _DAMAGED as e:
            raise _damaged(holder, e) from None


def unpacked(path: Path, raw: Any) -> Any:
    """The decompressed bytes of an open file, as the suffix says: .gz, .xz, .zip, or a path into a .zip."""
    holder = file_on_disk(path)
    match path.suffix:
        case ".zip":
            archive = zipfile.ZipFile(raw)
            names = archive.namelist()
            names = [n for n in names if Path(n).name == path.stem] or names
            names = [n for n in names if n.endswith(".csv")] or names
            if len(names) != 1:
                raise ValueError(
                    f"{path} holds {names_shown(names)}: need one file, {path.stem}"
                )
            return archive.open(names[0])
        case _ if path != holder:
            return zipfile.ZipFile(raw).open(path.relative_to(holder).as_posix())
        case ".gz":
            return gzip.open(raw)
        case ".xz":
            return lzma.open(raw)
    return raw


def _damaged(path: Path, error: Exception) -> ValueError:
    return ValueError(
        f"{path} is damaged or ends early ({error}); delete it and fetch it again"
    )


class TextFile(CsvFile):
    """The rows of a published text file, packed in one of the ways of `unpacked`."""

    def __init__(self, path: Path, layout: Layout = CSV):
        self.place_of_file = path
        try:
            super().__init__(file_on_disk(path), layout=layout)
        except _DAMAGED as e:
            raise _damaged(file_on_disk(path), e) from None

    def __str__(self) -> str:
        return str(self.place_of_file)

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The rows; damage is a ValueError."""
        try:
            yield from super().batches(columns)
        except _DAMAGED as e:
            raise _damaged(self.path, e) from None

    def _unpacked(self, raw: CountedFile) -> Any:
        return unpacked(self.place_of_file, raw)


LINE = "line"
LINES = Layout((LINE,), separator="\x1f")


def rows(path: Path, columns: Sequence[str], layout: Layout = CSV) -> Iterator[Batch]:
    """Some columns of a file in batches, with a progress bar where someone watches."""
    from tqdm import tqdm

    source = TextFile(path, layout)
    how: dict[str, Any] = dict(unit="B", unit_scale=True, leave=False, disable=None)
    with tqdm(total=source.size, desc=path.name, **how) as bar:
        yield from row_batches(
            source, columns, progress=lambda read, size: bar.update(read - bar.n)
        )


def fields(batch: Batch, names: Sequence[str], separator: str) -> Batch:
    """The fields of lines, between separators of any length."""
    lines = batch.frame[LINE]
    others = lines.str.count_matches(separator, literal=True) != len(names) - 1
    batch.refuse(others, LINE, separator.join(names))
    frame = lines.str.split_exact(separator, len(names) - 1).struct.unnest()
    frame.columns = [*names]
    return batch._replace(frame=frame.select(pl.all().replace("", None)))


# Columns


def codes(
    batch: Batch, column: str, labels: tuple[Any, ...] | range | Labels, need: str = ""
) -> Int[np.ndarray, " rows"]:
    """Places in a public list of labels."""
    rule = labels if isinstance(labels, Labels) else Labels(labels)
    places = rule.codes(batch.frame[column])
    batch.refuse(pl.Series(places < 0), column, need or rule.need)
    return places


def integers(
    batch: Batch, column: str, low: int, high: int, need: str = ""
) -> Int[np.ndarray, " rows"]:
    """Integers from `low` to `high`."""
    return low + codes(batch, column, range(low, high + 1), need)


def counts_of(batch: Batch, column: str) -> Int[np.ndarray, " rows"]:
    """Counts, each at least 1."""
    return integers(batch, column, 1, 2**53, "an integer >= 1")


def degrees(batch: Batch, column: str, limit: int) -> Float[np.ndarray, " rows"]:
    """Latitudes or longitudes."""
    numbers = batch.frame[column].cast(pl.Float64, strict=False)
    inside = numbers.is_between(-limit, limit)
    batch.refuse(~inside, column, f"degrees from -{limit} to {limit}")
    return numbers.to_numpy()


def times(batch: Batch, column: str, written: str, example: str) -> pl.Series:
    """Times that are written in one way (a format of strptime), to the microsecond."""
    found = batch.frame[column].str.to_datetime(written, time_unit="us", strict=False)
    batch.refuse(found.is_null(), column, f"a time as {example}")
    return found


# Data

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def weekdays(days: pl.Series) -> Int[np.ndarray, " rows"]:
    """Places in `WEEKDAYS`."""
    return days.dt.weekday().to_numpy() - 1


def table(domain: Domain, parts: Iterable[tuple[Any, Any]], bound: Bound) -> SparseTable:
    """The table of keys and counts (None: each counts one) that come in parts; its truth is public."""
    cells = CellCounts()
    for keys, counts in parts:
        cells.add(keys, counts)
    keys, counts = map(sealed, cells.cells())
    return SparseTable(domain, keys, counts, bound, truth_public=True)


def users_frame(users: Any, items: Any, contexts: Any) -> pl.DataFrame:
    """Records of users in narrow columns."""
    columns = zip(("user", "item", "context"), (users, items, contexts), strict=True)
    narrow = dict(user=np.int32, item=np.int32, context=np.uint8)
    return pl.DataFrame({name: np.asarray(x).astype(narrow[name]) for name, x in columns})


def interactions(
    parts: Iterable[pl.DataFrame],
    domain: Domain,
    bound: Bound | Unbounded,
    *,
    by_item: bool = False,
    once_in: Path | None = None,
) -> Interactions:
    """Records of `users_frame` sorted by user, then by item or as they came; their truth is public.

    Records of the file `once_in` are sorted by item, and a user with an item twice is a ValueError.
    """
    frame = pl.concat([users_frame([], [], []), *parts])
    by = ["user", "item"] if by_item or once_in else ["user"]
    frame = frame.sort(by, maintain_order=True)
    columns = (sealed(frame[name].to_numpy(writable=True)) for name in frame.columns)
    users, items, contexts = columns
    again = (users[1:] == users[:-1]) & (items[1:] == items[:-1])
    if once_in and again.any():
        row = int(again.argmax())
        item = domain.decode("item", items[row : row + 1])[0]
        raise ValueError(
            f"{once_in}: user {users[row]} has item {item} a second time, need one record at most of a user "
            "and item"
        )
    if domain.shape[0] <= 2**16:
        items = sealed(items.astype(np.uint16))
    return Interactions(domain, users, items, contexts, bound, True, once_in is not None)
