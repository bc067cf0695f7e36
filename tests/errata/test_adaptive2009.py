""" "Synthetic Data via Differential Privacy" (2009): what is printed wrongly or ambiguously."""

from fractions import Fraction
from functools import cache
from itertools import chain, combinations
from math import ceil, exp, log, sqrt

import numpy as np
import pytest
from scipy.special import lambertw

from tests.reference import adaptive
from tests.reference.direct_synthesis import centre
from workbench import DP, Bound
from workbench.data import Records
from workbench.mechanisms import (
    BasicAdaptiveHistogram,
    DirectSynthesis,
    ImprovedAdaptiveHistogram,
)
from workbench.mechanisms.direct_synthesis import centred
from workbench.spaces import Prefixes, Quadtree


def continue_ratio(x, b, epsilon):
    """ln p(x + 1)/p(x), of p(x) = Pr[x + Laplace(1/ε) >= b], Equation 2."""
    return adaptive.log_ratios(x, epsilon, b, "laplace")[0]


def stop_ratio(x, b, epsilon):
    return adaptive.log_ratios(x, epsilon, b, "laplace")[1]


def test_a_call_that_stops():
    epsilon = 0.5
    b = 40
    large = 200
    one_call = (
        stop_ratio(large, b, epsilon) + epsilon
    )  # it stops; and a fresh count is returned
    assert one_call == pytest.approx(2 * epsilon)
    few = 0
    depth = 5
    path = depth * continue_ratio(few, b, epsilon)
    assert path == pytest.approx(depth * epsilon)
    assert (
        path + epsilon > depth * epsilon + 0.9 * epsilon
    )  # B decisions, and a count at the end
    rng = np.random.default_rng(0)
    count = 38
    noisy = count + rng.laplace(0, 1 / epsilon, 20_000)
    failed = noisy[noisy < b]
    fresh = count + rng.laplace(0, 1 / epsilon, len(failed))
    error = sqrt(2) / epsilon / sqrt(len(failed))
    assert failed.mean() < count - 20 * error  # "negatively biased" if what failed is returned
    assert abs(fresh.mean() - count) < 5 * error  # and not as Figure 1 is drawn
    tree = Quadtree(1, depth)
    records = Records.from_values(tree, np.full((10, 1), 0.3), Bound())
    release = BasicAdaptiveHistogram(DP(1.0), threshold=5, depth=depth)(
        records, np.random.default_rng(0)
    )
    assert release.privacy.epsilon == pytest.approx(1.0)
    assert len(release.ledger) == depth + 1  # levels of decisions, and the leaves


def test_threshold_that_ends():
    k = 16
    epsilon = 0.1

    def dies_out(b):
        """The chance that the tree below an empty node is finite, by its generating function."""
        splits = exp(-epsilon * b) / 2
        q = 0.0
        for _ in range(20_000):
            q = 1 - splits + splits * q**k
        return q

    between = log(12) / epsilon
    assert log(k / 2) / epsilon < between < log(k) / epsilon  # below what the paper asks for
    assert dies_out(between) == pytest.approx(1, abs=1e-12)
    assert dies_out(log(4) / epsilon) < 0.95
    tree = Quadtree(4, 12)
    epsilon_of_decisions = 0.1
    budget = DP(4 * epsilon_of_decisions)  # half for leaves, and structure costs twice
    ends = ImprovedAdaptiveHistogram(budget, between)
    assert k * ends.empty_split_probability(tree, 1) < 1
    never = ImprovedAdaptiveHistogram(budget, log(4) / epsilon)
    with pytest.raises(ValueError, match="threshold"):
        never.empty_split_probability(tree, 1)


def synthesise(records, count, prefix, depth, returns):
    """Figure 3, with exact counts; `returns` adds the two returns that Figure 13 has."""
    if count == 0:
        return []
    written = []
    if count == 1:
        written.append(prefix)
        if returns:
            return written
    if depth == 0:
        written += [prefix] * count
        if returns:
            return written
    if depth < -3:  # as printed it never ends
        return written
    for key in "01":
        below = [r[1:] for r in records if r[:1] == key]
        written += synthesise(below, len(below), prefix + key, depth - 1, returns)
    return written


