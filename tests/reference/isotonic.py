"""Sorted counts made consistent by isotonic regression (methods.md 8.2, 8.3; hay2010 section 3).

Positions are counted from 0 here and from 1 in the paper. Nothing is converted to float, so that
Fractions give exact answers.
"""

import math
from collections.abc import Sequence

from numpy.random import Generator

from . import geometric

# 8.2: noisy sorted sequence, closest ordered sequence
GOLDENS = [
    ((9, 10, 14), (9, 10, 14)),
    ((9, 14, 10), (9, 12, 12)),
    ((14, 9, 10, 15), (11, 11, 11, 15)),
    ((1, 2, 0, 11), (1, 1, 1, 11)),
]


def mean(values: Sequence[float], i: int, j: int) -> float:
    """M[i, j], the mean of values[i] to values[j], both included."""
    total = 0
    for position in range(i, j + 1):
        total += values[position]
    return total / (j - i + 1)


def lower(values: Sequence[float]) -> list[float]:
    """L_k = min over j in [k, n] of max over i in [1, j] of M[i, j] (Theorem 1)."""
    n = len(values)
    found = []
    for k in range(n):
        found.append(min(max(mean(values, i, j) for i in range(j + 1)) for j in range(k, n)))
    return found


def upper(values: Sequence[float]) -> list[float]:
    """U_k = max over i in [1, k] of min over j in [i, n] of M[i, j] (Theorem 1)."""
    n = len(values)
    found = []
    for k in range(n):
        found.append(max(min(mean(values, i, j) for j in range(i, n)) for i in range(k + 1)))
    return found


def pava(values: Sequence[float]) -> list[float]:
    """The same by pooling adjacent violators: blocks of (total, length) from left to right; while
    the last block's mean is below that of the one before, the two are one block.
    """
    blocks: list[tuple[float, int]] = []
    for value in values:
        total, length = value, 1
        while blocks and blocks[-1][0] * length > total * blocks[-1][1]:
            before, count = blocks.pop()
            total, length = before + total, count + length
        blocks.append((total, length))
    fitted = []
    for total, length in blocks:
        for _ in range(length):
            fitted.append(total / length)
    return fitted


def squared_distance(first: Sequence[float], second: Sequence[float]) -> float:
    """Sum of squared differences; with the truth as `second`, the error of one draw."""
    total = 0
    for x, y in zip(first, second, strict=True):
        total += (x - y) ** 2
    return total


def rounded(values: Sequence[float]) -> list[int]:
    """Each value's nearest non-negative integer (8.6). The paper has no rule for halves; here
    they go to even, as Python's round does.
    """
    return [max(0, round(value)) for value in values]


def noisy(
    counts: Sequence[int], epsilon: float, l1: float, rng: Generator, noise: str
) -> list[float]:
    """The counts in ascending order, each with its own noise: "laplace" of scale l1/epsilon (a
    float's idealisation, methods.md 0.2) or "geometric" with a = exp(-epsilon/l1).

    The sensitivity is 1 per record (8.1), 2 per edge for degrees of a graph (8.2): `l1`.
    """
    published = []
    for count in sorted(counts):
        if noise == "laplace":
            published.append(count + float(rng.laplace(0, l1 / epsilon)))
        elif noise == "geometric":
            published.append(count + geometric.draw(geometric.alpha_for(epsilon, l1), rng))
        else:
            raise ValueError(f"no such noise: {noise}")
    return published


def estimate(published: Sequence[float], estimator: str) -> list[float]:
    """S~ ("noisy"), S~ sorted and rounded ("sorted"), S-bar ("isotonic", which is not rounded):
    8.7, hay2010 section 5.1.
    """
    if estimator == "noisy":
        return list(published)
    if estimator == "sorted":
        return rounded(sorted(published))
    if estimator == "isotonic":
        return pava(published)
    raise ValueError(f"no such estimator: {estimator}")


def unattributed(
    counts: Sequence[int],
    epsilon: float,
    l1: float,
    estimator: str,
    rng: Generator,
    noise: str = "laplace",
) -> list[float]:
    """One release of the unattributed histogram."""
    return estimate(noisy(counts, epsilon, l1, rng, noise), estimator)


def multiplicities(counts: Sequence[int]) -> list[int]:
    """n_1, ..., n_d: how often each of the d distinct counts occurs, in ascending order of them."""
    found: dict[int, int] = {}
    for count in sorted(counts):
        found[count] = found.get(count, 0) + 1
    return list(found.values())


def theorem2_bound(counts: Sequence[int], epsilon: float, c1: float, c2: float) -> float:
    """Sum over the distinct counts of (c1 log^3 n_i + c2)/epsilon^2, >= error(S-bar) for some c1
    and c2 that the paper does not give (8.3).
    """
    terms = []
    for multiplicity in multiplicities(counts):
        terms.append((c1 * math.log(multiplicity) ** 3 + c2) / epsilon**2)
    return math.fsum(terms)


def theorem2_rate(counts: Sequence[int], epsilon: float) -> float:
    """d log^3 n/epsilon^2, the coarse form of the bound, without its constant."""
    return len(multiplicities(counts)) * math.log(len(counts)) ** 3 / epsilon**2


def error_noisy(n: int, epsilon: float, l1: float, noise: str = "laplace") -> float:
    """error(S~) = n times the noise's variance: 2n/epsilon^2 for Laplace and l1 = 1 (8.1)."""
    if noise == "geometric":
        return n * geometric.variance(geometric.alpha_for(epsilon, l1))
    return 2 * n * (l1 / epsilon) ** 2
