"""Stability histogram with geometric noise (methods.md 11, first bullet).

Noise on the non-empty cells only, kept if noisy >= T. A user adds or removes records in at most l0
cells, at most linf in each, at most l1 in all (integers); a = exp(-epsilon/l1).

Failure probability. Cells that are not empty with and without the user cost epsilon. Cells that
only the user fills, with c_1, ..., c_q records, can be seen only when the user is there: with
probability 1 - prod_j Pr[G < T - c_j]. When nothing else changes, this is exactly the smallest
delta, and delta is its largest value over 1 <= c_j <= linf, sum c_j <= l1, q <= l0.

For q fixed, log Pr[G < T - c] is concave in c (the geometric law is log-concave, so its distribution
function is), so the product is smallest at a corner: every cell has one record, and what is left
of l1 fills as many cells as it can up to linf, one in part. But an empty cell is never seen, while
a cell of one record may be: the first record of a cell can count for more than the later ones, so
the largest delta need not be at the smallest q. One record in each of ten cells beats ten records
in one (l0 = linf = l1 = 10, epsilon = 1: by a factor of about 4 when T is large). Hence the loop
over q. The packed choice alone (floor(l1/linf) cells of linf and one of the remainder) is right when
l1 >= l0 * linf, linf = 1 or l0 = 1, and too small in general.

With Laplace noise of scale l1/epsilon the tail is exp(-t * epsilon/l1)/2 in place of a^t/(1 + a),
and T is real: for l0 = linf = l1 = 1, epsilon = 1 and delta = 1e-6 it is 1 + ln(5e5) = 14.12, where
the geometric noise needs the integer 15.
"""

import math

from . import geometric


def tail(t, alpha):
    """Pr[G >= t]."""
    if t >= 1:
        return alpha**t / (1 + alpha)
    return 1 - alpha ** (1 - t) / (1 + alpha)


def failure(new_cells, threshold, l1, epsilon):
    """Pr[at least one of the cells that only one user fills passes], given their counts."""
    alpha = geometric.alpha_for(epsilon, l1)
    log_none = 0.0
    for count in new_cells:
        log_none += math.log1p(-tail(threshold - count, alpha))
    return -math.expm1(log_none)


def fullest(q, linf, l1):
    """q cells of at least one record and at most linf, l1 in all, as unequal as can be."""
    cells = []
    left = l1
    for cell in range(q):
        still_to_come = q - cell - 1
        count = min(linf, left - still_to_come)
        cells.append(count)
        left -= count
    return cells


def delta(threshold, l0, linf, l1, epsilon):
    """The largest failure probability: over q cells, q <= min(l0, l1), each time the fullest."""
    if threshold < 1 or l0 < 1 or linf < 1 or l1 < 1:
        raise ValueError("threshold, l0, linf and l1 must be at least 1")
    worst = 0.0
    for q in range(1, min(l0, l1) + 1):
        worst = max(worst, failure(fullest(q, linf, l1), threshold, l1, epsilon))
    return worst


def threshold(l0, linf, l1, epsilon, target):
    """The smallest whole T >= 1 with delta(T) <= target."""
    if not target > 0:
        raise ValueError("target must be positive")
    t = 1
    while delta(t, l0, linf, l1, epsilon) > target:
        t += 1
    return t


def release(counts, epsilon, l1, threshold, rng):
    """Cell index -> noisy value, for the non-empty cells with noisy >= threshold."""
    alpha = geometric.alpha_for(epsilon, l1)
    released = {}
    for cell, count in enumerate(counts):
        if count == 0:
            continue
        x = count + geometric.draw(alpha, rng)
        if x >= threshold:
            released[cell] = x
    return released
