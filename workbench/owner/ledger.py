"""Files of a budget. An SQLite file contains the budget and its bank (the store of noisy answers). A second,
small file is the counter, which helps to detect an older copy of the SQLite file.

Counter. An older copy of the SQLite file lacks later spends (costs that were recorded). The counter contains
the id of the SQLite file, the number of the latest spend, and the checksum of the row that records this spend.
If the SQLite file lacks this row, or has another row in its place, opening the file raises an error. If
somebody restores older copies of both files, the workbench cannot detect this.

Ledger. The SQLite file has a table with one row per spend. Each row contains a checksum of itself and all rows
before it. A row pays for answers or for a release. Once these exist, the row also gets a *seal*, which is a
checksum of the answers. If a row was changed, even in one bit, reading the row raises an error.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Annotated, Any

import msgspec

from workbench.estimates.files import Draft
from workbench.privacy import ADD_REMOVE, DP, ZCDP
from workbench.value import shown

# Counter

_LARGEST = 1 << 20  # bytes of a counter, which is one line


class _Counted(msgspec.Struct):
    """Content of a counter file. If the counter file cannot be read, only the field `session` is set, to the
    path of the counter file.
    """

    session: str
    id: str | None = None
    spent: Annotated[int, msgspec.Meta(ge=0)] | None = None
    checksum: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2})*$")] = ""


@dataclass(frozen=True)
class Counter:
    """Counter file at `path`, which counts the spends of a budget. The budget is stored in the file
    `session`, and `id` identifies it.
    """

    path: Path
    session: Path
    id: str

    def read(self) -> tuple[int, bytes]:
        """Return the number of the latest spend in the counter, and the checksum of the ledger row that
        records this spend.
        """
        named = _named_session(self.path)
        if named is None:
            raise FileNotFoundError(
                f"{self.path}: the counter of {self.session} is missing. Put it back. If it is lost, and "
                "the file is surely the latest copy, open it with lost=True (workbench budget show --lost)"
            )
        if named.id != self.id:
            other = shown(named.session)
            torn = (
                ". If it is torn, move it away, and open with lost=True (workbench budget show --lost)"
                if named.id is None
                else ""
            )
            raise ValueError(f"{self.path} counts for another session, {other}{torn}")
        return named.spent or 0, bytes.fromhex(named.checksum)

    def draft(self) -> Draft:
        """Reserve disk space for the next call of `write`. Return a draft (an unfinished file), which you
        pass to `write`.
        """
        with self._named():
            draft = Draft(self.path)
            try:
                _write(draft.path, self._text(2**62, bytes(32)))
            except BaseException:
                draft.close()
                raise
            return draft

    def write(self, draft: Draft, spent: int, checksum: bytes) -> None:
        """Write the number and the checksum of the latest spend. If the process is killed meanwhile, the
        counter keeps its old content.
        """
        with self._named():
            _write(draft.path, self._text(spent, checksum))
            draft.replace(self.path)

    def begin(self, again: bool = False) -> None:
        """Write a new counter. If a file exists at its path, replace this file if `again` is True, and raise
        a FileExistsError if `again` is False.
        """
        if not again:
            open(self.path, "xb").close()
        with closing(self.draft()) as draft:
            self.write(draft, 0, b"")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Add the path of the counter to disk errors that occur in the `with` block."""
        try:
            yield
        except OSError as e:
            text = f"{self.path}: the counter cannot be written ({e.strerror or e})"
            raise OSError(text) from None

    def _text(self, spent: int, checksum: bytes) -> str:
        counted = _Counted(str(self.session), self.id, spent, checksum.hex())
        return json.dumps(msgspec.to_builtins(counted))


def _write(path: Path, text: str) -> None:
    """Overwrite the text of a file in place. This needs no additional disk space if the new text is not
    longer than the old one.
    """
    with open(path, "r+") as file:
        file.write(text)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def new_counter(path: Path, session: Path, id: str) -> None:
    """Write the counter of a new budget. Raise a ValueError if this path contains the counter of
    another budget, from which something was spent.
    """
    named = _named_session(path)
    if named is not None and named.spent != 0:
        raise ValueError(
            f"{path} counts for another budget, {shown(named.session)}, which was used. A second budget "
            "for the same people adds to its loss. Use that one, or name another counter"
        )
    again = named is not None  # of a budget that was never finished or never used
    Counter(path, session, id).begin(again)


