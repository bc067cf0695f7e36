"""SRA, HPA and LPA against the slow reference, and the tables that they release."""

import dataclasses
from math import inf

import numpy as np
import pytest

from tests.agreement import runs, seeded
from tests.reference import sampling
from workbench import (
    DP,
    UNBOUNDED,
    Bound,
    Domain,
    Interactions,
    RandomSubsets,
    Ranges,
    noise,
)
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.mechanisms import HPA, LPA, SRA
from workbench.noise import variance

ITEMS, CONTEXTS = (0, 1, 2, 3), (0, 1)
DOMAIN = Domain(("shop", "day"), (4, 2))
RECORDS = {
    0: [(0, 0), (0, 1), (0, 1), (1, 0), (2, 1), (3, 0)],
    1: [(1, 0), (1, 0), (2, 0), (2, 1)],
    2: [(3, 1)],
    3: [(0, 0), (0, 0), (3, 1), (2, 1), (1, 1)],
}
CELLS = Ranges(np.arange(8), np.arange(1, 9))
B = DP(1.0)


def made(records=RECORDS, bound=UNBOUNDED):
    flat = [(u, i, c) for u, own in records.items() for i, c in own]
    columns = zip(*flat, strict=True) if flat else ([], [], [])
    return Interactions.from_codes(DOMAIN, *map(list, columns), bound, truth_public=True)


def alike(ours, theirs):
    """Two samples of vectors with the same means and spreads, within five standard errors."""
    ours, theirs = np.array(ours, float), np.array(theirs, float)
    for moment in (lambda x: x, lambda x: (x - theirs.mean(axis=0)) ** 2):
        a, b = moment(ours), moment(theirs)
        error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) <= 5 * error + 1e-9).all()


def flattened(q1, q2):
    return [*q1.values(), *q2.values()]


def drawn(mechanism, times, data=None):
    data, rng = data or made(), seeded(1)
    tables = [mechanism(data, rng).estimate for _ in range(times)]
    return [np.concatenate([t.items.values, t.edges.values]) for t in tables]


@runs(1000, 3000)
@pytest.mark.parametrize(("l", "split"), [(1, (0.5, 0.5)), (2, (0.25, 0.75)), (9, (0.5, 0.5))])
def test_sra_is_the_references(l, split, n):  # noqa: E741
    epsilon, rng = 3.0, seeded(2)
    parts = [epsilon * s for s in split]
    theirs = [
        flattened(*sampling.sra(RECORDS, ITEMS, CONTEXTS, l, *parts, rng)) for _ in range(n)
    ]
    ours = drawn(SRA(DP(epsilon), l, split), n)
    alike(ours, theirs)
    for item in ITEMS:
        mean, spread = map(float, sampling.moments_sra(RECORDS, item, l))
        spread += variance(l, parts[0], "geometric")
        got = np.array(ours)[:, item]
        assert got.mean() == pytest.approx(mean, abs=5 * np.sqrt(spread / len(got)))


@runs(1000, 3000)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("l", "d"), [(2, 1), (4, 3)])
def test_hpa_is_the_references(l, d, share, n):  # noqa: E741
    epsilon, rng = 5.0, seeded(3)
    eps = [0.2 * epsilon, 0.4 * epsilon, 0.4 * epsilon]
    told = RECORDS, ITEMS, CONTEXTS, l, d, share, *eps, rng
    theirs = [flattened(*sampling.hybrid(*told)) for _ in range(n)]
    alike(drawn(HPA(DP(epsilon), l, d, 0.2, share), n), theirs)


@runs(1000, 3000)
def test_lpa_drops_what_exceeds_its_bound_at_random(n):
    theirs_rng, told = seeded(4), (RECORDS, ITEMS, CONTEXTS, 4, 2.0, 2.0)
    theirs = [flattened(*sampling.sra(*told, theirs_rng)) for _ in range(n)]
    alike(drawn(LPA(DP(4.0), 4), n), theirs)


