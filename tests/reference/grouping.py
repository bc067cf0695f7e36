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

import math

from . import geometric

# Groups and their sensitivity


def groups(order, w):
    """Runs of w; a remainder joins the last full run (sizes w to 2w - 1).

    w > d is refused: the only group would be smaller than w, and d_max/w too little noise.
    """
    d = len(order)
    if not 1 <= w <= d:
        raise ValueError("w must be in 1..d")
    k = d // w
    runs = [list(order[i * w : (i + 1) * w]) for i in range(k - 1)]
    return [*runs, list(order[(k - 1) * w :])]


def column_counts(rows, d):
    """c_j = sum over rows of D[i][j]."""
    counts = [0] * d
    for row in rows:
        for column in range(d):
            counts[column] += row[column]
    return counts


# Order


def truncate(row, d_max, rng):
    """At most d_max ones, a uniformly random subset."""
    ones = [j for j, bit in enumerate(row) if bit]
    while len(ones) > d_max:
        ones.pop(int(rng.integers(len(ones))))
    return [1 if j in ones else 0 for j in range(len(row))]


def amplified(eps1, beta):
    """epsilon' = ln(1 + (e^eps1 - 1)/beta): what may be spent on a sample of rate beta."""
    return math.log1p(math.expm1(eps1) / beta)


def cost_of_sample(eps, beta):
    """ln(1 + beta (e^eps - 1)): what eps on a sample of rate beta costs."""
    return math.log1p(beta * math.expm1(eps))


def one_each(rows, rng):
    """Every row with only one of its ones, uniformly; a row without ones stays empty."""
    sampled = []
    for row in rows:
        ones = [j for j, bit in enumerate(row) if bit]
        single = [0] * len(row)
        if ones:
            single[ones[int(rng.integers(len(ones)))]] = 1
        sampled.append(single)
    return sampled


def noisy_sample_counts(rows, d, d_max, eps1, variant, rng, beta=0.5, noise="laplace"):
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
    return [count + geometric.draw_either(scale, rng, noise) for count in counts], scale


def ascending(values):
    """Columns by value; ties to the first column (the values are public by now)."""
    return sorted(range(len(values)), key=lambda j: (values[j], j))


# Release


def release_sums(counts, parts, d_max, eps2, rng, noise="geometric"):
    """Noise of sensitivity d_max on every group's SUM, then divided: eps2-DP for ANY sizes, as one
    row changes the sums by at most d_max together. A merged group of
    |G| > w gets less noise: scale d_max/(|G| eps2).
    """
    published = [0.0] * len(counts)
    for part in parts:
        total = sum(counts[j] for j in part) + geometric.draw_either(d_max / eps2, rng, noise)
        for j in part:
            published[j] = total / len(part)
    return published


def smoothing_error(counts, parts):
    """Sum over columns of (c_j - mean of its group)^2."""
    total = 0.0
    for part in parts:
        mean = sum(counts[j] for j in part) / len(part)
        for j in part:
            total += (counts[j] - mean) ** 2
    return total


# Width


def widths(d):
    """1, 2, 4, ... up to d, and d itself."""
    found = []
    w = 1
    while w < d:
        found.append(w)
        w *= 2
    return [*found, d]


def estimated_smoothing(noisy, w, scale, factor, noise="laplace"):
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
        seen -= len(part) * geometric.variance_of_either(scale, noise) * (1 - 1 / len(part))
    return max(0.0, factor**2 * seen / len(ordered))


def estimated_error(noisy, w, scale, factor, d_max, eps2, noise="laplace"):
    """Estimated smoothing plus 2 (d_max/(w eps2))^2, per column."""
    smoothing = estimated_smoothing(noisy, w, scale, factor, noise)
    return smoothing + 2 * (d_max / (w * eps2)) ** 2


def choose_width(noisy, scale, factor, d_max, eps2, noise="laplace"):
    """The width of least estimated error, the smallest of equals."""
    return min(
        widths(len(noisy)),
        key=lambda w: (estimated_error(noisy, w, scale, factor, d_max, eps2, noise), w),
    )
