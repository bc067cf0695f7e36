"""Direct synthesis (methods.md 7.4b and 7.6; adaptive2009 Figures 3, 4 and 14).

A node has a count to hand out. Its children's noisy counts are moved to that sum by unit steps in
turn, and each child hands out what it got. As corrected: nothing follows once a count of one or the
last level has put out its prefix; noisy counts are whole; the turns start at random; depth/epsilon is
the scale of the noise (the text calls it the standard deviation).

Figure 14 cuts each count at `count` before the steps, Figure 4 and this file do not. That only matters when
there is too much, and then the larger pay for the smaller: [15, 9] to 10 gives [8, 2], the projection
on the simplex, but [5, 5] or [6, 4] if cut first.
"""

from fractions import Fraction

from . import geometric

# count, subcounts, start, centred: methods.md 7.6, and by hand where the start matters
GOLDENS = (
    (10, (9, 5, -4, 1), 0, (7, 3, 0, 0)),
    (10, (9, 5, -4, 1), 1, (7, 3, 0, 0)),
    (20, (9, 5, -40, 1), 0, (11, 6, 1, 2)),
    (20, (9, 5, -40, 1), 2, (10, 6, 2, 2)),
    (9, (9, 5, -4, 1), 0, (6, 3, 0, 0)),
    (9, (9, 5, -4, 1), 1, (7, 2, 0, 0)),
)


def centre(count, subcounts, start):
    """Figure 4: unit steps in round robin from child `start`."""
    if count < 0 or not subcounts:
        raise ValueError("count must not be negative, and there must be children")
    centred = [max(0, c) for c in subcounts]
    direction = 1 if count > sum(centred) else -1
    i = start
    while sum(centred) != count:
        child = i % len(centred)
        centred[child] = max(0, centred[child] + direction)
        i += 1
    return centred


def projection(count, subcounts):
    """The closest point with entries >= 0 and sum `count`: max(0, c - level), level by trying."""
    for kept in range(1, len(subcounts) + 1):
        largest = sorted(subcounts, reverse=True)[:kept]
        level = Fraction(sum(largest) - count, kept)
        point = [max(Fraction(0), c - level) for c in subcounts]
        if sum(point) == count:
            return point
    raise AssertionError("there is always one")


def synthesise(records, count, depth, fanout, epsilon, rng, prefix=()):
    """`count` prefixes, by epsilon in all: depth levels at epsilon/depth each."""
    records = list(records)
    k = fanout(prefix)
    if count == 0:
        return []
    if count == 1 or len(prefix) == depth or k == 0:
        return [prefix] * count
    alpha = geometric.alpha_for(epsilon, depth)
    level = len(prefix)
    parts = [[r for r in records if len(r) > level and r[level] == i] for i in range(k)]
    noisy = [len(part) + geometric.draw(alpha, rng) for part in parts]
    synthetic = []
    for i, c in enumerate(centre(count, noisy, int(rng.integers(k)))):
        synthetic += synthesise(parts[i], c, depth, fanout, epsilon, rng, (*prefix, i))
    return synthetic
