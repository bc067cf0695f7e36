"""Published files: where they are looked for, how they are fetched, whether they are right.

A file is looked for under the folder that the environment variable WORKBENCH_DATA names, then
under `data/raw/` of the project; in each, in its dataset's folder or beside it; compressed or
not. Nothing but `fetch` downloads, and it writes nowhere but in `data/raw/`.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlparse

from workbench.value import value

if TYPE_CHECKING:
    import requests

SUFFIXES = ("", ".gz", ".xz", ".zip")


@value
class File:
    """A file of a publisher: `name` without compression, in the `folder` of its dataset.

    `sha256` lists what is accepted: hashes of the published file, or of what it decompresses
    to, so that a recompressed copy is still known; empty where nobody has recorded one. `also`
    are other names that the same file goes by, and `renderings` hashes of other forms of the
    same data: known, but not what `url` sends. `how` says what to do where `fetch` cannot help,
    because nobody publishes the file, or not in a form that is read here.

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

    def find(self) -> Path:
        """Where the file is; a FileNotFoundError that says where it was looked for."""
        return find(self.folder, self.name, *self.also, how=self.how)


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
    """Where `fetch` writes: `data/raw/` of the project, else of the working directory."""
    project = Path(__file__).parents[2]
    return (project if (project / "pyproject.toml").is_file() else Path.cwd()) / "data" / "raw"


def find(folder: str, *names: str, how: str = "") -> Path:
    """The first of `names`, compressed or not, under WORKBENCH_DATA or `data/raw/`.

    A missing file is a FileNotFoundError that says what was looked for, where, and what to do:
    `how`, or else what to run.
    """
    roots = [raw()]
    if given := os.environ.get("WORKBENCH_DATA"):
        roots.insert(0, Path(given).expanduser())
    if folder:
        places = [place for root in roots for place in (root / folder, root)]
    else:
        places, names = [Path(), *roots], [str(Path(name).expanduser()) for name in names]
    for place in places:
        for name in names:
            for suffix in SUFFIXES:
                if (path := place / (name + suffix)).is_file():
                    return path
    looked = (f"{place}{'' if place.is_dir() else ' (no such folder)'}" for place in places)
    run = (
        f"run `workbench data fetch {folder}` (in Python: `datasets.published.fetch(dataset)`)"
    )
    raise FileNotFoundError(
        f"no {' or '.join(names)} (plain, .gz, .xz or .zip) in {', '.join(looked)}; "
        f"{how or run}; WORKBENCH_DATA may name the folder that holds it"
    )


def path(what: Any) -> tuple[Path, ...]:
    """Where the files of a dataset are; a FileNotFoundError if there is none at all."""
    rows = [_look(file) for file in _files(what)]
    return tuple(row.path for row in rows if row.path) or (_files(what)[0].find(),)


def status() -> list[FileStatus]:
    """Every published file of every dataset, as `verify` sees it."""
    return verify()


def verify(what: Any = None) -> list[FileStatus]:
    """Looks up and hashes the files of a dataset (its name, a value of it, a `File`), or of all."""
    wanted = _datasets() if what is None else [what]
    return [_check(_look(file), file) for one in wanted for file in _files(one)]


def fetch(what: Any, force: bool = False) -> list[Path]:
    """Brings the files of a dataset from their publisher into `data/raw/`; returns where.

    `what` is a dataset's name, a dataset such as `OnTheMap(states=("ma",))`, or a `File`. An
    interrupted download (OSError) resumes at the next call if the publisher's file has not
    changed. A file is under its final name only when it is whole, can be read, and has a sha256
    that is recorded, where one is (else ValueError). `force` fetches again what is there
    already. What cannot be fetched is a FileNotFoundError that says how else to get it.
    """
    return [_fetch(file, force) for file in _files(what)]


