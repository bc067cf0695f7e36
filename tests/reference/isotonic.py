"""Sorted counts made consistent by isotonic regression (methods.md 8.2, 8.3; hay2010 section 3).

Positions are counted from 0 here and from 1 in the paper. Nothing is converted to float, so that
Fractions give exact answers.
"""

from . import geometric


def mean(values, i, j):
    """M[i, j], the mean of values[i] to values[j], both included."""
    total = 0
    for position in range(i, j + 1):
        total += values[position]
    return total / (j - i + 1)


def lower(values):
    """L_k = min over j in [k, n] of max over i in [1, j] of M[i, j] (Theorem 1)."""
    n = len(values)
    found = []
    for k in range(n):
        found.append(min(max(mean(values, i, j) for i in range(j + 1)) for j in range(k, n)))
    return found


def upper(values):
    """U_k = max over i in [1, k] of min over j in [i, n] of M[i, j] (Theorem 1)."""
    n = len(values)
    found = []
    for k in range(n):
        found.append(max(min(mean(values, i, j) for j in range(i, n)) for i in range(k + 1)))
    return found


def pava(values):
    """The same by pooling adjacent violators: blocks of (total, length) from left to right; while
    the last block's mean is below that of the one before, the two are one block.
    """
    blocks = []
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


def rounded(values):
    """Each value's nearest non-negative integer (8.6). The paper has no rule for halves; here
    they go to even, as Python's round does.
    """
    return [max(0, round(value)) for value in values]


def noisy(counts, epsilon, l1, rng, noise):
    """The counts in ascending order, each with its own noise: "laplace" of scale l1/epsilon (a
    float's idealisation, methods.md 0.2) or "geometric" with a = exp(-epsilon/l1).

    The sensitivity is 1 per record (8.1), 2 per edge for degrees of a graph (8.2): `l1`.
    """
    scale = l1 / epsilon
    return [count + geometric.draw_either(scale, rng, noise) for count in sorted(counts)]


def estimate(published, estimator):
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


def unattributed(counts, epsilon, l1, estimator, rng, noise="laplace"):
    """One release of the unattributed histogram."""
    return estimate(noisy(counts, epsilon, l1, rng, noise), estimator)
