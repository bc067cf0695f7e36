"""The slow references for sampled, grouped and Fourier counts against the notes' numbers, closed
forms and themselves. Nothing of the project is imported here.
"""

# ruff: noqa: E741  (l is the paper's letter)

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from tests.reference import exponential, fourier, geometric, grouping, sampling

ITEMS = "abcd"
CONTEXTS = (0, 1)
RECORDS = {
    "one": [("a", 0), ("a", 1), ("a", 1), ("b", 0), ("c", 1), ("d", 0)],
    "two": [("b", 0), ("b", 0), ("c", 0), ("c", 1)],
    "three": [("d", 1)],
    "four": [],
}
POPULARITY = {"a": Fraction(1, 2), "b": Fraction(1, 4), "c": Fraction(1, 4), "d": Fraction(0)}


def close_to_mean(samples, mean):
    """The mean of the samples, within five standard errors."""
    samples = np.asarray(samples, float)
    error = samples.std() / math.sqrt(len(samples))
    assert abs(samples.mean() - mean) < 5 * error + 1e-12, (samples.mean(), mean, error)


# Sampling


@pytest.mark.parametrize("l", [1, 2, 3, 5, 6, 7])
@pytest.mark.parametrize("item", ITEMS)
def test_moments_of_sra_by_enumeration(l, item):
    exact = sampling.moments_sra(RECORDS, item, l)
    assert exact == sampling.moments_given_popularity(RECORDS, item, l, 1, POPULARITY)
    assert exact[0] == sampling.count_items(RECORDS, ITEMS)[item] - sampling.lost_by_sra(
        RECORDS, item, l
    )


@pytest.mark.parametrize("l", [1, 3, 6])
def test_covariances_of_sra_add_up(l):
    """A user's kept records are a fixed number, so that the items' total does not vary."""
    total = sum(sampling.moments_sra(RECORDS, item, l)[1] for item in ITEMS)
    for first, second in itertools.permutations(ITEMS, 2):
        total += sampling.covariance_sra(RECORDS, first, second, l)
    assert total == 0


def test_sra_in_law():
    rng = np.random.default_rng(1)
    counts = {item: [] for item in ITEMS}
    edges = []
    for _ in range(4000):
        q1, q2 = sampling.sra(RECORDS, ITEMS, CONTEXTS, 2, 1.5, 0.5, rng)
        assert list(q1) == list(ITEMS) and len(q2) == 8
        for item in ITEMS:
            counts[item].append(q1[item])
        edges.append(q2["a", 1])
    for item in ITEMS:
        mean, variance = sampling.moments_sra(RECORDS, item, 2)
        close_to_mean(counts[item], float(mean))
        noise = geometric.variance(math.exp(-1.5 / 2))
        close_to_mean((np.array(counts[item]) - float(mean)) ** 2, float(variance) + noise)
    close_to_mean(edges, 2 * 2 / 6)
    truth = sampling.count_items(RECORDS, ITEMS)
    squares = sum((np.array(counts[item]) - truth[item]) ** 2 for item in ITEMS)
    close_to_mean(squares, sampling.error_sra(RECORDS, ITEMS, 2, 1.5))


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_choices_are_what_is_drawn(share):
    mine, rng = RECORDS["one"], np.random.default_rng(2)
    law = sampling.choices(mine, 4, share, POPULARITY)
    assert sum(law.values()) == 1 and all(len(kept) == 4 for kept in law)
    marked = [(item, place) for place, (item, _) in enumerate(mine)]
    seen = dict.fromkeys(law, 0)
    for _ in range(6000):
        kept = sampling.mixed(marked, 4, share, POPULARITY, rng)
        seen[frozenset(place for _, place in kept)] += 1  # no set outside the law
    for kept, chance in law.items():
        spread = math.sqrt(6000 * chance * (1 - chance))
        assert abs(seen[kept] - 6000 * chance) <= 5 * spread


