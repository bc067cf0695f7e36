"""Values that nobody has listed: numbers of the sources, enumeration, laws, replay, and refusals."""

import json
from fractions import Fraction
from itertools import product
from math import exp, isqrt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tests.agreement import seeded
from tests.cli.commands import run_command
from tests.reference import partition_selection as literal
from workbench import DP, ZCDP, Bound, Domain
from workbench.data import UnlistedValues
from workbench.estimates.release import Release
from workbench.mechanisms import GeometricSelection, WeightedSelection, laws
from workbench.mechanisms.laws import Subject, differences_in_replay
from workbench.noise import selection
from workbench.spaces import Unlisted

BOTH = pytest.mark.parametrize("cls", [GeometricSelection, WeightedSelection])


def chance_of(epsilon, delta, per_unit=1):
    return selection.optimal_chance(
        Fraction(epsilon) / per_unit, Fraction(delta) / Fraction(per_unit)
    )


def rows(values_of_users, bound):
    """Users with so many values each."""
    users = [u for u, own in enumerate(values_of_users) for _ in own]
    return UnlistedValues.from_values(
        "word", [x for own in values_of_users for x in own], bound, users=users
    )


# Numbers of the sources


def test_chances_are_those_of_the_source():
    """Desfontaines et al., 2020: the same numbers by the recurrence, by its closed form, and by ours."""
    for epsilon, delta, last, certain, printed in (
        (1.0, 1e-5, 11, 23, {2: 3.71828183e-5, 12: 0.7603109970}),
        (0.5, 1e-6, 25, 51, {12: 6.20341604e-4}),
    ):
        assert chance_of(epsilon, delta).last == literal.last_rising(epsilon, delta, 1) == last
        found = literal.optimal_probabilities(epsilon, delta, 1, 500)
        assert found.index(1.0) == certain
        for n, x in printed.items():
            assert found[n] == pytest.approx(x, rel=2e-9)
        closed = [literal.closed_probability(epsilon, delta, 1, n) for n in range(501)]
        assert max(abs(a - b) for a, b in zip(found, closed, strict=True)) < 6e-15


@pytest.mark.parametrize("per_unit", [1, 3, 20])
@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-5), (0.1, 0.01), (5.0, 1e-9), (0.7, 0.6)])
def test_chances_follow_the_recurrence_exactly(epsilon, delta, per_unit):
    chance = chance_of(epsilon, delta, per_unit)
    found = literal.optimal_probabilities(epsilon, delta, per_unit, 400)
    counts = np.arange(1, 401)
    assert np.allclose(chance.floats(counts), found[1:], rtol=1e-10, atol=0)
    for n in (1, chance.last, chance.last + 1, 2 * chance.last + 1, 10**15):
        x = chance(n, 500)
        assert 0 < x.lo <= x.hi and x.hi - x.lo <= 4 or x.lo == x.hi == 1 << 500


def test_extreme_budgets_have_chances():
    for epsilon, delta in ((800.0, 1e-9), (1e-7, 0.3), (1.0, 1e-300), (30.0, 1e-12)):
        chance = chance_of(epsilon, delta)
        assert (
            float(chance(1, 2000)) == pytest.approx(delta) and chance(10**12, 64).hi == 1 << 64
        )


def test_thresholds_are_those_of_the_source_rounded_up():
    """Gopi et al., 2020: sigma and T of the authors, and ours, at most two steps of 1/1024 above."""
    shift = literal.largest_shift(1.0, 5e-6)
    assert literal.largest_shift(1.0, 1e-5) == pytest.approx(0.26805112, abs=1e-8)
    assert 1 / shift == pytest.approx(3.8841408, abs=1e-7)
    for values, printed in ((1, 18.156923), (10, 19.316039), (100, 20.789744)):
        assert literal.weighted_threshold(1 / shift, 5e-6, values) == pytest.approx(
            printed, abs=1e-6
        )
        threshold, spent = selection.weight_threshold(values, shift**2 / 2, 5e-6)
        assert 0 < threshold - 1024 * printed <= 2 and 0.99 * 5e-6 < spent <= 5e-6
    wider = (2 * ZCDP.within(DP(1.0, 5e-6)).rho) ** -0.5
    assert wider * shift == pytest.approx(1.08, abs=0.005)


