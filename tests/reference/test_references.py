"""The slow references themselves: for each a golden example, and a property it has by definition.

Nothing of the project is imported here. That `workbench` agrees with a reference is tested where the
code is: in `tests/noise/`, `tests/inference/`, `tests/mechanisms/` and so on. The goldens of the
geometric law, the filter and threshold sampling stand in `golden.py`, which `tests/noise/` checks.
"""

# ruff: noqa: E741  (l is the paper's letter)

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from tests.reference import (
    adaptive,
    alp,
    count_sketch,
    direct_synthesis,
    dirichlet,
    dyadic,
    earth_mover,
    equi_depth,
    exponential,
    fourier,
    geometric,
    grouping,
    haar,
    isotonic,
    kernel_pca,
    local,
    maximum_entropy,
    privelet,
    privtree,
    sampling,
    stability,
    tree_inference,
)

SIZES = [1, 2, 3, 5, 6, 8, 13, 16]


def ranges(m):
    return itertools.combinations(range(m + 1), 2)


def binary(prefix):
    return 2


def some_counts(m):
    return np.random.default_rng(m).integers(0, 9, m).tolist()


# Noise and filters


@pytest.mark.parametrize("alpha", [0.1, 0.6, 0.95])
def test_laws_sum_to_one(alpha):
    law = [geometric.pmf(x, alpha) for x in range(-800, 801)]
    assert sum(law) == pytest.approx(1)
    squares = sum(x**2 * p for x, p in zip(range(-800, 801), law, strict=True))
    assert squares == pytest.approx(geometric.variance(alpha))


# Adaptive histograms, direct synthesis, PrivTree


def test_goldens_of_adaptive_histograms():
    """Smallest discounts of the notes for b = ln k/ε, proved and real."""
    for k, proved, real in ((2, 14, 9), (16, 35, 28), (38, 44, 36)):
        threshold = math.log(k) / 0.1
        assert adaptive.theorem_discount(0.1, threshold) == proved
        assert adaptive.smallest_discount(0.1, threshold) == real
    exact = adaptive.proceed_geometric(1, 2, Fraction(1, 2))
    law = adaptive.structure_probabilities([(0, 0), (0, 1)], binary, 0, 1, exact)
    assert law == {frozenset([()]): Fraction(1, 3), frozenset([(0,), (1,)]): Fraction(2, 3)}
    law = adaptive.structure_probabilities([(0,) * 5], binary, 1, 4, exact)
    assert len(law) == 677 and sum(law.values()) == 1


@pytest.mark.parametrize("noise", ["laplace", "geometric"])
def test_structural_loss_is_reached(noise):
    """One kind of record, a path: the worst number of copies costs what the search says."""
    epsilon = 0.7
    threshold = 4
    t = adaptive.theorem_discount(epsilon, threshold)
    proceed = getattr(adaptive, f"proceed_{noise}")(epsilon, threshold)

    def cost(first, second):
        tables = [(0,) * 8] * first, [(0,) * 8] * second
        return adaptive.loss(*tables, lambda prefix: 1, t, 8, proceed)

    worst = [
        max(cost(n + 1, n) for n in range(5 * t)),
        max(cost(n, n + 1) for n in range(5 * t)),
    ]
    expected = adaptive.structural_loss(epsilon, threshold, t, noise)
    assert worst == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("strategy", adaptive.STRATEGIES)
def test_a_record_moves_the_children_by_one(strategy):
    """But for "progressive", the strategy that the notes refute."""
    less = [(i, j) for i in (0, 1) for j in range(5)]
    moved = adaptive.distance(
        adaptive.discounted(adaptive.weigh([*less, (1, 5)]), 0, 2, 1, strategy),
        adaptive.discounted(adaptive.weigh(less), 0, 2, 1, strategy),
    )
    assert moved == 3 if strategy == "progressive" else moved <= 1


@pytest.mark.parametrize(("count", "subcounts", "start", "centred"), direct_synthesis.GOLDENS)
def test_goldens_of_centring(count, subcounts, start, centred):
    assert tuple(direct_synthesis.centre(count, subcounts, start)) == centred


