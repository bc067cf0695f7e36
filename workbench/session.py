"""Session: a gatekeeper before a private table, with a budget, a ledger and every answer ever paid for.

Ledger and bank are one SQLite file. A spend is on disk before any noise is drawn: a process killed at
any instruction may lose an answer, and never forgets a spend. Processes on one file share its budget.
The file holds what has left already (questions, prices, noisy answers) and no private data.

What it cannot do: a copy of the file does not know what is spent on the other, and neither does a
second file on the same data; each would spend the budget anew, and the losses add up. `data=` lays a
lock beside the data against the accident. Nothing here stops intent, nor a disk that lies about writes.

Questions may be chosen by earlier answers: pure ε stays additive. Error bars do not survive that: they
assume questions not chosen by the noise in the very answers that they are then recalled from.

Source     Chen, Zhou & Bhowmick, EDBT 2012, section 3, for `recall`. `price` is the same posterior
           before the answer is there: its errors depend on the noise's variance, not on answers.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from math import exp, inf, isfinite, log, nextafter, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq

from workbench.domain import Domain
from workbench.estimates import NoisyAnswers
from workbench.inference import KernelPCA
from workbench.inference.kernel_pca import Eigenqueries, Posterior, prior_vectors
from workbench.mechanism import Release, sensitivity
from workbench.mechanisms import LaplaceQueries
from workbench.privacy import DP
from workbench.table import Bound, SparseTable
from workbench.workload import Products, Workload, linear_queries, serialise
from workbench.workload.inner import inner_products

if TYPE_CHECKING:
    import pandas as pd

_OURS = 0x64705331  # SQLite's application_id
_WAIT = 30.0  # seconds that another process may hold the file
_LARGE = 1e280  # a variance that tells nothing
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


class Session:
    """Questions to one private table within one budget, in one file; made by `Session.open`.

    The budget is one unit's, added or removed, over the life of the file. Noise is the operating
    system's: there is no `rng`, so that nothing simulated is ever in a bank.
    """

    def __init__(self, path: Path, table: SparseTable | None, prior: Any):
        self.path, self._table, self._prior, self._id = path, table, prior, None
        self._parts: dict[int, NoisyAnswers] = {}
        self._known: tuple[int, Eigenqueries] | None = None
        self._asked = 0  # questions that are known to be in the file

    @classmethod
    def open(
        cls,
        path: str | Path,
        table: SparseTable | None = None,
        budget: DP | None = None,
        *,
        total: float | None = None,
        dataset: str | None = None,
        prior: Any = None,
        data: str | Path | None = None,
        lost: bool = False,
    ) -> Self:
        """Open a session's file, or begin one, which belongs to this budget, domain, bound and dataset.

        `dataset` is a declared name and version: the data are not hashed, since a hash tells. `total`,
        the public number of tuples, stays with the file; `prior`, as `KernelPCA` takes it, may change.
        Without a table the bank still answers. `data` is the file that the table came from:
        `<data>.session` beside it names this session, and any other is refused, unless the named one
        is gone and `lost` says that the caller knows, and counts what it spent.
        """
        path, fresh = Path(path).resolve(), not Path(path).exists()
        if path.is_dir():
            raise ValueError(f"{path} is a folder: need the path of a file")
        stated = _stated(table, budget, total, dataset)
        session = cls(path, table, KernelPCA(1.0, prior=prior).prior)
        new = table is not None and budget is not None
        if fresh and not (new and path.parent.is_dir()):
            raise FileNotFoundError(
                f"{path}: no such session; one begins with table and budget, in a folder that exists"
            )
        with session._transaction(new=new, write=new) as db:
            token = session._settle(db, stated)
            if data is not None:
                _lock(Path(data).resolve(), path, token, lost)
        return session

    def _settle(self, db: sqlite3.Connection, stated: dict) -> str:
        """Compare what the file belongs to with what is stated, or write it if it is new; its id."""
        if not db.execute("PRAGMA application_id").fetchone()[0]:
            about = {"format": 1, "id": secrets.token_hex(16), "dataset": None, "total": None}
            for statement in _TABLES.split(";\n"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {_OURS}")
            db.execute("INSERT INTO readme VALUES (?)", (_README,))
            rows = ((name, json.dumps(told)) for name, told in (about | stated).items())
            db.executemany("INSERT INTO about VALUES (?, ?)", rows)
        wrong = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        found = dict(db.execute("SELECT name, value FROM about"))
        needed = {"format", "id", "budget", "domain", "bound", "dataset", "total"}
        if wrong != "ok" or not needed <= set(found) or found["format"] != "1":
            raise ValueError(f"{self.path}: a damaged session, or one of another version")
        for name, told in stated.items():
            if found[name] != json.dumps(told):  # as text: the order of attributes counts
                raise ValueError(
                    f"{self.path} belongs to {name} {found[name][:80]}, not to {json.dumps(told)[:80]}"
                )
        self._id, found = found["id"], {name: json.loads(told) for name, told in found.items()}
        self.total, self.budget = found["total"], DP(found["budget"])
        self.domain, self.bound = Domain.from_dict(found["domain"]), Bound(*found["bound"])
        self._nothing = SparseTable.from_keys(self.domain, [], [], self.bound)
        prior_vectors(self._prior, self.domain)
        return found["id"]

    @contextmanager
    def _transaction(self, new=False, write=True) -> Iterator[sqlite3.Connection]:
        """All of it on disk when it ends, or nothing; nobody else writes meanwhile.

        A connection each time: forks and threads share none. A rollback journal: a write-ahead log
        would hold spends in a second file. EXTRA: a journal that came back after a power cut would undo
        a spend.
        """
        if not new and not self.path.exists():
            raise FileNotFoundError(f"{self.path}: the session is gone; nothing was asked")
        db, uri = None, f"{self.path.as_uri()}?mode={'rwc' if new else 'rw'}"
        try:
            db = sqlite3.connect(uri, uri=True, timeout=_WAIT, isolation_level=None)
            _ours(db, self.path, new)
            for setting in ("synchronous = EXTRA", "fullfsync = ON", "journal_mode = DELETE"):
                db.execute(f"PRAGMA {setting}").fetchall()
            db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            found = (
                self._id and db.execute("SELECT value FROM about WHERE name = 'id'").fetchone()
            )
            if found != (self._id and (self._id,)):
                raise ValueError(f"{self.path}: another session has taken this one's place")
            if self._id:
                asked = db.execute("SELECT coalesce(max(question), 0) FROM ledger").fetchone()[
                    0
                ]
                if asked < self._asked:
                    raise ValueError(
                        f"{self.path}: an older copy has taken this session's place: it has forgotten "
                        "what was spent, so nothing more is asked of it"
                    )
                self._asked = asked
            yield db
            db.execute("COMMIT")
        except sqlite3.Error as e:
            raise _refusal(self.path, e) from None
        finally:
            if db is not None:
                db.close()  # what is not committed is rolled back

    def ask(self, workload: Workload, epsilon: float) -> Release:
        """Spend ε and answer the workload with Laplace noise; the bank keeps the answers as well.

        Exact sums decide whether the budget suffices: ten times the float 0.1 is more than 1, and
        `remaining` is always accepted.
        """
        if self._table is None:
            raise ValueError("this session has no table to ask: open it with one, or recall")
        mechanism = LaplaceQueries(DP(epsilon), workload)
        asked = mechanism(self._nothing).estimate  # refused before it is paid for, if at all
        places, question = self._spend(float(epsilon), repr(workload), asked)
        release = mechanism(self._table)
        try:
            with self._transaction() as db:
                rows = zip(release.estimate.values.tolist(), places, strict=True)
                db.executemany("UPDATE bank SET value = ? WHERE place = ?", rows)
                db.execute("UPDATE ledger SET answered = 1 WHERE question = ?", (question,))
        except (OSError, ValueError) as e:
            warnings.warn(f"answered and paid for, but not kept in the bank: {e}", stacklevel=2)
        return release

    def _spend(self, epsilon: float, told: str, asked: NoisyAnswers) -> tuple[range, int]:
        """Write a spend, and make room for the answers: their places, and the question's number."""
        with self._transaction() as db:
            if Fraction(epsilon) > (left := self._remains(db)):
                raise ValueError(
                    f"epsilon = {epsilon!r} is more than the {_down(left)!r} that remain of "
                    f"{self.budget}: nothing was spent. {_recalled(db)}"
                )
            about = (datetime.now(UTC).isoformat("T", "seconds"), told, len(asked))
            row = "INSERT INTO ledger VALUES (NULL, ?, ?, ?, ?, 0, ?)"
            about = (*about, sqrt(asked.variances.max()), epsilon)
            question = db.execute(row, about).lastrowid
            first = db.execute("SELECT coalesce(max(place), 0) + 1 FROM bank").fetchone()[0]
            places = range(first, first + len(asked))
            texts, variances = serialise.to_text(asked.workload), asked.variances.tolist()
            room = f"INSERT INTO bank VALUES (?, {question}, ?, ?, zeroblob(8))"
            db.executemany(room, zip(places, texts, variances, strict=True))
        self._asked = max(self._asked, question)
        return places, question

    def recall(
        self, workload: Workload, alpha: float | None = None
    ) -> tuple[Float[np.ndarray, " queries"], Float[np.ndarray, " queries"]]:
        """Answers from the bank and their standard errors, at no cost.

        `alpha` says how far the data may lie from the prior, in tuples (see `KernelPCA`): by default
        the declared total, else ∞, which is unbiased and has error inf where the bank cannot tell. At
        a finite α the error is a posterior standard deviation, bias included, and no confidence. The
        total is the cautious choice; `inference.select_alpha(session.bank)` finds a better one.
        """
        posterior = self._posterior(alpha)
        if not len(posterior) and posterior.alpha == inf:
            raise ValueError("the bank is empty: nothing was bought that could be recalled")
        values, errors = posterior.answer(workload, error=True)
        return values, np.nan_to_num(errors, nan=inf, posinf=inf)

    def price(self, workload: Workload, error: float, alpha: float | None = None) -> float:
        """The least further ε for this workload after which `recall` errs by no more than `error`.

        0 if none errs by more already; a ValueError if that costs more than what remains. To within
        about 1e-6, and what the noise's grid adds. `alpha` as in `recall`.
        """
        if not (isinstance(error, int | float | np.number) and 0 < error < inf):
            raise ValueError(f"error = {error!r} is not allowed: need a number > 0")
        asked = linear_queries(workload, self.domain)
        target = min(max(float(error), 1e-99), 1e99) ** 2
        left = _after(self._posterior(alpha), asked)
        if left(_LARGE) <= target * (1 + 1e-9):
            return 0.0
        wanted = exp(brentq(lambda x: log(left(exp(x)) / target), log(target) - 1, log(_LARGE)))
        wanted *= 1 - 1e-8  # what rounding takes
        moved = asked.sensitivity(self.domain) * self.bound.l1
        epsilon, spread, most = sqrt(2 / wanted) * moved, inf, self.remaining
        while spread > wanted and epsilon <= most:  # the grid adds to the noise
            asking = LaplaceQueries(DP(epsilon), asked)
            spread = float(asking(self._nothing).estimate.variances[0])
            epsilon *= sqrt(max(1, spread / wanted)) * (1 + 1e-9 * (spread > wanted))
        if epsilon > most:
            best = sqrt(left(2 * (moved / most) ** 2 if most else _LARGE))
            raise ValueError(
                f"error = {error!r} costs epsilon = {epsilon:.6g}, but {most!r} remain of {self.budget}"
                + f": spending that leaves an error of {best:.6g}" * (best**2 < _LARGE / 2)
            )
        return epsilon

    @property
    def remaining(self) -> float:
        """The largest ε that can still be asked for."""
        with self._transaction(write=False) as db:
            return _down(self._remains(db))

    @property
    def ledger(self) -> pd.DataFrame:
        """One row a question: when, what, how many queries, ε, the noise's standard deviation, and
        whether it was `answered`: an answer can be lost, its price cannot.
        """
        import pandas as pd

        with self._transaction(write=False) as db:
            rows = db.execute("SELECT * FROM ledger ORDER BY question")
            names = [column[0] for column in rows.description]
            return pd.DataFrame(rows.fetchall(), columns=names).set_index("question")

    @property
    def bank(self) -> NoisyAnswers:
        """All answers in the order they were bought; a ValueError if there are none."""
        return NoisyAnswers.history(self._answers())

    def _answers(self) -> list[NoisyAnswers]:
        told = "SELECT query, value, variance FROM bank WHERE question = ? ORDER BY place"
        with self._transaction(write=False) as db:
            held = db.execute("SELECT question FROM ledger WHERE answered ORDER BY question")
            for (question,) in (held := held.fetchall()):
                if question not in self._parts:
                    texts, *numbers = zip(*db.execute(told, (question,)), strict=True)
                    asked = serialise.from_text(self.domain, texts)
                    self._parts[question] = NoisyAnswers(self.domain, asked, *numbers)
        return [self._parts[question] for (question,) in held]

    def _posterior(self, alpha: float | None) -> Posterior:
        alpha, parts = (self.total or inf) if alpha is None else alpha, self._answers()
        method = KernelPCA(alpha, self.total, self._prior)
        if self._known is None or self._known[0] != len(parts):
            flat, square = np.empty(0), np.empty((0, 0))
            empty = (
                Products.of(self.domain, []),
                self.total,
                method.prior,
                flat,
                square,
                flat,
                flat,
            )
            self._known = (
                len(parts),
                method(parts).eigen if parts else Eigenqueries(self.domain, *empty),
            )
        return Posterior(self._known[1], method.alpha)

    def _remains(self, db: sqlite3.Connection) -> Fraction:
        """What remains, exactly."""
        spent = sum(Fraction(e) for (e,) in db.execute("SELECT epsilon FROM ledger"))
        return Fraction(self.budget.epsilon) - spent

    def close(self) -> None:
        """Let go of the table; the bank still answers."""
        self._table = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            return f"<Session {self.path.name}: {self.remaining!r} of {self.budget} remain>"
        except (OSError, ValueError):
            return f"<Session {self.path.name}: cannot be read>"