def test_hpa_keeps_the_popular_and_breaks_ties_by_record():
    law = sampling.choices(RECORDS["one"], 4, 0, POPULARITY)  # three a; b and c tie
    assert law == {
        frozenset({0, 1, 2, 3}): Fraction(1, 2),
        frozenset({0, 1, 2, 4}): Fraction(1, 2),
    }
    law = sampling.choices(
        RECORDS["two"], 3, 0, POPULARITY
    )  # copies of b need not stay together
    assert len(law) == 4 and set(law.values()) == {Fraction(1, 4)}


def test_popularity_of_nothing_is_uniform():
    assert sampling.normalised({"a": -3, "b": 0}) == {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    assert sampling.normalised({"a": -3, "b": 2, "c": 6})["c"] == Fraction(3, 4)


def test_hpa_with_good_popularity():
    rng = np.random.default_rng(3)
    kept = []
    for _ in range(500):
        q1, q2 = sampling.hpa(RECORDS, ITEMS, CONTEXTS, 2, 6, 1e4, 1e4, 1e4, rng)
        assert sum(q1.values()) == sum(q2.values()) == 5
        kept.append((q1["a"], q1["b"], q1["c"], q1["d"]))
    # true counts: a 3, b 3, c 3, d 2
    assert {row[3] for row in kept} == {1}
    close_to_mean([row[0] for row in kept], 2 * Fraction(3, 5))
    shares = {sampling.random_records(5, share) for share in (0.1, 0.3, 0.5)}
    assert shares == {0, 2}  # halves to even: 0.5, 1.5, 2.5


def test_hybrid_ends_are_sra_and_hpa():
    for item in ITEMS:
        sra = sampling.moments_given_popularity(RECORDS, item, 3, 1, POPULARITY)
        assert sra == sampling.moments_sra(RECORDS, item, 3)
    rng = np.random.default_rng(4)
    q1, _ = sampling.hybrid(RECORDS, ITEMS, CONTEXTS, 3, 1, 0.5, 1e4, 1e4, 1e4, rng)
    assert sum(q1.values()) == 3 + 3 + 1


# The best l


def test_goldens_of_the_best_l():
    found = [sampling.best_l(300, 20, [0.03], 0.5, form) for form in sampling.FORMS]
    assert found == pytest.approx([18.154, 18.153, 18.251], abs=5e-4)
    assert 300 * 5 * 0.03 * 0.97 == pytest.approx(43.65)  # true sampling variance at l = 5
    assert 300 * 5 * 0.03 * (1 - 0.03 * 5 / 20) == pytest.approx(44.66, abs=5e-3)  # as printed


@pytest.mark.parametrize("form", sampling.FORMS)
@pytest.mark.parametrize("popularity", [[0.03], [0.2, 0.05, 0.001], [0.7, 0.3]])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2])
def test_best_l_is_the_minimiser(form, popularity, epsilon):
    exact = sampling.best_l(300, 20, popularity, epsilon, form)
    error = lambda l: sampling.modelled_error(l, 300, 20, popularity, epsilon, form)
    step = 1e-3
    assert error(exact) <= min(error(exact - step), error(exact + step))
    searched = scipy.optimize.minimize_scalar(error, bracket=(0, 10)).x
    assert exact == pytest.approx(searched, rel=1e-5, abs=1e-4)
    whole = sampling.best_whole_l(300, 20, popularity, epsilon, form)
    clipped = min(max(exact, 1), 20)
    assert whole in (math.floor(clipped), math.ceil(clipped))


@pytest.mark.parametrize(
    ("users", "records", "p"), [(2, 3, "1/3"), (3, 4, "1/10"), (1, 4, "9/10")]
)
def test_only_the_actual_count_is_the_true_error(users, records, p):
    p = Fraction(p)
    true = {}
    for l in range(1, records + 1):
        true[l] = float(sampling.true_error(l, users, records, p, Fraction(2 * l**2)))
        modelled = sampling.modelled_error(l, users, records, [float(p)], 1, "actual count")
        assert true[l] == pytest.approx(modelled, rel=1e-12)
    best = min(true, key=lambda l: (true[l], l))
    assert best == sampling.best_whole_l(users, records, [float(p)], 1, "actual count")


