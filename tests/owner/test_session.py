"""A session never forgets a spend, never overspends, and answers from its bank without the table."""

import json
import sqlite3
from contextlib import closing
from fractions import Fraction
from math import inf
from pathlib import Path

import numpy as np
import pytest

from workbench.data import PUBLIC, Bound, SparseTable
from workbench.mechanisms import GeometricHistogram, LaplaceQueries
from workbench.owner import Budget, Session
from workbench.owner.ledger import Counter, budget_of, new_counter
from workbench.privacy import DP
from workbench.queries import (
    Marginals,
    Products,
    RandomMarginalRanges,
    Ranges,
    labelled_queries,
    linear_queries,
    workload_sensitivity,
)
from workbench.queries.linear import uniform_prior
from workbench.spaces import Domain

DOMAIN = Domain(("a", "b", "c"), (4, 3, 2))
COUNTS = np.arange(24).reshape(4, 3, 2) + 5
ONE = Products.of(DOMAIN, [{"a": (0, 2)}])


def table(bound=None, domain=DOMAIN):
    return SparseTable.from_dense(domain, COUNTS.reshape(domain.shape), bound or Bound())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.sqlite"


def begin(path, budget=1.0, **options):
    return Session.open(path, table(), DP(budget), **options)


def test_a_question_is_answered_written_down_and_recalled(path):
    with begin(path, dataset="v1") as session:
        release = session.ask(Marginals(1), 0.25)
        assert release.privacy == DP(0.25) and not release.simulated
        assert session.budget.remaining == 0.75
        (row,) = session.budget.ledger.to_dict("records")
        assert row["epsilon"] == 0.25 and row["asked"] == "a, b, c, 9 cells" and row["answered"]
        assert np.array_equal(session.bank.answers.values, release.estimate.values)
        assert np.array_equal(session.bank.answers.variances, release.estimate.variances)
        assert "0.75" in repr(session) and str(path.parent) not in repr(session)
    with pytest.raises(ValueError, match="no table"):
        session.ask(ONE, 0.1)
    values, errors = session.bank.recall(ONE, alpha=inf)
    assert errors[0] < np.sqrt(2 * release.estimate.variances[0]) and np.isfinite(values).all()


def test_a_session_pays_for_the_unit_of_its_first_table(path):
    """Bounds of the same size about other units are equal, but their costs do not add up."""
    with Session.open(path, table(Bound(unit="a patient")), DP(1.0)) as session:
        session.ask(ONE, 0.5)
        assert Budget(path).unit == "a patient"
    visits = table(Bound(unit="a visit"))
    with pytest.raises(ValueError, match="protects 'a patient', not 'a visit'"):
        Session.open(path, visits)
    with pytest.raises(ValueError, match="protects 'a patient', not 'a visit'"):
        Budget(path).release(GeometricHistogram(DP(0.25)), visits)
    assert Session.open(path, table(Bound(unit="Patient"))).budget.remaining == 0.5


def test_an_older_session_without_a_unit_gets_that_of_its_next_question(path):
    begin(path).ask(ONE, 0.25)
    assert Budget(path).unit is None
    Session.open(path, table(Bound(unit="a patient"))).ask(ONE, 0.25)
    with pytest.raises(ValueError, match="protects 'a patient', not 'a visit'"):
        Session.open(path, table(Bound(unit="a visit")))


class SeededHistogram(GeometricHistogram):
    """One that draws from a seed of its own, whatever it is given."""

    def __call__(self, table, rng=None):
        return super().__call__(table, np.random.default_rng(1))


def test_seeded_noise_is_withheld_and_stays_booked(path):
    with begin(path) as session:
        with pytest.raises(ValueError, match="withheld.*its noise can be replayed"):
            session.budget.release(
                SeededHistogram(DP(0.25)), session.table, out=path.with_name("x.parquet")
            )
        assert session.budget.remaining == 0.75 and not session.budget.ledger["answered"].any()
        assert not path.with_name("x.parquet").exists()
    release = SeededHistogram(DP(0.25))(table())
    assert release.simulated and "simulated" in repr(release)
    with pytest.raises(ValueError, match="seeded rng"):
        release.save(path.with_name("x.parquet"))


