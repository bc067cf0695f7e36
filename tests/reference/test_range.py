"""The slow references for ranges, sketches and synthetic data against closed forms, the notes'
numbers and themselves. Nothing of the project is imported here.
"""

import itertools
import math

import numpy as np
import pytest

from tests.reference import alp, count_sketch, dirichlet, dyadic, geometric, haar, stability

SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17]


def ranges(m):
    return [(lo, hi) for lo in range(m + 1) for hi in range(lo, m + 1)]


def some_counts(m, seed=0):
    return [int(x) for x in np.random.default_rng(seed).integers(0, 9, m)]


def close_to_variance(samples, variance):
    """The mean square of centred samples, within five standard errors."""
    squares = np.square(samples)
    error = squares.std() / math.sqrt(len(samples))
    assert abs(squares.mean() - variance) < 5 * error, (squares.mean(), variance, error)


# Dyadic


@pytest.mark.parametrize("m", SIZES)
def test_every_depth_of_the_tree_sums_to_the_total(m):
    counts = some_counts(m)
    tree = dyadic.nodes(counts)
    levels = math.ceil(math.log2(m))
    for depth in range(levels + 1):
        indices = [index for d, index in tree if d == depth]
        assert indices == list(range(math.ceil(m / 2 ** (levels - depth))))
        assert sum(tree[depth, index] for index in indices) == sum(counts)
    assert [tree[levels, cell] for cell in range(m)] == counts


def test_size_of_the_tree():
    for m in (1, 2, 4, 8, 16):
        assert len(dyadic.all_nodes(m)) == 2 * m - 1
    assert len(dyadic.all_nodes(5)) == 11  # and not 2m - 1 = 9: padded nodes are repeated


@pytest.mark.parametrize("m", SIZES)
def test_dyadic_sensitivity_by_brute_force(m):
    counts = some_counts(m)
    before = dyadic.nodes(counts)
    for cell in range(m):
        counts[cell] += 1
        after = dyadic.nodes(counts)
        counts[cell] -= 1
        assert sum(abs(after[node] - before[node]) for node in before) == dyadic.sensitivity(m)
    assert dyadic.sensitivity(m) == math.ceil(math.log2(m)) + 1


@pytest.mark.parametrize("m", SIZES)
def test_cover_is_exact_minimal_and_at_most_two_a_level(m):
    intervals = []
    for node in dyadic.all_nodes(m):
        start, stop = dyadic.interval(node, m)
        intervals.append((start, min(stop, m)))
    for lo, hi in ranges(m):
        cover = dyadic.cover(lo, hi, m)
        cells = []
        for node in cover:
            start, stop = dyadic.interval(node, m)
            cells.extend(range(start, min(stop, m)))
        assert cells == list(range(lo, hi))
        for depth in range(dyadic.height(m) + 1):
            assert sum(d == depth for d, _ in cover) <= 2
        fewest = {lo: 0}  # by shortest path over all the intervals
        for start, stop in sorted(intervals):
            if start in fewest:
                fewest[stop] = min(fewest.get(stop, m), fewest[start] + 1)
        assert len(cover) == fewest[hi]


@pytest.mark.parametrize("m", SIZES)
def test_true_trees_answer_exactly(m):
    counts = some_counts(m)
    tree, wavelet = dyadic.nodes(counts), haar.coefficients(counts)
    for lo, hi in ranges(m):
        assert dyadic.answer(tree, lo, hi, m) == sum(counts[lo:hi])
        assert haar.answer(wavelet, lo, hi, m) == sum(counts[lo:hi])


def test_node_hanging_over_the_end():
    assert dyadic.cover(0, 5, 5) == [(0, 0)]
    assert dyadic.cover(4, 5, 5) == [(1, 1)]
    assert dyadic.cover(1, 5, 5) == [(3, 1), (2, 1), (1, 1)]


