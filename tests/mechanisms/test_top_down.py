"""InfTDA against its formulas, by enumeration of all noise, and by record and replay."""

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import ceil, exp, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.agreement import fits_chances, seeded
from tests.reference import top_down
from workbench import DP, PUBLIC, ZCDP, Bound, Domain, SparseTable, noise
from workbench.mechanisms import InfTDA
from workbench.mechanisms.hierarchical import chebyshev_counts, public_levels
from workbench.mechanisms.laws import differences_in_replay
from workbench.noise.replay import Replay
from workbench.privacy import REPLACE

PLACES = ("a1", "a2", "b1")
SMALL = Domain(("home", "work"), (3, 3), (PLACES, PLACES))


def table(counts, domain=SMALL, bound=None):
    """A table of {cell: count}, a cell being a label of each attribute."""
    axes = [{str(x): i for i, x in enumerate(labels)} for labels in domain.labels]
    codes = [[axis[x] for axis, x in zip(axes, cell, strict=True)] for cell in counts]
    keys = domain.keys(np.array(codes, np.int64).reshape(-1, len(axes)))
    return SparseTable.from_keys(domain, keys, [*counts.values()], bound or Bound())


def cells(estimate):
    """What is released, as {cell: count}."""
    labels = estimate.domain.frame(estimate.keys).astype(str).itertuples(index=False)
    return dict(zip(map(tuple, labels), estimate.values.tolist(), strict=True))


# Rounding

NOISY = st.lists(st.integers(-9, 12), min_size=1, max_size=4)


@given(st.lists(st.tuples(NOISY, st.integers(1, 9)), min_size=1, max_size=5))
def test_rounding_changes_no_count_by_more_than_it_must(families):
    noisy = [x for own, _ in families for x in own]
    sizes = np.array([len(own) for own, _ in families])
    counts = np.array([c for _, c in families])
    rounded = chebyshev_counts(np.array(noisy), sizes, counts)
    for (own, c), y in zip(families, np.split(rounded, np.cumsum(sizes)[:-1]), strict=True):
        assert y.sum() == c and y.min() >= 0
        assert top_down.largest_error(own, y) == top_down.least_error(own, c)
        assert y.tolist() == top_down.chebyshev(own, c)


@pytest.mark.parametrize(
    ("noisy", "count", "error"),
    [((5, -2, 1), 6, 2), ((3, 3, -4, 0), 4, 4), ((10, 1, -1, 2), 5, 5)],
)
def test_numbers_of_the_rounding(noisy, count, error):
    y = chebyshev_counts(np.array(noisy), np.array([len(noisy)]), np.array([count]))
    assert np.abs(y - noisy).max() == top_down.least_error(noisy, count) == error


@pytest.mark.parametrize("size", [2, 5, 2**20])
def test_rounding_of_noise_as_wide_as_it_gets_does_not_overflow(size):
    noisy = seeded().integers(-(2**54), 2**54, size)
    y = chebyshev_counts(noisy, np.array([size]), np.array([2**53]))
    assert y.sum() == 2**53 and y.min() >= 0


def test_numbers_of_the_noise():
    rho = top_down.rho_of(1, 1e-6)
    assert rho == pytest.approx(0.0174689048, rel=1e-8)
    assert ZCDP.within(DP(1.0, 1e-6)).rho > rho  # our conversion is exact
    for trips, sigma in ((1, 15.1320), (10, 151.3203)):
        assert top_down.deviation(rho, 4, trips) == pytest.approx(sigma, rel=1e-5)
        data = table({("a1", "b1"): 10**5}, bound=Bound(trips, trips, trips))
        release = InfTDA(ZCDP(1.25 * rho), prefixes=1)(data, replay := Replay())
        total, *levels = [run.added[0].law[1] for run in replay._run]
        assert [1 / sqrt(2 * rate) for rate in levels] == pytest.approx([sigma] * 4, rel=1e-5)
        assert 1 / sqrt(2 * total) == pytest.approx(sigma / sqrt(2), rel=1e-5)
        assert len(release.ledger) == 5 and release.relation == REPLACE


# The whole, under the same noise

LABELS = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=5, unique=True)


