"""Files as they are published: compressed or not, alone or in an archive that stays closed."""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

_DAMAGED = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    gzip.BadGzipFile,
    zipfile.BadZipFile,
    tarfile.ReadError,
)


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The decompressed bytes of a file, and the file itself, whose position tells the progress.

    The suffix decides: .gz, .xz, .zip (its member of the same name, its only one, or its only
    .csv), else plain; a path may lead into a zip archive (`find_member`). A file that ends early, or
    is not what its suffix says, is a ValueError.
    """
    holder = file_on_disk(path)
    with ExitStack() as stack:
        raw = stack.enter_context(holder.open("rb"))
        try:
            match path.suffix:
                case _ if path != holder:
                    archive = stack.enter_context(zipfile.ZipFile(raw))
                    stream = _member(archive, path.relative_to(holder).as_posix())
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
                    stream = _member(archive, names[0])
                case _:
                    stream = raw
            yield stack.enter_context(stream), raw
        except _DAMAGED as e:
            raise _damaged(holder, e) from None


def file_on_disk(path: Path) -> Path:
    """What holds that to which a path leads: the file itself, or the archive that it leads into."""
    if path.is_file():
        return path
    archives = (parent for parent in path.parents if parent.suffix == ".zip")
    return next((archive for archive in archives if archive.is_file()), path)


def find_member(archive: Path, name: str) -> Path | None:
    """The path into a zip archive to its member of that name, in whatever folder; None without one."""
    try:
        with zipfile.ZipFile(archive) as members:
            paths = (archive / member for member in members.namelist())
            return next((path for path in paths if path.name == name), None)
    except zipfile.BadZipFile as e:
        raise _damaged(archive, e) from None


def tar_members(path: Path, stream: BinaryIO) -> Iterator[tuple[Path, BinaryIO]]:
    """The files in an open tar archive, and in the tar archives in it, in their order.

    Each is to be read before the next. `path` is the archive's, and where those of files begin.
    """
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for entry in archive:
            member = archive.extractfile(entry)
            if member is None:  # a folder
                continue
            place = path / entry.name
            if place.suffix == ".tar":
                yield from tar_members(place, member)
            else:
                yield place, member


def _member(archive: zipfile.ZipFile, name: str) -> BinaryIO:
    """A member, open; one that is encrypted, or packed in an unknown way, is damage like any other."""
    try:
        return archive.open(name)
    except RuntimeError as e:
        raise zipfile.BadZipFile(str(e)) from None


def _damaged(path: Path, error: Exception) -> ValueError:
    return ValueError(
        f"{path} is damaged or ends early ({error}); delete it and fetch it again"
    )