def test_noise_of_the_dyadic_answer():
    counts, m, epsilon, l1 = [4, 0, 0, 7, 1, 0], 6, 1.0, 2
    shares = [0.1, 0.2, 0.3, 0.4]
    rng = np.random.default_rng(1)
    errors = {(1, 6): [], (0, 3): [], (0, 6): []}
    for _ in range(4000):
        tree = dyadic.noisy(counts, epsilon, l1, shares, rng)
        for (lo, hi), found in errors.items():
            found.append(dyadic.answer(tree, lo, hi, m) - sum(counts[lo:hi]))
    assert list(tree) == dyadic.all_nodes(m)
    for (lo, hi), found in errors.items():
        close_to_variance(found, dyadic.range_variance(lo, hi, m, epsilon, l1, shares))
    a = math.exp(-0.1 / 2)
    assert dyadic.range_variance(0, 6, m, 1.0, 2, shares) == pytest.approx(2 * a / (1 - a) ** 2)


def test_uniform_shares_are_the_uniform_mechanism():
    for m in (1, 5, 8):
        alpha = dyadic.alpha_at(0, 0.7, 3, dyadic.uniform(m))
        assert alpha == pytest.approx(geometric.alpha_for(0.7, 3 * dyadic.sensitivity(m)))
    with pytest.raises(ValueError):
        dyadic.noisy([1, 2], 1.0, 1, [0.6, 0.6], np.random.default_rng(0))


def test_filter_and_consistency():
    tree = {(0, 0): 9, (1, 0): -8, (1, 1): 1, (2, 0): 7, (2, 1): -3, (2, 2): 6, (2, 3): 0}
    assert dyadic.filtered(tree, 0, 2) == tree
    two = dyadic.filtered(tree, 3, 2)
    assert two == {(0, 0): 9, (1, 0): -8, (2, 0): 7, (2, 1): -3, (2, 2): 6}
    assert dyadic.consistent(two) == {(0, 0): 9, (1, 0): -8, (2, 0): 7, (2, 1): -3}
    one = dyadic.filtered(tree, 3, 1)
    assert one == {(0, 0): 9, (2, 0): 7, (2, 2): 6}
    assert dyadic.consistent(one) == {(0, 0): 9}
    assert dyadic.consistent(tree) == tree
    assert dyadic.consistent({(1, 0): 5, (1, 1): 5}) == {}


