"""ALP, approximate Laplace projection (methods.md 11, second bullet).

A count x becomes y = x * epsilon/(alpha * l1) levels, rounded up or down at random; the bits
h[1][key], ..., h[y][key] are set and every bit is flipped with probability 1/(alpha + 2). `h` is
indexed by level 1..levels, so a list has an unused first item; h[j][key] is in 0..size-1. `alpha`
is this mechanism's parameter here, not the noise's.

Privacy. A bit that one table sets and the other does not has likelihood ratio at most alpha + 1
((1 - p)/p with p = 1/(alpha + 2)). One record moves y by s = epsilon/(alpha * l1), a user l1 of them.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

from numpy.random import Generator

Hashes = Sequence[Sequence[int]] | Mapping[int, Sequence[int]]


def levels(beta: float, epsilon: float, alpha: float, l1: float) -> int:
    """ceil(beta * epsilon/(alpha * l1)), at least 1: counts above beta are cut."""
    return max(1, math.ceil(beta * epsilon / (alpha * l1)))


def size(total: float, epsilon: float, alpha: float, l1: float, size_factor: float) -> int:
    """Bits: the smallest power of two >= size_factor * total * epsilon/(alpha * l1)."""
    wanted = size_factor * total * epsilon / (alpha * l1)
    bits = 1
    while bits < wanted:
        bits *= 2
    return bits


def flip(alpha: float) -> float:
    """Pr[a bit is flipped]."""
    return 1 / (alpha + 2)


def round_randomly(y: float, rng: Generator) -> int:
    """floor(y), or one more with probability y - floor(y)."""
    below = math.floor(y)
    if rng.random() < y - below:
        return below + 1
    return below


def encode(
    counts: Sequence[int],
    h: Hashes,
    size: int,
    beta: float,
    epsilon: float,
    alpha: float,
    l1: float,
    rng: Generator,
) -> list[int]:
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


def walk(path: Sequence[int]) -> float:
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


def estimate(
    bits: Sequence[int],
    h: Hashes,
    key: int,
    beta: float,
    epsilon: float,
    alpha: float,
    l1: float,
) -> float:
    """The count of a key: its walk's position times alpha * l1/epsilon."""
    path = []
    for level in range(1, levels(beta, epsilon, alpha, l1) + 1):
        path.append(bits[h[level][key]])
    return walk(path) * alpha * l1 / epsilon


def loss_factor(epsilon: float, alpha: float, l1: float) -> float:
    """The worst likelihood ratio of a user, at most e^epsilon.

    One record moves y by s = epsilon/(alpha * l1). For s <= 1 the worst ratio is
    1 + alpha * s = 1 + epsilon/l1, also across a whole level: from f to 1 + g, with f + s = 1 + g,
    set bits give (alpha + 1)(1 + g alpha)/(1 + f alpha), which grows with f up to f = 1, and clear
    bits fall from g = 0. For s > 1, k whole levels and a part s - k: (1 + alpha)^k times
    1 + alpha (s - k), which is more than 1 + epsilon/l1. A user's l1 records in different cells
    multiply.
    """
    s = epsilon / (alpha * l1)
    whole = math.floor(s)
    return ((1 + alpha) ** whole * (1 + alpha * (s - whole))) ** l1


def output_law(
    count: int, levels: int, epsilon: float, alpha: float, l1: float
) -> dict[tuple[int, ...], float]:
    """Pr[the bits of one key's levels], when no other key and no two levels share a bit."""
    y = count * epsilon / (alpha * l1)
    below = math.floor(y)
    p = flip(alpha)
    law = {}
    for path in itertools.product((0, 1), repeat=levels):
        total = 0.0
        for rounded, weight in ((below, 1 - (y - below)), (below + 1, y - below)):
            rounded = min(rounded, levels)
            likelihood = weight
            for level, bit in enumerate(path, start=1):
                true_bit = 1 if level <= rounded else 0
                likelihood *= 1 - p if bit == true_bit else p
            total += likelihood
        law[path] = total
    return law


def worst_log_ratio(count: int, levels: int, epsilon: float, alpha: float, l1: float) -> float:
    """The largest |log| of the ratio of the laws for count and count + 1."""
    here = output_law(count, levels, epsilon, alpha, l1)
    there = output_law(count + 1, levels, epsilon, alpha, l1)
    worst = 0.0
    for path in here:
        worst = max(worst, abs(math.log(here[path] / there[path])))
    return worst