def test_recall_and_price_need_no_table(path):
    first = begin(path, total=float(COUNTS.sum()))
    first.ask(Marginals(1), 0.25)
    first.ask(Marginals(2), 0.25)
    asked = RandomMarginalRanges(7)
    told = first.bank.recall(asked), first.bank.price(asked, 70.0)
    del first
    for session in (Session.open(path), Session.open(path, table())):
        again = session.bank.recall(asked), session.bank.price(asked, 70.0)
        assert np.array_equal([*told[0]], [*again[0]]) and told[1] == again[1]
    with closing(sqlite3.connect(path)) as db, db:
        assert "No private data" in db.execute("SELECT text FROM readme").fetchone()[0]
        texts = [text for (text,) in db.execute("SELECT query FROM bank")]
    assert json.loads(texts[0]) == [[1, {"a": [0, 1]}]]


def test_queries_by_label_are_asked_recalled_and_priced(path):
    with begin(path) as session:
        assert len(session.ask("a=0..1", 0.5).estimate) == 1
        assert len(session.plan({"a": 0}, 0.1)) == 1
        assert session.bank.price({"a": 0}, error=1e6) < 1e-3
    by_label = session.bank.recall(["a=0 b=2", {}]).values
    codes = linear_queries(labelled_queries(DOMAIN, [{"a": 0, "b": 2}, {}]), DOMAIN)
    assert np.array_equal(by_label, session.bank.recall(codes).values)
    with pytest.raises(ValueError, match="'nobody' is not in the domain"):
        session.bank.recall({"nobody": 0})


def test_the_spend_is_on_disk_before_noise_is_drawn(path, monkeypatch):
    session, seen, draw = begin(path), [], LaplaceQueries.__call__

    def spied(self, data, rng=None):
        with closing(sqlite3.connect(path)) as db, db:  # what any other process would see
            seen.append(
                (len(data), db.execute("SELECT sum(epsilon) FROM ledger").fetchone()[0])
            )
        if len(data) and len(seen) == 4:
            raise KeyboardInterrupt
        return draw(self, data, rng)

    monkeypatch.setattr(LaplaceQueries, "__call__", spied)
    session.ask(ONE, 0.25)
    with pytest.raises(KeyboardInterrupt):
        session.ask(ONE, 0.5)
    assert seen == [(0, None), (24, 0.25), (0, 0.25), (24, 0.75)]
    assert session.budget.remaining == 0.25 and list(session.budget.ledger.answered) == [1, 0]
    assert len(session.bank.answers) == 1  # the lost answer is no answer


def test_exact_sums_decide(path):
    session = begin(path, 1.0)
    for _ in range(9):
        session.budget.book(DP(0.1), "q")
    with pytest.raises(ValueError, match="0.0999999999"):  # what is drawn costs the float 0.1
        session.budget.book(DP(0.1), "q")
    session.ask(ONE, 0.1)
    assert session.budget.remaining == 0.0
    assert sum(map(Fraction, session.budget.ledger.epsilon)) <= 1


def test_when_nothing_is_left_the_message_says_so(path):
    session = begin(path)
    session.ask(Marginals(1), 1.0)
    with pytest.raises(ValueError, match="than the 0 that remain"):
        session.ask(ONE, 0.1)
    assert len(session.budget.ledger) == 1


@pytest.mark.parametrize(
    "workload, epsilon",
    [
        (ONE, 0.0),
        (ONE, float("nan")),
        (ONE, inf),
        (ONE, 1e-300),
        (Products.of(DOMAIN, []), 0.1),
        (Products.of(DOMAIN, [{"a": (1, 1)}]), 0.1),
        (Ranges([0], [99]), 0.1),
    ],
)
def test_what_cannot_be_asked_costs_nothing(path, workload, epsilon):
    session = begin(path)
    with pytest.raises(ValueError):
        session.ask(workload, epsilon)
    assert session.budget.remaining == 1.0


