"""Rivals of sparse summaries, against their formulas and by enumeration of all draws."""

import itertools
from collections import Counter
from fractions import Fraction
from math import exp, inf, log, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agreement import seeded
from tests.reference import rivals
from workbench import DP, ZCDP, Bound, Domain, SparseTable
from workbench.mechanisms import (
    CorrelatedGaussianSparseHistogram,
    GaussianSparseHistogram,
    ItemBlanket,
    MisraGries,
)
from workbench.mechanisms.laws import differences_in_replay
from workbench.mechanisms.neighbours import Pair
from workbench.noise import (
    correlated_noise,
    empty_cells,
    gaussian_sparse,
    misra_gries_threshold,
)
from workbench.noise.blanket import blanket_threshold, draw_blanket
from workbench.noise.misra_gries import draw_misra_gries, misra_gries_delta, sketch
from workbench.owner.audit.enumeration import output_laws
from workbench.owner.audit.ways import Enumeration
from workbench.randomness import word_source


def table(counts, bound=None):
    """A table of one attribute, of the counts of all cells."""
    counts = np.array(counts)
    keys = np.flatnonzero(counts)
    domain = Domain(("x",), (len(counts),))
    return SparseTable.from_keys(domain, keys, counts[keys], bound or Bound())


# Item blanket

SIZES = [
    (6, 2, 2),
    (6, 3, 3),
    (6, 3, 4),
    (6, 3, 5),
    (7, 2, 4),
]  # cells, non-empty ones, released


def chosen_cells(counts, most, size, epsilon):
    """{cells: probability} of the code that draws them, run for every way its draws fall."""
    counts = np.array(counts)
    keys, rate = np.flatnonzero(counts), Fraction(epsilon)
    threshold = blanket_threshold(rate, len(counts), most, size)
    source = Enumeration(alike=True)
    source.is_recording = False
    law = {}
    for _ in source.ways():
        arguments = keys, counts[keys], len(counts), size, threshold, rate
        cells = tuple(source.choose(draw_blanket, *arguments, reads=None).tolist())
        law[cells] = law.get(cells, 0) + source.probability
    return law


def largest_loss(p, q):
    return max(abs(log(p[x] / q[x])) if x in p and x in q else inf for x in p.keys() | q.keys())


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
@pytest.mark.parametrize(("cells", "most", "size"), SIZES)
def test_the_chosen_cells_lose_at_most_epsilon(cells, most, size, epsilon):
    """All tables of counts up to 3 in as many cells as may be non-empty, and all their neighbours."""
    laws = {}
    for full in itertools.product(range(4), repeat=most):
        laws[full] = chosen_cells([*full] + [0] * (cells - most), most, size, epsilon)
    for full, law in laws.items():
        assert sum(law.values()) == pytest.approx(1)
        reference = rivals.blanket_law([*full] + [0] * (cells - most), epsilon, most, size)
        assert law == pytest.approx(reference, abs=1e-12)
        for cell in range(most):
            less = tuple(x - (i == cell) for i, x in enumerate(full))
            if less in laws:
                assert largest_loss(law, laws[less]) <= epsilon * (1 + 1e-9)


def test_the_loss_of_the_chosen_cells_reaches_epsilon():
    one, other = (chosen_cells([*x, 0, 0, 0], 3, 4, 1.0) for x in ((1, 3, 2), (1, 2, 2)))
    assert largest_loss(one, other) == pytest.approx(1.0, rel=1e-6)


def test_numbers_of_the_item_blanket():
    assert rivals.keep_first(0.5, 10**6, 1000, 1000) == pytest.approx(6.493706e-7, rel=1e-6)
    assert rivals.keep_first(0.5, 10**6, 1000, 2000) == pytest.approx(6.506713e-4, rel=1e-6)
    assert [blanket_threshold(Fraction(1, 2), 10**6, 1000, k) for k in (1000, 2000)] == [29, 15]
    law = chosen_cells([2, 1, 0, 0, 0, 0], 3, 4, 1.0)
    assert law[0, 1, 2, 3] == pytest.approx(0.1065537311, rel=1e-9)
    assert law[2, 3, 4, 5] == pytest.approx(0.0131074622, rel=1e-8)
    assert sum(p for x, p in law.items() if 0 in x) == pytest.approx(0.9055308937, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 9.0, 700.0, 1e9])
