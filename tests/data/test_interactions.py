"""Interactions: what is read, counted and sampled, against a few slow literal lines."""

import pickle
from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tests.agreement import fits_chances, seeded
from workbench import PUBLIC, UNBOUNDED, Attributes, Bound, Boxes, Domain, Interactions, Ranges
from workbench.data import SparseTable, sources

FILMS = Domain(("film", "day"), (6, 7), (tuple("abcdef"), None))
FRAME = pd.DataFrame(
    {
        "who": ["ann", "bob", "ann", "cid", "ann", "bob"],
        "film": ["a", "f", "a", "c", "b", "f"],
        "rating": [1, 2, 3, 4, 5, 6],
        "day": [0, 6, 1, 3, 0, 6],
    }
)
NAMED = dict(user="who", item="film", context="day", domain=FILMS, bound=UNBOUNDED)


def made(users=40, records=900, items=6, seed=1, bound=UNBOUNDED):
    """Records of users of very different sizes, in no order."""
    rng = seeded(seed)
    who = rng.integers(0, users, records) * rng.integers(0, 2, records) * 3
    return Interactions.from_codes(
        Domain(("film", "day"), (items, 7)),
        who,
        rng.integers(0, items, records),
        rng.integers(0, 7, records),
        bound,
        truth_public=True,
    )


def rows(data):
    """The records of each user, in order."""
    rows_by_user = {}
    for u, i, c in zip(
        *map(np.ndarray.tolist, (data.users, data.items, data.contexts)), strict=True
    ):
        rows_by_user.setdefault(u, []).append((i, c))
    return rows_by_user


# What is read


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_a_frame_is_read_by_naming_three_columns(kind):
    data = Interactions.from_frame(kind(FRAME.to_dict("list")), **NAMED)
    assert rows(data) == {0: [(0, 0), (0, 1), (1, 0)], 1: [(5, 6), (5, 6)], 2: [(2, 3)]}
    assert [c.dtype for c in (data.users, data.items, data.contexts)] == ["i4", "u1", "u1"]
    assert data.records_per_user().tolist() == [3, 2, 1] and len(data) == 6