@pytest.mark.parametrize(
    "other",
    [
        lambda p: Session.open(p, table(), DP(2.0), dataset="v1"),
        lambda p: Session.open(p, table(Bound(linf=2)), DP(1.0), dataset="v1"),
        lambda p: Session.open(p, table(), DP(1.0), dataset="v2"),
        lambda p: Session.open(p, table(), DP(1.0)),
        lambda p: Session.open(p, table(), dataset="v1", total=7.0),
        lambda p: Session.open(
            p, table(domain=Domain(("c", "b", "a"), (4, 3, 2))), dataset="v1"
        ),
        lambda p: Session.open(p, table(domain=Domain(("a", "b"), (4, 6))), dataset="v1"),
        lambda p: Session.open(p, COUNTS),
        lambda p: Session.open(p, table(PUBLIC)),
        lambda p: Session.open(p, table(), DP(1.0, 1e-6)),
    ],
)
def test_a_session_belongs_to_what_it_was_begun_with(path, other):
    begin(path, dataset="v1").ask(ONE, 0.5)
    with pytest.raises(ValueError):
        other(path)
    assert Session.open(path, table(), DP(1.0), dataset="v1").budget.remaining == 0.5


def test_other_files_are_refused_and_left_alone(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, " * 100)
    foreign = tmp_path / "foreign.sqlite"
    with closing(sqlite3.connect(foreign)) as db, db:
        db.execute("CREATE TABLE ledger (epsilon)")
    torn = tmp_path / "torn.sqlite"
    begin(torn).ask(Marginals(3), 0.5)
    torn.write_bytes(torn.read_bytes()[:6000])
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    for file in (text, foreign, torn):
        before = file.read_bytes()
        for options in ((), (table(), DP(1.0))):
            with pytest.raises(ValueError, match=file.name):
                Session.open(file, *options)
        assert file.read_bytes() == before
    with pytest.raises(ValueError, match="empty.sqlite"):
        Session.open(empty)
    with pytest.raises(FileNotFoundError):
        Session.open(tmp_path / "nowhere.sqlite")
    with pytest.raises(FileNotFoundError):
        begin(tmp_path / "no" / "folder.sqlite")
    with pytest.raises(ValueError, match="folder"):
        begin(tmp_path)


@pytest.mark.parametrize(
    "record", [[inf, 0.0], [0.0, 0.0], [1.0, 2.0], {"rho": -1.0}, [10**400, 0.0]]
)
def test_a_file_whose_budget_promises_nothing_is_refused(record):
    with pytest.raises(ValueError, match="is not allowed"):
        budget_of(record)


_ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (
            "about",
            "ALTER TABLE about RENAME TO old; CREATE VIEW about AS "
            f"{_ENDLESS} 'id' AS name, x AS value FROM n",
        ),
        (
            "more",
            "CREATE TRIGGER more AFTER INSERT ON ledger BEGIN SELECT hex(zeroblob(4e8)); END",
        ),
        ("more", "CREATE TRIGGER more AFTER INSERT ON ledger BEGIN DELETE FROM bank; END"),
        ("bank", "ALTER TABLE bank ADD COLUMN x AS (hex(zeroblob(400000000)))"),
    ],
    ids=["view", "select", "delete", "column"],
)
def test_a_session_that_computes_is_refused(path, name, change):
    """What a stranger's file computes may have no end, or change what is spent."""
    begin(path).ask(ONE, 0.5)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(change)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"a session has no .* like '{name}'"):
        Session.open(path)
    assert path.read_bytes() == before


def test_a_counter_that_is_a_device_is_not_read(path):
    begin(path)
    with pytest.raises(ValueError, match="counts for another session"):
        Counter(Path("/dev/zero"), path, "id").read()


