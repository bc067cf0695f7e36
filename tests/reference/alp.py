"""ALP, approximate Laplace projection (methods.md 11, second bullet).

A count x becomes y = x * epsilon/(alpha * l1) levels, rounded up or down at random; the bits
h[1][key], ..., h[y][key] are set and every bit is flipped with probability 1/(alpha + 2). `h` is
indexed by level 1..levels, so a list has an unused first item; h[j][key] is in 0..size-1. `alpha`
is this mechanism's parameter here, not the noise's.

Privacy. A bit that one table sets and the other does not has likelihood ratio at most alpha + 1
((1 - p)/p with p = 1/(alpha + 2)). One record moves y by s = epsilon/(alpha * l1), a user l1 of them.
"""

import math


def levels(beta, epsilon, alpha, l1):
    """ceil(beta * epsilon/(alpha * l1)), at least 1: counts above beta are cut."""
    return max(1, math.ceil(beta * epsilon / (alpha * l1)))


def size(total, epsilon, alpha, l1, size_factor):
    """Bits: the smallest power of two >= size_factor * total * epsilon/(alpha * l1)."""
    wanted = size_factor * total * epsilon / (alpha * l1)
    bits = 1
    while bits < wanted:
        bits *= 2
    return bits


def flip(alpha):
    """Pr[a bit is flipped]."""
    return 1 / (alpha + 2)


def round_randomly(y, rng):
    """floor(y), or one more with probability y - floor(y)."""
    below = math.floor(y)
    if rng.random() < y - below:
        return below + 1
    return below


def encode(counts, h, size, beta, epsilon, alpha, l1, rng):
    """The bits. Negative counts count as 0."""
    top = levels(beta, epsilon, alpha, l1)
    bits = [0] * size
    for key, count in enumerate(counts):
        y = round_randomly(count * epsilon / (alpha * l1), rng)
        y = max(0, min(y, top))
        for level in range(1, y + 1):
            bits[h[level][key]] = 1
    for position in range(size):
        if rng.random() < flip(alpha):
            bits[position] = 1 - bits[position]
    return bits


def walk(path):
    """Where the walk +1 for a set bit, -1 for a clear one is highest, the start 0 included; the
    average of the positions if there are several.
    """
    height, best, where = 0, 0, [0]
    for position, bit in enumerate(path, start=1):
        height += 1 if bit else -1
        if height > best:
            best, where = height, [position]
        elif height == best:
            where.append(position)
    return sum(where) / len(where)


def estimate(bits, h, key, beta, epsilon, alpha, l1):
    """The count of a key: its walk's position times alpha * l1/epsilon."""
    path = []
    for level in range(1, levels(beta, epsilon, alpha, l1) + 1):
        path.append(bits[h[level][key]])
    return walk(path) * alpha * l1 / epsilon