def _after(posterior: Posterior, asked: Any) -> Callable[[float], float]:
    """The largest variance among `asked` after a further answer to all of it, of noise with variance v.

    A posterior covariance Σ d·u·uᵀ becomes Σ u·uᵀ/(1/d + 1/v). At α = ∞ what no past query reaches has
    infinite d, and what is reached keeps its own.
    """
    eigen, alpha, s = posterior.eigen, posterior.alpha, posterior.eigen.squares
    told = eigen.ask(asked)
    rest = inner_products(asked, asked, eigen.domain, prior_vectors(eigen.prior, eigen.domain))
    if eigen.total is not None:
        rest -= np.outer(told.means, told.means)
    least = 1e-13 * len(rest) * rest.diagonal().max(initial=0)
    rest -= (told.parts / s) @ told.parts.T
    rest[told.bias_share == 0], rest[:, told.bias_share == 0] = 0, 0
    covariance = (told.parts / (s * (s + alpha**-2.0))) @ told.parts.T
    reached, free = np.eye(len(rest)), np.empty((len(rest), 0))
    if isfinite(alpha):
        covariance += alpha**2 * rest
    else:
        sizes, vectors = np.linalg.eigh(rest)
        reached, free = vectors[:, sizes <= least], vectors[:, sizes > least]
    d, u = np.linalg.eigh(reached.T @ covariance @ reached)
    d, shares, unknown = np.maximum(d, 0), (reached @ u) ** 2, (free**2).sum(axis=1)
    unknown[unknown < 1e-9] = 0  # rounding
    return lambda v: float((v * unknown + shares @ (v * (d / (v + d)))).max(initial=0))