@pytest.mark.parametrize(
    "users",
    [
        [0, -(2**63)],
        [0, -(2**31) - 1],
        [0, 2**31],
        np.array([0, 2**63], np.uint64),
        np.array([2**31 - 1, 2**32 - 1], np.uint64),
    ],
    ids=str,
)
def test_users_with_extreme_numbers_stay_different(users):
    frame = pd.DataFrame({"who": users, "film": ["a", "b"], "day": 0})
    data = Interactions.from_frame(frame, **NAMED)
    assert data.records_per_user().tolist() == [1, 1]


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_parquet_is_read_as_the_frame_is(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(sources, "BATCH", batch)
    path = tmp_path / "ratings.parquet"
    for frame in (FRAME, FRAME.assign(who=[4, 1, 4, 2**35, 4, 1]), FRAME.sort_values("who")):
        frame.to_parquet(path, row_group_size=4)
        one = Interactions.read(path, **NAMED)
        same = Interactions.from_frame(frame, **NAMED)
        assert rows(one) == rows(same) and one.users.dtype == np.int32


def test_many_rows_in_any_order_keep_each_users_order():
    for spread in (1, 10**12):  # dense codes, and codes that must be numbered first
        rng = seeded(3)
        who = rng.integers(0, 50, 5000) * spread
        what = rng.integers(0, 1000, 5000)
        data = Interactions.from_codes(
            Domain(("a", "b"), (1000, 1)), who, what, what * 0, UNBOUNDED
        )
        rows_by_user = {u: [] for u in who.tolist()}
        for u, i in zip(who.tolist(), what.tolist(), strict=True):
            rows_by_user[u].append((i, 0))
        assert sorted(rows(data).values()) == sorted(rows_by_user.values())
        assert data.users[-1] == len(rows_by_user) - 1 and data.items.dtype == np.uint16


def test_bad_input_is_one_error():
    for columns, said in (
        (([0], [6], [0]), "'film', row 0: 6 is outside"),
        (([0], [0], [-1]), "'day', row 0: -1 is outside"),
        (([0, 1], [0], [0]), "items .* need integers, 2 of them"),
        (([0.5], [0], [0]), "users of float64"),
        (([0], ["a"], [0]), "items of <U1"),
    ):
        with pytest.raises(ValueError, match=said):
            Interactions.from_codes(FILMS, *columns, UNBOUNDED)
    one = np.zeros(1, np.uint8)
    for bound in (None, 5):
        with pytest.raises(ValueError, match="Interactions.bound"):
            Interactions(FILMS, one, one, one, bound)
    with pytest.raises(ValueError, match="need two, item and context"):
        Interactions(Domain(("x",), (4,)), one, one, one, UNBOUNDED)
    with pytest.raises(ValueError, match="items, row 0: 9 is outside"):
        Interactions(FILMS, one, one + 9, one, UNBOUNDED)
    two = np.array([1, 0], np.int32)
    with pytest.raises(ValueError, match="sorted. Use from_codes"):
        Interactions(FILMS, two, two, two, UNBOUNDED)


def test_no_users_at_all_are_interactions(tmp_path):
    FRAME[:0].to_parquet(tmp_path / "x.parquet")
    for data in (
        Interactions.from_frame(FRAME[:0], **NAMED),
        Interactions.read(tmp_path / "x.parquet", **NAMED),
        Interactions.from_codes(FILMS, [], [], [], UNBOUNDED),
    ):
        assert (
            len(data) == 0
            and data.records_per_user().size == 0
            and not data.edge_counts().any()
        )
        for sample in (data.bounded(3), data.one_per_item(), data.top_scored(2, np.zeros(6))):
            assert len(sample) == 0


# What is rows_by_user


def test_nothing_private_is_shown():
    data = Interactions.from_frame(FRAME, **NAMED)
    assert repr(data) == "<Interactions film × day (6 × 7), UNBOUNDED>"
    shown = Interactions.from_frame(FRAME, **NAMED, truth_public=True)
    assert "6 records of 3 users" in repr(shown)
    assert "6 records" in repr(Interactions.from_frame(FRAME, **NAMED | {"bound": PUBLIC}))
    assert pickle.loads(pickle.dumps(UNBOUNDED)) is UNBOUNDED
    with pytest.raises(ValueError, match="read-only"):
        data.items[0] = 1
    with pytest.raises(ValueError, match="SparseTable.bound"):  # has no meaning there
        SparseTable.from_keys(FILMS, [0], [1], UNBOUNDED)


def test_counts_and_answers_are_literal():
    data = made()
    items = np.zeros(6)
    edges = np.zeros((6, 7))
    for user_rows in rows(data).values():
        for i, c in user_rows:
            items[i] += 1
            edges[i, c] += 1
    assert (data.item_counts() == items).all() and (data.edge_counts() == edges).all()
    cells = Ranges(np.arange(42), np.arange(1, 43))
    assert (data.answer(cells) == edges.ravel()).all()
    assert (data.answer(Boxes([[1, 2]], [[3, 5]])) == edges[1:3, 2:5].sum()).all()
    assert (data.answer(Ranges([1], [4]), of="items") == items[1:4].sum()).all()
    with pytest.raises(ValueError, match="of = 'films'"):
        data.answer(cells, of="films")


# What is sampled


@pytest.mark.slow
@pytest.mark.parametrize("bound", [UNBOUNDED, Bound(500, 500, 500), Bound(4, 4, 4), PUBLIC])
def test_what_is_kept_says_its_bound(bound):
    data = made(bound=bound)
    for sample in (
        data.bounded(7, seeded()),
        data.top_scored(7, np.arange(6), seeded(), random=3),
    ):
        most = 4 if bound == Bound(4, 4, 4) else 7
        assert sample.bound == (PUBLIC if bound is PUBLIC else Bound(most, most, most))
        assert sample.truth_public
        assert (
            sample.records_per_user()
            == np.minimum(data.records_per_user(), most if bound != PUBLIC else 7)
        ).all()
        for user, user_rows in rows(sample).items():
            assert not Counter(user_rows) - Counter(rows(data)[user])
    once = data.one_per_item(seeded())
    if bound is not PUBLIC:
        assert once.bound == Bound(min(getattr(bound, "l1", 6), 6), 1)
        assert once.bounded(2).bound == Bound(2, 1)
    if bound == Bound(4, 4, 4):  # which is not true of these: they are cut
        assert once.records_per_user().max() == 4 == data.one_per_item(seeded()).bound.l1
        return
    for user, user_rows in rows(data).items():
        sample = rows(once)[user]
        assert [i for i, _ in sample] == list(dict.fromkeys(i for i, _ in user_rows))
        assert set(sample) <= set(user_rows)


def test_bad_limits_are_refused():
    data = made()
    for bad in (0, -1, 2.5, True, "3", None):
        with pytest.raises(ValueError, match=r"l = .* an integer >= 1"):
            data.bounded(bad)
        with pytest.raises(ValueError, match=r"l = .* an integer >= 1"):
            data.top_scored(bad, np.zeros(6))
    with pytest.raises(ValueError, match="random = 4 is not allowed.*<= 3"):
        data.top_scored(3, np.zeros(6), random=4)
    with pytest.raises(ValueError, match="scores .*need 6 numbers"):
        data.top_scored(3, np.zeros(5))
    with pytest.raises(ValueError, match="item 2 is NaN"):
        data.top_scored(3, [0, 1, np.nan, 2, 3, 4])
    with pytest.raises(ValueError, match="rng = 5"):
        data.bounded(3, 5)
    assert len(data.bounded(10**30)) == len(data) == len(data.top_scored(2**70, np.zeros(6)))


def kept_places(n, way, draws=6000):
    """How often each set of places of one user's n records is drawn: chi-square needs them by name."""
    domain = Domain(("item", "place"), (3, n))
    items = np.array([0, 0, 1, 1, 1, 2, 0, 2])[:n]
    users = np.repeat([0, 1, 2], [2, n, 3])  # others stand before and after
    data = Interactions.from_codes(
        domain, users, np.concatenate([[0, 1], items, [2, 0, 1]]),
        np.concatenate([[0, 0], np.arange(n), [0, 0, 0]]), UNBOUNDED,
    )  # fmt: skip
    rng = seeded(8)
    seen = Counter()
    for _ in range(draws):
        sample = way(data, rng)
        seen[tuple(sample.contexts[sample.users == 1].tolist())] += 1
    return items, seen


def fits(seen, chances):
    """Whether the frequencies have these chances, and nothing else was drawn."""
    assert set(seen) <= set(chances), set(seen) - set(chances)
    assert fits_chances([seen[key] for key in chances], list(chances.values())) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("n", "l"), [(5, 1), (5, 2), (6, 3), (6, 5), (5, 5), (4, 9)])