def released_with(monkeypatch, mechanism, data, *levels):
    """What is released with given noise of each level, and how many values got noise in each."""
    made = []

    def portioned(**_):
        noise_of_level = iter(levels[len(made)])
        made.append(0)

        class Level:
            receipt = None

            def __call__(self, values):
                made[-1] += len(values)
                return values + np.array([next(noise_of_level) for _ in values], np.int64)

        return Level()

    with monkeypatch.context() as patch:
        patch.setattr(noise, "PortionedGaussian", portioned)
        patch.setattr("workbench.mechanisms.hierarchical.Release", lambda x, *_: x)
        return cells(mechanism(data)), made


@given(data=st.data())
def test_it_releases_what_the_formulas_release(data):
    labels = data.draw(st.tuples(LABELS, LABELS))
    lengths = data.draw(st.sampled_from([(), (1,), (2,), (1, 2), (1, 2, 3)]))
    cell = st.tuples(*map(st.sampled_from, labels))
    counts = data.draw(st.dictionaries(cell, st.integers(1, 9), min_size=1, max_size=6))
    total = sum(counts.values())
    domain = Domain(("x", "y"), tuple(map(len, labels)), tuple(map(tuple, labels)))
    assume(domain.size > 1)
    seed = data.draw(st.integers(0, 2**32))
    drawn = [np.random.default_rng([seed, i]).integers(-6, 7, 500) for i in range(9)]
    used = [iter(x) for x in drawn]
    expected = top_down.release(
        counts, labels, lengths, total, lambda level, _: int(next(used[level - 1]))
    )
    mechanism = InfTDA(ZCDP(1.0), prefixes=lengths or None, total=total)
    with pytest.MonkeyPatch.context() as patch:
        ours, _ = released_with(patch, mechanism, table(counts, domain), *drawn)
        assert ours == expected
        patch.setattr("workbench.mechanisms.hierarchical._AT_ONCE", 3)
        assert released_with(patch, mechanism, table(counts, domain), *drawn)[0] == expected


def test_codes_without_labels_have_leading_zeros(monkeypatch):
    domain = Domain(("x", "y"), (12, 7))
    labels = [f"{x:02}" for x in range(12)], [str(y) for y in range(7)]
    counts = {("03", "5"): 4, ("11", "0"): 2, ("00", "6"): 1}
    keys = [7 * int(x) + int(y) for x, y in counts]
    data = SparseTable.from_keys(domain, keys, [*counts.values()], Bound())
    drawn = [seeded(i).integers(-3, 4, 300) for i in range(3)]
    used = [iter(x) for x in drawn]
    expected = top_down.release(counts, labels, (1,), 7, lambda i, _: int(next(used[i - 1])))
    ours, _ = released_with(monkeypatch, InfTDA(ZCDP(1.0), 1, 7), data, *drawn)
    assert ours == {(str(int(x)), y): count for (x, y), count in expected.items()}


def test_noise_goes_on_children_of_nodes_that_are_not_empty(monkeypatch):
    """Of 10¹⁰ cells, 100 children a node, and then 10."""
    domain = Domain(("x", "y"), (10**5, 10**5))
    data = SparseTable.from_keys(domain, [5, 10**9, 10**10 - 1], [3, 1, 2], Bound())
    none = itertools.repeat(0)
    mechanism = InfTDA(ZCDP(1.0), (2, 4), 6)
    ours, drawn = released_with(monkeypatch, mechanism, data, *[none] * 6)
    assert [*ours.values()] == [3, 1, 2]
    assert drawn == [100, 300, 300, 300, 30, 30]


# Its law, enumerated

FAMILY = ("a1", "a2"), ("x", "y")
TRIPS = 3


def pmf(variance):
    """Probabilities of the discrete Gaussian, whose parameter is about its variance."""
    reach = ceil(6 * sqrt(variance))
    weights = {x: exp(-x * x / (2 * variance)) for x in range(-reach, reach + 1)}
    whole = sum(weights.values())
    return {x: w / whole for x, w in weights.items()}


def law(counts, rho, moved=(2, 2), total=TRIPS):
    """The law of a release of a table of 2 × 2 cells, without regions."""
    pmfs = {i: pmf(len(moved) * m / (2 * rho)) for i, m in enumerate(moved, 1)}
    return top_down.law(counts, FAMILY, (), total, pmfs)


