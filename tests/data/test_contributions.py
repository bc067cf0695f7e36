"""Each user is cut by a function of a key and of themselves alone, by the law that is stated."""

from collections import Counter
from datetime import date
from decimal import Decimal
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from tests.data import numbered
from workbench import Bound
from workbench.data import UserNumbers, Users, bounded_contributions, cut_key, seeds
from workbench.data.sources import series_of

KEY = bytes(range(32))
FALSE_ALARM = 1e-9
CELLS = 1000  # of a user; keys say whose they are, so that what stays can be told apart


def cut(rows, bound, key=KEY):
    """(user, cell, count) rows -> user -> {cell: count that stays}, and who lost anything."""
    users, cells, counts = np.array(rows, np.int64).reshape(-1, 3).T
    left = bounded_contributions(Users(users), (users + 9) * CELLS + cells, counts, bound, key)
    stays = {user: {} for user in sorted(set(users[counts > 0].tolist()))}
    for place, count in zip(left.keys.tolist(), left.counts.tolist(), strict=True):
        stays[place // CELLS - 9][place % CELLS] = count
    return stays, dict(zip(stays, left.lost.tolist(), strict=True))


def exact_law(counts, l0, linf, l1):
    """Pr[what stays of a user], by listing all sets of cells and all choices of counts."""
    law = Counter()
    sets = list(combinations(range(len(counts)), min(l0, len(counts))))
    for chosen in sets:
        units = [cell for cell in chosen for _ in range(min(counts[cell], linf))]
        choices = list(combinations(units, min(l1, len(units))))
        for choice in choices:
            outcome = tuple(choice.count(cell) for cell in range(len(counts)))
            law[outcome] += 1 / len(sets) / len(choices)
    return law


def chance(seen, law):
    """The chance of a statistic as large if `seen` were drawn by `law`; rare outcomes are pooled."""
    assert set(seen) <= set(law), "an outcome that is impossible"
    n = sum(seen.values())
    common = [x for x in law if law[x] * n >= 10]
    observed = np.array([*(seen[x] for x in common), n - sum(seen[x] for x in common)])
    shares = np.array([law[x] for x in common])
    expected = n * np.append(shares, 1 - shares.sum())
    possible = expected > 1e-6
    distance = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
    return chi2.sf(distance, possible.sum() - 1)


@pytest.mark.parametrize(
    ("counts", "l0", "linf", "l1"),
    [
        ((1, 1, 1, 1, 1), 2, 1, 2),  # which cells
        ((5, 2, 4), 3, 4, 5),  # which counts of all cells
        ((3, 1, 2, 4), 3, 3, 4),  # both
        ((9, 1), 2, 9, 9),  # all counts but one
        ((70, 3), 2, 70, 72),  # the same, with more coins than a word has
    ],
)
def test_what_stays_of_a_user_has_the_stated_law(counts, l0, linf, l1):
    """Sees an outcome of chance 1/10 that has 0.1 ± 0.015: 30,000 users with the same records."""
    users = range(30_000)
    rows = [(user, cell, count) for user in users for cell, count in enumerate(counts)]
    stays, lost = cut(rows, Bound(l0, linf, l1))
    drawn = [tuple(left.get(cell, 0) for cell in range(len(counts))) for left in stays.values()]
    assert all(lost.values())
    law = exact_law(counts, l0, linf, l1)
    assert chance(Counter(drawn), law) > FALSE_ALARM
    both = {(a, b): law[a] * law[b] for a in law for b in law}
    pairs = Counter(zip(drawn[::2], drawn[1::2], strict=True))
    assert chance(pairs, both) > FALSE_ALARM, "choices of two users depend on each other"


def test_another_key_is_another_choice():
    rows = [(7, cell, 1) for cell in range(4)]
    seen = Counter()
    rng = np.random.default_rng(0)
    for _ in range(2000):
        left, _ = cut(rows, Bound(2, 1), cut_key(rng))
        seen[tuple(left[7].get(cell, 0) for cell in range(4))] += 1
    assert chance(seen, exact_law((1, 1, 1, 1), 2, 1, 2)) > FALSE_ALARM


records = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(0, 9), st.integers(0, 6)), max_size=40
)
bounds = st.tuples(
    st.integers(1, 5), st.sampled_from([1, 1.5, 2, 3.9, 40]), st.floats(0, 1)
).map(lambda b: Bound(b[0], b[1], b[1] + b[2] * (b[0] - 1) * b[1]))