def known_counter(path: Path, session: Path, id: str, lost: bool) -> Counter:
    """Return the counter of an existing budget. If the counter file does not exist and the caller confirms
    that it is lost, create a new counter.

    The path of the counter is read from the budget's file, which may be untrusted. For this reason, the
    function never overwrites an existing file.
    """
    counter = Counter(path, session, id)
    if lost and not path.exists():
        counter.begin()
    counter.read()
    return counter


def data_counter(data: Path, session: Path, id: str, lost: bool) -> Counter:
    """Return the counter next to the data file, and create it if it does not exist. If this counter belongs
    to another budget, raise a ValueError, unless the caller confirms that the other budget is lost.
    """
    if not data.exists():
        raise FileNotFoundError(f"{data}: no such data file")
    lock = data.with_name(f"{data.name}.session")
    counter = Counter(lock, session, id)
    named = _named_session(lock)
    if named is not None and (named.session, named.id) == (str(session), id):
        return counter
    if named is not None:
        other = Path(named.session)
        if not lost or other.exists() and other not in (session, lock):
            raise ValueError(
                f"{lock} names another session, {shown(str(other))}. A second budget adds to its loss. Open "
                "that one. If it is lost, use Session.open(path, lost=True) and count its spends"
            )
    try:
        counter.begin(again=named is not None)
    except FileExistsError:
        raise ValueError(f"{lock}: another session was created first. Open that one") from None
    return counter


def _named_session(lock: Path) -> _Counted | None:
    """Return the content of a counter file, or None if there is no such file."""
    if not lock.exists():
        return None
    try:
        if not lock.is_file():  # a device or a pipe may have no end
            raise ValueError(f"{lock} is not a file")
        with open(lock, "rb") as file:
            return msgspec.json.decode(file.read(_LARGEST), type=_Counted)
    except (ValueError, RecursionError):  # one of msgspec is a ValueError
        return _Counted(str(lock))


# File

_APPLICATION_ID = 0x64705331  # SQLite's mark of a session
_FORMAT = 2
_UNSEALED = bytes(32)
_README = (
    "No private data is in this file: it holds questions, what each cost, and noisy answers that left "
    "under differential privacy. It is the only memory of what is spent: a copy, or a second file on "
    "the same data, would spend the budget anew."
)
_LEDGER = """
CREATE TABLE ledger (question INTEGER PRIMARY KEY, time TEXT NOT NULL, asked TEXT NOT NULL,
  queries INTEGER, deviation REAL, file TEXT,
  PRICE REAL NOT NULL CHECK (typeof(PRICE) = 'real' AND PRICE > 0 AND PRICE < 9e999),
  delta REAL NOT NULL CHECK (typeof(delta) = 'real' AND delta >= 0 AND delta < 1),
  checksum BLOB NOT NULL, seal BLOB NOT NULL);
CREATE TRIGGER kept BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'spent is spent'); END;
CREATE TRIGGER paid BEFORE UPDATE OF PRICE, delta ON ledger BEGIN SELECT RAISE(ABORT, 'spent'); END;
"""
_TABLES = """
CREATE TABLE readme (text TEXT NOT NULL);
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE bank (place INTEGER PRIMARY KEY, question INTEGER NOT NULL, query TEXT NOT NULL,
  variance REAL NOT NULL, value);
CREATE INDEX questions ON bank (question);
"""
_TRIGGER = re.compile(  # of ours, of this format and the first
    r"CREATE TRIGGER \w+ BEFORE (DELETE|UPDATE OF [\w, ]+) ON ledger "
    r"BEGIN SELECT RAISE\(ABORT, '[\w ]+'\); END"
)


class _About(msgspec.Struct, kw_only=True):
    """Facts that are stored in the file of a budget: the limit, the people and a description of the table."""

    format: int = _FORMAT
    id: str
    budget: list[int | float] | dict[str, int | float]
    people: str | None = None
    unit: str | None = None
    relation: str = ADD_REMOVE
    counter: str | None = None
    domain: dict[str, Any] | None = None
    bound: Annotated[list[int | float], msgspec.Meta(min_length=3, max_length=3)] | None = None
    dataset: str | None = None
    total: int | float | None = None


