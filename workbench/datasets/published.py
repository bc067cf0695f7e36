"""Published files: where they are looked for, how they are fetched, whether they are right.

A file is looked for under the folder that the environment variable WORKBENCH_DATA names, then
under `data/raw/` of the project; in each, in its dataset's folder or beside it; compressed or
not, or in the archive that its publisher sends, which is not unpacked. Nothing
but `fetch` downloads, and it writes nowhere but in `data/raw/`.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse

from workbench import compiled
from workbench.compiled import project_folder
from workbench.data.sources import CSV, Batch, Layout
from workbench.datasets.reading import file_on_disk, find_member, opened, rows
from workbench.value import value

SUFFIXES = ("", ".gz", ".xz", ".zip")


@value
class File:
    """A file of a publisher: `name` without compression, in the `folder` of its dataset.

    `sha256` lists what is accepted: hashes of the published file, or of what it decompresses
    to, so that a recompressed copy is still known; empty where nobody has recorded one. `also`
    are other names that the same file goes by, `archives` the zip archives that hold it as
    published, and `renderings` hashes of other forms of the same data: known, but not what `url`
    sends. `how` says what to do where `fetch` cannot help,
    because nobody publishes the file, or not in a form that is read here. `layout` says how its rows
    are written.

    Without a folder it is a file of the user's own, and `name` its path, looked for first as it
    stands.
    """

    folder: str
    name: str
    url: str = ""
    sha256: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    renderings: tuple[str, ...] = ()
    how: str = ""
    archives: tuple[str, ...] = ()
    layout: Layout = field(default=CSV, repr=False)

    def rows(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Some columns of the file in batches; what cannot be read is a ValueError."""
        return rows(self.find(), columns, self.layout)

    def find(self) -> Path:
        """Where the file is, maybe in an archive; a FileNotFoundError that says where it was looked for."""
        return find(self.folder, self.name, *self.also, archives=self.archives, how=self.how)

    def stat(self) -> os.stat_result:
        """That of the file, or of the archive that holds it; a FileNotFoundError as `find`."""
        return file_on_disk(self.find()).stat()


class FileStatus(NamedTuple):
    """One published file: where it is (or None), its size in bytes (or None), and its `state`.

    "ok" has a recorded sha256; "different" has another one, or cannot be read; "unknown" can be
    read, but nobody has recorded a sha256; "missing" was not found; "by hand" neither, and
    `fetch` cannot bring it.
    """

    dataset: str
    file: str
    path: Path | None
    size: int | None
    state: str


def raw() -> Path:
    """Where `fetch` writes: `data/raw/` of the project."""
    return project_folder() / "data" / "raw"


def find(folder: str, *names: str, archives: tuple[str, ...] = (), how: str = "") -> Path:
    """The first of `names`, compressed or not, under WORKBENCH_DATA or `data/raw/`.

    Else the first of the zip `archives` there that has a file of such a name: a path that leads into
    it, which readers follow. A missing file is a FileNotFoundError that says what was looked for,
    where, and what to do: `how`, or else what to run.
    """
    roots = [raw()]
    data_folder = os.environ.get("WORKBENCH_DATA")
    if data_folder:
        roots.insert(0, Path(data_folder).expanduser())
    if folder:
        places = [place for root in roots for place in (root / folder, root)]
    else:
        places = [Path(), *roots]
        names = tuple(str(Path(name).expanduser()) for name in names)
    for place, name, suffix in product(places, names, SUFFIXES):
        path = place / (name + suffix)
        if path.is_file():
            return path
    for place, archive, name in product(places, archives, names):
        if (place / archive).is_file() and (
            member := find_member(place / archive, Path(name).name)
        ):
            return member
    looked = (f"{place}{'' if place.is_dir() else ' (no such folder)'}" for place in places)
    run = (
        f"run `workbench data fetch {folder}` (in Python: `datasets.published.fetch(dataset)`)"
    )
    wanted = f"{' or '.join(names)} (plain, .gz, .xz or .zip)"
    if archives:
        wanted += f", nor {' or '.join(archives)} with it,"
    raise FileNotFoundError(
        f"no {wanted} in {', '.join(looked)}; "
        f"{how or run}; WORKBENCH_DATA may name the folder that holds it"
    )


def sibling_file(path: Path, name: str) -> Path:
    """The file `name`, compressed or not, in the folder or archive of another."""
    archive = file_on_disk(path)
    if archive != path:
        if member := find_member(archive, name):
            return member
        raise FileNotFoundError(f"no {name} in {archive}")
    for suffix in (path.suffix.removesuffix(".txt"), *SUFFIXES):
        sibling = path.parent / (name + suffix)
        if sibling.is_file():
            return sibling
    raise FileNotFoundError(f"no {name} (plain, .gz, .xz or .zip) in {path.parent}")


def path(what: Any) -> tuple[Path, ...]:
    """Where the files of a dataset are.

    Parameters
    ----------
    what : str, dataset or File
        A dataset's name or folder, a value of it, or one file.

    Returns
    -------
    tuple of Path
        Of those that are there.

    Raises
    ------
    FileNotFoundError
        There is none at all.
    ValueError
        No dataset of that name has published files.
    """
    rows = [_located(file) for file in _files(what)]
    return tuple(row.path for row in rows if row.path) or (_files(what)[0].find(),)


