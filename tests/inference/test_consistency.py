"""Isotonic and tree inference, and the histograms that use them, against the literal references."""

from math import inf, nan

import numpy as np
import pytest

from tests.agreement import same_law, seeded
from tests.reference import isotonic as literal_isotonic
from tests.reference import privelet as literal_privelet
from tests.reference import tree_inference as literal
from workbench import DP, Bound, Domain, Ranges, SparseTable, Subsets
from workbench.estimates import HierarchicalSums, Histogram
from workbench.inference import (
    NonnegativeLeastSquares,
    Zeroed,
    isotonic,
    nonnegative_least_squares,
    round_to_counts,
    tree_least_squares,
    zero_negative_subtrees,
)
from workbench.inference.consistency import sizes_of_levels, tree_sums
from workbench.mechanisms import (
    HierarchicalHistogram,
    LaplaceHistogram,
    Privelet,
    UnattributedHistogram,
)
from workbench.queries import Haar, level_sizes

TREES = [(1, 2), (2, 2), (8, 2), (5, 2), (13, 3), (27, 3), (100, 4), (7, 5), (6, 2), (33, 2)]


def table(counts, bound=None):
    counts = np.asarray(counts)
    domain = Domain(("x",), (len(counts),))
    return SparseTable.from_keys(domain, np.arange(len(counts)), counts, bound or Bound())


def every_range(m):
    return Ranges(*np.array([(a, b) for a in range(m + 1) for b in range(a, m + 1)]).T)


@pytest.mark.parametrize(
    "noisy, nearest",
    [
        ([9, 10, 14], [9, 10, 14]),
        ([9, 14, 10], [9, 12, 12]),
        ([14, 9, 10, 15], [11, 11, 11, 15]),
        ([1, 2, 0, 11], [1, 1, 1, 11]),
        ([], []),
        ([3], [3]),
    ],
)
def test_isotonic_regression_of_the_papers_examples(noisy, nearest):
    np.testing.assert_allclose(isotonic(noisy), nearest)


def test_isotonic_regression_is_the_min_max_formula():
    rng = seeded()
    for n in (2, 3, 10, 40):
        for _ in range(10):
            noisy = rng.normal(0, 5, n).round(1).tolist()
            np.testing.assert_allclose(isotonic(noisy), literal_isotonic.lower(noisy))
            np.testing.assert_allclose(isotonic(noisy), literal_isotonic.upper(noisy))


def test_the_running_example():
    noisy = [13, 3, 11, 4, 1, 12, 1]
    np.testing.assert_allclose(tree_least_squares(noisy), [14, 3, 11, 3, 0, 11, 0], atol=1e-12)
    np.testing.assert_allclose(
        zero_negative_subtrees([5, 3, -1, 2, 1, 4, 4]), [5, 3, 0, 2, 1, 0, 0]
    )


@pytest.mark.parametrize("n, k", TREES)
def test_a_tree_is_the_generalised_least_squares_solution(n, k):
    rng = seeded(n)
    noisy = rng.normal(0, 10, literal.size(n, k))
    sizes = level_sizes(n, k)
    assert sizes_of_levels(noisy.size, k) == sizes and len(sizes) == literal.levels(n, k)
    np.testing.assert_allclose(
        tree_least_squares(noisy, k), literal.ols(noisy.tolist(), k), atol=1e-9
    )
    if k ** (len(sizes) - 1) == n:
        np.testing.assert_allclose(
            tree_least_squares(noisy, k), literal.theorem3(noisy.tolist(), k), atol=1e-9
        )


@pytest.mark.parametrize("n, k", TREES)
def test_what_is_made_of_a_tree_is_what_it_says(n, k):
    rng = seeded(n)
    noisy = rng.normal(0, 10, literal.size(n, k))
    close = tree_least_squares(noisy, k)
    np.testing.assert_allclose(tree_sums(close[-n:], k), close, atol=1e-9)
    np.testing.assert_allclose(
        zero_negative_subtrees(close, k), literal.zeroed(close.tolist(), k)
    )
    np.testing.assert_allclose(round_to_counts(close), literal.rounded(close.tolist()))
    leaves = nonnegative_least_squares(noisy, k)
    np.testing.assert_allclose(leaves, literal.nnls(noisy.tolist(), k), atol=1e-3)
    assert leaves.min() >= 0


