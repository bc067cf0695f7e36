"""Writing of files: each file is written completely or not at all, and contains a record of how it was made.

Temporary files: a file is first written as a draft, which gets its name when it is complete. A process that is
killed cannot remove its drafts. If the operating system supports files without a name, a draft is such a file.
The draft then disappears with its process. On other systems, and for folders, a process locks its drafts as
long as the process lives. The next process removes drafts without a lock.

Provenance records: a record is a dictionary that describes how a file was made. The record is stored as ASCII
JSON, inside the file that the record describes. In a PDF, the record is in the keywords. In a PNG, it is in the
text, and in an SVG, it is in the description. A Parquet file contains the record in its metadata. LaTeX and
Markdown files contain the record in a comment. For a CSV file, the record is in the separate file
`<name>.csv.json`. Somebody else may have written the file, so the workbench never executes anything in a
record.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any, TypeGuard

from workbench.compiled import pa, parquet

# Temporary

try:
    import fcntl

    _LOCKS = True
except ImportError:  # Windows: what is left stays
    _LOCKS = False

_ATTEMPTS = 3
_HEX = "[0-9a-f]" * 16


class Draft:
    """New file that is not complete yet. You write the content to `path`. When the file is complete, you give
    the file its final name, in the folder of `target`.

    The class first removes drafts that killed processes left in this folder. If `clean` is False, the class
    leaves such drafts in place.
    """

    def __init__(self, target: Path, clean: bool = True):
        self.target = target
        self._hidden: list[Path] = []
        if clean:
            remove_drafts(target.parent)
        self._held = _unnamed(target.parent)
        if self._held is None:
            try:
                self.path, self._held = _new_held(self._new_file)
            except OSError as e:
                e.filename = str(target.parent)  # not the name of the draft
                raise
        else:
            self.path = Path(f"/proc/self/fd/{self._held}")
            _lock(self._held)

    def link(self, to: Path) -> None:
        """Give the file one more name. If a file with this name exists, raise a FileExistsError."""
        if self._hidden:
            os.link(self.path, to)
        else:  # with a descriptor, which an absolute path ignores, it is the file and not its link
            os.link(self.path, to, src_dir_fd=self._held)

    def replace(self, to: Path) -> None:
        """Give the file the name `to`. If a file with this name exists, it is replaced."""
        if not self._hidden:
            self._name()
        os.replace(self._hidden[-1], to)

    def _name(self) -> None:
        hidden = self._hidden_name()
        try:
            self.link(hidden)
            self._hidden.append(hidden)
        except OSError:  # no links here
            copied, held = _new_held(self._new_file)
            shutil.copyfile(self.path, copied)
            if self._held is not None:
                os.close(self._held)
            self._held = held

    def close(self) -> None:
        """Remove the draft. A draft that was given other names remains as a file with these names."""
        for hidden in self._hidden:
            hidden.unlink(missing_ok=True)
        if self._held is not None:
            os.close(self._held)

    def _new_file(self) -> Path:
        hidden = self._hidden_name()
        hidden.open("xb").close()
        self._hidden.append(hidden)
        return hidden

    def _hidden_name(self) -> Path:
        return self.target.with_name(f".{self.target.name}.{secrets.token_hex(8)}.draft")


def remove_drafts(folder: Path) -> None:
    """Remove the drafts that killed processes left in a folder."""
    _remove_abandoned(folder, f".*.{_HEX}.draft")


@contextmanager
def temporary_folder(parent: str | None = None) -> Iterator[Path]:
    """Make a temporary folder, which is removed at the end of the `with` block. First remove folders that
    killed processes left.

    Parameters
    ----------
    parent : Folder in which the temporary folder is made. By default, the system's folder for temporary
    files.
    """
    folder, held = _new_folder(parent or tempfile.gettempdir())
    try:
        yield folder
    finally:
        _remove_in_use(folder)
        if held is not None:
            os.close(held)


def _remove_in_use(folder: Path) -> None:
    """Remove a folder to which other processes may still write. The folder is renamed first, so that these
    processes no longer find the folder.
    """
    with suppress(OSError):
        folder = folder.rename(folder.with_name(f"wb-{secrets.token_hex(8)}"))
    shutil.rmtree(folder, ignore_errors=True)


def process_folder(parent: str | None = None) -> Path:
    """Return a new temporary folder. The folder is removed when this process ends. Child processes that were
    forked do not remove the folder.
    """
    folder, _ = _new_folder(parent or tempfile.gettempdir())  # held until the process ends
    atexit.register(_remove_own, os.getpid(), folder)
    return folder


@cache
def socket_folder() -> Path:
    """Return this process's folder for the sockets of kernels. Only its owner can open it, so no other user
    can read what a kernel shows. Its path is short, because systems limit the paths of sockets.
    """
    return process_folder(None if os.name == "nt" else "/tmp")


def _remove_own(owner: int, folder: Path) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _new_folder(parent: str) -> tuple[Path, int | None]:
    """Make a new folder. Return its path, and the object that keeps the lock on it."""
    _remove_abandoned(Path(parent), f"wb-{_HEX}")

    def new_folder() -> Path:
        path = Path(parent, f"wb-{secrets.token_hex(8)}")
        path.mkdir(0o700)
        return path

    return _new_held(new_folder)


def _unnamed(folder: Path) -> int | None:
    """Return a descriptor of a new file without a name. Return None if the system could not give the file a
    name later.
    """
    try:
        held = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
    except (AttributeError, OSError):
        return None
    if os.path.exists(f"/proc/self/fd/{held}"):
        return held
    os.close(held)
    return None


def _new_held(make: Callable[[], Path]) -> tuple[Path, int | None]:
    """Make a file or folder with the function `make`, and lock it. If another process removes the new file or
    folder before it is locked, make it again.
    """
    for _ in range(_ATTEMPTS):
        path = make()
        held = _hold(path)
        if held is not None:
            return path, held
    return path, None  # no locks here: nobody gets one to remove it


def _hold(path: Path) -> int | None:
    """Lock `path`, and return the descriptor of the lock. Return None if the path does not exist, or if
    another process has locked it.
    """
    if not _LOCKS:
        return None
    try:
        held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if _lock(held) and os.path.samestat(os.fstat(held), os.lstat(path)):
            return held
    except OSError:  # it is gone
        pass
    os.close(held)
    return None


def _lock(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False


def _remove_abandoned(folder: Path, pattern: str) -> None:
    """Remove files and folders of the workbench that no process has locked."""
    for path in folder.glob(pattern):
        held = _hold(path)
        if held is None:
            continue
        with suppress(OSError):
            if os.fstat(held).st_uid == os.geteuid():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        os.close(held)


# Provenance

FORMAT = 1
_KEY = "workbench"
_KINDS = dict.fromkeys(("files", "parameters", "setting", "versions", "release"), dict) | {
    "datasets": list
}
_LARGEST = 500_000_000  # bytes of a file that is looked through
_PDF = re.compile(rb"/Keywords \(((?:\\.|[^\\)])*)\)", re.DOTALL)
_SVG = re.compile(r"<dc:description>(.*?)</dc:description>", re.DOTALL)
_COMMENT = re.compile(rf"^(?:% |<!-- ){_KEY}: (\{{.*\}})(?: -->)?$", re.MULTILINE)


@cache
def commit() -> str | None:
    """Return the git commit of the workbench's source code. If the code has uncommitted changes, the text
    ends with "with changes". Return None if the code is not in a git repository.
    """
    root = Path(__file__).resolve().parents[2]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return result.stdout.strip()

    try:
        if not (root / ".git").exists():
            return None
        head = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no")
        return f"{head} with changes" if changed else head
    except (OSError, subprocess.SubprocessError):
        return None


def file_sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def to_text(record: dict[str, Any]) -> str:
    """Return a provenance record as one line of ASCII text. Equal records give equal texts."""
    return json.dumps({"format": FORMAT} | record, sort_keys=True)


def picture_metadata(kind: str, record: dict[str, Any]) -> dict[str, str | None]:
    """Return the metadata that matplotlib writes into a picture. The metadata contain the provenance record
    but no date, so the same figure always gives the same file.
    """
    text = to_text(record)
    if kind == "pdf":
        return {"CreationDate": None, "Keywords": text}
    if kind == "svg":
        return {"Date": None, "Description": text}
    return {_KEY: text}


def _is_changed(path: Path, record: dict[str, Any]) -> bool:
    """Return whether a file has changed since the record next to it was written."""
    named = record.get("sha256", {})
    if not isinstance(named, dict):
        return False
    expected = named.get(path.name)
    if expected is None and len(named) == 1 and sidecar(path).is_file():
        (expected,) = named.values()  # both were renamed
    return expected is not None and file_sha256(path) != expected


def comment(kind: str, record: dict[str, Any]) -> str:
    """Return a provenance record as a comment in the syntax of LaTeX and BibTeX, or of Markdown."""
    text = to_text(record).replace("--", r"-\u002d")  # which would end a comment
    text = text.replace("@", r"\u0040")  # which would begin an entry of BibTeX
    return f"% {_KEY}: {text}" if kind == "tex" else f"<!-- {_KEY}: {text} -->"


def sidecar(path: Path) -> Path:
    """Return the path of the JSON file that contains the record of a CSV file, for example `x.csv.json`."""
    return path.with_name(f"{path.name}.json")


def read(path: str | Path) -> dict[str, Any]:
    """Return the provenance record in a file, which describes how the file was made.

    Parameters
    ----------
    path : path
        Path of a picture, a release, a table, or the folder of a saved figure.

    Returns
    -------
    dict
        Provenance record. Do not trust the contents of the record, because anyone may have written the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file has no record, or if the file was changed after it was written. The error is also raised if
        a version of the workbench with another format wrote the file.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        text = _text(path)
        record = json.loads(text) if text else None
    except (ValueError, RecursionError):
        record = None
    if not _is_record(record):
        raise ValueError(
            f"{path} has no record of how it was made. Either this workbench did not write it, or "
            "another program has rewritten it"
        )
    if record.get("format") != FORMAT:
        raise ValueError(
            f"{path} was written by another version of the workbench (format "
            f"{record.get('format')!r}, this one reads {FORMAT}). Update the workbench"
        )
    if _is_changed(path, record):
        raise ValueError(f"{path} has been changed since the workbench wrote it")
    return record


