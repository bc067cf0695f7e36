"""Dirichlet-multinomial synthetic data, the slow way (methods.md 3.1 to 3.4).

x is the table of n real records over k cells, z that of `records` synthetic ones; the prior alpha
is one number for every cell. Neighbours are tables of the same public n with one record replaced.

A loss of epsilon up to rounding (SLACK) is no violation: at the pure alpha the worst loss is
epsilon itself.
"""

import math

SLACK = 1e-12


def pure_alpha(records, epsilon):
    """The smallest prior with pure epsilon-DP, records/(e^epsilon - 1): m, not n (3.2)."""
    return records / math.expm1(epsilon)


def log_tail(first, records, a, b):
    """log Pr[Z >= first], Z ~ BetaBinomial(records, a, b), by summing the pmf upwards.

    pmf(z + 1)/pmf(z) = (records - z)(a + z) / ((z + 1)(b + records - z - 1)). For b >= 1 the pmf
    falls for good once it falls (log-concave for a >= 1, falling from 0 for a < 1), so the sum may
    stop when even `records` more terms like the last would be below 1e-20 of it.
    """
    if first > records:
        return -math.inf
    first = max(first, 0)
    log_pmf = (
        math.lgamma(records + 1)
        - math.lgamma(first + 1)
        - math.lgamma(records - first + 1)
        + math.lgamma(a + first)
        + math.lgamma(b + records - first)
        - math.lgamma(a + b + records)
        + math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
    )
    peak, total = log_pmf, 1.0  # the sum is total * e^peak
    for z in range(first, records):
        ratio = (records - z) * (a + z) / ((z + 1) * (b + records - z - 1))
        log_pmf += math.log(ratio)
        if log_pmf > peak:
            total *= math.exp(peak - log_pmf)
            peak = log_pmf
        term = math.exp(log_pmf - peak)
        total += term
        if b >= 1 and ratio < 1 and records * term < 1e-20 * total:
            break
    return peak + math.log(total)


def violation_tail(count, alpha, k, n, records, epsilon):
    """T(x) of 3.3: Pr[a cell of x real records gets so many synthetic ones that the loss may
    exceed epsilon], that is more than (e^epsilon - 1)(alpha + max(x - 1, 0)).
    """
    limit = math.expm1(epsilon) * (alpha + max(count - 1, 0))
    first = math.floor(limit * (1 + SLACK)) + 1
    rest = alpha * (k - 1) + n - count
    return math.exp(log_tail(first, records, alpha + count, rest))


def delta_bound(alpha, k, n, records, epsilon):
    """k T(0) + n * max over x in 1..n of (T(x) - T(0))^+ / x, not cut at 1 (3.3)."""
    if k < 2:
        raise ValueError("need at least two cells")
    empty = violation_tail(0, alpha, k, n, records, epsilon)
    steepest = 0.0
    for count in range(1, n + 1):
        tail = violation_tail(count, alpha, k, n, records, epsilon)
        steepest = max(steepest, (tail - empty) / count)
    return k * empty + n * steepest