_NOTHING = (0, b"")  # the latest spend of an empty ledger
ANSWERED = "SELECT *, seal <> zeroblob(32) AS answered FROM ledger"
_COLUMNS = (
    "question",
    "time",
    "asked",
    "queries",
    "deviation",
    "file",
)  # then the price, delta


class SessionFile:
    """SQLite file of a budget and a bank, at `path`. The object remembers the id of the file, and the latest
    spend that this process has seen in the file.
    """

    wait = 30.0  # seconds that another process may hold the file

    def __init__(self, path: Path):
        self.path = path
        self.id = ""  # until it is settled
        self._latest = _NOTHING
        self.counters: list[Counter] = []

    @contextmanager
    def transaction(
        self, new: bool = False, write: bool = True
    ) -> Iterator[sqlite3.Connection]:
        """Open a database transaction. At the end of the `with` block, all changes that the block made are
        written to disk. If the block raises an error, no change is written. During the block, other processes
        cannot write to the file.

        Each transaction opens a new connection, because forked processes and threads must not share a
        connection. The database uses a rollback journal. With a write-ahead log, recent spends would be in a
        second file. The setting synchronous=EXTRA makes sure that a deleted journal does not reappear after a
        power failure and undo a spend.
        """
        if not new and not self.path.exists():
            raise FileNotFoundError(f"{self.path}: the session is missing. Nothing was asked")
        uri = f"{self.path.as_uri()}?mode={'rwc' if new else 'rw'}"
        db = None
        try:
            db = sqlite3.connect(uri, uri=True, timeout=self.wait, isolation_level=None)
            _check_kind(db, self.path, new)
            for setting in ("synchronous = EXTRA", "fullfsync = ON", "journal_mode = DELETE"):
                db.execute(f"PRAGMA {setting}").fetchall()
            db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            if _is_of_format_1(db):
                db.execute("ROLLBACK")
                db.execute("BEGIN IMMEDIATE")
                _bring_up_to_date(db, self.path)
            if self.id:
                self._check_same(db)
            yield db
            latest = latest_spend(db)
            db.execute("COMMIT")
            self._latest = max(self._latest, latest)
        except sqlite3.Error as e:
            raise _refusal(self.path, e) from None
        finally:
            if db is not None:
                db.close()  # what is not committed is rolled back

    def settle(self, db: sqlite3.Connection, stated: dict[str, Any]) -> dict[str, Any]:
        """Return the facts that are stored in the budget's file, for example its limit. Raise a ValueError if
        the stored facts contradict the facts in `stated`. If the file is new, write the stated facts to it.
        """
        if not is_begun(db):
            _create(db, stated)
        texts = _about(db, self.path)
        stored = {name: json.loads(text) for name, text in texts.items()}
        try:
            msgspec.convert(stored, _About)
        except msgspec.ValidationError as e:
            raise ValueError(
                f"{self.path}: a damaged session, or one of another version ({e})"
            ) from None
        has_bank = stored["domain"] is not None
        for name, value in stated.items():
            if stored[name] is None and (name == "unit" or not has_bank):
                stored[name] = value  # until the first question is asked
            elif not _agree(name, stored[name], value):
                raise ValueError(
                    f"{self.path} belongs to {_in_words(name, stored[name])}, "
                    f"not to {_in_words(name, value)}"
                )
        self.id = stored["id"]
        self._check_same(db)
        return stored

    def begin_bank(self, db: sqlite3.Connection, stated: dict[str, Any]) -> dict[str, Any]:
        """Write the description of the bank's table to the file, and the protected unit if the file has none
        yet. If the file already describes another table or another unit, raise a ValueError.
        """
        before = _about(db, self.path)
        stored = self.settle(db, stated)
        if before["domain"] == "null" or before["unit"] != json.dumps(stored["unit"]):
            _write_about(db, stored)
        return stored

    def watch(self, db: sqlite3.Connection, counter: Counter) -> None:
        """Compare the ledger (the list of all costs) with this counter now and in all later transactions of
        this object.
        """
        self.counters.append(counter)
        self._check_same(db)

    @contextmanager
    def spending(self, what: str) -> Iterator[sqlite3.Connection]:
        """Run a transaction that spends budget, and then update the counters, so that they agree with the
        ledger.

        Before the spend, disk space for the counters is reserved. So if the disk is full, nothing is spent.
        The counters are written only after the spend is on disk. If a counter were ahead of its ledger, the
        workbench would reject a valid file. If two processes spend in turn, the later one writes the larger
        number.

        Parameters
        ----------
        what : Description of the spend, for the error if a counter cannot be written.
        """
        with ExitStack() as stack:
            try:
                drafts = [
                    (counter, stack.enter_context(closing(counter.draft())))
                    for counter in self.counters
                ]
            except OSError as e:
                raise OSError(f"{e}. Nothing was spent") from None
            with self.transaction() as db:
                yield db
            if not drafts:
                return
            try:
                with self.transaction() as db:
                    for counter, draft in drafts:
                        counter.write(draft, *latest_spend(db))
            except OSError as e:
                raise OSError(f"{e}. {what}") from None

    def _check_same(self, db: sqlite3.Connection) -> None:
        """Raise a ValueError if the file was replaced by another file or by an older copy, or if it is
        damaged.
        """
        stored = db.execute("SELECT value FROM about WHERE name = 'id'").fetchone()
        if stored != (json.dumps(self.id),):
            raise ValueError(f"{self.path}: another session has replaced this one")
        checksums = _checksums(db, self.path, self.id)
        for latest, checksum in (self._latest, *(c.read() for c in self.counters)):
            if checksums.get(latest) != checksum:
                raise ValueError(
                    f"{self.path}: an older copy has replaced this session. It lacks later spends, so nothing "
                    "more is asked of it"
                )


