"""Count sketch with noise in its buckets (methods.md 9.2 item 9, 9.6; cormode2012 B.2 and C.6).

The hashes are plain lists drawn without looking at the data: bucket[row][key] is in 0..width-1,
sign[row][key] is 1 or -1. One record more or less changes one bucket of each row by 1, so the
sensitivity is the number of rows, `depth`, times l1.
"""

from . import geometric


def draw_hashes(depth, width, n_keys, rng):
    """Fully independent buckets and signs."""
    bucket, sign = [], []
    for _ in range(depth):
        bucket.append([int(rng.integers(width)) for _ in range(n_keys)])
        sign.append([2 * int(rng.integers(2)) - 1 for _ in range(n_keys)])
    return bucket, sign


def sketch(counts, bucket, sign, width):
    """For each row, the signed sum of the counts in each bucket."""
    table = []
    for row in range(len(bucket)):
        sums = [0] * width
        for key, count in enumerate(counts):
            sums[bucket[row][key]] += sign[row][key] * count
        table.append(sums)
    return table


def noisy(sketch, epsilon, l1, depth, rng):
    """Two-sided geometric noise on every bucket, a = exp(-epsilon/(depth * l1))."""
    if len(sketch) != depth:
        raise ValueError("depth must be the number of rows")
    alpha = geometric.alpha_for(epsilon, depth * l1)
    return [[x + geometric.draw(alpha, rng) for x in sums] for sums in sketch]


def estimate(noisy, bucket, sign, key, how):
    """The mean or median over the rows of sign * bucket; of an even number of rows the median
    is the mean of the two in the middle.
    """
    rows = []
    for row in range(len(noisy)):
        rows.append(sign[row][key] * noisy[row][bucket[row][key]])
    if how == "mean":
        return sum(rows) / len(rows)
    if how == "median":
        rows.sort()
        return (rows[(len(rows) - 1) // 2] + rows[len(rows) // 2]) / 2
    raise ValueError("how must be mean or median")


def variance(counts, key, width, depth, epsilon, l1):
    """Variance of the mean estimate over hashes and noise (9.2 item 9).

    In a row another key of count c falls into the same bucket with probability 1/width and then
    adds +c or -c by a fair coin: variance c^2/width, uncorrelated between keys. The noise of the
    bucket adds its own, and depth independent rows are averaged.
    """
    others = 0.0
    for other, count in enumerate(counts):
        if other != key:
            others += count**2
    noise = geometric.variance(geometric.alpha_for(epsilon, depth * l1))
    return (others / width + noise) / depth
