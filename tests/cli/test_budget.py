"""`workbench budget` and `release --budget`: one budget over many releases."""

from pathlib import Path

import pytest

from workbench.estimates.release import Release
from workbench.owner import Budget, Session
from workbench.privacy import DP

NEW = ["budget", "new", "b.sqlite", "--people", "customers of shop X", "--unit"]
ROWS = "--domain domain.json --count n --bound 1,1 --mechanism HighPassFilter --theta 20"
USERS = "t.csv --domain domain.json --bound 2 --mechanism SRA --l 1 --user n"


def release(out, epsilon, rest=""):
    return f"release t.csv {ROWS} --budget b.sqlite --epsilon {epsilon} --out {out} {rest}"


def test_five_fifths_are_one(run):
    told = run([*NEW, "a user", "--epsilon", "1", "--delta", "1e-6"])
    assert "(1, 1e-06)-DP for customers of shop X" in told
    for i in range(5):  # in floats 5 · 0.2 > 1
        told = run(release(f"{i}.parquet", 0.2))
        left = ("0.8", "0.6", "0.4", "0.2", "0")[i]
        assert f"ε = {left}, δ = 1e-06 of (1, 1e-06)-DP remain for customers of shop X" in told
    assert sum(Budget("b.sqlite").ledger.epsilon) <= 1
    assert str(Release.load("4.parquet").privacy) == "0.2-DP"
    assert "0.2 is more than the 0 that remain" in run(release("5.parquet", 0.2), 2)
    told = run("budget show b.sqlite")
    assert "Spent ε = 1, δ = 0 Left ε = 0, δ = 1e-06" in told
    assert "HighPassFilter(theta=20) 0.2 0" in told and "4.parquet released" in told


def test_a_counter_that_is_gone_begins_anew_by_an_option(run):
    run([*NEW, "a user", "--epsilon", "1"])
    Path("b.sqlite.count").unlink()
    assert "open it with workbench budget show --lost" in run("budget show b.sqlite", 2)
    assert "Left ε = 1" in run("budget show b.sqlite --lost")
    assert "Left ε = 1" in run("budget show b.sqlite")


def test_what_was_booked_and_did_not_come_out_is_lost(run, monkeypatch):
    run([*NEW, "a user", "--epsilon", "1"])

    def fails(*_, **__):
        raise OSError("the disk is full")

    monkeypatch.setattr(Release, "save", fails)
    assert "full" in run(release("a.parquet", 0.25), 2)
    told = run("budget show b.sqlite")
    assert "Left ε = 0.75" in told and "a.parquet lost, or under way" in told


def test_users_spend_from_a_budget_of_users(run):
    run([*NEW, "user", "--epsilon", "1"])
    run(f"release {USERS} --budget b.sqlite --epsilon 0.25 --out a.parquet")
    assert Budget("b.sqlite").remaining == 0.75


def test_what_else_is_drawn_is_booked_with_it(run):
    run([*NEW, "user", "--epsilon", "1"])
    users = USERS.replace("--l 1 ", "")
    choice = "--choose l=1,2 --choose-epsilon 0.1"
    run(f"release {users} {choice} --budget b.sqlite --epsilon 0.7 --out a.parquet")
    session = Budget("b.sqlite")
    assert float(session.ledger.epsilon[1]) == 0.8  # not less than 0.1 + 0.7 in floats
    rows = ROWS.replace("--count n", "--user n")
    told = run(
        f"release t.csv {rows} --report-cut 0.1 --budget b.sqlite --epsilon 0.1 --out b.parquet"
    )
    assert "ε = 0 of 1-DP remain" in told
    assert list(session.ledger.asked)[1:] == [
        "HighPassFilter(theta=20)",
        "users who lost anything to the bound",
    ]
    assert len(Release.load("b.parquet").ledger) == 2 and session.ledger.answered.all()


def test_microdata_spend_from_it(run):
    run([*NEW, "user", "--epsilon", "1"])
    made = "synthesize t.csv --domain domain.json --count n --bound 1,1 --rows 5 "
    made += "--marginals 1"
    run(f"{made} --budget b.sqlite --epsilon 0.25 --out m.parquet")
    assert Budget("b.sqlite").remaining == 0.75


def test_how_many_users_were_cut_is_booked_beside_the_release(run):
    run([*NEW, "a user", "--epsilon", "1"])
    asked = "release t.csv --domain domain.json --user n --bound 1,1 --mechanism HighPassFilter --theta 2"
    told = run(f"{asked} --epsilon 0.5 --report-cut 0.25 --budget b.sqlite --out a.parquet")
    assert "ε = 0.25 of 1-DP remain" in told and "lost anything to the bound" in told
    assert Release.load("a.parquet").privacy == DP(0.75)
    told = run(f"{asked} --epsilon 0.2 --report-cut 0.1 --budget b.sqlite --out b.parquet", 2)
    assert "more than" in told and Budget("b.sqlite").remaining == 0.25


STATED = "budget new c --people x"
BAD = {
    release("x.parquet", 0.2, "--seed 1 --simulated"): "does not take --seed",
    release("x.parquet", 3): "3 is more than the 1 that remain of 1-DP: nothing",
    release("x.parquet", "inf"): "need a finite number > 0",
    release("x.parquet", 0.2).replace("b.sqlite", "t.csv"): "t.csv: not a session",
    release("x.parquet", 0.2).replace("b.sqlite", "none"): "none: no such budget file",
    release("x.parquet", 0.2).replace("HighPassFilter --theta 20", "Flipping"): "local",
    "budget new b.sqlite --people x --unit 'a user' --epsilon 1": "exists. Continue this budget",
    f"{STATED} --unit x --epsilon inf": "need DP(0 < epsilon",
    f"{STATED} --unit ' ' --epsilon 1": "unit = ' '",
    "budget show t.csv": "not a session",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_and_costs_nothing(run, line):
    run([*NEW, "a user", "--epsilon", "1"])
    assert BAD[line] in run(line, 2)
    assert Budget("b.sqlite").remaining == 1.0 and not Path("c").exists()


def test_a_budget_of_another_unit_does_not_pay(run):
    run([*NEW, "a trip", "--epsilon", "1"])
    said = run(f"release {USERS} --budget b.sqlite --epsilon 0.2 --out x.parquet", 2)
    assert "protects 'a trip', not" in said and "--unit 'a trip'" in said
    assert Budget("b.sqlite").remaining == 1.0


def test_a_session_of_one_table_is_no_budget_of_people(run):
    from workbench.data import Bound, SparseTable
    from workbench.spaces import Domain

    table = SparseTable.from_keys(Domain(("x",), (4,)), [0], [3], Bound())
    Session.open("b.sqlite", table, DP(1.0))
    assert "declares no people" in run(release("x.parquet", 0.2), 2)
