"""The slow references for kernel PCA, maximum entropy and randomised response against the notes'
numbers, closed forms and themselves. Nothing of the project is imported here.

Printed numbers whose inputs are not (a limit of 2952.69, objectives 1116.507 and 797.847, a covariance
0.037926, errors 154 and 186, gaps of 3 and 1e3) are checked for the fact that they illustrate.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.reference import kernel_pca, local, maximum_entropy

ADULT = [79, 2, 17, 51, 9, 7, 6, 50, 50]
SIZES = [3, 4, 2]
PARTS = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.3, 0.4], [0.7, 0.3]]
INFINITY = math.inf


def weights(sizes, parts):
    """The three inner products: plain, divided by N, prior."""
    N = math.prod(sizes)
    return {
        "plain": np.ones(N),
        "scaled": kernel_pca.uniform(sizes),
        "prior": kernel_pca.product_prior(parts),
    }


def ranges(sizes, m, rng):
    """Random 2-D ranges as intervals and as vectors."""
    found = []
    for _ in range(m):
        pair = sorted(int(k) for k in rng.choice(len(sizes), 2, replace=False))
        query = {}
        for k in pair:
            lo, hi = sorted(rng.choice(sizes[k] + 1, 2, replace=False))
            query[k] = (int(lo), int(hi))
        found.append(query)
    return found, [kernel_pca.range_query(sizes, query) for query in found]


def correlated(m, rng):
    root = rng.normal(size=(m, m))
    return root @ root.T + m * np.eye(m)


def asked(seed, m=8, noise=None):
    """Queries, noisy answers, covariance, truth and n of a small database."""
    rng = np.random.default_rng(seed)
    N = math.prod(SIZES)
    x = rng.multinomial(500, kernel_pca.product_prior(PARTS)).astype(float)
    _, queries = ranges(SIZES, m, rng)
    covariance = correlated(m, rng) if noise is None else noise**2 * np.eye(m)
    truth = np.array(queries) @ x
    noisy = truth + rng.multivariate_normal(np.zeros(m), covariance)
    assert len(x) == N
    return queries, noisy, covariance, x, rng


# Kernel PCA


@pytest.mark.parametrize("weight", ["plain", "scaled", "prior"])
def test_eigenqueries_are_orthonormal_and_their_errors_uncorrelated(weight):
    queries, _, covariance, _, _ = asked(0)
    weight = weights(SIZES, PARTS)[weight]
    K = kernel_pca.kernel(queries, weight)
    W, squares = kernel_pca.eigenqueries(K, covariance)
    assert np.linalg.matrix_rank(K) == len(squares)
    assert W @ K @ W.T == pytest.approx(np.eye(len(squares)), abs=1e-10)  # proposition 1
    assert W @ covariance @ W.T == pytest.approx(np.diag(1 / squares), abs=1e-9)  # 3
    assert list(squares) == sorted(squares, reverse=True)


@pytest.mark.parametrize("weight", ["plain", "scaled", "prior"])
@pytest.mark.parametrize("alpha", [0.05, 1.0, 30.0, 1000.0])
def test_kernel_pca_is_ridge_regression(weight, alpha):
    for seed in range(4):
        queries, noisy, covariance, _, rng = asked(seed)
        weight_ = weights(SIZES, PARTS)[weight]
        q = rng.normal(size=math.prod(SIZES))
        pca = kernel_pca.answer(q, queries, noisy, covariance, weight_, alpha)
        ridge = kernel_pca.ridge(q, queries, noisy, covariance, weight_, alpha)
        assert pca == pytest.approx(ridge, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("weight", ["plain", "scaled", "prior"])
def test_infinite_alpha_is_weighted_least_squares(weight):
    for seed in range(4):
        queries, noisy, covariance, x, rng = asked(seed, m=14)
        weight_ = weights(SIZES, PARTS)[weight]
        h = kernel_pca.least_squares_histogram(queries, noisy, covariance, weight_)
        for q in (queries[3], rng.normal(size=len(x))):
            pca = kernel_pca.answer(q, queries, noisy, covariance, weight_, INFINITY)
            assert pca == pytest.approx(float(q @ h), rel=1e-7, abs=1e-7)
        exact = np.array(queries) @ x
        for q, answer in zip(queries, exact, strict=True):  # unbiased
            pca = kernel_pca.answer(q, queries, exact, covariance, weight_, INFINITY)
            assert pca == pytest.approx(answer, abs=1e-7)
        large = kernel_pca.answer(queries[0], queries, noisy, covariance, weight_, 1e6)
        limit = kernel_pca.answer(queries[0], queries, noisy, covariance, weight_, INFINITY)
        assert large == pytest.approx(limit, abs=1e-6)


def test_least_squares_of_equal_weights_is_eq_4():
    queries, noisy, covariance, _, _ = asked(5)
    root = kernel_pca.inverse_root(covariance)
    eq4 = np.linalg.pinv(root @ np.array(queries)) @ root @ noisy
    for weight in (np.ones(24), np.full(24, 1 / 24)):
        h = kernel_pca.least_squares_histogram(queries, noisy, covariance, weight)
        assert h == pytest.approx(eq4, abs=1e-8)


def test_eq_17_needs_alpha_squared():
    queries, _, covariance, _, rng = asked(1, m=5)
    weight = kernel_pca.uniform(SIZES)
    q, alpha = rng.normal(size=24), 7.0
    K = kernel_pca.kernel(queries, weight)
    _, squares = kernel_pca.eigenqueries(K, covariance)
    best = kernel_pca.shrinkage(alpha, squares)
    least = kernel_pca.objective(q, best, queries, covariance, weight, alpha)
    for _ in range(50):
        y = rng.random(len(squares))
        direct = kernel_pca.objective(q, y, queries, covariance, weight, alpha)
        arguments = (q, y, queries, covariance, weight, alpha)
        assert kernel_pca.objective_by_parts(*arguments) == pytest.approx(direct, rel=1e-10)
        assert kernel_pca.objective_by_parts(*arguments, as_printed=True) < direct - 1
        assert direct >= least  # y_i minimises, printed or not
    # and over every q' in the span, not only over shrunken coordinates
    for _ in range(50):
        y = best + rng.normal(size=len(best))
        assert kernel_pca.objective(q, y, queries, covariance, weight, alpha) > least


def test_variance_and_answering_query():
    queries, _, covariance, x, rng = asked(2)
    weight, q = kernel_pca.product_prior(PARTS), rng.normal(size=24)
    for rule in (kernel_pca.shrinkage, kernel_pca.truncation):
        alpha = 6.0
        arguments = (queries, covariance, weight, alpha)
        other = kernel_pca.answering_query(q, *arguments, rule)
        exact = np.array(queries) @ x
        mean = kernel_pca.answer(q, queries, exact, covariance, weight, alpha, rule)
        assert mean == pytest.approx(float(other @ x), rel=1e-9)
        # the answer is linear in the noisy answers: its coefficients one by one
        columns = [
            kernel_pca.answer(q, queries, unit, covariance, weight, alpha, rule)
            for unit in np.eye(len(queries))
        ]
        spread = float(np.array(columns) @ covariance @ columns)
        assert kernel_pca.variance(q, *arguments, rule) == pytest.approx(spread, rel=1e-8)


def test_truncation_keeps_the_sure_eigenqueries():
    squares = np.array([4.0, 1.0, 0.25])
    assert list(kernel_pca.truncation(0.4, squares)) == [0, 0, 0]
    assert list(kernel_pca.truncation(0.6, squares)) == [1, 0, 0]
    assert list(kernel_pca.truncation(1.5, squares)) == [1, 1, 0]
    assert list(kernel_pca.truncation(INFINITY, squares)) == [1, 1, 1]
    # best of all y in {0, 1}, as 3.3 says
    queries, _, covariance, _, rng = asked(3, m=5)
    weight, q = kernel_pca.uniform(SIZES), rng.normal(size=24)
    _, squares = kernel_pca.eigenqueries(kernel_pca.kernel(queries, weight), covariance)
    for alpha in (1.0, 5.0, 10.0, 40.0):
        arguments = (queries, covariance, weight, alpha)
        chosen = kernel_pca.truncation(alpha, squares)
        least = kernel_pca.objective(q, chosen, *arguments)
        for y in itertools.product((0.0, 1.0), repeat=len(squares)):
            assert kernel_pca.objective(q, y, *arguments) >= least - 1e-9


def test_scaling_the_inner_product_scales_alpha():
    sizes = [5, 4, 3]
    N = 60
    rng = np.random.default_rng(3)
    _, queries = ranges(sizes, 6, rng)
    covariance, noisy = np.diag(rng.uniform(1, 4, 6)), rng.normal(50, 10, 6)
    plain, scaled = np.ones(N), kernel_pca.uniform(sizes)
    W1, squares1 = kernel_pca.eigenqueries(kernel_pca.kernel(queries, plain), covariance)
    W2, squares2 = kernel_pca.eigenqueries(kernel_pca.kernel(queries, scaled), covariance)
    assert squares1 / squares2 == pytest.approx(np.full(len(squares1), 60.0))
    ratio = np.linalg.norm(W2, axis=1) / np.linalg.norm(W1, axis=1)
    assert ratio == pytest.approx(np.full(len(squares1), 7.746), abs=1e-3)
    q = rng.normal(size=N)
    for alpha in (0.3, 3.0, 50.0):
        one = kernel_pca.ridge(q, queries, noisy, covariance, plain, alpha / math.sqrt(N))
        two = kernel_pca.ridge(q, queries, noisy, covariance, scaled, alpha)
        assert one == pytest.approx(two, rel=1e-10)
        other = kernel_pca.ridge(q, queries, noisy, covariance, plain, alpha)
        assert abs(other - two) > 1e-3
    one, two = (
        kernel_pca.answer(q, queries, noisy, covariance, w, INFINITY) for w in (plain, scaled)
    )
    assert one == pytest.approx(two, rel=1e-9)


# The universal query


def test_known_total_is_the_limit_of_a_tiny_variance():
    for seed in range(3):
        queries, noisy, covariance, x, rng = asked(seed)
        weight, q = kernel_pca.product_prior(PARTS), rng.normal(size=24)
        for alpha in (0.5, 5.0, 100.0):
            arguments = (q, queries, noisy, covariance, weight, alpha, 500.0)
            exact = kernel_pca.known_total(*arguments)
            assert kernel_pca.known_total_ridge(*arguments) == pytest.approx(exact, rel=1e-9)
            virtual = kernel_pca.with_virtual_universal(*arguments, 1e-7)
            assert virtual == pytest.approx(exact, abs=1e-3)
        u = np.ones(24)
        for alpha in (0.5, 5.0, INFINITY):  # the total itself is answered exactly
            arguments = (u, queries, noisy, covariance, weight, alpha, 500.0)
            assert kernel_pca.known_total(*arguments) == pytest.approx(500, abs=1e-6)
        prior = 500 * kernel_pca.inner(q, u, weight)
        arguments = (q, queries, noisy, covariance, weight, 0.0, 500.0)
        assert kernel_pca.known_total(*arguments) == pytest.approx(prior, rel=1e-12)


def test_known_total_at_infinity_is_constrained_least_squares():
    queries, noisy, covariance, x, _ = asked(4, m=6)
    weight = kernel_pca.uniform(SIZES)
    u = np.ones(24)
    q = 2 * queries[0] - queries[4] + 3 * u
    got = kernel_pca.known_total(q, queries, noisy, covariance, weight, INFINITY, 500.0)
    # minimise |Sigma^{-1/2}(Qx - a)| subject to ux = n, by x = n/N + Zy, Z orthogonal to u
    root, Q = kernel_pca.inverse_root(covariance), np.array(queries)
    Z = np.linalg.svd(u[None, :])[2][1:].T
    y = np.linalg.pinv(root @ Q @ Z, rcond=1e-10) @ root @ (noisy - Q @ u * 500 / 24)
    assert got == pytest.approx(float(q @ (500 / 24 + Z @ y)), rel=1e-8)


def test_failures_of_the_virtual_query():
    """n mean(q) = 3333.33 with noise variance 1e4 and 25 queries, as in the notes."""
    rng = np.random.default_rng(7)
    sizes, n, m = [6, 10], 10_000.0, 25
    _, queries = ranges(sizes, m, rng)
    x = rng.multinomial(10_000, rng.dirichlet(np.full(60, 0.3)))
    noisy = np.array(queries) @ x + rng.normal(0, 100, m)
    covariance, weight = 1e4 * np.eye(m), kernel_pca.uniform(sizes)
    q = kernel_pca.range_query(sizes, {0: (1, 3)})
    assert n * q.mean() == pytest.approx(3333.33, abs=0.01)

    def virtual(alpha, tiny, cut=kernel_pca.CUT):
        return kernel_pca.with_virtual_universal(
            q, queries, noisy, covariance, weight, alpha, n, tiny, cut
        )

    def exact(alpha):
        return kernel_pca.known_total(q, queries, noisy, covariance, weight, alpha, n)

    assert virtual(1e4, 1e-4) == pytest.approx(exact(1e4), abs=0.1)
    for alpha in (1.0, 100.0, 1e4):
        assert virtual(alpha, 1e-8, 1e-10) == pytest.approx(3333.33, abs=0.01)
    assert abs(exact(1e4) - 3333.33) > 50
    # too large a variance shrinks u: alpha^2/(alpha^2 + 1) of it is left
    assert virtual(1e-3, 1.0) == pytest.approx(0.0033, abs=1e-4)
    assert exact(1e-3) == pytest.approx(3333.33, abs=0.01)


def test_first_eigenquery_is_u_over_its_norm():
    queries, _, covariance, _, _ = asked(0, m=4)
    wider = np.eye(5)
    wider[:4, :4], wider[4, 4] = covariance, 1e-9
    for weight, length in ((np.ones(24), 24**-0.5), (kernel_pca.uniform(SIZES), 1.0)):
        everything = [*queries, np.ones(24)]
        W, _ = kernel_pca.eigenqueries(kernel_pca.kernel(everything, weight), wider)
        first = W[0] @ np.array(everything)
        assert np.abs(first) == pytest.approx(np.full(24, length), rel=1e-6)


# Inner products


def test_closed_inner_products():
    rng = np.random.default_rng(1)
    uniform = [[1 / size] * size for size in SIZES]
    intervals, vectors = ranges(SIZES, 12, rng)
    for parts in (PARTS, uniform):
        weight = kernel_pca.product_prior(parts)
        for (a, one), (b, two) in itertools.product(
            zip(intervals, vectors, strict=True), repeat=2
        ):
            explicit = kernel_pca.inner(one, two, weight)
            assert kernel_pca.inner_of_ranges(a, b, parts) == pytest.approx(explicit, abs=1e-15)
        pairs = list(itertools.combinations(range(3), 2))
        tables = [(p, rng.random([SIZES[k] for k in p])) for p in pairs * 2]
        for one, two in itertools.product(tables, repeat=2):
            explicit = kernel_pca.inner(
                kernel_pca.table_query(SIZES, *one),
                kernel_pca.table_query(SIZES, *two),
                weight,
            )
            closed = kernel_pca.inner_of_tables(one, two, parts)
            assert closed == pytest.approx(explicit, abs=4e-16)


def test_substitution_of_3_4_touches_unused_attributes():
    """g' = sqrt(|A| p0) g in the uniform formula: right only if the implicit factors 1 change too."""
    weight = kernel_pca.product_prior(PARTS)
    a, b = {0: (0, 2)}, {1: (1, 3)}
    explicit = kernel_pca.inner(
        kernel_pca.range_query(SIZES, a), kernel_pca.range_query(SIZES, b), weight
    )

    def substituted(everywhere):
        product = 1.0
        for k, part in enumerate(PARTS):
            total = 0.0
            for v, mass in enumerate(part):
                term = 1 / len(part)
                for query in (a, b):
                    root = math.sqrt(len(part) * mass)
                    if k in query:
                        lo, hi = query[k]
                        term *= root if lo <= v < hi else 0.0
                    elif everywhere:
                        term *= root
                total += term
            product *= total
        return product

    assert substituted(everywhere=True) == pytest.approx(explicit, rel=1e-12)
    assert abs(substituted(everywhere=False) - explicit) > 0.01


