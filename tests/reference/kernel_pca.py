"""Kernel PCA over an explicit universe, step by step (chen2012 section 3, methods.md 6.1 to 6.5).

A query is the vector of its values on every tuple of the universe, in the order of `universe`; a
weight is a vector over the same tuples and makes the inner product sum_t weight(t) q1(t) q2(t): all 1
for the plain dot product, 1/N for the paper's from 3.2 on, a prior p0 for that of 3.4. Noisy answers
a = Qx + e have the covariance matrix `covariance`; n is the public number of tuples.

alpha trades bias against variance: 0 trusts the universal query alone, math.inf is unbiased for every
query that the asked ones span.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy import ndarray

CUT = 1e-12  # eigenvalues below CUT times the largest count as zero


# Universe, priors and queries


def universe(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Every tuple, the last attribute fastest."""
    return list(itertools.product(*(range(size) for size in sizes)))


def uniform(sizes: Sequence[int]) -> ndarray:
    """p0(t) = 1/N."""
    cells = universe(sizes)
    return np.array([1 / len(cells) for _ in cells])


def product_prior(parts: Sequence[Sequence[float]]) -> ndarray:
    """p0(t) = product over attributes of p0_k(t[k])."""
    found = []
    for t in universe([len(part) for part in parts]):
        mass = 1.0
        for part, value in zip(parts, t, strict=True):
            mass *= part[value]
        found.append(mass)
    return np.array(found)


def prior_part(noisy_counts: Sequence[float], floor: float) -> list[float]:
    """A noisy 1-D marginal as a distribution: counts below `floor` raised to it (footnote 3 cuts at
    0, which would give tuples no weight at all), then divided by their sum.
    """
    raised = [max(count, floor) for count in noisy_counts]
    return [count / math.fsum(raised) for count in raised]


def histogram(rows: Sequence[tuple[int, ...]], sizes: Sequence[int]) -> ndarray:
    """x, how often each tuple of the universe occurs."""
    return np.array([float(sum(row == t for row in rows)) for t in universe(sizes)])


def universal(sizes: Sequence[int]) -> ndarray:
    """u, 1 everywhere."""
    return np.array([1.0 for _ in universe(sizes)])


def range_query(sizes: Sequence[int], intervals: dict[int, tuple[int, int]]) -> ndarray:
    """1 where lo <= t[k] < hi for every attribute k named."""
    return np.array(
        [
            float(all(lo <= t[k] < hi for k, (lo, hi) in intervals.items()))
            for t in universe(sizes)
        ]
    )


def table_query(sizes: Sequence[int], attributes: Sequence[int], table: ndarray) -> ndarray:
    """table[t restricted to the attributes], which Eq 13 calls q(t')."""
    return np.array([float(table[tuple(t[k] for k in attributes)]) for t in universe(sizes)])


def marginals(sizes: Sequence[int], k: int) -> list[tuple[tuple[int, ...], list[ndarray]]]:
    """For every k attributes, those and one counting query for each cell of their table."""
    found = []
    for attributes in itertools.combinations(range(len(sizes)), k):
        cells = universe([sizes[j] for j in attributes])
        queries = [
            range_query(sizes, {j: (v, v + 1) for j, v in zip(attributes, cell, strict=True)})
            for cell in cells
        ]
        found.append((attributes, queries))
    return found


def fourier(attributes: int, order: int) -> list[ndarray]:
    """prod_{k in S} (-1)^t[k] on binary attributes, for every S of at most `order`, empty too."""
    sizes = [2] * attributes
    found = []
    for size in range(order + 1):
        for chosen in itertools.combinations(range(attributes), size):
            found.append(
                np.array([float((-1) ** sum(t[k] for k in chosen)) for t in universe(sizes)])
            )
    return found


# Inner products


def inner(q1: ndarray, q2: ndarray, weight: ndarray) -> float:
    """Eq 18, one tuple after the other."""
    return math.fsum(w * a * b for w, a, b in zip(weight, q1, q2, strict=True))


def kernel(queries: Sequence[ndarray], weight: ndarray) -> ndarray:
    """K_ij = <q_i, q_j>."""
    return np.array([[inner(a, b, weight) for b in queries] for a in queries])


