"""Fourier perturbation and grouping: basis, sensitivities, the law of what is released, and limits."""

import dataclasses
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import inf, log, nan, sqrt

import numpy as np
import pytest
from scipy import stats

from tests.agreement import RARE, runs, same_law, seeded
from tests.reference import fourier, geometric, grouping
from workbench import DP, PUBLIC, UNBOUNDED, Bound, Domain, Interactions, noise
from workbench.mechanisms import smoothing
from workbench.mechanisms.smoothing import FPA, GS

both = pytest.mark.parametrize("cls", [FPA, GS])


def made(rows, shape=(12, 2), bound=UNBOUNDED, **options):
    """Interactions of (user, item, context) rows."""
    users, items, contexts = np.array(rows, np.int64).reshape(-1, 3).T
    domain = Domain(("item", "context"), shape)
    return Interactions.from_codes(domain, users, items, contexts, bound, **options)


def crowd(users=60, shape=(12, 2), seed=0, most=6):
    rng, rows = seeded(seed), []
    for u in range(users):
        for _ in range(rng.integers(1, most + 1)):
            rows.append((u, min(rng.geometric(0.3) - 1, shape[0] - 1), rng.integers(shape[1])))
    return made(rows, shape)


def some(cls, epsilon=1.0, **fields):
    return dataclasses.replace(cls.example(DP(epsilon)), **fields)


MANY = [
    some(FPA),
    some(FPA, k=5),
    some(FPA, k=5, once=True, split=(0.3, 0.7)),
    some(FPA, k=99),
    some(GS),
    some(GS, width=None),
    some(GS, grouping="rowsample"),
    some(GS, grouping="rowsample", beta=1.0),
    some(GS, grouping="noisysort", width=None, split=(0.1, 0.9)),
    some(GS, grouping="random", once=True),
    some(GS, width=10**9),
    some(GS, width=1),
]
every = pytest.mark.parametrize("mechanism", MANY, ids=lambda m: repr(m)[:60])


# What holds for both


@every
@pytest.mark.parametrize("shape", [(12, 2), (1, 1), (2, 1), (1, 3)])
def test_nobody_and_one_cell_are_data(mechanism, shape):
    for rows in ([], [(0, 0, 0)]):
        release = mechanism(made(rows, shape), seeded())
        assert np.isfinite(release.estimate.edges.values).all()
        assert np.isfinite(release.estimate.items.values).all()


@every
def test_users_are_cut_to_the_bound_as_stated(mechanism):
    data = made([(0, i % 12, i % 2) for i in range(500)] + [(1, 3, 0)])
    for seed in range(5):
        kept = mechanism.bounded_data(data, seeded(seed))
        assert kept.records_per_user().max() <= 3 and len(kept) == 4
        release = mechanism(data, seeded(seed))
        assert release.bound.l1 == 3 and release.estimate.sampled
        own = kept.items[kept.users == kept.users[0]]
        assert len(set(own.tolist())) == 3 or not mechanism.once


class Measurements:
    """Noise that answers whatever the data: what would have been measured is written down.

    Both of two neighbours then get the same noisy answers and the same public random words, so that a
    later measurement can be compared between them as adaptive composition asks.
    """

    def __init__(self, monkeypatch):
        self.exact = []
        self.sensitivities = []
        for function in (noise.geometric, noise.laplace, noise.exponential_mechanism):
            monkeypatch.setattr(noise, function.__name__, self._answering(function))
        monkeypatch.setattr(noise, noise.random_words.__name__, self._words)

    def _answering(self, function):
        def measure(values, *, rng=None, **price):
            self.exact.append(np.array(values, float))
            self.sensitivities.append(float(price.get("l1", price.get("sensitivity"))))
            return function(np.zeros_like(values), **price, rng=seeded(len(self.exact)))

        return measure

    def _words(self, size, *, rng=None, names=None):
        if names is None:
            return seeded(len(self.exact)).integers(0, 2**64, size, np.uint64)
        each = ([len(self.exact), *map(int, np.ravel(name))] for name in np.transpose(names))
        words = [np.random.default_rng(one).integers(0, 2**64, dtype=np.uint64) for one in each]
        return np.array(words, np.uint64)