# Cross-validation


def test_theorem_4_exactly():
    """Every test answer off by +-3, all signs enumerated: the mean estimate is the training answer's
    squared error, whatever the training noise was.
    """
    queries, noisy, covariance, x, _ = asked(6, m=6, noise=3.0)
    weight = kernel_pca.uniform(SIZES)
    truth = np.array(queries) @ x
    for test in ([0, 3], [1, 2, 5]):
        means, wrong = [], []
        for signs in itertools.product((-3.0, 3.0), repeat=len(test)):
            answers = np.array(noisy)
            answers[test] = truth[test] + signs
            (found,) = kernel_pca.fold_estimates(
                [test], queries, answers, covariance, weight, 20.0, 500.0
            )
            means.append(found)
            wrong.append(found + 9.0)
        train = [i for i in range(6) if i not in test]
        squared = []
        for i in test:
            guess = kernel_pca.known_total(
                queries[i],
                [queries[j] for j in train],
                noisy[train],
                covariance[np.ix_(train, train)],
                weight,
                20.0,
                500.0,
            )
            squared.append((guess - truth[i]) ** 2)
        assert np.mean(means) == pytest.approx(np.mean(squared), rel=1e-10)
        assert np.mean(wrong) == pytest.approx(np.mean(squared) + 9)  # without the correction


