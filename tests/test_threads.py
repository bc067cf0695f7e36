"""What runs on several threads is what one thread computes."""

import numpy as np
import pytest

from workbench import DP, UNBOUNDED, Bound, Domain, Interactions, Ranges, SparseTable, Subsets
from workbench.compiled import limited_threads, on_threads, slices, thread_count
from workbench.data import interactions
from workbench.inference import consistency, tree_least_squares
from workbench.mechanisms import CountSketch
from workbench.queries import level_sizes


def test_threads_are_as_many_as_somebody_says(monkeypatch):
    monkeypatch.setenv("WORKBENCH_THREADS", "5")
    assert thread_count() == 5 and thread_count(2) == 2
    with limited_threads(3):
        assert thread_count() == 3 and thread_count(4) == 4
    for bad in ("0", "two", "-1"):
        monkeypatch.setenv("WORKBENCH_THREADS", bad)
        with pytest.raises(ValueError, match="WORKBENCH_THREADS"):
            thread_count()
    monkeypatch.delenv("WORKBENCH_THREADS")
    assert thread_count() >= 1
    for bad in (0, True, 1.5):
        with pytest.raises(ValueError, match="threads"):
            thread_count(bad)


def test_results_come_in_the_order_of_their_items():
    for threads in (1, 2, 9):
        assert on_threads(lambda x: x * x, range(20), threads) == [x * x for x in range(20)]
    assert [len(range(7)[part]) for part in slices(7, 3)] == [2, 2, 3]


@pytest.mark.parametrize("leaves, branching", [(4096, 2), (3001, 3)])
def test_a_consistent_tree_does_not_depend_on_threads(monkeypatch, leaves, branching):
    monkeypatch.setattr(consistency, "_NODES_FOR_THREADS", 8)
    monkeypatch.setattr(consistency, "_BLOCK", 30)
    rng = np.random.default_rng(0)
    sizes = level_sizes(leaves, branching)
    noisy = rng.normal(size=sum(sizes))
    trees = []
    for threads in (1, 2, 7):
        with limited_threads(threads):
            trees.append(tree_least_squares(noisy, branching).tobytes())
    assert len(set(trees)) == 1
    for bad in (0, len(noisy) // 3, len(noisy) - 1):
        damaged = np.where(np.arange(len(noisy)) == bad, -np.inf, noisy)
        with pytest.raises(ValueError, match=rf"noisy\[{bad}\] = -inf"):
            tree_least_squares(damaged, branching)


@pytest.mark.parametrize("how", ["bounded", "top_scored"])
def test_a_sample_of_users_records_does_not_depend_on_threads(monkeypatch, how):
    monkeypatch.setattr(interactions, "_RECORDS_FOR_THREADS", 8)
    monkeypatch.setattr(interactions, "cut_key", lambda *_: bytes(32))
    rng = np.random.default_rng(0)
    users = np.minimum(rng.zipf(1.4, 3000), 400)
    items = rng.integers(0, 30, 3000)
    data = Interactions.from_codes(
        Domain(("item", "context"), (30, 1)), users, items, np.zeros(3000, int), UNBOUNDED
    )
    arguments = (3,) if how == "bounded" else (3, rng.integers(0, 9, 30))
    samples = []
    for threads in (1, 2, 7):
        with limited_threads(threads):
            sample = getattr(data, how)(*arguments)
            samples.append((sample.users.tolist(), sample.items.tolist()))
    assert samples[0] == samples[1] == samples[2]
    assert 3 <= len(samples[0][0]) < 3000


def test_answers_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr("workbench.compiled.PLACES_FOR_THREADS", 8)
    rng = np.random.default_rng(0)
    domain = Domain(("x",), (10**6,))
    table = SparseTable.from_keys(
        domain, rng.integers(0, 10**6, 500), np.ones(500, int), Bound()
    )
    sketch = CountSketch.example(DP(1.0))(table, rng).estimate
    lo = rng.integers(0, 10**6 - 2000, 300)
    workloads = [
        Ranges(lo, lo + 1),
        Ranges(lo, lo + rng.integers(0, 2000, 300)),
        Subsets.of(rng.choice(table.keys, (40, 3))),
    ]
    for workload in workloads:
        answers = []
        for count in (1, 2, 7):
            with limited_threads(count):
                answers.append((table.answer(workload), sketch.answer(workload)))
        assert answers[0][0].any() and answers[0][1].any()
        for other in answers[1:]:
            np.testing.assert_array_equal(answers[0], other)