@pytest.mark.parametrize(
    "rho, delta, most", [(0.05, 1e-5, 5), (50.0, 1e-3, 30), (4000.0, 0.2, 3)]
)
def test_a_threshold_holds_for_the_exact_tails(rho, delta, most):
    """Summed term by term, for each number of new values of one user."""
    threshold, _ = selection.weight_threshold(most, rho, delta)
    law = selection.weight_law(rho)
    rate = float(law.rate)
    reach = int(40 * law.variance**0.5) + 40
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-rate * x.astype(float) ** 2)
    mass /= mass.sum()

    def failure(threshold):
        tails = [
            mass[x >= threshold - selection.weight_of(t)].sum() for t in range(1, most + 1)
        ]
        return max(1 - (1 - tail) ** t for t, tail in enumerate(tails, 1))

    assert failure(threshold) <= delta < failure(threshold - 3)


def test_a_user_moves_weights_by_one_at_most():
    for t in (*range(1, 3000), 10**5, 2**20):
        weight = selection.weight_of(t)
        assert weight >= 1 and t * weight**2 <= 1024**2 < t * (weight + 1) ** 2
    assert selection.weight_of(2) == isqrt(2**19)
    users = [["a", "b"], ["a"], ["a", "c", "d"]]
    data = rows(users, Bound(3))
    weights = np.bincount(data.values, [selection.weight_of(t) for t in data.values_of_owner])
    expected = literal.weights(users)
    assert np.allclose(weights / 1024, [expected[x] for x in data.labels], atol=3 / 1024)
    assert dict(zip(data.labels, data.counts, strict=True)) == literal.counts(users)


# Enumeration


def sets_of(chances):
    """The probability of each set of released labels, from that of each label."""
    found = {}
    for kept in product((False, True), repeat=len(chances)):
        p = 1.0
        for is_kept, x in zip(kept, chances.values(), strict=True):
            p *= x if is_kept else 1 - x
        found[frozenset(np.array([*chances])[list(kept)].tolist())] = p
    return found


def beyond(one, other, epsilon):
    """The smallest delta at epsilon, both ways."""
    outcomes = {*one, *other}
    ways = ((one, other), (other, one))
    return max(
        sum(max(0, a.get(s, 0) - exp(epsilon) * b.get(s, 0)) for s in outcomes) for a, b in ways
    )


def chances_of_geometric(counts, epsilon, delta, per_unit):
    chance = chance_of(epsilon, delta, per_unit)
    return {x: float(chance(n, 200)) if n else 0.0 for x, n in counts.items()}


def chances_of_weighted(weights, epsilon, delta, per_unit):
    """By sums of the discrete Gaussian, which is as `sampler` draws it."""
    rho = ZCDP.within(DP(epsilon, delta / 2)).rho
    threshold, _ = selection.weight_threshold(per_unit, rho, delta / 2)
    law = selection.weight_law(rho)
    x = np.arange(-60_000, 60_001)
    mass = np.exp(-float(law.rate) * x.astype(float) ** 2)
    above = np.cumsum((mass / mass.sum())[::-1])[::-1]
    return {
        label: above[np.searchsorted(x, threshold - w)] if w else 0.0
        for label, w in weights.items()
    }


@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-3), (0.3, 0.05), (2.0, 1e-6)])
@pytest.mark.parametrize("new", [("a",), ("a", "b")])
def test_all_tables_of_two_values_keep_the_promise(epsilon, delta, new):
    """Every pair of counts up to 12, and one user more who has one value, or both."""
    per_unit = len(new)
    attained = 0.0
    for a, b in product(range(13), repeat=2):
        counts = {"a": a, "b": b}
        more = {x: n + (x in new) for x, n in counts.items()}
        laws_of = [
            sets_of(chances_of_geometric(x, epsilon, delta, per_unit)) for x in (counts, more)
        ]
        attained = max(attained, beyond(*laws_of, epsilon))
    assert attained <= delta * (1 + 1e-9) and (per_unit > 1 or attained >= delta * (1 - 1e-9))


