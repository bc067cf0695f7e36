"""One budget over many releases: what is booked is never given back, and nothing unbooked leaves."""

import random
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from errno import ENOSPC
from fractions import Fraction
from math import inf

import numpy as np
import pandas as pd
import pytest

from tests.crash import disks
from workbench import mechanisms
from workbench.data import PUBLIC, UNBOUNDED, Bound, Interactions, SparseTable
from workbench.estimates.release import Release
from workbench.mechanisms import SRA, DirectSynthesis, LaplaceQueries, StabilityHistogram
from workbench.mechanisms.laws import DOMAIN, Subject
from workbench.owner import Bank, Budget, Session
from workbench.owner import ledger as session_file
from workbench.privacy import ADD_REMOVE, DP, REPLACE
from workbench.queries import Marginals
from workbench.spaces import Domain

HistogramOf = mechanisms.GeometricHistogram
TABLE = SparseTable.from_keys(DOMAIN, [0, 5, 10], [9, 1, 4], Bound())
OTHER = SparseTable.from_keys(Domain(("x",), (4,)), [0, 1], [5, 9], Bound(3, 2))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shop.sqlite"


def create(path, epsilon=1.0, delta=1e-6, **options):
    about = {"people": "customers of shop X", "unit": "a user"} | options
    return Budget.create(path, DP(epsilon, delta), **about)


def test_tables_marginals_records_and_interactions_spend_from_one_budget(path, tmp_path):
    create(path)
    session = Budget(path)
    session.release(HistogramOf(DP(0.125)), TABLE, out=tmp_path / "a.parquet")
    session.release(LaplaceQueries(DP(0.125), Marginals(1)), TABLE, unit="Each user")
    session.release(HistogramOf(DP(0.125)), OTHER)  # of another domain and bound
    records = Subject(DirectSynthesis).given(TABLE)
    session.release(DirectSynthesis.example(DP(0.125)), records)
    logs = Interactions.from_codes(DOMAIN, [0, 0, 1], [0, 1, 2], [3, 3, 4], UNBOUNDED)
    session.release(SRA(DP(0.125), l=1), logs)
    session.release(StabilityHistogram(DP(0.125, 2.0**-21)), TABLE)
    assert session.remaining == 0.25
    assert session.remaining_delta == pytest.approx(1e-6 - 2.0**-21)
    ledger = session.ledger
    assert ledger.answered.all() and list(ledger.epsilon) == [0.125] * 6
    assert ledger.file[1].endswith("a.parquet") and ledger.asked[5].startswith("SRA(")
    assert Release.load(ledger.file[1]).privacy == DP(0.125)
    with pytest.raises(ValueError, match="empty"):
        Bank(path).recall(Marginals(1))


def test_interactions_of_users_are_paid_by_a_budget_of_users(path):
    logs = Interactions.from_codes(DOMAIN, [0, 0, 1], [0, 1, 2], [3, 3, 4], UNBOUNDED)
    budget = create(path, unit="a household")
    with pytest.raises(ValueError, match="protects 'a household', not 'a user'"):
        budget.release(SRA(DP(0.125), l=1), logs)
    assert budget.remaining == 1
    budget.release(SRA(DP(0.125), l=1), logs, unit="a household")  # these users are households
    table = SparseTable.from_keys(DOMAIN, [0, 5], None, Bound(), users=[0, 1])
    session = Session.open(path.with_name("session"), table, DP(1.0))
    session.budget.unit = "a user (column id)"  # as of a table that was read
    session.budget.release(SRA(DP(0.125), l=1), logs)


def test_the_bank_begins_with_the_first_question(path):
    create(path)
    first, second = Session.open(path, TABLE), Session.open(path, OTHER)
    assert first.bank.domain == DOMAIN and second.bank.domain == OTHER.domain
    first.ask(Marginals(1), 0.25)
    with pytest.raises(ValueError, match="belongs to bound"):
        second.ask(Marginals(1), 0.25)
    with pytest.raises(ValueError, match="belongs to"):
        second.bank.recall(Marginals(1))
    with pytest.raises(ValueError, match="dataset"):  # June's answers are not May's
        Session.open(path, TABLE, dataset="June")
    session = Budget(path)
    session.release(HistogramOf(DP(0.25)), OTHER)
    assert session.remaining == 0.5 and len(Bank(session).recall(Marginals(1)).values) == 14