def inner_of_ranges(
    first: dict[int, tuple[int, int]],
    second: dict[int, tuple[int, int]],
    parts: Sequence[Sequence[float]],
) -> float:
    """Eq 20 with the sum that it lacks: prod_k sum_{v in A_k} p0_k(v) g1_k(v) g2_k(v)."""
    product = 1.0
    for k, part in enumerate(parts):
        total = 0.0
        for value, mass in enumerate(part):
            for query in (first, second):
                if k in query and not query[k][0] <= value < query[k][1]:
                    mass = 0.0
            total += mass
        product *= total
    return product


def inner_of_tables(
    first: tuple[Sequence[int], ndarray],
    second: tuple[Sequence[int], ndarray],
    parts: Sequence[Sequence[float]],
) -> float:
    """Eq 15 under a product prior: over the shared attributes' cells t0, the mass of t0 times the
    two queries' averages over the attributes that each has alone.
    """
    (own1, table1), (own2, table2) = first, second
    shared = [k for k in own1 if k in own2]

    def average(own: Sequence[int], table: ndarray, fixed: dict[int, int]) -> float:
        total = 0.0
        for cell in universe([len(parts[k]) for k in own]):
            placed = dict(zip(own, cell, strict=True))
            if any(placed[k] != v for k, v in fixed.items()):
                continue
            alone = math.prod(parts[k][placed[k]] for k in own if k not in fixed)
            total += alone * float(table[cell])
        return total

    total = 0.0
    for t0 in universe([len(parts[k]) for k in shared]):
        fixed = dict(zip(shared, t0, strict=True))
        mass = math.prod(parts[k][v] for k, v in fixed.items())
        total += mass * average(own1, table1, fixed) * average(own2, table2, fixed)
    return total


# Kernel PCA as printed, with the corrected formulas


def inverse_root(covariance: ndarray) -> ndarray:
    """Sigma^{-1/2}, symmetric; Sigma must have full rank."""
    values, vectors = np.linalg.eigh(covariance)
    if values.min() <= 0:
        raise ValueError("the covariance must be positive definite")
    return vectors @ np.diag(1 / np.sqrt(values)) @ vectors.T


def eigenqueries(K: ndarray, covariance: ndarray, cut: float = CUT) -> tuple[ndarray, ndarray]:
    """W (r x m), the eigenqueries' coefficients in the asked queries, and lambda_i^2, falling."""
    root = inverse_root(covariance)
    values, vectors = np.linalg.eigh(root @ K @ root)
    order = np.argsort(-values, kind="stable")
    kept = [i for i in order if values[i] > cut * values[order[0]] and values[i] > 0]
    W = np.array([vectors[:, i] @ root / math.sqrt(values[i]) for i in kept])
    return W.reshape(len(kept), len(K)), values[kept]


def shrinkage(alpha: float, squares: ndarray) -> ndarray:
    """y_i = alpha^2/(alpha^2 + 1/lambda_i^2); 1 at infinity."""
    if math.isinf(alpha):
        return np.ones(len(squares))
    return alpha**2 / (alpha**2 + 1 / squares)


def truncation(alpha: float, squares: ndarray) -> ndarray:
    """The hard form: y_i = 1 if 1/lambda_i^2 < alpha^2, otherwise 0 (3.3 leaves equality open)."""
    return np.array([float(1 / square < alpha**2) for square in squares])


def answer(
    q: ndarray,
    queries: Sequence[ndarray],
    noisy: Sequence[float],
    covariance: ndarray,
    weight: ndarray,
    alpha: float,
    rule=shrinkage,
    cut: float = CUT,
) -> float:
    """sum_i y_i c_i z_i, z = W a, c_i = sum_j W_ij <q, q_j>."""
    W, squares = eigenqueries(kernel(queries, weight), covariance, cut)
    z = W @ np.asarray(noisy)
    c = W @ np.array([inner(q, other, weight) for other in queries])
    y = rule(alpha, squares)
    return math.fsum(y[i] * c[i] * z[i] for i in range(len(squares)))


def answering_query(
    q: ndarray,
    queries: Sequence[ndarray],
    covariance: ndarray,
    weight: ndarray,
    alpha: float,
    rule=shrinkage,
) -> ndarray:
    """q' = sum_i y_i c_i v_i, the query that is answered without bias in place of q."""
    W, squares = eigenqueries(kernel(queries, weight), covariance)
    c = W @ np.array([inner(q, other, weight) for other in queries])
    v = W @ np.array(queries)
    return (rule(alpha, squares) * c) @ v