def status() -> list[FileStatus]:
    """Every published file of every dataset, as `verify` sees it."""
    return verify()


def verify(what: Any = None) -> list[FileStatus]:
    """Looks up and hashes the files of a dataset, or of all.

    Parameters
    ----------
    what : str, dataset or File, optional
        As in `path`; without it, every dataset with published files.

    Returns
    -------
    list of FileStatus
        One a file.

    Raises
    ------
    ValueError
        No dataset of that name has published files.
    """
    wanted = _datasets() if what is None else [what]
    return [_verified(_located(file), file) for one in wanted for file in _files(one)]


def fetch(what: Any, force: bool = False) -> list[Path]:
    """Brings the files of a dataset from their publisher into `data/raw/`.

    A file is under its final name only when it is whole, can be read, and has a sha256 that is
    recorded, where one is.

    Parameters
    ----------
    what : str, dataset or File
        As in `path`; a value such as `OnTheMap(states=("ma",))` has files of its own.
    force : bool
        Fetch again what is there already.

    Returns
    -------
    list of Path
        Where the files are.

    Raises
    ------
    FileNotFoundError
        It cannot be fetched: says how else to get it.
    OSError
        The publisher does not send it, or the download was interrupted; nothing of it is kept.
    ValueError
        What was sent cannot be read, or has another sha256 than is recorded.
    """
    return [_fetch(file, force) for file in _files(what)]


def hashes(path: Path) -> Iterator[str]:
    """The sha256 of a file, then of what it decompresses to; a ValueError if it is damaged."""
    with file_on_disk(path).open("rb") as stream:
        yield hashlib.file_digest(stream, "sha256").hexdigest()
    with opened(path) as stream:
        unpacked: Any = stream
        yield hashlib.file_digest(unpacked, "sha256").hexdigest()


def _datasets() -> dict[str, tuple[File, ...]]:
    """The files of all datasets that have some, by their folder, which several may share."""
    from workbench.datasets import ALL

    files_of: dict[str, tuple[File, ...]] = {}
    for dataset in ALL:
        for file in dataset().files() if hasattr(dataset, "files") else ():
            files = files_of.get(file.folder, ())
            if file not in files:  # datasets may share one
                files_of[file.folder] = (*files, file)
    return files_of


def _files(what: Any) -> tuple[File, ...]:
    if isinstance(what, File):
        return (what,)
    if isinstance(what, str):
        from workbench.datasets import ALL

        by_folder = _datasets()
        by_name = {d.__name__: d().files() for d in ALL if hasattr(d, "files")} | by_folder
        if what not in by_name:
            other = compiled.find("datasets", what)
            if hasattr(other, "files"):
                return other().files()
            raise ValueError(
                f"dataset {what!r} has no published files: need one of {list(by_folder)}"
            )
        return by_name[what]
    return what.files()


def _located(file: File) -> FileStatus:
    try:
        path = file.find()
    except FileNotFoundError:
        return FileStatus(
            file.folder, file.name, None, None, "by hand" if file.how else "missing"
        )
    return FileStatus(file.folder, file.name, path, file.stat().st_size, "unknown")


def _verified(row: FileStatus, file: File) -> FileStatus:
    if row.path is None:
        return row
    try:
        sha256 = set(hashes(row.path))
    except ValueError:
        return row._replace(state="different")
    if sha256 & {*file.sha256, *file.renderings}:
        return row._replace(state="ok")
    return row._replace(state="different") if file.sha256 else row


def _fetch(file: File, force: bool) -> Path:
    path = _located(file).path
    if path and not force:
        return path
    if file.how:
        raise FileNotFoundError(f"{file.name} cannot be fetched: {file.how}")
    name = Path(urlparse(file.url).path).name
    part = raw() / file.folder / f"part-{name}"
    _download(file.url, part)
    try:
        sha256 = list(hashes(part))
    except ValueError as e:
        part.unlink()
        raise ValueError(f"{file.url} sent something that cannot be read: {e}") from None
    if file.sha256 and not set(sha256) & set(file.sha256):
        part.unlink()
        raise ValueError(
            f"{file.url} has sha256 {sha256[0]} (contents {sha256[1]}), none of the recorded "
            f"{', '.join(file.sha256)}: the publisher's file has changed, or it is not theirs"
        )
    return part.replace(part.with_name(name))


def _download(url: str, part: Path) -> None:
    import pooch
    import requests

    part.parent.mkdir(parents=True, exist_ok=True)
    get = pooch.HTTPDownloader(
        sys.stderr.isatty(), 1 << 16, headers={"Accept-Encoding": "identity"}
    )
    try:
        get(url, part, None)
    except requests.HTTPError as e:
        part.unlink(missing_ok=True)
        raise OSError(f"{url}: {e}") from None
    except requests.RequestException as e:
        part.unlink(missing_ok=True)
        raise OSError(f"{url}: the download stopped ({e}); run it again") from None