def test_centring_is_the_projection_in_whole_steps():
    rng = np.random.default_rng(8)
    for _ in range(300):
        subcounts = rng.integers(-5, 12, int(rng.integers(1, 6))).tolist()
        count = int(rng.integers(0, 40))
        centred = direct_synthesis.centre(count, subcounts, int(rng.integers(len(subcounts))))
        assert sum(centred) == count and min(centred) >= 0
        if sum(max(0, c) for c in subcounts) >= count:
            near = direct_synthesis.projection(count, subcounts)
            assert all(abs(x - y) < 1 for x, y in zip(centred, near, strict=True))


def test_goldens_of_privtree():
    for beta, constant in {2: 3.0, 4: 2.3333, 16: 2.0667, 38: 2.0270}.items():
        assert privtree.scale(beta, 1) == pytest.approx(constant, abs=1e-4)


def test_privtree_loses_what_the_search_says():
    worst = 0.0
    for n in range(30):
        less, more = (
            privtree.structure_probabilities([(0,) * 7] * size, lambda p: 1, 2, 0.5, 0, 7)
            for size in (n, n + 1)
        )
        worst = max(worst, *(abs(math.log(less[s] / more[s])) for s in less))
    bound = max(privtree.structural_loss(2, 0.5))
    assert 0.98 * bound <= worst <= bound * (1 + 1e-9)


# Summaries, ranges, sketches


@pytest.mark.parametrize(("l0", "linf", "l1"), [(1, 1, 1), (3, 3, 5), (3, 2, 6), (2, 5, 5)])
def test_delta_is_the_worst_choice_of_new_cells(l0, linf, l1):
    for threshold in (1, 4, 15):
        worst = 0.0
        for counts in itertools.product(range(linf + 1), repeat=l0):
            if 0 < sum(counts) <= l1:
                filled = [count for count in counts if count > 0]
                worst = max(worst, stability.failure(filled, threshold, l1, 1.0))
        delta = stability.delta(threshold, l0, linf, l1, 1.0)
        assert delta == pytest.approx(worst, rel=1e-12)


def test_goldens_of_stability():
    assert stability.threshold(1, 1, 1, 1.0, 1e-6) == 15
    assert stability.threshold(10, 10, 10, 1.0, 1e-6) == 156
    assert stability.threshold(2, 2, 2, 1.0, 0.99) == 1


def test_goldens_of_dyadic_trees():
    assert dyadic.cover(0, 5, 5) == [(0, 0)]
    assert dyadic.cover(1, 5, 5) == [(3, 1), (2, 1), (1, 1)]
    tree = {(0, 0): 9, (1, 0): -8, (1, 1): 1, (2, 0): 7, (2, 1): -3, (2, 2): 6, (2, 3): 0}
    two = dyadic.filtered(tree, 3, 2)
    assert two == {(0, 0): 9, (1, 0): -8, (2, 0): 7, (2, 1): -3, (2, 2): 6}
    assert dyadic.consistent(two) == {(0, 0): 9, (1, 0): -8, (2, 0): 7, (2, 1): -3}
    one = dyadic.filtered(tree, 3, 1)
    assert one == {(0, 0): 9, (2, 0): 7, (2, 2): 6}
    assert dyadic.consistent(one) == {(0, 0): 9}


def fewest_intervals(intervals, lo, hi):
    """The least number of them that make up [lo, hi), by shortest path."""
    fewest = {lo: 0}
    for start, stop in sorted(intervals):
        if start in fewest:
            fewest[stop] = min(fewest.get(stop, math.inf), fewest[start] + 1)
    return fewest[hi]


@pytest.mark.parametrize("m", SIZES)
def test_dyadic_covers_are_exact_and_minimal(m):
    def cells(node):
        start, stop = dyadic.interval(node, m)
        return start, min(stop, m)

    intervals = [cells(node) for node in dyadic.all_nodes(m)]
    for lo, hi in ranges(m):
        cover = dyadic.cover(lo, hi, m)
        assert [cell for node in cover for cell in range(*cells(node))] == list(range(lo, hi))
        assert len(cover) == fewest_intervals(intervals, lo, hi)


