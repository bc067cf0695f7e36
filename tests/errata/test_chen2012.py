"""Chen, Zhou & Bhowmick 2012: what is printed wrongly or ambiguously, on universes laid out in full."""

from itertools import product
from math import e, inf, log, prod, sqrt

import numpy as np
import pytest

from workbench import DP, Domain, Marginals, RandomTables
from workbench.estimates import NoisyAnswers
from workbench.inference import KernelPCA
from workbench.mechanisms import Flipping, RetentionReplacement
from workbench.privacy import ADD_REMOVE, REPLACE
from workbench.queries import linear_queries, workload_sensitivity
from workbench.queries.inner import inner_products

DOMAIN = Domain(("a", "b", "c"), (5, 3, 4))
N = DOMAIN.size
ASKED = RandomTables(8, 2, seed=1)
NEW = RandomTables(5, 2, seed=2)
TUPLES = 1000
VARIANCE = 400.0


def vectors(workload, domain=DOMAIN):
    """Queries × cells: what each query counts of each cell."""
    asked = linear_queries(workload, domain)
    columns = [asked.sums(domain, np.array([k]), np.ones(1)) for k in range(domain.size)]
    return np.stack(columns, axis=1)


def noisy_answers(workload=ASKED):
    rng = np.random.default_rng(0)
    counts = rng.multinomial(TUPLES, rng.dirichlet(np.ones(N)))
    return vectors(workload) @ counts + rng.normal(0, sqrt(VARIANCE), len(vectors(workload)))


def eigenqueries(kernel):
    """W and λ² as in section 3.1, of those that are not 0."""
    squares, u = np.linalg.eigh(kernel / VARIANCE)
    there = squares > 1e-9 * squares.max()
    return (u[:, there] / np.sqrt(squares[there])).T / sqrt(VARIANCE), squares[there]


def answer(products_new, kernel, answers, alpha):
    """Theorem 3: Σ y_i c_i z_i."""
    w, squares = eigenqueries(kernel)
    y = np.ones(len(squares)) if alpha == inf else alpha**2 / (alpha**2 + 1 / squares)
    return (products_new @ w.T) @ (y * (w @ answers))


def test_norm_of_the_universal_query():
    u = np.ones(N)
    assert np.linalg.norm(sqrt(N) * u) == pytest.approx(N)
    assert np.linalg.norm(u / sqrt(N)) == pytest.approx(1)
    assert sqrt(u @ u / N) == 1  # with the inner product of section 3.2


def test_scaled_inner_product():
    q = vectors(ASKED)
    w, squares = eigenqueries(q @ q.T)
    scaled_w, scaled_squares = eigenqueries(q @ q.T / N)
    assert scaled_squares == pytest.approx(squares / N)
    assert np.abs(scaled_w) == pytest.approx(np.abs(w) * sqrt(N), rel=1e-6, abs=1e-9)
    new = vectors(NEW)
    answers = noisy_answers()
    alpha = 30.0
    plain = answer(new @ q.T, q @ q.T, answers, alpha)
    scaled = answer(new @ q.T / N, q @ q.T / N, answers, alpha)
    assert np.abs(plain / scaled - 1).max() > 0.05
    converted = answer(new @ q.T, q @ q.T, answers, alpha / sqrt(N))
    assert converted == pytest.approx(scaled)
    for a, scaled_a in ((inf, inf), (alpha / sqrt(N), alpha)):
        expected = answer(new @ q.T, q @ q.T, answers, a)
        history = NoisyAnswers(DOMAIN, ASKED, answers, np.full(len(q), VARIANCE))
        assert KernelPCA(scaled_a)(history).answer(NEW) == pytest.approx(expected, rel=1e-6)