@pytest.mark.parametrize(
    ("cells", "most", "size"), [(10, 10, 10), (2**62, 1, 1), (2**62, 10, 50)]
)
def test_the_threshold_is_the_smallest_that_hides_one_count(cells, most, size, epsilon):
    tau = blanket_threshold(min(Fraction(epsilon), Fraction(2**60)), cells, most, size)
    if epsilon < 30:  # beyond, floats cannot hold 1 − α
        assert abs(tau - rivals.blanket_threshold(epsilon, cells, most, size)) <= (
            epsilon < 1e-5
        )
    kept = exp(-min(epsilon, 700) * (tau - 1))
    grown = -np.expm1(-2 * epsilon) * (size - most + 1)
    assert kept * exp(-min(epsilon, 700)) * (cells - size) <= grown * (1 + 1e-9)


NEIGHBOURS = [  # counts of both, and the bound
    ([2, 1, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0], Bound()),
    ([3, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0], Bound()),
    ([0, 0, 0, 0, 0, 1], [0] * 6, Bound()),
    ([2, 2, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0], Bound(1, 2)),
    ([2, 1, 1, 0, 0, 0], [2, 0, 0, 0, 0, 0], Bound(2, 1)),
    ([30, 9, 0, 0, 0, 0], [29, 8, 0, 0, 0, 0], Bound(2, 1)),
]


@pytest.mark.parametrize(("more", "less", "bound"), NEIGHBOURS)
@pytest.mark.parametrize(("most", "size"), [(3, 3), (3, 4)])
def test_a_release_loses_what_it_pays_by_enumeration(more, less, bound, most, size):
    mechanism = ItemBlanket(DP(1.5), nonempty=most, size=size, choice_share=0.4)
    pair = Pair("", table(more, bound), table(less, bound))
    loss = output_laws(mechanism, pair).loss(1.5)
    assert 0.3 < loss["exact"] <= 1.5 * (1 + 1e-9)
    assert differences_in_replay(mechanism, pair.one, pair.other) == []
    assert differences_in_replay(mechanism, pair.other, pair.one) == []


def test_a_release_has_its_size_whatever_the_table_holds():
    mechanism = ItemBlanket(DP(1.0), nonempty=20, size=30)
    for cells in (0, 1, 20):
        counts = np.zeros(1000, int)
        counts[:cells] = 50
        released = mechanism(table(counts), seeded()).estimate
        assert len(released) == 30
        assert np.isin(np.arange(cells), released.keys).all()
    small = mechanism(table([4, 0, 1]), seeded()).estimate
    assert small.keys.tolist() == [0, 1, 2]


def test_every_other_cell_is_as_likely_to_fill_the_release():
    """Seeded; sees a cell that is drawn with a probability off by 0.03."""
    mechanism = ItemBlanket(DP(8.0), nonempty=2, size=4)
    data, rng, hits = table([0, 90, 0, 0, 90, 0, 0, 0]), seeded(), np.zeros(8)
    for _ in range(4000):
        hits[mechanism(data, rng).estimate.keys] += 1
    others = np.delete(hits, [1, 4]) / 4000
    assert hits[1] == hits[4] == 4000
    assert others == pytest.approx(1 / 3, abs=0.03)


def test_drawn_cells_have_the_law_of_the_formulas():
    """Seeded; sees a probability that is off by 0.02. Enumerations have a law of their own for draws."""
    counts, words = [2, 1, 1, 0, 0, 0], word_source(seeded())
    law = rivals.blanket_law(counts, 1.0, 3, 4)
    keys, threshold = np.arange(3), blanket_threshold(Fraction(1), 6, 3, 4)
    drawn = Counter()
    for _ in range(20_000):
        cells = draw_blanket(keys, np.array(counts[:3]), 6, 4, threshold, Fraction(1), words)
        drawn[tuple(cells.tolist())] += 1 / 20_000
    assert max(abs(law.get(x, 0) - drawn[x]) for x in law.keys() | drawn.keys()) < 0.02


def test_tables_beyond_the_bound_are_refused_without_their_number():
    for mechanism in (
        ItemBlanket(DP(1.0), nonempty=2, size=2),
        CorrelatedGaussianSparseHistogram(DP(1.0, 1e-6), nonempty=2),
    ):
        messages = set()
        for cells in (3, 9):
            with pytest.raises(ValueError, match=r"\.nonempty = 2 is not allowed") as e:
                mechanism(table([1] * cells))
            messages.add(str(e.value))
        assert len(messages) == 1
    with pytest.raises(ValueError, match="size = 4 is not allowed: need at least nonempty = 5"):
        ItemBlanket(DP(1.0), nonempty=5, size=4)
    with pytest.raises(ValueError, match="delta"):
        ItemBlanket(DP(1.0, 1e-6), nonempty=5, size=5)