@settings(max_examples=200, deadline=None)
@given(records, bounds, st.randoms())
def test_a_user_is_cut_to_the_bound_and_nobody_else_matters(rows, bound, random):
    stays, lost = cut(rows, bound)
    for user, left in stays.items():
        own = Counter()
        for owner, cell, count in rows:
            own[cell] += count * (owner == user)
        had = {cell: count for cell, count in own.items() if count}
        assert len(left) <= bound.l0 and sum(left.values()) <= bound.l1
        assert all(0 < left[cell] <= min(had[cell], bound.linf) for cell in left)
        fits = len(had) <= bound.l0 and sum(had.values()) <= bound.l1
        fits = fits and max(had.values()) <= bound.linf
        assert lost[user] == (left != had) == (not fits)
    parts = [(user, cell, 1) for user, cell, count in rows for _ in range(count)]
    random.shuffle(parts)  # order of rows, and whether counts are summed already
    assert cut(parts, bound) == (stays, lost)
    for user in stays:
        others, _ = cut([row for row in rows if row[0] != user], bound)
        assert others == {u: left for u, left in stays.items() if u != user}


@pytest.mark.parametrize("spread", [1, 2**40, 2**61])
def test_numbers_that_do_not_fit_one_word_are_cut_alike(spread):
    """Users and keys are packed into one number where they fit."""
    rng = np.random.default_rng(1)
    users = rng.integers(0, 3, 600)
    keys = rng.integers(0, 3, 600)
    ids = np.zeros((3, 2), np.uint64)
    ids[:, 0] = users_ids = np.arange(3, dtype=np.uint64) * spread
    narrow = bounded_contributions(Users(users, ids), keys, None, Bound(2, 40, 50), KEY)
    wide = bounded_contributions(
        Users(users_ids.astype(np.int64)[users]), keys * spread, None, Bound(2, 40, 50), KEY
    )
    np.testing.assert_array_equal(narrow.keys * spread, wide.keys)
    np.testing.assert_array_equal(narrow.counts, wide.counts)