def test_every_set_of_l_records_is_equally_likely(n, l):  # noqa: E741
    _, seen = kept_places(n, lambda data, rng: data.bounded(l, rng))
    sets = list(combinations(range(n), min(l, n)))
    fits(seen, dict.fromkeys(sets, 1 / len(sets)))


def literal_pick(items, l, scores, random):  # noqa: E741
    """The chances of all sets: the first at random, then the highest of what is left, ties alike."""
    n = len(items)
    chances = Counter()
    firsts = list(combinations(range(n), random))
    for first in firsts:
        left = [i for i in range(n) if i not in first]
        by_score = sorted((scores[items[i]] for i in left), reverse=True)[: l - random]
        best = [
            rest
            for rest in combinations(left, l - random)
            if sorted((scores[items[i]] for i in rest), reverse=True) == by_score
        ]
        for rest in best:
            chances[tuple(sorted(first + rest))] += 1 / len(firsts) / len(best)
    return chances


@pytest.mark.slow
@pytest.mark.parametrize("scores", [(1, 2, 3), (5, 5, 1), (0, 0, 0), (-1.5, 3.5, -np.inf)])
@pytest.mark.parametrize(
    ("l", "random"), [(1, 0), (3, 0), (5, 0), (4, 2), (3, 3), (7, 1), (2, 1)]
)
def test_the_highest_are_picked_and_ties_are_broken_evenly(scores, l, random):  # noqa: E741
    items, seen = kept_places(
        8, lambda data, rng: data.top_scored(l, scores, rng, random=random), draws=3000
    )
    fits(seen, literal_pick(items, l, scores, random))


def test_one_record_of_an_item_is_any_of_them():
    items, seen = kept_places(8, lambda data, rng: data.one_per_item(rng))
    places = [np.flatnonzero(items == i) for i in range(3)]
    chances = {(a, b, c): 1 / 18 for a in places[0] for b in places[1] for c in places[2]}
    fits(seen, {k: v for k, v in chances.items()})


@pytest.mark.slow
def test_the_picks_of_many_users_are_literal():
    rng = seeded(4)
    scores = rng.permutation(200)  # no ties
    data = made(users=300, records=20_000, items=200, bound=UNBOUNDED)
    for l in (1, 7, 30, 1000):  # noqa: E741
        for user, user_rows in rows(data.top_scored(l, scores)).items():
            had = sorted((scores[i] for i, _ in rows(data)[user]), reverse=True)[:l]
            assert sorted((scores[i] for i, _ in user_rows), reverse=True) == had