# Gaussian sparse histogram


def test_numbers_of_the_gaussian_sparse_histogram():
    assert rivals.gaussian_mu(1, 1e-5) == pytest.approx(0.26805112, rel=1e-7)
    for delta, cells, sigma, t, added in (
        (1e-5, 1, 3.767939, 16.06984, 17.58160),
        (1e-5, 10, 11.915266, 56.63830, 60.99571),
        (1e-6, 10, 13.493204, 70.15572, 74.25306),
    ):
        wide = 1.01 * sqrt(cells) / rivals.gaussian_mu(1, delta)
        assert wide == pytest.approx(sigma, rel=1e-6)
        assert rivals.exact_quantile(wide, delta, cells) == pytest.approx(t, rel=1e-6)
        assert rivals.added_quantile(1, wide, delta, cells) == pytest.approx(added, rel=1e-6)
        assert rivals.sparse_delta(1, wide, t, cells) == pytest.approx(delta, rel=1e-4)
        least = wide / 1.01  # where the first line decides too
        quantile = rivals.exact_quantile(least, delta, cells)
        assert rivals.sparse_delta(1, least, quantile, cells) == pytest.approx(delta, rel=1e-8)
        made = gaussian_sparse.sparse_noise(Bound(cells, 1), 1.0, delta)
        assert made.deviation == pytest.approx(least, rel=0.003)
        assert 0 <= made.threshold - 1 - quantile < 1.51  # an integer, half a count above
        assert delta * (1 - 1e-5) < made.delta <= delta
    assert rivals.sparse_delta(1, 3, 10, 3) == pytest.approx(0.0155954678, rel=1e-8)
    assert rivals.sparse_delta(0.5, 2, 6, 2) == pytest.approx(0.1237248796, rel=1e-8)
    first, second, third = rivals.sparse_lines(0.8, 1.7, 2.5, 2)
    assert first[0] == pytest.approx(0.1364038402, rel=1e-8)
    assert (second[1], third[1]) == pytest.approx((0.0955866, 0.0428432), abs=1e-7)


CASES = [  # ε, σ, threshold, cells, moved
    (0.5, 2.0, 6, 1, 1),
    (1.0, 1.7, 5, 2, 1),
    (0.8, 1.7, 3, 2, 1),
    (0.2, 1.7, 9, 2, 2),
    (1.5, 1.3, 4, 3, 1),
    (3.0, 0.7, 2, 1, 1),
]


@pytest.mark.parametrize(("epsilon", "sigma", "threshold", "cells", "moved"), CASES)
def test_the_exact_delta_is_that_of_every_output(epsilon, sigma, threshold, cells, moved):
    """Both tables' outputs are listed, for each number of new cells, and for units that change less."""
    rate = Fraction(1 / (2 * sigma**2))
    pmf = rivals.discrete_gaussian_pmf(rate, int(8 * sigma))
    tail = float(empty_cells.upper_tail(rate, threshold - moved, 192))
    ours = gaussian_sparse.sparse_delta(epsilon, sigma, tail, cells, moved)
    worst = 0.0
    for unit in itertools.combinations_with_replacement(range(moved + 1), cells):
        for new in itertools.product((False, True), repeat=cells):
            counts = [0 if is_new else 99 for is_new in new]
            more = [x + y for x, y in zip(counts, unit, strict=True)]
            delta = rivals.discrete_sparse_delta(pmf, counts, more, threshold, epsilon)
            worst = max(worst, delta)
    assert worst * (1 - 1e-10) <= ours <= worst * (1 + (1e-8 if sigma > 1.5 else 1e-4))