@pytest.mark.parametrize("new", [("a",), ("a", "b")])
def test_all_weights_of_two_values_keep_the_promise(new):
    epsilon, delta = 1.0, 1e-3
    added = selection.weight_of(len(new))
    for a, b in product(range(0, 24, 3), repeat=2):
        weights = {"a": 1024 * a, "b": 724 * b}
        more = {x: w + added * (x in new) for x, w in weights.items()}
        laws_of = [sets_of(chances_of_weighted(x, epsilon, delta, 2)) for x in (weights, more)]
        assert beyond(*laws_of, epsilon) <= delta


@pytest.mark.parametrize("n", [1, 2, 6, 7, 9, 30])
def test_coins_have_the_chance_of_their_count(n):
    """Evenly spaced words: as many heads as the chance says, up to one."""
    chance, many = chance_of(1.0, 0.01), 20_000
    grid = ((np.arange(many) + 0.5) / many * 2.0**64).astype(np.uint64)
    words = lambda k: grid if k == many else np.zeros(k, np.uint64)  # noqa: E731
    kept = selection._tossed(np.arange(many), np.full(many, n), chance, words)
    assert abs(len(kept) - many * float(chance(n, 200))) <= 1


MANY = 40_000


@pytest.mark.parametrize("per_unit", [1, 5])
@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_values_are_released_as_often_as_a_user_of_several_allows(n, per_unit):
    """Seeded; sees a probability that is off by 0.02."""
    labels = np.arange(MANY).astype(str)
    kept, receipt = selection.select_values(
        labels, np.full(MANY, n), per_unit=per_unit, epsilon=2.0, delta=0.2, rng=seeded(n)
    )
    expected = literal.closed_probability(2.0, 0.2, per_unit, n)
    assert len(kept) / MANY == pytest.approx(expected, abs=0.02)
    assert receipt.cost == DP(2.0, 0.2)


@pytest.mark.parametrize("values", [1, 4])
def test_values_of_one_user_are_heavy_as_seldom_as_half_of_delta(values):
    """Seeded; sees a probability that is off by a tenth: all new values of one user together."""
    delta, users = 0.4, MANY // values
    labels = np.arange(users * values).astype(str)
    weights = np.full(len(labels), selection.weight_of(values))
    kept, receipt = selection.heavy_values(
        labels, weights, per_unit=values, epsilon=1.0, delta=delta, rng=seeded(values)
    )
    shown = np.unique(kept.astype(int) // values)
    assert 0.9 * delta / 2 < len(shown) / users < 1.1 * delta / 2
    assert (receipt.cost.epsilon, receipt.cost.delta) == (1.0, delta)


# Laws


class OfValues(Subject):
    """The laws' tables as values, one of each for every unit that is counted."""

    def given(self, table):
        words = [f"w{key:02}" for key in np.repeat(table.keys, table.counts)]
        return UnlistedValues.from_values("word", words, Bound())


SUBJECTS = [
    OfValues(GeometricSelection),
    OfValues(WeightedSelection),
    OfValues(WeightedSelection, True),
]
each = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: f"{s.cls.__name__} {s.zcdp}")


@each
def test_values_obey_the_laws_of_mechanisms(subject):
    for law in (
        laws.frozen_value,
        laws.refuses_budgets,
        laws.refuses_numbers,
        laws.states_promises,
        laws.receipts_are_kept,
    ):
        law(subject)
    release = subject.release(subject.table([90, 1, 400]), seeded())
    assert subject.budget().covers(release.privacy) and release.simulated
    assert [*release.estimate.labels] == ["w00", "w10"] == [*release.to_frame()["word"]]
    assert release.answer({"word": "w10"})[0] == pytest.approx(400, abs=150)
    again = subject.release(subject.table([90, 1, 400]), seeded())
    assert again.to_frame().equals(release.to_frame())