def test_a_score_of_ones_own_costs_nothing():
    release = HPA(DP(1e6), 1, score=(0.0, 3, 2, 1))(made(), seeded())
    assert release.estimate.items.values.tolist() == [0, 3, 0, 1]
    assert len(release.ledger) == 2 and release.privacy == DP(1e6)
    with pytest.raises(ValueError, match="HPA.score has 3 numbers: need 4"):
        HPA(B, 1, score=(1, 2, 3))(made())


def test_noise_is_for_what_one_user_can_have():
    for bound, l1 in ((UNBOUNDED, 5), (Bound(3, 3, 3), 3), (Bound(50, 1), 5)):
        release = LPA(B, 5)(made(bound=bound), seeded())
        assert release.estimate.items.variance == variance(l1, 0.5, "geometric")
        assert release.bound.l1 == l1
        kept = LPA(B, 5).bounded_data(made(bound=bound), seeded())
        assert (
            kept.records_per_user().max() <= l1
        )  # cut to what the noise is for, whatever is said


@pytest.mark.parametrize("d, l1", [(2, 2), (5, 3)])
def test_every_look_is_priced_for_what_a_user_moves(d, l1, monkeypatch):
    """HPA's popularity costs as much as d records of a user, and its counts as l."""
    seen, real = [], noise.add_noise

    def look(values, *, l1, epsilon, **options):
        seen.append((l1, epsilon))
        return real(values, l1=l1, epsilon=epsilon, **options)

    monkeypatch.setattr(noise, "add_noise", look)
    release = HPA(B, 3, d)(made(bound=Bound(3, 3, 3)), seeded())
    assert seen[0] == (l1, pytest.approx(0.1)) and [x for x, _ in seen] == [l1, 3, 3]
    assert sum(e for _, e in seen) == pytest.approx(release.privacy.epsilon)


@pytest.mark.parametrize("bound", [Bound(1), Bound(2, 2, 2), Bound(3, 1)])
def test_a_bound_that_is_not_true_is_made_true(bound):
    """A user with ten records of two items, whatever the caller says of them."""
    data = Interactions.from_codes(
        Domain(("item", "day"), (4, 2)), [0] * 10, [0, 1] * 5, [0] * 10, bound
    )
    for kept in (
        data.bounded(8, seeded()),
        data.one_per_item(seeded()),
        data.top_scored(8, np.arange(4), seeded()),
        SRA(B, 8).bounded_data(data, seeded()),
        HPA(B, 8, 2).bounded_data(data, seeded()),
        LPA(B, 8).bounded_data(data, seeded()),
    ):
        counts = kept.item_counts()
        assert counts.sum() <= kept.bound.l1 and counts.max() <= kept.bound.linf