def printed():
    example = mechanisms.ImprovedAdaptiveHistogram.example(DP(0.5))
    return replace(example, strategy="progressive")


class Greedy(HistogramOf):
    """Draws for more than it says, of data that has a record."""

    def __call__(self, table, rng=None):
        spent = DP(self.budget.epsilon * (1 + 2**-50)) if len(table) else self.budget
        return HistogramOf(spent)(table, rng)


class Failing(HistogramOf):
    def __call__(self, table, rng=None):
        if len(table):
            raise MemoryError
        return super().__call__(table, rng)


def test_what_was_booked_stays_spent(path):
    session = create(path)
    with pytest.raises(MemoryError):
        session.release(Failing(DP(0.25)), TABLE)
    with pytest.raises(ValueError, match="withheld.*0.25.* was booked"):
        session.release(Greedy(DP(0.25)), TABLE)
    assert session.remaining == 0.5 and list(session.ledger.answered) == [0, 0]


@pytest.mark.parametrize(
    "mechanism, data, unit, message",
    [
        (HistogramOf(DP(2.0)), TABLE, None, "more than the 1 that remain"),
        (
            StabilityHistogram(DP(0.5, 1e-5)),
            TABLE,
            None,
            "delta = 1e-05 is more than the 1e-06",
        ),
        (HistogramOf(DP(0.5)), TABLE, "a trip", "protects 'a user', not 'a trip'"),
        (mechanisms.RetentionReplacement(DP(0.5)), TABLE, None, "local"),
        (mechanisms.DirichletSynthesis(DP(0.5), records=9, total=14), TABLE, None, "replace"),
        (HistogramOf(DP(0.5)), replace(TABLE, bound=PUBLIC), None, "PUBLIC"),
        (HistogramOf(DP(0.5), memory=1), TABLE, None, "memory"),
        (mechanisms.PrioritySampling(DP(0.5), size=49), TABLE, None, "size"),
        (SRA(DP(0.5), l=1), TABLE, None, "takes Interactions"),
        (printed(), Subject(type(printed())).given(TABLE), None, "withdrawn"),
        ("a histogram", TABLE, None, "no budget"),
    ],
)
def test_what_is_refused_costs_nothing(path, mechanism, data, unit, message):
    session = create(path)
    with pytest.raises(ValueError, match=message):
        session.release(mechanism, data, unit=unit)
    assert not len(session.ledger) and session.remaining == 1.0


def test_the_unit_of_a_bound_is_the_budgets(path):
    users = SparseTable.from_keys(DOMAIN, [0, 5, 5], None, Bound(), users=[1, 2, 2])
    session = create(path)
    release = session.release(HistogramOf(DP(0.125)), users, report_cut=0.125)
    assert session.remaining == 0.75 and len(release.ledger) == 2
    with pytest.raises(ValueError, match="users were truncated"):
        session.release(HistogramOf(DP(0.125)), TABLE, report_cut=0.125)
    with pytest.raises(ValueError, match="too small"):
        session.release(HistogramOf(DP(0.125)), users, report_cut=1e-300)
    assert session.remaining == 0.75
    stated = session.release(HistogramOf(DP(0.125)), TABLE).bound
    assert (stated.unit, stated.status) == ("a user", "believed, not enforced")
    trips = replace(TABLE, bound=Bound(3, 2).of("a trip"))
    with pytest.raises(ValueError, match="not 'a trip'"):
        session.release(HistogramOf(DP(0.125)), trips)
    with pytest.raises(ValueError, match="not 'a trip'"):  # nobody's word makes it another one
        session.release(HistogramOf(DP(0.125)), trips, unit="a user")
    other = create(path.with_name("other"), unit="a customer")
    with pytest.raises(ValueError, match="protects 'a customer', not 'a user"):
        other.release(HistogramOf(DP(0.125)), users)
    other.release(HistogramOf(DP(0.125)), users, unit="a customer")  # whom the column names
    with pytest.raises(ValueError, match="not 'a trip'"):
        Session.open(path, trips)
    own = Session.open(path.with_name("own"), trips, DP(1.0))  # of one table, and its unit
    own.budget.release(HistogramOf(DP(0.125)), trips)
    with pytest.raises(ValueError, match="protects 'a trip', not 'a user'"):
        own.budget.release(HistogramOf(DP(0.125)), users)
    with pytest.raises(ValueError, match="protects 'a trip', not 'a user'"):
        Budget(path.with_name("own")).release(HistogramOf(DP(0.125)), users)


