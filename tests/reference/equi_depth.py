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

With about 1/accuracy buckets, as
many times more noise for each, and errors that add up over the buckets of a range, N needs to be of
order log n (log log n + log 1/(accuracy delta))/(alpha accuracy^3): 1/accuracy^2 times more than
for H~, and an absolute error that grows as N^(2/3).
"""

from . import tree_inference


def steps(n):
    """Comparisons of one binary search, ceil(log2 n)."""
    return tree_inference.levels(n, 2) - 1


def release(counts, depth, buckets, alpha, rng):
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


def answer(ends, depth, lo, hi):
    """`depth` times the covered part of each bucket."""
    total = 0.0
    for left, right in zip(ends[:-1], ends[1:], strict=True):
        met = max(0, min(hi, right) - max(lo, left))
        total += depth * met / (right - left)
    return total