def test_what_must_be_stated_is_refused_with_the_reason():
    for make, said in (
        (lambda: LPA(B), "LPA.bound = None .* from public knowledge"),
        (lambda: HPA(B, 3), "HPA.d = None .* from public knowledge"),
        (lambda: HPA(B, 3, 1, score=(1, 2)), "HPA.d = 1 .* need d = None"),
        (lambda: HPA(B, 3, 0), "HPA.d = 0 .* an integer >= 1"),
        (lambda: SRA(B, 0), "SRA.l = 0 .* an integer >= 1"),
        (lambda: SRA(B, 2.0), "SRA.l = 2.0"),
        (lambda: SRA(B, True), "SRA.l = True"),
        (lambda: SRA(B, "guess"), "SRA.l = 'guess' .* or 'suggested'"),
        (lambda: SRA(B, "suggested", n=3, bound=4), "SRA.popularity = None .* public"),
        (lambda: SRA(B, 3, (0.5, 0.6)), "SRA.split = .* add up to 1"),
        (lambda: SRA(B, 3, (0.0, 1.0)), "SRA.split"),
        (lambda: SRA(B, 3, 0.5), "SRA.split"),
        (lambda: HPA(B, 3, 1, 1.0), "HPA.popularity_share = 1"),
        (lambda: HPA(B, 3, 1, 0), "HPA.popularity_share = 0"),
        (lambda: HPA(B, 3, score=(1, float("nan"))), "HPA.score"),
        (lambda: HPA(B, 3, score=[1, 2]), "HPA.score"),
        (lambda: SRA(B, 3, total=0), "SRA.total = 0"),
        (lambda: SRA(B, "suggested", n=3, bound=4, popularity=()), "SRA.popularity"),
        (lambda: SRA(DP(inf), 3), "SRA.budget"),
        (lambda: SRA(DP(1.0, 0.1), 3), "SRA.budget"),
        (lambda: SRA(B, 3, memory=100)(made()), "SRA.memory = 100 is too little"),
        (lambda: SRA(B, 3)(made(), rng=5), "rng = 5"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            make()


# The suggested l


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
@pytest.mark.parametrize("p", [(1.0, 1.0, 1.0, 1.0), (8.0, 1.0, 0.5, 0.0)])
@pytest.mark.parametrize(("n", "most"), [(5, 3), (300, 20), (20_000, 300)])
def test_the_suggested_l_has_the_least_error_of_the_model(n, most, p, epsilon):
    mechanism = SRA(DP(2 * epsilon), "suggested", n=n, bound=most, popularity=p)
    shares = [x / sum(p) for x in p]
    assert mechanism.sampling_factor(4) == sampling.best_whole_l(
        n, most, shares, epsilon, "actual count"
    )
    scored = HPA(DP(2 * epsilon), "suggested", score=p, n=n, bound=most, popularity=p)
    assert scored.sampling_factor(4) == mechanism.sampling_factor(4)


def test_the_suggested_l_grows_with_epsilon_and_is_used():
    told = dict(n=1000, bound=50, popularity=1.0)
    ls = [
        SRA(DP(e), "suggested", **told).sampling_factor(4) for e in np.geomspace(1e-4, 10, 30)
    ]
    assert ls == sorted(ls) and ls[0] == 1 and ls[-1] == 50
    extreme = SRA(DP(1e-200), "suggested", n=2**53, bound=9, popularity=(1e308,) * 4)
    assert extreme.sampling_factor(4) == 1
    few = SRA(DP(0.02), "suggested", n=10, bound=50, popularity=1.0)
    assert few.sampling_factor(4) == few(made(), seeded()).bound.l1
    with pytest.raises(ValueError, match="popularity has 2 weights: need 4"):
        dataclasses.replace(few, popularity=(1, 2))(made())


# The tables


def tables(v=4.0, w=9.0, m=5, h=3, seed=0):
    """Noise alone: estimates of a truth of zeros."""
    rng, domain = seeded(seed), Domain(("a", "b"), (m, h))
    return ItemEdgeCounts(
        Histogram(domain.project(["a"]), rng.normal(0, v**0.5, m), v),
        Histogram(domain, rng.normal(0, w**0.5, m * h), w),
    )


def test_consistent_tables_are_the_weighted_least_squares():
    t = tables()
    made = t.consistent()
    m, h = t.domain.shape
    design = np.vstack([np.kron(np.eye(m), np.ones(h)), np.eye(m * h)])
    seen = np.concatenate([t.items.values, t.edges.values])
    weight = np.diag(np.concatenate([np.full(m, 1 / 4), np.full(m * h, 1 / 9)]))
    spread = np.linalg.inv(design.T @ weight @ design)
    best = spread @ design.T @ weight @ seen
    np.testing.assert_allclose(made.edges.values, best)
    np.testing.assert_allclose(made.items.values, best.reshape(m, h).sum(axis=1))
    assert made.edges.variance == pytest.approx(spread[0, 0])
    assert made.covariance == pytest.approx(spread[0, 1])
    assert made.items.variance == pytest.approx((design[:m] @ spread @ design[:m].T)[0, 0])
    for lo in range(m * h):
        for hi in range(lo, m * h + 1):
            one = np.zeros(m * h)
            one[lo:hi] = 1
            _, bar = made.answer(Ranges([lo], [hi]), error=True)
            assert bar[0] == pytest.approx(np.sqrt(one @ spread @ one), abs=1e-9)
    with pytest.raises(ValueError, match="independent"):
        made.consistent()


def test_error_bars_of_any_cells_of_consistent_tables():
    from workbench import Boxes, Subsets

    t = tables(m=4, h=3).consistent()
    _, apart = t.answer(Subsets.of([[0, 2, 3, 11], [4], range(12)]), error=True)
    cov = np.kron(np.eye(4), np.full((3, 3), t.covariance))
    np.fill_diagonal(cov, t.edges.variance)
    for bar, cells in zip(apart, ([0, 2, 3, 11], [4], range(12)), strict=True):
        one = np.isin(np.arange(12), list(cells)) * 1.0
        assert bar == pytest.approx(np.sqrt(one @ cov @ one))
    one = np.zeros((4, 3))
    one[1:4, 0:2] = 1
    _, bar = t.answer(Boxes([[1, 0]], [[4, 2]]), error=True)
    assert bar[0] == pytest.approx(np.sqrt(one.ravel() @ cov @ one.ravel()))
    _, scattered = t.answer(RandomSubsets(3, 2, 0), error=True)
    assert np.isnan(scattered).all()


def test_where_records_may_be_dropped_no_error_bar_is_told():
    for bound in (UNBOUNDED, Bound(7, 7, 7)):
        release = SRA(B, 6)(made(bound=bound), seeded())
        answers = release.answer(CELLS, error=True)
        assert release.estimate.sampled and np.isnan(answers.errors).all()
        assert answers.noise == pytest.approx(np.sqrt(variance(6, 0.5, "geometric")))
    with pytest.raises(ValueError, match="of = 'all'"):
        release.answer(CELLS, of="all")


def test_one_common_factor_scales_both_tables():
    plain = SRA(DP(50.0), 2)(made(), seeded()).estimate
    scaled = SRA(DP(50.0), 2, total=160.0)(made(), seeded()).estimate
    assert scaled.items.values.sum() == pytest.approx(160)
    factor = scaled.items.values / plain.items.values
    assert factor == pytest.approx(factor[0]) and scaled.items.variance is None
    np.testing.assert_allclose(scaled.edges.values, factor[0] * plain.edges.values)
    both = SRA(DP(50.0), 2, total=160.0, consistent=True)(made(), seeded()).estimate
    np.testing.assert_allclose(both.edges.values.reshape(4, 2).sum(axis=1), both.items.values)
    wild = LPA(B, 10**6, total=16)(made({}), seeded()).estimate  # noise alone is not blown up
    assert np.abs(wild.items.values).max() < 16 * 10


def test_a_consistent_release_is_that_of_the_plain_ones_tables():
    plain = HPA(B, 2, 1)(made(), seeded()).estimate.consistent()
    made_so = HPA(B, 2, 1, consistent=True)(made(), seeded()).estimate
    np.testing.assert_array_equal(plain.edges.values, made_so.edges.values)


def test_the_kept_records_can_be_had_again_from_the_seed():
    for mechanism in (SRA(DP(1e7), 2), HPA(DP(1e7), 2, 1), LPA(DP(1e7), 3)):
        for seed in range(5):
            kept = mechanism.bounded_data(made(), seeded(seed))
            release = mechanism(made(), seeded(seed))
            assert (kept.edge_counts().ravel() == release.estimate.edges.values).all()


def test_tables_name_their_columns():
    release = SRA(B, 2)(made())
    assert len(release.to_frame()) == len(release.estimate) == 8
    assert list(release.to_frame().columns) == ["shop", "day", "count", "sd", "low", "high"]
    assert list(release.estimate.items.to_frame().columns) == ["shop", "noisy"]
    assert repr(release.estimate) == "<ItemEdgeCounts of shop × day: 8 of 8 cells>"


def test_tables_must_fit():
    domain = Domain(("a", "b"), (2, 2))
    with pytest.raises(ValueError, match="ItemEdgeCounts.items .* do not fit"):
        ItemEdgeCounts(
            Histogram(Domain(("b",), (2,)), np.zeros(2)), Histogram(domain, np.zeros(4))
        )


def test_popularity_is_the_noisy_count_that_is_paid_for():
    """Of data that no cut changes: counts as `noise.geometric` makes them of the same seed."""
    data = made()
    most = int(data.records_per_user().max())
    mechanism = HPA(DP(0.5), 1, most)
    seen = set()
    for seed in range(5):
        scores, (receipt,) = mechanism.scores(data, seeded(seed))
        assert receipt.cost.epsilon == mechanism.budgets()[0]
        seen.add(tuple(scores))
    assert len(seen) > 1
