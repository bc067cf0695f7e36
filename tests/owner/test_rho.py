"""Sessions and budget files that spend ρ: exactly, adaptively, and beside those that spend ε."""

from fractions import Fraction

import numpy as np
import pytest

from workbench import (
    DP,
    ZCDP,
    Bound,
    Budget,
    Domain,
    Dyadic,
    Marginals,
    Ranges,
    Receipt,
    Release,
    Session,
    SparseTable,
)
from workbench.mechanisms import (
    DirichletSynthesis,
    GaussianHistogram,
    GeometricHistogram,
    HighPassFilter,
)
from workbench.privacy import ADD_REMOVE, REPLACE, compose, exact_rho, guarantee, rho_above
from workbench.privacy.enclosures import round_down, round_up

PEOPLE = {"people": "customers of shop X", "unit": "a user"}


@pytest.fixture
def data():
    domain = Domain(("key",), (64,))
    bound = Bound(unit="a user", status="enforced")
    return SparseTable.from_keys(domain, [3, 9, 40], [20, 5, 9], bound)


@pytest.fixture
def budget(tmp_path):
    return Budget.create(tmp_path / "budget.dp", ZCDP(0.5), **PEOPLE)


def test_an_epsilon_takes_the_rho_that_it_implies(budget, data, tmp_path):
    out = tmp_path / "x.parquet"
    release = budget.release(GeometricHistogram(DP(0.5)), data, out=out)
    spent = rho_above(0.5)
    (row,) = budget.ledger.itertuples()
    assert row.rho == spent and row.delta == 0 and "epsilon" not in budget.ledger
    assert row.asked == "GeometricHistogram(budget=DP(epsilon=0.5))"
    assert budget.remaining == round_down(Fraction(0.5) - Fraction(spent))
    assert release.privacy == DP(0.5)


def test_what_is_known_of_the_structure_is_booked_and_held_against_the_receipts(budget, data):
    tree = GeometricHistogram(DP(0.5), transform=Dyadic())
    known = round_up(exact_rho(tree(data, np.random.default_rng(0)).ledger)[0])
    assert known < rho_above(0.5) / 6
    budget.release(tree, data)
    assert budget.remaining == round_down(Fraction(0.5) - Fraction(known))
    booking = budget.book(ZCDP(known / 2), "half of it")
    with pytest.raises(ValueError, match="withheld.*was booked"):
        booking.check(tree(data))
    assert budget.remaining == pytest.approx(0.5 - 1.5 * known)  # spent all the same


def test_what_its_structure_costs_is_paid_where_no_more_remains(tmp_path, data):
    budget = Budget.create(tmp_path / "small.dp", ZCDP(0.02), **PEOPLE)
    with pytest.raises(ValueError, match="rho = 0.1224.* is more than the 0.02 that remain"):
        budget.release(GeometricHistogram(DP(0.5)), data)
    budget.check(GeometricHistogram(DP(0.5), transform=Dyadic()))  # not known without data
    budget.release(GeometricHistogram(DP(0.5), transform=Dyadic()), data)
    assert 0 < budget.remaining < 0.02


def test_spends_chosen_by_earlier_answers_never_exceed_the_budget(tmp_path, data):
    """The filter: whatever is asked next, the exact sum of what was booked stays within ρ."""
    budget = Budget.create(tmp_path / "budget.dp", ZCDP(0.3), **PEOPLE)
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(40):
        released = float(rng.choice([0.01, 0.1, 0.25, budget.remaining or 0.1]))
        try:
            budget.book(ZCDP(released), "a release")
        except ValueError as e:
            assert "remain of 0.3-zCDP: nothing was spent" in str(e)
            refused += 1
    booked = sum(map(Fraction, budget.ledger.rho))
    assert refused and booked <= Fraction(0.3)
    assert Fraction(budget.remaining) <= Fraction(0.3) - booked