def test_what_stands_in_brackets_belongs_to_the_unit(path):
    session = create(path, unit="a member (whole household, all years)")
    for other in ("a member (one row)", "a member"):
        with pytest.raises(ValueError, match=f"not '{re.escape(other)}'"):
            session.book(DP(0.125), "x", unit=other)
    session.book(DP(0.125), "x", unit="Member (whole  household, all years)")
    assert session.remaining == 0.875


def test_the_column_of_users_does_not_belong_to_the_unit(path):
    rows = pd.DataFrame({"x": [0, 1], "id": [1, 2]})
    users = SparseTable.read(rows, OTHER.domain, Bound(), user="id")
    assert users.bound.unit == "a user (column id)"
    create(path, unit="User").check(HistogramOf(DP(0.125)), users)
    other = create(path.with_name("other"), unit="a user (one month)")
    with pytest.raises(ValueError, match="not 'a user'"):
        other.check(HistogramOf(DP(0.125)), users)


def test_what_promises_nothing_is_never_booked(path):
    session = create(path)
    for cost in (DP(inf), DP(0.0), DP(0.5, 1.0), 0.5):
        with pytest.raises(ValueError, match="cost"):
            session.book(cost, "x")
    with pytest.raises(ValueError, match="they do not add up"):
        session.book(DP(0.5), "x", relation=REPLACE)
    with pytest.raises(ValueError, match="0.5 that remain"):  # all of them, or none
        session.book(DP(0.5), "x", also=[(DP(0.75), "y")])
    assert session.remaining == 1.0


@pytest.mark.parametrize("tenth", [0.1, 0.3, 0.7])
@pytest.mark.parametrize("how", ["ask", "release"])
def test_ten_tenths_of_a_budget_are_the_budget(path, how, tenth):
    create(path, float(Fraction(str(tenth)) * 10))
    session = Session.open(path, TABLE)
    for _ in range(10):
        if how == "ask":
            made = session.ask(Marginals(1), tenth)
        else:
            made = session.budget.release(HistogramOf(DP(tenth)), TABLE)
        assert str(made.privacy) == f"{tenth}-DP"
    ledger = session.budget.ledger
    assert sum(map(Fraction, ledger.epsilon)) <= Fraction(session.budget.limit.epsilon)
    assert ledger.answered.all()
    with pytest.raises(ValueError, match="nothing was spent"):
        session.ask(Marginals(1), tenth / 1000)


def test_what_is_more_than_remains_on_paper_is_refused(path):
    budget = create(path)
    session = Session.open(path, TABLE)
    session.ask(Marginals(1), 0.9)
    with pytest.raises(ValueError, match="0.1000000000001 is more than the 0.1 that remain"):
        session.ask(Marginals(1), 0.1000000000001)
    with pytest.raises(ValueError, match="is more than"):  # what is beside it is paid as well
        users = SparseTable.from_keys(DOMAIN, [0, 5, 5], None, Bound(), users=[1, 2, 2])
        budget.release(HistogramOf(DP(0.1)), users, report_cut=0.01)
    assert len(budget.ledger) == 1
    budget.release(HistogramOf(DP(0.09)), users, report_cut=0.01)
    assert sum(map(Fraction, budget.ledger.epsilon)) <= 1