def divergence(p, q, order):
    """Rényi's, of laws over the same outcomes."""
    return log(sum(x**order * q[k] ** (1 - order) for k, x in p.items())) / (order - 1)


def tables(trips=TRIPS):
    """All tables of so many trips over the four cells."""
    every = [*itertools.product(*FAMILY)]
    for drawn in itertools.combinations_with_replacement(every, trips):
        yield dict(Counter(drawn))


def loss(p, q, rho):
    """The largest divergence of two laws over ρ times its order. At most 1 if they are ρ-zCDP."""
    orders = (1.001, 1.5, 2, 4, 8, 16)
    return max(
        divergence(one, other, a) / (rho * a) for a in orders for one, other in ((p, q), (q, p))
    )


@pytest.mark.parametrize("rho", [0.3, 1.0])
def test_all_neighbours_lose_at_most_rho_by_enumeration(rho):
    """Tables of three trips that differ in one. The worst pair comes near ρ, so that noise is not wasted."""
    laws = {frozenset(counts.items()): law(counts, rho) for counts in tables()}
    worst = 0.0
    for one, other in itertools.combinations(laws, 2):
        if (Counter(dict(one)) - Counter(dict(other))).total() == 1:
            worst = max(worst, loss(laws[one], laws[other], rho))
    assert 0.5 < worst <= 1 + 1e-6


def test_units_of_three_trips_need_what_all_levels_move_by_enumeration():
    """Three trips from one origin, replaced by three from the other. The published noise is too little."""
    rho, rest = 1.0, Counter({("a1", "y"): 4, ("a2", "y"): 4})
    rows = [rest + Counter({(x, "x"): 2, (x, "y"): 1}) for x in ("a1", "a2")]
    enough = [law(counts, rho, (18, 10), rows[0].total()) for counts in rows]
    assert 0.5 < loss(*enough, rho) <= 1 + 1e-6
    published = [law(counts, rho, (6, 6), rows[0].total()) for counts in rows]
    assert loss(*published, rho) > 1.3


def test_releases_have_the_law_of_the_formulas():
    """Seeded; sees an outcome of chance 0.1 that is off by 0.019."""
    counts = {("a1", "x"): 2, ("a2", "y"): 1}
    expected = law(counts, 1.0)
    domain = Domain(("x", "y"), (2, 2), FAMILY)
    data, mechanism, rng = table(counts, domain), InfTDA(ZCDP(1.0), total=TRIPS), seeded()
    seen = Counter()
    for _ in range(4000):
        estimate = mechanism(data, rng).estimate
        seen[tuple(zip(estimate.keys.tolist(), estimate.values.tolist(), strict=True))] += 1
    keys = {(f"{x}\0", f"{y}\0"): i for i, (x, y) in enumerate(itertools.product(*FAMILY))}
    by_key = {tuple((keys[x], n) for x, n in released): p for released, p in expected.items()}
    assert fits_chances([seen[x] for x in by_key], [*by_key.values()]) > 1e-4


# What a unit moves

UNIT = st.dictionaries(
    st.tuples(st.sampled_from(PLACES), st.sampled_from(PLACES)),
    st.integers(1, 3),
    max_size=4,
)


@given(UNIT, UNIT)
def test_no_two_units_move_a_level_further_than_its_noise_allows(one, other):
    both = [x for x in (one, other) if x]
    assume(both)
    bound = Bound(
        max(map(len, both)),
        max(max(x.values()) for x in both),
        max(sum(x.values()) for x in both),
    )
    levels, _ = public_levels(SMALL, (1,))
    allowed = [2 * bound.merged(level.cells).l2_squared for level in levels]
    changes = top_down.level_changes(one, other, (PLACES, PLACES), (1,))
    assert len(changes) == len(levels) == 4
    assert all(x <= most for x, most in zip(changes, allowed, strict=True))
    assert all(most <= 2 * Fraction(bound.l1) ** 2 for most in allowed)
    assert abs(sum(one.values()) - sum(other.values())) <= bound.l1


def trips_between(places, trips, seed=0):
    """Trips between labelled places, near ones more often than others."""
    rng = seeded(seed)
    labels = tuple(f"{i // 50:02}{i:04}" for i in range(places))
    homes = rng.integers(0, places, trips)
    works = (homes + np.rint(rng.laplace(0, 9, trips)).astype(int)) % places
    domain = Domain(("home", "work"), (places, places), (labels, labels))
    return domain, homes * places + works