@pytest.mark.parametrize(
    "strange",
    [
        '"spent": 1e400',
        '"spent": NaN',
        '"spent": true',
        '"spent": "7"',
        '"spent": -1',
        '"spent": 2.0',
        '"spent": ' + "[" * 100_000 + "]" * 100_000,
        '"checksum": 7',
        '"checksum": "xyz"',
        '"session": [1]',
    ],
    ids=lambda text: text[:20],
)
def test_a_counter_that_counts_nothing_is_refused(path, tmp_path, strange):
    """It is taken for torn, and never for one of which nothing is spent."""
    count = tmp_path / "a.count"
    count.write_text(f'{{"session": "{path}", "id": "7", {strange}}}')
    with pytest.raises(ValueError, match="counts for another session"):
        Counter(count, path, "7").read()
    with pytest.raises(ValueError, match="counts for another budget"):
        new_counter(count, path, "8")


def test_a_counter_shows_no_control_characters(path, tmp_path):
    count = tmp_path / "a.count"
    count.write_text(json.dumps({"session": "\x1b[2J all is well", "id": "7", "spent": 1}))
    for read in (Counter(count, path, "8").read, lambda: new_counter(count, path, "8")):
        with pytest.raises(ValueError, match="counts for another") as refused:
            read()
        assert str(refused.value).isprintable()


def test_an_attribute_of_billions_of_codes_is_refused_where_a_prior_is_laid_out(path):
    wide = Domain(("x",), (2**31,))
    opened = Session.open(path, SparseTable.from_keys(wide, [3], [5], Bound(1)), DP(1.0))
    assert opened.budget.remaining == 1.0
    with pytest.raises(ValueError, match=r"attributes with 2,147,483,648 values are too large"):
        uniform_prior(wide)


def test_a_spend_cannot_be_taken_back_by_accident(path):
    begin(path).ask(ONE, 0.5)
    with closing(sqlite3.connect(path)) as db, db:
        for command in ("DELETE FROM ledger", "UPDATE ledger SET epsilon = 0.1"):
            with pytest.raises(sqlite3.IntegrityError, match="spent"):
                db.execute(command)


def test_a_file_that_goes_or_is_replaced_is_noticed(path):
    session = begin(path)
    session.ask(ONE, 0.5)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        session.ask(ONE, 0.25)
    assert "cannot be read" in repr(session) and not path.exists()
    begin(path)
    with pytest.raises(ValueError, match="another session has replaced"):
        session.ask(ONE, 0.25)


def test_a_lock_beside_the_data_guards_against_a_second_session(tmp_path):
    data, one, two = (tmp_path / name for name in ("d.csv", "one.sqlite", "two.sqlite"))
    with pytest.raises(FileNotFoundError):
        begin(one, data=data)
    data.touch()
    begin(one, data=data).ask(ONE, 0.5)
    begin(one, data=data)
    for lost in (False, True):
        with pytest.raises(ValueError, match="one.sqlite"):
            begin(two, data=data, lost=lost)
        assert not (two.exists() and two.stat().st_size)
    two.write_bytes(one.read_bytes())
    with pytest.raises(ValueError, match="one.sqlite"):  # a copy
        begin(two, data=data, lost=True)
    one.unlink()
    with pytest.raises(ValueError, match="lost"):
        begin(two, data=data)
    assert begin(two, data=data, lost=True).budget.remaining == 0.5
    begin(two, data=data)
    two.unlink()
    with pytest.raises(ValueError, match="lost"):  # begun anew in the same place
        begin(two, data=data)
    (tmp_path / "d.csv.session").write_text("torn")
    with pytest.raises(ValueError, match="lost"):
        begin(two, data=data)
    begin(two, data=data, lost=True)


def test_an_answer_that_was_paid_for_leaves_even_if_the_bank_cannot_keep_it(path, monkeypatch):
    session, draw = begin(path), LaplaceQueries.__call__

    def last(self, data, rng=None):
        if len(data):
            monkeypatch.setattr(session.budget.file, "path", path.parent / "gone")
        return draw(self, data, rng)

    monkeypatch.setattr(LaplaceQueries, "__call__", last)
    with pytest.warns(UserWarning, match="not kept"):
        assert len(session.ask(ONE, 0.25).estimate) == 1
    session.budget.file.path = path
    assert session.budget.remaining == 0.75
    with pytest.raises(ValueError, match="empty"):
        session.bank.recall(ONE)


# Prices, beside explicit linear algebra over the universe


