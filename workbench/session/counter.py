"""How far a session's ledger was, in a small file outside the session's own.

An older copy of a session has forgotten what was spent since. The counter has not: it names the session
and holds the number of its latest spend with that row's checksum, so that a copy that lacks the row, or
has another one in its place, is refused. Where both are put back together, nobody can tell.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.temporary import Draft
from workbench.value import shown

_LARGEST = 1 << 20  # bytes of a counter, which is one line


@dataclass(frozen=True)
class Counter:
    """The counter at `path` of the session `id`, whose file is `session`."""

    path: Path
    session: Path
    id: str

    def read(self) -> tuple[int, bytes]:
        """The number of the latest spend that it has seen, and its checksum."""
        named = _named_session(self.path)
        if named is None:
            raise FileNotFoundError(
                f"{self.path}: the counter of {self.session} is gone. Put it back; if it is lost, and "
                "the session's file is surely its latest, open it with lost=True"
            )
        if named.get("id") != self.id:
            other = shown(named["session"])
            torn = "" if "id" in named else "; if it is torn, move it away, then say lost=True"
            raise ValueError(f"{self.path} counts for another session, {other}{torn}")
        return named.get("spent", 0), bytes.fromhex(named.get("checksum", ""))

    def draft(self) -> Draft:
        """A draft that takes its disk space, for `write`."""
        with self._named():
            draft = Draft(self.path)
            try:
                _write(draft.path, self._text(2**62, bytes(32)))
            except BaseException:
                draft.close()
                raise
            return draft

    def write(self, draft: Draft, spent: int, checksum: bytes) -> None:
        """Write the number down, whole or not at all."""
        with self._named():
            _write(draft.path, self._text(spent, checksum))
            draft.replace(self.path)

    def begin_again(self) -> None:
        """Write the first number in place of what is there."""
        with closing(self.draft()) as draft:
            self.write(draft, 0, b"")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the counter in an error of the disk."""
        try:
            yield
        except OSError as e:
            text = f"{self.path}: the counter cannot be written ({e.strerror or e})"
            raise OSError(text) from None

    def begin(self) -> None:
        """Write the first one; a FileExistsError if there is one."""
        open(self.path, "xb").close()
        _write(self.path, self._text(0, b""))

    def _text(self, spent: int, checksum: bytes) -> str:
        named = {"session": str(self.session), "id": self.id}
        return json.dumps(named | {"spent": spent, "checksum": checksum.hex()})


def _write(path: Path, text: str) -> None:
    """Write a text over that of a file, so that it needs no more space if it is no longer."""
    with open(path, "r+") as file:
        file.write(text)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def new_counter(path: Path, session: Path, id: str) -> Counter:
    """The counter of a budget that begins; a ValueError if another one spent from this place."""
    counter = Counter(path, session, id)
    named = _named_session(path)
    if named is not None and named.get("spent", 1):
        raise ValueError(
            f"{path} counts for another budget, {shown(named['session'])}, of which some is spent: a "
            "second budget for the same people adds to it. Use that one, or name another counter"
        )
    if named is None:
        counter.begin()
    else:
        counter.begin_again()  # of a budget that was never finished or never used
    return counter


def known_counter(path: Path, session: Path, id: str, lost: bool) -> Counter:
    """The counter of a budget that was begun before; a new one if it is said to be lost, and is gone.

    The session's file says where it is, and may be a stranger's: nothing that is there is overwritten.
    """
    counter = Counter(path, session, id)
    if lost and not path.exists():
        counter.begin()
    counter.read()
    return counter


def data_counter(data: Path, session: Path, id: str, lost: bool) -> Counter:
    """The counter beside the data, which names the session; a ValueError if another is named there."""
    if not data.exists():
        raise FileNotFoundError(f"{data}: no such data")
    lock = data.with_name(f"{data.name}.session")
    counter = Counter(lock, session, id)
    named = _named_session(lock)
    if named is not None and (named["session"], named.get("id")) == (str(session), id):
        return counter
    if named is not None:
        other = Path(named["session"])
        if not lost or other.exists() and other not in (session, lock):
            raise ValueError(
                f"{lock} names another session, {shown(str(other))}: a second budget adds to what that "
                "one spent. Open that one; if it is gone, say lost=True and count what it spent"
            )
    try:
        if named is None:
            counter.begin()
        else:
            counter.begin_again()
    except FileExistsError:
        raise ValueError(f"{lock}: another session was quicker; open that one") from None
    return counter


def _named_session(lock: Path) -> dict[str, Any] | None:
    """What a counter says; where it cannot be read, that it is itself the session."""
    if not lock.exists():
        return None
    try:
        if not lock.is_file():  # a device or a pipe may have no end
            raise ValueError(f"{lock} is no file")
        with open(lock, "rb") as file:
            named = json.loads(file.read(_LARGEST))
        Path(named["session"])
        bytes.fromhex(named.get("checksum", ""))
        spent = named.get("spent", 0)
        if type(spent) is not int or spent < 0:
            raise ValueError(f"spent = {shown(spent)}")
        return named
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {"session": str(lock)}