def test_folds_of_unequal_size_are_averaged_in_two_ways():
    queries, noisy, covariance, _, rng = asked(8, m=7, noise=2.0)
    weight = kernel_pca.uniform(SIZES)
    groups = kernel_pca.folds(7, 3, rng)
    assert sorted(i for group in groups for i in group) == list(range(7))
    assert [len(group) for group in groups] == [3, 2, 2]
    arguments = (groups, queries, noisy, covariance, weight, 5.0, 500.0)
    one, two, three = kernel_pca.fold_estimates(*arguments)
    assert kernel_pca.cross_validated(*arguments) == pytest.approx((one + two + three) / 3)
    pooled = (3 * one + 2 * two + 2 * three) / 7
    assert kernel_pca.cross_validated_pooled(*arguments) == pytest.approx(pooled)


def test_leaving_one_out_and_sweeping_alpha_in_closed_form():
    """6.1 (iii) and the sweep of 6.7b. The first needs independent noise: a correlated Sigma has the
    left out answer's noise in its row of G, but not in k_q.
    """
    queries, noisy, covariance, _, _ = asked(9, m=7, noise=4.0)
    weight, alpha, n = kernel_pca.product_prior(PARTS), 15.0, 500.0
    mu = np.array([kernel_pca.inner(q, np.ones(24), weight) for q in queries])
    K = kernel_pca.kernel(queries, weight) - np.outer(mu, mu)
    rest = noisy - n * mu
    for noise, holds in ((covariance, True), (correlated(7, np.random.default_rng(0)), False)):
        inverse = np.linalg.inv(K + noise / alpha**2)
        closed = (inverse @ rest) / np.diag(inverse)
        singles = [[i] for i in range(7)]
        arguments = (queries, noisy, noise, weight, alpha, n)
        found = kernel_pca.fold_estimates(singles, *arguments)
        agree = np.allclose(closed**2 - np.diag(noise), found, rtol=1e-8)
        assert agree == holds
    root = kernel_pca.inverse_root(covariance)
    values, vectors = np.linalg.eigh(root @ K @ root)
    g = vectors.T @ root @ rest
    q = np.random.default_rng(1).normal(size=24)
    mean = kernel_pca.inner(q, np.ones(24), weight)
    k = np.array([kernel_pca.inner(q, other, weight) for other in queries]) - mu * mean
    for alpha in (0.1, 3.0, 200.0):
        swept = n * mean + float((vectors.T @ root @ k * g) @ (1 / (values + alpha**-2)))
        arguments = (q, queries, noisy, covariance, weight, alpha, n)
        assert swept == pytest.approx(kernel_pca.known_total(*arguments), rel=1e-8)