def budget_record(budget: DP | ZCDP) -> list[float] | dict[str, float]:
    """Return a budget in the form in which files store it: a list of ε and δ, or a mapping with ρ and δ."""
    if isinstance(budget, ZCDP):
        return {"rho": float(budget.rho), "delta": float(budget.delta)}
    return [float(budget.epsilon), float(budget.delta)]


def budget_of(record: Any) -> DP | ZCDP:
    """Return the budget that a record from a file describes. Raise a ValueError if this budget is infinite."""
    if isinstance(record, dict):
        return ZCDP(**record)
    budget = DP(*record)
    if not 0 < budget.epsilon < inf:
        raise ValueError(f"budget = {budget!r} is not allowed: need a finite epsilon > 0")
    return budget


def price_of(record: Any) -> str:
    """Return the kind of cost that a budget adds up, either "rho" or "epsilon". The argument is the budget in
    the form of `budget_record`.
    """
    return "rho" if isinstance(record, dict) else "epsilon"


@contextmanager
def refused_if_strange(path: Path) -> Iterator[None]:
    """Convert errors in the `with` block to a ValueError, which says that the workbench cannot have written
    the file.
    """
    try:
        yield
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as e:
        raise ValueError(
            f"{path}: a damaged session, or one of another version ({type(e).__name__})"
        ) from None


def is_begun(db: sqlite3.Connection) -> bool:
    """Return whether the file already contains a session, which consists of a budget and its bank."""
    return bool(db.execute("PRAGMA application_id").fetchone()[0])


def _columns(db: sqlite3.Connection) -> tuple[str, ...]:
    """Return the columns of a row of the ledger, in the order in which the row's checksum covers them."""
    names = {row[1] for row in db.execute("PRAGMA table_info(ledger)")}
    return (*_COLUMNS, "rho" if "rho" in names else "epsilon", "delta")


def latest_spend(db: sqlite3.Connection) -> tuple[int, bytes]:
    """Return the number and the checksum of the ledger's last row."""
    select = "SELECT question, checksum FROM ledger ORDER BY question DESC LIMIT 1"
    return db.execute(select).fetchone() or _NOTHING


def spend(db: sqlite3.Connection, **row: Any) -> int:
    """Add a spend to the ledger, as a row that has no result yet. Return the number of the row."""
    latest, before = latest_spend(db)
    columns = _columns(db)
    values = [latest + 1, *(row.get(name) for name in columns[1:])]
    checksum = _checksum(before or _root(db), values)
    marks = ", ".join("?" * (len(values) + 2))
    names = ", ".join(columns)
    db.execute(
        f"INSERT INTO ledger ({names}, checksum, seal) VALUES ({marks})",
        [*values, checksum, _UNSEALED],
    )
    return latest + 1