def _dense(workload):
    cells = np.arange(DOMAIN.size)
    asked = linear_queries(workload, DOMAIN)
    return np.stack([asked.sums(DOMAIN, np.array([t]), np.ones(1)) for t in cells], axis=1)


def _worst(history, asked, v, alpha, known):
    """The largest standard error of `asked` after answers of variance v to all of it."""
    rows, noise = [_dense(asked)], [np.full(len(linear_queries(asked, DOMAIN)), v)]
    if history is not None:
        rows.append(_dense(history.workload))
        noise.append(history.variances)
    q, noise, p = np.concatenate(rows), np.concatenate(noise), np.full(24, 1 / 24)
    prior = np.diag(p) - known * np.outer(p, p)
    if alpha < inf:
        gain = q @ (alpha**2 * prior)
        left = alpha**2 * prior - gain.T @ np.linalg.solve(gain @ q.T + np.diag(noise), gain)
    else:  # least squares; with the total known, x moves within sum 0
        basis = np.linalg.svd(np.ones((1, 24)))[2][known:].T
        design = q @ basis
        left = basis @ np.linalg.pinv((design.T / noise) @ design, rcond=1e-12) @ basis.T
    return np.sqrt(np.diag(rows[0] @ left @ rows[0].T).max())


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("alpha", [30.0, inf])
@pytest.mark.parametrize(
    "bought", [(), (Marginals(1),), (Marginals(1), RandomMarginalRanges(9))]
)
@pytest.mark.parametrize(
    "asked",
    [Marginals(2), Products.of(DOMAIN, [{}, {"a": (0, 2)}, {"b": (0, 1), "c": (1, 2)}])],
)
def test_a_price_is_the_least_that_reaches_the_error(path, known, alpha, bought, asked):
    session = begin(path, 50.0, total=float(COUNTS.sum()) if known else None)
    for workload in bought:
        session.ask(workload, 0.5)
    history = session.bank.answers if bought else None
    moved = workload_sensitivity(asked, DOMAIN)
    for error in (1.0, 4.0):
        price = session.bank.price(asked, error, alpha)
        now = _worst(history, asked, 1e14, alpha, known)
        if price == 0:
            assert now <= error * (1 + 1e-6)
            continue
        least = 2 * (moved / price) ** 2
        assert _worst(history, asked, least, alpha, known) == pytest.approx(error, rel=1e-4)
        assert _worst(history, asked, least * 1.01, alpha, known) > error
    session.ask(asked, price or 1.0)
    assert session.bank.recall(asked, alpha).errors.max() <= error * (1 + 1e-7)
    assert session.bank.price(asked, error * (1 + 1e-6), alpha) == 0.0


def test_a_price_beyond_the_budget_says_so_and_what_is_known_counts(path):
    session = begin(path)
    words = r"a standard error of 0.1 costs epsilon = 14.1\d+, but 1 remain"
    with pytest.raises(ValueError, match=words):
        session.bank.price(ONE, 0.1)
    fresh = session.bank.price(ONE, 3.0)
    session.ask(ONE, 0.4)
    assert 0 < session.bank.price(ONE, 3.0) < fresh
    for error in (0.0, -1.0, float("nan"), inf, "much"):
        with pytest.raises(ValueError, match="error"):
            session.bank.price(ONE, error)


def test_an_empty_bank_says_so_unless_a_prior_speaks(path):
    session = begin(path)
    with pytest.raises(ValueError, match="empty"):
        session.bank.recall(ONE)
    with pytest.raises(ValueError, match="empty"):
        session.bank.answers  # noqa: B018
    values, errors = Session.open(
        path.with_name("told"), table(), DP(1.0), total=100.0
    ).bank.recall(ONE)
    assert values[0] == pytest.approx(50) and errors[0] == pytest.approx(100 * 0.5)


def test_what_the_bank_cannot_tell_has_no_finite_error(path):
    session = begin(path)
    session.ask(ONE, 0.5)
    _, errors = session.bank.recall(Products.of(DOMAIN, [{"b": (0, 1)}, {"a": (0, 2)}]))
    assert errors[0] == inf and errors[1] < inf