def test_an_estimate_may_be_negative():
    sizes = [4]
    queries = [np.ones(4) * [1, 1, 0, 0], np.ones(4) * [1, 1, 0, 0]]
    found = kernel_pca.fold_estimates(
        [[0], [1]], queries, [30.0, 30.0], 100 * np.eye(2), kernel_pca.uniform(sizes), 1e6, 60
    )
    assert found == pytest.approx([-100, -100], abs=1e-3)


# Sensitivities


def test_marginals():
    for sizes, k in itertools.product(([2, 3], [3, 2, 2], [2, 2, 2, 3]), (1, 2)):
        queries = [q for _, table in kernel_pca.marginals(sizes, k) for q in table]
        tables = math.comb(len(sizes), k)
        assert kernel_pca.sensitivity(queries, "add/remove") == tables
        assert kernel_pca.sensitivity(queries, "replace") == 2 * tables
        assert kernel_pca.sensitivity(queries, "add/remove", 2) == pytest.approx(tables**0.5)
        assert kernel_pca.sensitivity(queries, "replace", 2) == pytest.approx(
            (2 * tables) ** 0.5
        )
    assert (math.comb(9, 1), math.comb(9, 2), 2 * math.comb(9, 2)) == (9, 36, 72)
    assert 72 / 36 == 2  # Lap(36) is 2-DP under replace
    # an attribute of one value spoils the factor 2
    queries = [q for _, table in kernel_pca.marginals([1, 3], 1) for q in table]
    assert kernel_pca.sensitivity(queries, "replace") == 2


def test_counting_queries():
    rng = np.random.default_rng(2)
    _, queries = ranges(SIZES, 9, rng)
    for relation in ("add/remove", "replace"):
        assert kernel_pca.sensitivity(queries, relation) <= 9
    queries = [np.array([1.0, 0, 0]), np.array([1.0, 0, 1]), np.array([1.0, 0, 0])]
    assert kernel_pca.sensitivity(queries, "add/remove") == 3  # attained
    assert kernel_pca.sensitivity(queries, "replace") == 3  # again m, not 2m


def test_fourier():
    for d in (1, 2, 3, 4):
        whole = kernel_pca.fourier(d, d)
        assert len(whole) == kernel_pca.sensitivity(whole, "add/remove") == 2**d
        # each alone changes by 2, but only half of them change at once
        assert kernel_pca.sensitivity(whole, "replace") == 2**d
        for q in whole[1:]:
            assert kernel_pca.sensitivity([q], "add/remove") == 1
            assert kernel_pca.sensitivity([q], "replace") == 2
        assert kernel_pca.sensitivity(whole[:1], "replace") == 0
        factors = [[[1, -1]] * d] * 2**d
        assert kernel_pca.sensitivity_bound(factors) == 2**d
    low = kernel_pca.fourier(4, 2)  # 1 + 4 + 6
    assert kernel_pca.sensitivity(low, "add/remove") == 11
    assert kernel_pca.sensitivity(low, "replace") == 2 * max(w + w * (4 - w) for w in range(5))
    K = kernel_pca.kernel(kernel_pca.fourier(3, 3), kernel_pca.uniform([2] * 3))
    assert pytest.approx(np.eye(8)) == K