def _stated(table, budget, total, dataset) -> dict[str, Any]:
    """What the caller says that the session belongs to."""
    told: dict[str, Any] = {} if dataset is None and table is None else {"dataset": dataset}
    if dataset is not None and not isinstance(dataset, str):
        raise ValueError(f"dataset = {dataset!r} is not allowed: need text, name and version")
    if total is not None:
        told["total"] = float(KernelPCA(1.0, total=total).total)
    if budget is not None:
        if not isinstance(budget, DP) or budget.delta or not 0 < budget.epsilon < inf:
            raise ValueError(f"budget = {budget!r} is not allowed: need DP(0 < epsilon < inf)")
        told["budget"] = float(budget.epsilon)
    if table is not None:
        if not isinstance(table, SparseTable):
            raise ValueError(f"table = {type(table)} is not allowed: need a SparseTable")
        l1 = float(sensitivity(table))
        told["bound"] = [int(table.bound.l0), float(table.bound.linf), l1]
        told["domain"] = table.domain.to_dict()
    return told


def _lock(data: Path, path: Path, token: str, lost: bool) -> None:
    """Name the session beside its data; a ValueError if another is named there."""
    if not data.exists():
        raise FileNotFoundError(f"{data}: no such data")
    lock, mine = data.with_name(f"{data.name}.session"), {"session": str(path), "id": token}
    found = other = None
    if lock.exists():
        try:
            found, other = (told := json.loads(lock.read_text())), Path(told["session"])
        except (ValueError, KeyError, TypeError):
            other = lock  # unreadable: whose it is cannot be known
    if found == mine:
        return
    if other is not None and (not lost or other.exists() and other not in (path, lock)):
        raise ValueError(
            f"{lock} names another session, {other}: a second budget adds to what that one spent. Open "
            "that one; if it is gone, say lost=True and count what it spent"
        )
    try:
        with open(lock, "x" if other is None else "w") as file:
            file.write(json.dumps(mine))
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise ValueError(f"{lock}: another session was quicker; open that one") from None


