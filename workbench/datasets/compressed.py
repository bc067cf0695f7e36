"""Files as they are published: compressed or not, alone or in an archive that stays closed."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from workbench.data.sources import names_shown

_DICTIONARY = (
    1 << 28
)  # bytes that unpacking an .xz file may take; its tightest preset takes 2²⁶
_MOST_HEADERS = 1 << 20  # bytes before a file in a tar archive
_MOST_AT_ONCE = 1 << 26
_PACKED = 1 << 16  # bytes read at once

_DAMAGED = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    gzip.BadGzipFile,
    zipfile.BadZipFile,
    tarfile.TarError,
)


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The decompressed bytes of a file, and the file itself, whose position tells the progress.

    The suffix decides: .gz, .xz, .zip (its member of the same name, its only one, or its only
    .csv), else plain; a path may lead into a zip archive (`find_member`). A file that ends early, is
    not what its suffix says, or takes more than 268,435,456 bytes of memory to unpack, is a ValueError.
    """
    holder = file_on_disk(path)
    with ExitStack() as stack:
        raw = stack.enter_context(holder.open("rb"))
        stream: Any
        try:
            match path.suffix:
                case _ if path != holder:
                    archive = stack.enter_context(_zip(raw))
                    stream = _member(archive, path.relative_to(holder).as_posix())
                case ".gz":
                    stream = gzip.open(raw)
                case ".xz":
                    stream = io.BufferedReader(_Xz(raw), _PACKED)
                case ".zip":
                    archive = stack.enter_context(_zip(raw))
                    names = archive.namelist()
                    names = [n for n in names if Path(n).name == path.stem] or names
                    if len(names) > 1:
                        names = [n for n in names if n.endswith(".csv")] or names
                    if len(names) != 1:
                        raise ValueError(
                            f"{path} holds {names_shown(names)}: need one file, {path.stem}"
                        )
                    stream = _member(archive, names[0])
                case _:
                    stream = raw
            yield stack.enter_context(stream), raw
        except _DAMAGED as e:
            raise _damaged(holder, e) from None


def read_whole(path: Path) -> bytes:
    """The decompressed bytes of a list that is read at once; a ValueError for more than 67,108,864."""
    with opened(path) as (stream, _):
        content = stream.read(_MOST_AT_ONCE + 1)
    if len(content) > _MOST_AT_ONCE:
        raise ValueError(f"{path} has more than {_MOST_AT_ONCE:,} bytes")
    return content


def file_on_disk(path: Path) -> Path:
    """What holds that to which a path leads: the file itself, or the archive that it leads into."""
    if path.is_file():
        return path
    archives = (parent for parent in path.parents if parent.suffix == ".zip")
    return next((archive for archive in archives if archive.is_file()), path)


def find_member(archive: Path, name: str) -> Path | None:
    """The path into a zip archive to its member of that name, in whatever folder; None without one.

    A member whose name is no plain path within the archive (absolute, or with "." in it) is none:
    the path to it would lead elsewhere.
    """
    try:
        with archive.open("rb") as raw, _zip(raw) as members:
            plain = (
                place
                for place in map(PurePosixPath, members.namelist())
                if not place.is_absolute()
                and ".." not in place.parts
                and str(place) in members.NameToInfo
            )
            return next((archive / place for place in plain if place.name == name), None)
    except zipfile.BadZipFile as e:
        raise _damaged(archive, e) from None


def tar_members(
    path: Path, stream: BinaryIO, within: bool = True
) -> Iterator[tuple[Path, BinaryIO]]:
    """The files in an open tar archive, and (`within`) in the tar archives in it, in their order.

    Each is to be read before the next. `path` is the archive's, and where those of files begin. What
    stands before a file, its name and the like, of more than 1,048,576 bytes is a ValueError.
    """
    headers: Any = _Headers(path, stream)
    archive: Any
    with tarfile.open(fileobj=headers, mode="r|") as archive:
        while entry := archive.next():
            archive.members.clear()  # else it keeps them all
            member = archive.extractfile(entry)
            if member is None:  # a folder
                continue
            headers.left = None
            place = path / entry.name
            if place.suffix == ".tar" and within:
                yield from tar_members(place, member, within=False)
            else:
                yield place, member
            while member.read(_PACKED):
                pass
            headers.left = _MOST_HEADERS


class _Headers:
    """The stream of a tar archive, of which only so many bytes are read as one file's header."""

    def __init__(self, path: Path, stream: BinaryIO):
        self.path = path
        self.stream = stream
        self.left: int | None = _MOST_HEADERS  # None while a file is read, not its header

    def read(self, size: int) -> bytes:
        if self.left is not None:
            self.left -= size
            if self.left < 0:
                raise ValueError(
                    f"{self.path} has more than {_MOST_HEADERS:,} bytes before a file of it"
                )
        return self.stream.read(size)


class _Xz(io.RawIOBase):
    """What an .xz file unpacks to, one stream after another, with a dictionary of limited size."""

    def __init__(self, packed: BinaryIO):
        self._packed = packed
        self._stream = lzma.LZMADecompressor(memlimit=_DICTIONARY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            content = b""
            if self._stream.eof:
                content = self._stream.unused_data.lstrip(b"\0")  # streams may be padded
                while not content:
                    more = self._packed.read(_PACKED)
                    if not more:
                        return 0
                    content = more.lstrip(b"\0")
                self._stream = lzma.LZMADecompressor(memlimit=_DICTIONARY)
            elif self._stream.needs_input:
                content = self._packed.read(_PACKED)
                if not content:
                    raise EOFError("its last stream does not end")
            text = self._stream.decompress(content, len(buffer))
            if text:
                buffer[: len(text)] = text
                return len(text)


def _zip(raw: BinaryIO) -> zipfile.ZipFile:
    """An archive; one that says that a later version of the format wrote it is damage like any other."""
    try:
        return zipfile.ZipFile(raw)
    except NotImplementedError as e:
        raise zipfile.BadZipFile(str(e)) from None


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """A member, open; one that is encrypted, or packed in an unknown way, is damage like any other."""
    if archive.getinfo(name).compress_type == zipfile.ZIP_LZMA:
        raise zipfile.BadZipFile("LZMA is not unpacked: its dictionary may be of any size")
    try:
        return archive.open(name)
    except RuntimeError as e:
        raise zipfile.BadZipFile(str(e)) from None


def _damaged(path: Path, error: Exception) -> ValueError:
    return ValueError(
        f"{path} is damaged or ends early ({error}); delete it and fetch it again"
    )