COLUMNS = {
    "integers": [7, -2, 2**62, 0],
    "large numbers": np.array([2**64 - 1, 2**63, 0, 1], np.uint64),
    "narrow numbers": np.array([3, 1, 0, 255], np.uint8),
    "text": ["ann", "Ann", "ann e", "Ж" * 200_000],
    "categories": pd.Categorical(["b", "a", "c", "d"], ["unused", *"abcd"]),
    "floats": [5.0, 1.0, 2.0, -3.0],
    "days": [date(2020, 1, day) for day in (1, 2, 3, 4)],
    "times": pd.to_datetime(["2020-01-01", "2020-01-02", "2021-01-01", "1950-01-01"]),
    "decimals": [Decimal("1.00"), Decimal("11"), Decimal("2.00"), Decimal("-1")],
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_what_stays_depends_on_a_user_s_own_value_and_not_on_its_place(kind):
    """Users of any kind: with others left out, in another order, in other batches."""
    values = pd.Series(COLUMNS[kind])
    rng = np.random.default_rng(2)
    rows = values.iloc[rng.integers(0, len(values), 400)].reset_index(drop=True)
    keys = rng.integers(0, 30, 400)

    def left(order, batches):
        of = UserNumbers("user")
        parts = np.array_split(order, batches)
        users = [numbered(of, series_of("user", rows.iloc[part])) for part in parts]
        users = np.concatenate(users)
        assert len(set(users.tolist())) == rows.iloc[order].nunique()
        return bounded_contributions(of.users(users), keys[order], None, Bound(3, 2), KEY)

    whole = left(np.arange(400), 1)
    total = np.bincount(whole.keys, whole.counts, 30)
    shuffled = left(rng.permutation(400), 3)
    np.testing.assert_array_equal(np.bincount(shuffled.keys, shuffled.counts, 30), total)
    alone = np.zeros(30)
    for user in range(len(values)):
        own = left(np.flatnonzero(rows == values[user]), 1)
        assert (np.bincount(own.keys, minlength=30) > 0).sum() == 3
        alone += np.bincount(own.keys, own.counts, 30)
    np.testing.assert_array_equal(alone, total)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1.0, None, 2.0], "row 1, column 'who': found nothing, need a user"),
        ([1.0, float("nan")], "row 1, column 'who': found nothing, need a user"),
        (["a", None], "row 1, column 'who': found nothing, need a user"),
        (["a", "b", " "], "row 2, column 'who': found ' ', need a user"),
        (pd.Categorical(["a", None, "b"]), "row 1, column 'who': found nothing, need a user"),
        (
            pd.to_datetime(["2020-01-01", None]),
            "row 1, column 'who': found nothing, need a user",
        ),
        ([0.0, 2.0**53], "row 1, column 'who': .* below 2⁵³"),
        ([0.0, float("inf")], "row 1, column 'who': .* below 2⁵³"),
        (
            [1, 1.5, "x"],
            "row 1, column 'who': found '1.5', need an integer in its usual spelling",
        ),
        ([[1], [2]], "holds list: need text"),
        (pd.Series(["a", "\ud800"], dtype=object), "text that is not valid"),
    ],
)
def test_a_column_that_does_not_say_who_is_refused(values, why):
    with pytest.raises(ValueError, match=why):
        numbered(UserNumbers("who"), series_of("who", pd.Series(values)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([7], ["7"]),
        ([-1], np.array([2**64 - 1], np.uint64)),
        ([date(2020, 1, 1)], np.array([7], "M8[us]")),
        (pd.to_datetime(["2020-01-01"]), pd.to_datetime(["2020-01-01"], utc=True)),
    ],
)
def test_batches_of_two_kinds_are_refused(one, other):
    of = UserNumbers("who")
    numbered(of, series_of("who", pd.Series(one)))
    with pytest.raises(ValueError, match="one person or two"):
        numbered(of, series_of("who", pd.Series(other)))


def test_values_that_arrow_does_not_hold_are_refused():
    """Polars gives their addresses: one person would be several."""
    for column in (
        pa.array([b"7"]),
        pl.Series([object(), "x"], dtype=pl.Object),
        pl.Series([b"x", 1], dtype=pl.Object),
    ):
        with pytest.raises(ValueError, match="column 'who' holds (object|bytes): need text"):
            numbered(UserNumbers("who"), series_of("who", column))


def test_seeds_are_a_cipher_s_blocks_all_different():
    ids = UserNumbers("who")
    numbered(ids, series_of("who", pd.Series([f"u{i}" for i in range(1000)])))
    blocks = seeds(KEY, ids.ids()).reshape(-1, 2)
    assert len(set(map(tuple, blocks.tolist()))) == 2000
    assert (seeds(KEY[::-1], ids.ids()).reshape(-1, 2) != blocks).all()
    with pytest.raises(ValueError, match="32 bytes"):
        seeds(b"short", ids.ids())


def test_a_bound_that_cannot_be_enforced_is_refused():
    with pytest.raises(
        ValueError, match="are drawn from at most 68,719,476,736. Lower the bound"
    ):
        cut([(1, 1, 1)], Bound(9, 2.0**40, 2.0**41))


def test_counts_near_the_largest_are_cut_without_wrapping():
    rows = [(1, 4, 2**53)] * 5000 + [(2, 4, 3)]
    assert cut(rows, Bound(1, 10)) == ({1: {4: 10}, 2: {4: 3}}, {1: True, 2: False})


def test_nobody():
    left = bounded_contributions(
        Users(np.zeros(0, np.int64)), np.zeros(0, np.int64), None, Bound(), KEY
    )
    assert not len(left.keys) and not len(left.lost)