def test_sums():
    sizes = [79, 50]
    ages, salaries = np.arange(16, 95), np.arange(50)
    q = kernel_pca.table_query(sizes, (0, 1), np.outer(ages, salaries))
    assert len(ages) == 79
    assert kernel_pca.sensitivity([q], "add/remove") == 4606
    assert q.max() - q.min() == 4606  # replace, too: the least value is 0
    assert kernel_pca.sensitivity_bound([[list(ages), list(salaries)]]) == 4606


def test_adult_numbers():
    pairs = list(itertools.combinations(ADULT, 2))
    assert len(pairs) == 36
    assert sum(a * b for a, b in pairs) == 29570
    assert math.prod(ADULT) == pytest.approx(1.29e11, rel=0.005)
    assert sum(ADULT) == 271
    assert 5000**3 / 3 == pytest.approx(4e10, rel=0.05)
    assert 5000**2 == 25e6
    assert 1e-4 * 1e6 == 100
    hits = 1e6 / (51 * 50)
    assert hits == pytest.approx(400, rel=0.03)
    assert hits * 1e-4 <= 0.04


def test_prior_part_has_no_zero():
    part = kernel_pca.prior_part([-4.0, 0.2, 10.0], 1.0)
    assert part == pytest.approx([1 / 12, 1 / 12, 10 / 12])


# Maximum entropy


def tables_of(sizes, k, n, scale, seed, normalise=True):
    """Noisy k-way tables of a random database, as features and shares."""
    rng = np.random.default_rng(seed)
    N = math.prod(sizes)
    x = rng.multinomial(n, rng.dirichlet(np.full(N, 0.7))) / n
    features, pi = [], []
    for _, table in kernel_pca.marginals(sizes, k):
        shares = np.array(table) @ x + rng.laplace(0, scale / n, len(table))
        pi += maximum_entropy.normalised(list(shares)) if normalise else list(shares)
        features += table
    return np.array(features), np.array(pi), x


CASES = [
    ([3, 2, 2], 2, 200, 6.0, 0.02),
    ([3, 2, 2], 2, 200, 6.0, 0.5),
    ([2, 3, 4], 1, 100, 5.0, 0.1),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("normalise", "prior"), [(True, "uniform"), (True, "product"), (False, "product")]
)
def test_optimality_and_the_primal(case, normalise, prior):
    sizes, k, n, scale, alpha = case
    features, pi, _ = tables_of(sizes, k, n, scale, 5, normalise)
    p0 = kernel_pca.uniform(sizes)
    if prior == "product":
        rng = np.random.default_rng(1)
        p0 = kernel_pca.product_prior([rng.dirichlet(np.full(s, 3.0)) for s in sizes])
    box = maximum_entropy.boxes(alpha, n, [scale] * len(pi))
    w = maximum_entropy.solve(features, pi, box, p0)
    arguments = (features, pi, box, p0)
    assert maximum_entropy.violation(w, *arguments) < 1e-9
    assert 0 <= maximum_entropy.gap(w, *arguments) + 1e-15 < 1e-9
    p = maximum_entropy.distribution(w, features, p0)
    least = maximum_entropy.primal(p, *arguments)
    assert least == pytest.approx(maximum_entropy.dual(w, features, pi, p0), abs=1e-9)
    residual = pi - features @ p
    for i in np.flatnonzero(np.abs(residual) > 1e-7):  # theorem 6, corrected
        assert w[i] == pytest.approx(box[i] * np.sign(residual[i]))
    other = maximum_entropy.solve_primal(*arguments)  # without the dual
    assert maximum_entropy.primal(other, *arguments) >= least - 1e-10
    assert maximum_entropy.primal(other, *arguments) == pytest.approx(least, abs=1e-5)
    assert np.abs(other - p).sum() < 2e-3
    rng = np.random.default_rng(2)
    for _ in range(30):
        worse = 0.999 * p + 0.001 * rng.dirichlet(np.ones(len(p)))
        assert maximum_entropy.primal(worse, *arguments) >= least


def test_gap_is_primal_minus_dual_everywhere():
    features, pi, _ = tables_of([3, 2, 2], 2, 200, 6.0, 3)
    p0, rng = kernel_pca.uniform([3, 2, 2]), np.random.default_rng(0)
    box = np.full(len(pi), 2.0)
    for _ in range(20):
        w = rng.uniform(-2, 2, len(pi))
        p = maximum_entropy.distribution(w, features, p0)
        assert p.sum() == pytest.approx(1, abs=1e-13)
        upper = maximum_entropy.primal(p, features, pi, box, p0)
        lower = maximum_entropy.dual(w, features, pi, p0)
        gap = maximum_entropy.gap(w, features, pi, box, p0)
        assert upper - lower == pytest.approx(gap, rel=1e-10)


def test_gradient_and_hessian():
    features, pi, _ = tables_of([3, 2, 2], 2, 200, 6.0, 4)
    p0, rng = kernel_pca.uniform([3, 2, 2]), np.random.default_rng(0)
    w, step = rng.normal(0, 1, len(pi)), 1e-5
    slope = maximum_entropy.gradient(w, features, pi, p0)
    bend = maximum_entropy.hessian(w, features, p0)
    for i, unit in enumerate(step * np.eye(len(w))):
        up, down = w + unit, w - unit
        rise = maximum_entropy.dual(up, features, pi, p0)
        rise -= maximum_entropy.dual(down, features, pi, p0)
        assert rise / (2 * step) == pytest.approx(slope[i], abs=1e-9)
        turn = maximum_entropy.gradient(up, features, pi, p0)
        turn -= maximum_entropy.gradient(down, features, pi, p0)
        assert turn / (2 * step) == pytest.approx(bend[i], abs=1e-8)
    assert np.linalg.eigvalsh(bend).max() < 1e-12  # concave: the sign of Eq 39
    assert np.diag(bend).max() < 0