def test_goldens_of_haar():
    five = {"total": 15, (0, 0): 5, (1, 0): -4, (2, 0): -1, (2, 1): -1}
    assert haar.coefficients([1, 2, 3, 4, 5]) == five
    # the last cell is the total less the left half: no other coefficient, no split of padding
    last = {"total": 0.5, (0, 0): -0.5, (1, 0): 0, (2, 0): 0, (2, 1): 0}
    assert haar.weights(4, 5, 5) == last


@pytest.mark.parametrize("m", SIZES)
def test_haar_inverts_and_one_record_moves_its_sensitivity(m):
    counts = some_counts(m)
    wavelet = haar.coefficients(counts)
    assert len(wavelet) == m and haar.reconstruct(wavelet, m) == counts
    changes = []
    for unit in np.eye(m, dtype=int):
        changes.append(sum(abs(x) for x in haar.coefficients(unit.tolist()).values()))
    assert max(changes) == haar.sensitivity(m)


@pytest.mark.parametrize(("m", "worst"), [(8, 152), (32, 471.375)])
def test_worst_ranges_of_privelet(m, worst):
    """Section 5.1 of the notes, where neighbours replace a record: four times the variance."""
    variances = [
        privelet.haar_range_variance(lo, hi, m, 1.0, "add/remove") for lo, hi in ranges(m)
    ]
    assert 4 * max(variances) == pytest.approx(worst, abs=1e-3)


def test_privelet_has_the_variance_of_the_integer_wavelet():
    alpha = geometric.alpha_for(1.0, haar.sensitivity(8))
    for lo, hi in ranges(8):
        squares = haar.range_variance(lo, hi, 8, 1.0, 1) / geometric.variance(alpha)
        expected = squares * 2 * haar.sensitivity(8) ** 2
        found = privelet.haar_range_variance(lo, hi, 8, 1.0, "add/remove")
        assert found == pytest.approx(expected)


def test_goldens_of_the_count_sketch():
    bucket = [[0, 0, 1], [1, 0, 1]]
    sign = [[1, -1, 1], [-1, 1, 1]]
    table = count_sketch.sketch([5, 2, 1], bucket, sign, 2)
    assert table == [[3, 1], [2, -4]]
    assert count_sketch.estimate(table, bucket, sign, 0, "mean") == 3.5
    ones = [[1]] * 3
    assert count_sketch.estimate([[1], [10], [2]], [[0]] * 3, ones, 0, "median") == 2
    assert count_sketch.estimate([[1], [10]], [[0]] * 3, ones, 0, "median") == 5.5


def test_variance_of_the_count_sketch_over_every_hash():
    counts = [3, 1, -2]
    for key in range(3):
        errors = []
        for hashes in itertools.product(range(2), repeat=6):
            bucket = [hashes[:3]]
            sign = [[2 * bit - 1 for bit in hashes[3:]]]
            table = count_sketch.sketch(counts, bucket, sign, 2)
            guess = count_sketch.estimate(table, bucket, sign, key, "mean")
            errors.append(guess - counts[key])
        assert sum(errors) == 0
        noise = geometric.variance(math.exp(-1))
        expected = count_sketch.variance(counts, key, 2, 1, 1.0, 1)
        assert np.mean(np.square(errors)) + noise == pytest.approx(expected)


def test_goldens_of_alp():
    assert alp.walk([]) == alp.walk([0, 0, 0]) == 0
    assert alp.walk([1, 1, 0]) == 2
    assert alp.walk([1, 0, 1, 0]) == 2  # positions 1 and 3
    bits = [1, 0, 1, 1]
    hashes = [None, [2, 1], [0, 1], [1, 1], [3, 1]]
    assert alp.estimate(bits, hashes, 0, 12, 1, 3, 1) == 3 * 3  # +1 +1 -1 +1: positions 2, 4
    assert alp.estimate(bits, hashes, 0, 24, 1, 3, 2) == 3 * 6
    assert alp.estimate(bits, hashes, 1, 12, 1, 3, 1) == 0
    assert alp.levels(100, 1, 3, 1) == 34 and alp.size(300, 1, 3, 1, 50) == 8192