@every
@pytest.mark.parametrize("items", [(2, 2, 2), (0, 4, 9)], ids=["one item", "three items"])
def test_no_measurement_moves_further_than_it_is_priced_for(mechanism, items, monkeypatch):
    """A user with as many records as are counted, added to the data, moves each by its l1 at most.

    Nothing is drawn that could raise a false alarm; any sensitivity below what this user moves shows.
    """
    others = [(user, user % 12, user % 2) for user in range(30)]
    added = [(30, item, 1) for item in items]
    measured = []
    for rows in (others, others + added):
        with monkeypatch.context() as patch:
            measurements = Measurements(patch)
            mechanism(made(rows), seeded())
            measured.append(measurements)
    without, whole = measured
    assert without.sensitivities == whole.sensitivities and whole.sensitivities
    for before, after, sensitivity in zip(
        without.exact, whole.exact, whole.sensitivities, strict=True
    ):
        distances = np.abs(after - before)
        scored = before.ndim == 2  # choices: each score moves by itself
        moved = distances.max() if scored else distances.sum()
        assert moved <= sensitivity


@both
def test_a_missing_bound_is_refused_with_the_reason(cls):
    with pytest.raises(ValueError, match="bound = None.*need.*not computed from"):
        cls(DP(1.0))


@pytest.mark.parametrize(
    "cls, wrong",
    [
        *product((FPA, GS), [dict(bound=x) for x in (0, 1.5, nan)]),
        *product((FPA, GS), [dict(split=x) for x in ((0.5, 0.6), (1.0, 0.0), 0.5)]),
        *product((FPA, GS), [dict(budget=DP(1.0, 1e-6)), dict(budget=DP(inf)), dict(memory=0)]),
        *((FPA, dict(k=x)) for x in (4, 0, True)),
        (FPA, dict(largest=0)),
        (GS, dict(width=0)),
        (GS, dict(grouping="best")),
        (GS, dict(beta=0.0)),
        (GS, dict(beta=1.5)),
        (GS, dict(width=None, grouping="random")),
    ],
)
def test_bad_fields_are_refused_by_name(cls, wrong):
    with pytest.raises(ValueError, match=f"{cls.__name__}.{next(iter(wrong))} = .*(need|pure)"):
        some(cls, **wrong)


@both
def test_public_data_and_large_domains_are_refused(cls):
    with pytest.raises(ValueError, match="PUBLIC"):
        some(cls)(made([(0, 0, 0)], bound=PUBLIC))
    with pytest.raises(ValueError, match="memory = 100 is too little"):
        some(cls, memory=100)(crowd())


@pytest.mark.parametrize("mechanism", [some(FPA, k=99), some(GS, width=1)], ids=repr)
def test_with_every_coefficient_or_groups_of_one_the_error_vanishes(mechanism):
    data = crowd(most=3)
    release = dataclasses.replace(mechanism, budget=DP(1e8))(data, seeded())
    assert np.abs(release.estimate.items.values - data.item_counts()).max() < 1e-5
    assert np.abs(release.estimate.edges.values - data.edge_counts().ravel()).max() < 1e-5


# Fourier


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13, 30, 97])
def test_coefficients_are_those_of_the_literal_basis(n):
    x = seeded(n).normal(size=n)
    ours = smoothing.coefficients(x)
    np.testing.assert_allclose(ours, fourier.forward(x), atol=1e-12)
    np.testing.assert_allclose(smoothing.inverse(ours), x, atol=1e-12)
    far = smoothing.coefficients(x.astype(np.longdouble))
    assert far.dtype == np.longdouble
    np.testing.assert_allclose(far.astype(float), ours, atol=1e-13)


@pytest.mark.parametrize("n", [6, 7])
@pytest.mark.parametrize("records", [1, 2, 3])
def test_no_unit_moves_the_first_coefficients_further_than_stated(n, records):
    mechanism = some(FPA)
    for bound, cells in (
        (Bound(records, 1), fourier.distinct_cells),
        (Bound(records, records, records), fourier.any_cells),
    ):
        for k in mechanism.candidates(n).tolist():
            worst = fourier.exact_l1(k, cells(n, records))
            stated = mechanism.coefficient_sensitivity(k, n, bound)
            assert worst <= stated <= fourier.scale(k, n, 1.0, bound.l2, bound.l1) * (1 + 1e-9)


