"""Better questions are asked for the price that was said; plans are free, or say what they cost."""

import json
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest

from workbench import DP, Bound, Domain, Session, SparseTable
from workbench.owner import choosing
from workbench.owner.choosing import open_sets, scores_of
from workbench.privacy import ZCDP
from workbench.queries import Marginals, NamedMarginals, Products

BITS = Domain(tuple("abcde"), (2,) * 5)


def people(n=3000, seed=0):
    """a, b and c are nearly the same; d and e stand alone."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, (n, 5))
    for k in (1, 2):
        codes[:, k] = np.where(rng.random(n) < 0.9, codes[:, 0], codes[:, k])
    return SparseTable.from_keys(BITS, BITS.keys(codes), np.ones(n, int), Bound())


@pytest.mark.slow
@pytest.mark.parametrize("budget,price", [(DP(500.0), "epsilon"), (ZCDP(500.0), "rho")])
def test_optimised_answers_err_as_was_told(tmp_path, budget, price):
    table = people()
    truth = table.answer(Marginals(2))
    squares = []
    with Session.open(tmp_path / "s", table, budget, total=3000.0) as session:
        one = ZCDP(1.0) if price == "rho" else DP(1.0)
        (told,) = session.plan(Marginals(2), one).to_dict("records")
        assert session.budget.remaining == 500.0
        assert told["error"] < told["plain"] and 0 < told["share of bound"] <= 1 + 1e-6
        for _ in range(20):
            release = session.ask(Marginals(2), **{price: 1.0}, strategy="optimised")
            squares.append((release.answer(Marginals(2)) - truth) ** 2)
            assert release.privacy == one
        errors = release.deviations()
        assert session.budget.remaining == 480.0
        assert np.sqrt(np.mean(errors**2)) == pytest.approx(told["error"], rel=1e-3)
        ratio = np.mean(squares) / told["error"] ** 2
        # Of 800 values: a chance below 10⁻⁹, and twice the noise shows.
        assert 0.3 < ratio < 2.5
        with pytest.raises(ValueError, match="strategy = 'magic'"):
            session.ask(Marginals(2), **{price: 1.0}, strategy="magic")


@pytest.mark.slow
def test_a_plan_shares_a_budget_so_that_errors_add_up_to_least(tmp_path):
    with Session.open(tmp_path / "s", people(), DP(1.0), total=3000.0) as session:
        plan = session.plan([Marginals(1), Marginals(2)], 1.0)
        assert session.budget.remaining == 1.0
        prices = plan.epsilon.to_numpy()
        assert prices.sum() <= 1.0 and prices.sum() == pytest.approx(1.0)
        worths = (plan.error * plan.epsilon).to_numpy() ** 2

        def total(first):
            return worths[0] / first**2 + worths[1] / (1 - first) ** 2

        assert all(total(prices[0]) <= total(x) * 1.01 for x in np.linspace(0.05, 0.95, 19))
        for epsilon, question in zip(prices, (Marginals(1), Marginals(2)), strict=True):
            session.ask(question, epsilon, strategy="optimised")
        with pytest.raises(ValueError, match="at least one"):
            session.plan([], 1.0)
        with pytest.raises(ValueError, match="by = 'eye'"):
            session.plan(Marginals(1), 1.0, by="eye")


@pytest.mark.slow
def test_the_table_chooses_for_a_price_that_is_booked(tmp_path):
    path = tmp_path / "s"
    with Session.open(path, people(), DP(20.0), total=3000.0) as session:
        session.ask(Marginals(1), 1.0)
        with pytest.raises(ValueError, match="need either epsilon or rho"):
            session.plan(Marginals(2), 1.0, by="data")
        with pytest.raises(ValueError, match="rounds = 5"):
            session.plan(Marginals(2), 1.0, by="data", epsilon=4.0, rounds=5)
        assert session.budget.remaining == 19.0
        plan = session.plan(Marginals(2), 1.0, by="data", epsilon=4.0)
        assert session.budget.remaining == 15.0
        assert len(plan) == 4 and "plan by data" in session.budget.ledger.asked.iloc[-1]
        near = {NamedMarginals((pair,)) for pair in combinations("abc", 2)}
        assert len(near & set(plan.attrs["questions"][:2])) == 2
        assert len(near & set(plan.attrs["questions"])) == 2  # the third would follow from two
        with pytest.raises(ValueError, match="more than"):
            session.plan(Marginals(2), 1.0, by="data", epsilon=99.0)
        told = []
        for _ in range(3):  # AIM's rounds: what was asked is known, and not chosen again
            one = session.plan(Marginals(2), 2.0, by="data", epsilon=1.0, rounds=1)
            told += one.attrs["questions"]
            session.ask(told[-1], 2.0)
        assert len(near & set(told[:2])) == 2
    with pytest.raises(ValueError, match="needs a table"):
        Session.open(path).plan(Marginals(2), 1.0, by="data", epsilon=0.1)


def test_a_choice_from_a_budget_of_rho_costs_no_more_than_its_rounds(tmp_path):
    with Session.open(tmp_path / "s", people(), ZCDP(1.0), total=3000.0) as session:
        session.ask(Marginals(1), rho=0.1)
        plan = session.plan(Marginals(2), ZCDP(0.3), rho=0.02, by="data")
        assert session.budget.remaining == pytest.approx(0.88)
        assert plan.rho.sum() == pytest.approx(0.3)
        session.plan(Marginals(2), rho=0.3, epsilon=0.4, by="data")  # four choices of 0.1
        assert session.budget.remaining == pytest.approx(0.88 - 4 * 0.1**2 / 8)
        with pytest.raises(ValueError, match="need either"):
            session.plan(Marginals(2), 0.3, rho=0.1)
        assert list(session.plan(Marginals(2), rho=0.3).rho) == pytest.approx([0.3])


@pytest.mark.parametrize("l1", [1, 2])
def test_a_unit_moves_scores_by_its_l1_and_no_sequence_of_choices_tells_more(l1):
    """All tables of one or two people in three bits, and all that one unit can add to them."""
    domain = Domain(tuple("abc"), (2, 2, 2))
    sets = [("a",), ("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")]
    expected = [np.arange(2 ** len(names)) % 3 - 1 for names in sets]

    def scores(keys):
        cells, counts = np.unique(np.array(keys, int), return_counts=True)
        table = SparseTable.from_keys(domain, cells, counts, Bound(l1))
        return scores_of(table, sets, expected, [1, 0, 5, 2, 3])

    def chances(scores, chosen=()):
        """Of each sequence of choices, by the mechanism's formula at ε = 1 a round."""
        is_open = open_sets(sets, chosen)
        if not is_open.any():
            return {chosen: 1.0}
        weights = np.where(is_open, np.exp(scores / (2 * l1)), 0.0)
        found = {}
        for i in np.flatnonzero(is_open):
            for rest, p in chances(scores, (*chosen, int(i))).items():
                found[rest] = p * weights[i] / weights.sum()
        return found

    for keys in [(0,), (5,), (0, 7), (3, 3)]:
        before = scores(keys)
        own = chances(before)
        for added in combinations_with_replacement(range(8), l1):
            after = scores((*keys, *added))
            assert np.abs(after - before).max() <= l1
            for sequence, p in chances(after).items():
                assert abs(np.log(p / own[sequence])) <= len(sequence) + 1e-9