def test_bits_of_alp_are_flipped_as_often_as_they_should():
    rng = np.random.default_rng(11)  # seeded: never by chance; sees 2% more flips
    hashes = [None, range(500), range(500, 1000)]
    bits = [
        alp.encode([9] * 500, hashes, 1500, 6, 1.0, 3.0, 1, rng)  # both levels reached
        for _ in range(20)
    ]
    set_bits = np.mean(bits, axis=0).reshape(3, 500).mean(1)
    assert set_bits == pytest.approx([0.8, 0.8, 0.2], abs=0.02)


# Synthetic data and randomised response


def test_goldens_of_dirichlet():
    assert round(dirichlet.pure_alpha(10_000, 1.0)) == 5820
    assert round(dirichlet.pure_alpha(100_000, 1.0)) == 58198
    assert dirichlet.delta_bound(dirichlet.pure_alpha(6, 1.0), 3, 4, 6, 1.0) == 0


@pytest.mark.parametrize(("a", "b", "n"), [(0.4, 2.5, 7), (3.0, 0.2, 6), (0.3, 40.0, 12)])
def test_tails_sum_the_beta_binomial_law(a, b, n):
    law = scipy.stats.betabinom(n, a, b)
    for first in range(-1, n + 2):
        tail = math.exp(dirichlet.log_tail(first, n, a, b))
        assert tail == pytest.approx(law.sf(first - 1), rel=1e-7)


def test_goldens_of_randomised_response():
    assert local.retention(math.e, 2) == pytest.approx(0.46212, abs=5e-6)
    assert local.retention(math.e, 50) == pytest.approx(0.033224, abs=5e-7)
    assert local.flip(math.e) == pytest.approx(0.37754, abs=5e-6)
    assert local.flip(math.e, 18) == pytest.approx(0.48611, abs=5e-6)


def test_channels_amplify_by_gamma_and_are_undone():
    gamma = Fraction(9, 4)
    channels = []
    for size in (2, 3):
        channels.append(local.retention_channel(local.retention(gamma, size), size))
        assert local.amplification(channels[-1]) == gamma
    assert local.amplification(local.flipping_channel(Fraction(2, 5), 2)) == gamma
    whole = local.product_channel(channels)
    assert local.amplification(whole) == gamma**2
    truth = [5, 0, 7, 2, 11, 1]
    expected = [sum(n * c[y] for n, c in zip(truth, whole, strict=True)) for y in range(6)]
    assert local.reconstruct(expected, channels) == truth


# Metrics and selection


def test_goldens_of_metrics():
    assert earth_mover.by_level([(0.1,)], [(0.6,)], 2) == [0, 1, 0.5]
    honolulu = earth_mover.great_circle(37.7749, -122.4194, 21.3069, -157.8583)
    assert honolulu == pytest.approx(3853.9, abs=0.1)
    assert earth_mover.kolmogorov([1, 2], [1, 2, 1, 2]) == 0
    assert earth_mover.kolmogorov([1, 2], [3]) == 1
    corpus, synthetic = list("aaaabbc"), list("aaabbbbd")
    assert earth_mover.recovered(corpus, synthetic) == pytest.approx(5 / 7)
    descending = earth_mover.recovered_by_frequency(corpus, synthetic, descending=True)
    assert descending[0] == (4, pytest.approx(4 / 7), pytest.approx(3 / 7))
    assert exponential.distribution([0, -4, 1.98]) == pytest.approx([0.005, 0.005, 0.99])
    there, back = exponential.kl_both([3, 1], [1, 1])
    assert there == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert back == pytest.approx(0.5 * math.log(2 / 3) + 0.5 * math.log(2))
    assert exponential.precision([9, 1, 8, 0], [9, 8, 1, 0], 2) == Fraction(1, 2)