@pytest.mark.parametrize("s", [0.4, 3.0, 19.9, 20.1, 35.0, 700.0])
def test_tails_lie_within_their_bounds(s):
    rate = Fraction(1 / (2 * s * s))
    for u in (0.0, 0.3, 1.0, 3.0, 7.0):
        for x in (round(u * s) + 1, -round(u * s)):
            low, high = gaussian_sparse._upper_tail(np.array([s]), np.array([float(x)]))
            values = np.arange(max(x, 1 - x), max(x, 1 - x) + int(40 * s) + 2)
            weights = np.exp(-float(rate) * values.astype(float) ** 2)
            whole = 1 + 2 * np.exp(-float(rate) * np.arange(1.0, 40 * s + 2) ** 2).sum()
            exact = weights.sum() / whole if x > 0 else 1 - weights.sum() / whole
            assert low[0] <= exact * (1 + 1e-13) and exact <= high[0] * (1 + 1e-13)
            assert high[0] <= exact * (1 + 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-2), (0.3, 0.1), (3.0, 1e-3)])
@pytest.mark.parametrize("bound", [Bound(), Bound(2, 1), Bound(1, 2)], ids=repr)
def test_the_noise_and_the_threshold_are_the_least(epsilon, delta, bound):
    made = gaussian_sparse.sparse_noise(bound, epsilon, delta)
    cells, moved = gaussian_sparse.moves(bound)
    tail = float(empty_cells.upper_tail(made.rate, made.threshold - 1 - moved, 192))
    lower = gaussian_sparse.sparse_delta(epsilon, made.deviation, tail, cells, moved)
    narrower = gaussian_sparse.sparse_delta(epsilon, 0.999 * made.deviation, 0.0, cells, moved)
    assert made.delta <= delta < min(lower, narrower)


@pytest.mark.parametrize(
    ("epsilon", "sigma"), [(1e-6, 30.0), (0.1, 2.0), (1.0, 0.9), (9.0, 700.0)]
)
def test_more_cells_are_never_hidden_better(epsilon, sigma):
    """Why the search for the noise looks at units without new cells only."""
    cells = np.arange(1, 60)
    for moved in (1, 3):
        deltas = gaussian_sparse._noise_delta(np.full(59, epsilon), sigma, cells, moved)
        assert (np.diff(np.maximum(deltas, 0)) >= 0).all()
        whole = gaussian_sparse.sparse_delta(epsilon, sigma, 0.0, 59, moved)
        assert whole == pytest.approx(max(deltas[-1], 0), rel=1e-10)


def test_extreme_budgets_have_noise_and_a_threshold():
    for epsilon, delta in ((1e6, 1e-190), (1e300, 1e-6), (1e300, 0.9)):
        made = gaussian_sparse.sparse_noise(Bound(2, 2, 3), epsilon, delta)
        assert 0 < made.delta <= delta and made.threshold >= 2
    for epsilon, delta in ((1e-9, 1e-300), (1e-9, 0.9), (1e300, 1e-300)):
        noise = correlated_noise(3, 1.0, epsilon, delta)
        assert 0 < noise.shared < noise.own < inf and noise.threshold > 0


@pytest.mark.parametrize(
    "mechanism",
    [
        GaussianSparseHistogram(DP(1.0, 1e-2)),
        MisraGries(DP(1.0, 0.1), size=2, rule="derived"),
        MisraGries(DP(0.5, 0.4), size=1, rule="published"),
        CorrelatedGaussianSparseHistogram(DP(1.0, 0.1), nonempty=3),
    ],
    ids=repr,
)
def test_releases_of_delta_lose_what_they_pay_by_enumeration(mechanism):
    for more, less, bound in NEIGHBOURS:
        pair = Pair("", table(more, bound), table(less, bound))
        loss = output_laws(mechanism, pair).loss(mechanism.budget.epsilon)
        receipt = mechanism(pair.one, seeded()).privacy
        assert loss["spent_delta"] <= receipt.delta <= mechanism.budget.delta
        assert differences_in_replay(mechanism, pair.one, pair.other) == []
        assert differences_in_replay(mechanism, pair.other, pair.one) == []


def test_the_gaussian_sparse_histogram_releases_large_counts_with_error_bars():
    data = table([900, 0, 1, 800, 0, 700], Bound(3, 1))
    release = GaussianSparseHistogram(DP(1.0, 1e-6))(data)
    estimate = release.estimate
    assert estimate.keys.tolist() == [0, 3, 5] and estimate.values.dtype == np.int64
    sigma = release.mechanism.deviation(data.bound)
    assert release.deviations() == pytest.approx(sigma, rel=1e-6)
    assert np.abs(estimate.values - [900, 800, 700]).max() < 10 * sigma
    assert release.cells_from_nothing == 0