@pytest.mark.parametrize("n, k", TREES)
def test_noisy_intervals_are_answered_from_the_minimal_cover(n, k):
    noisy = seeded(n).normal(0, 10, literal.size(n, k))
    asked = every_range(n) if n < 40 else Ranges([0, 3, 17, 40], [n, 97, 18, 41])
    estimate = HierarchicalSums(Domain(("x",), (n,)), k, noisy, 1.0)
    got, bars = estimate.answer(asked, error=True)
    for lo, hi, x, bar in zip(asked.lo.tolist(), asked.hi.tolist(), got, bars, strict=True):
        assert x == pytest.approx(literal.answer_cover(noisy.tolist(), lo, hi, k), abs=1e-9)
        assert round(bar**2) == len(literal.cover(lo, hi, n, k))
    frame = estimate.to_frame()
    assert len(frame) == len(noisy) and frame["hi"].max() == n


@pytest.mark.slow
@pytest.mark.parametrize("n, k", [(8, 2), (16, 4), (27, 3), (64, 2)])
@pytest.mark.parametrize("law", ["laplace", "geometric"])
def test_the_variance_of_consistent_ranges_is_exact(n, k, law):
    """Seeded: never by chance; sees a variance that is off by 15 %, a bias of five standard errors."""
    epsilon = 0.8
    mechanism = HierarchicalHistogram(DP(epsilon), k, nonnegative=False, noise=law)
    asked = Ranges([0, 0, 1, 3, n - 1], [n, n // 2, n - 1, 4, n])
    ours = mechanism.variance(Domain(("x",), (n,)), asked, 1.0)
    factors = [
        literal.consistent_factor(a, b, n, k)
        for a, b in zip(asked.lo.tolist(), asked.hi.tolist(), strict=True)
    ]
    node = {"laplace": literal.node_variance(n, k, epsilon)}.get(law)
    if node:
        np.testing.assert_allclose(ours, np.array(factors) * node, rtol=1e-5)
    np.testing.assert_allclose(ours / ours[0], np.array(factors) / factors[0])
    rng, data = seeded(1), table(np.zeros(n, int))
    drawn = np.array([mechanism(data, rng).answer(asked) for _ in range(3000)])
    np.testing.assert_allclose(drawn.var(axis=0), ours, rtol=0.15)
    assert (np.abs(drawn.mean(axis=0)) < 5 * np.sqrt(ours / 3000)).all()  # unbiased


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 13])
def test_hierarchical_answers_have_the_law_of_the_literal_ones(n):
    rng, counts = seeded(2), [0, 0, 9, 1, 0, 30, 2, 0, 0, 0, 4, 0, 0][:n]
    asked, epsilon = Ranges([0, 2, 5], [n, 5, 6]), 1.0
    scale = len(level_sizes(n, 2)) / epsilon
    leaves, nodes = literal.answer_leaves, literal.answer_cover
    for consistent, zeroed, ask in (
        (True, True, nodes),
        (True, True, leaves),
        (True, False, leaves),
        (False, True, nodes),
    ):
        ranges = "nodes" if ask is nodes else "leaves"
        mechanism = HierarchicalHistogram(DP(epsilon), 2, consistent, zeroed, ranges)
        ours = np.array([mechanism(table(counts), rng).answer(asked) for _ in range(800)])
        theirs = []
        for _ in range(800):
            h = [x + rng.laplace(0, scale) for x in literal.build(counts, 2)]
            if consistent:
                h = list(tree_least_squares(h))
                h = literal.zeroed(h, 2) if zeroed else h
            theirs.append([ask(h, a, b, 2) for a, b in zip(asked.lo, asked.hi, strict=True)])
        for column in range(3):
            assert same_law(ours[:, column], np.array(theirs)[:, column]) > 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["isotonic", "sorted", "noisy"])
@pytest.mark.parametrize("law", ["laplace", "geometric"])
def test_unattributed_histograms_have_the_law_of_the_literal_ones(estimator, law):
    rng, counts = seeded(3), [0, 7, 0, 0, 3, 3, 12, 0, 3, 40]
    mechanism = UnattributedHistogram(DP(0.7), estimator, law)
    ours = np.array([mechanism(table(counts), rng).estimate.values for _ in range(800)])
    theirs = np.array([
        literal_isotonic.unattributed(counts, 0.7, 1.0, estimator, rng, law) for _ in range(800)
    ])  # fmt: skip
    for rank in range(10):
        assert same_law(ours[:, rank], theirs[:, rank]) > 1e-5


