"""Drafts and folders that are gone when their process is, however it ends.

A process that is killed cleans nothing up. A draft has no name where the system can make such files, so
that nothing is left; else, and for folders, their owner holds a lock as long as it lives, and the next
one that comes by removes what nobody holds.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl

    _LOCKS = True
except ImportError:  # Windows: what is left stays
    _LOCKS = False

_ATTEMPTS = 3
_HEX = "[0-9a-f]" * 16


class Draft:
    """A new file, which is written and read at `path` and may be given names beside `target`.

    Unless `clean` is False, drafts of processes that were killed are removed from its folder first.
    """

    def __init__(self, target: Path, clean: bool = True):
        self.target = target
        self._hidden: list[Path] = []
        if clean:
            remove_drafts(target.parent)
        self._held = _unnamed(target.parent)
        if self._held is None:
            self.path, self._held = _new_held(self._new_file)
        else:
            self.path = Path(f"/proc/self/fd/{self._held}")
            _lock(self._held)

    def link(self, to: Path) -> None:
        """One more name; a FileExistsError if it is taken."""
        if self._hidden:
            os.link(self.path, to)
        else:  # with a descriptor, which an absolute path ignores, it is the file and not its link
            os.link(self.path, to, src_dir_fd=self._held)

    def replace(self, to: Path) -> None:
        """Its only name, whatever had it before."""
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
        """Gone, but for the names that it was given."""
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
    """Remove the drafts of processes that were killed."""
    _remove_abandoned(folder, f".*.{_HEX}.draft")


@contextmanager
def temporary_folder(parent: str | None = None) -> Iterator[Path]:
    """A folder that is gone afterwards; those of processes that were killed are removed first.

    Parameters
    ----------
    parent : where; by default where the system has its temporary files.
    """
    folder, held = _new_folder(parent or tempfile.gettempdir())
    try:
        yield folder
    finally:
        _remove_in_use(folder)
        if held is not None:
            os.close(held)


def _remove_in_use(folder: Path) -> None:
    """Remove a folder to which others may still write: by its name they find it no more."""
    with suppress(OSError):
        folder = folder.rename(folder.with_name(f"wb-{secrets.token_hex(8)}"))
    shutil.rmtree(folder, ignore_errors=True)


def process_folder() -> Path:
    """A new temporary folder that lasts as long as this process; children that it forks remove nothing."""
    folder, _ = _new_folder(tempfile.gettempdir())  # held until the process ends
    atexit.register(_remove_own, os.getpid(), folder)
    return folder


def _remove_own(owner: int, folder: Path) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _new_folder(parent: str) -> tuple[Path, int | None]:
    """A folder and what holds it."""
    _remove_abandoned(Path(parent), f"wb-{_HEX}")

    def new_folder() -> Path:
        path = Path(parent, f"wb-{secrets.token_hex(8)}")
        path.mkdir(0o700)
        return path

    return _new_held(new_folder)


def _unnamed(folder: Path) -> int | None:
    """A descriptor of a new file without a name, if it could be given one later."""
    try:
        held = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
    except (AttributeError, OSError):
        return None
    if os.path.exists(f"/proc/self/fd/{held}"):
        return held
    os.close(held)
    return None


def _new_held(make: Callable[[], Path]) -> tuple[Path, int | None]:
    """What `make` makes, with a lock on it; it may be removed between the two, and is made again."""
    for _ in range(_ATTEMPTS):
        path = make()
        held = _hold(path)
        if held is not None:
            return path, held
    return path, None  # no locks here: nobody gets one to remove it


def _hold(path: Path) -> int | None:
    """A descriptor that holds `path`, if it is there and nobody else holds it."""
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
    """Remove what nobody holds, of those that are ours."""
    for path in folder.glob(pattern):
        held = _hold(path)
        if held is None:
            continue
        with suppress(OSError):
            if os.fstat(held).st_uid == os.geteuid():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        os.close(held)