def seal(db: sqlite3.Connection, question: int, answers: Sequence[Sequence[Any]] = ()) -> None:
    """Record that a spend has a result: answers in the bank, or a release."""
    seal = _seal(db, question, answers)
    db.execute("UPDATE ledger SET seal = ? WHERE question = ?", (seal, question))


def read_sealed(db: sqlite3.Connection, path: Path, question: int) -> list[tuple[Any, ...]]:
    """Return three values for each answer to a question: the query, the variance of its noise, and the noisy
    value. Raise a ValueError if an answer in the file was changed.
    """
    select = "SELECT query, variance, value FROM bank WHERE question = ? ORDER BY place"
    answers = db.execute(select, (question,)).fetchall()
    select = "SELECT seal FROM ledger WHERE question = ?"
    if db.execute(select, (question,)).fetchone() != (_seal(db, question, answers),):
        raise ValueError(
            f"{path}: the answers to question {question} were changed after they were written, so the "
            "file is damaged"
        )
    return answers


def _seal(db: sqlite3.Connection, question: int, answers: Sequence[Sequence[Any]]) -> bytes:
    select = "SELECT checksum FROM ledger WHERE question = ?"
    (checksum,) = db.execute(select, (question,)).fetchone()
    return _checksum(checksum, [list(answer) for answer in answers])


def _checksum(before: bytes, values: Any) -> bytes:
    text = json.dumps(values, default=repr)  # bytes: where a flipped bit has made them of text
    return sha256(before + text.encode()).digest()


def _root(db: sqlite3.Connection) -> bytes:
    """Return the checksum before the first row of the ledger, which follows from the id of the file."""
    (text,) = db.execute("SELECT value FROM about WHERE name = 'id'").fetchone()
    return _checksum(b"", json.loads(text))


def _checksums(db: sqlite3.Connection, path: Path, id: str) -> dict[int, bytes]:
    """Return the checksums of all rows of the ledger, by the number of the row. Raise a ValueError if a row
    was changed.
    """
    checksums = dict([_NOTHING])
    before = _checksum(b"", id)
    select = f"SELECT {', '.join(_columns(db))}, checksum FROM ledger ORDER BY question"
    for *values, checksum in db.execute(select):
        if checksum != _checksum(before, values):
            raise ValueError(
                f"{path}: row {values[0]} of the ledger is not as it was written: the file is damaged"
            )
        checksums[values[0]] = before = checksum
    return checksums


def _create(db: sqlite3.Connection, stated: dict[str, Any]) -> None:
    """Create the database tables of a new file. The ledger gets a column for ε or for ρ, depending on the
    budget.
    """
    ledger = _LEDGER.replace("PRICE", price_of(stated["budget"]))
    for statement in (_TABLES + ledger).split(";\n"):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    db.execute("INSERT INTO readme VALUES (?)", (_README,))
    about = _About(id=secrets.token_hex(16), **stated)
    _write_about(db, msgspec.to_builtins(about))


def _write_about(db: sqlite3.Connection, about: dict[str, Any]) -> None:
    """Write the facts about the file, for example its budget and domain, with a checksum."""
    texts = {name: json.dumps(value) for name, value in about.items()}
    texts["checksum"] = _checksum(b"", sorted(texts.items())).hex()
    db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", texts.items())


def _about(db: sqlite3.Connection, path: Path) -> dict[str, str]:
    """Return the facts about the file as text. Raise a ValueError if they were changed."""
    damage = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    texts = dict(db.execute("SELECT name, value FROM about"))
    checksum = texts.pop("checksum", None)
    whole = damage == "ok" and checksum == _checksum(b"", sorted(texts.items())).hex()
    whole = whole and {*_About.__struct_fields__} <= texts.keys()
    if not whole or texts["format"] != str(_FORMAT):
        raise ValueError(f"{path}: a damaged session, or one of another version")
    return texts


def _agree(name: str, stored: Any, stated: Any) -> bool:
    """Return whether a fact that the caller states equals the fact in the file. Both are compared as JSON
    text, so attributes in another order count as different. Units are compared by `same_unit`.
    """
    if name == "unit" and stored and stated:
        return same_unit(stored, stated)
    return json.dumps(stored) == json.dumps(stated)