@pytest.mark.slow
def test_users_are_sampled_independently():
    """Of pairs of users, all combinations of what each keeps are equally likely."""
    domain = Domain(("item", "place"), (1, 3))
    users = np.repeat([0, 1], 3)
    places = np.tile([0, 1, 2], 2)
    data = Interactions.from_codes(domain, users, places * 0, places, UNBOUNDED)
    rng = seeded(5)
    seen = Counter(tuple(data.bounded(1, rng).contexts.tolist()) for _ in range(9000))
    fits(seen, {(a, b): 1 / 9 for a in range(3) for b in range(3)})


def test_draws_come_from_the_system_or_from_rng(monkeypatch):
    """By chance at most once in 10⁹ runs; sees a sample that repeats for every user."""
    data = made()
    same = [rows(data.bounded(3, seeded(1))) for _ in range(2)]
    assert same[0] == same[1] != rows(data.bounded(3, seeded(2)))
    assert rows(data.bounded(3)) != rows(data.bounded(3))
    monkeypatch.setattr("os.urandom", bytes)
    assert rows(data.bounded(3)) == rows(data.bounded(3))
    assert rows(data.one_per_item()) == rows(data.one_per_item())
    assert rows(data.top_scored(3, np.zeros(6))) == rows(data.top_scored(3, np.zeros(6)))


@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize(
    "sample",
    [
        lambda data: data.bounded(3),
        lambda data: data.one_per_item(),
        lambda data: data.top_scored(3, [1, 2, 2, 2, 1, 0], random=1),
    ],
    ids=["bounded", "one per item", "top scored"],
)
def test_what_the_system_samples_of_a_user_depends_on_nobody_else(monkeypatch, kind, sample):
    """With one key: others left out, or all in another order; ids are numbers or text."""
    monkeypatch.setattr("os.urandom", bytes)
    rng = seeded(4)
    frame = pd.DataFrame(
        {"who": rng.integers(0, 9, 300).astype(kind), "film": rng.choice(list("abcdef"), 300)}
    )
    frame["day"] = rng.integers(0, 7, 300)

    def of_each(frame):
        data = Interactions.from_frame(frame, **NAMED)
        names = dict(enumerate(frame.who.unique() if kind is str else np.unique(frame.who)))
        return {names[u]: kept for u, kept in rows(sample(data)).items()}

    whole = of_each(frame)
    for user in frame.who.unique():
        others = of_each(frame[frame.who != user])
        assert others == {who: kept for who, kept in whole.items() if who != user}
    regrouped = frame.iloc[rng.permutation(300)].sort_values(
        "who", kind="stable", ascending=False
    )
    own_order = frame.loc[regrouped.sort_values("who", kind="stable").index]
    for user in frame.who.unique():  # a user's own records stay in their order
        own_order.loc[own_order.who == user] = frame[frame.who == user].to_numpy()
    assert of_each(own_order) == whole


def test_what_the_system_samples_is_uniform():
    """Sees a pair of records of chance 1/6 that has 0.167 ± 0.012 among 30,000 users."""
    users = np.repeat(np.arange(30_000), 4)
    data = Interactions.from_codes(
        FILMS, users, np.tile(range(4), 30_000), 0 * users, UNBOUNDED
    )
    pairs = Counter(map(tuple, data.bounded(2).items.reshape(-1, 2).tolist()))
    fits(pairs, dict.fromkeys(combinations(range(4), 2), 1 / 6))
    both = data.bounded(2).items.reshape(-1, 4).tolist()
    seen = Counter((tuple(four[:2]), tuple(four[2:])) for four in both)
    fits(
        seen,
        {(a, b): 1 / 36 for a in combinations(range(4), 2) for b in combinations(range(4), 2)},
    )


# Attributes that are crossed, and tables

TRIPS = Domain(
    ("from", "to", "day", "mode"),
    (3, 2, 7, 2),
    (("x", "y", "z"), range(10, 12), None, ("bus", "car")),
)


def trips(n=400):
    rng = seeded(6)
    return pd.DataFrame(
        {
            "who": rng.integers(0, 12, n),
            "from": rng.choice(list("xyz"), n),
            "to": rng.integers(10, 12, n),
            "day": rng.integers(0, 7, n),
            "mode": rng.choice(["bus", "car"], n),
        }
    )


def test_several_columns_are_crossed_to_items_and_contexts():
    frame = trips()
    data = Interactions.from_frame(
        frame,
        user="who",
        item=("from", "to"),
        context=("mode", "day"),
        domain=TRIPS,
        bound=UNBOUNDED,
    )
    assert data.domain.attributes == ("from × to", "mode × day") and data.domain.shape == (
        6,
        14,
    )
    assert data.domain.labels[0][:3] == ("x × 10", "x × 11", "y × 10")
    counts = data.edge_counts()
    for items, (start, end) in enumerate(zip("xxyyzz", [10, 11] * 3, strict=True)):
        own = frame[(frame["from"] == start) & (frame.to == end)]
        literal = Counter(zip(own["mode"] == "car", own.day, strict=True))
        assert all(counts[items, 7 * car + day] == n for (car, day), n in literal.items())
        assert counts[items].sum() == len(own)
    items = Interactions.from_frame(
        frame, user="who", item=("from",), context=(), domain=TRIPS, bound=UNBOUNDED
    )
    assert items.domain.shape == (3, 1) and items.edge_counts().sum() == 400