@each
@pytest.mark.parametrize("counts", [0.5, 0.0])
def test_neighbours_get_the_same_from_the_same_draws(subject, counts):
    """Record and replay at some thousand users, with one user more who has as many values as may be."""
    rng = seeded(3)
    users = [{f"w{x}" for x in rng.zipf(1.2, 4) % 300} for _ in range(3000)]
    most = sorted(literal.counts(users).items(), key=lambda item: -item[1])
    for new in (most[:4], most[40:44], [("never before", 0), ("nor this", 0)]):
        data = [rows([*users, *more], Bound(4)) for more in ([], [[x for x, _ in new]])]
        mechanism = subject.rebuilt(counts=counts)
        assert differences_in_replay(mechanism, *data) == []
        assert differences_in_replay(mechanism, *data[::-1]) == []
    narrow = [rows([*users, *more], Bound(4)) for more in ([], [["w1", "w2"]])]
    for table in narrow:
        object.__setattr__(table, "bound", Bound(1))  # a bound that the user is beyond
    assert differences_in_replay(mechanism, *narrow) or subject.cls is WeightedSelection


@each
def test_what_is_saved_is_what_is_loaded(subject, tmp_path):
    for counts, table in product((0.5, 0.0), ([9, 1, 400, 70], [1], [])):
        release = subject.rebuilt(counts=counts)(subject.given(subject.table(table)))
        for name in ("x.parquet", "x.csv"):
            path = release.save(tmp_path / name, force=True)
            back = Release.load(path)
            assert back.to_frame().equals(release.to_frame()) and back.ledger == release.ledger
            assert back.estimate.labels == release.estimate.labels
        assert release.describe() and release._repr_html_()
        if not counts:
            assert "noisy" not in release.estimate.to_frame()
            with pytest.raises(ValueError, match="has no counts"):
                release.answer({})


# Values


def test_texts_are_compared_as_declared_labels():
    """Of all spellings, text, numbers, truth and floats become what `Labels` takes for one label."""
    for values in (
        pl.Series(["3.00", "3", "-0", "1.5e+1", "e\u0301", "\u00e9", "007", " x", ""]),
        pl.Series([3.0, 1e10, -0.0, 0.1]),
        pl.Series([3, 2**60]),
        pl.Series([True, False]),
        pl.Series(["a", "b"], dtype=pl.Categorical),
    ):
        texts = Unlisted().texts(values)
        different = texts.unique().sort().to_list()
        codes = Domain(("x",), (len(different),), (tuple(different),)).rules["x"].codes(values)
        assert [different[code] for code in codes] == texts.to_list()
    rule = Unlisted(missing="label", missing_values=("NA",))
    assert rule.texts(pl.Series(["NA", None, "b"])).to_list() == ["missing", "missing", "b"]


def test_what_is_kept_of_a_user_depends_on_nobody_else():
    frame = pd.DataFrame(
        {"w": [f"v{i % 17}" for i in range(300)], "u": [i % 23 for i in range(300)]}
    )
    key = b"k" * 32

    def counts(frame):
        stated = {"word": {"labels": "unlisted", "column": "w"}}
        data = UnlistedValues.read(frame, stated, Bound(3), user="u", key=key)
        return dict(zip(data.labels, data.counts.tolist(), strict=True))

    every = counts(frame)
    assert counts(frame.sample(frac=1, random_state=1)) == every
    without = counts(frame[frame.u != 3])
    assert sum(every[x] - without.get(x, 0) for x in every) == 3
    more = pd.concat([frame, pd.DataFrame({"w": ["aa", "v10x", "zz", "zz"], "u": 99})])
    assert counts(more) == every | {"aa": 1, "v10x": 1, "zz": 1}