def test_budgets_without_delta_or_with_a_rho_are_refused():
    for budget in (DP(1.0), DP(1.0, 1.0), ZCDP(0.1, 1e-6), 1.0):
        with pytest.raises(ValueError, match="delta|need a DP"):
            GaussianSparseHistogram(budget)
    with pytest.raises(ValueError, match=r"delta = 1e-250 are not allowed: need .*1e-200"):
        GaussianSparseHistogram(DP(1.0, 1e-250))(table([1]))
    with pytest.raises(ValueError, match="change 2,000,000 counts: need at most"):
        GaussianSparseHistogram(DP(1.0, 1e-6))(table([1], Bound(2 * 10**6, 1)))


# Misra–Gries


def test_numbers_of_misra_gries():
    for epsilon, authors, derived in ((1.0, 30.82825, 19), (0.5, 60.65649, 35)):
        assert rivals.authors_threshold(epsilon, 1e-6) == pytest.approx(authors, rel=1e-6)
        assert rivals.integer_threshold(epsilon, 1e-6) == derived
        published, spent = misra_gries_threshold(1, epsilon, 1e-6, "published")
        assert (published, spent < 1e-11) == (np.ceil(authors), True)
        ours, spent = misra_gries_threshold(1, epsilon, 1e-6, "derived")
        tail = rivals.sum_tail(exp(-epsilon), derived)
        assert ours == derived and spent == pytest.approx(4 * exp(epsilon) * tail, rel=1e-9)
    assert float(misra_gries_delta(Fraction(1), 1, 5, 192)) == pytest.approx(
        0.1706559, rel=1e-6
    )


def test_thresholds_of_units_of_several_elements_pay_for_the_whole_path():
    for epsilon, delta, l1 in ((1.0, 1e-6, 3), (0.2, 0.1, 5.5), (9.0, 0.5, 2)):
        for rule in ("published", "derived"):
            tau, spent = misra_gries_threshold(l1, epsilon, delta, rule)
            step = epsilon / l1
            each = 4 * exp(step) * rivals.sum_tail(exp(-step), tau)
            path = sum(exp(j * step) for j in range(int(l1))) * each
            assert spent == pytest.approx(path, rel=1e-8) and spent <= delta


def streams(alphabet, longest):
    for n in range(longest + 1):
        yield from itertools.product(range(alphabet), repeat=n)


@pytest.mark.parametrize(("k", "alphabet", "longest"), [(1, 3, 6), (2, 4, 5), (3, 5, 5)])
def test_the_lemma_on_neighbouring_sketches_by_enumeration(k, alphabet, longest):
    """Every stream in any order, and each of its elements left out."""
    sketches = {s: rivals.misra_gries(s, k) for s in streams(alphabet, longest)}
    for stream, whole in sketches.items():
        for i in range(len(stream)):
            assert rivals.lemma_holds(whole, sketches[stream[:i] + stream[i + 1 :]])


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(1, 6), st.integers(0, 60))
def test_the_lemma_on_longer_streams_and_the_sketch_of_a_table(stream, k, left_out):
    whole = rivals.misra_gries(stream, k)
    assert rivals.lemma_holds(
        whole, rivals.misra_gries(stream[:left_out] + stream[left_out + 1 :], k)
    ) or (left_out >= len(stream))
    runs = sorted(stream)
    keys, counts = np.unique(np.array(runs, np.int64), return_counts=True)
    listed = rivals.misra_gries(runs, k)
    ours = dict(zip(*map(np.ndarray.tolist, sketch(keys, counts, k)), strict=True))
    assert ours == {key: count for (real, key), count in listed.items() if real}


@pytest.mark.slow
def test_the_worst_delta_of_short_streams_is_below_the_bound():
    """Streams of up to five elements, of which different pairs of sketches are compared."""
    sketches = {s: rivals.misra_gries(s, 2) for s in streams(4, 5)}
    shown = {s: tuple(sorted(x.items())) for s, x in sketches.items()}
    laws = {x: rivals.misra_gries_law(dict(x), 1.0, 5, 25) for x in {*shown.values()}}
    pairs = {(shown[s], shown[s[:i] + s[i + 1 :]]) for s in shown for i in range(len(s))}
    both = [(laws[x], laws[y]) for x, y in pairs]
    worst = max(rivals.hockey_stick(p, q, 1.0) for x, y in both for p, q in ((x, y), (y, x)))
    assert worst == pytest.approx(0.0458668, abs=2e-6) and worst < 0.1706559