def test_synthetic_rows_agree_with_what_was_bought(tmp_path):
    table = people()
    with Session.open(tmp_path / "s", table, DP(9.0), total=3000.0) as session:
        with pytest.raises(ValueError, match="empty"):
            session.bank.synthesize(10)
        session.ask(Marginals(2), 5.0)
        rows = session.bank.synthesize(100_000)
        noise = float(session.bank.answers.variances[0]) ** 0.5
    bought = rows.table.answer(Marginals(2)) * 3000 / 100_000
    distances = np.abs(bought - table.answer(Marginals(2))).reshape(-1, 4).sum(axis=1) / 2
    assert distances.max() < 4 * noise + 3000 * 0.005
    assert len(rows) == 100_000
    few = Session.open(tmp_path / "s").bank.synthesize(7)
    few.save(tmp_path / "rows.csv")
    few.save(tmp_path / "rows.parquet")
    import pandas as pd
    import pyarrow.parquet as pq

    read = pd.read_csv(tmp_path / "rows.csv")
    assert list(read.columns) == list("abcde") and len(read) == 7
    beside = json.loads((tmp_path / "rows.csv.json").read_text())
    assert beside["budget"] == str(DP(9.0)) and beside["remaining"] == "4"
    held = json.loads(pq.read_schema(tmp_path / "rows.parquet").metadata[b"workbench"])
    assert held == {name: beside[name] for name in held}
    with pytest.raises(ValueError, match="exists"):
        few.save(tmp_path / "rows.csv")
    with pytest.raises(ValueError, match="parquet"):
        few.save(tmp_path / "rows.txt")
    with pytest.raises(ValueError, match="size"):
        session.bank.synthesize(-1)


def test_rows_without_a_total_are_refused_in_words_that_were_written(tmp_path):
    with Session.open(tmp_path / "s", people(), DP(9.0)) as session:
        session.ask({"a": {1}}, 1.0)
        with pytest.raises(ValueError, match="total=") as refused:
            session.bank.synthesize(10)
        assert "by =" not in str(refused.value)
        session.ask(Marginals(1), 1.0)  # complete tables say how many there are
        assert len(session.bank.synthesize(10)) == 10