def test_one_record_of_a_user_and_item_moves_less():
    """min(√k·Δ₂, k·Δ₁/√n) at n = 12 and nine records."""
    for bound, moved in ((Bound(9, 1), 9.0), (Bound(9, 9, 9), 81 / sqrt(12))):
        assert some(FPA).coefficient_sensitivity(9, 12, bound) == pytest.approx(moved)


def test_the_golden_sensitivities():
    n, k, _, second, first = fourier.GOLDEN
    assert (
        some(FPA).coefficient_sensitivity(k, n, Bound()) == pytest.approx(second)
        and second < first
    )
    assert some(FPA).candidates(8).tolist() == fourier.ks(8)
    assert some(FPA).candidates(9).tolist() == fourier.ks(9)


@pytest.mark.parametrize("n", [64, 997, 1000])
def test_the_transform_rounds_less_than_stated(n):
    """Of integers as large as allowed; the exact coefficients by sums of high precision."""
    mechanism = some(FPA, largest=2**24)
    x = seeded(n).integers(0, 2**24, n, endpoint=True)
    ours = smoothing.coefficients(x.astype(np.longdouble))
    for f in (0, 1, n // 3):
        with localcontext() as context:
            context.prec = 40
            cosines = [_cosine(Fraction(f * t % n, n)) for t in range(n)]
            exact = sum(c * int(v) for c, v in zip(cosines, x, strict=True))
            exact *= (Decimal(2 if f else 1) / n).sqrt()
            got = Decimal(int(ours[2 * f - 1 if f else 0] * 2**44)) / 2**44
            assert abs(got - exact) <= Decimal(mechanism.rounding_error(n)) + Decimal(2) ** -44


def _cosine(turn):
    """cos(2π·turn) to 35 digits, by its series."""
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582")
    turn = turn if turn <= Fraction(1, 2) else 1 - turn
    x = 2 * pi * turn.numerator / turn.denominator
    term = total = Decimal(1)
    for i in range(1, 60):
        term = -term * x * x / ((2 * i - 1) * (2 * i))
        total += term
    return total


@runs(1000, 3000)
@pytest.mark.parametrize("k", [1, 5, 11, None])
def test_released_items_have_the_law_of_the_procedure(k, n):
    data = crowd(most=3)
    counts = data.item_counts().tolist()
    mechanism = some(FPA, 2.0, k=k)
    rng, literal = seeded(5), seeded(6)
    ours = np.array([mechanism(data, rng).estimate.items.values for _ in range(n)])
    l1, l2 = 3, 3
    if k is None:
        theirs = [fourier.efpa(counts, 1.0, l2, literal, l1) for _ in range(n)]
    else:
        scale = fourier.scale(k, 12, 1.0, l2, l1)
        theirs = [fourier.fpa(counts, k, scale, literal) for _ in range(n)]
    theirs = np.array(theirs)
    for j in (0, 3, 11):
        assert same_law(ours[:, j], theirs[:, j]) > 1e-6
    assert same_law(ours.max(axis=1), theirs.max(axis=1)) > 1e-6


def test_counts_are_cut_at_the_largest():
    data = made([(u, 0, 0) for u in range(50)], (4, 1))
    got = some(FPA, 1e6, k=99, largest=10)(data, seeded()).estimate.items.values
    assert got == pytest.approx([10, 0, 0, 0], abs=0.01)


# Grouping


@pytest.mark.parametrize(
    "n, w", [(12, 5), (12, 4), (7, 3), (7, 7), (100, 7), (101, 10), (5, 1)]
)
def test_groups_are_those_of_the_procedure(n, w):
    starts = some(GS).group_starts(n, w)
    parts = grouping.groups(range(n), w)
    assert starts.tolist() == [part[0] for part in parts]
    assert np.diff(starts, append=n).tolist() == [len(part) for part in parts]


def test_a_width_beyond_the_domain_is_one_group():
    assert some(GS).group_starts(5, 9).tolist() == [0]
    assert some(GS).candidate_widths(1) == [1] and some(GS).candidate_widths(
        9
    ) == grouping.widths(9)


@runs(1300, 4000)
@pytest.mark.parametrize("variant", ["onesample", "rowsample", "noisysort", "random"])
def test_released_items_have_the_law_of_the_procedure_by_groups(variant, n):
    rng, d = seeded(8), 8
    rows = (rng.random((25, d)) < np.linspace(0.05, 0.5, d)).astype(int)
    data = made([(u, j, 0) for u, j in zip(*np.nonzero(rows), strict=True)], (d, 1))
    told = {"onesample": "one sample", "rowsample": "row sample", "noisysort": "noisy sort"}
    mechanism = some(GS, 4.0, bound=3, width=3, grouping=variant, beta=0.25)
    ours = np.array([mechanism(data, rng).estimate.items.values for _ in range(n)])
    theirs = []
    for _ in range(n):
        kept = [grouping.truncate(row, 3, rng) for row in rows.tolist()]
        counts, order, eps2 = grouping.column_counts(kept, d), rng.permutation(d).tolist(), 2.0
        if variant != "random":
            noisy, _ = grouping.noisy_sample_counts(
                kept, d, 3, 1.0, told[variant], rng, 0.25, "geometric"
            )
            order, eps2 = grouping.ascending(noisy), 1.0
        theirs.append(grouping.release_sums(counts, grouping.groups(order, 3), 3, eps2, rng))
    theirs = np.array(theirs)
    for j in (0, 4, 7):
        assert same_law(ours[:, j], theirs[:, j]) > 1e-6
    assert same_law(ours.max(axis=1), theirs.max(axis=1)) > 1e-6


def test_a_group_shares_one_value_and_its_sum_is_whole():
    release = some(GS, width=5)(crowd(), seeded())
    for part, n in (("items", 12), ("edges", 24)):
        values = getattr(release.estimate, part).values
        different, sizes = np.unique(values, return_counts=True)
        assert len(different) <= n // 5 and sizes.sum() == n
        assert (np.abs(different * sizes - np.rint(different * sizes)) < 1e-9).all()


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 20.0, 1e6])
@pytest.mark.parametrize("beta", [2.0**-20, 0.1, 0.5, 1.0])
def test_a_sample_is_worth_more_and_costs_no_more(epsilon, beta):
    worth = some(GS, grouping="rowsample", beta=beta).amplified_epsilon(epsilon)
    assert worth >= epsilon
    if epsilon < 100:
        assert worth == pytest.approx(grouping.amplified(epsilon, beta), rel=1e-12)
        assert grouping.cost_of_sample(worth, beta) <= epsilon * (1 + 1e-14)
    else:
        assert worth + log(beta) <= epsilon


