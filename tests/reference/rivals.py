"""Rivals for sparse counts, written from their formulas.

Counts are lists over a small domain. `alpha` = exp(-epsilon) is the ratio of two-sided geometric noise
Z with Pr[Z = z] = (1-alpha)/(1+alpha) * alpha^|z|. Everything is enumerated or summed term by term.
"""

import itertools
import math
from fractions import Fraction

from scipy.special import log_ndtr, ndtr, ndtri

# Item blanket


def geometric_tail(alpha, t):
    """Pr[Z >= t]."""
    if t > 0:
        return alpha**t / (1 + alpha)
    return 1 - geometric_tail(alpha, 1 - t)


def keep_first(epsilon, d, most, size):
    """q*, the largest probability with which a cell of one count may be kept."""
    alpha = math.exp(-epsilon)
    if size == d:
        return 1 - alpha
    return min((math.exp(epsilon) - 1) * (size - most + 1) / (d - size), 1 - alpha)


def blanket_threshold(epsilon, d, most, size):
    """tau."""
    alpha = math.exp(-epsilon)
    inside = math.log(1 / ((1 + alpha) * keep_first(epsilon, d, most, size))) / epsilon
    return 1 + max(0, math.ceil(inside))


def blanket_law(counts, epsilon, most, size):
    """{set of released cells: probability}."""
    d = len(counts)
    alpha = math.exp(-epsilon)
    tau = blanket_threshold(epsilon, d, most, size)
    full = [cell for cell in range(d) if counts[cell] > 0]
    assert len(full) <= most <= size <= d
    law = {}
    for decisions in itertools.product((True, False), repeat=len(full)):
        chance = 1.0
        kept = []
        for cell, keep in zip(full, decisions, strict=True):
            q = geometric_tail(alpha, tau - counts[cell])
            chance *= q if keep else 1 - q
            if keep:
                kept.append(cell)
        others = [cell for cell in range(d) if cell not in kept]
        draws = list(itertools.combinations(others, size - len(kept)))
        for drawn in draws:
            cells = tuple(sorted(kept + list(drawn)))
            law[cells] = law.get(cells, 0) + chance / len(draws)
    return law


# Gaussian sparse histogram


def gaussian_delta(epsilon, mu):
    """delta of two continuous Gaussians at distance mu standard deviations."""
    if mu == 0:
        return max(0.0, 1 - math.exp(epsilon))
    return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def gaussian_mu(epsilon, delta):
    """The mu at which that is delta."""
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        if gaussian_delta(epsilon, middle) > delta:
            high = middle
        else:
            low = middle
    return low


def sparse_lines(epsilon, sigma, t, cells, moved=1):
    """The three lines of the exact delta for continuous noise: each a list over a = 0 ... cells."""
    log_p = log_ndtr(t / sigma)
    second, third = [], []
    for a in range(cells):
        mu = moved * math.sqrt(cells - a) / sigma
        hidden = math.exp(a * log_p)
        second.append(1 - hidden + hidden * gaussian_delta(epsilon - a * log_p, mu))
        third.append(gaussian_delta(epsilon + a * log_p, mu))
    return [-math.expm1(cells * log_p)], second, third


def sparse_delta(epsilon, sigma, t, cells, moved=1):
    """The exact delta for continuous noise."""
    return max(map(max, sparse_lines(epsilon, sigma, t, cells, moved)))


def exact_quantile(sigma, delta, cells):
    """The t at which the first line is delta."""
    return sigma * ndtri((1 - delta) ** (1 / cells))


def added_quantile(epsilon, sigma, delta, cells, moved=1):
    """The t of the older rule, which adds the two deltas."""
    noise = gaussian_delta(epsilon, moved * math.sqrt(cells) / sigma)
    return sigma * ndtri((1 - delta + noise) ** (1 / cells))


def discrete_gaussian_pmf(rate, reach):
    """{x: Pr[X = x]} for Pr[X = x] proportional to exp(-rate x^2), on |x| <= reach."""
    weights = {x: math.exp(-float(rate) * x * x) for x in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {x: w / total for x, w in weights.items()}


def hockey_stick(p, q, epsilon):
    """max over events of P - e^epsilon Q."""
    return math.fsum(max(0.0, p[x] - math.exp(epsilon) * q.get(x, 0.0)) for x in p)


def shown_law(pmf, counts, threshold):
    """{what is shown: probability}: noise on each count above 0, and cells below the threshold hidden."""
    law = {(): 1.0}
    for count in counts:
        cell = {}
        for x, chance in pmf.items():
            shown = count + x if count > 0 and count + x >= threshold else None
            cell[shown] = cell.get(shown, 0) + chance
        if count == 0:
            cell = {None: 1.0}
        law = {(*key, s): p * c for key, p in law.items() for s, c in cell.items()}
    return law


def discrete_sparse_delta(pmf, counts, more, threshold, epsilon):
    """The delta at epsilon of the literal release of two tables, in both directions."""
    p, q = shown_law(pmf, counts, threshold), shown_law(pmf, more, threshold)
    return max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))


