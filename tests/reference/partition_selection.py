"""Values that nobody has listed: which of them are released.

Floats and plain loops. A user is a set of values. Noise is continuous, as in the sources.
"""

import math
from statistics import NormalDist

NORMAL = NormalDist()


def optimal_probabilities(epsilon, delta, values_per_user, most):
    """pi(0), ..., pi(most) of the optimal rule (3a), by its recurrence."""
    step, share = epsilon / values_per_user, delta / values_per_user
    found = [0.0]
    while len(found) <= most:
        before = found[-1]
        rises = math.exp(step) * before + share
        falls = 1 - math.exp(-step) * (1 - before - share)
        found.append(min(rises, falls, 1.0))
    return found


def last_rising(epsilon, delta, values_per_user):
    """n_1, up to which pi rises by e^s (3a, closed form)."""
    step, share = epsilon / values_per_user, delta / values_per_user
    down = math.exp(-step)
    ratio = (1 + down * (2 * share - 1)) / (share * (1 + down))
    return 1 + math.floor(math.log(ratio) / step)


def closed_probability(epsilon, delta, values_per_user, users):
    """pi(users) in closed form (3a)."""
    step, share = epsilon / values_per_user, delta / values_per_user
    last = last_rising(epsilon, delta, values_per_user)
    rising = share * (math.exp(min(users, last) * step) - 1) / (math.exp(step) - 1)
    beyond = users - last
    if beyond <= 0:
        return rising
    added = sum(math.exp(-i * step) for i in range(1, beyond + 1))
    return min(1.0, 1 + math.exp(-beyond * step) * (rising - 1) + share * added)


def gaussian_delta(epsilon, shift):
    """delta of a Gaussian that is moved by `shift` standard deviations."""
    return NORMAL.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * NORMAL.cdf(
        -shift / 2 - epsilon / shift
    )


def largest_shift(epsilon, delta):
    """mu(epsilon, delta), by bisection."""
    low, high = 0.0, 1.0
    while gaussian_delta(epsilon, high) < delta:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if gaussian_delta(epsilon, middle) < delta:
            low = middle
        else:
            high = middle
    return low


def weighted_threshold(sigma, delta, values_per_user):
    """T for a failure of delta (3b): a user of t values adds 1/sqrt(t) to each."""
    cuts = []
    for t in range(1, values_per_user + 1):
        # (1 - delta)^(1/t), from its complement, which does not cancel
        missed = -math.expm1(math.log1p(-delta) / t)
        cuts.append(1 / math.sqrt(t) - sigma * NORMAL.inv_cdf(missed))
    return max(cuts)


def weights(users):
    """Weight of each value: every user of t values adds 1/sqrt(t)."""
    found = {}
    for values in users:
        for x in values:
            found[x] = found.get(x, 0.0) + 1 / math.sqrt(len(values))
    return found


def counts(users):
    """Number of users of each value."""
    found = {}
    for values in users:
        for x in values:
            found[x] = found.get(x, 0) + 1
    return found