def _ours(db: sqlite3.Connection, path: Path, new: bool) -> None:
    """A ValueError unless the file is a session's, or empty and to become one."""
    kind = db.execute("PRAGMA application_id").fetchone()[0]
    if kind != _OURS and (
        kind or not new or db.execute("SELECT 1 FROM sqlite_master").fetchone()
    ):
        raise ValueError(f"{path}: not a session of this workbench")


def _refusal(path: Path, e: sqlite3.Error) -> Exception:
    """One of three: held by others, not writable, not a session's."""
    name = getattr(e, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return TimeoutError(f"{path}: another process holds it; nothing was asked")
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return OSError(f"{path}: cannot be written ({e}). Is the disk full? Nothing was asked")
    return ValueError(f"{path}: not a session of this workbench, or a damaged one ({e})")


def _recalled(db: sqlite3.Connection) -> str:
    rows = db.execute("SELECT asked, queries, deviation FROM ledger WHERE answered").fetchall()
    told = [f"{asked[:80]} ({n} queries, noise of ±{d:.3g})" for asked, n, d in rows[:5]]
    told += [f"{len(rows) - 5} more questions"] * (len(rows) > 5)
    return f"Recall still answers, for nothing, from {'; '.join(told) or 'an empty bank'}"


def _down(x: Fraction) -> float:
    """The largest float that is not above x."""
    return f if Fraction(f := float(x)) <= x else nextafter(f, 0)