# Misra-Gries


def misra_gries(stream, k):
    """{key: count} after the stream, without dummies; ties go to the smallest key."""
    sketch = {(0, i): 0 for i in range(k)}  # dummies precede real keys
    for x in stream:
        if (1, x) in sketch:
            sketch[1, x] += 1
        elif min(sketch.values()) >= 1:
            for key in sketch:
                sketch[key] -= 1
        else:
            smallest = min(key for key, count in sketch.items() if count == 0)
            del sketch[smallest]
            sketch[1, x] = 1
    return sketch


def authors_threshold(epsilon, delta):
    """tau for Laplace noise."""
    return 1 + 2 * math.log(3 / delta) / epsilon


def sum_tail(alpha, t, reach=2000):
    """Pr[G1 + G2 >= t] for two independent two-sided geometric draws, summed."""
    one = [(x, (1 - alpha) / (1 + alpha) * alpha ** abs(x)) for x in range(-reach, reach + 1)]
    return math.fsum(p * geometric_tail(alpha, t - x) for x, p in one)


def integer_threshold(epsilon, delta):
    """The smallest integer tau with 4 e^epsilon Pr[G1 + G2 >= tau] <= delta."""
    tau = 1
    while 4 * math.exp(epsilon) * sum_tail(math.exp(-epsilon), tau) > delta:
        tau += 1
    return tau


def misra_gries_law(sketch, epsilon, tau, reach):
    """{((key, value), ...): probability} of what is shown; one shared draw, and one for each key."""
    alpha = math.exp(-epsilon)
    chance = {x: (1 - alpha) / (1 + alpha) * alpha ** abs(x) for x in range(-reach, reach + 1)}
    law = {}
    for shared, p in chance.items():
        shown = {(): p}
        for (real, key), count in sorted(sketch.items()):
            if not real:
                continue
            top = tau - count - shared
            options = [(None, 1 - geometric_tail(alpha, top))]
            options += [((key, count + shared + x), c) for x, c in chance.items() if x >= top]
            shown = {
                (*row, s) if s else row: q * c for row, q in shown.items() for s, c in options
            }
        for row, q in shown.items():
            law[row] = law.get(row, 0) + q
    return law


def lemma_holds(sketch, less):
    """Whether the sketches of a stream, and of it without one element, are as the lemma says."""
    keys = {*sketch, *less}
    c = {key: sketch.get(key, 0) for key in keys}
    d = {key: less.get(key, 0) for key in keys}
    few = len({*sketch} - {*less}) <= 2
    small = all(max(c[key], d[key]) <= 1 for key in {*sketch} ^ {*less})
    one = sorted(c[key] - d[key] for key in keys) == [0] * (len(keys) - 1) + [1]
    every = all(c[key] == (d[key] - 1 if key in less else 0) for key in keys)
    return few and small and (one or every)


# Correlated Gaussian


def correlated(epsilon, delta_noise, delta_cells, k):
    """Variances (b of the shared draw, a of each), and the threshold above 1."""
    mu = gaussian_mu(epsilon, delta_noise)
    b = (1 + math.sqrt(k)) / (4 * mu * mu)
    a = math.sqrt(k) * b
    return b, a, math.sqrt(a + b) * ndtri((1 - delta_cells) ** (1 / k))


def distance_squared(a, b, cells, moved):
    """d' (a I + b 1 1')^-1 d for d of `moved` ones among `cells`, by solving the linear system."""
    matrix = [[Fraction(b) + (a if i == j else 0) for j in range(cells)] for i in range(cells)]
    d = [Fraction(int(i < moved)) for i in range(cells)]
    rows = [[*row, right] for row, right in zip(matrix, d, strict=True)]
    for i in range(cells):
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(cells):
            if j != i:
                rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i], strict=True)]
    return sum(x * row[-1] for x, row in zip(d, rows, strict=True))
