"""The slow references themselves: golden examples from the papers.

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

from tests.reference import (
    adaptive,
    alp,
    count_sketch,
    direct_synthesis,
    dyadic,
    earth_mover,
    equi_depth,
    exponential,
    fourier,
    grouping,
    haar,
    isotonic,
    kernel_pca,
    maximum_entropy,
    privelet,
    privtree,
    sampling,
    tree_inference,
)


def ranges(m):
    return itertools.combinations(range(m + 1), 2)


def binary(prefix):
    return 2


# Noise and filters


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


@pytest.mark.parametrize(("count", "subcounts", "start", "centred"), direct_synthesis.GOLDENS)
def test_goldens_of_centring(count, subcounts, start, centred):
    assert tuple(direct_synthesis.centre(count, subcounts, start)) == centred


def test_goldens_of_privtree():
    for beta, constant in {2: 3.0, 4: 2.3333, 16: 2.0667, 38: 2.0270}.items():
        assert privtree.scale(beta, 1) == pytest.approx(constant, abs=1e-4)


# Summaries, ranges, sketches


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


def test_goldens_of_haar():
    five = {"total": 15, (0, 0): 5, (1, 0): -4, (2, 0): -1, (2, 1): -1}
    assert haar.coefficients([1, 2, 3, 4, 5]) == five
    # the last cell is the total less the left half: no other coefficient, no split of padding
    last = {"total": 0.5, (0, 0): -0.5, (1, 0): 0, (2, 0): 0, (2, 1): 0}
    assert haar.weights(4, 5, 5) == last


@pytest.mark.parametrize(("m", "worst"), [(8, 152), (32, 471.375)])
def test_worst_ranges_of_privelet(m, worst):
    """Section 5.1 of the notes, where neighbours replace a record: four times the variance."""
    variances = [
        privelet.haar_range_variance(lo, hi, m, 1.0, "add/remove") for lo, hi in ranges(m)
    ]
    assert 4 * max(variances) == pytest.approx(worst, abs=1e-3)


def test_goldens_of_the_count_sketch():
    bucket = [[0, 0, 1], [1, 0, 1]]
    sign = [[1, -1, 1], [-1, 1, 1]]
    table = count_sketch.sketch([5, 2, 1], bucket, sign, 2)
    assert table == [[3, 1], [2, -4]]
    assert count_sketch.estimate(table, bucket, sign, 0, "mean") == 3.5
    ones = [[1]] * 3
    assert count_sketch.estimate([[1], [10], [2]], [[0]] * 3, ones, 0, "median") == 2
    assert count_sketch.estimate([[1], [10]], [[0]] * 3, ones, 0, "median") == 5.5


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


# Synthetic data and randomised response


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


# Interactions: sampling, grouping, Fourier


def test_goldens_of_the_best_l():
    best = [sampling.best_l(300, 20, [0.03], 0.5, form) for form in sampling.FORMS]
    assert best == pytest.approx([18.154, 18.153, 18.251], abs=5e-4)
    assert sampling.normalised({"a": -3, "b": 2, "c": 6})["c"] == Fraction(3, 4)


def test_goldens_of_grouping():
    assert grouping.groups(range(7), 3) == [[0, 1, 2], [3, 4, 5, 6]]
    assert grouping.widths(8) == [1, 2, 4, 8] and grouping.widths(500)[-2:] == [256, 500]
    assert grouping.choose_width([7.0] * 32, 1e-12, 1, 10, 1) == 32
    assert grouping.choose_width([float(4**j) for j in range(8)], 1e-12, 1, 2, 1) == 1


def test_goldens_of_fourier():
    n, k, exact, second, first = fourier.GOLDEN
    assert fourier.exact_l1(k, fourier.distinct_cells(n, 1)) == pytest.approx(exact, abs=5e-4)
    assert fourier.second_bound(k, 1, n) == second and fourier.first_bound(k, 1) == first


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