def test_an_impossible_total_is_told_with_rows_and_prices(tmp_path):
    with Session.open(tmp_path / "s", people(), DP(9.0), total=50.0) as session:
        session.ask(Marginals(2), 5.0)
        assert "50 does not fit" in session.bank.synthesize(10).guarantee["doubts"]
        assert "50 does not fit" in session.bank.price(Marginals(1), 5.0).why
    with Session.open(tmp_path / "t", people(), DP(9.0), total=3000.0) as session:
        session.ask(Marginals(2), 5.0)
        assert "doubts" not in session.bank.synthesize(10).guarantee


@pytest.mark.parametrize("price", [1e-6, 1e3])
@pytest.mark.parametrize("cls,name", [(DP, "epsilon"), (ZCDP, "rho")])
def test_better_questions_are_asked_at_any_price_and_of_wide_attributes(
    tmp_path, cls, name, price
):
    wide = Domain(("x", "y"), (100_000, 2))
    codes = np.random.default_rng(0).integers(0, [100_000, 2], (900, 2))
    table = SparseTable.from_keys(wide, wide.keys(codes), np.ones(900, int), Bound())
    ranges = Products.of(wide, [{"x": (1000 * k, 3000 * k + 5)} for k in range(1, 30)])
    with Session.open(tmp_path / "s", table, cls(3e3), total=900.0) as session:
        for question in (ranges, NamedMarginals((("y",),))):
            (told,) = session.plan(question, cls(price)).to_dict("records")
            assert not told["share of bound"] > 1 + 1e-6  # which of wide ranges nobody computes
            release = session.ask(question, **{name: price}, strategy="optimised")
            values, errors = release.estimate.values, release.deviations()
            assert np.sqrt(np.mean(errors**2)) == pytest.approx(told["error"], rel=1e-3)
            off = np.abs(values - table.answer(question))
            assert (off <= 20 * errors + 1e-6).all()
        recalled = session.bank.recall(NamedMarginals((("y",),)), by="kernel PCA")
        assert np.isfinite(recalled.errors).all() and (recalled.errors <= 450 + 1e-6).all()


def test_a_map_of_pairs_is_of_the_bars_that_recall_gives(tmp_path):
    with Session.open(tmp_path / "s", people(), DP(9.0), total=3000.0) as session:
        with pytest.raises(ValueError, match="empty"):
            session.bank.pair_errors()
        session.ask(NamedMarginals((("a", "b"), ("c", "d"), ("e",))), 1.0)
        pairs = session.bank.pair_errors()
    assert list(zip(pairs["first"], pairs["second"], strict=True)) == list(
        combinations("abcde", 2)
    )
    assert (pairs.cells == 4).all()
    bars = session.bank.recall(Marginals(2)).errors.reshape(-1, 4)
    assert np.sqrt((bars**2).mean(axis=1)) == pytest.approx(pairs.error.to_numpy())
    bought = pairs.bought.to_numpy()
    assert bought.sum() == 2 and bought[0]
    assert pairs.error[bought].max() < pairs.error[~bought].min()


def test_questions_beyond_the_domain_are_refused_before_anything_is_spent(tmp_path):
    other = Products.of(Domain(("z",), (3,)), [{"z": (0, 1)}])
    with Session.open(tmp_path / "s", people(), DP(9.0), total=3000.0) as session:
        session.ask(Marginals(1), 1.0)
        for call in (session.bank.recall, lambda q: session.plan(q, 1.0)):
            with pytest.raises(ValueError, match="z"):
                call(other)
        with pytest.raises(ValueError, match="z"):
            session.ask(other, 1.0, strategy="optimised")
        assert session.budget.remaining == 8.0


@pytest.mark.parametrize("asked", [False, True], ids=["empty bank", "bank"])
def test_a_choice_expects_nothing_of_the_number_of_people_unless_it_is_declared(
    tmp_path, monkeypatch, asked
):
    """What the scores are compared with is the same for tables of other totals."""
    expected = []

    def kept(table, sets, counts, drowned):
        expected.append(([x.tolist() for x in counts], list(drowned)))
        return scores_of(table, sets, counts, drowned)

    monkeypatch.setattr(choosing, "scores_of", kept)
    domain = Domain(("a", "b"), (2, 2))
    for n in (40, 40, 3000):
        table = SparseTable.from_keys(domain, [0, 1], [n, n], Bound())
        with Session.open(tmp_path / "s", table, DP(2.0)) as session:
            if asked and not expected:
                session.ask(Marginals(1), 1.0)
            session.plan(Marginals(1), 0.2, by="data", epsilon=0.1, rounds=1)
    assert expected[0] == expected[1] == expected[2]
    assert asked or not np.any(expected[0][0])