def test_consistency_keeps_the_nodes_whose_whole_path_is_there():
    rng = np.random.default_rng(2)
    for m in (5, 8):
        for _ in range(50):
            kept = {node: 1 for node in dyadic.all_nodes(m) if rng.random() < 0.7}
            remaining = dyadic.consistent(kept)
            assert dyadic.consistent(remaining) == remaining
            grown = set()  # from the root down: the same rule the other way round
            for depth, index in sorted(kept):
                if depth == 0 or (depth - 1, index // 2) in grown:
                    grown.add((depth, index))
            assert set(remaining) == grown


def test_sampling_a_tree_is_unbiased():
    tree = {(0, 0): 12, (1, 0): 9, (1, 1): 3, (2, 0): -4, (2, 1): 0, (2, 2): 1, (2, 3): 20}
    rng = np.random.default_rng(3)
    sums = {"threshold": dict.fromkeys(tree, 0.0), "priority": dict.fromkeys(tree, 0.0)}
    draws = 4000
    for _ in range(draws):
        by_coin = dyadic.threshold(tree, 0, 7.5, 2, rng)
        by_rank, tau_s = dyadic.priority(tree, 0, 3, 2, rng)
        assert len(by_rank) == 3 and tau_s > 0
        for node, (x, weight) in by_coin.items():
            assert x == tree[node] and abs(weight) == max(abs(x), 7.5)
        for node, (x, weight) in by_rank.items():
            assert x == tree[node] and abs(weight) == max(abs(x), tau_s)
        for name, released in (("threshold", by_coin), ("priority", by_rank)):
            for node, weight in dyadic.weights(released).items():
                sums[name][node] += weight
    for found in sums.values():
        for node, x in tree.items():
            assert found[node] / draws == pytest.approx(x, abs=0.7)
    everything, tau_s = dyadic.priority(tree, 3, 9, 2, rng)
    assert tau_s == 0
    assert dyadic.weights(everything) == dyadic.filtered(tree, 3, 2)


SHAPES = [(1, 1), (1, 3), (2, 2), (3, 4), (5, 3)]


@pytest.mark.parametrize("shape", SHAPES)
def test_two_dimensions(shape):
    m1, m2 = shape
    counts = [some_counts(m2, seed) for seed in range(m1)]
    tree = dyadic.nodes2(counts)
    assert len(tree) == len(dyadic.all_nodes(m1)) * len(dyadic.all_nodes(m2))
    for row, column in itertools.product(range(m1), range(m2)):
        counts[row][column] += 1
        after = dyadic.nodes2(counts)
        counts[row][column] -= 1
        change = sum(abs(after[node] - tree[node]) for node in tree)
        assert change == dyadic.sensitivity2(m1, m2)
    for box in itertools.product(ranges(m1), ranges(m2)):
        (top, bottom), (left, right) = box
        truth = sum(sum(row[left:right]) for row in counts[top:bottom])
        assert dyadic.answer2(tree, box, shape) == truth
        pairs = [(d1, d2) for d1, _, d2, _ in dyadic.cover2(box, shape)]
        assert all(pairs.count(pair) <= 4 for pair in pairs)


def test_consistency_in_two_dimensions_by_containment():
    shape, rng = (4, 3), np.random.default_rng(4)
    every = list(dyadic.nodes2([[0] * 3] * 4))

    def contains(big, small):
        for axis, m in enumerate(shape):
            start, stop = dyadic.interval(big[2 * axis : 2 * axis + 2], m)
            first, last = dyadic.interval(small[2 * axis : 2 * axis + 2], m)
            if big[2 * axis] > small[2 * axis] or first < start or last > stop:
                return False
        return True

    for _ in range(20):
        kept = {node: 1 for node in every if rng.random() < 0.9}
        wanted = set()
        for node in kept:
            if all(other in kept for other in every if contains(other, node)):
                wanted.add(node)
        assert set(dyadic.consistent2(kept)) == wanted
    without_root = {node: 1 for node in every if node != (0, 0, 0, 0)}
    assert dyadic.consistent2(without_root) == {}


def test_noise_in_two_dimensions():
    counts, box, shape = [[3, 0, 1], [0, 0, 5]], ((0, 1), (1, 3)), (2, 3)
    rng = np.random.default_rng(5)
    errors = []
    for _ in range(3000):
        tree = dyadic.noisy2(counts, 2.0, 1, rng)
        errors.append(dyadic.answer2(tree, box, shape) - 1)
    assert len(dyadic.cover2(box, shape)) == 2
    close_to_variance(errors, dyadic.range_variance2(box, shape, 2.0, 1))


# Haar


@pytest.mark.parametrize("m", SIZES)
def test_haar_has_m_coefficients_and_inverts(m):
    counts = some_counts(m)
    wavelet = haar.coefficients(counts)
    assert len(wavelet) == len(haar.names(m)) == m
    assert haar.reconstruct(wavelet, m) == counts
    assert haar.reconstruct({}, m) == [0] * m


@pytest.mark.parametrize("m", SIZES)
def test_haar_sensitivity_by_brute_force(m):
    counts = some_counts(m)
    before = haar.coefficients(counts)
    changes = []
    for cell in range(m):
        counts[cell] += 1
        after = haar.coefficients(counts)
        counts[cell] -= 1
        changes.append(sum(abs(after[name] - before[name]) for name in before))
    assert max(changes) == changes[0] == haar.sensitivity(m)
    assert haar.sensitivity(m) == 1 + math.ceil(math.log2(m))
    if m == 2 ** dyadic.height(m):
        assert min(changes) == haar.sensitivity(m)


def test_haar_by_hand():
    assert haar.coefficients([7]) == {"total": 7}
    five = {"total": 15, (0, 0): 5, (1, 0): -4, (2, 0): -1, (2, 1): -1}
    assert haar.coefficients([1, 2, 3, 4, 5]) == five
    # the last cell is the total less the left half: no other coefficient, no split of padding
    assert haar.weights(4, 5, 5) == {
        "total": 0.5,
        (0, 0): -0.5,
        (1, 0): 0,
        (2, 0): 0,
        (2, 1): 0,
    }
    assert haar.reconstruct({"total": 8}, 5) == [1, 1, 1, 1, 4]


# 5.1 prints 1403 for m = 256, less than the range [21, 235) has
@pytest.mark.parametrize(("m", "worst"), [(8, 152), (32, 471.375), (256, 1494.189)])
def test_worst_range_variance_of_section_5_1(m, worst):
    levels = dyadic.height(m)
    prefix = np.zeros((m, m + 1))
    for row, name in enumerate(haar.names(m)):
        prefix[row, 1:] = np.cumsum(haar.reconstruct({name: 1}, m))
    squares = max(
        ((prefix[:, [hi]] - prefix[:, :hi]) ** 2).sum(0).max() for hi in range(1, m + 1)
    )
    variance = squares * 2 * (2 * (1 + levels)) ** 2  # Laplace, replace, epsilon = 1
    assert variance == pytest.approx(worst, abs=1e-3)
    assert variance <= (2 + levels) * (2 + 2 * levels) ** 2


def test_noise_of_the_haar_answer():
    counts, m, epsilon, l1 = [4, 0, 0, 7, 1, 0], 6, 1.0, 1
    rng = np.random.default_rng(6)
    errors = {(1, 6): [], (0, 3): [], (0, 6): [], (5, 6): []}
    for _ in range(4000):
        wavelet = haar.noisy(counts, epsilon, l1, rng)
        for (lo, hi), found in errors.items():
            found.append(haar.answer(wavelet, lo, hi, m) - sum(counts[lo:hi]))
    for (lo, hi), found in errors.items():
        close_to_variance(found, haar.range_variance(lo, hi, m, epsilon, l1))
    a = math.exp(-epsilon / 4)
    assert haar.range_variance(0, 6, m, epsilon, l1) == pytest.approx(2 * a / (1 - a) ** 2)


# Count sketch


def test_sketch_variance_over_every_hash():
    counts, width, epsilon, l1 = [3, 1, -2], 2, 1.0, 1
    rows = []
    for hashes in itertools.product(range(2), repeat=6):
        rows.append(([hashes[:3]], [[2 * bit - 1 for bit in hashes[3:]]]))
    for key in range(3):
        single = []
        for bucket, sign in rows:
            table = count_sketch.sketch(counts, bucket, sign, width)
            single.append(count_sketch.estimate(table, bucket, sign, key, "mean") - counts[key])
        double = [(first + second) / 2 for first in single for second in single]
        for depth, errors in ((1, single), (2, double)):
            assert sum(errors) == 0
            noise = geometric.variance(math.exp(-epsilon / depth)) / depth
            expected = count_sketch.variance(counts, key, width, depth, epsilon, l1)
            assert np.mean(np.square(errors)) + noise == pytest.approx(expected)


def test_sketch_with_noise():
    counts, width, depth, epsilon, l1 = [9, 0, 3, 1], 3, 3, 2.0, 1
    rng = np.random.default_rng(7)
    errors = []
    for _ in range(6000):
        bucket, sign = count_sketch.draw_hashes(depth, width, 4, rng)
        table = count_sketch.sketch(counts, bucket, sign, width)
        table = count_sketch.noisy(table, epsilon, l1, depth, rng)
        errors.append(count_sketch.estimate(table, bucket, sign, 2, "mean") - 3)
    close_to_variance(errors, count_sketch.variance(counts, 2, width, depth, epsilon, l1))


def test_sketch_by_hand():
    bucket, sign = [[0, 0, 1], [1, 0, 1]], [[1, -1, 1], [-1, 1, 1]]
    table = count_sketch.sketch([5, 2, 1], bucket, sign, 2)
    assert table == [[3, 1], [2, -4]]
    assert count_sketch.estimate(table, bucket, sign, 0, "mean") == 3.5
    odd = [[1], [10], [2]]
    same = [[0]] * 3, [[1]] * 3
    assert count_sketch.estimate(odd, *same, 0, "median") == 2
    assert count_sketch.estimate(odd[:2], *same, 0, "median") == 5.5
    one_more = count_sketch.sketch([5, 3, 1], bucket, sign, 2)
    assert one_more == [[2, 1], [3, -4]]  # one bucket a row: sensitivity `depth`


def test_one_row_is_best_at_a_fixed_size():
    counts = some_counts(30)
    for epsilon in (0.1, 1.0, 5.0):
        found = [count_sketch.variance(counts, 0, 64 // d, d, epsilon, 1) for d in (1, 2, 4, 8)]
        assert found == sorted(found)
    # small epsilon: the noise part is 2d/epsilon^2, as with Laplace noise
    assert count_sketch.variance([1], 0, 8, 4, 0.01, 1) == pytest.approx(80_000, rel=1e-3)


# Dirichlet


def test_dirichlet_law_is_a_law():
    for x, alpha in (((2, 0, 1), 0.3), ((0, 0), 1.0), ((5, 1), 2.5)):
        law = [
            math.exp(dirichlet.log_probability(z, x, alpha, 4))
            for z in dirichlet.tables(len(x), 4)
        ]
        assert math.fsum(law) == pytest.approx(1, rel=1e-12)
    # empty table and alpha = 1: every z is as likely
    assert math.exp(dirichlet.log_probability((1, 3), (0, 0), 1.0, 4)) == pytest.approx(1 / 5)


def test_pure_alpha_is_exact():
    alpha = dirichlet.pure_alpha(6, 1.0)
    assert dirichlet.worst_loss(3, 4, 6, alpha) == pytest.approx(1, abs=1e-9)
    assert dirichlet.worst_loss(3, 4, 6, 0.99 * alpha) > 1.001
    assert dirichlet.true_delta((4, 0, 0), alpha, 6, 1.0) == 0
    assert dirichlet.true_delta((4, 0, 0), 0.99 * alpha, 6, 1.0) > 0
    assert dirichlet.delta_bound(alpha, 3, 4, 6, 1.0) == 0
    assert round(dirichlet.pure_alpha(10_000, 1.0)) == 5820
    assert round(dirichlet.pure_alpha(100_000, 1.0)) == 58198


def test_pure_alpha_with_one_record_more():
    alpha, worst = dirichlet.pure_alpha(6, 1.0), 0.0
    for x in dirichlet.tables(3, 6):
        for z in dirichlet.tables(3, 6):
            here = dirichlet.log_probability(z, x, alpha, 6)
            for cell in range(3):
                more = [count + (i == cell) for i, count in enumerate(x)]
                worst = max(worst, abs(here - dirichlet.log_probability(z, more, alpha, 6)))
    assert worst == pytest.approx(0.689, abs=1e-3)  # of n = 6; it tends to epsilon as n grows


def test_tail_against_the_whole_law():
    for a, b, records in ((0.4, 2.5, 7), (3.0, 0.2, 6), (2.0, 2.0, 9), (0.3, 40.0, 12)):
        x = [a, b]
        pmf = []
        for z in range(records + 1):
            pmf.append(math.comb(records, z))
            for t in range(z):
                pmf[-1] *= x[0] + t
            for t in range(records - z):
                pmf[-1] *= x[1] + t
            for t in range(records):
                pmf[-1] /= a + b + t
        for first in range(-1, records + 2):
            tail = math.exp(dirichlet.log_tail(first, records, a, b))
            assert tail == pytest.approx(math.fsum(pmf[max(first, 0) :]), rel=1e-11, abs=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "n", "epsilon", "alpha"),
    [
        (1_000, 10_000, 0.5, 50),
        (1_000, 10_000, 1, 20),
        (1_000, 10_000, 2, 5.0),
        (1_000, 10_000, 4, 0.52),
        (1_000, 10_000, 8.6, 0.005),
        (10_000, 100_000, 4, 0.58),
        (10_000, 100_000, 8.6, 0.006),
    ],
)
def test_table_of_section_3_3(k, n, epsilon, alpha):
    assert dirichlet.delta_bound(alpha, k, n, n, epsilon) <= 1e-4
    assert dirichlet.delta_bound(0.85 * alpha, k, n, n, epsilon) > 1e-4  # of a coarse grid


def test_delta_bound_holds():
    for k, n, records in ((2, 3, 6), (3, 2, 5), (3, 4, 4)):
        for alpha in (0.05, 0.3, 1.0, 2.0, 5.0):
            for epsilon in (0.5, 1.0, 2.0):
                bound = dirichlet.delta_bound(alpha, k, n, records, epsilon)
                for x in dirichlet.tables(k, n):
                    delta = dirichlet.true_delta(x, alpha, records, epsilon)
                    assert delta <= bound + 1e-12


def test_the_guarantee_is_for_the_stated_n_only():
    # 3.3: k = 1e3, 1e4 synthetic records, epsilon 4, alpha 0.52, but one real record, in cell 1.
    # The ratio against the table with it in cell 2 is (alpha + z_1)/(alpha + z_2).
    k, records, epsilon, alpha = 1_000, 10_000, 4, 0.52
    prior = [alpha + 1, alpha]
    rest = alpha * (k - 2)
    one_neighbour = []
    for small in (1, 0):  # which of the two cells gets few
        a, b = prior[1 - small], prior[small]
        terms = []
        for z in range(200):
            log_at_least = dirichlet.log_tail(z, records, b, a + rest)
            log_more = dirichlet.log_tail(z + 1, records, b, a + rest)
            first = math.floor(math.exp(epsilon) * (alpha + z) - alpha) + 1
            above = math.exp(dirichlet.log_tail(first, records - z, a, rest))
            terms.append((math.exp(log_at_least) - math.exp(log_more)) * above)
        one_neighbour.append(math.fsum(terms))
    assert one_neighbour[0] == pytest.approx(0.092, abs=5e-4)  # the number of 3.3: z_1 large
    assert sum(one_neighbour) == pytest.approx(0.0933, abs=5e-5)  # and z_2 large
    # Over all neighbours it is far more: z_1 >= 28 is a violation as soon as any cell is empty.
    log_many = dirichlet.log_tail(28, records, alpha + 1, alpha * (k - 1))
    assert 28 + alpha > math.exp(epsilon) * alpha and math.exp(log_many) > 0.4


def test_synthesise_draws_from_the_law():
    x, alpha, records, draws = (2, 0, 1), 0.5, 3, 8000
    rng = np.random.default_rng(8)
    seen = {}
    for _ in range(draws):
        z = tuple(dirichlet.synthesise(x, alpha, records, rng))
        seen[z] = seen.get(z, 0) + 1
    statistic, cells = 0.0, 0
    for z in dirichlet.tables(3, records):
        expected = draws * math.exp(dirichlet.log_probability(z, x, alpha, records))
        statistic += (seen.pop(z, 0) - expected) ** 2 / expected
        cells += 1
    assert not seen
    freedom = cells - 1
    assert statistic < freedom + 5 * math.sqrt(2 * freedom)


# Stability


LIMITS = [(1, 1, 1, 1.0), (3, 3, 5, 1.0), (4, 4, 4, 0.5), (3, 2, 6, 1.0), (2, 5, 5, 2.0)]


@pytest.mark.parametrize(("l0", "linf", "l1", "epsilon"), LIMITS)
def test_delta_is_the_worst_choice_of_new_cells(l0, linf, l1, epsilon):
    for threshold in (1, 2, 4, 8, 15, 30):
        worst = 0.0
        for counts in itertools.product(range(linf + 1), repeat=l0):
            if 0 < sum(counts) <= l1:
                filled = [count for count in counts if count > 0]
                worst = max(worst, stability.failure(filled, threshold, l1, epsilon))
        assert stability.delta(threshold, l0, linf, l1, epsilon) == pytest.approx(
            worst, rel=1e-12
        )


def test_the_packed_choice_is_not_always_the_worst():
    packed = stability.failure([10], 142, 10, 1.0)
    spread = stability.failure([1] * 10, 142, 10, 1.0)
    assert packed < 1e-6 < spread
    assert spread / packed == pytest.approx(10 * math.exp(-0.9), rel=1e-4)
    assert stability.threshold(10, 10, 10, 1.0, 1e-6) == 156
    for l0, linf, l1 in ((3, 1, 9), (4, 3, 12), (1, 7, 7)):  # where it is
        cells = [linf] * l0
        packed = stability.failure(cells, 20, l1, 1.0)
        assert stability.delta(20, l0, linf, l1, 1.0) == packed


def test_threshold_of_one_record():
    # one cell of one record: a^(T - 1)/(1 + a) <= delta
    for epsilon, target in ((1.0, 1e-6), (0.1, 1e-9), (3.0, 0.4)):
        a = math.exp(-epsilon)
        found = stability.threshold(1, 1, 1, epsilon, target)
        assert found == 1 + math.ceil(math.log(target * (1 + a)) / math.log(a))
    assert stability.threshold(1, 1, 1, 1.0, 1e-6) == 15
    for l0, linf, l1, epsilon in LIMITS:
        found = stability.threshold(l0, linf, l1, epsilon, 1e-5)
        assert stability.delta(found, l0, linf, l1, epsilon) <= 1e-5
        assert stability.delta(found - 1, l0, linf, l1, epsilon) > 1e-5
    assert stability.threshold(2, 2, 2, 1.0, 0.99) == 1


def test_stability_tail():
    for alpha in (0.1, 0.6, 0.95):
        for t in range(-5, 6):
            total = sum(geometric.pmf(x, alpha) for x in range(t, t + 2000))
            assert stability.tail(t, alpha) == pytest.approx(total, rel=1e-12)


def test_stability_release():
    rng = np.random.default_rng(9)
    counts, draws, passed = [0, 1, 40, 3], 6000, [0, 0, 0, 0]
    for _ in range(draws):
        for cell, x in stability.release(counts, 1.0, 2, 4, rng).items():
            assert x >= 4
            passed[cell] += 1
    assert passed[0] == 0 and passed[2] == draws
    for cell in (1, 3):
        p = stability.tail(4 - counts[cell], math.exp(-1 / 2))
        assert abs(passed[cell] / draws - p) < 5 * math.sqrt(p * (1 - p) / draws)


# ALP


@pytest.mark.parametrize(
    ("epsilon", "alpha", "l1"),
    [(1, 3, 1), (1, 2, 1), (0.3, 1, 1), (3, 3, 1), (1, 3, 2), (4, 2.5, 1), (5, 2, 1)],
)
def test_alp_loss_is_exact_and_at_most_epsilon(epsilon, alpha, l1):
    worst = max(alp.worst_log_ratio(x, 7, epsilon, alpha, l1) for x in range(25))
    factor = alp.loss_factor(epsilon, alpha, l1)
    assert l1 * worst == pytest.approx(math.log(factor), rel=1e-9)  # attained
    assert factor <= math.exp(epsilon)
    if epsilon <= alpha * l1:
        assert factor == pytest.approx((1 + epsilon / l1) ** l1)
    else:  # a record moves more than a level: more than the notes' 1 + epsilon
        assert factor > (1 + epsilon / l1) ** l1


def test_alp_parameters():
    assert alp.flip(3) == 0.2
    assert (1 - alp.flip(3)) / alp.flip(3) == pytest.approx(4)
    assert alp.levels(100, 1, 3, 1) == 34
    assert alp.levels(96, 1, 3, 2) == 16
    assert alp.levels(1, 0.1, 3, 1) == 1
    assert alp.size(300, 1, 3, 1, 50) == 8192
    assert alp.size(300, 1, 3, 2, 50) == 4096


def test_alp_rounding_is_unbiased():
    rng = np.random.default_rng(10)
    draws = [alp.round_randomly(2.3, rng) for _ in range(5000)]
    assert set(draws) == {2, 3}
    assert np.mean(draws) == pytest.approx(2.3, abs=0.035)


def test_alp_bits_follow_the_law():
    epsilon, alpha, l1, beta, count = 2.0, 3.0, 1, 4.5, 4  # y = 8/3
    levels = alp.levels(beta, epsilon, alpha, l1)
    assert levels == 3
    h = {level: [level - 1] for level in range(1, levels + 1)}
    law = alp.output_law(count, levels, epsilon, alpha, l1)
    assert math.fsum(law.values()) == pytest.approx(1)
    rng = np.random.default_rng(11)
    seen, draws = dict.fromkeys(law, 0), 8000
    for _ in range(draws):
        seen[tuple(alp.encode([count], h, 3, beta, epsilon, alpha, l1, rng))] += 1
    for path, p in law.items():
        assert abs(seen[path] / draws - p) < 5 * math.sqrt(p * (1 - p) / draws)
    # above beta nothing changes any more
    for path, p in alp.output_law(50, 3, 2.0, 3.0, 1).items():
        assert p == pytest.approx(alp.output_law(60, 3, 2.0, 3.0, 1)[path], rel=1e-12)


def test_alp_walk():
    assert alp.walk([]) == 0
    assert alp.walk([0, 0, 0]) == 0
    assert alp.walk([1, 1, 0]) == 2
    assert alp.walk([1, 0, 1, 0]) == 2  # positions 1 and 3
    assert alp.walk([0, 1]) == 1  # positions 0 and 2
    bits, h = [1, 0, 1, 1], [None, [2, 1], [0, 1], [1, 1], [3, 1]]
    assert alp.estimate(bits, h, 0, 12, 1, 3, 1) == 3 * 3  # +1 +1 -1 +1: positions 2 and 4
    assert alp.estimate(bits, h, 0, 24, 1, 3, 2) == 3 * 6
    assert alp.estimate(bits, h, 1, 12, 1, 3, 1) == 0


def test_alp_errors_of_section_11():
    # epsilon = 1, alpha = 3, size factor 50: 4.6 for non-zero counts, 2.9 for zeros
    epsilon, alpha, l1, beta, rng = 1.0, 3.0, 1, 100, np.random.default_rng(12)
    counts = [60] * 10 + [0] * 200
    size = alp.size(sum(counts), epsilon, alpha, l1, 50)
    levels = alp.levels(beta, epsilon, alpha, l1)
    full, empty = [], []
    for _ in range(40):
        h = [None] + [[int(x) for x in rng.integers(size, size=210)] for _ in range(levels)]
        bits = alp.encode(counts, h, size, beta, epsilon, alpha, l1, rng)
        for key, count in enumerate(counts):
            error = abs(alp.estimate(bits, h, key, beta, epsilon, alpha, l1) - count)
            (full if count else empty).append(error)
    assert np.mean(empty) == pytest.approx(2.9, abs=0.4)
    assert np.mean(full) == pytest.approx(4.6, abs=1.2)