def test_tenths_are_added_exactly(tmp_path):
    budget = Budget.create(tmp_path / "budget.dp", ZCDP(1.0), **PEOPLE)
    for _ in range(9):
        budget.book(ZCDP(0.1), "a tenth")
    with pytest.raises(ValueError, match="rho = 0.1 is more than the 0.09999999999999995"):
        budget.book(ZCDP(0.1), "ten times the float 0.1 is more than 1")
    budget.book(ZCDP(budget.remaining), "the rest")
    assert budget.remaining == 0


def test_a_budget_of_epsilon_pays_no_rho(tmp_path):
    budget = Budget.create(tmp_path / "budget.dp", DP(1.0, 1e-6), **PEOPLE)
    with pytest.raises(ValueError, match="is a budget in epsilon .* Create a budget in rho"):
        budget.book(ZCDP(0.001), "Gaussian noise")
    booking = budget.book(DP(0.5), "a release")
    words = "withheld.*0.001-zCDP, of which a budget of ε pays nothing"
    with pytest.raises(ValueError, match=words):
        booking.check([Receipt("gaussian", ZCDP(0.001))])
    assert budget.remaining == 0.5


def test_receipts_are_held_against_the_booking_in_rho(budget):
    booking = budget.book(ZCDP(0.2, delta=0), "two measurements")
    dear = [
        [Receipt("a", ZCDP(0.1)), Receipt("b", ZCDP(0.10000000000000002))],
        [Receipt("a", ZCDP(0.2)), Receipt("b", DP(1e-9))],
        [Receipt("a", ZCDP(0.1, delta=1e-12))],
        [Receipt("a", DP(float("inf")))],
    ]
    for receipts in dear:
        with pytest.raises(ValueError, match="withheld"):
            booking.check(receipts)
    booking.check([Receipt("a", ZCDP(0.1)), Receipt("b", ZCDP(0.1))])
    booking = budget.book(ZCDP(0.2, delta=0), "two measurements, one of some epsilon")
    booking.check([Receipt("a", ZCDP(0.1)), Receipt("b", DP(0.1))])


def test_delta_is_spent_beside_rho(tmp_path):
    budget = Budget.create(tmp_path / "budget.dp", ZCDP(0.5, delta=1e-9), **PEOPLE)
    budget.book(ZCDP(0.1, delta=1e-9), "a threshold")
    with pytest.raises(ValueError, match="delta = 1e-09 is more than the 0 that remain"):
        budget.book(DP(0.1, 1e-9), "another one")
    assert (budget.remaining, budget.remaining_delta) == (0.39999999999999997, 0.0)


def test_the_file_is_opened_again_as_what_it_is(budget, tmp_path):
    budget.book(ZCDP(0.125), "a release")
    path = tmp_path / "budget.dp"
    again = Budget(path, ZCDP(0.5))
    assert (again.limit, again.remaining) == (ZCDP(0.5), 0.375)
    words = "belongs to the budget 0.5-zCDP, not to 0.5-DP|not to the budget 0.5-DP"
    with pytest.raises(ValueError, match=words):
        Budget(path, DP(0.5))


def test_questions_at_an_epsilon_take_the_rho_of_these_queries(tmp_path, data):
    session = Session.open(tmp_path / "bank.dp", data, ZCDP(0.5))
    session.ask(Ranges([0, 8], [8, 64]), 0.25)
    (row,) = session.budget.ledger.itertuples()
    assert 0 < row.rho <= rho_above(0.25)
    values, errors = session.bank.recall(Ranges([0], [8]))
    assert np.isfinite(values).all() and np.isfinite(errors).all()
    for neither in ({}, {"epsilon": 0.1, "rho": 0.1}):
        with pytest.raises(ValueError, match="need either"):
            session.ask(Ranges([0], [8]), **neither)


def test_thresholded_summaries_are_paid_in_rho_too(budget, data):
    budget.release(HighPassFilter(DP(0.25), theta=12), data)
    assert budget.remaining == round_down(Fraction(0.5) - Fraction(rho_above(0.25)))