def test_a_release_that_does_not_fit_on_the_disk_costs_nothing(path):
    session = create(path)
    with disks.small_disk() as folder:
        for _ in range(3):
            with pytest.raises(OSError, match=r"x.parquet: no room for .*Nothing was spent"):
                session.release(HistogramOf(DP(0.1)), disks.LARGE, out=folder / "x.parquet")
        assert session.remaining == 1 and not list(folder.iterdir())
        session.release(HistogramOf(DP(0.125)), TABLE, out=folder / "x.parquet")
    assert session.remaining == 0.875


def test_a_release_into_a_read_only_folder_costs_nothing_and_says_why(path, tmp_path):
    session = create(path)
    folder = tmp_path / "ro"
    folder.mkdir()
    with disks.read_only(folder):
        with pytest.raises(OSError, match=r"cannot be written \(.*Nothing was spent"):
            session.release(HistogramOf(DP(0.1)), TABLE, out=folder / "x.parquet")
    assert session.remaining == 1


def test_a_release_that_is_lost_says_what_it_cost(path, monkeypatch):
    def full(*_, **__):
        raise OSError("x.parquet was not written: No space left on device")

    monkeypatch.setattr(Release, "save", full)
    session = create(path, 1.0, 0.0)
    with pytest.raises(OSError, match="0.1-DP of the budget of 1-DP was spent and stays spent"):
        session.release(HistogramOf(DP(0.1)), TABLE, out=path.with_name("x.parquet"))


def full_disk(*_):
    raise OSError(ENOSPC, "No space left on device")


@pytest.mark.parametrize("how", ["ask", "book"])
def test_a_full_disk_of_the_counter_costs_nothing(path, monkeypatch, how):
    create(path)
    session = Session.open(path, TABLE)
    monkeypatch.setattr(session_file, "Draft", full_disk)
    words = r"shop.sqlite.count: the counter cannot be written.*Nothing was spent"
    for _ in range(3):
        with pytest.raises(OSError, match=words):
            if how == "ask":
                session.ask(Marginals(1), 0.1)
            else:
                session.budget.book(DP(0.1), "x")
    assert session.budget.remaining == 1 and not len(session.budget.ledger)


def test_a_counter_that_is_not_written_after_all_says_what_was_spent(path, monkeypatch):
    session = create(path, 1.0, 0.0)
    monkeypatch.setattr(session_file.Draft, "replace", full_disk)
    words = "shop.sqlite.count: .*0.1-DP of the budget .*stays spent"
    with pytest.raises(OSError, match=words):
        session.book(DP(0.1), "x")
    assert list(session.ledger.epsilon) == [0.1]


def test_several_rows_are_one_booking(path):
    session = create(path)
    booking = session.book(DP(0.1), "release", also=[(DP(0.2), "users cut")], unit="user")
    assert booking.spent == Fraction(0.1) + Fraction(0.2) and booking.relation == ADD_REMOVE
    receipts = [*HistogramOf(DP(0.1))(TABLE).ledger, *HistogramOf(DP(0.2))(TABLE).ledger]
    booking.check(receipts)
    with pytest.raises(ValueError, match="withheld"):
        booking.check(receipts + receipts[:1])
    booking.confirm()
    assert list(session.ledger.answered) == [1, 1]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"epsilon": inf}, "budget"),
        ({"epsilon": 0.0}, "budget"),
        ({"delta": 1.0}, "budget"),
        ({"people": " "}, "people"),
        ({"unit": None}, "unit"),
        ({"unit": "a\x1b[2Juser"}, "unit"),
        ({"relation": "near"}, "relation"),
    ],
)
def test_a_budget_that_promises_nothing_does_not_begin(path, options, message):
    with pytest.raises(ValueError, match=message):
        create(path, **options)
    assert not path.exists() and not list(path.parent.iterdir())


def test_it_belongs_to_its_people(path):
    create(path)
    with pytest.raises(ValueError, match="belongs to the budget"):
        Budget(path, DP(2.0))
    with pytest.raises(ValueError, match="exists"):
        create(path)
    with pytest.raises(FileNotFoundError):
        create(path.parent / "none" / "b.sqlite")


