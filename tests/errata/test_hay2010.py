"""Hay et al. 2010: what is printed wrongly or ambiguously. Seeds are fixed: chance fails no test."""

from itertools import combinations
from math import sqrt

import numpy as np
import pytest

from workbench import DP, Bound, Domain, Ranges, SparseTable
from workbench.mechanisms import HierarchicalHistogram, UnattributedHistogram


def minimal_cover(lo, hi, k, width):
    """How many nodes of a k-ary tree over `width` leaves make up the leaves lo … hi − 1."""
    if lo >= hi:
        return 0
    if (lo, hi) == (0, width):
        return 1
    part = width // k
    return sum(
        minimal_cover(max(lo - at, 0), min(hi - at, part), k, part)
        for at in range(0, width, part)
    )


def test_degrees(tmp_path):
    nodes = range(4)
    edges = list(combinations(nodes, 2))
    moved = set()
    for chosen in range(2 ** len(edges)):
        graph = [e for i, e in enumerate(edges) if chosen >> i & 1]
        degrees = sorted(sum(node in e for e in graph) for node in nodes)
        for i in range(len(graph)):
            rest = graph[:i] + graph[i + 1 :]
            fewer = sorted(sum(node in e for e in rest) for node in nodes)
            moved.add(sum(abs(a - b) for a, b in zip(degrees, fewer, strict=True)))
    assert moved == {2}
    edges = np.array([0, 1, 1, 2])
    table = SparseTable.from_keys(
        Domain(("node",), (4,)), edges, np.ones_like(edges), Bound(2, 1)
    )
    assert table.bound.l1 == 2
    release = UnattributedHistogram(DP(1.0), estimator="noisy", noise="geometric")(
        table, np.random.default_rng(0)
    )
    assert release.privacy == DP(1.0)  # for one friendship


@pytest.mark.parametrize(("k", "levels"), [(2, 5), (3, 4), (4, 3)])
def test_nodes_of_a_range(k, levels):
    leaves = k ** (levels - 1)
    ends = list(combinations(range(leaves + 1), 2))
    nodes = [minimal_cover(lo, hi, k, leaves) for lo, hi in ends]
    worst = max(nodes)
    assert worst == 2 * (k - 1) * (levels - 1) - k  # as the proof of Theorem 4(iv) counts them
    assert worst == minimal_cover(1, leaves - 1, k, leaves)
    if k > 2:
        assert worst > 2 * levels
    domain = Domain(("cell",), (leaves,))
    tree = HierarchicalHistogram(DP(1.0), branching=k, consistent=False, nonnegative=False)
    table = SparseTable.from_dense(domain, np.zeros(leaves, int), Bound(1, 1))
    estimate = tree(table, np.random.default_rng(0)).estimate
    lo, hi = np.array(ends).T
    _, errors = estimate.answer(Ranges(lo, hi), error=True)
    assert errors == pytest.approx(np.sqrt(np.array(nodes) * estimate.variance))


def least_squares(levels):
    """Theorem 3 for a binary tree, level by level from the root down; trees are the last axis."""
    z = [levels[-1]]
    for height, own in enumerate(levels[-2::-1], start=2):
        pairs = z[0][0::2] + z[0][1::2]
        weight = (2**height - 2 ** (height - 1)) / (2**height - 1)
        z.insert(0, weight * own + (1 - weight) * pairs)
    consistent = [z[0]]
    for below in z[1:]:
        excess = consistent[-1] - below[0::2] - below[1::2]
        consistent.append(below + np.repeat(excess / 2, 2, axis=0))
    return consistent


def zeroed(levels):
    """Where a node is not positive, it and all below it become 0."""
    done = [np.maximum(levels[0], 0)]
    for level in levels[1:]:
        parents = np.repeat(done[-1], 2, axis=0)
        done.append(np.where(parents > 0, np.maximum(level, 0), 0))
    return done


def test_zeroed_tree():
    height = 9
    rng = np.random.default_rng(0)
    trees = 200
    truth = [np.zeros((2**depth, trees)) for depth in range(height)]
    truth[-1][::16] = 20.0
    for depth in range(height - 2, -1, -1):
        truth[depth] = truth[depth + 1][0::2] + truth[depth + 1][1::2]
    noisy = [t + rng.laplace(0, height, t.shape) for t in truth]
    consistent = least_squares(noisy)
    for level, below in zip(consistent, consistent[1:], strict=False):
        assert level == pytest.approx(below[0::2] + below[1::2], abs=1e-6)
    cut = zeroed(consistent)

    def error(answers):
        return ((answers - truth[1][0]) ** 2).mean()

    half = 2 ** (height - 2)  # leaves of the first child of the root
    by_nodes = error(cut[1][0])
    by_leaves = error(cut[-1][:half].sum(axis=0))
    noisy_nodes = error(noisy[1][0])
    assert by_nodes < noisy_nodes
    assert by_leaves > 5 * noisy_nodes  # biased up: the negative errors are gone
    domain = Domain(("cell",), (2 ** (height - 1),))
    table = SparseTable.from_dense(domain, truth[-1][:, 0].astype(int), Bound(1, 1))
    asked = Ranges([0], [half])
    ours = {}
    for ranges in ("nodes", "leaves"):
        mechanism = HierarchicalHistogram(DP(1.0), ranges=ranges)
        answers = [
            mechanism(table, np.random.default_rng(k)).answer(asked)[0] for k in range(60)
        ]
        ours[ranges] = np.mean(answers), np.std(answers) / sqrt(len(answers))
    for ranges, theirs in (("nodes", cut[1][0]), ("leaves", cut[-1][:half].sum(axis=0))):
        mean, error_of_mean = ours[ranges]
        both = sqrt(error_of_mean**2 + theirs.var() / trees)
        assert abs(mean - theirs.mean()) < 5 * both
