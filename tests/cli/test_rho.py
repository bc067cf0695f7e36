"""ρ on the command line: stated, booked, shown, and read as an ε at a δ that somebody names."""

from pathlib import Path

import pytest

from workbench.estimates.release import Release
from workbench.owner import Budget
from workbench.privacy import DP, ZCDP

PEOPLE = ["--people", "customers of shop X", "--unit", "a user"]


def release(out, price, mechanism="GaussianHistogram", rest=""):
    rows = "--domain domain.json --count n --bound 1,1"
    unit = [] if "--budget" in rest else ["--unit", "a user"]
    line = f"release t.csv {rows} --mechanism {mechanism} {price} --out {out} {rest}"
    return [*line.split(), *unit]


def test_a_rho_is_spent_and_read_as_an_epsilon_at_the_delta_that_is_named(run):
    said = run(release("x.parquet", "--rho 0.5 --delta 1e-9"))
    assert "0.5-zCDP: if the records of a user are added or removed" in said
    assert "At δ = 1e-09 it is (6.475, 1e-09)" in said
    assert Release.load("x.parquet").privacy == ZCDP(0.5)
    said = run("show x.parquet --delta 1e-6")
    assert "At δ = 1e-06 it is (5.222, 1e-06" in said and "10⁻⁶" in said
    said = run("show x.parquet")
    assert "run workbench show FILE --delta D" in said and "At δ" not in said
    assert "a rho implies no epsilon at 0" in run("show x.parquet --delta 0", 2)


def test_an_epsilon_and_a_delta_buy_the_rho_within_them(run):
    said = run(release("x.parquet", "--epsilon 1 --delta 1e-9"))
    paid = Release.load("x.parquet").privacy
    assert paid == ZCDP.within(DP(1.0, 1e-9))
    assert f"{paid}: if" in said and "At δ = 1e-09 it is (1" in said


def test_pure_releases_are_read_at_a_delta_too(run):
    run(release("x.parquet", "--epsilon 0.5", "GeometricHistogram"))
    assert "At δ = 1e-06 it is (0.5, 1e-06)-DP" in run("show x.parquet --delta 1e-6")


BAD = {
    "": "--epsilon or --rho: need exactly one of them",
    "--rho 1 --epsilon 1": "--epsilon or --rho: need exactly one",
    "--rho 0": "--rho = 0",
    "--rho nan": "--rho = nan",
    "--rho inf": "--rho = inf",
    "--rho -1": "--rho = -1",
    "--rho 1 --delta 0": "a rho implies no epsilon at 0",
    "--rho 1 --delta 1": "delta",
    "--epsilon 1": "draws Gaussian noise, which ε alone does not pay for: add --delta",
}


@pytest.mark.parametrize("price", BAD)
def test_a_price_that_is_wrong_is_refused(run, price):
    assert BAD[price] in run(release("x.parquet", price), 2)
    assert not Path("x.parquet").exists()


def test_a_mechanism_refuses_a_price_that_does_not_buy_its_noise(run):
    assert "takes no ZCDP" in run(release("x.parquet", "--rho 1", "LaplaceHistogram"), 2)
    geometric = release("x.parquet", "--rho 1 --noise geometric", "Privelet")
    assert "need 'gaussian', or leave it out" in run(geometric, 2)
    assert not Path("x.parquet").exists()


def test_a_budget_of_rho_pays_for_both_kinds_of_noise(run):
    said = run(["budget", "new", "b.sqlite", "--rho", "1", *PEOPLE])
    assert "1-zCDP for customers of shop X" in said and "--rho 0.25" in said
    paid = "--budget b.sqlite"
    assert "ρ = 0.8 of 1-zCDP remain" in run(release("1.parquet", "--rho 0.2", rest=paid))
    run(release("2.parquet", "--epsilon 0.5", "GeometricHistogram", paid))
    assert "rho = 0.7 is more than the 0.677540668798" in run(
        release("3.parquet", "--rho 0.7", rest=paid), 2
    )
    said = run("budget show b.sqlite --delta 1e-9")
    assert "Budget 1-zCDP, at δ = 1e-09 (9.522, 1e-09)" in said
    assert "Spent ρ = 0.322459331201" in said and "Left ρ = 0.677540668798" in said
    assert "GaussianHistogram() 0.2" in said
    assert "GeometricHistogram(budget=DP(epsilon=0.5)) 0.122459331201" in said
    for i in range(4):
        run(release(f"x{i}.parquet", "--rho 0.1", rest=paid))
    assert len(Budget("b.sqlite").ledger) == 6


@pytest.mark.slow
def test_five_fifths_of_a_rho_are_one(run):
    run(["budget", "new", "b.sqlite", "--rho", "1", *PEOPLE])
    for i in range(5):
        run(release(f"{i}.parquet", "--rho 0.2", rest="--budget b.sqlite"))
    assert Budget("b.sqlite").remaining == 0


def test_a_budget_of_epsilon_says_that_it_pays_no_rho(run):
    run(["budget", "new", "b.sqlite", "--epsilon", "1", *PEOPLE])
    said = run(release("x.parquet", "--rho 0.2", rest="--budget b.sqlite"), 2)
    assert "1-DP is a budget in epsilon and cannot pay 0.2-zCDP" in said
    assert "needs no δ" in run("budget show b.sqlite --delta 1e-9", 2)
    assert "--epsilon or --rho: need" in run(["budget", "new", "c.sqlite", *PEOPLE], 2)