def test_a_file_that_cannot_be_written_books_nothing(path, monkeypatch):
    session, connect = create(path), sqlite3.connect

    def read_only(name, **options):
        return connect(name.replace("mode=rw", "mode=ro"), **options)

    with monkeypatch.context() as protected:
        protected.setattr(sqlite3, "connect", read_only)
        assert session.remaining == 1.0
        with pytest.raises(OSError, match="cannot be written"):
            session.release(HistogramOf(DP(0.25)), TABLE)
    session.file.wait = 0.05
    with closing(sqlite3.connect(path, isolation_level=None)) as db, db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(TimeoutError, match="another process"):
            session.release(HistogramOf(DP(0.25)), TABLE)
        assert session.remaining == 1.0  # reading goes on
        db.execute("ROLLBACK")
    db.close()


# What an older copy, a damaged file and an older version are


def test_an_older_copy_is_known_by_the_counter(path, tmp_path):
    create(path).book(DP(0.125), "x")
    old = shutil.copy(path, tmp_path / "old")
    Budget(path).book(DP(0.125), "x")
    new = shutil.copy(path, tmp_path / "new")
    shutil.copy(old, path)
    with pytest.raises(ValueError, match="older copy"):
        Budget(path)
    shutil.copy(new, path)
    session = Budget(path)
    shutil.copy(old, path)
    for use in (lambda: session.remaining, lambda: session.book(DP(0.125), "x")):
        with pytest.raises(ValueError, match="older copy"):
            use()
    path.unlink()
    for _ in range(2):
        with pytest.raises(ValueError, match="counts for another"):  # moved away, begun anew
            create(path)
    shutil.copy(new, path)
    (tmp_path / "shop.sqlite.count").unlink()
    with pytest.raises(FileNotFoundError, match="counter"):
        Budget(path)
    assert Budget(path, lost=True).remaining == 0.75
    Budget(path).book(DP(0.125), "x")


def test_copies_that_spent_differently_are_no_longer_one_ledger(path, tmp_path):
    create(path)
    fork = tmp_path / "fork"
    shutil.copy(path, fork)
    Budget(path).book(DP(0.125), "x")
    with pytest.raises(ValueError, match="older copy"):
        Budget(fork, lost=True)
    shutil.copy(path.with_name("shop.sqlite.count"), tmp_path / "fork.count")


def test_a_session_that_names_a_file_as_its_counter_does_not_overwrite_it(path, tmp_path):
    create(path)
    counter = tmp_path / "shop.sqlite.count"
    for content in ("export PATH", "", "{}", '{"session": "x"}'):
        counter.write_text(content)
        for lost in (False, True):
            with pytest.raises(ValueError, match="counts for another session.*move it away"):
                Budget(path, lost=lost)
        assert counter.read_text() == content
    counter.unlink()
    assert Budget(path, lost=True).remaining == 1.0


def test_data_also_count(tmp_path):
    data, path = tmp_path / "d.csv", tmp_path / "s.sqlite"
    data.touch()
    Session.open(path, TABLE, DP(1.0), data=data)
    old = shutil.copy(path, tmp_path / "old")
    Session.open(path, TABLE, data=data).ask(Marginals(1), 0.25)
    shutil.copy(old, path)
    with pytest.raises(ValueError, match="older copy"):
        Session.open(path, TABLE, data=data)
    path.write_bytes(b"")  # emptied
    with pytest.raises(ValueError, match="names another session"):
        Session.open(path, TABLE, DP(1.0), data=data)