def _is_record(x: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether an object has the form of a provenance record that the workbench writes."""
    if not isinstance(x, dict) or not {"command", "mechanism"} & {*x}:
        return False
    return all(isinstance(x[name], kind) for name, kind in _KINDS.items() if name in x)


def _text(path: Path) -> str:
    """Return the text of the provenance record in a file, without any check. Return "" if the file has no
    record.
    """
    if path.is_dir() or path.suffix == ".json":
        return _text_of(path / "manifest.json" if path.is_dir() else path)
    if path.stat().st_size > _LARGEST:
        return ""
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(b"\x89PNG"):
        return _png_text(path)
    if start.startswith(b"PAR1"):
        return _parquet_text(path)
    content = path.read_bytes()
    if start.startswith(b"%PDF"):
        keywords = _PDF.search(content)
        return re.sub(rb"\\(.)", rb"\1", keywords[1]).decode("ascii") if keywords else ""
    text = content.decode("utf-8", errors="replace")
    for pattern in (_SVG, _COMMENT):
        written = pattern.search(text)
        if written:
            return unescape(written[1]) if pattern is _SVG else written[1]
    return _text_of(sidecar(path)) or _text_of(path.with_name("manifest.json"), path.name)


def _text_of(path: Path, name: str = "") -> str:
    """Return the text of a record that is stored in a separate file. The record of a whole folder is used
    only if it contains the name of the file.
    """
    if not path.is_file() or path.stat().st_size > _LARGEST:
        return ""
    text = path.read_text(encoding="utf-8")
    record = json.loads(text)
    return text if not name or name in record.get("sha256", {}) else ""


def _png_text(path: Path) -> str:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            return str(picture.info.get(_KEY, ""))
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError):
        return ""


def _parquet_text(path: Path) -> str:
    try:
        metadata = parquet.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError):
        return ""
    return metadata.get(_KEY.encode(), b"").decode("utf-8", errors="replace")