def test_rowsample_keeps_whole_users_with_the_stated_chance():
    """Seeded: never by chance; sees a chance that is off by 0.05."""
    data = made([(u, u % 12, 0) for u in range(3000) for _ in range(3)])
    some_users = some(GS, grouping="rowsample", beta=0.25)._sampled_users(data, seeded())
    assert (some_users.records_per_user() == 3).all()
    kept = len(some_users.records_per_user())
    assert stats.binomtest(kept, 3000, 0.25).pvalue > RARE


@pytest.mark.parametrize("seed", range(4))
def test_the_width_is_that_of_the_procedure(seed):
    rng = seeded(seed)
    noisy = np.round(rng.pareto(1.0, 37) * 30) + rng.integers(-4, 5, 37)
    scale, factor, l1, eps2 = 2.0, 3.5, 40, 0.5
    mechanism = some(GS)
    variance = geometric.variance_of_either(scale, "geometric")
    ours = mechanism.suggested_width(noisy, variance, factor, l1, eps2)
    assert ours == grouping.choose_width(noisy, scale, factor, l1, eps2, "geometric")


@pytest.mark.parametrize("k", [3, 5])
def test_the_rounding_of_a_transform_is_paid_for(k, monkeypatch):
    """Noise is for the coefficients, what the transform rounds, and a step of the grid for each."""
    seen, real = [], noise.laplace

    def look(values, **told):
        seen.append(told)
        return real(values, **told)

    monkeypatch.setattr(noise, "laplace", look)
    mechanism, data = FPA(DP(1.0), bound=3, k=k), crowd()
    mechanism(data, np.random.default_rng(0))
    kept = mechanism.bounded_data(data, np.random.default_rng(0))
    for told, n in zip(seen, (data.domain.shape[0], data.domain.size), strict=True):
        taken = min(k, n)
        least = mechanism.coefficient_sensitivity(
            taken, n, kept.bound
        ) + 2 * taken**0.5 * mechanism.rounding_error(n)
        assert told["l0"] == taken and told["l1"] >= least