@pytest.mark.parametrize("flips", [25, pytest.param(200, marks=pytest.mark.long)])
def test_no_flipped_bit_changes_what_is_recalled_or_left(path, flips):
    create(path).release(HistogramOf(DP(0.25)), TABLE)
    session = Session.open(path, TABLE, total=20.0)
    session.ask(Marginals(1), 0.25)
    session.ask(Marginals(2), 0.25)
    asked = dict(workload=Marginals(2), alpha=100.0, error=False)  # from every answer
    values, whole = session.bank.recall(**asked).values, path.read_bytes()
    places = random.Random(flips)
    for _ in range(flips):
        damaged = bytearray(whole)
        damaged[places.randrange(len(whole))] ^= 1 << places.randrange(8)
        path.write_bytes(damaged)
        try:
            session = Session(path)
            assert session.budget.remaining == 0.25
            assert list(session.budget.ledger.epsilon) == [0.25] * 3
            assert np.array_equal(session.bank.recall(**asked).values, values)
        except (ValueError, OSError):
            pass  # said, not silent


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE about SET value = '[9.0, 1e-06]' WHERE name = 'budget'",
        "UPDATE about SET value = '\"a trip\"' WHERE name = 'unit'",
        "DROP TRIGGER paid; UPDATE ledger SET epsilon = 0.0625 WHERE question = 1",
        "DROP TRIGGER kept; DELETE FROM ledger WHERE question = 1",
        "DROP TRIGGER kept; DELETE FROM ledger WHERE question = 2",
        "UPDATE ledger SET file = 'other.parquet' WHERE question = 1",
        "UPDATE bank SET value = value + 1 WHERE place = 2",
        "UPDATE bank SET variance = variance * 2 WHERE place = 2",
        "UPDATE bank SET query = '[[1, {}]]' WHERE place = 2",
        "DELETE FROM bank WHERE place = 2",
        "UPDATE ledger SET seal = zeroblob(32) || x'01' WHERE question = 2",
    ],
)
def test_what_was_changed_by_hand_is_refused(path, change):
    create(path).release(HistogramOf(DP(0.25)), TABLE)
    Session.open(path, TABLE).ask(Marginals(1), 0.25)
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(change)
    db.close()
    with pytest.raises(ValueError, match="damaged|older copy"):
        Bank(path).recall(Marginals(1))


FORMAT_1 = """
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
PRAGMA application_id = 1685082929;
INSERT INTO readme VALUES ('No private data is in this file.');
INSERT INTO about VALUES ('format', '1'), ('id', '"12ab"'), ('dataset', '"v1"'), ('total', '7.0'),
  ('bound', '[1, 1.0, 1.0]'), ('budget', '1.0'), ('domain',
  '{"attributes": ["x"], "shape": [4], "labels": null}');
INSERT INTO ledger VALUES (1, '2025-01-01T00:00:00', 'Products', 2, 9.5, 1, 0.25);
INSERT INTO ledger VALUES (2, '2025-01-02T00:00:00', 'Products', 1, 9.5, 0, 0.5);
INSERT INTO bank VALUES (1, 1, '[[1, {"x": [0, 1]}]]', 90.25, 3.5);
INSERT INTO bank VALUES (2, 1, '[[1, {"x": [1, 4]}]]', 90.25, 4.5);
INSERT INTO bank VALUES (3, 2, '[[1, {"x": [1, 4]}]]', 90.25, x'0000000000000000');
"""


def test_a_session_of_the_first_format_still_opens(path):
    assert session_file._APPLICATION_ID == 1685082929
    domain = Domain(("x",), (4,))
    about = FORMAT_1.replace(
        '{"attributes": ["x"], "shape": [4], "labels": null}',
        session_file.json.dumps(domain.to_dict()),
    )
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(about)
    db.close()
    table = SparseTable.from_keys(domain, [0], [3], Bound())
    for _ in range(2):
        session = Session.open(path, table, DP(1.0), dataset="v1", total=7.0)
        budget = session.budget
        assert budget.remaining == 0.25 and budget.remaining_delta == 0.0
        assert list(budget.ledger.answered) == [1, 0]
        assert list(session.bank.answers.values) == [3.5, 4.5]
        assert (budget.people, budget.unit, budget.relation) == (None, None, ADD_REMOVE)
    budget.release(HistogramOf(DP(0.125)), OTHER)
    session.ask(Marginals(1), 0.125)
    assert len(Bank(path).answers) == 6
