"""Counts by their first Fourier coefficients: FPA and EFPA (methods.md 2.1, 2.2, 2.4).

The basis is real and orthonormal, ordered by frequency. k counts real coordinates; it is odd, so
that frequencies stay whole, or n. `l1` and `l2` are the sensitivities of the counts themselves: at
most M records a user give l1 = M and l2 = M, or sqrt(M) if no two are in one cell.
Laplace noise here is a float's idealisation.
"""

import itertools
import math

from . import exponential

GOLDEN = (256, 9, 0.537, 0.5625, 3.0)  # n, k, exact L1, k l1/sqrt n, sqrt k l2; l1 = l2 = 1


# Basis


def basis(n):
    """b_0 = 1/sqrt n; sqrt(2/n) cos, sqrt(2/n) sin for f = 1..floor((n - 1)/2); if n is even, last
    cos(pi t)/sqrt n.
    """
    rows = [[1 / math.sqrt(n)] * n]
    for f in range(1, (n - 1) // 2 + 1):
        angles = [2 * math.pi * f * t / n for t in range(n)]
        rows.append([math.sqrt(2 / n) * math.cos(angle) for angle in angles])
        rows.append([math.sqrt(2 / n) * math.sin(angle) for angle in angles])
    if n % 2 == 0:
        rows.append([(-1) ** t / math.sqrt(n) for t in range(n)])
    return rows


def forward(x):
    """c_j = sum over t of b_j(t) x_t."""
    coefficients = []
    for row in basis(len(x)):
        coefficients.append(math.fsum(b * value for b, value in zip(row, x, strict=True)))
    return coefficients


def backward(coefficients):
    """x_t = sum over j of c_j b_j(t)."""
    n = len(coefficients)
    rows = basis(n)
    return [math.fsum(coefficients[j] * rows[j][t] for j in range(n)) for t in range(n)]


# Sensitivity


def ks(n):
    """1, 3, 5, ... and n."""
    found = list(range(1, n + 1, 2))
    if found[-1] != n:
        found.append(n)
    return found


def first_bound(k, l2):
    """sqrt(k) l2, for the L1 sensitivity of the first k coordinates (Cauchy-Schwarz)."""
    return math.sqrt(k) * l2


def second_bound(k, l1, n):
    """k l1/sqrt(n). A cell adds 1/sqrt n, and sqrt(2/n)(|cos| + |sin|) <= 2/sqrt n a frequency: for k
    odd or n only. A lone cosine may add sqrt(2/n) > 1/sqrt n.
    """
    if k not in ks(n):
        raise ValueError("k must be odd, or n")
    return k * l1 / math.sqrt(n)


def scale(k, n, epsilon, l2, l1=None):
    """lambda: sqrt(k) l2/epsilon as published, or the lesser of both bounds if l1 is given."""
    bound = first_bound(k, l2)
    if l1 is not None:
        bound = min(bound, second_bound(k, l1, n))
    return bound / epsilon


def exact_l1(k, changes):
    """The largest L1 change of the first k coordinates over these changes of the counts."""
    worst = 0.0
    rows = None
    for change in changes:
        rows = rows or basis(len(change))
        total = 0.0
        for row in rows[:k]:
            total += abs(sum(b * value for b, value in zip(row, change, strict=True)))
        worst = max(worst, total)
    return worst


def distinct_cells(n, records):
    """Every user of 1 to `records` records, no two in a cell."""
    for size in range(1, records + 1):
        for cells in itertools.combinations(range(n), size):
            yield [1 if t in cells else 0 for t in range(n)]


def any_cells(n, records):
    """Every user of 1 to `records` records, in any cells."""
    for size in range(1, records + 1):
        for cells in itertools.combinations_with_replacement(range(n), size):
            yield [cells.count(t) for t in range(n)]


# FPA


def fpa(x, k, noise_scale, rng):
    """The first k coefficients with Laplace(noise_scale) each, the others zero, inverted."""
    coefficients = forward(x)
    published = [0.0] * len(x)
    for j in range(k):
        published[j] = coefficients[j] + float(rng.laplace(0, noise_scale))
    return backward(published)


def tail(coefficients, k):
    """sum over j >= k of c_j^2."""
    return math.fsum(c * c for c in coefficients[k:])


# EFPA


def cost(x, k, eps2, l2, l1=None):
    """U(k) = sqrt(tail) + sqrt(2k) lambda(k), lower is better; without l1 the second term is
    sqrt(2) k l2/eps2. The first moves by at most l2, the second not at all.
    """
    return math.sqrt(tail(forward(x), k)) + math.sqrt(2 * k) * scale(k, len(x), eps2, l2, l1)


def selection(x, eps1, eps2, l2, l1=None):
    """Pr[k] ~ exp(-eps1 U(k)/(2 l2)) over the allowed k."""
    allowed = ks(len(x))
    scores = [-cost(x, k, eps2, l2, l1) for k in allowed]
    chances = exponential.probabilities(scores, eps1, l2)
    return dict(zip(allowed, chances, strict=True))


def choose(chances, rng):
    """One k of this law, by walking along it."""
    place = rng.random()
    for k, chance in chances.items():
        place -= chance
        if place < 0:
            return k
    return max(chances, key=lambda k: chances[k])  # rounding only


def efpa(x, epsilon, l2, rng, l1=None, selection_share=0.5):
    """epsilon-DP: half of it (or `selection_share`) chooses k, the rest is noise."""
    eps1 = selection_share * epsilon
    eps2 = epsilon - eps1
    k = choose(selection(x, eps1, eps2, l2, l1), rng)
    return fpa(x, k, scale(k, len(x), eps2, l2, l1), rng)