def variance(
    q: ndarray,
    queries: Sequence[ndarray],
    covariance: ndarray,
    weight: ndarray,
    alpha: float,
    rule=shrinkage,
) -> float:
    """sum_i y_i^2 c_i^2/lambda_i^2: of the noise alone, the bias is not in it."""
    W, squares = eigenqueries(kernel(queries, weight), covariance)
    c = W @ np.array([inner(q, other, weight) for other in queries])
    y = rule(alpha, squares)
    return math.fsum(y**2 * c**2 / squares)


def objective(
    q: ndarray,
    y: Sequence[float],
    queries: Sequence[ndarray],
    covariance: ndarray,
    weight: ndarray,
    alpha: float,
) -> float:
    """R_q(q') of Eq 16 for q' = sum_i y_i c_i v_i, with the vectors themselves."""
    W, squares = eigenqueries(kernel(queries, weight), covariance)
    c = W @ np.array([inner(q, other, weight) for other in queries])
    coefficients = (np.asarray(y) * c) @ W  # q' in the asked queries, so of a in the answer
    apart = q - coefficients @ np.array(queries)
    noise = float(coefficients @ covariance @ coefficients)
    return alpha**2 * inner(apart, apart, weight) + noise


def objective_by_parts(
    q: ndarray,
    y: Sequence[float],
    queries: Sequence[ndarray],
    covariance: ndarray,
    weight: ndarray,
    alpha: float,
    as_printed: bool = False,
) -> float:
    """Eq 17; as printed it lacks alpha^2 before |q_bias|^2."""
    W, squares = eigenqueries(kernel(queries, weight), covariance)
    c = W @ np.array([inner(q, other, weight) for other in queries])
    bias = q - c @ (W @ np.array(queries))
    total = inner(bias, bias, weight) * (1 if as_printed else alpha**2)
    for i in range(len(squares)):
        total += (1 - y[i]) ** 2 * alpha**2 * c[i] ** 2 + y[i] ** 2 * c[i] ** 2 / squares[i]
    return total


# The same number by ridge regression (6.1) and by least squares over the universe (Eq 4)


def ridge(
    q: ndarray,
    queries: Sequence[ndarray],
    noisy: Sequence[float],
    covariance: ndarray,
    weight: ndarray,
    alpha: float,
) -> float:
    """k_q^T (K + Sigma/alpha^2)^{-1} a for 0 < alpha < infinity."""
    K = kernel(queries, weight)
    k = np.array([inner(q, other, weight) for other in queries])
    return float(k @ np.linalg.solve(K + covariance / alpha**2, np.asarray(noisy)))


def least_squares_histogram(
    queries: Sequence[ndarray], noisy: Sequence[float], covariance: ndarray, weight: ndarray
) -> ndarray:
    """The base histogram x^ of alpha = infinity: of the weighted least squares solutions, the one
    with the least sum_t x(t)^2/weight(t); (Sigma^{-1/2}Q)^+ Sigma^{-1/2} a for equal weights.
    """
    root = inverse_root(covariance)
    half = np.sqrt(weight)
    pseudo = np.linalg.pinv(root @ np.array(queries) * half, rcond=1e-10)
    return half * (pseudo @ (root @ np.asarray(noisy)))


# The universal query


def with_virtual_universal(
    q: ndarray,
    queries: Sequence[ndarray],
    noisy: Sequence[float],
    covariance: ndarray,
    weight: ndarray,
    alpha: float,
    n: float,
    tiny: float,
    cut: float = CUT,
) -> float:
    """As printed: u asked too, with answer n and the variance `tiny`."""
    m = len(queries)
    wider = np.zeros((m + 1, m + 1))
    wider[:m, :m] = covariance
    wider[m, m] = tiny
    u = np.ones(len(weight))
    return answer(q, [*queries, u], [*noisy, n], wider, weight, alpha, cut=cut)