@pytest.mark.parametrize("stated", [True, False])
def test_neighbours_of_real_size_get_the_same_release_from_the_same_noise(stated):
    """As many tracts and trips as in Rhode Island, and a user whose trips are replaced by fewer, or a trip."""
    domain, keys = trips_between(244, 406_052)
    unit = np.repeat(seeded(1).choice(domain.size, 10, replace=False), [2, 2, *[1] * 8])
    far = np.repeat(seeded(2).choice(domain.size, 7, replace=False), [2] * 5 + [1] * 2)
    bound, units = (
        (Bound(), (unit[:1], far[:1])) if stated else (Bound(10, 2, 12), (unit, far[:5]))
    )
    sides = [np.concatenate([keys, own]) for own in units]
    one, other = (SparseTable.from_keys(domain, x, np.ones_like(x), bound) for x in sides)
    for prefixes in (2, None):
        total = one.total if stated else None
        mechanism = InfTDA(ZCDP(0.1), prefixes=prefixes, total=total)
        assert differences_in_replay(mechanism, one, other) == []
        assert differences_in_replay(mechanism, other, one) == []
    if not stated:
        less = [replace(x, bound=Bound(3, 2, 4)) for x in (one, other)]
        assert any("its noise is for" in x for x in differences_in_replay(mechanism, *less))


# What it refuses


def test_totals_that_are_not_the_tables_are_refused_without_its_own():
    messages = set()
    for trips in (1, 2, 90):
        with pytest.raises(
            ValueError, match=r"InfTDA\.total = 5 is not allowed: need the"
        ) as e:
            InfTDA(ZCDP(1.0), total=5)(table({("a1", "b1"): trips}))
        messages.add(str(e.value))
    assert len(messages) == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"total": 0}, r"total = 0 is not allowed: need an integer >= 1 .*\(trips\)"),
        ({"total": 2**53 + 1}, "total = 9007199254740993 is not allowed"),
        ({"total": 1.5}, "total = 1.5 is not allowed"),
        ({"prefixes": 0}, "prefixes = 0 is not allowed: need an integer from 1 to 1000"),
        ({"prefixes": ()}, r"prefixes = \(\) is not allowed"),
        (
            {"prefixes": (5, 5)},
            r"prefixes = \(5, 5\) .* a tuple of them that rises, so that levels",
        ),
        ({"prefixes": (11, 5)}, r"prefixes = \(11, 5\) is not allowed: .*levels nest"),
        ({"prefixes": "5"}, "prefixes = '5' is not allowed"),
        ({"prefixes": True}, "prefixes = True is not allowed"),
        ({"budget": DP(1.0, 1e-6)}, "budget = .*need a ZCDP"),
    ],
)
def test_fields_out_of_range_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        InfTDA(**{"budget": ZCDP(1.0)} | fields)


def test_tables_that_it_cannot_release_are_refused():
    one_cell = Domain(("x",), (1,))
    data = SparseTable.from_keys(one_cell, [0], [4], Bound())
    with pytest.raises(
        ValueError, match="total = 4 is not allowed: need .* more than one cell"
    ):
        InfTDA(ZCDP(1.0), total=4)(data)
    assert InfTDA(ZCDP(1e9))(data).estimate.values.tolist() == [4]
    wide = SparseTable.from_keys(Domain(("x", "y"), (2**23, 2)), [0], [4], Bound())
    with pytest.raises(ValueError, match="attribute 'x' has 8388608 values: .*at most 4194304"):
        InfTDA(ZCDP(1.0))(wide)
    with pytest.raises(ValueError, match="PUBLIC"):
        InfTDA(ZCDP(1.0))(table({("a1", "b1"): 3}, bound=PUBLIC))


def test_no_trips_are_released_as_few():
    """A total that is not stated may be noise alone, so that an empty table looks like any other."""
    empty = SparseTable.from_keys(SMALL, [], [], Bound())
    totals = [InfTDA(ZCDP(0.5))(empty, seeded(i)).estimate.values.sum() for i in range(40)]
    assert 0 in totals and max(totals) > 0