def test_ranks_move_no_more_than_counts():
    rng = seeded(4)
    for _ in range(50):
        counts = rng.integers(0, 6, 12)
        moved = counts.copy()
        moved[rng.choice(12, 3, replace=False)] += 1
        one, other = (table(c).ranked().dense() for c in (counts, moved))
        assert (np.sort(counts) == one).all() and np.abs(one - other).sum() <= 3


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2, 5, 8, 13, 64])
def test_privelet_inverts_its_transform_and_its_ranges_vary_as_they_should(m):
    """Seeded: never by chance; sees a variance that is off by 15 %."""
    counts = seeded(m).integers(0, 30, m)
    basis = Haar().on(Domain(("x",), (m,)))
    full = np.zeros(m)
    nodes, values = basis.forward(np.flatnonzero(counts), counts[counts > 0])
    full[nodes] = values
    np.testing.assert_allclose(basis.inverse(full), counts, atol=1e-9)
    if m in (8, 64):
        rng, asked = seeded(5), Ranges([0, 1, m // 2], [m, m - 1, m // 2 + 1])
        drawn = np.array(
            [Privelet(DP(1.0))(table(counts), rng).answer(asked) for _ in range(3000)]
        )
        closed = [
            literal_privelet.haar_range_variance(int(a), int(b), m, 1.0, "add/remove")
            for a, b in zip(asked.lo, asked.hi, strict=True)
        ]
        np.testing.assert_allclose(drawn.var(axis=0), closed, rtol=0.15)


def test_laplace_noise_has_the_scale_that_it_says():
    """Seeded: never by chance; sees a scale that is off by 2 %."""
    release = LaplaceHistogram(DP(0.1))(table(np.zeros(200_000, int), Bound(1, 2)), seeded())
    assert release.estimate.values.std() == pytest.approx(2**0.5 * 20, rel=0.02)
    assert release.estimate.variance == pytest.approx(800, rel=1e-5)
    assert (release.estimate.values % 2.0**-6 == 0).all()  # a public grid
    whole = LaplaceHistogram(DP(0.1), "geometric")(table([5, 3]), seeded())
    assert (whole.estimate.values == np.rint(whole.estimate.values)).all()


@pytest.mark.parametrize("n", [64, 256, 1024, 4096, 32768])
def test_the_optimal_branching_is_the_formulas(n):
    assert HierarchicalHistogram(DP(1.0), "optimal").branching_factor(
        n
    ) == literal.hb_branching(n)


@pytest.mark.parametrize("nodes, near", [(9, "7 and 11"), (4, "3 and 6"), (2, "1 and 3")])
def test_a_length_that_fits_no_tree_is_refused_with_the_nearest(nodes, near):
    with pytest.raises(ValueError, match=rf"{nodes} nodes .noisy.: the nearest have.*{near}"):
        tree_least_squares(np.zeros(nodes))


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_numbers_that_are_none_are_named(bad):
    for call in (
        isotonic,
        tree_least_squares,
        zero_negative_subtrees,
        nonnegative_least_squares,
        round_to_counts,
    ):
        with pytest.raises(ValueError, match=rf"\[1\] = {bad}.*finite"):
            call([1.0, bad, 2.0])
    with pytest.raises(ValueError, match="must be numbers"):
        isotonic(["a"])


@pytest.mark.parametrize("wrong", [{"branching": 1}, {"branching": 0}, {"branching": 2.5}])
def test_a_tree_branches(wrong):
    with pytest.raises(ValueError, match="branching"):
        tree_least_squares(np.zeros(3), **wrong)
    with pytest.raises(ValueError, match="branching"):
        HierarchicalHistogram(DP(1.0), **wrong)


@pytest.mark.parametrize("mechanism", [
    LaplaceHistogram(DP(1.0)), UnattributedHistogram(DP(1.0)), HierarchicalHistogram(DP(1.0), 3),
    HierarchicalHistogram(DP(1.0), consistent=False), Privelet(DP(1.0)),
], ids=repr)  # fmt: skip
def test_one_cell_and_subsets_are_answered(mechanism):
    one = table([4])
    assert np.isfinite(mechanism(one, seeded()).answer(Ranges([0], [1]))).all()
    release = mechanism(table([3, 0, 5, 1, 0, 0, 9]))
    assert np.isfinite(release.answer(Subsets.of([[0, 2], [6]]))).all()


def test_ranges_outside_are_refused_and_domains_too_large():
    release = LaplaceHistogram(DP(1.0))(table([1, 2]), seeded())
    with pytest.raises(ValueError, match="outside a domain of 2 cells"):
        release.answer(Ranges([0], [3]))
    with pytest.raises(ValueError, match="need 0 <= lo <= hi"):
        Ranges([2], [1])
    large = SparseTable.from_keys(Domain(("x",), (2**40,)), [3], [1], Bound())
    for mechanism in (HierarchicalHistogram, Privelet, LaplaceHistogram, UnattributedHistogram):
        with pytest.raises(ValueError, match="memory"):
            mechanism(DP(1.0))(large)
    with pytest.raises(ValueError, match="do not fit"):
        Histogram(Domain(("x",), (3,)), np.zeros(2))


@pytest.mark.parametrize("n, k", [(64, 2), (100, 4), (33, 2), (27, 3)])
def test_the_non_negative_solution_is_the_nearest(n, k):
    for seed in range(6):
        noisy = seeded(seed).normal(0, 10, literal.size(n, k))
        found = nonnegative_least_squares(noisy, k)
        np.testing.assert_allclose(found, literal.nnls(noisy.tolist(), k), atol=1e-7)
        held = NonnegativeLeastSquares()(HierarchicalSums(Domain(("x",), (n,)), k, noisy, 1.0))
        np.testing.assert_allclose(held.values, found[-n:])
    assert not nonnegative_least_squares(-np.ones(7)).any()


def test_the_non_negative_solution_beats_zeroing_on_sparse_data():
    """Seeded: never by chance; sees an error that is no five times smaller."""
    counts = np.zeros(4096)
    counts[100:110] = 50
    noisy = tree_sums(counts) + seeded(6).laplace(0, 13, 8191)
    zeroed = zero_negative_subtrees(tree_least_squares(noisy))[-4096:]
    nearest = nonnegative_least_squares(noisy)[-4096:]
    assert 5 * ((nearest - counts) ** 2).sum() < ((zeroed - counts) ** 2).sum()


@pytest.mark.parametrize("count, epsilon", [(10**13, 1.0), (10**10, 1e4), (2**50, 1.0)])
def test_large_counts_are_not_cut(count, epsilon):
    for mechanism in (LaplaceHistogram, UnattributedHistogram, HierarchicalHistogram, Privelet):
        release = mechanism(DP(epsilon))(table([0, 0, 5, count]), seeded())
        assert release.answer(Ranges([3], [4]))[0] == pytest.approx(
            count, abs=200 / epsilon + 1
        )


def test_the_non_negative_solution_does_not_depend_on_what_is_large_elsewhere():
    counts = np.zeros(256)
    noise = seeded(7).laplace(0, 9, 511)
    told = []
    for big in (1e6, 1e11):
        counts[5] = big
        found = nonnegative_least_squares(tree_sums(counts) + noise)[-256:]
        told.append(np.delete(found, 5))
    np.testing.assert_allclose(told[0], told[1], atol=0.01)


def test_sorted_counts_may_move_in_more_places_than_one():
    data = table([1, 2, 3, 4, 5], Bound(1, 5))
    assert data.ranked().bound == Bound(5, 5, 5) and table([1, 2]).ranked().bound == Bound()


@pytest.mark.parametrize("epsilon", [1e300, 1e100])
def test_the_largest_prices_leave_the_counts_alone(epsilon):
    for law in ("laplace", "geometric"):
        release = HierarchicalHistogram(DP(epsilon), noise=law)(
            table([3, 0, 5], Bound(1, 1)), seeded()
        )
        assert release.answer(Ranges([0], [3]))[0] == 8
    with pytest.raises(ValueError, match="too small"):
        LaplaceHistogram(DP(1e-300))(table([3], Bound(1, 1e300)))


@pytest.mark.parametrize("call, why", [
    (lambda: tree_least_squares([]), "no nodes"),
    (lambda: tree_least_squares(np.zeros((1, 7))), "plain sequence"),
    (lambda: tree_least_squares(np.zeros(7), 2.0), "branching = 2.0"),
    (lambda: isotonic(5.0), "plain sequence"),
    (lambda: Zeroed()(Histogram(Domain(("x",), (3,)), np.zeros(3))), "HierarchicalSums"),
    (lambda: HierarchicalSums(Domain(("x",), (64,)), 2, np.zeros(5), None), "5 nodes"),
    (lambda: HierarchicalSums(Domain(("x",), (3,)), 1, np.zeros(5), None), "1-ary"),
])  # fmt: skip
def test_what_is_no_tree_is_refused(call, why):
    with pytest.raises(ValueError, match=why):
        call()