def test_bias_of_a_query():
    q = vectors(ASKED)
    w, squares = eigenqueries(q @ q.T / N)
    v = w @ q
    wanted = np.arange(N) % 2.0
    alpha = 30.0
    c = v @ wanted / N
    y = alpha**2 / (alpha**2 + 1 / squares)
    ours = (y * c) @ v
    direct = alpha**2 * ((wanted - ours) ** 2).sum() / N + (y**2 * c**2 / squares).sum()
    bias = ((wanted - c @ v) ** 2).sum() / N
    rest = ((1 - y) ** 2 * alpha**2 * c**2 + y**2 * c**2 / squares).sum()
    assert alpha**2 * bias + rest == pytest.approx(direct)
    assert direct / (bias + rest) > 1.5
    history = NoisyAnswers(DOMAIN, ASKED, noisy_answers(), np.full(len(q), VARIANCE))
    answered = KernelPCA(alpha)(history)
    cells = RandomTables(1, 2, seed=2)
    (query,) = vectors(cells)
    c = v @ query / N
    ours = (y * c) @ v
    risk = alpha**2 * ((query - ours) ** 2).sum() / N + (y**2 * c**2 / squares).sum()
    (error,) = answered.answer(cells, error=True)[1]
    assert error**2 == pytest.approx(risk, rel=1e-6)


def test_sum_in_the_kernel():
    sizes = 3, 2
    prior = [np.array([0.5, 0.3, 0.2]), np.array([0.9, 0.1])]
    g1 = [np.array([1.0, 0.0, 2.0]), np.array([1.0, 3.0])]
    g2 = [np.array([2.0, 1.0, 1.0]), np.array([0.0, 1.0])]
    tuples = list(product(*map(range, sizes)))
    right = sum(
        prod(prior[k][t[k]] * g1[k][t[k]] * g2[k][t[k]] for k in range(2)) for t in tuples
    )
    for theta in tuples:  # whichever θ is meant
        printed = prod(prior[k][theta[k]] * g1[k][theta[k]] * g2[k][theta[k]] for k in range(2))
        assert abs(printed - right) > 0.1
    corrected = prod((prior[k] * g1[k] * g2[k]).sum() for k in range(2))
    assert corrected == pytest.approx(right)
    weights = [np.arange(1.0, n + 1) / np.arange(1.0, n + 1).sum() for n in DOMAIN.shape]
    p0 = np.multiply.outer(np.multiply.outer(weights[0], weights[1]), weights[2]).ravel()
    queries = linear_queries(ASKED, DOMAIN)
    expected = (vectors(ASKED) * p0) @ vectors(ASKED).T
    assert inner_products(queries, queries, DOMAIN, weights) == pytest.approx(expected)


def test_curvature_of_the_dual():
    rng = np.random.default_rng(0)
    f = rng.integers(0, 2, (3, 8)).astype(float)
    w = np.array([0.3, -0.2, 0.5])
    pi = rng.random(3)

    def dual(w):
        return w @ pi - np.log(np.exp(w @ f).sum())

    p = np.exp(w @ f)
    p /= p.sum()
    covariance = (f * p) @ f.T - np.outer(f @ p, f @ p)
    step = 1e-4
    for i, j in product(range(3), repeat=2):
        di, dj = step * np.eye(3)[i], step * np.eye(3)[j]
        corners = dual(w + di + dj) - dual(w + di - dj) - dual(w - di + dj) + dual(w - di - dj)
        second = corners / (4 * step**2)
        assert second == pytest.approx(-covariance[i, j], abs=1e-6)
        if i == j:
            assert abs(second - covariance[i, j]) > 0.05


def test_inner_products_of_an_answer():
    q = vectors(ASKED)[[0, 1, 2, 0]]  # m = 4 queries, r = 3 of them independent
    asked = 0

    def inner(a, b):
        nonlocal asked
        asked += 1
        return a @ b / N

    kernel = np.array([[inner(a, b) for b in q] for a in q])
    w, squares = eigenqueries(kernel)
    asked = 0
    new = vectors(NEW)[0]
    c = w @ np.array([inner(new, own) for own in q])
    m, r = len(q), len(squares)
    assert (m, r) == (4, 3)
    assert asked == m
    assert asked not in (TUPLES * r, N * r)
    assert c == pytest.approx((w @ q) @ new / N)  # all coordinates, from m inner products


def test_cost():
    q = vectors(ASKED)
    shapes = set()
    for tuples in (100.0, 1e8):
        history = NoisyAnswers(DOMAIN, ASKED, noisy_answers(), np.full(len(q), VARIANCE))
        eigen = KernelPCA(10.0, total=tuples)(history).eigen
        shapes.add((eigen.basis.shape, eigen.squares.shape))
    assert len(shapes) == 1  # nothing is as long as the database
    ((m, r), _) = shapes.pop()
    assert m == len(q) and r <= m


