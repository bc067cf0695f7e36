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

import numpy as np

CUT = 1e-12  # eigenvalues below CUT times the largest count as zero


# Universe, priors and queries


def universe(sizes):
    """Every tuple, the last attribute fastest."""
    return list(itertools.product(*(range(size) for size in sizes)))


def uniform(sizes):
    """p0(t) = 1/N."""
    cells = universe(sizes)
    return np.array([1 / len(cells) for _ in cells])


def product_prior(parts):
    """p0(t) = product over attributes of p0_k(t[k])."""
    found = []
    for t in universe([len(part) for part in parts]):
        mass = 1.0
        for part, value in zip(parts, t, strict=True):
            mass *= part[value]
        found.append(mass)
    return np.array(found)


# Inner products


def inner(q1, q2, weight):
    """Eq 18, one tuple after the other."""
    return math.fsum(w * a * b for w, a, b in zip(weight, q1, q2, strict=True))


def kernel(queries, weight):
    """K_ij = <q_i, q_j>."""
    return np.array([[inner(a, b, weight) for b in queries] for a in queries])


# Kernel PCA as printed, with the corrected formulas


def inverse_root(covariance):
    """Sigma^{-1/2}, symmetric; Sigma must have full rank."""
    values, vectors = np.linalg.eigh(covariance)
    if values.min() <= 0:
        raise ValueError("the covariance must be positive definite")
    return vectors @ np.diag(1 / np.sqrt(values)) @ vectors.T


def eigenqueries(K, covariance):
    """W (r x m), the eigenqueries' coefficients in the asked queries, and lambda_i^2, falling."""
    root = inverse_root(covariance)
    values, vectors = np.linalg.eigh(root @ K @ root)
    order = np.argsort(-values, kind="stable")
    kept = [i for i in order if values[i] > CUT * values[order[0]] and values[i] > 0]
    W = np.array([vectors[:, i] @ root / math.sqrt(values[i]) for i in kept])
    return W.reshape(len(kept), len(K)), values[kept]


def shrinkage(alpha, squares):
    """y_i = alpha^2/(alpha^2 + 1/lambda_i^2); 1 at infinity."""
    if math.isinf(alpha):
        return np.ones(len(squares))
    return alpha**2 / (alpha**2 + 1 / squares)


def truncation(alpha, squares):
    """The hard form: y_i = 1 if 1/lambda_i^2 < alpha^2, otherwise 0 (3.3 leaves equality open)."""
    return np.array([float(1 / square < alpha**2) for square in squares])


def answer(q, queries, noisy, covariance, weight, alpha, rule=shrinkage):
    """sum_i y_i c_i z_i, z = W a, c_i = sum_j W_ij <q, q_j>."""
    W, squares = eigenqueries(kernel(queries, weight), covariance)
    z = W @ np.asarray(noisy)
    c = W @ np.array([inner(q, other, weight) for other in queries])
    y = rule(alpha, squares)
    return math.fsum(y[i] * c[i] * z[i] for i in range(len(squares)))


# The universal query


def known_total(q, queries, noisy, covariance, weight, alpha, n, rule=shrinkage):
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


# Cross-validation


def fold_estimates(groups, queries, noisy, covariance, weight, alpha, n):
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


def cross_validated_pooled(groups, queries, noisy, covariance, weight, alpha, n):
    """Every query counted once (methods.md 6.7b); another number if the folds differ in size."""
    found = fold_estimates(groups, queries, noisy, covariance, weight, alpha, n)
    total = math.fsum(e * len(group) for e, group in zip(found, groups, strict=True))
    return total / len(queries)


# Sensitivities by brute force


def sensitivity(queries, relation, norm=1):
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