def test_misra_gries_releases_the_heavy_cells():
    counts = np.ones(500, int)
    counts[[7, 400]] = 3000, 2000
    release = MisraGries(DP(1.0, 1e-6), size=30)(table(counts))
    estimate = release.estimate
    assert estimate.keys.tolist() == [7, 400]
    assert np.abs(estimate.values - [3000, 2000]).max() < 40 + counts.sum() / 31
    assert estimate.theta == 31 and release.privacy.delta < 1e-11
    for budget in (DP(1.0), ZCDP(0.1, 1e-6)):
        with pytest.raises(ValueError, match="delta|need a DP"):
            MisraGries(budget, size=9)


def test_drawn_counters_have_the_law_of_the_formulas():
    """Seeded; sees a probability that is off by 0.02."""
    keys, counts = np.array([2, 5]), np.array([3, 2])
    words = word_source(seeded())
    law = rivals.misra_gries_law(rivals.misra_gries([2, 2, 2, 5, 5], 3), 1.0, 3, 25)
    drawn = Counter()
    for _ in range(20_000):
        shown = draw_misra_gries(keys, counts, 3, 3, Fraction(1), words)
        drawn[tuple(zip(*map(np.ndarray.tolist, shown), strict=True))] += 1 / 20_000
    assert max(abs(law.get(x, 0) - drawn[x]) for x in law.keys() | drawn.keys()) < 0.02


# Correlated Gaussian sparse histogram


def test_numbers_of_the_correlated_gaussian_sparse_histogram():
    b, a, above = rivals.correlated(1.0, 5e-6, 5e-6, 16)
    assert (sqrt(a + b), above) == pytest.approx((9.7104, 48.3899), abs=1e-4)
    independent = 4 / rivals.gaussian_mu(1, 1e-5)
    assert independent == pytest.approx(14.9225, abs=1e-4)
    quantile = rivals.exact_quantile(independent, 1e-5, 16)
    assert quantile == pytest.approx(72.3376, abs=1e-4)


@pytest.mark.parametrize(("k", "moved"), [(1, 1), (3, 1), (16, 1), (16, 2.5)])
def test_no_unit_moves_the_table_farther_than_the_noise_allows(k, moved):
    made = correlated_noise(k, moved, 1.0, 1e-5)
    b, a, above = rivals.correlated(1.0, 5e-6, 5e-6, k)
    found = (made.shared**2, made.own**2, made.threshold)
    assert found == pytest.approx((b * moved**2, a * moved**2, moved * (1 + above)), rel=1e-8)
    mu = rivals.gaussian_mu(1, 5e-6)
    a, b = Fraction(a), Fraction(b)
    distances = [
        rivals.distance_squared(a, b, u, s)
        for u in range(1, min(k, 6) + 1)
        for s in range(u + 1)
    ]
    assert max(map(float, distances)) <= mu**2 * (1 + 1e-9)


def test_noise_of_cells_has_the_stated_covariance():
    """Seeded; sees a covariance that is off by 6 %."""
    mechanism = CorrelatedGaussianSparseHistogram(DP(1.0, 1e-5), nonempty=16)
    data, rng = table([9000, 9000, 9000]), seeded()
    drawn = np.array([mechanism(data, rng).estimate.values for _ in range(6000)])
    b, a, _ = rivals.correlated(1.0, 5e-6, 5e-6, 16)
    assert np.cov(drawn.T) == pytest.approx(a * np.eye(3) + b, rel=0.06, abs=0.06 * b)


def test_cells_with_correlated_noise_are_shown_from_the_threshold_on():
    """Seeded; sees a probability that is off by 0.02, for cells at, above and below the threshold."""
    mechanism = CorrelatedGaussianSparseHistogram(DP(1.0, 0.1), nonempty=3)
    made = correlated_noise(3, 1.0, 1.0, 0.1)
    counts = np.array([1, round(made.threshold), round(made.threshold + made.own)])
    data, rng, shown = table(counts), seeded(), np.zeros(3)
    for _ in range(8000):
        estimate = mechanism(data, rng).estimate
        shown[estimate.keys] += 1 / 8000
        assert (estimate.values >= np.rint(made.threshold)).all()
    spread = sqrt(made.shared**2 + made.own**2)
    expected = [1 - NormalDist(x, spread).cdf(made.threshold) for x in counts.tolist()]
    assert shown == pytest.approx(expected, abs=0.02)