def test_replaced_tuples():
    d = 3
    domain = Domain(("a", "b", "c"), (2, 3, 2))
    for order, added in ((1, d), (2, d * (d - 1) // 2)):
        columns = vectors(Marginals(order), domain).T
        assert {np.abs(x).sum() for x in columns} == {added}
        replaced = max(np.abs(x - y).sum() for x in columns for y in columns)
        assert replaced == 2 * added
        assert workload_sensitivity(Marginals(order), domain, ADD_REMOVE) == added
        assert workload_sensitivity(Marginals(order), domain, REPLACE) == 2 * added
    scale = 9 * 8 / 2  # section 5.2
    assert 9 * 8 / scale == 2  # ε where a tuple is replaced, 1 being promised


def test_amplification():
    gamma = e
    values = range(3)
    p = (gamma - 1) / (gamma - 1 + len(values))

    def channel(u, v):
        return p * (u == v) + (1 - p) / len(values)

    def chance(output, table):
        return prod(channel(u, v) for u, v in zip(table, output, strict=True))

    ratios = [channel(u, v) / channel(other, v) for u, v, other in product(values, repeat=3)]
    assert max(ratios) == pytest.approx(gamma)  # γ-amplification
    tables = list(product(values, repeat=2))
    worst = max(
        log(chance(output, table) / chance(output, (other, table[1])))
        for output in tables
        for table in tables
        for other in values
    )
    assert worst == pytest.approx(
        log(gamma)
    )  # and ε-DP where a tuple is replaced, the converse
    ours = RetentionReplacement(DP(1.0)).retention_probabilities(Domain(("a",), (3,)))
    assert ours == pytest.approx((p,))


def test_virtual_query():
    q = vectors(ASKED)
    new = vectors(NEW)
    answers = noisy_answers()
    with_total = np.vstack([q, np.ones(N)])
    kernel = with_total @ with_total.T / N
    products = new @ with_total.T / N

    def by_virtual_query(alpha, variance):
        noise = np.diag([*np.full(len(q), VARIANCE), variance])
        smoother = np.linalg.solve(kernel + noise / alpha**2, np.append(answers, TUPLES))
        return products @ smoother

    uniform = TUPLES * new.mean(axis=1)  # what the paper says of α → 0
    assert by_virtual_query(1e-3, 1e-12) == pytest.approx(uniform, rel=1e-3)
    for variance in (1.0, 1e-4, 1e-8):  # however small, there is an α for which it is too large
        alpha = 1e-3 * sqrt(variance)
        assert np.abs(by_virtual_query(alpha, variance)).max() < 1e-5 * uniform.min()
    history = NoisyAnswers(DOMAIN, ASKED, answers, np.full(len(q), VARIANCE))
    ours = KernelPCA(1e-3, total=float(TUPLES))(history).answer(NEW)
    assert ours == pytest.approx(uniform, rel=1e-6)


def test_substituted_functions():
    size = 3
    prior = np.array([0.5, 0.3, 0.2])
    g1 = np.array([1.0, 0.0, 5.0])  # the second query does not use this attribute: g = 1
    right = (prior * g1).sum()
    root = np.sqrt(size * prior)
    written_ones_too = (root * g1 * root).sum() / size
    only_those_written = (root * g1).sum() / size
    assert written_ones_too == pytest.approx(right)
    assert abs(only_those_written - right) > 0.05


def test_attribute_or_tuple():
    d = 9
    sizes = (79, 2, 17, 51, 9, 7, 6, 50, 50)  # of the paper's Figure 1
    domain = Domain(tuple("abcdefghi"), sizes)
    excess = e - 1
    each = RetentionReplacement(DP(float(d))).retention_probabilities(domain)
    assert each == pytest.approx([excess / (excess + n) for n in sizes])  # γ = e, nine times
    ratio = prod((p + (1 - p) / n) / ((1 - p) / n) for p, n in zip(each, sizes, strict=True))
    assert log(ratio) == pytest.approx(d)  # of a tuple
    tuples = RetentionReplacement(DP(1.0)).retention_probabilities(domain)
    ratio = prod((p + (1 - p) / n) / ((1 - p) / n) for p, n in zip(tuples, sizes, strict=True))
    assert log(ratio) == pytest.approx(1)
    for epsilon in (1.0, float(d)):
        f = Flipping(DP(epsilon)).flip_probability(domain)
        assert 2 * d * log((1 - f) / f) == pytest.approx(epsilon)