@pytest.mark.parametrize("dims", [1, 2])
def test_surrogates_bound_the_distance(dims):
    rng = np.random.default_rng(12)
    for depth in (0, 3, 6):
        first = rng.random((40, dims)) ** 2
        second = rng.random((40, dims))
        distance = earth_mover.exact(first, second)
        if dims == 1:
            line = earth_mover.exact_line(first[:, 0], second[:, 0])
            assert line == pytest.approx(distance)
        rest = 40 * earth_mover.diameter(depth, dims)
        assert distance <= earth_mover.surrogate(first, second, depth) + rest


def test_expected_precision_averages_over_ties():
    tops = [{0, 1}, {0, 2}, {1, 2}]
    true = [{0, 1}, {0, 2}, {0, 3}]
    mean = Fraction(sum(len(a & b) for a in tops for b in true), 9 * 2)
    assert exponential.expected_precision([5, 5, 5, 0], [7, 3, 3, 3], 2) == mean


def test_the_exponential_mechanism_loses_at_most_epsilon():
    worst = 0.0
    for change in itertools.product((-1, 0, 1), repeat=3):
        here = exponential.probabilities([0, 2, 3], 0.8, 1)
        there = exponential.probabilities(np.add([0, 2, 3], change).tolist(), 0.8, 1)
        worst = max(worst, *np.abs(np.log(np.divide(here, there))))
    assert 0.6 < worst <= 0.8


# Interactions: sampling, grouping, Fourier


def test_goldens_of_the_best_l():
    best = [sampling.best_l(300, 20, [0.03], 0.5, form) for form in sampling.FORMS]
    assert best == pytest.approx([18.154, 18.153, 18.251], abs=5e-4)
    assert sampling.normalised({"a": -3, "b": 2, "c": 6})["c"] == Fraction(3, 4)


@pytest.mark.parametrize("l", [1, 2, 5, 7])
def test_moments_of_sra_by_enumeration(l):
    mine = [("a", 0), ("a", 1), ("a", 1), ("b", 0), ("c", 1), ("d", 0)]
    samples = list(itertools.combinations(mine, min(l, len(mine))))
    numbers = [sum(item == "a" for item, _ in sample) for sample in samples]
    mean = Fraction(sum(numbers), len(samples))
    variance = Fraction(sum(x**2 for x in numbers), len(samples)) - mean**2
    assert sampling.moments_sra({"user": mine}, "a", l) == (mean, variance)
    assert mean == 3 - sampling.lost_by_sra({"user": mine}, "a", l)


@pytest.mark.parametrize("form", sampling.FORMS)
def test_the_best_l_is_the_minimiser(form):
    def error(l):
        return sampling.modelled_error(l, 300, 20, [0.2, 0.05, 0.001], 0.5, form)

    best = sampling.best_l(300, 20, [0.2, 0.05, 0.001], 0.5, form)
    assert error(best) <= min(error(best - 1e-3), error(best + 1e-3))


def test_goldens_of_grouping():
    assert grouping.groups(range(7), 3) == [[0, 1, 2], [3, 4, 5, 6]]
    assert grouping.widths(8) == [1, 2, 4, 8] and grouping.widths(500)[-2:] == [256, 500]
    assert grouping.choose_width([7.0] * 32, 1e-12, 1, 10, 1) == 32
    assert grouping.choose_width([float(4**j) for j in range(8)], 1e-12, 1, 2, 1) == 1


@pytest.mark.parametrize("beta", [0.1, 0.5, 1])
def test_amplification_is_exact(beta):
    """One count with and without a user is a mixture, whose ratio reaches ε₁."""
    inner = grouping.amplified(0.5, beta)
    assert grouping.cost_of_sample(inner, beta) == pytest.approx(0.5)
    alpha = geometric.alpha_for(inner)
    worst = 0.0
    for x in range(-40, 41):
        out = geometric.pmf(x, alpha)
        into = (1 - beta) * out + beta * geometric.pmf(x - 1, alpha)
        worst = max(worst, abs(math.log(into / out)))
    assert worst == pytest.approx(0.5)