def test_missing_returns():
    records = ["00000", "01010", "01111", "10000"]
    assert len(synthesise(records, 4, "", 2, returns=True)) == 4
    assert len(synthesise(records, 4, "", 2, returns=False)) > 4
    data = Records.from_values(Prefixes(depth=3), ["a", "ab", "abc", "b"], Bound())
    release = DirectSynthesis(DP(50.0), depth=3, records=4)(data, np.random.default_rng(0))
    assert release.to_frame()["count"].sum() == 4


def ours_centred(count, given, start):
    counts = centred(
        np.array([count]), np.array(given), np.array([len(given)]), np.array([start], np.uint64)
    )
    return counts.tolist()


def test_counts_that_are_not_whole():
    laplace = [Fraction(x) for x in np.random.default_rng(0).laplace(2, 3, 4)]
    assert sum(max(Fraction(0), x) for x in laplace) % 1  # a fraction that steps of one keep
    for start in range(4):
        whole = [round(x) for x in laplace]
        assert sum(centre(20, whole, start)) == 20
        assert centre(20, whole, start) == ours_centred(20, whole, start)


def test_scale_of_the_noise():
    maxdepth = 20
    epsilon = 1.0
    r = maxdepth / epsilon  # a standard deviation, as printed
    scale = r / sqrt(2)
    assert maxdepth * (1 / scale) == pytest.approx(
        sqrt(2) * epsilon
    )  # what a record then costs
    right = maxdepth / epsilon
    assert maxdepth * (1 / right) == pytest.approx(epsilon)
    drawn = np.random.default_rng(0).laplace(0, right, 100_000)
    assert drawn.std() == pytest.approx(sqrt(2) * r, rel=0.02)
    data = Records.from_values(Prefixes(depth=20), ["a", "b"], Bound())
    mechanism = DirectSynthesis(DP(epsilon), depth=maxdepth, records=2)
    release = mechanism(data, np.random.default_rng(0))
    assert release.privacy.epsilon == pytest.approx(epsilon)
    assert mechanism.budgets().counts == pytest.approx([epsilon / maxdepth] * maxdepth)


def worst_path(b, epsilon, step):
    """Σ ln p(x+1)/p(x) over counts that fall by `step` at every node, at its largest."""
    top = ceil(b + 60 / epsilon)
    return max(
        sum(continue_ratio(x, b, epsilon) for x in range(start, top, step))
        for start in range(step)
    )


