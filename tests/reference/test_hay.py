"""The slow references for hierarchical, isotonic and wavelet releases against the notes' numbers,
closed forms and themselves. Nothing of the project is imported here.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize

from tests.reference import equi_depth, geometric, haar, isotonic, privelet, tree_inference

COMPLETE = [(2, 1), (2, 2), (2, 4), (3, 3), (4, 3), (2, 7), (5, 2)]  # k, levels
INCOMPLETE = [(2, 3), (2, 5), (2, 6), (2, 13), (3, 4), (3, 7), (3, 11), (4, 6), (10, 3)]  # k, n


def ranges(n):
    return [(lo, hi) for lo in range(n) for hi in range(lo + 1, n + 1)]


def normals(size, seed):
    return [float(x) for x in np.random.default_rng(seed).normal(0, 5, size)]


def close_to_variance(samples, variance):
    """The mean square of centred samples, within five standard errors."""
    squares = np.square(samples)
    error = squares.std() / math.sqrt(len(samples))
    assert abs(squares.mean() - variance) < 5 * error, (squares.mean(), variance, error)


# Isotonic regression


@pytest.mark.parametrize(("values", "closest"), isotonic.GOLDENS)
def test_goldens_of_theorem_1(values, closest):
    exact = [Fraction(value) for value in values]
    for method in (isotonic.lower, isotonic.upper, isotonic.pava):
        assert tuple(method(exact)) == closest


def test_distance_of_example_4():
    assert isotonic.squared_distance((14, 9, 10, 15), (11, 11, 11, 15)) == 14
    assert isotonic.squared_distance((14, 9, 10, 15), (9, 9, 10, 15)) == 25


def test_min_max_is_pava():
    rng = np.random.default_rng(0)
    for trial in range(300):
        n = int(rng.integers(1, 13))
        if trial % 2:  # with ties
            values = [Fraction(int(x)) for x in rng.integers(-4, 5, n)]
            fitted = isotonic.pava(values)
            assert isotonic.lower(values) == isotonic.upper(values) == fitted
        else:
            values = normals(n, trial)
            fitted = isotonic.pava(values)
            assert isotonic.lower(values) == pytest.approx(fitted, abs=1e-12)
            assert isotonic.upper(values) == pytest.approx(fitted, abs=1e-12)
        assert fitted == sorted(fitted)
        assert sum(fitted) == pytest.approx(float(sum(values)), abs=1e-9)


def test_pava_is_the_projection():
    for seed in range(20):
        values = normals(30, seed)
        fitted = isotonic.pava(values)
        peer = scipy.optimize.isotonic_regression(values).x
        assert fitted == pytest.approx(list(peer), abs=1e-12)
        # closest: no ordered sequence is nearer, the truth in particular
        other = sorted(normals(30, 100 + seed))
        assert isotonic.squared_distance(values, fitted) < isotonic.squared_distance(
            values, other
        )
        assert isotonic.squared_distance(fitted, other) < isotonic.squared_distance(
            values, other
        )


def test_sorting_does_not_raise_the_sensitivity():
    rng = np.random.default_rng(1)
    for _ in range(200):
        counts = [int(x) for x in rng.integers(0, 5, 8)]
        before = sorted(counts)
        counts[int(rng.integers(8))] += 1
        after = sorted(counts)
        assert sum(abs(x - y) for x, y in zip(before, after, strict=True)) == 1


def test_an_edge_moves_two_degrees():
    for vertices in range(2, 6):
        pairs = list(itertools.combinations(range(vertices), 2))
        for edges in itertools.product((0, 1), repeat=len(pairs)):
            degrees = [0] * vertices
            for present, pair in zip(edges, pairs, strict=True):
                for vertex in pair:
                    degrees[vertex] += present
            for present, pair in zip(edges, pairs, strict=True):
                if present:
                    fewer = [d - (v in pair) for v, d in enumerate(degrees)]
                    moved = zip(sorted(degrees), sorted(fewer), strict=True)
                    assert sum(abs(x - y) for x, y in moved) == 2


def test_unattributed_estimators():
    counts, epsilon = [5, 0, 0, 3, 0, 9, 0], 0.5
    for noise in ("laplace", "geometric"):
        draws = {}
        for estimator in ("noisy", "sorted", "isotonic"):
            rng = np.random.default_rng(2)
            draws[estimator] = isotonic.unattributed(counts, epsilon, 1, estimator, rng, noise)
        nearest = [max(0, round(x)) for x in sorted(draws["noisy"])]
        assert draws["sorted"] == nearest
        assert draws["isotonic"] == isotonic.lower(draws["noisy"])
    with pytest.raises(ValueError):
        isotonic.unattributed(counts, epsilon, 1, "other", np.random.default_rng(0))


def test_error_of_the_noisy_counts():
    counts, rng = [4, 1, 1, 0], np.random.default_rng(3)
    for noise in ("laplace", "geometric"):
        errors = []
        for _ in range(4000):
            draw = isotonic.unattributed(counts, 1.0, 2, "noisy", rng, noise)
            errors.extend(x - y for x, y in zip(draw, sorted(counts), strict=True))
        close_to_variance(errors, isotonic.error_noisy(4, 1.0, 2, noise) / 4)
    assert isotonic.error_noisy(10, 0.1, 1) == pytest.approx(2000)


def test_theorem_2_grows_with_the_distinct_counts():
    assert isotonic.multiplicities([3, 1, 3, 0, 3]) == [1, 1, 3]
    bound = isotonic.theorem2_bound([7] * 8 + [9], 0.5, 2, 3)
    assert bound == pytest.approx((2 * math.log(8) ** 3 + 3 + 3) / 0.25)
    assert isotonic.theorem2_rate([1, 2, 2], 1) == pytest.approx(2 * math.log(3) ** 3)
    rng = np.random.default_rng(4)
    errors = {}
    for n, distinct in ((60, 1), (600, 1), (600, 600)):
        truth = [1000 * (i * distinct // n) for i in range(n)]
        found = []
        for _ in range(30):
            draw = isotonic.unattributed(truth, 1.0, 1, "isotonic", rng)
            found.append(isotonic.squared_distance(draw, truth))
        errors[n, distinct] = np.mean(found)
    assert errors[600, 1] < 4 * errors[60, 1] < 0.1 * errors[600, 600]
    assert errors[600, 600] == pytest.approx(isotonic.error_noisy(600, 1.0, 1), rel=0.1)


# Trees


def test_running_example():
    golden = tree_inference.RUNNING
    assert tuple(tree_inference.build(golden["counts"], 2)) == golden["tree"]
    for method in (tree_inference.theorem3, tree_inference.ols):
        assert method(golden["noisy"], 2) == pytest.approx(golden["consistent"], abs=1e-12)
    assert tree_inference.zeroed(golden["consistent"], 2) == list(golden["consistent"])


@pytest.mark.parametrize(("k", "height"), COMPLETE)
def test_theorem_3_is_least_squares(k, height):
    n = k ** (height - 1)
    size = (k**height - 1) // (k - 1)
    assert tree_inference.size(n, k) == len(tree_inference.nodes(n, k)) == size
    assert tree_inference.levels(n, k) == tree_inference.sensitivity(n, k) == height
    for seed in range(3):
        noisy = normals(size, seed)
        expected = tree_inference.ols(noisy, k)
        assert tree_inference.theorem3(noisy, k) == pytest.approx(expected, abs=1e-12)
        assert tree_inference.two_pass(noisy, k, [2] * size) == pytest.approx(
            expected, abs=1e-12
        )
        assert tree_inference.weighted(noisy, k, [3] * size) == pytest.approx(
            expected, abs=1e-12
        )


@pytest.mark.parametrize(("k", "n"), INCOMPLETE)
def test_incomplete_trees(k, n):
    family, every = tree_inference.families(n, k), tree_inference.nodes(n, k)
    counts = [int(x) for x in np.random.default_rng(n).integers(0, 9, n)]
    tree = tree_inference.build(counts, k)
    assert tree[-n:] == counts and tree[0] == sum(counts)
    assert tree_inference.leaf_count(tree, k) == n
    for position, group in enumerate(family):
        if group:
            assert tree[position] == sum(tree[child] for child in group)
        assert every[position][0] == every[-1][0] or group
    for leaf in range(n):  # sensitivity
        more = [count + (cell == leaf) for cell, count in enumerate(counts)]
        change = zip(tree_inference.build(more, k), tree, strict=True)
        assert sum(abs(x - y) for x, y in change) == tree_inference.sensitivity(n, k)
    noisy = normals(len(tree), n)
    variances = [float(x) for x in np.random.default_rng(n + 1).uniform(0.2, 5, len(tree))]
    for spread in ([1.0] * len(tree), variances):
        expected = tree_inference.weighted(noisy, k, spread)
        for position, group in enumerate(family):
            if group:
                below = sum(expected[child] for child in group)
                assert expected[position] == pytest.approx(below, abs=1e-11)
        found = tree_inference.two_pass(noisy, k, spread)
        assert found == pytest.approx(expected, abs=1e-11)
    assert tree_inference.weighted(tree, k, variances) == pytest.approx(tree, abs=1e-11)
    with pytest.raises(ValueError):
        tree_inference.theorem3(noisy, k)


@pytest.mark.parametrize(("k", "n"), INCOMPLETE)
def test_padding_is_known_to_be_zero(k, n):
    """The same estimate from the complete tree whose padding was measured almost exactly."""
    whole = k ** (tree_inference.levels(n, k) - 1)
    noisy = normals(tree_inference.size(n, k), n)
    where = {node: i for i, node in enumerate(tree_inference.nodes(n, k))}
    values, variances = [], []
    for node in tree_inference.nodes(whole, k):
        values.append(noisy[where[node]] if node in where else 0)
        variances.append(1.0 if node in where else 1e-12)
    padded = tree_inference.two_pass(values, k, variances)
    found = [
        padded[i] for i, node in enumerate(tree_inference.nodes(whole, k)) if node in where
    ]
    assert tree_inference.ols(noisy, k) == pytest.approx(found, abs=1e-8)


def test_weights_by_level_and_nodes_without_measurement():
    noisy = normals(15, 0)
    only_leaves = [math.inf] * 7 + [1.0] * 8
    expected = tree_inference.build(noisy[-8:], 2)
    assert tree_inference.weighted(noisy, 2, only_leaves) == pytest.approx(expected)
    exact_root = [1e-14] + [1.0] * 14
    assert tree_inference.weighted(noisy, 2, exact_root)[0] == pytest.approx(noisy[0])
    with pytest.raises(ValueError):
        tree_inference.weighted(noisy, 2, [1.0] * 14 + [math.inf] * 1 + [1.0])
    with pytest.raises(ValueError):
        tree_inference.weighted(noisy, 2, [1.0] * 7 + [math.inf] * 8)
    with pytest.raises(ValueError):
        tree_inference.leaf_count([0] * 5, 2)  # three leaves make six nodes, two make three


@pytest.mark.parametrize(("k", "n"), [(2, 1), (2, 8), (3, 9), (4, 16), *INCOMPLETE])
def test_cover_is_exact_and_minimal(k, n):
    every = tree_inference.nodes(n, k)
    intervals = [tree_inference.interval(node, n, k) for node in every]
    for lo, hi in ranges(n):
        cover = tree_inference.cover(lo, hi, n, k)
        cells = [cell for position in cover for cell in range(*intervals[position])]
        assert cells == list(range(lo, hi))
        fewest = {lo: 0}  # by shortest path over all the intervals
        for start, stop in sorted(intervals):
            if start in fewest:
                fewest[stop] = min(fewest.get(stop, n), fewest[start] + 1)
        assert len(cover) == fewest[hi]
        for depth in range(tree_inference.levels(n, k)):
            assert sum(every[position][0] == depth for position in cover) <= 2 * (k - 1)
    assert tree_inference.cover(0, 0, n, k) == []


def test_answers():
    tree = tree_inference.build([3, 0, 4, 1, 5, 9], 3)
    for lo, hi in ranges(6):
        truth = sum([3, 0, 4, 1, 5, 9][lo:hi])
        assert tree_inference.answer_cover(tree, lo, hi, 3) == truth
        assert tree_inference.answer_leaves(tree, lo, hi, 3) == truth
    noisy = [13, 3, 11, 4, 1, 12, 1]
    assert tree_inference.answer_cover(noisy, 0, 3, 2) == 3 + 12
    assert tree_inference.answer_leaves(noisy, 0, 3, 2) == 4 + 1 + 12
    assert tree_inference.answer_cover(noisy, 0, 4, 2) == 13


def test_zeroed_and_rounded():
    h = [5, -1, 6, 3, -4, 0, 6]
    assert tree_inference.zeroed(h, 2) == [5, 0, 6, 0, 0, 0, 6]
    assert tree_inference.zeroed([-1, 2, -3], 2) == [0, 0, 0]
    assert tree_inference.rounded([-2.0, 0.4, 0.6, 2.5, 3.5]) == [0, 0, 1, 2, 4]


@pytest.mark.parametrize(("k", "n"), [(2, 8), (3, 9), (2, 5), (3, 7)])
def test_non_negative_least_squares(k, n):
    matrix = tree_inference.design(n, k)
    for seed in range(10):
        noisy = normals(len(matrix), seed)
        spread = [float(x) for x in np.random.default_rng(seed).uniform(0.5, 2, len(matrix))]
        for variances in (None, spread):
            inverse = np.ones(len(matrix)) if variances is None else 1 / np.array(variances)
            fitted = np.array(tree_inference.nnls(noisy, k, variances))
            slopes = matrix.T @ (inverse * (fitted - noisy))  # Karush, Kuhn and Tucker
            assert fitted.min() >= 0 and slopes.min() > -1e-9
            assert abs(slopes @ fitted[-n:]) < 1e-8
        far = [x + 100 * total for x, total in zip(noisy, matrix.sum(1), strict=True)]
        assert tree_inference.nnls(far, k) == pytest.approx(tree_inference.ols(far, k))


def test_theorem_4_numbers():
    assert tree_inference.theorem4_factor(2, 16) == pytest.approx(28 / 3)
    factors = {(2, 4): 1.33, (2, 8): 4, (2, 11): 6, (4, 5): 6.67, (8, 4): 11.33}
    for (k, height), ratio in tree_inference.ENDS_RATIOS.items():
        n = k ** (height - 1)
        lo, hi = tree_inference.theorem4_query(n)
        subtrees = len(tree_inference.cover(lo, hi, n, k))
        assert subtrees == 2 * (k - 1) * (height - 1) - k
        factor = tree_inference.theorem4_factor(k, height)
        assert factor == pytest.approx(factors[k, height], abs=0.005)
        found = subtrees / tree_inference.consistent_factor(lo, hi, n, k)
        digits = 1 if (k, height) == (2, 11) else 2
        assert round(found, digits) == ratio
        assert found >= factor


@pytest.mark.parametrize(("k", "n"), [(2, 16), (3, 9), (2, 11), (4, 7)])
def test_inference_is_better_for_every_range(k, n):
    for lo, hi in ranges(n):
        cover = tree_inference.variance_cover(lo, hi, n, k, 0.5)
        consistent = tree_inference.variance_consistent(lo, hi, n, k, 0.5)
        assert consistent <= cover * (1 + 1e-12)
    assert tree_inference.node_variance(n, k, 0.5) == 8 * tree_inference.levels(n, k) ** 2


@pytest.mark.parametrize(("k", "n"), [(2, 8), (3, 7)])
def test_variances_by_simulation(k, n):
    counts, epsilon, rng = list(range(n)), 1.0, np.random.default_rng(5)
    tree = tree_inference.build(counts, k)
    scale = tree_inference.sensitivity(n, k) / epsilon
    errors = {(lo, hi): ([], []) for lo, hi in ((1, n - 1), (0, n), (2, 3))}
    for _ in range(1500):
        noisy = [x + rng.laplace(0, scale) for x in tree]
        fitted = tree_inference.two_pass(noisy, k, [1.0] * len(tree))
        for (lo, hi), (by_cover, by_leaves) in errors.items():
            truth = sum(counts[lo:hi])
            by_cover.append(tree_inference.answer_cover(noisy, lo, hi, k) - truth)
            by_leaves.append(tree_inference.answer_leaves(fitted, lo, hi, k) - truth)
    for (lo, hi), (by_cover, by_leaves) in errors.items():
        close_to_variance(by_cover, tree_inference.variance_cover(lo, hi, n, k, epsilon))
        close_to_variance(by_leaves, tree_inference.variance_consistent(lo, hi, n, k, epsilon))


def test_branching():
    for n in (2, 3, 7, 10, 64, 100, 1000, 4096):
        costs = {}
        for b in range(2, n + 1):
            h = next(h for h in range(1, 20) if b**h >= n)
            costs[b] = (b - 1) * h**3 - 2 * (b + 1) * h**2 / 3
        best = tree_inference.hb_branching(n)
        assert costs[best] == pytest.approx(min(costs.values()), abs=1e-9)
        assert all(costs[b] > costs[best] + 1e-9 for b in range(2, best))
    assert tree_inference.hb_branching(4096) == 16


# Privelet, ordinal


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 8, 16, 32, 64, 256])
def test_haar_sensitivity_is_rho(m):
    assert privelet.haar_sensitivity(m) == 1 + math.ceil(math.log2(m))
    if m <= 64:
        force = privelet.haar_sensitivity_by_force(m)
        assert force == pytest.approx(privelet.haar_sensitivity(m))
    weights = privelet.haar_weights(m)
    assert weights[0] == privelet.padded_size(m) == len(weights)
    assert weights[1:2] == weights[:1] * (m > 1)


@pytest.mark.parametrize("m", [1, 2, 5, 8, 11])
def test_haar_forms_agree(m):
    cells = normals(m, m)
    means, sums = privelet.haar_coefficients(cells), privelet.unnormalised_coefficients(cells)
    weights = privelet.haar_weights(m)
    assert [w * c for w, c in zip(weights, means, strict=True)] == pytest.approx(sums)
    assert privelet.haar_reconstruct(means, m) == pytest.approx(cells)
    assert privelet.unnormalised_reconstruct(sums, m) == pytest.approx(cells)
    for neighbours in ("add/remove", "replace"):
        rng, same = np.random.default_rng(6), np.random.default_rng(6)
        first = privelet.haar_noisy(cells, 0.3, neighbours, rng)
        second = privelet.unnormalised_noisy(cells, 0.3, neighbours, same)
        assert [w * c for w, c in zip(weights, first, strict=True)] == pytest.approx(second)
        rebuilt = privelet.haar_reconstruct(first, m)
        assert rebuilt == pytest.approx(privelet.unnormalised_reconstruct(second, m))


@pytest.mark.parametrize("m", sorted(privelet.WORST_RANGES))
def test_worst_ranges_of_section_5_1(m):
    worst, bound = privelet.WORST_RANGES[m]
    found, lo, hi = privelet.haar_worst_range(m, 1.0, "replace")
    assert found == pytest.approx(worst, abs=1e-3)
    assert privelet.haar_bound(m, 1.0) == bound > found
    if m == 256:
        assert (lo, m - hi) in ((21, 21), (22, 21), (21, 22))
    halved = privelet.haar_range_variance(lo, hi, m, 1.0, "add/remove")
    assert halved == pytest.approx(found / 4)


def test_range_variance_against_the_other_reference():
    """On a power of two the integer form has the same coefficients."""
    a = geometric.alpha_for(1.0, haar.sensitivity(8))
    for lo, hi in ranges(8):
        squares = haar.range_variance(lo, hi, 8, 1.0, 1) / geometric.variance(a)
        expected = squares * 2 * haar.sensitivity(8) ** 2
        found = privelet.haar_range_variance(lo, hi, 8, 1.0, "add/remove")
        assert found == pytest.approx(expected)


def test_range_variance_by_simulation():
    m, rng = 6, np.random.default_rng(7)
    cells = normals(m, 0)
    errors = {(0, 6): [], (1, 5): [], (5, 6): []}
    for _ in range(3000):
        noisy = privelet.haar_noisy(cells, 1.0, "replace", rng)
        rebuilt = privelet.haar_reconstruct(noisy, m)
        for (lo, hi), found in errors.items():
            found.append(sum(rebuilt[lo:hi]) - sum(cells[lo:hi]))
    for (lo, hi), found in errors.items():
        close_to_variance(found, privelet.haar_range_variance(lo, hi, m, 1.0, "replace"))


# Privelet, nominal

UNEVEN = [[0, 1, [2, 3]], 4, [[5], 6, 7]]


@pytest.mark.parametrize("fanouts", sorted(privelet.NOMINAL_SENSITIVITIES))
def test_nominal_sensitivities_of_section_5_2(fanouts):
    hierarchy = privelet.even_hierarchy(fanouts)
    expected = privelet.NOMINAL_SENSITIVITIES[fanouts]
    assert privelet.height(hierarchy) == expected
    assert privelet.nominal_sensitivity_by_force(hierarchy) == pytest.approx(expected)


def test_nominal_sensitivity_of_uneven_hierarchies():
    assert privelet.height(UNEVEN) == 4
    assert privelet.nominal_sensitivity_by_force(UNEVEN) == pytest.approx(4)
    # an only child costs nothing, so the height is more than is needed
    assert privelet.height([[[0]], [[1]]]) == 4
    assert privelet.nominal_sensitivity_by_force([[[0]], [[1]]]) == pytest.approx(2)


@pytest.mark.parametrize("hierarchy", [privelet.even_hierarchy((2, 3)), UNEVEN, [0, 1, 2]])
def test_nominal_inverts(hierarchy):
    cells = normals(len(privelet.leaves(hierarchy)), 0)
    coeffs = privelet.nominal_coefficients(cells, hierarchy)
    assert privelet.centred(coeffs, hierarchy) == pytest.approx(coeffs)
    sums = privelet.leaf_sums(cells, hierarchy)
    assert privelet.nominal_reconstruct(coeffs, hierarchy) == pytest.approx(sums)
    noisy = privelet.nominal_noisy(
        cells, hierarchy, 1.0, "add/remove", np.random.default_rng(8)
    )
    rebuilt = privelet.nominal_reconstruct(noisy, hierarchy)
    for path in privelet.paths(hierarchy):  # the centred release is consistent
        here = privelet.subtree(hierarchy, path)
        if isinstance(here, list):
            below = sum(rebuilt[*path, child] for child in range(len(here)))
            assert rebuilt[path] == pytest.approx(below)


@pytest.mark.parametrize("fanouts", [(2,), (4,), (3, 5), (2, 2, 3), (1, 3), (2, 1, 2), (3, 1)])
def test_nominal_variances(fanouts):
    hierarchy = privelet.even_hierarchy(fanouts)
    for path in privelet.paths(hierarchy):
        cells = set(privelet.leaves(privelet.subtree(hierarchy, path)))
        closed = privelet.nominal_node_variance(hierarchy, path, 1.5)
        assert closed == pytest.approx(privelet.nominal_query_variance(hierarchy, cells, 1.5))
        assert closed <= 4 * 1.5**2


def test_nominal_variance_of_section_5_2():
    worst = 0
    for fanouts in privelet.NOMINAL_SENSITIVITIES:
        hierarchy = privelet.even_hierarchy(fanouts)
        for path in privelet.paths(hierarchy):
            worst = max(worst, privelet.nominal_node_variance(hierarchy, path, 1.0))
    assert 3.7 < worst <= 3.8


def test_nominal_variance_by_simulation():
    rng, cells, query = np.random.default_rng(9), [3, 0, 1, 4, 1, 5, 9, 2], {0, 3, 6}
    sigma = math.sqrt(2) * privelet.noise_parameter(4, 2.0, "replace")
    single, several = [], []
    for _ in range(2500):
        noisy = privelet.nominal_noisy(cells, UNEVEN, 2.0, "replace", rng)
        sums = privelet.nominal_reconstruct(noisy, UNEVEN)
        single.append(sums[0, 2] - 5)
        leaves = {(0, 0): 0, (0, 2, 1): 3, (2, 1): 6}
        several.append(sum(sums[path] - cells[cell] for path, cell in leaves.items()))
    close_to_variance(single, privelet.nominal_node_variance(UNEVEN, (0, 2), sigma))
    close_to_variance(several, privelet.nominal_query_variance(UNEVEN, query, sigma))


# The equi-depth histogram


def test_sums_of_laplace_stay_within_the_bound():
    rng = np.random.default_rng(10)
    for terms, delta in ((1, 0.1), (8, 0.1), (20, 0.01)):
        bound = equi_depth.laplace_sum_bound(2.0, terms, delta)
        sums = rng.laplace(0, 2.0, (20_000, terms)).sum(1)
        assert (np.abs(sums) > bound).mean() <= delta


def test_equi_depth_without_noise():
    ends = equi_depth.release([1] * 64, 7.5, 8, 1e12, np.random.default_rng(0))
    assert ends == list(range(0, 65, 8))
    answer = equi_depth.answer
    assert equi_depth.worst_error([1] * 64, lambda lo, hi: answer(ends, 8, lo, hi)) == 0
    counts = [0, 5, 0, 0, 20, 1, 1, 0]
    ends = equi_depth.release(counts, 4.5, 9, 1e12, np.random.default_rng(0))
    assert ends == [0, 2, 5, 8]  # 5, 20 and a rest of 2

    def by_fives(lo, hi):
        return answer(ends, 5, lo, hi)

    assert equi_depth.worst_error(counts, by_fives) == pytest.approx(20 - 5 / 3)
    assert not equi_depth.accurate(counts, by_fives, 0.6)
    assert equi_depth.accurate(counts, by_fives, 0.7)
    few = equi_depth.release([1] * 64, 7.5, 3, 1e12, np.random.default_rng(0))
    assert few == [0, 8, 16, 24, 64]
    assert answer(few, 8, 20, 44) == 4 + 4


def test_equi_depth_error_bound():
    n, depth, buckets, alpha, delta = 64, 400, 12, 4.0, 0.1
    assert equi_depth.noise_bound(n, buckets, delta, alpha) < depth / 2
    counts = [int(x) for x in np.random.default_rng(11).integers(20, 60, n)]
    rng = np.random.default_rng(12)
    bound = equi_depth.error_bound(n, depth, buckets, delta, alpha, max(counts))
    failures = 0
    for _ in range(60):
        ends = equi_depth.release(counts, depth, buckets, alpha, rng)
        assert ends[0] == 0 and ends[-1] == n and ends == sorted(set(ends))
        reached = len(ends) - 1 <= buckets

        def answer(lo, hi, ends=ends):
            return equi_depth.answer(ends, depth, lo, hi)

        failures += not (reached and equi_depth.worst_error(counts, answer) <= bound)
    assert failures <= delta * 60


def test_hierarchical_error_bound():
    n, alpha, delta, rng = 32, 1.0, 0.1, np.random.default_rng(13)
    bound = equi_depth.hierarchical_error(n, delta, alpha)
    matrix = np.zeros((len(ranges(n)), tree_inference.size(n, 2)))
    for row, (lo, hi) in enumerate(ranges(n)):
        matrix[row, tree_inference.cover(lo, hi, n, 2)] = 1
    assert matrix.sum(1).max() <= 2 * tree_inference.levels(n, 2)
    noise = rng.laplace(0, tree_inference.levels(n, 2) / alpha, (matrix.shape[1], 500))
    assert (np.abs(matrix @ noise).max(0) > bound).mean() <= delta


def test_database_sizes_of_appendix_e():
    n, delta, alpha = 2**15, 0.05, 1.0
    for accuracy in (0.1, 0.01):
        hierarchical = equi_depth.hierarchical_size(n, accuracy, delta, alpha)
        assert equi_depth.hierarchical_size(n, accuracy / 10, delta, alpha) == pytest.approx(
            10 * hierarchical
        )
        smaller = equi_depth.size(n, accuracy, delta, alpha)
        growth = equi_depth.size(n, accuracy / 10, delta, alpha) / smaller
        assert 1000 < growth < 1300  # the cube, and a logarithm
        assert smaller > hierarchical
    small = equi_depth.error_at_size(n, 1e9, delta, alpha)
    large = equi_depth.error_at_size(n, 1e12, delta, alpha)
    assert 95 < large / small < 110  # N^(2/3), but for the logarithm


def test_equi_depth_is_useful_at_its_size():
    n, accuracy, delta, alpha = 64, 0.5, 0.1, 1.0
    part, buckets = equi_depth.plan(accuracy)
    size = equi_depth.size(n, accuracy, delta, alpha)
    counts = [math.ceil(size / n)] * n
    depth = part * sum(counts)
    rng = np.random.default_rng(14)
    for _ in range(10):
        ends = equi_depth.release(counts, depth, buckets, alpha, rng)

        def answer(lo, hi, ends=ends):
            return equi_depth.answer(ends, depth, lo, hi)

        assert equi_depth.accurate(counts, answer, accuracy)