def test_goldens_of_fourier():
    n, k, exact, second, first = fourier.GOLDEN
    assert fourier.exact_l1(k, fourier.distinct_cells(n, 1)) == pytest.approx(exact, abs=5e-4)
    assert fourier.second_bound(k, 1, n) == second and fourier.first_bound(k, 1) == first


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_the_fourier_basis_is_orthonormal(n):
    rows = np.array(fourier.basis(n))
    assert rows @ rows.T == pytest.approx(np.eye(n), abs=1e-12)
    x = np.random.default_rng(n).normal(size=n)
    assert fourier.backward(fourier.forward(x)) == pytest.approx(x.tolist())
    assert np.cumsum(np.square(fourier.forward(x)))[0] == pytest.approx(x.sum() ** 2 / n)


# Trees, isotonic regression, equi-depth histograms


def test_goldens_of_tree_inference():
    """The running example of 8.2, and the branching of HB."""
    noisy = (13, 3, 11, 4, 1, 12, 1)
    consistent = (14, 3, 11, 3, 0, 11, 0)
    assert tree_inference.build((2, 0, 10, 2), 2) == [14, 2, 12, 2, 0, 10, 2]
    for method in (tree_inference.theorem3, tree_inference.ols):
        assert method(noisy, 2) == pytest.approx(consistent, abs=1e-12)
    assert tree_inference.zeroed([5, -1, 6, 3, -4, 0, 6], 2) == [5, 0, 6, 0, 0, 0, 6]
    assert tree_inference.rounded([-2.0, 0.4, 0.6, 2.5, 3.5]) == [0, 0, 1, 2, 4]
    assert tree_inference.hb_branching(4096) == 16


@pytest.mark.parametrize(("k", "height"), [(2, 1), (2, 4), (3, 3), (5, 2)])
def test_theorem_3_is_least_squares(k, height):
    noisy = np.random.default_rng(0).normal(0, 5, (k**height - 1) // (k - 1)).tolist()
    expected = tree_inference.ols(noisy, k)
    assert tree_inference.theorem3(noisy, k) == pytest.approx(expected, abs=1e-12)
    weighted = tree_inference.weighted(noisy, k, [3] * len(noisy))
    assert weighted == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(2, 1), (2, 8), (2, 13), (3, 7), (4, 6)])
def test_covers_of_trees_are_exact_and_minimal(k, n):
    intervals = [tree_inference.interval(v, n, k) for v in tree_inference.nodes(n, k)]
    for lo, hi in ranges(n):
        cover = tree_inference.cover(lo, hi, n, k)
        assert [c for at in cover for c in range(*intervals[at])] == list(range(lo, hi))
        assert len(cover) == fewest_intervals(intervals, lo, hi)


@pytest.mark.parametrize(("k", "n"), [(2, 8), (3, 7)])
def test_non_negative_least_squares_is_optimal(k, n):
    matrix = tree_inference.design(n, k)
    noisy = np.random.default_rng(n).normal(0, 5, len(matrix))
    fitted = np.array(tree_inference.nnls(noisy.tolist(), k))
    slopes = matrix.T @ (fitted - noisy)  # Karush, Kuhn and Tucker
    assert fitted.min() >= 0 and slopes.min() > -1e-9
    assert abs(slopes @ fitted[-n:]) < 1e-8


@pytest.mark.parametrize(
    ("values", "closest"),
    [
        ((9, 10, 14), (9, 10, 14)),
        ((9, 14, 10), (9, 12, 12)),
        ((14, 9, 10, 15), (11, 11, 11, 15)),
        ((1, 2, 0, 11), (1, 1, 1, 11)),
    ],
)
def test_goldens_of_isotonic_regression(values, closest):
    exact = [Fraction(value) for value in values]
    for method in (isotonic.lower, isotonic.upper, isotonic.pava):
        assert tuple(method(exact)) == closest


def test_min_max_is_pava():
    rng = np.random.default_rng(0)
    for n in range(1, 13):
        values = [Fraction(x) for x in rng.integers(-4, 5, n).tolist()]
        fitted = isotonic.pava(values)
        assert isotonic.lower(values) == isotonic.upper(values) == fitted == sorted(fitted)
        assert sum(fitted) == sum(values)


