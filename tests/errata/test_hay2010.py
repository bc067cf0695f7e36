"""Hay et al. 2010: what is printed wrongly or ambiguously. Seeds are fixed: chance fails no test."""

from itertools import combinations
from math import sqrt

import numpy as np
import pytest

from tests.reference.tree_inference import build, cover, levels, theorem3, zeroed
from workbench import DP, Bound, Domain, Ranges, SparseTable
from workbench.mechanisms import HierarchicalHistogram, UnattributedHistogram


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


@pytest.mark.parametrize(("k", "height"), [(2, 5), (3, 4), (4, 3)])
def test_nodes_of_a_range(k, height):
    leaves = k ** (height - 1)
    ends = list(combinations(range(leaves + 1), 2))
    nodes = [len(cover(lo, hi, leaves, k)) for lo, hi in ends]
    worst = max(nodes)
    assert worst == 2 * (k - 1) * (height - 1) - k  # as the proof of Theorem 4(iv) counts them
    assert worst == len(cover(1, leaves - 1, leaves, k))
    if k > 2:
        assert worst > 2 * height
    domain = Domain(("cell",), (leaves,))
    tree = HierarchicalHistogram(DP(1.0), branching=k, consistent=False, nonnegative=False)
    table = SparseTable.from_dense(domain, np.zeros(leaves, int), Bound(1, 1))
    estimate = tree(table, np.random.default_rng(0)).estimate
    lo, hi = np.array(ends).T
    _, errors = estimate.answer(Ranges(lo, hi), error=True)
    assert errors == pytest.approx(np.sqrt(np.array(nodes) * estimate.variance))


def test_zeroed_tree():
    leaves, half = 256, 128  # all, and those below the first child of the root, node 1
    height = levels(leaves, 2)
    rng = np.random.default_rng(0)
    counts = np.zeros(leaves, int)
    counts[::16] = 20
    truth = np.array(build(counts.tolist(), 2))
    noisy = truth + rng.laplace(0, height, (200, len(truth)))
    cut = []
    for tree in noisy.tolist():
        consistent = theorem3(tree, 2)
        assert consistent[0] == pytest.approx(sum(consistent[-leaves:]))
        cut.append(zeroed(consistent, 2))
    cut = np.array(cut)
    theirs = {"nodes": cut[:, 1], "leaves": cut[:, -leaves:][:, :half].sum(axis=1)}

    def error(answers):
        return ((answers - truth[1]) ** 2).mean()

    assert error(theirs["nodes"]) < error(noisy[:, 1])
    assert error(theirs["leaves"]) > 5 * error(noisy[:, 1])  # biased up: no negative errors
    table = SparseTable.from_dense(Domain(("cell",), (leaves,)), counts, Bound(1, 1))
    asked = Ranges([0], [half])
    for ranges, answers in theirs.items():
        mechanism = HierarchicalHistogram(DP(1.0), ranges=ranges)
        ours = [mechanism(table, np.random.default_rng(k)).answer(asked)[0] for k in range(60)]
        both = sqrt(np.var(ours) / len(ours) + answers.var() / len(answers))
        assert abs(np.mean(ours) - answers.mean()) < 5 * both