def test_questions_at_a_rho_are_answered_with_gaussian_noise(tmp_path, data):
    session = Session.open(tmp_path / "bank.dp", data, ZCDP(0.5))
    queries = Ranges([0, 8], [8, 64])
    release = session.ask(queries, rho=0.125)
    assert release.privacy == ZCDP(0.125) and session.budget.remaining == 0.375
    values, errors = session.bank.recall(queries)
    assert np.allclose(values, release.estimate.values, atol=1e-6)
    assert np.allclose(errors**2, release.estimate.variances, rtol=1e-6)
    words = "rho = 0.4 is more than the 0.375 that remain of 0.5-zCDP"
    with pytest.raises(ValueError, match=words):
        session.ask(queries, rho=0.4)
    ended = Session.open(tmp_path / "other.dp", data, DP(1.0))
    with pytest.raises(ValueError, match="is a budget in epsilon"):
        ended.ask(queries, rho=0.1)
    assert ended.budget.remaining == 1.0


@pytest.mark.slow
def test_a_price_in_rho_buys_the_error_that_was_asked_for(tmp_path, data):
    session = Session.open(tmp_path / "bank.dp", data, ZCDP(0.5))
    queries = Ranges([0, 8], [8, 64])
    session.ask(queries, rho=0.01)
    rho = float(session.bank.price(queries, 2.0, alpha=float("inf")))
    assert 0.1 < rho < 0.125
    session.ask(queries, rho=rho)
    _, errors = session.bank.recall(queries, alpha=float("inf"))
    assert errors.max() <= 2.0 * (1 + 1e-6) and errors.max() >= 1.99
    with pytest.raises(ValueError, match="costs rho = "):
        session.bank.price(queries, 0.1, alpha=float("inf"))


@pytest.mark.parametrize(
    "own, other, mechanism",
    [
        (ADD_REMOVE, REPLACE, DirichletSynthesis(DP(0.1), records=9, total=34)),
        (REPLACE, ADD_REMOVE, GaussianHistogram(ZCDP(0.1))),
        ("local", ADD_REMOVE, GaussianHistogram(ZCDP(0.1))),
    ],
)
def test_replacing_and_adding_or_removing_meet_at_no_door(
    own, other, mechanism, tmp_path, data
):
    """Neither a budget, its file, a booking, a sum, nor a release takes one for the other, and nothing
    is spent but what was booked."""
    path = tmp_path / "budget.dp"
    budget = Budget.create(path, ZCDP(0.5), relation=own, **PEOPLE)
    for door in (budget.release, budget.check):
        with pytest.raises(ValueError, match="do not add up"):
            door(mechanism, data)
    with pytest.raises(ValueError, match="do not add up"):
        budget.book(ZCDP(0.1), "x", relation=other)
    if own != ADD_REMOVE:
        with pytest.raises(ValueError, match="neighbours"):
            Session.open(path, data).ask(Marginals(1), rho=0.1)
    assert budget.remaining == 0.5 and not len(budget.ledger)
    booking = budget.book(ZCDP(0.125), "x", relation=own)
    with pytest.raises(ValueError, match="withheld"):
        booking.check([Receipt("x", ZCDP(0.1), other)])
    assert budget.remaining == 0.375
    mixed = (Receipt("x", ZCDP(0.1), own), Receipt("y", DP(0.1), other))
    release = GaussianHistogram(ZCDP(0.1))(data, np.random.default_rng(0))
    for door in (compose, exact_rho, lambda ledger: guarantee(ledger, 1e-9)):
        with pytest.raises(ValueError, match="different neighbouring relations"):
            door(mixed)
    file = tmp_path / "x.parquet"
    for door in (
        lambda r: r.privacy,
        lambda r: r.at(1e-9),
        lambda r: r.save(file, simulated=True),
    ):
        with pytest.raises(ValueError, match="different neighbouring relations"):
            door(Release(release.estimate, mixed, release.mechanism, release.bound))
    assert not file.exists()
