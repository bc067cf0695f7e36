"""The comparison with the equi-depth histogram of Blum et al. (hay2010 section 6, Appendix E).

What Appendix E determines. `alpha` is the privacy parameter, N the number of records, n the number
of cells. A release is (accuracy, delta)-useful if with probability at least 1 - delta every range
query has absolute error at most accuracy * N. For the binary H~: a range takes at most 2l
subtrees, each with Laplace(l/alpha), their sum is bounded by a concentration inequality for sums
of Laplace variables, and a union bound over all ranges follows. H~'s bound on the absolute error
does not depend on N, so the N it needs goes as 1/accuracy. The other histogram is equi-depth, made
by binary search; its absolute error grows with N.

What it leaves open (the copy at hand has lost its formulas, and the paper describes no more of the
algorithm than that): the depth and number of the buckets, the sequence of comparisons and how alpha
is shared among them, whether N is public, what is published for the last bucket, how a range that
cuts a bucket is answered, every constant, and the power of the accuracy. What stands here is the
plainest procedure of that description:

* each bucket's right end is found by binary search for the first cell at which the noisy count
  from the left end reaches `depth`, a public number;
* at most `buckets` searches of ceil(log2 n) noisy counts each, all by sequential composition, as a
  record may be counted in the probes of many searches: Laplace(buckets * ceil(log2 n)/alpha) each
  (add/remove);
* if the end of the domain is not reached by then, what is left is one more bucket;
* only the ends are published. Each bucket stands for `depth` records, evenly over its cells.

For this procedure the bounds below hold with the constants given. With about 1/accuracy buckets, as
many times more noise for each, and errors that add up over the buckets of a range, N needs to be of
order log n (log log n + log 1/(accuracy delta))/(alpha accuracy^3): 1/accuracy^2 times more than
for H~, and an absolute error that grows as N^(2/3).
"""

import math
from collections.abc import Callable, Sequence

from numpy.random import Generator

from . import tree_inference


def ranges(n: int) -> list[tuple[int, int]]:
    """Every non-empty [lo, hi)."""
    return [(lo, hi) for lo in range(n) for hi in range(lo + 1, n + 1)]


def worst_error(counts: Sequence[int], answer: Callable[[int, int], float]) -> float:
    """The largest absolute error over all ranges."""
    worst = 0.0
    for lo, hi in ranges(len(counts)):
        worst = max(worst, abs(answer(lo, hi) - sum(counts[lo:hi])))
    return worst


def accurate(
    counts: Sequence[int], answer: Callable[[int, int], float], accuracy: float
) -> bool:
    """Every range within accuracy * N: what must have probability 1 - delta or more."""
    return worst_error(counts, answer) <= accuracy * sum(counts)


# H~


def laplace_sum_bound(scale: float, terms: int, delta: float) -> float:
    """What |sum of independent Laplace(scale)| exceeds with probability at most delta.

    E exp(tX) = 1/(1 - t^2 b^2) <= exp(2 t^2 b^2) for tb <= 1/sqrt 2. With nu^2 >= terms * b^2 and
    t = x/(4 nu^2), Pr[sum > x] <= exp(-x^2/(8 nu^2)); that is delta/2 for
    x = nu sqrt(8 ln(2/delta)), and tb <= 1/sqrt 2 for nu >= b sqrt(ln(2/delta)).
    """
    log = math.log(2 / delta)
    nu = scale * math.sqrt(max(terms, log))
    return nu * math.sqrt(8 * log)


def hierarchical_error(n: int, delta: float, alpha: float) -> float:
    """Absolute error of every range of the binary H~, with probability 1 - delta: 2l terms of
    Laplace(l/alpha), and delta shared by the n(n + 1)/2 ranges.
    """
    height = tree_inference.levels(n, 2)
    share = delta / (n * (n + 1) / 2)
    return laplace_sum_bound(height / alpha, 2 * height, share)


def hierarchical_size(n: int, accuracy: float, delta: float, alpha: float) -> float:
    """The N from which `hierarchical_error` is at most accuracy * N."""
    return hierarchical_error(n, delta, alpha) / accuracy


# Equi-depth


def steps(n: int) -> int:
    """Comparisons of one binary search, ceil(log2 n)."""
    return tree_inference.levels(n, 2) - 1


def release(
    counts: Sequence[int], depth: float, buckets: int, alpha: float, rng: Generator
) -> list[int]:
    """The buckets' ends, 0 first and n last."""
    n = len(counts)
    scale = buckets * steps(n) / alpha
    ends = [0]
    while ends[-1] < n and len(ends) <= buckets:
        left = ends[-1]
        low, high = left + 1, n
        while low < high:
            middle = (low + high) // 2
            noisy = sum(counts[left:middle]) + float(rng.laplace(0, scale))
            if noisy >= depth:
                high = middle
            else:
                low = middle + 1
        ends.append(low)
    if ends[-1] < n:
        ends.append(n)
    return ends


def answer(ends: Sequence[int], depth: float, lo: int, hi: int) -> float:
    """`depth` times the covered part of each bucket."""
    total = 0.0
    for left, right in zip(ends[:-1], ends[1:], strict=True):
        met = max(0, min(hi, right) - max(lo, left))
        total += depth * met / (right - left)
    return total


def noise_bound(n: int, buckets: int, delta: float, alpha: float) -> float:
    """t: with probability 1 - delta, no noisy count is further than this from the true one."""
    comparisons = buckets * steps(n)
    return comparisons / alpha * math.log(comparisons / delta)


def error_bound(
    n: int, depth: float, buckets: int, delta: float, alpha: float, heaviest: int
) -> float:
    """Absolute error of every range, with probability 1 - delta, if `buckets` searches reach n.

    Within `noise_bound` t a bucket has from depth - t to depth + t + heaviest records (the count up
    to its last cell, exclusive, is below depth + t), the last one any number up to that. So a full
    bucket errs by t + heaviest at most, the two cut ones and the last by depth + t + heaviest.
    """
    one = noise_bound(n, buckets, delta, alpha) + heaviest
    return buckets * one + 3 * (depth + one)


def plan(accuracy: float) -> tuple[float, int]:
    """(depth as a part of N, buckets) for `size`: accuracy/8 and 16/accuracy + 1."""
    return accuracy / 8, math.ceil(16 / accuracy) + 1


def size(n: int, accuracy: float, delta: float, alpha: float) -> float:
    """An N that is enough for `plan` to be (accuracy, delta)-useful, cells being light.

    3 depth = 3/8 accuracy N, so (buckets + 3) t <= 5/8 accuracy N is enough. Then t <= depth/2, and
    every bucket but the last has depth/2 = accuracy N/16 records or more: 16/accuracy + 1 of them
    reach n.
    """
    _, buckets = plan(accuracy)
    t = noise_bound(n, buckets, delta, alpha)
    return 8 * (buckets + 3) * t / (5 * accuracy)


def error_at_size(n: int, records: float, delta: float, alpha: float) -> float:
    """accuracy * N for the smallest accuracy with size(n, accuracy, ...) <= N, by bisection."""
    low, high = 1e-9, 1e9
    for _ in range(200):
        middle = math.sqrt(low * high)
        if size(n, middle, delta, alpha) <= records:
            high = middle
        else:
            low = middle
    return high * records