def test_goldens_of_equi_depth_histograms():
    """With next to no noise."""
    rng = np.random.default_rng(0)
    assert equi_depth.release([1] * 64, 7.5, 8, 1e12, rng) == list(range(0, 65, 8))
    counts = [0, 5, 0, 0, 20, 1, 1, 0]
    assert equi_depth.release(counts, 4.5, 9, 1e12, rng) == [0, 2, 5, 8]  # 5, 20, a rest of 2
    few = equi_depth.release([1] * 64, 7.5, 3, 1e12, rng)
    assert few == [0, 8, 16, 24, 64]
    assert equi_depth.answer(few, 8, 20, 44) == 4 + 4


# Kernel PCA and maximum entropy


def test_goldens_of_kernel_pca():
    squares = np.array([4.0, 1.0, 0.25])
    for alpha, kept in ((0.4, 0), (0.6, 1), (1.5, 2), (math.inf, 3)):
        assert kernel_pca.truncation(alpha, squares).tolist() == [1] * kept + [0] * (3 - kept)
    # one query asked twice: the estimate of the error is negative
    queries = [np.array([1.0, 1, 0, 0])] * 2
    estimate = kernel_pca.cross_validated_pooled(
        [[0], [1]], queries, [30.0, 30.0], 100 * np.eye(2), kernel_pca.uniform([4]), 1e6, 60
    )
    assert estimate == pytest.approx(-100, abs=1e-3)
    assert kernel_pca.sensitivity(queries, "add/remove") == 2


@pytest.mark.parametrize("alpha", [0.5, 5.0, 100.0])
def test_kernel_pca_is_ridge_regression(alpha):
    rng = np.random.default_rng(0)
    queries = rng.integers(0, 2, (8, 24)).astype(float)
    root = rng.normal(size=(8, 8))
    covariance = root @ root.T + 8 * np.eye(8)
    noisy = rng.normal(100, 20, 8)
    parts = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.3, 0.4], [0.7, 0.3]]
    prior = kernel_pca.product_prior(parts)
    arguments = (queries, noisy, covariance, prior, alpha, 500.0)
    for q in (rng.normal(size=24), np.ones(24)):
        exact = kernel_pca.known_total(q, *arguments)
        assert kernel_pca.known_total_ridge(q, *arguments) == pytest.approx(exact, rel=1e-9)
    assert exact == pytest.approx(500)


def one_way_tables(sizes):
    """A row for every value of every attribute: 1 on the tuples that have it."""
    cells = np.array(kernel_pca.universe(sizes))
    return np.array([cells[:, k] == v for k, s in enumerate(sizes) for v in range(s)], float)


def test_maximum_entropy_of_one_way_tables_is_independence():
    """A golden known in closed form, and the prior where the tables count for nothing."""
    parts = [[0.3, 0.7], [0.5, 0.1, 0.4]]
    features = one_way_tables([2, 3])
    shares = np.concatenate(parts)
    prior = kernel_pca.uniform([2, 3])
    for box, expected in ((100.0, kernel_pca.product_prior(parts)), (1e-12, prior)):
        w = maximum_entropy.solve(features, shares, np.full(5, box), prior)
        p = maximum_entropy.distribution(w, features, prior)
        assert p == pytest.approx(expected, abs=1e-9)
    w = maximum_entropy.solve(np.eye(3), np.array([-0.1, 0.6, 0.5]), np.full(3, 5.0), prior[:3])
    assert w[0] == -5  # a negative share pushes to the box


def test_the_chain_of_maximum_entropy_is_stationary():
    sizes = [3, 2, 2]
    rng = np.random.default_rng(0)
    w = rng.normal(size=7)
    features = one_way_tables(sizes)
    prior = kernel_pca.product_prior([rng.dirichlet(np.full(s, 3.0)) for s in sizes])
    p = maximum_entropy.distribution(w, features, prior)
    for k in range(3):
        matrix = maximum_entropy.gibbs_matrix(k, w, features, sizes, prior)
        flow = p[:, None] * matrix
        assert matrix.sum(1) == pytest.approx(np.ones(12))
        assert flow == pytest.approx(flow.T, abs=1e-15)  # detailed balance