def test_interactions_become_a_table_of_users_that_are_cut():
    frame = trips()
    named = dict(user="who", item=("from", "to"), context="day", domain=TRIPS, bound=UNBOUNDED)
    data = Interactions.from_frame(frame, **named)
    table = data.table(Bound(3, 2, 4), key=bytes(32))
    assert table.domain == TRIPS.project(["from", "to", "day"])
    assert table.bound == Bound(3, 2, 4) and table.bound.status == "enforced"
    direct = SparseTable.from_frame(
        frame, table.domain, Bound(3, 2, 4), user="who", key=bytes(32)
    )
    np.testing.assert_array_equal(table.dense(), direct.dense())
    rest = Interactions.from_frame(frame[frame.who != 5], **named)
    moved = table.dense() - rest.table(Bound(3, 2, 4), key=bytes(32)).dense()
    assert moved.min() == 0 and np.count_nonzero(moved) <= 3 and moved.sum() <= 4
    sampled = data.bounded(2, seeded()).table(Bound(2, 2, 2), seeded())
    assert sampled.total == 2 * 12 and sampled.users_cut == 0
    with pytest.raises(ValueError, match="is not allowed: these interactions are"):
        data.table(PUBLIC)


@pytest.mark.parametrize(
    ("named", "says"),
    [
        (dict(item=("from", "from"), context="day"), "different attributes"),
        (dict(item=("from", "to"), context="to"), "different attributes"),
        (dict(item=(), context="to"), "at least one for items"),
        (dict(item=("from", "no"), context="to"), "'no' is not in"),
    ],
)
def test_attributes_that_cannot_be_crossed_are_refused(named, says):
    with pytest.raises(ValueError, match=says):
        Interactions.from_frame(trips(), user="who", domain=TRIPS, bound=UNBOUNDED, **named)


@pytest.mark.parametrize("items", [6, 10**9])
def test_distinct_items_are_checked_not_believed(items):
    domain = Domain(("film", "day"), (items, 7))
    columns = [
        np.array(column) for column in ([0, 0, 1, 1, 1], [3, 4, 3, 5, 3], [0, 0, 0, 0, 6])
    ]
    with pytest.raises(
        ValueError, match=r"distinct = True .* row 4 user 1 has item 3 a second"
    ):
        Interactions(domain, *columns, Bound(3, 1), distinct=True)
    assert not Interactions(domain, *columns, Bound(3, 3)).distinct
    before = [column[:4] for column in columns]
    assert Interactions(domain, *before, Bound(3, 1), distinct=True).distinct


def test_records_are_read_through_the_preparation_of_their_domain(tmp_path):
    (tmp_path / "plays.csv").write_text(
        "who,film,at\nu2,A,2025-03-01 07:30\nu1,C,2025-03-01 23:00\nu1,B,x\nu1,A,2025-03-02 07:00\n"
    )
    stated = {
        "genre": {"map": {"A": "drama", "B": "drama", "C": "news"}, "column": "film"},
        "hour": {"time": "hour", "column": "at", "format": "%Y-%m-%d %H:%M", "other": "drop"},
    }
    domain = Domain.from_dict(stated)
    data = Interactions.read(
        tmp_path / "plays.csv", user="who", domain=domain, bound=Bound(2, 1)
    )
    assert data.edge_counts()[0, 7] == 2 and data.edge_counts()[1, 23] == 1 and len(data) == 3
    assert sorted(data.records_per_user()) == [1, 2] and data.domain == domain
    frame = pd.read_csv(tmp_path / "plays.csv")
    named = {"user": "who", "item": "genre", "context": "hour"}
    again = Interactions.from_frame(frame, **named, domain=domain, bound=Bound(2, 1))
    assert (again.edge_counts() == data.edge_counts()).all() and again.domain == domain
    with pytest.raises(ValueError, match="attribute 'film' is not in"):
        named["item"] = "film"
        Interactions.from_frame(frame, **named, domain=domain, bound=Bound(2, 1))
    with pytest.raises(ValueError, match="use SparseTable.from_frame"):
        Attributes(domain).encode(frame)
