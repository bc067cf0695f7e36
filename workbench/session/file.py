"""A session's file: what it belongs to, what was spent and the answers, in SQLite."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_APPLICATION_ID = 0x64705331  # SQLite's mark of a session
_WAIT = 30.0  # seconds that another process may hold the file
_README = (
    "No private data is in this file: it holds questions, what each cost, and noisy answers that left "
    "under differential privacy. It is the only memory of what is spent: a copy, or a second file on "
    "the same data, would spend the budget anew."
)
_TABLES = """
CREATE TABLE readme (text TEXT NOT NULL);
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE ledger (question INTEGER PRIMARY KEY, time TEXT NOT NULL, asked TEXT NOT NULL,
  queries INTEGER NOT NULL, deviation REAL NOT NULL, answered INTEGER NOT NULL DEFAULT 0,
  epsilon REAL NOT NULL CHECK (typeof(epsilon) = 'real' AND epsilon > 0 AND epsilon < 9e999));
CREATE TABLE bank (place INTEGER PRIMARY KEY, question INTEGER NOT NULL, query TEXT NOT NULL,
  variance REAL NOT NULL, value);
CREATE INDEX questions ON bank (question);
CREATE TRIGGER kept BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'spent is spent'); END;
CREATE TRIGGER paid BEFORE UPDATE OF epsilon ON ledger BEGIN SELECT RAISE(ABORT, 'spent'); END;
"""
_METADATA = {"format", "id", "budget", "domain", "bound", "dataset", "total"}


class SessionFile:
    """The file at `path`, and what this process has seen in it: its id and its latest question."""

    def __init__(self, path: Path):
        self.path = path
        self._id: str | None = None
        self._latest_question = 0

    @contextmanager
    def transaction(
        self, new: bool = False, write: bool = True
    ) -> Iterator[sqlite3.Connection]:
        """All of it on disk when it ends, or nothing; nobody else writes meanwhile.

        A connection each time: forks and threads share none. A rollback journal: a write-ahead log
        would hold spends in a second file. EXTRA: a journal that came back after a power cut would undo
        a spend.
        """
        if not new and not self.path.exists():
            raise FileNotFoundError(f"{self.path}: the session is gone; nothing was asked")
        uri = f"{self.path.as_uri()}?mode={'rwc' if new else 'rw'}"
        db = None
        try:
            db = sqlite3.connect(uri, uri=True, timeout=_WAIT, isolation_level=None)
            _check_kind(db, self.path, new)
            for setting in ("synchronous = EXTRA", "fullfsync = ON", "journal_mode = DELETE"):
                db.execute(f"PRAGMA {setting}").fetchall()
            db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            if self._id is not None:
                self._check_same(db)
            yield db
            latest_question = _latest_question(db)
            db.execute("COMMIT")
            self._latest_question = max(self._latest_question, latest_question)
        except sqlite3.Error as e:
            raise _refusal(self.path, e) from None
        finally:
            if db is not None:
                db.close()  # what is not committed is rolled back

    def settle(self, db: sqlite3.Connection, stated: dict[str, Any]) -> dict[str, Any]:
        """What the file belongs to, which `stated` must agree with; if it is new, it is written."""
        if not db.execute("PRAGMA application_id").fetchone()[0]:
            _create(db, stated)
        damage = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        stored = dict(db.execute("SELECT name, value FROM about"))
        if damage != "ok" or not _METADATA <= set(stored) or stored["format"] != "1":
            raise ValueError(f"{self.path}: a damaged session, or one of another version")
        for name, value in stated.items():
            text = json.dumps(value)
            if stored[name] != text:  # as text: the order of attributes counts
                raise ValueError(
                    f"{self.path} belongs to {name} {stored[name][:80]}, not to {text[:80]}"
                )
        self._id = stored["id"]
        return {name: json.loads(text) for name, text in stored.items()}

    def lock_data(self, data: Path, lost: bool) -> None:
        """Name the session beside its data; a ValueError if another is named there."""
        if not data.exists():
            raise FileNotFoundError(f"{data}: no such data")
        lock = data.with_name(f"{data.name}.session")
        this_session = {"session": str(self.path), "id": json.loads(self._id)}
        named = _named_session(lock)
        if named == this_session:
            return
        if named is not None:
            other = Path(named["session"])
            if not lost or other.exists() and other not in (self.path, lock):
                raise ValueError(
                    f"{lock} names another session, {other}: a second budget adds to what that one "
                    "spent. Open that one; if it is gone, say lost=True and count what it spent"
                )
        try:
            with open(lock, "x" if named is None else "w") as file:
                file.write(json.dumps(this_session))
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            raise ValueError(f"{lock}: another session was quicker; open that one") from None

    def _check_same(self, db: sqlite3.Connection) -> None:
        """A ValueError if the file at the path is another one by now, or an older copy."""
        stored = db.execute("SELECT value FROM about WHERE name = 'id'").fetchone()
        if stored != (self._id,):
            raise ValueError(f"{self.path}: another session has taken this one's place")
        if _latest_question(db) < self._latest_question:
            raise ValueError(
                f"{self.path}: an older copy has taken this session's place: it has forgotten "
                "what was spent, so nothing more is asked of it"
            )


def _latest_question(db: sqlite3.Connection) -> int:
    return db.execute("SELECT coalesce(max(question), 0) FROM ledger").fetchone()[0]


def _create(db: sqlite3.Connection, stated: dict[str, Any]) -> None:
    """The tables of a new session."""
    metadata = {
        "format": 1,
        "id": secrets.token_hex(16),
        "dataset": None,
        "total": None,
    } | stated
    for statement in _TABLES.split(";\n"):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    db.execute("INSERT INTO readme VALUES (?)", (_README,))
    rows = ((name, json.dumps(value)) for name, value in metadata.items())
    db.executemany("INSERT INTO about VALUES (?, ?)", rows)


def _named_session(lock: Path) -> dict[str, str] | None:
    """What a lock beside data says; where it cannot be read, that the lock itself is the session."""
    if not lock.exists():
        return None
    try:
        named = json.loads(lock.read_text())
        Path(named["session"])
        return named
    except (ValueError, KeyError, TypeError):
        return {"session": str(lock)}


def _check_kind(db: sqlite3.Connection, path: Path, new: bool) -> None:
    """A ValueError unless the file is a session's, or empty and to become one."""
    kind = db.execute("PRAGMA application_id").fetchone()[0]
    if kind == _APPLICATION_ID:
        return
    if kind or not new or db.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise ValueError(f"{path}: not a session of this workbench")


def _refusal(path: Path, e: sqlite3.Error) -> Exception:
    """One of three: held by others, not writable, not a session's."""
    name = getattr(e, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return TimeoutError(f"{path}: another process holds it; nothing was asked")
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return OSError(f"{path}: cannot be written ({e}). Is the disk full? Nothing was asked")
    return ValueError(f"{path}: not a session of this workbench, or a damaged one ({e})")