def _in_words(name: str, value: Any) -> str:
    """Describe a fact in words, for the error message if the caller states another fact than the file."""
    if name == "budget":
        return f"the budget {budget_of(value)}"
    return f"{name} {json.dumps(value, ensure_ascii=False)[:80]}"


def _is_of_format_1(db: sqlite3.Connection) -> bool:
    """Return whether the file has the oldest format, in which budgets have no δ and ledgers have no
    checksums.
    """
    if not is_begun(db):
        return False
    return db.execute("SELECT value FROM about WHERE name = 'format'").fetchone() == ("1",)


def _bring_up_to_date(db: sqlite3.Connection, path: Path) -> None:
    """Convert a file of the oldest format (format 1) to the current one. This happens in one transaction, so
    that no spend can be lost.
    """
    if not _is_of_format_1(db):
        return  # another process was quicker
    if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise ValueError(f"{path}: a damaged session")
    about = {name: json.loads(x) for name, x in db.execute("SELECT name, value FROM about")}
    rows = db.execute(
        "SELECT question, time, asked, queries, deviation, epsilon, answered FROM ledger "
        "ORDER BY question"
    ).fetchall()
    db.execute("DROP TABLE ledger")
    for statement in _LEDGER.replace("PRICE", "epsilon").split(";\n"):
        db.execute(statement)
    brought = about | {"format": _FORMAT, "budget": [about["budget"], 0.0]}
    _write_about(db, msgspec.to_builtins(msgspec.convert(brought, _About)))
    for question, *values, answered in rows:
        names = ("time", "asked", "queries", "deviation", "epsilon")
        number = spend(db, **dict(zip(names, values, strict=True)), delta=0.0)
        if number != question:
            raise ValueError(
                f"{path}: a damaged session: row {number} of its ledger is missing"
            )
        if answered:
            select = "SELECT query, variance, value FROM bank WHERE question = ? ORDER BY place"
            seal(db, question, db.execute(select, (question,)).fetchall())


def same_unit(one: str, other: str) -> bool:
    """Return whether two texts name the same unit. For example, "a user", "User" and "each user" are the
    same, but "user (years)" is another unit.
    """
    return _unit_words(one) == _unit_words(other)


def _unit_words(text: str) -> list[str]:
    words = text.casefold().split()
    return words[1:] if words[:1] and words[0] in ("a", "an", "one", "each", "the") else words


def _check_kind(db: sqlite3.Connection, path: Path, new: bool) -> None:
    """Raise a ValueError unless the file contains a session, or is empty and `new` is set."""
    kind = db.execute("PRAGMA application_id").fetchone()[0]
    if kind == _APPLICATION_ID:
        _refuse_computed(db, path)
        return
    if kind or not new or db.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise ValueError(f"{path}: not a session or budget of this workbench")


def _refuse_computed(db: sqlite3.Connection, path: Path) -> None:
    """Raise a ValueError if the file has views, computed columns or unknown triggers, because SQLite would
    run the code in them.
    """
    select = (
        "SELECT type, name, sql FROM sqlite_master WHERE type IN ('view', 'trigger', 'table')"
    )
    for kind, name, sql in db.execute(select).fetchall():
        plain = kind == "table" and not sql.startswith("CREATE VIRTUAL")
        if plain:
            hidden = "SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden"
            plain = db.execute(hidden, (name,)).fetchone() is None
        if not plain and not (kind == "trigger" and _TRIGGER.fullmatch(sql)):
            raise ValueError(
                f"{path}: a session has no {kind} like {shown(name)}, which could run code"
            )


def _refusal(path: Path, e: sqlite3.Error) -> Exception:
    """Return the exception to raise for an SQLite error. It says whether another process uses the file, the
    file cannot be written, or the file contains no session.
    """
    name = getattr(e, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return TimeoutError(f"{path}: another process uses this file. Nothing was asked")
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return OSError(
            f"{path}: cannot be written ({e}). Is there room, and may you write here? Nothing was asked"
        )
    return ValueError(f"{path}: not a session or budget of this workbench, or damaged ({e})")