def test_best_l_of_rare_and_of_common_items():
    # rare: positive, but far below 1 all the same; printed: negative
    assert 0 < sampling.best_l(10, 20, [0.001], 0.1, "actual count") < 1e-4
    assert sampling.best_l(10, 20, [0.001], 0.1, "printed") < 0
    # common, much budget: above M
    assert sampling.best_l(10, 20, [0.9], 1e6, "actual count") > 20
    assert sampling.best_l(10, 20, [0.9], 1e6, "printed") > 20
    assert sampling.best_l(10, 20, [0.4], 1e6, "printed") < 20


@pytest.mark.parametrize("epsilon", [0.3, 1, 4])
@pytest.mark.parametrize("distinct", [True, False])
def test_best_l_of_data(epsilon, distinct):
    rng = np.random.default_rng(15)
    records = {}
    for user in range(12):
        chosen = rng.choice(6, 5, replace=not distinct, p=np.array([6, 5, 4, 3, 2, 1]) / 21)
        records[user] = [(int(item), 0) for item in chosen]
    exact = sampling.best_l_of_data(records, range(6), epsilon)
    errors = [
        sampling.error_sra(records, range(6), l, epsilon, "laplace") for l in (1, 2, 3, 4, 5)
    ]
    curve = np.polyfit([1, 2, 3, 4, 5], errors, 2)  # it is a parabola in l
    assert np.polyval(curve, [1, 2, 3, 4, 5]) == pytest.approx(errors)
    assert exact == pytest.approx(-curve[1] / (2 * curve[0]))
    clipped = min(max(exact, 1), 5)
    whole = sampling.best_whole_l_of_data(records, range(6), epsilon, "laplace")
    assert whole in (math.floor(clipped), math.ceil(clipped))


def test_best_l_of_a_single_record_of_the_item():
    """Error 1 - l/M + 2 l^2/epsilon^2, least at epsilon^2/(4M); with p = 1/(nM) in its place
    "actual count" says about three times that.
    """
    records = {0: [("a", 0)] + [("b", 0)] * 9}
    epsilon, m = 0.1, 10
    for l in range(1, 11):
        mean, variance = sampling.moments_sra(records, "a", l)
        assert variance + (1 - mean) ** 2 == 1 - Fraction(l, m)
    averaged = sampling.best_l(1, m, [1 / m], epsilon, "actual count")
    assert averaged == pytest.approx((3 - 1 / m) * epsilon**2 / (4 * m), rel=0.01)


def test_best_l_grows_with_epsilon():
    for form in sampling.FORMS:
        ls = [sampling.best_l(300, 20, [0.03, 0.01], e, form) for e in (0.01, 0.1, 1, 10)]
        assert ls == sorted(ls)


def test_two_tables_of_one_sample():
    week = sampling.variances_split(7)
    assert week["items, least squares"] == 7 and week["items, edges only"] == 14
    assert sampling.variances_split(6)["items, least squares"] == Fraction(48, 7)
    # least squares by hand: h edges and their sum
    for h in (6, 7):
        design = np.vstack([np.eye(h), np.ones(h)])
        covariance = 8 * np.linalg.inv(design.T @ design)
        found = sampling.variances_split(h)
        assert covariance.sum() == pytest.approx(float(found["items, least squares"]))
        assert covariance[0, 0] == pytest.approx(float(found["edges, least squares"]))


# Grouping


@pytest.mark.parametrize(("d", "w", "d_max", "delta"), grouping.RAGGED)
def test_goldens_of_the_ragged_group(d, w, d_max, delta):
    assert grouping.sensitivity(grouping.ragged_groups(range(d), w), d_max) == delta
    assert grouping.sensitivity(grouping.groups(range(d), w), d_max) == Fraction(d_max, w)