def test_equal_parts():
    k = 16
    epsilon = 0.1
    b = 28
    t = ceil(b + log(2) / epsilon)
    assert worst_path(b, epsilon, t) < 2 * epsilon
    assert worst_path(b, epsilon, max(1, t // k)) > 10 * epsilon  # a child that loses t/k
    data = Records.from_values(Quadtree(1, 4), np.linspace(0, 0.99, 100)[:, None], Bound())
    mechanism = ImprovedAdaptiveHistogram(DP(1.0), threshold=5, strategy="uniform")
    release = mechanism(data, np.random.default_rng(0))
    assert release.privacy.epsilon == pytest.approx(1.0)


def subsets(things):
    return chain.from_iterable(combinations(things, n) for n in range(len(things) + 1))


def test_progressive():
    """No rule that removes one record of the largest child, of two of up to three, is stable."""
    left = frozenset("abc")
    right = frozenset("xyz")
    sets = [frozenset(s) for s in subsets(sorted(left | right))]

    def choices(records):
        sizes = len(records & left), len(records & right)
        largest = [
            part for part, size in zip((left, right), sizes, strict=True) if size == max(sizes)
        ]
        gone = frozenset().union(*largest) & records
        return [records - {r} for r in sorted(gone)] or [records]

    def neighbours(records):
        return [other for other in sets if len(records ^ other) == 1]

    order = sorted(sets, key=lambda s: (-len(s), sorted(s)))

    def assign(i, rule):
        if i == len(order):
            return True
        records = order[i]
        for what_is_left in choices(records):
            stable = all(
                len(what_is_left ^ rule[other]) <= 1
                for other in neighbours(records)
                if other in rule
            )
            if stable:
                rule[records] = what_is_left
                if assign(i + 1, rule):
                    return True
                del rule[records]
        return False

    assert not assign(0, {})
    skip = {s: s - set(sorted(s)[:1]) for s in sets}  # the first of a fixed order
    assert all(len(skip[s] ^ skip[o]) <= 1 for s in sets for o in neighbours(s))
    data = Records.from_values(Quadtree(1, 4), np.linspace(0, 0.99, 100)[:, None], Bound())
    mechanism = ImprovedAdaptiveHistogram(DP(1.0), threshold=5, strategy="progressive")
    release = mechanism(data, np.random.default_rng(0))
    assert release.privacy.epsilon == float("inf")


def test_error_of_a_level():
    """One child has all records, 37 are empty: the case that the paper calls the worst."""
    k = 38
    scale = 20.0
    count = 100_000
    runs = 2000
    rng = np.random.default_rng(0)
    truth = np.zeros(k, int)
    truth[0] = count
    noisy = truth + np.rint(rng.laplace(0, scale, (runs, k))).astype(int)
    turns = rng.integers(0, k, runs).astype(np.uint64)
    allotted = centred(np.full(runs, count), noisy.ravel(), np.full(runs, k), turns)
    errors = count - allotted.reshape(runs, k)[:, 0]
    allowed = sqrt(2) * scale  # R, at depth 1
    assert errors.mean() - 5 * errors.std() / sqrt(runs) > 1.3 * allowed
    lost = scale * lambertw((k - 1) / 2).real  # where (k − 1)/2·e^(−λ/b) = λ/b
    assert errors.mean() == pytest.approx(lost, rel=0.05)
    for row in range(3):
        steps = centre(count, noisy[row].tolist(), int(turns[row]))
        assert steps == allotted.reshape(runs, k)[row].tolist()


def test_two_ways_to_centre():
    assert centre(10, [25, 5], 0) == [10, 0]
    assert centre(10, [min(10, 25), 5], 0) == [7, 3]  # Figure 14, which cuts first
    assert ours_centred(10, [25, 5], 0) == [10, 0]  # as Figure 4
    assert centre(10, [9, 5, -4, 1], 0) == [7, 3, 0, 0]  # nothing to cut


@pytest.mark.parametrize(("epsilon", "b"), [(0.1, 28), (0.5, 10), (1.0, 3)])
def test_counts_of_the_leaves(epsilon, b):
    """The worst of all paths and of both directions, with a fresh count of the leaf, is within 2ε."""
    t = ceil(b + log(2) / epsilon)
    top = ceil(b + 60 / epsilon)

    @cache
    def above(x):
        """The most that nodes above a count of x can lose if a record is added: theirs is >= x + t."""
        return max(
            (continue_ratio(y, b, epsilon) + above(y) for y in range(x + t, top)), default=0.0
        )

    nodes = range(top)
    same_leaf = max(continue_ratio(x, b, epsilon) + above(x) for x in nodes)  # all is discarded
    added = max(above(x) - stop_ratio(x, b, epsilon) + epsilon for x in nodes)
    removed = max(stop_ratio(x, b, epsilon) + epsilon for x in nodes)  # what is above it gains
    assert same_leaf <= 2 * epsilon
    assert max(added, removed) <= 2 * epsilon + 1e-12
    assert removed == pytest.approx(2 * epsilon)
    assert same_leaf + epsilon > 2 * epsilon  # adding up parts that never meet would say more
    mechanism = ImprovedAdaptiveHistogram(DP(4 * epsilon), b)
    assert mechanism.budgets().structure == pytest.approx(2 * epsilon)
