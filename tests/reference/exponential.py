"""The exponential mechanism's law, pairs of items, utility metrics (fan2015 3.1, 6.3)."""

# ruff: noqa: E741  (l is the paper's letter)

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction

FLOOR = 0.01  # what counts <= 0 become before KL
PAIRS = ("users", "records", "directed")


# Exponential mechanism


def probabilities(
    scores: Sequence[float], epsilon: float, sensitivity: float, monotone: bool = False
) -> list[float]:
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


def log_probabilities(
    scores: Sequence[float], epsilon: float, sensitivity: float, monotone: bool = False
) -> list[float]:
    """Their logarithms, which do not underflow."""
    rate = epsilon / sensitivity if monotone else epsilon / (2 * sensitivity)
    best = max(scores)
    total = math.fsum(math.exp(rate * (score - best)) for score in scores)
    return [rate * (score - best) - math.log(total) for score in scores]


def worst_loss(
    first: Sequence[float],
    second: Sequence[float],
    epsilon: float,
    sensitivity: float,
    monotone: bool = False,
) -> float:
    """max |log Pr/Pr'| of two neighbours' scores."""
    here = log_probabilities(first, epsilon, sensitivity, monotone)
    there = log_probabilities(second, epsilon, sensitivity, monotone)
    return max(abs(a - b) for a, b in zip(here, there, strict=True))


# Item-item edges


def edge_item_pairs(
    records: Mapping[Hashable, Sequence[Hashable]], counting: str
) -> dict[tuple, int]:
    """`records` is user -> items, one entry a record; items must be orderable.

    "users": edge {i, j}, i < j: users who have both.
    "records": edge {i, j}, i < j: pairs of one user's records, one of i and one of j.
    "directed": edge (i, j), i != j: records of j by users who have i, the paper's words ("the
    number of times that Vj is purchased by users who also purchase Vi").
    Only non-zero edges appear.
    """
    if counting not in PAIRS:
        raise ValueError(f"counting must be one of {PAIRS}")
    counts: dict[tuple, int] = {}
    for mine in records.values():
        if counting == "directed":
            for i in set(mine):
                for j in mine:
                    if j != i:
                        counts[i, j] = counts.get((i, j), 0) + 1
        elif counting == "records":
            for a, b in itertools.combinations(mine, 2):
                if a != b:
                    edge = (min(a, b), max(a, b))
                    counts[edge] = counts.get(edge, 0) + 1
        else:
            for edge in itertools.combinations(sorted(set(mine)), 2):
                counts[edge] = counts.get(edge, 0) + 1
    return counts


def contents(l: int) -> Iterator[tuple[int, ...]]:
    """Every multiset of 0 to l records over l items: more items cannot be met."""
    for size in range(l + 1):
        yield from itertools.combinations_with_replacement(range(l), size)


def pair_sensitivity(l: int, counting: str, distinct: bool = False) -> int:
    """Largest L1 of one user's edges over every content of at most l records.

    `distinct`: no item twice. The counts are sums over users, so that is the sensitivity.
    """
    worst = 0
    for mine in contents(l):
        if distinct and len(set(mine)) < len(mine):
            continue
        worst = max(worst, sum(edge_item_pairs({0: mine}, counting).values()))
    return worst


def largest_pair(l: int, counting: str) -> int:
    """Largest change of a single edge by one user of at most l records."""
    worst = 0
    for mine in contents(l):
        worst = max([worst, *edge_item_pairs({0: mine}, counting).values()])
    return worst


# Metrics


def distribution(counts: Sequence[float]) -> list[float]:
    """Counts <= 0 become 0.01, then all are divided by their sum. Counts in (0, 0.01) stay."""
    floored = [count if count > 0 else FLOOR for count in counts]
    total = math.fsum(floored)
    return [count / total for count in floored]


def kl(first: Sequence[float], second: Sequence[float]) -> float:
    """KL(first || second) = sum p log(p/q) in nats, both treated by `distribution`."""
    pairs = zip(distribution(first), distribution(second), strict=True)
    return math.fsum(p * math.log(p / q) for p, q in pairs)


def kl_both(released: Sequence[float], truth: Sequence[float]) -> tuple[float, float]:
    """(KL(released || truth), KL(truth || released)); the paper's wording fits either."""
    return kl(released, truth), kl(truth, released)


def top(counts: Sequence[float], k: int) -> list[int]:
    """The k positions of the highest counts; ties to the first position."""
    return sorted(range(len(counts)), key=lambda place: (-counts[place], place))[:k]


def precision(released: Sequence[float], truth: Sequence[float], k: int) -> Fraction:
    """Share of the released top k that is in the true top k, ties to the first position."""
    k = min(k, len(truth))
    return Fraction(len(set(top(released, k)) & set(top(truth, k))), k)


def membership(counts: Sequence[float], k: int) -> list[Fraction]:
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


def expected_precision(released: Sequence[float], truth: Sequence[float], k: int) -> Fraction:
    """The mean of `precision` if ties are broken at random, independently on both sides."""
    k = min(k, len(truth))
    pairs = zip(membership(released, k), membership(truth, k), strict=True)
    return sum((a * b for a, b in pairs), Fraction(0)) / k


def lenient_precision(released: Sequence[float], truth: Sequence[float], k: int) -> Fraction:
    """A released item is right if its true count is no lower than the k-th true count; released
    ties are broken at random (expectation).
    """
    k = min(k, len(truth))
    threshold = sorted(truth, reverse=True)[k - 1]
    chances = zip(membership(released, k), truth, strict=True)
    return sum((a for a, count in chances if count >= threshold), Fraction(0)) / k


def average_precision(
    released: Sequence[Sequence[float]], truth: Sequence[Sequence[float]], k: int
) -> Fraction:
    """Edges: `precision` within each context (a row each), averaged over contexts."""
    each = [precision(a, b, k) for a, b in zip(released, truth, strict=True)]
    return sum(each, Fraction(0)) / len(each)