def test_flat_directions_of_tables():
    """The dual has slope sum(pi) - 1 along a constant on one table. Normalising removes that one, but
    two tables that share an attribute and disagree about it leave others.
    """
    sizes = [3, 2, 2]
    p0 = kernel_pca.uniform(sizes)
    cells = {}
    place = 0
    for attributes, table in kernel_pca.marginals(sizes, 2):
        for cell in kernel_pca.universe([sizes[k] for k in attributes]):
            cells[attributes, cell] = place
            place += 1
        assert len(table) == math.prod(sizes[k] for k in attributes)
    for normalise in (False, True):
        features, pi, _ = tables_of(sizes, 2, 200, 6.0, 4, normalise)
        w = np.random.default_rng(0).normal(size=len(pi))
        start = maximum_entropy.dual(w, features, pi, p0)
        p = maximum_entropy.distribution(w, features, p0)
        constant, exchange = np.zeros(len(pi)), np.zeros(len(pi))
        total = share = 0.0
        for (attributes, cell), i in cells.items():
            if attributes == (0, 1):
                constant[i] = 1
                total += pi[i]
            if 0 in attributes and cell[0] == 0:
                exchange[i] = 1 if attributes == (0, 1) else -1
                share += exchange[i] * pi[i]
        for direction, slope in ((constant, total - 1), (exchange, share)):
            moved = w + 10 * direction
            assert maximum_entropy.distribution(moved, features, p0) == pytest.approx(p)
            rise = maximum_entropy.dual(moved, features, pi, p0) - start
            assert rise == pytest.approx(10 * slope, abs=1e-9)
        assert (abs(total - 1) < 1e-12) == normalise
        assert abs(share) > 1e-3  # normalised or not


def test_negative_shares_push_to_the_box():
    features = np.eye(3)
    pi, p0 = np.array([-0.1, 0.6, 0.5]), kernel_pca.uniform([3])
    box = np.full(3, 5.0)
    w = maximum_entropy.solve(features, pi, box, p0)
    assert w[0] == -5
    assert maximum_entropy.distribution(w, features, p0)[0] < 0.001


def test_zero_and_infinite_trust():
    features, pi, x = tables_of([2, 3, 4], 1, 100, 0.0, 5)
    p0 = kernel_pca.uniform([2, 3, 4])
    w = maximum_entropy.solve(features, pi, np.full(len(pi), 1e-12), p0)
    assert maximum_entropy.distribution(w, features, p0) == pytest.approx(p0, abs=1e-10)
    # consistent margins and a wide box: independence, the answer known in closed form
    w = maximum_entropy.solve(features, pi, np.full(len(pi), 100.0), p0)
    p = maximum_entropy.distribution(w, features, p0)
    margins = np.split(pi, [2, 5])
    assert p == pytest.approx(kernel_pca.product_prior(margins), abs=1e-9)


def test_chains_are_stationary():
    sizes = [3, 2, 2]
    features, pi, _ = tables_of(sizes, 2, 200, 6.0, 6)
    rng = np.random.default_rng(0)
    w = rng.normal(0, 1, len(pi))
    p0 = kernel_pca.product_prior([rng.dirichlet(np.full(s, 3.0)) for s in sizes])
    p = maximum_entropy.distribution(w, features, p0)
    for step in (maximum_entropy.gibbs_matrix, maximum_entropy.metropolis_matrix):
        for k in range(3):
            matrix = step(k, w, features, sizes, p0)
            assert matrix.sum(1) == pytest.approx(np.ones(12))
            flow = p[:, None] * matrix
            assert flow == pytest.approx(flow.T, abs=1e-15)  # detailed balance
        whole = maximum_entropy.sweep_matrix(step, w, features, sizes, p0)
        assert p @ whole == pytest.approx(p, abs=1e-14)
        assert np.linalg.matrix_power(whole, 500)[0] == pytest.approx(p, abs=1e-9)
    chain = maximum_entropy.gibbs_chain(w, features, sizes, p0, 4000, rng)
    seen = kernel_pca.histogram(chain[50:], sizes) / 3950
    assert np.abs(seen - p).sum() < 0.12


def test_a_deterministic_link_mixes_slowly():
    """Two attributes that all but agree: the second eigenvalue of a sweep is near 1 (6.6, 5)."""
    sizes, p0 = [2, 2], kernel_pca.uniform([2, 2])
    features = np.array([[1.0, 0, 0, 1]])
    for weight, slowest in ((0.0, 0.0), (4.0, 0.92), (8.0, 0.998)):
        whole = maximum_entropy.sweep_matrix(
            maximum_entropy.gibbs_matrix, np.array([weight]), features, sizes, p0
        )
        second = sorted(np.abs(np.linalg.eigvals(whole)))[-2]
        assert second == pytest.approx(math.tanh(weight / 2) ** 2, abs=1e-9)
        assert second >= slowest


def test_as_printed_follows_exact_ascent():
    sizes = [2, 2]
    features, pi, _ = tables_of(sizes, 1, 400, 4.0, 3)
    p0, box = kernel_pca.uniform(sizes), np.full(len(pi), 0.6)
    gamma, iterations = 0.004, 1500
    path = maximum_entropy.exact_ascent(features, pi, box, p0, [gamma] * iterations)
    ends = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        w, t = maximum_entropy.as_printed(features, pi, box, sizes, p0, gamma, iterations, rng)
        assert np.all(np.abs(w) <= box)
        assert t in kernel_pca.universe(sizes)
        ends.append(maximum_entropy.distribution(w, features, p0))
    limit = maximum_entropy.distribution(path[-1], features, p0)
    assert np.abs(np.mean(ends, axis=0) - limit).sum() < 0.06
    # with more steps to the optimum; gamma T = 6 is not enough even here
    best = maximum_entropy.solve(features, pi, box, p0)
    optimum = maximum_entropy.distribution(best, features, p0)
    path = maximum_entropy.exact_ascent(features, pi, box, p0, [0.1] * 3000)
    longer = maximum_entropy.distribution(path[-1], features, p0)
    assert np.abs(optimum - longer).sum() < 1e-6 < 0.01 < np.abs(optimum - limit).sum()


