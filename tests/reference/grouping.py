"""Grouping and smoothing of column counts (methods.md 1.2 to 1.7).

`rows` are users, 0/1 over d columns; at most d_max ones a row are kept. Neighbours differ in one
row. Columns are put in order (by one of four variants), cut into runs of w, and every column of a
run gets the run's mean, noised. Counts are those of the truncated rows throughout.

* "random": a random order; nothing is spent on it.
* "noisy sort": counts with noise of sensitivity d_max, ascending.
* "row sample": each row kept with probability beta, then as above with the larger
  epsilon' = ln(1 + (e^eps1 - 1)/beta) that sampling makes cost eps1.
* "one sample": one uniformly random 1 of every row, counts with noise of sensitivity 1.

`noise` is "laplace" (a float's idealisation) or "geometric". For group means the latter is noise on
the group's SUM, an integer, of scale |G| Delta/eps2, divided by |G|.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from numpy.random import Generator

from . import geometric

VARIANTS = ("random", "noisy sort", "row sample", "one sample")

# 1.3: d, w, d_max, Delta if the remainder is a group of its own
RAGGED = [
    (100, 7, 10, Fraction(15, 7)),
    (100, 30, 10, Fraction(1)),
    (101, 10, 10, Fraction(19, 10)),
]


# Groups and their sensitivity


def groups(order: Sequence[int], w: int) -> list[list[int]]:
    """Runs of w; a remainder joins the last full run (sizes w to 2w - 1).

    w > d is refused: the only group would be smaller than w, and d_max/w too little noise.
    """
    d = len(order)
    if not 1 <= w <= d:
        raise ValueError("w must be in 1..d")
    k = d // w
    runs = [list(order[i * w : (i + 1) * w]) for i in range(k - 1)]
    return [*runs, list(order[(k - 1) * w :])]


def ragged_groups(order: Sequence[int], w: int) -> list[list[int]]:
    """Runs of w, the last one shorter: what not to do."""
    return [list(order[i : i + w]) for i in range(0, len(order), w)]


def column_counts(rows: Sequence[Sequence[int]], d: int) -> list[int]:
    """c_j = sum over rows of D[i][j]."""
    counts = [0] * d
    for row in rows:
        for column in range(d):
            counts[column] += row[column]
    return counts


def means(counts: Sequence[int], parts: Sequence[Sequence[int]]) -> list[Fraction]:
    """The exact mean of each group."""
    return [Fraction(sum(counts[j] for j in part), len(part)) for part in parts]


def sensitivity_by_rows(parts: Sequence[Sequence[int]], d_max: int) -> Fraction:
    """Delta: the largest L1 norm of the means of one row, over every row of at most d_max ones."""
    d = sum(len(part) for part in parts)
    worst = Fraction(0)
    for row in itertools.product((0, 1), repeat=d):
        if sum(row) <= d_max:
            worst = max(worst, sum(means(row, parts), Fraction(0)))
    return worst


def sensitivity(parts: Sequence[Sequence[int]], d_max: int) -> Fraction:
    """The same for many columns: only t_G = 0..|G|, the ones inside each group, matter; best[t] is
    the largest sum of t_G/|G| with t ones in the groups seen so far.
    """
    best = {0: Fraction(0)}
    for part in parts:
        longer: dict[int, Fraction] = {}
        for before, value in best.items():
            for t in range(min(len(part), d_max - before) + 1):
                other = value + Fraction(t, len(part))
                longer[before + t] = max(longer.get(before + t, Fraction(0)), other)
        best = longer
    return max(best.values())


def sensitivity_any_counts(parts: Sequence[Sequence[int]], records: int) -> Fraction:
    """Delta if one user may have `records` records in any column: all in the smallest group."""
    return Fraction(records, min(len(part) for part in parts))


# Order


def truncate(row: Sequence[int], d_max: int, rng: Generator) -> list[int]:
    """At most d_max ones, a uniformly random subset."""
    ones = [j for j, bit in enumerate(row) if bit]
    while len(ones) > d_max:
        ones.pop(int(rng.integers(len(ones))))
    return [1 if j in ones else 0 for j in range(len(row))]


def draw(scale: float, rng: Generator, noise: str) -> float:
    """One value of noise: Laplace(scale), or geometric with a = exp(-1/scale)."""
    if noise == "laplace":
        return float(rng.laplace(0, scale))
    if noise == "geometric":
        return geometric.draw(math.exp(-1 / scale), rng)
    raise ValueError(f"no such noise: {noise}")


def noise_variance(scale: float, noise: str) -> float:
    """Of one value of `draw`."""
    if noise == "laplace":
        return 2 * scale**2
    return geometric.variance(math.exp(-1 / scale))


def amplified(eps1: float, beta: float) -> float:
    """epsilon' = ln(1 + (e^eps1 - 1)/beta): what may be spent on a sample of rate beta."""
    return math.log1p(math.expm1(eps1) / beta)


