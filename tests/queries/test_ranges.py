"""Ranges, boxes and random subsets of cells."""

import numpy as np
import pytest

from workbench import (
    Bound,
    Boxes,
    Domain,
    RandomRanges,
    RandomSubsets,
    Ranges,
    SparseTable,
    Subsets,
)
from workbench.queries import Shuffle
from workbench.value import read_only


def test_ranges_agree_with_loops():
    rng = np.random.default_rng(0)
    domain, dense = Domain(("x",), (97,)), rng.poisson(0.4, 97)
    table = SparseTable.from_dense(domain, dense, Bound())
    lo = rng.integers(0, 98, 200)
    hi = np.maximum(lo, rng.integers(0, 98, 200))
    assert table.answer(Ranges(lo, hi)).tolist() == [
        dense[a:b].sum() for a, b in zip(lo, hi, strict=True)
    ]


def test_a_shuffle_is_a_permutation_and_looks_uniform():
    """Seeded: never by chance; sees a mean place that is off by 1.3 of 50."""
    for size in (1, 2, 3, 7, 64, 1000):
        assert sorted(Shuffle(size, 5)(np.arange(size))) == list(range(size))
    first = np.array([Shuffle(50, s)(np.arange(50)) for s in range(4000)])
    assert first.mean(axis=0) == pytest.approx(24.5, abs=1.3)
    together = ((first[:, 0] < 25) & (first[:, 1] < 25)).mean()
    assert together == pytest.approx(25 * 24 / (50 * 49), abs=0.04)


def test_random_subsets_are_subsets_of_their_size():
    """Seeded: never by chance; sees a share that is off by 0.02."""
    domain = Domain(("x",), (1000,))
    table = SparseTable.from_dense(domain, np.ones(1000, int), Bound())
    recipe = RandomSubsets(137, 20, seed=3)
    assert (
        table.answer(recipe).tolist()
        == [137.0] * 20
        == recipe.on(domain).cells(domain).tolist()
    )
    lower = SparseTable.from_keys(domain, np.arange(500), np.ones(500, int), Bound())
    share = (
        np.concatenate([lower.answer(RandomSubsets(137, 20, seed=s)) for s in range(40)]) / 137
    )
    assert share.mean() == pytest.approx(0.5, abs=0.02) and 0.02 < share.std() < 0.07


@pytest.mark.parametrize("n", [1, 60, 126, 500, 1000])
def test_random_subsets_sum_what_they_hold_and_forget_what_is_gone(n):
    """Few keys are sorted, many are put in their places; either is kept while its arrays live."""
    from workbench.queries import ranges as shuffle

    domain, rng = Domain(("x",), (1000,)), np.random.default_rng(n)
    loose = np.sort(rng.choice(1000, n, replace=False)), rng.normal(size=n)
    before = len(shuffle._cache)
    RandomSubsets(37, 20).on(domain).sums(domain, *loose)
    assert len(shuffle._cache) == before, "what may still change is not kept"
    keys, values = map(read_only, loose)
    for size in (37, 800):
        subsets = RandomSubsets(size, 20, seed=2).on(domain)
        place = subsets.shuffle(keys)
        held = zip(subsets.ranges.lo, subsets.ranges.hi, strict=True)
        slow = [values[(lo <= place) & (place < hi)].sum() for lo, hi in held]
        np.testing.assert_allclose(subsets.sums(domain, keys, values), slow, atol=1e-9)
    assert len(shuffle._cache) == before + 1, "both sizes share one shuffled order"
    del keys
    assert len(shuffle._cache) == before


def test_recipes_draw_the_same_everywhere_and_fit_or_refuse():
    domain = Domain(("x",), (100,))
    a, b = (RandomRanges(10, 50, seed=1).on(domain) for _ in range(2))
    assert (a.lo == b.lo).all() and a.lo.min() >= 0 and a.hi.max() <= 100
    for recipe in (RandomRanges(101), RandomSubsets(101)):
        with pytest.raises(ValueError, match="101"):
            recipe.on(domain)
    assert (RandomRanges(100).on(domain).lo == 0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda d: Ranges([3], [2]),
        lambda d: Ranges([-1], [2]),
        lambda d: Ranges([0, 1], [2]),
        lambda d: Ranges([0], [10]).on(d),
        lambda d: Subsets.of([[9]]).on(d),
        lambda d: Subsets.of([[-1]]).on(d),
        lambda d: Boxes([[0]], [[10]]).on(d),
        lambda d: Boxes([[2]], [[1]]),
        lambda d: Boxes([0, 0, 0], [0, 199, 23]),  # meant as codes 0, 0 … 199 and 0 … 23
        lambda d: RandomSubsets(5).on(Domain(("y",), (99,))).on(d),
    ],
)
def test_queries_that_do_not_fit_are_refused(make):
    with pytest.raises(ValueError, match="range|Range|subset|box|Box|fit"):
        make(Domain(("x",), (9,)))


def test_the_text_of_long_workloads_tells_them_apart():
    lo = np.arange(3000)
    hi = lo + 1
    hi[1500] += 1
    texts = {
        repr(w) for w in (Ranges(lo, lo + 1), Ranges(lo, hi), Boxes(lo[:, None], hi[:, None]))
    }
    assert len(texts) == 3 and repr(Ranges(lo, hi)) in texts