def test_the_printed_budget_of_steps_is_short():
    """A weight moves up by gamma T pi_i at most, in exact ascent as in one chain (6.6, 3)."""
    sizes = [6, 5]
    features, pi, x = tables_of(sizes, 2, 5000, 1.0, 9)
    p0, box = kernel_pca.uniform(sizes), np.full(len(pi), 50.0)
    short = maximum_entropy.exact_ascent(features, pi, box, p0, [0.01] * 300)[-1]
    assert np.all(short <= 3 * np.maximum(pi, 0) + 1e-12)  # gamma T = 3
    best = maximum_entropy.solve(features, pi, box, p0)
    near = np.abs(maximum_entropy.distribution(best, features, p0) - x).sum()
    far = np.abs(maximum_entropy.distribution(short, features, p0) - x).sum()
    assert near < 0.03 < 0.4 < far


def test_lazy_updates_are_exact():
    rng = np.random.default_rng(0)
    for _ in range(200):
        w, share, box = rng.normal(), rng.normal(0, 0.3), 1.5
        w = min(max(w, -box), box)
        steps, gamma = int(rng.integers(0, 60)), 0.1
        slow = w
        for _ in range(steps):
            slow = min(max(slow + gamma * share, -box), box)
        assert maximum_entropy.drifted(w, share, box, gamma, steps) == pytest.approx(slow)


# Randomised response


