"""Sessions with a bank, and budgets."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import strategies as st

from tests.fuzz.damage import damaged, damaged_json
from tests.fuzz.format import DOMAIN, Draw
from workbench import DP, ZCDP, Bound, Marginals, SparseTable, mechanisms
from workbench.owner import Budget, Session, ledger

STRANGE_CELLS = [None, 0, -1, 1e308, "nan", "{", b"\xff", '["r", 0, 1e99]']  # of a database


def files_of(budget: DP | ZCDP, spend: Callable[[Path, SparseTable], None]) -> dict[str, bytes]:
    """A session that was spent from, and its counter."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.session"
        table = SparseTable.from_keys(DOMAIN, [1, 30], [4, 9], Bound())
        Budget.create(path, budget, people="customers", unit="a trip")
        spend(path, table)
        return {p.name: p.read_bytes() for p in Path(folder).iterdir()}


@cache
def session_files() -> dict[str, bytes]:
    """A session with a bank, and its counter."""

    def spend(path: Path, table: SparseTable) -> None:
        session = Session.open(path, table)
        session.ask(Marginals(1), 0.5)
        session.budget.limit.release(
            mechanisms.HighPassFilter(DP(0.25), theta=5), table, unit="a trip"
        )

    return files_of(DP(2.0, 1e-6), spend)


def write_session(folder: Path, draw: Draw) -> None:
    """Bytes of the file or of its counter; or what it says of itself, with a checksum that fits."""
    kind = draw(st.sampled_from(["bytes", "about", "cells"]))
    _put(folder, session_files(), draw if kind == "bytes" else None)
    if kind == "about":
        with _changing(folder) as db:
            texts = dict(db.execute("SELECT name, value FROM about WHERE name <> 'checksum'"))
            record = draw(damaged_json([{n: json.loads(text) for n, text in texts.items()}]))
            if isinstance(record, dict):
                db.execute("DELETE FROM about")
                ledger._write_about(db, record)
    elif kind == "cells":
        cells = [("bank", "query"), ("bank", "variance"), ("bank", "value")]
        table, column = draw(st.sampled_from([*cells, ("ledger", "asked")]))
        with _changing(folder) as db:
            strange = draw(st.sampled_from(STRANGE_CELLS))
            db.execute(f"UPDATE {table} SET {column} = ?", (strange,))


def _put(folder: Path, files: dict[str, bytes], draw: Draw | None) -> None:
    """The files, one of them damaged."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    if draw:
        name = draw(st.sampled_from(sorted(files)))
        (folder / name).write_bytes(draw(damaged([files[name]])))


@contextmanager
def _changing(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database, in which whatever SQLite lets pass may be done."""
    with closing(sqlite3.connect(folder / "a.session")) as db:
        with suppress(sqlite3.Error, ValueError):
            yield db
        db.commit()


def use_session(folder: Path) -> None:
    """What is left, what was spent, and what the bank answers."""
    session = Session.open(folder / "a.session")
    repr(session), session.budget.remaining, session.budget.ledger
    session.bank.recall(Marginals(1))


@cache
def budget_files() -> dict[str, bytes]:
    """A budget in ρ of which a release was made, and its counter."""

    def spend(path: Path, table: SparseTable) -> None:
        mechanism = mechanisms.GeometricHistogram(DP(0.25))
        Budget(path).release(mechanism, table, unit="a trip")

    return files_of(ZCDP(2.0, 1e-6), spend)


def write_budget(folder: Path, draw: Draw) -> None:
    """Bytes of the file or of its counter, or a cell of its ledger."""
    bytewise = draw(st.booleans())
    _put(folder, budget_files(), draw if bytewise else None)
    if not bytewise:
        with _changing(folder) as db:
            columns = [name for _, name, *_ in db.execute("PRAGMA table_info(ledger)")]
            db.execute("DROP TRIGGER paid")
            strange = draw(st.sampled_from([*STRANGE_CELLS, 0.25, b"\0" * 32]))
            db.execute(f"UPDATE ledger SET {draw(st.sampled_from(columns))} = ?", (strange,))


def use_budget(folder: Path) -> None:
    """What is left, and what it was spent on."""
    session = Session.open(folder / "a.session")
    repr(session), session.budget.remaining, session.budget.ledger
