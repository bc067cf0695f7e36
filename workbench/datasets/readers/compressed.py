"""Files as they are published, compressed or not."""

from __future__ import annotations

import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile)


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
