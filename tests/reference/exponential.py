"""The exponential mechanism's law, utility metrics (fan2015 3.1, 6.3)."""

import math
from fractions import Fraction

FLOOR = 0.01  # what counts <= 0 become before KL


def probabilities(scores, epsilon, sensitivity, monotone=False):
    """Pr[i] ~ exp(epsilon u_i/(2 Delta)), epsilon-DP if no score moves by more than Delta.

    `monotone`: without the 2, if one more user moves no score down, or no score up.
    """
    if not (epsilon > 0 and sensitivity > 0):
        raise ValueError("epsilon and sensitivity must be positive")
    rate = epsilon / sensitivity if monotone else epsilon / (2 * sensitivity)
    best = max(scores)
    weights = [math.exp(rate * (score - best)) for score in scores]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def distribution(counts):
    """Counts <= 0 become 0.01, then all are divided by their sum. Counts in (0, 0.01) stay."""
    floored = [count if count > 0 else FLOOR for count in counts]
    total = math.fsum(floored)
    return [count / total for count in floored]


def kl(first, second):
    """KL(first || second) = sum p log(p/q) in nats, both treated by `distribution`."""
    pairs = zip(distribution(first), distribution(second), strict=True)
    return math.fsum(p * math.log(p / q) for p, q in pairs)


def kl_both(released, truth):
    """(KL(released || truth), KL(truth || released)); the paper's wording fits either."""
    return kl(released, truth), kl(truth, released)


def top(counts, k):
    """The k positions of the highest counts; ties to the first position."""
    return sorted(range(len(counts)), key=lambda place: (-counts[place], place))[:k]


def precision(released, truth, k):
    """Share of the released top k that is in the true top k, ties to the first position."""
    k = min(k, len(truth))
    return Fraction(len(set(top(released, k)) & set(top(truth, k))), k)


def membership(counts, k):
    """Pr[position is in the top k] if ties are broken at random."""
    threshold = sorted(counts, reverse=True)[k - 1]
    above = sum(1 for count in counts if count > threshold)
    level = sum(1 for count in counts if count == threshold)
    found = []
    for count in counts:
        if count > threshold:
            found.append(Fraction(1))
        elif count == threshold:
            found.append(Fraction(k - above, level))
        else:
            found.append(Fraction(0))
    return found


def expected_precision(released, truth, k):
    """The mean of `precision` if ties are broken at random, independently on both sides."""
    k = min(k, len(truth))
    pairs = zip(membership(released, k), membership(truth, k), strict=True)
    return sum((a * b for a, b in pairs), Fraction(0)) / k