def test_sensitivity_of_merged_groups():
    """At most d_max/w always; that much only if d_max ones fit into the groups of exactly w."""
    for d in range(1, 9):
        for w in range(1, d + 1):
            parts = grouping.groups(range(d), w)
            assert sorted(itertools.chain(*parts)) == list(range(d))
            assert all(w <= len(part) < 2 * w for part in parts)
            room = sum(len(part) for part in parts if len(part) == w)
            for d_max in range(1, d + 1):
                exact = grouping.sensitivity(parts, d_max)
                assert exact == grouping.sensitivity_by_rows(parts, d_max) <= Fraction(d_max, w)
                assert (exact == Fraction(d_max, w)) == (d_max <= room)
                assert exact <= len(parts)
    with pytest.raises(ValueError, match="w must be"):
        grouping.groups(range(5), 6)  # d_max/w would be too little noise for a group of 5


def test_one_sample_has_sensitivity_one():
    rows = [[1, 1, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]
    rng = np.random.default_rng(5)
    drawn = [grouping.one_each(rows, rng) for _ in range(3000)]
    for sample in drawn[:50]:
        assert [sum(row) for row in sample] == [1, 0, 1]
    means = grouping.one_each_means(rows, 4)
    assert means == [Fraction(1, 3), Fraction(4, 3), 0, Fraction(1, 3)]
    for j in range(4):
        counts = [grouping.column_counts(sample, 4)[j] for sample in drawn]
        close_to_mean(counts, float(means[j]))


@pytest.mark.parametrize("beta", [0.1, 0.5, 1])
@pytest.mark.parametrize("eps1", [0.1, 1])
def test_amplification(eps1, beta):
    inner = grouping.amplified(eps1, beta)
    assert grouping.cost_of_sample(inner, beta) == pytest.approx(eps1)
    # one count, with and without one user: the law is a mixture, ratio at most e^eps1
    alpha, worst = geometric.alpha_for(inner), 0.0
    for x in range(-40, 41):
        out = geometric.pmf(x, alpha)
        into = (1 - beta) * out + beta * geometric.pmf(x - 1, alpha)
        worst = max(worst, abs(math.log(into / out)))
    assert worst == pytest.approx(eps1)


def test_truncation_is_uniform():
    rng = np.random.default_rng(6)
    kept = [grouping.truncate([1, 0, 1, 1, 1], 2, rng) for _ in range(3000)]
    assert {sum(row) for row in kept} == {2}
    for j, share in enumerate((0.5, 0, 0.5, 0.5, 0.5)):
        close_to_mean([row[j] for row in kept], share)


@pytest.mark.parametrize("noise", ["laplace", "geometric"])
def test_error_of_smoothing(noise):
    counts, parts = [5, 6, 0, 1, 9, 9, 8], [[2, 3], [0, 1], [4, 5, 6]]
    rng = np.random.default_rng(7)
    errors = []
    for _ in range(4000):
        published = grouping.smooth(counts, parts, 3 / 2, 0.7, rng, noise)
        errors.append(np.mean((np.array(published) - counts) ** 2))
    close_to_mean(errors, grouping.expected_error(counts, parts, 3 / 2, 0.7, noise))


def test_noise_on_sums_is_less_in_merged_groups():
    counts, parts = [0] * 7, [[0, 1], [2, 3], [4, 5, 6]]
    rng = np.random.default_rng(8)
    drawn = np.array([grouping.release_sums(counts, parts, 3, 0.7, rng) for _ in range(4000)])
    variance = geometric.variance(math.exp(-0.7 / 3))
    close_to_mean(drawn[:, 0] ** 2, variance / 4)
    close_to_mean(drawn[:, 6] ** 2, variance / 9)


@pytest.mark.parametrize("variant", grouping.VARIANTS)
@pytest.mark.parametrize("noise", ["laplace", "geometric"])
def test_releases_of_every_variant(variant, noise):
    rng = np.random.default_rng(9)
    rows = (
        (rng.random((400, 8)) < [0.9, 0.1, 0.9, 0.1, 0.9, 0.1, 0.9, 0.1]).astype(int).tolist()
    )
    for w in (1, 2, 3, 4, 8):
        published = grouping.release(rows, 8, 200, 8, w, variant, rng, noise=noise)
        assert len(set(published)) <= 8 // w  # whole counts may coincide
        if noise == "laplace":
            assert len(set(published)) == 8 // w
        if variant != "random" and w in (1, 4):  # like with like
            assert min(published[::2]) > 250 and max(published[1::2]) < 150
        assert sum(published) == pytest.approx(sum(map(sum, rows)), abs=20)


def test_width_selection():
    assert grouping.widths(8) == [1, 2, 4, 8] and grouping.widths(500)[-2:] == [256, 500]
    assert grouping.widths(1) == [1]
    # noiseless order: the estimate is the expected error
    rng = np.random.default_rng(10)
    counts = [int(x) for x in rng.poisson(50, 32)]
    for w in grouping.widths(32):
        parts = grouping.groups(grouping.ascending(counts), w)
        exact = grouping.expected_error(counts, parts, 10 / w, 1)
        assert grouping.estimated_error(counts, w, 1e-12, 1, 10, 1) == pytest.approx(exact)
    assert grouping.choose_width([7.0] * 32, 1e-12, 1, 10, 1) == 32
    steep = [float(4**j) for j in range(8)]
    assert grouping.choose_width(steep, 1e-12, 1, 2, 1) == 1


def test_estimated_smoothing_is_too_low():
    """Sorting by the noise puts like noise together: less than the noise's share is there."""
    rng = np.random.default_rng(11)
    true, estimated = [], []
    for _ in range(20):
        counts = rng.normal(1000, 25, 256).tolist()
        noisy = [count + float(rng.laplace(0, 20)) for count in counts]
        parts = grouping.groups(grouping.ascending(noisy), 8)
        true.append(grouping.smoothing_error(counts, parts) / 256)
        estimated.append(grouping.estimated_smoothing(noisy, 8, 20, 1))
    assert max(estimated) == 0 and min(true) > 100


# Fourier


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 12, 15])
def test_basis_is_orthonormal_and_that_of_rfft(n):
    rows = np.array(fourier.basis(n))
    assert rows.shape == (n, n)
    assert rows @ rows.T == pytest.approx(np.eye(n), abs=1e-12)
    x = np.random.default_rng(n).normal(size=n)
    c = fourier.forward(x)
    transformed = np.fft.rfft(x)
    assert c[0] == pytest.approx(transformed[0].real / math.sqrt(n))
    for f in range(1, (n - 1) // 2 + 1):
        assert c[2 * f - 1] == pytest.approx(math.sqrt(2 / n) * transformed[f].real)
        assert c[2 * f] == pytest.approx(-math.sqrt(2 / n) * transformed[f].imag)
    if n % 2 == 0:
        assert c[-1] == pytest.approx(transformed[n // 2].real / math.sqrt(n))
    assert fourier.backward(c) == pytest.approx(list(x))


def test_half_of_a_complex_transform_has_a_quarter_of_the_energy():
    """F[:k] of the full transform loses the conjugate half of every frequency in it."""
    x = np.random.default_rng(12).normal(size=64)
    x -= x.mean()
    kept = np.zeros(64, complex)
    kept[:9] = np.fft.fft(x)[:9]
    right = fourier.forward(x)[:17] + [0.0] * 47
    energy = (np.fft.ifft(kept).real ** 2).sum()
    assert energy == pytest.approx((np.array(fourier.backward(right)) ** 2).sum() / 4)


def test_golden_sensitivities():
    n, k, exact, second, first = fourier.GOLDEN
    assert fourier.exact_l1(k, fourier.distinct_cells(n, 1)) == pytest.approx(exact, abs=5e-4)
    assert fourier.second_bound(k, 1, n) == second and fourier.first_bound(k, 1) == first


@pytest.mark.parametrize("n", [5, 8, 9])
@pytest.mark.parametrize("records", [1, 2, 3])
def test_bounds_hold(n, records):
    for k in fourier.ks(n):
        distinct = fourier.exact_l1(k, fourier.distinct_cells(n, records))
        anywhere = fourier.exact_l1(k, fourier.any_cells(n, records))
        second = fourier.second_bound(k, records, n) + 1e-12
        assert distinct <= min(fourier.first_bound(k, math.sqrt(records)) + 1e-12, second)
        assert anywhere <= min(fourier.first_bound(k, records) + 1e-12, second)
        one = fourier.exact_l1(k, fourier.any_cells(n, 1))
        assert anywhere == pytest.approx(records * one)  # all in the worst cell


def test_second_bound_is_for_whole_frequencies():
    for n, k in ((4, 2), (8, 2), (9, 2), (9, 6)):
        assert fourier.exact_l1(k, fourier.distinct_cells(n, 1)) > k / math.sqrt(n) + 0.05
        with pytest.raises(ValueError, match="odd"):
            fourier.second_bound(k, 1, n)
    assert fourier.ks(8) == [1, 3, 5, 7, 8] and fourier.ks(9) == [1, 3, 5, 7, 9]


def test_crossover_of_the_bounds():
    n, records = 60, 4  # no two in a cell: k < n/M
    for k in range(1, 60, 2):
        better = fourier.second_bound(k, records, n) < fourier.first_bound(
            k, math.sqrt(records)
        )
        assert better == (k < n / records) or k == n / records
        # many in a cell: always
        assert fourier.second_bound(k, records, n) < fourier.first_bound(k, records)


def test_errors_of_fpa():
    rng = np.random.default_rng(13)
    x = [20.0, 18, 15, 9, 4, 3, 2, 2, 1, 1, 0, 0]
    laplace, ball = [], []
    for _ in range(3000):
        laplace.append(np.mean((np.array(fourier.fpa(x, 5, 1.3, rng)) - x) ** 2))
        ball.append(np.mean((np.array(fourier.fpa_l2(x, 5, 1, 1, rng)) - x) ** 2))
    close_to_mean(laplace, fourier.error(x, 5, 1.3))
    close_to_mean(ball, fourier.error_l2(x, 5, 1, 1))


@pytest.mark.parametrize("k", [1, 3, 9])
def test_ball_noise_is_the_mixture_of_the_notes(k):
    rng = np.random.default_rng(k)
    drawn = [fourier.ball_noise(k, 0.7, rng)[0] for _ in range(5000)]
    g = rng.gamma((k + 1) / 2, 2 * 0.7**2, 5000)
    mixture = np.sqrt(g) * rng.normal(size=5000)
    assert scipy.stats.ks_2samp(drawn, mixture).pvalue > 1e-4


def test_selection_is_private():
    x = [9, 7, 4, 2, 1, 1, 0, 0]
    for records, l2, changes in (
        (1, 1.0, fourier.distinct_cells(8, 1)),
        (3, math.sqrt(3), fourier.distinct_cells(8, 3)),
        (2, 2.0, fourier.any_cells(8, 2)),
    ):
        for change in changes:
            other = [a + b for a, b in zip(x, change, strict=True)]
            for l1 in (None, records):
                assert fourier.selection_loss(x, other, 0.5, 0.5, l2, l1) <= 0.5
    chances = fourier.selection(x, 0.5, 0.5, 1.0)
    assert list(chances) == [1, 3, 5, 7, 8] and sum(chances.values()) == pytest.approx(1)
    weights = {}
    for k in chances:
        tail = np.linalg.norm(fourier.forward(x)[k:])
        weights[k] = math.exp(-0.5 * (tail + math.sqrt(2) * k / 0.5) / 2)
    for k, chance in chances.items():
        assert chance == pytest.approx(weights[k] / sum(weights.values()))


@pytest.mark.slow
@pytest.mark.parametrize("l1", [None, 1])
def test_error_of_efpa(l1):
    rng = np.random.default_rng(14)
    x = [30.0, 28, 25, 9, 4, 3, 2, 2, 1]
    errors = []
    for _ in range(4000):
        errors.append(np.mean((np.array(fourier.efpa(x, 2, 1, rng, l1)) - x) ** 2))
    close_to_mean(errors, fourier.error_efpa(x, 2, 1, l1))


# Exponential mechanism, pairs, metrics


def test_loss_of_the_exponential_mechanism():
    up = worst = 0.0
    for first in itertools.product(range(4), repeat=3):
        for change in itertools.product((-1, 0, 1), repeat=3):
            second = [a + b for a, b in zip(first, change, strict=True)]
            worst = max(worst, exponential.worst_loss(first, second, 0.8, 1))
            if min(change) >= 0:
                up = max(up, exponential.worst_loss(first, second, 0.8, 1, monotone=True))
    assert 0.6 < worst <= 0.8 and 0.6 < up <= 0.8
    # without monotony, the variant costs more
    assert exponential.worst_loss((0, 9), (1, 8), 0.8, 1, monotone=True) > 1.5
    assert exponential.probabilities([0, 0, 0], 1, 1) == pytest.approx([1 / 3] * 3)
    a, b = exponential.probabilities([1e6, 1e6 - 3], 1, 1)
    assert a / b == pytest.approx(math.exp(1.5))


@pytest.mark.parametrize("l", range(1, 7))
def test_sensitivity_of_pairs(l):
    """l(l - 1)/2 for unordered pairs, also if items repeat; directed edges: twice that."""
    for distinct in (False, True):
        assert exponential.pair_sensitivity(l, "users", distinct) == l * (l - 1) // 2
        assert exponential.pair_sensitivity(l, "records", distinct) == l * (l - 1) // 2
        assert exponential.pair_sensitivity(l, "directed", distinct) == l * (l - 1)
    assert exponential.largest_pair(l, "users") == min(l - 1, 1)
    assert exponential.largest_pair(l, "records") == l * l // 4
    assert exponential.largest_pair(l, "directed") == l - 1


def test_pairs_of_a_repeated_item():
    records = {"one": "aab", "two": "ab", "three": "aa"}
    assert exponential.edge_item_pairs(records, "users") == {("a", "b"): 2}
    assert exponential.edge_item_pairs(records, "records") == {("a", "b"): 3}
    directed = exponential.edge_item_pairs(records, "directed")
    assert directed == {("a", "b"): 2, ("b", "a"): 3}


def test_metrics():
    assert exponential.distribution([0, -4, 1.98]) == pytest.approx([0.005, 0.005, 0.99])
    there, back = exponential.kl_both([3, 1], [1, 1])
    assert there == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert back == pytest.approx(0.5 * math.log(2 / 3) + 0.5 * math.log(2))
    assert exponential.kl([5, 0, 2], [5, 0, 2]) == 0
    assert exponential.precision([9, 1, 8, 0], [9, 8, 1, 0], 2) == Fraction(1, 2)
    assert exponential.average_precision([[2, 1], [1, 2]], [[2, 1], [2, 1]], 1) == Fraction(
        1, 2
    )


def test_precision_with_ties():
    released, truth = [5, 5, 5, 0], [7, 3, 3, 3]
    # every way to break the ties on both sides
    tops = [{0, 1}, {0, 2}, {1, 2}]
    true = [{0, 1}, {0, 2}, {0, 3}]
    mean = Fraction(sum(len(a & b) for a in tops for b in true), 9 * 2)
    assert exponential.expected_precision(released, truth, 2) == mean
    assert exponential.precision(released, truth, 2) == 1
    assert exponential.lenient_precision(released, truth, 2) == 1
    assert exponential.expected_precision([3, 2, 1], [3, 2, 1], 9) == 1