def known_total(
    q: ndarray,
    queries: Sequence[ndarray],
    noisy: Sequence[float],
    covariance: ndarray,
    weight: ndarray,
    alpha: float,
    n: float,
    rule=shrinkage,
) -> float:
    """The limit of that (6.2): take <q,u>u out of every query, its n <q,u> out of every answer, do
    kernel PCA on what is left, add n <q,u>. The weight must sum to 1, so that |u| = 1.
    """
    if abs(math.fsum(weight) - 1) > 1e-12:
        raise ValueError("the weight must sum to 1")
    u = np.ones(len(weight))
    means = [inner(other, u, weight) for other in queries]
    left = [other - mean * u for other, mean in zip(queries, means, strict=True)]
    rest = [a - n * mean for a, mean in zip(noisy, means, strict=True)]
    mean = inner(q, u, weight)
    return n * mean + answer(q - mean * u, left, rest, covariance, weight, alpha, rule)


def known_total_ridge(
    q: ndarray,
    queries: Sequence[ndarray],
    noisy: Sequence[float],
    covariance: ndarray,
    weight: ndarray,
    alpha: float,
    n: float,
) -> float:
    """The kernel form of `known_total`, for 0 < alpha < infinity."""
    u = np.ones(len(weight))
    mu = np.array([inner(other, u, weight) for other in queries])
    mean = inner(q, u, weight)
    K = kernel(queries, weight) - np.outer(mu, mu)
    k = np.array([inner(q, other, weight) for other in queries]) - mu * mean
    rest = np.asarray(noisy) - n * mu
    return n * mean + float(k @ np.linalg.solve(K + covariance / alpha**2, rest))


# Cross-validation


def folds(m: int, k: int, rng: np.random.Generator) -> list[list[int]]:
    """A random split of m queries into k groups whose sizes differ by one at most."""
    order = [int(i) for i in rng.permutation(m)]
    return [sorted(order[j::k]) for j in range(k)]


def fold_estimates(
    groups: Sequence[Sequence[int]],
    queries: Sequence[ndarray],
    noisy: Sequence[float],
    covariance: ndarray,
    weight: ndarray,
    alpha: float,
    n: float,
) -> list[float]:
    """For each fold Theorem 4's estimate of the mean squared error, which may be negative: mean
    (a_test - a'_test)^2 - mean variance of a_test. The total n is known in every fold.
    """
    found = []
    for test in groups:
        train = [i for i in range(len(queries)) if i not in test]
        squared, spread = [], []
        for i in test:
            guess = known_total(
                queries[i],
                [queries[j] for j in train],
                [noisy[j] for j in train],
                covariance[np.ix_(train, train)],
                weight,
                alpha,
                n,
            )
            squared.append((noisy[i] - guess) ** 2)
            spread.append(covariance[i, i])
        found.append(math.fsum(squared) / len(test) - math.fsum(spread) / len(test))
    return found


def cross_validated(groups, queries, noisy, covariance, weight, alpha, n) -> float:
    """The k folds' estimates averaged (the paper's 3.5)."""
    found = fold_estimates(groups, queries, noisy, covariance, weight, alpha, n)
    return math.fsum(found) / len(found)


def cross_validated_pooled(groups, queries, noisy, covariance, weight, alpha, n) -> float:
    """Every query counted once (methods.md 6.7b); another number if the folds differ in size."""
    found = fold_estimates(groups, queries, noisy, covariance, weight, alpha, n)
    total = math.fsum(e * len(group) for e, group in zip(found, groups, strict=True))
    return total / len(queries)


# Sensitivities by brute force


def sensitivity(queries: Sequence[ndarray], relation: str, norm: int = 1) -> float:
    """The largest norm of the change of all answers: over every tuple for "add/remove", over every
    pair of tuples for "replace".
    """
    columns = np.array(queries).T
    if relation == "add/remove":
        changes = [column for column in columns]
    elif relation == "replace":
        changes = [a - b for a, b in itertools.combinations(columns, 2)]
    else:
        raise ValueError('relation must be "add/remove" or "replace"')
    worst = 0.0
    for change in changes:
        worst = max(worst, math.fsum(np.abs(change) ** norm) ** (1 / norm))
    return worst


def sensitivity_bound(factors: Sequence[Sequence[Sequence[float]]]) -> float:
    """For product queries, each a list of g_k's values: sum_i prod_k max|g_ik| (6.3, add/remove)."""
    return math.fsum(
        math.prod(max(abs(value) for value in g) for g in query) for query in factors
    )