def cost_of_sample(eps: float, beta: float) -> float:
    """ln(1 + beta (e^eps - 1)): what eps on a sample of rate beta costs."""
    return math.log1p(beta * math.expm1(eps))


def one_each(rows: Sequence[Sequence[int]], rng: Generator) -> list[list[int]]:
    """Every row with only one of its ones, uniformly; a row without ones stays empty."""
    sampled = []
    for row in rows:
        ones = [j for j, bit in enumerate(row) if bit]
        single = [0] * len(row)
        if ones:
            single[ones[int(rng.integers(len(ones)))]] = 1
        sampled.append(single)
    return sampled


def one_each_means(rows: Sequence[Sequence[int]], d: int) -> list[Fraction]:
    """E of the sampled counts: sum over rows of D[i][j]/|row i|; not in proportion to c_j unless
    all rows have equally many ones.
    """
    expected = [Fraction(0)] * d
    for row in rows:
        for j in range(d):
            if row[j]:
                expected[j] += Fraction(1, sum(row))
    return expected


def noisy_sample_counts(
    rows: Sequence[Sequence[int]],
    d: int,
    d_max: int,
    eps1: float,
    variant: str,
    rng: Generator,
    beta: float = 0.5,
    noise: str = "laplace",
) -> tuple[list[float], float]:
    """(the noisy counts to be sorted, the scale of their noise); eps1-DP."""
    if variant == "noisy sort":
        used, scale = rows, d_max / eps1
    elif variant == "row sample":
        used = [row for row in rows if rng.random() < beta]
        scale = d_max / amplified(eps1, beta)
    elif variant == "one sample":
        used, scale = one_each(rows, rng), 1 / eps1
    else:
        raise ValueError(f"no noisy counts in variant {variant}")
    counts = column_counts(used, d)
    return [count + draw(scale, rng, noise) for count in counts], scale


def ascending(values: Sequence[float]) -> list[int]:
    """Columns by value; ties to the first column (the values are public by now)."""
    return sorted(range(len(values)), key=lambda j: (values[j], j))


# Release


def smooth(
    counts: Sequence[int],
    parts: Sequence[Sequence[int]],
    delta: float,
    eps2: float,
    rng: Generator,
    noise: str = "laplace",
) -> list[float]:
    """Each column gets its group's mean, plus noise of scale delta/eps2 on that mean."""
    published = [0.0] * len(counts)
    for part in parts:
        total = sum(counts[j] for j in part)
        if noise == "geometric":
            scale = len(part) * delta / eps2
            value = (total + draw(scale, rng, noise)) / len(part)
        else:
            value = total / len(part) + draw(delta / eps2, rng, noise)
        for j in part:
            published[j] = value
    return published