def hashes(path: Path) -> Iterator[str]:
    """The sha256 of a file, then of what it decompresses to; a ValueError if it is damaged."""
    from workbench.datasets.delimited import opened

    with path.open("rb") as stream:
        yield hashlib.file_digest(stream, "sha256").hexdigest()
    with opened(path) as (stream, _):
        yield hashlib.file_digest(stream, "sha256").hexdigest()


def _datasets() -> dict[str, tuple[File, ...]]:
    """The files of all datasets that have some, by their folder, which several may share."""
    from workbench.datasets import ALL

    known: dict[str, tuple[File, ...]] = {}
    for dataset in ALL:
        for file in dataset().files() if hasattr(dataset, "files") else ():
            if file not in (own := known.get(file.folder, ())):  # datasets may share one
                known[file.folder] = (*own, file)
    return known


def _files(what: Any) -> tuple[File, ...]:
    if isinstance(what, File):
        return (what,)
    if isinstance(what, str):
        from workbench.datasets import ALL

        known = _datasets()
        called = {d.__name__: d().files() for d in ALL if hasattr(d, "files")} | known
        if what not in called:
            raise ValueError(
                f"dataset {what!r} has no published files: need one of {list(known)}"
            )
        return called[what]
    return what.files()


def _look(file: File) -> FileStatus:
    try:
        at = file.find()
    except FileNotFoundError:
        return FileStatus(
            file.folder, file.name, None, None, "by hand" if file.how else "missing"
        )
    return FileStatus(file.folder, file.name, at, at.stat().st_size, "unknown")


def _check(row: FileStatus, file: File) -> FileStatus:
    if row.path is None:
        return row
    try:
        found = set(hashes(row.path))
    except ValueError:
        return row._replace(state="different")
    if found & {*file.sha256, *file.renderings}:
        return row._replace(state="ok")
    return row._replace(state="different") if file.sha256 else row


def _fetch(file: File, force: bool) -> Path:
    if not force and (at := _look(file).path):
        return at
    if file.how:
        raise FileNotFoundError(f"{file.name} cannot be fetched: {file.how}")
    name = Path(urlparse(file.url).path).name
    part = raw() / file.folder / f"part-{name}"
    _download(file.url, part)
    try:
        found = list(hashes(part))
    except ValueError as e:
        part.unlink()
        raise ValueError(f"{file.url} sent something that cannot be read: {e}") from None
    if file.sha256 and not set(found) & set(file.sha256):
        part.unlink()
        raise ValueError(
            f"{file.url} has sha256 {found[0]} (contents {found[1]}), none of the recorded "
            f"{', '.join(file.sha256)}: the publisher's file has changed, or it is not theirs"
        )
    return part.replace(part.with_name(name))


def _download(url: str, part: Path) -> None:
    """Continues `part`, whose time is the publisher's Last-Modified, or starts it afresh."""
    from email.utils import formatdate, parsedate_to_datetime

    import pooch
    import requests

    part.parent.mkdir(parents=True, exist_ok=True)
    headers = {"Accept-Encoding": "identity"}
    if part.exists() and part.stat().st_size:
        headers["Range"] = f"bytes={part.stat().st_size}-"
        headers["If-Range"] = formatdate(part.stat().st_mtime, usegmt=True)
    modified = None

    def begin(response: requests.Response, **_) -> None:
        nonlocal modified
        if response.status_code in (200, 416):  # the whole file, or no such range: no sequel
            out.truncate(0)
        if response.ok and (date := response.headers.get("Last-Modified")):
            modified = parsedate_to_datetime(date).timestamp()

    try:
        with part.open("ab") as out:
            watched = sys.stderr.isatty()
            get = pooch.HTTPDownloader(
                watched, 1 << 16, headers=headers, hooks={"response": begin}
            )
            get(url, out, None)
    except requests.HTTPError as e:
        raise OSError(f"{url}: {e}") from None
    except requests.RequestException as e:
        raise OSError(
            f"{url}: the download stopped after {part.stat().st_size} bytes ({e}); "
            "run it again to go on"
        ) from None
    finally:
        if modified is not None:
            os.utime(part, (modified, modified))