def test_parameters_of_retention_and_flipping():
    e, ninth = math.e, math.e ** (1 / 9)
    assert local.retention(e, 2) == pytest.approx(0.46212, abs=5e-6)
    assert local.retention(e, 50) == pytest.approx(0.033224, abs=5e-7)
    assert ninth == pytest.approx(1.11752, abs=5e-6)
    assert local.retention(ninth, 50) == pytest.approx(0.002345, abs=5e-7)
    assert local.retention(ninth, 2) == pytest.approx(0.0555, abs=5e-5)
    assert local.flip(e) == pytest.approx(0.37754, abs=5e-6)
    assert local.flip(e, 18) == pytest.approx(0.48611, abs=5e-6)
    assert local.flip(ninth) == pytest.approx(local.flip(e, 18))


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("gamma", [Fraction(3), Fraction(9, 4)])
def test_channels_amplify_by_gamma(size, gamma):
    p = local.retention(gamma, size)
    channel = local.retention_channel(p, size)
    assert all(sum(column) == 1 for column in channel)
    assert local.amplification(channel) == gamma == 1 + p * size / (1 - p)
    keep = gamma / (gamma + size - 1)
    assert local.other_value_channel(keep, size) == channel
    assert keep == p + (1 - p) / size
    g = [Fraction(1 + v, size * (size + 1) // 2) for v in range(size)]
    skew = local.retention_channel(p, size, g)
    assert local.amplification(skew) == 1 + p / ((1 - p) * min(g))
    root = Fraction(math.isqrt(gamma.numerator), math.isqrt(gamma.denominator))
    if root**2 == gamma:
        f = 1 / (1 + root)
        assert local.amplification(local.flipping_channel(f, size)) == gamma
    f = local.flip(float(gamma))
    flipping = local.flipping_channel(f, size)
    assert all(sum(column) == pytest.approx(1) for column in flipping)
    assert local.amplification(flipping) == pytest.approx(float(gamma))
    bits = len(local.binary(0, size))
    coded = local.flipping_channel(local.flip(float(gamma), bits), size, local.binary)
    assert local.amplification(coded) == pytest.approx(float(gamma))


def test_a_table_costs_what_a_record_costs():
    channel = local.retention_channel(local.retention(Fraction(3), 2), 2)
    for n in (1, 2, 3):
        assert local.table_amplification(channel, n) == 3


def test_tuples_multiply():
    gamma = Fraction(3)
    channels = [
        local.retention_channel(local.retention(gamma, 2), 2),
        local.retention_channel(local.retention(gamma, 3), 3),
        local.flipping_channel(Fraction(1, 3), 2),  # ((1 - f)/f)^2 = 4
    ]
    assert local.amplification(local.product_channel(channels)) == 3 * 3 * 4
    assert local.tuple_loss(channels) == pytest.approx(math.log(36))
    # gamma = e for each of Adult's nine attributes is 9 for the tuple; e^(1/9) is 1
    for gamma, loss in ((math.e, 9.0), (math.e ** (1 / 9), 1.0)):
        kept = [local.retention_channel(local.retention(gamma, size), size) for size in ADULT]
        assert local.tuple_loss(kept) == pytest.approx(loss)
        # flips: two bits of each attribute differ, whatever its size
        f = local.flip(gamma)
        assert 9 * 2 * math.log((1 - f) / f) == pytest.approx(loss)
    assert math.e**9 / math.e == pytest.approx(math.e**8)


def test_inverses():
    p, size = Fraction(2, 5), 4
    channel = local.retention_channel(p, size)
    assert local.inverse(local.matrix(channel)) == local.closed_inverse(p, size)
    f = Fraction(1, 3)
    expected = [
        [(1 - f) / (1 - 2 * f), -f / (1 - 2 * f)],
        [-f / (1 - 2 * f), (1 - f) / (1 - 2 * f)],
    ]
    assert local.bit_inverse(f) == expected
    # as a table: M_X^{-1} H M_Y^{-T}
    other = local.retention_channel(Fraction(1, 2), 3, [Fraction(k, 6) for k in (1, 2, 3)])
    H = np.random.default_rng(0).integers(0, 50, (4, 3))
    flat = local.reconstruct([int(h) for h in H.ravel()], [channel, other])
    one = np.array(local.inverse(local.matrix(channel)), dtype=float)
    two = np.array(local.inverse(local.matrix(other)), dtype=float)
    assert np.array(flat, dtype=float).reshape(4, 3) == pytest.approx(one @ H @ two.T)
    assert sum(flat) == H.sum()  # exactly


def test_reconstruction_is_unbiased_and_its_variance_closed():
    sizes, truth = [2, 3], [5, 0, 7, 2, 11, 1]
    ps = [Fraction(1, 3), Fraction(2, 5)]
    channels = [local.retention_channel(p, s) for p, s in zip(ps, sizes, strict=True)]
    whole, undo = local.product_channel(channels), local.joint_inverse(channels)
    for i, cell in enumerate(itertools.product(range(2), range(3))):
        mean, spread = local.table_variance(undo[i], whole, truth)
        assert mean == truth[i]
        assert spread == local.retention_variance(cell, truth, sizes, ps) > 0
    flips = [Fraction(1, 4), Fraction(2, 5)]
    channels = [local.flipping_channel(f, s) for f, s in zip(flips, sizes, strict=True)]
    whole = local.product_channel(channels)
    for i, cell in enumerate(itertools.product(range(2), range(3))):
        row = local.cell_weights_flipped(cell, sizes, flips)
        mean, spread = local.table_variance(row, whole, truth)
        assert mean == truth[i]
        assert spread == local.flipping_variance(cell, truth, sizes, flips) > 0


def test_non_uniform_replacement_is_unbiased():
    g = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    channels = [local.retention_channel(Fraction(1, 4), 3, g)] * 2
    whole, undo = local.product_channel(channels), local.joint_inverse(channels)
    truth = list(range(9))
    assert [local.table_variance(row, whole, truth)[0] for row in undo] == truth


def test_flipped_bits_are_weighted_as_enumerated():
    rng = np.random.default_rng(0)
    sizes, flips = [2, 3], [Fraction(1, 4), Fraction(2, 5)]
    data = [(int(rng.integers(2)), int(rng.integers(3))) for _ in range(20)]
    rows = [
        [
            local.publish_flipped(v, s, float(f), rng)
            for v, s, f in zip(r, sizes, flips, strict=True)
        ]
        for r in data
    ]
    got = local.reconstruct_flipped(rows, sizes, flips)
    outputs = list(
        itertools.product(
            itertools.product((0, 1), repeat=2), itertools.product((0, 1), repeat=3)
        )
    )
    for i, cell in enumerate(itertools.product(range(2), range(3))):
        row = local.cell_weights_flipped(cell, sizes, flips)
        assert got[i] == sum(row[outputs.index(tuple(r))] for r in rows)
    assert sum(got) != 20  # unlike retention, the cells need not add up


def test_predicates():
    p, g = Fraction(2, 5), [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    channel = local.retention_channel(p, 3, g)
    holds, b = {0, 2}, Fraction(2, 3)
    M = local.predicate_matrix(p, b)
    for x in range(3):
        mass = sum(channel[x][y] for y in holds)
        assert mass == M[0][0 if x in holds else 1]
        assert 1 - mass == M[1][0 if x in holds else 1]
    truth = [5, 8, 2]
    observed = local.times(local.matrix(channel), truth)
    seen = [observed[0] + observed[2], observed[1]]
    assert local.times(local.inverse(M), seen) == [7, 8]


def test_draws_follow_the_channel():
    rng = np.random.default_rng(0)
    channel = local.retention_channel(0.3, 3)
    seen = np.bincount([local.publish(1, channel, rng) for _ in range(4000)], minlength=3)
    assert seen / 4000 == pytest.approx(channel[1], abs=0.04)
    bits = np.mean([local.publish_flipped(1, 3, 0.3, rng) for _ in range(4000)], axis=0)
    assert bits == pytest.approx([0.3, 0.7, 0.3], abs=0.04)


def test_expected_errors_of_a_2_by_5_table():
    """The notes' run of n = 5e5: 0.011 and 0.039 per attribute, 0.40 and 2.7 after the split. Expected
    are about 0.021, 0.048, 1.77 and 3.66 for a ninefold split, hardly changed by the table: 0.40
    would be a draw from the lowest thousandth.
    """
    n, sizes = 500_000, [2, 5]
    cells = list(itertools.product(range(2), range(5)))

    def expected(variance, truth, parameters):
        sd = [math.sqrt(variance(cell, truth, sizes, parameters)) / n for cell in cells]
        return math.sqrt(2 / math.pi) * math.fsum(sd)  # all but normal

    for truth in (
        [n // 10] * 10,
        [150_000, 100_000, 50_000, 25_000, 25_000, 50_000] + [25_000] * 4,
    ):
        for gamma, kept, flipped in ((math.e, 0.021, 0.048), (math.e ** (1 / 9), 1.77, 3.66)):
            ps = [local.retention(gamma, size) for size in sizes]
            got = expected(local.retention_variance, truth, ps)
            assert got == pytest.approx(kept, rel=0.02)
            fs = [local.flip(gamma)] * 2
            got = expected(local.flipping_variance, truth, fs)
            assert got == pytest.approx(flipped, rel=0.02)


def test_iterative_bayes_and_clipping():
    rng = np.random.default_rng(0)
    sizes, truth = [2, 3], np.array([0.3, 0.1, 0.1, 0.05, 0.4, 0.05])
    channels = [local.retention_channel(0.5, s) for s in sizes]
    whole = np.array(local.product_channel(channels))
    exact = truth @ whole
    found = local.iterative_bayes(list(exact), channels, 2000)  # exact shares: the truth
    assert found == pytest.approx(list(truth), abs=1e-6)
    H = rng.multinomial(2000, exact)
    found = local.iterative_bayes([float(h) for h in H], channels, 300)
    assert min(found) >= 0
    assert sum(found) == pytest.approx(1)

    def likelihood(p):
        return float(H @ np.log(np.array(p) @ whole))

    shorter = local.iterative_bayes([float(h) for h in H], channels, 30)
    assert likelihood(found) >= likelihood(shorter) >= likelihood([1 / 6] * 6)
    fixed = local.clipped([float(v) for v in local.reconstruct([10, 0, 0, 0, 0, 0], channels)])
    assert min(fixed) == 0
    assert sum(fixed) == pytest.approx(1)
    assert local.error([1.0, 0.0], [0.0, 1.0]) == 2  # Eq 42 can reach 2