def release(
    rows: Sequence[Sequence[int]],
    d: int,
    epsilon: float,
    d_max: int,
    w: int,
    variant: str,
    rng: Generator,
    beta: float = 0.5,
    order_share: float = 0.5,
    noise: str = "laplace",
) -> list[float]:
    """1.7; epsilon-DP. `order_share` of epsilon buys the order, none of it if that is random."""
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {VARIANTS}")
    kept = [truncate(row, d_max, rng) for row in rows]
    if variant == "random":
        order, eps2 = list(range(d)), epsilon
        for j in range(d - 1, 0, -1):
            other = int(rng.integers(j + 1))
            order[j], order[other] = order[other], order[j]
    else:
        eps1 = order_share * epsilon
        eps2 = epsilon - eps1
        values, _ = noisy_sample_counts(kept, d, d_max, eps1, variant, rng, beta, noise)
        order = ascending(values)
    return smooth(column_counts(kept, d), groups(order, w), d_max / w, eps2, rng, noise)


def release_sums(
    counts: Sequence[int],
    parts: Sequence[Sequence[int]],
    d_max: int,
    eps2: float,
    rng: Generator,
    noise: str = "geometric",
) -> list[float]:
    """Noise of sensitivity d_max on every group's SUM, then divided: eps2-DP for ANY sizes, as one
    row changes the sums by at most d_max together. Equal to `smooth` for groups of w, and a merged
    group of |G| > w gets less noise: scale d_max/(|G| eps2).
    """
    published = [0.0] * len(counts)
    for part in parts:
        total = sum(counts[j] for j in part) + draw(d_max / eps2, rng, noise)
        for j in part:
            published[j] = total / len(part)
    return published


def smoothing_error(counts: Sequence[float], parts: Sequence[Sequence[int]]) -> float:
    """Sum over columns of (c_j - mean of its group)^2."""
    total = 0.0
    for part in parts:
        mean = sum(counts[j] for j in part) / len(part)
        for j in part:
            total += (counts[j] - mean) ** 2
    return total


def expected_error(
    counts: Sequence[int],
    parts: Sequence[Sequence[int]],
    delta: float,
    eps2: float,
    noise: str = "laplace",
) -> float:
    """E of the mean squared error per column for these groups (published columns of a group share
    their noise, which does not matter here).
    """
    total = smoothing_error(counts, parts)
    for part in parts:
        if noise == "geometric":
            one = noise_variance(len(part) * delta / eps2, noise) / len(part) ** 2
        else:
            one = noise_variance(delta / eps2, noise)
        total += len(part) * one
    return total / len(counts)


# Width


def widths(d: int) -> list[int]:
    """1, 2, 4, ... up to d, and d itself."""
    found = []
    w = 1
    while w < d:
        found.append(w)
        w *= 2
    return [*found, d]


def estimated_smoothing(
    noisy: Sequence[float], w: int, scale: float, factor: float, noise: str = "laplace"
) -> float:
    """1.5: squared distance to the mean per column within runs of w of the SORTED noisy counts, less
    what noise of that scale adds to it, both times factor^2; not below 0.

    `factor` is (total count)/(sample's total), both public or noisy. Noise adds v (1 - 1/|G|) a
    column to a run whose members were chosen independently of it. Here they were not: sorting puts
    like noise together, so too much is subtracted and wide runs look too good.
    """
    ordered = sorted(noisy)
    parts = groups(range(len(ordered)), w)
    seen = smoothing_error(ordered, parts)
    for part in parts:
        seen -= len(part) * noise_variance(scale, noise) * (1 - 1 / len(part))
    return max(0.0, factor**2 * seen / len(ordered))


def estimated_error(
    noisy: Sequence[float],
    w: int,
    scale: float,
    factor: float,
    d_max: int,
    eps2: float,
    noise: str = "laplace",
) -> float:
    """Estimated smoothing plus 2 (d_max/(w eps2))^2, per column."""
    smoothing = estimated_smoothing(noisy, w, scale, factor, noise)
    return smoothing + 2 * (d_max / (w * eps2)) ** 2


def choose_width(
    noisy: Sequence[float],
    scale: float,
    factor: float,
    d_max: int,
    eps2: float,
    noise: str = "laplace",
) -> int:
    """The width of least estimated error, the smallest of equals."""
    return min(
        widths(len(noisy)),
        key=lambda w: (estimated_error(noisy, w, scale, factor, d_max, eps2, noise), w),
    )