def test_released_values_are_sorted_whatever_the_rows_order():
    words = ["zeta", "Ähre", "alpha", 'a,b\n"', "\U0001f600"] * 300
    for order in (words, words[::-1]):
        data = UnlistedValues.from_values("word", order, Bound())
        release = GeometricSelection(DP(5.0, 1e-3))(data)
        assert [*release.estimate.labels] == sorted({*words})


def test_what_is_not_allowed_is_refused_with_its_reason(tmp_path):
    stated = {"word": {"labels": "unlisted"}}
    frame = pd.DataFrame({"word": ["a", None], "u": [1, 2]})
    for call, says in (
        (lambda: Domain.from_dict(stated), "nobody has listed these values"),
        (lambda: UnlistedValues.from_values("w", ["a"], Bound(2)), r"need Bound\(1, 1\)"),
        (lambda: UnlistedValues.from_values("w", ["a"], Bound(1, 2), users=[1]), "linf is 1"),
        (lambda: UnlistedValues.read(frame, stated, Bound()), "row 1, column 'word': found nothing"),
        (lambda: UnlistedValues.read(frame, {"word": 3}, Bound()), "labels are \"unlisted\""),
        (lambda: GeometricSelection(DP(1.0)), "need 0 < delta < 1"),
        (lambda: WeightedSelection(ZCDP(1.0)), "need 0 < delta < 1"),
        (lambda: GeometricSelection(ZCDP(1.0, 1e-6)), "takes no ZCDP"),
        (lambda: GeometricSelection(DP(1.0, 1e-6), counts=1.0), "counts = 1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=says):
            call()
    data = rows([["a", "b"], ["a"]], Bound(2))
    with pytest.raises(ValueError, match="use from_values"):
        UnlistedValues("word", data.labels, data.users, data.values, Bound(1))


@pytest.mark.parametrize("counts", [0.5, 0.0])
def test_a_publication_says_what_its_rows_are(counts, tmp_path):
    words = ["*", "hut", "a|b", "<b>"] * 300
    data = UnlistedValues.from_values("word", words, Bound(), users=range(1200))
    about = {"title": "Words", "publisher": "P", "contact": "c@x.org", "licence": "CC0"}
    release = GeometricSelection(DP(2.0, 1e-3), counts)(data)
    folder = release.publish(tmp_path / "out", about)
    assert pd.read_csv(folder / "table.csv")["word"].tolist() == sorted({*words})
    text = (folder / "README.md").read_text()
    assert "lists values that enough persons have, chosen with random noise" in text
    assert ("A value without a row was not chosen" in text) == (counts > 0)
    assert ("They are values. No row is a count." in text) == (counts == 0)
    assert "Every combination" not in text and "synthetic" not in text


@BOTH
def test_the_command_line_releases_and_answers(cls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"u{i % 600},w{min(i % 50, i % 7)}" for i in range(3000)]
    (tmp_path / "t.csv").write_text("\n".join(["user,word", *lines]))
    (tmp_path / "d.json").write_text(json.dumps({"word": {"labels": "unlisted"}}))
    asked = f"release {cls.__name__} t.csv --domain d.json --user user --bound 5,1 --epsilon 1"
    printed = run_command(f"{asked} --delta 1e-6 --out o.parquet").output
    assert "values of word" in printed and "An empty table would release no values" in printed
    assert Release.load("o.parquet").privacy == DP(1.0, 1e-6)
    assert "w1" in run_command("answer o.parquet word=w1 --error").output
    assert "need 0 < delta < 1" in run_command(f"{asked} --out p.parquet", 2).output
    assert "--count" in run_command(f"{asked} --delta 1e-6 --count n --out p.parquet", 2).output
    (tmp_path / "d.json").write_text(json.dumps({"word": 3}))
    assert "unlisted" in run_command(f"{asked} --delta 1e-6 --out p.parquet", 2).output
    assert not (tmp_path / "p.parquet").exists()
